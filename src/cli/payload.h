/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * payload.h - where the payload and the headers of a job or an event come from: the words, a file,
 * or standard input.
 */
#ifndef PAWLI_CLI_PAYLOAD_H
#define PAWLI_CLI_PAYLOAD_H

#include "base/buffer.h"
#include "cli/options.h"

#include <stdio.h>

/* Put one header, 'name: value', into headers[headers_size]. False: told; EX_USAGE. `option` is
 * where it was said. */
bool pawli_header_add(const struct pawli_line *line, const char *option, const char *word,
                      char *headers, size_t headers_size);

/* All of --header, the option that may be repeated, into headers[PAWL_HEADERS_LEN_MAX + 1]. */
bool pawli_line_headers(const struct pawli_line *line, char *headers);

/* The file that --file names, else standard input. NULL: told; EX_NOINPUT. */
FILE *pawli_input_open(const struct pawli_line *line);
void pawli_input_close(FILE *file);

/*
 * The payload: the second argument, or where there is none, or it is -, all of --file or standard
 * input, in `buffer`, which the caller clears. Gives EX_OK, or the exit code, which has been told.
 */
int pawli_payload_read(const struct pawli_line *line, struct pawli_buffer *buffer,
                       const void **ret_payload, size_t *ret_payload_len);

#endif
