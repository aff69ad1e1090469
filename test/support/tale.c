/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tale.c - histories made by hand.
 * Owns:  a small store in its head; the records that a run against it would leave.
 * Never: checks anything: what it writes down may be wrong on purpose.
 */
#include "support/tale.h"

#include <assert.h>

#define WALL_BASE_US  INT64_C(1767225600000000)
#define COMPUTED_MS   7 /* what a computed backoff comes out as */
#define FIRST_TIME_US 1000000

void tale_init(struct tale *tale)
{
    *tale = (struct tale){.now_us = FIRST_TIME_US};
    pawl_code code = pawli_trace_writer_new(NULL, &tale->writer, NULL);
    assert(code == PAWL_OK);
    (void)code; /* used by the assert only */
    for (int i = 0; i < TALE_JOBS; i++) {
        tale->jobs[i].id.bytes[0] = 0xab;
        tale->jobs[i].id.bytes[15] = (uint8_t)(i + 1);
        tale->jobs[i].max_retries = 1;
        tale->jobs[i].is_hidden = true; /* until it is enqueued */
    }
}

void tale_clear(struct tale *tale)
{
    pawli_trace_writer_free(tale->writer);
    tale->writer = NULL;
}

void tale_pass(struct tale *tale, int64_t ms)
{
    tale->now_us += ms * 1000;
}

void tale_pass_us(struct tale *tale, int64_t us)
{
    tale->now_us += us;
}

pawl_wall tale_wall(const struct tale *tale)
{
    return (pawl_wall){WALL_BASE_US + tale->now_us};
}

static pawl_wall wall_in(const struct tale *tale, int64_t ms)
{
    return (pawl_wall){WALL_BASE_US + tale->now_us + ms * 1000};
}

/* ---------------------------------------------------------------- calls */

/* Write a call of one row; false where it changed nothing. */
static bool tell(struct tale *tale, enum pawli_trace_verb verb, const char *subject,
                 struct pawli_trace_row row)
{
    struct pawli_trace_record call = {
        .kind = PAWLI_RECORD_CALL,
        .verb = verb,
        .actor = subject == NULL || subject[0] == '\0' ? "somebody" : subject,
        .subject = subject,
        .at = {tale->now_us},
        .until = {tale->now_us + tale->takes_us},
        .store_at = tale->is_loose ? (pawl_wall){0} : tale_wall(tale),
        .code = tale->call_code,
        .rows = &row,
        .rows_count = 1,
    };
    if (tale->row_code != PAWL_OK)
        row.code = tale->row_code;
    if (tale->call_code != PAWL_OK)
        row.code = tale->call_code;
    if (tale->bend != NULL)
        tale->bend(&call, &row);
    bool is_done = tale->call_code == PAWL_OK && tale->row_code == PAWL_OK;
    tale->bend = NULL;
    tale->call_code = tale->row_code = PAWL_OK;
    pawli_trace_call(tale->writer, &call);
    return is_done;
}

void tale_call(struct tale *tale, enum pawli_trace_verb verb, const char *subject,
               struct pawli_trace_row row)
{
    (void)tell(tale, verb, subject, row); /* whatever it changes is the test's affair */
}

void tale_enqueue(struct tale *tale, int job)
{
    struct tale_job *it = &tale->jobs[job];
    if (!tell(tale, PAWLI_VERB_ENQUEUE, "",
              (struct pawli_trace_row){.job = it->id,
                                       .queue = TALE_QUEUE,
                                       .delay_ms = it->delay_ms,
                                       .start_within_ms = PAWL_DEFAULT,
                                       .max_retries = it->max_retries,
                                       .backoff_base_ms = PAWL_DEFAULT,
                                       .backoff_max_ms = PAWL_DEFAULT,
                                       .ordering_key = it->key}))
        return;
    it->state = PAWL_READY;
    it->due_at = wall_in(tale, it->delay_ms);
    it->is_hidden = false;
}

struct pawli_trace_row tale_lease_row(const struct tale *tale, int job)
{
    const struct tale_job *it = &tale->jobs[job];
    return (struct pawli_trace_row){
        .job = it->id,
        .version = it->version,
        .token_digest = it->digest,
        .retries = it->retries,
        .lost_leases = it->lost,
        .attempts = it->attempts,
        .max_retries = it->max_retries,
        .claimed_at = it->claimed_at,
        .expires_at = it->expires_at,
        .run_until = {it->claimed_at.us + TALE_TIMEOUT_MS * 1000},
        .due_at = it->due_at,
        .lease_ms = TALE_LEASE_MS,
        .timeout_ms = TALE_TIMEOUT_MS,
        .queue = TALE_QUEUE,
        .ordering_key = it->key,
        .fence = it->fence,
    };
}

/* Only what the verb has. */
static struct pawli_trace_row shown(const struct tale *tale, int job)
{
    const struct tale_job *it = &tale->jobs[job];
    return (struct pawli_trace_row){
        .job = it->id, .version = it->version, .token_digest = it->digest};
}

void tale_claim(struct tale *tale, const char *worker, int job)
{
    struct tale_job *it = &tale->jobs[job];
    it->state = PAWL_IN_FLIGHT;
    it->version++;
    it->digest = ++tale->digests * 1000;
    it->claimed_at = tale_wall(tale);
    it->expires_at = wall_in(tale, TALE_LEASE_MS);
    it->holder = worker;
    it->fence = it->key != NULL ? ++tale->fences : 0;
    (void)tell(tale, PAWLI_VERB_CLAIM, worker, tale_lease_row(tale, job));
}

void tale_mine(struct tale *tale, const char *worker, int job)
{
    (void)tell(tale, PAWLI_VERB_MINE, worker, tale_lease_row(tale, job));
}

void tale_renew(struct tale *tale, const char *worker, int job)
{
    struct tale_job *it = &tale->jobs[job];
    struct pawli_trace_row row = shown(tale, job);
    row.expires_at = wall_in(tale, TALE_LEASE_MS);
    row.lease_ms = TALE_LEASE_MS;
    if (tell(tale, PAWLI_VERB_RENEW, worker, row))
        it->expires_at = row.expires_at;
}

/* ---------------------------------------------------------------- ends */

static void add_row(struct tale *tale, int job, struct pawli_trace_row row)
{
    struct tale_job *it = &tale->jobs[job];
    assert(it->rows_count < TALE_ROWS);
    row.job = it->id;
    row.attempt_no = ++it->attempts;
    row.finished_at = tale_wall(tale);
    if (it->state == PAWL_IN_FLIGHT) {
        row.version = it->version;
        row.claimed_at = it->claimed_at;
        row.worker = it->holder;
    }
    it->reason = row.reason;
    it->rows[it->rows_count++] = row;
}

void tale_settle(struct tale *tale, const char *worker, int job, pawl_settle_action action,
                 int64_t delay_ms)
{
    struct tale_job *it = &tale->jobs[job];
    struct pawli_trace_row row = shown(tale, job);
    bool is_back = action == PAWL_SNOOZE || (action == PAWL_RETRY && it->retries < it->max_retries);
    row.action = action;
    row.delay_ms = delay_ms;
    row.reason = tale->reason;
    row.attempt_no = it->attempts + 1;
    row.state = action == PAWL_SUCCEED ? PAWL_SUCCEEDED : is_back ? PAWL_READY : PAWL_FAILED;
    if (is_back)
        row.due_at = wall_in(tale, delay_ms == PAWL_DEFAULT ? COMPUTED_MS : delay_ms);
    pawl_state state = row.state;
    pawl_reason reason = tale->reason;
    tale->reason = PAWL_REASON_NONE;
    if (!tell(tale, PAWLI_VERB_SETTLE, worker, row))
        return;
    add_row(tale, job,
            (struct pawli_trace_row){
                .outcome = state == PAWL_SUCCEEDED ? PAWL_DISPATCHED
                           : is_back               ? PAWL_RETRYABLE
                                                   : PAWL_FAILED_FINAL,
                .reason = state == PAWL_SUCCEEDED ? PAWL_REASON_NONE
                          : action == PAWL_SNOOZE ? PAWL_REASON_SNOOZE
                          : reason != PAWL_REASON_NONE && (is_back || action == PAWL_FAIL) ? reason
                          : action == PAWL_FAIL ? PAWL_REASON_FATAL
                          : is_back             ? PAWL_REASON_ERROR
                                                : PAWL_REASON_EXHAUSTED});
    if (action == PAWL_RETRY && is_back)
        it->retries++;
    it->due_at = row.due_at;
    it->state = state;
}

void tale_settle_again(struct tale *tale, const char *worker, int job, pawl_settle_action action)
{
    const struct tale_job *it = &tale->jobs[job];
    struct pawli_trace_row row = shown(tale, job);
    row.action = action;
    row.attempt_no = it->attempts;
    row.state = it->state;
    row.delay_ms = PAWL_DEFAULT;
    (void)tell(tale, PAWLI_VERB_SETTLE, worker, row);
}

void tale_release(struct tale *tale, const char *worker, int job)
{
    if (tell(tale, PAWLI_VERB_RELEASE, worker, shown(tale, job)))
        tale->jobs[job].state = PAWL_READY;
}

static void expire(struct tale *tale, int job, pawl_reason reason)
{
    struct tale_job *it = &tale->jobs[job];
    bool is_back = reason == PAWL_REASON_EXPIRED;
    it->lost++;
    add_row(tale, job,
            (struct pawli_trace_row){.outcome = is_back ? PAWL_ZOMBIE_REQUEUE : PAWL_FAILED_FINAL,
                                     .reason = reason,
                                     .ended_by = PAWL_ENDED_BY_EXPIRY});
    it->state = is_back ? PAWL_READY : PAWL_FAILED;
    it->due_at = tale_wall(tale);
}

void tale_expire_unseen(struct tale *tale, int job)
{
    expire(tale, job, PAWL_REASON_EXPIRED);
}

void tale_reap(struct tale *tale, int job, pawl_reason reason)
{
    const struct tale_job *it = &tale->jobs[job];
    bool is_back = reason == PAWL_REASON_EXPIRED;
    struct pawli_trace_row row = {.job = it->id,
                                  .version = it->version,
                                  .state = is_back ? PAWL_READY : PAWL_FAILED,
                                  .reason = reason,
                                  .queue = TALE_QUEUE,
                                  .worker = it->holder};
    if (is_back)
        row.due_at = tale_wall(tale);
    if (tale_wall(tale).us > it->expires_at.us)
        row.overdue_ms = (tale_wall(tale).us - it->expires_at.us) / 1000;
    if (tell(tale, PAWLI_VERB_REAP, "", row))
        expire(tale, job, reason);
}

/* ---------------------------------------------------------------- operators */

void tale_cancel(struct tale *tale, int job)
{
    struct tale_job *it = &tale->jobs[job];
    bool is_ready = it->state == PAWL_READY;
    if (!tell(tale, PAWLI_VERB_CANCEL, "",
              (struct pawli_trace_row){.job = it->id,
                                       .state = is_ready ? PAWL_FAILED : PAWL_IN_FLIGHT}) ||
        !is_ready)
        return;
    add_row(tale, job,
            (struct pawli_trace_row){.outcome = PAWL_FAILED_FINAL,
                                     .reason = PAWL_REASON_CANCELLED,
                                     .ended_by = PAWL_ENDED_BY_OPERATOR});
    it->state = PAWL_FAILED;
}

void tale_redrive(struct tale *tale, int job)
{
    struct tale_job *it = &tale->jobs[job];
    if (!tell(tale, PAWLI_VERB_REDRIVE, "", (struct pawli_trace_row){.job = it->id}))
        return;
    it->state = PAWL_READY;
    it->retries = it->lost = 0;
    it->due_at = tale_wall(tale);
}

static void tell_alone(struct tale *tale, enum pawli_trace_verb verb, const char *subject,
                       int64_t count)
{
    pawli_trace_call(tale->writer, &(struct pawli_trace_record){.kind = PAWLI_RECORD_CALL,
                                                                .verb = verb,
                                                                .actor = "operator",
                                                                .subject = subject,
                                                                .at = {tale->now_us},
                                                                .until = {tale->now_us},
                                                                .store_at = tale_wall(tale),
                                                                .count = count});
}

void tale_prune(struct tale *tale, int64_t count)
{
    tell_alone(tale, PAWLI_VERB_PRUNE, "", count);
}

void tale_queue_pause(struct tale *tale, bool is_paused)
{
    tell_alone(tale, PAWLI_VERB_QUEUE_PAUSE, TALE_QUEUE, is_paused ? 1 : 0);
}

void tale_queue_set(struct tale *tale, int64_t max_lost_leases)
{
    (void)tell(tale, PAWLI_VERB_QUEUE_SET, TALE_QUEUE,
               (struct pawli_trace_row){.max_retries = 1,
                                        .max_lost_leases = max_lost_leases,
                                        .backoff_base_ms = 500,
                                        .backoff_max_ms = 30000,
                                        .lease_ms = TALE_LEASE_MS});
}

void tale_queue_bound(struct tale *tale, int64_t max_in_flight)
{
    (void)tell(tale, PAWLI_VERB_QUEUE_SET, TALE_QUEUE,
               (struct pawli_trace_row){.max_retries = 3,
                                        .max_lost_leases = 10,
                                        .backoff_base_ms = 500,
                                        .backoff_max_ms = 30000,
                                        .lease_ms = TALE_LEASE_MS,
                                        .max_in_flight = max_in_flight});
}

/* ---------------------------------------------------------------- the end */

void tale_end(struct tale *tale)
{
    struct pawli_trace_row rows[TALE_JOBS];
    struct pawli_trace_record call = {
        .kind = PAWLI_RECORD_CALL,
        .verb = PAWLI_VERB_LIST,
        .actor = "auditor",
        .at = {tale->now_us},
        .until = {tale->now_us},
        .store_at = tale_wall(tale),
        .count = TALE_JOBS + 1,
        .is_first = true,
        .rows = rows,
    };
    for (int i = 0; i < TALE_JOBS; i++) {
        const struct tale_job *it = &tale->jobs[i];
        if (it->is_hidden)
            continue;
        rows[call.rows_count] = (struct pawli_trace_row){
            .job = it->id,
            .state = it->state,
            .reason = it->reason,
            .version = it->version,
            .retries = it->retries,
            .lost_leases = it->lost,
            .attempts = it->attempts,
            .max_retries = it->max_retries,
            .queue = TALE_QUEUE,
            .ordering_key = it->key,
        };
        if (it->state == PAWL_IN_FLIGHT)
            rows[call.rows_count].worker = it->holder;
        call.rows_count++;
    }
    pawli_trace_call(tale->writer, &call);
    for (int i = 0; i < TALE_JOBS; i++) {
        const struct tale_job *it = &tale->jobs[i];
        if (it->is_hidden || tale->is_unaudited)
            continue;
        call.verb = PAWLI_VERB_ATTEMPTS;
        call.about = it->id;
        call.count = TALE_ROWS + 1;
        call.rows = it->rows;
        call.rows_count = it->rows_count;
        pawli_trace_call(tale->writer, &call);
    }
}

/* ---------------------------------------------------------------- notes */

void tale_note(struct tale *tale, enum pawli_trace_note_kind kind, const char *actor, int64_t a)
{
    pawli_trace_note(tale->writer, (pawl_mono){tale->now_us},
                     &(struct pawli_trace_note){.kind = kind, .actor = actor, .a = a});
}

void tale_up(struct tale *tale, const char *worker)
{
    pawli_trace_note(
        tale->writer, (pawl_mono){tale->now_us},
        &(struct pawli_trace_note){
            .kind = PAWLI_NOTE_WORKER_UP, .actor = worker, .b = TALE_POLL_MS, .c = 1000});
}

void tale_job_note(struct tale *tale, enum pawli_trace_note_kind kind, const char *actor, int job,
                   int64_t a)
{
    pawli_trace_note(tale->writer, (pawl_mono){tale->now_us},
                     &(struct pawli_trace_note){.kind = kind,
                                                .actor = actor,
                                                .job = tale->jobs[job].id,
                                                .version = tale->jobs[job].version,
                                                .a = a});
}

void tale_confirm(struct tale *tale, const char *worker, int job)
{
    pawli_trace_note(tale->writer, (pawl_mono){tale->now_us},
                     &(struct pawli_trace_note){.kind = PAWLI_NOTE_CONFIRMED,
                                                .actor = worker,
                                                .job = tale->jobs[job].id,
                                                .version = tale->jobs[job].version,
                                                .a = tale->now_us,
                                                .b = TALE_LEASE_MS});
}

/* ---------------------------------------------------------------- several at once */

void tale_work(struct tale *tale, const char *worker, int job)
{
    tale_claim(tale, worker, job);
    tale_confirm(tale, worker, job);
    tale_job_note(tale, PAWLI_NOTE_START, worker, job, PAWLI_WHY_CLAIMED);
}

void tale_done(struct tale *tale, const char *worker, int job)
{
    tale_job_note(tale, PAWLI_NOTE_ENDED, worker, job, PAWLI_RESULT_DONE);
    tale_job_note(tale, PAWLI_NOTE_SEND_SETTLE, worker, job, PAWL_SUCCEED);
    tale_settle(tale, worker, job, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_job_note(tale, PAWLI_NOTE_OVER, worker, job, PAWLI_WHY_SETTLED);
}
