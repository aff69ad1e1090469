/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_router_test.c - proves serve/router.c, routes.c and problem.c: every route is found by its
 * path, nothing else is, and bodies are framed without doubt.
 * Owns:  requests that no route fits.
 * Never: runs a handler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fuzz/head_fuzz.h"
#include "serve/route.h"

#include <stdio.h>
#include <string.h>

static const struct pawli_route *find(const char *method, const char *target,
                                      const char *ret_captures[PAWLI_CAPTURES_MAX],
                                      struct pawli_answer *answer)
{
    static char text[1024];
    static struct pawli_uri uri;
    (void)snprintf(text, sizeof(text), "%s", target);
    assert_int_equal(pawli_uri_parse(text, &uri, NULL), PAWL_OK);
    return pawli_route_find(method, &uri, ret_captures, answer);
}

static void each_route_is_found_and_no_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < pawli_routes_count; i++) {
        const struct pawli_route *route = &pawli_routes[i];
        struct pawli_answer answer = {0};
        const char *captures[PAWLI_CAPTURES_MAX] = {0};
        char target[256] = "";
        /* Each {part} as a word that no literal part is. */
        for (const char *at = route->path; *at != '\0'; at++) {
            bool is_part = *at == '{';
            (void)snprintf(target + strlen(target), sizeof(target) - strlen(target), "%.*s",
                           is_part ? 2 : 1, is_part ? "zz" : at);
            if (is_part)
                at += strcspn(at, "}");
        }
        assert_ptr_equal(find(route->method, target, captures, &answer), route);
        assert_int_equal(strchr(route->path, '{') != NULL, captures[0] != NULL);
        if (captures[0] != NULL)
            assert_string_equal(captures[0], "zz");
        if (strcmp(route->method, "GET") == 0)
            assert_ptr_equal(find("HEAD", target, captures, &answer), route);
        /* A method that no route has: 405, with the names of those that there are. */
        assert_null(find("LINK", target, captures, &answer));
        assert_int_equal(answer.status, 405);
        assert_non_null(strstr(answer.allow, route->method));
        pawli_answer_clear(&answer);
        /* A slash at the end makes it another path. */
        (void)snprintf(target + strlen(target), sizeof(target) - strlen(target), "/");
        assert_null(find(route->method, target, captures, &answer));
        assert_int_equal(answer.status, 404);
        pawli_answer_clear(&answer);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(pawli_routes[j].name, route->name);
    }
}

static void other_paths_fit_nothing(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/",         "/v1",          "//v1/jobs",         "/v1//jobs",
        "/v1/jobs/", "/V1/jobs",     "/v1/jobs/a/b",      "/v1/queues//jobs",
        "/livez/x",  "/v1/../livez", "/1/2/3/4/5/6/7/8/9"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct pawli_answer answer = {0};
        const char *captures[PAWLI_CAPTURES_MAX];
        assert_null(find("GET", targets[i], captures, &answer));
        if (answer.status != 404)
            fail_msg("%s: %u", targets[i], answer.status);
        pawli_answer_clear(&answer);
    }
}

static unsigned takes(const char *route_name, const struct pawli_pair *headers, size_t count)
{
    struct pawli_answer answer = {0};
    struct pawli_call call = {.headers = headers, .headers_count = count};
    size_t i = 0;
    while (strcmp(pawli_routes[i].name, route_name) != 0)
        i++;
    bool is_taken = pawli_route_takes(&pawli_routes[i], &call, &answer);
    unsigned status = answer.status;
    assert_int_equal(is_taken, status == 0);
    assert_true(is_taken || answer.is_closing); /* the body is not read */
    pawli_answer_clear(&answer);
    return status;
}

static void bodies_are_framed_without_doubt(void **state)
{
    (void)state;
    const struct pawli_pair fine[] = {{"content-length", "10"},
                                      {"Content-Type", "application/json; charset=utf-8"}};
    const struct pawli_pair chunked[] = {{"Transfer-Encoding", "chunked"}};
    const struct pawli_pair both[] = {{"Content-Length", "10"}, {"Transfer-Encoding", "chunked"}};
    const struct pawli_pair twice[] = {{"Content-Length", "10"}, {"Content-Length", "10"}};
    const struct pawli_pair other[] = {{"Transfer-Encoding", "gzip, chunked"}};
    const struct pawli_pair packed[] = {{"Content-Encoding", "gzip"}};
    static const char *const lengths[] = {
        "-1", "+1", "0x10", "1 ", "", "1,1", "99999999999999999999"};
    assert_int_equal(takes("claim", fine, 2), 0);
    assert_int_equal(takes("claim", chunked, 1), 0);
    assert_int_equal(takes("claim", both, 2), 400);
    assert_int_equal(takes("claim", twice, 2), 400);
    assert_int_equal(takes("claim", other, 1), 400);
    assert_int_equal(takes("claim", packed, 1), 400);
    /* As the HTTP library gives blanks before the colon, and folded lines. */
    static const struct pawli_pair odd[] = {
        {"Content-Length ", "0"},
        {"Transfer-Encodingchunked", ""},
        {"content-length5", "0"},
        {"X Y", "z"},
        {"", "z"},
        {"X", "a\rb"},
        {"X", "a\x7f"},
        {"X(", "z"},
        {"Transfer-Encoding\t", ""},
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        assert_int_equal(takes("claim", &odd[i], 1), 400);
    const struct pawli_pair plain[] = {{"X-1_2", "a\tb \xc3\xa4"}};
    assert_int_equal(takes("claim", plain, 1), 0);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const struct pawli_pair length[] = {{"Content-Length", lengths[i]}};
        assert_int_equal(takes("claim", length, 1), 400);
    }
}

static void bodies_have_their_size_and_type(void **state)
{
    (void)state;
    const struct pawli_pair large[] = {{"Content-Length", "65537"}};
    const struct pawli_pair most[] = {{"Content-Length", "65536"}};
    const struct pawli_pair payload[] = {{"Content-Length", "1048576"},
                                         {"Content-Type", "image/png"}};
    const struct pawli_pair over[] = {{"Content-Length", "1048577"}};
    const struct pawli_pair form[] = {{"Content-Type", "application/x-www-form-urlencoded"}};
    const struct pawli_pair near[] = {{"Content-Type", "application/jsonx"}};
    const struct pawli_pair lines[] = {{"Content-Type", "application/x-ndjson"}};
    assert_int_equal(takes("claim", most, 1), 0);
    assert_int_equal(takes("claim", large, 1), 413);
    assert_int_equal(takes("enqueue", payload, 2), 0);
    assert_int_equal(takes("enqueue", over, 1), 413);
    assert_int_equal(takes("claim", form, 1), 415);
    assert_int_equal(takes("claim", near, 1), 415);
    assert_int_equal(takes("enqueue-lines", lines, 1), 0);
    assert_int_equal(takes("enqueue-lines", form, 1), 415);
    assert_int_equal(takes("jobs", most, 1), 413); /* it has none */
}

/* Every code of the library has a type of its own. Q-STALE */
static void heads_are_looked_at_as_a_whole(void **state)
{
    (void)state;
    static const char *const good[] = {
        "GET /livez\nHost: localhost\n",
        "POST /v1/claim\nHost: 127.0.0.1:7295\nContent-Length: 2\nContent-Type: application/json\n",
        "POST /v1/queues/a%2Fb/jobs?delay=5s\nhost: [::1]\nTransfer-Encoding: chunked\n",
    };
    static const char *const bad[] = {
        "",
        "GET /livez\n",
        "GET /livez\nHost: evil.example\n",
        "GET /livez\nHost: localhost\nHost: localhost\n",
        "GET /livez%00\nHost: localhost\n",
        "GET /livez%\nHost: localhost\n",
        "POST /livez\nHost: localhost\n",
        "POST /v1/claim\nHost: localhost\nContent-Length : 2\n",
        "POST /v1/claim\nHost: localhost\nTransfer-Encodingchunked: \n",
        "POST /v1/claim\nHost: localhost\nContent-Length: 2\nTransfer-Encoding: chunked\n",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!head_fuzz_one(good[i], strlen(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (head_fuzz_one(bad[i], strlen(bad[i])))
            fail_msg("goes on: %s", bad[i]);
}

static void every_code_is_a_problem(void **state)
{
    (void)state;
    for (int code = 1; code < 256; code++) {
        struct pawli_answer answer = {0};
        if (strcmp(pawl_code_name((pawl_code)code), "?") == 0)
            continue;
        pawli_answer_code(&answer, (pawl_code)code, NULL);
        assert_true(answer.status >= 400);
        if (strcmp(answer.problem, "error") == 0)
            fail_msg("%s has no type", pawl_code_name((pawl_code)code));
        pawli_answer_clear(&answer);
    }
    assert_int_equal(pawli_code_status(PAWL_STALE), 409);
    const char *type;
    const char *other;
    unsigned status;
    for (size_t i = 0; pawli_problem_at(i, &type, &status); i++)
        for (size_t j = 0; j < i; j++) {
            assert_true(pawli_problem_at(j, &other, &status));
            assert_string_not_equal(type, other);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_route_is_found_and_no_other),
        cmocka_unit_test(other_paths_fit_nothing),
        cmocka_unit_test(bodies_are_framed_without_doubt),
        cmocka_unit_test(bodies_have_their_size_and_type),
        cmocka_unit_test(heads_are_looked_at_as_a_whole),
        cmocka_unit_test(every_code_is_a_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
