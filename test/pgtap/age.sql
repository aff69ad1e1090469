-- SPDX-License-Identifier: Apache-2.0
-- For tests: lets time pass for everything that is stored, and makes what they need often short to say.
create schema pawl_test;

-- Shifts every instant back. The ledger refuses changes, to tests as well: hence the switch, which superusers have.
create function pawl_test.age(p_by interval) returns void language plpgsql as $$
begin
    perform set_config('session_replication_role', 'replica', true);
    update pawl.job set created_at = created_at - p_by, next_attempt_at = next_attempt_at - p_by,
        lease_expires_at = lease_expires_at - p_by, claimed_at = claimed_at - p_by, run_until = run_until - p_by,
        start_by = start_by - p_by, unstarted_until = unstarted_until - p_by,
        pos = case when lane = 3 then pos - (extract(epoch from p_by) * 1000000)::int8 else pos end;
    update pawl.attempt set started_at = started_at - p_by, finished_at = finished_at - p_by, created_at = created_at - p_by;
    update pawl.dead_letter set created_at = created_at - p_by, due_at = due_at - p_by, finished_at = finished_at - p_by,
        start_by = start_by - p_by;
    update pawl.worker set since = since - p_by, last_seen = last_seen - p_by;
    update pawl.mark set at = at - p_by;
    update pawl.sweep set at = at - p_by, next_at = next_at - p_by,
        timed_from = timed_from - (extract(epoch from p_by) * 1000000)::int8;
    update pawl.worklease set acquired_at = acquired_at - p_by, lease_expires_at = lease_expires_at - p_by;
    update pawl.endpoint set created_at = created_at - p_by, changed_at = changed_at - p_by, switched_at = switched_at - p_by,
                             failing_since = failing_since - p_by;
    update pawl.event set published_at = published_at - p_by, keep_until = keep_until - p_by;
    update pawl.endpoint_secret set until = until - p_by;
    update pawl.once set at = at - p_by, held_until = held_until - p_by, expires_at = expires_at - p_by;
    perform set_config('session_replication_role', 'origin', true);
end $$;

-- Enqueues one job.
create function pawl_test.put(p_queue text default 'q', p_priority int4 default 5) returns uuid language sql as $$
    select pawl.enqueue(p_queue, 'work', p_priority => p_priority)
$$;

-- The lease on a job, as its holder knows it.
create type pawl_test.held as (id uuid, token uuid, version int4);
create function pawl_test.take(p_worker text default 'w1', p_queue text default 'q', p_lease_seconds numeric default 30)
returns pawl_test.held language sql as $$
    select c.outbox_id, c.lease_token, c.lease_version from pawl.claim_outbox_batch(1, p_worker, p_lease_seconds, p_queue) c
$$;

-- How many jobs a claim gets.
create function pawl_test.take_count(p_max int4, p_worker text default 'w1', p_queue text default 'q') returns int8
language sql as $$
    select count(*) from pawl.claim_outbox_batch(p_max, p_worker, 30, p_queue)
$$;

create function pawl_test.done(p_held pawl_test.held, p_state text default 'DISPATCHED', p_worker text default 'w1')
returns int4 language sql as $$
    select pawl.complete_outbox_attempt(p_held.id, p_held.token, p_worker, p_state)
$$;

-- A job's ledger in one line.
create function pawl_test.ledger(p_id uuid) returns text language sql as $$
    select coalesce(string_agg(a.attempt_no || ' ' || a.outcome || ' ' || a.reason, ', ' order by a.attempt_no), '')
    from pawl.attempts a where a.job_id = p_id
$$;

create function pawl_test.state(p_id uuid) returns text language sql as $$
    select j.state from pawl.jobs j where j.id = p_id
$$;

-- What one row of a batch is answered.
create function pawl_test.settle(p_held pawl_test.held, p_action int2, p_reason int2 default 0, p_delay_ms int8 default null,
                                 p_worker text default 'w1') returns text language sql as $$
    select verdict from pawl.settle_batch(0, p_worker, array[p_held.id], array[p_held.token], array[p_held.version],
                                          array[p_action], array[p_reason], array[p_delay_ms], null, null, '\x01')
$$;
create function pawl_test.renew(p_held pawl_test.held, p_lease_ms int8 default null, p_worker text default 'w1') returns text
language sql as $$
    select verdict from pawl.renew_batch(0, p_worker, array[p_held.id], array[p_held.token], array[p_held.version],
                                         array[p_lease_ms], array[false])
$$;
create function pawl_test.release(p_held pawl_test.held, p_worker text default 'w1') returns text language sql as $$
    select verdict from pawl.release_batch(0, p_worker, array[p_held.id], array[p_held.token], array[p_held.version])
$$;
create function pawl_test.reap() returns int8 language sql as $$
    select count(*) from pawl.reap(0, 1000, '\x01')
$$;
