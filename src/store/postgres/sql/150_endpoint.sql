-- SPDX-License-Identifier: Apache-2.0
-- Endpoints of webhooks (docs/webhooks.md): each is a queue of its own, webhook/ and its name, whose settings are the queue's.
-- Nobody but the owner reads these tables. What is secret (secrets, the values of headers) is told by endpoint_credentials()
-- alone, which the runtime role may call; no view and no error shows it.
--
-- SQLSTATEs: P7001 an argument is wrong. P7003 EXISTS. P7020 a limit is reached. P7021 jobs are left in the endpoint's queue.
-- P7022 there is no such endpoint. P7023 the endpoint has this secret already. P7024 the event is not kept.
create table pawl.endpoint (
    name text collate "C" not null,
    url text not null,
    topics text not null,        -- patterns with commas between them: see endpoint_topic
    headers text not null,       -- "name: value" and a newline for each; may be secret
    fail_statuses text not null, -- 4xx that are not retried
    timeout_ms int8 not null,
    rate_per_minute int8 not null, -- 0: no bound
    ordering int2 not null,      -- 1 none, 2 key
    format int2 not null,        -- 1 plain, 2 CloudEvents binary, 3 CloudEvents structured
    is_enabled boolean not null default true,
    switched_at timestamptz,     -- this and the next two: of the last switch
    switched_by text,
    reason text,
    failing_since timestamptz,   -- as those who deliver say; NULL: it is not failing
    revision int8 not null default 1, -- rises with each change
    created_at timestamptz not null,
    changed_at timestamptz not null,
    constraint endpoint_pkey primary key (name)
);

-- Its patterns, one by one: an event is looked up by the few that match its type, however many endpoints there are.
create table pawl.endpoint_topic (
    pattern text collate "C" not null,
    name text collate "C" not null,
    constraint endpoint_topic_pkey primary key (pattern, name)
);

-- What its deliveries are signed with; the newest has the highest ordinal.
create table pawl.endpoint_secret (
    name text collate "C" not null,
    ordinal int8 not null,
    secret text not null,
    until timestamptz, -- NULL: until it is rotated
    constraint endpoint_secret_pkey primary key (name, ordinal)
);

-- ---- what callers may say

create function pawl.check_endpoint_name(p_name text) returns void
language plpgsql as $$
begin
    if p_name is null or p_name collate "C" !~ '^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$' then
        perform pawl.fail('p_name', '"' || left(regexp_replace(p_name, '[^ -~]', '?', 'g'), 40) || '"',
                          '1 to 100 letters, digits, ".", "_" and "-", the first no "." or "-"');
    end if;
end $$;

-- A type of events: words of letters, digits, _ and - with full stops between them.
create function pawl.check_topic(p_topic text) returns void
language plpgsql as $$
begin
    if p_topic is null or length(p_topic) > 128 or p_topic collate "C" !~ E'^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$' then
        perform pawl.fail('p_topic', '"' || left(regexp_replace(p_topic, '[^ -~]', '?', 'g'), 40) || '"',
                          'up to 128 letters, digits, _ and -, in words with full stops between them');
    end if;
end $$;

-- Patterns with commas between them: a type, a type and .*, or *.
create function pawl.check_topics(p_topics text) returns void
language plpgsql as $$
declare
    v_all text[] := string_to_array(p_topics, ',');
    v_bad text;
begin
    perform pawl.check_given('p_topics', p_topics);
    perform pawl.check_bytes('p_topics', octet_length(p_topics), 1, 4096);
    perform pawl.check_number('the number of p_topics', cardinality(v_all), 1, 100);
    select t into v_bad from unnest(v_all) t
    where length(t) > 128 or t collate "C" !~ E'^([*]|[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*(\\.[*])?)$' limit 1;
    if found then
        perform pawl.fail('a pattern in p_topics', '"' || left(regexp_replace(v_bad, '[^ -~]', '?', 'g'), 40) || '"',
                          'up to 128 letters, digits, _ and -, in words with full stops between them, the last one may be *');
    end if;
    select min(t) into v_bad from unnest(v_all) t group by t collate "C" having count(*) > 1 limit 1;
    if found then
        perform pawl.fail('a pattern in p_topics', '"' || v_bad || '", twice', 'there once');
    end if;
end $$;

-- Its path may hold a token: no part of it is told. What is before the path is shown in lists: it must hold none.
create function pawl.check_url(p_url text) returns void
language plpgsql as $$
begin
    if p_url is null or octet_length(p_url) > 2048 or p_url collate "C" !~ E'^https?://[!-\\[\\]-~]+$'
       or p_url collate "C" !~ '^https?://[^/?#@]+([/?#]|$)' then
        perform pawl.fail('p_url', case when p_url is not null then 'not one' end,
                          'http:// or https:// and a host, up to 2048 bytes of printable ASCII without blanks, backslashes and credentials');
    end if;
end $$;

create function pawl.check_secret(p_secret text) returns void
language plpgsql as $$
begin
    if p_secret is null or octet_length(p_secret) not between 38 and 94
       or p_secret collate "C" !~ '^(whsec|whsk)_[A-Za-z0-9+/]+={0,2}$' then
        perform pawl.fail('p_secret', case when p_secret is not null then 'not one' end,
                          'whsec_ or whsk_ and base64, 38 to 94 bytes in all');
    end if;
end $$;

-- None that a delivery sets itself, or that says where a message goes or ends: as src/core/event.c has it.
create function pawl.check_endpoint_headers(p_headers text) returns void
language plpgsql as $$
begin
    if p_headers <> '' then
        perform pawl.check_bytes('p_headers', octet_length(p_headers), 0, 4096);
        perform pawl.check_headers(array[p_headers], 1);
        perform pawl.check_number('the number of p_headers', length(p_headers) - length(replace(p_headers, E'\n', '')), 0, 16);
        perform pawl.fail('a header in p_headers', '"' || n || '"', 'one that the delivery does not set itself')
        from unnest(string_to_array(pawl.header_names(p_headers), ',')) n
        where lower(n collate "C") ~ '^(pawl-|webhook-|ce-)'
           or lower(n collate "C") in ('connection', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'te',
                                       'traceparent', 'proxy-connection', 'trailer', 'upgrade', 'transfer-encoding');
    end if;
end $$;

-- The number of a name in a list; an error where it is not in it. NULL stays NULL.
create function pawl.name_number(p_field text, p_value text, p_names text[]) returns int2
language plpgsql as $$
begin
    if p_value is not null and array_position(p_names, p_value) is null then
        perform pawl.fail(p_field, '"' || left(regexp_replace(p_value, '[^ -~]', '?', 'g'), 40) || '"',
                          'one of ' || array_to_string(p_names, ', '));
    end if;
    return array_position(p_names, p_value)::int2;
end $$;

-- What is given of an endpoint's settings; NULL is not.
create function pawl.check_endpoint(p_url text, p_topics text, p_headers text, p_fail_statuses text, p_timeout_ms int8,
                                    p_rate_per_minute int8) returns void
language plpgsql as $$
begin
    if p_url is not null then
        perform pawl.check_url(p_url);
    end if;
    if p_topics is not null then
        perform pawl.check_topics(p_topics);
    end if;
    perform pawl.check_endpoint_headers(p_headers);
    if octet_length(p_fail_statuses) > 271 or p_fail_statuses collate "C" !~ '^[0-9,-]*$' then
        perform pawl.fail('p_fail_statuses', 'not a list',
                          'numbers and ranges with commas between them, up to 271 bytes');
    end if;
    perform pawl.check_number('p_timeout_ms', coalesce(p_timeout_ms, 100), 100, 300000);
    perform pawl.check_number('p_rate_per_minute', coalesce(p_rate_per_minute, 0), 0, 6000000);
end $$;

-- ---- what they share

create function pawl.endpoint_queue(p_name text) returns text
language sql immutable parallel safe as $$
    select 'webhook/' || p_name
$$;

-- Raises P7021 where jobs are Ready or InFlight in the queue of this name.
create function pawl.endpoint_check_jobs(p_name text) returns void
language plpgsql as $$
declare
    v_queue_id int4;
begin
    select q.queue_id into v_queue_id from pawl.queue q where q.name = pawl.endpoint_queue(p_name);
    if exists (select from pawl.job j where j.line_id between v_queue_id * 4096 and v_queue_id * 4096 + 4095) then
        raise exception 'jobs are left in queue %; let them end, or cancel them', pawl.endpoint_queue(p_name)
            using errcode = 'P7021';
    end if;
end $$;

-- Locks an endpoint for a change, which waits for no publish. Raises P7022 where there is none.
create function pawl.endpoint_lock(p_name text) returns pawl.endpoint
language plpgsql as $$
declare
    v_at pawl.endpoint;
begin
    perform pawl.check_endpoint_name(p_name);
    select * into v_at from pawl.endpoint e where e.name = p_name for no key update;
    if not found then
        raise exception 'there is no endpoint %', p_name using errcode = 'P7022';
    end if;
    return v_at;
end $$;

-- NFR-002: the execution timeout of a queue in which one delivery may take p_timeout_ms: as it is (NULL: three times the lease),
-- or so much longer that it cuts none off.
create function pawl.endpoint_execution_ms(p_execution_timeout_ms int8, p_lease_ms int8, p_timeout_ms int8) returns int8
language sql immutable as $$
    select case when coalesce(p_execution_timeout_ms, 3 * p_lease_ms) < p_timeout_ms + 60000 then p_timeout_ms + 60000
                else p_execution_timeout_ms end
$$;

create function pawl.endpoint_set_topics(p_name text, p_topics text) returns void
language plpgsql as $$
begin
    delete from pawl.endpoint_topic t where t.name = p_name;
    insert into pawl.endpoint_topic (pattern, name) select t, p_name from unnest(string_to_array(p_topics, ',')) t;
end $$;

-- ---- adding and changing

-- Adds an endpoint, enabled. p_secret: what deliveries are signed with, whsec_... or whsk_...
create function pawl.endpoint_add(
    p_name text,
    p_url text,
    p_topics text,                        -- patterns with commas between them: order.created, order.*, *
    p_secret text,
    p_headers text default '',            -- sent with each delivery: "name: value" and a newline for each
    p_fail_statuses text default '',      -- 4xx that are not retried: 400,404-406
    p_timeout_ms int8 default 30000,      -- of one delivery
    p_rate_per_minute int8 default 0,     -- 0: no bound
    p_ordering text default 'none',       -- or key
    p_format text default 'plain',        -- or cloudevents-binary, cloudevents-structured
    p_lease_ms int8 default 120000,       -- this and the rest: of its queue
    p_max_in_flight int4 default null,    -- NULL: 64, or as many as there are shards; 0: no bound
    p_max_retries int4 default 20,
    p_backoff_base_ms int8 default 5000,
    p_backoff_max_ms int8 default 28800000
) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_now timestamptz;
begin
    perform pawl.check_endpoint_name(p_name);
    perform pawl.check_url(p_url);
    perform pawl.check_topics(p_topics);
    perform pawl.check_secret(p_secret);
    perform pawl.check_endpoint(p_url, p_topics, p_headers, p_fail_statuses, p_timeout_ms, p_rate_per_minute);
    lock table pawl.endpoint in share row exclusive mode; -- those who add take turns; publishing goes on
    v_now := clock_timestamp();
    if exists (select from pawl.endpoint e where e.name = p_name) then
        raise exception 'there is an endpoint % already', p_name using errcode = 'P7003';
    end if;
    if (select count(*) from pawl.endpoint) >= 10000 then
        raise exception 'there are 10000 endpoints, which is the most allowed' using errcode = 'P7020';
    end if;
    perform pawl.endpoint_check_jobs(p_name);
    insert into pawl.endpoint (name, url, topics, headers, fail_statuses, timeout_ms, rate_per_minute, ordering, format,
                               created_at, changed_at)
    values (p_name, p_url, p_topics, coalesce(p_headers, ''), coalesce(p_fail_statuses, ''), coalesce(p_timeout_ms, 30000),
            coalesce(p_rate_per_minute, 0), coalesce(pawl.name_number('p_ordering', p_ordering, '{none,key}'), 1),
            coalesce(pawl.name_number('p_format', p_format, '{plain,cloudevents-binary,cloudevents-structured}'), 1),
            v_now, v_now);
    perform pawl.endpoint_set_topics(p_name, p_topics);
    insert into pawl.endpoint_secret (name, ordinal, secret) values (p_name, 1, p_secret);
    perform pawl.queue_set(pawl.endpoint_queue(p_name), coalesce(p_lease_ms, 120000),
                           pawl.endpoint_execution_ms(null, coalesce(p_lease_ms, 120000), coalesce(p_timeout_ms, 30000)),
                           coalesce(p_max_retries, 20), 10,
                           coalesce(p_backoff_base_ms, 5000), coalesce(p_backoff_max_ms, 28800000), 604800000, 2592000000,
                           coalesce(p_max_in_flight, greatest(64, pawl.shards())));
    perform pawl.queue_pause(pawl.endpoint_queue(p_name), false);
end $$;

-- Changes settings: what is NULL stays as it is.
create function pawl.endpoint_set(
    p_name text, p_url text default null, p_topics text default null, p_headers text default null,
    p_fail_statuses text default null, p_timeout_ms int8 default null, p_rate_per_minute int8 default null,
    p_ordering text default null, p_format text default null, p_lease_ms int8 default null, p_max_in_flight int4 default null,
    p_max_retries int4 default null, p_backoff_base_ms int8 default null, p_backoff_max_ms int8 default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_at pawl.endpoint;
    v_queue pawl.queue;
    v_ordering int2 := pawl.name_number('p_ordering', p_ordering, '{none,key}');
    v_format int2 := pawl.name_number('p_format', p_format, '{plain,cloudevents-binary,cloudevents-structured}');
begin
    perform pawl.check_endpoint(p_url, p_topics, p_headers, p_fail_statuses, p_timeout_ms, p_rate_per_minute);
    v_at := pawl.endpoint_lock(p_name);
    update pawl.endpoint e
    set url = coalesce(p_url, e.url), topics = coalesce(p_topics, e.topics), headers = coalesce(p_headers, e.headers),
        fail_statuses = coalesce(p_fail_statuses, e.fail_statuses), timeout_ms = coalesce(p_timeout_ms, e.timeout_ms),
        rate_per_minute = coalesce(p_rate_per_minute, e.rate_per_minute), ordering = coalesce(v_ordering, e.ordering),
        format = coalesce(v_format, e.format), revision = e.revision + 1, changed_at = clock_timestamp()
    where e.name = v_at.name;
    if p_topics is not null then
        perform pawl.endpoint_set_topics(v_at.name, p_topics);
    end if;
    if num_nonnulls(p_timeout_ms, p_lease_ms, p_max_in_flight, p_max_retries, p_backoff_base_ms, p_backoff_max_ms) > 0 then
        select * into v_queue from pawl.queue q where q.name = pawl.endpoint_queue(v_at.name) for update;
        perform pawl.queue_set(v_queue.name, coalesce(p_lease_ms, v_queue.lease_ms),
                               case when p_timeout_ms is null and p_lease_ms is null then v_queue.execution_timeout_ms
                                    else pawl.endpoint_execution_ms(v_queue.execution_timeout_ms, coalesce(p_lease_ms, v_queue.lease_ms),
                                                                    coalesce(p_timeout_ms, v_at.timeout_ms)) end,
                               coalesce(p_max_retries, v_queue.max_retries), v_queue.max_lost_leases,
                               coalesce(p_backoff_base_ms, v_queue.backoff_base_ms),
                               coalesce(p_backoff_max_ms, v_queue.backoff_max_ms), v_queue.keep_succeeded_ms,
                               v_queue.keep_failed_ms, coalesce(p_max_in_flight, v_queue.max_in_flight, 0));
    end if;
end $$;

-- Gives an endpoint another secret, which signs from now on; those that it has sign beside it for p_overlap_ms, and none longer
-- than it would have.
create function pawl.endpoint_rotate(p_name text, p_secret text, p_overlap_ms int8 default 86400000) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_at pawl.endpoint;
    v_now timestamptz;
    v_until timestamptz;
begin
    perform pawl.check_secret(p_secret);
    perform pawl.check_number('p_overlap_ms', p_overlap_ms, 0, 315360000000);
    v_at := pawl.endpoint_lock(p_name);
    v_now := clock_timestamp(); -- the row is locked
    v_until := v_now + pawl.ms(p_overlap_ms);
    delete from pawl.endpoint_secret s where s.name = v_at.name and s.until <= v_now;
    if exists (select from pawl.endpoint_secret s where s.name = v_at.name and s.secret = p_secret) then
        raise exception 'secret is one that endpoint % has already', p_name using errcode = 'P7023';
    end if;
    if p_overlap_ms = 0 then
        delete from pawl.endpoint_secret s where s.name = v_at.name;
    end if;
    update pawl.endpoint_secret s set until = v_until where s.name = v_at.name and (s.until <= v_until) is not true;
    if (select count(*) from pawl.endpoint_secret s where s.name = v_at.name) >= 4 then
        raise exception 'endpoint % has 4 secrets that still sign, which is the most allowed; rotate without an overlap, or later',
            p_name using errcode = 'P7020';
    end if;
    insert into pawl.endpoint_secret (name, ordinal, secret)
    values (v_at.name, v_at.revision + 1, p_secret); -- the revision rises
    update pawl.endpoint e set revision = e.revision + 1, changed_at = v_now where e.name = v_at.name;
end $$;

-- Enables or disables an endpoint, and resumes or pauses its queue. Where it is so already, nothing changes.
create function pawl.endpoint_turn(p_name text, p_is_enabled boolean, p_by text, p_reason text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_at pawl.endpoint;
    v_now timestamptz;
begin
    perform pawl.check_given('p_is_enabled', p_is_enabled::text);
    perform pawl.check_name('p_by', p_by);
    perform pawl.check_text('p_reason', p_reason, 0, 255);
    v_at := pawl.endpoint_lock(p_name);
    if v_at.is_enabled = p_is_enabled then
        return;
    end if;
    v_now := clock_timestamp();
    update pawl.endpoint e
    set is_enabled = p_is_enabled, switched_at = v_now, switched_by = p_by, reason = p_reason, revision = e.revision + 1,
        changed_at = v_now, failing_since = case when not p_is_enabled then e.failing_since end
    where e.name = v_at.name;
    perform pawl.queue_pause(pawl.endpoint_queue(v_at.name), not p_is_enabled);
end $$;

create function pawl.endpoint_disable(p_name text, p_by text, p_reason text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    perform pawl.endpoint_turn(p_name, false, p_by, p_reason);
end $$;

create function pawl.endpoint_enable(p_name text, p_by text, p_reason text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    perform pawl.endpoint_turn(p_name, true, p_by, p_reason);
end $$;

-- Puts on record that an endpoint fails (since when: the first one who says so counts), or that it is well again. Where it has
-- been failing for p_disable_after_ms it is disabled, with the reason. Repeating it is harmless.
create function pawl.endpoint_mark(p_name text, p_is_failing boolean, p_by text, p_disable_after_ms int8 default null,
                                   p_reason text default null, out failing_since timestamptz, out is_enabled boolean)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_at pawl.endpoint;
    v_now timestamptz;
begin
    perform pawl.check_given('p_is_failing', p_is_failing::text);
    perform pawl.check_name('p_by', p_by);
    perform pawl.check_number('p_disable_after_ms', coalesce(p_disable_after_ms, 1), 1, 315360000000);
    perform pawl.check_text('p_reason', p_reason, 0, 255);
    v_at := pawl.endpoint_lock(p_name);
    v_now := clock_timestamp(); -- the row is locked
    failing_since := case when p_is_failing then coalesce(v_at.failing_since, v_now) end;
    is_enabled := v_at.is_enabled;
    if failing_since is distinct from v_at.failing_since then
        update pawl.endpoint e set failing_since = endpoint_mark.failing_since where e.name = v_at.name;
    end if;
    if is_enabled and p_is_failing and failing_since <= v_now - pawl.ms(p_disable_after_ms) then
        perform pawl.endpoint_turn(v_at.name, false, p_by, p_reason);
        is_enabled := false;
    end if;
end $$;

-- Removes an endpoint and what was set of its queue. The row goes first: that waits for every transaction that has published to
-- it, and the look for jobs comes later, with a snapshot that shows theirs. Raises P7021 where there are any.
create function pawl.endpoint_remove(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    perform pawl.check_endpoint_name(p_name);
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        perform pawl.fail('transaction_isolation', current_setting('transaction_isolation'),
                          'read committed, to see what was published until now');
    end if;
    delete from pawl.endpoint e where e.name = p_name;
    if not found then
        raise exception 'there is no endpoint %', p_name using errcode = 'P7022';
    end if;
    perform pawl.endpoint_check_jobs(p_name);
    delete from pawl.endpoint_topic t where t.name = p_name;
    delete from pawl.endpoint_secret s where s.name = p_name;
    perform pawl.queue_set(pawl.endpoint_queue(p_name), 30000, null, 3, 10, 500, 30000, 604800000, 2592000000, 0);
    update pawl.queue q set is_set = false, is_paused = false where q.name = pawl.endpoint_queue(p_name);
end $$;

-- ---- looking

create function pawl.header_names(p_headers text) returns text
language sql immutable as $$
    select coalesce(string_agg(split_part(l.l, ':', 1), ',' order by l.o), '')
    from unnest(string_to_array(nullif(left(p_headers, -1), ''), E'\n')) with ordinality l(l, o)
$$;

-- One endpoint (p_name), or those after a name; no secret, and of headers the names.
create function pawl.list_endpoints(p_name text, p_after text, p_max int4)
returns table (name text, queue text, url text, topics text, header_names text, fail_statuses text, timeout_ms int8,
               rate_per_minute int8, ordering int2, format int2, secrets_count int8, is_enabled boolean, switched_at timestamptz,
               switched_by text, reason text, revision int8, created_at timestamptz, changed_at timestamptz, lease_ms int8,
               execution_timeout_ms int8, max_retries int4, max_lost_leases int4, backoff_base_ms int8, backoff_max_ms int8,
               keep_succeeded_ms int8, keep_failed_ms int8, max_in_flight int4, is_paused boolean, failing_since timestamptz)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
        select e.name::text, q.name, e.url, e.topics, pawl.header_names(e.headers), e.fail_statuses, e.timeout_ms, e.rate_per_minute,
               e.ordering, e.format,
               (select count(*) from pawl.endpoint_secret s where s.name = e.name and (s.until <= v_now) is not true),
               e.is_enabled, e.switched_at, e.switched_by, e.reason, e.revision, e.created_at, e.changed_at, q.lease_ms,
               q.execution_timeout_ms, q.max_retries, q.max_lost_leases, q.backoff_base_ms, q.backoff_max_ms,
               q.keep_succeeded_ms, q.keep_failed_ms, coalesce(q.max_in_flight, 0), q.is_paused, e.failing_since
        from pawl.endpoint e join pawl.queue q on q.name = pawl.endpoint_queue(e.name)
        where (p_name is null or e.name = p_name) and (p_after is null or e.name > p_after)
        order by e.name limit p_max;
end $$;

-- What a delivery needs: for those who deliver. One row for each secret that signs now, the newest first.
create function pawl.endpoint_credentials(p_name text)
returns table (revision int8, headers text, secret text, until timestamptz, created_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
        select e.revision, e.headers, s.secret, s.until, e.created_at
        from pawl.endpoint e
        left join pawl.endpoint_secret s on s.name = e.name and (s.until <= v_now) is not true
        where e.name = p_name order by s.ordinal desc;
end $$;

-- What readers see of endpoints: of a URL no more than its host, for the rest may be a secret.
create view pawl.endpoints as
    select e.name, pawl.endpoint_queue(e.name) as queue, substring(e.url from '^[a-z]+://[^/?#]+') as origin, e.topics, e.timeout_ms,
           e.rate_per_minute, ('{none,key}'::text[])[e.ordering] as ordering,
           ('{plain,cloudevents-binary,cloudevents-structured}'::text[])[e.format] as format, e.is_enabled, e.switched_at,
           e.switched_by, e.reason, e.revision, e.created_at, e.changed_at, e.failing_since
    from pawl.endpoint e;
