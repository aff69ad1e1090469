/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_stress.c - the SQL functions under load: long transactions, rollbacks, late commits of many
 *               jobs, a held snapshot, lost leases.
 * Owns:  a server of its own; the books of what was acknowledged, claimed and done.
 * Never: counts on a certain order of events: every run is another one. Each thing asserted holds
 *        in all of them: none lost, none twice, none that was rolled back, ledgers without gaps.
 *
 * Usage: pg_stress [SECONDS [FILE.sql [QUIET_SECONDS]]]; the file is run after the installation:
 * that is how a function is broken to see this program fail.
 */
#include "race/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX       400000
#define BATCH_MAX      30
#define CLAIM_MAX      60
#define LATE_JOBS      3000 /* in one transaction that commits late */
#define LATE_BEHIND    300  /* are done before the first such does */
#define PRODUCERS      5
#define WORKERS        4
#define SECONDS_USUAL  6
#define QUIET_USUAL    40 /* seconds; the longest without progress */
#define SHORT_LEASE_MS 300

enum fate {
    FATE_NONE = 0,
    FATE_ACKED = 1,
    FATE_ROLLED_BACK = 2
};

/* What is known of one job. Written by one thread at a time, but for claims: hence atomics. */
struct book {
    atomic_int fate;
    atomic_int held; /* 1: claimed and neither given back nor abandoned */
    atomic_int done;
};

struct stress {
    struct crew crew;
    struct book *books; /* JOBS_MAX */
    atomic_int next_job;
    atomic_int producers_left;
    atomic_llong done_count;
    atomic_bool is_over;
    atomic_bool has_been_late;
    int quiet_seconds;
};

/* ---- producers */

/* A job's number stands at the end of its id, behind a start that is not in numbers' order. */
static bool enqueue(struct actor *actor, int first, int count)
{
    (void)snprintf(
        actor->sql, CREW_SQL_MAX,
        "select count(*) from pawl.enqueue_batch(0, array_fill('stress'::text, array[%d]), "
        "array(select (substr(md5(n::text), 1, 20) || lpad(to_hex(n), 12, '0'))::uuid "
        "from generate_series(%d, %d) n), array_fill('x'::bytea, array[%d]), "
        "p_is_new => %s) where verdict = 'OK'",
        count, first, first + count - 1, count, crew_below(actor, 2) == 0 ? "true" : "false");
    PGresult *answer = crew_ask(actor, actor->sql);
    bool is_done = answer != NULL && strtol(PQgetvalue(answer, 0, 0), NULL, 10) == count;
    if (answer != NULL && !is_done)
        crew_complain(actor->crew, "%s of %d jobs were enqueued", PQgetvalue(answer, 0, 0), count);
    PQclear(answer);
    return is_done;
}

static void set_fate(struct stress *stress, int first, int count, enum fate fate)
{
    for (int i = first; i < first + count; i++)
        atomic_store(&stress->books[i].fate, (int)fate);
}

/*
 * Until many jobs that were enqueued meanwhile are done. So it is certain, and no matter of chance,
 * that claims went past one transaction which then commits: marks that forget it lose its jobs.
 */
static void await_others(struct stress *stress)
{
    long long enough = atomic_load(&stress->done_count) + LATE_BEHIND;
    for (int i = 0; i < 100 * QUIET_USUAL && atomic_load(&stress->done_count) < enough; i++)
        crew_pause_ms(10);
}

/* One transaction: some jobs, open for a while, then committed or not. */
static void produce_once(struct actor *actor)
{
    struct stress *stress = actor->play;
    bool is_slow = actor->number == 0;
    int count = is_slow ? LATE_JOBS : 1 + (int)crew_below(actor, BATCH_MAX);
    int first = atomic_fetch_add(&stress->next_job, count);
    if (first + count > JOBS_MAX) {
        atomic_store(&stress->is_over, true);
        return;
    }
    /* Known as rolled back until the commit is sure: a claim that comes before is our fault. */
    bool is_in = crew_run(actor, "begin") && enqueue(actor, first, count);
    unsigned chance = crew_below(actor, 100);
    crew_pause_ms(is_slow       ? 500 + crew_below(actor, 2000)
                  : chance < 10 ? crew_below(actor, 400)
                  : chance < 30 ? crew_below(actor, 20)
                                : 0);
    bool is_first = is_slow && !atomic_exchange(&stress->has_been_late, true);
    if (is_first)
        await_others(stress);
    if (!is_in || (crew_below(actor, 10) == 0 && !is_first)) {
        set_fate(stress, first, count, FATE_ROLLED_BACK);
        (void)crew_run(actor, "rollback"); /* nothing is left of it */
        return;
    }
    set_fate(stress, first, count, FATE_ACKED);
    if (!crew_run(actor, "commit"))
        crew_complain(&stress->crew, "a commit of %d jobs failed", count);
}

static void *produce(void *user)
{
    struct actor *actor = user;
    struct stress *stress = actor->play;
    while (!crew_is_time_up(actor->crew) && !atomic_load(&stress->is_over))
        produce_once(actor);
    atomic_fetch_sub(&stress->producers_left, 1);
    return NULL;
}

/* ---- workers */

static int number_of(const char *id)
{
    return (int)strtol(id + 24, NULL, 16);
}

/* What has been claimed for good must be there, and nobody else's. */
static void note_claimed(struct stress *stress, const PGresult *jobs)
{
    for (int i = 0; i < PQntuples(jobs); i++) {
        struct book *book = &stress->books[number_of(PQgetvalue(jobs, i, 0))];
        if (atomic_load(&book->fate) != FATE_ACKED)
            crew_complain(&stress->crew, "%s was claimed, and never committed",
                          PQgetvalue(jobs, i, 0));
        if (atomic_exchange(&book->held, 1) != 0)
            crew_complain(&stress->crew, "%s was claimed twice", PQgetvalue(jobs, i, 0));
        if (atomic_load(&book->done) != 0)
            crew_complain(&stress->crew, "%s was claimed after it was done",
                          PQgetvalue(jobs, i, 0));
    }
}

static void note_free(struct stress *stress, const PGresult *jobs)
{
    for (int i = 0; i < PQntuples(jobs); i++)
        atomic_store(&stress->books[number_of(PQgetvalue(jobs, i, 0))].held, 0);
}

/* Let all of them succeed as a whole, where they may; told where they are, or not. True: they have.
 */
static bool succeed_all(struct actor *actor, const PGresult *jobs)
{
    int count = PQntuples(jobs);
    (void)snprintf(actor->sql, CREW_SQL_MAX,
                   "select coalesce(pawl.succeed_all('w%d', array_agg(u.i order by u.i), "
                   "array_agg(u.t order by u.i), min(u.v), null, %s), 0) from unnest(null::int4[]",
                   actor->number, crew_below(actor, 2) == 0 ? "array_agg(u.p)" : "null");
    crew_add_column(actor, jobs, 0, "uuid");
    crew_add_column(actor, jobs, 1, "uuid");
    crew_add_column(actor, jobs, 2, "int4");
    crew_add_column(actor, jobs, 3, "tid");
    size_t at = strlen(actor->sql);
    (void)snprintf(actor->sql + at, CREW_SQL_MAX - at, ") u(none, i, t, v, p)");
    PGresult *answer = crew_ask(actor, actor->sql);
    long done = answer != NULL ? strtol(PQgetvalue(answer, 0, 0), NULL, 10) : 0;
    if (done != 0 && done != count)
        crew_complain(actor->crew, "%ld of %d have succeeded", done, count);
    PQclear(answer);
    return done != 0;
}

/* Give all of them back, or settle all of them as `action`. False: to be tried again. */
static bool end_jobs(struct actor *actor, const PGresult *jobs, int action)
{
    int count = PQntuples(jobs);
    if (action == 0 && crew_below(actor, 2) == 0 && succeed_all(actor, jobs))
        return true;
    (void)snprintf(actor->sql, CREW_SQL_MAX, "select count(*) from pawl.%s(0, 'w%d'",
                   action < 0 ? "release_batch" : "settle_batch", actor->number);
    crew_add_column(actor, jobs, 0, "uuid");
    crew_add_column(actor, jobs, 1, "uuid");
    crew_add_column(actor, jobs, 2, "int4");
    size_t at = strlen(actor->sql);
    if (action >= 0)
        at += (size_t)snprintf(actor->sql + at, CREW_SQL_MAX - at,
                               ", array_fill(%d::int2, array[%d]), null, array_fill(%u::int8, "
                               "array[%d]), null, null, uuid_send(gen_random_uuid())",
                               action, count, crew_below(actor, 20), count);
    (void)snprintf(actor->sql + at, CREW_SQL_MAX - at, ") where verdict = 'OK'");
    PGresult *answer = crew_ask(actor, actor->sql);
    bool is_done = answer != NULL;
    if (is_done && strtol(PQgetvalue(answer, 0, 0), NULL, 10) != count)
        crew_complain(actor->crew, "%s of %d were ended by %d", PQgetvalue(answer, 0, 0), count,
                      action);
    PQclear(answer);
    return is_done;
}

static void note_done(struct stress *stress, const PGresult *jobs)
{
    for (int i = 0; i < PQntuples(jobs); i++)
        atomic_store(&stress->books[number_of(PQgetvalue(jobs, i, 0))].done, 1);
    atomic_fetch_add(&stress->done_count, PQntuples(jobs));
}

/* One claim in a transaction, which may be given up. Gives how many jobs were had for good. */
static int work_once(struct actor *actor)
{
    struct stress *stress = actor->play;
    bool is_short = crew_below(actor, 20) == 0;
    (void)snprintf(actor->sql, CREW_SQL_MAX,
                   "select id, lease_token, lease_version, coalesce(place, '(0,1)') from "
                   "pawl.claim_lines('{0}', 'w%d', "
                   "'{stress}', '{%u}', '{%d}', 10000, 1000000, "
                   "uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))",
                   actor->number, 1 + crew_below(actor, CLAIM_MAX),
                   is_short ? SHORT_LEASE_MS : 600000);
    PGresult *jobs = crew_run(actor, "begin") ? crew_ask(actor, actor->sql) : NULL;
    if (actor->number == 0 && crew_below(actor, 3) == 0)
        crew_pause_ms(crew_below(actor, 200));
    if (jobs == NULL || crew_below(actor, 100) < 15) {
        (void)crew_run(actor, "rollback"); /* nothing was taken */
        PQclear(jobs);
        return 0;
    }
    int count = PQntuples(jobs);
    /* Before the commit, because then somebody else may have them at once: a short lease ends. */
    note_claimed(stress, jobs);
    if (is_short)
        note_free(stress, jobs);
    if (!crew_run(actor, "commit"))
        crew_complain(&stress->crew, "a claim of %d could not be committed", count);
    unsigned chance = crew_below(actor, 100);
    if (count > 0 && !is_short) {
        int action = chance < 5 ? -1 : chance < 10 ? 3 : 0; /* release, snooze, succeed */
        if (action != 0)
            note_free(stress, jobs);
        else
            note_done(stress, jobs);
        while (!end_jobs(actor, jobs, action) && atomic_load(&stress->crew.faults) == 0)
            ;
    }
    PQclear(jobs);
    return count;
}

static void *work(void *user)
{
    struct actor *actor = user;
    struct stress *stress = actor->play;
    while (!atomic_load(&stress->is_over) && atomic_load(&stress->crew.faults) < 20)
        if (work_once(actor) == 0)
            crew_pause_ms(5);
    return NULL;
}

static void *reap(void *user)
{
    struct actor *actor = user;
    struct stress *stress = actor->play;
    while (!atomic_load(&stress->is_over)) {
        (void)crew_run(actor,
                       "select from pawl.reap_lines('{0}', 1000, uuid_send(gen_random_uuid()))");
        crew_pause_ms(200);
    }
    return NULL;
}

/* ---- the whole */

static long long acked(const struct stress *stress)
{
    long long count = 0;
    for (int i = 0; i < JOBS_MAX; i++)
        count += atomic_load(&stress->books[i].fate) == FATE_ACKED;
    return count;
}

/* Until all that was acknowledged is done, or nothing happens any more. */
static void wait_for_all(struct stress *stress)
{
    long long last = -1;
    for (int quiet = 0;
         quiet < 10 * stress->quiet_seconds && atomic_load(&stress->crew.faults) == 0; quiet++) {
        long long done = atomic_load(&stress->done_count);
        if (atomic_load(&stress->producers_left) == 0 && done >= acked(stress))
            return;
        quiet = done != last ? 0 : quiet;
        last = done;
        crew_pause_ms(100);
    }
}

/* Q-AT-LEAST-ONCE, Q-NEVER-AGAIN, Q-ONE-STATE, OL-APPEND-ONLY */
static void check(struct actor *actor)
{
    struct stress *stress = actor->play;
    int lost = 0;
    for (int i = 0; i < JOBS_MAX; i++)
        if (atomic_load(&stress->books[i].fate) == FATE_ACKED &&
            atomic_load(&stress->books[i].done) == 0 && ++lost <= 3)
            crew_complain(&stress->crew, "job %d was acknowledged and never done", i);
    if (lost > 0)
        crew_complain(&stress->crew, "lost: %d", lost);
    crew_expect_none(actor, "jobs left", "select count(*) from pawl.job");
    crew_expect_none(actor, "ledgers with gaps",
                     "select count(*) from (select job_id from pawl.attempt group by job_id "
                     "having count(*) <> max(attempt_no) or min(attempt_no) <> 1) g");
    crew_expect_none(actor, "successes not one per job",
                     "select count(*) from (select job_id from pawl.attempt group by job_id "
                     "having count(*) filter (where outcome = 0) <> 1) g");
}

#define ACTORS (PRODUCERS + WORKERS + 2)

static void play(struct stress *stress, long seconds)
{
    struct actor actors[ACTORS] = {{0}};
    bool is_open = true;
    for (int i = 0; i < ACTORS; i++) {
        is_open = crew_open(&stress->crew, &actors[i], i < PRODUCERS ? i : i - PRODUCERS) &&
                  is_open;
        actors[i].play = stress;
    }
    struct actor *reaper = &actors[ACTORS - 2];
    struct actor *watcher = &actors[ACTORS - 1];
    /* A snapshot that keeps what is dead from being removed, as long as jobs are produced. */
    if (!is_open || !crew_run(watcher, "begin isolation level repeatable read") ||
        !crew_run(watcher, "select 1")) {
        crew_complain(&stress->crew, "no connection");
    } else {
        crew_set_end(&stress->crew, seconds);
        atomic_store(&stress->producers_left, PRODUCERS);
        for (int i = 0; i < ACTORS - 1; i++)
            if (pthread_create(&actors[i].thread, NULL,
                               i < PRODUCERS          ? produce
                               : &actors[i] == reaper ? reap
                                                      : work,
                               &actors[i]) != 0)
                abort();
        for (int i = 0; i < PRODUCERS; i++)
            (void)pthread_join(actors[i].thread, NULL);
        wait_for_all(stress);
        atomic_store(&stress->is_over, true);
        for (int i = PRODUCERS; i < ACTORS - 1; i++)
            (void)pthread_join(actors[i].thread, NULL);
        (void)crew_run(watcher, "rollback");
        check(watcher);
    }
    for (int i = 0; i < ACTORS; i++)
        crew_close(&actors[i]);
}

int main(int argc, char **argv)
{
    struct stress stress = {.books = calloc(JOBS_MAX, sizeof(struct book)),
                            .quiet_seconds = argc > 3 ? (int)strtol(argv[3], NULL, 10)
                                                      : QUIET_USUAL};
    if (stress.books == NULL || !crew_install(&stress.crew, argc > 2 ? argv[2] : NULL)) {
        pg_server_remove(&stress.crew.server);
        free(stress.books);
        return 1;
    }
    play(&stress, argc > 1 ? strtol(argv[1], NULL, 10) : SECONDS_USUAL);
    (void)printf("%lld jobs acknowledged, %lld done, %d faults\n", acked(&stress),
                 (long long)atomic_load(&stress.done_count), atomic_load(&stress.crew.faults));
    bool is_good = atomic_load(&stress.crew.faults) == 0 && atomic_load(&stress.done_count) > 0;
    pg_server_remove(&stress.crew.server);
    free(stress.books);
    return is_good ? 0 : 1;
}
