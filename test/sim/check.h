/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check.h - the checker: reads a history and proves that the promises were kept in it, or says
 * which was not, for which job, when and why.
 *
 * Two kinds of history are read:
 *  - exact: one history, whose calls stand in the order in which the store did them, with the
 *    store's clock (store_at). The simulator writes such ones. Every answer of the store is held
 *    against what a store must answer.
 *  - loose: histories of real runs, several of them merged by one shared clock. Calls were timed by
 *    the callers, overlap, and may have ended in PAWL_UNKNOWN: then both are possible, that they
 *    were done and that they were not. Fewer things can be proved; none is claimed wrongly.
 *
 * What a history cannot show is not held against it: a claim recovers expired leases and missed
 * deadlines on its way without naming them, and changes by filter name no jobs. Where the final
 * ledgers are in the history, they tell.
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "pawl/pawl.h"

#include <stdio.h>

/* X(number, name, what it says) */
#define CHECK_RULES(X)                                                                           \
    X(C1, "none-lost", "an acknowledged job is never lost")                                      \
    X(C2, "one-lease", "one valid lease per job at a time, by the store's clock")                \
    X(C3, "no-stale-write", "nothing is accepted under a lease that is not current and valid")   \
    X(C4, "one-completion", "at most one completion of a job is accepted")                       \
    X(C5, "terminal-stays", "a terminal job stays as it is, but for redrive")                    \
    X(C6, "bounds", "retries and lost leases are counted and bounded")                           \
    X(C7, "ledger", "the ledger has exactly the rows that the calls imply, without gaps")        \
    X(C8, "version", "the lease version rises by one with each claim")                           \
    X(C9, "expired-only", "a lease is recovered only when it has expired")                       \
    X(C10, "healthy-keeps", "a worker that nothing disturbs loses no lease and misses no beat")  \
    X(C11, "not-at-risk", "nothing is started, sent, settled or released under a lease at risk") \
    X(C12, "abort-first", "after a pause, what is at risk is aborted before anything else")      \
    X(C13, "lost-claim", "a lost reply to a claim costs no lease: the worker asks")              \
    X(C14, "idle-starts", "ready work meets an idle worker within the poll interval")            \
    X(C15, "recovered-in-time", "an expired lease is recovered within the reaper's interval")    \
    X(C16, "counts", "jobs enqueued are jobs listed and jobs pruned")                            \
    X(C17, "results", "what a handler did is what is settled; stopped work is not")              \
    X(C18, "due", "a job is claimed only when it is due, and becomes due when it should")        \
    X(C19, "no-overlap", "no job runs twice under leases that are both valid")                   \
    X(C20, "cause", "every abort has its cause, and ends that job's work and no other")          \
    X(C21, "word", "what a worker takes for a job's end is what the store said")                 \
    X(C22, "fair-answers", "nothing valid is refused, and answers fit the job's state")          \
    X(C23, "renewal", "a renewal extends, never shortens, and ends with cancel and timeout")     \
    X(C24, "never-again", "an id that exists is not accepted again")                             \
    X(C25, "fresh-tokens", "every claim of every job has a token of its own")                    \
    X(C26, "drained", "a history that must drain ends with every job terminal")                  \
    X(C27, "paused", "a paused queue gives nothing")                                             \
    X(C28, "clean-stop", "a worker that shuts down claims nothing, gives back, and is in time")  \
    X(C29, "key-alone", "one valid lease per ordering key at a time, by the store's clock")      \
    X(C30, "key-order", "a job starts after all that came before it under its ordering key")     \
    X(C31, "fence-rises", "each claim under an ordering key has a higher fence than all before") \
    X(C32, "in-flight", "a queue never has more jobs in flight than its bound")

enum check_rule {
    CHECK_NONE = 0,
#define X(number, name, text) CHECK_##number,
    CHECK_RULES(X)
#undef X
    CHECK_RULES_COUNT
};

/* "C3", "no-stale-write" and the sentence above; "?" for a number that is none. */
const char *check_rule_number(enum check_rule rule);
const char *check_rule_name(enum check_rule rule);
const char *check_rule_text(enum check_rule rule);

/* Zeroed: a loose history of unknown settings; what needs a setting is then not checked. */
struct check_options {
    bool is_exact;         /* see above */
    bool is_complete;      /* it must end with a list of everything and the ledger of every job */
    bool must_drain;       /* C26 */
    int64_t drift_ppm;     /* how far the rates of any two clocks may differ */
    int64_t round_trip_ms; /* the longest that a call takes while nothing is broken */
    int64_t reaper_ms;     /* C15: the longest from an expiry to the next reap; 0: not checked */
    int64_t recover_ms;    /* C13: the longest from a lost claim to the leases being found; 0: not
                              checked */
    int64_t calm_ms; /* C14: how long after FAULTS_OFF all workers are back at their usual pace */
    uint64_t unchecked; /* bits UINT64_C(1) << CHECK_C...: what this run cannot be held to */
};

#define CHECK_TEXT_MAX       240
#define CHECK_VIOLATIONS_MAX 32 /* the first so many are kept; all are counted */

struct check_violation {
    enum check_rule rule;
    pawl_id job; /* nil where it is about none */
    int64_t version;
    pawl_mono at;
    char text[CHECK_TEXT_MAX];
};

struct check_report {
    struct check_violation violations[CHECK_VIOLATIONS_MAX];
    size_t kept;
    size_t violations_count;           /* of all */
    bool is_broken[CHECK_RULES_COUNT]; /* which rules */
    bool is_cut;                       /* a history was cut off; what came before was checked */

    /* What was looked at. */
    size_t records;
    size_t jobs;
    size_t leases;
    size_t expiries;
    size_t starts;
    int64_t slowest_us; /* C15: the longest that a lease was overdue, while nothing hindered */
};

struct check_part {
    const uint8_t *bytes;
    size_t len;
};

/*
 * Check histories, merged by the time of their records. PAWL_OK: *ret_report says what was found,
 * which may be violations. PAWL_INVALID: a history is malformed (err has the offset), or an exact
 * one has several parts. PAWL_NO_MEMORY.
 */
pawl_code check_histories(const struct check_part *parts, size_t parts_count,
                          const struct check_options *options, struct check_report *ret_report,
                          pawl_err *err);

/* The same for one. */
pawl_code check_history(const uint8_t *bytes, size_t len, const struct check_options *options,
                        struct check_report *ret_report, pawl_err *err);

/* Print the violations, a line each. */
void check_report_print(const struct check_report *report, FILE *out);

#endif
