-- SPDX-License-Identifier: Apache-2.0
-- Keys of requests that are to be carried out once (Idempotency-Key of docs/serve.md), with their answers. The server alone
-- uses them; nobody but the owner reads the table.
create table pawl.once (
    key bytea not null,                 -- a hash of the key and of whose it is
    digest bytea not null,              -- of what was asked
    seed int8 not null,                 -- the ids that the request makes come of it
    at timestamptz not null,            -- of the first try
    held_until timestamptz not null,    -- nobody else may carry it out before
    expires_at timestamptz not null,
    answer bytea,                       -- NULL: none yet
    constraint once_pkey primary key (key)
);
create index once_expires on pawl.once (expires_at);

-- Clears away up to p_max keys that have expired.
create function pawl.prune_once(p_max int4) returns void
language plpgsql as $$
begin
    delete from pawl.once o where o.key in (
        select x.key from pawl.once x where x.expires_at <= clock_timestamp() order by x.expires_at limit p_max
        for update skip locked);
end $$;

-- Begins a key: 0 it is new, 1 a try before this one has not ended, 2 one is under way, 3 the answer is there, 4 the key was used
-- for something else. Clears away some that have expired.
create function pawl.once_begin(p_key bytea, p_digest bytea, p_seed int8, p_keep_ms int8, p_hold_ms int8)
returns table (state int4, first_seed int8, first_at timestamptz, kept bytea)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_now timestamptz;
    v_row pawl.once;
    v_is_new boolean;
begin
    perform pawl.prune_once(20);
    v_now := clock_timestamp();
    insert into pawl.once (key, digest, seed, at, held_until, expires_at)
    values (p_key, p_digest, p_seed, v_now, v_now + p_hold_ms * interval '1 ms', v_now + p_keep_ms * interval '1 ms')
    on conflict (key) do nothing;
    v_is_new := found;
    -- Locked: of two who find a try that has died, one takes it over.
    select * into v_row from pawl.once o where o.key = p_key for update;
    if not found then
        raise exception 'the key was cleared away meanwhile' using errcode = '40001';
    end if;
    v_now := clock_timestamp();
    if not v_is_new and v_row.expires_at <= v_now then
        update pawl.once o set digest = p_digest, seed = p_seed, at = v_now, held_until = v_now + p_hold_ms * interval '1 ms',
            expires_at = v_now + p_keep_ms * interval '1 ms', answer = null
        where o.key = p_key returning * into v_row;
        v_is_new := true;
    end if;
    state := case when v_is_new then 0 when v_row.digest <> p_digest then 4 when v_row.answer is not null then 3
                  when v_row.held_until > v_now then 2 else 1 end;
    if state = 1 then
        update pawl.once o set held_until = v_now + p_hold_ms * interval '1 ms' where o.key = p_key;
    end if;
    first_seed := v_row.seed;
    first_at := v_row.at;
    kept := case when state = 3 then v_row.answer else ''::bytea end;
    return next;
end $$;

-- Ends a try: 0 with an answer, which is kept; 1 nothing was done; 2 nobody knows.
create function pawl.once_end(p_key bytea, p_how int4, p_answer bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    if p_how = 1 then
        delete from pawl.once o where o.key = p_key and o.answer is null;
    elsif p_how = 2 then
        update pawl.once o set held_until = clock_timestamp() where o.key = p_key and o.answer is null;
    else
        update pawl.once o set answer = p_answer where o.key = p_key;
    end if;
end $$;

revoke all on pawl.once from public;
revoke all on function pawl.prune_once(int4), pawl.once_begin(bytea, bytea, int8, int8, int8), pawl.once_end(bytea, int4, bytea) from public;

-- What the runtime role may call: what it could, and these. Roles that were granted before this step came are given them.
select pawl.runtime_may_call('{once_begin, once_end}');
select pawl.grant_again();
