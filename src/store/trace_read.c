/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace_read.c - reads a history back, record by record.
 * Owns:  the place in the bytes, the texts read so far, the table of recent ids, the rows given
 *        out.
 * Never: trusts a byte: whatever is read is checked, and what is malformed is an error with its
 *        offset; reads beyond the end.
 */
#include "store/trace.h"

#include "base/buffer.h"
#include "base/error.h"
#include "store/trace_format.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ROWS_FIRST = 64,
    TEXTS_FIRST = 64,
    CODE_MAX = 255,
    /* The last values of the public enums. */
    STATE_MAX = PAWL_FAILED,
    OUTCOME_MAX = PAWL_ZOMBIE_REQUEUE,
    REASON_MAX = PAWL_REASON_START_BY,
    ENDED_BY_MAX = PAWL_ENDED_BY_DEADLINE,
    ACTION_MAX = PAWL_SNOOZE
};

struct pawli_trace_reader {
    const uint8_t *bytes; /* borrowed */
    size_t len;
    size_t at;
    size_t record_began;

    bool is_cut;    /* the record ends beyond the end */
    pawl_code code; /* what went wrong with it otherwise */
    const char *what;

    char **texts; /* each allocated by itself: they stay where they are */
    size_t texts_count;
    size_t texts_size;

    struct pawli_trace_row *rows;
    size_t rows_size;

    int64_t last_at_us;
    int64_t last_wall_us;
    pawl_id ids[TRACE_IDS];
};

/* ---------------------------------------------------------------- life */

pawl_code pawli_trace_reader_new(const uint8_t *bytes, size_t bytes_len,
                                 struct pawli_trace_reader **ret_reader, pawl_err *err)
{
    assert(bytes != NULL || bytes_len == 0);
    assert(ret_reader != NULL);

    if (bytes_len < TRACE_MAGIC_LEN || memcmp(bytes, TRACE_MAGIC, TRACE_MAGIC_LEN) != 0)
        return pawli_fail(err, PAWL_INVALID, "history: offset 0: not a history of this version");
    struct pawli_trace_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    reader->bytes = bytes;
    reader->len = bytes_len;
    reader->at = TRACE_MAGIC_LEN;
    *ret_reader = reader;
    return PAWL_OK;
}

void pawli_trace_reader_free(struct pawli_trace_reader *reader)
{
    if (reader == NULL)
        return;
    for (size_t i = 0; i < reader->texts_count; i++)
        free(reader->texts[i]);
    free(reader->texts);
    free(reader->rows);
    free(reader);
}

bool pawli_trace_is_cut(const struct pawli_trace_reader *reader)
{
    assert(reader != NULL);

    return reader->is_cut;
}

/* ---------------------------------------------------------------- parts of a record */

static bool is_well(const struct pawli_trace_reader *reader)
{
    return !reader->is_cut && reader->code == PAWL_OK;
}

/* Note what is wrong; the first thing counts. */
static void refuse(struct pawli_trace_reader *reader, pawl_code code, const char *what)
{
    if (!is_well(reader))
        return;
    reader->code = code;
    reader->what = what;
}

/* Numbers read as 0 once something is wrong. */
static uint64_t take_number(struct pawli_trace_reader *reader)
{
    uint64_t value = 0;
    if (!is_well(reader))
        return 0;
    /* Most numbers are short: one byte needs no loop. */
    if (reader->at < reader->len && reader->bytes[reader->at] < 0x80)
        return reader->bytes[reader->at++];
    switch (pawli_varint_read(reader->bytes, reader->len, &reader->at, &value)) {
    case PAWLI_VARINT_OK:
        return value;
    case PAWLI_VARINT_CUT:
        reader->is_cut = true;
        return 0;
    case PAWLI_VARINT_BAD:
        break;
    }
    refuse(reader, PAWL_INVALID, "a number has too many bits");
    return 0;
}

static int64_t take_signed(struct pawli_trace_reader *reader)
{
    return (int64_t)pawli_unzigzag(take_number(reader));
}

static int64_t take_distance(struct pawli_trace_reader *reader, int64_t from)
{
    return (int64_t)((uint64_t)from + pawli_unzigzag(take_number(reader)));
}

static pawl_wall take_wall(struct pawli_trace_reader *reader)
{
    reader->last_wall_us = take_distance(reader, reader->last_wall_us);
    return (pawl_wall){reader->last_wall_us};
}

static int take_enum(struct pawli_trace_reader *reader, int max, const char *what)
{
    uint64_t value = take_number(reader);
    if (value > (uint64_t)max) {
        refuse(reader, PAWL_INVALID, what);
        return 0;
    }
    return (int)value;
}

static uint64_t take_mask(struct pawli_trace_reader *reader, uint64_t fields)
{
    uint64_t mask = take_number(reader);
    if (mask >= fields) {
        refuse(reader, PAWL_INVALID, "fields that no record has");
        return 0;
    }
    return mask;
}

/* The next `len` bytes, or NULL where there are not so many. */
static const uint8_t *take_bytes(struct pawli_trace_reader *reader, size_t len)
{
    if (!is_well(reader))
        return NULL;
    if (reader->len - reader->at < len) {
        reader->is_cut = true;
        return NULL;
    }
    const uint8_t *bytes = reader->bytes + reader->at;
    reader->at += len;
    return bytes;
}

static uint64_t take_digest(struct pawli_trace_reader *reader)
{
    const uint8_t *bytes = take_bytes(reader, 8);
    return bytes == NULL ? 0 : trace_load(bytes);
}

static pawl_id take_id(struct pawli_trace_reader *reader)
{
    pawl_id id = {{0}};
    uint64_t number = take_number(reader);
    if (number > TRACE_IDS) {
        refuse(reader, PAWL_INVALID, "an id's place beyond the table");
        return id;
    }
    if (number > 0)
        return reader->ids[number - 1];
    const uint8_t *bytes = take_bytes(reader, sizeof(id.bytes));
    if (bytes == NULL)
        return id;
    memcpy(id.bytes, bytes, sizeof(id.bytes));
    reader->ids[trace_id_place(&id)] = id;
    return id;
}

static const char *add_text(struct pawli_trace_reader *reader)
{
    uint64_t len = take_number(reader);
    if (is_well(reader) && (len == 0 || len > TRACE_TEXT_MAX))
        refuse(reader, PAWL_INVALID, "a text's length");
    const uint8_t *bytes = take_bytes(reader, (size_t)len);
    if (bytes == NULL)
        return "";
    if (memchr(bytes, 0, (size_t)len) != NULL) {
        refuse(reader, PAWL_INVALID, "a text with a zero byte");
        return "";
    }
    if (reader->texts_count == reader->texts_size) {
        size_t size = reader->texts_size == 0 ? TEXTS_FIRST : reader->texts_size * 2;
        char **texts = realloc(reader->texts, size * sizeof(*texts));
        if (texts == NULL) {
            refuse(reader, PAWL_NO_MEMORY, "memory ran out");
            return "";
        }
        reader->texts = texts;
        reader->texts_size = size;
    }
    char *text = malloc((size_t)len + 1);
    if (text == NULL) {
        refuse(reader, PAWL_NO_MEMORY, "memory ran out");
        return "";
    }
    memcpy(text, bytes, (size_t)len);
    text[len] = '\0';
    reader->texts[reader->texts_count++] = text;
    return text;
}

static const char *take_text(struct pawli_trace_reader *reader)
{
    uint64_t number = take_number(reader);
    if (number == 0)
        return "";
    if (number <= reader->texts_count)
        return reader->texts[number - 1];
    if (number == reader->texts_count + 1)
        return add_text(reader);
    refuse(reader, PAWL_INVALID, "a text that was not told");
    return "";
}

/* ---------------------------------------------------------------- records */

static void take_note(struct pawli_trace_reader *reader, struct pawli_trace_record *record)
{
    struct pawli_trace_note *note = &record->note;
    uint64_t mask = take_mask(reader, NOTE_FIELDS);
    note->actor = record->actor;
    if ((mask & NOTE_JOB) != 0)
        note->job = take_id(reader);
    if ((mask & NOTE_VERSION) != 0)
        note->version = take_signed(reader);
    if ((mask & NOTE_A) != 0)
        note->a = take_distance(reader, note->kind == PAWLI_NOTE_CONFIRMED ? record->at.us : 0);
    if ((mask & NOTE_B) != 0)
        note->b = take_signed(reader);
    if ((mask & NOTE_C) != 0)
        note->c = take_signed(reader);
}

static void take_row(struct pawli_trace_reader *reader, struct pawli_trace_row *row)
{
    uint64_t mask = take_mask(reader, ROW_FIELDS);
    *row = (struct pawli_trace_row){.queue = "", .worker = "", .ordering_key = ""};
#define TAKE(field, to, ...)       \
    do {                           \
        if ((mask & (field)) != 0) \
            row->to = __VA_ARGS__; \
    } while (0)
    TAKE(ROW_JOB, job, take_id(reader));
    TAKE(ROW_TOKEN, token_digest, take_digest(reader));
    TAKE(ROW_VERSION, version, take_signed(reader));
    TAKE(ROW_CODE, code, (pawl_code)take_enum(reader, CODE_MAX, "a row's code"));
    TAKE(ROW_EXPIRES_AT, expires_at, take_wall(reader));
    TAKE(ROW_LEASE_MS, lease_ms, take_signed(reader));
    TAKE(ROW_ACTION, action, (pawl_settle_action)take_enum(reader, ACTION_MAX, "an action"));
    TAKE(ROW_STATE, state, (pawl_state)take_enum(reader, STATE_MAX, "a state"));
    TAKE(ROW_OUTCOME, outcome, (pawl_outcome)take_enum(reader, OUTCOME_MAX, "an outcome"));
    TAKE(ROW_REASON, reason, (pawl_reason)take_enum(reader, REASON_MAX, "a reason"));
    TAKE(ROW_ENDED_BY, ended_by, (pawl_ended_by)take_enum(reader, ENDED_BY_MAX, "who ended it"));
    TAKE(ROW_ATTEMPT_NO, attempt_no, take_signed(reader));
    TAKE(ROW_RETRIES, retries, take_signed(reader));
    TAKE(ROW_LOST_LEASES, lost_leases, take_signed(reader));
    TAKE(ROW_ATTEMPTS, attempts, take_signed(reader));
    TAKE(ROW_MAX_RETRIES, max_retries, take_signed(reader));
    TAKE(ROW_MAX_LOST_LEASES, max_lost_leases, take_signed(reader));
    TAKE(ROW_BACKOFF_BASE_MS, backoff_base_ms, take_signed(reader));
    TAKE(ROW_BACKOFF_MAX_MS, backoff_max_ms, take_signed(reader));
    TAKE(ROW_CLAIMED_AT, claimed_at, take_wall(reader));
    TAKE(ROW_RUN_UNTIL, run_until, take_wall(reader));
    TAKE(ROW_FINISHED_AT, finished_at, take_wall(reader));
    TAKE(ROW_DUE_AT, due_at, take_wall(reader));
    TAKE(ROW_START_BY, start_by, take_wall(reader));
    TAKE(ROW_DELAY_MS, delay_ms, take_signed(reader));
    TAKE(ROW_START_WITHIN_MS, start_within_ms, take_signed(reader));
    TAKE(ROW_TIMEOUT_MS, timeout_ms, take_signed(reader));
    TAKE(ROW_OVERDUE_MS, overdue_ms, take_signed(reader));
    TAKE(ROW_QUEUE, queue, take_text(reader));
    TAKE(ROW_WORKER, worker, take_text(reader));
    TAKE(ROW_IS_UNSTARTED, is_unstarted, true);
    TAKE(ROW_IS_CANCEL_ASKED, is_cancel_asked, true);
    TAKE(ROW_ORDERING_KEY, ordering_key, take_text(reader));
    TAKE(ROW_FENCE, fence, take_signed(reader));
    TAKE(ROW_MAX_IN_FLIGHT, max_in_flight, take_signed(reader));
#undef TAKE
}

/* Make room for `count` rows; every row takes a byte at least, so a wild count is known at once. */
static bool make_rows(struct pawli_trace_reader *reader, uint64_t count)
{
    if (!is_well(reader))
        return false;
    if (count > PAWL_BATCH_MAX) {
        refuse(reader, PAWL_INVALID, "more rows than a call can have");
        return false;
    }
    if (count > reader->len - reader->at) {
        reader->is_cut = true;
        return false;
    }
    if (count <= reader->rows_size)
        return true;
    size_t size = reader->rows_size == 0 ? ROWS_FIRST : reader->rows_size;
    while (size < count)
        size *= 2;
    struct pawli_trace_row *rows = realloc(reader->rows, size * sizeof(*rows));
    if (rows == NULL) {
        refuse(reader, PAWL_NO_MEMORY, "memory ran out");
        return false;
    }
    reader->rows = rows;
    reader->rows_size = size;
    return true;
}

static void take_call(struct pawli_trace_reader *reader, struct pawli_trace_record *record)
{
    uint64_t mask = take_mask(reader, CALL_FIELDS);
    record->until = record->at;
    if ((mask & CALL_CODE) != 0)
        record->code = (pawl_code)take_enum(reader, CODE_MAX, "a call's code");
    if ((mask & CALL_UNTIL) != 0)
        record->until.us = take_distance(reader, record->at.us);
    if ((mask & CALL_STORE_AT) != 0)
        record->store_at = take_wall(reader);
    if ((mask & CALL_SUBJECT) != 0)
        record->subject = take_text(reader);
    if ((mask & CALL_ABOUT) != 0)
        record->about = take_id(reader);
    if ((mask & CALL_COUNT) != 0)
        record->count = take_signed(reader);
    record->is_where = (mask & CALL_IS_WHERE) != 0;
    record->is_first = (mask & CALL_IS_FIRST) != 0;
    uint64_t count = take_number(reader);
    if (!make_rows(reader, count))
        return;
    for (size_t i = 0; i < count && is_well(reader); i++)
        take_row(reader, &reader->rows[i]);
    record->rows = reader->rows;
    record->rows_count = (size_t)count;
}

static void take_record(struct pawli_trace_reader *reader, struct pawli_trace_record *record)
{
    unsigned tag = reader->bytes[reader->at++];
    record->at.us = take_distance(reader, reader->last_at_us);
    record->actor = take_text(reader);
    if (tag > TRACE_TAG_NOTE && tag < TRACE_TAG_NOTE + PAWLI_NOTES) {
        record->kind = PAWLI_RECORD_NOTE;
        record->note.kind = (enum pawli_trace_note_kind)(tag - TRACE_TAG_NOTE);
        take_note(reader, record);
    } else if (tag > 0 && tag < PAWLI_VERBS) {
        record->kind = PAWLI_RECORD_CALL;
        record->verb = (enum pawli_trace_verb)tag;
        take_call(reader, record);
    } else {
        reader->at = reader->record_began;
        reader->is_cut = false;
        reader->code = PAWL_OK;
        refuse(reader, PAWL_INVALID, "no such record");
    }
}

pawl_code pawli_trace_read(struct pawli_trace_reader *reader, struct pawli_trace_record *ret_record,
                           bool *ret_more, pawl_err *err)
{
    assert(reader != NULL && ret_record != NULL && ret_more != NULL);

    if (is_well(reader) && reader->at < reader->len) {
        *ret_record = (struct pawli_trace_record){.actor = "", .subject = "", .offset = reader->at};
        reader->record_began = reader->at;
        take_record(reader, ret_record);
        if (is_well(reader)) {
            reader->last_at_us = ret_record->at.us;
            *ret_more = true;
            return PAWL_OK;
        }
    }
    /* What is wrong with a history stays wrong: every further read says the same. */
    if (reader->code == PAWL_NO_MEMORY)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (reader->code != PAWL_OK)
        return pawli_fail(err, PAWL_INVALID, "history: offset %zu: %s", reader->at, reader->what);
    *ret_more = false;
    return PAWL_OK;
}
