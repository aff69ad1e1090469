-- SPDX-License-Identifier: Apache-2.0
-- What is shown of work leases, and to whom. No token in any of it.

-- ---- functions, over all shards

-- Domains above p_after, by name; with p_domain, that one only.
create function pawl.list_workleases(p_domain text, p_after text, p_max int4)
returns table (domain text, current_offset int8, owner text, acquired_at timestamptz, retry_count int4,
               lease_expires_at timestamptz, is_expired boolean, backlog_count int8, backlog_head int8)
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_domain text collate "C" := p_domain;
    v_after text collate "C" := p_after;
begin
    return query
        select w.domain, w.current_offset, w.owner, w.acquired_at, w.retry_count, w.lease_expires_at,
               coalesce(w.lease_expires_at <= clock_timestamp(), false), w.backlog_count, b.queued_offset
        from pawl.worklease w
        left join pawl.worklease_backlog b on b.shard = w.shard and b.domain_id = w.domain_id and b.seq = w.backlog_first
        where (v_domain is null or w.domain = v_domain) and (v_after is null or w.domain > v_after)
        order by w.domain limit p_max;
end $$;

-- Offsets that wait in a domain, from the head, but for the first p_skip. The first row is empty: it says that the domain is known.
create function pawl.list_worklease_backlog(p_domain text, p_skip int8, p_max int4) returns table (queued_offset int8)
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_domain text collate "C" := p_domain;
    v_at pawl.worklease;
begin
    select * into v_at from pawl.worklease w where w.domain = v_domain;
    if not found then
        return;
    end if;
    return next;
    if p_skip < v_at.backlog_count then
        return query
            select b.queued_offset from pawl.worklease_backlog b
            where b.shard = v_at.shard and b.domain_id = v_at.domain_id and b.seq >= v_at.backlog_first + p_skip
            order by b.seq limit p_max;
    end if;
end $$;

-- Offsets of a domain that have ended, as intervals, but for the first p_skip; the first row as above.
create function pawl.list_worklease_terminal(p_domain text, p_skip int8, p_max int4)
returns table (first_offset int8, last_offset int8, is_failed boolean)
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_domain text collate "C" := p_domain;
    v_at pawl.worklease;
begin
    select * into v_at from pawl.worklease w where w.domain = v_domain;
    if not found then
        return;
    end if;
    return next;
    return query
        select t.first_offset, t.last_offset, t.is_failed from pawl.worklease_terminal t
        where t.shard = v_at.shard and t.domain_id = v_at.domain_id
        order by t.first_offset offset p_skip limit p_max;
end $$;

-- ---- views

create view pawl.workleases as
    select w.domain, w.shard, w.current_offset, w.owner, w.acquired_at, w.retry_count, w.lease_expires_at,
           coalesce(w.lease_expires_at <= clock_timestamp(), false) as is_expired, w.backlog_count,
           b.queued_offset as backlog_head
    from pawl.worklease w
    left join pawl.worklease_backlog b on b.shard = w.shard and b.domain_id = w.domain_id and b.seq = w.backlog_first;

create view pawl.worklease_backlogs as
    select w.domain, b.seq - w.backlog_first + 1 as position, b.queued_offset
    from pawl.worklease w join pawl.worklease_backlog b on b.shard = w.shard and b.domain_id = w.domain_id;

create view pawl.worklease_terminals as
    select w.domain, t.first_offset, t.last_offset, case when t.is_failed then 'failed' else 'processed' end as outcome
    from pawl.worklease w join pawl.worklease_terminal t on t.shard = w.shard and t.domain_id = w.domain_id;

-- ---- roles

revoke all on pawl.worklease, pawl.worklease_backlog, pawl.worklease_terminal, pawl.workleases, pawl.worklease_backlogs,
    pawl.worklease_terminals from public;
revoke all on sequence pawl.worklease_seq from public;
revoke all on all functions in schema pawl from public;

-- What the runtime role may call: what it could, and these.
select pawl.runtime_may_call('{worklease_try_acquire, worklease_succeed, worklease_fail,
            worklease_renew, list_workleases, list_worklease_backlog, list_worklease_terminal}');

-- What a reader may look at: what it could, and these.
alter function pawl.grant_reader(name) rename to grant_reader_of_jobs;
create function pawl.grant_reader(p_role name) returns void
language plpgsql set search_path = pg_catalog, pawl, pg_temp as $$
begin
    perform pawl.grant_reader_of_jobs(p_role);
    execute format('grant select on pawl.workleases, pawl.worklease_backlogs, pawl.worklease_terminals to %I', p_role);
end $$;
revoke all on function pawl.grant_reader(name) from public;

select pawl.grant_again();
