/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_loose.c - what can be proved of the store's answers when calls were timed by their callers,
 * overlap, and may have ended without an answer.
 * Owns:  for loose histories C2-C9, C18, C23, C24.
 * Never: relies on the order of records where the calls overlapped: leases are ordered by their
 *        versions, times are the store's own; reports what an unanswered call may explain.
 */
#include "sim/check_book.h"

#include <inttypes.h>
#include <stdlib.h>

/* What is known of a job as a whole. */
struct view {
    struct check_book *book;
    struct check_job *job;
    struct check_lease **leases; /* by version */
    size_t leases_count;
    bool may_be_redriven; /* by an answered call, one without an answer, or one by filter */
};

/* One call had returned before the other began. */
static bool is_before(const struct check_event *a, const struct check_event *b)
{
    return a->until_us < b->at_us;
}

static void wrong(struct view *view, enum check_rule rule, const struct check_event *event,
                  const char *text, int64_t number)
{
    if (view->job->is_wrong)
        return;
    view->job->is_wrong = true;
    check_fail(view->book, rule, event, text, number);
}

/* ---------------------------------------------------------------- one lease */

/* Whether the settle is the one that counts, or says the same once more. */
static void settled(struct view *view, struct check_lease *lease, const struct check_event *event)
{
    if (lease->end == CHECK_RELEASED)
        wrong(view, CHECK_C3, event, "settled, although v%" PRId64 " was given back",
              lease->version);
    if (lease->end == CHECK_SETTLED) {
        bool is_cancelled = lease->ended_by->state == PAWL_FAILED;
        if (lease->settled_as != (pawl_settle_action)event->action && !is_cancelled)
            wrong(view, CHECK_C3, event, "settled in two ways under v%" PRId64, lease->version);
        if (lease->settled_no != event->u.settle.attempt_no)
            wrong(view, CHECK_C7, event, "a repeated settle has another row: %" PRId64,
                  event->u.settle.attempt_no);
        return;
    }
    lease->end = CHECK_SETTLED;
    lease->ended_by = event;
    lease->settled_as = (pawl_settle_action)event->action;
    lease->settled_no = event->u.settle.attempt_no;
}

static void renewed(struct view *view, struct check_lease *lease, const struct check_event *event,
                    const struct check_event *before)
{
    if (before != NULL && is_before(before, event) &&
        event->u.renew.expires_us < before->u.renew.expires_us)
        wrong(view, CHECK_C23, event, "a renewal shortened the lease by %" PRId64 " us",
              minus(before->u.renew.expires_us, event->u.renew.expires_us));
    if (lease->grant != NULL && event->u.renew.expires_us < lease->grant->u.grant.expires_us)
        wrong(view, CHECK_C23, event, "a renewal shortened the lease to less than v%" PRId64 " had",
              lease->version);
    /* When the store granted it: a lease before its end, unless it ended later already. */
    int64_t granted_us = minus(event->u.renew.expires_us, ms_to_us(event->u.renew.lease_ms));
    const struct check_event *last = before != NULL ? before : lease->grant;
    if (lease->is_expiry_known && last != NULL && is_before(last, event) &&
        event->u.renew.expires_us > lease->expires_us && granted_us >= lease->expires_us)
        wrong(view, CHECK_C3, event, "renewed %" PRId64 " us after the lease expired",
              minus(granted_us, lease->expires_us));
    lease->expires_us = later_of(lease->expires_us, event->u.renew.expires_us);
}

/* Accepted under this lease: with its token, by its holder, and not after its end was known. */
static void check_accepted(struct view *view, struct check_lease *lease,
                           const struct check_event *event)
{
    bool is_replay = event->verb == PAWLI_VERB_SETTLE && lease->end == CHECK_SETTLED;
    if (lease->grant != NULL && !is_replay &&
        (lease->grant->digest != event->digest || lease->holder != event->by))
        wrong(view, CHECK_C3, event, "accepted under v%" PRId64 " from another holder or token",
              lease->version);
    if (lease->end != CHECK_OPEN && !is_replay && is_before(lease->ended_by, event))
        wrong(view, CHECK_C3, event, "accepted after the end of v%" PRId64, lease->version);
    if (is_replay)
        return;
    for (const struct check_lease *later = view->job->leases; later != NULL; later = later->next) {
        if (later->version > lease->version && later->grant != NULL &&
            is_before(later->grant, event))
            wrong(view, CHECK_C3, event, "accepted under v%" PRId64 " after a later claim",
                  lease->version);
    }
}

static void walk_calls(struct view *view)
{
    for (struct check_event *event = view->job->first_call; event != NULL;
         event = event->next_call) {
        struct check_lease *lease = event->lease;
        if (event->verb == PAWLI_VERB_REDRIVE &&
            (event->code == PAWL_OK || event->code == PAWL_UNKNOWN))
            view->may_be_redriven = true;
        /* A renewal without an answer may have extended it. */
        if (lease != NULL && event->verb == PAWLI_VERB_RENEW && event->code == PAWL_UNKNOWN)
            lease->is_expiry_known = false;
        if (event->verb == PAWLI_VERB_CLAIM && lease == NULL)
            wrong(view, CHECK_C8, event, "granted as version %" PRId64, event->version);
        if (lease == NULL || event->code != PAWL_OK)
            continue;
        switch (event->verb) {
        case PAWLI_VERB_CLAIM:
        case PAWLI_VERB_MINE:
            lease->expires_us = later_of(lease->expires_us, event->u.grant.expires_us);
            lease->is_expiry_known = lease->renewed == NULL && event->verb == PAWLI_VERB_CLAIM;
            break;
        case PAWLI_VERB_RENEW:
            check_accepted(view, lease, event);
            renewed(view, lease, event, lease->renewed);
            lease->renewed = event;
            break;
        case PAWLI_VERB_SETTLE:
            check_accepted(view, lease, event);
            settled(view, lease, event);
            break;
        case PAWLI_VERB_RELEASE:
            check_accepted(view, lease, event);
            if (lease->end != CHECK_OPEN)
                wrong(view, CHECK_C3, event, "given back, although v%" PRId64 " had ended",
                      lease->version);
            lease->end = CHECK_RELEASED;
            lease->ended_by = event;
            break;
        default:
            break;
        }
    }
}

/* Expiries are looked at last: a settle that was under way at the time explains more. */
static void walk_reaps(struct view *view)
{
    for (struct check_event *event = view->job->first_call; event != NULL;
         event = event->next_call) {
        struct check_lease *lease = event->lease;
        if (event->verb != PAWLI_VERB_REAP || event->code != PAWL_OK || lease == NULL)
            continue;
        if (lease->end == CHECK_SETTLED || lease->end == CHECK_RELEASED)
            wrong(view, CHECK_C9, event, "reaped, although v%" PRId64 " was ended by its holder",
                  lease->version);
        else if (lease->end == CHECK_EXPIRED)
            wrong(view, CHECK_C9, event, "v%" PRId64 " was reaped twice", lease->version);
        lease->end = CHECK_EXPIRED;
        lease->ended_by = event;
    }
}

/* ---------------------------------------------------------------- one lease after the other */

static bool is_terminal_end(const struct check_lease *lease)
{
    return lease->end != CHECK_OPEN && lease->ended_by->verb != PAWLI_VERB_RELEASE &&
           (lease->ended_by->state == PAWL_SUCCEEDED || lease->ended_by->state == PAWL_FAILED);
}

static void check_pair(struct view *view, const struct check_lease *lease,
                       const struct check_lease *next)
{
    const struct check_event *claim = next->grant;
    bool is_told = claim != NULL && claim->verb == PAWLI_VERB_CLAIM;
    if (is_terminal_end(lease)) {
        bool is_final = lease->ended_by->state == PAWL_SUCCEEDED;
        if (is_final || !view->may_be_redriven)
            wrong(view, CHECK_C5, claim, "claimed again after v%" PRId64 " had ended the job",
                  lease->version);
        return;
    }
    if (!is_told)
        return;
    bool may_have_ended = lease->end == CHECK_SETTLED || lease->end == CHECK_RELEASED ||
                          lease->unknown_settles != 0 || lease->is_unknown_release;
    if (!may_have_ended && lease->expires_us > claim->u.grant.claimed_us &&
        view->book->peaks.count == 0)
        wrong(view, CHECK_C2, claim, "claimed %" PRId64 " us before the lease before it expires",
              minus(lease->expires_us, claim->u.grant.claimed_us));
    if (lease->end == CHECK_SETTLED && next->version == lease->version + 1 &&
        lease->ended_by->u.settle.due_us > claim->u.grant.claimed_us &&
        view->book->peaks.count == 0)
        wrong(view, CHECK_C18, claim, "claimed %" PRId64 " us before it is due",
              minus(lease->ended_by->u.settle.due_us, claim->u.grant.claimed_us));
}

static void check_versions(struct view *view)
{
    int64_t last = 0;
    int64_t missing = 0;
    uint32_t completions = 0;
    for (size_t i = 0; i < view->leases_count; i++) {
        struct check_lease *lease = view->leases[i];
        if (lease->claims > 1)
            wrong(view, CHECK_C8, lease->grant, "version %" PRId64 " was granted twice",
                  lease->version);
        missing = plus(missing, minus(lease->version, last) - 1);
        if (lease->claims == 0)
            missing = plus(missing, 1); /* its claim was not answered */
        last = lease->version;
        bool is_completion = lease->end == CHECK_SETTLED && lease->settled_as == PAWL_SUCCEED;
        if (is_completion && ++completions > 1)
            wrong(view, CHECK_C4, lease->ended_by, "completed again under v%" PRId64,
                  lease->version);
        if (i > 0)
            check_pair(view, view->leases[i - 1], lease);
    }
    if (missing > (int64_t)view->book->unknown_claims && view->job->enqueued_ok > 0)
        wrong(view, CHECK_C8, view->leases[view->leases_count - 1]->grant,
              "%" PRId64 " versions were never granted, and no claim went unanswered", missing);
}

static void check_bounds(struct view *view)
{
    for (size_t i = 0; i < view->leases_count; i++) {
        const struct check_event *grant = view->leases[i]->grant;
        if (grant == NULL)
            continue;
        int64_t most = check_settings_at(view->job->queue, grant->seq).max_lost_leases;
        if (grant->u.grant.retries > grant->u.grant.max_retries)
            wrong(view, CHECK_C6, grant, "claimed after %" PRId64 " retries, more than it has",
                  grant->u.grant.retries);
        if (most >= 0 && grant->u.grant.lost >= most)
            wrong(view, CHECK_C6, grant, "claimed after %" PRId64 " lost leases, more than allowed",
                  grant->u.grant.lost);
    }
}

/* ---------------------------------------------------------------- the ledger */

/* A row of this lease: does it say what the lease's end says? */
static void check_row(struct view *view, struct check_lease *lease, const struct check_event *row)
{
    bool is_expiry = row->ended_by == PAWL_ENDED_BY_EXPIRY;
    if (lease == NULL) {
        if (view->book->unknown_claims == 0)
            wrong(view, CHECK_C7, row, "row %" PRId64 " is of a lease that nobody was granted",
                  row->u.attempt.number);
        return;
    }
    if (lease->is_in_ledger)
        wrong(view, CHECK_C7, row, "row %" PRId64 " is the second of its lease",
              row->u.attempt.number);
    lease->is_in_ledger = true;
    if (is_expiry && row->u.attempt.finished_us < lease->expires_us)
        wrong(view, CHECK_C9, row, "recovered %" PRId64 " us before the lease expires",
              minus(lease->expires_us, row->u.attempt.finished_us));
    if (lease->end == CHECK_SETTLED && lease->is_expiry_known &&
        row->u.attempt.finished_us >= lease->expires_us)
        wrong(view, CHECK_C3, row, "settled %" PRId64 " us after the lease expired",
              minus(row->u.attempt.finished_us, lease->expires_us));
    if (lease->end == CHECK_SETTLED && (is_expiry || lease->settled_no != row->u.attempt.number))
        wrong(view, CHECK_C7, row, "row %" PRId64 " is not the one that its settle was told",
              row->u.attempt.number);
    const struct check_event *settle = lease->ended_by;
    if (lease->end == CHECK_SETTLED && settle->state == PAWL_READY &&
        settle->u.settle.delay_ms != PAWL_DEFAULT && settle->u.settle.due_us != 0 &&
        minus(settle->u.settle.due_us, row->u.attempt.finished_us) !=
            ms_to_us(settle->u.settle.delay_ms))
        wrong(view, CHECK_C18, settle, "not due after the %" PRId64 " ms that were asked for",
              settle->u.settle.delay_ms);
    bool is_done = row->outcome == PAWL_DISPATCHED;
    if (lease->end == CHECK_SETTLED && is_done != (lease->settled_as == PAWL_SUCCEED))
        wrong(view, CHECK_C7, row, "row %" PRId64 " does not say what was settled",
              row->u.attempt.number);
    if (lease->end == CHECK_EXPIRED && !is_expiry)
        wrong(view, CHECK_C7, row, "row %" PRId64 " is of a lease that was reaped",
              row->u.attempt.number);
    if (lease->end == CHECK_OPEN && is_expiry) {
        lease->end = CHECK_EXPIRED; /* found on the way by a claim */
        lease->ended_by = row;
        lease->expired_store_us = row->u.attempt.finished_us;
    }
}

static void check_rows(struct view *view)
{
    const struct check_job *job = view->job;
    int64_t number = 0;
    for (const struct check_event *row = job->ledger_first; row != NULL; row = row->next) {
        number++;
        if (row->u.attempt.number != number)
            wrong(view, CHECK_C7, row, "row %" PRId64 " stands where another one must",
                  row->u.attempt.number);
        if (row->version != 0)
            check_row(view, check_lease_of(view->job, row->version), row);
    }
    if (job->listed != NULL && job->listed->u.grant.attempts != number)
        wrong(view, CHECK_C7, job->listed, "%" PRId64 " rows by the list's count, others by theirs",
              job->listed->u.grant.attempts);
    for (size_t i = 0; i < view->leases_count; i++) {
        const struct check_lease *lease = view->leases[i];
        if (!lease->is_in_ledger && (lease->end == CHECK_SETTLED || lease->end == CHECK_EXPIRED))
            wrong(view, CHECK_C7, lease->ended_by, "the end of v%" PRId64 " has no ledger row",
                  lease->version);
    }
}

/* ---------------------------------------------------------------- the walk */

static int by_version(const void *a, const void *b)
{
    const struct check_lease *left = *(struct check_lease *const *)a;
    const struct check_lease *right = *(struct check_lease *const *)b;
    return (left->version > right->version) - (left->version < right->version);
}

static bool walk_job(struct check_book *book, struct check_job *job)
{
    struct view view = {.book = book, .job = job};
    for (const struct check_where *where = book->wheres; where != NULL; where = where->next)
        view.may_be_redriven = view.may_be_redriven || where->verb == PAWLI_VERB_REDRIVE;
    for (const struct check_lease *lease = job->leases; lease != NULL; lease = lease->next)
        view.leases_count++;
    view.leases = check_alloc(book, (view.leases_count + 1) * sizeof(struct check_lease *));
    if (view.leases == NULL)
        return false;
    size_t i = 0;
    for (struct check_lease *lease = job->leases; lease != NULL; lease = lease->next)
        view.leases[i++] = lease;
    qsort(view.leases, view.leases_count, sizeof(struct check_lease *), by_version);
    if (job->before != NULL && book->prunes == 0 && job->first_call != NULL)
        wrong(&view, CHECK_C24, job->first_call,
              "accepted %" PRId64 " times, though the job exists", 2);
    walk_calls(&view);
    walk_reaps(&view);
    if (view.leases_count > 0)
        check_versions(&view);
    check_bounds(&view);
    if (job->has_ledger)
        check_rows(&view);
    return true;
}

bool check_loose(struct check_book *book)
{
    for (struct check_job *job = book->jobs; job != NULL; job = job->next) {
        if (!walk_job(book, job))
            return false;
    }
    return true;
}
