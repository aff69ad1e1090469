-- SPDX-License-Identifier: Apache-2.0
-- Each part of a lease guards on its own: RES-3, FR-002, RULE-020-003. Every verb, with one part wrong at a time.
select no_plan();
alter table pawl.job drop constraint job_lease; -- to see what each part does without the others
create temp table l (what text, worker text, token_is_wrong boolean, version_by int4);
insert into l values ('worker', 'w2', false, 0), ('token', 'w1', true, 0), ('version', 'w1', false, 1);
select pawl_test.put('g') from generate_series(1, 20);
create temp table j as select row_number() over () n, c.* from pawl.claim_outbox_batch(20, 'w1', 30, 'g') c;

create function shown(p_verb text, p_worker text, p_id uuid, p_token uuid, p_version int4, out verdict text) language plpgsql as $$
begin
    if p_verb = 'renew' then
        select r.verdict into verdict from pawl.renew_batch(0, p_worker, array[p_id], array[p_token], array[p_version], '{60000}', null) r;
    elsif p_verb = 'release' then
        select r.verdict into verdict from pawl.release_batch(0, p_worker, array[p_id], array[p_token], array[p_version]) r;
    elsif p_verb = 'many' then -- a success of many: the second row is of no job
        select s.verdict into verdict from pawl.settle_batch(0, p_worker, array[p_id, gen_random_uuid()], array[p_token, gen_random_uuid()],
            array[p_version, 1], '{0,0}', '{0,0}', '{0,0}', null, null, '\x01') s where s.ordinal = 1;
    else
        select s.verdict into verdict from pawl.settle_batch(0, p_worker, array[p_id], array[p_token], array[p_version],
            array[p_verb::int2], '{0}', '{0}', null, null, '\x01') s;
    end if;
end $$;
select is(shown(v.verb, l.worker, j.outbox_id, case when l.token_is_wrong then gen_random_uuid() else j.lease_token end, j.lease_version + l.version_by),
          'STALE', v.verb || ' with a wrong ' || l.what)
from j, l, unnest('{renew,release,many,0,1,2,3}'::text[]) v(verb) where j.n = 1;
select results_eq($$select state::int, claimed_by, lease_version, lease_expires_at from pawl.job where id = (select outbox_id from j where n = 1)$$,
                  $$select 1, 'w1', lease_version, lease_expires_at from j where n = 1$$, 'Q-STALE: nothing was changed');
-- a row that is Ready although it still shows a lease: nobody's
update pawl.job set state = 0 where id = (select outbox_id from j where n = 2);
select is(shown(v.verb, 'w1', j.outbox_id, j.lease_token, j.lease_version), 'STALE', v.verb || ' of a Ready job')
from j, unnest('{renew,release,many,0,1,2,3}'::text[]) v(verb) where j.n = 2;
select results_eq($$select state::int, lease_expires_at from pawl.job where id = (select outbox_id from j where n = 2)$$,
                  $$select 0, lease_expires_at from j where n = 2$$, 'Q-STALE: nor is it extended');
-- a ledger row that no holder has written, whatever it says of a token, answers nobody
insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, token_digest, finished_at, worker)
select 0, 0, outbox_id, 1, lease_version, 1, 1, 1, pawl.token_digest(lease_token), now(), 'w1' from j where n = 11;
update pawl.job set state = 0, attempts = 1 where id = (select outbox_id from j where n = 11);
select is(shown('1', 'w1', j.outbox_id, j.lease_token, j.lease_version), 'STALE', 'an expiry is no settle') from j where n = 11;
-- an expired one
update pawl.job set lease_expires_at = clock_timestamp() where id = (select outbox_id from j where n = 3);
select is(shown(v.verb, 'w1', j.outbox_id, j.lease_token, j.lease_version), 'STALE', v.verb || ' at expiry')
from j, unnest('{renew,release,many,0,1,2,3}'::text[]) v(verb) where j.n = 3;
select is((select lease_expires_at <= clock_timestamp() from pawl.job where id = (select outbox_id from j where n = 3)), true, 'and it is not extended');
-- the reaper leaves alone what is valid, and what has no deadline
select is((select count(*) from pawl.recover(0, array(select outbox_id from j where n = 4), '\x01')), 0::int8, 'a valid lease is not recovered');
select pawl_test.put('w');
select is((select count(*) from pawl.recover(0, array(select id from pawl.jobs where queue = 'w'), '\x01')), 0::int8, 'a Ready job without a deadline is not failed');
-- and with everything right it works
select is(shown('renew', 'w1', j.outbox_id, j.lease_token, j.lease_version), 'OK', 'renew') from j where n = 5;
select is(shown('release', 'w1', j.outbox_id, j.lease_token, j.lease_version), 'OK', 'release') from j where n = 6;
select is(shown(v::text, 'w1', j.outbox_id, j.lease_token, j.lease_version), 'OK', 'settle ' || v) from j, generate_series(0, 3) v where j.n = 7 + v;
select is(shown('many', 'w1', j.outbox_id, j.lease_token, j.lease_version), 'OK', 'settle many') from j where n = 12;
select is((select count(*) from pawl.attempts where queue = 'g'), 5::int8, 'five rows in all');
-- a ledger that is further than the job says, and further than any job comes: the next number is taken from there
insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, finished_at, worker)
select 0, 0, outbox_id, x, 0, 1, 1, 1, now(), 'w1' from j, unnest('{1,1000000001}'::int4[]) x where j.n = 13;
select is((select s.verdict || ' ' || s.attempt_no from pawl.settle_batch(0, 'w1', array[j.outbox_id], array[j.lease_token], array[j.lease_version],
           '{0}', '{0}', '{0}', null, null, '\x01') s), 'OK 1000000002', 'a success of one job whose number is taken') from j where n = 13;
select * from finish();
