/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * topic.c - types of events, and which of them an endpoint wants.
 * Owns:  what a type and a pattern are; when one matches the other.
 * Never: allocates; changes what it is given; knows an endpoint.
 */
#include "core/topic.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

#define SHOWN_MAX 64 /* bytes of a type that an error quotes */

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* What is wrong with text[0 .. len); NULL: nothing. */
static const char *problem_of(const char *text, size_t len, bool is_pattern)
{
    if (len == 0)
        return "is empty";
    if (len > PAWLI_TOPIC_MAX)
        return "is too long";
    if (is_pattern && len == 1 && text[0] == '*')
        return NULL;
    if (is_pattern && len > 2 && text[len - 2] == '.' && text[len - 1] == '*')
        len -= 2;
    for (size_t i = 0; i < len; i++) {
        bool is_edge = i == 0 || i + 1 == len || text[i - 1] == '.';
        if (text[i] == '.' && is_edge)
            return "has an empty word";
        if (text[i] != '.' && !is_word_byte(text[i]))
            return text[i] == '*' ? "has a * that is not all of its last word"
                                  : "has a byte that is not allowed";
    }
    return NULL;
}

static pawl_code refuse(pawl_err *err, const char *field, const char *text, size_t len,
                        const char *problem)
{
    char shown[SHOWN_MAX + 1];
    size_t shown_len = 0;
    for (; shown_len < SHOWN_MAX && shown_len < len; shown_len++)
        shown[shown_len] = text[shown_len] >= ' ' && text[shown_len] <= '~' ? text[shown_len] : '?';
    shown[shown_len] = '\0';
    return pawli_fail(err, PAWL_INVALID,
                      "%s \"%s%s\" %s; allowed: up to %d letters, digits, _ and -, in words with "
                      "full stops between them%s",
                      field, shown, shown_len < len ? "..." : "", problem, PAWLI_TOPIC_MAX,
                      field[0] == 't' ? ", the last one may be *" : "");
}

pawl_code pawli_topic_check(const char *type, pawl_err *err)
{
    if (type == NULL)
        return pawli_fail(err, PAWL_INVALID, "event_type is missing (NULL)");
    size_t len = pawli_text_length(type, PAWLI_TOPIC_MAX);
    const char *problem = problem_of(type, len, false);
    return problem == NULL ? PAWL_OK : refuse(err, "event_type", type, len, problem);
}

/* Whether the same pattern stands in the list before `at`. */
static bool stands_before(const char *list, size_t at, size_t len)
{
    for (size_t i = 0; i < at;) {
        size_t other_len = strcspn(list + i, ",");
        if (other_len == len && memcmp(list + i, list + at, len) == 0)
            return true;
        i += other_len + 1;
    }
    return false;
}

pawl_code pawli_topics_check(const char *list, pawl_err *err)
{
    if (list == NULL)
        return pawli_fail(err, PAWL_INVALID, "topics are missing (NULL)");
    size_t list_len = pawli_text_length(list, PAWLI_TOPICS_LENGTH_MAX);
    if (list_len > PAWLI_TOPICS_LENGTH_MAX)
        return pawli_fail(err, PAWL_INVALID, "topics: too long; allowed: up to %d bytes",
                          PAWLI_TOPICS_LENGTH_MAX);
    size_t count = 0;
    for (size_t at = 0; at <= list_len; count++) {
        size_t len = strcspn(list + at, ",");
        const char *problem = problem_of(list + at, len, true);
        if (problem == NULL && stands_before(list, at, len))
            problem = "stands there twice";
        if (problem != NULL)
            return refuse(err, "topic", list + at, len, problem);
        at += len + 1;
    }
    if (count > PAWLI_TOPICS_MAX)
        return pawli_fail(err, PAWL_INVALID, "topics: %zu of them; allowed: 1 to %d", count,
                          PAWLI_TOPICS_MAX);
    return PAWL_OK;
}

static bool is_match(const char *pattern, size_t len, const char *type, size_t type_len)
{
    if (pattern[len - 1] != '*')
        return len == type_len && memcmp(pattern, type, len) == 0;
    /* Up to the star, the full stop with it. */
    return type_len > len - 1 && memcmp(pattern, type, len - 1) == 0;
}

bool pawli_topics_match(const char *list, const char *type)
{
    assert(pawli_topic_check(type, NULL) == PAWL_OK);
    assert(list != NULL && list[0] != '\0');

    size_t type_len = strlen(type);
    for (const char *at = list;; at++) {
        size_t len = strcspn(at, ",");
        assert(len > 0);
        if (is_match(at, len, type, type_len))
            return true;
        at += len;
        if (*at == '\0')
            return false;
    }
}
