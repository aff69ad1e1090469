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
select pawl.enqueue('q', 'tries', p_max_retries => 9);
select pawl.enqueue('q', 'headers', p_headers => '{"a": "b"}');
select pawl.enqueue('q', 'last');
create temp table few as select 1 call, c.* from pawl.claim_few('w', 'q', 3, null, 1 << 20, pg_temp.tokens(3)) with ordinality c;
select is((select string_agg(convert_from(payload, 'UTF8'), ' ' order by array_position(pg_temp.tokens(3), lease_token)) from few), 'work usual tries',
          'the first of them are given out, and their tokens tell their order');
insert into few select 2, c.* from pawl.claim_few('w', 'q', 100, 40000, 1 << 20, pg_temp.tokens(100)) with ordinality c;
select is((select string_agg(convert_from(payload, 'UTF8'), ' ' order by array_position(pg_temp.tokens(100), lease_token)) from few where call = 2), 'headers last', 'and then the others');
select results_eq($$select call, ordinality, lease_ms, timeout_ms, max_retries, num_nonnulls(lease_token, payload, headers, place) from few where id is null order by call$$,
                  $$values (1, 1::int8, 5000::int8, 60000::int8, 7, 0), (2, 1, 40000, 60000, 7, 0)$$, 'the first row of each says what its jobs share, and nothing else');
-- What a job has of its own stands in its row; what is as usual does not.
create temp view usual as
    select j.id, j.lease_token, j.created_at, j.max_retries::int4, j.payload, j.headers, j.ctid, null::int8 lease_ms, null::int8 timeout_ms from pawl.job j where j.state = 1;
select results_eq($$select id, lease_token, at, max_retries, payload, headers, place, lease_ms, timeout_ms from few where id is not null order by id$$,
                  $$select * from usual order by id$$, 'as the table has them, each with its own token');
select results_eq($$select payload, max_retries, headers from few where id is not null order by call, ordinality$$,
                  $$values ('work'::bytea, null::int4, null::text), ('usual', null, null), ('tries', 9, null), ('headers', null, E'a: b\n'), ('last', null, null)$$,
                  'and what is as usual is left out');
select is((select count(*) from pawl.job j where j.state = 1 and (j.lease_version, j.attempts, j.retries, j.lost_leases, j.reason, j.next_attempt_at) = (1, 0, 0, 0, 0, j.created_at)), 5::int8,
          'what no row says is so for all of them');
select is((select string_agg(format('%s %s %s %s', j.claimed_by, j.lease_ms, j.run_ms, j.unstarted_until - j.run_until), ', ')
           from pawl.job j join few f using (id) join few h on h.call = f.call and h.id is null
           where (j.claimed_at, j.lease_expires_at, j.run_until, j.lease_ms, j.run_ms)
                 <> (h.at, h.at + pawl.ms(h.lease_ms), h.at + pawl.ms(h.timeout_ms), h.lease_ms, h.timeout_ms)
              or j.claimed_by <> 'w' or j.unstarted_until <> j.run_until + 2 * pawl.ms(j.lease_ms)), null, 'OL-FIELDS: the table has what the first row says of all');
select is((select array_agg(distinct lease_token order by lease_token) from few where call = 1 and id is not null), (select array_agg(t order by t) from unnest(pg_temp.tokens(3)) t),
          'RES-8: each with one of the tokens that were given');
select results_eq($$select ordinal, verdict, attempt_no from pawl.settle_batch(0, 'w', array(select id from few where id is not null order by id),
                         array(select lease_token from few where id is not null order by id), array_fill(1, array[5]), null, null, null, null, null, '\x01', null, true)$$,
                  $$values (0, 'OK', 5)$$, 'and all five are settled by what was given');
select is(pg_temp.few(1), '0', 'then there is nothing');
select is((select count(*) from pawl.claim_few('w', 'q', 100, 30000, 1 << 20, pg_temp.tokens(100))), 0::int8, 'and not a row that says so');
-- A queue that does not say how long work may take.
select pg_temp.calm('free');
select pawl_test.put('free') from generate_series(1, 2);
select results_eq($$select lease_ms, timeout_ms from pawl.claim_few('w', 'free', 1, null, 1000, pg_temp.tokens(1)) where id is null$$,
                  $$values (30000::int8, 90000::int8)$$, 'RES-6: three times the lease that the queue has');
select results_eq($$select lease_ms, timeout_ms from pawl.claim_few('w', 'free', 2, 40000, 1000, pg_temp.tokens(2)) where id is null$$,
                  $$values (40000::int8, 120000::int8)$$, 'RES-6: or that was asked for');
delete from pawl.job;

-- Rows that lie in another order than their jobs.
select count(*) from (select pawl.enqueue('q', 'x') from generate_series(1, 101)) e;
update pawl.job j set priority = j.priority where j.seq % 3 = 0;
create temp table lain as select * from pawl.claim_few('w', 'q', 100, 30000, 1 << 20, pg_temp.tokens(100)) where id is not null;
select is((select count(*) from lain), 100::int8, 'a hundred at most are given out');
select is((select count(distinct j.lease_token) from pawl.job j join lain l using (id, lease_token) where j.lease_token = any (pg_temp.tokens(100))), 100::int8,
          'RES-8: each has a token of its own wherever its row lies');
select is((select count(*) from pawl.job l where l.state = 1 and l.seq > (select j.seq from pawl.job j where j.state = 0)), 0::int8, 'Q-FIFO: and the one that is left came last');
select is((select array_agg(l.lease_token order by j.pos, j.seq) from lain l join pawl.job j using (id)), pg_temp.tokens(100), 'and the tokens tell in which order they came');
delete from pawl.job;

-- What is left alone.
select pawl_test.put() from generate_series(1, 3);
select is(pg_temp.few_after('select'), '1', 'a job is there');
select is(pg_temp.few_after($$select pawl.queue_pause('q', true)$$), 'no', 'not where the queue is paused');
select is(pg_temp.few_after($$update pawl.queue set max_in_flight = 1$$), 'no', 'or has a limit');
select is(pg_temp.few_after(format('update pawl.job set %s where seq = (select %s(seq) from pawl.job)', c, w), m), 'no', format('or the %s of %s has %s', w, m, c))
from unnest('{timeout_ms = 5000,start_by = now() + interval ''1 h'',attempts = 1,lease_version = 1,retries = 1,lost_leases = 1,reason = 1,next_attempt_at = created_at - interval ''1 s''}'::text[]) c,
     (values ('min', 1), ('min', 3), ('max', 3)) m(w, m);
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
-- A timeout of its own is nothing that jobs share.
select is(pg_temp.few_after($$update pawl.job set timeout_ms = 7000$$, n), 'no', 'none with a timeout of its own') from unnest('{1,2}'::int4[]) n;
create temp view second as select id from pawl.job order by pos, seq limit 1 offset 1;
select is(pg_temp.few_after($$update pawl.job set timeout_ms = 7000 where id = (select id from second)$$, n), case n when 1 then '1' else 'no' end, 'also if it is the second of ' || n)
from unnest('{1,2,3}'::int4[]) n;
-- What is wrong with a call is for claim_lines() to say.
select is(pg_temp.few(1, p_worker => w), 'no', 'a worker must have a name') from unnest(array['', E'w\n', repeat('w', 129), null]) w;
select is(pg_temp.few(n), 'no', 'a number of jobs that it is not for') from unnest('{0,-1,101,null}'::int4[]) n;
select is(pg_temp.few(1, p_lease_ms => l), 'no', 'a lease that there is not') from unnest('{99,315360000001}'::int8[]) l;
select is(pg_temp.few(1, p_bytes_max => b), 'no', 'a limit in bytes that there is not') from unnest('{0,null}'::int8[]) b;
select is((select count(*) from pawl.claim_few('w', 'q', 2, 30000, 1000, t::uuid[]) c where c.id is null), 1::int8, 'a token is missing')
from unnest(array[null, '{}', '{' || md5('1') || '}', '{null,' || md5('1') || '}', '{' || md5('1') || ',' || md5('2') || ',null}', '[0:1]={' || md5('1') || ',' || md5('2') || '}',
                  '{{' || md5('1') || '},{' || md5('2') || '}}']) t;
select is(pg_temp.few(2, p_bytes_max => 7), 'no', 'two jobs of four bytes are more than seven');
select is((select count(*) from pawl.job where state = 1), 0::int8, 'and none of all these has a lease');
select is(pg_temp.few(2, p_bytes_max => 8), '2', 'but not more than eight');
select is(pg_temp.few(1, p_bytes_max => 1), '1', 'and one job is given out however large it is');
select pawl_test.put();
select is(pg_temp.few(2, p_bytes_max => 1), '1', 'also where two are asked for');
select pawl_test.put();
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
