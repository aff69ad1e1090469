/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.c - requests with an Idempotency-Key.
 * Owns:  what makes two requests the same; how an answer is kept.
 * Never: keeps an answer that is a problem: what was not done may be tried again.
 */
#include "serve/once.h"

#include "serve/route.h"

#include "base/error.h"
#include "base/sha256.h"
#include "store/once.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEY_MAX    255 /* bytes in a key, as it is sent */
#define STATUS_LEN 4   /* "201 " stands before the body of an answer that is kept */

bool pawli_once_has_key(const struct pawli_call *call)
{
    return call->route->scope == PAWLI_SCOPE_PRODUCE &&
           pawli_call_header(call, PAWLI_ONCE_HEADER) != NULL;
}

/* ---------------------------------------------------------------- what is the same */

/* A text with its end, so that no two lists of texts look the same. NULL is none of them. */
static void add_text(struct pawli_sha256 *hash, const char *text)
{
    pawli_sha256_add(hash, text != NULL ? "+" : "-", 1);
    if (text != NULL)
        pawli_sha256_add(hash, text, strlen(text) + 1);
}

/* Whose key it is counts, too: nobody finds out what others have asked. */
static void digest_key(const struct pawli_call *call, const char *key, uint8_t *ret_digest)
{
    struct pawli_sha256 hash;
    pawli_sha256_init(&hash);
    add_text(&hash, call->grant->name);
    add_text(&hash, key);
    pawli_sha256_end(&hash, ret_digest);
}

/* What was asked: not how it was sent, nor its trace, which is another in each try. */
static void digest_request(const struct pawli_call *call, uint8_t *ret_digest)
{
    struct pawli_sha256 hash;
    pawli_sha256_init(&hash);
    add_text(&hash, call->route->name);
    for (size_t i = 0; i < PAWLI_CAPTURES_MAX; i++)
        add_text(&hash, call->captures[i]);
    for (size_t i = 0; i < call->uri->params_count; i++) {
        add_text(&hash, call->uri->params[i].name);
        add_text(&hash, call->uri->params[i].value);
    }
    for (size_t i = 0; i < call->headers_count; i++) {
        const char *name = call->headers[i].name;
        if (strncasecmp(name, "Pawl-Header-", 12) == 0 || strcasecmp(name, "Content-Type") == 0) {
            add_text(&hash, name);
            add_text(&hash, call->headers[i].value);
        }
    }
    add_text(&hash, NULL);
    pawli_sha256_add(&hash, call->body, call->body_len);
    pawli_sha256_end(&hash, ret_digest);
}

static pawl_code check_key(struct pawli_call *call, const char *key)
{
    size_t len = strlen(key);
    bool is_good = len >= 1 && len <= KEY_MAX && call->route->body != PAWLI_BODY_LINES;
    for (size_t i = 0; is_good && i < len; i++)
        is_good = key[i] >= ' ' && key[i] <= '~';
    if (is_good)
        return PAWL_OK;
    return pawli_fail(&call->err, PAWL_INVALID,
                      call->route->body == PAWLI_BODY_LINES
                          ? PAWLI_ONCE_HEADER " is not for streams: give each line an id"
                          : PAWLI_ONCE_HEADER " must have 1 to 255 printable ASCII characters");
}

/* ---------------------------------------------------------------- answers that are kept */

static pawl_code answer_again(struct pawli_call *call, const struct pawli_once_found *found)
{
    struct pawli_answer *answer = call->answer;
    const char *kept = found->answer;
    if (found->answer_len < STATUS_LEN || kept[0] != '2')
        return pawli_fail(&call->err, PAWL_BROKEN, "the answer that was kept is of no use");
    answer->status = (unsigned)(100 * (kept[0] - '0') + 10 * (kept[1] - '0') + (kept[2] - '0'));
    answer->type = "application/json";
    answer->is_replayed = true;
    answer->body.len = 0;
    return pawli_buffer_put(&answer->body, kept + STATUS_LEN, found->answer_len - STATUS_LEN)
               ? PAWL_OK
               : pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
}

/* Keep the answer. Where that fails the request was carried out all the same: the next try makes
 * the same ids, and so the same answer. */
static void keep_answer(struct pawli_call *call, struct pawli_once_end *end)
{
    const struct pawli_answer *answer = call->answer;
    size_t len = STATUS_LEN + answer->body.len;
    char *kept = malloc(len + 1);
    pawl_code code = PAWL_NO_MEMORY;
    if (kept != NULL) {
        (void)snprintf(kept, len + 1, "%03u ", answer->status); /* fits */
        memcpy(kept + STATUS_LEN, answer->body.bytes, answer->body.len);
        end->answer = kept;
        end->answer_len = len;
        code = pawli_once_end(call->store, end, NULL);
    }
    if (code != PAWL_OK) {
        end->how = PAWLI_ONCE_LET_GO;
        end->answer_len = 0;
        (void)!pawli_once_end(call->store, end, NULL); /* else the next try waits for a while */
    }
    free(kept);
}

/* ---------------------------------------------------------------- carrying it out */

static pawl_code carry_out(struct pawli_call *call, const struct pawli_once_found *found,
                           struct pawli_once_end *end)
{
    const struct pawli_once once = {.seed = (uint64_t)found->seed,
                                    .at = found->at,
                                    .is_again = found->state == PAWLI_ONCE_AGAIN};
    call->once = &once;
    pawl_code code = call->route->run(call);
    call->once = NULL;
    bool is_done = code == PAWL_OK && call->answer->status < 300;
    if (is_done && call->answer->body.len < PAWLI_ONCE_ANSWER_MAX - STATUS_LEN) {
        keep_answer(call, end);
        return PAWL_OK;
    }
    /* What an earlier try may have done must not be done anew under other ids. */
    end->how = code == PAWL_UNKNOWN || once.is_again || is_done ? PAWLI_ONCE_LET_GO
                                                                : PAWLI_ONCE_DROP;
    (void)!pawli_once_end(call->store, end, NULL); /* else the next try waits for a while */
    return code;
}

pawl_code pawli_once_run(struct pawli_call *call)
{
    const char *key = pawli_call_header(call, PAWLI_ONCE_HEADER);
    const pawl_random *random = pawl_random_system();
    struct pawli_once_args args = {.keep_ms = PAWLI_ONCE_KEEP_MS, .hold_ms = PAWLI_ONCE_HOLD_MS};
    struct pawli_once_end end = {.how = PAWLI_ONCE_KEEP};
    struct pawli_once_found found = {.answer = NULL};
    pawl_code code = check_key(call, key);
    if (code != PAWL_OK)
        return code;
    args.seed = (int64_t)random->next(random->user);
    digest_key(call, key, args.key);
    digest_request(call, args.digest);
    memcpy(end.key, args.key, sizeof(end.key));
    code = pawli_once_begin(call->store, &args, &found, &call->err);
    if (code != PAWL_OK)
        return code == PAWL_UNKNOWN ? PAWL_DOWN : code; /* nothing of the request was done */
    switch (found.state) {
    case PAWLI_ONCE_OTHER:
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_KEY_USED,
                             "the key was used for another request; it is kept for 24 hours");
        break;
    case PAWLI_ONCE_UNDER_WAY:
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_UNDER_WAY,
                             "the first request with this key is not answered yet");
        break;
    case PAWLI_ONCE_DONE:
        code = answer_again(call, &found);
        break;
    default:
        code = carry_out(call, &found, &end);
    }
    free(found.answer);
    return code;
}
