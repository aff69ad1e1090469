/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_fuzz.c - what must hold for every request. Run by libFuzzer, and by the unit suite over a
 * fixed corpus.
 * Owns:  the property: every request has an answer with a status from 200 to 507; what says that it
 *        is JSON is; a problem has its type, and is not the server's fault: there is no 500.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/serve_fuzz.h"

#include "support/serve_desk.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 20
#define TARGET_MAX   2000

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check(const struct serve_desk *desk)
{
    const struct pawli_answer *answer = &desk->answer;
    if (desk->is_waiting)
        return;
    require(answer->status >= 200 && answer->status <= 507 && answer->status != 500);
    require(answer->status < 400 || answer->problem != NULL);
    if (answer->type == NULL || strstr(answer->type, "json") == NULL || answer->body.len == 0 ||
        strstr(answer->type, "ndjson") != NULL)
        return;
    json_error_t error;
    json_t *tree = json_loadb((const char *)answer->body.bytes, answer->body.len,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    require(tree != NULL);
    require(answer->status < 400 || json_is_string(json_object_get(tree, "type")));
    json_decref(tree);
}

void serve_fuzz_one(const uint8_t *data, size_t size)
{
    struct serve_desk desk;
    const uint8_t *at = data;
    const uint8_t *end = data + size;
    require(serve_desk_init(&desk));
    for (int i = 0; i < REQUESTS_MAX && at < end; i++) {
        const uint8_t *nul = memchr(at, '\0', (size_t)(end - at));
        const uint8_t *stop = nul != NULL ? nul : end;
        const uint8_t *newline = memchr(at, '\n', (size_t)(stop - at));
        const uint8_t *head_end = newline != NULL ? newline : stop;
        char head[TARGET_MAX];
        size_t len = (size_t)(head_end - at) < sizeof(head) ? (size_t)(head_end - at)
                                                            : sizeof(head) - 1;
        memcpy(head, at, len);
        head[len] = '\0';
        char *target = strchr(head, ' ');
        if (target != NULL)
            *target++ = '\0';
        const uint8_t *body = newline != NULL ? newline + 1 : stop;
        (void)serve_desk_ask(&desk, head, target != NULL ? target : "/", NULL, body,
                             (size_t)(stop - body)); /* checked below */
        check(&desk);
        at = nul != NULL ? nul + 1 : end;
    }
    serve_desk_clear(&desk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    serve_fuzz_one(data, size);
    return 0;
}
