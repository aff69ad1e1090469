/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event_line.c - an event as a line of a log, in logfmt or JSON.
 * Owns:  the order and the names of the fields; escaping; what is left out of a line that is full.
 * Never: writes anywhere but into the line; prints what an event does not carry; gives a line that
 *        is not whole: a field stands in it to its end, or not at all.
 */
#include "base/text.h"
#include "runtime/event_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define END_MAX  3 /* a brace, a newline, a NUL */
#define TIME_MAX 40

struct line {
    char *text;
    size_t len;
    size_t max; /* room for fields: the end of the line is kept free */
    bool is_json;
    bool is_full; /* the field that is being put does not fit */
};

static void put_bytes(struct line *line, const char *bytes, size_t len)
{
    line->is_full = line->is_full || len > line->max - line->len;
    if (line->is_full)
        return;
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
}

static void put(struct line *line, const char *text)
{
    put_bytes(line, text, strlen(text));
}

static void put_escaped_byte(struct line *line, const char **at)
{
    const unsigned char *bytes = (const unsigned char *)*at;
    char text[8];
    unsigned character = bytes[0];
    *at += 1;
    if (character == 0xc2 && bytes[1] >= 0x80 && bytes[1] <= 0x9f) {
        character = bytes[1]; /* a control character in two bytes */
        *at += 1;
    } else if (character >= 0x80) {
        character = 0xfffd; /* not UTF-8 */
    }
    const char *named = character == '\n' ? "\\n" : character == '\t' ? "\\t" : NULL;
    if (named == NULL)
        (void)snprintf(text, sizeof(text), "\\u%04x", character); /* six bytes */
    put(line, named != NULL ? named : text);
}

/* Between quotes; the two formats escape alike. */
static void put_quoted(struct line *line, const char *text)
{
    put(line, "\"");
    while (*text != '\0') {
        size_t good = pawli_text_good(text, "");
        size_t plain = strcspn(text, "\"\\");
        size_t len = good < plain ? good : plain;
        put_bytes(line, text, len);
        text += len;
        if (len < good) {
            put_bytes(line, "\\", 1);
            put_bytes(line, text++, 1);
        } else if (*text != '\0') {
            put_escaped_byte(line, &text);
        }
    }
    put(line, "\"");
}

static bool is_bare(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~' || strchr("\"=\\", *text) != NULL)
            return false;
    return true;
}

static void put_name(struct line *line, const char *name)
{
    if (line->is_json) {
        put(line, line->len == 0 ? "{\"" : ",\"");
        put(line, name);
        put(line, "\":");
        return;
    }
    if (line->len > 0)
        put(line, " ");
    put(line, name);
    put(line, "=");
}

/* A field that does not fit leaves no trace. */
static void end_field(struct line *line, size_t len_before)
{
    if (line->is_full)
        line->len = len_before;
    line->is_full = false;
}

static void put_text(struct line *line, const char *name, const char *value)
{
    size_t before = line->len;
    if (name == NULL || value == NULL || value[0] == '\0')
        return;
    put_name(line, name);
    if (!line->is_json && is_bare(value))
        put(line, value);
    else
        put_quoted(line, value);
    end_field(line, before);
}

static void put_number(struct line *line, const char *name, int64_t number)
{
    char text[24];
    size_t before = line->len;
    if (name == NULL)
        return;
    (void)snprintf(text, sizeof(text), "%" PRId64, number); /* always fits */
    put_name(line, name);
    put(line, text);
    end_field(line, before);
}

static void put_seconds(struct line *line, const char *name, int64_t us)
{
    char text[32];
    size_t before = line->len;
    if (name == NULL)
        return;
    us = us > 0 ? us : 0;
    (void)snprintf(text, sizeof(text), "%" PRId64 ".%06" PRId64, us / 1000000, us % 1000000);
    put_name(line, name);
    put(line, text);
    end_field(line, before);
}

static void put_time(struct line *line, pawl_wall at)
{
    char text[TIME_MAX];
    struct tm parts;
    time_t seconds = (time_t)(at.us / 1000000);
    if (at.us < 0 || gmtime_r(&seconds, &parts) == NULL)
        return;
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + len, sizeof(text) - len, ".%06" PRId64 "Z", at.us % 1000000);
    put_text(line, "time", text);
}

static void put_fields(struct line *line, const pawl_event *event,
                       const struct pawli_event_row *row)
{
    char id[PAWL_ID_TEXT_MAX];
    put_time(line, event->at);
    put_text(line, "level", pawli_level_name(event->level));
    put_text(line, "event", row->id);
    put_text(line, "msg", row->text);
    put_text(line, "worker", event->worker);
    if (!pawl_id_is_nil(&event->job))
        put_text(line, "job", pawl_id_format(&event->job, id));
    put_text(line, "queue", event->queue);
    if (event->attempt > 0)
        put_number(line, "attempt", event->attempt);
    if (event->lease_version > 0)
        put_number(line, "lease_version", event->lease_version);
    put_text(line, row->subject_as, event->subject);
    put_text(line, "reason", event->reason);
    if (event->code != PAWL_OK)
        put_text(line, "code", pawl_code_name(event->code));
    put_number(line, row->count_as, event->count);
    if (event->refused > 0)
        put_number(line, "refused", event->refused);
    put_seconds(line, row->took_as, event->took_us);
    put_text(line, "text", event->text);
}

size_t pawl_event_line(const pawl_event *event, pawl_line_format format, char *line,
                       size_t line_size)
{
    const struct pawli_event_row *row = event != NULL ? pawli_event_row(event->kind) : NULL;
    bool is_json = format == PAWL_LINE_JSON;
    if (row == NULL || line == NULL || line_size <= END_MAX ||
        (!is_json && format != PAWL_LINE_LOGFMT))
        return 0;
    struct line to = {.text = line, .max = line_size - END_MAX, .is_json = is_json};
    put_fields(&to, event, row);
    if (to.len == 0)
        return 0;
    if (is_json)
        line[to.len++] = '}';
    line[to.len++] = '\n';
    line[to.len] = '\0';
    return to.len;
}
