/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * duration.c - durations as people write them: `500ms`, `30s`, `5m`, `2h`, `7d`.
 * Owns:  the one parser and the one printer of durations.
 * Never: guesses (no default unit, no fractions, no blanks); depends on the locale; reads beyond
 *        the closing NUL.
 */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    int64_t ms;
};

/* From the largest to the smallest: the printer takes the first that fits. */
static const struct unit units[] = {
    {"d", INT64_C(24) * 3600 * 1000},
    {"h", INT64_C(3600) * 1000},
    {"m", INT64_C(60) * 1000},
    {"s", INT64_C(1000)},
    {"ms", INT64_C(1)},
};
#define UNITS_COUNT (sizeof(units) / sizeof(units[0]))

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

_Static_assert(PAWL_DURATION_MAX_MS == INT64_C(3650) * 24 * 3600 * 1000,
               "refuse() names the longest duration");

#define SHOWN_MAX 32 /* bytes of the text that an error quotes */

/* Refuse `text`, quoted as far as it is short and printable: it may come from anywhere. */
static pawl_code refuse(pawl_err *err, const char *text, const char *problem)
{
    char shown[SHOWN_MAX + 1];
    size_t length = 0;
    for (; length < SHOWN_MAX && text[length] != '\0'; length++)
        shown[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    shown[length] = '\0';
    return pawli_fail(err, PAWL_INVALID,
                      "duration \"%s%s\" %s; it is a whole number above 0 and one of ms, s, m, h, "
                      "d, up to 3650d",
                      shown, text[length] != '\0' ? "..." : "", problem);
}

/* What is wrong with the text that stands where the unit should, or NULL and the unit. */
static const char *read_unit(const char *text, int64_t *ret_ms)
{
    if (text[0] == '\0')
        return "has no unit";
    if (text[0] == '.' || text[0] == ',')
        return "has a fraction";
    for (size_t i = 0; i < UNITS_COUNT; i++) {
        if (strcmp(text, units[i].name) == 0) {
            *ret_ms = units[i].ms;
            return NULL;
        }
    }
    for (size_t i = 0; text[i] != '\0'; i++)
        if (is_blank(text[i]))
            return "has a blank in it";
    return "has an unknown unit";
}

pawl_code pawl_duration_parse(const char *text, int64_t *ret_ms, pawl_err *err)
{
    if (text == NULL)
        return pawli_fail(err, PAWL_INVALID, "duration is missing (NULL)");
    if (ret_ms == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_ms is missing (NULL)");
    if (text[0] == '\0')
        return refuse(err, text, "is empty");
    if (text[0] == '+' || text[0] == '-')
        return refuse(err, text, "has a sign");
    if (is_blank(text[0]))
        return refuse(err, text, "has a blank in it");
    if (!is_digit(text[0]))
        return refuse(err, text, "does not begin with a number");

    /* Once too large for every unit it is not counted further, however many digits follow. */
    int64_t number = 0;
    size_t i = 0;
    for (; is_digit(text[i]); i++)
        if (number <= PAWL_DURATION_MAX_MS)
            number = number * 10 + (text[i] - '0');

    int64_t unit_ms = 0;
    const char *problem = read_unit(text + i, &unit_ms);
    if (problem != NULL)
        return refuse(err, text, problem);
    if (number == 0)
        return refuse(err, text, "is zero");
    if (number > PAWL_DURATION_MAX_MS / unit_ms)
        return refuse(err, text, "is too long");
    *ret_ms = number * unit_ms;
    return PAWL_OK;
}

const char *pawl_duration_format(int64_t ms, char text[PAWL_DURATION_TEXT_MAX])
{
    if (text == NULL)
        return "-";
    size_t i = 0;
    while (i < UNITS_COUNT - 1 && (ms == 0 || ms % units[i].ms != 0)) /* 0 is 0ms */
        i++;
    /* 19 digits and a unit always fit. */
    if (ms < 0)
        (void)snprintf(text, PAWL_DURATION_TEXT_MAX, "-");
    else
        (void)snprintf(text, PAWL_DURATION_TEXT_MAX, "%lld%s", (long long)(ms / units[i].ms),
                       units[i].name);
    return text;
}
