-- SPDX-License-Identifier: Apache-2.0
-- Leases in the order of their jobs. One value, since arrays in variables of their own would be copied whenever they are looked at.
create type pawl.held as (
    ids uuid[],
    tokens uuid[],
    versions int4[],
    version int4 -- of all of them; NULL: they differ
);

-- A job that succeeded, and was not the usual one: not at its first attempt, or with a fence, so that its end may let others through.
create type pawl.odd as (id uuid, number int4, line_id int4, ordering_key text, fence int8);

-- What the ledger has of a job that succeeded.
create type pawl.gone as (id uuid, line_id int4, number int4, ordering_key text, lease_version int4, lease_token uuid,
                          claimed_at timestamptz, created_at timestamptz, payload_len int4, priority int2, retries int2,
                          lost_leases int2, max_retries int2);

-- Jobs that succeeded, and which of them not at their first attempt; NULL: none.
create type pawl.done as (ids uuid[], odd pawl.odd[]);

-- Ends attempts of one shard: lease check, ledger row and change of the live row in one transaction (OL-ATOMIC). The lease
-- (token, worker, version, deadline) is tested by the statement that writes; the clock that decides is read while the row is
-- locked. A repeated settle is answered from the ledger. Answers per row; never raises for a lost lease (OL-LEASE-LOST).
create function pawl.settle_batch(
    p_shard int4,
    p_worker text,
    p_ids uuid[],
    p_tokens uuid[],
    p_versions int4[],
    p_actions int2[],           -- 0 succeed, 1 retry, 2 fail, 3 snooze
    p_reasons int2[],           -- 0: the action's usual one
    p_delays_ms int8[],         -- NULL: computed
    p_error_codes text[],
    p_error_texts text[],
    p_seed bytea,
    p_wire_sends int4[] default null, -- how often each request left the machine; NULL: nobody says
    p_is_terse boolean default false  -- ids in their order; no actions: all succeed. Where all have, at the first attempt, one row says so: its
                                      -- ordinal is 0, and its attempt_no how many they are
) returns table (ordinal int4, verdict text, state int2, due_at timestamptz, attempt_no int4)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    -- Every function that an expression names costs a call some two thousand instructions, whether it is reached or not.
    v_count int4 := cardinality(p_ids);
    -- Mostly all have succeeded and there is nothing more to say: then nothing more is looked at.
    v_is_plain boolean := p_is_terse and p_actions is null and p_delays_ms is null and p_error_codes is null
        and p_error_texts is null and p_wire_sends is null and p_seed is not null
        and v_count <= 10000 and cardinality(p_tokens) = v_count and cardinality(p_versions) = v_count;
    v_done pawl.done;
    v_row record;
    v_sends int4;
    v_is_mixed boolean; -- not all succeed, or not all say the same
begin
    if v_is_plain is not true then
        v_is_plain := (p_is_terse and p_actions is null or 0 = all (p_actions))
            and coalesce(array_remove(p_error_codes, null) || array_remove(p_error_texts, null), '{}') = '{}';
        if p_ids is not null and (v_count <= 10000 and cardinality(p_tokens) = v_count
            and cardinality(p_versions) = v_count
            and (p_is_terse and p_actions is null
                 or cardinality(p_actions) = v_count and 0 <= all (p_actions) and 3 >= all (p_actions))
            and (cardinality(p_wire_sends) = v_count and 0 <= all (p_wire_sends)
                 and 1000000 >= all (p_wire_sends)) is not false
            and (0 <= all (p_delays_ms) and 315360000000 >= all (p_delays_ms)) is not false and p_seed is not null
            and (v_is_plain or 2 >= all (p_actions)
                 and coalesce(array_remove(p_error_codes, null) || array_remove(p_error_texts, null), '{}') = '{}'
                 or pawl.are_ends_right(p_actions, p_delays_ms, p_error_codes, p_error_texts))) is not true then
            perform pawl.check_leases(p_ids, p_tokens, p_versions);
            perform pawl.check_settle(p_actions, p_delays_ms, p_error_codes, p_error_texts, v_count, p_seed,
                                      p_wire_sends);
        end if;
        -- What most of the rows say, mostly all of them: these can be written at once.
        v_sends := case when 1 = any (p_wire_sends) then 1 else p_wire_sends[1] end;
        v_is_mixed := not v_is_plain or (v_sends = all (p_wire_sends)) is not true and p_wire_sends is not null;
    end if;
    if v_is_plain and v_count = 1 then
        attempt_no := pawl.succeed_one(p_shard, p_worker, p_ids[1], p_tokens[1], p_versions[1], null, null, p_wire_sends[1]);
        if attempt_no is not null then
            ordinal := 1;
            verdict := 'OK';
            state := 2::int2;
            return next;
            return;
        end if;
    -- Most batches are all successes, each of a job of its own: one statement for all of them.
    elsif v_is_mixed is not true then
        v_done := pawl.succeed_batch(p_shard, p_worker, p_ids, p_tokens, p_versions, p_is_terse, v_sends);
        if p_is_terse and v_done.odd is null and cardinality(v_done.ids) = v_count then
            ordinal := 0;
            verdict := 'OK';
            state := 2::int2;
            attempt_no := v_count;
            return next;
            return;
        end if;
    elsif (select count(distinct i) from unnest(p_ids) i) = v_count then
        -- In a mixed batch the successes go first, unless a job is named twice: then the order of its rows decides.
        select s.* into v_done
        from (select array_agg(u.i) i, array_agg(u.t) t, array_agg(u.v) v
              from unnest(p_ids, p_tokens, p_versions, p_actions, p_error_codes, p_error_texts, p_wire_sends)
                   u(i, t, v, a, c, x, w)
              where u.a = 0 and u.c is null and u.x is null and u.w is not distinct from v_sends) q,
             pawl.succeed_batch(p_shard, p_worker, q.i, q.t, q.v, false, v_sends) s
        where q.i is not null;
    end if;
    if cardinality(v_done.ids) = v_count then
        if v_done.odd is not null then
            return query
                select r.o, 'OK', 2::int2, null::timestamptz, r.number
                from pawl.settle_rows(p_ids, p_tokens, p_versions, p_actions, p_reasons, p_delays_ms, p_error_codes,
                                      p_error_texts, p_wire_sends, v_done) r;
        else
            return query select o, 'OK', 2::int2, null::timestamptz, 1 from generate_series(1, v_count) o;
        end if;
        return;
    end if;
    -- All rows that may be waited for, in one order: two batches never wait for each other in a circle.
    perform from pawl.job j where j.shard = p_shard and j.id = any (p_ids) order by j.id for update;
    for v_row in select * from pawl.settle_rows(p_ids, p_tokens, p_versions, p_actions, p_reasons, p_delays_ms, p_error_codes,
                                                p_error_texts, p_wire_sends, v_done)
    loop
        ordinal := v_row.o;
        if v_row.number is not null then
            verdict := 'OK';
            state := 2;
            due_at := null;
            attempt_no := v_row.number;
        else
            select s.verdict, s.state, s.due_at, s.attempt_no into verdict, state, due_at, attempt_no
            from pawl.settle_one(p_shard, p_worker, v_row.i, v_row.t, v_row.v, v_row.a, coalesce(v_row.r, 0::int2), v_row.d,
                                 v_row.c, v_row.x, p_seed, v_row.w) s;
        end if;
        return next;
    end loop;
end $$;

-- The rows of a batch in their order, those of jobs that succeeded already with the number of its ledger row; but not where a job
-- is named more than once: not all of its rows need be the holder's, and settle_one() asks the ledger about each.
create function pawl.settle_rows(p_ids uuid[], p_tokens uuid[], p_versions int4[], p_actions int2[], p_reasons int2[],
                                 p_delays_ms int8[], p_error_codes text[], p_error_texts text[],
                                 p_wire_sends int4[], p_done pawl.done)
returns table (o int4, i uuid, t uuid, v int4, a int2, r int2, d int8, c text, x text, w int4, number int4)
language plpgsql set enable_nestloop = off as $$
#variable_conflict use_column
begin
    return query
        select u.o::int4, u.i, u.t, u.v, coalesce(u.a, 0::int2), u.r, u.d, u.c, u.x, u.w,
               case when n.i is not null and count(*) over (partition by u.i) = 1 then coalesce(d.number, 1) end
        from unnest(p_ids, p_tokens, p_versions, p_actions, p_reasons, p_delays_ms, p_error_codes, p_error_texts,
                    p_wire_sends)
             with ordinality u(i, t, v, a, r, d, c, x, w, o)
        left join unnest(p_done.ids) n(i) on n.i = u.i left join unnest(p_done.odd) d on d.id = u.i
        order by u.o;
end $$;

-- Writes the ledger rows of jobs of several lines that succeeded together: of each line one stands for the others. A full join, since
-- that is never done by nested loops, which would copy the list for each job, and be slow for jobs of many lines: every list finds
-- its job.
create function pawl.write_lines(p_shard int4, p_worker text, p_gone pawl.gone[], p_now timestamptz, p_wire_sends int4) returns void
language plpgsql as $$
begin
    with gone as materialized (select g.* from unnest(p_gone) g),
    lines as materialized (select (array_agg(g.id))[1] first_id, array_agg(g.id) ids from gone g group by g.line_id)
    insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, token_digest,
                              started_at, finished_at, created_at, payload_len, priority, retries, lost_leases, max_retries,
                              wire_sends, worker, ordering_key, batch, others)
    select p_shard, g.line_id, g.id, g.number, g.lease_version, 0, 0, 0, pawl.token_digest(g.lease_token), g.claimed_at, p_now,
           g.created_at, g.payload_len, g.priority, g.retries, g.lost_leases, g.max_retries, p_wire_sends, p_worker,
           g.ordering_key, cardinality(l.ids), nullif(l.ids[2 :], '{}')
    from gone g full join lines l on l.first_id = g.id;
end $$;

-- Succeeds jobs under their leases, all in one statement; gives those that were. None of them where the number of a ledger row is
-- taken, because somebody has changed `attempts` by hand: settle_one() puts that right. The block costs each call what a
-- look at the ledger would cost each job.
create function pawl.succeed_batch(p_shard int4, p_worker text, p_ids uuid[], p_tokens uuid[], p_versions int4[],
                                   p_is_sorted boolean, -- by the ids, and lists as they usually are: where not, that is found out
                                   p_wire_sends int4) returns pawl.done
language plpgsql as $$
declare
    v_now timestamptz := clock_timestamp();
    v_held pawl.held;
    v_done pawl.done;
    v_is_late boolean;
    v_unwritten pawl.gone[];
begin
    if p_is_sorted then
        v_held := row (p_ids, p_tokens, p_versions, case when p_versions[1] = all (p_versions) then p_versions[1] end);
    else
        select array_agg(u.i order by u.i, u.o), array_agg(u.t order by u.i, u.o), array_agg(u.v order by u.i, u.o), null
        into v_held
        from unnest(p_ids, p_tokens, p_versions) with ordinality u(i, t, v, o) where u.i is not null;
    end if;
    begin
        with gone as (
            delete from pawl.job j
            where j.shard = p_shard and j.id = any (p_ids) and j.state = 1 and j.claimed_by = p_worker
              and j.lease_expires_at > v_now and j.attempts between 0 and 1000000000
              and j.id = v_held.ids[width_bucket(j.id, v_held.ids)]
              and j.lease_token = v_held.tokens[width_bucket(j.id, v_held.ids)]
              and j.lease_version = coalesce(v_held.version, v_held.versions[width_bucket(j.id, v_held.ids)])
            -- First what is read more than once: a row is taken apart from its beginning.
            returning j.lease_expires_at, j.id, j.line_id, j.fence, j.attempts + 1 number, j.ordering_key, j.lease_version,
                      j.lease_token, j.claimed_at, j.created_at, octet_length(j.payload) payload_len, j.priority, j.retries,
                      j.lost_leases, j.max_retries),
        -- What has to be known of all before the first is written: one stands for the others, if all are of one line, and mostly
        -- they are. The statement may have waited for a row: judges again by the clock as it is with all of them locked (RES-3),
        -- which is when they have been collected.
        sums as materialized (
            select array_agg(g.id) ids, (array_agg(g.id))[1] first_id, min(g.lease_expires_at) <= clock_timestamp() is_late,
                   array_agg(row (g.id, g.number, g.line_id, g.ordering_key, g.fence)::pawl.odd)
                       filter (where g.fence is not null or g.number > 1) odd,
                   case when min(g.line_id) <> max(g.line_id) then array(
                       select row (o.id, o.line_id, o.number, o.ordering_key, o.lease_version, o.lease_token, o.claimed_at,
                                   o.created_at, o.payload_len, o.priority, o.retries, o.lost_leases, o.max_retries)::pawl.gone
                       from gone o) end unwritten
            from gone g),
        written as (
            insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by,
                                      token_digest, started_at, finished_at, created_at, payload_len, priority, retries,
                                      lost_leases, max_retries, wire_sends, worker, ordering_key, batch, others)
            select p_shard, g.line_id, g.id, g.number, g.lease_version, 0, 0, 0, pawl.token_digest(g.lease_token),
                   g.claimed_at, v_now, g.created_at, g.payload_len, g.priority, g.retries, g.lost_leases, g.max_retries,
                   p_wire_sends, p_worker, g.ordering_key, case when g.id = s.first_id then cardinality(s.ids) end,
                   case when g.id = s.first_id then nullif(s.ids[2 :], '{}') end
            from sums s cross join gone g where s.unwritten is null)
        select s.ids, s.odd, s.is_late, s.unwritten into v_done.ids, v_done.odd, v_is_late, v_unwritten from sums s;
        if v_unwritten is not null then
            perform pawl.write_lines(p_shard, p_worker, v_unwritten, v_now, p_wire_sends);
        end if;
    -- The last two: lists that width_bucket() does not take.
    exception when unique_violation or null_value_not_allowed or array_subscript_error then
        v_done := null;
    end;
    if v_is_late or v_done.odd is not null or v_done.ids is null then
        if v_is_late then
            raise exception 'PAWL_AGAIN' using errcode = '40001';
        end if;
        if v_done.ids is null and p_is_sorted then
            return pawl.succeed_batch(p_shard, p_worker, p_ids, p_tokens, p_versions, false, p_wire_sends);
        end if;
        perform pawl.let_next(p_shard, array_agg(o.line_id), array_agg(o.ordering_key), array_agg(o.id))
        from unnest(v_done.odd) o where o.fence is not null having count(*) > 0;
        v_done.odd := (select array_agg(o) from unnest(v_done.odd) o where o.number > 1);
    end if;
    return v_done;
end $$;

-- Succeeds one job under its lease; gives the number of its ledger row, or NULL where it has not: the lease is not valid, or the
-- number is taken. Small statements, and no block that would be a transaction of its own: of one job, most of the price is their
-- making.
create function pawl.succeed_one(
    p_shard int4, p_worker text, p_id uuid, p_token uuid, p_version int4, p_error_code text, p_error_text text, p_wire_sends int4,
    p_now timestamptz default null, -- the caller has locked the job before; NULL: it has not, and nobody has looked
    p_number int4 default null      -- NULL: as stands on the job
) returns int4
language plpgsql as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_expires_at timestamptz;
    v_claimed_at timestamptz;
    v_created_at timestamptz;
    v_line int4;
    v_number int4;
    v_payload_len int4;
    v_priority int2;
    v_retries int2;
    v_lost_leases int2;
    v_max_retries int2;
    v_fence int8;
    v_key text;
begin
    delete from pawl.job j
    where j.shard = p_shard and j.id = p_id and j.state = 1 and j.claimed_by = p_worker and j.lease_token = p_token
      and j.lease_version = p_version and j.lease_expires_at > v_now
      and (p_number is not null or j.attempts between 0 and 1000000000 and (
          select true from pawl.attempt a where a.shard = p_shard and a.job_id = p_id and a.attempt_no = j.attempts + 1) is null)
    returning j.lease_expires_at, j.claimed_at, j.created_at, j.line_id, coalesce(p_number, j.attempts + 1),
              octet_length(j.payload), j.priority, j.retries, j.lost_leases, j.max_retries, j.fence, j.ordering_key
    into v_expires_at, v_claimed_at, v_created_at, v_line, v_number,
         v_payload_len, v_priority, v_retries, v_lost_leases, v_max_retries, v_fence, v_key;
    if not found then
        return null;
    end if;
    if p_now is null and v_expires_at <= clock_timestamp() then
        raise exception 'PAWL_AGAIN' using errcode = '40001'; -- it has waited for the row: see succeed_batch()
    end if;
    insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, token_digest,
                              started_at, finished_at, created_at, payload_len, priority, retries, lost_leases,
                              max_retries, wire_sends, worker, error_code, error_text, ordering_key)
    values (p_shard, v_line, p_id, v_number, p_version, 0, 0, 0, pawl.token_digest(p_token), v_claimed_at, v_now,
            v_created_at, v_payload_len, v_priority, v_retries, v_lost_leases, v_max_retries, p_wire_sends, p_worker,
            p_error_code, p_error_text, v_key);
    if v_key is not null or v_fence is not null then
        perform pawl.let_next(p_shard, array[v_line], array[v_key], array[p_id]);
    end if;
    return v_number;
end $$;

-- Settles one job; see settle_batch.
create function pawl.settle_one(p_shard int4, p_worker text, p_id uuid, p_token uuid, p_version int4, p_action int2,
                                p_reason int2, p_delay_ms int8, p_error_code text, p_error_text text, p_seed bytea,
                                p_wire_sends int4, out verdict text, out state int2, out due_at timestamptz, out attempt_no int4)
language plpgsql as $$
declare
    v_job pawl.job;
    v_queue pawl.queue;
    v_now timestamptz;
    v_reason int2 := p_reason;
    v_outcome int2 := 2;
begin
    select * into v_job from pawl.job j where j.shard = p_shard and j.id = p_id for update;
    v_now := clock_timestamp(); -- the row is locked
    select * into v_job from pawl.job j
    where j.shard = p_shard and j.id = p_id and j.state = 1 and j.claimed_by = p_worker and j.lease_token = p_token
      and j.lease_version = p_version and j.lease_expires_at > v_now;
    if not found then
        select r.verdict, r.state, r.attempt_no into verdict, state, attempt_no
        from pawl.settle_replay(p_shard, p_worker, p_id, p_token, p_version, p_action) r;
        return;
    end if;
    verdict := 'OK';
    if p_action = 0 then
        state := 2;
        attempt_no := pawl.succeed_one(p_shard, p_worker, p_id, p_token, p_version, p_error_code, p_error_text, p_wire_sends,
                                       v_now, pawl.true_attempts(v_job) + 1);
        return;
    end if;
    v_queue := pawl.queue_of(v_job.line_id);
    v_job.lost_in_a_row := 0;
    state := 3;
    if p_action = 2 then
        v_reason := case when p_reason = 9 and v_job.is_cancel_asked then 9 else 3 end;
    elsif v_job.is_cancel_asked then
        v_reason := 9;
    elsif p_action = 1 and v_job.retries >= coalesce(v_job.max_retries, v_queue.max_retries) then
        v_reason := 2;
    else
        state := 0;
        v_outcome := 1;
        if p_action = 1 then
            v_reason := case when p_reason = 4 then 4 else 1 end;
            due_at := v_now + pawl.ms(coalesce(p_delay_ms, pawl.backoff_ms(p_seed, p_id,
                coalesce(v_job.backoff_base_ms, v_queue.backoff_base_ms),
                coalesce(v_job.backoff_max_ms, v_queue.backoff_max_ms), v_job.retries)));
            v_job.retries := v_job.retries + 1;
        else
            v_reason := case when p_reason = 6 then 6 else 5 end;
            due_at := v_now + pawl.ms(p_delay_ms);
        end if;
    end if;
    attempt_no := pawl.write_row(v_job, v_outcome, v_reason, 0::int2, v_now, p_error_code, p_error_text,
                                 p_wire_sends);
    if state = 0 then
        perform pawl.put_back(v_job, v_reason, due_at, 3::int2, true);
    else
        perform pawl.bury(v_job, v_reason, v_now);
    end if;
end $$;

-- What to answer where the lease shown is not valid: OK where this very settle was done before, else STALE or GONE.
create function pawl.settle_replay(p_shard int4, p_worker text, p_id uuid, p_token uuid, p_version int4, p_action int2,
                                   out verdict text, out state int2, out attempt_no int4)
language plpgsql as $$
declare
    v_row pawl.attempt;
    v_is_same boolean;
begin
    select * into v_row from pawl.attempt a
    where a.shard = p_shard and a.job_id = p_id and a.lease_version = p_version and a.worker = p_worker and a.ended_by = 0
      and a.token_digest = pawl.token_digest(p_token);
    v_is_same := found and case p_action
        when 0 then v_row.outcome = 0
        when 1 then (v_row.outcome = 1 and v_row.reason in (1, 4)) or (v_row.outcome = 2 and v_row.reason in (2, 9))
        when 2 then v_row.outcome = 2 and v_row.reason in (3, 9)
        else (v_row.outcome = 1 and v_row.reason in (5, 6)) or (v_row.outcome = 2 and v_row.reason = 9) end;
    if v_is_same then
        verdict := 'OK';
        state := case v_row.outcome when 0 then 2 when 1 then 0 else 3 end;
        attempt_no := v_row.attempt_no;
    elsif exists (select from pawl.job j where j.shard = p_shard and j.id = p_id)
       or exists (select from pawl.attempt a where a.shard = p_shard and a.job_id = p_id) then
        verdict := 'STALE';
    else
        verdict := 'GONE';
    end if;
end $$;
