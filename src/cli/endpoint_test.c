/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_test.c - `pawl endpoint test`: one delivery to an endpoint, here and now.
 * Owns:  the words of the command, what it prints.
 * Never: changes anything at the store; shows a secret.
 */
#include "cli/endpoint_test.h"

#include "cli/json.h"
#include "cli/private.h"
#include "cli/store_url.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#define SOURCE "urn:pawl"

static void tell(const struct pawli_line *line, const struct pawli_probe_end *end)
{
    bool is_delivered = end->outcome.delivery == PAWLI_DELIVERED;
    if (pawli_line_has(line, "--json")) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "name", line->arguments[0]);
        pawli_json_bool(&json, "is_delivered", is_delivered);
        pawli_json_text(&json, "answer", end->outcome.reason);
        pawli_json_text(&json, "text", end->text);
        pawli_json_text(&json, "webhook_id", end->id);
        pawli_json_number(&json, "sends", end->sends);
        pawli_json_number(&json, "took_ms", end->took_us / 1000);
        pawli_json_close(&json);
        return;
    }
    (void)printf("%s %s%s%s, %" PRId64 " ms\n",
                 is_delivered ? "delivered:" : "not delivered:", end->outcome.reason,
                 end->text[0] != '\0' ? ", " : "", end->text,
                 end->took_us / 1000); /* main asks for errors */
}

pawl_code pawli_endpoint_probe(const struct pawli_line *line,
                               const struct pawli_webhook_rules *rules, pawl_store *store,
                               const char *name, struct pawli_probe_end *ret_end, pawl_err *err)
{
    struct pawli_news *news = calloc(1, sizeof(*news));
    if (news == NULL) {
        *err = (pawl_err){.code = PAWL_NO_MEMORY, .text = "memory ran out"};
        return PAWL_NO_MEMORY;
    }
    struct pawli_probe_args args = {.news = news,
                                    .target = rules->target,
                                    .source = SOURCE,
                                    .clock = pawl_clock_system(),
                                    .random = pawl_random_system()};
    pawli_wire_rules_init(&args.wire);
    args.wire.allow = &rules->allow;
    args.wire.ca_file = pawli_line_text(line, "--webhook-ca");
    args.wire.proxy = pawli_line_text(line, "--webhook-proxy");
    if (pawli_line_has(line, "--webhook-source"))
        args.source = pawli_line_text(line, "--webhook-source");
    pawl_code code = pawl_endpoint_get(store, name, &news->endpoint, err);
    if (code == PAWL_OK)
        code = pawl_endpoint_credentials_get(store, name, &news->credentials, err);
    if (code == PAWL_OK)
        code = pawli_probe(&args, ret_end, err);
    pawli_news_free(news);
    return code;
}

static pawl_code test(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    struct pawli_webhook_rules rules;
    struct pawli_probe_end end;
    if (!pawli_webhook_rules_read(line, &rules)) {
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    pawli_cli_keep_private();
    (void)signal(SIGPIPE, SIG_IGN); /* of a connection that has ended */
    pawl_code code = pawli_endpoint_probe(line, &rules, store, line->arguments[0], &end, err);
    if (code != PAWL_OK)
        return code;
    tell(line, &end);
    *ret_exit = end.outcome.delivery == PAWLI_DELIVERED ? EX_OK : EX_UNAVAILABLE;
    return PAWL_OK;
}

static int run_test(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, test);
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,         PAWLI_OPTION_JSON,
    PAWLI_OPTION_STORE,          PAWLI_OPTION_WEBHOOK_ALLOW,
    PAWLI_OPTION_WEBHOOK_CA,     PAWLI_OPTION_WEBHOOK_HTTP,
    PAWLI_OPTION_WEBHOOK_PORTS,  PAWLI_OPTION_WEBHOOK_PROXY,
    PAWLI_OPTION_WEBHOOK_SOURCE, {0},
};
const struct pawli_command pawli_command_endpoint_test = {
    .name = "endpoint test",
    .about = "send one event to an endpoint, here and now",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = options,
    .details =
        "The event has the type pawl.test and a payload of {\"test\": true}; it is signed and "
        "sent as any other, from this machine, whether the endpoint is enabled or not, and "
        "whatever types it wants. Nothing is written to the store. Exit 0: delivered; 69: "
        "not.",
    .examples = "pawl endpoint test crm\n",
    .run = run_test,
};
