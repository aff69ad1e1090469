/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * head.h - whether the HTTP library has shown all of a request's head.
 *
 * It gives texts that end at the first NUL, and takes a line feed alone for the end of a line. What
 * stands behind a NUL it has passed over; what a proxy in front took for one header it may have
 * taken for two. But the texts stand where they were received: whether all bytes between them are
 * those that a head has, and no more, can be seen from where they begin and end.
 */
#ifndef PAWLI_SERVE_HEAD_H
#define PAWLI_SERVE_HEAD_H

#include "serve/call.h"

/* Where the library has put the parts of a head. */
struct pawli_head {
    const char *method;
    const char *target; /* where it begins */
    size_t target_len;  /* as it was sent */
    const char *version;
    const struct pawli_pair *headers;
    size_t headers_count;
    size_t size; /* of the head, from the method to the empty line, this one too */
};

/* False: bytes of it were passed over, or a line does not end with CR LF, or goes on in the next.
 * True also where the parts are not where they were received: then nothing is known. */
bool pawli_head_is_whole(const struct pawli_head *head);

#endif
