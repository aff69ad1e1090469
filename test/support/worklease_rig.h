/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease_rig.h - one record of core/worklease_record.h with its bounds, for tests of the core:
 * each call says only what the test is about.
 */
#ifndef PAWLI_TEST_WORKLEASE_RIG_H
#define PAWLI_TEST_WORKLEASE_RIG_H

#include "core/worklease_record.h"

#include <stdlib.h>

struct rig {
    struct pawli_worklease *record;
    int64_t max_retries;
    int64_t backlog_max;
};

/* All that can be seen of a record at once. */
struct rig_view {
    bool is_leased;
    int64_t offset;
    int64_t retry_count;
    pawl_wall acquired_at;
    pawl_wall expires_at;
    size_t backlog_count;
    int64_t backlog_head;
    size_t processed_intervals;
    size_t failed_intervals;
    size_t memory_bytes;
};

/* What is asked. Zeroed but for these: without an owner, a lease that never expires. */
struct rig_call {
    int64_t offset;
    pawl_token token;
    const char *owner;
    int64_t lease_ms; /* 0: none */
    pawl_wall now;
};

/* NULL: no memory. PAWL_DEFAULT in a bound is the usual one. */
static inline struct rig *rig_new(const char *domain, int64_t max_retries, int64_t backlog_max)
{
    struct rig *rig = malloc(sizeof *rig);
    struct pawli_worklease *record = rig != NULL ? pawli_worklease_new(domain) : NULL;
    if (record == NULL) {
        free(rig);
        return NULL;
    }
    *rig = (struct rig){
        .record = record,
        .max_retries = max_retries == PAWL_DEFAULT ? PAWL_WORKLEASE_RETRIES : max_retries,
        .backlog_max = backlog_max == PAWL_DEFAULT ? PAWL_WORKLEASE_BACKLOG_MAX : backlog_max,
    };
    return rig;
}

static inline void rig_free(struct rig *rig)
{
    if (rig != NULL)
        pawli_worklease_free(rig->record);
    free(rig);
}

static inline pawl_code rig_try_acquire(struct rig *rig, const struct rig_call *call,
                                        pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    pawl_worklease_acquire args = {
        .offset = call->offset,
        .owner = call->owner,
        .lease_ms = call->lease_ms != 0 ? call->lease_ms : PAWL_DEFAULT,
        .backlog_max = rig->backlog_max,
    };
    struct pawli_acquire acquire = {.args = &args, .token = call->token, .now = call->now};
    return pawli_worklease_try_acquire(rig->record, &acquire, ret_acquired, err);
}

static inline pawl_code rig_succeed(struct rig *rig, const struct rig_call *call,
                                    pawl_worklease_ended *ret_ended, pawl_err *err)
{
    pawl_worklease_hold hold = {.owner = call->owner, .token = call->token};
    struct pawli_holding holding = {.hold = &hold, .now = call->now};
    return pawli_worklease_succeed(rig->record, &holding, ret_ended, err);
}

static inline pawl_code rig_fail(struct rig *rig, const struct rig_call *call,
                                 pawl_worklease_ended *ret_ended, pawl_err *err)
{
    pawl_worklease_hold hold = {.owner = call->owner, .token = call->token};
    struct pawli_holding holding = {
        .hold = &hold, .max_retries = rig->max_retries, .now = call->now};
    return pawli_worklease_fail(rig->record, &holding, ret_ended, err);
}

static inline pawl_code rig_renew(struct rig *rig, const struct rig_call *call,
                                  pawl_wall *ret_expires_at, pawl_err *err)
{
    pawl_worklease_hold hold = {.owner = call->owner, .token = call->token};
    struct pawli_holding holding = {.hold = &hold, .lease_ms = call->lease_ms, .now = call->now};
    return pawli_worklease_renew(rig->record, &holding, ret_expires_at, err);
}

static inline struct rig_view rig_look(const struct rig *rig)
{
    struct pawli_worklease_known known = pawli_worklease_look(rig->record);
    return (struct rig_view){
        .is_leased = known.is_leased,
        .offset = known.lease.offset,
        .retry_count = known.lease.retry_count,
        .acquired_at = known.lease.acquired_at,
        .expires_at = known.lease.expires_at,
        .backlog_count = (size_t)known.backlog_count,
        .backlog_head = known.backlog_head,
        .processed_intervals = pawli_worklease_intervals(rig->record, false),
        .failed_intervals = pawli_worklease_intervals(rig->record, true),
        .memory_bytes = pawli_worklease_bytes(rig->record),
    };
}

static inline bool rig_is_processed(const struct rig *rig, int64_t offset)
{
    return pawli_worklease_fate_of(rig->record, offset) == PAWLI_WORKLEASE_PROCESSED;
}

static inline bool rig_is_failed(const struct rig *rig, int64_t offset)
{
    return pawli_worklease_fate_of(rig->record, offset) == PAWLI_WORKLEASE_FAILED;
}

#endif
