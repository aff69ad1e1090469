-- SPDX-License-Identifier: Apache-2.0
-- What a file of Pawl holds. Instants are microseconds since 1970 UTC, durations milliseconds; NULL
-- means none, or what the queue's settings say. States, reasons, outcomes: the numbers of pawl.h.

-- version: of this schema. position: the last one drawn; it numbers jobs and gives them their places.
-- pruning: 1 only inside a transaction that prunes. payload_max: bytes that pawl_enqueue takes.
-- mends: commits that failed and were undone for certain.
CREATE TABLE pawl_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pawl_meta (name, value)
VALUES ('version', 1), ('position', 0), ('pruning', 0), ('payload_max', 1048576), ('mends', 0);

-- A queue is kept as long as it has jobs, history or settings (is_set).
CREATE TABLE pawl_queue (
    queue_id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    lease_ms INTEGER NOT NULL DEFAULT 30000,
    execution_timeout_ms INTEGER,
    max_retries INTEGER NOT NULL DEFAULT 3,
    max_lost_leases INTEGER NOT NULL DEFAULT 10,
    backoff_base_ms INTEGER NOT NULL DEFAULT 500,
    backoff_max_ms INTEGER NOT NULL DEFAULT 30000,
    keep_succeeded_ms INTEGER DEFAULT 604800000, -- NULL: for ever
    keep_failed_ms INTEGER DEFAULT 2592000000,
    is_paused INTEGER NOT NULL DEFAULT 0,
    is_set INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Live jobs: Ready (0) and InFlight (1). Among the Ready ones of a queue the order of claims is
-- priority, rank (0 came back, 1 its time has come, 2 arrived), timed_at, position.
CREATE TABLE pawl_job (
    number INTEGER NOT NULL PRIMARY KEY, -- never used twice
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    queue_id INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1)),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    rank INTEGER NOT NULL CHECK (rank BETWEEN 0 AND 2),
    timed_at INTEGER NOT NULL,
    position INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    start_by INTEGER,
    created_at INTEGER NOT NULL,
    retries INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0),
    lost_leases INTEGER NOT NULL DEFAULT 0 CHECK (lost_leases >= 0),
    lost_in_a_row INTEGER NOT NULL DEFAULT 0 CHECK (lost_in_a_row >= 0),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    lease_version INTEGER NOT NULL DEFAULT 0 CHECK (lease_version >= 0),
    reason INTEGER NOT NULL DEFAULT 0 CHECK (reason BETWEEN 0 AND 10),
    max_retries INTEGER,
    timeout_ms INTEGER,
    backoff_base_ms INTEGER,
    backoff_max_ms INTEGER,
    dedupe_key TEXT,
    payload_len INTEGER NOT NULL CHECK (payload_len >= 0),
    ordering_key TEXT, -- this and the next two: see 005_order.sql
    key_seq INTEGER,
    fence INTEGER,
    -- While InFlight, all of them; otherwise none.
    claimed_by TEXT CHECK ((state = 1) = (claimed_by IS NOT NULL)),
    lease_token BLOB CHECK ((state = 1) = (lease_token IS NOT NULL) AND (lease_token IS NULL OR length(lease_token) = 16)),
    claimed_at INTEGER CHECK ((state = 1) = (claimed_at IS NOT NULL)),
    lease_expires_at INTEGER CHECK ((state = 1) = (lease_expires_at IS NOT NULL)),
    run_until INTEGER CHECK ((state = 1) = (run_until IS NOT NULL)),
    unstarted_until INTEGER CHECK ((state = 1) = (unstarted_until IS NOT NULL)),
    lease_ms INTEGER CHECK ((state = 1) = (lease_ms IS NOT NULL)),
    lease_timeout_ms INTEGER CHECK ((state = 1) = (lease_timeout_ms IS NOT NULL)),
    is_started INTEGER NOT NULL DEFAULT 0 CHECK (is_started IN (0, 1)),
    is_cancel_asked INTEGER NOT NULL DEFAULT 0 CHECK (is_cancel_asked IN (0, 1)),
    -- When somebody has to look at it: the lease's end, or the start-by deadline of a Ready job.
    deadline INTEGER CHECK (deadline IS CASE state WHEN 1 THEN lease_expires_at ELSE start_by END),
    CHECK (state = 0 OR lease_version >= 1)
) STRICT;
CREATE INDEX pawl_job_ready ON pawl_job (queue_id, priority, rank, timed_at, position, next_attempt_at) WHERE state = 0;
CREATE INDEX pawl_job_lease ON pawl_job (queue_id, lease_expires_at, id) WHERE state = 1;
CREATE INDEX pawl_job_queue ON pawl_job (queue_id, id);
CREATE INDEX pawl_job_held ON pawl_job (claimed_by, id) WHERE state = 1;
CREATE INDEX pawl_job_deadline ON pawl_job (deadline, id) WHERE deadline IS NOT NULL;
CREATE UNIQUE INDEX pawl_job_key ON pawl_job (queue_id, dedupe_key) WHERE dedupe_key IS NOT NULL;

-- Jobs that have ended, Succeeded (2) and Failed (3), until their history is pruned.
CREATE TABLE pawl_ended (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    number INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (2, 3)),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    next_attempt_at INTEGER NOT NULL,
    start_by INTEGER,
    created_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    retries INTEGER NOT NULL CHECK (retries >= 0),
    lost_leases INTEGER NOT NULL CHECK (lost_leases >= 0),
    lost_in_a_row INTEGER NOT NULL CHECK (lost_in_a_row >= 0),
    attempts INTEGER NOT NULL CHECK (attempts >= 1),
    lease_version INTEGER NOT NULL CHECK (lease_version >= 0),
    reason INTEGER NOT NULL CHECK (reason BETWEEN 0 AND 10),
    max_retries INTEGER,
    timeout_ms INTEGER,
    backoff_base_ms INTEGER,
    backoff_max_ms INTEGER,
    dedupe_key TEXT,
    payload_len INTEGER NOT NULL CHECK (payload_len >= 0),
    ordering_key TEXT,
    key_seq INTEGER,
    fence INTEGER,
    is_discarded INTEGER NOT NULL DEFAULT 0 CHECK (is_discarded IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_ended_age ON pawl_ended (queue_id, state, finished_at, id);
CREATE INDEX pawl_ended_failed ON pawl_ended (id) WHERE state = 3;
CREATE INDEX pawl_ended_failed_queue ON pawl_ended (queue_id, id) WHERE state = 3;

-- Payloads, apart so that a lease that is granted or renewed does not write them again. None where a
-- payload is empty, and none of jobs that succeeded or were discarded.
CREATE TABLE pawl_payload (
    number INTEGER NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

-- Who has shown himself.
CREATE TABLE pawl_worker (
    name TEXT NOT NULL PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    last_seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
