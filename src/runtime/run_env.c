/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run_env.c - what a program finds in its environment.
 * Owns:  the variables that tell its job and the headers of it; which trace it goes on with.
 * Never: hands on what is told of another job, where this process is itself a program at work; uses
 *        a span twice, whatever a header says.
 */
#include "runtime/run_env.h"

#include "pawl/headers.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* ---- traces */

/* traceparent, version 00: "00-", a trace of 32 digits, a span of 16, flags of 2. Later versions
 * begin in the same way. */
#define TRACE_AT     3
#define TRACE_LEN    32
#define SPAN_AT      36
#define SPAN_LEN     16
#define FLAGS_AT     53
#define FLAGS_LEN    2
#define PARENT_LEN   55
#define FLAGS_OURS   "01" /* where there is no trace to go on with: sampled */
#define FLAG_SAMPLED 1

static bool is_digits(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") >= len;
}

static bool is_zeros(const char *text, size_t len)
{
    return strspn(text, "0") >= len;
}

struct trace {
    char id[TRACE_LEN + 1];
    char flags[FLAGS_LEN + 1];
};

/* The trace that a header names. False: there is none, or it is not valid, and so counts as none.
 */
static bool take_trace(const pawl_job_ctx *ctx, struct trace *ret_trace)
{
    size_t len;
    const char *parent = pawl_job_header(ctx, "traceparent", &len);
    if (parent == NULL || len < PARENT_LEN || !is_digits(parent, 2) ||
        strncmp(parent, "ff", 2) == 0 || parent[TRACE_AT - 1] != '-' ||
        !is_digits(parent + TRACE_AT, TRACE_LEN) || is_zeros(parent + TRACE_AT, TRACE_LEN) ||
        parent[SPAN_AT - 1] != '-' || !is_digits(parent + SPAN_AT, SPAN_LEN) ||
        is_zeros(parent + SPAN_AT, SPAN_LEN) || parent[FLAGS_AT - 1] != '-' ||
        !is_digits(parent + FLAGS_AT, FLAGS_LEN))
        return false;
    bool is_first_version = strncmp(parent, "00", 2) == 0;
    if (len > PARENT_LEN && (is_first_version || parent[PARENT_LEN] != '-'))
        return false;
    memcpy(ret_trace->id, parent + TRACE_AT, TRACE_LEN);
    ret_trace->id[TRACE_LEN] = '\0';
    memcpy(ret_trace->flags, parent + FLAGS_AT, FLAGS_LEN);
    ret_trace->flags[FLAGS_LEN] = '\0';
    if (!is_first_version) { /* what else a later version's flags say is not known */
        bool is_sampled = (strtoul(ret_trace->flags, NULL, 16) & FLAG_SAMPLED) != 0;
        memcpy(ret_trace->flags, is_sampled ? "01" : "00", FLAGS_LEN + 1);
    }
    return true;
}

/* All attempts of a job are one trace: the one that it came with, else one of its own. */
static struct trace trace_of(const pawl_job_ctx *ctx)
{
    const pawl_job *job = pawl_job_of(ctx);
    struct trace trace = {.flags = FLAGS_OURS};
    if (take_trace(ctx, &trace))
        return trace;
    for (size_t i = 0; i < sizeof(job->id.bytes); i++)
        (void)snprintf(trace.id + 2 * i, 3, "%02x", job->id.bytes[i]);
    return trace;
}

/* ---- the job */

static const char *const names[PAWLI_RUN_VARIABLES] = {
    "PAWL_JOB_ID",  "PAWL_QUEUE",         "PAWL_ORDERING_KEY", "PAWL_FENCE",
    "PAWL_ATTEMPT", "PAWL_LEASE_VERSION", "PAWL_DEADLINE",     "TRACEPARENT"};

static void fill_variables(struct pawli_run_env *env, pawl_job_ctx *ctx)
{
    const pawl_job *job = pawl_job_of(ctx);
    char id[PAWL_ID_TEXT_MAX];
    struct trace trace = trace_of(ctx);
    const pawl_clock *clock = pawl_clock_system();
    int64_t deadline_us = clock->wall(clock->user).us + pawl_job_left_ms(ctx) * 1000;
    const pawl_random *random = pawl_random_system();
    size_t size = PAWLI_RUN_VARIABLE_MAX; /* more than any of them needs */
    (void)snprintf(env->variables[0], size, "%s=%s", names[0], pawl_id_format(&job->id, id));
    (void)snprintf(env->variables[1], size, "%s=%s", names[1], job->queue);
    (void)snprintf(env->variables[2], size, "%s=%s", names[2], job->ordering_key);
    (void)snprintf(env->variables[3], size, "%s=%" PRId64, names[3], pawl_job_fence(ctx));
    (void)snprintf(env->variables[4], size, "%s=%" PRId64, names[4], pawl_job_attempt(ctx));
    (void)snprintf(env->variables[5], size, "%s=%" PRId64, names[5], job->lease_version);
    (void)snprintf(env->variables[6], size, "%s=%" PRId64, names[6], deadline_us / 1000000);
    /* The span is this run's own; never all zeros. */
    (void)snprintf(env->variables[7], size, "%s=00-%s-%016" PRIx64 "-%s", names[7], trace.id,
                   random->next(random->user) | 1, trace.flags);
}

/* ---- headers */

#define PREFIX_LEN (sizeof(PAWLI_HEADER_PREFIX) - 1)

static char as_variable(char byte)
{
    if (byte >= 'a' && byte <= 'z')
        return (char)(byte - 'a' + 'A');
    bool is_kept = (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    return is_kept ? byte : '_';
}

/* Write one as a variable, with its closing NUL. Gives its length with that. */
static size_t put_header(char *to, const pawl_header *header)
{
    char *at = to;
    memcpy(at, PAWLI_HEADER_PREFIX, PREFIX_LEN);
    at += PREFIX_LEN;
    for (size_t i = 0; i < header->name_len; i++)
        *at++ = as_variable(header->name[i]);
    *at++ = '=';
    memcpy(at, header->value, header->value_len);
    at += header->value_len;
    *at++ = '\0';
    return (size_t)(at - to);
}

/* Whether one of the variables from `first` to `end` has the name of the one at `end`. */
static bool is_taken(const char *first, const char *end)
{
    size_t name_size = strcspn(end, "=") + 1;
    for (const char *at = first; at < end; at += strlen(at) + 1)
        if (strncmp(at, end, name_size) == 0)
            return true;
    return false;
}

/* False: no memory. *ret_count: how many variables there are. */
static bool fill_headers(struct pawli_run_env *env, const pawl_job *job, size_t *ret_count)
{
    pawl_header header;
    size_t size = 0;
    *ret_count = 0;
    for (const char *at = job->headers; pawl_headers_next(&at, &header);)
        size += PREFIX_LEN + header.name_len + 1 + header.value_len + 1;
    if (size == 0)
        return true;
    env->headers = malloc(size);
    if (env->headers == NULL)
        return false;
    char *end = env->headers;
    for (const char *at = job->headers; pawl_headers_next(&at, &header);) {
        size_t more = put_header(end, &header);
        if (is_taken(env->headers, end))
            continue; /* the first counts; this one is written over */
        end += more;
        ++*ret_count;
    }
    assert(end <= env->headers + size);
    return true;
}

/* ---- all of it */

static bool is_replaced(const char *variable)
{
    for (size_t i = 0; i < PAWLI_RUN_VARIABLES; i++) {
        size_t len = strlen(names[i]);
        if (strncmp(variable, names[i], len) == 0 && variable[len] == '=')
            return true;
    }
    return strncmp(variable, PAWLI_HEADER_PREFIX, PREFIX_LEN) == 0;
}

bool pawli_run_env_init(struct pawli_run_env *env, pawl_job_ctx *ctx)
{
    size_t count = 0;
    size_t headers_count = 0;
    env->headers = NULL;
    env->envp = NULL;
    fill_variables(env, ctx);
    while (environ != NULL && environ[count] != NULL)
        count++;
    if (fill_headers(env, pawl_job_of(ctx), &headers_count))
        env->envp = calloc(count + PAWLI_RUN_VARIABLES + headers_count + 1, sizeof(char *));
    if (env->envp == NULL) {
        errno = ENOMEM;
        return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environ[i]))
            env->envp[at++] = environ[i];
    for (size_t i = 0; i < PAWLI_RUN_VARIABLES; i++)
        env->envp[at++] = env->variables[i];
    char *header = env->headers;
    for (size_t i = 0; i < headers_count; i++, header += strlen(header) + 1)
        env->envp[at++] = header;
    return true;
}

void pawli_run_env_clear(struct pawli_run_env *env)
{
    free(env->headers);
    free(env->envp);
    env->headers = NULL;
    env->envp = NULL;
}
