/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutant.h - the deliberate bugs that the simulator must catch, and the windows that it may
 * stretch. See testpoint.h: nothing of this is compiled into what is installed.
 */
#ifndef PAWLI_CORE_MUTANT_H
#define PAWLI_CORE_MUTANT_H

#include "base/testpoint.h"

enum pawli_mutant {
    PAWLI_MUTANT_NONE = 0,
    /* in the store, or in core/job.c */
    PAWLI_MUTANT_TOKEN_UNCHECKED,  /* settle, renew and release do not look at the token or the
                                      version */
    PAWLI_MUTANT_TOKEN_PER_WORKER, /* a worker gets the same token for every job and claim; the
                                      version is not checked */
    PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY, /* completion accepted after expiry: the deadline is not
                                             checked */
    PAWLI_MUTANT_REAP_BY_ID_ONLY,  /* the reaper picks candidates, and later clears by id whatever
                                      lease is there then */
    PAWLI_MUTANT_REAP_UNEXPIRED,   /* the reaper does not check the expiry */
    PAWLI_MUTANT_CLAIM_TWO_STEPS,  /* the claim picks, lets go of the lock, and then writes without
                                      looking again */
    PAWLI_MUTANT_LOST_NOT_COUNTED, /* an expiry does not count as a lost lease */
    PAWLI_MUTANT_RELEASE_STALE,    /* a release is accepted under any token */
    PAWLI_MUTANT_RETRY_NO_DELAY,   /* a retry is due at once */
    PAWLI_MUTANT_RETRY_UNBOUNDED,  /* a retry never exhausts the job */
    PAWLI_MUTANT_VERSION_STANDS,   /* a claim does not raise the lease version */
    PAWLI_MUTANT_EXPIRY_NO_ROW,    /* an expiry writes no ledger row */
    PAWLI_MUTANT_RENEW_SHORTENS, /* a renewal sets the expiry to half a lease from now, whatever it
                                    was */
    PAWLI_MUTANT_RELEASE_COUNTS_LOST, /* a release counts as a lost lease */
    PAWLI_MUTANT_SETTLE_REPLAY_AGAIN, /* a repeated settle writes a second ledger row */
    PAWLI_MUTANT_TERMINAL_CLAIMABLE,  /* a Succeeded job is put back as if it had been reaped when
                                         its lease would have expired */
    /* in the keeper */
    PAWLI_MUTANT_WATCHDOG_FROM_REPLY,  /* a lease counts from the reply, not from the request */
    PAWLI_MUTANT_NO_BEATS_AT_DRAIN,    /* heartbeats stop at shutdown */
    PAWLI_MUTANT_WAKE_WITHOUT_POLL,    /* it claims only when it is woken */
    PAWLI_MUTANT_CLAIM_LOST_FORGOTTEN, /* after a lost claim reply it does not ask what is its own
                                        */
    PAWLI_MUTANT_ADOPT_UNCONFIRMED,  /* a lease learned of by asking is started without a renewal */
    PAWLI_MUTANT_SETTLE_AT_RISK,     /* a settle is sent whatever the lease's age */
    PAWLI_MUTANT_ABORT_SETTLED,      /* work that a failed beat stopped is settled all the same */
    PAWLI_MUTANT_START_AT_RISK,      /* after a pause it starts what it holds before it looks at the
                                        clock */
    PAWLI_MUTANT_BUFFER_NOT_RENEWED, /* jobs that are held but not started are not renewed */
    PAWLI_MUTANT_SETTLE_NOT_RENEWED, /* no beats once the handler has ended, although the settle is
                                        not answered */
    PAWLI_MUTANT_UNKNOWN_IS_DONE,    /* a settle whose reply was lost counts as done */
    PAWLI_MUTANT_REFUSAL_ABORTS_ALL, /* a refused renewal aborts every job */
    /* added later, so that the numbers above stay */
    PAWLI_MUTANT_LOSS_NO_DELAY,    /* job: no backoff from the second lost lease in a row on */
    PAWLI_MUTANT_TIMEOUT_SUCCEEDS, /* keeper: work that its timeout stopped is settled as done */
    PAWLI_MUTANT_NO_CALL_BACKOFF,  /* keeper: a call that failed is made again at once */
    PAWLI_MUTANT_BEAT_TRIED_ONCE,  /* keeper: a beat that failed is tried again an interval later */
    PAWLI_MUTANT_SHUTDOWN_KEEPS,   /* keeper: shutdown forgets to release what has not started */
    /* ordering keys and bounds on what is in flight; in the store */
    PAWLI_MUTANT_KEY_RETRY_OVERTAKEN, /* a retry goes behind the others of its key */
    PAWLI_MUTANT_KEY_RELEASE_FORGETS, /* a release lets go of the key */
    PAWLI_MUTANT_KEY_CLAIM_TWO,       /* the second of a key is claimable as well */
    PAWLI_MUTANT_FENCE_REUSED,        /* a job that is claimed again gets the last fence drawn */
    PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED, /* max_in_flight bounds each claim, and not their sum */
    PAWLI_MUTANTS
};

enum pawli_stretch_point {
    PAWLI_STRETCH_CLAIM_PICKED =
        1, /* mutant CLAIM_TWO_STEPS only: between picking and writing, lock released */
    PAWLI_STRETCH_REAP_PICKED, /* mutant REAP_BY_ID_ONLY only: likewise */
    PAWLI_STRETCH_STORE_LOCK,  /* a store call has arrived and waits for its lock: before the clock
                                  is read */
    PAWLI_STRETCH_POINTS
};

#endif
