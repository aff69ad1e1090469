/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_workers.c - what workers noted about the jobs they held, held against what the store told
 * them and against the clock.
 * Owns:  C10, C11, C13, C17, C19, C20, C21.
 * Never: blames a worker for what broke around it: pauses, crashes, lost messages, a store that was
 *        down or whose clock jumped.
 */
#include "sim/check_book.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- what broke around a worker */

/* Whether messages of these verbs went wrong in [from, to]; a verb that is not known counts. */
static size_t count_faults(const struct check_worker *worker, int64_t from_us, int64_t to_us,
                           unsigned verbs)
{
    const struct check_spans *faults = &worker->faults;
    size_t low = 0;
    size_t high = faults->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (faults->items[middle].from_us < from_us)
            low = middle + 1;
        else
            high = middle;
    }
    size_t count = 0;
    for (; low < faults->count && faults->items[low].from_us <= to_us; low++) {
        int64_t verb = faults->items[low].what;
        bool is_verb = verb > 0 && verb < PAWLI_VERBS;
        count += !is_verb || (verbs & (1u << verb)) != 0;
    }
    return count;
}

#define BEAT_FAULTS_MIN 2 /* tries that a beat has, at the least */
#define VERBS_BEAT      (1u << PAWLI_VERB_RENEW)
#define VERBS_GRANT     ((1u << PAWLI_VERB_CLAIM) | (1u << PAWLI_VERB_MINE))

/* Whether the worker or the store was not there in [from, to], or shortly before. */
static bool is_away(const struct check_book *book, const struct check_worker *worker,
                    int64_t from_us, int64_t to_us)
{
    /* A renewal that was on its way before held up the next one for as long as a call may take. */
    from_us = minus(from_us,
                    ms_to_us(plus(book->options->recover_ms, book->options->round_trip_ms)));
    return check_overlaps(&worker->pauses, from_us, to_us) ||
           check_overlaps(&worker->downs, from_us, to_us) ||
           check_overlaps(&book->store_downs, from_us, to_us);
}

/* Whether anything in [from, to] can keep a worker from learning that it holds a lease. */
static bool is_disturbed(const struct check_book *book, const struct check_lease *lease,
                         int64_t from_us, int64_t to_us)
{
    int64_t before_us = ms_to_us(plus(book->options->recover_ms, book->options->round_trip_ms));
    unsigned verbs = lease->confirms <= 1 ? VERBS_BEAT | VERBS_GRANT : VERBS_BEAT;
    return is_away(book, lease->holder, from_us, to_us) ||
           count_faults(lease->holder, minus(from_us, before_us), to_us, verbs) > 0;
}

/*
 * Whether a beat could not be confirmed in the time that it has, from `due_us` to `to_us`. It is
 * tried several times, and a try that hangs is given up after half an interval: so one message that
 * went wrong is no excuse, unless the worker learned of the lease so late that there was time for
 * one try only, or a renewal of longer leases hung already when it was claimed: that one is given
 * up by their intervals, as late as any call.
 */
static bool is_beat_hindered(const struct check_book *book, const struct check_lease *lease,
                             int64_t due_us, int64_t to_us)
{
    int64_t interval_us = ms_to_us(lease->interval_ms);
    unsigned verbs = lease->confirms <= 1 ? VERBS_BEAT | VERBS_GRANT : VERBS_BEAT;
    bool is_told_late = lease->confirmed_us > due_us;
    /* The renewal before, of other jobs, may have been hanging since. */
    int64_t from_us = is_told_late ? minus(due_us, interval_us)
                                   : minus(due_us, check_stretched(book, interval_us * 5 / 8));
    size_t needed = is_told_late ? 1 : BEAT_FAULTS_MIN;
    int64_t call_us = ms_to_us(plus(book->options->recover_ms, book->options->round_trip_ms));
    bool was_hanging = lease->confirms <= 1 &&
                       count_faults(lease->holder, minus(lease->sent_us, call_us), lease->sent_us,
                                    VERBS_BEAT) > 0;
    return was_hanging || count_faults(lease->holder, from_us, to_us, verbs) >= needed;
}

/* ---------------------------------------------------------------- limits */

/* Renewals of it will be refused: what is left of the lease may be used to the end. */
static bool are_beats_over(const struct check_lease *lease)
{
    return lease->is_cancel_told || lease->is_timeout_told ||
           lease->abort_why == PAWLI_WHY_CANCELLED || lease->abort_why == PAWLI_WHY_TIMEOUT;
}

/* K2: from here on a beat has failed; at the latest, by clocks that differ. */
static int64_t beat_limit_us(const struct check_book *book, const struct check_lease *lease)
{
    if (lease->interval_ms == 0)
        return CHECK_NEVER_US;
    return plus(lease->sent_us, check_stretched(book, ms_to_us(2 * lease->interval_ms)));
}

static int64_t lease_limit_us(const struct check_book *book, const struct check_lease *lease)
{
    return plus(lease->sent_us, check_stretched(book, ms_to_us(lease->lease_ms)));
}

/* Something is done under the lease: K3, and the store's own truth. */
static void check_risk(struct check_book *book, const struct check_event *event, int64_t limit_us,
                       const char *what)
{
    const struct check_lease *lease = event->lease;
    if (event->at_us >= limit_us) {
        check_fail(book, CHECK_C11, event, "%s %s it %" PRId64 " us after its lease came at risk",
                   check_worker_name(event->by), what, minus(event->at_us, limit_us));
        return;
    }
    bool is_known = lease->extended_at_us != 0 && !lease->is_settle_ok && !lease->is_release_ok;
    if (is_known && event->at_us >= lease->valid_until_us &&
        !check_overlaps(&book->jumps, lease->extended_at_us, event->at_us))
        check_fail(book, CHECK_C11, event, "%s %s it %" PRId64 " us after its lease expired",
                   check_worker_name(event->by), what, minus(event->at_us, lease->valid_until_us));
}

/* ---------------------------------------------------------------- notes: working */

static void confirmed(struct check_lease *lease, const struct check_event *event)
{
    if (lease->confirms > 0 && event->u.told.a < lease->sent_us)
        return;
    lease->sent_before_us = lease->confirms > 0 ? lease->sent_us : event->u.told.a;
    lease->interval_before_ms = lease->confirms > 0 ? lease->interval_ms : event->u.told.c;
    lease->sent_us = event->u.told.a;
    lease->lease_ms = event->u.told.b;
    lease->interval_ms = event->u.told.c;
    lease->confirmed_us = event->at_us;
    if (lease->confirms++ == 0)
        lease->first_sent_us = lease->sent_us;
}

static bool has_ended_before(const struct check_lease *lease, const struct check_event *event)
{
    return lease->end != CHECK_OPEN && lease->ended_by->seq < event->seq;
}

/* C19: nobody else runs the job, both under leases that are valid. */
static void check_alone(struct check_book *book, const struct check_event *event)
{
    if (has_ended_before(event->lease, event))
        return; /* C11 says whether it should have known */
    for (const struct check_lease *other = event->job->leases; other != NULL; other = other->next) {
        if (other == event->lease || other->started_us == CHECK_NEVER_US ||
            other->ended_us != CHECK_NEVER_US || other->holder == NULL)
            continue;
        /* Expired by the store's own clock when this lease was granted, whoever noticed. */
        const struct check_event *grant = event->lease->grant;
        bool is_ended = has_ended_before(other, event) ||
                        (grant != NULL && other->version < event->version &&
                         grant->u.grant.claimed_us >= other->expires_us);
        bool is_gone = check_overlaps(&other->holder->downs, event->at_us, event->at_us) ||
                       other->is_settle_ok || other->is_release_ok;
        /* At the earliest: what is not sure to be valid is not held against anybody. */
        int64_t until_us = minus(
            other->valid_until_us,
            minus(check_stretched(book, minus(other->valid_until_us, other->extended_at_us)),
                  minus(other->valid_until_us, other->extended_at_us)));
        if (!is_ended && !is_gone && event->at_us < until_us &&
            !check_overlaps(&book->jumps, other->extended_at_us, event->at_us))
            check_fail(book, CHECK_C19, event,
                       "%s starts it while %s runs it under v%" PRId64 ", valid for %" PRId64
                       " us more",
                       check_worker_name(event->by), check_worker_name(other->holder),
                       other->version, minus(until_us, event->at_us));
    }
}

static void started(struct check_book *book, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    if (lease->confirms == 0)
        check_fail(book, CHECK_C11, event, "%s starts it under a lease that nothing has confirmed",
                   check_worker_name(event->by));
    else
        check_risk(book, event, beat_limit_us(book, lease), "starts");
    if (lease->started_us != CHECK_NEVER_US) {
        check_fail(book, CHECK_C19, event, "%s starts it twice under one lease",
                   check_worker_name(event->by));
        lease->is_wrong = true;
    }
    check_alone(book, event);
    lease->started_us = event->at_us;
}

static void sent(struct check_book *book, const struct check_event *event)
{
    const struct check_lease *lease = event->lease;
    if (lease->started_us == CHECK_NEVER_US || lease->ended_us != CHECK_NEVER_US)
        check_fail(book, CHECK_C11, event, "%s sends for it without running it",
                   check_worker_name(event->by));
    else if (lease->abort_us != CHECK_NEVER_US)
        check_fail(book, CHECK_C11, event, "%s sends for it %" PRId64 " us after its abort",
                   check_worker_name(event->by), minus(event->at_us, lease->abort_us));
    else
        check_risk(book, event, beat_limit_us(book, lease), "sends for");
}

/* ---------------------------------------------------------------- notes: ending */

/* From when on the execution timeout may have passed, at the earliest. */
static int64_t timeout_from_us(const struct check_book *book, const struct check_lease *lease)
{
    if (lease->grant == NULL)
        return INT64_MIN;
    int64_t timeout_us = check_shrunk(book, ms_to_us(lease->grant->u.grant.timeout_ms));
    return plus(lease->first_sent_us, timeout_us);
}

/* It ended only after its time was up: it is not told any more, and not renewed any more either. */
static bool is_late(const struct check_book *book, const struct check_lease *lease)
{
    return lease->abort_why == PAWLI_WHY_NONE && lease->ended_us != CHECK_NEVER_US &&
           lease->ended_us >= timeout_from_us(book, lease);
}

/* Whether an action may follow from what the handler answered, given why it was told to stop. */
static bool is_result(const struct check_book *book, const struct check_lease *lease,
                      uint64_t action)
{
    bool is_stopped = lease->abort_why == PAWLI_WHY_SHUTDOWN ||
                      lease->abort_why == PAWLI_WHY_ABORT_ALL;
    if (lease->abort_why == PAWLI_WHY_TIMEOUT)
        return action == PAWL_RETRY; /* RES-6, whatever it answered */
    if (lease->abort_why == PAWLI_WHY_CANCELLED)
        return action == (lease->result == PAWLI_RESULT_DONE ? PAWL_SUCCEED : PAWL_FAIL);
    if (is_late(book, lease) && action == PAWL_RETRY)
        return true;
    switch (lease->result) {
    case PAWLI_RESULT_DONE:
        return action == PAWL_SUCCEED;
    case PAWLI_RESULT_RETRY:
        return action == PAWL_RETRY || (is_stopped && action == PAWL_SNOOZE);
    case PAWLI_RESULT_FAIL:
        return action == PAWL_FAIL;
    case PAWLI_RESULT_SNOOZE:
        return action == PAWL_SNOOZE;
    default:
        return false;
    }
}

/* The reason that goes with an action is that of the stop. */
static void check_reason(struct check_book *book, const struct check_event *event)
{
    const struct check_lease *lease = event->lease;
    if (event->by == NULL || lease->holder != event->by || !event->by->is_told || lease->is_wrong ||
        lease->ended_us == CHECK_NEVER_US)
        return;
    pawl_reason wanted = lease->abort_why == PAWLI_WHY_TIMEOUT     ? PAWL_REASON_TIMEOUT
                         : lease->abort_why == PAWLI_WHY_CANCELLED ? PAWL_REASON_CANCELLED
                                                                   : PAWL_REASON_NONE;
    if (wanted != PAWL_REASON_NONE && event->action != PAWL_SUCCEED && event->reason != wanted)
        check_fail(book, CHECK_C17, event,
                   "%s settles it for the reason %s, but it was stopped: %s",
                   check_worker_name(event->by), pawl_reason_name((pawl_reason)event->reason),
                   pawli_why_name((enum pawli_why)lease->abort_why));
}

static void sends_settle(struct check_book *book, const struct check_event *event)
{
    const struct check_lease *lease = event->lease;
    const char *who = check_worker_name(event->by);
    bool is_running = lease->started_us != CHECK_NEVER_US && lease->ended_us == CHECK_NEVER_US;
    if (lease->started_us == CHECK_NEVER_US)
        check_fail(book, CHECK_C17, event, "%s settles what it never started", who);
    else if (lease->abort_why == PAWLI_WHY_BEAT_FAILED ||
             lease->abort_why == PAWLI_WHY_LEASE_LOST || lease->is_given_up)
        check_fail(book, CHECK_C17, event, "%s settles work that was stopped: %s", who,
                   pawli_why_name((enum pawli_why)lease->abort_why));
    else if (!is_running && !is_result(book, lease, (uint64_t)event->u.told.a))
        check_fail(book, CHECK_C17, event,
                   "%s settles with action %" PRId64 " what ended with result %" PRId64, who,
                   event->u.told.a, lease->result);
    else if (is_running && event->u.told.a != PAWL_SUCCEED)
        check_fail(book, CHECK_C17, event, "%s settles as failed what still runs", who);
    else if (are_beats_over(lease) || is_late(book, lease))
        check_risk(book, event, lease_limit_us(book, lease), "settles");
    else
        check_risk(book, event, beat_limit_us(book, lease), "settles");
}

static void sends_release(struct check_book *book, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    /* What is settled already may be found once more by asking, in an answer that is older. */
    if (lease->started_us != CHECK_NEVER_US && !lease->is_settle_ok)
        check_fail(book, CHECK_C17, event, "%s gives back what it has started",
                   check_worker_name(event->by));
    else if (lease->confirms > 0)
        /* What has not started has nothing to abort: it may be given back until the lease ends. And
         * what was found by asking, nobody knows for how long. */
        check_risk(book, event, lease_limit_us(book, lease), "releases");
    lease->is_release_sent = true;
}

/* ---------------------------------------------------------------- notes: giving up */

/* A beat is said to have failed: it has, and something broke. */
static void check_beat_failed(struct check_book *book, const struct check_event *event)
{
    const struct check_lease *lease = event->lease;
    if (lease->confirms == 0 || lease->interval_ms == 0 || lease->is_refused ||
        are_beats_over(lease))
        return;
    /* An answer that came in the same moment came too late: the clock is looked at first. So did
     * one that came after the beat had failed, if only by a moment. */
    int64_t failed_us = plus(lease->sent_before_us, ms_to_us(2 * lease->interval_before_ms));
    bool is_late = lease->confirmed_us == event->at_us || lease->confirmed_us >= failed_us;
    int64_t from_us = is_late ? lease->sent_before_us : lease->sent_us;
    int64_t interval_ms = is_late ? lease->interval_before_ms : lease->interval_ms;
    int64_t risk_us = plus(from_us, check_shrunk(book, ms_to_us(2 * interval_ms)));
    if (event->at_us < risk_us)
        check_fail(book, CHECK_C20, event,
                   "%s calls a beat failed %" PRId64 " us before it can have failed",
                   check_worker_name(event->by), minus(risk_us, event->at_us));
    else if (!is_away(book, lease->holder, from_us, event->at_us) &&
             !is_beat_hindered(book, lease, plus(from_us, ms_to_us(interval_ms)), event->at_us))
        check_fail(book, CHECK_C10, event,
                   "a beat of %s failed, though too little was broken for that",
                   check_worker_name(event->by));
}

static void check_timeout(struct check_book *book, const struct check_event *event)
{
    const struct check_lease *lease = event->lease;
    if (lease->is_timeout_told || lease->confirms == 0)
        return;
    int64_t until_us = timeout_from_us(book, lease);
    if (event->at_us < until_us)
        check_fail(book, CHECK_C20, event,
                   "%s stops it %" PRId64 " us before its execution timeout",
                   check_worker_name(event->by), minus(until_us, event->at_us));
}

static void aborted(struct check_book *book, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    const char *who = check_worker_name(event->by);
    bool has_cause = true;
    switch (event->u.told.a) {
    case PAWLI_WHY_BEAT_FAILED:
        check_beat_failed(book, event);
        break;
    case PAWLI_WHY_LEASE_LOST:
        has_cause = lease->is_refused;
        break;
    case PAWLI_WHY_CANCELLED:
        has_cause = lease->is_cancel_told;
        break;
    case PAWLI_WHY_TIMEOUT:
        check_timeout(book, event);
        break;
    case PAWLI_WHY_SHUTDOWN:
    case PAWLI_WHY_ABORT_ALL:
        has_cause = event->by == NULL ||
                    check_overlaps(&event->by->shutdowns, INT64_MIN, event->at_us);
        break;
    case PAWLI_WHY_AT_RISK:
        break;
    default:
        has_cause = false;
        break;
    }
    if (!has_cause)
        check_fail(book, CHECK_C20, event, "%s aborts it (%s), but nothing has told it to", who,
                   pawli_why_name((enum pawli_why)event->u.told.a));
    if (lease->abort_us == CHECK_NEVER_US) {
        lease->abort_us = event->at_us;
        lease->abort_why = event->u.told.a;
    }
}

static void is_over(struct check_book *book, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    bool is_said = true;
    switch (event->u.told.a) {
    case PAWLI_WHY_SETTLED:
    case PAWLI_WHY_SETTLED_BY_HANDLER:
        is_said = lease->is_settle_ok;
        break;
    case PAWLI_WHY_RELEASED:
        /* A release that may have been done before finds nothing left to release. */
        is_said = lease->is_release_ok || (lease->is_release_sent && lease->is_release_stale);
        break;
    case PAWLI_WHY_FENCED:
        is_said = lease->is_settle_stale || lease->is_release_stale;
        break;
    case PAWLI_WHY_LEASE_LOST:
        is_said = lease->is_refused;
        break;
    case PAWLI_WHY_AT_RISK:
    case PAWLI_WHY_BEAT_FAILED:
        if (lease->abort_us == CHECK_NEVER_US)
            check_beat_failed(book, event);
        break;
    default:
        break;
    }
    if (!is_said)
        check_fail(book, CHECK_C21, event, "%s takes it for %s, but the store has not said so",
                   check_worker_name(event->by), pawli_why_name((enum pawli_why)event->u.told.a));
    lease->over_us = event->at_us;
    lease->confirms = 0; /* found once more by asking, it must be confirmed anew */
}

static void walk_note(struct check_book *book, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    switch (event->note) {
    case PAWLI_NOTE_CONFIRMED:
        confirmed(lease, event);
        break;
    case PAWLI_NOTE_START:
        started(book, event);
        break;
    case PAWLI_NOTE_SEND:
        sent(book, event);
        break;
    case PAWLI_NOTE_ENDED:
        lease->ended_us = event->at_us;
        lease->result = event->u.told.a;
        break;
    case PAWLI_NOTE_SEND_SETTLE:
        sends_settle(book, event);
        break;
    case PAWLI_NOTE_SEND_RELEASE:
        sends_release(book, event);
        break;
    case PAWLI_NOTE_ABORT:
        aborted(book, event);
        break;
    case PAWLI_NOTE_GIVE_UP:
        if (lease->abort_us == CHECK_NEVER_US)
            check_fail(book, CHECK_C20, event, "%s gives up what it has not told to stop",
                       check_worker_name(event->by));
        lease->is_given_up = true;
        break;
    case PAWLI_NOTE_OVER:
        is_over(book, event);
        break;
    default:
        break;
    }
}

/* ---------------------------------------------------------------- what the store told */

static void extended(const struct check_book *book, struct check_lease *lease,
                     const struct check_event *event, int64_t expires_us, int64_t lease_ms)
{
    /* The store's clock was read at the end of the call. Without it: a lease from then on, at the
     * latest. */
    int64_t left_us = event->store_us != 0 ? minus(expires_us, event->store_us)
                                           : ms_to_us(lease_ms);
    lease->extended_at_us = event->store_us != 0 ? event->until_us : event->at_us;
    lease->valid_until_us = plus(event->until_us, check_stretched(book, left_us));
}

static void walk_answer(struct check_book *book, const struct check_event *event)
{
    struct check_lease *lease = event->lease;
    bool is_stale = event->code == PAWL_STALE || event->code == PAWL_GONE;
    switch (event->verb) {
    case PAWLI_VERB_CLAIM:
        extended(book, lease, event, event->u.grant.expires_us, event->u.grant.lease_ms);
        break;
    case PAWLI_VERB_RENEW:
        lease->is_refused = lease->is_refused || is_stale;
        lease->is_cancel_told = lease->is_cancel_told || event->code == PAWL_CANCELLED;
        lease->is_timeout_told = lease->is_timeout_told || event->code == PAWL_TIMEOUT;
        if (event->code == PAWL_OK)
            extended(book, lease, event, event->u.renew.expires_us, event->u.renew.lease_ms);
        break;
    case PAWLI_VERB_SETTLE:
        check_reason(book, event);
        lease->is_settle_ok = lease->is_settle_ok || event->code == PAWL_OK;
        lease->is_settle_stale = lease->is_settle_stale || is_stale;
        break;
    case PAWLI_VERB_RELEASE:
        lease->is_release_ok = lease->is_release_ok || event->code == PAWL_OK;
        lease->is_release_stale = lease->is_release_stale || is_stale;
        break;
    default:
        break;
    }
}

/* ---------------------------------------------------------------- lost leases */

/* C13: the reply to the claim was lost, and nothing else: the worker was there to ask. */
static bool is_claim_lost_only(const struct check_book *book, const struct check_lease *lease,
                               int64_t to_us)
{
    const struct check_worker *worker = lease->holder;
    const struct check_event *grant = lease->grant;
    if (book->options->recover_ms <= 0 || lease->confirms > 0 || lease->over_us != CHECK_NEVER_US)
        return false;
    int64_t recover_us = ms_to_us(
        plus(book->options->recover_ms, ms_to_us(book->options->round_trip_ms) / 500));
    if (to_us < plus(grant->until_us, check_stretched(book, recover_us)))
        return false;
    bool is_lost = false;
    for (size_t i = 0; i < worker->faults.count; i++) {
        const struct check_span *fault = &worker->faults.items[i];
        if (fault->from_us < minus(grant->at_us, recover_us) || fault->from_us > to_us)
            continue;
        bool is_reply = fault->seq > grant->seq && fault->from_us == grant->until_us &&
                        fault->what == PAWLI_VERB_CLAIM;
        if (is_lost || !is_reply)
            return false; /* more than that went wrong */
        is_lost = true;
    }
    return is_lost && !check_overlaps(&worker->shutdowns, INT64_MIN, to_us);
}

/* A lease was lost. Was it by anybody's fault? */
static void check_loss(struct check_book *book, const struct check_lease *lease)
{
    const struct check_event *found = lease->ended_by;
    if (lease->holder == NULL || !lease->holder->is_told || lease->grant == NULL)
        return;
    int64_t to_us = lease->valid_until_us == 0 ? found->until_us
                                               : earlier_of(found->until_us, lease->valid_until_us);
    int64_t from_us = lease->confirms > 0 ? lease->sent_us : lease->grant->at_us;
    if (lease->abort_us != CHECK_NEVER_US || lease->over_us != CHECK_NEVER_US ||
        are_beats_over(lease) || lease->is_refused)
        return; /* the worker knew, and these have rules of their own */
    if (check_overlaps(&book->jumps, from_us, to_us))
        return;
    if (!is_disturbed(book, lease, from_us, to_us))
        check_fail(book, CHECK_C10, found,
                   "%s lost v%" PRId64 ", last confirmed %" PRId64
                   " us before, though nothing was broken",
                   check_worker_name(lease->holder), lease->version, minus(to_us, from_us));
    else if (!check_overlaps(&lease->holder->pauses, from_us, to_us) &&
             !check_overlaps(&lease->holder->downs, from_us, to_us) &&
             !check_overlaps(&book->store_downs, from_us, to_us) &&
             is_claim_lost_only(book, lease, to_us))
        check_fail(book, CHECK_C13, found,
                   "%s lost v%" PRId64 " after a lost reply to its claim, without asking",
                   check_worker_name(lease->holder), lease->version);
}

/* ---------------------------------------------------------------- the walk */

bool check_workers(struct check_book *book)
{
    for (struct check_job *job = book->jobs; job != NULL; job = job->next) {
        for (struct check_event *event = job->first; event != NULL; event = event->next) {
            struct check_lease *lease = event->lease;
            if (lease == NULL)
                continue;
            if (event->note == 0)
                walk_answer(book, event);
            else if (lease->holder == event->by && !lease->is_wrong)
                walk_note(book, event);
            else if (lease->holder == NULL && event->note == PAWLI_NOTE_START)
                check_fail(book, CHECK_C11, event, "%s starts it under a lease nobody granted",
                           check_worker_name(event->by));
        }
        for (struct check_lease *lease = job->leases; lease != NULL; lease = lease->next) {
            if (lease->end == CHECK_EXPIRED)
                check_loss(book, lease);
        }
    }
    return !book->is_out_of_memory;
}
