/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * crash.h - the crash test: real processes at work on a real store, killed at random.
 */
#ifndef PAWLT_CRASH_H
#define PAWLT_CRASH_H

#include "base/random.h"
#include "crash/pen.h"
#include "sim/check.h"

#include "support/pg_server.h"

#include <sys/types.h>

/* ---- stores.c: what is killed and what stays */

/* What can be done to a server. */
enum crash_trouble {
    CRASH_TERMINATE_BACKENDS = 0, /* some connections are ended */
    CRASH_KILL_BACKEND,           /* one of its processes is killed: all begin again */
    CRASH_KILL_POSTMASTER,        /* all of it is killed */
    CRASH_STOP_AT_ONCE,           /* it is stopped without a checkpoint */
    CRASH_TROUBLES
};

/* A durable store of the test's own. One implementation for each kind. */
struct crash_kind {
    const char *name;
    /* Make it in a folder, and say in `where` how a client finds it. */
    bool (*begin)(const char *folder, char where[PEN_PATH_MAX]);
    /* A handle, one per process; NULL: it is away. And what is left when it has been closed. */
    pawl_store *(*open)(const char *where);
    void (*shut)(void);
    /* Break something of the store itself, and mend it. NULL: there is nothing but clients. */
    bool (*trouble)(enum crash_trouble trouble);
    /* Its server; NULL: it has none. */
    const struct pg_server *(*server)(void);
    /* Run SQL on it, to break a rule of it. NULL: it cannot. */
    bool (*spoil)(const char *sql);
    void (*end)(void);
};

/* Remove a folder and all that is in it. */
void crash_remove_folder(const char *folder);

/* NULL: there is none of that name. */
const struct crash_kind *crash_kind_named(const char *name);

/* ---- client.c: the processes that are killed */

enum crash_role {
    CRASH_PRODUCER,
    CRASH_WORKER,
    CRASH_REAPER,
    CRASH_OPERATOR,
    CRASH_ROLES
};

const char *crash_role_name(enum crash_role role);

struct client {
    const struct crash_kind *kind;
    const char *where;
    enum crash_role role;
    bool is_early; /* broken on purpose: a producer acknowledges before the store has answered */
    size_t early_count;
    bool is_slow; /* works for longer than its leases last, quite often */
    struct pawli_seeded seeded;
    pawl_random random;
    struct pen pen;
};

/* An early producer acknowledges so many, and never comes to enqueue the last of them: whether one
 * is killed between the two is chance. */
#define CRASH_EARLY_JOBS 20

/* Work until standard input ends. */
void client_run(struct client *client, const char *folder, const char *actor);

/* Claim and complete what there is, until nothing is left or it takes too long. For the end. */
bool client_drain(struct pen *pen);

#define CRASH_QUEUES 2
extern const char *const crash_queues[CRASH_QUEUES];

/* One of so many ordering keys, or NULL: most jobs have none. The text lasts. */
const char *crash_draw_key(const pawl_random *random);

/* ---- director.c: the process that kills */

struct crash_plan {
    const struct crash_kind *kind;
    uint64_t seed;
    size_t kills;
    const char *spoil; /* a file of SQL that breaks the store; NULL: none */
    bool is_early;     /* producers are broken: see above */
};

/* Run the whole, and print TAP. Gives how many of its tests failed. Where something was broken on
 * purpose, the one test is that it was found. */
int crash_direct(const struct crash_plan *plan);

/* ---- judge.c: what must hold afterwards */

struct verdicts {
    size_t jobs, succeeded, failed; /* in the store */
    size_t acked;                   /* by the producers' own files */
    size_t lost;                    /* acked, and not there */
    size_t live;                    /* neither Succeeded nor Failed */
    size_t gaps;                    /* ledgers that are not numbered from 1, or not to the end */
    size_t twice;      /* jobs with a completion too many, or one that is not the last */
    size_t unanswered; /* calls that were under way when their process was killed */
    bool is_read;      /* all of it could be read */
    bool is_kept;      /* the checker of the simulator found nothing */
    bool is_broken[CHECK_RULES_COUNT]; /* the rules by which it did */
};

/* Read everything back through the pen, which writes it into the history; then check that. What is
 * wrong is told to standard output, as comments of a TAP stream. */
struct verdicts judge(struct pen *pen, const char *folder, const struct check_options *options);

#endif
