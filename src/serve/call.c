/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * call.c - one request as those who carry it out see it.
 * Owns:  how what goes wrong becomes an answer.
 * Never: reads from or writes to a client.
 */
#include "serve/call.h"

#include "serve/claim.h"
#include "serve/enqueue.h"
#include "serve/json_write.h"
#include "serve/once.h"
#include "serve/route.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What comes with a body, or changes something, has no parameters: one that is there was meant for
 * something else. (Payloads have: their options stand nowhere else.) */
static pawl_code check_params(struct pawli_call *call)
{
    if (strcmp(call->route->method, "GET") == 0 || call->route->body == PAWLI_BODY_BYTES ||
        call->uri->params_count == 0)
        return PAWL_OK;
    return pawli_fail(&call->err, PAWL_INVALID,
                      "the parameter %.60s is not known here; there is none",
                      call->uri->params[0].name);
}

pawl_code pawli_call_run(struct pawli_call *call)
{
    assert(call->route != NULL);
    assert(call->answer != NULL);

    call->err = (pawl_err){.code = PAWL_OK};
    pawl_code code = check_params(call);
    if (code == PAWL_OK)
        code = pawli_once_has_key(call) ? pawli_once_run(call) : call->route->run(call);
    if (code != PAWL_OK)
        pawli_answer_code(call->answer, code, &call->err);
    assert(call->is_waiting || call->answer->status != 0 || !call->is_last);
    return code;
}

void pawli_call_refuse(struct pawli_call *call, enum pawli_problem problem, const char *why)
{
    call->has_ended = true;
    if (call->lines == 0) {
        pawli_answer_problem(call->answer, problem, "%s", why);
        return;
    }
    (void)pawli_fail(&call->err, problem == PAWLI_PROBLEM_TOO_LARGE ? PAWL_INVALID : PAWL_DOWN,
                     "%s", why);
    pawli_enqueue_lines_end(call);
}

void pawli_call_fail(struct pawli_call *call, pawl_code code)
{
    call->has_ended = true;
    call->err.code = code;
    if (call->lines == 0)
        pawli_answer_code(call->answer, code, &call->err);
    else
        pawli_enqueue_lines_end(call);
}

void pawli_call_clear(struct pawli_call *call)
{
    pawli_claiming_free(call->claiming);
    call->claiming = NULL;
    free(call->listening);
    call->listening = NULL;
}

const char *pawli_call_header(const struct pawli_call *call, const char *name)
{
    for (size_t i = 0; i < call->headers_count; i++)
        if (strcasecmp(call->headers[i].name, name) == 0)
            return call->headers[i].value;
    return NULL;
}

bool pawli_call_may(struct pawli_call *call, const char *queue)
{
    if (queue != NULL && pawli_grant_has_queue(call->grant, queue))
        return true;
    if (queue == NULL && pawli_grant_has_all_queues(call->grant))
        return true;
    if (queue == NULL)
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_FORBIDDEN,
                             "the token is for some queues only: say which queue");
    else
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_FORBIDDEN,
                             "the token is not for the queue %.128s", queue);
    return false;
}

bool pawli_call_may_job(struct pawli_call *call, const pawl_job *job)
{
    if (pawli_grant_has_queue(call->grant, job->queue))
        return true;
    pawli_answer_problem(call->answer, PAWLI_PROBLEM_FORBIDDEN,
                         "the token is not for the queue of this job");
    return false;
}

void pawli_call_json(struct pawli_call *call, unsigned status, struct pawli_writer *ret_writer)
{
    call->answer->status = status;
    call->answer->type = "application/json";
    call->answer->body.len = 0;
    pawli_writer_init(ret_writer, &call->answer->body);
}

pawl_code pawli_call_done(struct pawli_call *call, const struct pawli_writer *writer)
{
    if (!writer->has_failed)
        return PAWL_OK;
    if (strcmp(call->route->method, "GET") == 0)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    return pawli_fail(&call->err, PAWL_UNKNOWN, "it was done, but memory ran out for the answer");
}
