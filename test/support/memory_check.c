/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_check.c - whether all the records of a memory store agree.
 * Owns:  a second account of M1 to M9, made from the jobs alone.
 * Never: changes anything; trusts a counter.
 */
#include "support/memory_check.h"

#include "core/id.h"
#include "store/memory/memory.h"

#include <string.h>

#define CHECK(condition, text) \
    do {                       \
        if (!(condition))      \
            return "" text;    \
    } while (0)

/* ---- the size of a tree, walked from end to end; below 0: its last one is another */

#define WALK(tree, member, head)                  \
    int64_t size = 0;                             \
    struct member *record;                        \
    struct member *last = NULL;                   \
    RB_FOREACH(record, pawli_##tree##_tree, head) \
    {                                             \
        size++;                                   \
        last = record;                            \
    }

#define SIZE_OF(tree, member)                                       \
    static int64_t size_of_##tree(struct pawli_##tree##_tree *head) \
    {                                                               \
        WALK(tree, member, head)                                    \
        return last == head->last ? size : -1;                      \
    }

#define SIZE_OF_SHELVES(tree)                                       \
    static int64_t size_of_##tree(struct pawli_##tree##_tree *head) \
    {                                                               \
        int64_t sum = 0;                                            \
        for (int i = 0; i < SHELVES_COUNT; i++) {                   \
            WALK(tree, entry, &head[i])                             \
            if (last != head[i].last)                               \
                return -1;                                          \
            sum += size;                                            \
        }                                                           \
        return sum;                                                 \
    }
SIZE_OF(job, entry)
SIZE_OF_SHELVES(shelf)
SIZE_OF_SHELVES(queue_shelf)
SIZE_OF(ready, entry)
SIZE_OF(lease, entry)
SIZE_OF(due, entry)
SIZE_OF(held, entry)
SIZE_OF(finished, entry)
SIZE_OF(deadline, entry)

static int64_t size_of_dedupe(struct pawli_dedupe_tree *head)
{
    WALK(dedupe, entry, head)
    (void)last; /* this tree does not keep it */
    return size;
}

/* ---- one job */

static bool is_live(const struct entry *entry)
{
    return entry->job.state == PAWL_READY || entry->job.state == PAWL_IN_FLIGHT;
}

static const char *check_ready(struct entry *entry)
{
    struct queue *queue = entry->queue;
    bool is_due = entry->job.due_at.us <= queue->due_until.us;
    CHECK(RB_FIND(pawli_due_tree, &queue->due, entry) == entry, "M2: a Ready job is not in due");
    CHECK(entry->is_claimable == (is_due && pawli_memory_order_is_first(entry)),
          "M2: claimable is not what the due time and the key say");
    CHECK(!entry->is_claimable || RB_FIND(pawli_ready_tree, &entry->line->ready, entry) == entry,
          "M2: a claimable job is not in ready");
    CHECK(entry->deadline.us == entry->job.start_by.us, "M5: a Ready job's deadline is wrong");
    CHECK(entry->holder == NULL, "M3: a Ready job has a holder");
    return NULL;
}

static const char *check_in_flight(struct entry *entry)
{
    CHECK(entry->holder != NULL, "M3: an InFlight job has no holder");
    CHECK(strcmp(entry->holder->name, entry->job.worker) == 0, "M3: the holder is another one");
    CHECK(RB_FIND(pawli_lease_tree, &entry->line->leases, entry) == entry,
          "M3: a leased job is not in leases");
    CHECK(RB_FIND(pawli_held_tree, &entry->holder->held, entry) == entry,
          "M3: a leased job is not in held");
    CHECK(entry->deadline.us == entry->job.expires_at.us, "M5: a lease's deadline is wrong");
    CHECK(!entry->is_claimable, "M2: a leased job is claimable");
#ifndef PAWL_TEST_POINTS /* there are deliberate bugs about this */
    CHECK(pawli_memory_order_is_first(entry), "M10: a job behind another of its key is leased");
    CHECK((entry->job.fence > 0) == (entry->ordering_key != NULL), "M10: a fence, or none");
#endif
    return NULL;
}

static const char *check_terminal(struct entry *entry)
{
    struct pawli_finished_tree *finished = entry->job.state == PAWL_FAILED
                                               ? &entry->queue->failed
                                               : &entry->queue->succeeded;
    CHECK(RB_FIND(pawli_finished_tree, finished, entry) == entry,
          "M4: a terminal job is not in finished");
    CHECK(!entry->is_claimable && !entry->is_dedupe_held, "M2, M6: a terminal job is claimable");
    CHECK(entry->holder == NULL, "M3: a terminal job has a holder");
#ifdef PAWL_TEST_POINTS
    CHECK(entry->ghost != NULL || entry->deadline.us == 0, "M5: a terminal job has a deadline");
#else
    CHECK(entry->deadline.us == 0, "M5: a terminal job has a deadline");
#endif
    return NULL;
}

static const char *check_ledger(const struct entry *entry)
{
    CHECK((size_t)entry->job.attempts <= entry->ledger_room, "M8: rows without room");
    for (int64_t i = 0; i < entry->job.attempts; i++) {
        const struct ledger_row *row = &entry->ledger[i];
        CHECK(i == 0 || row->job_version >= row[-1].job_version, "M8: versions fall");
        CHECK(row->job_version <= entry->job.lease_version, "M8: a version from the future");
        CHECK((row->holder != NULL) == (row->started_at.us != 0), "M8: a row is half leased");
    }
    return NULL;
}

static const char *check_key(const struct entry *entry)
{
    const struct ordering_key *key = entry->ordering_key;
    if (key == NULL) {
        CHECK(!entry->is_in_order, "M10: in the order of no key");
        return NULL;
    }
    CHECK(key->queue == entry->queue, "M10: a key of another queue");
    CHECK(pawli_memory_key_find(entry->queue, key->name) == key, "M9: a key is not in its queue");
#ifndef PAWL_TEST_POINTS
    CHECK(entry->is_in_order == is_live(entry), "M10: in order, or not");
#endif
    CHECK(is_live(entry) || !entry->is_in_order, "M10: a terminal job is in order");
    CHECK(entry->job.fence <= 0 || entry->job.state == PAWL_IN_FLIGHT, "M10: a fence, no lease");
    return NULL;
}

static const char *check_entry(pawl_memory *memory, struct entry *entry)
{
    struct queue *queue = entry->queue;
    bool is_marked = entry->job.is_cancel_asked || entry->job.is_discarded;
    bool has_key = entry->dedupe_key[0] != '\0';
    int64_t shard = pawli_id_shard(&entry->id, memory->shards);
    CHECK(RB_FIND(pawli_job_tree, &memory->jobs, entry) == entry, "M1: not found by its id");
    CHECK(entry->shelf == pawli_memory_shelf(entry->job.state, is_marked, entry->job.reason),
          "M1: on the wrong shelf");
    CHECK(RB_FIND(pawli_shelf_tree, &memory->shelves[entry->shelf], entry) == entry,
          "M1: not on its shelf");
    CHECK(RB_FIND(pawli_queue_shelf_tree, &queue->shelves[entry->shelf], entry) == entry,
          "M1: not on its queue's shelf");
    CHECK(entry->line == &queue->lines[shard], "M1: in the wrong line");
    CHECK(entry->deadline.us == 0 ||
              RB_FIND(pawli_deadline_tree, &memory->deadlines, entry) == entry,
          "M5: not in deadlines");
    CHECK(entry->is_dedupe_held == (has_key && is_live(entry)), "M6: dedupe key held, or not");
    CHECK(!entry->is_dedupe_held || RB_FIND(pawli_dedupe_tree, &queue->dedupes, entry) == entry,
          "M6: not in dedupes");
    CHECK(entry->position <= memory->position, "M2: a position from the future");
    const char *wrong = check_ledger(entry);
    if (wrong == NULL)
        wrong = check_key(entry);
    if (wrong != NULL)
        return wrong;
    if (entry->job.state == PAWL_READY)
        return check_ready(entry);
    return entry->job.state == PAWL_IN_FLIGHT ? check_in_flight(entry) : check_terminal(entry);
}

/* ---- a queue, recounted */

struct recount {
    int64_t states[STATES_COUNT];
    int64_t delayed;
    int64_t expired;
    int64_t dedupes;
    int64_t claimable;
    int64_t ordered;
    int64_t keyed;
    int64_t ready;  /* in the trees of the lines */
    int64_t leases; /* likewise */
};

static void recount_jobs(pawl_memory *memory, const struct queue *queue, struct recount *ret_count)
{
    struct entry *entry;
    RB_FOREACH(entry, pawli_job_tree, &memory->jobs)
    {
        if (entry->queue != queue)
            continue;
        bool is_ready = entry->job.state == PAWL_READY;
        bool is_in_flight = entry->job.state == PAWL_IN_FLIGHT;
        ret_count->states[entry->job.state]++;
        ret_count->delayed += is_ready && entry->job.due_at.us > queue->due_until.us;
        ret_count->expired += is_in_flight && entry->job.expires_at.us <= memory->expired_until.us;
        ret_count->dedupes += is_live(entry) && entry->dedupe_key[0] != '\0';
        ret_count->claimable += entry->is_claimable;
        ret_count->ordered += entry->is_in_order;
        ret_count->keyed += entry->ordering_key != NULL;
    }
}

/* The keys of a queue, recounted: each is used as often as it says, and its order is whole. */
static const char *check_keys(struct queue *queue, const struct recount *count)
{
    int64_t uses = 0;
    int64_t jobs = 0;
    struct ordering_key *key;
    RB_FOREACH(key, pawli_ordering_tree, &queue->ordering_keys)
    {
        const struct entry *entry;
        CHECK(key->uses > 0, "M9: a key that nobody has");
        uses += key->uses;
        TAILQ_FOREACH(entry, &key->jobs, in_order)
        {
            CHECK(entry->ordering_key == key && entry->is_in_order, "M10: a stranger in order");
            jobs++;
        }
    }
    CHECK(uses == count->keyed, "M9: the uses of keys are wrong");
    CHECK(jobs == count->ordered, "M10: the orders have another size");
    return NULL;
}

static const char *check_queue(pawl_memory *memory, struct queue *queue)
{
    struct recount count = {0};
    recount_jobs(memory, queue, &count);
    int64_t all = 0;
    for (int state = 0; state < STATES_COUNT; state++) {
        CHECK(queue->counts[state] == count.states[state], "M7: a count of a state is wrong");
        all += count.states[state];
    }
    for (int64_t shard = 0; shard < memory->shards; shard++) {
        CHECK(queue->lines[shard].visit == NULL, "a claim has left its visit behind");
        count.ready += size_of_ready(&queue->lines[shard].ready);
        int64_t leases = size_of_lease(&queue->lines[shard].leases);
        CHECK(queue->lines[shard].in_flight == leases, "M7: in_flight of a line is wrong");
        count.leases += leases;
    }
    CHECK(queue->delayed == count.delayed, "M7: delayed is wrong");
    CHECK(queue->expired == count.expired, "M7: expired is wrong");
    CHECK(size_of_due(&queue->due) == count.states[PAWL_READY], "M2: due has another size");
    CHECK(count.ready == count.claimable, "M2: ready has another size");
    CHECK(count.leases == count.states[PAWL_IN_FLIGHT], "M3: leases has another size");
    CHECK(size_of_finished(&queue->succeeded) == count.states[PAWL_SUCCEEDED],
          "M4: succeeded has another size");
    CHECK(size_of_finished(&queue->failed) == count.states[PAWL_FAILED],
          "M4: failed has another size");
    CHECK(size_of_dedupe(&queue->dedupes) == count.dedupes, "M6: dedupes has another size");
    CHECK(size_of_queue_shelf(queue->shelves) == all, "M1: the shelves have another size");
    CHECK(all > 0 || queue->is_set, "M9: a queue that nobody needs");
    CHECK(queue->next_line < (size_t)memory->shards, "the next line is none");
    return check_keys(queue, &count);
}

/* ---- a holder, recounted */

static const char *check_holder(pawl_memory *memory, struct holder *holder)
{
    int64_t held = 0;
    int64_t rows = 0;
    struct entry *entry;
    RB_FOREACH(entry, pawli_job_tree, &memory->jobs)
    {
        held += entry->holder == holder;
        for (int64_t i = 0; i < entry->job.attempts; i++)
            rows += entry->ledger[i].holder == holder;
    }
    CHECK(holder->held_count == held, "M3: held_count is wrong");
    CHECK(size_of_held(&holder->held) == held, "M3: held has another size");
    CHECK(holder->uses == held + rows, "M8: the uses of a holder are wrong");
    CHECK(holder->uses > 0, "M8: a holder that nobody names");
    return NULL;
}

/* ---- all of it */

const char *pawli_memory_check(pawl_memory *memory)
{
    struct entry *entry;
    struct queue *queue;
    struct holder *holder;
    int64_t deadlines = 0;
    const char *wrong = NULL;
    RB_FOREACH(entry, pawli_job_tree, &memory->jobs)
    {
        wrong = check_entry(memory, entry);
        if (wrong != NULL)
            return wrong;
        deadlines += entry->deadline.us != 0;
    }
    CHECK(size_of_job(&memory->jobs) == memory->jobs_count, "M1: jobs_count is wrong");
    CHECK(size_of_shelf(memory->shelves) == memory->jobs_count, "M1: shelves have another size");
    CHECK(size_of_deadline(&memory->deadlines) == deadlines, "M5: deadlines have another size");
    RB_FOREACH(queue, pawli_queue_tree, &memory->queues)
    {
        wrong = check_queue(memory, queue);
        if (wrong != NULL)
            return wrong;
    }
    RB_FOREACH(holder, pawli_holder_tree, &memory->holders)
    {
        wrong = check_holder(memory, holder);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}
