/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_store.c - walks through each job's calls in the order in which the store did them, and
 * compares every answer with the one that the store must give.
 * Owns:  C2, C5, C8, C9, C24, C27; of C6, C7, C18 and C22 what claims, reaps and operators can
 *        break; when jobs were Ready (for C14).
 * Never: looks at what workers noted (check_workers.c does).
 */
#include "sim/check_model.h"

#include <assert.h>
#include <inttypes.h>

/* ---------------------------------------------------------------- when it was Ready: for C14 */

/* In the history's time: when a Ready job is due, at the latest. */
static int64_t due_at_us(const struct check_model *model, const struct check_event *event)
{
    if (model->due_us == INT64_MIN)
        return CHECK_NEVER_US;
    int64_t left_us = minus(model->due_us, event->store_us);
    return left_us <= 0 ? event->until_us
                        : plus(event->until_us, check_stretched(model->book, left_us));
}

static bool keep_ready(struct check_model *model, int64_t from_us, int64_t to_us)
{
    /* What had to start by a deadline may have missed it unseen. */
    if (to_us <= model->book->faults_off_us || from_us >= to_us || model->start_by_us != 0)
        return true;
    return check_spans_add(model->book, &model->job->ready,
                           (struct check_span){from_us, to_us, 0, 0});
}

/* ---------------------------------------------------------------- enqueue */

static void enqueued(struct check_model *model, const struct check_event *event)
{
    struct check_job *job = model->job;
    if (event->code == PAWL_EXISTS) {
        if (!model->is_enqueued && job->before == NULL)
            check_wrong(model, CHECK_C22, event, "answered EXISTS, but it was never accepted");
        return;
    }
    if (event->code != PAWL_OK)
        return;
    const struct check_job *before = job->before;
    if (before != NULL && !before->is_wrong &&
        (!before->is_terminal ||
         !check_may_be_pruned(model->book, before->terminal_seq, event->seq)))
        check_wrong(model, CHECK_C24, event, "accepted once more, though the job exists");
    int64_t within_ms = event->u.enqueue.start_within_ms;
    model->is_enqueued = true;
    check_enter(model, PAWL_READY, PAWL_REASON_NONE, event->seq);
    check_join(model, event);
    model->due_us = plus(event->store_us, ms_to_us(event->u.enqueue.delay_ms));
    if (within_ms != PAWL_DEFAULT && within_ms != 0)
        model->start_by_us = plus(event->store_us, ms_to_us(within_ms));
    model->max_retries = event->u.enqueue.max_retries;
    model->base_ms = event->u.enqueue.base_ms;
    model->max_ms = event->u.enqueue.max_ms;
}

/* ---------------------------------------------------------------- grants */

static bool is_paused(const struct check_queue *queue, uint32_t seq)
{
    if (queue == NULL || queue->is_pause_unknown)
        return false;
    for (size_t i = 0; i < queue->pauses.count; i++) {
        const struct check_span *pause = &queue->pauses.items[i];
        if (pause->seq < seq && seq < pause->what)
            return true;
    }
    return false;
}

/* Bring the job to where it can be claimed, or say why it cannot. */
static bool is_claimable(struct check_model *model, const struct check_event *event)
{
    const struct check_lease *lease = model->lease;
    if (check_become(model, event, PAWL_READY, event->u.grant.attempts))
        return true;
    if (model->state == PAWL_IN_FLIGHT)
        check_wrong(model, CHECK_C2, event,
                    "claimed by %s while the lease v%" PRId64 " of %s is valid for %" PRId64
                    " us more",
                    check_worker_name(event->by), lease->version, check_worker_name(lease->holder),
                    minus(lease->expires_us, event->store_us));
    else
        check_wrong(model, CHECK_C5, event, "claimed by %s although it is %s",
                    check_worker_name(event->by), pawl_state_name(model->state));
    return false;
}

static void check_counters(struct check_model *model, const struct check_event *event)
{
    if (model->has_guessed) {
        model->retries = event->u.grant.retries;
        model->lost = event->u.grant.lost;
        model->attempts = event->u.grant.attempts;
        return;
    }
    if (event->u.grant.retries != model->retries || event->u.grant.lost != model->lost)
        check_wrong(model, CHECK_C6, event,
                    "counted %" PRId64 " retries and %" PRId64 " lost leases; there were %" PRId64
                    " and %" PRId64,
                    event->u.grant.retries, event->u.grant.lost, model->retries, model->lost);
    if (event->u.grant.attempts != model->attempts)
        check_wrong(model, CHECK_C7, event,
                    "%" PRId64 " ledger rows by its count; there must be %" PRId64,
                    event->u.grant.attempts, model->attempts);
}

static void claimed(struct check_model *model, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    if (event->version != model->version + 1 || lease == NULL || lease->grant != event) {
        check_wrong(model, CHECK_C8, event, "claimed by %s as version %" PRId64 " after %" PRId64,
                    check_worker_name(event->by), event->version, model->version);
        return;
    }
    if (!model->is_enqueued) {
        check_wrong(model, CHECK_C22, event, "claimed, but never enqueued");
        return;
    }
    if (!is_claimable(model, event))
        return;
    int64_t claimed_us = event->u.grant.claimed_us;
    if (is_paused(model->job->queue, event->seq))
        check_wrong(model, CHECK_C27, event, "claimed by %s from the paused queue %s",
                    check_worker_name(event->by), model->job->queue->name);
    if (model->due_us != INT64_MIN && claimed_us < model->due_us)
        check_wrong(model, CHECK_C18, event, "claimed %" PRId64 " us before it is due",
                    minus(model->due_us, claimed_us));
    if (model->start_by_us != 0 && claimed_us >= model->start_by_us)
        check_wrong(model, CHECK_C18, event, "claimed %" PRId64 " us after its start-by deadline",
                    minus(claimed_us, model->start_by_us));
    if (claimed_us != event->store_us ||
        event->u.grant.expires_us != plus(claimed_us, ms_to_us(event->u.grant.lease_ms)))
        check_wrong(model, CHECK_C22, event, "granted at %" PRId64 " until %" PRId64 ", not now",
                    claimed_us, event->u.grant.expires_us);
    check_counters(model, event);
    model->version = event->version;
    model->lease = lease;
    check_enter(model, PAWL_IN_FLIGHT, model->reason, event->seq);
    check_extend(model->book, lease, event, event->u.grant.expires_us);
    lease->run_until_us = event->u.grant.run_until_us;
    lease->unstarted_until_us = plus(lease->run_until_us, ms_to_us(2 * event->u.grant.lease_ms));
    lease->is_started = false;
}

static void shown_as_mine(struct check_model *model, const struct check_event *event)
{
    if (!check_is_valid(model, event) || model->lease->expires_us != event->u.grant.expires_us)
        check_wrong(model, CHECK_C22, event, "%s is told that it holds what it does not hold so",
                    check_worker_name(event->by));
}

/* ---------------------------------------------------------------- recovering */

static void reaped(struct check_model *model, const struct check_event *event)
{
    const struct check_lease *lease = model->lease;
    if (event->version == 0) {
        if (model->state != PAWL_READY || model->start_by_us == 0 ||
            event->store_us < model->start_by_us)
            check_wrong(model, CHECK_C9, event,
                        "reaped for a start-by deadline that it has not missed");
        else
            check_miss(model, event, event);
        return;
    }
    if (model->state != PAWL_IN_FLIGHT || lease->version != event->version) {
        check_wrong(model, CHECK_C9, event, "reaped, but the job is %s under version %" PRId64,
                    pawl_state_name(model->state), model->version);
        return;
    }
    if (event->store_us < lease->expires_us) {
        check_wrong(model, CHECK_C9, event, "reaped %" PRId64 " us before the lease of %s expires",
                    minus(lease->expires_us, event->store_us), check_worker_name(lease->holder));
        return;
    }
    check_expire(model, event, event);
    if (event->state != model->state)
        check_wrong(model, CHECK_C22, event, "reaped and became %s, not %s",
                    pawl_state_name((pawl_state)event->state), pawl_state_name(model->state));
}

/* ---------------------------------------------------------------- operators */

/* The store says in which state it found the job. */
static void found_in(struct check_model *model, const struct check_event *event, pawl_state state)
{
    if (!check_become(model, event, state, -1))
        check_wrong(model, CHECK_C22, event, "answered %s, but the job is %s",
                    pawl_code_name((pawl_code)event->code), pawl_state_name(model->state));
}

/* Failed by this cancellation, or by an earlier one. */
static void cancelled_for_good(struct check_model *model, const struct check_event *event)
{
    bool is_now = check_is_cancelled_at(model, event->store_us);
    if (!is_now) {
        /* What has expired unseen, marked, has failed by that. */
        if (model->state == PAWL_IN_FLIGHT)
            (void)check_become(model, event, PAWL_FAILED, -1);
        if (model->state == PAWL_FAILED && model->reason == PAWL_REASON_CANCELLED)
            return;
    }
    if (check_become(model, event, PAWL_READY, -1))
        check_cancel_ready(model, event, event->store_us);
    else
        found_in(model, event, PAWL_READY);
}

static void cancelled(struct check_model *model, const struct check_event *event)
{
    if (event->code == PAWL_ALREADY_SUCCEEDED) {
        found_in(model, event, PAWL_SUCCEEDED);
    } else if (event->code == PAWL_ALREADY_FAILED) {
        found_in(model, event, PAWL_FAILED);
    } else if (event->code == PAWL_GONE) {
        (void)check_is_gone(model, event);
    } else if (event->code == PAWL_OK && event->state == PAWL_IN_FLIGHT) {
        if (model->state == PAWL_IN_FLIGHT)
            model->lease->is_cancel_asked = true;
        else
            found_in(model, event, PAWL_IN_FLIGHT);
    } else if (event->code == PAWL_OK) {
        cancelled_for_good(model, event);
    }
}

static void redriven(struct check_model *model, const struct check_event *event)
{
    bool is_discarded = model->is_discarded || model->discard_seq > model->since_seq;
    if (event->code == PAWL_ALREADY_SUCCEEDED) {
        found_in(model, event, PAWL_SUCCEEDED);
    } else if (event->code == PAWL_NOT_FAILED) {
        if (model->state != PAWL_IN_FLIGHT)
            found_in(model, event, PAWL_READY);
    } else if (event->code == PAWL_GONE) {
        if (!is_discarded)
            (void)check_is_gone(model, event);
    } else if (event->code == PAWL_OK) {
        if (model->is_discarded || !check_become(model, event, PAWL_FAILED, -1))
            check_wrong(model, CHECK_C5, event, "redriven, but it is %s",
                        model->is_discarded ? "discarded" : pawl_state_name(model->state));
        else {
            check_redrive(model, event->store_us, event->seq);
            check_join(model, event);
        }
    }
}

static void discarded(struct check_model *model, const struct check_event *event)
{
    if (event->code == PAWL_ALREADY_SUCCEEDED) {
        found_in(model, event, PAWL_SUCCEEDED);
    } else if (event->code == PAWL_NOT_FAILED) {
        if (model->state != PAWL_IN_FLIGHT)
            found_in(model, event, PAWL_READY);
    } else if (event->code == PAWL_GONE) {
        (void)check_is_gone(model, event);
    } else if (event->code == PAWL_OK) {
        found_in(model, event, PAWL_FAILED);
        model->is_discarded = true;
    }
}

/* ---------------------------------------------------------------- the walk */

static void walk_call(struct check_model *model, const struct check_event *event)
{
    switch (event->verb) {
    case PAWLI_VERB_ENQUEUE:
        enqueued(model, event);
        break;
    case PAWLI_VERB_CLAIM:
        claimed(model, event);
        break;
    case PAWLI_VERB_MINE:
        shown_as_mine(model, event);
        break;
    case PAWLI_VERB_RENEW:
        check_renewed(model, event);
        break;
    case PAWLI_VERB_SETTLE:
        check_settled(model, event);
        break;
    case PAWLI_VERB_RELEASE:
        check_released(model, event);
        break;
    case PAWLI_VERB_REAP:
        reaped(model, event);
        break;
    case PAWLI_VERB_CANCEL:
        cancelled(model, event);
        break;
    case PAWLI_VERB_REDRIVE:
        redriven(model, event);
        break;
    case PAWLI_VERB_DISCARD:
        discarded(model, event);
        break;
    default:
        break;
    }
}

/* What the final list says of the job. */
static void walk_list(struct check_model *model)
{
    const struct check_event *row = model->job->listed;
    if (row == NULL)
        return;
    model->event = row;
    pawl_state state = (pawl_state)row->state;
    bool is_there = check_become(model, row, state, row->u.grant.attempts);
    if (!is_there)
        check_wrong(model, CHECK_C5, row, "listed as %s at the end, but it must be %s",
                    pawl_state_name(state), pawl_state_name(model->state));
    if (row->version != model->version)
        check_wrong(model, CHECK_C8, row, "listed with version %" PRId64 " after %" PRId64,
                    row->version, model->version);
    check_counters(model, row);
    if (model->attempts > 0 && !model->has_guessed && row->reason != model->reason)
        check_wrong(model, CHECK_C7, row, "listed with the reason %s; its last row has %s",
                    pawl_reason_name((pawl_reason)row->reason), pawl_reason_name(model->reason));
}

static bool walk_job(struct check_book *book, struct check_job *job, struct check_row *rows,
                     size_t rows_size)
{
    struct check_model model = {
        .book = book,
        .job = job,
        .where = book->wheres,
        .max_retries = PAWL_DEFAULT,
        .base_ms = PAWL_DEFAULT,
        .max_ms = PAWL_DEFAULT,
        .rows = rows,
        .rows_size = rows_size,
    };
    int64_t ready_us = CHECK_NEVER_US;
    for (const struct check_event *event = job->first_call; event != NULL && !job->is_wrong;
         event = event->next_call) {
        model.event = event;
        check_wheres(&model, event->seq);
        bool was_ready = model.is_enqueued && model.state == PAWL_READY;
        walk_call(&model, event);
        bool is_ready = model.is_enqueued && model.state == PAWL_READY;
        if (was_ready && !is_ready && !keep_ready(&model, ready_us, event->until_us))
            return false;
        if (is_ready && (!was_ready || model.since_seq == event->seq))
            ready_us = due_at_us(&model, event);
    }
    if (job->is_wrong)
        return !book->is_out_of_memory;
    check_wheres(&model, UINT32_MAX);
    if (model.is_enqueued && model.state == PAWL_READY &&
        !keep_ready(&model, ready_us, book->last_at_us))
        return false;
    walk_list(&model);
    if (!job->is_wrong && job->has_ledger)
        check_ledger(&model);
    job->is_terminal = model.is_enqueued &&
                       (model.state == PAWL_SUCCEEDED || model.state == PAWL_FAILED);
    job->is_open = model.is_enqueued && model.state == PAWL_IN_FLIGHT;
    job->terminal_seq = model.since_seq;
    return !book->is_out_of_memory;
}

/* Q-BACKOFF, RES-5: one delay of 0 may be chance, all of them are not. */
static void check_delays(struct check_book *book, const struct check_delays *delays,
                         const char *when)
{
    if (delays->count >= 3 && delays->zeros == delays->count && delays->bits > 40)
        check_fail(book, CHECK_C18, NULL,
                   "all %zu computed delays %s are 0: less likely than one in 2^%zu", delays->count,
                   when, delays->bits);
}

bool check_store(struct check_book *book)
{
    size_t wheres = 0;
    size_t most = 0;
    for (const struct check_where *where = book->wheres; where != NULL; where = where->next)
        wheres++;
    for (const struct check_job *job = book->jobs; job != NULL; job = job->next) {
        if (job->calls_count > most)
            most = job->calls_count;
    }
    /* Each record about a job, and each change by filter, leaves two rows at the most: an expiry or
     * a missed deadline before it, and its own. */
    size_t rows_size = 2 * (most + wheres) + 4;
    struct check_row *rows = check_alloc(book, rows_size * sizeof(*rows));
    if (rows == NULL)
        return false;
    for (struct check_job *job = book->jobs; job != NULL; job = job->next) {
        if (!walk_job(book, job, rows, rows_size))
            return false;
    }
    check_delays(book, &book->retry_delays, "after a retry");
    check_delays(book, &book->loss_delays, "from the second lost lease in a row on");
    return true;
}
