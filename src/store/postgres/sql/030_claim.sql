-- SPDX-License-Identifier: Apache-2.0
-- Locked jobs of a claim: the bytes of their payloads, their rows in order, the tokens for them. One value, since arrays in variables
-- of their own would be copied whenever they are looked at.
create type pawl.given as (bytes int8, rows tid[], tokens uuid[]);

-- Claims due jobs, each under a fresh lease, in one atomic step; what another claim has locked is skipped. Queues in the order
-- asked, of each queue the shards in the order given; a line whose gate another claim has is left out, but for the first one
-- that has a gate. Costs what it returns: the walk of a lane begins at its mark, beyond everything that has been taken before.
-- Rows come in no order; their order within queue and shard is (priority, lane = 0, lane,
-- pos, next_attempt_at where lane = 3, seq): lane 3 is told of those that had waited for their time.
--
-- Terse, a job's row has NULL where it is as that row says: its queue, shard, instants, lengths and tries, priority, lane, retries,
-- lost leases, attempts and reason; and where it was due when it was created. Most of the price of a row is that of its columns.
create function pawl.claim_lines(
    p_shards int4[],
    p_worker text,
    p_queues text[],
    p_maxes int4[],      -- of each queue at most so many, in all shards
    p_leases_ms int8[],  -- NULL: the queue's
    p_jobs_max int4,     -- in all
    p_bytes_max int8,
    p_seed bytea,        -- random and secret, used for this call only
    p_tokens uuid[] default null,    -- likewise: of the first jobs; those of others come from the seed
    p_is_terse boolean default false -- what most jobs of a line share is told once, by a row before theirs that has no id
) returns table (
    id uuid, lease_token uuid, lease_version int4, claimed_at timestamptz, lease_expires_at timestamptz,
    run_until timestamptz, lease_ms int8, queue text, priority int2, lane int2, pos int8, retries int2, lost_leases int2,
    attempts int4, max_retries int4, created_at timestamptz, next_attempt_at timestamptz, start_by timestamptz,
    reason int2, payload bytea, timeout_ms int8, seq int8, shard int4, ordering_key text, fence int8,
    headers text,
    place tid) -- of the row, where succeed_all() may do for the job: it has no past, key or limit
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_sort = off set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    c_turn_min constant int4 := 101; -- claims of so many and more take turns; claim_few() gives no more than others walk over at little cost
    v_queue pawl.queue;
    v_shard int4;
    v_limit int4; -- how many may be in flight in the line
    v_of_queue int4;
    v_room int4;
    v_asked int4; -- NULL, but between two looks at a line with keys
    v_line int4;
    v_rows tid[];     -- of the jobs that were picked
    v_picked uuid[];  -- these jobs, where their rows do not suffice
    v_is_plain boolean;
    v_timed uuid[];
    v_marks pawl.mark[];
    v_mark pawl.mark;
    v_given pawl.given;
    v_tokens_used int4 := 0;
    v_expires_at timestamptz;
    v_run_until timestamptz;
    v_unstarted_until timestamptz;
    -- What rows say, but for terse ones; and what terse ones leave out.
    v_said_at timestamptz;
    v_said_expires_at timestamptz;
    v_said_until timestamptz;
    v_said_lease_ms int8;
    v_said_run_ms int8;
    v_said_retries int4;
    v_said_queue text;
    v_said_shard int4;
    c_none constant int2 := case when p_is_terse then 0 end;
    c_usual constant int2 := case when p_is_terse then 5 end;
    v_is_full boolean := false; -- the next payload would not fit
    v_left int4 := p_jobs_max;
    v_bytes_left int8 := p_bytes_max;
    v_lease_ms int8;
    v_run_ms int8;
    v_swept_until timestamptz;
    v_timed_from int8; -- see sweep_line()
    v_aside_left int4 := 100 + 2 * least(p_jobs_max, 10000); -- jobs that it puts away and cannot take; the rest is the reaper's
    v_here int8;
    v_is_inside boolean; -- has passed a gate
    v_has_waited boolean := false; -- for its turn
    v_fence int8;
    v_met int4;
    v_parked int4;
    v_parked_sum int4;
    v_stuck text[]; -- keys to pass by
    v_stuck_here text[];
    v_now timestamptz;
    v_count int4;
begin
    if (octet_length(p_worker) <= 128 and p_worker ~ '^[!-~]+$' and cardinality(p_queues) between 1 and 10000
        and cardinality(p_maxes) = cardinality(p_queues) and 1 <= all (p_maxes)
        and coalesce(cardinality(p_leases_ms), cardinality(p_queues)) = cardinality(p_queues)
        and (100 <= all (p_leases_ms) and 315360000000 >= all (p_leases_ms)) is not false
        and p_jobs_max between 1 and 10000 and p_bytes_max >= 1 and octet_length(p_seed) between 16 and 1024
        and p_shards is not null) is not true then
        perform pawl.check_claim(p_shards, p_worker, p_queues, p_maxes, p_leases_ms, p_jobs_max, p_bytes_max, p_seed);
    end if;
    v_here := case when current_setting('transaction_isolation') = 'read committed' then pawl.here() else pawl.here_of(p_queues) end;
    lock table pawl.gate in row share mode; -- see begin_limit()
    for i in 1 .. cardinality(p_queues) loop
        exit when v_left <= 0 or v_is_full;
        select * into v_queue from pawl.queue q where q.name = p_queues[i];
        continue when not found or v_queue.is_paused;
        if not v_has_waited and least(p_maxes[i], p_jobs_max) >= c_turn_min and v_is_inside is not true
           and not v_queue.has_keys and v_queue.max_in_flight is null and p_shards <> '{}' then
            v_has_waited := true; -- once: whoever has one turn and waits for another may do so in a circle
            perform from pawl.turn t where t.shard = p_shards[1] and t.line_id = v_queue.queue_id * 4096 + p_shards[1]
            for update skip locked;
            if not found then
                perform pawl.take_turn(p_shards[1], v_queue.queue_id * 4096 + p_shards[1]);
                select * into v_queue from pawl.queue q where q.name = p_queues[i]; -- as it is after the wait
                continue when not found or v_queue.is_paused;
            end if;
        end if;
        v_lease_ms := coalesce(p_leases_ms[i], v_queue.lease_ms);
        v_run_ms := pawl.run_ms(v_queue.execution_timeout_ms, 3 * v_lease_ms);
        v_of_queue := p_maxes[i];
        foreach v_shard in array p_shards loop
            exit when v_left <= 0 or v_of_queue <= 0 or v_is_full;
            v_line := v_queue.queue_id * 4096 + v_shard;
            v_room := least(v_of_queue, v_left);
            if v_queue.has_keys or v_queue.max_in_flight is not null then
                continue when not pawl.enter_gate(v_shard, v_line, v_is_inside is not true);
                v_is_inside := true;
                v_queue := pawl.queue_of(v_line); -- as it is now that no other claim goes on
                v_limit := pawl.limit_of(v_line);
                if v_queue.has_keys then
                    perform pawl.fill_vacant(v_shard, v_line);
                end if;
            end if;
            v_now := clock_timestamp();
            select s.next_at, s.timed_from into v_swept_until, v_timed_from from pawl.sweep s
            where s.shard = v_shard and s.line_id = v_line and s.kind = 0 and s.at <= v_now order by s.at desc limit 1;
            if (v_swept_until > v_now) is not true then
                select w.until, w.aside_left, w.timed_from into v_swept_until, v_aside_left, v_timed_from
                from pawl.sweep_line(v_shard, v_line, v_queue.levels,
                                     v_room + case when v_queue.max_in_flight is not null then greatest(
                                         pawl.count_in_flight(v_shard, v_line, v_queue.levels) - v_limit, 0) else 0 end,
                                     v_aside_left, p_seed) w;
            end if;
            if v_queue.max_in_flight is not null then
                v_room := least(v_room, v_limit - pawl.count_in_flight(v_shard, v_line, v_queue.levels));
                continue when v_room <= 0;
            end if;
            -- Once, unless there are keys. Whatever it evaluates here costs a claim of one job without a key about a microsecond.
            loop
                if v_stuck is null then
                    select k.picked, k.timed, coalesce(v_marks, k.marks) into v_rows, v_timed, v_marks
                    from pawl.pick(v_shard, v_line, v_queue.levels, greatest(v_room, v_asked), v_timed_from) k;
                    v_is_plain := v_timed is null and v_queue.max_in_flight is null;
                    if v_is_plain and v_queue.has_keys then
                        v_is_plain := v_asked is null and v_rows is not null and pawl.are_unkeyed(v_shard, v_rows);
                    end if;
                else
                    select k.picked, k.timed into v_rows, v_timed
                    from pawl.pick_past(v_shard, v_line, v_queue.levels, v_asked, v_stuck, v_timed_from) k;
                end if;
                if v_queue.has_keys and not v_is_plain then
                    v_met := cardinality(v_rows);
                    v_parked := 0;
                    v_stuck_here := null;
                    if v_rows is not null then
                        select k.picked, k.fence, k.parked, k.stuck into v_rows, v_fence, v_parked, v_stuck_here
                        from pawl.pick_keyed(v_shard, v_line, v_rows, v_room) k;
                    end if;
                end if;
                -- The first job of a claim is given out however large it is.
                if v_rows is not null and p_jobs_max > 1 then
                    -- Rows are read in the order of their places.
                    select sum(octet_length(j.payload)), array_agg(j.ctid), p_tokens into v_given
                    from pawl.job j where j.shard = v_shard and j.ctid = any (v_rows);
                    v_is_full := (v_given.bytes > v_bytes_left) is true;
                    if v_is_full then
                        v_picked := pawl.ids_of(v_shard, v_rows);
                        v_count := cardinality(pawl.pick_bytes(v_shard, v_picked, v_bytes_left, v_left < p_jobs_max));
                        if v_queue.has_keys and not v_is_plain then
                            -- They hold their keys and do not start here: see K2.
                            perform pawl.lead(v_shard, v_picked[v_count + 1 :]);
                        end if;
                        v_rows := v_rows[1 : v_count];
                    end if;
                end if;

                v_now := clock_timestamp(); -- the rows are locked
                if v_rows <> '{}' then
                    if v_queue.max_in_flight is not null then
                        v_picked := pawl.ids_of(v_shard, v_rows); -- their rows move
                    end if;
                    v_expires_at := v_now + pawl.ms(v_lease_ms);
                    v_run_until := v_now + pawl.ms(v_run_ms);
                    v_unstarted_until := v_now + pawl.ms(v_run_ms + 2 * v_lease_ms);
                    if p_is_terse then
                        id := null;
                        claimed_at := v_now;
                        lease_expires_at := v_expires_at;
                        run_until := v_run_until;
                        lease_ms := v_lease_ms;
                        timeout_ms := v_run_ms;
                        max_retries := v_queue.max_retries;
                        queue := v_queue.name;
                        shard := v_shard;
                        priority := c_usual;
                        return next;
                    else
                        v_said_at := v_now;
                        v_said_expires_at := v_expires_at;
                        v_said_until := v_run_until;
                        v_said_lease_ms := v_lease_ms;
                        v_said_run_ms := v_run_ms;
                        v_said_retries := v_queue.max_retries;
                        v_said_queue := v_queue.name;
                        v_said_shard := v_shard;
                    end if;
                    if v_is_plain then
                        -- The same as below, for most claims: what they do not need is not even written down, for it would be
                        -- a tenth of the price of a claim of ten jobs.
                        return query
                            update pawl.job j
                            set state = 1, lease_version = j.lease_version + 1,
                                lease_token = coalesce(v_given.tokens[v_tokens_used + width_bucket(j.ctid, v_given.rows)],
                                                       pawl.token(p_seed, j.id)),
                                claimed_by = p_worker, claimed_at = v_now, lease_expires_at = v_expires_at, lease_ms = v_lease_ms,
                                run_ms = case when j.timeout_ms is null then v_run_ms else pawl.run_ms(j.timeout_ms, v_run_ms) end,
                                run_until = case when j.timeout_ms is null then v_run_until
                                                 else v_now + pawl.ms(pawl.run_ms(j.timeout_ms, v_run_ms)) end,
                                unstarted_until = case when j.timeout_ms is null then v_unstarted_until
                                    else v_now + pawl.ms(pawl.run_ms(j.timeout_ms, v_run_ms) + 2 * v_lease_ms) end
                            where j.shard = v_shard and j.ctid = any (v_rows) and (j.state = 0) is true and j.ordering_key is null
                            returning j.id, j.lease_token, j.lease_version, v_said_at, v_said_expires_at,
                                case when j.timeout_ms is null then v_said_until else j.run_until end, v_said_lease_ms,
                                v_said_queue, nullif(j.priority, c_usual), nullif(j.lane, c_none), j.pos,
                                nullif(j.retries, c_none), nullif(j.lost_leases, c_none), nullif(j.attempts, c_none),
                                coalesce(j.max_retries, v_said_retries)::int4, j.created_at,
                                case when p_is_terse then nullif(j.next_attempt_at, j.created_at) else j.next_attempt_at end,
                                j.start_by, nullif(j.reason, c_none), j.payload,
                                case when j.timeout_ms is null then v_said_run_ms else j.run_ms end, j.seq, v_said_shard,
                                null::text, null::int8, j.headers, case when j.attempts = 0 then j.ctid end;
                    else
                        return query
                            update pawl.job j
                            set state = 1, lease_version = j.lease_version + 1,
                                lease_token = coalesce(v_given.tokens[v_tokens_used + width_bucket(j.ctid, v_given.rows)],
                                                       pawl.token(p_seed, j.id)),
                                claimed_by = p_worker, claimed_at = v_now, lease_expires_at = v_expires_at, lease_ms = v_lease_ms,
                                run_ms = case when j.timeout_ms is null then v_run_ms else pawl.run_ms(j.timeout_ms, v_run_ms) end,
                                run_until = case when j.timeout_ms is null then v_run_until
                                                 else v_now + pawl.ms(pawl.run_ms(j.timeout_ms, v_run_ms)) end,
                                unstarted_until = case when j.timeout_ms is null then v_unstarted_until
                                    else v_now + pawl.ms(pawl.run_ms(j.timeout_ms, v_run_ms) + 2 * v_lease_ms) end,
                                lane = case when j.lane = 3 then 1 else j.lane end,
                                pos = case when j.lane = 3 then v_here else j.pos end,
                                fence = case when j.ordering_key is not null then v_fence
                                             when v_queue.max_in_flight is not null then 0 end
                            where j.shard = v_shard and j.ctid = any (v_rows) and (j.state = 0) is true
                              and (v_queue.has_keys or j.ordering_key is null)
                            returning j.id, j.lease_token, j.lease_version, v_said_at, v_said_expires_at,
                                case when j.timeout_ms is null then v_said_until else j.run_until end, v_said_lease_ms,
                                v_said_queue, nullif(j.priority, c_usual),
                                -- What this transaction has put into lane 1 stands at the same position.
                                case when j.pos = v_here and (j.id in (select t from unnest(v_timed) t)) is true then 3::int2
                                     else nullif(j.lane, c_none) end,
                                j.pos, nullif(j.retries, c_none), nullif(j.lost_leases, c_none), nullif(j.attempts, c_none),
                                coalesce(j.max_retries, v_said_retries)::int4, j.created_at,
                                case when p_is_terse then nullif(j.next_attempt_at, j.created_at) else j.next_attempt_at end,
                                j.start_by, nullif(j.reason, c_none), j.payload,
                                case when j.timeout_ms is null then v_said_run_ms else j.run_ms end, j.seq, v_said_shard,
                                j.ordering_key, j.fence, j.headers,
                                case when j.attempts = 0 and j.fence is null then j.ctid end;
                    end if;
                    get diagnostics v_count = row_count;
                    v_tokens_used := v_tokens_used + coalesce(cardinality(v_given.rows), 0);
                    if v_count <> cardinality(v_rows) then
                        if v_queue.has_keys then
                            raise exception 'PAWL_BUG: % jobs were locked and % claimed', cardinality(v_rows), v_count;
                        end if;
                        -- Some have keys, and the queue did not know when it was asked: the next claim takes them.
                        update pawl.queue q set has_keys = true where q.queue_id = v_queue.queue_id and not q.has_keys;
                    end if;
                    v_left := v_left - v_count;
                    v_of_queue := v_of_queue - v_count;
                    v_bytes_left := v_bytes_left - v_given.bytes; -- where that is too much, it has ended
                    if v_swept_until > v_now + pawl.ms(v_lease_ms) then
                        v_swept_until := v_now + pawl.ms(v_lease_ms);
                        perform pawl.sweep_note(v_shard, v_line, v_now, v_swept_until, v_timed_from);
                    end if;
                    if v_queue.max_in_flight is not null then
                        perform pawl.note_taken(v_shard, v_line, v_picked);
                    end if;
                end if;
                exit when not v_queue.has_keys or v_is_plain;
                -- In place of those that must wait it looks at others: at more each time, so as not to look too often; and no more
                -- at keys of which some could not be parked. But parks 10,000 at most, and passes by as many keys.
                v_asked := coalesce(v_asked, v_room);
                v_room := v_room - coalesce(cardinality(v_rows), 0);
                v_parked_sum := coalesce(v_parked_sum, 0) + v_parked;
                v_stuck := v_stuck || v_stuck_here;
                if v_room <= 0 or v_is_full or v_parked_sum >= 10000 or cardinality(v_stuck) >= 10000
                   or (v_parked = 0 and ((v_met < v_asked) is not false or v_stuck_here is null)) then
                    v_asked := null;
                    v_stuck := null;
                    exit;
                end if;
                v_asked := greatest(v_room, least(2 * v_asked, 1000));
            end loop;
            -- After the update: what was taken here lies below the mark.
            if v_marks is not null then
                foreach v_mark in array v_marks loop
                    perform pawl.mark_move(v_mark, v_now);
                end loop;
                v_marks := null;
            end if;
        end loop;
    end loop;
end $$;

-- Waits a moment for another large claim of the line, so as not to walk over all that it is about to take: a row that somebody
-- has locked costs as much as one that is taken, and of many claims at once each would walk over those of all others. Whoever has
-- waited long enough (for the row, and for the one that has it: twice as long at most) goes ahead, since the other may be held up: its
-- client does not read.
create function pawl.take_turn(p_shard int4, p_line int4) returns void
language plpgsql set lock_timeout = '100ms' as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return; -- a row that is new to it would be an error
    end if;
    perform from pawl.turn t where t.shard = p_shard and t.line_id = p_line for update;
    if not found then
        insert into pawl.turn (shard, line_id) values (p_shard, p_line) on conflict do nothing;
    end if;
exception when lock_not_available or deadlock_detected then
    null; -- a transaction that claims several times may hold several turns
end $$;

-- The same of one shard.
create function pawl.claim_batch(p_shard int4, p_worker text, p_queues text[], p_maxes int4[], p_leases_ms int8[],
                                 p_jobs_max int4, p_bytes_max int8, p_seed bytea)
returns table (
    id uuid, lease_token uuid, lease_version int4, claimed_at timestamptz, lease_expires_at timestamptz,
    run_until timestamptz, lease_ms int8, queue text, priority int2, lane int2, pos int8, retries int2, lost_leases int2,
    attempts int4, max_retries int4, created_at timestamptz, next_attempt_at timestamptz, start_by timestamptz,
    reason int2, payload bytea, timeout_ms int8, seq int8, shard int4, ordering_key text, fence int8,
    headers text)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp as $$
begin
    return query select c.id, c.lease_token, c.lease_version, c.claimed_at, c.lease_expires_at, c.run_until, c.lease_ms, c.queue, c.priority,
                        c.lane, c.pos, c.retries, c.lost_leases, c.attempts, c.max_retries, c.created_at, c.next_attempt_at, c.start_by,
                        c.reason, c.payload, c.timeout_ms, c.seq, c.shard, c.ordering_key, c.fence, c.headers
                 from pawl.claim_lines(array[p_shard], p_worker, p_queues, p_maxes, p_leases_ms, p_jobs_max,
                                       p_bytes_max, p_seed) c;
end $$;

-- Locks up to p_max jobs of a line in the order of their claim: by priority, then those that came back, those whose time has
-- come, late commits, arrivals. Gives where their rows are, which stay there while they are locked, so that nobody need look for
-- them again; the ids of those whose time has come; and the marks that may be moved. Written in one piece, and without aggregates, because it is the price of a claim of one job. pick_past() is the same with keys to pass by.
create function pawl.pick(p_shard int4, p_line int4, p_levels int4, p_max int4, p_timed_from int8, out picked tid[],
                          out timed uuid[], out marks pawl.mark[])
language plpgsql as $$
declare
    c_versions_max constant int4 := 2147483647; -- it could not rise any more
    v_now timestamptz := clock_timestamp();
    v_rows tid[];
    v_lane int4;
    v_left int4 := p_max;
    v_mark pawl.mark;
    v_hole int8;
    v_hole_seq int8;
begin
    for v_priority in 0 .. 9 loop
        continue when p_levels & (1 << v_priority) = 0;
        foreach v_lane in array '{1, 3, 0}'::int4[] loop
            if v_lane = 3 then
                v_rows := array(
                    select j.ctid from pawl.job j
                    where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = 3
                      and j.pos >= p_timed_from and j.pos <= pawl.micros(v_now) and j.state = 0 and j.next_attempt_at <= v_now
                      and j.lease_version < c_versions_max
                      and (j.start_by is null or j.start_by > v_now)
                    order by j.pos, j.seq limit v_left for update skip locked);
            else
                select * into v_mark from pawl.mark k
                where k.shard = p_shard and k.line_id = p_line and k.priority = v_priority and k.lane = v_lane
                  and k.kind = 0 and k.boot = pg_postmaster_start_time()
                order by k.pos desc, k.seq desc, k.at desc limit 1;
                if not found then
                    v_mark := pawl.mark_none(p_shard, p_line, v_priority::int2, v_lane::int2, 0::int2);
                elsif v_mark.holes <> '{}' then
                    foreach v_hole in array array(
                        select h.pos from unnest(v_mark.holes, v_mark.hole_seqs) h(pos, seq)
                        where ( -- not EXISTS: that would be made a join, over the whole lane
                            select true from pawl.job j
                            where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                              and j.pos = h.pos and j.seq >= h.seq and j.state = 0 order by j.seq limit 1))
                    loop
                        exit when v_left = 0;
                        v_hole_seq := v_mark.hole_seqs[array_position(v_mark.holes, v_hole)];
                        v_rows := array(
                            select j.ctid from pawl.job j
                            where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                              and j.pos = v_hole and j.seq >= v_hole_seq and (j.pos, j.seq) < (v_mark.pos, v_mark.seq)
                              and j.state = 0 and j.lease_version < c_versions_max and j.next_attempt_at <= v_now
                              and (j.start_by is null or j.start_by > v_now)
                            order by j.seq limit v_left for update skip locked);
                        picked := picked || v_rows;
                        v_left := v_left - cardinality(v_rows);
                    end loop;
                end if;
                v_rows := array(
                    select j.ctid from pawl.job j
                    where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                      and (j.pos, j.seq) >= (v_mark.pos, v_mark.seq) and j.state = 0
                      and j.lease_version < c_versions_max and j.next_attempt_at <= v_now
                      and (j.start_by is null or j.start_by > v_now)
                    order by j.pos, j.seq limit v_left for update skip locked);
                -- A mark is worth its price where something is taken, and now and then where its holes may have ended.
                if v_mark.at < v_now - interval '20 ms' and (v_left < p_max or v_rows <> '{}' or v_mark.at < v_now - interval '10 s')
                   or v_mark.at > v_now then
                    marks := marks || v_mark;
                end if;
            end if;
            if v_rows <> '{}' then
                picked := picked || v_rows;
                v_left := v_left - cardinality(v_rows);
                if v_lane = 3 then
                    timed := timed || pawl.ids_of(p_shard, v_rows);
                end if;
            end if;
            if v_left = 0 then
                return;
            end if;
        end loop;
    end loop;
end $$;

-- The ids of jobs whose rows are locked, in the order given.
create function pawl.ids_of(p_shard int4, p_rows tid[]) returns uuid[]
language plpgsql as $$
begin
    return array(
        select j.id from (select u.r from unnest(p_rows) u(r) offset 0) p
        cross join lateral (select k.id from pawl.job k where k.shard = p_shard and k.ctid = p.r offset 0) j);
end $$;

-- Whether no job has a key of those whose rows are locked. Most often the first one tells that some have.
create function pawl.are_unkeyed(p_shard int4, p_rows tid[]) returns boolean
language plpgsql as $$
begin
    return (select j.ordering_key from pawl.job j where j.shard = p_shard and j.ctid = p_rows[1]) is null
        and (select count(j.ordering_key) from pawl.job j where j.shard = p_shard and j.ctid = any (p_rows)) = 0;
end $$;

-- Of picked jobs, those whose payloads fit into p_bytes together, but one at least unless others were taken before.
create function pawl.pick_bytes(p_shard int4, p_picked uuid[], p_bytes int8, p_has_some boolean) returns uuid[]
language plpgsql as $$
declare
    v_sum int8 := 0;
    v_size int8;
begin
    for i in 1 .. cardinality(p_picked) loop
        select octet_length(j.payload) into v_size from pawl.job j where j.shard = p_shard and j.id = p_picked[i];
        v_sum := v_sum + v_size;
        if v_sum > p_bytes and (i > 1 or p_has_some) then
            return p_picked[1 : i - 1];
        end if;
    end loop;
    return p_picked;
end $$;
