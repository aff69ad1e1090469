-- SPDX-License-Identifier: Apache-2.0
-- Jobs with ordering keys, and their holds, that somebody has edited into states that no function leaves: no call fails over them,
-- nobody is left behind for good, and whatever was not edited keeps its order. See fuzz_test.sql for jobs without keys.
select no_plan();
set synchronous_commit = off;

create table edit (n int4 generated always as identity, base text, who int4, change text);
-- Of jobs: the first of its key, one that waits behind it, and the last.
insert into edit (base, who, change)
select b, w, c from unnest('{new,held,back,later,batch}'::text[]) b, unnest('{1,2,4}'::int4[]) w,
    unnest(array['lane = 0', 'lane = 1', 'lane = 2', 'lane = 3', 'lane = 3, pos = pawl.micros(next_attempt_at)', 'lane = -1', 'lane = 9',
                 'lane = 2, pos = -1', 'pos = -1', 'pos = 9223372036854775807', 'seq = -1', 'priority = 0', 'priority = 77',
                 'key_seq = null', 'key_seq = 0', 'key_seq = -1', 'key_seq = 9223372036854775807', 'fence = null', 'fence = 0', 'fence = -1',
                 'ordering_key = null', 'ordering_key = null, key_seq = null', 'ordering_key = ''''', 'ordering_key = ''nobody''''s''',
                 'ordering_key = id::text', 'is_cancel_asked = true', 'start_by = now() - interval ''1 s''',
                 'next_attempt_at = now() + interval ''30 s''', 'next_attempt_at = now() - interval ''1 h''',
                 'lease_expires_at = lease_expires_at - interval ''1 h''',
                 'state = 0, lease_token = null, lease_expires_at = null, claimed_by = null, claimed_at = null, run_until = null, lease_ms = null, run_ms = null, unstarted_until = null',
                 'state = 1, lease_token = gen_random_uuid(), lease_expires_at = now() - interval ''1 s'', claimed_by = ''w0'', claimed_at = now(), run_until = now(), lease_ms = 1, run_ms = 1, unstarted_until = now()',
                 'state = 1, lease_token = gen_random_uuid(), lease_expires_at = now() + interval ''30 s'', claimed_by = ''w0'', claimed_at = now(), run_until = now(), lease_ms = 1, run_ms = 1, unstarted_until = now()']) c;
insert into edit (base, who, change)
select b, w, 'delete' from unnest('{new,held,back,later,batch}'::text[]) b, unnest('{1,2,4}'::int4[]) w;
-- Of holds: gone, vacant, of a job that is not there, of another of the key, of another key.
insert into edit (base, who, change)
select b, 0, c from unnest('{new,held,back,later,batch}'::text[]) b,
    unnest('{delete,null,gen_random_uuid(),second,stranger,insert}'::text[]) c;

create table fuzz (n int4, nth int4, id uuid primary key, key text, is_edited boolean);
create table claimed (id uuid, token uuid, version int4, worker text, at timestamptz default clock_timestamp(), n int8 generated always as identity);
create table fault (call text, sqlstate text, message text);
create function try(p_sql text) returns text language plpgsql as $$
declare
    v_text text;
    v_message text;
begin
    execute p_sql into v_text;
    return v_text;
exception when others then
    get stacked diagnostics v_message = pg_exception_context;
    insert into fault values (p_sql, sqlstate, sqlerrm || ' ' || v_message);
    return null;
end $$;

-- Four jobs for each edit, under a key of their own, in the state that it begins with.
create function make_jobs() returns void language plpgsql as $$
declare
    v_edit edit;
    v_ids uuid[];
begin
    perform pawl.queue_set('q', 30000, null, 3, 10, 1, 1, null, null);
    for v_edit in select * from edit order by n loop
        v_ids := array(select gen_random_uuid() from generate_series(1, 4));
        insert into fuzz select v_edit.n, o, i, 'k' || v_edit.n, v_edit.who = o from unnest(v_ids) with ordinality u(i, o);
        if v_edit.base = 'batch' then
            perform pawl.enqueue_batch(0, '{q,q,q,q}', v_ids, '{a,b,c,d}', p_ordering_keys => array_fill('k' || v_edit.n, array[4]));
        else
            perform pawl.enqueue_batch(0, '{q}', v_ids[i : i], '{a}', p_ordering_keys => array['k' || v_edit.n],
                p_delays_ms => array[case when v_edit.base = 'later' and i = 1 then 20000 else 0 end::int8]) from generate_series(1, 4) i;
        end if;
    end loop;
    -- New ones have not been looked at; the others have, and those behind are parked.
    update pawl.job set lane = lane - 10 where id in (select f.id from fuzz f join edit e using (n) where e.base in ('new', 'batch'));
    insert into claimed select c.id, c.lease_token, c.lease_version, 'w0' from pawl.claim_batch(0, 'w0', '{q}', '{10000}', '{30000}', 10000, 1 << 30, sha256('0')) c;
    perform pawl.release_batch(0, 'w0', array_agg(c.id), array_agg(c.token), array_agg(c.version))
    from claimed c join fuzz f using (id) join edit e on e.n = f.n where e.base = 'back';
    update pawl.job set lane = lane + 10 where lane < 0;
end $$;

create function edit_jobs() returns void language plpgsql as $$
declare
    v_edit edit;
    v_id uuid;
    v_key text;
begin
    for v_edit in select * from edit order by n loop
        select f.id into v_id from fuzz f where f.n = v_edit.n and f.nth = greatest(v_edit.who, 1);
        v_key := 'k' || v_edit.n;
        begin
            if v_edit.who = 0 and v_edit.change = 'delete' then
                delete from pawl.hold where ordering_key = v_key;
            elsif v_edit.who = 0 and v_edit.change = 'insert' then
                insert into pawl.hold (shard, line_id, ordering_key, job_id) select 0, line_id, v_key, id from pawl.job where id = v_id on conflict do nothing;
            elsif v_edit.who = 0 then
                execute 'update pawl.hold set job_id = ' || case v_edit.change
                    when 'second' then format('%L', (select f.id from fuzz f where f.n = v_edit.n and f.nth = 2))
                    when 'stranger' then format('%L', (select f.id from fuzz f where f.n = 1 and f.nth = 1))
                    else v_edit.change end || ' where ordering_key = $1' using v_key;
            elsif v_edit.change = 'delete' then
                delete from pawl.job where id = v_id;
            else
                execute 'update pawl.job set ' || v_edit.change || ' where id = $1' using v_id;
            end if;
        exception when integrity_constraint_violation or data_exception then
            update edit set change = 'refused: ' || change where n = v_edit.n;
        end;
    end loop;
end $$;

create function one_round(p_round int4) returns void language plpgsql as $$
begin
    perform try(format($q$with x as (insert into claimed select c.id, c.lease_token, c.lease_version, 'w%1$s'
        from pawl.claim_batch(0, 'w%1$s', '{q}', '{10000}', '{30000}', 10000, 1 << 30, sha256('%1$s')) c returning 1) select count(*) from x$q$, p_round));
    perform try(format($q$select count(*) from (select array_agg(id order by n) ids, array_agg(token order by n) tokens, array_agg(version order by n) versions from claimed where worker = 'w%s') c,
        pawl.settle_batch(0, 'w%s', c.ids, c.tokens, c.versions, array_fill(0::int2, array[cardinality(c.ids)]), null, null, null, null, '\x02') where c.ids is not null$q$, w, w))
    from unnest(array[p_round - 1, p_round]) w;
    perform try($q$select count(*) from pawl.reap(0, 10000, '\x03')$q$);
    perform try($q$select count(*) from pawl.job j, pawl.get_job(j.shard, j.id) g$q$);
    perform try(format('select count(x::text) from pawl.%I x', v)) from unnest('{jobs,leases,queue_stats,dead_letters}'::text[]) v;
end $$;
create procedure live(p_rounds int4) language plpgsql as $$
begin
    for i in 1 .. p_rounds loop
        perform one_round(i);
        commit;
        exit when not exists (select from pawl.job);
        perform pawl_test.age('70 s'); -- the reaper looks through the whole line again
        commit;
    end loop;
end $$;

select make_jobs();
select edit_jobs();
select is((select count(*) from edit where change ~ '^refused'), (select count(*) from edit where change ~ '^refused: (state|lease_expires_at|lane|pos)'), 'few edits are refused: ' || count(*) || ' of ' || (select count(*) from edit)) from edit where change ~ '^refused';
call live(16);
select is((select string_agg(sqlstate || ' ' || left(call, 80) || ': ' || left(message, 300), E'\n') from (select * from fault limit 5) f), null, 'no call fails');
select is((select string_agg(e.base || ' ' || e.who || ' ' || e.change || ': job ' || f.nth || ' in lane ' || j.lane, E'\n')
           from (select * from pawl.job limit 1000) j join fuzz f using (id) join edit e using (n)), null, 'nobody is left behind');
select is((select count(*) from fuzz f where not exists (select from pawl.attempt a where a.job_id = f.id)
           and (f.n, f.nth) not in (select e.n, e.who from edit e where e.change = 'delete' and e.who > 0)), 0::int8, 'every job has ended');
select is((select count(*) from (select job_id from pawl.attempt where outcome = 0 group by 1 having count(*) > 1) x), 0::int8, 'Q-NEVER-AGAIN: none succeeds twice');
select is((select count(*) from pawl.hold), 0::int8, 'no key is held');
-- Those of a key that nobody has touched: in the order of their coming.
select is((select string_agg(e.base || ' ' || e.who || ' ' || e.change || ': ' || a.nth || ' before ' || b.nth, E'\n')
           from fuzz a join fuzz b on b.n = a.n and b.nth < a.nth join edit e on e.n = a.n
           join (select id, min(n) as first from claimed group by id) ca on ca.id = a.id
           join (select id, min(n) as first from claimed group by id) cb on cb.id = b.id
           where ca.first < cb.first and not a.is_edited and not b.is_edited and e.who <> 0), null, 'RES-7: who was not edited keeps its order');
select * from finish();
