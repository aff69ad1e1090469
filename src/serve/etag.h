/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * etag.h - ETags of settings: a hash of how they are told.
 */
#ifndef PAWLI_SERVE_ETAG_H
#define PAWLI_SERVE_ETAG_H

#include "serve/call.h"

/* Give an answer, whose body is there, its ETag. */
void pawli_etag_make(struct pawli_answer *answer);

/* Where the request knows this answer already (If-None-Match), leave the body out: 304. */
void pawli_etag_known(struct pawli_call *call);

/* Whether the answer is what the request wants to change (If-Match), or it says nothing of that.
 * False: the answer is a problem that says so. */
bool pawli_etag_matches(struct pawli_call *call);

#endif
