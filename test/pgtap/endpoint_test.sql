-- SPDX-License-Identifier: Apache-2.0
-- Endpoints and publishing by SQL alone: a publish in the application's own transaction, who sees which secret, what is refused,
-- and what a repeat makes.
select no_plan();
create role ep_runtime;
create role ep_reader;
select pawl.grant_runtime('ep_runtime'), pawl.grant_reader('ep_reader');
grant all on schema public to public;
create function sqlstate_of(p_sql text) returns text language plpgsql as $$
begin
    begin
        execute p_sql;
        raise exception 'undo' using errcode = 'P7098';
    exception when others then
        return case when sqlstate = 'P7098' then '00000' else sqlstate end;
    end;
end $$;
create function message_of(p_sql text) returns text language plpgsql as $$
begin
    execute p_sql;
    return 'fine';
exception when others then
    return sqlerrm;
end $$;
grant execute on all functions in schema public to public;
create function live(p_name text) returns int8 language sql as $$
    select count(*) from pawl.list_jobs('webhook/' || p_name, 3, 0::int2, null, null, 10000)
$$;

-- ---- the same tables as src/core/topic.c and src/core/event.c are tested with

set role ep_runtime;
select pawl.endpoint_add('topics', 'https://t.example/', 'x', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
reset role;
create temp table topic_cases (list text, type text, is_match boolean);
insert into topic_cases values
    ('order.created', 'order.created', true), ('order.created', 'order.create', false), ('order.created', 'order.created2', false),
    ('order.created', 'Order.created', false), ('order.created', 'order', false), ('order', 'order', true),
    ('order', 'order.created', false), ('order.*', 'order.created', true), ('order.*', 'order.created.twice', true),
    ('order.*', 'order', false), ('order.*', 'orders.created', false), ('order.*', 'order-x.created', false),
    ('order.item.*', 'order.item.added', true), ('order.item.*', 'order.item', false), ('order.item.*', 'order.items.added', false),
    ('*', 'order', true), ('*', 'order.created', true), ('a,b,order.*', 'order.created', true), ('a,b.*,c', 'c', true),
    ('a,b.*,c', 'b.x', true), ('a,b.*,c', 'b', false), ('a,b.*,c', 'd', false), ('a-b_C.9', 'a-b_C.9', true),
    ('a_b', 'axb', false), ('a_b.*', 'axb.c', false), ('a', 'a.a', false), ('a.a', 'a', false), ('a.*,a', 'a', true);
create function wanted(p_list text, p_type text) returns boolean language plpgsql as $$
begin
    perform pawl.endpoint_set('topics', p_topics => p_list);
    perform pawl.publish(p_type, 'x');
    return live('topics') > 0 and pawl.cancel_where('webhook/topics', 0, 0::int2, null, 10) = 1;
end $$;
select is(wanted(list, type), is_match, list || ' and ' || type) from topic_cases;
select is(pawl.event_job_id(e, m, q, k, s)::text, i, 'the id of ' || e || ' in ' || q || ' of ' || s)
from (values ('evt_1', false, 'webhook/crm', null, 1, '5e90e4f1-5816-8000-afe2-768c90ec6a9e'),
             ('evt_1', false, 'webhook/crm', null, 4096, '5e90e4f1-5816-862e-afe2-768c90ec6a9e'),
             ('evt_1', false, 'webhook/crm', 'k', 4096, '5e90e4f1-5816-822a-afe2-768c90ec6a9e'),
             ('evt_1', false, 'webhook/crm2', null, 1, 'f9601031-ad72-8000-8576-76011eb2f32f'),
             ('0192f0c1-a2b3-7000-8000-0123456789ab', true, 'webhook/crm', null, 1, '0192f0c1-a2b3-7000-a8e9-5203856f71fa'),
             ('0192f0c1-a2b3-7000-8000-0123456789ab', true, 'webhook/crm', 'k', 8, '0192f0c1-a2b3-7002-a8e9-5203856f71fa')
     ) v(e, m, q, k, s, i);
select pawl.endpoint_remove('topics');

-- ---- publishing in the application's own transaction

set role ep_runtime;
select pawl.endpoint_add('crm', 'https://crm.example/hush-path?token=hush-query', 'order.*', 'whsec_hushhushhushhushhushhushhushhush',
                         p_headers => E'authorization: hush-header\nx-tenant: 7\n', p_ordering => 'key', p_max_in_flight => 5);
select pawl.endpoint_add('all', 'http://all.example:8080', '*', 'whsk_hushhushhushhushhushhushhushhushhush');
reset role;
create table orders (id int4);
grant all on orders to public;
set role ep_runtime;
begin;
insert into orders values (17);
select pawl.publish('order.created', '{"order": 17}'::jsonb, 'evt_17', 'customer-1', '{"content-type": "application/json"}');
rollback;
reset role;
select is(live('crm') + live('all'), 0::int8, 'an event that was rolled back becomes nothing');
select is((select count(*) from orders), 0::int8, 'like the order');
set role ep_runtime;
begin;
insert into orders values (18);
select is(pawl.publish('order.created', '{"order": 18}', 'evt_18', 'customer-1', '{"content-type": "application/json", "x-a": "1"}',
                       '2020-02-02 02:02:02.123456+00'), 'evt_18', 'a publish gives the id');
commit;
reset role;
select is(live('crm') + live('all'), 2::int8, 'one that was committed: a job for each');
select is((select headers from pawl.claim_outbox_batch(1, 'w', 30, 'webhook/crm')),
          '{"pawl-event-id": "evt_18", "pawl-event-type": "order.created", "pawl-event-key": "customer-1", "pawl-event-time": "1580608922123456",
            "content-type": "application/json", "x-a": "1"}'::jsonb, 'what is known of it stands in the headers');
select is((select ordering_key from pawl.jobs where queue = 'webhook/crm'), 'customer-1', 'with its key where an order is kept');
select is((select ordering_key from pawl.jobs where queue = 'webhook/all'), null, 'and without where none is');
select is((select convert_from(payload, 'UTF8') from pawl.claim_outbox_batch(1, 'w', 30, 'webhook/all')), '{"order": 18}', 'the payload is the event''s');

-- Repeats.
select is(pawl.publish('order.created', 'again', 'evt_18', 'customer-1'), 'evt_18', 'a repeat is told as the first was');
select is(live('crm') + live('all'), 2::int8, 'and makes nothing');
select is((select format('%s %s', endpoints, jobs) from pawl.publish_batch('{order.created}', '{evt_18}', '{f}', '{x}', '{customer-1}', array[E'a: 1\n'])), '2 0', 'nor by the batch');
select pawl.complete_outbox_attempt(m.id, m.lease_token, 'w', 'DISPATCHED') from pawl.mine('w', null, 10) m;
select pawl.publish('order.created', 'again', 'evt_18', 'customer-1');
select is(live('crm') + live('all'), 0::int8, 'not even once it was delivered');
select isnt(pawl.publish('order.created', 'x'), pawl.publish('order.created', 'x'), 'without an id each is another event');
select is(live('crm'), 2::int8, 'and becomes a job');
select is(pawl.cancel_where('webhook/crm', 0, 0::int2, null, 10) + pawl.cancel_where('webhook/all', 0, 0::int2, null, 10), 4, 'away with them');

-- A savepoint that is rolled back takes its event with it, and no other.
begin;
select pawl.publish('order.a', 'x', 'evt_a');
savepoint s;
select pawl.publish('order.b', 'x', 'evt_b');
rollback to s;
commit;
select is((select string_agg(headers ->> 'pawl-event-id', ',') from pawl.claim_outbox_batch(9, 'w', 30, 'webhook/crm')), 'evt_a', 'a savepoint counts');
begin isolation level serializable;
select pawl.publish('order.a', 'x', 'evt_a');
select pawl.publish('order.c', 'x', 'evt_c');
commit;
select is((select string_agg(headers ->> 'pawl-event-id', ',') from pawl.claim_outbox_batch(9, 'w', 30, 'webhook/crm')), 'evt_c', 'and another isolation level');
select count(pawl.complete_outbox_attempt(m.id, m.lease_token, 'w', 'DISPATCHED')) from pawl.mine('w', null, 10) m;
select pawl.cancel_where('webhook/all', 0, 0::int2, null, 10);

-- ---- switching

select pawl.endpoint_disable('crm', 'anna', 'HTTP-410');
select pawl.publish('order.created', 'x');
select is(live('crm'), 0::int8, 'a disabled endpoint gets nothing');
select is(live('all'), 1::int8, 'the others do');
select is((select format('%s %s %s %s', is_enabled, switched_by, reason, is_paused) from pawl.list_endpoints('crm', null, 1)), 'f anna HTTP-410 t', 'who and why is on record');
select pawl.endpoint_disable('crm', 'bob', 'later');
select is((select switched_by from pawl.list_endpoints('crm', null, 1)), 'anna', 'the first stays');
select pawl.endpoint_enable('crm', 'bob');
select is((select format('%s %s %s', is_enabled, switched_by, is_paused) from pawl.list_endpoints('crm', null, 1)), 't bob f', 'enabled');
select pawl.publish('order.created', 'x');
select is(live('crm'), 1::int8, 'gets again');

-- ---- removing

select is(sqlstate_of($$select pawl.endpoint_remove('crm')$$), 'P7021', 'not while a job waits');
select pawl.claim_outbox_batch(1, 'w', 30, 'webhook/crm');
select is(sqlstate_of($$select pawl.endpoint_remove('crm')$$), 'P7021', 'nor while it is being delivered');
select count(pawl.complete_outbox_attempt(m.id, m.lease_token, 'w', 'DISPATCHED')) from pawl.mine('w', null, 10) m;
begin isolation level repeatable read;
select is(sqlstate_of($$select pawl.endpoint_remove('crm')$$), 'P7001', 'nor with an old snapshot, that would not show what was published');
commit;
select is(sqlstate_of($$select pawl.endpoint_remove('crm')$$), '00000', 'then it goes');
select is(sqlstate_of($$select pawl.endpoint_remove('nobody')$$), 'P7022', 'one that is not there does not');
select is(sqlstate_of($$select pawl.endpoint_add('all', 'https://x', 'x', 'whsec_hushhushhushhushhushhushhushhush')$$), 'P7003', 'a name is taken once');

-- ---- secrets: NFR-003

select is((select string_agg(secret, ',') from pawl.endpoint_credentials('crm')), 'whsec_hushhushhushhushhushhushhushhush', 'those who deliver are told it');
select pawl.endpoint_rotate('crm', 'whsec_hushnewhushnewhushnewhushnewhush', 60000);
select is((select string_agg(left(secret, 12) || (until is null), ',') from pawl.endpoint_credentials('crm')), 'whsec_hushnetrue,whsec_hushhufalse', 'two of them, the newest first');
select pawl_test.age('59 s');
select is((select count(*) from pawl.endpoint_credentials('crm')), 2::int8, 'until a time');
select pawl_test.age('1 s');
select is((select string_agg(secret, ',') from pawl.endpoint_credentials('crm')), 'whsec_hushnewhushnewhushnewhushnewhush', 'and no longer');
select is((select secrets_count from pawl.list_endpoints('crm', null, 1)), 1::int8, 'told so');
select is(sqlstate_of($$select pawl.endpoint_rotate('crm', 'whsec_hushnewhushnewhushnewhushnewhush')$$), 'P7023', 'the same is no other');
select pawl.endpoint_rotate('crm', 'whsec_' || repeat(n, 32)) from unnest('{a,b,c}'::text[]) n;
select is(sqlstate_of($$select pawl.endpoint_rotate('crm', 'whsec_' || repeat('d', 32))$$), 'P7020', 'no more than four');
select pawl.endpoint_rotate('crm', 'whsec_' || repeat('d', 32), 0);
select is((select count(*) from pawl.endpoint_credentials('crm')), 1::int8, 'without an overlap the old ones go at once');

set role ep_reader;
select is((select origin from pawl.endpoints where name = 'crm'), 'https://crm.example', 'a reader sees the host');
select is((select origin from pawl.endpoints where name = 'all'), 'http://all.example:8080', 'with its port');
select is(string_agg(e::text, ''), null, 'and nothing of what is secret') from pawl.endpoints e where e::text ~ 'hush|dddd|authorization';
select is(sqlstate_of('select ' || f), '42501', 'a reader does not call ' || f)
from unnest(array['pawl.endpoint_credentials(''crm'')', 'pawl.list_endpoints(null, null, 10)', 'pawl.publish(''x'', ''x'')',
                  'pawl.endpoint_rotate(''crm'', ''x'')']) f;
select is(sqlstate_of(v || ' pawl.' || t), '42501', 'a reader: no ' || v || ' ' || t)
from unnest('{select * from,delete from}'::text[]) v, unnest('{endpoint,endpoint_topic,endpoint_secret}'::text[]) t;
select is(sqlstate_of('delete from pawl.endpoints'), '42501', 'nor through the view');
set role ep_runtime;
select is(sqlstate_of(v || ' pawl.' || t), '42501', 'the runtime role: no ' || v || ' ' || t)
from unnest('{select * from,delete from}'::text[]) v, unnest('{endpoint,endpoint_topic,endpoint_secret,endpoints}'::text[]) t;
select is(sqlstate_of('select ' || f), '42501', 'the runtime role does not call ' || f)
from unnest(array['pawl.publish_events(''{x}'', ''{x}'', ''{f}'', ''{x}'', array[null]::text[], ''{x}'', ''{1}'')', 'pawl.endpoint_lock(''crm'')', 'pawl.endpoint_set_topics(''crm'', ''*'')']) f;
select is((select string_agg(e::text, '') from pawl.list_endpoints(null, null, 10) e where e::text ~ 'hush-header|dddd|whsec|whsk'), null, 'a list has no secret');
reset role;

-- ---- refusals name the field, and quote no secret

create temp table bad (sql text, named text);
insert into bad
    select format('select pawl.endpoint_add(%L, %L, %L, %L)', n, u, t, s), w
    from (values (null, 'https://x', 'x', 'whsec_' || repeat('a', 32), 'p_name'), ('', 'https://x', 'x', 'whsec_' || repeat('a', 32), 'p_name'),
                 ('a/b', 'https://x', 'x', 'whsec_' || repeat('a', 32), 'p_name'), (E'a\n', 'https://x', 'x', 'whsec_' || repeat('a', 32), 'p_name'),
                 (repeat('a', 101), 'https://x', 'x', 'whsec_' || repeat('a', 32), 'p_name'), ('ä', 'https://x', 'x', 'whsec_' || repeat('a', 32), 'p_name'),
                 ('b', null, 'x', 'whsec_' || repeat('a', 32), 'p_url'), ('b', 'ftp://hush', 'x', 'whsec_' || repeat('a', 32), 'p_url'),
                 ('b', 'https://hush hush', 'x', 'whsec_' || repeat('a', 32), 'p_url'), ('b', 'https://', 'x', 'whsec_' || repeat('a', 32), 'p_url'),
                 ('b', 'https:///hush', 'x', 'whsec_' || repeat('a', 32), 'p_url'), ('b', 'https://me:hush@a/', 'x', 'whsec_' || repeat('a', 32), 'p_url'),
                 ('b', 'https://hush@a', 'x', 'whsec_' || repeat('a', 32), 'p_url'), ('b', E'https://a\\hush', 'x', 'whsec_' || repeat('a', 32), 'p_url'),
                 ('b', 'https://x', null, 'whsec_' || repeat('a', 32), 'p_topics'), ('b', 'https://x', '', 'whsec_' || repeat('a', 32), 'p_topics'),
                 ('b', 'https://x', 'a,,b', 'whsec_' || repeat('a', 32), 'p_topics'), ('b', 'https://x', 'a.*.b', 'whsec_' || repeat('a', 32), 'p_topics'),
                 ('b', 'https://x', 'a,a', 'whsec_' || repeat('a', 32), 'p_topics'), ('b', 'https://x', repeat('a', 129), 'whsec_' || repeat('a', 32), 'p_topics'),
                 ('b', 'https://x', (select string_agg('t' || g, ',') from generate_series(1, 101) g), 'whsec_' || repeat('a', 32), 'p_topics'),
                 ('b', 'https://x', 'x', null, 'p_secret'), ('b', 'https://x', 'x', 'hush', 'p_secret'), ('b', 'https://x', 'x', 'whsec_hush', 'p_secret'),
                 ('b', 'https://x', 'x', 'whsec_' || repeat('hush', 30), 'p_secret')) v(n, u, t, s, w)
    union all
    select 'select pawl.endpoint_set(''crm'', ' || a || ')', w
    from (values ('p_headers => E''a: 1\nContent-Length: hush\n''', 'Content-Length'), ('p_headers => E''WEBHOOK-id: hush\n''', 'WEBHOOK-id'),
                 ('p_headers => E''host: hush\n''', 'host'), ('p_headers => E''Transfer-Encoding: hush\n''', 'Transfer-Encoding'),
                 ('p_headers => ''x: hush''', 'p_headers'), ('p_headers => E''pass: hush\nPASS: hush\n''', 'p_headers'), ('p_timeout_ms => 99', 'p_timeout_ms'),
                 ('p_timeout_ms => 300001', 'p_timeout_ms'), ('p_rate_per_minute => -1', 'p_rate_per_minute'), ('p_ordering => ''sometimes''', 'p_ordering'),
                 ('p_format => ''xml''', 'p_format'), ('p_fail_statuses => ''4x4''', 'p_fail_statuses'), ('p_lease_ms => 99', 'p_lease_ms'),
                 ('p_max_in_flight => -1', 'p_max_in_flight'), ('p_max_retries => 10001', 'p_max_retries'), ('p_backoff_base_ms => 0', 'p_backoff_base_ms')) v(a, w)
    union all
    select 'select pawl.publish(' || a || ')', w
    from (values ('null, ''x''', 'p_topic'), ('''a..b'', ''x''', 'p_topic'), ('''a.*'', ''x''', 'p_topic'), ('''x'', null::text', 'p_payload'),
                 ('''x'', ''x'', ''a.b''', 'p_id'), ('''x'', ''x'', ''''', 'p_id'), ('''x'', ''x'', repeat(''a'', 65)', 'p_id'),
                 ('''x'', ''x'', p_ordering_key => E''a\nb''', 'p_ordering_key'), ('''x'', ''x'', p_headers => ''{"pawl-event-id": "hush"}''', 'pawl-event-id'),
                 ('''x'', ''x'', p_headers => ''{"PAWL-x": "hush"}''', 'PAWL-x'), ('''x'', ''x'', p_headers => ''{"a": 1}''', 'p_headers'),
                 ('''x'', ''x'', p_headers => ''[]''', 'p_headers'), ('''x'', ''x'', p_time => ''1969-01-01''', 'p_time'), ('''x'', ''x'', p_time => ''9999-12-31 23:59:59.1+00''', 'p_time'), ('''x'', ''x'', p_time => ''infinity''', 'p_time')) v(a, w);
select is(sqlstate_of(sql), 'P7001', 'refused: ' || sql) from bad;
select ok(message_of(sql) ~ named and message_of(sql) !~ 'hush', 'by its name: ' || message_of(sql)) from bad;
select is(sqlstate_of($$select pawl.endpoint_turn('nobody', true, 'me')$$), 'P7022', 'an unknown endpoint is told as such');
select is(sqlstate_of($$select pawl.endpoint_turn('crm', null, 'me')$$), 'P7001', 'as is a switch that says nothing');

select pawl.endpoint_add('timed', 'https://x', 'timed.*', 'whsec_' || repeat('a', 32));
select pawl.publish('timed.not', 'x', p_id => 'evt_t1'), pawl.publish('timed.late', 'x', p_id => 'evt_t2', p_time => '9999-12-31 23:59:59+00');
select is((select string_agg(distinct j.headers, '' order by j.headers) from pawl.job j where j.headers ~ 'timed'),
          E'pawl-event-id: evt_t1\npawl-event-type: timed.not\npawl-event-id: evt_t2\npawl-event-type: timed.late\npawl-event-time: 253402300799000000\n',
          'the time of an event is told where it was given, as it was given');

-- ---- marks and replays

set role ep_runtime;
select is((select is_enabled from pawl.endpoint_mark('timed', true, 'me', 3600000, 'too long')), true, 'a first failure disables nobody');
reset role;
update pawl.endpoint set failing_since = failing_since - interval '2 hours' where name = 'timed';
set role ep_runtime;
select is((select is_enabled from pawl.endpoint_mark('timed', true, 'me', 3600000, 'too long')), false, 'one that goes on for too long does');
reset role;
select is((select reason from pawl.endpoints where name = 'timed' and failing_since is not null), 'too long', 'with the reason on record');
set role ep_runtime;
select pawl.endpoint_enable('timed', 'me');
select is((select jobs from pawl.endpoint_replay('timed', 'evt_t1')), 0::int8, 'what came before does not come again without a name');
select is((select jobs from pawl.endpoint_replay('timed', 'evt_t1', p_as => 'r')), 1::int8, 'with one it does');
select is((select events || ',' || jobs from pawl.endpoint_replay('timed', p_as => 'r')), '2,1', 'each once for each name');
select is(sqlstate_of($$select pawl.endpoint_replay('timed', 'nobody')$$), 'P7024', 'an event that is not kept is told as such');
select is(sqlstate_of($$select pawl.endpoint_replay('nobody')$$), 'P7022', 'as is an endpoint that is not there');
select is(sqlstate_of($$select pawl.endpoint_replay('timed', p_as => 'a b')$$), 'P7001', 'and a name that is none');
select is(sqlstate_of($$select count(*) from pawl.event$$), '42501', 'nobody but the owner reads what is kept');
reset role;

-- ---- limits

select pawl.endpoint_disable('all', 'test');
-- What is refused does not depend on there being an endpoint: the one that is added would fail those who publish.
select is(sqlstate_of($$select pawl.publish('nobody.wants', 'x', p_headers => (select jsonb_object_agg('h' || g, 'v') from generate_series(1, 63) g))$$), 'P7001',
          'headers that leave no room are refused where nobody wants the event');
select is(sqlstate_of($$select pawl.publish('nobody.wants', 'x', p_headers => (select jsonb_object_agg('h' || g, 'v') from generate_series(1, 62) g))$$), '00000', 'those that leave it are not');
insert into pawl.endpoint (name, url, topics, headers, fail_statuses, timeout_ms, rate_per_minute, ordering, format, created_at, changed_at)
    select 'wide' || g, 'https://x', 'wide', '', '', 1000, 0, 1, 1, now(), now() from generate_series(1, 1001) g;
insert into pawl.endpoint_topic select 'wide', 'wide' || g from generate_series(1, 1001) g;
select is(sqlstate_of($$select pawl.publish('wide', 'x')$$), 'P7020', 'an event goes to 1000 endpoints at most');
delete from pawl.endpoint where name = 'wide1001';
select is((select endpoints from pawl.publish_batch('{wide}', '{evt_w}', '{f}', '{x}', array[null]::text[], array[E'a: 1\n'])), 1000 + 0, 'and to 1000 it goes');
select is(sqlstate_of($$select pawl.publish_batch(array_fill('wide'::text, '{11}'), array(select 'e' || g from generate_series(1, 11) g), array_fill(false, '{11}'),
    array_fill('x'::bytea, '{11}'), array_fill(null::text, '{11}'), array_fill(E'a: 1\n'::text, '{11}'))$$), 'P7020', 'a call makes 10000 jobs at most');
insert into pawl.endpoint (name, url, topics, headers, fail_statuses, timeout_ms, rate_per_minute, ordering, format, created_at, changed_at)
    select 'many' || g, 'https://x', 'many', '', '', 1000, 0, 1, 1, now(), now() from generate_series(1, 10000 - (select count(*) from pawl.endpoint)) g;
select is(sqlstate_of($$select pawl.endpoint_add('more', 'https://x', 'x', 'whsec_' || repeat('a', 32))$$), 'P7020', 'there are 10000 endpoints at most');
drop owned by ep_runtime, ep_reader;
drop role ep_runtime, ep_reader;
select * from finish();
