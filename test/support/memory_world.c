/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_world.c - memory stores for tests.
 * Owns:  the clock and the random source of each such store; the story that fills one.
 * Never: reaches behind the public interface, but to check it.
 */
#include "support/memory_world.h"

#include "store/store.h"

#include "support/memory_check.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#define STORY_BEGINS_US INT64_C(1700000000000000)

void world_make_with(struct world *world, const pawl_memory_options *options)
{
    memset(world, 0, sizeof(*world));
    world->manual.wall = (pawl_wall){STORY_BEGINS_US};
    world->manual.mono = (pawl_mono){1};
    world->clock = pawli_manual_clock_as_clock(&world->manual);
    world->seeded.state = 1;
    world->random = pawli_seeded_as_random(&world->seeded);
    pawl_memory_options own = *options;
    own.clock = &world->clock;
    own.random = &world->random;
    assert_int_equal(pawl_memory_new(&own, &world->memory, NULL), PAWL_OK);
    assert_int_equal(pawl_memory_open(world->memory, &world->store, NULL), PAWL_OK);
}

void world_make(struct world *world, int64_t shards)
{
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.shards = shards;
    world_make_with(world, &options);
}

void world_end(struct world *world)
{
    world_check(world);
    pawl_store_close(world->store);
    pawl_memory_free(world->memory);
}

void world_check(struct world *world)
{
    const char *wrong = pawli_memory_check(world->memory);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

void world_turn_ms(struct world *world, int64_t ms)
{
    pawli_manual_clock_turn_ms(&world->manual, ms);
}

pawl_id world_enqueue_row(struct world *world, const pawl_enqueue_row *row)
{
    pawl_enqueued enqueued;
    assert_int_equal(pawl_enqueue(world->store, row, 1, &enqueued, NULL), PAWL_OK);
    assert_int_equal(enqueued.code, PAWL_OK);
    return enqueued.id;
}

pawl_id world_enqueue(struct world *world, const char *queue)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = queue;
    row.payload = "payload";
    row.payload_len = 7;
    row.headers = "header: one\n";
    return world_enqueue_row(world, &row);
}

size_t world_claim(struct world *world, const char *worker, const char *queue, pawl_job *ret_jobs,
                   size_t jobs_max)
{
    pawl_claim_line line = {
        .queue = queue, .jobs_max = (int64_t)jobs_max, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = worker, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    size_t count = 0;
    assert_int_equal(pawl_claim(world->store, &args, ret_jobs, jobs_max, &count, NULL), PAWL_OK);
    for (size_t i = 0; i < count; i++) {
        pawl_job kept = ret_jobs[i];
        kept.payload = NULL;
        kept.headers = NULL;
        pawl_job_clear(&ret_jobs[i]);
        ret_jobs[i] = kept;
    }
    return count;
}

pawl_job world_claim_one(struct world *world, const char *worker, const char *queue)
{
    pawl_job job;
    assert_int_equal(world_claim(world, worker, queue, &job, 1), 1);
    return job;
}

pawl_lease world_lease(const pawl_job *job)
{
    return (pawl_lease){.job = job->id, .token = job->token, .version = job->lease_version};
}

void world_settle(struct world *world, const char *worker, const pawl_job *job,
                  pawl_settle_action action)
{
    pawl_settle_row row;
    pawl_settled settled;
    pawl_settle_init(&row);
    row.lease = world_lease(job);
    row.action = action;
    row.delay_ms = 0;
    row.error_code = "E1";
    row.error_text = "it went wrong";
    assert_int_equal(pawl_settle(world->store, worker, &row, 1, &settled, NULL), PAWL_OK);
    assert_int_equal(settled.code, PAWL_OK);
}

pawl_job world_get(struct world *world, const pawl_id *id)
{
    pawl_job job;
    assert_int_equal(pawl_get(world->store, id, &job, NULL), PAWL_OK);
    pawl_job kept = job;
    kept.payload = NULL;
    kept.headers = NULL;
    pawl_job_clear(&job);
    return kept;
}

/* ---- jobs in every state */

static pawl_id fail_one(struct world *world, const char *queue)
{
    pawl_id id = world_enqueue(world, queue);
    pawl_job job = world_claim_one(world, "w0", queue);
    world_settle(world, "w0", &job, PAWL_RETRY);
    job = world_claim_one(world, "w0", queue);
    world_settle(world, "w0", &job, PAWL_FAIL);
    return id;
}

/* Give a job `times` leases that nobody ends; the last of them is left to be recovered. */
static pawl_id lose(struct world *world, const char *queue, int times)
{
    pawl_id id = world_enqueue(world, queue);
    for (int i = 0; i < times; i++) {
        pawl_job job;
        world_turn_ms(world, 60000); /* past its lease */
        if (world_claim(world, "w9", queue, &job, 1) == 1)
            continue;
        world_turn_ms(world, 1000); /* it was recovered, and has to wait for its backoff */
        assert_int_equal(world_claim(world, "w9", queue, &job, 1), 1);
    }
    return id;
}

static void cancel_one(struct world *world, const pawl_id *id)
{
    pawl_changed changed;
    assert_int_equal(pawl_cancel(world->store, id, 1, &changed, NULL), PAWL_OK);
    assert_int_equal(changed.code, PAWL_OK);
}

static void fill_expired(struct world *world, struct filled *ret_filled)
{
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.max_lost_leases = 3;
    assert_int_equal(pawl_queue_set(world->store, "b", &settings, NULL), PAWL_OK);
    /* Each in a queue of its own, or a claim for the next one would recover the last one. */
    ret_filled->poisoned = lose(world, "b", 3);
    ret_filled->expired_2 = lose(world, "b.second", 2);
    ret_filled->doomed = lose(world, "b.doomed", 1);
    cancel_one(world, &ret_filled->doomed);
    ret_filled->expired = lose(world, "b.first", 1);
    world_turn_ms(world, 60000);
}

static void fill_key(struct world *world, struct filled *ret_filled)
{
    pawl_queue_settings settings;
    pawl_enqueue_row row;
    pawl_queue_settings_init(&settings);
    settings.max_in_flight = world->store->limits.shards + 1;
    assert_int_equal(pawl_queue_set(world->store, "k", &settings, NULL), PAWL_OK);
    pawl_enqueue_init(&row);
    row.queue = "k";
    row.ordering_key = "k";
    ret_filled->dead = world_enqueue_row(world, &row);
    cancel_one(world, &ret_filled->dead);
    (void)world_enqueue_row(world, &row);
    ret_filled->first = world_claim_one(world, "w2", "k");
    ret_filled->second = world_enqueue_row(world, &row);
}

void world_fill(struct world *world, struct filled *ret_filled)
{
    pawl_enqueue_row row;
    fill_expired(world, ret_filled);
    ret_filled->failed = fail_one(world, "a");
    ret_filled->discarded = fail_one(world, "a");
    pawl_changed changed;
    assert_int_equal(pawl_discard(world->store, &ret_filled->discarded, 1, &changed, NULL),
                     PAWL_OK);
    ret_filled->succeeded = world_enqueue(world, "a");
    pawl_job job = world_claim_one(world, "w1", "a");
    world_settle(world, "w1", &job, PAWL_SUCCEED);
    ret_filled->cancelled = world_enqueue(world, "a");
    cancel_one(world, &ret_filled->cancelled);
    (void)world_enqueue(world, "a");
    job = world_claim_one(world, "w1", "a");
    world_settle(world, "w1", &job, PAWL_SNOOZE); /* the next row of its ledger needs room */
    ret_filled->held = world_claim_one(world, "w1", "a");
    (void)world_enqueue(world, "a");
    ret_filled->marked = world_claim_one(world, "w1", "a");
    cancel_one(world, &ret_filled->marked.id);

    pawl_enqueue_init(&row);
    row.queue = "a";
    row.payload = "late";
    row.payload_len = 4;
    row.delay_ms = 3600000;
    ret_filled->delayed = world_enqueue_row(world, &row);
    row.delay_ms = 0;
    row.start_within_ms = 10;
    ret_filled->timed_out = world_enqueue_row(world, &row);
    row.start_within_ms = PAWL_DEFAULT;
    row.dedupe_key = "key";
    ret_filled->keyed = world_enqueue_row(world, &row);
    ret_filled->ready = world_enqueue(world, "a");
    fill_key(world, ret_filled);
    world_turn_ms(world, 20);
    pawl_worker_seen seen = {
        .name = "w1", .kind = PAWL_KIND_WORKER, .host = "host", .version = "0.1.0"};
    assert_int_equal(pawl_worker_seen_now(world->store, &seen, NULL), PAWL_OK);
    world_check(world);
}
