/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare_sqlite.c - fills and drains a queue by bare statements on the store's own tables in SQLite:
 * the same changes of rows, in the same batches, each one transaction.
 * Owns:  the statements, and a connection with the store's settings.
 * Never: checks a token, a worker, a deadline, an id; looks for expired leases, keys or limits.
 */
#include "turn.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "sqlite:"

enum statement {
    BEGIN,
    COMMIT,
    CLAIM,
    PAYLOAD,
    ATTEMPT,
    ENDED,
    DELETE_PAYLOAD,
    DELETE_JOB,
    INSERT_JOB,
    INSERT_PAYLOAD,
    STATEMENTS_COUNT
};

static const char *const texts[STATEMENTS_COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [CLAIM] = "UPDATE pawl_job SET state = 1, lease_version = lease_version + 1, claimed_by = ?2, "
              "lease_token = randomblob(16), claimed_at = ?3, lease_expires_at = ?3 + 30000000, "
              "run_until = ?3 + 90000000, unstarted_until = ?3 + 150000000, lease_ms = 30000, "
              "lease_timeout_ms = 90000, deadline = ?3 + 30000000 WHERE number IN "
              "(SELECT number FROM pawl_job INDEXED BY pawl_job_claimable WHERE state = 0 "
              "AND is_waiting = 0 AND queue_id = 1 AND priority = 5 AND rank = 2 "
              "ORDER BY timed_at, position LIMIT ?1) RETURNING number, id, lease_version",
    [PAYLOAD] = "SELECT bytes FROM pawl_payload WHERE number = ?1",
    [ATTEMPT] = "INSERT INTO pawl_attempt (id, attempt_no, outcome, reason, ended_by, "
                "job_version, claimed_by, claimed_at, finished_at, token_digest) "
                "SELECT id, attempts + 1, 0, 0, 0, lease_version, claimed_by, claimed_at, ?2, 1 "
                "FROM pawl_job WHERE number = ?1",
    [ENDED] = "INSERT INTO pawl_ended (id, number, queue_id, state, priority, next_attempt_at, "
              "start_by, created_at, finished_at, retries, lost_leases, lost_in_a_row, attempts, "
              "lease_version, reason, max_retries, timeout_ms, backoff_base_ms, "
              "backoff_max_ms, dedupe_key, payload_len) "
              "SELECT id, number, queue_id, 2, priority, next_attempt_at, start_by, created_at, "
              "?2, retries, lost_leases, 0, attempts + 1, lease_version, 0, max_retries, "
              "timeout_ms, backoff_base_ms, backoff_max_ms, dedupe_key, payload_len "
              "FROM pawl_job WHERE number = ?1",
    [DELETE_PAYLOAD] = "DELETE FROM pawl_payload WHERE number = ?1",
    [DELETE_JOB] = "DELETE FROM pawl_job WHERE number = ?1",
    [INSERT_JOB] = "INSERT INTO pawl_job (number, id, queue_id, state, priority, rank, timed_at, "
                   "position, next_attempt_at, created_at, payload_len) "
                   "VALUES (?1, ?2, 1, 0, 5, 2, 0, ?1, ?3, ?3, ?4)",
    [INSERT_PAYLOAD] = "INSERT INTO pawl_payload (number, bytes) VALUES (?1, ?2)",
};

struct bare {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS_COUNT];
};

static bool open_bare(const struct turn *turn, struct bare *bare)
{
    static const char settings[] = "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY";
    if (turn->store == NULL || strncmp(turn->store, PREFIX, strlen(PREFIX)) != 0)
        return turn_fail("store", "it must be a file of SQLite");
    if (sqlite3_open(turn->store + strlen(PREFIX), &bare->db) != SQLITE_OK ||
        sqlite3_exec(bare->db, settings, NULL, NULL, NULL) != SQLITE_OK)
        return turn_fail("the file", sqlite3_errmsg(bare->db));
    for (int i = 0; i < STATEMENTS_COUNT; i++) {
        if (sqlite3_prepare_v3(bare->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &bare->statements[i], NULL) != SQLITE_OK)
            return turn_fail(texts[i], sqlite3_errmsg(bare->db));
    }
    return true;
}

static void close_bare(struct bare *bare)
{
    for (int i = 0; i < STATEMENTS_COUNT; i++)
        (void)sqlite3_finalize(bare->statements[i]); /* it has told what it was */
    (void)sqlite3_close(bare->db);
}

static int64_t wall_us(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->wall(clock->user).us;
}

/* Run a statement to its end with one or two numbers. */
static bool run(struct bare *bare, enum statement which, int64_t first, int64_t second)
{
    sqlite3_stmt *statement = bare->statements[which];
    int count = sqlite3_bind_parameter_count(statement), rc = SQLITE_ROW;
    if (count > 0)
        (void)sqlite3_bind_int64(statement, 1, first); /* here and below: it has so many */
    if (count > 1)
        (void)sqlite3_bind_int64(statement, 2, second);
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* told by the step */
    return rc == SQLITE_DONE || turn_fail(texts[which], sqlite3_errmsg(bare->db));
}

/* ---- drain */

static bool claim(struct bare *bare, int64_t most, int64_t *numbers, size_t *ret_count)
{
    sqlite3_stmt *statement = bare->statements[CLAIM];
    size_t count = 0;
    if (!run(bare, BEGIN, 0, 0))
        return false;
    (void)sqlite3_bind_int64(statement, 1, most);
    (void)sqlite3_bind_text(statement, 2, WORKER, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 3, wall_us());
    int rc = sqlite3_step(statement);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement))
        numbers[count++] = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    if (rc != SQLITE_DONE)
        return turn_fail("claim", sqlite3_errmsg(bare->db));
    for (size_t i = 0; i < count; i++) {
        if (!run(bare, PAYLOAD, numbers[i], 0))
            return false;
    }
    *ret_count = count;
    return run(bare, COMMIT, 0, 0);
}

static bool settle(struct bare *bare, const int64_t *numbers, size_t count)
{
    int64_t now_us = wall_us();
    bool is_good = run(bare, BEGIN, 0, 0);
    for (size_t i = 0; is_good && i < count; i++)
        is_good = run(bare, ATTEMPT, numbers[i], now_us) && run(bare, ENDED, numbers[i], now_us) &&
                  run(bare, DELETE_PAYLOAD, numbers[i], 0) && run(bare, DELETE_JOB, numbers[i], 0);
    return is_good && run(bare, COMMIT, 0, 0);
}

bool turn_bare_sqlite_drain(const struct turn *turn, struct turn_result *result)
{
    struct bare bare = {.db = NULL};
    int64_t *numbers = calloc((size_t)turn->batch, sizeof(*numbers));
    size_t count = 1;
    bool is_good = numbers != NULL && turn_fill_all(turn, result) && open_bare(turn, &bare);
    int64_t began_us = turn_now_us();
    while (is_good && count > 0)
        is_good = claim(&bare, turn->batch, numbers, &count) && settle(&bare, numbers, count);
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    close_bare(&bare);
    free(numbers);
    return is_good && turn_check_all(turn);
}

/* ---- enqueue */

static bool insert(const struct turn *turn, struct bare *bare, int64_t number)
{
    static const char payload[PAYLOAD_BYTES_MAX] = {0};
    const pawl_random *random = pawl_random_system();
    /* Ids rise, as those of the store do. */
    uint64_t id[2] = {0, random->next(random->user)};
    for (int i = 0; i < 8; i++)
        ((char *)id)[i] = (char)((uint64_t)number >> (56 - 8 * i));
    sqlite3_stmt *job = bare->statements[INSERT_JOB], *bytes = bare->statements[INSERT_PAYLOAD];
    (void)sqlite3_bind_blob(job, 2, id, sizeof(id), SQLITE_TRANSIENT);
    (void)sqlite3_bind_int64(job, 3, wall_us());
    (void)sqlite3_bind_int64(job, 4, turn->payload);
    (void)sqlite3_bind_int64(job, 1, number);
    (void)sqlite3_bind_int64(bytes, 1, number);
    (void)sqlite3_bind_blob(bytes, 2, payload, (int)turn->payload, SQLITE_STATIC);
    bool is_good = sqlite3_step(job) == SQLITE_DONE && sqlite3_step(bytes) == SQLITE_DONE;
    (void)sqlite3_reset(job);
    (void)sqlite3_reset(bytes);
    return is_good || turn_fail("insert", sqlite3_errmsg(bare->db));
}

bool turn_bare_sqlite_enqueue(const struct turn *turn, struct turn_result *result)
{
    struct bare bare = {.db = NULL};
    struct turn nothing = *turn;
    nothing.jobs = 0; /* makes the file */
    bool is_good = turn_fill_all(&nothing, result) && open_bare(turn, &bare);
    int64_t began_us = turn_now_us();
    for (int64_t at = 0; is_good && at < turn->jobs; at++) {
        bool is_first = at % turn->batch == 0;
        bool is_last = (at + 1) % turn->batch == 0 || at + 1 == turn->jobs;
        is_good = (!is_first || run(&bare, BEGIN, 0, 0)) && insert(turn, &bare, at + 1) &&
                  (!is_last || run(&bare, COMMIT, 0, 0));
    }
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    close_bare(&bare);
    return is_good;
}
