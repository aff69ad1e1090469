/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pen.h - how a process that may be killed at any moment keeps its history.
 *
 * Each call that may change something is written down twice: before it is made, as a call of which
 * no answer is known, and after it, by the trace store. The first note is taken back when the
 * second one has left the process. So whatever a process had under way when it was killed is known,
 * and whatever it had been told as well. What has left a process by write() outlives it.
 */
#ifndef PAWLT_CRASH_PEN_H
#define PAWLT_CRASH_PEN_H

#include "pawl/pawl.h"
#include "store/store.h"
#include "store/trace.h"

#define PEN_PATH_MAX 200
#define PEN_NAME_MAX 32
#define PEN_ROWS_MAX 64 /* rows of a call */

struct pen {
    char actor[PEN_NAME_MAX];
    pawl_store
        *store; /* what is used: the traced one, which writes down what is under way; owned */
    pawl_store *inner;                     /* the traced one's */
    const struct pawli_store_ops *passing; /* the traced one's own verbs */
    struct pawli_store_ops ops;            /* the same, with those that are written down */
    FILE *history;
    struct pawli_trace_writer *writer;
    struct pawli_trace_writer *pending; /* has no file */
    int pending_fd;
    int acks_fd;
    bool is_of_store; /* ends with its store */
};

/* The files of the process `actor` in a folder. Ends the process where they cannot be made. */
void pen_open(struct pen *pen, const char *folder, const char *actor);

/* The store that it writes about: takes `inner`. */
void pen_take_store(struct pen *pen, pawl_store *inner);

void pen_close(struct pen *pen);

void pen_note(struct pen *pen, const struct pawli_trace_note *note);

/* A producer has been told that its job is there: written before anything else is done. */
void pen_ack(struct pen *pen, const pawl_id *id);

/* A store with a pen of its own, for whoever closes the one and does not know of the other. Takes
 * `inner`. */
pawl_store *pen_store(const char *folder, const char *actor, pawl_store *inner);

#endif
