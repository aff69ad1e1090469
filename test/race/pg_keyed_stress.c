/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_keyed_stress.c - ordering keys and a bound on what is in flight, under load: late commits and
 *                     rollbacks of producers, workers and completions, some under old snapshots;
 *                     retries, snoozes, releases, lost leases, failures, redrives, cancellations,
 *                     delays and deadlines, of few keys.
 * Owns:  the books of what was acknowledged, started and ended, by job and by key.
 * Never: counts on a certain order of events: every run is another one. Each thing asserted holds
 *        in all of them: RES-7 (order, exclusion, who holds the key keeps it), fences rise, the
 *        bound is kept, none is lost, none is stuck.
 *
 * Usage: pg_keyed_stress [SECONDS [FILE.sql [QUIET_SECONDS]]]; the file breaks something after the
 * installation, and there are more rounds then, until that shows.
 */
#include "race/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX       200000
#define BUSY_KEYS      6
#define SHARING        12 /* jobs in a row, some of which share a key that nobody else has */
#define KEYS           (BUSY_KEYS + JOBS_MAX / SHARING + 1)
#define BATCH_MAX      4
#define CLAIM_MAX      10
#define BOUND          9
#define PRODUCERS      6
#define WORKERS        4
#define OPERATORS      2
#define ACTORS         (PRODUCERS + WORKERS + OPERATORS + 2)
#define BACKLOG_MAX    150
#define SECONDS_USUAL  6
#define QUIET_USUAL    40 /* seconds; the longest without progress */
#define BROKEN_ROUNDS  8  /* in one of which it must show that the store is broken */
#define SHORT_LEASE_MS 150
#define NO_KEY         KEYS

/* What is known of one job. Of its times, those of its last enqueue or redrive. */
struct book {
    int key;
    bool is_acked;
    bool is_loose; /* somebody else may end it at any time: a cancellation, a deadline */
    bool is_done;
    int64_t invoked; /* before the call that put it in, and after its commit */
    int64_t committed;
    int64_t started; /* 0: not yet, since then */
};

struct key {
    int current;     /* the job that holds it, as far as we know; -1: none */
    int held;        /* the job that somebody works on; -1: none */
    int64_t fence;   /* the last one */
    int64_t invoked; /* of those that have started, the latest */
};

struct stress {
    struct crew crew;
    pthread_mutex_t mutex; /* of all below, but atomics */
    struct book *books;    /* JOBS_MAX */
    struct key *keys;      /* KEYS */
    int64_t starts;
    int jobs_count;
    int acked_count;
    int ended_count;
    atomic_int producers_left;
    atomic_bool is_over;
    int quiet_seconds;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int number_of(const char *id)
{
    return (int)strtol(id + 24, NULL, 16);
}

#define ID_OF_N "(substr(md5(n::text), 1, 20) || lpad(to_hex(n), 12, '0'))::uuid"

/* ---- producers */

static int take_numbers(struct stress *stress, struct actor *actor, int count)
{
    pthread_mutex_lock(&stress->mutex);
    int first = stress->jobs_count;
    bool has_room = first + count <= JOBS_MAX &&
                    stress->acked_count - stress->ended_count < BACKLOG_MAX;
    if (has_room) {
        stress->jobs_count += count;
        for (int i = first; i < first + count; i++) {
            unsigned chance = crew_below(actor, 10);
            int key = chance == 0   ? NO_KEY
                      : chance <= 3 ? (int)crew_below(actor, BUSY_KEYS)
                                    : BUSY_KEYS + i / SHARING;
            stress->books[i] = (struct book){.key = key, .invoked = now_ns()};
        }
    }
    pthread_mutex_unlock(&stress->mutex);
    return has_room ? first : -1;
}

static bool enqueue(struct actor *actor, int first, int count)
{
    struct stress *stress = actor->play;
    char *sql = actor->sql;
    size_t at = (size_t)snprintf(
        sql, CREW_SQL_MAX,
        "select count(*) from pawl.enqueue_batch(0, array_fill('stress'::text, array[%d]), "
        "array(select " ID_OF_N " from generate_series(%d, %d) n), array_fill('x'::bytea, "
        "array[%d]), p_ordering_keys => '{",
        count, first, first + count - 1, count);
    for (int i = first; i < first + count; i++) {
        int key = stress->books[i].key; /* ours alone until it is committed */
        at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, key == NO_KEY ? "%snull" : "%sk%d",
                               i > first ? "," : "", key);
    }
    at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "}', p_priorities => '{");
    for (int i = first; i < first + count; i++)
        at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "%s%d", i > first ? "," : "",
                               crew_below(actor, 4) == 0 ? 1 : 5);
    at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "}', p_delays_ms => '{");
    for (int i = first; i < first + count; i++)
        at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "%s%u", i > first ? "," : "",
                               crew_below(actor, 8) == 0 ? crew_below(actor, 40) : 0);
    at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "}', p_starts_within_ms => '{");
    for (int i = first; i < first + count; i++) {
        stress->books[i].is_loose = crew_below(actor, 15) == 0;
        at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "%s%s", i > first ? "," : "",
                               stress->books[i].is_loose ? "60" : "null");
    }
    (void)snprintf(sql + at, CREW_SQL_MAX - at, "}') where verdict = 'OK'");
    PGresult *answer = crew_ask(actor, sql);
    bool is_done = answer != NULL && strtol(PQgetvalue(answer, 0, 0), NULL, 10) == count;
    if (answer != NULL && !is_done)
        crew_complain(actor->crew, "%s of %d were enqueued", PQgetvalue(answer, 0, 0), count);
    PQclear(answer);
    return is_done;
}

static void produce_once(struct actor *actor)
{
    struct stress *stress = actor->play;
    int count = 1 + (int)crew_below(actor, BATCH_MAX);
    bool is_old = actor->number == 1; /* its snapshot is older than what it does */
    if (!crew_run(actor, is_old ? "begin isolation level repeatable read" : "begin") ||
        !crew_run(actor, "select 1"))
        return;
    if (is_old)
        crew_pause_ms(crew_below(actor, 30));
    int first = take_numbers(stress, actor, count);
    bool is_in = first >= 0 && enqueue(actor, first, count);
    unsigned chance = crew_below(actor, 100);
    crew_pause_ms(first < 0            ? 20
                  : actor->number == 0 ? 200 + crew_below(actor, 600)
                  : chance < 20        ? crew_below(actor, 50)
                  : chance < 50        ? crew_below(actor, 5)
                                       : 0);
    if (!is_in || crew_below(actor, 10) == 0) {
        (void)crew_run(actor, "rollback"); /* nothing is left of it */
        return;
    }
    pthread_mutex_lock(&stress->mutex); /* before the commit: it may be claimed at once */
    for (int i = first; i < first + count; i++)
        stress->books[i].is_acked = true;
    stress->acked_count += count;
    pthread_mutex_unlock(&stress->mutex);
    if (!crew_run(actor, "commit"))
        crew_complain(&stress->crew, "a commit of %d jobs failed", count);
    pthread_mutex_lock(&stress->mutex);
    for (int i = first; i < first + count; i++)
        stress->books[i].committed = now_ns();
    pthread_mutex_unlock(&stress->mutex);
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

/* ---- what must hold at each start; under the mutex */

/*
 * A job whose commit is known to have ended before another one's call began must not start after
 * it. Of those that have started, the latest call is enough to know. Where a job's own commit has
 * not been answered yet, it is of now.
 */
static void note_order(struct stress *stress, int number)
{
    struct book *book = &stress->books[number];
    struct key *key = &stress->keys[book->key];
    if (book->started != 0)
        return; /* again: it holds the key, and note_start() looks at that */
    book->started = now_ns();
    if (book->committed != 0 && book->committed < key->invoked)
        crew_complain(&stress->crew, "job %d starts after one of its key that came later", number);
    if (book->invoked > key->invoked)
        key->invoked = book->invoked;
}

static void note_start(struct stress *stress, int number, int64_t fence)
{
    struct book *book = &stress->books[number];
    if (!book->is_acked)
        crew_complain(&stress->crew, "job %d was claimed, and never committed", number);
    if (book->is_done)
        crew_complain(&stress->crew, "job %d was claimed after it was done", number);
    if (book->key == NO_KEY) {
        if (fence != 0)
            crew_complain(&stress->crew, "job %d has a fence, and no key", number);
        return;
    }
    struct key *key = &stress->keys[book->key];
    stress->starts++;
    if (key->held >= 0)
        crew_complain(&stress->crew, "job %d starts while %d is in flight", number, key->held);
    if (key->current >= 0 && key->current != number && !stress->books[key->current].is_loose)
        crew_complain(&stress->crew, "job %d starts while %d holds the key", number, key->current);
    if (fence <= key->fence)
        crew_complain(&stress->crew, "job %d has the fence %lld after %lld", number,
                      (long long)fence, (long long)key->fence);
    key->fence = fence;
    key->current = number;
    key->held = number;
    note_order(stress, number);
}

/* Before the call that lets go of them is sent: from then on somebody else may have them. */
static void note_free(struct stress *stress, const PGresult *jobs, bool is_end)
{
    pthread_mutex_lock(&stress->mutex);
    for (int i = 0; i < PQntuples(jobs); i++) {
        int number = number_of(PQgetvalue(jobs, i, 0));
        struct book *book = &stress->books[number];
        struct key *key = book->key != NO_KEY ? &stress->keys[book->key] : NULL;
        if (key != NULL && key->held == number)
            key->held = -1;
        if (key != NULL && is_end && key->current == number)
            key->current = -1;
    }
    pthread_mutex_unlock(&stress->mutex);
}

/* ---- workers */

static PGresult *claim(struct actor *actor, bool is_short)
{
    struct stress *stress = actor->play;
    (void)snprintf(actor->sql, CREW_SQL_MAX,
                   "select id, lease_token, lease_version, coalesce(fence, 0) from "
                   "pawl.claim_lines('{0}', 'w%d', '{stress}', '{%u}', '{%d}', 10000, 1000000, "
                   "uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))",
                   actor->number, 1 + crew_below(actor, CLAIM_MAX),
                   is_short ? SHORT_LEASE_MS : 600000);
    PGresult *jobs = crew_run(actor, "begin") ? crew_ask(actor, actor->sql) : NULL;
    if (crew_below(actor, 5) == 0)
        crew_pause_ms(crew_below(actor, 30));
    if (jobs == NULL || crew_below(actor, 10) == 0) {
        (void)crew_run(actor, "rollback"); /* nothing was taken */
        PQclear(jobs);
        return NULL;
    }
    pthread_mutex_lock(&stress->mutex); /* before the commit: a short lease may end at once */
    for (int i = 0; i < PQntuples(jobs); i++)
        note_start(stress, number_of(PQgetvalue(jobs, i, 0)),
                   strtoll(PQgetvalue(jobs, i, 3), NULL, 10));
    pthread_mutex_unlock(&stress->mutex);
    if (is_short)
        note_free(stress, jobs, false);
    if (!crew_run(actor, "commit"))
        crew_complain(&stress->crew, "a claim could not be committed");
    return jobs;
}

enum {
    RELEASE = -1,
    SUCCEED = 0,
    RETRY = 1,
    FAIL = 2,
    SNOOZE = 3
};

/* One try to end them, in a transaction that may be given up or stay open. */
static bool try_to_end(struct actor *actor, const PGresult *jobs, int action)
{
    int count = PQntuples(jobs);
    if (!crew_run(actor,
                  crew_below(actor, 3) == 0 ? "begin isolation level repeatable read" : "begin") ||
        !crew_run(actor, "select 1")) /* the snapshot, where it is one for all */
        return false;
    crew_pause_ms(crew_below(actor, 4) == 0 ? crew_below(actor, 8) : 0);
    (void)snprintf(actor->sql, CREW_SQL_MAX, "select count(*) from pawl.%s(0, 'w%d'",
                   action == RELEASE ? "release_batch" : "settle_batch", actor->number);
    crew_add_column(actor, jobs, 0, "uuid");
    crew_add_column(actor, jobs, 1, "uuid");
    crew_add_column(actor, jobs, 2, "int4");
    size_t at = strlen(actor->sql);
    if (action != RELEASE)
        at += (size_t)snprintf(actor->sql + at, CREW_SQL_MAX - at,
                               ", array_fill(%d::int2, array[%d]), null, array_fill(%u::int8, "
                               "array[%d]), null, null, uuid_send(gen_random_uuid())",
                               action, count, crew_below(actor, 20), count);
    (void)snprintf(actor->sql + at, CREW_SQL_MAX - at, ") where verdict = 'OK'");
    PGresult *answer = crew_ask(actor, actor->sql);
    bool is_in = answer != NULL;
    if (is_in && strtol(PQgetvalue(answer, 0, 0), NULL, 10) != count)
        crew_complain(actor->crew, "%s of %d were ended by %d", PQgetvalue(answer, 0, 0), count,
                      action);
    PQclear(answer);
    crew_pause_ms(crew_below(actor, 5) == 0 ? crew_below(actor, 10) : 0);
    if (!is_in || crew_below(actor, 20) == 0) {
        (void)crew_run(actor, "rollback"); /* and again */
        return false;
    }
    return crew_run(actor, "commit");
}

static void note_done(struct stress *stress, const PGresult *jobs)
{
    pthread_mutex_lock(&stress->mutex);
    for (int i = 0; i < PQntuples(jobs); i++)
        stress->books[number_of(PQgetvalue(jobs, i, 0))].is_done = true;
    pthread_mutex_unlock(&stress->mutex);
}

static int work_once(struct actor *actor)
{
    struct stress *stress = actor->play;
    bool is_short = crew_below(actor, 25) == 0;
    PGresult *jobs = claim(actor, is_short);
    int count = jobs != NULL ? PQntuples(jobs) : 0;
    if (count > 0 && !is_short) {
        unsigned chance = crew_below(actor, 100);
        int action = chance < 5    ? RELEASE
                     : chance < 12 ? RETRY
                     : chance < 17 ? SNOOZE
                     : chance < 22 ? FAIL
                                   : SUCCEED;
        crew_pause_ms(crew_below(actor, 3) == 0 ? crew_below(actor, 15) : 0);
        note_free(stress, jobs, action == SUCCEED || action == FAIL);
        while (!try_to_end(actor, jobs, action) && atomic_load(&stress->crew.faults) == 0)
            ;
        if (action == SUCCEED)
            note_done(stress, jobs);
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
            crew_pause_ms(3);
    return NULL;
}

/* ---- operators and the reaper */

/* Cancels one of the last jobs, whatever its state. */
static void cancel_one(struct actor *actor)
{
    struct stress *stress = actor->play;
    pthread_mutex_lock(&stress->mutex);
    int back = (int)crew_below(actor, BACKLOG_MAX);
    int number = stress->jobs_count > back ? stress->jobs_count - 1 - back : -1;
    if (number >= 0)
        stress->books[number].is_loose = true; /* from here on it may end without its holder */
    pthread_mutex_unlock(&stress->mutex);
    if (number < 0)
        return;
    (void)snprintf(actor->sql, CREW_SQL_MAX,
                   "select count(*) from (select " ID_OF_N " i from (values (%d)) v(n)) x, "
                   "pawl.cancel_batch(0, array[x.i])",
                   number);
    (void)crew_run(actor, actor->sql); /* where it is refused for now, another one comes */
}

/* Redrives a job that has failed: it comes again, as the last. */
static void redrive_one(struct actor *actor)
{
    struct stress *stress = actor->play;
    PGresult *dead = crew_ask(actor, "select id from pawl.dead_letter where reason = 3 "
                                     "order by finished_at desc limit 1");
    int number = dead != NULL && PQntuples(dead) == 1 ? number_of(PQgetvalue(dead, 0, 0)) : -1;
    PQclear(dead);
    if (number < 0 || crew_is_time_up(actor->crew))
        return;
    pthread_mutex_lock(&stress->mutex);
    stress->books[number].invoked = now_ns();
    stress->books[number].committed = 0;
    stress->books[number].started = 0;
    pthread_mutex_unlock(&stress->mutex);
    (void)snprintf(actor->sql, CREW_SQL_MAX,
                   "select count(*) from (select " ID_OF_N " i from (values (%d)) v(n)) x, "
                   "pawl.redrive_batch(0, array[x.i]) r where r.verdict = 'OK'",
                   number);
    bool is_done = crew_run(actor, actor->sql);
    pthread_mutex_lock(&stress->mutex);
    if (is_done && stress->books[number].started == 0)
        stress->books[number].committed = now_ns();
    pthread_mutex_unlock(&stress->mutex);
}

static void *operate(void *user)
{
    struct actor *actor = user;
    struct stress *stress = actor->play;
    while (!atomic_load(&stress->is_over)) {
        if (actor->number == 0)
            cancel_one(actor);
        else
            redrive_one(actor);
        crew_pause_ms(actor->number == 0 ? 10 : 50);
    }
    return NULL;
}

/* And how much is in flight: never more than may be. */
static void *reap(void *user)
{
    struct actor *actor = user;
    struct stress *stress = actor->play;
    while (!atomic_load(&stress->is_over)) {
        (void)crew_run(actor,
                       "select from pawl.reap_lines('{0}', 1000, uuid_send(gen_random_uuid()))");
        for (int i = 0; i < 10; i++) {
            crew_expect_none(actor, "too many in flight",
                             "select greatest(count(*) - 9, 0) from pawl.job where state = 1");
            crew_pause_ms(20);
        }
    }
    return NULL;
}

/* ---- the whole */

static int count_left(struct actor *actor)
{
    PGresult *answer = crew_ask(actor, "select count(*) from pawl.job");
    int left = answer != NULL ? (int)strtol(PQgetvalue(answer, 0, 0), NULL, 10) : -1;
    PQclear(answer);
    return left;
}

/* Until nothing is left, or nothing happens any more. How far it is also paces the producers. */
static void wait_for_all(struct stress *stress, struct actor *watcher)
{
    int64_t last_starts = -1;
    for (int quiet = 0; quiet < 20 * stress->quiet_seconds; quiet++) {
        int left = count_left(watcher);
        pthread_mutex_lock(&stress->mutex);
        stress->ended_count = left >= 0 ? stress->acked_count - left : stress->ended_count;
        int64_t starts = stress->starts;
        pthread_mutex_unlock(&stress->mutex);
        if (atomic_load(&stress->crew.faults) > 0 ||
            (atomic_load(&stress->producers_left) == 0 && left == 0))
            return;
        quiet = starts != last_starts ? 0 : quiet;
        last_starts = starts;
        crew_pause_ms(50);
    }
}

/* Q-AT-LEAST-ONCE, Q-NEVER-AGAIN, OL-APPEND-ONLY */
static void check(struct actor *actor)
{
    struct stress *stress = actor->play;
    (void)crew_run(actor,
                   "select from pawl.claim_lines('{0}', 'last', '{stress}', '{9}', '{null}', "
                   "9, 1000000, sha256('1'))"); /* fills, or removes, what is vacant */
    crew_expect_none(actor, "jobs left", "select count(*) from pawl.job");
    crew_expect_none(actor, "keys held by nobody", "select count(*) from pawl.hold");
    crew_expect_none(actor, "ledgers with gaps",
                     "select count(*) from (select job_id from pawl.attempt group by job_id "
                     "having count(*) <> max(attempt_no) or min(attempt_no) <> 1) g");
    crew_expect_none(actor, "successes not one per job, nor a failure",
                     "select count(*) from (select job_id from pawl.attempt group by job_id "
                     "having count(*) filter (where outcome = 0) + (select count(*) from "
                     "pawl.dead_letter d where d.id = job_id) <> 1) g");
    PGresult *answer = crew_ask(actor, "select count(distinct job_id) from pawl.attempt");
    if (answer != NULL && strtol(PQgetvalue(answer, 0, 0), NULL, 10) != stress->acked_count)
        crew_complain(&stress->crew, "%d acknowledged, and %s have ended", stress->acked_count,
                      PQgetvalue(answer, 0, 0));
    PQclear(answer);
}

static void begin_all(struct stress *stress, struct actor *actors)
{
    void *(*const parts[])(void *) = {produce, work, operate, reap};
    atomic_store(&stress->producers_left, PRODUCERS);
    for (int i = 0; i < ACTORS - 1; i++) {
        int part = i < PRODUCERS                         ? 0
                   : i < PRODUCERS + WORKERS             ? 1
                   : i < PRODUCERS + WORKERS + OPERATORS ? 2
                                                         : 3;
        if (pthread_create(&actors[i].thread, NULL, parts[part], &actors[i]) != 0)
            abort();
    }
}

static void play(struct stress *stress, long seconds)
{
    struct actor actors[ACTORS] = {{0}};
    bool is_open = true;
    for (int i = 0; i < ACTORS; i++) {
        int number = i < PRODUCERS             ? i
                     : i < PRODUCERS + WORKERS ? i - PRODUCERS
                                               : i - PRODUCERS - WORKERS;
        is_open = crew_open(&stress->crew, &actors[i], number) && is_open;
        actors[i].play = stress;
    }
    struct actor *watcher = &actors[ACTORS - 1];
    if (!is_open || !crew_run(watcher, "select pawl.queue_set('stress', 30000, null, 10000, 10000, "
                                       "1, 20, null, null, 9)")) {
        crew_complain(&stress->crew, "no connection");
    } else {
        crew_set_end(&stress->crew, seconds);
        begin_all(stress, actors);
        while (!crew_is_time_up(&stress->crew) && atomic_load(&stress->crew.faults) == 0) {
            int left = count_left(watcher);
            pthread_mutex_lock(&stress->mutex);
            stress->ended_count = left >= 0 ? stress->acked_count - left : stress->ended_count;
            pthread_mutex_unlock(&stress->mutex);
            crew_pause_ms(50);
        }
        for (int i = 0; i < PRODUCERS; i++)
            (void)pthread_join(actors[i].thread, NULL);
        wait_for_all(stress, watcher);
        atomic_store(&stress->is_over, true);
        for (int i = PRODUCERS; i < ACTORS - 1; i++)
            (void)pthread_join(actors[i].thread, NULL);
        check(watcher);
    }
    for (int i = 0; i < ACTORS; i++)
        crew_close(&actors[i]);
}

/* One round of it, on a store of its own; whether all was well. */
static bool play_round(long seconds, const char *broken_by, int quiet_seconds)
{
    struct stress stress = {.books = calloc(JOBS_MAX, sizeof(struct book)),
                            .keys = calloc(KEYS, sizeof(struct key)),
                            .mutex = PTHREAD_MUTEX_INITIALIZER,
                            .quiet_seconds = quiet_seconds};
    bool is_good = stress.books != NULL && stress.keys != NULL;
    for (int i = 0; is_good && i < KEYS; i++)
        stress.keys[i].current = stress.keys[i].held = -1;
    is_good = is_good && crew_install(&stress.crew, broken_by);
    if (is_good) {
        play(&stress, seconds);
        (void)printf("%d jobs acknowledged, %lld starts under a key, %d faults\n",
                     stress.acked_count, (long long)stress.starts,
                     atomic_load(&stress.crew.faults));
        is_good = atomic_load(&stress.crew.faults) == 0 && stress.starts > 0;
    }
    pg_server_remove(&stress.crew.server);
    free(stress.keys);
    free(stress.books);
    return is_good;
}

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : SECONDS_USUAL;
    const char *broken_by = argc > 2 && argv[2][0] != '\0' ? argv[2] : NULL;
    int quiet_seconds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : QUIET_USUAL;
    bool is_good = true;
    /* Chance decides whether what is broken on purpose shows. */
    for (int i = 0; is_good && i < (broken_by != NULL ? BROKEN_ROUNDS : 1); i++)
        is_good = play_round(seconds, broken_by, quiet_seconds);
    return is_good ? 0 : 1;
}
