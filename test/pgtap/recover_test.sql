-- SPDX-License-Identifier: Apache-2.0
-- What nobody ends: expired leases, missed deadlines.
select no_plan();
create temp table h (name text primary key, v pawl_test.held);
create temp table made (name text primary key, id uuid);

-- OL-REPAIR-FN, RULE-020-021, RES-4, Q-TTL
insert into made values ('a', pawl_test.put());
insert into h values ('a', pawl_test.take());
select is((select count(*) from pawl.repair_expired_leases()), 0::int8, 'a valid lease is left alone');
select pawl_test.age('35 s');
select is((select count(*) from pawl.stale_leases), 1::int8, 'OL-QUERIES: it is told as stale');
select results_eq($$select outbox_id, queue, worker, lease_version, state, reason, overdue_ms between 5000 and 6000 from pawl.repair_expired_leases()$$,
                  $$select id, 'q', 'w1', 1, 'Ready', 'expired', true from made where name = 'a'$$, 'OL-REPAIR-FN: says which');
select results_eq($$select state::int, claimed_by, lease_token, lease_expires_at, lost_leases::int from pawl.job$$,
                  $$values (0, null::text, null::uuid, null::timestamptz, 1)$$, 'RULE-020-021: cleared');
select is(pawl_test.ledger((select id from made)), '1 ZOMBIE_REQUEUE expired', 'OL-REPAIR-FN: its row');
select is((select count(*) from pawl.repair_expired_leases()), 0::int8, 'RES-4: once');
select throws_ok($$select pawl_test.done(v) from h$$, 'P7002', 'LEASE_LOST', 'Q-STALE: who lost it cannot complete it');

-- RES-4: a claim takes an expired job directly
update h set v = pawl_test.take('w2');
select pawl_test.age('35 s');
update pawl.queue set backoff_base_ms = 3600000, backoff_max_ms = 3600000 where name = 'q'; -- so that it has not passed already
update h set v = pawl_test.take('w3') where true;
select is((select v from h), null, 'RES-5: from the second loss in a row on it waits') where (select lost_in_a_row from pawl.job) = 2;
select is(pawl_test.ledger((select id from made)), '1 ZOMBIE_REQUEUE expired, 2 ZOMBIE_REQUEUE expired', 'RES-4: recovered by a claim, with its row');
select ok((select next_attempt_at <= clock_timestamp() + interval '1 h' from pawl.job), 'RES-5: by the backoff of no retry');

-- RES-5: poison
insert into made values ('p', pawl_test.put('p'));
update pawl.job set lost_leases = 9 where id = (select id from made where name = 'p');
select pawl_test.take(p_queue => 'p');
select pawl_test.age('35 s');
select is((select reason from pawl.repair_expired_leases() where queue = 'p'), 'poison', 'RES-5: the tenth loss');
select is(pawl_test.state((select id from made where name = 'p')), 'Failed', 'RES-5: Failed');
select is(pawl_test.ledger((select id from made where name = 'p')), '1 FAILED poison', 'RES-4');

-- RES-13: a marked one
insert into made values ('c', pawl_test.put('c'));
select pawl_test.take(p_queue => 'c');
select pawl.cancel_batch(0, array(select id from made where name = 'c'));
select pawl_test.age('35 s');
select is(pawl_test.take_count(9, p_queue => 'c'), 0::int8, 'RES-13: at expiry a claim fails it');
select is(pawl_test.ledger((select id from made where name = 'c')), '1 FAILED cancelled', 'RES-13');

-- start-by
insert into made values ('s', pawl.enqueue('s', 'x', p_start_within_ms => 10000));
select pawl_test.age('11 s');
select is(pawl_test.take_count(9, p_queue => 's'), 0::int8, 'a missed job is never given out');
select results_eq($$select queue, worker, lease_version, state, reason from pawl.repair_expired_leases() where queue = 's'$$,
                  $$values ('s', null::text, 0, 'Failed', 'start_by')$$, 'and failed by the reaper');

-- oldest first
select pawl_test.put('o') from generate_series(1, 3);
select pawl_test.take(p_queue => 'o', p_lease_seconds => l) from unnest('{30,10,20}'::numeric[]) l;
select pawl_test.age('1 min');
select results_eq($$select overdue_ms / 10000 from pawl.repair_expired_leases(2) where queue = 'o'$$, $$values (5::int8), (4)$$, 'those that waited longest first');
select is((select count(*) from pawl.repair_expired_leases() where queue = 'o'), 1::int8, 'and the rest');

-- Beyond the reach of claims: a lease behind more Ready jobs than a claim ever skips, marks lost
select pawl.enqueue('deep', 'first');
insert into h values ('deep', pawl_test.take(p_queue => 'deep'));
update pawl.job set pos = pos + 1000000 where line_id / 4096 = (select queue_id from pawl.queue where name = 'deep');
select count(*) from pawl.enqueue_batch(0, array_fill('deep'::text, array[10000]), array(select gen_random_uuid() from generate_series(1, 10000)), array_fill('x'::bytea, array[10000]), p_is_new => true);
select count(*) from pawl.enqueue_batch(0, array_fill('deep'::text, array[1000]), array(select gen_random_uuid() from generate_series(1, 1000)), array_fill('x'::bytea, array[1000]), p_is_new => true);
truncate pawl.mark;
select pawl_test.age('35 s');
delete from pawl.sweep where kind = 1;
insert into pawl.sweep (shard, line_id, kind, at, next_at) select 0, queue_id * 4096, 1, clock_timestamp(), clock_timestamp() from pawl.queue where name = 'deep';
select is((select count(*) from pawl.repair_expired_leases() where queue = 'deep'), 0::int8, 'out of reach');
select pawl_test.age('2 min');
select is((select count(*) from pawl.repair_expired_leases() where queue = 'deep'), 1::int8, 'Q-TTL: found by the look through the whole line');

-- Of a long line the reaper looks at one part in each run, from its end on. The lease stands behind more Ready jobs than a claim
-- ever skips, and before more than a part has.
create function pawl_test.put_many(p_queue text, p_thousands int4) returns int8 language sql as $$
    select count(*) from generate_series(1, p_thousands) g, lateral pawl.enqueue_batch(0, array_fill(p_queue, array[1000 + 0 * g]),
        array(select gen_random_uuid() from generate_series(1, 1000 + 0 * g)), array_fill('x'::bytea, array[1000]), p_is_new => true)
$$;
select pawl.enqueue('long', 'first');
insert into h values ('long', pawl_test.take(p_queue => 'long'));
select is(pawl_test.put_many('long', 80), 80000::int8, 'a long line');
create temp view long_jobs as select * from pawl.job where line_id / 4096 = (select queue_id from pawl.queue where name = 'long');
update long_jobs set (pos, seq) = (select pos, seq from long_jobs where state = 0 order by pos, seq offset 20000 limit 1) where state = 1;
truncate pawl.mark;
select pawl_test.age('35 s');
delete from pawl.sweep where kind = 1;
create temp view long_sweep as select * from pawl.sweep where kind = 1 and line_id / 4096 = (select queue_id from pawl.queue where name = 'long') and at <= clock_timestamp() order by at desc limit 1;
select is((select count(*) from pawl.repair_expired_leases() where queue = 'long'), 0::int8, 'the first run looks at the first part');
select ok((select reached is not null from long_sweep), 'and remembers how far it came');
select is((select count(*) from pawl.repair_expired_leases() where queue = 'long'), 0::int8, 'a second one right after it does not look at another');
select is((select count(*) from pawl.sweep s where s.kind = 1 and s.line_id = (select line_id from long_sweep)), 1::int8, 'however many reapers there are');
create function pawl_test.next_run() returns void language sql as $$ update pawl.sweep set at = at - interval '5 s' where kind = 1 $$;
select pawl_test.next_run();
select pawl_test.put_many('long', 60);
select pawl_test.take_count(3, p_queue => 'long');
update long_jobs set lease_expires_at = clock_timestamp() - interval '1 hour' where state = 1 and lease_expires_at > clock_timestamp();
select is((select count(*) from pawl.repair_expired_leases() where queue = 'long'), 4::int8, 'the second at the rest, whatever has come, and at what claims reach: each is found once');
select ok((select reached is null from long_sweep), 'and has been through');
create temp table long_before as select at from long_sweep;
select is((select count(*) from pawl.repair_expired_leases() where queue = 'long'), 0::int8, 'nothing is left');
select is((select at from long_sweep), (select at from long_before), 'and the next look through all of it comes a minute later');
select pawl_test.age('2 min');
select is((select count(*) from pawl.repair_expired_leases() where queue = 'long'), 0::int8, 'then it begins anew');
select ok((select s.at > b.at and s.reached is not null from long_sweep s, long_before b), 'with the first part');
-- Whatever a clock that was ahead has left: it begins anew, and goes on from where it came to by its own.
create temp table long_first as select reached from long_sweep;
update pawl.sweep set at = at + interval '1 hour' where kind = 1 and line_id = (select line_id from long_sweep);
select pawl_test.reap();
select is((select reached from long_sweep), (select reached from long_first), 'also after a clock that was ahead');
select pawl_test.next_run();
select pawl_test.reap();
select ok((select s.reached < f.reached from long_sweep s, long_first f), 'from part to part');
-- A run that leaves some out looks at the same part again.
delete from pawl.sweep where kind = 1;
select pawl_test.take_count(3, p_queue => 'long');
update long_jobs set lease_expires_at = clock_timestamp() - interval '1 hour' where state = 1;
update long_jobs set lane = 0, pos = 1 where state = 1; -- at the beginning: claims reach them, and the first part does not
update long_jobs set lease_expires_at = clock_timestamp() - interval '1 min', lane = 3, pos = 1000000 where id = (select id from long_jobs where state = 1 limit 1);
truncate pawl.mark;
select is((select count(*) from pawl.repair_expired_leases(2) where queue = 'long'), 2::int8, 'the older ones, which claims reach');
select pawl_test.next_run();
select is((select count(*) from pawl.repair_expired_leases(2) where queue = 'long'), 1::int8, 'and then the one that no claim reaches');
-- More than one run may take: the part is looked at again.
select pawl_test.take_count(3, p_queue => 'deep');
update pawl.job set lease_expires_at = clock_timestamp() - interval '1 hour' where state = 1 and line_id / 4096 = (select queue_id from pawl.queue where name = 'deep');
delete from pawl.sweep where kind = 1;
update pawl.job set pos = pos + 1000000 where state = 1 and line_id / 4096 = (select queue_id from pawl.queue where name = 'deep');
truncate pawl.mark;
select is((select count(*) from pawl.repair_expired_leases(2) where queue = 'deep'), 2::int8, 'of three as many as asked for');
select is((select count(*) from pawl.repair_expired_leases(2) where queue = 'deep'), 1::int8, 'and the rest in the next run, though no claim reaches it');

-- Rows in states that cannot be are repaired, never worked on twice; even where nothing kept them from being written.
alter table pawl.job drop constraint job_lease;
select pawl_test.put('odd') from generate_series(1, 3);
update pawl.job set state = 1 where id = (select id from pawl.jobs where queue = 'odd' limit 1);
delete from pawl.sweep;
select is((select count(*) from pawl.repair_expired_leases() where queue = 'odd'), 1::int8, 'InFlight without a lease is recovered');
select is(pawl_test.take_count(9, p_queue => 'odd'), 3::int8, 'and then given out as any other');
select is((select count(*) from pawl.attempts where queue = 'odd'), 1::int8, 'with its ledger row');
update pawl.job set lease_token = null where line_id / 4096 = (select queue_id from pawl.queue where name = 'odd') and state = 1;
select is((select count(*) from pawl.settle_batch(0, 'w1', array(select id from pawl.leases where queue = 'odd'), array[null::uuid, null, null], array[1, 1, 1], '{0,0,0}', '{0,0,0}', '{null,null,null}', null, null, '\x01') where verdict = 'OK'), 0::int8, 'a lease without a token is nobody''s');

-- Claims share the price of a walk: one finds what the next ones take, but not all that there is.
select pawl_test.put('many') from generate_series(1, 120);
select is(pawl_test.take_count(120, p_queue => 'many'), 120::int8, 'all are taken');
select pawl_test.age('31 s');
select is(pawl_test.take_count(1, p_queue => 'many'), 1::int8, 'RES-4: one is taken again');
select is((select count(*) from pawl.attempts where queue = 'many'), 50::int8, 'and those for the next claims are recovered with it');
select is(pawl_test.take_count(49, p_queue => 'many'), 49::int8, 'which take them');
select is(pawl_test.take_count(120, p_queue => 'many'), 70::int8, 'RES-4: and the rest');
select is((select count(*) from pawl.attempts where queue = 'many'), 120::int8, 'RES-4: each with one row');

-- hints
select ok((select count(*) from pawl.mark) > 0, 'there are marks');
select pawl_test.age('1 min');
select pawl_test.reap();
select is((select count(*) from (select from pawl.mark group by line_id, priority, lane, kind having count(*) > 2) m), 0::int8, 'old marks are deleted');
insert into pawl.sweep (shard, line_id, kind, at, next_at, reached)
values (0, 2147483647 - 4095, 1, now() - interval '2 hours', now(), '{1}'), (0, 2147483647 - 4095, 1, now() - interval '1 hour', now(), '{2}'),
       (0, 2147483647 - 4095, 1, now() + interval '1 hour', now(), '{3}');
select pawl_test.reap();
select is((select array_agg(reached[1] order by reached) from pawl.sweep where line_id = 2147483647 - 4095), '{2,3}',
          'of sweeps the last one stays, whatever a clock that was ahead has left');
-- Where the walk of those that wait for their time begins: at the first of them, or ten seconds ago.
create function pg_temp.timed_from() returns int8 language sql as $$
    select s.timed_from from pawl.sweep s join pawl.queue q on q.queue_id * 4096 = s.line_id and q.name = 'timed' where s.kind = 0 order by s.at desc limit 1
$$;
create function pg_temp.sweep_again() returns void language sql as $$ update pawl.sweep set next_at = at where kind = 0 $$;
select pawl_test.put('timed');
select is(pawl_test.done(pawl_test.take(p_queue => 'timed')), 1, 'a line is swept');
select ok(pg_temp.timed_from() between pawl.micros(now() - interval '11 s') and pawl.micros(now() - interval '9 s'), 'of those that wait for their time there are none: ten seconds ago');
select pawl.enqueue('timed', 'late', p_delay_ms => 60000);
select pawl.enqueue('timed', 'later', p_delay_ms => 60000, p_priority => 2);
update pawl.job j set pos = j.pos - 80000000, next_attempt_at = j.next_attempt_at - interval '80 s' where j.lane = 3 and j.payload = 'late';
select is(pawl_test.take_count(2, p_queue => 'timed'), 0::int8, 'one that was committed more than ten seconds late is not found at once');
select pg_temp.sweep_again();
select is(pawl_test.take_count(1, p_queue => 'timed'), 1::int8, 'but by the next sweep');
select pawl.enqueue('timed', 'x', p_delay_ms => 60000) from generate_series(1, 3);
update pawl.job j set pos = j.pos - 80000000 + j.seq, next_attempt_at = j.next_attempt_at - interval '80 s' where j.lane = 3 and j.payload = 'x';
select min(j.pos) first_timed from pawl.job j join pawl.queue q on q.queue_id * 4096 = j.line_id and q.name = 'timed' where j.lane = 3 and j.payload = 'x' \gset
select pg_temp.sweep_again();
select is(pawl_test.take_count(1, p_queue => 'timed'), 1::int8, 'of three that are due one is taken');
select is(pg_temp.timed_from(), :first_timed, 'the walk begins at the first that the sweep has seen');
select is(pawl_test.take_count(5, p_queue => 'timed'), 2::int8, 'so that the others are found without another one');
update pawl.job j set pos = j.pos - 80000000, next_attempt_at = j.next_attempt_at - interval '80 s' where j.lane = 3 and j.payload = 'later';
select pg_temp.sweep_again();
select is(pawl_test.take_count(5, p_queue => 'timed'), 1::int8, 'whatever their priority');

select * from finish();
