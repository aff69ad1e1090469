-- SPDX-License-Identifier: Apache-2.0
-- A batch that succeeds as a whole, or not at all: it leaves what settle_batch() leaves; and wherever one of its rows is not for it,
-- it changes nothing and says so (Q-ACK, Q-STALE, OL-ATOMIC, RES-3, RES-8). All of that whether it is told where the rows are or not.
select no_plan();
create temp table b (name text primary key, ids uuid[], tokens uuid[], version int4, places tid[]);

-- Claims some jobs; their leases in the order of the ids, as the library shows them.
create function pg_temp.take(p_name text, p_queue text, p_max int4 default 100) returns int4 language sql as $$
    insert into b select p_name, array_agg(c.id order by c.id), array_agg(c.lease_token order by c.id), min(c.lease_version), array_agg(c.place order by c.id)
    from pawl.claim_lines('{0}', 'w', array[p_queue], array[p_max], '{30000}', p_max, 1 << 20, uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) c returning cardinality(ids)
$$;
-- All that a settle could change, but for the instant of it.
create function pg_temp.world() returns jsonb language sql as $$
    select jsonb_build_object(
        'jobs', (select jsonb_agg(to_jsonb(j) order by j.id) from pawl.job j), 'failed', (select jsonb_agg(to_jsonb(d) order by d.id) from pawl.dead_letter d),
        'ledger', (select jsonb_agg(to_jsonb(a) - 'finished_at' order by a.job_id, a.attempt_no) from pawl.attempt a),
        'holds', (select jsonb_agg(to_jsonb(h) order by h.line_id, h.ordering_key) from pawl.hold h), 'queues', (select jsonb_agg(to_jsonb(q) order by q.queue_id) from pawl.queue q))
$$;
-- What a call is answered after something was done, and what it leaves; all of it is taken back. One that says no may have been held
-- up by the machine, and is made anew.
create function pg_temp.after(p_change text, p_call text, p_name text, out answer text, out has_changed boolean, out world jsonb) language plpgsql as $$
declare
    v_before jsonb;
    v_all text;
    v_began_at timestamptz;
begin
    execute p_change;
    v_before := pg_temp.world();
    for i in 1 .. 5 loop
        v_began_at := clock_timestamp();
        begin
            execute format('select (%s)::text from b where b.name = %L', p_call, p_name) into answer;
        exception when others then
            answer := sqlstate || ' ' || sqlerrm;
        end;
        exit when answer is not null or clock_timestamp() < v_began_at + interval '40 ms';
    end loop;
    world := pg_temp.world();
    raise exception 'PAWL_UNDO' using detail = jsonb_build_object('answer', answer, 'has_changed', world <> v_before, 'world', world)::text, errcode = 'P7099';
exception when sqlstate 'P7099' then
    get stacked diagnostics v_all = pg_exception_detail;
    answer := v_all::jsonb ->> 'answer';
    has_changed := v_all::jsonb ->> 'has_changed';
    world := v_all::jsonb -> 'world';
end $$;
-- The same in a word.
create function pg_temp.told(p_change text, p_call text, p_name text default 'three') returns text language sql as $$
    select case when a.has_changed then 'did ' else 'did nothing: ' end || coalesce(a.answer, 'no') from pg_temp.after(p_change, p_call, p_name) a
$$;
-- The same for good.
create function pg_temp.succeed(p_name text, p_wire_sends int4 default null, p_is_placed boolean default false) returns int4 language plpgsql as $$
declare
    v_count int4;
begin
    for i in 1 .. 20 loop
        select pawl.succeed_all('w', b.ids, b.tokens, b.version, p_wire_sends, case when p_is_placed then b.places end) into v_count from b where b.name = p_name;
        exit when v_count is not null;
    end loop;
    return v_count;
end $$;
\set usual 'pawl.succeed_all(''w'', b.ids, b.tokens, b.version, null)'
-- The same with places: as the claim gave them, and where the rows are by now, as nobody can know so well.
\set claimed 'pawl.succeed_all(''w'', b.ids, b.tokens, b.version, null, b.places)'
\set placed 'pawl.succeed_all(''w'', b.ids, b.tokens, b.version, null, array(select j.ctid from pawl.job j where j.id = any (b.ids)))'
create temp table way (way text, call text);
insert into way values ('by ids', :'usual'), ('at places', :'placed'), ('where it was claimed', :'claimed');
-- What settle_batch() makes of it, row by row.
\set each '(select string_agg(s.verdict, '' '' order by s.ordinal) from pawl.settle_batch(0, ''w'', b.ids, b.tokens, array_fill(b.version, array[cardinality(b.ids)]), array_fill(0::int2, array[cardinality(b.ids)]), null, null, null, null, ''\\x01'') s)'

-- What it leaves: as settle_batch() does, terse or not, of all kinds of jobs.
select pawl.enqueue('q', 'usual');
select pawl.enqueue('q', 'long', p_timeout_ms => 7000);
select pawl.enqueue('q', 'tries', p_max_retries => 9);
select pawl.enqueue('q', 'first', p_priority => 2);
select pawl.enqueue('q', 'headers', p_headers => '{"a": "b"}');
select pawl.enqueue('q', 'once', p_dedupe_key => 'd');
select pawl.enqueue('q', '');
select pawl.enqueue('q', 'soon', p_start_within_ms => 600000);
select pawl.enqueue('q', 'odd');
select pawl.enqueue('other', 'beside');
update pawl.job set retries = 2, lost_leases = 3, reason = 1 where payload = 'odd';
update pawl.job set created_at = created_at - interval '1 h' * seq;
select is(pg_temp.take('all', 'q'), 9, 'nine jobs are claimed');
update pawl.job set claimed_at = claimed_at - interval '1 ms' * seq where state = 1;
select is(pg_temp.told('select', :'claimed', 'all'), 'did nothing: no', 'their rows were moved, and are not where the claim has put them');
update b set places = array(select j.ctid from pawl.job j where j.id = any (b.ids) order by j.id);
select is(x.answer, '9', 'Q-ACK: all have succeeded, where a request left the machine ' || coalesce(s::text, 'nobody knows how often'))
from unnest('{null,0,1,1000000}'::int4[]) s, unnest(array['', ', b.places']) p, pg_temp.after('select', format('pawl.succeed_all(''w'', b.ids, b.tokens, 1, %L%s)', s, p), 'all') x;
select is(x.world, y.world, 'OL-ATOMIC, RES-12: and the ledger and the jobs are as after settle_batch()')
from unnest('{null,0,1,1000000}'::int4[]) s, unnest(array['', ', b.places']) p, pg_temp.after('select', format('pawl.succeed_all(''w'', b.ids, b.tokens, 1, %L%s)', s, p), 'all') x,
     pg_temp.after('select', format('(select string_agg(s.verdict, '' '') from pawl.settle_batch(0, ''w'', b.ids, b.tokens, array_fill(1, ''{9}''), array_fill(0::int2, ''{9}''), null, null, null,
                                            null, ''\x01'', array_fill(nullif(%L, '''')::int4, ''{9}'')) s)', coalesce(s::text, '')), 'all') y;
select is((pg_temp.after('select', w.call, 'all')).world,
          (pg_temp.after('select', $$(select s.attempt_no from pawl.settle_batch(0, 'w', b.ids, b.tokens, array_fill(1, '{9}'), null, null, null, null, null, '\x01', null, true) s)$$, 'all')).world,
          'as after one that is terse, ' || w.way) from way w;
insert into b select 'single', ids[4:4], tokens[4:4], 1, places[4:4] from b where name = 'all';
select is((pg_temp.after('select', w.call, 'single')).world, (pg_temp.after('select', :'each', 'single')).world, 'also of one job, ' || w.way) from way w;
select is(pg_temp.told('select', w.call, 'single'), 'did 1', 'which it may be given, ' || w.way) from way w;
-- What these worlds have in them.
create temp table was as select * from pawl.job where line_id = (select queue_id * 4096 from pawl.queue where name = 'q');
select clock_timestamp() began_at \gset
select is(pg_temp.succeed('all', 3), 9, 'for good');
select results_eq($$select a.job_id, a.shard, a.line_id, a.attempt_no, a.lease_version, a.outcome::int4, a.reason::int4, a.ended_by::int4, a.token_digest, a.started_at, a.created_at, a.payload_len,
                           a.priority, a.retries, a.lost_leases, a.max_retries, a.wire_sends, a.worker, num_nonnulls(a.error_code, a.error_text, a.ordering_key) from pawl.attempt a order by a.job_id$$,
                  $$select j.id, 0, j.line_id, 1, 1, 0, 0, 0, pawl.token_digest(j.lease_token), j.claimed_at, j.created_at, octet_length(j.payload), j.priority, j.retries, j.lost_leases,
                           j.max_retries, 3, 'w'::text, 0 from was j order by j.id$$, 'RES-12: each has a row that says what it was');
select is((select count(distinct a.token_digest) from pawl.attempt a), 9::int8, 'RES-8: each with what is kept of its own token');
select results_eq($$select a.job_id, a.batch, a.others from pawl.attempt a where a.batch is not null or a.others is not null$$, $$select ids[1], 9, ids[2:] from b where name = 'all'$$,
                  'the first stands for all');
select is((select count(*) from pawl.attempt a where a.finished_at between :'began_at' and clock_timestamp()), 9::int8, 'at this time');
select is((select string_agg(convert_from(j.payload, 'UTF8'), ', ') from pawl.job j), 'beside', 'OL-ATOMIC: their live rows are gone, and no other');
select is((select count(*) from b, unnest(b.ids) i where b.name = 'all' and pawl_test.state(i) = 'Succeeded' and pawl_test.ledger(i) = '1 DISPATCHED none'), 9::int8, 'Q-ACK: Succeeded');
select is((select string_agg(distinct e.verdict, ' ') from b, unnest(b.ids) i, pawl.enqueue_batch(0, '{q}', array[i], '{x}') e where b.name = 'all'), 'EXISTS', 'Q-NEVER-AGAIN: they do not come back');
select is(pg_temp.told('select', w.call, 'all'), 'did nothing: no', 'said again, it is not for it, ' || w.way) from way w;
select is(pg_temp.told('select', :'each', 'all'), 'did nothing: OK OK OK OK OK OK OK OK OK', 'but answered by the ledger');
update b set tokens[2] = gen_random_uuid() where name = 'all';
select is(pg_temp.told('select', :'each', 'all'), 'did nothing: OK STALE OK OK OK OK OK OK OK', 'RULE-020-003: to those who show their tokens');

-- In a transaction that is rolled back; and in one that sees what is old.
select pawl_test.put('t') from generate_series(1, 3);
select is(pg_temp.take('t', 't'), 3, 'three jobs');
begin;
select is(pg_temp.succeed('t', p_is_placed => true), 3, 'all have succeeded');
rollback;
select is((select count(*) from pawl.job j, b where j.id = any (b.ids) and b.name = 't' and j.state = 1), 3::int8, 'OL-ATOMIC: a success that is rolled back never was');
begin isolation level repeatable read;
select is(pg_temp.succeed('t'), 3, 'under REPEATABLE READ');
rollback;
begin isolation level repeatable read;
select is(pg_temp.succeed('t', p_is_placed => true), 3, 'and at places');
commit;

-- What is refused: one of three is not as it should be, and none is touched. Then settle_batch() says of each what it is.
delete from pawl.job;
select pawl_test.put('q') from generate_series(1, 3);
select is(pg_temp.take('three', 'q'), 3, 'three jobs');
select is(pg_temp.told('select', w.call), 'did 3', 'which are as they should be, ' || w.way) from way w;
select is((select array_agg(j.ctid order by j.id) from pawl.job j), (select places from b where name = 'three'), 'the claim says where they are');
create function pg_temp.one(p_n int4) returns uuid language sql as $$ select ids[p_n] from b where name = 'three' $$;
create function pg_temp.verdicts(p_n int4, p_verdict text) returns text language sql as $$
    select 'did ' || string_agg(case i when p_n then p_verdict else 'OK' end, ' ' order by i) from generate_series(1, 3) i
$$;
create temp table reason (what text, change text, verdict text);
insert into reason values
    ('RES-3, RES-8, RULE-020-003: another token', 'update pawl.job set lease_token = gen_random_uuid() where id = pg_temp.one(%s)', 'STALE'),
    ('RES-3: another worker', 'update pawl.job set claimed_by = ''w2'' where id = pg_temp.one(%s)', 'STALE'),
    ('Q-VERSION: another version', 'update pawl.job set lease_version = 2 where id = pg_temp.one(%s)', 'STALE'),
    ('RES-3: a lease that has expired', 'update pawl.job set lease_expires_at = clock_timestamp() where id = pg_temp.one(%s)', 'STALE'),
    ('Q-STALE: a job that is Ready again', 'select pawl.release_batch(0, ''w'', ids[%1$s:%1$s], tokens[%1$s:%1$s], ''{1}'') from b where name = ''three''', 'STALE'),
    ('Q-STALE: one that is Ready, and shows a lease all the same', 'alter table pawl.job drop constraint job_lease; update pawl.job set state = 0 where id = pg_temp.one(%s)', 'STALE'),
    ('Q-ONE-LEASE: one that somebody else has by now', 'update pawl.job set lease_version = 2, claimed_by = ''w2'', lease_token = gen_random_uuid() where id = pg_temp.one(%s)', 'STALE'),
    ('Q-STALE: one that was recovered', 'update pawl.job set lease_expires_at = clock_timestamp() where id = pg_temp.one(%s); select pawl.repair_expired_leases()', 'STALE'),
    ('a settle that was done', 'select pawl.settle_batch(0, ''w'', ids[%1$s:%1$s], tokens[%1$s:%1$s], ''{1}'', null, null, null, null, null, ''\x01'', null, true) from b where name = ''three''', 'OK'),
    ('a job that is gone', 'delete from pawl.job where id = pg_temp.one(%s)', 'GONE'),
    ('one that was tried before', 'update pawl.job set attempts = 1 where id = pg_temp.one(%s)', 'OK'),
    ('one whose number is below any', 'update pawl.job set attempts = -1 where id = pg_temp.one(%s)', 'OK'),
    ('one with a fence', 'update pawl.job set fence = 0 where id = pg_temp.one(%s)', 'OK'),
    ('one of another line', 'update pawl.job set line_id = line_id + 4096 where id = pg_temp.one(%s)', 'OK'),
    ('OL-APPEND-ONLY: one whose number in the ledger is taken', 'insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, finished_at)
                                                select 0, 0, pg_temp.one(%s), 1, 0, 1, 1, 1, now()', 'OK');
select is(pg_temp.told(format(r.change, n), w.call), 'did nothing: no', format('%s: number %s of three, %s', r.what, n, w.way)) from reason r, generate_series(1, 3) n, way w;
select is(pg_temp.told(format(r.change, n), :'each'), pg_temp.verdicts(n, r.verdict), format('%s: settle_batch() answers each, number %s of three', r.what, n)) from reason r, generate_series(1, 3) n;
-- Of a shard that there is not, none is seen.
select is(pg_temp.told('update pawl.job set shard = 1, line_id = line_id + 1' || v, w.call), 'did nothing: no', 'jobs of another shard, ' || w.way) from unnest(array['', ' where id = pg_temp.one(2)']) v, way w;
-- A lease that ends soon could end while the rows are being locked.
select is(pg_temp.told(format('update pawl.job set lease_expires_at = clock_timestamp() + interval ''45 ms'' where id = pg_temp.one(%s)', n), w.call), 'did nothing: no',
          format('RES-3: a lease that will have ended soon: number %s of three, %s', n, w.way)) from generate_series(1, 3) n, way w;
select is(pg_temp.told('update pawl.job set lease_expires_at = clock_timestamp() + interval ''3 s'' where id = pg_temp.one(2)', w.call), 'did 3', 'but not one that lasts for seconds, ' || w.way)
from way w where w.call <> :'claimed';
create function pg_temp.dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(0.02); return old; end $$;
select is(pg_temp.told('create trigger dawdle before delete on pawl.job for each row execute function pg_temp.dawdle()', w.call), 'did nothing: no',
          'RES-3: nor where all took so long that a lease could have ended, ' || w.way) from way w;
select is(pg_temp.told('create trigger dawdle before delete on pawl.job for each row execute function pg_temp.dawdle()', :'each'), 'did OK OK OK', 'although none had');
-- RES-13: who was asked to stop, and has succeeded nevertheless, has succeeded.
select is(pg_temp.told('select pawl.cancel_batch(0, array[pg_temp.one(2)])', w.call), 'did 3', 'RES-13: a settle that comes first wins, ' || w.way) from way w where w.call <> :'claimed';
select is((pg_temp.after('select pawl.cancel_batch(0, array[pg_temp.one(2)])', w.call, 'three')).world, (pg_temp.after('select pawl.cancel_batch(0, array[pg_temp.one(2)])', :'each', 'three')).world,
          'RES-13: as it does in settle_batch(), ' || w.way) from way w where w.call <> :'claimed';
-- What moves a row and leaves its lease: it is not where the claim has put it, and that is all.
select is(pg_temp.told(v, :'claimed'), 'did nothing: no', 'a row that is elsewhere by now: ' || v) from unnest(array['select pawl.cancel_batch(0, array[pg_temp.one(2)])',
    'select pawl.renew_batch(0, ''w'', ids[2:2], tokens[2:2], ''{1}'', null, null) from b where name = ''three''', 'update pawl.job set lease_expires_at = clock_timestamp() + interval ''3 s'' where id = pg_temp.one(2)']) v;
select is(pg_temp.told('select pawl.renew_batch(0, ''w'', ids[2:2], tokens[2:2], ''{1}'', null, null) from b where name = ''three''', w.call), 'did 3', 'Q-EXTEND: one that was renewed, ' || w.way)
from way w where w.call <> :'claimed';

-- What is wrong with a call is for settle_batch() to say.
select is(pg_temp.told('select', left(c, -1) || p || ')'), 'did nothing: no', left(c, -1) || p || ')') from unnest(array['', ', b.places']) p, unnest(array[
    'pawl.succeed_all(''w2'', b.ids, b.tokens, 1, null)', 'pawl.succeed_all(null, b.ids, b.tokens, 1, null)', 'pawl.succeed_all('''', b.ids, b.tokens, 1, null)',
    'pawl.succeed_all(''w'', null, b.tokens, 1, null)', 'pawl.succeed_all(''w'', b.ids, null, 1, null)', 'pawl.succeed_all(''w'', b.ids, b.tokens, null, null)', 'pawl.succeed_all(null, null, null, null, null)',
    'pawl.succeed_all(''w'', b.ids, b.tokens, 0, null)', 'pawl.succeed_all(''w'', b.ids, b.tokens, 2, null)', 'pawl.succeed_all(''w'', b.ids, b.tokens, -1, null)',
    'pawl.succeed_all(''w'', b.ids, b.tokens, 1, -1)', 'pawl.succeed_all(''w'', b.ids, b.tokens, 1, 1000001)', 'pawl.succeed_all(''w'', b.ids, b.tokens, 1, 2147483647)',
    'pawl.succeed_all(''w'', ''{}'', ''{}'', 1, null)', 'pawl.succeed_all(''w'', ''{}'', b.tokens, 1, null)', 'pawl.succeed_all(''w'', b.ids, ''{}'', 1, null)', 'pawl.succeed_all(''w'', b.ids, b.tokens[1:2], 1, null)',
    'pawl.succeed_all(''w'', array[null::uuid], array[null::uuid], 1, null)', 'pawl.succeed_all(''w'', b.ids || null::uuid, b.tokens || null::uuid, 1, null)', 'pawl.succeed_all(''w'', null::uuid || b.ids, null::uuid || b.tokens, 1, null)',
    'pawl.succeed_all(''w'', array[b.ids[1], null, b.ids[3]], b.tokens, 1, null)', 'pawl.succeed_all(''w'', b.ids, array[b.tokens[1], null, b.tokens[3]], 1, null)',
    -- Somebody else's tokens, tokens that are mixed up, one for all.
    'pawl.succeed_all(''w'', b.ids, array[b.tokens[1], gen_random_uuid(), b.tokens[3]], 1, null)', 'pawl.succeed_all(''w'', b.ids, array[b.tokens[2], b.tokens[1], b.tokens[3]], 1, null)',
    'pawl.succeed_all(''w'', b.ids, array_fill(b.tokens[1], ''{3}''), 1, null)', 'pawl.succeed_all(''w'', b.ids, b.ids, 1, null)',
    -- A job that is named twice, also where that makes up for one that is missing; one that never was.
    'pawl.succeed_all(''w'', array[b.ids[1], b.ids[1]], array[b.tokens[1], b.tokens[1]], 1, null)', 'pawl.succeed_all(''w'', b.ids || b.ids[3], b.tokens || b.tokens[3], 1, null)',
    'pawl.succeed_all(''w'', array[b.ids[1], b.ids[1], b.ids[2], b.ids[3]], array[b.tokens[1], b.tokens[1], b.tokens[2], b.tokens[3]], 1, null)',
    'pawl.succeed_all(''w'', b.ids || ''ffffffff-ffff-ffff-ffff-ffffffffffff''::uuid, b.tokens || gen_random_uuid(), 1, null)',
    'pawl.succeed_all(''w'', ''00000000-0000-0000-0000-000000000000''::uuid || b.ids, gen_random_uuid() || b.tokens, 1, null)',
    -- Lists of another shape.
    'pawl.succeed_all(''w'', (''[0:2]='' || b.ids::text)::uuid[], b.tokens, 1, null)', 'pawl.succeed_all(''w'', (''[2:4]='' || b.ids::text)::uuid[], b.tokens, 1, null)',
    'pawl.succeed_all(''w'', (''[-1:1]='' || b.ids::text)::uuid[], b.tokens, 1, null)', 'pawl.succeed_all(''w'', b.ids, (''[0:2]='' || b.tokens::text)::uuid[], 1, null)',
    'pawl.succeed_all(''w'', b.ids, (''[2:4]='' || b.tokens::text)::uuid[], 1, null)', 'pawl.succeed_all(''w'', array[b.ids], array[b.tokens], 1, null)',
    'pawl.succeed_all(''w'', array[b.ids], b.tokens, 1, null)', 'pawl.succeed_all(''w'', b.ids, array[b.tokens], 1, null)',
    'pawl.succeed_all(''w'', array[[b.ids[1]], [b.ids[2]], [b.ids[3]]], array[[b.tokens[1]], [b.tokens[2]], [b.tokens[3]]], 1, null)']) c;
-- Ids of nobody, where the places and the tokens are right and each stands in its order as the right one would: of no use either.
create function pg_temp.below(p_id uuid) returns uuid language sql as $$ select overlay(p_id::text placing lpad(to_hex(('x' || right(p_id::text, 12))::bit(48)::int8 - 1), 12, '0') from 25)::uuid $$;
select is((select count(*) from b, generate_series(1, 3) n where name = 'three' and width_bucket(ids[n], array[pg_temp.below(ids[1]), pg_temp.below(ids[2]), pg_temp.below(ids[3])]) = n), 3::int8, 'as the right one would');
select is(pg_temp.told('select', c), 'did nothing: no', 'RES-8: ' || c) from unnest(array[
    'pawl.succeed_all(''w'', array[pg_temp.below(b.ids[1]), b.ids[2], b.ids[3]], b.tokens, 1, null, b.places)', 'pawl.succeed_all(''w'', array[b.ids[1], pg_temp.below(b.ids[2]), b.ids[3]], b.tokens, 1, null, b.places)',
    'pawl.succeed_all(''w'', array[b.ids[1], b.ids[2], pg_temp.below(b.ids[3])], b.tokens, 1, null, b.places)', 'pawl.succeed_all(''w'', array[''00000000-0000-0000-0000-000000000000'', b.ids[2], b.ids[3]], b.tokens, 1, null, b.places)',
    'pawl.succeed_all(''w'', array[pg_temp.below(b.ids[1]), pg_temp.below(b.ids[2]), pg_temp.below(b.ids[3])], b.tokens, 1, null, b.places)',
    'pawl.succeed_all(''w'', array[pg_temp.below(b.ids[1])], b.tokens[1:1], 1, null, b.places[1:1])', 'pawl.succeed_all(''w'', array[pg_temp.below(b.ids[1])], b.tokens[1:1], 1, null)']) c;
-- Places of all kinds. Those of others in flight beside them: of the same worker, of another one, of another queue; and of one that is Ready.
select pawl_test.put('q') from generate_series(1, 3);
select pawl_test.put('beside');
select is(pg_temp.take('fourth', 'q', 1), 1, 'another job of this worker');
select is((select count(*) from pawl.claim_outbox_batch(1, 'w2', 30, 'q')), 1::int8, 'one of another worker');
select is(pg_temp.take('aside', 'beside'), 1, 'one of another queue');
create function pg_temp.at(p_who text) returns tid language sql as $$
    select j.ctid from pawl.job j where case p_who when 'w2' then j.claimed_by = 'w2' when 'ready' then j.state = 0 else j.id = (select ids[1] from b where name = p_who) end
$$;
create temp table listed (does_it boolean, places text);
insert into listed values
    (true, 'null'), (true, 'b.places'), (true, 'array[b.places[2], b.places[1], b.places[3]]'), (true, 'array[b.places[3], b.places[2], b.places[1]]'), (true, 'array[b.places[2], b.places[3], b.places[1]]'),
    -- None, not all, NULL where the first should be.
    (false, '''{}'''), (false, 'b.places[1:2]'), (false, 'b.places[2:3]'), (false, 'array_fill(b.places[1], ''{3}'')'), (false, 'array[null, null, null]::tid[]'), (false, 'array[b.places[1], null, b.places[3]]'),
    (false, 'null::tid || b.places'),
    -- All of them, and what is of no account: said twice, NULL, nowhere.
    (true, 'b.places || b.places'), (true, 'b.places || b.places[1]'), (true, 'b.places || null::tid'), (true, 'array[b.places[1], null, b.places[2], b.places[3]]'), (true, 'b.places || ''(0,0)''::tid'),
    (true, 'b.places || ''(4294967295,65535)''::tid'), (true, 'b.places || ''(4294967294,1)''::tid'), (true, 'b.places || ''(0,65535)''::tid'), (false, '''(0,0)''::tid || b.places'), (false, '''(4294967294,1)''::tid || b.places'),
    (false, 'array[b.places[1], ''(0,0)'', b.places[3]]'), (false, 'array[b.places[1], ''(4294967295,65535)'', b.places[3]]'), (false, 'array[b.places[1], ''(4294967294,1)'', b.places[3]]'), (false, 'array[''(0,65535)'', b.places[2], b.places[3]]'),
    -- Of another shape.
    (false, 'array[b.places]'), (false, 'array[[b.places[1]], [b.places[2]], [b.places[3]]]'), (true, '(''[0:2]={'' || array_to_string(array(select format(''"%s"'', p) from unnest(b.places) p), '','') || ''}'')::tid[]'),
    (false, '(''[2:4]={'' || array_to_string(array(select format(''"%s"'', p) from unnest(b.places) p), '','') || ''}'')::tid[]');
insert into listed select l.* from unnest('{fourth,w2,ready,aside}'::text[]) w, lateral (values
    -- Of others: beside one's own they are left as they are, and in place of one's own they are of no use.
    (true, format('b.places || pg_temp.at(%L)', w)), (w <> 'aside', format('pg_temp.at(%L) || b.places', w)), (false, format('array[pg_temp.at(%L), b.places[2], b.places[3]]', w)),
    (false, format('array[b.places[1], pg_temp.at(%L), b.places[3]]', w)), (false, format('b.places[1:2] || pg_temp.at(%L)', w)), (false, format('array[pg_temp.at(%L)]', w)), (false, format('array_fill(pg_temp.at(%L), ''{3}'')', w))) l;
select is(pg_temp.told('select', format('pawl.succeed_all(''w'', b.ids, b.tokens, 1, null, %s)', l.places)), case when l.does_it then 'did 3' else 'did nothing: no' end, 'places: ' || l.places) from listed l;
select is((pg_temp.after('select', format('pawl.succeed_all(''w'', b.ids, b.tokens, 1, null, %s)', l.places), 'three')).world, (pg_temp.after('select', :'each', 'three')).world,
          'Q-STALE: what is done is what settle_batch() does, and to no other job: ' || l.places) from listed l where l.does_it;
-- Tokens and ids of one's own, at the place of another one of one's own.
select is(pg_temp.told('select', format('pawl.succeed_all(''w'', b.ids[1:1], b.tokens[1:1], 1, null, array[%s])', p)), 'did nothing: no', 'one of them, at ' || p)
from unnest(array['b.places[2]', 'b.places[3]', 'pg_temp.at(''fourth'')', 'pg_temp.at(''w2'')']) p;
delete from pawl.job j using b where b.name = 'three' and j.id <> all (b.ids);
delete from b where name in ('fourth', 'aside');
-- Ids and tokens in any order: all of them or none, and never to who has mixed up what belongs to whom in their order.
create temp table shuffled as
    with p as (select array[x, y, z] o from generate_series(1, 3) x, generate_series(1, 3) y, generate_series(1, 3) z where x <> y and y <> z and x <> z)
    select i.o ids, t.o tokens, l.places, a.* from p i, p t, unnest(array['', ', b.places']) l(places),
        pg_temp.after('select', format('pawl.succeed_all(''w'', array(select b.ids[n] from unnest(%L::int4[]) n), array(select b.tokens[n] from unnest(%L::int4[]) n), 1, null%s)', i.o, t.o, l.places), 'three') a;
select is((select string_agg(format('%s %s: %s', ids, tokens, answer), ', ') from shuffled where (answer = '3' and has_changed or answer is null and not has_changed) is not true), null,
          'in any order: all of them or none');
select is((select string_agg(format('%s %s', ids, tokens), ', ') from shuffled s cross join lateral
               (select count(*) rows, count(a ->> 'batch') firsts, max((a ->> 'batch')::int4) batch, max(jsonb_array_length(nullif(a -> 'others', 'null'))) others,
                       bool_or(a -> 'others' @> to_jsonb(a ->> 'job_id')) is_its_own
                from jsonb_array_elements(s.world -> 'ledger') a, b where b.name = 'three' and (a ->> 'job_id')::uuid = any (b.ids)) l
           where s.answer = '3' and (l.rows, l.firsts, l.batch, l.others, l.is_its_own) is distinct from (3::int8, 1::int8, 3, 2, false)), null, 'OL-ATOMIC: and then one stands for the two others');
select is((select string_agg(format('%s %s', ids, tokens), ', ') from shuffled where ids = '{1,2,3}' and answer = '3'), '{1,2,3} {1,2,3}, {1,2,3} {1,2,3}', 'RES-8: each with its own token');
select is((select count(*) from shuffled x join shuffled y using (ids, tokens) where x.places < y.places and (x.answer, x.world) is distinct from (y.answer, y.world)), 0::int8, 'whether it is told where they are or not');

-- Two queues; keys, and a limit: whose ends let others through.
select pawl_test.put('q5'), pawl_test.put('q6');
insert into b select 'two', array_agg(c.id order by c.id), array_agg(c.lease_token order by c.id), 1, array_agg(c.place)
from pawl.claim_lines('{0}', 'w', '{q5,q6}', '{9,9}', '{null,null}', 9, 1 << 20, sha256('0')) c;
select is(pg_temp.told('select', w.call, 'two'), 'did nothing: no', 'jobs of two queues, ' || w.way) from way w;
select is(pg_temp.told('select', :'each', 'two'), 'did OK OK', 'settle_batch() answers each');
select pawl.enqueue('keyed', 'x', p_ordering_key => k) from unnest('{k,l,k,l}'::text[]) k;
select is(pg_temp.take('keyed', 'keyed'), 2, 'of two keys one job each');
select is(pg_temp.told('select', w.call, 'keyed'), 'did nothing: no', 'RES-7: jobs with keys, ' || w.way) from way w;
select is(pg_temp.told('select', :'each', 'keyed'), 'did OK OK', 'settle_batch() answers each');
select pawl.queue_set('bound', 30000, null, 3, 10, 500, 30000, null, null, 2);
select pawl_test.put('bound') from generate_series(1, 4);
select is(pg_temp.take('bound', 'bound'), 2, 'two in flight');
select is(pg_temp.told('select', w.call, 'bound'), 'did nothing: no', 'jobs of a queue with a limit, ' || w.way) from way w;
select is(pg_temp.told('select', :'each', 'bound'), 'did OK OK', 'settle_batch() answers each');
-- Jobs that came back: tried before they are not for it, given back they are.
select pawl_test.put('back') from generate_series(1, 2);
select is(pg_temp.take('back', 'back'), 2, 'two jobs');
select count(*) from b, pawl.release_batch(0, 'w', ids, tokens, '{1,1}') where name = 'back';
delete from b where name = 'back';
select is(pg_temp.take('back', 'back'), 2, 'once more');
select is((select version from b where name = 'back'), 2, 'Q-VERSION: under the next version');
select is((pg_temp.after('select', w.call, 'back')).world, (pg_temp.after('select', :'each', 'back')).world, 'they succeed as in settle_batch(), ' || w.way) from way w;
select is(pg_temp.told('select', w.call, 'back'), 'did 2', 'both of them, ' || w.way) from way w;
select is(pg_temp.told('select', format('pawl.succeed_all(''w'', b.ids, b.tokens, 1, null%s)', p), 'back'), 'did nothing: no', 'Q-VERSION: but not under the first') from unnest(array['', ', b.places']) p;
select count(*) from b, pawl.settle_batch(0, 'w', ids, tokens, '{2,2}', '{1,1}', '{0,0}', '{0,0}', null, null, '\x01') where name = 'back';
delete from b where name = 'back';
select pawl_test.age('1 s');
select is(pg_temp.take('back', 'back'), 2, 'after a retry');
select is(pg_temp.told('select', w.call, 'back'), 'did nothing: no', 'RES-12: those have a row before, ' || w.way) from way w;
select is(pg_temp.told('select', :'each', 'back'), 'did OK OK', 'settle_batch() answers each');
-- Many of them may take longer than a lease is known to last.
select pawl_test.put('t2') from generate_series(1, 1000);
select is(pg_temp.take('many', 't2', 1000), 1000, 'a thousand jobs');
create temp table many as select coalesce(pawl.succeed_all('w', ids, tokens, 1, null, places), 0) count from b where name = 'many';
select ok(count in (0, 1000), 'a thousand, or none') from many;
select is((select count(*) from pawl.attempt a, b where a.job_id = any (b.ids) and b.name = 'many'), count::int8, 'and so many rows') from many;
select is((select count(*) from pawl.job j, b where j.id = any (b.ids) and b.name = 'many'), 1000 - count::int8, 'of those that are gone') from many;
select * from finish();
