-- SPDX-License-Identifier: Apache-2.0
-- Leases: claim, renew, complete, release, and what becomes of those who come too late.
select no_plan();
create temp table h (name text primary key, v pawl_test.held);
create temp table made (name text primary key, id uuid);

-- Q-CLAIM, OL-CLAIM-FN, OL-FIELDS
insert into made values ('a', pawl_test.put());
insert into h values ('a', pawl_test.take());
select is((select (v).id from h where name = 'a'), (select id from made), 'Q-CLAIM: the job is given out');
select is((select (v).version from h where name = 'a'), 1, 'Q-VERSION: the first lease is version 1');
select results_eq($$select state::int, claimed_by, lease_token, lease_expires_at > clock_timestamp(), next_attempt_at <= clock_timestamp() from pawl.job$$,
                  $$select 1, 'w1', (v).token, true, true from h$$, 'OL-FIELDS: the live row shows who holds it');
select is(pawl_test.take_count(9), 0::int8, 'Q-INVISIBLE: nobody else gets it');

-- OL-LEASE-LOST, OL-COMPLETE-FN, RES-3, Q-STALE, RULE-020-003: each part of the lease
select throws_ok($$select pawl.complete_outbox_attempt((v).id, gen_random_uuid(), 'w1', 'DISPATCHED') from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'OL-LEASE-LOST: a wrong token');
select throws_ok($$select pawl.complete_outbox_attempt((v).id, (v).token, 'w2', 'DISPATCHED') from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'OL-LEASE-LOST: a wrong worker');
select throws_ok($$select pawl.complete_outbox_attempt((v).id, (v).token, 'w1', 'DISPATCHED', p_lease_version => 2) from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'a wrong version');
select throws_ok($$select pawl.complete_outbox_attempt(gen_random_uuid(), (v).token, 'w1', 'DISPATCHED') from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'an unknown job');
select throws_ok($$select pawl.renew_outbox_lease((v).id, gen_random_uuid(), 'w1') from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'FR-002: renewal by a wrong token');
select throws_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w2') from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'FR-002: renewal by a wrong worker');
select throws_ok($$select pawl.release_outbox_lease((v).id, (v).token, 'w2') from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'release by a wrong worker');
select is(pawl_test.settle(v, 0::int2, p_worker => 'w2'), 'STALE', 'OL-LEASE-LOST: the batch form answers per row') from h where name = 'a';
select is(pawl_test.renew(v, p_worker => 'w2'), 'STALE', 'so does renewal') from h where name = 'a';
select is(pawl_test.release(v, 'w2'), 'STALE', 'and release') from h where name = 'a';
select is(pawl_test.ledger((select id from made)), '', 'Q-STALE: and nothing was changed');

-- completion in a transaction that rolls back: still leased
begin;
select pawl_test.done(v) from h where name = 'a';
rollback;
select is(pawl_test.state((select id from made)), 'InFlight', 'OL-ATOMIC: a completion that is rolled back never was');
select is((select count(*) from pawl.attempt), 0::int8, 'nor its ledger row');
create table business (id int primary key);
begin;
insert into business values (1);
savepoint before;
select throws_ok($$select pawl.complete_outbox_attempt((v).id, gen_random_uuid(), 'w1', 'DISPATCHED') from h where name = 'a'$$, 'P7002');
rollback;
select is((select count(*) from business), 0::int8, 'OL-LEASE-LOST: the caller''s transaction goes with it');

-- Q-ACK
select is(pawl_test.done(v), 1, 'Q-ACK: the number of the ledger row') from h where name = 'a';
select is(pawl_test.state((select id from made)), 'Succeeded', 'Q-ACK: Succeeded');
select is((select count(*) from pawl.job), 0::int8, 'OL-ATOMIC: the live row is gone');
select is(pawl_test.ledger((select id from made)), '1 DISPATCHED none', 'RES-12: one row');
select throws_ok($$select pawl_test.done(v) from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'a second completion is refused');
select is(pawl.complete_outbox_attempt((v).id, (v).token, 'w1', 'DISPATCHED', p_lease_version => 1), 1, 'but answered where the version is told') from h where name = 'a';
select throws_ok($$select pawl.complete_outbox_attempt((v).id, gen_random_uuid(), 'w1', 'DISPATCHED', p_lease_version => 1) from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'RULE-020-003: a repeated one needs the token too');
select throws_ok($$select pawl.complete_outbox_attempt((v).id, (v).token, 'w2', 'DISPATCHED', p_lease_version => 1) from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'and the worker');
select throws_ok($$select pawl.complete_outbox_attempt((v).id, (v).token, 'w1', 'FAILED', p_lease_version => 1) from h where name = 'a'$$, 'P7002', 'LEASE_LOST', 'another outcome is not');
select throws_ok($$select pawl.complete_outbox_attempt((v).id, (v).token, 'w1', 'SUCCEEDED') from h where name = 'a'$$, 'P7001', 'p_state is SUCCEEDED; it must be DISPATCHED, RETRYABLE or FAILED', 'p_state');
select throws_ok($$select pawl.claim_outbox_batch(0, 'w1', 30)$$, 'P7001', 'p_batch_size is 0; it must be from 1 to 10000', 'p_batch_size');
select throws_ok($$select pawl.claim_outbox_batch(1, 'w1', 0.05)$$, 'P7001', 'p_lease_seconds is 0.05; it must be from 0.1 to 315360000', 'RES-1: the shortest lease');
select throws_ok($$select pawl.claim_outbox_batch(1, '', 1)$$, 'P7001', null, 'p_worker_id');
select throws_ok($$select pawl.complete_outbox_attempt(null, gen_random_uuid(), 'w1', 'FAILED')$$, 'P7001', null, 'p_outbox_id');
select throws_ok($$select pawl.complete_outbox_attempt(gen_random_uuid(), null, 'w1', 'FAILED')$$, 'P7001', null, 'p_lease_token');

-- Q-NACK, Q-RETRY-BOUND, Q-RETRY-VISIBLE, Q-BACKOFF
insert into made values ('r', pawl.enqueue('r', 'x', p_max_retries => 2));
insert into h values ('r', pawl_test.take(p_queue => 'r'));
select is(pawl.complete_outbox_attempt((v).id, (v).token, 'w1', 'RETRYABLE', 'E1', 'went wrong', 60), 1, 'Q-NACK') from h where name = 'r';
-- One statement with one call, and no transaction around it: what has the same xmin was written by it.
select results_eq($$select j.state::int, j.lease_token, j.claimed_by, j.xmin = a.xmin from pawl.job j join pawl.attempt a on a.job_id = j.id
                    where j.id = (select id from made where name = 'r')$$,
                  $$values (0, null::uuid, null::text, true)$$, 'OL-COMPLETE-FN: lease check, ledger row and live row in one call');
select results_eq($$select error_code, error_text from pawl.attempts where queue = 'r'$$, $$values ('E1', 'went wrong')$$, 'what went wrong is kept');
select is(pawl_test.take_count(9, p_queue => 'r'), 0::int8, 'Q-RETRY-VISIBLE: not before its time');
select pawl_test.age('61 s');
update h set v = pawl_test.take(p_queue => 'r') where name = 'r';
select is((select (v).version from h where name = 'r'), 2, 'Q-VERSION: one more');
select pawl_test.done(v, 'RETRYABLE') from h where name = 'r';
select ok((select next_attempt_at <= clock_timestamp() + interval '1 s' from pawl.job where id = (select id from made where name = 'r')), 'Q-BACKOFF: at most base x 2');
select pawl_test.age('2 s');
update h set v = pawl_test.take(p_queue => 'r') where name = 'r';
select is(pawl_test.done(v, 'RETRYABLE'), 3, 'the last retry is used up') from h where name = 'r';
select is(pawl_test.state((select id from made where name = 'r')), 'Failed', 'Q-RETRY-BOUND: then it is Failed');
select is(pawl_test.ledger((select id from made where name = 'r')), '1 RETRYABLE error, 2 RETRYABLE error, 3 FAILED exhausted', 'RES-12');
insert into made values ('f', pawl_test.put('f'));
select pawl_test.done(pawl_test.take(p_queue => 'f'), 'FAILED');
select is(pawl_test.ledger((select id from made where name = 'f')), '1 FAILED fatal', 'told to fail');
insert into made values ('s', pawl_test.put('s'));
select is(pawl_test.settle(pawl_test.take(p_queue => 's'), 3::int2, p_delay_ms => 1000), 'OK', 'snooze');
select is(pawl_test.ledger((select id from made where name = 's')), '1 RETRYABLE snooze', 'RES-12: snooze');
select is((select retries::int from pawl.job where id = (select id from made where name = 's')), 0, 'uses no retry');
select is((select count(*) from (select pawl.backoff_ms(int4send(n), gen_random_uuid(), 500, 30000, 3) b from generate_series(1, 2000) n) x where b not between 0 and 4000), 0::int8, 'Q-BACKOFF: in bounds');
select is((select max(pawl.backoff_ms(int4send(n), gen_random_uuid(), 500, 30000, 9999)) <= 30000 from generate_series(1, 500) n), true, 'Q-BACKOFF: never above max');
select ok((select max(b) > 3900 and min(b) < 100 from (select pawl.backoff_ms(int4send(n), gen_random_uuid(), 500, 30000, 3) b from generate_series(1, 2000) n) x), 'Q-BACKOFF: full jitter');

-- Q-EXTEND, RES-1, RES-6
insert into made values ('x', pawl_test.put('x'));
insert into h values ('x', pawl_test.take(p_queue => 'x', p_lease_seconds => 30));
select ok(pawl.renew_outbox_lease((v).id, (v).token, 'w1', 120) > clock_timestamp() + interval '119 s', 'Q-EXTEND') from h where name = 'x';
select ok(pawl.renew_outbox_lease((v).id, (v).token, 'w1', 1) > clock_timestamp() + interval '100 s', 'RES-1: never shortens') from h where name = 'x';
select pawl_test.age('91 s');
select throws_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 120) from h where name = 'x'$$, 'P7007', 'TIMEOUT', 'RES-6: not past the execution timeout');
select throws_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 120, true) from h where name = 'x'$$, 'P7007', 'TIMEOUT', 'RES-6: what has started stays so');
insert into made values ('u', pawl_test.put('u'));
insert into h values ('u', pawl_test.take(p_queue => 'u', p_lease_seconds => 40));
select is((select run_until - claimed_at from pawl.leases where queue = 'u'), interval '2 min', 'RES-6: three times the lease granted');
select lives_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 130, true) from h where name = 'u'$$, 'renewed as unstarted');
select pawl_test.age('2 min');
select lives_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 130, true) from h where name = 'u'$$, 'RES-6: the timeout counts from the start of the work');
select pawl_test.age('81 s');
select throws_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 130, true) from h where name = 'u'$$, 'P7007', 'TIMEOUT', 'RES-6: but nobody waits for ever');
select lives_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 130) from h where name = 'u'$$, 'it may begin');
-- a word of cancellation counts where there was one
insert into made values ('n', pawl_test.put('n'));
select pawl_test.settle(pawl_test.take(p_queue => 'n'), 2::int2, 9::int2);
select is(pawl_test.ledger((select id from made where name = 'n')), '1 FAILED fatal', 'a job that nobody cancelled is not cancelled');
-- RES-13
insert into made values ('x2', pawl_test.put('x2'));
update h set v = pawl_test.take(p_queue => 'x2', p_lease_seconds => 30) where name = 'x';
select is((select verdict from pawl.cancel_batch(0, array(select (v).id from h where name = 'x'))), 'OK', 'RES-13: marked');
select throws_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1', 120) from h where name = 'x'$$, 'P7005', 'CANCELLED', 'RES-13: renew answers CANCELLED');
select is(pawl_test.done(v), 1, 'RES-13: a settle that comes first wins') from h where name = 'x';

-- expiry
insert into made values ('e', pawl_test.put('e'));
insert into h values ('e', pawl_test.take(p_queue => 'e'));
select pawl_test.age('31 s');
select throws_ok($$select pawl_test.done(v) from h where name = 'e'$$, 'P7002', 'LEASE_LOST', 'RES-3: an expired lease cannot complete, though nobody has taken the job');
select throws_ok($$select pawl.renew_outbox_lease((v).id, (v).token, 'w1') from h where name = 'e'$$, 'P7002', 'LEASE_LOST', 'nor renew');
select throws_ok($$select pawl.release_outbox_lease((v).id, (v).token, 'w1') from h where name = 'e'$$, 'P7002', 'LEASE_LOST', 'nor release');
select is(pawl_test.settle(v, a::int2, p_delay_ms => 0), 'STALE', 'nor settle as ' || a) from h, generate_series(0, 3) a where name = 'e';

-- release: RES-12
insert into made values ('l', pawl_test.put('l'));
insert into h values ('l', pawl_test.take(p_queue => 'l'));
select lives_ok($$select pawl.release_outbox_lease((v).id, (v).token, 'w1') from h where name = 'l'$$, 'release');
select is(pawl_test.ledger((select id from made where name = 'l')), '', 'RES-12: writes no row');
select is(pawl_test.take_count(9, p_queue => 'l'), 1::int8, 'Ready at once');
select is(pawl_test.release(v), 'STALE', 'a repeated release is STALE') from h where name = 'l';

-- RES-8: tokens
select pawl_test.put('k') from generate_series(1, 500);
create temp table tokens as select lease_token from pawl.claim_outbox_batch(500, 'w1', 30, 'k');
select is((select count(distinct lease_token) from tokens), 500::int8, 'RES-8: a token for every job');

-- Q-FIFO, priorities, those that came back, those whose time has come, arrivals in the order given whatever their ids
select pawl_test.put('o', 5), pawl_test.put('o', 9), pawl_test.put('o', 0);
select results_eq($$select priority::int from pawl.claim_outbox_batch(9, 'w1', 30, 'o')$$, $$values (0), (5), (9)$$, 'Q-FIFO: by priority');
select pawl.enqueue_batch(0, '{i,i,i}', '{01930000-0000-7000-8000-0000000000ff,01930000-0000-7000-8000-0000000000aa,01930000-0000-7000-8000-0000000000cc}', '{1,2,3}');
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'i')$$, $$values ('1'::bytea), ('2'), ('3')$$, 'Q-FIFO: one call, in the order given');
select pawl.enqueue('v', 'back');
insert into h values ('v', pawl_test.take(p_queue => 'v'));
select pawl.enqueue('v', 'timed', p_delay_ms => 1000);
select pawl.enqueue('v', 'arrived');
select pawl_test.age('2 s');
select pawl_test.release(v) from h where name = 'v';
select results_eq($$select payload from pawl.claim_outbox_batch(9, 'w1', 30, 'v')$$, $$values ('back'::bytea), ('timed'), ('arrived')$$, 'came back, time has come, arrived');

-- bytes
select pawl.enqueue('y', repeat('x', 100)) from generate_series(1, 5);
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'y', 250)), 2::int8, 'a claim stops before it carries too much');
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'y', 10)), 1::int8, 'but gives one at least');

-- pause
select pawl_test.put('p');
select pawl.queue_pause('p', true);
select is(pawl_test.take_count(9, p_queue => 'p'), 0::int8, 'a paused queue gives nothing');
select pawl.queue_pause('p', false);
select is(pawl_test.take_count(9, p_queue => 'p'), 1::int8, 'until it is resumed');

-- batches with a job named twice, mixed actions, stale rows
select pawl_test.put('m') from generate_series(1, 6);
create temp table m as select row_number() over () n, c.* from pawl.claim_outbox_batch(6, 'w1', 30, 'm') c;
select results_eq($$
    select ordinal, verdict, state::int, attempt_no from pawl.settle_batch(0, 'w1',
        (select array_agg(outbox_id order by n) from m), (select array_agg(case when n = 2 then gen_random_uuid() else lease_token end order by n) from m),
        (select array_agg(lease_version order by n) from m), '{0,0,1,2,3,0}', '{0,0,0,0,0,0}', '{null,null,null,null,5,null}', null, '{null,null,null,null,null,note}', '\x01')$$,
    $$values (1, 'OK', 2, 1), (2, 'STALE', null, null), (3, 'OK', 0, 1), (4, 'OK', 3, 1), (5, 'OK', 0, 1), (6, 'OK', 2, 1)$$, 'OL-LEASE-LOST: each row of a mixed batch has its verdict');
select is((select error_text from pawl.attempts a join m on a.job_id = m.outbox_id where m.n = 6), 'note', 'a success may carry a text');
select results_eq($$
    select s.ordinal, s.verdict, s.attempt_no from m, pawl.settle_batch(0, 'w1', array[outbox_id, outbox_id], array[lease_token, lease_token], array[1, 1], '{1,0}', '{0,0}', '{null,null}', null, null, '\x01') s
    where m.n = 3$$, $$values (1, 'OK', 1), (2, 'STALE', null)$$, 'replayed by its ledger row; another action is STALE');
select pawl_test.put('m2');
create temp table m2 as select * from pawl.claim_outbox_batch(6, 'w1', 30, 'm2') c;
select results_eq($$
    select s.ordinal, s.verdict, s.attempt_no from m2, pawl.settle_batch(0, 'w1', array[outbox_id, outbox_id], array[lease_token, lease_token], array[1, 1], '{1,0}', '{0,0}', '{null,null}', null, null, '\x01') s$$,
    $$values (1, 'OK', 1), (2, 'STALE', null)$$, 'a job named twice: the order of its rows decides');
select pawl_test.put('m3');
create temp table m3 as select * from pawl.claim_outbox_batch(6, 'w1', 30, 'm3') c;
select results_eq($$
    select s.ordinal, s.verdict, s.lease_ms from m3, pawl.renew_batch(0, 'w1', array[outbox_id, outbox_id, gen_random_uuid()], array[lease_token, lease_token, lease_token], array[1, 1, 1], '{40000,50000,50000}', null) s order by 1$$,
    $$values (1, 'OK', 40000::int8), (2, 'OK', 50000), (3, 'GONE', null)$$, 'renewal of a job named twice');
select * from finish();
