-- SPDX-License-Identifier: Apache-2.0
-- The reaper's run: recovers up to p_max jobs whose lease has expired, or that missed their start-by deadline while Ready,
-- those that waited longest first. Safe in parallel with itself and with everything else.
create function pawl.reap_lines(p_shards int4[], p_max int4, p_seed bytea)
returns table (id uuid, queue text, worker text, lease_version int4, state int2, reason int2, due_at timestamptz,
               overdue_ms int8)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_shard int4;
    v_ids uuid[];
    v_times timestamptz[];
    v_all_ids uuid[] := '{}';
    v_all_times timestamptz[] := '{}';
    v_all_shards int4[] := '{}';
begin
    perform pawl.check_number('p_max', p_max, 1, 10000);
    perform pawl.check_given('p_seed', octet_length(p_seed)::text);
    foreach v_shard in array p_shards loop
        select array_agg(o.id), array_agg(o.at) into v_ids, v_times from pawl.overdue(v_shard, p_max, v_now) o;
        if v_ids is not null then
            v_all_ids := v_all_ids || v_ids;
            v_all_times := v_all_times || v_times;
            v_all_shards := v_all_shards || array_fill(v_shard, array[cardinality(v_ids)]);
        end if;
    end loop;
    if cardinality(v_all_ids) > p_max then
        -- Some are left out: the next run looks at the same parts.
        delete from pawl.sweep s where s.shard = any (p_shards) and s.kind = 1 and s.at = v_now;
    end if;
    if cardinality(p_shards) = 1 then
        return query select * from pawl.recover(v_shard, array(
            select u.i from unnest(v_all_ids, v_all_times) u(i, t) order by u.t nulls first, u.i limit p_max), p_seed);
    else
        for v_shard, v_ids in
            select u.s, array[u.i] from unnest(v_all_shards, v_all_ids, v_all_times) u(s, i, t)
            order by u.t nulls first, u.i limit p_max
        loop
            return query select * from pawl.recover(v_shard, v_ids, p_seed);
        end loop;
    end if;
    foreach v_shard in array p_shards loop
        perform pawl.tidy_hints(v_shard);
    end loop;
end $$;

create function pawl.reap(p_shard int4, p_max int4, p_seed bytea)
returns table (id uuid, queue text, worker text, lease_version int4, state int2, reason int2, due_at timestamptz,
               overdue_ms int8)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    return query select * from pawl.reap_lines(array[p_shard], p_max, p_seed);
end $$;

-- Up to p_max jobs of each line of a shard whose lease has expired, and as many that missed their start-by deadline. Looks
-- through each line as far as claims usually reach; and, from a minute after it was last through, at the next part of all of it.
create function pawl.overdue(p_shard int4, p_max int4, p_now timestamptz) returns table (id uuid, at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    v_is_alone boolean := pg_try_advisory_xact_lock(7021, p_shard); -- for speed only
    v_queue pawl.queue;
    v_line int4;
    v_at timestamptz;
    v_after int8[];
    v_ids uuid[];
    v_times timestamptz[];
    v_reached int8[];
    v_is_all boolean;
begin
    for v_queue in
        select * from pawl.queue q where ( -- not EXISTS: that would be made a join, over the whole table
            select true from pawl.job j where j.shard = p_shard and j.line_id = q.queue_id * 4096 + p_shard limit 1)
    loop
        v_line := v_queue.queue_id * 4096 + p_shard;
        select s.at, s.reached into v_at, v_after from pawl.sweep s
        where s.shard = p_shard and s.line_id = v_line and s.kind = 1 and s.at <= p_now order by s.at desc limit 1;
        v_ids := null;
        -- One reaper at a time, however many there are. Where nobody has looked for so long, or ever, whoever holds the lock may be held up.
        if (v_at >= p_now - case when v_after is null then interval '1 minute' else interval '4 s' end) is not true
           and (v_is_alone or coalesce(v_at, '-infinity') < p_now - interval '2 minutes') then
            if v_after is null then
                perform pawl.mend_line(p_shard, v_line, v_queue.levels, p_now);
                perform pawl.mend_keys(p_shard, v_line, v_queue.has_keys);
            end if;
            select e.ids, e.times, e.reached, e.is_all into v_ids, v_times, v_reached, v_is_all
            from pawl.expired_in_part(p_shard, v_line, v_after, p_max, p_now) e;
            if v_is_all then
                insert into pawl.sweep (shard, line_id, kind, at, next_at, reached)
                values (p_shard, v_line, 1, p_now, p_now, v_reached);
            end if;
            return query select u.i, u.t from unnest(v_ids, v_times) u(i, t);
            continue when v_after is null and v_reached is null; -- that was all of the line
        end if;
        return query select e.id, e.expires_at
                     from pawl.expired_in_reach(p_shard, v_line, v_queue.levels, p_max, p_now) e
                     where (e.id in (select i from unnest(v_ids) i)) is not true;
    end loop;
    return query
        select j.id, j.start_by from pawl.job j
        where j.shard = p_shard and j.start_by <= p_now and (j.state = 0) is true order by j.start_by, j.id limit p_max;
end $$;

-- Puts right what no function leaves behind, but an edit by hand may: Ready jobs of a line that claims do not find, because they
-- stand before a mark, or at a priority that the queue does not know of.
create function pawl.mend_line(p_shard int4, p_line int4, p_levels int4, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_levels int4 := p_levels;
    v_mark pawl.mark;
    v_job pawl.job;
begin
    for v_priority in 0 .. 9 loop
        if p_levels & (1 << v_priority) = 0 and exists (
            select from pawl.job j where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority) then
            v_levels := v_levels | (1 << v_priority);
        end if;
        for v_lane in 0 .. 1 loop
            v_mark := pawl.mark_read(p_shard, p_line, v_priority::int2, v_lane::int2, 0::int2);
            for v_job in
                select * from pawl.job j
                where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                  and (j.pos, j.seq) < (v_mark.pos, v_mark.seq) and j.state = 0 and (j.pos = any (v_mark.holes)) is not true
                order by j.pos, j.seq for update skip locked
            loop
                perform pawl.put_back(v_job, v_job.reason, v_job.next_attempt_at,
                                      case when v_job.next_attempt_at > p_now then 3 else 1 end::int2, false);
            end loop;
        end loop;
    end loop;
    if v_levels <> p_levels then
        update pawl.queue q set levels = q.levels | v_levels where q.queue_id = p_line / 4096;
    end if;
end $$;

-- Deletes old hints: the newest of each lane and line stays. Never needed for correctness, and never waits for anybody.
create function pawl.tidy_hints(p_shard int4) returns void
language plpgsql as $$
declare
    v_old timestamptz := clock_timestamp() - interval '10 seconds';
begin
    delete from pawl.mark m where m.shard = p_shard and m.ctid = any (array(
        select k.ctid from pawl.mark k where k.shard = p_shard and k.at < v_old and (
            k.boot <> pg_postmaster_start_time() or exists (
                select from pawl.mark n where n.shard = p_shard and n.line_id = k.line_id and n.priority = k.priority
                    and n.lane = k.lane and n.kind = k.kind and n.boot = k.boot
                    and (n.pos, n.seq, n.at) > (k.pos, k.seq, k.at)))
        limit 10000 for update skip locked));
    delete from pawl.sweep d where d.shard = p_shard and d.ctid = any (array(
        select s.ctid from pawl.sweep s where s.shard = p_shard and s.at < v_old and exists (
            select from pawl.sweep n where n.shard = p_shard and n.line_id = s.line_id and n.kind = s.kind and n.at > s.at
                and n.at <= clock_timestamp())
        limit 10000 for update skip locked));
end $$;

-- Deletes up to p_max histories of one shard that are older than their queue's retention allows: the only way out of the
-- ledger. A live job's history is never touched.
create function pawl.prune(p_shard int4, p_max int4) returns int4
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    v_now timestamptz := clock_timestamp();
    v_queue pawl.queue;
    v_line int4;
    v_count int4 := 0;
    v_first pawl.attempt;
    v_alone uuid[];
begin
    perform pawl.check_number('p_max', p_max, 1, 10000);
    for v_queue in select * from pawl.queue q where q.keep_succeeded_ms is not null or q.keep_failed_ms is not null loop
        v_line := v_queue.queue_id * 4096 + p_shard;
        exit when v_count >= p_max;
        -- A job that has succeeded is never changed again: nobody else but another prune is interested.
        v_alone := '{}';
        for v_first in
            select * from pawl.attempt a
            where a.shard = p_shard and a.line_id = v_line and a.outcome = 0 and a.batch is not null
              and a.finished_at < v_now - pawl.ms(v_queue.keep_succeeded_ms)
            order by a.finished_at limit p_max - v_count for update skip locked
        loop
            if v_first.others is null then
                v_alone := v_alone || v_first.job_id;
                v_count := v_count + 1;
            else
                v_count := v_count + pawl.prune_batch(v_first, p_max - v_count);
            end if;
            exit when v_count >= p_max;
        end loop;
        perform pawl.prune_jobs(p_shard, v_alone);
        exit when v_count >= p_max;
        -- One that has failed may be redriven: whoever has its row decides.
        v_count := v_count + pawl.prune_jobs(p_shard, array(
            select d.id from pawl.dead_letter d
            where d.shard = p_shard and d.line_id = v_line and d.finished_at < v_now - pawl.ms(v_queue.keep_failed_ms)
            order by d.finished_at limit p_max - v_count for update skip locked));
    end loop;
    if p_shard = 0 and v_count < p_max then
        v_count := v_count + pawl.prune_events(p_max - v_count); -- these are of no shard
    end if;
    if p_shard = 0 then
        perform pawl.prune_once(p_max); -- likewise; not counted
    end if;
    perform pawl.forget_workers(v_now - interval '7 days');
    return v_count;
end $$;

create function pawl.prune_lines(p_shards int4[], p_max int4) returns int4
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_shard int4;
    v_count int4 := 0;
begin
    perform pawl.check_number('p_max', p_max, 1, 10000);
    foreach v_shard in array p_shards loop
        exit when v_count >= p_max;
        v_count := v_count + pawl.prune(v_shard, p_max - v_count);
    end loop;
    return v_count;
end $$;

-- Deletes the histories of jobs that one statement has let succeed, up to p_max of them; the caller has locked the row of the
-- one that stands for all. Where some stay, another of them stands for the rest: its row is written anew.
create function pawl.prune_batch(p_first pawl.attempt, p_max int4) returns int4
language plpgsql as $$
declare
    v_ids uuid[] := array[p_first.job_id] || p_first.others;
    v_rest uuid[];
    v_next pawl.attempt;
begin
    if cardinality(v_ids) > p_max then
        v_rest := array(select a.job_id from pawl.attempt a
                        where a.shard = p_first.shard and a.job_id = any (v_ids[p_max + 1 :]) and (a.outcome = 0) is true);
        v_ids := v_ids[: p_max];
        if v_rest <> '{}' then
            perform set_config('pawl.is_pruning', 'on', true);
            delete from pawl.attempt a where a.shard = p_first.shard and a.job_id = v_rest[1] and (a.outcome = 0) is true
            returning * into v_next;
            perform set_config('pawl.is_pruning', 'off', true);
            v_next.batch := cardinality(v_rest);
            v_next.others := nullif(v_rest[2 :], '{}');
            insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, started_at, finished_at, created_at, payload_len,
                                      token_digest, outcome, reason, ended_by, priority, retries, lost_leases, max_retries, wire_sends,
                                      worker, error_code, error_text, ordering_key, batch, others)
            select v_next.*;
        end if;
    end if;
    return pawl.prune_jobs(p_first.shard, v_ids);
end $$;

-- Deletes histories, and dead letters that the caller has locked. The one function that may delete from the ledger.
create function pawl.prune_jobs(p_shard int4, p_ids uuid[]) returns int4
language plpgsql as $$
begin
    if p_ids <> '{}' then
        delete from pawl.dead_letter d where d.shard = p_shard and d.id = any (p_ids);
        -- Not by a clause SET of the function: an owner who is no superuser could not create it.
        perform set_config('pawl.is_pruning', 'on', true);
        delete from pawl.attempt a where a.shard = p_shard and a.job_id = any (p_ids);
        perform set_config('pawl.is_pruning', 'off', true);
    end if;
    return cardinality(p_ids);
end $$;
