/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sim_check_workers_test.c - the checker's rules about workers, on exact histories: each with one
 * that keeps it, and the same with one thing changed that breaks it, and nothing else.
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

/* ---------------------------------------------------------------- C10, C13: losing leases */

/* RULE-020-010 */
static void c10_lost(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, 3000);
    if (!is_bad)
        tale_note(t, PAWLI_NOTE_WORKER_CRASH, A, 0);
    tale_pass(t, TALE_LEASE_MS - 3000);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* A lost settle is no reason to lose a lease: K6. */
static void c10_settle_fault(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, 3000);
    tale_renew(t, A, 0);
    tale_confirm(t, A, 0);
    tale_pass(t, TALE_LEASE_MS - 1000);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, is_bad ? PAWLI_VERB_SETTLE : PAWLI_VERB_RENEW);
    tale_pass(t, 1000);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c10_beat_failed(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, TALE_BEAT_MS);
    if (!is_bad)
        tale_note(t, PAWLI_NOTE_STORE_DOWN, "", 0);
    tale_pass(t, TALE_BEAT_MS);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_RETRY);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_note(t, PAWLI_NOTE_STORE_UP, "", 0);
    tale_pass(t, TALE_LEASE_MS - 2 * TALE_BEAT_MS);
    tale_expire_unseen(t, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RES-10: one lost message is no excuse, a beat has several tries. */
static void c10_one_lost(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, TALE_BEAT_MS);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_pass(t, TALE_BEAT_MS / 2);
    if (!is_bad)
        tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_pass(t, TALE_BEAT_MS / 2);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_RETRY);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_pass(t, TALE_LEASE_MS - 2 * TALE_BEAT_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* But for one of longer leases that hung before the claim; not for one that was confirmed since. */
static void c10_hung_before(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_pass(t, 10);
    tale_work(t, A, 0);
    tale_pass(t, TALE_BEAT_MS);
    if (is_bad) {
        tale_renew(t, A, 0);
        tale_confirm(t, A, 0);
        tale_pass(t, TALE_BEAT_MS);
    }
    tale_pass(t, TALE_BEAT_MS);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_RETRY);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_pass(t, TALE_LEASE_MS - 2 * TALE_BEAT_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c13_claim_lost(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_CLAIM);
    tale_pass(t, 1000);
    if (!is_bad) {
        tale_mine(t, A, 0);
        tale_renew(t, A, 0);
        tale_confirm(t, A, 0);
        tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
        tale_done(t, A, 0);
        return;
    }
    tale_pass(t, TALE_LEASE_MS - 1000);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* ---------------------------------------------------------------- C11, C12: risk */

/* RES-10: twice the interval after the request was sent, work has stopped. */
static void c11_settled_late(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, 2 * TALE_BEAT_MS + (is_bad ? 1 : 0));
    tale_done(t, A, 0);
}

static void c11_started_late(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_confirm(t, A, 0);
    tale_pass(t, 2 * TALE_BEAT_MS + (is_bad ? 1 : 0));
    tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    tale_renew(t, A, 0);
    tale_confirm(t, A, 0);
    tale_done(t, A, 0);
}

/* RULE-020-050, K5 */
static void c11_unconfirmed(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_mine(t, A, 0);
    if (!is_bad) {
        tale_renew(t, A, 0);
        tale_confirm(t, A, 0);
    }
    tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    if (is_bad)
        tale_confirm(t, A, 0);
    tale_done(t, A, 0);
}

/* RULE-020-050: not under a lease that somebody else has, or nobody. */
static void c11_nobodys(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    t->jobs[0].version = is_bad ? 1 : 0;
    if (is_bad)
        tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    t->jobs[0].version = 0;
    if (is_bad)
        tale_cancel(t, 0);
    else
        tale_work(t, A, 0), tale_done(t, A, 0);
}

static void c11_sent_after_abort(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_cancel(t, 0);
    t->row_code = PAWL_CANCELLED;
    tale_renew(t, A, 0);
    if (!is_bad)
        tale_job_note(t, PAWLI_NOTE_SEND, A, 0, 0);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_CANCELLED);
    if (is_bad)
        tale_job_note(t, PAWLI_NOTE_SEND, A, 0, 0);
    tale_done(t, A, 0); /* it had finished: a valid settle that comes first wins (RES-13) */
}

/* After a cancellation no beat is owed: what is left of the lease may be used, and not more. */
static void c11_lease_end(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_cancel(t, 0);
    t->row_code = PAWL_CANCELLED;
    tale_renew(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_CANCELLED);
    tale_pass(t, TALE_LEASE_MS - 1 + (is_bad ? 2 : 0));
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_DONE);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_SUCCEED);
    t->row_code = is_bad ? PAWL_STALE : PAWL_OK;
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, is_bad ? PAWLI_WHY_FENCED : PAWLI_WHY_SETTLED);
    if (!is_bad)
        return;
    tale_pass(t, 1);
    t->jobs[0].state = PAWL_IN_FLIGHT;
    tale_reap(t, 0, PAWL_REASON_CANCELLED);
}

/* The execution timeout has passed while the worker stood still: no beat is owed any more. */
static void c11_timed_out(struct tale *t, bool is_bad)
{
    int beats = is_bad ? 8 : 11;
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    for (int i = 0; i < beats; i++) {
        tale_pass(t, TALE_BEAT_MS);
        tale_renew(t, A, 0);
        tale_confirm(t, A, 0);
    }
    tale_note(t, PAWLI_NOTE_PAUSE_BEGIN, A, 0);
    tale_pass(t, 2 * TALE_BEAT_MS + 500);
    tale_note(t, PAWLI_NOTE_PAUSE_END, A, 0);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_RETRY);
    tale_note(t, PAWLI_NOTE_STEP, A, 0);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_RETRY);
    tale_settle(t, A, 0, PAWL_RETRY, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_SETTLED);
    tale_cancel(t, 0);
}

/* What the worker believes does not matter once the store calls the lease expired. */
static void c11_store_truth(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 9000);
    tale_confirm(t, A, 0); /* it believes that it asked just now */
    tale_pass(t, is_bad ? 1001 : 999);
    tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    tale_note(t, PAWLI_NOTE_WORKER_CRASH, A, 0);
    tale_pass(t, 100);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* Two jobs run; the worker stands still for longer than their beats allow; a third is held. */
static void c12_abort_first(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    for (int i = 0; i < 3; i++)
        tale_enqueue(t, i);
    tale_work(t, A, 0);
    tale_work(t, A, 1);
    tale_note(t, PAWLI_NOTE_PAUSE_BEGIN, A, 0);
    tale_pass(t, 6000);
    tale_note(t, PAWLI_NOTE_PAUSE_END, A, 0);
    tale_claim(t, A, 2); /* decided on before; it was on its way */
    tale_confirm(t, A, 2);
    tale_note(t, PAWLI_NOTE_STEP, A, 0);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    if (is_bad)
        tale_job_note(t, PAWLI_NOTE_START, A, 2, PAWLI_WHY_CLAIMED);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 1, PAWLI_WHY_BEAT_FAILED);
    if (!is_bad)
        tale_job_note(t, PAWLI_NOTE_START, A, 2, PAWLI_WHY_CLAIMED);
    tale_done(t, A, 2);
    tale_note(t, PAWLI_NOTE_WORKER_CRASH, A, 0);
    tale_pass(t, 4000);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_reap(t, 1, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
    tale_cancel(t, 1);
}

static void c12_released_first(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_enqueue(t, 1);
    tale_work(t, A, 0);
    tale_note(t, PAWLI_NOTE_PAUSE_BEGIN, A, 0);
    tale_pass(t, 6000);
    tale_note(t, PAWLI_NOTE_PAUSE_END, A, 0);
    tale_claim(t, A, 1);
    tale_confirm(t, A, 1);
    tale_note(t, PAWLI_NOTE_STEP, A, 0);
    if (!is_bad)
        tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_job_note(t, PAWLI_NOTE_SEND_RELEASE, A, 1, 0);
    tale_release(t, A, 1);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 1, PAWLI_WHY_RELEASED);
    tale_note(t, PAWLI_NOTE_WORKER_CRASH, A, 0);
    tale_pass(t, 4000);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
    tale_cancel(t, 1);
}

/* ---------------------------------------------------------------- C14 to C16 */

static void c14_idle(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0); /* it serves the queue */
    tale_done(t, A, 0);
    tale_note(t, PAWLI_NOTE_FAULTS_OFF, "", 0);
    tale_pass(t, 1000); /* calm_ms */
    tale_enqueue(t, 1);
    tale_pass(t, TALE_POLL_MS + 30 + (is_bad ? 5 : 0));
    tale_work(t, A, 1);
    tale_done(t, A, 1);
}

/* A worker that has something to do is not idle. */
static void c14_busy(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_note(t, PAWLI_NOTE_FAULTS_OFF, "", 0);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, 1000);
    if (is_bad)
        tale_done(t, A, 0);
    tale_enqueue(t, 1);
    tale_pass(t, 3000);
    if (!is_bad)
        tale_done(t, A, 0);
    tale_work(t, A, 1);
    tale_done(t, A, 1);
}

/* Q-TTL, RULE-020-020 */
static void c15_recovered_late(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS + 500 + (is_bad ? 2 : 0)); /* reaper_ms, and 1 ms for rounding */
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c15_never_recovered(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, is_bad ? TALE_LEASE_MS + 600 : TALE_LEASE_MS - 1);
}

/* ---------------------------------------------------------------- C17, C19: work and its end */

static void c17_result(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, is_bad ? PAWLI_RESULT_RETRY : PAWLI_RESULT_DONE);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_SUCCEED);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* RULE-020-012: stopped by a failed beat, it is not settled, not even in time. */
static void c17_stopped(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, TALE_BEAT_MS);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_pass(t, TALE_BEAT_MS);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_DONE);
    if (is_bad) {
        tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_SUCCEED);
        tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
        return;
    }
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_pass(t, 2 * TALE_BEAT_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* Work that its execution timeout has stopped, and that had finished all the same. */
static void time_out(struct tale *t)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    for (int i = 1; i < TALE_TIMEOUT_MS / TALE_BEAT_MS; i++) {
        tale_pass(t, TALE_BEAT_MS);
        tale_renew(t, A, 0);
        tale_confirm(t, A, 0);
    }
    tale_pass(t, TALE_BEAT_MS);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_TIMEOUT);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_DONE);
}

/* RES-6: it has failed, whatever it answers. */
static void c17_timeout_success(struct tale *t, bool is_bad)
{
    time_out(t);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, is_bad ? PAWL_SUCCEED : PAWL_RETRY);
    t->reason = is_bad ? PAWL_REASON_NONE : PAWL_REASON_TIMEOUT;
    tale_settle(t, A, 0, is_bad ? PAWL_SUCCEED : PAWL_RETRY, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_SETTLED);
}

static void c17_timeout_reason(struct tale *t, bool is_bad)
{
    time_out(t);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_RETRY);
    t->reason = is_bad ? PAWL_REASON_NONE : PAWL_REASON_TIMEOUT;
    tale_settle(t, A, 0, PAWL_RETRY, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_SETTLED);
}

/* RES-13: what was cancelled and had not finished has failed; it is not tried again. */
static void c17_cancelled_retry(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_cancel(t, 0);
    t->row_code = PAWL_CANCELLED;
    tale_renew(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_CANCELLED);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_RETRY);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, is_bad ? PAWL_RETRY : PAWL_FAIL);
    t->reason = PAWL_REASON_CANCELLED;
    tale_settle(t, A, 0, PAWL_FAIL, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_SETTLED);
}

static void c17_released_started(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_confirm(t, A, 0);
    if (is_bad)
        tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    tale_job_note(t, PAWLI_NOTE_SEND_RELEASE, A, 0, 0);
    tale_release(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_RELEASED);
    tale_cancel(t, 0);
}

static void c19_twice(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    if (is_bad)
        tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    tale_done(t, A, 0);
}

/* ---------------------------------------------------------------- C20, C21: causes and words */

/* K8: the store refused one of two. */
static void c20_abort_all(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_enqueue(t, 1);
    tale_work(t, A, 0);
    tale_work(t, A, 1);
    tale_note(t, PAWLI_NOTE_STORE_JUMP, "", 1);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    t->row_code = PAWL_STALE;
    tale_renew(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, is_bad ? 1 : 0, PAWLI_WHY_LEASE_LOST);
    tale_note(t, PAWLI_NOTE_WORKER_CRASH, A, 0);
    tale_reap(t, 1, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
    tale_cancel(t, 1);
}

static void c20_beat_early(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, TALE_BEAT_MS);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RENEW);
    tale_pass(t, TALE_BEAT_MS - (is_bad ? 2 : 0));
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_BEAT_FAILED);
    tale_pass(t, TALE_LEASE_MS - 2 * TALE_BEAT_MS + 2);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c20_given_up_untold(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_note(t, PAWLI_NOTE_SHUTDOWN, A, 0);
    if (!is_bad)
        tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_SHUTDOWN);
    tale_job_note(t, PAWLI_NOTE_GIVE_UP, A, 0, PAWLI_WHY_ABORT_IGNORED);
    tale_note(t, PAWLI_NOTE_WORKER_STOPPED, A, 1);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* RES-6 */
static void c20_timeout_early(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    for (int i = 1; i < TALE_TIMEOUT_MS / TALE_BEAT_MS; i++) {
        tale_pass(t, TALE_BEAT_MS);
        tale_renew(t, A, 0);
        tale_confirm(t, A, 0);
    }
    tale_pass(t, TALE_BEAT_MS - (is_bad ? 2 : 0));
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_TIMEOUT);
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_RETRY);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_RETRY);
    t->reason = PAWL_REASON_TIMEOUT;
    tale_settle(t, A, 0, PAWL_RETRY, PAWL_DEFAULT);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_SETTLED);
    tale_cancel(t, 0);
}

/* K4: a lost reply is neither success nor failure. */
static void c21_settled(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    if (!is_bad) {
        tale_done(t, A, 0);
        return;
    }
    tale_job_note(t, PAWLI_NOTE_ENDED, A, 0, PAWLI_RESULT_DONE);
    tale_job_note(t, PAWLI_NOTE_SEND_SETTLE, A, 0, PAWL_SUCCEED);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_SETTLE);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_SETTLED);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* ---------------------------------------------------------------- C28: shutting down */

/* RULE-020-030: what has not started is given back. */
static void c28_left_behind(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_confirm(t, A, 0);
    tale_note(t, PAWLI_NOTE_SHUTDOWN, A, 4000);
    if (!is_bad) {
        tale_job_note(t, PAWLI_NOTE_SEND_RELEASE, A, 0, 0);
        tale_release(t, A, 0);
        tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_RELEASED);
    }
    tale_pass(t, is_bad ? 4000 : 1);
    tale_note(t, PAWLI_NOTE_WORKER_STOPPED, A, is_bad ? 1 : 0);
    tale_pass(t, TALE_LEASE_MS - 4000);
    if (is_bad)
        tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* Where the link breaks meanwhile, the reaper has to see to it. */
static void c28_left_for_a_reason(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_confirm(t, A, 0);
    tale_note(t, PAWLI_NOTE_SHUTDOWN, A, 4000);
    if (!is_bad)
        tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_RELEASE);
    tale_pass(t, 4000);
    tale_note(t, PAWLI_NOTE_WORKER_STOPPED, A, 1);
    tale_pass(t, TALE_LEASE_MS - 4000);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c28_claimed(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_note(t, PAWLI_NOTE_SHUTDOWN, A, 4000);
    tale_pass(t, is_bad ? 12 : 10); /* a claim that was on its way may arrive */
    tale_claim(t, A, 0);
    tale_confirm(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_SEND_RELEASE, A, 0, 0);
    tale_release(t, A, 0);
    tale_job_note(t, PAWLI_NOTE_OVER, A, 0, PAWLI_WHY_RELEASED);
    tale_note(t, PAWLI_NOTE_WORKER_STOPPED, A, 0);
    tale_cancel(t, 0);
}

/* What runs gets all the time but the grace period: a quarter at most. */
static void c28_aborted_early(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_note(t, PAWLI_NOTE_SHUTDOWN, A, 4000);
    tale_pass(t, is_bad ? 2990 : 3000);
    tale_job_note(t, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_SHUTDOWN);
    tale_done(t, A, 0);
    tale_note(t, PAWLI_NOTE_WORKER_STOPPED, A, 0);
}

static void c28_late(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_note(t, PAWLI_NOTE_SHUTDOWN, A, 4000);
    tale_pass(t, is_bad ? 4020 : 4000);
    tale_note(t, PAWLI_NOTE_WORKER_STOPPED, A, 0);
    tale_enqueue(t, 0);
    tale_cancel(t, 0);
}

/* ---------------------------------------------------------------- telling them */

static const struct story stories[] = {
    STORY(C10, c10_lost),
    STORY(C10, c10_settle_fault),
    STORY(C10, c10_beat_failed),
    STORY(C10, c10_one_lost),
    STORY(C10, c10_hung_before),
    STORY(C11, c11_settled_late),
    STORY(C11, c11_started_late),
    STORY(C11, c11_unconfirmed),
    STORY(C11, c11_nobodys),
    STORY(C11, c11_sent_after_abort),
    STORY(C11, c11_lease_end),
    STORY(C11, c11_timed_out),
    STORY(C11, c11_store_truth),
    STORY(C12, c12_abort_first),
    STORY(C12, c12_released_first),
    STORY(C13, c13_claim_lost),
    STORY(C14, c14_idle),
    STORY(C14, c14_busy),
    STORY(C15, c15_recovered_late),
    STORY(C15, c15_never_recovered),
    STORY(C17, c17_result),
    STORY(C17, c17_stopped),
    STORY(C17, c17_timeout_success),
    STORY(C17, c17_timeout_reason),
    STORY(C17, c17_cancelled_retry),
    STORY(C17, c17_released_started),
    STORY(C19, c19_twice),
    STORY(C20, c20_abort_all),
    STORY(C20, c20_beat_early),
    STORY(C20, c20_given_up_untold),
    STORY(C20, c20_timeout_early),
    STORY(C21, c21_settled),
    STORY(C28, c28_left_behind),
    STORY(C28, c28_left_for_a_reason),
    STORY(C28, c28_claimed),
    STORY(C28, c28_aborted_early),
    STORY(C28, c28_late),
};

static void every_story(void **state)
{
    (void)state;
    stories_tell(stories, sizeof(stories) / sizeof(stories[0]));
}

/* Two handlers at once take a store that grants two leases: both are reported. */
static void an_overlap_is_reported_beside_its_cause(void **state)
{
    (void)state;
    struct tale tale;
    struct check_options options = story_options(CHECK_C19);
    struct check_report report;
    tale_init(&tale);
    tale_up(&tale, A);
    tale_up(&tale, B);
    tale_enqueue(&tale, 0);
    tale_work(&tale, A, 0);
    tale_pass(&tale, 1000);
    tale_work(&tale, B, 0);
    tale_done(&tale, B, 0);
    tale_end(&tale);
    story_check(&tale, &options, &report);
    assert_true(report.is_broken[CHECK_C2]);
    assert_true(report.is_broken[CHECK_C19]);
    assert_int_equal(report.violations_count, 2);
    tale_clear(&tale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_story),
        cmocka_unit_test(an_overlap_is_reported_beside_its_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
