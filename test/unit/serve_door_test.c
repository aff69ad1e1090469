/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_door_test.c - proves serve/door.c: who is let in, by a token or because it was meant.
 * Owns:  requests as browsers and others send them.
 * Never: reads a clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "serve/door.h"

#include <stdio.h>
#include <string.h>

static const struct pawli_route *route_of(const char *name)
{
    size_t i = 0;
    while (strcmp(pawli_routes[i].name, name) != 0)
        i++;
    return &pawli_routes[i];
}

/* The status that a request is refused with; 0: it is let in. */
static unsigned ask(const struct pawli_door *door, const char *route,
                    const struct pawli_pair *headers, size_t count)
{
    struct pawli_answer answer = {0};
    struct pawli_grant grant;
    struct pawli_call call = {.route = route_of(route), .headers = headers, .headers_count = count};
    bool is_in = pawli_door_open(door, &call, &grant, &answer);
    unsigned status = answer.status;
    assert_int_equal(is_in, status == 0);
    pawli_answer_clear(&answer);
    return status;
}

static void only_this_machine_is_answered_without_tokens(void **state)
{
    (void)state;
    const struct pawli_door door = {.grants = NULL};
    static const char *const here[] = {"localhost",      "LOCALHOST:80", "127.0.0.1",
                                       "127.1.2.3:7295", "[::1]",        "[::1]:1"};
    static const char *const elsewhere[] = {"",
                                            ":",
                                            ":80",
                                            "localhost.",
                                            "localhost.example",
                                            "xlocalhost",
                                            "127.0.0.1.example",
                                            "127.0.0.1x",
                                            "128.0.0.1",
                                            "[::1",
                                            "[::2]",
                                            "[::1]x",
                                            "[::1]:x",
                                            "localhost:80x",
                                            "localhost:80:80",
                                            "127.0.0.1@example",
                                            "example",
                                            "0.0.0.0"};
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
        const struct pawli_pair host[] = {{"host", here[i]}};
        if (ask(&door, "queues", host, 1) != 0)
            fail_msg("refused: %s", here[i]);
    }
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        const struct pawli_pair host[] = {{"Host", elsewhere[i]}};
        if (ask(&door, "queues", host, 1) != 403)
            fail_msg("let in: %s", elsewhere[i]);
    }
    assert_int_equal(ask(&door, "queues", NULL, 0), 403);
    const struct pawli_pair two[] = {{"Host", "localhost"}, {"Host", "localhost"}};
    assert_int_equal(ask(&door, "queues", two, 2), 403);
    /* A file in the file system is no host. */
    const struct pawli_door file = {.grants = NULL, .is_unix = true};
    assert_int_equal(ask(&file, "queues", NULL, 0), 0);
}

static void what_a_page_sends_is_refused(void **state)
{
    (void)state;
    const struct pawli_door door = {.grants = NULL};
    static const struct {
        struct pawli_pair header;
        unsigned status;
    } cases[] = {
        {{"Origin", "http://localhost:1"}, 0},    {{"Origin", "http://localhost:2"}, 403},
        {{"Origin", "https://localhost:1"}, 403}, {{"Origin", "null"}, 403},
        {{"Origin", "http://example"}, 403},      {{"Origin", ""}, 403},
        {{"Sec-Fetch-Site", "cross-site"}, 403},  {{"Sec-Fetch-Site", "same-site"}, 403},
        {{"Sec-Fetch-Site", "same-origin"}, 0},   {{"Sec-Fetch-Site", "none"}, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct pawli_pair headers[] = {{"Host", "localhost:1"}, cases[i].header};
        if (ask(&door, "enqueue", headers, 2) != cases[i].status)
            fail_msg("%s: %s", cases[i].header.name, cases[i].header.value);
    }
}

static void tokens_open_what_they_are_for(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {5};
    pawl_random random = pawli_seeded_as_random(&seeded);
    char tokens[3][PAWLI_TOKEN_TEXT_MAX];
    char bearer[3][PAWLI_TOKEN_TEXT_MAX + 16];
    struct pawli_grant rows[3] = {
        {.name = "reader", .scopes = PAWLI_SCOPE_READ, .queues = "*", .expires_at = {1000}},
        {.name = "one", .scopes = PAWLI_SCOPES_ALL, .queues = "mail"},
        {.name = "ops", .scopes = PAWLI_SCOPES_ALL, .queues = "*"},
    };
    const struct pawli_grants grants = {rows, 3};
    for (size_t i = 0; i < 3; i++) {
        pawli_token_make(&random, tokens[i], rows[i].hash);
        (void)snprintf(bearer[i], sizeof(bearer[i]), "%s %.70s", i == 0 ? "bearer" : "Bearer",
                       tokens[i]);
    }
    const struct pawli_door door = {.grants = &grants, .is_unix = true, .now = {999}};
    const struct pawli_door late = {.grants = &grants, .is_unix = true, .now = {1000}};
    const struct pawli_pair reader[] = {{"Authorization", bearer[0]}};
    const struct pawli_pair one[] = {{"authorization", bearer[1]}};
    const struct pawli_pair ops[] = {{"Authorization", bearer[2]}};
    assert_int_equal(ask(&door, "livez", NULL, 0), 0);
    assert_int_equal(ask(&door, "queues", NULL, 0), 401); /* at a Unix socket, too */
    assert_int_equal(ask(&door, "queues", reader, 1), 0);
    assert_int_equal(ask(&late, "queues", reader, 1), 401);
    assert_int_equal(ask(&door, "enqueue", reader, 1), 403);
    assert_int_equal(ask(&door, "enqueue", one, 1), 0); /* which queue, its handler asks */
    assert_int_equal(ask(&door, "metrics", one, 1), 403);
    assert_int_equal(ask(&door, "metrics", ops, 1), 0);
    const struct pawli_pair twice[] = {{"Authorization", bearer[2]}, {"Authorization", bearer[2]}};
    assert_int_equal(ask(&door, "queues", twice, 2), 401);
    const struct pawli_pair bare[] = {{"Authorization", tokens[2]}};
    assert_int_equal(ask(&door, "queues", bare, 1), 401);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_this_machine_is_answered_without_tokens),
        cmocka_unit_test(what_a_page_sends_is_refused),
        cmocka_unit_test(tokens_open_what_they_are_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
