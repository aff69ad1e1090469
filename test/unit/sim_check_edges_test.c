/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sim_check_edges_test.c - what an exact history does not tell, and histories that are none:
 * nothing is reported that may have been in order, and nothing brings the checker down.
 * Owns:  the stories.
 * Never: needs the simulator or a store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "support/alloc_fail.h"
#include "support/story.h"

#include <stdlib.h>

#define A "worker-a"
#define B "worker-b"

/* ---------------------------------------------------------------- unseen, but in order */

/* A change by filter names no job; its ledger does. */
static void where(struct tale *t, enum pawli_trace_verb verb)
{
    pawli_trace_call(t->writer, &(struct pawli_trace_record){.kind = PAWLI_RECORD_CALL,
                                                             .verb = verb,
                                                             .actor = "operator",
                                                             .subject = TALE_QUEUE,
                                                             .at = {t->now_us},
                                                             .until = {t->now_us},
                                                             .store_at = tale_wall(t),
                                                             .is_where = true,
                                                             .count = 1});
}

static void add_row(struct tale *t, int job, struct pawli_trace_row row)
{
    struct tale_job *it = &t->jobs[job];
    row.job = it->id;
    row.attempt_no = ++it->attempts;
    row.finished_at = tale_wall(t);
    it->reason = row.reason;
    it->rows[it->rows_count++] = row;
}

static void fail_ready(struct tale *t, int job, pawl_reason reason, pawl_ended_by ended_by)
{
    add_row(t, job,
            (struct pawli_trace_row){
                .outcome = PAWL_FAILED_FINAL, .reason = reason, .ended_by = ended_by});
    t->jobs[job].state = PAWL_FAILED;
}

static void cancelled_by_filter(struct tale *t)
{
    tale_enqueue(t, 0);
    tale_pass(t, 1);
    where(t, PAWLI_VERB_CANCEL);
    fail_ready(t, 0, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_OPERATOR);
}

static void redriven_by_filter(struct tale *t)
{
    cancelled_by_filter(t);
    tale_pass(t, 1);
    where(t, PAWLI_VERB_REDRIVE);
    t->jobs[0].state = PAWL_READY;
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Marked while it runs: the renewal learns it, and a failed attempt ends the job. */
static void marked_by_filter(struct tale *t)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    where(t, PAWLI_VERB_CANCEL);
    t->row_code = PAWL_CANCELLED;
    tale_renew(t, A, 0);
    t->jobs[0].retries = t->jobs[0].max_retries; /* so that the tale lets it fail */
    tale_settle(t, A, 0, PAWL_RETRY, PAWL_DEFAULT);
    t->jobs[0].retries = 0;
    t->jobs[0].rows[0].reason = PAWL_REASON_CANCELLED;
    t->jobs[0].reason = PAWL_REASON_CANCELLED;
}

/* Expired, found by a claim that gave it to nobody, and cancelled by filter: all unseen. */
static void expired_and_cancelled_by_filter(struct tale *t)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS + 10);
    tale_expire_unseen(t, 0);
    tale_pass(t, 10);
    where(t, PAWLI_VERB_CANCEL);
    t->jobs[0].holder = NULL;
    fail_ready(t, 0, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_OPERATOR);
    t->row_code = PAWL_ALREADY_FAILED;
    tale_cancel(t, 0);
}

/* Past the bound of lost leases, without a reaper. */
static void poisoned_unseen(struct tale *t)
{
    tale_queue_set(t, 1);
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_expire_unseen(t, 0);
    t->jobs[0].rows[0].outcome = PAWL_FAILED_FINAL;
    t->jobs[0].rows[0].reason = t->jobs[0].reason = PAWL_REASON_POISON;
    t->jobs[0].state = PAWL_FAILED;
    tale_redrive(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

static void bend_deadline(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->start_within_ms = 50;
}

static void missed_unseen(struct tale *t)
{
    t->bend = bend_deadline;
    tale_enqueue(t, 0);
    tale_pass(t, 60);
    fail_ready(t, 0, PAWL_REASON_START_BY, PAWL_ENDED_BY_DEADLINE);
}

/* The store's clock went ahead, somebody's claim found the lease expired, and it went back. */
static void expired_before_a_jump_back(struct tale *t)
{
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_note(t, PAWLI_NOTE_STORE_JUMP, "", 20000000);
    tale_pass(t, 20000);
    tale_expire_unseen(t, 0);
    tale_pass(t, -20000);
    tale_note(t, PAWLI_NOTE_STORE_JUMP, "", -20000000);
    t->jobs[0].due_at = tale_wall(t);
    t->row_code = PAWL_STALE;
    tale_renew(t, A, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Pruned, and enqueued once more: another life, which begins with version 1. */
static void a_second_life(struct tale *t)
{
    pawl_id id = t->jobs[0].id;
    tale_enqueue(t, 0);
    tale_claim(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_prune(t, 1);
    t->row_code = PAWL_GONE;
    tale_settle_again(t, A, 0, PAWL_SUCCEED);
    t->jobs[0] = (struct tale_job){.id = id, .max_retries = 1};
    tale_enqueue(t, 0);
    tale_claim(t, B, 0);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* A call that waited for the store's lock: the lease counts from when it was granted. */
static void bend_waited(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)row;
    call->at.us -= 9000000;
}

static void granted_late(struct tale *t)
{
    tale_up(t, A);
    tale_enqueue(t, 0);
    tale_pass(t, 9000);
    t->bend = bend_waited;
    tale_claim(t, A, 0);
    tale_confirm(t, A, 0);
    tale_pass(t, 2000);
    tale_job_note(t, PAWLI_NOTE_START, A, 0, PAWLI_WHY_CLAIMED);
    tale_done(t, A, 0);
}

static void nothing_is_held_against_what_is_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*tell)(struct tale *tale);
    } tales[] = {
        {"cancelled_by_filter", cancelled_by_filter},
        {"redriven_by_filter", redriven_by_filter},
        {"marked_by_filter", marked_by_filter},
        {"expired_and_cancelled_by_filter", expired_and_cancelled_by_filter},
        {"poisoned_unseen", poisoned_unseen},
        {"missed_unseen", missed_unseen},
        {"expired_before_a_jump_back", expired_before_a_jump_back},
        {"a_second_life", a_second_life},
        {"granted_late", granted_late},
    };
    struct check_options options = story_options(CHECK_C26);
    int wrong = 0;
    for (size_t i = 0; i < sizeof(tales) / sizeof(tales[0]); i++) {
        struct tale tale;
        struct check_report report;
        tale_init(&tale);
        tales[i].tell(&tale);
        tale_end(&tale);
        story_check(&tale, &options, &report);
        if (report.violations_count > 0) {
            print_error("%s:\n", tales[i].name);
            check_report_print(&report, stderr);
            wrong++;
        }
        tale_clear(&tale);
    }
    assert_int_equal(wrong, 0);
}

/* ---------------------------------------------------------------- what is no history, or half */

/* A bit of everything. */
static void long_tale(struct tale *t)
{
    tale_init(t);
    tale_queue_set(t, 3);
    tale_up(t, A);
    tale_up(t, B);
    for (int i = 0; i < TALE_JOBS; i++)
        tale_enqueue(t, i);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TALE_JOBS - 1; i++) {
            tale_work(t, i % 2 == 0 ? A : B, i);
            tale_pass(t, 10);
            tale_renew(t, i % 2 == 0 ? A : B, i);
            tale_confirm(t, i % 2 == 0 ? A : B, i);
            if (i == round)
                tale_release(t, i % 2 == 0 ? A : B, i);
            else
                tale_settle(t, i % 2 == 0 ? A : B, i, PAWL_SNOOZE, 5);
            tale_pass(t, 20);
        }
    }
    tale_note(t, PAWLI_NOTE_PAUSE_BEGIN, A, 0);
    tale_claim(t, A, 5);
    tale_note(t, PAWLI_NOTE_LINK_FAULT, A, PAWLI_VERB_CLAIM);
    tale_pass(t, TALE_LEASE_MS);
    tale_reap(t, 5, PAWL_REASON_EXPIRED);
    tale_note(t, PAWLI_NOTE_PAUSE_END, A, 0);
    tale_note(t, PAWLI_NOTE_STEP, A, 0);
    tale_note(t, PAWLI_NOTE_FAULTS_OFF, "", 0);
    for (int i = 0; i < TALE_JOBS; i++)
        tale_cancel(t, i);
    tale_prune(t, 0);
    tale_end(t);
}

static void garbage_is_survived(void **state)
{
    (void)state;
    struct tale tale;
    long_tale(&tale);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(tale.writer, &len);
    uint8_t *copy = malloc(len);
    struct check_report *report = calloc(1, sizeof(*report));
    assert_true(copy != NULL && report != NULL);
    struct pawli_seeded seeded = {99};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct check_options options = story_options(CHECK_C26);
    options.drift_ppm = 10000;
    size_t read = 0;
    for (int round = 0; round < 4000; round++) {
        memcpy(copy, bytes, len);
        for (uint64_t flips = 1 + pawli_random_below(&random, 3); flips > 0; flips--)
            copy[16 + pawli_random_below(&random, len - 16)] ^= (uint8_t)(1u << pawli_random_below(
                                                                              &random, 8));
        options.is_exact = round % 2 == 0;
        pawl_err err;
        pawl_code code = check_history(copy, len, &options, report, &err);
        assert_true(code == PAWL_OK || code == PAWL_INVALID);
        read += code == PAWL_OK;
    }
    assert_true(read > 400); /* most of the time it is the checker that must cope */
    free(copy);
    free(report);
    tale_clear(&tale);
}

static void each_failed_allocation_is_told(void **state)
{
    (void)state;
    struct tale tale;
    long_tale(&tale);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(tale.writer, &len);
    struct check_report *report = calloc(1, sizeof(*report));
    assert_non_null(report);
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        struct check_options options = story_options(CHECK_C26);
        options.is_exact = is_exact == 1;
        for (uint64_t nth = 1;; nth++) {
            pawl_err err;
            alloc_fail_nth(nth);
            pawl_code code = check_history(bytes, len, &options, report, &err);
            bool has_failed = alloc_fail_end();
            assert_int_equal(code, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
            if (!has_failed)
                break;
        }
        assert_int_equal(report->violations_count, 0);
    }
    free(report);
    tale_clear(&tale);
}

static void what_cannot_be_read_is_refused(void **state)
{
    (void)state;
    struct tale tale;
    long_tale(&tale);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(tale.writer, &len);
    struct check_options options = story_options(CHECK_C26);
    struct check_report report;
    pawl_err err;
    assert_int_equal(check_history(bytes + 1, len - 1, &options, &report, &err), PAWL_INVALID);
    struct check_part parts[2] = {{bytes, len}, {bytes, len}};
    assert_int_equal(check_histories(parts, 2, &options, &report, &err), PAWL_INVALID);
    assert_int_equal(check_histories(parts, 0, &options, &report, &err), PAWL_INVALID);

    /* Cut off: what is there is checked, and that the end is missing is a violation of its own. */
    assert_int_equal(check_history(bytes, len - 3, &options, &report, &err), PAWL_OK);
    assert_true(report.is_cut);
    options.is_complete = false;
    assert_int_equal(check_history(bytes, len / 2, &options, &report, &err), PAWL_OK);
    assert_int_equal(report.violations_count, 0);
    options.is_complete = true;
    assert_int_equal(check_history(bytes, len / 2, &options, &report, &err), PAWL_OK);
    assert_true(report.is_broken[CHECK_C1]);
    tale_clear(&tale);
}

static void violations_are_printed_with_job_version_time_and_reason(void **state)
{
    (void)state;
    struct tale tale;
    struct check_options options = story_options(CHECK_NONE);
    struct check_report report;
    tale_init(&tale);
    tale_enqueue(&tale, 0);
    tale_claim(&tale, A, 0);
    tale_pass(&tale, 9999);
    tale_reap(&tale, 0, PAWL_REASON_EXPIRED);
    tale_end(&tale);
    story_check(&tale, &options, &report);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    check_report_print(&report, out);
    fclose(out);
    assert_string_equal(text,
                        "C9 expired-only: at 10.999000 job ab000000-0000-0000-0000-000000000001 "
                        "v1: reaped 1000 us before the lease of worker-a expires\n");
    free(text);
    tale_clear(&tale);
}

/* More than a report can keep is counted all the same. */
static void all_violations_are_counted(void **state)
{
    (void)state;
    struct tale tale;
    struct check_options options = {.is_exact = true};
    struct check_report report;
    tale_init(&tale);
    tale_up(&tale, A);
    tale_enqueue(&tale, 0);
    tale_work(&tale, A, 0);
    for (int i = 0; i < CHECK_VIOLATIONS_MAX + 5; i++)
        tale_job_note(&tale, PAWLI_NOTE_ABORT, A, 0, PAWLI_WHY_LEASE_LOST);
    story_check(&tale, &options, &report);
    assert_int_equal(report.kept, CHECK_VIOLATIONS_MAX);
    assert_int_equal(report.violations_count, CHECK_VIOLATIONS_MAX + 5);
    tale_clear(&tale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_held_against_what_is_in_order),
        cmocka_unit_test(garbage_is_survived),
        cmocka_unit_test(each_failed_allocation_is_told),
        cmocka_unit_test(what_cannot_be_read_is_refused),
        cmocka_unit_test(violations_are_printed_with_job_version_time_and_reason),
        cmocka_unit_test(all_violations_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
