/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_lane_test.c - which requests share connections, and which of them wait for one.
 * Owns:  nothing.
 * Never: sends anything.
 */
#include "deliver/lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_each_scheme_host_and_port_has_its_own(void **state)
{
    (void)state;
    static const struct pawli_target targets[] = {
        {.host = "a.test", .port = 443, .is_https = true},
        {.host = "a.test", .port = 8443, .is_https = true},
        {.host = "a.test", .port = 443},
        {.host = "b.test", .port = 443, .is_https = true},
    };
    enum {
        COUNT = sizeof(targets) / sizeof(targets[0])
    };
    struct pawli_lanes lanes = RB_INITIALIZER(&lanes);
    struct pawli_lane *all[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        all[i] = pawli_lane_join(&lanes, &targets[i]);
        assert_non_null(all[i]);
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(all[i], all[j]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_ptr_equal(all[i], pawli_lane_join(&lanes, &targets[i]));
        pawli_lane_leave(&lanes, all[i]);
        assert_false(RB_EMPTY(&lanes)); /* one user is left */
    }
    for (size_t i = 0; i < COUNT; i++)
        pawli_lane_leave(&lanes, all[i]);
    assert_true(RB_EMPTY(&lanes));
}

static void test_who_has_to_wait(void **state)
{
    (void)state;
    struct pawli_lane lane = {.under_way = PAWLI_LANE_EAGER - 1};
    assert_true(pawli_lane_has_room(&lane));
    lane.connections = lane.under_way = PAWLI_LANE_EAGER;
    assert_false(pawli_lane_has_room(&lane));
    lane.connections++; /* it is free */
    assert_true(pawli_lane_has_room(&lane));
    lane.under_way++;
    assert_false(pawli_lane_has_room(&lane));
    lane.slow = 3;
    assert_true(pawli_lane_has_room(&lane));
    lane.under_way++;
    assert_true(pawli_lane_has_room(&lane));
    lane.under_way++;
    assert_false(pawli_lane_has_room(&lane));
    lane.is_shared = true;
    assert_true(pawli_lane_has_room(&lane));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_scheme_host_and_port_has_its_own),
        cmocka_unit_test(test_who_has_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
