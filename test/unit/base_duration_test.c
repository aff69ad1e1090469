/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_duration_test.c - proves base/duration.c: one strict parser, one printer.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: accepts a text because another program would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/duration_fuzz.h"
#include "pawl/pawl.h"

#include <sys/mman.h>
#include <unistd.h>

/* RES-1: lease durations, and every other one, in flags and files. */
static const struct {
    const char *text;
    int64_t ms;
} accepted[] = {
    {"1ms", 1},
    {"500ms", 500},
    {"30s", 30000},
    {"5m", 300000},
    {"2h", 7200000},
    {"7d", 604800000},
    {"3650d", PAWL_DURATION_MAX_MS},
    {"87600h", PAWL_DURATION_MAX_MS},
    {"315360000000ms", PAWL_DURATION_MAX_MS},
    {"007s", 7000},
    {"00000000000000000000000000000000000001s", 1000},
};

static const struct {
    const char *text;
    const char *named; /* what the error must say */
} refused[] = {
    {"", "is empty"},
    {"+5s", "sign"},
    {"-5s", "sign"},
    {"-", "sign"},
    {" 5s", "blank"},
    {"5s ", "blank"},
    {"5 s", "blank"},
    {"5\ts", "blank"},
    {"5s\n", "blank"},
    {"\n", "blank"},
    {"5", "no unit"},
    {"0", "no unit"},
    {"99999999999999999999", "no unit"},
    {"s", "begin with a number"},
    {"ms", "begin with a number"},
    {"x5s", "begin with a number"},
    {".5s", "begin with a number"},
    {"1.5s", "fraction"},
    {"1,5s", "fraction"},
    {"1.s", "fraction"},
    {"0s", "zero"},
    {"000ms", "zero"},
    {"5S", "unknown unit"},
    {"5MS", "unknown unit"},
    {"5us", "unknown unit"},
    {"5w", "unknown unit"},
    {"5sec", "unknown unit"},
    {"5msx", "unknown unit"},
    {"5mss", "unknown unit"},
    {"1h30m", "unknown unit"},
    {"5s5", "unknown unit"},
    {"0x5s", "unknown unit"},
    {"5e3s", "unknown unit"},
    {"3651d", "too long"},
    {"87601h", "too long"},
    {"315360000001ms", "too long"},
    {"9223372036854775807ms", "too long"},
    {"9223372036854775808ms", "too long"},
    {"18446744073709551617s", "too long"}, /* 1 modulo 2^64 */
    {"99999999999999999999999999999999999999999999999d", "too long"},
};

static void durations_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        int64_t ms = -1;
        assert_int_equal(pawl_duration_parse(accepted[i].text, &ms, NULL), PAWL_OK);
        assert_true(ms == accepted[i].ms);
    }
}

static void everything_else_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        int64_t ms = -4242;
        pawl_err err = {.code = PAWL_OK};
        assert_int_equal(pawl_duration_parse(refused[i].text, &ms, &err), PAWL_INVALID);
        assert_int_equal(pawl_duration_parse(refused[i].text, &ms, NULL), PAWL_INVALID);
        assert_int_equal(err.code, PAWL_INVALID);
        if (strstr(err.text, refused[i].named) == NULL)
            fail_msg("\"%s\" must say \"%s\"", err.text, refused[i].named);
        assert_non_null(strstr(err.text, "ms, s, m, h, d")); /* what is allowed */
        assert_true(ms == -4242);
    }
}

static void the_error_quotes_the_text_and_stays_printable(void **state)
{
    (void)state;
    int64_t ms = 0;
    pawl_err err;
    assert_int_equal(pawl_duration_parse("90x", &ms, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "\"90x\""));
    assert_int_equal(pawl_duration_parse("9\x1b[31m\xff", &ms, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "\"9?[31m?\""));
    assert_int_equal(pawl_duration_parse("1234567890123456789012345678901234567890", &ms, &err),
                     PAWL_INVALID);
    assert_non_null(strstr(err.text, "\"12345678901234567890123456789012...\""));
}

static void nothing_given_is_refused(void **state)
{
    (void)state;
    int64_t ms = -4242;
    pawl_err err;
    assert_int_equal(pawl_duration_parse(NULL, &ms, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "duration"));
    assert_true(ms == -4242);
    assert_int_equal(pawl_duration_parse("5s", NULL, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "ret_ms"));
    assert_string_equal(pawl_duration_format(5, NULL), "-");
}

static void durations_are_printed_in_the_largest_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } printed[] = {
        {0, "0ms"},
        {1, "1ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1001, "1001ms"},
        {59000, "59s"},
        {60000, "1m"},
        {90000, "90s"},
        {3600000, "1h"},
        {5400000, "90m"},
        {86400000, "1d"},
        {90000000, "25h"},
        {PAWL_DURATION_MAX_MS, "3650d"},
        {INT64_MAX, "9223372036854775807ms"},
        {-1, "-"},
        {-1000, "-"},
        {PAWL_DEFAULT, "-"},
    };
    for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++) {
        char text[PAWL_DURATION_TEXT_MAX];
        assert_ptr_equal(pawl_duration_format(printed[i].ms, text), text);
        assert_string_equal(text, printed[i].text);
    }
}

/* The NUL is the last byte of a page, and the page behind it cannot be read. */
static void nothing_is_read_beyond_the_nul(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        size_t size = strlen(refused[i].text) + 1;
        char *text = memcpy(pages + page - size, refused[i].text, size);
        assert_false(duration_fuzz_one(text));
    }
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        size_t size = strlen(accepted[i].text) + 1;
        char *text = memcpy(pages + page - size, accepted[i].text, size);
        assert_true(duration_fuzz_one(text));
    }
    assert_int_equal(munmap(pages, 2 * page), 0);
}

/* ---- the corpus */

#define CORPUS_TEXTS    100000
#define CORPUS_TEXT_MAX 64

static size_t draw(const pawl_random *random, size_t bound)
{
    return (size_t)pawli_random_below(random, bound);
}

/* Change, add or drop one byte of text[*length]. */
static void mutate(const pawl_random *random, uint8_t *text, size_t *length)
{
    static const char likely[] = "0123456789012345678901234567890123456789msmhd +-.,e\t\n\xff";
    size_t at = *length > 0 ? draw(random, *length) : 0;
    uint8_t byte = (uint8_t)likely[draw(random, sizeof(likely))]; /* its NUL too */
    if (draw(random, 16) == 0)
        byte = (uint8_t)draw(random, 256);
    switch (draw(random, 3)) {
    case 0:
        if (*length > 0)
            text[at] = byte;
        break;
    case 1:
        if (*length < CORPUS_TEXT_MAX) {
            memmove(text + at + 1, text + at, *length - at);
            text[at] = byte;
            (*length)++;
        }
        break;
    default:
        if (*length > 0) {
            memmove(text + at, text + at + 1, *length - at - 1);
            (*length)--;
        }
        break;
    }
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260101};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t accepted_count = 0;
    for (int i = 0; i < CORPUS_TEXTS; i++) {
        uint8_t text[CORPUS_TEXT_MAX + 1];
        size_t kind = draw(&random, sizeof(accepted) / sizeof(accepted[0]));
        size_t length = strlen(accepted[kind].text);
        memcpy(text, accepted[kind].text, length);
        for (size_t changes = 1 + draw(&random, 4); changes > 0; changes--)
            mutate(&random, text, &length);
        assert_int_equal(LLVMFuzzerTestOneInput(text, length), 0);
        text[length] = '\0';
        if (duration_fuzz_one((const char *)text))
            accepted_count++;
    }
    /* A corpus that is nearly all good or nearly all bad would prove little. */
    assert_in_range(accepted_count, CORPUS_TEXTS / 10, CORPUS_TEXTS / 10 * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(everything_else_is_refused_by_name),
        cmocka_unit_test(the_error_quotes_the_text_and_stays_printable),
        cmocka_unit_test(nothing_given_is_refused),
        cmocka_unit_test(durations_are_printed_in_the_largest_unit),
        cmocka_unit_test(nothing_is_read_beyond_the_nul),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("base_duration", tests, NULL, NULL);
}
