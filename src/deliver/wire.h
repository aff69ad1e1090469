/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * wire.h - requests over HTTP, as many at once as are wanted, from one thread: what leaves the
 * machine, what comes back, and when it is stopped. Of whom it comes and what it means is not known
 * here.
 *
 * Nothing is sent but through a gate: `may_send` is asked directly before each send, the first and
 * those that libcurl makes by itself when a connection that it used again turns out to be dead; and
 * each address is looked at when a connection to it is opened, and when it is used.
 *
 * One thread calls all of it, but pawli_wire_wake().
 */
#ifndef PAWLI_DELIVER_WIRE_H
#define PAWLI_DELIVER_WIRE_H

#include "pawl/pawl.h"
#include "webhook/allow.h"
#include "webhook/outcome.h"
#include "webhook/target.h"

struct pawli_wire;
struct pawli_sending; /* a request under way */

/* How a request has ended. Texts hold during the call that tells it. */
struct pawli_wire_end {
    struct pawli_transfer transfer;
    int64_t sends;    /* how often it was sent, wholly or in part: 0 is certain that it was not */
    int64_t took_us;  /* from its beginning */
    const char *text; /* what went wrong, for people: names no more than the kind of an address */
};

struct pawli_wire_rules {
    const struct pawli_allow *allow; /* borrowed; NULL: public addresses alone */
    int64_t connect_ms;              /* the longest that it may take to connect */
    size_t headers_max;              /* bytes of all headers of an answer, and what comes before */
    size_t body_max;                 /* bytes of its body */
    long connections_max;            /* that are kept for further requests */
    const char *ca_file;             /* borrowed; whom to trust; NULL: whom the system trusts */
    const char *proxy; /* borrowed; all goes by way of this one, and no address is looked at, for
                            the proxy makes the connections; NULL or empty: none, whatever the
                            environment says */
};

/* 10 s, 64 KiB, 64 KiB, 1,000. */
void pawli_wire_rules_init(struct pawli_wire_rules *rules);

struct pawli_wire_owner {
    /* Whether this may be sent now. Short. */
    bool (*may_send)(void *user, void *tag);
    /* A request has ended; it is no more. May send others. */
    void (*ended)(void *user, void *tag, const struct pawli_wire_end *end);
    void *user;
};

/* `clock` is borrowed. PAWL_NO_MEMORY, PAWL_DOWN: the system or libcurl refused. */
PAWL_MUST_USE pawl_code pawli_wire_new(const struct pawli_wire_rules *rules,
                                       const struct pawli_wire_owner *owner,
                                       const pawl_clock *clock, struct pawli_wire **ret_wire,
                                       pawl_err *err);
void pawli_wire_free(struct pawli_wire *wire); /* stops all, and tells nobody; accepts NULL */

struct pawli_wire_request {
    const struct pawli_target *target; /* borrowed for the call */
    const char *headers;               /* borrowed until it has ended: each "name: value", a NUL */
    size_t headers_len;                /* of all of them */
    const void *body;                  /* likewise */
    size_t body_len;
    int64_t timeout_ms; /* of all of it */
    void *tag;          /* the owner's name for it */
};

/* Begin a request: it goes on in pawli_wire_turn(). PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_code pawli_wire_send(struct pawli_wire *wire,
                                        const struct pawli_wire_request *request,
                                        struct pawli_sending **ret_sending, pawl_err *err);

/* Stop it on the wire, at once. It is no more; nobody is told but by what this gives. */
struct pawli_wire_end pawli_wire_stop(struct pawli_wire *wire, struct pawli_sending *sending);

/* Go on with all of them: wait up to `wait_ms` until something happens, do it, tell what has ended.
 */
void pawli_wire_turn(struct pawli_wire *wire, int64_t wait_ms);

/* End a wait, this one or the next. From every thread; never blocks. */
void pawli_wire_wake(struct pawli_wire *wire);

size_t pawli_wire_count(const struct pawli_wire *wire); /* under way */

#endif
