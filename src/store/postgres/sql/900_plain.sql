-- SPDX-License-Identifier: Apache-2.0
-- What plain PostgreSQL can add, and a sharded engine may refuse: room for heap-only updates, early vacuums, one plan per
-- statement, and a ledger that refuses to be changed. Optional; on by default.

-- A claim and a renewal each need room beside the row; a row is at most as often updated as that before it goes.
alter table pawl.job set (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
                          autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
alter table pawl.hold set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
                           autovacuum_vacuum_cost_delay = 0);
alter table pawl.attempt set (autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_freeze_min_age = 0);
-- Ids have little in common: to look for it as closely as PostgreSQL does by itself would be a tenth of the price of a settle.
do $$
begin
    if current_setting('server_version_num')::int4 >= 140000 then
        execute 'alter table pawl.attempt alter column others set compression lz4';
    end if;
exception when feature_not_supported then
    null; -- this server was built without it
end $$;
alter table pawl.mark set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table pawl.sweep set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table pawl.queue set (fillfactor = 50);
-- Every call updates the row of its domain, and mostly one interval.
alter table pawl.worklease set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
alter table pawl.worklease_terminal set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- LIMIT with a parameter is planned anew at each call otherwise, and a plan made for an empty table would not be any other.
alter function pawl.enqueue_batch set plan_cache_mode = force_generic_plan;
alter function pawl.claim_lines set plan_cache_mode = force_generic_plan;
alter function pawl.claim_few set plan_cache_mode = force_generic_plan;
alter function pawl.renew_batch set plan_cache_mode = force_generic_plan;
alter function pawl.succeed_all set plan_cache_mode = force_generic_plan;
alter function pawl.settle_batch set plan_cache_mode = force_generic_plan;
alter function pawl.release_batch set plan_cache_mode = force_generic_plan;
alter function pawl.reap_lines set plan_cache_mode = force_generic_plan;
alter function pawl.prune set plan_cache_mode = force_generic_plan;
alter function pawl.cancel_batch set plan_cache_mode = force_generic_plan;
alter function pawl.redrive_batch set plan_cache_mode = force_generic_plan;
alter function pawl.discard_batch set plan_cache_mode = force_generic_plan;
alter function pawl.worklease_try_acquire set plan_cache_mode = force_generic_plan;
alter function pawl.worklease_succeed set plan_cache_mode = force_generic_plan;
alter function pawl.worklease_fail set plan_cache_mode = force_generic_plan;
alter function pawl.worklease_renew set plan_cache_mode = force_generic_plan;
-- One domain, or those after a name: no plan is good for both.
alter function pawl.list_workleases set plan_cache_mode = force_custom_plan;

-- OL-APPEND-ONLY: nobody changes the ledger, not even its owner by mistake; only pawl.prune_jobs() may delete from it.
create function pawl.refuse_change() returns trigger
language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('pawl.is_pruning', true) = 'on' then
        return null;
    end if;
    raise exception 'the ledger pawl.attempt is append-only: % is refused', tg_op
        using errcode = 'P7006', hint = 'Old histories go by pawl.prune(), as the retention of their queue says.';
end $$;
revoke all on function pawl.refuse_change() from public;
create trigger attempt_is_append_only before update or delete or truncate on pawl.attempt
    for each statement execute function pawl.refuse_change();
