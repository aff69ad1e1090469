/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stream.c - which hints of a stream of enqueues may be left out.
 * Owns:  when the last hints of a queue were decided on and sent, and what they said.
 * Never: sends one; reads a clock.
 * Locks: stream.mutex, for some comparisons.
 */
#include "store/stream.h"

#include "base/text.h"

#include <assert.h>
#include <string.h>

#define US_PER_MS 1000

void pawli_stream_init(struct pawli_stream *stream)
{
    memset(stream->slots, 0, sizeof(stream->slots));
    (void)pthread_mutex_init(&stream->mutex, NULL); /* cannot fail: a plain one */
}

void pawli_stream_clear(struct pawli_stream *stream)
{
    (void)pthread_mutex_destroy(&stream->mutex); /* nobody holds it */
}

/* Queues that share a slot take it from each other, and have all their hints. */
static struct pawli_stream_slot *slot_of(struct pawli_stream *stream, const char *queue)
{
    size_t hash = 5381;
    for (const char *at = queue; *at != '\0'; at++)
        hash = hash * 33 + (unsigned char)*at;
    return &stream->slots[hash % PAWLI_STREAM_SLOTS];
}

static bool is_within(int64_t from_us, int64_t ms, pawl_mono now)
{
    return now.us - from_us < ms * US_PER_MS;
}

enum pawli_hint pawli_stream_hint(struct pawli_stream *stream, const char *queue, pawl_mono now)
{
    assert(queue[0] != '\0');
    enum pawli_hint hint = PAWLI_HINT_PLAIN;
    struct pawli_stream_slot *slot = slot_of(stream, queue);
    (void)pthread_mutex_lock(&stream->mutex); /* cannot fail */
    if (strcmp(slot->queue, queue) != 0) {
        *slot = (struct pawli_stream_slot){.has_sent = false};
        (void)pawli_text_copy(slot->queue, sizeof(slot->queue), queue); /* it fits */
    } else if (is_within(slot->put_us, PAWLI_STREAM_GAP_MS, now)) {
        bool is_left = slot->is_more && is_within(slot->put_us, PAWLI_STREAM_RENEW_MS, now);
        hint = is_left ? PAWLI_HINT_NONE : PAWLI_HINT_MORE;
    }
    if (hint != PAWLI_HINT_NONE) {
        slot->put_us = now.us;
        slot->is_more = hint == PAWLI_HINT_MORE;
    }
    (void)pthread_mutex_unlock(&stream->mutex);
    return hint;
}

void pawli_stream_sent(struct pawli_stream *stream, const char *queue, pawl_mono put_at)
{
    struct pawli_stream_slot *slot = slot_of(stream, queue);
    (void)pthread_mutex_lock(&stream->mutex);
    if (strcmp(slot->queue, queue) == 0 && (!slot->has_sent || slot->sent_us < put_at.us)) {
        slot->has_sent = true;
        slot->sent_us = put_at.us;
    }
    (void)pthread_mutex_unlock(&stream->mutex);
}

bool pawli_stream_stands(struct pawli_stream *stream, const char *queue, pawl_mono now)
{
    struct pawli_stream_slot *slot = slot_of(stream, queue);
    (void)pthread_mutex_lock(&stream->mutex);
    bool does = strcmp(slot->queue, queue) == 0 && slot->has_sent &&
                is_within(slot->sent_us, PAWLI_STREAM_GAP_MS, now);
    (void)pthread_mutex_unlock(&stream->mutex);
    return does;
}
