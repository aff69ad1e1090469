-- SPDX-License-Identifier: Apache-2.0
-- Ordering keys: of the live jobs of one key in one line at most one is InFlight, and they start in the order of key_seq, which
-- a sequence gives at the enqueue. Producers take no lock and decide nothing. What holds:
--
-- K1  A key has one row in pawl.hold at most. Its job is the first of the key, and the only one that may start; it stays so
--     until it has ended, whatever happens to it in between and whoever commits late. A hold without a job is vacant.
-- K2  A hold is made by claims, which take turns at the line's gate; it goes to another job, or away, in the transaction that
--     ends its job. Whoever makes a job the holder without starting it writes that job's row: a transaction with an old snapshot
--     that ends the job meanwhile fails, instead of overlooking the hold.
-- K3  A parked job (lane 2) has a hold of its key, or came in one call with another one of its key that is not parked. Claims
--     park only under a lock on the hold. Whoever ends its job therefore waits for them, and finds in its next statement, whose
--     snapshot is newer than that wait, what they have parked.
-- K4  Who cannot pass a hold on (the next job is locked; the snapshot may be too old to see who is parked) leaves it vacant.
--     Every claim begins by filling vacant holds. So nobody waits for a job here, and no wake-up is lost.
--
-- Claims wait for a gate only while they hold none, and skip all else that is locked.

-- Takes a line's gate. Whoever holds another one already must not wait: it could be in a circle. False: somebody else has it.
create function pawl.enter_gate(p_shard int4, p_line int4, p_may_wait boolean) returns boolean
language plpgsql as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        perform pawl.fail('transaction_isolation', current_setting('transaction_isolation'),
                          'read committed: the queue has ordering keys or a limit, and an older snapshot would miss what others '
                          'have claimed');
    end if;
    loop
        if p_may_wait then
            perform from pawl.gate g where g.shard = p_shard and g.line_id = p_line for update;
        else
            perform from pawl.gate g where g.shard = p_shard and g.line_id = p_line for update skip locked;
        end if;
        if found then
            return true;
        end if;
        if exists (select from pawl.gate g where g.shard = p_shard and g.line_id = p_line) then
            return false;
        end if;
        if not pawl.make_gate(p_shard, p_line) and not p_may_wait then
            return false;
        end if;
    end loop;
end $$;

-- Makes a line's gate. False: somebody else does, and has not committed yet.
create function pawl.make_gate(p_shard int4, p_line int4) returns boolean
language plpgsql set lock_timeout = '20ms' as $$
begin
    insert into pawl.gate (shard, line_id) values (p_shard, p_line) on conflict do nothing;
    return true;
exception when lock_not_available then
    return false;
end $$;

-- ---- claiming

-- Of the candidates that pick() has locked, those that may start, p_max at most, in their order; those behind another are parked,
-- and counted. A job with a key may start where it holds the key, or where nobody does and it is the first: then it holds it from
-- here on. They get a fence, drawn while each holds its key: the next one to hold it draws a higher number.
-- The keys of those that must wait and could not be parked, because somebody is ending the holder or has the first job, are
-- `stuck`.
create function pawl.pick_keyed(p_shard int4, p_line int4, p_rows tid[], p_max int4, out picked tid[], out fence int8,
                                out parked int4, out stuck text[])
language plpgsql as $$
declare
    c_nobody constant uuid := '00000000-0000-0000-0000-000000000000';
    c_last constant int8 := 9223372036854775807;
    v_ids uuid[];     -- of those that may start, where there are too many
    v_has_keys boolean; -- some of them do
    v_new uuid[];     -- free keys, by their first job
    v_new_keys text[];
    v_free text[];    -- free keys, of which a candidate is not the first
    v_heads uuid[];   -- first jobs of these that are not among the candidates, or have not come up yet
    v_behind uuid[];  -- candidates that must wait
    v_keys text[];    -- and their keys
    v_locked text[];
    v_held uuid[];
begin
    -- One look at all three: a hold that is committed, and all jobs that were committed with it or before. The index has the jobs
    -- of a key by their lane, the highest first: `top` is the lane of the first one there, or -1 where that one comes before the
    -- candidate. No lane beyond `top` has any, and `top` has none before the candidate; what is left is to ask each lane below, as
    -- far as the candidate itself. Mostly all of a key are in lane 0, and no lane is left. (No DISTINCT: for one, servers from
    -- 16 on sort what all of these get.)
    select array_agg(c.place) filter (where c.ordering_key is null or c.holder = c.id or c.is_first),
           bool_or(c.holder = c.id or c.is_first),
           array_agg(c.id) filter (where c.is_first), array_agg(c.ordering_key) filter (where c.is_first),
           array_agg(c.ordering_key) filter (where not c.is_first),
           array_agg(c.id) filter (where c.holder <> c.id or not c.is_first),
           array_agg(c.ordering_key) filter (where c.holder <> c.id or not c.is_first)
    into picked, v_has_keys, v_new, v_new_keys, v_free, v_behind, v_keys
    from (select t.place, t.id, t.ordering_key, t.holder,
                 case when t.top < 0 then false when t.top is not null then
                     (t.top < 1 or (
                      select true from pawl.job r where r.shard = p_shard and r.line_id = p_line and r.lane = 0::int2
                      and r.ordering_key = t.ordering_key and r.key_seq < t.key_seq order by r.key_seq limit 1) is null)
                     and (t.top < 2 or (
                          select true from pawl.job r where r.shard = p_shard and r.line_id = p_line and r.lane = 1::int2
                          and r.ordering_key = t.ordering_key and r.key_seq < t.key_seq order by r.key_seq limit 1) is null)
                     and (t.top < 3 or (
                          select true from pawl.job r where r.shard = p_shard and r.line_id = p_line and r.lane = 2::int2
                          and r.ordering_key = t.ordering_key and r.key_seq < t.key_seq order by r.key_seq limit 1) is null)
                 end is_first
          from (select x.place, x.id, x.ordering_key, x.key_seq, x.holder,
                       case when x.ordering_key is not null and x.holder is null then
                           (select case when r.key_seq < x.key_seq then -1 else r.lane end
                            from pawl.job r where r.shard = p_shard and r.line_id = p_line
                            and r.ordering_key = x.ordering_key and (r.lane <= 3) is true order by r.lane desc, r.key_seq limit 1)
                       end top
                from (select j.place, j.id, j.ordering_key, j.key_seq,
                             case when j.ordering_key is not null then (
                                 select coalesce(h.job_id, c_nobody) from pawl.hold h
                                 where h.shard = p_shard and h.line_id = p_line and h.ordering_key = j.ordering_key) end holder
                      from (select u.r from unnest(p_rows) u(r) offset 0) p
                      cross join lateral (select k.ctid place, k.id, k.ordering_key, coalesce(k.key_seq, c_last) key_seq
                                          from pawl.job k where k.shard = p_shard and k.ctid = p.r offset 0) j
                      offset 0) x
                offset 0) t
          offset 0) c;
    parked := 0;
    if cardinality(picked) > p_max then
        -- Those beyond stay as they are: nobody is made a holder who does not start here (K2).
        picked := picked[1 : p_max];
        v_ids := pawl.ids_of(p_shard, picked);
        select array_agg(u.i), array_agg(u.k) into v_new, v_new_keys
        from unnest(v_new, v_new_keys) u(i, k) where u.i in (select p from unnest(v_ids) p);
    end if;
    if v_new <> '{}' then
        begin
            insert into pawl.hold (shard, line_id, ordering_key, job_id)
            select p_shard, p_line, u.k, u.i from unnest(v_new, v_new_keys) u(i, k);
        exception when unique_violation then
            -- Somebody has just left one vacant. To ask about each before would be a third of the price of a hold.
            with made as (
                insert into pawl.hold (shard, line_id, ordering_key, job_id)
                select p_shard, p_line, u.k, u.i from unnest(v_new, v_new_keys) u(i, k)
                on conflict do nothing returning job_id)
            select array_agg(m.job_id) into v_held from made m;
            picked := array(select u.r from unnest(picked, pawl.ids_of(p_shard, picked)) u(r, i)
                            where u.i not in (select n from unnest(v_new) n) or u.i in (select n from unnest(v_held) n));
        end;
    end if;
    if v_has_keys then
        fence := nextval('pawl.fence_seq');
    end if;
    if v_behind is null then
        return;
    end if;
    if v_free is not null then
        -- But for candidates: of theirs, the first has just ended. They are not parked either, since nobody has the key.
        v_heads := array(
            select h.id
            from (select (select f.id from (values (0), (1), (2), (3)) l(lane)
                          cross join lateral (select r.id, r.key_seq from pawl.job r
                                              where r.shard = p_shard and r.line_id = p_line and r.lane = l.lane
                                                and r.ordering_key = w.k order by r.key_seq limit 1) f
                          order by f.key_seq limit 1) id
                  from (select k from unnest(v_free) k except select n from unnest(v_new_keys) n) w offset 0) h
            where (h.id in (select b from unnest(v_behind) b)) is not true);
    end if;
    if v_heads <> '{}' then
        v_heads := pawl.lead(p_shard, v_heads);
        insert into pawl.hold (shard, line_id, ordering_key, job_id)
        select p_shard, p_line, j.ordering_key, j.id from pawl.job j where j.shard = p_shard and j.id = any (v_heads)
        on conflict do nothing;
    end if;
    v_locked := array(select h.ordering_key from pawl.hold h
                      where h.shard = p_shard and h.line_id = p_line and h.ordering_key = any (v_keys) and h.job_id is not null
                      for update skip locked);
    update pawl.job j set lane = 2
    where j.shard = p_shard and j.id = any (v_behind) and (j.state = 0) is true
      and (j.ordering_key in (select k from unnest(v_locked) k)) is true;
    get diagnostics parked = row_count;
    if parked < cardinality(v_behind) then
        stuck := nullif(array(select k from unnest(v_keys) k where k is not null except select l from unnest(v_locked) l), '{}');
    end if;
end $$;

-- Fits jobs out to hold their keys, but for those that somebody has locked; gives which. One that was parked stands among those
-- that came back from here on, or waits for its time.
create function pawl.lead(p_shard int4, p_ids uuid[]) returns uuid[]
language plpgsql as $$
declare
    v_now timestamptz := clock_timestamp();
    v_here int8 := pawl.here();
    v_ids uuid[];
begin
    v_ids := array(select j.id from pawl.job j where j.shard = p_shard and j.id = any (p_ids) for update skip locked);
    update pawl.job j
    set lane = case when j.lane <> 2 then j.lane when j.next_attempt_at > v_now then 3 else 1 end,
        pos = case when j.lane <> 2 then j.pos when j.next_attempt_at > v_now then pawl.micros(j.next_attempt_at)
                   else v_here end
    where j.shard = p_shard and j.id = any (v_ids);
    return v_ids;
end $$;

-- Gives vacant holds of a line to the first job of their key.
create function pawl.fill_vacant(p_shard int4, p_line int4) returns void
language plpgsql as $$
declare
    c_max constant int4 := 1000;
    v_keys text[];
begin
    v_keys := array(select h.ordering_key from pawl.hold h
                    where h.shard = p_shard and h.line_id = p_line and h.job_id is null limit c_max for update skip locked);
    if v_keys <> '{}' then
        delete from pawl.hold h where h.shard = p_shard and h.line_id = p_line and h.ordering_key = any (v_keys);
        perform pawl.pass_on(p_shard, p_line, v_keys);
    end if;
end $$;

-- Locks jobs of a line as pick() does, but none of the keys in p_without.
create function pawl.pick_past(p_shard int4, p_line int4, p_levels int4, p_max int4, p_without text[], p_timed_from int8,
                               out picked tid[], out timed uuid[])
language plpgsql as $$
declare
    c_versions_max constant int4 := 2147483647;
    c_end constant int8 := 9223372036854775807;
    v_now timestamptz := clock_timestamp();
    v_rows tid[];
    v_lane int4;
    v_left int4 := p_max;
    v_mark pawl.mark;
    v_range record; -- of positions: a late commit's, or all from the mark on
begin
    for v_priority in 0 .. 9 loop
        continue when p_levels & (1 << v_priority) = 0;
        foreach v_lane in array '{1, 3, 0}'::int4[] loop
            v_mark := case when v_lane = 3 then pawl.mark_none(p_shard, p_line, v_priority::int2, 3::int2, 0::int2)
                           else pawl.mark_read(p_shard, p_line, v_priority::int2, v_lane::int2, 0::int2) end;
            if v_lane = 3 then
                v_mark.pos := p_timed_from;
            end if;
            for v_range in
                select h.pos pos, h.seq seq, least(h.pos + 1, v_mark.pos) end_pos,
                       case when h.pos < v_mark.pos then 0 else v_mark.seq end end_seq
                from unnest(v_mark.holes, v_mark.hole_seqs) h(pos, seq)
                union all select v_mark.pos, v_mark.seq, case when v_lane = 3 then pawl.micros(v_now) + 1 else c_end end, 0
            loop
                v_rows := array(
                    select j.ctid from pawl.job j
                    where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                      and (j.pos, j.seq) >= (v_range.pos, v_range.seq) and (j.pos, j.seq) < (v_range.end_pos, v_range.end_seq)
                      and j.state = 0 and j.lease_version < c_versions_max and j.next_attempt_at <= v_now
                      and (j.start_by is null or j.start_by > v_now) and (j.ordering_key = any (p_without)) is not true
                    order by j.pos, j.seq limit v_left for update skip locked);
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
    end loop;
end $$;

-- ---- ending

-- After the caller has deleted the holds of these keys: where jobs are parked behind one, it goes to the first job of the key, or
-- stays vacant. Where none is parked the key is free. Gives whether there may be work. A statement of its own, and therefore a
-- snapshot that is newer than the wait for the hold.
create function pawl.pass_on(p_shard int4, p_line int4, p_keys text[]) returns boolean
language plpgsql as $$
declare
    v_keys text[];
    v_heads uuid[];
    v_led uuid[];
begin
    v_keys := array(select k from unnest(p_keys) k where ( -- not EXISTS: that would be made a join
                        select true from pawl.job x
                        where x.shard = p_shard and x.line_id = p_line and x.ordering_key = k and x.lane = 2::int2
                        order by x.key_seq limit 1));
    if v_keys = '{}' then
        return false;
    end if;
    v_heads := array(
        select (select f.id from (values (0::int2), (1::int2), (2::int2), (3::int2)) l(lane)
                cross join lateral (select r.id, r.key_seq from pawl.job r
                                    where r.shard = p_shard and r.line_id = p_line and r.lane = l.lane
                                      and r.ordering_key = w.k order by r.key_seq limit 1) f
                order by f.key_seq limit 1)
        from (select k from unnest(v_keys) k offset 0) w);
    v_led := pawl.lead(p_shard, v_heads);
    insert into pawl.hold (shard, line_id, ordering_key, job_id)
    select p_shard, p_line, u.k, case when u.i in (select l from unnest(v_led) l) then u.i end
    from unnest(v_keys, v_heads) u(k, i);
    return true;
end $$;

-- These jobs of a line, each with a key and not parked, have ended and their rows are gone: lets the next ones through. Gives
-- whether there may be work.
create function pawl.end_keys(p_shard int4, p_line int4, p_keys text[], p_ids uuid[]) returns boolean
language plpgsql as $$
declare
    v_held text[];
    v_places tid[];
    v_left text[]; -- keys with somebody parked, of those that were not held
    v_next uuid[];
    v_has_next boolean := false;
begin
    if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
        -- Found key by key: with the keys as a condition, a planner that takes the line for short reads all holds of it. A hold of
        -- a job that has ended is nobody else's to change: its row stays where it was found. Mostly all of them hold their
        -- keys, and nobody need be told which do.
        select array_agg(x.place) into v_places
        from (select u.k, u.i from unnest(p_keys, p_ids) u(k, i) offset 0) w
        cross join lateral (select g.ctid place from pawl.hold g
                            where g.shard = p_shard and g.line_id = p_line and g.ordering_key = w.k
                              and g.job_id = w.i offset 0) x;
        if v_places is not null then
            v_held := case when cardinality(v_places) = cardinality(p_keys) then p_keys else array(
                select h.ordering_key from pawl.hold h where h.shard = p_shard and h.ctid = any (v_places)) end;
            delete from pawl.hold h where h.shard = p_shard and h.ctid = any (v_places);
            v_has_next := pawl.pass_on(p_shard, p_line, v_held);
        end if;
    else
        -- Its snapshot does not show who was parked since: the next claim looks.
        with left_alone as (
            update pawl.hold h set job_id = null
            where h.shard = p_shard and h.line_id = p_line and h.ordering_key = any (p_keys)
              and ((h.ordering_key, h.job_id) in (select u.k, u.i from unnest(p_keys, p_ids) u(k, i))) is true
            returning h.ordering_key)
        select array_agg(l.ordering_key) into v_held from left_alone l;
        v_has_next := v_held is not null;
    end if;
    if cardinality(v_held) is distinct from cardinality(p_keys) then
        -- One that held nothing may have been the one that others came with: then claims have to meet one of these, whichever it is,
        -- to find the first. Who holds the key does not count: they may be ending just now. Nor are they waited for, and no hold
        -- is made while there is another way: claims would have to wait for it.
        select array_agg(n.k), array_agg(n.i) into v_left, v_next
        from (select f.k, (select x.id from pawl.job x
                           where x.shard = p_shard and x.line_id = p_line and x.ordering_key = f.k and x.lane = 2
                           order by x.key_seq limit 1 for update skip locked) i
              from (select o.k from (select u.k from unnest(p_keys) u(k) except select h from unnest(v_held) h) o
                    where (select true from pawl.job x where x.shard = p_shard and x.line_id = p_line and x.ordering_key = o.k
                               and x.lane = 2 order by x.key_seq limit 1)
                    offset 0) f
              offset 0) n;
        if v_left is not null then
            v_has_next := true;
            perform pawl.lead(p_shard, v_next);
            insert into pawl.hold (shard, line_id, ordering_key, job_id)
            select p_shard, p_line, u.k, null from unnest(v_left, v_next) u(k, i) where u.i is null
            on conflict do nothing;
        end if;
    end if;
    return v_has_next;
end $$;

-- Jobs that have a key and were not parked, or were InFlight in a queue with a limit, have ended and their rows are gone; or (without key) have gone
-- back to Ready. Lets the next ones through, and hints where there may be work now.
create function pawl.let_next(p_shard int4, p_lines int4[], p_keys text[], p_ids uuid[]) returns void
language plpgsql as $$
declare
    v_line int4;
    v_keys text[];
    v_ids uuid[];
    v_queue pawl.queue;
    v_has_next boolean;
begin
    if p_lines[1] = all (p_lines) and array_position(p_keys, null) is null then
        -- Mostly they are of one line and all have keys: then there is nothing to sort.
        v_queue := pawl.queue_of(p_lines[1]);
        v_has_next := pawl.end_keys(p_shard, p_lines[1], p_keys, p_ids) or v_queue.max_in_flight is not null;
        if v_has_next and v_queue.name is not null then
            perform pawl.hint(v_queue.name);
        end if;
        return;
    end if;
    for v_line, v_keys, v_ids in
        select u.l, array_agg(u.k) filter (where u.k is not null), array_agg(u.i) filter (where u.k is not null)
        from unnest(p_lines, p_keys, p_ids) u(l, k, i) group by u.l order by u.l
    loop
        v_queue := pawl.queue_of(v_line);
        v_has_next := v_queue.max_in_flight is not null;
        if v_keys is not null then
            v_has_next := pawl.end_keys(p_shard, v_line, v_keys, v_ids) or v_has_next;
        end if;
        if v_has_next and v_queue.name is not null then
            perform pawl.hint(v_queue.name);
        end if;
    end loop;
end $$;

-- Whether a job that the caller has locked can be ended without waiting for a claim: for those who come again anyway.
create function pawl.can_end(p_job pawl.job) returns boolean
language plpgsql as $$
begin
    if p_job.ordering_key is null or p_job.lane = 2 then
        return true;
    end if;
    perform from pawl.hold h
    where h.shard = p_job.shard and h.line_id = p_job.line_id and h.ordering_key = p_job.ordering_key for update skip locked;
    return found or not exists (
        select from pawl.hold h
        where h.shard = p_job.shard and h.line_id = p_job.line_id and h.ordering_key = p_job.ordering_key);
end $$;

-- ---- mending

-- Puts right what an edit by hand may have left: a hold whose job is not there, or is parked itself; jobs that are parked behind
-- nothing.
create function pawl.mend_keys(p_shard int4, p_line int4, p_has_keys boolean) returns void
language plpgsql as $$
declare
    v_key text := '';
begin
    if not p_has_keys then
        if exists (select from pawl.job j where j.shard = p_shard and j.line_id = p_line and j.ordering_key is not null) then
            update pawl.queue q set has_keys = true where q.queue_id = p_line / 4096;
        end if;
        return;
    end if;
    update pawl.hold h set job_id = null
    where h.shard = p_shard and h.line_id = p_line and h.ordering_key = any (array(
        select o.ordering_key from pawl.hold o
        where o.shard = p_shard and o.line_id = p_line and o.job_id is not null and (
            select true from pawl.job j
            where j.shard = p_shard and j.id = o.job_id
              and (j.line_id = p_line and j.ordering_key = o.ordering_key and j.lane <> 2) is true) is null
        for update skip locked));
    loop
        -- From key to key, however many are parked behind each.
        select j.ordering_key into v_key from pawl.job j
        where j.shard = p_shard and j.line_id = p_line and j.lane = 2 and j.ordering_key > v_key
        order by j.ordering_key, j.key_seq limit 1;
        exit when not found;
        if not exists (select from pawl.hold h where h.shard = p_shard and h.line_id = p_line and h.ordering_key = v_key)
           and (select l.lane = 2 from (values (0), (1), (2), (3)) l(lane)
                cross join lateral (select j.key_seq from pawl.job j
                                    where j.shard = p_shard and j.line_id = p_line and j.lane = l.lane and j.ordering_key = v_key
                                    order by j.key_seq limit 1) f
                order by f.key_seq limit 1) then
            insert into pawl.hold (shard, line_id, ordering_key, job_id) values (p_shard, p_line, v_key, null)
            on conflict do nothing;
        end if;
    end loop;
end $$;
