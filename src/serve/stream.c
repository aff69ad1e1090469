/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stream.c - the latest changes of jobs, for those who listen.
 * Owns:  the window; the numbers of changes; which are news; how they are written as events.
 * Never: waits for a listener; tells one of a queue that its token is not for, or of a job without
 *        its queue.
 * Locks: stream.mutex, held over nothing that blocks.
 */
#include "serve/stream.h"

#include "serve/json_write.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX            48 /* bytes in the id of an event, with the closing NUL */
#define NUMBER_DIGITS_MAX 19

#define BUCKETS PAWLI_STREAM_WINDOW
#define NOBODY  UINT64_MAX

/* A change that is remembered. */
struct told {
    struct pawli_change change;
    uint64_t number;
    bool is_seen;   /* it was read in the store: whoever made the change may tell it yet */
    uint64_t older; /* the number of the one before it in its bucket; NOBODY: none */
};

struct pawli_stream {
    uint64_t epoch;
    void (*wake)(void *user); /* this and the next are set before anybody tells */
    void *user;
    pthread_mutex_t mutex; /* over what follows */
    uint64_t count;        /* changes so far: the number of the next one */
    uint64_t looked_at;    /* the number of the one whose job is to be looked at next */
    bool is_watched;
    size_t asks_count;
    pawl_id asks[PAWLI_STREAM_ASKS_MAX];
    uint64_t newest[BUCKETS]; /* numbers of changes of jobs: lead to the last one of a job */
    struct told window[PAWLI_STREAM_WINDOW];
};

struct pawli_stream *pawli_stream_new(uint64_t epoch)
{
    struct pawli_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL || pthread_mutex_init(&stream->mutex, NULL) != 0) {
        free(stream);
        return NULL;
    }
    stream->epoch = epoch;
    for (size_t i = 0; i < BUCKETS; i++)
        stream->newest[i] = NOBODY;
    return stream;
}

void pawli_stream_free(struct pawli_stream *stream)
{
    if (stream == NULL)
        return;
    (void)pthread_mutex_destroy(&stream->mutex); /* nobody holds it */
    free(stream);
}

void pawli_stream_on_change(struct pawli_stream *stream, void (*wake)(void *user), void *user)
{
    stream->wake = wake;
    stream->user = user;
}

static uint64_t oldest(const struct pawli_stream *stream)
{
    return stream->count > PAWLI_STREAM_WINDOW ? stream->count - PAWLI_STREAM_WINDOW : 0;
}

/* ---------------------------------------------------------------- telling */

static size_t bucket_of(const struct pawli_stream *stream, const pawl_id *job)
{
    uint64_t hash = stream->epoch;
    for (size_t i = 0; i < sizeof(job->bytes); i++)
        hash = (hash ^ job->bytes[i]) * UINT64_C(0x100000001b3);
    return (size_t)((hash ^ hash >> 32) % BUCKETS);
}

/* With the lock held: what was last told of a job; NULL: nothing that is remembered. */
static const struct told *last_of(const struct pawli_stream *stream, const pawl_id *job)
{
    uint64_t number = stream->newest[bucket_of(stream, job)];
    while (number != NOBODY && number >= oldest(stream)) {
        const struct told *told = &stream->window[number % PAWLI_STREAM_WINDOW];
        if (pawl_id_compare(&told->change.job, job) == 0)
            return told;
        number = told->older;
    }
    return NULL;
}

/* With the lock held, here and below. */
static void put(struct pawli_stream *stream, const struct pawli_change *change, bool is_seen)
{
    struct told *told = &stream->window[stream->count % PAWLI_STREAM_WINDOW];
    *told = (struct told){
        .change = *change, .number = stream->count, .is_seen = is_seen, .older = NOBODY};
    if (change->kind == PAWLI_CHANGE_JOB) {
        uint64_t *newest = &stream->newest[bucket_of(stream, &change->job)];
        told->older = *newest;
        *newest = stream->count;
    }
    stream->count++;
}

static void put_lost(struct pawli_stream *stream)
{
    put(stream, &(struct pawli_change){.kind = PAWLI_CHANGE_LOST}, false);
}

static void ask(struct pawli_stream *stream, const pawl_id *job)
{
    if (!stream->is_watched)
        return; /* who listened before hears that something was lost */
    if (stream->asks_count < PAWLI_STREAM_ASKS_MAX)
        stream->asks[stream->asks_count++] = *job;
    else
        put_lost(stream);
}

/* A job is in another state. */
static void put_job(struct pawli_stream *stream, const struct pawli_change *change)
{
    struct pawli_change whole = *change;
    const struct told *last = last_of(stream, &change->job);
    if (last != NULL && last->is_seen && strcmp(last->change.state, change->state) == 0)
        return; /* it was seen in the store before it was told here */
    if (last != NULL && whole.queue[0] == '\0')
        memcpy(whole.queue, last->change.queue, sizeof(whole.queue));
    if (whole.queue[0] != '\0')
        put(stream, &whole, false);
    else
        ask(stream, &whole.job);
}

void pawli_stream_tell(struct pawli_stream *stream, const struct pawli_change *change)
{
    (void)pthread_mutex_lock(&stream->mutex); /* here and below: cannot fail, it is plain */
    if (change->kind == PAWLI_CHANGE_JOB)
        put_job(stream, change);
    else
        put(stream, change, false);
    (void)pthread_mutex_unlock(&stream->mutex);
    if (stream->wake != NULL)
        stream->wake(stream->user);
}

void pawli_stream_ask(struct pawli_stream *stream, const pawl_id *job)
{
    (void)pthread_mutex_lock(&stream->mutex);
    ask(stream, job);
    (void)pthread_mutex_unlock(&stream->mutex);
}

/* ---------------------------------------------------------------- what others have changed */

void pawli_stream_watch(struct pawli_stream *stream)
{
    (void)pthread_mutex_lock(&stream->mutex);
    if (!stream->is_watched)
        put_lost(stream);
    stream->is_watched = true;
    (void)pthread_mutex_unlock(&stream->mutex);
}

void pawli_stream_unwatch(struct pawli_stream *stream)
{
    (void)pthread_mutex_lock(&stream->mutex);
    stream->is_watched = false;
    stream->asks_count = 0;
    put_lost(stream);
    (void)pthread_mutex_unlock(&stream->mutex);
}

uint64_t pawli_stream_mark(struct pawli_stream *stream)
{
    (void)pthread_mutex_lock(&stream->mutex);
    uint64_t mark = stream->count;
    (void)pthread_mutex_unlock(&stream->mutex);
    return mark;
}

static bool is_live(const struct pawli_change *change)
{
    return strcmp(change->state, pawl_state_name(PAWL_READY)) == 0 ||
           strcmp(change->state, pawl_state_name(PAWL_IN_FLIGHT)) == 0;
}

size_t pawli_stream_ask_after(struct pawli_stream *stream, pawl_id *ret_ids, size_t ids_max)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&stream->mutex);
    while (count < ids_max && stream->asks_count > 0)
        ret_ids[count++] = stream->asks[--stream->asks_count];
    for (size_t i = 0; i < PAWLI_STREAM_WINDOW && count < ids_max; i++) {
        if (stream->looked_at >= stream->count || stream->looked_at < oldest(stream))
            stream->looked_at = oldest(stream);
        if (stream->looked_at >= stream->count)
            break; /* nothing was told yet */
        const struct told *told = &stream->window[stream->looked_at++ % PAWLI_STREAM_WINDOW];
        if (told->change.kind == PAWLI_CHANGE_JOB && is_live(&told->change) &&
            last_of(stream, &told->change.job) == told)
            ret_ids[count++] = told->change.job;
    }
    (void)pthread_mutex_unlock(&stream->mutex);
    return count;
}

void pawli_stream_tell_seen(struct pawli_stream *stream, uint64_t mark,
                            const struct pawli_change *changes, size_t count)
{
    (void)pthread_mutex_lock(&stream->mutex);
    uint64_t before = stream->count;
    for (size_t i = 0; i < count; i++) {
        const struct told *last = last_of(stream, &changes[i].job);
        bool is_news = last == NULL ||
                       (last->number < mark && strcmp(last->change.state, changes[i].state) != 0);
        if (changes[i].kind != PAWLI_CHANGE_JOB || is_news)
            put(stream, &changes[i], true);
    }
    bool is_wake = stream->count > before && stream->wake != NULL;
    (void)pthread_mutex_unlock(&stream->mutex);
    if (is_wake)
        stream->wake(stream->user);
}

/* ---------------------------------------------------------------- listening */

/* The number in an id of this stream; false: it is not one of its ids. */
static bool read_id(const struct pawli_stream *stream, const char *id, uint64_t *ret_number)
{
    char ours[ID_MAX];
    int len = snprintf(ours, sizeof(ours), "%016" PRIx64 "-", stream->epoch); /* it fits */
    if (strncmp(id, ours, (size_t)len) != 0)
        return false;
    const char *digits = id + len;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > NUMBER_DIGITS_MAX || digits[count] != '\0')
        return false;
    *ret_number = 0;
    for (size_t i = 0; i < count; i++)
        *ret_number = *ret_number * 10 + (uint64_t)(digits[i] - '0');
    return true;
}

void pawli_stream_seek(struct pawli_stream *stream, const char *last_id,
                       struct pawli_cursor *cursor)
{
    uint64_t number = 0;
    bool is_asked = last_id != NULL && last_id[0] != '\0';
    bool is_read = is_asked && read_id(stream, last_id, &number);
    (void)pthread_mutex_lock(&stream->mutex);
    bool is_known = is_read && number <= stream->count && number >= oldest(stream);
    cursor->next = is_known ? number : stream->count;
    cursor->is_behind = is_asked && !is_known;
    stream->is_watched = true;
    (void)pthread_mutex_unlock(&stream->mutex);
}

/* ---------------------------------------------------------------- events */

static void put_line(struct pawli_writer *writer, const char *text)
{
    if (!writer->has_failed)
        writer->has_failed = !pawli_buffer_put(writer->to, text, strlen(text));
}

/* The head of an event: its id says where to go on behind it. */
static void begin_event(const struct pawli_stream *stream, struct pawli_writer *writer,
                        const char *kind, uint64_t next)
{
    char head[ID_MAX + 64];
    (void)snprintf(head, sizeof(head),
                   "id: %016" PRIx64 "-%" PRIu64 "\nevent: %s\ndata: ", stream->epoch, next,
                   kind); /* fits */
    writer->is_behind = false;
    put_line(writer, head);
}

static void put_change(const struct pawli_stream *stream, struct pawli_writer *writer,
                       const struct pawli_change *change, uint64_t next)
{
    static const char *const kinds[] = {
        [PAWLI_CHANGE_JOB] = "job", [PAWLI_CHANGE_QUEUE] = "queue", [PAWLI_CHANGE_LOST] = "lost"};
    begin_event(stream, writer, kinds[change->kind], next);
    pawli_put_object(writer, NULL);
    if (change->kind == PAWLI_CHANGE_JOB)
        pawli_put_id(writer, "id", &change->job);
    if (change->kind != PAWLI_CHANGE_LOST)
        pawli_put_text(writer, "queue", change->queue);
    if (change->kind == PAWLI_CHANGE_JOB)
        pawli_put_text(writer, "state", change->state);
    if (change->kind != PAWLI_CHANGE_LOST)
        pawli_put_time(writer, "at", change->at);
    pawli_put_object_end(writer);
    put_line(writer, "\n\n");
}

bool pawli_stream_hello(struct pawli_stream *stream, const struct pawli_cursor *cursor,
                        struct pawli_buffer *to)
{
    struct pawli_writer writer;
    pawli_writer_init(&writer, to);
    begin_event(stream, &writer, cursor->is_behind ? "lost" : "hello", cursor->next);
    put_line(&writer, "{}\n\n");
    return !writer.has_failed;
}

static bool is_wanted(const struct pawli_cursor *cursor, const struct pawli_change *change)
{
    if (change->kind == PAWLI_CHANGE_LOST)
        return true;
    if (cursor->queue[0] != '\0' && strcmp(cursor->queue, change->queue) != 0)
        return false;
    return pawli_grant_has_queue(&cursor->grant, change->queue);
}

bool pawli_stream_read(struct pawli_stream *stream, struct pawli_cursor *cursor, size_t bytes_max,
                       struct pawli_buffer *to)
{
    struct pawli_writer writer;
    size_t before = to->len;
    pawli_writer_init(&writer, to);
    (void)pthread_mutex_lock(&stream->mutex);
    if (cursor->next < oldest(stream)) { /* it was too slow: what it has missed is gone */
        cursor->next = oldest(stream);
        begin_event(stream, &writer, "lost", cursor->next);
        put_line(&writer, "{}\n\n");
    }
    while (cursor->next < stream->count && to->len - before < bytes_max && !writer.has_failed) {
        const struct told *told = &stream->window[cursor->next % PAWLI_STREAM_WINDOW];
        cursor->next++;
        if (is_wanted(cursor, &told->change))
            put_change(stream, &writer, &told->change, cursor->next);
    }
    (void)pthread_mutex_unlock(&stream->mutex);
    return !writer.has_failed;
}
