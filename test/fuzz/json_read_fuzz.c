/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_read_fuzz.c - what must hold for all bytes that are read as JSON. Run by libFuzzer, and by
 * the unit suite over a fixed corpus.
 * Owns:  the property: a value that is passed over and one that is walked through are taken or
 *        refused alike; what jansson takes is taken, but for what is nested too deep; texts that
 *        were decoded are UTF-8; nothing is read or written beyond the bytes.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/json_read_fuzz.h"

#include "serve/json_read.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

/* Walk through a value, into everything. Recursion is bounded by the reader. */
static bool walk(struct pawli_reader *reader)
{
    const char *text;
    size_t len;
    int64_t number;
    bool flag;
    bool has_more = true;
    struct pawli_reader before = *reader;
    switch (pawli_reader_look(reader)) {
    case PAWLI_JSON_TEXT:
        if (!pawli_reader_text(reader, &text, &len))
            return false;
        require(text[len] == '\0');
        return true;
    case PAWLI_JSON_NUMBER:
        if (pawli_reader_number(reader, &number))
            return true;
        *reader = before; /* a fraction, or too large: of a payload it may be so */
        return pawli_reader_value(reader, &text, &len);
    case PAWLI_JSON_FLAG:
        return pawli_reader_flag(reader, &flag);
    case PAWLI_JSON_NULL:
        return pawli_reader_null(reader);
    case PAWLI_JSON_ARRAY:
        if (!pawli_reader_array(reader))
            return false;
        for (bool is_first = true; has_more; is_first = false)
            if (!pawli_reader_element(reader, is_first, &has_more) || (has_more && !walk(reader)))
                return false;
        return true;
    case PAWLI_JSON_OBJECT:
        if (!pawli_reader_object(reader))
            return false;
        for (bool is_first = true; has_more; is_first = false)
            if (!pawli_reader_member(reader, is_first, &has_more, &text) ||
                (has_more && !walk(reader)))
                return false;
        return true;
    default:
        return pawli_reader_value(reader, &text, &len); /* which says what is wrong */
    }
}

static char *copy_of(const void *bytes, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);
    require(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

bool json_read_fuzz_one(const void *bytes, size_t bytes_len)
{
    struct pawli_reader reader;
    const char *slice;
    size_t len;
    char *one = copy_of(bytes, bytes_len);
    char *two = copy_of(bytes, bytes_len);
    pawli_reader_init(&reader, one, bytes_len);
    bool is_value = pawli_reader_value(&reader, &slice, &len) && pawli_reader_end(&reader);
    require(is_value || reader.why[0] != '\0');
    require(bytes_len == 0 || memcmp(one, bytes, bytes_len) == 0); /* it was left alone */
    bool is_deep = strstr(reader.why, "too deep") != NULL;
    pawli_reader_init(&reader, two, bytes_len);
    bool is_walked = walk(&reader) && pawli_reader_end(&reader);
    bool is_nul = strstr(reader.why, "NUL in a name") != NULL;
    require(is_walked == is_value || is_nul);
    json_error_t error;
    json_t *tree = json_loadb(bytes_len > 0 ? bytes : "", bytes_len,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool is_range = tree == NULL && (strstr(error.text, "too big") != NULL ||
                                     strstr(error.text, "overflow") != NULL ||
                                     strstr(error.text, "NUL byte in object key") != NULL ||
                                     strstr(error.text, "depth") != NULL);
    /* To jansson a NUL behind the value is the end. */
    bool is_cut = bytes_len > 0 && memchr(bytes, '\0', bytes_len) != NULL;
    require((tree != NULL) == is_value || is_deep || is_range || (is_cut && !is_value));
    json_decref(tree);
    free(one);
    free(two);
    return is_value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)json_read_fuzz_one(data, size); /* both answers are right for some bytes */
    return 0;
}
