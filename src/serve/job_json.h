/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job_json.h - a job as JSON; pages of rows; filters.
 */
#ifndef PAWLI_SERVE_JOB_JSON_H
#define PAWLI_SERVE_JOB_JSON_H

#include "serve/call.h"
#include "serve/fields.h"
#include "serve/json_write.h"

/* What of a job is told. */
enum pawli_job_view {
    PAWLI_VIEW_PLAIN = 0, /* neither payload, nor headers, nor token */
    PAWLI_VIEW_GRANT      /* all that its worker needs */
};

/* As an object of an array. */
void pawli_put_job(struct pawli_writer *writer, const pawl_job *job, enum pawli_job_view view);

/* The members alone, of an object that is open. */
void pawli_put_job_members(struct pawli_writer *writer, const pawl_job *job,
                           enum pawli_job_view view);

/* ---- filters */

/* Which jobs, as a request says it. */
struct pawli_wanted {
    const char *queue;
    const char *state; /* names, with commas between */
    const char *reason;
    const char *worker;
    const char *ordering_key;
    const char *after; /* an id, or a name */
    int64_t limit;
};

/* The fields of a filter, at the beginning of a structure. */
#define PAWLI_WANTED(field_)                                                                \
    {                                                                                       \
#field_, PAWLI_FIELD_TEXT, offsetof(struct pawli_wanted, field_), 0, 0, false, NULL \
    }
#define PAWLI_WANTED_FIELDS                                                                     \
    PAWLI_WANTED(ordering_key), PAWLI_WANTED(queue), PAWLI_WANTED(reason), PAWLI_WANTED(state), \
        PAWLI_WANTED(worker)

/* PAWL_INVALID names what is no state or no reason. */
pawl_code pawli_wanted_filter(const struct pawli_wanted *wanted, pawl_filter *ret_filter,
                              pawl_err *err);

/* ---- pages */

#define PAWLI_PAGE_LIMIT     100  /* rows, where nothing is said */
#define PAWLI_PAGE_LIMIT_MAX 1000 /* at most */

/* The end of a page: `next` is what to pass as `after`, null where there is no more. */
void pawli_put_next_id(struct pawli_writer *writer, const pawl_id *last, bool has_more);
void pawli_put_next_name(struct pawli_writer *writer, const char *last, bool has_more);

/* Read `after` as an id. *ret_after is NULL where there is none. */
pawl_code pawli_after_id(const char *text, pawl_id *room, const pawl_id **ret_after, pawl_err *err);

#endif
