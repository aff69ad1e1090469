-- SPDX-License-Identifier: Apache-2.0
-- What calls cost, in each state of statistics: full, never taken, stale, planned on an empty table; with plans as the functions
-- have them, generic, and chosen by the server. Counted in rows that were looked at, not in time.
set synchronous_commit = off;
alter table pawl.job set (autovacuum_enabled = off);
alter table pawl.attempt set (autovacuum_enabled = off);
alter table pawl.dead_letter set (autovacuum_enabled = off);

create function fill(p_total int4, p_batch int4, p_delay_ms int8 default 0) returns void language plpgsql as $$
begin
    for i in 1 .. p_total / p_batch loop
        perform pawl.enqueue_batch(0, array_fill('q'::text, array[p_batch]),
            array(select gen_random_uuid() from generate_series(1, p_batch)), array_fill('x'::bytea, array[p_batch]),
            p_delays_ms => array_fill(p_delay_ms, array[p_batch]));
    end loop;
end $$;
-- Each batch in a transaction of its own, as clients do it; gives how many were done.
create procedure drain(p_batch int4, p_max int4, inout done int4 default 0) language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
begin
    loop
        select array_agg(c.id), array_agg(c.lease_token), array_agg(c.lease_version) into v_ids, v_tokens, v_versions
        from pawl.claim_batch(0, 'w', '{q}', array[p_batch], '{null}', p_batch, 1 << 30, sha256('0')) c;
        commit;
        exit when v_ids is null;
        done := done + (select count(*) from pawl.settle_batch(0, 'w', v_ids, v_tokens, v_versions,
            array_fill(0::int2, array[cardinality(v_ids)]), null, null, null, null, '\x00') where verdict = 'OK');
        commit;
        exit when done >= p_max;
    end loop;
end $$;

create table cost (step text, what text, relation text, seq_rows int8, idx_rows int8, jobs int4);
-- What this session has looked at and not yet handed in, which it does only between statements of its client: so within one CALL
-- the numbers only rise, through all of its transactions.
create view looked_at as
    select t.relname relation, t.seq_tup_read seq_rows, t.idx_tup_fetch idx_rows
    from pg_stat_xact_user_tables t where t.schemaname = 'pawl' and t.relname in ('job', 'attempt', 'dead_letter');
create table seen (relation text, seq_rows int8, idx_rows int8);
create function look() returns void language sql as $$
    delete from seen;
    insert into seen select * from looked_at;
$$;
-- Notes what a call has cost: rows of each table that were read since the last look, by whole scans and by indexes.
create function spend(p_step text, p_what text, p_jobs int4) returns void language plpgsql as $$
begin
    insert into cost
    select p_step, p_what, l.relation, l.seq_rows - s.seq_rows, l.idx_rows - s.idx_rows, p_jobs
    from looked_at l join seen s using (relation);
    perform look();
end $$;

-- Lets jobs succeed as a whole. Where the machine was held up it is asked again.
create procedure succeed(p_step text, p_what text, p_ids uuid[], p_tokens uuid[], p_places tid[]) language plpgsql as $$
begin
    for i in 1 .. 20 loop
        perform look();
        if pawl.succeed_all('w', p_ids, p_tokens, 1, null, p_places) = cardinality(p_ids) then
            perform spend(p_step, p_what, cardinality(p_ids));
            exit;
        end if;
    end loop;
    commit;
end $$;
-- Claims p_jobs by claim_few(), where it does: gives whether it did. Then all of them succeed: three are looked for, the others found at their places.
create procedure few(p_step text, p_jobs int4, inout is_done boolean) language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_places tid[];
begin
    perform fill(p_jobs, p_jobs);
    commit;
    perform look();
    select array_agg(c.id order by c.id), array_agg(c.lease_token order by c.id), array_agg(c.place order by c.id) into v_ids, v_tokens, v_places
    from pawl.claim_few('w', 'q', p_jobs, null, 1 << 30, array(select gen_random_uuid() from generate_series(1, p_jobs))) c where c.id is not null;
    is_done := v_ids is not null;
    if is_done then
        perform spend(p_step, 'claim few', p_jobs);
    else
        select array_agg(c.id order by c.id), array_agg(c.lease_token order by c.id), array_agg(c.place order by c.id) into v_ids, v_tokens, v_places
        from pawl.claim_lines('{0}', 'w', '{q}', array[p_jobs], '{null}', p_jobs, 1 << 30, sha256('0')) c;
    end if;
    commit;
    call succeed(p_step, 'succeed', v_ids[1:3], v_tokens[1:3], null);
    call succeed(p_step, 'succeed at places', v_ids[4:], v_tokens[4:], v_places[4:]);
end $$;

-- One life of p_jobs jobs, each call in a transaction of its own.
create procedure life(p_step text, p_jobs int4) language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
    v_half int4 := p_jobs / 2;
    v_done int4 := 0;
    v_is_done boolean;
begin
    call few(p_step, 10, v_is_done); -- marks may be old, and leases to be looked for
    if not v_is_done then
        call few(p_step, 10, v_is_done);
    end if;
    if v_is_done is not true then
        raise exception '%: a claim of a few is refused twice', p_step;
    end if;
    perform look();
    perform fill(p_jobs, p_jobs);
    perform spend(p_step, 'enqueue', p_jobs);
    commit;
    select array_agg(c.id), array_agg(c.lease_token), array_agg(c.lease_version) into v_ids, v_tokens, v_versions
    from pawl.claim_batch(0, 'w', '{q}', array[p_jobs], '{null}', p_jobs, 1 << 30, sha256('0')) c;
    perform spend(p_step, 'claim', p_jobs);
    commit;
    perform count(*) from pawl.renew_batch(0, 'w', v_ids, v_tokens, v_versions, null, null);
    perform spend(p_step, 'renew', p_jobs);
    commit;
    perform count(*) from pawl.release_batch(0, 'w', v_ids[1:10], v_tokens[1:10], v_versions[1:10]);
    perform spend(p_step, 'release', 10);
    commit;
    perform count(*) from pawl.settle_batch(0, 'w', v_ids[11:v_half], v_tokens[11:v_half], v_versions[11:v_half],
        array_fill(0::int2, array[v_half - 10]), null, null, null, null, '\x00');
    perform spend(p_step, 'settle', v_half - 10);
    commit;
    perform count(*) from pawl.settle_batch(0, 'w', v_ids[v_half + 1 : p_jobs - 10], v_tokens[v_half + 1 : p_jobs - 10], v_versions[v_half + 1 : p_jobs - 10],
        array_fill(2::int2, array[p_jobs - 10 - v_half]), null, null, null, null, '\x00');
    perform spend(p_step, 'fail', p_jobs - 10 - v_half);
    commit;
    perform count(*) from pawl.settle_batch(0, 'w', v_ids[11:v_half], v_tokens[11:v_half], v_versions[11:v_half],
        array_fill(0::int2, array[v_half - 10]), null, null, null, null, '\x00');
    perform spend(p_step, 'settle again', v_half - 10);
    commit;
    perform count(*) from pawl.enqueue_batch(0, array_fill('q'::text, array[v_half - 10]), v_ids[11:v_half], array_fill('x'::bytea, array[v_half - 10]));
    perform spend(p_step, 'enqueue again', v_half - 10);
    commit;
    perform count(*) from pawl.redrive_batch(0, v_ids[v_half + 1 : v_half + 10]);
    perform spend(p_step, 'redrive', 10);
    commit;
    perform count(*) from pawl.cancel_batch(0, v_ids[v_half + 1 : v_half + 10]);
    perform spend(p_step, 'cancel', 10);
    commit;
    perform count(*) from pawl.discard_batch(0, v_ids[v_half + 1 : v_half + 10]);
    perform spend(p_step, 'discard', 10);
    commit;
    perform pawl.get_job(0, v_ids[i]), pawl.list_attempts(0, v_ids[i], 0, 10) from generate_series(1, 50) i;
    perform spend(p_step, 'get', 50);
    commit;
    perform count(*) from pawl.list_jobs(null, 0, 0::int2, null, null, 50);
    perform spend(p_step, 'list', 50);
    commit;
    -- The last ten expire; claims and the reaper have looked through the line a moment ago.
    update pawl.job set lease_expires_at = clock_timestamp() - interval '1 s' where id = any (v_ids[p_jobs - 9 :]);
    perform look();
    commit;
    perform count(*) from pawl.reap(0, 100, '\x00');
    perform spend(p_step, 'reap', 10);
    commit;
    perform pawl.prune(0, 10);
    perform spend(p_step, 'prune', 10);
    commit;
    call drain(100, 100000, v_done);
    delete from pawl.job where lane <> 3;
    commit;
end $$;

-- Beside all this: jobs that wait for their time, and a history, some of it old enough to go. The reaper has been here.
create procedure furnish() language plpgsql as $$
declare
    v_done int4 := 0;
begin
    perform fill(5000, 1000, 3600000);
    perform fill(3000, 1000);
    call drain(100, 3000, v_done);
    perform count(*) from pawl.reap(0, 100, '\x00');
    alter table pawl.attempt disable trigger all;
    update pawl.attempt set finished_at = finished_at - interval '30 days' where ctid in (select ctid from pawl.attempt limit 1000);
    alter table pawl.attempt enable trigger all;
    commit;
end $$;
create procedure empty() language plpgsql as $$
begin
    alter table pawl.attempt disable trigger all;
    truncate pawl.job, pawl.mark, pawl.sweep, pawl.attempt, pawl.dead_letter;
    alter table pawl.attempt enable trigger all;
    commit;
end $$;

-- Planned on empty tables: every function's statements are planned, and kept, before there is anything.
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call empty();
call furnish();
call life('planned on an empty table', 300);
call life('planned on an empty table', 300);
discard plans;
\connect -
set synchronous_commit = off;
call life('never analysed', 300);
call empty();
vacuum analyze pawl.job, pawl.attempt, pawl.dead_letter;
\connect -
call furnish();
call life('stale', 300);
analyze pawl.job, pawl.attempt, pawl.dead_letter;
\connect -
call life('full', 300);
call life('full', 300);
-- Whatever plans a session asks for, where the functions do not say it themselves.
do $$ declare f regprocedure; begin
    for f in select oid from pg_proc where pronamespace = 'pawl'::regnamespace and array_to_string(proconfig, ',') ~ 'force_generic_plan' loop
        execute format('alter function %s reset plan_cache_mode', f);
    end loop;
end $$;
\connect -
call life('auto', 300);
call life('auto', 300);
call life('auto', 300);
set plan_cache_mode = force_generic_plan;
call life('generic', 300);
\connect -
call empty();
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call life('nothing', 40);
call furnish();
call life('auto, planned on an empty table', 300);

select no_plan();
select is((select string_agg(distinct what, ', ' order by what) from cost), 'cancel, claim, claim few, discard, enqueue, enqueue again, fail, get, list, prune, reap, redrive, release, renew, settle, settle again, succeed, succeed at places', 'each function is measured');
select is((select string_agg(step || ': ' || relation || ' ' || seq_rows || ' ' || idx_rows, E'\n') from cost where what = 'succeed at places' and (seq_rows > 0 or idx_rows > 0)), null,
          'jobs that succeed at their places are not looked for, in any state of statistics');
select is((select string_agg(distinct s.step, ', ') from cost s where not exists (select from cost c where c.step = s.step and c.what = 'succeed at places' and c.relation = 'job')), null, 'of which there is none without');
select is((select string_agg(step || ': ' || what || ' ' || relation || ' ' || seq_rows, E'\n') from cost where step <> 'nothing' and seq_rows > 0), null, 'no call reads a whole table');
-- A call costs what it is about: not the 5,000 that are delayed, not the history of 3,000.
select is((select string_agg(step || ': ' || what || ' ' || relation || ' ' || idx_rows || ' rows for ' || jobs, E'\n') from cost
           where step <> 'nothing' and idx_rows > 12 * jobs + case what when 'reap' then 200 else 0 end), null, 'no call reads more rows than it is about');
select diag(what || ': ' || max(round(idx_rows::numeric / jobs, 1)) || ' rows of ' || relation || ' for a job at most') from cost where step <> 'nothing' and idx_rows > 0 group by what, relation order by what;

-- A claim costs what it returns: not what is delayed, not what is in flight, not what is dead.
call empty();
select fill(5000, 1000, 3600000);
select fill(200, 100);
create procedure drain_counted(p_step text, p_batch int4, p_max int4) language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
    v_done int4 := 0;
begin
    while v_done < p_max loop
        perform look();
        select array_agg(c.id), array_agg(c.lease_token), array_agg(c.lease_version) into v_ids, v_tokens, v_versions
        from pawl.claim_batch(0, 'w', '{q}', array[p_batch], '{null}', p_batch, 1 << 30, sha256('0')) c;
        perform spend(p_step, 'claim', p_batch);
        commit;
        perform count(*) from pawl.settle_batch(0, 'w', v_ids, v_tokens, v_versions, array_fill(0::int2, array[cardinality(v_ids)]), null, null, null, null, '\x00');
        commit;
        v_done := v_done + cardinality(v_ids);
    end loop;
end $$;
call drain_counted('delayed', 10, 200);
select ok(sum(idx_rows) < 10 * 200, 'beside 5,000 delayed jobs: ' || sum(idx_rows) || ' rows looked at for 200') from cost where step = 'delayed' and relation = 'job';
select fill(6000, 1000);
select count(*) from pawl.claim_batch(0, 'holder', '{q}', '{5000}', '{600000}', 5000, 1 << 30, sha256('0'));
select count(*) from pawl.claim_batch(0, 'holder', '{q}', '{1}', '{600000}', 1, 1 << 30, sha256('0'));
call drain_counted('held', 10, 200);
-- Twenty claims; one of them may have looked for expired leases, which is not done at each.
select ok(sum(idx_rows) < 10 * 200 + 3 * 6000, 'beside 5,000 in flight: ' || sum(idx_rows) || ' rows looked at for 200') from cost where step = 'held' and relation = 'job';

-- A few likewise.
create procedure few_counted(p_step text, p_times int4) language plpgsql as $$
declare
    v_is_done boolean;
begin
    for i in 1 .. p_times loop
        call few(p_step, 10, v_is_done);
    end loop;
end $$;
call few_counted('few, held', 20);
select ok(count(*) >= 15, count(*) || ' of 20 were claims of a few') from cost where step = 'few, held' and what = 'claim few' and relation = 'job';
select ok(max(idx_rows) < 10 * 20, 'beside 5,000 in flight and 5,000 delayed: ' || max(idx_rows) || ' rows looked at for 10') from cost where step = 'few, held' and relation = 'job';

-- large batches
call empty();
select fill(10000, 10000);
create temp table taken as select * from pawl.claim_batch(0, 'w', '{q}', '{10000}', '{600000}', 10000, 1 << 30, sha256('7'));
select is((select count(*) from taken), 10000::int8, 'a claim of 10,000');
select is((select count(*) from pawl.renew_batch(0, 'w', (select array_agg(id) from taken), (select array_agg(lease_token) from taken), (select array_agg(lease_version) from taken), null, null) where verdict = 'OK'), 10000::int8, 'a renewal of 10,000');
set statement_timeout = '60 s';
select is((select count(*) from pawl.settle_batch(0, 'w', (select array_agg(id order by lease_token) from taken), (select array_agg(lease_token order by lease_token) from taken), (select array_agg(lease_version) from taken),
    array_fill(0::int2, array[10000]), null, null, null, null, '\x00') where verdict = 'OK'), 10000::int8, 'a settle of 10,000, in any order');
select is((select count(*) from pawl.settle_batch(0, 'w', (select array_agg(id) from taken), (select array_agg(lease_token) from taken), (select array_agg(lease_version) from taken),
    array_fill(0::int2, array[10000]), null, null, null, null, '\x00') where verdict = 'OK'), 10000::int8, 'repeated: 10,000 answers from the ledger');
select * from finish();
