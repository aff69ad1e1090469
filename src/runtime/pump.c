/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump.c - one keeper under one lock: what happens goes in, what is to be done comes out, as orders
 *          for the calling threads and signals for the owner.
 * Owns:  the keeper, the lock, the orders, the signals, what is kept per slot.
 * Never: decides anything that the keeper decides; makes a store call (pump_calls.c does); looks at
 *        an event before the clock.
 * Locks: pump.mutex, never held over a store call but pawl_wake(), which does not block.
 */
#include "runtime/pump_inside.h"

#include "base/clock.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MOST_MS 500 /* a suspended machine is noticed so long after it woke up */

/* ---------------------------------------------------------------- helpers */

pawl_mono pawli_pump_now(const struct pawli_pump *pump)
{
    return pump->clock->mono(pump->clock->user);
}

struct held *pawli_pump_find(struct pawli_pump *pump, struct pawli_slot slot)
{
    if (slot.index >= pump->slots)
        return NULL;
    struct held *held = &pump->held[slot.index];
    return held->is_used && held->generation == slot.generation ? held : NULL;
}

void pawli_pump_note(struct pawli_pump *pump, struct pawli_trace_note note)
{
    if (pump->notes == NULL)
        return;
    note.actor = pump->worker;
    pawli_trace_note(pump->notes, pawli_pump_now(pump), &note);
}

void pawli_pump_note_act(struct pawli_pump *pump, enum pawli_trace_note_kind kind,
                         const struct held *held, int64_t a, pawl_mono now)
{
    if (pump->notes == NULL)
        return;
    struct pawli_trace_note note = {.kind = kind,
                                    .actor = pump->worker,
                                    .job = held->lease.job,
                                    .version = held->lease.version,
                                    .a = a};
    pawli_trace_note(pump->notes, now, &note);
}

void pawli_pump_note_job(struct pawli_pump *pump, enum pawli_trace_note_kind kind,
                         const struct held *held, int64_t a)
{
    pawli_pump_note_act(pump, kind, held, a, pawli_pump_now(pump));
}

void pawli_pump_fill(const struct pawli_pump *pump, const struct held *held, pawl_event *event)
{
    event->job = held->lease.job;
    event->lease_version = held->lease.version;
    event->attempt = held->attempt;
    memcpy(event->queue, pawli_pump_line_at(pump, held->line)->queue,
           strlen(pawli_pump_line_at(pump, held->line)->queue) + 1);
}

static void tell_job(struct pawli_pump *pump, const struct held *held, pawl_event event)
{
    if (!pawli_watch_wants(pump->watch, event.level))
        return;
    pawli_pump_fill(pump, held, &event);
    pawli_watch_tell(pump->watch, &event);
}

/* ---------------------------------------------------------------- orders */

static size_t lane_of(enum pawli_action_kind kind)
{
    switch (kind) {
    case PAWLI_ACTION_RENEW:
        return LANE_RENEW;
    case PAWLI_ACTION_SETTLE:
        return LANE_SETTLE;
    case PAWLI_ACTION_RELEASE:
        return LANE_RELEASE;
    default:
        return LANE_CLAIM;
    }
}

static void call_to_work(struct pawli_pump *pump, size_t lane)
{
    for (size_t i = 0; i < PAWLI_PUMP_THREADS; i++) {
        struct caller *caller = &pump->callers[i];
        if ((caller->lanes & (1u << lane)) == 0)
            continue;
        pthread_cond_signal(&caller->ordered);
        if (caller->waiting != NULL)
            pawl_wake(caller->waiting);
    }
}

static void give_order(struct pawli_pump *pump, const struct pawli_action *action, pawl_mono now)
{
    size_t at = lane_of(action->kind);
    struct lane *lane = &pump->lanes[at];
    assert(!lane->has_next); /* the keeper has one call of a kind at a time */
    struct order *order = &lane->next;
    order->kind = action->kind;
    order->request = action->request;
    order->sent_at = now;
    order->deadline = action->deadline;
    order->jobs_max = action->jobs_max;
    order->lines_count = action->lines_count;
    order->items_count = action->items_count;
    if (action->lines_count > 0)
        memcpy(order->lines, action->lines, action->lines_count * sizeof(*action->lines));
    if (action->items_count > 0)
        memcpy(order->items, action->items, action->items_count * sizeof(*action->items));
    lane->has_next = true;
    call_to_work(pump, at);
}

static void tell_overdue(struct pawli_pump *pump, const struct order *order)
{
    pawl_event event = {.kind = PAWL_EVENT_CALL_OVERDUE,
                        .level = PAWL_LEVEL_WARN,
                        .code = PAWL_UNKNOWN,
                        .count = (int64_t)order->items_count};
    (void)pawli_text_copy(event.subject, sizeof(event.subject),
                          pawli_pump_verb(order->kind)); /* fits */
    pawli_watch_tell(pump->watch, &event);
    pawli_pump_tell_unrenewed(pump, order, PAWL_UNKNOWN);
}

/*
 * Calls that have not come back in their time: the keeper goes on without them. What comes back
 * later is handed to it all the same, and it knows that it is late.
 */
static void expire_orders(struct pawli_pump *pump, pawl_mono now)
{
    for (size_t i = 0; i < LANES; i++) {
        struct lane *lane = &pump->lanes[i];
        if (lane->is_out && !lane->is_overdue && !pawli_mono_is_before(now, lane->out.deadline)) {
            lane->is_overdue = true;
            tell_overdue(pump, &lane->out);
            pawli_keeper_on_call_failed(pump->keeper, now, lane->out.request, PAWL_UNKNOWN);
        }
        if (lane->has_next && !pawli_mono_is_before(now, lane->next.deadline)) {
            lane->has_next = false; /* its thread is stuck with the one before: it never left */
            pawli_pump_tell_unrenewed(pump, &lane->next, PAWL_DOWN);
            pawli_keeper_on_call_failed(pump->keeper, now, lane->next.request, PAWL_DOWN);
        }
    }
}

/* When the next of them falls due. */
static pawl_mono orders_deadline(const struct pawli_pump *pump)
{
    pawl_mono at = PAWLI_MONO_NEVER;
    for (size_t i = 0; i < LANES; i++) {
        const struct lane *lane = &pump->lanes[i];
        if (lane->is_out && !lane->is_overdue)
            at = pawli_mono_min(at, lane->out.deadline);
        if (lane->has_next)
            at = pawli_mono_min(at, lane->next.deadline);
    }
    return at;
}

/* ---------------------------------------------------------------- signals */

static void give_signal(struct pawli_pump *pump, struct pawli_signal signal)
{
    assert(pump->signals_count < pump->signals_max);
    size_t at = (pump->signals_first + pump->signals_count++) % pump->signals_max;
    pump->signals[at] = signal;
}

static void drop_held(struct held *held)
{
    if (held->has_job)
        pawl_job_clear(&held->job);
    free(held->error_code);
    free(held->error_text);
    *held = (struct held){.is_used = false};
}

static void on_start(struct pawli_pump *pump, struct held *held, const struct pawli_action *action,
                     pawl_mono now)
{
    held->run_until = action->run_until;
    held->started_at = now;
    pawli_pump_note_act(pump, PAWLI_NOTE_START, held, (int64_t)action->why, now);
    pawl_wall wall = pump->clock->wall(pump->clock->user);
    int64_t waited_us = wall.us - held->due_at.us; /* the store's clock and ours may differ */
    tell_job(pump, held,
             (pawl_event){.kind = PAWL_EVENT_JOB_START,
                          .level = PAWL_LEVEL_DEBUG,
                          .reason = pawli_why_name(action->why),
                          .took_us = waited_us > 0 ? waited_us : 0});
}

static void on_abort(struct pawli_pump *pump, struct held *held, const struct pawli_action *action)
{
    held->abort_why = action->why;
    held->kill_by = action->deadline;
    pawli_pump_note_job(pump, PAWLI_NOTE_ABORT, held, (int64_t)action->why);
    tell_job(pump, held,
             (pawl_event){.kind = PAWL_EVENT_JOB_ABORT,
                          .level = PAWL_LEVEL_WARN,
                          .reason = pawli_why_name(action->why)});
}

static void on_over(struct pawli_pump *pump, struct held *held, const struct pawli_action *action)
{
    bool is_good = action->why == PAWLI_WHY_SETTLED || action->why == PAWLI_WHY_RELEASED ||
                   action->why == PAWLI_WHY_SETTLED_BY_HANDLER;
    pawli_pump_note_job(pump, PAWLI_NOTE_OVER, held, (int64_t)action->why);
    tell_job(pump, held,
             (pawl_event){.kind = PAWL_EVENT_JOB_OVER,
                          .level = is_good ? PAWL_LEVEL_DEBUG : PAWL_LEVEL_WARN,
                          .reason = pawli_why_name(action->why)});
    drop_held(held);
}

static void perform(struct pawli_pump *pump, const struct pawli_action *action, pawl_mono now)
{
    struct held *held = pawli_pump_find(pump, action->slot);
    assert(held != NULL || action->kind < PAWLI_ACTION_START ||
           action->kind == PAWLI_ACTION_STOPPED);
    switch (action->kind) {
    case PAWLI_ACTION_START:
        on_start(pump, held, action, now);
        break;
    case PAWLI_ACTION_ABORT:
        on_abort(pump, held, action);
        break;
    case PAWLI_ACTION_GIVE_UP:
        pawli_pump_note_job(pump, PAWLI_NOTE_GIVE_UP, held, (int64_t)action->why);
        break;
    case PAWLI_ACTION_OVER:
        on_over(pump, held, action);
        break;
    case PAWLI_ACTION_STOPPED:
        pawli_pump_note(pump, (struct pawli_trace_note){.kind = PAWLI_NOTE_WORKER_STOPPED,
                                                        .a = (int64_t)action->left});
        pump->is_stopped = true;
        break;
    default:
        give_order(pump, action, now);
        return;
    }
    give_signal(pump, (struct pawli_signal){.kind = action->kind,
                                            .why = action->why,
                                            .slot = action->slot,
                                            .left = action->left});
}

static pawl_mono deadline_of(const struct pawli_pump *pump)
{
    return pawli_mono_min(pawli_keeper_deadline(pump->keeper), orders_deadline(pump));
}

void pawli_pump_gauge(struct pawli_pump *pump, const struct pawli_gauges *gauges)
{
    pawli_metrics_gauge(pawli_watch_metrics(pump->watch), &pump->gauges, gauges);
}

static void tell_gauges(struct pawli_pump *pump)
{
    struct pawli_keeper_counts counts = pawli_keeper_count(pump->keeper);
    pawli_pump_gauge(pump, &(struct pawli_gauges){.slots = pump->parallel_max,
                                                  .running = (int64_t)counts.running,
                                                  .buffered = (int64_t)counts.buffered,
                                                  .settling = (int64_t)counts.settling,
                                                  .releasing = (int64_t)counts.releasing});
}

static void let_keeper_act(struct pawli_pump *pump)
{
    struct pawli_action action;
    pawl_mono now = pawli_pump_now(pump);
    expire_orders(pump, now);
    while (pump->signals_count < pump->signals_max && pawli_keeper_next(pump->keeper, now, &action))
        perform(pump, &action, now);
    tell_gauges(pump);
}

static void call_owner(struct pawli_pump *pump)
{
    if (pump->signals_count == 0 && !pawli_mono_is_before(deadline_of(pump), pump->owner_until))
        return;
    pump->owner_until = (pawl_mono){INT64_MIN}; /* it has been called: once is enough */
    if (pump->wake != NULL)
        pump->wake(pump->user);
    else
        pthread_cond_signal(&pump->signalled);
}

void pawli_pump_drive(struct pawli_pump *pump)
{
    let_keeper_act(pump);
    call_owner(pump);
}

/* ---------------------------------------------------------------- the owner's thread */

static struct pawli_signal take_signal(struct pawli_pump *pump)
{
    assert(pump->signals_count > 0);
    struct pawli_signal signal = pump->signals[pump->signals_first];
    pump->signals_first = (pump->signals_first + 1) % pump->signals_max;
    pump->signals_count--;
    return signal;
}

bool pawli_pump_take(struct pawli_pump *pump, struct pawli_signal *ret_signal,
                     pawl_mono *ret_deadline)
{
    pthread_mutex_lock(&pump->mutex);
    pump->owner_until = (pawl_mono){INT64_MIN}; /* it is awake */
    pawli_pump_drive(pump);
    bool is_given = pump->signals_count > 0;
    if (is_given) {
        *ret_signal = take_signal(pump);
    } else {
        *ret_deadline = deadline_of(pump);
        pump->owner_until = *ret_deadline;
    }
    pthread_mutex_unlock(&pump->mutex);
    return is_given;
}

void pawli_pump_wait(struct pawli_pump *pump, pawl_mono deadline)
{
    int64_t ms = WAIT_MOST_MS;
    pawl_mono now = pawli_pump_now(pump);
    if (pawli_mono_is_before(deadline, pawli_mono_add_ms(now, WAIT_MOST_MS)))
        ms = pawli_mono_is_before(now, deadline) ? (deadline.us - now.us + 999) / 1000 : 0;
    struct timespec until = pawli_wait_until(ms);
    pthread_mutex_lock(&pump->mutex);
    int rc = 0;
    /* Whoever calls the owner sets owner_until: that cannot be missed. */
    while (rc == 0 && pump->owner_until.us != INT64_MIN)
        rc = pthread_cond_timedwait(&pump->signalled, &pump->mutex, &until);
    pthread_mutex_unlock(&pump->mutex);
}

/* ---------------------------------------------------------------- running a job */

bool pawli_pump_begin(struct pawli_pump *pump, struct pawli_slot slot, pawl_job *ret_job)
{
    pthread_mutex_lock(&pump->mutex);
    struct held *held = pawli_pump_find(pump, slot);
    pawl_mono now = pawli_pump_now(pump);
    bool is_begun = held != NULL && held->has_job && pawli_keeper_may_send(pump->keeper, slot, now);
    if (is_begun) {
        *ret_job = held->job;
        held->has_job = false;
        pawli_pump_note_act(pump, PAWLI_NOTE_SEND, held, 0, now);
    }
    pthread_mutex_unlock(&pump->mutex);
    return is_begun;
}

static char *copy_text(const char *text)
{
    if (text == NULL || text[0] == '\0')
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (copy != NULL) /* else the attempt is told without it */
        memcpy(copy, text, size);
    return copy;
}

static const char *result_name(enum pawli_result result)
{
    static const char *const names[] = {"done", "retry", "fail", "snooze", "settled"};
    return names[result];
}

/* The first signal, where it is to start a job: taken before the owner is called. */
static bool take_start(struct pawli_pump *pump, struct pawli_slot *ret_next)
{
    if (pump->signals_count == 0 || pump->signals[pump->signals_first].kind != PAWLI_ACTION_START)
        return false;
    *ret_next = take_signal(pump).slot;
    return true;
}

bool pawli_pump_ended_next(struct pawli_pump *pump, struct pawli_slot slot,
                           const struct pawli_pump_end *end, struct pawli_slot *ret_next)
{
    bool is_next = false;
    char *error_code = copy_text(end->error_code);
    char *error_text = copy_text(end->error_text);
    pthread_mutex_lock(&pump->mutex);
    struct held *held = pawli_pump_find(pump, slot);
    if (held != NULL) {
        pawl_mono now = pawli_pump_now(pump);
        pawl_event event = {.kind = PAWL_EVENT_JOB_ENDED,
                            .level = PAWL_LEVEL_DEBUG,
                            .took_us = now.us - held->started_at.us};
        memcpy(event.subject, result_name(end->ended.result),
               strlen(result_name(end->ended.result)) + 1);
        tell_job(pump, held, event);
        pawli_pump_note_job(pump, PAWLI_NOTE_ENDED, held, (int64_t)end->ended.result);
        free(held->error_code); /* none, unless it ends twice */
        free(held->error_text);
        held->error_code = error_code;
        held->error_text = error_text;
        held->wire_sends = end->is_delivery ? end->wire_sends : PAWL_SENDS_UNKNOWN;
        pawli_keeper_on_ended(pump->keeper, now, slot, end->ended);
        let_keeper_act(pump);
        is_next = ret_next != NULL && take_start(pump, ret_next);
        call_owner(pump);
    }
    pthread_mutex_unlock(&pump->mutex);
    if (held == NULL) {
        free(error_code);
        free(error_text);
    }
    return is_next;
}

void pawli_pump_ended(struct pawli_pump *pump, struct pawli_slot slot,
                      const struct pawli_pump_end *end)
{
    (void)pawli_pump_ended_next(pump, slot, end, NULL); /* the owner takes what is next */
}

enum pawli_why pawli_pump_stop_why(struct pawli_pump *pump, struct pawli_slot slot,
                                   pawl_mono *ret_kill_by)
{
    pthread_mutex_lock(&pump->mutex);
    enum pawli_why why = PAWLI_WHY_NONE;
    pawl_mono kill_by = pawli_pump_now(pump);
    if (!pawli_keeper_may_send(pump->keeper, slot, kill_by)) {
        pawli_pump_drive(pump); /* the keeper has not looked at its clock: now it has */
        const struct held *held = pawli_pump_find(pump, slot);
        why = held == NULL                        ? PAWLI_WHY_ABORT_IGNORED
              : held->abort_why == PAWLI_WHY_NONE ? PAWLI_WHY_AT_RISK
                                                  : held->abort_why;
        if (held != NULL && held->abort_why != PAWLI_WHY_NONE)
            kill_by = held->kill_by;
    }
    pthread_mutex_unlock(&pump->mutex);
    if (ret_kill_by != NULL)
        *ret_kill_by = kill_by;
    return why;
}

pawl_mono pawli_pump_run_until(struct pawli_pump *pump, struct pawli_slot slot)
{
    pthread_mutex_lock(&pump->mutex);
    const struct held *held = pawli_pump_find(pump, slot);
    pawl_mono until = held != NULL ? held->run_until : pawli_pump_now(pump);
    pthread_mutex_unlock(&pump->mutex);
    return until;
}

void pawli_pump_tell(struct pawli_pump *pump, struct pawli_slot slot, pawl_event *event)
{
    pthread_mutex_lock(&pump->mutex);
    const struct held *held = pawli_pump_find(pump, slot);
    if (held != NULL)
        pawli_pump_fill(pump, held, event);
    pthread_mutex_unlock(&pump->mutex);
    pawli_watch_tell(pump->watch, event);
}

/* ---------------------------------------------------------------- steering */

void pawli_pump_shutdown(struct pawli_pump *pump, int64_t timeout_ms)
{
    pthread_mutex_lock(&pump->mutex);
    pawli_pump_note(pump, (struct pawli_trace_note){.kind = PAWLI_NOTE_SHUTDOWN, .a = timeout_ms});
    pawli_keeper_on_shutdown(pump->keeper, pawli_pump_now(pump), timeout_ms);
    pawli_pump_drive(pump);
    pthread_mutex_unlock(&pump->mutex);
}

void pawli_pump_abort_all(struct pawli_pump *pump)
{
    pthread_mutex_lock(&pump->mutex);
    pawli_pump_note(pump, (struct pawli_trace_note){.kind = PAWLI_NOTE_SHUTDOWN,
                                                    .a = pump->grace_ms}); /* all that it has */
    pawli_keeper_on_abort_all(pump->keeper, pawli_pump_now(pump));
    pawli_pump_drive(pump);
    pthread_mutex_unlock(&pump->mutex);
}

void pawli_pump_pause(struct pawli_pump *pump, size_t line, bool is_paused)
{
    pthread_mutex_lock(&pump->mutex);
    if (is_paused)
        pawli_keeper_on_pause(pump->keeper, pawli_pump_now(pump), line);
    else
        pawli_keeper_on_resume(pump->keeper, pawli_pump_now(pump), line);
    pawli_pump_drive(pump);
    pthread_mutex_unlock(&pump->mutex);
}

struct pawli_keeper_counts pawli_pump_count(struct pawli_pump *pump)
{
    pthread_mutex_lock(&pump->mutex);
    struct pawli_keeper_counts counts = pawli_keeper_count(pump->keeper);
    pthread_mutex_unlock(&pump->mutex);
    return counts;
}

size_t pawli_pump_slots(const struct pawli_pump *pump)
{
    return pump->slots;
}

/* The watcher stays for calls that may still be answered in time, and not for those that hang. */
static void leave_watch_if_stuck(struct pawli_pump *pump, struct caller *caller)
{
    for (size_t i = 0; i < LANES && !caller->has_left_watch; i++)
        caller->has_left_watch = (caller->lanes & (1u << i)) != 0 && pump->lanes[i].is_out &&
                                 pump->lanes[i].is_overdue;
    if (caller->has_left_watch)
        pawli_watch_leave(pump->watch);
}

void pawli_pump_end(struct pawli_pump *pump)
{
    pthread_mutex_lock(&pump->mutex);
    pump->is_ending = true;
    for (size_t i = 0; i < PAWLI_PUMP_THREADS; i++) {
        leave_watch_if_stuck(pump, &pump->callers[i]);
        pthread_cond_signal(&pump->callers[i].ordered);
        if (pump->callers[i].waiting != NULL)
            pawl_wake(pump->callers[i].waiting);
    }
    pthread_mutex_unlock(&pump->mutex);
}
