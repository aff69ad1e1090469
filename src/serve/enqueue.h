/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.h - what the ways of enqueueing have in common.
 */
#ifndef PAWLI_SERVE_ENQUEUE_H
#define PAWLI_SERVE_ENQUEUE_H

#include "serve/content.h"
#include "serve/fields.h"
#include "serve/json_write.h"

#define PAWLI_TOGETHER_MAX 1000 /* enqueues of one job each in one transaction */

/* A job as a request says it. */
struct pawli_job_row {
    pawl_enqueue_row row; /* without payload and headers: see pawli_job_row_whole() */
    struct pawli_content content;
};

void pawli_job_row_init(void *row);
void pawli_job_row_clear(struct pawli_job_row *row);

/* The row as the library takes it: borrowed from `row`. */
pawl_enqueue_row pawli_job_row_whole(const struct pawli_job_row *row);

/* The options of a job, as fields of a pawli_job_row; the macro for tables that have more. */
extern const struct pawli_fields pawli_job_options;

/*
 * Enqueue rows. Ids that are nil are minted first, so that a call whose reply was lost is repeated
 * here: nobody else can have used an id that was made here, so EXISTS then means that the first try
 * did it. The ids of a request with an Idempotency-Key (call->once) are the same in each try.
 */
pawl_code pawli_enqueue_send(struct pawli_call *call, pawl_enqueue_row *rows, size_t count,
                             pawl_enqueued *ret_results);

void pawli_enqueue_put(struct pawli_writer *writer, const pawl_enqueued *result);

/* Of a stream whose lines so far have their answers: the next one is not taken, for what call->err
 * says, and none behind it. */
void pawli_enqueue_lines_end(struct pawli_call *call);

/*
 * Carry out requests to enqueue one job each (their routes' handler is pawli_api_enqueue), all in
 * one transaction: every call has its answer afterwards. What is wrong with one is told to that one
 * alone. All have the same store. Gives what the store said, and how often it was asked.
 */
pawl_code pawli_enqueue_together(struct pawli_call *const *calls, size_t count, size_t *ret_asked);

#endif
