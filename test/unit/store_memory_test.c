/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_memory_test.c - what only the memory store can prove: its bounds, its shards, a
 * clock that is set back, hints, and that its records agree after whatever was done to it. Owns:
 * cases that need the store's own options, or a look behind its verbs. Never: repeats what the
 * suite proves on every store.
 */
#include "support/memory_check.h"
#include "support/memory_world.h"

#include "store/memory/memory.h"
#include "store/once.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- bounds */

static void test_a_full_store_refuses_the_whole_batch(void **state)
{
    (void)state;
    struct world world;
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.jobs_max = 3;
    world_make_with(&world, &options);
    pawl_id first = world_enqueue(&world, "q");
    (void)world_enqueue(&world, "q");

    pawl_enqueue_row rows[2];
    pawl_enqueued results[2];
    pawl_err err;
    for (size_t i = 0; i < 2; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = i == 0 ? "q" : "other";
        rows[i].dedupe_key = "k";
    }
    char *before = memory_dump(world.memory);
    memset(results, 0xa5, sizeof(results));
    assert_int_equal(pawl_enqueue(world.store, rows, 2, results, &err), PAWL_FULL);
    assert_non_null(strstr(err.text, "jobs_max is 3"));
    assert_int_equal(results[0].code, (pawl_code)0xa5a5a5a5);
    char *after = memory_dump(world.memory);
    assert_string_equal(before, after); /* no queue, no key, no job is left of it */
    free(before);
    free(after);

    /* A row that does not get in needs no room. */
    rows[0].id = first;
    rows[0].dedupe_key = NULL;
    rows[1].queue = "q"; /* whose key is free again */
    assert_int_equal(pawl_enqueue(world.store, rows, 2, results, NULL), PAWL_OK);
    assert_int_equal(results[0].code, PAWL_EXISTS);
    assert_int_equal(results[1].code, PAWL_OK);
    world_end(&world);
}

static void test_a_payload_has_the_options_bound(void **state)
{
    (void)state;
    struct world world;
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.payload_max = 4;
    world_make_with(&world, &options);
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    pawl_enqueue_init(&row);
    row.queue = "q";
    row.payload = "12345";
    row.payload_len = 5;
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "payload_len is 5"));
    row.payload_len = 4;
    (void)world_enqueue_row(&world, &row);
    world_end(&world);
}

/* A queue is remembered for its jobs or its settings, and for nothing else. */
static void test_a_queue_goes_with_its_last_job(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    (void)world_enqueue(&world, "q");
    pawl_job job = world_claim_one(&world, "w", "q");
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    world_turn_ms(&world, INT64_C(8) * 24 * 3600 * 1000);
    size_t count;
    assert_int_equal(pawl_prune(world.store, 10, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    assert_true(RB_EMPTY(&world.memory->queues));
    assert_true(RB_EMPTY(&world.memory->holders)); /* its row named the worker */
    assert_int_equal(world.memory->jobs_count, 0);
    world_end(&world);
}

/* Keys of requests go by pruning, so many at a time, also where nobody begins another one. */
static void test_old_keys_of_requests_are_pruned(void **state)
{
    (void)state;
    struct world world;
    struct pawli_once_found found;
    struct pawli_once_args args = {.keep_ms = 1000, .hold_ms = 1000};
    size_t count;
    world_make(&world, 1);
    for (uint8_t i = 0; i < 3; i++) {
        args.key[0] = i;
        assert_int_equal(pawli_once_begin(world.store, &args, &found, NULL), PAWL_OK);
        assert_int_equal(found.state, PAWLI_ONCE_NEW);
    }
    assert_int_equal(pawl_prune(world.store, 10, &count, NULL), PAWL_OK);
    assert_non_null(TAILQ_FIRST(&world.memory->onces));
    world_turn_ms(&world, 1000);
    assert_int_equal(pawl_prune(world.store, 2, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0); /* they are not counted */
    assert_non_null(TAILQ_FIRST(&world.memory->onces));
    assert_int_equal(pawl_prune(world.store, 2, &count, NULL), PAWL_OK);
    assert_null(TAILQ_FIRST(&world.memory->onces));
    world_end(&world);
}

static void test_done_work_keeps_no_payload(void **state)
{
    (void)state;
    struct world world;
    struct filled filled;
    world_make(&world, 1);
    world_fill(&world, &filled);
    assert_null(pawli_memory_find(world.memory, &filled.succeeded)->payload);
    assert_null(pawli_memory_find(world.memory, &filled.discarded)->payload);
    assert_non_null(pawli_memory_find(world.memory, &filled.failed)->payload);
    assert_int_equal(world_get(&world, &filled.discarded).payload_len, 7);
    world_end(&world);
}

/* ---- shards */

#define SHARDS 8

static void test_claims_go_round_the_shards(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, SHARDS);
    for (int i = 0; i < 400; i++)
        (void)world_enqueue(&world, "q");
    struct queue *queue = pawli_memory_queue_find(world.memory, "q");
    for (int i = 0; i < SHARDS; i++)
        assert_false(RB_EMPTY(&queue->lines[i].ready)); /* the ids have spread them */

    /* One at a time, so that none of the shards has to wait for another to be empty. */
    bool is_met[SHARDS] = {false};
    for (int i = 0; i < SHARDS; i++) {
        pawl_job job = world_claim_one(&world, "w", "q");
        struct entry *entry = pawli_memory_find(world.memory, &job.id);
        is_met[entry->line - queue->lines] = true;
    }
    for (int i = 0; i < SHARDS; i++)
        assert_true(is_met[i]);

    /* Together they are all there is. */
    static pawl_job jobs[500];
    assert_int_equal(world_claim(&world, "w", "q", jobs, 500), 400 - SHARDS);
    world_end(&world);
}

/* Q-FIFO within a shard, by the position that the store gave and not by id. */
static void test_a_shard_is_in_order(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, SHARDS);
    for (int i = 0; i < 200; i++)
        (void)world_enqueue(&world, "q");
    int64_t last[SHARDS] = {0};
    struct queue *queue = pawli_memory_queue_find(world.memory, "q");
    for (int i = 0; i < 20; i++) {
        pawl_job jobs[10];
        assert_int_equal(world_claim(&world, "w", "q", jobs, 10), 10);
        for (int k = 0; k < 10; k++) {
            struct entry *entry = pawli_memory_find(world.memory, &jobs[k].id);
            int64_t *line_last = &last[entry->line - queue->lines];
            assert_true(entry->position > *line_last);
            *line_last = entry->position;
        }
    }
    world_end(&world);
}

/* ---- lines that name a queue more than once */

static void test_a_queue_named_often_gives_each_job_once(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_id ids[9];
    for (int i = 0; i < 9; i++)
        ids[i] = world_enqueue(&world, "q");
    /* The first three come back by expiry, so they are claimed first: RES-4. */
    pawl_job jobs[16];
    assert_int_equal(world_claim(&world, "lost", "q", jobs, 3), 3);
    world_turn_ms(&world, 30000);

    pawl_claim_line lines[6];
    for (int i = 0; i < 6; i++)
        lines[i] = (pawl_claim_line){.queue = "q", .jobs_max = 2, .lease_ms = 1000 + i};
    pawl_claim_args args = {
        .worker = "w", .lines = lines, .lines_count = 6, .bytes_max = PAWL_DEFAULT};
    size_t count;
    assert_int_equal(pawl_claim(world.store, &args, jobs, 16, &count, NULL), PAWL_OK);
    assert_int_equal(count, 9);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pawl_id_compare(&jobs[i].id, &ids[i]), 0);
        assert_int_equal(jobs[i].lease_ms, 1000 + i / 2);
        assert_int_equal(jobs[i].attempts, i < 3 ? 1 : 0);
        pawl_job_clear(&jobs[i]);
    }
    world_end(&world);
}

/* A claim recovers what it may take, whether or not it then takes it, and each expiry once. */
static void test_what_a_claim_recovers_stands_in_its_rank(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_id lost = world_enqueue(&world, "q");
    (void)world_claim_one(&world, "lost", "q");
    world_turn_ms(&world, 30000);
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "q";
    row.priority = 1;
    pawl_id urgent = world_enqueue_row(&world, &row);
    pawl_id arrived = world_enqueue(&world, "q");

    pawl_job job = world_claim_one(&world, "w", "q");
    assert_int_equal(pawl_id_compare(&job.id, &urgent), 0);
    job = world_get(&world, &lost);
    assert_int_equal(job.state, PAWL_READY);
    assert_int_equal(job.attempts, 1);
    job = world_claim_one(&world, "w", "q");
    assert_int_equal(pawl_id_compare(&job.id, &lost), 0);
    assert_int_equal(job.attempts, 1);
    job = world_claim_one(&world, "w", "q");
    assert_int_equal(pawl_id_compare(&job.id, &arrived), 0);
    world_end(&world);
}

/* Bounded by what it may take: one slow claim after an outage would hold up everybody. */
static void test_a_claim_recovers_no_more_than_it_may_take(void **state)
{
    (void)state;
    struct world world;
    pawl_job jobs[10];
    pawl_lease_info leases[10];
    size_t count;
    world_make(&world, 1);
    for (int i = 0; i < 10; i++)
        (void)world_enqueue(&world, "q");
    assert_int_equal(world_claim(&world, "lost", "q", jobs, 10), 10);
    world_turn_ms(&world, 30000);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 3), 3);
    pawl_filter filter = {.worker = "lost"};
    assert_int_equal(pawl_leases(world.store, &filter, NULL, leases, 10, &count, NULL), PAWL_OK);
    assert_int_equal(count, 7);
    world_end(&world);
}

/* ---- a clock that is set back */

/* What is due, delayed and expired is always what the clock of this call says. */
static void test_a_clock_set_back_takes_due_jobs_away(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "q";
    row.delay_ms = 1000;
    pawl_id timed = world_enqueue_row(&world, &row);
    world_turn_ms(&world, 2000);
    pawl_id first = world_enqueue(&world, "q");
    pawl_id second = world_enqueue(&world, "q");

    pawl_stats stats;
    size_t count;
    assert_int_equal(pawl_queue_stats(world.store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    assert_int_equal(stats.delayed, 0);
    assert_int_equal(stats.oldest_due_ms, 1000);

    world.manual.wall.us -= 1500 * 1000; /* 500 ms after the beginning: nothing is due */
    assert_int_equal(pawl_queue_stats(world.store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    assert_int_equal(stats.ready, 3);
    assert_int_equal(stats.delayed, 3);
    assert_int_equal(stats.oldest_due_ms, 0);
    pawl_job jobs[4];
    assert_int_equal(world_claim(&world, "w", "q", jobs, 4), 0);
    world_check(&world);

    world_turn_ms(&world, 1500);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 4), 3); /* in the old order */
    assert_int_equal(pawl_id_compare(&jobs[0].id, &timed), 0);
    assert_int_equal(pawl_id_compare(&jobs[1].id, &first), 0);
    assert_int_equal(pawl_id_compare(&jobs[2].id, &second), 0);

    world_turn_ms(&world, 30000);
    assert_int_equal(pawl_queue_stats(world.store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    assert_int_equal(stats.expired, 3);
    world.manual.wall.us -= 1000;
    assert_int_equal(pawl_queue_stats(world.store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    assert_int_equal(stats.expired, 0);
    world_end(&world);
}

/* ---- hints */

static void *wait_long(void *user)
{
    static const int64_t long_ms = 120000; /* the program's own limit would end the test first */
    bool is_hint = false;
    pawl_code code = pawl_wait(user, long_ms, &is_hint, NULL);
    return code == PAWL_OK && is_hint ? user : NULL;
}

static void assert_wait_ends(struct world *world, void (*hint)(struct world *world))
{
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, wait_long, world->store), 0);
    hint(world);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, world->store);
}

static void hint_by_wake(struct world *world)
{
    pawl_wake(world->store);
}

/* Through another handle, as another worker or producer would. */
static void hint_by_enqueue(struct world *world)
{
    pawl_store *other;
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    assert_int_equal(pawl_memory_open(world->memory, &other, NULL), PAWL_OK);
    pawl_enqueue_init(&row);
    row.queue = "q";
    assert_int_equal(pawl_enqueue(other, &row, 1, &enqueued, NULL), PAWL_OK);
    pawl_store_close(other);
}

static void hint_by_resume(struct world *world)
{
    pawl_store *other;
    assert_int_equal(pawl_memory_open(world->memory, &other, NULL), PAWL_OK);
    assert_int_equal(pawl_queue_pause(other, "q", false, NULL), PAWL_OK);
    pawl_store_close(other);
}

static bool is_hinted(struct world *world)
{
    bool is_hint;
    assert_int_equal(pawl_wait(world->store, 1, &is_hint, NULL), PAWL_OK);
    return is_hint;
}

static void test_a_wait_ends_by_a_hint(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    assert_false(is_hinted(&world));
    assert_wait_ends(&world, hint_by_wake);
    assert_wait_ends(&world, hint_by_enqueue);
    assert_wait_ends(&world, hint_by_resume);
    assert_false(is_hinted(&world)); /* each was used up */

    pawl_wake(world.store); /* before the wait: remembered, once */
    assert_true(is_hinted(&world));
    assert_false(is_hinted(&world));
    pawl_store *other;
    bool is_hint;
    assert_int_equal(pawl_memory_open(world.memory, &other, NULL), PAWL_OK);
    pawl_wake(world.store); /* this handle's, and no other's */
    assert_int_equal(pawl_wait(other, 1, &is_hint, NULL), PAWL_OK);
    assert_false(is_hint);
    pawl_store_close(other);
    world_end(&world);
}

static void test_whatever_makes_a_job_claimable_hints(void **state)
{
    (void)state;
    struct world world;
    size_t count;
    pawl_reaped reaped;
    pawl_code code;
    world_make(&world, 1);
    pawl_id id = world_enqueue(&world, "q");
    assert_true(is_hinted(&world));
    pawl_job job = world_claim_one(&world, "w", "q");
    pawl_lease lease = world_lease(&job);
    assert_false(is_hinted(&world));
    assert_int_equal(pawl_release(world.store, "w", &lease, 1, &code, NULL), PAWL_OK);
    assert_true(is_hinted(&world));
    (void)world_claim_one(&world, "w", "q");
    world_turn_ms(&world, 30000);
    assert_int_equal(pawl_reap(world.store, &reaped, 1, &count, NULL), PAWL_OK);
    assert_true(is_hinted(&world));
    job = world_claim_one(&world, "w", "q");
    world_settle(&world, "w", &job, PAWL_SNOOZE);
    assert_true(is_hinted(&world));
    job = world_claim_one(&world, "w", "q");
    world_settle(&world, "w", &job, PAWL_FAIL);
    assert_false(is_hinted(&world));
    pawl_changed changed;
    assert_int_equal(pawl_redrive(world.store, &id, 1, &changed, NULL), PAWL_OK);
    assert_true(is_hinted(&world));
    world_end(&world);
}

/* So does whatever lets another job through: the end of the first of its key, and room. */
static void test_whoever_lets_another_through_hints(void **state)
{
    (void)state;
    struct world world;
    pawl_enqueue_row row;
    pawl_queue_settings settings;
    world_make(&world, 1);
    pawl_enqueue_init(&row);
    row.queue = "q";
    row.ordering_key = "k";
    (void)world_enqueue_row(&world, &row);
    (void)is_hinted(&world);
    (void)world_enqueue_row(&world, &row); /* behind another: nothing has become claimable */
    assert_false(is_hinted(&world));
    pawl_job job = world_claim_one(&world, "w", "q");
    assert_false(is_hinted(&world));
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    assert_true(is_hinted(&world));

    pawl_queue_settings_init(&settings);
    settings.max_in_flight = 1;
    assert_int_equal(pawl_queue_set(world.store, "bounded", &settings, NULL), PAWL_OK);
    (void)world_enqueue(&world, "bounded");
    (void)world_enqueue(&world, "bounded");
    job = world_claim_one(&world, "w", "bounded");
    (void)is_hinted(&world);
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    assert_true(is_hinted(&world));
    job = world_claim_one(&world, "w", "bounded");
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    assert_false(is_hinted(&world)); /* nobody waits for the room */
    settings.max_in_flight = 2;
    assert_int_equal(pawl_queue_set(world.store, "bounded", &settings, NULL), PAWL_OK);
    assert_true(is_hinted(&world));
    world_end(&world);
}

/* ---- options */

/* ---- a clock that is not after 1970 */

#define IS_DOWN(call)                                                 \
    do {                                                              \
        err = (pawl_err){.code = PAWL_OK};                            \
        assert_int_equal(call, PAWL_DOWN);                            \
        assert_int_equal(err.code, PAWL_DOWN);                        \
        assert_non_null(strstr(err.text, "the store's clock gives")); \
        assert_non_null(strstr(err.text, "must be after 1970"));      \
    } while (0)

static void workers_are_told_of_the_clock(pawl_store *store, const struct filled *filled)
{
    pawl_err err;
    size_t count;
    pawl_job job;
    pawl_claim_line line = {.queue = "a", .jobs_max = 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args claim = {
        .worker = "w1", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_renew_row renew = {.lease = world_lease(&filled->held), .lease_ms = PAWL_DEFAULT};
    pawl_settle_row settle;
    pawl_settle_init(&settle);
    settle.lease = renew.lease;
    settle.error_text = "a text of its own";
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "a";
    pawl_enqueued enqueued;
    pawl_renewed renewed;
    pawl_settled settled;
    pawl_code code;
    pawl_reaped reaped;
    pawl_worker_seen seen = {.name = "w1", .host = "h", .version = "v"};
    pawl_wall now;
    IS_DOWN(pawl_enqueue(store, &row, 1, &enqueued, &err));
    IS_DOWN(pawl_claim(store, &claim, &job, 1, &count, &err));
    IS_DOWN(pawl_mine(store, "w1", NULL, &job, 1, &count, &err));
    IS_DOWN(pawl_renew(store, "w1", &renew, 1, &renewed, &err));
    IS_DOWN(pawl_settle(store, "w1", &settle, 1, &settled, &err));
    IS_DOWN(pawl_release(store, "w1", &renew.lease, 1, &code, &err));
    IS_DOWN(pawl_reap(store, &reaped, 1, &count, &err));
    IS_DOWN(pawl_prune(store, 1, &count, &err));
    IS_DOWN(pawl_worker_seen_now(store, &seen, &err));
    IS_DOWN(pawl_worker_ended(store, "w1", &err));
    IS_DOWN(pawl_now(store, &now, &err));
}

static void operators_are_told_of_the_clock(pawl_store *store, const struct filled *filled)
{
    pawl_err err;
    size_t count;
    pawl_job job;
    pawl_attempt attempt;
    pawl_lease_info lease;
    pawl_worker worker;
    pawl_stats stats;
    pawl_queue_settings settings;
    pawl_changed changed;
    const pawl_filter filter = {.queue = "a"};
    const pawl_id *id = &filled->failed;
    pawl_queue_settings_init(&settings);
    IS_DOWN(pawl_get(store, id, &job, &err));
    IS_DOWN(pawl_list(store, NULL, NULL, &job, 1, &count, &err));
    IS_DOWN(pawl_attempts(store, id, 0, &attempt, 1, &count, &err));
    IS_DOWN(pawl_leases(store, NULL, NULL, &lease, 1, &count, &err));
    IS_DOWN(pawl_workers(store, NULL, &worker, 1, &count, &err));
    IS_DOWN(pawl_queue_stats(store, NULL, &stats, 1, &count, &err));
    IS_DOWN(pawl_queue_set(store, "a", &settings, &err));
    IS_DOWN(pawl_queue_get(store, "a", &settings, &err));
    IS_DOWN(pawl_queue_pause(store, "a", true, &err));
    IS_DOWN(pawl_cancel(store, id, 1, &changed, &err));
    IS_DOWN(pawl_redrive(store, id, 1, &changed, &err));
    IS_DOWN(pawl_discard(store, id, 1, &changed, &err));
    IS_DOWN(pawl_cancel_where(store, &filter, 1, &count, &err));
    IS_DOWN(pawl_redrive_where(store, &filter, 1, &count, &err));
    IS_DOWN(pawl_discard_where(store, &filter, 1, &count, &err));
}

/* An instant of 0 means none: such a clock is told of, and nothing is changed by it. */
static void test_a_clock_before_1970_is_told_of(void **state)
{
    (void)state;
    static const int64_t walls_us[] = {0, -1, INT64_MIN};
    struct world world;
    struct filled filled;
    world_make(&world, 1);
    world_fill(&world, &filled);
    pawl_wall right = world.manual.wall;
    char *before = memory_dump(world.memory);
    for (size_t i = 0; i < sizeof(walls_us) / sizeof(walls_us[0]); i++) {
        world.manual.wall.us = walls_us[i];
        workers_are_told_of_the_clock(world.store, &filled);
        operators_are_told_of_the_clock(world.store, &filled);
    }
    world.manual.wall = right;
    char *after = memory_dump(world.memory);
    assert_string_equal(after, before);
    free(before);
    free(after);
    world_settle(&world, "w1", &filled.held, PAWL_SUCCEED);
    world_end(&world);

    world_make(&world, 1); /* the first instant that is good */
    world.manual.wall.us = 1;
    (void)world_enqueue(&world, "a");
    pawl_job job = world_claim_one(&world, "w1", "a");
    world_settle(&world, "w1", &job, PAWL_SUCCEED);
    world_end(&world);
}

static void test_bad_options_are_refused(void **state)
{
    (void)state;
    pawl_memory *memory = NULL;
    pawl_memory_options good;
    pawl_memory_options bad;
    pawl_err err;
    pawl_clock no_wall = *pawl_clock_system();
    pawl_random no_next = {0};
    no_wall.wall = NULL;
    pawl_memory_options_init(NULL);
    pawl_memory_options_init(&good);
#define REFUSED(field, value, needle)                                         \
    do {                                                                      \
        bad = good;                                                           \
        bad.field = (value);                                                  \
        assert_int_equal(pawl_memory_new(&bad, &memory, &err), PAWL_INVALID); \
        assert_int_equal(pawl_memory_new(&bad, &memory, NULL), PAWL_INVALID); \
        assert_non_null(strstr(err.text, needle));                            \
    } while (0)
    REFUSED(clock, NULL, "clock");
    REFUSED(clock, &no_wall, "clock");
    REFUSED(random, NULL, "random");
    REFUSED(random, &no_next, "random");
    REFUSED(shards, 0, "shards is 0");
    REFUSED(shards, -1, "shards is -1");
    REFUSED(shards, PAWL_SHARDS_MAX + 1, "4096");
    REFUSED(payload_max, 0, "payload_max is 0");
    REFUSED(jobs_max, 0, "jobs_max is 0");
    REFUSED(jobs_max, PAWL_DEFAULT, "jobs_max");
#undef REFUSED
    assert_null(memory);
    assert_int_equal(pawl_memory_new(&good, NULL, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "ret_memory"));
    pawl_store *store = NULL;
    assert_int_equal(pawl_memory_open(NULL, &store, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "memory"));
    assert_null(store);
    assert_int_equal(pawl_memory_new(NULL, &memory, &err), PAWL_OK);
    assert_int_equal(pawl_memory_open(memory, NULL, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "ret_store"));
    pawl_memory_free(memory);
    pawl_memory_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_full_store_refuses_the_whole_batch),
        cmocka_unit_test(test_a_payload_has_the_options_bound),
        cmocka_unit_test(test_a_queue_goes_with_its_last_job),
        cmocka_unit_test(test_old_keys_of_requests_are_pruned),
        cmocka_unit_test(test_done_work_keeps_no_payload),
        cmocka_unit_test(test_claims_go_round_the_shards),
        cmocka_unit_test(test_a_shard_is_in_order),
        cmocka_unit_test(test_a_queue_named_often_gives_each_job_once),
        cmocka_unit_test(test_what_a_claim_recovers_stands_in_its_rank),
        cmocka_unit_test(test_a_claim_recovers_no_more_than_it_may_take),
        cmocka_unit_test(test_a_clock_set_back_takes_due_jobs_away),
        cmocka_unit_test(test_a_wait_ends_by_a_hint),
        cmocka_unit_test(test_whatever_makes_a_job_claimable_hints),
        cmocka_unit_test(test_whoever_lets_another_through_hints),
        cmocka_unit_test(test_a_clock_before_1970_is_told_of),
        cmocka_unit_test(test_bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
