/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.h - work leases: exclusive work on the offsets of a domain, in the order in which they
 * were asked for.
 *
 * A *domain* (a partition of a log, an account, a device) has at most one *lease*, on one offset.
 * Offsets that are asked for meanwhile wait in its *backlog*, first in, first out. An offset ends
 * as processed or failed, and is never leased again. Nothing is handed on by itself: whoever ends a
 * lease is told the head of the backlog and asks for it when the time has come. There are no timers
 * here: a caller computes its backoff from acquired_at and retry_count.
 *
 * These verbs work on a handle of any store (pawl_source_open() and the like): in memory for as
 * long as the store, and durable on SQLite and PostgreSQL, where other programs may call the same
 * by SQL (docs/worklease.md). One call at a time per handle; handles of one store may work on the
 * same domains at once. The rules of pawl.h hold, and its codes: PAWL_INVALID, PAWL_NO_MEMORY,
 * PAWL_DOWN, PAWL_UNKNOWN and PAWL_BROKEN as there. PAWL_INVALID also for a store that has no work
 * leases (one that records a trace).
 *
 * What the caller did wrong has a code of its own, and has changed nothing:
 *   PAWL_WL_ORDER         try_acquire of another offset than the head, while the domain has no
 *                         lease; err->text names the domain, the offset expected and the one given
 *   PAWL_WL_NO_LEASE      succeed, fail or renew while the domain has no lease
 *   PAWL_WL_TOKEN         the lease is not the caller's: another token, or another owner
 *   PAWL_WL_EXPIRED       the lease was the caller's and has expired: stop, and try_acquire again
 *   PAWL_WL_BACKLOG_FULL  try_acquire of an offset for which the backlog has no room
 *
 * After PAWL_UNKNOWN ask by try_acquire of the same offset: ALREADY_ACQUIRED gives the token and
 * the retry count, ALREADY_PROCESSED and ALREADY_FAILED tell that it had ended.
 */
#ifndef PAWL_WORKLEASE_H
#define PAWL_WORKLEASE_H

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_WORKLEASE_DOMAIN_MAX  255    /* bytes in a domain's name */
#define PAWL_WORKLEASE_RETRIES     3      /* failures before the last one, unless the caller says */
#define PAWL_WORKLEASE_BACKLOG_MAX 100000 /* offsets that may wait, unless the caller says */

/* ---- acquiring */

typedef struct pawl_worklease_acquire {
    const char *domain;  /* 1 to 255 bytes of UTF-8 without control characters */
    int64_t offset;      /* any */
    const char *owner;   /* who asks, a name as workers have; NULL: nobody in particular */
    int64_t lease_ms;    /* from PAWL_LEASE_MIN_MS; PAWL_DEFAULT: the lease waits for its holder */
    int64_t backlog_max; /* from 1; PAWL_DEFAULT: PAWL_WORKLEASE_BACKLOG_MAX */
} pawl_worklease_acquire;

typedef enum pawl_worklease_got {
    PAWL_GOT_ACQUIRED = 0,         /* the lease is the caller's now */
    PAWL_GOT_ALREADY_ACQUIRED = 1, /* it was: the same owner holds this offset */
    PAWL_GOT_ENQUEUED = 2,         /* another offset is leased; this one waits */
    PAWL_GOT_ALREADY_PROCESSED = 3,
    PAWL_GOT_ALREADY_FAILED = 4,
    PAWL_GOT_HELD = 5 /* another owner holds this offset; try again when it has expired */
} pawl_worklease_got;

typedef struct pawl_worklease_acquired {
    pawl_worklease_got got;
    pawl_token token;   /* ACQUIRED, ALREADY_ACQUIRED; zero otherwise */
    bool is_taken_over; /* ACQUIRED: an expired lease was, with its acquired_at and retry_count */

    /* Of the domain's lease as it is now; zero after ALREADY_PROCESSED and ALREADY_FAILED. */
    int64_t offset;        /* after ENQUEUED another than was asked for */
    pawl_wall acquired_at; /* when the offset was first leased: never changes */
    int64_t retry_count;   /* failures of the offset so far */
    pawl_wall expires_at;  /* 0: never; after ENQUEUED and HELD: the time to look again */
} pawl_worklease_acquired;

/* No domain and no owner yet, everything else as by default: call it first, then fill it. */
PAWL_API void pawl_worklease_acquire_init(pawl_worklease_acquire *args);

/*
 * Ask for an offset. In this order: a terminal offset is ALREADY_PROCESSED or ALREADY_FAILED. Where
 * it is leased, its owner (or where neither has a name, anybody) is told the token, others are told
 * HELD; once the lease has expired, whoever asks takes it over under a new token. Where another
 * offset is leased, it waits, once (ENQUEUED; PAWL_WL_BACKLOG_FULL). Otherwise it is leased, unless
 * the backlog has another head (PAWL_WL_ORDER).
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_try_acquire(pawl_store *store,
                                                            const pawl_worklease_acquire *args,
                                                            pawl_worklease_acquired *ret_acquired,
                                                            pawl_err *err);

/* ---- holding */

/* What a holder shows. */
typedef struct pawl_worklease_hold {
    const char *domain;
    const char *owner; /* as it was acquired */
    pawl_token token;
} pawl_worklease_hold;

typedef enum pawl_worklease_end {
    PAWL_END_NO_BACKLOG = 0,
    PAWL_END_NEXT_HINT = 1,
    PAWL_END_RETRY_SCHEDULED = 2, /* the lease stays, with its acquired_at */
    PAWL_END_GIVE_UP_NO_BACKLOG = 3,
    PAWL_END_GIVE_UP_NEXT_HINT = 4
} pawl_worklease_end;

typedef struct pawl_worklease_ended {
    pawl_worklease_end end;
    int64_t next_offset; /* ..._NEXT_HINT: the head of the backlog, which stays there */
    int64_t retry_count; /* RETRY_SCHEDULED: failures so far */
} pawl_worklease_ended;

/* The offset is processed and the lease ends: NO_BACKLOG or NEXT_HINT. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_succeed(pawl_store *store,
                                                        const pawl_worklease_hold *hold,
                                                        pawl_worklease_ended *ret_ended,
                                                        pawl_err *err);

/*
 * The offset failed. While it has failed less than `max_retries` times before (PAWL_DEFAULT: 3; to
 * PAWL_RETRIES_MAX) this is counted and the lease stays, until the same deadline: RETRY_SCHEDULED.
 * Otherwise the offset is failed for good and the lease ends: GIVE_UP_NO_BACKLOG or
 * GIVE_UP_NEXT_HINT.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_fail(pawl_store *store,
                                                     const pawl_worklease_hold *hold,
                                                     int64_t max_retries,
                                                     pawl_worklease_ended *ret_ended,
                                                     pawl_err *err);

/* Extend the lease to the later of what it is and now + lease_ms. *ret_expires_at is 0 for one that
 * never expires, and stays so. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_renew(pawl_store *store,
                                                      const pawl_worklease_hold *hold,
                                                      int64_t lease_ms, pawl_wall *ret_expires_at,
                                                      pawl_err *err);

/* "ACQUIRED", "NEXT_HINT" ...; "?" for a number that is none of them. */
PAWL_API const char *pawl_worklease_got_name(pawl_worklease_got got);
PAWL_API const char *pawl_worklease_end_name(pawl_worklease_end end);

/* ---- looking: no token is shown */

typedef struct pawl_worklease_info {
    char domain[PAWL_WORKLEASE_DOMAIN_MAX + 1];
    bool is_leased;
    int64_t offset; /* this and the next five of the lease; zero where there is none */
    char owner[PAWL_NAME_MAX + 1];
    pawl_wall acquired_at;
    int64_t retry_count;
    pawl_wall expires_at; /* 0: never */
    bool is_expired;
    int64_t backlog_count;
    int64_t backlog_head; /* where backlog_count is above 0 */
} pawl_worklease_info;

/* One domain. PAWL_GONE where nobody has ever asked for an offset of it. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_get(pawl_store *store, const char *domain,
                                                    pawl_worklease_info *ret_info, pawl_err *err);

/* Domains by name (its bytes) above `after` (NULL: from the beginning). */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_domains(pawl_store *store, const char *after,
                                                        pawl_worklease_info *ret_rows,
                                                        size_t rows_max, size_t *ret_count,
                                                        pawl_err *err);

/* Which part of a domain's backlog or history: `skip` many from its beginning are left out. */
typedef struct pawl_worklease_page {
    const char *domain;
    int64_t skip; /* from 0 */
} pawl_worklease_page;

/* The offsets that wait, from the head. PAWL_GONE as above. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_backlog(pawl_store *store,
                                                        const pawl_worklease_page *page,
                                                        int64_t *ret_rows, size_t rows_max,
                                                        size_t *ret_count, pawl_err *err);

/* Offsets that have ended, all of them in the same way: no two of one kind touch. */
typedef struct pawl_worklease_interval {
    int64_t first;
    int64_t last; /* in the interval */
    bool is_failed;
} pawl_worklease_interval;

/* What has ended, by offset. PAWL_GONE as above. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worklease_terminal(pawl_store *store,
                                                         const pawl_worklease_page *page,
                                                         pawl_worklease_interval *ret_rows,
                                                         size_t rows_max, size_t *ret_count,
                                                         pawl_err *err);

#ifdef __cplusplus
}
#endif

#endif
