/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace_format.h - how a history looks in bytes: shared by the writer and the reader, and by nobody
 * else.
 *
 *   history := magic record*
 *   record  := tag at actor (note | call)
 *   tag     := one byte: the verb of a call, or TRACE_TAG_NOTE + the kind of a note
 *   note    := mask, then those of job, version, a, b, c that the mask names
 *   call    := mask, then those of code, until, store_at, subject, about, count that it names,
 *              then the number of rows and the rows
 *   row     := mask, then the fields that it names, in the order of enum trace_row_field
 *
 * A mask names the fields that are not zero. Numbers are varints, signed ones zigzagged. Times are
 * told as the distance from the time told before: `at` from the last record's `at`, `until` and the
 * `a` of CONFIRMED from `at`, all times of the store from the last time of the store. Texts are
 * numbered from 1 as they come; a number that is one above the last one is followed by a new text,
 * length first; 0 is the empty text. Ids are looked up in a table of recent ones: 0 is followed by
 * sixteen bytes, which then stand at the place that their hash names; n is the id at place n - 1.
 *
 * Fields are only ever added behind the others, so a reader reads every older history too; an older
 * reader refuses a mask that names what it does not know.
 */
#ifndef PAWLI_STORE_TRACE_FORMAT_H
#define PAWLI_STORE_TRACE_FORMAT_H

#include "store/trace.h"

#define TRACE_MAGIC     "pawl-history-1\n\0" /* sixteen bytes with the closing NUL */
#define TRACE_MAGIC_LEN 16

#define TRACE_TAG_NOTE 0x80

/* Bytes in a text: the longest of a name and an ordering key. */
#define TRACE_TEXT_MAX PAWL_ORDERING_KEY_MAX

#define TRACE_IDS 1024 /* places in the table of recent ids */

enum trace_note_field {
    NOTE_JOB = 1 << 0,
    NOTE_VERSION = 1 << 1,
    NOTE_A = 1 << 2,
    NOTE_B = 1 << 3,
    NOTE_C = 1 << 4,
    NOTE_FIELDS = 1 << 5
};

enum trace_call_field {
    CALL_CODE = 1 << 0,
    CALL_UNTIL = 1 << 1,
    CALL_STORE_AT = 1 << 2,
    CALL_SUBJECT = 1 << 3,
    CALL_ABOUT = 1 << 4,
    CALL_COUNT = 1 << 5,
    CALL_IS_WHERE = 1 << 6,
    CALL_IS_FIRST = 1 << 7,
    CALL_FIELDS = 1 << 8
};

enum trace_row_field {
    ROW_JOB = 1 << 0,
    ROW_TOKEN = 1 << 1,
    ROW_VERSION = 1 << 2,
    ROW_CODE = 1 << 3,
    ROW_EXPIRES_AT = 1 << 4,
    ROW_LEASE_MS = 1 << 5,
    ROW_ACTION = 1 << 6,
    ROW_STATE = 1 << 7,
    ROW_OUTCOME = 1 << 8,
    ROW_REASON = 1 << 9,
    ROW_ENDED_BY = 1 << 10,
    ROW_ATTEMPT_NO = 1 << 11,
    ROW_RETRIES = 1 << 12,
    ROW_LOST_LEASES = 1 << 13,
    ROW_ATTEMPTS = 1 << 14,
    ROW_MAX_RETRIES = 1 << 15,
    ROW_MAX_LOST_LEASES = 1 << 16,
    ROW_BACKOFF_BASE_MS = 1 << 17,
    ROW_BACKOFF_MAX_MS = 1 << 18,
    ROW_CLAIMED_AT = 1 << 19,
    ROW_RUN_UNTIL = 1 << 20,
    ROW_FINISHED_AT = 1 << 21,
    ROW_DUE_AT = 1 << 22,
    ROW_START_BY = 1 << 23,
    ROW_DELAY_MS = 1 << 24,
    ROW_START_WITHIN_MS = 1 << 25,
    ROW_TIMEOUT_MS = 1 << 26,
    ROW_OVERDUE_MS = 1 << 27,
    ROW_QUEUE = 1 << 28,
    ROW_WORKER = 1 << 29,
    ROW_IS_UNSTARTED = 1 << 30
};
/* Above what an enum constant may be. */
#define ROW_IS_CANCEL_ASKED (UINT64_C(1) << 31)
#define ROW_ORDERING_KEY    (UINT64_C(1) << 32)
#define ROW_FENCE           (UINT64_C(1) << 33)
#define ROW_MAX_IN_FLIGHT   (UINT64_C(1) << 34)
#define ROW_FIELDS          (UINT64_C(1) << 35)

/* A call is written in parts, so that its rows need not be gathered first: begin (with rows_count
 * set; `rows` is not looked at), exactly so many rows, end. */
void pawli_trace_call_begin(struct pawli_trace_writer *writer,
                            const struct pawli_trace_record *call);
void pawli_trace_call_row(struct pawli_trace_writer *writer, const struct pawli_trace_row *row);
void pawli_trace_call_end(struct pawli_trace_writer *writer);

/* Eight bytes as a number, the same on every machine. */
static inline uint64_t trace_load(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* Where an id stands in the table of recent ones. */
static inline size_t trace_id_place(const pawl_id *id)
{
    uint64_t mixed = trace_load(id->bytes) ^ (trace_load(id->bytes + 8) << 1);
    return (size_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}

#endif
