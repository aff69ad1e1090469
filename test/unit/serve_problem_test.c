/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_problem_test.c - proves that every code has its problem, and that the types are the
 *                        documented ones.
 * Owns:  nothing.
 * Never: asks a store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/problem.h"

#include <string.h>

#define CODES_MAX 1000

/* A code that came with a new verb must not be told as "error" with a 500. */
static void every_code_has_a_problem(void **state)
{
    (void)state;
    size_t seen = 0;
    for (int i = 1; i < CODES_MAX; i++) {
        pawl_code code = (pawl_code)i;
        struct pawli_answer answer = {0};
        if (strcmp(pawl_code_name(code), "?") == 0)
            continue;
        pawli_answer_code(&answer, code, NULL);
        if (answer.status == 500 || strcmp(answer.problem, "error") == 0)
            fail_msg("%s has no row in serve/problem.c", pawl_code_name(code));
        assert_true(answer.status >= 400);
        assert_int_equal(answer.retry_after_s > 0, answer.status == 503);
        pawli_answer_clear(&answer);
        seen++;
    }
    assert_true(seen >= 27);
    assert_int_equal(pawli_code_status(PAWL_OK), 200);
}

/* One type means one thing. */
static void no_type_is_there_twice(void **state)
{
    (void)state;
    const char *type;
    const char *other;
    unsigned status;
    for (size_t i = 0; pawli_problem_at(i, &type, &status); i++)
        for (size_t k = 0; k < i && pawli_problem_at(k, &other, &status); k++)
            assert_string_not_equal(type, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_problem),
        cmocka_unit_test(no_type_is_there_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
