/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutant.c - deliberate bugs of the memory store, which the simulator must catch.
 * Owns:  how each of them goes wrong: in the protocol only, never in memory (M1 to M9 hold).
 * Never: is compiled into what is installed: without PAWL_TEST_POINTS this file is empty.
 */
#include "store/memory/memory.h"

#ifdef PAWL_TEST_POINTS

#include "core/mutant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pawli_memory_mutant_token(const char *worker, pawl_token *ret_token)
{
    memset(ret_token, 0x5a, sizeof(*ret_token));
    for (size_t i = 0; worker[i] != '\0'; i++) {
        uint8_t *byte = &ret_token->bytes[i % sizeof(ret_token->bytes)];
        *byte = (uint8_t)(*byte * 31u + (uint8_t)worker[i]);
    }
}

static void drop_lease(pawl_memory *memory, struct entry *entry)
{
    struct pawli_job *job = &entry->job;
    memset(&job->token, 0, sizeof(job->token));
    memset(job->worker, 0, sizeof(job->worker));
    job->claimed_at = job->expires_at = job->run_until = (pawl_wall){0};
    job->unstarted_until = (pawl_wall){0};
    job->is_started = false;
    job->lease_ms = job->timeout_ms = job->fence = 0;
    job->is_cancel_asked = false;
    pawli_memory_holder_drop(memory, entry->holder);
    entry->holder = NULL;
}

void pawli_memory_mutant_ready(pawl_memory *memory, struct entry *entry, pawl_wall now)
{
    pawli_memory_unlink(memory, entry);
    drop_lease(memory, entry);
    entry->job.state = PAWL_READY;
    entry->job.due_at = now;
    entry->job.start_by = entry->job.finished_at = (pawl_wall){0};
    entry->rank = RANK_RETURNED;
    entry->timed_us = 0;
    entry->position = ++memory->position;
    pawli_memory_order_join(entry);
    pawli_memory_link(memory, entry);
}

/* ---- reaping */

/* Make a lease look expired, so that the rules will clear it. */
static void age(pawl_memory *memory, struct entry *entry, pawl_wall now)
{
    if (entry->job.expires_at.us <= now.us)
        return;
    pawli_memory_unlink(memory, entry);
    entry->job.expires_at = now;
    pawli_memory_link(memory, entry);
}

static void gather(struct reap *reap, struct entry *entry)
{
    if (!pawli_memory_reserve(entry))
        return;
    entry->next = reap->first;
    reap->first = entry;
    reap->count++;
}

/* Gather leases that have not expired; then age them: that changes the order of the deadlines. */
static void pick_unexpired(pawl_memory *memory, struct reap *reap)
{
    struct entry *entry;
    RB_FOREACH(entry, pawli_deadline_tree, &memory->deadlines)
    {
        if (reap->count >= reap->rows_max)
            break;
        if (entry->deadline.us > reap->now.us && entry->job.state == PAWL_IN_FLIGHT)
            gather(reap, entry);
    }
    for (entry = reap->first; entry != NULL; entry = entry->next)
        if (entry->job.state == PAWL_IN_FLIGHT)
            age(memory, entry, reap->now);
}

/* Let go of the lock, and take whatever lease is there by then. */
static void pick_by_id(pawl_memory *memory, pawl_store *store, struct reap *reap)
{
    size_t ids_count = 0;
    pawl_id *ids = calloc(reap->count + 1, sizeof(*ids));
    if (ids == NULL)
        return;
    for (struct entry *entry = reap->first; entry != NULL; entry = entry->next)
        ids[ids_count++] = entry->id;
    pawli_memory_leave(memory);
    PAWLI_STRETCH(PAWLI_STRETCH_REAP_PICKED);
    pawl_memory *again = pawli_memory_look(store, &reap->now, NULL);
    assert(again == memory);
    (void)again; /* used by the assert only */
    reap->first = NULL;
    reap->count = 0;
    for (size_t i = ids_count; i-- > 0;) {
        struct entry *entry = pawli_memory_find(memory, &ids[i]);
        if (entry == NULL)
            continue;
        bool is_missed = entry->job.state == PAWL_READY && entry->deadline.us != 0 &&
                         entry->deadline.us <= reap->now.us;
        if (entry->job.state == PAWL_IN_FLIGHT)
            age(memory, entry, reap->now);
        if (entry->job.state == PAWL_IN_FLIGHT || entry->ghost != NULL || is_missed)
            gather(reap, entry);
    }
    free(ids);
}

void pawli_memory_mutant_pick(pawl_memory *memory, pawl_store *store, struct reap *reap)
{
    if (PAWLI_MUTANT(PAWLI_MUTANT_REAP_UNEXPIRED))
        pick_unexpired(memory, reap);
    if (PAWLI_MUTANT(PAWLI_MUTANT_REAP_BY_ID_ONLY))
        pick_by_id(memory, store, reap);
}

/* ---- a Succeeded job that comes back when its lease would have expired */

void pawli_memory_mutant_haunt(pawl_memory *memory, struct entry *entry,
                               const struct pawli_job *before)
{
    assert(entry->job.state == PAWL_SUCCEEDED && entry->deadline.us == 0);
    if (entry->ghost == NULL)
        entry->ghost = malloc(sizeof(*entry->ghost));
    if (entry->ghost == NULL)
        return;
    *entry->ghost = *before;
    entry->deadline = before->expires_at;
    TAILED_PUT(pawli_deadline_tree, &memory->deadlines, entry);
}

void pawli_memory_mutant_revive(pawl_memory *memory, struct entry *entry)
{
    struct holder *holder = pawli_memory_holder_need(memory, entry->ghost->worker);
    if (holder == NULL)
        return;
    pawli_memory_unlink(memory, entry);
    entry->ghost->attempts = entry->job.attempts;
    entry->job = *entry->ghost;
    entry->holder = holder;
    free(entry->ghost);
    entry->ghost = NULL;
    pawli_memory_order_join(entry);
    pawli_memory_link(memory, entry);
}

/* ---- rows */

int64_t pawli_memory_mutant_second_row(struct entry *entry, int64_t attempt_no)
{
    if (!pawli_memory_reserve(entry))
        return attempt_no;
    struct ledger_row row = entry->ledger[attempt_no - 1];
    row.error = NULL;
    row.holder->uses++;
    entry->ledger[entry->job.attempts++] = row;
    return entry->job.attempts;
}

#endif
