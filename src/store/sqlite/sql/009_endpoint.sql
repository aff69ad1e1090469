-- SPDX-License-Identifier: Apache-2.0
-- Endpoints of webhooks: see docs/webhooks.md. Added to files that were made before there were any.
-- Secrets and the values of headers are told by pawl_endpoint_credentials_get() alone; whoever can read the file can read them.

-- How often the request of an attempt left the machine; NULL: nobody has said.
ALTER TABLE pawl_attempt ADD COLUMN wire_sends INTEGER CHECK (wire_sends >= 0);

CREATE TABLE pawl_endpoint (
    name TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    topics TEXT NOT NULL,  -- patterns with commas between them: see pawl_endpoint_topic
    headers TEXT NOT NULL, -- "name: value" and a newline for each
    fail_statuses TEXT NOT NULL,
    timeout_ms INTEGER NOT NULL,
    rate_per_minute INTEGER NOT NULL, -- 0: no bound
    ordering INTEGER NOT NULL CHECK (ordering IN (1, 2)), -- none, key
    format INTEGER NOT NULL CHECK (format IN (1, 2, 3)),  -- plain, CloudEvents binary, CloudEvents structured
    is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
    switched_at INTEGER,   -- this and the next two: of the last switch
    switched_by TEXT,
    reason TEXT,
    failing_since INTEGER, -- as those who deliver say; NULL: it is not failing
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Its patterns, one by one: an event is looked up by the few that match its type.
CREATE TABLE pawl_endpoint_topic (
    pattern TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (pattern, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_endpoint_topic_name ON pawl_endpoint_topic (name);

-- What its deliveries are signed with, the newest first.
CREATE TABLE pawl_endpoint_secret (
    name TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    secret TEXT NOT NULL,
    until INTEGER, -- NULL: until it is rotated
    PRIMARY KEY (name, ordinal)
) STRICT, WITHOUT ROWID;

-- Events that can be replayed, until they need not be kept any more.
CREATE TABLE pawl_event (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    is_minted INTEGER NOT NULL CHECK (is_minted IN (0, 1)), -- the id was made by the library: see pawl_publish()
    type TEXT NOT NULL,
    ordering_key TEXT,
    published_at INTEGER NOT NULL,
    keep_until INTEGER NOT NULL,
    headers TEXT NOT NULL, -- of its jobs
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX pawl_event_published ON pawl_event (published_at, seq);
CREATE INDEX pawl_event_kept ON pawl_event (keep_until);

-- How an application publishes in its own transaction: INSERT INTO pawl_publish (type, payload) ...
-- Columns that are left out, or NULL, mean none. An event gets a new id: repeats are told apart by the id that
-- pawl_publish() in C derives its jobs from, and SQLite cannot compute that.
CREATE VIEW pawl_publish AS
SELECT NULL AS type, NULL AS payload, NULL AS ordering_key, NULL AS headers, NULL AS time_us WHERE 0;

-- The event on its way; empty between two statements.
CREATE TABLE pawl_event_draft (
    id TEXT NOT NULL PRIMARY KEY,
    type TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who wants it, by the patterns that match its type: itself, everything, and everything below each word before its last.
CREATE VIEW pawl_event_wanted AS
WITH RECURSIVE dot (type, at) AS (
    SELECT type, instr(type, '.') FROM pawl_event_draft WHERE instr(type, '.') > 0
    UNION ALL
    SELECT type, at + instr(substr(type, at + 1), '.') FROM dot WHERE instr(substr(type, at + 1), '.') > 0)
SELECT DISTINCT e.name, e.ordering
FROM (SELECT '*' AS pattern UNION ALL SELECT type FROM pawl_event_draft UNION ALL SELECT substr(type, 1, at) || '*' FROM dot) AS c
CROSS JOIN pawl_endpoint_topic AS t ON t.pattern = c.pattern
CROSS JOIN pawl_endpoint AS e ON e.name = t.name
WHERE e.is_enabled = 1;

-- What is said of an event is looked at whoever wants it: what is refused must not depend on there being an endpoint.
CREATE TRIGGER pawl_publish_insert INSTEAD OF INSERT ON pawl_publish
BEGIN
    SELECT RAISE(ABORT, 'pawl_publish: type must be a text of up to 128 letters, digits, _ and -, in words with full stops between them')
    WHERE typeof(NEW.type) <> 'text' OR length(CAST(NEW.type AS BLOB)) NOT BETWEEN 1 AND 128
       OR instr(CAST(NEW.type AS BLOB), x'00') > 0 OR NEW.type GLOB '*[^-A-Za-z0-9_.]*'
       OR instr('.' || NEW.type || '.', '..') > 0;
    SELECT RAISE(ABORT, 'pawl_publish: payload must be a text or a blob')
    WHERE typeof(NEW.payload) NOT IN ('text', 'blob', 'null');
    SELECT RAISE(ABORT, 'pawl_publish: payload is larger than payload_max of pawl_meta allows')
    WHERE length(CAST(NEW.payload AS BLOB)) > (SELECT value FROM pawl_meta WHERE name = 'payload_max');
    SELECT RAISE(ABORT, 'pawl_publish: time_us must be a whole number from 1 to 253402300799000000, the end of the year 9999')
    WHERE NEW.time_us IS NOT NULL AND (typeof(NEW.time_us) <> 'integer' OR NEW.time_us NOT BETWEEN 1 AND 253402300799000000);
    SELECT RAISE(ABORT, 'pawl_publish: ordering_key must be a text of at most 255 bytes without control characters, and no blank at either end')
    WHERE NEW.ordering_key IS NOT NULL
      AND (typeof(NEW.ordering_key) <> 'text' OR length(CAST(NEW.ordering_key AS BLOB)) > 255
           OR instr(CAST(NEW.ordering_key AS BLOB), x'00') > 0 OR trim(NEW.ordering_key) <> NEW.ordering_key
           OR NEW.ordering_key GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*');
    -- Older versions of SQLite cut a text at \u0000, and say nothing.
    SELECT RAISE(ABORT, 'pawl_publish: headers must be a text: a JSON object of texts, without \u0000')
    WHERE NEW.headers IS NOT NULL
      AND CASE WHEN typeof(NEW.headers) <> 'text' OR json_valid(NEW.headers) = 0 OR instr(NEW.headers, '\u0000') > 0 THEN 1
               ELSE json_type(NEW.headers) <> 'object'
                 OR EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h WHERE h.type <> 'text')
          END;
    SELECT RAISE(ABORT, 'pawl_publish: names of headers that begin with pawl- are Pawl''s own')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h WHERE lower(substr(h.key, 1, 5)) = 'pawl-');
    SELECT RAISE(ABORT, 'pawl_publish: the name of a header must have 1 to 128 letters, digits or any of !#$%&''*+-.^_`|~')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h
                  WHERE length(h.key) NOT BETWEEN 1 AND 128
                     OR h.key GLOB '*[^!#$%&''*+.^_`|~0-9A-Za-z-]*');
    SELECT RAISE(ABORT, 'pawl_publish: the value of a header must have at most 4096 bytes, no control characters, and no blank at either end')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h
                  WHERE length(CAST(h.value AS BLOB)) > 4096 OR trim(h.value) <> h.value
                     OR h.value GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*');
    SELECT RAISE(ABORT, 'pawl_publish: headers must have names that differ, the case of letters aside')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h GROUP BY lower(h.key) HAVING count(*) > 1);
    -- Those that tell of the event are 4 of the 64, and take 16 + 32, 18 + 128, 17 + 255 and 18 + 18 bytes with what is between.
    SELECT RAISE(ABORT, 'pawl_publish: headers must be 60 at most, of 15882 bytes in all with 3 more for each')
    WHERE (SELECT count(*) > 60 OR sum(length(CAST(h.key AS BLOB)) + length(CAST(h.value AS BLOB)) + 3) > 15882
           FROM json_each(NEW.headers) AS h);

    DELETE FROM pawl_event_draft;
    INSERT INTO pawl_event_draft (id, type) VALUES (lower(hex(randomblob(16))), NEW.type);
    SELECT RAISE(ABORT, 'pawl_publish: more than 1000 endpoints want this type')
    WHERE (SELECT count(*) FROM pawl_event_wanted) > 1000;
    INSERT INTO pawl_enqueue (queue, payload, ordering_key, headers)
    SELECT 'webhook/' || e.name, NEW.payload, CASE e.ordering WHEN 2 THEN NEW.ordering_key END,
           json_patch(json_patch('{}', json_object('pawl-event-id', (SELECT id FROM pawl_event_draft),
                                                   'pawl-event-type', NEW.type,
                                                   'pawl-event-key', nullif(NEW.ordering_key, ''),
                                                   'pawl-event-time', CAST(NEW.time_us AS TEXT))),
                      coalesce(NEW.headers, '{}'))
    FROM pawl_event_wanted AS e
    ORDER BY e.name;
    -- For as long as pawl_publish() in C keeps one of which nothing is said.
    INSERT INTO pawl_event (id, is_minted, type, ordering_key, published_at, keep_until, headers, payload)
    SELECT d.id, 0, NEW.type, nullif(NEW.ordering_key, ''), n.ms * 1000, (n.ms + 604800000) * 1000,
           (SELECT group_concat(h.key || ': ' || h.value || char(10), '')
            FROM json_each(json_patch(json_object('pawl-event-id', d.id, 'pawl-event-type', NEW.type,
                                                  'pawl-event-key', nullif(NEW.ordering_key, ''),
                                                  'pawl-event-time', CAST(NEW.time_us AS TEXT)),
                                      coalesce(NEW.headers, '{}'))) AS h
            WHERE h.value IS NOT NULL),
           coalesce(CAST(NEW.payload AS BLOB), x'')
    FROM pawl_event_draft AS d, (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) AS ms) AS n;
    DELETE FROM pawl_event_draft;
END;
