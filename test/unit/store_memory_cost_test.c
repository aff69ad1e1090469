/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_memory_cost_test.c - what the memory store's verbs cost, counted in operations on
 * its trees (each of which takes O(log n)) and not in time. Owns:  the counter: every such
 * operation of the store's own files passes it, by the linker's
 *        --wrap (see test/meson.build).
 * Never: looks at a clock.
 */
#include "support/memory_world.h"

#include "store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t operations;

#define COUNTED(tree, member)                                                             \
    struct member *__real_pawli_##tree##_tree_RB_INSERT(struct pawli_##tree##_tree *head, \
                                                        struct member *record);           \
    struct member *__wrap_pawli_##tree##_tree_RB_INSERT(struct pawli_##tree##_tree *head, \
                                                        struct member *record);           \
    struct member *__wrap_pawli_##tree##_tree_RB_INSERT(struct pawli_##tree##_tree *head, \
                                                        struct member *record)            \
    {                                                                                     \
        operations++;                                                                     \
        return __real_pawli_##tree##_tree_RB_INSERT(head, record);                        \
    }                                                                                     \
    struct member *__real_pawli_##tree##_tree_RB_REMOVE(struct pawli_##tree##_tree *head, \
                                                        struct member *record);           \
    struct member *__wrap_pawli_##tree##_tree_RB_REMOVE(struct pawli_##tree##_tree *head, \
                                                        struct member *record);           \
    struct member *__wrap_pawli_##tree##_tree_RB_REMOVE(struct pawli_##tree##_tree *head, \
                                                        struct member *record)            \
    {                                                                                     \
        operations++;                                                                     \
        return __real_pawli_##tree##_tree_RB_REMOVE(head, record);                        \
    }                                                                                     \
    struct member *__real_pawli_##tree##_tree_RB_FIND(struct pawli_##tree##_tree *head,   \
                                                      struct member *record);             \
    struct member *__wrap_pawli_##tree##_tree_RB_FIND(struct pawli_##tree##_tree *head,   \
                                                      struct member *record);             \
    struct member *__wrap_pawli_##tree##_tree_RB_FIND(struct pawli_##tree##_tree *head,   \
                                                      struct member *record)              \
    {                                                                                     \
        operations++;                                                                     \
        return __real_pawli_##tree##_tree_RB_FIND(head, record);                          \
    }                                                                                     \
    struct member *__real_pawli_##tree##_tree_RB_NFIND(struct pawli_##tree##_tree *head,  \
                                                       struct member *record);            \
    struct member *__wrap_pawli_##tree##_tree_RB_NFIND(struct pawli_##tree##_tree *head,  \
                                                       struct member *record);            \
    struct member *__wrap_pawli_##tree##_tree_RB_NFIND(struct pawli_##tree##_tree *head,  \
                                                       struct member *record)             \
    {                                                                                     \
        operations++;                                                                     \
        return __real_pawli_##tree##_tree_RB_NFIND(head, record);                         \
    }                                                                                     \
    struct member *__real_pawli_##tree##_tree_RB_NEXT(struct member *record);             \
    struct member *__wrap_pawli_##tree##_tree_RB_NEXT(struct member *record);             \
    struct member *__wrap_pawli_##tree##_tree_RB_NEXT(struct member *record)              \
    {                                                                                     \
        operations++;                                                                     \
        return __real_pawli_##tree##_tree_RB_NEXT(record);                                \
    }                                                                                     \
    struct member *__real_pawli_##tree##_tree_RB_MINMAX(struct pawli_##tree##_tree *head, \
                                                        int side);                        \
    struct member *__wrap_pawli_##tree##_tree_RB_MINMAX(struct pawli_##tree##_tree *head, \
                                                        int side);                        \
    struct member *__wrap_pawli_##tree##_tree_RB_MINMAX(struct pawli_##tree##_tree *head, \
                                                        int side)                         \
    {                                                                                     \
        operations++;                                                                     \
        return __real_pawli_##tree##_tree_RB_MINMAX(head, side);                          \
    }

/* Trees that know their last one are changed by these alone, which call the above within a file. */
#define COUNTED_TAILED(tree)                                                                      \
    struct entry *__real_pawli_##tree##_tree_put(struct pawli_##tree##_tree *head,                \
                                                 struct entry *record);                           \
    struct entry *__wrap_pawli_##tree##_tree_put(struct pawli_##tree##_tree *head,                \
                                                 struct entry *record);                           \
    struct entry *__wrap_pawli_##tree##_tree_put(struct pawli_##tree##_tree *head,                \
                                                 struct entry *record)                            \
    {                                                                                             \
        operations++;                                                                             \
        return __real_pawli_##tree##_tree_put(head, record);                                      \
    }                                                                                             \
    void __real_pawli_##tree##_tree_take(struct pawli_##tree##_tree *head, struct entry *record); \
    void __wrap_pawli_##tree##_tree_take(struct pawli_##tree##_tree *head, struct entry *record); \
    void __wrap_pawli_##tree##_tree_take(struct pawli_##tree##_tree *head, struct entry *record)  \
    {                                                                                             \
        operations++;                                                                             \
        __real_pawli_##tree##_tree_take(head, record);                                            \
    }
COUNTED_TAILED(job)
COUNTED_TAILED(shelf)
COUNTED_TAILED(queue_shelf)
COUNTED_TAILED(ready)
COUNTED_TAILED(lease)
COUNTED_TAILED(due)
COUNTED_TAILED(held)
COUNTED_TAILED(finished)
COUNTED_TAILED(deadline)
COUNTED(job, entry)
COUNTED(shelf, entry)
COUNTED(queue_shelf, entry)
COUNTED(ready, entry)
COUNTED(lease, entry)
COUNTED(due, entry)
COUNTED(held, entry)
COUNTED(finished, entry)
COUNTED(deadline, entry)
COUNTED(dedupe, entry)
COUNTED(ordering, ordering_key)
COUNTED(holder, holder)
COUNTED(queue, queue)
COUNTED(presence, presence)

/* ---- a drain */

#define BATCH 1000

static void enqueue_many(struct world *world, const pawl_enqueue_row *row, size_t jobs_count)
{
    static pawl_enqueue_row rows[BATCH];
    static pawl_enqueued results[BATCH];
    while (jobs_count > 0) {
        size_t count = jobs_count < BATCH ? jobs_count : BATCH;
        for (size_t i = 0; i < count; i++)
            rows[i] = *row;
        assert_int_equal(pawl_enqueue(world->store, rows, count, results, NULL), PAWL_OK);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(results[i].code, PAWL_OK);
        jobs_count -= count;
    }
}

static size_t claim_and_settle(struct world *world)
{
    static pawl_job jobs[BATCH];
    static pawl_settle_row rows[BATCH];
    static pawl_settled results[BATCH];
    size_t count = world_claim(world, "w", "q", jobs, BATCH);
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        pawl_settle_init(&rows[i]);
        rows[i].lease = world_lease(&jobs[i]);
    }
    assert_int_equal(pawl_settle(world->store, "w", rows, count, results, NULL), PAWL_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(results[i].code, PAWL_OK);
    return count;
}

static pawl_enqueue_row plain_row(const char *queue)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = queue;
    return row;
}

/* Enqueue, claim, settle and prune `jobs_count` jobs, some of which were delayed or got lost. */
static uint64_t cost_of_drain(size_t jobs_count)
{
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    operations = 0;
    enqueue_many(&world, &row, jobs_count / 2);
    row.delay_ms = 1000;
    enqueue_many(&world, &row, jobs_count / 2);
    static pawl_job lost[BATCH];
    for (size_t got = 0; got < jobs_count / 4;)
        got += world_claim(&world, "lost", "q", lost, BATCH);
    world_turn_ms(&world, 60000);
    size_t drained = 0;
    for (size_t count = 1; count > 0; drained += count)
        count = claim_and_settle(&world);
    assert_int_equal(drained, jobs_count);
    world_turn_ms(&world, INT64_C(8) * 24 * 3600 * 1000);
    for (size_t count = 1; count > 0;)
        assert_int_equal(pawl_prune(world.store, BATCH, &count, NULL), PAWL_OK);
    assert_int_equal(world.memory->jobs_count, 0);
    uint64_t cost = operations;
    world_end(&world);
    return cost;
}

static void test_a_drain_costs_what_there_is(void **state)
{
    (void)state;
    uint64_t small = cost_of_drain(10000);
    uint64_t large = cost_of_drain(100000);
    print_message("# %llu operations for 10,000 jobs, %llu for 100,000\n",
                  (unsigned long long)small, (unsigned long long)large);
    assert_true(large >= small * 9);
    assert_true(large <= small * 11);
}

/* ---- a claim costs what it returns, whatever it stands among */

static uint64_t cost_of_claim(struct world *world)
{
    pawl_job job;
    operations = 0;
    assert_int_equal(world_claim(world, "w", "q", &job, 1), 1);
    uint64_t cost = operations;
    world_settle(world, "w", &job, PAWL_SUCCEED);
    return cost;
}

/* `crowd` jobs of each kind that a claim must pass by. */
static uint64_t cost_among(size_t crowd)
{
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    enqueue_many(&world, &row, crowd); /* in flight */
    static pawl_job held[BATCH];
    for (size_t got = 0; got < crowd;)
        got += world_claim(&world, "other", "q", held, crowd - got < BATCH ? crowd - got : BATCH);
    enqueue_many(&world, &row, crowd); /* done */
    for (size_t got = 0; got < crowd;)
        got += claim_and_settle(&world);
    row.delay_ms = 3600000; /* delayed */
    enqueue_many(&world, &row, crowd);
    row.delay_ms = 0;
    row.priority = PAWL_PRIORITY_LAST; /* behind it */
    enqueue_many(&world, &row, crowd);
    pawl_enqueue_row other = plain_row("another");
    enqueue_many(&world, &other, crowd); /* elsewhere */
    row.priority = PAWL_PRIORITY_NORMAL;
    enqueue_many(&world, &row, 2);
    (void)cost_of_claim(&world); /* the first one of a worker makes its name known */
    uint64_t cost = cost_of_claim(&world);
    world_end(&world);
    return cost;
}

static void test_a_claim_costs_what_it_returns(void **state)
{
    (void)state;
    uint64_t small = cost_among(10);
    uint64_t large = cost_among(5000);
    print_message("# %llu operations among 10 of each, %llu among 5,000\n",
                  (unsigned long long)small, (unsigned long long)large);
    assert_int_equal(small, large);
}

/* `crowd` jobs behind a leased one of their key, and as many behind one that is delayed. */
static uint64_t cost_beside_stuck_keys(size_t crowd)
{
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    row.ordering_key = "stuck";
    row.priority = PAWL_PRIORITY_URGENT;
    enqueue_many(&world, &row, 1);
    (void)world_claim_one(&world, "other", "q");
    enqueue_many(&world, &row, crowd);
    row.ordering_key = "delayed";
    row.delay_ms = 3600000;
    enqueue_many(&world, &row, 1);
    row.delay_ms = 0;
    enqueue_many(&world, &row, crowd);
    row.ordering_key = "free";
    enqueue_many(&world, &row, 3);
    (void)cost_of_claim(&world); /* the first one of a worker makes its name known */
    uint64_t cost = cost_of_claim(&world);
    world_end(&world);
    return cost;
}

/* No scan over what waits behind a stuck key. */
static void test_a_stuck_key_costs_nobody_else(void **state)
{
    (void)state;
    assert_int_equal(cost_beside_stuck_keys(1), cost_beside_stuck_keys(20000));
}

/* Jobs without a key pay nothing for those that have one, and a keyed drain costs what there is. */
static uint64_t cost_of_keyed_drain(size_t jobs_count, size_t keys_count)
{
    struct world world;
    char key[16];
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    row.ordering_key = key;
    operations = 0;
    for (size_t i = 0; i < jobs_count; i++) {
        (void)snprintf(key, sizeof(key), "%zu", i % keys_count); /* fits */
        enqueue_many(&world, &row, 1);
    }
    size_t drained = 0;
    for (size_t count = 1; count > 0; drained += count)
        count = claim_and_settle(&world);
    assert_int_equal(drained, jobs_count);
    uint64_t cost = operations;
    world_end(&world);
    return cost;
}

static void test_a_keyed_drain_costs_what_there_is(void **state)
{
    (void)state;
    uint64_t many = cost_of_keyed_drain(10000, 10000);
    uint64_t few = cost_of_keyed_drain(10000, 100);
    print_message("# %llu operations with a key each, %llu with 100 keys\n",
                  (unsigned long long)many, (unsigned long long)few);
    assert_true(few <= many + many / 10);
}

/* What has come due or has expired is moved once, by whoever comes first. */
static void test_what_has_come_due_is_moved_once(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    row.delay_ms = 1000;
    enqueue_many(&world, &row, 5000);
    world_turn_ms(&world, 1000);
    uint64_t first = cost_of_claim(&world);
    uint64_t second = cost_of_claim(&world);
    assert_true(first > 5000);
    assert_true(first < 15000 + second);
    assert_true(second < 100);
    world_end(&world);
}

static void test_a_queue_named_often_costs_what_it_returns(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    enqueue_many(&world, &row, 4000);
    static pawl_claim_line lines[PAWL_LINES_MAX];
    static pawl_job jobs[PAWL_BATCH_MAX];
    for (size_t i = 0; i < PAWL_LINES_MAX; i++)
        lines[i] = (pawl_claim_line){.queue = "q", .jobs_max = 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {.worker = "w", .bytes_max = PAWL_DEFAULT};
    args.lines = lines;
    args.lines_count = PAWL_LINES_MAX;
    size_t count;
    operations = 0;
    assert_int_equal(pawl_claim(world.store, &args, jobs, PAWL_BATCH_MAX, &count, NULL), PAWL_OK);
    assert_int_equal(count, 4000);
    assert_true(operations < (PAWL_LINES_MAX + count) * 30);
    world_end(&world);
}

/* ---- a claim does not pay for what it cannot take */

#define ASIDE (100 + 2) /* of a claim of one job: see claim.c */

static int64_t failed_in_q(struct world *world)
{
    pawl_stats stats;
    size_t count;
    assert_int_equal(pawl_queue_stats(world->store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    return stats.failed;
}

static size_t claim_one_cheaply(struct world *world)
{
    pawl_job job;
    operations = 0;
    size_t count = world_claim(world, "w", "q", &job, 1);
    assert_true(operations < (ASIDE + 1) * 40);
    return count;
}

/* RES-4: expired leases whose jobs fail; behind them there is work to do. */
static void test_a_claim_puts_away_few_lost_jobs(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.max_lost_leases = 1;
    assert_int_equal(pawl_queue_set(world.store, "q", &settings, NULL), PAWL_OK);
    pawl_enqueue_row row = plain_row("q");
    enqueue_many(&world, &row, 1000);
    static pawl_job held[BATCH];
    assert_int_equal(world_claim(&world, "other", "q", held, BATCH), 1000);
    world_turn_ms(&world, 3600000);
    enqueue_many(&world, &row, 2);
    assert_int_equal(claim_one_cheaply(&world), 1);
    assert_int_equal(failed_in_q(&world), ASIDE);
    assert_int_equal(claim_one_cheaply(&world), 1);
    assert_int_equal(failed_in_q(&world), 2 * ASIDE);
    world_end(&world);
}

/* Jobs past their start-by deadline, in front of one that can be taken. */
static void test_a_claim_puts_away_few_missed_jobs(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    row.start_within_ms = 1000;
    enqueue_many(&world, &row, 3 * ASIDE - 1);
    world_turn_ms(&world, 2000);
    row.start_within_ms = PAWL_DEFAULT;
    enqueue_many(&world, &row, 1);
    for (int64_t i = 1; i <= 2; i++) {
        assert_int_equal(claim_one_cheaply(&world), 0);
        assert_int_equal(failed_in_q(&world), i * ASIDE);
    }
    assert_int_equal(claim_one_cheaply(&world), 1); /* it gets there */
    assert_int_equal(failed_in_q(&world), 3 * ASIDE - 1);
    world_end(&world);
}

/* ---- operators' verbs find what they change, and what they show, without a search */

static uint64_t cost_of_pages(size_t crowd)
{
    struct world world;
    world_make(&world, 1);
    pawl_enqueue_row row = plain_row("q");
    enqueue_many(&world, &row, 3);
    size_t count;
    pawl_job jobs[3];
    pawl_filter queue_q = {.queue = "q"};
    assert_int_equal(pawl_cancel_where(world.store, &queue_q, 3, &count, NULL), PAWL_OK);
    enqueue_many(&world, &row, crowd);
    static pawl_job held[BATCH];
    for (size_t got = 0; got < crowd / 2;)
        got += world_claim(&world, "w", "q", held, crowd / 2 < BATCH ? crowd / 2 : BATCH);
    pawl_filter filter = {.queue = "q", .states = 1u << PAWL_FAILED};
    operations = 0;
    assert_int_equal(pawl_list(world.store, &filter, NULL, jobs, 3, &count, NULL), PAWL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(pawl_discard_where(world.store, &filter, 2, &count, NULL), PAWL_OK);
    assert_int_equal(pawl_discard_where(world.store, &filter, 2, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1); /* what was discarded before is not met again */
    filter.reason = PAWL_REASON_POISON;
    assert_int_equal(pawl_redrive_where(world.store, &filter, 3, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
    pawl_stats stats;
    assert_int_equal(pawl_queue_stats(world.store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    uint64_t cost = operations;
    world_end(&world);
    return cost;
}

static void test_filters_cost_what_they_find(void **state)
{
    (void)state;
    assert_int_equal(cost_of_pages(20), cost_of_pages(4000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_drain_costs_what_there_is),
        cmocka_unit_test(test_a_claim_costs_what_it_returns),
        cmocka_unit_test(test_a_stuck_key_costs_nobody_else),
        cmocka_unit_test(test_a_keyed_drain_costs_what_there_is),
        cmocka_unit_test(test_what_has_come_due_is_moved_once),
        cmocka_unit_test(test_a_queue_named_often_costs_what_it_returns),
        cmocka_unit_test(test_a_claim_puts_away_few_lost_jobs),
        cmocka_unit_test(test_a_claim_puts_away_few_missed_jobs),
        cmocka_unit_test(test_filters_cost_what_they_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
