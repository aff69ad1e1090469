/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * operate.c - what operators do to jobs of the memory store: cancel, redrive, discard, by id and by
 *             filter.
 * Owns:  the verdicts on these; which jobs of a filter each of them can change.
 * Never: ends a lease (a running job is only marked); redrives a job whose dedupe key is taken.
 */
#include "store/memory/memory.h"

#include "base/error.h"

#include <assert.h>

/* ---- one job */

/* Changes a job and tells the verdict. */
typedef pawl_changed operation(pawl_memory *memory, struct entry *entry, pawl_wall now);

static pawl_changed change_by(pawl_memory *memory, struct entry *entry, enum pawli_event event,
                              pawl_wall now)
{
    struct pawli_change change = {.event = event, .now = now};
    pawl_code rc = pawli_memory_change(memory, entry, &change, NULL);
    if (rc != PAWL_OK)
        return (pawl_changed){.code = rc};
    return (pawl_changed){.code = PAWL_OK, .state = entry->job.state};
}

static pawl_changed cancel(pawl_memory *memory, struct entry *entry, pawl_wall now)
{
    bool is_done = entry->job.state == PAWL_FAILED && entry->job.reason == PAWL_REASON_CANCELLED;
    if (is_done)
        return (pawl_changed){.code = PAWL_OK, .state = PAWL_FAILED};
    return change_by(memory, entry, PAWLI_EVENT_CANCEL, now);
}

static bool is_dedupe_free(struct entry *entry)
{
    return entry->dedupe_key[0] == '\0' ||
           RB_FIND(pawli_dedupe_tree, &entry->queue->dedupes, entry) == NULL;
}

static pawl_changed redrive(pawl_memory *memory, struct entry *entry, pawl_wall now)
{
    if (entry->job.state == PAWL_FAILED && !entry->job.is_discarded && !is_dedupe_free(entry))
        return (pawl_changed){.code = PAWL_DUPLICATE};
    return change_by(memory, entry, PAWLI_EVENT_REDRIVE, now);
}

static pawl_changed discard(pawl_memory *memory, struct entry *entry, pawl_wall now)
{
    return change_by(memory, entry, PAWLI_EVENT_DISCARD, now);
}

/* ---- by id */

struct ids {
    const pawl_id *ids;
    size_t ids_count;
    pawl_changed *ret_results;
};

static void change_ids(pawl_memory *memory, const struct ids *ids, operation *change, pawl_wall now)
{
    for (size_t i = 0; i < ids->ids_count; i++) {
        struct entry *entry = pawli_memory_find(memory, &ids->ids[i]);
        ids->ret_results[i] = entry != NULL ? change(memory, entry, now)
                                            : (pawl_changed){.code = PAWL_GONE};
    }
}

pawl_code pawli_memory_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                              pawl_changed *ret_results, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    bool is_room = true;
    for (size_t i = 0; i < ids_count && is_room; i++) {
        struct entry *entry = pawli_memory_find(memory, &ids[i]);
        is_room = entry == NULL || pawli_memory_reserve(entry);
    }
    if (is_room)
        change_ids(memory, &(struct ids){ids, ids_count, ret_results}, cancel, now);
    pawli_memory_leave(memory);
    return is_room ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code pawli_memory_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    change_ids(memory, &(struct ids){ids, ids_count, ret_results}, redrive, now);
    pawli_memory_leave(memory);
    return PAWL_OK;
}

pawl_code pawli_memory_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    change_ids(memory, &(struct ids){ids, ids_count, ret_results}, discard, now);
    pawli_memory_leave(memory);
    return PAWL_OK;
}

/* ---- by filter */

struct where {
    const pawl_filter *filter;
    size_t jobs_max;
    unsigned states;   /* that the operation can change; those marked already it need not */
    operation *change; /* moves the job off the shelves that are walked */
};

/*
 * Change, or where `change` is NULL only make room for, up to jobs_max jobs. The same jobs both
 * times: nothing comes between the two. False: no memory.
 */
static bool change_where(pawl_memory *memory, const struct where *where, pawl_wall now,
                         size_t *ret_count)
{
    struct walk_range range;
    struct walk walk;
    struct entry *entry;
    *ret_count = 0;
    if (!pawli_memory_range(memory, where->filter, &range))
        return true;
    pawli_memory_range_states(&range, where->filter, where->states, false);
    pawli_memory_walk(&walk, memory, &range, NULL);
    while (*ret_count < where->jobs_max && (entry = pawli_memory_walk_next(&walk)) != NULL) {
        if (where->change == NULL && !pawli_memory_reserve(entry))
            return false;
        if (where->change == NULL || where->change(memory, entry, now).code == PAWL_OK)
            ++*ret_count;
    }
    return true;
}

pawl_code pawli_memory_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                    size_t *ret_count, pawl_err *err)
{
    struct where where = {
        .filter = filter,
        .jobs_max = jobs_max,
        .states = 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT,
    };
    pawl_wall now;
    size_t count;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    bool is_room = change_where(memory, &where, now, &count);
    where.change = cancel;
    if (is_room)
        (void)change_where(memory, &where, now, ret_count); /* there is room */
    pawli_memory_leave(memory);
    return is_room ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

static pawl_code failed_where(pawl_store *store, const struct where *where, size_t *ret_count,
                              pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    (void)change_where(memory, where, now, ret_count); /* it needs no room */
    pawli_memory_leave(memory);
    return PAWL_OK;
}

pawl_code pawli_memory_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return failed_where(store, &(struct where){filter, jobs_max, 1u << PAWL_FAILED, redrive},
                        ret_count, err);
}

pawl_code pawli_memory_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return failed_where(store, &(struct where){filter, jobs_max, 1u << PAWL_FAILED, discard},
                        ret_count, err);
}
