/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * router.c - finds the route of a request.
 * Owns:  how paths are compared; what is said where nothing fits.
 * Never: does I/O; looks into a body.
 */
#include "serve/route.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* Whether the path fits the pattern, part by part. */
static bool fits(const char *pattern, const struct pawli_uri *uri,
                 const char *ret_captures[PAWLI_CAPTURES_MAX])
{
    size_t captures = 0;
    size_t part = 0;
    const char *at = pattern;
    while (*at == '/') {
        const char *from = at + 1;
        size_t len = strcspn(from, "/");
        at = from + len;
        if (part >= uri->segments_count || part >= PAWLI_SEGMENTS_MAX)
            return false;
        const char *segment = uri->segments[part++];
        if (*from == '{') {
            assert(captures < PAWLI_CAPTURES_MAX);
            if (segment[0] == '\0')
                return false;
            ret_captures[captures++] = segment;
        } else if (strlen(segment) != len || memcmp(segment, from, len) != 0) {
            return false;
        }
    }
    return part == uri->segments_count;
}

static bool is_method(const char *method, const struct pawli_route *route)
{
    bool is_head = strcmp(method, "HEAD") == 0;
    return strcmp(is_head ? "GET" : method, route->method) == 0;
}

const struct pawli_route *pawli_route_find(const char *method, const struct pawli_uri *uri,
                                           const char *ret_captures[PAWLI_CAPTURES_MAX],
                                           struct pawli_answer *answer)
{
    char allow[PAWLI_ALLOW_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; i < pawli_routes_count; i++) {
        const struct pawli_route *route = &pawli_routes[i];
        const char *captures[PAWLI_CAPTURES_MAX] = {0};
        if (!fits(route->path, uri, captures))
            continue;
        if (is_method(method, route)) {
            memcpy(ret_captures, captures, sizeof(captures));
            return route;
        }
        if (len < sizeof(allow))
            len += (size_t)snprintf(allow + len, sizeof(allow) - len, "%s%s%s", len > 0 ? ", " : "",
                                    route->method,
                                    strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
    }
    if (allow[0] == '\0') {
        pawli_answer_problem(answer, PAWLI_PROBLEM_NOT_FOUND,
                             "see docs/serve.md for the paths that there are");
        return NULL;
    }
    pawli_answer_problem(answer, PAWLI_PROBLEM_METHOD, "it must be one of: %s", allow);
    memcpy(answer->allow, allow, sizeof(allow));
    return NULL;
}

/* ---------------------------------------------------------------- headers of bodies */

/* Whether a media type is `wanted`, whatever parameters follow. */
static bool is_type(const char *type, const char *wanted)
{
    size_t len = strlen(wanted);
    return strncasecmp(type, wanted, len) == 0 && strchr(" ;\t", type[len]) != NULL;
}

static bool is_right_type(enum pawli_body body, const char *type)
{
    if (body == PAWLI_BODY_JSON)
        return type == NULL || is_type(type, "application/json");
    if (body == PAWLI_BODY_LINES)
        return type == NULL || is_type(type, "application/x-ndjson") ||
               is_type(type, "application/jsonl");
    return true;
}

/* Whether a length is one: digits only, and so few that it cannot overflow. */
static bool read_length(const char *text, size_t *ret_length)
{
    size_t len = strspn(text, "0123456789");
    if (len == 0 || len > 15 || text[len] != '\0')
        return false;
    *ret_length = (size_t)strtoull(text, NULL, 10);
    return true;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncasecmp(text, beginning, strlen(beginning)) == 0;
}

/*
 * The HTTP library takes whatever stands before a colon for a name, "Content-Length " too; and puts
 * the second line of a header that is folded behind its name. A proxy in front may read both as the
 * header that they look like, and see the end of the body somewhere else.
 */
static bool is_header(const struct pawli_pair *header)
{
    if (header->name[0] == '\0' || header->name[strspn(header->name, TOKEN)] != '\0')
        return false;
    for (const char *at = header->value; *at != '\0'; at++)
        if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
            return false;
    return !begins_with(header->name, "Content-Length") &&
           !begins_with(header->name, "Transfer-Encoding");
}

/*
 * How the body is framed must leave no doubt: two servers that read it differently would see
 * different requests. (Smuggling.)
 */
static bool is_framed_well(const struct pawli_call *call, struct pawli_answer *answer,
                           size_t *ret_length)
{
    size_t lengths = 0;
    size_t encodings = 0;
    bool is_good = true;
    *ret_length = 0;
    for (size_t i = 0; i < call->headers_count; i++) {
        const struct pawli_pair *header = &call->headers[i];
        if (strcasecmp(header->name, "Content-Length") == 0) {
            lengths++;
            is_good = is_good && read_length(header->value, ret_length);
        } else if (strcasecmp(header->name, "Transfer-Encoding") == 0) {
            encodings++;
            is_good = is_good && strcasecmp(header->value, "chunked") == 0;
        } else if (!is_header(header)) {
            is_good = false;
        } else if (strcasecmp(header->name, "Content-Encoding") == 0) {
            is_good = is_good && strcasecmp(header->value, "identity") == 0;
        }
    }
    if (is_good && lengths + encodings <= 1)
        return true;
    pawli_answer_problem(answer, PAWLI_PROBLEM_BAD_REQUEST,
                         "the body must have one Content-Length, or Transfer-Encoding: chunked, "
                         "and no Content-Encoding; a header stands in one line, its name has "
                         "letters, digits and dashes");
    answer->is_closing = true;
    return false;
}

bool pawli_route_takes(const struct pawli_route *route, const struct pawli_call *call,
                       struct pawli_answer *answer)
{
    size_t length;
    const char *type = pawli_call_header(call, "Content-Type");
    if (!is_framed_well(call, answer, &length))
        return false;
    if (route->body != PAWLI_BODY_LINES && length > route->body_max) {
        pawli_answer_problem(answer, PAWLI_PROBLEM_TOO_LARGE, "it has %zu bytes; there may be %zu",
                             length, route->body_max);
        answer->is_closing = true;
        return false;
    }
    if (is_right_type(route->body, type))
        return true;
    pawli_answer_problem(answer, PAWLI_PROBLEM_MEDIA_TYPE, "Content-Type must be %s",
                         route->body == PAWLI_BODY_JSON ? "application/json"
                                                        : "application/x-ndjson");
    answer->is_closing = true;
    return false;
}
