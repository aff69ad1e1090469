/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_memory_walk_test.c - the memory store under thousands of random calls, with a clock
 * that jumps both ways: after each of them all its records agree, and every filter finds what a
 * plain look at all jobs finds. Owns:  the walk, which a seed determines. Never: knows what a verb
 * should answer: the suite does.
 */
#include "support/memory_check.h"
#include "support/memory_world.h"

#include "store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 50
#define STEPS 600
#define ROOM  1000
#define KEPT  64 /* leases and ids that are remembered, to be used again */

struct walker {
    struct world world;
    struct pawli_seeded seeded;
    pawl_random random;
    pawl_lease leases[KEPT];
    char holders[KEPT][8];
    pawl_id ids[KEPT];
};

static int64_t below(struct walker *walker, int64_t bound)
{
    return (int64_t)pawli_random_below(&walker->random, (uint64_t)bound);
}

static const char *a_queue(struct walker *walker)
{
    static const char *const queues[] = {"red", "green", "blue"};
    return queues[below(walker, 3)];
}

static const char *a_worker(struct walker *walker)
{
    static const char *const workers[] = {"w1", "w2", "w3", "w4"};
    return workers[below(walker, 4)];
}

static const char *an_ordering_key(struct walker *walker)
{
    static const char *const keys[] = {"o1", "o2", "o3", "o4"};
    return keys[below(walker, 4)];
}

static pawl_id an_id(struct walker *walker)
{
    return walker->ids[below(walker, KEPT)];
}

static pawl_filter a_filter(struct walker *walker)
{
    pawl_filter filter = {0};
    if (below(walker, 2) == 0)
        filter.queue = a_queue(walker);
    if (below(walker, 2) == 0)
        filter.states = (unsigned)below(walker, 16);
    if (below(walker, 3) == 0)
        filter.reason = (pawl_reason)below(walker, REASONS_COUNT);
    if (below(walker, 4) == 0)
        filter.worker = a_worker(walker);
    if (filter.queue != NULL && below(walker, 3) == 0)
        filter.ordering_key = an_ordering_key(walker);
    return filter;
}

/* ---- steps */

static void enqueue(struct walker *walker)
{
    static const char *const keys[] = {"k1", "k2", "k3"};
    pawl_enqueue_row rows[4];
    pawl_enqueued results[4];
    size_t count = (size_t)below(walker, 4) + 1;
    for (size_t i = 0; i < count; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = a_queue(walker);
        rows[i].priority = (int)below(walker, 3) + 4;
        rows[i].delay_ms = below(walker, 2) * below(walker, 5000);
        if (below(walker, 4) == 0)
            rows[i].start_within_ms = rows[i].delay_ms + 1 + below(walker, 8000);
        if (below(walker, 3) == 0)
            rows[i].dedupe_key = keys[below(walker, 3)];
        if (below(walker, 2) == 0)
            rows[i].ordering_key = an_ordering_key(walker);
        if (below(walker, 8) == 0 && walker->world.memory->shards == 1)
            rows[i].id = an_id(walker); /* EXISTS, also where it is pruned meanwhile: a new one */
        rows[i].payload = "12345678";
        rows[i].payload_len = (size_t)below(walker, 9);
    }
    assert_int_equal(pawl_enqueue(walker->world.store, rows, count, results, NULL), PAWL_OK);
    for (size_t i = 0; i < count; i++)
        walker->ids[below(walker, KEPT)] = results[i].id;
}

/* After a claim that took some, no shard of the queue is above its share. */
static void assert_within_bound(struct walker *walker, const char *name)
{
    pawl_memory *memory = walker->world.memory;
    const struct queue *queue = pawli_memory_queue_find(memory, name);
    int64_t bound = queue->settings.max_in_flight;
    int64_t in_flight = 0;
    for (int64_t shard = 0; shard < memory->shards; shard++)
        in_flight += queue->lines[shard].in_flight;
    /* What was in flight when the bound was lowered may be above it, in shards that gave none. */
    assert_true(bound == 0 || in_flight <= bound || memory->shards > 1);
}

static void claim(struct walker *walker)
{
    pawl_claim_line lines[3];
    pawl_job jobs[6];
    size_t count;
    const char *worker = a_worker(walker);
    for (int i = 0; i < 3; i++)
        lines[i] = (pawl_claim_line){
            .queue = a_queue(walker),
            .jobs_max = 1 + below(walker, 3),
            .lease_ms = below(walker, 2) == 0 ? PAWL_DEFAULT : 100 + below(walker, 3000),
        };
    pawl_claim_args args = {.worker = worker, .lines = lines, .lines_count = 3};
    int64_t fence = walker->world.memory->fence;
    args.bytes_max = below(walker, 3) == 0 ? 1 + below(walker, 12) : PAWL_DEFAULT;
    size_t jobs_max = 1 + (size_t)below(walker, 6);
    assert_int_equal(pawl_claim(walker->world.store, &args, jobs, jobs_max, &count, NULL), PAWL_OK);
    for (size_t i = 0; i < count; i++) {
        int64_t at = below(walker, KEPT);
        walker->leases[at] = world_lease(&jobs[i]);
        if (jobs[i].ordering_key[0] != '\0') {
            assert_true(jobs[i].fence > fence);
            fence = jobs[i].fence;
        }
        assert_within_bound(walker, jobs[i].queue);
        (void)snprintf(walker->holders[at], sizeof(walker->holders[at]), "%s", worker);
        pawl_job_clear(&jobs[i]);
    }
}

static void say(struct walker *walker)
{
    int64_t at = below(walker, KEPT);
    const pawl_lease *lease = &walker->leases[at];
    const char *worker = walker->holders[at];
    if (pawl_id_is_nil(&lease->job))
        return;
    if (below(walker, 3) == 0) {
        pawl_renew_row row = {.lease = *lease, .lease_ms = 100 + below(walker, 4000)};
        pawl_renewed renewed;
        assert_int_equal(pawl_renew(walker->world.store, worker, &row, 1, &renewed, NULL), PAWL_OK);
        return;
    }
    if (below(walker, 4) == 0) {
        pawl_code code;
        assert_int_equal(pawl_release(walker->world.store, worker, lease, 1, &code, NULL), PAWL_OK);
        return;
    }
    pawl_settle_row row;
    pawl_settled settled;
    pawl_settle_init(&row);
    row.lease = *lease;
    row.action = (pawl_settle_action)below(walker, 4);
    row.delay_ms = below(walker, 2000);
    row.error_text = below(walker, 2) == 0 ? "it went wrong" : NULL;
    assert_int_equal(pawl_settle(walker->world.store, worker, &row, 1, &settled, NULL), PAWL_OK);
}

static void recover(struct walker *walker)
{
    pawl_reaped reaped[4];
    size_t count;
    if (below(walker, 4) == 0)
        assert_int_equal(pawl_prune(walker->world.store, 5, &count, NULL), PAWL_OK);
    else
        assert_int_equal(pawl_reap(walker->world.store, reaped, 4, &count, NULL), PAWL_OK);
}

static void operate(struct walker *walker)
{
    pawl_store *store = walker->world.store;
    pawl_id ids[2] = {an_id(walker), an_id(walker)};
    pawl_changed changed[2];
    pawl_filter filter = a_filter(walker);
    size_t count;
    pawl_code code = PAWL_OK;
    if (pawl_id_is_nil(&ids[0]) || pawl_id_is_nil(&ids[1]))
        return;
    switch (below(walker, 8)) {
    case 0:
    case 1:
        code = pawl_cancel(store, ids, 2, changed, NULL);
        break;
    case 2:
    case 3:
        code = pawl_redrive(store, ids, 2, changed, NULL);
        break;
    case 4:
        code = pawl_discard(store, ids, 2, changed, NULL);
        break;
    case 5:
        filter.states = 0;
        code = pawl_cancel_where(store, &filter, 2, &count, NULL);
        break;
    case 6:
        filter.states = 0;
        code = pawl_redrive_where(store, &filter, 2, &count, NULL);
        break;
    default:
        filter.states = 1u << PAWL_FAILED;
        code = pawl_discard_where(store, &filter, 2, &count, NULL);
    }
    assert_int_equal(code, PAWL_OK);
}

static void change_settings(struct walker *walker)
{
    const char *queue = a_queue(walker);
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.lease_ms = 100 + below(walker, 3000);
    settings.max_retries = below(walker, 3);
    settings.max_lost_leases = 1 + below(walker, 4);
    settings.keep_succeeded_ms = 1 + below(walker, 20000);
    settings.keep_failed_ms = 1 + below(walker, 20000);
    settings.max_in_flight = below(walker, 2) == 0 ? 0 : 5 + below(walker, 4);
    assert_int_equal(pawl_queue_set(walker->world.store, queue, &settings, NULL), PAWL_OK);
    assert_int_equal(pawl_queue_pause(walker->world.store, queue, below(walker, 4) == 0, NULL),
                     PAWL_OK);
}

static void turn_clock(struct walker *walker)
{
    int64_t ms = below(walker, 3000);
    if (below(walker, 4) > 0)
        world_turn_ms(&walker->world, ms);
    else
        walker->world.manual.wall.us -= ms * 1000;
}

/* ---- looking */

static bool is_match(const pawl_job *job, const pawl_filter *filter)
{
    return (filter->queue == NULL || strcmp(filter->queue, job->queue) == 0) &&
           (filter->states == 0 || (filter->states & 1u << job->state) != 0) &&
           (filter->reason == PAWL_REASON_NONE || filter->reason == job->reason) &&
           (filter->worker == NULL || strcmp(filter->worker, job->worker) == 0) &&
           (filter->ordering_key == NULL || strcmp(filter->ordering_key, job->ordering_key) == 0);
}

/* All pages of a filter are all jobs that match it, in the order of their ids. */
static void look(struct walker *walker)
{
    static pawl_job all[ROOM];
    static pawl_job page[ROOM];
    pawl_store *store = walker->world.store;
    pawl_filter filter = a_filter(walker);
    size_t all_count;
    size_t count = 0;
    assert_int_equal(pawl_list(store, NULL, NULL, all, ROOM, &all_count, NULL), PAWL_OK);
    assert_int_equal(all_count, walker->world.memory->jobs_count);
    size_t page_size = 1 + (size_t)below(walker, 7);
    for (size_t got = page_size; got == page_size; count += got) {
        const pawl_id *after = count > 0 ? &page[count - 1].id : NULL;
        assert_int_equal(pawl_list(store, &filter, after, &page[count], page_size, &got, NULL),
                         PAWL_OK);
    }
    size_t found = 0;
    for (size_t i = 0; i < all_count; i++) {
        assert_true(i == 0 || pawl_id_compare(&all[i - 1].id, &all[i].id) < 0);
        if (!is_match(&all[i], &filter))
            continue;
        assert_true(found < count);
        assert_int_equal(pawl_id_compare(&all[i].id, &page[found++].id), 0);
    }
    assert_int_equal(found, count);
}

/* ---- the walk */

static void step(struct walker *walker)
{
    switch (below(walker, 16)) {
    case 0:
    case 1:
    case 2:
        enqueue(walker);
        break;
    case 3:
    case 4:
    case 5:
        claim(walker);
        break;
    case 6:
    case 7:
    case 8:
        say(walker);
        break;
    case 9:
        recover(walker);
        break;
    case 10:
    case 11:
        operate(walker);
        break;
    case 12:
        change_settings(walker);
        break;
    case 13:
        look(walker);
        break;
    default:
        turn_clock(walker);
    }
}

static void test_all_records_agree_whatever_is_done(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct walker walker;
        memset(&walker, 0, sizeof(walker));
        walker.seeded.state = seed;
        walker.random = pawli_seeded_as_random(&walker.seeded);
        world_make(&walker.world, seed % 2 == 0 ? 1 : 5);
        for (int i = 0; i < STEPS; i++) {
            step(&walker);
            const char *wrong = pawli_memory_check(walker.world.memory);
            if (wrong != NULL)
                fail_msg("seed %llu, step %d: %s", (unsigned long long)seed, i, wrong);
        }
        world_end(&walker.world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_records_agree_whatever_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
