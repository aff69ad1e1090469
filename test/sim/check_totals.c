/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_totals.c - what must hold of all jobs together, at the end.
 * Owns:  C1, C16, C25, C26, and that a complete history is complete.
 * Never: takes a list for final after which something changed.
 */
#include "sim/check_model.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- each job */

/* Whether a job that is not in the final list may have been pruned. */
static bool may_be_missing(const struct check_book *book, const struct check_job *job)
{
    if (!book->options->is_exact)
        return book->prunes > 0;
    return job->is_wrong ||
           (job->is_terminal && check_may_be_pruned(book, job->terminal_seq, book->list_seq));
}

static void check_kept(struct check_book *book, const struct check_job *job)
{
    bool is_accepted = job->enqueued_ok > 0;
    if (job->is_acked && !is_accepted && job->before == NULL && book->options->is_exact &&
        !job->is_wrong)
        check_fail_job(book, CHECK_C1, job, "acknowledged, but the store never accepted it");
    if (book->list_seq == 0 || job->is_superseded)
        return;
    if (job->listed == NULL && (is_accepted || job->is_acked) && !may_be_missing(book, job))
        check_fail_job(book, CHECK_C1, job, "accepted%s, and not in the final list",
                       job->is_acked ? " and acknowledged" : "");
    if (job->listed == NULL)
        return;
    if (book->options->must_drain && !job->is_wrong &&
        (job->listed->state == PAWL_READY || job->listed->state == PAWL_IN_FLIGHT))
        check_fail_job(book, CHECK_C26, job, "still %s at the end",
                       pawl_state_name((pawl_state)job->listed->state));
    if (book->options->is_complete && !job->has_ledger)
        check_fail_job(book, CHECK_C7, job, "its final ledger is not in the history");
}

/* ---------------------------------------------------------------- all of them */

static void check_counts(struct check_book *book)
{
    int64_t there = plus((int64_t)book->listed_count, book->pruned);
    bool is_short = there < book->enqueued_ok && !book->is_prune_unknown;
    bool is_over = there > plus(book->enqueued_ok, book->enqueued_unknown);
    if (book->list_seq != 0 && (is_short || is_over))
        check_fail(book, CHECK_C16, NULL,
                   "%" PRId64 " jobs accepted, %zu listed and %" PRId64 " pruned",
                   book->enqueued_ok, book->listed_count, book->pruned);
}

static int compare_digests(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void report_digest(struct check_book *book, uint64_t digest)
{
    const struct check_event *first = NULL;
    for (const struct check_job *job = book->jobs; job != NULL; job = job->next) {
        for (const struct check_event *event = job->first_call; event != NULL;
             event = event->next_call) {
            if (event->verb != PAWLI_VERB_CLAIM || event->digest != digest)
                continue;
            if (first != NULL) {
                check_fail(book, CHECK_C25, event, "%s gets the token that %s got for v%" PRId64,
                           check_worker_name(event->by), check_worker_name(first->by),
                           first->version);
                return;
            }
            first = event;
        }
    }
}

static void check_tokens(struct check_book *book)
{
    if (book->digests_count < 2)
        return;
    qsort(book->digests, book->digests_count, sizeof(*book->digests), compare_digests);
    for (size_t i = 1; i < book->digests_count; i++) {
        if (book->digests[i] == book->digests[i - 1]) {
            report_digest(book, book->digests[i]);
            return; /* one shows it */
        }
    }
}

bool check_totals(struct check_book *book)
{
    if (book->options->is_complete && book->list_seq == 0)
        check_fail(book, CHECK_C1, NULL, "there is no list of everything at the end");
    for (const struct check_job *job = book->jobs; job != NULL; job = job->next)
        check_kept(book, job);
    check_counts(book);
    check_tokens(book);
    return true;
}
