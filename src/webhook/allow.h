/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * allow.h - which addresses may be called: public ones, and those that the operator allows, by
 * network or by the name of the host.
 */
#ifndef PAWLI_WEBHOOK_ALLOW_H
#define PAWLI_WEBHOOK_ALLOW_H

#include "pawl/pawl.h"
#include "webhook/address.h"

#define PAWLI_ALLOW_MAX     64  /* networks, and as many hosts */
#define PAWLI_HOST_NAME_MAX 253 /* bytes in the name of a host, without the closing NUL */
#define PAWLI_HOST_SIZE     (PAWLI_HOST_NAME_MAX + 1)

struct pawli_network {
    struct pawli_address address;
    unsigned bits;
};

/* Zeroed: nothing is allowed but public addresses. */
struct pawli_allow {
    struct pawli_network networks[PAWLI_ALLOW_MAX];
    size_t networks_count;
    char hosts[PAWLI_ALLOW_MAX][PAWLI_HOST_SIZE]; /* in small letters */
    size_t hosts_count;
};

/*
 * Allow one thing more: a network (10.0.0.0/8, fd00::/8), an address (that one alone), or a host by
 * its name (its addresses, whatever they are; no wildcards). PAWL_INVALID: none of these, or a
 * network with bits set behind its prefix. PAWL_FULL: there are PAWLI_ALLOW_MAX of its like.
 */
PAWL_MUST_USE pawl_code pawli_allow_add(struct pawli_allow *allow, const char *text, pawl_err *err);

/* True where the host stands on the list, in whatever case of letters. */
bool pawli_allow_has_host(const struct pawli_allow *allow, const char *host);

/*
 * The guard: whether this address may be called. `allow` may be NULL: nothing more is allowed;
 * `host` is the name that it was resolved from, NULL where it was none. *ret_kind is written in any
 * case.
 */
bool pawli_allow_address(const struct pawli_allow *allow, const char *host,
                         const struct pawli_address *address, enum pawli_address_kind *ret_kind);

/*
 * Copy a host's name in small letters. False, with what is wrong in *ret_problem, where it is none:
 * labels of 1 to 63 letters, digits, `-` and `_`, the first and last not `-`, with full stops
 * between them and none at the end, PAWLI_HOST_NAME_MAX bytes at most, the last label no number
 * (that would be an address).
 */
bool pawli_host_copy(const char *host, char to[PAWLI_HOST_SIZE], const char **ret_problem);

#endif
