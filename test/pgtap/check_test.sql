-- SPDX-License-Identifier: Apache-2.0
-- What is refused, and how: the argument, its place, its value and what is allowed; nothing is done, and no payload is told
-- (NFR-003). For the functions that take arrays; those of pawl.enqueue() and its kin are refused in their own files.
select no_plan();
select pawl.enqueue('c', 'hush-hush') from generate_series(1, 3);
create temp table held as select outbox_id id, lease_token token from pawl.claim_outbox_batch(1, 'w1', 30, 'c');
create temp table before as select (select jsonb_agg(j order by j.id) from pawl.job j) jobs, (select count(*) from pawl.queue) queues;

-- The statement and what its message begins with.
create temp table bad (n int4 generated always as identity, statement text, message text);
insert into bad (statement, message) values
    ('enqueue_batch(0, ''{c,c}'', array[gen_random_uuid()], ''{x,x}'')', 'p_ids is 1 items long; it must be as long as the first array: 2'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{}'')', 'p_payloads is 0 items long'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', ''{}'')', 'p_priorities is 0 items long'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_dedupe_keys => ''{}'')', 'p_dedupe_keys is 0 items long'),
    ('enqueue_batch(0, ''{c,c}'', array[gen_random_uuid(), null], ''{x,hush-hush}'')', 'p_ids[2] is missing (NULL); it must be given'),
    ('enqueue_batch(0, ''{c}'', ''{00000000-0000-0000-0000-000000000000}'', ''{x}'')', 'p_ids[1] is 00000000-0000-0000-0000-000000000000; it must be another id'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{null}'')', 'p_payloads[1] is missing (NULL)'),
    ('enqueue_batch(0, ''{"a b"}'', array[gen_random_uuid()], ''{x}'')', 'queue is "a?b"; it must be 1 to 128 bytes'),
    ('enqueue_batch(0, ''{null}'', array[gen_random_uuid()], ''{x}'')', 'queue is missing (NULL)'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', ''{10}'')', 'p_priorities[1] is 10; it must be from 0 to 9'),
    ('enqueue_batch(0, ''{c,c}'', array[gen_random_uuid(), gen_random_uuid()], ''{x,x}'', ''{null,-1}'')', 'p_priorities[2] is -1'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_delays_ms => ''{-1}'')', 'p_delays_ms[1] is -1; it must be from 0 to 315360000000'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_delays_ms => ''{9223372036854775807}'')', 'p_delays_ms[1] is 9223372036854775807'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_starts_within_ms => ''{0}'')', 'p_starts_within_ms[1] is 0; it must be from 1'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_starts_within_ms => ''{315360000001}'')', 'p_starts_within_ms[1] is 315360000001'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_delays_ms => ''{5}'', p_starts_within_ms => ''{5}'')', 'p_starts_within_ms[1] is 5; it must be above p_delays_ms[1]'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_max_retries => ''{10001}'')', 'p_max_retries[1] is 10001'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_max_retries => ''{-1}'')', 'p_max_retries[1] is -1'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_timeouts_ms => ''{0}'')', 'p_timeouts_ms[1] is 0'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_timeouts_ms => ''{315360000001}'')', 'p_timeouts_ms[1] is 315360000001'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_backoff_bases_ms => ''{0}'')', 'p_backoff_bases_ms[1] is 0'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_backoff_bases_ms => ''{315360000001}'')', 'p_backoff_bases_ms[1] is 3153'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_backoff_maxes_ms => ''{0}'')', 'p_backoff_maxes_ms[1] is 0'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_backoff_maxes_ms => ''{315360000001}'')', 'p_backoff_maxes_ms[1] is 3153'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_dedupe_keys => ''{""}'')', 'p_dedupe_keys[1] is 0 bytes long'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_dedupe_keys => array[repeat(''k'', 256)])', 'p_dedupe_keys[1] is 256 bytes long'),
    ('enqueue_batch(0, ''{c}'', array[gen_random_uuid()], ''{x}'', p_dedupe_keys => array[U&''a\0085''])', 'p_dedupe_keys[1] is a text with control characters'),
    ('enqueue_batch(0, array_fill(''c''::text, array[10001]), array(select gen_random_uuid() from generate_series(1, 10001)), array_fill(''x''::bytea, array[10001]))', 'cardinality(p_queues) is 10001; it must be from 0 to 10000'),
    ('enqueue(''c'', ''x'', p_id => ''00000000-0000-0000-0000-000000000000'')', 'p_id is 00000000-0000-0000-0000-000000000000; it must be another id'),
    ('enqueue(''c'', ''x'', p_dedupe_key => U&''a\0085'')', 'p_dedupe_key is a text with control characters'),
    ('claim_batch(0, null, ''{c}'', ''{1}'', ''{null}'', 1, 1000, sha256(''s''))', 'p_worker is missing (NULL); it must be 1 to 128 bytes'),
    ('claim_batch(0, '''', ''{c}'', ''{1}'', ''{null}'', 1, 1000, sha256(''s''))', 'p_worker is ""; it must be 1 to 128 bytes'),
    ('claim_batch(0, E''w\n'', ''{c}'', ''{1}'', ''{null}'', 1, 1000, sha256(''s''))', 'p_worker is "w?"'),
    ('claim_batch(0, repeat(''w'', 129), ''{c}'', ''{1}'', ''{null}'', 1, 1000, sha256(''s''))', 'p_worker is "www'),
    ('claim_batch(0, ''w'', ''{}'', ''{}'', ''{}'', 1, 1000, sha256(''s''))', 'cardinality(p_queues) is 0; it must be from 1 to 10000'),
    ('claim_batch(0, ''w'', null, ''{1}'', ''{null}'', 1, 1000, sha256(''s''))', 'cardinality(p_queues) is missing (NULL)'),
    ('claim_batch(0, ''w'', ''{c}'', null, null, 1, 1000, sha256(''s''))', 'p_maxes is missing (NULL)'),
    ('claim_batch(0, ''w'', ''{c}'', ''{null}'', null, 1, 1000, sha256(''s''))', 'p_maxes[1] is missing (NULL); it must be from 1'),
    ('claim_batch(0, ''w'', ''{c}'', ''{0}'', null, 1, 1000, sha256(''s''))', 'p_maxes[1] is 0'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', ''{}'', 1, 1000, sha256(''s''))', 'p_leases_ms is 0 items long'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', ''{99}'', 1, 1000, sha256(''s''))', 'p_leases_ms[1] is 99; it must be from 100 to 315360000000'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', ''{9223372036854775807}'', 1, 1000, sha256(''s''))', 'p_leases_ms[1] is 9223372036854775807'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', null, null, 1000, sha256(''s''))', 'p_jobs_max is missing (NULL); it must be from 1 to 10000'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', null, 10001, 1000, sha256(''s''))', 'p_jobs_max is 10001'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', null, 1, null, sha256(''s''))', 'p_bytes_max is missing (NULL)'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', null, 1, 0, sha256(''s''))', 'p_bytes_max is 0'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', null, 1, 1000, null)', 'octet_length(p_seed) is missing (NULL)'),
    ('claim_batch(0, ''w'', ''{c}'', ''{1}'', null, 1, 1000, ''\x00'')', 'octet_length(p_seed) is 1; it must be from 16'),
    ('claim_lines(null, ''w'', ''{c}'', ''{1}'', null, 1, 1000, sha256(''s''))', 'p_shards is missing (NULL)'),
    ('settle_batch(0, ''w1'', array[h.id], ''{}'', ''{1}'', ''{0}'', null, null, null, null, ''\x01'')', 'p_tokens is 0 items long'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{}'', ''{0}'', null, null, null, null, ''\x01'')', 'p_versions is 0 items long'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', null, null, null, null, null, ''\x01'')', 'p_actions is missing (NULL)'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{null}'', null, null, null, null, ''\x01'')', 'p_actions[1] is missing (NULL); it must be from 0 to 3'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{4}'', null, ''{5}'', null, null, ''\x01'')', 'p_actions[1] is 4'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{3}'', null, null, null, null, ''\x01'')', 'p_delays_ms[1] is missing (NULL)'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, ''{-1}'', null, null, ''\x01'')', 'p_delays_ms[1] is -1'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, ''{315360000001}'', null, null, ''\x01'')', 'p_delays_ms[1] is 315360000001'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, null, array[repeat(''x'', 65)], null, ''\x01'')', 'p_error_codes[1] is 65 bytes long'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, null, null, array[repeat(''x'', 1025)], ''\x01'')', 'p_error_texts[1] is 1025 bytes long'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, null, array[E''a\nb''], null, ''\x01'')', 'p_error_codes[1] is a text with control'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, null, null, array[E''a\x07''], ''\x01'')', 'p_error_texts[1] is a text with control'),
    ('settle_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{1}'', null, null, null, null, null)', 'p_seed is missing (NULL)'),
    ('renew_batch(0, ''w1'', array[h.id], ''{}'', ''{1}'', null, null)', 'p_tokens is 0 items long'),
    ('renew_batch(0, ''w1'', array[h.id], array[h.token], null, null, null)', 'p_versions is missing (NULL)'),
    ('renew_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{}'', null)', 'p_leases_ms is 0 items long'),
    ('renew_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{99}'', null)', 'p_leases_ms[1] is 99'),
    ('renew_batch(0, ''w1'', array[h.id], array[h.token], ''{1}'', ''{9223372036854775807}'', null)', 'p_leases_ms[1] is 9223372036854775807'),
    ('release_batch(0, ''w1'', array[h.id], ''{}'', ''{1}'')', 'p_tokens is 0 items long'),
    ('release_batch(0, ''w1'', array[h.id], array[h.token], ''{1,2}'')', 'p_versions is 2 items long'),
    ('reap(0, null, ''\x00'')', 'p_max is missing (NULL); it must be from 1 to 10000'),
    ('reap(0, 1, null)', 'p_seed is missing (NULL)'),
    ('prune(0, null)', 'p_max is missing (NULL)'),
    ('prune_lines(''{0}'', 10001)', 'p_max is 10001'),
    ('cancel_where(''c'', 0, 0::int2, null, null)', 'p_max is missing (NULL)'),
    ('cancel_where(''c'', null, 0::int2, null, 1)', 'p_states is missing (NULL); it must be from 0 to 15'),
    ('cancel_where(''c'', 4, 0::int2, null, 1)', 'p_states is 4; it must be a state that cancel can change'),
    ('redrive_where(''c'', 0, null, null, 1)', 'p_reason is missing (NULL)'),
    ('redrive_where(''c'', 0, 11::int2, null, 1)', 'p_reason is 11; it must be from 0 to 10'),
    ('worker_seen(null, 0::int2, ''h'', ''1'')', 'p_name is missing (NULL)'),
    ('worker_seen(repeat(''w'', 129), 0::int2, ''h'', ''1'')', 'p_name is "www'),
    ('worker_seen(''w'', 2::int2, ''h'', ''1'')', 'p_kind is 2; it must be from 0 to 1'),
    ('worker_seen(''w'', 0::int2, ''a b'', ''1'')', 'p_host is "a?b"'),
    ('worker_seen(''w'', 0::int2, ''h'', null)', 'p_version is missing (NULL)'),
    ('worker_seen(''w'', 0::int2, ''h'', ''1'', repeat(''q'', 1024))', 'p_queues is 1024 bytes long; it must be from 0 to 1023'),
    ('renew_outbox_lease(h.id, h.token, ''w1'', 1e100000)', 'p_lease_seconds is 1000'),
    ('complete_outbox_attempt(h.id, h.token, ''w1'', ''RETRYABLE'', p_retry_seconds => ''NaN'')', 'p_retry_seconds is NaN');

create function told(p_statement text) returns text language plpgsql as $$
declare
    v_detail text;
begin
    execute 'select x from held h, lateral (select pawl.' || p_statement || ') x';
    return 'accepted';
exception when others then
    get stacked diagnostics v_detail = pg_exception_detail;
    return sqlstate || ' ' || sqlerrm || v_detail;
end $$;
select is(left(t.told, 6 + length(b.message)), 'P7001 ' || b.message, b.statement) from bad b, lateral (select told(b.statement)) t order by b.n;
select is((select string_agg(b.statement, '; ') from bad b where length(told(b.statement)) > 400), null, 'what is told is short');
select is((select string_agg(b.statement, '; ') from bad b where told(b.statement) ~ ('hush|' || encode('hush-hush', 'hex'))), null, 'NFR-003: and tells no payload');
select is((select jsonb_agg(j order by j.id) from pawl.job j), (select jobs from before), 'and nothing was done');
select is((select count(*) from pawl.queue), (select queues from before), 'not even a queue');

-- What may be left out, or is at its bound, is taken.
select results_eq($$select verdict from pawl.enqueue_batch(0, '{c,c}', array[gen_random_uuid(), gen_random_uuid()], array['', 'x']::bytea[], '{null,0}', '{315360000000,null}',
    '{null,315360000000}', '{10000,0}', '{1,315360000000}', '{null,1}', '{315360000000,null}', array[repeat('k', 255), null])$$, $$values ('OK'), ('OK')$$, 'all that may be said');
select is((select count(*) from pawl.enqueue_batch(0, null, null, null)), 0::int8, 'nothing to enqueue');
select is((select count(*) from pawl.settle_batch(0, 'w1', null, null, null, null, null, null, null, null, null)), 0::int8, 'nothing to settle');
select is((select count(*) from pawl.renew_batch(0, 'w1', '{}', '{}', '{}', '{}', '{}')), 0::int8, 'nothing to renew');
select is((select verdict from held h, pawl.renew_batch(0, 'w1', array[h.id], array[h.token], '{1}', '{315360000000}', null)), 'OK', 'the longest lease');
select is((select verdict from held h, pawl.settle_batch(0, 'w1', array[h.id], array[h.token], '{1}', '{3}', null, '{315360000000}', array[repeat('x', 64)], array[E'\t\n' || repeat('x', 1022)], '\x01')), 'OK', 'the longest texts');

-- The same words, whatever a session makes of backslashes.
select results_eq($$select verdict from pawl.enqueue_batch(0, '{c}', array[pawl.new_id('c', 'key')], '{x}', p_dedupe_keys => '{key}')$$, $$values ('OK')$$, 'before');
set standard_conforming_strings = off;
set escape_string_warning = off;
discard plans;
do $$ begin
    -- compiled anew, in a session that reads strings in the old way
    execute (select replace(pg_get_functiondef('pawl.shard_hash'::regproc), 'CREATE OR REPLACE FUNCTION pawl.shard_hash', 'CREATE FUNCTION pg_temp.shard_hash'));
    execute (select replace(pg_get_functiondef('pawl.check_text'::regproc), 'CREATE OR REPLACE FUNCTION pawl.check_text', 'CREATE FUNCTION pg_temp.check_text'));
end $$;
select is(pg_temp.shard_hash('mail', 'key', null), pawl.shard_hash('mail', 'key', null), 'the hash, where backslashes escape');
select throws_ok($$select pg_temp.check_text('f', E'a\x07b', 0, 10)$$, 'P7001', null, 'control characters, where backslashes escape');
reset standard_conforming_strings;

-- With several shards a dedupe key belongs to one, whoever made the id.
update pawl.config set shards = 8;
select is(told('enqueue_batch(' || s || ', ''{c}'', array[pawl.new_id(''c'')], ''{x}'', p_dedupe_keys => ''{one}'')') ~ 'p_shard|p_ids', true, 'a key of another shard: ' || s)
from generate_series(0, 7) s where s <> pawl.shard_hash('c', 'one', null) % 8;
select results_eq($$select verdict from pawl.enqueue_batch((pawl.shard_hash('c', 'one', null) % 8)::int4, '{c}', array[pawl.new_id('c', 'one')], '{x}', p_dedupe_keys => '{one}')$$, $$values ('OK')$$, 'a key of this shard');
select results_eq($$select verdict from (select pawl.new_id('c') i) n, pawl.enqueue_batch(pawl.id_shard(i, 8), '{c}', array[i], '{x}', p_starts_within_ms => '{1000}', p_dedupe_keys => '{null}')$$, $$values ('OK')$$, 'no key, of any shard');
select * from finish();
