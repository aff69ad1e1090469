-- SPDX-License-Identifier: Apache-2.0
-- For tests from outside: what all tables hold, and which there are, in one text; and everything as it was after the migration.
create schema pawl_test;

create function pawl_test.fingerprint() returns text language plpgsql as $$
declare
    v_table regclass;
    v_one text;
    v_all text := '';
begin
    for v_table in
        select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind = 'r' and n.nspname !~ '^(pg_|information_schema)' order by 1
    loop
        execute format('select string_agg(t::text, chr(10) order by t::text) from %s t', v_table) into v_one;
        v_all := concat(v_all, v_table, ': ', v_one, chr(10));
    end loop;
    return v_all;
end $$;

create function pawl_test.reset() returns void language plpgsql as $$
declare
    v_name text;
begin
    set local session_replication_role = replica; -- the ledger refuses to be emptied
    set local client_min_messages = warning;
    for v_name in select nspname from pg_namespace where nspname !~ '^(pg_|information_schema|pawl$|pawl_test$)' loop
        execute format('drop schema %I cascade', v_name);
    end loop;
    create schema public;
    grant usage on schema public to public;
    truncate pawl.job, pawl.attempt, pawl.dead_letter, pawl.queue, pawl.adopted, pawl.mark, pawl.sweep, pawl.worker, pawl.endpoint,
        pawl.endpoint_topic, pawl.endpoint_secret, pawl.once;
    update pawl.config set payload_max = default;
end $$;
