/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_holders.c - what holders of leases said, and what the store made of it.
 * Owns:  C3, C4, C23, and of C6, C7, C18 and C22 what renew, settle and release can break.
 * Never: looks at what workers noted (check_workers.c does).
 */
#include "sim/check_model.h"

#include "core/backoff.h"

#include <inttypes.h>

void check_extend(const struct check_book *book, struct check_lease *lease,
                  const struct check_event *event, int64_t expires_us)
{
    int64_t left_us = minus(expires_us, event->store_us);
    lease->expires_us = expires_us;
    lease->expires_at_us = plus(event->until_us, left_us);
    lease->expires_at_latest_us = plus(event->until_us, check_stretched(book, left_us));
    lease->extended_seq = event->seq;
}

/* Why a lease that was shown is not the current valid one. */
static const char *why_stale(const struct check_model *model, const struct check_event *event)
{
    const struct check_lease *lease = model->lease;
    if (model->state != PAWL_IN_FLIGHT)
        return "the job is not InFlight";
    if (lease->version != event->version)
        return "the version is not the current one";
    if (lease->holder != event->by)
        return "the worker is not the holder";
    if (lease->grant->digest != event->digest)
        return "the token is not the lease's";
    return "the lease had expired";
}

/* A holder is refused although its lease looks valid: it may have expired unseen before the store's
 * clock went back. */
static bool is_refused_wrongly(struct check_model *model, const struct check_event *event)
{
    if (!check_is_valid(model, event))
        return false;
    if (!check_can_expire(model, event))
        return true;
    check_expire(model, event, NULL);
    return false;
}

bool check_is_gone(struct check_model *model, const struct check_event *event)
{
    if (!model->is_enqueued)
        return true;
    bool is_terminal = model->state == PAWL_SUCCEEDED || model->state == PAWL_FAILED ||
                       check_become(model, event, PAWL_FAILED, -1);
    if (is_terminal && check_may_be_pruned(model->book, model->since_seq, event->seq))
        return true;
    check_wrong(model, CHECK_C1, event, "the store has no memory of a job that is %s",
                pawl_state_name(model->state));
    return false;
}

/* ---------------------------------------------------------------- renew */

/* From when on a renewal is refused: what has started stays so, and what has not may not wait for
 * ever. RES-6 */
static int64_t refused_from_us(const struct check_lease *lease, const struct check_event *event)
{
    return event->is_unstarted && !lease->is_started ? lease->unstarted_until_us
                                                     : lease->run_until_us;
}

static void renewed_ok(struct check_model *model, const struct check_event *event)
{
    struct check_lease *lease = model->lease;
    int64_t wanted_us = later_of(lease->expires_us,
                                 plus(event->store_us, ms_to_us(event->u.renew.lease_ms)));
    if (lease->is_cancel_asked)
        check_wrong(model, CHECK_C23, event, "renewed although it is marked for cancellation");
    lease->is_cancel_possible = false; /* it was not marked by then */
    if (event->store_us >= refused_from_us(lease, event))
        check_wrong(model, CHECK_C23, event, "renewed %" PRId64 " us after the execution timeout",
                    minus(event->store_us, refused_from_us(lease, event)));
    if (!event->is_unstarted)
        lease->is_started = true;
    else if (!lease->is_started)
        lease->run_until_us = plus(event->store_us, ms_to_us(lease->grant->u.grant.timeout_ms));
    if (event->u.renew.expires_us != wanted_us)
        check_wrong(model, CHECK_C23, event,
                    "expires %" PRId64 " us %s than the later of what it was and now + lease",
                    event->u.renew.expires_us > wanted_us
                        ? minus(event->u.renew.expires_us, wanted_us)
                        : minus(wanted_us, event->u.renew.expires_us),
                    event->u.renew.expires_us > wanted_us ? "later" : "earlier");
    check_extend(model->book, lease, event, event->u.renew.expires_us);
}

void check_renewed(struct check_model *model, const struct check_event *event)
{
    if (event->code == PAWL_GONE) {
        (void)check_is_gone(model, event);
        return;
    }
    if (event->code == PAWL_STALE) {
        if (is_refused_wrongly(model, event))
            check_wrong(model, CHECK_C22, event, "a renewal of %s under its valid lease is refused",
                        check_worker_name(event->by));
        return;
    }
    if (!check_is_valid(model, event)) {
        check_wrong(model, CHECK_C3, event, "a renewal of %s is answered %s, but %s",
                    check_worker_name(event->by), pawl_code_name((pawl_code)event->code),
                    why_stale(model, event));
        return;
    }
    struct check_lease *lease = model->lease;
    if (event->code == PAWL_OK) {
        renewed_ok(model, event);
    } else if (event->code == PAWL_CANCELLED) {
        if (!lease->is_cancel_asked && !lease->is_cancel_possible)
            check_wrong(model, CHECK_C22, event, "answered CANCELLED, but nobody cancelled it");
        lease->is_cancel_asked = true;
    } else if (event->code == PAWL_TIMEOUT) {
        if (event->store_us < refused_from_us(lease, event))
            check_wrong(model, CHECK_C23, event, "answered TIMEOUT before its execution timeout");
        lease->is_cancel_possible = false;
    } else {
        check_wrong(model, CHECK_C22, event, "a renewal is answered %s",
                    pawl_code_name((pawl_code)event->code));
    }
}

/* ---------------------------------------------------------------- settle */

/* When a job that goes back is due: as asked, or by a backoff within its bounds. */
static void check_delay(struct check_model *model, const struct check_event *event)
{
    int64_t delay_us = minus(event->u.settle.due_us, event->store_us);
    model->due_us = event->u.settle.due_us;
    if (event->u.settle.delay_ms != PAWL_DEFAULT) {
        if (delay_us != ms_to_us(event->u.settle.delay_ms))
            check_wrong(model, CHECK_C18, event,
                        "due in %" PRId64 " us, but %" PRId64 " ms were asked for", delay_us,
                        event->u.settle.delay_ms);
        return;
    }
    struct check_settings limits = check_limits(model, event->seq);
    if (limits.base_ms <= 0 || limits.max_ms <= 0 || model->has_guessed)
        return;
    int64_t most_ms = pawli_backoff_ceiling_ms(limits.base_ms, limits.max_ms, model->retries);
    if (delay_us < 0 || delay_us > ms_to_us(most_ms)) {
        check_wrong(model, CHECK_C18, event,
                    "due in %" PRId64 " us after retry %" PRId64 "; 0 to %" PRId64
                    " ms are allowed",
                    delay_us, model->retries, most_ms);
        return;
    }
    check_delays_add(&model->book->retry_delays, delay_us, most_ms);
}

/* What the settle must have made of the job. A mark by filter is known only from the answer. */
static struct check_row settle_row(struct check_model *model, const struct check_event *event)
{
    struct check_lease *lease = model->lease;
    int64_t most = check_limits(model, event->seq).max_retries;
    struct check_row row = {
        .version = lease->version,
        .outcome = PAWL_RETRYABLE,
        .reason = PAWL_REASON_ERROR,
        .ended_by = PAWL_ENDED_BY_HOLDER,
        .worker = lease->holder,
        .started_us = lease->grant->u.grant.claimed_us,
        .finished_us = event->store_us,
        .cause = event,
    };
    const struct check_event *told = check_next_row(model);
    bool is_exhausted = event->action == PAWL_RETRY && model->retries >= most && most >= 0;
    bool is_cancelled = lease->is_cancel_asked;
    if (lease->is_cancel_possible && event->state == PAWL_FAILED)
        is_cancelled = told != NULL ? told->reason == PAWL_REASON_CANCELLED : !is_exhausted;
    if (event->action == PAWL_SUCCEED) {
        row.outcome = PAWL_DISPATCHED;
        row.reason = PAWL_REASON_NONE;
    } else if (event->action == PAWL_FAIL) {
        row.outcome = PAWL_FAILED_FINAL;
        row.reason = event->reason == PAWL_REASON_NONE ? PAWL_REASON_FATAL
                                                       : (pawl_reason)event->reason;
    } else if (event->action == PAWL_SNOOZE) {
        row.reason = event->reason == PAWL_REASON_NONE ? PAWL_REASON_SNOOZE
                                                       : (pawl_reason)event->reason;
    } else {
        row.reason = event->reason == PAWL_REASON_NONE ? PAWL_REASON_ERROR
                                                       : (pawl_reason)event->reason;
        if (is_exhausted) {
            row.outcome = PAWL_FAILED_FINAL;
            row.reason = PAWL_REASON_EXHAUSTED;
        }
    }
    if (is_cancelled && (event->action == PAWL_SNOOZE || event->action == PAWL_RETRY)) {
        row.outcome = PAWL_FAILED_FINAL;
        row.reason = PAWL_REASON_CANCELLED;
    }
    return row;
}

static pawl_state state_of(pawl_outcome outcome)
{
    return outcome == PAWL_DISPATCHED     ? PAWL_SUCCEEDED
           : outcome == PAWL_FAILED_FINAL ? PAWL_FAILED
                                          : PAWL_READY;
}

static void settled_first(struct check_model *model, const struct check_event *event)
{
    struct check_lease *lease = model->lease;
    struct check_row row = settle_row(model, event);
    pawl_state state = state_of(row.outcome);
    bool is_retry = event->action == PAWL_RETRY && row.reason != PAWL_REASON_CANCELLED;
    int64_t most = check_limits(model, event->seq).max_retries;
    if (event->state != state)
        check_wrong(model, is_retry && most >= 0 ? CHECK_C6 : CHECK_C22, event,
                    "settle with %" PRId64 " retries before it, %" PRId64
                    " allowed: the job became %s, not %s",
                    model->retries, most, pawl_state_name((pawl_state)event->state),
                    pawl_state_name(state));
    if (event->u.settle.attempt_no != model->attempts + 1 && !model->has_guessed)
        check_wrong(model, CHECK_C7, event, "its ledger row is number %" PRId64 ", not %" PRId64,
                    event->u.settle.attempt_no, model->attempts + 1);
    if (state == PAWL_READY && event->state == PAWL_READY)
        check_delay(model, event);
    if (is_retry && state == PAWL_READY)
        model->retries++;
    model->lost_in_a_row = 0;
    model->start_by_us = 0;
    lease->end = CHECK_SETTLED;
    lease->ended_by = event;
    lease->settled_as = (pawl_settle_action)event->action;
    lease->settled_no = event->u.settle.attempt_no;
    lease->is_ended_cancelled = row.reason == PAWL_REASON_CANCELLED;
    check_add_row(model, row);
    check_enter(model, state, row.reason, event->seq);
}

/* Whether a settle repeats one that was accepted. Cancelled jobs fail whatever was asked. */
static bool is_replay(const struct check_lease *lease, const struct check_event *event)
{
    if (lease == NULL || lease->holder != event->by || lease->grant == NULL ||
        lease->grant->digest != event->digest)
        return false;
    if (lease->is_ended_cancelled && event->action != PAWL_SUCCEED)
        return lease->end == CHECK_SETTLED || lease->end == CHECK_RELEASED;
    return lease->end == CHECK_SETTLED && lease->settled_as == (pawl_settle_action)event->action;
}

void check_settled(struct check_model *model, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    if (event->code == PAWL_GONE) {
        (void)check_is_gone(model, event);
        return;
    }
    if (event->code != PAWL_OK) {
        bool is_valid = is_refused_wrongly(model, event);
        if (is_valid || is_replay(lease, event))
            check_wrong(model, CHECK_C22, event, "a settle of %s %s is refused with %s",
                        check_worker_name(event->by),
                        is_valid ? "under its valid lease" : "that was accepted before",
                        pawl_code_name((pawl_code)event->code));
        return;
    }
    if (check_is_valid(model, event)) {
        settled_first(model, event);
        return;
    }
    if (!is_replay(lease, event)) {
        bool is_second = model->state == PAWL_SUCCEEDED && event->action == PAWL_SUCCEED;
        check_wrong(model, is_second ? CHECK_C4 : CHECK_C3, event,
                    "a settle of %s is accepted, but %s%s", check_worker_name(event->by),
                    why_stale(model, event), is_second ? ": completed before" : "");
        return;
    }
    if (event->u.settle.attempt_no != lease->settled_no && lease->end == CHECK_SETTLED)
        check_wrong(model, CHECK_C7, event,
                    "a repeated settle has row %" PRId64 "; the first had %" PRId64,
                    event->u.settle.attempt_no, lease->settled_no);
}

/* ---------------------------------------------------------------- release */

static void released_ok(struct check_model *model, const struct check_event *event)
{
    struct check_lease *lease = model->lease;
    const struct check_event *told = check_next_row(model);
    bool is_cancelled = lease->is_cancel_asked;
    /* Marked by filter, perhaps: its ledger row tells. */
    if (lease->is_cancel_possible && told != NULL)
        is_cancelled = told->version == lease->version && told->ended_by == PAWL_ENDED_BY_HOLDER;
    lease->end = CHECK_RELEASED;
    lease->ended_by = event;
    lease->is_ended_cancelled = is_cancelled;
    if (!is_cancelled) {
        if (lease->is_cancel_possible)
            model->cancel_seq = event->seq + 1; /* it may have failed by this very release */
        check_enter(model, PAWL_READY, model->reason, event->seq);
        /* It was due when it was claimed, and stays so where the clock has gone back since. */
        if (model->due_us != INT64_MIN)
            model->due_us = earlier_of(model->due_us, event->store_us);
        return;
    }
    check_add_row(model, (struct check_row){
                             .version = lease->version,
                             .outcome = PAWL_FAILED_FINAL,
                             .reason = PAWL_REASON_CANCELLED,
                             .ended_by = PAWL_ENDED_BY_HOLDER,
                             .worker = lease->holder,
                             .started_us = lease->grant->u.grant.claimed_us,
                             .finished_us = event->store_us,
                             .cause = event,
                         });
    check_enter(model, PAWL_FAILED, PAWL_REASON_CANCELLED, event->seq);
}

void check_released(struct check_model *model, const struct check_event *event)
{
    if (event->code == PAWL_GONE) {
        (void)check_is_gone(model, event);
        return;
    }
    if (event->code != PAWL_OK) {
        if (is_refused_wrongly(model, event))
            check_wrong(model, CHECK_C22, event,
                        "a release of %s under its valid lease is refused with %s",
                        check_worker_name(event->by), pawl_code_name((pawl_code)event->code));
        return;
    }
    if (check_is_valid(model, event))
        released_ok(model, event);
    else
        check_wrong(model, CHECK_C3, event, "a release of %s is accepted, but %s",
                    check_worker_name(event->by), why_stale(model, event));
}
