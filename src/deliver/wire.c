/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * wire.c - the loop around libcurl: requests that begin, go on, end or are stopped.
 * Owns:  libcurl's multi handle, the descriptors that are waited for, the handles of requests.
 * Never: blocks but where it waits; tells of a request after its end.
 */
#include "deliver/wire_inside.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_MAX   256
#define IDLE_MAX     256 /* handles that are kept for further requests */
#define WAIT_MOST_MS 500 /* a suspended machine is noticed so long after it woke up */

void pawli_wire_rules_init(struct pawli_wire_rules *rules)
{
    *rules = (struct pawli_wire_rules){
        .connect_ms = 10000, .headers_max = 65536, .body_max = 65536, .connections_max = 1000};
}

static pawl_mono now_of(const struct pawli_wire *wire)
{
    return wire->clock->mono(wire->clock->user);
}

/* ---------------------------------------------------------------- what libcurl waits for */

/* What the kernel is asked to watch of a descriptor; NULL: there is no memory for it. */
static struct watched *watched_of(struct pawli_wire *wire, int fd)
{
    size_t index = (size_t)fd;
    if (index >= wire->watched_max) {
        size_t max = index + 1 > 2 * wire->watched_max ? index + 1 : 2 * wire->watched_max;
        struct watched *longer = realloc(wire->watched, max * sizeof(longer[0]));
        if (longer == NULL)
            return NULL;
        memset(longer + wire->watched_max, 0, (max - wire->watched_max) * sizeof(longer[0]));
        wire->watched = longer;
        wire->watched_max = max;
    }
    return &wire->watched[index];
}

/* Nobody waits for it: from now on the kernel does not tell of it. */
static void unwatch(struct pawli_wire *wire, int fd)
{
    (void)epoll_ctl(wire->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* it is in there */
    wire->watched[fd].events = 0;
}

/* It is closed: from now on its number means nothing, or another one. */
static void forget(struct pawli_wire *wire, struct watched *watched)
{
    struct pawli_lane *lane = watched->lane;
    *watched = (struct watched){.events = 0};
    if (lane != NULL) {
        lane->connections--;
        pawli_lane_leave(&wire->lanes, lane);
    }
}

/* Let the kernel tell of `events`. What stands in the table may be of one that was closed without a
 * word: then the kernel does not know this one yet. */
static bool watch(struct pawli_wire *wire, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    int how = wire->watched[fd].events != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int rc = epoll_ctl(wire->epoll_fd, how, fd, &event);
    if (rc != 0 && errno == ENOENT)
        rc = epoll_ctl(wire->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    if (rc == 0)
        wire->watched[fd].events = events;
    return rc == 0;
}

/*
 * Whether libcurl has closed it without a word: from 7.88 to 8.1 it does that to a connection that
 * has not come about. Such a one is waited for to be written to, one that is kept is not. The
 * kernel knows whether the number still means what it meant.
 */
static bool is_closed_silently(const struct pawli_wire *wire, int fd)
{
    struct epoll_event event = {.events = wire->watched[fd].events, .data = {.fd = fd}};
    return (event.events & EPOLLOUT) != 0 &&
           epoll_ctl(wire->epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0;
}

/*
 * A connection that is kept for further requests stays watched, though nobody waits for it: mostly
 * the next request comes before anything else does, and wants the same. We hear of its end, as it
 * is we who close it; descriptors that libcurl has for itself it closes without a word.
 */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
    struct pawli_wire *wire = user;
    uint32_t events = 0;
    struct watched *watched = watched_of(wire, fd);
    (void)easy;
    (void)socket_user;
    if (watched == NULL)
        return -1;
    watched->is_wanted = what != CURL_POLL_REMOVE;
    if ((what & CURL_POLL_IN) != 0)
        events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0)
        events |= EPOLLOUT;
    if (!watched->is_wanted) {
        if (!watched->is_ours && watched->events != 0)
            unwatch(wire, fd);
        else if (watched->is_ours && is_closed_silently(wire, fd))
            forget(wire, watched);
        return 0;
    }
    return watched->events == events || watch(wire, fd, events) ? 0 : -1;
}

void pawli_wire_opened(struct pawli_wire *wire, struct pawli_lane *lane, int fd)
{
    struct watched *watched = watched_of(wire, fd);
    if (watched == NULL)
        return; /* it is watched as those of libcurl's own are, and not counted */
    lane->connections++;
    lane->users++;
    forget(wire, watched); /* one that was closed without a word may have had its number */
    *watched = (struct watched){.is_ours = true, .lane = lane};
}

int pawli_wire_close(void *user, curl_socket_t fd)
{
    struct pawli_wire *wire = user;
    if ((size_t)fd < wire->watched_max) {
        if (wire->watched[fd].events != 0)
            unwatch(wire, fd);
        forget(wire, &wire->watched[fd]);
    }
    return close(fd);
}

static int on_timer(CURLM *multi, long ms, void *user)
{
    struct pawli_wire *wire = user;
    (void)multi;
    wire->timer_at = ms < 0 ? PAWLI_MONO_NEVER : pawli_mono_add_ms(now_of(wire), ms);
    return 0;
}

/* ---------------------------------------------------------------- life */

static bool set_multi(struct pawli_wire *wire)
{
    CURLM *multi = wire->multi;
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, wire) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_TIMERDATA, wire) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, wire->rules.connections_max) ==
               CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) == CURLM_OK;
}

static bool open_waits(struct pawli_wire *wire)
{
    wire->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    wire->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = wire->wake_fd}};
    return wire->epoll_fd >= 0 && wire->wake_fd >= 0 &&
           epoll_ctl(wire->epoll_fd, EPOLL_CTL_ADD, wire->wake_fd, &event) == 0;
}

pawl_code pawli_wire_new(const struct pawli_wire_rules *rules, const struct pawli_wire_owner *owner,
                         const pawl_clock *clock, struct pawli_wire **ret_wire, pawl_err *err)
{
    assert(rules != NULL && owner != NULL && owner->may_send != NULL && owner->ended != NULL);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return pawli_fail(err, PAWL_DOWN, "libcurl cannot be used");
    struct pawli_wire *wire = calloc(1, sizeof(*wire));
    if (wire == NULL) {
        curl_global_cleanup();
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    wire->rules = *rules;
    if (rules->proxy != NULL && rules->proxy[0] == '\0')
        wire->rules.proxy = NULL; /* so libcurl has it: then it is we who look at addresses */
    wire->owner = *owner;
    wire->clock = clock;
    wire->timer_at = PAWLI_MONO_NEVER;
    wire->epoll_fd = wire->wake_fd = -1;
    TAILQ_INIT(&wire->active);
    TAILQ_INIT(&wire->slow);
    TAILQ_INIT(&wire->waiting);
    RB_INIT(&wire->lanes);
    TAILQ_INIT(&wire->idle);
    wire->multi = curl_multi_init();
    pawl_code code = PAWL_OK;
    if (wire->multi == NULL || !set_multi(wire))
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    else if (!open_waits(wire))
        code = pawli_fail(err, PAWL_DOWN, "no descriptors to wait with: %s", strerror(errno));
    if (code == PAWL_OK)
        *ret_wire = wire;
    else
        pawli_wire_free(wire);
    return code;
}

static void free_sending(struct pawli_sending *sending)
{
    if (sending == NULL)
        return;
    curl_easy_cleanup(sending->easy);
    free(sending->lines);
    free(sending);
}

static struct pawli_lane *take_off(struct pawli_wire *wire, struct pawli_sending *sending);

void pawli_wire_free(struct pawli_wire *wire)
{
    struct pawli_sending *sending;
    if (wire == NULL)
        return;
    while ((sending = TAILQ_FIRST(&wire->waiting)) != NULL) { /* first: none of them begins now */
        pawli_lane_leave(&wire->lanes, take_off(wire, sending));
        free_sending(sending);
    }
    while ((sending = TAILQ_FIRST(&wire->active)) != NULL)
        (void)pawli_wire_stop(wire, sending);
    while ((sending = TAILQ_FIRST(&wire->slow)) != NULL)
        (void)pawli_wire_stop(wire, sending);
    while ((sending = TAILQ_FIRST(&wire->idle)) != NULL) {
        TAILQ_REMOVE(&wire->idle, sending, place);
        free_sending(sending);
    }
    (void)curl_multi_cleanup(wire->multi); /* nothing is in it but kept connections */
    for (size_t i = 0; i < wire->watched_max; i++)
        forget(wire, &wire->watched[i]); /* what was closed without a word */
    free(wire->watched);
    if (wire->epoll_fd >= 0)
        (void)close(wire->epoll_fd);
    if (wire->wake_fd >= 0)
        (void)close(wire->wake_fd);
    free(wire);
    curl_global_cleanup();
}

/* ---------------------------------------------------------------- one request */

static pawl_code take_idle(struct pawli_wire *wire, struct pawli_sending **ret_sending,
                           pawl_err *err)
{
    struct pawli_sending *sending = TAILQ_FIRST(&wire->idle);
    *ret_sending = sending;
    if (sending != NULL) {
        TAILQ_REMOVE(&wire->idle, sending, place);
        wire->idle_count--;
        return PAWL_OK;
    }
    *ret_sending = sending = calloc(1, sizeof(*sending));
    if (sending == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    sending->wire = wire;
    sending->easy = curl_easy_init();
    return sending->easy != NULL ? pawli_sending_prepare(sending, err)
                                 : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

/* Forget all of it but what each request needs alike. */
static void put_idle(struct pawli_wire *wire, struct pawli_sending *sending)
{
    if (wire->idle_count >= IDLE_MAX) {
        free_sending(sending);
        return;
    }
    *sending = (struct pawli_sending){.wire = wire,
                                      .easy = sending->easy,
                                      .lines = sending->lines,
                                      .lines_max = sending->lines_max};
    TAILQ_INSERT_HEAD(&wire->idle, sending, place);
    wire->idle_count++;
}

/* Give it to libcurl. False: memory ran out; it is as before. */
static bool begin(struct pawli_wire *wire, struct pawli_sending *sending)
{
    if (curl_multi_add_handle(wire->multi, sending->easy) != CURLM_OK)
        return false;
    TAILQ_INSERT_TAIL(&wire->active, sending, place);
    sending->given_at = now_of(wire);
    sending->lane->under_way++;
    return true;
}

static void put_waiting(struct pawli_wire *wire, struct pawli_sending *sending)
{
    sending->is_waiting = true;
    sending->wait.tag = sending;
    TAILQ_INSERT_TAIL(&wire->waiting, sending, place);
    TAILQ_INSERT_TAIL(&sending->lane->waiting, &sending->wait, place);
}

static void take_waiting(struct pawli_wire *wire, struct pawli_sending *sending)
{
    sending->is_waiting = false;
    TAILQ_REMOVE(&wire->waiting, sending, place);
    TAILQ_REMOVE(&sending->lane->waiting, &sending->wait, place);
}

pawl_code pawli_wire_send(struct pawli_wire *wire, const struct pawli_wire_request *request,
                          struct pawli_sending **ret_sending, pawl_err *err)
{
    assert(request->target != NULL && request->timeout_ms > 0);
    struct pawli_sending *sending;
    pawl_code code = take_idle(wire, &sending, err);
    if (code == PAWL_OK) {
        sending->began = now_of(wire);
        code = pawli_sending_set_up(sending, request, err);
    }
    if (code == PAWL_OK) {
        sending->lane = pawli_lane_join(&wire->lanes, request->target);
        if (sending->lane == NULL)
            code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    if (code == PAWL_OK && !pawli_lane_has_room(sending->lane)) {
        put_waiting(wire, sending);
    } else if (code == PAWL_OK && !begin(wire, sending)) {
        pawli_lane_leave(&wire->lanes, sending->lane);
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    if (code != PAWL_OK) {
        free_sending(sending);
        return code;
    }
    wire->active_count++;
    *ret_sending = sending;
    return PAWL_OK;
}

/* It waits no more. What it has waited is a part of its time. */
static void begin_late(struct pawli_wire *wire, struct pawli_sending *sending)
{
    int64_t waited_ms = pawli_mono_diff_ms(sending->began, now_of(wire));
    int64_t left_ms = sending->timeout_ms > waited_ms ? sending->timeout_ms - waited_ms : 1;
    take_waiting(wire, sending);
    if (curl_easy_setopt(sending->easy, CURLOPT_TIMEOUT_MS, (long)left_ms) == CURLE_OK &&
        begin(wire, sending))
        return;
    struct pawli_wire_end end = pawli_sending_end(sending, CURLE_OUT_OF_MEMORY);
    wire->active_count--;
    pawli_lane_leave(&wire->lanes, sending->lane);
    wire->owner.ended(wire->owner.user, sending->tag, &end);
    put_idle(wire, sending);
}

/* Somebody has waited for the connection that is free now. */
static void begin_next(struct pawli_wire *wire, struct pawli_lane *lane)
{
    struct pawli_lane_wait *wait;
    while ((wait = TAILQ_FIRST(&lane->waiting)) != NULL && pawli_lane_has_room(lane))
        begin_late(wire, wait->tag);
}

/* When the first of those that wait gets a connection of its own. */
static pawl_mono patience_ends(const struct pawli_wire *wire)
{
    const struct pawli_sending *first = TAILQ_FIRST(&wire->waiting);
    return first == NULL ? PAWLI_MONO_NEVER
                         : pawli_mono_add_ms(first->began, PAWLI_LANE_PATIENCE_MS);
}

/* Requests that take long leave their places to others. */
static void pass_slow(struct pawli_wire *wire, pawl_mono now)
{
    struct pawli_sending *sending;
    while ((sending = TAILQ_FIRST(&wire->active)) != NULL &&
           pawli_mono_diff_ms(sending->given_at, now) >= PAWLI_LANE_PATIENCE_MS) {
        TAILQ_REMOVE(&wire->active, sending, place);
        TAILQ_INSERT_TAIL(&wire->slow, sending, place);
        sending->is_slow = true;
        sending->lane->slow++;
        begin_next(wire, sending->lane);
    }
}

static void begin_due(struct pawli_wire *wire)
{
    pawl_mono now = now_of(wire);
    pass_slow(wire, now);
    while (!pawli_mono_is_before(now, patience_ends(wire)))
        begin_late(wire, TAILQ_FIRST(&wire->waiting));
}

/* Its lane stays until the caller has left it. */
static struct pawli_lane *take_off(struct pawli_wire *wire, struct pawli_sending *sending)
{
    wire->active_count--;
    if (sending->is_waiting) {
        take_waiting(wire, sending);
        return sending->lane;
    }
    (void)curl_multi_remove_handle(wire->multi, sending->easy); /* it is in there */
    if (sending->is_slow)
        TAILQ_REMOVE(&wire->slow, sending, place);
    else
        TAILQ_REMOVE(&wire->active, sending, place);
    sending->lane->slow -= sending->is_slow;
    sending->lane->under_way--;
    return sending->lane;
}

struct pawli_wire_end pawli_wire_stop(struct pawli_wire *wire, struct pawli_sending *sending)
{
    /* An answer that is whole is one, whoever stops it now. */
    struct pawli_wire_end end = pawli_sending_end(sending, CURLE_ABORTED_BY_CALLBACK);
    end.transfer.retry_after = NULL; /* it would not hold */
    end.text = "stopped";
    struct pawli_lane *lane = take_off(wire, sending);
    put_idle(wire, sending);
    begin_next(wire, lane);
    pawli_lane_leave(&wire->lanes, lane);
    return end;
}

/* ---------------------------------------------------------------- the loop */

static bool is_multiplexed(CURL *easy)
{
    long version = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version); /* 0: not known */
    return version >= CURL_HTTP_VERSION_2_0;
}

static void tell_ended(struct pawli_wire *wire)
{
    CURLMsg *message;
    int left = 0;
    while ((message = curl_multi_info_read(wire->multi, &left)) != NULL) {
        struct pawli_sending *sending = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &sending); /* was set */
        struct pawli_lane *lane = take_off(wire, sending);
        if (code == CURLE_OK)
            lane->is_shared = is_multiplexed(sending->easy);
        begin_next(wire, lane); /* before others are sent: who has waited goes first */
        pawli_lane_leave(&wire->lanes, lane);
        struct pawli_wire_end end = pawli_sending_end(sending, code);
        wire->owner.ended(wire->owner.user, sending->tag, &end);
        put_idle(wire, sending);
    }
}

static void serve(struct pawli_wire *wire, const struct epoll_event *event)
{
    uint64_t count;
    int running = 0;
    int fd = event->data.fd;
    if (fd == wire->wake_fd) {
        (void)!read(wire->wake_fd, &count, sizeof(count)); /* how often does not matter */
        atomic_store(&wire->is_woken, false);
        return;
    }
    if (!wire->watched[fd].is_wanted) { /* a kept connection was closed, or says more than asked */
        if (wire->watched[fd].events != 0)
            unwatch(wire, fd);
        return;
    }
    int what = ((event->events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
               ((event->events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
               ((event->events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
    (void)curl_multi_socket_action(wire->multi, fd, what, &running);
}

static bool is_timer_due(const struct pawli_wire *wire)
{
    return !pawli_mono_is_before(now_of(wire), wire->timer_at);
}

static int64_t wait_of(const struct pawli_wire *wire, int64_t wait_ms)
{
    pawl_mono now = now_of(wire);
    pawl_mono next = pawli_mono_min(wire->timer_at, patience_ends(wire));
    wait_ms = wait_ms < 0 ? 0 : wait_ms < WAIT_MOST_MS ? wait_ms : WAIT_MOST_MS;
    if (pawli_mono_is_before(next, pawli_mono_add_ms(now, wait_ms)))
        wait_ms = pawli_mono_is_before(now, next) ? (next.us - now.us + 999) / 1000 : 0;
    return wait_ms;
}

void pawli_wire_turn(struct pawli_wire *wire, int64_t wait_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int running = 0;
    int count = epoll_wait(wire->epoll_fd, events, EVENTS_MAX, (int)wait_of(wire, wait_ms));
    for (int i = 0; i < count; i++)
        serve(wire, &events[i]);
    if (is_timer_due(wire)) {
        wire->timer_at = PAWLI_MONO_NEVER; /* libcurl sets it again where it wants to */
        (void)curl_multi_socket_action(wire->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    tell_ended(wire);
    begin_due(wire);
}

void pawli_wire_wake(struct pawli_wire *wire)
{
    static const uint64_t one = 1;
    if (atomic_exchange(&wire->is_woken, true))
        return;                                     /* it has not looked yet */
    (void)!write(wire->wake_fd, &one, sizeof(one)); /* full: it is readable already */
}

size_t pawli_wire_count(const struct pawli_wire *wire)
{
    return wire->active_count;
}
