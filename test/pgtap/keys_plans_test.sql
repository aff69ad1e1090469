-- SPDX-License-Identifier: Apache-2.0
-- What calls with ordering keys and bounds cost, in each state of statistics; counted in rows that were looked at, as in
-- plans_test.sql.
set synchronous_commit = off;
alter table pawl.job set (autovacuum_enabled = off);
alter table pawl.hold set (autovacuum_enabled = off);
alter table pawl.attempt set (autovacuum_enabled = off);

-- p_total jobs of p_keys keys, of which none comes twice in one call.
create function fill(p_queue text, p_total int4, p_keys int4, p_batch int4) returns void language plpgsql as $$
begin
    for i in 0 .. p_total / p_batch - 1 loop
        perform pawl.enqueue_batch(0, array_fill(p_queue, array[p_batch]), array(select gen_random_uuid() from generate_series(1, p_batch)),
            array_fill('x'::bytea, array[p_batch]),
            p_ordering_keys => array(select 'k' || n % p_keys from generate_series(i * p_batch, (i + 1) * p_batch - 1) n));
    end loop;
end $$;

create table cost (step text, what text, relation text, seq_rows int8, idx_rows int8, jobs int4);
create view looked_at as
    select t.relname relation, t.seq_tup_read seq_rows, t.idx_tup_fetch idx_rows
    from pg_stat_xact_user_tables t where t.schemaname = 'pawl' and t.relname in ('job', 'attempt', 'hold');
create table seen (relation text, seq_rows int8, idx_rows int8);
create function look() returns void language sql as $$
    delete from seen;
    insert into seen select * from looked_at;
$$;
create function spend(p_step text, p_what text, p_jobs int4) returns void language plpgsql as $$
begin
    insert into cost
    select p_step, p_what, l.relation, l.seq_rows - s.seq_rows, l.idx_rows - s.idx_rows, p_jobs
    from looked_at l join seen s using (relation);
    perform look();
end $$;

-- Claims of p_batch until nothing comes, each settled; gives how many jobs. Each in a transaction of its own.
create procedure drain(p_step text, p_queue text, p_batch int4, p_max int4, inout done int4 default 0) language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
begin
    loop
        perform look();
        select array_agg(c.id), array_agg(c.lease_token), array_agg(c.lease_version) into v_ids, v_tokens, v_versions
        from pawl.claim_batch(0, 'w', array[p_queue], array[p_batch], '{null}', p_batch, 1 << 30, sha256('0')) c;
        exit when v_ids is null;
        perform spend(p_step, 'claim', cardinality(v_ids));
        commit;
        perform count(*) from pawl.settle_batch(0, 'w', v_ids, v_tokens, v_versions, array_fill(0::int2, array[cardinality(v_ids)]), null, null, null, null, '\x00');
        perform spend(p_step, 'settle', cardinality(v_ids));
        commit;
        done := done + cardinality(v_ids);
        exit when done >= p_max;
    end loop;
end $$;

-- Four jobs of each of 100 keys, in calls of 100; then in one call, so that most are parked from the start.
create procedure life(p_step text, p_keys int4) language plpgsql as $$
declare
    v_done int4 := 0;
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
begin
    perform look();
    perform fill('q', 4 * p_keys, p_keys, p_keys);
    perform spend(p_step, 'enqueue', 4 * p_keys);
    commit;
    call drain(p_step, 'q', p_keys, 100000, v_done);
    perform look();
    perform fill('q', 4 * p_keys, p_keys, 4 * p_keys);
    perform spend(p_step, 'enqueue', 4 * p_keys);
    commit;
    call drain(p_step, 'q', p_keys / 2, 100000, v_done);
    perform fill('q', 4 * p_keys, p_keys, p_keys);
    commit;
    -- All at once: of each key three are parked.
    perform look();
    perform count(*) from pawl.claim_batch(0, 'x', '{q}', array[4 * p_keys], '{null}', 4 * p_keys, 1 << 30, sha256('0'));
    perform spend(p_step, 'park', 4 * p_keys);
    commit;
    v_ids := array(select id from pawl.job where line_id = (select queue_id * 4096 from pawl.queue where name = 'q') and lane = 2 order by id limit p_keys);
    perform look();
    perform count(*) from pawl.cancel_batch(0, v_ids);
    perform spend(p_step, 'cancel', p_keys);
    commit;
    -- All holds are left vacant: the next claim fills them.
    update pawl.hold set job_id = null where line_id = (select queue_id * 4096 from pawl.queue where name = 'q') and ordering_key <> 'stuck';
    perform look();
    perform count(*) from pawl.claim_batch(0, 'y', '{q}', array[p_keys], '{null}', p_keys, 1 << 30, sha256('0'));
    perform spend(p_step, 'fill', p_keys);
    commit;
    -- The whole line once, and whoever is parked in it.
    delete from pawl.sweep where kind = 1;
    v_done := (select count(*) from pawl.job);
    perform look();
    perform count(*) from pawl.reap(0, 1000, sha256('0'));
    perform spend(p_step, 'reap', v_done / 10); -- each of them a few times, and not each for each
    commit;
    select array_agg(id), array_agg(lease_token), array_agg(lease_version) into v_ids, v_tokens, v_versions from pawl.job where claimed_by = 'x';
    perform look();
    perform count(*) from pawl.release_batch(0, 'x', v_ids, v_tokens, v_versions);
    perform spend(p_step, 'release', cardinality(v_ids));
    commit;
    -- Of a call for one key, the first is refused: the second answers for the others.
    perform look();
    perform count(*) from pawl.enqueue_batch(0, array_fill('q'::text, array[p_keys]), v_ids[1] || array(select gen_random_uuid() from generate_series(2, p_keys)),
        array_fill('x'::bytea, array[p_keys]), p_ordering_keys => array_fill('one'::text, array[p_keys]));
    perform spend(p_step, 'unpark', p_keys);
    commit;
    delete from pawl.job where line_id = (select queue_id * 4096 from pawl.queue where name = 'q');
    delete from pawl.hold where line_id = (select queue_id * 4096 from pawl.queue where name = 'q');
    commit;
    -- A bound, of which half is in use.
    perform fill('bound', 2 * p_keys, 2 * p_keys, p_keys);
    perform pawl.queue_set('bound', 30000, null, 3, 10, 500, 30000, null, null, p_keys);
    perform count(*) from pawl.claim_batch(0, 'x', '{bound}', array[p_keys / 2], '{600000}', p_keys / 2, 1 << 30, sha256('0'));
    commit;
    perform count(*) from pawl.claim_batch(0, 'x', '{bound}', array[1], '{600000}', 1, 1 << 30, sha256('0'));
    commit;
    perform look();
    perform count(*) from pawl.claim_batch(0, 'x', '{bound}', array[p_keys], '{600000}', p_keys, 1 << 30, sha256('0'));
    perform spend(p_step, 'bounded claim', p_keys);
    commit;
    delete from pawl.job where line_id = (select queue_id * 4096 from pawl.queue where name = 'bound');
    delete from pawl.hold where line_id = (select queue_id * 4096 from pawl.queue where name = 'bound');
    commit;
end $$;

-- Beside all this: a key with 5,000 jobs behind a first one that runs, and many that wait in another queue.
create procedure furnish() language plpgsql as $$
begin
    perform fill('q', 5000, 1, 100);
    perform count(*) from pawl.claim_batch(0, 'stuck', '{q}', '{10}', '{86400000}', 10, 1 << 30, sha256('0'));
    perform fill('other', 5000, 50, 100);
    update pawl.job set ordering_key = 'stuck' where ordering_key = 'k0' and line_id = (select queue_id * 4096 from pawl.queue where name = 'q');
    update pawl.hold set ordering_key = 'stuck' where ordering_key = 'k0' and line_id = (select queue_id * 4096 from pawl.queue where name = 'q');
    commit;
end $$;
create procedure empty() language plpgsql as $$
begin
    alter table pawl.attempt disable trigger all;
    truncate pawl.job, pawl.hold, pawl.mark, pawl.sweep, pawl.attempt, pawl.dead_letter;
    alter table pawl.attempt enable trigger all;
    commit;
end $$;

call life('nothing', 20);
call life('nothing', 20);
call life('nothing', 20);
call life('nothing', 20);
call life('nothing', 20);
call life('nothing', 20);
call empty();
call furnish();
delete from cost;
call life('planned on an empty table', 100);
discard plans;
\connect -
set synchronous_commit = off;
call empty();
call furnish();
call life('never analysed', 100);
call empty();
vacuum analyze pawl.job, pawl.hold, pawl.attempt;
\connect -
call furnish();
call life('stale', 100);
analyze pawl.job, pawl.hold, pawl.attempt;
\connect -
call life('full', 100);
do $$ declare f regprocedure; begin
    for f in select oid from pg_proc where pronamespace = 'pawl'::regnamespace and array_to_string(proconfig, ',') ~ 'force_generic_plan' loop
        execute format('alter function %s reset plan_cache_mode', f);
    end loop;
end $$;
\connect -
call life('auto', 100);
call life('auto', 100);

select no_plan();
select is((select string_agg(distinct what, ', ' order by what) from cost), 'bounded claim, cancel, claim, enqueue, fill, park, reap, release, settle, unpark', 'each is measured');
select is((select string_agg(step || ': ' || what || ' ' || relation || ' ' || seq_rows, E'\n') from cost where seq_rows > 0), null, 'no call reads a whole table');
select is((select string_agg(step || ': ' || what || ' ' || relation || ' ' || idx_rows || ' rows for ' || jobs, E'\n') from cost where idx_rows > 40 * jobs + 300), null, 'no call reads more rows than it is about');
select diag(what || ': ' || max(round(idx_rows::numeric / jobs, 1)) || ' rows of ' || relation || ' for a job at most') from cost where idx_rows > 0 group by what, relation order by what;

-- One key, whose jobs wait where they have arrived: each end looks at the next, and not at all of them.
call empty();
select fill('q', 3000, 1, 1);
delete from cost;
call drain('one key', 'q', 1, 50);
select ok(max(idx_rows) < 50, 'a settle beside 3,000 of its key looks at ' || max(idx_rows) || ' rows of ' || relation || ' at most') from cost where what = 'settle' group by relation order by relation;
select ok(sum(idx_rows) < 20 * 3000, 'claims that park 3,000 look at ' || sum(idx_rows) || ' rows of ' || relation || ' in all') from cost where what = 'claim' group by relation order by relation;
select * from finish();
