-- SPDX-License-Identifier: Apache-2.0
-- The ledger: one row for each time a job leaves InFlight, except by release, and each time it
-- becomes terminal. Rows are added and never changed; they go with the job's history, by pruning.
CREATE TABLE pawl_attempt (
    id BLOB NOT NULL,
    attempt_no INTEGER NOT NULL CHECK (attempt_no >= 1),
    outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 3),
    reason INTEGER NOT NULL CHECK (reason BETWEEN 0 AND 10),
    ended_by INTEGER NOT NULL CHECK (ended_by BETWEEN 0 AND 3),
    job_version INTEGER NOT NULL, -- the job's lease version then: never falls from row to row
    claimed_by TEXT,              -- this and the next: NULL where no lease ended
    claimed_at INTEGER,
    finished_at INTEGER NOT NULL,
    error_code TEXT,
    error_text TEXT,
    token_digest INTEGER, -- of the lease that its holder ended
    PRIMARY KEY (id, attempt_no)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pawl_attempt_update BEFORE UPDATE ON pawl_attempt
BEGIN
    SELECT RAISE(ABORT, 'pawl_attempt is append-only: its rows are never changed');
END;

CREATE TRIGGER pawl_attempt_delete BEFORE DELETE ON pawl_attempt
WHEN (SELECT value FROM pawl_meta WHERE name = 'pruning') IS NOT 1
BEGIN
    SELECT RAISE(ABORT, 'pawl_attempt is append-only: its rows go by pruning only');
END;

-- REPLACE deletes without asking the trigger above.
CREATE TRIGGER pawl_attempt_insert BEFORE INSERT ON pawl_attempt
WHEN EXISTS (SELECT 1 FROM pawl_attempt WHERE id = NEW.id AND attempt_no = NEW.attempt_no)
BEGIN
    SELECT RAISE(ABORT, 'pawl_attempt is append-only: this row is there already');
END;
