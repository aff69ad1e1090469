/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sim_check_test.c - the checker's rules about the store, on exact histories: each with one that
 * keeps it, and the same with one thing changed that breaks it, and nothing else.
 * Owns:  the stories.
 * Never: needs the simulator or a store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/story.h"

#define A "worker-a"
#define B "worker-b"

/* ---------------------------------------------------------------- C1 to C5 */

/* Q-AT-LEAST-ONCE: only a job that had ended can have been pruned. */
static void c1_lost(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_job_note(t, PAWLI_NOTE_ACKED, "producer", 0, 0);
    if (is_bad)
        tale_prune(t, 1);
    tale_work(t, A, 0);
    tale_done(t, A, 0);
    if (!is_bad)
        tale_prune(t, 1);
    t->jobs[0].is_hidden = true;
}

static void c1_never_accepted(struct tale *t, bool is_bad)
{
    t->row_code = is_bad ? PAWL_DUPLICATE : PAWL_OK;
    tale_enqueue(t, 0);
    if (!is_bad)
        tale_claim(t, A, 0), tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_ACKED, "producer", 0, 0);
}

static void c1_never_asked(struct tale *t, bool is_bad)
{
    t->is_open_ended = true; /* nothing else can show it */
    t->row_code = is_bad ? PAWL_DUPLICATE : PAWL_OK;
    tale_enqueue(t, 0);
    tale_job_note(t, PAWLI_NOTE_ACKED, "producer", 0, 0);
}

static void c1_gone(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (!is_bad) {
        tale_prune(t, 1);
        t->jobs[0].is_hidden = true;
    }
    t->row_code = PAWL_GONE;
    tale_settle_again(t, A, 0, PAWL_SUCCEED);
}

/* Q-ONE-LEASE, to the microsecond */
static void c2_two_leases(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    if (is_bad)
        tale_pass_us(t, -1);
    tale_expire_unseen(t, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-3: at its expiry a lease is not valid any more. */
static void c3_settle_expired(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    if (!is_bad)
        tale_pass_us(t, -1);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_digest(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->token_digest++;
}

static void c3_renew_token(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_digest : NULL;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Q-STALE: a repeated settle shows the token, too. */
static void c3_replay_token(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, PAWL_DEFAULT);
    t->row_code = is_bad ? PAWL_OK : PAWL_STALE;
    t->bend = bend_digest;
    tale_settle_again(t, A, 0, PAWL_RETRY);
    tale_cancel(t, 0);
}

static void c3_release_worker(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, is_bad ? B : A, 0);
    tale_cancel(t, 0);
}

static void bend_version_back(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->version--;
}

static void c3_settle_version(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, A, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_version_back : NULL;
    tale_settle(t, A, 0, PAWL_FAIL, PAWL_DEFAULT);
}

/* A repeated settle is OK; the same lease settled in another way is not. */
static void c3_replay_other(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_FAIL, PAWL_DEFAULT);
    tale_settle_again(t, A, 0, is_bad ? PAWL_RETRY : PAWL_FAIL);
}

static void c4_completed_twice(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    struct pawli_trace_row late = tale_lease_row(t, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    late.code = is_bad ? PAWL_OK : PAWL_STALE;
    late.action = PAWL_SUCCEED;
    tale_call(t, PAWLI_VERB_SETTLE, A, late);
}

static void c5_claimed_when_failed(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_FAIL, PAWL_DEFAULT);
    if (!is_bad)
        tale_redrive(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Q-NEVER-AGAIN */
static void c5_listed_again(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].state = PAWL_FAILED;
}

static void c5_redriven_when_done(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->row_code = is_bad ? PAWL_OK : PAWL_ALREADY_SUCCEEDED;
    tale_redrive(t, 0);
}

/* ---------------------------------------------------------------- C6: bounds */

/* Q-RETRY-BOUND */
static void c6_retries(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, 0);
    tale_claim(t, A, 0);
    t->jobs[0].max_retries = is_bad ? 2 : 1; /* the store believes in more than was asked for */
    tale_settle(t, A, 0, PAWL_RETRY, 0);
    if (is_bad)
        tale_cancel(t, 0);
}

static void c6_retry_uncounted(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, 0);
    t->jobs[0].retries = is_bad ? 0 : 1;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* A snooze uses no retry, a release neither retry nor lost lease: RES-12 */
static void c6_snooze_counted(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SNOOZE, 0);
    t->jobs[0].retries = is_bad ? 1 : 0;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c6_release_counted(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, A, 0);
    t->jobs[0].lost = is_bad ? 1 : 0;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-5: poison exactly at the bound. */
static void c6_poison_early(struct tale *t, bool is_bad)
{
    tale_queue_set(t, 2);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    if (is_bad) {
        tale_reap(t, 0, PAWL_REASON_POISON);
        return;
    }
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_POISON);
}

static void c6_poison_missed(struct tale *t, bool is_bad)
{
    tale_queue_set(t, 1);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, is_bad ? PAWL_REASON_EXPIRED : PAWL_REASON_POISON);
    if (is_bad)
        tale_cancel(t, 0);
}

/* ---------------------------------------------------------------- C7: the ledger */

static void c7_row_missing(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].rows_count = 0;
}

static void c7_expiry_uncounted(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    if (is_bad) {
        t->jobs[0].attempts = 0;
        t->jobs[0].rows_count = 0;
    }
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c7_gap(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].rows[1].attempt_no = 3;
}

static void bend_attempts(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->attempts++;
}

static void c7_count(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->bend = is_bad ? bend_attempts : NULL;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c7_wrong_version(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, A, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].rows[0].version = 1;
}

static void c7_listed_reason(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_cancel(t, 0);
    if (is_bad)
        t->jobs[0].reason = PAWL_REASON_FATAL;
}

static void c7_no_ledger(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_cancel(t, 0);
    t->is_unaudited = is_bad;
}

static void c7_wrong_outcome(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, 0);
    tale_cancel(t, 0);
    if (is_bad)
        t->jobs[0].rows[0].outcome = PAWL_DISPATCHED;
}

static void c7_wrong_worker(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].rows[0].worker = B;
}

static void c7_wrong_time(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 5);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].rows[0].finished_at.us--;
}

static void c7_extra_row(struct tale *t, bool is_bad)
{
    struct tale_job *job = &t->jobs[0];
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, A, 0);
    tale_cancel(t, 0);
    if (is_bad) {
        job->rows[1] = job->rows[0];
        job->rows[1].attempt_no = 2;
        job->rows_count = 2;
    }
}

static void bend_attempt(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->attempt_no++;
}

static void c7_settle_number(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_attempt : NULL;
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c7_replay_number(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->bend = is_bad ? bend_attempt : NULL;
    tale_settle_again(t, A, 0, PAWL_SUCCEED);
}

/* ---------------------------------------------------------------- C8, C9 */

/* Q-VERSION */
static void c8_version_skips(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->jobs[0].version = is_bad ? 1 : 0;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c8_version_stands(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, A, 0);
    if (is_bad)
        t->jobs[0].version--;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c8_listed_version(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].version++;
}

static void bend_deadline(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->start_within_ms = 50;
}

/* A start-by deadline, to the microsecond */
static void c9_missed_early(struct tale *t, bool is_bad)
{
    struct tale_job *job = &t->jobs[0];
    t->bend = bend_deadline;
    tale_enqueue(t, 0);
    tale_pass(t, 50);
    if (is_bad)
        tale_pass_us(t, -1);
    tale_call(t, PAWLI_VERB_REAP, "",
              (struct pawli_trace_row){
                  .job = job->id, .state = PAWL_FAILED, .reason = PAWL_REASON_START_BY});
    job->rows[0] = (struct pawli_trace_row){.job = job->id,
                                            .attempt_no = 1,
                                            .outcome = PAWL_FAILED_FINAL,
                                            .reason = PAWL_REASON_START_BY,
                                            .ended_by = PAWL_ENDED_BY_DEADLINE,
                                            .finished_at = tale_wall(t)};
    job->rows_count = 1;
    job->attempts = 1;
    job->reason = PAWL_REASON_START_BY;
    job->state = PAWL_FAILED;
}

static void c9_reaped_early(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    if (is_bad)
        tale_pass_us(t, -1);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* A renewal that came in time must count. */
static void c9_reaped_renewed(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 9000);
    tale_renew(t, A, 0);
    tale_pass(t, is_bad ? 1000 : TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c9_reaped_settled(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_pass(t, TALE_LEASE_MS);
    if (is_bad)
        tale_reap(t, 0, PAWL_REASON_EXPIRED);
}

static void c16_counts(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        tale_prune(t, 1); /* it is still in the list */
}

/* ---------------------------------------------------------------- C18: when it is due */

/* Q-RETRY-VISIBLE, to the microsecond */
static void c18_claimed_early(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, 200);
    tale_pass(t, 200);
    if (is_bad)
        tale_pass_us(t, -1);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c18_delayed_start(struct tale *t, bool is_bad)
{
    t->jobs[0].delay_ms = 300;
    tale_enqueue(t, 0);
    tale_pass(t, is_bad ? 299 : 300);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_due_now(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    row->due_at = call->store_at;
}

static void bend_due_soon(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    row->due_at.us = call->store_at.us + 7000;
}

static void bend_due_far(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    row->due_at.us = call->store_at.us + 501000;
}

static void c18_delay_ignored(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_due_now : NULL;
    tale_settle(t, A, 0, PAWL_RETRY, 200);
    tale_cancel(t, 0);
}

static void c18_claimed_late(struct tale *t, bool is_bad)
{
    t->bend = bend_deadline;
    tale_enqueue(t, 0);
    tale_pass(t, is_bad ? 50 : 49);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-5: the first loss costs no time. */
static void c18_expiry_delay(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    t->bend = is_bad ? bend_due_far : NULL;
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* Q-BACKOFF: 500 ms at most before the first retry. */
static void c18_backoff_above(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_due_far : NULL;
    tale_settle(t, A, 0, PAWL_RETRY, PAWL_DEFAULT);
    tale_cancel(t, 0);
}

/* Once may be chance; five times is not. */
static void c18_never_any_delay(struct tale *t, bool is_bad)
{
    for (int i = 0; i < 5; i++) {
        tale_enqueue(t, i);
        tale_claim(t, A, i);
        t->bend = is_bad || i == 0 ? bend_due_now : NULL;
        tale_settle(t, A, i, PAWL_RETRY, PAWL_DEFAULT);
        tale_cancel(t, i);
    }
}

/* RES-5: the same from the second lost lease in a row on. */
static void c18_never_any_delay_after_losses(struct tale *t, bool is_bad)
{
    for (int i = 0; i < 5; i++) {
        tale_enqueue(t, i);
        tale_claim(t, A, i);
        tale_pass(t, TALE_LEASE_MS);
        tale_reap(t, i, PAWL_REASON_EXPIRED);
        tale_claim(t, A, i);
        tale_pass(t, TALE_LEASE_MS);
        t->bend = is_bad || i == 0 ? bend_due_now : bend_due_soon;
        tale_reap(t, i, PAWL_REASON_EXPIRED);
        tale_cancel(t, i);
    }
}

/* ---------------------------------------------------------------- C22, C23: answers */

static void c22_refused(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? NULL : bend_digest;
    t->row_code = PAWL_STALE;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* A settle whose answer was lost is answered once more. */
static void c22_replay_refused(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->row_code = is_bad ? PAWL_STALE : PAWL_OK;
    tale_settle_again(t, A, 0, PAWL_SUCCEED);
}

static void c22_already(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->row_code = is_bad ? PAWL_ALREADY_FAILED : PAWL_ALREADY_SUCCEEDED;
    tale_cancel(t, 0);
}

static void c22_release_refused(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? NULL : bend_digest;
    t->row_code = PAWL_STALE;
    tale_release(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c22_cancelled_by_nobody(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    if (!is_bad)
        tale_cancel(t, 0);
    t->row_code = PAWL_CANCELLED;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c22_odd_answer(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->row_code = is_bad ? PAWL_EXISTS : PAWL_OK;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c22_expired_as_cancelled(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    if (!is_bad)
        tale_cancel(t, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_CANCELLED);
}

static void bend_state(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->state = PAWL_SUCCEEDED;
}

static void c22_reaped_as(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    t->bend = is_bad ? bend_state : NULL;
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c22_exists(struct tale *t, bool is_bad)
{
    if (!is_bad) {
        tale_enqueue(t, 0);
        tale_cancel(t, 0);
    }
    t->row_code = PAWL_EXISTS;
    tale_enqueue(t, 0);
}

static void c22_never_enqueued(struct tale *t, bool is_bad)
{
    if (!is_bad)
        tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    if (!is_bad)
        tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_claimed(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->claimed_at.us++;
}

static void c22_granted(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->bend = is_bad ? bend_claimed : NULL;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c22_mine(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_mine(t, is_bad ? B : A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_expiry_back(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->expires_at.us--;
}

/* Q-EXTEND */
static void c23_shortened(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_expiry_back : NULL;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-6: no renewal past the execution timeout. */
static void c23_past_timeout(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    for (int i = 0; i < 3; i++) {
        tale_pass(t, TALE_LEASE_MS - 1);
        tale_renew(t, A, 0);
    }
    tale_pass(t, 3);
    t->row_code = is_bad ? PAWL_OK : PAWL_TIMEOUT;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_unstarted(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->is_unstarted = true;
}

/* RES-6: what has started does not become unstarted. */
static void c23_unstarted_again(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    for (int i = 0; i < 3; i++) {
        tale_pass(t, TALE_LEASE_MS - 1);
        t->bend = i > 0 ? bend_unstarted : NULL;
        tale_renew(t, A, 0);
    }
    tale_pass(t, 3);
    t->row_code = is_bad ? PAWL_OK : PAWL_TIMEOUT;
    t->bend = bend_unstarted;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-6: nor is it unstarted for ever. */
static void c23_unstarted_for_ever(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    for (int i = 0; i < 5; i++) {
        tale_pass(t, TALE_LEASE_MS - 1);
        t->bend = bend_unstarted;
        tale_renew(t, A, 0);
    }
    tale_pass(t, 5);
    t->row_code = is_bad ? PAWL_OK : PAWL_TIMEOUT;
    t->bend = bend_unstarted;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c23_timeout_early(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->row_code = is_bad ? PAWL_TIMEOUT : PAWL_OK;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-13 */
static void c23_past_cancel(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_cancel(t, 0);
    t->row_code = is_bad ? PAWL_OK : PAWL_CANCELLED;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* ---------------------------------------------------------------- C24 to C27 */

/* Q-ENQUEUE */
static void c24_again(struct tale *t, bool is_bad)
{
    tale_prune(t, is_bad ? 1 : 0); /* before it had ended */
    tale_enqueue(t, 0);
    t->row_code = is_bad ? PAWL_OK : PAWL_EXISTS;
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-8 */
static void c25_token(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_enqueue(t, 1);
    tale_claim(t, A, 0);
    t->digests -= is_bad ? 1 : 0;
    tale_claim(t, A, 1);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c26_drained(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    if (is_bad)
        tale_release(t, A, 0);
    else
        tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c27_paused(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_queue_pause(t, true);
    if (!is_bad)
        tale_queue_pause(t, false);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* ---------------------------------------------------------------- telling them */

static const struct story stories[] = {
    STORY(C1, c1_lost),
    STORY(C1, c1_never_accepted),
    STORY(C1, c1_never_asked),
    STORY(C1, c1_gone),
    STORY(C2, c2_two_leases),
    STORY(C3, c3_settle_expired),
    STORY(C3, c3_renew_token),
    STORY(C3, c3_replay_token),
    STORY(C3, c3_release_worker),
    STORY(C3, c3_settle_version),
    STORY(C3, c3_replay_other),
    STORY(C4, c4_completed_twice),
    STORY(C5, c5_claimed_when_failed),
    STORY(C5, c5_listed_again),
    STORY(C5, c5_redriven_when_done),
    STORY(C6, c6_retries),
    STORY(C6, c6_retry_uncounted),
    STORY(C6, c6_snooze_counted),
    STORY(C6, c6_release_counted),
    STORY(C6, c6_poison_early),
    STORY(C6, c6_poison_missed),
    STORY(C7, c7_row_missing),
    STORY(C7, c7_expiry_uncounted),
    STORY(C7, c7_gap),
    STORY(C7, c7_count),
    STORY(C7, c7_wrong_version),
    STORY(C7, c7_listed_reason),
    STORY(C7, c7_no_ledger),
    STORY(C7, c7_wrong_outcome),
    STORY(C7, c7_wrong_worker),
    STORY(C7, c7_wrong_time),
    STORY(C7, c7_extra_row),
    STORY(C7, c7_settle_number),
    STORY(C7, c7_replay_number),
    STORY(C8, c8_version_skips),
    STORY(C8, c8_version_stands),
    STORY(C8, c8_listed_version),
    STORY(C9, c9_reaped_early),
    STORY(C9, c9_missed_early),
    STORY(C9, c9_reaped_renewed),
    STORY(C9, c9_reaped_settled),
    STORY(C16, c16_counts),
    STORY(C18, c18_claimed_early),
    STORY(C18, c18_delayed_start),
    STORY(C18, c18_delay_ignored),
    STORY(C18, c18_claimed_late),
    STORY(C18, c18_expiry_delay),
    STORY(C18, c18_backoff_above),
    STORY(C18, c18_never_any_delay),
    STORY(C18, c18_never_any_delay_after_losses),
    STORY(C22, c22_refused),
    STORY(C22, c22_replay_refused),
    STORY(C22, c22_already),
    STORY(C22, c22_release_refused),
    STORY(C22, c22_cancelled_by_nobody),
    STORY(C22, c22_odd_answer),
    STORY(C22, c22_expired_as_cancelled),
    STORY(C22, c22_reaped_as),
    STORY(C22, c22_exists),
    STORY(C22, c22_never_enqueued),
    STORY(C22, c22_granted),
    STORY(C22, c22_mine),
    STORY(C23, c23_shortened),
    STORY(C23, c23_past_timeout),
    STORY(C23, c23_unstarted_again),
    STORY(C23, c23_unstarted_for_ever),
    STORY(C23, c23_timeout_early),
    STORY(C23, c23_past_cancel),
    STORY(C24, c24_again),
    STORY(C25, c25_token),
    STORY(C26, c26_drained),
    STORY(C27, c27_paused),
};

static void every_story(void **state)
{
    (void)state;
    stories_tell(stories, sizeof(stories) / sizeof(stories[0]));
}

/* So that each check can fail, proved: the workers' rules are in sim_check_workers_test.c, those
 * between jobs in sim_check_keys_test.c. */
static void every_rule_has_a_story(void **state)
{
    (void)state;
    static const enum check_rule others[] = {CHECK_C10, CHECK_C11, CHECK_C12, CHECK_C13, CHECK_C14,
                                             CHECK_C15, CHECK_C17, CHECK_C19, CHECK_C20, CHECK_C21,
                                             CHECK_C28, CHECK_C29, CHECK_C30, CHECK_C31, CHECK_C32};
    bool is_told[CHECK_RULES_COUNT] = {false};
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        is_told[stories[i].rule] = true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        is_told[others[i]] = true;
    for (int rule = 1; rule < CHECK_RULES_COUNT; rule++) {
        assert_true(is_told[rule]);
        assert_string_not_equal(check_rule_number((enum check_rule)rule), "?");
        assert_string_not_equal(check_rule_name((enum check_rule)rule), "?");
        assert_string_not_equal(check_rule_text((enum check_rule)rule), "?");
    }
    assert_string_equal(check_rule_number(CHECK_NONE), "?");
    assert_string_equal(check_rule_name(CHECK_RULES_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_story),
        cmocka_unit_test(every_rule_has_a_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
