/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job_steps.h - jobs in every state and changes of them, for the tests of core/job.c. Instants are
 * milliseconds from a fixed one. Each function fails the running cmocka test where it does not find
 * what it names.
 */
#ifndef PAWLI_TEST_JOB_STEPS_H
#define PAWLI_TEST_JOB_STEPS_H

#include "core/job.h"

#define LEASE_MS   30000
#define TIMEOUT_MS 90000

pawl_wall at(int64_t ms);
pawl_wall just_before(pawl_wall instant);

/* A source from which nothing may be drawn, and one that gives the number it points to. */
extern const pawl_random no_draw;
pawl_random always(uint64_t *number);

/* max_retries 3, max_lost_leases 10, backoff 500 ms to 30 s */
extern const struct pawli_job_rules usual_rules;

/* ---- jobs: due at 0; claimed by w1, under `usual_token`, for LEASE_MS */

extern const pawl_token usual_token;
struct pawli_job ready_job(void);
struct pawli_job claimed_job(int64_t ms);
struct pawli_job marked_job(int64_t ms); /* claimed, and a cancellation asked for */
struct pawli_job succeeded_job(void);
struct pawli_job failed_job(void);

/* ---- changes */

struct pawli_change claim_at(int64_t ms);
/* With token, worker and version as they should be. A snooze is for 7 s, a retry by backoff. */
struct pawli_change by_holder(const struct pawli_job *job, enum pawli_event event, int64_t ms);
struct pawli_change by_others(enum pawli_event event, int64_t ms);

/* ---- changing and looking */

/* Make a change that must be accepted under the usual rules, and give its row. must() draws
 * nothing. */
struct pawli_ledger_row must(struct pawli_job *job, struct pawli_change change);
struct pawli_ledger_row must_draw(struct pawli_job *job, struct pawli_change change,
                                  const pawl_random *random);

/* Make a change that must be refused, and see that job and row stay as they were, to the byte. */
void refused(struct pawli_job *job, struct pawli_change change, pawl_code code);

void assert_no_row(struct pawli_ledger_row row);
void assert_no_lease(const struct pawli_job *job);

struct expected_row {
    int64_t attempt_no;
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
};

/* See that the row is of w1's lease from 0 to `ms`, and that the job holds it no more. */
void assert_row(struct pawli_ledger_row row, const struct pawli_job *job, int64_t ms,
                struct expected_row expected);

#endif
