/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.h - the rules of work leases (WL-*): from what is known of a domain and what is asked,
 * to what becomes of it and what the caller is told.
 *
 * A store reads what it knows, asks for a verdict, and writes what the verdict says, all under one
 * lock per domain. The rules need no more than the domain's lease, the number and the head of what
 * waits, and what has become of the one offset that is asked for: they cost the same however long
 * the backlog and the history are. The PostgreSQL store has the same rules in SQL.
 */
#ifndef PAWLI_CORE_WORKLEASE_H
#define PAWLI_CORE_WORKLEASE_H

#include "pawl/worklease.h"

struct pawli_worklease_lease {
    int64_t offset;
    pawl_token token;
    const char *owner;     /* borrowed; NULL: none */
    pawl_wall acquired_at; /* of the offset's first lease: never changes */
    pawl_wall expires_at;  /* 0: never */
    int64_t retry_count;
};

/* What is known of a domain. */
struct pawli_worklease_known {
    const char *domain;
    bool is_leased;
    struct pawli_worklease_lease lease; /* where is_leased */
    int64_t backlog_count;
    int64_t backlog_head; /* where backlog_count > 0 */
};

/* What has become of the offset that is asked for. */
enum pawli_worklease_fate {
    PAWLI_WORKLEASE_OPEN = 0,
    PAWLI_WORKLEASE_PROCESSED,
    PAWLI_WORKLEASE_FAILED
};

/* What the store writes. */
enum pawli_worklease_change {
    PAWLI_WORKLEASE_NOTHING = 0,
    PAWLI_WORKLEASE_PUSH,  /* the offset to the end of the backlog */
    PAWLI_WORKLEASE_GRANT, /* take the head off the backlog, where there is one; write the lease */
    PAWLI_WORKLEASE_WRITE, /* the lease, as it is now */
    PAWLI_WORKLEASE_END_PROCESSED, /* the offset becomes terminal, and the lease is no more */
    PAWLI_WORKLEASE_END_FAILED
};

struct pawli_worklease_verdict {
    enum pawli_worklease_change change;
    struct pawli_worklease_lease lease; /* to be written: GRANT, WRITE */
};

/* What is asked by try_acquire, its defaults filled in. */
struct pawli_acquire {
    const pawl_worklease_acquire *args;
    enum pawli_worklease_fate fate;
    bool is_waiting;  /* in the backlog; need not be known unless another offset is leased */
    pawl_token token; /* a fresh one, for a lease that is granted */
    pawl_wall now;
};

/*
 * WL_ORDER, WL_BACKLOG_FULL; then nothing is to be written. On PAWL_OK *ret_acquired is what the
 * caller is told once the change is written.
 */
pawl_code pawli_worklease_judge_acquire(const struct pawli_worklease_known *known,
                                        const struct pawli_acquire *acquire,
                                        struct pawli_worklease_verdict *ret_verdict,
                                        pawl_worklease_acquired *ret_acquired, pawl_err *err);

/* What a holder asks. */
struct pawli_holding {
    const pawl_worklease_hold *hold;
    int64_t max_retries; /* fail */
    int64_t lease_ms;    /* renew */
    pawl_wall now;
};

/* WL_NO_LEASE, WL_TOKEN, WL_EXPIRED; otherwise as above. */
pawl_code pawli_worklease_judge_succeed(const struct pawli_worklease_known *known,
                                        const struct pawli_holding *holding,
                                        struct pawli_worklease_verdict *ret_verdict,
                                        pawl_worklease_ended *ret_ended, pawl_err *err);
pawl_code pawli_worklease_judge_fail(const struct pawli_worklease_known *known,
                                     const struct pawli_holding *holding,
                                     struct pawli_worklease_verdict *ret_verdict,
                                     pawl_worklease_ended *ret_ended, pawl_err *err);
pawl_code pawli_worklease_judge_renew(const struct pawli_worklease_known *known,
                                      const struct pawli_holding *holding,
                                      struct pawli_worklease_verdict *ret_verdict,
                                      pawl_wall *ret_expires_at, pawl_err *err);

/* Whether a lease has expired: at its deadline it has (RES-3). */
bool pawli_worklease_is_expired(const struct pawli_worklease_lease *lease, pawl_wall now);

/* What is shown of a domain. */
pawl_worklease_info pawli_worklease_tell(const struct pawli_worklease_known *known, pawl_wall now);

#endif
