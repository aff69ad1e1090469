/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace.h - a history of what was asked of a store and what it answered, and of what workers did
 * with it. The checker reads histories; so does the printer.
 *
 * A history is a header and a run of records of varints: compact, and readable up to the last whole
 * record when its writer died. It holds no payload and no token: a token is replaced by a 64-bit
 * digest of it.
 */
#ifndef PAWLI_STORE_TRACE_H
#define PAWLI_STORE_TRACE_H

#include "pawl/pawl.h"

#include <stdio.h>

/* ---------------------------------------------------------------- records */

/* Verbs that are recorded as calls. Reading verbs are recorded only where they show a final state:
 * ATTEMPTS, and LIST without a filter. */
enum pawli_trace_verb {
    PAWLI_VERB_ENQUEUE = 1,
    PAWLI_VERB_CLAIM,
    PAWLI_VERB_MINE,
    PAWLI_VERB_RENEW,
    PAWLI_VERB_SETTLE,
    PAWLI_VERB_RELEASE,
    PAWLI_VERB_REAP,
    PAWLI_VERB_PRUNE,
    PAWLI_VERB_CANCEL,
    PAWLI_VERB_REDRIVE,
    PAWLI_VERB_DISCARD,
    PAWLI_VERB_LIST,
    PAWLI_VERB_ATTEMPTS,
    PAWLI_VERB_QUEUE_SET,
    PAWLI_VERB_QUEUE_PAUSE,
    PAWLI_VERBS
};

/* What happened beside the store: told by whoever drives workers, or breaks things. */
enum pawli_trace_note_kind {
    PAWLI_NOTE_WORKER_UP = 1,  /* actor started, or has new settings; a = heartbeat setting in ms or
                                  0 where derived; b = poll_ms; c = grace_ms */
    PAWLI_NOTE_WORKER_CRASH,   /* actor died without a word */
    PAWLI_NOTE_WORKER_STOPPED, /* actor shut down in order; a = jobs left to the reaper */
    PAWLI_NOTE_PAUSE_BEGIN,    /* actor stands still */
    PAWLI_NOTE_PAUSE_END,
    PAWLI_NOTE_LINK_FAULT, /* a request or reply of actor was dropped, duplicated or held up for
                              long; a = the verb that it hit (enum pawli_trace_verb), 0 where that
                              is not known */
    PAWLI_NOTE_STORE_DOWN, /* the store answers nobody from here */
    PAWLI_NOTE_STORE_UP,
    PAWLI_NOTE_STORE_JUMP, /* the store's clock jumped; a = by how many us */
    PAWLI_NOTE_FAULTS_OFF, /* from here on nothing is broken on purpose */
    PAWLI_NOTE_ACKED,      /* the producer has the OK for `job` in hands */
    PAWLI_NOTE_CONFIRMED,  /* actor was told that it holds job/version (a claim's or a renewal's
                              answer, not mine's): a = us at which that request was sent, on the
                              clock that times the records; b = lease_ms */
    PAWLI_NOTE_STEP,    /* actor looked at its clock (recorded for the first step after a pause) */
    PAWLI_NOTE_START,   /* actor starts the handler of job/version */
    PAWLI_NOTE_SEND,    /* the handler of job/version does something that others see */
    PAWLI_NOTE_ABORT,   /* actor tells the handler to stop; a = why */
    PAWLI_NOTE_GIVE_UP, /* actor gives the handler up; a = why */
    PAWLI_NOTE_ENDED,   /* the handler of job/version ended; a = its result */
    PAWLI_NOTE_SEND_SETTLE,  /* actor sends the settle of job/version; a = action */
    PAWLI_NOTE_SEND_RELEASE, /* actor sends the release of job/version */
    PAWLI_NOTE_OVER,         /* actor is done with job/version; a = why */
    PAWLI_NOTE_SHUTDOWN,     /* actor was told to shut down; a = timeout_ms */
    PAWLI_NOTES
};

struct pawli_trace_note {
    enum pawli_trace_note_kind kind;
    const char *actor; /* "" where it is nobody in particular */
    pawl_id job;       /* nil where the note has none */
    int64_t version;
    int64_t a, b, c;
};

/* One row of a call: what was asked about one job and what was answered. Fields that the verb does
 * not have are zero. */
struct pawli_trace_row {
    pawl_id job;           /* for DUPLICATE: the row's own id; the holder is not recorded */
    uint64_t token_digest; /* shown (RENEW, SETTLE, RELEASE) or given (CLAIM, MINE) */
    int64_t version;
    pawl_code code; /* the verdict; PAWL_OK for rows that have none of their own; the call's code
                       where the call as a whole failed */
    pawl_settle_action action; /* SETTLE: asked */
    pawl_state state;          /* SETTLE, REAP, CANCEL, REDRIVE, DISCARD: became; LIST: is */
    pawl_outcome outcome;      /* ATTEMPTS */
    pawl_reason reason;        /* REAP, LIST, ATTEMPTS; SETTLE: asked */
    pawl_ended_by ended_by;    /* ATTEMPTS */
    int64_t attempt_no;        /* SETTLE, ATTEMPTS */
    int64_t retries, lost_leases, attempts; /* CLAIM, MINE, LIST */
    int64_t max_retries;                    /* CLAIM, MINE, LIST; ENQUEUE, QUEUE_SET: asked */
    int64_t max_lost_leases;                /* QUEUE_SET */
    int64_t backoff_base_ms;                /* ENQUEUE, QUEUE_SET: asked */
    int64_t backoff_max_ms;                 /* likewise */
    pawl_wall claimed_at;                   /* CLAIM, MINE, ATTEMPTS (started_at) */
    pawl_wall expires_at;                   /* CLAIM, MINE, RENEW */
    pawl_wall run_until;                    /* CLAIM, MINE */
    pawl_wall finished_at;                  /* LIST, ATTEMPTS */
    pawl_wall due_at;                       /* SETTLE, REAP, CLAIM, LIST: as given */
    pawl_wall start_by;                     /* CLAIM, LIST */
    int64_t delay_ms;                       /* ENQUEUE, SETTLE: asked */
    int64_t start_within_ms;                /* ENQUEUE: asked */
    int64_t lease_ms;                       /* CLAIM, MINE, RENEW, QUEUE_SET */
    int64_t timeout_ms;                     /* CLAIM, MINE */
    int64_t overdue_ms;                     /* REAP */
    bool is_unstarted;                      /* RENEW */
    bool is_cancel_asked;                   /* CLAIM, MINE, LIST */
    const char *queue;        /* ENQUEUE, CLAIM, REAP, LIST; borrowed until the reader is freed */
    const char *worker;       /* REAP, ATTEMPTS, LIST: the holder; borrowed likewise */
    const char *ordering_key; /* ENQUEUE, CLAIM, MINE, LIST; borrowed likewise */
    int64_t fence;            /* CLAIM, MINE, LIST */
    int64_t max_in_flight;    /* QUEUE_SET */
};

enum pawli_trace_record_kind {
    PAWLI_RECORD_CALL = 1,
    PAWLI_RECORD_NOTE = 2
};

/* A record as the reader gives it. `rows` hold until the next read, texts until the reader is
 * freed. */
struct pawli_trace_record {
    enum pawli_trace_record_kind kind;
    pawl_mono at;       /* CALL: when the call began; NOTE: when */
    pawl_mono until;    /* CALL: when it returned */
    pawl_wall store_at; /* CALL: the store's clock after it, where the writer could read it without
                           a call; else 0 */
    const char *actor;
    struct pawli_trace_note note; /* NOTE */
    enum pawli_trace_verb verb;   /* CALL */
    pawl_code code;               /* CALL: as a whole */
    const char *subject; /* CALL: the worker of CLAIM, MINE, RENEW, SETTLE, RELEASE; the queue of
                            QUEUE_* and of verbs by filter; else "" */
    pawl_id about;       /* CALL: the job that ATTEMPTS was asked for; else nil */
    int64_t count; /* CALL: how many jobs PRUNE and the verbs by filter changed; they name none.
                      QUEUE_PAUSE: 1 for a pause, 0 for resuming; LIST, ATTEMPTS: the most rows
                      that the page could have held */
    bool is_where; /* CALL: CANCEL, REDRIVE, DISCARD by filter: no rows, only a count */
    bool is_first; /* CALL: LIST, ATTEMPTS from the beginning, not a further page */
    size_t offset; /* of the record in the history */
    const struct pawli_trace_row *rows;
    size_t rows_count;
};

/* ---------------------------------------------------------------- writing */

#define PAWLI_TRACE_FLUSH_BYTES (1 << 16)

/* Collects records in memory, and passes them on to a file where it has one. One thread at a time.
 */
struct pawli_trace_writer;

/* `file` may be NULL; it is borrowed, and written whenever PAWLI_TRACE_FLUSH_BYTES have come
 * together, and at flush. */
pawl_code pawli_trace_writer_new(FILE *file, struct pawli_trace_writer **ret_writer, pawl_err *err);
void pawli_trace_writer_free(struct pawli_trace_writer *writer); /* accepts NULL; does not flush */

/* From now on each record is in the file, and outlives the process, before its writer goes on. */
void pawli_trace_write_through(struct pawli_trace_writer *writer);

/* PAWL_BROKEN once a record could not be kept: the history is not whole, and says so for ever
 * after. */
pawl_code pawli_trace_flush(struct pawli_trace_writer *writer, pawl_err *err);

/* The bytes so far, where there is no file. Borrowed until the next write. */
const uint8_t *pawli_trace_bytes(const struct pawli_trace_writer *writer, size_t *ret_len);

/* Begin again with an empty history, keeping the memory: for a writer without a file. */
void pawli_trace_writer_reset(struct pawli_trace_writer *writer);

/* Record a note at time `at`. Failure is kept for pawli_trace_flush(). An actor longer than
 * PAWL_NAME_MAX is cut. */
void pawli_trace_note(struct pawli_trace_writer *writer, pawl_mono at,
                      const struct pawli_trace_note *note);

/* Record a call: kind and offset are ignored, NULL texts count as empty. The traced store does this
 * by itself; it is open for tests that make a history by hand. */
void pawli_trace_call(struct pawli_trace_writer *writer, const struct pawli_trace_record *call);

/* What stands for a token in a history. Never 0. */
uint64_t pawli_trace_digest(const pawl_token *token);

/*
 * Give a store that passes every call on to `inner` and records it. Takes `inner`: closing the
 * trace closes it. `actor` names who calls (a worker's id, "producer", "reaper") and is copied.
 * Claims, mines and reaps that found nothing are not recorded. `store_clock` may be NULL; where it
 * is given, its wall clock is the store's own and fills store_at.
 * PAWL_INVALID: a value is missing or the actor's name too long; PAWL_NO_MEMORY. Then `inner` stays
 * the caller's.
 */
struct pawli_trace_args {
    pawl_store *inner;
    struct pawli_trace_writer *writer; /* borrowed until close */
    const char *actor;
    const pawl_clock *clock;       /* borrowed: times the records */
    const pawl_clock *store_clock; /* borrowed */
};
pawl_code pawli_trace_open(const struct pawli_trace_args *args, pawl_store **ret_store,
                           pawl_err *err);

/* ---------------------------------------------------------------- reading */

struct pawli_trace_reader;

/* Read a history from memory; `bytes` are borrowed. PAWL_INVALID where the header is not one. */
pawl_code pawli_trace_reader_new(const uint8_t *bytes, size_t bytes_len,
                                 struct pawli_trace_reader **ret_reader, pawl_err *err);
void pawli_trace_reader_free(struct pawli_trace_reader *reader); /* accepts NULL */

/*
 * The next record. PAWL_OK with *ret_more false at the end; *ret_record is then, and after a
 * failure, of no use. A record that was cut off at the end of
 * the history ends it too (is_cut tells); anything else that is malformed is PAWL_INVALID, with the
 * byte offset in err.
 */
pawl_code pawli_trace_read(struct pawli_trace_reader *reader, struct pawli_trace_record *ret_record,
                           bool *ret_more, pawl_err *err);
bool pawli_trace_is_cut(const struct pawli_trace_reader *reader);

/* Print one record as a line of text; a call of several rows gets a line for each, all with the
 * same beginning, so that a search for a job's id shows all that happened to it. */
void pawli_trace_print(const struct pawli_trace_record *record, FILE *out);

/* "CLAIM", "WORKER_UP" ...; "?" for a number that is none. */
const char *pawli_trace_verb_name(enum pawli_trace_verb verb);
const char *pawli_trace_note_name(enum pawli_trace_note_kind kind);

#endif
