/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease_record.c - one domain in memory.
 * Owns:  the lease, the backlog and the terminal offsets of one domain.
 * Never: judges (core/worklease.c does); reads a clock; makes a token; takes a lock (its caller
 *        does); allocates after its first change.
 */
#include "core/worklease_record.h"

#include "base/error.h"
#include "core/backlog.h"
#include "core/intervals.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pawli_worklease {
    bool is_leased;
    struct pawli_worklease_lease lease; /* where is_leased; its owner is `owner` */
    char *owner;                        /* owned; NULL: none */
    struct pawli_intervals processed;
    struct pawli_intervals failed;
    struct pawli_backlog backlog;
    size_t domain_size; /* with the closing NUL */
    char domain[];
};

struct pawli_worklease *pawli_worklease_new(const char *domain)
{
    assert(domain != NULL);

    size_t domain_size = strlen(domain) + 1;
    struct pawli_worklease *record = malloc(sizeof *record + domain_size);
    if (record == NULL)
        return NULL;
    *record = (struct pawli_worklease){.domain_size = domain_size};
    memcpy(record->domain, domain, domain_size);
    pawli_intervals_init(&record->processed);
    pawli_intervals_init(&record->failed);
    pawli_backlog_init(&record->backlog);
    return record;
}

void pawli_worklease_free(struct pawli_worklease *record)
{
    if (record == NULL)
        return;
    pawli_backlog_clear(&record->backlog);
    pawli_intervals_clear(&record->failed);
    pawli_intervals_clear(&record->processed);
    free(record->owner);
    free(record);
}

struct pawli_worklease_known pawli_worklease_look(const struct pawli_worklease *record)
{
    assert(record != NULL);

    struct pawli_worklease_known known = {
        .domain = record->domain,
        .is_leased = record->is_leased,
        .lease = record->lease,
        .backlog_count = (int64_t)pawli_backlog_count(&record->backlog),
    };
    if (known.backlog_count > 0)
        known.backlog_head = pawli_backlog_at(&record->backlog, 0);
    return known;
}

enum pawli_worklease_fate pawli_worklease_fate_of(const struct pawli_worklease *record,
                                                  int64_t offset)
{
    assert(record != NULL);

    if (pawli_intervals_has(&record->processed, offset))
        return PAWLI_WORKLEASE_PROCESSED;
    return pawli_intervals_has(&record->failed, offset) ? PAWLI_WORKLEASE_FAILED
                                                        : PAWLI_WORKLEASE_OPEN;
}

/* ---------------------------------------------------------------- writing what verdicts say */

/* Make `lease` the domain's. */
static pawl_code write_lease(struct pawli_worklease *record,
                             const struct pawli_worklease_lease *lease)
{
    char *owner = NULL;
    if (lease->owner != NULL && lease->owner == record->owner) {
        owner = record->owner;
    } else if (lease->owner != NULL) {
        size_t owner_size = strlen(lease->owner) + 1;
        owner = malloc(owner_size);
        if (owner == NULL)
            return PAWL_NO_MEMORY;
        memcpy(owner, lease->owner, owner_size);
    }
    if (owner != record->owner)
        free(record->owner);
    record->owner = owner;
    record->lease = *lease;
    record->lease.owner = owner;
    record->is_leased = true;
    return PAWL_OK;
}

/* Make the leased offset a member of `terminal`, and end the lease. */
static pawl_code end_lease(struct pawli_worklease *record, struct pawli_intervals *terminal)
{
    pawl_code rc = pawli_intervals_add(terminal, record->lease.offset);
    if (rc != PAWL_OK)
        return rc;
    free(record->owner);
    record->owner = NULL;
    record->is_leased = false;
    record->lease = (struct pawli_worklease_lease){.offset = 0}; /* no token outlives its lease */
    return PAWL_OK;
}

static pawl_code grant(struct pawli_worklease *record, const struct pawli_worklease_lease *lease)
{
    assert(!record->is_leased); /* WL-SINGLE */

    pawl_code rc = write_lease(record, lease);
    if (rc == PAWL_OK && pawli_backlog_count(&record->backlog) > 0) {
        assert(pawli_backlog_at(&record->backlog, 0) == lease->offset); /* WL-FIFO */
        pawli_backlog_pop(&record->backlog);
    }
    return rc;
}

static pawl_code apply(struct pawli_worklease *record,
                       const struct pawli_worklease_verdict *verdict, int64_t offset, pawl_err *err)
{
    pawl_code rc = PAWL_OK;
    switch (verdict->change) {
    case PAWLI_WORKLEASE_NOTHING:
        break;
    case PAWLI_WORKLEASE_PUSH:
        rc = pawli_backlog_push(&record->backlog, offset);
        break;
    case PAWLI_WORKLEASE_GRANT:
        rc = grant(record, &verdict->lease);
        break;
    case PAWLI_WORKLEASE_WRITE:
        assert(record->is_leased && record->lease.offset == verdict->lease.offset);
        rc = write_lease(record, &verdict->lease);
        break;
    case PAWLI_WORKLEASE_END_PROCESSED:
        rc = end_lease(record, &record->processed);
        break;
    case PAWLI_WORKLEASE_END_FAILED:
        rc = end_lease(record, &record->failed);
        break;
    }
    return rc == PAWL_OK ? rc : pawli_fail_plain(err, rc);
}

/* ---------------------------------------------------------------- the verbs */

pawl_code pawli_worklease_try_acquire(struct pawli_worklease *record, struct pawli_acquire *acquire,
                                      pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    assert(record != NULL && acquire != NULL && ret_acquired != NULL);

    struct pawli_worklease_known known = pawli_worklease_look(record);
    struct pawli_worklease_verdict verdict = {.change = PAWLI_WORKLEASE_NOTHING};
    pawl_worklease_acquired acquired;
    int64_t offset = acquire->args->offset;
    acquire->fate = pawli_worklease_fate_of(record, offset);
    acquire->is_waiting = pawli_backlog_has(&record->backlog, offset);
    pawl_code rc = pawli_worklease_judge_acquire(&known, acquire, &verdict, &acquired, err);
    if (rc == PAWL_OK)
        rc = apply(record, &verdict, offset, err);
    if (rc == PAWL_OK)
        *ret_acquired = acquired;
    return rc;
}

pawl_code pawli_worklease_succeed(struct pawli_worklease *record,
                                  const struct pawli_holding *holding,
                                  pawl_worklease_ended *ret_ended, pawl_err *err)
{
    assert(record != NULL && holding != NULL && ret_ended != NULL);

    struct pawli_worklease_known known = pawli_worklease_look(record);
    struct pawli_worklease_verdict verdict;
    pawl_worklease_ended ended;
    pawl_code rc = pawli_worklease_judge_succeed(&known, holding, &verdict, &ended, err);
    if (rc == PAWL_OK)
        rc = apply(record, &verdict, known.lease.offset, err);
    if (rc == PAWL_OK)
        *ret_ended = ended;
    return rc;
}

pawl_code pawli_worklease_fail(struct pawli_worklease *record, const struct pawli_holding *holding,
                               pawl_worklease_ended *ret_ended, pawl_err *err)
{
    assert(record != NULL && holding != NULL && ret_ended != NULL);

    struct pawli_worklease_known known = pawli_worklease_look(record);
    struct pawli_worklease_verdict verdict;
    pawl_worklease_ended ended;
    pawl_code rc = pawli_worklease_judge_fail(&known, holding, &verdict, &ended, err);
    if (rc == PAWL_OK)
        rc = apply(record, &verdict, known.lease.offset, err);
    if (rc == PAWL_OK)
        *ret_ended = ended;
    return rc;
}

pawl_code pawli_worklease_renew(struct pawli_worklease *record, const struct pawli_holding *holding,
                                pawl_wall *ret_expires_at, pawl_err *err)
{
    assert(record != NULL && holding != NULL && ret_expires_at != NULL);

    struct pawli_worklease_known known = pawli_worklease_look(record);
    struct pawli_worklease_verdict verdict;
    pawl_wall expires_at;
    pawl_code rc = pawli_worklease_judge_renew(&known, holding, &verdict, &expires_at, err);
    if (rc == PAWL_OK)
        rc = apply(record, &verdict, known.lease.offset, err);
    if (rc == PAWL_OK)
        *ret_expires_at = expires_at;
    return rc;
}

/* ---------------------------------------------------------------- looking in */

int64_t pawli_worklease_backlog_at(const struct pawli_worklease *record, size_t i)
{
    assert(record != NULL);

    return pawli_backlog_at(&record->backlog, i);
}

size_t pawli_worklease_terminal(const struct pawli_worklease *record, size_t skip,
                                pawl_worklease_interval *ret_rows, size_t rows_max)
{
    assert(record != NULL && ret_rows != NULL);

    struct pawli_interval processed;
    struct pawli_interval failed;
    bool has_processed = pawli_intervals_first(&record->processed, &processed);
    bool has_failed = pawli_intervals_first(&record->failed, &failed);
    size_t count = 0;
    for (size_t i = 0; (has_processed || has_failed) && count < rows_max; i++) {
        bool is_failed = has_failed && (!has_processed || failed.first < processed.first);
        struct pawli_interval *at = is_failed ? &failed : &processed;
        if (i >= skip)
            ret_rows[count++] = (pawl_worklease_interval){at->first, at->last, is_failed};
        if (is_failed)
            has_failed = pawli_intervals_next(&record->failed, &failed);
        else
            has_processed = pawli_intervals_next(&record->processed, &processed);
    }
    return count;
}

size_t pawli_worklease_intervals(const struct pawli_worklease *record, bool is_failed)
{
    assert(record != NULL);

    return pawli_intervals_count(is_failed ? &record->failed : &record->processed);
}

size_t pawli_worklease_bytes(const struct pawli_worklease *record)
{
    assert(record != NULL);

    return sizeof *record + record->domain_size +
           (record->owner != NULL ? strlen(record->owner) + 1 : 0) +
           pawli_backlog_bytes(&record->backlog) + pawli_intervals_bytes(&record->processed) +
           pawli_intervals_bytes(&record->failed);
}
