/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * faults.pml - what goes wrong, and time.
 * Owns:  losses, delays, crashes, roll-backs; the clock, and with it every pause.
 * Never: invents a message, or changes one.
 */

#define MAY_LOSE (losses > 0)

inline spend(budget)
{
    budget = budget - (budget < 255)
}

/* The worker's caller is told UNKNOWN: a claim is asked about, everything else is sent again (K4). */
inline unknown(s)
{
    ME.age = (call[s].verb == claim -> 0 : ME.age);
    ME.asking = (call[s].verb == claim && MUTANT != CLAIM_LOST_FORGOTTEN -> must : ME.asking);
    ME.ask_left = (call[s].verb == claim && TIMELY -> ASK_FOR : ME.ask_left);
    ME.beat_age = (call[s].verb == renew -> 0 : ME.beat_age);
#if MUTANT == SETTLE_NOT_REPEATED
    call[s].phase = missing;
    if
    :: IS_SETTLE(s) -> skip
    :: else -> clear(s)
    fi
#elif MUTANT == UNKNOWN_IS_DONE
    if
    :: IS_SETTLE(s) -> over()
    :: else -> clear(s)
    fi
#else
    clear(s)
#endif
}

/* The name is never used again; what it sent may still arrive. */
inline crash()
{
    over();
    drop(TAKE(w));
    ME.asking = NO;
    ME.stray = 0;
    ME.stray_job = 0;
    ME.has_moved = 0;
    ME.has_asked = 0;
    ME.ask_left = 0;
    i = 0;
    do
    :: i < LIMBO ->
        call[LIMBO_AT + i].who = (call[LIMBO_AT + i].who == w + 1 -> DEAD : call[LIMBO_AT + i].who);
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < JOBS ->
        ME.let_go[i] = 0;
        row[i].owner = (row[i].owner == w + 1 -> DEAD : row[i].owner);
        i++
    :: else -> break
    od;
    i = 0
}

#if LIMBO > 1
#define HAS_LIMBO  (call[LIMBO_AT].phase == IDLE || call[LIMBO_AT + 1].phase == IDLE)
#define FREE_LIMBO (call[LIMBO_AT].phase == IDLE -> LIMBO_AT : LIMBO_AT + 1)
#else
#define HAS_LIMBO  (call[LIMBO_AT].phase == IDLE)
#define FREE_LIMBO LIMBO_AT
#endif

inline copy_to_limbo(s)
{
    target = FREE_LIMBO;
    call[target].phase = sent;
    call[target].verb = call[s].verb;
    call[target].who = call[s].who;
    call[target].job = call[s].job;
    call[target].version = call[s].version
}

#if TIMELY

/* Lost on the way there or on the way back; the caller waits a tick before it gives up. Settles and
 * releases may be lost again and again, the others only so often that a lease can bear it. */
#define LOSE(s)                                                                                    \
    d_step {                                                                                       \
        (call[s].phase == sent || call[s].phase == answered) && MAY_LOSE &&                        \
            (cooling == 0 || s == END(w)) ->                                                       \
        spend(losses);                                                                             \
        cooling = (s == END(w) -> cooling : COOLING);                                              \
        TELL_CALL(s, "is lost\n");                                                                 \
        call[s].phase = missing                                                                    \
    }

/* A claim that arrives after its caller has given it up. */
#define DETACH(s)                                                                                  \
    d_step {                                                                                       \
        call[s].phase == sent && call[s].verb == claim && MAY_LOSE && cooling == 0 && HAS_LIMBO && \
            releases > 0 ->                                                                        \
        releases--; /* it may take a job that there is no room for by then */                      \
        spend(losses);                                                                             \
        cooling = COOLING;                                                                         \
        TELL_CALL(s, "is given up, but goes on\n");                                                \
        copy_to_limbo(s);                                                                          \
        call[target].phase = held_up;                                                              \
        call[target].fresh = HOLD_UP;                                                              \
        call[s].phase = missing                                                                    \
    }

#else

/* The request, the transaction or the reply is lost ... */
#define LOSE(s)                                                                                    \
    d_step {                                                                                       \
        call[s].phase != IDLE && call[s].phase != missing && MAY_LOSE ->                           \
        TELL_CALL(s, "is lost\n");                                                                 \
        spend(losses);                                                                             \
        roll_back(s);                                                                              \
        unknown(s)                                                                                 \
    }

/* ... or goes on with nobody waiting for it: sooner or later, also after the lease went on. */
#define DETACH(s)                                                                                  \
    d_step {                                                                                       \
        call[s].phase == sent && call[s].verb != mine && MAY_LOSE && HAS_LIMBO ->                  \
        spend(losses);                                                                             \
        TELL_CALL(s, "is given up, but goes on\n");                                                \
        copy_to_limbo(s);                                                                          \
        unknown(s)                                                                                 \
    }

#endif

proctype Faults(byte w)
{
    do
    :: LOSE(TAKE(w))
    :: LOSE(BEATS(w))
    :: LOSE(END(w))
    :: DETACH(TAKE(w))
#if !TIMELY
    :: DETACH(BEATS(w))
    :: DETACH(END(w))
    :: d_step {
        crashes > 0 ->
        TELL_WORKER("crashes\n");
        spend(crashes);
        crash()
    }
    :: d_step { /* the store rolls back what nobody waits for */
        w == 0 && call[LIMBO_AT].phase != IDLE ->
        TELL_CALL(LIMBO_AT, "is lost after all\n");
        drop(LIMBO_AT)
    }
#if LIMBO > 1
    :: d_step {
        w == 0 && call[LIMBO_AT + 1].phase != IDLE ->
        TELL_CALL(LIMBO_AT + 1, "is lost after all\n");
        drop(LIMBO_AT + 1)
    }
#endif
    :: d_step {
        w == 0 && call[REAPER].phase != IDLE && MAY_LOSE ->
        TELL("reaper    is rolled back\n");
        spend(losses);
        drop(REAPER)
    }
#endif
#if LIVE
    :: true -> skip /* nothing has to go wrong, however fair the processes are to each other */
#endif
    od
}

/* ---------------------------------------------------------------- time */

#define ONE_LESS(value) (value > 0 -> value - 1 : 0)

/* In every state a tick may come next, so this sees them all. */
inline check_rows()
{
    target = 0;
    do
    :: target < JOBS ->
        if
        :: !row[target].is_locked -> check(target)
        :: else -> skip
        fi;
        target++
    :: else -> break
    od
}

inline tick_rows()
{
    i = 0;
    do
    :: i < JOBS ->
        row[i].left = ONE_LESS(row[i].left);
        row[i].granted_left = ONE_LESS(row[i].granted_left);
        row[i].due_left = ONE_LESS(row[i].due_left);
        row[i].run_left = ONE_LESS(row[i].run_left);
        i++
    :: else -> break
    od
}

inline tick_calls()
{
    i = 0;
    do
    :: i < CALLS ->
        call[i].fresh = ONE_LESS(call[i].fresh);
        call[i].phase = (call[i].phase == held_up && call[i].fresh == 0 -> sent : call[i].phase);
        i++
    :: else -> break
    od
}

inline tick_workers()
{
    i = 0;
    do
    :: i < WORKERS ->
        worker[i].age = worker[i].age + (worker[i].age < AGE_MAX &&
                                         (worker[i].hold != FREE || call[TAKE(i)].verb == claim));
        worker[i].beat_age = worker[i].beat_age + (worker[i].beat_age < AGE_MAX &&
                                                   call[BEATS(i)].phase != IDLE);
        i++
    :: else -> break
    od;
    i = 0
}

#if TIMELY

/* What was lost in the last tick is noticed now; and everybody may choose anew. */
inline notice()
{
    w = 0;
    do
    :: w < WORKERS ->
        ME.has_moved = 0;
        ME.has_asked = 0;
        ME.ask_left = ONE_LESS(ME.ask_left);
        if
        :: call[TAKE(w)].phase == missing -> unknown(TAKE(w))
        :: else -> skip
        fi;
        if
        :: call[BEATS(w)].phase == missing -> unknown(BEATS(w))
        :: else -> skip
        fi;
        if
        :: call[END(w)].phase == missing -> unknown(END(w))
        :: else -> skip
        fi;
        w++
    :: else -> break
    od;
    w = 0
}

inline tick()
{
    check_rows();
    tick_rows();
    tick_calls();
    tick_workers();
    cooling = ONE_LESS(cooling);
    notice()
}

proctype Clock()
{
    byte w;
    do
    :: d_step {
        timeout ->
        TELL("clock     ticks\n");
        tick()
    }
    :: d_step {
        timeout && crashes > 0 ->
        TELL("clock     ticks, and worker 1 crashes\n");
        spend(crashes);
        tick();
        crash()
    }
    od
}

#else

proctype Clock()
{
    do
    :: d_step {
        true ->
        TELL("clock     ticks\n");
        check_rows();
        tick_rows();
        tick_calls();
        tick_workers()
    }
    od
}

#endif
