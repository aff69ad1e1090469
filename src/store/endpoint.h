/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.h - the part of the port for endpoints and publishing. The contracts are those of
 * pawl/endpoint.h; endpoint.c checks the arguments, for all stores.
 */
#ifndef PAWLI_STORE_ENDPOINT_H
#define PAWLI_STORE_ENDPOINT_H

#include "core/event.h"
#include "pawl/endpoint.h"
#include "store/store.h"

/* Whether an endpoint is to be enabled or disabled. */
struct pawli_endpoint_turn {
    const pawl_endpoint_switch *args;
    bool is_enabled;
};

struct pawli_endpoint_ops {
    /* The settings have no defaults left in them. */
    pawl_code (*add)(pawl_store *store, const pawl_endpoint_add_args *args, pawl_err *err);
    pawl_code (*set)(pawl_store *store, const char *name, const pawl_endpoint_settings *settings,
                     pawl_err *err);
    pawl_code (*rotate)(pawl_store *store, const pawl_endpoint_rotate_args *args, pawl_err *err);
    pawl_code (*turn)(pawl_store *store, const struct pawli_endpoint_turn *turn, pawl_err *err);
    pawl_code (*remove)(pawl_store *store, const char *name, pawl_err *err);

    pawl_code (*get)(pawl_store *store, const char *name, pawl_endpoint *ret_endpoint,
                     pawl_err *err);
    pawl_code (*list)(pawl_store *store, const char *after, pawl_endpoint *ret_rows,
                      size_t rows_max, size_t *ret_count, pawl_err *err);
    pawl_code (*credentials)(pawl_store *store, const char *name,
                             pawl_endpoint_credentials *ret_credentials, pawl_err *err);

    pawl_code (*publish)(pawl_store *store, const struct pawli_publish_event *events,
                         size_t events_count, pawl_published *ret_results, pawl_err *err);
    pawl_code (*mark)(pawl_store *store, const pawl_endpoint_mark_args *args,
                      pawl_endpoint_marked *ret_marked, pawl_err *err);
    pawl_code (*replay)(pawl_store *store, const pawl_replay_args *args,
                        pawl_replayed *ret_replayed, pawl_err *err);
};

/* What to say of an endpoint, by its name. */
pawl_code pawli_endpoint_gone(const char *name, pawl_err *err);
pawl_code pawli_event_gone(const char *id, pawl_err *err);
pawl_code pawli_endpoint_exists(const char *name, pawl_err *err);
pawl_code pawli_endpoint_has_jobs(const char *name, pawl_err *err);
pawl_code pawli_endpoints_full(pawl_err *err);
pawl_code pawli_endpoint_secrets_full(const char *name, pawl_err *err);
pawl_code pawli_endpoint_same_secret(const char *name, pawl_err *err);

/* What to say of an event that has too many endpoints, and of a call that makes too many jobs. */
pawl_code pawli_publish_too_wide(const char *type, pawl_err *err);
pawl_code pawli_publish_too_many(pawl_err *err);

/* What a mark says of an endpoint; and whether it is to be disabled by it. */
void pawli_endpoint_mark(pawl_endpoint *row, const pawl_endpoint_mark_args *args, pawl_wall now);
bool pawli_endpoint_is_hopeless(const pawl_endpoint *row, const pawl_endpoint_mark_args *args,
                                pawl_wall now);

/* Put what a call sets over the settings of an endpoint's queue. `timeout_ms` is what one delivery
 * may take from now on: the execution timeout is raised where it would cut one off (NFR-002). */
void pawli_endpoint_queue_settings(const pawl_endpoint_settings *settings, int64_t timeout_ms,
                                   pawl_queue_settings *queue);

/* The names of headers with commas between them: they fit. */
void pawli_endpoint_header_names(const char *headers,
                                 char names[PAWL_ENDPOINT_HEADERS_LEN_MAX + 1]);

/*
 * Put a secret before those that there are: what has expired goes, the others sign until the
 * overlap is over. PAWL_INVALID: it is one of them; PAWL_FULL: there would be too many; then
 * nothing was changed.
 */
pawl_code pawli_endpoint_rotate(pawl_endpoint_credentials *credentials,
                                const pawl_endpoint_rotate_args *args, pawl_wall now,
                                pawl_err *err);

/* Take out the secrets that sign no more. */
void pawli_endpoint_secrets_prune(pawl_endpoint_credentials *credentials, pawl_wall now);

/* Where a replay begins: behind this place. */
pawl_replay_place pawli_replay_begin(const pawl_replay_args *args);

/* An event that is kept, as a store reads it. All borrowed. */
struct pawli_kept_event {
    pawl_replay_place place;
    const char *id;
    const char *type;
    bool is_minted;
    const void *payload;
    size_t payload_len;
    const char *ordering_key; /* NULL: none */
    const char *headers;
};

/* To whom it is replayed. */
struct pawli_replay_target {
    const pawl_replay_args *args;
    char queue[PAWL_NAME_MAX + 1];
    const char *topics;
    bool is_ordered;
    int64_t shards;
};

/* Whether a replay is about this event. */
bool pawli_replay_wants(const struct pawli_replay_target *target,
                        const struct pawli_kept_event *event);

/* The job that it becomes. `headers` is where its headers are put; both hold as long as the event
 * and that do. PAWL_NO_MEMORY. */
pawl_code pawli_replay_row(const struct pawli_replay_target *target,
                           const struct pawli_kept_event *event, struct pawli_buffer *headers,
                           pawl_enqueue_row *ret_row, pawl_err *err);

/* The verdict on an event, once it is known how many of its jobs were there. */
void pawli_published(const struct pawli_publish_event *event, int64_t endpoints, int64_t jobs,
                     pawl_published *ret_result);

#endif
