-- SPDX-License-Identifier: Apache-2.0
-- Version 2: jobs in the order of a key, fences, bounds on what is in flight, and what workers serve. See ADR 0018.

-- fence: the last one drawn.
INSERT INTO pawl_meta (name, value) VALUES ('fence', 0);

ALTER TABLE pawl_queue ADD COLUMN max_in_flight INTEGER NOT NULL DEFAULT 0 CHECK (max_in_flight >= 0); -- 0: no bound

-- Of the live jobs of a queue and ordering_key the one with the lowest key_seq is the first; all others wait.
ALTER TABLE pawl_job ADD COLUMN is_waiting INTEGER NOT NULL DEFAULT 0
    CHECK (is_waiting = 0 OR (is_waiting = 1 AND state = 0 AND ordering_key IS NOT NULL));

-- No two of a key can be first, whoever writes.
CREATE UNIQUE INDEX pawl_job_first ON pawl_job (queue_id, ordering_key) WHERE ordering_key IS NOT NULL AND is_waiting = 0;
CREATE INDEX pawl_job_waiting ON pawl_job (queue_id, ordering_key, key_seq, next_attempt_at) WHERE is_waiting = 1;

-- What claims walk: nothing that waits is in it. Under a new name, as the one after it: what a program of version 1 that still has
-- the file open would claim or recover is refused to it, since it would let nobody through.
DROP INDEX pawl_job_ready;
CREATE INDEX pawl_job_claimable ON pawl_job (queue_id, priority, rank, timed_at, position, next_attempt_at)
    WHERE state = 0 AND is_waiting = 0;
DROP INDEX pawl_job_deadline;
CREATE INDEX pawl_job_overdue ON pawl_job (deadline, id) WHERE deadline IS NOT NULL;

-- A dedupe key is one within its ordering key, or among the jobs that have none.
DROP INDEX pawl_job_key;
CREATE UNIQUE INDEX pawl_job_dedupe ON pawl_job (queue_id, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND ordering_key IS NULL;
CREATE UNIQUE INDEX pawl_job_dedupe_ordered ON pawl_job (queue_id, dedupe_key, ordering_key)
    WHERE dedupe_key IS NOT NULL AND ordering_key IS NOT NULL;

-- The queues that a worker serves.
ALTER TABLE pawl_worker ADD COLUMN queues TEXT NOT NULL DEFAULT '';

UPDATE pawl_meta SET value = 2 WHERE name = 'version';
