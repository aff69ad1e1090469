/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_waiting.c - how long work waits: for an idle worker, and for its lease to be recovered.
 * Owns:  C14, C15.
 * Never: counts time in which something was broken.
 */
#include "sim/check_book.h"

#include <inttypes.h>

#define SLACK_MS 10

/* ---------------------------------------------------------------- idle workers */

/* Until when a lease keeps its worker busy. */
static int64_t busy_until_us(const struct check_lease *lease)
{
    if (lease->over_us != CHECK_NEVER_US)
        return lease->over_us;
    if (lease->ended_by != NULL)
        return later_of(lease->ended_by->until_us, lease->valid_until_us);
    return CHECK_NEVER_US;
}

/* The longest that ready work may wait for this worker while it is idle. */
static int64_t patience_us(const struct check_book *book, const struct check_worker *worker)
{
    int64_t round_trips_ms = plus(book->options->round_trip_ms, book->options->round_trip_ms);
    int64_t most_ms = plus(plus(worker->poll_ms, round_trips_ms), SLACK_MS);
    return check_stretched(book, ms_to_us(most_ms));
}

/* From when on, and until when, a worker is up and undisturbed. */
static int64_t first_trouble_us(const struct check_worker *worker, int64_t from_us)
{
    const struct check_spans *all[] = {&worker->downs, &worker->pauses, &worker->shutdowns};
    int64_t first_us = CHECK_NEVER_US;
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        for (size_t i = 0; i < all[k]->count; i++) {
            if (all[k]->items[i].to_us >= from_us)
                first_us = earlier_of(first_us, all[k]->items[i].from_us);
        }
    }
    return first_us;
}

static bool add_idle(struct check_book *book, struct check_worker *worker, int64_t from_us,
                     int64_t to_us)
{
    if (from_us == CHECK_NEVER_US || minus(to_us, from_us) <= patience_us(book, worker))
        return true; /* too short to matter */
    return check_spans_add(book, &worker->idle, (struct check_span){from_us, to_us, 0, 0});
}

static bool find_idle(struct check_book *book, struct check_worker *worker)
{
    if (!worker->is_told || worker->poll_ms <= 0)
        return true;
    int64_t from_us = later_of(plus(book->faults_off_us, ms_to_us(book->options->calm_ms)),
                               worker->up_us);
    int64_t end_us = earlier_of(first_trouble_us(worker, from_us), book->last_at_us);
    for (const struct check_event *event = worker->first; event != NULL; event = event->next_by) {
        if (event->verb == 0 || event->lease == NULL)
            continue;
        if (event->until_us > from_us &&
            !add_idle(book, worker, from_us, earlier_of(event->until_us, end_us)))
            return false;
        from_us = later_of(from_us, busy_until_us(event->lease));
    }
    return add_idle(book, worker, from_us, end_us);
}

static bool serves(const struct check_worker *worker, const struct check_queue *queue)
{
    return queue != NULL &&
           (worker->serves[queue->number / 64 % 4] & (UINT64_C(1) << (queue->number % 64))) != 0;
}

/* When a queue gives work again, if it is paused somewhere in between. NULL: nobody knows which. */
static int64_t after_pauses_us(const struct check_queue *queue, const struct check_span *ready)
{
    int64_t from_us = ready->from_us;
    for (size_t i = 0; queue != NULL && i < queue->pauses.count; i++) {
        const struct check_span *pause = &queue->pauses.items[i];
        if (pause->from_us <= ready->to_us && pause->to_us >= from_us)
            from_us = pause->to_us;
    }
    return from_us;
}

static void check_ready(struct check_book *book, const struct check_job *job,
                        const struct check_span *ready)
{
    int64_t from_us = after_pauses_us(job->queue, ready);
    for (const struct check_worker *worker = book->workers; worker != NULL; worker = worker->next) {
        if (worker->idle.count == 0 || !serves(worker, job->queue))
            continue;
        for (size_t i = 0; i < worker->idle.count; i++) {
            int64_t both_from_us = later_of(from_us, worker->idle.items[i].from_us);
            int64_t both_to_us = earlier_of(ready->to_us, worker->idle.items[i].to_us);
            if (minus(both_to_us, both_from_us) <= patience_us(book, worker))
                continue;
            check_fail_job(book, CHECK_C14, job,
                           "ready from %" PRId64 " to %" PRId64
                           " us while %s, which serves %s and polls every %" PRId64 " ms, was idle",
                           both_from_us, both_to_us, worker->name, job->queue->name,
                           worker->poll_ms);
            return;
        }
    }
}

/* ---------------------------------------------------------------- expired leases */

/* By how much a lease was overdue when it was recovered; 0: not known. In a loose history a reap
 * says it, by the store's own clock; without one, it is known where the expiry is. */
static int64_t overdue_us(const struct check_book *book, const struct check_lease *lease)
{
    const struct check_event *found = lease->ended_by;
    if (!book->options->is_exact && found->verb == PAWLI_VERB_REAP)
        return ms_to_us(found->u.reap.overdue_ms);
    if (lease->expired_store_us == 0 || (!book->options->is_exact && !lease->is_expiry_known))
        return 0;
    return minus(lease->expired_store_us, lease->expires_us);
}

/* When it was recovered, in the history's time. In a loose history an expiry that no reap told is
 * known from its ledger row, whose time is the store's: the next claim ties the two together. */
static int64_t recovered_at_us(const struct check_book *book, const struct check_lease *lease)
{
    const struct check_event *found = lease->ended_by;
    if (book->options->is_exact || found->verb == PAWLI_VERB_REAP)
        return found->until_us;
    const struct check_lease *next = check_lease_of(lease->job, lease->version + 1);
    if (next == NULL || next->grant == NULL || next->grant->verb != PAWLI_VERB_CLAIM)
        return CHECK_NEVER_US;
    int64_t since_us = minus(next->grant->u.grant.claimed_us, lease->expired_store_us);
    return minus(next->grant->until_us, since_us);
}

static void check_recovery(struct check_book *book, const struct check_lease *lease)
{
    int64_t most_us = check_stretched(book, ms_to_us(book->options->reaper_ms));
    bool is_open = lease->end == CHECK_OPEN;
    int64_t found_us = is_open ? book->last_at_us : recovered_at_us(book, lease);
    int64_t late_us = is_open ? minus(found_us, lease->expires_at_latest_us)
                              : overdue_us(book, lease);
    if (late_us <= 0 || found_us == CHECK_NEVER_US)
        return;
    int64_t from_us = book->options->is_exact ? minus(lease->expires_at_us, most_us)
                                              : minus(minus(found_us, late_us), most_us);
    if (check_overlaps(&book->store_downs, from_us, found_us) ||
        check_overlaps(&book->reap_faults, from_us, found_us) ||
        check_overlaps(&book->jumps, earlier_of(from_us, lease->extended_at_us), found_us))
        return;
    book->report->slowest_us = later_of(book->report->slowest_us, late_us);
    if (late_us <= most_us)
        return;
    if (is_open)
        check_fail_job(book, CHECK_C15, lease->job,
                       "v%" PRId64 " of %s expired %" PRId64 " us before the end, unrecovered",
                       lease->version, check_worker_name(lease->holder), late_us);
    else
        check_fail(book, CHECK_C15, lease->ended_by,
                   "v%" PRId64 " of %s was recovered %" PRId64 " us late", lease->version,
                   check_worker_name(lease->holder), late_us);
}

bool check_waiting(struct check_book *book)
{
    bool is_calm = book->faults_off_us != CHECK_NEVER_US;
    for (struct check_worker *worker = book->workers; worker != NULL && is_calm;
         worker = worker->next) {
        if (!find_idle(book, worker))
            return false;
    }
    for (struct check_job *job = book->jobs; job != NULL; job = job->next) {
        if (job->is_wrong)
            continue;
        for (size_t i = 0; i < job->ready.count && is_calm; i++)
            check_ready(book, job, &job->ready.items[i]);
        if (book->options->reaper_ms <= 0)
            continue;
        for (const struct check_lease *lease = job->leases; lease != NULL; lease = lease->next) {
            if (lease->end == CHECK_EXPIRED || (lease == job->leases && job->is_open))
                check_recovery(book, lease);
        }
    }
    return true;
}
