/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_status_set_test.c - proves webhook/status_set.c: one strict reader, one printer.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: knows what a status does to a delivery.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/status_set_fuzz.h"
#include "webhook/status_set.h"

static const struct {
    const char *text;
    const char *shown; /* NULL: refused, and `named` */
    const char *named;
} rows[] = {
    {"", "", NULL},
    {"400", "400", NULL},
    {"499", "499", NULL},
    {"404,400", "400,404", NULL},
    {"400,400", "400", NULL},
    {"400-499", "400-499", NULL},
    {"400,401,402,404", "400-402,404", NULL},
    {"463-465", "463-465", NULL}, /* over the edge of a word */
    {"407-409", "407-409", NULL},
    {"407-408", "407-408", NULL},
    {"404-404", "404", NULL},
    {"400-405,403-407", "400-407", NULL},
    {"399", NULL, "none of these"},
    {"500", NULL, "none of these"},
    {"4xx", NULL, "none of these"},
    {"40", NULL, "none of these"},
    {" 400", NULL, "none of these"},
    {",400", NULL, "none of these"},
    {"-400", NULL, "none of these"},
    {"400,,401", NULL, "none of these"},
    {"400, 401", NULL, "none of these"},
    {"400,", NULL, "other than a comma"},
    {"4000", NULL, "other than a comma"},
    {"400 401", NULL, "other than a comma"},
    {"400;401", NULL, "other than a comma"},
    {"400-401-402", NULL, "other than a comma"},
    {"405-404", NULL, "does not rise"},
    {"400-500", NULL, "does not rise"},
    {"400-", NULL, "does not rise"},
    {"408", NULL, "always retried"},
    {"425", NULL, "always retried"},
    {"400,429", NULL, "always retried"},
    {"429-429", NULL, "always retried"},
    {"410", NULL, "always disables"},
};

static void sets_are_read_strictly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pawli_status_set set;
        char shown[PAWLI_STATUS_SET_SIZE];
        pawl_err err = {.text = ""};
        if (status_set_fuzz_one(rows[i].text) != (rows[i].shown != NULL))
            fail_msg("\"%s\"", rows[i].text);
        pawl_code rc = pawli_status_set_parse(rows[i].text, &set, &err);
        if (rows[i].shown != NULL) {
            assert_int_equal(rc, PAWL_OK);
            assert_string_equal(pawli_status_set_format(&set, shown), rows[i].shown);
        } else if (strstr(err.text, rows[i].named) == NULL ||
                   strstr(err.text, "allowed: numbers and ranges from 400 to 499") == NULL) {
            fail_msg("\"%s\" must say \"%s\"", err.text, rows[i].named);
        }
    }
    struct pawli_status_set set;
    assert_int_equal(pawli_status_set_parse(NULL, &set, NULL), PAWL_INVALID);
}

static void members_are_those_that_were_named(void **state)
{
    (void)state;
    struct pawli_status_set set;
    assert_int_equal(pawli_status_set_parse("400,463-465,499", &set, NULL), PAWL_OK);
    for (int status = -500; status <= 1000; status++) {
        bool is_member = status == 400 || status == 499 || (status >= 463 && status <= 465);
        assert_int_equal(pawli_status_set_has(&set, status), is_member);
    }
}

static void every_set_is_printed_whole(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260307};
    pawl_random random = pawli_seeded_as_random(&seeded);
    /* The longest. */
    struct pawli_status_set set = {{0}};
    for (unsigned bit = 0; bit < 100; bit++)
        if (bit % 3 != 2)
            set.bits[bit / 64] |= UINT64_C(1) << bit % 64;
    char shown[PAWLI_STATUS_SET_SIZE];
    assert_int_equal(strlen(pawli_status_set_format(&set, shown)), 267);
    assert_string_equal(shown + 256, "496-497,499");
    size_t good = 0;
    for (int i = 0; i < 20000; i++) {
        char text[64] = "";
        size_t len = 0;
        while (len < 40 && pawli_random_below(&random, 8) != 0) {
            (void)snprintf(text + len, sizeof(text) - len, "%s%d%s", len > 0 ? "," : "",
                           400 + (int)pawli_random_below(&random, 100),
                           pawli_random_below(&random, 4) == 0 ? "-499" : "");
            len = strlen(text);
        }
        if (len > 0 && pawli_random_below(&random, 4) == 0)
            text[pawli_random_below(&random, len)] = "0459,-x"[pawli_random_below(&random, 7)];
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)text, len), 0);
        good += status_set_fuzz_one(text);
    }
    assert_in_range(good, 2000, 18000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_read_strictly),
        cmocka_unit_test(members_are_those_that_were_named),
        cmocka_unit_test(every_set_is_printed_whole),
    };
    return cmocka_run_group_tests_name("webhook_status_set", tests, NULL, NULL);
}
