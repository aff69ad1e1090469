/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * dispatcher.c - deliveries: from a job that is started to what is settled of it.
 * Owns:  the deliveries under way, the roster, the wire; how many of each endpoint are claimed.
 * Never: makes a store call (the pump's threads and the directory do); settles by itself; sends
 *        anything of a job that the keeper would not send.
 * Locks: dispatcher.mutex, for news on their way from the directory; never held over a call.
 */
#include "deliver/dispatcher.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "core/policy.h"
#include "deliver/request.h"
#include "deliver/roster.h"
#include "deliver/slots.h"
#include "runtime/metrics.h"
#include "runtime/worker.h"
#include "webhook/cloudevents.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESH_MS       2000
#define PARALLEL_MAX     1000
#define PER_HOST_MAX     256
#define SETTLE_LINGER_MS 10 /* for company: a delivery takes longer */
#define SOURCE           "urn:pawl"
#define WINDOW_START     8     /* deliveries at once to who has not answered yet, at the most */
#define LOOK_MIN_MS      5     /* between two looks at all endpoints */
#define HELD_BACK_MS     50    /* until those are looked at whom there was no room for at first */
#define SLOTS_LOOK_MS    2000  /* between two looks at who has work */
#define PARKED_PART      4     /* of all slots, those of one host that may wait for room in it */
#define PUT_BACK_MIN_MS  1000  /* how long a job waits that cannot be sent now */
#define PUT_BACK_MAX_MS  60000 /* likewise */
#define PAUSE_PART       10    /* retries come up to so much of a pause after it, not all at once */
#define MARK_MIN_MS      10000 /* between two marks of one endpoint as failing */
#define SHOWS_AS         "webhook/*"

/* What is under way in a slot of the pump. */
struct delivery {
    struct pawli_outlet *outlet;   /* NULL: nothing is */
    struct pawli_sending *sending; /* NULL: it is not sent yet */
    struct pawli_parked parked;    /* until its host has room for it */
    struct pawli_slot slot;
    struct pawli_breaker_pass pass;
    struct pawli_request request;
    pawl_job job;
};

struct dispatcher {
    struct pawli_hands_place place;
    struct pawli_outlet_rules rules;
    struct pawli_wire_rules wire_rules;
    char source[PAWLI_CLOUD_SOURCE_MAX + 1];
    struct pawli_slots parts; /* of as many slots as it started with */
    struct pawli_wire *wire;
    struct pawli_directory *directory;
    struct pawli_roster roster;
    struct delivery *deliveries; /* by slot */
    size_t slots;
    pawl_mono look_at;   /* when a bound may rise by itself */
    pawl_mono slots_at;  /* when to look who has work */
    pawl_mono unpark_at; /* when one of those that wait for room has waited long enough */

    pthread_mutex_t mutex;
    struct pawli_news_list news; /* mutex */
};

static pawl_mono mono_of(const struct dispatcher *dispatcher)
{
    return dispatcher->place.clock->mono(dispatcher->place.clock->user);
}

static pawl_wall wall_of(const struct dispatcher *dispatcher)
{
    return dispatcher->place.clock->wall(dispatcher->place.clock->user);
}

static struct pawli_breaker_now now_of(const struct dispatcher *dispatcher)
{
    return (struct pawli_breaker_now){.mono = mono_of(dispatcher), .wall = wall_of(dispatcher)};
}

/* ---------------------------------------------------------------- telling */

static void tell_endpoint(struct dispatcher *dispatcher, const struct pawli_outlet *outlet,
                          pawl_event event, const char *text)
{
    (void)pawli_text_copy(event.subject, sizeof(event.subject), outlet->name);
    (void)pawli_text_copy(event.queue, sizeof(event.queue), outlet->queue); /* the same size */
    (void)pawli_text_copy(event.text, sizeof(event.text), text);            /* cut */
    pawli_watch_tell(dispatcher->place.watch, &event);
}

static void tell_breaker(struct dispatcher *dispatcher, struct pawli_outlet *outlet,
                         enum pawli_breaker_event what, const char *reason)
{
    const struct pawli_breaker *breaker = &outlet->gate.breaker;
    if (what == PAWLI_BREAKER_OPENED)
        tell_endpoint(dispatcher, outlet,
                      (pawl_event){.kind = PAWL_EVENT_ENDPOINT_OPENED,
                                   .level = PAWL_LEVEL_WARN,
                                   .took_us = breaker->open_until.us - mono_of(dispatcher).us},
                      reason);
    else if (what == PAWLI_BREAKER_CLOSED_AGAIN)
        tell_endpoint(dispatcher, outlet,
                      (pawl_event){.kind = PAWL_EVENT_ENDPOINT_CLOSED, .level = PAWL_LEVEL_INFO},
                      "");
}

/* Disabled for good, by its own word. */
static void disable(struct dispatcher *dispatcher, struct pawli_outlet *outlet)
{
    const struct pawli_breaker *breaker = &outlet->gate.breaker;
    tell_endpoint(dispatcher, outlet,
                  (pawl_event){.kind = PAWL_EVENT_ENDPOINT_DISABLED, .level = PAWL_LEVEL_ERROR},
                  breaker->reason);
    const struct pawli_disabling how = {.name = outlet->name,
                                        .revision = outlet->revision,
                                        .created_at = outlet->created_at,
                                        .reason = breaker->reason};
    if (pawli_directory_disable(dispatcher->directory, &how))
        outlet->marks++;
    else
        pawli_breaker_enable(&outlet->gate.breaker); /* no memory: its next word will do */
}

/* ---------------------------------------------------------------- marks */

static void mark(struct dispatcher *dispatcher, struct pawli_outlet *outlet,
                 const struct pawli_mark *what)
{
    if (!pawli_directory_mark(dispatcher->directory, what)) { /* no memory: the next one will do */
        if (outlet->gate.breaker.state == PAWLI_BREAKER_DISABLED)
            pawli_breaker_enable(&outlet->gate.breaker); /* nobody else would know */
        return;
    }
    outlet->marks++;
    outlet->is_marked = what->is_failing;
    outlet->marked_at = mono_of(dispatcher);
}

/*
 * Let the store know since when an endpoint fails, and that it does no more: that outlives this
 * process, and others share it. What begins is told some times a minute at the most; what ends is
 * told always, or a failure of long ago would count as going on.
 */
static void mark_endpoint(struct dispatcher *dispatcher, struct pawli_outlet *outlet,
                          enum pawli_breaker_event what)
{
    const struct pawli_breaker *breaker = &outlet->gate.breaker;
    struct pawli_mark how = {.name = outlet->name,
                             .is_failing = pawli_wall_is_set(breaker->failing_since),
                             .disable_after_ms = PAWL_FOREVER};
    bool is_soon = outlet->marks > 0 &&
                   pawli_mono_diff_ms(outlet->marked_at, mono_of(dispatcher)) < MARK_MIN_MS;
    if (what == PAWLI_BREAKER_NOW_DISABLED) { /* here; for all, the store decides */
        how.disable_after_ms = dispatcher->rules.gate.breaker.disable_after_ms;
        how.reason = breaker->reason;
        mark(dispatcher, outlet, &how);
    } else if (how.is_failing != outlet->is_marked && !(how.is_failing && is_soon)) {
        mark(dispatcher, outlet, &how);
    }
}

/* Somebody else has marked it; but it has answered well here, since then. */
static void answer_mark(struct dispatcher *dispatcher, struct pawli_outlet *outlet)
{
    pawl_wall since = outlet->gate.breaker.failing_since;
    if (outlet->is_marked && pawli_wall_is_set(since) &&
        pawli_wall_is_before(since, outlet->delivered_at)) {
        pawli_breaker_told(&outlet->gate.breaker, (pawl_wall){0});
        mark_endpoint(dispatcher, outlet, PAWLI_BREAKER_SAME);
    }
}

static const char *delivery_name(enum pawli_delivery delivery)
{
    static const char *const names[] = {"stopped", "delivered", "retried", "failed"};
    return names[delivery];
}

static void tell_delivery(struct dispatcher *dispatcher, const struct delivery *delivery,
                          const struct pawli_wire_end *end, const struct pawli_outcome *outcome)
{
    pawl_event event = {.kind = PAWL_EVENT_DELIVERY,
                        .level = outcome->delivery == PAWLI_DELIVERED         ? PAWL_LEVEL_DEBUG
                                 : outcome->delivery == PAWLI_DELIVERY_FAILED ? PAWL_LEVEL_WARN
                                                                              : PAWL_LEVEL_INFO,
                        .reason = delivery_name(outcome->delivery),
                        .count = end->sends,
                        .took_us = end->took_us};
    (void)pawli_text_copy(event.subject, sizeof(event.subject), outcome->reason); /* fits */
    (void)pawli_text_copy(event.text, sizeof(event.text), end->text);             /* cut */
    pawli_pump_tell(dispatcher->place.pump, delivery->slot, &event);
}

/* ---------------------------------------------------------------- bounds */

static int64_t bound_of(struct dispatcher *dispatcher, struct pawli_outlet *outlet, pawl_mono now)
{
    int64_t bound = pawli_outlet_bound(outlet, now);
    int64_t part = pawli_slots_bound(&dispatcher->parts, dispatcher->rules.gate.window_start);
    return pawli_host_bound(outlet, bound < part ? bound : part);
}

/* Tell the pump how many of an endpoint may be held now, where that has changed. */
static void rebound(struct dispatcher *dispatcher, struct pawli_outlet *outlet)
{
    pawl_mono now = mono_of(dispatcher);
    int64_t bound = bound_of(dispatcher, outlet, now);
    dispatcher->look_at = pawli_mono_min(dispatcher->look_at,
                                         pawli_gate_deadline(&outlet->gate, now));
    if (bound == outlet->bound || outlet->line == PAWLI_LINE_ALL)
        return;
    outlet->bound = bound;
    pawli_pump_line_bound(dispatcher->place.pump, outlet->line, bound);
}

static void look_at_slots(struct dispatcher *dispatcher)
{
    pawl_mono now = mono_of(dispatcher);
    if (pawli_mono_is_before(now, dispatcher->slots_at))
        return;
    dispatcher->slots_at = pawli_mono_add_ms(now, SLOTS_LOOK_MS);
    for (struct pawli_outlet *outlet = pawli_roster_next(&dispatcher->roster, NULL); outlet != NULL;
         outlet = pawli_roster_next(&dispatcher->roster, outlet))
        pawli_slots_look(&dispatcher->parts, outlet, now);
}

static void look_at_all(struct dispatcher *dispatcher)
{
    pawl_mono now = mono_of(dispatcher);
    if (pawli_mono_is_before(now, dispatcher->look_at))
        return;
    dispatcher->look_at = PAWLI_MONO_NEVER;
    for (struct pawli_outlet *outlet = pawli_roster_next(&dispatcher->roster, NULL); outlet != NULL;
         outlet = pawli_roster_next(&dispatcher->roster, outlet))
        rebound(dispatcher, outlet);
    pawl_mono soonest = pawli_mono_add_ms(now, LOOK_MIN_MS);
    if (pawli_mono_is_before(dispatcher->look_at, soonest))
        dispatcher->look_at = soonest;
}

/* ---------------------------------------------------------------- endpoints */

/* Half of the slots at most go to endpoints that have not answered, where there are enough. */
static void set_window(struct dispatcher *dispatcher)
{
    int64_t each = dispatcher->parts.all / (2 * (int64_t)(dispatcher->roster.count + 1));
    dispatcher->rules.gate.window_start = each < 1 ? 1 : each < WINDOW_START ? each : WINDOW_START;
}

/* After its last delivery. */
static void remove_if_gone(struct dispatcher *dispatcher, struct pawli_outlet *outlet)
{
    if (!outlet->is_gone || outlet->deliveries > 0)
        return;
    pawli_slots_leave(&dispatcher->parts, outlet);
    pawli_roster_remove(&dispatcher->roster, outlet);
}

static void drop(struct dispatcher *dispatcher, struct pawli_outlet *outlet)
{
    if (outlet->line != PAWLI_LINE_ALL)
        pawli_pump_line_drop(dispatcher->place.pump, outlet->line);
    outlet->line = PAWLI_LINE_ALL;
    outlet->is_gone = true;
    remove_if_gone(dispatcher, outlet);
}

static void serve(struct dispatcher *dispatcher, struct pawli_outlet *outlet)
{
    const pawl_worker_queue queue = {.queue = outlet->queue,
                                     .jobs_max = bound_of(dispatcher, outlet, mono_of(dispatcher)),
                                     .lease_ms = PAWL_DEFAULT};
    outlet->line = pawli_pump_line_put(dispatcher->place.pump, &queue);
    outlet->bound = queue.jobs_max;
    pawli_worker_lease(dispatcher->place.runner, outlet->lease_ms);
    pawli_metrics_serve(pawli_watch_metrics(dispatcher->place.watch), outlet->queue);
    rebound(dispatcher, outlet); /* for the deadline */
}

static void take_one(struct dispatcher *dispatcher, const struct pawli_news *news)
{
    struct pawli_roster *roster = &dispatcher->roster;
    struct pawli_outlet *outlet = pawli_roster_find(roster, news->endpoint.name);
    if (news->is_gone) {
        if (outlet != NULL)
            drop(dispatcher, outlet);
        return;
    }
    if (outlet == NULL) {
        set_window(dispatcher);
        outlet = pawli_outlet_new(news->endpoint.name, &dispatcher->rules, mono_of(dispatcher));
        if (outlet == NULL)
            return; /* its jobs wait; a change of it brings it here again */
        pawli_roster_add(roster, outlet);
    }
    if (outlet->is_gone)
        outlet->marks = 0; /* the directory counts anew as well */
    pawli_outlet_set(outlet, news, &dispatcher->rules, now_of(dispatcher));
    answer_mark(dispatcher, outlet);
    if (outlet->code == PAWL_OK)
        (void)pawli_roster_move(roster, outlet); /* without memory it stays with its old host */
    else
        tell_endpoint(dispatcher, outlet,
                      (pawl_event){.kind = PAWL_EVENT_ENDPOINT_REFUSED, .level = PAWL_LEVEL_WARN},
                      outlet->problem);
    serve(dispatcher, outlet);
}

static void take_news(struct dispatcher *dispatcher)
{
    struct pawli_news_list list = STAILQ_HEAD_INITIALIZER(list);
    struct pawli_news *news;
    pthread_mutex_lock(&dispatcher->mutex);
    STAILQ_CONCAT(&list, &dispatcher->news);
    pthread_mutex_unlock(&dispatcher->mutex);
    while ((news = STAILQ_FIRST(&list)) != NULL) {
        STAILQ_REMOVE_HEAD(&list, next);
        take_one(dispatcher, news);
        pawli_news_free(news);
    }
}

/* From the directory's thread. */
static void on_news(void *user, struct pawli_news *news)
{
    struct dispatcher *dispatcher = user;
    pthread_mutex_lock(&dispatcher->mutex);
    STAILQ_INSERT_TAIL(&dispatcher->news, news, next);
    pthread_mutex_unlock(&dispatcher->mutex);
    pawli_wire_wake(dispatcher->wire);
}

/* ---------------------------------------------------------------- ends */

static void end_job(struct dispatcher *dispatcher, struct pawli_slot slot, struct pawli_ended ended,
                    const char *error_code, const char *error_text)
{
    pawli_pump_ended(
        dispatcher->place.pump, slot,
        &(struct pawli_pump_end){.ended = ended,
                                 .error_code = error_code,
                                 .error_text = error_text,
                                 .is_delivery = true}); /* and nothing of it was sent */
}

/* It cannot be sent now, for a reason that is not its own: no retry is used. */
static void put_back(struct dispatcher *dispatcher, struct pawli_slot slot, int64_t delay_ms,
                     const char *error_code)
{
    delay_ms = delay_ms < PUT_BACK_MIN_MS ? PUT_BACK_MIN_MS : delay_ms;
    delay_ms = delay_ms > PUT_BACK_MAX_MS ? PUT_BACK_MAX_MS : delay_ms;
    end_job(dispatcher, slot,
            (struct pawli_ended){.result = PAWLI_RESULT_SNOOZE, .delay_ms = delay_ms}, error_code,
            NULL);
}

/* After a pause, and not all of them at once. */
static int64_t retry_delay(const struct dispatcher *dispatcher, int64_t pause_ms)
{
    if (pause_ms == 0)
        return PAWL_DEFAULT; /* by the queue's backoff */
    uint64_t spread = (uint64_t)(pause_ms / PAUSE_PART) + 1000;
    return pause_ms + (int64_t)pawli_random_below(dispatcher->place.random, spread);
}

static struct pawli_ended result_of(const struct dispatcher *dispatcher,
                                    const struct pawli_outcome *outcome)
{
    switch (outcome->delivery) {
    case PAWLI_DELIVERED:
        return (struct pawli_ended){.result = PAWLI_RESULT_DONE, .delay_ms = PAWL_DEFAULT};
    case PAWLI_DELIVERY_FAILED:
        return (struct pawli_ended){.result = PAWLI_RESULT_FAIL, .delay_ms = PAWL_DEFAULT};
    default: /* what was stopped is settled as the keeper knows why, or not at all */
        return (struct pawli_ended){.result = PAWLI_RESULT_RETRY,
                                    .delay_ms = retry_delay(dispatcher, outcome->pause_ms)};
    }
}

static void settle(struct dispatcher *dispatcher, const struct delivery *delivery,
                   const struct pawli_wire_end *end, const struct pawli_outcome *outcome)
{
    char text[PAWL_ERROR_TEXT_MAX + 1];
    (void)snprintf(text, sizeof(text), "%s%s%" PRId64 " ms", end->text,
                   end->text[0] != '\0' ? "; after " : "after ", end->took_us / 1000); /* it fits */
    tell_delivery(dispatcher, delivery, end, outcome);
    pawli_pump_ended(dispatcher->place.pump, delivery->slot,
                     &(struct pawli_pump_end){.ended = result_of(dispatcher, outcome),
                                              .error_code = outcome->reason,
                                              .error_text = text,
                                              .is_delivery = true,
                                              .wire_sends = end->sends});
}

/* Of a delivery that the gate let through: what its end says of the endpoint. */
static void close_delivery(struct dispatcher *dispatcher, struct delivery *delivery,
                           const struct pawli_wire_end *end)
{
    struct pawli_outlet *outlet = delivery->outlet;
    struct pawli_breaker_now now = now_of(dispatcher);
    struct pawli_outcome outcome = pawli_outcome_of(&end->transfer, &outlet->rules, now.wall);
    const struct pawli_gate_ended ended = {
        .pass = delivery->pass, .end = end->transfer.end, .outcome = outcome};
    enum pawli_breaker_event what = pawli_gate_ended(&outlet->gate, &dispatcher->rules.gate, now,
                                                     &ended);
    if (outcome.pause_ms > 0)
        tell_endpoint(dispatcher, outlet,
                      (pawl_event){.kind = PAWL_EVENT_ENDPOINT_PAUSED,
                                   .level = PAWL_LEVEL_INFO,
                                   .took_us = outcome.pause_ms * 1000},
                      outcome.reason);
    tell_breaker(dispatcher, outlet, what, outcome.reason);
    if (outcome.delivery == PAWLI_DELIVERED)
        outlet->delivered_at = now.wall;
    if (what == PAWLI_BREAKER_NOW_DISABLED && outcome.is_endpoint_gone)
        disable(dispatcher, outlet);
    else
        mark_endpoint(dispatcher, outlet, what);
    rebound(dispatcher, outlet); /* before the job is over, and another could be claimed */
    settle(dispatcher, delivery, end, &outcome);
}

/* Forget what was under way. */
static void clear_delivery(struct dispatcher *dispatcher, struct delivery *delivery)
{
    struct pawli_outlet *outlet = delivery->outlet;
    assert(delivery->parked.outlet == NULL);
    pawli_request_clear(&delivery->request);
    pawl_job_clear(&delivery->job);
    delivery->sending = NULL;
    delivery->outlet = NULL;
    pawli_slots_give(&dispatcher->parts, outlet);
    if (outlet->host != NULL)
        outlet->host->in_flight--;
    pawli_roster_stir(&dispatcher->roster, outlet);
    remove_if_gone(dispatcher, outlet);
}

/* ---------------------------------------------------------------- the wire's owner */

static bool may_send(void *user, void *tag)
{
    struct dispatcher *dispatcher = user;
    const struct delivery *delivery = tag;
    /* K3: the lease is ours, not at risk, and nobody said stop; by the clock as it is now. */
    return pawli_pump_stop_why(dispatcher->place.pump, delivery->slot, NULL) == PAWLI_WHY_NONE;
}

static void on_ended(void *user, void *tag, const struct pawli_wire_end *end)
{
    close_delivery(user, tag, end);
    clear_delivery(user, tag);
}

/* ---------------------------------------------------------------- starts */

/* Begin the request of a delivery. PAWL_INVALID: no try will ever do. */
static pawl_code begin(struct dispatcher *dispatcher, struct delivery *delivery, pawl_err *err)
{
    struct pawli_outlet *outlet = delivery->outlet;
    struct pawli_request_args args = {.job = &delivery->job,
                                      .headers = outlet->credentials.headers,
                                      .format = outlet->format,
                                      .source = dispatcher->source,
                                      .now = wall_of(dispatcher)};
    pawl_code code = pawli_outlet_signer(outlet, args.now, &args.signer, err);
    if (code != PAWL_OK)
        return code == PAWL_INVALID ? PAWL_DOWN : code; /* that is the endpoint's fault */
    code = pawli_request_make(&args, &delivery->request, err);
    if (code != PAWL_OK)
        return code;
    const struct pawli_wire_request request = {
        .target = &outlet->target,
        .headers = (const char *)delivery->request.headers.bytes,
        .headers_len = delivery->request.headers.len,
        .body = delivery->request.body,
        .body_len = delivery->request.body_len,
        .timeout_ms = outlet->timeout_ms,
        .tag = delivery};
    return pawli_wire_send(dispatcher->wire, &request, &delivery->sending, err);
}

/* It did not come to a request. */
static void fail_delivery(struct dispatcher *dispatcher, struct delivery *delivery, pawl_code code,
                          const char *text)
{
    struct pawli_outlet *outlet = delivery->outlet;
    struct pawli_wire_end end = {.transfer = {.end = PAWLI_END_LOCAL}, .text = text};
    if (code != PAWL_INVALID) {
        close_delivery(dispatcher, delivery, &end);
        return;
    }
    const struct pawli_gate_ended ended = {
        .pass = delivery->pass, .end = PAWLI_END_STOPPED, .outcome = {.delivery = 0}};
    (void)pawli_gate_ended(&outlet->gate, &dispatcher->rules.gate, now_of(dispatcher), &ended);
    struct pawli_outcome outcome = {.delivery = PAWLI_DELIVERY_FAILED, .reason = "NOT-AN-EVENT"};
    settle(dispatcher, delivery, &end, &outcome);
}

/* The endpoint cannot be called as it is set: as if its address had been refused. */
static void refuse_delivery(struct dispatcher *dispatcher, struct delivery *delivery)
{
    struct pawli_wire_end end = {.transfer = {.end = PAWLI_END_ADDRESS},
                                 .text = delivery->outlet->problem};
    close_delivery(dispatcher, delivery, &end);
}

/* Why a job cannot be sent now, and for how long; NULL: it can, and has its pass. */
static const char *ask(struct dispatcher *dispatcher, struct pawli_outlet *outlet,
                       struct pawli_breaker_pass *ret_pass, int64_t *ret_wait_ms)
{
    pawl_mono now = mono_of(dispatcher);
    *ret_wait_ms = 0;
    if (outlet->is_gone)
        return "NO-ENDPOINT";
    if (!outlet->is_enabled)
        return "DISABLED";
    if (pawli_gate_ask(&outlet->gate, now, ret_pass))
        return NULL;
    pawl_mono until = pawli_gate_deadline(&outlet->gate, now);
    *ret_wait_ms = until.us == PAWLI_MONO_NEVER.us ? 0 : pawli_mono_diff_ms(now, until) + 1;
    rebound(dispatcher, outlet);
    return "ENDPOINT-CLOSED";
}

/* Send it, if anything: its host has room. */
static void go(struct dispatcher *dispatcher, struct delivery *delivery)
{
    struct pawli_outlet *outlet = delivery->outlet;
    int64_t wait_ms = 0;
    pawl_err err = {.code = PAWL_OK};
    if (outlet->host != NULL)
        outlet->host->in_flight++;
    const char *why_not = ask(dispatcher, outlet, &delivery->pass, &wait_ms);
    if (why_not != NULL) {
        put_back(dispatcher, delivery->slot, wait_ms, why_not);
        clear_delivery(dispatcher, delivery);
        return;
    }
    pawl_code code = outlet->code == PAWL_OK ? begin(dispatcher, delivery, &err) : PAWL_OK;
    if (outlet->code != PAWL_OK)
        refuse_delivery(dispatcher, delivery);
    else if (code != PAWL_OK)
        fail_delivery(dispatcher, delivery, code, err.text);
    else
        rebound(dispatcher, outlet); /* its rate may be used up */
    if (delivery->sending == NULL)
        clear_delivery(dispatcher, delivery);
}

/* It waits no more, and is counted as if it were on its way. */
static void unpark(struct delivery *delivery)
{
    struct pawli_host *host = delivery->outlet->host;
    pawli_host_unpark(&delivery->parked);
    host->in_flight++;
}

/* Let it wait until its host has room; but so that the rest of its time is enough to send it, and
 * no host's take all slots. */
static void park(struct dispatcher *dispatcher, struct delivery *delivery)
{
    struct pawli_outlet *outlet = delivery->outlet;
    struct pawli_parked *parked = &delivery->parked;
    pawl_mono until = pawli_pump_run_until(dispatcher->place.pump, delivery->slot);
    until.us -= outlet->timeout_ms * 1000;
    *parked = (struct pawli_parked){.outlet = outlet, .until = until, .tag = delivery};
    bool is_full = outlet->host->parked_count * PARKED_PART >= dispatcher->parts.all;
    pawli_host_park(parked);
    rebound(dispatcher, outlet); /* nothing more of it for now */
    if (is_full) {
        unpark(delivery);
        put_back(dispatcher, delivery->slot, 0, "HOST-BUSY");
        clear_delivery(dispatcher, delivery);
        return;
    }
    dispatcher->unpark_at = pawli_mono_min(dispatcher->unpark_at, until);
}

/* Put back what has waited for too long. */
static void look_at_parked(struct dispatcher *dispatcher)
{
    pawl_mono now = mono_of(dispatcher);
    if (pawli_mono_is_before(now, dispatcher->unpark_at))
        return;
    dispatcher->unpark_at = PAWLI_MONO_NEVER;
    for (size_t i = 0; i < dispatcher->slots; i++) {
        struct delivery *delivery = &dispatcher->deliveries[i];
        if (delivery->parked.outlet == NULL)
            continue;
        if (pawli_mono_is_before(now, delivery->parked.until)) {
            dispatcher->unpark_at = pawli_mono_min(dispatcher->unpark_at, delivery->parked.until);
            continue;
        }
        unpark(delivery);
        put_back(dispatcher, delivery->slot, 0, "HOST-BUSY");
        clear_delivery(dispatcher, delivery);
    }
}

/* Let those claim again that were held back: as many as there is room for. If they have nothing to
 * send, others get their turn. */
static void let_claim(struct dispatcher *dispatcher, struct pawli_host *host)
{
    struct pawli_outlet *outlet;
    for (int64_t room = pawli_host_room(host); room > 0 && (outlet = pawli_host_next(host)) != NULL;
         room--)
        rebound(dispatcher, outlet);
    if (!TAILQ_EMPTY(&host->held_back) && pawli_host_room(host) > 0)
        dispatcher->look_at = pawli_mono_min(dispatcher->look_at,
                                             pawli_mono_add_ms(mono_of(dispatcher), HELD_BACK_MS));
}

/* Where deliveries have ended others may go, those that wait before new ones. */
static void look_at_hosts(struct dispatcher *dispatcher)
{
    struct pawli_host *host;
    while ((host = pawli_roster_stirred(&dispatcher->roster)) != NULL) {
        struct pawli_parked *parked = pawli_host_ready(host);
        if (parked == NULL) {
            let_claim(dispatcher, host);
            continue;
        }
        struct delivery *delivery = parked->tag;
        pawli_roster_stir(&dispatcher->roster, delivery->outlet); /* for the next one */
        pawli_host_unpark(parked);
        go(dispatcher, delivery); /* with it the host may go */
    }
}

static void on_start(void *user, struct pawli_slot slot)
{
    struct dispatcher *dispatcher = user;
    struct delivery *delivery = &dispatcher->deliveries[slot.index];
    assert(delivery->outlet == NULL);
    if (!pawli_pump_begin(dispatcher->place.pump, slot, &delivery->job)) {
        end_job(dispatcher, slot,
                (struct pawli_ended){.result = PAWLI_RESULT_RETRY, .delay_ms = PAWL_DEFAULT}, NULL,
                NULL);
        return;
    }
    struct pawli_outlet *outlet = pawli_roster_of(&dispatcher->roster, delivery->job.queue);
    if (outlet == NULL) {
        pawl_job_clear(&delivery->job);
        put_back(dispatcher, slot, 0, "NO-ENDPOINT");
        return;
    }
    delivery->slot = slot;
    delivery->outlet = outlet;
    pawli_slots_take(&dispatcher->parts, outlet, mono_of(dispatcher));
    if (outlet->host != NULL && pawli_host_room(outlet->host) == 0)
        park(dispatcher, delivery);
    else
        go(dispatcher, delivery);
}

/* FR-002, K8: the lease is gone, or somebody said stop: off the wire with it, and no other. */
static void on_abort(void *user, struct pawli_slot slot)
{
    struct dispatcher *dispatcher = user;
    struct delivery *delivery = &dispatcher->deliveries[slot.index];
    if (delivery->outlet == NULL || delivery->slot.generation != slot.generation)
        return;                            /* it has just ended */
    if (delivery->parked.outlet != NULL) { /* nothing was sent */
        unpark(delivery);
        end_job(dispatcher, slot,
                (struct pawli_ended){.result = PAWLI_RESULT_RETRY, .delay_ms = PAWL_DEFAULT}, NULL,
                NULL);
        clear_delivery(dispatcher, delivery);
        return;
    }
    struct pawli_wire_end end = pawli_wire_stop(dispatcher->wire, delivery->sending);
    close_delivery(dispatcher, delivery, &end);
    clear_delivery(dispatcher, delivery);
}

static void on_give_up(void *user, struct pawli_slot slot)
{
    (void)user; /* whatever is told to stop has stopped */
    (void)slot;
}

/* ---------------------------------------------------------------- the thread */

static void on_wait(void *user, pawl_mono deadline)
{
    struct dispatcher *dispatcher = user;
    take_news(dispatcher);
    look_at_parked(dispatcher);
    look_at_hosts(dispatcher);
    look_at_slots(dispatcher);
    look_at_all(dispatcher);
    pawl_mono until = pawli_mono_min(pawli_mono_min(deadline, dispatcher->look_at),
                                     dispatcher->unpark_at);
    int64_t us = until.us - mono_of(dispatcher).us;
    pawli_wire_turn(dispatcher->wire, us <= 0 ? 0 : us / 1000 + 1);
}

static void on_wake(void *user)
{
    struct dispatcher *dispatcher = user;
    pawli_wire_wake(dispatcher->wire);
}

static void on_end(void *user)
{
    struct dispatcher *dispatcher = user;
    pawli_directory_end(dispatcher->directory);
}

static size_t on_stuck(void *user)
{
    (void)user; /* nothing ever is */
    return 0;
}

/* ---------------------------------------------------------------- life */

static void free_dispatcher(void *user)
{
    struct dispatcher *dispatcher = user;
    struct pawli_news *news;
    if (dispatcher == NULL)
        return;
    pawli_wire_free(dispatcher->wire); /* first: it borrows what is under way */
    for (size_t i = 0; i < dispatcher->slots && dispatcher->deliveries != NULL; i++)
        if (dispatcher->deliveries[i].outlet != NULL) {
            if (dispatcher->deliveries[i].parked.outlet != NULL)
                pawli_host_unpark(&dispatcher->deliveries[i].parked);
            pawli_request_clear(&dispatcher->deliveries[i].request);
            pawl_job_clear(&dispatcher->deliveries[i].job);
        }
    free(dispatcher->deliveries);
    pawli_directory_free(dispatcher->directory);
    pawli_roster_clear(&dispatcher->roster);
    while ((news = STAILQ_FIRST(&dispatcher->news)) != NULL) {
        STAILQ_REMOVE_HEAD(&dispatcher->news, next);
        pawli_news_free(news);
    }
    (void)pthread_mutex_destroy(&dispatcher->mutex); /* nobody has it */
    free(dispatcher);
}

static const struct pawli_hands_ops ops = {
    .start = on_start,
    .abort = on_abort,
    .give_up = on_give_up,
    .wait = on_wait,
    .wake = on_wake,
    .end = on_end,
    .stuck = on_stuck,
    .free = free_dispatcher,
};

static pawl_code build(struct dispatcher *dispatcher,
                       const struct pawli_dispatcher_options *options, pawl_err *err)
{
    const struct pawli_hands_place *place = &dispatcher->place;
    const struct pawli_wire_owner owner = {
        .may_send = may_send, .ended = on_ended, .user = dispatcher};
    dispatcher->slots = pawli_pump_slots(place->pump);
    dispatcher->deliveries = calloc(dispatcher->slots, sizeof(*dispatcher->deliveries));
    dispatcher->directory = pawli_directory_new(
        &(struct pawli_directory_config){.opener = place->opener,
                                         .watch = place->watch,
                                         .clock = place->clock,
                                         .worker = place->worker,
                                         .refresh_ms = options->refresh_ms,
                                         .tell = on_news,
                                         .user = dispatcher});
    if (dispatcher->deliveries == NULL || dispatcher->directory == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    return pawli_wire_new(&dispatcher->wire_rules, &owner, place->clock, &dispatcher->wire, err);
}

static pawl_code make(void *user, const struct pawli_hands_place *place,
                      struct pawli_hands *ret_hands, pawl_err *err)
{
    const struct pawli_dispatcher_options *options = user;
    struct dispatcher *dispatcher = calloc(1, sizeof(*dispatcher));
    if (dispatcher == NULL || pthread_mutex_init(&dispatcher->mutex, NULL) != 0) {
        free(dispatcher);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    dispatcher->place = *place;
    dispatcher->parts.all = place->settings->parallel_max;
    pawli_roster_init(&dispatcher->roster, options->per_host_max);
    dispatcher->look_at = PAWLI_MONO_NEVER;
    dispatcher->unpark_at = PAWLI_MONO_NEVER;
    STAILQ_INIT(&dispatcher->news);
    (void)pawli_text_copy(dispatcher->source, sizeof(dispatcher->source), options->source);
    dispatcher->rules = (struct pawli_outlet_rules){
        .target = options->target,
        .gate = {.breaker = options->breaker, .window_start = WINDOW_START},
        .outcome = options->outcome,
        .most = dispatcher->parts.all > 1 ? dispatcher->parts.all / 2 : 1};
    dispatcher->wire_rules = options->wire;
    pawl_code code = build(dispatcher, options, err);
    if (code != PAWL_OK) {
        free_dispatcher(dispatcher);
        return code;
    }
    *ret_hands = (struct pawli_hands){.ops = &ops, .user = dispatcher};
    return PAWL_OK;
}

static pawl_code start_directory(void *hands)
{
    struct dispatcher *dispatcher = hands;
    return pawli_crew_start(dispatcher->place.crew, "pawl-directory", pawli_directory_run,
                            dispatcher->directory);
}

void pawli_dispatcher_options_init(struct pawli_dispatcher_options *options)
{
    *options = (struct pawli_dispatcher_options){
        .refresh_ms = REFRESH_MS, .per_host_max = PER_HOST_MAX, .source = SOURCE};
    pawl_worker_options_init(&options->worker);
    options->worker.settings.parallel_max = PARALLEL_MAX;
    options->worker.settings.buffer_max = 0; /* what is claimed is sent */
    options->worker.settings.settle_linger_ms = SETTLE_LINGER_MS;
    pawli_wire_rules_init(&options->wire);
    pawli_breaker_rules_init(&options->breaker);
    pawli_outcome_rules_init(&options->outcome);
}

static pawl_code check(const struct pawli_dispatcher_options *options, pawl_err *err)
{
    const struct pawli_cloud_event event = {
        .id = "a", .source = options->source, .type = "a", .payload = ""};
    pawl_code code = pawli_check_duration("refresh_ms", options->refresh_ms, 1, err);
    if (code == PAWL_OK)
        code = pawli_check_range("per_host_max", options->per_host_max,
                                 (struct pawli_range){1, PAWL_BATCH_MAX}, err);
    if (code == PAWL_OK)
        code = pawli_breaker_rules_check(&options->breaker, err);
    if (code == PAWL_OK)
        code = pawli_outcome_rules_check(&options->outcome, err);
    return code == PAWL_OK ? pawli_cloud_event_check(&event, err) : code;
}

pawl_code pawli_dispatcher_start(const struct pawli_dispatcher_options *options,
                                 pawl_runner **ret_runner, pawl_err *err)
{
    pawl_worker_options worker = options->worker;
    struct pawli_dispatcher_options copy = *options;
    const struct pawli_hands_maker maker = {.make = make,
                                            .start = start_directory,
                                            .user = &copy,
                                            .threads_max = 1,
                                            .lines_max = PAWL_ENDPOINTS_MAX,
                                            .shows_as = SHOWS_AS};
    worker.queues = NULL;
    worker.queues_count = 0;
    pawl_code code = check(options, err);
    return code == PAWL_OK ? pawli_worker_start_with(&worker, &maker, ret_runner, err) : code;
}
