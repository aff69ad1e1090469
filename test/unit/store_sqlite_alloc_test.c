/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_alloc_test.c - every allocation of our own in every verb of the SQLite store fails
 * once; each time nothing leaks (a payload shows here, the rest to the sanitizer's build), nothing
 * is half done, and the next call works. What SQLite itself allocates is not ours to fail here.
 * Owns:  one call for each verb that allocates, on a store with jobs in several states.
 * Never: looks at what a verb does when there is memory: the suite does.
 */
#include "support/alloc_fail.h"
#include "support/heap.h"
#include "support/sqlite_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 16

/* So large that one which is left behind shows among what the C library keeps for later. */
#define PAYLOAD_BYTES "262144"
#define LEAK_BYTES    131072

/* Where results go: filled with a pattern, to see that a failure writes none of them. */
union results {
    pawl_enqueued enqueued[ROOM];
    pawl_job jobs[ROOM];
    pawl_renewed renewed[ROOM];
    pawl_settled settled[ROOM];
    pawl_code codes[ROOM];
    pawl_reaped reaped[ROOM];
    pawl_attempt attempts[ROOM];
    pawl_lease_info leases[ROOM];
    pawl_worker workers[ROOM];
    pawl_stats stats[ROOM];
    pawl_changed changed[ROOM];
};

struct call {
    struct lite_world world;
    pawl_id ready;
    pawl_job held[2];
    pawl_id failed;
    union results results;
    size_t count;
    bool is_jobs; /* the results are jobs, which must be cleared */
};

static void fill(struct call *call)
{
    struct lite_world *world = &call->world;
    call->failed = lite_put(world, "a");
    pawl_job job = lite_take_one(world, "a");
    assert_int_equal(lite_settle(world, &job, PAWL_FAIL).code, PAWL_OK);
    for (int i = 0; i < 2; i++) {
        lite_put(world, "a");
        call->held[i] = lite_take_one(world, "a");
    }
    for (int i = 0; i < 3; i++)
        call->ready = lite_put(world, "a");
    lite_put(world, "expired");
    lite_take_one(world, "expired");
    pawl_worker_seen seen = {.name = "w1", .host = "host", .version = "1"};
    assert_int_equal(pawl_worker_seen_now(world->store, &seen, NULL), PAWL_OK);
    (void)lite_ask(world, "UPDATE pawl_payload SET bytes = zeroblob(" PAYLOAD_BYTES "), "
                          "headers = 'header: one' || char(10);"
                          "UPDATE pawl_job SET payload_len = " PAYLOAD_BYTES ";"
                          "UPDATE pawl_ended SET payload_len = " PAYLOAD_BYTES);
}

static pawl_lease lease_of(const pawl_job *job)
{
    return (pawl_lease){job->id, job->token, job->lease_version, job->place};
}

/* ---- the verbs */

static pawl_code enqueue(struct call *call)
{
    pawl_enqueue_row rows[2];
    for (size_t i = 0; i < 2; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "new";
        rows[i].payload = "bytes";
        rows[i].payload_len = 5;
        rows[i].headers = "header: one\n";
    }
    return pawl_enqueue(call->world.store, rows, 2, call->results.enqueued, NULL);
}

static pawl_code claim(struct call *call)
{
    pawl_claim_line lines[] = {{.queue = "expired", .jobs_max = 5, .lease_ms = PAWL_DEFAULT},
                               {.queue = "a", .jobs_max = 5, .lease_ms = PAWL_DEFAULT}};
    pawl_claim_args args = {
        .worker = "new", .lines = lines, .lines_count = 2, .bytes_max = PAWL_DEFAULT};
    call->is_jobs = true;
    return pawl_claim(call->world.store, &args, call->results.jobs, ROOM, &call->count, NULL);
}

static pawl_code mine(struct call *call)
{
    call->is_jobs = true;
    return pawl_mine(call->world.store, LITE_WORKER, NULL, call->results.jobs, ROOM, &call->count,
                     NULL);
}

static pawl_code renew(struct call *call)
{
    pawl_renew_row row = {.lease = lease_of(&call->held[0]), .lease_ms = PAWL_DEFAULT};
    return pawl_renew(call->world.store, LITE_WORKER, &row, 1, call->results.renewed, NULL);
}

static pawl_code settle(struct call *call)
{
    pawl_settle_row rows[2];
    for (size_t i = 0; i < 2; i++) {
        pawl_settle_init(&rows[i]);
        rows[i].lease = lease_of(&call->held[i]);
        rows[i].error_text = "text";
    }
    return pawl_settle(call->world.store, LITE_WORKER, rows, 2, call->results.settled, NULL);
}

static pawl_code release(struct call *call)
{
    pawl_lease leases[2] = {lease_of(&call->held[0]), lease_of(&call->held[1])};
    return pawl_release(call->world.store, LITE_WORKER, leases, 2, call->results.codes, NULL);
}

static pawl_code reap(struct call *call)
{
    return pawl_reap(call->world.store, call->results.reaped, ROOM, &call->count, NULL);
}

static pawl_code get(struct call *call)
{
    call->is_jobs = true;
    pawl_code code = pawl_get(call->world.store, &call->ready, call->results.jobs, NULL);
    if (code == PAWL_OK)
        call->count = 1;
    return code;
}

static pawl_code list(struct call *call)
{
    return pawl_list(call->world.store, NULL, NULL, call->results.jobs, ROOM, &call->count, NULL);
}

static pawl_code attempts(struct call *call)
{
    return pawl_attempts(call->world.store, &call->failed, 0, call->results.attempts, ROOM,
                         &call->count, NULL);
}

static pawl_code leases(struct call *call)
{
    return pawl_leases(call->world.store, NULL, NULL, call->results.leases, ROOM, &call->count,
                       NULL);
}

static pawl_code workers(struct call *call)
{
    return pawl_workers(call->world.store, NULL, call->results.workers, ROOM, &call->count, NULL);
}

static pawl_code queue_stats(struct call *call)
{
    return pawl_queue_stats(call->world.store, NULL, call->results.stats, ROOM, &call->count, NULL);
}

static pawl_code cancel(struct call *call)
{
    return pawl_cancel(call->world.store, &call->ready, 1, call->results.changed, NULL);
}

static pawl_code redrive(struct call *call)
{
    return pawl_redrive(call->world.store, &call->failed, 1, call->results.changed, NULL);
}

static pawl_code discard(struct call *call)
{
    return pawl_discard(call->world.store, &call->failed, 1, call->results.changed, NULL);
}

static const pawl_filter filter_all;

static pawl_code cancel_where(struct call *call)
{
    return pawl_cancel_where(call->world.store, &filter_all, ROOM, &call->count, NULL);
}

typedef pawl_code verb_run(struct call *call);
struct verb_case {
    const char *name;
    verb_run *run;
};

static const struct verb_case verbs[] = {
    {"enqueue", enqueue},
    {"claim", claim},
    {"mine", mine},
    {"renew", renew},
    {"settle", settle},
    {"release", release},
    {"reap", reap},
    {"get", get},
    {"list", list},
    {"attempts", attempts},
    {"leases", leases},
    {"workers", workers},
    {"stats", queue_stats},
    {"cancel", cancel},
    {"redrive", redrive},
    {"discard", discard},
    {"cancel_where", cancel_where},
};

/* ---- each of them, with each of its allocations failing */

#define UNTOUCHED 0xa5
#define UNCOUNTED ((size_t)0xa5a5a5a5)

/* All that is in the file, as one number. */
static uint64_t digest_of(const struct lite_world *world)
{
    static const char *const tables[] = {"pawl_meta",    "pawl_queue",   "pawl_job",   "pawl_ended",
                                         "pawl_attempt", "pawl_payload", "pawl_worker"};
    uint64_t digest = UINT64_C(14695981039346656037);
    sqlite3 *db = lite_connect(world);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        sqlite3_stmt *stmt;
        char *sql = sqlite3_mprintf("SELECT * FROM %s ORDER BY 1, 2", tables[i]);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
        sqlite3_free(sql);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            for (int column = 0; column < sqlite3_column_count(stmt); column++) {
                const unsigned char *bytes = sqlite3_column_blob(stmt, column);
                int len = sqlite3_column_bytes(stmt, column);
                for (int k = 0; k < len; k++)
                    digest = (digest ^ bytes[k]) * UINT64_C(1099511628211);
                digest = (digest ^ (unsigned)column) * UINT64_C(1099511628211);
            }
        }
        assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return digest;
}

/* One call whose nth allocation fails. True where it came to that. */
static bool run_once(const struct verb_case *verb, uint64_t nth)
{
    struct call call = {.count = UNCOUNTED};
    lite_world_make(&call.world);
    lite_world_open(&call.world);
    fill(&call);
    memset(&call.results, UNTOUCHED, sizeof(call.results));
    uint64_t before = digest_of(&call.world);

    alloc_fail_nth(nth);
    pawl_code code = verb->run(&call);
    bool has_failed = alloc_fail_end();

    if (has_failed) {
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_true(digest_of(&call.world) == before);
        const unsigned char *bytes = (const unsigned char *)&call.results;
        for (size_t i = 0; i < sizeof(call.results); i++)
            assert_int_equal(bytes[i], UNTOUCHED);
        assert_true(call.count == UNCOUNTED);
        call.is_jobs = false;
        assert_int_equal(verb->run(&call), PAWL_OK); /* with memory it goes on */
    } else {
        assert_int_equal(code, PAWL_OK);
    }
    for (size_t i = 0; call.is_jobs && i < call.count; i++)
        pawl_job_clear(&call.results.jobs[i]);
    lite_check(&call.world);
    lite_world_end(&call.world);
    return has_failed;
}

static void each_allocation_of_each_verb_fails(void **state)
{
    (void)state;                  /* none */
    (void)run_once(&verbs[0], 1); /* what SQLite keeps for as long as the process lives */
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        uint64_t nth = 1;
        size_t heap = heap_bytes();
        while (run_once(&verbs[i], nth)) {
            if (heap_bytes() > heap + LEAK_BYTES)
                fail_msg("%s: leaks where allocation %d fails", verbs[i].name, (int)nth);
            nth++;
        }
        if (nth == 1)
            fail_msg("%s: allocates nothing", verbs[i].name);
    }
}

/* Opening: the path, the store, its minter, a handle. */
static void each_allocation_of_opening_fails(void **state)
{
    (void)state; /* none */
    bool has_failed = true;
    for (uint64_t nth = 1; has_failed; nth++) {
        struct lite_world world;
        lite_world_make(&world);
        alloc_fail_nth(nth);
        pawl_code code = lite_world_try_open(&world, NULL);
        has_failed = alloc_fail_end();
        assert_int_equal(code, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        assert_true(has_failed || nth > 3);
        lite_world_end(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_of_each_verb_fails),
        cmocka_unit_test(each_allocation_of_opening_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
