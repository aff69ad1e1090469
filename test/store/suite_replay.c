/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_replay.c - settling again what may have been settled.
 * Owns:  the cases about a settle or release that is repeated because its reply was lost.
 * Never: loses a reply itself: see suite_fault.c.
 */
#include "store/helpers.h"

static const pawl_settle_action actions[] = {PAWL_SUCCEED, PAWL_RETRY, PAWL_FAIL, PAWL_SNOOZE};

static pawl_state state_after(pawl_settle_action action)
{
    static const pawl_state states[] = {[PAWL_SUCCEED] = PAWL_SUCCEEDED,
                                        [PAWL_RETRY] = PAWL_READY,
                                        [PAWL_FAIL] = PAWL_FAILED,
                                        [PAWL_SNOOZE] = PAWL_READY};
    return states[action];
}

/* A job of its own queue, settled so by "w1". */
static const pawl_job *settled_job(struct stage *s, const char *queue, pawl_settle_action action)
{
    put(s, queue);
    const pawl_job *job = take(s, queue, "w1");
    expect_code(settle(s, job, action).code, PAWL_OK);
    return job;
}

/* What the first settle left. */
struct left {
    pawl_state state;
    int64_t attempt_no;
};
#define LEFT(state, attempt_no) ((struct left){(state), (attempt_no)})

/* The repeat is OK, tells the same row, and leaves the job alone. */
static void expect_replay(struct stage *s, const pawl_job *job, pawl_settle_action action,
                          struct left left)
{
    struct picture before = picture_of(s, job->id);
    pawl_settled again = settle(s, job, action);
    expect_code(again.code, PAWL_OK);
    expect_number(again.state, (int64_t)left.state);
    expect_number(again.attempt_no, left.attempt_no);
    expect_number(again.due_at.us, 0); /* told the first time only */
    expect_unchanged(s, &before);
}

/* Q-STALE, Q-ACK, Q-NACK: found by job and lease version */
static void the_same_settle_again_is_ok(struct stage *s)
{
    const char *const queues[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        const pawl_job *job = settled_job(s, queues[i], actions[i]);
        for (int times = 0; times < 3; times++)
            expect_replay(s, job, actions[i], LEFT(state_after(actions[i]), 1));
        age(s, HOUR); /* long after the lease would have ended */
        expect_replay(s, job, actions[i], LEFT(state_after(actions[i]), 1));
    }
}

/* Q-STALE */
static void another_settle_afterwards_is_stale(struct stage *s)
{
    const char *const queues[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        const pawl_job *job = settled_job(s, queues[i], actions[i]);
        struct picture before = picture_of(s, job->id);
        for (size_t j = 0; j < COUNT_OF(actions); j++) {
            if (i == j)
                continue;
            expect_code(settle(s, job, actions[j]).code, PAWL_STALE);
            expect_unchanged(s, &before);
        }
    }
}

/* Q-RETRY-BOUND: the retry that ended the job is found as such */
static void a_repeated_exhaustion_is_ok(struct stage *s)
{
    set_bounds(s, "mail", 0, 10);
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_number(retry_in(s, job, 0).state, PAWL_FAILED);
    expect_replay(s, job, PAWL_RETRY, LEFT(PAWL_FAILED, 1));
    struct picture before = picture_of(s, id);
    expect_code(settle(s, job, PAWL_FAIL).code, PAWL_STALE);
    expect_code(settle(s, job, PAWL_SUCCEED).code, PAWL_STALE);
    expect_code(settle(s, job, PAWL_SNOOZE).code, PAWL_STALE);
    expect_unchanged(s, &before);
}

/* RES-6 */
static void a_repeated_timeout_is_ok(struct stage *s)
{
    put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_RETRY);
    row.reason = PAWL_REASON_TIMEOUT;
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    pawl_settled again = settle_row(s, "w1", &row);
    expect_code(again.code, PAWL_OK);
    expect_number(again.attempt_no, 1);
    expect_ledger(s, row.lease.job, "RETRYABLE timeout");
}

/* RES-13 */
static void a_repeated_settle_of_a_cancelled_job_is_ok(struct stage *s)
{
    const pawl_settle_action turned[] = {PAWL_RETRY, PAWL_SNOOZE};
    const char *const queues[] = {"a", "b"};
    for (size_t i = 0; i < COUNT_OF(turned); i++) {
        pawl_id id = put(s, queues[i]);
        const pawl_job *job = take(s, queues[i], "w1");
        expect_code(cancel(s, id).code, PAWL_OK);
        expect_number(settle(s, job, turned[i]).state, PAWL_FAILED);
        expect_replay(s, job, turned[i], LEFT(PAWL_FAILED, 1));
        expect_code(settle(s, job, PAWL_SUCCEED).code, PAWL_STALE);
    }
}

/* Q-STALE, Q-ONE-LEASE: the repeat of an old settle never touches the lease that followed */
static void a_repeat_leaves_the_next_holder_alone(struct stage *s)
{
    put(s, "mail");
    const pawl_job *first = take(s, "mail", "w1");
    expect_code(retry_in(s, first, 0).code, PAWL_OK);
    const pawl_job *second = take(s, "mail", "w2");
    expect_replay(s, first, PAWL_RETRY, LEFT(PAWL_READY, 1));
    expect_code(settle(s, first, PAWL_SUCCEED).code, PAWL_STALE);
    expect_code(snooze_for(s, second, 0).code, PAWL_OK);
    const pawl_job *third = take(s, "mail", "w1"); /* the first one's worker again */
    expect_replay(s, first, PAWL_RETRY, LEFT(PAWL_READY, 1));
    expect_replay(s, second, PAWL_SNOOZE, LEFT(PAWL_READY, 2));
    expect_code(succeed(s, third).code, PAWL_OK);
    expect_replay(s, first, PAWL_RETRY, LEFT(PAWL_READY, 1));
    expect_ledger(s, third->id, "RETRYABLE error, RETRYABLE snooze, DISPATCHED");
}

/* Q-DEAD-LETTER */
static void a_repeat_is_found_after_redrive_and_discard(struct stage *s)
{
    const pawl_job *job = settled_job(s, "mail", PAWL_FAIL);
    expect_code(redrive(s, job->id).code, PAWL_OK);
    expect_replay(s, job, PAWL_FAIL, LEFT(PAWL_FAILED, 1)); /* what it became by this settle */
    const pawl_job *again = take(s, "mail", "w2");
    expect_code(fail_for_good(s, again).code, PAWL_OK);
    expect_code(discard(s, job->id).code, PAWL_OK);
    expect_replay(s, job, PAWL_FAIL, LEFT(PAWL_FAILED, 1));
    expect_replay(s, again, PAWL_FAIL, LEFT(PAWL_FAILED, 2));
}

/* RES-3: what expired was not settled, and saying it twice does not help */
static void a_settle_that_came_too_late_stays_too_late(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take_and_lose(s, "mail", "w1");
    (void)reap_one(s); /* leaves a row of this lease's version */
    struct picture before = picture_of(s, job->id);
    for (size_t i = 0; i < COUNT_OF(actions); i++)
        expect_code(settle(s, job, actions[i]).code, PAWL_STALE);
    expect_unchanged(s, &before);
}

/* RES-3, RES-4: nor where the expiry ended the job in the way that the settle would have */
static void an_expiry_is_nobodys_settle(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_code(cancel(s, id).code, PAWL_OK);
    age(s, LEASE + SECOND);
    expect_number(reap_one(s)->reason, PAWL_REASON_CANCELLED);
    struct picture before = picture_of(s, id);
    for (size_t i = 0; i < COUNT_OF(actions); i++)
        expect_code(settle(s, job, actions[i]).code, PAWL_STALE);
    expect_unchanged(s, &before);
}

/* RES-8: somebody else's settle is not one's own */
static void a_repeat_by_another_worker_is_stale(struct stage *s)
{
    const pawl_job *job = settled_job(s, "mail", PAWL_SUCCEED);
    pawl_settle_row row = settle_row_for(job, PAWL_SUCCEED);
    expect_code(settle_row(s, "w2", &row).code, PAWL_STALE);
    row.lease.version++;
    expect_code(settle_row(s, "w1", &row).code, PAWL_STALE);
}

/* Q-STALE, RULE-020-003: the row alone does not make a holder of whoever names it */
static void a_repeat_with_another_token_is_stale(struct stage *s)
{
    const char *const queues[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        const pawl_job *job = settled_job(s, queues[i], actions[i]);
        struct picture before = picture_of(s, job->id);
        for (size_t byte = 0; byte < sizeof(job->token.bytes); byte++) {
            pawl_settle_row row = settle_row_for(job, actions[i]);
            row.lease.token.bytes[byte] ^= 1;
            expect_code(settle_row(s, "w1", &row).code, PAWL_STALE);
        }
        pawl_settle_row none = settle_row_for(job, actions[i]);
        none.lease.token = (pawl_token){{0}};
        expect_code(settle_row(s, "w1", &none).code, PAWL_STALE);
        expect_unchanged(s, &before);
        expect_replay(s, job, actions[i], LEFT(state_after(actions[i]), 1));
    }
}

/* RES-13, Q-STALE: the same for what a release ended, the job being marked */
static void a_repeat_after_a_cancelled_release_needs_its_token(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_code(release(s, job), PAWL_OK);
    pawl_settle_row row = settle_row_for(job, PAWL_RETRY);
    row.lease.token.bytes[0] ^= 1;
    expect_code(settle_row(s, "w1", &row).code, PAWL_STALE);
}

/* A pruned history is no memory at all. */
static void after_prune_a_repeat_finds_nothing(struct stage *s)
{
    const pawl_job *job = settled_job(s, "mail", PAWL_SUCCEED);
    age(s, 8 * DAY);
    expect_number(prune(s), 1);
    for (size_t i = 0; i < COUNT_OF(actions); i++)
        expect_code(settle(s, job, actions[i]).code, PAWL_GONE);
    expect_code(release(s, job), PAWL_GONE);
    expect_code(renew(s, job).code, PAWL_GONE);
}

static void the_same_settle_twice_in_a_batch_is_done_once(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_settle_row rows[3] = {settle_row_for(job, PAWL_RETRY), settle_row_for(job, PAWL_RETRY),
                               settle_row_for(job, PAWL_SUCCEED)};
    pawl_settled settled[3];
    pawl_err err;
    expect_code(pawl_settle(s->store, "w1", rows, 3, settled, &err), PAWL_OK);
    expect_code(settled[0].code, PAWL_OK);
    expect_code(settled[1].code, PAWL_OK);
    expect_number(settled[1].attempt_no, 1);
    expect_code(settled[2].code, PAWL_STALE);
    expect_ledger(s, id, "RETRYABLE error");
    expect_number(look(s, id)->retries, 1);
}

/* Q-STALE, RULE-020-003: each row of a job is judged by its own token, whichever comes first */
static void of_two_rows_of_one_job_only_the_holder_s_is_accepted(struct stage *s)
{
    for (size_t wrong = 0; wrong < 3; wrong++) {
        pawl_id other = put(s, "mail");
        pawl_id id = put(s, "mail");
        const pawl_job *job = take(s, "mail", "w1");
        expect_id(job->id, other);
        pawl_settle_row rows[4] = {settle_row_for(job, PAWL_SUCCEED)};
        job = take(s, "mail", "w1");
        expect_id(job->id, id);
        for (size_t i = 0; i < 3; i++)
            rows[i + 1] = settle_row_for(job, PAWL_SUCCEED);
        rows[wrong + 1].lease.token.bytes[15] ^= 1;
        pawl_settled settled[4];
        pawl_err err;
        expect_code(pawl_settle(s->store, "w1", rows, 4, settled, &err), PAWL_OK);
        expect_code(settled[0].code, PAWL_OK);
        for (size_t i = 0; i < 3; i++)
            expect_code(settled[i + 1].code, i == wrong ? PAWL_STALE : PAWL_OK);
        expect_ledger(s, id, "DISPATCHED");
        expect_ledger(s, other, "DISPATCHED");
    }
}

static const struct suite_case cases[] = {
    CASE(the_same_settle_again_is_ok),
    CASE(another_settle_afterwards_is_stale),
    CASE(a_repeated_exhaustion_is_ok),
    CASE(a_repeated_timeout_is_ok),
    CASE(a_repeated_settle_of_a_cancelled_job_is_ok),
    CASE(a_repeat_leaves_the_next_holder_alone),
    CASE(a_repeat_is_found_after_redrive_and_discard),
    CASE(a_settle_that_came_too_late_stays_too_late),
    CASE(an_expiry_is_nobodys_settle),
    CASE(a_repeat_by_another_worker_is_stale),
    CASE(a_repeat_with_another_token_is_stale),
    CASE(a_repeat_after_a_cancelled_release_needs_its_token),
    CASE(after_prune_a_repeat_finds_nothing),
    CASE(the_same_settle_twice_in_a_batch_is_done_once),
    CASE_ON(ONE_SHARD, of_two_rows_of_one_job_only_the_holder_s_is_accepted),
};

SUITE_GROUP(replay);
