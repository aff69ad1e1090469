-- SPDX-License-Identifier: Apache-2.0
-- Work leases as an SQL client sees them (WL-*): results, errors and rows. What calls cost is in
-- worklease_plans_test.sql; races are in test/worklease/pg_races_test.c, the comparison with a model in test/worklease/sql_walk.c.
select no_plan();
create table h (name text primary key, token uuid);

-- Tells the result, and keeps the token.
create function get(p_name text, p_offset int8, p_owner text default null, p_lease_ms int8 default null, p_domain text default 'A',
                    p_backlog_max int8 default 100000) returns text language plpgsql as $$
declare
    v_got record;
begin
    select * into v_got from pawl.worklease_try_acquire(p_domain, p_offset, p_owner, p_lease_ms, p_backlog_max);
    if v_got.lease_token is not null then
        insert into h values (p_name, v_got.lease_token) on conflict (name) do update set token = excluded.token;
    end if;
    return v_got.result || case when v_got.is_taken_over then ' over' else '' end;
end $$;
create function t(p_name text) returns uuid language sql as $$ select token from h where name = p_name $$;
create function done(p_name text, p_owner text default null, p_domain text default 'A') returns text language sql as $$
    select concat_ws(' ', s.result, s.next_offset) from pawl.worklease_succeed(p_domain, t(p_name), p_owner) s
$$;
create function failed(p_name text, p_owner text default null, p_max int4 default 3) returns text language sql as $$
    select concat_ws(' ', f.result, f.next_offset, f.retry_count) from pawl.worklease_fail('A', t(p_name), p_owner, p_max) f
$$;

-- ---- the document's rules
select is(get('a', 1), 'ACQUIRED', 'WL-ACQUIRE');
select is(get('a', 1), 'ALREADY_ACQUIRED', 'WL-ACQUIRE: again');
select is(get('b', 2), 'ENQUEUED', 'WL-ACQUIRE: behind it');
select is(get('b', 2), 'ENQUEUED', 'WL-ACQUIRE: once');
select is(done('a'), 'NEXT_HINT 2', 'WL-SUCCEED');
select throws_ok($$select get('c', 3)$$, 'P7010', 'expected offset 2, the head of the backlog, but 3 was given in domain A', 'WL-ORDER');
select is(get('a', 1), 'ALREADY_PROCESSED', 'WL-IDEMPOTENT');
select throws_ok($$select done('a')$$, 'P7011', 'there is no lease in domain A', 'WL-NO-LEASE');
select throws_ok($$select done('a', null, 'never')$$, 'P7011', 'there is no lease in domain never', 'WL-NO-LEASE: of a domain that is not there');
select is((select count(*) from pawl.workleases where domain = 'never'), 0::int8, 'and is not made');
select is(get('b', 2), 'ACQUIRED', 'the head is acquired');
select is(failed('b'), 'RETRY_SCHEDULED 1', 'WL-FAIL');
select is(failed('b', p_max => 1), 'GIVE_UP_NO_BACKLOG', 'WL-FAIL: for good');
select is(get('b', 2), 'ALREADY_FAILED', 'WL-IDEMPOTENT');
select throws_ok($$select pawl.worklease_succeed('A', null)$$, 'P7011', null, 'a token that is NULL');
select is(get('d', 9), 'ACQUIRED', 'another one');
select throws_ok($$select pawl.worklease_succeed('A', null)$$, 'P7012', null, 'NULL is no token');
select throws_ok($$select pawl.worklease_succeed('A', t('a'))$$, 'P7012', 'the lease on offset 9 has another token or owner, in domain A', 'WL-FENCE: the token of another lease');
select throws_ok($$select pawl.worklease_fail('A', t('a'))$$, 'P7012', null, 'WL-FENCE: fail');
select throws_ok($$select pawl.worklease_renew('A', t('a'), 1000)$$, 'P7012', null, 'WL-FENCE: renew');
select is(get('e', 10, p_backlog_max => 1), 'ENQUEUED', 'the last that fits');
select throws_ok($$select get('e', 11, p_backlog_max => 1)$$, 'P7013', 'offset 11 finds the backlog full: 1 offsets are allowed to wait in domain A', 'a full backlog has an error of its own');
select is(done('d'), 'NEXT_HINT 10', 'the hint');
select is(get('e', 10), 'ACQUIRED', 'follows it');
select is(done('e'), 'NO_BACKLOG', 'and ends it');

-- ---- owners and deadlines
select is(get('o', 20, 'anna', 1000), 'ACQUIRED', 'with an owner and a deadline');
select is(get('x', 20, 'anna', 1000), 'ALREADY_ACQUIRED', 'the same owner is told the token');
select is(t('x'), t('o'), 'the same');
select is(get('y', 20, 'bert', 1000), 'HELD', 'another is not');
select is(get('y', 20), 'HELD', 'nor is nobody');
select is(t('y'), null, 'and is told no token');
select throws_ok($$select done('o', 'bert')$$, 'P7012', null, 'RES-3: the token alone is not enough');
select throws_ok($$select done('o')$$, 'P7012', null, 'RES-3: nor without an owner');
select is(failed('o', 'anna'), 'RETRY_SCHEDULED 1', 'a failure');
select pawl_test.age('2 s');
select throws_ok($$select done('o', 'anna')$$, 'P7014', 'the lease on offset 20 has expired, in domain A', 'RES-3: an expired lease ends nothing');
select throws_ok($$select failed('o', 'anna')$$, 'P7014', null, 'RES-3: nor fails');
select throws_ok($$select pawl.worklease_renew('A', t('o'), 1000, 'anna')$$, 'P7014', null, 'RES-3: nor is renewed');
select is(get('z', 21), 'ENQUEUED', 'nothing drops the current offset');
create temp table before as select acquired_at, retry_count from pawl.workleases where domain = 'A';
select is(get('p', 20, 'bert', 60000), 'ACQUIRED over', 'it is taken over');
select results_eq('select acquired_at, retry_count from pawl.workleases where domain = ''A''', 'select * from before', 'with its acquired-at time and its count');
select isnt(t('p'), t('o'), 'under a new token');
select throws_ok($$select done('o', 'anna')$$, 'P7012', null, 'WL-FENCE: the old one is refused');
select ok(pawl.worklease_renew('A', t('p'), 120000, 'bert') > clock_timestamp() + interval '100 s', 'renew extends');
select ok(pawl.worklease_renew('A', t('p'), 100, 'bert') > clock_timestamp() + interval '100 s', 'and never shortens');
select is(get('q', 20, 'anna'), 'HELD', 'a lease that lasts is not taken over');
select is(done('p', 'bert'), 'NEXT_HINT 21', 'and ended by its holder');

-- ---- arguments
select throws_ok($$select pawl.worklease_try_acquire(null, 1)$$, 'P7001', null, 'no domain');
select throws_ok($$select pawl.worklease_try_acquire('', 1)$$, 'P7001', null, 'an empty domain');
select throws_ok($$select pawl.worklease_try_acquire(repeat('d', 256), 1)$$, 'P7001', null, 'a long domain');
select throws_ok($$select pawl.worklease_try_acquire(repeat('ä', 128), 1)$$, 'P7001', null, 'a domain that is long in bytes');
select throws_ok($$select pawl.worklease_try_acquire(E'a\nb', 1)$$, 'P7001', null, 'control characters');
select throws_ok($$select pawl.worklease_try_acquire(E'a\u0085', 1)$$, 'P7001', null, 'control characters beyond ASCII');
select throws_ok($$select pawl.worklease_try_acquire('A', null)$$, 'P7001', null, 'no offset');
select throws_ok($$select pawl.worklease_try_acquire('A', 1, 'a b')$$, 'P7001', null, 'a bad owner');
select throws_ok($$select pawl.worklease_try_acquire('A', 1, 'a', 99)$$, 'P7001', null, 'a short lease');
select throws_ok($$select pawl.worklease_try_acquire('A', 1, p_backlog_max => 0)$$, 'P7001', null, 'no backlog');
select throws_ok($$select pawl.worklease_fail('A', t('p'), 'bert', -1)$$, 'P7001', null, 'a bad bound');
select throws_ok($$select pawl.worklease_renew('A', t('p'), null, 'bert')$$, 'P7001', null, 'no duration');
select lives_ok($$select pawl.worklease_try_acquire(repeat('d', 255), -9223372036854775808)$$, 'the longest name, the least offset');

-- ---- names from a column with a collation of its own
create table named (domain text collate "POSIX", owner text collate "POSIX");
insert into named values ('N', 'anna');
select is(get('n', 1, n.owner, 60000, n.domain), 'ACQUIRED', 'try_acquire, whatever the collation') from named n;
select is(get('n', 1, n.owner, 60000, n.domain), 'ALREADY_ACQUIRED', 'and again') from named n;
select is(get('n', 1, 'Anna', 60000, n.domain), 'HELD', 'owners are compared byte by byte') from named n;
select ok(pawl.worklease_renew(n.domain, t('n'), 60000, n.owner) is not null, 'renew, whatever the collation') from named n;
select is((select f.result from named n, pawl.worklease_fail(n.domain, t('n'), n.owner) f), 'RETRY_SCHEDULED', 'fail, whatever the collation');
select is(done('n', n.owner, n.domain), 'NO_BACKLOG', 'succeed, whatever the collation') from named n;
select is((select count(*) from named n, pawl.list_workleases(n.domain, n.domain, 10)), 0::int8, 'list_workleases, whatever the collation');
select is((select count(*) from named n, pawl.list_worklease_backlog(n.domain, 0, 10)), 1::int8, 'list_worklease_backlog, whatever the collation');
select is((select count(*) from named n, pawl.list_worklease_terminal(n.domain, 0, 10)), 2::int8, 'list_worklease_terminal, whatever the collation');

-- ---- rows: bounded for contiguous sets (WL-MEMORY)
create procedure run_through(p_domain text, p_offsets int8[]) language plpgsql as $$
declare
    v_offset int8;
begin
    foreach v_offset in array p_offsets loop
        perform get('r', v_offset, p_domain => p_domain);
        perform done('r', p_domain => p_domain);
        commit;
    end loop;
end $$;
create function shuffled(p_count int4) returns int8[] language sql as $$
    select array_agg(g::int8 order by md5(g::text)) from generate_series(1, p_count) g
$$;
set synchronous_commit = off;
call run_through('M', shuffled(600));
select is((select count(*) from pawl.worklease_terminals where domain = 'M'), 1::int8, '600 offsets in random order are one row');
call run_through('M', '{-9223372036854775808, 9223372036854775807, 9223372036854775806, -9223372036854775807}');
select results_eq($$select first_offset, last_offset from pawl.worklease_terminals where domain = 'M' order by 1$$,
    $$values (-9223372036854775808, -9223372036854775807), (1::int8, 600::int8), (9223372036854775806, 9223372036854775807)$$, 'at both ends of the range');
select * from finish();
