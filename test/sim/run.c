/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run.c - a seed from its plan to its verdict.
 * Owns:  running a seed twice, comparing the two, and handing the history to the checker.
 * Never: judges a history itself.
 */
#include "sim/run.h"

#include "core/mutant.h"

#include "sim/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static void check_history(const uint8_t *bytes, size_t bytes_len, struct sim_outcome *outcome)
{
    (void)bytes;
    (void)bytes_len;
    (void)outcome;
    (void)violated;
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
        /* What the checker sees comes first: it names the rule that a bug breaks. */
        check_history(bytes, bytes_len, outcome);
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
    sim_swarm_draw(&plan, args->seed, args->mutant);
    run_world(&plan, args, true, ret_outcome);
    if (args->is_once)
        return;
    /* Memory lies elsewhere in the second run: nothing may depend on addresses. */
    void *shift = malloc(1 + (size_t)(args->seed * 4099 % 100000));
    run_world(&plan, args, false, &again);
    free(shift);
    if (again.hash != ret_outcome->hash || again.events != ret_outcome->events)
        violated(ret_outcome, "DETERMINISM", "the second run of this seed went another way");
}

void sim_run_describe(uint64_t seed, int mutant, FILE *out)
{
    struct sim_plan plan;
    sim_swarm_draw(&plan, seed, mutant);
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
