/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * headers_fuzz.c - what must hold for every text that is taken for headers. Run by libFuzzer, and
 * by the unit suite over a fixed corpus.
 * Owns:  the property: an accepted text is, to the last byte, what adding its headers one by one
 *        makes, each is found by its name in any case, and all bounds hold; a refused one gives its
 *        reason in printable ASCII, and going through it ends; nothing is read beyond the NUL.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/headers_fuzz.h"

#include "core/headers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

/* A copy of exactly its size: a sanitizer sees any read behind the NUL. */
static char *copy(const char *text, size_t len)
{
    char *to = malloc(len + 1);
    if (to == NULL)
        exit(0);
    if (len > 0)
        memcpy(to, text, len);
    to[len] = '\0';
    return to;
}

static void check_found(const char *text, const pawl_header *header)
{
    char *name = copy(header->name, header->name_len);
    for (size_t i = 0; name[i] != '\0'; i++)
        name[i] = (char)(isupper((unsigned char)name[i]) ? tolower((unsigned char)name[i])
                                                         : toupper((unsigned char)name[i]));
    size_t len;
    require(pawl_headers_find(text, name, &len) == header->value && len == header->value_len);
    free(name);
}

static void check_accepted(const char *text)
{
    static char again[PAWL_HEADERS_LEN_MAX + 1];
    pawl_header header;
    size_t count = 0;
    again[0] = '\0';
    for (const char *at = text; pawl_headers_next(&at, &header); count++) {
        char *name = copy(header.name, header.name_len);
        char *value = copy(header.value, header.value_len);
        require(header.name_len <= PAWL_HEADER_NAME_MAX);
        require(header.value_len <= PAWL_HEADER_VALUE_MAX);
        require(pawl_headers_add(again, sizeof(again), name, value, NULL) == PAWL_OK);
        require(pawl_headers_add(again, sizeof(again), name, value, NULL) == PAWL_INVALID);
        check_found(text, &header);
        free(name);
        free(value);
    }
    require(count <= PAWL_HEADERS_MAX);
    require(strcmp(again, text) == 0);
}

bool headers_fuzz_one(const char *text)
{
    pawl_err err = {.code = PAWL_OK, .text = ""};
    pawl_code rc = pawli_headers_check(text, &err);
    if (rc == PAWL_OK) {
        require(err.code == PAWL_OK);
        check_accepted(text);
        return true;
    }
    require(rc == PAWL_INVALID && err.code == PAWL_INVALID);
    require(memchr(err.text, '\0', sizeof(err.text)) != NULL && err.text[0] != '\0');
    for (size_t i = 0; err.text[i] != '\0'; i++)
        require(err.text[i] >= ' ' && err.text[i] <= '~');
    pawl_header header;
    const char *end = text + strlen(text);
    for (const char *at = text; pawl_headers_next(&at, &header);)
        require(at > header.value && at <= end);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy((const char *)data, size);
    (void)headers_fuzz_one(text); /* both answers are right for some text */
    free(text);
    return 0;
}
