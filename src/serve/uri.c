/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * uri.c - what a request asks for, taken apart.
 * Owns:  percent-encoding; which bytes may stand in a path and in a query.
 * Never: resolves dots or doubled slashes: such paths fit no route; lets a NUL through.
 */
#include "serve/uri.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char small = (char)(byte | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* Decode a part where it stands; `where` names it in what is refused. */
static pawl_code decode(char *part, bool is_query, const char *where, pawl_err *err)
{
    char *to = part;
    for (const char *at = part; *at != '\0'; at++) {
        char byte = *at;
        if (byte == '%') {
            int high = hex_digit(at[1]);
            int low = high >= 0 ? hex_digit(at[2]) : -1;
            if (low < 0)
                return pawli_fail(err, PAWL_INVALID,
                                  "%s: a %% must have two hexadecimal digits behind it", where);
            byte = (char)(high * 16 + low);
            if (byte == '\0')
                return pawli_fail(err, PAWL_INVALID, "%s: there must be no NUL", where);
            at += 2;
        } else if (byte == '+' && is_query) {
            byte = ' ';
        }
        *to++ = byte;
    }
    *to = '\0';
    if (part[pawli_text_good(part, "")] != '\0')
        return pawli_fail(err, PAWL_INVALID,
                          "%s: it must be UTF-8 without control characters, percent-encoded",
                          where);
    return PAWL_OK;
}

/* What a client may send undecoded: visible ASCII, and neither a fragment nor a quote. */
static bool is_clean(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("#\"<>\\^`{|}", *at) != NULL)
            return false;
    return true;
}

static pawl_code parse_path(char *path, struct pawli_uri *uri, pawl_err *err)
{
    while (path != NULL) {
        char *next = strchr(path, '/');
        if (next != NULL)
            *next++ = '\0';
        pawl_code code = decode(path, false, "the path", err);
        if (code != PAWL_OK)
            return code;
        if (uri->segments_count < PAWLI_SEGMENTS_MAX)
            uri->segments[uri->segments_count] = path;
        if (uri->segments_count <= PAWLI_SEGMENTS_MAX)
            uri->segments_count++;
        path = next;
    }
    return PAWL_OK;
}

static pawl_code add_param(struct pawli_uri *uri, char *name, char *value, pawl_err *err)
{
    pawl_code code = decode(name, true, "the query", err);
    if (code == PAWL_OK)
        code = decode(value, true, "the query", err);
    if (code != PAWL_OK)
        return code;
    if (pawli_uri_param(uri, name) != NULL)
        return pawli_fail(err, PAWL_INVALID, "the query: %.60s is there twice", name);
    if (uri->params_count == PAWLI_PARAMS_MAX)
        return pawli_fail(err, PAWL_INVALID, "the query: more than %d parameters",
                          PAWLI_PARAMS_MAX);
    uri->params[uri->params_count++] = (struct pawli_param){name, value};
    return PAWL_OK;
}

static pawl_code parse_query(char *query, struct pawli_uri *uri, pawl_err *err)
{
    while (query != NULL) {
        char *next = strchr(query, '&');
        if (next != NULL)
            *next++ = '\0';
        char *value = strchr(query, '=');
        if (value != NULL)
            *value++ = '\0';
        bool is_param = query[0] != '\0' || value != NULL; /* "&&" is none */
        if (value == NULL)
            value = query + strlen(query); /* a name alone has an empty value */
        pawl_code code = is_param ? add_param(uri, query, value, err) : PAWL_OK;
        if (code != PAWL_OK)
            return code;
        query = next;
    }
    return PAWL_OK;
}

pawl_code pawli_uri_parse(char *text, struct pawli_uri *ret_uri, pawl_err *err)
{
    assert(text != NULL);
    assert(ret_uri != NULL);

    *ret_uri = (struct pawli_uri){0};
    if (text[0] != '/')
        return pawli_fail(err, PAWL_INVALID, "the path must begin with a slash");
    if (!is_clean(text))
        return pawli_fail(err, PAWL_INVALID,
                          "the path or the query has a byte that must be percent-encoded");
    char *query = strchr(text, '?');
    if (query != NULL)
        *query++ = '\0';
    pawl_code code = parse_path(text + 1, ret_uri, err);
    return code == PAWL_OK ? parse_query(query, ret_uri, err) : code;
}

const char *pawli_uri_param(const struct pawli_uri *uri, const char *name)
{
    for (size_t i = 0; i < uri->params_count; i++)
        if (strcmp(uri->params[i].name, name) == 0)
            return uri->params[i].value;
    return NULL;
}
