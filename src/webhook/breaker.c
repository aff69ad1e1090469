/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * breaker.c - whether one endpoint is to be called.
 * Owns:  the states of a breaker and every change between them.
 * Never: reads a clock; sends; lets a second probe out while one is under way; forgets since when
 *        the endpoint fails, but by a success, by hand, or where the store says so.
 */
#include "webhook/breaker.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/backoff.h"

#include <assert.h>
#include <stdio.h>

#define SECOND_MS INT64_C(1000)
#define DAY_MS    (24 * 3600 * SECOND_MS)

void pawli_breaker_rules_init(struct pawli_breaker_rules *rules)
{
    assert(rules != NULL);
    *rules = (struct pawli_breaker_rules){
        .failures_max = 5,
        .open_base_ms = 10 * SECOND_MS,
        .open_max_ms = 600 * SECOND_MS,
        .disable_after_ms = 5 * DAY_MS,
    };
}

static pawl_code check_between(const char *field, int64_t value, int64_t from, int64_t to,
                               pawl_err *err)
{
    if (value >= from && value <= to)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "%s: %lld; allowed: %lld to %lld", field, (long long)value,
                      (long long)from, (long long)to);
}

pawl_code pawli_breaker_rules_check(const struct pawli_breaker_rules *rules, pawl_err *err)
{
    assert(rules != NULL);

    pawl_code rc = check_between("failures_max", rules->failures_max, 1, PAWLI_BREAKER_FAILURES_MAX,
                                 err);
    if (rc == PAWL_OK)
        rc = check_between("open_max_ms", rules->open_max_ms, 1, PAWL_DURATION_MAX_MS, err);
    if (rc == PAWL_OK)
        rc = check_between("open_base_ms", rules->open_base_ms, 1, rules->open_max_ms, err);
    if (rc == PAWL_OK && rules->disable_after_ms != PAWL_FOREVER)
        rc = check_between("disable_after_ms", rules->disable_after_ms, 1, PAWL_DURATION_MAX_MS,
                           err);
    return rc;
}

const char *pawli_breaker_state_name(enum pawli_breaker_state state)
{
    static const char *const names[] = {"closed", "open", "half-open", "disabled"};
    return state <= PAWLI_BREAKER_DISABLED ? names[state] : "?";
}

void pawli_breaker_init(struct pawli_breaker *breaker, pawl_wall failing_since)
{
    assert(breaker != NULL);
    *breaker = (struct pawli_breaker){.failing_since = failing_since};
}

bool pawli_breaker_ask(struct pawli_breaker *breaker, pawl_mono now,
                       struct pawli_breaker_pass *ret_pass)
{
    assert(breaker != NULL && ret_pass != NULL);

    bool is_probe = breaker->state == PAWLI_BREAKER_OPEN &&
                    !pawli_mono_is_before(now, breaker->open_until);
    if (!is_probe && breaker->state != PAWLI_BREAKER_CLOSED)
        return false;
    *ret_pass = (struct pawli_breaker_pass){.generation = breaker->generation};
    if (is_probe) {
        breaker->state = PAWLI_BREAKER_HALF_OPEN; /* until the probe ends, and no other goes out */
        ret_pass->probe = ++breaker->probes;
    }
    return true;
}

pawl_mono pawli_breaker_deadline(const struct pawli_breaker *breaker)
{
    assert(breaker != NULL);

    switch (breaker->state) {
    case PAWLI_BREAKER_CLOSED:
        return (pawl_mono){0};
    case PAWLI_BREAKER_OPEN:
        return breaker->open_until;
    default:
        return PAWLI_MONO_NEVER;
    }
}

/* What was sent before somebody disabled or enabled it says nothing of now. */
static bool is_current(const struct pawli_breaker *breaker, struct pawli_breaker_pass pass)
{
    return pass.generation == breaker->generation;
}

static bool is_the_probe(const struct pawli_breaker *breaker, struct pawli_breaker_pass pass)
{
    return breaker->state == PAWLI_BREAKER_HALF_OPEN && pass.probe == breaker->probes;
}

enum pawli_breaker_event pawli_breaker_succeeded(struct pawli_breaker *breaker,
                                                 struct pawli_breaker_pass pass)
{
    assert(breaker != NULL);

    if (!is_current(breaker, pass))
        return PAWLI_BREAKER_SAME;
    bool was_closed = breaker->state == PAWLI_BREAKER_CLOSED;
    breaker->state = PAWLI_BREAKER_CLOSED;
    breaker->failures = 0;
    breaker->openings = 0;
    breaker->failing_since = (pawl_wall){0};
    return was_closed ? PAWLI_BREAKER_SAME : PAWLI_BREAKER_CLOSED_AGAIN;
}

static void open_it(struct pawli_breaker *breaker, const struct pawli_breaker_rules *rules,
                    pawl_mono now)
{
    int64_t open_ms = pawli_backoff_ceiling_ms(rules->open_base_ms, rules->open_max_ms,
                                               breaker->openings);
    breaker->state = PAWLI_BREAKER_OPEN;
    breaker->open_until = pawli_mono_add_ms(now, open_ms);
    breaker->openings++;
}

/* Too long, and not by one failure after a long silence: as often as it takes to open. */
static bool is_hopeless(const struct pawli_breaker *breaker,
                        const struct pawli_breaker_rules *rules, pawl_wall now)
{
    /* PAWL_FOREVER is longer than any time that can have passed. */
    return breaker->failures >= rules->failures_max &&
           pawli_wall_diff_ms(breaker->failing_since, now) >= rules->disable_after_ms;
}

enum pawli_breaker_event pawli_breaker_failed(struct pawli_breaker *breaker,
                                              struct pawli_breaker_pass pass,
                                              const struct pawli_breaker_rules *rules,
                                              struct pawli_breaker_now now, const char *reason)
{
    assert(breaker != NULL && reason != NULL);
    assert(pawli_breaker_rules_check(rules, NULL) == PAWL_OK);
    assert(pawli_wall_is_set(now.wall));

    if (!is_current(breaker, pass))
        return PAWLI_BREAKER_SAME;
    bool is_probe = is_the_probe(breaker, pass);
    if (!is_probe && (breaker->state != PAWLI_BREAKER_CLOSED || pass.probe != 0))
        return PAWLI_BREAKER_SAME; /* sent before it opened; or before another one closed it */
    if (!pawli_wall_is_set(breaker->failing_since))
        breaker->failing_since = now.wall;
    breaker->failures++;
    if (is_hopeless(breaker, rules, now.wall)) {
        char after[PAWL_DURATION_TEXT_MAX];
        char why[PAWLI_BREAKER_REASON_SIZE];
        (void)snprintf(why, sizeof(why), "failing for %s or longer, at last with %s",
                       pawl_duration_format(rules->disable_after_ms, after), reason);
        pawli_breaker_disable(breaker, why);
        return PAWLI_BREAKER_NOW_DISABLED;
    }
    if (!is_probe && breaker->failures < rules->failures_max)
        return PAWLI_BREAKER_SAME;
    open_it(breaker, rules, now.mono);
    return PAWLI_BREAKER_OPENED;
}

void pawli_breaker_untold(struct pawli_breaker *breaker, struct pawli_breaker_pass pass)
{
    assert(breaker != NULL);

    /* Open, and its time is over: the next one that asks is the probe. */
    if (is_current(breaker, pass) && is_the_probe(breaker, pass))
        breaker->state = PAWLI_BREAKER_OPEN;
}

void pawli_breaker_told(struct pawli_breaker *breaker, pawl_wall failing_since)
{
    assert(breaker != NULL);

    breaker->failing_since = failing_since;
}

void pawli_breaker_disable(struct pawli_breaker *breaker, const char *reason)
{
    assert(breaker != NULL && reason != NULL);

    breaker->state = PAWLI_BREAKER_DISABLED;
    breaker->generation++;
    (void)pawli_text_copy(breaker->reason, sizeof(breaker->reason), reason); /* cut to fit */
}

enum pawli_breaker_event pawli_breaker_gone(struct pawli_breaker *breaker,
                                            struct pawli_breaker_pass pass, const char *reason)
{
    assert(breaker != NULL);

    if (!is_current(breaker, pass))
        return PAWLI_BREAKER_SAME;
    pawli_breaker_disable(breaker, reason);
    return PAWLI_BREAKER_NOW_DISABLED;
}

void pawli_breaker_enable(struct pawli_breaker *breaker)
{
    assert(breaker != NULL);

    *breaker = (struct pawli_breaker){.generation = breaker->generation + 1,
                                      .probes = breaker->probes};
}
