/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * door.c - who is let in.
 * Owns:  the order of the checks; what of a browser's request is believed.
 * Never: says which part of a token was wrong, or whether one has been there.
 */
#include "serve/door.h"

#include <string.h>
#include <strings.h>

#define SCHEME "Bearer"

/* The value of a header that is there once; NULL: it is not, or more than once. */
static const char *only(const struct pawli_call *call, const char *name, size_t *ret_count)
{
    const char *value = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < call->headers_count; i++)
        if (strcasecmp(call->headers[i].name, name) == 0) {
            value = call->headers[i].value;
            (*ret_count)++;
        }
    return *ret_count == 1 ? value : NULL;
}

/* ---------------------------------------------------------------- tokens */

static bool refuse_token(struct pawli_answer *answer, const char *why)
{
    pawli_answer_problem(answer, PAWLI_PROBLEM_UNAUTHORIZED, "%s", why);
    return false;
}

static bool open_by_token(const struct pawli_door *door, const struct pawli_call *call,
                          struct pawli_grant *ret_grant, struct pawli_answer *answer)
{
    size_t count;
    const char *given = only(call, "Authorization", &count);
    size_t len = strlen(SCHEME);
    if (given == NULL || strncasecmp(given, SCHEME, len) != 0 || given[len] != ' ')
        return refuse_token(answer, "send Authorization: Bearer TOKEN, with a token that pawl "
                                    "token has made");
    given += len;
    given += strspn(given, " ");
    const struct pawli_grant *grant = pawli_grants_find(door->grants, given);
    if (grant == NULL)
        return refuse_token(answer, "the token is not known");
    if (grant->expires_at.us != 0 && door->now.us >= grant->expires_at.us)
        return refuse_token(answer, "the token has expired");
    if ((grant->scopes & (unsigned)call->route->scope) == 0) {
        pawli_answer_problem(answer, PAWLI_PROBLEM_FORBIDDEN, "the token lacks the scope %s",
                             pawli_scope_name(call->route->scope));
        return false;
    }
    if (call->route->reach == PAWLI_REACH_ALL && !pawli_grant_has_all_queues(grant)) {
        pawli_answer_problem(answer, PAWLI_PROBLEM_FORBIDDEN, "this needs a token for all queues");
        return false;
    }
    *ret_grant = *grant;
    return true;
}

/* ---------------------------------------------------------------- this machine */

/* Whether HOST or HOST:PORT names this machine, whatever a name server says. */
static bool is_here(const char *host)
{
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    const char *port = host[len - (len > strlen(host))] == ':' ? host + len + 1 : "";
    if (len > strlen(host) || (host[len] != '\0' && host[len] != ':') ||
        port[strspn(port, "0123456789")] != '\0')
        return false;
    if (len == strlen("localhost") && strncasecmp(host, "localhost", len) == 0)
        return true;
    if (len == strlen("[::1]") && memcmp(host, "[::1]", len) == 0)
        return true;
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len;
}

/*
 * A web page that its reader has open can make his browser send requests to this machine: under a
 * name of its own that leads here (then Host says so), or across origins (then Origin, or
 * Sec-Fetch-Site, does).
 */
static bool is_meant(const struct pawli_call *call)
{
    size_t hosts;
    size_t origins;
    size_t sites;
    const char *host = only(call, "Host", &hosts);
    const char *origin = only(call, "Origin", &origins);
    const char *site = only(call, "Sec-Fetch-Site", &sites);
    if (host == NULL || !is_here(host) || origins > 1 || sites > 1)
        return false;
    if (origin != NULL && (strncmp(origin, "http://", 7) != 0 || strcasecmp(origin + 7, host) != 0))
        return false;
    return site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

bool pawli_door_open(const struct pawli_door *door, const struct pawli_call *call,
                     struct pawli_grant *ret_grant, struct pawli_answer *answer)
{
    pawli_grant_all(ret_grant);
    if (door->grants != NULL) {
        if (call->route->scope != PAWLI_SCOPE_NONE)
            return open_by_token(door, call, ret_grant, answer);
        ret_grant->scopes = 0;
        return true;
    }
    if (door->is_unix || is_meant(call))
        return true;
    pawli_answer_problem(answer, PAWLI_PROBLEM_WRONG_HOST,
                         "without tokens only requests to this machine itself are answered: Host "
                         "must be localhost, 127.0.0.1 or [::1], and Origin the same or absent");
    return false;
}
