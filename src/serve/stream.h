/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stream.h - the latest changes of jobs, for those who listen: a window of so many, from which each
 * listener reads at its own pace. Who falls behind it is told that changes were lost.
 */
#ifndef PAWLI_SERVE_STREAM_H
#define PAWLI_SERVE_STREAM_H

#include "serve/access.h"

#include "base/buffer.h"
#include "pawl/pawl.h"

#define PAWLI_STREAM_WINDOW   8192 /* changes that are remembered */
#define PAWLI_STREAM_ASKS_MAX 1024 /* jobs of which somebody is to find out what became of them */

#define PAWLI_STATE_DISCARDED "Discarded"

enum pawli_change_kind {
    PAWLI_CHANGE_JOB = 0, /* a job is in another state */
    PAWLI_CHANGE_QUEUE,   /* jobs of a queue are; which ones is not known */
    PAWLI_CHANGE_LOST     /* something may have changed, and nobody knows what */
};

/* A change. */
struct pawli_change {
    enum pawli_change_kind kind;
    pawl_id job;
    pawl_wall at;
    char
        queue[PAWL_NAME_MAX + 1]; /* of a job: empty where whoever made the change named it alone */
    char state[16];               /* "InFlight"; "Discarded" */
};

/* Where a listener stands, and what it wants to hear of. */
struct pawli_cursor {
    uint64_t next;                 /* the number of the change to be told next */
    bool is_behind;                /* what came before is not known any more */
    char queue[PAWL_NAME_MAX + 1]; /* empty: of all */
    struct pawli_grant grant;      /* of its token */
};

struct pawli_stream;

/* `epoch` tells the numbers of one server from those of another. NULL: memory ran out. */
struct pawli_stream *pawli_stream_new(uint64_t epoch);
void pawli_stream_free(struct pawli_stream *stream); /* accepts NULL */

/* From every thread; short. `wake` is called, without a lock, when there is something to read. A
 * change of a job without its queue is told with the one that it was last told of in; where there
 * was none, the job is one to be asked after. */
void pawli_stream_on_change(struct pawli_stream *stream, void (*wake)(void *user), void *user);
void pawli_stream_tell(struct pawli_stream *stream, const struct pawli_change *change);

/* Somebody is to find out what became of a job: see pawli_stream_ask_after(). */
void pawli_stream_ask(struct pawli_stream *stream, const pawl_id *job);

/*
 * For the one who looks into the store for what others have changed.
 *
 * The stream is watched from the first listener's pawli_stream_seek() on, until whoever watches it
 * gives up: who goes on behind an earlier change later hears that something was lost. While nobody
 * watches, nothing is to be asked after.
 */
void pawli_stream_watch(struct pawli_stream *stream); /* again, where somebody had given up */
void pawli_stream_unwatch(struct pawli_stream *stream);

/* The number of the next change: what is told from here on is newer than what is read now. */
uint64_t pawli_stream_mark(struct pawli_stream *stream);

/* Up to `ids_max` jobs to look at: those to be asked after, then some of those that were told of
 * and are live by it, in turn. */
size_t pawli_stream_ask_after(struct pawli_stream *stream, pawl_id *ret_ids, size_t ids_max);

/* Tell what was read in the store after `mark`: of each job only where it is in another state than
 * was told last, and nothing was told of it since the mark. */
void pawli_stream_tell_seen(struct pawli_stream *stream, uint64_t mark,
                            const struct pawli_change *changes, size_t count);

/* Stand behind the change that `last_id` names, as a listener got it; NULL or empty: behind the
 * latest. One that is not known, or was forgotten, makes the cursor be behind. */
void pawli_stream_seek(struct pawli_stream *stream, const char *last_id,
                       struct pawli_cursor *cursor);

/* Where it stands now, as the event of a stream (text/event-stream). False: memory ran out. */
bool pawli_stream_hello(struct pawli_stream *stream, const struct pawli_cursor *cursor,
                        struct pawli_buffer *to);

/* Add the next changes, up to about `bytes_max`, as events. False: memory ran out. */
bool pawli_stream_read(struct pawli_stream *stream, struct pawli_cursor *cursor, size_t bytes_max,
                       struct pawli_buffer *to);

#endif
