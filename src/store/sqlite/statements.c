/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * statements.c - the SQL of the SQLite store, but for what makes its tables (sql/).
 * Owns:  every text that is prepared; the order of the columns of a job.
 * Never: has a statement on the way of a job that reads more than it gives out (a test asks SQLite
 *        how it would run each); decides anything (core/job.c does).
 */
#include "store/sqlite/sqlite.h"

#include <assert.h>

/* A job, live or ended, in the order of pawli_sqlite_read_record(). */
#define LIVE                                                                                       \
    "number, id, queue_id, state, priority, rank, timed_at, position, next_attempt_at, start_by, " \
    "created_at, retries, lost_leases, lost_in_a_row, attempts, lease_version, reason, "           \
    "max_retries, timeout_ms, backoff_base_ms, backoff_max_ms, payload_len, NULL, 0, claimed_by, " \
    "lease_token, claimed_at, lease_expires_at, run_until, unstarted_until, lease_ms, "            \
    "lease_timeout_ms, is_started, is_cancel_asked, ordering_key, fence "
#define ENDED                                                                                     \
    "number, id, queue_id, state, priority, 0, 0, 0, next_attempt_at, start_by, created_at, "     \
    "retries, lost_leases, lost_in_a_row, attempts, lease_version, reason, max_retries, "         \
    "timeout_ms, backoff_base_ms, backoff_max_ms, payload_len, finished_at, is_discarded, NULL, " \
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, ordering_key, NULL "
#define QUEUE                                                                             \
    "queue_id, name, lease_ms, execution_timeout_ms, max_retries, max_lost_leases, "      \
    "backoff_base_ms, backoff_max_ms, keep_succeeded_ms, keep_failed_ms, max_in_flight, " \
    "is_paused, is_set "

/* What a walk by id chooses by: ?1 after, ?2 queue, ?3 states, ?4 reason, ?5 worker, ?6 unmarked,
 * ?8 ordering key. A walk by key through ended jobs goes past those of other keys. */
#define CHOSEN                                                                    \
    "AND id > ?1 AND (?2 IS NULL OR queue_id = ?2) AND ((1 << state) & ?3) <> 0 " \
    "AND (?4 = 0 OR reason = ?4) AND (?8 IS NULL OR ordering_key = ?8) "
#define LIVE_CHOSEN  CHOSEN "AND (?6 = 0 OR is_cancel_asked = 0) "
#define ENDED_CHOSEN CHOSEN "AND ?5 IS NULL AND (?6 = 0 OR is_discarded = 0) "

#define WORKLEASE                                                                       \
    "domain_id, domain, current_offset, lease_token, owner, acquired_at, retry_count, " \
    "lease_expires_at, backlog_first, backlog_count, (SELECT queued_offset "            \
    "FROM pawl_worklease_backlog AS b WHERE b.domain_id = w.domain_id AND b.seq = backlog_first) "

#define ENDPOINT                                                                                 \
    "name, url, topics, headers, fail_statuses, timeout_ms, rate_per_minute, ordering, format, " \
    "is_enabled, switched_at, switched_by, reason, failing_since, revision, created_at, "        \
    "changed_at "

#define EVENT "published_at, seq, id, type, is_minted, ordering_key, headers, payload "

/* A row of a new job, in the order of enqueue.c; and as many of something as go together. */
#define JOB_ROW "(?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define JOB_INTO                                                                        \
    "INTO pawl_job (number, id, queue_id, state, priority, rank, timed_at, position, "  \
    "next_attempt_at, start_by, deadline, created_at, max_retries, timeout_ms, "        \
    "backoff_base_ms, backoff_max_ms, dedupe_key, payload_len, ordering_key, key_seq, " \
    "is_waiting) VALUES "
#define TOGETHER(row) row ", " row ", " row ", " row ", " row ", " row ", " row ", " row
static_assert(ARRIVALS_MAX == 8, "so many rows stand in TOGETHER");

const char *const pawli_sqlite_texts[STATEMENTS_COUNT] = {
    [S_BEGIN] = "BEGIN",
    [S_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [S_COMMIT] = "COMMIT",
    [S_ROLLBACK] = "ROLLBACK",
    [S_SAVE] = "SAVEPOINT pawl_call",
    [S_SAVE_BACK] = "ROLLBACK TO pawl_call",
    [S_SAVE_END] = "RELEASE pawl_call",
    [S_DATA_VERSION] = "PRAGMA data_version",
    [S_DRAWN] = "SELECT value FROM pawl_meta WHERE name = ?1",
    [S_DRAWN_SET] = "UPDATE pawl_meta SET value = ?2 WHERE name = ?1",
    [S_MEND] = "UPDATE pawl_meta SET value = value + 1 WHERE name = 'mends'",
    [S_PRUNING] = "UPDATE pawl_meta SET value = ?1 WHERE name = 'pruning'",

    [S_EXISTS] = "SELECT 1 FROM pawl_job WHERE id = ?1 "
                 "UNION ALL SELECT 1 FROM pawl_ended WHERE id = ?1 LIMIT 1",
    [S_DEDUPE_HOLDER] = "SELECT id FROM pawl_job INDEXED BY pawl_job_dedupe "
                        "WHERE queue_id = ?1 AND dedupe_key = ?2 AND ordering_key IS NULL",
    [S_DEDUPE_HOLDER_ORDERED] = "SELECT id FROM pawl_job INDEXED BY pawl_job_dedupe_ordered "
                                "WHERE queue_id = ?1 AND dedupe_key = ?2 AND ordering_key = ?3",
    [S_DEDUPE_TAKEN] = "SELECT 1 FROM pawl_ended AS e "
                       "JOIN pawl_job AS j INDEXED BY pawl_job_dedupe "
                       "ON j.queue_id = e.queue_id AND j.dedupe_key = e.dedupe_key "
                       "AND j.ordering_key IS NULL WHERE e.id = ?1",
    [S_DEDUPE_TAKEN_ORDERED] = "SELECT 1 FROM pawl_ended AS e "
                               "JOIN pawl_job AS j INDEXED BY pawl_job_dedupe_ordered "
                               "ON j.queue_id = e.queue_id AND j.dedupe_key = e.dedupe_key "
                               "AND j.ordering_key = e.ordering_key WHERE e.id = ?1",
    [S_INSERT_JOB] = "INSERT " JOB_INTO JOB_ROW,
    [S_INSERT_PAYLOAD] = "INSERT INTO pawl_payload (number, bytes, headers) VALUES (?, ?, ?)",
    /* Where a row fails those before it stay, and the call that fails undoes them: to do so itself
     * the statement would keep a copy of each page. */
    [S_INSERT_JOBS] = "INSERT OR FAIL " JOB_INTO TOGETHER(JOB_ROW),
    [S_INSERT_PAYLOADS] =
        "INSERT OR FAIL INTO pawl_payload (number, bytes, headers) VALUES " TOGETHER("(?, ?, ?)"),
    [S_PAYLOAD] = "SELECT bytes, headers FROM pawl_payload WHERE number = ?1",
    [S_DELETE_PAYLOAD] = "DELETE FROM pawl_payload WHERE number = ?1",
    [S_LIVE] = "SELECT " LIVE "FROM pawl_job WHERE id = ?1",
    [S_ENDED] = "SELECT " ENDED "FROM pawl_ended WHERE id = ?1",
    [S_UPDATE_LIVE] =
        "UPDATE pawl_job SET state = ?2, rank = ?3, timed_at = ?4, position = ?5, "
        "next_attempt_at = ?6, start_by = ?7, retries = ?8, lost_leases = ?9, "
        "lost_in_a_row = ?10, attempts = ?11, lease_version = ?12, reason = ?13, "
        "claimed_by = ?14, lease_token = ?15, claimed_at = ?16, lease_expires_at = ?17, "
        "run_until = ?18, unstarted_until = ?19, lease_ms = ?20, lease_timeout_ms = ?21, "
        "is_started = ?22, is_cancel_asked = ?23, deadline = ?24, fence = ?25 WHERE number = ?1",
    /* Only what a renewal changes, so that it writes to the indexes by expiry only. */
    [S_RENEW_LIVE] = "UPDATE pawl_job SET lease_expires_at = ?2, run_until = ?3, lease_ms = ?4, "
                     "is_started = ?5, deadline = ?2 WHERE number = ?1",
    [S_DELETE_LIVE] = "DELETE FROM pawl_job WHERE number = ?1",
    [S_END] =
        "INSERT INTO pawl_ended (id, number, queue_id, state, priority, next_attempt_at, start_by, "
        "created_at, finished_at, retries, lost_leases, lost_in_a_row, attempts, lease_version, "
        "reason, max_retries, timeout_ms, backoff_base_ms, backoff_max_ms, dedupe_key, "
        "payload_len, ordering_key) "
        "SELECT id, number, queue_id, ?2, priority, ?3, ?4, created_at, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, max_retries, timeout_ms, backoff_base_ms, backoff_max_ms, dedupe_key, payload_len, "
        "ordering_key FROM pawl_job WHERE number = ?1",
    [S_DELETE_ENDED] = "DELETE FROM pawl_ended WHERE id = ?1",
    [S_REVIVE] =
        "INSERT INTO pawl_job (number, id, queue_id, state, priority, rank, timed_at, position, "
        "next_attempt_at, created_at, attempts, lease_version, reason, max_retries, timeout_ms, "
        "backoff_base_ms, backoff_max_ms, dedupe_key, payload_len, ordering_key, key_seq, "
        "is_waiting) "
        "SELECT number, id, queue_id, 0, priority, ?2, ?3, ?4, ?5, created_at, attempts, "
        "lease_version, reason, max_retries, timeout_ms, backoff_base_ms, backoff_max_ms, "
        "dedupe_key, payload_len, ordering_key, ?6, ?7 FROM pawl_ended WHERE id = ?1",
    [S_DISCARD] = "UPDATE pawl_ended SET is_discarded = 1 WHERE id = ?1",

    /* Whether a key has a first job; and who moves up where it has none. Asked one after the other:
     * in one statement SQLite would go through all that wait to find that none of them may. */
    [S_KEY_HELD] = "SELECT 1 FROM pawl_job INDEXED BY pawl_job_first "
                   "WHERE queue_id = ?1 AND ordering_key = ?2 AND is_waiting = 0",
    [S_KEY_NEXT] = "SELECT number, next_attempt_at FROM pawl_job INDEXED BY pawl_job_waiting "
                   "WHERE is_waiting = 1 AND queue_id = ?1 AND ordering_key = ?2 "
                   "ORDER BY key_seq LIMIT 1",
    [S_MOVE_UP] = "UPDATE pawl_job SET is_waiting = 0 WHERE number = ?1",

    [S_INSERT_ATTEMPT] =
        "INSERT INTO pawl_attempt (id, attempt_no, outcome, reason, ended_by, job_version, "
        "claimed_by, claimed_at, finished_at, error_code, error_text, token_digest, wire_sends) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [S_ATTEMPT] = "SELECT outcome, reason, ended_by, job_version, claimed_by, token_digest "
                  "FROM pawl_attempt WHERE id = ?1 AND attempt_no = ?2",
    [S_ATTEMPTS] = "SELECT attempt_no, outcome, reason, ended_by, job_version, claimed_by, "
                   "claimed_at, finished_at, error_code, error_text, wire_sends "
                   "FROM pawl_attempt WHERE id = ?1 AND attempt_no > ?2 "
                   "ORDER BY attempt_no LIMIT ?3",
    [S_DELETE_ATTEMPTS] = "DELETE FROM pawl_attempt WHERE id = ?1",

    /* The first priority and rank, from these on, that any Ready job of a queue has which does not
     * wait for its key. Not "above": SQLite would then go through all jobs of the rank that it is
     * to leave. */
    [S_NEXT_RANK] = "SELECT priority, rank FROM pawl_job INDEXED BY pawl_job_claimable "
                    "WHERE state = 0 AND is_waiting = 0 AND queue_id = ?1 "
                    "AND (priority, rank) >= (?2, ?3) "
                    "ORDER BY priority, rank LIMIT 1",
    /* Those of them that are due. A timed one is due at timed_at; of the others the due time has
     * passed, unless the clock was set back. */
    [S_READY] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_claimable "
                "WHERE state = 0 AND is_waiting = 0 AND queue_id = ?1 AND priority = ?2 "
                "AND rank = ?3 AND timed_at <= ?4 AND next_attempt_at <= ?4 ORDER BY timed_at, "
                "position LIMIT ?5",
    [S_EXPIRED] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_lease "
                  "WHERE state = 1 AND queue_id = ?1 AND lease_expires_at <= ?2 "
                  "ORDER BY lease_expires_at, id LIMIT ?3",
    [S_OVERDUE] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_overdue "
                  "WHERE deadline IS NOT NULL AND deadline <= ?1 ORDER BY deadline, id LIMIT ?2",
    [S_OLD] = "SELECT id, number FROM pawl_ended INDEXED BY pawl_ended_age "
              "WHERE queue_id = ?1 AND state = ?2 AND finished_at < ?3 "
              "ORDER BY finished_at, id LIMIT ?4",

    [S_MINE] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_held "
               "WHERE state = 1 AND claimed_by = ?1 AND id > ?2 AND lease_expires_at > ?3 "
               "ORDER BY id LIMIT ?4",
    [S_LIST_LIVE] = "SELECT " LIVE "FROM pawl_job WHERE true " LIVE_CHOSEN
                    "AND ?5 IS NULL ORDER BY id LIMIT ?7",
    [S_LIST_QUEUE] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_queue "
                     "WHERE queue_id = ?2 " LIVE_CHOSEN "AND ?5 IS NULL ORDER BY id LIMIT ?7",
    /* Goes through all jobs of the key, and no other, and puts them in order. */
    [S_LIST_KEY] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_first "
                   "WHERE queue_id = ?2 AND ordering_key = ?8 AND is_waiting = 0 " LIVE_CHOSEN
                   "AND ?5 IS NULL "
                   "UNION ALL SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_waiting "
                   "WHERE queue_id = ?2 AND ordering_key = ?8 AND is_waiting = 1 " LIVE_CHOSEN
                   "AND ?5 IS NULL "
                   "ORDER BY id LIMIT ?7",
    [S_LIST_HELD] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_held "
                    "WHERE state = 1 AND claimed_by = ?5 " LIVE_CHOSEN "ORDER BY id LIMIT ?7",
    /* Goes through all leases and puts them in order: there are as many as workers hold. */
    [S_LIST_IN_FLIGHT] = "SELECT " LIVE "FROM pawl_job INDEXED BY pawl_job_held "
                         "WHERE state = 1 " LIVE_CHOSEN "AND ?5 IS NULL ORDER BY id LIMIT ?7",
    [S_LIST_ENDED] = "SELECT " ENDED "FROM pawl_ended WHERE true " ENDED_CHOSEN
                     "ORDER BY id LIMIT ?7",
    [S_LIST_FAILED] = "SELECT " ENDED "FROM pawl_ended INDEXED BY pawl_ended_failed "
                      "WHERE state = 3 " ENDED_CHOSEN "ORDER BY id LIMIT ?7",
    [S_LIST_FAILED_QUEUE] = "SELECT " ENDED "FROM pawl_ended INDEXED BY pawl_ended_failed_queue "
                            "WHERE state = 3 AND queue_id = ?2 " ENDED_CHOSEN
                            "ORDER BY id LIMIT ?7",

    [S_QUEUE_BY_NAME] = "SELECT " QUEUE "FROM pawl_queue WHERE name = ?1",
    [S_QUEUE_BY_ID] = "SELECT " QUEUE "FROM pawl_queue WHERE queue_id = ?1",
    [S_QUEUE_AFTER] = "SELECT " QUEUE "FROM pawl_queue WHERE name > ?1 ORDER BY name LIMIT 1",
    [S_QUEUE_INSERT] = "INSERT INTO pawl_queue (name) VALUES (?1)",
    [S_QUEUE_SET] = "UPDATE pawl_queue SET lease_ms = ?2, execution_timeout_ms = ?3, "
                    "max_retries = ?4, max_lost_leases = ?5, backoff_base_ms = ?6, "
                    "backoff_max_ms = ?7, keep_succeeded_ms = ?8, keep_failed_ms = ?9, "
                    "max_in_flight = ?10, is_set = 1 WHERE queue_id = ?1",
    [S_QUEUE_PAUSE] = "UPDATE pawl_queue SET is_paused = ?2, is_set = 1 WHERE queue_id = ?1",
    [S_QUEUE_DROP] = "DELETE FROM pawl_queue WHERE queue_id = ?1 AND is_set = 0 "
                     "AND NOT EXISTS (SELECT 1 FROM pawl_job WHERE queue_id = ?1) "
                     "AND NOT EXISTS (SELECT 1 FROM pawl_ended WHERE queue_id = ?1)",
    [S_COUNT_READY] = "SELECT count(*), count(*) FILTER (WHERE next_attempt_at > ?2), "
                      "min(next_attempt_at) FROM pawl_job INDEXED BY pawl_job_claimable "
                      "WHERE state = 0 AND is_waiting = 0 AND queue_id = ?1",
    [S_COUNT_WAITING] = "SELECT count(*), count(*) FILTER (WHERE next_attempt_at > ?2), "
                        "min(next_attempt_at) FROM pawl_job INDEXED BY pawl_job_waiting "
                        "WHERE is_waiting = 1 AND queue_id = ?1",
    [S_COUNT_LEASES] = "SELECT count(*), count(*) FILTER (WHERE lease_expires_at <= ?2) "
                       "FROM pawl_job INDEXED BY pawl_job_lease WHERE state = 1 AND queue_id = ?1",
    [S_COUNT_ENDED] = "SELECT count(*) FROM pawl_ended INDEXED BY pawl_ended_age "
                      "WHERE queue_id = ?1 AND state = ?2",
    [S_WORKER_SEEN] =
        "INSERT INTO pawl_worker (name, kind, host, version, queues, since, last_seen) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (name) DO UPDATE SET "
        "kind = excluded.kind, host = excluded.host, version = excluded.version, "
        "queues = excluded.queues, last_seen = excluded.last_seen",
    [S_WORKER_ENDED] = "DELETE FROM pawl_worker WHERE name = ?1",
    [S_WORKERS] = "SELECT name, kind, host, version, queues, since, last_seen, "
                  "(SELECT count(*) FROM pawl_job WHERE state = 1 AND claimed_by = w.name) "
                  "FROM pawl_worker AS w WHERE name > ?1 ORDER BY name LIMIT ?2",
    [S_WORKERS_PRUNE] = "DELETE FROM pawl_worker WHERE last_seen < ?1 AND NOT EXISTS "
                        "(SELECT 1 FROM pawl_job WHERE state = 1 AND claimed_by = name)",

    [S_WL_DOMAIN] = "SELECT " WORKLEASE "FROM pawl_worklease AS w WHERE domain = ?1",
    [S_WL_DOMAINS] = "SELECT " WORKLEASE "FROM pawl_worklease AS w WHERE domain > ?1 "
                     "ORDER BY domain LIMIT ?2",
    [S_WL_MAKE] = "INSERT INTO pawl_worklease (domain) VALUES (?1)",
    [S_WL_WRITE] = "UPDATE pawl_worklease SET current_offset = ?2, lease_token = ?3, owner = ?4, "
                   "acquired_at = ?5, retry_count = ?6, lease_expires_at = ?7, "
                   "backlog_first = ?8, backlog_count = ?9 WHERE domain_id = ?1",
    [S_WL_WAITS] = "SELECT 1 FROM pawl_worklease_backlog WHERE domain_id = ?1 "
                   "AND queued_offset = ?2",
    [S_WL_PUSH] = "INSERT INTO pawl_worklease_backlog (domain_id, seq, queued_offset) "
                  "VALUES (?1, ?2, ?3)",
    [S_WL_POP] = "DELETE FROM pawl_worklease_backlog WHERE domain_id = ?1 AND seq = ?2",
    [S_WL_BACKLOG] = "SELECT queued_offset FROM pawl_worklease_backlog WHERE domain_id = ?1 "
                     "AND seq >= ?2 ORDER BY seq LIMIT ?3",
    /* The last interval that begins at an offset or below. */
    [S_WL_BELOW] = "SELECT first_offset, last_offset, is_failed FROM pawl_worklease_terminal "
                   "WHERE domain_id = ?1 AND first_offset <= ?2 "
                   "ORDER BY first_offset DESC LIMIT 1",
    [S_WL_ADD] = "INSERT INTO pawl_worklease_terminal (domain_id, first_offset, last_offset, "
                 "is_failed) VALUES (?1, ?2, ?3, ?4)",
    [S_WL_STRETCH] = "UPDATE pawl_worklease_terminal SET last_offset = ?3 "
                     "WHERE domain_id = ?1 AND first_offset = ?2",
    [S_WL_REMOVE] = "DELETE FROM pawl_worklease_terminal WHERE domain_id = ?1 "
                    "AND first_offset = ?2",
    [S_WL_TERMINAL] = "SELECT first_offset, last_offset, is_failed FROM pawl_worklease_terminal "
                      "WHERE domain_id = ?1 ORDER BY first_offset LIMIT ?3 OFFSET ?2",

    [S_ONCE_PRUNE] = "DELETE FROM pawl_once WHERE key IN (SELECT key FROM pawl_once "
                     "WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
    [S_ONCE_GET] = "SELECT digest, seed, at, held_until, answer FROM pawl_once "
                   "WHERE key = ?1 AND expires_at > ?2",
    [S_ONCE_ADD] = "INSERT OR REPLACE INTO pawl_once (key, digest, seed, at, held_until, "
                   "expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [S_ONCE_HOLD] = "UPDATE pawl_once SET held_until = ?2 WHERE key = ?1 AND answer IS NULL",
    [S_ONCE_KEEP] = "UPDATE pawl_once SET answer = ?2 WHERE key = ?1",
    [S_ONCE_DROP] = "DELETE FROM pawl_once WHERE key = ?1 AND answer IS NULL",

    /* From the latest back: whoever asks stops at the first that is too old. */
    [S_RECENT_ADDED] = "SELECT id, queue_id, state, created_at FROM pawl_job ORDER BY number DESC",
    [S_RECENT_ENDED] = "SELECT id, is_discarded FROM pawl_ended INDEXED BY pawl_ended_age "
                       "WHERE queue_id = ?1 AND state = ?2 AND finished_at > ?3 "
                       "ORDER BY finished_at DESC",

    [S_EP_GET] = "SELECT " ENDPOINT "FROM pawl_endpoint WHERE name = ?1",
    [S_EP_LIST] = "SELECT " ENDPOINT "FROM pawl_endpoint WHERE name > ?1 ORDER BY name LIMIT ?2",
    [S_EP_COUNT] = "SELECT count(*) FROM pawl_endpoint",
    [S_EP_ADD] = "INSERT INTO pawl_endpoint (name, url, topics, headers, fail_statuses, "
                 "timeout_ms, rate_per_minute, ordering, format, is_enabled, revision, created_at, "
                 "changed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, 1, ?10, ?10)",
    [S_EP_SET] = "UPDATE pawl_endpoint SET url = coalesce(?2, url), topics = coalesce(?3, topics), "
                 "headers = coalesce(?4, headers), fail_statuses = coalesce(?5, fail_statuses), "
                 "timeout_ms = coalesce(?6, timeout_ms), "
                 "rate_per_minute = coalesce(?7, rate_per_minute), "
                 "ordering = coalesce(?8, ordering), format = coalesce(?9, format), "
                 "revision = revision + 1, changed_at = ?10 WHERE name = ?1",
    [S_EP_TOUCH] = "UPDATE pawl_endpoint SET revision = revision + 1, changed_at = ?2 "
                   "WHERE name = ?1",
    [S_EP_TURN] = "UPDATE pawl_endpoint SET is_enabled = ?2, switched_at = ?3, switched_by = ?4, "
                  "reason = ?5, revision = revision + 1, changed_at = ?3, "
                  "failing_since = CASE WHEN ?2 THEN NULL ELSE failing_since END WHERE name = ?1",
    [S_EP_MARK] = "UPDATE pawl_endpoint SET failing_since = ?2 WHERE name = ?1",
    [S_EP_REMOVE] = "DELETE FROM pawl_endpoint WHERE name = ?1",
    [S_EP_SECRETS] = "SELECT secret, until FROM pawl_endpoint_secret WHERE name = ?1 "
                     "ORDER BY ordinal",
    [S_EP_SECRETS_CLEAR] = "DELETE FROM pawl_endpoint_secret WHERE name = ?1",
    [S_EP_SECRET_ADD] = "INSERT INTO pawl_endpoint_secret (name, ordinal, secret, until) "
                        "VALUES (?1, ?2, ?3, ?4)",
    [S_EP_TOPICS_CLEAR] = "DELETE FROM pawl_endpoint_topic WHERE name = ?1",
    [S_EP_TOPIC_ADD] = "INSERT INTO pawl_endpoint_topic (pattern, name) VALUES (?1, ?2)",
    [S_EP_JOBS] = "SELECT 1 FROM pawl_job WHERE queue_id = ?1 LIMIT 1",
    [S_EP_QUEUE_UNSET] = "UPDATE pawl_queue SET is_set = 0, is_paused = 0 WHERE queue_id = ?1",
    /* By the patterns that match: itself, everything, and everything below each word before its
     * last. */
    [S_EP_WANTING] =
        "WITH RECURSIVE dot (at) AS (SELECT instr(?1, '.') WHERE instr(?1, '.') > 0 "
        "UNION ALL SELECT at + instr(substr(?1, at + 1), '.') FROM dot "
        "WHERE instr(substr(?1, at + 1), '.') > 0) "
        "SELECT DISTINCT e.name, e.ordering FROM (SELECT '*' AS pattern UNION ALL SELECT ?1 "
        "UNION ALL SELECT substr(?1, 1, at) || '*' FROM dot) AS c "
        "CROSS JOIN pawl_endpoint_topic AS t ON t.pattern = c.pattern "
        "CROSS JOIN pawl_endpoint AS e ON e.name = t.name "
        "WHERE e.is_enabled = 1 ORDER BY e.name LIMIT ?2",

    /* Of an event that was published before, the first stays. */
    [S_EV_KEEP] = "INSERT INTO pawl_event (id, is_minted, type, ordering_key, published_at, "
                  "keep_until, headers, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) "
                  "ON CONFLICT (id) DO NOTHING",
    [S_EV_GET] = "SELECT " EVENT "FROM pawl_event WHERE id = ?1",
    [S_EV_RANGE] = "SELECT " EVENT "FROM pawl_event INDEXED BY pawl_event_published "
                   "WHERE (published_at, seq) > (?1, ?2) AND published_at < ?3 "
                   "ORDER BY published_at, seq LIMIT ?4",
    [S_EV_PRUNE] = "DELETE FROM pawl_event WHERE seq IN (SELECT seq FROM pawl_event "
                   "WHERE keep_until < ?1 ORDER BY keep_until LIMIT ?2)",
    [S_EV_PRUNED] = "SELECT changes()",
};
