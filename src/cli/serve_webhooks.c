/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_webhooks.c - what `pawl serve` has of webhooks.
 * Owns:  the rules by which endpoints are checked, tested and delivered to.
 * Never: shows a secret but one that was just made, to who had it made.
 */
#include "cli/serve_webhooks.h"

#include "cli/endpoint_test.h"
#include "cli/private.h"
#include "cli/webhook_rules.h"
#include "deliver/dispatcher.h"
#include "serve/endpoint.h"
#include "webhook/secret.h"
#include "webhook/status_set.h"
#include "webhook/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct pawli_serve_webhooks {
    const struct pawli_line *line;
    struct pawli_webhook_rules rules;
    struct pawli_webhooks calls;
};

static pawl_code check(void *user, pawl_endpoint_settings *settings,
                       struct pawli_endpoint_room *room, pawl_err *err)
{
    const struct pawli_serve_webhooks *webhooks = user;
    struct pawli_target target;
    struct pawli_status_set set;
    _Static_assert(sizeof(target.url) <= sizeof(room->url), "a normal URL fits");
    _Static_assert(PAWLI_STATUS_SET_SIZE <= sizeof(room->statuses), "a normal list fits");
    pawl_code code = PAWL_OK;
    if (settings->url != NULL) {
        code = pawli_target_check(settings->url, &webhooks->rules.target, &target, err);
        if (code != PAWL_OK)
            return code;
        memcpy(room->url, target.url, sizeof(target.url));
        settings->url = room->url;
    }
    if (settings->fail_statuses != NULL) {
        code = pawli_status_set_parse(settings->fail_statuses, &set, err);
        if (code == PAWL_OK)
            settings->fail_statuses = pawli_status_set_format(&set, room->statuses);
    }
    return code;
}

static pawl_code make_secret(void *user, struct pawli_made_secret *made, pawl_err *err)
{
    struct pawli_secret secret = {.bytes_len = 0};
    _Static_assert(PAWLI_SECRET_TEXT_MAX <= sizeof(made->secret), "a secret fits");
    (void)user; /* the same for all */
    pawl_code code = PAWL_OK;
    if (made->is_given)
        code = pawli_secret_parse(made->secret, &secret, err);
    else {
        pawli_secret_generate(made->is_pair ? PAWLI_SECRET_ED25519 : PAWLI_SECRET_HMAC,
                              pawl_random_system(), &secret);
        (void)pawli_secret_reveal(&secret, made->secret);
    }
    if (code == PAWL_OK && secret.kind == PAWLI_SECRET_ED25519)
        code = pawli_secret_public(&secret, made->public_key, err);
    pawli_secret_wipe(&secret);
    return code;
}

static pawl_code test(void *user, pawl_store *store, const char *name,
                      struct pawli_tested *ret_tested, pawl_err *err)
{
    struct pawli_serve_webhooks *webhooks = user;
    struct pawli_probe_end end;
    pawl_code code = pawli_endpoint_probe(webhooks->line, &webhooks->rules, store, name, &end, err);
    if (code != PAWL_OK)
        return code;
    *ret_tested = (struct pawli_tested){
        .is_delivered = end.outcome.delivery == PAWLI_DELIVERED,
        .sends = end.sends,
        .took_ms = end.took_us / 1000,
    };
    memcpy(ret_tested->text, end.text, sizeof(end.text));
    memcpy(ret_tested->id, end.id, sizeof(end.id));
    (void)snprintf(ret_tested->answer, sizeof(ret_tested->answer), "%s",
                   end.outcome.reason); /* fits */
    return PAWL_OK;
}

int pawli_serve_webhooks_new(const struct pawli_line *line,
                             struct pawli_serve_webhooks **ret_webhooks)
{
    struct pawli_serve_webhooks *webhooks = calloc(1, sizeof(*webhooks));
    if (webhooks == NULL) {
        (void)fputs("pawl serve: memory ran out\n", stderr);
        return EX_OSERR;
    }
    webhooks->line = line;
    webhooks->calls = (struct pawli_webhooks){check, make_secret, test, webhooks};
    if (!pawli_webhook_rules_read(line, &webhooks->rules)) {
        free(webhooks);
        return EX_USAGE;
    }
    pawli_cli_keep_private(); /* secrets pass through */
    *ret_webhooks = webhooks;
    return EX_OK;
}

void pawli_serve_webhooks_free(struct pawli_serve_webhooks *webhooks)
{
    free(webhooks);
}

const struct pawli_webhooks *pawli_serve_webhooks_calls(struct pawli_serve_webhooks *webhooks)
{
    return webhooks != NULL ? &webhooks->calls : NULL;
}

pawl_code pawli_serve_webhooks_deliver(struct pawli_serve_webhooks *webhooks,
                                       const pawl_worker_options *worker, pawl_runner **ret_runner,
                                       pawl_err *err)
{
    struct pawli_dispatcher_options options;
    const struct pawli_line *line = webhooks->line;
    pawli_dispatcher_options_init(&options);
    int64_t parallel = pawli_line_number(line, "--webhook-parallel",
                                         options.worker.settings.parallel_max);
    options.worker.opener = worker->opener;
    options.worker.watch = worker->watch;
    options.worker.metrics = worker->metrics;
    options.worker.is_reaper_off = true; /* the server has one, unless it was told otherwise */
    options.worker.settings.parallel_max = parallel;
    options.target = webhooks->rules.target;
    options.wire.allow = &webhooks->rules.allow;
    options.wire.ca_file = pawli_line_text(line, "--webhook-ca");
    options.wire.proxy = pawli_line_text(line, "--webhook-proxy");
    options.wire.connections_max = (long)parallel;
    if (pawli_line_has(line, "--webhook-source"))
        options.source = pawli_line_text(line, "--webhook-source");
    return pawli_dispatcher_start(&options, ret_runner, err);
}
