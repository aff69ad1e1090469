/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * head.c - whether the HTTP library has shown all of a request's head.
 * Owns:  the reckoning with the places of its parts.
 * Never: reads what stands between them.
 */
#include "serve/head.h"

#include <string.h>

#define LINE_END 2 /* CR LF */

static uintptr_t place(const char *text)
{
    return (uintptr_t)text;
}

static uintptr_t end_of(const char *text)
{
    return place(text) + strlen(text);
}

/* Whether the library has left the first line where it was received, as the versions do that are
 * known to pass bytes over. */
static bool is_in_place(const struct pawli_head *head)
{
    uintptr_t begin = place(head->method);
    uintptr_t end = begin + head->size;
    return head->size > 0 && place(head->target) > begin && place(head->target) < end &&
           place(head->version) > begin && place(head->version) < end;
}

bool pawli_head_is_whole(const struct pawli_head *head)
{
    if (!is_in_place(head))
        return true;
    if (end_of(head->method) + 1 != place(head->target) ||
        place(head->target) + head->target_len + 1 != place(head->version))
        return false;
    uintptr_t at = end_of(head->version) + LINE_END;
    for (size_t i = 0; i < head->headers_count; i++) {
        const struct pawli_pair *header = &head->headers[i];
        /* Behind the colon there may be blanks: how many is the sender's choice. */
        if (place(header->name) != at || place(header->value) <= end_of(header->name))
            return false;
        at = end_of(header->value) + LINE_END;
    }
    return at + LINE_END == place(head->method) + head->size;
}
