/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_head_test.c - proves serve/head.c: heads as a library that passes bytes over shows them.
 * Owns:  a reader of heads that is as easy to deceive as that library.
 * Never: needs the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/head.h"

#include <string.h>

#define HEAD_MAX 256

static char bytes[HEAD_MAX];
static struct pawli_pair pairs[8];

/* Cut the line at `at` off, as the library does: CR, LF or both become NULs. Gives the next. */
static char *cut_line(char *at, char *end)
{
    while (at < end && *at != '\r' && *at != '\n')
        at++;
    if (at < end && *at == '\r')
        *at++ = '\0';
    if (at < end && *at == '\n')
        *at++ = '\0';
    return at;
}

/* Read a head of `len` bytes in place: texts end at the first NUL that there is. */
static struct pawli_head read_head(const char *text, size_t len)
{
    struct pawli_head head = {.method = bytes, .headers = pairs, .size = len};
    char *end = bytes + len;
    assert_true(len <= sizeof(bytes));
    memcpy(bytes, text, len);
    char *next = cut_line(bytes, end);
    char *target = memchr(bytes, ' ', len);
    assert_non_null(target);
    *target++ = '\0';
    target += strspn(target, " ");
    char *version = target;
    while (strncmp(version, "HTTP/", 5) != 0)
        version++;
    version[-1] = '\0';
    head.target = target;
    head.target_len = strlen(target);
    head.version = version;
    while (next < end && *next != '\r' && *next != '\n') {
        char *name = next;
        next = cut_line(name, end);
        char *colon = strchr(name, ':');
        assert_non_null(colon);
        *colon++ = '\0';
        pairs[head.headers_count++] = (struct pawli_pair){name, colon + strspn(colon, " \t")};
    }
    return head;
}

#define HEAD(text) read_head(text, sizeof(text) - 1)

static void heads_as_they_should_be(void **state)
{
    (void)state;
    struct pawli_head head = HEAD("GET / HTTP/1.0\r\n\r\n");
    assert_true(pawli_head_is_whole(&head));
    head = HEAD("GET /a?b=c HTTP/1.1\r\nHost: x\r\nA:b\r\nC: \t d  \r\nE:\r\n\r\n");
    assert_int_equal(head.headers_count, 4);
    assert_true(pawli_head_is_whole(&head));
}

static void nothing_is_hidden(void **state)
{
    (void)state;
    struct pawli_head head = HEAD("GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\0\r\nHost: x\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nContent-Length: 1\0"
                "0\r\nHost: x\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\0"
                "0\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\0\0\0\0"
                "0\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\0\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET  /a HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
}

static void lines_end_with_both(void **state)
{
    (void)state;
    struct pawli_head head = HEAD("GET /a HTTP/1.1\nHost: x\n\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nX: y\nHost: x\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nHost: x\r\n\n");
    assert_false(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\nHost: x\r\n\r\n");
    assert_false(pawli_head_is_whole(&head));
}

/* A header that was put together elsewhere was folded; a head that is elsewhere is of a library of
 * which nothing is known. */
static void parts_that_were_moved(void **state)
{
    (void)state;
    struct pawli_head head = HEAD("GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n");
    assert_true(pawli_head_is_whole(&head));
    pairs[1] = (struct pawli_pair){"A", "b"};
    assert_false(pawli_head_is_whole(&head));
    head.version = "HTTP/1.1";
    assert_true(pawli_head_is_whole(&head));
    head = HEAD("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    head.size = 0; /* it does not say */
    assert_true(pawli_head_is_whole(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_as_they_should_be),
        cmocka_unit_test(nothing_is_hidden),
        cmocka_unit_test(lines_end_with_both),
        cmocka_unit_test(parts_that_were_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
