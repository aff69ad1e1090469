-- SPDX-License-Identifier: Apache-2.0
-- Breaks the store on purpose: a settle looks at the job's id and state only, and not at token, version, worker or deadline.
do $$
declare
    v_text text;
begin
    for v_text in select pg_get_functiondef(p.oid) from pg_proc p
        where p.pronamespace = 'pawl'::regnamespace and p.proname in ('settle_one', 'succeed_one', 'succeed_batch', 'succeed_all')
    loop
        v_text := replace(v_text, 'j.claimed_by = p_worker', 'true');
        v_text := replace(v_text, 'j.lease_expires_at > v_now', 'true');
        v_text := replace(v_text, 'j.lease_expires_at > v_until', 'true');
        v_text := replace(v_text, 'j.lease_token = p_token', 'true');
        v_text := replace(v_text, 'j.lease_version = p_version', 'true');
        v_text := replace(v_text, 'j.lease_token = v_held.tokens[width_bucket(j.id, v_held.ids)]', 'true');
        v_text := replace(v_text, 'j.lease_version = coalesce(v_held.version, v_held.versions[width_bucket(j.id, v_held.ids)])', 'true');
        v_text := replace(v_text, 'p_now is null and v_expires_at <= clock_timestamp()', 'false');
        v_text := replace(v_text, 'min(g.lease_expires_at) <= clock_timestamp()', 'false');
        v_text := replace(v_text, 'clock_timestamp() < v_until', 'true');
        execute v_text;
    end loop;
end $$;
