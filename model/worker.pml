/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.pml - a worker: what the keeper decides, for one job at a time.
 * Owns:  what a worker holds, how long it relies on it, what it sends.
 * Never: looks into a row, but to check that what it does is right.
 */

#define ME worker[w]

/* K3: every step looks at the clock before anything else. */
#define MAY_WORK (ME.age < RISK_WORK)
#define MAY_HOLD (ME.age < RISK_HELD)
#define IS_ENDING  (ME.hold == done || ME.hold == nack)
#define IS_AT_WORK (ME.hold == running || ME.hold == hung || IS_ENDING)
#define IS_AT_RISK (ME.hold != FREE && ((IS_AT_WORK && !MAY_WORK) || (!IS_AT_WORK && !MAY_HOLD)))

/* TIMELY: what is a worker's own choice is chosen once per tick. */
#if TIMELY
#define IS_MY_MOVE !ME.has_moved
#define MOVED      ME.has_moved = 1
#else
#define IS_MY_MOVE true
#define MOVED      skip
#endif

/* A lease that it has been told of, and neither holds nor has let go of. */
#define IS_NEWS                                                                                    \
    ((call[TAKE(w)].version != ME.version || call[TAKE(w)].job != ME.job) &&                       \
     (call[TAKE(w)].version != ME.let_go[call[TAKE(w)].job] || MUTANT == ADOPT_DROPPED))

/* The lease that it is about to act under stands, by the store's clock. */
#define IS_STANDING (ME.version == row[ME.job].granted && row[ME.job].granted_left > 0)
#define IS_SETTLED                                                                                 \
    ((ME.hold == done && row[ME.job].ledger[ME.version] == dispatched) ||                          \
     (ME.hold == nack && (row[ME.job].ledger[ME.version] == retryable ||                           \
                          row[ME.job].ledger[ME.version] == exhausted)))
#define IS_RELEASED (ME.hold == returning && row[ME.job].ledger[ME.version] == released)

inline send(s, what)
{
    call[s].phase = sent;
    call[s].verb = what;
    call[s].who = w + 1
}

inline send_lease(s, what)
{
    send(s, what);
    call[s].job = ME.job;
    call[s].version = ME.version
}

/* The slot is free again, and nobody waits for what was sent about it. The lease is remembered: what
 * it has let go of it never takes back, since a settle or release of it may still arrive. */
inline over()
{
    if
    :: row[ME.job].state == in_flight && row[ME.job].version == ME.version ->
        ME.let_go[ME.job] = ME.version
    :: else -> skip
    fi;
    ME.hold = FREE;
    ME.job = 0;
    ME.version = 0;
    ME.age = 0;
    ME.beat_age = 0;
    ME.is_beaten = 0;
    drop(BEATS(w));
    drop(END(w))
}

#define TAKES  1
#define HOLDS  2
#define RENEWS 4

proctype Keeper(byte w; byte part)
{
    do
    /* ---- takes work: claims where there is room; asks what is its own after a lost claim (K4) */
    :: d_step {
        (part & TAKES) && ME.hold == FREE && ME.asking != must && !ME.stray &&
            call[TAKE(w)].phase == IDLE && IS_MY_MOVE ->
        TELL_WORKER("sends a claim\n");
        MOVED;
        send(TAKE(w), claim)
    }
    :: d_step {
        (part & TAKES) && call[TAKE(w)].phase == answered && call[TAKE(w)].verb == claim ->
        TELL_WORKER("has the answer to its claim\n");
        ME.age = (MUTANT == WATCHDOG_FROM_REPLY -> 0 : ME.age);
        if
        :: MAY_HOLD ->
            ME.hold = buffered;
            ME.job = call[TAKE(w)].job;
            ME.version = call[TAKE(w)].version
        :: else -> /* too late to be used as it is */
            ME.age = 0;
            ME.asking = must
        fi;
        clear(TAKE(w))
    }
    :: d_step {
        (part & TAKES) && call[TAKE(w)].phase == IDLE && !ME.stray &&
            (ME.asking == must || (ASK_AGAIN && ME.asking == may && !ME.has_asked)) ->
        TELL_WORKER("asks what is its own\n");
        ME.has_asked = TIMELY;
        send(TAKE(w), mine)
    }
    :: d_step {
        (part & TAKES) && call[TAKE(w)].phase == answered && call[TAKE(w)].verb == mine ->
        TELL_WORKER("has been told what is its own\n");
        if
        :: IS_NEWS && ME.hold == FREE ->
            ME.hold = (MUTANT == ADOPT_UNCONFIRMED -> buffered : adopted);
            ME.job = call[TAKE(w)].job;
            ME.version = call[TAKE(w)].version;
            ME.age = 0
        :: IS_NEWS && ME.hold != FREE && (TIMELY || releases > 0) ->
            releases = releases - !TIMELY; /* see DETACH */
            ME.stray = call[TAKE(w)].version;
            ME.stray_job = call[TAKE(w)].job
        :: else -> skip
        fi;
        ME.asking = ASK_ON(w);
        clear(TAKE(w))
    }
#if ASK_AGAIN && RELEASES > 0
    :: d_step {
        (part & TAKES) && call[TAKE(w)].phase == IDLE && ME.stray ->
        TELL_WORKER("releases what it has no room for\n");
        send(TAKE(w), release);
        call[TAKE(w)].job = ME.stray_job;
        call[TAKE(w)].version = ME.stray
    }
    :: d_step {
        (part & TAKES) && call[TAKE(w)].phase == answered && call[TAKE(w)].verb == release ->
        TELL_WORKER("has the answer to that release\n");
        ME.stray = 0;
        ME.stray_job = 0;
        clear(TAKE(w))
    }
#endif
#if ASK_AGAIN && !TIMELY
    :: d_step { /* the lost claim cannot run any more, as it believes */
        (part & TAKES) && call[TAKE(w)].phase == IDLE && ME.asking == may ->
        TELL_WORKER("asks no more\n");
        ME.asking = NO
    }
#endif

    /* ---- holds a job until it is over */
    :: d_step {
        (part & HOLDS) && ME.hold == buffered && (MAY_WORK || MUTANT == START_AT_RISK) &&
            IS_MY_MOVE ->
        TELL_WORKER("starts\n");
        MOVED;
        MUST(acts_under_lease, IS_STANDING);
        ME.hold = running
    }
#if TIMEOUT
    :: d_step {
        (part & HOLDS) && ME.hold == buffered && MAY_WORK ->
        TELL_WORKER("starts, and will hang\n");
        ME.hold = hung
    }
#endif
#if RELEASES > 0
    :: d_step { /* shutting down, no room, or held too long */
        (part & HOLDS) && (ME.hold == buffered || ME.hold == adopted) && MAY_HOLD &&
            releases > 0 && IS_MY_MOVE ->
        TELL_WORKER("will give it back\n");
        MOVED;
        releases--;
        ME.hold = returning
    }
#endif
#if TIMELY
    :: d_step { /* no slot is free yet, or the handler goes on */
        (part & HOLDS) && (ME.hold == buffered || ME.hold == running) && IS_MY_MOVE ->
        TELL_WORKER("waits, or works on\n");
        MOVED
    }
#elif !LIVE
    :: d_step { /* the handler does something that others see */
        (part & HOLDS) && ME.hold == running && MAY_WORK ->
        TELL_WORKER("does something that others see\n");
        MUST(acts_under_lease, IS_STANDING)
    }
#endif
    :: d_step {
        (part & HOLDS) && ME.hold == running && MAY_WORK && IS_MY_MOVE ->
        TELL_WORKER("its handler succeeds\n");
        MOVED;
        ME.hold = done
    }
    :: d_step {
        (part & HOLDS) && ME.hold == running && MAY_WORK && IS_MY_MOVE ->
        TELL_WORKER("its handler fails\n");
        MOVED;
        ME.hold = nack
    }
    :: d_step {
        (part & HOLDS) && IS_ENDING && (MAY_WORK || MUTANT == SETTLE_AT_RISK) &&
            call[END(w)].phase == IDLE ->
        TELL_WORKER("sends its settle\n");
        /* Its lease stands, or an earlier sending of this settle has ended it. */
        MUST(acts_under_lease, IS_STANDING || IS_SETTLED);
        if
        :: ME.hold == done -> send_lease(END(w), succeed)
        :: else -> send_lease(END(w), retry)
        fi
    }
#if RELEASES > 0
    :: d_step {
        (part & HOLDS) && ME.hold == returning && MAY_HOLD && call[END(w)].phase == IDLE ->
        TELL_WORKER("sends its release\n");
        send_lease(END(w), release)
    }
#endif
    :: d_step {
        (part & HOLDS) && call[END(w)].phase == answered ->
        TELL_WORKER("has the answer to its settle or release\n");
        /* A settle is OK when, and only when, it was done; a repeated release may be STALE. */
        MUST(answers_true, (call[END(w)].answer == ok -> IS_SETTLED || IS_RELEASED : !IS_SETTLED));
        over()
    }
    :: d_step {
        (part & HOLDS) && IS_AT_RISK ->
        TELL_WORKER("is at risk, and lets go\n");
        over()
    }

    /* ---- renews its lease until its settle or release is answered (K6) */
    :: d_step {
        (part & RENEWS) && ME.hold != FREE && !IS_AT_RISK && !ME.is_beaten &&
            (ME.age >= BEAT || ME.hold == adopted) && call[BEATS(w)].phase == IDLE &&
            !(MUTANT == NO_BEATS && ME.hold == running) &&
            !(MUTANT == BUFFER_NOT_RENEWED && ME.hold == buffered) &&
            !(MUTANT == SETTLE_NOT_RENEWED && IS_ENDING) ->
        TELL_WORKER("sends a heartbeat\n");
        send_lease(BEATS(w), renew)
    }
    :: d_step {
        (part & RENEWS) && call[BEATS(w)].phase == answered && call[BEATS(w)].answer == ok &&
            !IS_AT_RISK ->
        TELL_WORKER("its heartbeat is confirmed\n");
        ME.age = (MUTANT == WATCHDOG_FROM_REPLY -> 0 : ME.beat_age);
        ME.beat_age = 0;
        ME.hold = (ME.hold == adopted && MAY_HOLD -> buffered : ME.hold);
        clear(BEATS(w))
    }
    :: d_step {
        (part & RENEWS) && call[BEATS(w)].phase == answered && call[BEATS(w)].answer == stale ->
        TELL_WORKER("its heartbeat is refused\n");
        if
        :: IS_ENDING || ME.hold == returning ->
            /* Its own settle or release may be what ended the lease: that answer will tell. */
            ME.is_beaten = 1;
            ME.beat_age = 0;
            clear(BEATS(w))
        :: else -> over()
        fi
    }
#if TIMEOUT
    :: d_step { /* RES-6: it is told to stop, and that was a failed attempt */
        (part & RENEWS) && call[BEATS(w)].phase == answered && call[BEATS(w)].answer == too_long ->
        TELL_WORKER("is told that it has run too long\n");
        ME.hold = (ME.hold == running || ME.hold == hung -> nack : ME.hold);
        ME.is_beaten = 1;
        ME.beat_age = 0;
        clear(BEATS(w))
    }
#endif
    od
}
