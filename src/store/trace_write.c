/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace_write.c - writes a history: records into bytes, bytes into a file.
 * Owns:  the bytes, the numbers of texts, the table of recent ids, the times told last.
 * Never: writes a payload or a token; fails the call that it records: a record that could not be
 *        kept breaks the history, and the next flush says so.
 */
#include "store/trace.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "store/trace_format.h"

#include <assert.h>
#include <stdlib.h>

enum {
    TEXTS_FIRST = 64, /* places in the first table of texts; a power of two */
    TEXT_ROOM = 2 * PAWLI_VARINT_MAX + TRACE_TEXT_MAX,
    ID_ROOM = PAWLI_VARINT_MAX + 16,
    NOTE_ROOM = 1 + 6 * PAWLI_VARINT_MAX + TEXT_ROOM + ID_ROOM,
    CALL_ROOM = 1 + 8 * PAWLI_VARINT_MAX + 2 * TEXT_ROOM + ID_ROOM,
    ROW_ROOM = 35 * PAWLI_VARINT_MAX + 3 * TEXT_ROOM + ID_ROOM
};

/* A text that has a number. Its bytes stand in `texts` of the writer. */
struct text_place {
    uint64_t number; /* 0: the place is free */
    uint32_t hash;
    uint32_t len;
    size_t at;
};

struct pawli_trace_writer {
    FILE *file; /* borrowed; NULL: none */
    pawl_code broken;
    bool is_through; /* to the file, record by record */
    struct pawli_buffer bytes;
    size_t record_began; /* where in `bytes` the record that is being written begins */

    struct pawli_buffer texts;
    struct text_place *places;
    size_t places_count; /* a power of two */
    uint64_t numbers;    /* texts numbered so far */

    int64_t last_at_us;
    int64_t last_wall_us;
    pawl_id ids[TRACE_IDS];
};

/* ---------------------------------------------------------------- life */

static void begin(struct pawli_trace_writer *writer)
{
    writer->broken = PAWL_OK;
    writer->bytes.len = 0;
    writer->texts.len = 0;
    writer->numbers = 0;
    writer->last_at_us = 0;
    writer->last_wall_us = 0;
    memset(writer->places, 0, writer->places_count * sizeof(*writer->places));
    memset(writer->ids, 0, sizeof(writer->ids));
    if (!pawli_buffer_put(&writer->bytes, TRACE_MAGIC, TRACE_MAGIC_LEN))
        writer->broken = PAWL_NO_MEMORY;
}

pawl_code pawli_trace_writer_new(FILE *file, struct pawli_trace_writer **ret_writer, pawl_err *err)
{
    assert(ret_writer != NULL);

    struct pawli_trace_writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    writer->file = file;
    writer->places_count = TEXTS_FIRST;
    writer->places = calloc(writer->places_count, sizeof(*writer->places));
    if (writer->places == NULL)
        goto no_memory;
    begin(writer);
    if (writer->broken != PAWL_OK)
        goto no_memory;
    *ret_writer = writer;
    return PAWL_OK;

no_memory:
    pawli_trace_writer_free(writer);
    return pawli_fail_plain(err, PAWL_NO_MEMORY);
}

void pawli_trace_writer_free(struct pawli_trace_writer *writer)
{
    if (writer == NULL)
        return;
    pawli_buffer_clear(&writer->bytes);
    pawli_buffer_clear(&writer->texts);
    free(writer->places);
    free(writer);
}

void pawli_trace_writer_reset(struct pawli_trace_writer *writer)
{
    assert(writer != NULL);
    assert(writer->file == NULL);

    begin(writer);
}

const uint8_t *pawli_trace_bytes(const struct pawli_trace_writer *writer, size_t *ret_len)
{
    assert(writer != NULL && ret_len != NULL);

    *ret_len = writer->bytes.len;
    return writer->bytes.bytes;
}

/*
 * Hand the bytes to the file. A short write leaves a torn history: nothing may follow it. What was
 * whole before memory ran out is still worth keeping.
 */
static void spill(struct pawli_trace_writer *writer)
{
    if (writer->file == NULL || writer->broken == PAWL_BROKEN)
        return;
    size_t len = writer->bytes.len;
    if (fwrite(writer->bytes.bytes, 1, len, writer->file) != len)
        writer->broken = PAWL_BROKEN;
    writer->bytes.len = 0;
}

pawl_code pawli_trace_flush(struct pawli_trace_writer *writer, pawl_err *err)
{
    assert(writer != NULL);

    spill(writer);
    if (writer->file != NULL && fflush(writer->file) != 0)
        writer->broken = PAWL_BROKEN;
    if (writer->broken == PAWL_NO_MEMORY)
        return pawli_fail(err, PAWL_BROKEN, "history: memory ran out: a record is missing");
    if (writer->broken != PAWL_OK)
        return pawli_fail(err, PAWL_BROKEN, "history: its file could not be written");
    return PAWL_OK;
}

void pawli_trace_write_through(struct pawli_trace_writer *writer)
{
    assert(writer != NULL && writer->file != NULL);

    writer->is_through = true;
}

/* ---------------------------------------------------------------- parts of a record */

/* Make room for a part of a record. False, for ever after, where memory has run out. */
static bool make_room(struct pawli_trace_writer *writer, size_t room)
{
    if (writer->broken != PAWL_OK)
        return false;
    if (pawli_buffer_reserve(&writer->bytes, room))
        return true;
    writer->broken = PAWL_NO_MEMORY;
    return false;
}

static void put_number(struct pawli_trace_writer *writer, uint64_t value)
{
    pawli_buffer_varint(&writer->bytes, value);
}

static void put_signed(struct pawli_trace_writer *writer, int64_t value)
{
    pawli_buffer_varint(&writer->bytes, pawli_zigzag((uint64_t)value));
}

static void put_distance(struct pawli_trace_writer *writer, int64_t from, int64_t to)
{
    pawli_buffer_varint(&writer->bytes, pawli_zigzag((uint64_t)to - (uint64_t)from));
}

static void put_wall(struct pawli_trace_writer *writer, pawl_wall at)
{
    put_distance(writer, writer->last_wall_us, at.us);
    writer->last_wall_us = at.us;
}

static void put_id(struct pawli_trace_writer *writer, const pawl_id *id)
{
    size_t place = trace_id_place(id);
    if (memcmp(&writer->ids[place], id, sizeof(*id)) == 0) {
        put_number(writer, place + 1);
        return;
    }
    put_number(writer, 0);
    memcpy(writer->bytes.bytes + writer->bytes.len, id->bytes, sizeof(id->bytes));
    writer->bytes.len += sizeof(id->bytes);
    writer->ids[place] = *id;
}

/* ---------------------------------------------------------------- texts */

static uint32_t hash_text(const char *text, size_t len)
{
    uint64_t hash = len;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ (hash >> 32));
}

static struct text_place *find_place(struct text_place *places, size_t places_count,
                                     const struct pawli_trace_writer *writer, const char *text,
                                     const struct text_place *like)
{
    size_t i = like->hash & (places_count - 1);
    while (places[i].number != 0) {
        const struct text_place *place = &places[i];
        if (place->hash == like->hash && place->len == like->len &&
            memcmp(writer->texts.bytes + place->at, text, like->len) == 0)
            break;
        i = (i + 1) & (places_count - 1);
    }
    return &places[i];
}

/* Keep the table at most half full, so that looking up stays short. */
static bool grow_places(struct pawli_trace_writer *writer)
{
    if (writer->numbers < writer->places_count / 2)
        return true;
    size_t count = writer->places_count * 2;
    struct text_place *places = calloc(count, sizeof(*places));
    if (places == NULL)
        return false;
    for (size_t i = 0; i < writer->places_count; i++) {
        const struct text_place *old = &writer->places[i];
        if (old->number == 0)
            continue;
        const char *text = (const char *)writer->texts.bytes + old->at;
        *find_place(places, count, writer, text, old) = *old;
    }
    free(writer->places);
    writer->places = places;
    writer->places_count = count;
    return true;
}

/* A longer text is cut to `max` bytes. */
static void put_cut(struct pawli_trace_writer *writer, const char *text, size_t max)
{
    size_t len = text == NULL ? 0 : pawli_text_length(text, max);
    if (len > max)
        len = max;
    if (len == 0) {
        put_number(writer, 0);
        return;
    }
    struct text_place like = {.hash = hash_text(text, len), .len = (uint32_t)len};
    struct text_place *place = find_place(writer->places, writer->places_count, writer, text,
                                          &like);
    if (place->number != 0) {
        put_number(writer, place->number);
        return;
    }
    like.number = writer->numbers + 1;
    like.at = writer->texts.len;
    if (!pawli_buffer_put(&writer->texts, text, len)) {
        writer->broken = PAWL_NO_MEMORY;
        return;
    }
    *place = like;
    writer->numbers++;
    put_number(writer, like.number);
    put_number(writer, len);
    memcpy(writer->bytes.bytes + writer->bytes.len, text, len);
    writer->bytes.len += len;
    if (!grow_places(writer))
        writer->broken = PAWL_NO_MEMORY;
}

static void put_text(struct pawli_trace_writer *writer, const char *text)
{
    put_cut(writer, text, PAWL_NAME_MAX);
}

static void put_key(struct pawli_trace_writer *writer, const char *text)
{
    put_cut(writer, text, PAWL_ORDERING_KEY_MAX);
}

/* ---------------------------------------------------------------- records */

/* What every record begins with. */
static void put_head(struct pawli_trace_writer *writer, uint8_t tag, pawl_mono at,
                     const char *actor)
{
    writer->bytes.bytes[writer->bytes.len++] = tag;
    put_distance(writer, writer->last_at_us, at.us);
    writer->last_at_us = at.us;
    put_text(writer, actor);
}

/* A record that could not be finished leaves no trace of itself: what came before stays readable.
 */
static void end_record(struct pawli_trace_writer *writer)
{
    if (writer->broken != PAWL_OK)
        writer->bytes.len = writer->record_began;
    else if (writer->is_through)
        (void)pawli_trace_flush(writer, NULL); /* where it fails, the next one says so, too */
    else if (writer->file != NULL && writer->bytes.len >= PAWLI_TRACE_FLUSH_BYTES)
        spill(writer);
}

void pawli_trace_note(struct pawli_trace_writer *writer, pawl_mono at,
                      const struct pawli_trace_note *note)
{
    assert(writer != NULL && note != NULL);
    assert(note->kind > 0 && note->kind < PAWLI_NOTES);

    writer->record_began = writer->bytes.len;
    if (!make_room(writer, NOTE_ROOM))
        return;
    put_head(writer, (uint8_t)(TRACE_TAG_NOTE + note->kind), at, note->actor);
    bool has_job = !pawl_id_is_nil(&note->job);
    unsigned mask = (has_job ? NOTE_JOB : 0u) | (note->version != 0 ? NOTE_VERSION : 0u) |
                    (note->a != 0 ? NOTE_A : 0u) | (note->b != 0 ? NOTE_B : 0u) |
                    (note->c != 0 ? NOTE_C : 0u);
    put_number(writer, mask);
    if (has_job)
        put_id(writer, &note->job);
    if (note->version != 0)
        put_signed(writer, note->version);
    if (note->a != 0)
        put_distance(writer, note->kind == PAWLI_NOTE_CONFIRMED ? at.us : 0, note->a);
    if (note->b != 0)
        put_signed(writer, note->b);
    if (note->c != 0)
        put_signed(writer, note->c);
    end_record(writer);
}

static uint64_t row_mask(const struct pawli_trace_row *row)
{
    uint64_t mask = 0;
#define HAS(field, is_there) mask |= (is_there) ? (uint64_t)(field) : 0u
    HAS(ROW_JOB, !pawl_id_is_nil(&row->job));
    HAS(ROW_TOKEN, row->token_digest != 0);
    HAS(ROW_VERSION, row->version != 0);
    HAS(ROW_CODE, row->code != PAWL_OK);
    HAS(ROW_EXPIRES_AT, row->expires_at.us != 0);
    HAS(ROW_LEASE_MS, row->lease_ms != 0);
    HAS(ROW_ACTION, row->action != 0);
    HAS(ROW_STATE, row->state != 0);
    HAS(ROW_OUTCOME, row->outcome != 0);
    HAS(ROW_REASON, row->reason != 0);
    HAS(ROW_ENDED_BY, row->ended_by != 0);
    HAS(ROW_ATTEMPT_NO, row->attempt_no != 0);
    HAS(ROW_RETRIES, row->retries != 0);
    HAS(ROW_LOST_LEASES, row->lost_leases != 0);
    HAS(ROW_ATTEMPTS, row->attempts != 0);
    HAS(ROW_MAX_RETRIES, row->max_retries != 0);
    HAS(ROW_MAX_LOST_LEASES, row->max_lost_leases != 0);
    HAS(ROW_BACKOFF_BASE_MS, row->backoff_base_ms != 0);
    HAS(ROW_BACKOFF_MAX_MS, row->backoff_max_ms != 0);
    HAS(ROW_CLAIMED_AT, row->claimed_at.us != 0);
    HAS(ROW_RUN_UNTIL, row->run_until.us != 0);
    HAS(ROW_FINISHED_AT, row->finished_at.us != 0);
    HAS(ROW_DUE_AT, row->due_at.us != 0);
    HAS(ROW_START_BY, row->start_by.us != 0);
    HAS(ROW_DELAY_MS, row->delay_ms != 0);
    HAS(ROW_START_WITHIN_MS, row->start_within_ms != 0);
    HAS(ROW_TIMEOUT_MS, row->timeout_ms != 0);
    HAS(ROW_OVERDUE_MS, row->overdue_ms != 0);
    HAS(ROW_QUEUE, row->queue != NULL && row->queue[0] != '\0');
    HAS(ROW_WORKER, row->worker != NULL && row->worker[0] != '\0');
    HAS(ROW_IS_UNSTARTED, row->is_unstarted);
    HAS(ROW_IS_CANCEL_ASKED, row->is_cancel_asked);
    HAS(ROW_ORDERING_KEY, row->ordering_key != NULL && row->ordering_key[0] != '\0');
    HAS(ROW_FENCE, row->fence != 0);
    HAS(ROW_MAX_IN_FLIGHT, row->max_in_flight != 0);
#undef HAS
    return mask;
}

void pawli_trace_call_row(struct pawli_trace_writer *writer, const struct pawli_trace_row *row)
{
    assert(writer != NULL && row != NULL);

    if (!make_room(writer, ROW_ROOM))
        return;
    uint64_t mask = row_mask(row);
    put_number(writer, mask);
#define PUT(field, put, value)     \
    do {                           \
        if ((mask & (field)) != 0) \
            put(writer, value);    \
    } while (0)
    PUT(ROW_JOB, put_id, &row->job);
    if ((mask & ROW_TOKEN) != 0) {
        for (unsigned i = 0; i < 8; i++)
            writer->bytes.bytes[writer->bytes.len++] = (uint8_t)(row->token_digest >> (8 * i));
    }
    PUT(ROW_VERSION, put_signed, row->version);
    PUT(ROW_CODE, put_number, row->code);
    PUT(ROW_EXPIRES_AT, put_wall, row->expires_at);
    PUT(ROW_LEASE_MS, put_signed, row->lease_ms);
    PUT(ROW_ACTION, put_number, row->action);
    PUT(ROW_STATE, put_number, row->state);
    PUT(ROW_OUTCOME, put_number, row->outcome);
    PUT(ROW_REASON, put_number, row->reason);
    PUT(ROW_ENDED_BY, put_number, row->ended_by);
    PUT(ROW_ATTEMPT_NO, put_signed, row->attempt_no);
    PUT(ROW_RETRIES, put_signed, row->retries);
    PUT(ROW_LOST_LEASES, put_signed, row->lost_leases);
    PUT(ROW_ATTEMPTS, put_signed, row->attempts);
    PUT(ROW_MAX_RETRIES, put_signed, row->max_retries);
    PUT(ROW_MAX_LOST_LEASES, put_signed, row->max_lost_leases);
    PUT(ROW_BACKOFF_BASE_MS, put_signed, row->backoff_base_ms);
    PUT(ROW_BACKOFF_MAX_MS, put_signed, row->backoff_max_ms);
    PUT(ROW_CLAIMED_AT, put_wall, row->claimed_at);
    PUT(ROW_RUN_UNTIL, put_wall, row->run_until);
    PUT(ROW_FINISHED_AT, put_wall, row->finished_at);
    PUT(ROW_DUE_AT, put_wall, row->due_at);
    PUT(ROW_START_BY, put_wall, row->start_by);
    PUT(ROW_DELAY_MS, put_signed, row->delay_ms);
    PUT(ROW_START_WITHIN_MS, put_signed, row->start_within_ms);
    PUT(ROW_TIMEOUT_MS, put_signed, row->timeout_ms);
    PUT(ROW_OVERDUE_MS, put_signed, row->overdue_ms);
    PUT(ROW_QUEUE, put_text, row->queue);
    PUT(ROW_WORKER, put_text, row->worker);
    PUT(ROW_ORDERING_KEY, put_key, row->ordering_key);
    PUT(ROW_FENCE, put_signed, row->fence);
    PUT(ROW_MAX_IN_FLIGHT, put_signed, row->max_in_flight);
#undef PUT
}

void pawli_trace_call_begin(struct pawli_trace_writer *writer,
                            const struct pawli_trace_record *call)
{
    assert(writer != NULL && call != NULL);
    assert(call->verb > 0 && call->verb < PAWLI_VERBS);

    writer->record_began = writer->bytes.len;
    if (!make_room(writer, CALL_ROOM))
        return;
    put_head(writer, (uint8_t)call->verb, call->at, call->actor);
    bool has_subject = call->subject != NULL && call->subject[0] != '\0';
    bool has_about = !pawl_id_is_nil(&call->about);
    put_number(writer, (call->code != PAWL_OK ? CALL_CODE : 0u) |
                           (call->until.us != call->at.us ? CALL_UNTIL : 0u) |
                           (call->store_at.us != 0 ? CALL_STORE_AT : 0u) |
                           (has_subject ? CALL_SUBJECT : 0u) | (has_about ? CALL_ABOUT : 0u) |
                           (call->count != 0 ? CALL_COUNT : 0u) |
                           (call->is_where ? CALL_IS_WHERE : 0u) |
                           (call->is_first ? CALL_IS_FIRST : 0u));
    if (call->code != PAWL_OK)
        put_number(writer, call->code);
    if (call->until.us != call->at.us)
        put_distance(writer, call->at.us, call->until.us);
    if (call->store_at.us != 0)
        put_wall(writer, call->store_at);
    if (has_subject)
        put_text(writer, call->subject);
    if (has_about)
        put_id(writer, &call->about);
    if (call->count != 0)
        put_signed(writer, call->count);
    put_number(writer, call->rows_count);
}

void pawli_trace_call_end(struct pawli_trace_writer *writer)
{
    end_record(writer);
}

void pawli_trace_call(struct pawli_trace_writer *writer, const struct pawli_trace_record *call)
{
    pawli_trace_call_begin(writer, call);
    for (size_t i = 0; i < call->rows_count; i++)
        pawli_trace_call_row(writer, &call->rows[i]);
    pawli_trace_call_end(writer);
}
