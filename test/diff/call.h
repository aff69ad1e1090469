/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * call.h - one call of the port as the differential test makes it: chosen once, made on every
 * store, each answer written down as a text in which nothing is left that may differ between
 * stores.
 */
#ifndef PAWLT_DIFF_CALL_H
#define PAWLT_DIFF_CALL_H

#include "base/random.h"
#include "store/store_under_test.h"

#include <stdio.h>

#define DIFF_SIDES_MAX 3
#define DIFF_SLOTS     24 /* jobs that may live at once: few, so that calls meet */
#define DIFF_BATCH     4  /* rows of a call */
#define DIFF_PAGE      64 /* rows of a page, and of a claim */
#define DIFF_OLD_IDS   32
#define DIFF_QUEUES    3
#define DIFF_WORKERS   3
#define DIFF_KEYS      2 /* ordering keys, of one queue */

extern const char *const diff_queues[DIFF_QUEUES];
extern const char *const diff_workers[DIFF_WORKERS];
extern const char *const diff_keys[DIFF_KEYS];

/* Which queue has jobs with keys, and which may have a bound; where all stores can do that. Where a
 * job that has waited behind its key stands among others is the store's to choose: of the one queue
 * a claim therefore takes all that there is, and the other has no keys. */
#define DIFF_KEYED_QUEUE   1
#define DIFF_BOUNDED_QUEUE 0

enum diff_verb {
    DIFF_ENQUEUE,
    DIFF_CLAIM,
    DIFF_MINE,
    DIFF_RENEW,
    DIFF_SETTLE,
    DIFF_RELEASE,
    DIFF_REAP,
    DIFF_PRUNE,
    DIFF_GET,
    DIFF_LIST,
    DIFF_ATTEMPTS,
    DIFF_LEASES,
    DIFF_WORKER_SEEN,
    DIFF_WORKER_ENDED,
    DIFF_WORKERS_LIST,
    DIFF_STATS,
    DIFF_QUEUE_GET,
    DIFF_QUEUE_SET,
    DIFF_QUEUE_PAUSE,
    DIFF_CANCEL,
    DIFF_REDRIVE,
    DIFF_DISCARD,
    DIFF_CANCEL_WHERE,
    DIFF_REDRIVE_WHERE,
    DIFF_DISCARD_WHERE,
    DIFF_NOW,
    DIFF_VERBS
};

/* A lease as each store gave it: the tokens differ. */
struct grip {
    const char *worker;
    pawl_id job;
    int64_t version;
    pawl_token tokens[DIFF_SIDES_MAX];
    int64_t fences[DIFF_SIDES_MAX]; /* they differ, too */
};

struct call {
    enum diff_verb verb;
    bool is_flawed; /* something in it is wrong: PAWL_INVALID */
    const char *worker;
    const char *queue;
    size_t count; /* rows, ids, leases or lines */
    size_t max;   /* rows that may be given */
    pawl_enqueue_row rows[DIFF_BATCH];
    struct grip grips[DIFF_BATCH];
    pawl_renew_row renewals[DIFF_BATCH]; /* without the lease */
    pawl_settle_row settles[DIFF_BATCH]; /* without the lease */
    pawl_id ids[DIFF_BATCH];
    pawl_claim_line lines[DIFF_BATCH];
    int64_t bytes_max;
    pawl_filter filter;
    bool has_after;
    pawl_id after;
    const char *after_name;
    pawl_queue_settings settings;
    pawl_worker_seen seen;
    bool is_paused;
};

/* A store that takes part. */
struct side {
    size_t number;
    const struct store_kind *kind;
    struct place *place;
    pawl_store *store;
    int mutant; /* the deliberate bug that is on while this side is called; 0: none */
    char *text; /* the answer to the last call, or the picture of everything */
    size_t text_len;
};

/* A place for a job, which keeps its queue and its keys. */
struct slot {
    pawl_id id;       /* nil until used */
    struct grip grip; /* the last lease on it */
};

struct coverage; /* what was seen: see cover.c */

struct diff {
    struct side sides[DIFF_SIDES_MAX];
    size_t sides_count;
    int64_t shards;
    int64_t fences[DIFF_SIDES_MAX][DIFF_KEYS]; /* the highest so far */
    struct pawli_seeded seeded;
    pawl_random random;
    struct slot slots[DIFF_SLOTS];
    struct grip hand[DIFF_OLD_IDS]; /* leases that were had some time ago */
    size_t hand_count;
    pawl_id old_ids[DIFF_OLD_IDS]; /* jobs whose slot has another one now */
    size_t old_ids_count;
    pawl_job grants[DIFF_SIDES_MAX][DIFF_PAGE]; /* of the claim under way: ids and tokens */
    size_t grants_count[DIFF_SIDES_MAX];
    struct coverage *coverage;
};

/* ---- choose.c */

/* Choose the next call, by chance and by what the first store tells. */
void diff_choose(struct diff *diff, struct call *call);

/* How far time shall pass, in ms. */
int64_t diff_choose_age_ms(struct diff *diff);

bool diff_one_in(struct diff *diff, size_t bound);
size_t diff_below(struct diff *diff, size_t bound);

/* How many jobs of the first store a claim or a reap could recover now. One whose recovery makes
 * room for others counts twice. */
size_t diff_overdue(struct diff *diff);

/* ---- act.c */

/* Make the call on one store, and write its answer. */
void diff_act(struct diff *diff, struct side *side, const struct call *call, FILE *out);

/* ---- render.c */

const char *diff_verb_name(enum diff_verb verb);

/* The end of an id: enough to tell the jobs of a run apart. */
struct diff_short {
    char text[16];
};
struct diff_short diff_short_id(const pawl_id *id);

void diff_say_call(const struct call *call, FILE *out);
void diff_say_time(pawl_wall at, FILE *out); /* since the story began; "-" for none */
void diff_say_job(const struct diff *diff, const struct side *side, const pawl_job *job, FILE *out);
void diff_say_attempt(const pawl_attempt *row, FILE *out);
void diff_say_lease(const pawl_lease_info *row, FILE *out);
void diff_say_worker(const pawl_worker *row, FILE *out);
void diff_say_stats(const pawl_stats *row, FILE *out);
void diff_say_settings(const pawl_queue_settings *settings, FILE *out);

/* Everything that a store tells of itself. */
void diff_say_all(const struct diff *diff, const struct side *side, FILE *out);

/* ---- cover.c */

struct coverage *coverage_new(void); /* NULL: no memory */
void coverage_free(struct coverage *coverage);

/* `verb` was answered with `verdict`. */
void coverage_note(struct coverage *coverage, enum diff_verb verb, const char *verdict);

/* Whether all that must be met was met. */
bool coverage_is_full(const struct coverage *coverage);

/* The table, as comments of a TAP stream. */
void coverage_print(const struct coverage *coverage, FILE *out);

#endif
