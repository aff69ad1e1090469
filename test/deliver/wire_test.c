/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * wire_test.c - requests to a real server, good and hostile: what is sent, what is not, what counts
 * as an answer, and that all of it is bounded.
 * Owns:  the names that are resolved here: the process has a getaddrinfo() of its own.
 * Never: calls anything but this machine.
 */
#define _GNU_SOURCE
#include "deliver/lane.h"
#include "deliver/sink.h"
#include "deliver/wire.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <cmocka.h>

#define WAIT_MS 60000

/* ---------------------------------------------------------------- names */

static sem_t hang_over;         /* names that hang are resolved after this */
static atomic_int rebind_count; /* how often rebind.test was asked for */

typedef int resolve(const char *, const char *, const struct addrinfo *, struct addrinfo **);

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret_list)
{
    resolve *real = (resolve *)dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "hang.test") == 0) {
        (void)sem_wait(&hang_over);
        (void)sem_post(&hang_over);
        return EAI_AGAIN;
    }
    if (strcmp(host, "rebind.test") == 0)
        return real(atomic_fetch_add(&rebind_count, 1) == 0 ? "127.0.0.1" : "127.0.0.2", service,
                    hints, ret_list);
    if (strstr(host, ".one.test") != NULL)
        return real("127.0.0.1", service, hints, ret_list);
    if (strcmp(host, "both.test") == 0) {
        struct addrinfo *second = NULL;
        int rc = real("127.0.0.2", service, hints, ret_list);
        if (rc != 0 || real("127.0.0.1", service, hints, &second) != 0)
            return EAI_FAIL;
        struct addrinfo *last = *ret_list;
        while (last->ai_next != NULL)
            last = last->ai_next;
        last->ai_next = second;
        return 0;
    }
    return real(host, service, hints, ret_list);
}

/* ---------------------------------------------------------------- a wire, and what it told */

struct told {
    bool is_ended;
    struct pawli_wire_end end;
    char retry_after[64];
    char text[128];
    int asked;     /* how often the gate was */
    int shut_from; /* it is shut from this question on, from 1; 0: never */
};

struct rig {
    struct sink sink;
    struct pawli_allow allow;
    struct pawli_wire_rules rules;
    struct pawli_wire *wire;
};

static bool may_send(void *user, void *tag)
{
    (void)user;
    struct told *told = tag;
    told->asked++;
    return told->shut_from == 0 || told->asked < told->shut_from;
}

static void on_ended(void *user, void *tag, const struct pawli_wire_end *end)
{
    (void)user;
    struct told *told = tag;
    assert_false(told->is_ended); /* once */
    told->is_ended = true;
    told->end = *end;
    if (end->transfer.retry_after != NULL)
        (void)snprintf(told->retry_after, sizeof(told->retry_after), "%s",
                       end->transfer.retry_after);
    (void)snprintf(told->text, sizeof(told->text), "%s", end->text);
}

static void open_wire(struct rig *rig)
{
    const struct pawli_wire_owner owner = {.may_send = may_send, .ended = on_ended};
    pawl_err err;
    assert_int_equal(PAWL_OK,
                     pawli_wire_new(&rig->rules, &owner, pawl_clock_system(), &rig->wire, &err));
}

/* One server for all of them. */
static int set_up_all(void **state)
{
    static struct rig rig;
    pawl_err err;
    sink_start(&rig.sink);
    assert_int_equal(PAWL_OK, pawli_allow_add(&rig.allow, "127.0.0.1", &err));
    *state = &rig;
    return 0;
}

static int tear_down_all(void **state)
{
    struct rig *rig = *state;
    sink_stop(&rig->sink);
    return 0;
}

static int set_up(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(0, sem_init(&hang_over, 0, 0));
    atomic_store(&rebind_count, 0);
    sink_forget(&rig->sink);
    pawli_wire_rules_init(&rig->rules);
    rig->rules.allow = &rig->allow;
    open_wire(rig);
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    pawli_wire_free(rig->wire);
    (void)sem_post(&hang_over);
    return 0;
}

/* The guard of the wire is what is tested: that of URLs lets everything through. */
static void read_target(const struct rig *rig, const char *url, struct pawli_target *target)
{
    static struct pawli_allow all;
    pawl_err err;
    memset(&all, 0, sizeof(all));
    assert_int_equal(PAWL_OK, pawli_allow_add(&all, "127.0.0.0/8", &err));
    const struct pawli_target_rules rules = {
        .allow = &all, .ports = &rig->sink.port, .ports_count = 1, .is_http_allowed = true};
    assert_int_equal(PAWL_OK, pawli_target_check(url, &rules, target, &err));
}

static struct pawli_sending *begin(struct rig *rig, const char *host, const char *path,
                                   int64_t timeout_ms, struct told *told)
{
    static const char headers[] = "content-type: text/plain\0webhook-id: evt_1";
    struct pawli_target target;
    struct pawli_sending *sending = NULL;
    char url[256];
    pawl_err err;
    read_target(rig, sink_url(&rig->sink, host, path, url), &target);
    const struct pawli_wire_request request = {.target = &target,
                                               .headers = headers,
                                               .headers_len = sizeof(headers),
                                               .body = "the body",
                                               .body_len = 8,
                                               .timeout_ms = timeout_ms,
                                               .tag = told};
    assert_int_equal(PAWL_OK, pawli_wire_send(rig->wire, &request, &sending, &err));
    return sending;
}

static int64_t now_ms(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user).us / 1000;
}

/* Turn the wire until it has ended. */
static void finish(struct rig *rig, const struct told *told)
{
    int64_t until = now_ms() + WAIT_MS;
    while (!told->is_ended) {
        assert_true(now_ms() < until);
        pawli_wire_turn(rig->wire, 100);
    }
}

static void fetch(struct rig *rig, const char *host, const char *path, struct told *told)
{
    (void)begin(rig, host, path, 30000, told);
    finish(rig, told);
}

/* ---------------------------------------------------------------- what is sent */

static void test_a_request_is_sent_as_it_is(void **state)
{
    struct rig *rig = *state;
    struct told first = {0};
    struct told second = {0};
    fetch(rig, "127.0.0.1", "/ok", &first);
    assert_int_equal(PAWLI_END_DONE, first.end.transfer.end);
    assert_true(first.end.transfer.has_whole_headers);
    assert_int_equal(200, first.end.transfer.status);
    assert_int_equal(1, first.end.sends);
    assert_int_equal(1, first.asked);
    assert_true(first.end.took_us > 0);
    fetch(rig, "127.0.0.1", "/ok", &second);
    assert_int_equal(2, sink_count(&rig->sink, "\"method\": \"POST\""));
    assert_int_equal(2, sink_count(&rig->sink, "\"body\": \"dGhlIGJvZHk=\""));
    assert_int_equal(2, sink_count(&rig->sink, "\"webhook-id\": \"evt_1\""));
    assert_int_equal(2, sink_count(&rig->sink, "\"content-type\": \"text/plain\""));
    assert_int_equal(0, sink_count(&rig->sink, "expect"));
    assert_int_equal(0, sink_count(&rig->sink, "accept-encoding"));
    assert_int_equal(1, sink_count(&rig->sink, "\"nth\": 2}")); /* a connection is used again */
    assert_int_equal(0, pawli_wire_count(rig->wire));
}

/* The last gate: what may not be sent is not. */
static void test_the_gate_is_asked_before_the_send(void **state)
{
    struct rig *rig = *state;
    struct told told = {.shut_from = 1};
    fetch(rig, "127.0.0.1", "/ok", &told);
    assert_int_equal(PAWLI_END_STOPPED, told.end.transfer.end);
    assert_false(told.end.transfer.has_whole_headers);
    assert_int_equal(0, told.end.sends);
    assert_int_equal(0, sink_count(&rig->sink, "POST"));
}

/* libcurl sends by itself again when a connection dies that it used again: counted. */
static void test_a_silent_second_send_is_counted(void **state)
{
    struct rig *rig = *state;
    struct told first = {0};
    struct told second = {0};
    fetch(rig, "127.0.0.1", "/reuse", &first);
    assert_int_equal(1, first.end.sends);
    fetch(rig, "127.0.0.1", "/reuse", &second);
    assert_int_equal(200, second.end.transfer.status);
    assert_int_equal(2, second.end.sends);
    assert_int_equal(2, second.asked);
    assert_int_equal(3, sink_count(&rig->sink, "POST"));
}

/* ... and refused, where the gate is shut by then. */
static void test_a_silent_second_send_is_refused(void **state)
{
    struct rig *rig = *state;
    struct told first = {0};
    struct told second = {.shut_from = 2};
    fetch(rig, "127.0.0.1", "/reuse", &first);
    fetch(rig, "127.0.0.1", "/reuse", &second);
    assert_int_equal(PAWLI_END_STOPPED, second.end.transfer.end);
    assert_int_equal(1, second.end.sends);
    assert_int_equal(2, sink_count(&rig->sink, "POST"));
}

/* FR-002: what is stopped is stopped on the wire. */
static void test_stopping_ends_it_on_the_wire(void **state)
{
    struct rig *rig = *state;
    struct told told = {0};
    struct told other = {0};
    struct pawli_sending *sending = begin(rig, "127.0.0.1", "/hang", 30000, &told);
    int64_t until = now_ms() + WAIT_MS;
    while (sink_count(&rig->sink, "/hang") == 0) {
        assert_true(now_ms() < until);
        pawli_wire_turn(rig->wire, 20);
    }
    struct pawli_wire_end end = pawli_wire_stop(rig->wire, sending);
    assert_int_equal(PAWLI_END_STOPPED, end.transfer.end);
    assert_int_equal(1, end.sends);
    assert_int_equal(0, pawli_wire_count(rig->wire));
    fetch(rig, "127.0.0.1", "/ok", &other); /* its connection was not kept */
    assert_int_equal(0, sink_count(&rig->sink, "\"nth\": 2}"));
    assert_false(told.is_ended);
}

/* ---------------------------------------------------------------- connections */

static pawl_mono hand_mono(void *user)
{
    return *(const pawl_mono *)user;
}

static pawl_wall system_wall(void *user)
{
    const pawl_clock *clock = pawl_clock_system();
    (void)user;
    return clock->wall(clock->user);
}

/* A wire whose time is turned by hand. */
static void open_wire_by_hand(struct rig *rig, pawl_clock *clock, pawl_mono *now)
{
    const struct pawli_wire_owner owner = {.may_send = may_send, .ended = on_ended};
    pawl_err err;
    *now = (pawl_mono){1000000};
    *clock = (pawl_clock){.wall = system_wall, .mono = hand_mono, .user = now};
    pawli_wire_free(rig->wire);
    assert_int_equal(PAWL_OK, pawli_wire_new(&rig->rules, &owner, clock, &rig->wire, &err));
}

static size_t count_asked(const struct told *told, size_t count)
{
    size_t asked = 0;
    for (size_t i = 0; i < count; i++)
        asked += told[i].asked > 0;
    return asked;
}

static void turn_until_asked(struct rig *rig, const struct told *told, size_t count, size_t wanted)
{
    int64_t until = now_ms() + WAIT_MS;
    while (count_asked(told, count) < wanted) {
        assert_true(now_ms() < until);
        pawli_wire_turn(rig->wire, 20);
    }
}

/* Many requests to who answers share some connections; none of them has to lose patience. */
static void test_many_requests_share_connections(void **state)
{
    enum {
        COUNT = 3 * PAWLI_LANE_EAGER
    };
    struct rig *rig = *state;
    struct told told[COUNT];
    pawl_clock clock;
    pawl_mono now;
    memset(told, 0, sizeof(told));
    open_wire_by_hand(rig, &clock, &now);
    for (size_t i = 0; i < COUNT; i++)
        (void)begin(rig, "127.0.0.1", "/ok", 30000, &told[i]);
    assert_int_equal(COUNT, pawli_wire_count(rig->wire));
    for (size_t i = 0; i < COUNT; i++) {
        finish(rig, &told[i]);
        assert_int_equal(200, told[i].end.transfer.status);
    }
    assert_int_equal(COUNT, sink_count(&rig->sink, "POST"));
    assert_in_range(sink_count(&rig->sink, "\"nth\": 1}"), 1, PAWLI_LANE_EAGER);
    assert_int_equal(0, pawli_wire_count(rig->wire));
}

/* Who hangs holds up the others of his host for a moment. */
static void test_patience_ends(void **state)
{
    enum {
        COUNT = PAWLI_LANE_EAGER + 4
    };
    struct rig *rig = *state;
    struct told told[COUNT];
    struct pawli_sending *sendings[COUNT];
    pawl_clock clock;
    pawl_mono now;
    memset(told, 0, sizeof(told));
    open_wire_by_hand(rig, &clock, &now);
    for (size_t i = 0; i < COUNT; i++)
        sendings[i] = begin(rig, "127.0.0.1", "/hang", 30000, &told[i]);
    turn_until_asked(rig, told, COUNT, PAWLI_LANE_EAGER);
    pawli_wire_turn(rig->wire, 20);
    assert_int_equal(PAWLI_LANE_EAGER, count_asked(told, COUNT));
    assert_int_equal(0, told[PAWLI_LANE_EAGER].asked);

    /* One that has waited and is stopped was never sent; one that ends makes room for the first. */
    struct pawli_wire_end end = pawli_wire_stop(rig->wire, sendings[COUNT - 1]);
    assert_int_equal(0, end.sends);
    assert_int_equal(PAWLI_END_STOPPED, end.transfer.end);
    (void)pawli_wire_stop(rig->wire, sendings[0]);
    turn_until_asked(rig, told, COUNT, PAWLI_LANE_EAGER + 1);
    assert_int_equal(1, told[PAWLI_LANE_EAGER].asked);
    assert_int_equal(COUNT - 2, pawli_wire_count(rig->wire));

    now.us += (PAWLI_LANE_PATIENCE_MS - 1) * 1000;
    pawli_wire_turn(rig->wire, 20);
    assert_int_equal(PAWLI_LANE_EAGER + 1, count_asked(told, COUNT));
    now.us += 1000;
    turn_until_asked(rig, told, COUNT, COUNT - 1);
    assert_int_equal(0, told[COUNT - 1].asked);

    /* From now on those that hang do not count. */
    struct told late = {0};
    fetch(rig, "127.0.0.1", "/ok", &late);
    assert_int_equal(200, late.end.transfer.status);
}

/* ---------------------------------------------------------------- hostile answers */

static void test_hostile_answers(void **state)
{
    static const struct {
        const char *path;
        int64_t timeout_ms;
        long status; /* 0: no answer is whole */
        enum pawli_transfer_end end;
    } cases[] = {
        {"/slow-headers", 500, 0, PAWLI_END_TIMEOUT},
        {"/hang", 300, 0, PAWLI_END_TIMEOUT},
        {"/drip", 2000, 200, PAWLI_END_TIMEOUT},
        {"/endless", 30000, 200, PAWLI_END_TOO_LARGE},
        {"/endless-error", 30000, 500, PAWLI_END_TOO_LARGE},
        {"/gzip", 30000, 200, PAWLI_END_DONE},
        {"/big-header", 30000, 0, PAWLI_END_TOO_LARGE},
        {"/many-headers", 30000, 0, PAWLI_END_TOO_LARGE},
        {"/informing", 30000, 0, PAWLI_END_TOO_LARGE},
        {"/cut-header", 30000, 0, PAWLI_END_DONE},
        {"/cut-status", 30000, 0, PAWLI_ENDS},
        {"/reset-after-200", 30000, 200, PAWLI_END_RESET},
        {"/short-body", 30000, 200, PAWLI_END_RESET},
        {"/long-body", 30000, 200, PAWLI_END_DONE},
        {"/bad-length", 30000, 0, PAWLI_ENDS},
        {"/close", 30000, 0, PAWLI_END_RESET},
        {"/early", 30000, 200, PAWLI_END_DONE},
        {"/redirect", 30000, 307, PAWLI_END_DONE},
        {"/junk", 30000, 0, PAWLI_END_PROTOCOL},
        {"/status/204", 30000, 204, PAWLI_END_DONE},
    };
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct told told = {0};
        (void)begin(rig, "127.0.0.1", cases[i].path, cases[i].timeout_ms, &told);
        finish(rig, &told);
        bool is_whole = cases[i].status != 0;
        bool is_end = cases[i].end == PAWLI_ENDS || told.end.transfer.end == cases[i].end;
        if (told.end.transfer.has_whole_headers != is_whole || !is_end ||
            (is_whole && told.end.transfer.status != cases[i].status))
            fail_msg("%s: end %d, whole %d, status %ld: %s", cases[i].path,
                     (int)told.end.transfer.end, told.end.transfer.has_whole_headers,
                     told.end.transfer.status, told.text);
        assert_int_equal(1, told.end.sends);
    }
    assert_int_equal(1, sink_count(&rig->sink, "/redirect")); /* never followed */
}

static void test_retry_after_is_told(void **state)
{
    struct rig *rig = *state;
    struct told told = {0};
    fetch(rig, "127.0.0.1", "/status/503?Retry-After=17", &told);
    assert_int_equal(503, told.end.transfer.status);
    assert_string_equal("17", told.retry_after);
    struct told none = {0};
    fetch(rig, "127.0.0.1", "/status/503", &none);
    assert_string_equal("", none.retry_after);
}

/* ---------------------------------------------------------------- addresses */

static void test_an_address_that_is_not_allowed_is_not_called(void **state)
{
    struct rig *rig = *state;
    struct told told = {0};
    pawli_wire_free(rig->wire);
    rig->rules.allow = NULL;
    open_wire(rig);
    fetch(rig, "127.0.0.1", "/ok", &told);
    assert_int_equal(PAWLI_END_ADDRESS, told.end.transfer.end);
    assert_int_equal(0, told.end.sends);
    assert_int_equal(0, told.asked);
    assert_non_null(strstr(told.text, "loopback"));
    assert_int_equal(0, sink_count(&rig->sink, "POST"));
}

/* The address that is connected to counts, not one that was looked up before. */
static void test_a_name_that_rebinds(void **state)
{
    struct rig *rig = *state;
    struct told first = {0};
    struct told second = {0};
    fetch(rig, "rebind.test", "/close", &first);
    assert_int_equal(1, first.end.sends);
    pawli_wire_free(rig->wire); /* what it remembers of names goes with it */
    open_wire(rig);
    fetch(rig, "rebind.test", "/ok", &second);
    assert_int_equal(PAWLI_END_ADDRESS, second.end.transfer.end);
    assert_int_equal(0, second.end.sends);
    assert_int_equal(0, sink_count(&rig->sink, "/ok"));
}

/* Each address of a name is looked at; one that is not allowed is left out. */
static void test_each_address_of_a_name_is_looked_at(void **state)
{
    struct rig *rig = *state;
    struct told told = {0};
    fetch(rig, "both.test", "/ok", &told);
    assert_int_equal(200, told.end.transfer.status);
    assert_int_equal(1, told.end.sends);
}

/* A name that is never resolved holds up nobody else, nor the end. */
static void test_a_name_that_hangs(void **state)
{
    struct rig *rig = *state;
    struct told hanging = {0};
    struct told longer = {0};
    struct told other = {0};
    (void)begin(rig, "hang.test", "/ok", 300, &hanging);
    (void)begin(rig, "hang.test", "/ok", 300000, &longer);
    fetch(rig, "127.0.0.1", "/ok", &other);
    assert_int_equal(200, other.end.transfer.status);
    finish(rig, &hanging);
    assert_int_equal(PAWLI_END_TIMEOUT, hanging.end.transfer.end);
    assert_int_equal(0, hanging.end.sends);
    assert_false(longer.is_ended);
    /* tear_down() frees the wire while the name still hangs. */
}

/* ---------------------------------------------------------------- who cannot be reached */

/* Somebody who listens on 127.0.0.2 and never takes a call: connecting to him takes for ever. */
struct deaf {
    int fd;
    int filler; /* the one that he has not taken */
};

static void start_deaf(struct deaf *deaf, uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK + 1)}};
    const int one = 1;
    deaf->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    deaf->filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, setsockopt(deaf->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
    assert_int_equal(0, bind(deaf->fd, (const struct sockaddr *)&at, sizeof(at)));
    assert_int_equal(0, listen(deaf->fd, 0)); /* one has room */
    assert_int_equal(0, connect(deaf->filler, (const struct sockaddr *)&at, sizeof(at)));
}

static void stop_deaf(const struct deaf *deaf)
{
    (void)close(deaf->filler);
    (void)close(deaf->fd);
}

/* A wire that may call 127.0.0.2 as well. */
static void open_wire_to_both(struct rig *rig)
{
    static struct pawli_allow both;
    pawl_err err;
    memset(&both, 0, sizeof(both));
    assert_int_equal(PAWL_OK, pawli_allow_add(&both, "127.0.0.0/8", &err));
    pawli_wire_free(rig->wire);
    rig->rules.allow = &both;
    open_wire(rig);
}

/* libcurl may close it without a word. Its descriptor's number is then used for something else: for
 * what tells that a name is resolved, or for another connection. */
static void test_a_connection_that_does_not_come_about(void **state)
{
    struct rig *rig = *state;
    struct deaf deaf;
    open_wire_to_both(rig);
    start_deaf(&deaf, rig->sink.port);
    for (int i = 0; i < 4; i++) {
        struct told lost = {0};
        struct told stopped = {0};
        struct told named = {0};
        struct told other = {0};
        struct told hanging = {0};
        char name[32];
        struct pawli_sending *running = begin(rig, "127.0.0.1", "/hang", 30000, &hanging);
        struct pawli_sending *sending = begin(rig, "127.0.0.2", "/ok", 30000, &stopped);
        (void)begin(rig, "127.0.0.2", "/ok", 200, &lost);
        finish(rig, &lost);
        assert_int_equal(PAWLI_END_TIMEOUT, lost.end.transfer.end);
        assert_int_equal(0, lost.end.sends);
        (void)pawli_wire_stop(rig->wire, sending);
        (void)snprintf(name, sizeof(name), "n%d.one.test", i); /* fits; not resolved before */
        fetch(rig, name, "/ok", &named);
        assert_int_equal(200, named.end.transfer.status);
        fetch(rig, "127.0.0.1", "/ok", &other);
        assert_int_equal(200, other.end.transfer.status);
        assert_false(hanging.is_ended); /* nobody else has suffered */
        (void)pawli_wire_stop(rig->wire, running);
    }
    stop_deaf(&deaf);
}

static void test_no_proxy_of_the_environment(void **state)
{
    struct rig *rig = *state;
    struct told told = {0};
    (void)setenv("http_proxy", "http://127.0.0.1:9/", 1);
    (void)setenv("all_proxy", "http://127.0.0.1:9/", 1);
    fetch(rig, "127.0.0.1", "/ok", &told);
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    assert_int_equal(200, told.end.transfer.status);
}

/* ---------------------------------------------------------------- a proxy */

/* Answers one CONNECT with these bytes, and closes. */
struct proxy {
    pthread_t thread;
    int fd;
    const char *answer;
    char url[64];
};

static void *serve_proxy(void *argument)
{
    struct proxy *proxy = argument;
    char request[4096] = "";
    int fd = accept(proxy->fd, NULL, NULL);
    for (size_t len = 0; strstr(request, "\r\n\r\n") == NULL && len + 1 < sizeof(request);) {
        ssize_t got = recv(fd, request + len, sizeof(request) - 1 - len, 0);
        if (got <= 0)
            break;
        len += (size_t)got;
        request[len] = '\0';
    }
    (void)send(fd, proxy->answer, strlen(proxy->answer), MSG_NOSIGNAL); /* or the test fails */
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, request, sizeof(request), 0) > 0) /* what comes into the tunnel */
        continue;
    (void)close(fd);
    return NULL;
}

static void start_proxy(struct proxy *proxy, const char *answer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t at_len = sizeof(at);
    proxy->answer = answer;
    proxy->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, bind(proxy->fd, (struct sockaddr *)&at, sizeof(at)));
    assert_int_equal(0, listen(proxy->fd, 1));
    assert_int_equal(0, getsockname(proxy->fd, (struct sockaddr *)&at, &at_len));
    (void)snprintf(proxy->url, sizeof(proxy->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(0, pthread_create(&proxy->thread, NULL, serve_proxy, proxy));
}

static void stop_proxy(struct proxy *proxy)
{
    assert_int_equal(0, pthread_join(proxy->thread, NULL));
    (void)close(proxy->fd);
}

/* Whatever a proxy says of a tunnel: the endpoint has not said it, and nothing was sent. */
static void test_a_proxys_answer_is_not_the_endpoints(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 Connection established\r\n\r\n",
        "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n",
    };
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct told told = {0};
        struct proxy proxy;
        struct pawli_target target;
        struct pawli_sending *sending = NULL;
        pawl_err err;
        start_proxy(&proxy, answers[i]);
        pawli_wire_free(rig->wire);
        rig->rules.proxy = proxy.url;
        open_wire(rig);
        read_target(rig, "https://endpoint.test/", &target);
        const struct pawli_wire_request request = {
            .target = &target, .headers = "", .timeout_ms = 30000, .tag = &told};
        assert_int_equal(PAWL_OK, pawli_wire_send(rig->wire, &request, &sending, &err));
        finish(rig, &told);
        stop_proxy(&proxy);
        assert_int_equal(0, told.asked);
        assert_int_equal(0, told.end.sends);
        assert_false(told.end.transfer.has_whole_headers);
        assert_string_equal("", told.retry_after);
        assert_int_not_equal(PAWLI_END_DONE, told.end.transfer.end);
    }
}

/* libcurl takes an empty name of a proxy for none: then addresses are looked at here. */
static void test_an_empty_proxy_is_none(void **state)
{
    struct rig *rig = *state;
    struct told told = {0};
    pawli_wire_free(rig->wire);
    rig->rules.proxy = "";
    open_wire(rig);
    fetch(rig, "127.0.0.2", "/ok", &told);
    assert_int_equal(PAWLI_END_ADDRESS, told.end.transfer.end);
    assert_int_equal(0, told.end.sends);
}

static void *wake(void *wire)
{
    pawli_wire_wake(wire);
    return NULL;
}

static void test_waking(void **state)
{
    struct rig *rig = *state;
    int64_t began = now_ms();
    for (int i = 0; i < 200; i++) { /* each would wait for 500 ms */
        pthread_t thread;
        assert_int_equal(0, pthread_create(&thread, NULL, wake, rig->wire));
        pawli_wire_turn(rig->wire, 500);
        assert_int_equal(0, pthread_join(thread, NULL));
    }
    assert_true(now_ms() - began < WAIT_MS);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_request_is_sent_as_it_is),
        CASE(test_the_gate_is_asked_before_the_send),
        CASE(test_a_silent_second_send_is_counted),
        CASE(test_a_silent_second_send_is_refused),
        CASE(test_stopping_ends_it_on_the_wire),
        CASE(test_many_requests_share_connections),
        CASE(test_patience_ends),
        CASE(test_hostile_answers),
        CASE(test_retry_after_is_told),
        CASE(test_an_address_that_is_not_allowed_is_not_called),
        CASE(test_a_name_that_rebinds),
        CASE(test_each_address_of_a_name_is_looked_at),
        CASE(test_a_name_that_hangs),
        CASE(test_a_connection_that_does_not_come_about),
        CASE(test_no_proxy_of_the_environment),
        CASE(test_a_proxys_answer_is_not_the_endpoints),
        CASE(test_an_empty_proxy_is_none),
        CASE(test_waking),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
