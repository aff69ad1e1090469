-- SPDX-License-Identifier: Apache-2.0
-- The tables of Pawl. No index names a column that a claim changes, so that every claim is a heap-only update.
-- One row: what is fixed when Pawl is installed (shards), whether enqueue sends hints (NOTIFY), the largest payload.
create table pawl.config (
    is_only boolean primary key default true check (is_only),
    shards int4 not null check (shards between 1 and 4096),
    is_notifying boolean not null default true,
    payload_max int4 not null default 1048576 -- bytes, for callers of pawl.enqueue()
);

-- A queue's settings; NULL in a duration means "derived", NULL in a retention means "for ever".
create table pawl.queue (
    queue_id int4 generated always as identity primary key,
    name text not null unique check (name ~ '^[!-~]{1,128}$'),
    lease_ms int8 not null default 30000,
    execution_timeout_ms int8,
    max_retries int4 not null default 3,
    max_lost_leases int4 not null default 10,
    backoff_base_ms int8 not null default 500,
    backoff_max_ms int8 not null default 30000,
    keep_succeeded_ms int8 default 604800000,
    keep_failed_ms int8 default 2592000000,
    max_in_flight int4,
    levels int4 not null default 0,         -- bit p is set once a job of priority p was enqueued
    has_keys boolean not null default false, -- set once a job with an ordering key was enqueued
    is_paused boolean not null default false,
    is_set boolean not null default false    -- somebody chose these settings
);

-- Live jobs: Ready (state 0) and InFlight (state 1). line_id is queue_id * 4096 + shard.
-- Lanes: 0 arrivals (pos: transaction id), 1 came back or was timed (pos: transaction id), 2 parked behind its key, 3 waits
-- for its time (pos: microseconds since 1970). Among those of one position, seq tells who came first: they are of one
-- transaction, hence of one session, whose numbers rise although it takes them from the sequence in blocks.
create sequence pawl.job_seq cache 256;
create table pawl.job (
    shard int4 not null,
    line_id int4 not null,
    pos int8 not null,
    seq int8 not null default nextval('pawl.job_seq'),
    id uuid not null,
    created_at timestamptz not null,
    next_attempt_at timestamptz not null,
    attempts int4 not null default 0,
    priority int2 not null,
    lane int2 not null,
    retries int2 not null default 0,
    lost_leases int2 not null default 0,
    lost_in_a_row int2 not null default 0,
    reason int2 not null default 0,
    max_retries int2,
    start_by timestamptz,
    timeout_ms int8, -- the job's own; NULL: the queue's
    backoff_base_ms int8,
    backoff_max_ms int8,
    key_seq int8, -- the position among those of its ordering key
    -- What a claim writes stands together: of an updated row the log has what lies between the first and the last change.
    state int2 not null default 0,
    is_cancel_asked boolean not null default false,
    is_started boolean not null default false, -- a renewal as started was accepted under this lease
    lease_version int4 not null default 0,
    lease_token uuid,
    lease_expires_at timestamptz,
    claimed_at timestamptz,
    run_until timestamptz,
    lease_ms int8,   -- as granted
    run_ms int8,     -- the execution timeout in force for this lease
    unstarted_until timestamptz, -- renewals as unstarted are refused from here on
    fence int8,   -- of the lease: where there is a key; 0 where there is none, and the queue has a limit
    claimed_by text,
    ordering_key text collate "C",
    dedupe_key text,
    payload bytea not null,
    headers text, -- "name: value" and a newline for each; NULL: none
    constraint job_pkey primary key (id),
    -- A job is Ready and has nothing of a lease, or InFlight and has all of it: nothing in between can be written, not even by
    -- hand. What else an edit can do is for the functions to bear and for the reaper to mend: every expression here is built
    -- anew for every statement, and a full set of them made a single enqueue a fifth dearer.
    constraint job_lease check (
        num_nulls(lease_token, lease_expires_at, claimed_by, claimed_at, run_until, lease_ms, run_ms, unstarted_until)
        = 8 * (1 - state)),
    constraint job_line_of_shard check (line_id & 4095 = shard)
);
create index job_line on pawl.job (line_id, priority, lane, pos, seq);
create unique index job_dedupe on pawl.job (line_id, dedupe_key, coalesce(ordering_key, ''))
    where dedupe_key is not null;
create index job_start_by on pawl.job (start_by, id) where start_by is not null;
-- Finds who is parked, from key to key and the first of each; the first of a key is that of one of four lanes. One index for
-- both: each that there is costs every statement which writes jobs, although jobs without a key are not in it.
create index job_key on pawl.job (line_id, lane, ordering_key, key_seq) where ordering_key is not null;
create sequence pawl.key_seq increment 64; -- an enqueue draws once for 64 jobs: see enqueue_keyed()
create sequence pawl.fence_seq;

-- The ledger: one row for each attempt that ended (RES-12). Never updated; deleted only by pawl.prune().
create table pawl.attempt (
    shard int4 not null,
    line_id int4 not null,
    job_id uuid not null,
    attempt_no int4 not null,
    lease_version int4 not null, -- 0: the job was not InFlight
    started_at timestamptz,
    finished_at timestamptz not null,
    created_at timestamptz,      -- of a job that succeeded, whose live row is gone: on DISPATCHED rows only
    payload_len int4,            -- likewise
    token_digest int4,           -- of the lease that its holder ended: a repeated settle must show its token
    outcome int2 not null,       -- 0 DISPATCHED, 1 RETRYABLE, 2 FAILED, 3 ZOMBIE_REQUEUE
    reason int2 not null,
    ended_by int2 not null,      -- 0 holder, 1 expiry, 2 operator, 3 deadline
    priority int2,               -- likewise, with the next three and the key
    retries int2,
    lost_leases int2,
    max_retries int2,
    wire_sends int4,             -- how often its request left the machine; NULL: its holder has not said
    worker text,
    error_code text,
    error_text text,
    ordering_key text,
    -- Of jobs that one statement has let succeed in a line, one stands for all: how many they are, and who the others are. The
    -- others have NULL here. (It has a meaning on DISPATCHED rows only.)
    batch int4 default 1,
    others uuid[],
    constraint attempt_pkey primary key (job_id, attempt_no)
);

-- What has succeeded, by the time it did: finds what is old enough to prune, and counts without a look at the rows.
create index attempt_succeeded on pawl.attempt (line_id, finished_at, batch) where outcome = 0 and batch is not null;

-- Failed jobs, until they are redriven or pruned; with their payload, until they are discarded.
create table pawl.dead_letter (
    shard int4 not null,
    line_id int4 not null,
    id uuid not null,
    priority int2 not null,
    retries int2 not null,
    lost_leases int2 not null,
    reason int2 not null,
    max_retries int2,
    attempts int4 not null,
    lease_version int4 not null,
    created_at timestamptz not null,
    due_at timestamptz not null,
    finished_at timestamptz not null,
    start_by timestamptz,
    timeout_ms int8,
    backoff_base_ms int8,
    backoff_max_ms int8,
    payload_len int4 not null,
    is_discarded boolean not null default false,
    ordering_key text,
    dedupe_key text,
    payload bytea, -- NULL: discarded
    headers text,  -- likewise, or there were none
    constraint dead_letter_pkey primary key (id)
);
create index dead_letter_age on pawl.dead_letter (line_id, finished_at);

-- Which job holds an ordering key (see 035_keys.sql), and the row that claims of a line with keys or a limit lock first.
create table pawl.hold (
    shard int4 not null,
    line_id int4 not null,
    job_id uuid, -- NULL: vacant
    ordering_key text collate "C" not null,
    constraint hold_pkey primary key (line_id, ordering_key)
);
create index hold_vacant on pawl.hold (line_id) where job_id is null;
create table pawl.gate (
    shard int4 not null,
    line_id int4 not null,
    constraint gate_pkey primary key (line_id)
);

-- Hints, lost at a crash and never needed for correctness. Rows are only added; the reaper deletes old ones.
--
-- A mark says where the walk of a lane may begin. Of kind 0: no Ready job stands before it; of kind 1: no job at all; of kind
-- 2, in queues with a limit: no InFlight job stands beyond it. But for jobs of the transactions in `holes`, which were running when the mark was set, or had ended and had such jobs left:
-- those stand at pos = hole, from hole_seqs on.
create unlogged table pawl.mark (
    shard int4 not null,
    line_id int4 not null,
    priority int2 not null,
    lane int2 not null,
    kind int2 not null,
    pos int8 not null,
    seq int8 not null,
    boot timestamptz not null, -- the server's start: a mark of an earlier one is void
    at timestamptz not null,
    holes int8[] not null,
    hole_seqs int8[] not null
);
create index mark_top on pawl.mark (line_id, priority, lane, kind, pos, seq, at);

-- When a line was looked through for expired leases. Of kind 0: by a claim, as far as claims usually reach, and when the
-- first lease found there will expire; of kind 1: by the reaper, all of it, part by part.
create unlogged table pawl.sweep (
    shard int4 not null,
    line_id int4 not null,
    kind int2 not null,
    at timestamptz not null,
    next_at timestamptz not null,
    timed_from int8, -- of kind 0: before this position no job waits for its time; but see sweep_line()
    reached int8[] -- of kind 1: priority, lane, pos and seq of the last job that the reaper has looked at; NULL: it has been through
);
create index sweep_last on pawl.sweep (line_id, kind, at);

-- What large claims of a line lock, one after another: see take_turn().
create unlogged table pawl.turn (
    shard int4 not null,
    line_id int4 not null,
    constraint turn_pkey primary key (line_id)
);

-- Workers and reapers that have shown themselves.
create table pawl.worker (
    name text primary key,
    kind int2 not null, -- 0 worker, 1 reaper
    host text not null,
    version text not null,
    queues text not null, -- that it serves, with a blank between two
    since timestamptz not null,
    last_seen timestamptz not null
);
