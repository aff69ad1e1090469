-- SPDX-License-Identifier: Apache-2.0
-- What readers see (OL-QUERIES): no token and no payload in any of it.

-- Every job that is known.
create view pawl.jobs as
    select f.id, q.name as queue, f.shard, pawl.state_name(f.state) as state, f.priority, f.retries, f.lost_leases, f.attempts,
           f.lease_version, coalesce(f.max_retries, q.max_retries) as max_retries, f.created_at, f.due_at as next_attempt_at,
           f.start_by, f.finished_at, pawl.reason_name(f.reason) as reason, f.worker as claimed_by, f.claimed_at,
           f.lease_expires_at, f.run_until, f.is_cancel_asked, f.payload_len, f.ordering_key, nullif(f.fence, 0) as fence
    from pawl.job_form f left join pawl.queue q on q.queue_id = f.line_id / 4096;

-- Who holds what, and until when.
create view pawl.leases as
    select j.id, q.name as queue, j.shard, j.claimed_by, j.lease_version, j.claimed_at, j.lease_expires_at, j.run_until,
           (j.lease_expires_at > clock_timestamp()) is not true as is_expired, j.is_cancel_asked, j.lost_leases,
           j.ordering_key, nullif(j.fence, 0) as fence
    from pawl.job j left join pawl.queue q on q.queue_id = j.line_id / 4096
    where j.state = 1;

-- Leases that have expired and that nobody has recovered yet; which should not be many, and never for long.
create view pawl.stale_leases as
    select l.id, l.queue, l.shard, l.claimed_by, l.lease_version, l.claimed_at, l.lease_expires_at,
           case when isfinite(l.lease_expires_at) then clock_timestamp() - l.lease_expires_at end as overdue, l.lost_leases
    from pawl.leases l where l.is_expired;

-- How much waits and runs: depth by state, age of the longest-waiting due job, in flight by worker.
create view pawl.queue_stats as
    select s.queue, s.is_paused, s.ready, s.delayed, s.in_flight, s.expired, s.succeeded, s.failed,
           s.oldest_due_ms * interval '1 millisecond' as oldest_ready_age,
           coalesce((select jsonb_object_agg(w.claimed_by, w.n) from (
               select l.claimed_by, count(*) n from pawl.leases l where l.queue = s.queue and l.claimed_by is not null
               group by l.claimed_by) w), '{}') as in_flight_by_worker
    from pawl.list_stats(null, 2147483647) s;

-- The ledger: each attempt that has ended.
create view pawl.attempts as
    select a.job_id, q.name as queue, a.shard, a.attempt_no, pawl.outcome_name(a.outcome) as outcome,
           pawl.reason_name(a.reason) as reason, pawl.ended_by_name(a.ended_by) as ended_by, a.lease_version, a.worker,
           a.started_at, a.finished_at, a.error_code, a.error_text, a.wire_sends
    from pawl.attempt a left join pawl.queue q on q.queue_id = a.line_id / 4096;

-- Failed jobs, until they are redriven or pruned.
create view pawl.dead_letters as
    select d.id, q.name as queue, d.shard, d.priority, d.retries, d.lost_leases, d.attempts, d.lease_version,
           pawl.reason_name(d.reason) as reason, d.created_at, d.finished_at, d.is_discarded, d.payload_len, a.error_code,
           a.error_text, d.ordering_key
    from pawl.dead_letter d
    left join pawl.queue q on q.queue_id = d.line_id / 4096
    left join pawl.attempt a on a.shard = d.shard and a.job_id = d.id and a.attempt_no = d.attempts;

-- Workers and reapers that have shown themselves.
create view pawl.workers as
    select w.name, case w.kind when 0 then 'worker' else 'reaper' end as kind, w.host, w.version, w.queues,
           w.since, w.last_seen
    from pawl.worker w;

-- A way in, for single jobs, as enqueue_one() puts them, and for whoever it has told the line a moment ago: an INSERT costs less. All but line, id
-- and payload is as by default, and not the runtime role's to say.
create view pawl.arrival as
select j.shard, j.line_id, j.pos, j.id, j.priority, j.lane, j.created_at, j.next_attempt_at, j.payload from pawl.job j;
alter view pawl.arrival alter column shard set default 0;
alter view pawl.arrival alter column pos set default txid_current();
alter view pawl.arrival alter column priority set default 5;
alter view pawl.arrival alter column lane set default 0;
alter view pawl.arrival alter column created_at set default statement_timestamp();
alter view pawl.arrival alter column next_attempt_at set default statement_timestamp();
