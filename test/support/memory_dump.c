/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_dump.c - a memory store as text.
 * Owns:  what is written out, and in which order.
 * Never: leaves out anything that a verb could show or act on; changes anything but the boundaries
 *        that follow the clock, which are brought to now so that they do not tell two alike apart.
 */
#include "support/memory_check.h"

#include "base/clock.h"
#include "store/memory/memory.h"

#include <assert.h>
#include <stdio.h>

#define LL(value) ((long long)(value))

static void dump_bytes(FILE *out, const char *name, const void *bytes, size_t bytes_len)
{
    const unsigned char *byte = bytes;
    fprintf(out, " %s=", name);
    for (size_t i = 0; i < bytes_len; i++)
        fprintf(out, "%02x", byte[i]);
}

static void dump_row(FILE *out, const struct entry *entry, int64_t i)
{
    const struct ledger_row *row = &entry->ledger[i];
    fprintf(out, "    row %lld version=%lld started=%lld finished=%lld %u/%u/%u holder=%s",
            LL(i + 1), LL(row->job_version), LL(row->started_at.us), LL(row->finished_at.us),
            row->outcome, row->reason, row->ended_by,
            row->holder != NULL ? row->holder->name : "-");
    fprintf(out, " digest=%llx", (unsigned long long)row->token_digest);
    if (row->error != NULL)
        fprintf(out, " error=%s|%s", row->error->chars, row->error->chars + row->error->text_at);
    fprintf(out, "\n");
}

static void dump_entry(FILE *out, const struct entry *entry)
{
    const struct pawli_job *job = &entry->job;
    char id[PAWL_ID_TEXT_MAX];
    fprintf(out, "  job %s queue=%s key=%s state=%d/%d created=%lld due=%lld start_by=%lld",
            pawl_id_format(&entry->id, id), entry->queue->name, entry->dedupe_key, job->state,
            job->reason, LL(entry->created_at.us), LL(job->due_at.us), LL(job->start_by.us));
    fprintf(out, " finished=%lld retries=%lld lost=%lld/%lld attempts=%lld version=%lld gone=%d",
            LL(job->finished_at.us), LL(job->retries), LL(job->lost_leases), LL(job->lost_in_a_row),
            LL(job->attempts), LL(job->lease_version), job->is_discarded);
    fprintf(out, " worker=%s claimed=%lld expires=%lld until=%lld lease=%lld timeout=%lld mark=%d",
            job->worker, LL(job->claimed_at.us), LL(job->expires_at.us), LL(job->run_until.us),
            LL(job->lease_ms), LL(job->timeout_ms), job->is_cancel_asked);
    fprintf(out, " started=%d unstarted=%lld", job->is_started, LL(job->unstarted_until.us));
    if (entry->ordering_key != NULL)
        fprintf(out, " ordering=%s/%d fence=%lld", entry->ordering_key->name, entry->is_in_order,
                LL(job->fence));
    fprintf(out, " own=%lld/%lld/%lld/%lld place=%d/%d/%lld/%lld/%d shelf=%d deadline=%lld key=%d",
            LL(entry->max_retries), LL(entry->timeout_ms), LL(entry->backoff_base_ms),
            LL(entry->backoff_max_ms), entry->priority, entry->rank, LL(entry->timed_us),
            LL(entry->position), entry->is_claimable, entry->shelf, LL(entry->deadline.us),
            entry->is_dedupe_held);
    dump_bytes(out, "token", job->token.bytes, sizeof(job->token.bytes));
    fprintf(out, " length=%zu", entry->payload_len);
    if (entry->payload != NULL)
        dump_bytes(out, "payload", entry->payload, entry->payload_len);
    if (entry->headers != NULL)
        dump_bytes(out, "headers", entry->headers, strlen(entry->headers));
    fprintf(out, "\n");
    for (int64_t i = 0; i < job->attempts; i++)
        dump_row(out, entry, i);
}

static void dump_queue(FILE *out, const struct queue *queue)
{
    const pawl_queue_settings *settings = &queue->settings;
    fprintf(out, "  queue %s set=%d paused=%d %lld/%lld/%lld/%lld/%lld/%lld/%lld/%lld", queue->name,
            queue->is_set, settings->is_paused, LL(settings->lease_ms),
            LL(settings->execution_timeout_ms), LL(settings->max_retries),
            LL(settings->max_lost_leases), LL(settings->backoff_base_ms),
            LL(settings->backoff_max_ms), LL(settings->keep_succeeded_ms),
            LL(settings->keep_failed_ms));
    for (int state = 0; state < STATES_COUNT; state++)
        fprintf(out, " %lld", LL(queue->counts[state]));
    fprintf(out, " delayed=%lld expired=%lld next=%zu bound=%lld\n", LL(queue->delayed),
            LL(queue->expired), queue->next_line, LL(settings->max_in_flight));
}

static void dump_keys(FILE *out, struct queue *queue)
{
    struct ordering_key *key;
    char id[PAWL_ID_TEXT_MAX];
    RB_FOREACH(key, pawli_ordering_tree, &queue->ordering_keys)
    {
        const struct entry *entry;
        fprintf(out, "    key %s uses=%lld", key->name, LL(key->uses));
        TAILQ_FOREACH(entry, &key->jobs, in_order)
        {
            fprintf(out, " %s", pawl_id_format(&entry->id, id));
        }
        fprintf(out, "\n");
    }
}

char *memory_dump(pawl_memory *memory)
{
    char *text = NULL;
    size_t text_len = 0;
    FILE *out = open_memstream(&text, &text_len);
    assert(out != NULL);
    pawl_wall now = memory->clock->wall(memory->clock->user);
    struct entry *entry;
    struct queue *queue;
    struct holder *holder;
    struct presence *presence;
    pawli_memory_turn_expired(memory, now);
    fprintf(out, "jobs=%lld position=%lld fence=%lld hints=%llu\n", LL(memory->jobs_count),
            LL(memory->position), LL(memory->fence), (unsigned long long)memory->hints);
    RB_FOREACH(queue, pawli_queue_tree, &memory->queues)
    {
        pawli_memory_turn_due(queue, now);
        dump_queue(out, queue);
        dump_keys(out, queue);
    }
    RB_FOREACH(entry, pawli_job_tree, &memory->jobs)
    {
        dump_entry(out, entry);
    }
    RB_FOREACH(holder, pawli_holder_tree, &memory->holders)
    {
        fprintf(out, "  holder %s uses=%lld held=%lld\n", holder->name, LL(holder->uses),
                LL(holder->held_count));
    }
    RB_FOREACH(presence, pawli_presence_tree, &memory->presences)
    {
        const pawl_worker *row = &presence->row;
        fprintf(out, "  worker %s kind=%d host=%s version=%s since=%lld seen=%lld\n", row->name,
                row->kind, row->host, row->version, LL(row->since.us), LL(row->last_seen.us));
    }
    int rc = fclose(out);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
    return text;
}
