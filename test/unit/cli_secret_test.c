/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_secret_test.c - what is shown of the name of a store, and what is not. NFR-003
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/secret.h"

#include <stdlib.h>
#include <string.h>

static void shown_is(const char *url, const char *expected)
{
    char text[256];
    pawli_secret_shown(url, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void files_are_shown(void **state)
{
    (void)state;
    shown_is("sqlite:", "sqlite:");
    shown_is("sqlite:/a:b@c/d.db", "sqlite:/a:b@c/d.db");
    shown_is("memory:", "memory:");
}

static void passwords_are_hidden(void **state)
{
    (void)state;
    shown_is("postgres://h/d", "postgres://h/d");
    shown_is("postgres://u@h:5432,i:5433/d", "postgres://u@h:5432,i:5433/d");
    shown_is("postgresql://u:p@h/d", "postgresql://u:***@h/d");
    shown_is("postgres://u:p:q@h", "postgres://u:***@h");
    shown_is("postgres://u:p@q@h/d", "postgres://u:***@h/d");
    shown_is("postgres://:p@h", "postgres://:***@h");
    shown_is("postgres:///d?user=u&password=p", "postgres:///d?user=u&password=***");
    shown_is("postgres:///d?pass%77ord=p&sslpassword=q&host=/s",
             "postgres:///d?pass%77ord=***&sslpassword=***&host=/s");
    shown_is("postgres:///d?p", "postgres:///d?***");
    shown_is("host=h port=5 password=p", "host=h port=5 password=***");
    shown_is("host=h  user=u", "host=h  user=u");
}

static void what_cannot_be_told_apart_is_hidden(void **state)
{
    (void)state;
    shown_is("postgres://u:p/q@h/d", "postgres://***");
    shown_is("postgres://u:p?q@h/d", "postgres://***");
    shown_is("postgres://u:p#q@h/d", "postgres://***");
    shown_is("host=h password='a b'", "***");
    shown_is("password=a\\ b host=h", "***");
    shown_is("password = p", "***");
    shown_is("host=h password = p", "host=h ***");
    shown_is("mysql://u:p@h/d", "***");
    shown_is("mysql://h?a=b", "***");
    shown_is("secret", "***");
    shown_is("", "***");
}

/* Whatever the room, nothing is written beyond it, and what fits of a secret is not shown. */
static void any_room_will_do(void **state)
{
    (void)state;
    static const char url[] = "postgres://user:canary@host/d?password=canary";
    for (size_t size = 1; size < sizeof(url) + 10; size++) {
        char *text = malloc(size);
        assert_non_null(text);
        pawli_secret_shown(url, text, size);
        assert_true(strlen(text) < size);
        assert_null(strstr(text, "can"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_shown),
        cmocka_unit_test(passwords_are_hidden),
        cmocka_unit_test(what_cannot_be_told_apart_is_hidden),
        cmocka_unit_test(any_room_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
