-- SPDX-License-Identifier: Apache-2.0
-- Broken on purpose: who is parked is looked for before the hold is deleted, and so before the wait for claims which park others
-- behind it. Between the two it waits, where a job of the key could be parked, until one is: how soon a claim comes is not left to
-- chance.
create or replace function pawl.end_keys(p_shard int4, p_line int4, p_keys text[], p_ids uuid[]) returns boolean
language plpgsql as $$
declare
    v_next uuid[];
begin
    v_next := array(
        select (select x.id from pawl.job x
                where x.shard = p_shard and x.line_id = p_line and x.ordering_key = k order by x.key_seq limit 1)
        from unnest(p_keys) k
        where (select true from pawl.job x
               where x.shard = p_shard and x.line_id = p_line and x.ordering_key = k and x.lane = 2 limit 1));
    for i in 1 .. 60 loop
        exit when not exists (select from pawl.job x where x.shard = p_shard and x.line_id = p_line and x.state = 0
                              and x.ordering_key = any (p_keys) and x.id <> all (p_ids))
            or exists (select from pawl.job x where x.shard = p_shard and x.line_id = p_line and x.lane = 2
                       and x.ordering_key = any (p_keys) and x.id <> all (p_ids));
        perform pg_sleep(0.05);
    end loop;
    delete from pawl.hold h
    where h.shard = p_shard and h.line_id = p_line and h.ordering_key = any (p_keys) and h.job_id = any (p_ids);
    v_next := pawl.lead(p_shard, v_next);
    insert into pawl.hold (shard, line_id, ordering_key, job_id)
    select p_shard, p_line, j.ordering_key, j.id from pawl.job j where j.shard = p_shard and j.id = any (v_next)
    on conflict do nothing;
    return true;
end $$;
