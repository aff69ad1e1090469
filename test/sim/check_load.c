/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_load.c - reads histories, merges them, and sorts what is in them by job, worker and queue.
 * Owns:  the shape of the book.
 * Never: judges.
 */
#include "sim/check_book.h"

#include "base/error.h"
#include "core/policy.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    BUCKETS_FIRST = 256 /* of jobs; a power of two */
};

/* ---------------------------------------------------------------- finding */

static size_t hash_id(const pawl_id *id)
{
    uint64_t halves[2];
    memcpy(halves, id->bytes, sizeof(halves));
    uint64_t mixed = (halves[0] ^ (halves[1] << 1)) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 32);
}

static bool grow_buckets(struct check_book *book)
{
    if (book->jobs_count < book->job_buckets_count)
        return true;
    size_t count = book->job_buckets_count == 0 ? BUCKETS_FIRST : 2 * book->job_buckets_count;
    struct check_job **buckets = check_alloc(book, count * sizeof(struct check_job *));
    if (buckets == NULL)
        return false;
    for (struct check_job *job = book->jobs; job != NULL; job = job->next) {
        struct check_job **bucket = &buckets[hash_id(&job->id) & (count - 1)];
        job->next_in_bucket = *bucket;
        *bucket = job;
    }
    book->job_buckets = buckets;
    book->job_buckets_count = count;
    return true;
}

static struct check_job *job_find(const struct check_book *book, const pawl_id *id)
{
    if (book->job_buckets_count == 0)
        return NULL;
    struct check_job *job = book->job_buckets[hash_id(id) & (book->job_buckets_count - 1)];
    while (job != NULL && memcmp(&job->id, id, sizeof(*id)) != 0)
        job = job->next_in_bucket;
    return job;
}

/* A job that was not there before, or that is there again: the latest life is found first. */
static struct check_job *job_add(struct check_book *book, const pawl_id *id)
{
    if (!grow_buckets(book))
        return NULL;
    struct check_job **bucket = &book->job_buckets[hash_id(id) & (book->job_buckets_count - 1)];
    struct check_job *job = check_alloc(book, sizeof(*job));
    if (job == NULL)
        return NULL;
    job->id = *id;
    job->next_in_bucket = *bucket;
    *bucket = job;
    if (book->jobs_last == NULL)
        book->jobs = job;
    else
        book->jobs_last->next = job;
    book->jobs_last = job;
    book->jobs_count++;
    return job;
}

static struct check_job *job_of(struct check_book *book, const pawl_id *id)
{
    struct check_job *job = job_find(book, id);
    return job != NULL ? job : job_add(book, id);
}

/* An enqueue was accepted. Where the job had been accepted before, this is another life of it. */
static struct check_job *job_enqueued(struct check_book *book, const pawl_id *id)
{
    struct check_job *before = job_find(book, id);
    if (before == NULL || before->enqueued_ok == 0)
        return job_of(book, id);
    struct check_job *job = job_add(book, id);
    if (job == NULL)
        return NULL;
    job->before = before;
    before->is_superseded = true;
    return job; /* it may have another queue, and another key */
}

static size_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash ^ (hash >> 15);
}

/* NULL for the empty name, and where memory ran out. */
static struct check_worker *worker_of(struct check_book *book, const char *name)
{
    if (name[0] == '\0')
        return NULL;
    /* One name comes many times in a row, from the same place. */
    if (book->worker_cached != NULL && book->worker_cached->name == name)
        return book->worker_cached;
    struct check_worker **bucket = &book->worker_buckets[hash_name(name) % 256];
    struct check_worker *worker = *bucket;
    while (worker != NULL && strcmp(worker->name, name) != 0)
        worker = worker->next_in_bucket;
    if (worker == NULL) {
        worker = check_alloc(book, sizeof(*worker));
        if (worker == NULL)
            return NULL;
        worker->name = name;
        worker->next_in_bucket = *bucket;
        *bucket = worker;
        if (book->workers_last == NULL)
            book->workers = worker;
        else
            book->workers_last->next = worker;
        book->workers_last = worker;
    }
    book->worker_cached = worker;
    return worker;
}

static struct check_queue *queue_of(struct check_book *book, const char *name)
{
    if (name[0] == '\0')
        return NULL;
    struct check_queue **bucket = &book->queue_buckets[hash_name(name) % 64];
    struct check_queue *queue = *bucket;
    while (queue != NULL && queue->name != name && strcmp(queue->name, name) != 0)
        queue = queue->next_in_bucket;
    if (queue != NULL)
        return queue;
    queue = check_alloc(book, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->name = name;
    queue->number = book->queues_count++;
    queue->next = book->queues;
    book->queues = queue;
    queue->next_in_bucket = *bucket;
    *bucket = queue;
    return queue;
}

/* Once its queue and its key are known, a job is one of theirs. */
static void join_key(struct check_book *book, struct check_job *job, const char *name)
{
    if (job->queue == NULL || job->key != NULL || name[0] == '\0')
        return;
    size_t hash = hash_name(name) + job->queue->number;
    struct check_key **bucket = &book->key_buckets[hash % 1024];
    struct check_key *key = *bucket;
    while (key != NULL && (key->queue != job->queue || strcmp(key->name, name) != 0))
        key = key->next_in_bucket;
    if (key == NULL) {
        key = check_alloc(book, sizeof(*key));
        if (key == NULL)
            return;
        *key = (struct check_key){
            .next_in_bucket = *bucket, .next = book->keys, .queue = job->queue, .name = name};
        *bucket = key;
        book->keys = key;
    }
    job->key = key;
    job->next_of_key = key->jobs;
    key->jobs = job;
}

static void join_queue(struct check_book *book, struct check_job *job, const char *name)
{
    if (job->queue != NULL)
        return;
    job->queue = queue_of(book, name);
    if (job->queue == NULL)
        return;
    job->next_of_queue = job->queue->jobs;
    job->queue->jobs = job;
}

static struct check_lease *lease_of(struct check_book *book, struct check_job *job, int64_t version)
{
    if (version <= 0)
        return NULL;
    struct check_lease *lease = check_lease_of(job, version);
    if (lease != NULL)
        return lease;
    lease = check_alloc(book, sizeof(*lease));
    if (lease == NULL)
        return NULL;
    lease->job = job;
    lease->version = version;
    lease->started_us = lease->ended_us = lease->abort_us = lease->over_us = CHECK_NEVER_US;
    lease->next = job->leases;
    job->leases = lease;
    book->report->leases++;
    return lease;
}

/* ---------------------------------------------------------------- events */

static void link_to_job(struct check_job *job, struct check_event *event)
{
    if (job->last == NULL)
        job->first = event;
    else
        job->last->next = event;
    job->last = event;
    if (event->verb == 0)
        return;
    if (job->last_call == NULL)
        job->first_call = event;
    else
        job->last_call->next_call = event;
    job->last_call = event;
    job->calls_count++;
}

static void link_to_worker(struct check_worker *worker, struct check_event *event)
{
    if (worker->last == NULL)
        worker->first = event;
    else
        worker->last->next_by = event;
    worker->last = event;
}

/* Events are many: each is only as long as what it tells. */
#define EVENT_SIZE(part) \
    (offsetof(struct check_event, u) + sizeof(((struct check_event *)0)->u.part))

static size_t event_size(enum pawli_trace_verb verb)
{
    switch (verb) {
    case PAWLI_VERB_CLAIM:
    case PAWLI_VERB_MINE:
    case PAWLI_VERB_LIST:
        return EVENT_SIZE(grant);
    case PAWLI_VERB_RENEW:
        return EVENT_SIZE(renew);
    case PAWLI_VERB_SETTLE:
        return EVENT_SIZE(settle);
    case PAWLI_VERB_REAP:
        return EVENT_SIZE(reap);
    case PAWLI_VERB_ENQUEUE:
        return EVENT_SIZE(enqueue);
    case PAWLI_VERB_ATTEMPTS:
        return EVENT_SIZE(attempt);
    default:
        return offsetof(struct check_event, u);
    }
}

static struct check_event *event_of_row(struct check_book *book,
                                        const struct pawli_trace_record *record,
                                        const struct pawli_trace_row *row)
{
    struct check_event *event = check_alloc(book, event_size(record->verb));
    bool is_enqueued = record->verb == PAWLI_VERB_ENQUEUE && row->code == PAWL_OK;
    struct check_job *job = is_enqueued ? job_enqueued(book, &row->job) : job_of(book, &row->job);
    if (event == NULL || job == NULL)
        return NULL;
    event->job = job;
    event->seq = book->seq;
    event->verb = (uint8_t)record->verb;
    event->code = (uint8_t)row->code;
    event->action = (uint8_t)row->action;
    event->state = (uint8_t)row->state;
    event->reason = (uint8_t)row->reason;
    event->outcome = (uint8_t)row->outcome;
    event->ended_by = (uint8_t)row->ended_by;
    event->is_unstarted = row->is_unstarted;
    event->version = row->version;
    event->at_us = record->at.us;
    event->until_us = row->code == PAWL_UNKNOWN ? CHECK_NEVER_US : record->until.us;
    event->store_us = record->store_at.us;
    event->digest = row->token_digest;
    event->row = book->row;
    join_queue(book, job, row->queue);
    join_key(book, job, row->ordering_key);
    return event;
}

static void fill_grant(struct check_event *event, const struct pawli_trace_row *row)
{
    event->u.grant.claimed_us = row->claimed_at.us;
    event->u.grant.expires_us = row->expires_at.us;
    event->u.grant.run_until_us = row->run_until.us;
    event->u.grant.due_us = row->due_at.us;
    event->u.grant.start_by_us = row->start_by.us;
    event->u.grant.lease_ms = row->lease_ms;
    event->u.grant.timeout_ms = row->timeout_ms;
    event->u.grant.retries = row->retries;
    event->u.grant.lost = row->lost_leases;
    event->u.grant.attempts = row->attempts;
    event->u.grant.max_retries = row->max_retries;
    event->u.grant.fence = row->fence;
}

static bool keep_digest(struct check_book *book, uint64_t digest)
{
    if (book->digests_count == book->digests_size) {
        size_t size = book->digests_size == 0 ? 256 : 2 * book->digests_size;
        uint64_t *digests = realloc(book->digests, size * sizeof(*digests));
        if (digests == NULL)
            return false;
        book->digests = digests;
        book->digests_size = size;
    }
    book->digests[book->digests_count++] = digest;
    return true;
}

static bool add_grant(struct check_book *book, struct check_event *event)
{
    struct check_lease *lease = event->lease;
    struct check_worker *worker = event->by;
    bool is_claim = event->verb == PAWLI_VERB_CLAIM;
    if (worker != NULL) {
        link_to_worker(worker, event);
        if (event->job->queue != NULL)
            worker->serves[event->job->queue->number / 64 % 4] |= UINT64_C(1)
                                                                  << (event->job->queue->number %
                                                                      64);
    }
    if (lease == NULL)
        return true;
    if (is_claim)
        lease->claims++;
    if (lease->grant == NULL || (is_claim && lease->grant->verb == PAWLI_VERB_MINE)) {
        lease->grant = event;
        lease->holder = worker;
    }
    return !is_claim || keep_digest(book, event->digest);
}

static bool add_worker_row(struct check_book *book, const struct pawli_trace_record *record,
                           const struct pawli_trace_row *row)
{
    struct check_event *event = event_of_row(book, record, row);
    if (event == NULL)
        return false;
    event->by = worker_of(book, record->subject);
    event->lease = lease_of(book, event->job, row->version);
    link_to_job(event->job, event);
    switch (record->verb) {
    case PAWLI_VERB_CLAIM:
    case PAWLI_VERB_MINE:
        fill_grant(event, row);
        if (!add_grant(book, event))
            return false;
        break;
    case PAWLI_VERB_RENEW:
        event->u.renew.expires_us = row->expires_at.us;
        event->u.renew.lease_ms = row->lease_ms;
        break;
    case PAWLI_VERB_SETTLE:
        event->u.settle.due_us = row->due_at.us;
        event->u.settle.delay_ms = row->delay_ms;
        event->u.settle.attempt_no = row->attempt_no;
        if (row->code == PAWL_UNKNOWN && event->lease != NULL)
            event->lease->unknown_settles |= (uint8_t)(1u << row->action);
        break;
    default:
        if (row->code == PAWL_UNKNOWN && event->lease != NULL)
            event->lease->is_unknown_release = true;
        break;
    }
    return !book->is_out_of_memory;
}

static bool add_other_row(struct check_book *book, const struct pawli_trace_record *record,
                          const struct pawli_trace_row *row)
{
    struct check_event *event = event_of_row(book, record, row);
    if (event == NULL)
        return false;
    link_to_job(event->job, event);
    if (record->verb == PAWLI_VERB_REAP) {
        event->by = worker_of(book, row->worker);
        event->lease = lease_of(book, event->job, row->version);
        event->u.reap.due_us = row->due_at.us;
        event->u.reap.overdue_ms = row->overdue_ms;
    } else if (record->verb == PAWLI_VERB_ENQUEUE) {
        event->u.enqueue.delay_ms = row->delay_ms;
        event->u.enqueue.start_within_ms = row->start_within_ms;
        event->u.enqueue.max_retries = row->max_retries;
        event->u.enqueue.base_ms = row->backoff_base_ms;
        event->u.enqueue.max_ms = row->backoff_max_ms;
        event->job->enqueued_ok += row->code == PAWL_OK;
        event->job->enqueued_unknown += row->code == PAWL_UNKNOWN;
        book->enqueued_ok += row->code == PAWL_OK;
        book->enqueued_unknown += row->code == PAWL_UNKNOWN;
    }
    return !book->is_out_of_memory;
}

/* ---------------------------------------------------------------- final states */

static bool add_list(struct check_book *book, const struct pawli_trace_record *record)
{
    if (record->is_first) {
        book->list_seq = book->seq;
        book->listed_count = 0;
    }
    book->is_list_whole = (int64_t)record->rows_count < record->count;
    book->listed_count += record->rows_count;
    for (size_t i = 0; i < record->rows_count; i++) {
        struct check_event *event = event_of_row(book, record, &record->rows[i]);
        if (event == NULL)
            return false;
        fill_grant(event, &record->rows[i]);
        event->by = worker_of(book, record->rows[i].worker);
        event->job->listed = event;
    }
    return !book->is_out_of_memory;
}

static bool add_ledger(struct check_book *book, const struct pawli_trace_record *record)
{
    struct check_job *job = job_of(book, &record->about);
    if (job == NULL)
        return false;
    if (record->is_first) {
        job->ledger_first = job->ledger_last = NULL;
        job->ledger_seq = book->seq;
    }
    job->is_ledger_whole = (int64_t)record->rows_count < record->count;
    for (size_t i = 0; i < record->rows_count; i++) {
        const struct pawli_trace_row *row = &record->rows[i];
        struct check_event *event = event_of_row(book, record, row);
        if (event == NULL)
            return false;
        event->by = worker_of(book, row->worker);
        event->u.attempt.number = row->attempt_no;
        event->u.attempt.started_us = row->claimed_at.us;
        event->u.attempt.finished_us = row->finished_at.us;
        if (job->ledger_last == NULL)
            job->ledger_first = event;
        else
            job->ledger_last->next = event;
        job->ledger_last = event;
    }
    return !book->is_out_of_memory;
}

/* ---------------------------------------------------------------- queues and changes by filter */

static bool add_setting(struct check_book *book, const struct pawli_trace_record *record)
{
    struct check_queue *queue = queue_of(book, record->subject);
    if (queue == NULL || record->rows_count == 0)
        return !book->is_out_of_memory;
    struct check_setting *setting = check_alloc(book, sizeof(*setting));
    if (setting == NULL)
        return false;
    const struct pawli_trace_row *row = &record->rows[0];
    bool is_known = record->code == PAWL_OK;
    setting->seq = book->seq;
    setting->settings = (struct check_settings){
        .max_retries = is_known ? row->max_retries : -1,
        .max_lost_leases = is_known ? row->max_lost_leases : -1,
        .base_ms = is_known ? row->backoff_base_ms : -1,
        .max_ms = is_known ? row->backoff_max_ms : -1,
        .max_in_flight = is_known ? row->max_in_flight : -1,
    };
    setting->next = queue->settings;
    queue->settings = setting;
    return true;
}

static bool add_queue_pause(struct check_book *book, const struct pawli_trace_record *record)
{
    struct check_queue *queue = queue_of(book, record->subject);
    if (queue == NULL)
        return !book->is_out_of_memory;
    struct check_spans *pauses = &queue->pauses;
    struct check_span *last = pauses->count == 0 ? NULL : &pauses->items[pauses->count - 1];
    bool is_open = last != NULL && last->to_us == CHECK_NEVER_US;
    if (record->code == PAWL_UNKNOWN)
        queue->is_pause_unknown = true;
    if (record->count == 0 && is_open) {
        last->to_us = record->at.us;
        last->what = book->seq;
    }
    if (record->count == 0 || is_open)
        return true;
    return check_spans_add(
        book, pauses,
        (struct check_span){record->at.us, CHECK_NEVER_US, (int64_t)UINT32_MAX, book->seq});
}

static bool add_where(struct check_book *book, const struct pawli_trace_record *record)
{
    struct check_where *where = check_alloc(book, sizeof(*where));
    if (where == NULL)
        return false;
    *where = (struct check_where){
        .verb = (uint8_t)record->verb,
        .queue = record->verb == PAWLI_VERB_PRUNE ? NULL : queue_of(book, record->subject),
        .seq = book->seq,
        .at_us = record->at.us,
        .store_us = record->store_at.us,
    };
    if (record->verb == PAWLI_VERB_PRUNE) {
        book->prunes++;
        book->pruned = plus(book->pruned, record->count);
        book->is_prune_unknown = book->is_prune_unknown || record->code == PAWL_UNKNOWN;
    }
    if (book->wheres_last == NULL)
        book->wheres = where;
    else
        book->wheres_last->next = where;
    book->wheres_last = where;
    return true;
}

/* ---------------------------------------------------------------- calls */

static bool add_rows(struct check_book *book, const struct pawli_trace_record *record,
                     bool (*add)(struct check_book *, const struct pawli_trace_record *,
                                 const struct pawli_trace_row *))
{
    book->last_change_seq = book->seq;
    for (size_t i = 0; i < record->rows_count; i++) {
        book->row = (uint32_t)i;
        if (!add(book, record, &record->rows[i]))
            return false;
    }
    return true;
}

static bool add_call(struct check_book *book, const struct pawli_trace_record *record)
{
    if (record->store_at.us != 0) {
        book->last_store_us = record->store_at.us;
        book->last_store_at_us = record->until.us;
    }
    if (record->code != PAWL_OK && record->code != PAWL_UNKNOWN)
        return true; /* nothing was done */
    switch (record->verb) {
    case PAWLI_VERB_CLAIM:
        book->unknown_claims += record->code == PAWL_UNKNOWN;
        return add_rows(book, record, add_worker_row);
    case PAWLI_VERB_MINE:
    case PAWLI_VERB_RENEW:
    case PAWLI_VERB_SETTLE:
    case PAWLI_VERB_RELEASE:
        return add_rows(book, record, add_worker_row);
    case PAWLI_VERB_ENQUEUE:
    case PAWLI_VERB_REAP:
        return add_rows(book, record, add_other_row);
    case PAWLI_VERB_CANCEL:
    case PAWLI_VERB_REDRIVE:
    case PAWLI_VERB_DISCARD:
        if (!record->is_where)
            return add_rows(book, record, add_other_row);
        book->last_change_seq = book->seq;
        return add_where(book, record);
    case PAWLI_VERB_PRUNE:
        book->last_change_seq = book->seq;
        return add_where(book, record);
    case PAWLI_VERB_LIST:
        return add_list(book, record);
    case PAWLI_VERB_ATTEMPTS:
        return add_ledger(book, record);
    case PAWLI_VERB_QUEUE_SET:
        return add_setting(book, record);
    case PAWLI_VERB_QUEUE_PAUSE:
        return add_queue_pause(book, record);
    case PAWLI_VERBS:
        break;
    }
    return true;
}

/* ---------------------------------------------------------------- notes */

static bool open_span(struct check_book *book, struct check_spans *spans, int64_t at_us)
{
    bool is_open = spans->count > 0 && spans->items[spans->count - 1].to_us == CHECK_NEVER_US;
    return is_open ||
           check_spans_add(book, spans, (struct check_span){at_us, CHECK_NEVER_US, 0, book->seq});
}

static void close_span(struct check_spans *spans, int64_t at_us)
{
    if (spans->count > 0 && spans->items[spans->count - 1].to_us == CHECK_NEVER_US)
        spans->items[spans->count - 1].to_us = at_us;
}

static bool add_point(struct check_book *book, struct check_spans *spans, int64_t at_us,
                      int64_t what)
{
    return check_spans_add(book, spans, (struct check_span){at_us, at_us, what, book->seq});
}

static bool add_jump(struct check_book *book, const struct pawli_trace_record *record)
{
    int64_t at_us = record->at.us;
    int64_t passed_us = minus(at_us, book->last_store_at_us);
    int64_t peak_us = book->last_store_us == 0
                          ? CHECK_NEVER_US
                          : plus(book->last_store_us, check_stretched(book, passed_us));
    /* From here on the clock is further on, or back, by that much. */
    book->last_store_us = plus(peak_us, record->note.a);
    book->last_store_at_us = at_us;
    if (record->note.a < 0 && !add_point(book, &book->peaks, at_us, peak_us))
        return false;
    return add_point(book, &book->jumps, at_us, record->note.a);
}

static bool add_world_note(struct check_book *book, const struct pawli_trace_record *record)
{
    int64_t at_us = record->at.us;
    switch (record->note.kind) {
    case PAWLI_NOTE_STORE_DOWN:
        return open_span(book, &book->store_downs, at_us);
    case PAWLI_NOTE_STORE_UP:
        close_span(&book->store_downs, at_us);
        return true;
    case PAWLI_NOTE_STORE_JUMP:
        return add_jump(book, record);
    default:
        assert(record->note.kind == PAWLI_NOTE_FAULTS_OFF);
        if (book->faults_off_us == CHECK_NEVER_US)
            book->faults_off_us = at_us;
        return true;
    }
}

/* The heartbeat interval that a worker uses for a lease of this length; 0: not known. */
static int64_t interval_of(const struct check_worker *worker, int64_t lease_ms)
{
    if (!worker->is_told || lease_ms <= 0 || lease_ms > PAWL_DURATION_MAX_MS)
        return 0;
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    settings.heartbeat_ms = worker->heartbeat_ms > 0 ? worker->heartbeat_ms : PAWL_DEFAULT;
    return pawli_heartbeat_ms(&settings, lease_ms);
}

static bool add_worker_state(struct check_book *book, struct check_worker *worker,
                             const struct pawli_trace_note *note, int64_t at_us)
{
    switch (note->kind) {
    case PAWLI_NOTE_WORKER_UP:
        worker->is_told = true;
        worker->heartbeat_ms = note->a;
        worker->poll_ms = later_of(worker->poll_ms, note->b);
        worker->up_us = at_us;
        close_span(&worker->downs, at_us);
        return true;
    case PAWLI_NOTE_WORKER_CRASH:
    case PAWLI_NOTE_WORKER_STOPPED:
        close_span(&worker->pauses, at_us);
        return open_span(book, &worker->downs, at_us);
    case PAWLI_NOTE_PAUSE_BEGIN:
        return open_span(book, &worker->pauses, at_us);
    case PAWLI_NOTE_PAUSE_END:
        close_span(&worker->pauses, at_us);
        return true;
    case PAWLI_NOTE_SHUTDOWN:
        return add_point(book, &worker->shutdowns, at_us, note->a);
    case PAWLI_NOTE_LINK_FAULT:
        if (note->a == PAWLI_VERB_REAP && !add_point(book, &book->reap_faults, at_us, note->a))
            return false;
        return add_point(book, &worker->faults, at_us, note->a);
    default:
        return true;
    }
}

static bool is_about_the_world(enum pawli_trace_note_kind kind)
{
    return kind == PAWLI_NOTE_STORE_DOWN || kind == PAWLI_NOTE_STORE_UP ||
           kind == PAWLI_NOTE_STORE_JUMP || kind == PAWLI_NOTE_FAULTS_OFF;
}

static bool add_note(struct check_book *book, const struct pawli_trace_record *record)
{
    const struct pawli_trace_note *note = &record->note;
    if (is_about_the_world(note->kind))
        return add_world_note(book, record);
    struct check_worker *worker = worker_of(book, record->actor);
    struct check_event *event = check_alloc(book, EVENT_SIZE(told));
    if (event == NULL || (worker != NULL && !add_worker_state(book, worker, note, record->at.us)))
        return false;
    event->seq = book->seq;
    event->note = (uint8_t)note->kind;
    event->by = worker;
    event->version = note->version;
    event->at_us = event->until_us = record->at.us;
    event->u.told.a = note->a;
    event->u.told.b = note->b;
    event->u.told.c = note->c;
    if (worker != NULL)
        link_to_worker(worker, event);
    if (pawl_id_is_nil(&note->job))
        return !book->is_out_of_memory;
    event->job = job_of(book, &note->job);
    if (event->job == NULL)
        return false;
    event->lease = lease_of(book, event->job, note->version);
    link_to_job(event->job, event);
    if (note->kind == PAWLI_NOTE_CONFIRMED && worker != NULL)
        event->u.told.c = interval_of(worker, note->b);
    if (note->kind == PAWLI_NOTE_ACKED)
        event->job->is_acked = true;
    book->report->starts += note->kind == PAWLI_NOTE_START;
    return !book->is_out_of_memory;
}

/* ---------------------------------------------------------------- merging */

/* A history on its way in: the record that comes next. */
struct source {
    struct pawli_trace_reader *reader;
    struct pawli_trace_record record;
    bool is_more;
};

/* Those that have more, the earliest first: each stands before its two places below. */
struct heap {
    struct source **items;
    size_t count;
};

/* Of two at the same time, the one that was given first. */
static bool is_earlier(const struct source *a, const struct source *b)
{
    return a->record.at.us != b->record.at.us ? a->record.at.us < b->record.at.us : a < b;
}

/* Put the item at `at` where it belongs among those below it. */
static void sink(struct heap *heap, size_t at)
{
    for (;;) {
        size_t first = at;
        for (size_t below = 2 * at + 1; below <= 2 * at + 2 && below < heap->count; below++) {
            if (is_earlier(heap->items[below], heap->items[first]))
                first = below;
        }
        if (first == at)
            return;
        struct source *moved = heap->items[at];
        heap->items[at] = heap->items[first];
        heap->items[first] = moved;
        at = first;
    }
}

static pawl_code advance(struct check_book *book, struct source *source, pawl_err *err)
{
    pawl_code code = pawli_trace_read(source->reader, &source->record, &source->is_more, err);
    if (code == PAWL_OK && !source->is_more && pawli_trace_is_cut(source->reader))
        book->report->is_cut = true;
    return code;
}

static pawl_code open_all(struct check_book *book, const struct check_part *parts, size_t count,
                          struct source *sources, pawl_err *err)
{
    for (size_t i = 0; i < count; i++) {
        pawl_code code = pawli_trace_reader_new(parts[i].bytes, parts[i].len, &sources[i].reader,
                                                err);
        if (code != PAWL_OK)
            return code;
        book->readers[book->readers_count++] = sources[i].reader;
        code = advance(book, &sources[i], err);
        if (code != PAWL_OK)
            return code;
    }
    return PAWL_OK;
}

static pawl_code read_merged(struct check_book *book, struct heap *heap, pawl_err *err)
{
    while (heap->count > 0) {
        struct source *source = heap->items[0];
        const struct pawli_trace_record *record = &source->record;
        book->seq++;
        book->report->records++;
        book->last_at_us = later_of(book->last_at_us, record->at.us);
        bool is_added = record->kind == PAWLI_RECORD_CALL ? add_call(book, record)
                                                          : add_note(book, record);
        if (!is_added)
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        pawl_code code = advance(book, source, err);
        if (code != PAWL_OK)
            return code;
        if (!source->is_more)
            heap->items[0] = heap->items[--heap->count];
        sink(heap, 0);
    }
    return PAWL_OK;
}

static pawl_code read_all(struct check_book *book, struct source *sources, size_t count,
                          pawl_err *err)
{
    struct heap heap = {.items = calloc(count, sizeof(struct source *))};
    if (heap.items == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < count; i++) {
        if (sources[i].is_more)
            heap.items[heap.count++] = &sources[i];
    }
    for (size_t i = heap.count; i-- > 0;)
        sink(&heap, i);
    pawl_code code = read_merged(book, &heap, err);
    free(heap.items);
    return code;
}

/* Which of the lists and ledgers that were read are final. */
static void find_final(struct check_book *book)
{
    if (book->list_seq <= book->last_change_seq || !book->is_list_whole)
        book->list_seq = 0;
    for (struct check_job *job = book->jobs; job != NULL; job = job->next) {
        if (book->list_seq == 0 || (job->listed != NULL && job->listed->seq < book->list_seq))
            job->listed = NULL;
        job->has_ledger = job->ledger_seq > book->last_change_seq && job->is_ledger_whole;
    }
}

pawl_code check_load(struct check_book *book, const struct check_part *parts, size_t parts_count,
                     pawl_err *err)
{
    struct source *sources = calloc(parts_count, sizeof(*sources));
    book->readers = calloc(parts_count, sizeof(struct pawli_trace_reader *));
    pawl_code code = PAWL_NO_MEMORY;
    if (sources == NULL || book->readers == NULL) {
        pawli_fail_plain(err, code);
    } else {
        code = open_all(book, parts, parts_count, sources, err);
        if (code == PAWL_OK)
            code = read_all(book, sources, parts_count, err);
    }
    free(sources);
    if (code != PAWL_OK)
        return code;
    book->report->jobs = book->jobs_count;
    find_final(book);
    return PAWL_OK;
}
