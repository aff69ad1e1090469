-- SPDX-License-Identifier: Apache-2.0
-- Which jobs have changed lately, for those who watch (/v1/changes of docs/serve.md): by what can be found without a look at
-- all of them, and with no index more than there was.

-- Jobs of p_ids that are known; then those that have ended since, line by line by the time of their end; then live ones that
-- were added since, by the time that their ids begin with. At most p_max, with their queue and the state that they are in now.
create function pawl.list_recent(p_span_ms int8, p_ids uuid[], p_max int4)
returns table (id uuid, queue text, state int2, is_discarded boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    v_since timestamptz := clock_timestamp() - p_span_ms * interval '1 ms';
    v_after uuid := (lpad(to_hex(greatest(floor(extract(epoch from v_since) * 1000), 0)::int8), 12, '0') || repeat('0', 20))::uuid;
    v_left int4 := p_max;
    v_count int4;
begin
    return query
        select f.id, q.name, f.state, f.state = 3 and f.payload is null
        from unnest(p_ids) x cross join lateral (select j.* from pawl.job_form j where j.id = x) f
        join pawl.queue q on q.queue_id = f.line_id / 4096 limit v_left;
    get diagnostics v_count = row_count;
    v_left := v_left - v_count;
    return query
        select e.id, q.name, e.state, e.is_discarded
        from pawl.config c cross join pawl.queue q cross join generate_series(0, c.shards - 1) s
        cross join lateral (
            (select u.id, 2::int2 state, false is_discarded
             from (select array[a.job_id] || a.others ids from pawl.attempt a -- who stands for others names them: ADR 0026
                   where a.line_id = q.queue_id * 4096 + s and a.outcome = 0 and a.batch is not null and a.finished_at > v_since
                   order by a.finished_at desc limit v_left) b cross join lateral unnest(b.ids) u(id)
             limit v_left)
            union all
            (select d.id, 3::int2, d.is_discarded from pawl.dead_letter d
             where d.line_id = q.queue_id * 4096 + s and d.finished_at > v_since
             order by d.finished_at desc limit v_left)) e
        limit v_left;
    get diagnostics v_count = row_count;
    v_left := v_left - v_count;
    return query
        select j.id, q.name, j.state, false
        from (select l.id, l.line_id, l.state from pawl.job l where l.id > v_after order by l.id desc limit v_left) j
        join pawl.queue q on q.queue_id = j.line_id / 4096;
end $$;

revoke all on function pawl.list_recent(int8, uuid[], int4) from public;

-- What the runtime role may call: what it could, and this. Roles that were granted before this step came are given it.
select pawl.runtime_may_call('{list_recent}');
select pawl.grant_again();
