/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_trace_store_test.c - the traced store passes every call on as it came, gives back what it
 * got, and records what the checker needs.
 * Owns:  a store that answers everything with values made up here.
 * Never: needs a real store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "store/store.h"
#include "store/trace.h"
#include "support/alloc_fail.h"

/* ---------------------------------------------------------------- a store of made-up answers */

struct fake {
    pawl_store head;
    struct pawli_manual_clock *clock; /* turned by each call: it takes 3 ms */
    pawl_code code;                   /* what every call answers */
    pawl_code row_code;               /* what every row is told */
    size_t count;                     /* rows given out */
    int calls;
    const void *arg; /* the last call's main argument */
    bool is_closed;
};

static pawl_token fake_token(void)
{
    pawl_token token;
    memset(token.bytes, 0x5a, sizeof(token.bytes));
    return token;
}

static pawl_id fake_id(uint8_t n)
{
    pawl_id id = {{n, 1, 2, 3}};
    return id;
}

static pawl_code answer(pawl_store *store, const void *arg)
{
    struct fake *fake = (struct fake *)store;
    fake->calls++;
    fake->arg = arg;
    pawli_manual_clock_turn_ms(fake->clock, 3);
    return fake->code;
}

static void fake_close(pawl_store *store)
{
    ((struct fake *)store)->is_closed = true;
}

static pawl_code fake_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                              pawl_enqueued *ret_results, pawl_err *err)
{
    (void)err;
    for (size_t i = 0; i < rows_count; i++)
        ret_results[i] = (pawl_enqueued){.code = ((struct fake *)store)->row_code,
                                         .id = rows[i].id};
    return answer(store, rows);
}

static size_t give_jobs(pawl_store *store, pawl_job *jobs)
{
    size_t count = ((struct fake *)store)->count;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (pawl_job){
            .id = fake_id((uint8_t)(i + 1)),
            .state = PAWL_IN_FLIGHT,
            .retries = 1,
            .lost_leases = 2,
            .attempts = 3,
            .lease_version = 4,
            .max_retries = 5,
            .due_at = {6},
            .start_by = {7},
            .finished_at = {8},
            .reason = PAWL_REASON_ERROR,
            .token = fake_token(),
            .claimed_at = {9},
            .expires_at = {10},
            .run_until = {11},
            .lease_ms = 12,
            .timeout_ms = 13,
            .is_cancel_asked = true,
            .fence = 14,
        };
        pawli_text_copy(jobs[i].ordering_key, sizeof(jobs[i].ordering_key), "k");
        pawli_text_copy(jobs[i].queue, sizeof(jobs[i].queue), "q");
        pawli_text_copy(jobs[i].worker, sizeof(jobs[i].worker), "w");
    }
    return count;
}

static pawl_code fake_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                            size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)err, (void)jobs_max;
    *ret_count = give_jobs(store, ret_jobs);
    return answer(store, args);
}

static pawl_code fake_mine(pawl_store *store, const char *worker, const pawl_id *after,
                           pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)err, (void)jobs_max, (void)after;
    *ret_count = give_jobs(store, ret_jobs);
    return answer(store, worker);
}

static pawl_code fake_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                            size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    (void)err, (void)worker;
    for (size_t i = 0; i < rows_count; i++)
        ret_results[i] = (pawl_renewed){
            .code = ((struct fake *)store)->row_code, .expires_at = {21}, .lease_ms = 22};
    return answer(store, rows);
}

static pawl_code fake_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                             size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    (void)err, (void)worker;
    for (size_t i = 0; i < rows_count; i++)
        ret_results[i] = (pawl_settled){.code = ((struct fake *)store)->row_code,
                                        .state = PAWL_FAILED,
                                        .due_at = {23},
                                        .attempt_no = 24};
    return answer(store, rows);
}

static pawl_code fake_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                              size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    (void)err, (void)worker;
    for (size_t i = 0; i < leases_count; i++)
        ret_codes[i] = ((struct fake *)store)->row_code;
    return answer(store, leases);
}

static pawl_code fake_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                           size_t *ret_count, pawl_err *err)
{
    (void)err, (void)rows_max;
    *ret_count = ((struct fake *)store)->count;
    for (size_t i = 0; i < *ret_count; i++) {
        ret_rows[i] = (pawl_reaped){.job = fake_id(1),
                                    .lease_version = 4,
                                    .state = PAWL_FAILED,
                                    .reason = PAWL_REASON_POISON,
                                    .due_at = {31},
                                    .overdue_ms = 32};
        pawli_text_copy(ret_rows[i].queue, sizeof(ret_rows[i].queue), "q");
        pawli_text_copy(ret_rows[i].worker, sizeof(ret_rows[i].worker), "w");
    }
    return answer(store, ret_rows);
}

static pawl_code fake_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)err, (void)jobs_max;
    *ret_count = ((struct fake *)store)->count;
    return answer(store, ret_count);
}

static pawl_code fake_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    (void)err, (void)ret_job;
    return answer(store, id);
}

static pawl_code fake_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                           pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    (void)err, (void)after, (void)jobs_max;
    *ret_count = give_jobs(store, ret_jobs);
    return answer(store, filter);
}

static pawl_code fake_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                               pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                               pawl_err *err)
{
    (void)err, (void)after_no, (void)rows_max;
    *ret_count = ((struct fake *)store)->count;
    for (size_t i = 0; i < *ret_count; i++) {
        ret_rows[i] = (pawl_attempt){.attempt_no = 41,
                                     .outcome = PAWL_ZOMBIE_REQUEUE,
                                     .reason = PAWL_REASON_EXPIRED,
                                     .ended_by = PAWL_ENDED_BY_EXPIRY,
                                     .lease_version = 4,
                                     .started_at = {42},
                                     .finished_at = {43}};
        pawli_text_copy(ret_rows[i].worker, sizeof(ret_rows[i].worker), "w");
    }
    return answer(store, id);
}

static pawl_code fake_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                             pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                             pawl_err *err)
{
    (void)err, (void)filter, (void)after, (void)rows_max, (void)ret_count;
    return answer(store, ret_rows);
}

static pawl_code fake_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    (void)err;
    return answer(store, args);
}

static pawl_code fake_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    (void)err;
    return answer(store, name);
}

static pawl_code fake_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    (void)err, (void)after, (void)rows_max, (void)ret_count;
    return answer(store, ret_rows);
}

static pawl_code fake_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                  size_t rows_max, size_t *ret_count, pawl_err *err)
{
    (void)err, (void)after, (void)rows_max, (void)ret_count;
    return answer(store, ret_rows);
}

static pawl_code fake_queue_get(pawl_store *store, const char *queue,
                                pawl_queue_settings *ret_settings, pawl_err *err)
{
    (void)err, (void)ret_settings;
    return answer(store, queue);
}

static pawl_code fake_queue_set(pawl_store *store, const char *queue,
                                const pawl_queue_settings *settings, pawl_err *err)
{
    (void)err, (void)queue;
    return answer(store, settings);
}

static pawl_code fake_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                  pawl_err *err)
{
    (void)err, (void)is_paused;
    return answer(store, queue);
}

static pawl_code fake_change(pawl_store *store, const pawl_id *ids, size_t ids_count,
                             pawl_changed *ret_results, pawl_err *err)
{
    (void)err;
    for (size_t i = 0; i < ids_count; i++)
        ret_results[i] = (pawl_changed){.code = ((struct fake *)store)->row_code,
                                        .state = PAWL_IN_FLIGHT};
    return answer(store, ids);
}

static pawl_code fake_change_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                   size_t *ret_count, pawl_err *err)
{
    (void)err, (void)jobs_max;
    *ret_count = ((struct fake *)store)->count;
    return answer(store, filter);
}

static pawl_code fake_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    (void)err;
    return answer(store, ret_now);
}

static pawl_code fake_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    (void)err, (void)timeout_ms;
    return answer(store, ret_hint);
}

static void fake_wake(pawl_store *store)
{
    (void)answer(store, store);
}

static const struct pawli_store_ops fake_ops = {
    .name = "fake",
    .close = fake_close,
    .enqueue = fake_enqueue,
    .claim = fake_claim,
    .mine = fake_mine,
    .renew = fake_renew,
    .settle = fake_settle,
    .release = fake_release,
    .reap = fake_reap,
    .prune = fake_prune,
    .get = fake_get,
    .list = fake_list,
    .attempts = fake_attempts,
    .leases = fake_leases,
    .worker_seen = fake_worker_seen,
    .worker_ended = fake_worker_ended,
    .workers = fake_workers,
    .queue_stats = fake_queue_stats,
    .queue_get = fake_queue_get,
    .queue_set = fake_queue_set,
    .queue_pause = fake_queue_pause,
    .cancel = fake_change,
    .redrive = fake_change,
    .discard = fake_change,
    .cancel_where = fake_change_where,
    .redrive_where = fake_change_where,
    .discard_where = fake_change_where,
    .now = fake_now,
    .wait = fake_wait,
    .wake = fake_wake,
};

/* ---------------------------------------------------------------- the bench */

struct bench {
    struct pawli_manual_clock manual;
    pawl_clock clock;
    struct fake fake;
    struct pawli_trace_writer *writer;
    pawl_store *store;
    const struct pawli_store_ops *ops;
    struct pawli_trace_reader *reader;
    struct pawli_trace_record record; /* the last one read */
};

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    bench->manual = (struct pawli_manual_clock){{1000000}, {5000000}};
    bench->clock = pawli_manual_clock_as_clock(&bench->manual);
    bench->fake = (struct fake){.head = {.ops = &fake_ops, .limits = {.payload_max = 77}},
                                .clock = &bench->manual,
                                .count = 1};
    assert_int_equal(pawli_trace_writer_new(NULL, &bench->writer, NULL), PAWL_OK);
    struct pawli_trace_args args = {.inner = &bench->fake.head,
                                    .writer = bench->writer,
                                    .actor = "worker-1",
                                    .clock = &bench->clock,
                                    .store_clock = &bench->clock};
    assert_int_equal(pawli_trace_open(&args, &bench->store, NULL), PAWL_OK);
    bench->ops = bench->store->ops;
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    pawli_trace_reader_free(bench->reader);
    bench->ops->close(bench->store);
    assert_true(bench->fake.is_closed);
    pawli_trace_writer_free(bench->writer);
    free(bench);
    return 0;
}

/* The one record of the history so far, and begin a new one. NULL: there is none. */
static const struct pawli_trace_record *recorded(struct bench *bench)
{
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(bench->writer, &len);
    pawli_trace_reader_free(bench->reader);
    bench->reader = NULL;
    assert_int_equal(pawli_trace_reader_new(bytes, len, &bench->reader, NULL), PAWL_OK);
    bool is_more = false;
    assert_int_equal(pawli_trace_read(bench->reader, &bench->record, &is_more, NULL), PAWL_OK);
    if (!is_more)
        return NULL;
    struct pawli_trace_record second;
    bool is_second = true;
    struct pawli_trace_row row = bench->record.rows_count > 0 ? bench->record.rows[0]
                                                              : (struct pawli_trace_row){0};
    assert_int_equal(pawli_trace_read(bench->reader, &second, &is_second, NULL), PAWL_OK);
    assert_false(is_second);
    if (bench->record.rows_count > 0)
        assert_memory_equal(&row, &bench->record.rows[0], sizeof(row));
    pawli_trace_writer_reset(bench->writer);
    return &bench->record;
}

/* The head of every call on this bench: it took 3 ms, and the store's clock was read after it. */
static void check_head(const struct pawli_trace_record *record, enum pawli_trace_verb verb,
                       const char *subject)
{
    assert_non_null(record);
    assert_int_equal(record->kind, PAWLI_RECORD_CALL);
    assert_int_equal(record->verb, verb);
    assert_string_equal(record->actor, "worker-1");
    assert_string_equal(record->subject, subject);
    assert_int_equal(record->until.us - record->at.us, 3000);
    assert_int_equal(record->store_at.us - record->until.us, 4000000);
}

/* ---------------------------------------------------------------- tests */

static void enqueues_are_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_enqueue_row rows[2] = {
        {.id = fake_id(1),
         .queue = "q",
         .payload = "secret",
         .payload_len = 6,
         .delay_ms = 5,
         .start_within_ms = 6,
         .max_retries = 7,
         .timeout_ms = 8,
         .backoff_base_ms = 9,
         .backoff_max_ms = 10,
         .ordering_key = "k"},
        {.id = fake_id(2), .queue = "q", .payload = "secret", .payload_len = 6},
    };
    pawl_enqueued results[2];
    bench->fake.row_code = PAWL_EXISTS;
    assert_int_equal(bench->ops->enqueue(bench->store, rows, 2, results, NULL), PAWL_OK);
    assert_ptr_equal(bench->fake.arg, rows);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(bench->writer, &len);
    for (size_t i = 0; i + 6 <= len; i++) /* NFR-003 */
        assert_memory_not_equal(bytes + i, "secret", 6);
    const struct pawli_trace_record *record = recorded(bench);
    check_head(record, PAWLI_VERB_ENQUEUE, "");
    assert_int_equal(record->rows_count, 2);
    const struct pawli_trace_row *row = &record->rows[0];
    assert_memory_equal(&row->job, &rows[0].id, sizeof(row->job));
    assert_int_equal(row->code, PAWL_EXISTS);
    assert_string_equal(row->queue, "q");
    assert_int_equal(row->delay_ms, 5);
    assert_int_equal(row->start_within_ms, 6);
    assert_int_equal(row->max_retries, 7);
    assert_int_equal(row->timeout_ms, 8);
    assert_int_equal(row->backoff_base_ms, 9);
    assert_int_equal(row->backoff_max_ms, 10);
    assert_string_equal(row->ordering_key, "k");
    assert_string_equal(record->rows[1].ordering_key, "");
}

/* What may have been done keeps its rows; what was not done does not. */
static void failed_calls_are_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_settle_row row = {.lease = {.job = fake_id(1), .version = 3}, .action = PAWL_FAIL};
    pawl_settled result;
    bench->fake.code = PAWL_UNKNOWN;
    assert_int_equal(bench->ops->settle(bench->store, "w", &row, 1, &result, NULL), PAWL_UNKNOWN);
    const struct pawli_trace_record *record = recorded(bench);
    check_head(record, PAWLI_VERB_SETTLE, "w");
    assert_int_equal(record->code, PAWL_UNKNOWN);
    assert_int_equal(record->rows_count, 1);
    assert_int_equal(record->rows[0].code, PAWL_UNKNOWN);
    assert_int_equal(record->rows[0].action, PAWL_FAIL);
    assert_int_equal(record->rows[0].version, 3);
    assert_int_equal(record->rows[0].attempt_no, 0);

    bench->fake.code = PAWL_DOWN;
    assert_int_equal(bench->ops->settle(bench->store, "w", &row, 1, &result, NULL), PAWL_DOWN);
    record = recorded(bench);
    assert_int_equal(record->code, PAWL_DOWN);
    assert_int_equal(record->rows_count, 0);

    pawl_job job;
    size_t count = 0;
    pawl_claim_args args = {.worker = "w"};
    bench->fake.code = PAWL_UNKNOWN;
    assert_int_equal(bench->ops->claim(bench->store, &args, &job, 1, &count, NULL), PAWL_UNKNOWN);
    record = recorded(bench);
    check_head(record, PAWLI_VERB_CLAIM, "w");
    assert_int_equal(record->code, PAWL_UNKNOWN);
    assert_int_equal(record->rows_count, 0);
}

static void grants_are_recorded_without_their_tokens(void **state)
{
    struct bench *bench = *state;
    pawl_job jobs[2];
    size_t count = 0;
    pawl_claim_args args = {.worker = "w"};
    bench->fake.count = 2;
    for (int is_mine = 0; is_mine < 2; is_mine++) {
        if (is_mine == 0)
            assert_int_equal(bench->ops->claim(bench->store, &args, jobs, 2, &count, NULL), 0);
        else
            assert_int_equal(bench->ops->mine(bench->store, "w", NULL, jobs, 2, &count, NULL), 0);
        assert_int_equal(count, 2);
        pawl_token token = fake_token();
        size_t len = 0;
        const uint8_t *bytes = pawli_trace_bytes(bench->writer, &len);
        for (size_t i = 0; i + 4 <= len; i++)
            assert_memory_not_equal(bytes + i, token.bytes, 4);
        const struct pawli_trace_record *record = recorded(bench);
        check_head(record, is_mine == 0 ? PAWLI_VERB_CLAIM : PAWLI_VERB_MINE, "w");
        assert_int_equal(record->rows_count, 2);
        const struct pawli_trace_row *row = &record->rows[0];
        assert_true(row->token_digest == pawli_trace_digest(&token));
        assert_int_equal(row->version, 4);
        assert_int_equal(row->retries, 1);
        assert_int_equal(row->lost_leases, 2);
        assert_int_equal(row->attempts, 3);
        assert_int_equal(row->max_retries, 5);
        assert_int_equal(row->due_at.us, 6);
        assert_int_equal(row->start_by.us, 7);
        assert_int_equal(row->claimed_at.us, 9);
        assert_int_equal(row->expires_at.us, 10);
        assert_int_equal(row->run_until.us, 11);
        assert_int_equal(row->lease_ms, 12);
        assert_int_equal(row->timeout_ms, 13);
        assert_true(row->is_cancel_asked);
        assert_string_equal(row->queue, "q");
        assert_string_equal(row->ordering_key, "k");
        assert_int_equal(row->fence, 14);
    }
    bench->fake.count = 0;
    assert_int_equal(bench->ops->claim(bench->store, &args, jobs, 2, &count, NULL), PAWL_OK);
    assert_int_equal(bench->ops->mine(bench->store, "w", NULL, jobs, 2, &count, NULL), PAWL_OK);
    assert_null(recorded(bench));
}

static void what_holders_say_is_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_lease lease = {.job = fake_id(1), .token = fake_token(), .version = 4};
    uint64_t digest = pawli_trace_digest(&lease.token);
    pawl_renew_row renew = {.lease = lease, .is_unstarted = true, .lease_ms = 50};
    pawl_renewed renewed;
    assert_int_equal(bench->ops->renew(bench->store, "w", &renew, 1, &renewed, NULL), PAWL_OK);
    const struct pawli_trace_record *record = recorded(bench);
    check_head(record, PAWLI_VERB_RENEW, "w");
    assert_true(record->rows[0].token_digest == digest);
    assert_int_equal(record->rows[0].expires_at.us, 21);
    assert_int_equal(record->rows[0].lease_ms, 22);
    assert_true(record->rows[0].is_unstarted);

    pawl_settle_row settle = {
        .lease = lease, .action = PAWL_RETRY, .reason = PAWL_REASON_TIMEOUT, .delay_ms = 60};
    pawl_settled settled;
    assert_int_equal(bench->ops->settle(bench->store, "w", &settle, 1, &settled, NULL), PAWL_OK);
    record = recorded(bench);
    check_head(record, PAWLI_VERB_SETTLE, "w");
    const struct pawli_trace_row *row = &record->rows[0];
    assert_true(row->token_digest == digest);
    assert_int_equal(row->action, PAWL_RETRY);
    assert_int_equal(row->reason, PAWL_REASON_TIMEOUT);
    assert_int_equal(row->delay_ms, 60);
    assert_int_equal(row->state, PAWL_FAILED);
    assert_int_equal(row->due_at.us, 23);
    assert_int_equal(row->attempt_no, 24);

    bench->fake.row_code = PAWL_STALE;
    pawl_code code = PAWL_OK;
    assert_int_equal(bench->ops->release(bench->store, "w", &lease, 1, &code, NULL), PAWL_OK);
    assert_int_equal(code, PAWL_STALE);
    record = recorded(bench);
    check_head(record, PAWLI_VERB_RELEASE, "w");
    assert_int_equal(record->rows[0].code, PAWL_STALE);
    assert_true(record->rows[0].token_digest == digest);
    assert_int_equal(record->rows[0].version, 4);
}

static void recovery_is_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_reaped reaped;
    size_t count = 0;
    assert_int_equal(bench->ops->reap(bench->store, &reaped, 1, &count, NULL), PAWL_OK);
    const struct pawli_trace_record *record = recorded(bench);
    check_head(record, PAWLI_VERB_REAP, "");
    const struct pawli_trace_row *row = &record->rows[0];
    assert_int_equal(row->version, 4);
    assert_int_equal(row->state, PAWL_FAILED);
    assert_int_equal(row->reason, PAWL_REASON_POISON);
    assert_int_equal(row->due_at.us, 31);
    assert_int_equal(row->overdue_ms, 32);
    assert_string_equal(row->queue, "q");
    assert_string_equal(row->worker, "w");

    bench->fake.count = 5;
    assert_int_equal(bench->ops->prune(bench->store, 9, &count, NULL), PAWL_OK);
    record = recorded(bench);
    check_head(record, PAWLI_VERB_PRUNE, "");
    assert_int_equal(record->count, 5);

    bench->fake.count = 0;
    assert_int_equal(bench->ops->reap(bench->store, &reaped, 1, &count, NULL), PAWL_OK);
    assert_int_equal(bench->ops->prune(bench->store, 9, &count, NULL), PAWL_OK);
    assert_null(recorded(bench));
}

static void final_states_are_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_job job;
    size_t count = 0;
    pawl_filter everything = {0};
    assert_int_equal(bench->ops->list(bench->store, &everything, NULL, &job, 9, &count, NULL), 0);
    const struct pawli_trace_record *record = recorded(bench);
    check_head(record, PAWLI_VERB_LIST, "");
    assert_true(record->is_first);
    assert_int_equal(record->count, 9);
    const struct pawli_trace_row *row = &record->rows[0];
    assert_int_equal(row->state, PAWL_IN_FLIGHT);
    assert_int_equal(row->reason, PAWL_REASON_ERROR);
    assert_int_equal(row->finished_at.us, 8);
    assert_string_equal(row->worker, "w");
    assert_true(row->token_digest == 0);

    pawl_id after = fake_id(1);
    assert_int_equal(bench->ops->list(bench->store, NULL, &after, &job, 9, &count, NULL), 0);
    assert_false(recorded(bench)->is_first);

    pawl_filter some = {.queue = "q"};
    assert_int_equal(bench->ops->list(bench->store, &some, NULL, &job, 9, &count, NULL), 0);
    assert_null(recorded(bench));

    pawl_attempt attempt;
    assert_int_equal(bench->ops->attempts(bench->store, &after, 0, &attempt, 9, &count, NULL), 0);
    record = recorded(bench);
    check_head(record, PAWLI_VERB_ATTEMPTS, "");
    assert_true(record->is_first);
    assert_memory_equal(&record->about, &after, sizeof(after));
    row = &record->rows[0];
    assert_memory_equal(&row->job, &after, sizeof(after));
    assert_int_equal(row->attempt_no, 41);
    assert_int_equal(row->outcome, PAWL_ZOMBIE_REQUEUE);
    assert_int_equal(row->reason, PAWL_REASON_EXPIRED);
    assert_int_equal(row->ended_by, PAWL_ENDED_BY_EXPIRY);
    assert_int_equal(row->claimed_at.us, 42);
    assert_int_equal(row->finished_at.us, 43);
    assert_string_equal(row->worker, "w");
}

static void operators_are_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_id id = fake_id(1);
    pawl_changed changed;
    pawl_filter filter = {.queue = "q"};
    size_t count = 0;
    const struct {
        pawl_code (*by_id)(pawl_store *, const pawl_id *, size_t, pawl_changed *, pawl_err *);
        pawl_code (*where)(pawl_store *, const pawl_filter *, size_t, size_t *, pawl_err *);
        enum pawli_trace_verb verb;
    } verbs[] = {{bench->ops->cancel, bench->ops->cancel_where, PAWLI_VERB_CANCEL},
                 {bench->ops->redrive, bench->ops->redrive_where, PAWLI_VERB_REDRIVE},
                 {bench->ops->discard, bench->ops->discard_where, PAWLI_VERB_DISCARD}};
    for (size_t i = 0; i < 3; i++) {
        bench->fake.count = 6;
        assert_int_equal(verbs[i].by_id(bench->store, &id, 1, &changed, NULL), PAWL_OK);
        const struct pawli_trace_record *record = recorded(bench);
        check_head(record, verbs[i].verb, "");
        assert_int_equal(record->rows[0].state, PAWL_IN_FLIGHT);
        assert_memory_equal(&record->rows[0].job, &id, sizeof(id));
        assert_int_equal(verbs[i].where(bench->store, &filter, 9, &count, NULL), PAWL_OK);
        record = recorded(bench);
        check_head(record, verbs[i].verb, "q");
        assert_true(record->is_where);
        assert_int_equal(record->count, 6);
        bench->fake.count = 0;
        assert_int_equal(verbs[i].where(bench->store, &filter, 9, &count, NULL), PAWL_OK);
        assert_null(recorded(bench));
    }
    pawl_queue_settings settings = {.lease_ms = 51,
                                    .execution_timeout_ms = 52,
                                    .max_retries = 53,
                                    .max_lost_leases = 54,
                                    .backoff_base_ms = 55,
                                    .backoff_max_ms = 56,
                                    .max_in_flight = 57};
    assert_int_equal(bench->ops->queue_set(bench->store, "q", &settings, NULL), PAWL_OK);
    const struct pawli_trace_record *record = recorded(bench);
    check_head(record, PAWLI_VERB_QUEUE_SET, "q");
    const struct pawli_trace_row *row = &record->rows[0];
    assert_int_equal(row->lease_ms, 51);
    assert_int_equal(row->timeout_ms, 52);
    assert_int_equal(row->max_retries, 53);
    assert_int_equal(row->max_lost_leases, 54);
    assert_int_equal(row->backoff_base_ms, 55);
    assert_int_equal(row->backoff_max_ms, 56);
    assert_int_equal(row->max_in_flight, 57);
    assert_int_equal(bench->ops->queue_pause(bench->store, "q", true, NULL), PAWL_OK);
    record = recorded(bench);
    check_head(record, PAWLI_VERB_QUEUE_PAUSE, "q");
    assert_int_equal(record->count, 1);
}

static void the_rest_is_passed_on_and_not_recorded(void **state)
{
    struct bench *bench = *state;
    pawl_id id = fake_id(1);
    pawl_job job;
    pawl_lease_info lease;
    pawl_worker worker;
    pawl_stats stats;
    pawl_queue_settings settings;
    pawl_worker_seen seen = {.name = "w"};
    pawl_wall now;
    size_t count = 0;
    bool is_hint = false;
    bench->fake.code = PAWL_GONE;
    const char *name = "w";
    const struct pawli_store_ops *ops = bench->ops;
    pawl_store *store = bench->store;
#define PASSES(call, argument)                        \
    do {                                              \
        assert_int_equal(call, PAWL_GONE);            \
        assert_ptr_equal(bench->fake.arg, argument);  \
        assert_int_equal(bench->fake.calls, ++calls); \
    } while (0)
    int calls = 0;
    PASSES(ops->get(store, &id, &job, NULL), &id);
    PASSES(ops->leases(store, NULL, NULL, &lease, 1, &count, NULL), &lease);
    PASSES(ops->worker_seen(store, &seen, NULL), &seen);
    PASSES(ops->worker_ended(store, name, NULL), name);
    PASSES(ops->workers(store, NULL, &worker, 1, &count, NULL), &worker);
    PASSES(ops->queue_stats(store, NULL, &stats, 1, &count, NULL), &stats);
    PASSES(ops->queue_get(store, name, &settings, NULL), name);
    PASSES(ops->now(store, &now, NULL), &now);
    PASSES(ops->wait(store, 5, &is_hint, NULL), &is_hint);
#undef PASSES
    ops->wake(store);
    assert_int_equal(bench->fake.calls, calls + 1);
    assert_null(recorded(bench));
    assert_int_equal(store->limits.payload_max, 77);
    assert_string_equal(ops->name, "trace");
}

static void opening_refuses_what_it_cannot_use(void **state)
{
    struct bench *bench = *state;
    char name[PAWL_NAME_MAX + 2];
    memset(name, 'x', sizeof(name));
    name[PAWL_NAME_MAX + 1] = '\0';
    struct pawli_trace_args good = {
        .inner = &bench->fake.head, .writer = bench->writer, .actor = "a", .clock = &bench->clock};
    pawl_store *store = NULL;
    pawl_err err;
    struct pawli_trace_args bad = good;
    bad.inner = NULL;
    assert_int_equal(pawli_trace_open(&bad, &store, &err), PAWL_INVALID);
    bad = good;
    bad.writer = NULL;
    assert_int_equal(pawli_trace_open(&bad, &store, &err), PAWL_INVALID);
    bad = good;
    bad.clock = NULL;
    assert_int_equal(pawli_trace_open(&bad, &store, &err), PAWL_INVALID);
    bad = good;
    bad.actor = NULL;
    assert_int_equal(pawli_trace_open(&bad, &store, &err), PAWL_INVALID);
    bad.actor = name;
    assert_int_equal(pawli_trace_open(&bad, &store, &err), PAWL_INVALID);
    alloc_fail_nth(1);
    assert_int_equal(pawli_trace_open(&good, &store, &err), PAWL_NO_MEMORY);
    assert_true(alloc_fail_end());
    assert_null(store);
    assert_false(bench->fake.is_closed);

    /* Without the store's clock its time is not told. */
    assert_int_equal(pawli_trace_open(&good, &store, &err), PAWL_OK);
    assert_int_equal(store->ops->queue_pause(store, "q", false, NULL), PAWL_OK);
    assert_int_equal(recorded(bench)->store_at.us, 0);
    store->ops->close(store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(enqueues_are_recorded),
        TEST(failed_calls_are_recorded),
        TEST(grants_are_recorded_without_their_tokens),
        TEST(what_holders_say_is_recorded),
        TEST(recovery_is_recorded),
        TEST(final_states_are_recorded),
        TEST(operators_are_recorded),
        TEST(the_rest_is_passed_on_and_not_recorded),
        TEST(opening_refuses_what_it_cannot_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
