/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * demo.c - `pawl demo`: the story of three jobs on a store in memory, with a clock turned by hand.
 * Owns:  what is asked of the store, and what must come back for the story to be true.
 * Never: tells what the store did not answer (demo_tell.c has the words); waits; shows a token.
 */
#include "cli/command.h"
#include "cli/demo_tell.h"

#include "base/clock.h"
#include "base/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#define SEED         7
#define BEGINS_AT_US (INT64_C(1767225600) * 1000000) /* 2026-01-01T00:00:00Z, in every run */
#define LEDGER_MAX   8
#define QUEUES_MAX   8
#define ATTEMPTS_MAX 8 /* a job that is not dead by then breaks the story */

/* Each function below that returns a bool has failed where it is false, and `err` says why. */
struct demo {
    struct pawli_manual_clock clock;
    pawl_clock as_clock;
    struct pawli_seeded seeded;
    pawl_random as_random;
    pawl_memory *memory;
    pawl_store *store;
    struct pawli_teller teller;
    pawl_err err;
};

/* The store's answer has no place in the story: say what it was. Always false. */
__attribute__((format(printf, 2, 3))) static bool is_broken(struct demo *demo, const char *format,
                                                            ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(demo->err.text, sizeof(demo->err.text), format, args); /* cut is fine */
    va_end(args);
    return false;
}

/* ---- asking the store, and telling the answer */

/* Tell a step with the store's own time in it. */
static bool tell(struct demo *demo, struct pawli_told told)
{
    if (pawl_now(demo->store, &told.at, &demo->err) != PAWL_OK)
        return false;
    pawli_tell_step(&demo->teller, &told);
    return true;
}

static bool turn(struct demo *demo, int64_t ms)
{
    pawli_manual_clock_turn_ms(&demo->clock, ms);
    return tell(demo, (struct pawli_told){.step = "turn", .turned_ms = ms});
}

static bool enqueue(struct demo *demo, const pawl_enqueue_row *row, pawl_id *ret_id)
{
    pawl_enqueued result;
    pawl_job job;
    if (pawl_enqueue(demo->store, row, 1, &result, &demo->err) != PAWL_OK)
        return false;
    if (result.code != PAWL_OK)
        return is_broken(demo, "a new job was answered %s", pawl_code_name(result.code));
    if (pawl_get(demo->store, &result.id, &job, &demo->err) != PAWL_OK)
        return false;
    const char *state = pawl_state_name(job.state);
    pawl_job_clear(&job);
    *ret_id = result.id;
    return tell(demo, (struct pawli_told){.step = "enqueue",
                                          .answer = pawl_code_name(result.code),
                                          .state = state});
}

/* Who claims, and from where. */
struct claimer {
    const char *worker;
    const char *queue;
};

/* Claim one job, or find that nothing is due. */
static bool claim(struct demo *demo, struct claimer claimer, pawl_lease *ret_lease,
                  bool *ret_is_given)
{
    pawl_claim_line line = {.queue = claimer.queue, .jobs_max = 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = claimer.worker, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job job;
    size_t count = 0;
    pawl_code rc = pawl_claim(demo->store, &args, &job, 1, &count, &demo->err);
    if (rc != PAWL_OK)
        return false;
    *ret_is_given = count == 1;
    if (count == 0)
        return tell(demo, (struct pawli_told){.step = "claim",
                                              .worker = claimer.worker,
                                              .answer = "none",
                                              .note = "nothing is due"});
    struct pawli_told told = {
        .step = "claim",
        .worker = claimer.worker,
        .answer = pawl_code_name(rc),
        .state = pawl_state_name(job.state),
        .version = job.lease_version,
        .expires_at = job.expires_at,
    };
    *ret_lease = (pawl_lease){
        .job = job.id, .token = job.token, .version = job.lease_version, .place = job.place};
    pawl_job_clear(&job);
    return tell(demo, told);
}

/* Claim one job that must be due. */
static bool claim_due(struct demo *demo, struct claimer claimer, pawl_lease *ret_lease)
{
    bool is_given = false;
    if (!claim(demo, claimer, ret_lease, &is_given))
        return false;
    return is_given || is_broken(demo, "a claim gave nothing, although a job is due");
}

/* Settle one job; the verdict must be `expected`. */
static bool settle(struct demo *demo, const char *worker, const pawl_settle_row *row,
                   pawl_code expected, pawl_settled *ret_settled)
{
    if (pawl_settle(demo->store, worker, row, 1, ret_settled, &demo->err) != PAWL_OK)
        return false;
    struct pawli_told told = {
        .step = "settle", .worker = worker, .answer = pawl_code_name(ret_settled->code)};
    if (ret_settled->code == PAWL_OK) {
        told.state = pawl_state_name(ret_settled->state);
        told.attempt_no = ret_settled->attempt_no;
        told.due_at = ret_settled->due_at;
    } else {
        told.note = pawl_code_text(ret_settled->code);
    }
    if (!tell(demo, told))
        return false;
    return ret_settled->code == expected ||
           is_broken(demo, "a settle was answered %s", pawl_code_name(ret_settled->code));
}

static bool succeed(struct demo *demo, const char *worker, const pawl_lease *lease,
                    pawl_code expected)
{
    pawl_settle_row row;
    pawl_settled settled;
    pawl_settle_init(&row);
    row.lease = *lease;
    row.action = PAWL_SUCCEED;
    return settle(demo, worker, &row, expected, &settled);
}

/* Let the reaper recover the one lease that has expired. */
static bool reap(struct demo *demo, const pawl_id *id)
{
    pawl_reaped reaped;
    size_t count = 0;
    if (pawl_reap(demo->store, &reaped, 1, &count, &demo->err) != PAWL_OK)
        return false;
    if (count != 1 || pawl_id_compare(&reaped.job, id) != 0)
        return is_broken(demo, "the reaper did not find the lost job");
    return tell(demo, (struct pawli_told){.step = "reap",
                                          .worker = reaped.worker,
                                          .answer = pawl_reason_name(reaped.reason),
                                          .state = pawl_state_name(reaped.state),
                                          .version = reaped.lease_version,
                                          .due_at = reaped.due_at});
}

/* End a story with the job as the store has it now; it must have come to `expected`. */
static bool tell_job(struct demo *demo, const pawl_id *id, pawl_state expected)
{
    pawl_attempt rows[LEDGER_MAX];
    size_t rows_count = 0;
    pawl_job job;
    if (pawl_attempts(demo->store, id, 0, rows, LEDGER_MAX, &rows_count, &demo->err) != PAWL_OK ||
        pawl_get(demo->store, id, &job, &demo->err) != PAWL_OK)
        return false;
    pawli_tell_job(&demo->teller, &job, rows, rows_count);
    pawl_state state = job.state;
    pawl_job_clear(&job);
    return state == expected || is_broken(demo, "the job ended as %s", pawl_state_name(state));
}

/* ---- the three stories */

static bool story_of_success(struct demo *demo)
{
    static const char payload[] = "welcome, new reader";
    pawl_enqueue_row row;
    pawl_id id;
    pawl_lease lease;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = payload;
    row.payload_len = sizeof(payload) - 1;

    pawli_tell_story(&demo->teller, "A job that succeeds");
    return enqueue(demo, &row, &id) &&
           claim_due(demo, (struct claimer){"worker-a", "mail"}, &lease) && turn(demo, 1200) &&
           succeed(demo, "worker-a", &lease, PAWL_OK) && tell_job(demo, &id, PAWL_SUCCEEDED);
}

/* One attempt of a job whose handler fails. */
static bool fail_once(struct demo *demo, struct claimer claimer, pawl_settled *ret_settled)
{
    pawl_settle_row row;
    pawl_settle_init(&row);
    row.action = PAWL_RETRY;
    row.error_code = "CARD-DECLINED";
    row.error_text = "the bank said no";
    return claim_due(demo, claimer, &row.lease) && turn(demo, 300) &&
           settle(demo, claimer.worker, &row, PAWL_OK, ret_settled);
}

/* Between two attempts: not claimable a moment before its due time. Ends at the due time. */
static bool wait_until_due(struct demo *demo, struct claimer claimer, pawl_wall due_at)
{
    int64_t left_ms = pawli_wall_diff_ms(demo->clock.wall, due_at);
    if (left_ms <= 1) /* full jitter may give next to no delay */
        return left_ms <= 0 || turn(demo, left_ms);
    pawl_lease lease;
    bool is_given = false;
    if (!turn(demo, left_ms - 1) || !claim(demo, claimer, &lease, &is_given))
        return false;
    if (is_given)
        return is_broken(demo, "a claim gave a job before its due time");
    return turn(demo, 1);
}

static bool story_of_retries(struct demo *demo)
{
    const struct claimer claimer = {"worker-a", "billing"};
    pawl_enqueue_row row;
    pawl_id id;
    pawl_settled settled = {.state = PAWL_READY};
    pawl_enqueue_init(&row);
    row.queue = claimer.queue;
    row.max_retries = 2;

    pawli_tell_story(&demo->teller, "A job that fails, and is retried until it is dead");
    if (!enqueue(demo, &row, &id))
        return false;
    for (int i = 0; settled.state == PAWL_READY; i++) {
        if (i == ATTEMPTS_MAX)
            return is_broken(demo, "a job was retried without end");
        if (i > 0 && !wait_until_due(demo, claimer, settled.due_at))
            return false;
        if (!fail_once(demo, claimer, &settled))
            return false;
    }
    return tell_job(demo, &id, PAWL_FAILED);
}

static bool story_of_a_lost_worker(struct demo *demo)
{
    pawl_enqueue_row row;
    pawl_id id;
    pawl_lease lost, held;
    pawl_enqueue_init(&row);
    row.queue = "reports";

    pawli_tell_story(&demo->teller,
                     "A job that loses its worker, and a completion that comes too late");
    return enqueue(demo, &row, &id) &&
           claim_due(demo, (struct claimer){"worker-a", "reports"}, &lost) &&
           turn(demo, 31000) && /* worker-a is silent for longer than its lease */
           reap(demo, &id) && claim_due(demo, (struct claimer){"worker-b", "reports"}, &held) &&
           turn(demo, 2000) &&
           succeed(demo, "worker-a", &lost, PAWL_STALE) && /* while worker-b holds the job */
           succeed(demo, "worker-b", &held, PAWL_OK) &&
           succeed(demo, "worker-a", &lost, PAWL_STALE) && /* and after it has completed it */
           tell_job(demo, &id, PAWL_SUCCEEDED);
}

/* ---- the whole */

static bool open_store(struct demo *demo)
{
    demo->clock.wall.us = BEGINS_AT_US;
    demo->as_clock = pawli_manual_clock_as_clock(&demo->clock);
    demo->seeded.state = SEED;
    demo->as_random = pawli_seeded_as_random(&demo->seeded);
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.clock = &demo->as_clock;
    options.random = &demo->as_random;
    return pawl_memory_new(&options, &demo->memory, &demo->err) == PAWL_OK &&
           pawl_memory_open(demo->memory, &demo->store, &demo->err) == PAWL_OK;
}

static bool tell_queues(struct demo *demo)
{
    pawl_stats rows[QUEUES_MAX];
    size_t rows_count = 0;
    if (pawl_queue_stats(demo->store, NULL, rows, QUEUES_MAX, &rows_count, &demo->err) != PAWL_OK)
        return false;
    pawli_tell_end(&demo->teller, rows, rows_count);
    return true;
}

static bool tell_all(struct demo *demo, FILE *out, bool is_json)
{
    if (!open_store(demo))
        return false;
    pawli_tell_begin(&demo->teller, out, is_json, demo->clock.wall);
    return story_of_success(demo) && story_of_retries(demo) && story_of_a_lost_worker(demo) &&
           tell_queues(demo);
}

static int run_demo(const struct pawli_line *line)
{
    bool is_json = pawli_line_has(line, "--json");
    /* Told into memory first: half a JSON document is worth nothing. */
    char *told = NULL;
    size_t told_len = 0;
    FILE *out = open_memstream(&told, &told_len);
    if (out == NULL) {
        (void)fputs("pawl demo: memory ran out\n", stderr);
        return EX_OSERR;
    }
    struct demo demo = {.store = NULL};
    bool is_whole = tell_all(&demo, out, is_json);
    pawl_store_close(demo.store);
    pawl_memory_free(demo.memory);

    if (fclose(out) != 0 && is_whole)
        is_whole = is_broken(&demo, "memory ran out");
    if (is_whole || !is_json)
        (void)fwrite(told, 1, told_len, stdout); /* main asks the stream for its errors */
    free(told);
    if (is_whole)
        return EX_OK;
    (void)fprintf(stderr, "pawl demo: %s\n", demo.err.text);
    return EX_SOFTWARE;
}

static const struct pawli_option options[] = {PAWLI_OPTION_JSON, {0}};

const struct pawli_command pawli_command_demo = {
    .name = "demo",
    .about = "tell the story of three jobs on a store in memory",
    .options = options,
    .details = "One job succeeds; one fails and is retried until it is dead; one loses its worker, "
               "is recovered, and the late completion of the first worker is refused. The clock is "
               "turned by hand and the random numbers are seeded: every run tells the same.",
    .examples = "pawl demo --json\n",
    .run = run_demo,
};
