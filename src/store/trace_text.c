/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace_text.c - a history for people.
 * Owns:  the words and the order in which a record's fields are printed.
 * Never: prints a field that the verb does not have; prints anything but plain characters.
 */
#include "store/trace.h"

#include <assert.h>
#include <inttypes.h>

const char *pawli_trace_verb_name(enum pawli_trace_verb verb)
{
    static const char *const names[PAWLI_VERBS] = {
        [PAWLI_VERB_ENQUEUE] = "ENQUEUE",
        [PAWLI_VERB_CLAIM] = "CLAIM",
        [PAWLI_VERB_MINE] = "MINE",
        [PAWLI_VERB_RENEW] = "RENEW",
        [PAWLI_VERB_SETTLE] = "SETTLE",
        [PAWLI_VERB_RELEASE] = "RELEASE",
        [PAWLI_VERB_REAP] = "REAP",
        [PAWLI_VERB_PRUNE] = "PRUNE",
        [PAWLI_VERB_CANCEL] = "CANCEL",
        [PAWLI_VERB_REDRIVE] = "REDRIVE",
        [PAWLI_VERB_DISCARD] = "DISCARD",
        [PAWLI_VERB_LIST] = "LIST",
        [PAWLI_VERB_ATTEMPTS] = "ATTEMPTS",
        [PAWLI_VERB_QUEUE_SET] = "QUEUE_SET",
        [PAWLI_VERB_QUEUE_PAUSE] = "QUEUE_PAUSE",
    };
    return verb > 0 && verb < PAWLI_VERBS ? names[verb] : "?";
}

const char *pawli_trace_note_name(enum pawli_trace_note_kind kind)
{
    static const char *const names[PAWLI_NOTES] = {
        [PAWLI_NOTE_WORKER_UP] = "WORKER_UP",
        [PAWLI_NOTE_WORKER_CRASH] = "WORKER_CRASH",
        [PAWLI_NOTE_WORKER_STOPPED] = "WORKER_STOPPED",
        [PAWLI_NOTE_PAUSE_BEGIN] = "PAUSE_BEGIN",
        [PAWLI_NOTE_PAUSE_END] = "PAUSE_END",
        [PAWLI_NOTE_LINK_FAULT] = "LINK_FAULT",
        [PAWLI_NOTE_STORE_DOWN] = "STORE_DOWN",
        [PAWLI_NOTE_STORE_UP] = "STORE_UP",
        [PAWLI_NOTE_STORE_JUMP] = "STORE_JUMP",
        [PAWLI_NOTE_FAULTS_OFF] = "FAULTS_OFF",
        [PAWLI_NOTE_ACKED] = "ACKED",
        [PAWLI_NOTE_CONFIRMED] = "CONFIRMED",
        [PAWLI_NOTE_STEP] = "STEP",
        [PAWLI_NOTE_START] = "START",
        [PAWLI_NOTE_SEND] = "SEND",
        [PAWLI_NOTE_ABORT] = "ABORT",
        [PAWLI_NOTE_GIVE_UP] = "GIVE_UP",
        [PAWLI_NOTE_ENDED] = "ENDED",
        [PAWLI_NOTE_SEND_SETTLE] = "SEND_SETTLE",
        [PAWLI_NOTE_SEND_RELEASE] = "SEND_RELEASE",
        [PAWLI_NOTE_OVER] = "OVER",
        [PAWLI_NOTE_SHUTDOWN] = "SHUTDOWN",
    };
    return kind > 0 && kind < PAWLI_NOTES ? names[kind] : "?";
}

static const char *action_name(pawl_settle_action action)
{
    static const char *const names[] = {"succeed", "retry", "fail", "snooze"};
    return (unsigned)action < sizeof(names) / sizeof(names[0]) ? names[action] : "?";
}

/* A text from a history may hold anything. */
static void print_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        fputc(*text > ' ' && *text <= '~' ? *text : '?', out);
}

/* Microseconds as seconds, exact over the whole range. */
static void print_us(FILE *out, int64_t us)
{
    uint64_t whole = us < 0 ? UINT64_C(0) - (uint64_t)us : (uint64_t)us;
    fprintf(out, "%s%" PRIu64 ".%06" PRIu64, us < 0 ? "-" : "", whole / 1000000, whole % 1000000);
}

static void print_head(FILE *out, const struct pawli_trace_record *record)
{
    print_us(out, record->at.us);
    fputc(' ', out);
    print_text(out, record->actor[0] == '\0' ? "-" : record->actor);
}

static void print_id(FILE *out, const pawl_id *id)
{
    char text[PAWL_ID_TEXT_MAX];
    if (!pawl_id_is_nil(id))
        fprintf(out, " %s", pawl_id_format(id, text));
}

static void print_note(FILE *out, const struct pawli_trace_record *record)
{
    const struct pawli_trace_note *note = &record->note;
    print_head(out, record);
    fprintf(out, " %s", pawli_trace_note_name(note->kind));
    print_id(out, &note->job);
    if (note->version != 0)
        fprintf(out, " v%" PRId64, note->version);
    if (note->kind == PAWLI_NOTE_CONFIRMED) {
        fputs(" sent=", out);
        print_us(out, note->a);
        fprintf(out, " lease_ms=%" PRId64, note->b);
    } else if (note->a != 0 || note->b != 0 || note->c != 0) {
        fprintf(out, " a=%" PRId64, note->a);
        if (note->b != 0 || note->c != 0)
            fprintf(out, " b=%" PRId64 " c=%" PRId64, note->b, note->c);
    }
    fputc('\n', out);
}

/* ---------------------------------------------------------------- rows */

static void print_wall(FILE *out, const char *name, pawl_wall at)
{
    if (at.us == 0)
        return;
    fprintf(out, " %s=", name);
    print_us(out, at.us);
}

static void print_number(FILE *out, const char *name, int64_t value)
{
    if (value == PAWL_DEFAULT)
        fprintf(out, " %s=default", name);
    else if (value != 0)
        fprintf(out, " %s=%" PRId64, name, value);
}

static void print_name(FILE *out, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    fprintf(out, " %s=", name);
    print_text(out, text);
}

/* Whether the verb's rows say what became of a job. */
static bool has_state(enum pawli_trace_verb verb)
{
    return verb == PAWLI_VERB_SETTLE || verb == PAWLI_VERB_REAP || verb == PAWLI_VERB_CANCEL ||
           verb == PAWLI_VERB_REDRIVE || verb == PAWLI_VERB_DISCARD || verb == PAWLI_VERB_LIST;
}

static void print_row(FILE *out, enum pawli_trace_verb verb, const struct pawli_trace_row *row)
{
    print_id(out, &row->job);
    if (row->version != 0)
        fprintf(out, " v%" PRId64, row->version);
    fprintf(out, " %s", pawl_code_name(row->code));
    if (verb == PAWLI_VERB_SETTLE)
        fprintf(out, " %s", action_name(row->action));
    if (has_state(verb) && row->code == PAWL_OK)
        fprintf(out, " %s", pawl_state_name(row->state));
    if (verb == PAWLI_VERB_ATTEMPTS)
        fprintf(out, " %s by %s", pawl_outcome_name(row->outcome),
                pawl_ended_by_name(row->ended_by));
    if (row->reason != PAWL_REASON_NONE)
        fprintf(out, " reason=%s", pawl_reason_name(row->reason));
    if (row->token_digest != 0)
        fprintf(out, " digest=%016" PRIx64, row->token_digest);
    print_number(out, "no", row->attempt_no);
    print_number(out, "retries", row->retries);
    print_number(out, "lost", row->lost_leases);
    print_number(out, "attempts", row->attempts);
    print_number(out, "max_retries", row->max_retries);
    print_number(out, "max_lost", row->max_lost_leases);
    print_number(out, "base_ms", row->backoff_base_ms);
    print_number(out, "max_ms", row->backoff_max_ms);
    print_number(out, "lease_ms", row->lease_ms);
    print_number(out, "timeout_ms", row->timeout_ms);
    print_number(out, "delay_ms", row->delay_ms);
    print_number(out, "start_within_ms", row->start_within_ms);
    print_number(out, "overdue_ms", row->overdue_ms);
    print_wall(out, "claimed", row->claimed_at);
    print_wall(out, "expires", row->expires_at);
    print_wall(out, "run_until", row->run_until);
    print_wall(out, "finished", row->finished_at);
    print_wall(out, "due", row->due_at);
    print_wall(out, "start_by", row->start_by);
    if (row->is_unstarted)
        fputs(" unstarted", out);
    if (row->is_cancel_asked)
        fputs(" cancel-asked", out);
    print_name(out, "queue", row->queue);
    print_name(out, "worker", row->worker);
    print_name(out, "key", row->ordering_key);
    print_number(out, "fence", row->fence);
    print_number(out, "max_in_flight", row->max_in_flight);
}

static void print_call_head(FILE *out, const struct pawli_trace_record *record)
{
    print_head(out, record);
    fprintf(out, " %s", pawli_trace_verb_name(record->verb));
    if (record->is_where)
        fputs(" where", out);
    print_name(out, "of", record->subject);
    if (record->until.us != record->at.us) {
        fputs(" until=", out);
        print_us(out, record->until.us);
    }
    print_wall(out, "store", record->store_at);
}

void pawli_trace_print(const struct pawli_trace_record *record, FILE *out)
{
    assert(record != NULL && out != NULL);

    if (record->kind == PAWLI_RECORD_NOTE) {
        print_note(out, record);
        return;
    }
    for (size_t i = 0; i < record->rows_count; i++) {
        print_call_head(out, record);
        print_row(out, record->verb, &record->rows[i]);
        fputc('\n', out);
    }
    if (record->rows_count > 0)
        return;
    print_call_head(out, record);
    fprintf(out, " %s", pawl_code_name(record->code));
    print_id(out, &record->about);
    print_number(out, "count", record->count);
    fputc('\n', out);
}
