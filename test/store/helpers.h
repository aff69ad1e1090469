/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * helpers.h - the small verbs that the cases are told in. A verb that does something fails the case
 * where the call as a whole fails, and gives back the verdict of its one row; what begins with
 * expect_ asserts, and names the line of the case.
 *
 * Jobs that verbs give out belong to the stage and live until the case is over.
 */
#ifndef PAWLT_STORE_HELPERS_H
#define PAWLT_STORE_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pawl/metrics.h"
#include "pawl/pawl.h"
#include "store/store_under_test.h"
#include "store/suite.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* The queue's lease where no case says otherwise, as pawl.h promises it. */
#define LEASE (30 * SECOND)

/* ---------------------------------------------------------------- the stage */

/* What a case plays on: a fresh store, a handle, and what must be tidied up afterwards. */
struct stage {
    const struct store_kind *kind;
    struct place *place;
    pawl_store
        *store; /* the handle that the verbs use: a case may put another of its handles here */
    int64_t shards;
    int64_t aged_us; /* by how much stored instants were shifted so far */
    pawl_job **jobs; /* every job that a verb gave out */
    size_t jobs_count;
    void **scraps; /* further memory of the case */
    size_t scraps_count;
    pawl_store *handles[8]; /* every open handle, the one in use among them */
    size_t handles_count;
};

struct stage *stage_raise(const struct store_kind *kind, int64_t shards);
void stage_strike(struct stage *s); /* accepts NULL */

/* Memory, zeroed, that the stage frees. */
void *stage_memory(struct stage *s, size_t size);

/* A further handle on the same store, closed with the stage. */
pawl_store *stage_handle(struct stage *s);

/* Close every handle, start a durable store again, and open a handle anew. */
void stage_reopen(struct stage *s);

/* Take over a job that a call gave out, so that the stage clears it. */
const pawl_job *stage_keep(struct stage *s, const pawl_job *job);

/* ---------------------------------------------------------------- time */

void age(struct stage *s, int64_t ms);

pawl_wall now(struct stage *s);

/*
 * An instant that the store tells now, as microseconds of the story: it stays the same number
 * however often the store is aged in between.
 */
int64_t story_us(const struct stage *s, pawl_wall at);

/* ---------------------------------------------------------------- producing */

pawl_enqueue_row row_for(const char *queue); /* a row with a small payload and no wishes */
pawl_enqueued try_put(struct stage *s, const pawl_enqueue_row *row); /* the verdict */
pawl_id put_row(struct stage *s, const pawl_enqueue_row *row);       /* must be OK */
pawl_id put(struct stage *s, const char *queue);
pawl_id new_id(struct stage *s, const pawl_enqueue_row *row);

/* Change a queue: read the settings, change what the case wants, set them. */
pawl_queue_settings settings_of(struct stage *s, const char *queue);
void set_settings(struct stage *s, const char *queue, const pawl_queue_settings *settings);
void set_lease(struct stage *s, const char *queue, int64_t lease_ms);
void set_bounds(struct stage *s, const char *queue, int64_t max_retries, int64_t max_lost_leases);
void pause_queue(struct stage *s, const char *queue, bool is_paused);

/* ---------------------------------------------------------------- working */

struct batch {
    const pawl_job **jobs;
    size_t count;
};

struct batch claim(struct stage *s, const pawl_claim_args *args, size_t jobs_max);
struct batch take_up_to(struct stage *s, const char *queue, const char *worker, int64_t jobs_max);
const pawl_job *take(struct stage *s, const char *queue, const char *worker); /* exactly one */
const pawl_job *take_for(struct stage *s, const char *queue, const char *worker, int64_t lease_ms);
struct batch mine(struct stage *s, const char *worker);

pawl_lease lease_of(const pawl_job *job);

pawl_renewed renew(struct stage *s, const pawl_job *job); /* by the queue's lease */
pawl_renewed renew_for(struct stage *s, const pawl_job *job, int64_t lease_ms);
pawl_renewed renew_row(struct stage *s, const char *worker, const pawl_renew_row *row);

pawl_settle_row settle_row_for(const pawl_job *job, pawl_settle_action action);
pawl_settled settle_row(struct stage *s, const char *worker, const pawl_settle_row *row);
pawl_settled settle(struct stage *s, const pawl_job *job, pawl_settle_action action); /* delay 0 */
pawl_settled succeed(struct stage *s, const pawl_job *job);
pawl_settled fail_for_good(struct stage *s, const pawl_job *job);
pawl_settled retry_in(struct stage *s, const pawl_job *job, int64_t delay_ms);
pawl_settled snooze_for(struct stage *s, const pawl_job *job, int64_t delay_ms);

pawl_code release(struct stage *s, const pawl_job *job);
pawl_code release_lease(struct stage *s, const char *worker, const pawl_lease *lease);

/* ---------------------------------------------------------------- operating */

struct reaped {
    const pawl_reaped *rows;
    size_t count;
};

struct reaped reap_up_to(struct stage *s, size_t rows_max);
const pawl_reaped *reap_one(struct stage *s); /* exactly one */
size_t prune(struct stage *s);

const pawl_job *look(struct stage *s, pawl_id id); /* by get */
bool is_gone(struct stage *s, pawl_id id);
struct batch list(struct stage *s, const pawl_filter *filter); /* all pages */
const pawl_attempt *ledger(struct stage *s, pawl_id id, size_t *ret_count);
pawl_stats stats_of(struct stage *s, const char *queue); /* zeroed where the queue is not told */

pawl_changed cancel(struct stage *s, pawl_id id);
pawl_changed redrive(struct stage *s, pawl_id id);
pawl_changed discard(struct stage *s, pawl_id id);

/* ---------------------------------------------------------------- short stories */

/* A job of `queue` that ended in this way, by worker "w". */
pawl_id put_succeeded(struct stage *s, const char *queue);
pawl_id put_failed(struct stage *s, const char *queue);

/* Claim the queue's one job and let the lease run out; nobody has recovered it yet. */
const pawl_job *take_and_lose(struct stage *s, const char *queue, const char *worker);

/* ---------------------------------------------------------------- expectations */

struct here {
    const char *file;
    int line;
};
#define HERE ((struct here){__FILE__, __LINE__})

/* Fail the case at `here`, with a text. */
void complain(struct here here, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

void check_true(struct here here, bool condition, const char *text);
void check_code(struct here here, pawl_code actual, pawl_code wanted);
void check_state(struct here here, struct stage *s, pawl_id id, pawl_state wanted);
void check_number(struct here here, const char *what, int64_t actual, int64_t wanted);
void check_near(struct here here, struct stage *s, pawl_wall at, int64_t ms);
void check_ledger(struct here here, struct stage *s, pawl_id id, const char *wanted);
void check_nothing(struct here here, struct stage *s, const char *queue);
void check_id(struct here here, pawl_id actual, pawl_id wanted);
void check_batch(struct here here, struct batch actual, const pawl_id *wanted, size_t count);

#define expect_code(actual, wanted)   check_code(HERE, (actual), (wanted))
#define expect_state(s, id, wanted)   check_state(HERE, (s), (id), (wanted))
#define expect_number(actual, wanted) check_number(HERE, #actual, (int64_t)(actual), (wanted))
#define expect_true(condition)        check_true(HERE, (condition), #condition)
#define expect_id(actual, wanted)     check_id(HERE, (actual), (wanted))

/* The instant lies `ms` after the store's now (before it, where negative), give or take the slack.
 */
#define expect_near(s, at, ms) check_near(HERE, (s), (at), (ms))

/*
 * The job's ledger reads so: outcome and reason of each row, as "RETRYABLE error, DISPATCHED", ""
 * where it is empty. Also: the rows are numbered from 1 without gaps, and the job tells their
 * number and the last one's reason (RES-12).
 */
#define expect_ledger(s, id, wanted) check_ledger(HERE, (s), (id), (wanted))

/* A claim of the queue gives nothing. It leaves what it finds expired recovered. */
#define expect_nothing(s, queue) check_nothing(HERE, (s), (queue))

/* The batch holds exactly these jobs, in this order. */
#define expect_batch(batch, ...)                               \
    check_batch(HERE, (batch), (const pawl_id[]){__VA_ARGS__}, \
                sizeof((const pawl_id[]){__VA_ARGS__}) / sizeof(pawl_id))

/* ---------------------------------------------------------------- pictures */

/* All that the store tells of one job, its ledger and its token included. */
struct picture {
    const pawl_job *job;
    pawl_token token; /* zero where it is under no valid lease */
    const pawl_attempt *rows;
    size_t rows_count;
};

/* Take it, and later compare: nothing of the job has changed. Never across an age. */
struct picture picture_of(struct stage *s, pawl_id id);
void check_unchanged(struct here here, struct stage *s, const struct picture *before);
#define expect_unchanged(s, picture) check_unchanged(HERE, (s), (picture))

#endif
