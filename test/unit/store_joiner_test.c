/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_joiner_test.c - threads that share one handle to enqueue single jobs.
 * Owns:  a store whose calls stand still until they are let through, before a store in memory: so
 *        it is certain who waits when a call ends.
 * Never: sleeps, or depends on who comes first.
 */
#include "support/memory_check.h"
#include "support/memory_world.h"

#include "pawl/joiner.h"
#include "store/store.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define THREADS   8
#define CALLS_MAX 16
#define STRESS    200 /* jobs of each thread */
#define LARGE     ((size_t)4 << 20)

/* Calls of enqueue stand here, one at a time. */
struct gate {
    pawl_store store;
    pawl_store *inner;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_open;
    bool is_standing;  /* a call is in it */
    pawl_code refusal; /* what calls come to; PAWL_OK: to what the store says */
    size_t calls;
    size_t rows[CALLS_MAX]; /* of each call */
};

struct rig {
    struct world world;
    struct gate gate;
    pawl_joiner *joiner;
    size_t payload_len; /* of those who are started; 0: short ones */
};

static const char large[LARGE];

static pawl_code pass_gate(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                           pawl_enqueued *ret_results, pawl_err *err)
{
    struct gate *gate = (struct gate *)store; /* its first member */
    pthread_mutex_lock(&gate->mutex);
    assert_false(gate->is_standing); /* never two calls at once */
    gate->is_standing = true;
    pthread_cond_broadcast(&gate->cond);
    while (!gate->is_open)
        pthread_cond_wait(&gate->cond, &gate->mutex);
    gate->is_standing = false;
    if (gate->calls < CALLS_MAX)
        gate->rows[gate->calls] = rows_count;
    gate->calls++;
    pawl_code refusal = gate->refusal;
    pthread_mutex_unlock(&gate->mutex);
    if (refusal == PAWL_OK)
        return gate->inner->ops->enqueue(gate->inner, rows, rows_count, ret_results, err);
    err->code = refusal;
    (void)snprintf(err->text, sizeof(err->text), "shut");
    return refusal;
}

static const struct pawli_store_ops gate_ops = {.name = "gate", .enqueue = pass_gate};

static int make(void **state)
{
    static struct rig rig;
    memset(&rig, 0, sizeof(rig));
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.payload_max = LARGE;
    world_make_with(&rig.world, &options);
    rig.gate.store = (pawl_store){.ops = &gate_ops, .limits = rig.world.store->limits};
    rig.gate.inner = rig.world.store;
    pthread_mutex_init(&rig.gate.mutex, NULL);
    pthread_cond_init(&rig.gate.cond, NULL);
    assert_int_equal(PAWL_OK, pawl_joiner_new(&rig.gate.store, &rig.joiner, NULL));
    *state = &rig;
    return 0;
}

static int end(void **state)
{
    struct rig *rig = *state;
    pawl_joiner_free(rig->joiner);
    pthread_cond_destroy(&rig->gate.cond);
    pthread_mutex_destroy(&rig->gate.mutex);
    world_check(&rig->world);
    world_end(&rig->world);
    return 0;
}

static void set_open(struct gate *gate, bool is_open)
{
    pthread_mutex_lock(&gate->mutex);
    gate->is_open = is_open;
    pthread_cond_broadcast(&gate->cond);
    pthread_mutex_unlock(&gate->mutex);
}

static void await_call(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (!gate->is_standing)
        pthread_cond_wait(&gate->cond, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

/* ---- threads with a row each */

struct caller {
    struct rig *rig;
    const char *queue;
    size_t times;
    size_t payload_len; /* 0: the queue's name */
    pawl_enqueued result;
    pawl_code code;
    pawl_err err;
    pthread_t thread;
};

static void *call(void *user)
{
    struct caller *caller = user;
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = caller->queue;
    row.payload = caller->payload_len > 0 ? large : caller->queue;
    row.payload_len = caller->payload_len > 0 ? caller->payload_len : strlen(caller->queue);
    for (size_t i = 0; i < caller->times; i++)
        caller->code = pawl_joiner_enqueue(caller->rig->joiner, &row, &caller->result,
                                           &caller->err);
    return NULL;
}

static void start(struct rig *rig, struct caller *caller, const char *queue, size_t times)
{
    *caller = (struct caller){
        .rig = rig, .queue = queue, .times = times, .payload_len = rig->payload_len};
    assert_int_equal(0, pthread_create(&caller->thread, NULL, call, caller));
}

/* One whose call stands, and THREADS - 1 that wait behind it. */
static void line_up(struct rig *rig, struct caller callers[THREADS])
{
    static const char *const queues[THREADS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    start(rig, &callers[0], queues[0], 1);
    await_call(&rig->gate);
    for (size_t i = 1; i < THREADS; i++)
        start(rig, &callers[i], queues[i], 1);
    while (pawl_joiner_waiting(rig->joiner) < THREADS - 1)
        (void)sched_yield();
}

static void join(struct caller callers[THREADS])
{
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_join(callers[i].thread, NULL));
}

/* ---- the tests */

static void those_who_wait_go_together(void **state)
{
    struct rig *rig = *state;
    struct caller callers[THREADS];
    line_up(rig, callers);
    set_open(&rig->gate, true);
    join(callers);
    assert_int_equal(2, rig->gate.calls);
    assert_int_equal(1, rig->gate.rows[0]);
    assert_int_equal(THREADS - 1, rig->gate.rows[1]);
    assert_int_equal(0, pawl_joiner_waiting(rig->joiner));
    for (size_t i = 0; i < THREADS; i++) { /* each was told of its own */
        assert_int_equal(PAWL_OK, callers[i].code);
        assert_int_equal(PAWL_OK, callers[i].result.code);
        pawl_job job = world_get(&rig->world, &callers[i].result.id);
        assert_string_equal(callers[i].queue, job.queue);
    }
}

/* A lost reply is nobody's success; by its id each can be asked for. */
static void what_fails_fails_for_all_of_the_call(void **state)
{
    struct rig *rig = *state;
    struct caller callers[THREADS];
    rig->gate.refusal = PAWL_UNKNOWN;
    line_up(rig, callers);
    set_open(&rig->gate, true);
    join(callers);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(PAWL_UNKNOWN, callers[i].code);
        assert_string_equal("shut", callers[i].err.text);
        assert_false(pawl_id_is_nil(&callers[i].result.id));
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(0, pawl_id_compare(&callers[i].result.id, &callers[j].result.id));
    }

    /* And it goes on afterwards; an id that is given is kept. */
    rig->gate.refusal = PAWL_OK;
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = "a";
    row.id = callers[0].result.id;
    assert_int_equal(PAWL_OK, pawl_joiner_enqueue(rig->joiner, &row, &result, NULL));
    assert_int_equal(0, pawl_id_compare(&row.id, &result.id));
    assert_int_equal(PAWL_OK, pawl_joiner_enqueue(rig->joiner, &row, &result, NULL));
    assert_int_equal(PAWL_EXISTS, result.code);
}

static void a_bad_row_harms_nobody(void **state)
{
    struct rig *rig = *state;
    struct caller callers[THREADS];
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    line_up(rig, callers);
    pawl_enqueue_init(&row);
    row.queue = "no blanks, please";
    assert_int_equal(PAWL_INVALID, pawl_joiner_enqueue(rig->joiner, &row, &result, &err));
    assert_non_null(strstr(err.text, "queue"));
    set_open(&rig->gate, true);
    join(callers);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(PAWL_OK, callers[i].code);
    assert_int_equal(2, rig->gate.calls);
}

static void alone_nobody_waits_for_company(void **state)
{
    struct rig *rig = *state;
    struct caller caller;
    set_open(&rig->gate, true);
    start(rig, &caller, "a", 2);
    assert_int_equal(0, pthread_join(caller.thread, NULL));
    assert_int_equal(PAWL_OK, caller.code);
    assert_int_equal(2, rig->gate.calls);
}

/* A call has a bound: what is beyond it goes with the next one. */
static void calls_are_bounded_in_bytes(void **state)
{
    struct rig *rig = *state;
    struct caller callers[THREADS];
    rig->payload_len = LARGE;
    line_up(rig, callers);
    set_open(&rig->gate, true);
    join(callers);
    assert_int_equal(3, rig->gate.calls);
    assert_int_equal(1, rig->gate.rows[0]);
    assert_int_equal(4, rig->gate.rows[1]); /* of 4 MiB each */
    assert_int_equal(3, rig->gate.rows[2]);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(PAWL_OK, callers[i].code);
}

/* Under the thread sanitizer too. */
static void many_at_once(void **state)
{
    struct rig *rig = *state;
    struct caller callers[THREADS];
    pawl_stats stats;
    size_t count = 0;
    set_open(&rig->gate, true);
    for (size_t i = 0; i < THREADS; i++)
        start(rig, &callers[i], "a", STRESS);
    join(callers);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(PAWL_OK, callers[i].code);
    assert_int_equal(PAWL_OK, pawl_queue_stats(rig->world.store, NULL, &stats, 1, &count, NULL));
    assert_int_equal(1, count);
    assert_int_equal(THREADS * STRESS, stats.ready);
    assert_true(rig->gate.calls <= THREADS * STRESS);
}

static void what_is_missing_is_named(void **state)
{
    struct rig *rig = *state;
    pawl_joiner *joiner = NULL;
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    pawl_enqueue_init(&row);
    assert_int_equal(PAWL_INVALID, pawl_joiner_new(NULL, &joiner, &err));
    assert_non_null(strstr(err.text, "store"));
    assert_int_equal(PAWL_INVALID, pawl_joiner_new(&rig->gate.store, NULL, &err));
    assert_int_equal(PAWL_INVALID, pawl_joiner_enqueue(NULL, &row, &result, &err));
    assert_non_null(strstr(err.text, "joiner"));
    assert_int_equal(PAWL_INVALID, pawl_joiner_enqueue(rig->joiner, NULL, &result, &err));
    assert_int_equal(PAWL_INVALID, pawl_joiner_enqueue(rig->joiner, &row, NULL, &err));
    assert_int_equal(0, pawl_joiner_waiting(NULL));
    pawl_joiner_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_who_wait_go_together, make, end),
        cmocka_unit_test_setup_teardown(what_fails_fails_for_all_of_the_call, make, end),
        cmocka_unit_test_setup_teardown(a_bad_row_harms_nobody, make, end),
        cmocka_unit_test_setup_teardown(alone_nobody_waits_for_company, make, end),
        cmocka_unit_test_setup_teardown(calls_are_bounded_in_bytes, make, end),
        cmocka_unit_test_setup_teardown(many_at_once, make, end),
        cmocka_unit_test_setup_teardown(what_is_missing_is_named, make, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
