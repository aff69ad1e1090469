/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event.c - an event that was published, and the jobs that it becomes.
 * Owns:  the names of the headers that tell of an event; the ids of its jobs; the names of
 *        endpoints and of their queues.
 * Never: looks into a payload; draws an id.
 */
#include "core/event.h"

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "core/headers.h"
#include "core/id.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define RESERVED   "pawl-"
#define KEY_ID     "pawl-event-id"
#define KEY_TYPE   "pawl-event-type"
#define KEY_KEY    "pawl-event-key"
#define KEY_TIME   "pawl-event-time"
#define TIME_SIZE  24 /* of printed microseconds */
#define SHOWN_MAX  64 /* bytes of a bad name or id that an error quotes */
#define TIME_BYTES 6  /* at the beginning of an id of version 7 */

_Static_assert(PAWL_ENDPOINT_NAME_MAX + sizeof(PAWLI_ENDPOINT_QUEUE_PREFIX) - 1 <= PAWL_NAME_MAX,
               "the name of an endpoint's queue is the name of a queue");
_Static_assert(PAWLI_TOPIC_MAX == PAWL_ENDPOINT_TOPIC_MAX, "one bound, told in public");
_Static_assert(PAWLI_TOPICS_MAX == PAWL_ENDPOINT_TOPICS_MAX, "likewise");
_Static_assert(PAWLI_TOPICS_LENGTH_MAX == PAWL_ENDPOINT_TOPICS_LEN_MAX, "likewise");
_Static_assert(PAWL_EVENT_ID_MAX >= PAWL_ID_TEXT_MAX - 1, "a minted id fits");

/* ---- names */

const char *pawli_endpoint_queue(const char *name, char queue[PAWL_NAME_MAX + 1])
{
    assert(strlen(name) <= PAWL_ENDPOINT_NAME_MAX);
    (void)snprintf(queue, PAWL_NAME_MAX + 1, "%s%s", PAWLI_ENDPOINT_QUEUE_PREFIX,
                   name); /* it fits */
    return queue;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* As much of a text as can be shown. */
static const char *show(const char *text, char shown[SHOWN_MAX + 1])
{
    size_t len = 0;
    for (; len < SHOWN_MAX && text[len] != '\0'; len++)
        shown[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    shown[len] = '\0';
    return shown;
}

pawl_code pawli_endpoint_name_check(const char *field, const char *name, pawl_err *err)
{
    if (name == NULL)
        return pawli_fail(err, PAWL_INVALID, "%s is missing (NULL)", field);
    size_t len = pawli_text_length(name, PAWL_ENDPOINT_NAME_MAX);
    bool is_good = len >= 1 && len <= PAWL_ENDPOINT_NAME_MAX && name[0] != '.' && name[0] != '-';
    for (size_t i = 0; is_good && i < len; i++)
        is_good = is_letter_or_digit(name[i]) || strchr("._-", name[i]) != NULL;
    char shown[SHOWN_MAX + 1];
    return is_good ? PAWL_OK
                   : pawli_fail(err, PAWL_INVALID,
                                "%s is \"%s\"; it must be 1 to %d letters, digits, `.`, `_` and "
                                "`-`, the first no `.` or `-`",
                                field, show(name, shown), PAWL_ENDPOINT_NAME_MAX);
}

/* A full stop would let one signed message pass for another. */
pawl_code pawli_event_id_check(const char *id, pawl_err *err)
{
    size_t len = pawli_text_length(id, PAWL_EVENT_ID_MAX);
    bool is_good = len >= 1 && len <= PAWL_EVENT_ID_MAX;
    for (size_t i = 0; is_good && i < len; i++)
        is_good = is_letter_or_digit(id[i]) || id[i] == '_' || id[i] == '-';
    char shown[SHOWN_MAX + 1];
    return is_good ? PAWL_OK
                   : pawli_fail(err, PAWL_INVALID,
                                "id is \"%s\"; it must be 1 to %d letters, digits, `_` and `-`",
                                show(id, shown), PAWL_EVENT_ID_MAX);
}

/* ---- headers */

/* Whether a name begins with `head`, which is in small letters. */
static bool begins_with(const pawl_header *header, const char *head)
{
    size_t at = 0;
    for (; head[at] != '\0' && at < header->name_len; at++) {
        char byte = header->name[at];
        byte = byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
        if (byte != head[at])
            return false;
    }
    return head[at] == '\0';
}

pawl_code pawli_event_headers_check(const char *headers, pawl_err *err)
{
    pawl_code rc = pawli_headers_check(headers, err);
    pawl_header header;
    for (const char *at = headers; rc == PAWL_OK && pawl_headers_next(&at, &header);)
        if (begins_with(&header, RESERVED))
            rc = pawli_fail(err, PAWL_INVALID,
                            "headers: \"%.*s\" begins with " RESERVED ", which is Pawl's own",
                            (int)header.name_len, header.name);
    return rc;
}

/* A second one would be read in place of ours, or let the receiver see another message. */
static bool is_of_delivery(const pawl_header *header)
{
    static const char *const heads[] = {RESERVED, "webhook-", "ce-"};
    static const char *const names[] = {
        "connection", "content-length", "content-type",
        "expect",     "host",           "keep-alive",
        "te",         "traceparent",    "proxy-connection",
        "trailer",    "upgrade",        "transfer-encoding",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (begins_with(header, heads[i]))
            return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == header->name_len && begins_with(header, names[i]))
            return true;
    return false;
}

pawl_code pawli_endpoint_headers_check(const char *headers, pawl_err *err)
{
    pawl_code rc = pawli_headers_check(headers, err);
    pawl_header header;
    for (const char *at = headers; rc == PAWL_OK && pawl_headers_next(&at, &header);)
        if (is_of_delivery(&header))
            rc = pawli_fail(err, PAWL_INVALID,
                            "headers: \"%.*s\" is set by the delivery itself; allowed: others",
                            (int)header.name_len, header.name);
    return rc;
}

static bool put_line(struct pawli_buffer *to, const char *name, const char *value)
{
    return pawli_buffer_put(to, name, strlen(name)) && pawli_buffer_put(to, ": ", 2) &&
           pawli_buffer_put(to, value, strlen(value)) && pawli_buffer_put(to, "\n", 1);
}

pawl_code pawli_event_headers_put(const pawl_publish_row *row, const char *id,
                                  struct pawli_buffer *to, pawl_err *err)
{
    size_t before = to->len;
    const char *own = row->headers != NULL ? row->headers : "";
    bool is_put = put_line(to, KEY_ID, id) && put_line(to, KEY_TYPE, row->type);
    if (is_put && row->ordering_key != NULL && row->ordering_key[0] != '\0')
        is_put = put_line(to, KEY_KEY, row->ordering_key);
    if (is_put && row->time.us != 0) {
        char time[TIME_SIZE];
        (void)snprintf(time, sizeof(time), "%lld", (long long)row->time.us); /* it fits */
        is_put = put_line(to, KEY_TIME, time);
    }
    if (is_put && pawli_buffer_put(to, own, strlen(own) + 1))
        return PAWL_OK;
    to->len = before;
    return pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code pawli_event_headers_again(const char *headers, pawl_wall published_at,
                                    struct pawli_buffer *to, pawl_err *err)
{
    size_t before = to->len;
    size_t len = 0;
    char time[TIME_SIZE];
    bool has_time = pawl_headers_find(headers, KEY_TIME, &len) != NULL;
    (void)snprintf(time, sizeof(time), "%lld", (long long)published_at.us); /* it fits */
    bool is_put = pawli_buffer_put(to, headers, strlen(headers)) &&
                  (has_time || put_line(to, KEY_TIME, time)) && pawli_buffer_put(to, "", 1);
    if (is_put && !has_time &&
        pawli_headers_check((const char *)to->bytes + before, NULL) != PAWL_OK) {
        to->len = before;
        is_put = pawli_buffer_put(to, headers, strlen(headers) + 1);
    }
    if (is_put)
        return PAWL_OK;
    to->len = before;
    return pawli_fail_plain(err, PAWL_NO_MEMORY);
}

/* ---- ids */

pawl_id pawli_event_job_id(const struct pawli_publish_event *event, const pawl_enqueue_row *row,
                           int64_t shards)
{
    struct pawli_sha256 hash;
    uint8_t digest[PAWLI_SHA256_LEN];
    pawli_sha256_init(&hash);
    /* The NUL behind the queue keeps the two apart. */
    pawli_sha256_add(&hash, row->queue, strlen(row->queue) + 1);
    pawli_sha256_add(&hash, event->id, strlen(event->id));
    if (event->replay != NULL) { /* and the NUL behind the id likewise */
        pawli_sha256_add(&hash, "", 1);
        pawli_sha256_add(&hash, event->replay, strlen(event->replay));
    }
    pawli_sha256_end(&hash, digest);
    bool is_minted = event->is_minted && event->replay == NULL;

    pawl_id id;
    memcpy(id.bytes, digest, sizeof(id.bytes));
    pawl_id minted;
    if (is_minted && pawl_id_parse(event->id, &minted, NULL) == PAWL_OK)
        memcpy(id.bytes, minted.bytes, TIME_BYTES); /* near each other in the index */
    uint8_t version = is_minted ? 0x70 : 0x80;
    id.bytes[6] = version;
    id.bytes[7] = 0;
    id.bytes[8] = (uint8_t)(0x80 | (id.bytes[8] & 0x3f));
    struct pawli_shard_key key = pawli_shard_key_of(row);
    int64_t shard = pawli_shard_of(&key, &id, shards);
    id.bytes[6] = (uint8_t)(version | shard >> 8);
    id.bytes[7] = (uint8_t)(shard & 0xff);
    assert(pawli_id_shard(&id, shards) == shard);
    return id;
}

/* ---- reading */

/* Copy a header's value; empty where there is none, or where it does not fit. */
static void read_value(const char *headers, const char *name, char *to, size_t to_size)
{
    size_t len = 0;
    const char *value = pawl_headers_find(headers, name, &len);
    if (value == NULL || len >= to_size)
        len = 0;
    if (len > 0)
        memcpy(to, value, len);
    to[len] = '\0';
}

/* One that does not fit is not told as if there were none: that would say JSON. */
static void read_content_type(const char *headers, char *to, size_t to_size)
{
    size_t len = 0;
    const char *value = pawl_headers_find(headers, "content-type", &len);
    read_value(headers, "content-type", to, to_size);
    if (value != NULL && len >= to_size)
        (void)pawli_text_copy(to, to_size, PAWLI_EVENT_BYTES_TYPE); /* fits */
}

/* Digits only; 0 where it is anything else, or too large. */
static int64_t read_number(const char *text)
{
    int64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        int digit = *text - '0';
        if (value > (INT64_MAX - digit) / 10)
            return 0;
        value = value * 10 + digit;
    }
    return *text == '\0' ? value : 0;
}

pawl_code pawli_event_read(const pawl_job *job, struct pawli_event_info *ret_info, pawl_err *err)
{
    char time[TIME_SIZE];
    struct pawli_event_info info;
    read_value(job->headers, KEY_ID, info.id, sizeof(info.id));
    read_value(job->headers, KEY_TYPE, info.type, sizeof(info.type));
    read_value(job->headers, KEY_KEY, info.key, sizeof(info.key));
    read_content_type(job->headers, info.content_type, sizeof(info.content_type));
    read_value(job->headers, "traceparent", info.traceparent, sizeof(info.traceparent));
    read_value(job->headers, KEY_TIME, time, sizeof(time));
    info.time.us = read_number(time);
    if (info.time.us == 0 || info.time.us > PAWLI_EVENT_TIME_MAX_US)
        info.time = job->created_at;
    if (pawli_event_id_check(info.id, NULL) != PAWL_OK ||
        pawli_topic_check(info.type, NULL) != PAWL_OK)
        return pawli_fail(err, PAWL_INVALID,
                          "the job has no good header " KEY_ID " or " KEY_TYPE
                          ": no event was published as it");
    *ret_info = info;
    return PAWL_OK;
}
