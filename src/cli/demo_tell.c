/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * demo_tell.c - puts the demo into words and columns, or into JSON.
 * Owns:  the two forms of the output.
 * Never: asks the store; says anything of a job that it was not handed; shows a token.
 */
#include "cli/demo_tell.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>

#define TIME_TEXT_MAX 32

/* Here and below: write errors stay with the stream, and main asks it. */

/* "12.345 s" since the beginning, or "-" for no time. */
static const char *time_text(const struct pawli_teller *teller, pawl_wall at,
                             char text[TIME_TEXT_MAX])
{
    int64_t ms = pawli_wall_diff_ms(teller->began_at, at);
    if (!pawli_wall_is_set(at))
        (void)snprintf(text, TIME_TEXT_MAX, "-"); /* fits */
    else
        (void)snprintf(text, TIME_TEXT_MAX, "%" PRId64 ".%03" PRId64 " s", ms / 1000, ms % 1000);
    return text;
}

static void json_time(struct pawli_teller *teller, const char *key, pawl_wall at)
{
    if (pawli_wall_is_set(at))
        pawli_json_number(&teller->json, key, pawli_wall_diff_ms(teller->began_at, at));
}

static void json_text(struct pawli_teller *teller, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        pawli_json_text(&teller->json, key, text);
}

void pawli_tell_begin(struct pawli_teller *teller, FILE *out, bool is_json, pawl_wall began_at)
{
    assert(teller != NULL);
    *teller = (struct pawli_teller){.out = out, .is_json = is_json, .began_at = began_at};
    pawli_json_init(&teller->json, out);
    if (is_json) {
        pawli_json_open_object(&teller->json, NULL);
        pawli_json_text(&teller->json, "version", pawl_version());
        pawli_json_open_array(&teller->json, "stories");
    } else {
        (void)fprintf(out,
                      "Pawl %s: three jobs in a store in memory, with a clock turned by hand\n",
                      pawl_version());
    }
}

void pawli_tell_story(struct pawli_teller *teller, const char *title)
{
    if (teller->is_json) {
        pawli_json_open_object(&teller->json, NULL);
        pawli_json_text(&teller->json, "title", title);
        pawli_json_open_array(&teller->json, "steps");
    } else {
        (void)fprintf(teller->out, "\n%s\n", title);
    }
}

static void step_as_json(struct pawli_teller *teller, const struct pawli_told *told)
{
    pawli_json_open_object(&teller->json, NULL);
    pawli_json_number(&teller->json, "at_ms", pawli_wall_diff_ms(teller->began_at, told->at));
    pawli_json_text(&teller->json, "step", told->step);
    json_text(teller, "worker", told->worker);
    json_text(teller, "answer", told->answer);
    json_text(teller, "note", told->note);
    json_text(teller, "state", told->state);
    if (told->version != 0)
        pawli_json_number(&teller->json, "lease_version", told->version);
    if (told->attempt_no != 0)
        pawli_json_number(&teller->json, "attempt_no", told->attempt_no);
    if (told->turned_ms != 0)
        pawli_json_number(&teller->json, "turned_ms", told->turned_ms);
    json_time(teller, "lease_expires_at_ms", told->expires_at);
    json_time(teller, "due_at_ms", told->due_at);
    pawli_json_close(&teller->json);
}

static void step_as_text(struct pawli_teller *teller, const struct pawli_told *told)
{
    char at[TIME_TEXT_MAX], other[TIME_TEXT_MAX];
    FILE *out = teller->out;
    (void)fprintf(out, "  %10s  %-8s", time_text(teller, told->at, at), told->step);
    if (told->turned_ms != 0) {
        (void)fprintf(out, "the clock, by %" PRId64 ".%03" PRId64 " s\n", told->turned_ms / 1000,
                      told->turned_ms % 1000);
        return;
    }
    (void)fprintf(out, "%-10s%-9s", told->worker != NULL ? told->worker : "",
                  told->answer != NULL ? told->answer : "");
    const char *gap = "";
    const char *first = told->note != NULL ? told->note : told->state;
    if (first != NULL) {
        (void)fprintf(out, "%s", first);
        gap = ", ";
    }
    if (told->version != 0) {
        (void)fprintf(out, "%slease version %" PRId64, gap, told->version);
        gap = ", ";
    }
    if (pawli_wall_is_set(told->expires_at))
        (void)fprintf(out, " until %s", time_text(teller, told->expires_at, other));
    if (pawli_wall_is_set(told->due_at)) {
        (void)fprintf(out, "%sdue at %s", gap, time_text(teller, told->due_at, other));
        gap = ", ";
    }
    if (told->attempt_no != 0)
        (void)fprintf(out, "%sledger row %" PRId64, gap, told->attempt_no);
    (void)fputc('\n', out);
}

void pawli_tell_step(struct pawli_teller *teller, const struct pawli_told *told)
{
    assert(told->step != NULL);
    if (teller->is_json)
        step_as_json(teller, told);
    else
        step_as_text(teller, told);
}

static void row_as_json(struct pawli_teller *teller, const pawl_attempt *row)
{
    pawli_json_open_object(&teller->json, NULL);
    pawli_json_number(&teller->json, "attempt_no", row->attempt_no);
    pawli_json_text(&teller->json, "outcome", pawl_outcome_name(row->outcome));
    pawli_json_text(&teller->json, "reason", pawl_reason_name(row->reason));
    pawli_json_text(&teller->json, "ended_by", pawl_ended_by_name(row->ended_by));
    pawli_json_number(&teller->json, "lease_version", row->lease_version);
    json_text(teller, "worker", row->worker);
    json_time(teller, "started_at_ms", row->started_at);
    json_time(teller, "finished_at_ms", row->finished_at);
    json_text(teller, "error_code", row->error_code);
    json_text(teller, "error_text", row->error_text);
    pawli_json_close(&teller->json);
}

static void job_as_json(struct pawli_teller *teller, const pawl_job *job, const pawl_attempt *rows,
                        size_t rows_count)
{
    char id[PAWL_ID_TEXT_MAX];
    pawli_json_close(&teller->json); /* the steps */
    pawli_json_open_object(&teller->json, "job");
    pawli_json_text(&teller->json, "id", pawl_id_format(&job->id, id));
    pawli_json_text(&teller->json, "queue", job->queue);
    pawli_json_text(&teller->json, "state", pawl_state_name(job->state));
    pawli_json_text(&teller->json, "reason", pawl_reason_name(job->reason));
    pawli_json_number(&teller->json, "retries", job->retries);
    pawli_json_number(&teller->json, "max_retries", job->max_retries);
    pawli_json_number(&teller->json, "lost_leases", job->lost_leases);
    pawli_json_number(&teller->json, "lease_version", job->lease_version);
    json_time(teller, "finished_at_ms", job->finished_at);
    pawli_json_open_array(&teller->json, "ledger");
    for (size_t i = 0; i < rows_count; i++)
        row_as_json(teller, &rows[i]);
    pawli_json_close(&teller->json); /* the ledger */
    pawli_json_close(&teller->json); /* the job */
    pawli_json_close(&teller->json); /* the story */
}

static void job_as_text(struct pawli_teller *teller, const pawl_job *job, const pawl_attempt *rows,
                        size_t rows_count)
{
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    (void)fprintf(teller->out, "  %s; its ledger:\n", pawl_state_name(job->state));
    for (size_t i = 0; i < rows_count; i++) {
        const pawl_attempt *row = &rows[i];
        (void)fprintf(
            teller->out, "    %" PRId64 "  %-14s  %-9s  %s, lease version %" PRId64 ", %s to %s",
            row->attempt_no, pawl_outcome_name(row->outcome), pawl_reason_name(row->reason),
            row->worker, row->lease_version, time_text(teller, row->started_at, from),
            time_text(teller, row->finished_at, to));
        if (row->error_code[0] != '\0')
            (void)fprintf(teller->out, ", %s", row->error_code);
        (void)fputc('\n', teller->out);
    }
}

void pawli_tell_job(struct pawli_teller *teller, const pawl_job *job, const pawl_attempt *rows,
                    size_t rows_count)
{
    assert(job != NULL);
    if (teller->is_json)
        job_as_json(teller, job, rows, rows_count);
    else
        job_as_text(teller, job, rows, rows_count);
}

void pawli_tell_end(struct pawli_teller *teller, const pawl_stats *rows, size_t rows_count)
{
    if (teller->is_json) {
        pawli_json_close(&teller->json); /* the stories */
        pawli_json_open_array(&teller->json, "queues");
    } else {
        (void)fputs("\nThe queues at the end\n", teller->out);
    }
    for (size_t i = 0; i < rows_count; i++) {
        const pawl_stats *row = &rows[i];
        if (!teller->is_json) {
            (void)fprintf(teller->out,
                          "  %-8s  %" PRId64 " Ready, %" PRId64 " InFlight, %" PRId64
                          " Succeeded, %" PRId64 " Failed\n",
                          row->queue, row->ready, row->in_flight, row->succeeded, row->failed);
            continue;
        }
        pawli_json_open_object(&teller->json, NULL);
        pawli_json_text(&teller->json, "queue", row->queue);
        pawli_json_number(&teller->json, "ready", row->ready);
        pawli_json_number(&teller->json, "in_flight", row->in_flight);
        pawli_json_number(&teller->json, "succeeded", row->succeeded);
        pawli_json_number(&teller->json, "failed", row->failed);
        pawli_json_close(&teller->json);
    }
    if (teller->is_json) {
        pawli_json_close(&teller->json); /* the queues */
        pawli_json_close(&teller->json); /* the document */
    }
}
