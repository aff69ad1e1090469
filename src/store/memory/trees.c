/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trees.c - the orders in which the memory store keeps its records, and the trees made of them.
 * Owns:  what comes before what.
 * Never: changes a record; has an order in which two different records are equal, but by name and
 *        by dedupe key, where that is what is asked.
 */
#include "store/memory/memory.h"

#include <string.h>

static int order_of(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Half of an id, as a number that orders as its bytes do. */
static uint64_t half_of(const pawl_id *id, size_t at)
{
    uint64_t half = 0;
    for (size_t i = 0; i < sizeof(half); i++)
        half = half << 8 | id->bytes[at + i];
    return half;
}

/* By bytes, as pawl_id_compare(): without a call, since trees ask for nothing else. */
static int job_order(const struct entry *a, const struct entry *b)
{
    uint64_t left = half_of(&a->id, 0), right = half_of(&b->id, 0);
    if (left == right) {
        left = half_of(&a->id, sizeof(left));
        right = half_of(&b->id, sizeof(right));
    }
    return left < right ? -1 : left > right;
}

/* The order of claims: Q-FIFO within a rank, and the ranks as pawl_claim() promises them. */
static int ready_order(const struct entry *a, const struct entry *b)
{
    if (a->priority != b->priority)
        return order_of(a->priority, b->priority);
    if (a->rank != b->rank)
        return order_of((int64_t)a->rank, (int64_t)b->rank);
    if (a->timed_us != b->timed_us)
        return order_of(a->timed_us, b->timed_us);
    return order_of(a->position, b->position);
}

static int lease_order(const struct entry *a, const struct entry *b)
{
    if (a->job.expires_at.us != b->job.expires_at.us)
        return order_of(a->job.expires_at.us, b->job.expires_at.us);
    return job_order(a, b);
}

static int due_order(const struct entry *a, const struct entry *b)
{
    if (a->job.due_at.us != b->job.due_at.us)
        return order_of(a->job.due_at.us, b->job.due_at.us);
    return order_of(a->position, b->position);
}

static int finished_order(const struct entry *a, const struct entry *b)
{
    if (a->job.finished_at.us != b->job.finished_at.us)
        return order_of(a->job.finished_at.us, b->job.finished_at.us);
    return job_order(a, b);
}

static int deadline_order(const struct entry *a, const struct entry *b)
{
    if (a->deadline.us != b->deadline.us)
        return order_of(a->deadline.us, b->deadline.us);
    return job_order(a, b);
}

static int ordering_key_order(const struct ordering_key *a, const struct ordering_key *b)
{
    return strcmp(a->name, b->name);
}

/* A dedupe key is one within its ordering key, or among the jobs that have none. */
static int dedupe_order(const struct entry *a, const struct entry *b)
{
    if (a->ordering_key != b->ordering_key) {
        if (a->ordering_key == NULL || b->ordering_key == NULL)
            return a->ordering_key == NULL ? -1 : 1;
        return ordering_key_order(a->ordering_key, b->ordering_key);
    }
    return strcmp(a->dedupe_key, b->dedupe_key);
}

static int holder_order(const struct holder *a, const struct holder *b)
{
    return strcmp(a->name, b->name);
}

static int queue_order(const struct queue *a, const struct queue *b)
{
    return strcmp(a->name, b->name);
}

static int presence_order(const struct presence *a, const struct presence *b)
{
    return strcmp(a->row.name, b->row.name);
}

static int event_order(const struct kept_event *a, const struct kept_event *b)
{
    if (a->place.at.us != b->place.at.us)
        return order_of(a->place.at.us, b->place.at.us);
    return order_of(a->place.seq, b->place.seq);
}

static int event_id_order(const struct kept_event *a, const struct kept_event *b)
{
    return strcmp(a->id, b->id);
}

static int event_keep_order(const struct kept_event *a, const struct kept_event *b)
{
    if (a->keep_until.us != b->keep_until.us)
        return order_of(a->keep_until.us, b->keep_until.us);
    return order_of(a->place.seq, b->place.seq);
}

static int endpoint_order(const struct endpoint *a, const struct endpoint *b)
{
    return strcmp(a->row.name, b->row.name);
}

TAILED_GENERATE(pawli_job_tree, entry, in_jobs, job_order)
TAILED_GENERATE(pawli_shelf_tree, entry, in_shelves, job_order)
TAILED_GENERATE(pawli_queue_shelf_tree, entry, in_queue_shelves, job_order)
TAILED_GENERATE(pawli_ready_tree, entry, in_line, ready_order)
TAILED_GENERATE(pawli_lease_tree, entry, in_line, lease_order)
TAILED_GENERATE(pawli_due_tree, entry, in_group, due_order)
TAILED_GENERATE(pawli_held_tree, entry, in_group, job_order)
TAILED_GENERATE(pawli_finished_tree, entry, in_group, finished_order)
TAILED_GENERATE(pawli_deadline_tree, entry, in_deadlines, deadline_order)
RB_GENERATE(pawli_dedupe_tree, entry, in_dedupes, dedupe_order)
RB_GENERATE(pawli_ordering_tree, ordering_key, in_keys, ordering_key_order)
RB_GENERATE(pawli_holder_tree, holder, in_holders, holder_order)
RB_GENERATE(pawli_queue_tree, queue, in_queues, queue_order)
RB_GENERATE(pawli_presence_tree, presence, in_presences, presence_order)
RB_GENERATE(pawli_endpoint_tree, endpoint, in_endpoints, endpoint_order)
RB_GENERATE(pawli_event_tree, kept_event, in_events, event_order)
RB_GENERATE(pawli_event_id_tree, kept_event, by_id, event_id_order)
RB_GENERATE(pawli_event_keep_tree, kept_event, by_keep, event_keep_order)
