/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * helpers.c - the verbs that cases are told in.
 * Owns:  calling the public verbs with one row, or few, and handing on the verdicts.
 * Never: judges a verdict; it fails a case only where the call as a whole failed.
 */
#include "store/helpers.h"

#include <stdlib.h>
#include <string.h>

/* More rows than any case makes: what a verb that gives "all" asks for at once. */
#define PLENTY 256

static void must(struct here here, const char *verb, pawl_code code, const pawl_err *err)
{
    if (code != PAWL_OK)
        complain(here, "%s: %s: %s", verb, pawl_code_name(code), err->text);
}

/* Room for `count` items for as long as one call takes. */
static void *borrow(size_t count, size_t item_size)
{
    void *room = calloc(count, item_size);
    if (room == NULL)
        complain(HERE, "out of memory");
    return room;
}

/* Keep what was borrowed, as large as it turned out to be. */
static void *keep(struct stage *s, void *room, size_t size)
{
    void *kept = stage_memory(s, size);
    memcpy(kept, room, size);
    free(room);
    return kept;
}

/* ---------------------------------------------------------------- producing */

pawl_enqueue_row row_for(const char *queue)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = queue;
    row.payload = "work";
    row.payload_len = 4;
    return row;
}

pawl_enqueued try_put(struct stage *s, const pawl_enqueue_row *row)
{
    pawl_enqueued result = {0};
    pawl_err err;
    pawl_code code = pawl_enqueue(s->store, row, 1, &result, &err);
    must(HERE, "enqueue", code, &err);
    return result;
}

pawl_id put_row(struct stage *s, const pawl_enqueue_row *row)
{
    pawl_enqueued result = try_put(s, row);
    if (result.code != PAWL_OK)
        complain(HERE, "enqueue was refused: %s", pawl_code_name(result.code));
    return result.id;
}

pawl_id put(struct stage *s, const char *queue)
{
    pawl_enqueue_row row = row_for(queue);
    return put_row(s, &row);
}

pawl_id new_id(struct stage *s, const pawl_enqueue_row *row)
{
    pawl_id id;
    pawl_err err;
    pawl_code code = pawl_id_new(s->store, row, &id, &err);
    must(HERE, "id_new", code, &err);
    return id;
}

pawl_queue_settings settings_of(struct stage *s, const char *queue)
{
    pawl_queue_settings settings;
    pawl_err err;
    pawl_code code = pawl_queue_get(s->store, queue, &settings, &err);
    must(HERE, "queue_get", code, &err);
    return settings;
}

void set_settings(struct stage *s, const char *queue, const pawl_queue_settings *settings)
{
    pawl_err err;
    pawl_code code = pawl_queue_set(s->store, queue, settings, &err);
    must(HERE, "queue_set", code, &err);
}

void set_lease(struct stage *s, const char *queue, int64_t lease_ms)
{
    pawl_queue_settings settings = settings_of(s, queue);
    settings.lease_ms = lease_ms;
    set_settings(s, queue, &settings);
}

void set_bounds(struct stage *s, const char *queue, int64_t max_retries, int64_t max_lost_leases)
{
    pawl_queue_settings settings = settings_of(s, queue);
    settings.max_retries = max_retries;
    settings.max_lost_leases = max_lost_leases;
    set_settings(s, queue, &settings);
}

void pause_queue(struct stage *s, const char *queue, bool is_paused)
{
    pawl_err err;
    pawl_code code = pawl_queue_pause(s->store, queue, is_paused, &err);
    must(HERE, "queue_pause", code, &err);
}

/* ---------------------------------------------------------------- working */

/* Keep the jobs that came, and give the room for them back. */
static struct batch kept_batch(struct stage *s, pawl_job *jobs, size_t count)
{
    struct batch batch = {stage_memory(s, count * sizeof(batch.jobs[0])), count};
    for (size_t i = 0; i < count; i++)
        batch.jobs[i] = stage_keep(s, &jobs[i]);
    free(jobs);
    return batch;
}

struct batch claim(struct stage *s, const pawl_claim_args *args, size_t jobs_max)
{
    pawl_job *jobs = borrow(jobs_max, sizeof(jobs[0]));
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_claim(s->store, args, jobs, jobs_max, &count, &err);
    must(HERE, "claim", code, &err);
    if (count > jobs_max)
        complain(HERE, "claim gave %zu jobs, asked for at most %zu", count, jobs_max);
    return kept_batch(s, jobs, count);
}

static struct batch take_line(struct stage *s, const char *worker, const pawl_claim_line *line)
{
    pawl_claim_args args = {
        .worker = worker, .lines = line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    return claim(s, &args, (size_t)line->jobs_max);
}

struct batch take_up_to(struct stage *s, const char *queue, const char *worker, int64_t jobs_max)
{
    pawl_claim_line line = {.queue = queue, .jobs_max = jobs_max, .lease_ms = PAWL_DEFAULT};
    return take_line(s, worker, &line);
}

const pawl_job *take_for(struct stage *s, const char *queue, const char *worker, int64_t lease_ms)
{
    pawl_claim_line line = {.queue = queue, .jobs_max = 1, .lease_ms = lease_ms};
    struct batch batch = take_line(s, worker, &line);
    if (batch.count != 1)
        complain(HERE, "queue %s had no job for %s", queue, worker);
    return batch.jobs[0];
}

const pawl_job *take(struct stage *s, const char *queue, const char *worker)
{
    return take_for(s, queue, worker, PAWL_DEFAULT);
}

struct batch mine(struct stage *s, const char *worker)
{
    pawl_job *jobs = borrow(PLENTY, sizeof(jobs[0]));
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_mine(s->store, worker, NULL, jobs, PLENTY, &count, &err);
    must(HERE, "mine", code, &err);
    return kept_batch(s, jobs, count);
}

pawl_lease lease_of(const pawl_job *job)
{
    return (pawl_lease){.job = job->id, .token = job->token, .version = job->lease_version};
}

pawl_renewed renew_row(struct stage *s, const char *worker, const pawl_renew_row *row)
{
    pawl_renewed result = {0};
    pawl_err err;
    pawl_code code = pawl_renew(s->store, worker, row, 1, &result, &err);
    must(HERE, "renew", code, &err);
    return result;
}

pawl_renewed renew_for(struct stage *s, const pawl_job *job, int64_t lease_ms)
{
    pawl_renew_row row = {.lease = lease_of(job), .lease_ms = lease_ms};
    return renew_row(s, job->worker, &row);
}

pawl_renewed renew(struct stage *s, const pawl_job *job)
{
    return renew_for(s, job, PAWL_DEFAULT);
}

pawl_settle_row settle_row_for(const pawl_job *job, pawl_settle_action action)
{
    pawl_settle_row row;
    pawl_settle_init(&row);
    row.lease = lease_of(job);
    row.action = action;
    row.delay_ms = 0;
    return row;
}

pawl_settled settle_row(struct stage *s, const char *worker, const pawl_settle_row *row)
{
    pawl_settled result = {0};
    pawl_err err;
    pawl_code code = pawl_settle(s->store, worker, row, 1, &result, &err);
    must(HERE, "settle", code, &err);
    return result;
}

pawl_settled settle(struct stage *s, const pawl_job *job, pawl_settle_action action)
{
    pawl_settle_row row = settle_row_for(job, action);
    return settle_row(s, job->worker, &row);
}

pawl_settled succeed(struct stage *s, const pawl_job *job)
{
    return settle(s, job, PAWL_SUCCEED);
}

pawl_settled fail_for_good(struct stage *s, const pawl_job *job)
{
    return settle(s, job, PAWL_FAIL);
}

static pawl_settled settle_later(struct stage *s, const pawl_job *job, pawl_settle_action action,
                                 int64_t delay_ms)
{
    pawl_settle_row row = settle_row_for(job, action);
    row.delay_ms = delay_ms;
    return settle_row(s, job->worker, &row);
}

pawl_settled retry_in(struct stage *s, const pawl_job *job, int64_t delay_ms)
{
    return settle_later(s, job, PAWL_RETRY, delay_ms);
}

pawl_settled snooze_for(struct stage *s, const pawl_job *job, int64_t delay_ms)
{
    return settle_later(s, job, PAWL_SNOOZE, delay_ms);
}

pawl_code release_lease(struct stage *s, const char *worker, const pawl_lease *lease)
{
    pawl_code verdict = PAWL_INVALID;
    pawl_err err;
    pawl_code code = pawl_release(s->store, worker, lease, 1, &verdict, &err);
    must(HERE, "release", code, &err);
    return verdict;
}

pawl_code release(struct stage *s, const pawl_job *job)
{
    pawl_lease lease = lease_of(job);
    return release_lease(s, job->worker, &lease);
}

/* ---------------------------------------------------------------- operating */

struct reaped reap_up_to(struct stage *s, size_t rows_max)
{
    pawl_reaped *rows = borrow(rows_max, sizeof(rows[0]));
    struct reaped reaped = {NULL, 0};
    pawl_err err;
    pawl_code code = pawl_reap(s->store, rows, rows_max, &reaped.count, &err);
    must(HERE, "reap", code, &err);
    if (reaped.count > rows_max)
        complain(HERE, "reap gave %zu rows, asked for at most %zu", reaped.count, rows_max);
    reaped.rows = keep(s, rows, reaped.count * sizeof(rows[0]));
    return reaped;
}

const pawl_reaped *reap_one(struct stage *s)
{
    struct reaped reaped = reap_up_to(s, PLENTY);
    if (reaped.count != 1)
        complain(HERE, "reap gave %zu rows instead of one", reaped.count);
    return &reaped.rows[0];
}

size_t prune(struct stage *s)
{
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_prune(s->store, PLENTY, &count, &err);
    must(HERE, "prune", code, &err);
    return count;
}

const pawl_job *look(struct stage *s, pawl_id id)
{
    pawl_job job = {0};
    pawl_err err;
    pawl_code code = pawl_get(s->store, &id, &job, &err);
    must(HERE, "get", code, &err);
    return stage_keep(s, &job);
}

bool is_gone(struct stage *s, pawl_id id)
{
    pawl_job job = {0};
    pawl_err err;
    pawl_code code = pawl_get(s->store, &id, &job, &err);
    if (code == PAWL_GONE)
        return true;
    must(HERE, "get", code, &err);
    pawl_job_clear(&job);
    return false;
}

struct batch list(struct stage *s, const pawl_filter *filter)
{
    pawl_job *jobs = borrow(PLENTY, sizeof(jobs[0]));
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_list(s->store, filter, NULL, jobs, PLENTY, &count, &err);
    must(HERE, "list", code, &err);
    return kept_batch(s, jobs, count);
}

const pawl_attempt *ledger(struct stage *s, pawl_id id, size_t *ret_count)
{
    pawl_attempt *rows = borrow(PLENTY, sizeof(rows[0]));
    size_t count = 0;
    int64_t after_no = 0;
    for (;;) {
        size_t more = 0;
        pawl_err err;
        pawl_code code = pawl_attempts(s->store, &id, after_no, &rows[count], PLENTY - count, &more,
                                       &err);
        must(HERE, "attempts", code, &err);
        count += more;
        if (more == 0 || count == PLENTY)
            break;
        after_no = rows[count - 1].attempt_no;
    }
    *ret_count = count;
    return keep(s, rows, count * sizeof(rows[0]));
}

pawl_stats stats_of(struct stage *s, const char *queue)
{
    pawl_stats rows[32];
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_queue_stats(s->store, NULL, rows, COUNT_OF(rows), &count, &err);
    must(HERE, "queue_stats", code, &err);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].queue, queue) == 0)
            return rows[i];
    }
    return (pawl_stats){0};
}

pawl_changed cancel(struct stage *s, pawl_id id)
{
    pawl_changed result = {0};
    pawl_err err;
    pawl_code code = pawl_cancel(s->store, &id, 1, &result, &err);
    must(HERE, "cancel", code, &err);
    return result;
}

pawl_changed redrive(struct stage *s, pawl_id id)
{
    pawl_changed result = {0};
    pawl_err err;
    pawl_code code = pawl_redrive(s->store, &id, 1, &result, &err);
    must(HERE, "redrive", code, &err);
    return result;
}

pawl_changed discard(struct stage *s, pawl_id id)
{
    pawl_changed result = {0};
    pawl_err err;
    pawl_code code = pawl_discard(s->store, &id, 1, &result, &err);
    must(HERE, "discard", code, &err);
    return result;
}

/* ---------------------------------------------------------------- short stories */

static pawl_id put_settled(struct stage *s, const char *queue, pawl_settle_action action)
{
    pawl_id id = put(s, queue);
    const pawl_job *job = take(s, queue, "w");
    check_id(HERE, job->id, id);
    check_code(HERE, settle(s, job, action).code, PAWL_OK);
    return id;
}

pawl_id put_succeeded(struct stage *s, const char *queue)
{
    return put_settled(s, queue, PAWL_SUCCEED);
}

pawl_id put_failed(struct stage *s, const char *queue)
{
    return put_settled(s, queue, PAWL_FAIL);
}

const pawl_job *take_and_lose(struct stage *s, const char *queue, const char *worker)
{
    const pawl_job *job = take(s, queue, worker);
    age(s, job->lease_ms + SECOND);
    return job;
}
