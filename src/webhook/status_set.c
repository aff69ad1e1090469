/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * status_set.c - a set of HTTP's statuses from 400 to 499.
 * Owns:  its written form.
 * Never: decides what a status means, but for the four that no setting changes.
 */
#include "webhook/status_set.h"

#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST 400
#define LAST  499

bool pawli_status_is_fixed(int status)
{
    return status == 408 || status == 410 || status == 425 || status == 429;
}

bool pawli_status_set_has(const struct pawli_status_set *set, int status)
{
    assert(set != NULL);

    if (status < FIRST || status > LAST)
        return false;
    unsigned bit = (unsigned)(status - FIRST);
    return (set->bits[bit / 64] >> bit % 64 & 1) != 0;
}

static pawl_code refuse(pawl_err *err, const char *problem)
{
    return pawli_fail(err, PAWL_INVALID,
                      "fail_at_once: %s; allowed: numbers and ranges from 400 to 499 with commas "
                      "between them (400,404-406), but for 408, 410, 425 and 429",
                      problem);
}

/* Three digits. False: there are none, or it is out of bounds. */
static bool read_status(const char **at, int *ret_status)
{
    int status = 0;
    for (int i = 0; i < 3; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        status = status * 10 + (c - '0');
    }
    *at += 3;
    *ret_status = status;
    return status >= FIRST && status <= LAST;
}

pawl_code pawli_status_set_parse(const char *text, struct pawli_status_set *ret_set, pawl_err *err)
{
    assert(ret_set != NULL);

    if (text == NULL)
        return pawli_fail(err, PAWL_INVALID, "fail_at_once is missing (NULL)");
    struct pawli_status_set set = {{0}};
    const char *at = text;
    while (*at != '\0') {
        int first;
        int last;
        if (!read_status(&at, &first))
            return refuse(err, "a status that is none of these");
        last = first;
        if (*at == '-') {
            at++;
            if (!read_status(&at, &last) || last < first)
                return refuse(err, "a range that does not rise, or leaves these");
        }
        if (first == last && pawli_status_is_fixed(first))
            return refuse(err, first == 410 ? "410 always disables the endpoint"
                                            : "408, 425 and 429 are always retried");
        for (int status = first; status <= last; status++)
            set.bits[(status - FIRST) / 64] |= UINT64_C(1) << (status - FIRST) % 64;
        if (*at == ',' && at[1] != '\0')
            at++;
        else if (*at != '\0')
            return refuse(err, "something other than a comma between two, or at the end");
    }
    *ret_set = set;
    return PAWL_OK;
}

const char *pawli_status_set_format(const struct pawli_status_set *set,
                                    char text[PAWLI_STATUS_SET_SIZE])
{
    assert(set != NULL && text != NULL);

    /* The longest: every third status missing. 33 ranges of 7 bytes, one number, and commas. */
    size_t len = 0;
    text[0] = '\0';
    for (int first = FIRST; first <= LAST; first++) {
        if (!pawli_status_set_has(set, first))
            continue;
        int last = first;
        while (pawli_status_set_has(set, last + 1))
            last++;
        char range[16] = "";
        if (last > first)
            (void)snprintf(range, sizeof(range), "-%d", last);
        (void)snprintf(text + len, PAWLI_STATUS_SET_SIZE - len, "%s%d%s", len > 0 ? "," : "", first,
                       range);
        len += strlen(text + len);
        first = last;
    }
    return text;
}
