/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * group.c - transactions: what the threads of a process write at the same time is committed
 *           together.
 * Owns:  the queue of calls, who leads (S1), the beginning and the end of every transaction, and
 *        the truth about a commit that failed (S3).
 * Never: answers before the commit has returned; lets one call's failure undo another's work
 *        without saying so; holds the mutex over anything that touches the file.
 * Locks: sqlite.mutex, for the queue. Answers are told without it, by words that threads wait on:
 *        a hundred that are woken would only wait for it again, one behind the other.
 *
 * Calls come in rounds, and a round is committed together. While one is on its way, the next one
 * gathers; whoever came first in it leads it. The lead goes on only after the answers are told:
 * most of those who are told have come back with their next call by then, so that as few commits
 * as possible are made for as many calls as wait.
 *
 * A commit that fails may have reached the disk all the same: the log's last page may be there, and
 * whoever opens the file after a crash would find it. So a failed commit is mended: a small
 * transaction writes over it in the log. Only when that one has been committed it is certain that
 * nothing was done; otherwise the answer is PAWL_UNKNOWN.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/word.h"

#include <assert.h>
#include <limits.h>
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
static int run_apart(pawl_sqlite *sqlite, struct call *call)
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

/* The calls from `first` to before `end`, which can all be run again, without a savepoint: for each
 * call one would copy every page that it writes to. False: one has failed, and nothing of the
 * transaction is to be kept. */
static bool run_together(pawl_sqlite *sqlite, struct call *first, const struct call *end)
{
    struct pass pass = {.sqlite = sqlite, .connection = &sqlite->writer};
    for (struct call *call = first; call != end; call = call->next) {
        /* The queue that the one before has read is still what it was: see struct write. */
        pass.rc = SQLITE_OK;
        pass.code = PAWL_OK;
        pass.is_next_alike = call->next != end && call->next->run == call->run;
        call->code = run(&pass, call->run, call->args, &call->err);
        if (call->code != PAWL_OK)
            return false;
    }
    return true;
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

/* ---- a transaction */

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

/* Run the calls of a group, those that can be run again first. Gives SQLITE_OK where the
 * transaction stands. */
static int run_calls(pawl_sqlite *sqlite, struct call *group, pawl_mono until)
{
    int rc = SQLITE_OK;
    struct call *rest = group;
    while (rest != NULL && rest->is_repeatable)
        rest = rest->next;
    if (!run_together(sqlite, group, rest)) {
        roll_back(&sqlite->writer);
        rc = begin(sqlite, until);
        rest = group;
    }
    for (struct call *call = rest; call != NULL && rc == SQLITE_OK; call = call->next)
        rc = run_apart(sqlite, call);
    return rc;
}

/* Run a group in the transaction that was begun, and end it. */
static void run_group(pawl_sqlite *sqlite, struct call *group, pawl_mono until)
{
    struct connection *writer = &sqlite->writer;
    bool is_known = true;
    int rc = SQLITE_OK;
    if (group->next == NULL) {
        struct pass pass = {.sqlite = sqlite, .connection = writer};
        group->code = run(&pass, group->run, group->args, &group->err);
    } else {
        rc = run_calls(sqlite, group, until);
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

/* Bring the calls that can be run again before the others. They all came before the transaction
 * began, and none is answered before it ends: any order of them is one that they can have had. */
static struct call *put_in_order(struct call *group)
{
    struct call *first = NULL;
    struct call *rest = NULL;
    struct call **first_end = &first;
    struct call **rest_end = &rest;
    for (struct call *call = group; call != NULL; call = call->next) {
        struct call ***end = call->is_repeatable ? &first_end : &rest_end;
        **end = call;
        *end = &call->next;
    }
    *rest_end = NULL;
    *first_end = rest;
    return first;
}

/* ---- the queue: under the mutex */

static void begin_round(pawl_sqlite *sqlite)
{
    sqlite->round++;
    sqlite->round_calls = 0;
    sqlite->round_bytes = 0;
}

/* The first of a round, which will lead it, waits on a word of its own; the others can be told all
 * at once. */
static void add(pawl_sqlite *sqlite, struct call *call)
{
    if (sqlite->round_calls == GROUP_CALLS_MAX ||
        (sqlite->round_calls > 0 && call->bytes > GROUP_BYTES_MAX - sqlite->round_bytes))
        begin_round(sqlite);
    call->round = sqlite->round;
    call->word = sqlite->round_calls == 0 ? &call->state
                                          : &sqlite->words[call->round % ROUNDS_COUNT];
    sqlite->round_calls++;
    sqlite->round_bytes += call->bytes;
    if (sqlite->last != NULL)
        sqlite->last->next = call;
    else
        sqlite->first = call;
    sqlite->last = call;
}

/* Take the round that has waited longest. */
static struct call *take_round(pawl_sqlite *sqlite)
{
    struct call *first = sqlite->first;
    struct call *last = first;
    first->is_taken = true;
    while (last->next != NULL && last->next->round == first->round) {
        last = last->next;
        last->is_taken = true;
    }
    sqlite->first = last->next;
    if (sqlite->first == NULL)
        sqlite->last = NULL;
    last->next = NULL;
    if (sqlite->round == first->round)
        begin_round(sqlite);
    return first;
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

/* ---- telling */

static void tell_round(_Atomic uint32_t *word)
{
    (void)atomic_fetch_add_explicit(word, 1, memory_order_release); /* what it was matters not */
    pawli_word_wake(word, INT_MAX);
}

/* Tell the thread of a call, which from then on may be gone, and the call with it. Gives the word
 * of its round where that is still to be told. */
static _Atomic uint32_t *tell(struct call *call, enum call_state state)
{
    _Atomic uint32_t *word = call->word;
    bool is_own = word == &call->state;
    atomic_store_explicit(&call->state, state, memory_order_release);
    if (is_own)
        pawli_word_wake(word, 1);
    return is_own ? NULL : word;
}

void pawli_sqlite_hand_over(pawl_sqlite *sqlite)
{
    pawli_sqlite_lock(sqlite);
    assert(sqlite->is_led);
    struct call *next = sqlite->first;
    sqlite->is_led = next != NULL;
    if (next != NULL)
        next->is_leading = true; /* so that it stays until it is told */
    pawli_sqlite_unlock(sqlite);
    _Atomic uint32_t *word = next != NULL ? tell(next, CALL_LEADS) : NULL;
    if (word != NULL) /* the first of its round has not waited so long: rare */
        tell_round(word);
}

/* Answer the calls of a group. Nobody else looks at them any more. */
static void answer_group(struct call *group, const struct call *own)
{
    _Atomic uint32_t *round = NULL;
    while (group != NULL) {
        struct call *call = group;
        group = call->next;
        _Atomic uint32_t *word = call != own ? tell(call, CALL_DONE) : NULL;
        if (word != NULL)
            round = word;
    }
    if (round != NULL)
        tell_round(round);
}

/* ---- leading */

/* Lead one group to its end; `own` is the first in the queue. Without the mutex. */
static void lead(pawl_sqlite *sqlite, struct call *own)
{
    int rc = begin(sqlite, own->until);
    bool is_foreign_work = rc == SQLITE_OK && pawli_sqlite_look_abroad(sqlite);
    pawli_sqlite_lock(sqlite);
    assert(sqlite->first == own);
    struct call *group = NULL;
    if (rc == SQLITE_OK)
        group = take_round(sqlite);
    else
        take_out(sqlite, own); /* the others have deadlines of their own, and may find it well */
    pawli_sqlite_unlock(sqlite);
    if (group == NULL) {
        own->code = pawli_sqlite_fail(sqlite, rc, &own->err);
        pawli_sqlite_hand_over(sqlite);
        return;
    }
    group = put_in_order(group);
    run_group(sqlite, group, own->until);
    if (sqlite->is_hinting || is_foreign_work) {
        pawli_sqlite_lock(sqlite);
        pawli_sqlite_hint(sqlite);
        pawli_sqlite_unlock(sqlite);
    }
    answer_group(group, own);
    pawli_sqlite_checkpoint_if_due(sqlite);
    pawli_sqlite_hand_over(sqlite);
}

/* ---- waiting */

/* Take a call back whose time is up, unless it is on its way: a leader that may wait longer must
 * not make it wait as long. */
static bool take_back(pawl_sqlite *sqlite, struct call *call)
{
    pawli_sqlite_lock(sqlite);
    bool is_ours = !call->is_taken && !call->is_leading;
    if (is_ours)
        take_out(sqlite, call);
    pawli_sqlite_unlock(sqlite);
    return is_ours;
}

/* Wait while another thread leads, until the call is done or leads itself. */
static enum call_state await(pawl_sqlite *sqlite, struct call *call)
{
    bool is_timed = true;
    for (;;) {
        uint32_t seen = atomic_load_explicit(call->word, memory_order_acquire);
        uint32_t state = atomic_load_explicit(&call->state, memory_order_acquire);
        if (state != CALL_WAITS)
            return (enum call_state)state;
        int64_t left_ms = is_timed ? pawli_mono_diff_ms(pawli_sqlite_mono(), call->until) : 0;
        if (left_ms > 0) {
            struct timespec until = pawli_wait_until(left_ms);
            pawli_word_wait(call->word, seen, &until);
        } else if (!is_timed) {
            pawli_word_wait(call->word, seen, NULL);
        } else if (take_back(sqlite, call)) {
            call->code = pawli_sqlite_fail(sqlite, SQLITE_BUSY, &call->err); /* S3: unseen */
            return CALL_DONE;
        } else {
            is_timed = false;
        }
    }
}

pawl_code pawli_sqlite_write(pawl_store *store, const struct write *write, pawl_err *err)
{
    struct handle *handle = pawli_sqlite_handle(store);
    pawl_sqlite *sqlite = handle->sqlite;
    struct call call = {
        .run = write->run,
        .args = write->args,
        .is_repeatable = write->is_repeatable,
        .bytes = (int64_t)(write->payload_bytes + write->rows_count * ROW_BYTES),
        .until = pawli_mono_add_ms(pawli_sqlite_mono(), handle->limit_ms),
    };
    atomic_init(&call.state, CALL_WAITS);
    pawli_sqlite_lock(sqlite);
    bool is_leading = !sqlite->is_led;
    call.is_leading = is_leading;
    sqlite->is_led = true;
    add(sqlite, &call);
    pawli_sqlite_unlock(sqlite);
    if (is_leading || await(sqlite, &call) == CALL_LEADS)
        lead(sqlite, &call);
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
