/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * etag.c - ETags of settings.
 * Owns:  what is hashed, and how the headers of a request name them.
 * Never: asks the store.
 */
#include "serve/etag.h"

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DIGEST_BYTES 16 /* so much of it is told */

void pawli_etag_make(struct pawli_answer *answer)
{
    struct pawli_sha256 hash;
    uint8_t digest[PAWLI_SHA256_LEN];
    pawli_sha256_init(&hash);
    pawli_sha256_add(&hash, answer->body.bytes, answer->body.len);
    pawli_sha256_end(&hash, digest);
    char *etag = answer->etag;
    etag[0] = '"';
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        (void)snprintf(etag + 1 + 2 * i, 3, "%02x", digest[i]); /* fits */
    etag[1 + 2 * DIGEST_BYTES] = '"';
    etag[2 + 2 * DIGEST_BYTES] = '\0';
}

/* Whether an ETag is among those of a value: commas between, or a * for any. A weak one says that
 * what is meant is as good as the same: enough for who reads, not for who writes. */
static bool is_among(const char *list, const char *etag, bool is_weak_taken)
{
    size_t etag_len = strlen(etag);
    const char *at = list + strspn(list, " \t,");
    if (at[0] == '*')
        return at[1 + strspn(at + 1, " \t,")] == '\0';
    while (*at != '\0') {
        bool is_weak = strncmp(at, "W/", 2) == 0;
        at += is_weak ? 2 : 0;
        size_t len = *at == '"' ? 1 + strcspn(at + 1, "\"") : 0;
        if (len == 0 || at[len] != '"')
            return false; /* it is no list of ETags */
        len++;
        if (len == etag_len && memcmp(at, etag, len) == 0 && (!is_weak || is_weak_taken))
            return true;
        at += len;
        at += strspn(at, " \t,");
    }
    return false;
}

/* The same of all lines of a header. *ret_has: there is one. */
static bool is_named(const struct pawli_call *call, const char *header, bool is_weak_taken,
                     bool *ret_has)
{
    bool is_found = false;
    *ret_has = false;
    for (size_t i = 0; i < call->headers_count; i++) {
        if (strcasecmp(call->headers[i].name, header) != 0)
            continue;
        *ret_has = true;
        is_found = is_found || is_among(call->headers[i].value, call->answer->etag, is_weak_taken);
    }
    return is_found;
}

void pawli_etag_known(struct pawli_call *call)
{
    bool has_any;
    if (!is_named(call, "If-None-Match", true, &has_any))
        return;
    call->answer->status = 304;
    call->answer->body.len = 0;
}

bool pawli_etag_matches(struct pawli_call *call)
{
    bool has_any;
    if (is_named(call, "If-Match", false, &has_any) || !has_any)
        return true;
    pawli_answer_problem(call->answer, PAWLI_PROBLEM_CHANGED,
                         "the settings are not those that If-Match names: get them again");
    return false;
}
