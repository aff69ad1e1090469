/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * carriers.c - threads that carry requests out, each with a handle of the store.
 * Owns:  the lines of those that wait for one of them; which of them share a transaction.
 * Never: reads from or writes to a client; holds a lock over a store call.
 * Locks: serve.line_lock.
 */
#include "serve/exchange.h"

#include "serve/api.h"
#include "serve/enqueue.h"
#include "serve/once.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

#define LINE_MAX_MS  10000 /* a request that has stood in line for so long is not carried out */
#define JOINED_BYTES (16u << 20) /* of payloads in one transaction, about */

/* Whether others may share its transaction: it enqueues one job, and has no key of its own. */
static bool is_joinable(const struct pawli_exchange *exchange)
{
    const struct pawli_call *call = &exchange->call;
    return exchange->phase == PAWLI_PHASE_CARRIED && call->route->run == pawli_api_enqueue &&
           !pawli_once_has_key(call);
}

bool pawli_carry(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    exchange->lined_up = pawli_serve_now(serve);
    (void)pthread_mutex_lock(&serve->line_lock); /* here and below: cannot fail, it is plain */
    bool is_open = !serve->is_ended;
    if (is_open)
        (void)atomic_fetch_add(&serve->figures.in_line, 1);
    if (is_open)
        pawli_line_put(is_joinable(exchange) ? &serve->singles : &serve->line, exchange);
    (void)pthread_cond_signal(&serve->line_cond);
    (void)pthread_mutex_unlock(&serve->line_lock);
    return is_open;
}

void pawli_carriers_end(struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&serve->line_lock);
    serve->is_ended = true;
    (void)pthread_cond_broadcast(&serve->line_cond);
    (void)pthread_mutex_unlock(&serve->line_lock);
}

/* With the lock held: whether it is the turn of those that share a transaction. One carrier at a
 * time has them: the others gather meanwhile, so that they go together without waiting for it. */
static bool is_turn_of_singles(const struct pawli_serve *serve)
{
    const struct pawli_exchange *single = serve->singles.first;
    const struct pawli_exchange *other = serve->line.first;
    return single != NULL && !serve->is_joining &&
           (other == NULL || !pawli_mono_is_before(other->lined_up, single->lined_up));
}

/* What to carry out next, one or several of them that share a transaction. */
struct turn {
    struct pawli_exchange *exchanges[PAWLI_TOGETHER_MAX];
    size_t count; /* 0: there is none, and none will come */
    bool is_joined;
};

static void take(struct pawli_serve *serve, struct turn *turn)
{
    size_t bytes = 0;
    turn->count = 0;
    (void)pthread_mutex_lock(&serve->line_lock);
    while (serve->line.first == NULL && !is_turn_of_singles(serve) && !serve->is_ended)
        (void)pthread_cond_wait(&serve->line_cond, &serve->line_lock);
    turn->is_joined = is_turn_of_singles(serve);
    if (!turn->is_joined && serve->line.first != NULL)
        turn->exchanges[turn->count++] = pawli_line_take(&serve->line);
    while (turn->is_joined && serve->singles.first != NULL && turn->count < PAWLI_TOGETHER_MAX &&
           bytes <= JOINED_BYTES) {
        bytes += serve->singles.first->call.body_len;
        turn->exchanges[turn->count++] = pawli_line_take(&serve->singles);
    }
    serve->is_joining = serve->is_joining || turn->is_joined;
    (void)atomic_fetch_sub(&serve->figures.in_line, turn->count);
    (void)pthread_mutex_unlock(&serve->line_lock);
}

static void end_joining(struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&serve->line_lock);
    serve->is_joining = false;
    (void)pthread_cond_signal(&serve->line_cond);
    (void)pthread_mutex_unlock(&serve->line_lock);
}

/* Of a body that comes in pieces: what is left begins the next one. */
static void keep_rest(struct pawli_exchange *exchange)
{
    size_t done = exchange->call.body_len;
    size_t left = exchange->body.len - done;
    memmove(exchange->body.bytes, exchange->body.bytes + done, left);
    exchange->body.len = left;
}

static void give_back(struct pawli_exchange *exchange, struct pawli_link *link)
{
    struct pawli_serve *serve = exchange->serve;
    int64_t count = (int64_t)exchange->call.claiming->granted_count;
    pawl_code code = pawli_link_ready(link, PAWL_DEFAULT, NULL);
    if (code == PAWL_OK)
        code = pawli_link_after(link,
                                pawli_claim_give_back(link->store, exchange->call.claiming, NULL));
    if (code == PAWL_OK)
        (void)atomic_fetch_add(&serve->figures.given_back, count);
    /* Else their leases expire. */
    pawli_exchange_free(exchange);
}

/* Whether it has stood in line for too long; then its answer says so. */
static bool is_too_late(struct pawli_exchange *exchange, pawl_mono now)
{
    if (pawli_mono_diff_ms(exchange->lined_up, now) <= LINE_MAX_MS)
        return false;
    pawli_call_refuse(&exchange->call, PAWLI_PROBLEM_BUSY, "the store does not keep up; try again");
    return true;
}

/* Whether there is no room for an answer that may be large; then its answer is a small one. What
 * came with a body was asked when that was kept, and what has been done must be told. */
static bool is_too_much(struct pawli_exchange *exchange)
{
    const struct pawli_route *route = exchange->call.route;
    bool is_large = route->scope == PAWLI_SCOPE_READ || route->run == pawli_api_claim ||
                    route->run == pawli_api_mine;
    if (!is_large || !pawli_serve_is_full(exchange->serve))
        return false;
    pawli_call_refuse(&exchange->call, PAWLI_PROBLEM_BUSY,
                      "too many bytes are under way; try again");
    return true;
}

static void carry_out(struct pawli_exchange *exchange, struct pawli_link *link)
{
    struct pawli_call *call = &exchange->call;
    bool is_piece = !call->is_last;
    if (!is_too_late(exchange, pawli_serve_now(exchange->serve)) && !is_too_much(exchange)) {
        pawl_code code = pawli_link_ready(link, PAWL_DEFAULT, &call->err);
        call->store = link->store;
        if (code == PAWL_OK)
            code = pawli_link_after(link, pawli_call_run(call));
        else
            pawli_call_fail(call, code);
        call->store = NULL;
        call->has_ended = call->has_ended || call->answer->problem != NULL;
    }
    if (call->is_waiting) {
        pawli_wait_for_work(exchange);
        return;
    }
    if (is_piece && !call->has_ended)
        keep_rest(exchange);
    exchange->phase = !is_piece         ? PAWLI_PHASE_ANSWERED
                      : call->has_ended ? PAWLI_PHASE_SWALLOWING
                                        : PAWLI_PHASE_READING;
    pawli_http_resume(exchange);
}

/* Those that share a transaction. Each is answered only when it has ended. */
static void carry_out_together(struct pawli_serve *serve, struct turn *turn,
                               struct pawli_link *link)
{
    struct pawli_call *calls[PAWLI_TOGETHER_MAX];
    pawl_mono now = pawli_serve_now(serve);
    pawl_err err = {.text = ""};
    size_t count = 0;
    size_t asked = 0;
    pawl_code code = pawli_link_ready(link, PAWL_DEFAULT, &err);
    for (size_t i = 0; i < turn->count; i++) {
        struct pawli_call *call = &turn->exchanges[i]->call;
        call->store = link->store;
        if (is_too_late(turn->exchanges[i], now))
            continue;
        if (code == PAWL_OK)
            calls[count++] = call;
        else
            pawli_answer_code(call->answer, code, &err);
    }
    if (count > 0)
        (void)pawli_link_after(link, pawli_enqueue_together(calls, count, &asked));
    (void)atomic_fetch_add(&serve->figures.joined, (long long)count);
    (void)atomic_fetch_add(&serve->figures.transactions, (long long)asked);
    end_joining(serve); /* before the answers: who is answered may have the next one ready */
    for (size_t i = 0; i < turn->count; i++) {
        turn->exchanges[i]->call.store = NULL;
        turn->exchanges[i]->phase = PAWLI_PHASE_ANSWERED;
        pawli_http_resume(turn->exchanges[i]);
    }
}

void pawli_carrier_run(void *user)
{
    struct pawli_serve *serve = user;
    struct pawli_link link = {.opener = &serve->opener, .role = PAWL_ROLE_SETTLER};
    struct turn turn;
    for (take(serve, &turn); turn.count > 0; take(serve, &turn)) {
        if (turn.is_joined)
            carry_out_together(serve, &turn, &link);
        else if (turn.exchanges[0]->phase == PAWLI_PHASE_BACK)
            give_back(turn.exchanges[0], &link);
        else
            carry_out(turn.exchanges[0], &link);
    }
    pawli_link_close(&link);
    (void)pthread_mutex_lock(&serve->line_lock);
    serve->carriers--;
    (void)pthread_mutex_unlock(&serve->line_lock);
    pawli_waiting_wake(serve);
}
