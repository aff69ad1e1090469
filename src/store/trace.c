/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - a store that passes every call on to another one and records it.
 * Owns:  what is recorded of each verb.
 * Never: changes a call or its answer; fails a call because it could not be recorded; keeps a
 *        payload or a token.
 */
#include "store/trace.h"

#include "base/error.h"
#include "base/text.h"
#include "core/token.h"
#include "store/store.h"
#include "store/trace_format.h"

#include <assert.h>
#include <stdlib.h>

struct trace_store {
    pawl_store head;
    pawl_store *inner; /* owned */
    struct pawli_trace_writer *writer;
    const pawl_clock *clock;
    const pawl_clock *store_clock; /* NULL: none */
    char actor[PAWL_NAME_MAX + 1];
};

static struct trace_store *trace_of(pawl_store *store)
{
    return (struct trace_store *)store;
}

static pawl_store *inner_of(pawl_store *store)
{
    return ((struct trace_store *)store)->inner;
}

uint64_t pawli_trace_digest(const pawl_token *token)
{
    assert(token != NULL);

    return pawli_token_digest(token);
}

/* ---------------------------------------------------------------- a call under way */

/* What is known before the call. */
static struct pawli_trace_record call_began(const struct trace_store *trace,
                                            enum pawli_trace_verb verb)
{
    return (struct pawli_trace_record){
        .kind = PAWLI_RECORD_CALL,
        .verb = verb,
        .actor = trace->actor,
        .at = trace->clock->mono(trace->clock->user),
    };
}

/* What is known after it; rows follow. */
static void call_ended(const struct trace_store *trace, struct pawli_trace_record *call,
                       pawl_code code, size_t rows_count)
{
    call->until = trace->clock->mono(trace->clock->user);
    if (trace->store_clock != NULL)
        call->store_at = trace->store_clock->wall(trace->store_clock->user);
    call->code = code;
    call->rows_count = rows_count;
    pawli_trace_call_begin(trace->writer, call);
}

/* A call without rows. */
static pawl_code call_alone(const struct trace_store *trace, struct pawli_trace_record *call,
                            pawl_code code)
{
    call_ended(trace, call, code, 0);
    pawli_trace_call_end(trace->writer);
    return code;
}

/* Rows that were asked for are kept where they were answered, and where they may have been done. */
static size_t rows_worth(pawl_code code, size_t rows_count)
{
    return code == PAWL_OK || code == PAWL_UNKNOWN ? rows_count : 0;
}

static struct pawli_trace_row row_of_job(const pawl_job *job)
{
    return (struct pawli_trace_row){
        .job = job->id,
        .version = job->lease_version,
        .state = job->state,
        .reason = job->reason,
        .retries = job->retries,
        .lost_leases = job->lost_leases,
        .attempts = job->attempts,
        .max_retries = job->max_retries,
        .claimed_at = job->claimed_at,
        .expires_at = job->expires_at,
        .run_until = job->run_until,
        .finished_at = job->finished_at,
        .due_at = job->due_at,
        .start_by = job->start_by,
        .lease_ms = job->lease_ms,
        .timeout_ms = job->timeout_ms,
        .is_cancel_asked = job->is_cancel_asked,
        .queue = job->queue,
        .worker = job->worker,
        .ordering_key = job->ordering_key,
        .fence = job->fence,
    };
}

/* ---------------------------------------------------------------- producing and working */

static pawl_code trace_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_ENQUEUE);
    pawl_code code = trace->inner->ops->enqueue(trace->inner, rows, rows_count, ret_results, err);
    size_t worth = rows_worth(code, rows_count);
    call_ended(trace, &call, code, worth);
    for (size_t i = 0; i < worth; i++) {
        pawli_trace_call_row(trace->writer,
                             &(struct pawli_trace_row){
                                 .job = rows[i].id,
                                 .code = code == PAWL_OK ? ret_results[i].code : code,
                                 .queue = rows[i].queue,
                                 .delay_ms = rows[i].delay_ms,
                                 .start_within_ms = rows[i].start_within_ms,
                                 .max_retries = rows[i].max_retries,
                                 .timeout_ms = rows[i].timeout_ms,
                                 .backoff_base_ms = rows[i].backoff_base_ms,
                                 .backoff_max_ms = rows[i].backoff_max_ms,
                                 .ordering_key = rows[i].ordering_key,
                             });
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

/* Jobs that claim and mine gave out, with the digests of their tokens. */
static void record_grants(const struct trace_store *trace, struct pawli_trace_record *call,
                          pawl_code code, const pawl_job *jobs, size_t jobs_count)
{
    if (code == PAWL_OK && jobs_count == 0)
        return;
    call_ended(trace, call, code, jobs_count);
    for (size_t i = 0; i < jobs_count; i++) {
        struct pawli_trace_row row = row_of_job(&jobs[i]);
        row.token_digest = pawli_trace_digest(&jobs[i].token);
        row.state = PAWL_READY;        /* InFlight, as a grant says by itself */
        row.reason = PAWL_REASON_NONE; /* of an earlier attempt */
        row.worker = NULL;             /* the call's subject */
        pawli_trace_call_row(trace->writer, &row);
    }
    pawli_trace_call_end(trace->writer);
}

static pawl_code trace_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_CLAIM);
    call.subject = args->worker;
    pawl_code code = trace->inner->ops->claim(trace->inner, args, ret_jobs, jobs_max, ret_count,
                                              err);
    record_grants(trace, &call, code, ret_jobs, code == PAWL_OK ? *ret_count : 0);
    return code;
}

static pawl_code trace_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_MINE);
    call.subject = worker;
    pawl_code code = trace->inner->ops->mine(trace->inner, worker, after, ret_jobs, jobs_max,
                                             ret_count, err);
    record_grants(trace, &call, code, ret_jobs, code == PAWL_OK ? *ret_count : 0);
    return code;
}

static pawl_code trace_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_RENEW);
    call.subject = worker;
    pawl_code code = trace->inner->ops->renew(trace->inner, worker, rows, rows_count, ret_results,
                                              err);
    size_t worth = rows_worth(code, rows_count);
    call_ended(trace, &call, code, worth);
    for (size_t i = 0; i < worth; i++) {
        bool is_ok = code == PAWL_OK && ret_results[i].code == PAWL_OK;
        pawli_trace_call_row(trace->writer,
                             &(struct pawli_trace_row){
                                 .job = rows[i].lease.job,
                                 .version = rows[i].lease.version,
                                 .token_digest = pawli_trace_digest(&rows[i].lease.token),
                                 .is_unstarted = rows[i].is_unstarted,
                                 .code = code == PAWL_OK ? ret_results[i].code : code,
                                 .expires_at = is_ok ? ret_results[i].expires_at : (pawl_wall){0},
                                 .lease_ms = is_ok ? ret_results[i].lease_ms : rows[i].lease_ms,
                             });
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_SETTLE);
    call.subject = worker;
    pawl_code code = trace->inner->ops->settle(trace->inner, worker, rows, rows_count, ret_results,
                                               err);
    size_t worth = rows_worth(code, rows_count);
    call_ended(trace, &call, code, worth);
    for (size_t i = 0; i < worth; i++) {
        struct pawli_trace_row row = {
            .job = rows[i].lease.job,
            .version = rows[i].lease.version,
            .token_digest = pawli_trace_digest(&rows[i].lease.token),
            .action = rows[i].action,
            .reason = rows[i].reason,
            .delay_ms = rows[i].delay_ms,
            .code = code == PAWL_OK ? ret_results[i].code : code,
        };
        if (row.code == PAWL_OK) {
            row.state = ret_results[i].state;
            row.due_at = ret_results[i].due_at;
            row.attempt_no = ret_results[i].attempt_no;
        }
        pawli_trace_call_row(trace->writer, &row);
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_RELEASE);
    call.subject = worker;
    pawl_code code = trace->inner->ops->release(trace->inner, worker, leases, leases_count,
                                                ret_codes, err);
    size_t worth = rows_worth(code, leases_count);
    call_ended(trace, &call, code, worth);
    for (size_t i = 0; i < worth; i++) {
        pawli_trace_call_row(trace->writer,
                             &(struct pawli_trace_row){
                                 .job = leases[i].job,
                                 .version = leases[i].version,
                                 .token_digest = pawli_trace_digest(&leases[i].token),
                                 .code = code == PAWL_OK ? ret_codes[i] : code,
                             });
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

/* ---------------------------------------------------------------- recovering */

static pawl_code trace_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_REAP);
    pawl_code code = trace->inner->ops->reap(trace->inner, ret_rows, rows_max, ret_count, err);
    size_t count = code == PAWL_OK ? *ret_count : 0;
    if (code == PAWL_OK && count == 0)
        return code;
    call_ended(trace, &call, code, count);
    for (size_t i = 0; i < count; i++) {
        pawli_trace_call_row(trace->writer, &(struct pawli_trace_row){
                                                .job = ret_rows[i].job,
                                                .version = ret_rows[i].lease_version,
                                                .state = ret_rows[i].state,
                                                .reason = ret_rows[i].reason,
                                                .due_at = ret_rows[i].due_at,
                                                .overdue_ms = ret_rows[i].overdue_ms,
                                                .queue = ret_rows[i].queue,
                                                .worker = ret_rows[i].worker,
                                            });
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_PRUNE);
    pawl_code code = trace->inner->ops->prune(trace->inner, jobs_max, ret_count, err);
    call.count = code == PAWL_OK ? (int64_t)*ret_count : 0;
    if (code == PAWL_OK && call.count == 0)
        return code;
    return call_alone(trace, &call, code);
}

/* ---------------------------------------------------------------- looking */

static pawl_code trace_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->get(inner, id, ret_job, err);
}

static bool is_everything(const pawl_filter *filter)
{
    return filter == NULL ||
           (filter->queue == NULL && filter->states == 0 && filter->reason == PAWL_REASON_NONE &&
            filter->worker == NULL && filter->ordering_key == NULL);
}

static pawl_code trace_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_LIST);
    call.is_first = after == NULL;
    call.count = (int64_t)jobs_max;
    pawl_code code = trace->inner->ops->list(trace->inner, filter, after, ret_jobs, jobs_max,
                                             ret_count, err);
    if (code != PAWL_OK || !is_everything(filter))
        return code;
    call_ended(trace, &call, code, *ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        struct pawli_trace_row row = row_of_job(&ret_jobs[i]);
        pawli_trace_call_row(trace->writer, &row);
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_ATTEMPTS);
    call.about = *id;
    call.is_first = after_no <= 0;
    call.count = (int64_t)rows_max;
    pawl_code code = trace->inner->ops->attempts(trace->inner, id, after_no, ret_rows, rows_max,
                                                 ret_count, err);
    if (code != PAWL_OK)
        return code;
    call_ended(trace, &call, code, *ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        pawli_trace_call_row(trace->writer, &(struct pawli_trace_row){
                                                .job = *id,
                                                .attempt_no = ret_rows[i].attempt_no,
                                                .outcome = ret_rows[i].outcome,
                                                .reason = ret_rows[i].reason,
                                                .ended_by = ret_rows[i].ended_by,
                                                .version = ret_rows[i].lease_version,
                                                .worker = ret_rows[i].worker,
                                                .claimed_at = ret_rows[i].started_at,
                                                .finished_at = ret_rows[i].finished_at,
                                            });
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                              pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->leases(inner, filter, after, ret_rows, rows_max, ret_count, err);
}

static pawl_code trace_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->worker_seen(inner, args, err);
}

static pawl_code trace_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->worker_ended(inner, name, err);
}

static pawl_code trace_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->workers(inner, after, ret_rows, rows_max, ret_count, err);
}

static pawl_code trace_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                   size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->queue_stats(inner, after, ret_rows, rows_max, ret_count, err);
}

static pawl_code trace_queue_depths(pawl_store *store, const pawl_depth_args *args,
                                    pawl_stats *ret_rows, size_t rows_max, size_t *ret_count,
                                    pawl_err *err)
{
    return pawl_queue_depths(inner_of(store), args, ret_rows, rows_max, ret_count, err);
}

static pawl_code trace_queue_get(pawl_store *store, const char *queue,
                                 pawl_queue_settings *ret_settings, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->queue_get(inner, queue, ret_settings, err);
}

/* ---------------------------------------------------------------- operating */

static pawl_code trace_queue_set(pawl_store *store, const char *queue,
                                 const pawl_queue_settings *settings, pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_QUEUE_SET);
    call.subject = queue;
    pawl_code code = trace->inner->ops->queue_set(trace->inner, queue, settings, err);
    size_t worth = rows_worth(code, 1);
    call_ended(trace, &call, code, worth);
    if (worth > 0) {
        pawli_trace_call_row(trace->writer, &(struct pawli_trace_row){
                                                .code = code,
                                                .queue = queue,
                                                .lease_ms = settings->lease_ms,
                                                .timeout_ms = settings->execution_timeout_ms,
                                                .max_retries = settings->max_retries,
                                                .max_lost_leases = settings->max_lost_leases,
                                                .backoff_base_ms = settings->backoff_base_ms,
                                                .backoff_max_ms = settings->backoff_max_ms,
                                                .max_in_flight = settings->max_in_flight,
                                            });
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                   pawl_err *err)
{
    struct trace_store *trace = trace_of(store);
    struct pawli_trace_record call = call_began(trace, PAWLI_VERB_QUEUE_PAUSE);
    call.subject = queue;
    call.count = is_paused ? 1 : 0;
    pawl_code code = trace->inner->ops->queue_pause(trace->inner, queue, is_paused, err);
    return call_alone(trace, &call, code);
}

typedef pawl_code change_fn(pawl_store *store, const pawl_id *ids, size_t ids_count,
                            pawl_changed *ret_results, pawl_err *err);

struct changes {
    change_fn *change;
    enum pawli_trace_verb verb;
    const pawl_id *ids;
    size_t ids_count;
};

static pawl_code trace_changes(struct trace_store *trace, const struct changes *asked,
                               pawl_changed *ret_results, pawl_err *err)
{
    struct pawli_trace_record call = call_began(trace, asked->verb);
    pawl_code code = asked->change(trace->inner, asked->ids, asked->ids_count, ret_results, err);
    size_t worth = rows_worth(code, asked->ids_count);
    call_ended(trace, &call, code, worth);
    for (size_t i = 0; i < worth; i++) {
        struct pawli_trace_row row = {
            .job = asked->ids[i],
            .code = code == PAWL_OK ? ret_results[i].code : code,
        };
        if (row.code == PAWL_OK)
            row.state = ret_results[i].state;
        pawli_trace_call_row(trace->writer, &row);
    }
    pawli_trace_call_end(trace->writer);
    return code;
}

static pawl_code trace_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                              pawl_changed *ret_results, pawl_err *err)
{
    return trace_changes(
        trace_of(store),
        &(struct changes){inner_of(store)->ops->cancel, PAWLI_VERB_CANCEL, ids, ids_count},
        ret_results, err);
}

static pawl_code trace_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    return trace_changes(
        trace_of(store),
        &(struct changes){inner_of(store)->ops->redrive, PAWLI_VERB_REDRIVE, ids, ids_count},
        ret_results, err);
}

static pawl_code trace_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    return trace_changes(
        trace_of(store),
        &(struct changes){inner_of(store)->ops->discard, PAWLI_VERB_DISCARD, ids, ids_count},
        ret_results, err);
}

typedef pawl_code change_where_fn(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                  size_t *ret_count, pawl_err *err);

struct changes_where {
    change_where_fn *change;
    enum pawli_trace_verb verb;
    const pawl_filter *filter;
    size_t jobs_max;
};

/* By filter: the store says how many, not which. A call that changed none is not recorded. */
static pawl_code trace_changes_where(struct trace_store *trace, const struct changes_where *asked,
                                     size_t *ret_count, pawl_err *err)
{
    struct pawli_trace_record call = call_began(trace, asked->verb);
    call.is_where = true;
    call.subject = asked->filter == NULL ? NULL : asked->filter->queue;
    pawl_code code = asked->change(trace->inner, asked->filter, asked->jobs_max, ret_count, err);
    call.count = code == PAWL_OK ? (int64_t)*ret_count : 0;
    if (code == PAWL_OK && call.count == 0)
        return code;
    return call_alone(trace, &call, code);
}

static pawl_code trace_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                    size_t *ret_count, pawl_err *err)
{
    return trace_changes_where(trace_of(store),
                               &(struct changes_where){inner_of(store)->ops->cancel_where,
                                                       PAWLI_VERB_CANCEL, filter, jobs_max},
                               ret_count, err);
}

static pawl_code trace_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return trace_changes_where(trace_of(store),
                               &(struct changes_where){inner_of(store)->ops->redrive_where,
                                                       PAWLI_VERB_REDRIVE, filter, jobs_max},
                               ret_count, err);
}

static pawl_code trace_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return trace_changes_where(trace_of(store),
                               &(struct changes_where){inner_of(store)->ops->discard_where,
                                                       PAWLI_VERB_DISCARD, filter, jobs_max},
                               ret_count, err);
}

/* ---------------------------------------------------------------- waiting */

static pawl_code trace_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->now(inner, ret_now, err);
}

static pawl_code trace_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    pawl_store *inner = inner_of(store);
    return inner->ops->wait(inner, timeout_ms, ret_hint, err);
}

static void trace_limit(pawl_store *store, int64_t call_timeout_ms)
{
    pawl_store_limit(trace_of(store)->inner, call_timeout_ms);
}

static void trace_wake(pawl_store *store)
{
    pawl_store *inner = inner_of(store);
    inner->ops->wake(inner);
}

/* ---------------------------------------------------------------- life */

static void trace_close(pawl_store *store)
{
    pawl_store *inner = inner_of(store);
    inner->ops->close(inner);
    free(store);
}

static const struct pawli_store_ops trace_ops = {
    .name = "trace",
    .close = trace_close,
    .enqueue = trace_enqueue,
    .claim = trace_claim,
    .mine = trace_mine,
    .renew = trace_renew,
    .settle = trace_settle,
    .release = trace_release,
    .reap = trace_reap,
    .prune = trace_prune,
    .get = trace_get,
    .list = trace_list,
    .attempts = trace_attempts,
    .leases = trace_leases,
    .worker_seen = trace_worker_seen,
    .worker_ended = trace_worker_ended,
    .workers = trace_workers,
    .queue_stats = trace_queue_stats,
    .queue_depths = trace_queue_depths,
    .queue_get = trace_queue_get,
    .queue_set = trace_queue_set,
    .queue_pause = trace_queue_pause,
    .cancel = trace_cancel,
    .redrive = trace_redrive,
    .discard = trace_discard,
    .cancel_where = trace_cancel_where,
    .redrive_where = trace_redrive_where,
    .discard_where = trace_discard_where,
    .now = trace_now,
    .wait = trace_wait,
    .wake = trace_wake,
    .limit = trace_limit,
};

pawl_code pawli_trace_open(const struct pawli_trace_args *args, pawl_store **ret_store,
                           pawl_err *err)
{
    assert(args != NULL && ret_store != NULL);

    if (args->inner == NULL || args->writer == NULL || args->clock == NULL)
        return pawli_fail(err, PAWL_INVALID, "trace: a store, a writer and a clock are needed");
    if (args->actor == NULL || pawli_text_length(args->actor, PAWL_NAME_MAX) > PAWL_NAME_MAX)
        return pawli_fail(err, PAWL_INVALID, "trace: actor must be a name of at most %d bytes",
                          PAWL_NAME_MAX);
    struct trace_store *trace = calloc(1, sizeof(*trace));
    if (trace == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    trace->head = (pawl_store){.ops = &trace_ops, .limits = args->inner->limits};
    trace->inner = args->inner;
    trace->writer = args->writer;
    trace->clock = args->clock;
    trace->store_clock = args->store_clock;
    (void)pawli_text_copy(trace->actor, sizeof(trace->actor), args->actor); /* its length fits */
    *ret_store = &trace->head;
    return PAWL_OK;
}
