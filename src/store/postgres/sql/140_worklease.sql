-- SPDX-License-Identifier: Apache-2.0
-- Work leases (WL-*): exclusive work on the offsets of a domain, in the order in which they were asked for. The rules are those
-- of src/core/worklease.c; docs/worklease.md is the manual. Every call locks the row of its domain first and reads the clock
-- after that. Whatever changes in a domain changes this row too, so that a transaction on an older snapshot is refused (40001).
-- Names are compared byte by byte, whatever collation the caller's columns have: the functions that clients call hand them on
-- with that of the table.
--
-- What the caller did wrong is raised: P7010 out of order, P7011 no lease, P7012 another token or owner, P7013 the backlog is
-- full, P7014 the lease has expired; P7001 a bad argument.

-- Domains, with the lease of each.
create sequence pawl.worklease_seq;
create table pawl.worklease (
    shard int4 not null,
    domain text collate "C" not null,
    domain_id int8 not null default nextval('pawl.worklease_seq'),
    current_offset int8,          -- NULL: there is no lease
    lease_token uuid,
    owner text,                   -- NULL: nobody in particular
    acquired_at timestamptz,      -- of the offset's first lease: never changes
    retry_count int4,
    lease_expires_at timestamptz, -- NULL: never
    backlog_first int8 not null default 0, -- the numbers of those that wait: from here on, without gaps
    backlog_count int8 not null default 0,
    constraint worklease_pkey primary key (domain),
    constraint worklease_lease check (
        num_nulls(current_offset, lease_token, acquired_at, retry_count) in (0, 4)
        and (current_offset is not null or num_nulls(owner, lease_expires_at) = 2))
);

-- Offsets that wait, numbered in the order in which they came.
create table pawl.worklease_backlog (
    shard int4 not null,
    domain_id int8 not null,
    seq int8 not null,
    queued_offset int8 not null,
    constraint worklease_backlog_pkey primary key (domain_id, seq),
    constraint worklease_backlog_once unique (domain_id, queued_offset)
);

-- Offsets that have ended, as intervals: no two of one kind touch, and none overlap.
create table pawl.worklease_terminal (
    shard int4 not null,
    domain_id int8 not null,
    first_offset int8 not null,
    last_offset int8 not null, -- in the interval
    is_failed boolean not null,
    constraint worklease_terminal_pkey primary key (domain_id, first_offset),
    constraint worklease_terminal_range check (first_offset <= last_offset)
);

-- ---- what is shared

create function pawl.worklease_check(p_domain text, p_owner text) returns void
language plpgsql as $$
begin
    perform pawl.check_given('p_domain', p_domain);
    perform pawl.check_bytes('p_domain', octet_length(p_domain), 1, 255);
    if p_domain ~ '[\u0001-\u001f\u007f-\u009f]' then
        perform pawl.fail('p_domain', 'a text with control characters', 'without them');
    end if;
    if p_owner is not null then
        perform pawl.check_name('p_owner', p_owner);
    end if;
end $$;

-- The shard of a domain. It is part of the data: it never changes.
create function pawl.worklease_shard(p_domain text) returns int4
language plpgsql stable as $$
declare
    v_shards int4 := (select c.shards from pawl.config c);
    v_hash bytea;
begin
    if v_shards = 1 then
        return 0;
    end if;
    v_hash := sha256(convert_to(p_domain, 'UTF8'));
    return (get_byte(v_hash, 0) * 65536 + get_byte(v_hash, 1) * 256 + get_byte(v_hash, 2)) % coalesce(v_shards, pawl.shards());
end $$;

-- The row of a domain, locked; made where there is none. One that is being made elsewhere is waited for.
create function pawl.worklease_need(p_shard int4, p_domain text) returns pawl.worklease
language plpgsql as $$
declare
    v_at pawl.worklease;
begin
    loop
        select * into v_at from pawl.worklease w where w.shard = p_shard and w.domain = p_domain for update;
        if found then
            return v_at;
        end if;
        insert into pawl.worklease (shard, domain) values (p_shard, p_domain) on conflict (domain) do nothing;
    end loop;
end $$;

-- The row of a domain whose lease is the caller's, locked; or an error that says why it is not (WL-FENCE, RES-3).
create function pawl.worklease_held(p_shard int4, p_domain text, p_token uuid, p_owner text, out held pawl.worklease,
                                    out read_at timestamptz)
language plpgsql as $$
begin
    select * into held from pawl.worklease w where w.shard = p_shard and w.domain = p_domain for update;
    read_at := clock_timestamp(); -- the row is locked
    if held.current_offset is null then
        raise exception 'there is no lease in domain %', p_domain using errcode = 'P7011';
    elsif held.lease_token is distinct from p_token or held.owner is distinct from p_owner then
        raise exception 'the lease on offset % has another token or owner, in domain %', held.current_offset, p_domain
            using errcode = 'P7012', hint = 'Stop working on the offset.';
    elsif held.lease_expires_at <= read_at then
        raise exception 'the lease on offset % has expired, in domain %', held.current_offset, p_domain
            using errcode = 'P7014', hint = 'Stop working on the offset, and acquire it again.';
    end if;
end $$;

-- The head of a backlog; NULL: it is empty.
create function pawl.worklease_head(p_at pawl.worklease) returns int8
language plpgsql as $$
begin
    if p_at.backlog_count = 0 then
        return null;
    end if;
    return (select b.queued_offset from pawl.worklease_backlog b
            where b.shard = p_at.shard and b.domain_id = p_at.domain_id and b.seq = p_at.backlog_first);
end $$;

-- ---- acquiring

-- Leases an offset that is neither terminal nor leased, in a domain without a lease whose row is locked.
create function pawl.worklease_grant(p_at pawl.worklease, p_offset int8, p_token uuid, p_owner text, p_now timestamptz,
                                     p_expires_at timestamptz) returns void
language plpgsql as $$
declare
    v_head int8 := pawl.worklease_head(p_at);
begin
    if v_head <> p_offset then
        raise exception 'expected offset %, the head of the backlog, but % was given in domain %', v_head, p_offset, p_at.domain
            using errcode = 'P7010';
    end if;
    if p_at.backlog_count > 0 then
        delete from pawl.worklease_backlog b
        where b.shard = p_at.shard and b.domain_id = p_at.domain_id and b.seq = p_at.backlog_first;
        p_at.backlog_first := p_at.backlog_first + 1;
        p_at.backlog_count := p_at.backlog_count - 1;
    end if;
    update pawl.worklease w
    set current_offset = p_offset, lease_token = p_token, owner = p_owner, acquired_at = p_now, retry_count = 0,
        lease_expires_at = p_expires_at, backlog_first = p_at.backlog_first, backlog_count = p_at.backlog_count
    where w.shard = p_at.shard and w.domain = p_at.domain and w.current_offset is null;
end $$;

-- Lets an offset that is not terminal wait behind the lease, unless it does so already.
create function pawl.worklease_push(p_at pawl.worklease, p_offset int8, p_backlog_max int8) returns void
language plpgsql as $$
begin
    if exists (select from pawl.worklease_backlog b
               where b.shard = p_at.shard and b.domain_id = p_at.domain_id and b.queued_offset = p_offset) then
        return;
    end if;
    if p_at.backlog_count >= p_backlog_max then
        raise exception 'offset % finds the backlog full: % offsets are allowed to wait in domain %', p_offset, p_backlog_max,
            p_at.domain using errcode = 'P7013';
    end if;
    insert into pawl.worklease_backlog (shard, domain_id, seq, queued_offset)
    values (p_at.shard, p_at.domain_id, p_at.backlog_first + p_at.backlog_count, p_offset);
    update pawl.worklease w set backlog_count = p_at.backlog_count + 1 where w.shard = p_at.shard and w.domain = p_at.domain;
end $$;

-- Asks for an offset. ACQUIRED and ALREADY_ACQUIRED come with the token; ENQUEUED and HELD with the lease that is in the way.
create function pawl.worklease_try_acquire(
    p_domain text,                     -- 1 to 255 bytes
    p_offset int8,
    p_owner text default null,         -- who asks; NULL: nobody in particular
    p_lease_ms int8 default null,      -- NULL: the lease waits for its holder
    p_backlog_max int8 default 100000, -- how many may wait
    out result text,
    out lease_token uuid,
    out is_taken_over boolean,         -- ACQUIRED: an expired lease was, with its acquired_at and retry_count
    out current_offset int8,
    out acquired_at timestamptz,
    out retry_count int4,
    out lease_expires_at timestamptz   -- NULL: never
)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_domain text collate "C" := p_domain;
    v_owner text collate "C" := p_owner;
    v_token uuid := encode(substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16), 'hex')::uuid;
    v_shard int4;
    v_at pawl.worklease;
    v_ended pawl.worklease_terminal;
    v_now timestamptz;
    v_expires_at timestamptz;
begin
    perform pawl.worklease_check(v_domain, v_owner);
    perform pawl.check_given('p_offset', p_offset::text);
    perform pawl.check_number('p_backlog_max', p_backlog_max, 1, 9223372036854775807);
    if p_lease_ms is not null then
        perform pawl.check_number('p_lease_ms', p_lease_ms, 100, 315360000000);
    end if;
    v_shard := pawl.worklease_shard(v_domain);
    v_at := pawl.worklease_need(v_shard, v_domain);
    v_now := clock_timestamp(); -- the row is locked
    v_expires_at := v_now + pawl.ms(p_lease_ms);
    is_taken_over := false;
    select * into v_ended from pawl.worklease_terminal t
    where t.shard = v_shard and t.domain_id = v_at.domain_id and t.first_offset <= p_offset
    order by t.first_offset desc limit 1;
    if v_ended.last_offset >= p_offset then
        result := case when v_ended.is_failed then 'ALREADY_FAILED' else 'ALREADY_PROCESSED' end;
        return;
    end if;
    if v_at.current_offset is null then
        perform pawl.worklease_grant(v_at, p_offset, v_token, v_owner, v_now, v_expires_at);
        result := 'ACQUIRED';
        lease_token := v_token;
        current_offset := p_offset;
        acquired_at := v_now;
        retry_count := 0;
        lease_expires_at := v_expires_at;
        return;
    end if;
    current_offset := v_at.current_offset;
    acquired_at := v_at.acquired_at;
    retry_count := v_at.retry_count;
    lease_expires_at := v_at.lease_expires_at;
    if v_at.current_offset <> p_offset then
        perform pawl.worklease_push(v_at, p_offset, p_backlog_max);
        result := 'ENQUEUED';
    elsif v_at.lease_expires_at <= v_now then
        update pawl.worklease w set lease_token = v_token, owner = v_owner, lease_expires_at = v_expires_at
        where w.shard = v_shard and w.domain = v_domain and w.lease_expires_at <= v_now;
        result := 'ACQUIRED';
        is_taken_over := true;
        lease_token := v_token;
        lease_expires_at := v_expires_at;
    elsif v_at.owner is not distinct from v_owner then
        result := 'ALREADY_ACQUIRED';
        lease_token := v_at.lease_token;
    else
        result := 'HELD';
    end if;
end $$;

-- ---- holding

-- Puts an offset among those that have ended; closes the gaps beside it.
create function pawl.worklease_add_terminal(p_shard int4, p_domain_id int8, p_offset int8, p_is_failed boolean) returns void
language plpgsql as $$
declare
    v_below pawl.worklease_terminal;
    v_above pawl.worklease_terminal;
begin
    select * into v_below from pawl.worklease_terminal t
    where t.shard = p_shard and t.domain_id = p_domain_id and t.first_offset < p_offset
    order by t.first_offset desc limit 1;
    if v_below.last_offset + 1 <> p_offset or v_below.is_failed <> p_is_failed then
        v_below := null;
    end if;
    if p_offset < 9223372036854775807 then
        select * into v_above from pawl.worklease_terminal t
        where t.shard = p_shard and t.domain_id = p_domain_id and t.first_offset = p_offset + 1 and t.is_failed = p_is_failed;
    end if;
    if v_below.shard is not null then
        if v_above.shard is not null then
            delete from pawl.worklease_terminal t
            where t.shard = p_shard and t.domain_id = p_domain_id and t.first_offset = v_above.first_offset;
        end if;
        update pawl.worklease_terminal t set last_offset = coalesce(v_above.last_offset, p_offset)
        where t.shard = p_shard and t.domain_id = p_domain_id and t.first_offset = v_below.first_offset;
    elsif v_above.shard is not null then
        update pawl.worklease_terminal t set first_offset = p_offset
        where t.shard = p_shard and t.domain_id = p_domain_id and t.first_offset = v_above.first_offset;
    else
        insert into pawl.worklease_terminal (shard, domain_id, first_offset, last_offset, is_failed)
        values (p_shard, p_domain_id, p_offset, p_offset, p_is_failed);
    end if;
end $$;

-- Makes the leased offset terminal, and ends the lease. Token, owner and deadline stand in the statement that writes.
create function pawl.worklease_end(p_held pawl.worklease, p_now timestamptz, p_is_failed boolean) returns void
language plpgsql as $$
begin
    update pawl.worklease w
    set current_offset = null, lease_token = null, owner = null, acquired_at = null, retry_count = null, lease_expires_at = null
    where w.shard = p_held.shard and w.domain = p_held.domain and w.lease_token = p_held.lease_token
      and w.owner is not distinct from p_held.owner and (w.lease_expires_at <= p_now) is not true;
    if not found then
        raise exception 'PAWL_AGAIN' using errcode = '40001';
    end if;
    perform pawl.worklease_add_terminal(p_held.shard, p_held.domain_id, p_held.current_offset, p_is_failed);
end $$;

-- The offset is processed, and the lease ends. NO_BACKLOG, or NEXT_HINT and the head of the backlog, which stays there.
create function pawl.worklease_succeed(p_domain text, p_token uuid, p_owner text default null, out result text,
                                       out next_offset int8)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    v_domain text collate "C" := p_domain;
    v_owner text collate "C" := p_owner;
    v_got record;
    v_held pawl.worklease;
    v_now timestamptz;
begin
    perform pawl.worklease_check(v_domain, v_owner);
    v_got := pawl.worklease_held(pawl.worklease_shard(v_domain), v_domain, p_token, v_owner);
    v_held := v_got.held;
    v_now := v_got.read_at;
    perform pawl.worklease_end(v_held, v_now, false);
    next_offset := pawl.worklease_head(v_held);
    result := case when next_offset is null then 'NO_BACKLOG' else 'NEXT_HINT' end;
end $$;

-- The offset failed. RETRY_SCHEDULED while it had failed less than p_max_retries times before: it is counted, and the lease stays.
-- Otherwise it is failed for good and the lease ends: GIVE_UP_NO_BACKLOG, or GIVE_UP_NEXT_HINT and the head of the backlog.
create function pawl.worklease_fail(p_domain text, p_token uuid, p_owner text default null, p_max_retries int4 default 3,
                                    out result text, out next_offset int8, out retry_count int4)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_domain text collate "C" := p_domain;
    v_owner text collate "C" := p_owner;
    v_got record;
    v_held pawl.worklease;
    v_now timestamptz;
begin
    perform pawl.worklease_check(v_domain, v_owner);
    perform pawl.check_number('p_max_retries', p_max_retries, 0, 10000);
    v_got := pawl.worklease_held(pawl.worklease_shard(v_domain), v_domain, p_token, v_owner);
    v_held := v_got.held;
    v_now := v_got.read_at;
    if v_held.retry_count < p_max_retries then
        update pawl.worklease w set retry_count = v_held.retry_count + 1
        where w.shard = v_held.shard and w.domain = v_domain and w.lease_token = p_token
          and w.owner is not distinct from v_owner and (w.lease_expires_at <= v_now) is not true
        returning w.retry_count into retry_count;
        result := 'RETRY_SCHEDULED';
        return;
    end if;
    perform pawl.worklease_end(v_held, v_now, true);
    next_offset := pawl.worklease_head(v_held);
    result := case when next_offset is null then 'GIVE_UP_NO_BACKLOG' else 'GIVE_UP_NEXT_HINT' end;
end $$;

-- Extends the lease to the later of what it is and now + p_lease_ms. Gives its deadline; NULL: it never expires, and stays so.
create function pawl.worklease_renew(p_domain text, p_token uuid, p_lease_ms int8, p_owner text default null,
                                     out lease_expires_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, pawl, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_domain text collate "C" := p_domain;
    v_owner text collate "C" := p_owner;
    v_got record;
    v_held pawl.worklease;
    v_now timestamptz;
begin
    perform pawl.worklease_check(v_domain, v_owner);
    perform pawl.check_number('p_lease_ms', p_lease_ms, 100, 315360000000);
    v_got := pawl.worklease_held(pawl.worklease_shard(v_domain), v_domain, p_token, v_owner);
    v_held := v_got.held;
    v_now := v_got.read_at;
    if v_held.lease_expires_at is not null then
        update pawl.worklease w set lease_expires_at = greatest(w.lease_expires_at, v_now + pawl.ms(p_lease_ms))
        where w.shard = v_held.shard and w.domain = v_domain and w.lease_token = p_token
          and w.owner is not distinct from v_owner and w.lease_expires_at > v_now
        returning w.lease_expires_at into lease_expires_at;
    end if;
end $$;
