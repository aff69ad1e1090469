/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_access_test.c - proves serve/access.c and serve/grants.c: tokens, scopes, patterns, the
 * file.
 * Owns:  examples of good and bad lines.
 * Never: writes outside a folder of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "serve/access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void patterns_are_names_or_beginnings(void **state)
{
    (void)state;
    struct pawli_grant grant = {.queues = "mail,news-*"};
    assert_true(pawli_grant_has_queue(&grant, "mail"));
    assert_false(pawli_grant_has_queue(&grant, "mail2"));
    assert_false(pawli_grant_has_queue(&grant, "mai"));
    assert_true(pawli_grant_has_queue(&grant, "news-de"));
    assert_true(pawli_grant_has_queue(&grant, "news-"));
    assert_false(pawli_grant_has_queue(&grant, "news"));
    assert_false(pawli_grant_has_queue(&grant, "mail,news-*"));
    assert_false(pawli_grant_has_all_queues(&grant));
    pawli_grant_all(&grant);
    assert_true(pawli_grant_has_all_queues(&grant));
    assert_true(pawli_grant_has_queue(&grant, "x"));
}

static void lines_come_back_as_they_were(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "shop produce mail,news-* 2027-01-31T23:59:59Z " HASH,
        "ops produce,work,read,admin * never " HASH,
        "\xc3\xa9 read a never " HASH,
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct pawli_grant grant;
        char again[PAWLI_GRANT_LINE_MAX];
        assert_int_equal(pawli_grant_read(lines[i], &grant, NULL), PAWL_OK);
        pawli_grant_write(&grant, again);
        assert_string_equal(again, lines[i]);
    }
}

static void bad_lines_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *said;
    } cases[] = {
        {"shop produce mail never", "4 words"},
        {"shop produce mail never " HASH " more", "6 words"},
        {"shop produced mail never " HASH, "scopes"},
        {"shop produce, mail never " HASH, "scopes"},
        {"shop produce *x never " HASH, "queues"},
        {"shop produce a,,b never " HASH, "queues"},
        {"shop produce mail tomorrow " HASH, "expires"},
        {"shop produce mail 2027-02-30T00:00:00Z " HASH, "expires"},
        {"shop produce mail 2027-01-01T00:00:00 " HASH, "expires"},
        {"shop produce mail 20x7-01-01T00:00:00Z " HASH, "expires"},
        {"shop produce mail never 0123", "hash"},
        {"shop produce mail never 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
         "hash"},
        {"a\x01"
         "b produce mail never " HASH,
         "name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pawli_grant grant;
        pawl_err err = {.text = ""};
        if (pawli_grant_read(cases[i].line, &grant, &err) != PAWL_INVALID ||
            strstr(err.text, cases[i].said) == NULL)
            fail_msg("%s: %s", cases[i].line, err.text);
    }
}

static void a_token_is_found_by_itself_only(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {3};
    pawl_random random = pawli_seeded_as_random(&seeded);
    char tokens[3][PAWLI_TOKEN_TEXT_MAX];
    struct pawli_grant rows[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    struct pawli_grants grants = {rows, 3};
    for (size_t i = 0; i < 3; i++)
        pawli_token_make(&random, tokens[i], rows[i].hash);
    assert_int_equal(strlen(tokens[0]), PAWLI_TOKEN_TEXT_MAX - 1);
    assert_string_not_equal(tokens[0], tokens[1]);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(pawli_grants_find(&grants, tokens[i]), &rows[i]);
    /* One letter more, less or other. */
    char other[PAWLI_TOKEN_TEXT_MAX + 1];
    for (size_t i = 0; i < PAWLI_TOKEN_TEXT_MAX - 1; i++) {
        memcpy(other, tokens[1], PAWLI_TOKEN_TEXT_MAX);
        other[i] = (char)(other[i] ^ 1);
        assert_null(pawli_grants_find(&grants, other));
    }
    (void)snprintf(other, sizeof(other), "%sx", tokens[1]);
    assert_null(pawli_grants_find(&grants, other));
    other[PAWLI_TOKEN_TEXT_MAX - 2] = '\0';
    assert_null(pawli_grants_find(&grants, other));
    assert_null(pawli_grants_find(&grants, ""));
    /* The hash is no token. */
    assert_null(pawli_grants_find(&grants, HASH));
}

static void files_are_written_and_read(void **state)
{
    (void)state;
    char folder[] = "/tmp/pawl-grants-XXXXXX";
    char path[64];
    pawl_err err;
    struct pawli_grants grants = {0};
    struct pawli_grants again = {0};
    struct stat status;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/tokens", folder);
    assert_int_equal(pawli_grants_read(path, &grants, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, path));
    grants.rows = calloc(2, sizeof(*grants.rows));
    assert_non_null(grants.rows);
    grants.count = 2;
    assert_int_equal(pawli_grant_read("shop produce mail never " HASH, &grants.rows[0], NULL),
                     PAWL_OK);
    assert_int_equal(pawli_grant_read("ops admin * never " HASH, &grants.rows[1], NULL), PAWL_OK);
    assert_int_equal(pawli_grants_write(path, &grants, &err), PAWL_OK);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(pawli_grants_read(path, &again, &err), PAWL_OK);
    assert_int_equal(again.count, 2);
    assert_string_equal(again.rows[1].name, "ops");
    pawli_grants_clear(&again);
    /* One that others can write to is refused, and so is a name that is there twice. */
    assert_int_equal(chmod(path, 0620), 0);
    assert_int_equal(pawli_grants_read(path, &again, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "chmod"));
    grants.rows[1] = grants.rows[0];
    assert_int_equal(pawli_grants_write(path, &grants, &err), PAWL_OK);
    assert_int_equal(pawli_grants_read(path, &again, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "line 4"));
    pawli_grants_clear(&grants);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A page, and one behind it that nobody may read: whoever looks there dies of it. */
static uint8_t *edge_new(size_t page)
{
    uint8_t *bytes = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                          0);
    assert_true(bytes != MAP_FAILED);
    assert_int_equal(mprotect(bytes + page, page, PROT_NONE), 0);
    return bytes;
}

/* Whether a process that does this dies of what it looks at. */
static bool is_deadly(void (*look)(const void *what), const void *what)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* whatever others made of it: not theirs to tell */
        look(what);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void compare(const void *hash)
{
    uint8_t other[PAWLI_SHA256_LEN];
    memcpy(other, hash, 1);
    other[0] = (uint8_t)(other[0] + 1); /* another from the first byte on */
    memset(other + 1, 0, sizeof(other) - 1);
    (void)pawli_hash_is_same(hash, other);
}

static void find(const void *grants)
{
    (void)pawli_grants_find(grants, "pawl_first");
}

/* How long it takes says nothing: all bytes are looked at where the first is another, and all rows
 * where the first is the one. The last of them cannot be read, and nobody gets round it. */
static void comparisons_look_at_everything(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *edge = edge_new(page);
    assert_true(is_deadly(compare, edge + page - PAWLI_SHA256_LEN + 1));
    assert_false(is_deadly(compare, edge + page - PAWLI_SHA256_LEN));

    struct pawli_grant *rows = (struct pawli_grant *)(void *)edge;
    struct pawli_sha256 hash;
    size_t fitting = page / sizeof(*rows);
    assert_true(fitting >= 1);
    rows = (struct pawli_grant *)(void *)(edge + page - fitting * sizeof(*rows));
    pawli_sha256_init(&hash);
    pawli_sha256_add(&hash, "pawl_first", strlen("pawl_first"));
    pawli_sha256_end(&hash, rows[0].hash);
    const struct pawli_grants within = {rows, fitting};
    const struct pawli_grants beyond = {rows, fitting + 1};
    assert_ptr_equal(pawli_grants_find(&within, "pawl_first"), &rows[0]);
    assert_false(is_deadly(find, &within));
    assert_true(is_deadly(find, &beyond));
    assert_int_equal(munmap(edge, 2 * page), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_names_or_beginnings),
        cmocka_unit_test(lines_come_back_as_they_were),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(a_token_is_found_by_itself_only),
        cmocka_unit_test(comparisons_look_at_everything),
        cmocka_unit_test(files_are_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
