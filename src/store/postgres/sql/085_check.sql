-- SPDX-License-Identifier: Apache-2.0
-- What callers may say, and how they are told that they may not: SQLSTATE P7001, with the field, its value and the bound.

create function pawl.fail(p_field text, p_value text, p_allowed text) returns void
language plpgsql as $$
begin
    raise exception '% is %; it must be %', p_field, coalesce(left(p_value, 100), 'missing (NULL)'), p_allowed
        using errcode = 'P7001';
end $$;

create function pawl.check_given(p_field text, p_value text) returns void
language plpgsql as $$
begin
    if p_value is null then
        perform pawl.fail(p_field, null, 'given');
    end if;
end $$;

-- Names: 1 to 128 bytes of printable ASCII without blanks.
create function pawl.check_name(p_field text, p_value text) returns void
language plpgsql as $$
begin
    if p_value is null or octet_length(p_value) > 128 or p_value !~ '^[!-~]+$' then
        perform pawl.fail(p_field, '"' || left(regexp_replace(p_value, '[^!-~]', '?', 'g'), 40) || '"',
                          '1 to 128 bytes of printable ASCII without blanks');
    end if;
end $$;

create function pawl.check_number(p_field text, p_value int8, p_min int8, p_max int8) returns void
language plpgsql as $$
begin
    if p_value is null or p_value < p_min or p_value > p_max then
        perform pawl.fail(p_field, p_value::text, format('from %s to %s', p_min, p_max));
    end if;
end $$;

create function pawl.check_bytes(p_field text, p_length int8, p_min int8, p_max int8) returns void
language plpgsql as $$
begin
    if p_length < p_min or p_length > p_max then
        perform pawl.fail(p_field, p_length || ' bytes long', format('from %s to %s bytes long', p_min, p_max));
    end if;
end $$;

-- A text of so many bytes without control characters; p_is_long allows tab and newline. NULL is no text. (Backslashes stand in
-- E'' strings throughout: without, they would mean something else where a session turns standard_conforming_strings off.)
create function pawl.check_text(p_field text, p_value text, p_min int8, p_max int8, p_is_long boolean default false)
returns void
language plpgsql as $$
begin
    perform pawl.check_bytes(p_field, octet_length(p_value), p_min, p_max);
    if (case when p_is_long then translate(p_value, E'\t\n', '') else p_value end) ~ E'[\\x01-\\x1f\\x7f-\\x9f]' then
        perform pawl.fail(p_field, 'a text with control characters',
                          'without them' || case when p_is_long then ', except tab and newline' else '' end);
    end if;
end $$;

-- ---- batches

-- What the functions that take arrays ask first, so that a wrong argument is refused by its name and its place in the array:
-- what the server would say later names a column, and quotes the row with its payload. Each has a test of its own that costs
-- next to nothing, and calls one of these only where that has failed, to find out what it was.

create function pawl.check_count(p_field text, p_count int8, p_wanted int8) returns void
language plpgsql as $$
begin
    if p_count is distinct from p_wanted then
        perform pawl.fail(p_field, p_count || ' items long', format('as long as the first array: %s', p_wanted));
    end if;
end $$;

-- What is wrong with a call of enqueue_batch(). With several shards, the job's key (the ordering key, else
-- the dedupe key) must be of the shard, too: it is unique there.
create function pawl.check_enqueue(
    p_shard int4, p_queues text[], p_ids uuid[], p_payloads bytea[], p_priorities int2[], p_delays_ms int8[],
    p_starts_within_ms int8[], p_max_retries int4[], p_timeouts_ms int8[], p_backoff_bases_ms int8[],
    p_backoff_maxes_ms int8[], p_dedupe_keys text[], p_ordering_keys text[]
) returns void
language plpgsql as $$
declare
    c_duration_max constant int8 := 315360000000; -- ten years
    v_count int4 := cardinality(p_queues);
    v_at text;
begin
    perform pawl.check_number('cardinality(p_queues)', v_count, 0, 10000);
    perform pawl.check_count('p_ids', cardinality(p_ids), v_count);
    perform pawl.check_count('p_payloads', cardinality(p_payloads), v_count);
    perform pawl.check_count('p_priorities', cardinality(coalesce(p_priorities, array_fill(5::int2, array[v_count]))), v_count);
    perform pawl.check_count('p_dedupe_keys', cardinality(coalesce(p_dedupe_keys, array_fill('k'::text, array[v_count]))),
                             v_count);
    perform pawl.check_count('p_ordering_keys', cardinality(coalesce(p_ordering_keys, array_fill('k'::text, array[v_count]))),
                             v_count);
    for i in 1 .. v_count loop
        v_at := '[' || i || ']';
        perform pawl.check_name('p_queues' || v_at, p_queues[i]);
        perform pawl.check_id('p_ids' || v_at, p_ids[i]);
        perform pawl.check_given('p_payloads' || v_at, octet_length(p_payloads[i])::text);
        perform pawl.check_number('p_priorities' || v_at, coalesce(p_priorities[i], 5), 0, 9);
        perform pawl.check_number('p_delays_ms' || v_at, coalesce(p_delays_ms[i], 0), 0, c_duration_max);
        perform pawl.check_number('p_starts_within_ms' || v_at, coalesce(p_starts_within_ms[i], 1), 1, c_duration_max);
        if p_starts_within_ms[i] <= coalesce(p_delays_ms[i], 0) then
            perform pawl.fail('p_starts_within_ms' || v_at, p_starts_within_ms[i]::text,
                              'above p_delays_ms' || v_at || ', or the job could never start');
        end if;
        perform pawl.check_number('p_max_retries' || v_at, coalesce(p_max_retries[i], 0), 0, 10000);
        perform pawl.check_number('p_timeouts_ms' || v_at, coalesce(p_timeouts_ms[i], 1), 1, c_duration_max);
        perform pawl.check_number('p_backoff_bases_ms' || v_at, coalesce(p_backoff_bases_ms[i], 1), 1, c_duration_max);
        perform pawl.check_number('p_backoff_maxes_ms' || v_at, coalesce(p_backoff_maxes_ms[i], 1), 1, c_duration_max);
        perform pawl.check_text('p_dedupe_keys' || v_at, p_dedupe_keys[i], 1, 255);
        perform pawl.check_text('p_ordering_keys' || v_at, p_ordering_keys[i], 1, 255);
        if coalesce(p_ordering_keys[i], p_dedupe_keys[i]) is not null
           and pawl.shard_hash(p_queues[i], coalesce(p_ordering_keys[i], p_dedupe_keys[i]), null) % pawl.shards() <> p_shard then
            perform pawl.fail('p_shard', p_shard::text, 'that of '
                              || case when p_ordering_keys[i] is null then 'p_dedupe_keys' else 'p_ordering_keys' end || v_at
                              || ': make the id with pawl.new_id(queue, dedupe_key, ordering_key)');
        end if;
    end loop;
end $$;

-- Whether the keys and the start-by deadlines of a call of enqueue_batch() are what they may be.
create function pawl.are_rest_right(p_shard int4, p_queues text[], p_delays_ms int8[], p_starts_within_ms int8[],
                                    p_dedupe_keys text[], p_ordering_keys text[]) returns boolean
language plpgsql as $$
declare
    v_shards int4 := pawl.shards();
begin
    return not exists (
        select from unnest(p_queues, p_delays_ms, p_starts_within_ms, p_dedupe_keys, p_ordering_keys) u(q, d, s, k, o)
        where s <= coalesce(d, 0) or s > 315360000000 or octet_length(k) not between 1 and 255
           or k ~ E'[\\x01-\\x1f\\x7f-\\x9f]'
           or octet_length(o) not between 1 and 255 or o ~ E'[\\x01-\\x1f\\x7f-\\x9f]'
           or case when v_shards > 1 and coalesce(o, k) is not null
                   then pawl.shard_hash(q, coalesce(o, k), null) % v_shards <> p_shard end);
end $$;

-- ---- headers

-- One header of p_field. A name that is good is told, a value never: it may be a secret, and so may what stands in place of a name.
create function pawl.check_header(p_field text, p_place int8, p_name text, p_value text) returns void
language plpgsql as $$
declare
    v_field text := 'the value of "' || p_name || '" in ' || p_field;
begin
    if p_name is null or p_name !~ '^[-!#$%&''*+.^_`|~0-9A-Za-z]{1,128}$' then
        perform pawl.fail('the name of header ' || p_place || ' in ' || p_field, 'bad',
                          '1 to 128 letters, digits or any of !#$%&''*+-.^_`|~, and followed by a colon and a blank');
    end if;
    if octet_length(p_value) > 4096 then
        perform pawl.fail(v_field, octet_length(p_value) || ' bytes long', 'at most 4096 bytes long');
    end if;
    if p_value ~ E'[\\x01-\\x1f\\x7f-\\x9f]' then
        perform pawl.fail(v_field, 'a text with control characters', 'without them');
    end if;
    if p_value <> btrim(p_value, ' ') then
        perform pawl.fail(v_field, 'a text with a blank at its beginning or end', 'without it');
    end if;
end $$;

-- How many there are and how long, and that each is there once.
create function pawl.check_header_names(p_field text, p_names text[], p_length int8) returns void
language plpgsql as $$
declare
    v_name text;
begin
    if cardinality(p_names) > 64 then
        perform pawl.fail(p_field, cardinality(p_names) || ' headers', 'at most 64');
    end if;
    if p_length > 16384 then
        perform pawl.fail(p_field, p_length || ' bytes long, with 3 for each header', 'at most 16384');
    end if;
    select min(n) into v_name from unnest(p_names) n group by lower(n collate "C") having count(*) > 1 limit 1;
    if found then
        perform pawl.fail('"' || v_name || '" in ' || p_field, 'there twice',
                          'there once; the case of letters does not count');
    end if;
end $$;

-- The headers of a call of enqueue_batch(): of each job one text, "name: value" and a newline for each.
create function pawl.check_headers(p_headers text[], p_count int4) returns void
language plpgsql as $$
declare
    v_field text;
    v_lines text[];
begin
    perform pawl.check_count('p_headers', cardinality(p_headers), p_count);
    -- What is short, of printable ASCII and different from each other needs no further look.
    if not exists (
        select from unnest(p_headers) h
        where h is not null
          and (octet_length(h) <= 1024 and right(h, 1) = E'\n'
               and (select count(*) <= 64 and count(*) = count(distinct lower(split_part(l, ':', 1) collate "C"))
                           and bool_and(strpos(l, ':') <= 129
                                        and l collate "C" ~ '^[-!#$%&''*+.^_`|~0-9A-Za-z]+: ([!-~]([ -~]*[!-~])?)?$')
                    from unnest(string_to_array(left(h, -1), E'\n')) l)) is not true) then
        return;
    end if;
    for i in 1 .. p_count loop
        continue when p_headers[i] is null;
        v_field := 'p_headers[' || i || ']';
        perform pawl.check_bytes(v_field, octet_length(p_headers[i]), 1, 16384);
        if right(p_headers[i], 1) <> E'\n' then
            perform pawl.fail(v_field, 'not ended by a newline', 'a name, a colon, a blank, a value and a newline, for each');
        end if;
        v_lines := string_to_array(left(p_headers[i], -1), E'\n');
        perform pawl.check_header(v_field, l.o, substring(l.l from '^([^:]*): '), substr(l.l, strpos(l.l, ': ') + 2))
        from unnest(v_lines) with ordinality l(l, o);
        perform pawl.check_header_names(v_field, array(select split_part(l, ':', 1) from unnest(v_lines) l), 0);
    end loop;
end $$;

-- Headers as an object of strings, as that text; NULL where there are none.
create function pawl.headers_text(p_field text, p_headers jsonb) returns text
language plpgsql as $$
declare
    v_text text;
begin
    if jsonb_typeof(p_headers) <> 'object' then
        perform pawl.fail(p_field, 'of type ' || jsonb_typeof(p_headers), 'an object of strings');
    end if;
    if exists (select from jsonb_each(p_headers) h where jsonb_typeof(h.value) <> 'string') then
        perform pawl.fail(p_field, 'an object of something else', 'an object of strings');
    end if;
    -- Each by itself before they are one text: a newline in a value must not become another header.
    perform pawl.check_header(p_field, h.o, h.key, h.value)
    from jsonb_each_text(p_headers) with ordinality h(key, value, o);
    select string_agg(h.key || ': ' || h.value || E'\n', '' order by h.o) into v_text
    from jsonb_each_text(p_headers) with ordinality h(key, value, o);
    perform pawl.check_header_names(p_field, array(select jsonb_object_keys(p_headers)), octet_length(v_text));
    return v_text;
end $$;

-- That text as an object of strings.
create function pawl.headers_json(p_headers text) returns jsonb
language plpgsql immutable as $$
begin
    return (select jsonb_object_agg(split_part(l, ':', 1), substr(l, strpos(l, ': ') + 2))
            from unnest(string_to_array(left(p_headers, -1), E'\n')) l);
end $$;

-- ---- calls about leases

-- What is wrong with a call of claim_lines().
create function pawl.check_claim(p_shards int4[], p_worker text, p_queues text[], p_maxes int4[], p_leases_ms int8[],
                                 p_jobs_max int4, p_bytes_max int8, p_seed bytea) returns void
language plpgsql as $$
declare
    v_count int4 := cardinality(p_queues);
begin
    perform pawl.check_given('p_shards', p_shards::text);
    perform pawl.check_name('p_worker', p_worker);
    perform pawl.check_number('cardinality(p_queues)', v_count, 1, 10000);
    perform pawl.check_count('p_maxes', cardinality(p_maxes), v_count);
    perform pawl.check_count('p_leases_ms', cardinality(coalesce(p_leases_ms, array_fill(1::int8, array[v_count]))), v_count);
    for i in 1 .. v_count loop
        perform pawl.check_number('p_maxes[' || i || ']', p_maxes[i], 1, 2147483647);
        perform pawl.check_number('p_leases_ms[' || i || ']', coalesce(p_leases_ms[i], 100), 100, 315360000000);
    end loop;
    perform pawl.check_number('p_jobs_max', p_jobs_max, 1, 10000);
    perform pawl.check_number('p_bytes_max', p_bytes_max, 1, 9223372036854775807);
    perform pawl.check_number('octet_length(p_seed)', octet_length(p_seed), 16, 1024); -- random, or tokens could be guessed
end $$;

-- What is wrong with a call about leases: of renew_batch(), settle_batch() or release_batch(). Whether an id, a token, a version
-- or a worker is right is for the verdicts to say.
create function pawl.check_leases(p_ids uuid[], p_tokens uuid[], p_versions int4[], p_leases_ms int8[] default null)
returns void
language plpgsql as $$
declare
    v_count int4 := cardinality(p_ids);
begin
    perform pawl.check_number('cardinality(p_ids)', v_count, 0, 10000);
    perform pawl.check_count('p_tokens', cardinality(p_tokens), v_count);
    perform pawl.check_count('p_versions', cardinality(p_versions), v_count);
    perform pawl.check_count('p_leases_ms', cardinality(coalesce(p_leases_ms, array_fill(1::int8, array[v_count]))), v_count);
    for i in 1 .. v_count loop
        perform pawl.check_number('p_leases_ms[' || i || ']', coalesce(p_leases_ms[i], 100), 100, 315360000000);
    end loop;
end $$;

-- Whether the delays of snoozes and the texts of a call of settle_batch() are what they may be.
create function pawl.are_ends_right(p_actions int2[], p_delays_ms int8[], p_error_codes text[], p_error_texts text[])
returns boolean
language plpgsql as $$
begin
    return not exists (
        select from unnest(p_actions, p_delays_ms, p_error_codes, p_error_texts) u(a, d, c, t)
        where (a = 3 and d is null) or octet_length(c) > 64 or octet_length(t) > 1024
           or c ~ E'[\\x01-\\x1f\\x7f-\\x9f]' or t ~ E'[\\x01-\\x08\\x0b-\\x1f\\x7f-\\x9f]');
end $$;

-- What is wrong with the rest of a call of settle_batch().
create function pawl.check_settle(p_actions int2[], p_delays_ms int8[], p_error_codes text[], p_error_texts text[],
                                  p_count int4, p_seed bytea, p_wire_sends int4[]) returns void
language plpgsql as $$
declare
    v_at text;
begin
    perform pawl.check_count('p_actions', cardinality(p_actions), p_count);
    perform pawl.check_count('p_wire_sends', coalesce(cardinality(p_wire_sends), p_count), p_count);
    for i in 1 .. p_count loop
        v_at := '[' || i || ']';
        perform pawl.check_number('p_actions' || v_at, p_actions[i], 0, 3);
        if p_actions[i] = 3 then
            perform pawl.check_given('p_delays_ms' || v_at, p_delays_ms[i]::text);
        end if;
        perform pawl.check_number('p_delays_ms' || v_at, coalesce(p_delays_ms[i], 0), 0, 315360000000);
        perform pawl.check_text('p_error_codes' || v_at, p_error_codes[i], 0, 64);
        perform pawl.check_text('p_error_texts' || v_at, p_error_texts[i], 0, 1024, true);
        perform pawl.check_number('p_wire_sends' || v_at, coalesce(p_wire_sends[i], 0), 0, 1000000);
    end loop;
    perform pawl.check_given('p_seed', octet_length(p_seed)::text);
end $$;

-- ---- ids and shards

-- The id of zeros is no job's: to programs in C it means that none is given.
create function pawl.check_id(p_field text, p_id uuid) returns void
language plpgsql as $$
begin
    perform pawl.check_given(p_field, p_id::text);
    if p_id = '00000000-0000-0000-0000-000000000000' then
        perform pawl.fail(p_field, p_id::text, 'another id: this one means none');
    end if;
end $$;

-- Fixes the number of shards, once.
create function pawl.install(p_shards int4) returns void
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_shards int4;
begin
    perform pawl.check_number('p_shards', p_shards, 1, 4096);
    insert into pawl.config (shards) values (p_shards) on conflict do nothing;
    select c.shards into v_shards from pawl.config c;
    if v_shards <> p_shards then
        perform pawl.fail('p_shards', p_shards::text, v_shards || ', as it was installed');
    end if;
end $$;

-- What a program must know when it connects: the number of the last step that is needed, and what was fixed at installation.
create function pawl.hello(out version int4, out shards int4, out is_notifying boolean)
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp as $$
begin
    select (select max(left(m.name, 3)::int4) from pawl.migration m where m.name < '900'), c.shards, c.is_notifying
    into version, shards, is_notifying from pawl.config c;
end $$;

create function pawl.shards() returns int4
language plpgsql stable security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_shards int4;
begin
    select c.shards into v_shards from pawl.config c;
    if not found then
        raise exception 'Pawl is not installed completely: pawl.install() has not been called' using errcode = 'P7001';
    end if;
    return v_shards;
end $$;

-- The hash that spreads jobs over shards, as src/core/id.c has it: FNV-1a over 32 bits, then two rounds of multiply and shift.
-- Of the queue's bytes, a NUL, and the bytes of the ordering key, else of the dedupe key, or where there is neither the id with
-- its twelve shard bits at 0. It is part of the data: it never changes. No product reaches 2^63.
create function pawl.shard_hash(p_queue text, p_key text, p_id uuid) returns int8
language plpgsql immutable as $$
declare
    v_bytes bytea := convert_to(p_queue, 'UTF8') || E'\\x00';
    v_bare bytea := uuid_send(p_id);
    v_hash int8 := 2166136261;
begin
    if p_key is not null then
        v_bytes := v_bytes || convert_to(p_key, 'UTF8');
    else
        v_bytes := v_bytes || set_byte(set_byte(v_bare, 6, get_byte(v_bare, 6) & 240), 7, 0);
    end if;
    for i in 0 .. length(v_bytes) - 1 loop
        v_hash := ((v_hash # get_byte(v_bytes, i)) * 16777619) & 4294967295;
    end loop;
    for i in 1 .. 2 loop
        v_hash := ((v_hash # (v_hash >> 16)) * 73244475) & 4294967295;
    end loop;
    return v_hash # (v_hash >> 16);
end $$;

-- The shard that an id's bits name, of p_shards.
create function pawl.id_shard(p_id uuid, p_shards int4) returns int4
language sql immutable parallel safe as $$
    select ((get_byte(uuid_send(p_id), 6) & 15) * 256 + get_byte(uuid_send(p_id), 7)) % p_shards
$$;

-- Whether a call names the shard that its ids name: a job elsewhere would be found by nobody.
create function pawl.check_shard(p_shard int4, p_shards int4, p_ids uuid[]) returns void
language plpgsql as $$
declare
    v_id uuid;
begin
    perform pawl.check_number('p_shard', p_shard, 0, p_shards - 1);
    select i into v_id from unnest(p_ids) i where pawl.id_shard(i, p_shards) <> p_shard limit 1;
    if found then
        perform pawl.fail('p_ids', v_id::text, 'of shard ' || p_shard || ', and names shard ' || pawl.id_shard(v_id, p_shards)
                          || ': make it with pawl.new_id()');
    end if;
end $$;

-- A new id of version 7 whose shard bits are right for the queue and the keys.
create function pawl.new_id(p_queue text, p_dedupe_key text default null, p_ordering_key text default null) returns uuid
language plpgsql security definer set search_path = pg_catalog, pawl, pg_temp as $$
declare
    v_bytes bytea := uuid_send(gen_random_uuid());
    v_now int8 := pawl.micros(clock_timestamp());
    v_ms int8 := v_now / 1000;
    v_micros int8 := v_now % 1000;
    v_shard int4;
begin
    perform pawl.check_name('p_queue', p_queue);
    perform pawl.check_text('p_dedupe_key', p_dedupe_key, 1, 255);
    perform pawl.check_text('p_ordering_key', p_ordering_key, 0, 255);
    for i in 0 .. 5 loop
        v_bytes := set_byte(v_bytes, i, ((v_ms >> (8 * (5 - i))) & 255)::int4);
    end loop;
    v_bytes := set_byte(set_byte(v_bytes, 6, 112), 7, 0);
    -- The counter's sixteen bits follow the variant: here the microseconds, so that ids of one session rise.
    v_bytes := set_byte(v_bytes, 8, (128 | (v_micros >> 4))::int4);
    v_bytes := set_byte(v_bytes, 9, (((v_micros & 15) << 4) | (get_byte(v_bytes, 9) & 15))::int4);
    v_shard := pawl.shard_hash(p_queue, coalesce(nullif(p_ordering_key, ''), p_dedupe_key), encode(v_bytes, 'hex')::uuid)
               % pawl.shards();
    v_bytes := set_byte(set_byte(v_bytes, 6, 112 | (v_shard >> 8)), 7, v_shard & 255);
    return encode(v_bytes, 'hex')::uuid;
end $$;
