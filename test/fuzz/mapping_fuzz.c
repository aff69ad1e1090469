/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mapping_fuzz.c - what must hold for every file that is read as a mapping of `pawl adopt`. Run by
 * libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: an accepted mapping has keys that the library knows, each once, and all that
 *        are needed; a refused one is empty and gives its reason; nothing is read beyond the file.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/mapping_fuzz.h"

#include "cli/mapping.h"

#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static size_t count_of(const struct pawli_mapping *mapping, const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < mapping->count; i++)
        count += strcmp(mapping->entries[i].key, key) == 0;
    return count;
}

static void check_accepted(const struct pawli_mapping *mapping)
{
    size_t keys_count;
    size_t known = 0;
    const pawl_adopt_key *keys = pawl_adopt_keys(&keys_count);
    for (size_t i = 0; i < keys_count; i++) {
        size_t count = count_of(mapping, keys[i].name);
        require(count == 1 || (count == 0 && !keys[i].is_needed));
        known += count;
    }
    require(known == mapping->count);
    for (size_t i = 0; i < mapping->count; i++)
        require(strlen(mapping->entries[i].value) <= PAWLI_MAPPING_BYTES_MAX);
}

bool mapping_fuzz_one(const char *bytes, size_t bytes_len)
{
    struct pawli_mapping mapping;
    pawl_err err = {.code = PAWL_OK, .text = ""};
    bool is_good = pawli_mapping_read(bytes, bytes_len, &mapping, &err);
    if (is_good) {
        require(err.code == PAWL_OK);
        check_accepted(&mapping);
        pawli_mapping_clear(&mapping);
    } else {
        require(err.code == PAWL_INVALID);
        require(err.text[0] != '\0');
        require(memchr(err.text, '\0', sizeof(err.text)) != NULL);
    }
    require(mapping.entries == NULL && mapping.texts == NULL && mapping.count == 0);
    return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind it. */
    char *bytes = size <= PAWLI_MAPPING_BYTES_MAX ? malloc(size + (size == 0)) : NULL;
    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    (void)mapping_fuzz_one(bytes, size); /* both answers are right for some file */
    free(bytes);
    return 0;
}
