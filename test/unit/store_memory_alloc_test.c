/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_memory_alloc_test.c - every allocation of every verb of the memory store fails once,
 * and each time nothing leaks (the sanitizer's build tells) and nothing is half done. Owns:  one
 * call for each verb, on a store with jobs in every state. Never: looks at what a verb does when
 * there is memory: the suite does.
 */
#include "support/alloc_fail.h"
#include "support/memory_check.h"
#include "support/memory_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 16

/* Where results go: filled with a pattern, to see that a failure writes none of them. */
union results {
    pawl_enqueued enqueued[ROOM];
    pawl_job jobs[ROOM];
    pawl_renewed renewed[ROOM];
    pawl_settled settled[ROOM];
    pawl_code codes[ROOM];
    pawl_reaped reaped[ROOM];
    pawl_attempt attempts[ROOM];
    pawl_lease_info leases[ROOM];
    pawl_worker workers[ROOM];
    pawl_stats stats[ROOM];
    pawl_queue_settings settings;
    pawl_changed changed[ROOM];
    pawl_id id;
};

struct call {
    struct world world;
    struct filled filled;
    union results results;
    size_t count;
    bool is_jobs; /* the results are jobs, which must be cleared */
};

typedef pawl_code verb_run(struct call *call);

/* ---- the verbs */

static pawl_code enqueue(struct call *call)
{
    pawl_enqueue_row rows[8];
    for (size_t i = 0; i < 8; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = i < 2 ? "new" : "newer";
        rows[i].payload = "bytes";
        rows[i].payload_len = 5;
    }
    rows[0].ordering_key = "of a queue that must go again";
    rows[1].dedupe_key = "new key";
    rows[2].queue = "a";
    rows[2].dedupe_key = "key"; /* DUPLICATE: its queue and record must go again */
    rows[3].id = call->filled.ready;
    rows[4].queue = rows[5].queue = "k";
    rows[4].ordering_key = "k"; /* one that is there, and two that are not */
    rows[5].ordering_key = "new";
    rows[6].ordering_key = "new";
    rows[7] = rows[5];
    rows[7].id = call->filled.second; /* EXISTS: its use of the key must go again */
    return pawl_enqueue(call->world.store, rows, 8, call->results.enqueued, NULL);
}

static pawl_code claim(struct call *call)
{
    pawl_claim_line lines[] = {
        {.queue = "k", .jobs_max = 5, .lease_ms = PAWL_DEFAULT},
        {.queue = "b", .jobs_max = 5, .lease_ms = PAWL_DEFAULT},
        {.queue = "b.second", .jobs_max = 5, .lease_ms = PAWL_DEFAULT},
        {.queue = "b.doomed", .jobs_max = 5, .lease_ms = 500},
        {.queue = "b.first", .jobs_max = 5, .lease_ms = PAWL_DEFAULT},
        {.queue = "a", .jobs_max = 5, .lease_ms = PAWL_DEFAULT},
    };
    pawl_claim_args args = {
        .worker = "new-worker", .lines = lines, .lines_count = 6, .bytes_max = PAWL_DEFAULT};
    call->is_jobs = true;
    return pawl_claim(call->world.store, &args, call->results.jobs, ROOM, &call->count, NULL);
}

static pawl_code mine(struct call *call)
{
    call->is_jobs = true;
    return pawl_mine(call->world.store, "w1", NULL, call->results.jobs, ROOM, &call->count, NULL);
}

static pawl_code renew(struct call *call)
{
    pawl_renew_row rows[2] = {
        {.lease = world_lease(&call->filled.held), .lease_ms = PAWL_DEFAULT},
        {.lease = world_lease(&call->filled.marked), .lease_ms = PAWL_DEFAULT},
    };
    return pawl_renew(call->world.store, "w1", rows, 2, call->results.renewed, NULL);
}

static pawl_code settle(struct call *call)
{
    pawl_settle_row rows[3];
    for (size_t i = 0; i < 3; i++)
        pawl_settle_init(&rows[i]);
    rows[0].lease = world_lease(&call->filled.marked); /* its ledger has room: the next one's not */
    rows[0].error_text = "stopped";
    rows[0].action = PAWL_FAIL;
    rows[1].lease = world_lease(&call->filled.held);
    rows[1].error_code = "E2";
    rows[1].action = PAWL_RETRY;
    rows[2] = rows[0]; /* a replay */
    return pawl_settle(call->world.store, "w1", rows, 3, call->results.settled, NULL);
}

static pawl_code release(struct call *call)
{
    pawl_lease leases[2] = {world_lease(&call->filled.marked), world_lease(&call->filled.held)};
    return pawl_release(call->world.store, "w1", leases, 2, call->results.codes, NULL);
}

static pawl_code reap(struct call *call)
{
    return pawl_reap(call->world.store, call->results.reaped, ROOM, &call->count, NULL);
}

static pawl_code prune(struct call *call)
{
    world_turn_ms(&call->world, INT64_C(40) * 24 * 3600 * 1000);
    return pawl_prune(call->world.store, ROOM, &call->count, NULL);
}

static pawl_code get(struct call *call)
{
    call->is_jobs = true;
    call->count = 1;
    return pawl_get(call->world.store, &call->filled.ready, call->results.jobs, NULL);
}

static pawl_code list(struct call *call)
{
    return pawl_list(call->world.store, NULL, NULL, call->results.jobs, ROOM, &call->count, NULL);
}

static pawl_code attempts(struct call *call)
{
    return pawl_attempts(call->world.store, &call->filled.failed, 0, call->results.attempts, ROOM,
                         &call->count, NULL);
}

static pawl_code leases(struct call *call)
{
    return pawl_leases(call->world.store, NULL, NULL, call->results.leases, ROOM, &call->count,
                       NULL);
}

static pawl_code worker_seen(struct call *call)
{
    pawl_worker_seen seen = {
        .name = "new", .kind = PAWL_KIND_REAPER, .host = "host", .version = "0.1.0"};
    return pawl_worker_seen_now(call->world.store, &seen, NULL);
}

static pawl_code worker_ended(struct call *call)
{
    return pawl_worker_ended(call->world.store, "w1", NULL);
}

static pawl_code workers(struct call *call)
{
    return pawl_workers(call->world.store, NULL, call->results.workers, ROOM, &call->count, NULL);
}

static pawl_code queue_stats(struct call *call)
{
    return pawl_queue_stats(call->world.store, NULL, call->results.stats, ROOM, &call->count, NULL);
}

static pawl_code queue_get(struct call *call)
{
    return pawl_queue_get(call->world.store, "new", &call->results.settings, NULL);
}

static pawl_code queue_set(struct call *call)
{
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    return pawl_queue_set(call->world.store, "new", &settings, NULL);
}

static pawl_code queue_pause(struct call *call)
{
    return pawl_queue_pause(call->world.store, "new", true, NULL);
}

static pawl_code cancel(struct call *call)
{
    pawl_id ids[] = {call->filled.marked.id, call->filled.ready, call->filled.held.id,
                     call->filled.keyed,     call->filled.ready, call->filled.second};
    return pawl_cancel(call->world.store, ids, 6, call->results.changed, NULL);
}

static pawl_code redrive(struct call *call)
{
    pawl_id ids[] = {call->filled.failed, call->filled.discarded, call->filled.cancelled,
                     call->filled.dead};
    return pawl_redrive(call->world.store, ids, 4, call->results.changed, NULL);
}

static pawl_code discard(struct call *call)
{
    pawl_id ids[] = {call->filled.failed, call->filled.cancelled};
    return pawl_discard(call->world.store, ids, 2, call->results.changed, NULL);
}

static const pawl_filter filter_all;

static pawl_code cancel_where(struct call *call)
{
    return pawl_cancel_where(call->world.store, &filter_all, ROOM, &call->count, NULL);
}

static pawl_code redrive_where(struct call *call)
{
    return pawl_redrive_where(call->world.store, &filter_all, ROOM, &call->count, NULL);
}

static pawl_code discard_where(struct call *call)
{
    return pawl_discard_where(call->world.store, &filter_all, ROOM, &call->count, NULL);
}

static pawl_code id_new(struct call *call)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "new";
    return pawl_id_new(call->world.store, &row, &call->results.id, NULL);
}

/* ---- each of them, with each of its allocations failing */

struct verb_case {
    const char *name;
    verb_run *run;
    bool is_allocating; /* at least one allocation is expected */
};

static const struct verb_case verbs[] = {
    {"enqueue", enqueue, true},
    {"claim", claim, true},
    {"mine", mine, true},
    {"renew", renew, false},
    {"settle", settle, true},
    {"release", release, true},
    {"reap", reap, true},
    {"prune", prune, false},
    {"get", get, true},
    {"list", list, false},
    {"attempts", attempts, false},
    {"leases", leases, false},
    {"worker_seen", worker_seen, true},
    {"worker_ended", worker_ended, false},
    {"workers", workers, false},
    {"queue_stats", queue_stats, false},
    {"queue_get", queue_get, false},
    {"queue_set", queue_set, true},
    {"queue_pause", queue_pause, true},
    {"cancel", cancel, true},
    {"redrive", redrive, false},
    {"discard", discard, false},
    {"cancel_where", cancel_where, true},
    {"redrive_where", redrive_where, false},
    {"discard_where", discard_where, false},
    {"id_new", id_new, false},
};

#define UNTOUCHED 0xa5
#define UNCOUNTED ((size_t)0xa5a5a5a5)

static void assert_untouched(const struct call *call)
{
    const unsigned char *bytes = (const unsigned char *)&call->results;
    for (size_t i = 0; i < sizeof(call->results); i++)
        assert_int_equal(bytes[i], UNTOUCHED);
}

/* One call whose nth allocation fails. True where it came to that. */
static bool run_once(const struct verb_case *verb, uint64_t nth)
{
    struct call call = {.count = UNCOUNTED};
    world_make(&call.world, 1);
    world_fill(&call.world, &call.filled);
    memset(&call.results, UNTOUCHED, sizeof(call.results));
    char *before = memory_dump(call.world.memory);

    alloc_fail_nth(nth);
    pawl_code code = verb->run(&call);
    bool has_failed = alloc_fail_end();

    char *after = memory_dump(call.world.memory);
    if (has_failed) {
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_string_equal(before, after);
        assert_untouched(&call);
        assert_true(call.count == UNCOUNTED || verb->run == get);
    } else {
        assert_int_equal(code, PAWL_OK);
        for (size_t i = 0; call.is_jobs && i < call.count; i++)
            pawl_job_clear(&call.results.jobs[i]);
    }
    free(before);
    free(after);
    world_end(&call.world); /* checks that all records agree */
    return has_failed;
}

static void test_each_allocation_of_each_verb_fails_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        uint64_t nth = 1;
        while (run_once(&verbs[i], nth))
            nth++;
        print_message("# %s: %llu allocations\n", verbs[i].name, (unsigned long long)(nth - 1));
        assert_int_equal(nth > 1, verbs[i].is_allocating);
    }
}

/* A claim that meets every kind of job on its way allocates for each of them. */
static void test_a_claim_plans_all_kinds_of_steps(void **state)
{
    (void)state;
    struct call call = {0};
    world_make(&call.world, 1);
    world_fill(&call.world, &call.filled);
    assert_int_equal(claim(&call), PAWL_OK);
    assert_int_equal(world_get(&call.world, &call.filled.poisoned).reason, PAWL_REASON_POISON);
    assert_int_equal(world_get(&call.world, &call.filled.doomed).reason, PAWL_REASON_CANCELLED);
    assert_int_equal(world_get(&call.world, &call.filled.timed_out).reason, PAWL_REASON_START_BY);
    assert_int_equal(world_get(&call.world, &call.filled.expired_2).reason, PAWL_REASON_EXPIRED);
    assert_int_equal(world_get(&call.world, &call.filled.expired).state, PAWL_IN_FLIGHT);
    assert_int_equal(world_get(&call.world, &call.filled.ready).state, PAWL_IN_FLIGHT);
    for (size_t i = 0; i < call.count; i++)
        pawl_job_clear(&call.results.jobs[i]);
    world_end(&call.world);
}

static void test_making_a_store_fails_whole(void **state)
{
    (void)state;
    pawl_memory *memory = NULL;
    for (uint64_t nth = 1;; nth++) {
        alloc_fail_nth(nth);
        pawl_code code = pawl_memory_new(NULL, &memory, NULL);
        if (!alloc_fail_end())
            break;
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_null(memory);
    }
    assert_non_null(memory);
    pawl_store *store = NULL;
    alloc_fail_nth(1);
    assert_int_equal(pawl_memory_open(memory, &store, NULL), PAWL_NO_MEMORY);
    assert_true(alloc_fail_end());
    assert_null(store);
    pawl_memory_free(memory); /* asserts that no handle was counted */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_of_each_verb_fails_once),
        cmocka_unit_test(test_a_claim_plans_all_kinds_of_steps),
        cmocka_unit_test(test_making_a_store_fails_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
