/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * secret.c - the name of a store without what must not be shown of it.
 * Owns:  the list of what is harmless.
 * Never: shows a value of which it does not know that it is no secret.
 */
#include "cli/secret.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HIDDEN "***"

/* A text that grows as long as there is room. */
struct shown {
    char *to;
    size_t size;
    size_t length;
};

static void put(struct shown *shown, const char *text, size_t length)
{
    size_t room = shown->size - 1 - shown->length;
    if (length > room)
        length = room;
    memcpy(shown->to + shown->length, text, length);
    shown->length += length;
    shown->to[shown->length] = '\0';
}

/* Parameters of libpq whose values tell no secret. A name in other letters is not known. */
static bool is_harmless(const char *name, size_t length)
{
    static const char *const names[] = {"application_name",
                                        "client_encoding",
                                        "connect_timeout",
                                        "dbname",
                                        "host",
                                        "hostaddr",
                                        "keepalives",
                                        "port",
                                        "service",
                                        "sslmode",
                                        "target_session_attrs",
                                        "user"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* name=value, up to where it ends. */
static void put_pair(struct shown *shown, const char *pair, size_t length)
{
    const char *equals = memchr(pair, '=', length);
    size_t name_len = equals != NULL ? (size_t)(equals - pair) : length;
    if (equals == NULL) {
        put(shown, HIDDEN, strlen(HIDDEN)); /* no one knows what it is */
    } else if (is_harmless(pair, name_len)) {
        put(shown, pair, length);
    } else {
        put(shown, pair, name_len + 1);
        put(shown, HIDDEN, strlen(HIDDEN));
    }
}

/* user:password@, where there are such. The password may have any character but `/`, `?` and `#`,
 * even an `@`: what is before the last one belongs to it. */
static size_t put_user(struct shown *shown, const char *authority, size_t length)
{
    size_t end = length;
    while (end > 0 && authority[end - 1] != '@')
        end--;
    if (end == 0)
        return 0;
    const char *colon = memchr(authority, ':', end);
    if (colon == NULL) {
        put(shown, authority, end);
    } else {
        put(shown, authority, (size_t)(colon - authority) + 1);
        put(shown, HIDDEN "@", strlen(HIDDEN "@"));
    }
    return end;
}

static void put_url(struct shown *shown, const char *url, const char *rest)
{
    put(shown, url, (size_t)(rest - url));
    size_t length = strcspn(rest, "/?#");
    /* A password that was not encoded may hold these, too: then nothing behind it can be told
     * apart. */
    if (memchr(rest, '@', length) == NULL && strchr(rest, '@') != NULL) {
        put(shown, HIDDEN, strlen(HIDDEN));
        return;
    }
    size_t user_len = put_user(shown, rest, length);
    put(shown, rest + user_len, length - user_len);
    rest += length;
    length = strcspn(rest, "?");
    put(shown, rest, length);
    rest += length;
    while (*rest != '\0') { /* at `?` or `&` */
        put(shown, rest, 1);
        rest++;
        length = strcspn(rest, "&");
        put_pair(shown, rest, length);
        rest += length;
    }
}

/* name=value ..., of libpq. Values may be quoted: what is not plain hides all that follows. */
static void put_pairs(struct shown *shown, const char *pairs)
{
    while (*pairs != '\0') {
        size_t blanks = strspn(pairs, " \t\r\n");
        put(shown, pairs, blanks);
        pairs += blanks;
        size_t length = strcspn(pairs, " \t\r\n");
        if (length == 0)
            return;
        if (memchr(pairs, '=', length) == NULL || strpbrk(pairs, "'\\") != NULL) {
            put(shown, HIDDEN, strlen(HIDDEN));
            return;
        }
        put_pair(shown, pairs, length);
        pairs += length;
    }
}

void pawli_secret_shown(const char *url, char *to, size_t to_size)
{
    struct shown shown = {.to = to, .size = to_size};
    const char *rest = strstr(url, "://");
    to[0] = '\0';
    if (strncmp(url, "sqlite:", strlen("sqlite:")) == 0 || strcmp(url, "memory:") == 0)
        put(&shown, url, strlen(url));
    else if (strncmp(url, "postgres://", strlen("postgres://")) == 0 ||
             strncmp(url, "postgresql://", strlen("postgresql://")) == 0)
        put_url(&shown, url, rest + strlen("://"));
    else if (rest == NULL && strchr(url, '=') != NULL)
        put_pairs(&shown, url);
    else
        put(&shown, HIDDEN, strlen(HIDDEN));
}
