/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * headers.c - the headers of a job, which are one text: a line for each.
 * Owns:  their form and their bounds; reading them; the texts of refusals.
 * Never: shows a value, or what might be one; allocates; trusts a text to be in form.
 */
#include "core/headers.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

#define BETWEEN     ": "
#define BETWEEN_LEN 2
#define NAME_RULE   "1 to 128 letters, digits or any of !#$%&'*+-.^_`|~"

_Static_assert(PAWL_HEADER_NAME_MAX == 128, "NAME_RULE says so");

/* ---- reading */

static bool is_name_byte(char byte)
{
    bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    bool is_digit = byte >= '0' && byte <= '9';
    return is_letter || is_digit || (byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

/* Bytes from the beginning that may stand in a name. */
static size_t name_length(const char *text)
{
    size_t len = 0;
    while (is_name_byte(text[len]))
        len++;
    return len;
}

/* Not by tolower(): which letters there are must not depend on a locale. */
static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

static bool is_same_name(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t at = 0;
    while (a_len == b_len && at < a_len && lower(a[at]) == lower(b[at]))
        at++;
    return a_len == b_len && at == a_len;
}

bool pawl_headers_next(const char **at, pawl_header *ret_header)
{
    if (at == NULL || *at == NULL || ret_header == NULL)
        return false;
    const char *name = *at;
    size_t name_len = name_length(name);
    if (name_len == 0 || strncmp(name + name_len, BETWEEN, BETWEEN_LEN) != 0)
        return false;
    const char *value = name + name_len + BETWEEN_LEN;
    size_t value_len = strcspn(value, "\n");
    if (value[value_len] != '\n')
        return false;
    *ret_header = (pawl_header){name, name_len, value, value_len};
    *at = value + value_len + 1;
    return true;
}

static const char *find(const char *headers, const char *name, size_t name_len, size_t *ret_len)
{
    pawl_header header;
    for (const char *at = headers; pawl_headers_next(&at, &header);) {
        if (is_same_name(header.name, header.name_len, name, name_len)) {
            *ret_len = header.value_len;
            return header.value;
        }
    }
    return NULL;
}

const char *pawl_headers_find(const char *headers, const char *name, size_t *ret_len)
{
    if (name == NULL || ret_len == NULL)
        return NULL;
    return find(headers, name, strlen(name), ret_len);
}

/* ---- rules */

static pawl_code refuse_length(pawl_err *err)
{
    return pawli_fail(err, PAWL_INVALID, "headers have more than %d bytes together",
                      PAWL_HEADERS_LEN_MAX);
}

/* A name that is good may be told; of one that is not, only its place: it may be a value. */
static pawl_code check_name(const pawl_header *header, size_t place, pawl_err *err)
{
    size_t len = header->name_len;
    if (len >= 1 && len <= PAWL_HEADER_NAME_MAX && name_length(header->name) >= len)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "the name of header %zu is bad; it must have %s", place,
                      NAME_RULE);
}

static pawl_code check_value(const pawl_header *header, pawl_err *err)
{
    const char *value = header->value;
    size_t len = header->value_len;
    int name_len = (int)header->name_len;
    if (len > PAWL_HEADER_VALUE_MAX)
        return pawli_fail(err, PAWL_INVALID,
                          "the value of header \"%.*s\" has %zu bytes; the most allowed is %d",
                          name_len, header->name, len, PAWL_HEADER_VALUE_MAX);
    if (len > 0 && (value[0] == ' ' || value[len - 1] == ' '))
        return pawli_fail(err, PAWL_INVALID,
                          "the value of header \"%.*s\" has a blank at its beginning or end",
                          name_len, header->name);
    size_t good = pawli_text_good(value, ""); /* ends at the newline, if not before */
    if (good >= len)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "the value of header \"%.*s\" is bad after %zu bytes; it must be UTF-8 "
                      "without control characters",
                      name_len, header->name, good);
}

/* One header, in its place among the others, which are counted from 1; it may be one of them. */
static pawl_code check_header(const char *headers, const pawl_header *header, size_t place,
                              pawl_err *err)
{
    size_t ignored;
    pawl_code rc = check_name(header, place, err);
    if (rc == PAWL_OK)
        rc = check_value(header, err);
    if (rc == PAWL_OK && place > PAWL_HEADERS_MAX)
        rc = pawli_fail(err, PAWL_INVALID, "there are more than %d headers", PAWL_HEADERS_MAX);
    if (rc != PAWL_OK)
        return rc;
    const char *first = find(headers, header->name, header->name_len, &ignored);
    if (first == NULL || first == header->value)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "header \"%.*s\" is there twice; the case of letters does not count",
                      (int)header->name_len, header->name);
}

static pawl_code check_all(const char *headers, size_t *ret_count, pawl_err *err)
{
    pawl_header header;
    size_t place = 0;
    pawl_code rc = PAWL_OK;
    const char *at = headers;
    if (pawli_text_length(headers, PAWL_HEADERS_LEN_MAX) > PAWL_HEADERS_LEN_MAX)
        return refuse_length(err);
    while (rc == PAWL_OK && pawl_headers_next(&at, &header))
        rc = check_header(headers, &header, ++place, err);
    if (rc == PAWL_OK && at[0] != '\0')
        rc = pawli_fail(err, PAWL_INVALID,
                        "header %zu is not a name (%s), a colon, a blank, a value and a newline",
                        place + 1, NAME_RULE);
    *ret_count = place;
    return rc;
}

pawl_code pawli_headers_check(const char *headers, pawl_err *err)
{
    size_t ignored;
    return headers != NULL ? check_all(headers, &ignored, err) : PAWL_OK;
}

/* ---- writing */

static pawl_code check_given(const char *headers, const char *name, const char *value,
                             pawl_err *err)
{
    if (headers != NULL && name != NULL && value != NULL)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "%s is missing (NULL)",
                      headers == NULL ? "headers"
                      : name == NULL  ? "name"
                                      : "value");
}

static void put(char *to, const pawl_header *header)
{
    memcpy(to, header->name, header->name_len);
    memcpy(to + header->name_len, BETWEEN, BETWEEN_LEN);
    to += header->name_len + BETWEEN_LEN;
    memcpy(to, header->value, header->value_len);
    memcpy(to + header->value_len, "\n", sizeof("\n"));
}

pawl_code pawl_headers_add(char *headers, size_t headers_size, const char *name, const char *value,
                           pawl_err *err)
{
    pawl_code rc = check_given(headers, name, value, err);
    if (rc != PAWL_OK)
        return rc;
    size_t count = 0;
    size_t len = strnlen(headers, headers_size);
    if (len == headers_size)
        return pawli_fail(err, PAWL_INVALID, "headers is no text of less than %zu bytes",
                          headers_size);
    pawl_header header = {name, strlen(name), value, strlen(value)};
    rc = check_all(headers, &count, err);
    if (rc == PAWL_OK)
        rc = check_header(headers, &header, count + 1, err);
    if (rc != PAWL_OK)
        return rc;
    size_t more = header.name_len + BETWEEN_LEN + header.value_len + 1;
    if (len + more > PAWL_HEADERS_LEN_MAX)
        return refuse_length(err);
    if (len + more >= headers_size)
        return pawli_fail(err, PAWL_FULL,
                          "headers_size is %zu, which has no room for %zu more bytes", headers_size,
                          more);
    put(headers + len, &header);
    return PAWL_OK;
}
