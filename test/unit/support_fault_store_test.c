/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * support_fault_store_test.c - the store that fails on request fails as requested, and not
 * otherwise.
 * Owns:  a recording store of its own, so that what reaches the inner store can be counted.
 * Never: uses a real store: what is tested here is the wrapper alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault_store.h"

#include "store/store.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- a store that counts */

struct counting_store {
    struct pawl_store head;
    int calls[FAULT_VERBS];
    int answers; /* rises with every answer, so that answers can be told apart */
    int closed;
    int woken;
};

static struct counting_store *counting(pawl_store *store)
{
    return (struct counting_store *)store;
}

static int count_call(pawl_store *store, enum fault_verb verb)
{
    counting(store)->calls[verb]++;
    return ++counting(store)->answers;
}

static void fill_job(pawl_job *job, int answer)
{
    memset(job, 0, sizeof(*job));
    job->lease_version = answer;
    job->payload = malloc(8); /* a leak, or a double free, shows under ASan */
    job->payload_len = 8;
}

static pawl_code give_jobs(pawl_store *store, enum fault_verb verb, pawl_job *jobs, size_t *count)
{
    int answer = count_call(store, verb);
    fill_job(&jobs[0], answer);
    fill_job(&jobs[1], answer);
    *count = 2;
    return PAWL_OK;
}

static pawl_code count_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err)
{
    (void)err;
    int answer = count_call(store, FAULT_ENQUEUE);
    for (size_t i = 0; i < rows_count; i++)
        ret_results[i] = (pawl_enqueued){answer == 1 ? PAWL_OK : PAWL_EXISTS, rows[i].id};
    return PAWL_OK;
}

static pawl_code count_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)args, (void)jobs_max, (void)err;
    return give_jobs(store, FAULT_CLAIM, ret_jobs, ret_count);
}

static pawl_code count_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)worker, (void)after, (void)jobs_max, (void)err;
    return give_jobs(store, FAULT_MINE, ret_jobs, ret_count);
}

static pawl_code count_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    (void)worker, (void)rows, (void)rows_count, (void)err;
    ret_results[0] = (pawl_renewed){.code = PAWL_OK, .lease_ms = count_call(store, FAULT_RENEW)};
    return PAWL_OK;
}

static pawl_code count_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    (void)worker, (void)rows, (void)rows_count, (void)err;
    ret_results[0] = (pawl_settled){.attempt_no = count_call(store, FAULT_SETTLE)};
    return PAWL_OK;
}

static pawl_code count_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    (void)worker, (void)leases, (void)leases_count, (void)err;
    ret_codes[0] = count_call(store, FAULT_RELEASE) == 1 ? PAWL_OK : PAWL_STALE;
    return PAWL_OK;
}

static pawl_code count_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err)
{
    (void)rows_max, (void)err;
    ret_rows[0] = (pawl_reaped){.overdue_ms = count_call(store, FAULT_REAP)};
    *ret_count = 1;
    return PAWL_OK;
}

static pawl_code count_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    (void)id, (void)err;
    fill_job(ret_job, count_call(store, FAULT_GET));
    return PAWL_OK;
}

static pawl_code count_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)filter, (void)after, (void)jobs_max, (void)err;
    return give_jobs(store, FAULT_LIST, ret_jobs, ret_count);
}

static pawl_code count_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)jobs_max, (void)err;
    *ret_count = (size_t)count_call(store, FAULT_PRUNE);
    return PAWL_OK;
}

static pawl_code count_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                   pawl_err *err)
{
    (void)err;
    assert_string_equal(queue, "mail");
    assert_true(is_paused);
    (void)count_call(store, FAULT_QUEUE_PAUSE);
    return PAWL_OK;
}

static pawl_code count_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    (void)err;
    ret_now->us = count_call(store, FAULT_NOW);
    return PAWL_OK;
}

static void count_wake(pawl_store *store)
{
    counting(store)->woken++;
}

static void count_close(pawl_store *store)
{
    counting(store)->closed++; /* the test owns the memory */
}

static const struct pawli_store_ops counting_ops = {.name = "counting",
                                                    .close = count_close,
                                                    .enqueue = count_enqueue,
                                                    .claim = count_claim,
                                                    .mine = count_mine,
                                                    .renew = count_renew,
                                                    .settle = count_settle,
                                                    .release = count_release,
                                                    .reap = count_reap,
                                                    .prune = count_prune,
                                                    .get = count_get,
                                                    .list = count_list,
                                                    .queue_pause = count_queue_pause,
                                                    .now = count_now,
                                                    .wake = count_wake};

/* ---------------------------------------------------------------- the tests */

struct pair {
    struct counting_store inner;
    pawl_store *outer;
};

static int plug(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    pair->inner.head.ops = &counting_ops;
    pair->inner.head.limits.payload_max = 77;
    assert_int_equal(fault_store_open(&pair->inner.head, &pair->outer, NULL), PAWL_OK);
    *state = pair;
    return 0;
}

static int unplug(void **state)
{
    struct pair *pair = *state;
    pawl_store_close(pair->outer);
    int closed = pair->inner.closed;
    free(pair);
    return closed == 1 ? 0 : -1; /* the wrapper took the inner store, and closes it once */
}

static void add(struct pair *pair, enum fault_verb verb, int64_t nth, enum fault_kind kind)
{
    struct fault fault = {.verb = verb, .nth = nth, .kind = kind};
    assert_int_equal(fault_store_add(pair->outer, &fault), PAWL_OK);
}

static pawl_code prune(struct pair *pair, size_t *ret_count)
{
    return pair->outer->ops->prune(pair->outer, 1, ret_count, NULL);
}

static void passes_calls_on_and_counts_them(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(pair->outer->limits.payload_max, 77);
    size_t count = 0;
    assert_int_equal(prune(pair, &count), PAWL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(pair->outer->ops->queue_pause(pair->outer, "mail", true, NULL), PAWL_OK);
    assert_int_equal(fault_store_asked(pair->outer, FAULT_PRUNE), 1);
    assert_int_equal(fault_store_executed(pair->outer, FAULT_PRUNE), 1);
    assert_int_equal(fault_store_asked(pair->outer, FAULT_ANY_VERB), 2);
    assert_int_equal(pair->inner.calls[FAULT_QUEUE_PAUSE], 1);
    pair->outer->ops->wake(pair->outer);
    assert_int_equal(pair->inner.woken, 1);
}

static void down_and_lost_requests_do_not_arrive(void **state)
{
    struct pair *pair = *state;
    size_t count = 99;
    add(pair, FAULT_PRUNE, 1, FAULT_DOWN);
    add(pair, FAULT_PRUNE, 2, FAULT_LOST_REQUEST);
    assert_int_equal(prune(pair, &count), PAWL_DOWN);
    assert_int_equal(prune(pair, &count), PAWL_UNKNOWN);
    assert_int_equal(pair->inner.calls[FAULT_PRUNE], 0);
    assert_int_equal(count, 99);
    assert_int_equal(prune(pair, &count), PAWL_OK);
    assert_int_equal(fault_store_executed(pair->outer, FAULT_PRUNE), 1);
    assert_int_equal(fault_store_asked(pair->outer, FAULT_PRUNE), 3);
}

static void a_lost_reply_is_executed_and_leaves_the_results_alone(void **state)
{
    struct pair *pair = *state;
    pawl_settle_row row = {0};
    pawl_settled settled = {.attempt_no = 55};
    pawl_err err = {.code = PAWL_OK};
    add(pair, FAULT_SETTLE, 1, FAULT_LOST_REPLY);
    assert_int_equal(pair->outer->ops->settle(pair->outer, "w", &row, 1, &settled, &err),
                     PAWL_UNKNOWN);
    assert_int_equal(err.code, PAWL_UNKNOWN);
    assert_int_equal(settled.attempt_no, 55);
    assert_int_equal(pair->inner.calls[FAULT_SETTLE], 1);
}

/* Under ASan this also proves that what a lost reply owned was freed. */
static void a_lost_reply_frees_the_jobs_in_it(void **state)
{
    struct pair *pair = *state;
    pawl_job jobs[2];
    memset(jobs, 0x5a, sizeof(jobs));
    pawl_job untouched = jobs[0];
    size_t count = 99;
    const struct pawli_store_ops *ops = pair->outer->ops;
    add(pair, FAULT_ANY_VERB, 1, FAULT_LOST_REPLY);
    add(pair, FAULT_ANY_VERB, 2, FAULT_LOST_REPLY);
    add(pair, FAULT_ANY_VERB, 3, FAULT_LOST_REPLY);
    add(pair, FAULT_ANY_VERB, 4, FAULT_LOST_REPLY);
    assert_int_equal(ops->claim(pair->outer, NULL, jobs, 2, &count, NULL), PAWL_UNKNOWN);
    assert_int_equal(ops->mine(pair->outer, "w", NULL, jobs, 2, &count, NULL), PAWL_UNKNOWN);
    assert_int_equal(ops->list(pair->outer, NULL, NULL, jobs, 2, &count, NULL), PAWL_UNKNOWN);
    assert_int_equal(ops->get(pair->outer, NULL, jobs, NULL), PAWL_UNKNOWN);
    assert_int_equal(pair->inner.answers, 4);
    assert_int_equal(count, 99);
    assert_memory_equal(&jobs[0], &untouched, sizeof(untouched));
    assert_int_equal(fault_store_left(pair->outer), 0);
}

static void twice_gives_the_answer_that_was_asked_for(void **state)
{
    struct pair *pair = *state;
    pawl_job jobs[2] = {0};
    size_t count = 0;
    const struct pawli_store_ops *ops = pair->outer->ops;
    add(pair, FAULT_CLAIM, 1, FAULT_TWICE_FIRST);
    assert_int_equal(ops->claim(pair->outer, NULL, jobs, 2, &count, NULL), PAWL_OK);
    assert_int_equal(jobs[1].lease_version, 1);
    assert_int_equal(count, 2);
    pawl_job_clear(&jobs[0]);
    pawl_job_clear(&jobs[1]);
    add(pair, FAULT_CLAIM, 1, FAULT_TWICE_SECOND);
    assert_int_equal(ops->claim(pair->outer, NULL, jobs, 2, &count, NULL), PAWL_OK);
    assert_int_equal(jobs[1].lease_version, 4);
    pawl_job_clear(&jobs[0]);
    pawl_job_clear(&jobs[1]);
    assert_int_equal(pair->inner.calls[FAULT_CLAIM], 4);

    pawl_code codes[1] = {PAWL_INVALID};
    add(pair, FAULT_RELEASE, 1, FAULT_TWICE_SECOND);
    assert_int_equal(ops->release(pair->outer, "w", NULL, 1, codes, NULL), PAWL_OK);
    assert_int_equal(codes[0], PAWL_STALE);
    pawl_renewed renewed;
    add(pair, FAULT_RENEW, 1, FAULT_TWICE_FIRST);
    assert_int_equal(ops->renew(pair->outer, "w", NULL, 1, &renewed, NULL), PAWL_OK);
    assert_int_equal(renewed.lease_ms, 7);
    pawl_wall now;
    add(pair, FAULT_NOW, 1, FAULT_TWICE_SECOND);
    assert_int_equal(ops->now(pair->outer, &now, NULL), PAWL_OK);
    assert_int_equal(now.us, 10);
}

static void entries_wait_for_their_call(void **state)
{
    struct pair *pair = *state;
    size_t count = 0;
    pawl_wall now;
    add(pair, FAULT_PRUNE, 2, FAULT_DOWN);
    assert_int_equal(pair->outer->ops->now(pair->outer, &now, NULL), PAWL_OK);
    assert_int_equal(prune(pair, &count), PAWL_OK);
    assert_int_equal(fault_store_left(pair->outer), 1);
    assert_int_equal(prune(pair, &count), PAWL_DOWN);
    assert_int_equal(fault_store_left(pair->outer), 0);
    assert_int_equal(prune(pair, &count), PAWL_OK);
    add(pair, FAULT_PRUNE, 1, FAULT_DOWN);            /* counted from here */
    add(pair, FAULT_ANY_VERB, 1, FAULT_LOST_REQUEST); /* fits too, but is younger */
    assert_int_equal(prune(pair, &count), PAWL_DOWN);
    assert_int_equal(pair->outer->ops->now(pair->outer, &now, NULL), PAWL_UNKNOWN);

    add(pair, FAULT_PRUNE, 1, FAULT_DOWN);
    add(pair, FAULT_PRUNE, 1, FAULT_LOST_REQUEST); /* its call is gone, so the next of its verb */
    assert_int_equal(prune(pair, &count), PAWL_DOWN);
    assert_int_equal(pair->outer->ops->now(pair->outer, &now, NULL), PAWL_OK);
    assert_int_equal(prune(pair, &count), PAWL_UNKNOWN);
}

static void a_full_script_is_refused(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < FAULT_SCRIPT_MAX; i++)
        add(pair, FAULT_NOW, i + 1, FAULT_DOWN);
    struct fault fault = {.verb = FAULT_NOW, .nth = 1, .kind = FAULT_DOWN};
    assert_int_equal(fault_store_add(pair->outer, &fault), PAWL_FULL);
}

struct witness {
    struct pair *pair;
    int executed_at_request;
    int executed_at_reply;
};

static void see_request(void *user)
{
    struct witness *witness = user;
    witness->executed_at_request = witness->pair->inner.answers;
}

static void see_reply(void *user)
{
    struct witness *witness = user;
    witness->executed_at_reply = witness->pair->inner.answers;
}

static void hooks_run_before_the_request_and_before_the_reply(void **state)
{
    struct pair *pair = *state;
    struct witness witness = {pair, -1, -1};
    struct fault fault = {.verb = FAULT_ENQUEUE,
                          .nth = 1,
                          .before_request = see_request,
                          .before_reply = see_reply,
                          .user = &witness};
    assert_int_equal(fault_store_add(pair->outer, &fault), PAWL_OK);
    pawl_enqueue_row row = {0};
    pawl_enqueued result;
    assert_int_equal(pair->outer->ops->enqueue(pair->outer, &row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(witness.executed_at_request, 0);
    assert_int_equal(witness.executed_at_reply, 1);
    assert_int_equal(result.code, PAWL_OK);

    fault.kind = FAULT_DOWN; /* held up, and then lost: there is no reply */
    witness.executed_at_reply = -1;
    assert_int_equal(fault_store_add(pair->outer, &fault), PAWL_OK);
    assert_int_equal(pair->outer->ops->enqueue(pair->outer, &row, 1, &result, NULL), PAWL_DOWN);
    assert_int_equal(witness.executed_at_request, 1);
    assert_int_equal(witness.executed_at_reply, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(passes_calls_on_and_counts_them, plug, unplug),
        cmocka_unit_test_setup_teardown(down_and_lost_requests_do_not_arrive, plug, unplug),
        cmocka_unit_test_setup_teardown(a_lost_reply_is_executed_and_leaves_the_results_alone, plug,
                                        unplug),
        cmocka_unit_test_setup_teardown(a_lost_reply_frees_the_jobs_in_it, plug, unplug),
        cmocka_unit_test_setup_teardown(twice_gives_the_answer_that_was_asked_for, plug, unplug),
        cmocka_unit_test_setup_teardown(entries_wait_for_their_call, plug, unplug),
        cmocka_unit_test_setup_teardown(a_full_script_is_refused, plug, unplug),
        cmocka_unit_test_setup_teardown(hooks_run_before_the_request_and_before_the_reply, plug,
                                        unplug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
