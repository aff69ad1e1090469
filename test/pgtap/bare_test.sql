-- SPDX-License-Identifier: Apache-2.0
-- Without the step for plain PostgreSQL: no trigger, no settings of tables, no fixed plans; everything else as ever.
select no_plan();
select is((select count(*) from pg_trigger where tgrelid = 'pawl.attempt'::regclass), 0::int8, 'no trigger on the ledger');
select is((select reloptions from pg_class where oid = 'pawl.job'::regclass), null, 'no settings of the table');
select is((select count(*) from pg_proc where pronamespace = 'pawl'::regnamespace and array_to_string(proconfig, ',') ~ 'force_generic_plan'), 0::int8, 'no plans that are fixed');
select is((select version from pawl.hello()), (select max(left(name, 3)::int4) from pawl.migration), 'the schema says that it is complete');
create role bare_runtime;
create role bare_reader;
select pawl.grant_runtime('bare_runtime'), pawl.grant_reader('bare_reader');
create table held as select pawl.enqueue('q', 'x') id;
grant select on held to bare_runtime;
set role bare_runtime;
select lives_ok($q$do $x$ declare c record; begin
    select * into c from pawl.claim_outbox_batch(1, 'w1', 30, 'q');
    perform pawl.renew_outbox_lease(c.outbox_id, c.lease_token, 'w1');
    perform pawl.complete_outbox_attempt(c.outbox_id, c.lease_token, 'w1', 'DISPATCHED'); end $x$ $q$, 'a life of a job');
select throws_ok('delete from pawl.attempt', '42501', null, 'OL-APPEND-ONLY: the runtime role may not delete');
select throws_ok('update pawl.attempt set outcome = 1', '42501', null, 'OL-APPEND-ONLY: nor update');
select throws_ok('truncate pawl.attempt', '42501', null, 'OL-APPEND-ONLY: nor truncate');
set role bare_reader;
select throws_ok('delete from pawl.attempt', '42501', null, 'OL-APPEND-ONLY: the reader may not delete');
reset role;
select is(pawl_test.ledger((select id from held)), '1 DISPATCHED none', 'the row is there');
select pawl_test.age('8 days');
select is(pawl.prune(0, 10), 1, 'prune works without the trigger');
drop owned by bare_runtime, bare_reader;
drop role bare_runtime, bare_reader;
select * from finish();
