/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * problem.c - how a failure is told.
 * Owns:  the types of problems and their status, which never change their meaning.
 * Never: tells a payload, a token, or what a client sent beyond names of fields.
 */
#include "serve/problem.h"

#include "serve/json_write.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TYPE          "application/problem+json"
#define DETAIL_MAX    512
#define RETRY_AFTER_S 1 /* of what may work in a moment */

static const struct {
    const char *type;
    unsigned status;
    const char *title;
    int retry_after_s;
} problems[PAWLI_PROBLEMS] = {
    [PAWLI_PROBLEM_BAD_REQUEST] = {"bad-request", 400, "the request is malformed", 0},
    [PAWLI_PROBLEM_NOT_FOUND] = {"no-such-path", 404, "there is no such path", 0},
    [PAWLI_PROBLEM_METHOD] = {"method", 405, "the path has other methods", 0},
    [PAWLI_PROBLEM_UNAUTHORIZED] = {"unauthorized", 401, "a valid token is needed", 0},
    [PAWLI_PROBLEM_FORBIDDEN] = {"forbidden", 403, "the token is not for this", 0},
    [PAWLI_PROBLEM_WRONG_HOST] = {"wrong-host", 403, "the request was meant for another host", 0},
    [PAWLI_PROBLEM_TOO_LARGE] = {"too-large", 413, "the body is too large", 0},
    [PAWLI_PROBLEM_MEDIA_TYPE] = {"media-type", 415, "the body is of another type", 0},
    [PAWLI_PROBLEM_CHANGED] = {"changed", 412, "it has changed since", 0},
    [PAWLI_PROBLEM_KEY_USED] = {"key-used", 422, "the key was used for another request", 0},
    [PAWLI_PROBLEM_UNDER_WAY] = {"under-way", 409, "the same request is under way", RETRY_AFTER_S},
    [PAWLI_PROBLEM_BUSY] = {"busy", 503, "a limit of the server is reached", RETRY_AFTER_S},
    [PAWLI_PROBLEM_DRAINING] = {"draining", 503, "the server is about to end", 5},
    [PAWLI_PROBLEM_NOT_READY] = {"not-ready", 503, "the server is not ready", RETRY_AFTER_S},
};

/* By its place among these, the codes of the library; the type is the name as URNs have them. */
static const struct {
    pawl_code code;
    const char *type;
    unsigned status;
} codes[] = {
    {PAWL_INVALID, "invalid", 400},
    {PAWL_NO_MEMORY, "no-memory", 503},
    {PAWL_DOWN, "down", 503},
    {PAWL_UNKNOWN, "unknown", 504},
    {PAWL_FULL, "full", 507},
    {PAWL_BROKEN, "broken", 503},
    {PAWL_STALE, "stale", 409},
    {PAWL_GONE, "gone", 404},
    {PAWL_EXISTS, "exists", 409},
    {PAWL_DUPLICATE, "duplicate", 409},
    {PAWL_CANCELLED, "cancelled", 409},
    {PAWL_TIMEOUT, "timeout", 409},
    {PAWL_NOT_DUE, "not-due", 409},
    {PAWL_MISSED, "missed", 409},
    {PAWL_LEASED, "leased", 409},
    {PAWL_NOT_LEASED, "not-leased", 409},
    {PAWL_NOT_EXPIRED, "not-expired", 409},
    {PAWL_ALREADY_SUCCEEDED, "already-succeeded", 409},
    {PAWL_ALREADY_FAILED, "already-failed", 409},
    {PAWL_NOT_FAILED, "not-failed", 409},
    {PAWL_NOT_MISSED, "not-missed", 409},
    {PAWL_WL_ORDER, "wl-order", 409},
    {PAWL_WL_NO_LEASE, "wl-no-lease", 409},
    {PAWL_WL_TOKEN, "wl-token", 409},
    {PAWL_WL_BACKLOG_FULL, "wl-backlog-full", 409},
    {PAWL_WL_EXPIRED, "wl-expired", 409},
    {PAWL_HAS_JOBS, "has-jobs", 409},
};
#define CODES_COUNT (sizeof(codes) / sizeof(codes[0]))

void pawli_answer_clear(struct pawli_answer *answer)
{
    pawli_buffer_clear(&answer->body);
    *answer = (struct pawli_answer){0};
}

struct telling {
    const char *type;
    const char *title;
    const char *detail;
    const char *code; /* NULL: none */
};

static void tell(struct pawli_answer *answer, const struct telling *telling)
{
    struct pawli_writer writer;
    char type[64];
    answer->body.len = 0;
    answer->type = TYPE;
    answer->payload_type[0] = '\0';
    answer->etag[0] = '\0';
    answer->problem = telling->type;
    (void)snprintf(type, sizeof(type), PAWLI_PROBLEM_PREFIX "%s", telling->type); /* fits */
    pawli_writer_init(&writer, &answer->body);
    pawli_put_object(&writer, NULL);
    pawli_put_text(&writer, "type", type);
    pawli_put_text(&writer, "title", telling->title);
    pawli_put_number(&writer, "status", answer->status);
    if (telling->detail[0] != '\0')
        pawli_put_text(&writer, "detail", telling->detail);
    if (telling->code != NULL)
        pawli_put_text(&writer, "code", telling->code);
    pawli_put_object_end(&writer);
    if (writer.has_failed)
        answer->body.len = 0; /* the status tells enough */
}

void pawli_answer_problem(struct pawli_answer *answer, enum pawli_problem problem,
                          const char *format, ...)
{
    char detail[DETAIL_MAX];
    va_list args;
    assert(problem >= 0 && problem < PAWLI_PROBLEMS);
    va_start(args, format);
    (void)vsnprintf(detail, sizeof(detail), format, args); /* cut where it is long */
    va_end(args);
    answer->status = problems[problem].status;
    answer->retry_after_s = problems[problem].retry_after_s;
    const struct telling telling = {problems[problem].type, problems[problem].title, detail, NULL};
    tell(answer, &telling);
}

void pawli_answer_code(struct pawli_answer *answer, pawl_code code, const pawl_err *err)
{
    size_t at = 0;
    while (at < CODES_COUNT && codes[at].code != code)
        at++;
    answer->status = pawli_code_status(code);
    answer->retry_after_s = answer->status == 503 ? RETRY_AFTER_S : 0;
    answer->code = code;
    /* A test sees to it that every code is in the table. */
    const struct telling telling = {at < CODES_COUNT ? codes[at].type : "error",
                                    pawl_code_text(code), err != NULL ? err->text : "",
                                    pawl_code_name(code)};
    tell(answer, &telling);
}

unsigned pawli_code_status(pawl_code code)
{
    for (size_t i = 0; i < CODES_COUNT; i++)
        if (codes[i].code == code)
            return codes[i].status;
    return code == PAWL_OK ? 200 : 500;
}

bool pawli_problem_at(size_t n, const char **ret_type, unsigned *ret_status)
{
    if (n < PAWLI_PROBLEMS) {
        *ret_type = problems[n].type;
        *ret_status = problems[n].status;
        return true;
    }
    n -= PAWLI_PROBLEMS;
    if (n >= CODES_COUNT)
        return false;
    *ret_type = codes[n].type;
    *ret_status = codes[n].status;
    return true;
}
