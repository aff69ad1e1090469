-- SPDX-License-Identifier: Apache-2.0
-- For programs in any language that can call SQL (OL-ANY-CLIENT): one job at a time, arguments with defaults, and an error where
-- a job was not enqueued or a lease is lost, so that the caller's own transaction rolls back with it.
--
-- SQLSTATEs: P7001 an argument is wrong. P7002 LEASE_LOST. P7003 EXISTS. P7004 DUPLICATE (the detail is the holder's id).
-- P7005 CANCELLED and P7007 TIMEOUT: the lease was not extended; stop working on the job. P7006 the ledger is append-only.

-- Puts one job into a queue, in the caller's transaction; gives its id.
create function pawl.enqueue(
    p_queue text,
    p_payload bytea,
    p_id uuid default null,              -- made where it is NULL; pawl.new_id() makes one beforehand
    p_priority int4 default 5,           -- 0 (most urgent) to 9
    p_delay_ms int8 default 0,           -- not claimable before this has passed
    p_start_within_ms int8 default null, -- Failed unless it starts within this time
    p_max_retries int4 default null,     -- NULL, here and below: the queue's
    p_timeout_ms int8 default null,
    p_backoff_base_ms int8 default null,
    p_backoff_max_ms int8 default null,
    p_dedupe_key text default null,      -- unique among the live jobs of the queue that have the same ordering key, or none
    p_ordering_key text default null,    -- the live jobs of one key start one at a time, in order; NULL or '': none
    p_headers jsonb default null         -- an object of strings; NULL or {}: none
) returns uuid
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    c_duration_max constant int8 := 315360000000; -- ten years
    v_shards int4 := pawl.shards();
    v_id uuid := p_id;
    v_ordering_key text := nullif(p_ordering_key, '');
    v_headers text;
    v_shard_key text := coalesce(v_ordering_key, p_dedupe_key);
    v_verdict text;
    v_holder uuid;
begin
    perform pawl.check_name('p_queue', p_queue);
    perform pawl.check_given('p_payload', octet_length(p_payload)::text);
    perform pawl.check_bytes('p_payload', octet_length(p_payload), 0, (select c.payload_max from pawl.config c));
    perform pawl.check_number('p_priority', p_priority, 0, 9);
    perform pawl.check_number('p_delay_ms', p_delay_ms, 0, c_duration_max);
    perform pawl.check_number('p_start_within_ms', coalesce(p_start_within_ms, 1), 1, c_duration_max);
    if p_start_within_ms <= p_delay_ms then
        perform pawl.fail('p_start_within_ms', p_start_within_ms::text,
                          'above p_delay_ms, which is ' || p_delay_ms || ', or the job could never start');
    end if;
    perform pawl.check_number('p_max_retries', coalesce(p_max_retries, 0), 0, 10000);
    perform pawl.check_number('p_timeout_ms', coalesce(p_timeout_ms, 1), 1, c_duration_max);
    perform pawl.check_number('p_backoff_base_ms', coalesce(p_backoff_base_ms, 1), 1, c_duration_max);
    perform pawl.check_number('p_backoff_max_ms', coalesce(p_backoff_max_ms, 1), 1, c_duration_max);
    perform pawl.check_text('p_dedupe_key', p_dedupe_key, 1, 255);
    perform pawl.check_text('p_ordering_key', v_ordering_key, 1, 255);
    if p_headers is not null then
        v_headers := pawl.headers_text('p_headers', p_headers);
    end if;
    if v_id is null then
        v_id := pawl.new_id(p_queue, p_dedupe_key, v_ordering_key);
    elsif v_id = '00000000-0000-0000-0000-000000000000' then
        perform pawl.check_id('p_id', v_id);
    elsif pawl.id_shard(v_id, v_shards) <> pawl.shard_hash(p_queue, v_shard_key, v_id) % v_shards then
        perform pawl.fail('p_id', v_id::text, 'of shard ' || pawl.shard_hash(p_queue, v_shard_key, v_id) % v_shards
                          || ', and names shard ' || pawl.id_shard(v_id, v_shards) || ': make it with pawl.new_id()');
    end if;
    select b.verdict, b.id into v_verdict, v_holder
    from pawl.enqueue_batch(
        pawl.id_shard(v_id, v_shards), array[p_queue], array[v_id], array[p_payload], array[p_priority::int2],
        array[p_delay_ms], array[p_start_within_ms], array[p_max_retries], array[p_timeout_ms], array[p_backoff_base_ms],
        array[p_backoff_max_ms], case when p_dedupe_key is not null then array[p_dedupe_key] end, p_id is null,
        case when v_ordering_key is not null then array[v_ordering_key] end,
        case when v_headers is not null then array[v_headers] end) b;
    if v_verdict = 'EXISTS' then
        raise exception 'EXISTS' using errcode = 'P7003', detail = v_id, hint = 'A job with this id exists or has existed.';
    elsif v_verdict = 'DUPLICATE' then
        raise exception 'DUPLICATE' using errcode = 'P7004', detail = v_holder,
            hint = 'The detail names the live job that holds the dedupe key.';
    end if;
    return v_id;
end $$;

-- The same with a payload of text, carried as UTF-8.
create function pawl.enqueue(
    p_queue text, p_payload text, p_id uuid default null, p_priority int4 default 5, p_delay_ms int8 default 0,
    p_start_within_ms int8 default null, p_max_retries int4 default null, p_timeout_ms int8 default null,
    p_backoff_base_ms int8 default null, p_backoff_max_ms int8 default null, p_dedupe_key text default null,
    p_ordering_key text default null, p_headers jsonb default null
) returns uuid
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    return pawl.enqueue(p_queue, convert_to(p_payload, 'UTF8'), p_id, p_priority, p_delay_ms, p_start_within_ms,
                        p_max_retries, p_timeout_ms, p_backoff_base_ms, p_backoff_max_ms, p_dedupe_key, p_ordering_key,
                        p_headers);
end $$;

-- The same with a payload of JSON.
create function pawl.enqueue(
    p_queue text, p_payload jsonb, p_id uuid default null, p_priority int4 default 5, p_delay_ms int8 default 0,
    p_start_within_ms int8 default null, p_max_retries int4 default null, p_timeout_ms int8 default null,
    p_backoff_base_ms int8 default null, p_backoff_max_ms int8 default null, p_dedupe_key text default null,
    p_ordering_key text default null, p_headers jsonb default null
) returns uuid
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    return pawl.enqueue(p_queue, convert_to(p_payload::text, 'UTF8'), p_id, p_priority, p_delay_ms, p_start_within_ms,
                        p_max_retries, p_timeout_ms, p_backoff_base_ms, p_backoff_max_ms, p_dedupe_key, p_ordering_key,
                        p_headers);
end $$;

-- A lease in seconds as milliseconds; NULL stays NULL.
create function pawl.lease_ms(p_lease_seconds numeric) returns int8
language plpgsql immutable as $$
begin
    if p_lease_seconds < 0.1 or p_lease_seconds > 315360000 then
        perform pawl.fail('p_lease_seconds', p_lease_seconds::text, 'from 0.1 to 315360000');
    end if;
    return round(p_lease_seconds * 1000)::int8;
end $$;

-- Claims up to p_batch_size due jobs of a queue for a worker, each under a fresh lease; in the order of the queue.
create function pawl.claim_outbox_batch(
    p_batch_size int4,
    p_worker_id text,                     -- an id that no other worker has or had
    p_lease_seconds numeric default null, -- NULL: the queue's
    p_queue text default 'default',
    p_bytes_max int8 default 16777216     -- stop before the payloads exceed this, but give one job at least
) returns table (outbox_id uuid, lease_token uuid, lease_version int4, claimed_by text, claimed_at timestamptz,
                 lease_expires_at timestamptz, run_until timestamptz, queue text, priority int2, attempts int4, retries int2,
                 max_retries int4, created_at timestamptz, payload bytea, ordering_key text, fence int8,
                 headers jsonb)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_seed bytea := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
    v_shards int4 := pawl.shards();
    v_first int4 := floor(random() * v_shards)::int4; -- so that no shard is served before the others for good
    v_row record;
begin
    perform pawl.check_number('p_batch_size', p_batch_size, 1, 10000);
    perform pawl.check_name('p_worker_id', p_worker_id);
    perform pawl.check_name('p_queue', p_queue);
    perform pawl.check_number('p_bytes_max', p_bytes_max, 1, 9223372036854775807);
    for v_row in
        select * from pawl.claim_lines(
            array(select (v_first + i) % v_shards from generate_series(0, v_shards - 1) i), p_worker_id, array[p_queue],
            array[p_batch_size], array[pawl.lease_ms(p_lease_seconds)], p_batch_size, p_bytes_max, v_seed) c
        order by (c.shard - v_first + v_shards) % v_shards, c.priority, c.lane = 0, c.lane, c.pos,
                 case when c.lane = 3 then c.next_attempt_at end, c.seq
    loop
        outbox_id := v_row.id;
        lease_token := v_row.lease_token;
        lease_version := v_row.lease_version;
        claimed_by := p_worker_id;
        claimed_at := v_row.claimed_at;
        lease_expires_at := v_row.lease_expires_at;
        run_until := v_row.run_until;
        queue := p_queue;
        priority := v_row.priority;
        attempts := v_row.attempts;
        retries := v_row.retries;
        max_retries := v_row.max_retries;
        created_at := v_row.created_at;
        payload := v_row.payload;
        ordering_key := v_row.ordering_key;
        fence := nullif(v_row.fence, 0);
        headers := case when v_row.headers is not null then pawl.headers_json(v_row.headers) end;
        return next;
    end loop;
end $$;

-- What a caller shows to prove that it holds a job; an error where a part of it is missing.
create function pawl.check_lease(p_outbox_id uuid, p_lease_token uuid, p_worker_id text) returns void
language plpgsql as $$
begin
    perform pawl.check_given('p_outbox_id', p_outbox_id::text);
    if p_lease_token is null then
        perform pawl.fail('p_lease_token', null, 'the token that the claim gave');
    end if;
    perform pawl.check_name('p_worker_id', p_worker_id);
end $$;

-- The version of the lease that a token is of, 0 where there is none: no lease has it.
create function pawl.version_of(p_shard int4, p_id uuid, p_token uuid) returns int4
language plpgsql as $$
begin
    return coalesce((select j.lease_version from pawl.job j
                     where j.shard = p_shard and j.id = p_id and j.lease_token = p_token), 0);
end $$;

create function pawl.raise_lost(p_id uuid, p_verdict text) returns void
language plpgsql as $$
begin
    if p_verdict = 'CANCELLED' then
        raise exception 'CANCELLED' using errcode = 'P7005', detail = p_id, hint = 'Stop working on this job.';
    elsif p_verdict = 'TIMEOUT' then
        raise exception 'TIMEOUT' using errcode = 'P7007', detail = p_id,
            hint = 'The execution timeout has passed. Stop working on this job.';
    elsif p_verdict is distinct from 'OK' then
        raise exception 'LEASE_LOST' using errcode = 'P7002', detail = p_id,
            hint = 'The lease is not, or no longer, the caller''s. Roll back and stop working on this job.';
    end if;
end $$;

-- Ends an attempt under its lease: lease check, ledger row and change of the live row in the caller's transaction. Raises P7002
-- where the lease is lost. Gives the number of the ledger row. DISPATCHED: done. RETRYABLE: uses a retry, and is FAILED where
-- none is left. FAILED: no retry will help. With p_lease_version a repeated call is answered as the first one was.
create function pawl.complete_outbox_attempt(
    p_outbox_id uuid,
    p_lease_token uuid,
    p_worker_id text,
    p_state text,
    p_error_code text default null,
    p_error_text text default null,
    p_retry_seconds numeric default null, -- RETRYABLE: NULL computes the backoff
    p_lease_version int4 default null,
    p_wire_sends int4 default null        -- how often a request left the machine; NULL: it was none, or nobody knows
) returns int4
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    v_shard int4;
    v_action int2 := case p_state when 'DISPATCHED' then 0 when 'RETRYABLE' then 1 when 'FAILED' then 2 end;
    v_seed bytea := uuid_send(gen_random_uuid());
    v_verdict text;
    v_attempt_no int4;
begin
    perform pawl.check_lease(p_outbox_id, p_lease_token, p_worker_id);
    if v_action is null then
        perform pawl.fail('p_state', left(p_state, 40), 'DISPATCHED, RETRYABLE or FAILED');
    end if;
    perform pawl.check_text('p_error_code', p_error_code, 0, 64);
    perform pawl.check_text('p_error_text', p_error_text, 0, 1024, true);
    perform pawl.check_number('p_wire_sends', coalesce(p_wire_sends, 0), 0, 1000000);
    if p_retry_seconds < 0 or p_retry_seconds > 315360000 then
        perform pawl.fail('p_retry_seconds', p_retry_seconds::text, 'from 0 to 315360000');
    end if;
    v_shard := pawl.id_shard(p_outbox_id, pawl.shards());
    select s.verdict, s.attempt_no into v_verdict, v_attempt_no
    from pawl.settle_one(v_shard, p_worker_id, p_outbox_id, p_lease_token,
                         coalesce(p_lease_version, pawl.version_of(v_shard, p_outbox_id, p_lease_token)), v_action, 0::int2,
                         round(p_retry_seconds * 1000)::int8, p_error_code, p_error_text, v_seed, p_wire_sends) s;
    perform pawl.raise_lost(p_outbox_id, v_verdict);
    return v_attempt_no;
end $$;

-- Extends a lease to the later of what it is and now + lease; gives its new end. Raises P7002 where the lease is lost, P7005
-- where the job is marked for cancellation, P7007 where its execution timeout has passed.
create function pawl.renew_outbox_lease(p_outbox_id uuid, p_lease_token uuid, p_worker_id text,
                                        p_lease_seconds numeric default null, p_is_unstarted boolean default false)
returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_shard int4;
    v_verdict text;
    v_expires_at timestamptz;
begin
    perform pawl.check_lease(p_outbox_id, p_lease_token, p_worker_id);
    v_shard := pawl.id_shard(p_outbox_id, pawl.shards());
    select r.verdict, r.lease_expires_at into v_verdict, v_expires_at
    from pawl.renew_batch(v_shard, p_worker_id, array[p_outbox_id], array[p_lease_token],
                          array[pawl.version_of(v_shard, p_outbox_id, p_lease_token)],
                          array[pawl.lease_ms(p_lease_seconds)], array[p_is_unstarted]) r;
    perform pawl.raise_lost(p_outbox_id, v_verdict);
    return v_expires_at;
end $$;

-- Gives a job back unstarted: Ready at once, no ledger row, no retry used. Raises P7002 where the lease is lost.
create function pawl.release_outbox_lease(p_outbox_id uuid, p_lease_token uuid, p_worker_id text) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_shard int4;
    v_verdict text;
begin
    perform pawl.check_lease(p_outbox_id, p_lease_token, p_worker_id);
    v_shard := pawl.id_shard(p_outbox_id, pawl.shards());
    select r.verdict into v_verdict
    from pawl.release_batch(v_shard, p_worker_id, array[p_outbox_id], array[p_lease_token],
                            array[pawl.version_of(v_shard, p_outbox_id, p_lease_token)]) r;
    perform pawl.raise_lost(p_outbox_id, v_verdict);
end $$;

-- Recovers up to p_max jobs whose lease has expired, or that missed their start-by deadline, and says which. A program that
-- serves queues over SQL alone calls this from time to time; where a reaper of Pawl runs, it need not.
create function pawl.repair_expired_leases(p_max int4 default 1000)
returns table (outbox_id uuid, queue text, worker text, lease_version int4, state text, reason text, due_at timestamptz,
               overdue_ms int8)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_seed bytea := uuid_send(gen_random_uuid());
    v_shards int4 := pawl.shards();
    v_first int4 := floor(random() * v_shards)::int4;
    v_left int4 := p_max;
    v_row record;
begin
    perform pawl.check_number('p_max', p_max, 1, 10000);
    for i in 0 .. v_shards - 1 loop
        exit when v_left <= 0;
        for v_row in select * from pawl.reap((v_first + i) % v_shards, v_left, v_seed) loop
            outbox_id := v_row.id;
            queue := v_row.queue;
            worker := nullif(v_row.worker, '');
            lease_version := v_row.lease_version;
            state := pawl.state_name(v_row.state);
            reason := pawl.reason_name(v_row.reason);
            due_at := v_row.due_at;
            overdue_ms := v_row.overdue_ms;
            v_left := v_left - 1;
            return next;
        end loop;
    end loop;
end $$;
