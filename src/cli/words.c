/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * words.c - guesses what a misspelt word was meant to be.
 * Owns:  how near two words are.
 * Never: writes anything.
 */
#include "cli/words.h"

#include <assert.h>
#include <string.h>

#define WORD_MAX   32 /* longer words are like nothing we know */
#define CUT_MIN    2  /* letters of a word that was cut short: "--" begins every option */
#define NEAR_PARTS 2  /* a guess shares at least half of its letters with the word */

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
    /* A word that was cut short comes nearer than any that is misspelt. */
    for (size_t i = 0; i < names_count && strlen(word) > CUT_MIN; i++)
        if (strncmp(word, names[i], strlen(word)) == 0)
            return names[i];
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
