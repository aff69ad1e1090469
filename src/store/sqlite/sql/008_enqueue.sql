-- SPDX-License-Identifier: Apache-2.0
-- How an application enqueues in its own transaction: INSERT INTO pawl_enqueue (queue, payload) ...
-- Columns that are left out, or NULL, mean what pawl_enqueue_init() means. See docs/sqlite.md.
-- A file may have an older form of it. Where this one changes, it gets a new number, so that it runs again.

DROP VIEW IF EXISTS pawl_enqueue;
CREATE VIEW pawl_enqueue AS
SELECT NULL AS queue, NULL AS payload, NULL AS id, NULL AS priority, NULL AS delay_ms,
       NULL AS start_within_ms, NULL AS max_retries, NULL AS timeout_ms, NULL AS backoff_base_ms,
       NULL AS backoff_max_ms, NULL AS dedupe_key, NULL AS ordering_key, NULL AS headers
WHERE 0;

CREATE TRIGGER pawl_enqueue_insert INSTEAD OF INSERT ON pawl_enqueue
BEGIN
    SELECT RAISE(ABORT, 'pawl_enqueue: queue must be a text of 1 to 128 printable ASCII characters without blanks')
    WHERE typeof(NEW.queue) <> 'text' OR length(NEW.queue) NOT BETWEEN 1 AND 128
       OR length(CAST(NEW.queue AS BLOB)) <> length(NEW.queue) OR NEW.queue GLOB '*[^!-~]*';
    SELECT RAISE(ABORT, 'pawl_enqueue: payload must be a text or a blob')
    WHERE typeof(NEW.payload) NOT IN ('text', 'blob', 'null');
    SELECT RAISE(ABORT, 'pawl_enqueue: payload is larger than payload_max of pawl_meta allows')
    WHERE length(CAST(NEW.payload AS BLOB)) > (SELECT value FROM pawl_meta WHERE name = 'payload_max');
    SELECT RAISE(ABORT, 'pawl_enqueue: id must be a blob of 16 bytes or the text of a UUID, and not all zeros')
    WHERE CASE typeof(NEW.id)
              WHEN 'null' THEN 0
              WHEN 'blob' THEN length(NEW.id) <> 16 OR NEW.id = zeroblob(16)
              WHEN 'text' THEN NEW.id NOT LIKE '________-____-____-____-____________'
                            OR length(CAST(NEW.id AS BLOB)) <> 36
                            OR length(replace(NEW.id, '-', '')) <> 32
                            OR replace(NEW.id, '-', '') GLOB '*[^0-9A-Fa-f]*'
                            OR replace(NEW.id, '-', '') NOT GLOB '*[^0]*'
              ELSE 1
          END;
    SELECT RAISE(ABORT, 'pawl_enqueue: priority must be a whole number from 0 (most urgent) to 9')
    WHERE NEW.priority IS NOT NULL AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN 0 AND 9);
    SELECT RAISE(ABORT, 'pawl_enqueue: delay_ms must be a whole number from 0 to 315360000000')
    WHERE NEW.delay_ms IS NOT NULL
      AND (typeof(NEW.delay_ms) <> 'integer' OR NEW.delay_ms NOT BETWEEN 0 AND 315360000000);
    SELECT RAISE(ABORT, 'pawl_enqueue: start_within_ms must be a whole number above delay_ms, to 315360000000')
    WHERE NEW.start_within_ms IS NOT NULL
      AND (typeof(NEW.start_within_ms) <> 'integer'
           OR NEW.start_within_ms NOT BETWEEN coalesce(NEW.delay_ms, 0) + 1 AND 315360000000);
    SELECT RAISE(ABORT, 'pawl_enqueue: max_retries must be a whole number from 0 to 10000')
    WHERE NEW.max_retries IS NOT NULL
      AND (typeof(NEW.max_retries) <> 'integer' OR NEW.max_retries NOT BETWEEN 0 AND 10000);
    SELECT RAISE(ABORT, 'pawl_enqueue: timeout_ms must be a whole number from 1 to 315360000000')
    WHERE NEW.timeout_ms IS NOT NULL
      AND (typeof(NEW.timeout_ms) <> 'integer' OR NEW.timeout_ms NOT BETWEEN 1 AND 315360000000);
    SELECT RAISE(ABORT, 'pawl_enqueue: backoff_base_ms must be a whole number from 1 to 315360000000')
    WHERE NEW.backoff_base_ms IS NOT NULL
      AND (typeof(NEW.backoff_base_ms) <> 'integer' OR NEW.backoff_base_ms NOT BETWEEN 1 AND 315360000000);
    SELECT RAISE(ABORT, 'pawl_enqueue: backoff_max_ms must be a whole number from 1 to 315360000000')
    WHERE NEW.backoff_max_ms IS NOT NULL
      AND (typeof(NEW.backoff_max_ms) <> 'integer' OR NEW.backoff_max_ms NOT BETWEEN 1 AND 315360000000);
    SELECT RAISE(ABORT, 'pawl_enqueue: dedupe_key must be a text of 1 to 255 bytes without control characters')
    WHERE NEW.dedupe_key IS NOT NULL
      AND (typeof(NEW.dedupe_key) <> 'text' OR length(CAST(NEW.dedupe_key AS BLOB)) NOT BETWEEN 1 AND 255
           OR instr(CAST(NEW.dedupe_key AS BLOB), x'00') > 0
           OR NEW.dedupe_key GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*');
    SELECT RAISE(ABORT, 'pawl_enqueue: ordering_key must be a text of at most 255 bytes without control characters')
    WHERE NEW.ordering_key IS NOT NULL
      AND (typeof(NEW.ordering_key) <> 'text' OR length(CAST(NEW.ordering_key AS BLOB)) > 255
           OR instr(CAST(NEW.ordering_key AS BLOB), x'00') > 0
           OR NEW.ordering_key GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*');
    -- Older versions of SQLite cut a text at \u0000, and say nothing.
    SELECT RAISE(ABORT, 'pawl_enqueue: headers must be a text: a JSON object of texts, without \u0000')
    WHERE NEW.headers IS NOT NULL
      AND CASE WHEN typeof(NEW.headers) <> 'text' OR json_valid(NEW.headers) = 0 OR instr(NEW.headers, '\u0000') > 0 THEN 1
               ELSE json_type(NEW.headers) <> 'object'
                 OR EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h WHERE h.type <> 'text')
          END;
    SELECT RAISE(ABORT, 'pawl_enqueue: the name of a header must have 1 to 128 letters, digits or any of !#$%&''*+-.^_`|~')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h
                  WHERE length(h.key) NOT BETWEEN 1 AND 128
                     OR h.key GLOB '*[^!#$%&''*+.^_`|~0-9A-Za-z-]*');
    SELECT RAISE(ABORT, 'pawl_enqueue: the value of a header must have at most 4096 bytes, no control characters, and no blank at either end')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h
                  WHERE length(CAST(h.value AS BLOB)) > 4096 OR trim(h.value) <> h.value
                     OR h.value GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*');
    SELECT RAISE(ABORT, 'pawl_enqueue: headers must have names that differ, the case of letters aside')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h GROUP BY lower(h.key) HAVING count(*) > 1);
    SELECT RAISE(ABORT, 'pawl_enqueue: headers must be 64 at most, of 16384 bytes in all with 3 more for each')
    WHERE (SELECT count(*) > 64 OR sum(length(CAST(h.key AS BLOB)) + length(CAST(h.value AS BLOB)) + 3) > 16384
           FROM json_each(NEW.headers) AS h);

    UPDATE pawl_meta SET value = value + 1 WHERE name = 'position';
    DELETE FROM pawl_draft;
    -- An id of version 7: the time, and random bits behind it.
    INSERT INTO pawl_draft (number, hex, now_ms)
    SELECT value,
           CASE typeof(NEW.id)
               WHEN 'null' THEN printf('%012X', CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER))
                             || '7' || substr(hex(randomblob(2)), 1, 3)
                             || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(8)), 1, 15)
               WHEN 'blob' THEN hex(NEW.id)
               ELSE upper(replace(NEW.id, '-', ''))
           END,
           CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
    FROM pawl_meta WHERE name = 'position';
    UPDATE pawl_draft SET id = CAST(
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 1, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 3, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 5, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 7, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 9, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 11, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 13, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 15, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 17, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 19, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 21, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 23, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 25, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 27, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 29, 2)) ||
            (SELECT byte FROM pawl_byte WHERE hex = substr(pawl_draft.hex, 31, 2)) AS BLOB);

    SELECT RAISE(ABORT, 'pawl_enqueue: a job with this id exists or has existed')
    WHERE EXISTS (SELECT 1 FROM pawl_job WHERE id = (SELECT id FROM pawl_draft))
       OR EXISTS (SELECT 1 FROM pawl_ended WHERE id = (SELECT id FROM pawl_draft));
    INSERT INTO pawl_queue (name)
    SELECT NEW.queue WHERE NOT EXISTS (SELECT 1 FROM pawl_queue WHERE name = NEW.queue);
    SELECT RAISE(ABORT, 'pawl_enqueue: a live job of this queue holds this dedupe_key')
    WHERE NEW.dedupe_key IS NOT NULL
      AND CASE WHEN coalesce(NEW.ordering_key, '') = ''
               THEN EXISTS (SELECT 1 FROM pawl_job
                            WHERE queue_id = (SELECT queue_id FROM pawl_queue WHERE name = NEW.queue)
                              AND dedupe_key = NEW.dedupe_key AND ordering_key IS NULL)
               ELSE EXISTS (SELECT 1 FROM pawl_job
                            WHERE queue_id = (SELECT queue_id FROM pawl_queue WHERE name = NEW.queue)
                              AND dedupe_key = NEW.dedupe_key AND ordering_key = NEW.ordering_key)
          END;

    INSERT INTO pawl_job (number, id, queue_id, state, priority, rank, timed_at, position, next_attempt_at,
                          start_by, deadline, created_at, max_retries, timeout_ms, backoff_base_ms,
                          backoff_max_ms, dedupe_key, payload_len, ordering_key, key_seq, is_waiting)
    SELECT draft.number, draft.id, (SELECT queue_id FROM pawl_queue WHERE name = NEW.queue), 0,
           coalesce(NEW.priority, 5), CASE WHEN NEW.delay_ms > 0 THEN 1 ELSE 2 END,
           CASE WHEN NEW.delay_ms > 0 THEN (draft.now_ms + NEW.delay_ms) * 1000 ELSE 0 END, draft.number,
           (draft.now_ms + coalesce(NEW.delay_ms, 0)) * 1000, (draft.now_ms + NEW.start_within_ms) * 1000,
           (draft.now_ms + NEW.start_within_ms) * 1000, draft.now_ms * 1000, NEW.max_retries, NEW.timeout_ms,
           NEW.backoff_base_ms, NEW.backoff_max_ms, NEW.dedupe_key,
           coalesce(length(CAST(NEW.payload AS BLOB)), 0), nullif(NEW.ordering_key, ''),
           CASE WHEN NEW.ordering_key <> '' THEN draft.number END,
           EXISTS (SELECT 1 FROM pawl_job
                   WHERE queue_id = (SELECT queue_id FROM pawl_queue WHERE name = NEW.queue)
                     AND ordering_key = nullif(NEW.ordering_key, '') AND is_waiting = 0)
    FROM pawl_draft AS draft;
    INSERT INTO pawl_payload (number, bytes, headers)
    SELECT draft.number, coalesce(CAST(NEW.payload AS BLOB), x''),
           (SELECT group_concat(h.key || ': ' || h.value || char(10), '') FROM json_each(NEW.headers) AS h)
    FROM pawl_draft AS draft
    WHERE length(CAST(NEW.payload AS BLOB)) > 0 OR EXISTS (SELECT 1 FROM json_each(NEW.headers) AS h);
    DELETE FROM pawl_draft;
END;
