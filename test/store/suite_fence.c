/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_fence.c - nobody but the holder of the current lease changes a job.
 * Owns:  the cases about lease checks: each flaw alone, against each verb, with nothing changed.
 * Never: tells repeats apart from flaws: see suite_replay.c.
 */
#include "store/helpers.h"

#include <string.h>

/* The verbs that need a lease. */
enum fenced_verb {
    RENEW,
    SUCCEED,
    RETRY,
    FAIL,
    SNOOZE,
    RELEASE,
    FENCED_VERBS
};

struct shown {
    const char *worker;
    pawl_lease lease;
};

static pawl_code show(struct stage *s, enum fenced_verb verb, const struct shown *shown)
{
    if (verb == RENEW) {
        pawl_renew_row row = {.lease = shown->lease, .lease_ms = PAWL_DEFAULT};
        return renew_row(s, shown->worker, &row).code;
    }
    if (verb == RELEASE)
        return release_lease(s, shown->worker, &shown->lease);

    static const pawl_settle_action actions[] = {
        [SUCCEED] = PAWL_SUCCEED, [RETRY] = PAWL_RETRY, [FAIL] = PAWL_FAIL, [SNOOZE] = PAWL_SNOOZE};
    pawl_settle_row row;
    pawl_settle_init(&row);
    row.lease = shown->lease;
    row.action = actions[verb];
    row.delay_ms = 0;
    return settle_row(s, shown->worker, &row).code;
}

static struct shown shown_by(const pawl_job *job)
{
    return (struct shown){.worker = job->worker, .lease = lease_of(job)};
}

/* Every verb is refused with this, and the job stays as it is. */
static void expect_refused(struct stage *s, const struct shown *shown, pawl_code code)
{
    struct picture before = picture_of(s, shown->lease.job);
    for (int verb = 0; verb < FENCED_VERBS; verb++) {
        expect_code(show(s, (enum fenced_verb)verb, shown), code);
        expect_unchanged(s, &before);
    }
}

/* Q-STALE, RES-3, RULE-020-003, Q-ACK, Q-NACK, FR-002 */
static void a_wrong_token_changes_nothing(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    for (size_t byte = 0; byte < sizeof(job->token.bytes); byte += 5) { /* 0, 5, 10, 15 */
        struct shown shown = shown_by(job);
        shown.lease.token.bytes[byte] ^= 1;
        expect_refused(s, &shown, PAWL_STALE);
    }
    expect_code(succeed(s, job).code, PAWL_OK); /* the right one still works */
}

/* RULE-020-003: a token is needed, and none is none */
static void no_token_changes_nothing(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    struct shown shown = shown_by(job);
    memset(&shown.lease.token, 0, sizeof(shown.lease.token));
    expect_refused(s, &shown, PAWL_STALE);
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* Q-STALE, RES-3, RES-8: the worker is checked beside the token */
static void a_wrong_worker_changes_nothing(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    const char *const others[] = {"w2", "w", "w11", "W1"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct shown shown = shown_by(job);
        shown.worker = others[i];
        expect_refused(s, &shown, PAWL_STALE);
    }
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* Q-STALE, Q-VERSION */
static void a_wrong_version_changes_nothing(struct stage *s)
{
    put(s, "mail");
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    const pawl_job *job = take(s, "mail", "w1"); /* version 2 */
    const int64_t others[] = {1, 3};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct shown shown = shown_by(job);
        shown.lease.version = others[i];
        expect_refused(s, &shown, PAWL_STALE);
    }
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* RES-3, RULE-020-012: an expired lease cannot complete, even where nobody has taken the job yet */
static void an_expired_lease_changes_nothing(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take_and_lose(s, "mail", "w1");
    struct shown shown = shown_by(job);
    expect_refused(s, &shown, PAWL_STALE);
    expect_state(s, id, PAWL_IN_FLIGHT);
    expect_id(reap_one(s)->job, id); /* and it is recovered as if nothing had been tried */
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired");
    expect_refused(s, &shown, PAWL_STALE);
}

/* RES-3: valid while now < expiry; at expiry it is not */
static void at_expiry_the_lease_is_over(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, LEASE);
    struct shown shown = shown_by(job);
    expect_refused(s, &shown, PAWL_STALE);
}

/* RES-3 */
static void just_before_expiry_the_lease_holds(struct stage *s)
{
    for (int verb = 0; verb < FENCED_VERBS; verb++) {
        pawl_id id = put(s, "mail");
        const pawl_job *job = take(s, "mail", "w1");
        expect_id(job->id, id);
        age(s, LEASE - 1);
        struct shown shown = shown_by(job);
        expect_code(show(s, (enum fenced_verb)verb, &shown), PAWL_OK);
        (void)cancel(s, id); /* out of the next round's way */
        (void)release(s, job);
        expect_nothing(s, "mail");
    }
}

/* Q-STALE, Q-ONE-LEASE: also where the later holder is the same worker */
static void an_earlier_lease_changes_nothing(struct stage *s)
{
    put(s, "mail");
    const pawl_job *first = take_and_lose(s, "mail", "w1");
    const pawl_job *second = take_and_lose(s, "mail", "w2");
    (void)reap_one(s);
    age(s, MINUTE); /* past the backoff of the second loss */
    const pawl_job *third = take(s, "mail", "w1");
    struct shown shown_first = shown_by(first);
    struct shown shown_second = shown_by(second);
    expect_refused(s, &shown_first, PAWL_STALE);
    expect_refused(s, &shown_second, PAWL_STALE);
    expect_code(succeed(s, third).code, PAWL_OK);
}

/* RES-8: a token is good for its own job only */
static void the_token_of_another_job_changes_nothing(struct stage *s)
{
    put(s, "mail");
    put(s, "mail");
    const pawl_job *one = take(s, "mail", "w1");
    const pawl_job *other = take(s, "mail", "w1");
    struct shown shown = shown_by(one);
    shown.lease.token = other->token;
    expect_refused(s, &shown, PAWL_STALE);
    expect_code(succeed(s, one).code, PAWL_OK);
    expect_code(succeed(s, other).code, PAWL_OK);
}

/* RULE-020-050: nothing is done without a lease */
static void a_ready_job_is_under_no_lease(struct stage *s)
{
    pawl_id id = put(s, "mail");
    struct shown shown = {.worker = "w1", .lease = {.job = id, .version = 1}};
    expect_refused(s, &shown, PAWL_STALE);

    const pawl_job *job = take(s, "mail", "w1");
    expect_code(release(s, job), PAWL_OK);
    struct shown returned = shown_by(job);
    expect_refused(s, &returned, PAWL_STALE);
}

/* Terminal stays terminal. */
static void a_cancelled_job_is_under_no_lease(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_code(release(s, job), PAWL_OK);
    expect_code(cancel(s, id).code, PAWL_OK);
    struct shown shown = shown_by(job);
    expect_refused(s, &shown, PAWL_STALE);
}

/* Q-NEVER-AGAIN: the holder's own lease is over with its settle, but for the settle's repeat */
static void a_settled_job_is_under_no_lease(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_code(succeed(s, job).code, PAWL_OK);
    struct picture before = picture_of(s, id);
    struct shown shown = shown_by(job);
    for (int verb = 0; verb < FENCED_VERBS; verb++) {
        if (verb == SUCCEED)
            continue;
        expect_code(show(s, (enum fenced_verb)verb, &shown), PAWL_STALE);
        expect_unchanged(s, &before);
    }
}

static void an_unknown_job_is_gone(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    struct shown shown = {.worker = "w1", .lease = {.job = new_id(s, &row), .version = 1}};
    memset(&shown.lease.token, 7, sizeof(shown.lease.token));
    for (int verb = 0; verb < FENCED_VERBS; verb++)
        expect_code(show(s, (enum fenced_verb)verb, &shown), PAWL_GONE);
}

/* OL-LEASE-LOST: the batch forms never fail for one row, they answer per row */
static void a_stale_row_does_not_disturb_its_neighbours(struct stage *s)
{
    for (int i = 0; i < 3; i++)
        put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 3);
    expect_number(batch.count, 3);
    pawl_lease leases[3];
    pawl_renew_row renews[3];
    pawl_settle_row settles[3];
    for (size_t i = 0; i < 3; i++) {
        settles[i] = settle_row_for(batch.jobs[i], PAWL_SUCCEED);
        leases[i] = lease_of(batch.jobs[i]);
        if (i == 1) {
            leases[i].token.bytes[0] ^= 1;
            settles[i].lease = leases[i];
        }
        renews[i] = (pawl_renew_row){.lease = leases[i], .lease_ms = PAWL_DEFAULT};
    }
    pawl_err err;
    pawl_renewed renewed[3];
    expect_code(pawl_renew(s->store, "w1", renews, 3, renewed, &err), PAWL_OK);
    expect_code(renewed[0].code, PAWL_OK);
    expect_code(renewed[1].code, PAWL_STALE);
    expect_code(renewed[2].code, PAWL_OK);

    pawl_settled settled[3];
    expect_code(pawl_settle(s->store, "w1", settles, 2, settled, &err), PAWL_OK);
    expect_code(settled[0].code, PAWL_OK);
    expect_code(settled[1].code, PAWL_STALE);

    pawl_code released[2];
    expect_code(pawl_release(s->store, "w1", &leases[1], 2, released, &err), PAWL_OK);
    expect_code(released[0], PAWL_STALE);
    expect_code(released[1], PAWL_OK);

    expect_state(s, batch.jobs[0]->id, PAWL_SUCCEEDED);
    expect_state(s, batch.jobs[1]->id, PAWL_IN_FLIGHT);
    expect_state(s, batch.jobs[2]->id, PAWL_READY);
}

static const struct suite_case cases[] = {
    CASE(a_wrong_token_changes_nothing),
    CASE(no_token_changes_nothing),
    CASE(a_wrong_worker_changes_nothing),
    CASE(a_wrong_version_changes_nothing),
    CASE(an_expired_lease_changes_nothing),
    CASE_ON(EXACT_CLOCK, at_expiry_the_lease_is_over),
    CASE_ON(EXACT_CLOCK, just_before_expiry_the_lease_holds),
    CASE(an_earlier_lease_changes_nothing),
    CASE(the_token_of_another_job_changes_nothing),
    CASE(a_ready_job_is_under_no_lease),
    CASE(a_cancelled_job_is_under_no_lease),
    CASE(a_settled_job_is_under_no_lease),
    CASE(an_unknown_job_is_gone),
    CASE(a_stale_row_does_not_disturb_its_neighbours),
};

SUITE_GROUP(fence);
