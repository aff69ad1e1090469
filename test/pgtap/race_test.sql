-- SPDX-License-Identifier: Apache-2.0
-- Two sessions, step by step: this one, and one behind dblink. A call that has to wait is sent, and its answer fetched later.
select no_plan();
create extension dblink;
select dblink_connect('b', format('dbname=%s host=%s port=5432 user=%s', current_database(), current_setting('unix_socket_directories'), current_user));
create temp table h (name text primary key, v pawl_test.held);

-- Waits until the other session waits for a lock of this one.
create function until_b_waits() returns void language plpgsql as $$
begin
    for i in 1 .. 2000 loop
        perform pg_stat_clear_snapshot();
        if exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()) then
            return;
        end if;
        perform pg_sleep(0.005);
    end loop;
    raise exception 'the other session does not wait';
end $$;
create function b_says(p_sql text) returns setof text language sql as $$ select x from dblink('b', p_sql) as t(x text) $$;
create function b_answer() returns setof text language sql as $$ select x from dblink_get_result('b') as t(x text) $$;

-- Q-NEVER-AGAIN: enqueue with the id of a job whose completion has not committed yet
select pawl.enqueue('q', 'x', p_id => '01910000-0000-7000-8000-0000000000a1');
insert into h values ('a', pawl_test.take());
begin;
select pawl_test.done(v) from h where name = 'a';
select dblink_send_query('b', $$select verdict from pawl.enqueue_batch(0, '{q}', '{01910000-0000-7000-8000-0000000000a1}', '{x}')$$);
select until_b_waits();
commit;
select results_eq('select b_answer()', $$values ('EXISTS')$$, 'Q-NEVER-AGAIN: it waits, and then the job has existed');
select b_answer();
select is(pawl_test.state('01910000-0000-7000-8000-0000000000a1'), 'Succeeded', 'the job does not come back');

-- the same under REPEATABLE READ, the snapshot taken before
select pawl.enqueue('q', 'x', p_id => '01910000-0000-7000-8000-0000000000a2');
update h set v = pawl_test.take() where name = 'a';
select dblink_exec('b', 'begin isolation level repeatable read');
select b_says('select count(*)::text from pawl.job');
begin;
select pawl_test.done(v) from h where name = 'a';
select dblink_send_query('b', $$select verdict from pawl.enqueue_batch(0, '{q}', '{01910000-0000-7000-8000-0000000000a2}', '{x}')$$);
select until_b_waits();
commit;
select results_eq('select b_answer()', $$values ('EXISTS')$$, 'Q-NEVER-AGAIN: under REPEATABLE READ too');
select b_answer();
select dblink_exec('b', 'commit');
select is(pawl_test.state('01910000-0000-7000-8000-0000000000a2'), 'Succeeded', 'and it does not come back');

-- a completion that is rolled back while an enqueue waits: the job is still there
select pawl.enqueue('q', 'x', p_id => '01910000-0000-7000-8000-0000000000a3');
update h set v = pawl_test.take() where name = 'a';
begin;
select pawl_test.done(v) from h where name = 'a';
select dblink_send_query('b', $$select verdict from pawl.enqueue_batch(0, '{q}', '{01910000-0000-7000-8000-0000000000a3}', '{x}')$$);
select until_b_waits();
rollback;
select results_eq('select b_answer()', $$values ('EXISTS')$$, 'a completion that is rolled back: the job exists');
select b_answer();
select is(pawl_test.state('01910000-0000-7000-8000-0000000000a3'), 'InFlight', 'and is leased as before');
select pawl_test.done(v) from h where name = 'a';

-- RES-3: the lease ends while its holder waits for the row
select pawl_test.put('e') from generate_series(1, 5);
create temp table e as select row_number() over () n, c.* from pawl.claim_outbox_batch(5, 'w1', 1, 'e') c;
begin;
select count(*) from (select from pawl.job where id in (select outbox_id from e) for update) l;
select dblink_send_query('b', format($$select s.verdict from pawl.settle_batch(0, 'w1', '{%s}', '{%s}', '{1}', '{0}', '{0}', '{null}', null, null, '\x01') s$$, outbox_id, lease_token)) from e where n = 1;
select until_b_waits();
select pg_sleep(greatest(0, extract(epoch from (select max(lease_expires_at) from e) - clock_timestamp()) + 0.01));
commit;
select throws_ok('select b_answer()', '40001', null, 'RES-3: a success that waited past the deadline is judged again');
select b_answer();
select results_eq(format($$select b_says($x$select s.verdict from pawl.settle_batch(0, 'w1', '{%s}', '{%s}', '{1}', '{0}', '{0}', '{null}', null, null, '\x01') s$x$)$$, outbox_id, lease_token),
                  $$values ('STALE')$$, 'and found stale') from e where n = 1;
select pawl_test.put('e3') from generate_series(1, 2);
create temp table e3 as
select format($$select s.verdict from pawl.settle_batch(0, 'w1', '%s', '%s', '{1,1}', '{0,0}', '{0,0}', '{null,null}', null, null, '\x01') s$$,
              array_agg(c.outbox_id), array_agg(c.lease_token)) settle, array_agg(c.outbox_id) ids, max(c.lease_expires_at) expires_at
from pawl.claim_outbox_batch(2, 'w1', 1, 'e3') c;
begin;
select count(*) from (select from pawl.job j, e3 where j.id = e3.ids[1] for update of j) l;
select dblink_send_query('b', settle) from e3;
select until_b_waits();
select pg_sleep(greatest(0, extract(epoch from (select expires_at from e3) - clock_timestamp()) + 0.01));
commit;
select throws_ok('select b_answer()', '40001', null, 'RES-3: successes of which one waited past the deadline are judged again');
select b_answer();
select results_eq('select b_says(settle) from e3', $$values ('STALE'), ('STALE')$$, 'and found stale');
-- the same of a batch that succeeds as a whole, or not at all
select pawl_test.put('e4') from generate_series(1, 2);
create temp table e4 as
select array_agg(c.outbox_id order by c.outbox_id) ids, array_agg(c.lease_token order by c.outbox_id) tokens, max(c.lease_expires_at) expires_at,
       format($$select coalesce(pawl.succeed_all('w1', '%s', '%s', 1, null)::text, 'no')$$, array_agg(c.outbox_id order by c.outbox_id), array_agg(c.lease_token order by c.outbox_id)) succeed
from pawl.claim_outbox_batch(2, 'w1', 2, 'e4') c;
begin;
select count(*) from (select from pawl.job j, e4 where j.id = e4.ids[2] for update of j) l;
select dblink_send_query('b', succeed) from e4;
select until_b_waits();
select pg_sleep(0.06);
commit;
select results_eq('select b_answer()', $$values ('no')$$, 'RES-3: a batch of which one waited for longer than its lease is known to last is left alone');
select b_answer();
begin;
select count(*) from (select from pawl.job j, e4 where j.id = e4.ids[1] for update of j) l;
select dblink_send_query('b', succeed) from e4;
select until_b_waits();
select pg_sleep(greatest(0, extract(epoch from (select expires_at from e4) - clock_timestamp()) + 0.01));
commit;
select results_eq('select b_answer()', $$values ('no')$$, 'RES-3: so is one of which one waited past the deadline');
select b_answer();
select results_eq('select b_says(succeed) from e4', $$values ('no')$$, 'RES-3: and one that comes after it');
select is((select count(*) from pawl.job j, e4 where j.id = any (e4.ids) and j.state = 1 and j.lease_version = 1 and j.lease_token = any (e4.tokens)), 2::int8, 'Q-STALE: both are as they were');
-- the row changes hands while the batch waits for it
select pawl_test.put('e5') from generate_series(1, 2);
create temp table e5 as
select array_agg(c.outbox_id order by c.outbox_id) ids, array_agg(c.lease_token order by c.outbox_id) tokens,
       format($$select coalesce(pawl.succeed_all('w1', '%s', '%s', 1, null)::text, 'no')$$, array_agg(c.outbox_id order by c.outbox_id), array_agg(c.lease_token order by c.outbox_id)) succeed
from pawl.claim_outbox_batch(2, 'w1', 30, 'e5') c;
begin;
select count(*) from e5, pawl.release_batch(0, 'w1', e5.ids[2:2], e5.tokens[2:2], '{1}') r where r.verdict = 'OK';
select count(*) from pawl.claim_outbox_batch(1, 'w1', 30, 'e5');
select dblink_send_query('b', succeed) from e5;
select until_b_waits();
commit;
select results_eq('select b_answer()', $$values ('no')$$, 'Q-ONE-LEASE: a job that was claimed anew meanwhile, by the same worker too');
select b_answer();
select results_eq('select j.state::int4, j.lease_version from pawl.job j, e5 where j.id = any (e5.ids) order by j.id', $$values (1, 1), (1, 2)$$, 'Q-STALE: both stay in flight');
-- the same settle twice, at the same time
select pawl_test.put('e6') from generate_series(1, 2);
create temp table e6 as
select format($$select coalesce(pawl.succeed_all('w1', '%s', '%s', 1, null)::text, 'no')$$, array_agg(c.outbox_id order by c.outbox_id), array_agg(c.lease_token order by c.outbox_id)) succeed,
       array_agg(c.outbox_id order by c.outbox_id) ids, array_agg(c.lease_token order by c.outbox_id) tokens
from pawl.claim_outbox_batch(2, 'w1', 30, 'e6') c;
begin;
select count(*) from e6, pawl.settle_batch(0, 'w1', ids, tokens, '{1,1}', '{0,0}', '{0,0}', '{null,null}', null, null, '\x01') s where s.verdict = 'OK';
select dblink_send_query('b', succeed) from e6;
select until_b_waits();
commit;
select results_eq('select b_answer()', $$values ('no')$$, 'Q-NEVER-AGAIN: a batch that has succeeded meanwhile');
select b_answer();
select is((select count(*) from pawl.attempts where queue = 'e6'), 2::int8, 'RES-12: has a row each');
select pawl_test.put('e2') from generate_series(1, 5);
create temp table e2 as select row_number() over () n, c.* from pawl.claim_outbox_batch(5, 'w1', 1, 'e2') c;
begin;
select count(*) from (select from pawl.job where id in (select outbox_id from e2) for update) l;
select dblink_send_query('b', format($$select s.verdict from pawl.settle_batch(0, 'w1', '{%s}', '{%s}', '{1}', '{1}', '{0}', '{null}', null, null, '\x01') s$$, outbox_id, lease_token)) from e2 where n = 1;
select until_b_waits();
select pg_sleep(greatest(0, extract(epoch from (select max(lease_expires_at) from e2) - clock_timestamp()) + 0.01));
commit;
select results_eq('select b_answer()', $$values ('STALE')$$, 'RES-3: a retry that waited past the deadline');
select b_answer();
select is((select count(*) from pawl.attempts where queue in ('e', 'e2', 'e3', 'e4', 'e5')), 0::int8, 'Q-STALE: nothing was written');

-- RES-11, RULE-020-040: claims do not wait for each other
select pawl_test.put('c') from generate_series(1, 2);
begin;
insert into h values ('c1', pawl_test.take('w1', 'c'));
select results_eq($$select b_says($x$select count(*)::text from pawl.claim_outbox_batch(9, 'w2', 30, 'c')$x$)$$, $$values ('1')$$, 'RULE-020-040: a claim skips what another has locked');
rollback;
select is(pawl_test.take_count(9, 'w3', 'c'), 1::int8, 'what was given up again is found');

-- reap against reap, reap against settle: skipped, not waited for
select pawl_test.put('r');
insert into h values ('r', pawl_test.take('w1', 'r'));
select pawl_test.age('35 s');
begin;
select count(*) from pawl.repair_expired_leases();
select results_eq($$select b_says($x$select count(*)::text from pawl.repair_expired_leases() where queue = 'r'$x$)$$, $$values ('0')$$, 'RES-4: a second reaper skips what the first has');
commit;
select is((select count(*) from pawl.attempts where queue = 'r'), 1::int8, 'RES-4: exactly one row');

-- cancel against settle: whoever comes first
select pawl_test.put('k');
insert into h values ('k', pawl_test.take('w1', 'k'));
begin;
select pawl_test.done(v) from h where name = 'k';
select dblink_send_query('b', format($$select verdict from pawl.cancel_batch(0, '{%s}')$$, (v).id)) from h where name = 'k';
select until_b_waits();
commit;
select results_eq('select b_answer()', $$values ('ALREADY_SUCCEEDED')$$, 'RES-13: a settle that comes first wins');
select b_answer();

-- redrive against prune
select pawl_test.put('p');
insert into h values ('p', pawl_test.take('w1', 'p'));
select pawl_test.done(v, 'FAILED') from h where name = 'p';
select pawl_test.age('31 days');
begin;
select verdict from pawl.redrive_batch(0, array(select (v).id from h where name = 'p'));
select results_eq($$select b_says('select pawl.prune(0, 1000)::text')$$, $$select (count(*))::text from pawl.jobs where state = 'Succeeded' and finished_at < now() - interval '7 days'$$, 'prune passes over what is being redriven');
commit;
select is(pawl_test.state((v).id), 'Ready', 'the redriven job lives') from h where name = 'p';
select is(pawl_test.ledger((v).id), '1 FAILED fatal', 'with its history') from h where name = 'p';

-- rows that commit late with an earlier position
select pawl.queue_pause('l', false); -- a queue that another session is about to create would be waited for
select pawl_test.put('l');
select pawl_test.done(pawl_test.take(p_queue => 'l'));
select dblink_exec('b', 'begin');
select b_says($$select pawl.enqueue('l', 'early')::text$$);
select pawl.enqueue('l', 'late');
select results_eq($$select payload from pawl.claim_outbox_batch(1, 'w1', 30, 'l')$$, $$values ('late'::bytea)$$, 'what has committed is taken');
select pawl_test.age('1 s'); -- marks may move again
select is(pawl_test.take_count(9, 'w1', 'l'), 0::int8, 'and the mark passes over what has not');
select pawl_test.age('11 s');
select is(pawl_test.take_count(9, 'w1', 'l'), 0::int8, 'also later');
select ok((select count(*) from pawl.mark m join pawl.queue q on q.queue_id = m.line_id / 4096
           where q.name = 'l' and m.kind = 0 and m.lane = 0 and m.pos > (select min(hole) from unnest(m.holes) hole)) > 0, 'there is a mark with a hole below it');
select dblink_exec('b', 'commit');
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'l')$$, $$values ('early'::bytea)$$, 'Q-AT-LEAST-ONCE: a late commit is found below the mark');

-- the first of a key is cancelled while a claim looks: the next one is not parked behind itself
select pawl.enqueue('h', 'first', p_ordering_key => 'k');
select pawl.enqueue('h', 'next', p_ordering_key => 'k');
select pawl.enqueue('h', 'other', p_ordering_key => 'o');
select dblink_connect('c', format('dbname=%s host=%s port=5432 user=%s', current_database(), current_setting('unix_socket_directories'), current_user));
select dblink_exec('c', 'begin'); -- it leaves the other key vacant, and the claim waits for it
select * from dblink('c', $$insert into pawl.hold (shard, line_id, ordering_key) select 0, queue_id * 4096, 'o' from pawl.queue where name = 'h' returning ordering_key$$) t(x text);
begin;
select verdict from pawl.cancel_batch(0, array(select id from pawl.job where ordering_key = 'k' order by key_seq limit 1));
select dblink_send_query('b', $$select convert_from(payload, 'UTF8') from pawl.claim_outbox_batch(9, 'w1', 30, 'h')$$);
select until_b_waits();
commit;
select dblink_exec('c', 'rollback');
select dblink_disconnect('c');
select results_eq('select b_answer()', $$values ('other')$$, 'a claim passes by the key whose first job has just ended');
select b_answer();
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'h')$$, $$values ('next'::bytea)$$, 'and the next one finds who is first now');

-- somebody leaves a key vacant while a claim is about to give it to a job: the claim takes the others
select pawl.enqueue('v', 'free', p_ordering_key => 'f');
select pawl.enqueue('v', 'left', p_ordering_key => 'l');
select pawl.enqueue('v', 'plain');
select dblink_connect('c', format('dbname=%s host=%s port=5432 user=%s', current_database(), current_setting('unix_socket_directories'), current_user));
select dblink_exec('c', 'begin');
select * from dblink('c', $$insert into pawl.hold (shard, line_id, ordering_key) select 0, queue_id * 4096, 'l' from pawl.queue where name = 'v' returning ordering_key$$) t(x text);
select dblink_send_query('b', $$select convert_from(payload, 'UTF8') from pawl.claim_outbox_batch(9, 'w1', 30, 'v')$$);
select until_b_waits();
select dblink_exec('c', 'commit');
select dblink_disconnect('c');
select results_eq('select b_answer()', $$values ('free'), ('plain')$$, 'a claim passes by a key that was left vacant meanwhile');
select b_answer();
select results_eq($$select h.ordering_key, h.job_id is null from pawl.hold h join pawl.queue q on q.queue_id = h.line_id / 4096 where q.name = 'v' order by 1$$,
                  $$values ('f'::text collate "C", false), ('l', true)$$, 'of which it makes no other hold');
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'v')$$, $$values ('left'::bytea)$$, 'and the next one takes its job');

-- a transaction that claims, and puts in afterwards: its jobs stand where the mark that it has set could have passed over them
select pawl_test.put('o');
select pawl_test.done(pawl_test.take(p_queue => 'o'));
select pawl_test.age('11 s');
begin;
select pg_current_xact_id();
select b_says('select pg_current_xact_id()::text'); -- a later one, which ends before
select is(pawl_test.take_count(9, 'w1', 'o'), 0::int8, 'a claim that finds nothing sets a mark');
select ok((select max(m.pos) from pawl.mark m join pawl.queue q on q.queue_id = m.line_id / 4096 where q.name = 'o' and m.kind = 0 and m.lane = 0)
          = pg_current_xact_id()::text::int8, 'where it stands itself');
select pawl.enqueue('o', 'after');
commit;
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'o')$$, $$values ('after'::bytea)$$, 'what it put in then is found');

-- the same behind a mark that another has set further on
select dblink_exec('b', 'begin');
select b_says('select pg_current_xact_id()::text');
select pawl_test.put('o');
select pawl_test.done(pawl_test.take(p_queue => 'o'));
select pawl_test.age('11 s');
select is(pawl_test.take_count(9, 'w1', 'o'), 0::int8, 'a mark passes over a transaction that is running');
select pawl_test.age('11 s');
select results_eq($$select b_says($x$select count(*)::text from pawl.claim_outbox_batch(9, 'w2', 30, 'o')$x$)$$, $$values ('0')$$, 'which claims, and sets one itself');
select b_says($$select pawl.enqueue('o', 'below')::text$$);
select dblink_exec('b', 'commit');
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'o')$$, $$values ('below'::bytea)$$, 'what it put in then is found');

select dblink_disconnect('b');
select dblink_connect('b', format('dbname=%s host=%s port=5432 user=%s', current_database(), current_setting('unix_socket_directories'), current_user));
-- A claim of a few that waits at the gate judges by the clock as it is afterwards.
select pawl_test.put('few');
select is(pawl_test.done(pawl_test.take(p_queue => 'few')), 1, 'a line on which nothing else is to be done');
begin;
lock table pawl.gate in exclusive mode; -- as who sets a limit does
select dblink_send_query('b', $$select count(id)::text from pawl.claim_few('w', 'few', 1, 30000, 1000, array[gen_random_uuid()]) having count(*) <> 1 or count(id) = 1$$);
select until_b_waits();
select pawl_test.put('few');
commit;
select results_eq('select b_answer()', $$values ('1')$$, 'a job that came while it waited is given out');
select b_answer();
select pawl.enqueue('few', 'late', p_start_within_ms => 600000);
begin;
lock table pawl.gate in exclusive mode;
select dblink_send_query('b', $$select count(id)::text from pawl.claim_few('w', 'few', 1, 30000, 1000, array[gen_random_uuid()]) having count(*) <> 1 or count(id) = 1$$);
select until_b_waits();
update pawl.job set start_by = clock_timestamp() where payload = 'late';
commit;
select results_eq('select b_answer()', $$values ('0')$$, 'one that could have been started until then is not');
select b_answer();

-- Beside an old transaction a claim does not walk over those that waited for their time and are done.
create procedure pg_temp.drain() language plpgsql as $$
declare
    v_ids uuid[];
    v_tokens uuid[];
    v_versions int4[];
begin
    loop
        select array_agg(c.id), array_agg(c.lease_token), array_agg(c.lease_version) into v_ids, v_tokens, v_versions
        from pawl.claim_batch(0, 'w', '{old}', '{1000}', null, 1000, 1 << 30, sha256('0')) c;
        commit;
        exit when v_ids is null;
        perform from pawl.settle_batch(0, 'w', v_ids, v_tokens, v_versions, array_fill(0::int2, array[cardinality(v_ids)]), null, null, null, null, '\x00');
        commit;
    end loop;
end $$;
-- Pages that a claim of one job reads, which finds nothing.
create function pg_temp.pages(p_how text) returns int8 language plpgsql as $$
declare
    v_line text;
begin
    for v_line in execute 'explain (analyze, buffers, costs off, timing off, summary off) ' || p_how loop
        if v_line ~ 'Buffers: shared hit=' then
            return (regexp_match(v_line, 'hit=(\d+)'))[1]::int8;
        end if;
    end loop;
end $$;
select dblink_exec('b', 'begin isolation level repeatable read');
select b_says('select pg_current_xact_id()::text') <> '' is_old;
select count(*) from (select pawl.enqueue_batch(0, array_fill('old'::text, array[10000]), array(select gen_random_uuid() from generate_series(1, 10000)),
                                                array_fill('x'::bytea, array[10000]), p_delays_ms => array_fill(60000::int8, array[10000]))) e;
select pawl_test.age('2 minutes');
call pg_temp.drain();
select is((select count(*) from pawl.job where line_id = (select queue_id * 4096 from pawl.queue where name = 'old')), 0::int8, 'ten thousand are done');
update pawl.sweep set next_at = at where kind = 0;
update pawl.mark set at = at - interval '11 s';
call pg_temp.drain(); -- sweeps, and moves the marks
select count(*) from pawl.claim_few('w', 'old', 1, 30000, 1000, array[gen_random_uuid()]); -- is planned
select cmp_ok(pg_temp.pages($$select from pawl.claim_batch(0, 'w', '{old}', '{1}', null, 1, 1 << 30, sha256('0'))$$), '<', 100::int8, 'a claim reads a few pages');
select cmp_ok(pg_temp.pages($$select from pawl.claim_few('w', 'old', 1, 30000, 1000, array[gen_random_uuid()])$$), '<', 100::int8, 'so does one of a few');
select dblink_exec('b', 'commit');

-- While one reaper looks through a line, another one leaves that to it; unless it has been at it for minutes.
select pawl.enqueue('looked', 'x');
create temp view looked as select * from pawl.sweep where kind = 1 and line_id / 4096 = (select queue_id from pawl.queue where name = 'looked');
create function looks() returns int8 language sql as $$ select count(*) from looked where at > clock_timestamp() - interval '30 s' $$;
select pawl_test.reap();
update looked set at = clock_timestamp() - interval '90 s';
begin;
select pawl_test.reap();
select is(looks(), 1::int8, 'this one looks');
select b_says('select count(*)::text from pawl.repair_expired_leases()');
rollback;
select is(looks(), 0::int8, 'the other one does not, meanwhile');
select b_says('select count(*)::text from pawl.repair_expired_leases()');
select is(looks(), 1::int8, 'but does when nobody is at it');
update looked set at = clock_timestamp() - interval '3 minutes';
begin;
select pawl_test.reap();
select b_says('select count(*)::text from pawl.repair_expired_leases()');
rollback;
select is(looks(), 1::int8, 'and when one does not end for minutes');
delete from looked;
begin;
select pawl_test.reap();
select b_says('select count(*)::text from pawl.repair_expired_leases()');
rollback;
select is(looks(), 1::int8, 'or nobody ever has');

-- Whoever puts a job back waits for nobody, also where it is the first of its queue to come back.
select pawl.enqueue('back', 'x') from generate_series(1, 3);
create temp table back as select * from pawl.claim_outbox_batch(3, 'w1', 30, 'back');
update pawl.job set lease_expires_at = clock_timestamp() - interval '1 s' where id = (select outbox_id from back limit 1);
begin;
select pawl.enqueue('back', 'y', p_priority => 1::int2); -- has the queue's row
select b_says('set lock_timeout = ''2 s''');
select results_eq($$select b_says('select count(*)::text from pawl.repair_expired_leases() where queue = ''back''')$$, $$values ('1')$$, 'the reaper does not wait for who has the row of the queue');
select results_eq(format($$select b_says('select verdict from pawl.settle_batch(0, ''w1'', ''{%s}'', ''{%s}'', ''{1}'', ''{1}'', ''{0}'', ''{0}'', null, null, ''\x01'')')$$, outbox_id, lease_token), $$values ('OK')$$,
                  'nor does a retry') from back b where exists (select from pawl.job j where j.id = b.outbox_id and j.state = 1) limit 1;
select b_says('reset lock_timeout');
commit;
select dblink_disconnect('b');

select * from finish();
