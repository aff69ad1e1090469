-- SPDX-License-Identifier: Apache-2.0
-- Extends leases of one shard: to the later of what they are and now + lease (Q-EXTEND). Token, worker, version and deadline
-- are tested on the locked row. A job marked for cancellation, or past its execution timeout, is not extended and says so.
create function pawl.renew_batch(
    p_shard int4,
    p_worker text,
    p_ids uuid[],
    p_tokens uuid[],
    p_versions int4[],
    p_leases_ms int8[],      -- NULL: the queue's
    p_are_unstarted boolean[] -- the holder has not begun: the execution timeout counts from now
) returns table (ordinal int4, verdict text, lease_expires_at timestamptz, lease_ms int8)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_group record;
begin
    if p_ids is not null and (cardinality(p_ids) <= 10000 and cardinality(p_tokens) = cardinality(p_ids)
        and cardinality(p_versions) = cardinality(p_ids)
        and coalesce(cardinality(p_leases_ms), cardinality(p_ids)) = cardinality(p_ids)
        and (100 <= all (p_leases_ms) and 315360000000 >= all (p_leases_ms)) is not false) is not true then
        perform pawl.check_leases(p_ids, p_tokens, p_versions, p_leases_ms);
    end if;
    perform from pawl.job j where j.shard = p_shard and j.id = any (p_ids) order by j.id for update;
    v_now := clock_timestamp(); -- the rows are locked
    -- One statement for all that ask for the same; mostly all of them do. Of a job that is named more than once, the second row
    -- comes after the first, and so on.
    for v_group in
        select array_agg(u.o::int4) o, array_agg(u.i) i, array_agg(u.t) t, array_agg(u.v) v, u.l, coalesce(u.s, false) s
        from (select *, row_number() over (partition by n.i order by n.o) turn
              from unnest(p_ids, p_tokens, p_versions, p_leases_ms, p_are_unstarted) with ordinality n(i, t, v, l, s, o)) u
        group by u.turn, u.l, coalesce(u.s, false) order by u.turn, min(u.o)
    loop
        return query select * from pawl.renew_group(p_shard, p_worker, v_now, v_group.o, v_group.i, v_group.t, v_group.v,
                                                    v_group.l, v_group.s);
    end loop;
end $$;

-- Renews leases that ask for the same, on rows that are locked.
create function pawl.renew_group(p_shard int4, p_worker text, p_now timestamptz, p_ordinals int4[], p_ids uuid[],
                                 p_tokens uuid[], p_versions int4[], p_lease_ms int8, p_is_unstarted boolean)
returns table (ordinal int4, verdict text, lease_expires_at timestamptz, lease_ms int8)
language plpgsql set enable_nestloop = off as $$
#variable_conflict use_column
declare
    v_done uuid[];
    v_gone uuid[];
    v_known uuid[];
begin
    with renewed as (
        update pawl.job j
        set lease_ms = coalesce(
                p_lease_ms, (select q.lease_ms from pawl.queue q where q.queue_id = j.line_id / 4096), 30000),
            lease_expires_at = greatest(j.lease_expires_at, p_now + pawl.ms(
                coalesce(p_lease_ms, (select q.lease_ms from pawl.queue q where q.queue_id = j.line_id / 4096), 30000))),
            run_until = case when p_is_unstarted and not j.is_started then p_now + pawl.ms(pawl.run_ms(j.run_ms, null))
                             else j.run_until end,
            is_started = j.is_started or not p_is_unstarted
        where j.shard = p_shard and j.id = any (p_ids) and j.state = 1 and j.claimed_by = p_worker
          and j.lease_expires_at > p_now and not j.is_cancel_asked
          -- What has started stays so, and what waits does not wait for ever (RES-6).
          and case when p_is_unstarted and not j.is_started then j.unstarted_until > p_now else j.run_until > p_now end
          and ((j.id, j.lease_token, j.lease_version) in
               (select u.i, u.t, u.v from unnest(p_ids, p_tokens, p_versions) u(i, t, v))) is true
        returning j.id)
    select coalesce(array_agg(r.id), '{}') into v_done from renewed r;
    v_known := array(select j.id from pawl.job j where j.shard = p_shard and j.id = any (p_ids));
    v_gone := array(select i from unnest(p_ids) i except select k from unnest(v_known) k);
    v_known := array(select distinct a.job_id from pawl.attempt a where a.shard = p_shard and a.job_id = any (v_gone));
    return query
        select u.o,
               case when j.id is null then case when k.i is null then 'GONE' else 'STALE' end
                    when j.state <> 1 or j.claimed_by is distinct from p_worker or j.lease_token is distinct from u.t
                         or j.lease_version is distinct from u.v or (j.lease_expires_at > p_now) is not true then 'STALE'
                    when d.i is not null then 'OK'
                    when j.is_cancel_asked then 'CANCELLED'
                    else 'TIMEOUT' end,
               case when d.i is not null then j.lease_expires_at end, case when d.i is not null then j.lease_ms end
        from unnest(p_ordinals, p_ids, p_tokens, p_versions) u(o, i, t, v)
        left join (select x.id, x.state, x.claimed_by, x.lease_token, x.lease_version, x.lease_expires_at, x.lease_ms,
                          x.is_cancel_asked
                   from pawl.job x where x.shard = p_shard and x.id = any (p_ids)) j on j.id = u.i
        left join unnest(v_done) d(i) on d.i = u.i
        left join unnest(v_known) k(i) on k.i = u.i
        order by u.o;
end $$;

-- Gives jobs of one shard back unstarted: Ready at once, no ledger row, no retry used. A job marked for cancellation becomes
-- Failed instead, with its row. Answers OK, STALE or GONE per row.
create function pawl.release_batch(p_shard int4, p_worker text, p_ids uuid[], p_tokens uuid[], p_versions int4[])
returns table (ordinal int4, verdict text)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_row record;
    v_job pawl.job;
    v_now timestamptz;
    v_line int4;
begin
    if p_ids is not null and (cardinality(p_ids) <= 10000 and cardinality(p_tokens) = cardinality(p_ids)
        and cardinality(p_versions) = cardinality(p_ids)) is not true then
        perform pawl.check_leases(p_ids, p_tokens, p_versions);
    end if;
    perform from pawl.job j where j.shard = p_shard and j.id = any (p_ids) order by j.id for update;
    v_now := clock_timestamp(); -- the rows are locked
    for v_row in
        select u.o::int4 o, u.i, u.t, u.v from unnest(p_ids, p_tokens, p_versions) with ordinality u(i, t, v, o) order by u.o
    loop
        ordinal := v_row.o;
        verdict := 'OK';
        select * into v_job from pawl.job j
        where j.shard = p_shard and j.id = v_row.i and j.state = 1 and j.claimed_by = p_worker
          and j.lease_token = v_row.t and j.lease_version = v_row.v and j.lease_expires_at > v_now;
        if not found then
            verdict := case when exists (select from pawl.job j where j.shard = p_shard and j.id = v_row.i)
                              or exists (select from pawl.attempt a where a.shard = p_shard and a.job_id = v_row.i)
                            then 'STALE' else 'GONE' end;
        elsif v_job.is_cancel_asked then
            perform pawl.write_row(v_job, 2::int2, 9::int2, 0::int2, v_now, null, null);
            perform pawl.bury(v_job, 9::int2, v_now);
        else
            -- It was due when it was claimed, and stays so even where the clock has gone back since.
            perform pawl.put_back(v_job, 0::int2, least(v_job.next_attempt_at, v_now), 1::int2, false);
            if v_line is distinct from v_job.line_id then
                v_line := v_job.line_id;
                perform pawl.hint(q.name) from pawl.queue q where q.queue_id = v_line / 4096;
            end if;
        end if;
        return next;
    end loop;
end $$;
