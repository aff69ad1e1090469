/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * desk.c - drives one keeper by hand. See desk.h.
 * Owns:  the answers that a test gives to a keeper, and the text of what it does.
 * Never: decides what the keeper should have done.
 */
#include "support/desk.h"

#include "base/clock.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define TEXT_MAX 4096

/* The smallest draw every time: no jitter, so that instants can be told in advance. */
static uint64_t draw_zero(void *user)
{
    (void)user;
    return 0;
}

static const pawl_random no_jitter = {draw_zero, NULL};

void desk_init(struct desk *desk)
{
    *desk = (struct desk){.now = {1000000}, .lease_ms = 4000, .timeout_ms = 60000};
    pawl_worker_settings_init(&desk->settings);
    desk->settings.parallel_max = 2;
    desk->settings.buffer_max = 2;
    desk->settings.poll_ms = 1000;
    desk->settings.grace_ms = 500;
    desk->settings.call_timeout_ms = 2000;
    desk->settings.retry_base_ms = 100;
    desk->settings.retry_max_ms = 400;
}

void desk_open(struct desk *desk, const int64_t *held_max, size_t lines_count)
{
    struct pawli_keeper_line lines[8] = {{PAWL_DEFAULT}};
    for (size_t i = 0; held_max != NULL && i < lines_count; i++)
        lines[i].held_max = held_max[i];
    struct pawli_keeper_config config = {
        .settings = &desk->settings,
        .lines = lines,
        .lines_count = held_max != NULL ? lines_count : 1,
        .random = &no_jitter,
    };
    assert_int_equal(PAWL_OK, pawli_keeper_new(&config, &desk->keeper, NULL));
}

void desk_close(struct desk *desk)
{
    pawli_keeper_free(desk->keeper);
    desk->keeper = NULL;
}

void desk_turn(struct desk *desk, int64_t ms)
{
    desk->now = pawli_mono_add_ms(desk->now, ms);
}

/* ---------------------------------------------------------------- what it does, as text */

struct text {
    char bytes[TEXT_MAX];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->bytes + text->len, sizeof(text->bytes) - text->len, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof(text->bytes) - text->len);
    text->len += (size_t)n;
}

static const char *action_name(pawl_settle_action action)
{
    static const char *const names[] = {"succeed", "retry", "fail", "snooze"};
    return names[action];
}

/* The slots of a renewal in the order of their numbers: which beat comes first does not matter. */
static void say_renewal(struct desk *desk, struct text *text, const struct pawli_action *action)
{
    desk->renew_deadline = action->deadline;
    for (size_t i = 0; i < action->items_count; i++)
        desk->renew_slots[i] = action->items[i].slot;
    for (uint32_t index = 0; index < DESK_SLOTS_MAX; index++)
        for (size_t i = 0; i < action->items_count; i++)
            if (action->items[i].slot.index == index)
                say(text, " %u%s", index, action->items[i].is_unstarted ? "*" : "");
}

static void say_items(struct desk *desk, struct text *text, const struct pawli_action *action)
{
    for (size_t i = 0; i < action->items_count; i++) {
        const struct pawli_action_item *item = &action->items[i];
        say(text, " %u", item->slot.index);
        desk->last_lease = item->lease;
        if (action->kind == PAWLI_ACTION_RELEASE)
            desk->release_slots[i] = item->slot;
        if (action->kind != PAWLI_ACTION_SETTLE)
            continue;
        desk->settle_slots[i] = item->slot;
        say(text, "=%s", action_name(item->action));
        if (item->reason != PAWL_REASON_NONE)
            say(text, "/%s", pawl_reason_name(item->reason));
        if (item->delay_ms != PAWL_DEFAULT)
            say(text, "+%lld", (long long)item->delay_ms);
    }
}

static void say_call(struct desk *desk, struct text *text, const struct pawli_action *action)
{
    const char *why = pawli_why_name(action->why);
    switch (action->kind) {
    case PAWLI_ACTION_CLAIM:
        desk->claim = action->request;
        say(text, "claim:%s %lld", why, (long long)action->jobs_max);
        for (size_t i = 0; action->lines_count > 1 && i < action->lines_count; i++)
            say(text, " [%zu:%lld]", action->lines[i].line, (long long)action->lines[i].jobs_max);
        break;
    case PAWLI_ACTION_MINE:
        desk->claim = action->request;
        say(text, "mine:%s", why);
        break;
    case PAWLI_ACTION_RENEW:
        desk->renew = action->request;
        desk->renew_count = action->items_count;
        say(text, "renew:%s", why);
        say_renewal(desk, text, action);
        return;
    case PAWLI_ACTION_SETTLE:
        desk->settle = action->request;
        desk->settle_count = action->items_count;
        say(text, "settle:%s", why);
        break;
    default:
        desk->release = action->request;
        desk->release_count = action->items_count;
        say(text, "release:%s", why);
        break;
    }
    say_items(desk, text, action);
}

static void say_action(struct desk *desk, struct text *text, const struct pawli_action *action)
{
    const char *why = pawli_why_name(action->why);
    switch (action->kind) {
    case PAWLI_ACTION_START:
        say(text, "start %u", action->slot.index);
        break;
    case PAWLI_ACTION_ABORT:
        desk->kill_by = action->deadline;
        say(text, "abort:%s %u", why, action->slot.index);
        break;
    case PAWLI_ACTION_GIVE_UP:
        say(text, "give_up:%s %u", why, action->slot.index);
        break;
    case PAWLI_ACTION_OVER:
        say(text, "over:%s %u", why, action->slot.index);
        break;
    case PAWLI_ACTION_STOPPED:
        say(text, "stopped %zu", action->left);
        break;
    default:
        say_call(desk, text, action);
        break;
    }
}

void desk_does(struct desk *desk, const char *expected)
{
    struct text text = {.len = 0};
    struct pawli_action action;
    size_t count = 0;
    while (pawli_keeper_next(desk->keeper, desk->now, &action)) {
        assert_true(++count < 1000); /* it must come to rest */
        if (text.len > 0)
            say(&text, "; ");
        say_action(desk, &text, &action);
    }
    assert_string_equal(expected, text.bytes);
    /* Once at rest it wants nothing before a later moment: no driver ever spins. */
    assert_true(pawli_mono_is_before(desk->now, pawli_keeper_deadline(desk->keeper)));
}

/* ---------------------------------------------------------------- answers */

static struct pawli_grant grant_of(const struct desk *desk, uint64_t job, size_t line)
{
    struct pawli_grant grant = {
        .line = line, .lease_ms = desk->lease_ms, .timeout_ms = desk->timeout_ms};
    memcpy(grant.lease.job.bytes, &job, sizeof(job));
    memcpy(grant.lease.token.bytes, &job, sizeof(job));
    grant.lease.version = 1;
    return grant;
}

static void keep_slots(struct desk *desk, const struct pawli_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slots[i].index != PAWLI_SLOT_NONE)
            desk->slots[slots[i].index] = slots[i];
}

void desk_claimed_line(struct desk *desk, size_t line, size_t count)
{
    struct pawli_grant grants[DESK_SLOTS_MAX] = {0};
    struct pawli_slot slots[DESK_SLOTS_MAX];
    for (size_t i = 0; i < count; i++) {
        grants[i] = grant_of(desk, ++desk->jobs, line);
        grants[i].lease.place = (int64_t)desk->jobs;
    }
    pawli_keeper_on_claimed(desk->keeper, desk->now, desk->claim, grants, count, slots);
    keep_slots(desk, slots, count);
}

void desk_claimed(struct desk *desk, size_t count)
{
    desk_claimed_line(desk, 0, count);
}

void desk_mine(struct desk *desk, const uint64_t *jobs, size_t jobs_count)
{
    struct pawli_grant grants[DESK_SLOTS_MAX] = {0};
    struct pawli_slot slots[DESK_SLOTS_MAX];
    for (size_t i = 0; i < jobs_count; i++)
        grants[i] = grant_of(desk, jobs[i], 0);
    struct pawli_mine_page page = {grants, jobs_count, true};
    pawli_keeper_on_mine(desk->keeper, desk->now, desk->claim, &page, slots);
    keep_slots(desk, slots, jobs_count);
}

static size_t verdicts_for(const struct desk *desk, const struct pawli_slot *slots, size_t count,
                           pawl_code code, struct pawli_verdict *ret_verdicts)
{
    for (size_t i = 0; i < count; i++)
        ret_verdicts[i] = (struct pawli_verdict){slots[i], code, desk->lease_ms};
    return count;
}

void desk_renewed(struct desk *desk, pawl_code code)
{
    struct pawli_verdict verdicts[DESK_SLOTS_MAX] = {0};
    size_t n = verdicts_for(desk, desk->renew_slots, desk->renew_count, code, verdicts);
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, verdicts, n);
}

void desk_settled(struct desk *desk, pawl_code code)
{
    struct pawli_verdict verdicts[DESK_SLOTS_MAX] = {0};
    size_t n = verdicts_for(desk, desk->settle_slots, desk->settle_count, code, verdicts);
    pawli_keeper_on_settled(desk->keeper, desk->now, desk->settle, verdicts, n);
}

void desk_released(struct desk *desk, pawl_code code)
{
    struct pawli_verdict verdicts[DESK_SLOTS_MAX] = {0};
    size_t n = verdicts_for(desk, desk->release_slots, desk->release_count, code, verdicts);
    pawli_keeper_on_released(desk->keeper, desk->now, desk->release, verdicts, n);
}

void desk_failed(struct desk *desk, uint64_t request, pawl_code code)
{
    pawli_keeper_on_call_failed(desk->keeper, desk->now, request, code);
}

void desk_ended(struct desk *desk, uint32_t index, enum pawli_result result)
{
    struct pawli_ended ended = {result, PAWL_DEFAULT};
    pawli_keeper_on_ended(desk->keeper, desk->now, desk->slots[index], ended);
}
