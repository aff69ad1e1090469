/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job.c - the states of a job, what may become of it, and the one function that changes it.
 * Owns:  the transition table; the rules of leases, retries, lost leases, cancellation and
 *        deadlines; the ledger row that each change calls for; the names of all these.
 * Never: does I/O, reads a clock or allocates; changes a record that it refuses to change.
 *
 * What holds after every change (cited by number below):
 *  J1  A job is under a lease exactly while it is InFlight; the lease's fields are zero otherwise.
 *  J2  The lease version never falls, and rises by one with each claim.
 *  J3  A row's number is one more than the rows before it, and leaving InFlight writes one, except
 *      by release; so does becoming terminal (RES-12).
 *  J4  finished_at is set exactly while the job is terminal.
 */
#include "core/job.h"

#include "base/clock.h"
#include "base/text.h"
#include "core/backoff.h"
#include "core/mutant.h"
#include "core/token.h"

#include <assert.h>
#include <string.h>

/* ---------------------------------------------------------------- the table */

#define STATES_COUNT (PAWL_FAILED + 1)

/* What each state says to each event, before any look at the lease or the time. */
static const pawl_code transitions[STATES_COUNT][PAWLI_EVENTS] = {
    [PAWL_READY] =
        {
            [PAWLI_EVENT_CLAIM] = PAWL_OK,
            [PAWLI_EVENT_RENEW] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_SUCCEED] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_RETRY] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_FAIL] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_SNOOZE] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_RELEASE] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_EXPIRE] = PAWL_NOT_LEASED,
            [PAWLI_EVENT_CANCEL] = PAWL_OK,
            [PAWLI_EVENT_REDRIVE] = PAWL_NOT_FAILED,
            [PAWLI_EVENT_DISCARD] = PAWL_NOT_FAILED,
            [PAWLI_EVENT_MISS] = PAWL_OK,
        },
    [PAWL_IN_FLIGHT] =
        {
            [PAWLI_EVENT_CLAIM] = PAWL_LEASED,
            [PAWLI_EVENT_RENEW] = PAWL_OK,
            [PAWLI_EVENT_SUCCEED] = PAWL_OK,
            [PAWLI_EVENT_RETRY] = PAWL_OK,
            [PAWLI_EVENT_FAIL] = PAWL_OK,
            [PAWLI_EVENT_SNOOZE] = PAWL_OK,
            [PAWLI_EVENT_RELEASE] = PAWL_OK,
            [PAWLI_EVENT_EXPIRE] = PAWL_OK,
            [PAWLI_EVENT_CANCEL] = PAWL_OK,
            [PAWLI_EVENT_REDRIVE] = PAWL_NOT_FAILED,
            [PAWLI_EVENT_DISCARD] = PAWL_NOT_FAILED,
            [PAWLI_EVENT_MISS] = PAWL_NOT_MISSED,
        },
    [PAWL_SUCCEEDED] =
        {
            [PAWLI_EVENT_CLAIM] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_RENEW] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_SUCCEED] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_RETRY] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_FAIL] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_SNOOZE] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_RELEASE] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_EXPIRE] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_CANCEL] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_REDRIVE] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_DISCARD] = PAWL_ALREADY_SUCCEEDED,
            [PAWLI_EVENT_MISS] = PAWL_ALREADY_SUCCEEDED,
        },
    [PAWL_FAILED] =
        {
            [PAWLI_EVENT_CLAIM] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_RENEW] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_SUCCEED] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_RETRY] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_FAIL] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_SNOOZE] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_RELEASE] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_EXPIRE] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_CANCEL] = PAWL_ALREADY_FAILED,
            [PAWLI_EVENT_REDRIVE] = PAWL_OK,
            [PAWLI_EVENT_DISCARD] = PAWL_OK,
            [PAWLI_EVENT_MISS] = PAWL_ALREADY_FAILED,
        },
};

pawl_code pawli_job_allows(pawl_state state, enum pawli_event event)
{
    assert(state >= PAWL_READY && state <= PAWL_FAILED);
    assert(event >= PAWLI_EVENT_CLAIM && event < PAWLI_EVENTS);
    return transitions[state][event];
}

/* ---------------------------------------------------------------- leases */

bool pawli_job_is_leased(const struct pawli_job *job, pawl_wall now)
{
    assert(job != NULL);
    return job->state == PAWL_IN_FLIGHT && pawli_wall_is_before(now, job->expires_at);
}

/* Whether the change comes from the holder of a valid lease: token, worker, version and expiry. */
static bool is_from_holder(const struct pawli_job *job, const struct pawli_change *change)
{
    assert(change->worker != NULL);

    if (PAWLI_MUTANT(PAWLI_MUTANT_RELEASE_STALE) && change->event == PAWLI_EVENT_RELEASE)
        return true;
    bool is_token_right = pawli_token_is_equal(&job->token, &change->token);
    bool is_version_right = job->lease_version == change->version;
    bool is_valid = pawli_job_is_leased(job, change->now);
    if (PAWLI_MUTANT(PAWLI_MUTANT_TOKEN_UNCHECKED))
        is_token_right = is_version_right = true;
    if (PAWLI_MUTANT(PAWLI_MUTANT_TOKEN_PER_WORKER))
        is_version_right = true;
    if (PAWLI_MUTANT(PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY))
        is_valid = true;
    return is_token_right && is_version_right && is_valid &&
           strcmp(job->worker, change->worker) == 0;
}

static void clear_lease(struct pawli_job *job)
{
    memset(&job->token, 0, sizeof(job->token));
    memset(job->worker, 0, sizeof(job->worker));
    job->claimed_at = (pawl_wall){0};
    job->expires_at = (pawl_wall){0};
    job->run_until = (pawl_wall){0};
    job->unstarted_until = (pawl_wall){0};
    job->is_started = false;
    job->lease_ms = 0;
    job->timeout_ms = 0;
    job->fence = 0;
    job->is_cancel_asked = false;
}

/* ---------------------------------------------------------------- ends of attempts and of jobs */

/* A change on its way: the record as it will be, and its row. */
struct step {
    struct pawli_job job;
    struct pawli_ledger_row row;
    const struct pawli_job_rules *rules;
    const struct pawli_change *change;
    const pawl_random *random;
};

struct verdict {
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
};

/* Write the row, of the lease that ends here if there is one, and give up that lease. */
static void write_row(struct step *step, struct verdict verdict)
{
    struct pawli_job *job = &step->job;
    bool is_in_flight = job->state == PAWL_IN_FLIGHT;

    step->row.is_due = true;
    step->row.attempt_no = ++job->attempts;
    step->row.outcome = verdict.outcome;
    step->row.reason = verdict.reason;
    step->row.ended_by = verdict.ended_by;
    step->row.lease_version = is_in_flight ? job->lease_version : 0;
    memcpy(step->row.worker, job->worker, sizeof(step->row.worker));
    step->row.started_at = job->claimed_at;
    step->row.finished_at = step->change->now;
    job->reason = verdict.reason;
    clear_lease(job);
}

static void finish(struct step *step, struct verdict verdict)
{
    write_row(step, verdict);
    step->job.state = verdict.outcome == PAWL_DISPATCHED ? PAWL_SUCCEEDED : PAWL_FAILED;
    step->job.finished_at = step->change->now;
}

/* Back to Ready after an attempt. It did start, so its start-by deadline has been met for good. */
static void put_back(struct step *step, struct verdict verdict, int64_t delay_ms)
{
    write_row(step, verdict);
    step->job.state = PAWL_READY;
    step->job.due_at = pawli_wall_add_ms(step->change->now, delay_ms);
    step->job.start_by = (pawl_wall){0};
}

static int64_t draw_backoff_ms(const struct step *step, int64_t retries)
{
    return pawli_backoff_ms(step->rules->backoff_base_ms, step->rules->backoff_max_ms, retries,
                            step->random);
}

/* ---------------------------------------------------------------- one function per event */

/* How many leases, as granted at the claim, a job may wait unstarted beyond its timeout. */
#define UNSTARTED_LEASES 2

static pawl_code claim(struct step *step)
{
    struct pawli_job *job = &step->job;
    const struct pawli_change *change = step->change;
    assert(change->worker != NULL);
    assert(change->lease_ms > 0);
    assert(change->timeout_ms > 0);

    if (pawli_wall_is_before(change->now, job->due_at))
        return PAWL_NOT_DUE;
    if (pawli_wall_is_set(job->start_by) && !pawli_wall_is_before(change->now, job->start_by))
        return PAWL_MISSED;
    job->state = PAWL_IN_FLIGHT;
    if (!PAWLI_MUTANT(PAWLI_MUTANT_VERSION_STANDS))
        job->lease_version++; /* J2 */
    job->token = change->token;
    bool is_whole = pawli_text_copy(job->worker, sizeof(job->worker), change->worker);
    assert(is_whole);
    (void)is_whole; /* used by the assert only */
    job->claimed_at = change->now;
    job->expires_at = pawli_wall_add_ms(change->now, change->lease_ms);
    job->run_until = pawli_wall_add_ms(change->now, change->timeout_ms);
    job->unstarted_until = pawli_wall_add_ms(job->run_until, UNSTARTED_LEASES * change->lease_ms);
    job->lease_ms = change->lease_ms;
    job->timeout_ms = change->timeout_ms;
    job->fence = change->fence;
    return PAWL_OK;
}

static pawl_code renew(struct step *step)
{
    struct pawli_job *job = &step->job;
    const struct pawli_change *change = step->change;
    assert(change->lease_ms > 0);

    if (job->is_cancel_asked)
        return PAWL_CANCELLED;
    /* What has started stays so, and what waits does not wait for ever: otherwise a holder that
     * always says "unstarted" would never meet its timeout (RES-6). */
    if (change->is_unstarted && !job->is_started) {
        if (!pawli_wall_is_before(change->now, job->unstarted_until))
            return PAWL_TIMEOUT;
        job->run_until = pawli_wall_add_ms(change->now, job->timeout_ms);
    }
    if (!pawli_wall_is_before(change->now, job->run_until))
        return PAWL_TIMEOUT;
    job->is_started = job->is_started || !change->is_unstarted;
    /* Never shortened, also where the queue's lease has become shorter: RES-1, Q-EXTEND. */
    pawl_wall expires_at = pawli_wall_add_ms(change->now, change->lease_ms);
    if (pawli_wall_is_before(job->expires_at, expires_at))
        job->expires_at = expires_at;
    if (PAWLI_MUTANT(PAWLI_MUTANT_RENEW_SHORTENS))
        job->expires_at = pawli_wall_add_ms(change->now, change->lease_ms / 2);
    job->lease_ms = change->lease_ms;
    return PAWL_OK;
}

static pawl_code succeed(struct step *step)
{
    assert(step->change->reason == PAWL_REASON_NONE);
    /* Also where it is marked for cancellation: a valid settle that comes first wins (RES-13). */
    step->job.lost_in_a_row = 0;
    finish(step, (struct verdict){PAWL_DISPATCHED, PAWL_REASON_NONE, PAWL_ENDED_BY_HOLDER});
    return PAWL_OK;
}

static const struct verdict cancelled_by_holder = {PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED,
                                                   PAWL_ENDED_BY_HOLDER};

static pawl_code retry(struct step *step)
{
    struct pawli_job *job = &step->job;
    const struct pawli_change *change = step->change;
    assert(change->reason == PAWL_REASON_NONE || change->reason == PAWL_REASON_TIMEOUT);
    assert(change->delay_ms == PAWL_DEFAULT || change->delay_ms >= 0);

    job->lost_in_a_row = 0;
    if (job->is_cancel_asked) {
        finish(step, cancelled_by_holder);
        return PAWL_OK;
    }
    if (job->retries >= step->rules->max_retries && !PAWLI_MUTANT(PAWLI_MUTANT_RETRY_UNBOUNDED)) {
        finish(step,
               (struct verdict){PAWL_FAILED_FINAL, PAWL_REASON_EXHAUSTED, PAWL_ENDED_BY_HOLDER});
        return PAWL_OK;
    }
    int64_t delay_ms = change->delay_ms != PAWL_DEFAULT ? change->delay_ms
                                                        : draw_backoff_ms(step, job->retries);
    if (PAWLI_MUTANT(PAWLI_MUTANT_RETRY_NO_DELAY))
        delay_ms = 0;
    job->retries++;
    pawl_reason reason = change->reason == PAWL_REASON_TIMEOUT ? PAWL_REASON_TIMEOUT
                                                               : PAWL_REASON_ERROR;
    put_back(step, (struct verdict){PAWL_RETRYABLE, reason, PAWL_ENDED_BY_HOLDER}, delay_ms);
    return PAWL_OK;
}

static pawl_code fail(struct step *step)
{
    pawl_reason reason = step->change->reason;
    assert(reason == PAWL_REASON_NONE || reason == PAWL_REASON_CANCELLED);

    step->job.lost_in_a_row = 0;
    /* Who was not cancelled did not stop because of it: a ledger tells what was done. */
    if (!step->job.is_cancel_asked || reason == PAWL_REASON_NONE)
        reason = PAWL_REASON_FATAL;
    finish(step, (struct verdict){PAWL_FAILED_FINAL, reason, PAWL_ENDED_BY_HOLDER});
    return PAWL_OK;
}

static pawl_code snooze(struct step *step)
{
    pawl_reason reason = step->change->reason;
    assert(reason == PAWL_REASON_NONE || reason == PAWL_REASON_SHUTDOWN);
    assert(step->change->delay_ms >= 0);

    step->job.lost_in_a_row = 0;
    if (step->job.is_cancel_asked) {
        finish(step, cancelled_by_holder);
        return PAWL_OK;
    }
    reason = reason == PAWL_REASON_NONE ? PAWL_REASON_SNOOZE : reason;
    put_back(step, (struct verdict){PAWL_RETRYABLE, reason, PAWL_ENDED_BY_HOLDER},
             step->change->delay_ms);
    return PAWL_OK;
}

/* Given back unstarted: nothing was tried, so nothing is counted and no row is written (RES-12). */
static pawl_code release(struct step *step)
{
    struct pawli_job *job = &step->job;
    pawl_wall now = step->change->now;

    if (job->is_cancel_asked) {
        finish(step, cancelled_by_holder);
        return PAWL_OK;
    }
    if (PAWLI_MUTANT(PAWLI_MUTANT_RELEASE_COUNTS_LOST)) {
        job->lost_leases++;
        job->lost_in_a_row++;
    }
    job->state = PAWL_READY;
    /* It was due when it was claimed, and stays so even where the clock has gone back since. */
    if (pawli_wall_is_before(now, job->due_at))
        job->due_at = now;
    clear_lease(job);
    return PAWL_OK;
}

static pawl_code expire(struct step *step)
{
    struct pawli_job *job = &step->job;
    if (pawli_job_is_leased(job, step->change->now))
        return PAWL_NOT_EXPIRED;

    if (!PAWLI_MUTANT(PAWLI_MUTANT_LOST_NOT_COUNTED)) {
        job->lost_leases++;
        job->lost_in_a_row++;
    }
    if (job->is_cancel_asked) {
        finish(step,
               (struct verdict){PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_EXPIRY});
    } else if (job->lost_leases >= step->rules->max_lost_leases) {
        finish(step, (struct verdict){PAWL_FAILED_FINAL, PAWL_REASON_POISON, PAWL_ENDED_BY_EXPIRY});
    } else {
        /* From the second loss in a row on it waits, so as not to fell one worker after the other
         * (RES-5). */
        int64_t delay_ms = job->lost_in_a_row >= 2 ? draw_backoff_ms(step, job->lost_in_a_row - 2)
                                                   : 0;
        if (PAWLI_MUTANT(PAWLI_MUTANT_LOSS_NO_DELAY))
            delay_ms = 0;
        put_back(step,
                 (struct verdict){PAWL_ZOMBIE_REQUEUE, PAWL_REASON_EXPIRED, PAWL_ENDED_BY_EXPIRY},
                 delay_ms);
    }
    if (PAWLI_MUTANT(PAWLI_MUTANT_EXPIRY_NO_ROW)) {
        job->attempts--;
        memset(&step->row, 0, sizeof(step->row));
    }
    return PAWL_OK;
}

static pawl_code cancel(struct step *step)
{
    if (step->job.state == PAWL_IN_FLIGHT)
        step->job.is_cancel_asked = true; /* its holder learns it at the next renewal: RES-13 */
    else
        finish(step,
               (struct verdict){PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_OPERATOR});
    return PAWL_OK;
}

static pawl_code redrive(struct step *step)
{
    struct pawli_job *job = &step->job;
    if (job->is_discarded)
        return PAWL_GONE; /* there is no payload left to work on */
    job->state = PAWL_READY;
    job->retries = 0;
    job->lost_leases = 0;
    job->lost_in_a_row = 0;
    job->due_at = step->change->now;
    job->start_by = (pawl_wall){0};
    job->finished_at = (pawl_wall){0};
    return PAWL_OK;
}

static pawl_code discard(struct step *step)
{
    step->job.is_discarded = true;
    return PAWL_OK;
}

static pawl_code miss(struct step *step)
{
    if (!pawli_wall_is_set(step->job.start_by) ||
        pawli_wall_is_before(step->change->now, step->job.start_by))
        return PAWL_NOT_MISSED;
    finish(step, (struct verdict){PAWL_FAILED_FINAL, PAWL_REASON_START_BY, PAWL_ENDED_BY_DEADLINE});
    return PAWL_OK;
}

/* ---------------------------------------------------------------- the one function */

struct event_rule {
    pawl_code (*apply)(struct step *step);
    bool is_fenced; /* only the holder of a valid lease may do it */
};

static const struct event_rule event_rules[PAWLI_EVENTS] = {
    [PAWLI_EVENT_CLAIM] = {claim, false},     [PAWLI_EVENT_RENEW] = {renew, true},
    [PAWLI_EVENT_SUCCEED] = {succeed, true},  [PAWLI_EVENT_RETRY] = {retry, true},
    [PAWLI_EVENT_FAIL] = {fail, true},        [PAWLI_EVENT_SNOOZE] = {snooze, true},
    [PAWLI_EVENT_RELEASE] = {release, true},  [PAWLI_EVENT_EXPIRE] = {expire, false},
    [PAWLI_EVENT_CANCEL] = {cancel, false},   [PAWLI_EVENT_REDRIVE] = {redrive, false},
    [PAWLI_EVENT_DISCARD] = {discard, false}, [PAWLI_EVENT_MISS] = {miss, false},
};

pawl_code pawli_job_change(struct pawli_job *job, const struct pawli_job_rules *rules,
                           const struct pawli_change *change, const pawl_random *random,
                           struct pawli_ledger_row *ret_row)
{
    assert(job != NULL && rules != NULL && change != NULL && random != NULL && ret_row != NULL);
    assert(pawli_wall_is_set(change->now)); /* it becomes claimed_at, finished_at: 0 means none */

    pawl_code rc = pawli_job_allows(job->state, change->event);
    if (rc != PAWL_OK)
        return rc;
    if (event_rules[change->event].is_fenced && !is_from_holder(job, change))
        return PAWL_STALE;

    /* Worked on as a copy: a refusal on the way leaves the record as it was. */
    struct step step = {.job = *job, .rules = rules, .change = change, .random = random};
    rc = event_rules[change->event].apply(&step);
    if (rc != PAWL_OK)
        return rc;

    assert((step.job.state == PAWL_IN_FLIGHT) == (step.job.worker[0] != '\0')); /* J1 */
    assert(step.job.lease_version >= job->lease_version);                       /* J2 */
    assert(step.job.attempts == job->attempts + (step.row.is_due ? 1 : 0));     /* J3 */
    assert((step.job.state == PAWL_SUCCEEDED || step.job.state == PAWL_FAILED) ==
           pawli_wall_is_set(step.job.finished_at)); /* J4 */
    *job = step.job;
    *ret_row = step.row;
    return PAWL_OK;
}

/* ---------------------------------------------------------------- ordering keys */

enum pawli_key_step pawli_job_key_step(pawl_state before, pawl_state after)
{
    bool was_live = before == PAWL_READY || before == PAWL_IN_FLIGHT;
    bool is_live = after == PAWL_READY || after == PAWL_IN_FLIGHT;
    if (was_live == is_live)
        return PAWLI_KEY_STAYS;
    return is_live ? PAWLI_KEY_JOINS : PAWLI_KEY_LEAVES;
}

/* ---------------------------------------------------------------- rows */

enum pawli_event pawli_event_of(pawl_settle_action action)
{
    switch (action) {
    case PAWL_SUCCEED:
        return PAWLI_EVENT_SUCCEED;
    case PAWL_RETRY:
        return PAWLI_EVENT_RETRY;
    case PAWL_FAIL:
        return PAWLI_EVENT_FAIL;
    case PAWL_SNOOZE:
        return PAWLI_EVENT_SNOOZE;
    }
    assert(false && "no such settle action");
    return PAWLI_EVENTS;
}

bool pawli_job_is_replay(pawl_settle_action action, const struct pawli_ledger_row *row)
{
    assert(row != NULL);

    if (row->ended_by != PAWL_ENDED_BY_HOLDER)
        return false;
    bool is_final = row->outcome == PAWL_FAILED_FINAL;
    bool is_back = row->outcome == PAWL_RETRYABLE;
    bool is_cancelled = is_final && row->reason == PAWL_REASON_CANCELLED;
    switch (action) {
    case PAWL_SUCCEED:
        return row->outcome == PAWL_DISPATCHED;
    case PAWL_RETRY:
        return is_cancelled || (is_final && row->reason == PAWL_REASON_EXHAUSTED) ||
               (is_back &&
                (row->reason == PAWL_REASON_ERROR || row->reason == PAWL_REASON_TIMEOUT));
    case PAWL_FAIL:
        return is_cancelled || (is_final && row->reason == PAWL_REASON_FATAL);
    case PAWL_SNOOZE:
        return is_cancelled || (is_back && (row->reason == PAWL_REASON_SNOOZE ||
                                            row->reason == PAWL_REASON_SHUTDOWN));
    }
    return false;
}

pawl_state pawli_row_state(const struct pawli_ledger_row *row)
{
    assert(row != NULL);
    switch (row->outcome) {
    case PAWL_DISPATCHED:
        return PAWL_SUCCEEDED;
    case PAWL_FAILED_FINAL:
        return PAWL_FAILED;
    case PAWL_RETRYABLE:
    case PAWL_ZOMBIE_REQUEUE:
        break;
    }
    return PAWL_READY;
}

/* ---------------------------------------------------------------- names */

static const char *const state_names[] = {"Ready", "InFlight", "Succeeded", "Failed"};
static const char *const outcome_names[] = {"DISPATCHED", "RETRYABLE", "FAILED", "ZOMBIE_REQUEUE"};
static const char *const reason_names[] = {"none",    "error",     "exhausted", "fatal",
                                           "timeout", "snooze",    "shutdown",  "expired",
                                           "poison",  "cancelled", "start_by"};
static const char *const ended_by_names[] = {"holder", "expiry", "operator", "deadline"};

#define NAME_IN(names, number) \
    ((size_t)(number) < sizeof(names) / sizeof((names)[0]) ? (names)[(size_t)(number)] : "?")

const char *pawl_state_name(pawl_state state)
{
    return NAME_IN(state_names, state);
}

const char *pawl_outcome_name(pawl_outcome outcome)
{
    return NAME_IN(outcome_names, outcome);
}

const char *pawl_reason_name(pawl_reason reason)
{
    return NAME_IN(reason_names, reason);
}

const char *pawl_ended_by_name(pawl_ended_by ended_by)
{
    return NAME_IN(ended_by_names, ended_by);
}
