/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * wire_inside.h - what the files of the wire share. Private to wire*.c.
 */
#ifndef PAWLI_DELIVER_WIRE_INSIDE_H
#define PAWLI_DELIVER_WIRE_INSIDE_H

#include "deliver/lane.h"
#include "deliver/wire.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define RETRY_AFTER_SIZE 64 /* of a value that means anything, with the closing NUL */

struct pawli_sending {
    struct pawli_wire *wire;
    CURL *easy;
    struct curl_slist *lines; /* of headers; an array, kept from request to request */
    size_t lines_max;
    void *tag;
    char host[PAWLI_HOST_SIZE]; /* the name that its addresses come from */
    bool has_name;              /* it is a name, and no address */
    struct pawli_lane *lane;
    struct pawli_lane_wait wait; /* in the lane, while it waits */
    bool is_waiting;             /* for a connection: libcurl does not know it yet */
    bool is_slow;                /* under way for longer than a lane has patience */
    int64_t timeout_ms;
    pawl_mono began;
    pawl_mono given_at; /* to libcurl */
    int64_t sends;
    size_t came; /* bytes of headers */
    size_t body;
    long status;            /* of the last header block that has begun */
    bool has_whole_headers; /* of an answer, not of what comes before one (1xx) */
    bool is_address_refused;
    bool is_stopped; /* the gate was shut */
    enum pawli_address_kind refused_kind;
    char retry_after[RETRY_AFTER_SIZE];
    char text[96];
    TAILQ_ENTRY(pawli_sending) place;
};

TAILQ_HEAD(pawli_sendings, pawli_sending);

struct watched {
    uint32_t events;         /* that the kernel tells of; 0: none */
    bool is_wanted;          /* by libcurl */
    bool is_ours;            /* opened and closed here, a connection */
    struct pawli_lane *lane; /* of such a one */
};

struct pawli_wire {
    struct pawli_wire_rules rules;
    struct pawli_wire_owner owner;
    const pawl_clock *clock;
    CURLM *multi;
    int epoll_fd;
    int wake_fd;
    atomic_bool is_woken;    /* wake_fd can be read */
    struct watched *watched; /* by descriptor */
    size_t watched_max;
    pawl_mono timer_at; /* when libcurl wants to be called; NEVER: it does not */
    struct pawli_sendings active, slow, waiting, idle; /* the first three: in order of time */
    struct pawli_lanes lanes;
    size_t active_count, idle_count; /* active: with those that wait */
};

/* wire_request.c: what is the same for each request of a handle. PAWL_NO_MEMORY, PAWL_DOWN. */
pawl_code pawli_sending_prepare(struct pawli_sending *sending, pawl_err *err);

/* And what each has of its own. Likewise. */
pawl_code pawli_sending_set_up(struct pawli_sending *sending,
                               const struct pawli_wire_request *request, pawl_err *err);

/* wire.c: a connection's descriptor was opened; and for libcurl, which closes it by this. */
void pawli_wire_opened(struct pawli_wire *wire, struct pawli_lane *lane, int fd);
int pawli_wire_close(void *user, curl_socket_t fd);

/* How it has ended, by libcurl's code. */
struct pawli_wire_end pawli_sending_end(struct pawli_sending *sending, CURLcode code);

#endif
