/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_stops.c - what workers do from the moment they are told to shut down.
 * Owns:  C28.
 * Never: blames a worker for what broke around it while it shut down, or for a time too short to
 *        give anything back.
 */
#include "sim/check_book.h"

#include <inttypes.h>

#define GRACE_PART 4  /* of a shutdown's time, this part at most is grace: see keeper.h */
#define SLACK_MS   10 /* a worker looks at its clock as often as that */

/* A worker's shutdown, as far as its notes have been read. */
struct stop {
    struct check_worker *worker;
    int64_t told_us;       /* CHECK_NEVER_US: not yet */
    int64_t stop_by_us;    /* the time is up, at the latest */
    int64_t stop_from_us;  /* and at the earliest, by clocks that differ */
    int64_t abort_from_us; /* running work may be told to stop from here on */
    int64_t grace_ms;
};

static void told(const struct check_book *book, struct stop *stop, const struct check_event *event)
{
    int64_t timeout_us = ms_to_us(event->u.told.a);
    if (stop->told_us == CHECK_NEVER_US) {
        stop->told_us = event->at_us;
        stop->stop_by_us = stop->stop_from_us = CHECK_NEVER_US;
    }
    /* A second one can only shorten it. */
    stop->stop_by_us = earlier_of(stop->stop_by_us,
                                  plus(event->at_us, check_stretched(book, timeout_us)));
    stop->stop_from_us = earlier_of(stop->stop_from_us,
                                    plus(event->at_us, check_shrunk(book, timeout_us)));
    int64_t left_us = later_of(0, minus(stop->stop_from_us, event->at_us));
    int64_t grace_us = earlier_of(ms_to_us(stop->grace_ms), left_us / GRACE_PART);
    stop->abort_from_us = plus(event->at_us, check_shrunk(book, minus(left_us, grace_us)));
}

/* Whether anything in [from, to] can keep a worker from giving back what it holds. */
static bool is_disturbed(const struct check_book *book, const struct check_worker *worker,
                         int64_t from_us, int64_t to_us)
{
    /* A call that went wrong before is still waited for, or repeated. */
    int64_t before_us = ms_to_us(plus(book->options->recover_ms, book->options->round_trip_ms));
    from_us = minus(from_us, before_us);
    return check_overlaps(&worker->pauses, from_us, to_us) ||
           check_overlaps(&worker->faults, from_us, to_us) ||
           check_overlaps(&book->store_downs, from_us, to_us);
}

static bool is_unstarted(const struct check_worker *worker, const struct check_lease *lease)
{
    return lease != NULL && lease->holder == worker && lease->started_us == CHECK_NEVER_US &&
           !lease->is_wrong;
}

/* Each may take a release of its own, and before that a claim or a renewal may be under way. */
static int64_t needed_us(const struct check_book *book, const struct stop *stop)
{
    const struct check_worker *worker = stop->worker;
    int64_t calls = 3;
    for (const struct check_event *event = worker->first; event != NULL; event = event->next_by)
        calls += event->verb == PAWLI_VERB_CLAIM && is_unstarted(worker, event->lease) &&
                 event->lease->over_us >= stop->told_us;
    int64_t call_us = ms_to_us(plus(book->options->round_trip_ms, SLACK_MS));
    int64_t needed;
    return __builtin_mul_overflow(calls, call_us, &needed) ? CHECK_NEVER_US : needed;
}

/* Everything that it was sure to hold and had not started has been given back. */
static void check_left(struct check_book *book, const struct stop *stop,
                       const struct check_event *stopped)
{
    for (const struct check_event *event = stop->worker->first; event != NULL;
         event = event->next_by) {
        const struct check_lease *lease = event->lease;
        if (event->verb != PAWLI_VERB_CLAIM || !is_unstarted(stop->worker, lease))
            continue;
        if (lease->confirms > 0 && lease->over_us == CHECK_NEVER_US && !lease->is_release_ok)
            check_fail(book, CHECK_C28, event,
                       "%s stops %" PRId64 " us after it was told to, and has not given it back",
                       stop->worker->name, minus(stopped->at_us, stop->told_us));
    }
}

static void check_stopped(struct check_book *book, const struct stop *stop,
                          const struct check_event *stopped)
{
    if (is_disturbed(book, stop->worker, stop->told_us, stopped->at_us))
        return;
    if (stopped->at_us > plus(stop->stop_by_us, ms_to_us(SLACK_MS)))
        check_fail(book, CHECK_C28, stopped, "%s stops %" PRId64 " us after its time was up",
                   stop->worker->name, minus(stopped->at_us, stop->stop_by_us));
    if (minus(stop->stop_from_us, stop->told_us) >= needed_us(book, stop))
        check_left(book, stop, stopped);
}

/* What was on its way when it was told may arrive; nothing is asked for after that. */
static void check_claim(struct check_book *book, const struct stop *stop,
                        const struct check_event *event)
{
    int64_t way_us = check_stretched(book, ms_to_us(book->options->round_trip_ms));
    if (event->at_us > plus(stop->told_us, way_us) &&
        !is_disturbed(book, stop->worker, stop->told_us, event->at_us))
        check_fail(book, CHECK_C28, event, "%s claims it %" PRId64 " us after it was told to stop",
                   stop->worker->name, minus(event->at_us, stop->told_us));
}

static void check_worker(struct check_book *book, struct check_worker *worker)
{
    struct stop stop = {.worker = worker, .told_us = CHECK_NEVER_US};
    for (const struct check_event *event = worker->first; event != NULL; event = event->next_by) {
        bool is_told = stop.told_us != CHECK_NEVER_US;
        if (event->verb == PAWLI_VERB_CLAIM && is_told)
            check_claim(book, &stop, event);
        else if (event->note == PAWLI_NOTE_WORKER_UP)
            stop.grace_ms = event->u.told.c;
        else if (event->note == PAWLI_NOTE_SHUTDOWN)
            told(book, &stop, event);
        else if (event->note == PAWLI_NOTE_ABORT && event->u.told.a == PAWLI_WHY_SHUTDOWN &&
                 is_told && event->at_us < stop.abort_from_us)
            check_fail(book, CHECK_C28, event,
                       "%s stops it for its shutdown %" PRId64 " us before it must", worker->name,
                       minus(stop.abort_from_us, event->at_us));
        else if (event->note == PAWLI_NOTE_WORKER_STOPPED && is_told)
            check_stopped(book, &stop, event);
        if (event->note == PAWLI_NOTE_WORKER_STOPPED || event->note == PAWLI_NOTE_WORKER_CRASH)
            stop.told_us = CHECK_NEVER_US;
    }
}

bool check_stops(struct check_book *book)
{
    for (struct check_worker *worker = book->workers; worker != NULL; worker = worker->next) {
        if (worker->is_told)
            check_worker(book, worker);
    }
    return true;
}
