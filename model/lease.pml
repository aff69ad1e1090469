/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * lease.pml - the lease protocol: what can happen between a claim and the ledger row that ends it.
 * Owns:  the configuration, the names of mutants and properties, the data, and what is started.
 * Never: models payloads, batches, priorities, cancellation, or clocks that drift: see README.md.
 *
 * Time counts down, never up: a lease is the ticks that are left of it, so that time has no end and
 * the states are finite all the same. A tick may fall between any two steps; a worker that does not
 * step while ticks pass is a worker that was paused. A token is never used twice, so the lease
 * version stands for the token too.
 *
 * Every step is a d_step: one read or one write of the store, or one decision of a worker. Processes
 * have no state of their own: all of it is in the rows, the calls and the workers. Whatever is not
 * needed any more is set to zero, so that equal states look equal.
 */

/* ---------------------------------------------------------------- configuration: see check */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef JOBS
#define JOBS 1 /* 1 or 2 */
#endif
#ifndef LEASE
#define LEASE 2 /* ticks */
#endif
#ifndef RISK_WORK
#define RISK_WORK 1 /* ticks after which work stops: two heartbeats (K2) */
#endif
#ifndef RISK_HELD
#define RISK_HELD 1 /* ticks after which what has not started is dropped: a lease less a heartbeat */
#endif
#ifndef BEAT
#define BEAT 0 /* ticks after which a heartbeat falls due */
#endif
#ifndef MAX_RETRIES
#define MAX_RETRIES 0
#endif
#ifndef MAX_LOST
#define MAX_LOST 1
#endif
#ifndef RELEASES
#define RELEASES 0 /* how often jobs may be given back in all: no rule of the protocol bounds it */
#endif
#ifndef LIMBO
#define LIMBO 1 /* 1 or 2: calls that go on although their caller has given them up */
#endif
#ifndef LOSSES
#define LOSSES 255 /* calls that may be lost or delayed; 255: any number */
#endif
#ifndef CRASHES
#define CRASHES 255 /* crashes of workers; 255: any number */
#endif
#ifndef ASK_AGAIN
#define ASK_AGAIN 0 /* 1: a worker goes on asking what is its own, also while it works */
#endif
#ifndef TIMEOUT
#define TIMEOUT 0 /* ticks: the execution timeout, and handlers may hang; 0: they always end */
#endif
#ifndef TIMELY
#define TIMELY 0 /* 1: a tick passes only when nobody has anything left to do */
#endif
#ifndef LIVE
#define LIVE 0 /* 1: with the promises about what happens in the end */
#endif

#define DELAY    1 /* ticks: the longest backoff */
#define HOLD_UP  2 /* TIMELY: ticks by which a claim is delayed at most ... */
#define ASK_FOR  3 /* ... and for which a worker goes on asking after one was lost */
#define COOLING  3 /* TIMELY: ticks between two losses that could cost a lease */
#define AGE_MAX  (RISK_WORK > RISK_HELD -> RISK_WORK : RISK_HELD)
#define VERSIONS (MAX_RETRIES + (MAX_LOST - 1) + RELEASES + 1) /* claims that a job can see */

/* ---------------------------------------------------------------- mutants: see README.md */

#ifndef MUTANT
#define MUTANT 0
#endif
/* in the store */
#define TOKEN_UNCHECKED     1
#define TOKEN_PER_WORKER    2
#define EXPIRY_UNCHECKED    3
#define CLOCK_BEFORE_LOCK   4
#define REAP_BY_ID_ONLY     5
#define REAP_UNEXPIRED      6
#define CLAIM_TWO_STEPS     7
#define SETTLE_TWO_STEPS    8
#define RENEW_TWO_STEPS     9
#define RELEASE_STALE       10
#define LOST_NOT_COUNTED    11
#define RETRY_UNBOUNDED     12
#define RETRY_NO_DELAY      13
#define RELEASE_COUNTS_LOST 14
#define SETTLE_REPLAY_AGAIN 15
#define SETTLE_REPLAY_STALE 16
#define LEDGER_APART        17
#define EXPIRY_NO_ROW       18
#define VERSION_STANDS      19
#define TERMINAL_CLAIMABLE  20
#define NO_RECOVERY         21
#define NO_TIMEOUT          22
/* in the keeper */
#define WATCHDOG_FROM_REPLY  30
#define BEAT_TOO_SLOW        31
#define START_AT_RISK        32
#define SETTLE_AT_RISK       33
#define ADOPT_UNCONFIRMED    34
#define ADOPT_DROPPED        35
#define NO_BEATS             36
#define BUFFER_NOT_RENEWED   37
#define SETTLE_NOT_RENEWED   38
#define UNKNOWN_IS_DONE      39
#define CLAIM_LOST_FORGOTTEN 40
#define MINE_ONCE            41
#define SETTLE_NOT_REPEATED  42
/* 99 changes nothing: it proves that check would notice */

#if MUTANT == BEAT_TOO_SLOW
#undef RISK_WORK
#define RISK_WORK (LEASE + 1)
#endif

/* ---------------------------------------------------------------- properties */

/* Constants, in effect. An assertion names one of them, so that its text tells which promise was
 * broken; -DONLY=no_stale_write checks that one alone. */
hidden byte one_valid_lease = 1;
hidden byte no_stale_write = 2;
hidden byte one_completion = 3;
hidden byte terminal_stays = 4;
hidden byte version_plus_one = 5;
hidden byte ends_only_expired = 6;
hidden byte one_row_per_end = 7;
hidden byte retry_bound = 8;
hidden byte lost_bound = 9;
hidden byte claimed_only_due = 10;
hidden byte acts_under_lease = 11;
hidden byte answers_true = 12;
hidden byte living_keep_leases = 13;

#ifndef ONLY
#define ONLY 0
#endif
#define MUST(property, condition) assert(property && ((ONLY && property != ONLY) || (condition)))

/* The story of a trail: spin -t prints it. While searching it is nothing. */
#define TELL(text) printf(text)
#define TELL_CALL(s, text)                                                                         \
    printf("store     %e (worker %d, lease %d): ", call[s].verb, call[s].who, call[s].version);    \
    printf(text)
#define TELL_WORKER(text)                                                                          \
    printf("worker %d  (lease %d): ", w + 1, worker[w].version);                                   \
    printf(text)

/* ---------------------------------------------------------------- rows */

mtype = { ready, in_flight, succeeded, failed };

/* How a lease ended. All but `released` are ledger rows; exhausted and poison are FAILED ones. */
mtype = { dispatched, retryable, exhausted, zombie, poison, released };
#define OPEN 0 /* it has not ended */

#define NOBODY 0
#define DEAD   (WORKERS + 1) /* whoever crashed: a worker's name is never used again */

typedef Row {
    mtype state;
    unsigned version : 3;
    unsigned owner : 3;
    unsigned left : 3; /* in_flight: ticks to the expiry. ready: ticks until it is due */
    unsigned retries : 2;
    unsigned lost : 2;
    unsigned is_locked : 1;
    unsigned run_left : 3;              /* ticks to the execution timeout */
    mtype ledger[VERSIONS + 1]; /* by lease version */

    /* What was promised, apart from the row, so that a wrong row cannot hide it. */
    unsigned granted : 3;      /* the last lease given out */
    unsigned granted_left : 3; /* ticks left of it; 0 once it was ended */
    unsigned due_left : 2;     /* ticks before which nobody may have the job */
    unsigned is_terminal : 1;
}
Row row[JOBS];

/* ---------------------------------------------------------------- calls */

mtype = { claim, mine, renew, succeed, retry, release, reap };

#define IDLE 0 /* the phase of no call */
mtype = {
    sent,     /* on its way to the store */
    reading,  /* has the row's lock and has read the row */
    timed,    /* has read the clock, and the change is allowed */
    written,  /* has written the row; its ledger row comes next, and the commit with it */
    answered, /* the reply is on its way back */
    missing,  /* TIMELY: lost; its caller learns it at the next tick */
    held_up   /* TIMELY: delayed on its way to the store */
};

mtype = { ok, stale, too_long };

typedef Call {
    mtype phase;
    mtype verb;
    mtype answer;
    unsigned who : 3;
    unsigned job : 1;
    unsigned version : 3;
    unsigned fresh : 3;     /* from `timed` on: ticks left of the lease that it grants */
    unsigned is_late : 1;   /* from `timed` on: the job will be due later, not at once */
    unsigned was_valid : 1; /* its lease was in force when the lock was got */
}

/* Each worker has one call for taking work, one for heartbeats and one for ending work. Calls that
 * were given up go on in limbo. The last one is the reaper's. */
#define TAKE(w)  (3 * (w))
#define BEATS(w) (3 * (w) + 1)
#define END(w)   (3 * (w) + 2)
#define LIMBO_AT (3 * WORKERS)
#define REAPER   (3 * WORKERS + LIMBO)
#define CALLS    (3 * WORKERS + LIMBO + 1)
Call call[CALLS];

/* ---------------------------------------------------------------- workers */

#define FREE 0 /* holds nothing */
mtype = {
    adopted,  /* learned of by asking: must be confirmed first (K5) */
    buffered, /* held, not started */
    running,  /* its handler runs */
    hung,     /* its handler runs and will not end by itself */
    done,     /* the handler succeeded; to be settled */
    nack,     /* the handler failed; to be settled */
    returning /* to be released */
};

#define NO 0
mtype = {
    must, /* a claim was lost */
    may   /* it was asked about, but may still run */
};

typedef Worker {
    mtype hold;
    mtype asking;
    unsigned job : 1;
    unsigned version : 3;
    unsigned age : 3;       /* ticks since the request was sent that confirmed the lease last (K1) */
    unsigned beat_age : 3;  /* ticks since the outstanding heartbeat was sent */
    unsigned is_beaten : 1; /* the store will not renew it any more: no further heartbeats */
    unsigned has_moved : 1; /* TIMELY: it has made its choice for this tick */
    unsigned has_asked : 1; /* TIMELY: it has asked in this tick */
    unsigned ask_left : 2;  /* TIMELY: ticks for which it goes on asking */
    unsigned stray : 3;     /* a lease in its name that it has no room for: to be released */
    unsigned stray_job : 1;
    byte let_go[JOBS];      /* leases that it has let go of, while they may still stand */
}
Worker worker[WORKERS];

/* After an answer it goes on asking while the lost claim may still run. */
#if !ASK_AGAIN || MUTANT == MINE_ONCE
#define ASK_ON(w) NO
#elif TIMELY
#define ASK_ON(w) (worker[w].ask_left > 0 -> may : NO)
#else
#define ASK_ON(w) may
#endif

byte releases = RELEASES;
byte losses = LOSSES;
byte crashes = CRASHES;
byte cooling; /* TIMELY: ticks before which nothing may be lost that could cost a lease */

hidden byte i;
hidden byte nacks;
hidden byte losts;
hidden byte dones;
hidden byte target;

/* ---------------------------------------------------------------- the rest, and the start */

#include "store.pml"
#include "worker.pml"
#include "faults.pml"

#if LIVE
ltl ends { <> (row[0].is_terminal == 1) }
ltl recovers { [] (row[0].owner == DEAD -> <> (row[0].owner != DEAD)) }
#endif

init
{
    atomic {
        i = 0;
        do
        :: i < JOBS ->
            row[i].state = ready;
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < REAPER ->
            run Session(i);
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < WORKERS ->
#if LIVE
            /* Heartbeats must not keep the rest from its turn, nor the rest the heartbeats. */
            run Keeper(i, TAKES | HOLDS);
            run Keeper(i, RENEWS);
#else
            run Keeper(i, TAKES | HOLDS | RENEWS);
#endif
            run Faults(i);
            i++
        :: else -> break
        od;
        run Reaper();
        run Clock()
    }
}
