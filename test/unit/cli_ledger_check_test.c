/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_ledger_check_test.c - ledgers that Pawl can write are sound, and each kind of flaw is found.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/ledger_check.h"

#include <string.h>

#define ROWS_MAX 4

/* A job with three attempts: its lease was lost, it failed, it succeeded. */
struct history {
    pawl_job job;
    pawl_attempt rows[ROWS_MAX];
    size_t count;
};

static struct history usual(void)
{
    return (struct history){
        .job = {.state = PAWL_SUCCEEDED,
                .attempts = 3,
                .lease_version = 4,
                .retries = 1,
                .lost_leases = 1,
                .finished_at = {600}},
        .rows = {{1,
                  PAWL_ZOMBIE_REQUEUE,
                  PAWL_REASON_EXPIRED,
                  PAWL_ENDED_BY_EXPIRY,
                  1,
                  "a",
                  {100},
                  {200},
                  "",
                  "",
                  PAWL_SENDS_UNKNOWN},
                 {2,
                  PAWL_RETRYABLE,
                  PAWL_REASON_ERROR,
                  PAWL_ENDED_BY_HOLDER,
                  3,
                  "b",
                  {200},
                  {300},
                  "",
                  "",
                  PAWL_SENDS_UNKNOWN},
                 {3,
                  PAWL_DISPATCHED,
                  PAWL_REASON_NONE,
                  PAWL_ENDED_BY_HOLDER,
                  4,
                  "b",
                  {500},
                  {600},
                  "",
                  "",
                  PAWL_SENDS_UNKNOWN}},
        .count = 3,
    };
}

static void cut(struct history *history, size_t count)
{
    history->count = count;
    history->job.attempts = (int64_t)count;
    history->job.lease_version = history->rows[count - 1].lease_version;
    history->job.reason = history->rows[count - 1].reason;
    history->job.state = PAWL_READY;
    history->job.finished_at.us = 0;
}

static enum pawli_flaw flaw_of(const struct history *history)
{
    struct pawli_ledger_check check = {.rows = 0};
    for (size_t i = 0; i < history->count; i++)
        pawli_ledger_check_row(&check, &history->rows[i]);
    pawli_ledger_check_job(&check, &history->job);
    assert_true((check.text[0] != '\0') == (check.flaw != PAWLI_FLAW_NONE));
    return check.flaw;
}

#define EXPECT(flaw_, history_) assert_string_equal(pawli_flaw_name(flaw_of(history_)), flaw_)

static void sound_histories(void **state)
{
    (void)state;
    struct history history = usual();
    EXPECT("none", &history);
    cut(&history, 2);
    EXPECT("none", &history);
    history.job.state = PAWL_IN_FLIGHT;
    history.job.lease_version = 4;
    history.job.claimed_at.us = 300;
    EXPECT("none", &history);
    history = (struct history){.job = {.state = PAWL_READY}};
    EXPECT("none", &history);
    history.job.lease_version = 7; /* claimed and released */
    EXPECT("none", &history);
}

static void failed_and_redriven(void **state)
{
    (void)state;
    struct history history = usual();
    cut(&history, 2);
    history.rows[1].outcome = PAWL_FAILED_FINAL;
    history.rows[1].reason = PAWL_REASON_EXHAUSTED;
    history.job.reason = PAWL_REASON_EXHAUSTED;
    history.job.state = PAWL_FAILED;
    history.job.finished_at.us = 300;
    EXPECT("none", &history);
    history.job.state = PAWL_READY; /* without a redrive: the counters stand */
    history.job.finished_at.us = 0;
    EXPECT("state", &history);
    history.job.retries = 0;
    EXPECT("state", &history);
    history.job.lost_leases = 0;
    EXPECT("none", &history);
    history = usual(); /* and it succeeded in the end */
    history.rows[1].outcome = PAWL_FAILED_FINAL;
    EXPECT("none", &history);
}

/* A Ready job that was cancelled: its row ended no lease. */
static void rows_without_a_lease(void **state)
{
    (void)state;
    struct history history = usual();
    cut(&history, 2);
    history.rows[2] = (pawl_attempt){.attempt_no = 3,
                                     .outcome = PAWL_FAILED_FINAL,
                                     .reason = PAWL_REASON_CANCELLED,
                                     .ended_by = PAWL_ENDED_BY_OPERATOR,
                                     .finished_at = {300}};
    history.count = 3;
    history.job.attempts = 3;
    history.job.state = PAWL_FAILED;
    history.job.reason = PAWL_REASON_CANCELLED;
    history.job.finished_at.us = 300;
    EXPECT("none", &history);
    history.rows[2].finished_at.us = 299;
    EXPECT("overlap", &history);
}

static void gaps(void **state)
{
    (void)state;
    struct history history = usual();
    for (size_t i = 0; i < 3; i++) {
        history = usual();
        history.rows[i].attempt_no++;
        EXPECT("gap", &history);
    }
    history = usual();
    history.job.attempts = 4;
    EXPECT("count", &history);
    history.count = 0;
    EXPECT("count", &history);
}

static void overlaps(void **state)
{
    (void)state;
    struct history history = usual();
    history.rows[1].started_at.us = 199;
    EXPECT("overlap", &history);
    history = usual();
    history.rows[2].finished_at.us = 499;
    history.job.finished_at.us = 499;
    EXPECT("overlap", &history);
    history = usual();
    cut(&history, 2);
    history.job.state = PAWL_IN_FLIGHT;
    history.job.lease_version = 4;
    history.job.claimed_at.us = 299;
    EXPECT("overlap", &history);
}

static void completions(void **state)
{
    (void)state;
    struct history history = usual();
    history.rows[0].outcome = PAWL_DISPATCHED;
    EXPECT("after_end", &history);
    history = usual();
    history.rows[1].outcome = PAWL_DISPATCHED;
    EXPECT("second_completion", &history);
}

static void leases(void **state)
{
    (void)state;
    struct history history = usual();
    history.rows[1].lease_version = 1;
    EXPECT("lease", &history);
    history = usual();
    history.rows[2].lease_version = 2;
    EXPECT("lease", &history);
    history = usual();
    history.job.lease_version = 3;
    EXPECT("lease", &history);
    history = usual();
    cut(&history, 2);
    history.job.state = PAWL_IN_FLIGHT; /* under the lease that had ended */
    history.job.claimed_at.us = 300;
    EXPECT("lease", &history);
}

static void states(void **state)
{
    (void)state;
    static const pawl_state wrong[] = {PAWL_READY, PAWL_IN_FLIGHT, PAWL_FAILED};
    struct history history;
    for (size_t i = 0; i < 3; i++) {
        history = usual();
        history.job.state = wrong[i];
        EXPECT("state", &history);
    }
    history = usual();
    cut(&history, 2);
    history.job.state = PAWL_SUCCEEDED;
    EXPECT("state", &history);
    history = usual();
    history.job.reason = PAWL_REASON_ERROR;
    EXPECT("state", &history);
    history = usual();
    history.job.finished_at.us = 601;
    EXPECT("state", &history);
    history = (struct history){.job = {.state = PAWL_FAILED}};
    EXPECT("state", &history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_histories),
        cmocka_unit_test(failed_and_redriven),
        cmocka_unit_test(rows_without_a_lease),
        cmocka_unit_test(gaps),
        cmocka_unit_test(overlaps),
        cmocka_unit_test(completions),
        cmocka_unit_test(leases),
        cmocka_unit_test(states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
