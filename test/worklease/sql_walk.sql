-- SPDX-License-Identifier: Apache-2.0
-- Makes a list of operations on work leases, each in a transaction of its own, and writes down what each was told and what is
-- kept of its domain afterwards. Tokens are told by the number of the operation that they were given to.
create table pawl_test.op (
    no int4 primary key, turn_us int8, kind int4, domain text, value int8, owner text, lease_ms int8, bound int8, token_no int4);
create table pawl_test.grants (no int4 primary key, token uuid);
create table pawl_test.told (no int4, told text, kept text);

create function pawl_test.us(p_at timestamptz) returns text language sql stable as $$
    select case when p_at is null then '-' else pawl.micros(p_at)::text end
$$;

-- In plpgsql, and the clock too: a function in SQL would be planned anew at every call.
create function pawl_test.kept(p_domain text) returns text language plpgsql as $$
declare
    v_at pawl.worklease;
    v_backlog text;
    v_terminal text;
begin
    select * into v_at from pawl.worklease w where w.domain = p_domain;
    if not found then
        return null;
    end if;
    select string_agg(b.queued_offset::text, ',' order by b.seq) into v_backlog
    from pawl.worklease_backlog b where b.domain_id = v_at.domain_id;
    if exists (select from pawl.worklease_backlog b where b.domain_id = v_at.domain_id
               having count(*) <> v_at.backlog_count
                   or count(*) filter (where b.seq - v_at.backlog_first not between 0 and v_at.backlog_count - 1) > 0) then
        raise exception 'the numbers of those that wait have gaps in domain %', p_domain;
    end if;
    select string_agg(t.first_offset || '..' || t.last_offset || case when t.is_failed then 'f' else 'p' end, ','
                      order by t.first_offset) into v_terminal
    from pawl.worklease_terminal t where t.domain_id = v_at.domain_id;
    return concat_ws(' ', coalesce(v_at.current_offset::text, '-'), coalesce(v_at.owner, '-'), pawl_test.us(v_at.acquired_at),
                     coalesce(v_at.retry_count::text, '-'), pawl_test.us(v_at.lease_expires_at),
                     '[' || coalesce(v_backlog, '') || ']', '[' || coalesce(v_terminal, '') || ']');
end $$;
create or replace function pawl_test.clock() returns timestamptz language plpgsql volatile as $$
begin
    return timestamptz 'epoch' + (select c.last_value from pawl_test.clock_us c) * interval '1 microsecond';
end $$;

create function pawl_test.make(p_op pawl_test.op) returns text language plpgsql as $$
declare
    v_token uuid := coalesce((select g.token from pawl_test.grants g where g.no = p_op.token_no), gen_random_uuid());
    v_got record;
begin
    if p_op.kind = 0 then
        select * into v_got from pawl.worklease_try_acquire(p_op.domain, p_op.value, p_op.owner, p_op.lease_ms, p_op.bound);
        if v_got.result = 'ACQUIRED' then
            insert into pawl_test.grants values (p_op.no, v_got.lease_token);
        end if;
        return concat_ws(' ', v_got.result,
                         coalesce((select g.no::text from pawl_test.grants g where g.token = v_got.lease_token), '-'),
                         v_got.is_taken_over, coalesce(v_got.current_offset::text, '-'), pawl_test.us(v_got.acquired_at),
                         coalesce(v_got.retry_count::text, '-'), pawl_test.us(v_got.lease_expires_at));
    elsif p_op.kind = 1 then
        select * into v_got from pawl.worklease_succeed(p_op.domain, v_token, p_op.owner);
        return concat_ws(' ', v_got.result, coalesce(v_got.next_offset::text, '-'), '-');
    elsif p_op.kind = 2 then
        select * into v_got from pawl.worklease_fail(p_op.domain, v_token, p_op.owner, p_op.bound::int4);
        return concat_ws(' ', v_got.result, coalesce(v_got.next_offset::text, '-'), coalesce(v_got.retry_count::text, '-'));
    end if;
    return 'RENEWED ' || pawl_test.us(pawl.worklease_renew(p_op.domain, v_token, p_op.lease_ms, p_op.owner));
exception when others then
    return sqlstate;
end $$;

create procedure pawl_test.walk() language plpgsql as $$
declare
    v_op pawl_test.op;
    v_told text;
begin
    for v_op in select * from pawl_test.op order by no loop
        if v_op.turn_us > 0 then
            perform setval('pawl_test.clock_us', (select last_value + v_op.turn_us from pawl_test.clock_us));
        end if;
        v_told := pawl_test.make(v_op);
        insert into pawl_test.told values (v_op.no, v_told, pawl_test.kept(v_op.domain));
        commit;
    end loop;
end $$;
create index on pawl_test.grants (token);
