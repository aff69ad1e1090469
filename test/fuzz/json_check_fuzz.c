/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_check_fuzz.c - what must hold for all bytes that are checked for being JSON. Run by
 * libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: the answer is that of a parser of somebody else's making, but for numbers
 *        that it cannot hold, for the depth, and for a NUL, which it takes for the end; what is
 *        good stays good inside an array.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/json_check_fuzz.h"

#include "webhook/json_check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

/* Never less than the true depth. */
static size_t depth_bound(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += data[i] == '[' || data[i] == '{';
    return count;
}

static void check_inside(const uint8_t *data, size_t size)
{
    uint8_t *array = malloc(size + 2);
    require(array != NULL);
    array[0] = '[';
    memcpy(array + 1, data, size);
    array[size + 1] = ']';
    require(pawli_json_is_good(array, size + 2));
    require(!pawli_json_is_good(array, size + 1));
    free(array);
}

bool json_check_fuzz_one(const uint8_t *data, size_t size)
{
    json_error_t error;
    bool is_good = pawli_json_is_good(data, size);
    json_t *value = json_loadb((const char *)data, size,
                               JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
    if (value == NULL && is_good)
        require(json_error_code(&error) == json_error_numeric_overflow);
    bool has_nul = size > 0 && memchr(data, '\0', size) != NULL;
    require(!has_nul || !is_good);
    if (value != NULL && !is_good && !has_nul)
        require(depth_bound(data, size) > PAWLI_JSON_DEPTH_MAX);
    if (is_good && depth_bound(data, size) < PAWLI_JSON_DEPTH_MAX)
        check_inside(data, size);
    json_decref(value);
    return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind it. */
    uint8_t *bytes = malloc(size + (size == 0));
    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    (void)json_check_fuzz_one(bytes, size); /* both answers are right for some bytes */
    free(bytes);
    return 0;
}
