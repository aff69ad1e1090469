-- SPDX-License-Identifier: Apache-2.0
-- Claims of a few jobs: where there is nothing else to do they give what claim_lines() gives; otherwise they do nothing, and say so.
select no_plan();
create function pg_temp.tokens(p_count int4) returns uuid[] language sql as $$
    select array_agg(md5('token ' || n)::uuid) from generate_series(1, p_count) n
$$;
-- What a claim of so many is answered: how many it gets, or 'no'.
create function pg_temp.few(p_max int4, p_queue text default 'q', p_worker text default 'w', p_lease_ms int8 default 30000, p_bytes_max int8 default 1 << 20)
returns text language sql as $$
    select case when count(*) = 1 and count(c.id) = 0 then 'no' else count(c.id)::text end
    from pawl.claim_few(p_worker, p_queue, p_max, p_lease_ms, p_bytes_max, pg_temp.tokens(greatest(p_max, 1))) c
$$;
-- The same after something was done, which is taken back; and what it is answered without.
create function pg_temp.few_after(p_sql text, p_max int4 default 1) returns text language plpgsql as $$
declare
    v_answer text;
    v_held int8;
begin
    execute p_sql;
    select count(*) into v_held from pawl.job j where j.state = 1;
    v_answer := pg_temp.few(p_max);
    if v_answer = 'no' and v_held <> (select count(*) from pawl.job j where j.state = 1) then
        v_answer := 'no, but it has claimed';
    end if;
    raise exception 'PAWL_UNDO' using detail = v_answer;
exception when raise_exception then
    get stacked diagnostics v_answer = pg_exception_detail;
    return v_answer;
end $$;
create function pg_temp.calm(p_queue text default 'q') returns void language sql as $$
    select pawl_test.put(p_queue);
    select pawl_test.done(pawl_test.take(p_queue => p_queue)); -- makes the marks, and looks for leases
$$;

-- What is given.
select pg_temp.few(1) = 'no' is_refused \gset
select ok(:'is_refused', 'a queue that does not exist is not for it');
select pawl.queue_set('q', 5000, 60000, 7, 10, 500, 30000, 1000, 1000);
select pawl_test.put();
select is(pg_temp.few(1), 'no', 'nor is one that nobody has claimed from');
select pg_temp.calm();
select pawl.enqueue('q', 'usual');
select pawl.enqueue('q', 'long', p_timeout_ms => 7000);
select pawl.enqueue('q', 'tries', p_max_retries => 9);
select pawl.enqueue('q', 'soon', p_start_within_ms => 600000);
select pawl.enqueue('q', 'headers', p_headers => '{"a": "b"}');
create temp table few as select * from pawl.claim_few('w', 'q', 4, null, 1 << 20, pg_temp.tokens(4));
select is((select string_agg(convert_from(payload, 'UTF8'), ' ' order by pos, seq) from few), 'work usual long tries', 'the first of them are given out, in their order');
insert into few select * from pawl.claim_few('w', 'q', 64, 40000, 1 << 20, array(select gen_random_uuid() from generate_series(1, 64)));
select is((select count(*) from few), 6::int8, 'and then the others');
select results_eq($$select * from few order by id$$,
    $$select j.id, 'q'::text, j.priority, j.retries, j.lost_leases, j.attempts, j.lease_version, coalesce(j.max_retries, 7)::int4, j.created_at,
             j.next_attempt_at, j.start_by, j.reason, j.lease_token, j.claimed_at, j.lease_expires_at, j.run_until, j.lease_ms, j.run_ms, j.payload, j.lane,
             j.pos, j.seq, null::text, null::int8, j.headers
      from pawl.job j where j.state = 1 order by j.id$$, 'as the table has them');
select is((select array_agg(distinct lease_token order by lease_token) from few where lease_ms = 5000), (select array_agg(t order by t) from unnest(pg_temp.tokens(4)) t),
          'RES-8: each with one of the tokens that were given');
select is((select string_agg(convert_from(j.payload, 'UTF8') || ' ' || j.lease_ms || ' ' || j.run_ms || ' ' || extract(epoch from j.lease_expires_at - j.claimed_at)::int4
                             || ' ' || extract(epoch from j.run_until - j.claimed_at)::int4 || ' ' || extract(epoch from j.unstarted_until - j.claimed_at)::int4, ', '
                             order by j.payload) from pawl.job j where j.state = 1 and j.payload in ('usual', 'long', 'soon')),
          'long 5000 7000 5 7 17, soon 40000 60000 40 60 140, usual 5000 60000 5 60 70', 'with the lease and the timeout that hold for each');
select is((select count(*) from pawl.settle_batch(0, 'w', array(select id from few order by id), array(select lease_token from few order by id), array_fill(1, array[6]), null,
                                                  null, null, null, null, '\x01', null, true) s where s.verdict = 'OK' and s.attempt_no = 6), 1::int8,
          'and they are settled by what was given');
select is(pg_temp.few(1), '0', 'then there is nothing');

-- Rows that lie in another order than their jobs.
select count(*) from (select pawl.enqueue('q', 'x') from generate_series(1, 50)) e;
update pawl.job j set priority = j.priority where j.seq % 3 = 0;
select is((select count(distinct lease_token) from pawl.claim_few('w', 'q', 50, 30000, 1 << 20, pg_temp.tokens(50)) where lease_token = any (pg_temp.tokens(50))), 50::int8,
          'RES-8: each has a token of its own wherever its row lies');
delete from pawl.job;

-- What is left alone.
select pawl_test.put() from generate_series(1, 3);
select is(pg_temp.few_after('select'), '1', 'a job is there');
select is(pg_temp.few_after($$select pawl.queue_pause('q', true)$$), 'no', 'not where the queue is paused');
select is(pg_temp.few_after($$update pawl.queue set max_in_flight = 1$$), 'no', 'or has a limit');
select is(pg_temp.few_after($$select pawl.enqueue('q', 'keyed', p_ordering_key => 'k')$$), 'no', 'or keys');
select is(pg_temp.few_after($$select pawl_test.put(p_priority => 7)$$), 'no', 'or other priorities');
select is(pg_temp.few_after($$select pawl_test.release(pawl_test.take())$$), 'no', 'or a job that came back');
select is(pg_temp.few_after($$select pawl.enqueue('q', 'timed', p_delay_ms => 60000); update pawl.job set next_attempt_at = now(), pos = pawl.micros(now()) where lane = 3$$), 'no',
          'or one whose time has come');
select is(pg_temp.few_after($$select pawl.enqueue('q', d::text::bytea, p_delay_ms => d) from generate_series(60000, 61000, 1000) d;
                              update pawl.job set pos = pos - 70000000 where lane = 3; update pawl.job set next_attempt_at = now() where payload = '61000'$$), 'no',
          'also behind one that was put off by hand');
select is(pg_temp.few_after($$select pawl.enqueue('q', 'timed', p_delay_ms => 60000)$$), '1', 'but where its time has not');
select is(pg_temp.few_after($$select pawl.enqueue('q', 'timed', p_delay_ms => 60000);
                              update pawl.job set next_attempt_at = now(), pos = pawl.micros(now()) where lane = 3; update pawl.sweep set timed_from = (select max(pos) + 1 from pawl.job)$$), '1',
          'or where it is before those that a sweep has seen');
select is(pg_temp.few_after($$update pawl.sweep set next_at = now()$$), 'no', 'not where leases are to be looked for');
select is(pg_temp.few_after($$update pawl.sweep set next_at = now() + interval '1 hour'$$), 'no', 'or would be looked for too late');
select is(pg_temp.few_after($$delete from pawl.sweep$$), 'no', 'or nobody knows when');
select is(pg_temp.few_after(format($$insert into pawl.detour select queue_id from pawl.queue; update pawl.mark set at = at %s where lane = %s$$, by, lane)), 'no', format('or the mark of lane %s is %s off', lane, by))
from unnest('{0,1}'::int4[]) lane, unnest(array['- interval ''11 s''', '+ interval ''1 hour''']) by;
select is(pg_temp.few_after(format($$insert into pawl.detour select queue_id from pawl.queue; delete from pawl.mark where lane = %s$$, lane)), 'no', format('or lane %s has none', lane)) from unnest('{0,1}'::int4[]) lane;
select is(pg_temp.few_after($$update pawl.mark set boot = boot - interval '1 day'$$), 'no', 'or they are of another run of the server');
-- A mark beyond all jobs, but for those of a transaction that was late.
select is(pg_temp.few_after($$update pawl.mark set pos = (select max(pos) + 1 from pawl.job) where lane = 0 and kind = 0$$), '0', 'a claim begins at the mark');
select is(pg_temp.few_after($$update pawl.mark set pos = (select max(pos) + 1 from pawl.job), holes = array[(select max(pos) from pawl.job)], hole_seqs = '{0}'
                              where lane = 0 and kind = 0$$), 'no', 'not where somebody was late');
select is(pg_temp.few_after($$update pawl.mark set holes = '{1}', hole_seqs = '{0}' where kind = 0$$), '1', 'but where that one had no jobs');
select is(pg_temp.few_after($$select pawl_test.release(pawl_test.take());
                              update pawl.mark set pos = (select max(pos) + 1 from pawl.job), holes = array[(select pos from pawl.job where lane = 1)], hole_seqs = '{0}'
                              where lane = 1 and kind = 0$$), 'no', 'not where a job came back late either');
-- Where nothing ever came back or had to wait, nothing is looked for. Whatever does is noted.
select is((select count(*) from pawl.detour), 0::int8, 'nothing came back, and nothing had to wait');
select is(pg_temp.few_after($$delete from pawl.mark where lane = 1$$), '1', 'then a claim does without what is about those');
select is(pg_temp.few_after(v), 'no', 'until one does: ' || v) from unnest(array[
    'select pawl_test.release(pawl_test.take())', 'select pawl_test.take(); select pawl_test.age(''31 s''); select pawl_test.reap(); select pawl_test.age(''-31 s''); update pawl.mark set at = now()',
    'select s.verdict from pawl_test.take() h, pawl.settle_batch(0, ''w1'', array[h.id], array[h.token], array[h.version], ''{1}'', ''{0}'', ''{0}'', null, null, ''\x01'') s',
    'select s.verdict from pawl_test.take() h, pawl.settle_batch(0, ''w1'', array[h.id], array[h.token], array[h.version], ''{3}'', ''{0}'', ''{0}'', null, null, ''\x01'') s']) v;
select is(pg_temp.few_after(v || '; update pawl.job set next_attempt_at = now(), pos = pawl.micros(now()) where lane = 3'), 'no', 'or has to wait: ' || v) from unnest(array[
    'select pawl.enqueue(''q'', ''x'', p_delay_ms => 60000)',
    'select pawl.enqueue_batch(0, ''{q,q}'', array[gen_random_uuid(), gen_random_uuid()], ''{a,b}'', p_delays_ms => ''{0,60000}'', p_is_new => true)',
    'select pawl.enqueue_batch(0, ''{q,q2}'', array[gen_random_uuid(), gen_random_uuid()], ''{a,b}'', p_delays_ms => ''{60000,null}'')']) v;
-- What it may not take, one or more of them.
select is(pg_temp.few_after($$update pawl.job set start_by = now()$$, n), '0', 'no job that comes too late') from unnest('{1,2}'::int4[]) n;
select is(pg_temp.few_after($$update pawl.job set lease_version = 2147483647$$, n), '0', 'nor one whose version cannot rise') from unnest('{1,2}'::int4[]) n;
select is(pg_temp.few_after($$update pawl.job set next_attempt_at = now() + interval '1 hour'$$, n), '0', 'nor one that is not due') from unnest('{1,2}'::int4[]) n;
select is(pg_temp.few_after($$update pawl.mark set pos = (select max(pos) + 1 from pawl.job) where lane = 0 and kind = 0$$, n), '0', 'nor one before the mark') from unnest('{1,2}'::int4[]) n;
select is(pg_temp.few_after('select', 2), '2', 'two are taken where there are two');
-- What is wrong with a call is for claim_lines() to say.
select is(pg_temp.few(1, p_worker => w), 'no', 'a worker must have a name') from unnest(array['', E'w\n', repeat('w', 129), null]) w;
select is(pg_temp.few(n), 'no', 'a number of jobs that it is not for') from unnest('{0,-1,65,null}'::int4[]) n;
select is(pg_temp.few(1, p_lease_ms => l), 'no', 'a lease that there is not') from unnest('{99,315360000001}'::int8[]) l;
select is(pg_temp.few(1, p_bytes_max => b), 'no', 'a limit in bytes that there is not') from unnest('{0,null}'::int8[]) b;
select is((select count(*) from pawl.claim_few('w', 'q', 2, 30000, 1000, t::uuid[]) c where c.id is null), 1::int8, 'a token is missing')
from unnest(array[null, '{}', '{' || md5('1') || '}', '{null,' || md5('1') || '}', '{' || md5('1') || ',' || md5('2') || ',null}', '[0:1]={' || md5('1') || ',' || md5('2') || '}',
                  '{{' || md5('1') || '},{' || md5('2') || '}}']) t;
select is(pg_temp.few(2, p_bytes_max => 7), 'no', 'two jobs of four bytes are more than seven');
select is((select count(*) from pawl.job where state = 1), 0::int8, 'and none of all these has a lease');
select is(pg_temp.few(2, p_bytes_max => 8), '2', 'but not more than eight');
select is(pg_temp.few(1, p_bytes_max => 1), '1', 'and one job is given out however large it is');
begin isolation level repeatable read;
select is(pg_temp.few(1), 'no', 'where a claim would see what is old, it is not for it');
commit;

-- A key that the queue does not know of.
delete from pawl.job;
select pawl_test.put();
select pawl.enqueue('q', 'keyed', p_ordering_key => 'k');
update pawl.queue set has_keys = false;
select is(pg_temp.few(2), '1', 'a job with a key is not given out');
select ok((select has_keys from pawl.queue where name = 'q'), 'and the queue knows of it from then on');

-- The mark goes on with the jobs, so that a claim costs what it returns.
select pg_temp.calm('marked');
select pawl_test.put('marked') from generate_series(1, 3);
update pawl.mark set at = at - interval '1 s';
select is(pg_temp.few(2, 'marked'), '2', 'two are claimed');
select is((select (k.pos, k.seq) from pawl.mark k where k.line_id = j.line_id and k.lane = 0 and k.kind = 0 order by k.pos desc, k.seq desc limit 1), (j.pos, j.seq),
          'and the mark stands at the third')
from pawl.job j where j.line_id = (select queue_id * 4096 from pawl.queue where name = 'marked') and j.state = 0;
select * from finish();
