/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * access.c - who may do what.
 * Owns:  how tokens are made, hashed and compared; the form of a line.
 * Never: keeps a token; tells by the time it takes how much of one was right.
 */
#include "serve/access.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NEVER        "never"
#define TOKEN_MAX    256 /* bytes of what is offered as a token: more is none */
#define HASH_LETTERS (2 * (size_t)PAWLI_SHA256_LEN)
#define TIME_FORM    "%Y-%m-%dT%H:%M:%SZ"

const char *const pawli_scope_names[] = {"produce", "work", "read", "admin", NULL};

const char *pawli_scope_name(enum pawli_scope scope)
{
    for (size_t i = 0; pawli_scope_names[i] != NULL; i++)
        if ((unsigned)scope == 1u << i)
            return pawli_scope_names[i];
    return "none";
}

void pawli_grant_all(struct pawli_grant *grant)
{
    *grant = (struct pawli_grant){.name = "", .scopes = PAWLI_SCOPES_ALL, .queues = "*"};
}

/* ---------------------------------------------------------------- queues */

static bool fits(const char *pattern, size_t len, const char *queue)
{
    if (len > 0 && pattern[len - 1] == '*')
        return strncmp(pattern, queue, len - 1) == 0;
    return strlen(queue) == len && memcmp(pattern, queue, len) == 0;
}

bool pawli_grant_has_queue(const struct pawli_grant *grant, const char *queue)
{
    const char *at = grant->queues;
    while (*at != '\0') {
        size_t len = strcspn(at, ",");
        if (fits(at, len, queue))
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

bool pawli_grant_has_all_queues(const struct pawli_grant *grant)
{
    const char *at = grant->queues;
    while (*at != '\0') {
        size_t len = strcspn(at, ",");
        if (len == 1 && *at == '*')
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

/* ---------------------------------------------------------------- what a line may say */

static bool is_word(const char *text)
{
    if (text[0] == '\0' || text[0] == '#')
        return false;
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

static bool are_patterns(const char *text)
{
    const char *at = text;
    do {
        size_t len = strcspn(at, ",");
        const char *star = memchr(at, '*', len);
        if (len == 0 || len > PAWL_NAME_MAX + 1 || (star != NULL && star != at + len - 1))
            return false;
        at += len;
    } while (*at++ == ',');
    return true;
}

pawl_code pawli_grant_check(const struct pawli_grant *grant, pawl_err *err)
{
    if (!is_word(grant->name) || grant->name[pawli_text_good(grant->name, "")] != '\0')
        return pawli_fail(err, PAWL_INVALID,
                          "the name must have 1 to %d bytes of UTF-8 without blanks, and not begin "
                          "with #",
                          PAWLI_GRANT_NAME_MAX);
    if (grant->scopes == 0 || (grant->scopes & ~PAWLI_SCOPES_ALL) != 0)
        return pawli_fail(err, PAWL_INVALID,
                          "scopes must be some of produce, work, read and admin, with commas "
                          "between");
    if (!is_word(grant->queues) || !are_patterns(grant->queues))
        return pawli_fail(err, PAWL_INVALID,
                          "queues must be names, or beginnings of names with a * behind, with "
                          "commas between, %d bytes at most",
                          PAWLI_GRANT_QUEUE_MAX);
    return PAWL_OK;
}

/* ---------------------------------------------------------------- tokens */

static void put_hex(const uint8_t *bytes, size_t bytes_len, char *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes_len; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * bytes_len] = '\0';
}

static void hash_token(const char *token, size_t len, uint8_t ret_hash[PAWLI_SHA256_LEN])
{
    struct pawli_sha256 hash;
    pawli_sha256_init(&hash);
    pawli_sha256_add(&hash, token, len);
    pawli_sha256_end(&hash, ret_hash);
}

void pawli_token_make(const pawl_random *random, char ret_text[PAWLI_TOKEN_TEXT_MAX],
                      uint8_t ret_hash[PAWLI_SHA256_LEN])
{
    uint8_t bytes[PAWLI_TOKEN_BYTES];
    size_t prefix = strlen(PAWLI_TOKEN_PREFIX);
    pawli_random_fill(random, bytes, sizeof(bytes));
    memcpy(ret_text, PAWLI_TOKEN_PREFIX, prefix);
    put_hex(bytes, sizeof(bytes), ret_text + prefix);
    hash_token(ret_text, strlen(ret_text), ret_hash);
}

bool pawli_hash_is_same(const uint8_t a[PAWLI_SHA256_LEN], const uint8_t b[PAWLI_SHA256_LEN])
{
    volatile uint8_t differ = 0;
    for (size_t i = 0; i < PAWLI_SHA256_LEN; i++)
        differ = (uint8_t)(differ | (a[i] ^ b[i]));
    return differ == 0;
}

const struct pawli_grant *pawli_grants_find(const struct pawli_grants *grants, const char *token)
{
    uint8_t hash[PAWLI_SHA256_LEN];
    const struct pawli_grant *found = NULL;
    size_t len = strnlen(token, TOKEN_MAX);
    hash_token(token, len, hash);
    for (size_t i = 0; i < grants->count; i++)
        if (pawli_hash_is_same(hash, grants->rows[i].hash))
            found = &grants->rows[i]; /* and on: how long it takes depends on their number only */
    return len < TOKEN_MAX ? found : NULL;
}

/* ---------------------------------------------------------------- lines */

static bool read_hash(const char *text, uint8_t ret_hash[PAWLI_SHA256_LEN])
{
    if (strlen(text) != HASH_LETTERS || strspn(text, "0123456789abcdef") != HASH_LETTERS)
        return false;
    for (size_t i = 0; i < PAWLI_SHA256_LEN; i++) {
        int high = text[2 * i];
        int low = text[2 * i + 1];
        ret_hash[i] = (uint8_t)((high <= '9' ? high - '0' : high - 'a' + 10) * 16 +
                                (low <= '9' ? low - '0' : low - 'a' + 10));
    }
    return true;
}

static bool read_scopes(const char *text, unsigned *ret_scopes)
{
    unsigned scopes = 0;
    const char *at = text;
    do {
        size_t len = strcspn(at, ",");
        size_t i = 0;
        while (pawli_scope_names[i] != NULL &&
               (strlen(pawli_scope_names[i]) != len || memcmp(pawli_scope_names[i], at, len) != 0))
            i++;
        if (pawli_scope_names[i] == NULL)
            return false;
        scopes |= 1u << i;
        at += len;
    } while (*at++ == ',');
    *ret_scopes = scopes;
    return true;
}

/* Two digits as a number; -1: they are none. */
static int two_digits(const char *at)
{
    if (at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9')
        return -1;
    return (at[0] - '0') * 10 + at[1] - '0';
}

static bool read_time(const char *text, pawl_wall *ret_at)
{
    static const char form[] = "....-..-..T..:..:..Z";
    char again[32];
    if (strcmp(text, NEVER) == 0) {
        *ret_at = (pawl_wall){0};
        return true;
    }
    if (strlen(text) != sizeof(form) - 1)
        return false;
    struct tm parts = {
        .tm_year = two_digits(text) * 100 + two_digits(text + 2) - 1900,
        .tm_mon = two_digits(text + 5) - 1,
        .tm_mday = two_digits(text + 8),
        .tm_hour = two_digits(text + 11),
        .tm_min = two_digits(text + 14),
        .tm_sec = two_digits(text + 17),
    };
    time_t seconds = timegm(&parts);
    /* What comes back as another text was no instant: a 31st of February, a letter. */
    if (seconds <= 0 || strftime(again, sizeof(again), TIME_FORM, &parts) == 0 ||
        strcmp(again, text) != 0)
        return false;
    *ret_at = (pawl_wall){(int64_t)seconds * 1000000};
    return true;
}

pawl_code pawli_grant_read(const char *line, struct pawli_grant *ret_grant, pawl_err *err)
{
    char text[PAWLI_GRANT_LINE_MAX];
    char *words[5];
    size_t count = 0;
    struct pawli_grant grant = {.scopes = 0};
    if (!pawli_text_copy(text, sizeof(text), line))
        return pawli_fail(err, PAWL_INVALID, "the line has more than %d bytes",
                          PAWLI_GRANT_LINE_MAX - 1);
    for (char *at = text; *at != '\0';) {
        at += strspn(at, " \t\r");
        size_t len = strcspn(at, " \t\r");
        if (len > 0 && count < 5)
            words[count] = at;
        count += len > 0;
        at += len;
        if (*at != '\0')
            *at++ = '\0';
    }
    if (count != 5)
        return pawli_fail(err, PAWL_INVALID,
                          "the line has %zu words; it must have a name, scopes, queues, when it "
                          "expires, and a hash",
                          count);
    if (!pawli_text_copy(grant.name, sizeof(grant.name), words[0]))
        grant.name[0] = '\0';
    if (!read_scopes(words[1], &grant.scopes))
        grant.scopes = 0;
    if (!pawli_text_copy(grant.queues, sizeof(grant.queues), words[2]))
        grant.queues[0] = '\0';
    if (pawli_grant_check(&grant, err) != PAWL_OK)
        return PAWL_INVALID;
    if (!read_time(words[3], &grant.expires_at))
        return pawli_fail(err, PAWL_INVALID,
                          "when it expires must be never, or an instant: 2027-01-31T00:00:00Z");
    if (!read_hash(words[4], grant.hash))
        return pawli_fail(err, PAWL_INVALID,
                          "the hash must be 64 hexadecimal digits in lower case");
    *ret_grant = grant;
    return PAWL_OK;
}

void pawli_grant_write(const struct pawli_grant *grant, char ret_line[PAWLI_GRANT_LINE_MAX])
{
    char scopes[64] = "";
    char when[32] = NEVER;
    char hash[HASH_LETTERS + 1];
    size_t len = 0;
    struct tm parts;
    time_t seconds = (time_t)(grant->expires_at.us / 1000000);
    for (size_t i = 0; pawli_scope_names[i] != NULL; i++)
        if ((grant->scopes >> i & 1) != 0)
            len += (size_t)snprintf(scopes + len, sizeof(scopes) - len, "%s%s", len > 0 ? "," : "",
                                    pawli_scope_names[i]); /* fits */
    if (seconds > 0 && gmtime_r(&seconds, &parts) != NULL)
        (void)strftime(when, sizeof(when), TIME_FORM, &parts); /* fits */
    put_hex(grant->hash, sizeof(grant->hash), hash);
    (void)snprintf(ret_line, PAWLI_GRANT_LINE_MAX, "%s %s %s %s %s", grant->name, scopes,
                   grant->queues, when, hash); /* fits */
}
