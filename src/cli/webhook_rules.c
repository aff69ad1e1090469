/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_rules.c - which addresses webhooks may go to, as the settings say.
 * Owns:  reading these settings.
 * Never: resolves a name.
 */
#include "cli/webhook_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_SIZE    1024 /* of the words of an option that is a list */
#define LIST_BETWEEN ","

/* The parts of a list, one by one; `at` is the rest. NULL: there is no further one. */
static char *next_part(char **at)
{
    char *part = *at;
    if (part == NULL)
        return NULL;
    size_t len = strcspn(part, LIST_BETWEEN);
    *at = part[len] != '\0' ? part + len + 1 : NULL;
    part[len] = '\0';
    return part;
}

/* A copy of an option's list, to be cut. False: told. */
static bool copy_list(const struct pawli_line *line, const char *option, char list[LIST_SIZE])
{
    const char *text = pawli_line_text(line, option);
    if (text == NULL || strlen(text) < LIST_SIZE) {
        (void)snprintf(list, LIST_SIZE, "%s", text != NULL ? text : ""); /* it fits */
        return true;
    }
    (void)pawli_line_refuse(line, "%s has more than %d bytes", option, LIST_SIZE - 1);
    return false;
}

static bool read_ports(const struct pawli_line *line, struct pawli_webhook_rules *rules)
{
    char list[LIST_SIZE];
    if (!copy_list(line, "--webhook-ports", list))
        return false;
    char *at = list[0] != '\0' ? list : NULL;
    for (char *part; (part = next_part(&at)) != NULL;) {
        char *end = part;
        unsigned long port = part[0] >= '0' && part[0] <= '9' ? strtoul(part, &end, 10) : 0;
        if (port < 1 || port > UINT16_MAX || *end != '\0' ||
            rules->target.ports_count == PAWLI_WEBHOOK_PORTS_MAX) {
            (void)pawli_line_refuse(line,
                                    "--webhook-ports: \"%.40s\"; it must be up to %d numbers from "
                                    "1 to 65535 with commas between them",
                                    part, PAWLI_WEBHOOK_PORTS_MAX);
            return false;
        }
        rules->ports[rules->target.ports_count++] = (uint16_t)port;
    }
    return true;
}

bool pawli_webhook_rules_read(const struct pawli_line *line, struct pawli_webhook_rules *rules)
{
    char list[LIST_SIZE];
    pawl_err err;
    *rules = (struct pawli_webhook_rules){
        .target = {.is_http_allowed = pawli_line_has(line, "--webhook-http")}};
    rules->target.allow = &rules->allow;
    rules->target.ports = rules->ports;
    if (!copy_list(line, "--webhook-allow", list) || !read_ports(line, rules))
        return false;
    char *at = list[0] != '\0' ? list : NULL;
    for (char *part; (part = next_part(&at)) != NULL;) {
        if (pawli_allow_add(&rules->allow, part, &err) == PAWL_OK)
            continue;
        (void)pawli_line_refuse(line, "--webhook-allow: %s", err.text);
        return false;
    }
    return true;
}
