-- SPDX-License-Identifier: Apache-2.0
-- Work leases: see docs/worklease.md. Added to files that were made before there were any.

-- Domains, with the lease of each. Those that wait have the numbers from backlog_first on.
CREATE TABLE pawl_worklease (
    domain_id INTEGER NOT NULL PRIMARY KEY,
    domain TEXT NOT NULL UNIQUE,
    current_offset INTEGER, -- NULL: there is no lease
    lease_token BLOB CHECK (length(lease_token) = 16),
    owner TEXT,               -- NULL: nobody in particular
    acquired_at INTEGER,      -- of the offset's first lease: never changes
    retry_count INTEGER,
    lease_expires_at INTEGER, -- NULL: never
    backlog_first INTEGER NOT NULL DEFAULT 0,
    backlog_count INTEGER NOT NULL DEFAULT 0 CHECK (backlog_count >= 0),
    CHECK ((current_offset IS NULL) = (lease_token IS NULL)),
    CHECK ((current_offset IS NULL) = (acquired_at IS NULL)),
    CHECK ((current_offset IS NULL) = (retry_count IS NULL)),
    CHECK (current_offset IS NOT NULL OR (owner IS NULL AND lease_expires_at IS NULL))
) STRICT;

-- Offsets that wait, numbered in the order in which they came, without gaps.
CREATE TABLE pawl_worklease_backlog (
    domain_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    queued_offset INTEGER NOT NULL,
    PRIMARY KEY (domain_id, seq),
    UNIQUE (domain_id, queued_offset)
) STRICT, WITHOUT ROWID;

-- Offsets that have ended, as intervals: no two of one kind touch, and none overlap.
CREATE TABLE pawl_worklease_terminal (
    domain_id INTEGER NOT NULL,
    first_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL CHECK (last_offset >= first_offset), -- in the interval
    is_failed INTEGER NOT NULL CHECK (is_failed IN (0, 1)),
    PRIMARY KEY (domain_id, first_offset)
) STRICT, WITHOUT ROWID;
