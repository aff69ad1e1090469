-- SPDX-License-Identifier: Apache-2.0
-- A file of version 1 as the store of that time made it, with jobs in all states: .dump of the shell of SQLite.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE pawl_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pawl_meta VALUES('mends',0);
INSERT INTO pawl_meta VALUES('payload_max',1048576);
INSERT INTO pawl_meta VALUES('position',9);
INSERT INTO pawl_meta VALUES('pruning',0);
INSERT INTO pawl_meta VALUES('version',1);
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
INSERT INTO pawl_queue VALUES(1,'mail',30000,NULL,5,10,500,30000,604800000,2592000000,0,1);
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
    ordering_key TEXT, -- this and the next two are for jobs in order of a key: not used yet
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
INSERT INTO pawl_job VALUES(3,X'03030303030303030303030303030303',1,1,0,1,1700000000000000,4,1700000000000000,NULL,1700000000000000,1,0,0,1,2,1,NULL,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,'w1',X'a53c36d76cec99e0758527120fbbe785',1700000000000000,1700000030000000,1700000090000000,1700000150000000,30000,90000,0,0,1700000030000000);
INSERT INTO pawl_job VALUES(5,X'04040404040404040404040404040404',1,0,5,2,0,5,1700000000000000,NULL,1700000000000000,0,0,0,0,0,0,NULL,NULL,NULL,NULL,'d',5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
INSERT INTO pawl_job VALUES(6,X'05050505050505050505050505050505',1,0,5,1,1700000060000000,6,1700000060000000,NULL,1700000000000000,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
INSERT INTO pawl_job VALUES(7,X'06060606060606060606060606060606',1,0,5,2,0,7,1700000000000000,1700000600000000,1700000000000000,0,0,0,0,0,0,7,5000,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1700000600000000);
INSERT INTO pawl_job VALUES(8,X'07070707070707070707070707070707',1,0,0,2,0,8,1700000000000000,NULL,1700000000000000,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
INSERT INTO pawl_job VALUES(9,X'08080808080808080808080808080808',1,0,5,2,0,9,1700000000000000,NULL,1700000000000000,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL);
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
INSERT INTO pawl_ended VALUES(X'01010101010101010101010101010101',1,1,2,0,1700000000000000,NULL,1700000000000000,1700000000000000,0,0,0,1,1,0,NULL,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,0);
INSERT INTO pawl_ended VALUES(X'02020202020202020202020202020202',2,1,3,0,1700000000000000,NULL,1700000000000000,1700000000000000,0,0,0,1,1,3,NULL,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,0);
CREATE TABLE pawl_payload (
    number INTEGER NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
INSERT INTO pawl_payload VALUES(2,X'6a6f622032');
INSERT INTO pawl_payload VALUES(3,X'6a6f622033');
INSERT INTO pawl_payload VALUES(5,X'6a6f622034');
INSERT INTO pawl_payload VALUES(6,X'6a6f622035');
INSERT INTO pawl_payload VALUES(7,X'6a6f622036');
INSERT INTO pawl_payload VALUES(8,X'6a6f622037');
INSERT INTO pawl_payload VALUES(9,X'6a6f622038');
CREATE TABLE pawl_worker (
    name TEXT NOT NULL PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    last_seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
INSERT INTO pawl_attempt VALUES(X'01010101010101010101010101010101',1,0,0,0,1,'w1',1700000000000000,1700000000000000,NULL,NULL,-6683223338614731090);
INSERT INTO pawl_attempt VALUES(X'02020202020202020202020202020202',1,2,3,0,1,'w1',1700000000000000,1700000000000000,NULL,NULL,2046678401102238917);
INSERT INTO pawl_attempt VALUES(X'03030303030303030303030303030303',1,1,1,0,1,'w1',1700000000000000,1700000000000000,NULL,NULL,4826399218468878109);
CREATE TABLE pawl_byte (
    hex TEXT NOT NULL PRIMARY KEY,
    byte BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pawl_byte VALUES('00',X'00');
INSERT INTO pawl_byte VALUES('01',X'01');
INSERT INTO pawl_byte VALUES('02',X'02');
INSERT INTO pawl_byte VALUES('03',X'03');
INSERT INTO pawl_byte VALUES('04',X'04');
INSERT INTO pawl_byte VALUES('05',X'05');
INSERT INTO pawl_byte VALUES('06',X'06');
INSERT INTO pawl_byte VALUES('07',X'07');
INSERT INTO pawl_byte VALUES('08',X'08');
INSERT INTO pawl_byte VALUES('09',X'09');
INSERT INTO pawl_byte VALUES('0A',X'0a');
INSERT INTO pawl_byte VALUES('0B',X'0b');
INSERT INTO pawl_byte VALUES('0C',X'0c');
INSERT INTO pawl_byte VALUES('0D',X'0d');
INSERT INTO pawl_byte VALUES('0E',X'0e');
INSERT INTO pawl_byte VALUES('0F',X'0f');
INSERT INTO pawl_byte VALUES('10',X'10');
INSERT INTO pawl_byte VALUES('11',X'11');
INSERT INTO pawl_byte VALUES('12',X'12');
INSERT INTO pawl_byte VALUES('13',X'13');
INSERT INTO pawl_byte VALUES('14',X'14');
INSERT INTO pawl_byte VALUES('15',X'15');
INSERT INTO pawl_byte VALUES('16',X'16');
INSERT INTO pawl_byte VALUES('17',X'17');
INSERT INTO pawl_byte VALUES('18',X'18');
INSERT INTO pawl_byte VALUES('19',X'19');
INSERT INTO pawl_byte VALUES('1A',X'1a');
INSERT INTO pawl_byte VALUES('1B',X'1b');
INSERT INTO pawl_byte VALUES('1C',X'1c');
INSERT INTO pawl_byte VALUES('1D',X'1d');
INSERT INTO pawl_byte VALUES('1E',X'1e');
INSERT INTO pawl_byte VALUES('1F',X'1f');
INSERT INTO pawl_byte VALUES('20',X'20');
INSERT INTO pawl_byte VALUES('21',X'21');
INSERT INTO pawl_byte VALUES('22',X'22');
INSERT INTO pawl_byte VALUES('23',X'23');
INSERT INTO pawl_byte VALUES('24',X'24');
INSERT INTO pawl_byte VALUES('25',X'25');
INSERT INTO pawl_byte VALUES('26',X'26');
INSERT INTO pawl_byte VALUES('27',X'27');
INSERT INTO pawl_byte VALUES('28',X'28');
INSERT INTO pawl_byte VALUES('29',X'29');
INSERT INTO pawl_byte VALUES('2A',X'2a');
INSERT INTO pawl_byte VALUES('2B',X'2b');
INSERT INTO pawl_byte VALUES('2C',X'2c');
INSERT INTO pawl_byte VALUES('2D',X'2d');
INSERT INTO pawl_byte VALUES('2E',X'2e');
INSERT INTO pawl_byte VALUES('2F',X'2f');
INSERT INTO pawl_byte VALUES('30',X'30');
INSERT INTO pawl_byte VALUES('31',X'31');
INSERT INTO pawl_byte VALUES('32',X'32');
INSERT INTO pawl_byte VALUES('33',X'33');
INSERT INTO pawl_byte VALUES('34',X'34');
INSERT INTO pawl_byte VALUES('35',X'35');
INSERT INTO pawl_byte VALUES('36',X'36');
INSERT INTO pawl_byte VALUES('37',X'37');
INSERT INTO pawl_byte VALUES('38',X'38');
INSERT INTO pawl_byte VALUES('39',X'39');
INSERT INTO pawl_byte VALUES('3A',X'3a');
INSERT INTO pawl_byte VALUES('3B',X'3b');
INSERT INTO pawl_byte VALUES('3C',X'3c');
INSERT INTO pawl_byte VALUES('3D',X'3d');
INSERT INTO pawl_byte VALUES('3E',X'3e');
INSERT INTO pawl_byte VALUES('3F',X'3f');
INSERT INTO pawl_byte VALUES('40',X'40');
INSERT INTO pawl_byte VALUES('41',X'41');
INSERT INTO pawl_byte VALUES('42',X'42');
INSERT INTO pawl_byte VALUES('43',X'43');
INSERT INTO pawl_byte VALUES('44',X'44');
INSERT INTO pawl_byte VALUES('45',X'45');
INSERT INTO pawl_byte VALUES('46',X'46');
INSERT INTO pawl_byte VALUES('47',X'47');
INSERT INTO pawl_byte VALUES('48',X'48');
INSERT INTO pawl_byte VALUES('49',X'49');
INSERT INTO pawl_byte VALUES('4A',X'4a');
INSERT INTO pawl_byte VALUES('4B',X'4b');
INSERT INTO pawl_byte VALUES('4C',X'4c');
INSERT INTO pawl_byte VALUES('4D',X'4d');
INSERT INTO pawl_byte VALUES('4E',X'4e');
INSERT INTO pawl_byte VALUES('4F',X'4f');
INSERT INTO pawl_byte VALUES('50',X'50');
INSERT INTO pawl_byte VALUES('51',X'51');
INSERT INTO pawl_byte VALUES('52',X'52');
INSERT INTO pawl_byte VALUES('53',X'53');
INSERT INTO pawl_byte VALUES('54',X'54');
INSERT INTO pawl_byte VALUES('55',X'55');
INSERT INTO pawl_byte VALUES('56',X'56');
INSERT INTO pawl_byte VALUES('57',X'57');
INSERT INTO pawl_byte VALUES('58',X'58');
INSERT INTO pawl_byte VALUES('59',X'59');
INSERT INTO pawl_byte VALUES('5A',X'5a');
INSERT INTO pawl_byte VALUES('5B',X'5b');
INSERT INTO pawl_byte VALUES('5C',X'5c');
INSERT INTO pawl_byte VALUES('5D',X'5d');
INSERT INTO pawl_byte VALUES('5E',X'5e');
INSERT INTO pawl_byte VALUES('5F',X'5f');
INSERT INTO pawl_byte VALUES('60',X'60');
INSERT INTO pawl_byte VALUES('61',X'61');
INSERT INTO pawl_byte VALUES('62',X'62');
INSERT INTO pawl_byte VALUES('63',X'63');
INSERT INTO pawl_byte VALUES('64',X'64');
INSERT INTO pawl_byte VALUES('65',X'65');
INSERT INTO pawl_byte VALUES('66',X'66');
INSERT INTO pawl_byte VALUES('67',X'67');
INSERT INTO pawl_byte VALUES('68',X'68');
INSERT INTO pawl_byte VALUES('69',X'69');
INSERT INTO pawl_byte VALUES('6A',X'6a');
INSERT INTO pawl_byte VALUES('6B',X'6b');
INSERT INTO pawl_byte VALUES('6C',X'6c');
INSERT INTO pawl_byte VALUES('6D',X'6d');
INSERT INTO pawl_byte VALUES('6E',X'6e');
INSERT INTO pawl_byte VALUES('6F',X'6f');
INSERT INTO pawl_byte VALUES('70',X'70');
INSERT INTO pawl_byte VALUES('71',X'71');
INSERT INTO pawl_byte VALUES('72',X'72');
INSERT INTO pawl_byte VALUES('73',X'73');
INSERT INTO pawl_byte VALUES('74',X'74');
INSERT INTO pawl_byte VALUES('75',X'75');
INSERT INTO pawl_byte VALUES('76',X'76');
INSERT INTO pawl_byte VALUES('77',X'77');
INSERT INTO pawl_byte VALUES('78',X'78');
INSERT INTO pawl_byte VALUES('79',X'79');
INSERT INTO pawl_byte VALUES('7A',X'7a');
INSERT INTO pawl_byte VALUES('7B',X'7b');
INSERT INTO pawl_byte VALUES('7C',X'7c');
INSERT INTO pawl_byte VALUES('7D',X'7d');
INSERT INTO pawl_byte VALUES('7E',X'7e');
INSERT INTO pawl_byte VALUES('7F',X'7f');
INSERT INTO pawl_byte VALUES('80',X'80');
INSERT INTO pawl_byte VALUES('81',X'81');
INSERT INTO pawl_byte VALUES('82',X'82');
INSERT INTO pawl_byte VALUES('83',X'83');
INSERT INTO pawl_byte VALUES('84',X'84');
INSERT INTO pawl_byte VALUES('85',X'85');
INSERT INTO pawl_byte VALUES('86',X'86');
INSERT INTO pawl_byte VALUES('87',X'87');
INSERT INTO pawl_byte VALUES('88',X'88');
INSERT INTO pawl_byte VALUES('89',X'89');
INSERT INTO pawl_byte VALUES('8A',X'8a');
INSERT INTO pawl_byte VALUES('8B',X'8b');
INSERT INTO pawl_byte VALUES('8C',X'8c');
INSERT INTO pawl_byte VALUES('8D',X'8d');
INSERT INTO pawl_byte VALUES('8E',X'8e');
INSERT INTO pawl_byte VALUES('8F',X'8f');
INSERT INTO pawl_byte VALUES('90',X'90');
INSERT INTO pawl_byte VALUES('91',X'91');
INSERT INTO pawl_byte VALUES('92',X'92');
INSERT INTO pawl_byte VALUES('93',X'93');
INSERT INTO pawl_byte VALUES('94',X'94');
INSERT INTO pawl_byte VALUES('95',X'95');
INSERT INTO pawl_byte VALUES('96',X'96');
INSERT INTO pawl_byte VALUES('97',X'97');
INSERT INTO pawl_byte VALUES('98',X'98');
INSERT INTO pawl_byte VALUES('99',X'99');
INSERT INTO pawl_byte VALUES('9A',X'9a');
INSERT INTO pawl_byte VALUES('9B',X'9b');
INSERT INTO pawl_byte VALUES('9C',X'9c');
INSERT INTO pawl_byte VALUES('9D',X'9d');
INSERT INTO pawl_byte VALUES('9E',X'9e');
INSERT INTO pawl_byte VALUES('9F',X'9f');
INSERT INTO pawl_byte VALUES('A0',X'a0');
INSERT INTO pawl_byte VALUES('A1',X'a1');
INSERT INTO pawl_byte VALUES('A2',X'a2');
INSERT INTO pawl_byte VALUES('A3',X'a3');
INSERT INTO pawl_byte VALUES('A4',X'a4');
INSERT INTO pawl_byte VALUES('A5',X'a5');
INSERT INTO pawl_byte VALUES('A6',X'a6');
INSERT INTO pawl_byte VALUES('A7',X'a7');
INSERT INTO pawl_byte VALUES('A8',X'a8');
INSERT INTO pawl_byte VALUES('A9',X'a9');
INSERT INTO pawl_byte VALUES('AA',X'aa');
INSERT INTO pawl_byte VALUES('AB',X'ab');
INSERT INTO pawl_byte VALUES('AC',X'ac');
INSERT INTO pawl_byte VALUES('AD',X'ad');
INSERT INTO pawl_byte VALUES('AE',X'ae');
INSERT INTO pawl_byte VALUES('AF',X'af');
INSERT INTO pawl_byte VALUES('B0',X'b0');
INSERT INTO pawl_byte VALUES('B1',X'b1');
INSERT INTO pawl_byte VALUES('B2',X'b2');
INSERT INTO pawl_byte VALUES('B3',X'b3');
INSERT INTO pawl_byte VALUES('B4',X'b4');
INSERT INTO pawl_byte VALUES('B5',X'b5');
INSERT INTO pawl_byte VALUES('B6',X'b6');
INSERT INTO pawl_byte VALUES('B7',X'b7');
INSERT INTO pawl_byte VALUES('B8',X'b8');
INSERT INTO pawl_byte VALUES('B9',X'b9');
INSERT INTO pawl_byte VALUES('BA',X'ba');
INSERT INTO pawl_byte VALUES('BB',X'bb');
INSERT INTO pawl_byte VALUES('BC',X'bc');
INSERT INTO pawl_byte VALUES('BD',X'bd');
INSERT INTO pawl_byte VALUES('BE',X'be');
INSERT INTO pawl_byte VALUES('BF',X'bf');
INSERT INTO pawl_byte VALUES('C0',X'c0');
INSERT INTO pawl_byte VALUES('C1',X'c1');
INSERT INTO pawl_byte VALUES('C2',X'c2');
INSERT INTO pawl_byte VALUES('C3',X'c3');
INSERT INTO pawl_byte VALUES('C4',X'c4');
INSERT INTO pawl_byte VALUES('C5',X'c5');
INSERT INTO pawl_byte VALUES('C6',X'c6');
INSERT INTO pawl_byte VALUES('C7',X'c7');
INSERT INTO pawl_byte VALUES('C8',X'c8');
INSERT INTO pawl_byte VALUES('C9',X'c9');
INSERT INTO pawl_byte VALUES('CA',X'ca');
INSERT INTO pawl_byte VALUES('CB',X'cb');
INSERT INTO pawl_byte VALUES('CC',X'cc');
INSERT INTO pawl_byte VALUES('CD',X'cd');
INSERT INTO pawl_byte VALUES('CE',X'ce');
INSERT INTO pawl_byte VALUES('CF',X'cf');
INSERT INTO pawl_byte VALUES('D0',X'd0');
INSERT INTO pawl_byte VALUES('D1',X'd1');
INSERT INTO pawl_byte VALUES('D2',X'd2');
INSERT INTO pawl_byte VALUES('D3',X'd3');
INSERT INTO pawl_byte VALUES('D4',X'd4');
INSERT INTO pawl_byte VALUES('D5',X'd5');
INSERT INTO pawl_byte VALUES('D6',X'd6');
INSERT INTO pawl_byte VALUES('D7',X'd7');
INSERT INTO pawl_byte VALUES('D8',X'd8');
INSERT INTO pawl_byte VALUES('D9',X'd9');
INSERT INTO pawl_byte VALUES('DA',X'da');
INSERT INTO pawl_byte VALUES('DB',X'db');
INSERT INTO pawl_byte VALUES('DC',X'dc');
INSERT INTO pawl_byte VALUES('DD',X'dd');
INSERT INTO pawl_byte VALUES('DE',X'de');
INSERT INTO pawl_byte VALUES('DF',X'df');
INSERT INTO pawl_byte VALUES('E0',X'e0');
INSERT INTO pawl_byte VALUES('E1',X'e1');
INSERT INTO pawl_byte VALUES('E2',X'e2');
INSERT INTO pawl_byte VALUES('E3',X'e3');
INSERT INTO pawl_byte VALUES('E4',X'e4');
INSERT INTO pawl_byte VALUES('E5',X'e5');
INSERT INTO pawl_byte VALUES('E6',X'e6');
INSERT INTO pawl_byte VALUES('E7',X'e7');
INSERT INTO pawl_byte VALUES('E8',X'e8');
INSERT INTO pawl_byte VALUES('E9',X'e9');
INSERT INTO pawl_byte VALUES('EA',X'ea');
INSERT INTO pawl_byte VALUES('EB',X'eb');
INSERT INTO pawl_byte VALUES('EC',X'ec');
INSERT INTO pawl_byte VALUES('ED',X'ed');
INSERT INTO pawl_byte VALUES('EE',X'ee');
INSERT INTO pawl_byte VALUES('EF',X'ef');
INSERT INTO pawl_byte VALUES('F0',X'f0');
INSERT INTO pawl_byte VALUES('F1',X'f1');
INSERT INTO pawl_byte VALUES('F2',X'f2');
INSERT INTO pawl_byte VALUES('F3',X'f3');
INSERT INTO pawl_byte VALUES('F4',X'f4');
INSERT INTO pawl_byte VALUES('F5',X'f5');
INSERT INTO pawl_byte VALUES('F6',X'f6');
INSERT INTO pawl_byte VALUES('F7',X'f7');
INSERT INTO pawl_byte VALUES('F8',X'f8');
INSERT INTO pawl_byte VALUES('F9',X'f9');
INSERT INTO pawl_byte VALUES('FA',X'fa');
INSERT INTO pawl_byte VALUES('FB',X'fb');
INSERT INTO pawl_byte VALUES('FC',X'fc');
INSERT INTO pawl_byte VALUES('FD',X'fd');
INSERT INTO pawl_byte VALUES('FE',X'fe');
INSERT INTO pawl_byte VALUES('FF',X'ff');
CREATE TABLE pawl_draft (
    number INTEGER NOT NULL PRIMARY KEY,
    hex TEXT NOT NULL,
    now_ms INTEGER NOT NULL,
    id BLOB
) STRICT;
CREATE INDEX pawl_job_ready ON pawl_job (queue_id, priority, rank, timed_at, position, next_attempt_at) WHERE state = 0;
CREATE INDEX pawl_job_lease ON pawl_job (queue_id, lease_expires_at, id) WHERE state = 1;
CREATE INDEX pawl_job_queue ON pawl_job (queue_id, id);
CREATE INDEX pawl_job_held ON pawl_job (claimed_by, id) WHERE state = 1;
CREATE INDEX pawl_job_deadline ON pawl_job (deadline, id) WHERE deadline IS NOT NULL;
CREATE UNIQUE INDEX pawl_job_key ON pawl_job (queue_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX pawl_ended_age ON pawl_ended (queue_id, state, finished_at, id);
CREATE INDEX pawl_ended_failed ON pawl_ended (id) WHERE state = 3;
CREATE INDEX pawl_ended_failed_queue ON pawl_ended (queue_id, id) WHERE state = 3;
CREATE TRIGGER pawl_attempt_update BEFORE UPDATE ON pawl_attempt
BEGIN
    SELECT RAISE(ABORT, 'pawl_attempt is append-only: its rows are never changed');
END;
CREATE TRIGGER pawl_attempt_delete BEFORE DELETE ON pawl_attempt
WHEN (SELECT value FROM pawl_meta WHERE name = 'pruning') IS NOT 1
BEGIN
    SELECT RAISE(ABORT, 'pawl_attempt is append-only: its rows go by pruning only');
END;
CREATE TRIGGER pawl_attempt_insert BEFORE INSERT ON pawl_attempt
WHEN EXISTS (SELECT 1 FROM pawl_attempt WHERE id = NEW.id AND attempt_no = NEW.attempt_no)
BEGIN
    SELECT RAISE(ABORT, 'pawl_attempt is append-only: this row is there already');
END;
CREATE VIEW pawl_enqueue AS
SELECT NULL AS queue, NULL AS payload, NULL AS id, NULL AS priority, NULL AS delay_ms,
       NULL AS start_within_ms, NULL AS max_retries, NULL AS timeout_ms, NULL AS backoff_base_ms,
       NULL AS backoff_max_ms, NULL AS dedupe_key
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
      AND EXISTS (SELECT 1 FROM pawl_job
                  WHERE queue_id = (SELECT queue_id FROM pawl_queue WHERE name = NEW.queue)
                    AND dedupe_key = NEW.dedupe_key);

    INSERT INTO pawl_job (number, id, queue_id, state, priority, rank, timed_at, position, next_attempt_at,
                          start_by, deadline, created_at, max_retries, timeout_ms, backoff_base_ms,
                          backoff_max_ms, dedupe_key, payload_len)
    SELECT draft.number, draft.id, (SELECT queue_id FROM pawl_queue WHERE name = NEW.queue), 0,
           coalesce(NEW.priority, 5), CASE WHEN NEW.delay_ms > 0 THEN 1 ELSE 2 END,
           CASE WHEN NEW.delay_ms > 0 THEN (draft.now_ms + NEW.delay_ms) * 1000 ELSE 0 END, draft.number,
           (draft.now_ms + coalesce(NEW.delay_ms, 0)) * 1000, (draft.now_ms + NEW.start_within_ms) * 1000,
           (draft.now_ms + NEW.start_within_ms) * 1000, draft.now_ms * 1000, NEW.max_retries, NEW.timeout_ms,
           NEW.backoff_base_ms, NEW.backoff_max_ms, NEW.dedupe_key,
           coalesce(length(CAST(NEW.payload AS BLOB)), 0)
    FROM pawl_draft AS draft;
    INSERT INTO pawl_payload (number, bytes)
    SELECT draft.number, CAST(NEW.payload AS BLOB) FROM pawl_draft AS draft
    WHERE length(CAST(NEW.payload AS BLOB)) > 0;
    DELETE FROM pawl_draft;
END
;
COMMIT;
