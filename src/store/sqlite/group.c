/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * group.c - transactions: what the threads of a process write at the same time is committed
 *           together.
 * Owns:  the queue of calls, who leads (S1), the beginning and the end of every transaction, and
 *        the truth about a commit that failed (S3).
 * Never: answers before the commit has returned; lets one call's failure undo another's work
 *        without saying so; holds the mutex over anything that touches the file.
 * Locks: sqlite.mutex, for the queue and the answers.
 *
 * A commit that fails may have reached the disk all the same: the log's last page may be there, and
 * whoever opens the file after a crash would find it. So a failed commit is mended: a small
 * transaction writes over it in the log. Only when that one has been committed it is certain that
 * nothing was done; otherwise the answer is PAWL_UNKNOWN.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <string.h>

/* What a row of a call counts for beside its payload. */
#define ROW_BYTES 512

/* ---- positions and fences */

static const char *const sequence_names[SEQUENCES_COUNT] = {"position", "fence"};

static bool read_last(struct pass *pass, enum sequence sequence, int64_t *ret_last)
{
    struct query query = pawli_sqlite_query(pass, S_DRAWN);
    pawli_sqlite_put_text(&query, sequence_names[sequence]);
    if (pawli_sqlite_row(&query))
        *ret_last = pawli_sqlite_int(&query);
    else if (pass->rc == SQLITE_OK)
        (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
    return pawli_sqlite_end(&query);
}

static bool draw(struct pass *pass, enum sequence sequence, int64_t *ret_number)
{
    struct drawn *drawn = &pass->sqlite->drawn[sequence];
    assert(pass->connection == &pass->sqlite->writer);
    if (!drawn->is_loaded && !read_last(pass, sequence, &drawn->last))
        return false;
    drawn->is_loaded = true;
    drawn->is_changed = true;
    *ret_number = ++drawn->last;
    return true;
}

bool pawli_sqlite_draw_position(struct pass *pass, int64_t *ret_position)
{
    return draw(pass, SEQUENCE_POSITION, ret_position);
}

bool pawli_sqlite_draw_fence(struct pass *pass, int64_t *ret_fence)
{
    return draw(pass, SEQUENCE_FENCE, ret_fence);
}

bool pawli_sqlite_last_position(struct pass *pass, int64_t *ret_position)
{
    return read_last(pass, SEQUENCE_POSITION, ret_position);
}

/* What was drawn is kept in the transaction that uses it, so that no number is given out twice. */
static bool keep_drawn(struct pass *pass)
{
    int64_t position;
    /* Other processes see by the position that a job has become claimable. */
    if (pass->sqlite->is_hinting && !pass->sqlite->drawn[SEQUENCE_POSITION].is_changed &&
        !pawli_sqlite_draw_position(pass, &position))
        return false;
    for (int i = 0; i < SEQUENCES_COUNT; i++) {
        const struct drawn *drawn = &pass->sqlite->drawn[i];
        if (!drawn->is_changed)
            continue;
        struct query query = pawli_sqlite_query(pass, S_DRAWN_SET);
        pawli_sqlite_put_text(&query, sequence_names[i]);
        pawli_sqlite_put_int(&query, drawn->last);
        if (!pawli_sqlite_change_rows(&query, 1))
            return false;
    }
    return true;
}

/* ---- one call */

static bool is_in_transaction(const struct connection *connection)
{
    return connection->db != NULL && sqlite3_get_autocommit(connection->db) == 0;
}

static void roll_back(struct connection *connection)
{
    if (is_in_transaction(connection) && pawli_sqlite_simple(connection, S_ROLLBACK) != SQLITE_OK)
        connection->is_spoiled = true; /* closing the connection undoes it */
}

/* Read the clock and run it. Gives its code, with `err` filled where it is not PAWL_OK. */
static pawl_code run(struct pass *pass, pass_run *what, void *args, pawl_err *err)
{
    const pawl_clock *clock = pass->sqlite->clock;
    pass->now = clock->wall(clock->user); /* S2 */
    if (pass->now.us <= 0)                /* in every record an instant of 0 means none */
        return pawli_fail(err, PAWL_DOWN, "the store's clock gives %lld us; it must be after 1970",
                          (long long)pass->now.us);
    if (what(pass, args))
        return PAWL_OK;
    assert(pass->rc != SQLITE_OK || pass->code != PAWL_OK);
    if (pass->rc == SQLITE_OK)
        return pawli_fail_plain(err, pass->code);
    if (pawli_sqlite_is_spoiling(pass->rc))
        pass->connection->is_spoiled = true;
    return pawli_sqlite_fail(pass->sqlite, pass->rc, err);
}

/* A call among others: its failure is its own, unless SQLite has undone all of the transaction.
 * Gives SQLITE_OK while the transaction stands. */
static int run_in_group(pawl_sqlite *sqlite, struct call *call)
{
    struct connection *writer = &sqlite->writer;
    struct pass pass = {.sqlite = sqlite, .connection = writer};
    int rc = pawli_sqlite_simple(writer, S_SAVE);
    if (rc != SQLITE_OK)
        return rc;
    call->code = run(&pass, call->run, call->args, &call->err);
    if (!is_in_transaction(writer))
        return pass.rc != SQLITE_OK ? pass.rc : SQLITE_ABORT;
    if (call->code != PAWL_OK)
        rc = pawli_sqlite_simple(writer, S_SAVE_BACK);
    return rc == SQLITE_OK ? pawli_sqlite_simple(writer, S_SAVE_END) : rc;
}

/* ---- the end of a transaction */

/* Write over a commit that failed. True: nothing of it is left. */
static bool mend(pawl_sqlite *sqlite)
{
    struct connection *writer = &sqlite->writer;
    bool is_mended = pawli_sqlite_simple(writer, S_BEGIN_WRITE) == SQLITE_OK &&
                     pawli_sqlite_simple(writer, S_MEND) == SQLITE_OK &&
                     pawli_sqlite_simple(writer, S_COMMIT) == SQLITE_OK;
    roll_back(writer);
    return is_mended;
}

/* Commit. Gives SQLITE_OK, or why not; *ret_known: then it is certain that nothing was done. */
static int commit(pawl_sqlite *sqlite, bool *ret_known)
{
    struct connection *writer = &sqlite->writer;
    *ret_known = true;
    struct pass pass = {.sqlite = sqlite, .connection = writer};
    if (!keep_drawn(&pass)) {
        roll_back(writer);
        return pass.rc;
    }
    int rc = pawli_sqlite_simple(writer, S_COMMIT);
    if (rc == SQLITE_OK)
        return SQLITE_OK;
    roll_back(writer);
    *ret_known = mend(sqlite);
    if (!*ret_known || pawli_sqlite_is_spoiling(rc))
        writer->is_spoiled = true;
    return rc;
}

/* All calls of a group share the fate of its transaction; what had failed before has its answer. */
static void fail_group(const pawl_sqlite *sqlite, struct call *group, int rc, bool is_known)
{
    for (struct call *call = group; call != NULL; call = call->next)
        if (call->code == PAWL_OK)
            call->code = is_known ? pawli_sqlite_fail(sqlite, rc, &call->err)
                                  : pawli_sqlite_fail_unknown(sqlite, rc, &call->err);
}

/* ---- leading */

/* Begin a transaction of the writer's, and see what others have done meanwhile. */
static int begin(pawl_sqlite *sqlite, pawl_mono until)
{
    int rc = pawli_sqlite_reconnect(sqlite, &sqlite->writer);
    if (rc != SQLITE_OK)
        return rc;
    sqlite->writer.busy_until = until;
    memset(sqlite->drawn, 0, sizeof(sqlite->drawn));
    sqlite->is_hinting = false;
    rc = pawli_sqlite_simple(&sqlite->writer, S_BEGIN_WRITE);
    if (pawli_sqlite_is_spoiling(rc))
        sqlite->writer.is_spoiled = true;
    return rc;
}

static bool is_any_done(const struct call *group)
{
    for (const struct call *call = group; call != NULL; call = call->next)
        if (call->code == PAWL_OK)
            return true;
    return false;
}

/* Run a group in the transaction that was begun, and end it. */
static void run_group(pawl_sqlite *sqlite, struct call *group)
{
    struct connection *writer = &sqlite->writer;
    bool is_known = true;
    int rc = SQLITE_OK;
    if (group->next == NULL) {
        struct pass pass = {.sqlite = sqlite, .connection = writer};
        group->code = run(&pass, group->run, group->args, &group->err);
    } else {
        for (struct call *call = group; call != NULL && rc == SQLITE_OK; call = call->next)
            rc = run_in_group(sqlite, call);
    }
    if (rc != SQLITE_OK || !is_any_done(group))
        roll_back(writer);
    else
        rc = commit(sqlite, &is_known);
    if (rc != SQLITE_OK)
        fail_group(sqlite, group, rc, is_known);
    else if (sqlite->drawn[SEQUENCE_POSITION].is_changed)
        sqlite->position_seen = sqlite->drawn[SEQUENCE_POSITION].last;
}

/* Take the calls that wait longest out of the queue, within the bounds. Under the mutex. */
static struct call *take_group(pawl_sqlite *sqlite)
{
    struct call *group = sqlite->first;
    struct call *last = group;
    int64_t bytes = group->bytes;
    for (int count = 1; count < GROUP_CALLS_MAX && last->next != NULL; count++) {
        if (last->next->bytes > GROUP_BYTES_MAX - bytes)
            break;
        last = last->next;
        bytes += last->bytes;
    }
    sqlite->first = last->next;
    if (sqlite->first == NULL)
        sqlite->last = NULL;
    last->next = NULL;
    for (struct call *call = group; call != NULL; call = call->next)
        call->is_taken = true;
    return group;
}

static void take_out(pawl_sqlite *sqlite, struct call *call)
{
    struct call *before = NULL;
    struct call **link = &sqlite->first;
    for (; *link != call; link = &(*link)->next)
        before = *link;
    *link = call->next;
    if (sqlite->last == call)
        sqlite->last = before;
}

/* Answer the calls of a group. They are told without the mutex, since each would only wait for it;
 * a handle that is closed waits until that is over. Takes and leaves the mutex. */
static void answer_group(pawl_sqlite *sqlite, struct call *group, bool is_hint)
{
    pthread_cond_t *answered[GROUP_CALLS_MAX];
    size_t count = 0;
    pawli_sqlite_lock(sqlite);
    if (is_hint)
        pawli_sqlite_hint(sqlite);
    while (group != NULL) {
        struct call *next = group->next; /* once it is answered it may be gone */
        answered[count++] = &group->handle->answered;
        group->is_done = true;
        group = next;
    }
    sqlite->is_telling = true;
    pawli_sqlite_unlock(sqlite);
    for (size_t i = 0; i < count; i++)
        (void)pthread_cond_signal(answered[i]); /* cannot fail on a valid condition */
    pawli_sqlite_lock(sqlite);
    sqlite->is_telling = false;
    if (sqlite->closers > 0)
        (void)pthread_cond_broadcast(&sqlite->hinted); /* likewise */
    pawli_sqlite_unlock(sqlite);
}

/* Lead one group to its end; `own` waits among those in the queue. Without the mutex. */
static void lead(pawl_sqlite *sqlite, struct call *own)
{
    int rc = begin(sqlite, own->until);
    bool is_foreign_work = rc == SQLITE_OK && pawli_sqlite_look_abroad(sqlite);
    pawli_sqlite_lock(sqlite);
    struct call *group = NULL;
    if (rc == SQLITE_OK) {
        group = take_group(sqlite);
    } else {
        /* The others have deadlines of their own, and may find it well again. */
        take_out(sqlite, own);
        own->code = pawli_sqlite_fail(sqlite, rc, &own->err);
        own->is_done = true;
    }
    pawli_sqlite_unlock(sqlite);
    if (group == NULL)
        return;

    run_group(sqlite, group);
    answer_group(sqlite, group, sqlite->is_hinting || is_foreign_work);
    pawli_sqlite_checkpoint_if_due(sqlite);
}

/* Wait while another thread leads. A call whose time is up is taken back, unless it is on its way:
 * a leader that may wait longer must not make it wait as long. Under the mutex. */
static void await_answer(pawl_sqlite *sqlite, struct call *call)
{
    pthread_cond_t *answered = &call->handle->answered;
    if (call->is_taken) {
        (void)pthread_cond_wait(answered, &sqlite->mutex); /* cannot fail: both are valid */
        return;
    }
    int64_t left_ms = pawli_mono_diff_ms(pawli_sqlite_mono(), call->until);
    if (left_ms > 0) {
        struct timespec until = pawli_wait_until(left_ms);
        (void)pthread_cond_timedwait(answered, &sqlite->mutex, &until); /* looked at again */
        return;
    }
    take_out(sqlite, call);
    call->code = pawli_sqlite_fail(sqlite, SQLITE_BUSY, &call->err); /* S3: nobody has seen it */
    call->is_done = true;
}

pawl_code pawli_sqlite_write(pawl_store *store, const struct write *write, pawl_err *err)
{
    struct handle *handle = pawli_sqlite_handle(store);
    pawl_sqlite *sqlite = handle->sqlite;
    struct call call = {
        .handle = handle,
        .run = write->run,
        .args = write->args,
        .bytes = (int64_t)(write->payload_bytes + write->rows_count * ROW_BYTES),
        .until = pawli_mono_add_ms(pawli_sqlite_mono(), handle->limit_ms),
    };
    pawli_sqlite_lock(sqlite);
    if (sqlite->last != NULL)
        sqlite->last->next = &call;
    else
        sqlite->first = &call;
    sqlite->last = &call;
    while (!call.is_done) {
        if (sqlite->is_led) {
            await_answer(sqlite, &call);
            continue;
        }
        sqlite->is_led = true;
        pawli_sqlite_unlock(sqlite);
        lead(sqlite, &call);
        pawli_sqlite_lock(sqlite);
        sqlite->is_led = false;
        if (sqlite->first != NULL)
            (void)pthread_cond_signal(&sqlite->first->handle->answered); /* to lead next */
    }
    pawli_sqlite_unlock(sqlite);
    if (call.code != PAWL_OK && err != NULL)
        *err = call.err;
    return call.code;
}

/* ---- reading */

pawl_code pawli_sqlite_read(pawl_store *store, pass_run *what, void *args, pawl_err *err)
{
    struct handle *handle = pawli_sqlite_handle(store);
    pawl_sqlite *sqlite = handle->sqlite;
    struct connection *reader = &handle->reader;
    int rc = pawli_sqlite_reconnect(sqlite, reader);
    if (rc != SQLITE_OK)
        return pawli_sqlite_fail(sqlite, rc, err);
    reader->busy_until = pawli_mono_add_ms(pawli_sqlite_mono(), handle->limit_ms);
    rc = pawli_sqlite_simple(reader, S_BEGIN);
    if (rc != SQLITE_OK) {
        reader->is_spoiled = true;
        return pawli_sqlite_fail(sqlite, rc, err);
    }
    struct pass pass = {.sqlite = sqlite, .connection = reader};
    pawl_code code = run(&pass, what, args, err);
    roll_back(reader); /* there is nothing to keep */
    return code;
}
