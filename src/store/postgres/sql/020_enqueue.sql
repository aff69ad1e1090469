-- SPDX-License-Identifier: Apache-2.0
-- Enqueues jobs of one shard in the caller's transaction. An id that exists or has existed is refused (EXISTS), a dedupe key
-- that a live job of the same ordering key holds too (DUPLICATE, with the holder's id). Insert first, look into the ledger in a later statement: the
-- other way round a job that is finished in between would come back.
create function pawl.enqueue_batch(
    p_shard int4,
    p_queues text[],
    p_ids uuid[],
    p_payloads bytea[],
    p_priorities int2[] default null,
    p_delays_ms int8[] default null,
    p_starts_within_ms int8[] default null,
    p_max_retries int4[] default null,
    p_timeouts_ms int8[] default null,
    p_backoff_bases_ms int8[] default null,
    p_backoff_maxes_ms int8[] default null,
    p_dedupe_keys text[] default null,
    p_is_new boolean default false, -- the ids were made for this call: they cannot have existed
    p_ordering_keys text[] default null,
    p_headers text[] default null, -- "name: value" and a newline for each header of a job; NULL: none
    p_is_hinting boolean default true -- false: whoever calls does so by hint_of(), when he has committed
) returns table (ordinal int4, verdict text, id uuid)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    c_duration_max constant int8 := 315360000000; -- ten years
    v_now timestamptz := clock_timestamp();
    v_lines int4[];
    v_done uuid[];
    v_existed uuid[] := '{}';
    v_others uuid[]; -- the ids, NULL in place of those that have existed
begin
    if p_queues is not null and (cardinality(p_queues) <= 10000 and cardinality(p_ids) = cardinality(p_queues)
        and cardinality(p_payloads) = cardinality(p_queues)
        and coalesce(cardinality(p_priorities), cardinality(p_queues)) = cardinality(p_queues)
        and coalesce(cardinality(p_dedupe_keys), cardinality(p_queues)) = cardinality(p_queues)
        and coalesce(cardinality(p_ordering_keys), cardinality(p_queues)) = cardinality(p_queues)
        and '00000000-0000-0000-0000-000000000000' <> all (p_ids) and array_position(p_payloads, null) is null
        and (0 <= all (p_priorities) and 9 >= all (p_priorities)
             and 0 <= all (p_delays_ms) and c_duration_max >= all (p_delays_ms)
             and 0 <= all (p_max_retries) and 10000 >= all (p_max_retries)
             and 1 <= all (p_timeouts_ms) and c_duration_max >= all (p_timeouts_ms)
             and 1 <= all (p_backoff_bases_ms) and c_duration_max >= all (p_backoff_bases_ms)
             and 1 <= all (p_backoff_maxes_ms) and c_duration_max >= all (p_backoff_maxes_ms)) is not false
        and (coalesce(array_remove(p_dedupe_keys, null), '{}') = '{}'
             and coalesce(array_remove(p_starts_within_ms, null), '{}') = '{}' and p_ordering_keys is null
             or pawl.are_rest_right(p_shard, p_queues, p_delays_ms, p_starts_within_ms, p_dedupe_keys, p_ordering_keys))
        ) is not true then
        perform pawl.check_enqueue(p_shard, p_queues, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms,
                                   p_max_retries, p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_dedupe_keys,
                                   p_ordering_keys);
    end if;
    if p_headers is not null then
        perform pawl.check_headers(p_headers, cardinality(p_queues));
    end if;
    v_lines := pawl.enqueue_lines(p_shard, p_queues, p_ids, p_priorities, p_ordering_keys is not null, p_is_hinting, (0 < any (p_delays_ms)) is true);
    v_done := pawl.enqueue_insert(p_shard, v_now, v_lines, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms,
                                  p_max_retries, p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_dedupe_keys,
                                  p_is_new, p_ordering_keys, p_headers);
    -- A statement of its own, hence a snapshot taken after the insert had waited for whoever was ending such a job.
    if not p_is_new and v_done <> '{}' then
        v_existed := pawl.enqueue_existed(p_shard, v_done);
        if v_existed <> '{}' then
            -- Only what was inserted here: an old snapshot may still show the job that has ended.
            delete from pawl.job j where j.shard = p_shard and j.id = any (v_existed) and j.created_at = v_now;
        end if;
    end if;
    if cardinality(v_done) = cardinality(p_ids) and v_existed = '{}' then
        return query select u.o::int4, 'OK', u.i from unnest(p_ids) with ordinality u(i, o);
        return;
    end if;
    -- Of a job that was refused because it has existed, the dedupe key is free again for a later row of this call.
    if v_existed <> '{}' and p_dedupe_keys is not null and cardinality(v_done) < cardinality(p_ids) then
        v_existed := v_existed || pawl.enqueue_existed(
            p_shard, array(select i from unnest(p_ids) i except select d from unnest(v_done) d));
        v_others := array(select case when u.i = any (v_existed) then null else u.i end
                          from unnest(p_ids) with ordinality u(i, o) order by u.o);
        -- All of them once more, so that they stand in the order given.
        delete from pawl.job j where j.shard = p_shard and j.id = any (v_done) and j.created_at = v_now;
        v_done := pawl.enqueue_insert(p_shard, v_now, v_lines, v_others, p_payloads, p_priorities, p_delays_ms,
                                      p_starts_within_ms, p_max_retries, p_timeouts_ms, p_backoff_bases_ms,
                                      p_backoff_maxes_ms, p_dedupe_keys, false, p_ordering_keys, p_headers);
        if pawl.enqueue_existed(p_shard, v_done) <> '{}' then
            raise exception 'PAWL_AGAIN' using errcode = '40001'; -- one of them has just ended: the next try sees it
        end if;
    end if;
    if p_ordering_keys is not null then
        perform pawl.enqueue_unpark(p_shard, v_done, v_now);
    end if;
    return query select * from pawl.enqueue_verdicts(p_shard, v_lines, p_ids, p_dedupe_keys, p_ordering_keys, v_done, v_existed);
end $$;

-- One job in the plainest way: without key, delay, limit or priority of its own, its id made for this call, no hint. Gives the line
-- that it stands in. NULL: it is not for this function (the queue is new, or has had no job of this priority, or there are
-- shards), and nothing was done. A statement of its own, since a batch of one spends more on what it might be than on the job.
create function pawl.enqueue_one(p_queue text, p_id uuid, p_payload bytea) returns int4
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_now timestamptz := clock_timestamp();
    v_line int4;
begin
    insert into pawl.job (shard, line_id, pos, id, priority, lane, created_at, next_attempt_at, payload)
    select 0, q.queue_id * 4096, pawl.here(), p_id, 5, 0, v_now, v_now, p_payload
    from pawl.queue q, pawl.config c
    where q.name = p_queue and q.levels & 32 <> 0 and c.shards = 1
      and p_id <> '00000000-0000-0000-0000-000000000000' and p_payload is not null
    returning line_id into v_line;
    return v_line;
end $$;

-- Inserts the rows whose id and dedupe key are free, but for those without an id, and gives their ids.
create function pawl.enqueue_insert(
    p_shard int4, p_now timestamptz, p_lines int4[], p_ids uuid[], p_payloads bytea[], p_priorities int2[],
    p_delays_ms int8[], p_starts_within_ms int8[], p_max_retries int4[], p_timeouts_ms int8[], p_backoff_bases_ms int8[],
    p_backoff_maxes_ms int8[], p_dedupe_keys text[], p_is_new boolean, p_ordering_keys text[],
    p_headers text[]
) returns uuid[]
language plpgsql as $$
declare
    v_pos int8 := pawl.here();
    v_done uuid[];
begin
    if p_ordering_keys is not null then
        return pawl.enqueue_keyed(p_shard, p_now, p_lines, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms,
                                  p_max_retries, p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_dedupe_keys,
                                  p_is_new, p_ordering_keys, p_headers);
    end if;
    if p_is_new and p_dedupe_keys is null then
        -- Nothing can be in the way. Without ON CONFLICT a row costs a fifth less.
        insert into pawl.job (shard, line_id, pos, id, priority, lane, created_at, next_attempt_at, start_by, max_retries,
                              timeout_ms, backoff_base_ms, backoff_max_ms, payload, headers)
        select p_shard, n.line_id,
               case when n.delay_ms > 0 then pawl.micros(p_now + pawl.ms(n.delay_ms)) else v_pos end,
               n.id, coalesce(n.priority, 5), case when n.delay_ms > 0 then 3 else 0 end,
               p_now, p_now + pawl.ms(coalesce(n.delay_ms, 0)), p_now + pawl.ms(n.start_within_ms),
               n.max_retries, n.timeout_ms, n.backoff_base_ms, n.backoff_max_ms, n.payload, n.headers
        from unnest(p_lines, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms, p_max_retries,
                    p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_headers)
             n(line_id, id, payload, priority, delay_ms, start_within_ms, max_retries, timeout_ms, backoff_base_ms,
               backoff_max_ms, headers);
        return p_ids;
    end if;
    with fresh as (
        insert into pawl.job (shard, line_id, pos, id, priority, lane, created_at, next_attempt_at, start_by, max_retries,
                              timeout_ms, backoff_base_ms, backoff_max_ms, dedupe_key, payload, headers)
        select p_shard, n.line_id,
               case when n.delay_ms > 0 then pawl.micros(p_now + pawl.ms(n.delay_ms)) else v_pos end,
               n.id, coalesce(n.priority, 5), case when n.delay_ms > 0 then 3 else 0 end,
               p_now, p_now + pawl.ms(coalesce(n.delay_ms, 0)), p_now + pawl.ms(n.start_within_ms),
               n.max_retries, n.timeout_ms, n.backoff_base_ms, n.backoff_max_ms, n.dedupe_key, n.payload,
               n.headers
        from unnest(p_lines, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms, p_max_retries,
                    p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_dedupe_keys, p_headers)
             n(line_id, id, payload, priority, delay_ms, start_within_ms, max_retries, timeout_ms, backoff_base_ms,
               backoff_max_ms, dedupe_key, headers)
        where n.id is not null
        on conflict do nothing
        returning job.id)
    select coalesce(array_agg(f.id), '{}') into v_done from fresh f;
    return v_done;
end $$;

-- The same for a call with ordering keys. The position among those of a key comes from a sequence, which gives 64 at a time: a
-- transaction's id would say when it began to write, and not when it enqueued. Of one key in one call the first answers for the
-- others, which are parked from the start: they come into being together.
create function pawl.enqueue_keyed(
    p_shard int4, p_now timestamptz, p_lines int4[], p_ids uuid[], p_payloads bytea[], p_priorities int2[],
    p_delays_ms int8[], p_starts_within_ms int8[], p_max_retries int4[], p_timeouts_ms int8[], p_backoff_bases_ms int8[],
    p_backoff_maxes_ms int8[], p_dedupe_keys text[], p_is_new boolean, p_ordering_keys text[], p_headers text[]
) returns uuid[]
language plpgsql as $$
declare
    v_pos int8 := pawl.here();
    v_places int8[] := array(select nextval('pawl.key_seq') from generate_series(1, (cardinality(p_ids) + 63) / 64));
    v_done uuid[];
begin
    if p_is_new and p_dedupe_keys is null then
        -- Nothing can be in the way, as above. The rows are the same as below.
        insert into pawl.job (shard, line_id, pos, id, priority, lane, created_at, next_attempt_at, start_by, max_retries,
                              timeout_ms, backoff_base_ms, backoff_max_ms, key_seq, ordering_key, payload, headers)
        select p_shard, n.line_id,
               case when n.lane = 3 then pawl.micros(p_now + pawl.ms(n.delay_ms)) else v_pos end,
               n.id, coalesce(n.priority, 5), n.lane,
               p_now, p_now + pawl.ms(coalesce(n.delay_ms, 0)), p_now + pawl.ms(n.start_within_ms),
               n.max_retries, n.timeout_ms, n.backoff_base_ms, n.backoff_max_ms,
               case when n.ordering_key is not null then v_places[((n.o + 63) / 64)::int4] + (n.o - 1) % 64 end, n.ordering_key, n.payload, n.headers
        from (select u.*, case when u.ordering_key is not null and row_number() over (
                                        partition by u.line_id, u.ordering_key order by u.o) > 1 then 2
                               when u.delay_ms > 0 then 3 else 0 end lane
              from unnest(p_lines, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms, p_max_retries,
                          p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_ordering_keys, p_headers)
                   with ordinality u(line_id, id, payload, priority, delay_ms, start_within_ms, max_retries, timeout_ms,
                                     backoff_base_ms, backoff_max_ms, ordering_key, headers, o)
              order by u.o offset 0) n;
        return p_ids;
    end if;
    with fresh as (
        insert into pawl.job (shard, line_id, pos, id, priority, lane, created_at, next_attempt_at, start_by, max_retries,
                              timeout_ms, backoff_base_ms, backoff_max_ms, key_seq, ordering_key, dedupe_key, payload,
                              headers)
        select p_shard, n.line_id,
               case when n.lane = 3 then pawl.micros(p_now + pawl.ms(n.delay_ms)) else v_pos end,
               n.id, coalesce(n.priority, 5), n.lane,
               p_now, p_now + pawl.ms(coalesce(n.delay_ms, 0)), p_now + pawl.ms(n.start_within_ms),
               n.max_retries, n.timeout_ms, n.backoff_base_ms, n.backoff_max_ms,
               case when n.ordering_key is not null then v_places[((n.o + 63) / 64)::int4] + (n.o - 1) % 64 end, n.ordering_key, n.dedupe_key, n.payload,
               n.headers
        from (select u.*, case when u.ordering_key is not null and row_number() over (
                                        partition by u.line_id, u.ordering_key order by u.o) > 1 then 2
                               when u.delay_ms > 0 then 3 else 0 end lane
              from unnest(p_lines, p_ids, p_payloads, p_priorities, p_delays_ms, p_starts_within_ms, p_max_retries,
                          p_timeouts_ms, p_backoff_bases_ms, p_backoff_maxes_ms, p_dedupe_keys, p_ordering_keys,
                          p_headers)
                   with ordinality u(line_id, id, payload, priority, delay_ms, start_within_ms, max_retries, timeout_ms,
                                     backoff_base_ms, backoff_max_ms, dedupe_key, ordering_key, headers, o)
              where u.id is not null
              order by u.o offset 0) n
        on conflict do nothing
        returning job.id)
    select coalesce(array_agg(f.id), '{}') into v_done from fresh f;
    return v_done;
end $$;

-- Where the first of a key in this call was refused: the first that was taken answers for the others instead.
create function pawl.enqueue_unpark(p_shard int4, p_ids uuid[], p_now timestamptz) returns void
language plpgsql as $$
declare
    v_pos int8 := pawl.here();
begin
    update pawl.job j
    set lane = case when j.next_attempt_at > p_now then 3 else 0 end,
        pos = case when j.next_attempt_at > p_now then pawl.micros(j.next_attempt_at) else v_pos end
    where j.shard = p_shard and (j.lane = 2) is true and j.id = any (array(
        select distinct on (f.line_id, f.ordering_key) f.id from pawl.job f
        where f.shard = p_shard and f.id = any (p_ids) and f.created_at = p_now and f.ordering_key is not null
        order by f.line_id, f.ordering_key, f.key_seq));
end $$;

-- The verdict on each row of a call in which some were not taken. v_done were inserted, of which v_existed were removed again.
create function pawl.enqueue_verdicts(p_shard int4, p_lines int4[], p_ids uuid[], p_dedupe_keys text[],
                                      p_ordering_keys text[], p_done uuid[], p_existed uuid[])
returns table (ordinal int4, verdict text, id uuid)
language plpgsql set enable_nestloop = off as $$
#variable_conflict use_column
declare
    v_existed uuid[] := p_existed;
    v_left uuid[];
    v_here uuid[];
    v_row record;
begin
    v_left := array(select i from unnest(p_ids) i except select d from unnest(p_done) d
                    except select e from unnest(v_existed) e);
    -- An id comes before a key: whoever repeats a call is told EXISTS by his own job, not DUPLICATE.
    v_here := array(select j.id from pawl.job j where j.shard = p_shard and j.id = any (p_ids));
    v_existed := v_existed || pawl.enqueue_existed(p_shard, v_left);
    for v_row in
        select u.o::int4 o, u.i, u.l, u.d, u.k, e.i is null and d.i is not null
                   and row_number() over (partition by u.i order by u.o) = 1 is_done,
               e.i is not null or h.i is not null is_known
        from unnest(p_ids, p_lines, p_dedupe_keys, p_ordering_keys) with ordinality u(i, l, d, k, o)
        left join (select distinct x i from unnest(p_done) x) d on d.i = u.i
        left join (select distinct x i from unnest(v_existed) x) e on e.i = u.i
        left join (select distinct x i from unnest(v_here) x) h on h.i = u.i
        order by u.o
    loop
        ordinal := v_row.o;
        id := v_row.i;
        verdict := case when v_row.is_done then 'OK' when v_row.is_known then 'EXISTS' end;
        if verdict is null then
            select j.id into id from pawl.job j
            where j.shard = p_shard and j.line_id = v_row.l and j.dedupe_key = v_row.d
              and coalesce(j.ordering_key, '') = coalesce(v_row.k, '');
            if not found then
                -- Whoever was in the way has ended since: the same statement, run again, finds out how.
                raise exception 'PAWL_AGAIN' using errcode = '40001';
            end if;
            verdict := 'DUPLICATE';
        end if;
        return next;
    end loop;
end $$;

-- The lines of the queues named, which are created where they do not exist; notes the priorities, keys and delays that come into
-- use, and hints that there may be work. Raises P7001 where the shard is not the one that the ids name.
create function pawl.enqueue_lines(p_shard int4, p_queues text[], p_ids uuid[], p_priorities int2[],
                                   p_has_keys boolean default false, p_is_hinting boolean default true,
                                   p_has_delays boolean default false) returns int4[]
language plpgsql as $$
declare
    v_name text;
    v_queue_id int4;
    v_levels int4 := 32;
    v_known int4;
    v_knows_keys boolean;
    v_is_notifying boolean;
    v_shards int4;
    v_map jsonb := '{}';
begin
    if p_queues[1] = all (p_queues) then
        if p_priorities is not null then
            select bit_or(1 << coalesce(p, 5)) into v_levels from unnest(p_priorities) p;
        end if;
        select q.queue_id, q.levels, q.has_keys, c.is_notifying, c.shards
        into v_queue_id, v_known, v_knows_keys, v_is_notifying, v_shards
        from pawl.queue q, pawl.config c where q.name = p_queues[1];
        if v_known & v_levels = v_levels and (v_knows_keys or not p_has_keys) then
            if v_shards > 1 or p_shard <> 0 then
                perform pawl.check_shard(p_shard, v_shards, p_ids);
            end if;
            if p_has_delays then
                perform pawl.note_detour(v_queue_id);
            end if;
            if v_is_notifying and p_is_hinting then
                perform pg_notify('pawl', p_queues[1]);
            end if;
            return array_fill(v_queue_id * 4096 + p_shard, array[cardinality(p_queues)]);
        end if;
    end if;
    perform pawl.check_shard(p_shard, pawl.shards(), p_ids);
    -- In the order of their names, so that two callers never wait for each other in a circle.
    for v_name, v_levels in
        select u.q, bit_or(1 << coalesce(u.p, 5)) from unnest(p_queues, p_priorities) u(q, p) group by u.q order by u.q
    loop
        v_map := v_map || jsonb_build_object(v_name, pawl.queue_id(v_name) * 4096 + p_shard);
        update pawl.queue q set levels = q.levels | v_levels, has_keys = q.has_keys or p_has_keys
        where q.name = v_name and ((q.levels | v_levels) <> q.levels or (p_has_keys and not q.has_keys));
        if p_has_delays then
            perform pawl.note_detour((v_map ->> v_name)::int4 / 4096);
        end if;
        if p_is_hinting then
            perform pawl.hint(v_name);
        end if;
    end loop;
    return array(select (v_map ->> u.q)::int4 from unnest(p_queues) with ordinality u(q, o) order by u.o);
end $$;

-- Which of these ids have a history. Under a snapshot that is older than this statement the ledger is asked through its unique
-- index, which every transaction sees as it is now.
create function pawl.enqueue_existed(p_shard int4, p_ids uuid[]) returns uuid[]
language plpgsql as $$
declare
    v_id uuid;
    v_free uuid[];
    v_existed uuid[];
    v_is_sure boolean;
begin
    select array(select distinct a.job_id from pawl.attempt a where a.shard = p_shard and a.job_id = any (p_ids)),
           current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
    into v_existed, v_is_sure;
    if v_is_sure or p_ids = '{}' then
        return v_existed;
    end if;
    begin
        with probe as (
            insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, finished_at)
            select p_shard, 0, i, 1, 0, 1, 0, 0, 'epoch' from unnest(p_ids) i
            on conflict do nothing returning job_id)
        select array_agg(p.job_id) into v_free from probe p;
        raise exception 'PAWL_PROBE' using errcode = 'P7099'; -- undoes the probe
    exception
        when sqlstate 'P7099' then
            return array(select i from unnest(p_ids) i except select f from unnest(v_free) f);
        when serialization_failure then
            null; -- some are there and too new to be seen: one by one tells which
    end;
    v_existed := '{}';
    foreach v_id in array p_ids loop
        begin
            insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, finished_at)
            values (p_shard, 0, v_id, 1, 0, 1, 0, 0, 'epoch');
            raise exception 'PAWL_PROBE' using errcode = 'P7099';
        exception
            when unique_violation then
                v_existed := v_existed || v_id;
            when sqlstate 'P7099' then
                null;
        end;
    end loop;
    return v_existed;
end $$;
