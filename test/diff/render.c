/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * render.c - answers and calls as texts.
 * Owns:  which fields of an answer are compared: all of them, but for the bytes of a token.
 * Never: calls a verb that changes anything.
 */
#include "diff/call.h"

#include "pawl/headers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STORY_BEGINS_US INT64_C(1700000000000000)
#define LEDGER_MAX      600

const char *const diff_queues[DIFF_QUEUES] = {"mail", "print", "rare"};
const char *const diff_workers[DIFF_WORKERS] = {"w1", "w2", "w3"};

const char *diff_verb_name(enum diff_verb verb)
{
    static const char *const names[DIFF_VERBS] = {
        [DIFF_ENQUEUE] = "enqueue",
        [DIFF_CLAIM] = "claim",
        [DIFF_MINE] = "mine",
        [DIFF_RENEW] = "renew",
        [DIFF_SETTLE] = "settle",
        [DIFF_RELEASE] = "release",
        [DIFF_REAP] = "reap",
        [DIFF_PRUNE] = "prune",
        [DIFF_GET] = "get",
        [DIFF_LIST] = "list",
        [DIFF_ATTEMPTS] = "attempts",
        [DIFF_LEASES] = "leases",
        [DIFF_WORKER_SEEN] = "worker_seen",
        [DIFF_WORKER_ENDED] = "worker_ended",
        [DIFF_WORKERS_LIST] = "workers",
        [DIFF_STATS] = "queue_stats",
        [DIFF_QUEUE_GET] = "queue_get",
        [DIFF_QUEUE_SET] = "queue_set",
        [DIFF_QUEUE_PAUSE] = "queue_pause",
        [DIFF_CANCEL] = "cancel",
        [DIFF_REDRIVE] = "redrive",
        [DIFF_DISCARD] = "discard",
        [DIFF_CANCEL_WHERE] = "cancel_where",
        [DIFF_REDRIVE_WHERE] = "redrive_where",
        [DIFF_DISCARD_WHERE] = "discard_where",
        [DIFF_NOW] = "now",
    };
    return names[verb];
}

struct diff_short diff_short_id(const pawl_id *id)
{
    struct diff_short name;
    char text[PAWL_ID_TEXT_MAX];
    (void)snprintf(name.text, sizeof(name.text), "%s", pawl_id_format(id, text) + 24);
    return name;
}

/* ---------------------------------------------------------------- small things */

void diff_say_time(pawl_wall at, FILE *out)
{
    if (at.us == 0)
        (void)fputc('-', out);
    else
        (void)fprintf(out, "%.6f", (double)(at.us - STORY_BEGINS_US) / 1e6);
}

static void say_at(const char *what, pawl_wall at, FILE *out)
{
    (void)fprintf(out, " %s ", what);
    diff_say_time(at, out);
}

static void say_ms(const char *what, int64_t ms, FILE *out)
{
    if (ms != PAWL_DEFAULT)
        (void)fprintf(out, " %s %" PRId64, what, ms);
}

static uint32_t hash_of(const void *bytes, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    return hash;
}

/* ---------------------------------------------------------------- rows */

/* Whose token it is: none, the one that this store gave with the lease, or another one. */
static const char *token_word(const struct diff *diff, const struct side *side, const pawl_job *job)
{
    static const pawl_token none;
    if (memcmp(&job->token, &none, sizeof(none)) == 0)
        return "none";
    for (size_t i = 0; i < DIFF_SLOTS; i++) {
        const struct grip *grip = &diff->slots[i].grip;
        if (pawl_id_compare(&grip->job, &job->id) == 0 && grip->version == job->lease_version)
            return memcmp(&grip->tokens[side->number], &job->token, sizeof(none)) == 0 ? "known"
                                                                                       : "WRONG";
    }
    return "new";
}

/* The same for its fence. */
static const char *fence_word(const struct diff *diff, const struct side *side, const pawl_job *job)
{
    if (job->fence == 0)
        return "none";
    for (size_t i = 0; i < DIFF_SLOTS; i++) {
        const struct grip *grip = &diff->slots[i].grip;
        if (pawl_id_compare(&grip->job, &job->id) == 0 && grip->version == job->lease_version)
            return grip->fences[side->number] == job->fence ? "known" : "WRONG";
    }
    return "new";
}

void diff_say_job(const struct diff *diff, const struct side *side, const pawl_job *job, FILE *out)
{
    (void)fprintf(out, "%s %s %s prio %d retries %" PRId64 "/%" PRId64 " lost %" PRId64,
                  diff_short_id(&job->id).text, job->queue, pawl_state_name(job->state),
                  job->priority, job->retries, job->max_retries, job->lost_leases);
    (void)fprintf(out, " rows %" PRId64 " v%" PRId64 " reason %s", job->attempts,
                  job->lease_version, pawl_reason_name(job->reason));
    say_at("created", job->created_at, out);
    /* When a Succeeded job was due nobody needs to know, and not every store does. */
    bool is_done = job->state == PAWL_SUCCEEDED;
    say_at("due", is_done ? (pawl_wall){0} : job->due_at, out);
    say_at("start_by", is_done ? (pawl_wall){0} : job->start_by, out);
    say_at("finished", job->finished_at, out);
    /* Nor of which key it was. */
    (void)fprintf(out, " key '%s'", is_done ? "" : job->ordering_key);
    (void)fprintf(out, " | token %s fence %s worker '%s'", token_word(diff, side, job),
                  fence_word(diff, side, job), job->worker);
    say_at("claimed", job->claimed_at, out);
    say_at("expires", job->expires_at, out);
    say_at("run_until", job->run_until, out);
    (void)fprintf(out, " lease %" PRId64 " timeout %" PRId64 "%s | %zu bytes", job->lease_ms,
                  job->timeout_ms, job->is_cancel_asked ? " cancel asked" : "", job->payload_len);
    if (job->payload == NULL)
        (void)fputs(job->payload_len == 0 ? "" : " not told", out);
    else
        (void)fprintf(out, " %08" PRIx32, hash_of(job->payload, job->payload_len));
    pawl_header header;
    for (const char *at = job->headers; pawl_headers_next(&at, &header);)
        (void)fprintf(out, " %.*s='%.*s'", (int)header.name_len, header.name, (int)header.value_len,
                      header.value);
    (void)fputc('\n', out);
}

void diff_say_attempt(const pawl_attempt *row, FILE *out)
{
    (void)fprintf(out, "  row %" PRId64 " %s %s by %s v%" PRId64 " '%s'", row->attempt_no,
                  pawl_outcome_name(row->outcome), pawl_reason_name(row->reason),
                  pawl_ended_by_name(row->ended_by), row->lease_version, row->worker);
    say_at("started", row->started_at, out);
    say_at("finished", row->finished_at, out);
    (void)fprintf(out, " '%s' '%s' sends %" PRId64 "\n", row->error_code, row->error_text,
                  row->wire_sends);
}

void diff_say_lease(const pawl_lease_info *row, FILE *out)
{
    (void)fprintf(out, "%s %s '%s' v%" PRId64, diff_short_id(&row->job).text, row->queue,
                  row->worker, row->lease_version);
    say_at("claimed", row->claimed_at, out);
    say_at("expires", row->expires_at, out);
    (void)fprintf(out, "%s%s\n", row->is_expired ? " expired" : "",
                  row->is_cancel_asked ? " cancel asked" : "");
}

void diff_say_worker(const pawl_worker *row, FILE *out)
{
    (void)fprintf(out, "%s kind %d host '%s' version '%s' queues '%s' leases %" PRId64, row->name,
                  (int)row->kind, row->host, row->version, row->queues, row->leases);
    say_at("since", row->since, out);
    say_at("seen", row->last_seen, out);
    (void)fputc('\n', out);
}

void diff_say_stats(const pawl_stats *row, FILE *out)
{
    (void)fprintf(out,
                  "%s%s ready %" PRId64 " delayed %" PRId64 " in flight %" PRId64
                  " expired %" PRId64 " succeeded %" PRId64 " failed %" PRId64 " oldest %" PRId64
                  "\n",
                  row->queue, row->is_paused ? " paused" : "", row->ready, row->delayed,
                  row->in_flight, row->expired, row->succeeded, row->failed, row->oldest_due_ms);
}

void diff_say_settings(const pawl_queue_settings *settings, FILE *out)
{
    say_ms("lease", settings->lease_ms, out);
    say_ms("timeout", settings->execution_timeout_ms, out);
    say_ms("retries", settings->max_retries, out);
    say_ms("losses", settings->max_lost_leases, out);
    say_ms("base", settings->backoff_base_ms, out);
    say_ms("max", settings->backoff_max_ms, out);
    say_ms("keep_succeeded", settings->keep_succeeded_ms, out);
    say_ms("keep_failed", settings->keep_failed_ms, out);
    say_ms("in_flight", settings->max_in_flight, out);
    (void)fprintf(out, "%s\n", settings->is_paused ? " paused" : "");
}

/* ---------------------------------------------------------------- calls */

static const char *named(const char *text)
{
    return text != NULL ? text : "any";
}

static void say_row(const struct call *call, size_t i, FILE *out)
{
    const pawl_enqueue_row *row = &call->rows[i];
    const pawl_settle_row *settle = &call->settles[i];
    static const char *const actions[] = {"succeed", "retry", "fail", "snooze"};
    switch (call->verb) {
    case DIFF_ENQUEUE:
        (void)fprintf(out, " [%s %s prio %d key %s dedupe %s %zu bytes",
                      diff_short_id(&row->id).text, row->queue, row->priority,
                      row->ordering_key != NULL ? row->ordering_key : "-",
                      row->dedupe_key != NULL ? row->dedupe_key : "-", row->payload_len);
        say_ms("delay", row->delay_ms, out);
        say_ms("start_within", row->start_within_ms, out);
        say_ms("retries", row->max_retries, out);
        say_ms("timeout", row->timeout_ms, out);
        say_ms("base", row->backoff_base_ms, out);
        say_ms("max", row->backoff_max_ms, out);
        break;
    case DIFF_CLAIM:
        (void)fprintf(out, " [%s max %" PRId64, call->lines[i].queue, call->lines[i].jobs_max);
        say_ms("lease", call->lines[i].lease_ms, out);
        break;
    case DIFF_RENEW:
    case DIFF_SETTLE:
    case DIFF_RELEASE:
        (void)fprintf(out, " [%s v%" PRId64, diff_short_id(&call->grips[i].job).text,
                      call->grips[i].version);
        if (call->verb == DIFF_RENEW) {
            say_ms("lease", call->renewals[i].lease_ms, out);
            (void)fputs(call->renewals[i].is_unstarted ? " unstarted" : "", out);
        }
        if (call->verb == DIFF_SETTLE) {
            (void)fprintf(out, " %s reason %s", actions[settle->action],
                          pawl_reason_name(settle->reason));
            say_ms("delay", settle->delay_ms, out);
        }
        break;
    default:
        (void)fprintf(out, " [%s", diff_short_id(&call->ids[i]).text);
        break;
    }
    (void)fputc(']', out);
}

void diff_say_call(const struct call *call, FILE *out)
{
    (void)fprintf(out, "%s%s", diff_verb_name(call->verb), call->is_flawed ? " (flawed)" : "");
    if (call->worker != NULL)
        (void)fprintf(out, " by %s", call->worker);
    if (call->queue != NULL)
        (void)fprintf(out, " of %s%s", call->queue, call->is_paused ? " paused" : "");
    if (call->max > 0)
        (void)fprintf(out, " max %zu", call->max);
    if (call->verb == DIFF_CLAIM && call->bytes_max != PAWL_DEFAULT)
        (void)fprintf(out, " bytes %" PRId64, call->bytes_max);
    if (call->verb == DIFF_LIST || call->verb == DIFF_LEASES ||
        (call->verb >= DIFF_CANCEL_WHERE && call->verb <= DIFF_DISCARD_WHERE))
        (void)fprintf(out, " queue %s key %s states %x reason %s worker %s",
                      named(call->filter.queue), named(call->filter.ordering_key),
                      call->filter.states, pawl_reason_name(call->filter.reason),
                      named(call->filter.worker));
    if (call->has_after)
        (void)fprintf(out, " after %s", diff_short_id(&call->after).text);
    if (call->after_name != NULL)
        (void)fprintf(out, " after %s", call->after_name);
    if (call->verb == DIFF_QUEUE_SET)
        diff_say_settings(&call->settings, out);
    else
        for (size_t i = 0; i < call->count; i++)
            say_row(call, i, out);
    if (call->verb != DIFF_QUEUE_SET)
        (void)fputc('\n', out);
}

/* ---------------------------------------------------------------- everything */

static void say_failure(const char *what, pawl_code code, const pawl_err *err, FILE *out)
{
    (void)fprintf(out, "%s: %s: %s\n", what, pawl_code_name(code), err->text);
}

static void say_ledger(const struct side *side, const pawl_id *id, FILE *out)
{
    pawl_attempt *rows = calloc(LEDGER_MAX, sizeof(rows[0]));
    size_t count = 0;
    pawl_err err = {.text = "out of memory"};
    pawl_code code = rows == NULL
                         ? PAWL_NO_MEMORY
                         : pawl_attempts(side->store, id, 0, rows, LEDGER_MAX, &count, &err);
    if (code != PAWL_OK)
        say_failure("attempts", code, &err, out);
    for (size_t i = 0; i < count; i++)
        diff_say_attempt(&rows[i], out);
    free(rows);
}

static void say_jobs(const struct diff *diff, const struct side *side, FILE *out)
{
    pawl_job *jobs = calloc(DIFF_PAGE, sizeof(jobs[0]));
    pawl_id after;
    size_t count = DIFF_PAGE;
    for (bool is_first = true; jobs != NULL && count == DIFF_PAGE; is_first = false) {
        pawl_err err;
        pawl_code code = pawl_list(side->store, NULL, is_first ? NULL : &after, jobs, DIFF_PAGE,
                                   &count, &err);
        if (code != PAWL_OK) {
            say_failure("list", code, &err, out);
            break;
        }
        for (size_t i = 0; i < count; i++) {
            pawl_job job = {0};
            after = jobs[i].id;
            code = pawl_get(side->store, &after, &job, &err);
            if (code == PAWL_OK)
                diff_say_job(diff, side, &job, out);
            else
                say_failure("get", code, &err, out);
            say_ledger(side, &after, out);
            pawl_job_clear(&job);
            pawl_job_clear(&jobs[i]);
        }
    }
    free(jobs);
}

static void say_rest(const struct side *side, FILE *out)
{
    pawl_lease_info leases[DIFF_PAGE];
    pawl_worker workers[DIFF_PAGE];
    pawl_stats stats[DIFF_PAGE];
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_leases(side->store, NULL, NULL, leases, DIFF_PAGE, &count, &err);
    if (code != PAWL_OK)
        say_failure("leases", code, &err, out);
    for (size_t i = 0; code == PAWL_OK && i < count; i++)
        diff_say_lease(&leases[i], out);
    code = pawl_workers(side->store, NULL, workers, DIFF_PAGE, &count, &err);
    if (code != PAWL_OK)
        say_failure("workers", code, &err, out);
    for (size_t i = 0; code == PAWL_OK && i < count; i++)
        diff_say_worker(&workers[i], out);
    code = pawl_queue_stats(side->store, NULL, stats, DIFF_PAGE, &count, &err);
    if (code != PAWL_OK)
        say_failure("queue_stats", code, &err, out);
    for (size_t i = 0; code == PAWL_OK && i < count; i++)
        diff_say_stats(&stats[i], out);
    for (size_t i = 0; i < DIFF_QUEUES; i++) {
        pawl_queue_settings settings;
        code = pawl_queue_get(side->store, diff_queues[i], &settings, &err);
        (void)fprintf(out, "%s:", diff_queues[i]);
        if (code == PAWL_OK)
            diff_say_settings(&settings, out);
        else
            say_failure("queue_get", code, &err, out);
    }
}

void diff_say_all(const struct diff *diff, const struct side *side, FILE *out)
{
    say_jobs(diff, side, out);
    say_rest(side, out);
}
