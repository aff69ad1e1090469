/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_retry_after_test.c - proves webhook/retry_after.c: seconds and dates, bounded.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: asks what time it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/retry_after_fuzz.h"
#include "webhook/retry_after.h"

#define NOW      INT64_C(1772323200) /* Sun, 01 Mar 2026 00:00:00 GMT */
#define HOUR_MS  INT64_C(3600000)
#define YEARS_10 PAWL_DURATION_MAX_MS

static int64_t read_at(const char *value, int64_t now_s, int64_t max_ms)
{
    int64_t ms = -1;
    return pawli_retry_after_read(value, (pawl_wall){now_s * 1000000}, max_ms, &ms) ? ms : -1;
}

static const struct {
    const char *value;
    int64_t ms; /* at NOW, up to ten years */
} accepted[] = {
    {"0", 0},
    {"1", 1000},
    {"120", 120000},
    {"0000000000120", 120000},
    {" 120", 120000},
    {"120\t ", 120000},
    {"315360000", YEARS_10},
    {"315360001", YEARS_10},
    {"9223372036854775808", YEARS_10},
    {"18446744073709551617", YEARS_10}, /* 1 modulo 2^64 */
    {"99999999999999999999999999999999999999", YEARS_10},
    {"Sun, 01 Mar 2026 00:00:00 GMT", 0},
    {"Sun, 01 Mar 2026 00:00:01 GMT", 1000},
    {"Sun, 01 Mar 2026 01:00:00 GMT", HOUR_MS},
    {"Mon, 02 Mar 2026 00:00:00 GMT", 24 * HOUR_MS},
    {"Sat, 28 Feb 2026 23:59:59 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Sat, 01 Jan 0000 00:00:00 GMT", 0},
    {"Fri, 31 Dec 9999 23:59:59 GMT", YEARS_10},
    {"Fri, 31 Dec 2027 23:59:60 GMT", (INT64_C(671) * 86400) * 1000},
    {"Tue, 29 Feb 2028 00:00:00 GMT", INT64_C(730) * 86400 * 1000},
    {"Sunday, 01-Mar-26 01:00:00 GMT", HOUR_MS},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 0}, /* 1994 */
    {"Friday, 01-Mar-30 00:00:00 GMT", INT64_C(1461) * 86400 * 1000},
    {"Saturday, 29-Feb-76 00:00:00 GMT", YEARS_10}, /* 2076: fifty years from now */
    {"Sunday, 31-Jan-77 00:00:00 GMT", 0},          /* 1977 */
    {"Sun Mar  1 01:00:00 2026", HOUR_MS},
    {"Tue Mar 10 00:00:00 2026", INT64_C(9) * 24 * HOUR_MS},
    {"Sun Nov  6 08:49:37 1994", 0},
};

static const char *const refused[] = {
    "",
    " ",
    "-1",
    "+1",
    "1.5",
    "1s",
    "0x10",
    "1 2",
    "1,2",
    "soon",
    "1e3",
    "Sun, 01 Mar 2026 00:00:00",
    "Sun, 01 Mar 2026 00:00:00 UTC",
    "Sun, 01 Mar 2026 00:00:00 GMT+1",
    "Sun, 01 Mar 2026 00:00:00 GMT,",
    "Sun, 1 Mar 2026 00:00:00 GMT",
    "Sun 01 Mar 2026 00:00:00 GMT",
    "sun, 01 Mar 2026 00:00:00 GMT",
    "Sun, 01 mar 2026 00:00:00 GMT",
    "Xyz, 01 Mar 2026 00:00:00 GMT",
    "Sun, 01 Xyz 2026 00:00:00 GMT",
    "Sun, 01 Mar 26 00:00:00 GMT",
    "Sun, 00 Mar 2026 00:00:00 GMT",
    "Sun, 32 Mar 2026 00:00:00 GMT",
    "Sun, 31 Apr 2026 00:00:00 GMT",
    "Sun, 29 Feb 2026 00:00:00 GMT",
    "Sun, 29 Feb 2100 00:00:00 GMT",
    "Sun, 01 Mar 2026 24:00:00 GMT",
    "Sun, 01 Mar 2026 00:60:00 GMT",
    "Sun, 01 Mar 2026 00:00:61 GMT",
    "Sun, 01 Mar 2026 00:00 GMT",
    "Sunday, 01-Mar-2026 01:00:00 GMT",
    "Sunday, 01-Mar-26 01:00:00",
    "Sun, 01-Mar-26 01:00:00 GMT",
    "Sun Mar 1 01:00:00 2026",
    "Sun Mar  1 01:00:00 2026 GMT",
    "Sun Mar  0 01:00:00 2026",
    "2026-03-01T00:00:00Z",
    "00000000000000000000000000000000000000000000000000000000000000001", /* 65 */
};

static void seconds_and_dates_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        int64_t ms = read_at(accepted[i].value, NOW, YEARS_10);
        if (ms != accepted[i].ms)
            fail_msg("\"%s\": %lld, not %lld", accepted[i].value, (long long)ms,
                     (long long)accepted[i].ms);
        assert_true(retry_after_fuzz_one(accepted[i].value));
    }
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (retry_after_fuzz_one(refused[i]))
            fail_msg("\"%s\" must be refused", refused[i]);
    int64_t ms = -4242;
    assert_false(pawli_retry_after_read(NULL, (pawl_wall){NOW}, HOUR_MS, &ms));
    assert_true(ms == -4242);
}

static void what_is_asked_for_is_bounded(void **state)
{
    (void)state;
    assert_true(read_at("3599", NOW, HOUR_MS) == HOUR_MS - 1000);
    assert_true(read_at("3600", NOW, HOUR_MS) == HOUR_MS);
    assert_true(read_at("3601", NOW, HOUR_MS) == HOUR_MS);
    assert_true(read_at("36000000000000000000", NOW, HOUR_MS) == HOUR_MS);
    assert_true(read_at("1", NOW, 0) == 0);
    assert_true(read_at("123", NOW, 0) == 0);
    assert_true(read_at("7", NOW, 6999) == 6999);
    assert_true(read_at("Sun, 01 Mar 2026 00:59:59 GMT", NOW, HOUR_MS) == HOUR_MS - 1000);
    assert_true(read_at("Sun, 01 Mar 2026 02:00:00 GMT", NOW, HOUR_MS) == HOUR_MS);
}

/* A date is read against the clock that is handed in, and never ends early. */
static void dates_are_read_against_the_clock(void **state)
{
    (void)state;
    int64_t ms = -1;
    pawl_wall half = {NOW * 1000000 + 1};
    assert_true(pawli_retry_after_read("Sun, 01 Mar 2026 00:00:01 GMT", half, HOUR_MS, &ms));
    assert_true(ms == 1000); /* 999.999 ms, rounded up */
    half.us = NOW * 1000000 + 999999;
    assert_true(pawli_retry_after_read("Sun, 01 Mar 2026 00:00:01 GMT", half, HOUR_MS, &ms));
    assert_true(ms == 1);
    assert_true(read_at("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 - 5, HOUR_MS) == 5000);
    assert_true(read_at("Thu, 29 Feb 2024 23:59:59 GMT", 1709251199 - 5, HOUR_MS) == 5000);
    assert_true(read_at("Sunday, 06-Nov-94 08:49:37 GMT", 784111777 - 5, HOUR_MS) == 5000);
    assert_true(read_at("Fri, 31 Dec 9999 23:59:59 GMT", 253402300799 - 5, HOUR_MS) == 5000);
    /* Years of two digits, over the end of a century. */
    assert_true(read_at("Friday, 01-Jan-00 00:00:00 GMT", INT64_C(4102444800) - 5, HOUR_MS) ==
                5000);
    assert_true(read_at("Friday, 01-Jan-00 00:00:00 GMT", INT64_C(946684800) - 5, HOUR_MS) == 5000);
    /* Clocks that are no clocks. */
    assert_true(read_at("Sun, 01 Mar 2026 00:00:01 GMT", INT64_MIN / 1000000, HOUR_MS) == HOUR_MS);
    assert_true(read_at("Sun, 01 Mar 2026 00:00:01 GMT", INT64_MAX / 1000000, HOUR_MS) == 0);
    assert_true(read_at("Sunday, 01-Mar-26 00:00:01 GMT", INT64_MAX / 1000000, HOUR_MS) == 0);
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260306};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t good = 0;
    for (int i = 0; i < 50000; i++) {
        char value[96] = {0};
        size_t kind = (size_t)pawli_random_below(&random, sizeof(accepted) / sizeof(accepted[0]));
        (void)snprintf(value, sizeof(value) - 1, "%s", accepted[kind].value);
        static const char likely[] = "0123456789012345678901234567890123456789 :,-GMTSunMar";
        for (uint64_t changes = pawli_random_below(&random, 4); changes > 0; changes--)
            value[pawli_random_below(&random, strlen(value) + 1)] =
                likely[pawli_random_below(&random, sizeof(likely))];
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)value, strlen(value)), 0);
        good += retry_after_fuzz_one(value);
    }
    assert_in_range(good, 5000, 45000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_and_dates_are_read),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(what_is_asked_for_is_bounded),
        cmocka_unit_test(dates_are_read_against_the_clock),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("webhook_retry_after", tests, NULL, NULL);
}
