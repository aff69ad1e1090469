/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue_one.c - puts one job into a queue, with its payload as the body; and many such requests,
 *                 which have come at the same time, in one transaction.
 * Owns:  that what is wrong with one of them is told to that one alone.
 * Never: answers before the transaction has ended; looks into a payload.
 */
#include "serve/enqueue.h"

#include "serve/api.h"

#include "base/error.h"
#include "store/check.h"
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>

/* Read one. False: its answer is there, or *ret_code is what to tell. */
static bool read_one(struct pawli_call *call, struct pawli_job_row *job, pawl_code *ret_code)
{
    pawli_job_row_init(job);
    job->row.queue = call->captures[0];
    *ret_code = PAWL_OK;
    if (!pawli_call_may(call, job->row.queue))
        return false;
    *ret_code = pawli_fields_query(&pawli_job_options, call->uri, job, &call->err);
    if (*ret_code == PAWL_OK)
        *ret_code = pawli_content_of_call(call, &job->content);
    return *ret_code == PAWL_OK;
}

static pawl_code answer_one(struct pawli_call *call, const pawl_enqueued *result)
{
    struct pawli_writer writer;
    if (result->code == PAWL_OK)
        pawli_call_changed(call, &result->id, call->captures[0], "Ready");
    pawli_call_json(call, result->code == PAWL_OK ? 201 : 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_enqueue_put(&writer, result);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

static pawl_code send_one(struct pawli_call *call, const struct pawli_job_row *job)
{
    pawl_enqueue_row row = pawli_job_row_whole(job);
    pawl_enqueued result;
    pawl_code code = pawli_enqueue_send(call, &row, 1, &result);
    return code == PAWL_OK ? answer_one(call, &result) : code;
}

pawl_code pawli_api_enqueue(struct pawli_call *call)
{
    struct pawli_job_row job;
    pawl_code code;
    if (read_one(call, &job, &code))
        code = send_one(call, &job);
    pawli_job_row_clear(&job);
    return code;
}

/* ---------------------------------------------------------------- many of them together */

static void tell(struct pawli_call *call, pawl_code code)
{
    if (code != PAWL_OK)
        pawli_answer_code(call->answer, code, &call->err);
}

/* Those that are good, each with its call, and room for what the store says of them. */
struct together {
    struct pawli_job_row *jobs;
    struct pawli_call **calls;
    pawl_enqueue_row *rows;
    pawl_enqueued *results;
    size_t count;
};

static bool make_room(struct together *all, size_t count)
{
    all->jobs = calloc(count, sizeof(*all->jobs));
    all->calls = calloc(count, sizeof(struct pawli_call *));
    all->rows = calloc(count, sizeof(*all->rows));
    all->results = calloc(count, sizeof(*all->results));
    return all->jobs != NULL && all->calls != NULL && all->rows != NULL && all->results != NULL;
}

static void clear(struct together *all)
{
    for (size_t i = 0; i < all->count; i++)
        pawli_job_row_clear(&all->jobs[i]);
    free(all->jobs);
    free(all->calls);
    free(all->rows);
    free(all->results);
}

/* Add one, where nothing is wrong with it; else it has its answer. */
static void add(struct together *all, struct pawli_call *call)
{
    struct pawli_job_row *job = &all->jobs[all->count];
    pawl_code code;
    call->err = (pawl_err){.code = PAWL_OK};
    bool is_good = read_one(call, job, &code);
    if (is_good) {
        const pawl_enqueue_row whole = pawli_job_row_whole(job);
        code = pawli_check_enqueue(&call->store->limits, &whole, 1, &call->err);
        is_good = code == PAWL_OK;
    }
    if (!is_good) {
        pawli_job_row_clear(job);
        tell(call, code);
        return;
    }
    all->calls[all->count] = call;
    all->rows[all->count] = pawli_job_row_whole(job);
    all->count++;
}

/*
 * The store refused all of them, and has done nothing: one may be the reason, and the others must
 * not suffer for it. A store that is away is not asked again for each.
 */
static size_t send_each(struct together *all)
{
    for (size_t i = 0; i < all->count; i++)
        tell(all->calls[i], send_one(all->calls[i], &all->jobs[i]));
    return all->count;
}

pawl_code pawli_enqueue_together(struct pawli_call *const *calls, size_t count, size_t *ret_asked)
{
    struct together all = {.count = 0};
    pawl_code code = PAWL_OK;
    *ret_asked = 0;
    assert(count > 0 && count <= PAWLI_TOGETHER_MAX);
    if (!make_room(&all, count)) {
        for (size_t i = 0; i < count; i++)
            tell(calls[i], pawli_fail_plain(&calls[i]->err, PAWL_NO_MEMORY));
        clear(&all);
        return PAWL_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        add(&all, calls[i]);
    if (all.count > 0) {
        struct pawli_call *first = all.calls[0];
        code = pawli_enqueue_send(first, all.rows, all.count, all.results);
        const pawl_err err = first->err;
        *ret_asked = 1;
        bool is_one_to_blame = all.count > 1 && (code == PAWL_INVALID || code == PAWL_FULL);
        if (is_one_to_blame)
            *ret_asked += send_each(&all);
        for (size_t i = 0; !is_one_to_blame && i < all.count; i++) {
            all.calls[i]->err = err;
            tell(all.calls[i], code == PAWL_OK ? answer_one(all.calls[i], &all.results[i]) : code);
        }
    }
    clear(&all);
    return code;
}
