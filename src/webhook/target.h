/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * target.h - which URLs may be called. Checked before a URL is stored, and again before it is
 * called: the rules may have changed. What a host's name resolves to is checked where the socket is
 * opened, by allow.h.
 */
#ifndef PAWLI_WEBHOOK_TARGET_H
#define PAWLI_WEBHOOK_TARGET_H

#include "pawl/pawl.h"
#include "webhook/allow.h"

#define PAWLI_URL_MAX  2048 /* bytes in a URL, without the closing NUL */
#define PAWLI_URL_SIZE (PAWLI_URL_MAX + 1)

/* Zeroed: https on ports 80 and 443 to public addresses. */
struct pawli_target_rules {
    const struct pawli_allow *allow; /* NULL: nothing more */
    const uint16_t *ports;           /* allowed besides 80 and 443 */
    size_t ports_count;
    bool is_http_allowed;
};

struct pawli_target {
    /* Normal: scheme and host in small letters, addresses in their usual spelling, no port where it
     * is the scheme's own. Checking it again gives the same. */
    char url[PAWLI_URL_SIZE];
    char host[PAWLI_HOST_SIZE]; /* a name, or an address without brackets */
    uint16_t port;
    bool is_https;
    bool has_address; /* the host is an address: this one */
    struct pawli_address address;
};

/*
 * PAWL_INVALID: a scheme, host, port or byte that is not allowed, credentials, a fragment, or more
 * than PAWLI_URL_MAX bytes; err->text names the part and what is allowed, and quotes no more than
 * host and port (a path may hold a token). PAWL_NO_MEMORY.
 */
PAWL_MUST_USE pawl_code pawli_target_check(const char *url, const struct pawli_target_rules *rules,
                                           struct pawli_target *ret_target, pawl_err *err);

#endif
