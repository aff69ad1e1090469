/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tail.c - the last lines of what a program writes.
 * Owns:  what of it is kept.
 * Never: keeps more than PAWLI_TAIL_BYTES; gives text that a store would refuse.
 */
#include "runtime/tail.h"

#include "runtime/job_ctx.h"

#include <string.h>

void pawli_tail_put(struct pawli_tail *tail, const char *bytes, size_t bytes_len)
{
    if (bytes_len > PAWLI_TAIL_BYTES) {
        bytes += bytes_len - PAWLI_TAIL_BYTES;
        bytes_len = PAWLI_TAIL_BYTES;
    }
    size_t over = tail->len + bytes_len > PAWLI_TAIL_BYTES
                      ? tail->len + bytes_len - PAWLI_TAIL_BYTES
                      : 0;
    memmove(tail->bytes, tail->bytes + over, tail->len - over);
    tail->len -= over;
    memcpy(tail->bytes + tail->len, bytes, bytes_len);
    tail->len += bytes_len;
}

/* Without carriage returns, and with no NUL inside: that would end the text. */
static size_t copy_plain(const struct pawli_tail *tail, char *to)
{
    size_t len = 0;
    for (size_t i = 0; i < tail->len; i++)
        if (tail->bytes[i] != '\r')
            to[len++] = tail->bytes[i] != '\0' ? tail->bytes[i] : '?';
    while (len > 0 && to[len - 1] == '\n')
        len--;
    to[len] = '\0';
    return len;
}

void pawli_tail_text(const struct pawli_tail *tail, char to[PAWL_ERROR_TEXT_MAX + 1])
{
    char plain[PAWLI_TAIL_BYTES + 1];
    size_t len = copy_plain(tail, plain);
    const char *from = plain;
    bool is_cut = len > PAWL_ERROR_TEXT_MAX;
    if (is_cut)
        from = plain + len - PAWL_ERROR_TEXT_MAX;
    if (is_cut && from[-1] != '\n') {
        const char *line = strchr(from, '\n');
        if (line != NULL)
            from = line + 1; /* whole lines */
        else
            while (((unsigned char)*from & 0xc0) == 0x80)
                from++; /* one long line: at least whole characters */
    }
    pawli_clean_text(to, PAWL_ERROR_TEXT_MAX + 1, from, "\t\n");
}
