-- SPDX-License-Identifier: Apache-2.0
-- Rows of pawl.job that somebody has edited into states that no function leaves: each is refused, or repaired, or waits where it
-- can be seen; none is worked on twice, none makes a call fail, none holds up another job. Once as the table is, and once
-- without its constraints.
select no_plan();
\set rounds 8
set synchronous_commit = off;
set enable_seqscan = on;

-- ---- the edits

-- Each field of a lease, there or not, past or future: all of them with all others.
create table edit (n int4 generated always as identity, base text, change text);
insert into edit (base, change)
select b, format('state = %s, lease_token = %s, claimed_by = %s, lease_expires_at = %s, claimed_at = %s, run_until = %s, lane = %s, pos = case when %s = 3 then pawl.micros(next_attempt_at) else pos end', s, t, w, e, c, r, l, l)
from unnest('{Ready,held}'::text[]) b, generate_series(0, 1) s, unnest('{"null",lease_token,gen_random_uuid()}'::text[]) t,
     unnest('{"null",''w1''}'::text[]) w, unnest('{"null",now() - interval ''1 s'',now() + interval ''30 s''}'::text[]) e,
     unnest('{"null",now() - interval ''5 s''}'::text[]) c, unnest('{"null",now() - interval ''1 s'',now() + interval ''90 s''}'::text[]) r,
     unnest('{0,1,3}'::text[]) l;
-- Each other field at its odd values, in each state that a job can be in.
create table odd (field text, value text);
insert into odd
select f, v from unnest('{state,priority,lane,retries,lost_leases,lost_in_a_row,reason,max_retries}'::text[]) f,
     unnest('{-32768,-1,0,1,2,3,9,10,99,32767}'::text[]) v
union all
select f, v from unnest('{attempts,lease_version}'::text[]) f, unnest('{-2147483648,-1,0,1,2,3,1000,2147483646,2147483647}'::text[]) v
union all
select f, v from unnest('{pos,seq,lease_ms,run_ms,timeout_ms,backoff_base_ms,backoff_max_ms,key_seq,fence}'::text[]) f,
     unnest('{-9223372036854775808,-1,0,1,946080000001,9223372036854775807,"null"}'::text[]) v
union all
select f, v from unnest('{created_at,next_attempt_at,start_by,lease_expires_at,claimed_at,run_until,unstarted_until}'::text[]) f,
     unnest('{''-infinity'',''infinity'',''0044-03-15 00:00+00 BC'',''294276-12-31 00:00+00'',now() - interval ''1 h'',now() + interval ''1 h'',"null"}'::text[]) v
union all
select f, v from unnest('{is_started,is_cancel_asked}'::text[]) f, unnest('{true,false}'::text[]) v
union all
select 'claimed_by', v from unnest('{'''',''w2'',"null"}'::text[]) v
union all
select 'lease_token', v from unnest('{"null",gen_random_uuid()}'::text[]) v
union all
select 'payload', '''''' union all select 'dedupe_key', '''''' union all select 'ordering_key', 'id::text'
union all
select 'line_id', v from unnest('{-1,0,4095,4096 * 500000,4096 * 99,7}'::text[]) v
union all
select 'shard', v from unnest('{-1,1,7,4095,4096}'::text[]) v;
insert into edit (base, change)
select b, o.field || ' = ' || o.value from odd o, unnest('{Ready,back,later,held,expired,cancelled}'::text[]) b;
insert into edit (base, change) select b, 'shard = 7, line_id = line_id + 7' from unnest('{Ready,held,expired}'::text[]) b;
-- And two of them at a time, by chance, but always the same.
select setseed(0.42);
insert into edit (base, change)
select b, string_agg(field || ' = ' || value, ', ')
from (select (array['Ready', 'back', 'later', 'held', 'expired', 'cancelled'])[1 + i % 6] b, i, o.field, o.value,
             row_number() over (partition by i, o.field) n
      from generate_series(1, 600) i, lateral (select * from odd offset floor(random() * (select count(*) from odd) + 0 * i)::int8 limit 1) o
      union all
      select (array['Ready', 'back', 'later', 'held', 'expired', 'cancelled'])[1 + i % 6], i, o.field, o.value, 1
      from generate_series(1, 600) i, lateral (select * from odd offset floor(random() * (select count(*) from odd) + 0 * i)::int8 limit 1) o) x
group by b, i having count(distinct field) = count(*);

-- ---- the jobs

create table fuzz (id uuid primary key, base text, change text, is_refused boolean, token uuid, version int4);
create table good (id uuid primary key);
create table fault (call text, sqlstate text, message text);
create table claimed (id uuid, round int4, token uuid, version int4, is_ended boolean default false);
create table ok_settle (id uuid, verb text);

-- Runs a statement that gives a number; what goes wrong with it is noted, and nothing else.
create function try(p_sql text) returns int8 language plpgsql as $$
declare
    v_count int8;
    v_message text;
begin
    execute p_sql into v_count;
    return v_count;
exception when others then
    get stacked diagnostics v_message = pg_exception_context;
    insert into fault values (p_sql, sqlstate, sqlerrm || ' ' || v_message);
    return null;
end $$;

-- A job for each edit, in the state that it begins with, and one without an edit for every tenth.
create function make_jobs() returns void language plpgsql as $$
declare
    v_ids uuid[] := array(select gen_random_uuid() from edit);
begin
    truncate fuzz, good, fault, claimed, ok_settle;
    perform pawl.queue_set(q, 30000, null, 1, 3, 500, 30000, null, null) from unnest('{odd,odd2}'::text[]) q;
    insert into fuzz select v_ids[e.rank], e.base, e.change, false, null, null from (select *, row_number() over (order by n) rank from edit) e;
    perform pawl.enqueue_batch(0, array_fill('odd'::text, array[count(*)::int4]), array_agg(f.id), array_fill('x'::bytea, array[count(*)::int4]),
        p_delays_ms => array_agg(case when f.base = 'later' then 40000 else 0 end::int8)) from fuzz f where f.base in ('Ready', 'later');
    perform pawl.enqueue_batch(0, array_fill('odd2'::text, array[count(*)::int4]), array_agg(f.id), array_fill('x'::bytea, array[count(*)::int4]))
    from fuzz f where f.base not in ('Ready', 'later');
    with c as (select * from pawl.claim_batch(0, 'w1', '{odd2}', '{10000}', '{30000}', 10000, 1 << 30, sha256('1')))
    update fuzz f set token = c.lease_token, version = c.lease_version from c where c.id = f.id;
    perform pawl.release_batch(0, 'w1', array_agg(f.id), array_agg(f.token), array_agg(f.version)) from fuzz f where f.base = 'back';
    perform pawl.cancel_batch(0, array_agg(f.id)) from fuzz f where f.base = 'cancelled';
    update pawl.job set lease_expires_at = now() - interval '2 s' where id in (select id from fuzz where base = 'expired');
    insert into good select gen_random_uuid() from generate_series(1, 400);
    perform pawl.enqueue_batch(0, array_agg(case when n % 2 = 0 then 'odd' else 'odd2' end), array_agg(id), array_agg(''::bytea))
    from (select id, row_number() over () n from good) g;
end $$;

-- Makes the edits; those that the table refuses are noted.
create function edit_jobs() returns void language plpgsql as $$
declare
    v_row fuzz;
begin
    for v_row in select * from fuzz loop
        begin
            execute 'update pawl.job set ' || v_row.change || ' where id = $1' using v_row.id;
        exception when integrity_constraint_violation or data_exception then
            update fuzz set is_refused = true where id = v_row.id;
        end;
    end loop;
end $$;

-- ---- their lives

-- Those that somebody holds now, by the row itself.
create view held as
    select j.id, j.claimed_by, j.lease_token, j.lease_version from pawl.job j
    where j.state = 1 and j.lease_expires_at > clock_timestamp();

-- What whoever has claimed a job shows, in one call for all of them: succeed, retry, fail, snooze, renew or give back; or to have
-- succeeded, each as a batch of its own, and then two and two of them. Of those who claimed earlier too, who should have stopped
-- long ago. In the end all succeed.
create function settle_all(p_round int4) returns void language plpgsql as $$
declare
    v_before uuid[] := array(select id from held);
begin
    create temp table shown on commit drop as
        select f.id, 'w1' worker, f.token, f.version, case when p_round > 4 then 0 else abs(hashtext(f.id::text || p_round)) % 8 end verb from fuzz f where f.token is not null
        union all select c.id, 'w' || (2 + c.round), c.token, c.version, case when p_round > 4 then 0 else abs(hashtext(c.id::text || p_round)) % 8 end from claimed c
        where c.round < p_round or p_round > 5 or abs(hashtext(c.id::text || p_round)) % 5 > 0; -- of the rest the leases expire
    perform try(format($q$with x as (insert into ok_settle select s.id, 'settle' from (
        select array_agg(id order by id) ids, array_agg(token order by id) tokens, array_agg(version order by id) versions,
               array_agg((verb %% 4)::int2 order by id) actions, array_agg(case when verb %% 4 = 3 then 1000::int8 end order by id) delays
        from shown where worker = %L and verb < 6 and verb <> 4) a,
        pawl.settle_batch(0, %L, a.ids, a.tokens, a.versions, a.actions, null, a.delays, null, null, '\x02') r, unnest(a.ids) with ordinality s(id, o)
        where s.o = r.ordinal and r.verdict = 'OK' and a.ids is not null returning 1) select count(*) from x$q$, worker, worker)) from (select distinct worker from shown) w;
    perform try(format($q$with x as (insert into ok_settle select s.id, 'succeed' from shown s
        where s.worker = %L and s.verb = 4 and s.id::text < '8' and pawl.succeed_all(%L, array[s.id], array[s.token], s.version, 1) = 1 returning 1)
        select count(*) from x$q$, worker, worker)) from (select distinct worker from shown) w;
    perform try(format($q$with x as (insert into ok_settle select i, 'succeed' from (
        select array_agg(id order by id) ids, array_agg(token order by id) tokens, min(version) version
        from (select *, row_number() over (order by id) n from shown where worker = %L and verb = 4 and id::text >= '8') s group by (n - 1) / 2) a, unnest(a.ids) i
        where pawl.succeed_all(%L, a.ids, a.tokens, a.version, null) is not null and a.ids[1] is not null returning 1) select count(*) from x$q$, worker, worker))
    from (select distinct worker from shown) w;
    perform try(format($q$with x as (insert into ok_settle select s.id, 'renew' from (
        select array_agg(id order by id) ids, array_agg(token order by id) tokens, array_agg(version order by id) versions
        from shown where worker = %L and verb = 6) a,
        pawl.renew_batch(0, %L, a.ids, a.tokens, a.versions, array_fill(null::int8, array[cardinality(a.ids)]), array(select i %% 2 = 0 from generate_series(1, cardinality(a.ids)) i)) r,
        unnest(a.ids) with ordinality s(id, o)
        where s.o = r.ordinal and r.verdict = 'OK' and a.ids is not null returning 1) select count(*) from x$q$, worker, worker)) from (select distinct worker from shown) w;
    perform try(format($q$with x as (insert into ok_settle select s.id, 'release' from (
        select array_agg(id order by id) ids, array_agg(token order by id) tokens, array_agg(version order by id) versions
        from shown where worker = %L and verb = 7) a,
        pawl.release_batch(0, %L, a.ids, a.tokens, a.versions) r, unnest(a.ids) with ordinality s(id, o)
        where s.o = r.ordinal and r.verdict = 'OK' and a.ids is not null returning 1) select count(*) from x$q$, worker, worker)) from (select distinct worker from shown) w;
    -- Repeated, a settle may be answered OK by the ledger; but only what was held can be ended for the first time.
    insert into fault select 'OK without a lease: ' || o.verb, 'FUZZ0', o.id::text from ok_settle o
    where not o.id = any (v_before) and not exists (select from pawl.attempt a where a.job_id = o.id and a.ended_by = 0);
    truncate ok_settle;
    drop table shown;
end $$;

-- A claim by one more worker: nothing that is held, nothing twice.
create function claim_all(p_round int4) returns void language plpgsql as $$
declare
    v_held uuid[] := array(select id from held);
begin
    for i in 1 .. 2 loop
        perform try(format($q$with c as (select * from pawl.claim_batch(0, 'w%s', '{odd,odd2}', '{10000,10000}', '{30000,30000}', 10000, 1 << 30, sha256('%s'))),
            x as (insert into claimed select c.id, %s, c.lease_token, c.lease_version from c returning 1) select count(*) from x$q$, 2 + p_round, p_round * 2 + i, p_round));
    end loop;
    insert into fault select 'claimed although it is held', 'FUZZ1', c.id::text from claimed c where c.round = p_round and c.id = any (v_held);
    insert into fault select 'claimed twice in one round', 'FUZZ2', c.id::text from claimed c where c.round = p_round group by c.id having count(*) > 1;
end $$;

-- Everything that looks: nothing fails, and every row that is there is told.
create function look_at_all() returns void language plpgsql as $$
declare
    v_after uuid;
    v_last uuid;
    v_count int8 := 0;
    v_page int8;
begin
    loop
        select count(*), (array_agg(id order by id desc))[1] into v_page, v_last from pawl.list_jobs(null, 3, 0::int2, null, v_after, 1000);
        exit when v_page = 0;
        v_count := v_count + v_page;
        v_after := v_last;
    end loop;
    if v_count < (select count(*) from pawl.job where state in (0, 1)) then
        insert into fault values ('list_jobs leaves out rows', 'FUZZ3', v_count::text);
    end if;
exception when others then
    insert into fault values ('look', sqlstate, sqlerrm);
end $$;

create function one_round(p_round int4) returns void language plpgsql as $$
begin
    perform claim_all(p_round);
    perform settle_all(p_round);
    perform look_at_all();
    perform try($q$select count(*) from pawl.job j, pawl.get_job(j.shard, j.id) g$q$);
    perform try($q$select count(x::text) from pawl.mine('w1', null, 100000) x$q$);
    perform try($q$select count(x::text) from pawl.list_leases(null, null, null, 100000) x$q$);
    perform try($q$select count(x::text) from pawl.list_stats(null, 1000) x$q$);
    perform try($q$select count(x::text) from pawl.list_workers(null, 1000) x$q$);
    perform try(format('select count(x::text) from pawl.%I x', v)) from unnest('{jobs,leases,stale_leases,queue_stats,attempts,dead_letters}'::text[]) v;
    perform try($q$select count(*) from pawl.cancel_batch(0, array(select id from fuzz where abs(hashtext(id::text)) % 20 = 3))$q$) where p_round = 3;
    perform try($q$select pawl.cancel_where('odd', 0, 7::int2, null, 5)$q$) where p_round = 4;
    perform try($q$select count(*) from pawl.reap(0, 10000, '\x03')$q$);
    perform try($q$select count(*) from pawl.redrive_batch(0, array(select d.id from pawl.dead_letter d join fuzz f using (id) where abs(hashtext(d.id::text)) % 20 = 7))$q$) where p_round = 5;
    perform try($q$select pawl.prune_lines('{0}', 10000)$q$);
end $$;

-- What cannot end within minutes, and why: it stands in no line that is served, its version cannot rise, its time is far, it is
-- parked, its lease is valid for long, or (without the constraints) its state is none that a live job has.
create view explained as
    select j.id from pawl.job j where j.shard <> 0 or j.line_id not in (select queue_id * 4096 from pawl.queue) or j.lease_version = 2147483647
       or j.next_attempt_at > now() + interval '5 min' or j.lane = 2 or j.state not in (0, 1) or (j.state = 1 and j.lease_expires_at > now() + interval '5 min');

-- The first few of what went wrong.
create view told as
    select f.sqlstate || ' ' || count(*) || ' times ' || left(f.call, 100) || ': ' || left(min(f.message), 400) told
    from fault f group by f.sqlstate, left(f.call, 100), left(f.message, 60) limit 8;
-- A backoff that has doubled often, of a lease that was lost in the last rounds, may take some of these five minutes; and one that is
-- drawn short, in the last round, is over by now.
create view stuck as
    select f.base || ': ' || f.change told from fuzz f join pawl.job j using (id)
    where f.id not in (select id from explained) and not (j.state = 0 and j.next_attempt_at > now() - interval '1 min') limit 8;

-- A whole life: rounds with two minutes between them, until nothing is left that can end.
create procedure live(p_rounds int4) language plpgsql as $$
begin
    perform make_jobs();
    commit;
    perform edit_jobs();
    commit;
    for i in 1 .. p_rounds loop
        perform one_round(i);
        commit;
        exit when not exists (select from pawl.job j where j.id not in (select id from explained));
        -- The edits of a time that cannot be shifted are the tests' own trouble.
        update pawl.job set created_at = now() where created_at < '1000-01-01' or created_at > '3000-01-01';
        perform pawl_test.age_rows('2 min');
        commit;
    end loop;
end $$;

-- Like age(), but for the rows whose instants cannot be shifted any further.
create function pawl_test.age_rows(p_by interval) returns void language plpgsql as $$
begin
    update pawl.job j set
        next_attempt_at = case when next_attempt_at between '1000-01-01' and '3000-01-01' then next_attempt_at - p_by else next_attempt_at end,
        lease_expires_at = case when lease_expires_at between '1000-01-01' and '3000-01-01' then lease_expires_at - p_by else lease_expires_at end,
        claimed_at = case when claimed_at between '1000-01-01' and '3000-01-01' then claimed_at - p_by else claimed_at end,
        run_until = case when run_until between '1000-01-01' and '3000-01-01' then run_until - p_by else run_until end,
        start_by = case when start_by between '1000-01-01' and '3000-01-01' then start_by - p_by else start_by end,
        pos = case when lane = 3 and pos between 0 and 32503680000000000 then pos - (extract(epoch from p_by) * 1000000)::int8 else pos end;
    update pawl.mark set at = at - p_by;
    update pawl.sweep set at = at - p_by, next_at = next_at - p_by,
        timed_from = case when timed_from between 0 and 32503680000000000 then timed_from - (extract(epoch from p_by) * 1000000)::int8 else timed_from end;
end $$;

-- ---- once with the constraints, once without

call live(:rounds);
select cmp_ok((select count(*) from fuzz where is_refused), '>', (select count(*) / 3 from fuzz), (select count(*) from fuzz where is_refused) || ' of ' || (select count(*) from fuzz) || ' edits are refused by the table');
select is((select count(*) from fuzz f join pawl.job j using (id) where f.is_refused is not true and num_nulls(j.lease_token, j.claimed_by, j.lease_expires_at) in (1, 2)), 0::int8, 'no half lease can be written');
select is((select string_agg(told, E'\n') from told), null, 'no call fails over an edited row, none is held twice');
select is((select count(*) from good g where (select count(*) from pawl.attempt a where a.job_id = g.id) = 0), 0::int8, 'Q-AT-LEAST-ONCE: every other job was worked on');
select is((select count(*) from good g join pawl.job j using (id)), 0::int8, 'and ended');
select is((select string_agg(told, E'\n') from stuck), null, 'every edited row ends, or waits for a reason that can be seen');
select is((select count(*) from (select job_id from pawl.attempt where outcome = 0 group by 1 having count(*) > 1) x), 0::int8, 'Q-NEVER-AGAIN: no job succeeds twice');
select is((select count(*) from pawl.attempt a join pawl.attempt b on b.job_id = a.job_id and b.attempt_no > a.attempt_no where a.outcome = 0), 0::int8, 'and nothing follows a success');
select is((select count(*) from pawl.attempt where attempt_no < 1), 0::int8, 'OL-APPEND-ONLY: no number below 1');

alter table pawl.job drop constraint job_lease, drop constraint job_line_of_shard;
alter table pawl.attempt disable trigger all;
truncate pawl.job, pawl.attempt, pawl.dead_letter, pawl.mark, pawl.sweep;
call live(:rounds);
select is((select string_agg(told, E'\n') from told), null, 'without constraints: no call fails over an edited row, none is held twice');
select is((select count(*) from good g where (select count(*) from pawl.attempt a where a.job_id = g.id) = 0), 0::int8, 'without constraints: every other job was worked on');
select is((select string_agg(told, E'\n') from stuck), null, 'without constraints: every edited row ends, or waits for a reason that can be seen');
select is((select count(*) from (select job_id from pawl.attempt where outcome = 0 group by 1 having count(*) > 1) x), 0::int8, 'without constraints: no job succeeds twice');
select * from finish();
