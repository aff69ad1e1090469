-- SPDX-License-Identifier: Apache-2.0
-- Publishing: an event becomes one job for each enabled endpoint that wants its type, in the caller's transaction. The rows of
-- these endpoints are locked against removal (FOR KEY SHARE), so that no job comes into a queue whose endpoint is gone; a change
-- or a switch of an endpoint waits for nobody.


-- Events that can be replayed, until they need not be kept any more. Nobody but the owner reads them.
create sequence pawl.event_seq;
create table pawl.event (
    seq int8 not null,
    id text collate "C" not null,
    is_minted boolean not null, -- the id was made by Pawl: see event_job_id()
    type text not null,
    ordering_key text,
    published_at timestamptz not null,
    keep_until timestamptz not null,
    headers text not null,      -- of its jobs
    payload bytea not null,
    constraint event_pkey primary key (id)
);
create index event_published on pawl.event (published_at, seq);
create index event_kept on pawl.event (keep_until);

-- The patterns that match a type, as src/core/topic.c has it: itself, everything, and everything below each word before its last.
create function pawl.topic_patterns(p_topic text) returns text[]
language plpgsql immutable as $$
declare
    v_words text[] := string_to_array(p_topic, '.');
begin
    return array['*', p_topic] || array(
        select array_to_string(v_words[1:i], '.') || '.*' from generate_series(1, cardinality(v_words) - 1) i);
end $$;

-- The id of an event's job, as src/core/event.c has it: from the event's id and the queue alone, so that an event that is
-- published again finds it; of a fresh event (whose id is a new UUID of version 7) it begins with the event's own time; of a replay its
-- name is in it, too.
create function pawl.event_job_id(p_event_id text, p_is_minted boolean, p_queue text, p_ordering_key text, p_shards int4,
                                  p_replay text default null)
returns uuid
language plpgsql immutable as $$
declare
    v_bytes bytea := substr(sha256(convert_to(p_queue, 'UTF8') || E'\\x00' || convert_to(p_event_id, 'UTF8')
                                    || coalesce(E'\\x00' || convert_to(p_replay, 'UTF8'), '')), 1, 16);
    v_is_minted boolean := p_is_minted and p_replay is null;
    v_version int4 := case when v_is_minted then 112 else 128 end;
    v_shard int4 := 0;
begin
    if v_is_minted then
        v_bytes := substr(uuid_send(p_event_id::uuid), 1, 6) || substr(v_bytes, 7);
    end if;
    v_bytes := set_byte(set_byte(set_byte(v_bytes, 6, v_version), 7, 0), 8, 128 | (get_byte(v_bytes, 8) & 63));
    if p_shards > 1 then
        v_shard := pawl.shard_hash(p_queue, p_ordering_key, encode(v_bytes, 'hex')::uuid) % p_shards;
        v_bytes := set_byte(set_byte(v_bytes, 6, v_version | (v_shard >> 8)), 7, v_shard & 255);
    end if;
    return encode(v_bytes, 'hex')::uuid;
end $$;

-- Publishes events in the order given, in the caller's transaction; what is said of them was checked, but for their headers, which
-- are those of their jobs, complete. p_keeps_ms: how long an event can be replayed; 0: not at all. Of one that was published before,
-- the first stays. Of each: how many endpoints want it, and how many jobs were made; none where they are there already.
create function pawl.publish_events(p_topics text[], p_ids text[], p_are_minted boolean[], p_payloads bytea[],
                                    p_ordering_keys text[], p_headers text[], p_keeps_ms int8[])
returns table (ordinal int4, endpoints int4, jobs int4)
language plpgsql as $$
declare
    c_statement_bytes constant int8 := 67108864; -- in one insert: an array stays below 1 GiB
    v_now timestamptz := clock_timestamp();
    v_shards int4 := pawl.shards();
    v_is_new boolean := (true = all (p_are_minted)) is true;
    v_patterns text[];
    v_names text[];
    v_orderings int2[];
    v_wanted text[];  -- a type, and in the same place of the next array
    v_places int4[];  -- the place in v_names of an endpoint that wants it
    v_part record;
    v_asked int4[] := '{}'; -- the event of each job
    v_made int4[] := '{}';  -- the same of those that are new
begin
    v_patterns := array(select distinct p from (select distinct t from unnest(p_topics) t) d, unnest(pawl.topic_patterns(d.t)) p);
    -- In the order of their names, so that two callers never wait for each other in a circle.
    select array_agg(m.name), array_agg(m.ordering) into v_names, v_orderings
    from (select e.name, e.ordering from pawl.endpoint e
          where e.is_enabled and e.name in (select t.name from pawl.endpoint_topic t where t.pattern = any (v_patterns))
          order by e.name for key share of e) m;
    select array_agg(w.t), array_agg(w.o) into v_wanted, v_places
    from (select d.t, n.o::int4 from (select distinct t from unnest(p_topics) t) d
          cross join lateral (select distinct e.name from pawl.endpoint_topic e
                              where e.pattern = any (pawl.topic_patterns(d.t))) e
          join unnest(v_names) with ordinality n(n, o) on n.n = e.name) w;
    perform pawl.check_wanted(p_topics, v_wanted);
    -- What is refused must not depend on there being an endpoint.
    perform pawl.check_headers(array_agg(h), count(*)::int4)
    from unnest(p_topics, p_headers) e(t, h) where (e.t = any (v_wanted)) is not true having count(*) > 0;
    insert into pawl.event (seq, id, is_minted, type, ordering_key, published_at, keep_until, headers, payload)
    select nextval('pawl.event_seq'), e.id, e.is_minted, e.type, e.ordering_key, v_now, v_now + pawl.ms(e.keep_ms), e.headers, e.payload
    from (select * from unnest(p_topics, p_ids, p_are_minted, p_payloads, p_ordering_keys, p_headers, p_keeps_ms)
                        with ordinality u(type, id, is_minted, payload, ordering_key, headers, keep_ms, o)
          where u.keep_ms > 0 order by u.o offset 0) e
    on conflict do nothing;
    -- Those that keep an order apart from those that keep none: only their queues are to know of keys. Payloads are put in place for
    -- one part after the other: each may be wanted often.
    for v_part in
        select p.shard, p.has_key, array_agg(p.event order by p.event, p.o) events, array_agg(p.queue order by p.event, p.o) queues,
               array_agg(p.id order by p.event, p.o) ids, array_agg(p.ordering_key order by p.event, p.o) ordering_keys
        from (select j.*, case when v_shards > 1 then pawl.id_shard(j.id, v_shards) else 0 end shard,
                     j.ordering_key is not null has_key,
                     sum(j.bytes) over (order by j.event, j.o) / c_statement_bytes part
              from (select e.o as event, w.p o, e.bytes, q.queue, q.ordering_key,
                           pawl.event_job_id(e.id, e.is_minted, q.queue, q.ordering_key, v_shards) id
                    from (select t, i, m, k, octet_length(b) + octet_length(h) + 1, o
                          from unnest(p_topics, p_ids, p_are_minted, p_ordering_keys, p_payloads, p_headers)
                               with ordinality u(t, i, m, k, b, h, o)) e(topic, id, is_minted, ordering_key, bytes, o)
                    join unnest(v_wanted, v_places) w(t, p) on w.t = e.topic
                    cross join lateral (select pawl.endpoint_queue(v_names[w.p]) queue,
                                               case when v_orderings[w.p] = 2 then e.ordering_key end ordering_key) q
                    offset 0) j) p
        group by p.shard, p.has_key, p.part order by p.shard, p.has_key, p.part
    loop
        v_asked := v_asked || v_part.events::int4[];
        v_made := v_made || array(
            select v_part.events[b.ordinal]::int4
            from (select array_agg(u.b order by e.o) payloads, array_agg(u.h order by e.o) headers
                  from unnest(v_part.events) with ordinality e(i, o)
                  join unnest(p_payloads, p_headers) with ordinality u(b, h, i) on u.i = e.i) a,
                 pawl.enqueue_batch(v_part.shard, v_part.queues, v_part.ids, a.payloads, p_is_new => v_is_new,
                                    p_ordering_keys => case when v_part.has_key then v_part.ordering_keys end,
                                    p_headers => a.headers) b
            where b.verdict = 'OK');
    end loop;
    return query
    select e.o, coalesce(a.n, 0)::int4, coalesce(m.n, 0)::int4
    from generate_series(1, cardinality(p_topics)) e(o)
    left join (select x, count(*) n from unnest(v_asked) x group by x) a on a.x = e.o
    left join (select x, count(*) n from unnest(v_made) x group by x) m on m.x = e.o
    order by e.o;
end $$;

-- An event makes 1000 jobs at the most, a call 10000. p_wanted has each type as often as there are endpoints that want it.
create function pawl.check_wanted(p_topics text[], p_wanted text[]) returns void
language plpgsql as $$
declare
    v_topic text;
    v_jobs int8;
begin
    select w.t into v_topic from unnest(p_wanted) w(t) group by w.t having count(*) > 1000 limit 1;
    if found then
        raise exception 'event_type % is wanted by more than 1000 endpoints', v_topic using errcode = 'P7020';
    end if;
    select sum(e.n * w.n) into v_jobs
    from (select t, count(*) n from unnest(p_topics) t group by t) e join (select t, count(*) n from unnest(p_wanted) t group by t) w
         using (t);
    if v_jobs > 10000 then
        raise exception 'these events would make more than 10000 jobs; publish fewer at once' using errcode = 'P7020';
    end if;
end $$;

-- Whether that can be said of an event, at little cost; where it says no, check_event() says why, or yes.
create function pawl.is_event_right(p_topic text, p_id text, p_payload bytea, p_ordering_key text, p_payload_max int4)
returns boolean
language sql immutable as $$
    select length(p_topic) <= 128 and p_topic collate "C" ~ E'^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$'
       and p_id collate "C" ~ '^[A-Za-z0-9_-]{1,64}$' and octet_length(p_payload) <= p_payload_max
       and (p_ordering_key is null or p_ordering_key collate "C" ~ '^[ -~]{1,255}$')
$$;

-- What may be said of an event.
create function pawl.check_event(p_topic text, p_id text, p_payload bytea, p_ordering_key text) returns void
language plpgsql as $$
begin
    perform pawl.check_topic(p_topic);
    if p_id collate "C" !~ '^[A-Za-z0-9_-]{1,64}$' then
        perform pawl.fail('p_id', '"' || left(regexp_replace(p_id, '[^ -~]', '?', 'g'), 40) || '"',
                          '1 to 64 letters, digits, _ and -');
    end if;
    perform pawl.check_given('p_payload', octet_length(p_payload)::text);
    perform pawl.check_bytes('p_payload', octet_length(p_payload), 0, (select c.payload_max from pawl.config c));
    perform pawl.check_text('p_ordering_key', p_ordering_key, 1, 255);
end $$;

-- Publishes events in the order given, all of them in the caller's transaction. Of each: how many endpoints want it, and how many
-- jobs were made; none where they are there already.
create function pawl.publish_batch(p_topics text[], p_ids text[], p_are_minted boolean[], p_payloads bytea[],
                                   p_ordering_keys text[], p_headers text[], p_keeps_ms int8[] default null)
returns table (ordinal int4, endpoints int4, jobs int4)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    c_keep_max constant int8 := 315360000000; -- ten years
    c_keep_usual constant int8 := 604800000;  -- a week
    v_count int4 := cardinality(p_topics);
    v_payload_max int4 := (select c.payload_max from pawl.config c);
begin
    perform pawl.check_number('cardinality(p_topics)', v_count, 0, 10000);
    perform pawl.check_count('p_ids', cardinality(p_ids), v_count);
    perform pawl.check_count('p_are_minted', cardinality(p_are_minted), v_count);
    perform pawl.check_count('p_payloads', cardinality(p_payloads), v_count);
    perform pawl.check_count('p_ordering_keys', cardinality(p_ordering_keys), v_count);
    perform pawl.check_count('p_headers', cardinality(p_headers), v_count);
    perform pawl.check_count('p_keeps_ms', coalesce(cardinality(p_keeps_ms), v_count), v_count);
    if exists (select from unnest(p_topics, p_ids, p_payloads, p_ordering_keys, p_headers, p_keeps_ms) e(t, i, b, k, h, p)
               where (pawl.is_event_right(e.t, e.i, e.b, e.k, v_payload_max) and e.h is not null
                      and coalesce(e.p, 0) between 0 and c_keep_max) is not true) then
        for i in 1 .. v_count loop -- to say which, and why
            perform pawl.check_given('p_ids[' || i || ']', p_ids[i]);
            perform pawl.check_given('p_headers[' || i || ']', left(p_headers[i], 1));
            perform pawl.check_event(p_topics[i], p_ids[i], p_payloads[i], p_ordering_keys[i]);
            perform pawl.check_number('p_keeps_ms[' || i || ']', coalesce(p_keeps_ms[i], 0), 0, c_keep_max);
        end loop;
    end if;
    return query select * from pawl.publish_events(
        p_topics, p_ids, array(select coalesce(u.m, false) from unnest(p_are_minted) with ordinality u(m, o) order by u.o), p_payloads,
        p_ordering_keys, p_headers,
        case when p_keeps_ms is null then array_fill(c_keep_usual, array[v_count])
             else array(select coalesce(u.k, c_keep_usual) from unnest(p_keeps_ms) with ordinality u(k, o) order by u.o) end);
end $$;

-- Publishes one event in the caller's transaction; gives its id, which receivers tell repeats by. Published again with the same
-- p_id, nothing is made twice.
create function pawl.publish(
    p_topic text,                      -- the type of the event: order.created
    p_payload bytea,
    p_id text default null,            -- 1 to 64 letters, digits, _ and -; made where it is NULL
    p_ordering_key text default null,  -- for endpoints that keep an order; NULL or '': none
    p_headers jsonb default null,      -- an object of strings; content-type and traceparent are passed on
    p_time timestamptz default null,   -- when it happened; NULL: now
    p_keep interval default '7 days'   -- how long it can be replayed: see endpoint_replay(); 0: not at all
) returns text
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_id text := coalesce(p_id, pawl.new_id('webhook/')::text);
    v_ordering_key text := nullif(p_ordering_key, '');
    v_headers text := '';
begin
    perform pawl.check_event(p_topic, p_id, p_payload, v_ordering_key);
    if p_headers is not null then
        v_headers := coalesce(pawl.headers_text('p_headers', p_headers), '');
        perform pawl.fail('a header in p_headers', '"' || k || '"', 'one that does not begin with pawl-')
        from jsonb_object_keys(p_headers) k where lower(k collate "C") like 'pawl-%';
    end if;
    if p_time < 'epoch' or p_time > '9999-12-31 23:59:59+00' then
        perform pawl.fail('p_time', p_time::text, 'from 1970 to 9999');
    end if;
    perform pawl.check_number('p_keep in milliseconds', floor(extract(epoch from coalesce(p_keep, '0')) * 1000)::int8, 0,
                              315360000000);
    perform pawl.publish_events(
        array[p_topic], array[v_id], array[p_id is null], array[p_payload], array[v_ordering_key],
        array['pawl-event-id: ' || v_id || E'\n' || 'pawl-event-type: ' || p_topic || E'\n'
              || coalesce('pawl-event-key: ' || v_ordering_key || E'\n', '')
              || coalesce('pawl-event-time: ' || (extract(epoch from p_time) * 1000000)::int8 || E'\n', '') || v_headers],
        array[floor(extract(epoch from coalesce(p_keep, '0')) * 1000)::int8]);
    return v_id;
end $$;

-- The same with a payload of text, carried as UTF-8, and with one of JSON.
create function pawl.publish(p_topic text, p_payload text, p_id text default null, p_ordering_key text default null,
                             p_headers jsonb default null, p_time timestamptz default null,
                             p_keep interval default '7 days') returns text
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    return pawl.publish(p_topic, convert_to(p_payload, 'UTF8'), p_id, p_ordering_key, p_headers, p_time, p_keep);
end $$;

create function pawl.publish(p_topic text, p_payload jsonb, p_id text default null, p_ordering_key text default null,
                             p_headers jsonb default null, p_time timestamptz default null,
                             p_keep interval default '7 days') returns text
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    return pawl.publish(p_topic, convert_to(p_payload::text, 'UTF8'), p_id, p_ordering_key, p_headers, p_time, p_keep);
end $$;

-- ---- replaying

-- Deletes up to p_max events that need not be kept any more.
create function pawl.prune_events(p_max int4) returns int4
language plpgsql as $$
declare
    v_count int4 := 0;
begin
    delete from pawl.event e where e.id = any (array(
        select k.id from pawl.event k where k.keep_until < clock_timestamp() order by k.keep_until limit p_max
        for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end $$;

-- The headers of a job that a replay makes: the event's, with its time where they have none, so that it tells the same as the job that
-- was published, if there was one.
create function pawl.replay_headers(p_event pawl.event, p_job_id uuid, p_shards int4) returns text
language plpgsql as $$
declare
    v_at timestamptz;
begin
    if E'\n' || p_event.headers like E'%\npawl-event-time: %' or octet_length(p_event.headers) > 16384 - 40
       or length(p_event.headers) - length(replace(p_event.headers, E'\n', '')) >= 64 then
        return p_event.headers;
    end if;
    select f.created_at into v_at from pawl.job_form f where f.shard = pawl.id_shard(p_job_id, p_shards) and f.id = p_job_id;
    return p_event.headers || 'pawl-event-time: '
           || (extract(epoch from coalesce(v_at, p_event.published_at)) * 1000000)::int8 || E'\n';
end $$;

-- Makes the job of an event that is replayed. Gives 1, or 0 where it is there.
create function pawl.replay_one(p_at pawl.endpoint, p_event pawl.event, p_as text, p_shards int4) returns int4
language plpgsql as $$
declare
    v_queue text := pawl.endpoint_queue(p_at.name);
    v_key text := case when p_at.ordering = 2 then p_event.ordering_key end;
    v_id uuid := pawl.event_job_id(p_event.id, p_event.is_minted, v_queue, v_key, p_shards, p_as);
    v_first uuid := pawl.event_job_id(p_event.id, p_event.is_minted, v_queue, v_key, p_shards);
begin
    return (select count(*) from pawl.enqueue_batch(
                pawl.id_shard(v_id, p_shards), array[v_queue], array[v_id], array[p_event.payload],
                p_ordering_keys => case when v_key is not null then array[v_key] end,
                p_headers => array[pawl.replay_headers(p_event, v_first, p_shards)]) b
            where b.verdict = 'OK');
end $$;

-- Delivers events again to one endpoint, or for the first time, as long as they are kept: one by its id, or those of a range of time
-- whose types it wants, up to p_max of them: call again with next_at and next_seq while is_more. p_as names the replay: each event
-- comes once for each such name; NULL: only what has never become a job of the endpoint. Raises P7022 where there is no such
-- endpoint, P7024 where the event that is named is not kept.
create function pawl.endpoint_replay(
    p_name text,
    p_event text default null,          -- one event, whether its type is wanted or not
    p_since timestamptz default null,   -- published then or later
    p_until timestamptz default null,   -- published before
    p_as text default null,
    p_max int4 default 1000,            -- looked at by this call
    p_after_at timestamptz default null,
    p_after_seq int8 default null,
    out events int8, out jobs int8, out is_more boolean, out next_at timestamptz, out next_seq int8
)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    c_bytes constant int8 := 67108864; -- of what one call makes
    v_at pawl.endpoint;
    v_event pawl.event;
    v_shards int4 := pawl.shards();
    v_seen int4 := 0;
    v_bytes int8 := 0;
    v_from timestamptz := greatest(coalesce(p_since, '-infinity'), coalesce(p_after_at, '-infinity'));
begin
    perform pawl.check_endpoint_name(p_name);
    perform pawl.check_number('p_max', p_max, 1, 10000);
    if p_as collate "C" !~ '^[A-Za-z0-9_-]{1,64}$' then
        perform pawl.fail('p_as', '"' || left(regexp_replace(p_as, '[^ -~]', '?', 'g'), 40) || '"', '1 to 64 letters, digits, _ and -');
    end if;
    events := 0;
    jobs := 0;
    is_more := false;
    -- Against removal, as a publish does.
    select * into v_at from pawl.endpoint e where e.name = p_name for key share;
    if not found then
        raise exception 'there is no endpoint %', p_name using errcode = 'P7022';
    end if;
    if p_event is not null then
        select * into v_event from pawl.event e where e.id = p_event;
        if not found then
            raise exception 'event % is not, or no longer, kept', left(regexp_replace(p_event, '[^ -~]', '?', 'g'), 64)
                using errcode = 'P7024';
        end if;
        events := 1;
        jobs := pawl.replay_one(v_at, v_event, p_as, v_shards);
        return;
    end if;
    for v_event in
        select * from pawl.event e
        where (e.published_at, e.seq) > (v_from, case when v_from = p_after_at then p_after_seq else -1 end)
          and (p_until is null or e.published_at < p_until)
        order by e.published_at, e.seq limit p_max + 1
    loop
        if v_seen = p_max or v_bytes >= c_bytes then
            is_more := true;
            exit;
        end if;
        v_seen := v_seen + 1;
        next_at := v_event.published_at;
        next_seq := v_event.seq;
        continue when not exists (select from pawl.endpoint_topic t
                                  where t.name = v_at.name and t.pattern = any (pawl.topic_patterns(v_event.type)));
        events := events + 1;
        jobs := jobs + pawl.replay_one(v_at, v_event, p_as, v_shards);
        v_bytes := v_bytes + octet_length(v_event.payload) + octet_length(v_event.headers);
    end loop;
end $$;

-- ---- roles

revoke all on pawl.endpoint, pawl.endpoint_topic, pawl.endpoint_secret, pawl.endpoints, pawl.event, pawl.event_seq from public;
revoke all on all functions in schema pawl from public;

-- What the runtime role may call: what it could, and these.
select pawl.runtime_may_call('{endpoint_add, endpoint_set, endpoint_rotate, endpoint_turn,
            endpoint_disable, endpoint_enable, endpoint_mark, endpoint_remove, endpoint_replay, list_endpoints, endpoint_credentials, publish,
            publish_batch}');

-- What a reader may look at: what it could, and this. The view calls the function with the rights of whoever reads.
alter function pawl.grant_reader(name) rename to grant_reader_of_workleases;
create function pawl.grant_reader(p_role name) returns void
language plpgsql set search_path = pg_catalog, pawl, pg_temp as $$
begin
    perform pawl.grant_reader_of_workleases(p_role);
    execute format('grant select on pawl.endpoints to %I', p_role);
    execute format('grant execute on function pawl.endpoint_queue to %I', p_role);
end $$;
revoke all on function pawl.grant_reader(name) from public;

select pawl.grant_again();
