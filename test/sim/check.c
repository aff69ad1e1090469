/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check.c - the checker's entry, its memory, and its report.
 * Owns:  the order in which the rules are checked; the list of violations.
 * Never: knows a rule.
 */
#include "sim/check_model.h"

#include "base/error.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- rules by name */

struct rule_text {
    const char *number;
    const char *name;
    const char *text;
};

static const struct rule_text rule_texts[CHECK_RULES_COUNT] = {[CHECK_NONE] = {"?", "?", "?"},
#define X(number, name, text) [CHECK_##number] = {#number, name, text},
                                                               CHECK_RULES(X)
#undef X
};

static const struct rule_text *text_of(enum check_rule rule)
{
    bool is_rule = rule > CHECK_NONE && rule < CHECK_RULES_COUNT;
    return &rule_texts[is_rule ? rule : CHECK_NONE];
}

const char *check_rule_number(enum check_rule rule)
{
    return text_of(rule)->number;
}

const char *check_rule_name(enum check_rule rule)
{
    return text_of(rule)->name;
}

const char *check_rule_text(enum check_rule rule)
{
    return text_of(rule)->text;
}

/* ---------------------------------------------------------------- memory */

enum {
    CHUNK = 60000, /* below what malloc would ask the system for each time */
    SPANS_FIRST = 4
};

struct check_arena {
    struct check_arena *next;
    size_t used;
    size_t size;
    uint64_t words[]; /* nothing in the book needs more than their alignment */
};

void *check_alloc(struct check_book *book, size_t size)
{
    size = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    struct check_arena *arena = book->arena;
    if (arena == NULL || size > arena->size - arena->used) {
        size_t room = size > CHUNK ? size : CHUNK;
        arena = malloc(sizeof(*arena) + room);
        if (arena == NULL) {
            book->is_out_of_memory = true;
            return NULL;
        }
        *arena = (struct check_arena){.next = book->arena, .size = room};
        book->arena = arena;
    }
    void *block = (char *)arena->words + arena->used;
    arena->used += size;
    memset(block, 0, size);
    return block;
}

bool check_spans_add(struct check_book *book, struct check_spans *spans, struct check_span span)
{
    if (spans->count == spans->size) {
        size_t size = spans->size == 0 ? SPANS_FIRST : spans->size * 2;
        struct check_span *items = check_alloc(book, size * sizeof(*items));
        if (items == NULL)
            return false;
        if (spans->count > 0)
            memcpy(items, spans->items, spans->count * sizeof(*items));
        spans->items = items;
        spans->size = size;
    }
    spans->items[spans->count++] = span;
    return true;
}

static void book_clear(struct check_book *book)
{
    for (size_t i = 0; i < book->readers_count; i++)
        pawli_trace_reader_free(book->readers[i]);
    free(book->readers);
    free(book->digests);
    while (book->arena != NULL) {
        struct check_arena *arena = book->arena;
        book->arena = arena->next;
        free(arena);
    }
}

/* ---------------------------------------------------------------- reporting */

static struct check_violation *add_violation(struct check_book *book, enum check_rule rule)
{
    struct check_report *report = book->report;
    if ((book->options->unchecked & UINT64_C(1) << rule) != 0)
        return NULL;
    report->is_broken[rule] = true;
    report->violations_count++;
    if (report->kept == CHECK_VIOLATIONS_MAX)
        return NULL;
    struct check_violation *violation = &report->violations[report->kept++];
    *violation = (struct check_violation){.rule = rule};
    return violation;
}

static void fail(struct check_book *book, enum check_rule rule, const struct check_event *event,
                 const char *format, va_list args)
{
    struct check_violation *violation = add_violation(book, rule);
    if (violation == NULL)
        return;
    if (event != NULL) {
        violation->at.us = event->at_us;
        violation->version = event->version;
        if (event->job != NULL)
            violation->job = event->job->id;
    }
    vsnprintf(violation->text, sizeof(violation->text), format, args);
}

void check_fail(struct check_book *book, enum check_rule rule, const struct check_event *event,
                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(book, rule, event, format, args);
    va_end(args);
}

void check_wrong(struct check_model *model, enum check_rule rule, const struct check_event *event,
                 const char *format, ...)
{
    if (model->job->is_wrong)
        return; /* it follows from the first */
    model->job->is_wrong = true;
    va_list args;
    va_start(args, format);
    fail(model->book, rule, event, format, args);
    va_end(args);
}

void check_fail_job(struct check_book *book, enum check_rule rule, const struct check_job *job,
                    const char *format, ...)
{
    struct check_violation *violation = add_violation(book, rule);
    if (violation == NULL)
        return;
    violation->job = job->id;
    violation->at.us = book->last_at_us;
    va_list args;
    va_start(args, format);
    vsnprintf(violation->text, sizeof(violation->text), format, args);
    va_end(args);
}

void check_report_print(const struct check_report *report, FILE *out)
{
    assert(report != NULL && out != NULL);

    for (size_t i = 0; i < report->kept; i++) {
        const struct check_violation *violation = &report->violations[i];
        char id[PAWL_ID_TEXT_MAX];
        fprintf(out, "%s %s: at %" PRId64 ".%06" PRId64, check_rule_number(violation->rule),
                check_rule_name(violation->rule), violation->at.us / 1000000,
                violation->at.us < 0 ? -(violation->at.us % 1000000) : violation->at.us % 1000000);
        if (!pawl_id_is_nil(&violation->job))
            fprintf(out, " job %s v%" PRId64, pawl_id_format(&violation->job, id),
                    violation->version);
        fprintf(out, ": %s\n", violation->text);
    }
    if (report->violations_count > report->kept)
        fprintf(out, "and %zu more\n", report->violations_count - report->kept);
}

/* ---------------------------------------------------------------- what all rules ask */

bool check_overlaps(const struct check_spans *spans, int64_t from_us, int64_t to_us)
{
    /* In the order of their beginnings: none that begins after the window counts. */
    for (size_t i = spans->count; i-- > 0;) {
        if (spans->items[i].from_us <= to_us && spans->items[i].to_us >= from_us)
            return true;
    }
    return false;
}

int64_t check_stretched(const struct check_book *book, int64_t us)
{
    int64_t part = us / 1000000 * book->options->drift_ppm +
                   us % 1000000 * book->options->drift_ppm / 1000000;
    return plus(us, plus(part, 1000));
}

int64_t check_shrunk(const struct check_book *book, int64_t us)
{
    return minus(us, minus(check_stretched(book, us), us));
}

void check_delays_add(struct check_delays *delays, int64_t delay_us, int64_t most_ms)
{
    delays->count++;
    delays->zeros += delay_us == 0;
    for (int64_t ways = most_ms; ways > 0; ways /= 2)
        delays->bits++;
}

struct check_lease *check_lease_of(struct check_job *job, int64_t version)
{
    struct check_lease *lease = job->leases;
    while (lease != NULL && lease->version != version)
        lease = lease->next;
    return lease;
}

struct check_settings check_settings_at(const struct check_queue *queue, uint32_t seq)
{
    const struct check_setting *setting = queue == NULL ? NULL : queue->settings;
    while (setting != NULL && setting->seq > seq)
        setting = setting->next;
    if (setting != NULL)
        return setting->settings;
    pawl_queue_settings usual;
    pawl_queue_settings_init(&usual);
    return (struct check_settings){.max_retries = usual.max_retries,
                                   .max_lost_leases = usual.max_lost_leases,
                                   .base_ms = usual.backoff_base_ms,
                                   .max_ms = usual.backoff_max_ms,
                                   .max_in_flight = usual.max_in_flight};
}

const char *check_worker_name(const struct check_worker *worker)
{
    return worker == NULL ? "nobody" : worker->name;
}

/* ---------------------------------------------------------------- the entry */

static pawl_code judge(struct check_book *book, pawl_err *err)
{
    bool is_walked = book->options->is_exact ? check_store(book) : check_loose(book);
    bool is_done = is_walked && check_workers(book) && check_pauses(book) && check_stops(book) &&
                   check_keys(book) && check_waiting(book) && check_totals(book);
    return is_done ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code check_histories(const struct check_part *parts, size_t parts_count,
                          const struct check_options *options, struct check_report *ret_report,
                          pawl_err *err)
{
    assert(parts != NULL && options != NULL && ret_report != NULL);

    if (parts_count == 0 || (options->is_exact && parts_count > 1))
        return pawli_fail(err, PAWL_INVALID, "histories: %zu given; an exact one stands alone",
                          parts_count);
    *ret_report = (struct check_report){0};
    struct check_book *book = calloc(1, sizeof(*book));
    if (book == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    book->options = options;
    book->report = ret_report;
    book->faults_off_us = CHECK_NEVER_US;
    pawl_code code = check_load(book, parts, parts_count, err);
    if (code == PAWL_OK)
        code = judge(book, err);
    book_clear(book);
    free(book);
    return code;
}

pawl_code check_history(const uint8_t *bytes, size_t len, const struct check_options *options,
                        struct check_report *ret_report, pawl_err *err)
{
    struct check_part part = {bytes, len};
    return check_histories(&part, 1, options, ret_report, err);
}
