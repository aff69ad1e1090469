-- SPDX-License-Identifier: Apache-2.0
-- The names of the numbers that are stored, as src/core/job.c has them.
create function pawl.state_name(p_state int2) returns text
language sql immutable parallel safe as $$
    select ('{Ready,InFlight,Succeeded,Failed}'::text[])[p_state + 1]
$$;

create function pawl.outcome_name(p_outcome int2) returns text
language sql immutable parallel safe as $$
    select ('{DISPATCHED,RETRYABLE,FAILED,ZOMBIE_REQUEUE}'::text[])[p_outcome + 1]
$$;

create function pawl.reason_name(p_reason int2) returns text
language sql immutable parallel safe as $$
    select ('{none,error,exhausted,fatal,timeout,snooze,shutdown,expired,poison,cancelled,start_by}'::text[])[p_reason + 1]
$$;

create function pawl.ended_by_name(p_ended_by int2) returns text
language sql immutable parallel safe as $$
    select ('{holder,expiry,operator,deadline}'::text[])[p_ended_by + 1]
$$;
