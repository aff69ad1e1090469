-- SPDX-License-Identifier: Apache-2.0
-- OL-QUERIES: what the views say, number by number, on a world in which every number is another one.
select no_plan();
create temp table taken (name text, id uuid, token uuid);
create function take(p_name text, p_worker text, p_count int4, p_lease numeric default 60) returns void language sql as $$
    insert into taken select p_name, outbox_id, lease_token from pawl.claim_outbox_batch(p_count, p_worker, p_lease, 'busy')
$$;
-- 30 jobs: 5 succeed, 2 fail; 4 are held by w1 and 3 by w2, of which 2 have expired; 1 is cancelled while it is held. 9 are delayed.
select pawl.enqueue('busy', 'x') from generate_series(1, 30);
select pawl.enqueue('busy', 'x', p_delay_ms => 3600000) from generate_series(1, 9);
select take('done', 'w1', 5), take('failed', 'w1', 2);
select pawl.complete_outbox_attempt(id, token, 'w1', 'DISPATCHED') from taken where name = 'done';
select pawl.complete_outbox_attempt(id, token, 'w1', 'FAILED', 'E1', 'broken') from taken where name = 'failed';
select pawl_test.age('100 s');
select take('held1', 'w1', 4), take('held2', 'w2', 1), take('stale', 'w2', 2, 0.1);
update pawl.job set lease_expires_at = clock_timestamp() - interval '40 s', claimed_at = clock_timestamp() - interval '70 s' where id in (select id from taken where name = 'stale');
select pawl.cancel_batch(0, array(select id from taken where name = 'held2'));
select pawl.queue_pause('still', true);
select pawl.enqueue('other', 'x');

select results_eq($$select queue, is_paused, ready::int, delayed::int, in_flight::int, expired::int, succeeded::int, failed::int, in_flight_by_worker from pawl.queue_stats order by queue$$,
    $$values ('busy', false, 25, 9, 7, 2, 5, 2, '{"w1": 4, "w2": 3}'::jsonb), ('other', false, 1, 0, 0, 0, 0, 0, '{}'), ('still', true, 0, 0, 0, 0, 0, 0, '{}')$$, 'queue_stats: depth by state, in flight by worker');
select ok(oldest_ready_age between interval '100 s' and interval '160 s', 'queue_stats: the age of the oldest that is due') from pawl.queue_stats where queue = 'busy';
select is(oldest_ready_age, interval '0', 'queue_stats: no age where nothing waits') from pawl.queue_stats where queue = 'still';
select results_eq($$select claimed_by, count(*)::int, count(*) filter (where is_expired)::int, count(*) filter (where is_cancel_asked)::int, min(lease_version), sum(lost_leases)::int from pawl.leases where queue = 'busy' group by 1 order by 1$$,
    $$values ('w1', 4, 0, 0, 1, 0), ('w2', 3, 2, 1, 1, 0)$$, 'leases: who holds what');
select ok(bool_and(lease_expires_at between clock_timestamp() + interval '1 s' and clock_timestamp() + interval '60 s' and run_until > lease_expires_at and claimed_at <= clock_timestamp()), 'leases: until when') from pawl.leases where not is_expired;
select set_eq('select id from pawl.stale_leases', $$select id from taken where name = 'stale'$$, 'stale_leases: those that have expired');
select ok(bool_and(overdue between interval '40 s' and interval '90 s'), 'stale_leases: and since when') from pawl.stale_leases;
select results_eq($$select state, count(*)::int from pawl.jobs where queue = 'busy' group by 1 order by 1$$, $$values ('Failed', 2), ('InFlight', 7), ('Ready', 25), ('Succeeded', 5)$$, 'Q-ONE-STATE: jobs: each once');
select results_eq($$select outcome, reason, count(*)::int from pawl.attempts where queue = 'busy' group by 1, 2 order by 1$$, $$values ('DISPATCHED', 'none', 5), ('FAILED', 'fatal', 2)$$, 'attempts: one row for each that ended');
select results_eq($$select distinct reason, error_code, error_text, payload_len from pawl.dead_letters$$, $$values ('fatal', 'E1', 'broken', 1)$$, 'dead_letters: with the last error');
-- and after the reaper has been here
select count(*) from pawl.repair_expired_leases();
select is((select count(*) from pawl.stale_leases), 0::int8, 'stale_leases: none once they are recovered');
select results_eq($$select ready::int, in_flight::int, expired::int from pawl.queue_stats where queue = 'busy'$$, $$values (27, 5, 0)$$, 'queue_stats: they wait again');
select pawl.worker_seen('w1', 0::int2, 'host', '1.0', 'a b'), pawl.worker_seen('r1', 1::int2, 'host', '1.0');
select results_eq($$select name, kind, host, version, queues from pawl.workers order by name$$, $$values ('r1', 'reaper', 'host', '1.0', ''), ('w1', 'worker', 'host', '1.0', 'a b')$$, 'workers');
-- The numbers of the functions are those of the views.
select results_eq($$select queue, ready, delayed, in_flight, expired, succeeded, failed from pawl.list_stats(null, 10)$$, $$select queue, ready, delayed, in_flight, expired, succeeded, failed from pawl.queue_stats order by queue$$, 'list_stats says the same');
select * from finish();
