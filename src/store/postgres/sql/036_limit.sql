-- SPDX-License-Identifier: Apache-2.0
-- A queue's limit on jobs in flight. There is no counter: a claim takes the line's gate and counts what is InFlight, between the
-- first job that is there at all (mark of kind 1) and the last that a claim has taken (mark of kind 2, written under the gate, in
-- the claim's own transaction). Where that is not known, because the server or the limit is new, it looks through the whole line
-- once.

-- How many jobs of a line may be InFlight: its share of its queue's limit. NULL: as many as there are.
create function pawl.limit_of(p_line int4) returns int4
language plpgsql as $$
begin
    return (select q.max_in_flight / c.shards + (p_line & 4095 < q.max_in_flight % c.shards)::int4
            from pawl.queue q, pawl.config c where q.queue_id = p_line / 4096);
end $$;

-- How many jobs of a line are InFlight. Under its gate.
create function pawl.count_in_flight(p_shard int4, p_line int4, p_levels int4) returns int4
language plpgsql as $$
declare
    v_floor pawl.mark;
    v_top pawl.mark;
    v_some int4;
    v_count int4 := 0;
begin
    for v_priority in 0 .. 9 loop
        continue when p_levels & (1 << v_priority) = 0;
        for v_lane in 0 .. 1 loop
            v_floor := pawl.mark_read(p_shard, p_line, v_priority::int2, v_lane::int2, 1::int2);
            v_top := pawl.mark_read(p_shard, p_line, v_priority::int2, v_lane::int2, 2::int2);
            if v_top.pos < 0 then
                select j.pos, j.seq into v_top.pos, v_top.seq from pawl.job j
                where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane and j.state = 1
                order by j.pos desc, j.seq desc limit 1;
                perform pawl.note_top(p_shard, p_line, v_priority::int2, v_lane::int2, coalesce(v_top.pos, 0),
                                      coalesce(v_top.seq, 0));
            end if;
            select count(*) into v_some from pawl.job j
            where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
              and (j.pos, j.seq) >= (v_floor.pos, v_floor.seq) and (j.pos, j.seq) <= (v_top.pos, v_top.seq) and j.state = 1;
            v_count := v_count + v_some;
            for i in 1 .. cardinality(v_floor.holes) loop
                select count(*) into v_some from pawl.job j
                where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                  and j.pos = v_floor.holes[i] and j.seq >= v_floor.hole_seqs[i]
                  and (j.pos, j.seq) < (v_floor.pos, v_floor.seq) and j.state = 1;
                v_count := v_count + v_some;
            end loop;
            if v_floor.at not between clock_timestamp() - interval '100 ms' and clock_timestamp() then
                perform pawl.mark_move(v_floor, clock_timestamp());
            end if;
        end loop;
    end loop;
    return v_count;
end $$;

create function pawl.note_top(p_shard int4, p_line int4, p_priority int2, p_lane int2, p_pos int8, p_seq int8) returns void
language plpgsql as $$
begin
    insert into pawl.mark (shard, line_id, priority, lane, kind, pos, seq, boot, at, holes, hole_seqs)
    values (p_shard, p_line, p_priority, p_lane, 2, p_pos, p_seq, pg_postmaster_start_time(), clock_timestamp(), '{}', '{}');
end $$;

-- After a claim under the gate: notes how far it went.
create function pawl.note_taken(p_shard int4, p_line int4, p_ids uuid[]) returns void
language plpgsql as $$
declare
    v_last record;
    v_top pawl.mark;
begin
    for v_last in
        select distinct on (j.priority, j.lane) j.priority, j.lane, j.pos, j.seq from pawl.job j
        where j.shard = p_shard and j.id = any (p_ids) order by j.priority, j.lane, j.pos desc, j.seq desc
    loop
        v_top := pawl.mark_read(p_shard, p_line, v_last.priority, v_last.lane, 2::int2);
        if (v_last.pos, v_last.seq) > (v_top.pos, v_top.seq) then
            perform pawl.note_top(p_shard, p_line, v_last.priority, v_last.lane, v_last.pos, v_last.seq);
        end if;
    end loop;
end $$;

-- The id of the transaction, as here(), for a claim under a snapshot that may be older than a limit which holds by now: then it is
-- refused (40001).
create function pawl.here_of(p_queues text[]) returns int8
language plpgsql as $$
begin
    perform from pawl.queue q where q.name = any (p_queues) order by q.name for share;
    return pawl.here();
end $$;

-- Before a limit holds for a queue that had none: waits until no claim goes on that does not know of it, and keeps new ones out
-- until the caller's transaction ends. Claims have noted nothing while there was no limit: what they noted before is void.
create function pawl.begin_limit(p_queue_id int4) returns void
language plpgsql set lock_timeout = '2s' as $$
begin
    lock table pawl.gate in exclusive mode; -- readers, such as a backup, are not in the way
    for v_shard in 0 .. pawl.shards() - 1 loop
        delete from pawl.mark m where m.shard = v_shard and m.line_id = p_queue_id * 4096 + v_shard and m.kind = 2;
    end loop;
end $$;
