/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * expect.c - what cases assert, with words that say what was there instead.
 * Owns:  comparing verdicts, instants, ledgers and whole jobs.
 * Never: changes the store, but for the claim that must find nothing.
 */
#include "store/helpers.h"

#include <stdio.h>
#include <string.h>

void complain(struct here here, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* cut off where it is longer */
    va_end(args);
    print_error("%s:%d: %s\n", here.file, here.line, text);
    _fail(here.file, here.line);
    for (;;) /* not reached: _fail() leaves the case */
        ;
}

void check_true(struct here here, bool condition, const char *text)
{
    if (!condition)
        complain(here, "not so: %s", text);
}

void check_code(struct here here, pawl_code actual, pawl_code wanted)
{
    if (actual != wanted)
        complain(here, "%s instead of %s", pawl_code_name(actual), pawl_code_name(wanted));
}

void check_state(struct here here, struct stage *s, pawl_id id, pawl_state wanted)
{
    pawl_state actual = look(s, id)->state;
    if (actual != wanted)
        complain(here, "%s instead of %s", pawl_state_name(actual), pawl_state_name(wanted));
}

void check_number(struct here here, const char *what, int64_t actual, int64_t wanted)
{
    if (actual != wanted)
        complain(here, "%s is %lld instead of %lld", what, (long long)actual, (long long)wanted);
}

void check_near(struct here here, struct stage *s, pawl_wall at, int64_t ms)
{
    /* Now is read after the instant was made, so it can only have come nearer. */
    int64_t left_us = at.us - now(s).us;
    int64_t wanted_us = ms * 1000;
    if (left_us > wanted_us || left_us < wanted_us - s->kind->slack_ms * 1000)
        complain(here, "an instant lies %lld us after now instead of %lld", (long long)left_us,
                 (long long)wanted_us);
}

static void id_text(const pawl_id *id, char text[PAWL_ID_TEXT_MAX])
{
    (void)pawl_id_format(id, text); /* gives its second argument back */
}

void check_id(struct here here, pawl_id actual, pawl_id wanted)
{
    if (pawl_id_compare(&actual, &wanted) == 0)
        return;
    char actual_text[PAWL_ID_TEXT_MAX];
    char wanted_text[PAWL_ID_TEXT_MAX];
    id_text(&actual, actual_text);
    id_text(&wanted, wanted_text);
    complain(here, "job %s instead of %s", actual_text, wanted_text);
}

void check_batch(struct here here, struct batch actual, const pawl_id *wanted, size_t count)
{
    if (actual.count != count)
        complain(here, "%zu jobs instead of %zu", actual.count, count);
    for (size_t i = 0; i < count; i++) {
        if (pawl_id_compare(&actual.jobs[i]->id, &wanted[i]) != 0)
            complain(here, "another job than expected in place %zu", i);
    }
}

/* ---------------------------------------------------------------- ledgers */

/* Add to a text that is known to be long enough for what the suite writes. */
static void add(char *text, size_t text_size, const char *more)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, text_size - used, "%s", more); /* a cut text fails the comparison */
}

static void ledger_text(const pawl_attempt *rows, size_t count, char *text, size_t text_size)
{
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            add(text, text_size, ", ");
        add(text, text_size, pawl_outcome_name(rows[i].outcome));
        if (rows[i].reason != PAWL_REASON_NONE) {
            add(text, text_size, " ");
            add(text, text_size, pawl_reason_name(rows[i].reason));
        }
    }
}

void check_ledger(struct here here, struct stage *s, pawl_id id, const char *wanted)
{
    size_t count = 0;
    const pawl_attempt *rows = ledger(s, id, &count);
    char text[1024];
    ledger_text(rows, count, text, sizeof(text));
    if (strcmp(text, wanted) != 0)
        complain(here, "the ledger reads \"%s\" instead of \"%s\"", text, wanted);

    for (size_t i = 0; i < count; i++)
        check_number(here, "attempt_no", rows[i].attempt_no, (int64_t)i + 1);
    const pawl_job *job = look(s, id);
    check_number(here, "job.attempts", job->attempts, (int64_t)count);
    check_number(here, "job.reason", (int64_t)job->reason,
                 (int64_t)(count > 0 ? rows[count - 1].reason : PAWL_REASON_NONE));
}

void check_nothing(struct here here, struct stage *s, const char *queue)
{
    struct batch batch = take_up_to(s, queue, "nobody", 10);
    if (batch.count != 0)
        complain(here, "queue %s gave %zu jobs instead of none", queue, batch.count);
}

/* ---------------------------------------------------------------- pictures */

struct picture picture_of(struct stage *s, pawl_id id)
{
    struct picture picture = {.job = look(s, id)};
    picture.rows = ledger(s, id, &picture.rows_count);
    if (picture.job->state != PAWL_IN_FLIGHT)
        return picture;
    struct batch held = mine(s, picture.job->worker);
    for (size_t i = 0; i < held.count; i++) {
        if (pawl_id_compare(&held.jobs[i]->id, &id) == 0)
            picture.token = held.jobs[i]->token;
    }
    return picture;
}

static void check_same_job(struct here here, const pawl_job *before, const pawl_job *after)
{
#define SAME(field) check_number(here, #field, (int64_t)after->field, (int64_t)before->field)
    SAME(state);
    SAME(priority);
    SAME(retries);
    SAME(lost_leases);
    SAME(attempts);
    SAME(lease_version);
    SAME(max_retries);
    SAME(created_at.us);
    SAME(due_at.us);
    SAME(start_by.us);
    SAME(finished_at.us);
    SAME(reason);
    SAME(claimed_at.us);
    SAME(expires_at.us);
    SAME(run_until.us);
    SAME(lease_ms);
    SAME(timeout_ms);
    SAME(is_cancel_asked);
    SAME(payload_len);
#undef SAME
    check_id(here, after->id, before->id);
    if (strcmp(after->queue, before->queue) != 0)
        complain(here, "queue is %s instead of %s", after->queue, before->queue);
    if (strcmp(after->worker, before->worker) != 0)
        complain(here, "worker is \"%s\" instead of \"%s\"", after->worker, before->worker);
    if ((after->payload == NULL) != (before->payload == NULL) ||
        (after->payload != NULL && after->payload_len > 0 &&
         memcmp(after->payload, before->payload, after->payload_len) != 0))
        complain(here, "the payload is another one");
    if ((after->headers == NULL) != (before->headers == NULL) ||
        (after->headers != NULL && strcmp(after->headers, before->headers) != 0))
        complain(here, "the headers are others");
}

static void check_same_row(struct here here, const pawl_attempt *before, const pawl_attempt *after)
{
#define SAME(field) check_number(here, "row." #field, (int64_t)after->field, (int64_t)before->field)
    SAME(attempt_no);
    SAME(outcome);
    SAME(reason);
    SAME(ended_by);
    SAME(lease_version);
    SAME(started_at.us);
    SAME(finished_at.us);
    SAME(wire_sends);
#undef SAME
    if (strcmp(after->worker, before->worker) != 0 ||
        strcmp(after->error_code, before->error_code) != 0 ||
        strcmp(after->error_text, before->error_text) != 0)
        complain(here, "ledger row %lld has other texts", (long long)after->attempt_no);
}

void check_unchanged(struct here here, struct stage *s, const struct picture *before)
{
    struct picture after = picture_of(s, before->job->id);
    check_same_job(here, before->job, after.job);
    if (memcmp(&before->token, &after.token, sizeof(after.token)) != 0)
        complain(here, "the token is another one");
    check_number(here, "ledger rows", (int64_t)after.rows_count, (int64_t)before->rows_count);
    for (size_t i = 0; i < after.rows_count; i++)
        check_same_row(here, &before->rows[i], &after.rows[i]);
}
