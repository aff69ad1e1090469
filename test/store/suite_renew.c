/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_renew.c - extending leases, and the execution timeout that ends it.
 * Owns:  the cases about what a renewal moves, and what it never does.
 * Never: checks who may renew: see suite_fence.c.
 */
#include "store/helpers.h"

static void set_timeout(struct stage *s, const char *queue, int64_t timeout_ms)
{
    pawl_queue_settings settings = settings_of(s, queue);
    settings.execution_timeout_ms = timeout_ms;
    set_settings(s, queue, &settings);
}

/* Q-EXTEND, RULE-020-010, FR-001 */
static void a_renewal_extends_the_lease(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 20 * SECOND);
    pawl_renewed renewed = renew(s, job);
    expect_code(renewed.code, PAWL_OK);
    expect_near(s, renewed.expires_at, LEASE);
    expect_number(renewed.lease_ms, LEASE);

    const pawl_job *seen = look(s, id);
    expect_number(seen->expires_at.us, renewed.expires_at.us);
    expect_number(seen->lease_version, job->lease_version); /* the same lease, longer */
    expect_near(s, seen->claimed_at, -20 * SECOND);
    expect_near(s, seen->run_until, 3 * LEASE - 20 * SECOND); /* not moved */
    expect_ledger(s, id, "");

    age(s, 20 * SECOND); /* past the lease as it was granted at first */
    expect_nothing(s, "mail");
    expect_number(reap_up_to(s, 10).count, 0);
    expect_code(succeed(s, job).code, PAWL_OK);
}

static void a_renewal_may_name_its_lease(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_renewed renewed = renew_for(s, job, 2 * MINUTE);
    expect_near(s, renewed.expires_at, 2 * MINUTE);
    expect_number(renewed.lease_ms, 2 * MINUTE);
}

/* Q-EXTEND, RES-1: the later of what it is and now + lease */
static void a_renewal_never_shortens(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take_for(s, "mail", "w1", MINUTE);
    pawl_renewed renewed = renew_for(s, job, 5 * SECOND);
    expect_code(renewed.code, PAWL_OK);
    expect_number(renewed.expires_at.us, job->expires_at.us);
    expect_number(look(s, job->id)->expires_at.us, job->expires_at.us);
    age(s, 50 * SECOND);
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* RES-1 */
static void shorter_settings_never_shorten_a_lease(struct stage *s)
{
    set_lease(s, "mail", MINUTE);
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    set_lease(s, "mail", 5 * SECOND);
    expect_number(look(s, job->id)->expires_at.us, job->expires_at.us);
    pawl_renewed renewed = renew(s, job);
    expect_code(renewed.code, PAWL_OK);
    expect_number(renewed.expires_at.us, job->expires_at.us);
    age(s, 50 * SECOND);
    expect_nothing(s, "mail");
    expect_number(reap_up_to(s, 10).count, 0);
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* RES-1: a change holds for what is granted afterwards */
static void a_renewal_goes_by_the_settings_of_now(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    set_lease(s, "mail", 2 * MINUTE);
    expect_near(s, look(s, job->id)->expires_at, LEASE);
    expect_near(s, renew(s, job).expires_at, 2 * MINUTE);
}

/* Q-TIMEOUT, NFR-002: a five-minute job under a 30 s lease */
static void a_long_job_lives_by_renewals(struct stage *s)
{
    set_timeout(s, "mail", 10 * MINUTE);
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    for (int i = 0; i < 20; i++) {
        age(s, 15 * SECOND);
        expect_number(reap_up_to(s, 10).count, 0);
        expect_nothing(s, "mail");
        expect_code(renew(s, job).code, PAWL_OK);
    }
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_ledger(s, id, "DISPATCHED");
}

/* RES-6, RULE-020-051 */
static void past_the_timeout_renewal_is_refused(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    for (int i = 0; i < 3; i++) {
        age(s, 25 * SECOND);
        expect_code(renew(s, job).code, PAWL_OK);
    }
    age(s, 20 * SECOND); /* 95 s of 90; the lease goes to 105 s */
    struct picture before = picture_of(s, id);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);
    expect_code(renew_for(s, job, HOUR).code, PAWL_TIMEOUT);
    expect_unchanged(s, &before);

    age(s, 15 * SECOND); /* so the lease ends, and the job is recovered */
    expect_number(reap_one(s)->reason, PAWL_REASON_EXPIRED);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired");
}

/* RES-6: stopped within the grace period, the attempt is RETRYABLE, reason timeout */
static void past_the_timeout_the_holder_may_still_settle(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.timeout_ms = 10 * SECOND;
    pawl_id id = put_row(s, &row);
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 15 * SECOND);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);
    pawl_settle_row settle = settle_row_for(job, PAWL_RETRY);
    settle.reason = PAWL_REASON_TIMEOUT;
    expect_code(settle_row(s, "w1", &settle).code, PAWL_OK);
    expect_ledger(s, id, "RETRYABLE timeout");
    expect_number(look(s, id)->retries, 1);
}

/* RES-6: renewals are refused from run_until on */
static void the_timeout_holds_to_the_millisecond(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.timeout_ms = 20 * SECOND;
    (void)put_row(s, &row); /* one job */
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 20 * SECOND - 1);
    expect_code(renew(s, job).code, PAWL_OK);
    age(s, 1);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);
}

/* RES-6: the execution timeout counts from the start of the work, not from the claim */
static void an_unstarted_job_is_not_running_yet(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_renew_row row = {.lease = lease_of(job), .lease_ms = PAWL_DEFAULT, .is_unstarted = true};
    for (int i = 0; i < 7; i++) { /* 140 s in the buffer */
        age(s, 20 * SECOND);
        expect_code(renew_row(s, "w1", &row).code, PAWL_OK);
        expect_near(s, look(s, id)->run_until, 3 * LEASE);
    }
    for (int i = 0; i < 4; i++) { /* and 80 s of work */
        age(s, 20 * SECOND);
        expect_code(renew(s, job).code, PAWL_OK);
    }
    age(s, 20 * SECOND);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);
}

/* RES-6, RULE-020-051 */
static void what_has_started_is_not_unstarted_again(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_renew_row row = {.lease = lease_of(job), .lease_ms = PAWL_DEFAULT, .is_unstarted = true};
    age(s, 20 * SECOND);
    expect_code(renew(s, job).code, PAWL_OK);
    for (int i = 0; i < 3; i++) {
        age(s, 20 * SECOND);
        expect_code(renew_row(s, "w1", &row).code, PAWL_OK);
    }
    age(s, 15 * SECOND); /* 95 s of 90 */
    struct picture before = picture_of(s, id);
    expect_code(renew_row(s, "w1", &row).code, PAWL_TIMEOUT);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);
    expect_code(renew_row(s, "w1", &row).code, PAWL_TIMEOUT);
    expect_unchanged(s, &before);
}

/* RES-6, RULE-020-051: three leases of timeout, and two */
static void nobody_is_unstarted_for_ever(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_renew_row row = {.lease = lease_of(job), .lease_ms = PAWL_DEFAULT, .is_unstarted = true};
    for (int i = 0; i < 7; i++) {
        age(s, 20 * SECOND);
        expect_code(renew_row(s, "w1", &row).code, PAWL_OK);
    }
    age(s, 15 * SECOND); /* 155 s of 150 */
    struct picture before = picture_of(s, id);
    expect_code(renew_row(s, "w1", &row).code, PAWL_TIMEOUT);
    expect_unchanged(s, &before);
    age(s, 20 * SECOND); /* so the lease ends */
    expect_number(reap_one(s)->reason, PAWL_REASON_EXPIRED);
}

/* RES-6 */
static void a_job_may_have_its_own_timeout(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.timeout_ms = 20 * SECOND;
    pawl_id quick = put_row(s, &row);
    const pawl_job *job = take(s, "mail", "w1");
    expect_id(job->id, quick);
    expect_number(job->timeout_ms, 20 * SECOND);
    expect_near(s, job->run_until, 20 * SECOND);
    age(s, 15 * SECOND);
    expect_code(renew(s, job).code, PAWL_OK);
    age(s, 6 * SECOND);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);

    row.timeout_ms = HOUR;
    (void)put_row(s, &row); /* longer than the queue's */
    job = take(s, "mail", "w2");
    for (int i = 0; i < 5; i++) {
        age(s, 25 * SECOND);
        expect_code(renew(s, job).code, PAWL_OK);
    }
}

/* RES-6: by default three leases, else the queue's setting */
static void a_queue_may_have_its_own_timeout(struct stage *s)
{
    set_lease(s, "heavy", MINUTE);
    put(s, "heavy");
    expect_near(s, take(s, "heavy", "w1")->run_until, 3 * MINUTE);
    set_timeout(s, "heavy", 40 * SECOND);
    put(s, "heavy");
    const pawl_job *job = take(s, "heavy", "w1");
    expect_near(s, job->run_until, 40 * SECOND);
    age(s, 45 * SECOND);
    expect_code(renew(s, job).code, PAWL_TIMEOUT);
}

/* RES-6: the lease that counts is the one granted, which may not be the queue's */
static void the_timeout_goes_by_the_lease_granted(struct stage *s)
{
    put(s, "mail");
    expect_near(s, take_for(s, "mail", "w1", 2 * MINUTE)->run_until, 6 * MINUTE);
}

/* A later claim starts its own clock. */
static void each_claim_has_a_timeout_of_its_own(struct stage *s)
{
    put(s, "mail");
    (void)take_and_lose(s, "mail", "w1"); /* 31 s gone */
    const pawl_job *job = take(s, "mail", "w2");
    expect_near(s, job->run_until, 3 * LEASE);
}

static void a_batch_renews_each_on_its_own(struct stage *s)
{
    put(s, "mail");
    pawl_enqueue_row quick = row_for("mail");
    quick.timeout_ms = 10 * SECOND;
    (void)put_row(s, &quick); /* past its timeout below */
    put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 3);
    expect_number(batch.count, 3);
    age(s, 11 * SECOND);
    pawl_renew_row rows[3];
    pawl_renewed renewed[3];
    for (size_t i = 0; i < 3; i++)
        rows[i] = (pawl_renew_row){.lease = lease_of(batch.jobs[i]), .lease_ms = PAWL_DEFAULT};
    pawl_err err;
    expect_code(pawl_renew(s->store, "w1", rows, 3, renewed, &err), PAWL_OK);
    for (size_t i = 0; i < 3; i++) {
        bool is_quick = batch.jobs[i]->timeout_ms == 10 * SECOND;
        expect_code(renewed[i].code, is_quick ? PAWL_TIMEOUT : PAWL_OK);
        expect_near(s, look(s, batch.jobs[i]->id)->expires_at,
                    is_quick ? LEASE - 11 * SECOND : LEASE);
    }
}

/* Q-EXTEND, Q-STALE: in the order of the rows; the later lease stays, the deadline only moves on */
static void a_lease_named_more_than_once_is_renewed_row_by_row(struct stage *s)
{
    static const int64_t leases[] = {40 * SECOND, 60 * SECOND, 50 * SECOND, 40 * SECOND};
    static const int64_t ends[] = {40 * SECOND, 60 * SECOND, 0, 60 * SECOND};
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_renew_row rows[4];
    pawl_renewed renewed[4];
    for (size_t i = 0; i < 4; i++)
        rows[i] = (pawl_renew_row){.lease = lease_of(job), .lease_ms = leases[i]};
    rows[2].lease.token.bytes[0] ^= 1; /* somebody else's */
    pawl_err err;
    expect_code(pawl_renew(s->store, "w1", rows, 4, renewed, &err), PAWL_OK);
    for (size_t i = 0; i < 4; i++) {
        expect_code(renewed[i].code, i == 2 ? PAWL_STALE : PAWL_OK);
        if (i == 2)
            continue;
        expect_near(s, renewed[i].expires_at, ends[i]);
        expect_number(renewed[i].lease_ms, leases[i]);
    }
    expect_near(s, look(s, id)->expires_at, 60 * SECOND);
    expect_number(look(s, id)->lease_ms, 40 * SECOND);
}

/* RES-6: likewise */
static void what_a_row_has_started_a_later_one_does_not_undo(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 10 * SECOND);
    pawl_renew_row rows[3];
    pawl_renewed renewed[3];
    for (size_t i = 0; i < 3; i++)
        rows[i] = (pawl_renew_row){
            .lease = lease_of(job), .lease_ms = PAWL_DEFAULT, .is_unstarted = i != 0};
    pawl_err err;
    expect_code(pawl_renew(s->store, "w1", rows, 3, renewed, &err), PAWL_OK);
    for (size_t i = 0; i < 3; i++)
        expect_code(renewed[i].code, PAWL_OK);
    expect_near(s, look(s, id)->run_until, 3 * LEASE - 10 * SECOND); /* since the claim */
}

static const struct suite_case cases[] = {
    CASE(a_renewal_extends_the_lease),
    CASE(a_renewal_may_name_its_lease),
    CASE(a_renewal_never_shortens),
    CASE(shorter_settings_never_shorten_a_lease),
    CASE(a_renewal_goes_by_the_settings_of_now),
    CASE(a_long_job_lives_by_renewals),
    CASE(past_the_timeout_renewal_is_refused),
    CASE(past_the_timeout_the_holder_may_still_settle),
    CASE_ON(EXACT_CLOCK, the_timeout_holds_to_the_millisecond),
    CASE(an_unstarted_job_is_not_running_yet),
    CASE(what_has_started_is_not_unstarted_again),
    CASE(nobody_is_unstarted_for_ever),
    CASE(a_job_may_have_its_own_timeout),
    CASE(a_queue_may_have_its_own_timeout),
    CASE(the_timeout_goes_by_the_lease_granted),
    CASE(each_claim_has_a_timeout_of_its_own),
    CASE(a_batch_renews_each_on_its_own),
    CASE(a_lease_named_more_than_once_is_renewed_row_by_row),
    CASE(what_a_row_has_started_a_later_one_does_not_undo),
};

SUITE_GROUP(renew);
