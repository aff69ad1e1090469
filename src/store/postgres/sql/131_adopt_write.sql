-- SPDX-License-Identifier: Apache-2.0
-- Takes over an outbox of the old layout (OL-ADOPT), the second half: writes what the first has planned.

-- A text of the old tables as the ledger may hold it: without control characters, cut to p_max bytes.
create function pawl.adopt_text(p_text text, p_max int4, p_controls text) returns text
language sql immutable as $$
    select nullif(case when octet_length(t.t) <= p_max then t.t
                       when octet_length(t.t) = length(t.t) then left(t.t, p_max)
                       else left(t.t, p_max / 4) end, '')
    from (select regexp_replace(p_text, p_controls, '?', 'g') t) t
$$;

-- Every job goes into the live table first, also those that have ended: whoever enqueues the same id at this moment either waits
-- here, and then finds the history, or is in the way, and then nothing is adopted. Lines below 4096 belong to no queue.
create function pawl.adopt_write_jobs(p_queue_id int4, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_pos int8 := pawl.here();
    v_planned int8 := (select count(*) from pg_temp.adopt_plan);
    v_written int8;
begin
    insert into pawl.job (shard, line_id, pos, id, priority, lane, retries, lost_leases, lost_in_a_row, reason, attempts,
                          lease_version, created_at, next_attempt_at, payload)
    select l.shard, case when l.is_live then p_queue_id * 4096 else 0 end + l.shard,
           case when l.lane = 3 then pawl.micros(l.due_at) else v_pos end, l.id, 5, l.lane, l.retries, l.losses,
           ((l.last_what in (3, 9)) is true)::int4, -- the last attempt was lost
           coalesce(case l.last_what when 1 then 1 when 2 then 3 when 3 then 7 when 9 then 7 end, 0), l.rows, l.rows,
           l.created_at, l.due_at, case when l.is_live then l.payload else '' end
    from (select k.*, k.class not in ('dispatched', 'failed', 'failed_without_payload') as is_live,
                 case when k.due_at > p_now then 3 when k.is_pending then 0 else 1 end as lane
          from pg_temp.adopt_plan k) l
    order by l.lane, l.due_at, l.ord, l.last_at, l.old_id;
    get diagnostics v_written = row_count;
    if v_written <> v_planned then
        raise exception 'PAWL_BUG: % jobs planned, % written', v_planned, v_written;
    end if;
    -- A later statement: sees what has ended while the insert waited.
    if exists (select from pg_temp.adopt_plan k join pawl.attempt a on a.shard = k.shard and a.job_id = k.id) then
        raise exception 'EXISTS' using errcode = 'P7003', hint = 'A job with an id of the old table has just ended in Pawl.';
    end if;
end $$;

-- The outcomes as ledger rows: numbered from 1 without gaps, each under a lease version of its own. An attempt began with the
-- DISPATCHING row before it; without one, nobody knows, and it counts as begun when it ended. An open DISPATCHING row becomes the
-- last row of its job, whose holder lost it.
create function pawl.adopt_write_ledger(p_queue_id int4, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_planned int8 := (select sum(k.rows) from pg_temp.adopt_plan k);
    v_written int8;
begin
    insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, started_at,
                              finished_at, created_at, payload_len, priority, retries, lost_leases, worker, error_code,
                              error_text)
    select k.shard, p_queue_id * 4096 + k.shard, k.id, r.no, r.no, r.outcome,
           case r.outcome when 0 then 0 when 1 then 1 when 2 then 3 else 7 end, (r.outcome = 3)::int4,
           case when r.claimed_at <= r.finished_at then r.claimed_at else r.finished_at end, r.finished_at,
           case when r.outcome = 0 then k.created_at end, case when r.outcome = 0 then 0 end,
           case when r.outcome = 0 then 5 end, case when r.outcome = 0 then k.retries end,
           case when r.outcome = 0 then k.losses end, pawl.adopt_text(r.worker, 128, '[^!-~]'),
           pawl.adopt_text(r.error_code, 64, '[\x01-\x1f\x7f-\x9f]'),
           pawl.adopt_text(r.error_text, 1024, '[\x01-\x08\x0b-\x1f\x7f-\x9f]')
    from (select o.*, row_number() over (partition by o.old_id order by o.n) as no
          from (select t.old_id, t.n, case when t.what = 9 then 3 else t.what end as outcome,
                       case when t.what = 9 then p_now else t.ended_at end as finished_at,
                       case when t.what = 9 then t.at when lag(t.what) over w = 9 then lag(t.at) over w end as claimed_at,
                       coalesce(t.worker, case when lag(t.what) over w = 9 then lag(t.worker) over w end) as worker,
                       t.error_code, t.error_text, t.what <> 9 or t.n = t.total as is_row
                from pg_temp.adopt_attempt t where not t.is_late
                window w as (partition by t.old_id order by t.n)) o
          where o.is_row) r
    join pg_temp.adopt_plan k on k.old_id = r.old_id;
    get diagnostics v_written = row_count;
    if v_written <> v_planned then
        raise exception 'PAWL_BUG: % ledger rows planned, % written', v_planned, v_written;
    end if;
end $$;

-- Jobs that have ended leave the live table: Failed ones for the dead letters.
create function pawl.adopt_write_ended(p_queue_id int4, p_now timestamptz) returns void
language plpgsql as $$
begin
    insert into pawl.dead_letter (shard, line_id, id, priority, retries, lost_leases, reason, attempts, lease_version,
                                  created_at, due_at, finished_at, payload_len, is_discarded, payload)
    select k.shard, p_queue_id * 4096 + k.shard, k.id, 5, k.retries, k.losses, 3, k.rows, k.rows, k.created_at, k.created_at,
           a.finished_at, coalesce(octet_length(k.payload), 0), k.payload is null, k.payload
    from pg_temp.adopt_plan k
    join pawl.attempt a on a.shard = k.shard and a.job_id = k.id and a.attempt_no = k.rows
    where k.class in ('failed', 'failed_without_payload');
    delete from pawl.job j using pg_temp.adopt_plan k
    where j.shard = k.shard and j.id = k.id and k.class in ('dispatched', 'failed', 'failed_without_payload');
    if exists (select from pawl.job j where j.line_id < 4096) then
        raise exception 'PAWL_BUG: an adopted job that has ended is still live';
    end if;
end $$;

-- Writes everything that was planned, and remembers what was adopted.
create function pawl.adopt_write(p_mapping jsonb, p_source text, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_queue_id int4;
begin
    if not exists (select from pg_temp.adopt_plan) then
        return;
    end if;
    v_queue_id := (pawl.enqueue_lines(0, array[p_mapping ->> 'queue'], '{}', null, p_has_delays => true))[1] / 4096; -- and hints
    perform pawl.adopt_step('writing the jobs');
    perform pawl.adopt_write_jobs(v_queue_id, p_now);
    perform pawl.adopt_step('writing the ledger');
    perform pawl.adopt_write_ledger(v_queue_id, p_now);
    perform pawl.adopt_write_ended(v_queue_id, p_now);
    perform pawl.adopt_step('remembering what was adopted');
    insert into pawl.adopted (source, old_id, id, adopted_at) select p_source, k.old_id, k.id, p_now from pg_temp.adopt_plan k;
end $$;

-- Renames the old tables, so that no old program goes on with them.
create function pawl.adopt_retire(p_mapping jsonb) returns void
language plpgsql as $$
declare
    v_part text;
    v_name text;
begin
    for v_part in values ('pending'), ('attempts') loop
        v_name := p_mapping ->> (v_part || '.table');
        if octet_length(v_name || '_adopted') > 63 then
            perform pawl.fail(v_part || '.table', format('%I', v_name), '55 bytes long at most, to be renamed to ..._adopted');
        end if;
        execute format('alter table %I.%I rename to %I', p_mapping ->> (v_part || '.schema'), v_name, v_name || '_adopted');
    end loop;
end $$;

-- Adopts an outbox, whole or not at all; with p_is_dry_run it says what would be done and changes nothing. The answer has the
-- classes of jobs, the rows of the attempts, and the problems, any of which stops the run before it has changed anything; the
-- row of kind 'done' is there where it was adopted. A second run finds nothing to do.
create function pawl.adopt(p_mapping jsonb, p_is_dry_run boolean default true, p_is_retiring boolean default false)
returns table (kind text, name text, becomes text, count int8, ids text[])
language plpgsql
set search_path = pg_catalog, pawl, pg_temp set row_security = off set jit = off as $$
#variable_conflict use_column
declare
    v_source text := format('%I.%I', p_mapping ->> 'pending.schema', p_mapping ->> 'pending.table');
    v_now timestamptz;
begin
    perform pawl.adopt_check_owner();
    perform pawl.adopt_check(p_mapping);
    if pawl.adopt_find(p_mapping, 'pending') is null
       and pawl.adopt_find(p_mapping || jsonb_build_object('pending.table', p_mapping ->> 'pending.table' || '_adopted'),
                           'pending') is not null
       and exists (select from pawl.adopted d where d.source = v_source) then
        return query select 'jobs', 'adopted_before', 'left alone: the old tables are retired', count(*), '{}'::text[]
                     from pawl.adopted d where d.source = v_source;
        return query select 'done', 'retired', '', 0::int8, '{}'::text[];
        return;
    end if;
    if not p_is_dry_run and current_setting('transaction_isolation') <> 'read committed' then
        perform pawl.fail('transaction_isolation', current_setting('transaction_isolation'),
                          'read committed: an older snapshot would miss what was written before the lock');
    end if;
    perform pawl.adopt_forget();
    perform pawl.adopt_step('waiting for the old tables');
    perform pawl.adopt_lock(p_mapping, p_is_dry_run, p_is_retiring);
    v_now := clock_timestamp(); -- the tables are locked
    perform pawl.adopt_step('reading the attempts');
    perform pawl.adopt_read_attempts(p_mapping, v_source);
    perform pawl.adopt_step('reading the pending rows');
    perform pawl.adopt_read_jobs(p_mapping, v_source);
    perform pawl.adopt_step('looking for payloads');
    perform pawl.adopt_read_payloads(p_mapping);
    perform pawl.adopt_judge(p_mapping, v_source, v_now);
    return query select * from pawl.adopt_tell(v_source);
    if p_is_dry_run or exists (select from pg_temp.adopt_plan k where k.problem is not null) then
        return;
    end if;
    perform pawl.adopt_write(p_mapping, v_source, v_now);
    if p_is_retiring then
        perform pawl.adopt_retire(p_mapping);
    end if;
    return query select 'done', case when p_is_retiring then 'retired' else 'adopted' end, '', 0::int8, '{}'::text[];
end $$;

-- The owner's alone: the steps before have done this for their functions.
revoke all on pawl.adopted from public;
revoke all on all functions in schema pawl from public;
