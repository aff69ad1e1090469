/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_fault_test.c - each read, write, sync, truncate, open and shared-memory call in a
 * whole life of a job, and of another that waits behind it for their ordering key, fails once, in
 * several ways; and each time every answer is honest: OK is there once the file was closed and
 * opened again, DOWN is not, UNKNOWN may be either. Nothing is half done, and the life goes on to
 * its end: nobody starts out of turn or under a fence that was seen before, and nobody is left
 * behind. Likewise while a file of an older version is brought up to date.
 * Owns:  the life, and what is known of the jobs after each step of it.
 * Never: looks at what the verbs do when all is well: the suite does.
 */
#include "support/sqlite_vfs.h"
#include "support/sqlite_world.h"

#include "store/sqlite/sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DAY_MS    (INT64_C(24) * 3600 * 1000)
#define QUEUE     "life"
#define NTHS_MAX  5000
#define BIG_BYTES 6000
#ifdef __SANITIZE_ADDRESS__
#define NTH_STEP 4 /* slow; the plain build goes through all of them */
#else
#define NTH_STEP 1
#endif

/* What can be seen of the job. */
struct sight {
    bool is_there;
    pawl_state state;
    int64_t version, attempts, retries, lost;
    int64_t expires_us;
    size_t payload_len;
    pawl_state next; /* of the job behind it, which is there as long as it is */
};

struct life {
    struct lite_world world;
    pawl_id id;
    pawl_id next_id;
    pawl_job job;  /* as it was claimed last */
    int64_t fence; /* the highest that was told */
    struct vfs_fault fault;
    const char *step;
    int64_t begins_us;
};

static char big[BIG_BYTES];

/* ---- steps: each one call of a verb */

static pawl_code enqueue(struct life *life, pawl_err *err)
{
    pawl_enqueue_row rows[2];
    pawl_enqueued enqueued[2];
    for (int i = 0; i < 2; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = QUEUE;
        rows[i].ordering_key = "order";
    }
    rows[0].id = life->id;
    rows[0].payload = big;
    rows[0].payload_len = sizeof(big);
    rows[0].dedupe_key = "key";
    rows[1].id = life->next_id;
    pawl_code code = pawl_enqueue(life->world.store, rows, 2, enqueued, err);
    for (int i = 0; i < 2 && code == PAWL_OK; i++) /* repeated, it finds itself */
        assert_true(enqueued[i].code == PAWL_OK || enqueued[i].code == PAWL_EXISTS);
    return code;
}

/* Keep a lease that was told. A fence that was seen before would let an older writer pass. */
static void keep_lease(struct life *life, pawl_job *job)
{
    bool is_same = pawl_id_compare(&job->id, &life->job.id) == 0 &&
                   job->lease_version == life->job.lease_version;
    assert_true(is_same ? job->fence == life->fence : job->fence > life->fence);
    life->fence = job->fence;
    life->job = *job;
    pawl_job_clear(job);
}

/* Claim all that there is: it is this job. */
static pawl_code claim_one(struct life *life, const pawl_id *id, pawl_err *err)
{
    pawl_claim_line line = {.queue = QUEUE, .jobs_max = 2, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = LITE_WORKER, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job jobs[2];
    size_t count;
    pawl_code code = pawl_claim(life->world.store, &args, jobs, 2, &count, err);
    if (code == PAWL_OK) {
        assert_int_equal(count, 1);
        assert_int_equal(pawl_id_compare(&jobs[0].id, id), 0);
        if (id == &life->id)
            assert_memory_equal(jobs[0].payload, big, sizeof(big));
        keep_lease(life, &jobs[0]);
    }
    return code;
}

static pawl_code claim(struct life *life, pawl_err *err)
{
    return claim_one(life, &life->id, err);
}

static pawl_code claim_next(struct life *life, pawl_err *err)
{
    return claim_one(life, &life->next_id, err);
}

static pawl_lease lease_of(const struct life *life)
{
    return (pawl_lease){life->job.id, life->job.token, life->job.lease_version, life->job.place};
}

static pawl_code renew(struct life *life, pawl_err *err)
{
    pawl_renew_row row = {.lease = lease_of(life), .lease_ms = 40000};
    pawl_renewed renewed;
    pawl_code code = pawl_renew(life->world.store, LITE_WORKER, &row, 1, &renewed, err);
    assert_true(code != PAWL_OK || renewed.code == PAWL_OK);
    return code;
}

static pawl_code settle(struct life *life, pawl_settle_action action, pawl_err *err)
{
    pawl_settle_row row;
    pawl_settled settled;
    pawl_settle_init(&row);
    row.lease = lease_of(life);
    row.action = action;
    row.delay_ms = 0;
    row.error_text = "said";
    pawl_code code = pawl_settle(life->world.store, LITE_WORKER, &row, 1, &settled, err);
    assert_true(code != PAWL_OK || settled.code == PAWL_OK); /* also where it is repeated */
    return code;
}

static pawl_code retry(struct life *life, pawl_err *err)
{
    return settle(life, PAWL_RETRY, err);
}

static pawl_code succeed(struct life *life, pawl_err *err)
{
    return settle(life, PAWL_SUCCEED, err);
}

static pawl_code reap(struct life *life, pawl_err *err)
{
    pawl_reaped row;
    size_t count;
    return pawl_reap(life->world.store, &row, 1, &count, err);
}

static pawl_code prune(struct life *life, pawl_err *err)
{
    size_t count;
    return pawl_prune(life->world.store, 10, &count, err);
}

static pawl_code look(struct life *life, pawl_err *err)
{
    pawl_job job;
    pawl_code code = pawl_get(life->world.store, &life->id, &job, err);
    if (code == PAWL_OK)
        pawl_job_clear(&job);
    return code;
}

/* The leader's, but there is one thread. */
static pawl_code checkpoint(struct life *life, pawl_err *err)
{
    (void)err; /* it never fails a call */
    pawli_sqlite_checkpoint(life->world.sqlite);
    return PAWL_OK;
}

static pawl_code reopen(struct life *life, pawl_err *err)
{
    lite_world_close(&life->world);
    return lite_world_try_open(&life->world, err);
}

struct step {
    const char *name;
    pawl_code (*run)(struct life *life, pawl_err *err);
    int64_t turn_ms; /* before it */
    struct sight after;
};

#define LEFT (sizeof(big)) /* of the payload, as it is told */

static const struct step steps[] = {
    {"open", reopen, 0, {.is_there = false}},
    {"enqueue", enqueue, 0, {.is_there = true, .state = PAWL_READY, .payload_len = LEFT}},
    {"claim",
     claim,
     0,
     {true, PAWL_IN_FLIGHT, .version = 1, .expires_us = 30000, .payload_len = LEFT}},
    {"renew",
     renew,
     0,
     {true, PAWL_IN_FLIGHT, .version = 1, .expires_us = 40000, .payload_len = LEFT}},
    {"checkpoint",
     checkpoint,
     0,
     {true, PAWL_IN_FLIGHT, .version = 1, .expires_us = 40000, .payload_len = LEFT}},
    {"settle retry",
     retry,
     0,
     {true, PAWL_READY, .version = 1, .attempts = 1, .retries = 1, .payload_len = LEFT}},
    {"claim again",
     claim,
     0,
     {true, PAWL_IN_FLIGHT, .version = 2, .attempts = 1, .retries = 1, .expires_us = 30000,
      .payload_len = LEFT}},
    {"look",
     look,
     0,
     {true, PAWL_IN_FLIGHT, .version = 2, .attempts = 1, .retries = 1, .expires_us = 30000,
      .payload_len = LEFT}},
    {"reap",
     reap,
     31000,
     {true, PAWL_READY, .version = 2, .attempts = 2, .retries = 1, .lost = 1, .payload_len = LEFT}},
    {"claim once more",
     claim,
     0,
     {true, PAWL_IN_FLIGHT, .version = 3, .attempts = 2, .retries = 1, .lost = 1,
      .expires_us = 61000, .payload_len = LEFT}},
    {"reopen",
     reopen,
     0,
     {true, PAWL_IN_FLIGHT, .version = 3, .attempts = 2, .retries = 1, .lost = 1,
      .expires_us = 61000, .payload_len = LEFT}},
    {"settle",
     succeed,
     0,
     {true, PAWL_SUCCEEDED, .version = 3, .attempts = 3, .retries = 1, .lost = 1,
      .payload_len = LEFT}},
    {"claim the next",
     claim_next,
     0,
     {true, PAWL_SUCCEEDED, .version = 3, .attempts = 3, .retries = 1, .lost = 1,
      .payload_len = LEFT, .next = PAWL_IN_FLIGHT}},
    {"settle the next",
     succeed,
     0,
     {true, PAWL_SUCCEEDED, .version = 3, .attempts = 3, .retries = 1, .lost = 1,
      .payload_len = LEFT, .next = PAWL_SUCCEEDED}},
    {"prune", prune, 8 * DAY_MS, {.is_there = false}},
    {"checkpoint at the end", checkpoint, 0, {.is_there = false}},
};
#define STEPS_COUNT (sizeof(steps) / sizeof(steps[0]))

/* ---- what there is */

static struct sight see(struct life *life)
{
    pawl_job job;
    pawl_job next = {.state = PAWL_READY};
    pawl_err err = {0};
    pawl_code code = pawl_get(life->world.store, &life->id, &job, &err);
    assert_int_equal(pawl_get(life->world.store, &life->next_id, &next, NULL), code);
    pawl_state next_state = next.state;
    pawl_job_clear(&next);
    if (code == PAWL_GONE)
        return (struct sight){.is_there = false};
    if (code != PAWL_OK)
        fail_msg("%s: %s", life->step, err.text);
    struct sight sight = {
        .is_there = true,
        .state = job.state,
        .version = job.lease_version,
        .attempts = job.attempts,
        .retries = job.retries,
        .lost = job.lost_leases,
        .expires_us = job.expires_at.us,
        .payload_len = job.payload_len,
        .next = next_state,
    };
    pawl_attempt rows[8];
    size_t count;
    assert_int_equal(pawl_attempts(life->world.store, &life->id, 0, rows, 8, &count, NULL),
                     PAWL_OK);
    assert_int_equal((int64_t)count, job.attempts);
    if (job.state == PAWL_READY || job.state == PAWL_IN_FLIGHT)
        assert_memory_equal(job.payload, big, sizeof(big));
    pawl_job_clear(&job);
    return sight;
}

/* The story's instants are told from its beginning, in milliseconds. */
static struct sight expected(const struct sight *told, int64_t begins_us)
{
    struct sight sight = *told;
    if (sight.expires_us != 0)
        sight.expires_us = begins_us + sight.expires_us * 1000;
    return sight;
}

static bool is_same(const struct sight *a, const struct sight *b)
{
    return a->is_there == b->is_there && a->state == b->state && a->version == b->version &&
           a->attempts == b->attempts && a->retries == b->retries && a->lost == b->lost &&
           a->expires_us == b->expires_us && a->payload_len == b->payload_len && a->next == b->next;
}

static void complain(const struct life *life, pawl_code code, const struct sight *sight)
{
    fail_msg(
        "%s answered %s, and after that the job is %s %s, version %lld, attempts %lld (%s %ld, "
        "way %d%s)",
        life->step, pawl_code_name(code), sight->is_there ? "there," : "not there,",
        pawl_state_name(sight->state), (long long)sight->version, (long long)sight->attempts,
        vfs_kind_name(life->fault.kind), life->fault.nth, (int)life->fault.way,
        life->fault.is_lasting ? ", lasting" : "");
}

/* After a lost claim the holder asks for what is his. */
static void learn_lease(struct life *life)
{
    pawl_job job;
    size_t count;
    assert_int_equal(pawl_mine(life->world.store, LITE_WORKER, NULL, &job, 1, &count, NULL),
                     PAWL_OK);
    if (count == 1)
        keep_lease(life, &job);
}

/* ---- the life */

/* Take one step, the fault waiting unless it is over. Gives whether it has come. */
static bool take_step(struct life *life, const struct step *step, const struct sight *before,
                      bool is_over)
{
    struct sight after = expected(&step->after, life->begins_us);
    pawl_err err = {0};
    bool is_look_only = step->run == look || step->run == checkpoint || step->run == reopen;
    life->step = step->name;
    pawl_code code = step->run(life, &err);
    vfs_rest();
    bool has_failed = !is_over && vfs_has_failed();
    if (!has_failed)
        assert_int_equal(code, PAWL_OK);
    else
        assert_true(code == PAWL_OK || code == PAWL_DOWN ||
                    (code == PAWL_UNKNOWN && !is_look_only));
    if (code != PAWL_OK)
        assert_true(strlen(err.text) > 0);
    if (life->world.store != NULL && code == PAWL_OK) {
        struct sight sight = see(life); /* on the same connections */
        if (!is_same(&sight, &after))
            complain(life, code, &sight);
    }
    if (!has_failed)
        return false;

    /* Whatever was kept in memory goes: what counts is the file. */
    lite_world_close(&life->world);
    lite_world_open(&life->world);
    struct sight sight = see(life);
    bool is_honest = code == PAWL_OK     ? is_same(&sight, &after)
                     : code == PAWL_DOWN ? is_same(&sight, before)
                                         : is_same(&sight, &after) || is_same(&sight, before);
    if (!is_honest)
        complain(life, code, &sight);
    lite_check(&life->world);
    learn_lease(life);
    if (!is_same(&sight, &after)) { /* the life goes on */
        code = step->run(life, &err);
        if (code != PAWL_OK)
            fail_msg("%s: %s", step->name, err.text);
    }
    sight = see(life);
    if (!is_same(&sight, &after))
        complain(life, code, &sight);
    return true;
}

/* A file that was made before, so that not every life has to begin with that. */
struct template
{
    char bytes[1 << 20];
    size_t len;
};

static void read_template(struct template *template, const struct lite_world *maker)
{
    FILE *file = fopen(maker->scratch.path, "r");
    assert_non_null(file);
    template->len = fread(template->bytes, 1, sizeof(template->bytes), file);
    assert_int_equal(fclose(file), 0);
    assert_true(template->len < sizeof(template->bytes));
}

static void copy_template(const struct lite_world *world, bool is_old)
{
    static struct template templates[2];
    struct template *template = &templates[is_old];
    if (template->len == 0) {
        struct lite_world maker;
        lite_world_make(&maker);
        if (is_old)
            lite_world_make_old(&maker);
        else
            lite_world_open(&maker);
        lite_world_close(&maker);
        read_template(template, &maker);
        lite_world_end(&maker);
    }
    FILE *file = fopen(world->scratch.path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(template->bytes, 1, template->len, file), template->len);
    assert_int_equal(fclose(file), 0);
}

/* Live it once. Gives whether the fault came on the way. */
static bool live(const struct vfs_fault *fault, bool is_new)
{
    struct life life = {.fault = *fault, .step = "?"};
    memset(life.id.bytes, 7, sizeof(life.id.bytes));
    memset(life.next_id.bytes, 8, sizeof(life.next_id.bytes));
    lite_world_make(&life.world);
    life.begins_us = life.world.manual.wall.us;
    struct sight before = {.is_there = false};
    bool has_failed = false;
    vfs_rest();
    if (!is_new)
        copy_template(&life.world, false);
    vfs_fail(fault);
    vfs_rest();
    for (size_t i = 0; i < STEPS_COUNT; i++) {
        pawli_manual_clock_turn_ms(&life.world.manual, steps[i].turn_ms);
        if (!has_failed)
            vfs_go_on();
        has_failed = take_step(&life, &steps[i], &before, has_failed) || has_failed;
        before = expected(&steps[i].after, life.begins_us);
    }
    lite_check(&life.world);
    lite_world_end(&life.world);
    return has_failed;
}

static void fail_each_of(struct vfs_fault fault, bool is_new)
{
    for (fault.nth = 1; live(&fault, is_new);) {
        fault.nth += NTH_STEP;
        assert_true(fault.nth < NTHS_MAX);
    }
    print_message("# %s: %ld failed\n", vfs_kind_name(fault.kind), (fault.nth - 1) / NTH_STEP);
    assert_true(fault.nth > 1); /* there are some */
}

/* In a life in a file that was there before. */
static void fail_each(enum vfs_kind kind, enum vfs_way way, bool is_lasting)
{
    fail_each_of((struct vfs_fault){.kind = kind, .way = way, .is_lasting = is_lasting}, false);
}

/* In a life that begins with the making of the file. */
static void fail_each_from_new(enum vfs_kind kind, enum vfs_way way)
{
    fail_each_of((struct vfs_fault){.kind = kind, .way = way}, true);
}

/* Bring an older file up to date. Gives whether the fault came on the way. */
static bool bring_up_to_date(const struct vfs_fault *fault)
{
    struct lite_world world;
    pawl_err err = {0};
    vfs_rest();
    lite_world_make(&world);
    copy_template(&world, true);
    vfs_fail(fault);
    pawl_code code = lite_world_try_open(&world, &err);
    vfs_rest();
    bool has_failed = vfs_has_failed();
    assert_true(code == PAWL_OK || (has_failed && code == PAWL_DOWN));
    lite_world_close(&world);
    int64_t version = lite_ask(&world, "SELECT value FROM pawl_meta WHERE name = 'version'");
    int64_t steps_kept = lite_ask(&world, "SELECT count(*) FROM pawl_meta WHERE name GLOB '0*'");
    assert_true(version == 2 || (version == 1 && code != PAWL_OK));
    assert_int_equal(steps_kept > 0, version == 2); /* all or nothing */
    lite_world_open(&world);
    lite_check(&world);
    assert_int_equal(lite_ask(&world, "SELECT value FROM pawl_meta WHERE name = 'version'"), 2);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 6);
    lite_world_end(&world);
    return has_failed;
}

static void fail_each_upgrade(struct vfs_fault fault)
{
    for (fault.nth = 1; bring_up_to_date(&fault);) {
        fault.nth += NTH_STEP;
        assert_true(fault.nth < NTHS_MAX);
    }
    print_message("# %s: %ld failed\n", vfs_kind_name(fault.kind), (fault.nth - 1) / NTH_STEP);
    assert_true(fault.nth > 1); /* there are some */
}

/* ---- each kind */

static void reads(void **state)
{
    (void)state; /* none */
    fail_each_from_new(VFS_READ, VFS_REFUSED);
}

static void writes_refused(void **state)
{
    (void)state; /* none */
    fail_each(VFS_WRITE, VFS_REFUSED, false);
}

static void writes_done_all_the_same(void **state)
{
    (void)state; /* none */
    fail_each_from_new(VFS_WRITE, VFS_DONE);
    fail_each(VFS_WRITE, VFS_DONE, true);
}

static void writes_torn(void **state)
{
    (void)state; /* none */
    fail_each(VFS_WRITE, VFS_TORN, false);
}

static void writes_to_a_full_disk(void **state)
{
    (void)state; /* none */
    fail_each(VFS_WRITE, VFS_FULL, true);
}

static void syncs(void **state)
{
    (void)state; /* none */
    fail_each_from_new(VFS_SYNC, VFS_REFUSED);
    fail_each(VFS_SYNC, VFS_REFUSED, true);
}

static void opens_and_sizes(void **state)
{
    (void)state; /* none */
    fail_each_from_new(VFS_OPEN, VFS_REFUSED);
    fail_each_from_new(VFS_SIZE, VFS_REFUSED);
}

static void locks(void **state)
{
    (void)state; /* none */
    fail_each_from_new(VFS_LOCK, VFS_REFUSED);
    fail_each_from_new(VFS_SHM_MAP, VFS_REFUSED);
    fail_each_from_new(VFS_SHM_LOCK, VFS_REFUSED);
    fail_each(VFS_SHM_LOCK, VFS_REFUSED, true);
}

static void upgrades(void **state)
{
    (void)state; /* none */
    fail_each_upgrade((struct vfs_fault){.kind = VFS_READ, .way = VFS_REFUSED});
    fail_each_upgrade((struct vfs_fault){.kind = VFS_WRITE, .way = VFS_REFUSED});
    fail_each_upgrade((struct vfs_fault){.kind = VFS_WRITE, .way = VFS_TORN});
    fail_each_upgrade((struct vfs_fault){.kind = VFS_WRITE, .way = VFS_DONE, .is_lasting = true});
    fail_each_upgrade((struct vfs_fault){.kind = VFS_SYNC, .way = VFS_REFUSED});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(writes_refused),
        cmocka_unit_test(writes_done_all_the_same),
        cmocka_unit_test(writes_torn),
        cmocka_unit_test(writes_to_a_full_disk),
        cmocka_unit_test(syncs),
        cmocka_unit_test(opens_and_sizes),
        cmocka_unit_test(locks),
        cmocka_unit_test(upgrades),
    };
    vfs_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
