/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * error.c - the codes, their names and their texts, and the making of errors.
 * Owns:  the one table of codes; the library's version.
 * Never: allocates; logs; decides what a caller does about an error.
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct code_row {
    pawl_code code;
    const char *name;
    const char *text;
};

static const struct code_row code_rows[] = {
    {PAWL_OK, "OK", "it was done"},
    {PAWL_INVALID, "INVALID", "an argument is wrong; nothing was done"},
    {PAWL_NO_MEMORY, "NO_MEMORY", "memory ran out; nothing was done"},
    {PAWL_DOWN, "DOWN", "the store is away; nothing was done"},
    {PAWL_UNKNOWN, "UNKNOWN", "the reply was lost; it may or may not have been done"},
    {PAWL_FULL, "FULL", "a limit is reached; nothing was done"},
    {PAWL_BROKEN, "BROKEN", "a write failed; the handle must be opened again"},
    {PAWL_STALE, "STALE", "the lease is not, or no longer, the caller's"},
    {PAWL_GONE, "GONE", "there is no such job, or no memory of it any more"},
    {PAWL_EXISTS, "EXISTS", "a job with this id exists or has existed"},
    {PAWL_DUPLICATE, "DUPLICATE", "a live job holds the dedupe key"},
    {PAWL_CANCELLED, "CANCELLED", "the job is marked for cancellation"},
    {PAWL_TIMEOUT, "TIMEOUT", "the execution timeout has passed"},
    {PAWL_NOT_DUE, "NOT_DUE", "the job's due time has not come"},
    {PAWL_MISSED, "MISSED", "the job's start-by deadline has passed"},
    {PAWL_LEASED, "LEASED", "the job is under a lease"},
    {PAWL_NOT_LEASED, "NOT_LEASED", "the job is Ready: it is under no lease"},
    {PAWL_NOT_EXPIRED, "NOT_EXPIRED", "the lease is still valid"},
    {PAWL_ALREADY_SUCCEEDED, "ALREADY_SUCCEEDED", "the job has succeeded and stays so"},
    {PAWL_ALREADY_FAILED, "ALREADY_FAILED", "the job has failed: redrive it or discard it"},
    {PAWL_NOT_FAILED, "NOT_FAILED", "the job has not failed"},
    {PAWL_NOT_MISSED, "NOT_MISSED", "the job has no start-by deadline that has passed"},
    {PAWL_WL_ORDER, "WL_ORDER", "the offset is not the head of the backlog"},
    {PAWL_WL_NO_LEASE, "WL_NO_LEASE", "the domain has no lease"},
    {PAWL_WL_TOKEN, "WL_TOKEN", "the domain's lease is another's"},
    {PAWL_WL_BACKLOG_FULL, "WL_BACKLOG_FULL", "the backlog has reached its bound"},
    {PAWL_WL_EXPIRED, "WL_EXPIRED", "the lease has expired"},
    {PAWL_HAS_JOBS, "HAS_JOBS", "jobs are left in the endpoint's queue"},
};

static const struct code_row *find_code(pawl_code code)
{
    for (size_t i = 0; i < sizeof(code_rows) / sizeof(code_rows[0]); i++)
        if (code_rows[i].code == code)
            return &code_rows[i];
    return NULL;
}

const char *pawl_code_name(pawl_code code)
{
    const struct code_row *row = find_code(code);
    return row != NULL ? row->name : "?";
}

const char *pawl_code_text(pawl_code code)
{
    const struct code_row *row = find_code(code);
    return row != NULL ? row->text : "unknown code";
}

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

pawl_code pawli_fail(pawl_err *err, pawl_code code, const char *format, ...)
{
    assert(code != PAWL_OK);
    assert(format != NULL);

    if (err == NULL)
        return code;
    err->code = code;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    if (length < 0) /* the text could not be made: the code still says what happened */
        err->text[0] = '\0';
    return code;
}

pawl_code pawli_fail_plain(pawl_err *err, pawl_code code)
{
    return pawli_fail(err, code, "%s", pawl_code_text(code));
}
