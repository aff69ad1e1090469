-- SPDX-License-Identifier: Apache-2.0
-- What calls on work leases cost beside 20,000 intervals, a backlog of 5,000 and 5,000 other domains, in each state of statistics.
-- Counted in rows that were looked at, not in time.
set synchronous_commit = off;
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
create table cost (step text, seq_rows int8, idx_rows int8);
create view looked_at as
    select coalesce(sum(t.seq_tup_read), 0) seq_rows, coalesce(sum(t.idx_tup_fetch), 0) idx_rows
    from pg_stat_xact_user_tables t where t.schemaname = 'pawl' and t.relname ~ '^worklease';
create sequence step_offset start 1000000 increment 2;
create procedure life(p_step text, p_domain text) language plpgsql as $$
declare
    v_before looked_at;
    v_offset int8;
begin
    for i in 1 .. 20 loop
        select * into v_before from looked_at;
        v_offset := coalesce((select backlog_head from pawl.workleases where domain = p_domain), nextval('step_offset'));
        perform get('l', v_offset, 'w', 60000, p_domain);
        perform get('m', nextval('step_offset'), 'w', 60000, p_domain);
        perform pawl.worklease_renew(p_domain, t('l'), 60000, 'w');
        perform pawl.worklease_fail(p_domain, t('l'), 'w');
        perform done('l', 'w', p_domain);
        perform pawl.list_workleases(p_domain, null, 1);
        insert into cost select p_step, l.seq_rows - v_before.seq_rows, l.idx_rows - v_before.idx_rows from looked_at l;
        commit;
    end loop;
end $$;
create procedure furnish() language plpgsql as $$
begin
    perform get('f', 1, p_domain => 'big');
    insert into pawl.worklease_terminal select w.shard, w.domain_id, 10 * g, 10 * g, g % 7 = 0 from pawl.worklease w, generate_series(1, 20000) g where w.domain = 'big';
    insert into pawl.worklease_backlog select w.shard, w.domain_id, w.backlog_first + g - 1, 1 - 2 * g - 100 from pawl.worklease w, generate_series(1, 5000) g where w.domain = 'big';
    update pawl.worklease set backlog_count = 5000 where domain = 'big';
    insert into pawl.worklease (shard, domain) select 0, 'other/' || g from generate_series(1, 5000) g;
    perform done('f', p_domain => 'big');
    commit;
end $$;
alter table pawl.worklease set (autovacuum_enabled = off);
alter table pawl.worklease_backlog set (autovacuum_enabled = off);
alter table pawl.worklease_terminal set (autovacuum_enabled = off);
call life('nothing', 'small');
call furnish();
call life('planned on an empty table', 'big');
\connect -
call life('never analysed', 'big');
analyze pawl.worklease, pawl.worklease_backlog, pawl.worklease_terminal;
\connect -
call life('full', 'big');
set plan_cache_mode = force_custom_plan;
call life('custom', 'big');
select no_plan();
select is((select string_agg(distinct step, ', ') from cost where seq_rows > 0 and step not in ('nothing')), null, 'no call reads a whole table');
-- Five calls and a look; each looks at its domain, and at few rows beside it. What has gone and was not vacuumed yet counts too.
select is((select string_agg(step || ' ' || idx_rows, ', ') from cost where idx_rows > 40), null, 'no call reads more than it is about');
select diag(step || ': ' || max(idx_rows) || ' rows at most for five calls and a look') from cost group by step;
select * from finish();
