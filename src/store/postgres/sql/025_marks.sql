-- SPDX-License-Identifier: Apache-2.0
-- Marks: where the walk of lane 0 or 1 may begin, so that a claim costs what it returns, and not what others have taken.
--
-- A position there is the id of the transaction that put the job into the lane, so the order of positions is not the order
-- of commits. A mark therefore keeps the transactions that were still running when it was set, and those that had
-- ended but had jobs left (its holes): jobs of theirs below the mark are looked up by their exact position. Nothing is ever
-- moved to an earlier position, and a job that is InFlight never becomes Ready where it stands.

-- The beginning of a lane, as a mark.
create function pawl.mark_none(p_shard int4, p_line int4, p_priority int2, p_lane int2, p_kind int2) returns pawl.mark
language sql stable as $$
    select p_shard, p_line, p_priority, p_lane, p_kind, -1::int8, 0::int8,
           pg_postmaster_start_time(), '-infinity'::timestamptz, '{}'::int8[], '{}'::int8[]
$$;

-- The newest mark of a lane; without one, its beginning.
create function pawl.mark_read(p_shard int4, p_line int4, p_priority int2, p_lane int2, p_kind int2) returns pawl.mark
language plpgsql as $$
declare
    v_mark pawl.mark;
begin
    select * into v_mark from pawl.mark k
    where k.shard = p_shard and k.line_id = p_line and k.priority = p_priority and k.lane = p_lane and k.kind = p_kind
      and k.boot = pg_postmaster_start_time()
    order by k.pos desc, k.seq desc, k.at desc limit 1;
    if not found then
        v_mark := pawl.mark_none(p_shard, p_line, p_priority, p_lane, p_kind);
    end if;
    return v_mark;
end $$;

-- Moves a mark to the first job of its kind, as a plain snapshot shows it (so that what a claim has locked, and may give up
-- again, stays above the mark), and never beyond the snapshot, nor beyond the transaction that asks, which may put in more.
create function pawl.mark_move(p_old pawl.mark, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_snapshot pg_snapshot;
    v_here int8 := pawl.here();
    v_end int8;
    v_pos int8;
    v_seq int8;
    v_new pawl.mark;
begin
    v_snapshot := pg_current_snapshot(); -- before the look: what commits in between is in the holes, and in the look
    select j.pos, j.seq into v_pos, v_seq from pawl.job j
    where j.shard = p_old.shard and j.line_id = p_old.line_id and j.priority = p_old.priority and j.lane = p_old.lane
      and (j.pos, j.seq) >= (p_old.pos, p_old.seq) and (j.state = 0 or p_old.kind = 1) is true
    order by j.pos, j.seq limit 1;
    v_end := least(v_here, pg_snapshot_xmax(v_snapshot)::text::int8);
    if v_pos is null or v_pos >= v_end then
        v_pos := v_end;
        v_seq := 0;
    end if;
    v_new := pawl.mark_holes(p_old, v_snapshot);
    if (v_pos, v_seq) <= (p_old.pos, p_old.seq)
       and (v_new.holes, v_new.hole_seqs) is not distinct from (p_old.holes, p_old.hole_seqs) then
        return;
    end if;
    insert into pawl.mark (shard, line_id, priority, lane, kind, pos, seq, boot, at, holes, hole_seqs)
    select p_old.shard, p_old.line_id, p_old.priority, p_old.lane, p_old.kind, greatest(v_pos, p_old.pos),
           case when v_pos > p_old.pos then v_seq when v_pos = p_old.pos then greatest(v_seq, p_old.seq) else p_old.seq end,
           pg_postmaster_start_time(), p_now, coalesce(array_agg(h.pos), '{}'), coalesce(array_agg(h.seq), '{}')
    from (select x::text::int8 pos, 0::int8 seq from pg_snapshot_xip(v_snapshot) x
          where x::text::int8 <= v_pos and ((x::text::int8) in (select unnest(v_new.holes))) is not true
          union all select v_here, 0 where v_here <= p_old.pos -- only then: it costs each claim a look
          union all select * from unnest(v_new.holes, v_new.hole_seqs)) h;
end $$;

-- A mark's holes without those that have ended and have no job of the mark's kind left, each with the first that it has. The
-- transaction that asks is left out: mark_move() adds it where it must be there. Without a snapshot: only
-- those that have such jobs now.
create function pawl.mark_holes(p_mark pawl.mark, p_snapshot pg_snapshot) returns pawl.mark
language plpgsql as $$
declare
    v_mark pawl.mark := p_mark;
begin
    if p_mark.holes = '{}' then
        return v_mark;
    end if;
    select coalesce(array_agg(h.pos order by h.pos), '{}'), coalesce(array_agg(coalesce(f.seq, h.seq) order by h.pos), '{}')
    into v_mark.holes, v_mark.hole_seqs
    from unnest(p_mark.holes, p_mark.hole_seqs) h(pos, seq)
    left join lateral (
        select j.seq from pawl.job j
        where j.shard = p_mark.shard and j.line_id = p_mark.line_id and j.priority = p_mark.priority
          and j.lane = p_mark.lane and j.pos = h.pos and j.seq >= h.seq and (j.state = 0 or p_mark.kind = 1) is true
        order by j.seq limit 1) f on true
    where (f.seq is not null or not pg_visible_in_snapshot(h.pos::text::xid8, p_snapshot))
      and (p_snapshot is null or h.pos is distinct from pg_current_xact_id_if_assigned()::text::int8);
    return v_mark;
end $$;
