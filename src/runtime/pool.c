/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - the threads that run handlers.
 * Owns:  these threads, the line of jobs that wait for one, the books of those that are stuck.
 * Never: starts a job that the keeper has not started; settles what was given up.
 * Locks: pool.mutex, never held over a handler or a call into the pump.
 */
#include "runtime/pool.h"

#include "base/clock.h"
#include "runtime/job_ctx.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What a thread brings along. */
struct hand {
    struct pawli_pool *pool;
    struct pawl_job_ctx ctx;
    bool is_told; /* its cancel_fd may be readable: mutex */
};

struct pawli_pool {
    struct pawli_pool_config config;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct pawli_slot *line; /* started by the keeper, not yet by a thread; a ring: mutex */
    size_t line_first;       /* mutex */
    size_t line_count;       /* mutex */
    struct hand **runs;      /* by slot: who runs its job; NULL: nobody: mutex */
    size_t slots;
    size_t threads_max; /* mutex */
    size_t threads;     /* that are not stuck, or not replaced: mutex */
    size_t idle;        /* of these: mutex */
    size_t stuck;       /* given up, and not ended: mutex */
    size_t replaced;    /* of these: mutex */
    bool is_ending;     /* mutex */
};

struct pawli_pool *pawli_pool_new(const struct pawli_pool_config *config)
{
    struct pawli_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return NULL;
    pool->config = *config;
    pool->slots = pawli_pump_slots(config->pump);
    pool->threads_max = config->threads_max;
    pool->line = calloc(pool->slots, sizeof(*pool->line));
    pool->runs = calloc(pool->slots, sizeof(struct hand *));
    if (pool->line == NULL || pool->runs == NULL || pthread_mutex_init(&pool->mutex, NULL) != 0)
        goto no_mutex;
    if (!pawli_cond_init(&pool->work))
        goto no_cond;
    return pool;

no_cond:
    (void)pthread_mutex_destroy(&pool->mutex); /* nobody has it */
no_mutex:
    free(pool->line);
    free(pool->runs);
    free(pool);
    return NULL;
}

void pawli_pool_free(struct pawli_pool *pool)
{
    if (pool == NULL)
        return;
    (void)pthread_cond_destroy(&pool->work); /* nobody waits: all have ended */
    (void)pthread_mutex_destroy(&pool->mutex);
    free(pool->line);
    free(pool->runs);
    free(pool);
}

/* ---------------------------------------------------------------- a thread */

static void free_hand(struct hand *hand)
{
    if (hand == NULL)
        return;
    if (hand->ctx.cancel_fd >= 0)
        (void)close(hand->ctx.cancel_fd); /* nothing of worth is in it */
    free(hand);
}

static struct hand *new_hand(struct pawli_pool *pool)
{
    struct hand *hand = calloc(1, sizeof(*hand));
    if (hand == NULL)
        return NULL;
    hand->pool = pool;
    hand->ctx.pump = pool->config.pump;
    hand->ctx.worker = pool->config.worker;
    hand->ctx.clock = pool->config.clock;
    hand->ctx.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* -1: the handler is told so */
    return hand;
}

static struct pawli_pump_end end_of(const struct pawl_job_ctx *ctx, int result)
{
    struct pawli_pump_end end = {.ended = {.result = PAWLI_RESULT_RETRY, .delay_ms = ctx->delay_ms},
                                 .error_code = ctx->error_code,
                                 .error_text = ctx->error_text};
    switch (result) {
    case PAWL_SUCCEED:
        end.ended.result = PAWLI_RESULT_DONE;
        break;
    case PAWL_FAIL:
        end.ended.result = PAWLI_RESULT_FAIL;
        break;
    case PAWL_SNOOZE:
        end.ended.result = PAWLI_RESULT_SNOOZE;
        if (ctx->delay_ms == PAWL_DEFAULT)
            end.ended.delay_ms = PAWL_SNOOZE_DEFAULT_MS;
        break;
    case PAWL_SETTLED_BY_ME:
        end.ended.result = PAWLI_RESULT_SETTLED;
        break;
    default:
        break;
    }
    return end;
}

/* True: the keeper has started another job in its place, to be put in line. */
static bool run_job(struct hand *hand, struct pawli_slot *ret_next)
{
    struct pawl_job_ctx *ctx = &hand->ctx;
    struct pawli_pump_end end = {.ended = {.result = PAWLI_RESULT_RETRY, .delay_ms = PAWL_DEFAULT}};
    ctx->delay_ms = PAWL_DEFAULT;
    ctx->error_code[0] = ctx->error_text[0] = '\0';
    if (pawli_pump_begin(ctx->pump, ctx->slot, &ctx->job)) {
        end = end_of(ctx, hand->pool->config.handler(ctx, hand->pool->config.user));
        pawl_job_clear(&ctx->job);
    }
    return pawli_pump_ended_next(ctx->pump, ctx->slot, &end, ret_next);
}

static void put_in_line(struct pawli_pool *pool, struct pawli_slot slot)
{
    assert(pool->line_count < pool->slots);
    pool->line[(pool->line_first + pool->line_count++) % pool->slots] = slot;
}

/* Take the first job in line. Under the lock. */
static void take_job(struct pawli_pool *pool, struct hand *hand)
{
    uint64_t count;
    hand->ctx.slot = pool->line[pool->line_first];
    pool->line_first = (pool->line_first + 1) % pool->slots;
    pool->line_count--;
    hand->ctx.is_given_up = false;
    hand->ctx.is_replaced = false;
    pool->runs[hand->ctx.slot.index] = hand;
    if (hand->is_told)
        (void)!read(hand->ctx.cancel_fd, &count, sizeof(count)); /* what was for the job before */
    hand->is_told = false;
}

/* It has ended. False: the thread has been replaced. Under the lock. */
static bool put_back(struct pawli_pool *pool, struct hand *hand)
{
    if (pool->runs[hand->ctx.slot.index] == hand)
        pool->runs[hand->ctx.slot.index] = NULL;
    if (!hand->ctx.is_given_up)
        return true;
    pool->stuck--;
    pool->replaced -= hand->ctx.is_replaced;
    return !hand->ctx.is_replaced;
}

static void run_hand(void *argument)
{
    struct hand *hand = argument;
    struct pawli_pool *pool = hand->pool;
    bool is_member = true;
    pthread_mutex_lock(&pool->mutex);
    while (is_member) {
        pool->idle++;
        while (pool->line_count == 0 && !pool->is_ending)
            pthread_cond_wait(&pool->work, &pool->mutex);
        pool->idle--;
        if (pool->line_count == 0)
            break;
        take_job(pool, hand);
        pthread_mutex_unlock(&pool->mutex);
        struct pawli_slot next;
        bool is_next = run_job(hand, &next); /* mostly: nobody need be woken for it */
        pthread_mutex_lock(&pool->mutex);
        bool was_stuck = hand->ctx.is_given_up;
        is_member = put_back(pool, hand);
        if (is_next)
            put_in_line(pool, next);
        if (is_next && !is_member) /* another one has taken its place */
            pthread_cond_signal(&pool->work);
        if (was_stuck) {
            pawl_event event = {.kind = PAWL_EVENT_THREAD_BACK,
                                .level = PAWL_LEVEL_WARN,
                                .count = (int64_t)pool->stuck};
            pthread_mutex_unlock(&pool->mutex);
            pawli_pump_tell(pool->config.pump, hand->ctx.slot, &event);
            pthread_mutex_lock(&pool->mutex);
        }
    }
    pool->threads -= is_member;
    pthread_mutex_unlock(&pool->mutex);
    free_hand(hand);
}

/* ---------------------------------------------------------------- signals */

/* One thread more. Under the lock. */
static bool add_thread(struct pawli_pool *pool)
{
    struct hand *hand = new_hand(pool);
    if (hand == NULL ||
        pawli_crew_start(pool->config.crew, "pawl-handler", run_hand, hand) != PAWL_OK) {
        free_hand(hand);
        return false;
    }
    pool->threads++;
    return true;
}

void pawli_pool_start(struct pawli_pool *pool, struct pawli_slot slot)
{
    pthread_mutex_lock(&pool->mutex);
    /* One that is about to be idle may be seen as busy: no more threads than handlers at once. */
    bool has_thread = pool->idle > pool->line_count || pool->threads >= pool->threads_max ||
                      add_thread(pool) || pool->threads > 0;
    if (has_thread)
        put_in_line(pool, slot);
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    if (!has_thread) /* there is none, and none to be had: another worker may do better */
        pawli_pump_ended(
            pool->config.pump, slot,
            &(struct pawli_pump_end){
                .ended = {.result = PAWLI_RESULT_SNOOZE, .delay_ms = PAWL_SNOOZE_DEFAULT_MS},
                .error_code = "NO-THREAD",
            });
}

static struct hand *find_run(struct pawli_pool *pool, struct pawli_slot slot)
{
    struct hand *hand = slot.index < pool->slots ? pool->runs[slot.index] : NULL;
    return hand != NULL && hand->ctx.slot.generation == slot.generation ? hand : NULL;
}

void pawli_pool_abort(struct pawli_pool *pool, struct pawli_slot slot)
{
    static const uint64_t one = 1;
    pthread_mutex_lock(&pool->mutex);
    struct hand *hand = find_run(pool, slot);
    if (hand != NULL && hand->ctx.cancel_fd >= 0) {
        (void)!write(hand->ctx.cancel_fd, &one, sizeof(one)); /* full: it is readable already */
        hand->is_told = true;
    }
    pthread_mutex_unlock(&pool->mutex);
}

void pawli_pool_give_up(struct pawli_pool *pool, struct pawli_slot slot)
{
    bool is_replaced = false;
    pthread_mutex_lock(&pool->mutex);
    struct hand *hand = find_run(pool, slot);
    if (hand != NULL && !hand->ctx.is_given_up) {
        hand->ctx.is_given_up = true;
        pool->stuck++;
        is_replaced = pool->replaced < pool->config.stuck_max;
        if (is_replaced) {
            hand->ctx.is_replaced = true;
            pool->replaced++;
            pool->threads--;
            pool->runs[slot.index] = NULL;
        }
    }
    pawl_event event = {.kind = PAWL_EVENT_JOB_GIVEN_UP,
                        .level = PAWL_LEVEL_ERROR,
                        .reason = pawli_why_name(PAWLI_WHY_ABORT_IGNORED),
                        .count = (int64_t)pool->stuck};
    pthread_mutex_unlock(&pool->mutex);
    if (hand == NULL)
        return; /* it has just ended */
    pawli_pump_tell(pool->config.pump, slot, &event);
    if (is_replaced) /* its slot is free again; nothing of it is settled: the keeper has lost it */
        pawli_pump_ended(pool->config.pump, slot,
                         &(struct pawli_pump_end){
                             .ended = {.result = PAWLI_RESULT_RETRY, .delay_ms = PAWL_DEFAULT}});
}

void pawli_pool_end(struct pawli_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

void pawli_pool_set(struct pawli_pool *pool, size_t threads_max)
{
    pthread_mutex_lock(&pool->mutex);
    pool->threads_max = threads_max;
    /* The keeper may have heard of it first, and have started more than there were threads for. */
    for (size_t waiting = pool->line_count; waiting > pool->idle; waiting--)
        if (pool->threads >= pool->threads_max || !add_thread(pool))
            break;
    pthread_mutex_unlock(&pool->mutex);
}

size_t pawli_pool_stuck(struct pawli_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    size_t stuck = pool->stuck;
    pthread_mutex_unlock(&pool->mutex);
    return stuck;
}

/* ---------------------------------------------------------------- as hands */

static void hand_start(void *user, struct pawli_slot slot)
{
    pawli_pool_start(user, slot);
}

static void hand_abort(void *user, struct pawli_slot slot)
{
    pawli_pool_abort(user, slot);
}

static void hand_give_up(void *user, struct pawli_slot slot)
{
    pawli_pool_give_up(user, slot);
}

static void hand_wait(void *user, pawl_mono deadline)
{
    struct pawli_pool *pool = user;
    pawli_pump_wait(pool->config.pump, deadline);
}

static void hand_set(void *user, size_t parallel_max)
{
    pawli_pool_set(user, parallel_max);
}

static void hand_end(void *user)
{
    pawli_pool_end(user);
}

static size_t hand_stuck(void *user)
{
    return pawli_pool_stuck(user);
}

static void hand_free(void *user)
{
    pawli_pool_free(user);
}

const struct pawli_hands_ops pawli_pool_hands = {
    .start = hand_start,
    .abort = hand_abort,
    .give_up = hand_give_up,
    .wait = hand_wait,
    .set = hand_set,
    .end = hand_end,
    .stuck = hand_stuck,
    .free = hand_free,
};
