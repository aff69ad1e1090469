/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * api.h - those who carry out requests, by the names of their routes: see route.h and call.h.
 */
#ifndef PAWLI_SERVE_API_H
#define PAWLI_SERVE_API_H

#include "serve/call.h"

/* enqueue_one.c */
pawl_code pawli_api_enqueue(struct pawli_call *call);

/* enqueue.c */
pawl_code pawli_api_enqueue_many(struct pawli_call *call);
pawl_code pawli_api_enqueue_lines(struct pawli_call *call);

/* changes.c */
pawl_code pawli_api_changes(struct pawli_call *call);

/* publish.c */
pawl_code pawli_api_publish(struct pawli_call *call);
pawl_code pawli_api_publish_many(struct pawli_call *call);

/* endpoints.c */
pawl_code pawli_api_endpoints(struct pawli_call *call);
pawl_code pawli_api_endpoint(struct pawli_call *call);
pawl_code pawli_api_endpoint_add(struct pawli_call *call);
pawl_code pawli_api_endpoint_set(struct pawli_call *call);
pawl_code pawli_api_endpoint_rotate(struct pawli_call *call);
pawl_code pawli_api_endpoint_disable(struct pawli_call *call);
pawl_code pawli_api_endpoint_enable(struct pawli_call *call);
pawl_code pawli_api_endpoint_remove(struct pawli_call *call);
pawl_code pawli_api_endpoint_test(struct pawli_call *call);

/* lease.c */
pawl_code pawli_api_renew(struct pawli_call *call);
pawl_code pawli_api_renew_one(struct pawli_call *call);
pawl_code pawli_api_settle(struct pawli_call *call);
pawl_code pawli_api_settle_one(struct pawli_call *call);
pawl_code pawli_api_release(struct pawli_call *call);
pawl_code pawli_api_release_one(struct pawli_call *call);

/* jobs.c */
pawl_code pawli_api_jobs(struct pawli_call *call);
pawl_code pawli_api_job(struct pawli_call *call);
pawl_code pawli_api_payload(struct pawli_call *call);
pawl_code pawli_api_attempts(struct pawli_call *call);

/* holders.c */
pawl_code pawli_api_leases(struct pawli_call *call);
pawl_code pawli_api_workers(struct pawli_call *call);

/* change.c */
pawl_code pawli_api_cancel(struct pawli_call *call);
pawl_code pawli_api_cancel_one(struct pawli_call *call);
pawl_code pawli_api_redrive(struct pawli_call *call);
pawl_code pawli_api_redrive_one(struct pawli_call *call);
pawl_code pawli_api_discard(struct pawli_call *call);
pawl_code pawli_api_discard_one(struct pawli_call *call);

/* queues.c */
pawl_code pawli_api_queues(struct pawli_call *call);
pawl_code pawli_api_queue(struct pawli_call *call);
pawl_code pawli_api_queue_set(struct pawli_call *call);
pawl_code pawli_api_queue_stats(struct pawli_call *call);
pawl_code pawli_api_stats(struct pawli_call *call);
pawl_code pawli_api_pause(struct pawli_call *call);
pawl_code pawli_api_resume(struct pawli_call *call);

/* worklease.c */
pawl_code pawli_api_worklease_acquire(struct pawli_call *call);
pawl_code pawli_api_worklease_succeed(struct pawli_call *call);
pawl_code pawli_api_worklease_fail(struct pawli_call *call);
pawl_code pawli_api_worklease_renew(struct pawli_call *call);
pawl_code pawli_api_workleases(struct pawli_call *call);
pawl_code pawli_api_worklease(struct pawli_call *call);
pawl_code pawli_api_worklease_backlog(struct pawli_call *call);
pawl_code pawli_api_worklease_terminal(struct pawli_call *call);

/* health.c */
pawl_code pawli_api_livez(struct pawli_call *call);
pawl_code pawli_api_readyz(struct pawli_call *call);
pawl_code pawli_api_metrics(struct pawli_call *call);

#endif
