-- SPDX-License-Identifier: Apache-2.0
-- Takes over an outbox of the old layout (OL-ADOPT): a table of pending rows from which a claim deletes, and a table of attempts
-- in which it leaves a DISPATCHING row. Here: what is there, and what will become of it. The next file writes.
--
-- A mapping is an object of texts, {"pending.table": "...", ...}: see docs/adopting.md for its keys. Names of tables and columns
-- are quoted wherever they become SQL. SQLSTATEs: P7001 the mapping is wrong, P7008 a right is missing.

-- What was taken over, and under which id; kept when the history is pruned, so that no second run takes it over again.
create table pawl.adopted (
    source text not null, -- the pending table
    old_id text not null,
    id uuid not null,
    adopted_at timestamptz not null,
    constraint adopted_pkey primary key (source, old_id)
);

-- Tells whoever waits how far it is.
create function pawl.adopt_step(p_text text) returns void
language plpgsql as $$
begin
    raise notice '%', p_text using errcode = 'P7100';
end $$;

-- The id under which an old one is adopted. A UUID stays what it is, but for its shard bits where they name the wrong shard;
-- anything else becomes a UUID of version 8 made of the first bits of a SHA-256. The same always becomes the same.
create function pawl.adopt_id(p_source text, p_old_id text, p_queue text, p_shards int4) returns uuid
language plpgsql immutable as $$
declare
    v_bytes bytea;
    v_shard int8;
begin
    if p_old_id ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
        v_bytes := uuid_send(p_old_id::uuid);
    else
        v_bytes := substr(sha256(convert_to(p_source || E'\n' || p_old_id, 'UTF8')), 1, 16);
        v_bytes := set_byte(v_bytes, 6, 128 | (get_byte(v_bytes, 6) & 15));
        v_bytes := set_byte(v_bytes, 8, 128 | (get_byte(v_bytes, 8) & 63));
    end if;
    if p_shards > 1 then
        v_shard := pawl.shard_hash(p_queue, null, encode(v_bytes, 'hex')::uuid) % p_shards;
        if pawl.id_shard(encode(v_bytes, 'hex')::uuid, p_shards) <> v_shard then
            v_bytes := set_byte(v_bytes, 6, (get_byte(v_bytes, 6) & 240) | (v_shard >> 8)::int4);
            v_bytes := set_byte(v_bytes, 7, (v_shard & 255)::int4);
        end if;
    end if;
    return encode(v_bytes, 'hex')::uuid;
end $$;

-- ---- the mapping

create function pawl.adopt_refuse(p_text text) returns void
language plpgsql as $$
begin
    raise exception '%', p_text using errcode = 'P7008';
end $$;

create function pawl.adopt_check(p_mapping jsonb) returns void
language plpgsql as $$
declare
    v_key text;
begin
    foreach v_key in array '{queue, stale_after_ms, pending.schema, pending.table, pending.id, pending.payload,
                             attempts.schema, attempts.table, attempts.id, attempts.number, attempts.state,
                             attempts.at}'::text[]
    loop
        perform pawl.check_given(v_key, p_mapping ->> v_key);
    end loop;
    perform pawl.check_name('queue', p_mapping ->> 'queue');
    perform pawl.check_number('stale_after_ms', (p_mapping ->> 'stale_after_ms')::int8, 1, 315360000000);
    if coalesce(p_mapping ->> 'failed_without_payload', 'refuse') not in ('refuse', 'discard') then
        perform pawl.fail('failed_without_payload', '"' || left(p_mapping ->> 'failed_without_payload', 40) || '"',
                          'refuse or discard');
    end if;
    if p_mapping ? 'claimed_payload.table' then
        perform pawl.check_given('claimed_payload.schema', p_mapping ->> 'claimed_payload.schema');
        perform pawl.check_given('claimed_payload.key', p_mapping ->> 'claimed_payload.key');
    end if;
    if (p_mapping ->> 'pending.schema', p_mapping ->> 'pending.table')
       = (p_mapping ->> 'attempts.schema', p_mapping ->> 'attempts.table') then
        perform pawl.fail('attempts.table', format('%I', p_mapping ->> 'attempts.table'), 'another table than pending.table');
    end if;
end $$;

-- The table that the mapping names under p_part; NULL where there is none.
create function pawl.adopt_find(p_mapping jsonb, p_part text) returns oid
language sql stable as $$
    select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = p_mapping ->> (p_part || '.schema') and c.relname = p_mapping ->> (p_part || '.table')
$$;

-- The same, which must be there, be a table (or with p_is_view something like one), and be readable.
create function pawl.adopt_table(p_mapping jsonb, p_part text, p_is_view boolean) returns oid
language plpgsql as $$
declare
    v_name text := format('%I.%I', p_mapping ->> (p_part || '.schema'), p_mapping ->> (p_part || '.table'));
    v_table oid := pawl.adopt_find(p_mapping, p_part);
    v_kind "char";
    v_schema oid;
begin
    select c.relkind, c.relnamespace into v_kind, v_schema from pg_class c where c.oid = v_table;
    if not found or not (v_kind in ('r', 'p') or (p_is_view and v_kind in ('v', 'm', 'f')))
       or v_schema = 'pawl'::regnamespace or v_schema = 'pg_catalog'::regnamespace then
        perform pawl.fail(p_part || '.table', v_name, 'a table that is there, and not one of Pawl''s or the system''s');
    end if;
    if not has_schema_privilege(v_schema, 'usage') or not has_table_privilege(v_table, 'select') then
        perform pawl.adopt_refuse(format('the role %I may not read %s: grant usage on the schema and select on the table',
                                         current_user, v_name));
    end if;
    return v_table;
end $$;

-- What a column of the old tables gives, as SQL over the alias x: an id or text, an instant, bytes, or as it is ('any'). NULL
-- where the mapping does not name the column.
create function pawl.adopt_expr(p_mapping jsonb, p_key text, p_as text, p_table oid) returns text
language plpgsql as $$
declare
    v_column text := p_mapping ->> p_key;
    v_type oid;
begin
    if v_column is null then
        return case p_as when 'time' then 'null::timestamptz' when 'bytes' then 'null::bytea' else 'null::text' end;
    end if;
    select case when t.typtype = 'd' then t.typbasetype else t.oid end into v_type
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = p_table and a.attname = v_column and a.attnum > 0 and not a.attisdropped;
    if not found then
        perform pawl.fail(p_key, format('%I', left(v_column, 63)), 'a column of ' || p_table::regclass);
    end if;
    if p_as = 'time' and v_type <> all (array['timestamptz'::regtype, 'timestamp'::regtype]::oid[]) then
        perform pawl.fail(p_key, format('%I, of type %s', v_column, format_type(v_type, null)),
                          'of type timestamptz, or timestamp, which counts as UTC');
    end if;
    return format(case
        when p_as = 'time' and v_type = 'timestamp'::regtype then '(x.%I at time zone ''UTC'')'
        when p_as = 'bytes' and v_type <> 'bytea'::regtype then 'convert_to(x.%I::text, ''UTF8'')'
        when p_as = 'text' then 'x.%I::text'
        else 'x.%I' end, v_column);
end $$;

-- ---- the old tables

-- Whoever calls must be the owner of Pawl; the old tables are locked against every change, but for a dry run, which only looks.
create function pawl.adopt_lock(p_mapping jsonb, p_is_dry_run boolean, p_is_retiring boolean) returns void
language plpgsql as $$
declare
    v_part text;
    v_table oid;
    v_owner oid;
begin
    for v_part in values ('pending'), ('attempts') loop
        v_table := pawl.adopt_table(p_mapping, v_part, false);
        continue when p_is_dry_run;
        if not has_table_privilege(v_table, 'update,delete,truncate') then
            perform pawl.adopt_refuse(format('the role %I may not lock %s: grant update on it', current_user,
                                             v_table::regclass));
        end if;
        select c.relowner into v_owner from pg_class c where c.oid = v_table;
        if p_is_retiring and not pg_has_role(v_owner, 'usage') then
            perform pawl.adopt_refuse(format('the role %I may not rename %s: it belongs to %I', current_user,
                                             v_table::regclass, v_owner::regrole));
        end if;
        -- In one go where it will be renamed: a lock that is raised later may wait in a circle.
        execute format('lock table %s in %s mode', v_table::regclass,
                       case when p_is_retiring then 'access exclusive' else 'share row exclusive' end);
        if pawl.adopt_find(p_mapping, v_part) is distinct from v_table then
            raise exception 'PAWL_AGAIN' using errcode = '40001'; -- somebody has put another table in its place
        end if;
    end loop;
end $$;

create function pawl.adopt_check_owner() returns void
language plpgsql as $$
declare
    v_owner oid := (select c.relowner from pg_class c where c.oid = 'pawl.job'::regclass);
begin
    if not pg_has_role(v_owner, 'usage') then
        perform pawl.adopt_refuse(format('the role %I is not the owner of the schema pawl: call as %I', current_user,
                                         v_owner::regrole));
    end if;
end $$;

-- ---- what is there

-- Forgets what an earlier run of this transaction has gathered.
create function pawl.adopt_forget() returns void
language plpgsql as $$
declare
    v_name text;
begin
    for v_name in values ('adopt_attempt'), ('adopt_job'), ('adopt_payload'), ('adopt_plan') loop
        if to_regclass('pg_temp.' || v_name) is not null then
            execute 'drop table pg_temp.' || v_name;
        end if;
    end loop;
end $$;

-- All attempts of jobs that were not adopted before: who came how, numbered from 1 in their order. what: 0 DISPATCHED,
-- 1 RETRYABLE, 2 FAILED, 3 ZOMBIE_REQUEUE, 9 DISPATCHING, -1 something else. What comes after a DISPATCHED row is late, and is
-- numbered on its own. life: how often the job had failed before, of `lives`.
create function pawl.adopt_read_attempts(p_mapping jsonb, p_source text) returns void
language plpgsql as $$
declare
    v_table oid := pawl.adopt_find(p_mapping, 'attempts');
begin
    execute format($sql$
        create temp table adopt_attempt on commit drop as
        select l.old_id, l.what, l.at, l.ended_at, l.worker, l.error_code, l.error_text, l.is_late,
               row_number() over w as n, count(*) over (partition by l.old_id, l.is_late) as total,
               count(*) filter (where l.what = 2) over (w rows between unbounded preceding and 1 preceding) as life,
               count(*) filter (where l.what = 2) over (partition by l.old_id, l.is_late) as lives
        from (select s.*, coalesce(count(*) filter (where s.what = 0)
                          over (partition by s.old_id order by s.number, s.at, s.part, s.place
                                rows between unbounded preceding and 1 preceding), 0) > 0 as is_late
              from (select %1$s as old_id, %2$s as number, x.tableoid as part, x.ctid as place,
                           case %3$s when %9$L then 0 when %10$L then 1 when %11$L then 2 when %12$L then 3 when %13$L then 9
                                else -1 end::int2 as what,
                           coalesce(%4$s, %5$s) as at, coalesce(%5$s, %4$s) as ended_at, %6$s as worker,
                           %7$s as error_code, %8$s as error_text
                    from %14$s x
                    where not exists (select from pawl.adopted d where d.source = %15$L and d.old_id = %1$s)) s) l
        window w as (partition by l.old_id, l.is_late order by l.number, l.at, l.part, l.place)
        $sql$,
        pawl.adopt_expr(p_mapping, 'attempts.id', 'text', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.number', 'any', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.state', 'text', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.at', 'time', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.finished_at', 'time', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.worker', 'text', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.error_code', 'text', v_table),
        pawl.adopt_expr(p_mapping, 'attempts.error_text', 'text', v_table),
        coalesce(p_mapping ->> 'states.dispatched', 'DISPATCHED'), coalesce(p_mapping ->> 'states.retryable', 'RETRYABLE'),
        coalesce(p_mapping ->> 'states.failed', 'FAILED'),
        coalesce(p_mapping ->> 'states.zombie_requeue', 'ZOMBIE_REQUEUE'),
        coalesce(p_mapping ->> 'states.dispatching', 'DISPATCHING'), v_table::regclass, p_source);
    analyze pg_temp.adopt_attempt;
end $$;

-- An instant that Pawl cannot hold.
create function pawl.adopt_is_odd(p_at timestamptz) returns boolean
language sql immutable as $$
    select p_at is null or not isfinite(p_at) or p_at <= '1970-01-01 00:00:00+00'::timestamptz
$$;

-- All jobs that were not adopted before: their pending row, where they have one, and what their attempts come to.
create function pawl.adopt_read_jobs(p_mapping jsonb, p_source text) returns void
language plpgsql as $$
declare
    v_table oid := pawl.adopt_find(p_mapping, 'pending');
begin
    execute format($sql$
        create temp table adopt_job on commit drop as
        with p as (
            select %1$s as old_id, %2$s as payload, %3$s as due_at, %4$s as created_at,
                   row_number() over (order by %3$s nulls first, %4$s, %5$s) as ord,
                   count(*) over (partition by %5$s) as copies
            from %6$s x
            where not exists (select from pawl.adopted d where d.source = %7$L and d.old_id = %1$s)),
        a as (
            select t.old_id, max(t.what) filter (where not t.is_late and t.n = t.total) as last_what,
                   max(t.at) filter (where not t.is_late and t.n = t.total) as last_at, min(t.at) as first_at,
                   bool_or(t.what = 0) as is_done, bool_or(t.what < 0) as has_odd_state,
                   bool_or(pawl.adopt_is_odd(t.at) or pawl.adopt_is_odd(t.ended_at)) as has_odd_time,
                   bool_or(t.is_late and t.what = 9 and t.n = t.total) as is_taken_again,
                   count(*) filter (where not t.is_late and (t.what in (0, 1, 2, 3) or t.n = t.total)) as rows,
                   count(*) filter (where t.what = 1 and not t.is_late and t.life = t.lives) as retries,
                   count(*) filter (where t.what = 3 and not t.is_late and t.life = t.lives) as losses,
                   count(*) filter (where t.what = 1 and not t.is_late and t.life = t.lives - 1) as retries_before,
                   count(*) filter (where t.what = 3 and not t.is_late and t.life = t.lives - 1) as losses_before
            from pg_temp.adopt_attempt t group by t.old_id)
        select coalesce(p.old_id, a.old_id) as old_id, p.ord is not null as is_pending, p.payload, p.due_at, p.created_at, p.ord,
               p.copies, a.last_what, a.last_at, a.first_at, coalesce(a.is_done, false) as is_done, a.has_odd_state,
               a.has_odd_time, coalesce(a.is_taken_again, false) as is_taken_again, coalesce(a.rows, 0) as rows,
               coalesce(case when p.ord is null and a.last_what = 2 then a.retries_before else a.retries end, 0) as retries,
               coalesce(case when p.ord is null and a.last_what = 2 then a.losses_before else a.losses end, 0)
                   + (a.last_what is not distinct from 9)::int4 as losses
        from p full join a on a.old_id = p.old_id
        $sql$,
        pawl.adopt_expr(p_mapping, 'pending.id', 'text', v_table),
        pawl.adopt_expr(p_mapping, 'pending.payload', 'bytes', v_table),
        pawl.adopt_expr(p_mapping, 'pending.due_at', 'time', v_table),
        pawl.adopt_expr(p_mapping, 'pending.created_at', 'time', v_table),
        pawl.adopt_expr(p_mapping, 'pending.id', 'any', v_table), v_table::regclass, p_source);
    analyze pg_temp.adopt_job;
end $$;

-- The payloads of jobs that were claimed, and so have no pending row any more: in their newest attempt that has one, or in the
-- rows of another table that their newest attempt leads to.
create function pawl.adopt_read_payloads(p_mapping jsonb) returns void
language plpgsql as $$
declare
    v_attempts oid := pawl.adopt_find(p_mapping, 'attempts');
    v_table oid;
    v_sql text := 'select null::text as old_id, null::bytea as payload, 0::int8 as copies where false';
begin
    if p_mapping ? 'claimed_payload.table' then
        v_table := pawl.adopt_table(p_mapping, 'claimed_payload', true);
        v_sql := format($sql$
            select w.old_id, (array_agg(%1$s))[1] as payload, count(*) as copies
            from (select distinct on (1) %2$s as old_id, %3$s as way
                  from %4$s x join pg_temp.adopt_job j on j.old_id = %2$s and not j.is_pending and not j.is_done
                  where %3$s is not null
                  order by 1, %5$s desc, %6$s desc) w
            join %7$s x on %8$s = w.way group by w.old_id
            $sql$,
            pawl.adopt_expr(p_mapping, 'claimed_payload.payload', 'bytes', v_table),
            pawl.adopt_expr(p_mapping, 'attempts.id', 'text', v_attempts),
            pawl.adopt_expr(p_mapping, case when p_mapping ? 'claimed_payload.match' then 'claimed_payload.match'
                                            else 'attempts.id' end, 'text', v_attempts),
            v_attempts::regclass, pawl.adopt_expr(p_mapping, 'attempts.number', 'any', v_attempts),
            pawl.adopt_expr(p_mapping, 'attempts.at', 'time', v_attempts), v_table::regclass,
            pawl.adopt_expr(p_mapping, 'claimed_payload.key', 'text', v_table));
    elsif p_mapping ? 'claimed_payload.payload' then
        v_sql := format($sql$
            select distinct on (1) %1$s as old_id, %2$s as payload, 1::int8 as copies
            from %3$s x join pg_temp.adopt_job j on j.old_id = %1$s and not j.is_pending and not j.is_done
            where %2$s is not null
            order by 1, %4$s desc, %5$s desc
            $sql$,
            pawl.adopt_expr(p_mapping, 'attempts.id', 'text', v_attempts),
            pawl.adopt_expr(p_mapping, 'claimed_payload.payload', 'bytes', v_attempts), v_attempts::regclass,
            pawl.adopt_expr(p_mapping, 'attempts.number', 'any', v_attempts),
            pawl.adopt_expr(p_mapping, 'attempts.at', 'time', v_attempts));
    end if;
    execute 'create temp table adopt_payload on commit drop as ' || v_sql;
    analyze pg_temp.adopt_payload;
end $$;

-- ---- what will become of it

-- One row for each job: its class, its id in Pawl, and why it cannot be adopted, where it cannot (`problem`).
create function pawl.adopt_judge(p_mapping jsonb, p_source text, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_shards int4 := pawl.shards();
    v_queue text := p_mapping ->> 'queue';
    v_stale_after interval := pawl.ms((p_mapping ->> 'stale_after_ms')::int8);
    v_is_discarding boolean := coalesce(p_mapping ->> 'failed_without_payload', 'refuse') = 'discard';
    v_place text := case when p_mapping ? 'claimed_payload.table'
        then format('%I.%I', p_mapping ->> 'claimed_payload.schema', p_mapping ->> 'claimed_payload.table')
        else 'the attempts' end;
    v_payload_max int4 := (select c.payload_max from pawl.config c);
begin
    create temp table adopt_plan on commit drop as
    select k.*, pawl.id_shard(k.id, v_shards) as shard, count(*) over (partition by k.id) as twins, null::text as problem
    from (select j.old_id, j.is_pending, j.copies, j.last_what, j.is_done, j.is_taken_again, j.has_odd_state, j.has_odd_time,
                 j.rows, j.ord, pawl.adopt_id(p_source, j.old_id, v_queue, v_shards) as id,
                 least(j.retries, 10000)::int2 as retries, least(j.losses, 10000)::int2 as losses, j.last_at,
                 least(coalesce(j.created_at, j.first_at, j.due_at, p_now), j.first_at, p_now) as created_at,
                 j.created_at is not null and pawl.adopt_is_odd(j.created_at)
                     or j.due_at is not null and pawl.adopt_is_odd(j.due_at) as has_odd_pending_time,
                 coalesce(j.payload, w.payload) as payload, coalesce(w.copies, 0) as payload_copies,
                 case when j.is_pending and j.due_at > p_now then 'pending_later'
                      when j.is_pending then 'pending_due'
                      when j.is_done then 'dispatched'
                      when j.last_what = 9 and j.last_at + v_stale_after > p_now then 'dispatching_valid'
                      when j.last_what = 9 then 'dispatching_expired'
                      when j.last_what = 2 and w.payload is null and v_is_discarding then 'failed_without_payload'
                      when j.last_what = 2 then 'failed'
                      else 'retryable' end as class,
                 case when j.is_pending then coalesce(j.due_at, p_now)
                      when j.last_what = 9 and j.last_at + v_stale_after > p_now then j.last_at + v_stale_after
                      else p_now end as due_at
          from pg_temp.adopt_job j left join pg_temp.adopt_payload w on w.old_id = j.old_id and not j.is_pending) k;
    update pg_temp.adopt_plan k
    set problem = case
        when k.old_id is null then 'it has no id (NULL)'
        when k.copies > 1 then 'it stands in the pending table more than once'
        when octet_length(k.old_id) > 255 then 'its id is longer than 255 bytes'
        when k.has_odd_state then 'an attempt has a state that the mapping does not name'
        when k.has_odd_time or k.has_odd_pending_time then 'a time is missing, infinite or before 1970'
        when k.is_pending and k.is_done then 'it is pending although an attempt is DISPATCHED: delete one of the two'
        when k.is_taken_again then 'it was claimed again after it was DISPATCHED, and that is open'
        when k.payload is null and k.is_pending then 'its payload is NULL in the pending table'
        when k.payload_copies > 1 and k.class <> 'dispatched' then
            format('its payload stands in %s more than once', v_place)
        when k.payload is null and k.class not in ('dispatched', 'failed_without_payload') then
            case when p_mapping ? 'claimed_payload.payload' then format('its payload is not in %s', v_place)
                 else 'it was claimed, and the mapping does not say where its payload is (claimed_payload)' end
        when octet_length(k.payload) > v_payload_max then
            format('its payload is larger than %s bytes', v_payload_max)
        when k.id = '00000000-0000-0000-0000-000000000000' then 'its id is the UUID of zeros'
        when k.twins > 1 then 'another old id becomes the same id in Pawl'
        when exists (select from pawl.job e where e.shard = k.shard and e.id = k.id)
          or exists (select from pawl.attempt e where e.shard = k.shard and e.job_id = k.id) then
            'Pawl has, or had, a job of this id that was not adopted from here'
        end;
    analyze pg_temp.adopt_plan;
end $$;

-- The classes of jobs, the rows of the attempts, and what stands in the way: how many, and a few of the old ids.
create function pawl.adopt_tell(p_source text)
returns table (kind text, name text, becomes text, count int8, ids text[])
language plpgsql as $$
#variable_conflict use_column
begin
    return query
        select 'jobs', c.name, c.becomes, (select count(*) from pg_temp.adopt_plan k where k.class = c.name),
               array(select left(k.old_id, 100) from pg_temp.adopt_plan k where k.class = c.name order by k.old_id limit 5)
        from (values
            ('pending_due', 'Ready now'),
            ('pending_later', 'Ready, due when it was due'),
            ('dispatching_expired', 'Ready now, with a ZOMBIE_REQUEUE row'),
            ('dispatching_valid', 'Ready, due when the old lease ends, with a ZOMBIE_REQUEUE row'),
            ('retryable', 'Ready now: it was to be retried and was not pending'),
            ('failed', 'Failed'),
            ('failed_without_payload', 'Failed, discarded: it cannot be redriven'),
            ('dispatched', 'Succeeded')) c(name, becomes);
    return query
        select 'jobs', 'adopted_before', 'left alone', count(*), '{}'::text[] from pawl.adopted d where d.source = p_source;
    return query
        select 'rows', v.name, v.becomes, v.count, '{}'::text[]
        from (select count(*) filter (where not t.is_late and t.what between 0 and 3) outcomes,
                     count(*) filter (where t.what = 9 and not t.is_late and t.n = t.total) opened,
                     count(*) filter (where t.what = 9 and (t.is_late or t.n < t.total)) closed,
                     count(*) filter (where t.is_late and t.what <> 9) late
              from pg_temp.adopt_attempt t) r,
             lateral (values
                 ('outcomes', 'ledger rows, numbered anew', r.outcomes),
                 ('dispatching_open', 'ledger rows: ZOMBIE_REQUEUE', r.opened),
                 ('dispatching_closed', 'left out: no outcomes', r.closed),
                 ('late', 'left out: the job was DISPATCHED before', r.late)) v(name, becomes, count);
    return query
        select 'problems', k.problem, 'stops the run', count(*),
               (array_agg(left(k.old_id, 100) order by k.old_id))[1:1000]
        from pg_temp.adopt_plan k where k.problem is not null group by k.problem order by count(*) desc, k.problem;
end $$;
