/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.h - exclusive FIFO work on the offsets of one domain, as a pure state machine over one
 * record (WL-*).
 *
 * The record holds at most one lease, a FIFO backlog, and which offsets are terminal. It owns no
 * timers and no lock: the caller serialises the calls for one domain, and decides when to try again
 * from acquired_at and the retry count. Terminal offsets are kept as intervals, so that contiguous
 * history costs nothing (WL-MEMORY).
 */
#ifndef PAWLI_CORE_WORKLEASE_H
#define PAWLI_CORE_WORKLEASE_H

#include "pawl/pawl.h"

#define PAWLI_WORKLEASE_DOMAIN_MAX          255 /* bytes in a domain's name */
#define PAWLI_WORKLEASE_MAX_RETRIES_DEFAULT 3
#define PAWLI_WORKLEASE_BACKLOG_MAX_DEFAULT 100000

struct pawli_worklease;

struct pawli_worklease_options {
    int64_t max_retries; /* PAWL_DEFAULT: 3; 0 to PAWL_RETRIES_MAX */
    int64_t backlog_max; /* PAWL_DEFAULT: 100,000; from 1 */
};

/* Gives a record for `domain` (1 to 255 bytes), or PAWL_INVALID, PAWL_NO_MEMORY. `options` may be
 * NULL. */
pawl_code pawli_worklease_new(const char *domain, const struct pawli_worklease_options *options,
                              struct pawli_worklease **ret_record, pawl_err *err);
void pawli_worklease_free(struct pawli_worklease *record); /* accepts NULL */

enum pawli_acquire_result {
    PAWLI_ACQUIRED = 0,
    PAWLI_ALREADY_ACQUIRED,
    PAWLI_ENQUEUED,
    PAWLI_ALREADY_PROCESSED,
    PAWLI_ALREADY_FAILED
};

struct pawli_acquired {
    enum pawli_acquire_result result;
    pawl_token token; /* ACQUIRED, ALREADY_ACQUIRED; zero otherwise */
};

/*
 * Try to acquire `offset`. A new lease takes `token` and `now`. In the document's order: terminal,
 * leased, backlog head. PAWL_WL_ORDER: the backlog has another head; err names domain, expected and
 * given. PAWL_WL_BACKLOG_FULL: err names the bound; an offset that waits already is ENQUEUED all
 * the same. PAWL_NO_MEMORY. On any failure the record is untouched.
 */
struct pawli_acquire {
    int64_t offset;
    pawl_token token;
    pawl_wall now;
};
pawl_code pawli_worklease_try_acquire(struct pawli_worklease *record,
                                      const struct pawli_acquire *args,
                                      struct pawli_acquired *ret_acquired, pawl_err *err);

enum pawli_finish_result {
    PAWLI_NO_BACKLOG = 0,
    PAWLI_NEXT_HINT,
    PAWLI_RETRY_SCHEDULED,
    PAWLI_GIVE_UP_NO_BACKLOG,
    PAWLI_GIVE_UP_NEXT_HINT
};

struct pawli_finished {
    enum pawli_finish_result result;
    int64_t next_offset; /* NEXT_HINT, GIVE_UP_NEXT_HINT: the backlog's head, which stays there */
    int64_t retry_count; /* RETRY_SCHEDULED */
};

/* End the lease. PAWL_WL_NO_LEASE, PAWL_WL_TOKEN, PAWL_NO_MEMORY leave the record untouched. */
pawl_code pawli_worklease_succeed(struct pawli_worklease *record, const pawl_token *token,
                                  struct pawli_finished *ret_finished, pawl_err *err);
pawl_code pawli_worklease_fail(struct pawli_worklease *record, const pawl_token *token,
                               struct pawli_finished *ret_finished, pawl_err *err);

/* ---- looking in */

struct pawli_worklease_view {
    bool is_leased;
    int64_t offset;
    int64_t retry_count;
    pawl_wall acquired_at;
    size_t backlog_count;
    int64_t backlog_head; /* where backlog_count > 0 */
    size_t processed_intervals;
    size_t failed_intervals;
    size_t memory_bytes; /* all that the record has allocated */
};
struct pawli_worklease_view pawli_worklease_look(const struct pawli_worklease *record);
bool pawli_worklease_is_processed(const struct pawli_worklease *record, int64_t offset);
bool pawli_worklease_is_failed(const struct pawli_worklease *record, int64_t offset);

/* The i-th offset of the backlog, from its head; i below backlog_count. */
int64_t pawli_worklease_backlog_at(const struct pawli_worklease *record, size_t i);

#endif
