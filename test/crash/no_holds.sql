-- SPDX-License-Identifier: Apache-2.0
-- Breaks the store on purpose: a claim does not ask who holds an ordering key.
do $$
declare
    v_text text;
begin
    select pg_get_functiondef(p.oid) into v_text from pg_proc p
    where p.pronamespace = 'pawl'::regnamespace and p.proname = 'pick_keyed';
    v_text := replace(v_text, 'c.ordering_key is null or c.holder = c.id or c.is_first', 'true');
    v_text := replace(v_text, 'bool_or(c.holder = c.id or c.is_first)', 'true');
    v_text := replace(v_text, 'if v_behind is null then', 'if true then');
    execute v_text;
end $$;
