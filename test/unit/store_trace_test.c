/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_trace_test.c - histories come back as they were written, whole or cut, and garbage is
 * refused.
 * Owns:  records made at random from a fixed seed.
 * Never: needs a store: the traced store has a test of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "store/trace.h"
#include "support/alloc_fail.h"

#include <unistd.h>

enum {
    RECORDS = 300,
    ROWS_MOST = 5
};

/* ---------------------------------------------------------------- records at random */

struct made {
    struct pawli_trace_record records[RECORDS];
    struct pawli_trace_row rows[RECORDS][ROWS_MOST];
    pawl_random random;
    struct pawli_seeded seeded;
    char longest[2][PAWL_ORDERING_KEY_MAX + 1];
};

static const char *const names[] = {"", "producer", "worker-1", "worker-2", "reaper", "default"};

static uint64_t below(struct made *made, uint64_t bound)
{
    return pawli_random_below(&made->random, bound);
}

static const char *some_name(struct made *made)
{
    return names[below(made, sizeof(names) / sizeof(names[0]))];
}

/* Small, large, negative, extreme; often zero. */
static int64_t some_number(struct made *made)
{
    switch (below(made, 6)) {
    case 0:
        return (int64_t)below(made, 100);
    case 1:
        return -(int64_t)below(made, 100000);
    case 2:
        return (int64_t)below(made, UINT64_C(1) << 60);
    case 3:
        return below(made, 2) == 0 ? INT64_MIN : INT64_MAX;
    default:
        return 0;
    }
}

static pawl_wall some_wall(struct made *made)
{
    return (pawl_wall){some_number(made)};
}

/* A few ids again and again, so that the table of recent ones is used, and others once. */
static pawl_id some_id(struct made *made)
{
    pawl_id id = {{0}};
    uint64_t kind = below(made, 3);
    if (kind == 0)
        return id;
    if (kind == 1)
        id.bytes[below(made, 16)] = (uint8_t)(1 + below(made, 3));
    else
        pawli_random_fill(&made->random, id.bytes, sizeof(id.bytes));
    return id;
}

/* Of two that differ in their last byte only: neither may be cut. */
static const char *longest_key(struct made *made)
{
    size_t which = below(made, 2);
    char *key = made->longest[which];
    memset(key, 'k', PAWL_ORDERING_KEY_MAX - 1);
    key[PAWL_ORDERING_KEY_MAX - 1] = which == 0 ? 'a' : 'b';
    key[PAWL_ORDERING_KEY_MAX] = '\0';
    return key;
}

static struct pawli_trace_row some_row(struct made *made)
{
    return (struct pawli_trace_row){
        .job = some_id(made),
        .token_digest = below(made, 2) == 0 ? 0 : made->random.next(made->random.user),
        .version = some_number(made),
        .code = (pawl_code)below(made, 64),
        .action = (pawl_settle_action)below(made, 4),
        .state = (pawl_state)below(made, 4),
        .outcome = (pawl_outcome)below(made, 4),
        .reason = (pawl_reason)below(made, 11),
        .ended_by = (pawl_ended_by)below(made, 4),
        .attempt_no = some_number(made),
        .retries = some_number(made),
        .lost_leases = some_number(made),
        .attempts = some_number(made),
        .max_retries = some_number(made),
        .max_lost_leases = some_number(made),
        .backoff_base_ms = some_number(made),
        .backoff_max_ms = some_number(made),
        .claimed_at = some_wall(made),
        .expires_at = some_wall(made),
        .run_until = some_wall(made),
        .finished_at = some_wall(made),
        .due_at = some_wall(made),
        .start_by = some_wall(made),
        .delay_ms = some_number(made),
        .start_within_ms = some_number(made),
        .lease_ms = some_number(made),
        .timeout_ms = some_number(made),
        .overdue_ms = some_number(made),
        .is_unstarted = below(made, 2) == 0,
        .is_cancel_asked = below(made, 2) == 0,
        .queue = some_name(made),
        .worker = some_name(made),
        .ordering_key = below(made, 8) == 0 ? longest_key(made) : some_name(made),
        .fence = some_number(made),
        .max_in_flight = some_number(made),
    };
}

static void some_call(struct made *made, size_t i)
{
    struct pawli_trace_record *record = &made->records[i];
    record->kind = PAWLI_RECORD_CALL;
    record->verb = (enum pawli_trace_verb)(1 + below(made, PAWLI_VERBS - 1));
    record->until = below(made, 2) == 0 ? record->at
                                        : (pawl_mono){record->at.us + (int64_t)below(made, 9999)};
    record->store_at = some_wall(made);
    record->code = (pawl_code)below(made, 64);
    record->subject = some_name(made);
    record->about = some_id(made);
    record->count = some_number(made);
    record->is_where = below(made, 2) == 0;
    record->is_first = below(made, 2) == 0;
    record->rows = made->rows[i];
    record->rows_count = below(made, ROWS_MOST + 1);
    for (size_t k = 0; k < record->rows_count; k++)
        made->rows[i][k] = some_row(made);
}

static struct made *make(uint64_t seed)
{
    struct made *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    made->seeded.state = seed;
    made->random = pawli_seeded_as_random(&made->seeded);
    for (size_t i = 0; i < RECORDS; i++) {
        struct pawli_trace_record *record = &made->records[i];
        record->at.us = some_number(made) / 4;
        record->actor = some_name(made);
        record->subject = "";
        if (below(made, 2) == 0) {
            some_call(made, i);
            continue;
        }
        record->kind = PAWLI_RECORD_NOTE;
        record->note = (struct pawli_trace_note){
            .kind = (enum pawli_trace_note_kind)(1 + below(made, PAWLI_NOTES - 1)),
            .actor = record->actor,
            .job = some_id(made),
            .version = some_number(made),
            .a = some_number(made),
            .b = some_number(made),
            .c = some_number(made),
        };
    }
    return made;
}

static void write_record(struct pawli_trace_writer *writer, const struct pawli_trace_record *record)
{
    if (record->kind == PAWLI_RECORD_NOTE)
        pawli_trace_note(writer, record->at, &record->note);
    else
        pawli_trace_call(writer, record);
}

/* Write all of it; ends[i] is where record i ends. */
static struct pawli_trace_writer *write_all(const struct made *made, size_t ends[RECORDS])
{
    struct pawli_trace_writer *writer = NULL;
    assert_int_equal(pawli_trace_writer_new(NULL, &writer, NULL), PAWL_OK);
    for (size_t i = 0; i < RECORDS; i++) {
        write_record(writer, &made->records[i]);
        (void)pawli_trace_bytes(writer, &ends[i]);
    }
    assert_int_equal(pawli_trace_flush(writer, NULL), PAWL_OK);
    return writer;
}

/* ---------------------------------------------------------------- comparing */

static void same_row(const struct pawli_trace_row *a, const struct pawli_trace_row *b)
{
    assert_string_equal(a->queue, b->queue);
    assert_string_equal(a->worker, b->worker);
    assert_string_equal(a->ordering_key, b->ordering_key);
    /* All else at once: copies with the same texts, field by field into zeroed memory. */
    struct pawli_trace_row left;
    struct pawli_trace_row right;
    memset(&left, 0, sizeof(left));
    memset(&right, 0, sizeof(right));
#define COPY(field) (left.field = a->field, right.field = b->field)
    COPY(job), COPY(token_digest), COPY(version), COPY(code), COPY(action), COPY(state);
    COPY(outcome), COPY(reason), COPY(ended_by), COPY(attempt_no), COPY(retries);
    COPY(lost_leases), COPY(attempts), COPY(max_retries), COPY(max_lost_leases);
    COPY(backoff_base_ms), COPY(backoff_max_ms), COPY(claimed_at), COPY(expires_at);
    COPY(run_until), COPY(finished_at), COPY(due_at), COPY(start_by), COPY(delay_ms);
    COPY(start_within_ms), COPY(lease_ms), COPY(timeout_ms), COPY(overdue_ms);
    COPY(is_unstarted), COPY(is_cancel_asked), COPY(fence), COPY(max_in_flight);
#undef COPY
    assert_memory_equal(&left, &right, sizeof(left));
}

static void same_record(const struct pawli_trace_record *a, const struct pawli_trace_record *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(a->at.us == b->at.us);
    assert_string_equal(a->actor, b->actor);
    if (a->kind == PAWLI_RECORD_NOTE) {
        assert_int_equal(a->note.kind, b->note.kind);
        assert_string_equal(a->note.actor, b->note.actor);
        assert_memory_equal(&a->note.job, &b->note.job, sizeof(a->note.job));
        assert_true(a->note.version == b->note.version);
        assert_true(a->note.a == b->note.a && a->note.b == b->note.b && a->note.c == b->note.c);
        return;
    }
    assert_int_equal(a->verb, b->verb);
    assert_int_equal(a->code, b->code);
    assert_true(a->until.us == b->until.us && a->store_at.us == b->store_at.us);
    assert_string_equal(a->subject, b->subject);
    assert_memory_equal(&a->about, &b->about, sizeof(a->about));
    assert_true(a->count == b->count);
    assert_int_equal(a->is_where, b->is_where);
    assert_int_equal(a->is_first, b->is_first);
    assert_int_equal(a->rows_count, b->rows_count);
    for (size_t i = 0; i < a->rows_count; i++)
        same_row(&a->rows[i], &b->rows[i]);
}

/* ---------------------------------------------------------------- tests */

static void what_was_written_comes_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct made *made = make(seed);
        size_t ends[RECORDS];
        struct pawli_trace_writer *writer = write_all(made, ends);
        size_t len = 0;
        const uint8_t *bytes = pawli_trace_bytes(writer, &len);
        struct pawli_trace_reader *reader = NULL;
        assert_int_equal(pawli_trace_reader_new(bytes, len, &reader, NULL), PAWL_OK);
        struct pawli_trace_record record;
        bool is_more = false;
        for (size_t i = 0; i < RECORDS; i++) {
            assert_int_equal(pawli_trace_read(reader, &record, &is_more, NULL), PAWL_OK);
            assert_true(is_more);
            same_record(&made->records[i], &record);
        }
        assert_int_equal(pawli_trace_read(reader, &record, &is_more, NULL), PAWL_OK);
        assert_false(is_more);
        assert_false(pawli_trace_is_cut(reader));
        pawli_trace_reader_free(reader);
        pawli_trace_writer_free(writer);
        free(made);
    }
}

/* How many whole records a history has; it must end in good order. */
static size_t count_records(const uint8_t *bytes, size_t len, bool *ret_cut)
{
    struct pawli_trace_reader *reader = NULL;
    assert_int_equal(pawli_trace_reader_new(bytes, len, &reader, NULL), PAWL_OK);
    struct pawli_trace_record record;
    bool is_more = true;
    size_t count = 0;
    for (;; count++) {
        assert_int_equal(pawli_trace_read(reader, &record, &is_more, NULL), PAWL_OK);
        if (!is_more)
            break;
    }
    *ret_cut = pawli_trace_is_cut(reader);
    pawli_trace_reader_free(reader);
    return count;
}

static void a_cut_history_reads_up_to_its_last_whole_record(void **state)
{
    (void)state;
    struct made *made = make(7);
    size_t ends[RECORDS];
    struct pawli_trace_writer *writer = write_all(made, ends);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(writer, &len);
    size_t whole = 0;
    for (size_t cut = 0; cut <= len; cut++) {
        /* Copied, so that reading one byte too far is seen by the sanitizer. */
        uint8_t *copy = malloc(cut + 1);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        uint8_t *exact = realloc(copy, cut == 0 ? 1 : cut);
        assert_non_null(exact);
        if (cut < 16) {
            struct pawli_trace_reader *reader = NULL;
            pawl_err err;
            assert_int_equal(pawli_trace_reader_new(exact, cut, &reader, &err), PAWL_INVALID);
            assert_non_null(strstr(err.text, "offset 0"));
        } else {
            while (whole < RECORDS && ends[whole] <= cut)
                whole++;
            bool is_cut = false;
            assert_int_equal(count_records(exact, cut, &is_cut), whole);
            size_t boundary = whole == 0 ? 16 : ends[whole - 1];
            assert_int_equal(is_cut, cut != boundary);
        }
        free(exact);
    }
    pawli_trace_writer_free(writer);
    free(made);
}

/* Read to the end or to an error, printing all: neither may crash or go on for ever. */
static void survive(const uint8_t *bytes, size_t len, FILE *out)
{
    struct pawli_trace_reader *reader = NULL;
    pawl_err err;
    if (pawli_trace_reader_new(bytes, len, &reader, &err) != PAWL_OK)
        return;
    struct pawli_trace_record record;
    bool is_more = true;
    for (size_t reads = 0; is_more; reads++) {
        assert_true(reads <= len); /* every record takes bytes */
        pawl_code code = pawli_trace_read(reader, &record, &is_more, &err);
        if (code == PAWL_OK && is_more)
            pawli_trace_print(&record, out);
        if (code == PAWL_OK)
            continue;
        assert_int_equal(code, PAWL_INVALID);
        size_t offset = SIZE_MAX;
        assert_int_equal(sscanf(err.text, "history: offset %zu: ", &offset), 1);
        assert_true(offset <= len);
        /* It stays wrong. */
        pawl_err again;
        assert_int_equal(pawli_trace_read(reader, &record, &is_more, &again), PAWL_INVALID);
        assert_string_equal(again.text, err.text);
        break;
    }
    pawli_trace_reader_free(reader);
}

static void garbage_is_survived(void **state)
{
    (void)state;
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    struct made *made = make(11);
    size_t ends[RECORDS];
    struct pawli_trace_writer *writer = write_all(made, ends);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(writer, &len);
    uint8_t *copy = malloc(len);
    assert_non_null(copy);
    for (unsigned round = 0; round < 1500; round++) {
        memcpy(copy, bytes, len);
        for (uint64_t flips = 1 + below(made, 4); flips > 0; flips--)
            copy[16 + below(made, len - 16)] ^= (uint8_t)(1u << below(made, 8));
        survive(copy, len, out);
    }
    for (unsigned round = 0; round < 3000; round++) {
        size_t size = 16 + below(made, 400);
        pawli_random_fill(&made->random, copy + 16, size - 16);
        survive(copy, size, out);
    }
    free(copy);
    pawli_trace_writer_free(writer);
    free(made);
    fclose(out);
}

static void lies_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } lies[] = {
        {"\x7f\0\0", 3, "offset 16: no such record"},
        {"\x01\0\x05\0\0", 5, "offset 19: a text that was not told"},
        {"\x01\0\x01\0\0\0", 6, "a text's length"},
        {"\x01\0\x01\x02x\0\0\0", 8, "a text with a zero byte"},
        {"\x01\0\0\x80\x10", 5, "fields that no record has"},
        {"\x01\0\0\x00\x91\x4e", 6, "more rows than a call can have"},
        {"\x81\0\0\x01\x81\x08", 6, "an id's place beyond the table"},
        {"\x01\0\0\x01\x80\x02", 6, "a call's code"},
        {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0", 12, "too many bits"},
        {"\x05\0\0\0\x01\xc0\x01\x04", 8, "an action"},
        {"\x05\0\0\0\x01\x80\x01\x04", 8, "a state"},
        {"\x05\0\0\0\x01\x80\x02\x04", 8, "an outcome"},
        {"\x05\0\0\0\x01\x80\x04\x0b", 8, "a reason"},
        {"\x05\0\0\0\x01\x80\x08\x04", 8, "who ended it"},
        {"\x05\0\0\0\x01\x08\x80\x02", 8, "a row's code"},
    };
    uint8_t bytes[64] = "pawl-history-1\n";
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        memcpy(bytes + 16, lies[i].bytes, lies[i].len);
        struct pawli_trace_reader *reader = NULL;
        assert_int_equal(pawli_trace_reader_new(bytes, 16 + lies[i].len, &reader, NULL), PAWL_OK);
        struct pawli_trace_record record;
        bool is_more = false;
        pawl_err err = {.text = ""};
        assert_int_equal(pawli_trace_read(reader, &record, &is_more, &err), PAWL_INVALID);
        if (strstr(err.text, lies[i].text) == NULL)
            fail_msg("lie %zu: %s", i, err.text);
        pawli_trace_reader_free(reader);
    }
}

static void a_file_gets_what_memory_would_hold(void **state)
{
    (void)state;
    struct made *made = make(3);
    size_t ends[RECORDS];
    struct pawli_trace_writer *in_memory = write_all(made, ends);
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(in_memory, &len);

    FILE *file = tmpfile();
    assert_non_null(file);
    struct pawli_trace_writer *writer = NULL;
    assert_int_equal(pawli_trace_writer_new(file, &writer, NULL), PAWL_OK);
    for (size_t i = 0; i < RECORDS; i++)
        write_record(writer, &made->records[i]);
    assert_int_equal(pawli_trace_flush(writer, NULL), PAWL_OK);
    uint8_t *copy = malloc(len + 1);
    assert_non_null(copy);
    rewind(file);
    assert_int_equal(fread(copy, 1, len + 1, file), len);
    assert_memory_equal(copy, bytes, len);
    free(copy);
    pawli_trace_writer_free(writer);
    pawli_trace_writer_free(in_memory);
    fclose(file);
    free(made);
}

/* Record by record, without a flush. */
static void what_is_written_through_is_in_the_file(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    struct pawli_trace_writer *writer = NULL;
    assert_int_equal(pawli_trace_writer_new(file, &writer, NULL), PAWL_OK);
    pawli_trace_write_through(writer);
    for (int64_t i = 1; i <= 3; i++) {
        uint8_t bytes[256];
        pawli_trace_note(writer, (pawl_mono){i},
                         &(struct pawli_trace_note){.kind = PAWLI_NOTE_STEP, .actor = "w"});
        ssize_t len = pread(fileno(file), bytes, sizeof(bytes), 0);
        assert_true(len > 0);
        struct pawli_trace_reader *reader = NULL;
        struct pawli_trace_record record;
        bool is_more = true;
        assert_int_equal(pawli_trace_reader_new(bytes, (size_t)len, &reader, NULL), PAWL_OK);
        for (int64_t j = 1; j <= i; j++) {
            assert_int_equal(pawli_trace_read(reader, &record, &is_more, NULL), PAWL_OK);
            assert_true(is_more && record.at.us == j);
        }
        pawli_trace_reader_free(reader);
    }
    pawli_trace_writer_free(writer);
    fclose(file);
}

static void a_full_disk_breaks_it_for_ever(void **state)
{
    (void)state;
    FILE *file = fopen("/dev/full", "w");
    assert_non_null(file);
    struct pawli_trace_writer *writer = NULL;
    assert_int_equal(pawli_trace_writer_new(file, &writer, NULL), PAWL_OK);
    struct pawli_trace_note note = {.kind = PAWLI_NOTE_STEP, .actor = "w"};
    pawli_trace_note(writer, (pawl_mono){1}, &note);
    pawl_err err;
    assert_int_equal(pawli_trace_flush(writer, &err), PAWL_BROKEN);
    clearerr(file);
    pawli_trace_note(writer, (pawl_mono){2}, &note);
    assert_int_equal(pawli_trace_flush(writer, &err), PAWL_BROKEN);
    pawli_trace_writer_free(writer);
    fclose(file);
}

/* Without memory the history stops at the last whole record, says so, and stays readable. */
static void each_failed_allocation_is_told(void **state)
{
    (void)state;
    struct made *made = make(5);
    size_t ends[RECORDS];
    struct pawli_trace_writer *whole = write_all(made, ends);
    size_t whole_len = 0;
    const uint8_t *whole_bytes = pawli_trace_bytes(whole, &whole_len);
    for (uint64_t nth = 1;; nth++) {
        struct pawli_trace_writer *writer = NULL;
        pawl_err err;
        alloc_fail_nth(nth);
        pawl_code code = pawli_trace_writer_new(NULL, &writer, &err);
        for (size_t i = 0; i < RECORDS && code == PAWL_OK; i++)
            write_record(writer, &made->records[i]);
        bool has_failed = alloc_fail_end();
        if (code == PAWL_OK) {
            size_t len = 0;
            const uint8_t *bytes = pawli_trace_bytes(writer, &len);
            assert_memory_equal(bytes, whole_bytes, len);
            bool is_cut = true;
            (void)count_records(bytes, len, &is_cut);
            assert_false(is_cut);
            assert_int_equal(pawli_trace_flush(writer, &err), has_failed ? PAWL_BROKEN : PAWL_OK);
            assert_int_equal(has_failed, len < whole_len);
        } else {
            assert_int_equal(code, PAWL_NO_MEMORY);
        }
        pawli_trace_writer_free(writer);
        if (!has_failed)
            break;
    }
    for (uint64_t nth = 1;; nth++) {
        alloc_fail_nth(nth);
        struct pawli_trace_reader *reader = NULL;
        pawl_code code = pawli_trace_reader_new(whole_bytes, whole_len, &reader, NULL);
        struct pawli_trace_record record;
        bool is_more = true;
        while (code == PAWL_OK && is_more)
            code = pawli_trace_read(reader, &record, &is_more, NULL);
        bool has_failed = alloc_fail_end();
        assert_int_equal(code, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        pawli_trace_reader_free(reader);
        if (!has_failed)
            break;
    }
    pawli_trace_writer_free(whole);
    free(made);
}

static void many_names_and_a_reset(void **state)
{
    (void)state;
    struct pawli_trace_writer *writer = NULL;
    assert_int_equal(pawli_trace_writer_new(NULL, &writer, NULL), PAWL_OK);
    char name[200];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2000; i++) {
            snprintf(name, sizeof(name), "worker-%d", i / 2);
            pawli_trace_note(writer, (pawl_mono){i},
                             &(struct pawli_trace_note){.kind = PAWLI_NOTE_STEP, .actor = name});
        }
        memset(name, 'x', sizeof(name));
        name[sizeof(name) - 1] = '\0';
        pawli_trace_note(writer, (pawl_mono){2000},
                         &(struct pawli_trace_note){.kind = PAWLI_NOTE_STEP, .actor = name});
        size_t len = 0;
        const uint8_t *bytes = pawli_trace_bytes(writer, &len);
        struct pawli_trace_reader *reader = NULL;
        assert_int_equal(pawli_trace_reader_new(bytes, len, &reader, NULL), PAWL_OK);
        struct pawli_trace_record record;
        bool is_more = false;
        for (int i = 0; i < 2000; i++) {
            snprintf(name, sizeof(name), "worker-%d", i / 2);
            assert_int_equal(pawli_trace_read(reader, &record, &is_more, NULL), PAWL_OK);
            assert_string_equal(record.actor, name);
            assert_true(record.at.us == i);
        }
        assert_int_equal(pawli_trace_read(reader, &record, &is_more, NULL), PAWL_OK);
        assert_int_equal(strlen(record.actor), PAWL_NAME_MAX);
        pawli_trace_reader_free(reader);
        pawli_trace_writer_reset(writer);
    }
    pawli_trace_writer_free(writer);
    pawli_trace_writer_free(NULL);
    pawli_trace_reader_free(NULL);
}

/* Histories of different builds are compared: the digest is fixed for good. */
static void the_digest_is_fixed_and_tells_tokens_apart(void **state)
{
    (void)state;
    pawl_token token = {{0}};
    uint64_t of_zeroes = pawli_trace_digest(&token);
    assert_true(of_zeroes == 1);
    for (uint8_t i = 0; i < 16; i++)
        token.bytes[i] = i;
    uint64_t digest = pawli_trace_digest(&token);
    assert_true(digest == UINT64_C(0xd1cb92b28b1147b7));
    for (unsigned bit = 0; bit < 128; bit++) {
        pawl_token other = token;
        other.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_true(pawli_trace_digest(&other) != digest);
    }
}

static void people_can_read_it(void **state)
{
    (void)state;
    pawl_id id;
    assert_int_equal(pawl_id_parse("0190a000-0000-7000-8000-000000000001", &id, NULL), PAWL_OK);
    struct pawli_trace_row row = {
        .job = id,
        .version = 2,
        .action = PAWL_RETRY,
        .state = PAWL_READY,
        .attempt_no = 1,
        .due_at = {4500000},
        .delay_ms = PAWL_DEFAULT,
        .token_digest = 0xab,
        .queue = "",
        .worker = "",
    };
    struct pawli_trace_record call = {
        .kind = PAWLI_RECORD_CALL,
        .verb = PAWLI_VERB_SETTLE,
        .at = {1500000},
        .until = {1500007},
        .store_at = {4000000},
        .actor = "worker 1",
        .subject = "w",
        .rows = &row,
        .rows_count = 1,
    };
    struct pawli_trace_record note = {
        .kind = PAWLI_RECORD_NOTE,
        .at = {-1},
        .actor = "",
        .note = {.kind = PAWLI_NOTE_CONFIRMED, .job = id, .version = 2, .a = 1250000, .b = 1000},
    };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    pawli_trace_print(&call, out);
    pawli_trace_print(&note, out);
    call.rows_count = 0;
    call.code = PAWL_UNKNOWN;
    pawli_trace_print(&call, out);
    fclose(out);
    assert_string_equal(
        text, "1.500000 worker?1 SETTLE of=w until=1.500007 store=4.000000 "
              "0190a000-0000-7000-8000-000000000001 v2 OK retry Ready digest=00000000000000ab no=1 "
              "delay_ms=default due=4.500000\n"
              "-0.000001 - CONFIRMED 0190a000-0000-7000-8000-000000000001 v2 sent=1.250000 "
              "lease_ms=1000\n"
              "1.500000 worker?1 SETTLE of=w until=1.500007 store=4.000000 UNKNOWN\n");
    free(text);
    for (int i = 1; i < PAWLI_VERBS; i++)
        assert_string_not_equal(pawli_trace_verb_name((enum pawli_trace_verb)i), "?");
    for (int i = 1; i < PAWLI_NOTES; i++)
        assert_string_not_equal(pawli_trace_note_name((enum pawli_trace_note_kind)i), "?");
    assert_string_equal(pawli_trace_verb_name(PAWLI_VERBS), "?");
    assert_string_equal(pawli_trace_note_name(PAWLI_NOTES), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_comes_back),
        cmocka_unit_test(a_cut_history_reads_up_to_its_last_whole_record),
        cmocka_unit_test(garbage_is_survived),
        cmocka_unit_test(lies_are_refused_by_name),
        cmocka_unit_test(a_file_gets_what_memory_would_hold),
        cmocka_unit_test(what_is_written_through_is_in_the_file),
        cmocka_unit_test(a_full_disk_breaks_it_for_ever),
        cmocka_unit_test(each_failed_allocation_is_told),
        cmocka_unit_test(many_names_and_a_reset),
        cmocka_unit_test(the_digest_is_fixed_and_tells_tokens_apart),
        cmocka_unit_test(people_can_read_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
