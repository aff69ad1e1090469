-- SPDX-License-Identifier: Apache-2.0
-- Headers: an object of strings to pawl.enqueue() and from pawl.claim_outbox_batch(), one text to and from the functions that the
-- library calls. They go where the payload goes, and are refused by name, never by value (NFR-003).
select no_plan();
create temp table made (name text primary key, id uuid);
create function headers_of(p_id uuid) returns text language sql as $$ select headers from pawl.get_job(0, p_id) $$;

-- In as an object, out as an object, whatever the payload came as.
insert into made values ('text', pawl.enqueue('q', 'x', p_headers => '{"tenant": "17", "x-note": "two words: \u00e4", "empty": ""}'));
insert into made values ('bytes', pawl.enqueue('q', '\x00ff'::bytea, p_headers => '{"a": "1"}'));
insert into made values ('json', pawl.enqueue('q', '{}'::jsonb, p_headers => '{"a": "2"}'));
insert into made values ('none', pawl.enqueue('q', 'x'));
insert into made values ('no object', pawl.enqueue('q', 'x', p_headers => null));
insert into made values ('empty object', pawl.enqueue('q', 'x', p_headers => '{}'));
insert into made values ('keyed', pawl.enqueue('k', 'x', p_ordering_key => 'o', p_dedupe_key => 'd', p_headers => '{"a": "3"}'));
select is(headers_of(id), E'empty: \ntenant: 17\nx-note: two words: \u00e4\n', 'one text, a line each') from made where name = 'text';
select is(headers_of(id), null, name || ': none') from made where name ~ '^no|empty';
select is(headers_of(id), E'a: 3\n', 'with keys, too') from made where name = 'keyed';
select results_eq(
    $$select m.name, c.headers from pawl.claim_outbox_batch(10, 'w1', 30, 'q') c join made m on m.id = c.outbox_id order by m.name$$,
    $$values ('bytes', '{"a": "1"}'::jsonb), ('empty object', null), ('json', '{"a": "2"}'), ('no object', null), ('none', null),
             ('text', '{"tenant": "17", "x-note": "two words: \u00e4", "empty": ""}')$$,
    'OL-ANY-CLIENT: a claim tells them as an object');
select is((select string_agg(headers, '|' order by headers) from pawl.mine('w1', null, 10)),
          E'a: 1\n|a: 2\n|empty: \ntenant: 17\nx-note: two words: \u00e4\n', 'and mine as a text');
select is((select count(headers) from pawl.list_jobs(null, 0, 0::int2, null, null, 100)), 0::int8, 'a list tells none');

-- As texts in a batch.
select is((select string_agg(verdict, ',') from pawl.enqueue_batch(0, '{b,b,b}',
    '{01910000-0000-7000-8000-0000000000b1,01910000-0000-7000-8000-0000000000b2,01910000-0000-7000-8000-0000000000b3}', '{x,x,x}',
    p_headers => array[E'a: 1\nB: 2\n', null, E'c: \n'], p_is_new => true)), 'OK,OK,OK', 'texts of a batch');
select is((select array_agg(headers order by id) from pawl.claim_batch(0, 'w2', '{b}', '{9}', null, 9, 1000, sha256('s'))),
          array[E'a: 1\nB: 2\n', null, E'c: \n'], 'come back as they were');
select results_eq($$select ordinal, verdict from pawl.enqueue_batch(0, '{e,e}',
    '{01910000-0000-7000-8000-0000000000e1,01910000-0000-7000-8000-0000000000b1}', '{x,x}', p_dedupe_keys => '{d,d}',
    p_headers => array[E'a: 1\n', E'a: 2\n'])$$, $$values (1, 'OK'), (2, 'EXISTS')$$, 'a batch in which one exists');
select is(headers_of('01910000-0000-7000-8000-0000000000e1'), E'a: 1\n', 'keeps those of the other');
select is(headers_of('01910000-0000-7000-8000-0000000000b1'), E'a: 1\nB: 2\n', 'and changes none of the one that is there');

-- They go where the payload goes.
create function give_up(p_id uuid) returns void language plpgsql as $$
begin
    perform pawl.complete_outbox_attempt(c.outbox_id, c.lease_token, 'w3', 'FAILED')
    from pawl.claim_outbox_batch(1, 'w3', 30, 'd') c;
end $$;
insert into made values ('dead', pawl.enqueue('d', 'x', p_headers => '{"a": "4"}'));
select give_up(id) from made where name = 'dead';
select is(headers_of(id), E'a: 4\n', 'Q-DEAD-LETTER: a dead letter has them') from made where name = 'dead';
select pawl.redrive_batch(0, array[id]) from made where name = 'dead';
select is(headers_of(id), E'a: 4\n', 'a redriven job as well') from made where name = 'dead';
select give_up(id), pawl.discard_batch(0, array[id]) from made where name = 'dead';
select is((select headers from pawl.dead_letter d join made using (id) where name = 'dead'), null, 'a discarded one has none');
insert into made values ('done', pawl.enqueue('f', 'x', p_headers => '{"a": "5"}'));
select pawl_test.done(pawl_test.take(p_queue => 'f'));
select is(headers_of(id), null, 'nor has one that succeeded') from made where name = 'done';

-- ---- who sees them: exactly who sees payloads
create role pawl_header_reader;
select pawl.grant_reader('pawl_header_reader');
grant usage on schema pawl_test to public;
select results_eq(
    $$select distinct a.attname::text from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'pawl'::regnamespace and has_column_privilege('pawl_header_reader', c.oid, a.attnum, 'select')
        and a.attname in ('headers', 'payload')$$, $$select null::text where false$$, 'readers see neither headers nor payloads');
select results_eq(
    $$select p.proname::text from pg_proc p where p.pronamespace = 'pawl'::regnamespace
        and has_function_privilege('pawl_header_reader', p.oid, 'execute')
        and (p.proargnames && '{headers,payload}' or p.proname ~ 'header')$$, $$select null::text where false$$, 'through no function either');
-- Endpoints have headers of their own, which are no job's.
select results_eq(
    $$select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'headers'
      where c.relnamespace = 'pawl'::regnamespace and c.relname not like 'endpoint%' order by 1$$,
    $$select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'payload'
      where c.relnamespace = 'pawl'::regnamespace and c.relname <> 'arrival' order by 1$$, 'and they stand wherever payloads stand'); -- that is a way in, for jobs without
select results_eq(
    $$select p.proname::text from pg_proc p where p.pronamespace = 'pawl'::regnamespace and 'headers' = any (p.proargnames)
        and p.proname not like 'endpoint%' order by 1$$,
    $$select p.proname::text from pg_proc p where p.pronamespace = 'pawl'::regnamespace and 'payload' = any (p.proargnames) order by 1$$,
    'and are told wherever payloads are');

-- ---- what is refused
create temp table before as select count(*) jobs from pawl.job;
create temp table bad (n int4 generated always as identity, headers jsonb, message text);
insert into bad (headers, message) values
    ('null', 'p_headers is of type null; it must be an object of strings'),
    ('[]', 'p_headers is of type array'),
    ('"hush"', 'p_headers is of type string'),
    ('{"a": 1}', 'p_headers is an object of something else; it must be an object of strings'),
    ('{"a": null}', 'p_headers is an object of something else'),
    ('{"a": {"b": "hush"}}', 'p_headers is an object of something else'),
    ('{"": "hush"}', 'the name of header 1 in p_headers is bad; it must be 1 to 128 letters, digits or any of'),
    ('{"a b": "hush"}', 'the name of header 1 in p_headers is bad'),
    ('{"a:": "hush"}', 'the name of header 1 in p_headers is bad'),
    ('{"a\n": "hush"}', 'the name of header 1 in p_headers is bad'),
    ('{"\u00e4": "hush"}', 'the name of header 1 in p_headers is bad'),
    (jsonb_build_object(repeat('n', 129), 'hush'), 'the name of header 1 in p_headers is bad'),
    ('{"a": "hush\nadmin: yes"}', 'the value of "a" in p_headers is a text with control characters; it must be without them'),
    ('{"a": "hush\u0085"}', 'the value of "a" in p_headers is a text with control characters'),
    ('{"a": " hush"}', 'the value of "a" in p_headers is a text with a blank at its beginning or end'),
    ('{"a": "hush "}', 'the value of "a" in p_headers is a text with a blank at its beginning or end'),
    ('{"a": " "}', 'the value of "a" in p_headers is a text with a blank at its beginning or end'),
    (jsonb_build_object('a', 'hush' || repeat('v', 4093)), 'the value of "a" in p_headers is 4097 bytes long; it must be at most 4096'),
    ('{"Tenant": "hush", "tenant": "hush"}', '"Tenant" in p_headers is there twice'),
    ((select jsonb_object_agg('h' || n, 'hush') from generate_series(1, 65) n), 'p_headers is 65 headers; it must be at most 64'),
    ((select jsonb_object_agg('h' || n, repeat('v', 4090)) from generate_series(1, 5) n), 'p_headers is 20475 bytes long');
create temp table told (n int4, state text, message text, detail text, context text);
create function tell(p_n int4, p_sql text) returns void language plpgsql as $$
declare
    v_state text;
    v_message text;
    v_detail text;
    v_hint text;
begin
    execute p_sql;
    insert into told values (p_n, '00000');
exception when others then
    get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    insert into told values (p_n, v_state, v_message, v_detail || v_hint);
end $$;
select tell(n, format('select pawl.enqueue(''q'', ''x'', p_headers => %L)', headers)) from bad order by n;
select ok(t.state = 'P7001' and starts_with(t.message, b.message), 'refused: ' || b.message || ' (' || coalesce(t.message, 'taken') || ')')
from bad b join told t using (n) order by n;
select is((select count(*) from told where message || coalesce(detail, '') ~ 'hush|admin'), 0::int8, 'NFR-003: no value is told');
truncate told;

create temp table worse (n int4 generated always as identity, headers text, message text);
insert into worse (headers, message) values
    ('', 'p_headers[2] is 0 bytes long; it must be from 1 to 16384 bytes long'),
    ('a: hush', 'p_headers[2] is not ended by a newline'),
    (E'a: 1\nhush\n', 'the name of header 2 in p_headers[2] is bad'),
    (E'a:hush\n', 'the name of header 1 in p_headers[2] is bad'),
    (E'a: 1\n\nb: hush\n', 'the name of header 2 in p_headers[2] is bad'),
    (E'a b: hush\n', 'the name of header 1 in p_headers[2] is bad'),
    (E'a: hush\r\n', 'the value of "a" in p_headers[2] is a text with control characters'),
    (E'a:  hush\n', 'the value of "a" in p_headers[2] is a text with a blank'),
    (E'a: 1\nA: hush\n', '"A" in p_headers[2] is there twice'),
    (E'a: ' || repeat('v', 4097) || E'\n', 'the value of "a" in p_headers[2] is 4097 bytes long'),
    ((select string_agg('h' || n || E': hush\n', '') from generate_series(1, 65) n), 'p_headers[2] is 65 headers'),
    ((select string_agg('h' || n || ': ' || repeat('v', 4090) || E'\n', '') from generate_series(1, 5) n), 'p_headers[2] is 20475 bytes long');
select tell(n, format('select * from pawl.enqueue_batch(0, ''{q,q}'', array[gen_random_uuid(), gen_random_uuid()], ''{x,x}'', p_headers => array[null, %L])',
                      headers)) from worse order by n;
select ok(t.state = 'P7001' and starts_with(t.message, b.message), 'refused: ' || b.message || ' (' || coalesce(t.message, 'taken') || ')')
from worse b join told t using (n) order by n;
select is((select count(*) from told where message || coalesce(detail, '') ~ 'hush'), 0::int8, 'NFR-003: no value is told');
select throws_ok($$select * from pawl.enqueue_batch(0, '{q}', array[gen_random_uuid()], '{x}', p_headers => '{}')$$, 'P7001',
                 'p_headers is 0 items long; it must be as long as the first array: 1', 'a batch has headers for each job, or none');
select is((select count(*) from pawl.job), (select jobs from before), 'and nothing was enqueued');

-- As many as there may be, and as long.
insert into made values ('most', pawl.enqueue('m', 'x', p_headers => (
    select jsonb_object_agg(rpad('h' || n, case when n <= 3 then 128 else 3 end, 'n'), case when n <= 3 then repeat('v', 4096) else 'v' end)
    from generate_series(1, 64) n)));
select is((select count(*) from jsonb_object_keys((select headers from pawl.claim_outbox_batch(1, 'w4', 30, 'm')))), 64::int8,
          'as many as there may be come back');
select * from finish();
