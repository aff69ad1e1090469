/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_handles.c - several handles on one store, and handles that come and go.
 * Owns:  the cases about what is shared between handles and what outlives them.
 * Never: uses threads: races have their own programs.
 */
#include "store/helpers.h"

#include <string.h>

/* RULE-020-040, Q-INVISIBLE, Q-ONE-LEASE */
static void two_handles_never_take_the_same_job(struct stage *s)
{
    pawl_store *handles[] = {s->store, stage_handle(s)};
    for (int i = 0; i < 10; i++)
        put(s, "mail");
    const pawl_job *taken[10];
    for (size_t i = 0; i < 10; i++) {
        s->store = handles[i % 2];
        taken[i] = take(s, "mail", i % 2 == 0 ? "w1" : "w2");
    }
    expect_nothing(s, "mail");
    for (size_t i = 0; i < 10; i++) {
        for (size_t j = 0; j < i; j++)
            expect_true(pawl_id_compare(&taken[i]->id, &taken[j]->id) != 0);
    }
}

/* A lease belongs to the worker, not to the connection that it was got through. */
static void a_lease_is_good_on_every_handle(struct stage *s)
{
    pawl_store *first = s->store;
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    s->store = stage_handle(s);
    expect_code(renew(s, job).code, PAWL_OK);
    expect_number(mine(s, "w1").count, 1);
    expect_code(succeed(s, job).code, PAWL_OK);
    s->store = first;
    expect_state(s, id, PAWL_SUCCEEDED);
}

/* RES-4: safe in parallel; each expiry is recovered once */
static void two_reapers_recover_each_expiry_once(struct stage *s)
{
    for (int i = 0; i < 6; i++)
        put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 6);
    expect_number(batch.count, 6);
    age(s, LEASE + SECOND);
    expect_number(reap_up_to(s, 4).count, 4);
    s->store = stage_handle(s);
    expect_number(reap_up_to(s, 4).count, 2);
    expect_number(reap_up_to(s, 4).count, 0);
    for (size_t i = 0; i < batch.count; i++)
        expect_ledger(s, batch.jobs[i]->id, "ZOMBIE_REQUEUE expired");
}

/* Everything that was there, in every state. */
struct world {
    pawl_id ready, delayed, running, done, dead;
    const pawl_job *lease;
};

static struct world put_world(struct stage *s)
{
    struct world world;
    world.done = put_succeeded(s, "mail");
    world.dead = put_failed(s, "mail");
    world.running = put(s, "mail");
    world.lease = take_for(s, "mail", "w1", HOUR);
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = HOUR;
    world.delayed = put_row(s, &row);
    row = row_for("mail");
    row.dedupe_key = "k";
    world.ready = put_row(s, &row);
    set_bounds(s, "mail", 7, 10);
    pause_queue(s, "print", true);
    return world;
}

static void expect_world(struct stage *s, const struct world *world)
{
    expect_state(s, world->done, PAWL_SUCCEEDED);
    expect_ledger(s, world->done, "DISPATCHED");
    expect_state(s, world->dead, PAWL_FAILED);
    expect_ledger(s, world->dead, "FAILED fatal");
    assert_memory_equal(look(s, world->dead)->payload, "work", 4);
    expect_number(settings_of(s, "mail").max_retries, 7);
    expect_true(settings_of(s, "print").is_paused);
    pawl_enqueue_row row = row_for("mail");
    row.dedupe_key = "k";
    expect_code(try_put(s, &row).code, PAWL_DUPLICATE);
    row = row_for("mail");
    row.id = world->done;
    expect_code(try_put(s, &row).code, PAWL_EXISTS); /* Q-NEVER-AGAIN */

    expect_code(renew(s, world->lease).code, PAWL_OK);
    expect_code(succeed(s, world->lease).code, PAWL_OK);
    const pawl_job *job = take(s, "mail", "w2");
    expect_id(job->id, world->ready);
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_nothing(s, "mail");
    age(s, HOUR + MINUTE);
    expect_id(take(s, "mail", "w2")->id, world->delayed);
}

/* Another handle sees all of it, and it outlives the handle that it came through. */
static void nothing_is_lost_with_a_handle(struct stage *s)
{
    struct world world = put_world(s);
    pawl_store *fresh = stage_handle(s);
    pawl_store_close(s->store);
    s->handles[0] = NULL;
    s->store = fresh;
    expect_world(s, &world);
}

/* Q-DURABLE */
static void everything_survives_a_restart(struct stage *s)
{
    struct world world = put_world(s);
    stage_reopen(s);
    expect_world(s, &world);
}

/* The store's clock goes forwards, by what it was aged or by itself. */
static void now_does_not_go_back(struct stage *s)
{
    pawl_wall before = now(s);
    expect_true(before.us > 0);
    age(s, SECOND);
    pawl_wall after = now(s);
    expect_true(after.us >= before.us);
    if (s->kind->is_clock_turned)
        expect_true(after.us - before.us >= SECOND * 1000);
}

/* A wait ends when it is told to, or when its time is up. The time here is real: it is kept short.
 */
static void a_wait_ends(struct stage *s)
{
    bool has_hint = false;
    pawl_err err;
    expect_code(pawl_wait(s->store, 1, &has_hint, &err), PAWL_OK);
    pawl_wake(s->store);
    expect_code(pawl_wait(s->store, 20 * SECOND, &has_hint, &err), PAWL_OK);
    expect_code(pawl_wait(s->store, 1, &has_hint, &err), PAWL_OK);
}

static const struct suite_case cases[] = {
    CASE(two_handles_never_take_the_same_job),
    CASE(a_lease_is_good_on_every_handle),
    CASE(two_reapers_recover_each_expiry_once),
    CASE(nothing_is_lost_with_a_handle),
    CASE_ON(DURABLE, everything_survives_a_restart),
    CASE(now_does_not_go_back),
    CASE(a_wait_ends),
};

SUITE_GROUP(handles);
