/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper.c - the keeper's life and its one loop: look at the clock, then give out what is to be
 *            done, most urgent first.
 * Owns:  the keeper, the order of its actions, shutdown.
 * Never: does I/O, takes a lock, reads a clock, allocates after pawli_keeper_new().
 */
#include "core/keeper_table.h"
#include "base/error.h"
#include "base/random.h"
#include "core/backoff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_UNSEEN_MS  30000 /* until a lease was seen, they are thought to be this long */
#define BURNT_MIN        8192  /* leases remembered whose work was stopped: K9 */
#define DRAIN_GRACE_PART 4     /* of a shutdown, this part at most is grace */
#define TABLE_PARTS      3     /* as many again for settles that lag, and for strays: see room() */

/* ---------------------------------------------------------------- life */

static void lists_init(struct pawli_keeper *keeper)
{
    TAILQ_INIT(&keeper->free);
    TAILQ_INIT(&keeper->startable);
    TAILQ_INIT(&keeper->waiting);
    TAILQ_INIT(&keeper->settles);
    TAILQ_INIT(&keeper->settles_sent);
    TAILQ_INIT(&keeper->releases);
    TAILQ_INIT(&keeper->releases_sent);
    TAILQ_INIT(&keeper->beats);
    TAILQ_INIT(&keeper->beats_sent);
    TAILQ_INIT(&keeper->signals);
    for (size_t i = 0; i < keeper->holds_count; i++) {
        keeper->holds[i].index = (uint32_t)i;
        pawli_hold_move(&keeper->holds[i], &keeper->free);
    }
    keeper->free_count = keeper->holds_count;
}

static void lines_init(struct pawli_keeper *keeper, const struct pawli_keeper_line *lines)
{
    for (size_t i = 0; i < keeper->lines_count; i++)
        keeper->lines[i].held_max = lines[i].held_max;
}

pawl_code pawli_keeper_new(const struct pawli_keeper_config *config,
                           struct pawli_keeper **ret_keeper, pawl_err *err)
{
    assert(config != NULL && config->settings != NULL && config->random != NULL);
    assert((config->lines != NULL || config->lines_count == 0) && ret_keeper != NULL);
    size_t lines_max = config->lines_max > 0 ? config->lines_max : config->lines_count;
    if (lines_max == 0 || lines_max > PAWL_LINES_MAX || config->lines_count > lines_max)
        return pawli_fail(err, PAWL_INVALID, "lines: %zu given, of %zu; 1 to %d are allowed",
                          config->lines_count, lines_max, PAWL_LINES_MAX);
    for (size_t i = 0; i < config->lines_count; i++)
        if (config->lines[i].held_max != PAWL_DEFAULT && config->lines[i].held_max < 1)
            return pawli_fail(err, PAWL_INVALID,
                              "lines[%zu].held_max: %lld given; at least 1 is needed", i,
                              (long long)config->lines[i].held_max);

    struct pawli_keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    keeper->settings = *config->settings;
    keeper->random = config->random;
    keeper->lines_count = config->lines_count;
    keeper->lines_max = lines_max;
    keeper->holds_count = TABLE_PARTS *
                          (size_t)(config->settings->parallel_max + config->settings->buffer_max);
    keeper->action_items_max = keeper->holds_count;
    keeper->holds = calloc(keeper->holds_count, sizeof(*keeper->holds));
    keeper->heap = calloc(keeper->holds_count, sizeof(*keeper->heap));
    keeper->burnt_max = BURNT_MIN + keeper->holds_count;
    keeper->burnt = calloc(keeper->burnt_max, sizeof(*keeper->burnt));
    keeper->lines = calloc(lines_max, sizeof(*keeper->lines));
    keeper->action_lines = calloc(lines_max, sizeof(*keeper->action_lines));
    keeper->action_items = calloc(keeper->action_items_max, sizeof(*keeper->action_items));
    if (keeper->holds == NULL || keeper->heap == NULL || keeper->burnt == NULL ||
        keeper->lines == NULL || keeper->action_lines == NULL || keeper->action_items == NULL) {
        pawli_keeper_free(keeper);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    lists_init(keeper);
    lines_init(keeper, config->lines);
    keeper->claim_why = PAWLI_WHY_POLL;
    keeper->mine_at = PAWLI_MONO_NEVER;
    keeper->lease_longest_ms = LEASE_UNSEEN_MS;
    keeper->stop_by = PAWLI_MONO_NEVER;
    *ret_keeper = keeper;
    return PAWL_OK;
}

void pawli_keeper_free(struct pawli_keeper *keeper)
{
    if (keeper == NULL)
        return;
    free(keeper->holds);
    free(keeper->heap);
    free(keeper->burnt);
    free(keeper->lines);
    free(keeper->action_lines);
    free(keeper->action_items);
    free(keeper);
}

size_t pawli_keeper_slots(const struct pawli_keeper *keeper)
{
    return keeper->holds_count;
}

/* ---------------------------------------------------------------- calls */

void pawli_call_open(struct pawli_keeper *keeper, struct call *call, struct pawli_action *action)
{
    assert(call->request == 0);
    call->request = ++keeper->requests;
    call->sent_at = keeper->now;
    action->request = call->request;
    action->deadline = pawli_mono_add_ms(keeper->now, keeper->settings.call_timeout_ms);
}

bool pawli_call_is_open(const struct call *call, uint64_t request)
{
    return call->request != 0 && call->request == request;
}

void pawli_call_answered(struct call *call)
{
    call->request = 0;
    call->failures = 0;
    call->retry_at = (pawl_mono){0};
}

void pawli_call_failed(struct pawli_keeper *keeper, struct call *call)
{
    const pawl_worker_settings *settings = &keeper->settings;
    int64_t ceiling = pawli_backoff_ceiling_ms(settings->retry_base_ms, settings->retry_max_ms,
                                               call->failures);
    /* Half of it for certain: a store that is away is not hammered by a lucky draw of 0. */
    int64_t delay = ceiling -
                    (int64_t)pawli_random_below(keeper->random, (uint64_t)(ceiling / 2) + 1);
    if (PAWLI_MUTANT(PAWLI_MUTANT_NO_CALL_BACKOFF))
        delay = 0;
    call->request = 0;
    call->failures++;
    call->retry_at = pawli_mono_add_ms(keeper->now, delay);
}

void pawli_keeper_on_call_failed(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                                 pawl_code code)
{
    assert(code != PAWL_OK);
    pawli_keeper_look(keeper, now);
    if (pawli_call_is_open(&keeper->claim, request))
        pawli_claim_failed(keeper, code);
    else if (pawli_call_is_open(&keeper->renew, request))
        pawli_beat_failed(keeper);
    else if (pawli_call_is_open(&keeper->settle, request))
        pawli_settle_failed(keeper, code);
    else if (pawli_call_is_open(&keeper->release, request))
        pawli_release_failed(keeper, code);
}

/* ---------------------------------------------------------------- signals and starts */

static void about(const struct hold *hold, struct pawli_action *ret_action)
{
    ret_action->slot = (struct pawli_slot){hold->index, hold->generation};
    ret_action->line = hold->line;
    ret_action->why = hold->why;
}

static bool signal_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    struct hold *hold = TAILQ_FIRST(&keeper->signals);
    if (hold == NULL)
        return false;
    about(hold, ret_action);
    switch (hold->signal) {
    case SIGNAL_ABORT:
        ret_action->kind = PAWLI_ACTION_ABORT;
        ret_action->deadline = hold->kill_by;
        break;
    case SIGNAL_GIVE_UP:
        ret_action->kind = PAWLI_ACTION_GIVE_UP;
        break;
    default:
        assert(hold->signal == SIGNAL_OVER);
        ret_action->kind = PAWLI_ACTION_OVER;
        pawli_hold_free(keeper, hold);
        return true;
    }
    pawli_hold_signal(keeper, hold, SIGNAL_NONE);
    pawli_hold_rearm(keeper, hold);
    return true;
}

static bool has_passed(const struct pawli_keeper *keeper, pawl_mono from, int64_t ms)
{
    return !pawli_mono_is_before(keeper->now, pawli_mono_add_ms(from, ms));
}

/*
 * Whether so much of the lease, or of the execution timeout, has passed that a renewal must come
 * first. Not for the timeout's sake where one has come just now: a timeout that is shorter than the
 * way to the store is the job's own misfortune, and must end as one.
 */
static bool is_worn(const struct pawli_keeper *keeper, const struct hold *hold)
{
    if (has_passed(keeper, hold->lease_from, 2 * hold->interval_ms))
        return true;
    return has_passed(keeper, hold->run_from, hold->timeout_ms / 2) &&
           has_passed(keeper, hold->refreshed_at, hold->interval_ms / 2);
}

static bool start_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    struct hold *hold = NULL;
    if (keeper->is_draining || keeper->running >= (size_t)keeper->settings.parallel_max)
        return false;
    while ((hold = TAILQ_FIRST(&keeper->startable)) != NULL) {
        if (PAWLI_MUTANT(PAWLI_MUTANT_START_AT_RISK) || !is_worn(keeper, hold))
            break;
        hold->must_confirm = true;
        pawli_hold_place(keeper, hold);
        if (hold->beat_in == NULL)
            pawli_hold_move_beat(hold, &keeper->beats);
        pawli_hold_rearm(keeper, hold);
    }
    if (hold == NULL)
        return false;
    hold->why = PAWLI_WHY_CLAIMED;
    pawli_hold_run(keeper, hold);
    about(hold, ret_action);
    ret_action->kind = PAWLI_ACTION_START;
    ret_action->run_until = pawli_hold_run_until(hold);
    return true;
}

/* ---------------------------------------------------------------- shutdown */

static void abort_running(struct pawli_keeper *keeper, enum pawli_why why)
{
    for (size_t i = 0; i < keeper->holds_count; i++) {
        struct hold *hold = &keeper->holds[i];
        if (hold->state != HOLD_RUNNING)
            continue;
        pawli_hold_abort(keeper, hold, why);
        hold->kill_by = pawli_mono_min(hold->kill_by, keeper->stop_by);
        pawli_hold_rearm(keeper, hold);
    }
}

void pawli_keeper_on_shutdown(struct pawli_keeper *keeper, pawl_mono now, int64_t timeout_ms)
{
    assert(timeout_ms >= 0);
    pawli_keeper_look(keeper, now);
    keeper->is_draining = true;
    keeper->stop_by = pawli_mono_min(keeper->stop_by, pawli_mono_add_ms(keeper->now, timeout_ms));
    /* The grace period is a part of the time, never all of it: what runs gets time to finish. */
    int64_t left_ms = pawli_mono_diff_ms(keeper->now, keeper->stop_by);
    int64_t grace_ms = keeper->settings.grace_ms;
    if (grace_ms > left_ms / DRAIN_GRACE_PART)
        grace_ms = left_ms / DRAIN_GRACE_PART;
    keeper->drain_abort_at = pawli_mono_add_ms(keeper->stop_by, -grace_ms);
    keeper->is_abort_due = true;
    if (PAWLI_MUTANT(PAWLI_MUTANT_SHUTDOWN_KEEPS))
        return;
    for (size_t i = 0; i < keeper->holds_count; i++) {
        struct hold *hold = &keeper->holds[i];
        if (hold->state == HOLD_BUFFERED && hold->is_adopted)
            hold->confirm_why = PAWLI_WHY_NOT_STARTED;
        else if (hold->state == HOLD_BUFFERED)
            pawli_hold_return(keeper, hold, PAWLI_WHY_NOT_STARTED);
    }
}

void pawli_keeper_on_abort_all(struct pawli_keeper *keeper, pawl_mono now)
{
    pawli_keeper_on_shutdown(keeper, now, keeper->settings.grace_ms);
    abort_running(keeper, PAWLI_WHY_ABORT_ALL);
    keeper->is_abort_due = false;
}

static bool is_empty(const struct pawli_keeper *keeper)
{
    return keeper->free_count == keeper->holds_count && keeper->claim.request == 0 &&
           !keeper->is_claim_lost;
}

static bool stop_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    if (!keeper->is_draining)
        return false;
    if (!is_empty(keeper) && pawli_mono_is_before(keeper->now, keeper->stop_by))
        return false;
    keeper->is_stopped = true;
    ret_action->kind = PAWLI_ACTION_STOPPED;
    ret_action->why = PAWLI_WHY_SHUTDOWN;
    ret_action->left = keeper->buffered + keeper->running + keeper->settling + keeper->releasing;
    return true;
}

/* ---------------------------------------------------------------- the loop */

bool pawli_keeper_next(struct pawli_keeper *keeper, pawl_mono now, struct pawli_action *ret_action)
{
    assert(keeper != NULL && ret_action != NULL);
    *ret_action = (struct pawli_action){0};
    if (keeper->is_stopped)
        return false;
    if (PAWLI_MUTANT(PAWLI_MUTANT_START_AT_RISK) && start_next(keeper, ret_action))
        return true;

    pawli_keeper_look(keeper, now);
    if (keeper->is_abort_due && !pawli_mono_is_before(keeper->now, keeper->drain_abort_at)) {
        keeper->is_abort_due = false;
        abort_running(keeper, PAWLI_WHY_SHUTDOWN);
    }
    if (signal_next(keeper, ret_action))
        return true;
    if (stop_next(keeper, ret_action))
        return true;
    if (pawli_beat_next(keeper, ret_action) || pawli_settle_next(keeper, ret_action) ||
        pawli_release_next(keeper, ret_action) || start_next(keeper, ret_action))
        return true;
    /* What could not start for want of a fresh lease asks for one now. */
    return pawli_beat_next(keeper, ret_action) || pawli_mine_next(keeper, ret_action) ||
           pawli_claim_next(keeper, ret_action);
}

pawl_mono pawli_keeper_deadline(const struct pawli_keeper *keeper)
{
    if (keeper->is_stopped)
        return PAWLI_MONO_NEVER;
    if (!TAILQ_EMPTY(&keeper->signals))
        return keeper->now;
    pawl_mono at = keeper->heap_count > 0 ? keeper->heap[0]->alarm : PAWLI_MONO_NEVER;
    if (!TAILQ_EMPTY(&keeper->beats) && keeper->renew.request == 0)
        at = keeper->now;
    at = pawli_mono_min(at, pawli_settle_deadline(keeper));
    at = pawli_mono_min(at, pawli_claim_deadline(keeper));
    if (keeper->is_draining)
        at = pawli_mono_min(at, keeper->stop_by);
    if (keeper->is_abort_due)
        at = pawli_mono_min(at, keeper->drain_abort_at);
    return at;
}

/* ---------------------------------------------------------------- looking in */

/* The same as pawli_hold_find(), for those who only read. */
static const struct hold *look_up(const struct pawli_keeper *keeper, struct pawli_slot slot)
{
    if (slot.index >= keeper->holds_count ||
        keeper->holds[slot.index].generation != slot.generation)
        return NULL;
    return &keeper->holds[slot.index];
}

bool pawli_keeper_may_send(const struct pawli_keeper *keeper, struct pawli_slot slot, pawl_mono now)
{
    const struct hold *hold = look_up(keeper, slot);
    return hold != NULL && hold->state == HOLD_RUNNING && hold->abort_why == PAWLI_WHY_NONE &&
           !hold->is_lost && pawli_mono_is_before(now, pawli_hold_risk_at(hold)) &&
           pawli_mono_is_before(now, pawli_hold_run_until(hold));
}

bool pawli_keeper_may_settle(const struct pawli_keeper *keeper, struct pawli_slot slot,
                             pawl_mono now)
{
    const struct hold *hold = look_up(keeper, slot);
    return hold != NULL && (hold->state == HOLD_ENDED || hold->state == HOLD_RETURNING) &&
           pawli_mono_is_before(now, pawli_hold_risk_at(hold));
}

struct pawli_keeper_counts pawli_keeper_count(const struct pawli_keeper *keeper)
{
    return (struct pawli_keeper_counts){
        .running = keeper->running,
        .buffered = keeper->buffered,
        .settling = keeper->settling,
        .releasing = keeper->releasing,
        .reserved = keeper->reserved,
    };
}

void pawli_keeper_on_settings(struct pawli_keeper *keeper, pawl_mono now,
                              const pawl_worker_settings *settings)
{
    assert(settings != NULL);
    pawli_keeper_look(keeper, now);
    int64_t table = (int64_t)(keeper->holds_count / TABLE_PARTS);
    keeper->settings = *settings;
    if (keeper->settings.parallel_max > table)
        keeper->settings.parallel_max = table;
    if (keeper->settings.parallel_max + keeper->settings.buffer_max > table)
        keeper->settings.buffer_max = table - keeper->settings.parallel_max;
    pawl_mono poll_at = pawli_mono_add_ms(keeper->now, keeper->settings.poll_ms);
    if (keeper->claim_why == PAWLI_WHY_POLL)
        keeper->claim_at = pawli_mono_min(keeper->claim_at, poll_at);
}
