/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * claim.h - claims, and claims that wait for work: what one of them wants, and how it is tried
 * again.
 */
#ifndef PAWLI_SERVE_CLAIM_H
#define PAWLI_SERVE_CLAIM_H

#include "serve/call.h"

#define PAWLI_CLAIM_JOBS_MAX    1000               /* jobs in one answer */
#define PAWLI_CLAIM_LINES_MAX   1000               /* queues in one claim */
#define PAWLI_CLAIM_BYTES_MAX   (INT64_C(1) << 24) /* of payloads in one answer */
#define PAWLI_CLAIM_WAIT_MAX_MS 30000              /* how long one may wait */

/* A claim that was read. Borrows from the body of its request. */
struct pawli_claiming {
    const char *worker;
    pawl_claim_line *lines; /* owned */
    size_t lines_count;
    int64_t jobs_max;
    int64_t bytes_max;
    int64_t wait_ms;
    pawl_lease *granted; /* owned; what the answer gives out */
    size_t granted_count;
};

void pawli_claiming_free(struct pawli_claiming *claiming); /* accepts NULL */

/*
 * Try it once. PAWL_OK: the answer has the jobs, *ret_count of them; where there are none it is
 * the answer of a claim that has waited in vain.
 */
pawl_code pawli_claim_try(struct pawli_call *call, struct pawli_claiming *claiming,
                          size_t *ret_count);

/* Give back what an answer gave out that did not reach its worker: a lease that nobody knows of
 * would have to expire, and count as lost. */
pawl_code pawli_claim_give_back(pawl_store *store, struct pawli_claiming *claiming, pawl_err *err);

pawl_code pawli_api_claim(struct pawli_call *call);
pawl_code pawli_api_mine(struct pawli_call *call);

#endif
