-- SPDX-License-Identifier: Apache-2.0
-- Claims a few jobs of one queue as claim_lines() does, where there is nothing to do beside: there is one shard, the queue has had
-- jobs of the usual priority only, none with a key, and no limit; no lease is to be looked for; nothing has come back or has
-- waited for its time (in many queues nothing ever did, and they are not even asked); and no job has a deadline, a timeout or a
-- past of its own. Most small claims are such ones, and of what claim_lines() spends on a job or two, most goes into what they might be.
--
-- The first row has no id: it says what all jobs share, and theirs have NULL there. If it is the only row, it is otherwise, and
-- nothing was done. The first of the tokens is that of the job which is first in the queue, and so on; their rows come in no order.
--
-- It is written for few expressions, few statements and few columns: each costs some thousand instructions anew in every transaction.
create function pawl.claim_few(
    p_worker text,
    p_queue text,
    p_jobs_max int4,
    p_lease_ms int8,  -- NULL: the queue's
    p_bytes_max int8,
    p_tokens uuid[]   -- random and secret, used for this call only: one for each of p_jobs_max jobs
) returns table (
    id uuid, lease_token uuid,
    at timestamptz,   -- it was created, and was due; of the first row: they were claimed
    max_retries int4, -- its own; of the first row: the queue's
    payload bytea, headers text, place tid, lease_ms int8, timeout_ms int8)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_sort = off set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    c_much constant int4 := 2147483647;
    v_line int4;
    v_expires_at timestamptz;
    v_run_until timestamptz;
    v_swept_until timestamptz;
    v_timed_from int8; -- see sweep_line()
    v_mark pawl.mark; -- of arrivals
    v_has_detours boolean;
    v_is_calm boolean;
    v_given pawl.given; -- see there
    v_count int4;
begin
    if (octet_length(p_worker) <= 128 and p_worker ~ '^[!-~]+$' and p_jobs_max between 1 and 100
        and (p_lease_ms between 100 and 315360000000) is not false and p_bytes_max >= 1
        and p_tokens[1] is not null and p_tokens[p_jobs_max] is not null and array_position(p_tokens, null) is null
        and current_setting('transaction_isolation') = 'read committed') is true then
        lock table pawl.gate in row share mode; -- see begin_limit()
        at := clock_timestamp(); -- it may have waited
        select q.queue_id * 4096, coalesce(p_lease_ms, q.lease_ms), q.execution_timeout_ms, q.max_retries,
               (select true from pawl.detour d where d.queue_id = q.queue_id limit 1)
        into v_line, lease_ms, timeout_ms, max_retries, v_has_detours
        from pawl.queue q
        where q.name = p_queue and q.levels = 32 and not q.is_paused and not q.has_keys and q.max_in_flight is null;
        select s.next_at, s.timed_from into v_swept_until, v_timed_from from pawl.sweep s
        where s.shard = 0 and s.line_id = v_line and s.kind = 0 and s.at <= claim_few.at order by s.at desc limit 1;
        v_expires_at := at + pawl.ms(lease_ms);
        if v_swept_until > at and v_swept_until <= v_expires_at then
            select * into v_mark from pawl.mark k
            where k.shard = 0 and k.line_id = v_line and k.priority = 5 and k.lane = 0 and k.kind = 0
              and k.boot = pg_postmaster_start_time()
            order by k.pos desc, k.seq desc, k.at desc limit 1;
            -- Marks that are older are for claim_lines() to move.
            v_is_calm := v_mark.at between at - interval '10 s' and at
                and (v_has_detours is null and v_mark.holes = '{}'
                     or pawl.is_line_calm(v_mark, v_has_detours, v_timed_from, at));
        end if;
        if v_is_calm then
            -- A job that is for claim_lines() counts for more bytes than there can be.
            if p_jobs_max = 1 then
                select case when j.timeout_ms is null and j.start_by is null and j.attempts = 0 and j.lease_version = 0
                                 and j.retries = 0 and j.lost_leases = 0 and j.reason = 0 and j.next_attempt_at = j.created_at
                            then 0 else c_much end, array[j.ctid], p_tokens
                into v_given
                from pawl.job j
                where j.shard = 0 and j.line_id = v_line and j.priority = 5 and j.lane = 0
                  and (j.pos, j.seq) >= (v_mark.pos, v_mark.seq) and j.state = 0
                  and j.lease_version < 2147483647 and j.next_attempt_at <= claim_few.at
                  and (j.start_by is null or j.start_by > claim_few.at)
                order by j.pos, j.seq limit 1 for update skip locked;
            else
                select sum(x.bytes), array_agg(x.r), p_tokens into v_given
                from (select j.ctid r,
                             case when j.timeout_ms is null and j.start_by is null and j.attempts = 0 and j.lease_version = 0
                                       and j.retries = 0 and j.lost_leases = 0 and j.reason = 0 and j.next_attempt_at = j.created_at
                                  then octet_length(j.payload) else c_much end bytes
                      from pawl.job j
                      where j.shard = 0 and j.line_id = v_line and j.priority = 5 and j.lane = 0
                        and (j.pos, j.seq) >= (v_mark.pos, v_mark.seq) and j.state = 0
                        and j.lease_version < 2147483647 and j.next_attempt_at <= claim_few.at
                        and (j.start_by is null or j.start_by > claim_few.at)
                      order by j.pos, j.seq limit p_jobs_max for update skip locked) x;
            end if;
            if v_given.rows is null then
                return;
            end if;
            timeout_ms := pawl.run_ms(timeout_ms, 3 * lease_ms);
            v_run_until := at + pawl.ms(timeout_ms);
        end if;
    end if;
    return next;
    -- The first job of a claim is given out however large it is.
    if (v_given.bytes < c_much and (v_given.bytes <= p_bytes_max or cardinality(v_given.rows) = 1)) is not true then
        return;
    end if;
    return query
        update pawl.job j
        set state = 1, lease_version = j.lease_version + 1,
            lease_token = v_given.tokens[array_position(v_given.rows, j.ctid)], claimed_by = p_worker,
            claimed_at = claim_few.at, lease_expires_at = v_expires_at, lease_ms = claim_few.lease_ms,
            run_ms = claim_few.timeout_ms, run_until = v_run_until,
            unstarted_until = v_run_until + pawl.ms(2 * claim_few.lease_ms)
        where j.shard = 0 and j.ctid = any (v_given.rows) and (j.state = 0) is true and j.ordering_key is null
        returning j.id, j.lease_token, j.created_at, j.max_retries::int4, j.payload, j.headers, j.ctid, null::int8, null::int8;
    get diagnostics v_count = row_count;
    -- After the update: what was taken here lies below the mark.
    if v_count <> cardinality(v_given.rows) or v_mark.at < at - interval '20 ms' then
        if v_count <> cardinality(v_given.rows) then
            -- Some have keys, and the queue did not know when it was asked: the next claim takes them.
            update pawl.queue q set has_keys = true where q.queue_id = v_line / 4096 and not q.has_keys;
        end if;
        perform pawl.mark_move(v_mark, at);
    end if;
end $$;

-- Whether arrivals beyond a mark are all that its line has to claim. One shard, the usual priority, no keys.
create function pawl.is_line_calm(p_mark pawl.mark, p_has_detours boolean, p_timed_from int8, p_now timestamptz) returns boolean
language plpgsql as $$
declare
    v_back pawl.mark; -- of those that came back
begin
    if p_mark.holes <> '{}' and (pawl.mark_holes(p_mark, null)).holes <> '{}' then
        return false;
    end if;
    if p_has_detours is null then
        return true;
    end if;
    v_back := pawl.mark_read(0, p_mark.line_id, 5::int2, 1::int2, 0::int2);
    return v_back.at between p_now - interval '10 s' and p_now
        and (select true from pawl.job j
             where j.shard = 0 and j.line_id = p_mark.line_id and j.priority = 5 and j.lane = 1
               and (j.pos, j.seq) >= (v_back.pos, v_back.seq) and j.state = 0
             order by j.pos, j.seq limit 1) is null
        and (select true from pawl.job j
             where j.shard = 0 and j.line_id = p_mark.line_id and j.priority = 5 and j.lane = 3 and j.pos >= p_timed_from
               and j.pos <= pawl.micros(p_now)
             order by j.pos, j.seq limit 1) is null
        and (v_back.holes = '{}' or (pawl.mark_holes(v_back, null)).holes = '{}');
end $$;
