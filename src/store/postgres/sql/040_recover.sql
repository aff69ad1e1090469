-- SPDX-License-Identifier: Apache-2.0
-- Finding expired leases without an index on them, and ending what nobody ends.

-- The ids and deadlines of up to p_max leases of a line that have expired at p_now, those of each lane oldest first. Locks
-- nothing. Looks as far as claims usually reach: whatever is InFlight stands in lanes 0 and 1, between the first job that is
-- there at all and a number of Ready jobs beyond the first. What lies further (claimed before many earlier jobs committed)
-- is left to the reaper's look through the whole line.
create function pawl.expired_in_reach(p_shard int4, p_line int4, p_levels int4, p_max int4, p_now timestamptz)
returns table (id uuid, expires_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    c_reach constant int4 := 10000;
    v_floor pawl.mark;
    v_mark pawl.mark;
    v_stop_pos int8;
    v_stop_seq int8;
begin
    for v_priority in 0 .. 9 loop
        continue when p_levels & (1 << v_priority) = 0;
        for v_lane in 0 .. 1 loop
            v_floor := pawl.mark_read(p_shard, p_line, v_priority::int2, v_lane::int2, 1::int2);
            v_mark := pawl.mark_read(p_shard, p_line, v_priority::int2, v_lane::int2, 0::int2);
            select j.pos, j.seq into v_stop_pos, v_stop_seq from pawl.job j
            where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane and j.state = 0
              and (j.pos, j.seq) >= (v_mark.pos, v_mark.seq)
            order by j.pos, j.seq offset c_reach limit 1;
            return query
                select j.id, j.lease_expires_at from pawl.job j
                where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                  and (j.pos, j.seq) >= (v_floor.pos, v_floor.seq)
                  and (j.pos, j.seq) <= (coalesce(v_stop_pos, 9223372036854775807),
                                         coalesce(v_stop_seq, 9223372036854775807))
                  and j.state = 1 and (j.lease_expires_at > p_now) is not true
                order by j.lease_expires_at nulls first, j.id limit p_max;
            for i in 1 .. cardinality(v_floor.holes) loop
                return query
                    select j.id, j.lease_expires_at from pawl.job j
                    where j.shard = p_shard and j.line_id = p_line and j.priority = v_priority and j.lane = v_lane
                      and j.pos = v_floor.holes[i] and j.seq >= v_floor.hole_seqs[i]
                      and (j.pos, j.seq) < (v_floor.pos, v_floor.seq)
                      and j.state = 1 and (j.lease_expires_at > p_now) is not true
                    order by j.lease_expires_at nulls first, j.id limit p_max;
            end loop;
            if v_floor.at < clock_timestamp() - interval '1 s' or v_floor.at > clock_timestamp() then
                perform pawl.mark_move(v_floor, clock_timestamp());
            end if;
        end loop;
    end loop;
end $$;

-- The same of the next part of the line, from its end to its beginning, since jobs come in at the ends of lanes: a look that went
-- the other way would never be through. From job to job whatever lane and priority they say; and Ready jobs that stand where no
-- claim looks, or where it looks in vain, which recover() puts where they belong. Looks at a bounded number of jobs: p_after and
-- `reached` are those of pawl.sweep. Where it finds more than p_max, they are the oldest, and it has to look there again.
create function pawl.expired_in_part(p_shard int4, p_line int4, p_after int8[], p_max int4, p_now timestamptz, out ids uuid[],
                                     out times timestamptz[], out reached int8[], out is_all boolean)
language plpgsql as $$
declare
    c_part constant int4 := 50000; -- some 40 ms
    v_after int8[] := coalesce(p_after, '{32767, 32767, 9223372036854775807, 9223372036854775807}');
begin
    select array_agg(x.id) filter (where x.is_overdue), array_agg(x.lease_expires_at) filter (where x.is_overdue),
           case when count(*) = c_part then min(array[x.priority, x.lane, x.pos, x.seq]) end
    into ids, times, reached
    from (select j.id, j.lease_expires_at, j.priority, j.lane, j.pos, j.seq,
                 case when j.state = 1 then (j.lease_expires_at > p_now) is not true
                      else pawl.is_astray(j.priority, j.lane, j.pos, j.seq, j.next_attempt_at, j.ordering_key, p_now) end is_overdue
          from pawl.job j
          where j.shard = p_shard and j.line_id = p_line
            and (j.priority, j.lane, j.pos, j.seq) < (v_after[1]::int2, v_after[2]::int2, v_after[3], v_after[4])
          order by j.priority desc, j.lane desc, j.pos desc, j.seq desc limit c_part) x;
    is_all := (cardinality(ids) > p_max) is not true;
    if not is_all then
        select array_agg(o.i), array_agg(o.t) into ids, times
        from (select u.i, u.t from unnest(ids, times) u(i, t) order by u.t nulls first, u.i limit p_max) o;
    end if;
end $$;

-- Recovers these jobs where their leases have expired, or where they are Ready and have missed their start-by deadline; each
-- exactly once, each with its ledger row (RES-4, RES-5). Rows that somebody else has locked are skipped: their turn comes
-- again. In the order given.
create function pawl.recover(p_shard int4, p_ids uuid[], p_seed bytea)
returns table (id uuid, queue text, worker text, lease_version int4, state int2, reason int2, due_at timestamptz,
               overdue_ms int8)
language plpgsql as $$
#variable_conflict use_column
declare
    v_id uuid;
    v_now timestamptz;
    v_job pawl.job;
    v_queue pawl.queue;
begin
    foreach v_id in array p_ids loop
        select * into v_job from pawl.job j where j.shard = p_shard and j.id = v_id for update skip locked;
        continue when not found;
        v_now := clock_timestamp(); -- the row is locked
        if v_queue.queue_id is distinct from v_job.line_id / 4096 then
            v_queue := pawl.queue_of(v_job.line_id);
        end if;
        id := v_id;
        queue := v_queue.name;
        due_at := null;
        state := 3;
        if v_job.state = 0 then
            if pawl.is_astray(v_job.priority, v_job.lane, v_job.pos, v_job.seq, v_job.next_attempt_at, v_job.ordering_key,
                              v_now) then
                perform pawl.put_back(v_job, v_job.reason, v_job.next_attempt_at,
                                      case when v_job.next_attempt_at > v_now then 3 else 1 end::int2, false);
            end if;
            continue when v_job.start_by is null or v_job.start_by > v_now;
            continue when not pawl.can_end(v_job);
            worker := '';
            lease_version := 0;
            overdue_ms := pawl.span_ms(v_job.start_by, v_now);
            reason := 10;
            perform pawl.write_row(v_job, 2::int2, reason, 3::int2, v_now, null, null);
            perform pawl.bury(v_job, reason, v_now);
            return next;
            continue;
        end if;
        continue when v_job.lease_expires_at > v_now;
        worker := coalesce(v_job.claimed_by, '');
        lease_version := v_job.lease_version;
        overdue_ms := coalesce(pawl.span_ms(v_job.lease_expires_at, v_now), 0);
        if v_job.is_cancel_asked then
            reason := 9;
        elsif v_job.lost_leases + 1 >= v_queue.max_lost_leases then
            reason := 8;
        else
            reason := 7;
            state := 0;
            due_at := v_now;
            -- From the second loss in a row on it waits, so as not to fell one worker after the other.
            if v_job.lost_in_a_row >= 1 then
                due_at := v_now + pawl.ms(pawl.backoff_ms(p_seed, v_id,
                    coalesce(v_job.backoff_base_ms, v_queue.backoff_base_ms),
                    coalesce(v_job.backoff_max_ms, v_queue.backoff_max_ms), v_job.lost_in_a_row - 1));
            end if;
        end if;
        continue when state = 3 and not pawl.can_end(v_job);
        v_job.lost_leases := least(v_job.lost_leases + 1, 32767);
        v_job.lost_in_a_row := least(v_job.lost_in_a_row + 1, 32767);
        perform pawl.write_row(v_job, case when state = 0 then 3 else 2 end::int2, reason, 1::int2, v_now, null, null);
        if state = 0 then
            perform pawl.put_back(v_job, reason, due_at, case when due_at > v_now then 3 else 1 end::int2, true);
        else
            perform pawl.bury(v_job, reason, v_now);
        end if;
        return next;
    end loop;
end $$;

-- Whether a Ready job stands where claims do not find it although it is due, or find it although it is not: by a change that
-- somebody has made by hand.
create function pawl.is_astray(p_priority int2, p_lane int2, p_pos int8, p_seq int8, p_due_at timestamptz, p_key text,
                               p_now timestamptz) returns boolean
language sql stable parallel safe as $$
    select p_priority not between 0 and 9 or p_seq < 0
        or case when p_lane in (0, 1) then p_pos < 0 or p_due_at > p_now + interval '1 second'
                when p_lane = 3 then p_due_at < p_now and p_pos > pawl.micros(p_now + interval '1 second')
                else p_lane <> 2 or coalesce(p_key, '') = '' end -- nobody is parked without a key
$$;

-- Whole milliseconds from one instant to another, never below 0.
create function pawl.span_ms(p_from timestamptz, p_to timestamptz) returns int8
language sql immutable parallel safe as $$
    select case when isfinite(p_from) then greatest(0, floor(extract(epoch from p_to - p_from) * 1000))::int8 end
$$;

-- Appends the ledger row that ends p_job's attempt, or the job, and gives its number. The caller raises `attempts` in the same
-- transaction.
create function pawl.write_row(p_job pawl.job, p_outcome int2, p_reason int2, p_ended_by int2, p_now timestamptz,
                               p_error_code text, p_error_text text, p_wire_sends int4 default null)
returns int4
language plpgsql as $$
declare
    v_attempts int4 := pawl.true_attempts(p_job);
begin
    insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, token_digest,
                              started_at, finished_at, worker, error_code, error_text, wire_sends)
    values (p_job.shard, p_job.line_id, p_job.id, v_attempts + 1,
            case when p_job.state = 1 then p_job.lease_version else 0 end, p_outcome, p_reason, p_ended_by,
            case when p_ended_by = 0 then pawl.token_digest(p_job.lease_token) end, p_job.claimed_at, p_now,
            p_job.claimed_by, p_error_code, p_error_text, p_wire_sends);
    return v_attempts + 1;
end $$;

-- How many ledger rows a job that the caller has locked has. That stands on the job; only where the next number is taken, or no
-- job could have come that far, because somebody has changed it by hand, the ledger is asked, and the job is put right.
create function pawl.true_attempts(p_job pawl.job) returns int4
language plpgsql as $$
declare
    v_attempts int4;
begin
    if p_job.attempts between 0 and 1000000000 and (
        select true from pawl.attempt a
        where a.shard = p_job.shard and a.job_id = p_job.id and a.attempt_no = p_job.attempts + 1) is null then
        return p_job.attempts;
    end if;
    v_attempts := coalesce((select a.attempt_no from pawl.attempt a
                            where a.shard = p_job.shard and a.job_id = p_job.id order by a.attempt_no desc limit 1), 0);
    update pawl.job j set attempts = v_attempts where j.shard = p_job.shard and j.id = p_job.id;
    return v_attempts;
end $$;

-- Puts a job that the caller has locked back to Ready, under the counters given in p_job, into lane 1 (it came back) or lane 3
-- (it has a time). A key that it holds stays held. With p_is_row its ledger row has been written: the attempt did start, so the start-by deadline was met.
create function pawl.put_back(p_job pawl.job, p_reason int2, p_due_at timestamptz, p_lane int2, p_is_row boolean)
returns void
language plpgsql as $$
declare
    v_pos int8 := case when p_lane = 3 then pawl.micros(p_due_at) else pawl.here() end;
    v_seq int8 := nextval('pawl.job_seq');
begin
    update pawl.job j
    set state = 0, lease_token = null, lease_expires_at = null, claimed_by = null, claimed_at = null, run_until = null,
        lease_ms = null, run_ms = null, unstarted_until = null, fence = null, is_started = false, is_cancel_asked = false,
        attempts = j.attempts + p_is_row::int4, reason = case when p_is_row then p_reason else j.reason end,
        retries = p_job.retries, lost_leases = p_job.lost_leases, lost_in_a_row = p_job.lost_in_a_row,
        next_attempt_at = p_due_at, start_by = case when p_is_row then null else j.start_by end,
        lane = p_lane, pos = v_pos, seq = v_seq, priority = least(greatest(j.priority, 0), 9)
    where j.shard = p_job.shard and j.id = p_job.id;
    if not found then
        raise exception 'PAWL_BUG: job % was locked and is not there', p_job.id;
    end if;
    perform pawl.note_detour(p_job.line_id / 4096);
    if p_job.fence is not null then
        perform pawl.let_next(p_job.shard, array[p_job.line_id], null, null); -- its key stays held
    end if;
end $$;

-- Moves a job that the caller has locked, and whose ledger row is written, to the dead letters.
create function pawl.bury(p_job pawl.job, p_reason int2, p_now timestamptz) returns void
language plpgsql as $$
begin
    with gone as (
        delete from pawl.job j where j.shard = p_job.shard and j.id = p_job.id returning j.*)
    insert into pawl.dead_letter (shard, line_id, id, priority, retries, lost_leases, reason, max_retries, attempts,
                                  lease_version, created_at, due_at, finished_at, start_by, timeout_ms, backoff_base_ms,
                                  backoff_max_ms, payload_len, ordering_key, dedupe_key, payload, headers)
    select g.shard, g.line_id, g.id, g.priority, p_job.retries, p_job.lost_leases, p_reason, g.max_retries,
           g.attempts + 1, g.lease_version, g.created_at, g.next_attempt_at, p_now, g.start_by, g.timeout_ms,
           g.backoff_base_ms, g.backoff_max_ms, octet_length(g.payload), g.ordering_key, g.dedupe_key, g.payload,
           g.headers
    from gone g;
    if not found then
        raise exception 'PAWL_BUG: job % was locked and is not there', p_job.id;
    end if;
    if (p_job.ordering_key is not null and p_job.lane <> 2) or p_job.fence is not null then -- nobody waits for who is parked
        perform pawl.let_next(p_job.shard, array[p_job.line_id], array[p_job.ordering_key], array[p_job.id]);
    end if;
end $$;

-- Before a claim takes from a line of which no hint says that nothing has expired: recovers up to p_max jobs for it, and some for
-- those that claim next, because the walk that finds them costs more than they do. Gives the instant up to which nothing more
-- will expire, and leaves it as a hint. Of jobs that are Failed by it, or have to wait first, it recovers p_aside_max at most:
-- whoever claims must not pay for all of them.
--
-- Also gives where the walk of those that wait for their time may begin: at the first of them, or ten seconds ago. Those that were
-- claimed stay in the index while an old transaction may see them, and each claim would walk over them all. A position
-- there is an instant, so that whoever commits late puts a job before it: where that is by more than ten seconds, the next sweep
-- finds it, some seconds later.
create function pawl.sweep_line(p_shard int4, p_line int4, p_levels int4, p_max int4, p_aside_max int4, p_seed bytea,
                                out until timestamptz, out aside_left int4, out timed_from int8)
language plpgsql as $$
declare
    c_worth constant int4 := 50; -- jobs, of one walk
    v_now timestamptz := clock_timestamp();
    v_ids uuid[];
    v_back int4;
    v_done int4;
    v_left int4 := greatest(p_max, c_worth);
begin
    aside_left := p_aside_max;
    select least(pawl.micros(v_now - interval '10 s'), min(f.pos)) into timed_from
    from generate_series(0, 9) p(priority)
    cross join lateral (select j.pos from pawl.job j
                        where j.shard = p_shard and j.line_id = p_line and j.priority = p.priority and j.lane = 3
                          and j.pos < pawl.micros(v_now - interval '10 s')
                        order by j.pos, j.seq limit 1) f
    where p_levels & (1 << p.priority) <> 0;
    loop
        v_ids := array(select e.id from pawl.expired_in_reach(p_shard, p_line, p_levels, least(v_left, aside_left), v_now) e
                       order by e.expires_at nulls first, e.id limit least(v_left, aside_left));
        exit when v_ids = '{}';
        select count(*) filter (where r.state = 0 and r.due_at <= clock_timestamp()), count(*) into v_back, v_done
        from pawl.recover(p_shard, v_ids, p_seed) r;
        v_left := v_left - v_back;
        aside_left := aside_left - (v_done - v_back);
        if v_left <= 0 or aside_left <= 0 then
            until := v_now; -- there may be more: the next claim looks again
            return;
        end if;
        exit when v_done < cardinality(v_ids);
    end loop;
    -- Until the first deadline that is left. A claim with an earlier one says so itself (sweep_note), but may not have
    -- committed yet: therefore never for long.
    select least(min(e.expires_at), v_now + interval '5 s') into until
    from pawl.expired_in_reach(p_shard, p_line, p_levels, 1, 'infinity') e;
    insert into pawl.sweep (shard, line_id, kind, at, next_at, timed_from) values (p_shard, p_line, 0, v_now, until, timed_from);
end $$;

-- After a claim: the line's hint must not be later than the first deadline just given.
create function pawl.sweep_note(p_shard int4, p_line int4, p_now timestamptz, p_expires_at timestamptz, p_timed_from int8)
returns void
language plpgsql as $$
begin
    insert into pawl.sweep (shard, line_id, kind, at, next_at, timed_from)
    values (p_shard, p_line, 0, p_now, p_expires_at, p_timed_from);
end $$;
