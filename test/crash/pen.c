/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pen.c - how a process that may be killed at any moment keeps its history.
 * Owns:  the three files of a process: what it was told, what it has under way, what it must never
 *        find missing.
 * Never: changes a call or its answer.
 */
#include "crash/pen.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(70);
}

static int open_file(const char *folder, const char *what, const char *actor)
{
    char path[PEN_PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s-%s", folder, what, actor);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        give_up(path);
    return fd;
}

void pen_open(struct pen *pen, const char *folder, const char *actor)
{
    *pen = (struct pen){0};
    (void)snprintf(pen->actor, sizeof(pen->actor), "%s", actor);
    pen->history = fdopen(open_file(folder, "history", actor), "wb");
    pen->pending_fd = open_file(folder, "pending", actor);
    pen->acks_fd = open_file(folder, "acks", actor);
    if (pen->history == NULL ||
        pawli_trace_writer_new(pen->history, &pen->writer, NULL) != PAWL_OK ||
        pawli_trace_writer_new(NULL, &pen->pending, NULL) != PAWL_OK)
        give_up("pen");
    /* What a caller knows, its history does: also of calls that change nothing. */
    pawli_trace_write_through(pen->writer);
}

/* What was recorded so far leaves the process. */
static void flush(struct pen *pen)
{
    if (pawli_trace_flush(pen->writer, NULL) != PAWL_OK)
        give_up("history");
}

void pen_close(struct pen *pen)
{
    pawl_store_close(pen->store);
    flush(pen);
    pawli_trace_writer_free(pen->writer);
    pawli_trace_writer_free(pen->pending);
    (void)fclose(pen->history); /* it was flushed */
    (void)close(pen->pending_fd);
    (void)close(pen->acks_fd);
}

static pawl_mono now(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user);
}

void pen_note(struct pen *pen, const struct pawli_trace_note *note)
{
    pawli_trace_note(pen->writer, now(), note);
    flush(pen);
}

void pen_ack(struct pen *pen, const pawl_id *id)
{
    if (write(pen->acks_fd, id, sizeof(*id)) != (ssize_t)sizeof(*id))
        give_up("acks");
    pen_note(pen,
             &(struct pawli_trace_note){.kind = PAWLI_NOTE_ACKED, .actor = pen->actor, .job = *id});
}

/* ---------------------------------------------------------------- a call under way */

/* The number of its bytes stands first; 0: nothing is under way. */
static void write_pending(struct pen *pen, const uint8_t *bytes, size_t len)
{
    uint64_t head = len;
    /* The head last: until then the old one holds, and the old bytes are still the beginning. */
    if ((len > 0 && pwrite(pen->pending_fd, bytes, len, (off_t)sizeof(head)) != (ssize_t)len) ||
        pwrite(pen->pending_fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
        give_up("pending");
}

/* `subject`: as in the history; "" for a call that is not a worker's. */
static void begin(struct pen *pen, enum pawli_trace_verb verb, const char *subject,
                  const struct pawli_trace_row *rows, size_t count)
{
    size_t len = 0;
    pawl_mono at = now();
    pawli_trace_writer_reset(pen->pending);
    pawli_trace_call(pen->pending, &(struct pawli_trace_record){
                                       .at = at,
                                       .until = at,
                                       .actor = pen->actor,
                                       .verb = verb,
                                       .code = PAWL_UNKNOWN,
                                       .subject = subject,
                                       .rows = rows,
                                       .rows_count = count,
                                   });
    const uint8_t *bytes = pawli_trace_bytes(pen->pending, &len);
    write_pending(pen, bytes, len);
}

static pawl_code end(struct pen *pen, pawl_code code)
{
    flush(pen);
    write_pending(pen, NULL, 0);
    return code;
}

/* ---------------------------------------------------------------- the verbs */

static struct pen *pen_of(pawl_store *store)
{
    return (struct pen *)((char *)(uintptr_t)store->ops - offsetof(struct pen, ops));
}

static struct pawli_trace_row *new_rows(size_t count)
{
    struct pawli_trace_row *rows = calloc(count, sizeof(rows[0]));
    if (rows == NULL)
        give_up("rows");
    return rows;
}

static struct pawli_trace_row row_of(const pawl_lease *lease)
{
    return (struct pawli_trace_row){.job = lease->job,
                                    .version = lease->version,
                                    .token_digest = pawli_trace_digest(&lease->token),
                                    .code = PAWL_UNKNOWN};
}

static pawl_code pen_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t count,
                             pawl_enqueued *ret_results, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    struct pawli_trace_row *asked = new_rows(count);
    for (size_t i = 0; i < count; i++)
        asked[i] = (struct pawli_trace_row){.job = rows[i].id,
                                            .code = PAWL_UNKNOWN,
                                            .queue = rows[i].queue,
                                            .delay_ms = rows[i].delay_ms,
                                            .start_within_ms = rows[i].start_within_ms,
                                            .max_retries = rows[i].max_retries,
                                            .timeout_ms = rows[i].timeout_ms,
                                            .backoff_base_ms = rows[i].backoff_base_ms,
                                            .backoff_max_ms = rows[i].backoff_max_ms};
    begin(pen, PAWLI_VERB_ENQUEUE, "", asked, count);
    free(asked);
    return end(pen, pen->passing->enqueue(store, rows, count, ret_results, err));
}

static pawl_code pen_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                           size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    begin(pen, PAWLI_VERB_CLAIM, args->worker, NULL, 0);
    return end(pen, pen->passing->claim(store, args, ret_jobs, jobs_max, ret_count, err));
}

static pawl_code pen_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                           size_t count, pawl_renewed *ret_results, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    struct pawli_trace_row *asked = new_rows(count);
    for (size_t i = 0; i < count; i++) {
        asked[i] = row_of(&rows[i].lease);
        asked[i].lease_ms = rows[i].lease_ms;
    }
    begin(pen, PAWLI_VERB_RENEW, worker, asked, count);
    free(asked);
    return end(pen, pen->passing->renew(store, worker, rows, count, ret_results, err));
}

static pawl_code pen_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                            size_t count, pawl_settled *ret_results, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    struct pawli_trace_row *asked = new_rows(count);
    for (size_t i = 0; i < count; i++) {
        asked[i] = row_of(&rows[i].lease);
        asked[i].action = rows[i].action;
        asked[i].reason = rows[i].reason;
        asked[i].delay_ms = rows[i].delay_ms;
    }
    begin(pen, PAWLI_VERB_SETTLE, worker, asked, count);
    free(asked);
    return end(pen, pen->passing->settle(store, worker, rows, count, ret_results, err));
}

static pawl_code pen_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                             size_t count, pawl_code *ret_codes, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    struct pawli_trace_row *asked = new_rows(count);
    for (size_t i = 0; i < count; i++)
        asked[i] = row_of(&leases[i]);
    begin(pen, PAWLI_VERB_RELEASE, worker, asked, count);
    free(asked);
    return end(pen, pen->passing->release(store, worker, leases, count, ret_codes, err));
}

static pawl_code pen_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                          size_t *ret_count, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    begin(pen, PAWLI_VERB_REAP, "", NULL, 0);
    return end(pen, pen->passing->reap(store, ret_rows, rows_max, ret_count, err));
}

static void begin_change(struct pen *pen, enum pawli_trace_verb verb, const pawl_id *ids,
                         size_t count)
{
    struct pawli_trace_row *asked = new_rows(count);
    for (size_t i = 0; i < count; i++)
        asked[i] = (struct pawli_trace_row){.job = ids[i], .code = PAWL_UNKNOWN};
    begin(pen, verb, "", asked, count);
    free(asked);
}

static pawl_code pen_cancel(pawl_store *store, const pawl_id *ids, size_t count,
                            pawl_changed *ret_results, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    begin_change(pen, PAWLI_VERB_CANCEL, ids, count);
    return end(pen, pen->passing->cancel(store, ids, count, ret_results, err));
}

static pawl_code pen_redrive(pawl_store *store, const pawl_id *ids, size_t count,
                             pawl_changed *ret_results, pawl_err *err)
{
    struct pen *pen = pen_of(store);
    begin_change(pen, PAWLI_VERB_REDRIVE, ids, count);
    return end(pen, pen->passing->redrive(store, ids, count, ret_results, err));
}

/* Not written down: nothing is old enough in any of the tests, and one whose answer was lost would
 * explain every job that is missing. */
static pawl_code pen_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_store *inner = pen_of(store)->inner;
    return inner->ops->prune(inner, jobs_max, ret_count, err);
}

/* ---------------------------------------------------------------- the store */

static void pen_store_close(pawl_store *store)
{
    struct pen *pen = pen_of(store);
    pen->passing->close(store);
    pen->store = NULL;
    if (!pen->is_of_store)
        return;
    pen_close(pen);
    free(pen);
}

void pen_take_store(struct pen *pen, pawl_store *inner)
{
    struct pawli_trace_args args = {
        .inner = inner, .writer = pen->writer, .actor = pen->actor, .clock = pawl_clock_system()};
    pawl_err err;
    if (pawli_trace_open(&args, &pen->store, &err) != PAWL_OK)
        give_up(err.text);
    /* The traced store itself, with some of its verbs replaced. */
    pen->inner = inner;
    pen->passing = pen->store->ops;
    pen->ops = *pen->passing;
    pen->ops.close = pen_store_close;
    pen->ops.enqueue = pen_enqueue;
    pen->ops.claim = pen_claim;
    pen->ops.renew = pen_renew;
    pen->ops.settle = pen_settle;
    pen->ops.release = pen_release;
    pen->ops.reap = pen_reap;
    pen->ops.cancel = pen_cancel;
    pen->ops.redrive = pen_redrive;
    pen->ops.prune = pen_prune;
    pen->store->ops = &pen->ops;
}

pawl_store *pen_store(const char *folder, const char *actor, pawl_store *inner)
{
    struct pen *pen = malloc(sizeof(*pen));
    if (pen == NULL)
        give_up("pen");
    pen_open(pen, folder, actor);
    pen->is_of_store = true;
    pen_take_store(pen, inner);
    return pen->store;
}
