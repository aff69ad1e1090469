-- SPDX-License-Identifier: Apache-2.0
-- What operators and workers ask. Nothing here changes a job. A job that has succeeded is told from its last ledger row. A job
-- whose queue somebody has deleted is told as well: without the queue's name.

-- All jobs that are known, in one form; with tokens, therefore for the functions of this file only.
create view pawl.job_form_live as
    select j.shard, j.id, j.line_id, j.state, j.priority, j.retries, j.lost_leases, j.attempts, j.lease_version, j.max_retries,
           j.created_at, j.next_attempt_at as due_at, j.start_by, null::timestamptz as finished_at, j.reason,
           j.claimed_by as worker, j.claimed_at, j.lease_expires_at, j.run_until, j.lease_ms, j.run_ms as timeout_ms,
           j.is_cancel_asked, octet_length(j.payload) as payload_len, j.payload, j.lease_token, j.ordering_key, j.fence,
           j.headers
    from pawl.job j;
create view pawl.job_form_failed as
    select d.shard, d.id, d.line_id, 3::int2 as state, d.priority, d.retries, d.lost_leases, d.attempts, d.lease_version,
           d.max_retries, d.created_at, d.due_at, d.start_by, d.finished_at, d.reason, null::text as worker,
           null::timestamptz as claimed_at, null::timestamptz as lease_expires_at, null::timestamptz as run_until,
           null::int8 as lease_ms, null::int8 as timeout_ms, false as is_cancel_asked, d.payload_len, d.payload,
           null::uuid as lease_token, d.ordering_key, null::int8 as fence, d.headers
    from pawl.dead_letter d;
create view pawl.job_form_succeeded as
    select a.shard, a.job_id as id, a.line_id, 2::int2 as state, a.priority, a.retries, a.lost_leases, a.attempt_no as attempts,
           a.lease_version, a.max_retries, a.created_at, null::timestamptz as due_at, null::timestamptz as start_by,
           a.finished_at, a.reason, null::text as worker, null::timestamptz as claimed_at,
           null::timestamptz as lease_expires_at, null::timestamptz as run_until, null::int8 as lease_ms,
           null::int8 as timeout_ms, false as is_cancel_asked, a.payload_len, null::bytea as payload, null::uuid as lease_token,
           a.ordering_key, null::int8 as fence, null::text as headers
    from pawl.attempt a where (a.outcome = 0) is true; -- so written, the index of its primary key is taken
create view pawl.job_form as
    select * from pawl.job_form_live union all select * from pawl.job_form_failed union all select * from pawl.job_form_succeeded;

create function pawl.get_job(p_shard int4, p_id uuid)
returns table (id uuid, queue text, state int2, priority int2, retries int2, lost_leases int2, attempts int4,
               lease_version int4, max_retries int4, created_at timestamptz, due_at timestamptz, start_by timestamptz,
               finished_at timestamptz, reason int2, worker text, claimed_at timestamptz, lease_expires_at timestamptz,
               run_until timestamptz, lease_ms int8, timeout_ms int8, is_cancel_asked boolean, payload_len int4,
               payload bytea, lease_token uuid, ordering_key text, fence int8, headers text)
language plpgsql stable security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    return query
        select f.id, q.name, f.state, f.priority, f.retries, f.lost_leases, f.attempts, f.lease_version,
               coalesce(f.max_retries, q.max_retries)::int4, f.created_at, f.due_at, f.start_by, f.finished_at, f.reason,
               f.worker, f.claimed_at, f.lease_expires_at, f.run_until, f.lease_ms, f.timeout_ms, f.is_cancel_asked,
               f.payload_len, f.payload, null::uuid, f.ordering_key, f.fence, f.headers
        from pawl.job_form f left join pawl.queue q on q.queue_id = f.line_id / 4096
        where f.shard = p_shard and f.id = p_id;
end $$;

-- Jobs without payloads and headers in the order of their ids. p_states is a set of bits 1 << state; 0, like 0 in p_reason, means any.
create function pawl.list_jobs(p_queue text, p_states int4, p_reason int2, p_worker text, p_after uuid, p_max int4,
                               p_ordering_key text default null)
returns table (id uuid, queue text, state int2, priority int2, retries int2, lost_leases int2, attempts int4,
               lease_version int4, max_retries int4, created_at timestamptz, due_at timestamptz, start_by timestamptz,
               finished_at timestamptz, reason int2, worker text, claimed_at timestamptz, lease_expires_at timestamptz,
               run_until timestamptz, lease_ms int8, timeout_ms int8, is_cancel_asked boolean, payload_len int4,
               payload bytea, lease_token uuid, ordering_key text, fence int8, headers text)
language plpgsql stable security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    v_queue_id int4;
    v_after uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
begin
    select q.queue_id into v_queue_id from pawl.queue q where q.name = p_queue;
    if p_queue is not null and not found then
        return;
    end if;
    return query
        select f.id, q.name, f.state, f.priority, f.retries, f.lost_leases, f.attempts, f.lease_version,
               coalesce(f.max_retries, q.max_retries)::int4, f.created_at, f.due_at, f.start_by, f.finished_at, f.reason,
               f.worker, f.claimed_at, f.lease_expires_at, f.run_until, f.lease_ms, f.timeout_ms, f.is_cancel_asked,
               f.payload_len, null::bytea, null::uuid, f.ordering_key, f.fence, null::text
        from (
            -- Each with its own order and limit, so that none is read to its end.
            (select j.* from pawl.job_form_live j
             where j.id > v_after and (p_queue is null or j.line_id / 4096 = v_queue_id)
               and (p_states = 0 or p_states & (1 << j.state) <> 0) and (p_reason = 0 or j.reason = p_reason)
               and (p_worker is null or j.worker = p_worker)
               and (p_ordering_key is null or j.ordering_key = p_ordering_key)
             order by j.id limit p_max)
            union all
            (select d.* from pawl.job_form_failed d
             where d.id > v_after and (p_queue is null or d.line_id / 4096 = v_queue_id)
               and (p_states = 0 or p_states & 8 <> 0) and (p_reason = 0 or d.reason = p_reason) and p_worker is null
               and (p_ordering_key is null or d.ordering_key = p_ordering_key)
             order by d.id limit p_max)
            union all
            (select a.* from pawl.job_form_succeeded a
             where a.id > v_after and (p_queue is null or a.line_id / 4096 = v_queue_id)
               and (p_states = 0 or p_states & 4 <> 0) and (p_reason = 0 or a.reason = p_reason) and p_worker is null
               and (p_ordering_key is null or a.ordering_key = p_ordering_key)
             order by a.id limit p_max)
            order by id limit p_max) f
        left join pawl.queue q on q.queue_id = f.line_id / 4096
        order by f.id;
end $$;

-- The jobs that a worker holds under a lease that is valid now, with payload, headers and token, in the order of their ids.
create function pawl.mine(p_worker text, p_after uuid, p_max int4)
returns table (id uuid, queue text, state int2, priority int2, retries int2, lost_leases int2, attempts int4,
               lease_version int4, max_retries int4, created_at timestamptz, due_at timestamptz, start_by timestamptz,
               finished_at timestamptz, reason int2, worker text, claimed_at timestamptz, lease_expires_at timestamptz,
               run_until timestamptz, lease_ms int8, timeout_ms int8, is_cancel_asked boolean, payload_len int4,
               payload bytea, lease_token uuid, ordering_key text, fence int8, headers text)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
        select j.id, q.name, j.state, j.priority, j.retries, j.lost_leases, j.attempts, j.lease_version,
               coalesce(j.max_retries, q.max_retries)::int4, j.created_at, j.next_attempt_at, j.start_by, null::timestamptz,
               j.reason, j.claimed_by, j.claimed_at, j.lease_expires_at, j.run_until, j.lease_ms, j.run_ms,
               j.is_cancel_asked, octet_length(j.payload), j.payload, j.lease_token, j.ordering_key, j.fence,
               j.headers
        from pawl.job j left join pawl.queue q on q.queue_id = j.line_id / 4096
        where j.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000') and j.state = 1
          and j.claimed_by = p_worker and j.lease_expires_at > v_now
        order by j.id limit p_max;
end $$;

-- A job's ledger. The first row has the number 0 and says that the job is known; no row at all: it is not.
create function pawl.list_attempts(p_shard int4, p_id uuid, p_after_no int4, p_max int4)
returns table (attempt_no int4, outcome int2, reason int2, ended_by int2, lease_version int4, worker text,
               started_at timestamptz, finished_at timestamptz, error_code text, error_text text, wire_sends int4)
language plpgsql stable security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    if not exists (select from pawl.job j where j.shard = p_shard and j.id = p_id)
       and not exists (select from pawl.attempt a where a.shard = p_shard and a.job_id = p_id) then
        return;
    end if;
    attempt_no := 0;
    return next;
    return query
        select a.attempt_no, a.outcome, a.reason, a.ended_by, a.lease_version, a.worker, a.started_at, a.finished_at,
               a.error_code, a.error_text, a.wire_sends
        from pawl.attempt a
        where a.shard = p_shard and a.job_id = p_id and a.attempt_no > p_after_no order by a.attempt_no limit p_max;
end $$;

-- Who holds what, expired leases too, in the order of job ids. Never shows a token.
create function pawl.list_leases(p_queue text, p_worker text, p_after uuid, p_max int4)
returns table (id uuid, queue text, worker text, lease_version int4, claimed_at timestamptz, lease_expires_at timestamptz,
               is_expired boolean, is_cancel_asked boolean)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
        select j.id, q.name, j.claimed_by, j.lease_version, j.claimed_at, j.lease_expires_at,
               (j.lease_expires_at > v_now) is not true, j.is_cancel_asked
        from pawl.job j left join pawl.queue q on q.queue_id = j.line_id / 4096
        where j.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000') and j.state = 1
          and (p_queue is null or q.name = p_queue) and (p_worker is null or j.claimed_by = p_worker)
        order by j.id limit p_max;
end $$;

-- ---- workers

create function pawl.worker_seen(p_name text, p_kind int2, p_host text, p_version text, p_queues text default '')
returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_now timestamptz := clock_timestamp();
begin
    perform pawl.check_name('p_name', p_name);
    perform pawl.check_number('p_kind', p_kind, 0, 1);
    perform pawl.check_name('p_host', p_host);
    perform pawl.check_name('p_version', p_version);
    perform pawl.check_text('p_queues', p_queues, 0, 1023);
    insert into pawl.worker as w (name, kind, host, version, queues, since, last_seen)
    values (p_name, p_kind, p_host, p_version, coalesce(p_queues, ''), v_now, v_now)
    on conflict (name) do update
    set kind = p_kind, host = p_host, version = p_version, queues = coalesce(p_queues, ''), last_seen = v_now;
end $$;

create function pawl.worker_ended(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    delete from pawl.worker w where w.name = p_name;
end $$;

-- Forgets workers that have not shown themselves since p_before and hold no lease.
create function pawl.forget_workers(p_before timestamptz) returns void
language plpgsql as $$
begin
    delete from pawl.worker w
    where w.last_seen < p_before
      and not exists (select from pawl.job j where j.state = 1 and j.claimed_by = w.name);
end $$;

create function pawl.list_workers(p_after text, p_max int4,
                                  p_has_leases boolean default true) -- false: nobody asks for them, and no job is looked at
returns table (name text, kind int2, host text, version text, queues text, since timestamptz, last_seen timestamptz,
               leases int8)
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    return query
        with page as materialized (
            select w.* from pawl.worker w
            where p_after is null or w.name collate "C" > p_after collate "C" order by w.name collate "C" limit p_max),
        held as (
            select j.claimed_by, count(*) n from pawl.job j
            where p_has_leases and j.state = 1 and j.claimed_by in (select p.name from page p) group by j.claimed_by)
        select p.name, p.kind, p.host, p.version, p.queues, p.since, p.last_seen, coalesce(h.n, 0)
        from page p left join held h on h.claimed_by = p.name order by p.name collate "C";
end $$;

-- ---- queues

-- Queues that have jobs, history or settings, in the order of their names. Counts what is there: costs as much.
create function pawl.list_stats(p_after text, p_max int4)
returns table (queue text, is_paused boolean, ready int8, delayed int8, in_flight int8, expired int8, succeeded int8,
               failed int8, oldest_due_ms int8)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
        with live as (
            select j.line_id / 4096 queue_id, count(*) filter (where j.state = 0) ready,
                   count(*) filter (where j.state = 0 and j.next_attempt_at > v_now) delayed,
                   count(*) filter (where j.state = 1) in_flight,
                   count(*) filter (where j.state = 1 and (j.lease_expires_at > v_now) is not true) expired,
                   min(j.next_attempt_at) filter (where j.state = 0 and j.next_attempt_at <= v_now) oldest
            from pawl.job j group by 1),
        succeeded as (select a.line_id / 4096 queue_id, sum(a.batch)::int8 n from pawl.attempt a
                      where a.outcome = 0 and a.batch is not null group by 1),
        failed as (select d.line_id / 4096 queue_id, count(*) n from pawl.dead_letter d group by 1)
        select q.name, q.is_paused, coalesce(l.ready, 0), coalesce(l.delayed, 0), coalesce(l.in_flight, 0),
               coalesce(l.expired, 0), coalesce(s.n, 0), coalesce(f.n, 0), coalesce(pawl.span_ms(l.oldest, v_now), 0)
        from pawl.queue q
        left join live l on l.queue_id = q.queue_id
        left join succeeded s on s.queue_id = q.queue_id
        left join failed f on f.queue_id = q.queue_id
        where (p_after is null or q.name collate "C" > p_after collate "C")
          and (q.is_set or l.queue_id is not null or s.queue_id is not null or f.queue_id is not null)
        order by q.name collate "C" limit p_max;
end $$;

-- What is live in one queue, or in all that have live jobs or settings, in the order of their names. Looks at nothing that
-- has ended, and at no other queue's jobs.
create function pawl.list_depths(p_queue text, p_after text, p_max int4)
returns table (queue text, is_paused boolean, ready int8, delayed int8, in_flight int8, expired int8, oldest_due_ms int8)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
        with page as materialized (
            select q.queue_id, q.name, q.is_paused from pawl.queue q
            where (p_queue is null or q.name = p_queue)
              and (p_after is null or q.name collate "C" > p_after collate "C")
              and (q.is_set or exists (select from pawl.job j
                                       where j.line_id between q.queue_id * 4096 and q.queue_id * 4096 + 4095))
            order by q.name collate "C" limit p_max)
        select p.name, p.is_paused, l.ready, l.delayed, l.in_flight, l.expired,
               coalesce(pawl.span_ms(l.oldest, v_now), 0)
        from page p cross join lateral (
            select count(*) filter (where j.state = 0) ready,
                   count(*) filter (where j.state = 0 and j.next_attempt_at > v_now) delayed,
                   count(*) filter (where j.state = 1) in_flight,
                   count(*) filter (where j.state = 1 and (j.lease_expires_at > v_now) is not true) expired,
                   min(j.next_attempt_at) filter (where j.state = 0 and j.next_attempt_at <= v_now) oldest
            from pawl.job j where j.line_id between p.queue_id * 4096 and p.queue_id * 4096 + 4095) l
        order by p.name collate "C";
end $$;

-- A queue's settings; the defaults where there are none. NULL in a timeout: three leases; in a retention: for ever. 0 jobs in
-- flight: no limit.
create function pawl.queue_get(p_queue text)
returns table (lease_ms int8, execution_timeout_ms int8, max_retries int4, max_lost_leases int4, backoff_base_ms int8,
               backoff_max_ms int8, keep_succeeded_ms int8, keep_failed_ms int8, is_paused boolean, max_in_flight int4)
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select q.lease_ms, q.execution_timeout_ms, q.max_retries, q.max_lost_leases, q.backoff_base_ms, q.backoff_max_ms,
               q.keep_succeeded_ms, q.keep_failed_ms, q.is_paused, coalesce(q.max_in_flight, 0)
        from pawl.queue q where q.name = p_queue;
    if not found then
        return query select 30000::int8, null::int8, 3, 10, 500::int8, 30000::int8, 604800000::int8, 2592000000::int8, false, 0;
    end if;
end $$;

-- Sets all of a queue's settings. What was granted before stays as it was granted.
create function pawl.queue_set(p_queue text, p_lease_ms int8, p_execution_timeout_ms int8, p_max_retries int4,
                               p_max_lost_leases int4, p_backoff_base_ms int8, p_backoff_max_ms int8,
                               p_keep_succeeded_ms int8, p_keep_failed_ms int8, p_max_in_flight int4 default 0)
returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_id int4;
    v_had_limit boolean;
begin
    perform pawl.check_name('p_queue', p_queue);
    perform pawl.check_number('p_lease_ms', p_lease_ms, 100, 315360000000);
    perform pawl.check_number('p_execution_timeout_ms', coalesce(p_execution_timeout_ms, 1), 1, 315360000000);
    perform pawl.check_number('p_max_retries', p_max_retries, 0, 10000);
    perform pawl.check_number('p_max_lost_leases', p_max_lost_leases, 1, 10000);
    perform pawl.check_number('p_backoff_base_ms', p_backoff_base_ms, 1, 315360000000);
    perform pawl.check_number('p_backoff_max_ms', p_backoff_max_ms, 1, 315360000000);
    perform pawl.check_number('p_keep_succeeded_ms', coalesce(p_keep_succeeded_ms, 1), 1, 315360000000);
    perform pawl.check_number('p_keep_failed_ms', coalesce(p_keep_failed_ms, 1), 1, 315360000000);
    if p_max_in_flight is distinct from 0 then
        perform pawl.check_number('p_max_in_flight', p_max_in_flight, pawl.shards(), 1000000); -- one for each shard at least
    end if;
    v_id := pawl.queue_id(p_queue);
    select q.max_in_flight is not null into v_had_limit from pawl.queue q where q.queue_id = v_id for update;
    update pawl.queue q
    set lease_ms = p_lease_ms, execution_timeout_ms = p_execution_timeout_ms, max_retries = p_max_retries,
        max_lost_leases = p_max_lost_leases, backoff_base_ms = p_backoff_base_ms, backoff_max_ms = p_backoff_max_ms,
        keep_succeeded_ms = p_keep_succeeded_ms, keep_failed_ms = p_keep_failed_ms,
        max_in_flight = nullif(p_max_in_flight, 0), is_set = true
    where q.queue_id = v_id;
    if not v_had_limit and p_max_in_flight > 0 then
        perform pawl.begin_limit(v_id);
    elsif v_had_limit then
        perform pawl.hint(p_queue); -- it may be higher, or gone
    end if;
end $$;

-- Stops or resumes claims from a queue. Leases already granted go on; enqueue goes on.
create function pawl.queue_pause(p_queue text, p_is_paused boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    perform pawl.check_name('p_queue', p_queue);
    perform pawl.check_given('p_is_paused', p_is_paused::text);
    perform pawl.queue_id(p_queue);
    update pawl.queue q set is_paused = p_is_paused, is_set = true where q.name = p_queue;
    if not p_is_paused then
        perform pawl.hint(p_queue);
    end if;
end $$;

-- ---- jobs by filter

-- Changes up to p_max jobs that match, in the order of their ids; gives how many. p_verb is cancel, redrive or discard.
create function pawl.change_where(p_verb text, p_queue text, p_states int4, p_reason int2, p_worker text, p_max int4,
                                  p_ordering_key text) returns int4
language plpgsql as $$
declare
    c_live constant int4 := 3;   -- Ready and InFlight
    c_failed constant int4 := 8;
    v_states int4 := case when p_verb = 'cancel' then c_live else c_failed end;
    v_after uuid := '00000000-0000-0000-0000-000000000000';
    v_queue_id int4;
    v_page uuid[];
    v_shard int4;
    v_ids uuid[];
    v_count int4 := 0;
    v_changed int4;
begin
    perform pawl.check_number('p_max', p_max, 1, 10000);
    perform pawl.check_number('p_states', p_states, 0, 15);
    perform pawl.check_number('p_reason', p_reason, 0, 10);
    if p_states <> 0 then
        if p_states & v_states = 0 then
            perform pawl.fail('p_states', p_states::text, 'a state that ' || p_verb || ' can change: one of the bits of '
                              || v_states);
        end if;
        v_states := v_states & p_states;
    end if;
    select q.queue_id into v_queue_id from pawl.queue q where q.name = p_queue;
    if p_queue is not null and not found then
        return 0;
    end if;
    while v_count < p_max loop
        v_page := array(
            select x.id from pawl.job_form x
            where x.id > v_after and v_states & (1 << x.state) <> 0 and (p_queue is null or x.line_id / 4096 = v_queue_id)
              and (p_reason = 0 or x.reason = p_reason) and (p_worker is null or x.worker = p_worker)
              and (p_ordering_key is null or x.ordering_key = p_ordering_key)
              and not x.is_cancel_asked and (x.state <> 3 or x.payload is not null)
            order by x.id limit p_max - v_count);
        exit when v_page = '{}';
        v_after := v_page[cardinality(v_page)];
        for v_shard, v_ids in
            select pawl.id_shard(i, pawl.shards()), array_agg(i) from unnest(v_page) i group by 1 order by 1
        loop
            execute format('select count(*) from pawl.%I($1, $2) c where c.verdict = ''OK''', p_verb || '_batch')
            into v_changed using v_shard, v_ids;
            v_count := v_count + v_changed;
        end loop;
    end loop;
    return v_count;
end $$;

create function pawl.cancel_where(p_queue text, p_states int4, p_reason int2, p_worker text, p_max int4,
                                  p_ordering_key text default null) returns int4
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off as $$
begin
    return pawl.change_where('cancel', p_queue, p_states, p_reason, p_worker, p_max, p_ordering_key);
end $$;

create function pawl.redrive_where(p_queue text, p_states int4, p_reason int2, p_worker text, p_max int4,
                                  p_ordering_key text default null) returns int4
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off as $$
begin
    return pawl.change_where('redrive', p_queue, p_states, p_reason, p_worker, p_max, p_ordering_key);
end $$;

create function pawl.discard_where(p_queue text, p_states int4, p_reason int2, p_worker text, p_max int4,
                                  p_ordering_key text default null) returns int4
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off as $$
begin
    return pawl.change_where('discard', p_queue, p_states, p_reason, p_worker, p_max, p_ordering_key);
end $$;

-- The store's clock.
create function pawl.store_now() returns timestamptz
language plpgsql as $$
begin
    return clock_timestamp();
end $$;
