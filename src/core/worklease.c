/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - exclusive work on the offsets of one domain, in the order in which they were asked
 * for.
 * Owns:  the record of one domain: its lease, its backlog, its terminal offsets.
 * Never: reads a clock; makes a token; waits, or decides when to try again; takes a lock (its
 *        caller does); hands the lease on (it only hints at who is next).
 *
 * What holds between calls, by the names of the requirements:
 *  WL-SINGLE      there is one lease at most, on one offset;
 *  WL-DISJOINT    the leased offset is neither terminal nor in the backlog, and no offset in the
 *                 backlog is terminal;
 *  WL-FIFO        the backlog loses its head only, and only to the lease that try-acquire grants;
 *  WL-IDEMPOTENT  a terminal offset stays what it became.
 * Each function makes all its checks and allocations before its first change.
 */
#include "core/worklease.h"

#include "base/error.h"
#include "base/text.h"
#include "core/backlog.h"
#include "core/intervals.h"
#include "core/policy.h"
#include "core/token.h"

#include <assert.h>
#include <inttypes.h>

struct lease {
    int64_t offset;
    pawl_token token;
    pawl_wall acquired_at; /* of this offset's first and only lease: never changes */
    int64_t retry_count;
};

struct pawli_worklease {
    int64_t max_retries;
    int64_t backlog_max;
    bool is_leased;
    struct lease lease; /* where is_leased */
    struct pawli_intervals processed;
    struct pawli_intervals failed;
    struct pawli_backlog backlog;
    size_t domain_size; /* with the closing NUL */
    char domain[];
};

static pawl_code check_options(const struct pawli_worklease_options *options, pawl_err *err)
{
    pawl_code rc = pawli_check_range("max_retries", options->max_retries,
                                     (struct pawli_range){0, PAWL_RETRIES_MAX}, err);
    if (rc != PAWL_OK)
        return rc;
    return pawli_check_range("backlog_max", options->backlog_max,
                             (struct pawli_range){1, INT64_MAX}, err);
}

static struct pawli_worklease_options fill_defaults(const struct pawli_worklease_options *options)
{
    struct pawli_worklease_options filled = {.max_retries = PAWL_DEFAULT,
                                             .backlog_max = PAWL_DEFAULT};
    if (options != NULL)
        filled = *options;
    if (filled.max_retries == PAWL_DEFAULT)
        filled.max_retries = PAWLI_WORKLEASE_MAX_RETRIES_DEFAULT;
    if (filled.backlog_max == PAWL_DEFAULT)
        filled.backlog_max = PAWLI_WORKLEASE_BACKLOG_MAX_DEFAULT;
    return filled;
}

pawl_code pawli_worklease_new(const char *domain, const struct pawli_worklease_options *options,
                              struct pawli_worklease **ret_record, pawl_err *err)
{
    assert(ret_record != NULL);

    if (domain == NULL)
        return pawli_fail(err, PAWL_INVALID, "domain is NULL: 1 to %d bytes are allowed",
                          PAWLI_WORKLEASE_DOMAIN_MAX);
    size_t domain_len = pawli_text_length(domain, PAWLI_WORKLEASE_DOMAIN_MAX);
    if (domain_len == 0 || domain_len > PAWLI_WORKLEASE_DOMAIN_MAX)
        return pawli_fail(err, PAWL_INVALID, "domain has %s bytes: 1 to %d are allowed",
                          domain_len == 0 ? "no" : "too many", PAWLI_WORKLEASE_DOMAIN_MAX);
    struct pawli_worklease_options filled = fill_defaults(options);
    pawl_code rc = check_options(&filled, err);
    if (rc != PAWL_OK)
        return rc;

    struct pawli_worklease *record = malloc(sizeof *record + domain_len + 1);
    if (record == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    *record = (struct pawli_worklease){
        .max_retries = filled.max_retries,
        .backlog_max = filled.backlog_max,
        .domain_size = domain_len + 1,
    };
    memcpy(record->domain, domain, domain_len + 1);
    pawli_intervals_init(&record->processed);
    pawli_intervals_init(&record->failed);
    pawli_backlog_init(&record->backlog);
    *ret_record = record;
    return PAWL_OK;
}

void pawli_worklease_free(struct pawli_worklease *record)
{
    if (record == NULL)
        return;
    pawli_backlog_clear(&record->backlog);
    pawli_intervals_clear(&record->failed);
    pawli_intervals_clear(&record->processed);
    free(record);
}

/* ---------------------------------------------------------------- acquiring */

/* Put an offset that is not terminal behind the lease, unless it is there already. */
static pawl_code enqueue(struct pawli_worklease *record, int64_t offset, pawl_err *err)
{
    if (pawli_backlog_has(&record->backlog, offset))
        return PAWL_OK;

    /* Compared unsigned: on a machine of 32 bits the bound may not fit a size_t, the count does. */
    if (pawli_backlog_count(&record->backlog) >= (uint64_t)record->backlog_max)
        return pawli_fail(err, PAWL_WL_BACKLOG_FULL,
                          "offset %" PRId64 " finds the backlog full: %" PRId64
                          " offsets are allowed to wait in domain %s",
                          offset, record->backlog_max, record->domain);
    pawl_code rc = pawli_backlog_push(&record->backlog, offset);
    return rc == PAWL_OK ? rc : pawli_fail_plain(err, rc);
}

/* Lease an offset that is not terminal in a domain that has no lease. */
static pawl_code grant(struct pawli_worklease *record, const struct pawli_acquire *args,
                       pawl_err *err)
{
    assert(!record->is_leased);

    if (pawli_backlog_count(&record->backlog) > 0) {
        int64_t head = pawli_backlog_at(&record->backlog, 0);
        if (head != args->offset)
            /* The domain stands last, so that a long one cannot push the numbers off the text. */
            return pawli_fail(err, PAWL_WL_ORDER,
                              "expected offset %" PRId64 ", the head of the backlog, but %" PRId64
                              " was given in domain %s",
                              head, args->offset, record->domain);
        pawli_backlog_pop(&record->backlog);
    }
    record->lease = (struct lease){
        .offset = args->offset,
        .token = args->token,
        .acquired_at = args->now,
        .retry_count = 0,
    };
    record->is_leased = true;
    assert(!pawli_backlog_has(&record->backlog, args->offset)); /* WL-DISJOINT */
    return PAWL_OK;
}

pawl_code pawli_worklease_try_acquire(struct pawli_worklease *record,
                                      const struct pawli_acquire *args,
                                      struct pawli_acquired *ret_acquired, pawl_err *err)
{
    assert(record != NULL);
    assert(args != NULL);
    assert(ret_acquired != NULL);

    struct pawli_acquired acquired = {.result = PAWLI_ACQUIRED};
    pawl_code rc = PAWL_OK;
    if (pawli_intervals_has(&record->processed, args->offset)) {
        acquired.result = PAWLI_ALREADY_PROCESSED;
    } else if (pawli_intervals_has(&record->failed, args->offset)) {
        acquired.result = PAWLI_ALREADY_FAILED;
    } else if (record->is_leased && record->lease.offset == args->offset) {
        acquired.result = PAWLI_ALREADY_ACQUIRED;
        acquired.token = record->lease.token;
    } else if (record->is_leased) {
        acquired.result = PAWLI_ENQUEUED;
        rc = enqueue(record, args->offset, err);
    } else {
        acquired.token = args->token;
        rc = grant(record, args, err);
    }
    if (rc == PAWL_OK)
        *ret_acquired = acquired;
    return rc;
}

/* ---------------------------------------------------------------- finishing */

/* Whether `token` may end the lease, and there is one to end. */
static pawl_code check_lease(const struct pawli_worklease *record, const pawl_token *token,
                             pawl_err *err)
{
    if (!record->is_leased)
        return pawli_fail(err, PAWL_WL_NO_LEASE, "there is no lease in domain %s", record->domain);
    if (!pawli_token_is_equal(&record->lease.token, token))
        return pawli_fail(err, PAWL_WL_TOKEN,
                          "the token is not that of the lease on offset %" PRId64 " in domain %s",
                          record->lease.offset, record->domain);
    return PAWL_OK;
}

/* Make the leased offset a member of `terminal`, and end the lease. */
static pawl_code end_lease(struct pawli_worklease *record, struct pawli_intervals *terminal,
                           pawl_err *err)
{
    assert(record->is_leased);

    pawl_code rc = pawli_intervals_add(terminal, record->lease.offset);
    if (rc != PAWL_OK)
        return pawli_fail_plain(err, rc);
    record->is_leased = false;
    record->lease = (struct lease){.offset = 0}; /* no token outlives its lease */
    return PAWL_OK;
}

/* What the caller is told once the lease has ended: `empty`, or `hint` and the head. */
static struct pawli_finished finished_with(const struct pawli_worklease *record,
                                           enum pawli_finish_result empty,
                                           enum pawli_finish_result hint)
{
    if (pawli_backlog_count(&record->backlog) == 0)
        return (struct pawli_finished){.result = empty};
    return (struct pawli_finished){
        .result = hint,
        .next_offset = pawli_backlog_at(&record->backlog, 0),
    };
}

pawl_code pawli_worklease_succeed(struct pawli_worklease *record, const pawl_token *token,
                                  struct pawli_finished *ret_finished, pawl_err *err)
{
    assert(record != NULL);
    assert(token != NULL);
    assert(ret_finished != NULL);

    pawl_code rc = check_lease(record, token, err);
    if (rc != PAWL_OK)
        return rc;
    rc = end_lease(record, &record->processed, err);
    if (rc != PAWL_OK)
        return rc;
    *ret_finished = finished_with(record, PAWLI_NO_BACKLOG, PAWLI_NEXT_HINT);
    return PAWL_OK;
}

pawl_code pawli_worklease_fail(struct pawli_worklease *record, const pawl_token *token,
                               struct pawli_finished *ret_finished, pawl_err *err)
{
    assert(record != NULL);
    assert(token != NULL);
    assert(ret_finished != NULL);

    pawl_code rc = check_lease(record, token, err);
    if (rc != PAWL_OK)
        return rc;
    if (record->lease.retry_count < record->max_retries) {
        record->lease.retry_count++;
        *ret_finished = (struct pawli_finished){
            .result = PAWLI_RETRY_SCHEDULED,
            .retry_count = record->lease.retry_count,
        };
        return PAWL_OK;
    }
    rc = end_lease(record, &record->failed, err);
    if (rc != PAWL_OK)
        return rc;
    *ret_finished = finished_with(record, PAWLI_GIVE_UP_NO_BACKLOG, PAWLI_GIVE_UP_NEXT_HINT);
    return PAWL_OK;
}

/* ---------------------------------------------------------------- looking in */

struct pawli_worklease_view pawli_worklease_look(const struct pawli_worklease *record)
{
    assert(record != NULL);

    struct pawli_worklease_view view = {
        .is_leased = record->is_leased,
        .offset = record->lease.offset,
        .retry_count = record->lease.retry_count,
        .acquired_at = record->lease.acquired_at,
        .backlog_count = pawli_backlog_count(&record->backlog),
        .processed_intervals = pawli_intervals_count(&record->processed),
        .failed_intervals = pawli_intervals_count(&record->failed),
        .memory_bytes = sizeof *record + record->domain_size +
                        pawli_backlog_bytes(&record->backlog) +
                        pawli_intervals_bytes(&record->processed) +
                        pawli_intervals_bytes(&record->failed),
    };
    if (view.backlog_count > 0)
        view.backlog_head = pawli_backlog_at(&record->backlog, 0);
    return view;
}

bool pawli_worklease_is_processed(const struct pawli_worklease *record, int64_t offset)
{
    assert(record != NULL);

    return pawli_intervals_has(&record->processed, offset);
}

bool pawli_worklease_is_failed(const struct pawli_worklease *record, int64_t offset)
{
    assert(record != NULL);

    return pawli_intervals_has(&record->failed, offset);
}

int64_t pawli_worklease_backlog_at(const struct pawli_worklease *record, size_t i)
{
    assert(record != NULL);

    return pawli_backlog_at(&record->backlog, i);
}
