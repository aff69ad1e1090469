-- SPDX-License-Identifier: Apache-2.0
-- Lets all jobs of a batch succeed as settle_batch() does, where there is nothing to do beside: there is one shard; all are of one
-- line, at their first attempt, with no key and no limit; and each lease is valid and will be for a while. Most batches are such ones.
-- Gives how many they are; NULL: it is otherwise, and nothing was done.
--
-- All or none: so that it need not be known of each whether it was, and the list of ids is that of the ledger as it stands. The lease
-- (token, worker, version, deadline) is tested by the statement that writes. Whether a lease is valid by the clock as it is with all rows
-- locked (RES-3) is known of all at once: each outlasts an instant that has not come by then. It waits no longer than that for
-- a row either: rows are locked in the order of their places here, and in that of their ids elsewhere, so whoever renews or cancels
-- the same jobs may wait for this call while it waits for him.
create function pawl.succeed_all(
    p_worker text,
    p_ids uuid[],       -- in their order: each finds its token by that, and where they are not it finds none, or another one of the caller's
    p_tokens uuid[],
    p_version int4,     -- of each lease
    p_wire_sends int4,  -- how often each request left the machine; NULL: nobody says
    p_places tid[] default null -- where the claim has put their rows, in any order; NULL: they are looked for
) returns int4
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set lock_timeout = '50ms' as $$
declare
    v_now timestamptz := clock_timestamp();
    v_until timestamptz := v_now + interval '50 ms';
    v_held pawl.held := row (p_ids, p_tokens, null, cardinality(p_ids)); -- see there; in place of a version it has how many they are
    v_count int4;
begin
    if p_places is null then
        p_places := array(select j.ctid from pawl.job j where j.shard = 0 and j.id = any (p_ids));
    end if;
    begin
        with gone as (
            delete from pawl.job j
            where j.shard = 0 and j.ctid = any (p_places) and j.state = 1 and j.claimed_by = p_worker and j.lease_expires_at > v_until
              and j.id = v_held.ids[width_bucket(j.id, v_held.ids)]
              and j.lease_token = v_held.tokens[width_bucket(j.id, v_held.ids)] and j.lease_version = p_version
              and j.attempts = 0 and j.fence is null
              and (j.line_id = (select f.line_id from pawl.job f where f.shard = 0 and f.ctid = p_places[1])) is true
            returning j.id, j.line_id, j.lease_token, j.claimed_at, j.created_at, octet_length(j.payload) payload_len, j.priority,
                      j.retries, j.lost_leases, j.max_retries)
        insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, token_digest,
                                  started_at, finished_at, created_at, payload_len, priority, retries, lost_leases, max_retries,
                                  wire_sends, worker, batch, others)
        select 0, g.line_id, g.id, 1, p_version, 0, 0, 0, pawl.token_digest(g.lease_token), g.claimed_at, v_now, g.created_at,
               g.payload_len, g.priority, g.retries, g.lost_leases, g.max_retries, p_wire_sends, p_worker,
               case when g.id = v_held.ids[1] then v_held.version end,
               case when g.id = v_held.ids[1] then nullif(v_held.ids[2 :], '{}') end
        from gone g;
        get diagnostics v_count = row_count;
        if (v_count = v_held.version and clock_timestamp() < v_until and array_lower(p_ids, 1) = 1
            and (p_wire_sends between 0 and 1000000) is not false) is not true then
            raise exception 'PAWL_OTHERWISE' using errcode = 'P7099';
        end if;
    -- The number of a ledger row that is taken, since somebody has changed `attempts` by hand; lists that width_bucket() does not take;
    -- a row that somebody holds; what is raised above.
    exception when unique_violation or null_value_not_allowed or array_subscript_error or lock_not_available or sqlstate 'P7099' then
        return null;
    end;
    return v_count;
end $$;
