/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * headers.h - which headers a job may have. How they look and are read: pawl/headers.h.
 */
#ifndef PAWLI_CORE_HEADERS_H
#define PAWLI_CORE_HEADERS_H

#include "pawl/headers.h"

/* Whether a text is all headers, as pawl/headers.h demands them; NULL and "" are none. PAWL_INVALID
 * names the header, or its place counted from 1, and what is allowed; never a value. */
pawl_code pawli_headers_check(const char *headers, pawl_err *err);

/* Whether there are any. */
static inline bool pawli_headers_any(const char *headers)
{
    return headers != NULL && headers[0] != '\0';
}

#endif
