/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_carriers_test.c - proves that requests which come while a transaction is under way share
 *                         the next one, and are answered when it has ended. The store waits until
 *                         the test lets it go on: nothing hangs on time. And that what has no room
 *                         for its answer is not carried out.
 * Owns:  the server's threads, without the HTTP library; the gate before the store.
 * Never: sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/exchange.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCERS 100
#define THREADS   8

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int calls;     /* enqueues that the store was asked for */
    int allowed;   /* of which so many may go on */
    int answered;  /* requests */
    bool is_empty; /* one of them has no answer */
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static struct pawli_serve serve;
static pawl_memory *memory;
static struct pawli_store_ops gated;
static pawl_code (*enqueue)(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                            pawl_enqueued *ret_results, pawl_err *err);

/* ---- what stands around the carriers */

static pawl_code enqueue_behind_gate(pawl_store *store, const pawl_enqueue_row *rows,
                                     size_t rows_count, pawl_enqueued *ret_results, pawl_err *err)
{
    (void)pthread_mutex_lock(&gate.mutex);
    gate.calls++;
    (void)pthread_cond_broadcast(&gate.cond);
    while (gate.calls > gate.allowed)
        (void)pthread_cond_wait(&gate.cond, &gate.mutex);
    (void)pthread_mutex_unlock(&gate.mutex);
    return enqueue(store, rows, rows_count, ret_results, err);
}

static pawl_code open_store(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    (void)user;
    (void)role;
    pawl_code code = pawl_memory_open(memory, ret_store, err);
    (void)pthread_mutex_lock(&gate.mutex);
    if (code == PAWL_OK) {
        if (enqueue == NULL) { /* the first handle: all have the same table */
            gated = *(*ret_store)->ops;
            enqueue = gated.enqueue;
            gated.enqueue = enqueue_behind_gate;
        }
        (*ret_store)->ops = &gated;
    }
    (void)pthread_mutex_unlock(&gate.mutex);
    return code;
}

void pawli_http_resume(struct pawli_exchange *exchange)
{
    (void)pthread_mutex_lock(&gate.mutex);
    gate.answered++;
    gate.is_empty = gate.is_empty || exchange->answer.status == 0;
    (void)pthread_cond_broadcast(&gate.cond);
    (void)pthread_mutex_unlock(&gate.mutex);
}

void pawli_wait_for_work(struct pawli_exchange *exchange)
{
    (void)exchange;
    abort(); /* nobody claims here */
}

void pawli_waiting_wake(struct pawli_serve *of)
{
    (void)of; /* nobody waits */
}

static void wait_until(const int *number, int wanted)
{
    (void)pthread_mutex_lock(&gate.mutex);
    while (*number < wanted)
        (void)pthread_cond_wait(&gate.cond, &gate.mutex);
    (void)pthread_mutex_unlock(&gate.mutex);
}

static void allow(int calls)
{
    (void)pthread_mutex_lock(&gate.mutex);
    gate.allowed = calls;
    (void)pthread_cond_broadcast(&gate.cond);
    (void)pthread_mutex_unlock(&gate.mutex);
}

static struct pawli_exchange *ask_by(const char *method, const char *target)
{
    struct pawli_exchange *exchange = pawli_exchange_new(&serve, target);
    assert_non_null(exchange);
    assert_int_equal(pawli_uri_parse(exchange->target, &exchange->uri, NULL), PAWL_OK);
    exchange->call.route = pawli_route_find(method, &exchange->uri, exchange->call.captures,
                                            &exchange->answer);
    assert_non_null(exchange->call.route);
    pawli_grant_all(&exchange->grant);
    exchange->call.body = exchange->nothing;
    exchange->phase = PAWLI_PHASE_CARRIED;
    assert_true(pawli_carry(exchange));
    return exchange;
}

static struct pawli_exchange *ask(const char *target)
{
    return ask_by("POST", target);
}

static void *run_carrier(void *user)
{
    pawli_carrier_run(user);
    return NULL;
}

/* ---- the cases */

static void set_up(void)
{
    assert_int_equal(pawl_memory_new(NULL, &memory, NULL), PAWL_OK);
    serve = (struct pawli_serve){.clock = pawl_clock_system(), .opener = {.open = open_store}};
    serve.host = (struct pawli_host){.clock = serve.clock, .user = &serve};
    assert_int_equal(pthread_mutex_init(&serve.line_lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&serve.line_cond, NULL), 0);
}

static void a_hundred_producers_take_two_transactions(void **state)
{
    (void)state;
    struct pawli_exchange *exchanges[PRODUCERS];
    pthread_t threads[THREADS];
    set_up();
    for (size_t i = 0; i < THREADS; i++) {
        serve.carriers++;
        assert_int_equal(pthread_create(&threads[i], NULL, run_carrier, &serve), 0);
    }
    exchanges[0] = ask("/v1/queues/q/jobs");
    wait_until(&gate.calls, 1); /* it is under way, and seven threads have nothing to do */
    for (int i = 1; i < PRODUCERS; i++)
        exchanges[i] = ask(i == 50 ? "/v1/queues/q/jobs?priority=99" : "/v1/queues/q/jobs");
    assert_int_equal(atomic_load(&serve.figures.in_line), PRODUCERS - 1);
    allow(1);
    wait_until(&gate.calls, 2);
    wait_until(&gate.answered, 1);
    (void)pthread_mutex_lock(&gate.mutex);
    assert_int_equal(gate.answered, 1); /* the others only when theirs has ended */
    (void)pthread_mutex_unlock(&gate.mutex);
    allow(2);
    wait_until(&gate.answered, PRODUCERS);
    pawli_carriers_end(&serve);
    for (size_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(gate.calls, 2);
    assert_int_equal(atomic_load(&serve.figures.transactions), 2);
    assert_int_equal(atomic_load(&serve.figures.joined), PRODUCERS);
    assert_false(gate.is_empty);
    for (int i = 0; i < PRODUCERS; i++) {
        assert_int_equal(exchanges[i]->answer.status, i == 50 ? 400 : 201);
        pawli_exchange_free(exchanges[i]);
    }
    pawl_memory_free(memory);
}

/* Readers that do not read hold answers in memory: others are not given more of them. */
static void what_has_no_room_for_its_answer_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        const char *target;
        unsigned when_free;
        unsigned when_full;
    } cases[] = {{"GET", "/v1/jobs", 200, 503},
                 {"GET", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/payload", 404, 503},
                 {"POST", "/v1/claim", 400, 503}, /* there is no body */
                 {"POST", "/v1/settle", 400, 400}};
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_full = i % 2 == 1;
        set_up();
        serve.limits.memory_bytes = 1000;
        (void)atomic_fetch_add(&serve.figures.held, is_full ? 1001 : 1000);
        struct pawli_exchange *exchange = ask_by(cases[i / 2].method, cases[i / 2].target);
        pawli_carriers_end(&serve);
        serve.carriers++;
        pawli_carrier_run(&serve);
        assert_int_equal(exchange->answer.status,
                         is_full ? cases[i / 2].when_full : cases[i / 2].when_free);
        pawli_exchange_free(exchange);
        pawl_memory_free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_producers_take_two_transactions),
        cmocka_unit_test(what_has_no_room_for_its_answer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
