/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sim_check_keys_test.c - the checker's rules between jobs: of one ordering key, and of one queue;
 * on exact histories, and on those of real runs.
 * Owns:  the stories.
 * Never: needs a store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/story.h"

#define A "worker-a"
#define B "worker-b"

/* Jobs of one key, enqueued one after the other. */
static void enqueue_keyed(struct tale *t, int jobs_count)
{
    for (int i = 0; i < jobs_count; i++) {
        t->jobs[i].key = "k";
        tale_enqueue(t, i);
        tale_pass(t, 10);
    }
}

static void run(struct tale *t, const char *worker, int job)
{
    tale_claim(t, worker, job);
    tale_pass(t, 10);
    tale_settle(t, worker, job, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_pass(t, 10);
}

/* ---------------------------------------------------------------- C29 */

/* Redriven by filter: nothing tells behind whom it stands, but that it was not alone. */
static void bend_where(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)row;
    call->is_where = true;
    call->rows_count = 0;
    call->count = 1;
    call->subject = TALE_QUEUE;
}

static void c29_alone(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    tale_cancel(t, 0);
    tale_claim(t, A, 1);
    if (!is_bad)
        tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    t->bend = bend_where;
    tale_redrive(t, 0);
    tale_claim(t, B, 0);
    if (is_bad)
        tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* An expired lease holds nothing, to the microsecond. */
static void c29_expired(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    tale_cancel(t, 0);
    tale_claim(t, A, 1);
    tale_cancel(t, 1); /* marked: its expiry ends it */
    t->bend = bend_where;
    tale_redrive(t, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_pass_us(t, is_bad ? -1 : 0);
    tale_claim(t, B, 0);
    tale_pass_us(t, 1);
    tale_reap(t, 1, PAWL_REASON_CANCELLED);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* ---------------------------------------------------------------- C30 */

/* RES-7: a retry keeps the key. */
static void c30_overtaken(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    tale_claim(t, A, 0);
    tale_pass(t, 10);
    tale_settle(t, A, 0, PAWL_RETRY, 0);
    tale_pass(t, 10);
    run(t, B, is_bad ? 1 : 0);
    run(t, B, is_bad ? 0 : 1);
}

/* A cancelled first one lets the next through, and not before that. */
static void c30_cancelled(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    if (is_bad)
        run(t, A, 1);
    tale_cancel(t, 0);
    tale_pass(t, 10);
    if (!is_bad)
        run(t, A, 1);
}

/* A redriven job comes behind the others. */
static void c30_redriven(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    tale_cancel(t, 0);
    tale_redrive(t, 0);
    run(t, A, is_bad ? 0 : 1);
    run(t, A, is_bad ? 1 : 0);
}

/* Rows of one call come in their order. */
static void c30_batch(struct tale *t, bool is_bad)
{
    struct pawli_trace_row rows[2];
    for (int i = 0; i < 2; i++) {
        t->jobs[i].key = "k";
        t->jobs[i].state = PAWL_READY;
        t->jobs[i].is_hidden = false;
        t->jobs[i].due_at = tale_wall(t);
        rows[i] = (struct pawli_trace_row){.job = t->jobs[i].id,
                                           .queue = TALE_QUEUE,
                                           .ordering_key = "k",
                                           .start_within_ms = PAWL_DEFAULT,
                                           .max_retries = t->jobs[i].max_retries,
                                           .backoff_base_ms = PAWL_DEFAULT,
                                           .backoff_max_ms = PAWL_DEFAULT};
    }
    pawli_trace_call(t->writer, &(struct pawli_trace_record){.verb = PAWLI_VERB_ENQUEUE,
                                                             .actor = "producer",
                                                             .at = {t->now_us},
                                                             .until = {t->now_us},
                                                             .store_at = tale_wall(t),
                                                             .rows = rows,
                                                             .rows_count = 2});
    run(t, A, is_bad ? 1 : 0);
    run(t, A, is_bad ? 0 : 1);
}

/* ---------------------------------------------------------------- C31 */

static void bend_fence(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->fence--;
}

static void c31_reused(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    run(t, A, 0);
    t->bend = is_bad ? bend_fence : NULL;
    run(t, A, 1);
}

static void bend_any_fence(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->fence = 77;
}

static void c31_without_a_key(struct tale *t, bool is_bad)
{
    tale_enqueue(t, 0);
    t->bend = is_bad ? bend_any_fence : NULL;
    run(t, A, 0);
}

static void c31_mine(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 1);
    tale_claim(t, A, 0);
    t->bend = is_bad ? bend_any_fence : NULL;
    tale_mine(t, A, 0);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* ---------------------------------------------------------------- C32 */

static void c32_bound(struct tale *t, bool is_bad)
{
    tale_queue_bound(t, 1);
    tale_enqueue(t, 0);
    tale_enqueue(t, 1);
    tale_pass(t, 10);
    tale_claim(t, A, 0);
    tale_pass(t, 10);
    if (!is_bad)
        tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_pass(t, 10);
    tale_claim(t, B, 1);
    tale_pass(t, 10);
    if (is_bad)
        tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_settle(t, B, 1, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Lowered, it takes nothing back; but nothing is added until there is room. */
static void c32_lowered(struct tale *t, bool is_bad)
{
    tale_queue_bound(t, 2);
    for (int i = 0; i < 3; i++)
        tale_enqueue(t, i);
    tale_claim(t, A, 0);
    tale_claim(t, A, 1);
    tale_queue_bound(t, 1);
    tale_settle(t, A, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    if (!is_bad)
        tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_claim(t, B, 2);
    if (is_bad)
        tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_settle(t, B, 2, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* An expiry makes room. */
static void c32_expired(struct tale *t, bool is_bad)
{
    tale_queue_bound(t, 1);
    tale_enqueue(t, 0);
    tale_enqueue(t, 1);
    tale_claim(t, A, 0);
    tale_pass(t, TALE_LEASE_MS);
    tale_pass_us(t, is_bad ? -1 : 0);
    tale_claim(t, B, 1);
    tale_pass_us(t, 1);
    tale_settle(t, B, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_reap(t, 0, PAWL_REASON_EXPIRED);
    tale_cancel(t, 0);
}

/* ---------------------------------------------------------------- C14 */

/* Who waits behind a key does not wait for a worker, until it is the first. */
static void c14_behind_its_key(struct tale *t, bool is_bad)
{
    tale_up(t, A);
    t->jobs[0].key = t->jobs[1].key = "k";
    tale_enqueue(t, 2);
    tale_work(t, A, 2); /* it serves the queue */
    tale_done(t, A, 2);
    tale_enqueue(t, 0);
    tale_claim(t, B, 0);
    tale_enqueue(t, 1);
    tale_note(t, PAWLI_NOTE_FAULTS_OFF, "", 0);
    tale_pass(t, 5000); /* calm_ms, and much more than a poll */
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_pass(t, TALE_POLL_MS + 30 + (is_bad ? 5 : 0));
    tale_work(t, A, 1);
    tale_done(t, A, 1);
}

static const struct story stories[] = {
    STORY(C29, c29_alone),          STORY(C29, c29_expired),       STORY(C30, c30_overtaken),
    STORY(C30, c30_cancelled),      STORY(C30, c30_redriven),      STORY(C30, c30_batch),
    STORY(C31, c31_reused),         STORY(C31, c31_without_a_key), STORY(C31, c31_mine),
    STORY(C32, c32_bound),          STORY(C32, c32_lowered),       STORY(C32, c32_expired),
    STORY(C14, c14_behind_its_key),
};

static void every_story(void **state)
{
    (void)state;
    stories_tell(stories, sizeof(stories) / sizeof(stories[0]));
}

/* ---------------------------------------------------------------- overlapping calls */

/* Two of one key granted by one claim, or by two that did not overlap with the settle. */
static void loose_c29(struct tale *t, bool is_bad)
{
    t->takes_us = 5000;
    enqueue_keyed(t, 2);
    tale_cancel(t, 0); /* by a cancellation: when it came, and so the order, is open */
    tale_pass(t, 10);
    tale_claim(t, A, 1);
    tale_pass(t, 10);
    t->bend = bend_where;
    tale_redrive(t, 0);
    tale_pass(t, 10);
    tale_claim(t, B, 0);
    tale_pass(t, is_bad ? 6 : 4); /* overlapping, the settle may have come first */
    tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_pass(t, 10);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* A settle without an answer may have been done. */
static void loose_c29_unknown(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    tale_cancel(t, 0);
    tale_pass(t, 10);
    tale_claim(t, A, 1);
    tale_pass(t, 10);
    if (!is_bad) {
        t->call_code = PAWL_UNKNOWN;
        tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    }
    tale_pass(t, 10);
    t->bend = bend_where;
    tale_redrive(t, 0);
    tale_pass(t, 10);
    tale_claim(t, B, 0);
    tale_pass(t, 10);
    tale_settle(t, A, 1, PAWL_SUCCEED, PAWL_DEFAULT);
    tale_settle(t, B, 0, PAWL_SUCCEED, PAWL_DEFAULT);
}

/* Enqueues that overlapped may stand in either order. */
static void loose_c30_overlapping(struct tale *t, bool is_bad)
{
    t->takes_us = 5000;
    t->jobs[0].key = t->jobs[1].key = "k";
    tale_enqueue(t, 0);
    tale_pass(t, is_bad ? 6 : 4);
    tale_enqueue(t, 1);
    tale_pass(t, 10);
    run(t, A, 1);
    tale_pass(t, 10);
    run(t, A, 0);
}

/* One that never ends keeps all others waiting. */
static void loose_c30_never_ended(struct tale *t, bool is_bad)
{
    enqueue_keyed(t, 2);
    if (!is_bad)
        run(t, A, 0);
    run(t, A, 1);
}

static void bend_second_fence(struct pawli_trace_record *call, struct pawli_trace_row *row)
{
    (void)call;
    row->fence = 1;
}

/* Claims that overlapped may have drawn in either order. */
static void loose_c31(struct tale *t, bool is_bad)
{
    t->takes_us = 5000;
    enqueue_keyed(t, 2);
    t->fences = 10;
    run(t, A, 0);
    tale_pass(t, 10);
    t->bend = is_bad ? bend_second_fence : NULL;
    run(t, A, 1);
}

static const struct story loose_stories[] = {
    STORY(C29, loose_c29),     STORY(C29, loose_c29_unknown),     STORY(C30, c30_overtaken),
    STORY(C30, c30_cancelled), STORY(C30, loose_c30_overlapping), STORY(C30, loose_c30_never_ended),
    STORY(C31, loose_c31),     STORY(C31, c31_without_a_key),     STORY(C31, c31_mine),
    STORY(C32, c32_bound),
};

static void every_loose_story(void **state)
{
    (void)state;
    stories_tell_loose(loose_stories, sizeof(loose_stories) / sizeof(loose_stories[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_story),
        cmocka_unit_test(every_loose_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
