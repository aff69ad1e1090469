-- SPDX-License-Identifier: Apache-2.0
-- Three roles: the owner, who installs; the runtime, who calls functions and touches no table, but puts single jobs through a view; the reader, who sees views.

revoke all on schema pawl from public;
revoke all on all tables in schema pawl from public;
revoke all on all sequences in schema pawl from public;
revoke all on all functions in schema pawl from public;

-- The functions that the runtime role may call. Everything else is theirs to call, not the role's.
create function pawl.runtime_functions() returns text[]
language sql immutable as $$
    select '{enqueue, enqueue_batch, enqueue_one, hint_of, new_id, claim_outbox_batch, claim_batch, claim_lines, claim_few, hello, mine, complete_outbox_attempt, settle_batch,
             succeed_all, renew_outbox_lease, renew_batch, release_outbox_lease, release_batch, repair_expired_leases, reap, reap_lines, prune, prune_lines,
             cancel_batch, redrive_batch, discard_batch, cancel_where, redrive_where, discard_where, get_job, list_jobs,
             list_attempts, list_leases, list_workers, list_stats, list_depths, worker_seen, worker_ended, queue_get, queue_set,
             queue_pause, shards, store_now, state_name, outcome_name, reason_name, ended_by_name}'::text[]
$$;
revoke all on function pawl.runtime_functions() from public;

-- Lets a role work: produce, claim, renew, settle, recover, operate. Called by the owner.
create function pawl.grant_runtime(p_role name) returns void
language plpgsql set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_function regprocedure;
begin
    execute format('grant usage on schema pawl to %I', p_role);
    execute format('grant select on pawl.migration to %I', p_role);
    execute format('grant insert (line_id, id, payload) on pawl.arrival to %I', p_role);
    for v_function in
        select p.oid from pg_proc p
        where p.pronamespace = 'pawl'::regnamespace and p.proname = any (pawl.runtime_functions())
    loop
        execute format('grant execute on function %s to %I', v_function, p_role);
    end loop;
end $$;
revoke all on function pawl.grant_runtime(name) from public;

-- Lets a role look: at views, none of which shows a token or a payload. Called by the owner.
create function pawl.grant_reader(p_role name) returns void
language plpgsql set search_path = pg_catalog, pawl, pg_temp as $$
begin
    execute format('grant usage on schema pawl to %I', p_role);
    execute format('grant select on pawl.jobs, pawl.leases, pawl.stale_leases, pawl.queue_stats, pawl.attempts,
                    pawl.dead_letters, pawl.workers, pawl.migration to %I', p_role);
    -- The views call these with the rights of whoever reads.
    execute format('grant execute on function pawl.state_name, pawl.outcome_name, pawl.reason_name, pawl.ended_by_name,
                    pawl.list_stats to %I', p_role);
end $$;
revoke all on function pawl.grant_reader(name) from public;

-- What the runtime role may call from now on as well. For later steps, with the next one.
create function pawl.runtime_may_call(p_functions text[]) returns void
language plpgsql set search_path = pg_catalog, pawl, pg_temp as $$
begin
    execute format('create or replace function pawl.runtime_functions() returns text[] language sql immutable as %L',
                   format('select %L::text[]', pawl.runtime_functions() || p_functions));
end $$;
revoke all on function pawl.runtime_may_call(text[]) from public;

-- Roles that were granted before a step came are given what is new in it.
create function pawl.grant_again() returns void
language plpgsql set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_role name;
begin
    for v_role in
        select distinct r.rolname from pg_proc p, aclexplode(p.proacl) a, pg_roles r
        where p.oid = 'pawl.hello()'::regprocedure and r.oid = a.grantee and a.grantee <> p.proowner
    loop
        perform pawl.grant_runtime(v_role);
    end loop;
    for v_role in
        select distinct r.rolname from pg_class c, aclexplode(c.relacl) a, pg_roles r
        where c.oid = 'pawl.jobs'::regclass and r.oid = a.grantee and a.grantee <> c.relowner
    loop
        perform pawl.grant_reader(v_role);
    end loop;
end $$;
revoke all on function pawl.grant_again() from public;
