/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump_life.c - how a pump comes into being, what its settings are, and how it goes.
 * Owns:  all its memory: nothing is allocated per call but for the texts of errors.
 * Never: starts a thread that it cannot end.
 */
#include "runtime/pump_inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SIGNALS_PER_SLOT 8 /* more than a slot can cause before the owner's thread has its turn */
#define TABLE_PARTS      3 /* as the keeper sizes its own */

/* ---------------------------------------------------------------- life */

static bool new_lane(const struct pawli_pump *pump, struct lane *lane)
{
    struct order *orders[] = {&lane->next, &lane->out};
    for (size_t i = 0; i < 2; i++) {
        orders[i]->lines = calloc(pump->lines_max, sizeof(*orders[i]->lines));
        orders[i]->items = calloc(pump->slots, sizeof(*orders[i]->items));
        if (orders[i]->lines == NULL || orders[i]->items == NULL)
            return false;
    }
    return true;
}

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool new_caller(struct pawli_pump *pump, struct caller *caller)
{
    size_t row = largest(sizeof(pawl_renew_row),
                         largest(sizeof(pawl_settle_row), sizeof(pawl_lease)));
    size_t result = largest(sizeof(pawl_renewed), largest(sizeof(pawl_settled), sizeof(pawl_code)));
    caller->verdicts = calloc(pump->slots, sizeof(*caller->verdicts));
    caller->rows = calloc(pump->slots, row);
    caller->results = calloc(pump->slots, result);
    if (caller->verdicts == NULL || caller->rows == NULL || caller->results == NULL)
        return false;
    if ((caller->lanes & (1u << LANE_CLAIM)) == 0)
        return true;
    caller->jobs = calloc(pump->jobs_max, sizeof(*caller->jobs));
    caller->grants = calloc(pump->jobs_max, sizeof(*caller->grants));
    caller->slots = calloc(pump->jobs_max, sizeof(*caller->slots));
    caller->claim_lines = calloc(pump->lines_max, sizeof(*caller->claim_lines));
    caller->claim_names = calloc(pump->lines_max, sizeof(*caller->claim_names));
    return caller->jobs != NULL && caller->grants != NULL && caller->slots != NULL &&
           caller->claim_lines != NULL && caller->claim_names != NULL;
}

static bool new_tables(struct pawli_pump *pump)
{
    pump->slots = pawli_keeper_slots(pump->keeper);
    pump->jobs_max = pump->slots / TABLE_PARTS < PAWL_BATCH_MAX ? pump->slots / TABLE_PARTS
                                                                : PAWL_BATCH_MAX;
    pump->signals_max = SIGNALS_PER_SLOT * pump->slots;
    pump->held = calloc(pump->slots, sizeof(*pump->held));
    pump->signals = calloc(pump->signals_max, sizeof(*pump->signals));
    bool is_made = pump->held != NULL && pump->signals != NULL;
    for (size_t i = 0; i < LANES && is_made; i++)
        is_made = new_lane(pump, &pump->lanes[i]);
    for (size_t i = 0; i < PAWLI_PUMP_THREADS && is_made; i++)
        is_made = new_caller(pump, &pump->callers[i]);
    return is_made;
}

static bool new_locks(struct pawli_pump *pump)
{
    if (pthread_mutex_init(&pump->mutex, NULL) != 0)
        return false;
    if (!pawli_cond_init(&pump->signalled))
        goto no_cond;
    size_t made = 0;
    while (made < PAWLI_PUMP_THREADS && pawli_cond_init(&pump->callers[made].ordered))
        made++;
    if (made == PAWLI_PUMP_THREADS)
        return true;
    while (made-- > 0)
        (void)pthread_cond_destroy(&pump->callers[made].ordered); /* nobody waits */
    (void)pthread_cond_destroy(&pump->signalled);
no_cond:
    (void)pthread_mutex_destroy(&pump->mutex); /* nobody has it */
    return false;
}

static void set_up(struct pawli_pump *pump, const struct pawli_pump_config *config)
{
    static const struct {
        const char *thread_name;
        unsigned lanes;
        pawl_role role;
    } callers[PAWLI_PUMP_THREADS] = {
        {"pawl-claimer", 1u << LANE_CLAIM, PAWL_ROLE_CLAIMER},
        {"pawl-settler", 1u << LANE_SETTLE | 1u << LANE_RELEASE, PAWL_ROLE_SETTLER},
        {"pawl-renewer", 1u << LANE_RENEW, PAWL_ROLE_RENEWER},
    };
    (void)pawli_text_copy(pump->worker, sizeof(pump->worker), config->worker); /* it fits */
    pump->clock = config->clock;
    pump->watch = config->watch;
    pump->notes = config->notes;
    pump->wake = config->wake;
    pump->user = config->user;
    pump->table = config->settings->parallel_max + config->settings->buffer_max;
    pump->owner_until = PAWLI_MONO_NEVER;
    for (size_t i = 0; i < PAWLI_PUMP_THREADS; i++) {
        pump->callers[i].pump = pump;
        pump->callers[i].thread_name = callers[i].thread_name;
        pump->callers[i].lanes = callers[i].lanes;
        pump->callers[i].link.opener = config->opener;
        pump->callers[i].link.role = callers[i].role;
    }
}

static void free_tables(struct pawli_pump *pump)
{
    for (size_t i = 0; i < LANES; i++) {
        free(pump->lanes[i].next.lines);
        free(pump->lanes[i].next.items);
        free(pump->lanes[i].out.lines);
        free(pump->lanes[i].out.items);
    }
    for (size_t i = 0; i < PAWLI_PUMP_THREADS; i++) {
        struct caller *caller = &pump->callers[i];
        pawli_link_close(&caller->link);
        pawli_buffer_clear(&caller->texts);
        free(caller->verdicts);
        free(caller->rows);
        free(caller->results);
        free(caller->jobs);
        free(caller->grants);
        free(caller->slots);
        free(caller->claim_lines);
        free(caller->claim_names);
    }
    for (size_t i = 0; i < pump->slots && pump->held != NULL; i++) {
        if (pump->held[i].has_job)
            pawl_job_clear(&pump->held[i].job);
        free(pump->held[i].error_code);
        free(pump->held[i].error_text);
    }
    free(pump->held);
    free(pump->signals);
    pawli_pump_lines_free(pump);
    pawli_keeper_free(pump->keeper);
    free(pump);
}

void pawli_pump_free(struct pawli_pump *pump)
{
    if (pump == NULL)
        return;
    for (size_t i = 0; i < PAWLI_PUMP_THREADS; i++)
        (void)pthread_cond_destroy(&pump->callers[i].ordered); /* nobody waits: all have ended */
    (void)pthread_cond_destroy(&pump->signalled);
    (void)pthread_mutex_destroy(&pump->mutex);
    pawli_pump_gauge(pump, &(struct pawli_gauges){.slots = 0}); /* it has nothing any more */
    free_tables(pump);
}

static void note_settings(struct pawli_pump *pump, const pawl_worker_settings *settings)
{
    pump->grace_ms = settings->grace_ms;
    pump->parallel_max = settings->parallel_max;
    bool is_derived = settings->heartbeat_ms == PAWL_DEFAULT;
    pawli_pump_note(pump, (struct pawli_trace_note){.kind = PAWLI_NOTE_WORKER_UP,
                                                    .a = is_derived ? 0 : settings->heartbeat_ms,
                                                    .b = settings->poll_ms,
                                                    .c = settings->grace_ms});
}

pawl_code pawli_pump_new(const struct pawli_pump_config *config, struct pawli_pump **ret_pump,
                         pawl_err *err)
{
    assert(config != NULL && config->opener != NULL && config->watch != NULL);
    assert((config->lines_count > 0 || config->lines_max > 0) && ret_pump != NULL);
    struct pawli_pump *pump = calloc(1, sizeof(*pump));
    if (pump == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    set_up(pump, config);
    pawl_code code = pawli_pump_lines_new(pump, config, err);
    if (code == PAWL_OK && (!new_tables(pump) || !new_locks(pump)))
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (code != PAWL_OK) {
        free_tables(pump);
        return code;
    }
    note_settings(pump, config->settings);
    *ret_pump = pump;
    return PAWL_OK;
}

pawl_code pawli_pump_start(struct pawli_pump *pump, struct pawli_crew *crew)
{
    pawl_code code = PAWL_OK;
    for (size_t i = 0; i < PAWLI_PUMP_THREADS && code == PAWL_OK; i++) {
        pawli_watch_join(pump->watch);
        code = pawli_crew_start(crew, pump->callers[i].thread_name, pawli_caller_run,
                                &pump->callers[i]);
        if (code != PAWL_OK)
            pawli_watch_leave(pump->watch);
    }
    return code;
}

/* ---------------------------------------------------------------- settings */

pawl_code pawli_pump_set(struct pawli_pump *pump, const pawl_worker_settings *settings,
                         pawl_err *err)
{
    if (settings->parallel_max + settings->buffer_max > pump->table)
        return pawli_fail(err, PAWL_FULL,
                          "parallel_max is %lld and buffer_max %lld; together they must not exceed "
                          "the %lld that the worker was started with",
                          (long long)settings->parallel_max, (long long)settings->buffer_max,
                          (long long)pump->table);
    pthread_mutex_lock(&pump->mutex);
    note_settings(pump, settings);
    pawli_keeper_on_settings(pump->keeper, pawli_pump_now(pump), settings);
    pawli_pump_drive(pump);
    pthread_mutex_unlock(&pump->mutex);
    return PAWL_OK;
}
