/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * words.h - what a misspelt word was meant to be.
 */
#ifndef PAWLI_CLI_WORDS_H
#define PAWLI_CLI_WORDS_H

#include <stddef.h>

/* Of `names`, the one that `word` is most likely meant to be; NULL where none comes near. */
const char *pawli_cli_nearest(const char *word, const char *const *names, size_t names_count);

#endif
