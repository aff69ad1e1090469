/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cover.c - which answers a run has met: a run in which a verb was never refused proves little.
 * Owns:  the list of what every run must meet.
 * Never: judges an answer.
 */
#include "diff/call.h"

#include <stdlib.h>
#include <string.h>

/* Each verb has to have done its work, and to have been refused, in each way that it has. */
static const struct {
    enum diff_verb verb;
    const char *verdicts; /* words, each with a blank behind it */
} wanted[] = {
    {DIFF_ENQUEUE, "OK EXISTS DUPLICATE INVALID "},
    {DIFF_CLAIM, "OK nothing INVALID "},
    {DIFF_MINE, "OK nothing INVALID "},
    {DIFF_RENEW, "OK STALE GONE CANCELLED TIMEOUT INVALID "},
    {DIFF_SETTLE, "Succeeded Ready Failed STALE GONE INVALID "},
    {DIFF_RELEASE, "OK STALE GONE INVALID "},
    {DIFF_REAP, "expired poison cancelled start_by nothing INVALID "},
    {DIFF_PRUNE, "OK nothing INVALID "},
    {DIFF_GET, "OK GONE INVALID "},
    {DIFF_LIST, "OK nothing INVALID "},
    {DIFF_ATTEMPTS, "OK nothing GONE INVALID "},
    {DIFF_LEASES, "OK nothing INVALID "},
    {DIFF_WORKER_SEEN, "OK INVALID "},
    {DIFF_WORKER_ENDED, "OK INVALID "},
    {DIFF_WORKERS_LIST, "OK nothing INVALID "},
    {DIFF_STATS, "OK nothing INVALID "},
    {DIFF_QUEUE_GET, "OK INVALID "},
    {DIFF_QUEUE_SET, "OK INVALID "},
    {DIFF_QUEUE_PAUSE, "OK INVALID "},
    {DIFF_CANCEL, "Failed InFlight ALREADY_SUCCEEDED ALREADY_FAILED GONE INVALID "},
    {DIFF_REDRIVE, "Ready NOT_FAILED ALREADY_SUCCEEDED DUPLICATE GONE INVALID "},
    {DIFF_DISCARD, "Failed NOT_FAILED ALREADY_SUCCEEDED GONE INVALID "},
    {DIFF_CANCEL_WHERE, "OK nothing INVALID "},
    {DIFF_REDRIVE_WHERE, "OK nothing INVALID "},
    {DIFF_DISCARD_WHERE, "OK nothing INVALID "},
    {DIFF_NOW, "OK INVALID "},
};

#define WORDS_MAX 8 /* of one verb */
#define WORD_MAX  24

struct cell {
    char word[WORD_MAX];
    size_t count;
    bool is_wanted;
};

struct coverage {
    struct cell cells[DIFF_VERBS][WORDS_MAX];
};

static struct cell *find(struct coverage *coverage, enum diff_verb verb, const char *word,
                         size_t len)
{
    for (size_t i = 0; i < WORDS_MAX; i++) {
        struct cell *cell = &coverage->cells[verb][i];
        if (cell->word[0] == '\0' && len < WORD_MAX)
            memcpy(cell->word, word, len); /* the rest is zero */
        if (strlen(cell->word) == len && memcmp(cell->word, word, len) == 0)
            return cell;
    }
    return NULL; /* more words than there is room for: not wanted, so not needed */
}

struct coverage *coverage_new(void)
{
    struct coverage *coverage = calloc(1, sizeof(*coverage));
    if (coverage == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const char *word = wanted[i].verdicts;
        for (const char *end; (end = strchr(word, ' ')) != NULL; word = end + 1)
            find(coverage, wanted[i].verb, word, (size_t)(end - word))->is_wanted = true;
    }
    return coverage;
}

void coverage_free(struct coverage *coverage)
{
    free(coverage);
}

void coverage_note(struct coverage *coverage, enum diff_verb verb, const char *verdict)
{
    struct cell *cell = find(coverage, verb, verdict, strlen(verdict));
    if (cell != NULL)
        cell->count++;
}

bool coverage_is_full(const struct coverage *coverage)
{
    for (size_t verb = 0; verb < DIFF_VERBS; verb++) {
        for (size_t i = 0; i < WORDS_MAX; i++) {
            const struct cell *cell = &coverage->cells[verb][i];
            if (cell->is_wanted && cell->count == 0)
                return false;
        }
    }
    return true;
}

void coverage_print(const struct coverage *coverage, FILE *out)
{
    for (size_t verb = 0; verb < DIFF_VERBS; verb++) {
        (void)fprintf(out, "# %-14s", diff_verb_name((enum diff_verb)verb));
        for (size_t i = 0; i < WORDS_MAX && coverage->cells[verb][i].word[0] != '\0'; i++) {
            const struct cell *cell = &coverage->cells[verb][i];
            (void)fprintf(out, " %s %zu%s", cell->word, cell->count,
                          cell->is_wanted && cell->count == 0 ? " (MISSING)" : "");
        }
        (void)fputc('\n', out);
    }
}
