/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * joiner.h - many threads that enqueue single jobs through one handle.
 */
#ifndef PAWL_JOINER_H
#define PAWL_JOINER_H

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A handle that many threads share to enqueue single jobs: those that come while a call is under
 * way go together in the next one, up to 1,000 of them, so that a hundred threads cost little more
 * than one batch. Nobody waits for company.
 */
typedef struct pawl_joiner pawl_joiner;

/* `store` is borrowed, and nobody else's while the joiner lives. PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_code pawl_joiner_new(pawl_store *store, pawl_joiner **ret_joiner,
                                                 pawl_err *err);
PAWL_API void pawl_joiner_free(pawl_joiner *joiner); /* nobody may use it then; accepts NULL */

/*
 * Enqueue one job, from any thread: returns after the commit that it was in. A row that is wrong
 * (PAWL_INVALID) harms no other. Where the call failed for all that it was made for, ret_result has
 * the id that the job was to have: after PAWL_UNKNOWN repeat with it, EXISTS then means that it is
 * there.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_joiner_enqueue(pawl_joiner *joiner,
                                                     const pawl_enqueue_row *row,
                                                     pawl_enqueued *ret_result, pawl_err *err);

/* How many wait just now for the next call, for figures. */
PAWL_API size_t pawl_joiner_waiting(pawl_joiner *joiner);

#ifdef __cplusplus
}
#endif

#endif
