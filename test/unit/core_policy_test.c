/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_policy_test.c - proves core/policy.c: defaults, bounds, and errors that name them.
 * Owns:  a second list of every setting's default and bounds.
 * Never: tests who applies a setting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/policy.h"

#define MAX_MS PAWL_DURATION_MAX_MS
#define NONE   (PAWL_DEFAULT + 4242) /* no value outside the bounds is allowed */

static void assert_names(const pawl_err *err, const char *part)
{
    if (strstr(err->text, part) == NULL)
        fail_msg("\"%s\" must say \"%s\"", err->text, part);
}

static void assert_names_number(const pawl_err *err, int64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof(text), " %lld", (long long)number); /* always fits */
    assert_names(err, text);
}

/* ---- every field at its bounds */

struct field_case {
    const char *name;
    int64_t *field;
    int64_t initial, min, max, also;
};

typedef pawl_code check_fn(const void *settings, pawl_err *err);

static pawl_code check_queue(const void *settings, pawl_err *err)
{
    return pawl_queue_settings_check(settings, err);
}

/* A lease so long that nothing is refused because of it. */
static pawl_code check_worker(const void *settings, pawl_err *err)
{
    return pawl_worker_settings_check(settings, MAX_MS, err);
}

static pawl_code check_reaper(const void *settings, pawl_err *err)
{
    return pawl_reaper_settings_check(settings, MAX_MS, err);
}

static void assert_field_refused(const void *settings, const struct field_case *c, check_fn *check)
{
    pawl_err err;
    assert_int_equal(check(settings, &err), PAWL_INVALID);
    assert_int_equal(check(settings, NULL), PAWL_INVALID);
    assert_int_equal(err.code, PAWL_INVALID);
    assert_names(&err, c->name);
    assert_names_number(&err, *c->field);
    assert_names_number(&err, c->max);
}

static void assert_bounds(const void *settings, const struct field_case *cases, size_t cases_count,
                          check_fn *check)
{
    assert_int_equal(check(settings, NULL), PAWL_OK); /* the defaults are good */
    for (const struct field_case *c = cases; c < cases + cases_count; c++) {
        assert_true(*c->field == c->initial);
        const int64_t good[] = {c->min, c->max, c->initial};
        for (size_t i = 0; i < 3; i++) {
            *c->field = good[i];
            assert_int_equal(check(settings, NULL), PAWL_OK);
        }
        const int64_t bad[] = {c->min - 1,   c->max + 1,   -1,
                               PAWL_DEFAULT, PAWL_FOREVER, PAWL_DEFAULT + 1};
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            *c->field = bad[i];
            if (bad[i] == c->also)
                assert_int_equal(check(settings, NULL), PAWL_OK);
            else
                assert_field_refused(settings, c, check);
        }
        *c->field = c->initial;
    }
}

/* RES-1, RES-5, RES-6, Q-RETRY-BOUND, Q-BACKOFF, RULE-020-002 */
static void queue_settings_have_their_defaults_and_bounds(void **state)
{
    (void)state;
    pawl_queue_settings s;
    memset(&s, 0xff, sizeof(s));
    s.is_paused = true;
    pawl_queue_settings_init(&s);
    assert_false(s.is_paused);
    const struct field_case cases[] = {
        {"lease_ms", &s.lease_ms, 30000, 100, MAX_MS, NONE},
        {"execution_timeout_ms", &s.execution_timeout_ms, PAWL_DEFAULT, 1, MAX_MS, PAWL_DEFAULT},
        {"max_retries", &s.max_retries, 3, 0, 10000, NONE},
        {"max_lost_leases", &s.max_lost_leases, 10, 1, 10000, NONE},
        {"backoff_base_ms", &s.backoff_base_ms, 500, 1, MAX_MS, NONE},
        {"backoff_max_ms", &s.backoff_max_ms, 30000, 1, MAX_MS, NONE},
        {"keep_succeeded_ms", &s.keep_succeeded_ms, 604800000, 1, MAX_MS, PAWL_FOREVER},
        {"keep_failed_ms", &s.keep_failed_ms, 2592000000, 1, MAX_MS, PAWL_FOREVER},
        {"max_in_flight", &s.max_in_flight, 0, 0, 1000000, NONE},
    };
    assert_bounds(&s, cases, sizeof(cases) / sizeof(cases[0]), check_queue);

    s.backoff_base_ms = s.backoff_max_ms + 1; /* allowed: every delay is then up to the maximum */
    s.is_paused = true;
    assert_int_equal(pawl_queue_settings_check(&s, NULL), PAWL_OK);
}

/* A bound on jobs in flight is split among the shards to the last one, each with its share. */
static void shards_share_the_bound_on_jobs_in_flight(void **state)
{
    (void)state;
    assert_true(pawli_in_flight_share(0, 2, 3) == INT64_MAX);
    assert_int_equal(pawli_in_flight_share(7, 0, 1), 7);
    assert_int_equal(pawli_in_flight_share(11, 2, 4), 3);
    assert_int_equal(pawli_in_flight_share(11, 3, 4), 2);
    for (int64_t shards = 1; shards <= 9; shards++) {
        for (int64_t bound = shards; bound <= 40; bound++) {
            int64_t sum = 0;
            for (int64_t shard = 0; shard < shards; shard++) {
                int64_t share = pawli_in_flight_share(bound, shard, shards);
                assert_in_range(share, 1, (bound + shards - 1) / shards);
                sum += share;
            }
            assert_int_equal(sum, bound);
        }
    }
}

/* RULE-020-041 (parallel 10 by default) */
static void worker_settings_have_their_defaults_and_bounds(void **state)
{
    (void)state;
    pawl_worker_settings s;
    memset(&s, 0xff, sizeof(s));
    pawl_worker_settings_init(&s);
    const struct field_case cases[] = {
        {"parallel_max", &s.parallel_max, 10, 1, 10000, NONE},
        {"buffer_max", &s.buffer_max, 10, 0, 10000, NONE},
        {"poll_ms", &s.poll_ms, 1000, 1, MAX_MS, NONE},
        {"shutdown_timeout_ms", &s.shutdown_timeout_ms, PAWL_DEFAULT, 1, MAX_MS, PAWL_DEFAULT},
        {"grace_ms", &s.grace_ms, 5000, 1, MAX_MS, NONE},
        {"claim_batch_max", &s.claim_batch_max, 1000, 1, 10000, NONE},
        {"renew_batch_max", &s.renew_batch_max, 1000, 1, 10000, NONE},
        {"settle_batch_max", &s.settle_batch_max, 1000, 1, 10000, NONE},
        {"settle_linger_ms", &s.settle_linger_ms, 0, 0, 1000, NONE},
        {"call_timeout_ms", &s.call_timeout_ms, 5000, 1, MAX_MS, NONE},
        {"retry_base_ms", &s.retry_base_ms, 100, 1, MAX_MS, NONE},
        {"retry_max_ms", &s.retry_max_ms, 5000, 1, MAX_MS, NONE},
    };
    assert_bounds(&s, cases, sizeof(cases) / sizeof(cases[0]), check_worker);
    assert_true(s.heartbeat_ms == PAWL_DEFAULT); /* its bounds: see RES-2 below */
}

static void reaper_settings_have_their_defaults_and_bounds(void **state)
{
    (void)state;
    pawl_reaper_settings s;
    memset(&s, 0xff, sizeof(s));
    pawl_reaper_settings_init(&s);
    const struct field_case cases[] = {
        {"batch_max", &s.batch_max, 1000, 1, 10000, NONE},
    };
    assert_bounds(&s, cases, 1, check_reaper);
    assert_true(s.interval_ms == PAWL_DEFAULT);
    s.interval_ms = 0;
    assert_int_equal(check_reaper(&s, NULL), PAWL_INVALID);
}

static void settings_that_are_missing_are_refused(void **state)
{
    (void)state;
    pawl_err err;
    assert_int_equal(pawl_queue_settings_check(NULL, &err), PAWL_INVALID);
    assert_names(&err, "settings");
    assert_int_equal(pawl_worker_settings_check(NULL, 30000, &err), PAWL_INVALID);
    assert_names(&err, "settings");
    assert_int_equal(pawl_reaper_settings_check(NULL, 30000, &err), PAWL_INVALID);
    assert_names(&err, "settings");
    pawl_queue_settings_init(NULL);
    pawl_worker_settings_init(NULL);
    pawl_reaper_settings_init(NULL);
}

/* ---- values against each other */

static pawl_code check_beat(int64_t heartbeat_ms, int64_t lease_ms, pawl_err *err)
{
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    settings.heartbeat_ms = heartbeat_ms;
    return pawl_worker_settings_check(&settings, lease_ms, err);
}

/* RES-2, RULE-020-011, FR-003: 3 x interval < lease, strictly. */
static void three_heartbeats_fit_strictly_into_the_lease(void **state)
{
    (void)state;
    static const struct {
        int64_t lease_ms, largest_ms;
    } cases[] = {{30000, 9999},  {30001, 10000}, {30002, 10000}, {30003, 10000},
                 {30004, 10001}, {5000, 1666},   {100, 33},      {MAX_MS, (MAX_MS - 1) / 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t lease_ms = cases[i].lease_ms;
        int64_t largest_ms = cases[i].largest_ms;
        assert_true(3 * largest_ms < lease_ms && 3 * (largest_ms + 1) >= lease_ms);
        assert_int_equal(check_beat(largest_ms, lease_ms, NULL), PAWL_OK);
        pawl_err err;
        assert_int_equal(check_beat(largest_ms + 1, lease_ms, &err), PAWL_INVALID);
        assert_names(&err, "heartbeat_ms");
        assert_names_number(&err, largest_ms + 1);
        assert_names_number(&err, lease_ms);
        assert_names(&err, "largest allowed is");
        assert_names_number(&err, largest_ms);
    }
    assert_int_equal(check_beat(1, 100, NULL), PAWL_OK);
    static const int64_t bad_ms[] = {0, -1, MAX_MS, MAX_MS + 1, INT64_MAX, PAWL_DEFAULT + 1};
    for (size_t i = 0; i < sizeof(bad_ms) / sizeof(bad_ms[0]); i++)
        assert_int_equal(check_beat(bad_ms[i], 30000, NULL), PAWL_INVALID);
}

/* RULE-020-031: the shutdown timeout is at most the smallest lease served. */
static void the_shutdown_timeout_does_not_exceed_the_lease(void **state)
{
    (void)state;
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    settings.shutdown_timeout_ms = 5000;
    assert_int_equal(pawl_worker_settings_check(&settings, 5000, NULL), PAWL_OK);
    assert_true(pawli_shutdown_timeout_ms(&settings, 6000) == 5000);
    settings.shutdown_timeout_ms = 5001;
    pawl_err err;
    assert_int_equal(pawl_worker_settings_check(&settings, 5000, &err), PAWL_INVALID);
    assert_names(&err, "shutdown_timeout_ms is 5001");
    assert_names(&err, "lease of 5000 ms");
    assert_names(&err, "largest allowed is 5000");
    settings.shutdown_timeout_ms = PAWL_DEFAULT;
    assert_true(pawli_shutdown_timeout_ms(&settings, 5000) == 5000);
}

/* RULE-020-022: the reaper's interval is below the smallest lease it serves. */
static void the_reaper_is_faster_than_the_lease(void **state)
{
    (void)state;
    pawl_reaper_settings settings;
    pawl_reaper_settings_init(&settings);
    settings.interval_ms = 4999;
    assert_int_equal(pawl_reaper_settings_check(&settings, 5000, NULL), PAWL_OK);
    assert_true(pawli_reaper_interval_ms(&settings, 5000) == 4999);
    settings.interval_ms = 5000;
    pawl_err err;
    assert_int_equal(pawl_reaper_settings_check(&settings, 5000, &err), PAWL_INVALID);
    assert_names(&err, "interval_ms is 5000");
    assert_names(&err, "lease of 5000 ms");
    assert_names(&err, "largest allowed is 4999");
    settings.interval_ms = 30000; /* low volume does not go with the standard lease */
    assert_int_equal(pawl_reaper_settings_check(&settings, 30000, NULL), PAWL_INVALID);
    assert_int_equal(pawl_reaper_settings_check(&settings, 60000, NULL), PAWL_OK);
}

static void the_lease_that_is_served_is_checked_too(void **state)
{
    (void)state;
    static const int64_t bad[] = {PAWL_DEFAULT, -1, 0, 99, MAX_MS + 1, INT64_MAX};
    pawl_worker_settings worker;
    pawl_reaper_settings reaper;
    pawl_worker_settings_init(&worker);
    pawl_reaper_settings_init(&reaper);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        pawl_err err;
        assert_int_equal(pawl_worker_settings_check(&worker, bad[i], &err), PAWL_INVALID);
        assert_names(&err, "smallest_lease_ms");
        assert_names_number(&err, bad[i]);
        assert_int_equal(pawl_reaper_settings_check(&reaper, bad[i], &err), PAWL_INVALID);
        assert_names(&err, "smallest_lease_ms");
    }
    assert_int_equal(pawl_worker_settings_check(&worker, 100, NULL), PAWL_OK);
    assert_int_equal(pawl_reaper_settings_check(&reaper, 100, NULL), PAWL_OK);
}

/* ---- what they come to */

/* RES-6, Q-TIMEOUT: three leases, or the user's choice, on either side of the lease. */
static void the_execution_timeout_is_three_leases(void **state)
{
    (void)state;
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    assert_true(pawli_execution_timeout_ms(&settings, settings.lease_ms) == 90000);
    assert_true(pawli_execution_timeout_ms(&settings, 5000) == 15000); /* as granted */
    settings.execution_timeout_ms = 300000; /* a 5-minute job under a short lease */
    assert_true(pawli_execution_timeout_ms(&settings, 5000) == 300000);
    settings.execution_timeout_ms = 1;
    assert_true(pawli_execution_timeout_ms(&settings, 5000) == 1);
}

/* RES-2: a quarter of the lease, and never an interval of which three do not fit. */
static void the_heartbeat_suits_each_lease(void **state)
{
    (void)state;
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    assert_true(pawli_heartbeat_ms(&settings, 30000) == 7500);
    assert_true(pawli_heartbeat_ms(&settings, 100) == 25);
    settings.heartbeat_ms = 1000;
    assert_true(pawli_heartbeat_ms(&settings, 30000) == 1000);
    assert_true(pawli_heartbeat_ms(&settings, 3001) == 1000);
    assert_true(pawli_heartbeat_ms(&settings, 3000) == 750); /* three of it would fill the lease */
    assert_true(pawli_heartbeat_ms(&settings, 100) == 25);
    for (int64_t lease_ms = PAWL_LEASE_MIN_MS; lease_ms < 10000; lease_ms++)
        assert_true(3 * pawli_heartbeat_ms(&settings, lease_ms) < lease_ms);
    assert_true(pawli_heartbeat_ms(&settings, 1) == 1); /* a store's lease may be anything: not 0 */
}

/* RULE-020-022: the smaller of 10 s and half the smallest lease. */
static void the_reaper_s_interval_is_derived(void **state)
{
    (void)state;
    pawl_reaper_settings settings;
    pawl_reaper_settings_init(&settings);
    assert_true(pawli_reaper_interval_ms(&settings, 60000) == 10000);
    assert_true(pawli_reaper_interval_ms(&settings, 20000) == 10000);
    assert_true(pawli_reaper_interval_ms(&settings, 19999) == 9999);
    assert_true(pawli_reaper_interval_ms(&settings, 5000) == 2500);
    assert_true(pawli_reaper_interval_ms(&settings, 100) == 50);
}

/* RES-1, RULE-020-002, RULE-020-022: named leases and intervals. */
static void profiles_have_their_values(void **state)
{
    (void)state;
    static const int64_t leases_ms[] = {5000, 30000, 60000, 120000};
    static const int64_t intervals_ms[] = {10000, 5000, 30000};
    int64_t ms = -1;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pawl_lease_profile_ms((pawl_lease_profile)i, &ms, NULL), PAWL_OK);
        assert_true(ms == leases_ms[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pawl_reaper_profile_ms((pawl_reaper_profile)i, &ms, NULL), PAWL_OK);
        assert_true(ms == intervals_ms[i]);
    }
    pawl_err err;
    ms = -4242;
    assert_int_equal(pawl_lease_profile_ms((pawl_lease_profile)4, &ms, &err), PAWL_INVALID);
    assert_names(&err, "lease profile is 4");
    assert_int_equal(pawl_lease_profile_ms((pawl_lease_profile)-1, &ms, &err), PAWL_INVALID);
    assert_int_equal(pawl_reaper_profile_ms((pawl_reaper_profile)3, &ms, &err), PAWL_INVALID);
    assert_names(&err, "reaper profile is 3");
    assert_true(ms == -4242);
    assert_int_equal(pawl_lease_profile_ms(PAWL_LEASE_SHORT, NULL, &err), PAWL_INVALID);
    assert_names(&err, "ret_ms");
    assert_int_equal(pawl_reaper_profile_ms(PAWL_REAPER_STANDARD, NULL, &err), PAWL_INVALID);
    assert_names(&err, "ret_ms");
}

/* ---- names and single values */

static void names_are_checked(void **state)
{
    (void)state;
    char name[PAWL_NAME_MAX + 2];
    memset(name, 'q', sizeof(name));
    name[PAWL_NAME_MAX] = '\0';
    pawl_err err;
    assert_int_equal(pawli_check_name("queue", name, &err), PAWL_OK);
    assert_int_equal(pawli_check_name("queue", "!~", &err), PAWL_OK);
    name[PAWL_NAME_MAX] = 'q';
    name[PAWL_NAME_MAX + 1] = '\0';
    assert_int_equal(pawli_check_name("queue", name, &err), PAWL_INVALID);
    assert_names(&err, "queue \"qqqq");
    assert_names(&err, "longer than 128");
    assert_int_equal(pawli_check_name("worker", NULL, &err), PAWL_INVALID);
    assert_names(&err, "worker is missing");
    assert_int_equal(pawli_check_name("worker", "", &err), PAWL_INVALID);
    assert_names(&err, "worker is empty");
    for (int byte = 1; byte < 256; byte++) {
        const char text[] = {'a', (char)byte, '\0'};
        bool is_good = byte > ' ' && byte <= '~';
        assert_int_equal(pawli_check_name("queue", text, &err), is_good ? PAWL_OK : PAWL_INVALID);
        for (size_t i = 0; !is_good && err.text[i] != '\0'; i++)
            assert_in_range(err.text[i], ' ', '~');
    }
    assert_int_equal(pawli_check_name("queue", "mail box", &err), PAWL_INVALID);
    assert_names(&err, "queue \"mail\" goes on with byte 0x20 at 4");
    assert_int_equal(pawli_check_name("queue", NULL, NULL), PAWL_INVALID);
}

/* A name that is too long need not even end: one byte beyond the bound is the last one read. */
static void a_name_is_not_read_beyond_its_bound(void **state)
{
    (void)state;
    char *name = malloc(PAWL_NAME_MAX + 1); /* a block of its own: a sanitizer sees a read behind */
    assert_non_null(name);
    memset(name, 'q', PAWL_NAME_MAX + 1);
    assert_int_equal(pawli_check_name("queue", name, NULL), PAWL_INVALID);
    free(name);
}

static void single_values_are_checked(void **state)
{
    (void)state;
    pawl_err err;
    assert_int_equal(pawli_check_duration("delay_ms", 0, 0, &err), PAWL_OK);
    assert_int_equal(pawli_check_duration("delay_ms", MAX_MS, 0, &err), PAWL_OK);
    assert_int_equal(pawli_check_duration("delay_ms", -1, 0, &err), PAWL_INVALID);
    assert_names(&err, "delay_ms is -1 ms; it must be from 0 to 315360000000 ms");
    assert_int_equal(pawli_check_duration("delay_ms", MAX_MS + 1, 0, &err), PAWL_INVALID);
    const struct pawli_range range = {1, 9};
    assert_int_equal(pawli_check_range("priority", 1, range, &err), PAWL_OK);
    assert_int_equal(pawli_check_range("priority", 9, range, &err), PAWL_OK);
    assert_int_equal(pawli_check_range("priority", 0, range, &err), PAWL_INVALID);
    assert_int_equal(pawli_check_range("priority", 10, range, &err), PAWL_INVALID);
    assert_names(&err, "priority is 10; it must be from 1 to 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_settings_have_their_defaults_and_bounds),
        cmocka_unit_test(shards_share_the_bound_on_jobs_in_flight),
        cmocka_unit_test(worker_settings_have_their_defaults_and_bounds),
        cmocka_unit_test(reaper_settings_have_their_defaults_and_bounds),
        cmocka_unit_test(settings_that_are_missing_are_refused),
        cmocka_unit_test(three_heartbeats_fit_strictly_into_the_lease),
        cmocka_unit_test(the_shutdown_timeout_does_not_exceed_the_lease),
        cmocka_unit_test(the_reaper_is_faster_than_the_lease),
        cmocka_unit_test(the_lease_that_is_served_is_checked_too),
        cmocka_unit_test(the_execution_timeout_is_three_leases),
        cmocka_unit_test(the_heartbeat_suits_each_lease),
        cmocka_unit_test(the_reaper_s_interval_is_derived),
        cmocka_unit_test(profiles_have_their_values),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(a_name_is_not_read_beyond_its_bound),
        cmocka_unit_test(single_values_are_checked),
    };
    return cmocka_run_group_tests_name("core_policy", tests, NULL, NULL);
}
