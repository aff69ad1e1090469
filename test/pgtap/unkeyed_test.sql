-- SPDX-License-Identifier: Apache-2.0
-- Jobs without an ordering key pay nothing for keys: what enqueue, claim and complete of them touch, counted, not timed. Another
-- queue has keys all the while.
select no_plan();
set track_functions = 'pl';

-- Fires for a statement that mentions these columns, whatever it does to them.
create table mentioned (at_all int4);
create function mention() returns trigger language plpgsql security definer as
    'begin insert into public.mentioned values (1); return null; end';
create trigger mentions after update of fence, lane, pos on pawl.job for each statement execute function mention();

-- What this session has done with the tables, the index and the functions that are there for keys and limits.
create view touched as
    select c.relname::text what, pg_stat_get_xact_numscans(c.oid) + pg_stat_get_xact_tuples_returned(c.oid)
        + pg_stat_get_xact_tuples_inserted(c.oid) + pg_stat_get_xact_tuples_updated(c.oid)
        + pg_stat_get_xact_tuples_deleted(c.oid) often
    from pg_class c where c.oid in ('pawl.hold'::regclass, 'pawl.hold_pkey'::regclass, 'pawl.hold_vacant'::regclass,
                                    'pawl.gate'::regclass, 'pawl.gate_pkey'::regclass, 'pawl.job_key'::regclass)
    union all select 'key_seq', last_value + is_called::int4 from pawl.key_seq
    union all select 'fence_seq', last_value + is_called::int4 from pawl.fence_seq
    union all select 'mentioned', count(*) from mentioned
    union all select f.funcname || '()', f.calls from pg_stat_xact_user_functions f where f.schemaname = 'pawl';
create table seen (what text, often int8);

-- One life of p_size jobs, in a transaction; with a delay they wait for their time first, which comes at once.
create function life(p_queue text, p_size int4, p_keys text[] default null, p_delay_ms int8 default 0) returns int8
language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
begin
    delete from seen;
    insert into seen select * from touched;
    perform pawl.enqueue_batch(0, array_fill(p_queue, array[p_size]), array(select gen_random_uuid() from generate_series(1, p_size)),
                               array_fill('x'::bytea, array[p_size]), p_delays_ms => array_fill(p_delay_ms, array[p_size]),
                               p_ordering_keys => p_keys);
    perform pawl_test.age(interval '1 hour') where p_delay_ms > 0;
    select array_agg(c.id), array_agg(c.lease_token), array_agg(c.lease_version) into v_ids, v_tokens, v_versions
    from pawl.claim_batch(0, 'w', array[p_queue], array[p_size], '{null}', p_size, 1 << 30, sha256('0')) c;
    return (select count(*) from pawl.settle_batch(0, 'w', v_ids, v_tokens, v_versions, array_fill(0::int2, array[cardinality(v_ids)]),
                                                   null, null, null, null, '\x00') s where s.verdict = 'OK');
end $$;
create function since() returns setof text language sql as $$
    select t.what from touched t left join seen s using (what) where t.often > coalesce(s.often, 0)
$$;
-- Every function that a life without keys needs.
create function needed() returns setof text language sql as $$
    select unnest('{enqueue_batch(),enqueue_lines(),enqueue_insert(),enqueue_existed(),claim_batch(),claim_lines(),claim_few(),sweep_line(),
                    expired_in_reach(),recover(),pick(),mark_read(),mark_move(),mark_holes(),sweep_note(),settle_batch(),
                    succeed_batch(),succeed_one(),succeed_all(),settle_rows(),ids_of(),take_turn()}'::text[])
$$;

-- The counters see what they are to see: a life with keys touches all of it.
begin;
select is(life('keyed', 3, '{a,a,b}'), 2::int8, 'of two keys one job each is claimed and completed');
select is_empty($$ select unnest('{hold,hold_pkey,hold_vacant,gate,gate_pkey,job_key,key_seq,fence_seq,mentioned,enqueue_keyed(),
                                   enter_gate(),fill_vacant(),pick_keyed(),let_next(),end_keys(),pass_on()}'::text[])
                   except select since() $$, 'and every counter has seen it');
select ok(exists (select from pg_locks l where l.pid = pg_backend_pid() and l.relation = 'pawl.hold'::regclass),
          'and so have the locks');
commit;
select life('plain', 1); -- makes the queue, and its first hints

begin;
select is(life('plain', 1), 1::int8, 'a job without a key is claimed and completed');
select is_empty('select since() except select needed()', 'and touches nothing that is there for keys or limits');
select is(life('plain', 10), 10::int8, 'so are ten jobs');
select is_empty('select since() except select needed()', 'and touch nothing either');
select is(life('plain', 100), 100::int8, 'so are a hundred');
select is_empty('select since() except select needed()', 'and touch nothing either');
select is_empty($$ select l.mode from pg_locks l where l.pid = pg_backend_pid()
                   and l.relation in ('pawl.hold'::regclass, 'pawl.hold_pkey'::regclass, 'pawl.gate_pkey'::regclass) $$,
                'no statement of theirs mentions the holds');
select results_eq($$ select l.mode from pg_locks l where l.pid = pg_backend_pid() and l.relation = 'pawl.gate'::regclass $$,
                  $$ values ('RowShareLock') $$, 'and the gates are locked as a whole, and not looked at');
commit;

begin;
select pawl.enqueue('plain', 'few');
delete from seen;
insert into seen select * from touched;
select is((select count(*) from pawl.claim_few('w', 'plain', 1, 30000, 1000, array[gen_random_uuid()]) c where c.id is not null), 1::int8, 'a claim of a few');
select is_empty('select since() except select needed()', 'touches nothing that is there for keys or limits');
select is_empty($$ select unnest('{claim_lines(),pick(),turn}'::text[]) intersect select since() $$, 'nor what is there for many');
delete from pawl.job;
commit;

begin;
select pawl_test.put('plain') from generate_series(1, 10);
create temp table held as select array_agg(c.id order by c.id) ids, array_agg(c.lease_token order by c.id) tokens, array_agg(c.place order by c.id) places
    from pawl.claim_lines('{0}', 'w', '{plain}', '{10}', '{30000}', 10, 1 << 20, sha256('0')) c;
delete from seen;
insert into seen select * from touched;
-- All of them have succeeded, unless the machine was held up: then it is asked again. Some are looked for, and some are where the claim has put them.
select pawl.succeed_all('w', ids[1:5], tokens[1:5], 1, null) from held, generate_series(1, 5);
create temp table before as select i.indexrelid, pg_stat_get_xact_numscans(i.indexrelid) often from pg_index i where i.indrelid = 'pawl.job'::regclass;
select pawl.succeed_all('w', ids[6:], tokens[6:], 1, null, places[6:]) from held, generate_series(1, 5);
select is((select string_agg(b.indexrelid::regclass::text, ', ') from before b where pg_stat_get_xact_numscans(b.indexrelid) > b.often), null, 'those without an index');
select is((select count(*) from pawl.attempt a, held where a.job_id = any (held.ids)), 10::int8, 'ten jobs have succeeded together');
select is_empty('select since() except select needed()', 'and touch nothing that is there for keys or limits');
select is_empty($$ select unnest('{settle_batch(),succeed_batch(),settle_rows()}'::text[]) intersect select since() $$, 'nor what is there for those who end in other ways');
commit;

begin;
select is(life('plain', 10, p_delay_ms => 20000), 10::int8, 'jobs that waited for their time are claimed and completed');
select set_eq('select since() except select needed()', $$ values ('mentioned'), ('note_detour()') $$,
                  'and are moved to another lane, but touch nothing else');
commit;

-- Each index is opened by each statement that writes jobs, whatever it holds: one more makes every enqueue a hundredth dearer.
select is((select count(*) from pg_index i where i.indrelid = 'pawl.job'::regclass), 5::int8,
          'the table of jobs has no more indexes than before there were keys');
select * from finish();
