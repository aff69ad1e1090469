/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.h - endpoints of webhooks, and publishing events to them.
 *
 * An *endpoint* is an address that wants events of some types. An *event* that is published becomes
 * one job for each enabled endpoint that wants its type, in one transaction: all of them or none.
 * Each endpoint is a queue of its own, `webhook/` and its name, so that one which hangs keeps
 * nobody else waiting; how many deliveries may be in flight, the lease and the retries are settings
 * of that queue. The jobs' payload is the event's, byte for byte; what else is known of the event
 * stands in their headers: `pawl-event-id`, `pawl-event-type`, and where they were given
 * `pawl-event-key` and `pawl-event-time` (microseconds since 1970), beside the publisher's own.
 *
 * These verbs work on a handle of any store, and on PostgreSQL other programs call the same by SQL
 * (docs/webhooks.md). One call at a time per handle. The rules of pawl.h hold, and its codes:
 * PAWL_INVALID, PAWL_NO_MEMORY, PAWL_DOWN, PAWL_UNKNOWN and PAWL_BROKEN as there. PAWL_INVALID also
 * for a store that has no endpoints (one that records a trace). No error quotes a secret, a
 * header's value, or a URL beyond its host.
 */
#ifndef PAWL_ENDPOINT_H
#define PAWL_ENDPOINT_H

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_ENDPOINTS_MAX            10000 /* endpoints of one store: what one claim can serve */
#define PAWL_ENDPOINT_NAME_MAX        100   /* bytes in an endpoint's name */
#define PAWL_ENDPOINT_URL_MAX         2048  /* bytes in its URL */
#define PAWL_ENDPOINT_TOPIC_MAX       128   /* bytes in a type of events, or in a pattern */
#define PAWL_ENDPOINT_TOPICS_MAX      100   /* patterns of one endpoint */
#define PAWL_ENDPOINT_TOPICS_LEN_MAX  4096  /* bytes in all of them, with the commas */
#define PAWL_ENDPOINT_HEADERS_MAX     16    /* headers of one endpoint */
#define PAWL_ENDPOINT_HEADERS_LEN_MAX 4096  /* bytes in all of them, as one text */
#define PAWL_ENDPOINT_SECRETS_MAX     4     /* secrets of one endpoint that sign at once */
#define PAWL_ENDPOINT_SECRET_MAX      94    /* bytes in a secret, as it is written */
#define PAWL_ENDPOINT_STATUSES_MAX    271   /* bytes in the list of statuses */
#define PAWL_ENDPOINT_REASON_MAX      255   /* bytes in the reason of a switch */
#define PAWL_ENDPOINT_TIMEOUT_MAX_MS  INT64_C(300000)  /* the longest that one delivery may take */
#define PAWL_ENDPOINT_RATE_MAX        INT64_C(6000000) /* the highest rate per minute */
#define PAWL_EVENT_ID_MAX             64               /* bytes in the id of an event */
#define PAWL_EVENT_KEEP_MS \
    (INT64_C(7) * 24 * 3600 * 1000)     /* how long an event can be replayed, where nobody says */
#define PAWL_PUBLISH_ENDPOINTS_MAX 1000 /* endpoints that one event may go to */
#define PAWL_PUBLISH_BYTES_MAX \
    (64 << 20) /* bytes of payloads and headers in one call, unless one event has more */
/* The jobs that one call may make: PAWL_BATCH_MAX. */

/* ---- settings */

/* Whether deliveries to an endpoint keep an order. */
typedef enum pawl_endpoint_ordering {
    PAWL_ORDERING_DEFAULT = 0,
    PAWL_ORDERING_NONE = 1, /* as fast as they can */
    PAWL_ORDERING_KEY = 2   /* events of one ordering key one at a time, in the order of publishing:
                               the first holds the others up until it is delivered or has failed */
} pawl_endpoint_ordering;

/* How a delivery looks. */
typedef enum pawl_endpoint_format {
    PAWL_FORMAT_DEFAULT = 0,
    PAWL_FORMAT_PLAIN = 1,            /* the payload as it is */
    PAWL_FORMAT_CLOUD_BINARY = 2,     /* CloudEvents 1.0: attributes in headers */
    PAWL_FORMAT_CLOUD_STRUCTURED = 3, /* CloudEvents 1.0: one JSON object */
} pawl_endpoint_format;

/* "none", "key"; "plain", "cloudevents-binary", "cloudevents-structured"; "?" for a number that is
 * none of them, or the default. */
PAWL_API const char *pawl_endpoint_ordering_name(pawl_endpoint_ordering ordering);
PAWL_API const char *pawl_endpoint_format_name(pawl_endpoint_format format);

/*
 * What is settable. What is left as pawl_endpoint_settings_init() makes it (NULL, PAWL_DEFAULT,
 * ..._DEFAULT) is the default where an endpoint is added, and stays as it is where one is set.
 */
typedef struct pawl_endpoint_settings {
    /* http:// or https:// and a host, printable ASCII without blanks, backslashes and credentials
     * (user@). That it may be called at all is not looked at here: `pawl endpoint` and the delivery
     * do. Needed to add. */
    const char *url;
    /* Patterns with commas between them: a type (`order.created`), `order.*` for everything below
     * order, at any depth, or `*`. Needed to add. */
    const char *topics;
    /* Sent with each delivery: see headers.h; default: none. May be secret. None of those that a
     * delivery sets itself: content-type, traceparent, webhook-..., ce-..., pawl-..., and what says
     * where a message goes and ends (host, content-length, transfer-encoding and the like). */
    const char *headers;
    /* Statuses from 400 to 499 that are not retried: numbers and ranges, `400,404-406`. Default:
     * empty, none. */
    const char *fail_statuses;
    int64_t timeout_ms;      /* of one delivery: default 30 s; to PAWL_ENDPOINT_TIMEOUT_MAX_MS */
    int64_t rate_per_minute; /* deliveries at most; default 0, no bound */
    pawl_endpoint_ordering ordering; /* default none */
    pawl_endpoint_format format;     /* default plain */

    /* Of the endpoint's queue. The rest of its settings is set by pawl_queue_set(); where this
     * lease or the timeout is set, and a delivery of timeout_ms would run into the execution
     * timeout, that is raised to a minute above timeout_ms. */
    int64_t lease_ms;        /* default 120 s: PAWL_LEASE_EXTERNAL */
    int64_t max_in_flight;   /* default 64, or as many as there are shards; 0: no bound */
    int64_t max_retries;     /* default 20 */
    int64_t backoff_base_ms; /* default 5 s */
    int64_t backoff_max_ms;  /* default 8 h: with the above, retries go on for 1 to 3 days */
} pawl_endpoint_settings;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_endpoint_settings_init(pawl_endpoint_settings *settings);

typedef struct pawl_endpoint_add_args {
    const char *name; /* letters, digits, `.`, `_` and `-`; the first no `.` or `-` */
    /* What deliveries are signed with, as Standard Webhooks writes it: whsec_... or whsk_..., and
     * base64 behind it. */
    const char *secret;
    const pawl_endpoint_settings *settings;
} pawl_endpoint_add_args;

/*
 * Add an endpoint, enabled. PAWL_EXISTS: there is one of this name. PAWL_HAS_JOBS: jobs are left in
 * the queue of this name, which would go to the new address: let them end, or cancel them.
 * PAWL_FULL: there are PAWL_ENDPOINTS_MAX. After PAWL_UNKNOWN ask by pawl_endpoint_get().
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_add(pawl_store *store,
                                                   const pawl_endpoint_add_args *args,
                                                   pawl_err *err);

/* Change settings. What is published from now on is published by them; jobs that are there keep the
 * order that they have. PAWL_GONE: there is no such endpoint. */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_set(pawl_store *store, const char *name,
                                                   const pawl_endpoint_settings *settings,
                                                   pawl_err *err);

typedef struct pawl_endpoint_rotate_args {
    const char *name;
    const char *secret; /* signs from now on, first among all */
    /* How long the secrets that it has sign beside it: so that whoever verifies can change over. 0:
     * not at all. None signs longer than it would have. */
    int64_t overlap_ms;
} pawl_endpoint_rotate_args;

/*
 * Give an endpoint another secret. PAWL_INVALID: it has this one already, in which case a repeated
 * call was done the first time. PAWL_FULL: more than PAWL_ENDPOINT_SECRETS_MAX would sign at once;
 * wait, or rotate without an overlap. PAWL_GONE.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_rotate(pawl_store *store,
                                                      const pawl_endpoint_rotate_args *args,
                                                      pawl_err *err);

typedef struct pawl_endpoint_switch {
    const char *name;
    const char *by;     /* who says so: a name as workers have */
    const char *reason; /* UTF-8 without control characters; NULL: none */
} pawl_endpoint_switch;

/*
 * Disable: from now on no event becomes a job for the endpoint, and its queue is paused, so that
 * nothing more is claimed; what is being delivered goes on. Enable: the other way round; what was
 * published meanwhile does not come. Who and why is on record until the next switch; where it is
 * so already, nothing changes, and the record neither. A publish that was under way may still make
 * a job. PAWL_GONE.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_disable(pawl_store *store,
                                                       const pawl_endpoint_switch *args,
                                                       pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_enable(pawl_store *store,
                                                      const pawl_endpoint_switch *args,
                                                      pawl_err *err);

/* What one who delivers has seen of an endpoint. */
typedef struct pawl_endpoint_mark_args {
    const char *name;
    const char *by;  /* who says so: a name as workers have */
    bool is_failing; /* false: it has just answered well */
    /* Disable it where it has been failing for so long, by the store's clock, and nobody has seen
     * it well since: default PAWL_FOREVER, never. `reason` as of a switch. */
    int64_t disable_after_ms;
    const char *reason;
} pawl_endpoint_mark_args;

typedef struct pawl_endpoint_marked {
    pawl_wall failing_since; /* 0: it is not */
    bool is_enabled;
} pawl_endpoint_marked;

/* All as the defaults are. Accepts NULL. */
PAWL_API void pawl_endpoint_mark_init(pawl_endpoint_mark_args *args);

/*
 * Put on record that an endpoint fails, since when it is not known to be well (the first one who
 * says so counts), or that it is well again. That outlives whoever delivers, and is shared by all
 * who do. Repeating it is harmless. No change of the endpoint's revision, unless it is disabled.
 * PAWL_GONE.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_mark(pawl_store *store,
                                                    const pawl_endpoint_mark_args *args,
                                                    pawl_endpoint_marked *ret_marked,
                                                    pawl_err *err);

/*
 * Remove an endpoint, its secrets and its queue's settings; the history of its jobs stays as long
 * as it is kept. Waits for publishes that are under way. PAWL_HAS_JOBS: jobs of it are Ready or
 * InFlight: disable it, cancel them or let them end, and remove it then. PAWL_GONE.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_remove(pawl_store *store, const char *name,
                                                      pawl_err *err);

/* ---- looking: no secret and no header's value is shown */

typedef struct pawl_endpoint {
    char name[PAWL_ENDPOINT_NAME_MAX + 1];
    char queue[PAWL_NAME_MAX + 1];
    char url[PAWL_ENDPOINT_URL_MAX + 1]; /* its path may be a secret: show it to those who ask */
    char topics[PAWL_ENDPOINT_TOPICS_LEN_MAX + 1];
    char header_names[PAWL_ENDPOINT_HEADERS_LEN_MAX + 1]; /* with commas between them */
    char fail_statuses[PAWL_ENDPOINT_STATUSES_MAX + 1];
    int64_t timeout_ms;
    int64_t rate_per_minute;
    pawl_endpoint_ordering ordering;
    pawl_endpoint_format format;
    int64_t secrets_count;              /* that sign now */
    pawl_queue_settings queue_settings; /* as they are now */

    bool is_enabled;
    pawl_wall switched_at; /* this and the next two: of the last switch; 0 and empty: none so far */
    char switched_by[PAWL_NAME_MAX + 1];
    char reason[PAWL_ENDPOINT_REASON_MAX + 1];
    /* Since when it has been failing, as those who deliver say (pawl_endpoint_mark()); 0: it has
     * not. Forgotten when it is enabled. */
    pawl_wall failing_since;

    int64_t revision; /* from 1; rises by one with each change by the verbs above */
    pawl_wall created_at;
    pawl_wall changed_at; /* by the verbs above */
} pawl_endpoint;

/* One endpoint. PAWL_GONE. */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_get(pawl_store *store, const char *name,
                                                   pawl_endpoint *ret_endpoint, pawl_err *err);

/* Endpoints by name (its bytes) above `after` (NULL: from the beginning). */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_list(pawl_store *store, const char *after,
                                                    pawl_endpoint *ret_rows, size_t rows_max,
                                                    size_t *ret_count, pawl_err *err);

/* ---- what a delivery needs: for those who deliver, and nobody else */

typedef struct pawl_endpoint_secret {
    char text[PAWL_ENDPOINT_SECRET_MAX + 1];
    pawl_wall until; /* 0: until it is rotated */
} pawl_endpoint_secret;

typedef struct pawl_endpoint_credentials {
    int64_t revision; /* this and the next as in pawl_endpoint: so that nobody takes those of one */
    pawl_wall created_at; /* for those of another of the same name */
    char headers[PAWL_ENDPOINT_HEADERS_LEN_MAX + 1];
    pawl_endpoint_secret secrets[PAWL_ENDPOINT_SECRETS_MAX]; /* that sign now, the newest first */
    size_t secrets_count;
} pawl_endpoint_credentials;

/* Its secrets and headers. PAWL_GONE. The caller clears them. */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_credentials_get(
    pawl_store *store, const char *name, pawl_endpoint_credentials *ret_credentials, pawl_err *err);

/* Overwrite them. Accepts NULL. */
PAWL_API void pawl_endpoint_credentials_clear(pawl_endpoint_credentials *credentials);

/* ---- publishing */

typedef struct pawl_publish_row {
    const char *type; /* words of letters, digits, `_` and `-` with full stops between them */
    /*
     * The event's id, which receivers tell repeats by: up to PAWL_EVENT_ID_MAX letters, digits, `_`
     * and `-`. NULL: the store makes one; name it to be able to repeat a lost call. Published again
     * with the same id and ordering key, nothing is made twice for an endpoint of the same name, as
     * long as it remembers the first.
     */
    const char *id;
    const void *payload; /* bytes, never looked into; NULL with a length of 0 is an empty payload */
    size_t payload_len;
    const char *ordering_key; /* NULL or empty: none. For endpoints that keep an order */
    /* The publisher's own: see headers.h. `content-type` and `traceparent` are passed on. Names
     * that begin with `pawl-` are not allowed. NULL or empty: none. */
    const char *headers;
    pawl_wall time; /* when it happened, to the year 9999; 0: when it is published */
    /* How long the event is kept, so that it can be replayed: default PAWL_EVENT_KEEP_MS; 0: not at
     * all. Whether anybody wants it now does not matter. */
    int64_t keep_ms;
} pawl_publish_row;

typedef struct pawl_published {
    pawl_code code; /* OK; EXISTS: nothing was made, for all of it is there already */
    char id[PAWL_EVENT_ID_MAX + 1];
    int64_t endpoints; /* enabled ones that want it */
    int64_t jobs;      /* made by this call */
} pawl_published;

/* An empty event, everything else as by default: call it first, then fill the row. */
PAWL_API void pawl_publish_init(pawl_publish_row *row);

/*
 * Publish events: all of them in one transaction, in the order given. All rows are checked first:
 * PAWL_INVALID names the row and nothing was done. PAWL_FULL: an event would go to more than
 * PAWL_PUBLISH_ENDPOINTS_MAX endpoints, or all of them would make more than PAWL_BATCH_MAX jobs, or
 * have more than PAWL_PUBLISH_BYTES_MAX; nothing was done. PAWL_UNKNOWN: repeat with the same ids.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_publish(pawl_store *store, const pawl_publish_row *rows,
                                              size_t rows_count, pawl_published *ret_results,
                                              pawl_err *err);

/* ---- replaying */

/* A place among the events that are kept, in the order in which they were published. */
typedef struct pawl_replay_place {
    pawl_wall at;
    int64_t seq;
} pawl_replay_place;

typedef struct pawl_replay_args {
    const char *name; /* the endpoint; where it is disabled, what is made waits */
    /* The id of one event, whether its type is wanted or not. NULL: all events of the range whose
     * types the endpoint wants. */
    const char *event;
    pawl_wall since; /* published then or later */
    pawl_wall until; /* published before; 0: no end */
    /* The name of the replay, as ids of events are: each event comes once for each such name,
     * however often it was delivered. NULL: only what has never become a job of the endpoint. */
    const char *as;
    pawl_replay_place after; /* `next` of the call before; zeroed: from the beginning */
    int64_t events_max;      /* looked at by this call: default 1000; to PAWL_BATCH_MAX */
} pawl_replay_args;

typedef struct pawl_replayed {
    int64_t events; /* of those that were asked for */
    int64_t jobs;   /* made by this call; the others were there */
    bool is_more;   /* go on from `next` */
    pawl_replay_place next;
} pawl_replayed;

/* All as the defaults are. Accepts NULL. */
PAWL_API void pawl_replay_init(pawl_replay_args *args);

/*
 * Deliver events again to one endpoint, or for the first time: each becomes a job with the event's
 * own id, type, time and headers, and its payload, byte for byte, as long as it is kept. One
 * transaction; what a call looks at is bounded by events_max, and what it makes by
 * PAWL_PUBLISH_BYTES_MAX: go on until is_more is false. Repeating a call makes nothing twice.
 * What is published while it goes on may or may not be seen. PAWL_GONE: there is no such endpoint,
 * or the event that is named is not kept.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_endpoint_replay(pawl_store *store,
                                                      const pawl_replay_args *args,
                                                      pawl_replayed *ret_replayed, pawl_err *err);

#ifdef __cplusplus
}
#endif

#endif
