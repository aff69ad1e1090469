-- SPDX-License-Identifier: Apache-2.0
-- What the library asks for: tokens of its own, and answers that leave out what most jobs share. They say the same as full ones.
select no_plan();
create function pg_temp.tokens(p_count int4) returns uuid[] language sql as $$
    select array_agg(md5('token ' || n)::uuid) from generate_series(1, p_count) n
$$;

-- Ten jobs, five of them as they are usual.
create function pg_temp.put(p_queue text) returns void language plpgsql as $$
begin
    perform pawl.enqueue(p_queue, convert_to('usual ' || i, 'UTF8')) from generate_series(1, 5) i;
    perform pawl.enqueue(p_queue, 'first', p_priority => 2);
    perform pawl.enqueue(p_queue, 'long', p_timeout_ms => 7000);
    perform pawl.enqueue(p_queue, 'tries', p_max_retries => 9);
    perform pawl.enqueue(p_queue, 'soon', p_start_within_ms => 600000);
    perform pawl.enqueue(p_queue, 'headers', p_headers => '{"a": "b"}');
end $$;
select pg_temp.put(q) from unnest('{plain, other, timed, keyed}'::text[]) q;
select pawl.queue_set('other', 5000, 60000, 7, 10, 500, 30000, 1000, 1000);
-- Jobs that wait for their time, that were tried before, that were let go, that have keys.
select pawl.enqueue('timed', 'delayed', p_delay_ms => 1000);
select pawl.enqueue('timed', 'tried', p_priority => 0);
select is(pawl_test.done(pawl_test.take(p_queue => 'timed'), 'RETRYABLE'), 1, 'one was tried before');
select pawl.enqueue('timed', 'released', p_priority => 0);
select is(pawl_test.release(pawl_test.take(p_queue => 'timed')), 'OK', 'one was let go');
select pawl.enqueue('keyed', 'of a key', p_ordering_key => 'k');
select pawl_test.age('1 minute');

create temp table terse as
    select row_number() over () n, c.*
    from pawl.claim_lines('{0}', 'w', '{plain,other,timed,keyed}', '{100,100,100,100}', null, 100, 1 << 20, sha256('s'), pg_temp.tokens(18), true) c;
select is((select count(*) from terse where id is not null), 44::int8, 'all jobs are given out');
select is((select array_agg(queue order by n) from terse where id is null), '{plain,other,timed,keyed}', 'before those of each line there is a row without id');
select ok((select bool_and(num_nulls(queue, shard, lease_ms, claimed_at, lease_expires_at) = 5) from terse where id is not null),
          'which says what the others leave out');
select is((select count(*) from terse where id is not null
           and num_nulls(priority, lane, retries, lost_leases, attempts, reason, max_retries, timeout_ms, run_until, next_attempt_at, start_by, headers) = 12),
          21::int8, 'a usual job says nothing but what is its own');

-- Each job by what the row of its line and its own say, beside the table.
create temp table whole as
    select t.id, t.lease_token, t.lease_version, h.claimed_at, h.lease_expires_at, coalesce(t.run_until, h.run_until) run_until, h.lease_ms,
           coalesce(t.timeout_ms, h.timeout_ms) run_ms, coalesce(t.priority, h.priority) priority, coalesce(t.retries, 0) retries,
           coalesce(t.lost_leases, 0) lost_leases, coalesce(t.attempts, 0) attempts, coalesce(t.max_retries, h.max_retries) max_retries,
           t.created_at, coalesce(t.next_attempt_at, t.created_at) next_attempt_at, t.start_by, coalesce(t.reason, 0) reason, t.payload, t.seq,
           t.ordering_key collate "C" ordering_key, t.fence, t.headers, h.queue
    from terse t cross join lateral (select * from terse h where h.id is null and h.n < t.n order by h.n desc limit 1) h
    where t.id is not null;
select results_eq($$select * from whole order by id$$,
    $$select j.id, j.lease_token, j.lease_version, j.claimed_at, j.lease_expires_at, j.run_until, j.lease_ms, j.run_ms, j.priority,
             j.retries::int4, j.lost_leases::int4, j.attempts, coalesce(j.max_retries, q.max_retries)::int4, j.created_at, j.next_attempt_at,
             j.start_by, j.reason::int4, j.payload, j.seq, j.ordering_key, j.fence, j.headers, q.name
      from pawl.job j join pawl.queue q on q.queue_id = j.line_id / 4096 order by j.id$$, 'and all of it is what the table has');
select is((select array_agg(convert_from(payload, 'UTF8') order by payload) from whole where retries + attempts + reason > 0), '{tried}',
          'also of one that was tried before');
select is((select array_agg(distinct (lease_ms, max_retries)::text) from whole where max_retries <> 9), '{"(30000,3)","(5000,7)"}', 'each by the settings of its queue');
select is((select string_agg(convert_from(payload, 'UTF8') || ' ' || lane, ', ' order by payload) from terse where lane is not null),
          'delayed 3, released 1, tried 3', 'a lane is told where it is not that of arrivals');

-- Where the rows are, terse or not, with keys or without.
select results_eq($$select id, place from terse where id is not null order by id$$,
                  $$select j.id, case when j.attempts = 0 and j.fence is null then j.ctid end from pawl.job j join terse t using (id) order by j.id$$, 'each job says where its row is');
select is((select (count(*) > 20 and count(*) < 44) from terse where place is not null), true, 'unless it has a past, or a key');
select is((select count(place) from terse where id is null), 0::int8, 'which is nothing that jobs share');
select pg_temp.put(q) from unnest('{wordy,wordy_keyed}'::text[]) q;
select pawl.enqueue('wordy_keyed', 'of a key', p_ordering_key => 'k');
create temp table wordy as select c.* from pawl.claim_lines('{0}', 'w2', '{wordy,wordy_keyed}', '{100,100}', null, 100, 1 << 20, sha256('t')) c;
select results_eq($$select id, place from wordy order by id$$, $$select j.id, case when j.attempts = 0 and j.fence is null then j.ctid end from pawl.job j where j.claimed_by = 'w2' order by j.id$$, 'also where nothing is left out');
select is((select count(*) from wordy), 21::int8, 'and that is all of them');
delete from pawl.job where claimed_by = 'w2';

-- RES-8: each job has a token of its own: those that were given, and where they do not suffice others.
select is((select count(distinct lease_token) from whole), 44::int8, 'RES-8: no two jobs share a token');
select is((select array_agg(queue || ' ' || n order by queue) from (
               select queue, count(*) n from whole where lease_token = any (pg_temp.tokens(18)) group by queue) g),
          '{other 8,plain 10}', 'RES-8: tokens that were given are used once, each');
select is((select count(*) from terse t join pawl.job j using (id) where t.lease_token = j.lease_token), 44::int8, 'and are those of the table');

-- Rows that lie in another order than their jobs: still each its own.
select count(*) from (select pawl.enqueue('order', 'x') from generate_series(1, 50)) e;
update pawl.job j set priority = j.priority where j.payload = 'x' and j.seq % 3 = 0;
select is((select count(distinct lease_token) from pawl.claim_lines('{0}', 'w', '{order}', '{100}', null, 100, 1 << 20, sha256('s'), pg_temp.tokens(50), true)
           where lease_token = any (pg_temp.tokens(50))), 50::int8, 'RES-8: wherever the rows lie');
-- A limit in bytes cuts jobs off, not tokens.
select count(*) from (select pawl.enqueue('bytes', repeat('x', 100)::bytea) from generate_series(1, 9)) e;
select is((select count(distinct lease_token) from pawl.claim_lines('{0}', 'w', '{bytes}', '{9}', null, 9, 500, sha256('s'), pg_temp.tokens(9), true)
           where lease_token = any (pg_temp.tokens(9))), 5::int8, 'five of nine fit');

-- Settles: one row where all have succeeded at the first attempt, otherwise a row for each.
create function pg_temp.settle(p_ids uuid[]) returns text language sql as $$
    select string_agg(s.ordinal || ' ' || s.verdict || ' ' || coalesce(s.state::text, '-') || ' ' || coalesce(s.attempt_no::text, '-'), ', ' order by s.ordinal)
    from (select array_agg(w.id order by w.id) i, array_agg(w.lease_token order by w.id) t, array_agg(w.lease_version order by w.id) v from unnest(p_ids) with ordinality u(id, o) join whole w using (id)) l,
         pawl.settle_batch(0, 'w', l.i, l.t, l.v, null, null, null, null, null, '\x01', null, true) s
$$;
create function pg_temp.of(p_payloads text[]) returns uuid[] language sql as $$
    select array_agg(w.id order by w.id) from whole w where w.queue <> 'other' and convert_from(w.payload, 'UTF8') = any (p_payloads)
$$;
select is(pg_temp.settle(pg_temp.of('{usual 1}')), '0 OK 2 3', 'one row says that three have succeeded');
select is((select count(*) from pawl.attempt a where a.job_id = any (pg_temp.of('{usual 1}')) and a.outcome = 0), 3::int8, 'and they have');
select is(pg_temp.settle(pg_temp.of('{usual 1}')), '1 OK 2 1, 2 OK 2 1, 3 OK 2 1', 'said again, each is answered');
select matches(pg_temp.settle(pg_temp.of('{usual 2,tried}')), '^1 OK 2 [12], 2 OK 2 [12], 3 OK 2 [12], 4 OK 2 [12]$', 'a row for each where one was tried before');
select is(pg_temp.settle(pg_temp.of('{released}')), '1 OK 2 1', 'and where it is one only');
update pawl.job j set lease_version = lease_version + 1 where j.id = (pg_temp.of('{usual 3}'))[2];
select is(pg_temp.settle(pg_temp.of('{usual 3}')), '1 OK 2 1, 2 STALE - -, 3 OK 2 1', 'and where one is stale');
-- Leases that are mixed up, and not in order either: nobody's.
select is((select string_agg(s.verdict, ', ') from (select array_agg(w.id order by w.id desc) i, array_agg(w.lease_token order by w.id) t from whole w
                                                    where w.queue = 'plain' and w.payload in ('usual 4', 'usual 5')) l,
           pawl.settle_batch(0, 'w', l.i, l.t, '{1,1}', null, null, null, null, null, '\x01', null, true) s), 'STALE, STALE', 'each job with its own token');
-- A version that is not the job's, beside one that is.
select is((select string_agg(s.ordinal || ' ' || s.verdict, ', ' order by s.ordinal) from (select array_agg(w.id order by w.id) i, array_agg(w.lease_token order by w.id) t from whole w
                                                    where w.queue = 'other' and w.payload in ('first', 'soon')) l,
           pawl.settle_batch(0, 'w', l.i, l.t, '{1,2}', null, null, null, null, null, '\x01', null, true) s), '1 OK, 2 STALE', 'each job with its own version');
-- Lists that are not what the library sends: answered all the same, each row by itself.
select is((select string_agg(s.ordinal || ' ' || s.verdict, ', ' order by s.ordinal) from (select w.id i, w.lease_token t from whole w where w.queue = 'plain' and w.payload = 'tries') l,
           pawl.settle_batch(0, 'w', array[l.i, null], array[l.t, null], '{1,1}', null, null, null, null, null, '\x01', null, true) s), '1 OK, 2 GONE', 'an id that is missing');
select is((select string_agg(s.ordinal || ' ' || s.verdict, ', ' order by s.ordinal) from (select array_agg(w.id order by w.id) i, array_agg(w.lease_token order by w.id) t from whole w
                                                    where w.queue = 'plain' and w.payload in ('soon', 'headers')) l,
           pawl.settle_batch(0, 'w', l.i, ('[0:1]={' || array_to_string(l.t, ',') || '}')::uuid[], '{{1},{1}}', null, null, null, null, null, '\x01', null, true) s),
          '0 OK', 'lists of another shape');
-- Of those that succeed together one stands for all of its line.
select is(pg_temp.settle(array(select w.id from whole w where w.queue in ('plain', 'other') and w.payload in ('usual 4', 'usual 5', 'long') order by w.id)), '0 OK 2 6', 'six in two lines');
select results_eq($$select q.name, a.batch, cardinality(a.others), (select count(*) from unnest(a.job_id || a.others) i join whole w on w.id = i and w.queue = q.name
                                                                    and w.payload in ('usual 4', 'usual 5', 'long'))
                    from pawl.attempt a join pawl.queue q on q.queue_id = a.line_id / 4096 join whole w on w.id = a.job_id
                    where a.batch is not null and w.payload in ('usual 4', 'usual 5', 'long') order by 1$$,
                  $$values ('other', 3, 2, 3::int8), ('plain', 3, 2, 3::int8)$$, 'of each line one names the others');
select throws_ok($$select * from pawl.settle_batch(0, 'w', pg_temp.of('{usual 4}'), pg_temp.of('{usual 4}'), '{1,1,1}', null, null, null, null, null, '\x01')$$,
                 'P7001', null, 'but whoever wants the full answer says what is to be done');
select * from finish();
