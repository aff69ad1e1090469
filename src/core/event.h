/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event.h - an event that was published, and the jobs that it becomes: what of it stands in their
 * headers, and what their ids are.
 */
#ifndef PAWLI_CORE_EVENT_H
#define PAWLI_CORE_EVENT_H

#include "base/buffer.h"
#include "core/topic.h"
#include "pawl/endpoint.h"

#define PAWLI_ENDPOINT_QUEUE_PREFIX "webhook/"
#define PAWLI_CONTENT_TYPE_LEN_MAX  127 /* bytes in a content type that is passed on */
#define PAWLI_TRACEPARENT_LEN_MAX   255 /* bytes in a traceparent that is passed on */
#define PAWLI_EVENT_TIME_MAX_US     (INT64_C(253402300799) * 1000000) /* the year 9999 */

/* The name of an endpoint's queue: it fits. Returns `queue`. */
const char *pawli_endpoint_queue(const char *name, char queue[PAWL_NAME_MAX + 1]);

/* PAWL_INVALID names `field` and what is allowed. */
pawl_code pawli_endpoint_name_check(const char *field, const char *name, pawl_err *err);
pawl_code pawli_event_id_check(const char *id, pawl_err *err);

/* A publisher's headers: as pawli_headers_check(), and none that begins with `pawl-`. */
pawl_code pawli_event_headers_check(const char *headers, pawl_err *err);

/* The headers of an endpoint: as pawli_headers_check(), and none that a delivery sets itself, or
 * that says where a message goes or ends. */
pawl_code pawli_endpoint_headers_check(const char *headers, pawl_err *err);

/* An event on its way into a store. */
struct pawli_publish_event {
    const char *type;
    char id[PAWL_EVENT_ID_MAX + 1];
    bool is_minted; /* the id is a fresh UUID of version 7: no job of it can exist */
    const void *payload;
    size_t payload_len;
    const char *ordering_key; /* NULL: none */
    const char *headers;      /* of its jobs */
    int64_t keep_ms;          /* 0: it is not kept */
    const char *replay;       /* NULL: it is published; else the name of the replay */
};

/* Put the headers of the jobs of a row behind what `to` holds, with a NUL. PAWL_NO_MEMORY: as it
 * was. */
pawl_code pawli_event_headers_put(const pawl_publish_row *row, const char *id,
                                  struct pawli_buffer *to, pawl_err *err);

/*
 * The id of an event's job: from the event's id and the job's queue alone, so that an event that is
 * published again finds it; of a fresh event it begins with the event's own time. Of a replay its
 * name is in it, too. `row` is the job but for its id. SQL repeats this: pawl.event_job_id().
 */
pawl_id pawli_event_job_id(const struct pawli_publish_event *event, const pawl_enqueue_row *row,
                           int64_t shards);

/* Put the headers of an event behind what `to` holds, with its time where they have none, so that a
 * replay tells the same, and a NUL. Where there is no room for it in headers it is left out.
 * PAWL_NO_MEMORY: as it was. */
pawl_code pawli_event_headers_again(const char *headers, pawl_wall published_at,
                                    struct pawli_buffer *to, pawl_err *err);

/* Of a payload whose content type cannot be told. */
#define PAWLI_EVENT_BYTES_TYPE "application/octet-stream"

/* What is known of the event behind a job. Empty: not there. */
struct pawli_event_info {
    char id[PAWL_EVENT_ID_MAX + 1];
    char type[PAWL_ENDPOINT_TOPIC_MAX + 1];
    char key[PAWL_ORDERING_KEY_MAX + 1];
    char content_type[PAWLI_CONTENT_TYPE_LEN_MAX + 1];
    char traceparent[PAWLI_TRACEPARENT_LEN_MAX + 1];
    pawl_wall time; /* when it happened, else when it was published */
};

/*
 * Read them from a job as claim gives it. PAWL_INVALID: no event was published as this job: it has
 * no good id or type. What is too long to be passed on is left out; a content type then becomes
 * PAWLI_EVENT_BYTES_TYPE.
 */
PAWL_MUST_USE pawl_code pawli_event_read(const pawl_job *job, struct pawli_event_info *ret_info,
                                         pawl_err *err);

#endif
