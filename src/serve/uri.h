/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * uri.h - what a request asks for: the parts of a path and the parameters of a query, decoded.
 */
#ifndef PAWLI_SERVE_URI_H
#define PAWLI_SERVE_URI_H

#include "pawl/pawl.h"

#define PAWLI_SEGMENTS_MAX 8  /* parts of a path; what has more fits no route */
#define PAWLI_PARAMS_MAX   32 /* parameters of a query */

struct pawli_param {
    const char *name;
    const char *value;
};

struct pawli_uri {
    const char *segments[PAWLI_SEGMENTS_MAX];
    size_t segments_count; /* PAWLI_SEGMENTS_MAX + 1: more than fit */
    struct pawli_param params[PAWLI_PARAMS_MAX];
    size_t params_count;
};

/*
 * Take a request's target apart: a path, and a query behind `?`. `text` is borrowed and written
 * over: the parts are decoded where they stand. In the query `+` is a blank.
 * PAWL_INVALID: it does not begin with a slash; a byte that may not stand there; a % without two
 * hexadecimal digits; a NUL, or what is not UTF-8 or a control character, behind the decoding; a
 * parameter that is there twice, or one too many of them.
 */
pawl_code pawli_uri_parse(char *text, struct pawli_uri *ret_uri, pawl_err *err);

/* The value of a parameter; NULL: it is not there. */
const char *pawli_uri_param(const struct pawli_uri *uri, const char *name);

#endif
