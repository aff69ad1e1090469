-- SPDX-License-Identifier: Apache-2.0
-- How jobs come in: pawl.enqueue() for any client, pawl.enqueue_batch() beneath it.
select no_plan();
create temp table made (name text primary key, id uuid);

-- Q-ENQUEUE, OL-ANY-CLIENT: claimable afterwards, whatever the payload came as
insert into made values ('text', pawl.enqueue('q', 'hello'));
insert into made values ('bytes', pawl.enqueue('q', '\x00ff'::bytea));
insert into made values ('json', pawl.enqueue('q', '{"a": 1}'::jsonb));
select results_eq($$select state, priority::int, retries::int, lease_version, max_retries::int from pawl.jobs where queue = 'q'$$,
                  $$values ('Ready', 5, 0, 0, 3), ('Ready', 5, 0, 0, 3), ('Ready', 5, 0, 0, 3)$$, 'Q-ENQUEUE: new jobs are Ready');
select results_eq($$select payload from pawl.claim_outbox_batch(10, 'w1', 30, 'q') where payload <> '\x00ff'$$,
                  $$values ('hello'::bytea), ('{"a": 1}')$$, 'Q-FIFO: payloads come back as they were given, in order');

-- Q-DURABLE, OL-ANY-CLIENT: a transaction that rolls back leaves no job
begin;
select pawl.enqueue('q', 'never', p_id => '01910000-0000-7000-8000-000000000001');
rollback;
select is(pawl_test.state('01910000-0000-7000-8000-000000000001'), null, 'a transaction that rolls back leaves no job');
select lives_ok($$select pawl.enqueue('q', 'x', p_id => '01910000-0000-7000-8000-000000000001')$$, 'and its id is free');

-- One plain job, for the store that makes the id
select is(pawl.enqueue_one('one', '01910000-0000-7000-8000-0000000000a1', 'x'), null::int4, 'enqueue_one: not in a queue that is new');
select is((select count(*) from pawl.queue where name = 'one'), 0::int8, 'and nothing was done');
select pawl.enqueue('one', 'high', p_priority => 1::int2);
select is(pawl.enqueue_one('one', '01910000-0000-7000-8000-0000000000a1', 'x'), null::int4, 'enqueue_one: not where no claim looks for such a priority');
select pawl.enqueue('one', 'usual');
select is(pawl.enqueue_one('one', '01910000-0000-7000-8000-0000000000a1', 'x'), (select queue_id * 4096 from pawl.queue where name = 'one'), 'enqueue_one: it is in, and tells its line');
select throws_ok($$select pawl.enqueue_one('one', '01910000-0000-7000-8000-0000000000a1', 'x')$$, '23505', null, 'enqueue_one: an id twice is an error');
select is(pawl.enqueue_one('one', '00000000-0000-0000-0000-000000000000', 'x'), null::int4, 'enqueue_one: not the nil id');
select is(pawl.enqueue_one('one', '01910000-0000-7000-8000-0000000000a2', null), null::int4, 'enqueue_one: not without a payload');
select is(pawl.enqueue_one('one', null, 'x'), null::int4, 'enqueue_one: not without an id');
select results_eq($$select outbox_id, payload, lease_version from pawl.claim_outbox_batch(10, 'w1', 30, 'one') where payload = 'x'$$,
                  $$values ('01910000-0000-7000-8000-0000000000a1'::uuid, 'x'::bytea, 1)$$, 'enqueue_one: it can be claimed');
-- and for the store that knows the line: the same row
begin;
select pawl.enqueue_one('one', '01910000-0000-7000-8000-0000000000a4', 'y');
insert into pawl.arrival (line_id, id, payload) select queue_id * 4096, '01910000-0000-7000-8000-0000000000a5', 'y' from pawl.queue where name = 'one';
select is((select count(distinct to_jsonb(j) - '{id,seq,created_at,next_attempt_at}'::text[]) from pawl.job j where payload = 'y'), 1::int8, 'arrival: a row as enqueue_one writes it');
select is((select count(*) from pawl.job j where payload = 'y' and created_at = next_attempt_at and created_at between now() and clock_timestamp()), 2::int8, 'arrival: created and due now');
commit;
select throws_ok($$insert into pawl.arrival (line_id, id, payload) values (4096, '01910000-0000-7000-8000-0000000000a5', 'y')$$, '23505', null, 'arrival: an id twice is an error');
select throws_ok($$insert into pawl.arrival (line_id, id) values (4096, '01910000-0000-7000-8000-0000000000a6')$$, '23502', null, 'arrival: not without a payload');
select throws_ok($$insert into pawl.arrival (line_id, id, payload) values (4097, '01910000-0000-7000-8000-0000000000a6', 'y')$$, '23514', null, 'arrival: not where there are shards');
select results_eq($$select outbox_id, lease_version from pawl.claim_outbox_batch(10, 'w1', 30, 'one') where payload = 'y' order by outbox_id$$,
                  $$values ('01910000-0000-7000-8000-0000000000a4'::uuid, 1), ('01910000-0000-7000-8000-0000000000a5', 1)$$, 'arrival: it can be claimed');

-- Q-ENQUEUE, Q-NEVER-AGAIN
select throws_ok($$select pawl.enqueue('q', 'x', p_id => '01910000-0000-7000-8000-000000000001')$$, 'P7003', 'EXISTS',
                 'Q-ENQUEUE: an id that exists is refused');
select pawl_test.done(pawl_test.take());
select throws_ok($$select pawl.enqueue('q', 'x', p_id => '01910000-0000-7000-8000-000000000001')$$, 'P7003', 'EXISTS',
                 'Q-NEVER-AGAIN: an id that has existed is refused');
select throws_ok($$select pawl.enqueue('other', 'x', p_id => '01910000-0000-7000-8000-000000000001')$$, 'P7003', 'EXISTS',
                 'also for another queue');

-- the same under a snapshot that is older than the statement
begin isolation level repeatable read;
select count(*) from pawl.job;
select verdict as old_verdict from pawl.enqueue_batch(0, '{q}', '{01910000-0000-7000-8000-000000000001}', '{x}') \gset
select verdict as new_verdict from pawl.enqueue_batch(0, '{q}', '{01910000-0000-7000-8000-000000000002}', '{x}') \gset
commit;
select is(:'old_verdict'::text, 'EXISTS', 'Q-NEVER-AGAIN: under REPEATABLE READ too');
select is(:'new_verdict'::text, 'OK', 'and a new id is taken there');
select is((select count(*) from pawl.attempt where job_id = '01910000-0000-7000-8000-000000000002'), 0::int8,
          'OL-APPEND-ONLY: the probe of the ledger leaves nothing');

-- dedupe keys
insert into made values ('keyed', pawl.enqueue('d', 'x', p_dedupe_key => 'k'));
select throws_ok($$select pawl.enqueue('d', 'x', p_dedupe_key => 'k')$$, 'P7004', 'DUPLICATE', 'a live job holds its key');
select lives_ok($$select pawl.enqueue('e', 'x', p_dedupe_key => 'k')$$, 'another queue has keys of its own');
select is((select id from pawl.enqueue_batch(0, '{d}', array[gen_random_uuid()], '{x}', p_dedupe_keys => '{k}')),
          (select id from made where name = 'keyed'), 'DUPLICATE names the holder');
select pawl_test.done(pawl_test.take(p_queue => 'd'));
select lives_ok($$select pawl.enqueue('d', 'x', p_dedupe_key => 'k')$$, 'success frees the key');

-- rows of one call
select results_eq(
    $$select ordinal, verdict from pawl.enqueue_batch(0, '{b,b,b,b}',
        '{01910000-0000-7000-8000-0000000000b1,01910000-0000-7000-8000-0000000000b1,01910000-0000-7000-8000-000000000001,01910000-0000-7000-8000-0000000000b2}',
        '{a,b,c,d}', p_dedupe_keys => '{null,null,null,z}')$$,
    $$values (1, 'OK'), (2, 'EXISTS'), (3, 'EXISTS'), (4, 'OK')$$, 'Q-ENQUEUE: each row of a call has its verdict');
select results_eq(
    $$select ordinal, verdict, id from pawl.enqueue_batch(0, '{b,b}',
        '{01910000-0000-7000-8000-0000000000b3,01910000-0000-7000-8000-0000000000b4}', '{a,b}', p_dedupe_keys => '{y,y}')$$,
    $$values (1, 'OK', '01910000-0000-7000-8000-0000000000b3'::uuid), (2, 'DUPLICATE', '01910000-0000-7000-8000-0000000000b3')$$,
    'of two with one key the first is taken');
select results_eq(
    $$select ordinal, verdict from pawl.enqueue_batch(0, '{b,b,b}',
        '{01910000-0000-7000-8000-000000000001,01910000-0000-7000-8000-0000000000b5,01910000-0000-7000-8000-0000000000b6}',
        '{a,b,c}', p_dedupe_keys => '{x,x,x}')$$,
    $$values (1, 'EXISTS'), (2, 'OK'), (3, 'DUPLICATE')$$, 'one that has existed does not take the key from the next');
select results_eq(
    $$select ordinal, verdict from pawl.enqueue_batch(0, '{b}', '{01910000-0000-7000-8000-000000000001}', '{a}', p_dedupe_keys => '{x}')$$,
    $$values (1, 'EXISTS')$$, 'an id that has existed is told before a key that is held');
select results_eq(
    $$select verdict, count(*) from pawl.enqueue_batch(0, array_fill('b'::text, array[5000]),
        array(select ('01920000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid from generate_series(1, 5000) n),
        array_fill('x'::bytea, array[5000])) group by 1$$, $$values ('OK', 5000::int8)$$, 'a batch of 5,000');
select results_eq(
    $$select verdict, count(*) from pawl.enqueue_batch(0, array_fill('b'::text, array[5000]),
        array(select ('01920000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid from generate_series(1, 5000) n),
        array_fill('x'::bytea, array[5000])) group by 1$$, $$values ('EXISTS', 5000::int8)$$, 'which repeated exists');

-- times
insert into made values ('later', pawl.enqueue('t', 'x', p_delay_ms => 10000));
select is(pawl_test.take_count(9, p_queue => 't'), 0::int8, 'Q-CLAIM: a delayed job is not claimable');
select pawl_test.age('11 s');
select is(pawl_test.take_count(9, p_queue => 't'), 1::int8, 'until its time has come');

-- what is refused: the field, the value, the bound
select throws_ok($$select pawl.enqueue(null, 'x')$$, 'P7001', 'p_queue is missing (NULL); it must be 1 to 128 bytes of printable ASCII without blanks', 'p_queue');
select throws_ok($$select pawl.enqueue('a b', 'x')$$, 'P7001', 'p_queue is "a?b"; it must be 1 to 128 bytes of printable ASCII without blanks', 'a blank');
select throws_ok($$select pawl.enqueue(repeat('q', 129), 'x')$$, 'P7001', null, 'a name that is too long');
select throws_ok($$select pawl.enqueue('q', null::bytea)$$, 'P7001', 'p_payload is missing (NULL); it must be given', 'p_payload');
select throws_ok($$select pawl.enqueue('q', repeat('x', 1048577))$$, 'P7001', 'p_payload is 1048577 bytes long; it must be from 0 to 1048576 bytes long', 'a payload that is too large');
select throws_ok($$select pawl.enqueue('q', 'x', p_priority => 10)$$, 'P7001', 'p_priority is 10; it must be from 0 to 9', 'p_priority');
select throws_ok($$select pawl.enqueue('q', 'x', p_delay_ms => -1)$$, 'P7001', 'p_delay_ms is -1; it must be from 0 to 315360000000', 'p_delay_ms');
select throws_ok($$select pawl.enqueue('q', 'x', p_start_within_ms => 0)$$, 'P7001', 'p_start_within_ms is 0; it must be from 1 to 315360000000', 'p_start_within_ms');
select throws_ok($$select pawl.enqueue('q', 'x', p_max_retries => 10001)$$, 'P7001', 'p_max_retries is 10001; it must be from 0 to 10000', 'p_max_retries');
select throws_ok($$select pawl.enqueue('q', 'x', p_timeout_ms => 0)$$, 'P7001', null, 'p_timeout_ms');
select throws_ok($$select pawl.enqueue('q', 'x', p_backoff_base_ms => 0)$$, 'P7001', null, 'p_backoff_base_ms');
select throws_ok($$select pawl.enqueue('q', 'x', p_backoff_max_ms => 0)$$, 'P7001', null, 'p_backoff_max_ms');
select throws_ok($$select pawl.enqueue('q', 'x', p_dedupe_key => '')$$, 'P7001', 'p_dedupe_key is 0 bytes long; it must be from 1 to 255 bytes long', 'p_dedupe_key');

select throws_ok($$select pawl.enqueue('q', 'x', p_dedupe_key => E'a\tb')$$, 'P7001', 'p_dedupe_key is a text with control characters; it must be without them', 'a key with a tab');
select throws_ok($$select pawl.enqueue('q', 'x', p_delay_ms => 1000, p_start_within_ms => 1000)$$, 'P7001', 'p_start_within_ms is 1000; it must be above p_delay_ms, which is 1000, or the job could never start', 'a job that could never start');

-- the shard hash is the one of src/core/id.c: the vectors of test/unit/core_id_test.c
select is(pawl.shard_hash('default', 'order-17', null), x'4e3cdd7a'::int8, 'hash of a key');
select is(pawl.shard_hash('mail', '', null), x'226e25da'::int8, 'hash of an empty key');
select is(pawl.shard_hash('a', 'bc', null), x'b83a922f'::bit(32)::bit(64)::int8 >> 32 & 4294967295, 'hash of a + bc');
select is(pawl.shard_hash('ab', 'c', null), ('x' || lpad('c7cc606c', 16, '0'))::bit(64)::int8, 'hash of ab + c');
select is(pawl.shard_hash('q', U&'\00e4', null), ('x' || lpad('771b18bb', 16, '0'))::bit(64)::int8, 'hash beyond ASCII');
select is(pawl.shard_hash(repeat('q', 128), repeat('k', 255), null), ('x' || lpad('e31862cc', 16, '0'))::bit(64)::int8, 'hash of the longest');
select is(pawl.shard_hash('default', null, '00000000-0000-0000-0000-000000000000'), ('x' || lpad('fdd81de4', 16, '0'))::bit(64)::int8, 'hash of the nil id');
select is(pawl.shard_hash('mail', null, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), ('x' || lpad('72b8352e', 16, '0'))::bit(64)::int8, 'hash of an id of ones');

-- ids with the right shard
update pawl.config set shards = 8;
select is((select count(*) from (select pawl.new_id('q') id from generate_series(1, 200)) n
           where pawl.id_shard(n.id, 8) <> pawl.shard_hash('q', null, n.id) % 8), 0::int8, 'new ids name their shard');
select is((select count(distinct pawl.id_shard(pawl.new_id('q'), 8)) from generate_series(1, 200)), 8::int8, 'all shards are used');
select is(pawl.id_shard(pawl.new_id('q', 'key'), 8), (pawl.shard_hash('q', 'key', null) % 8)::int4, 'with a key, the key''s shard');
select is((select count(*) from (select id, lag(id) over () as before from (select pawl.new_id('q', 'key') id from generate_series(1, 200)) n) p
           where p.before >= p.id), 0::int8, 'ids of one session and shard rise');
select throws_like($$select pawl.enqueue('q', 'x', p_id => (select i from (select pawl.new_id('q') i from generate_series(1, 200)) n
                     where pawl.id_shard(i, 8) <> pawl.shard_hash('other', null, i) % 8 limit 1), p_dedupe_key => null) from (select) z
                     union all select pawl.enqueue('other', 'x', p_id => '01910000-0000-7fff-8000-000000000009')$$,
                   'p_id is % names shard %', 'an id for another shard is refused');
select lives_ok($$select pawl.enqueue('s', n::text) from generate_series(1, 100) n$$, 'jobs of all shards');
select is((select count(distinct shard) from pawl.job where line_id / 4096 = (select queue_id from pawl.queue where name = 's')), 8::int8, 'are in all shards');
select is(pawl.enqueue_one('s', '01910000-0000-7000-8000-0000000000a3', 'x'), null::int4, 'enqueue_one: not where there are shards');
select is((select count(*) from pawl.claim_outbox_batch(200, 'w1', 30, 's')), 100::int8, 'and are claimed from all of them');
select pawl.enqueue('y', repeat('x', 100)) from generate_series(1, 50);
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'y', 250)), 2::int8, 'a claim carries no more bytes than it may, from all shards together');
select is((select count(*) from pawl.claim_outbox_batch(9, 'w1', 30, 'y', 10)), 1::int8, 'but gives one at least');
select * from finish();
