/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * act.c - makes a call on one store and writes its answer down.
 * Owns:  the form of an answer: a line for the call, a line for each row.
 * Never: chooses; compares.
 */
#include "diff/call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a verb needs to know: who asks, what, and where the answer goes. */
struct act {
    struct diff *diff;
    struct side *side;
    const struct call *call;
    FILE *out;
    pawl_err err;
};

/* ---------------------------------------------------------------- saying it */

/* Counted once, for the store that the choices rest on. */
static void cover(const struct act *act, const char *verdict)
{
    if (act->side->number == 0)
        coverage_note(act->diff->coverage, act->call->verb, verdict);
}

/* The call as a whole; true where there are rows to tell. */
static bool say_code(struct act *act, pawl_code code)
{
    if (code == PAWL_OK)
        return true;
    cover(act, pawl_code_name(code));
    (void)fprintf(act->out, "%s", pawl_code_name(code));
    if (code != PAWL_INVALID && code != PAWL_GONE)
        (void)fprintf(act->out, ": %s", act->err.text); /* it should not have happened at all */
    (void)fputc('\n', act->out);
    return false;
}

/* A call that gives rows gave this many. */
static void say_count(const struct act *act, size_t count)
{
    cover(act, count > 0 ? "OK" : "nothing");
    (void)fprintf(act->out, "%zu\n", count);
}

static void say_done(struct act *act, pawl_code code)
{
    if (!say_code(act, code))
        return;
    cover(act, "OK");
    (void)fputs("OK\n", act->out);
}

/* What is asked for: nothing where the call is to be refused. */
static size_t counted(const struct act *act, size_t count)
{
    return act->call->is_flawed ? 0 : count;
}

static const char *named(const struct act *act, const char *name)
{
    return act->call->is_flawed ? "" : name;
}

/* ---------------------------------------------------------------- producing and working */

static void act_enqueue(struct act *act)
{
    const struct call *call = act->call;
    pawl_enqueued answers[DIFF_BATCH] = {0};
    pawl_enqueue_row rows[DIFF_BATCH];
    memcpy(rows, call->rows, sizeof(rows));
    if (call->is_flawed)
        rows[call->count - 1].priority = PAWL_PRIORITY_LAST + 1;
    if (!say_code(act, pawl_enqueue(act->side->store, rows, call->count, answers, &act->err)))
        return;
    for (size_t i = 0; i < call->count; i++) {
        cover(act, pawl_code_name(answers[i].code));
        (void)fprintf(act->out, "%s %s\n", pawl_code_name(answers[i].code),
                      diff_short_id(&answers[i].id).text);
    }
}

static int by_id(const void *a, const void *b)
{
    return pawl_id_compare(&((const pawl_job *)a)->id, &((const pawl_job *)b)->id);
}

/* Put in one order what the contract leaves open: of several shards, which is asked first; and
 * where a job stands that has waited behind its key. */
static void order_jobs(const struct act *act, pawl_job *jobs, size_t count)
{
    bool is_keyed = false;
    for (size_t i = 0; i < count; i++)
        is_keyed = is_keyed || jobs[i].ordering_key[0] != '\0';
    if (act->diff->shards > 1 || is_keyed)
        qsort(jobs, count, sizeof(jobs[0]), by_id);
}

/* A fence is a number of the store's own; that it rises with each claim of its key is not. */
static const char *rising(struct act *act, const pawl_job *job)
{
    for (size_t i = 0; i < DIFF_KEYS; i++) {
        if (strcmp(job->ordering_key, diff_keys[i]) != 0)
            continue;
        int64_t *last = &act->diff->fences[act->side->number][i];
        bool is_rising = job->fence > *last;
        *last = job->fence;
        return is_rising ? "rises" : "DOES NOT RISE";
    }
    return job->fence == 0 ? "none" : "OF NO KEY";
}

static void say_jobs(struct act *act, pawl_job *jobs, size_t count)
{
    say_count(act, count);
    for (size_t i = 0; i < count; i++)
        diff_say_job(act->diff, act->side, &jobs[i], act->out);
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
}

static void act_claim(struct act *act)
{
    const struct call *call = act->call;
    size_t side = act->side->number;
    pawl_job *jobs = act->diff->grants[side];
    size_t count = 0;
    pawl_claim_args args = {.worker = named(act, call->worker),
                            .lines = call->lines,
                            .lines_count = call->count,
                            .bytes_max = call->bytes_max};
    act->diff->grants_count[side] = 0;
    if (!say_code(act, pawl_claim(act->side->store, &args, jobs, call->max, &count, &act->err)))
        return;
    order_jobs(act, jobs, count);
    say_count(act, count);
    for (size_t i = 0; i < count; i++) {
        diff_say_job(act->diff, act->side, &jobs[i], act->out);
        (void)fprintf(act->out, "  fence: %s\n", rising(act, &jobs[i]));
        free(jobs[i].payload); /* ids and tokens are still needed */
        free(jobs[i].headers);
        jobs[i].payload = NULL;
        jobs[i].headers = NULL;
    }
    act->diff->grants_count[side] = count;
}

static void act_mine(struct act *act)
{
    const struct call *call = act->call;
    pawl_job jobs[DIFF_PAGE];
    size_t count = 0;
    pawl_code code = pawl_mine(act->side->store, call->worker,
                               call->has_after ? &call->after : NULL, jobs, counted(act, call->max),
                               &count, &act->err);
    if (say_code(act, code))
        say_jobs(act, jobs, count);
}

static pawl_lease lease_of(const struct act *act, size_t i)
{
    const struct grip *grip = &act->call->grips[i];
    return (pawl_lease){grip->job, grip->tokens[act->side->number], grip->version, 0};
}

static void act_renew(struct act *act)
{
    const struct call *call = act->call;
    pawl_renew_row rows[DIFF_BATCH];
    pawl_renewed answers[DIFF_BATCH] = {0};
    for (size_t i = 0; i < call->count; i++) {
        rows[i] = call->renewals[i];
        rows[i].lease = lease_of(act, i);
    }
    if (call->is_flawed)
        rows[0].lease_ms = PAWL_LEASE_MIN_MS - 1;
    if (!say_code(
            act, pawl_renew(act->side->store, call->worker, rows, call->count, answers, &act->err)))
        return;
    for (size_t i = 0; i < call->count; i++) {
        cover(act, pawl_code_name(answers[i].code));
        (void)fputs(pawl_code_name(answers[i].code), act->out);
        if (answers[i].code == PAWL_OK) {
            (void)fprintf(act->out, " lease %" PRId64 " until ", answers[i].lease_ms);
            diff_say_time(answers[i].expires_at, act->out);
        }
        (void)fputc('\n', act->out);
    }
}

static void act_settle(struct act *act)
{
    const struct call *call = act->call;
    pawl_settle_row rows[DIFF_BATCH];
    pawl_settled answers[DIFF_BATCH] = {0};
    for (size_t i = 0; i < call->count; i++) {
        rows[i] = call->settles[i];
        rows[i].lease = lease_of(act, i);
    }
    if (!say_code(act, pawl_settle(act->side->store, named(act, call->worker), rows, call->count,
                                   answers, &act->err)))
        return;
    for (size_t i = 0; i < call->count; i++) {
        bool is_ok = answers[i].code == PAWL_OK;
        cover(act, is_ok ? pawl_state_name(answers[i].state) : pawl_code_name(answers[i].code));
        (void)fputs(pawl_code_name(answers[i].code), act->out);
        if (is_ok) {
            (void)fprintf(act->out, " %s row %" PRId64 " due ", pawl_state_name(answers[i].state),
                          answers[i].attempt_no);
            diff_say_time(answers[i].due_at, act->out);
        }
        (void)fputc('\n', act->out);
    }
}

static void act_release(struct act *act)
{
    const struct call *call = act->call;
    pawl_lease leases[DIFF_BATCH];
    pawl_code answers[DIFF_BATCH] = {PAWL_OK};
    for (size_t i = 0; i < call->count; i++)
        leases[i] = lease_of(act, i);
    if (!say_code(act, pawl_release(act->side->store, call->worker, leases,
                                    counted(act, call->count), answers, &act->err)))
        return;
    for (size_t i = 0; i < call->count; i++) {
        cover(act, pawl_code_name(answers[i]));
        (void)fprintf(act->out, "%s\n", pawl_code_name(answers[i]));
    }
}

/* ---------------------------------------------------------------- recovering */

static void act_reap(struct act *act)
{
    pawl_reaped rows[DIFF_PAGE];
    size_t count = 0;
    if (!say_code(act, pawl_reap(act->side->store, rows, counted(act, act->call->max), &count,
                                 &act->err)))
        return;
    (void)fprintf(act->out, "%zu\n", count);
    if (count == 0)
        cover(act, "nothing");
    for (size_t i = 0; i < count; i++) {
        const pawl_reaped *row = &rows[i];
        cover(act, pawl_reason_name(row->reason));
        (void)fprintf(act->out, "%s %s '%s' v%" PRId64 " %s %s overdue %" PRId64 " due ",
                      diff_short_id(&row->job).text, row->queue, row->worker, row->lease_version,
                      pawl_state_name(row->state), pawl_reason_name(row->reason), row->overdue_ms);
        diff_say_time(row->due_at, act->out);
        (void)fputc('\n', act->out);
    }
}

static void act_prune(struct act *act)
{
    size_t count = 0;
    if (say_code(act,
                 pawl_prune(act->side->store, counted(act, PAWL_BATCH_MAX), &count, &act->err)))
        say_count(act, count);
}

/* ---------------------------------------------------------------- looking */

static void act_get(struct act *act)
{
    pawl_job job = {0};
    const pawl_id *id = act->call->is_flawed ? NULL : &act->call->ids[0];
    if (!say_code(act, pawl_get(act->side->store, id, &job, &act->err)))
        return;
    cover(act, "OK");
    diff_say_job(act->diff, act->side, &job, act->out);
    pawl_job_clear(&job);
}

static void act_list(struct act *act)
{
    const struct call *call = act->call;
    pawl_job jobs[DIFF_PAGE];
    size_t count = 0;
    if (say_code(act,
                 pawl_list(act->side->store, &call->filter, call->has_after ? &call->after : NULL,
                           jobs, counted(act, call->max), &count, &act->err)))
        say_jobs(act, jobs, count);
}

static void act_attempts(struct act *act)
{
    pawl_attempt rows[DIFF_PAGE];
    size_t count = 0;
    if (!say_code(act,
                  pawl_attempts(act->side->store, &act->call->ids[0], (int64_t)act->call->count - 1,
                                rows, counted(act, act->call->max), &count, &act->err)))
        return;
    say_count(act, count);
    for (size_t i = 0; i < count; i++)
        diff_say_attempt(&rows[i], act->out);
}

static void act_leases(struct act *act)
{
    const struct call *call = act->call;
    pawl_lease_info rows[DIFF_PAGE];
    size_t count = 0;
    if (!say_code(act, pawl_leases(act->side->store, &call->filter,
                                   call->has_after ? &call->after : NULL, rows,
                                   counted(act, call->max), &count, &act->err)))
        return;
    say_count(act, count);
    for (size_t i = 0; i < count; i++)
        diff_say_lease(&rows[i], act->out);
}

static void act_worker_seen(struct act *act)
{
    pawl_worker_seen seen = act->call->seen;
    seen.name = named(act, seen.name);
    say_done(act, pawl_worker_seen_now(act->side->store, &seen, &act->err));
}

static void act_worker_ended(struct act *act)
{
    say_done(act, pawl_worker_ended(act->side->store, named(act, act->call->worker), &act->err));
}

static void act_workers(struct act *act)
{
    pawl_worker rows[DIFF_PAGE];
    size_t count = 0;
    if (!say_code(act, pawl_workers(act->side->store, act->call->after_name, rows,
                                    counted(act, act->call->max), &count, &act->err)))
        return;
    say_count(act, count);
    for (size_t i = 0; i < count; i++)
        diff_say_worker(&rows[i], act->out);
}

static void act_stats(struct act *act)
{
    pawl_stats rows[DIFF_PAGE];
    size_t count = 0;
    if (!say_code(act, pawl_queue_stats(act->side->store, act->call->after_name, rows,
                                        counted(act, act->call->max), &count, &act->err)))
        return;
    say_count(act, count);
    for (size_t i = 0; i < count; i++)
        diff_say_stats(&rows[i], act->out);
}

static void act_now(struct act *act)
{
    pawl_wall now = {0};
    if (!say_code(act, pawl_now(act->side->store, act->call->is_flawed ? NULL : &now, &act->err)))
        return;
    cover(act, "OK");
    diff_say_time(now, act->out);
    (void)fputc('\n', act->out);
}

/* ---------------------------------------------------------------- operating */

static void act_queue_get(struct act *act)
{
    pawl_queue_settings settings;
    if (!say_code(act, pawl_queue_get(act->side->store, named(act, act->call->queue), &settings,
                                      &act->err)))
        return;
    cover(act, "OK");
    diff_say_settings(&settings, act->out);
}

static void act_queue_set(struct act *act)
{
    pawl_queue_settings settings = act->call->settings;
    if (act->call->is_flawed)
        settings.max_lost_leases = 0;
    say_done(act, pawl_queue_set(act->side->store, act->call->queue, &settings, &act->err));
}

static void act_queue_pause(struct act *act)
{
    say_done(act, pawl_queue_pause(act->side->store, named(act, act->call->queue),
                                   act->call->is_paused, &act->err));
}

typedef pawl_code change_fn(pawl_store *store, const pawl_id *ids, size_t ids_count,
                            pawl_changed *ret_results, pawl_err *err);

static void change(struct act *act, change_fn *verb)
{
    const struct call *call = act->call;
    pawl_changed answers[DIFF_BATCH] = {0};
    if (!say_code(act,
                  verb(act->side->store, call->ids, counted(act, call->count), answers, &act->err)))
        return;
    for (size_t i = 0; i < call->count; i++) {
        bool is_ok = answers[i].code == PAWL_OK;
        cover(act, is_ok ? pawl_state_name(answers[i].state) : pawl_code_name(answers[i].code));
        (void)fprintf(act->out, "%s %s\n", pawl_code_name(answers[i].code),
                      is_ok ? pawl_state_name(answers[i].state) : "");
    }
}

static void act_cancel(struct act *act)
{
    change(act, pawl_cancel);
}

static void act_redrive(struct act *act)
{
    change(act, pawl_redrive);
}

static void act_discard(struct act *act)
{
    change(act, pawl_discard);
}

typedef pawl_code change_where_fn(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                  size_t *ret_count, pawl_err *err);

static void change_where(struct act *act, change_where_fn *verb)
{
    pawl_filter filter = act->call->filter;
    size_t count = 0;
    if (act->call->is_flawed)
        filter.states = 1u << PAWL_SUCCEEDED; /* none of these verbs can change such a job */
    if (say_code(act, verb(act->side->store, &filter, act->call->max, &count, &act->err)))
        say_count(act, count);
}

static void act_cancel_where(struct act *act)
{
    change_where(act, pawl_cancel_where);
}

static void act_redrive_where(struct act *act)
{
    change_where(act, pawl_redrive_where);
}

static void act_discard_where(struct act *act)
{
    change_where(act, pawl_discard_where);
}

void diff_act(struct diff *diff, struct side *side, const struct call *call, FILE *out)
{
    static void (*const verbs[DIFF_VERBS])(struct act * act) = {
        [DIFF_ENQUEUE] = act_enqueue,
        [DIFF_CLAIM] = act_claim,
        [DIFF_MINE] = act_mine,
        [DIFF_RENEW] = act_renew,
        [DIFF_SETTLE] = act_settle,
        [DIFF_RELEASE] = act_release,
        [DIFF_REAP] = act_reap,
        [DIFF_PRUNE] = act_prune,
        [DIFF_GET] = act_get,
        [DIFF_LIST] = act_list,
        [DIFF_ATTEMPTS] = act_attempts,
        [DIFF_LEASES] = act_leases,
        [DIFF_WORKER_SEEN] = act_worker_seen,
        [DIFF_WORKER_ENDED] = act_worker_ended,
        [DIFF_WORKERS_LIST] = act_workers,
        [DIFF_STATS] = act_stats,
        [DIFF_QUEUE_GET] = act_queue_get,
        [DIFF_QUEUE_SET] = act_queue_set,
        [DIFF_QUEUE_PAUSE] = act_queue_pause,
        [DIFF_CANCEL] = act_cancel,
        [DIFF_REDRIVE] = act_redrive,
        [DIFF_DISCARD] = act_discard,
        [DIFF_CANCEL_WHERE] = act_cancel_where,
        [DIFF_REDRIVE_WHERE] = act_redrive_where,
        [DIFF_DISCARD_WHERE] = act_discard_where,
        [DIFF_NOW] = act_now,
    };
    assert(verbs[call->verb] != NULL);

    struct act act = {.diff = diff, .side = side, .call = call, .out = out};
    verbs[call->verb](&act);
}
