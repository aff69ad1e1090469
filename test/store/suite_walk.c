/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_walk.c - a long walk of random calls over few jobs, each answer checked by the model.
 * Owns:  choosing the calls, by a seed, so that every refusal is met as often as every success.
 * Never: decides what is right: see model.c.
 *
 * A failure prints the seed and the step; PAWLT_WALK_SEED=n walks another way.
 */
#include "store/helpers.h"

#include "base/random.h"
#include "store/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS      16 /* ids that the walk uses: few, so that calls meet */
#define HAND       48 /* leases that it remembers, most of them long stale */
#define BATCH      4
#define LEDGER_MAX MODEL_ROWS_MAX

static const char *const queues[] = {"mail", "print"};
static const char *const workers[] = {"w1", "w2", "w3"};
static const char *const keys[] = {NULL, NULL, "k1", "k2"};
static const char *const ordering_keys[] = {NULL, "o1", "o1", "o2"};

struct grip {
    const char *worker;
    pawl_lease lease;
};

struct walk {
    struct stage *s;
    struct model *model;
    struct pawli_seeded seeded;
    pawl_random random;
    uint64_t seed;
    int step;
    const char *verb;
    pawl_id ids[SLOTS]; /* nil until used */
    struct grip hand[HAND];
    size_t hand_count; /* ever taken; the ring holds the last ones */
};

/* ---------------------------------------------------------------- chance and time */

static size_t below(struct walk *w, size_t bound)
{
    return (size_t)pawli_random_below(&w->random, bound);
}

static bool one_in(struct walk *w, size_t bound)
{
    return below(w, bound) == 0;
}

static int64_t story_now(struct walk *w)
{
    return story_us(w->s, now(w->s));
}

static struct model_span since(struct walk *w, int64_t from_us)
{
    return (struct model_span){from_us, story_now(w)};
}

static void judge(struct walk *w, const char *complaint)
{
    if (complaint != NULL)
        complain(HERE, "seed %llu, step %d, %s: %s", (unsigned long long)w->seed, w->step, w->verb,
                 complaint);
}

/* The call as a whole must succeed: a walk has no faults in it. */
static void done(struct walk *w, pawl_code code, const pawl_err *err)
{
    if (code != PAWL_OK)
        judge(w, err->text);
}

/* ---------------------------------------------------------------- looking */

static void look_at(struct walk *w, const pawl_id *id)
{
    pawl_job job = {0};
    pawl_err err;
    pawl_code code = pawl_get(w->s->store, id, &job, &err);
    if (code != PAWL_GONE)
        done(w, code, &err);
    judge(w, model_seen(w->model, id, code == PAWL_OK ? &job : NULL));
    pawl_job_clear(&job);
}

static void look_at_all(struct walk *w)
{
    for (size_t i = 0; i < w->model->jobs_count; i++)
        look_at(w, &w->model->jobs[i].id);
}

/* Look at what the last call left open. */
static void look_at_open(struct walk *w)
{
    for (size_t i = 0; i < w->model->jobs_count; i++) {
        const struct model_job *job = &w->model->jobs[i];
        if (job->may_be_recovered || job->may_be_pruned || job->must_be_pruned)
            look_at(w, &job->id);
    }
}

/* ---------------------------------------------------------------- producing */

static void walk_enqueue(struct walk *w)
{
    size_t slot = below(w, SLOTS);
    pawl_enqueue_row row = row_for(queues[slot % COUNT_OF(queues)]);
    row.dedupe_key = keys[slot / COUNT_OF(queues) % COUNT_OF(keys)];
    row.ordering_key = ordering_keys[slot / 4 % COUNT_OF(ordering_keys)];
    if (pawl_id_is_nil(&w->ids[slot]))
        w->ids[slot] = new_id(w->s, &row);
    row.id = w->ids[slot];
    row.priority = one_in(w, 3) ? (int)below(w, 10) : PAWL_PRIORITY_NORMAL;
    row.delay_ms = one_in(w, 4) ? 5 * SECOND : 0;
    row.start_within_ms = one_in(w, 5) ? 40 * SECOND : PAWL_DEFAULT;
    row.max_retries = one_in(w, 4) ? (int64_t)below(w, 2) : PAWL_DEFAULT;
    row.timeout_ms = one_in(w, 3) ? 15 * SECOND : PAWL_DEFAULT;
    int64_t from_us = story_now(w);
    pawl_enqueued answer = {0};
    pawl_err err;
    done(w, pawl_enqueue(w->s->store, &row, 1, &answer, &err), &err);
    judge(w, model_enqueued(w->model, since(w, from_us), &row, &answer));
    look_at(w, &row.id);
}

/* ---------------------------------------------------------------- working */

static void walk_claim(struct walk *w)
{
    static const int64_t leases[] = {PAWL_DEFAULT, 10 * SECOND, MINUTE};
    size_t first = below(w, COUNT_OF(queues));
    pawl_claim_line lines[2];
    for (size_t i = 0; i < 2; i++)
        lines[i] = (pawl_claim_line){.queue = queues[(first + i) % COUNT_OF(queues)],
                                     .jobs_max = 1 + (int64_t)below(w, 3),
                                     .lease_ms = leases[below(w, COUNT_OF(leases))]};
    pawl_claim_args args = {.worker = workers[below(w, COUNT_OF(workers))],
                            .lines = lines,
                            .lines_count = 1 + below(w, 2),
                            .bytes_max = PAWL_DEFAULT};
    pawl_job jobs[BATCH] = {0};
    struct model_claim claim = {.args = &args, .jobs_max = 1 + below(w, BATCH), .jobs = jobs};
    int64_t from_us = story_now(w);
    pawl_err err;
    done(w, pawl_claim(w->s->store, &args, jobs, claim.jobs_max, &claim.jobs_count, &err), &err);
    judge(w, model_claimed(w->model, since(w, from_us), &claim));
    for (size_t i = 0; i < claim.jobs_count; i++) {
        w->hand[w->hand_count++ % HAND] = (struct grip){args.worker, lease_of(&jobs[i])};
        look_at(w, &jobs[i].id);
        pawl_job_clear(&jobs[i]);
    }
    look_at_open(w);
}

static const char *worker_named(const char *name)
{
    for (size_t i = 1; i < COUNT_OF(workers); i++) {
        if (strcmp(workers[i], name) == 0)
            return workers[i];
    }
    return workers[0];
}

/* A lease that somebody holds, valid or not; false where nobody holds any. */
static bool grasp_held(struct walk *w, struct grip *ret_grip)
{
    size_t first = below(w, SLOTS);
    for (size_t i = 0; i < w->model->jobs_count; i++) {
        const struct model_job *job = &w->model->jobs[(first + i) % w->model->jobs_count];
        if (!job->is_known || job->state != PAWL_IN_FLIGHT)
            continue;
        ret_grip->worker = worker_named(job->worker);
        ret_grip->lease = (pawl_lease){job->id, job->token, job->lease_version, job->place};
        return true;
    }
    return false;
}

/* A lease to show: mostly one that stands, else one from the hand, at times with a flaw. */
static struct grip grasp(struct walk *w)
{
    struct grip grip = {"w1", {.job = w->ids[0], .version = 1}};
    bool is_held = !one_in(w, 4) && grasp_held(w, &grip);
    size_t remembered = w->hand_count < HAND ? w->hand_count : HAND;
    if (!is_held && remembered > 0)
        grip = w->hand[(w->hand_count - 1 - below(w, remembered)) % HAND];
    switch (below(w, 20)) {
    case 0:
        grip.worker = workers[below(w, COUNT_OF(workers))];
        break;
    case 1:
        grip.lease.token.bytes[below(w, 16)] ^= 4;
        break;
    case 2:
        grip.lease.version += one_in(w, 2) ? 1 : -1;
        if (grip.lease.version < 1)
            grip.lease.version = 1;
        break;
    default:
        break;
    }
    return grip;
}

static void walk_renew(struct walk *w)
{
    struct grip grip = grasp(w);
    if (pawl_id_is_nil(&grip.lease.job))
        return;
    static const int64_t leases[] = {PAWL_DEFAULT, PAWL_DEFAULT, 5 * SECOND, MINUTE};
    pawl_renew_row row = {.lease = grip.lease,
                          .lease_ms = leases[below(w, COUNT_OF(leases))],
                          .is_unstarted = one_in(w, 6)};
    pawl_renewed answer = {0};
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_renew(w->s->store, grip.worker, &row, 1, &answer, &err), &err);
    judge(w, model_renewed(w->model, since(w, from_us), grip.worker, &row, &answer));
    look_at(w, &grip.lease.job);
}

static void walk_settle(struct walk *w)
{
    struct grip grip = grasp(w);
    if (pawl_id_is_nil(&grip.lease.job))
        return;
    pawl_settle_row row;
    pawl_settle_init(&row);
    row.lease = grip.lease;
    static const pawl_settle_action actions[] = {PAWL_SUCCEED, PAWL_RETRY, PAWL_RETRY,
                                                 PAWL_RETRY,   PAWL_FAIL,  PAWL_SNOOZE};
    row.action = actions[below(w, COUNT_OF(actions))];
    row.delay_ms = one_in(w, 3) ? 0 : (int64_t)below(w, 3) * 5 * SECOND;
    if (row.action == PAWL_RETRY && one_in(w, 2))
        row.delay_ms = PAWL_DEFAULT;
    if (row.action == PAWL_RETRY && one_in(w, 4))
        row.reason = PAWL_REASON_TIMEOUT;
    if (row.action == PAWL_SNOOZE && one_in(w, 3))
        row.reason = PAWL_REASON_SHUTDOWN;
    pawl_settled answer = {0};
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_settle(w->s->store, grip.worker, &row, 1, &answer, &err), &err);
    judge(w, model_settled(w->model, since(w, from_us), grip.worker, &row, &answer));
    look_at(w, &grip.lease.job);
}

static void walk_release(struct walk *w)
{
    struct grip grip = grasp(w);
    if (pawl_id_is_nil(&grip.lease.job))
        return;
    pawl_code answer = PAWL_INVALID;
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_release(w->s->store, grip.worker, &grip.lease, 1, &answer, &err), &err);
    judge(w, model_released(w->model, since(w, from_us), grip.worker, &grip.lease, answer));
    look_at(w, &grip.lease.job);
}

static void walk_reap(struct walk *w)
{
    pawl_reaped rows[SLOTS];
    size_t rows_max = one_in(w, 2) ? 1 + below(w, 2) : SLOTS;
    size_t count = 0;
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_reap(w->s->store, rows, rows_max, &count, &err), &err);
    judge(w, model_reaped(w->model, since(w, from_us), rows_max, rows, count));
    for (size_t i = 0; i < count; i++)
        look_at(w, &rows[i].job);
}

/* ---------------------------------------------------------------- operating */

static void walk_operate(struct walk *w)
{
    pawl_id id = one_in(w, 3) ? grasp(w).lease.job : w->ids[below(w, SLOTS)];
    if (pawl_id_is_nil(&id))
        return;
    pawl_changed answer = {0};
    pawl_err err;
    int64_t from_us = story_now(w);
    switch (below(w, 4)) {
    case 0:
        w->verb = "cancel";
        done(w, pawl_cancel(w->s->store, &id, 1, &answer, &err), &err);
        judge(w, model_cancelled(w->model, since(w, from_us), &id, &answer));
        break;
    case 1:
    case 2:
        w->verb = "redrive";
        done(w, pawl_redrive(w->s->store, &id, 1, &answer, &err), &err);
        judge(w, model_redriven(w->model, since(w, from_us), &id, &answer));
        break;
    default:
        w->verb = "discard";
        done(w, pawl_discard(w->s->store, &id, 1, &answer, &err), &err);
        judge(w, model_discarded(w->model, &id, &answer));
        break;
    }
    look_at(w, &id);
}

static void walk_pause(struct walk *w)
{
    size_t queue = below(w, COUNT_OF(queues));
    bool is_paused = one_in(w, 4); /* mostly running */
    pause_queue(w->s, queues[queue], is_paused);
    w->model->queues[queue].is_paused = is_paused;
}

/* A bound on what is in flight, or none. */
static void walk_bound(struct walk *w)
{
    size_t queue = below(w, COUNT_OF(queues));
    pawl_queue_settings *settings = &w->model->queues[queue].settings;
    settings->max_in_flight = one_in(w, 3) ? 0 : w->s->shards + (int64_t)below(w, 3);
    set_settings(w->s, queues[queue], settings);
}

static void walk_prune(struct walk *w)
{
    size_t count = 0;
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_prune(w->s->store, PAWL_BATCH_MAX, &count, &err), &err);
    judge(w, model_pruned(w->model, since(w, from_us), count));
    look_at_open(w);
}

/* How far it is to some job's next deadline, or to the millisecond before it; 0 where none is. */
static int64_t ms_to_an_edge(struct walk *w)
{
    const struct model_job *job = &w->model->jobs[below(w, SLOTS)];
    if (!job->is_known || model_is_terminal(job))
        return 0;
    const struct model_instant edges[] = {
        job->state == PAWL_READY ? job->due : job->expires,
        job->state == PAWL_READY ? job->start_by : job->run_until,
    };
    int64_t left_us = edges[below(w, 2)].low_us - story_now(w);
    if (left_us <= 1000)
        return 0;
    return left_us / 1000 - (one_in(w, 2) ? 1 : 0);
}

static void walk_age(struct walk *w)
{
    static const int64_t spans[] = {SECOND,      SECOND,      2 * SECOND, 5 * SECOND,
                                    10 * SECOND, 15 * SECOND, 31 * SECOND};
    int64_t ms = spans[below(w, COUNT_OF(spans))];
    if (one_in(w, 50))
        ms = 90 * MINUTE; /* past a retention */
    int64_t edge_ms = w->s->kind->has_exact_clock && one_in(w, 3) ? ms_to_an_edge(w) : 0;
    age(w->s, edge_ms > 0 ? edge_ms : ms);
    w->model->shift_us = w->s->aged_us;
}

/* ---------------------------------------------------------------- reading */

static void read_stats(struct walk *w)
{
    pawl_stats rows[4];
    size_t count = 0;
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_queue_stats(w->s->store, NULL, rows, 4, &count, &err), &err);
    struct model_span span = since(w, from_us);
    for (size_t i = 0; i < count; i++)
        judge(w, model_counted(w->model, span, &rows[i]));
    expect_number(count, 2); /* both have settings */
}

static void read_list(struct walk *w)
{
    pawl_filter filter = {.queue = one_in(w, 2) ? queues[below(w, 2)] : NULL,
                          .states = (unsigned)below(w, 16),
                          .reason = one_in(w, 3) ? (pawl_reason)below(w, 11) : PAWL_REASON_NONE,
                          .worker = one_in(w, 5) ? workers[below(w, 3)] : NULL};
    if (filter.queue != NULL && one_in(w, 2))
        filter.ordering_key = ordering_keys[1 + below(w, 3)];
    pawl_job jobs[SLOTS + 1] = {0};
    size_t count = 0;
    pawl_err err;
    done(w, pawl_list(w->s->store, &filter, NULL, jobs, SLOTS + 1, &count, &err), &err);
    judge(w, model_listed(w->model, &filter, jobs, count));
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
}

static void read_mine(struct walk *w)
{
    const char *worker = workers[below(w, COUNT_OF(workers))];
    pawl_job jobs[SLOTS + 1] = {0};
    size_t count = 0;
    pawl_err err;
    int64_t from_us = story_now(w);
    done(w, pawl_mine(w->s->store, worker, NULL, jobs, SLOTS + 1, &count, &err), &err);
    judge(w, model_mine(w->model, since(w, from_us), worker, jobs, count));
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
}

static void read_ledger(struct walk *w, const pawl_id *id)
{
    pawl_attempt *rows = calloc(LEDGER_MAX, sizeof(rows[0]));
    assert_non_null(rows);
    size_t count = 0;
    pawl_err err;
    done(w, pawl_attempts(w->s->store, id, 0, rows, LEDGER_MAX, &count, &err), &err);
    judge(w, model_ledger(w->model, id, rows, count));
    free(rows);
}

static void walk_read(struct walk *w)
{
    switch (below(w, 4)) {
    case 0:
        w->verb = "queue_stats";
        read_stats(w);
        break;
    case 1:
        w->verb = "list";
        read_list(w);
        break;
    case 2:
        w->verb = "mine";
        read_mine(w);
        break;
    default:
        w->verb = "attempts";
        for (size_t i = 0; i < w->model->jobs_count; i++) {
            if (w->model->jobs[i].is_known && one_in(w, 4))
                read_ledger(w, &w->model->jobs[i].id);
        }
        break;
    }
}

/* ---------------------------------------------------------------- the walk */

static const struct {
    const char *verb;
    void (*take)(struct walk *w);
    size_t weight;
} steps[] = {
    {"enqueue", walk_enqueue, 16}, {"claim", walk_claim, 20},    {"renew", walk_renew, 12},
    {"settle", walk_settle, 18},   {"release", walk_release, 5}, {"reap", walk_reap, 6},
    {"operate", walk_operate, 10}, {"pause", walk_pause, 2},     {"prune", walk_prune, 2},
    {"age", walk_age, 14},         {"read", walk_read, 8},       {"bound", walk_bound, 3},
};

static void take_step(struct walk *w)
{
    size_t total = 0;
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        total += steps[i].weight;
    size_t drawn = below(w, total);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (drawn < steps[i].weight) {
            w->verb = steps[i].verb;
            steps[i].take(w);
            return;
        }
        drawn -= steps[i].weight;
    }
}

static void set_up_queues(struct walk *w)
{
    for (size_t i = 0; i < COUNT_OF(queues); i++) {
        pawl_queue_settings settings = settings_of(w->s, queues[i]);
        settings.max_retries = 2;
        settings.max_lost_leases = 3;
        settings.backoff_base_ms = 2 * SECOND;
        settings.backoff_max_ms = 20 * SECOND;
        settings.keep_succeeded_ms = HOUR;
        settings.keep_failed_ms = 2 * HOUR;
        set_settings(w->s, queues[i], &settings);
        w->model->queues[i] = (struct model_queue){.name = queues[i], .settings = settings};
    }
    w->model->queues_count = COUNT_OF(queues);
}

static void walk_from(struct stage *s, uint64_t seed)
{
    struct walk *w = stage_memory(s, sizeof(*w));
    w->s = s;
    w->seed = seed;
    w->seeded.state = seed;
    w->random = pawli_seeded_as_random(&w->seeded);
    w->model = stage_memory(s, sizeof(*w->model));
    w->model->shards = s->shards;
    w->verb = "set-up";
    set_up_queues(w);
    int last = s->kind->walk_steps / (s->shards > 1 ? 2 : 1);
    expect_true(last > 0);
    for (w->step = 1; w->step <= last; w->step++) {
        take_step(w);
        if (w->step % 10 == 0)
            look_at_all(w);
    }
    w->verb = "the end";
    look_at_all(w);
    for (size_t i = 0; i < w->model->jobs_count; i++) {
        if (w->model->jobs[i].is_known)
            read_ledger(w, &w->model->jobs[i].id);
    }
}

/* Q-ONE-STATE, Q-ONE-LEASE, Q-STALE, Q-RETRY-BOUND, Q-VERSION, RES-3 to RES-5, RES-12, RES-13 */
static void a_walk_agrees_with_the_model(struct stage *s)
{
    const char *text = getenv("PAWLT_WALK_SEED");
    walk_from(s, text != NULL ? strtoull(text, NULL, 10) : 1);
}

static void a_second_walk_agrees_with_the_model(struct stage *s)
{
    walk_from(s, 2);
}

static void a_third_walk_agrees_with_the_model(struct stage *s)
{
    walk_from(s, 3);
}

static const struct suite_case cases[] = {
    CASE(a_walk_agrees_with_the_model),
    CASE(a_second_walk_agrees_with_the_model),
    CASE(a_third_walk_agrees_with_the_model),
};

SUITE_GROUP(walk);
