-- SPDX-License-Identifier: Apache-2.0
-- Claims a few jobs of one queue as claim_lines() does, where there is nothing to do beside: there is one shard, the queue has had
-- jobs of the usual priority only, none with a key, and no limit; no lease is to be looked for; and nothing has come back or has
-- waited for its time (in many queues nothing ever did, and they are not even asked). Most small claims are such ones, and of what claim_lines() spends on a job or two, most goes into what they
-- might be. One row without id: it is otherwise, and nothing was done.
create function pawl.claim_few(
    p_worker text,
    p_queue text,
    p_jobs_max int4,
    p_lease_ms int8,  -- NULL: the queue's
    p_bytes_max int8,
    p_tokens uuid[]   -- random and secret, used for this call only: one for each of p_jobs_max jobs
) returns table (
    id uuid, queue text, priority int2, retries int2, lost_leases int2, attempts int4, lease_version int4, max_retries int4,
    created_at timestamptz, next_attempt_at timestamptz, start_by timestamptz, reason int2, lease_token uuid,
    claimed_at timestamptz, lease_expires_at timestamptz, run_until timestamptz, lease_ms int8, timeout_ms int8, payload bytea,
    lane int2, pos int8, seq int8, ordering_key text, fence int8, headers text)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_sort = off set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_line int4;
    v_lease_ms int8;
    v_run_ms int8;
    v_max_retries int4;
    v_swept_until timestamptz;
    v_timed_from int8; -- see sweep_line()
    v_mark pawl.mark; -- of arrivals
    v_back pawl.mark; -- of those that came back
    v_has_detours boolean;
    v_is_calm boolean := false;
    v_rows tid[];
    v_bytes int8 := 0;
    v_count int4;
begin
    if (octet_length(p_worker) <= 128 and p_worker ~ '^[!-~]+$' and p_jobs_max between 1 and 64
        and (p_lease_ms between 100 and 315360000000) is not false and p_bytes_max >= 1
        and p_tokens[1] is not null and p_tokens[p_jobs_max] is not null and array_position(p_tokens, null) is null
        and current_setting('transaction_isolation') = 'read committed') is true then
        lock table pawl.gate in row share mode; -- see begin_limit()
        v_now := clock_timestamp(); -- it may have waited
        select q.queue_id * 4096, coalesce(p_lease_ms, q.lease_ms), q.max_retries,
               pawl.run_ms(q.execution_timeout_ms, 3 * coalesce(p_lease_ms, q.lease_ms)),
               (select true from pawl.detour d where d.queue_id = q.queue_id limit 1)
        into v_line, v_lease_ms, v_max_retries, v_run_ms, v_has_detours
        from pawl.queue q
        where q.name = p_queue and q.levels = 32 and not q.is_paused and not q.has_keys and q.max_in_flight is null;
        select s.next_at, s.timed_from into v_swept_until, v_timed_from from pawl.sweep s
        where s.shard = 0 and s.line_id = v_line and s.kind = 0 and s.at <= v_now order by s.at desc limit 1;
        if v_swept_until > v_now and v_swept_until <= v_now + pawl.ms(v_lease_ms) then
            select * into v_mark from pawl.mark k
            where k.shard = 0 and k.line_id = v_line and k.priority = 5 and k.lane = 0 and k.kind = 0
              and k.boot = pg_postmaster_start_time()
            order by k.pos desc, k.seq desc, k.at desc limit 1;
            -- Marks that are older are for claim_lines() to move.
            v_is_calm := v_mark.at between v_now - interval '10 s' and v_now;
            if v_is_calm and v_has_detours then
                select * into v_back from pawl.mark k
                where k.shard = 0 and k.line_id = v_line and k.priority = 5 and k.lane = 1 and k.kind = 0
                  and k.boot = pg_postmaster_start_time()
                order by k.pos desc, k.seq desc, k.at desc limit 1;
                v_is_calm := v_back.at between v_now - interval '10 s' and v_now
                    and (select true from pawl.job j
                         where j.shard = 0 and j.line_id = v_line and j.priority = 5 and j.lane = 1
                           and (j.pos, j.seq) >= (v_back.pos, v_back.seq) and j.state = 0
                         order by j.pos, j.seq limit 1) is null
                    and (select true from pawl.job j
                         where j.shard = 0 and j.line_id = v_line and j.priority = 5 and j.lane = 3 and j.pos >= v_timed_from
                           and j.pos <= pawl.micros(v_now)
                         order by j.pos, j.seq limit 1) is null
                    and (v_back.holes = '{}' or (pawl.mark_holes(v_back, null)).holes = '{}');
            end if;
            if v_mark.holes <> '{}' then
                v_is_calm := v_is_calm and (pawl.mark_holes(v_mark, null)).holes = '{}';
            end if;
        end if;
    end if;
    -- The first job of a claim is given out however large it is.
    if v_is_calm and p_jobs_max = 1 then
        v_rows := array(
            select j.ctid from pawl.job j
            where j.shard = 0 and j.line_id = v_line and j.priority = 5 and j.lane = 0
              and (j.pos, j.seq) >= (v_mark.pos, v_mark.seq) and j.state = 0
              and j.lease_version < 2147483647 and j.next_attempt_at <= v_now and (j.start_by is null or j.start_by > v_now)
            order by j.pos, j.seq limit 1 for update skip locked);
    elsif v_is_calm then
        select array_agg(x.r), sum(x.bytes) into v_rows, v_bytes
        from (select j.ctid r, octet_length(j.payload) bytes from pawl.job j
              where j.shard = 0 and j.line_id = v_line and j.priority = 5 and j.lane = 0
                and (j.pos, j.seq) >= (v_mark.pos, v_mark.seq) and j.state = 0
                and j.lease_version < 2147483647 and j.next_attempt_at <= v_now and (j.start_by is null or j.start_by > v_now)
              order by j.pos, j.seq limit p_jobs_max for update skip locked) x;
    end if;
    if v_is_calm and (v_rows <> '{}') is not true then
        return;
    end if;
    if v_is_calm is not true or v_bytes > p_bytes_max then
        return next;
        return;
    end if;
    v_now := clock_timestamp(); -- the rows are locked
    return query
        update pawl.job j
        set state = 1, lease_version = j.lease_version + 1,
            lease_token = p_tokens[array_position(v_rows, j.ctid)],
            claimed_by = p_worker, claimed_at = v_now, lease_expires_at = v_now + pawl.ms(v_lease_ms), lease_ms = v_lease_ms,
            run_ms = pawl.run_ms(j.timeout_ms, v_run_ms), run_until = v_now + pawl.ms(pawl.run_ms(j.timeout_ms, v_run_ms)),
            unstarted_until = v_now + pawl.ms(pawl.run_ms(j.timeout_ms, v_run_ms) + 2 * v_lease_ms)
        where j.shard = 0 and j.ctid = any (v_rows) and (j.state = 0) is true and j.ordering_key is null
        returning j.id, p_queue, j.priority, j.retries, j.lost_leases, j.attempts, j.lease_version,
            coalesce(j.max_retries, v_max_retries)::int4, j.created_at, j.next_attempt_at, j.start_by, j.reason, j.lease_token,
            j.claimed_at, j.lease_expires_at, j.run_until, j.lease_ms, j.run_ms, j.payload, j.lane, j.pos, j.seq,
            null::text, null::int8, j.headers;
    get diagnostics v_count = row_count;
    if v_count <> cardinality(v_rows) then
        -- Some have keys, and the queue did not know when it was asked: the next claim takes them.
        update pawl.queue q set has_keys = true where q.queue_id = v_line / 4096 and not q.has_keys;
    end if;
    -- After the update: what was taken here lies below the mark.
    if v_mark.at < v_now - interval '20 ms' then
        perform pawl.mark_move(v_mark, v_now);
    end if;
end $$;
