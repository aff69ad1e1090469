/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * routes.c - the table of everything that can be asked of the server.
 * Owns:  names, methods, paths, scopes and bounds: what docs/openapi.yaml describes.
 * Never: does any of it.
 */
#include "serve/route.h"

#include "serve/api.h"
#include "serve/claim.h"

#define NONE    PAWLI_SCOPE_NONE
#define PRODUCE PAWLI_SCOPE_PRODUCE
#define WORK    PAWLI_SCOPE_WORK
#define READ    PAWLI_SCOPE_READ
#define ADMIN   PAWLI_SCOPE_ADMIN

#define ANY   PAWLI_REACH_NONE
#define NAMED PAWLI_REACH_NAMED
#define ALL   PAWLI_REACH_ALL

#define NOTHING PAWLI_BODY_NONE, 0
#define PAYLOAD PAWLI_BODY_BYTES, PAWL_PAYLOAD_MAX
#define JOBS    PAWLI_BODY_JSON, (16u << 20)
#define LINES   PAWLI_BODY_LINES, (4u << 20)
#define ROWS    PAWLI_BODY_JSON, (4u << 20) /* so many that a batch fits, and texts of errors */
#define SMALL   PAWLI_BODY_JSON, (64u << 10)

#define STORE PAWLI_PLACE_STORE
#define ONCE  PAWLI_PLACE_AT_ONCE

/* clang-format off */
const struct pawli_route pawli_routes[] = {
    {"livez", "GET", "/livez", NONE, ANY, NOTHING, ONCE, pawli_api_livez},
    {"readyz", "GET", "/readyz", NONE, ANY, NOTHING, STORE, pawli_api_readyz},
    {"metrics", "GET", "/metrics", READ, ALL, NOTHING, ONCE, pawli_api_metrics},

    {"enqueue", "POST", "/v1/queues/{queue}/jobs", PRODUCE, NAMED, PAYLOAD, STORE,
     pawli_api_enqueue},
    {"enqueue-many", "POST", "/v1/jobs", PRODUCE, NAMED, JOBS, STORE, pawli_api_enqueue_many},
    {"enqueue-lines", "POST", "/v1/jobs/stream", PRODUCE, NAMED, LINES, STORE,
     pawli_api_enqueue_lines},

    {"publish", "POST", "/v1/events/{type}", PRODUCE, NAMED, PAYLOAD, STORE, pawli_api_publish},
    {"publish-many", "POST", "/v1/events", PRODUCE, NAMED, JOBS, STORE, pawli_api_publish_many},

    {"claim", "POST", "/v1/claim", WORK, NAMED, SMALL, STORE, pawli_api_claim},
    {"mine", "POST", "/v1/mine", WORK, ALL, SMALL, STORE, pawli_api_mine},
    {"renew", "POST", "/v1/renew", WORK, ANY, ROWS, STORE, pawli_api_renew},
    {"settle", "POST", "/v1/settle", WORK, ANY, JOBS, STORE, pawli_api_settle},
    {"release", "POST", "/v1/release", WORK, ANY, ROWS, STORE, pawli_api_release},
    {"renew-one", "POST", "/v1/jobs/{id}/renew", WORK, ANY, SMALL, STORE, pawli_api_renew_one},
    {"settle-one", "POST", "/v1/jobs/{id}/settle", WORK, ANY, SMALL, STORE, pawli_api_settle_one},
    {"release-one", "POST", "/v1/jobs/{id}/release", WORK, ANY, SMALL, STORE,
     pawli_api_release_one},

    {"jobs", "GET", "/v1/jobs", READ, NAMED, NOTHING, STORE, pawli_api_jobs},
    {"job", "GET", "/v1/jobs/{id}", READ, NAMED, NOTHING, STORE, pawli_api_job},
    {"payload", "GET", "/v1/jobs/{id}/payload", READ, NAMED, NOTHING, STORE, pawli_api_payload},
    {"attempts", "GET", "/v1/jobs/{id}/attempts", READ, NAMED, NOTHING, STORE, pawli_api_attempts},
    {"changes", "GET", "/v1/changes", READ, NAMED, NOTHING, ONCE, pawli_api_changes},
    {"leases", "GET", "/v1/leases", READ, NAMED, NOTHING, STORE, pawli_api_leases},
    {"workers", "GET", "/v1/workers", READ, ALL, NOTHING, STORE, pawli_api_workers},

    {"cancel", "POST", "/v1/cancel", ADMIN, NAMED, ROWS, STORE, pawli_api_cancel},
    {"redrive", "POST", "/v1/redrive", ADMIN, NAMED, ROWS, STORE, pawli_api_redrive},
    {"discard", "POST", "/v1/discard", ADMIN, NAMED, ROWS, STORE, pawli_api_discard},
    {"cancel-one", "POST", "/v1/jobs/{id}/cancel", ADMIN, NAMED, NOTHING, STORE,
     pawli_api_cancel_one},
    {"redrive-one", "POST", "/v1/jobs/{id}/redrive", ADMIN, NAMED, NOTHING, STORE,
     pawli_api_redrive_one},
    {"discard-one", "POST", "/v1/jobs/{id}/discard", ADMIN, NAMED, NOTHING, STORE,
     pawli_api_discard_one},

    {"queues", "GET", "/v1/queues", READ, NAMED, NOTHING, STORE, pawli_api_queues},
    {"queue", "GET", "/v1/queues/{queue}", READ, NAMED, NOTHING, STORE, pawli_api_queue},
    {"queue-set", "PUT", "/v1/queues/{queue}", ADMIN, NAMED, SMALL, STORE, pawli_api_queue_set},
    {"queue-stats", "GET", "/v1/queues/{queue}/stats", READ, NAMED, NOTHING, STORE,
     pawli_api_queue_stats},
    {"stats", "GET", "/v1/stats", READ, NAMED, NOTHING, STORE, pawli_api_stats},
    {"pause", "POST", "/v1/queues/{queue}/pause", ADMIN, NAMED, NOTHING, STORE, pawli_api_pause},
    {"resume", "POST", "/v1/queues/{queue}/resume", ADMIN, NAMED, NOTHING, STORE, pawli_api_resume},

    {"endpoints", "GET", "/v1/endpoints", READ, NAMED, NOTHING, STORE, pawli_api_endpoints},
    {"endpoint", "GET", "/v1/endpoints/{name}", READ, NAMED, NOTHING, STORE, pawli_api_endpoint},
    {"endpoint-add", "POST", "/v1/endpoints/{name}", ADMIN, NAMED, SMALL, STORE,
     pawli_api_endpoint_add},
    {"endpoint-set", "PATCH", "/v1/endpoints/{name}", ADMIN, NAMED, SMALL, STORE,
     pawli_api_endpoint_set},
    {"endpoint-remove", "DELETE", "/v1/endpoints/{name}", ADMIN, NAMED, NOTHING, STORE,
     pawli_api_endpoint_remove},
    {"endpoint-rotate", "POST", "/v1/endpoints/{name}/rotate", ADMIN, NAMED, SMALL, STORE,
     pawli_api_endpoint_rotate},
    {"endpoint-disable", "POST", "/v1/endpoints/{name}/disable", ADMIN, NAMED, SMALL, STORE,
     pawli_api_endpoint_disable},
    {"endpoint-enable", "POST", "/v1/endpoints/{name}/enable", ADMIN, NAMED, SMALL, STORE,
     pawli_api_endpoint_enable},
    {"endpoint-test", "POST", "/v1/endpoints/{name}/test", ADMIN, NAMED, NOTHING, STORE,
     pawli_api_endpoint_test},

    {"worklease-acquire", "POST", "/v1/workleases/{domain}/acquire", WORK, NAMED, SMALL, STORE,
     pawli_api_worklease_acquire},
    {"worklease-succeed", "POST", "/v1/workleases/{domain}/succeed", WORK, NAMED, SMALL, STORE,
     pawli_api_worklease_succeed},
    {"worklease-fail", "POST", "/v1/workleases/{domain}/fail", WORK, NAMED, SMALL, STORE,
     pawli_api_worklease_fail},
    {"worklease-renew", "POST", "/v1/workleases/{domain}/renew", WORK, NAMED, SMALL, STORE,
     pawli_api_worklease_renew},
    {"workleases", "GET", "/v1/workleases", READ, ALL, NOTHING, STORE, pawli_api_workleases},
    {"worklease", "GET", "/v1/workleases/{domain}", READ, NAMED, NOTHING, STORE,
     pawli_api_worklease},
    {"worklease-backlog", "GET", "/v1/workleases/{domain}/backlog", READ, NAMED, NOTHING, STORE,
     pawli_api_worklease_backlog},
    {"worklease-terminal", "GET", "/v1/workleases/{domain}/terminal", READ, NAMED, NOTHING, STORE,
     pawli_api_worklease_terminal},
};
/* clang-format on */

const size_t pawli_routes_count = sizeof(pawli_routes) / sizeof(pawli_routes[0]);
