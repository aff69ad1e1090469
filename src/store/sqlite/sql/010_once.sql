-- SPDX-License-Identifier: Apache-2.0
-- Keys of requests that are to be carried out once (Idempotency-Key), with their answers. Added to files that were made before
-- there were any.
CREATE TABLE pawl_once (
    key BLOB NOT NULL PRIMARY KEY,  -- a hash of the key and of whose it is
    digest BLOB NOT NULL,           -- of what was asked
    seed INTEGER NOT NULL,          -- the ids that the request makes come of it
    at INTEGER NOT NULL,            -- of the first try
    held_until INTEGER NOT NULL,    -- nobody else may carry it out before
    expires_at INTEGER NOT NULL,
    answer BLOB                     -- NULL: none yet
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_once_expires ON pawl_once (expires_at);
