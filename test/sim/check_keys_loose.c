/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_keys_loose.c - what a history of overlapping calls can show of C29 to C32.
 * Owns:  the cases in which no order of the calls would have been right.
 * Never: takes a call for done that may not have been, or for done at one moment of its time rather
 *        than at another.
 */
#include "sim/check_keys.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_before(const struct check_event *a, const struct check_event *b)
{
    return a->until_us < b->at_us;
}

/* ---------------------------------------------------------------- leases */

/* Whether a lease was certainly held when the other was granted: granted before it or with it, not
 * given up before that claim had come back, and valid by the store's clock. */
static bool is_held_at(const struct check_book *book, const struct check_lease *lease,
                       const struct check_event *grant)
{
    bool is_granted = lease->grant->seq == grant->seq || is_before(lease->grant, grant);
    if (!is_granted || book->peaks.count > 0 || lease->unknown_settles != 0 ||
        lease->is_unknown_release)
        return false;
    const struct check_event *listed = lease->job->listed;
    switch (lease->end) {
    case CHECK_SETTLED:
    case CHECK_RELEASED:
        if (lease->ended_by->at_us <= grant->until_us)
            return false;
        break;
    case CHECK_OPEN:
        /* Its holder may have ended it with its last breath, which nobody wrote down. */
        if (listed == NULL || listed->state != PAWL_IN_FLIGHT || listed->version != lease->version)
            return false;
        break;
    case CHECK_EXPIRED:
        break;
    }
    return lease->expires_us > grant->u.grant.claimed_us;
}

/* Whether it can be held at no later claim either. */
static bool is_done_with(const struct check_lease *lease, const struct check_event *grant)
{
    bool is_ended = lease->end == CHECK_SETTLED || lease->end == CHECK_RELEASED;
    return (is_ended && lease->ended_by->at_us <= grant->at_us) ||
           lease->expires_us <= grant->u.grant.claimed_us;
}

static void open_at(struct check_leases *leases, struct check_lease *lease)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->open_count; i++)
        if (!is_done_with(leases->open[i], lease->grant))
            leases->open[kept++] = leases->open[i];
    leases->open[kept++] = lease;
    leases->open_count = kept;
}

static void check_alone(struct check_book *book, const struct check_key *key,
                        struct check_leases *leases)
{
    for (size_t i = 0; i < leases->count; i++) {
        struct check_lease *lease = leases->items[i];
        open_at(leases, lease);
        for (size_t k = 0; k + 1 < leases->open_count; k++) {
            const struct check_lease *other = leases->open[k];
            if (other->job == lease->job || !is_held_at(book, other, lease->grant))
                continue;
            char id[PAWL_ID_TEXT_MAX];
            check_fail(book, CHECK_C29, lease->grant,
                       "claimed by %s while %s holds job %s of the same key \"%s\"",
                       check_worker_name(lease->holder), check_worker_name(other->holder),
                       pawl_id_format(&other->job->id, id), key->name);
            return;
        }
    }
}

/* The bound that a queue had all the time; 0: none, or not always the same. */
static int64_t steady_bound(const struct check_queue *queue, const struct check_leases *leases)
{
    int64_t bound = 0;
    uint32_t first_seq = UINT32_MAX;
    for (const struct check_setting *setting = queue->settings; setting != NULL;
         setting = setting->next) {
        if (setting->settings.max_in_flight <= 0 ||
            (bound != 0 && bound != setting->settings.max_in_flight))
            return 0;
        bound = setting->settings.max_in_flight;
        first_seq = setting->seq;
    }
    bool is_set_first = leases->count == 0 || first_seq < leases->items[0]->grant->seq;
    return is_set_first ? bound : 0;
}

static void check_bound(struct check_book *book, const struct check_queue *queue,
                        struct check_leases *leases)
{
    int64_t bound = steady_bound(queue, leases);
    for (size_t i = 0; i < leases->count && bound > 0; i++) {
        struct check_lease *lease = leases->items[i];
        open_at(leases, lease);
        int64_t held = 1;
        for (size_t k = 0; k + 1 < leases->open_count; k++)
            held += is_held_at(book, leases->open[k], lease->grant);
        if (held <= bound)
            continue;
        check_fail(book, CHECK_C32, lease->grant,
                   "claimed by %s as number %" PRId64 " in flight; %s has room for %" PRId64,
                   check_worker_name(lease->holder), held, queue->name, bound);
        return;
    }
}

/* ---------------------------------------------------------------- fences */

static int by_return(const void *a, const void *b)
{
    const struct check_event *left = (*(struct check_lease *const *)a)->grant;
    const struct check_event *right = (*(struct check_lease *const *)b)->grant;
    return (left->until_us > right->until_us) - (left->until_us < right->until_us);
}

/* Whoever had his fence before another claim began has the lower one. */
static void check_fences(struct check_book *book, const struct check_key *key,
                         struct check_leases *leases)
{
    struct check_lease **returned = leases->open; /* nobody needs it any more */
    if (leases->count > 0)
        memcpy(returned, leases->items, leases->count * sizeof(struct check_lease *));
    qsort(returned, leases->count, sizeof(struct check_lease *), by_return);
    int64_t last = 0;
    size_t at = 0;
    for (size_t i = 0; i < leases->count; i++) {
        const struct check_event *grant = leases->items[i]->grant;
        for (; at < leases->count && is_before(returned[at]->grant, grant); at++)
            last = later_of(last, returned[at]->grant->u.grant.fence);
        if (grant->u.grant.fence > last)
            continue;
        check_fail(book, CHECK_C31, grant,
                   "claimed with the fence %" PRId64 " after %" PRId64 " of the key \"%s\"",
                   grant->u.grant.fence, last, key->name);
        return;
    }
}

/* ---------------------------------------------------------------- order */

/* A job that came once, and when it can have ended at the earliest. */
struct place {
    const struct check_job *job;
    const struct check_event *joined;
    int64_t left_us; /* INT64_MIN: not known; CHECK_NEVER_US: never */
};

static bool is_terminal_event(const struct check_event *event)
{
    bool is_end = event->verb == PAWLI_VERB_SETTLE || event->verb == PAWLI_VERB_REAP ||
                  event->verb == PAWLI_VERB_CANCEL;
    return is_end && event->code == PAWL_OK &&
           (event->state == PAWL_SUCCEEDED || event->state == PAWL_FAILED);
}

/* Where it stands is known only of a job that was accepted once, and never redriven; when it ended,
 * only where nothing without an answer, and no cancellation of one that had run, can have ended it
 * before. */
static bool find_place(const struct check_job *job, struct place *ret_place)
{
    struct place place = {.job = job, .left_us = INT64_MIN};
    bool is_unsure = false;
    if (job->listed != NULL &&
        (job->listed->state == PAWL_READY || job->listed->state == PAWL_IN_FLIGHT))
        place.left_us = CHECK_NEVER_US;
    for (const struct check_event *event = job->first_call; event != NULL;
         event = event->next_call) {
        bool is_unknown = event->code == PAWL_UNKNOWN;
        if (event->verb == PAWLI_VERB_REDRIVE && (event->code == PAWL_OK || is_unknown))
            return false;
        if (event->verb == PAWLI_VERB_ENQUEUE && is_unknown)
            return false;
        if (event->verb == PAWLI_VERB_ENQUEUE && event->code == PAWL_OK)
            place.joined = event;
        is_unsure = is_unsure || (event->verb == PAWLI_VERB_SETTLE && is_unknown) ||
                    (event->verb == PAWLI_VERB_CANCEL && (is_unknown || job->leases != NULL));
        if (is_terminal_event(event) && place.left_us == INT64_MIN)
            place.left_us = event->at_us;
    }
    if (is_unsure)
        place.left_us = INT64_MIN;
    *ret_place = place;
    return place.joined != NULL && job->before == NULL && !job->is_superseded;
}

static int by_joining(const void *a, const void *b)
{
    const struct check_event *left = ((const struct place *)a)->joined;
    const struct check_event *right = ((const struct place *)b)->joined;
    return (left->at_us > right->at_us) - (left->at_us < right->at_us);
}

static int by_joined(const void *a, const void *b)
{
    const struct check_event *left = ((const struct place *)a)->joined;
    const struct check_event *right = ((const struct place *)b)->joined;
    return (left->until_us > right->until_us) - (left->until_us < right->until_us);
}

static const struct check_event *first_claim(const struct check_job *job)
{
    const struct check_event *first = NULL;
    for (const struct check_lease *lease = job->leases; lease != NULL; lease = lease->next)
        if (lease->grant != NULL && lease->grant->verb == PAWLI_VERB_CLAIM &&
            (first == NULL || lease->grant->until_us < first->until_us))
            first = lease->grant;
    return first;
}

/* Each job against the one that left last of those that certainly came before it. */
static void check_places(struct check_book *book, const struct check_key *key,
                         const struct place *joining, const struct place *joined, size_t count)
{
    const struct place *last = NULL;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        for (; at < count && is_before(joined[at].joined, joining[i].joined); at++)
            if (joined[at].left_us != INT64_MIN &&
                (last == NULL || joined[at].left_us > last->left_us))
                last = &joined[at];
        const struct check_event *claim = first_claim(joining[i].job);
        if (last == NULL || claim == NULL || claim->until_us >= last->left_us)
            continue;
        char id[PAWL_ID_TEXT_MAX];
        check_fail(book, CHECK_C30, claim,
                   "claimed by %s before job %s, which came before it under the key \"%s\", ended",
                   check_worker_name(claim->by), pawl_id_format(&last->job->id, id), key->name);
        return;
    }
}

static bool check_order(struct check_book *book, const struct check_key *key)
{
    size_t count = 0;
    for (const struct check_job *job = key->jobs; job != NULL; job = job->next_of_key)
        count++;
    struct place *joining = check_alloc(book, 2 * count * sizeof(*joining));
    if (joining == NULL)
        return false;
    struct place *joined = joining + count;
    count = 0;
    for (const struct check_job *job = key->jobs; job != NULL; job = job->next_of_key)
        count += find_place(job, &joining[count]);
    if (count > 0)
        memcpy(joined, joining, count * sizeof(*joined));
    qsort(joining, count, sizeof(*joining), by_joining);
    qsort(joined, count, sizeof(*joined), by_joined);
    check_places(book, key, joining, joined, count);
    return true;
}

/* ---------------------------------------------------------------- all of them */

bool check_keys_loose(struct check_book *book)
{
    bool is_by_filter =
        false; /* such changes name no jobs: anybody may have ended, or come again */
    struct check_leases leases;
    for (const struct check_where *where = book->wheres; where != NULL; where = where->next)
        is_by_filter = is_by_filter || where->verb == PAWLI_VERB_CANCEL ||
                       where->verb == PAWLI_VERB_REDRIVE;
    for (const struct check_key *key = book->keys; key != NULL; key = key->next) {
        if (!check_leases_of(book, key->jobs, true, &leases))
            return false;
        check_alone(book, key, &leases);
        check_fences(book, key, &leases);
        if (!is_by_filter && !check_order(book, key))
            return false;
    }
    for (const struct check_queue *queue = book->queues; queue != NULL; queue = queue->next) {
        if (queue->settings == NULL)
            continue;
        if (!check_leases_of(book, queue->jobs, false, &leases))
            return false;
        check_bound(book, queue, &leases);
    }
    return true;
}
