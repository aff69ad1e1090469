-- SPDX-License-Identifier: Apache-2.0
-- Ordering keys and the bound on what is in flight, as a program that knows SQL only sees them. RES-7 in all of it.
select no_plan();

-- Jobs are named by their payloads.
create function put(p_name text, p_key text default 'k', p_delay_ms int8 default 0, p_within_ms int8 default null,
                    p_priority int4 default 5, p_dedupe_key text default null) returns uuid language sql as $$
    select pawl.enqueue('q', p_name, p_ordering_key => p_key, p_delay_ms => p_delay_ms, p_start_within_ms => p_within_ms,
                        p_priority => p_priority, p_dedupe_key => p_dedupe_key)
$$;
-- Several in one call; gives the verdicts.
create function put_all(p_names text[], p_keys text[], p_ids uuid[] default null, p_dedupe_keys text[] default null) returns text
language sql as $$
    select string_agg(b.verdict, ',' order by b.ordinal) from pawl.enqueue_batch(0, array_fill('q'::text, array[cardinality(p_names)]),
        coalesce(p_ids, array(select gen_random_uuid() from unnest(p_names))), array(select convert_to(n, 'UTF8') from unnest(p_names) n),
        p_dedupe_keys => p_dedupe_keys, p_ordering_keys => p_keys) b
$$;
create function take(p_max int4 default 100, p_worker text default 'w1') returns text language sql as $$
    select coalesce(string_agg(convert_from(c.payload, 'UTF8'), ','), '') from pawl.claim_outbox_batch(p_max, p_worker, 30, 'q') c
$$;
create function finish(p_name text, p_state text default 'DISPATCHED', p_retry_seconds numeric default 0) returns int4 language sql as $$
    select pawl.complete_outbox_attempt(j.id, j.lease_token, j.claimed_by, p_state, p_retry_seconds => p_retry_seconds)
    from pawl.job j where convert_from(j.payload, 'UTF8') = p_name
$$;
create function cancel(p_name text) returns text language sql as $$
    select c.verdict from pawl.job j, pawl.cancel_batch(0, array[j.id]) c where convert_from(j.payload, 'UTF8') = p_name
$$;
create function give_back(p_name text) returns text language sql as $$
    select r.verdict from pawl.job j, pawl.release_batch(0, j.claimed_by, array[j.id], array[j.lease_token], array[j.lease_version]) r
    where convert_from(j.payload, 'UTF8') = p_name
$$;
create function redrive(p_name text) returns text language sql as $$
    select r.verdict from pawl.dead_letter d, pawl.redrive_batch(0, array[d.id]) r where convert_from(d.payload, 'UTF8') = p_name
$$;
-- What starts from here on, one after the other, each of which succeeds; and then nothing is left behind.
create function rest() returns text language plpgsql as $$
declare
    v_all text := '';
    v_name text;
begin
    for i in 1 .. 100 loop
        v_name := take();
        exit when v_name = '';
        v_all := v_all || ' ' || v_name;
        perform finish(n) from unnest(string_to_array(v_name, ',')) n;
    end loop;
    return trim(v_all) || case when exists (select from pawl.hold) then ' and a key is held' else '' end
        || case when exists (select from pawl.job) then ' and jobs are left' else '' end;
end $$;

-- ---- one at a time, in order
select put('a'), put('b'), put('c'), put('x', null), put('y', 'other');
select is(take(), 'a,x,y', 'one of each key, and those without one');
select is(take(), '', 'and no more');
select ok((select count(*) = 2 and min(fence) > 0 from pawl.leases where ordering_key is not null), 'each has a fence');
select ok((select fence is null from pawl.leases where ordering_key is null), 'a job without a key has none');
select finish('x'), finish('y');
select is(take(), '', 'a runs, and keeps its key');
select finish('a');
select is(rest(), 'b c', 'and then the others');
select is(put_all('{a,b,c,d}', '{k,k,l,k}'), 'OK,OK,OK,OK', 'rows of one call');
select is((select string_agg(lane::text, ',' order by seq) from pawl.job), '0,2,0,2', 'all but the first of a key are parked from the start');
select is(rest(), 'a,c b d', 'in the order given');
select put('a', p_priority => 9), put('b', p_priority => 0), put('c', 'l');
select is(take(), 'c,a', 'within a key priority is ignored; the first stands by its own');
select finish('a'), finish('c');
select is(rest(), 'b', 'and then the next');

-- ---- who is first of a key that nobody holds, where a claim meets another one before
select put('a', p_priority => 9), put('b', p_priority => 9), put('c', p_priority => 0);
select is(take(1), 'a', 'the first of those that have arrived');
select finish('a');
select is(rest(), 'b c', 'and so on');
select put('a', p_priority => 9), put('b', p_delay_ms => 60000, p_priority => 0), pawl_test.age('61 s');
select is(take(1), 'a', 'one that has arrived comes before one whose time has come');
select finish('a');
select is(rest(), 'b', 'which is the next');
select put_all('{a,b}', '{k,k}'), cancel('a');
select put('c', p_delay_ms => 60000, p_priority => 0), pawl_test.age('61 s');
select is((select string_agg(lane::text, ',' order by key_seq) from pawl.job), '1,3', 'one came back');
select is(take(1), 'b', 'and comes before one whose time has come');
select finish('b');
select is(rest(), 'c', 'which is the next');
select put('a'), put('b', p_delay_ms => 60000, p_priority => 0), pawl_test.age('61 s');
update pawl.job set lane = 2 where convert_from(payload, 'UTF8') = 'a'; -- nobody does that but by hand
select is(take(1), 'a', 'one that is parked comes before one whose time has come');
select finish('a');
select is(rest(), 'b', 'which is the next');
select put('a'), put('b');
update pawl.job set lane = 9 where convert_from(payload, 'UTF8') = 'a';
select is(take(), 'b', 'one that stands in no lane keeps nobody waiting');
select finish('b'), pawl_test.age('61 s');
select is(pawl_test.reap(), 0::int8, 'until it is put right');
select is(rest(), 'a', 'and comes');

-- ---- what keeps the others waiting
select put('a'), put('b');
select take(), finish('a', 'RETRYABLE', 60);
select is(take(), '', 'a retry keeps the key');
select pawl_test.age('61 s');
select is(take(), 'a', 'and comes first again');
select is(give_back('a'), 'OK', 'given back');
select is(take(), 'a', 'a release keeps the key');
select pawl_test.age('31 s');
select is(take(), 'a', 'a lost lease keeps the key, where a claim finds it');
select pawl_test.age('31 s');
select is(pawl_test.reap(), 1::int8, 'where the reaper finds it');
select pawl_test.age('40 s');
select is(rest(), 'a b', 'too');
select put('a', p_delay_ms => 60000), put('b'), put('c', 'l');
select is(take(), 'c', 'a delay keeps the key');
select is((select count(*) from pawl.hold h join pawl.job j on j.id = h.job_id where convert_from(j.payload, 'UTF8') = 'a'), 1::int8, 'held by the one that waits for its time');
select finish('c'), pawl_test.age('61 s');
select is(rest(), 'a b', 'until it has passed');
select put('a'), put('b', p_delay_ms => 60000), put('c');
select take(), finish('a');
select is(take(), '', 'a delay counts when its turn has come');
select pawl_test.age('61 s');
select is(rest(), 'b c', 'and then they start');
select count(*) from pawl.enqueue_batch(0, '{q,q}', array[gen_random_uuid(), gen_random_uuid()], '{a,b}', p_delays_ms => '{0,60000}', p_ordering_keys => '{k,k}');
select take(), finish('a');
select is((select j.lane from pawl.hold h join pawl.job j on j.id = h.job_id), 3::int2, 'one that was parked and has a delay waits for its time where claims do not pass');
select pawl_test.age('61 s');
select is(rest(), 'b', 'and starts then');

-- ---- what lets the next one through
select put('a'), put('b'), put('c'), put('d'), put('e');
select take(), finish('a', 'FAILED');
select is(take(), 'b', 'a failure');
select is(cancel('b'), 'OK', 'a cancellation only marks who runs');
select is(take(), '', 'who keeps the key');
select finish('b', 'RETRYABLE', 0);
select is(take(), 'c', 'until it has ended');
select is(cancel('d'), 'OK', 'one that waits in the middle is cancelled');
select finish('c');
select is(rest(), 'e', 'and does not come up');
select put('a'), put('b');
select is(cancel('a'), 'OK', 'the first is cancelled before any claim');
select is(rest(), 'b', 'the next comes');
select put('b'), take(), put('a'), put('c');
update pawl.job set key_seq = -1 where convert_from(payload, 'UTF8') = 'a'; -- its commit was late
select is(cancel('c'), 'OK', 'one that no claim has met is cancelled');
select is(take(), '', 'and lets nobody through');
select finish('b');
select is(rest(), 'a', 'but the end of who holds the key does');
select put_all('{a,b,c}', '{k,k,k}');
select is(cancel('a'), 'OK', 'the same of one call');
select is(rest(), 'b c', 'whose others were parked from the start');
select put_all('{a,b,c}', '{k,k,k}');
select is(cancel('b'), 'OK', 'in the middle');
select is(rest(), 'a c', 'of one call');
select put('a', p_within_ms => 1000), put('b', p_within_ms => 1000), put('c');
select take(), give_back('a'), take(), give_back('a');
select pawl_test.age('2 s');
select is(pawl_test.reap(), 2::int8, 'deadlines that are missed: of who holds the key, and of who is parked');
select is(rest(), 'c', 'let the next one through');
select is(pawl.queue_set('q', 30000, null, 0, 1, 500, 30000, null, null)::text, '', 'no retries, no losses');
select put('a'), put('b'), put('c');
select take(), finish('a', 'RETRYABLE');
select is(take(), 'b', 'a retry where none is left');
select pawl_test.age('31 s');
select is(take() || take(), 'c', 'a lost lease where none may be');
select is(take(), '', 'c runs');
select is(finish('c'), 1, 'and ends');
select is(rest(), '', 'and leaves nothing');
select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null);
delete from pawl.dead_letter;

-- ---- coming again
select put('a'), put('b'), put('c');
select take(), finish('a', 'FAILED');
select is(redrive('a'), 'OK', 'a redriven job');
select is(rest(), 'b c a', 'comes again as the last');

-- ---- refused rows
select put('old', 'k') as old_id \gset
select is(rest(), 'old', 'a job that has been');
select is(put_all('{old,b,c}', '{k,k,k}', array[:'old_id'::uuid, gen_random_uuid(), gen_random_uuid()]), 'EXISTS,OK,OK', 'the first of a call is refused by its id');
select is(rest(), 'b c', 'the others are not left behind');
select put('a', p_dedupe_key => 'd');
select is(put_all('{x,b,c}', '{k,k,k}', null, '{d,null,null}'), 'DUPLICATE,OK,OK', 'or by its dedupe key');
select is(rest(), 'a b c', 'nor then');
select is(put_all('{a,b,c,e}', '{k,l,null,k}', null, '{d,d,d,d}'), 'OK,OK,OK,DUPLICATE', 'a dedupe key is unique within its ordering key');
select is((select count(*) from pawl.enqueue_batch(0, '{q}', array[gen_random_uuid()], '{x}', p_dedupe_keys => '{d}', p_ordering_keys => '{l}') e
           join pawl.job j on j.id = e.id where e.verdict = 'DUPLICATE' and convert_from(j.payload, 'UTF8') = 'b'), 1::int8, 'whose holder is told');
select throws_ok($$select pawl.enqueue('q', 'x', p_dedupe_key => 'd', p_ordering_key => '')$$, 'P7004', 'DUPLICATE', 'an empty key is none');
select is(rest(), 'a,b,c', 'they do not wait for each other');
select is(put_all('{a,b}', '{k,k}', array[:'old_id'::uuid, gen_random_uuid()], '{d,d}'), 'EXISTS,OK', 'a dedupe key is free again where its row was refused');
select is(rest(), 'b', 'and its job is the first then');
begin;
select put('never');
rollback;
select is(rest(), '', 'what is rolled back was never there');

-- ---- a completion under an old snapshot cannot see who waits, and leaves that to the next claim
select put('a'), put('b'), put('c');
select is(take(), 'a', 'the first');
select is(take(), '', 'the others are parked');
begin isolation level repeatable read;
select finish('a');
commit;
select is((select count(*) from pawl.hold where job_id is null), 1::int8, 'the key is vacant');
select is(rest(), 'b c', 'and is given to the next of it');

-- ---- settled in batches
select put('a' || i, 'k' || i % 3) from generate_series(1, 9) i;
select is(rest(), 'a1,a2,a3 a4,a5,a6 a7,a8,a9', 'a claim takes one of each key, and a settle lets one of each through');
select put('a'), put('b');
select pawl.enqueue('r', n, p_ordering_key => 'k') from unnest('{a,b}'::text[]) n;
create temp table pair as select array_agg(c.id) i, array_agg(c.lease_token) t, array_agg(c.lease_version) v
from pawl.claim_batch(0, 'w1', '{q,r}', '{9,9}', '{30000,30000}', 9, 1 << 20, sha256('1')) c;
select is((select count(*) from pair, pawl.settle_batch(0, 'w1', i, t, v, '{0,0}', null, null, null, null, '\x01') s where s.verdict = 'OK'), 2::int8, 'one of each of two queues');
select is(take() || (select convert_from(c.payload, 'UTF8') from pawl.claim_outbox_batch(9, 'w1', 30, 'r') c), 'bb', 'lets one of each through');
select count(*) from pawl.job j, pawl.settle_batch(0, 'w1', array[j.id], array[j.lease_token], array[j.lease_version], '{0}', null, null, null, null, '\x01') s;
select is(rest(), '', 'and nothing is left');
select put('a'), put('b'), put('c', 'l'), put('d', 'l');
create temp table held as select c.outbox_id, c.lease_token, c.lease_version from pawl.claim_outbox_batch(9, 'w1', 30, 'q') c order by c.payload;
select is((select string_agg(s.verdict || s.state, ',' order by s.ordinal) from (select array_agg(outbox_id) i, array_agg(lease_token) t, array_agg(lease_version) v from held) h,
           pawl.settle_batch(0, 'w1', h.i, h.t, h.v, '{0,1}', '{0,0}', '{null,0}', null, null, '\x01') s), 'OK2,OK0', 'one succeeds and one is retried');
select is(take(), 'b,c', 'the next of one key, and the same of the other');
select is((select string_agg(s.verdict, ',') from held h, pawl.settle_batch(0, 'w1', array[h.outbox_id], array[h.lease_token], array[h.lease_version], '{0}', '{0}', '{null}', null, null, '\x01') s),
          'OK,STALE', 'repeated');
select is(take(), '', 'they let nobody through again');
select finish('b'), finish('c');
select is(rest(), 'd', 'but when they end');

-- ---- a queue that did not know of keys
select pawl.enqueue('late', 'a');
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'late')), 1::int8, 'no keys yet');
select is((select has_keys from pawl.queue where name = 'late'), false, 'and no gate');
select is((select count(*) from pawl.gate g join pawl.queue q on q.queue_id = g.line_id / 4096 where q.name = 'late'), 0::int8, 'for such a queue');
select pawl.enqueue('late', 'b', p_ordering_key => 'k'), pawl.enqueue('late', 'c', p_ordering_key => 'k');
update pawl.queue set has_keys = false where name = 'late';
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'late')), 0::int8, 'who does not know of keys takes no job that has one');
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'late')), 1::int8, 'and learns of them');
delete from pawl.job;
select pawl.enqueue('late', 'd', p_ordering_key => 'l', p_delay_ms => 1000), pawl.enqueue('late', 'e', p_delay_ms => 1000);
select pawl_test.age('2 s');
update pawl.queue set has_keys = false where name = 'late';
select is((select string_agg(convert_from(payload, 'UTF8'), ',') from pawl.claim_outbox_batch(9, 'w1', 30, 'late')), 'e',
          'nor one that has waited for its time');
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'late')), 1::int8, 'until it knows');
delete from pawl.job;
delete from pawl.hold;

-- ---- the bound
select throws_ok($$select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, -1)$$, 'P7001', null, 'a bound below one for each shard is refused');
select throws_ok($$select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, 1000001)$$, 'P7001', null, 'and one that is too high');
select throws_ok($$select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, null)$$, 'P7001', null, 'and none at all');
select put(i::text, null, p_priority => i % 2) from generate_series(1, 12) i;
select is(take(3), '2,4,6', 'no bound yet');
select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, 5);
select is((select max_in_flight from pawl.queue_get('q')), 5, 'the bound is told');
select is(take(), '8,10', 'two more');
select is(take(), '', 'and then none');
select is((select count(*) from pawl.mark where kind = 2 and pos > 0), 2::int8, 'how far it is is noted where it went further');
select finish('2');
select is(take(), '12', 'an end makes room for one');
select is(give_back('12'), 'OK', 'so does a release');
select is(take(), '12', 'of the same');
select pawl_test.age('31 s');
select is(take(2), '4,6', 'expiries make room, too');
select is(take(), '8,10,12', 'for as many as there were');
select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, 2);
select is(take(), '', 'lowered, it takes nothing back');
select finish(n::text) from generate_series(4, 8, 2) n;
select is(take(), '', 'and gives nothing');
select finish('10');
select is(take(), '1', 'until there is room');
select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, 0);
select is((select max_in_flight from pawl.queue_get('q')), 0, 'no bound');
select is(take(2), '3,5', 'holds nothing up');
select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, 4);
select is(take(), '', 'what was taken in between is counted');
select is((select max(fence) from pawl.leases), null, 'a bound alone gives no fence');
delete from pawl.job;
select pawl.queue_set('q', 30000, null, 3, 10, 500, 30000, null, null, 0);

-- ---- shards
select is((select count(distinct pawl.id_shard(pawl.new_id('q', d, 'k'), 4096)) from unnest('{a,b,c,null}'::text[]) d), 1::int8, 'the ids of a key are of one shard');
select is(pawl.shard_hash('q', 'k', pawl.new_id('q')), pawl.shard_hash('q', 'k', pawl.new_id('x')), 'which queue and key alone decide');
select throws_ok($$select pawl.enqueue('q', 'x', p_ordering_key => repeat('k', 256))$$, 'P7001', null, 'a key that is too long is refused');
select throws_ok($$select pawl.enqueue('q', 'x', p_ordering_key => E'a\tb')$$, 'P7001', null, 'and one with control characters');
select throws_ok($$select pawl.new_id('q', null, E'\n')$$, 'P7001', null, 'to an id too');

-- ---- looking
select put('a', 'm1'), put('b', 'm1'), put('c', 'm2'), put('d', null);
select take(1), finish('a');
select is((select string_agg(convert_from(g.payload, 'UTF8'), ',' order by l.id) from pawl.list_jobs('q', 3, 0::int2, null, null, 9, 'm1') l, pawl.get_job(0, l.id) g), 'b', 'by key');
select is((select string_agg(coalesce(l.ordering_key, '-'), ',' order by l.created_at) from pawl.list_jobs('q', 7, 0::int2, null, null, 99) l where l.created_at >= (select min(created_at) from pawl.job)), 'm1,m2,-', 'the key is told');
select is((select count(*) from pawl.list_jobs('q', 4, 0::int2, null, null, 99, 'm1')), 1::int8, 'also of a job that has succeeded');
select is((select string_agg(ordering_key, ',' order by ordering_key) from pawl.jobs where ordering_key ~ 'm[12]'), 'm1,m1,m2', 'in the view of all jobs');
select is(pawl.cancel_where('q', 0, 0::int2, null, 9, 'm2'), 1, 'cancelled by key');
select is((select string_agg(ordering_key, ',') from pawl.dead_letters where ordering_key = 'm2'), 'm2', 'told of dead letters');
select is(pawl.redrive_where('q', 0, 0::int2, null, 9, 'm2'), 1, 'redriven by key');
select is((select count(*) from pawl.mine('w1', null, 9) m where m.fence is null), 0::int8, 'none is held');
select is(take(), 'b,d,c', 'what is left');
select is((select string_agg(m.ordering_key, ',' order by m.ordering_key) from pawl.mine('w1', null, 9) m where m.fence > 0), 'm1,m2', 'a holder finds key and fence again');
select is((select count(*) from pawl.job where fence is not null), 2::int8, 'which are there'), give_back('b'), give_back('c'), give_back('d');
select is((select count(*) from pawl.job where fence is not null), 0::int8, 'while somebody holds the job');
-- a claim's limit in bytes
select pawl.enqueue('bytes', repeat('x', 100)::bytea, p_ordering_key => k) from unnest('{b1,b2,b3}'::text[]) k;
select is((select count(*) from pawl.claim_batch(0, 'w1', '{bytes}', '{9}', '{null}', 9, 250, sha256('1'))), 2::int8, 'payloads of jobs with keys count');
select is((select count(*) from pawl.claim_batch(0, 'w1', '{bytes}', '{9}', '{null}', 9, 250, sha256('2'))), 1::int8, 'and what did not fit comes next');
select * from finish();
