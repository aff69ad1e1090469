-- SPDX-License-Identifier: Apache-2.0
-- What operators do and see.
select no_plan();
create temp table made (name text primary key, id uuid);

-- RES-13, Q-DEAD-LETTER
insert into made values ('a', pawl_test.put()), ('b', pawl_test.put());
select results_eq($$select verdict, state::int from pawl.cancel_batch(0, array(select id from made where name = 'a'))$$, $$values ('OK', 3)$$, 'RES-13: a Ready job is Failed at once');
select is(pawl_test.ledger(id), '1 FAILED cancelled', 'RES-12') from made where name = 'a';
select results_eq($$select verdict, state::int from pawl.cancel_batch(0, array(select id from made where name = 'a'))$$, $$values ('OK', 3)$$, 'cancelled again');
select pawl_test.done(pawl_test.take());
select results_eq($$select verdict from pawl.cancel_batch(0, array[(select id from made where name = 'b'), gen_random_uuid()])$$, $$values ('ALREADY_SUCCEEDED'), ('GONE')$$, 'what cannot be cancelled');
select results_eq($$select id, queue, reason, attempts from pawl.dead_letters$$, $$select id, 'q', 'cancelled', 1 from made where name = 'a'$$, 'Q-DEAD-LETTER: listed');
select results_eq($$select verdict, state::int from pawl.redrive_batch(0, array[(select id from made where name = 'a'), (select id from made where name = 'b'), gen_random_uuid()])$$,
                  $$values ('OK', 0), ('ALREADY_SUCCEEDED', null), ('GONE', null)$$, 'Q-DEAD-LETTER: redriven');
select results_eq($$select verdict from pawl.redrive_batch(0, array(select id from made where name = 'a'))$$, $$values ('NOT_FAILED')$$, 'once');
select results_eq($$select attempts, retries::int, lost_leases::int from pawl.job$$, $$values (1, 0, 0)$$, 'counters start again, the ledger goes on');
select is(pawl_test.done(pawl_test.take(), 'FAILED'), 2, 'OL-APPEND-ONLY: numbered on after a redrive');
select results_eq($$select verdict, state::int from pawl.discard_batch(0, array(select id from made where name = 'a'))$$, $$values ('OK', 3)$$, 'Q-DEAD-LETTER: discarded');
select results_eq($$select verdict from pawl.discard_batch(0, array(select id from made where name = 'a'))$$, $$values ('OK')$$, 'again');
select results_eq($$select verdict from pawl.redrive_batch(0, array(select id from made where name = 'a'))$$, $$values ('GONE')$$, 'there is nothing left to redrive');
select is((select payload from pawl.dead_letter), null, 'the payload is gone');
select is(pawl_test.ledger(id), '1 FAILED cancelled, 2 FAILED fatal', 'the history stays') from made where name = 'a';
insert into made values ('k', pawl.enqueue('k', 'x', p_dedupe_key => 'key'));
select pawl_test.done(pawl_test.take(p_queue => 'k'), 'FAILED');
insert into made values ('k2', pawl.enqueue('k', 'x', p_dedupe_key => 'key'));
select results_eq($$select verdict from pawl.redrive_batch(0, array(select id from made where name = 'k'))$$, $$values ('DUPLICATE')$$, 'redrive needs the key');

-- prune: OL-APPEND-ONLY
select is(pawl.prune(0, 100), 0, 'nothing is old yet');
select pawl_test.age('8 days');
select is(pawl.prune(0, 100), 1, 'a success goes after a week');
select is(pawl_test.state(id), null, 'all of it') from made where name = 'b';
select pawl_test.age('23 days');
select is(pawl.prune(0, 1), 1, 'failures after a month, no more than asked');
select is(pawl.prune(0, 100), 1, 'and the rest');
select is((select count(*) from pawl.attempt), 0::int8, 'no history is left');
select is(pawl_test.state(id), 'Ready', 'a live job is never touched') from made where name = 'k2';
select pawl.queue_set('k', 30000, null, 3, 10, 500, 30000, null, null);
select pawl_test.done(pawl_test.take(p_queue => 'k'));
select pawl_test.age('3000 days');
select is(pawl.prune(0, 100), 0, 'for ever is for ever');

-- Of jobs that succeed together, one of each line stands for the others: they are counted and pruned all the same.
select pawl_test.put(q) from unnest('{p1,p1,p1,p1,p1,p2,p2}'::text[]) q;
with c as (select array_agg(c.id) i, array_agg(c.lease_token) t, array_agg(c.lease_version) v
           from pawl.claim_lines('{0}', 'w', '{p1,p2}', '{10,10}', null, 10, 1 << 30, sha256('0')) c)
select is((select count(*) from c, pawl.settle_batch(0, 'w', c.i, c.t, c.v, array_fill(0::int2, '{7}'), null, null, null, null, '\x00') s
           where s.verdict = 'OK'), 7::int8, 'seven jobs of two queues succeed together');
select results_eq($$select a.batch, cardinality(a.others) from pawl.attempt a where a.batch > 1 order by 1$$, $$values (2, 1), (5, 4)$$,
                  'one of each queue stands for the others');
select results_eq($$select queue, succeeded from pawl.list_stats('p', 2)$$, $$values ('p1', 5::int8), ('p2', 2)$$, 'they are counted');
select pawl_test.age('8 days');
select is(pawl.prune(0, 2), 2, 'two of them are pruned, no more than asked');
select is((select sum(succeeded) from pawl.list_stats('p', 2)), 5::numeric, 'and counted no more');
select is((select sum(a.batch) from pawl.attempt a join pawl.queue q on q.queue_id = a.line_id / 4096 where q.name ~ '^p'),
          (select count(*) from pawl.attempt a join pawl.queue q on q.queue_id = a.line_id / 4096 where q.name ~ '^p')::int8,
          'somebody stands for each that is left');
select is(pawl.prune(0, 1) + pawl.prune(0, 1) + pawl.prune(0, 100), 5, 'so are the others');
select is((select count(*) from pawl.attempt a join pawl.queue q on q.queue_id = a.line_id / 4096 where q.name ~ '^p'), 0::int8,
          'and none is left');

-- filters
select pawl_test.put('f') from generate_series(1, 5);
select pawl_test.take('w7', 'f') from generate_series(1, 2);
select is(pawl.cancel_where('f', 0, 0::int2, 'w7', 1), 1, 'cancel by worker, no more than asked');
select is(pawl.cancel_where('f', 0, 0::int2, 'w7', 10), 1, 'the other one: marked ones do not count');
select is(pawl.cancel_where('f', 1, 0::int2, null, 10), 3, 'cancel by state');
select is(pawl.cancel_where('nowhere', 0, 0::int2, null, 10), 0, 'an unknown queue has none');
select throws_ok($$select pawl.cancel_where('f', 8, 0::int2, null, 10)$$, 'P7001', null, 'a state that cannot be cancelled');
select throws_ok($$select pawl.redrive_where('f', 1, 0::int2, null, 10)$$, 'P7001', null, 'a state that cannot be redriven');
select is(pawl.redrive_where('f', 0, 9::int2, null, 2), 2, 'redrive by reason');
select is(pawl.discard_where('f', 0, 0::int2, null, 10), 1, 'discard the rest');
select is(pawl.discard_where('f', 0, 0::int2, null, 10), 0, 'once');

-- lists
select is((select count(*) from pawl.list_jobs('f', 0, 0::int2, null, null, 100)), 5::int8, 'a list of a queue');
select is((select count(*) from pawl.list_jobs('f', 2, 0::int2, null, null, 100)), 2::int8, 'by state');
select is((select count(*) from pawl.list_jobs(null, 0, 0::int2, 'w7', null, 100)), 2::int8, 'by worker');
select is((select array_agg(l.id) from pawl.list_jobs('f', 0, 0::int2, null, null, 100) l), (select array_agg(id order by id) from pawl.jobs where queue = 'f'), 'in the order of ids');
select is((select array_agg(l.id) from pawl.list_jobs('f', 0, 0::int2, null, (select id from pawl.jobs where queue = 'f' order by id offset 1 limit 1), 2) l),
          (select array_agg(id order by id) from (select id from pawl.jobs where queue = 'f' order by id offset 2 limit 2) p), 'page by page');
select is((select count(*) from pawl.list_jobs(null, 0, 0::int2, null, null, 100) where payload is not null or lease_token is not null), 0::int8, 'NFR-003: no payload, no token in a list');
select is((select count(*) from pawl.mine('w7', null, 10)), 2::int8, 'mine: valid leases');
select is((select count(*) from pawl.mine('w7', null, 10) where lease_token is null or payload is null), 0::int8, 'mine: with token and payload');
select is((select count(*) from pawl.get_job(0, gen_random_uuid())), 0::int8, 'an unknown job is gone');
select results_eq($$select state::int, priority::int, retries::int, attempts, payload_len, payload from pawl.get_job(0, (select id from made where name = 'k2'))$$,
                  $$values (2, 5, 0, 1, 1, null::bytea)$$, 'a job that succeeded is told from its last row');
select is((select count(*) from pawl.list_attempts(0, gen_random_uuid(), 0, 10)), 0::int8, 'no memory of a job');
select results_eq($$select attempt_no from pawl.list_attempts(0, (select id from made where name = 'k2'), 0, 10)$$, $$values (0), (1)$$, 'a ledger, after the row that says that the job is known');
select is((select count(*) from pawl.list_leases('f', 'w7', null, 10)), 2::int8, 'OL-QUERIES: leases');
select pawl_test.age('1 min');
select is((select count(*) from pawl.mine('w7', null, 10)), 0::int8, 'mine: no expired ones');
select is((select count(*) from pawl.list_leases('f', 'w7', null, 10) where is_expired), 2::int8, 'OL-QUERIES: expired leases');

-- workers
select pawl.worker_seen('w7', 0::int2, 'host', '1.0'), pawl.worker_seen('w7', 0::int2, 'host', '1.1'), pawl.worker_seen('r1', 1::int2, 'host', '1.0');
select results_eq($$select name, kind::int, version, leases from pawl.list_workers(null, 10)$$, $$values ('r1', 1, '1.0', 0::int8), ('w7', 0, '1.1', 2)$$, 'RULE-020-052: workers with their leases');
select is((select count(*) from pawl.list_workers('r1', 10)), 1::int8, 'page by page');
begin;
create temp table scans as select pg_stat_get_xact_numscans('pawl.job'::regclass) n;
select results_eq($$select name, leases from pawl.list_workers(null, 10, false)$$, $$values ('r1', 0::int8), ('w7', 0)$$, 'or without them');
select is(pg_stat_get_xact_numscans('pawl.job'::regclass), (select n from scans), 'and then no job is looked at');
commit;
select pawl.worker_ended('w7'), pawl.worker_ended('never');
select is((select count(*) from pawl.list_workers(null, 10)), 1::int8, 'one has ended');
select pawl.worker_seen('w7', 0::int2, 'host', '1.1');
update pawl.worker set last_seen = last_seen - interval '8 days';
select pawl.prune(0, 10);
select is((select array_agg(name) from pawl.list_workers(null, 10)), '{w7}', 'prune forgets who went without a word, unless it holds a lease');

-- queues
select results_eq($$select lease_ms, execution_timeout_ms, max_retries, is_paused from pawl.queue_get('never-set')$$, $$values (30000::int8, null::int8, 3, false)$$, 'RES-1: defaults');
select pawl.queue_set('z', 5000, 60000, 7, 4, 100, 2000, 1000, 2000);
select results_eq($$select lease_ms, execution_timeout_ms, max_retries, max_lost_leases, backoff_base_ms, backoff_max_ms, keep_succeeded_ms, keep_failed_ms from pawl.queue_get('z')$$,
                  $$values (5000::int8, 60000::int8, 7, 4, 100::int8, 2000::int8, 1000::int8, 2000::int8)$$, 'settings are kept');
select throws_ok($$select pawl.queue_set('z', 99, null, 3, 10, 500, 30000, null, null)$$, 'P7001', 'p_lease_ms is 99; it must be from 100 to 315360000000', 'RES-1: the shortest lease');
select results_eq($$select queue, ready, delayed, in_flight, expired, succeeded, failed from pawl.queue_stats where queue = 'f'$$,
                  $$values ('f', 2::int8, 0::int8, 2::int8, 2::int8, 0::int8, 1::int8)$$, 'OL-QUERIES: depth by state');
select is((select in_flight_by_worker from pawl.queue_stats where queue = 'f'), '{"w7": 2}', 'OL-QUERIES: in flight by worker');
select ok((select oldest_ready_age >= interval '1 min' from pawl.queue_stats where queue = 'f'), 'OL-QUERIES: how long the oldest waits');
select is((select array_agg(queue) from pawl.list_stats('k', 10)), '{z}', 'by name; a queue with nothing at all is not told');
select results_eq($$select queue, ready, delayed, in_flight, expired from pawl.list_depths('f', null, 1)$$, $$values ('f', 2::int8, 0::int8, 2::int8, 2::int8)$$, 'depth of one queue');
select ok((select oldest_due_ms >= 60000 from pawl.list_depths(null, 'e', 1)), 'depth: how long the oldest waits; page by page');
select is((select count(*) from pawl.list_depths('nobody', null, 10)), 0::int8, 'depth of a queue that is not there');
select is((select array_agg(queue) from pawl.list_depths(null, 'k', 10)), '{z}', 'depth: by name');
select results_eq($$select shards, is_notifying from pawl.hello()$$, $$values (1, true)$$, 'hello');
select throws_ok($$select pawl.install(2)$$, 'P7001', 'p_shards is 2; it must be 1, as it was installed', 'the number of shards is fixed');
select lives_ok($$select pawl.install(1)$$, 'saying it again is fine');
select * from finish();
