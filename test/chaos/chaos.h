/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * chaos.h - the chaos test: real producers, workers and reapers at work on a real store, while a
 * director kills and stops them, cuts their connections, turns their clocks, and kills the store.
 *
 * It is built on the crash test: stores, pens, and the judge are that one's.
 */
#ifndef PAWLT_CHAOS_H
#define PAWLT_CHAOS_H

#include "base/random.h"
#include "chaos/control.h"
#include "crash/crash.h"
#include "support/pg_proxy.h"

#define CHAOS_LEASE_MS     2000
#define CHAOS_REAPER_MS    1000
#define CHAOS_PARALLEL     8
#define CHAOS_BUFFER       16
#define CHAOS_SHELL        "shell" /* the queue of `pawl work` */
#define CHAOS_EFFECTS      "effects"
#define CHAOS_PROXIES      2
#define CHAOS_CHILDREN     12
#define CHAOS_TEXT_MAX     (4 * PEN_PATH_MAX)
#define CHAOS_SCHEDULE_MAX 100000

/* ---- what goes wrong */

enum chaos_trouble {
    CHAOS_KILL = 0,      /* SIGKILL of a worker */
    CHAOS_KILL_PRODUCER, /* and of a producer */
    CHAOS_PAUSE,         /* SIGSTOP of a worker, 0.5 to 5 leases */
    CHAOS_PARTITION,     /* through the proxy, in each way */
    CHAOS_BACKEND,       /* a process of the server is killed */
    CHAOS_POSTMASTER,    /* the server is killed */
    CHAOS_JUMP,          /* a worker's clock jumps */
    CHAOS_FULL,          /* the disk is full */
    CHAOS_TROUBLES
};

/* When a worker is stopped. The first four: with such a call under way. */
enum chaos_phase {
    CHAOS_CLAIMING = 0,
    CHAOS_SETTLING,
    CHAOS_RENEWING,
    CHAOS_REAPING,
    CHAOS_RUNNING, /* a handler */
    CHAOS_IDLE,
    CHAOS_ENDING, /* told to shut down */
    CHAOS_PHASES
};

struct chaos_plan {
    const struct crash_kind *kind;
    uint64_t seed;
    double minutes;
    size_t jobs; /* to be acknowledged */
    size_t troubles[CHAOS_TROUBLES];
    const char *pawl;     /* the program */
    const char *preload;  /* the library; NULL: none, and no troubles that need it */
    const char *spoil;    /* a file of SQL that breaks the store; NULL: none */
    int mutant;           /* workers are broken: enum pawli_mutant; 0: they are not */
    size_t rounds_left;   /* in which it may be seen, after this one */
    const char *expected; /* the rule that is then broken, "C3" ...; NULL: none must be */
};

/* ---- children.c: the processes */

enum chaos_part {
    CHAOS_WORKER = 0, /* of this program, and keeps a history */
    CHAOS_COMMAND,    /* pawl work */
    CHAOS_PRODUCER,
    CHAOS_REAPER,   /* of this program, and keeps a history */
    CHAOS_WATCH,    /* pawl reap --watch */
    CHAOS_OPERATOR, /* of the crash test */
    CHAOS_PARTS
};

/* What a process that lives through it all uses. */
struct vitals {
    long rss_kb, threads, fds;
};

struct child {
    enum chaos_part part;
    bool is_survivor; /* is never killed */
    pid_t pid;        /* 0: none */
    int stdin_fd;     /* closed: it shall end; -1: it is told otherwise */
    size_t proxy;
    char actor[PEN_NAME_MAX];
    struct chaos_control *control;
    int64_t started_ms;
    int64_t resume_ms;             /* it is stopped until then; 0: it is not */
    bool is_lock_held;             /* and stands in everybody's way */
    bool is_leaving;               /* told to end, and to be replaced */
    size_t handles[CHAOS_RUNNING]; /* by the phase in which they are used: the last one known */
    struct vitals warm;            /* the most that it used before the middle of the play */
};

struct director {
    struct chaos_plan plan;
    struct pawli_seeded seeded;
    pawl_random random;
    char folder[PEN_PATH_MAX];
    char where[PEN_PATH_MAX];                 /* past the proxies */
    char through[CHAOS_PROXIES][PG_PATH_MAX]; /* through each of them */
    struct pg_proxy *proxies[CHAOS_PROXIES];
    int64_t heal_ms[CHAOS_PROXIES]; /* 0: it is whole */
    struct child children[CHAOS_CHILDREN];
    size_t started;
    size_t downs;          /* reasons for which the store does not answer now */
    int64_t full_until_ms; /* 0: the disk has room */
    bool is_stocked;       /* there are jobs enough */
    int64_t began_ms;
    int64_t refused; /* by disks of processes that have ended */
    int64_t jumped;
    size_t done[CHAOS_TROUBLES];
    size_t phases[CHAOS_PHASES];
    size_t breaks[PG_BREAKS];
    bool is_failed; /* something of the test itself could not be done */
    struct pen pen;
};

int64_t chaos_now_ms(void);
const char *chaos_part_name(enum chaos_part part);

/* Which of them is at a place, and whether it lives through it all. */
enum chaos_part children_part(size_t place, bool *ret_is_survivor);

/* Not of this program. It does not wait for a store that is away when it begins: it ends with
 * EX_UNAVAILABLE, and whoever has started it does so again. */
bool children_is_pawl(const struct child *child);

void children_start(struct director *director, size_t place);

/* It was killed, or has ended by itself: wait for that, note it, and begin another one in its
 * place. True: it was killed. */
bool children_replace(struct director *director, size_t place);

/* Tell all to end, and wait for them. */
void children_end(struct director *director);

/* Its name at the store, where it keeps a history and has come that far; else "". */
void children_name(const struct director *director, const struct child *child,
                   char name[PAWL_NAME_MAX + 1]);

/* Whether it is in a phase now, as far as its files tell. */
bool children_is_in(const struct director *director, struct child *child, enum chaos_phase phase);

struct vitals children_vitals(const struct child *child);

/* ---- troubles.c */

/* Let one thing go wrong: the `number`th of its kind. False: nobody was there whom it could hit. */
bool trouble_make(struct director *director, enum chaos_trouble trouble, size_t number);

/* End what has lasted long enough; all of it where `is_over`. */
void trouble_mend(struct director *director, bool is_over);

/* ---- director.c */

/* Chance decides whether what is broken on purpose shows: it was not seen, and there are rounds
 * left in which it may be. */
#define CHAOS_AGAIN (-1)

/* Run the whole, and print TAP. Gives how many of its tests failed, or CHAOS_AGAIN. */
int chaos_direct(const struct chaos_plan *plan);

/* ---- report.c */

struct chaos_found {
    struct verdicts verdicts;
    bool is_drained;
    size_t effects; /* runs that programs told of */
    size_t unseen;  /* jobs that a program completed without having told of it */
    size_t grown;   /* processes that use more than they did */
};

/* What the programs of `pawl work` have told. */
void chaos_read_effects(struct director *director, struct chaos_found *found);

int chaos_report(const struct director *director, const struct chaos_found *found);

/* ---- worker.c, producer.c: what the processes of this program do, until standard input ends */

struct chaos_role {
    const struct crash_kind *kind;
    const char *actor;
    const char *where;
    const char *folder;
    uint64_t seed;
    int64_t rate; /* producers: jobs per second */
    int mutant;
};

/* The control of this process. Ends it where there is none. */
struct chaos_control *worker_control(void);

int worker_run(const struct chaos_role *role);
int reaper_run(const struct chaos_role *role);
int producer_run(const struct chaos_role *role);

#endif
