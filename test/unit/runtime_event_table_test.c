/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * runtime_event_table_test.c - the table of events: whole, and the same as docs/logs.md says, in
 * both directions.
 *
 * Called with the path of docs/logs.md; without it, only the table is looked at. With --print it
 * prints the rows as the document must have them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/event_table.h"

#include <stdio.h>
#include <string.h>

#define ROW_MAX 512

static const char *document; /* NULL: none */

/* Every event has an id of its own, a text, and levels in order. */
static void the_table_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < PAWL_EVENT_KINDS; i++) {
        const struct pawli_event_row *row = pawli_event_row((pawl_event_kind)i);
        assert_non_null(row);
        assert_non_null(row->id);
        assert_int_equal(strspn(row->id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-"), strlen(row->id));
        assert_true(row->text != NULL && strlen(row->text) > 10 && strlen(row->text) < 120);
        assert_true(row->level <= row->level_worst && row->level_worst <= PAWL_LEVEL_ERROR);
        assert_string_equal(pawl_event_id((pawl_event_kind)i), row->id);
        assert_string_equal(pawl_event_text((pawl_event_kind)i), row->text);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(pawl_event_id((pawl_event_kind)j), row->id);
    }
}

static void other_numbers_have_a_name_too(void **state)
{
    (void)state;
    assert_null(pawli_event_row(PAWL_EVENT_KINDS));
    assert_null(pawli_event_row((pawl_event_kind)-1));
    assert_string_equal(pawl_event_id(PAWL_EVENT_KINDS), "?");
    assert_string_equal(pawl_event_text(PAWL_EVENT_KINDS), "?");
    assert_string_equal(pawli_level_name((pawl_level)7), "?");
    assert_string_equal(pawli_level_name((pawl_level)-1), "?");
}

/* | `ID` | level | fields | text | */
static void print_row(const struct pawli_event_row *row, char text[ROW_MAX])
{
    const char *names[] = {row->subject_as, row->count_as, row->took_as};
    char fields[ROW_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; i < 3; i++)
        if (names[i] != NULL)
            len += (size_t)snprintf(fields + len, sizeof(fields) - len, "%s`%s`",
                                    len > 0 ? ", " : "", names[i]);
    bool is_wide = row->level != row->level_worst;
    snprintf(text, ROW_MAX, "| `%s` | %s%s%s | %s | %s |", row->id, pawli_level_name(row->level),
             is_wide ? " to " : "", is_wide ? pawli_level_name(row->level_worst) : "",
             len > 0 ? fields : "–", row->text);
}

/* Each row of the document stands in the table, in its order, and each of the table in it. */
static void the_document_says_the_same(void **state)
{
    (void)state;
    char line[4096];
    char wanted[ROW_MAX];
    int found = 0;
    if (document == NULL)
        skip();
    FILE *file = fopen(document, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "| `", 3) != 0 || line[3] < 'A' || line[3] > 'Z')
            continue;
        if (found >= PAWL_EVENT_KINDS)
            fail_msg("the document has a row too many: %s", line);
        print_row(pawli_event_row((pawl_event_kind)found++), wanted);
        assert_string_equal(line, wanted);
    }
    fclose(file);
    assert_int_equal(found, PAWL_EVENT_KINDS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(other_numbers_have_a_name_too),
        cmocka_unit_test(the_document_says_the_same),
    };
    char text[ROW_MAX];
    document = argc > 1 ? argv[1] : NULL;
    for (int i = 0; document != NULL && strcmp(document, "--print") == 0 && i < PAWL_EVENT_KINDS;
         i++) {
        print_row(pawli_event_row((pawl_event_kind)i), text);
        puts(text);
    }
    if (document != NULL && strcmp(document, "--print") == 0)
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
