/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * model.c - the naive model of one domain.
 * Owns:  the document's rules, word for word, and those for owners and deadlines.
 * Never: shares code with what it is compared to.
 */
#include "worklease/model.h"

#include <assert.h>
#include <string.h>

bool model_set_has(const struct model_set *set, int64_t offset)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->offsets[i] == offset)
            return true;
    return false;
}

static void add(struct model_set *set, int64_t offset)
{
    assert(set->count < MODEL_OFFSETS_MAX);
    set->offsets[set->count++] = offset;
}

static bool is_same(const char *a, const char *b)
{
    return (a == NULL && b == NULL) || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_expired(const struct model *model, int64_t now_us)
{
    return model->expires_at_us != 0 && now_us >= model->expires_at_us;
}

static int64_t expiry_us(const struct operation *op)
{
    return op->lease_ms == PAWL_DEFAULT ? 0 : op->now_us + op->lease_ms * 1000;
}

/* The lease as it is told. */
static struct outcome told(const struct model *model, pawl_worklease_got got)
{
    return (struct outcome){
        .code = PAWL_OK,
        .acquired = {.got = got,
                     .offset = model->offset,
                     .acquired_at = {model->acquired_at_us},
                     .retry_count = model->retry_count,
                     .expires_at = {model->expires_at_us}},
    };
}

static struct outcome acquire_leased(struct model *model, const struct operation *op)
{
    if (is_expired(model, op->now_us)) {
        model->owner = op->owner;
        model->expires_at_us = expiry_us(op);
        struct outcome outcome = told(model, PAWL_GOT_ACQUIRED);
        outcome.acquired.is_taken_over = true;
        return outcome;
    }
    if (!is_same(model->owner, op->owner))
        return told(model, PAWL_GOT_HELD);
    struct outcome outcome = told(model, PAWL_GOT_ALREADY_ACQUIRED);
    outcome.acquired.token = model->token;
    return outcome;
}

static struct outcome acquire(struct model *model, const struct operation *op)
{
    if (model_set_has(&model->processed, op->offset))
        return (struct outcome){.acquired = {.got = PAWL_GOT_ALREADY_PROCESSED}};
    if (model_set_has(&model->failed, op->offset))
        return (struct outcome){.acquired = {.got = PAWL_GOT_ALREADY_FAILED}};
    if (model->is_leased && model->offset == op->offset)
        return acquire_leased(model, op);
    if (model->is_leased) {
        if (!model_set_has(&model->backlog, op->offset)) {
            if (model->backlog.count == (size_t)model->backlog_max)
                return (struct outcome){.code = PAWL_WL_BACKLOG_FULL};
            add(&model->backlog, op->offset);
        }
        return told(model, PAWL_GOT_ENQUEUED);
    }
    if (model->backlog.count > 0) {
        if (model->backlog.offsets[0] != op->offset)
            return (struct outcome){.code = PAWL_WL_ORDER};
        model->backlog.count--;
        memmove(model->backlog.offsets, model->backlog.offsets + 1,
                model->backlog.count * sizeof(int64_t));
    }
    model->is_leased = true;
    model->offset = op->offset;
    model->owner = op->owner;
    model->acquired_at_us = op->now_us;
    model->expires_at_us = expiry_us(op);
    model->retry_count = 0;
    return told(model, PAWL_GOT_ACQUIRED);
}

void model_token(struct model *model, const pawl_token *token)
{
    model->token_before = model->token;
    model->token = *token;
}

static pawl_code check(const struct model *model, const struct operation *op)
{
    if (!model->is_leased)
        return PAWL_WL_NO_LEASE;
    if (memcmp(&model->token, &op->token, sizeof(op->token)) != 0 ||
        !is_same(model->owner, op->owner))
        return PAWL_WL_TOKEN;
    return is_expired(model, op->now_us) ? PAWL_WL_EXPIRED : PAWL_OK;
}

static struct outcome finish(struct model *model, const struct operation *op)
{
    struct outcome outcome = {.code = PAWL_OK};
    if (op->kind == FAIL && model->retry_count < model->max_retries) {
        model->retry_count++;
        outcome.ended.end = PAWL_END_RETRY_SCHEDULED;
        outcome.ended.retry_count = model->retry_count;
        return outcome;
    }
    bool is_empty = model->backlog.count == 0;
    if (op->kind == FAIL) {
        add(&model->failed, model->offset);
        outcome.ended.end = is_empty ? PAWL_END_GIVE_UP_NO_BACKLOG : PAWL_END_GIVE_UP_NEXT_HINT;
    } else {
        add(&model->processed, model->offset);
        outcome.ended.end = is_empty ? PAWL_END_NO_BACKLOG : PAWL_END_NEXT_HINT;
    }
    if (!is_empty)
        outcome.ended.next_offset = model->backlog.offsets[0];
    model->is_leased = false;
    return outcome;
}

static struct outcome renew(struct model *model, const struct operation *op)
{
    if (model->expires_at_us != 0 && model->expires_at_us < expiry_us(op))
        model->expires_at_us = expiry_us(op);
    return (struct outcome){.renewed = {model->expires_at_us}};
}

struct outcome model_apply(struct model *model, const struct operation *op)
{
    if (op->kind == ACQUIRE)
        return acquire(model, op);
    pawl_code code = check(model, op);
    if (code != PAWL_OK)
        return (struct outcome){.code = code};
    return op->kind == RENEW ? renew(model, op) : finish(model, op);
}
