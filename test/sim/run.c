/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run.c - a seed from its plan to its verdict.
 * Owns:  running a seed twice, comparing the two, and handing the history to the checker.
 * Never: judges a history itself.
 */
#include "sim/run.h"

#include "core/mutant.h"
#include "sim/check.h"

#include "sim/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DRIFT_APART_PPM 20500 /* one clock 1 % fast, the other 1 % slow */
#define REAPS_IN_A_ROW  100   /* a reaper with small batches needs that many calls for a crowd */

static uint64_t hash_of(const uint8_t *bytes, size_t bytes_len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= bytes_len; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; i < bytes_len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

static void violated(struct sim_outcome *outcome, const char *rule, const char *text)
{
    if (!outcome->is_ok)
        return;
    outcome->is_ok = false;
    snprintf(outcome->rule, sizeof(outcome->rule), "%s", rule);
    snprintf(outcome->text, sizeof(outcome->text), "%s", text);
}

bool sim_outcome_has_broken(const struct sim_outcome *outcome, const char *rule)
{
    for (int i = 1; i < CHECK_RULES_COUNT; i++) {
        if (strcmp(check_rule_number((enum check_rule)i), rule) == 0 && outcome->broken >> i & 1)
            return true;
    }
    return !outcome->is_ok && strcmp(outcome->rule, rule) == 0;
}

/* ---------------------------------------------------------------- the history */

static void print_history(const uint8_t *bytes, size_t bytes_len, FILE *out)
{
    struct pawli_trace_reader *reader = NULL;
    struct pawli_trace_record record;
    bool has_more = true;
    pawl_err err;
    sim_must(pawli_trace_reader_new(bytes, bytes_len, &reader, &err), &err, "reader");
    for (;;) {
        sim_must(pawli_trace_read(reader, &record, &has_more, &err), &err, "read");
        if (!has_more)
            break;
        pawli_trace_print(&record, out);
    }
    pawli_trace_reader_free(reader);
}

/* What the checker may take for granted, given what this seed has drawn. */
static struct check_options options_of(const struct sim_plan *plan)
{
    bool is_drifting = plan->is_on[SIM_CLASS_STORE_DRIFT] || plan->is_on[SIM_CLASS_WORKER_DRIFT];
    int64_t round_trip_ms = 2 * plan->latency_us / 1000 + 2;
    return (struct check_options){
        .is_exact = true,
        .is_complete = true,
        .must_drain = true,
        .drift_ppm = is_drifting ? DRIFT_APART_PPM : 0,
        .round_trip_ms = round_trip_ms,
        .reaper_ms = plan->reap_interval_ms + REAPS_IN_A_ROW * round_trip_ms,
        .recover_ms = sim_swarm_call_ms(plan) + round_trip_ms,
        .calm_ms = sim_swarm_calm_ms(plan),
    };
}

static void judge(const struct sim_plan *plan, const struct sim_run_args *args,
                  const struct check_part *history, struct sim_outcome *outcome)
{
    struct check_options options = options_of(plan);
    struct check_report *report = malloc(sizeof(*report));
    pawl_err err;
    if (report == NULL)
        abort();
    sim_must(check_history(history->bytes, history->len, &options, report, &err), &err, "check");
    outcome->records = report->records;
    for (int i = 0; i < CHECK_RULES_COUNT && outcome->is_ok; i++)
        outcome->broken |= (uint64_t)report->is_broken[i] << i;
    if (report->kept > 0) {
        const struct check_violation *violation = &report->violations[0];
        char id[PAWL_ID_TEXT_MAX];
        char text[SIM_TEXT_MAX];
        snprintf(text, sizeof(text), "%s: job %s version %" PRId64 " at %" PRId64 " us: %s",
                 check_rule_name(violation->rule), pawl_id_format(&violation->job, id),
                 violation->version, violation->at.us, violation->text);
        violated(outcome, check_rule_number(violation->rule), text);
    }
    if (args->print != NULL)
        check_report_print(report, args->print);
    free(report);
}

/* ---------------------------------------------------------------- runs */

/* One life of a world. Gives its outcome without the checker's word, and the hash of its history.
 */
static void run_world(const struct sim_plan *plan, const struct sim_run_args *args, bool is_first,
                      struct sim_outcome *outcome)
{
    struct sim_world *world = malloc(sizeof(*world));
    pawl_err err;
    size_t bytes_len = 0;
    if (world == NULL)
        abort();
    pawli_testpoints.mutant = args->mutant;
    sim_world_init(world, plan);
    sim_world_live(world);
    pawli_testpoints.mutant = 0;
    sim_must(pawli_trace_flush(world->writer, &err), &err, "history");
    const uint8_t *bytes = pawli_trace_bytes(world->writer, &bytes_len);

    *outcome = (struct sim_outcome){
        .is_ok = true,
        .hash = hash_of(bytes, bytes_len),
        .virtual_us = world->now_us - SIM_START_US,
        .jobs = world->jobs_count,
        .events = world->steps,
        .tallies = world->tallies,
    };
    if (is_first) {
        if (args->print != NULL)
            print_history(bytes, bytes_len, args->print);
        if (args->save != NULL)
            fwrite(bytes, 1, bytes_len, args->save);
        /* A run that was broken off has a history without an end: the checker would speak of what
         * is missing. One that does not drain is whole, and the checker may know why. */
        if (world->is_broken_off)
            violated(outcome, world->rule, world->failure);
        judge(plan, args, &(struct check_part){bytes, bytes_len}, outcome);
        if (world->is_failed)
            violated(outcome, world->rule, world->failure);
    }
    sim_world_clear(world);
    free(world);
}

void sim_run(const struct sim_run_args *args, struct sim_outcome *ret_outcome)
{
    struct sim_plan plan;
    struct sim_outcome again;
    sim_swarm_draw(&plan, args->seed, args->favour);
    run_world(&plan, args, true, ret_outcome);
    if (args->is_once)
        return;
    /* Memory lies elsewhere in the second run: nothing may depend on addresses. The places of the
     * first one are taken (volatile, since a compiler may leave out what is not looked at). */
    void *volatile taken[] = {malloc(sizeof(struct sim_world)),
                              malloc(1 + (size_t)(args->seed * 4099 % 100000))};
    run_world(&plan, args, false, &again);
    free(taken[0]);
    free(taken[1]);
    if (again.hash != ret_outcome->hash || again.events != ret_outcome->events)
        violated(ret_outcome, "DETERMINISM", "the second run of this seed went another way");
}

void sim_run_describe(uint64_t seed, int favour, FILE *out)
{
    struct sim_plan plan;
    sim_swarm_draw(&plan, seed, favour);
    fprintf(out,
            "seed %" PRIu64 ": %" PRId64 " min, %u workers, %u reapers, %u producers, %u "
            "queues, up to %" PRId64 " jobs; leases %" PRId64 " to %" PRId64 " ms; latency %" PRId64
            " us; on:",
            seed, plan.chaos_ms / 60000, plan.workers, plan.reapers, plan.producers, plan.queues,
            plan.jobs_max, plan.lease_smallest_ms, plan.lease_largest_ms, plan.latency_us);
    for (uint32_t i = 0; i < SIM_CLASSES; i++) {
        if (plan.is_on[i])
            fprintf(out, " %s", sim_class_name((enum sim_class)i));
    }
    fputc('\n', out);
}
