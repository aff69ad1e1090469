/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sim_check_loose_test.c - the checker on histories of real runs: calls timed by their callers,
 * that overlap, that ended without an answer, in several files.
 * Owns:  the stories.
 * Never: needs a store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/story.h"

#define A "worker-a"
#define B "worker-b"

/* ---------------------------------------------------------------- kept and broken */

static void c2_claimed_early(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 3000);
    tale_renew(t, A, 0);
    tale_pass(t, is_bad ? TALE_LEASE_MS - 1 : TALE_LEASE_MS);
    tale_expire_unseen(t, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Without an answer a settle may have been done: then the claim is in order. */
static void c2_unknown_settle(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 1000);
    if (!is_bad) {
        t->call_code = PAWL_UNKNOWN;
        tale_settle(t, A, 0, PAWL_RETRY, 0);
    }
    tale_pass(t, 1000);
    tale_claim(t, B, 0);
    t->is_open_ended = true;
}

static void c3_after_a_claim(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    struct pawli_trace_row late = tale_lease_row(t, 0);
    late.action = PAWL_RETRY;
    late.attempt_no = 1;
    late.code = is_bad ? PAWL_OK : PAWL_STALE;
    tale_pass(t, TALE_LEASE_MS);
    tale_claim(t, B, 0);
    tale_pass(t, 1);
    tale_call(t, PAWLI_VERB_SETTLE, A, late);
    t->is_open_ended = true;
}

/* While both are under way either may come first. */
static void c3_overlapping(struct tale *t, bool is_bad)
{
    t->takes_us = 5000;
    tale_enqueue(t, 0);
    tale_pass(t, 10);
    tale_claim(t, A, 0);
    tale_pass(t, 10);
    tale_settle(t, A, 0, PAWL_SNOOZE, 0);
    tale_pass(t, is_bad ? 6 : 4);
    t->jobs[0].state = PAWL_IN_FLIGHT;
    tale_renew(t, A, 0);
    t->is_open_ended = true;
}

/* Both at once, and both accepted: one of them must have been refused. */
static void c3_settled_released(struct tale *t, bool is_bad)
{
    t->takes_us = 5000;
    tale_enqueue(t, 0);
    tale_pass(t, 10);
    tale_claim(t, A, 0);
    tale_pass(t, 10);
    tale_release(t, A, 0);
    t->row_code = is_bad ? PAWL_OK : PAWL_STALE;
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->is_open_ended = true;
}

static void c3_released_settled(struct tale *t, bool is_bad)
{
    t->takes_us = 5000;
    tale_enqueue(t, 0);
    tale_pass(t, 10);
    tale_claim(t, A, 0);
    tale_pass(t, 10);
    tale_settle(t, A, 0, PAWL_SNOOZE, 0);
    t->row_code = is_bad ? PAWL_OK : PAWL_STALE;
    tale_release(t, A, 0);
    t->is_open_ended = true;
}

static void c3_two_ways(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_settle_again(t, A, 0, is_bad ? PAWL_SNOOZE : PAWL_SUCCEED);
}

static void bend_digest(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->token_digest++;
}

static void c3_token(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_digest : NULL;
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c3_expired(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, is_bad ? TALE_LEASE_MS : TALE_LEASE_MS - 1);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c3_renewed_expired(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, is_bad ? TALE_LEASE_MS : TALE_LEASE_MS - 1);
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c4_twice(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    struct pawli_trace_row first = tale_lease_row(t, 0);
    first.action = PAWL_SUCCEED;
    first.state = is_bad ? PAWL_READY : PAWL_SUCCEEDED; /* as a store might that forgets */
    first.attempt_no = 1;
    first.code = is_bad ? PAWL_OK : PAWL_STALE;
    tale_call(t, PAWLI_VERB_SETTLE, A, first);
    tale_pass(t, TALE_LEASE_MS);
    tale_claim(t, B, 0);
    t->jobs[0].attempts = 1;
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->is_open_ended = true;
}

static void c5_claimed_when_done(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_FAIL, PAWL_DEFAULT);
    if (!is_bad) {
        t->call_code = PAWL_UNKNOWN; /* perhaps */
        tale_redrive(t, 0);
    }
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c6_over_the_bound(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->jobs[0].retries = is_bad ? 2 : 1;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c6_lost_too_many(struct tale *t, bool is_bad)
{
    tale_queue_set(t, 2);
    tale_enqueue(t, 0);
    t->jobs[0].lost = is_bad ? 2 : 1;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_attempt(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->attempt_no++;
}

static void c7_replay_number(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    t->bend = is_bad ? bend_attempt : NULL;
    tale_settle_again(t, A, 0, PAWL_SUCCEED);
}

static void c7_settle_number(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_attempt : NULL;
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c7_outcome(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].rows[0].outcome = PAWL_RETRYABLE;
}

static void c7_reaped(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    if (is_bad)
        t->jobs[0].rows[0].ended_by = PAWL_ENDED_BY_HOLDER;
}

static void c7_nobodys_row(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_cancel(t, 0);
    t->jobs[0].rows[0].version = is_bad ? 4 : 0;
}

static void c7_gap(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_cancel(t, 0);
    t->jobs[0].rows[0].attempt_no = is_bad ? 2 : 1;
}

static void c7_listed_count(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_cancel(t, 0);
    t->jobs[0].attempts = is_bad ? 2 : 1;
}

static void c7_no_row(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad)
        t->jobs[0].attempts = 0, t->jobs[0].rows_count = 0;
}

static void c7_two_expiries(struct tale *t, bool is_bad)
{
    struct tale_job *job = &t->jobs[0];
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_expire_unseen(t, 0);
    if (is_bad) {
        job->rows[1] = job->rows[0];
        job->rows[1].attempt_no = 2;
        job->attempts = 2;
        job->rows_count = 2;
    }
}

static void c7_two_rows(struct tale *t, bool is_bad)
{
    struct tale_job *job = &t->jobs[0];
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (is_bad) {
        job->rows[1] = job->rows[0];
        job->rows[1].attempt_no = 2;
        job->attempts = 2;
        job->rows_count = 2;
    }
}

/* A claim without an answer explains a version that nobody was told of, and no more than one. */
static void c8_gap(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    pawli_trace_call(t->writer, &(struct pawli_trace_record){.kind = PAWLI_RECORD_CALL,
                                                             .verb = PAWLI_VERB_CLAIM,
                                                             .code = PAWL_UNKNOWN,
                                                             .actor = A,
                                                             .subject = A,
                                                             .at = {t->now_us},
                                                             .until = {t->now_us}});
    tale_pass(t, TALE_LEASE_MS);
    t->jobs[0].version = is_bad ? 2 : 1;
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c8_none(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->jobs[0].version = is_bad ? -1 : 0;
    tale_claim(t, A, 0);
    t->is_open_ended = true;
}

static void c8_twice(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_release(t, A, 0);
    t->jobs[0].version -= is_bad ? 1 : 0;
    t->jobs[0].digest--;
    tale_claim(t, A, 0);
    t->is_open_ended = true;
}

static void c9_recovered_early(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, is_bad ? TALE_LEASE_MS - 1 : TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
}

static void c9_reaped_twice(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    if (is_bad)
        tale_reap(t, 0, PAWL_REASON_EXPIRED);
    t->is_open_ended = true;
}

static void c9_reaped_settled(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_pass(t, TALE_LEASE_MS);
    if (is_bad)
        tale_reap(t, 0, PAWL_REASON_EXPIRED);
    t->is_open_ended = is_bad;
}

static void c18_early(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_RETRY, 200);
    tale_pass(t, is_bad ? 199 : 200);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_due_back(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->due_at.us -= 200000;
}

static void c18_delay_ignored(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_due_back : NULL;
    tale_settle(t, A, 0, PAWL_RETRY, 200);
    tale_cancel(t, 0);
}

static void bend_expiry_back(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->expires_at.us -= 2000000;
}

static void c23_shortened(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 1000);
    t->bend = is_bad ? bend_expiry_back : NULL;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c23_shorter_than_before(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 3000);
    tale_renew(t, A, 0);
    tale_pass(t, 1000);
    t->bend = is_bad ? bend_expiry_back : NULL;
    tale_renew(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c24_again(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->row_code = is_bad ? PAWL_OK : PAWL_EXISTS;
    tale_enqueue(t, 0);
    t->is_open_ended = true;
}

/* C1 and C16: an enqueue without an answer may or may not have been done. */
static void c16_unknown_enqueue(struct tale *t, bool is_bad)
{
    t->call_code = is_bad ? PAWL_DOWN : PAWL_UNKNOWN;
    tale_enqueue(t, 0);
    t->jobs[0].is_hidden = false;
}

static void c1_not_listed(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_job_note(t, PAWLI_NOTE_ACKED, "producer", 0, 0);
    t->jobs[0].is_hidden = is_bad;
    if (is_bad)
        tale_enqueue(t, 1), t->jobs[2].is_hidden = false; /* so that the counts agree */
}

static void c11_settled_late(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_work(t, A, 0);
    tale_pass(t, 2 * TALE_BEAT_MS + (is_bad ? 1 : 0));
    tale_done(t, A, 0);
}

/* Q-TTL, RULE-020-020: a reap says by how much, a claim that found it on its way does not. */
static void c15_reaped_late(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, 1000);
    t->call_code = PAWL_UNKNOWN; /* it may have extended the lease: the store's word counts */
    tale_renew(t, A, 0);
    tale_pass(t, TALE_LEASE_MS + 500 - 1000 + (is_bad ? 2 : 0));
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

static void c15_claimed_late(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS + 500 + (is_bad ? 2 : 0));
    tale_expire_unseen(t, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void c15_store_was_down(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    if (!is_bad)
        tale_note(t, PAWLI_NOTE_STORE_DOWN, "", 0);
    tale_pass(t, 2000);
    if (!is_bad)
        tale_note(t, PAWLI_NOTE_STORE_UP, "", 0);
    tale_expire_unseen(t, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static const struct story stories[] = {
    STORY(C2, c2_claimed_early),
    STORY(C2, c2_unknown_settle),
    STORY(C3, c3_after_a_claim),
    STORY(C3, c3_overlapping),
    STORY(C3, c3_settled_released),
    STORY(C3, c3_released_settled),
    STORY(C3, c3_two_ways),
    STORY(C3, c3_token),
    STORY(C3, c3_expired),
    STORY(C3, c3_renewed_expired),
    STORY(C4, c4_twice),
    STORY(C5, c5_claimed_when_done),
    STORY(C6, c6_over_the_bound),
    STORY(C6, c6_lost_too_many),
    STORY(C7, c7_replay_number),
    STORY(C7, c7_settle_number),
    STORY(C7, c7_outcome),
    STORY(C7, c7_reaped),
    STORY(C7, c7_nobodys_row),
    STORY(C7, c7_gap),
    STORY(C7, c7_listed_count),
    STORY(C7, c7_no_row),
    STORY(C7, c7_two_expiries),
    STORY(C7, c7_two_rows),
    STORY(C8, c8_gap),
    STORY(C8, c8_none),
    STORY(C8, c8_twice),
    STORY(C9, c9_recovered_early),
    STORY(C9, c9_reaped_twice),
    STORY(C9, c9_reaped_settled),
    STORY(C18, c18_early),
    STORY(C18, c18_delay_ignored),
    STORY(C23, c23_shortened),
    STORY(C23, c23_shorter_than_before),
    STORY(C24, c24_again),
    STORY(C16, c16_unknown_enqueue),
    STORY(C1, c1_not_listed),
    STORY(C11, c11_settled_late),
    STORY(C15, c15_reaped_late),
    STORY(C15, c15_claimed_late),
    STORY(C15, c15_store_was_down),
};

static void every_story(void **state)
{
    (void)state;
    stories_tell_loose(stories, sizeof(stories) / sizeof(stories[0]));
}

/* ---------------------------------------------------------------- several files */

/* Two callers, each with a file of its own: what one cannot know, both together show. */
static void files_are_merged_by_time(void **state)
{
    (void)state;
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        struct tale first;
        struct tale second;
        tale_init(&first);
        tale_init(&second);
        first.is_loose = second.is_loose = true;
        tale_enqueue(&first, 0);
        tale_pass(&first, 1000);
        tale_claim(&first, A, 0);
        struct pawli_trace_row late = tale_lease_row(&first, 0);
        late.action = PAWL_RETRY;
        late.state = PAWL_READY;
        late.attempt_no = 1;
        /* The other one claims the job an hour later; the first one's settle comes before, or
         * after. */
        second.jobs[0] = first.jobs[0];
        second.digests = first.digests;
        tale_pass(&second, 3600000);
        tale_claim(&second, B, 0);
        tale_pass(&first, is_bad == 1 ? 3600000 : 5000);
        tale_call(&first, PAWLI_VERB_SETTLE, A, late);

        struct check_part parts[2];
        parts[0].bytes = pawli_trace_bytes(second.writer, &parts[0].len);
        parts[1].bytes = pawli_trace_bytes(first.writer, &parts[1].len);
        struct check_options options = {0};
        struct check_report report;
        pawl_err err;
        assert_int_equal(check_histories(parts, 2, &options, &report, &err), PAWL_OK);
        assert_int_equal(report.records, 4);
        assert_int_equal(report.jobs, 1);
        assert_int_equal(report.leases, 2);
        assert_int_equal(report.violations_count, is_bad);
        assert_int_equal(report.is_broken[CHECK_C3], is_bad == 1);
        tale_clear(&first);
        tale_clear(&second);
    }
}

/* What a run cannot be held to is not reported; the rest is. */
static void rules_can_be_left_out(void **state)
{
    (void)state;
    for (int is_left_out = 0; is_left_out < 2; is_left_out++) {
        struct tale tale;
        struct check_report report;
        struct check_options options = story_options(CHECK_C15);
        options.is_exact = false;
        options.unchecked = is_left_out == 1 ? UINT64_C(1) << CHECK_C15 : 0;
        tale_init(&tale);
        tale.is_loose = true;
        c15_reaped_late(&tale, true);
        tale_enqueue(&tale, 1);
        tale.jobs[1].version = 3;
        tale_claim(&tale, B, 1); /* C8 */
        tale_settle(&tale, B, 1, PAWL_SUCCEED, PAWL_DEFAULT);
        tale_end(&tale);
        story_check(&tale, &options, &report);
        assert_int_equal(report.is_broken[CHECK_C15], is_left_out == 0);
        assert_int_equal(report.violations_count, is_left_out == 0 ? 2 : 1);
        tale_clear(&tale);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_story),
        cmocka_unit_test(rules_can_be_left_out),
        cmocka_unit_test(files_are_merged_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
