/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * words.c - reads the words of a command line, and guesses what a misspelt one was meant to be.
 * Owns:  the texts about words that are wrong.
 * Never: exits; writes to standard output.
 */
#include "cli/command.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX   32 /* longer words are like nothing we know */
#define NAMES_MAX  64
#define NEAR_PARTS 2 /* a guess shares at least half of its letters with the word */

/* How many letters must be changed, added or taken away to make `a` into `b`. */
static size_t distance(const char *a, const char *b)
{
    size_t b_len = strlen(b);
    assert(b_len <= WORD_MAX);
    size_t row[WORD_MAX + 1]; /* row[j]: from what was read of `a` to the first j letters of `b` */
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
            diagonal = row[j];
            row[j] = change <= shorter ? change : shorter + 1;
        }
    }
    return row[b_len];
}

const char *pawli_cli_nearest(const char *word, const char *const *names, size_t names_count)
{
    assert(word != NULL);
    if (strlen(word) > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t nearest_distance = 0;
    for (size_t i = 0; i < names_count; i++) {
        size_t found = distance(word, names[i]);
        if (found * NEAR_PARTS > strlen(names[i]))
            continue;
        if (nearest == NULL || found < nearest_distance) {
            nearest = names[i];
            nearest_distance = found;
        }
    }
    return nearest;
}

static void refuse(const char *command, const char *word, const struct pawli_cli_flag *flags,
                   size_t flags_count)
{
    assert(flags_count <= NAMES_MAX);
    const char *names[NAMES_MAX];
    for (size_t i = 0; i < flags_count; i++)
        names[i] = flags[i].name;
    const char *nearest = pawli_cli_nearest(word, names, flags_count);

    (void)fprintf(stderr, "pawl %s: unknown %s \"%s\"", command,
                  word[0] == '-' ? "option" : "argument", word);
    if (nearest != NULL)
        (void)fprintf(stderr, "; did you mean %s?", nearest);
    (void)fprintf(stderr, "\nSee: pawl %s --help\n", command);
}

bool pawli_cli_read_flags(const char *command, char **words, const struct pawli_cli_flag *flags,
                          size_t flags_count)
{
    assert(command != NULL);
    assert(words != NULL);
    for (; *words != NULL; words++) {
        size_t i = 0;
        while (i < flags_count && strcmp(*words, flags[i].name) != 0)
            i++;
        if (i == flags_count) {
            refuse(command, *words, flags, flags_count);
            return false;
        }
        *flags[i].ret_is_set = true;
    }
    return true;
}
