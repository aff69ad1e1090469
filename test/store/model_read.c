/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * model_read.c - the naive store: what each verb that only reads must tell.
 * Owns:  comparing what a store shows with what the model knows, and learning exact instants.
 * Never: changes a job, but to take over what an earlier claim or prune left open.
 */
#include "store/model_inside.h"

#include <string.h>

/* ---------------------------------------------------------------- one job */

/* An earlier call may have recovered the job; its ledger says whether it did. */
static const char *resolve_recovery(struct model *model, struct model_job *job,
                                    const pawl_job *told)
{
    bool may_be_recovered = job->may_be_recovered;
    job->may_be_recovered = false;
    if (!may_be_recovered || told->attempts != (int64_t)job->rows_count + 1)
        return NULL;
    if (job->state == PAWL_IN_FLIGHT && model_is_leased(job->when, job) != MODEL_COME) {
        model_expire(model, job, job->when);
        return NULL;
    }
    if (job->state == PAWL_READY && job->start_by.high_us != 0 &&
        model_has_come(job->when, job->start_by) != MODEL_NOT_YET) {
        model_miss(job, job->when);
        return NULL;
    }
    return model_wrong(model, "a ledger row that no call has left");
}

static const char *compare_lease(struct model *model, struct model_job *job, const pawl_job *told)
{
    static const pawl_token no_token;
    if (strcmp(told->worker, job->worker) != 0)
        return model_wrong(model, "the worker is \"%s\", should be \"%s\"", told->worker,
                           job->worker);
    if (memcmp(&told->token, &no_token, sizeof(no_token)) != 0)
        return model_wrong(model, "a token is shown");
    MODEL_TRY(model_same(model, "is_cancel_asked", told->is_cancel_asked, job->is_cancel_asked));
    MODEL_TRY(model_same(model, "fence", told->fence, job->fence));
    MODEL_TRY(model_learn(model, "claimed_at", told->claimed_at, &job->claimed));
    MODEL_TRY(model_learn(model, "expires_at", told->expires_at, &job->expires));
    return model_learn(model, "run_until", told->run_until, &job->run_until);
}

static const char *compare_job(struct model *model, struct model_job *job, const pawl_job *told)
{
    MODEL_TRY(model_same(model, "state", told->state, job->state));
    MODEL_TRY(model_same(model, "priority", told->priority, job->priority));
    MODEL_TRY(model_same(model, "retries", told->retries, job->retries));
    MODEL_TRY(model_same(model, "lost_leases", told->lost_leases, job->lost_leases));
    MODEL_TRY(model_same(model, "attempts", told->attempts, (int64_t)job->rows_count));
    MODEL_TRY(model_same(model, "lease_version", told->lease_version, job->lease_version));
    MODEL_TRY(model_same(model, "max_retries", told->max_retries, job->max_retries));
    pawl_reason reason = job->rows_count > 0 ? job->rows[job->rows_count - 1].reason
                                             : PAWL_REASON_NONE;
    MODEL_TRY(model_same(model, "reason", told->reason, reason));
    if (strcmp(told->queue, model->queues[job->queue].name) != 0)
        return model_wrong(model, "the queue is %s", told->queue);
    const char *key = job->ordering_key != NULL ? job->ordering_key : "";
    bool may_forget = job->state == PAWL_SUCCEEDED && told->ordering_key[0] == '\0';
    if (strcmp(told->ordering_key, key) != 0 && !may_forget)
        return model_wrong(model, "the ordering key is %s", told->ordering_key);
    MODEL_TRY(model_learn(model, "finished_at", told->finished_at, &job->finished));
    if (job->state == PAWL_READY) {
        MODEL_TRY(model_learn(model, "due_at", told->due_at, &job->due));
        if (job->start_by.high_us != 0)
            MODEL_TRY(model_learn(model, "start_by", told->start_by, &job->start_by));
    }
    return compare_lease(model, job, told);
}

const char *model_seen(struct model *model, const pawl_id *id, const pawl_job *told)
{
    struct model_job *job = model_find(model, id);
    if (job == NULL || !job->is_known)
        return told == NULL ? NULL : model_wrong(model, "a job is told that nobody knows");
    if (told == NULL) {
        if (!job->must_be_pruned && !job->may_be_pruned)
            return model_wrong(model, "the job is gone");
        job->is_known = false;
        return NULL;
    }
    if (job->must_be_pruned)
        return model_wrong(model, "the job should have been pruned");
    job->may_be_pruned = false;
    MODEL_TRY(resolve_recovery(model, job, told));
    MODEL_TRY(compare_job(model, job, told));
    bool has_payload = told->payload != NULL;
    if (!model_is_terminal(job) || job->state == PAWL_FAILED)
        MODEL_TRY(model_same(model, "has a payload", has_payload, !job->is_discarded));
    return NULL;
}

const char *model_ledger(struct model *model, const pawl_id *id, const pawl_attempt *rows,
                         size_t rows_count)
{
    struct model_job *job = model_find(model, id);
    MODEL_TRY(
        model_same(model, "the ledger's length", (int64_t)rows_count, (int64_t)job->rows_count));
    for (size_t i = 0; i < rows_count; i++) {
        const struct model_row *row = &job->rows[i];
        MODEL_TRY(model_same(model, "attempt_no", rows[i].attempt_no, (int64_t)i + 1));
        MODEL_TRY(model_same(model, "outcome", rows[i].outcome, row->outcome));
        MODEL_TRY(model_same(model, "reason", rows[i].reason, row->reason));
        MODEL_TRY(model_same(model, "ended_by", rows[i].ended_by, row->ended_by));
        MODEL_TRY(model_same(model, "lease_version", rows[i].lease_version, row->lease_version));
        if (strcmp(rows[i].worker, row->worker) != 0)
            return model_wrong(model, "row %zu names worker \"%s\"", i + 1, rows[i].worker);
    }
    return NULL;
}

/* ---------------------------------------------------------------- many jobs */

/* Each told job is one that `belongs` calls for, in the order of ids, and none is missing. */
struct expected {
    enum model_when belongs[MODEL_JOBS_MAX];
};

static const char *compare_set(struct model *model, const struct expected *expected,
                               const pawl_job *jobs, size_t jobs_count)
{
    bool is_told[MODEL_JOBS_MAX] = {false};
    for (size_t i = 0; i < jobs_count; i++) {
        const struct model_job *job = model_find(model, &jobs[i].id);
        if (job == NULL || expected->belongs[job - model->jobs] == MODEL_NOT_YET)
            return model_wrong(model, "a job is told that does not belong there");
        is_told[job - model->jobs] = true;
        if (i > 0 && pawl_id_compare(&jobs[i - 1].id, &jobs[i].id) >= 0)
            return model_wrong(model, "not in the order of ids");
    }
    for (size_t i = 0; i < model->jobs_count; i++) {
        if (expected->belongs[i] == MODEL_COME && !is_told[i])
            return model_wrong(model, "job %zu is missing", i);
    }
    return NULL;
}

const char *model_mine(struct model *model, struct model_span span, const char *worker,
                       const pawl_job *jobs, size_t jobs_count)
{
    struct expected expected = {{MODEL_NOT_YET}};
    for (size_t i = 0; i < model->jobs_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->is_known && strcmp(job->worker, worker) == 0)
            expected.belongs[i] = model_is_leased(span, job);
    }
    for (size_t i = 0; i < jobs_count; i++) {
        const struct model_job *job = model_find(model, &jobs[i].id);
        if (job != NULL && memcmp(&job->token, &jobs[i].token, sizeof(job->token)) != 0)
            return model_wrong(model, "another token");
        if (job != NULL)
            MODEL_TRY(model_same(model, "the fence of mine", jobs[i].fence, job->fence));
    }
    return compare_set(model, &expected, jobs, jobs_count);
}

const char *model_listed(struct model *model, const pawl_filter *filter, const pawl_job *jobs,
                         size_t jobs_count)
{
    struct expected expected = {{MODEL_NOT_YET}};
    for (size_t i = 0; i < model->jobs_count; i++) {
        const struct model_job *job = &model->jobs[i];
        pawl_reason reason = job->rows_count > 0 ? job->rows[job->rows_count - 1].reason
                                                 : PAWL_REASON_NONE;
        bool is_wanted = job->is_known &&
                         (filter->states == 0 || (filter->states & 1u << job->state) != 0) &&
                         (filter->queue == NULL ||
                          strcmp(filter->queue, model->queues[job->queue].name) == 0) &&
                         (filter->reason == PAWL_REASON_NONE || filter->reason == reason) &&
                         (filter->worker == NULL || strcmp(filter->worker, job->worker) == 0);
        const char *key = job->ordering_key != NULL ? job->ordering_key : "";
        if (filter->ordering_key != NULL && strcmp(filter->ordering_key, key) != 0)
            is_wanted = false;
        expected.belongs[i] = is_wanted ? MODEL_COME : MODEL_NOT_YET;
        if (is_wanted && filter->ordering_key != NULL && job->state == PAWL_SUCCEEDED)
            expected.belongs[i] = MODEL_UNSURE; /* its key may be forgotten */
    }
    return compare_set(model, &expected, jobs, jobs_count);
}

/* ---------------------------------------------------------------- counts */

/* A count that time may leave open. */
struct range {
    int64_t least;
    int64_t most;
};

static void count(struct range *range, enum model_when when)
{
    range->least += when == MODEL_COME;
    range->most += when != MODEL_NOT_YET;
}

static enum model_when opposite(enum model_when when)
{
    if (when == MODEL_UNSURE)
        return MODEL_UNSURE;
    return when == MODEL_COME ? MODEL_NOT_YET : MODEL_COME;
}

static const char *in_range(struct model *model, const char *what, int64_t told, struct range range)
{
    if (told >= range.least && told <= range.most)
        return NULL;
    return model_wrong(model, "%s is %lld, should be %lld .. %lld", what, (long long)told,
                       (long long)range.least, (long long)range.most);
}

const char *model_counted(struct model *model, struct model_span span, const pawl_stats *stats)
{
    struct range delayed = {0, 0};
    struct range expired = {0, 0};
    int64_t states[4] = {0};
    bool is_paused = false;
    for (size_t i = 0; i < model->queues_count; i++) {
        if (strcmp(model->queues[i].name, stats->queue) == 0)
            is_paused = model->queues[i].is_paused;
    }
    for (size_t i = 0; i < model->jobs_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (!job->is_known || strcmp(model->queues[job->queue].name, stats->queue) != 0)
            continue;
        states[job->state]++;
        if (job->state == PAWL_READY)
            count(&delayed, opposite(model_has_come(span, job->due)));
        if (job->state == PAWL_IN_FLIGHT)
            count(&expired, opposite(model_is_leased(span, job)));
    }
    MODEL_TRY(model_same(model, "ready", stats->ready, states[PAWL_READY]));
    MODEL_TRY(model_same(model, "in_flight", stats->in_flight, states[PAWL_IN_FLIGHT]));
    MODEL_TRY(model_same(model, "succeeded", stats->succeeded, states[PAWL_SUCCEEDED]));
    MODEL_TRY(model_same(model, "failed", stats->failed, states[PAWL_FAILED]));
    MODEL_TRY(in_range(model, "delayed", stats->delayed, delayed));
    MODEL_TRY(in_range(model, "expired", stats->expired, expired));
    return model_same(model, "is_paused", stats->is_paused, is_paused);
}
