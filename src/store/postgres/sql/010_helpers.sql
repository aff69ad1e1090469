-- SPDX-License-Identifier: Apache-2.0
-- Small functions that the others share. None of them changes a job, and none fails over a number or an instant that somebody
-- has written by hand, however large it is: one such row would stop all that come after it. A function of LANGUAGE sql is declared no stricter than
-- its body is: otherwise it is not inlined, and parsed anew in every statement that calls it.

-- A whole number in [0, p_max], each equally likely, that seed and id determine: volatile functions never stand in an UPDATE.
create function pawl.draw(p_seed bytea, p_id uuid, p_max int8) returns int8
language sql immutable parallel safe as $$
    select ('x' || substr(encode(sha256(p_seed || uuid_send(p_id)), 'hex'), 33, 15))::bit(60)::int8 % (p_max + 1)
$$;

-- A fresh lease token that seed and id determine; the seed is random and secret, and used once.
create function pawl.token(p_seed bytea, p_id uuid) returns uuid
language sql immutable parallel safe as $$
    select encode(substr(sha256(p_seed || uuid_send(p_id)), 1, 16), 'hex')::uuid
$$;

-- What is kept of a token once its lease is over: tells whether another is the same. A quarter of the bits of a number that was
-- random, and is of no more use.
create function pawl.token_digest(p_token uuid) returns int4
language sql immutable parallel safe as $$
    select uuid_hash(p_token)
$$;

-- Q-BACKOFF: full jitter in [0, min(base * 2^retries, max)] milliseconds.
create function pawl.backoff_ms(p_seed bytea, p_id uuid, p_base_ms int8, p_max_ms int8, p_retries int4) returns int8
language sql immutable parallel safe as $$
    select pawl.draw(p_seed, p_id, greatest(0, least(
        p_max_ms::numeric, 315360000000, p_base_ms::numeric * power(2::numeric, greatest(0, least(p_retries, 62)))))::int8)
$$;

-- An instant as microseconds since 1970: the position of a job that waits for its time. What lies beyond the year 9999 waits
-- until then.
create function pawl.micros(p_at timestamptz) returns int8
language sql stable parallel safe as $$
    select (extract(epoch from least(greatest(p_at, '1000-01-01 00:00+00'), '9999-01-01 00:00+00')) * 1000000)::int8
$$;

create function pawl.ms(p_ms int8) returns interval
language sql immutable parallel safe as $$
    select p_ms * interval '1 millisecond'
$$;

-- The execution timeout in force, within what a timeout can be: three leases of ten years.
create function pawl.run_ms(p_own_ms int8, p_usual_ms int8) returns int8
language sql immutable parallel safe as $$
    select greatest(1, least(coalesce(p_own_ms, p_usual_ms), 946080000000))
$$;

-- The id of the transaction, as positions are counted.
create function pawl.here() returns int8
language sql volatile as $$
    select txid_current()
$$;

-- The id of a queue, which is created where it does not exist. A name that is being created elsewhere is waited for.
create function pawl.queue_id(p_name text) returns int4
language plpgsql as $$
declare
    v_id int4;
begin
    loop
        select q.queue_id into v_id from pawl.queue q where q.name = p_name;
        if found then
            return v_id;
        end if;
        perform pawl.check_name('queue', p_name);
        insert into pawl.queue (name) values (p_name) on conflict (name) do nothing returning queue_id into v_id;
        if found then
            return v_id;
        end if;
    end loop;
end $$;

-- A job of the queue comes back, or has to wait for its time.
create function pawl.note_detour(p_queue_id int4) returns void
language plpgsql as $$
begin
    insert into pawl.detour (queue_id) select p_queue_id
    where (select true from pawl.detour d where d.queue_id = p_queue_id limit 1) is null;
end $$;

-- The settings of a line's queue; where somebody has deleted its row, those that a queue begins with, and no name.
create function pawl.queue_of(p_line int4) returns pawl.queue
language plpgsql as $$
declare
    v_queue pawl.queue;
begin
    select * into v_queue from pawl.queue q where q.queue_id = p_line / 4096;
    if not found then
        v_queue.queue_id := p_line / 4096;
        v_queue.lease_ms := 30000;
        v_queue.max_retries := 3;
        v_queue.max_lost_leases := 10;
        v_queue.backoff_base_ms := 500;
        v_queue.backoff_max_ms := 30000;
        v_queue.levels := 0;
        v_queue.has_keys := false;
        v_queue.is_paused := false;
    end if;
    return v_queue;
end $$;

-- A hint that there may be work in a queue. Heard on the channel `pawl`; at most one for each queue and transaction. From then
-- on until the transaction has been written to disk no other that notifies can commit: see hint_of().
create function pawl.hint(p_queue text) returns void
language plpgsql as $$
begin
    if (select c.is_notifying from pawl.config c) then
        perform pg_notify('pawl', p_queue);
    end if;
end $$;

-- The same for some queues, in a transaction of its own after the one that put jobs there. It waits for no disk, so those that
-- come together pass in turn within microseconds; what a crash may lose is a hint.
create function pawl.hint_of(p_queues text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    if (select c.is_notifying from pawl.config c) then
        perform set_config('synchronous_commit', 'off', true);
        perform pg_notify('pawl', q.name) from pawl.queue q where q.name = any (p_queues);
    end if;
end $$;
