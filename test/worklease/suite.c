/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite.c - runs the tests of work leases on one kind of store.
 * Owns:  the stage of each test.
 * Never: holds a test.
 */
#include "worklease/suite.h"

#include <stdlib.h>
#include <string.h>

#define TESTS_MAX 64

static int raise_stage(void **state)
{
    struct stage *s = *state;
    s->place = s->kind->make(1);
    s->store = s->place != NULL ? s->kind->open(s->place) : NULL;
    return s->store != NULL ? 0 : -1;
}

static int strike_stage(void **state)
{
    struct stage *s = *state;
    pawl_store_close(s->store);
    if (s->place != NULL)
        s->kind->drop(s->place);
    s->store = NULL;
    s->place = NULL;
    return 0;
}

int worklease_suite(const struct store_kind *kind, const struct walk_plan *plan)
{
    struct stage stage = {.kind = kind, .plan = *plan};
    struct CMUnitTest tests[TESTS_MAX];
    size_t count = 0;
    for (; count < worklease_cases_count && count < TESTS_MAX - 2; count++)
        tests[count] = worklease_cases[count];
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(equals_the_naive_model);
    if (plan->more != NULL)
        tests[count++] = (struct CMUnitTest){.name = "sql_equals_the_naive_model",
                                             .test_func = plan->more};
    for (size_t i = 0; i < count; i++) {
        tests[i].setup_func = raise_stage;
        tests[i].teardown_func = strike_stage;
        tests[i].initial_state = &stage;
    }
    return _cmocka_run_group_tests(kind->name, tests, count, NULL, NULL);
}
