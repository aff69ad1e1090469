/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump_calls.c - the threads that make the keeper's store calls.
 * Owns:  the claimer, the settler and the renewer, and their handles.
 * Never: makes a call that the keeper did not order, or later than it may; holds the lock over one.
 */
#include "runtime/pump_inside.h"

#include "base/clock.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

#define HINT_WAIT_MS 60000 /* the longest wait for a hint; polls are the keeper's */

const char *pawli_pump_verb(enum pawli_action_kind kind)
{
    switch (kind) {
    case PAWLI_ACTION_CLAIM:
        return "claim";
    case PAWLI_ACTION_MINE:
        return "mine";
    case PAWLI_ACTION_RENEW:
        return "renew";
    case PAWLI_ACTION_SETTLE:
        return "settle";
    default:
        return "release";
    }
}

/* ---------------------------------------------------------------- filling rows: under the lock */

/* Put a text where it stays until the call is over; NULL where there is none, or no memory. */
static const char *keep_text(struct caller *caller, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t at = caller->texts.len;
    /* Reserved beforehand: the buffer does not move under texts that were kept before. */
    if (!pawli_buffer_put(&caller->texts, text, strlen(text) + 1))
        return NULL;
    return (const char *)caller->texts.bytes + at;
}

static size_t texts_size(struct pawli_pump *pump, const struct order *order)
{
    size_t size = 0;
    for (size_t i = 0; i < order->items_count; i++) {
        const struct held *held = pawli_pump_find(pump, order->items[i].slot);
        if (held == NULL)
            continue;
        size += held->error_code != NULL ? strlen(held->error_code) + 1 : 0;
        size += held->error_text != NULL ? strlen(held->error_text) + 1 : 0;
    }
    return size;
}

static void fill_settles(struct caller *caller, const struct order *order, pawl_mono now)
{
    struct pawli_pump *pump = caller->pump;
    pawl_settle_row *rows = caller->rows;
    caller->texts.len = 0;
    bool has_room = pawli_buffer_reserve(&caller->texts, texts_size(pump, order));
    for (size_t i = 0; i < order->items_count; i++) {
        const struct pawli_action_item *item = &order->items[i];
        const struct held *held = pawli_pump_find(pump, item->slot);
        pawl_settle_init(&rows[i]);
        rows[i].lease = item->lease;
        rows[i].action = item->action;
        rows[i].reason = item->reason;
        rows[i].delay_ms = item->delay_ms;
        if (held != NULL && has_room && item->action != PAWL_SUCCEED) {
            rows[i].error_code = keep_text(caller, held->error_code);
            rows[i].error_text = keep_text(caller, held->error_text);
        }
        if (held != NULL)
            rows[i].wire_sends = held->wire_sends;
        if (held != NULL)
            pawli_pump_note_act(pump, PAWLI_NOTE_SEND_SETTLE, held, (int64_t)item->action, now);
    }
}

static void fill_releases(struct caller *caller, const struct order *order, pawl_mono now)
{
    pawl_lease *rows = caller->rows;
    for (size_t i = 0; i < order->items_count; i++) {
        const struct held *held = pawli_pump_find(caller->pump, order->items[i].slot);
        rows[i] = order->items[i].lease;
        if (held != NULL)
            pawli_pump_note_act(caller->pump, PAWLI_NOTE_SEND_RELEASE, held, 0, now);
    }
}

static void fill_renewals(struct caller *caller, const struct order *order)
{
    pawl_renew_row *rows = caller->rows;
    for (size_t i = 0; i < order->items_count; i++) {
        const struct held *held = pawli_pump_find(caller->pump, order->items[i].slot);
        rows[i] = (pawl_renew_row){
            .lease = order->items[i].lease,
            .lease_ms = held != NULL ? pawli_pump_line_at(caller->pump, held->line)->lease_ms
                                     : PAWL_DEFAULT,
            .is_unstarted = order->items[i].is_unstarted,
        };
    }
}

static void fill_claim(struct caller *caller, const struct order *order)
{
    for (size_t i = 0; i < order->lines_count; i++) {
        const pawl_worker_queue *line = pawli_pump_line_at(caller->pump, order->lines[i].line);
        (void)pawli_text_copy(caller->claim_names[i], sizeof(caller->claim_names[i]),
                              line->queue); /* the same size */
        caller->claim_lines[i] = (pawl_claim_line){.queue = caller->claim_names[i],
                                                   .jobs_max = order->lines[i].jobs_max,
                                                   .lease_ms = line->lease_ms};
    }
}

/* Leave out what may not be sent any more: time has passed since it was decided (K3). */
static void withhold(struct pawli_pump *pump, struct order *order, pawl_mono now)
{
    size_t kept = 0;
    for (size_t i = 0; i < order->items_count; i++)
        if (pawli_keeper_may_settle(pump->keeper, order->items[i].slot, now))
            order->items[kept++] = order->items[i];
    order->items_count = kept;
}

/* ---------------------------------------------------------------- calls: without the lock */

static pawl_code call_claim(struct caller *caller, const struct order *order, pawl_err *err)
{
    pawl_claim_args args = {.worker = caller->pump->worker,
                            .lines = caller->claim_lines,
                            .lines_count = order->lines_count,
                            .bytes_max = CLAIM_BYTES_MAX};
    size_t jobs_max = (size_t)order->jobs_max;
    assert(jobs_max > 0 && jobs_max <= caller->pump->jobs_max);
    size_t count = 0;
    pawl_code code = pawl_claim(caller->link.store, &args, caller->jobs, jobs_max, &count, err);
    caller->jobs_count = code == PAWL_OK ? count : 0;
    return code;
}

/* All pages of what is ours; each but the last is handed over as it comes. */
static pawl_code call_mine(struct caller *caller, struct lane *lane, pawl_err *err)
{
    struct pawli_pump *pump = caller->pump;
    pawl_id after;
    bool has_after = false;
    for (;;) {
        size_t count = 0;
        pawl_code code = pawl_mine(caller->link.store, pump->worker, has_after ? &after : NULL,
                                   caller->jobs, pump->jobs_max, &count, err);
        caller->jobs_count = code == PAWL_OK ? count : 0;
        if (code != PAWL_OK || count < pump->jobs_max)
            return code;
        after = caller->jobs[count - 1].id;
        has_after = true;
        pthread_mutex_lock(&pump->mutex);
        pawli_answer_mine(caller, lane, false);
        bool is_late = lane->is_overdue;
        pthread_mutex_unlock(&pump->mutex);
        caller->jobs_count = 0;
        if (is_late)
            return PAWL_DOWN;
    }
}

static pawl_code call_store(struct caller *caller, struct lane *lane, pawl_err *err)
{
    const struct order *order = &lane->out;
    pawl_store *store = caller->link.store;
    const char *worker = caller->pump->worker;
    switch (order->kind) {
    case PAWLI_ACTION_CLAIM:
        return call_claim(caller, order, err);
    case PAWLI_ACTION_MINE:
        return call_mine(caller, lane, err);
    case PAWLI_ACTION_RENEW:
        return pawl_renew(store, worker, caller->rows, order->items_count, caller->results, err);
    case PAWLI_ACTION_SETTLE:
        return pawl_settle(store, worker, caller->rows, order->items_count, caller->results, err);
    default:
        return pawl_release(store, worker, caller->rows, order->items_count, caller->results, err);
    }
}

/* Rows of an answer that the store refused. */
static int64_t count_refused(const struct caller *caller, const struct order *order)
{
    int64_t refused = 0;
    for (size_t i = 0; i < order->items_count; i++) {
        pawl_code code = order->kind == PAWLI_ACTION_RENEW
                             ? ((const pawl_renewed *)caller->results)[i].code
                         : order->kind == PAWLI_ACTION_SETTLE
                             ? ((const pawl_settled *)caller->results)[i].code
                             : ((const pawl_code *)caller->results)[i];
        refused += code != PAWL_OK;
    }
    return refused;
}

/* Under the lock, before the answer is handed on. */
static void tell_call(struct caller *caller, const struct lane *lane, pawl_mono began,
                      const pawl_err *err)
{
    const struct order *order = &lane->out;
    bool is_ok = err->code == PAWL_OK;
    bool is_claim = order->kind == PAWLI_ACTION_CLAIM || order->kind == PAWLI_ACTION_MINE;
    pawl_event event = {.kind = is_ok ? PAWL_EVENT_CALL : PAWL_EVENT_CALL_FAILED,
                        .level = is_ok ? PAWL_LEVEL_DEBUG : PAWL_LEVEL_WARN,
                        .code = err->code,
                        .reason = lane->is_overdue ? "late" : "",
                        .count = (int64_t)(is_claim ? caller->jobs_count : order->items_count),
                        .took_us = pawli_pump_now(caller->pump).us - began.us};
    if (!pawli_watch_wants(caller->pump->watch, event.level))
        return;
    event.refused = is_ok && !is_claim ? count_refused(caller, order) : 0;
    (void)pawli_text_copy(event.subject, sizeof(event.subject),
                          pawli_pump_verb(order->kind)); /* fits */
    if (!is_ok)
        (void)pawli_text_copy(event.text, sizeof(event.text), err->text); /* fits */
    pawli_watch_tell(caller->pump->watch, &event);
}

/* ---------------------------------------------------------------- one order */

/* Fill the rows of an order. False: there is nothing to send, or no time left to. */
static bool prepare(struct caller *caller, struct lane *lane, pawl_mono now)
{
    struct order *order = &lane->out;
    if (!pawli_mono_is_before(now, order->deadline)) {
        pawli_answer_order(caller, lane, PAWL_DOWN); /* too late even to begin */
        return false;
    }
    switch (order->kind) {
    case PAWLI_ACTION_CLAIM:
        fill_claim(caller, order);
        return true;
    case PAWLI_ACTION_MINE:
        return true;
    case PAWLI_ACTION_RENEW:
        fill_renewals(caller, order);
        return true;
    default:
        withhold(caller->pump, order, now);
        if (order->items_count == 0) {
            pawli_answer_order(caller, lane, PAWL_OK);
            return false;
        }
        if (order->kind == PAWLI_ACTION_SETTLE)
            fill_settles(caller, order, now);
        else
            fill_releases(caller, order, now);
        return true;
    }
}

static int64_t left_ms(pawl_mono now, pawl_mono deadline)
{
    int64_t ms = pawli_mono_diff_ms(now, deadline);
    return ms > 0 ? ms : 1;
}

/* Under the lock, which is let go of for the call. */
static void carry_out(struct caller *caller, struct lane *lane)
{
    struct pawli_pump *pump = caller->pump;
    struct order order = lane->next; /* the arrays are swapped, not copied */
    lane->next = lane->out;
    lane->out = order;
    lane->has_next = false;
    lane->is_out = true;
    lane->is_overdue = false;
    caller->jobs_count = 0;
    pawl_mono now = pawli_pump_now(pump);
    if (prepare(caller, lane, now)) {
        pthread_mutex_unlock(&pump->mutex);
        pawl_err err = {.code = PAWL_OK};
        pawl_code code = pawli_link_ready(&caller->link, left_ms(now, lane->out.deadline), &err);
        /* A handle may take long to be opened: what is late by now is not sent. */
        pawl_mono ready = pawli_pump_now(pump);
        if (code == PAWL_OK && !pawli_mono_is_before(ready, lane->out.deadline))
            code = PAWL_DOWN;
        if (code == PAWL_OK)
            code = pawli_link_after(&caller->link, call_store(caller, lane, &err));
        if (code == PAWL_BROKEN)
            code = PAWL_UNKNOWN; /* it broke in the middle: nobody knows */
        err.code = code;
        pthread_mutex_lock(&pump->mutex);
        tell_call(caller, lane, now, &err);
        pawli_answer_order(caller, lane, code);
    }
    lane->is_out = false;
    pawli_pump_drive(pump);
}

/* ---------------------------------------------------------------- the threads */

static struct lane *find_order(struct caller *caller)
{
    for (size_t i = 0; i < LANES; i++)
        if ((caller->lanes & (1u << i)) != 0 && caller->pump->lanes[i].has_next)
            return &caller->pump->lanes[i];
    return NULL;
}

/* The claimer waits at the store, so that a hint ends it. Under the lock, let go of meanwhile. */
static void wait_for_hint(struct caller *caller)
{
    struct pawli_pump *pump = caller->pump;
    pawl_store *store = caller->link.store;
    bool is_hint = false;
    caller->waiting = store;
    pthread_mutex_unlock(&pump->mutex);
    pawl_store_limit(store, PAWL_DEFAULT);
    pawl_code code = pawl_wait(store, HINT_WAIT_MS, &is_hint, NULL);
    pthread_mutex_lock(&pump->mutex);
    caller->waiting = NULL;
    if (pawli_link_after(&caller->link, code) != PAWL_OK) {
        /* No hints from here: let the next claim find out what is wrong. */
        pawli_link_close(&caller->link);
        return;
    }
    if (is_hint && find_order(caller) == NULL && !pump->is_ending) {
        pawli_keeper_on_wake(pump->keeper, pawli_pump_now(pump));
        pawli_pump_drive(pump);
    }
}

void pawli_caller_run(void *argument)
{
    struct caller *caller = argument;
    struct pawli_pump *pump = caller->pump;
    pthread_mutex_lock(&pump->mutex);
    while (!pump->is_ending) {
        struct lane *lane = find_order(caller);
        if (lane != NULL)
            carry_out(caller, lane);
        else if ((caller->lanes & (1u << LANE_CLAIM)) != 0 && caller->link.store != NULL)
            wait_for_hint(caller);
        else
            pthread_cond_wait(&caller->ordered, &pump->mutex);
    }
    if (!caller->has_left_watch)
        pawli_watch_leave(pump->watch);
    pthread_mutex_unlock(&pump->mutex);
    pawli_link_close(&caller->link);
}
