/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_rules.h - which addresses webhooks may go to, as the settings say.
 */
#ifndef PAWLI_CLI_WEBHOOK_RULES_H
#define PAWLI_CLI_WEBHOOK_RULES_H

#include "cli/options.h"
#include "webhook/target.h"

#define PAWLI_WEBHOOK_PORTS_MAX 64

#define PAWLI_OPTION_WEBHOOK_ALLOW                                                    \
    {                                                                                 \
        "--webhook-allow", PAWLI_TEXT | PAWLI_SETTING, "LIST",                        \
            "networks, addresses and hosts that may be called although they are not " \
            "public; default: none",                                                  \
            0, 0, NULL                                                                \
    }
#define PAWLI_OPTION_WEBHOOK_CA                                                           \
    {                                                                                     \
        "--webhook-ca", PAWLI_FILE | PAWLI_SETTING, "FILE",                               \
            "whose certificates are trusted; default: whom the system trusts", 0, 0, NULL \
    }
#define PAWLI_OPTION_WEBHOOK_PROXY                                                         \
    {                                                                                      \
        "--webhook-proxy", PAWLI_SECRET | PAWLI_SETTING, "URL",                            \
            "all deliveries go by way of this proxy, which then is what keeps them from "  \
            "addresses that are not public; default: none, whatever the environment says", \
            0, 0, NULL                                                                     \
    }
#define PAWLI_OPTION_WEBHOOK_SOURCE                                    \
    {                                                                  \
        "--webhook-source", PAWLI_TEXT | PAWLI_SETTING, "URI",         \
            "the source of CloudEvents (default urn:pawl)", 0, 0, NULL \
    }
#define PAWLI_OPTION_WEBHOOK_HTTP                                 \
    {                                                             \
        "--webhook-http", PAWLI_FLAG | PAWLI_SETTING, NULL,       \
            "allow http beside https; default: false", 0, 0, NULL \
    }
#define PAWLI_OPTION_WEBHOOK_PORTS                                                  \
    {                                                                               \
        "--webhook-ports", PAWLI_TEXT | PAWLI_SETTING, "LIST",                      \
            "ports that may be called beside 80 and 443; default: none", 0, 0, NULL \
    }

/* `target` points into it: it stays where it was read. */
struct pawli_webhook_rules {
    struct pawli_allow allow;
    uint16_t ports[PAWLI_WEBHOOK_PORTS_MAX];
    struct pawli_target_rules target;
};

/* By the three options above. False: told; the exit code is EX_USAGE. */
bool pawli_webhook_rules_read(const struct pawli_line *line, struct pawli_webhook_rules *rules);

#endif
