/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ledger_check.c - whether a job and its ledger can have come about as Pawl promises.
 * Owns:  the rules; see the header.
 * Never: reads a store; keeps more than the last row.
 */
#include "cli/ledger_check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *pawli_flaw_name(enum pawli_flaw flaw)
{
    static const char *const names[] = {
        "none", "gap", "count", "overlap", "second_completion", "after_end", "lease", "state"};
    assert((size_t)flaw < sizeof(names) / sizeof(names[0]));
    return names[flaw];
}

/* The first flaw counts: what follows may come of it. */
__attribute__((format(printf, 4, 5))) static void find(struct pawli_ledger_check *check,
                                                       enum pawli_flaw flaw, int64_t flaw_no,
                                                       const char *format, ...)
{
    va_list args;
    if (check->flaw != PAWLI_FLAW_NONE)
        return;
    check->flaw = flaw;
    check->flaw_no = flaw_no;
    va_start(args, format);
    (void)vsnprintf(check->text, sizeof(check->text), format, args); /* it fits */
    va_end(args);
}

/* ---- rows */

static void check_times(struct pawli_ledger_check *check, const pawl_attempt *row)
{
    int64_t began_us = row->started_at.us != 0 ? row->started_at.us : row->finished_at.us;
    if (row->finished_at.us < began_us)
        find(check, PAWLI_FLAW_OVERLAP, row->attempt_no,
             "attempt %" PRId64 " ended %" PRId64 " us before it began", row->attempt_no,
             began_us - row->finished_at.us);
    if (check->rows > 0 && began_us < check->last.finished_at.us)
        find(check, PAWLI_FLAW_OVERLAP, row->attempt_no,
             "attempt %" PRId64 " began %" PRId64 " us before attempt %" PRId64 " ended",
             row->attempt_no, check->last.finished_at.us - began_us, check->last.attempt_no);
}

static void check_lease(struct pawli_ledger_check *check, const pawl_attempt *row)
{
    if (row->lease_version == 0)
        return; /* it ended no lease */
    if (row->lease_version <= check->lease_version)
        find(check, PAWLI_FLAW_LEASE, row->attempt_no,
             "attempt %" PRId64 " ended lease version %" PRId64
             ", and an earlier one had ended version %" PRId64,
             row->attempt_no, row->lease_version, check->lease_version);
    check->lease_version = row->lease_version;
}

void pawli_ledger_check_row(struct pawli_ledger_check *check, const pawl_attempt *row)
{
    assert(check != NULL && row != NULL);
    bool is_completion = row->outcome == PAWL_DISPATCHED;
    if (row->attempt_no != check->last.attempt_no + 1)
        find(check, PAWLI_FLAW_GAP, row->attempt_no, "attempt %" PRId64 " follows attempt %" PRId64,
             row->attempt_no, check->last.attempt_no);
    if (check->is_completed && is_completion)
        find(check, PAWLI_FLAW_SECOND_COMPLETION, row->attempt_no,
             "attempt %" PRId64 " completed it once more", row->attempt_no);
    if (check->is_completed)
        find(check, PAWLI_FLAW_AFTER_END, row->attempt_no,
             "attempt %" PRId64 " follows one that had completed it", row->attempt_no);
    check_times(check, row);
    check_lease(check, row);
    check->is_completed |= is_completion;
    check->last = *row;
    check->rows++;
}

/* ---- the job */

static bool is_over(const pawl_job *job)
{
    return job->state == PAWL_SUCCEEDED || job->state == PAWL_FAILED;
}

/* What the last row makes of the job. A redrive sets the counters back, and whatever raises them
 * again leaves a row: so a live job whose last row says FAILED has them at 0. */
static bool is_state_of_last(const struct pawli_ledger_check *check, const pawl_job *job)
{
    if (check->rows == 0)
        return !is_over(job);
    if (check->last.outcome == PAWL_DISPATCHED)
        return job->state == PAWL_SUCCEEDED;
    if (check->last.outcome == PAWL_FAILED_FINAL)
        return job->state == PAWL_FAILED ||
               (!is_over(job) && job->retries == 0 && job->lost_leases == 0);
    return !is_over(job);
}

static void check_held(struct pawli_ledger_check *check, const pawl_job *job)
{
    if (job->lease_version <= check->lease_version)
        find(check, PAWLI_FLAW_LEASE, 0,
             "it is held under lease version %" PRId64
             ", and an attempt had ended version %" PRId64,
             job->lease_version, check->lease_version);
    if (check->rows > 0 && job->claimed_at.us < check->last.finished_at.us)
        find(check, PAWLI_FLAW_OVERLAP, 0,
             "its lease was granted %" PRId64 " us before attempt %" PRId64 " ended",
             check->last.finished_at.us - job->claimed_at.us, check->last.attempt_no);
}

void pawli_ledger_check_job(struct pawli_ledger_check *check, const pawl_job *job)
{
    assert(check != NULL && job != NULL);
    pawl_reason reason = check->rows > 0 ? check->last.reason : PAWL_REASON_NONE;
    if (job->attempts != check->rows)
        find(check, PAWLI_FLAW_COUNT, 0,
             "it counts %" PRId64 " attempts, and its ledger has %" PRId64, job->attempts,
             check->rows);
    if (!is_state_of_last(check, job))
        find(check, PAWLI_FLAW_STATE, 0, "it is %s, and its last attempt ended as %s",
             pawl_state_name(job->state),
             check->rows > 0 ? pawl_outcome_name(check->last.outcome) : "there is none");
    if (job->reason != reason)
        find(check, PAWLI_FLAW_STATE, 0, "its reason is %s, and that of its last attempt is %s",
             pawl_reason_name(job->reason), pawl_reason_name(reason));
    if (is_over(job) && check->rows > 0 && job->finished_at.us != check->last.finished_at.us)
        find(check, PAWLI_FLAW_STATE, 0, "it did not end when its last attempt did");
    if (job->lease_version < check->lease_version)
        find(check, PAWLI_FLAW_LEASE, 0,
             "its lease version is %" PRId64 ", and an attempt had ended version %" PRId64,
             job->lease_version, check->lease_version);
    if (job->state == PAWL_IN_FLIGHT)
        check_held(check, job);
}
