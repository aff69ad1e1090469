/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_batch.c - as much as one call may carry, and names as long and odd as they may be.
 * Owns:  the cases about limits: whole batches through every verb, and every byte of a name.
 * Never: measures: that is what bench is for.
 */
#include "store/helpers.h"

#include <stdlib.h>
#include <string.h>

/* A crowd of jobs, claimed by "w1", with room for what is said about them. */
struct crowd {
    size_t count;
    pawl_enqueue_row *rows;
    pawl_enqueued *enqueued;
    pawl_job *jobs;
    pawl_lease *leases;
    pawl_code *codes;
};

static struct crowd gather(struct stage *s, size_t count)
{
    struct crowd crowd = {.count = count};
    crowd.rows = stage_memory(s, count * sizeof(crowd.rows[0]));
    crowd.enqueued = stage_memory(s, count * sizeof(crowd.enqueued[0]));
    crowd.jobs = stage_memory(s, count * sizeof(crowd.jobs[0]));
    crowd.leases = stage_memory(s, count * sizeof(crowd.leases[0]));
    crowd.codes = stage_memory(s, count * sizeof(crowd.codes[0]));
    for (size_t i = 0; i < count; i++)
        crowd.rows[i] = row_for("mail");
    pawl_err err;
    expect_code(pawl_enqueue(s->store, crowd.rows, count, crowd.enqueued, &err), PAWL_OK);
    for (size_t i = 0; i < count; i++)
        expect_code(crowd.enqueued[i].code, PAWL_OK);
    return crowd;
}

static void claim_crowd(struct stage *s, struct crowd *crowd)
{
    pawl_claim_line line = {"mail", PAWL_BATCH_MAX, PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = "w1", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_claim(s->store, &args, crowd->jobs, crowd->count, &count, &err), PAWL_OK);
    expect_number(count, (int64_t)crowd->count);
    for (size_t i = 0; i < count; i++) {
        crowd->leases[i] = lease_of(&crowd->jobs[i]);
        pawl_job_clear(&crowd->jobs[i]);
    }
}

/* RULE-020-040, Q-CLAIM: one call, one verdict for each of ten thousand */
static void a_full_batch_goes_through_every_verb(struct stage *s)
{
    struct crowd crowd = gather(s, PAWL_BATCH_MAX);
    pawl_err err;
    claim_crowd(s, &crowd);
    expect_code(pawl_release(s->store, "w1", crowd.leases, crowd.count, crowd.codes, &err),
                PAWL_OK);
    for (size_t i = 0; i < crowd.count; i++)
        expect_code(crowd.codes[i], PAWL_OK);

    claim_crowd(s, &crowd);
    pawl_renew_row *renews = stage_memory(s, crowd.count * sizeof(renews[0]));
    pawl_renewed *renewed = stage_memory(s, crowd.count * sizeof(renewed[0]));
    pawl_settle_row *settles = stage_memory(s, crowd.count * sizeof(settles[0]));
    pawl_settled *settled = stage_memory(s, crowd.count * sizeof(settled[0]));
    for (size_t i = 0; i < crowd.count; i++) {
        renews[i] = (pawl_renew_row){.lease = crowd.leases[i], .lease_ms = PAWL_DEFAULT};
        pawl_settle_init(&settles[i]);
        settles[i].lease = crowd.leases[i];
        settles[i].action = i % 2 == 0 ? PAWL_SUCCEED : PAWL_FAIL;
    }
    expect_code(pawl_renew(s->store, "w1", renews, crowd.count, renewed, &err), PAWL_OK);
    expect_code(pawl_settle(s->store, "w1", settles, crowd.count, settled, &err), PAWL_OK);
    for (size_t i = 0; i < crowd.count; i++) {
        expect_code(renewed[i].code, PAWL_OK);
        expect_code(settled[i].code, PAWL_OK);
        expect_number(settled[i].state, i % 2 == 0 ? PAWL_SUCCEEDED : PAWL_FAILED);
    }
    expect_number(stats_of(s, "mail").succeeded, PAWL_BATCH_MAX / 2);
    expect_number(stats_of(s, "mail").failed, PAWL_BATCH_MAX / 2);
}

/* RES-4: a sweep after everybody died */
static void a_full_batch_is_recovered_and_cancelled(struct stage *s)
{
    struct crowd crowd = gather(s, PAWL_BATCH_MAX);
    pawl_err err;
    claim_crowd(s, &crowd);
    age(s, LEASE + SECOND);
    pawl_reaped *reaped = stage_memory(s, crowd.count * sizeof(reaped[0]));
    size_t count = 0;
    expect_code(pawl_reap(s->store, reaped, crowd.count, &count, &err), PAWL_OK);
    expect_number(count, (int64_t)crowd.count);
    expect_number(stats_of(s, "mail").ready, (int64_t)crowd.count);

    pawl_id *ids = stage_memory(s, crowd.count * sizeof(ids[0]));
    pawl_changed *changed = stage_memory(s, crowd.count * sizeof(changed[0]));
    for (size_t i = 0; i < crowd.count; i++)
        ids[i] = crowd.enqueued[i].id;
    expect_code(pawl_cancel(s->store, ids, crowd.count, changed, &err), PAWL_OK);
    const pawl_filter all = {0};
    expect_code(pawl_redrive_where(s->store, &all, PAWL_BATCH_MAX, &count, &err), PAWL_OK);
    expect_number(count, (int64_t)crowd.count);
    expect_number(stats_of(s, "mail").ready, (int64_t)crowd.count);
}

/* ---------------------------------------------------------------- names */

/* Every printable byte of ASCII, and what SQL, shells and patterns take for something else. */
static const char odd[] = "it's-a-\"queue\";--%_$1\\{}[]()*?~`|&<>#@!^+=,./:";

static const char *long_name(struct stage *s, char last)
{
    char *name = stage_memory(s, PAWL_NAME_MAX + 1);
    memset(name, 'n', PAWL_NAME_MAX);
    name[PAWL_NAME_MAX - 1] = last;
    return name;
}

/* A job of this queue, held by this worker, tells both names whole wherever they are told. */
static void expect_names(struct stage *s, const char *queue, const char *worker)
{
    pawl_id id = put(s, queue);
    const pawl_job *job = take(s, queue, worker);
    expect_id(job->id, id);
    assert_string_equal(job->queue, queue);
    assert_string_equal(job->worker, worker);
    expect_number(mine(s, worker).count, 1);
    expect_batch(list(s, &(pawl_filter){.queue = queue, .worker = worker}), id);
    assert_string_equal(stats_of(s, queue).queue, queue);
    age(s, LEASE + SECOND);
    const pawl_reaped *row = reap_one(s);
    assert_string_equal(row->queue, queue);
    assert_string_equal(row->worker, worker);
    size_t count = 0;
    assert_string_equal(ledger(s, id, &count)->worker, worker);
    set_lease(s, queue, MINUTE);
    expect_number(settings_of(s, queue).lease_ms, MINUTE);
    job = take(s, queue, worker);
    expect_number(job->lease_ms, MINUTE);
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* RULE-020-032: names are told as they were given, and no two are confused */
static void names_are_told_to_their_last_byte(struct stage *s)
{
    expect_names(s, long_name(s, 'a'), long_name(s, 'x'));
    expect_names(s, long_name(s, 'b'), long_name(s, 'y'));
    expect_names(s, odd, odd);
    expect_names(s, "%", "_");
    expect_names(s, "mail", "w");
    expect_names(s, "Mail", "W");
    expect_number(settings_of(s, "MAIL").lease_ms, LEASE);
    expect_nothing(s, "_ail");
}

/* Dedupe keys likewise. */
static void keys_are_compared_to_their_last_byte(struct stage *s)
{
    const char *const keys[] = {odd, "k", "K", "k%", "k_", "'k'", "NULL", "0"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        pawl_enqueue_row row = row_for("mail");
        row.dedupe_key = keys[i];
        expect_code(try_put(s, &row).code, PAWL_OK);
        row = row_for("mail");
        row.dedupe_key = keys[i];
        expect_code(try_put(s, &row).code, PAWL_DUPLICATE);
    }
}

static const struct suite_case cases[] = {
    CASE(a_full_batch_goes_through_every_verb),
    CASE(a_full_batch_is_recovered_and_cancelled),
    CASE(names_are_told_to_their_last_byte),
    CASE(keys_are_compared_to_their_last_byte),
};

SUITE_GROUP(batch);
