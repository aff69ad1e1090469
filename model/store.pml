/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store.pml - the store: each verb as the reads and writes that it consists of.
 * Owns:  rows and their ledger; the phases of a call between `sent` and `answered`; the reaper.
 * Never: decides what a worker does with an answer.
 */

/* ---------------------------------------------------------------- the life of a call */

#define J call[s].job /* the row that call s is about */

#define IS_SETTLE(s)    (call[s].verb == succeed || call[s].verb == retry)
#define IS_HOLDERS(s)   (call[s].verb == renew || IS_SETTLE(s) || call[s].verb == release)
#define IS_EXECUTING(s) (call[s].phase == reading || call[s].phase == timed || call[s].phase == written)

/* All that change a row lock it, but for the mutants that read and write apart. */
#define IS_LOCKING(s)                                                                              \
    (!(MUTANT == CLAIM_TWO_STEPS && call[s].verb == claim) &&                                      \
     !(MUTANT == SETTLE_TWO_STEPS && IS_SETTLE(s)) &&                                              \
     !(MUTANT == RENEW_TWO_STEPS && call[s].verb == renew) &&                                      \
     !(MUTANT == REAP_BY_ID_ONLY && call[s].verb == reap))

inline clear(s)
{
    call[s].phase = IDLE;
    call[s].verb = 0;
    call[s].answer = 0;
    call[s].who = NOBODY;
    call[s].job = 0;
    call[s].version = 0;
    call[s].fresh = 0;
    call[s].is_late = 0;
    call[s].was_valid = 0
}

/* In limbo nobody waits for the answer. */
#define IS_AWAITED(s) (s < LIMBO_AT)

inline reply(s, what, lease)
{
    call[s].version = (IS_AWAITED(s) -> lease : 0);
    call[s].phase = (IS_AWAITED(s) -> answered : IDLE);
    call[s].answer = (IS_AWAITED(s) -> what : 0);
    call[s].verb = (IS_AWAITED(s) -> call[s].verb : 0);
    call[s].who = (IS_AWAITED(s) -> call[s].who : NOBODY);
    call[s].job = (IS_AWAITED(s) -> call[s].job : 0);
    call[s].fresh = 0;
    call[s].is_late = 0;
    call[s].was_valid = 0
}

/* That there is nothing is delivered at once: whether such a reply is late or lost makes no
 * difference that a late or lost request does not make. */
inline reply_nothing(s)
{
    if
    :: IS_AWAITED(s) && call[s].verb == claim -> worker[call[s].who - 1].age = 0
    :: IS_AWAITED(s) && call[s].verb == mine -> worker[call[s].who - 1].asking = ASK_ON(call[s].who - 1)
    :: else -> skip
    fi;
    clear(s)
}

inline unlock(s)
{
    row[J].is_locked = (IS_LOCKING(s) -> 0 : row[J].is_locked)
}

inline roll_back(s)
{
    row[J].is_locked = (IS_EXECUTING(s) && IS_LOCKING(s) -> 0 : row[J].is_locked)
}

/* The message is lost, or the transaction. */
inline drop(s)
{
    roll_back(s);
    clear(s)
}

/* What must be true of a row and its ledger whenever no transaction is open on it. */
inline check(j)
{
    nacks = 0;
    losts = 0;
    dones = 0;
    i = 1;
    do
    :: i <= VERSIONS ->
        /* Each lease but the one in force has ended, once. */
        MUST(one_row_per_end,
             (row[j].ledger[i] == OPEN) ==
                 (i > row[j].version || (i == row[j].version && row[j].state == in_flight)));
        nacks = nacks + (row[j].ledger[i] == retryable || row[j].ledger[i] == exhausted);
        losts = losts + (row[j].ledger[i] == zombie || row[j].ledger[i] == poison);
        dones = dones + (row[j].ledger[i] == dispatched);
        i++
    :: else -> break
    od;
    MUST(one_completion, dones <= 1);
    MUST(retry_bound, nacks <= MAX_RETRIES + (row[j].state == failed));
    MUST(lost_bound, losts == row[j].lost && losts < MAX_LOST + (row[j].state == failed))
}

/* ---------------------------------------------------------------- changes of a row */

#define IS_ANY_TOKEN(s) (MUTANT == TOKEN_UNCHECKED || (MUTANT == RELEASE_STALE && call[s].verb == release))
#define IS_LEASE_OF(s)                                                                             \
    (row[J].state == in_flight &&                                                                  \
     (row[J].version == call[s].version || MUTANT == TOKEN_PER_WORKER || IS_ANY_TOKEN(s)) &&       \
     (row[J].owner == call[s].who || IS_ANY_TOKEN(s)))
#define IS_UNEXPIRED(s)                                                                            \
    (row[J].left > 0 || (MUTANT == EXPIRY_UNCHECKED && call[s].verb != renew) ||                   \
     (MUTANT == CLOCK_BEFORE_LOCK && call[s].is_late))
#define IS_ALLOWED(s)  (IS_LEASE_OF(s) && IS_UNEXPIRED(s))
#define IS_TOO_LONG(s) (TIMEOUT && row[J].run_left == 0 && MUTANT != NO_TIMEOUT)
#define IS_PROMISED(s) (row[J].granted == call[s].version && row[J].granted_left > 0)

/* From the second loss on, a job that was lost may have to wait before it is due again: RES-5. */
#define IS_LOSS_LATE(s) (row[J].state == in_flight && row[J].lost > 0 && row[J].lost + 1 < MAX_LOST)

inline become(s, what)
{
    MUST(terminal_stays, !row[J].is_terminal);
    row[J].state = what;
    row[J].is_terminal = (what == succeeded || what == failed)
}

/* Workers need not remember a lease that nobody can be told of any more. */
inline forget(s)
{
    i = 0;
    do
    :: i < WORKERS ->
        worker[i].let_go[J] = 0;
        i++
    :: else -> break
    od
}

/* A job leaves InFlight: the lease is gone ... */
inline leave(s, what, due)
{
    become(s, what);
    row[J].owner = NOBODY;
    row[J].left = (MUTANT == RETRY_NO_DELAY -> 0 : due);
    row[J].due_left = due;
    row[J].run_left = 0;
    row[J].granted_left = 0;
    forget(s)
}

/* ... and its ledger row goes with it. */
inline append(s, lease, outcome)
{
    MUST(one_row_per_end, row[J].ledger[lease] == OPEN);
    row[J].ledger[lease] = outcome
}

inline expire(s)
{
    MUST(ends_only_expired, row[J].granted_left == 0);
    MUST(living_keep_leases, !TIMELY || row[J].owner == DEAD);
    row[J].lost = row[J].lost + (MUTANT != LOST_NOT_COUNTED);
#if MUTANT != EXPIRY_NO_ROW
    append(s, row[J].version, (row[J].lost >= MAX_LOST -> poison : zombie));
#endif
    leave(s, (row[J].lost >= MAX_LOST -> failed : ready),
          (call[s].is_late && row[J].lost < MAX_LOST -> DELAY : 0))
}

inline grant(s)
{
    MUST(one_valid_lease, row[J].granted_left == 0);
    MUST(claimed_only_due, row[J].due_left == 0);
    MUST(lost_bound, row[J].granted < VERSIONS);
    become(s, in_flight);
    row[J].version = row[J].version + (MUTANT != VERSION_STANDS || row[J].version == 0);
    row[J].owner = call[s].who;
    row[J].left = call[s].fresh;
    row[J].run_left = TIMEOUT;
    row[J].granted++;
    row[J].granted_left = call[s].fresh;
    MUST(version_plus_one, row[J].version == row[J].granted)
}

/* ---------------------------------------------------------------- commits */

/* The lease was in force when the lock was got, and nobody has ended it since. */
inline must_be_fenced(s)
{
    MUST(no_stale_write, call[s].was_valid && row[J].granted == call[s].version &&
                             row[J].state == in_flight)
}

#define IS_GRANTABLE(s)                                                                            \
    ((row[J].state == ready && row[J].left == 0) || MUTANT == CLAIM_TWO_STEPS ||                   \
     (MUTANT == TERMINAL_CLAIMABLE && row[J].state == succeeded))

inline commit_claim(s)
{
    if
    :: row[J].state == in_flight && row[J].left == 0 -> expire(s)
    :: else -> skip
    fi;
    unlock(s);
    if
    :: IS_GRANTABLE(s) ->
        grant(s);
        reply(s, ok, row[J].version)
    :: else -> reply_nothing(s)
    fi
}

inline commit_renew(s)
{
    must_be_fenced(s);
    /* The later of what it is and now + lease. */
    row[J].left = (call[s].fresh > row[J].left -> call[s].fresh : row[J].left);
    row[J].granted_left = row[J].left;
    unlock(s);
    reply(s, ok, call[s].version)
}

#define IS_EXHAUSTED(s) (row[J].retries >= MAX_RETRIES && MUTANT != RETRY_UNBOUNDED)

inline write_settle(s)
{
    must_be_fenced(s);
    if
    :: call[s].verb == succeed -> leave(s, succeeded, 0)
    :: else ->
        leave(s, (IS_EXHAUSTED(s) -> failed : ready), (call[s].is_late -> DELAY : 0));
        row[J].retries = row[J].retries + (row[J].state == ready)
    fi
}

#define OUTCOME(s)                                                                                 \
    (call[s].verb == succeed -> dispatched : (row[J].state == failed -> exhausted : retryable))

inline commit_settle(s)
{
#if MUTANT != LEDGER_APART
    write_settle(s);
#endif
    append(s, call[s].version, OUTCOME(s));
    unlock(s);
    reply(s, ok, call[s].version)
}

inline commit_release(s)
{
    must_be_fenced(s);
    row[J].ledger[call[s].version] = released;
    leave(s, ready, 0);
    row[J].lost = row[J].lost + (MUTANT == RELEASE_COUNTS_LOST);
    unlock(s);
    reply(s, ok, call[s].version)
}

/* A settle that was done before finds its own ledger row: the same action is OK, another is STALE. */
#define IS_REPLAY(s)                                                                               \
    (MUTANT != SETTLE_REPLAY_STALE &&                                                              \
     ((call[s].verb == succeed && row[J].ledger[call[s].version] == dispatched) ||                 \
      (call[s].verb == retry && (row[J].ledger[call[s].version] == retryable ||                    \
                                 row[J].ledger[call[s].version] == exhausted))))

inline refuse(s)
{
    unlock(s);
#if MUTANT == SETTLE_REPLAY_AGAIN
    if
    :: IS_REPLAY(s) -> append(s, call[s].version, OUTCOME(s))
    :: else -> skip
    fi;
#endif
    reply(s, (IS_REPLAY(s) -> ok : stale), call[s].version)
}

/* ---------------------------------------------------------------- a call, step by step */

#define IS_CLAIMABLE(j)                                                                            \
    (!row[j].is_locked && row[j].left == 0 && (!ONLY || row[j].granted < VERSIONS) &&              \
     (row[j].state == ready || (row[j].state == in_flight && MUTANT != NO_RECOVERY) ||             \
      (MUTANT == TERMINAL_CLAIMABLE && row[j].state == succeeded)))
#define IS_MINE(j) (row[j].state == in_flight && row[j].owner == call[s].who && row[j].left > 0)
#if JOBS > 1
#define NONE_CLAIMABLE (!IS_CLAIMABLE(0) && !IS_CLAIMABLE(1))
#define NONE_MINE      (!IS_MINE(0) && !IS_MINE(1))
/* The store tells of both; of these, the model's worker takes up the one that is new to it. */
#define IS_HELD(j)                                                                                 \
    (worker[call[s].who - 1].job == j && worker[call[s].who - 1].version == row[j].version)
#define IS_TOLD(j) (IS_MINE(j) && (!IS_HELD(j) || !IS_MINE(1 - j)))
#else
#define NONE_CLAIMABLE (!IS_CLAIMABLE(0))
#define NONE_MINE      (!IS_MINE(0))
#define IS_TOLD(j)     IS_MINE(j)
#endif

/* Workers are alike, so that it is enough to look at runs in which the first lease is not the second
 * worker's: in the others they only change names. */
#define IS_TURN(s) (call[s].who == 1 || call[s].who == DEAD || row[0].version > 0)

#define CLAIM_LOCKS(j)                                                                             \
    d_step {                                                                                       \
        call[s].phase == sent && call[s].verb == claim && IS_TURN(s) && IS_CLAIMABLE(j) ->         \
        TELL_CALL(s, "locks the row and reads it\n");                                              \
        call[s].job = j;                                                                           \
        call[s].phase = reading;                                                                   \
        row[j].is_locked = IS_LOCKING(s)                                                           \
    }
#define MINE_FINDS(j)                                                                              \
    d_step {                                                                                       \
        call[s].phase == sent && call[s].verb == mine && IS_TOLD(j) ->                             \
        TELL_CALL(s, "finds a lease\n");                                                           \
        call[s].job = j;                                                                           \
        reply(s, ok, row[j].version)                                                               \
    }

/* A row's lock is fair enough that a worker's own heartbeats do not keep its settle out for ever. */
#define MAY_LOCK(s)                                                                                \
    (!row[J].is_locked &&                                                                          \
     !(LIVE && call[s].verb == renew && s < LIMBO_AT && call[s + 1].phase == sent))

proctype Session(byte s)
{
    do
    /* claim: locks a row, and skips what is locked */
    :: CLAIM_LOCKS(0)
#if JOBS > 1
    :: CLAIM_LOCKS(1)
#endif
    :: d_step {
        call[s].phase == sent && call[s].verb == claim && IS_TURN(s) && NONE_CLAIMABLE ->
        TELL_CALL(s, "finds nothing\n");
        reply_nothing(s)
    }
    :: d_step {
        call[s].phase == reading && call[s].verb == claim ->
        TELL_CALL(s, "reads the clock\n");
        call[s].fresh = LEASE;
        call[s].phase = timed
    }
#if MAX_LOST > 2
    :: d_step {
        call[s].phase == reading && call[s].verb == claim && IS_LOSS_LATE(s) ->
        TELL_CALL(s, "reads the clock; due later\n");
        call[s].is_late = 1;
        call[s].fresh = LEASE;
        call[s].phase = timed
    }
#endif
    :: d_step { /* an expiry that is recovered on the way has a ledger row of its own */
        call[s].phase == timed && call[s].verb == claim && row[J].state == in_flight ->
        TELL_CALL(s, "writes the row\n");
        call[s].phase = written
    }
    :: d_step {
        (call[s].phase == written || (call[s].phase == timed && row[J].state != in_flight)) &&
            call[s].verb == claim ->
        TELL_CALL(s, "commits\n");
        commit_claim(s)
    }

    /* mine: one read, no lock */
    :: MINE_FINDS(0)
#if JOBS > 1
    :: MINE_FINDS(1)
#endif
    :: d_step {
        call[s].phase == sent && call[s].verb == mine && NONE_MINE ->
        TELL_CALL(s, "finds nothing\n");
        reply_nothing(s)
    }

    /* renew, settle, release: wait for the lock of the one row that they name */
    :: d_step {
        call[s].phase == sent && IS_HOLDERS(s) && MAY_LOCK(s) ->
        TELL_CALL(s, "locks the row and reads it\n");
        row[J].is_locked = IS_LOCKING(s);
        call[s].was_valid = IS_PROMISED(s);
        call[s].phase = reading
    }
    :: d_step {
        call[s].phase == reading && IS_HOLDERS(s) && !IS_ALLOWED(s) ->
        TELL_CALL(s, "reads the clock; it is not, or no longer, the caller's\n");
        refuse(s)
    }

    :: d_step {
        call[s].phase == reading && call[s].verb == renew && IS_ALLOWED(s) && !IS_TOO_LONG(s) ->
        TELL_CALL(s, "reads the clock\n");
        call[s].fresh = LEASE;
        call[s].phase = timed
    }
#if TIMEOUT
    :: d_step {
        call[s].phase == reading && call[s].verb == renew && IS_ALLOWED(s) && IS_TOO_LONG(s) ->
        TELL_CALL(s, "reads the clock; the execution timeout has passed\n");
        unlock(s);
        reply(s, too_long, call[s].version)
    }
#endif
    :: d_step {
        call[s].phase == timed && call[s].verb == renew ->
        TELL_CALL(s, "commits\n");
        commit_renew(s)
    }

    :: d_step {
        call[s].phase == reading && IS_SETTLE(s) && IS_ALLOWED(s) ->
        TELL_CALL(s, "reads the clock\n");
        call[s].is_late = 0;
        call[s].phase = timed
    }
#if MAX_RETRIES > 0
    :: d_step { /* the backoff is drawn from zero to its ceiling: Q-BACKOFF */
        call[s].phase == reading && call[s].verb == retry && IS_ALLOWED(s) &&
            row[J].retries < MAX_RETRIES ->
        TELL_CALL(s, "reads the clock; due later\n");
        call[s].is_late = 1;
        call[s].phase = timed
    }
#endif
    :: d_step {
        call[s].phase == timed && IS_SETTLE(s) ->
        TELL_CALL(s, "writes the row\n");
#if MUTANT == LEDGER_APART
        write_settle(s);
#endif
        call[s].phase = written
    }
    :: d_step {
        call[s].phase == written && IS_SETTLE(s) ->
        TELL_CALL(s, "commits\n");
        commit_settle(s)
    }

#if RELEASES > 0
    :: d_step {
        call[s].phase == reading && call[s].verb == release && IS_ALLOWED(s) ->
        TELL_CALL(s, "reads the clock\n");
        call[s].phase = timed
    }
    :: d_step {
        call[s].phase == timed && call[s].verb == release ->
        TELL_CALL(s, "commits\n");
        commit_release(s)
    }
#endif

#if MUTANT == CLOCK_BEFORE_LOCK
    :: d_step {
        call[s].phase == sent && IS_SETTLE(s) && row[J].left > 0 && !call[s].is_late ->
        TELL_CALL(s, "reads the clock before it has the lock\n");
        call[s].is_late = 1
    }
#endif
    od
}

/* ---------------------------------------------------------------- reap */

#define IS_REAPABLE(j)                                                                             \
    (!row[j].is_locked && row[j].state == in_flight &&                                             \
     (row[j].left == 0 || MUTANT == REAP_UNEXPIRED) && MUTANT != NO_RECOVERY)

#define REAP_LOCKS(j)                                                                              \
    d_step {                                                                                       \
        call[REAPER].phase == IDLE && IS_REAPABLE(j) ->                                            \
        TELL("reaper    locks the row and reads it\n");                                            \
        call[REAPER].verb = reap;                                                                  \
        call[REAPER].job = j;                                                                      \
        call[REAPER].phase = reading;                                                              \
        row[j].is_locked = IS_LOCKING(REAPER)                                                      \
    }

proctype Reaper()
{
    do
    :: REAP_LOCKS(0)
#if JOBS > 1
    :: REAP_LOCKS(1)
#endif
    :: d_step {
        call[REAPER].phase == reading ->
        TELL("reaper    reads the clock\n");
        call[REAPER].phase = timed
    }
#if MAX_LOST > 2
    :: d_step {
        call[REAPER].phase == reading && row[call[REAPER].job].lost > 0 &&
            row[call[REAPER].job].lost + 1 < MAX_LOST ->
        TELL("reaper    reads the clock; due later\n");
        call[REAPER].is_late = 1;
        call[REAPER].phase = timed
    }
#endif
    :: d_step {
        call[REAPER].phase == timed ->
        TELL("reaper    writes the row\n");
        call[REAPER].phase = written
    }
    :: d_step {
        call[REAPER].phase == written ->
        TELL("reaper    commits\n");
        if
        :: row[call[REAPER].job].state == in_flight -> expire(REAPER)
        :: else -> skip
        fi;
        drop(REAPER)
    }
    od
}
