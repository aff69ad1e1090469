/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_processes.c - several processes on one file of the SQLite store, which each of them may be
 * the first to make. Each enqueues jobs under ids that are known, claims whatever there is, and
 * settles it. First all of them live: each job is claimed once and done once. Then they are killed
 * while they work, and others come: each job that was acknowledged is done, once, and no ledger has
 * a gap. Then both again with ordering keys and a bound on what is in flight: no two attempts of a
 * key overlap, they come in the order of the enqueues, and the bound is never exceeded. Prints TAP.
 * Owns:  the processes, and the bill at the end.
 * Never: uses a connection across fork().
 */
#include "support/scratch.h"

#include "pawl/pawl.h"

#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES   4
#define JOBS_EACH   150
#define JOBS_ALL    (PROCESSES * JOBS_EACH)
#define BATCH       5
#define KILLS       12
#define LEASE_MS    200
#define QUEUE       "mail"
#define SECONDS_MAX 120
#define KEYS        7
#define IN_FLIGHT   3

#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)

/* In memory that all processes share: each writes only its own slots. */
struct shared {
    int acknowledged[PROCESSES]; /* jobs that were enqueued so far */
    int claims[JOBS_ALL];        /* how often each was claimed; good while one at a time can */
    int worked[PROCESSES];       /* settles so far */
};

struct crew {
    struct scratch scratch;
    struct shared *shared;
    bool is_killing;
    bool is_keyed; /* and bounded */
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "# process %ld: %s: %s\n", (long)getpid(), what, why);
    _exit(1);
}

static pawl_id id_of(int job)
{
    pawl_id id = {{0x01, 0x90}};
    id.bytes[6] = 0x70;
    id.bytes[8] = 0x80;
    id.bytes[14] = (uint8_t)(job >> 8);
    id.bytes[15] = (uint8_t)job;
    return id;
}

static int job_of(const pawl_id *id)
{
    return id->bytes[14] << 8 | id->bytes[15];
}

/* ---- one process */

/* Enqueue one more of this process's jobs; those after its last life go on where it ended. */
static void produce(const struct crew *crew, pawl_store *store, int process)
{
    int *done = &crew->shared->acknowledged[process];
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_err err;
    if (*done == JOBS_EACH)
        return;
    char key[16];
    (void)snprintf(key, sizeof(key), "key-%d", *done % KEYS); /* fits */
    pawl_enqueue_init(&row);
    row.queue = QUEUE;
    row.ordering_key = crew->is_keyed ? key : NULL;
    row.id = id_of(process * JOBS_EACH + *done);
    row.payload = "payload";
    row.payload_len = 7;
    if (pawl_enqueue(store, &row, 1, &enqueued, &err) != PAWL_OK)
        die("enqueue", err.text);
    /* EXISTS: it was killed between the commit and writing that down. */
    if (enqueued.code != PAWL_OK && !(crew->is_killing && enqueued.code == PAWL_EXISTS))
        die("enqueue", pawl_code_name(enqueued.code));
    ++*done;
}

static void settle(const struct crew *crew, pawl_store *store, const char *worker,
                   const pawl_job *job)
{
    pawl_settle_row row;
    pawl_settled settled;
    pawl_err err;
    pawl_settle_init(&row);
    row.lease = (pawl_lease){job->id, job->token, job->lease_version, job->place};
    if (pawl_settle(store, worker, &row, 1, &settled, &err) != PAWL_OK)
        die("settle", err.text);
    /* A slow machine may lose a lease while processes are killed; otherwise leases are long. */
    if (settled.code != PAWL_OK && !crew->is_killing)
        die("settle", pawl_code_name(settled.code));
}

static void work(const struct crew *crew, pawl_store *store, const char *worker, int process)
{
    pawl_claim_line line = {
        .queue = QUEUE, .jobs_max = BATCH, .lease_ms = crew->is_killing ? LEASE_MS : PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = worker, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job jobs[BATCH];
    size_t count;
    pawl_err err;
    bool is_hint;
    if (pawl_claim(store, &args, jobs, BATCH, &count, &err) != PAWL_OK)
        die("claim", err.text);
    if (crew->is_keyed && pawl_wait(store, 1, &is_hint, &err) != PAWL_OK) /* others come, too */
        die("wait", err.text);
    for (size_t i = 0; i < count; i++) {
        crew->shared->claims[job_of(&jobs[i].id)]++;
        settle(crew, store, worker, &jobs[i]);
        crew->shared->worked[process]++;
        pawl_job_clear(&jobs[i]);
    }
    if (count == 0 && pawl_wait(store, 20, &is_hint, &err) != PAWL_OK)
        die("wait", err.text);
}

/* Whether all that will ever be there has succeeded. */
static bool is_all_done(pawl_store *store)
{
    pawl_stats stats;
    size_t count;
    pawl_err err;
    if (pawl_queue_stats(store, NULL, &stats, 1, &count, &err) != PAWL_OK)
        die("stats", err.text);
    return count == 1 && stats.succeeded == JOBS_ALL;
}

static void set_queue(const struct crew *crew, pawl_store *store)
{
    pawl_queue_settings settings;
    pawl_err err;
    pawl_queue_settings_init(&settings);
    /* A job that is often killed, or whose lease ends on a slow machine, is no poison here. */
    settings.max_lost_leases = 1000;
    settings.backoff_base_ms = settings.backoff_max_ms = 1;
    if (crew->is_keyed)
        settings.max_in_flight = IN_FLIGHT;
    if (pawl_queue_set(store, QUEUE, &settings, &err) != PAWL_OK)
        die("queue_set", err.text);
}

static void live(const struct crew *crew, int process)
{
    pawl_sqlite_options options;
    pawl_sqlite *sqlite;
    pawl_store *store;
    pawl_err err;
    char worker[32];
    (void)alarm(SECONDS_MAX);
    (void)snprintf(worker, sizeof(worker), "worker-%ld", (long)getpid());
    pawl_sqlite_options_init(&options);
    options.path = crew->scratch.path;
    options.call_timeout_ms = 60000;
    if (pawl_sqlite_new(&options, &sqlite, &err) != PAWL_OK)
        die("new", err.text);
    if (pawl_sqlite_open(sqlite, &store, &err) != PAWL_OK)
        die("open", err.text);
    set_queue(crew, store);
    while (!is_all_done(store)) {
        for (int i = 0; i < (crew->is_keyed ? BATCH : 1); i++) /* so that jobs have to wait */
            produce(crew, store, process);
        work(crew, store, worker, process);
    }
    pawl_store_close(store);
    pawl_sqlite_free(sqlite);
    _exit(0);
}

/* ---- all of them */

static pid_t start(const struct crew *crew, int process)
{
    pid_t child = fork();
    if (child == 0)
        live(crew, process);
    return child;
}

static int progress(const struct crew *crew)
{
    int sum = 0;
    for (int i = 0; i < PROCESSES; i++)
        sum += *(volatile int *)&crew->shared->acknowledged[i] +
               *(volatile int *)&crew->shared->worked[i];
    return sum;
}

/* Kill one after the other, each after the crew has got on a bit, and put another in its place. */
static bool kill_some(const struct crew *crew, pid_t *children)
{
    for (int kills = 0; kills < KILLS; kills++) {
        int victim = kills % PROCESSES;
        int until = progress(crew) + 5 + kills;
        while (progress(crew) < until && progress(crew) < 2 * JOBS_ALL - 20)
            (void)poll(NULL, 0, 1); /* nothing to wait on: the point is to strike at random */
        (void)kill(children[victim], SIGKILL);
        if (waitpid(children[victim], NULL, 0) != children[victim])
            return false;
        children[victim] = start(crew, victim);
    }
    return true;
}

static bool run_crew(struct crew *crew)
{
    pid_t children[PROCESSES];
    bool is_well = true;
    for (int i = 0; i < PROCESSES; i++)
        children[i] = start(crew, i);
    if (crew->is_killing)
        is_well = kill_some(crew, children);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        if (waitpid(children[i], &status, 0) != children[i] || status != 0)
            is_well = false;
    }
    return is_well;
}

static int64_t ask(const struct crew *crew, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    int64_t number = -1;
    if (sqlite3_open(crew->scratch.path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK) {
        if (sqlite3_step(stmt) == SQLITE_ROW)
            number = sqlite3_column_int64(stmt, 0);
        (void)sqlite3_finalize(stmt);
    }
    (void)sqlite3_close(db);
    return number;
}

static bool is_right(const struct crew *crew, const char *what, int64_t number, int64_t wanted)
{
    (void)crew; /* for the look of it */
    if (number != wanted)
        (void)printf("# %s: %lld, not %lld\n", what, (long long)number, (long long)wanted);
    return number == wanted;
}

static bool check_bill(const struct crew *crew)
{
    bool is_well = is_right(crew, "succeeded",
                            ask(crew, "SELECT count(*) FROM pawl_ended WHERE state = 2"), JOBS_ALL);
    is_well &= is_right(crew, "live", ask(crew, "SELECT count(*) FROM pawl_job"), 0);
    is_well &= is_right(crew, "completions",
                        ask(crew, "SELECT count(*) FROM pawl_attempt WHERE outcome = 0"), JOBS_ALL);
    is_well &= is_right(crew, "jobs completed twice or not",
                        ask(crew,
                            "SELECT count(*) FROM pawl_ended AS e WHERE 1 <> (SELECT count(*) "
                            "FROM pawl_attempt AS a WHERE a.id = e.id AND outcome = 0)"),
                        0);
    is_well &= is_right(crew, "gaps",
                        ask(crew, "SELECT count(*) FROM pawl_ended AS e WHERE attempts <> (SELECT "
                                  "count(*) FROM pawl_attempt AS a WHERE a.id = e.id) OR attempts "
                                  "<> (SELECT max(attempt_no) FROM pawl_attempt AS a WHERE a.id = "
                                  "e.id)"),
                        0);
    is_well &= is_right(crew, "damage",
                        ask(crew, "SELECT count(*) FROM pragma_integrity_check WHERE "
                                  "integrity_check <> 'ok'"),
                        0);
    for (int i = 0; i < JOBS_ALL && !crew->is_killing; i++)
        is_well &= is_right(crew, "claims of one job", crew->shared->claims[i], 1);
    return is_well;
}

/* Attempts as the ledger tells them, each from its claim to its end. */
#define ATTEMPTS                                                                         \
    "(SELECT e.id, e.ordering_key, e.number, a.attempt_no, a.claimed_at, a.finished_at " \
    "FROM pawl_attempt AS a JOIN pawl_ended AS e USING (id)) "

/* Jobs of a process and key whose number is below that of one which was enqueued before them. */
static int64_t count_misplaced(const struct crew *crew)
{
    int64_t last[PROCESSES][KEYS] = {0};
    int64_t misplaced = 0;
    sqlite3 *db;
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_open(crew->scratch.path, &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT id, number FROM pawl_ended ORDER BY id", -1, &stmt, NULL) !=
            SQLITE_OK)
        misplaced = -1;
    while (misplaced >= 0 && sqlite3_step(stmt) == SQLITE_ROW) {
        int job = job_of(sqlite3_column_blob(stmt, 0));
        int64_t *before = &last[job / JOBS_EACH][job % JOBS_EACH % KEYS];
        int64_t number = sqlite3_column_int64(stmt, 1);
        misplaced += number < *before;
        *before = number;
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return misplaced;
}

/* RES-7 */
static bool check_order(const struct crew *crew)
{
    bool is_well = is_right(crew, "attempts that began before the one before them had ended",
                            ask(crew, "SELECT count(*) FROM (SELECT claimed_at, lag(finished_at) "
                                      "OVER (PARTITION BY ordering_key ORDER BY number, "
                                      "attempt_no) AS ended_at FROM " ATTEMPTS
                                      ") WHERE claimed_at < ended_at"),
                            0);
    is_well &= is_right(crew, "jobs that stand before an earlier one of their process",
                        count_misplaced(crew), 0);
    is_well &= is_right(crew, "attempts beside more than the bound allows",
                        ask(crew, "SELECT count(*) FROM " ATTEMPTS
                                  "AS a WHERE (SELECT count(*) FROM " ATTEMPTS
                                  "AS b WHERE b.claimed_at <= a.claimed_at AND b.finished_at > "
                                  "a.claimed_at) > " TEXT_OF(IN_FLIGHT)),
                        0);
    is_well &= is_right(crew, "keys",
                        ask(crew, "SELECT count(DISTINCT ordering_key) FROM "
                                  "pawl_ended"),
                        KEYS);
    is_well &= is_right(crew, "fewer fences than attempts",
                        ask(crew, "SELECT value < (SELECT count(*) FROM pawl_attempt) FROM "
                                  "pawl_meta WHERE name = 'fence'"),
                        0);
    return is_well;
}

static bool play(bool is_killing, bool is_keyed)
{
    struct crew crew = {.is_killing = is_killing, .is_keyed = is_keyed};
    crew.shared = mmap(NULL, sizeof(*crew.shared), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew.shared == MAP_FAILED || !scratch_make(&crew.scratch))
        return false;
    bool is_well = run_crew(&crew);
    is_well = check_bill(&crew) && is_well;
    is_well = (!is_keyed || check_order(&crew)) && is_well;
    scratch_remove(&crew.scratch);
    (void)munmap(crew.shared, sizeof(*crew.shared));
    return is_well;
}

int main(void)
{
    static const struct {
        bool is_killing, is_keyed;
        const char *name;
    } plays[] = {
        {false, false, "none is lost and none is claimed twice"},
        {true, false, "none is lost and none is done twice where processes are killed"},
        {false, true, "those of a key come one after the other, and few at a time"},
        {true, true, "so they do where processes are killed"},
    };
    const int count = sizeof(plays) / sizeof(plays[0]);
    bool is_well = true;
    (void)printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        (void)fflush(stdout);
        bool is_good = play(plays[i].is_killing, plays[i].is_keyed);
        (void)printf("%s %d - %s\n", is_good ? "ok" : "not ok", i + 1, plays[i].name);
        is_well = is_well && is_good;
    }
    return is_well ? 0 : 1;
}
