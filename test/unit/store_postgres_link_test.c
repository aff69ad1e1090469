/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_link_test.c - what the PostgreSQL store says when its connection is cut, at every
 * few bytes of a claim, a settle and an enqueue, and of the calls on a work lease, the request lost
 * or the reply. DOWN must mean not done, OK done; UNKNOWN is either, and repeating must be safe; of
 * a work lease, asking for the offset tells which. Q-STORE-DOWN, RES-10, WL-IDEMPOTENT.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/id.h"
#include "pawl/worklease.h"
#include "store/postgres/postgres.h"
#include "support/pg_proxy.h"
#include "support/pg_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTS_MAX   16 /* per verb and way */
#define BIG_BYTES  (8 << 20)
#define TIMEOUT_MS 20000
#define SHARDS     2
#define ROWS       6      /* of a batch */
#define LARGE      300000 /* bytes: the server sends the beginning of a reply before it commits */

static struct {
    struct pg_server server;
    struct pg_proxy *proxy;
    pawl_store *cut;   /* through the proxy */
    pawl_store *whole; /* straight */
    bool is_told;      /* the session knows the statement before the call that is cut */
} world;

static int begin(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    char named[PG_PATH_MAX + 32];
    if (!pg_world_begin(&world.server, false, SHARDS))
        return -1;
    world.proxy = pg_proxy_start(&world.server);
    if (world.proxy == NULL)
        return -1;
    (void)pg_proxy_conninfo(world.proxy, PG_WORLD_DATABASE, conninfo);
    (void)snprintf(named, sizeof(named), "%s application_name=cut", conninfo); /* it fits */
    world.cut = pg_world_open(&world.server, named, TIMEOUT_MS);
    world.whole = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pawl_store_close(world.cut);
    pawl_store_close(world.whole);
    pg_proxy_stop(world.proxy);
    pg_server_remove(&world.server);
    return 0;
}

/* ---- small verbs */

static const char payload[BIG_BYTES];

static pawl_enqueue_row new_row(pawl_store *store, size_t payload_len)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = payload;
    row.payload_len = payload_len;
    assert_int_equal(pawl_id_new(store, &row, &row.id, NULL), PAWL_OK);
    return row;
}

static void put_one(size_t payload_len)
{
    pawl_enqueue_row row = new_row(world.whole, payload_len);
    pawl_enqueued result;
    assert_int_equal(pawl_enqueue(world.whole, &row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(result.code, PAWL_OK);
}

static pawl_code claim_one(pawl_store *store, pawl_job *ret_job, size_t *ret_count, pawl_err *err)
{
    pawl_claim_line line = {.queue = "mail", .jobs_max = 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {"w1", &line, 1, PAWL_DEFAULT};
    return pawl_claim(store, &args, ret_job, 1, ret_count, err);
}

/* What the worker holds; 0 or 1 job. */
static size_t held(pawl_lease *ret_lease)
{
    pawl_job job;
    size_t count = 0;
    assert_int_equal(pawl_mine(world.whole, "w1", NULL, &job, 1, &count, NULL), PAWL_OK);
    if (count == 1) {
        *ret_lease = (pawl_lease){job.id, job.token, job.lease_version, job.place};
        pawl_job_clear(&job);
    }
    return count;
}

static pawl_code succeed(pawl_store *store, const pawl_lease *lease, pawl_settled *ret_settled,
                         pawl_err *err)
{
    pawl_settle_row row;
    pawl_settle_init(&row);
    row.lease = *lease;
    return pawl_settle(store, "w1", &row, 1, ret_settled, err);
}

static void finish(const pawl_lease *lease)
{
    pawl_settled settled;
    assert_int_equal(succeed(world.whole, lease, &settled, NULL), PAWL_OK);
    assert_int_equal(settled.code, PAWL_OK);
}

/* ---- a trial: one verb over a connection that is cut somewhere */

struct trial {
    size_t payload_len;
    pawl_enqueue_row row;        /* enqueue */
    pawl_enqueue_row rows[ROWS]; /* enqueue of a batch */
    pawl_lease lease;            /* settle */
    int64_t offset;              /* of a work lease: this and the token */
    pawl_token token;
    pawl_code code;
    bool is_done;
    pawl_err err;
};

/* Each verb: what comes before the cut, the call itself, whether it was done, its repetition. */
struct verb {
    void (*prepare)(struct trial *trial);
    pawl_code (*act)(struct trial *trial);
    bool (*look)(struct trial *trial);
    void (*repeat)(struct trial *trial);
    bool is_hinted; /* behind it goes a hint: to lose that is to lose nothing */
};

static void prepare_enqueue(struct trial *trial)
{
    trial->row = new_row(world.cut, trial->payload_len);
}

static pawl_code act_enqueue(struct trial *trial)
{
    pawl_enqueued result;
    return pawl_enqueue(world.cut, &trial->row, 1, &result, &trial->err);
}

static bool look_enqueue(struct trial *trial)
{
    pawl_job job;
    pawl_code found = pawl_get(world.whole, &trial->row.id, &job, NULL);
    assert_true(found == PAWL_OK || found == PAWL_GONE);
    if (found == PAWL_OK)
        pawl_job_clear(&job);
    return found == PAWL_OK;
}

/* It is there once, whatever happened before. Q-ENQUEUE */
static void repeat_enqueue(struct trial *trial)
{
    pawl_enqueued result;
    pawl_job job;
    size_t count = 0;
    assert_int_equal(pawl_enqueue(world.cut, &trial->row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(result.code, trial->is_done ? PAWL_EXISTS : PAWL_OK);
    assert_int_equal(claim_one(world.whole, &job, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(pawl_id_compare(&job.id, &trial->row.id), 0);
    finish(&(pawl_lease){job.id, job.token, job.lease_version, job.place});
    pawl_job_clear(&job);
    assert_int_equal(claim_one(world.whole, &job, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
}

static void prepare_claim(struct trial *trial)
{
    put_one(trial->payload_len);
}

static pawl_code act_claim(struct trial *trial)
{
    pawl_job job;
    size_t count = 0;
    pawl_code code = claim_one(world.cut, &job, &count, &trial->err);
    if (code == PAWL_OK) {
        assert_int_equal(count, 1);
        pawl_job_clear(&job);
    }
    return code;
}

static bool look_claim(struct trial *trial)
{
    return held(&trial->lease) == 1;
}

/* What was claimed is found by mine(), and what was not can be claimed: in both cases one lease. */
static void repeat_claim(struct trial *trial)
{
    pawl_job job;
    size_t count = 0;
    assert_int_equal(claim_one(world.cut, &job, &count, NULL), PAWL_OK);
    assert_int_equal(count, trial->is_done ? 0 : 1);
    if (count == 1)
        pawl_job_clear(&job);
    assert_int_equal(held(&trial->lease), 1);
    assert_int_equal(trial->lease.version, 1);
    finish(&trial->lease);
}

static void prepare_settle(struct trial *trial)
{
    pawl_job job;
    size_t count = 0;
    put_one(trial->payload_len);
    assert_int_equal(claim_one(world.whole, &job, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    trial->lease = (pawl_lease){job.id, job.token, job.lease_version, job.place};
    pawl_job_clear(&job);
}

static pawl_code act_settle(struct trial *trial)
{
    pawl_settled settled;
    return succeed(world.cut, &trial->lease, &settled, &trial->err);
}

static bool look_settle(struct trial *trial)
{
    pawl_job job;
    assert_int_equal(pawl_get(world.whole, &trial->lease.job, &job, NULL), PAWL_OK);
    pawl_state state = job.state;
    pawl_job_clear(&job);
    return state == PAWL_SUCCEEDED;
}

/* The same settle again finds its own row. OL-APPEND-ONLY: one row. */
static void repeat_settle(struct trial *trial)
{
    pawl_settled settled;
    pawl_attempt rows[2];
    size_t count = 0;
    assert_int_equal(succeed(world.cut, &trial->lease, &settled, NULL), PAWL_OK);
    assert_int_equal(settled.code, PAWL_OK);
    assert_int_equal(settled.attempt_no, 1);
    assert_int_equal(pawl_attempts(world.whole, &trial->lease.job, 0, rows, 2, &count, NULL),
                     PAWL_OK);
    assert_int_equal(count, 1);
}

/* Both shards have some, always: that many statements are the request, and so that many bytes. */
static void prepare_batch(struct trial *trial)
{
    for (size_t i = 0; i < ROWS; i++)
        do
            trial->rows[i] = new_row(world.cut, trial->payload_len);
        while (pawli_id_shard(&trial->rows[i].id, SHARDS) != (int64_t)i % SHARDS);
}

static pawl_code act_batch(struct trial *trial)
{
    pawl_enqueued results[ROWS];
    return pawl_enqueue(world.cut, trial->rows, ROWS, results, &trial->err);
}

/* All in one transaction: never some of them. */
static bool look_batch(struct trial *trial)
{
    size_t there = 0;
    for (size_t i = 0; i < ROWS; i++) {
        struct trial one = {.row = trial->rows[i]};
        there += look_enqueue(&one);
    }
    assert_true(there == 0 || there == ROWS);
    return there == ROWS;
}

static void repeat_batch(struct trial *trial)
{
    pawl_enqueued results[ROWS];
    assert_int_equal(pawl_enqueue(world.cut, trial->rows, ROWS, results, NULL), PAWL_OK);
    for (size_t i = 0; i < ROWS; i++) {
        pawl_job job;
        size_t count = 0;
        assert_int_equal(results[i].code, trial->is_done ? PAWL_EXISTS : PAWL_OK);
        assert_int_equal(claim_one(world.whole, &job, &count, NULL), PAWL_OK);
        assert_int_equal(count, 1);
        finish(&(pawl_lease){job.id, job.token, job.lease_version, job.place});
        pawl_job_clear(&job);
    }
}

/* ---- work leases: an offset for each trial, after all those before it */

#define DOMAIN "partition"
#define OWNER  "reader"

static pawl_code ask_for(pawl_store *store, struct trial *trial, pawl_worklease_acquired *ret_got)
{
    pawl_worklease_acquire args;
    pawl_worklease_acquire_init(&args);
    args.domain = DOMAIN;
    args.owner = OWNER;
    args.offset = trial->offset;
    return pawl_worklease_try_acquire(store, &args, ret_got, &trial->err);
}

/* What asking for the offset tells, over the connection that was cut. */
static pawl_worklease_acquired told(struct trial *trial)
{
    pawl_worklease_acquired got;
    assert_int_equal(ask_for(world.cut, trial, &got), PAWL_OK);
    return got;
}

static pawl_worklease_info seen_of(void)
{
    pawl_worklease_info info;
    pawl_code code = pawl_worklease_get(world.whole, DOMAIN, &info, NULL);
    assert_true(code == PAWL_OK || code == PAWL_GONE);
    return code == PAWL_OK ? info : (pawl_worklease_info){.is_leased = false};
}

static pawl_worklease_hold holding(const struct trial *trial)
{
    return (pawl_worklease_hold){.domain = DOMAIN, .owner = OWNER, .token = trial->token};
}

/* End what is leased, so that the next trial finds nothing. */
static void end_offset(struct trial *trial)
{
    pawl_worklease_ended ended;
    pawl_worklease_hold hold = holding(trial);
    assert_int_equal(pawl_worklease_succeed(world.whole, &hold, &ended, NULL), PAWL_OK);
    assert_int_equal(told(trial).got, PAWL_GOT_ALREADY_PROCESSED);
}

static void prepare_acquire(struct trial *trial)
{
    trial->offset = pg_world_number(&world.server, "select coalesce(max(last_offset), 0) + 1 from "
                                                   "pawl.worklease_terminal");
}

static pawl_code act_acquire(struct trial *trial)
{
    pawl_worklease_acquired got;
    return ask_for(world.cut, trial, &got);
}

static bool look_acquire(struct trial *trial)
{
    pawl_worklease_info info = seen_of();
    return info.is_leased && info.offset == trial->offset;
}

/* The same owner is told the token of the lease it did not hear of. */
static void repeat_acquire(struct trial *trial)
{
    pawl_worklease_acquired got = told(trial);
    assert_int_equal(got.got, trial->is_done ? PAWL_GOT_ALREADY_ACQUIRED : PAWL_GOT_ACQUIRED);
    trial->token = got.token;
    end_offset(trial);
}

static void prepare_held(struct trial *trial)
{
    pawl_worklease_acquired got;
    prepare_acquire(trial);
    assert_int_equal(ask_for(world.whole, trial, &got), PAWL_OK);
    assert_int_equal(got.got, PAWL_GOT_ACQUIRED);
    trial->token = got.token;
}

static pawl_code act_succeed(struct trial *trial)
{
    pawl_worklease_ended ended;
    pawl_worklease_hold hold = holding(trial);
    return pawl_worklease_succeed(world.cut, &hold, &ended, &trial->err);
}

static bool look_succeed(struct trial *trial)
{
    (void)trial; /* there is one domain */
    return !seen_of().is_leased;
}

static void repeat_succeed(struct trial *trial)
{
    pawl_worklease_acquired got = told(trial);
    assert_int_equal(got.got,
                     trial->is_done ? PAWL_GOT_ALREADY_PROCESSED : PAWL_GOT_ALREADY_ACQUIRED);
    if (!trial->is_done)
        end_offset(trial);
}

static pawl_code act_fail(struct trial *trial)
{
    pawl_worklease_ended ended;
    pawl_worklease_hold hold = holding(trial);
    return pawl_worklease_fail(world.cut, &hold, PAWL_DEFAULT, &ended, &trial->err);
}

static bool look_fail(struct trial *trial)
{
    (void)trial; /* there is one domain */
    return seen_of().retry_count == 1;
}

/* The count tells whether the failure was counted. */
static void repeat_fail(struct trial *trial)
{
    pawl_worklease_acquired got = told(trial);
    assert_int_equal(got.got, PAWL_GOT_ALREADY_ACQUIRED);
    assert_true(got.retry_count == (trial->is_done ? 1 : 0));
    end_offset(trial);
}

static const struct verb acquire_verb = {prepare_acquire, act_acquire, look_acquire, repeat_acquire,
                                         false};
static const struct verb succeed_verb = {prepare_held, act_succeed, look_succeed, repeat_succeed,
                                         false};
static const struct verb fail_verb = {prepare_held, act_fail, look_fail, repeat_fail, false};

static const struct verb batch_verb = {prepare_batch, act_batch, look_batch, repeat_batch, true};
static const struct verb enqueue_verb = {prepare_enqueue, act_enqueue, look_enqueue, repeat_enqueue,
                                         true};
static const struct verb claim_verb = {prepare_claim, act_claim, look_claim, repeat_claim, false};
static const struct verb settle_verb = {prepare_settle, act_settle, look_settle, repeat_settle,
                                        false};

/* ---- cutting everywhere */

/* How often each thing was seen. */
struct seen {
    int ok, down, unknown_done, unknown_not_done;
};

/* Where to cut. */
struct cut {
    enum pg_way way;
    size_t bytes;
};

/* Connected, and idle, in a session that has been told of the statement, or has not. */
static void begin_trial(const struct verb *verb, struct trial *trial)
{
    pawl_wall now;
    struct trial before = {.payload_len = trial->payload_len, .is_done = true};
    pg_proxy_heal(world.proxy);
    if (!world.is_told)
        pawli_pg_disconnect(&pawli_pg_handle_of(world.cut)->link);
    assert_int_equal(pawl_now(world.cut, &now, NULL), PAWL_OK);
    if (world.is_told) {
        verb->prepare(&before);
        assert_int_equal(verb->act(&before), PAWL_OK);
        (void)verb->look(&before);
        verb->repeat(&before);
    }
    verb->prepare(trial);
}

static void run_trial(const struct verb *verb, size_t payload_len, const struct cut *cut,
                      struct seen *seen)
{
    struct trial trial = {.payload_len = payload_len};
    begin_trial(verb, &trial);
    pg_proxy_cut(world.proxy, cut->way, cut->bytes);
    trial.code = verb->act(&trial);
    pg_proxy_heal(world.proxy);
    if (trial.code == PAWL_UNKNOWN)
        /* The server may still be at it, or have yet to begin: until it has noticed the cut, nobody
         * can tell. */
        assert_int_equal(pg_world_await(&world.server,
                                        "select (count(*) = 0)::int from pg_stat_activity where "
                                        "application_name = 'cut'"),
                         1);
    trial.is_done = verb->look(&trial);
    switch (trial.code) {
    case PAWL_OK:
        assert_true(trial.is_done);
        seen->ok++;
        break;
    case PAWL_DOWN:
        assert_false(trial.is_done);
        seen->down++;
        break;
    case PAWL_UNKNOWN:
        seen->unknown_done += trial.is_done;
        seen->unknown_not_done += !trial.is_done;
        break;
    default:
        fail_msg("cut after %zu bytes: %s: %s", cut->bytes, pawl_code_name(trial.code),
                 trial.err.text);
    }
    verb->repeat(&trial);
}

/* Cut at every few bytes of what a whole run takes, this way. */
static struct seen cut_everywhere(const struct verb *verb, size_t payload_len, enum pg_way way)
{
    struct seen seen = {0};
    struct trial whole = {.payload_len = payload_len};
    begin_trial(verb, &whole);
    pg_proxy_heal(world.proxy); /* counts from here */
    assert_int_equal(verb->act(&whole), PAWL_OK);
    size_t total = pg_proxy_count(world.proxy, way);
    whole.is_done = true;
    verb->repeat(&whole);
    size_t step = total / CUTS_MAX + 1;
    for (size_t bytes = 0; bytes < total; bytes += step)
        run_trial(verb, payload_len, &(struct cut){way, bytes}, &seen);
    run_trial(verb, payload_len, &(struct cut){way, total - 1}, &seen);
    print_message("# %zu bytes: %d OK, %d DOWN, %d UNKNOWN and done, %d UNKNOWN and not\n", total,
                  seen.ok, seen.down, seen.unknown_done, seen.unknown_not_done);
    return seen;
}

/* A small request has left us before the cut: not done, but nobody here can know. */
static void expect_lost_requests(const struct verb *verb)
{
    struct seen seen = cut_everywhere(verb, 100, PG_REQUEST);
    if (!verb->is_hinted)
        assert_int_equal(seen.unknown_done + seen.ok, 0);
    assert_true(seen.unknown_not_done > 0);
}

/* A reply of which a byte is lost: done, and that may not be denied. */
static void expect_lost_replies(const struct verb *verb)
{
    struct seen seen = cut_everywhere(verb, 100, PG_REPLY);
    assert_int_equal(seen.down, 0);
    if (!verb->is_hinted)
        assert_int_equal(seen.ok, 0);
    assert_true(seen.unknown_done > 0);
}

/* What is sent is another thing in a session that knows the statement. */
static void a_call_of_a_known_statement(void **state)
{
    (void)state;
    static const struct verb *const verbs[] = {&enqueue_verb, &claim_verb, &settle_verb};
    world.is_told = true;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        expect_lost_requests(verbs[i]);
        expect_lost_replies(verbs[i]);
    }
    world.is_told = false;
}

static void a_lost_request_of_an_enqueue(void **state)
{
    (void)state;
    expect_lost_requests(&enqueue_verb);
}

static void a_lost_request_of_a_claim(void **state)
{
    (void)state;
    expect_lost_requests(&claim_verb);
}

static void a_lost_request_of_a_settle(void **state)
{
    (void)state;
    expect_lost_requests(&settle_verb);
}

static void a_lost_reply_of_an_enqueue(void **state)
{
    (void)state;
    expect_lost_replies(&enqueue_verb);
}

static void a_lost_reply_of_a_claim(void **state)
{
    (void)state;
    expect_lost_replies(&claim_verb);
}

static void a_lost_reply_of_a_settle(void **state)
{
    (void)state;
    expect_lost_replies(&settle_verb);
}

static void a_batch_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    expect_lost_requests(&batch_verb);
    expect_lost_replies(&batch_verb);
}

static void a_cut_try_acquire_of_a_work_lease(void **state)
{
    (void)state;
    expect_lost_requests(&acquire_verb);
    expect_lost_replies(&acquire_verb);
}

static void a_cut_succeed_of_a_work_lease(void **state)
{
    (void)state;
    expect_lost_requests(&succeed_verb);
    expect_lost_replies(&succeed_verb);
}

static void a_cut_fail_of_a_work_lease(void **state)
{
    (void)state;
    expect_lost_requests(&fail_verb);
    expect_lost_replies(&fail_verb);
}

/* The server has sent some of it when the connection ends, and has or has not committed. */
static void a_lost_reply_of_a_large_claim(void **state)
{
    (void)state;
    struct seen seen = cut_everywhere(&claim_verb, LARGE, PG_REPLY);
    assert_int_equal(seen.down, 0);
    assert_int_equal(seen.ok, 0);
}

/* A request that has not all left us cannot have been done: that is DOWN, not UNKNOWN. */
static void a_request_cut_while_it_is_sent(void **state)
{
    (void)state;
    struct seen seen = {0};
    for (size_t bytes = 0; bytes < 4; bytes++)
        run_trial(&enqueue_verb, BIG_BYTES / 8,
                  &(struct cut){PG_REQUEST, 1 + bytes * BIG_BYTES / 64}, &seen);
    assert_true(seen.down > 0);
    assert_int_equal(seen.unknown_done + seen.ok, 0);
}

/* A call that only reads is DOWN, whatever was lost. */
static void a_lost_read_is_down(void **state)
{
    (void)state;
    for (int way = 0; way < PG_WAYS; way++) {
        pawl_wall now;
        pawl_job job;
        size_t count = 0;
        pg_proxy_heal(world.proxy);
        assert_int_equal(pawl_now(world.cut, &now, NULL), PAWL_OK);
        pg_proxy_cut(world.proxy, (enum pg_way)way, 40);
        assert_int_equal(pawl_now(world.cut, &now, NULL), PAWL_DOWN);
        pg_proxy_heal(world.proxy);
        assert_int_equal(pawl_now(world.cut, &now, NULL), PAWL_OK);
        pg_proxy_cut(world.proxy, (enum pg_way)way, 40);
        assert_int_equal(pawl_mine(world.cut, "w1", NULL, &job, 1, &count, NULL), PAWL_DOWN);
    }
    pg_proxy_heal(world.proxy);
}

/* A server that is silent does not hold a call longer than its time. */
static void a_silent_server_costs_the_timeout(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    struct trial trial = {.payload_len = 100};
    pawl_store *usual = world.cut;
    pg_proxy_heal(world.proxy);
    (void)pg_proxy_conninfo(world.proxy, PG_WORLD_DATABASE, conninfo);
    world.cut = pg_world_open(&world.server, conninfo, 300);
    prepare_enqueue(&trial);
    pg_proxy_swallow(world.proxy, PG_REPLY);
    assert_int_equal(act_enqueue(&trial), PAWL_UNKNOWN);
    pg_proxy_heal(world.proxy);
    pawl_store_close(world.cut);
    world.cut = usual;
    trial.is_done = look_enqueue(&trial);
    repeat_enqueue(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_request_of_an_enqueue),
        cmocka_unit_test(a_lost_request_of_a_claim),
        cmocka_unit_test(a_lost_request_of_a_settle),
        cmocka_unit_test(a_lost_reply_of_an_enqueue),
        cmocka_unit_test(a_lost_reply_of_a_claim),
        cmocka_unit_test(a_lost_reply_of_a_settle),
        cmocka_unit_test(a_call_of_a_known_statement),
        cmocka_unit_test(a_batch_is_there_whole_or_not_at_all),
        cmocka_unit_test(a_cut_try_acquire_of_a_work_lease),
        cmocka_unit_test(a_cut_succeed_of_a_work_lease),
        cmocka_unit_test(a_cut_fail_of_a_work_lease),
        cmocka_unit_test(a_lost_reply_of_a_large_claim),
        cmocka_unit_test(a_request_cut_while_it_is_sent),
        cmocka_unit_test(a_lost_read_is_down),
        cmocka_unit_test(a_silent_server_costs_the_timeout),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
