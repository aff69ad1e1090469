/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * outlet.c - one endpoint as the dispatcher has it.
 * Owns:  its secrets while they are needed; what of its settings can be used.
 * Never: calls it; tells a secret, or more of its URL than the host.
 */
#include "deliver/outlet.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pawli_outlet *pawli_outlet_new(const char *name, const struct pawli_outlet_rules *rules,
                                      pawl_mono now)
{
    struct pawli_outlet *outlet = calloc(1, sizeof(*outlet));
    if (outlet == NULL)
        return NULL;
    (void)pawli_text_copy(outlet->name, sizeof(outlet->name), name); /* fits */
    (void)pawli_endpoint_queue(name, outlet->queue);
    outlet->bound = -1;
    outlet->code = PAWL_INVALID;
    pawli_gate_init(&outlet->gate, &rules->gate, now, (pawl_wall){0});
    return outlet;
}

void pawli_outlet_free(struct pawli_outlet *outlet)
{
    if (outlet == NULL)
        return;
    pawli_signer_free(outlet->signer);
    pawl_endpoint_credentials_clear(&outlet->credentials);
    free(outlet);
}

/* ---------------------------------------------------------------- secrets */

/* Those that sign at `now`; the time when that changes. Gives how many. */
static size_t pick_secrets(const struct pawli_outlet *outlet, pawl_wall now,
                           struct pawli_secret secrets[PAWLI_SECRETS_MAX], pawl_wall *ret_until,
                           pawl_code *ret_code, pawl_err *err)
{
    size_t count = 0;
    *ret_until = (pawl_wall){0};
    *ret_code = PAWL_OK;
    for (size_t i = 0; i < outlet->credentials.secrets_count && *ret_code == PAWL_OK; i++) {
        const pawl_endpoint_secret *secret = &outlet->credentials.secrets[i];
        bool is_bounded = pawli_wall_is_set(secret->until);
        if (is_bounded && !pawli_wall_is_before(now, secret->until))
            continue;
        if (is_bounded &&
            (!pawli_wall_is_set(*ret_until) || pawli_wall_is_before(secret->until, *ret_until)))
            *ret_until = secret->until;
        *ret_code = pawli_secret_parse(secret->text, &secrets[count++], err);
    }
    return count;
}

pawl_code pawli_outlet_signer(struct pawli_outlet *outlet, pawl_wall now,
                              struct pawli_signer **ret_signer, pawl_err *err)
{
    struct pawli_secret secrets[PAWLI_SECRETS_MAX] = {{.bytes_len = 0}};
    bool is_over = pawli_wall_is_set(outlet->signer_until) &&
                   !pawli_wall_is_before(now, outlet->signer_until);
    pawl_code code = PAWL_OK;
    if (outlet->signer == NULL || is_over) {
        struct pawli_signer *signer = NULL;
        pawl_wall until;
        size_t count = pick_secrets(outlet, now, secrets, &until, &code, err);
        if (code == PAWL_OK)
            code = pawli_signer_new(secrets, count, &signer, err);
        for (size_t i = 0; i < count; i++)
            pawli_secret_wipe(&secrets[i]);
        if (code == PAWL_OK) {
            pawli_signer_free(outlet->signer);
            outlet->signer = signer;
            outlet->signer_until = until;
        }
    }
    *ret_signer = outlet->signer;
    return code;
}

/* ---------------------------------------------------------------- settings */

static pawl_code take_settings(struct pawli_outlet *outlet, const pawl_endpoint *endpoint,
                               const struct pawli_outlet_rules *rules, pawl_wall now, pawl_err *err)
{
    struct pawli_signer *signer = NULL;
    struct pawli_target target;
    outlet->rules = rules->outcome;
    outlet->format = endpoint->format;
    outlet->timeout_ms = endpoint->timeout_ms;
    outlet->lease_ms = endpoint->queue_settings.lease_ms;
    int64_t most = endpoint->queue_settings.max_in_flight;
    outlet->most = most > 0 && most < rules->most ? most : rules->most;
    pawl_code code = pawli_status_set_parse(endpoint->fail_statuses, &outlet->rules.fail_at_once,
                                            err);
    if (code == PAWL_OK)
        code = pawli_target_check(endpoint->url, &rules->target, &target, err);
    if (code == PAWL_OK) {
        /* How the old address answers, also what is under way there, says nothing of this one. */
        if (strcmp(outlet->target.url, target.url) != 0)
            pawli_breaker_enable(&outlet->gate.breaker);
        outlet->target = target;
    }
    if (code == PAWL_OK)
        code = pawli_outlet_signer(outlet, now, &signer, err);
    return code;
}

void pawli_outlet_set(struct pawli_outlet *outlet, const struct pawli_news *news,
                      const struct pawli_outlet_rules *rules, struct pawli_breaker_now now)
{
    assert(!news->is_gone);
    pawl_err err = {.code = PAWL_OK};
    const pawl_endpoint *endpoint = &news->endpoint;
    pawli_signer_free(outlet->signer); /* the secrets may be others */
    outlet->signer = NULL;
    outlet->credentials = news->credentials;
    outlet->is_gone = false;
    outlet->is_enabled = endpoint->is_enabled;
    outlet->revision = endpoint->revision;
    outlet->created_at = endpoint->created_at;
    outlet->code = take_settings(outlet, endpoint, rules, now.wall, &err);
    (void)pawli_text_copy(outlet->problem, sizeof(outlet->problem),
                          outlet->code != PAWL_OK ? err.text : "");
    pawli_gate_set(&outlet->gate, now.mono,
                   (struct pawli_gate_bounds){.most = outlet->most,
                                              .rate_per_minute = endpoint->rate_per_minute});
    if (news->marks >= outlet->marks) { /* else this was read before what is on its way there */
        /* Somebody has enabled it, or the store did not agree: as if it had never failed. */
        if (outlet->is_enabled && outlet->gate.breaker.state == PAWLI_BREAKER_DISABLED)
            pawli_breaker_enable(&outlet->gate.breaker);
        outlet->is_marked = pawli_wall_is_set(endpoint->failing_since);
        pawli_breaker_told(&outlet->gate.breaker, endpoint->failing_since);
    }
}

int64_t pawli_outlet_bound(struct pawli_outlet *outlet, pawl_mono now)
{
    return outlet->is_gone || !outlet->is_enabled ? 0 : pawli_gate_bound(&outlet->gate, now);
}
