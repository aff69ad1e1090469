/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * outcome.h - what a try to deliver has come to: what becomes of the job, and of the endpoint.
 *
 *  status, with whole headers    job                        endpoint
 *  200-299                       delivered
 *  410                           fails for good             disabled
 *  429, 503                      retried, not before        paused, as Retry-After says, bounded
 *  408, 425                      retried
 *  other 4xx                     retried, or fails at once where the settings say so
 *  3xx (never followed), 5xx     retried
 *  anything else, or no status   retried
 *  stopped by ourselves          nothing is recorded
 *
 * The status counts once the headers are whole, however the body ended: the endpoint has answered,
 * and to send again would be to send twice. Without whole headers no status counts.
 */
#ifndef PAWLI_WEBHOOK_OUTCOME_H
#define PAWLI_WEBHOOK_OUTCOME_H

#include "pawl/pawl.h"
#include "webhook/status_set.h"

#define PAWLI_OUTCOME_REASON_SIZE 16

/* How a transfer ended, as far as it matters. */
enum pawli_transfer_end {
    PAWLI_END_DONE = 0,  /* to its end */
    PAWLI_END_DNS,       /* the name could not be resolved */
    PAWLI_END_CONNECT,   /* no connection */
    PAWLI_END_TLS,       /* no trust, or no handshake */
    PAWLI_END_TIMEOUT,   /* not in time */
    PAWLI_END_RESET,     /* the connection ended early */
    PAWLI_END_PROTOCOL,  /* what came was not HTTP */
    PAWLI_END_TOO_LARGE, /* more came than is taken */
    PAWLI_END_ADDRESS,   /* the guard refused the address; the dispatcher says so, libcurl cannot */
    PAWLI_END_STOPPED,   /* we stopped it: the lease is gone or at risk, or we shut down */
    PAWLI_END_LOCAL,     /* a failure of our own: memory, descriptors, setup */
    PAWLI_ENDS
};

/* The end that a CURLcode stands for. An aborted transfer counts as stopped by ourselves, a refused
 * write as too large. */
enum pawli_transfer_end pawli_transfer_end(int curl_code);

struct pawli_transfer {
    enum pawli_transfer_end end;
    bool has_whole_headers;  /* the empty line behind the headers of the last answer has come */
    long status;             /* of that answer; looked at only where its headers are whole */
    const char *retry_after; /* the header's value; NULL: none */
};

/* Fill by pawli_outcome_rules_init(). */
struct pawli_outcome_rules {
    struct pawli_status_set fail_at_once; /* which 4xx are not retried: none */
    int64_t pause_default_ms;             /* 429 and 503 without a good Retry-After: 5 s; 0: none */
    int64_t pause_max_ms;                 /* the longest that Retry-After may ask for: 1 h */
};

void pawli_outcome_rules_init(struct pawli_outcome_rules *rules);

/* PAWL_INVALID names the field, the value and the bound. */
PAWL_MUST_USE pawl_code pawli_outcome_rules_check(const struct pawli_outcome_rules *rules,
                                                  pawl_err *err);

enum pawli_delivery {
    PAWLI_DELIVERY_UNTOLD = 0, /* settle nothing: whoever has the lease now will */
    PAWLI_DELIVERED,
    PAWLI_DELIVERY_RETRY,
    PAWLI_DELIVERY_FAILED /* for good */
};

struct pawli_outcome {
    enum pawli_delivery delivery;
    bool is_endpoint_gone; /* disable it, with the reason */
    int64_t pause_ms;      /* leave the endpoint alone for so long, and retry not before; 0: none */
    char reason[PAWLI_OUTCOME_REASON_SIZE]; /* "HTTP-503", "TIMEOUT" ...: stable, for the ledger */
};

/* Judge a transfer. `rules` must have passed its check; `now` is only used for a Retry-After that
 * is a date. */
struct pawli_outcome pawli_outcome_of(const struct pawli_transfer *transfer,
                                      const struct pawli_outcome_rules *rules, pawl_wall now);

#endif
