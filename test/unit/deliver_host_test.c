/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_host_test.c - what goes to one host, over all of its endpoints.
 */
#include "deliver/roster.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LARGE 1000 /* what an endpoint could have without its host */

static const pawl_mono now = {1000000};

struct rig {
    struct pawli_roster roster;
    struct pawli_outlet_rules rules;
};

static void init(struct rig *rig, int64_t per_host_max)
{
    pawli_roster_init(&rig->roster, per_host_max);
    rig->rules = (struct pawli_outlet_rules){.gate = {.window_start = 4}, .most = LARGE};
    pawli_breaker_rules_init(&rig->rules.gate.breaker);
}

static void go_to(struct rig *rig, struct pawli_outlet *outlet, const char *host)
{
    assert_true(pawli_text_copy(outlet->target.host, sizeof(outlet->target.host), host));
    outlet->target.port = 443;
    assert_true(pawli_roster_move(&rig->roster, outlet));
}

static struct pawli_outlet *add(struct rig *rig, const char *name, const char *host)
{
    struct pawli_outlet *outlet = pawli_outlet_new(name, &rig->rules, now);
    assert_non_null(outlet);
    pawli_roster_add(&rig->roster, outlet);
    go_to(rig, outlet, host);
    return outlet;
}

/* As the dispatcher does it. */
static int64_t rebound(struct pawli_outlet *outlet)
{
    return outlet->bound = pawli_host_bound(outlet, LARGE);
}

static void begin(struct pawli_outlet *outlet)
{
    outlet->deliveries++;
    outlet->host->in_flight++;
}

static void end(struct rig *rig, struct pawli_outlet *outlet)
{
    outlet->deliveries--;
    outlet->host->in_flight--;
    pawli_roster_stir(&rig->roster, outlet);
}

/* All together claim no more than there is room for. */
static void test_the_room_is_divided(void **state)
{
    (void)state;
    struct rig rig;
    init(&rig, 9);
    struct pawli_outlet *a = add(&rig, "a", "one.example");
    assert_int_equal(9, rebound(a));
    struct pawli_outlet *b = add(&rig, "b", "one.example");
    struct pawli_outlet *other = add(&rig, "c", "two.example");
    a->bound = b->bound = -1; /* none was told */
    assert_int_equal(4, rebound(a));
    assert_int_equal(4, rebound(b));
    assert_int_equal(9, rebound(other));         /* another host: 9 of its own */
    assert_int_equal(3, pawli_host_bound(a, 3)); /* its own bound is less */
    for (int i = 0; i < 4; i++)
        begin(a);
    assert_int_equal(4 + 2, rebound(a));
    b->bound = 3;
    assert_int_equal(3, rebound(b)); /* about its share, which is 2: left as it is */
    for (int i = 0; i < 4; i++)
        begin(b);
    assert_int_equal(4 + 1, rebound(b)); /* one is left, and either may have it */
    begin(b);
    assert_int_equal(4, rebound(a));
    assert_int_equal(5, rebound(b));
    assert_int_equal(0, pawli_host_bound(a, 0)); /* closed for a reason of its own */
    a->deliveries = b->deliveries = 0;
    pawli_roster_clear(&rig.roster);
}

/* Whoever had to wait longest is next, whatever the others have to send. */
static void test_nobody_waits_for_ever(void **state)
{
    (void)state;
    struct rig rig;
    struct pawli_outlet *outlets[3];
    int64_t begun[3] = {0, 0, 0};
    init(&rig, 2);
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "%d", i); /* it fits */
        outlets[i] = add(&rig, name, "one.example");
    }
    begin(outlets[0]);
    begin(outlets[0]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(outlets[i]->deliveries, rebound(outlets[i]));
    struct pawli_outlet *under_way[2] = {outlets[0], outlets[0]};
    assert_null(pawli_host_next(outlets[0]->host)); /* no room */
    for (int i = 0; i < 30; i++) {
        struct pawli_outlet **ended = &under_way[i % 2];
        end(&rig, *ended);
        assert_ptr_equal(outlets[0]->host, pawli_roster_stirred(&rig.roster));
        assert_null(pawli_roster_stirred(&rig.roster));
        struct pawli_outlet *next = pawli_host_next(outlets[0]->host);
        assert_non_null(next);
        assert_int_equal(next->deliveries + 1, rebound(next));
        begin(next);
        assert_int_equal(next->deliveries, rebound(next)); /* held back again, behind the others */
        *ended = next;
        for (int j = 0; j < 3; j++)
            begun[j] += next == outlets[j];
    }
    for (int j = 0; j < 3; j++) {
        assert_int_equal(10, begun[j]);
        outlets[j]->deliveries = 0;
    }
    pawli_roster_clear(&rig.roster);
}

/* What was claimed and cannot be sent yet is sent in the order in which it came. */
static void test_what_waits_is_sent_in_order(void **state)
{
    (void)state;
    struct rig rig;
    init(&rig, 1);
    struct pawli_outlet *a = add(&rig, "a", "one.example");
    struct pawli_outlet *b = add(&rig, "b", "one.example");
    begin(a);
    struct pawli_parked parked[2] = {{.outlet = b}, {.outlet = a}};
    for (int i = 0; i < 2; i++) {
        parked[i].outlet->deliveries++;
        pawli_host_park(&parked[i]);
    }
    assert_null(pawli_host_ready(a->host));
    end(&rig, a);
    assert_int_equal(0, pawli_host_room(a->host)); /* it is for those that wait */
    assert_int_equal(1, rebound(a));
    assert_ptr_equal(&parked[0], pawli_host_ready(a->host));
    pawli_host_unpark(&parked[0]);
    a->host->in_flight++;
    assert_null(pawli_host_ready(a->host));
    end(&rig, b);
    assert_ptr_equal(&parked[1], pawli_host_ready(a->host));
    pawli_host_unpark(&parked[1]);
    assert_null(pawli_host_ready(a->host));
    a->deliveries = 0;
    pawli_roster_clear(&rig.roster);
}

/* An endpoint that moves takes with it what waits and what is under way; the old host has room. */
static void test_an_endpoint_moves(void **state)
{
    (void)state;
    struct rig rig;
    init(&rig, 2);
    struct pawli_outlet *a = add(&rig, "a", "one.example");
    struct pawli_outlet *b = add(&rig, "b", "one.example");
    struct pawli_host *old = a->host;
    begin(a);
    begin(a);
    struct pawli_parked parked[2] = {{.outlet = a}, {.outlet = b}};
    for (int i = 0; i < 2; i++) {
        parked[i].outlet->deliveries++;
        pawli_host_park(&parked[i]);
    }
    assert_int_equal(b->deliveries, rebound(b));
    while (pawli_roster_stirred(&rig.roster) != NULL)
        continue;
    go_to(&rig, a, "two.example");
    assert_ptr_equal(old, pawli_roster_stirred(&rig.roster));
    assert_ptr_equal(a->host, pawli_roster_stirred(&rig.roster));
    assert_int_equal(2, a->host->in_flight);
    assert_int_equal(1, a->host->parked_count);
    assert_int_equal(0, old->in_flight);
    assert_ptr_equal(&parked[1], pawli_host_ready(old));
    assert_ptr_equal(b, pawli_host_next(old));
    for (int i = 0; i < 2; i++)
        pawli_host_unpark(&parked[i]);
    b->deliveries = 0;
    go_to(&rig, b, "two.example"); /* the old one is no more, nor stirred */
    assert_ptr_equal(a->host, b->host);
    assert_ptr_equal(a->host, pawli_roster_stirred(&rig.roster));
    assert_null(pawli_roster_stirred(&rig.roster));
    a->deliveries = 0;
    pawli_roster_clear(&rig.roster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_room_is_divided),
        cmocka_unit_test(test_nobody_waits_for_ever),
        cmocka_unit_test(test_what_waits_is_sent_in_order),
        cmocka_unit_test(test_an_endpoint_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
