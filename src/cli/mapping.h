/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mapping.h - reads the mapping file of `pawl adopt`.
 */
#ifndef PAWLI_CLI_MAPPING_H
#define PAWLI_CLI_MAPPING_H

#include "pawl/adopt.h"

#define PAWLI_MAPPING_BYTES_MAX 65536 /* in a file */

/* Zeroed: nothing. */
struct pawli_mapping {
    pawl_adopt_entry *entries; /* their texts lie in `texts` */
    size_t count;
    char *texts;
};

/*
 * Read a mapping: a JSON object whose members are texts, or objects of texts. On false, err->text
 * names the key, the line, and what is allowed; `ret_mapping` is empty.
 */
bool pawli_mapping_read(const char *json, size_t json_len, struct pawli_mapping *ret_mapping,
                        pawl_err *err);

/* Accepts NULL and an empty one. */
void pawli_mapping_clear(struct pawli_mapping *mapping);

#endif
