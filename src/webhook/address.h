/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * address.h - what an internet address leads to. Only what is routed in the public internet may be
 * called without being asked for (see allow.h): everything else is the machine itself, its network,
 * its provider, or nothing that serves webhooks.
 */
#ifndef PAWLI_WEBHOOK_ADDRESS_H
#define PAWLI_WEBHOOK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum pawli_address_kind {
    PAWLI_ADDRESS_PUBLIC = 0,
    PAWLI_ADDRESS_UNSPECIFIED,   /* 0.0.0.0/8, :: */
    PAWLI_ADDRESS_LOOPBACK,      /* 127.0.0.0/8, ::1 */
    PAWLI_ADDRESS_PRIVATE,       /* 10/8, 172.16/12, 192.168/16, fc00::/7, fec0::/10 */
    PAWLI_ADDRESS_LINK_LOCAL,    /* 169.254/16 (metadata of clouds), fe80::/10 */
    PAWLI_ADDRESS_SHARED,        /* 100.64/10: between a provider and its customers */
    PAWLI_ADDRESS_MULTICAST,     /* 224/4, ff00::/8 */
    PAWLI_ADDRESS_BROADCAST,     /* 255.255.255.255 */
    PAWLI_ADDRESS_DOCUMENTATION, /* 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32 ... */
    PAWLI_ADDRESS_BENCHMARKING,  /* 198.18/15, 2001:2::/48 */
    PAWLI_ADDRESS_RESERVED,      /* whatever else is not given out for public use */
    PAWLI_ADDRESS_KINDS
};

/* IPv4, or IPv6; IPv4 written as IPv6 (::ffff:a.b.c.d) is IPv4, which is what gets connected. */
struct pawli_address {
    bool is_v4;
    uint8_t bytes[16]; /* IPv4: the first four */
};

/* False for anything but a whole IPv4 or IPv6 address. */
bool pawli_address_from(const struct sockaddr *from, size_t from_len,
                        struct pawli_address *ret_address);

/* Read an address as it is usually written: four decimal numbers, or IPv6 without brackets and
 * zone. Nothing else: no octal, hexadecimal or short forms. */
bool pawli_address_parse(const char *text, struct pawli_address *ret_address);

/*
 * An address that carries an IPv4 address (NAT64, 6to4, Teredo) is of the kind of what it carries:
 * a router would bring us there.
 */
enum pawli_address_kind pawli_address_kind(const struct pawli_address *address);

/* "loopback", "link-local" ...; never NULL. Stable: they stand in errors and in the ledger. */
const char *pawli_address_kind_name(enum pawli_address_kind kind);

#endif
