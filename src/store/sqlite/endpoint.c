/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.c - endpoints in a file of SQLite.
 * Owns:  how endpoints, their patterns and their secrets are read and written.
 * Never: publishes (publish.c does); gives a secret out but by `credentials`; leaves one behind in
 *        its own memory (SQLite's cache of the file is not overwritten).
 *
 * A refusal is an answer like any other: it writes nothing, and is told once the group has been
 * committed.
 */
#include "store/endpoint.h"

#include "base/error.h"
#include "base/text.h"
#include "core/event.h"
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A call that changes one endpoint, and its answer. */
struct change {
    const char *name;
    const pawl_endpoint_settings *settings; /* add, set */
    const char *secret;                     /* add */
    const pawl_endpoint_rotate_args *rotate;
    const struct pawli_endpoint_turn *turn;
    const pawl_endpoint_mark_args *mark;
    pawl_endpoint_marked marked;
    pawl_code code; /* where the pass is good */
    pawl_err err;
};

static pawl_code run(pawl_store *store, pass_run *what, struct change *change, pawl_err *err)
{
    struct write write = {.run = what, .args = change, .rows_count = 1};
    change->code = PAWL_OK;
    pawl_code rc = pawli_sqlite_write(store, &write, err);
    if (rc == PAWL_OK && change->code != PAWL_OK && err != NULL)
        *err = change->err;
    return rc == PAWL_OK ? change->code : rc;
}

/* ---- rows */

/* Read a row of the columns that statements.c calls ENDPOINT. `headers` may be NULL. */
static bool read_row(struct query *query, pawl_endpoint *ret_row, char *headers)
{
    char held[PAWL_ENDPOINT_HEADERS_LEN_MAX + 1];
    memset(ret_row, 0, sizeof(*ret_row));
    bool is_good = pawli_sqlite_text(query, ret_row->name, sizeof(ret_row->name));
    is_good = pawli_sqlite_text(query, ret_row->url, sizeof(ret_row->url)) && is_good;
    is_good = pawli_sqlite_text(query, ret_row->topics, sizeof(ret_row->topics)) && is_good;
    is_good = pawli_sqlite_text(query, held, sizeof(held)) && is_good;
    is_good = pawli_sqlite_text(query, ret_row->fail_statuses, sizeof(ret_row->fail_statuses)) &&
              is_good;
    ret_row->timeout_ms = pawli_sqlite_int(query);
    ret_row->rate_per_minute = pawli_sqlite_int(query);
    ret_row->ordering = (pawl_endpoint_ordering)pawli_sqlite_int(query);
    ret_row->format = (pawl_endpoint_format)pawli_sqlite_int(query);
    ret_row->is_enabled = pawli_sqlite_int(query) != 0;
    ret_row->switched_at.us = pawli_sqlite_optional(query, 0);
    is_good = pawli_sqlite_text(query, ret_row->switched_by, sizeof(ret_row->switched_by)) &&
              is_good;
    is_good = pawli_sqlite_text(query, ret_row->reason, sizeof(ret_row->reason)) && is_good;
    ret_row->failing_since.us = pawli_sqlite_optional(query, 0);
    ret_row->revision = pawli_sqlite_int(query);
    ret_row->created_at.us = pawli_sqlite_int(query);
    ret_row->changed_at.us = pawli_sqlite_int(query);
    is_good = is_good && pawli_endpoint_name_check("name", ret_row->name, NULL) == PAWL_OK;
    if (!is_good)
        return pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
    (void)pawli_endpoint_queue(ret_row->name, ret_row->queue);
    pawli_endpoint_header_names(held, ret_row->header_names);
    if (headers != NULL)
        memcpy(headers, held, sizeof(held));
    explicit_bzero(held, sizeof(held));
    return true;
}

bool pawli_sqlite_endpoint_find(struct pass *pass, const char *name, pawl_endpoint *ret_row,
                                char *headers, bool *ret_found)
{
    struct query query = pawli_sqlite_query(pass, S_EP_GET);
    pawli_sqlite_put_text(&query, name);
    *ret_found = pawli_sqlite_row(&query);
    if (*ret_found)
        (void)read_row(&query, ret_row, headers); /* told by end */
    return pawli_sqlite_end(&query);
}

/* The endpoint that a change is about; where there is none, that is the answer. */
static bool find_for(struct pass *pass, struct change *change, pawl_endpoint *ret_row,
                     bool *ret_found)
{
    if (!pawli_sqlite_endpoint_find(pass, change->name, ret_row, NULL, ret_found))
        return false;
    if (!*ret_found)
        change->code = pawli_endpoint_gone(change->name, &change->err);
    return true;
}

static bool read_secrets(struct pass *pass, const char *name,
                         pawl_endpoint_credentials *credentials)
{
    struct query query = pawli_sqlite_query(pass, S_EP_SECRETS);
    pawli_sqlite_put_text(&query, name);
    credentials->secrets_count = 0;
    while (pawli_sqlite_row(&query)) {
        pawl_endpoint_secret *secret = &credentials->secrets[credentials->secrets_count];
        if (credentials->secrets_count == PAWL_ENDPOINT_SECRETS_MAX ||
            !pawli_sqlite_text(&query, secret->text, sizeof(secret->text))) {
            (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
            break;
        }
        secret->until.us = pawli_sqlite_optional(&query, 0);
        credentials->secrets_count++;
    }
    return pawli_sqlite_end(&query);
}

/* Those that there are, in place of those that there were. */
static bool write_secrets(struct pass *pass, const char *name,
                          const pawl_endpoint_credentials *credentials)
{
    struct query query = pawli_sqlite_query(pass, S_EP_SECRETS_CLEAR);
    pawli_sqlite_put_text(&query, name);
    bool is_done = pawli_sqlite_change_rows(&query, -1);
    for (size_t i = 0; i < credentials->secrets_count && is_done; i++) {
        query = pawli_sqlite_query(pass, S_EP_SECRET_ADD);
        pawli_sqlite_put_text(&query, name);
        pawli_sqlite_put_int(&query, (int64_t)i);
        pawli_sqlite_put_text(&query, credentials->secrets[i].text);
        pawli_sqlite_put_optional(&query, credentials->secrets[i].until.us, 0);
        is_done = pawli_sqlite_change_rows(&query, 1);
    }
    return is_done;
}

static bool clear_topics(struct pass *pass, const char *name)
{
    struct query query = pawli_sqlite_query(pass, S_EP_TOPICS_CLEAR);
    pawli_sqlite_put_text(&query, name);
    return pawli_sqlite_change_rows(&query, -1);
}

static bool write_topics(struct pass *pass, const char *name, const char *topics)
{
    bool is_done = clear_topics(pass, name);
    for (const char *at = topics; is_done; at++) {
        char pattern[PAWL_ENDPOINT_TOPIC_MAX + 1];
        size_t len = strcspn(at, ",");
        assert(len <= PAWL_ENDPOINT_TOPIC_MAX); /* checked by the front */
        memcpy(pattern, at, len);
        pattern[len] = '\0';
        struct query query = pawli_sqlite_query(pass, S_EP_TOPIC_ADD);
        pawli_sqlite_put_text(&query, pattern);
        pawli_sqlite_put_text(&query, name);
        is_done = pawli_sqlite_change_rows(&query, 1);
        at += len;
        if (*at == '\0')
            break;
    }
    return is_done;
}

/* ---- its queue */

static bool need_queue(struct pass *pass, const char *name)
{
    char queue[PAWL_NAME_MAX + 1];
    return pawli_sqlite_queue_need(pass, pawli_endpoint_queue(name, queue));
}

/* Whether the queue in pass->queue has live jobs. */
static bool look_for_jobs(struct pass *pass, bool *ret_any)
{
    struct query query = pawli_sqlite_query(pass, S_EP_JOBS);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    *ret_any = pawli_sqlite_row(&query);
    return pawli_sqlite_end(&query);
}

static bool pause_queue(struct pass *pass, bool is_paused)
{
    struct query query = pawli_sqlite_query(pass, S_QUEUE_PAUSE);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, is_paused);
    if (!is_paused)
        pass->sqlite->is_hinting = true;
    return pawli_sqlite_change_rows(&query, 1);
}

/* ---- adding and changing */

static bool insert(struct pass *pass, const struct change *change)
{
    const pawl_endpoint_settings *settings = change->settings;
    pawl_endpoint_credentials credentials = {.secrets_count = 1};
    struct query query = pawli_sqlite_query(pass, S_EP_ADD);
    pawli_sqlite_put_text(&query, change->name);
    pawli_sqlite_put_text(&query, settings->url);
    pawli_sqlite_put_text(&query, settings->topics);
    pawli_sqlite_put_text(&query, settings->headers);
    pawli_sqlite_put_text(&query, settings->fail_statuses);
    pawli_sqlite_put_int(&query, settings->timeout_ms);
    pawli_sqlite_put_int(&query, settings->rate_per_minute);
    pawli_sqlite_put_int(&query, settings->ordering);
    pawli_sqlite_put_int(&query, settings->format);
    pawli_sqlite_put_int(&query, pass->now.us);
    (void)pawli_text_copy(credentials.secrets[0].text, sizeof(credentials.secrets[0].text),
                          change->secret); /* checked: it fits */
    bool is_done = pawli_sqlite_change_rows(&query, 1) &&
                   write_topics(pass, change->name, settings->topics) &&
                   write_secrets(pass, change->name, &credentials);
    pawl_endpoint_credentials_clear(&credentials);
    return is_done;
}

static bool count_endpoints(struct pass *pass, int64_t *ret_count)
{
    struct query query = pawli_sqlite_query(pass, S_EP_COUNT);
    *ret_count = pawli_sqlite_row(&query) ? pawli_sqlite_int(&query) : 0;
    return pawli_sqlite_end(&query);
}

static bool add_endpoint(struct pass *pass, void *args)
{
    struct change *change = args;
    pawl_endpoint row;
    pawl_queue_settings queue;
    bool is_found;
    bool has_jobs;
    int64_t count;
    if (!pawli_sqlite_endpoint_find(pass, change->name, &row, NULL, &is_found) ||
        !count_endpoints(pass, &count) || !need_queue(pass, change->name) ||
        !look_for_jobs(pass, &has_jobs))
        return false;
    if (is_found)
        change->code = pawli_endpoint_exists(change->name, &change->err);
    else if (count >= PAWL_ENDPOINTS_MAX)
        change->code = pawli_endpoints_full(&change->err);
    else if (has_jobs)
        change->code = pawli_endpoint_has_jobs(change->name, &change->err);
    if (change->code != PAWL_OK)
        return true;
    pawl_queue_settings_init(&queue);
    pawli_endpoint_queue_settings(change->settings, change->settings->timeout_ms, &queue);
    return insert(pass, change) && pawli_sqlite_queue_write(pass, &queue) &&
           pause_queue(pass, false);
}

static pawl_code add(pawl_store *store, const pawl_endpoint_add_args *args, pawl_err *err)
{
    struct change change = {.name = args->name, .settings = args->settings, .secret = args->secret};
    return run(store, add_endpoint, &change, err);
}

/* A number that may be left out. */
static void put_number(struct query *query, int64_t value)
{
    pawli_sqlite_put_optional(query, value, PAWL_DEFAULT);
}

static bool set_endpoint(struct pass *pass, void *args)
{
    struct change *change = args;
    const pawl_endpoint_settings *settings = change->settings;
    pawl_endpoint row;
    bool is_found;
    if (!find_for(pass, change, &row, &is_found) || !is_found)
        return pass->rc == SQLITE_OK;
    struct query query = pawli_sqlite_query(pass, S_EP_SET);
    pawli_sqlite_put_text(&query, change->name);
    pawli_sqlite_put_text(&query, settings->url);
    pawli_sqlite_put_text(&query, settings->topics);
    pawli_sqlite_put_text(&query, settings->headers);
    pawli_sqlite_put_text(&query, settings->fail_statuses);
    put_number(&query, settings->timeout_ms);
    put_number(&query, settings->rate_per_minute);
    pawli_sqlite_put_optional(&query, settings->ordering, PAWL_ORDERING_DEFAULT);
    pawli_sqlite_put_optional(&query, settings->format, PAWL_FORMAT_DEFAULT);
    pawli_sqlite_put_int(&query, pass->now.us);
    if (!pawli_sqlite_change_rows(&query, 1) || !need_queue(pass, change->name))
        return false;
    if (settings->topics != NULL && !write_topics(pass, change->name, settings->topics))
        return false;
    pawl_queue_settings queue = pass->queue.settings;
    int64_t timeout_ms = settings->timeout_ms != PAWL_DEFAULT ? settings->timeout_ms
                                                              : row.timeout_ms;
    pawli_endpoint_queue_settings(settings, timeout_ms, &queue);
    return pawli_sqlite_queue_write(pass, &queue);
}

static pawl_code set(pawl_store *store, const char *name, const pawl_endpoint_settings *settings,
                     pawl_err *err)
{
    struct change change = {.name = name, .settings = settings};
    return run(store, set_endpoint, &change, err);
}

static bool touch(struct pass *pass, const char *name)
{
    struct query query = pawli_sqlite_query(pass, S_EP_TOUCH);
    pawli_sqlite_put_text(&query, name);
    pawli_sqlite_put_int(&query, pass->now.us);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool rotate_secrets(struct pass *pass, void *args)
{
    struct change *change = args;
    pawl_endpoint row;
    pawl_endpoint_credentials credentials = {.secrets_count = 0};
    bool is_found;
    if (!find_for(pass, change, &row, &is_found) || !is_found)
        return pass->rc == SQLITE_OK;
    bool is_done = read_secrets(pass, change->name, &credentials);
    if (is_done)
        change->code = pawli_endpoint_rotate(&credentials, change->rotate, pass->now, &change->err);
    if (is_done && change->code == PAWL_OK)
        is_done = write_secrets(pass, change->name, &credentials) && touch(pass, change->name);
    pawl_endpoint_credentials_clear(&credentials);
    return is_done;
}

static pawl_code rotate(pawl_store *store, const pawl_endpoint_rotate_args *args, pawl_err *err)
{
    struct change change = {.name = args->name, .rotate = args};
    return run(store, rotate_secrets, &change, err);
}

static bool write_turn(struct pass *pass, const struct pawli_endpoint_turn *turned)
{
    const char *name = turned->args->name;
    struct query query = pawli_sqlite_query(pass, S_EP_TURN);
    pawli_sqlite_put_text(&query, name);
    pawli_sqlite_put_int(&query, turned->is_enabled);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_text(&query, turned->args->by);
    pawli_sqlite_put_text(&query, turned->args->reason);
    return pawli_sqlite_change_rows(&query, 1) && need_queue(pass, name) &&
           pause_queue(pass, !turned->is_enabled);
}

static bool turn_endpoint(struct pass *pass, void *args)
{
    struct change *change = args;
    pawl_endpoint row;
    bool is_found;
    if (!find_for(pass, change, &row, &is_found) || !is_found)
        return pass->rc == SQLITE_OK;
    return row.is_enabled == change->turn->is_enabled || write_turn(pass, change->turn);
}

static pawl_code turn(pawl_store *store, const struct pawli_endpoint_turn *turned, pawl_err *err)
{
    struct change change = {.name = turned->args->name, .turn = turned};
    return run(store, turn_endpoint, &change, err);
}

static bool mark_endpoint(struct pass *pass, void *args)
{
    struct change *change = args;
    const pawl_endpoint_mark_args *mark = change->mark;
    const pawl_endpoint_switch off = {.name = mark->name, .by = mark->by, .reason = mark->reason};
    pawl_endpoint row;
    bool is_found;
    if (!find_for(pass, change, &row, &is_found) || !is_found)
        return pass->rc == SQLITE_OK;
    pawl_wall before = row.failing_since;
    pawli_endpoint_mark(&row, mark, pass->now);
    bool is_done = true;
    if (row.failing_since.us != before.us) {
        struct query query = pawli_sqlite_query(pass, S_EP_MARK);
        pawli_sqlite_put_text(&query, change->name);
        pawli_sqlite_put_optional(&query, row.failing_since.us, 0);
        is_done = pawli_sqlite_change_rows(&query, 1);
    }
    if (is_done && row.is_enabled && pawli_endpoint_is_hopeless(&row, mark, pass->now)) {
        row.is_enabled = false;
        is_done = write_turn(pass, &(struct pawli_endpoint_turn){.args = &off});
    }
    change->marked = (pawl_endpoint_marked){row.failing_since, row.is_enabled};
    return is_done;
}

static pawl_code mark(pawl_store *store, const pawl_endpoint_mark_args *args,
                      pawl_endpoint_marked *ret_marked, pawl_err *err)
{
    struct change change = {.name = args->name, .mark = args};
    pawl_code rc = run(store, mark_endpoint, &change, err);
    if (rc == PAWL_OK)
        *ret_marked = change.marked;
    return rc;
}

static bool remove_row(struct pass *pass, const char *name)
{
    struct query query = pawli_sqlite_query(pass, S_EP_REMOVE);
    pawli_sqlite_put_text(&query, name);
    return pawli_sqlite_change_rows(&query, 1);
}

/* Its queue is as if nobody had ever set it. */
static bool unset_queue(struct pass *pass)
{
    pawl_queue_settings queue;
    pawl_queue_settings_init(&queue);
    if (!pawli_sqlite_queue_write(pass, &queue))
        return false;
    struct query query = pawli_sqlite_query(pass, S_EP_QUEUE_UNSET);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool remove_endpoint(struct pass *pass, void *args)
{
    static const pawl_endpoint_credentials none;
    struct change *change = args;
    pawl_endpoint row;
    bool is_found;
    bool has_jobs;
    if (!find_for(pass, change, &row, &is_found) || !is_found)
        return pass->rc == SQLITE_OK;
    if (!need_queue(pass, change->name) || !look_for_jobs(pass, &has_jobs))
        return false;
    if (has_jobs) {
        change->code = pawli_endpoint_has_jobs(change->name, &change->err);
        return true;
    }
    return remove_row(pass, change->name) && clear_topics(pass, change->name) &&
           write_secrets(pass, change->name, &none) && unset_queue(pass);
}

static pawl_code remove_one(pawl_store *store, const char *name, pawl_err *err)
{
    struct change change = {.name = name};
    return run(store, remove_endpoint, &change, err);
}

/* ---- looking */

struct look {
    const char *name; /* NULL: a list */
    const char *after;
    size_t rows_max;
    pawl_endpoint *rows; /* a pass may run twice: what it reads stays here until it was good */
    size_t count;
    pawl_endpoint_credentials *credentials;
};

static bool find_first(struct pass *pass, struct look *look)
{
    struct query query = pawli_sqlite_query(pass, look->name != NULL ? S_EP_GET : S_EP_LIST);
    pawli_sqlite_put_text(&query, look->name != NULL    ? look->name
                                  : look->after != NULL ? look->after
                                                        : "");
    if (look->name == NULL)
        pawli_sqlite_put_int(&query, (int64_t)look->rows_max);
    look->count = 0;
    while (look->count < look->rows_max && pawli_sqlite_row(&query))
        if (!read_row(&query, &look->rows[look->count++], NULL))
            break;
    return pawli_sqlite_end(&query);
}

static bool read_endpoints(struct pass *pass, void *args)
{
    struct look *look = args;
    if (!find_first(pass, look))
        return false;
    for (size_t i = 0; i < look->count; i++) {
        pawl_endpoint *row = &look->rows[i];
        pawl_endpoint_credentials credentials = {.secrets_count = 0};
        bool is_found;
        if (!pawli_sqlite_queue_find(pass, row->queue, &is_found))
            return false;
        if (!is_found)
            return pawli_sqlite_spoil(pass, SQLITE_CORRUPT);
        row->queue_settings = pass->queue.settings;
        bool is_read = read_secrets(pass, row->name, &credentials);
        pawli_endpoint_secrets_prune(&credentials, pass->now);
        row->secrets_count = (int64_t)credentials.secrets_count;
        pawl_endpoint_credentials_clear(&credentials);
        if (!is_read)
            return false;
    }
    return true;
}

static pawl_code run_look(pawl_store *store, struct look *look, pawl_endpoint *ret_rows,
                          pawl_err *err)
{
    look->rows = calloc(look->rows_max, sizeof(*look->rows));
    if (look->rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_read(store, read_endpoints, look, err);
    if (rc == PAWL_OK)
        memcpy(ret_rows, look->rows, look->count * sizeof(*ret_rows));
    free(look->rows);
    return rc;
}

static pawl_code get(pawl_store *store, const char *name, pawl_endpoint *ret_endpoint,
                     pawl_err *err)
{
    struct look look = {.name = name, .rows_max = 1};
    pawl_code rc = run_look(store, &look, ret_endpoint, err);
    return rc == PAWL_OK && look.count == 0 ? pawli_endpoint_gone(name, err) : rc;
}

static pawl_code list(pawl_store *store, const char *after, pawl_endpoint *ret_rows,
                      size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct look look = {.after = after, .rows_max = rows_max};
    pawl_code rc = run_look(store, &look, ret_rows, err);
    if (rc == PAWL_OK)
        *ret_count = look.count;
    return rc;
}

static bool read_credentials(struct pass *pass, void *args)
{
    struct look *look = args;
    pawl_endpoint row;
    bool is_found;
    if (!pawli_sqlite_endpoint_find(pass, look->name, &row, look->credentials->headers, &is_found))
        return false;
    look->count = is_found;
    if (!is_found)
        return true;
    look->credentials->revision = row.revision;
    look->credentials->created_at = row.created_at;
    if (!read_secrets(pass, look->name, look->credentials))
        return false;
    pawli_endpoint_secrets_prune(look->credentials, pass->now);
    return true;
}

static pawl_code credentials(pawl_store *store, const char *name,
                             pawl_endpoint_credentials *ret_credentials, pawl_err *err)
{
    pawl_endpoint_credentials held;
    memset(&held, 0, sizeof(held));
    struct look look = {.name = name, .credentials = &held};
    pawl_code rc = pawli_sqlite_read(store, read_credentials, &look, err);
    if (rc == PAWL_OK && look.count == 0)
        rc = pawli_endpoint_gone(name, err);
    if (rc == PAWL_OK)
        *ret_credentials = held;
    pawl_endpoint_credentials_clear(&held);
    return rc;
}

const struct pawli_endpoint_ops pawli_sqlite_endpoint_ops = {
    .add = add,
    .set = set,
    .rotate = rotate,
    .turn = turn,
    .remove = remove_one,
    .get = get,
    .list = list,
    .credentials = credentials,
    .publish = pawli_sqlite_publish,
    .mark = mark,
    .replay = pawli_sqlite_replay,
};
