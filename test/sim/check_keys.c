/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_keys.c - what holds between jobs: of one ordering key, and of one queue.
 * Owns:  C29 to C32 for exact histories; from when on a job that waited behind its key, or for room
 *        in its queue, counts as waiting for a worker (C14).
 * Never: looks at what a job alone has done wrong (check_store.c has).
 */
#include "sim/check_keys.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- gathering */

static bool is_claim(const struct check_lease *lease)
{
    return lease->grant != NULL && lease->grant->verb == PAWLI_VERB_CLAIM;
}

static int by_grant(const void *a, const void *b)
{
    const struct check_event *left = (*(struct check_lease *const *)a)->grant;
    const struct check_event *right = (*(struct check_lease *const *)b)->grant;
    if (left->seq != right->seq)
        return left->seq < right->seq ? -1 : 1;
    return (left->row > right->row) - (left->row < right->row);
}

/* The next job of a key, or of a queue. */
static struct check_job *next_of(const struct check_job *job, bool is_key)
{
    return is_key ? job->next_of_key : job->next_of_queue;
}

bool check_leases_of(struct check_book *book, struct check_job *jobs, bool is_key,
                     struct check_leases *ret_leases)
{
    size_t count = 0;
    for (const struct check_job *job = jobs; job != NULL; job = next_of(job, is_key))
        for (const struct check_lease *lease = job->leases; lease != NULL; lease = lease->next)
            count += is_claim(lease);
    struct check_lease **items = check_alloc(book, (2 * count + 1) * sizeof(struct check_lease *));
    if (items == NULL)
        return false;
    *ret_leases = (struct check_leases){.items = items, .open = items + count};
    for (struct check_job *job = jobs; job != NULL; job = next_of(job, is_key))
        for (struct check_lease *lease = job->leases; lease != NULL; lease = lease->next)
            if (is_claim(lease))
                items[ret_leases->count++] = lease;
    qsort(items, count, sizeof(struct check_lease *), by_grant);
    return true;
}

/* ---------------------------------------------------------------- leases at a time */

/* Whether a lease was still there, and valid by the store's clock, when another was granted. */
static bool is_held_at(const struct check_book *book, const struct check_lease *lease,
                       const struct check_event *grant)
{
    if (lease->end != CHECK_OPEN && lease->ended_by->seq <= grant->seq)
        return false;
    return !check_has_been(book, lease->expires_us, lease->extended_seq, grant);
}

/* Keep those of the open ones that are still held, and add the new one. */
static void open_at(const struct check_book *book, struct check_leases *leases,
                    struct check_lease *lease)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->open_count; i++)
        if (is_held_at(book, leases->open[i], lease->grant))
            leases->open[kept++] = leases->open[i];
    leases->open[kept++] = lease;
    leases->open_count = kept;
}

/* C29 */
static void check_alone(struct check_book *book, const struct check_key *key,
                        struct check_leases *leases)
{
    for (size_t i = 0; i < leases->count; i++) {
        struct check_lease *lease = leases->items[i];
        if (lease->job->is_wrong)
            continue;
        open_at(book, leases, lease);
        for (size_t k = 0; k + 1 < leases->open_count; k++) {
            const struct check_lease *other = leases->open[k];
            if (other->job == lease->job || other->job->is_wrong)
                continue;
            char id[PAWL_ID_TEXT_MAX];
            check_fail(book, CHECK_C29, lease->grant,
                       "claimed by %s while %s holds job %s of the same key \"%s\"",
                       check_worker_name(lease->holder), check_worker_name(other->holder),
                       pawl_id_format(&other->job->id, id), key->name);
            return; /* what follows, follows from it */
        }
    }
}

/* C31 */
static void check_fences(struct check_book *book, const struct check_key *key,
                         const struct check_leases *leases)
{
    int64_t last = 0;
    for (size_t i = 0; i < leases->count; i++) {
        const struct check_event *grant = leases->items[i]->grant;
        if (grant->u.grant.fence <= last) {
            check_fail(book, CHECK_C31, grant,
                       "claimed with the fence %" PRId64 " after %" PRId64 " of the key \"%s\"",
                       grant->u.grant.fence, last, key->name);
            return;
        }
        last = grant->u.grant.fence;
    }
}

/* ---------------------------------------------------------------- order */

/* A stay, and what the order of its key needs to know of those before it. */
struct place {
    struct check_job *job;
    const struct check_stay *stay;
};

static int by_joining(const void *a, const void *b)
{
    const struct check_event *left = ((const struct place *)a)->stay->joined;
    const struct check_event *right = ((const struct place *)b)->stay->joined;
    if (left->seq != right->seq)
        return left->seq < right->seq ? -1 : 1;
    return (left->row > right->row) - (left->row < right->row);
}

/* The stays of a key whose place is known, in order. NULL: no memory. */
static struct place *places_of(struct check_book *book, const struct check_key *key,
                               size_t *ret_count)
{
    size_t count = 0;
    for (const struct check_job *job = key->jobs; job != NULL; job = job->next_of_key)
        for (const struct check_stay *stay = job->stays; stay != NULL; stay = stay->next)
            count++;
    struct place *places = check_alloc(book, (count + 1) * sizeof(*places));
    *ret_count = 0;
    if (places == NULL)
        return NULL;
    for (struct check_job *job = key->jobs; job != NULL; job = job->next_of_key)
        for (const struct check_stay *stay = job->stays; stay != NULL; stay = stay->next)
            if (!stay->is_vague && !job->is_wrong)
                places[(*ret_count)++] = (struct place){job, stay};
    qsort(places, *ret_count, sizeof(*places), by_joining);
    return places;
}

/* C14 counts from when nobody stood before the job any more. */
static void wait_until(struct check_job *job, const struct check_stay *stay, int64_t from_us)
{
    for (size_t i = 0; i < job->ready.count; i++) {
        struct check_span *ready = &job->ready.items[i];
        if (ready->to_us >= stay->joined->at_us && ready->from_us < from_us)
            ready->from_us = from_us;
    }
}

/* C30: the claims of a stay, given the last one of those before it that left. */
static bool check_place(struct check_book *book, const struct check_key *key,
                        const struct place *place, const struct place *before)
{
    /* Without a final list it may have left unseen. */
    if (before->stay->left_seq == UINT32_MAX && book->list_seq == 0)
        return true;
    for (const struct check_lease *lease = place->job->leases; lease != NULL; lease = lease->next) {
        if (!is_claim(lease) || lease->grant->seq < place->stay->joined->seq ||
            lease->grant->seq > place->stay->left_seq || before->stay->left_seq < lease->grant->seq)
            continue;
        char id[PAWL_ID_TEXT_MAX];
        check_fail(book, CHECK_C30, lease->grant,
                   "claimed by %s before job %s, which came before it under the key \"%s\", ended",
                   check_worker_name(lease->holder), pawl_id_format(&before->job->id, id),
                   key->name);
        return false;
    }
    return true;
}

static bool check_order(struct check_book *book, const struct check_key *key)
{
    size_t count;
    struct place *places = places_of(book, key, &count);
    if (places == NULL)
        return false;
    const struct place *last = NULL; /* of those before, the one that left last */
    int64_t until_us = INT64_MIN;
    bool is_right = true;
    for (size_t i = 0; i < count; i++) {
        if (last != NULL) {
            is_right = is_right && check_place(book, key, &places[i], last);
            wait_until(places[i].job, places[i].stay, until_us);
        }
        if (last == NULL || places[i].stay->left_seq > last->stay->left_seq)
            last = &places[i];
        until_us = later_of(until_us, places[i].stay->left_until_us);
    }
    return true;
}

/* ---------------------------------------------------------------- the bound of a queue */

static bool is_ever_bounded(const struct check_queue *queue)
{
    for (const struct check_setting *setting = queue->settings; setting != NULL;
         setting = setting->next)
        if (setting->settings.max_in_flight != 0)
            return true;
    return false;
}

/* C32: in the order of claims, each of them finds room. */
static void check_bound(struct check_book *book, struct check_queue *queue,
                        struct check_leases *leases)
{
    for (size_t i = 0; i < leases->count; i++) {
        struct check_lease *lease = leases->items[i];
        if (lease->job->is_wrong)
            continue;
        open_at(book, leases, lease);
        int64_t bound = check_settings_at(queue, lease->grant->seq).max_in_flight;
        if (bound <= 0 || (int64_t)leases->open_count <= bound)
            continue;
        check_fail(book, CHECK_C32, lease->grant,
                   "claimed by %s as number %zu in flight; %s has room for %" PRId64,
                   check_worker_name(lease->holder), leases->open_count, queue->name, bound);
        return;
    }
}

/* ---------------------------------------------------------------- all of them */

/* A fence is there exactly where a key is; what mine tells is what the claim told. */
static void check_fence_is_of_key(struct check_book *book, const struct check_job *job)
{
    for (const struct check_event *event = job->first_call; event != NULL;
         event = event->next_call) {
        bool is_grant = event->verb == PAWLI_VERB_CLAIM || event->verb == PAWLI_VERB_MINE;
        if (!is_grant || event->code != PAWL_OK)
            continue;
        int64_t fence = event->u.grant.fence;
        bool is_mine = event->verb == PAWLI_VERB_MINE && event->lease != NULL &&
                       is_claim(event->lease);
        if ((fence > 0) != (job->key != NULL) ||
            (is_mine && fence != event->lease->grant->u.grant.fence)) {
            check_fail(book, CHECK_C31, event, "told the fence %" PRId64 " %s", fence,
                       job->key == NULL ? "without an ordering key" : "of another lease, or none");
            return;
        }
    }
}

static bool check_exact(struct check_book *book)
{
    struct check_leases leases;
    for (const struct check_key *key = book->keys; key != NULL; key = key->next) {
        if (!check_leases_of(book, key->jobs, true, &leases))
            return false;
        check_alone(book, key, &leases);
        check_fences(book, key, &leases);
        if (!check_order(book, key))
            return false;
    }
    for (struct check_queue *queue = book->queues; queue != NULL; queue = queue->next) {
        if (!is_ever_bounded(queue))
            continue;
        if (!check_leases_of(book, queue->jobs, false, &leases))
            return false;
        check_bound(book, queue, &leases);
    }
    return true;
}

bool check_keys(struct check_book *book)
{
    for (const struct check_job *job = book->jobs; job != NULL; job = job->next)
        if (!job->is_wrong)
            check_fence_is_of_key(book, job);
    bool is_done = book->options->is_exact ? check_exact(book) : check_keys_loose(book);
    for (struct check_job *job = book->jobs; job != NULL; job = job->next)
        if (job->queue != NULL && is_ever_bounded(job->queue))
            job->ready.count = 0; /* it may have waited for room: C14 does not know */
    return is_done;
}
