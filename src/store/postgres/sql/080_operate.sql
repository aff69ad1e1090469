-- SPDX-License-Identifier: Apache-2.0
-- Cancels jobs of one shard (RES-13): a Ready one is Failed at once, an InFlight one is marked. Repeating it is OK.
create function pawl.cancel_batch(p_shard int4, p_ids uuid[])
returns table (ordinal int4, verdict text, state int2)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_row record;
    v_job pawl.job;
    v_now timestamptz;
begin
    perform from pawl.job j where j.shard = p_shard and j.id = any (p_ids) order by j.id for update;
    v_now := clock_timestamp();
    for v_row in select u.o::int4 o, u.i from unnest(p_ids) with ordinality u(i, o) order by u.o loop
        ordinal := v_row.o;
        verdict := 'OK';
        select * into v_job from pawl.job j where j.shard = p_shard and j.id = v_row.i;
        if found and v_job.state = 1 then
            state := 1;
            update pawl.job j set is_cancel_asked = true
            where j.shard = p_shard and j.id = v_row.i and not j.is_cancel_asked;
        elsif found then
            state := 3;
            perform pawl.write_row(v_job, 2::int2, 9::int2, 2::int2, v_now, null, null);
            perform pawl.bury(v_job, 9::int2, v_now);
        else
            select h.verdict, h.state into verdict, state from pawl.history_verdict(p_shard, v_row.i) h;
            if exists (select from pawl.dead_letter d where d.shard = p_shard and d.id = v_row.i and d.reason = 9) then
                verdict := 'OK';
            end if;
        end if;
        return next;
    end loop;
end $$;

-- What is known of a job that is not live: ALREADY_SUCCEEDED, ALREADY_FAILED or GONE.
create function pawl.history_verdict(p_shard int4, p_id uuid, out verdict text, out state int2)
language plpgsql as $$
declare
    v_outcome int2;
begin
    select a.outcome into v_outcome from pawl.attempt a
    where a.shard = p_shard and a.job_id = p_id order by a.attempt_no desc limit 1;
    if not found then
        verdict := 'GONE';
    elsif v_outcome = 0 then
        verdict := 'ALREADY_SUCCEEDED';
        state := 2;
    else
        verdict := 'ALREADY_FAILED';
        state := 3;
    end if;
end $$;

-- Puts Failed jobs of one shard back: Ready now, at the tail, of its key too; counters at 0; ledger and lease version go on.
create function pawl.redrive_batch(p_shard int4, p_ids uuid[])
returns table (ordinal int4, verdict text, state int2)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_row record;
    v_dead pawl.dead_letter;
    v_line int4;
    v_now timestamptz;
begin
    perform from pawl.dead_letter d where d.shard = p_shard and d.id = any (p_ids) order by d.id for update;
    v_now := clock_timestamp();
    for v_row in select u.o::int4 o, u.i from unnest(p_ids) with ordinality u(i, o) order by u.o loop
        ordinal := v_row.o;
        state := null;
        select * into v_dead from pawl.dead_letter d where d.shard = p_shard and d.id = v_row.i;
        if not found then
            if exists (select from pawl.job j where j.shard = p_shard and j.id = v_row.i) then
                verdict := 'NOT_FAILED';
            else
                select case when h.verdict = 'ALREADY_FAILED' then 'GONE' else h.verdict end into verdict
                from pawl.history_verdict(p_shard, v_row.i) h;
            end if;
            return next;
            continue;
        end if;
        if v_dead.is_discarded then
            verdict := 'GONE'; -- there is no payload left to work on
            return next;
            continue;
        end if;
        insert into pawl.job (shard, line_id, pos, id, priority, lane, reason, max_retries, attempts, lease_version,
                              created_at, next_attempt_at, timeout_ms, backoff_base_ms, backoff_max_ms, key_seq, ordering_key,
                              dedupe_key, payload, headers)
        values (p_shard, v_dead.line_id, pawl.here(), v_dead.id, v_dead.priority, 0, v_dead.reason,
                v_dead.max_retries, v_dead.attempts, v_dead.lease_version, v_dead.created_at, v_now, v_dead.timeout_ms,
                v_dead.backoff_base_ms, v_dead.backoff_max_ms,
                case when v_dead.ordering_key is not null then nextval('pawl.key_seq') end, v_dead.ordering_key,
                v_dead.dedupe_key, v_dead.payload, v_dead.headers)
        on conflict (line_id, dedupe_key, coalesce(ordering_key, '')) where dedupe_key is not null do nothing;
        if found then
            verdict := 'OK';
            state := 0;
            delete from pawl.dead_letter d where d.shard = p_shard and d.id = v_row.i;
            if v_line is distinct from v_dead.line_id then
                v_line := v_dead.line_id;
                perform pawl.hint(q.name) from pawl.queue q where q.queue_id = v_line / 4096;
            end if;
        else
            verdict := 'DUPLICATE';
        end if;
        return next;
    end loop;
end $$;

-- Discards Failed jobs of one shard: payload and headers go, the history stays until it is pruned. Repeating it is OK.
create function pawl.discard_batch(p_shard int4, p_ids uuid[])
returns table (ordinal int4, verdict text, state int2)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_row record;
begin
    perform from pawl.dead_letter d where d.shard = p_shard and d.id = any (p_ids) order by d.id for update;
    for v_row in select u.o::int4 o, u.i from unnest(p_ids) with ordinality u(i, o) order by u.o loop
        ordinal := v_row.o;
        state := 3;
        verdict := 'OK';
        update pawl.dead_letter d set is_discarded = true, payload = null, headers = null
        where d.shard = p_shard and d.id = v_row.i;
        if not found then
            state := null;
            if exists (select from pawl.job j where j.shard = p_shard and j.id = v_row.i) then
                verdict := 'NOT_FAILED';
            else
                select case when h.verdict = 'ALREADY_FAILED' then 'GONE' else h.verdict end into verdict
                from pawl.history_verdict(p_shard, v_row.i) h;
            end if;
        end if;
        return next;
    end loop;
end $$;
