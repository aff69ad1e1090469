/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - what those around a worker need of it beside pawl/worker.h: its doings recorded, for
 * those who check histories; and its log, for what they have to tell.
 */
#ifndef PAWLI_RUNTIME_WORKER_H
#define PAWLI_RUNTIME_WORKER_H

#include "pawl/worker.h"
#include "runtime/hands.h"
#include "store/trace.h"

/* pawl_worker_start(), with notes of what it does in `notes` (borrowed until it has ended; used
 * under the worker's lock; NULL: none). */
pawl_code pawli_worker_start(const pawl_worker_options *options, struct pawli_trace_writer *notes,
                             pawl_runner **ret_runner, pawl_err *err);

/*
 * The same with hands of another kind: options->handler is none of theirs, and queues_count may be
 * 0 where they add some.
 */
pawl_code pawli_worker_start_with(const pawl_worker_options *options,
                                  const struct pawli_hands_maker *maker, pawl_runner **ret_runner,
                                  pawl_err *err);

/* It serves a queue of this lease from now on: the smallest one bounds its shutdown, and how often
 * it reaps. From any thread. */
void pawli_worker_lease(pawl_runner *runner, int64_t lease_ms);

/* Put an event in line behind the worker's own; `at` and `worker` are filled in here. */
void pawli_worker_tell(pawl_runner *runner, const pawl_event *event);

#endif
