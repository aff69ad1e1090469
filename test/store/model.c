/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * model.c - the naive store: what each verb that changes jobs must answer, and leaves behind.
 * Owns:  the rules of the requirements, written a second time, from the requirements alone.
 * Never: calls a store; includes the product's rules (core/job.h), which it is there to doubt.
 */
#include "store/model_inside.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- time, and complaining */

enum model_when model_has_come(struct model_span span, struct model_instant at)
{
    if (span.from_us >= at.high_us)
        return MODEL_COME;
    return span.to_us < at.low_us ? MODEL_NOT_YET : MODEL_UNSURE;
}

enum model_when model_is_leased(struct model_span span, const struct model_job *job)
{
    if (job->state != PAWL_IN_FLIGHT)
        return MODEL_NOT_YET;
    enum model_when expired = model_has_come(span, job->expires);
    if (expired == MODEL_UNSURE)
        return MODEL_UNSURE;
    return expired == MODEL_COME ? MODEL_NOT_YET : MODEL_COME;
}

struct model_instant model_after(struct model_span span, int64_t ms)
{
    return (struct model_instant){span.from_us + ms * 1000, span.to_us + ms * 1000};
}

/* Some time in the past: what is due at once. */
static struct model_instant by_now(struct model_span span)
{
    return (struct model_instant){1, span.to_us};
}

static struct model_instant within(struct model_span span, int64_t most_ms)
{
    return (struct model_instant){span.from_us, span.to_us + most_ms * 1000};
}

static const struct model_instant never = {0, 0};

static bool is_set(struct model_instant at)
{
    return at.high_us != 0;
}

const char *model_wrong(struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(model->complaint, sizeof(model->complaint), format, args); /* cut: still told */
    va_end(args);
    return model->complaint;
}

const char *model_same(struct model *model, const char *what, int64_t told, int64_t expected)
{
    if (told == expected)
        return NULL;
    return model_wrong(model, "%s is %lld, should be %lld", what, (long long)told,
                       (long long)expected);
}

const char *model_same_code(struct model *model, pawl_code told, pawl_code expected)
{
    if (told == expected)
        return NULL;
    return model_wrong(model, "the verdict is %s, should be %s", pawl_code_name(told),
                       pawl_code_name(expected));
}

const char *model_learn(struct model *model, const char *what, pawl_wall told,
                        struct model_instant *known)
{
    int64_t at_us = told.us == 0 ? 0 : told.us + model->shift_us;
    if (at_us < known->low_us || at_us > known->high_us)
        return model_wrong(model, "%s is at %lld us, should be in %lld .. %lld", what,
                           (long long)at_us, (long long)known->low_us, (long long)known->high_us);
    *known = (struct model_instant){at_us, at_us};
    return NULL;
}

/* ---------------------------------------------------------------- jobs */

struct model_job *model_find(struct model *model, const pawl_id *id)
{
    for (size_t i = 0; i < model->jobs_count; i++) {
        if (pawl_id_compare(&model->jobs[i].id, id) == 0)
            return &model->jobs[i];
    }
    return NULL;
}

static struct model_job *find_known(struct model *model, const pawl_id *id)
{
    struct model_job *job = model_find(model, id);
    return job != NULL && job->is_known ? job : NULL;
}

bool model_is_terminal(const struct model_job *job)
{
    return job->state == PAWL_SUCCEEDED || job->state == PAWL_FAILED;
}

static const pawl_queue_settings *settings_of(const struct model *model,
                                              const struct model_job *job)
{
    return &model->queues[job->queue].settings;
}

static int64_t timeout_of(const struct model *model, const struct model_job *job, int64_t lease_ms)
{
    const pawl_queue_settings *settings = settings_of(model, job);
    if (job->timeout_ms != PAWL_DEFAULT)
        return job->timeout_ms;
    if (settings->execution_timeout_ms != PAWL_DEFAULT)
        return settings->execution_timeout_ms;
    return 3 * lease_ms;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The live job that holds a dedupe key of the queue, within the ordering key or none. */
static const struct model_job *holder_of_key(const struct model *model, size_t queue,
                                             const char *ordering_key, const char *key)
{
    for (size_t i = 0; i < model->jobs_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->is_known && !model_is_terminal(job) && job->queue == queue &&
            is_same_text(job->ordering_key, ordering_key) && job->dedupe_key != NULL &&
            strcmp(job->dedupe_key, key) == 0)
            return job;
    }
    return NULL;
}

/* Whether `other` stands before the job in the order of their key. */
static bool stands_before(const struct model_job *other, const struct model_job *job)
{
    return other->is_known && !model_is_terminal(other) && job->ordering_key != NULL &&
           other->queue == job->queue && is_same_text(other->ordering_key, job->ordering_key) &&
           other->arrival < job->arrival;
}

static bool is_behind_another(const struct model *model, const struct model_job *job)
{
    for (size_t i = 0; i < model->jobs_count; i++)
        if (stands_before(&model->jobs[i], job))
            return true;
    return false;
}

static size_t queue_named(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->queues_count; i++) {
        if (strcmp(model->queues[i].name, name) == 0)
            return i;
    }
    assert(false && "the walk uses the model's queues only");
    return 0;
}

/* ---------------------------------------------------------------- ends */

struct end {
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
};

/* Write the row, of the lease that ends here if there is one, and forget the lease. */
static struct model_row *write_row(struct model_job *job, struct end end)
{
    assert(job->rows_count < MODEL_ROWS_MAX);
    struct model_row *row = &job->rows[job->rows_count++];
    *row = (struct model_row){
        .outcome = end.outcome, .reason = end.reason, .ended_by = end.ended_by};
    if (job->state == PAWL_IN_FLIGHT) {
        row->lease_version = job->lease_version;
        memcpy(row->worker, job->worker, sizeof(row->worker));
        row->token = job->token;
    }
    memset(job->worker, 0, sizeof(job->worker));
    memset(&job->token, 0, sizeof(job->token));
    job->claimed = job->expires = job->run_until = job->unstarted_until = never;
    job->is_started = false;
    job->is_cancel_asked = false;
    job->fence = 0;
    return row;
}

static struct model_row *finish(struct model_job *job, struct end end, struct model_span span)
{
    struct model_row *row = write_row(job, end);
    job->state = end.outcome == PAWL_DISPATCHED ? PAWL_SUCCEEDED : PAWL_FAILED;
    job->finished = model_after(span, 0);
    return row;
}

/* Back to Ready after an attempt; it has started, so its start-by deadline has been met. */
static struct model_row *put_back(struct model_job *job, struct end end, struct model_instant due)
{
    struct model_row *row = write_row(job, end);
    job->state = PAWL_READY;
    job->due = due;
    job->start_by = never;
    job->place = MODEL_ANY_PLACE;
    return row;
}

void model_expire(struct model *model, struct model_job *job, struct model_span span)
{
    const pawl_queue_settings *settings = settings_of(model, job);
    job->lost_leases++;
    job->lost_in_a_row++;
    if (job->is_cancel_asked) {
        finish(job, (struct end){PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_EXPIRY},
               span);
    } else if (job->lost_leases >= settings->max_lost_leases) {
        finish(job, (struct end){PAWL_FAILED_FINAL, PAWL_REASON_POISON, PAWL_ENDED_BY_EXPIRY},
               span);
    } else {
        bool is_first = job->lost_in_a_row == 1;
        put_back(job, (struct end){PAWL_ZOMBIE_REQUEUE, PAWL_REASON_EXPIRED, PAWL_ENDED_BY_EXPIRY},
                 is_first ? by_now(span) : within(span, settings->backoff_max_ms));
        if (is_first)
            job->place = MODEL_CAME_BACK;
    }
}

void model_miss(struct model_job *job, struct model_span span)
{
    finish(job, (struct end){PAWL_FAILED_FINAL, PAWL_REASON_START_BY, PAWL_ENDED_BY_DEADLINE},
           span);
}

/* ---------------------------------------------------------------- enqueue */

static struct model_job *slot_for(struct model *model, const pawl_id *id)
{
    struct model_job *job = model_find(model, id);
    if (job != NULL)
        return job;
    assert(model->jobs_count < MODEL_JOBS_MAX);
    return &model->jobs[model->jobs_count++];
}

/* The last one of its queue, and of its key. Where it stands once it has waited behind others of
 * its key is the store's to choose. */
static void arrive(struct model *model, struct model_job *job, enum model_place place)
{
    job->arrival = model->arrivals++;
    job->place = is_behind_another(model, job) ? MODEL_ANY_PLACE : place;
}

static void begin(struct model *model, struct model_span span, const pawl_enqueue_row *row,
                  const pawl_id *id)
{
    struct model_job *job = slot_for(model, id);
    memset(job, 0, sizeof(*job));
    job->is_known = true;
    job->id = *id;
    job->queue = queue_named(model, row->queue);
    job->priority = row->priority;
    job->dedupe_key = row->dedupe_key;
    job->ordering_key = row->ordering_key;
    job->timeout_ms = row->timeout_ms;
    job->max_retries = row->max_retries != PAWL_DEFAULT ? row->max_retries
                                                        : settings_of(model, job)->max_retries;
    job->state = PAWL_READY;
    job->due = model_after(span, row->delay_ms);
    if (row->start_within_ms != PAWL_DEFAULT)
        job->start_by = model_after(span, row->start_within_ms);
    arrive(model, job, row->delay_ms > 0 ? MODEL_TIME_HAS_COME : MODEL_ARRIVED);
}

const char *model_enqueued(struct model *model, struct model_span span, const pawl_enqueue_row *row,
                           const pawl_enqueued *answer)
{
    if (find_known(model, &row->id) != NULL) {
        MODEL_TRY(model_same_code(model, answer->code, PAWL_EXISTS));
        return pawl_id_compare(&answer->id, &row->id) == 0 ? NULL
                                                           : model_wrong(model, "another id");
    }
    const struct model_job *holder = row->dedupe_key != NULL
                                         ? holder_of_key(model, queue_named(model, row->queue),
                                                         row->ordering_key, row->dedupe_key)
                                         : NULL;
    if (holder != NULL) {
        MODEL_TRY(model_same_code(model, answer->code, PAWL_DUPLICATE));
        return pawl_id_compare(&answer->id, &holder->id) == 0
                   ? NULL
                   : model_wrong(model, "another holder of the key");
    }
    MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
    if (!pawl_id_is_nil(&row->id) && pawl_id_compare(&answer->id, &row->id) != 0)
        return model_wrong(model, "another id");
    begin(model, span, row, &answer->id);
    return NULL;
}

/* ---------------------------------------------------------------- leases shown */

static bool is_same_token(const pawl_token *a, const pawl_token *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Whether what is shown is the job's valid lease; where time leaves it open, `told` decides. */
static bool is_holder(struct model_span span, const struct model_job *job, const char *worker,
                      const pawl_lease *lease, bool told)
{
    if (job->state != PAWL_IN_FLIGHT || strcmp(job->worker, worker) != 0 ||
        !is_same_token(&job->token, &lease->token) || job->lease_version != lease->version)
        return false;
    enum model_when leased = model_is_leased(span, job);
    return leased == MODEL_UNSURE ? told : leased == MODEL_COME;
}

const char *model_renewed(struct model *model, struct model_span span, const char *worker,
                          const pawl_renew_row *row, const pawl_renewed *answer)
{
    struct model_job *job = find_known(model, &row->lease.job);
    if (job == NULL)
        return model_same_code(model, answer->code, PAWL_GONE);
    if (!is_holder(span, job, worker, &row->lease, answer->code != PAWL_STALE))
        return model_same_code(model, answer->code, PAWL_STALE);
    if (job->is_cancel_asked)
        return model_same_code(model, answer->code, PAWL_CANCELLED);
    bool is_waiting = row->is_unstarted && !job->is_started;
    enum model_when timed_out = model_has_come(span,
                                               is_waiting ? job->unstarted_until : job->run_until);
    if (timed_out == MODEL_COME || (timed_out == MODEL_UNSURE && answer->code == PAWL_TIMEOUT))
        return model_same_code(model, answer->code, PAWL_TIMEOUT);
    MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
    if (is_waiting)
        job->run_until = model_after(span, job->run_timeout_ms);
    job->is_started = !is_waiting;
    int64_t lease_ms = row->lease_ms != PAWL_DEFAULT ? row->lease_ms
                                                     : settings_of(model, job)->lease_ms;
    struct model_instant extended = model_after(span, lease_ms);
    if (extended.low_us > job->expires.low_us)
        job->expires.low_us = extended.low_us;
    if (extended.high_us > job->expires.high_us)
        job->expires.high_us = extended.high_us;
    return model_learn(model, "the renewed expiry", answer->expires_at, &job->expires);
}

const char *model_released(struct model *model, struct model_span span, const char *worker,
                           const pawl_lease *lease, pawl_code answer)
{
    struct model_job *job = find_known(model, &lease->job);
    if (job == NULL)
        return model_same_code(model, answer, PAWL_GONE);
    if (!is_holder(span, job, worker, lease, answer == PAWL_OK))
        return model_same_code(model, answer, PAWL_STALE);
    MODEL_TRY(model_same_code(model, answer, PAWL_OK));
    const struct end cancelled = {PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_HOLDER};
    if (job->is_cancel_asked) {
        finish(job, cancelled, span);
        return NULL;
    }
    struct model_instant start_by = job->start_by;
    put_back(job, cancelled, by_now(span));
    job->rows_count--; /* no row: it was not tried */
    job->start_by = start_by;
    job->place = MODEL_CAME_BACK;
    return NULL;
}

/* ---------------------------------------------------------------- settle */

static int64_t ceiling_ms(const pawl_queue_settings *settings, int64_t retries)
{
    int64_t ceiling = settings->backoff_base_ms;
    for (int64_t i = 0; i < retries && ceiling < settings->backoff_max_ms; i++)
        ceiling *= 2;
    return ceiling < settings->backoff_max_ms ? ceiling : settings->backoff_max_ms;
}

static struct model_row *settle_retry(struct model *model, struct model_job *job,
                                      struct model_span span, const pawl_settle_row *row)
{
    if (job->retries >= job->max_retries)
        return finish(job,
                      (struct end){PAWL_FAILED_FINAL, PAWL_REASON_EXHAUSTED, PAWL_ENDED_BY_HOLDER},
                      span);
    struct model_instant due = row->delay_ms != PAWL_DEFAULT
                                   ? model_after(span, row->delay_ms)
                                   : within(span,
                                            ceiling_ms(settings_of(model, job), job->retries));
    job->retries++;
    pawl_reason reason = row->reason == PAWL_REASON_TIMEOUT ? PAWL_REASON_TIMEOUT
                                                            : PAWL_REASON_ERROR;
    return put_back(job, (struct end){PAWL_RETRYABLE, reason, PAWL_ENDED_BY_HOLDER}, due);
}

static struct model_row *apply_settle(struct model *model, struct model_job *job,
                                      struct model_span span, const pawl_settle_row *row)
{
    bool goes_on = row->action == PAWL_RETRY || row->action == PAWL_SNOOZE;
    job->lost_in_a_row = 0;
    if (row->action == PAWL_SUCCEED)
        return finish(job, (struct end){PAWL_DISPATCHED, PAWL_REASON_NONE, PAWL_ENDED_BY_HOLDER},
                      span);
    if (job->is_cancel_asked && (goes_on || row->reason == PAWL_REASON_CANCELLED))
        return finish(job,
                      (struct end){PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_HOLDER},
                      span);
    if (row->action == PAWL_FAIL)
        return finish(job, (struct end){PAWL_FAILED_FINAL, PAWL_REASON_FATAL, PAWL_ENDED_BY_HOLDER},
                      span);
    if (row->action == PAWL_RETRY)
        return settle_retry(model, job, span, row);
    pawl_reason reason = row->reason == PAWL_REASON_SHUTDOWN ? PAWL_REASON_SHUTDOWN
                                                             : PAWL_REASON_SNOOZE;
    return put_back(job, (struct end){PAWL_RETRYABLE, reason, PAWL_ENDED_BY_HOLDER},
                    model_after(span, row->delay_ms));
}

static pawl_state state_by(const struct model_row *row)
{
    if (row->outcome == PAWL_DISPATCHED)
        return PAWL_SUCCEEDED;
    return row->outcome == PAWL_FAILED_FINAL ? PAWL_FAILED : PAWL_READY;
}

/* A settle without the lease: its own repeat, or stale. */
static const char *check_replay(struct model *model, const struct model_job *job,
                                const char *worker, const pawl_settle_row *row,
                                const pawl_settled *answer)
{
    for (size_t i = 0; i < job->rows_count; i++) {
        const struct model_row *found = &job->rows[i];
        if (found->lease_version != row->lease.version || found->lease_version == 0 ||
            found->ended_by != PAWL_ENDED_BY_HOLDER || strcmp(found->worker, worker) != 0 ||
            !is_same_token(&found->token, &row->lease.token))
            continue;
        /* A ledger does not tell by which action a marked job was ended. */
        bool is_cancelled = found->reason == PAWL_REASON_CANCELLED && row->action != PAWL_SUCCEED;
        bool is_same = found->is_settle && found->action == row->action;
        bool is_open = is_cancelled && !is_same;
        if (is_open && answer->code == PAWL_STALE)
            return NULL;
        if (!is_same && !is_open)
            break;
        MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
        MODEL_TRY(model_same(model, "the repeat's state", answer->state, state_by(found)));
        MODEL_TRY(model_same(model, "the repeat's due time", answer->due_at.us, 0));
        return model_same(model, "the repeat's row", answer->attempt_no, (int64_t)i + 1);
    }
    return model_same_code(model, answer->code, PAWL_STALE);
}

const char *model_settled(struct model *model, struct model_span span, const char *worker,
                          const pawl_settle_row *row, const pawl_settled *answer)
{
    struct model_job *job = find_known(model, &row->lease.job);
    if (job == NULL)
        return model_same_code(model, answer->code, PAWL_GONE);
    if (!is_holder(span, job, worker, &row->lease, answer->code == PAWL_OK))
        return check_replay(model, job, worker, row, answer);

    MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
    struct model_row *written = apply_settle(model, job, span, row);
    written->is_settle = true;
    written->action = row->action;
    MODEL_TRY(model_same(model, "the settled state", answer->state, job->state));
    MODEL_TRY(model_same(model, "the settle's row", answer->attempt_no, (int64_t)job->rows_count));
    if (job->state != PAWL_READY)
        return model_same(model, "the due time of an ended job", answer->due_at.us, 0);
    MODEL_TRY(model_learn(model, "the due time", answer->due_at, &job->due));
    if (model_has_come(span, job->due) == MODEL_NOT_YET)
        job->place = MODEL_TIME_HAS_COME;
    return NULL;
}

/* ---------------------------------------------------------------- operating */

const char *model_cancelled(struct model *model, struct model_span span, const pawl_id *id,
                            const pawl_changed *answer)
{
    struct model_job *job = find_known(model, id);
    if (job == NULL)
        return model_same_code(model, answer->code, PAWL_GONE);
    if (job->state == PAWL_SUCCEEDED)
        return model_same_code(model, answer->code, PAWL_ALREADY_SUCCEEDED);
    if (job->state == PAWL_FAILED && job->rows[job->rows_count - 1].reason != PAWL_REASON_CANCELLED)
        return model_same_code(model, answer->code, PAWL_ALREADY_FAILED);
    MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
    if (job->state == PAWL_IN_FLIGHT)
        job->is_cancel_asked = true;
    else if (job->state == PAWL_READY)
        finish(job, (struct end){PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_OPERATOR},
               span);
    return model_same(model, "the cancelled job's state", answer->state, job->state);
}

const char *model_redriven(struct model *model, struct model_span span, const pawl_id *id,
                           const pawl_changed *answer)
{
    struct model_job *job = find_known(model, id);
    if (job == NULL || (job->state == PAWL_FAILED && job->is_discarded))
        return model_same_code(model, answer->code, PAWL_GONE);
    if (job->state != PAWL_FAILED)
        return model_same_code(model, answer->code,
                               job->state == PAWL_SUCCEEDED ? PAWL_ALREADY_SUCCEEDED
                                                            : PAWL_NOT_FAILED);
    if (job->dedupe_key != NULL &&
        holder_of_key(model, job->queue, job->ordering_key, job->dedupe_key) != NULL)
        return model_same_code(model, answer->code, PAWL_DUPLICATE);
    MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
    job->state = PAWL_READY;
    job->retries = job->lost_leases = job->lost_in_a_row = 0;
    job->due = model_after(span, 0);
    job->start_by = job->finished = never;
    arrive(model, job, MODEL_ARRIVED);
    return model_same(model, "the redriven job's state", answer->state, PAWL_READY);
}

const char *model_discarded(struct model *model, const pawl_id *id, const pawl_changed *answer)
{
    struct model_job *job = find_known(model, id);
    if (job == NULL)
        return model_same_code(model, answer->code, PAWL_GONE);
    if (job->state != PAWL_FAILED)
        return model_same_code(model, answer->code,
                               job->state == PAWL_SUCCEEDED ? PAWL_ALREADY_SUCCEEDED
                                                            : PAWL_NOT_FAILED);
    MODEL_TRY(model_same_code(model, answer->code, PAWL_OK));
    job->is_discarded = true;
    return model_same(model, "the discarded job's state", answer->state, PAWL_FAILED);
}

const char *model_pruned(struct model *model, struct model_span span, size_t count)
{
    size_t least = 0;
    size_t most = 0;
    for (size_t i = 0; i < model->jobs_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (!job->is_known || !model_is_terminal(job))
            continue;
        const pawl_queue_settings *settings = settings_of(model, job);
        int64_t keep_ms = job->state == PAWL_SUCCEEDED ? settings->keep_succeeded_ms
                                                       : settings->keep_failed_ms;
        if (keep_ms == PAWL_FOREVER)
            continue;
        /* Older than the retention: at the very millisecond both are right. */
        struct model_instant end = {job->finished.low_us + keep_ms * 1000,
                                    job->finished.high_us + keep_ms * 1000 + 1000};
        enum model_when old = model_has_come(span, end);
        job->must_be_pruned = old == MODEL_COME;
        job->may_be_pruned = old == MODEL_UNSURE;
        least += old == MODEL_COME;
        most += old != MODEL_NOT_YET;
    }
    if (count < least || count > most)
        return model_wrong(model, "%zu were pruned, should be %zu .. %zu", count, least, most);
    return NULL;
}

/* ---------------------------------------------------------------- reap */

static const char *check_reaped(struct model *model, struct model_span span, const pawl_reaped *row)
{
    struct model_job *job = find_known(model, &row->job);
    if (job == NULL)
        return model_wrong(model, "a job was recovered that nobody knows");
    if (strcmp(row->queue, model->queues[job->queue].name) != 0)
        return model_wrong(model, "recovered from another queue: %s", row->queue);
    if (job->state == PAWL_READY && is_set(job->start_by) &&
        model_has_come(span, job->start_by) != MODEL_NOT_YET) {
        if (row->worker[0] != '\0')
            return model_wrong(model, "a missed job was held by %s", row->worker);
        model_miss(job, span);
    } else {
        if (job->state != PAWL_IN_FLIGHT || model_is_leased(span, job) == MODEL_COME)
            return model_wrong(model, "a job was recovered that had not expired");
        if (strcmp(row->worker, job->worker) != 0)
            return model_wrong(model, "recovered from %s, held by %s", row->worker, job->worker);
        MODEL_TRY(model_same(model, "the lost version", row->lease_version, job->lease_version));
        model_expire(model, job, span);
    }
    MODEL_TRY(model_same(model, "the recovered state", row->state, job->state));
    MODEL_TRY(model_same(model, "the reason of recovery", row->reason,
                         job->rows[job->rows_count - 1].reason));
    if (job->state == PAWL_READY)
        return model_learn(model, "the recovered job's due time", row->due_at, &job->due);
    return NULL;
}

const char *model_reaped(struct model *model, struct model_span span, size_t rows_max,
                         const pawl_reaped *rows, size_t rows_count)
{
    int64_t latest_us = INT64_MIN;
    for (size_t i = 0; i < rows_count; i++) {
        const struct model_job *job = model_find(model, &rows[i].job);
        bool is_expiry = job != NULL && job->state == PAWL_IN_FLIGHT;
        int64_t expired_us = is_expiry ? job->expires.low_us : latest_us;
        if (model->shards == 1 && expired_us < latest_us)
            return model_wrong(model, "recovered out of order");
        latest_us = expired_us;
        MODEL_TRY(check_reaped(model, span, &rows[i]));
    }
    if (rows_count == rows_max)
        return NULL;
    for (size_t i = 0; i < model->jobs_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (!job->is_known)
            continue;
        if ((job->state == PAWL_IN_FLIGHT && model_is_leased(span, job) == MODEL_NOT_YET) ||
            (job->state == PAWL_READY && is_set(job->start_by) &&
             model_has_come(span, job->start_by) == MODEL_COME))
            return model_wrong(model, "job %zu has expired and was not recovered", i);
    }
    return NULL;
}

/* ---------------------------------------------------------------- claim */

/* Whether a claim may end the job on its way: poison, a cancellation, or a missed deadline. */
static bool may_end(const struct model *model, struct model_span span, const struct model_job *job)
{
    if (job->state == PAWL_READY)
        return is_set(job->start_by) && model_has_come(span, job->start_by) != MODEL_NOT_YET;
    bool is_last = job->lost_leases + 1 >= settings_of(model, job)->max_lost_leases;
    return model_is_leased(span, job) != MODEL_COME && (is_last || job->is_cancel_asked);
}

/* RES-7: whether the job is the first of its key. Whom the claim itself lets through, it may take.
 */
static enum model_when is_first_of_key(const struct model *model, struct model_span span,
                                       const struct model_job *job)
{
    enum model_when first = MODEL_COME;
    for (size_t i = 0; i < model->jobs_count; i++) {
        if (!stands_before(&model->jobs[i], job))
            continue;
        if (!may_end(model, span, &model->jobs[i]))
            return MODEL_NOT_YET;
        first = MODEL_UNSURE;
    }
    return first;
}

static enum model_when is_alone_claimable(const struct model *model, struct model_span span,
                                          const struct model_job *job);

/* Whether a claim of its queue could take the job. */
static enum model_when is_claimable(const struct model *model, struct model_span span,
                                    const struct model_job *job)
{
    enum model_when alone = is_alone_claimable(model, span, job);
    if (alone == MODEL_NOT_YET)
        return MODEL_NOT_YET;
    enum model_when first = is_first_of_key(model, span, job);
    return first == MODEL_COME ? alone : first;
}

/* The same, as if it had no key. */
static enum model_when is_alone_claimable(const struct model *model, struct model_span span,
                                          const struct model_job *job)
{
    if (!job->is_known || model_is_terminal(job) || model->queues[job->queue].is_paused)
        return MODEL_NOT_YET;
    if (job->state == PAWL_READY) {
        enum model_when due = model_has_come(span, job->due);
        enum model_when missed = is_set(job->start_by) ? model_has_come(span, job->start_by)
                                                       : MODEL_NOT_YET;
        if (due == MODEL_NOT_YET || missed == MODEL_COME)
            return MODEL_NOT_YET;
        return due == MODEL_COME && missed == MODEL_NOT_YET ? MODEL_COME : MODEL_UNSURE;
    }
    enum model_when leased = model_is_leased(span, job);
    bool is_last = job->lost_leases + 1 >= settings_of(model, job)->max_lost_leases;
    if (leased == MODEL_COME || is_last || job->is_cancel_asked)
        return MODEL_NOT_YET;
    /* From its second loss in a row on, it waits for as long as the store draws. */
    return leased == MODEL_NOT_YET && job->lost_in_a_row == 0 ? MODEL_COME : MODEL_UNSURE;
}

/* Whether, both being Ready and due, `a` has to be given out before `b`. */
static bool precedes(const struct model_job *a, const struct model_job *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->place == MODEL_ANY_PLACE || b->place == MODEL_ANY_PLACE)
        return false;
    if (a->place != b->place)
        return a->place < b->place;
    return a->place == MODEL_ARRIVED && a->arrival < b->arrival;
}

/* ---- the bound on what is in flight */

static int64_t shard_of(const struct model *model, const pawl_id *id)
{
    return ((id->bytes[6] & 0x0f) << 8 | id->bytes[7]) % model->shards;
}

/* How many more a shard of the queue may have in flight: at least, and at most. An expired lease
 * makes room when it is recovered, as the claim may do. */
struct room {
    int64_t least;
    int64_t most;
};

static struct room room_in(const struct model *model, struct model_span span, size_t queue,
                           int64_t shard)
{
    int64_t bound = model->queues[queue].settings.max_in_flight;
    if (bound == 0)
        return (struct room){INT64_MAX, INT64_MAX};
    int64_t share = bound / model->shards + (shard < bound % model->shards ? 1 : 0);
    struct room room = {share, share};
    for (size_t i = 0; i < model->jobs_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (!job->is_known || job->state != PAWL_IN_FLIGHT || job->queue != queue ||
            shard_of(model, &job->id) != shard)
            continue;
        enum model_when leased = model_is_leased(span, job);
        room.least -= leased != MODEL_NOT_YET;
        room.most -= leased == MODEL_COME;
    }
    return room;
}

/* What was claimable before one line of a claim, and what it took. */
struct line_view {
    enum model_when claimable[MODEL_JOBS_MAX];
    bool is_taken[MODEL_JOBS_MAX];
    size_t order[MODEL_JOBS_MAX]; /* job indexes as taken */
    size_t taken;
};

static const char *check_order(struct model *model, const struct line_view *view, size_t queue)
{
    if (model->shards > 1)
        return NULL;
    for (size_t i = 0; i < view->taken; i++) {
        const struct model_job *taken = &model->jobs[view->order[i]];
        if (taken->state != PAWL_READY)
            continue; /* it came by its expiry: the claim may find that at any point */
        for (size_t j = 0; j < model->jobs_count; j++) {
            const struct model_job *other = &model->jobs[j];
            bool is_waiting = other->state == PAWL_READY && other->queue == queue &&
                              view->claimable[j] == MODEL_COME && !view->is_taken[j];
            if (is_waiting && precedes(other, taken))
                return model_wrong(model, "job %zu was passed over", j);
        }
        for (size_t j = i + 1; j < view->taken; j++) {
            const struct model_job *later = &model->jobs[view->order[j]];
            if (later->state == PAWL_READY && precedes(later, taken))
                return model_wrong(model, "job %zu came too late", view->order[j]);
        }
    }
    return NULL;
}

static bool has_seen_token(struct model *model, const pawl_token *token)
{
    for (size_t i = 0; i < model->tokens_count; i++) {
        if (is_same_token(&model->tokens[i], token))
            return true;
    }
    assert(model->tokens_count < MODEL_TOKENS_MAX);
    model->tokens[model->tokens_count++] = *token;
    return false;
}

/* One sequence for all keys: it rises with every claim of jobs that have one. Those of one call,
 * which are of different keys, may share a number, or any may have drawn first. */
static const char *learn_fence(struct model *model, struct model_job *job, int64_t fence)
{
    job->fence = fence;
    if (job->ordering_key == NULL)
        return model_same(model, "the fence", fence, 0);
    if (fence <= model->fence_before)
        return model_wrong(model, "the fence is %lld, and %lld was given before", (long long)fence,
                           (long long)model->fence_before);
    model->last_fence = fence > model->last_fence ? fence : model->last_fence;
    return NULL;
}

static const char *take_over(struct model *model, struct model_span span, struct model_job *job,
                             const pawl_claim_args *args, const pawl_claim_line *line,
                             const pawl_job *told)
{
    if (job->state == PAWL_IN_FLIGHT)
        model_expire(model, job, span);
    if (has_seen_token(model, &told->token))
        return model_wrong(model, "the token was given before");
    int64_t lease_ms = line->lease_ms != PAWL_DEFAULT ? line->lease_ms
                                                      : settings_of(model, job)->lease_ms;
    int64_t timeout_ms = timeout_of(model, job, lease_ms);
    job->run_timeout_ms = timeout_ms;
    job->state = PAWL_IN_FLIGHT;
    job->lease_version++;
    job->token = told->token;
    MODEL_TRY(learn_fence(model, job, told->fence));
    (void)snprintf(job->worker, sizeof(job->worker), "%s", args->worker); /* checked names fit */
    job->claimed = model_after(span, 0);
    job->is_cancel_asked = false;
    MODEL_TRY(model_same(model, "the state", told->state, PAWL_IN_FLIGHT));
    MODEL_TRY(model_same(model, "the version", told->lease_version, job->lease_version));
    MODEL_TRY(model_same(model, "the lease", told->lease_ms, lease_ms));
    MODEL_TRY(model_same(model, "the timeout", told->timeout_ms, timeout_ms));
    MODEL_TRY(model_learn(model, "the claim", told->claimed_at, &job->claimed));
    job->expires = (struct model_instant){job->claimed.low_us + lease_ms * 1000,
                                          job->claimed.low_us + lease_ms * 1000};
    job->run_until = (struct model_instant){job->claimed.low_us + timeout_ms * 1000,
                                            job->claimed.low_us + timeout_ms * 1000};
    job->unstarted_until = (struct model_instant){job->run_until.low_us + 2 * lease_ms * 1000,
                                                  job->run_until.low_us + 2 * lease_ms * 1000};
    job->is_started = false;
    MODEL_TRY(model_learn(model, "the expiry", told->expires_at, &job->expires));
    return model_learn(model, "the timeout's end", told->run_until, &job->run_until);
}

/* What is left of each shard's share. No more was taken than there was room for. */
static const char *check_bound(struct model *model, struct model_span span,
                               const struct line_view *view, size_t queue,
                               struct room left[MODEL_SHARDS_MAX])
{
    for (int64_t shard = 0; shard < model->shards; shard++) {
        int64_t taken = 0;
        for (size_t i = 0; i < view->taken; i++)
            taken += shard_of(model, &model->jobs[view->order[i]].id) == shard;
        left[shard] = room_in(model, span, queue, shard);
        if (taken > 0 && taken > left[shard].most)
            return model_wrong(model, "%lld were taken, and there was room for %lld",
                               (long long)taken, (long long)left[shard].most);
        left[shard].least -= taken;
    }
    return NULL;
}

/* One line of a claim: how much of the answer is its part, and whether that is right. */
static const char *check_line(struct model *model, struct model_span span,
                              const struct model_claim *claim, const pawl_claim_line *line,
                              size_t *answered)
{
    struct line_view view = {.taken = 0};
    size_t queue = queue_named(model, line->queue);
    size_t room = claim->jobs_max - *answered;
    room = (size_t)line->jobs_max < room ? (size_t)line->jobs_max : room;
    for (size_t i = 0; i < model->jobs_count; i++)
        view.claimable[i] = is_claimable(model, span, &model->jobs[i]);
    size_t first = *answered;
    while (*answered < claim->jobs_count &&
           strcmp(claim->jobs[*answered].queue, line->queue) == 0 && view.taken < room) {
        struct model_job *job = find_known(model, &claim->jobs[*answered].id);
        if (job == NULL || job->queue != queue)
            return model_wrong(model, "a job was claimed that is not there");
        size_t index = (size_t)(job - model->jobs);
        if (view.claimable[index] == MODEL_NOT_YET || view.is_taken[index])
            return model_wrong(model, "job %zu was claimed and is not claimable", index);
        view.is_taken[index] = true;
        view.order[view.taken++] = index;
        (*answered)++;
    }
    MODEL_TRY(check_order(model, &view, queue));
    struct room left[MODEL_SHARDS_MAX];
    MODEL_TRY(check_bound(model, span, &view, queue, left));
    for (size_t i = 0; i < model->jobs_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->queue != queue || view.is_taken[i])
            continue;
        bool has_room = view.taken < room && left[shard_of(model, &job->id)].least > 0;
        if (has_room && view.claimable[i] == MODEL_COME)
            return model_wrong(model, "job %zu was claimable and was not claimed", i);
        job->may_be_recovered = true; /* the next look tells */
        job->when = span;
    }
    for (size_t i = 0; i < view.taken; i++)
        MODEL_TRY(take_over(model, span, &model->jobs[view.order[i]], claim->args, line,
                            &claim->jobs[first + i]));
    return NULL;
}

const char *model_claimed(struct model *model, struct model_span span,
                          const struct model_claim *claim)
{
    size_t answered = 0;
    model->fence_before = model->last_fence;
    for (size_t i = 0; i < claim->args->lines_count; i++)
        MODEL_TRY(check_line(model, span, claim, &claim->args->lines[i], &answered));
    if (answered < claim->jobs_count)
        return model_wrong(model, "more jobs were claimed than asked for, or out of line");
    return NULL;
}
