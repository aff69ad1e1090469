/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * headers.h - what stands beside a job's payload: names and values.
 *
 * A job may carry headers: what others need to know of it without a look into its payload, such as
 * who is asking, or which trace it belongs to. They are one text: `name: value` and a newline, for
 * each of them. A name has 1 to PAWL_HEADER_NAME_MAX letters, digits or any of !#$%&'*+-.^_`|~, and
 * stands there once, without regard to the case of letters; a value is UTF-8 without control
 * characters, up to PAWL_HEADER_VALUE_MAX bytes, may be empty, and has no blank at either end. At
 * most PAWL_HEADERS_MAX of them, and PAWL_HEADERS_LEN_MAX bytes of text. They are kept as long as
 * the payload is, and may hold secrets: they are told only where payloads are.
 */
#ifndef PAWL_HEADERS_H
#define PAWL_HEADERS_H

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_HEADERS_MAX      64    /* headers of one job */
#define PAWL_HEADERS_LEN_MAX  16384 /* bytes in all of them, as one text */
#define PAWL_HEADER_NAME_MAX  128   /* bytes in a header's name */
#define PAWL_HEADER_VALUE_MAX 4096  /* bytes in a header's value */

/* One of them. Borrowed from the text, and not terminated. */
typedef struct pawl_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
} pawl_header;

/*
 * Go through headers: *at is their text at first (NULL: there are none), and moves on behind the
 * one that was found. False: there is no further one, or what follows is no header.
 *     for (const char *at = job->headers; pawl_headers_next(&at, &header);) ...
 */
PAWL_API bool pawl_headers_next(const char **at, pawl_header *ret_header);

/* The value of a header, by its name in any case of letters: inside `headers` (NULL: there are
 * none), not terminated, and its length in *ret_len. NULL: there is no such header. */
PAWL_API const char *pawl_headers_find(const char *headers, const char *name, size_t *ret_len);

/*
 * Put a header at the end of headers[headers_size], which is a text already ("" at first).
 * PAWL_INVALID: the name or the value is not allowed, the name is there already, or a limit would
 * be exceeded; PAWL_FULL: there is no room for it. Then nothing was changed.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_headers_add(char *headers, size_t headers_size,
                                                  const char *name, const char *value,
                                                  pawl_err *err);

#ifdef __cplusplus
}
#endif

#endif
