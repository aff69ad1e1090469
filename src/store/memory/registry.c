/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * registry.c - the memory store's queues, the names of its holders, and who has shown himself.
 * Owns:  when a queue or a name comes into being and when it goes (M8, M9 of memory.h); the verbs
 *        on queue settings and on workers' presence.
 * Never: looks at a job.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- queues */

struct queue *pawli_memory_queue_find(pawl_memory *memory, const char *name)
{
    struct queue key;
    (void)pawli_text_copy(key.name, sizeof(key.name), name); /* checked by the front: it fits */
    return RB_FIND(pawli_queue_tree, &memory->queues, &key);
}

struct queue *pawli_memory_queue_need(pawl_memory *memory, const char *name)
{
    struct queue *queue = pawli_memory_queue_find(memory, name);
    if (queue != NULL)
        return queue;
    size_t lines_count = (size_t)memory->shards;
    queue = calloc(1, sizeof(*queue) + lines_count * sizeof(queue->lines[0]));
    if (queue == NULL)
        return NULL;
    (void)pawli_text_copy(queue->name, sizeof(queue->name), name); /* as above */
    pawl_queue_settings_init(&queue->settings);
    queue->due_until.us = INT64_MIN;
    RB_INSERT(pawli_queue_tree, &memory->queues, queue);
    return queue;
}

void pawli_memory_queue_drop(pawl_memory *memory, struct queue *queue)
{
    assert(queue != NULL);
    for (int state = 0; state < STATES_COUNT; state++)
        if (queue->counts[state] > 0)
            return;
    if (queue->is_set)
        return;
    assert(RB_EMPTY(&queue->ordering_keys)); /* M9 */
    RB_REMOVE(pawli_queue_tree, &memory->queues, queue);
    free(queue);
}

pawl_code pawli_memory_queue_get(pawl_store *store, const char *queue_name,
                                 pawl_queue_settings *ret_settings, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct queue *queue = pawli_memory_queue_find(memory, queue_name);
    if (queue != NULL)
        *ret_settings = queue->settings;
    else
        pawl_queue_settings_init(ret_settings);
    pawli_memory_leave(memory);
    return PAWL_OK;
}

pawl_code pawli_memory_queue_set(pawl_store *store, const char *queue_name,
                                 const pawl_queue_settings *settings, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct queue *queue = pawli_memory_queue_need(memory, queue_name);
    if (queue != NULL) {
        bool is_paused = queue->settings.is_paused;
        queue->settings = *settings;
        queue->settings.is_paused = is_paused;
        queue->is_set = true;
        pawli_memory_hint(memory); /* more may be in flight now */
    }
    pawli_memory_leave(memory);
    return queue != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code pawli_memory_queue_pause(pawl_store *store, const char *queue_name, bool is_paused,
                                   pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct queue *queue = pawli_memory_queue_need(memory, queue_name);
    if (queue != NULL) {
        queue->settings.is_paused = is_paused;
        queue->is_set = true;
        if (!is_paused)
            pawli_memory_hint(memory);
    }
    pawli_memory_leave(memory);
    return queue != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

/* ---- holders */

/* A record that is only looked for with: its name stands where a holder's does. */
union holder_key {
    struct holder holder;
    char bytes[sizeof(struct holder) + PAWL_NAME_MAX + 1];
};

struct holder *pawli_memory_holder_find(pawl_memory *memory, const char *name)
{
    union holder_key key;
    (void)pawli_text_copy(key.holder.name, PAWL_NAME_MAX + 1, name); /* checked: it fits */
    return RB_FIND(pawli_holder_tree, &memory->holders, &key.holder);
}

struct holder *pawli_memory_holder_need(pawl_memory *memory, const char *name)
{
    struct holder *holder = pawli_memory_holder_find(memory, name);
    if (holder == NULL) {
        size_t name_size = strlen(name) + 1;
        holder = calloc(1, sizeof(*holder) + name_size);
        if (holder == NULL)
            return NULL;
        memcpy(holder->name, name, name_size);
        RB_INSERT(pawli_holder_tree, &memory->holders, holder);
    }
    holder->uses++;
    return holder;
}

void pawli_memory_holder_drop(pawl_memory *memory, struct holder *holder)
{
    if (holder == NULL)
        return;
    assert(holder->uses > 0);
    if (--holder->uses > 0)
        return;
    assert(holder->held_count == 0);
    RB_REMOVE(pawli_holder_tree, &memory->holders, holder);
    free(holder);
}

/* ---- presence */

static struct presence *presence_find(pawl_memory *memory, const char *name)
{
    struct presence key;
    (void)pawli_text_copy(key.row.name, sizeof(key.row.name), name); /* checked: it fits */
    return RB_FIND(pawli_presence_tree, &memory->presences, &key);
}

#define PRESENCE_KEEP_MS (INT64_C(7) * 24 * 3600 * 1000)

void pawli_memory_presence_prune(pawl_memory *memory, pawl_wall now)
{
    struct presence *presence = RB_MIN(pawli_presence_tree, &memory->presences);
    while (presence != NULL) {
        struct presence *next = RB_NEXT(pawli_presence_tree, &memory->presences, presence);
        const struct holder *holder = pawli_memory_holder_find(memory, presence->row.name);
        bool is_holding = holder != NULL && holder->held_count > 0;
        pawl_wall kept_until = pawli_wall_add_ms(presence->row.last_seen, PRESENCE_KEEP_MS);
        if (!is_holding && pawli_wall_is_before(kept_until, now)) {
            RB_REMOVE(pawli_presence_tree, &memory->presences, presence);
            free(presence);
        }
        presence = next;
    }
}

pawl_code pawli_memory_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct presence *presence = presence_find(memory, args->name);
    bool is_new = presence == NULL;
    if (is_new)
        presence = calloc(1, sizeof(*presence));
    if (presence != NULL) {
        pawl_worker *row = &presence->row;
        row->kind = args->kind;
        (void)pawli_text_copy(row->name, sizeof(row->name), args->name); /* checked: they fit */
        (void)pawli_text_copy(row->host, sizeof(row->host), args->host);
        (void)pawli_text_copy(row->version, sizeof(row->version), args->version);
        (void)pawli_text_copy(row->queues, sizeof(row->queues), args->queues);
        row->since = is_new ? now : row->since;
        row->last_seen = now;
    }
    if (presence != NULL && is_new)
        RB_INSERT(pawli_presence_tree, &memory->presences, presence);
    pawli_memory_leave(memory);
    return presence != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code pawli_memory_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct presence *presence = presence_find(memory, name);
    if (presence != NULL) {
        RB_REMOVE(pawli_presence_tree, &memory->presences, presence);
        free(presence);
    }
    pawli_memory_leave(memory);
    return PAWL_OK;
}

pawl_code pawli_memory_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct presence key;
    (void)pawli_text_copy(key.row.name, sizeof(key.row.name), after); /* NULL: before all names */
    struct presence *presence = RB_NFIND(pawli_presence_tree, &memory->presences, &key);
    if (presence != NULL && after != NULL && strcmp(presence->row.name, after) == 0)
        presence = RB_NEXT(pawli_presence_tree, &memory->presences, presence);
    size_t count = 0;
    for (; presence != NULL && count < rows_max;
         presence = RB_NEXT(pawli_presence_tree, &memory->presences, presence)) {
        struct holder *holder = pawli_memory_holder_find(memory, presence->row.name);
        ret_rows[count] = presence->row;
        ret_rows[count].leases = holder != NULL ? holder->held_count : 0;
        count++;
    }
    pawli_memory_leave(memory);
    *ret_count = count;
    return PAWL_OK;
}
