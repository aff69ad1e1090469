/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * walk.c - random operations over few domains and offsets, on a store and on its model: every
 * result is the same, and whatever can be seen of the store afterwards; and the invariants hold, by
 * the store's own word (WL-SINGLE, WL-DISJOINT, WL-FIFO, WL-IDEMPOTENT, WL-FENCE).
 * Owns:  nothing.
 * Never: looks behind the public verbs.
 */
#include "worklease/suite.h"

#include "worklease/draw.h"
#include "worklease/invariants.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- a domain by the store's word */

static void look(pawl_store *store, const char *domain, struct seen *ret_seen)
{
    pawl_worklease_page page = {.domain = domain};
    pawl_err err;
    *ret_seen = (struct seen){.backlog_count = 0};
    pawl_code rc = pawl_worklease_get(store, domain, &ret_seen->info, &err);
    if (rc == PAWL_GONE)
        return;
    assert_int_equal(rc, PAWL_OK);
    assert_int_equal(pawl_worklease_backlog(store, &page, ret_seen->backlog, UNIVERSE,
                                            &ret_seen->backlog_count, &err),
                     PAWL_OK);
    assert_int_equal(pawl_worklease_terminal(store, &page, ret_seen->terminal, UNIVERSE,
                                             &ret_seen->terminal_count, &err),
                     PAWL_OK);
}

static void check_same_state(const struct seen *seen, const struct model *model, int64_t now_us)
{
    const pawl_worklease_info *info = &seen->info;
    if (info->domain[0] != '\0')
        assert_string_equal(info->domain, model->name);
    assert_int_equal(info->is_leased, model->is_leased);
    assert_true(info->offset == (model->is_leased ? model->offset : 0));
    assert_string_equal(info->owner, model->is_leased && model->owner != NULL ? model->owner : "");
    assert_true(info->acquired_at.us == (model->is_leased ? model->acquired_at_us : 0));
    assert_true(info->expires_at.us == (model->is_leased ? model->expires_at_us : 0));
    assert_true(info->retry_count == (model->is_leased ? model->retry_count : 0));
    assert_int_equal(info->is_expired, model->is_leased && model->expires_at_us != 0 &&
                                           now_us >= model->expires_at_us);
    assert_int_equal(seen->backlog_count, model->backlog.count);
    assert_true(info->backlog_count == (int64_t)seen->backlog_count);
    for (size_t i = 0; i < seen->backlog_count; i++)
        assert_true(seen->backlog[i] == model->backlog.offsets[i]);
    assert_true(info->backlog_head == (seen->backlog_count > 0 ? seen->backlog[0] : 0));
    for (size_t i = 0; i < UNIVERSE; i++) {
        assert_int_equal(seen_is_ended(seen, worklease_universe[i], false),
                         model_set_has(&model->processed, worklease_universe[i]));
        assert_int_equal(seen_is_ended(seen, worklease_universe[i], true),
                         model_set_has(&model->failed, worklease_universe[i]));
    }
}

/* ---------------------------------------------------------------- operations */

static struct outcome store_apply(pawl_store *store, const struct model *model,
                                  const struct operation *op, pawl_err *err)
{
    struct outcome outcome = {.code = PAWL_OK};
    pawl_worklease_hold hold = {.domain = model->name, .owner = op->owner, .token = op->token};
    pawl_worklease_acquire args;
    switch (op->kind) {
    case ACQUIRE:
        pawl_worklease_acquire_init(&args);
        args.domain = model->name;
        args.offset = op->offset;
        args.owner = op->owner;
        args.lease_ms = op->lease_ms;
        args.backlog_max = model->backlog_max;
        outcome.code = pawl_worklease_try_acquire(store, &args, &outcome.acquired, err);
        break;
    case SUCCEED:
        outcome.code = pawl_worklease_succeed(store, &hold, &outcome.ended, err);
        break;
    case FAIL:
        outcome.code = pawl_worklease_fail(store, &hold, model->max_retries, &outcome.ended, err);
        break;
    case RENEW:
        outcome.code = pawl_worklease_renew(store, &hold, op->lease_ms, &outcome.renewed, err);
        break;
    }
    return outcome;
}

static void check_same_outcome(const struct outcome *is, const struct outcome *wanted)
{
    assert_string_equal(pawl_code_name(is->code), pawl_code_name(wanted->code));
    assert_string_equal(pawl_worklease_got_name(is->acquired.got),
                        pawl_worklease_got_name(wanted->acquired.got));
    assert_true(is->acquired.offset == wanted->acquired.offset);
    assert_true(is->acquired.acquired_at.us == wanted->acquired.acquired_at.us);
    assert_true(is->acquired.expires_at.us == wanted->acquired.expires_at.us);
    assert_true(is->acquired.retry_count == wanted->acquired.retry_count);
    assert_int_equal(is->acquired.is_taken_over, wanted->acquired.is_taken_over);
    if (is->code != PAWL_OK || is->acquired.got != PAWL_GOT_ACQUIRED)
        assert_memory_equal(&is->acquired.token, &wanted->acquired.token, sizeof(pawl_token));
    assert_string_equal(pawl_worklease_end_name(is->ended.end),
                        pawl_worklease_end_name(wanted->ended.end));
    assert_true(is->ended.next_offset == wanted->ended.next_offset);
    assert_true(is->ended.retry_count == wanted->ended.retry_count);
    assert_true(is->renewed.us == wanted->renewed.us);
}

/* ---------------------------------------------------------------- the walk */

/* How often each result has come up: one that never does is not tested. */
struct tally {
    size_t got[PAWL_GOT_HELD + 1];
    size_t end[PAWL_END_GIVE_UP_NEXT_HINT + 1];
    size_t codes[PAWL_WL_EXPIRED + 1];
    size_t renewed, taken_over;
};

static void count(struct tally *tally, const struct operation *op, const struct outcome *outcome)
{
    tally->codes[outcome->code]++;
    if (outcome->code != PAWL_OK)
        return;
    if (op->kind == ACQUIRE)
        tally->got[outcome->acquired.got]++;
    else if (op->kind == RENEW)
        tally->renewed++;
    else
        tally->end[outcome->ended.end]++;
    tally->taken_over += outcome->acquired.is_taken_over;
}

static void check_tally(const struct tally *tally)
{
    for (size_t i = 0; i <= PAWL_GOT_HELD; i++)
        assert_true(tally->got[i] > 20);
    for (size_t i = 0; i <= PAWL_END_GIVE_UP_NEXT_HINT; i++)
        assert_true(tally->end[i] > 20);
    for (size_t i = PAWL_WL_ORDER; i <= PAWL_WL_EXPIRED; i++)
        assert_true(tally->codes[i] > 20);
    assert_true(tally->renewed > 20 && tally->taken_over > 20);
}

static void check_order_text(const struct model *model, const struct operation *op,
                             const pawl_err *err) /* WL-ORDER */
{
    char text[PAWL_ERR_TEXT_MAX];
    (void)snprintf(text, sizeof(text),
                   "expected offset %" PRId64 ", the head of the backlog, but %" PRId64
                   " was given in domain %s",
                   model->backlog.offsets[0], op->offset, model->name); /* it fits */
    assert_string_equal(err->text, text);
}

static void step(struct stage *s, struct model *model, struct seen *seen,
                 const struct operation *op, struct tally *tally)
{
    pawl_err err = {.code = PAWL_OK};
    struct outcome outcome = store_apply(s->store, model, op, &err);
    struct outcome wanted = model_apply(model, op);
    check_same_outcome(&outcome, &wanted);
    if (outcome.code == PAWL_OK && op->kind == ACQUIRE &&
        outcome.acquired.got == PAWL_GOT_ACQUIRED) {
        assert_true(memcmp(&outcome.acquired.token, &model->token, sizeof(pawl_token)) != 0);
        model_token(model, &outcome.acquired.token);
    }
    if (outcome.code == PAWL_WL_ORDER)
        check_order_text(model, op, &err);
    count(tally, op, &outcome);
    struct seen before = *seen;
    look(s->store, model->name, seen);
    check_same_state(seen, model, op->now_us);
    seen_check_disjoint(seen);
    seen_check_step(&before, seen, op, &outcome);
}

void equals_the_naive_model(void **state)
{
    struct stage *s = *state;
    struct pawli_seeded seeded = {.state = 7};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct tally tally = {.renewed = 0};
    pawl_wall now;
    pawl_err err;
    assert_int_equal(pawl_now(s->store, &now, &err), PAWL_OK);
    for (int episode = 0; episode < s->plan.episodes; episode++) {
        struct model models[DOMAINS];
        struct seen seen[DOMAINS];
        draw_domains(models, episode);
        for (int i = 0; i < DOMAINS; i++) {
            seen[i] = (struct seen){.backlog_count = 0};
        }
        for (int i = 0; i < s->plan.steps; i++) {
            int64_t ms = draw_turn_ms(&random);
            if (ms > 0) {
                s->kind->age(s->place, ms);
                now.us += ms * 1000;
            }
            size_t which = (size_t)pawli_random_below(&random, DOMAINS);
            struct operation op = draw_operation(&models[which], now.us, &random);
            step(s, &models[which], &seen[which], &op, &tally);
        }
        for (int i = 0; i < DOMAINS; i++) { /* no domain has touched another */
            look(s->store, models[i].name, &seen[i]);
            check_same_state(&seen[i], &models[i], now.us);
        }
    }
    check_tally(&tally);
}
