/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * waiting.c - claims that wait for work: suspended requests behind one thread, not a thread each.
 * Owns:  who waits, in the order in which they came; when they are tried again.
 * Never: takes a job for a client that has gone; lets one wait longer than it asked for, about.
 * Locks: serve.wait_lock, never held over a store call but pawl_wake(), which does not block.
 */
#include "serve/exchange.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

#define POLL_MS       1000 /* how often all are tried, whatever hints there are */
#define EMPTY_MAX     64   /* queues that were found empty in one round */
#define CALL_LIMIT_MS 5000

void pawli_wait_for_work(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    size_t before = atomic_fetch_add(&serve->figures.waiting, 1);
    exchange->wait_from = pawli_serve_now(serve);
    exchange->wait_until = pawli_mono_add_ms(exchange->wait_from, exchange->call.claiming->wait_ms);
    if (before >= serve->limits.waiting) {
        pawli_answer_problem(&exchange->answer, PAWLI_PROBLEM_BUSY,
                             "%zu claims wait already; try again, or without wait", before);
        exchange->wait_until = exchange->wait_from; /* answered at once, by who answers them all */
    }
    (void)pthread_mutex_lock(&serve->wait_lock); /* here and below: cannot fail, it is plain */
    pawli_line_put(&serve->arrivals, exchange);
    (void)pthread_cond_signal(&serve->wait_cond);
    if (serve->sleeper != NULL)
        pawl_wake(serve->sleeper);
    (void)pthread_mutex_unlock(&serve->wait_lock);
}

void pawli_waiting_wake(struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&serve->wait_lock);
    (void)pthread_cond_signal(&serve->wait_cond);
    if (serve->sleeper != NULL)
        pawl_wake(serve->sleeper);
    (void)pthread_mutex_unlock(&serve->wait_lock);
}

/* ---------------------------------------------------------------- one round */

/* The queues that gave nothing in this round: whoever wants only these need not be tried. */
struct round {
    const char *names[EMPTY_MAX];
    size_t count;
};

static bool is_empty(const struct round *round, const char *queue)
{
    for (size_t i = 0; i < round->count; i++)
        if (strcmp(round->names[i], queue) == 0)
            return true;
    return false;
}

static bool is_worth_a_try(const struct round *round, const struct pawli_claiming *claiming)
{
    for (size_t i = 0; i < claiming->lines_count; i++)
        if (!is_empty(round, claiming->lines[i].queue))
            return true;
    return false;
}

/* The names are those of a claim that goes on waiting: they last for the round. */
static void note_empty(struct round *round, const struct pawli_claiming *claiming)
{
    for (size_t i = 0; i < claiming->lines_count; i++)
        if (round->count < EMPTY_MAX && !is_empty(round, claiming->lines[i].queue))
            round->names[round->count++] = claiming->lines[i].queue;
}

static void answer(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    pawl_mono now = pawli_serve_now(serve);
    exchange->waited_us = now.us - exchange->wait_from.us;
    exchange->call.is_waiting = false;
    exchange->call.store = NULL;
    (void)atomic_fetch_sub(&serve->figures.waiting, 1);
    exchange->phase = PAWLI_PHASE_ANSWERED;
    pawli_http_resume(exchange);
}

/* Try one. True: it goes on waiting. */
static bool try_one(struct pawli_exchange *exchange, struct pawli_link *link, struct round *round)
{
    struct pawli_call *call = &exchange->call;
    size_t count = 0;
    if (!is_worth_a_try(round, call->claiming) || pawli_serve_is_full(exchange->serve))
        return true; /* later: there is nothing to get, or no room for it */
    pawl_code code = pawli_link_ready(link, CALL_LIMIT_MS, &call->err);
    call->store = link->store;
    if (code == PAWL_OK)
        code = pawli_link_after(link, pawli_claim_try(call, call->claiming, &count));
    if (code != PAWL_OK) {
        pawli_answer_code(call->answer, code, &call->err);
        return false;
    }
    if (count > 0)
        return false;
    note_empty(round, call->claiming);
    return true;
}

/* All of them, in order; *ret_next is when the first of those that go on must be answered. */
static void try_all(struct pawli_serve *serve, struct pawli_line_up *all, struct pawli_link *link,
                    pawl_mono *ret_next)
{
    struct pawli_line_up stay = {0};
    struct round round = {.count = 0};
    struct pawli_exchange *exchange;
    *ret_next = PAWLI_MONO_NEVER;
    while ((exchange = pawli_line_take(all)) != NULL) {
        bool is_over = !pawli_mono_is_before(pawli_serve_now(serve), exchange->wait_until) ||
                       atomic_load(&serve->is_draining) || pawli_peer_is_gone(exchange->peer);
        if (is_over || !try_one(exchange, link, &round)) {
            answer(exchange);
            continue;
        }
        *ret_next = pawli_mono_min(*ret_next, exchange->wait_until);
        pawli_line_put(&stay, exchange);
    }
    *all = stay;
}

/* ---------------------------------------------------------------- the thread */

/* Those who have come since. */
static void take_arrivals(struct pawli_serve *serve, struct pawli_line_up *all)
{
    struct pawli_exchange *exchange;
    (void)pthread_mutex_lock(&serve->wait_lock);
    while ((exchange = pawli_line_take(&serve->arrivals)) != NULL)
        pawli_line_put(all, exchange);
    (void)pthread_mutex_unlock(&serve->wait_lock);
}

/* Nobody waits, or the store is away: until somebody comes, or for a while. */
static void rest(struct pawli_serve *serve, int64_t ms)
{
    struct timespec until = pawli_wait_until(ms);
    (void)pthread_mutex_lock(&serve->wait_lock);
    if (serve->arrivals.first == NULL)
        (void)pthread_cond_timedwait(&serve->wait_cond, &serve->wait_lock, &until);
    (void)pthread_mutex_unlock(&serve->wait_lock);
}

/* Until a hint comes, somebody else does, or the first of them has waited long enough. */
static void wait_for_hint(struct pawli_serve *serve, struct pawli_link *link, int64_t ms)
{
    bool is_hint = false;
    (void)pthread_mutex_lock(&serve->wait_lock);
    bool has_come = serve->arrivals.first != NULL;
    serve->sleeper = link->store;
    (void)pthread_mutex_unlock(&serve->wait_lock);
    pawl_code code = has_come ? PAWL_OK : pawl_wait(link->store, ms, &is_hint, NULL);
    (void)pthread_mutex_lock(&serve->wait_lock);
    serve->sleeper = NULL;
    (void)pthread_mutex_unlock(&serve->wait_lock);
    if (pawli_link_after(link, code) != PAWL_OK)
        rest(serve, ms);
}

/* The carriers have ended: nobody comes any more. */
static bool is_ended(struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&serve->line_lock);
    bool is_so = serve->is_ended && serve->carriers == 0;
    (void)pthread_mutex_unlock(&serve->line_lock);
    return is_so;
}

void pawli_waiting_run(void *user)
{
    struct pawli_serve *serve = user;
    struct pawli_link link = {.opener = &serve->opener, .role = PAWL_ROLE_CLAIMER};
    struct pawli_line_up all = {0};
    pawl_mono next;
    bool is_last = false;
    while (!is_last || all.first != NULL) {
        is_last = is_ended(serve); /* before the last look */
        take_arrivals(serve, &all);
        try_all(serve, &all, &link, &next);
        int64_t ms = pawli_mono_diff_ms(pawli_serve_now(serve), next) + 1;
        ms = ms < 1 ? 1 : ms < POLL_MS ? ms : POLL_MS;
        if (all.first != NULL && link.store != NULL)
            wait_for_hint(serve, &link, ms);
        else if (!is_last)
            rest(serve, ms);
    }
    pawli_link_close(&link);
}
