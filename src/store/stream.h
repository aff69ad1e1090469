/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stream.h - which hints of a stream of enqueues may be left out.
 *
 * A hint says that there may be work, and costs about as much as an enqueue of one job. Of hints
 * that follow each other closely, one may stand for the others, if whoever hears it looks once more
 * when they have stopped coming:
 *  S1  A hint that says "more" stands for what is committed within PAWLI_STREAM_GAP_MS of the time
 *      when it was decided on. Who hears it looks at once, and again when that time has passed
 *      since he heard it, which was later.
 *  S2  It stands for nothing before the call that it follows is done: until then it has not been
 *      sent, and may never be.
 *  S3  So whoever left out a hint asks again when his own call is done, and sends one where none
 *      stands for it.
 *  S4  Where some come every millisecond or two, the next hint is decided on before the last has
 *      ceased to stand, so that hardly anybody has to send one after all.
 * Jobs that come at a slower pace each have a hint of their own, which asks for no second look.
 */
#ifndef PAWLI_STORE_STREAM_H
#define PAWLI_STORE_STREAM_H

#include "pawl/pawl.h"

#include <pthread.h>

#define PAWLI_STREAM_GAP_MS   6
#define PAWLI_STREAM_RENEW_MS 4  /* S4 */
#define PAWLI_STREAM_SLOTS    16 /* queues whose hints are remembered at most */

enum pawli_hint {
    PAWLI_HINT_NONE,
    PAWLI_HINT_PLAIN,
    PAWLI_HINT_MORE /* S1 */
};

/* The hints of all handles that share it. */
struct pawli_stream {
    pthread_mutex_t mutex;
    struct pawli_stream_slot {
        char queue[PAWL_NAME_MAX + 1]; /* empty: none yet */
        int64_t put_us;                /* when its last hint was decided on */
        bool is_more;                  /* whether that says so */
        bool has_sent;
        int64_t sent_us;         /* S2: the same of the last one that said so and was sent */
    } slots[PAWLI_STREAM_SLOTS]; /* mutex */
};

void pawli_stream_init(struct pawli_stream *stream);
void pawli_stream_clear(struct pawli_stream *stream);

/* What to send behind a call that is about to put jobs into `queue`, by a clock that never goes
 * back. */
enum pawli_hint pawli_stream_hint(struct pawli_stream *stream, const char *queue, pawl_mono now);

/* A hint that says "more", and was decided on at `put_at`, is sent. */
void pawli_stream_sent(struct pawli_stream *stream, const char *queue, pawl_mono put_at);

/* Whether a hint that was sent stands for what is committed `now`. */
bool pawli_stream_stands(struct pawli_stream *stream, const char *queue, pawl_mono now);

#endif
