-- SPDX-License-Identifier: Apache-2.0
-- Who may do what. OL-APPEND-ONLY: every verb that would change the ledger, as each role.
select no_plan();
create role pawl_runtime;
create role pawl_reader;
create role pawl_stranger;
create role pawl_super superuser;
select pawl.grant_runtime('pawl_runtime'), pawl.grant_reader('pawl_reader');
grant usage on schema pawl_test to public;
grant execute on all functions in schema pawl_test to public;
grant all on schema public to public;
create table tried (role text, verb text, sqlstate text);
grant all on tried to public;
select pawl_test.put('r');
select pawl_test.done(pawl_test.take(p_queue => 'r'));
select pawl_test.put('r');

-- Says with which SQLSTATE a statement ends, and leaves nothing of it.
create function sqlstate_of(p_sql text) returns text language plpgsql as $$
begin
    begin
        execute p_sql;
        raise exception 'undo' using errcode = 'P7098';
    exception when others then
        return case when sqlstate = 'P7098' then '00000' else sqlstate end;
    end;
end $$;
grant execute on function sqlstate_of to public;

-- Everything that would change, or let somebody change, what is in the ledger. By hand: `is_ddl` is what an owner can do to
-- what is his (docs/operating.md says so), and what nobody else can.
create table verbs (verb text, is_ddl boolean default false);
insert into verbs values
    ('update pawl.attempt set outcome = 1'),
    ('update pawl.attempt set error_text = ''x'' where false'),
    ('with x as (update pawl.attempt set outcome = 1 returning 1) select count(*) from x'),
    ('delete from pawl.attempt'),
    ('delete from pawl.attempt where false'),
    ('delete from only pawl.attempt using pawl.queue'),
    ('with x as (delete from pawl.attempt returning 1) select count(*) from x'),
    ('truncate pawl.attempt'),
    ('truncate pawl.attempt cascade'),
    ('insert into pawl.attempt select * from pawl.attempt on conflict (job_id, attempt_no) do update set outcome = 1');
insert into verbs select 'merge into pawl.attempt a using (values (1)) v on true when matched then delete'
where current_setting('server_version_num')::int4 >= 150000;
insert into verbs values
    ('alter table pawl.attempt disable trigger attempt_is_append_only', true),
    ('drop trigger attempt_is_append_only on pawl.attempt', true),
    ('alter table pawl.attempt drop column outcome', true),
    ('alter table pawl.attempt rename to attempt_old', true),
    ('alter table pawl.attempt alter column outcome type int8 using 1', true),
    ('drop table pawl.attempt', true),
    ('create rule r as on insert to pawl.attempt do instead nothing', true),
    ('create trigger t before insert on pawl.attempt for each row execute function suppress_redundant_updates_trigger()', true),
    ('grant all on pawl.attempt to pawl_stranger', true),
    ('create or replace function pawl.refuse_change() returns trigger language plpgsql as ''begin return null; end''', true),
    ('drop function pawl.refuse_change() cascade', true),
    ('create table pawl.mine_too (id int4)', true),
    ('drop schema pawl cascade', true);
grant select on verbs to public;
create function try_verbs(p_name text) returns void language sql as $$
    insert into tried select p_name, verb, sqlstate_of(verb) from verbs
$$;
grant execute on function try_verbs to public;
set role pawl_runtime;
select try_verbs('runtime');
set pawl.is_pruning = 'on'; -- whoever knows the word has no right by it
select try_verbs('runtime, pruning');
reset pawl.is_pruning;
set role pawl_reader;
select try_verbs('reader');
set role pawl_stranger;
select try_verbs('stranger');
set role pawl_super;
select try_verbs('superuser');
set role pawl_owner;
select try_verbs('owner');
reset role;
-- As for GRANT, which is no error where nothing is granted: a warning, and nothing changes.
select is(t.sqlstate, case when t.role !~ 'owner|superuser' then '42501' when v.is_ddl then t.sqlstate else 'P7006' end,
          'OL-APPEND-ONLY: ' || t.role || ': ' || t.verb)
from tried t join verbs v using (verb) where t.verb !~ '^grant';
select is((select sqlstate from tried where role = 'owner' and verb ~ '^drop trigger'), '00000', 'the owner can take the trigger away, as docs/operating.md says');
select is(has_table_privilege('pawl_stranger', 'pawl.attempt', 'select'), false, 'OL-APPEND-ONLY: no grants by those who may not');
-- Through views: they are no way around it.
create table view_verbs as
    select format(v, c.relname) verb from pg_class c, unnest('{update pawl.%I set lease_version = 0,delete from pawl.%I,insert into pawl.%I default values}'::text[]) v
    where c.relnamespace = 'pawl'::regnamespace and c.relkind = 'v' and c.relname not in ('workers', 'arrival', 'endpoints', 'job_form_live', 'job_form_failed', 'job_form_succeeded') and (c.relname !~ '^(queue_stats|worklease)' or v !~ 'update');
grant select on view_verbs to public;
set role pawl_runtime;
select is(string_agg(verb, '; '), null, 'OL-APPEND-ONLY: runtime: nothing through views') from view_verbs where sqlstate_of(verb) not in ('42501', '55000', '0A000'); -- 55000: nobody could
set role pawl_reader;
select is(string_agg(verb, '; '), null, 'OL-APPEND-ONLY: reader: nothing through views') from view_verbs where sqlstate_of(verb) not in ('42501', '55000', '0A000'); -- 55000: nobody could
select is(sqlstate_of('delete from pawl.workers'), '42501', 'reader: workers are only looked at');
set role pawl_owner;
select is(string_agg(verb, '; '), null, 'OL-APPEND-ONLY: owner: nothing through views') from view_verbs where sqlstate_of(verb) not in ('55000', '0A000');
set role pawl_super;
select is(string_agg(verb, '; '), null, 'OL-APPEND-ONLY: superuser: nothing through views') from view_verbs where sqlstate_of(verb) not in ('55000', '0A000');
reset role;
select is(sqlstate_of('delete from pawl.job_form_succeeded'), 'P7006', 'OL-APPEND-ONLY: the one view that is the ledger is guarded as it is');
select is(sqlstate_of($$set session authorization pawl_runtime; set session_replication_role = replica$$), '42501', 'OL-APPEND-ONLY: no role but a superuser gets past triggers');
set pawl.is_pruning = 'on';
select is(sqlstate_of('update pawl.attempt set outcome = 1'), 'P7006', 'OL-APPEND-ONLY: no update, not even while pruning');
select is(sqlstate_of('truncate pawl.attempt'), 'P7006', 'OL-APPEND-ONLY: no truncate, not even while pruning');
reset pawl.is_pruning;
select is((select count(*) from pawl.attempt), 1::int8, 'the ledger is as it was');
-- Through functions: whatever the runtime role calls, with whatever it knows, the rows that are there stay as they are.
create table ledger_before as select * from pawl.attempt;
select pawl_test.put('r') from generate_series(1, 3);
create table known as select array_agg(id) ids from pawl.jobs where queue = 'r';
grant select on known to public;
set role pawl_runtime;
select count(*) from (select pawl.settle_batch(0, 'w1', k.ids, k.ids, array_fill(1, array[cardinality(k.ids)]), array_fill(a::int2, array[cardinality(k.ids)]), null,
                               array_fill(1::int8, array[cardinality(k.ids)]), null, null, '\x00') from known k, generate_series(0, 3) a) x;
select count(pawl.succeed_all('w1', k.ids, k.ids, 1, null)) from known k;
select count(*) from (select pawl.renew_batch(0, 'w1', k.ids, k.ids, array_fill(1, array[cardinality(k.ids)]), null, null) from known k) x;
select count(*) from (select pawl.release_batch(0, 'w1', k.ids, k.ids, array_fill(1, array[cardinality(k.ids)])) from known k) x;
select count(*) from (select pawl.enqueue_batch(0, array_fill('r'::text, array[cardinality(k.ids)]), k.ids, array_fill(''::bytea, array[cardinality(k.ids)])) from known k) x;
select count(*) from (select pawl.cancel_batch(0, k.ids), pawl.discard_batch(0, k.ids), pawl.redrive_batch(0, k.ids) from known k) x;
select pawl.cancel_where('r', 0, 0::int2, null, 10), pawl.discard_where('r', 0, 0::int2, null, 10), pawl.redrive_where('r', 0, 0::int2, null, 10);
select count(*), pawl.prune(0, 100), pawl.prune_lines('{0}', 100) from pawl.reap(0, 100, '\x00');
select is(sqlstate_of('select pawl.prune_jobs(0, (select ids from known))'), '42501', 'OL-APPEND-ONLY: runtime: no prune but by retention');
reset role;
select is((select count(*) from (select * from ledger_before except select * from pawl.attempt) x), 0::int8, 'OL-APPEND-ONLY: no function changes what is written');
select cmp_ok((select count(*) from pawl.attempt), '>', 1::int8, 'but they did append');

-- The runtime role works with functions alone.
select pawl_test.put('r');
set role pawl_runtime;
select is(sqlstate_of($$select pawl.enqueue('r', 'x')$$), '00000', 'runtime: enqueue');
select is(sqlstate_of($$select pawl.claim_outbox_batch(1, 'w1', 30, 'r')$$), '00000', 'runtime: claim');
select is(sqlstate_of($q$do $x$ declare c record; begin
    select * into c from pawl.claim_outbox_batch(1, 'w1', 30, 'r');
    perform pawl.renew_outbox_lease(c.outbox_id, c.lease_token, 'w1');
    perform pawl.complete_outbox_attempt(c.outbox_id, c.lease_token, 'w1', 'DISPATCHED'); end $x$ $q$), '00000', 'runtime: claim, renew, complete');
select is(sqlstate_of($$select pawl.claim_few('w1', 'r', 1, null, 1000, array[gen_random_uuid()])$$), '00000', 'runtime: claim a few');
select is(sqlstate_of($$select pawl.succeed_all('w1', array[gen_random_uuid()], array[gen_random_uuid()], 1, null)$$), '00000', 'runtime: let a batch succeed');
select is(sqlstate_of($$select pawl.is_line_calm(null, null, null, null)$$), '42501', 'runtime: no look at a line');
select is(sqlstate_of($$select pawl.repair_expired_leases()$$), '00000', 'runtime: repair');
select is(sqlstate_of($$select pawl.prune(0, 10)$$), '00000', 'runtime: prune');
select is(sqlstate_of($$select pawl.hello()$$), '00000', 'runtime: hello');
select is(sqlstate_of($$insert into pawl.arrival (line_id, id, payload) values (4096, '01910000-0000-7000-8000-00000000a001', 'x')$$), '00000', 'runtime: a job through the view');
select is(string_agg(v, '; '), null, 'runtime: nothing else through it') from unnest(array[
    'insert into pawl.arrival (line_id, id, payload, lane) values (4096, ''01910000-0000-7000-8000-00000000a001'', ''x'', 1)',
    'insert into pawl.arrival (line_id, id, payload, pos) values (4096, ''01910000-0000-7000-8000-00000000a001'', ''x'', 0)',
    'insert into pawl.arrival (line_id, id, payload, next_attempt_at) values (4096, ''01910000-0000-7000-8000-00000000a001'', ''x'', now())',
    'insert into pawl.arrival (line_id, id, payload) values (4096, ''01910000-0000-7000-8000-00000000a001'', ''x'') returning payload',
    'insert into pawl.arrival (line_id, id, payload) values (4096, ''01910000-0000-7000-8000-00000000a001'', ''x'') on conflict (id) do update set payload = ''y''',
    'update pawl.arrival set payload = ''y''', 'delete from pawl.arrival', 'select payload from pawl.arrival']) v where sqlstate_of(v) <> '42501';
select is(sqlstate_of($$select pawl.queue_pause('r', true)$$), '00000', 'runtime: pause');
select is(sqlstate_of($$select pawl.list_stats(null, 10)$$), '00000', 'runtime: stats');
select is(sqlstate_of($$select pawl.list_depths(null, null, 10)$$), '00000', 'runtime: depths');
select is(sqlstate_of($$select pawl.cancel_where('r', 0, 0::int2, null, 10)$$), '00000', 'runtime: cancel by filter');
select is(sqlstate_of($q$do $x$ declare g record; begin
    select * into g from pawl.worklease_try_acquire('d', 1, 'w1', 1000);
    perform pawl.worklease_renew('d', g.lease_token, 1000, 'w1');
    perform pawl.worklease_fail('d', g.lease_token, 'w1');
    perform pawl.worklease_succeed('d', g.lease_token, 'w1'); end $x$ $q$), '00000', 'runtime: work leases');
select is(sqlstate_of($$select pawl.list_workleases(null, null, 10)$$), '00000', 'runtime: a look at work leases');
select is(sqlstate_of($$select pawl.worklease_add_terminal(0, 1, 1, false)$$), '42501', 'runtime: no inner function of work leases');
select is(sqlstate_of(v || ' pawl.' || t), '42501', 'runtime: no ' || v || ' pawl.' || t)
from unnest('{select * from,delete from,truncate}'::text[]) v,
     unnest('{job,attempt,dead_letter,queue,config,mark,sweep,turn,worker,hold,gate,worklease,worklease_backlog,worklease_terminal}'::text[]) t;
select is(sqlstate_of($$update pawl.job set state = 0$$), '42501', 'runtime: no update');
select is(sqlstate_of($$insert into pawl.job (shard) values (0)$$), '42501', 'runtime: no insert');
select is(sqlstate_of($$select pawl.settle_one(0, 'w', gen_random_uuid(), gen_random_uuid(), 1, 0::int2, 0::int2, null, null, null, '\x00', null)$$), '42501', 'runtime: no inner function');
select is(sqlstate_of($$select pawl.grant_reader('pawl_runtime')$$), '42501', 'runtime: no grants');

-- The reader sees views and nothing else.
set role pawl_reader;
select is(sqlstate_of('select * from pawl.' || v), '00000', 'reader: ' || v) from unnest('{jobs,leases,stale_leases,queue_stats,attempts,dead_letters,workers,endpoints,workleases,worklease_backlogs,worklease_terminals}'::text[]) v;
select is(sqlstate_of('select * from pawl.' || t), '42501', 'reader: no ' || t) from unnest('{job,attempt,dead_letter,job_form,job_form_live,job_form_failed,job_form_succeeded,config,mark}'::text[]) t;
select is(sqlstate_of($$select pawl.enqueue('r', 'x')$$), '42501', 'reader: no enqueue');
select is(sqlstate_of($$select pawl.claim_outbox_batch(1, 'w1', 30, 'r')$$), '42501', 'reader: no claim');
select is(sqlstate_of($$select pawl.mine('w1', null, 10)$$), '42501', 'reader: no tokens');
select is(sqlstate_of($$select pawl.worklease_try_acquire('d', 1)$$), '42501', 'reader: no work lease');
set role pawl_stranger;
select is(sqlstate_of($$select * from pawl.jobs$$), '42501', 'a stranger sees nothing');
select is(sqlstate_of($$select pawl.enqueue('r', 'x')$$), '42501', 'a stranger does nothing');
reset role;

-- OL-QUERIES, NFR-003: nothing that a reader may see or call gives a token, what is kept of one, or a payload: by its columns, ...
select is((select string_agg(c.relname || '.' || a.attname, ', ') from pg_class c join pg_attribute a on a.attrelid = c.oid
           where c.relnamespace = 'pawl'::regnamespace and c.relkind in ('r', 'v') and (a.attname ~ 'token' or a.attname = 'payload')
             and has_table_privilege('pawl_reader', c.oid, 'select')), null, 'NFR-003: no token, no payload');
-- ... and by what comes out, whatever it is called.
select pawl.enqueue('secret', 'hush-hush');
create table secrets as select lease_token::text word from pawl.claim_outbox_batch(1, 'w9', 30, 'secret');
insert into secrets
    select replace(lease_token::text, '-', '') from pawl.job where lease_token is not null
    union all select token_digest::text from pawl.attempt where token_digest is not null
    union all select pawl.token_digest(lease_token)::text from pawl.job where lease_token is not null
    union all select lease_token::text from pawl.worklease_try_acquire('secret', 7)
    union all values ('hush-hush'), (encode('hush-hush', 'hex')), ('whsec_TWF5IG5vIHJlYWRlciBldmVyIHNlZSB0aGlz');
select pawl.endpoint_add('secret', 'https://hooks.example/hush-hush?t=hush-hush', '*', 'whsec_TWF5IG5vIHJlYWRlciBldmVyIHNlZSB0aGlz',
                         E'x-key: hush-hush\n');
select cmp_ok((select count(*) from secrets), '>=', 6::int8, 'there are secrets to be seen');
grant select on secrets to public;
create table seen_by_reader (what text, told text);
grant all on seen_by_reader to public;
create table readable as
    select format('insert into seen_by_reader select %L, x::text from pawl.%I x', c.relname, c.relname) as statement from pg_class c
    where c.relnamespace = 'pawl'::regnamespace and c.relkind in ('r', 'v') and has_table_privilege('pawl_reader', c.oid, 'select')
    union all
    select format('insert into seen_by_reader select %L, x::text from pawl.%I(%s) x', p.proname, p.proname,
                  (select string_agg('null::' || format_type(t, null), ', ' order by o) from unnest(p.proargtypes) with ordinality u(t, o)))
    from pg_proc p where p.pronamespace = 'pawl'::regnamespace and has_function_privilege('pawl_reader', p.oid, 'execute');
select cmp_ok((select count(*) from readable), '>=', 12::int8, 'views and functions that a reader has');
grant select on readable to public;
set role pawl_reader;
do $$ declare v_sql text; begin for v_sql in select r.statement from readable r loop execute v_sql; end loop; end $$;
reset role;
select is((select count(distinct what) from seen_by_reader where what in ('jobs', 'leases', 'queue_stats', 'attempts', 'endpoints', 'list_stats', 'migration')), 7::int8, 'each of them has something to tell');
select is((select string_agg(distinct s.what, ', ') from seen_by_reader s, secrets w where position(w.word in s.told) > 0), null, 'NFR-003: nothing that a reader gets has a secret in it');
select is((select count(*) from pg_proc p where p.pronamespace = 'pawl'::regnamespace and has_function_privilege('pawl_stranger', p.oid, 'execute')), 0::int8, 'PUBLIC may execute nothing');
select is((select count(*) from pg_proc p where p.pronamespace = 'pawl'::regnamespace and p.prosecdef
           and not coalesce(p.proconfig::text ~ 'search_path=pg_catalog, pawl, pg_temp', false)), 0::int8, 'every function of the owner''s rights has a fixed search_path');
select is((select string_agg(p.proname, ', ') from pg_proc p where p.pronamespace = 'pawl'::regnamespace and p.proname = any (pawl.runtime_functions())
           and not p.prosecdef and p.proname !~ '_name$|^store_now$'), null, 'what the runtime calls runs with the owner''s rights');
select is((select string_agg(f, ', ') from unnest(pawl.runtime_functions()) f where not exists (select from pg_proc p where p.pronamespace = 'pawl'::regnamespace and p.proname = f)), null, 'every function that is granted exists');
-- Roles that were granted before the last steps came have all that those have that are granted now.
select is((select string_agg(p.proname, ', ') from pg_proc p where p.pronamespace = 'pawl'::regnamespace
           and (has_function_privilege('pawl_early_runtime', p.oid, 'execute') <> has_function_privilege('pawl_runtime', p.oid, 'execute')
                or has_function_privilege('pawl_early_reader', p.oid, 'execute') <> has_function_privilege('pawl_reader', p.oid, 'execute'))),
          null, 'roles that were granted early may call the same');
select is((select string_agg(c.relname, ', ') from pg_class c where c.relnamespace = 'pawl'::regnamespace and c.relkind in ('r', 'v')
           and (has_table_privilege('pawl_early_runtime', c.oid, 'select') <> has_table_privilege('pawl_runtime', c.oid, 'select')
                or has_table_privilege('pawl_early_reader', c.oid, 'select') <> has_table_privilege('pawl_reader', c.oid, 'select'))),
          null, 'roles that were granted early may look at the same');
drop owned by pawl_runtime, pawl_reader, pawl_stranger, pawl_super;
drop role pawl_runtime, pawl_reader, pawl_stranger, pawl_super;
select * from finish();
