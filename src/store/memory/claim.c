/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * claim.c - how workers get jobs from the memory store.
 * Owns:  the order of claims across lines, priorities and ranks; the bounds of a claim; what a
 *        claim recovers on its way.
 * Never: changes a job before all that the claim needs has been allocated.
 *
 * A claim is planned first. The plan is a list of steps, each of which will succeed when it is its
 * turn: where the outcome rests on chance (a backoff), the step keeps the seed that it was planned
 * with. Then the steps are taken, in order.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "core/mutant.h"
#include "core/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX_DEFAULT (INT64_C(16) << 20)
#define PRIORITIES_COUNT  (PAWL_PRIORITY_LAST + 1)
#define STEPS_ROOM_FIRST  128

/* How many jobs that it cannot take a claim puts away at most: this, and so many for each job that
 * it may take. What is left is the reaper's; the worker who claims must not pay for all of it. */
#define ASIDE_MAX         100
#define ASIDE_MAX_PER_JOB 2

/* ---- the plan */

struct step {
    enum pawli_event event; /* EXPIRE, MISS or CLAIM */
    struct entry *entry;
    uint64_t seed;      /* EXPIRE */
    int64_t lease_ms;   /* CLAIM */
    struct cargo cargo; /* CLAIM: owned until it is given out */
};

/* A line that the plan has looked at: where to go on when it is named again. */
struct claim_visit {
    struct claim_visit *next;
    struct line *line;
    int64_t share;                            /* how many may be in flight here */
    int64_t slots;                            /* how many more; below 0 where share was lowered */
    struct entry *ready;                      /* the next that is Ready; NULL: none */
    struct entry *leased;                     /* the next whose lease has expired; NULL: none */
    struct entry *returned[PRIORITIES_COUNT]; /* recovered by this plan, not taken: first, last */
    struct entry *returned_last[PRIORITIES_COUNT];
};

struct plan {
    pawl_memory *memory;
    pawl_wall now;
    const char *worker;
    size_t jobs_max;
    int64_t bytes_max;
    struct claim_visit *visits;
    struct step *steps;
    size_t steps_count;
    size_t steps_room;
    size_t aside; /* steps that give the claim nothing: jobs that failed or must wait */
    size_t aside_max;
    size_t jobs_count; /* steps that claim */
    int64_t bytes;     /* of their payloads */
    bool is_full;      /* by jobs_max, bytes_max or aside_max */
    struct pawli_stock tokens;
};

static void plan_clear(struct plan *plan)
{
    while (plan->visits != NULL) {
        struct claim_visit *visit = plan->visits;
        plan->visits = visit->next;
        visit->line->visit = NULL;
        free(visit);
    }
    for (size_t i = 0; i < plan->steps_count; i++)
        pawli_memory_drop(&plan->steps[i].cargo);
    free(plan->steps);
}

static bool add_step(struct plan *plan, struct step step)
{
    if (plan->steps_count == plan->steps_room) {
        size_t room = plan->steps_room == 0 ? STEPS_ROOM_FIRST : 2 * plan->steps_room;
        struct step *steps = realloc(plan->steps, room * sizeof(*steps));
        if (steps == NULL)
            return false;
        plan->steps = steps;
        plan->steps_room = room;
    }
    plan->steps[plan->steps_count++] = step;
    return true;
}

/* What a job would become by an event of this plan. The job itself stays as it is. */
static pawl_code foresee(const struct plan *plan, const struct step *step, struct pawli_job *job)
{
    struct pawli_job_rules rules = pawli_memory_rules(step->entry);
    struct pawli_seeded seeded = {step->seed};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct pawli_change change = {
        .event = step->event,
        .now = plan->now,
        .worker = plan->worker,
        .lease_ms = PAWL_LEASE_MIN_MS, /* whether it may be claimed does not depend on these */
        .timeout_ms = PAWL_LEASE_MIN_MS,
    };
    struct pawli_ledger_row row;
    return pawli_job_change(job, &rules, &change, &random, &row);
}

/* ---- picking */

static struct claim_visit *visit_line(struct plan *plan, const struct queue *queue,
                                      struct line *line)
{
    if (line->visit != NULL)
        return line->visit;
    struct claim_visit *visit = calloc(1, sizeof(*visit));
    if (visit == NULL)
        return NULL;
    visit->line = line;
    visit->share = pawli_in_flight_share(queue->settings.max_in_flight, line - queue->lines,
                                         plan->memory->shards);
    visit->slots = visit->share - line->in_flight;
    if (PAWLI_MUTANT(PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED))
        visit->slots = visit->share;
    visit->ready = RB_MIN(pawli_ready_tree, &line->ready);
    visit->leased = RB_MIN(pawli_lease_tree, &line->leases);
    visit->next = plan->visits;
    plan->visits = visit;
    line->visit = visit;
    return visit;
}

static bool is_nothing_on(struct line *line, pawl_wall now)
{
    if (line->visit != NULL || !RB_EMPTY(&line->ready))
        return false;
    const struct entry *first = RB_MIN(pawli_lease_tree, &line->leases);
    return first == NULL || pawli_job_is_leased(&first->job, now);
}

/* Plan that a Ready job has missed its start-by deadline, unless that was done often enough. */
static bool plan_miss(struct plan *plan, struct entry *entry)
{
    if (plan->aside == plan->aside_max) {
        plan->is_full = true;
        return true;
    }
    plan->aside++;
    return pawli_memory_reserve(entry) &&
           add_step(plan, (struct step){.event = PAWLI_EVENT_MISS, .entry = entry});
}

/* Plan the recovery of one expired lease. *ret_back: the job can be claimed at once. */
static bool plan_expire(struct plan *plan, struct entry *entry, bool *ret_back)
{
    const pawl_random *random = plan->memory->random;
    struct step step = {.event = PAWLI_EVENT_EXPIRE, .entry = entry};
    step.seed = random->next(random->user);
    if (!pawli_memory_reserve(entry) || !add_step(plan, step))
        return false;
    struct pawli_job after = entry->job;
    pawl_code rc = foresee(plan, &step, &after);
    assert(rc == PAWL_OK);
    step.event = PAWLI_EVENT_CLAIM;
    rc = foresee(plan, &step, &after);
    *ret_back = rc == PAWL_OK; /* otherwise Failed, or it must wait first */
    return true;
}

/*
 * Recover leases of a line, but no more than can be taken, and few that cannot. RES-4. Each of them
 * also makes room under the queue's bound; where that was lowered, more may have to make room than
 * are taken.
 */
static bool recover(struct plan *plan, struct claim_visit *visit, size_t want)
{
    if (visit->share < (int64_t)want)
        want = (size_t)visit->share;
    size_t back = 0;
    while ((back < want || visit->slots < (int64_t)want) && plan->aside < plan->aside_max &&
           visit->leased != NULL && !pawli_job_is_leased(&visit->leased->job, plan->now)) {
        struct entry *entry = visit->leased;
        visit->leased = RB_NEXT(pawli_lease_tree, &visit->line->leases, entry);
        bool is_back;
        if (!plan_expire(plan, entry, &is_back))
            return false;
        visit->slots++;
        plan->aside += is_back && back < want ? 0 : 1;
        if (!is_back)
            continue;
        back++;
        entry->next = NULL;
        if (visit->returned[entry->priority] == NULL)
            visit->returned[entry->priority] = entry;
        else
            visit->returned_last[entry->priority]->next = entry;
        visit->returned_last[entry->priority] = entry;
    }
    return true;
}

/* The next job of a line in the order of claims: of what was Ready and what has come back. */
static struct entry *next_of(struct claim_visit *visit)
{
    struct entry *ready = visit->ready;
    int priority = 0;
    while (priority < PRIORITIES_COUNT && visit->returned[priority] == NULL)
        priority++;
    /* What came back just now stands behind what had come back before. */
    bool is_ready_first = ready != NULL &&
                          (ready->priority < priority ||
                           (ready->priority == priority && ready->rank == RANK_RETURNED));
    if (is_ready_first || (ready != NULL && priority == PRIORITIES_COUNT)) {
        visit->ready = RB_NEXT(pawli_ready_tree, &visit->line->ready, ready);
        return ready;
    }
    if (priority == PRIORITIES_COUNT)
        return NULL;
    struct entry *entry = visit->returned[priority];
    visit->returned[priority] = entry->next;
    return entry;
}

/* Plan to give out one job. Not taken: it has missed its deadline, or the bytes are used up. */
static bool plan_claim(struct plan *plan, struct entry *entry, int64_t lease_ms, bool *ret_taken)
{
    struct step step = {.event = PAWLI_EVENT_CLAIM, .entry = entry, .lease_ms = lease_ms};
    *ret_taken = false;
    if (entry->job.state == PAWL_READY) {
        struct pawli_job after = entry->job;
        pawl_code rc = foresee(plan, &step, &after);
        if (rc == PAWL_MISSED)
            return plan_miss(plan, entry);
        assert(rc == PAWL_OK); /* M2: what is in `ready` is due */
    }
    int64_t bytes = (int64_t)entry->payload_len;
    if (plan->jobs_count > 0 && bytes > plan->bytes_max - plan->bytes) {
        plan->is_full = true;
        return true;
    }
    if (!pawli_memory_load(entry, &step.cargo))
        return false;
    if (!add_step(plan, step)) {
        pawli_memory_drop(&step.cargo);
        return false;
    }
    plan->jobs_count++;
    plan->bytes += bytes;
    plan->is_full = plan->jobs_count == plan->jobs_max;
    *ret_taken = true;
    return true;
}

/* What a line of a claim asks of a queue. */
struct ask {
    struct queue *queue;
    int64_t lease_ms;
    size_t want; /* how many more */
};

static bool pick_line(struct plan *plan, struct ask *ask, struct line *line)
{
    if (is_nothing_on(line, plan->now))
        return true;
    struct claim_visit *visit = visit_line(plan, ask->queue, line);
    if (visit == NULL || !recover(plan, visit, ask->want))
        return false;
    while (ask->want > 0 && visit->slots > 0 && !plan->is_full) {
        struct entry *entry = next_of(visit);
        bool is_taken;
        if (entry == NULL)
            break;
        if (!plan_claim(plan, entry, ask->lease_ms, &is_taken))
            return false;
        ask->want -= is_taken;
        visit->slots -= is_taken;
    }
    return true;
}

static bool pick_queue(struct plan *plan, struct queue *queue, const pawl_claim_line *line)
{
    size_t lines_count = (size_t)plan->memory->shards;
    struct ask ask = {
        .queue = queue,
        .lease_ms = line->lease_ms != PAWL_DEFAULT ? line->lease_ms : queue->settings.lease_ms,
        .want = plan->jobs_max - plan->jobs_count,
    };
    if ((uint64_t)line->jobs_max < ask.want)
        ask.want = (size_t)line->jobs_max;

    pawli_memory_turn_due(queue, plan->now);
    for (size_t i = 0; i < lines_count && ask.want > 0 && !plan->is_full; i++) {
        size_t at = (queue->next_line + i) % lines_count;
        if (!pick_line(plan, &ask, &queue->lines[at]))
            return false;
    }
    return true;
}

static bool pick(struct plan *plan, const pawl_claim_args *args)
{
    for (size_t i = 0; i < args->lines_count && !plan->is_full; i++) {
        struct queue *queue = pawli_memory_queue_find(plan->memory, args->lines[i].queue);
        if (queue == NULL || queue->settings.is_paused)
            continue;
        if (!pick_queue(plan, queue, &args->lines[i]))
            return false;
    }
    return true;
}

/* ---- taking the steps */

static void make_token(struct plan *plan, pawl_token *ret_token)
{
#ifdef PAWL_TEST_POINTS
    if (PAWLI_MUTANT(PAWLI_MUTANT_TOKEN_PER_WORKER)) {
        pawli_memory_mutant_token(plan->worker, ret_token);
        return;
    }
#endif
    pawli_stock_take(&plan->tokens, ret_token->bytes, sizeof(ret_token->bytes)); /* RES-8 */
}

/* Grant the lease and give the job out. */
static void give_out(struct plan *plan, struct step *step, struct holder *holder, pawl_job *ret_job)
{
    struct entry *entry = step->entry;
    struct queue *queue = entry->queue;
    struct pawli_change change = {
        .event = PAWLI_EVENT_CLAIM,
        .now = plan->now,
        .worker = plan->worker,
        .lease_ms = step->lease_ms,
        .timeout_ms = entry->timeout_ms != PAWL_DEFAULT
                          ? entry->timeout_ms
                          : pawli_execution_timeout_ms(&queue->settings, step->lease_ms),
    };
    make_token(plan, &change.token);
    change.fence = pawli_memory_draw_fence(plan->memory, entry);
#ifdef PAWL_TEST_POINTS
    if (PAWLI_MUTANT(PAWLI_MUTANT_CLAIM_TWO_STEPS))
        pawli_memory_mutant_ready(plan->memory, entry, plan->now);
#endif
    pawl_code rc = pawli_memory_change(plan->memory, entry, &change,
                                       &(struct change_extra){.holder = holder});
    assert(rc == PAWL_OK); /* foreseen */
    (void)rc;              /* used by the assert only */
    queue->next_line = (size_t)(entry->line - queue->lines + 1) % (size_t)plan->memory->shards;
    pawli_memory_give(entry, ret_job);
    ret_job->token = entry->job.token;
    pawli_memory_unload(&step->cargo, ret_job);
}

static void recover_one(const struct plan *plan, const struct step *step)
{
    struct pawli_seeded seeded = {step->seed};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct pawli_change change = {.event = step->event, .now = plan->now};
    pawl_code rc = pawli_memory_change(plan->memory, step->entry, &change,
                                       &(struct change_extra){.random = &random});
    assert(rc == PAWL_OK); /* foreseen */
    (void)rc;              /* used by the assert only */
}

#ifdef PAWL_TEST_POINTS
/* The mutant CLAIM_TWO_STEPS: let go of the lock between picking and writing, and do not look
 * again. What was pruned meanwhile is left out: the bug must be in the protocol, not in C. */
static void stretch_claim(struct plan *plan, pawl_store *store)
{
    pawl_id *ids = calloc(plan->steps_count + 1, sizeof(*ids));
    if (ids == NULL)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < plan->steps_count; i++) {
        if (plan->steps[i].event != PAWLI_EVENT_CLAIM) {
            recover_one(plan, &plan->steps[i]);
            continue;
        }
        ids[kept] = plan->steps[i].entry->id;
        plan->steps[kept++] = plan->steps[i];
    }
    struct plan bare = {.visits = plan->visits};
    plan->visits = NULL;
    plan_clear(&bare);
    pawli_memory_leave(plan->memory);
    PAWLI_STRETCH(PAWLI_STRETCH_CLAIM_PICKED);
    pawl_memory *again = pawli_memory_look(store, &plan->now, NULL);
    assert(again == plan->memory);
    (void)again; /* used by the assert only */
    plan->steps_count = 0;
    for (size_t i = 0; i < kept; i++) {
        struct step step = plan->steps[i];
        step.entry = pawli_memory_find(plan->memory, &ids[i]);
        if (step.entry != NULL)
            plan->steps[plan->steps_count++] = step;
        else
            pawli_memory_drop(&step.cargo);
    }
    free(ids);
}
#endif

static size_t take_steps(struct plan *plan, struct holder *holder, pawl_job *ret_jobs)
{
    size_t given = 0;
    plan->tokens.random = plan->memory->random;
    plan->tokens.wanted = plan->jobs_count * sizeof(pawl_token);
    for (size_t i = 0; i < plan->steps_count; i++) {
        if (plan->steps[i].event == PAWLI_EVENT_CLAIM)
            give_out(plan, &plan->steps[i], holder, &ret_jobs[given++]);
        else
            recover_one(plan, &plan->steps[i]);
    }
    return given;
}

pawl_code pawli_memory_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct plan plan = {
        .worker = args->worker,
        .jobs_max = jobs_max,
        .aside_max = ASIDE_MAX + ASIDE_MAX_PER_JOB * jobs_max,
        .bytes_max = args->bytes_max != PAWL_DEFAULT ? args->bytes_max : BYTES_MAX_DEFAULT,
    };
    plan.memory = pawli_memory_enter(store, &plan.now, err);
    if (plan.memory == NULL)
        return PAWL_DOWN;
    pawl_code rc = PAWL_NO_MEMORY;
    struct holder *holder = pawli_memory_holder_need(plan.memory, args->worker);
    if (holder != NULL && pick(&plan, args)) {
#ifdef PAWL_TEST_POINTS
        if (PAWLI_MUTANT(PAWLI_MUTANT_CLAIM_TWO_STEPS))
            stretch_claim(&plan, store);
#endif
        *ret_count = take_steps(&plan, holder, ret_jobs);
        rc = PAWL_OK;
    }
    pawli_memory_holder_drop(plan.memory, holder);
    plan_clear(&plan);
    pawli_memory_leave(plan.memory);
    return rc == PAWL_OK ? PAWL_OK : pawli_fail_plain(err, rc);
}
