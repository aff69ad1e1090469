/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - the HTTP server as a whole: starts, drains, ends.
 * Owns:  its threads, and the order in which they end: first those who carry requests out, then the
 *        one behind claims that wait, then the HTTP library, when nothing is suspended any more.
 * Never: can be reached from another machine without tokens.
 */
#include "serve/serve.h"

#include "serve/ears.h"
#include "serve/exchange.h"
#include "serve/stream.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME    "serve"
#define STOP_MS 60000 /* until threads that do nothing have ended */

void pawli_serve_limits_init(struct pawli_serve_limits *limits)
{
    *limits = (struct pawli_serve_limits){
        .connections = 1000,
        .connections_per_address = 256,
        .head_ms = 10000,
        .idle_ms = 60000,
        .slack_ms = 30000,
        .head_bytes = 32768,
        .memory_bytes = (size_t)256 << 20,
        .waiting = 500,
        .threads = 8,
        .listeners = 100,
        .beat_ms = 15000,
    };
}

/* ---------------------------------------------------------------- what requests ask of it */

static pawl_code put_metrics(void *user, struct pawli_buffer *to, pawl_err *err)
{
    struct pawli_serve *serve = user;
    char *text = NULL;
    size_t len = 0;
    if (serve->metrics != NULL) {
        pawl_code code = pawl_metrics_text(serve->metrics, &text, &len, err);
        if (code != PAWL_OK)
            return code;
    }
    (void)pthread_mutex_lock(&serve->peers.mutex); /* cannot fail: it is plain */
    const struct pawli_figures_more more = {serve->peers.count, serve->peers.cut};
    (void)pthread_mutex_unlock(&serve->peers.mutex);
    bool is_put = pawli_buffer_put(to, text, len) && pawli_figures_text(&serve->figures, &more, to);
    free(text);
    return is_put ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

static bool is_draining(void *user)
{
    struct pawli_serve *serve = user;
    return atomic_load(&serve->is_draining);
}

void pawli_serve_tell_failed(struct pawli_exchange *exchange)
{
    const struct pawli_answer *answer = &exchange->answer;
    struct pawli_watch *watch = exchange->serve->watch;
    bool is_expected = answer->problem != NULL && (strcmp(answer->problem, "draining") == 0 ||
                                                   strcmp(answer->problem, "not-ready") == 0);
    if (is_expected || !pawli_watch_wants(watch, PAWL_LEVEL_WARN))
        return;
    pawl_event event = {.kind = PAWL_EVENT_REQUEST_FAILED,
                        .level = PAWL_LEVEL_WARN,
                        .reason = answer->problem != NULL ? answer->problem : "",
                        .code = answer->code,
                        .count = answer->status};
    (void)snprintf(event.subject, sizeof(event.subject), "%s",
                   exchange->call.route != NULL ? exchange->call.route->name : "none");
    (void)snprintf(event.text, sizeof(event.text), "%s", exchange->call.err.text);
    pawli_watch_tell(watch, &event);
}

/* ---------------------------------------------------------------- starting */

static pawl_code check(const struct pawli_serve_options *options, pawl_err *err)
{
    assert(options->listeners_count <= PAWLI_LISTENERS_MAX);
    if (options->has_tokens)
        return PAWL_OK;
    for (size_t i = 0; i < options->listeners_count; i++) {
        if (options->listeners[i].is_abstract)
            return pawli_fail(err, PAWL_INVALID,
                              "%.80s is an abstract socket, which no file's mode protects, and no "
                              "token would be needed: make one with pawl token add and say "
                              "--tokens FILE, or use a socket that is a file",
                              options->listeners[i].address);
        if (!options->listeners[i].is_unix && !options->listeners[i].is_loopback)
            return pawli_fail(err, PAWL_INVALID,
                              "%.80s can be reached from other machines, and no token would be "
                              "needed: make one with pawl token add and say --tokens FILE, or "
                              "listen at 127.0.0.1 or a Unix socket",
                              options->listeners[i].address);
    }
    return PAWL_OK;
}

static void free_serve(void *user)
{
    struct pawli_serve *serve = user;
    pawli_watch_free(serve->watch);
    pawli_grants_clear(&serve->grants);
    pawli_peers_clear(&serve->peers);
    (void)pthread_mutex_destroy(&serve->settings_lock); /* nobody holds any of these */
    (void)pthread_mutex_destroy(&serve->test_lock);
    (void)pthread_mutex_destroy(&serve->ears_lock);
    (void)pthread_mutex_destroy(&serve->lookout_lock);
    (void)pthread_cond_destroy(&serve->lookout_cond);
    pawli_stream_free(serve->stream);
    (void)pthread_mutex_destroy(&serve->grants_lock);
    (void)pthread_mutex_destroy(&serve->line_lock);
    (void)pthread_mutex_destroy(&serve->wait_lock);
    (void)pthread_cond_destroy(&serve->line_cond);
    (void)pthread_cond_destroy(&serve->wait_cond);
    free(serve);
}

static bool make_locks(struct pawli_serve *serve)
{
    return pawli_peers_init(&serve->peers) &&
           pthread_mutex_init(&serve->settings_lock, NULL) == 0 &&
           pthread_mutex_init(&serve->test_lock, NULL) == 0 &&
           pthread_mutex_init(&serve->ears_lock, NULL) == 0 &&
           pthread_mutex_init(&serve->lookout_lock, NULL) == 0 &&
           pawli_cond_init(&serve->lookout_cond) &&
           pthread_mutex_init(&serve->grants_lock, NULL) == 0 &&
           pthread_mutex_init(&serve->line_lock, NULL) == 0 &&
           pthread_mutex_init(&serve->wait_lock, NULL) == 0 && pawli_cond_init(&serve->line_cond) &&
           pawli_cond_init(&serve->wait_cond);
}

/* All but its threads. NULL: memory ran out, and what it would have taken over is gone. */
static struct pawli_serve *make(struct pawli_serve_options *options)
{
    struct pawli_serve *serve = calloc(1, sizeof(*serve));
    if (serve == NULL || !make_locks(serve)) {
        free(serve); /* locks that were made hold nothing */
        return NULL;
    }
    serve->limits = options->limits;
    LIST_INIT(&serve->ears);
    const pawl_random *random = pawl_random_system();
    serve->stream = pawli_stream_new(random->next(random->user));
    if (serve->stream != NULL)
        pawli_stream_on_change(serve->stream, pawli_ears_wake, serve);
    serve->opener = options->opener;
    serve->clock = pawl_clock_system();
    serve->metrics = options->metrics;
    serve->grants = options->grants;
    options->grants = (struct pawli_grants){0};
    serve->has_tokens = options->has_tokens;
    serve->listeners_count = options->listeners_count;
    memcpy(serve->listeners, options->listeners,
           options->listeners_count * sizeof(*options->listeners));
    serve->host = (struct pawli_host){.webhooks = options->webhooks,
                                      .stream = serve->stream,
                                      .metrics = put_metrics,
                                      .is_draining = is_draining,
                                      .reaper_interval_ms = options->reaper_interval_ms,
                                      .clock = serve->clock,
                                      .user = serve,
                                      .settings_lock = &serve->settings_lock,
                                      .test_lock = &serve->test_lock};
    serve->watch = pawli_watch_new(&options->watch, serve->clock, NAME);
    serve->crew = pawli_crew_new(serve->limits.threads + 3, free_serve, serve);
    if (serve->watch == NULL || serve->crew == NULL || serve->stream == NULL) {
        if (serve->crew != NULL)
            (void)pawli_crew_leave(serve->crew); /* frees it: there are no threads */
        else
            free_serve(serve);
        return NULL;
    }
    return serve;
}

static void tell(struct pawli_serve *serve, pawl_event_kind kind, const char *text)
{
    pawl_event event = {.kind = kind, .level = PAWL_LEVEL_INFO, .reason = ""};
    (void)snprintf(event.text, sizeof(event.text), "%s", text); /* cut where it is long */
    pawli_watch_tell(serve->watch, &event);
}

static pawl_code start_threads(struct pawli_serve *serve, pawl_err *err)
{
    pawl_code code = pawli_crew_start(serve->crew, "serve-watch", pawli_watch_run, serve->watch);
    for (size_t i = 0; code == PAWL_OK && i < serve->limits.threads; i++) {
        (void)pthread_mutex_lock(&serve->line_lock);
        serve->carriers++;
        (void)pthread_mutex_unlock(&serve->line_lock);
        code = pawli_crew_start(serve->crew, "serve-carrier", pawli_carrier_run, serve);
        if (code != PAWL_OK) {
            (void)pthread_mutex_lock(&serve->line_lock);
            serve->carriers--;
            (void)pthread_mutex_unlock(&serve->line_lock);
        }
    }
    if (code == PAWL_OK)
        code = pawli_crew_start(serve->crew, "serve-waiting", pawli_waiting_run, serve);
    if (code == PAWL_OK)
        code = pawli_crew_start(serve->crew, "serve-lookout", pawli_lookout_run, serve);
    return code == PAWL_OK ? code : pawli_fail_plain(err, code);
}

pawl_code pawli_serve_start(struct pawli_serve_options *options, struct pawli_serve **ret_serve,
                            pawl_err *err)
{
    struct pawli_serve *serve = NULL;
    pawl_code code = check(options, err);
    if (code == PAWL_OK && (serve = make(options)) == NULL)
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (serve == NULL) {
        for (size_t i = 0; i < options->listeners_count; i++)
            pawli_listener_close(&options->listeners[i]);
        pawli_grants_clear(&options->grants);
        return code;
    }
    code = start_threads(serve, err);
    if (code == PAWL_OK)
        code = pawli_http_start(serve, err);
    if (code != PAWL_OK) {
        (void)pawli_serve_stop(serve, STOP_MS); /* nothing was asked of the store yet */
        return code;
    }
    for (size_t i = 0; i < serve->listeners_count; i++)
        tell(serve, PAWL_EVENT_SERVER_UP, serve->listeners[i].address);
    *ret_serve = serve;
    return PAWL_OK;
}

/* ---------------------------------------------------------------- while it runs */

void pawli_serve_set_grants(struct pawli_serve *serve, struct pawli_grants *grants)
{
    (void)pthread_mutex_lock(&serve->grants_lock); /* cannot fail: it is plain */
    struct pawli_grants before = serve->grants;
    serve->grants = *grants;
    (void)pthread_mutex_unlock(&serve->grants_lock);
    *grants = (struct pawli_grants){0};
    pawli_grants_clear(&before);
}

void pawli_serve_tell(struct pawli_serve *serve, const pawl_event *event)
{
    pawli_watch_tell(serve->watch, event);
}

/* The state that a job is in after an event; NULL: it tells of none. */
static const char *state_after(const pawl_event *event)
{
    switch (event->kind) {
    case PAWL_EVENT_JOB_START:
        return pawl_state_name(PAWL_IN_FLIGHT);
    case PAWL_EVENT_JOB_SETTLED:
        if (strcmp(event->subject, "succeeded") == 0)
            return pawl_state_name(PAWL_SUCCEEDED);
        return pawl_state_name(event->level == PAWL_LEVEL_WARN ? PAWL_FAILED : PAWL_READY);
    case PAWL_EVENT_REAPED: {
        bool is_back = strcmp(event->reason, pawl_reason_name(PAWL_REASON_EXPIRED)) == 0;
        return pawl_state_name(is_back ? PAWL_READY : PAWL_FAILED);
    }
    default:
        return NULL;
    }
}

void pawli_serve_saw(struct pawli_serve *serve, const pawl_event *event)
{
    const struct pawli_call call = {.host = &serve->host};
    const char *state = state_after(event);
    if (state != NULL)
        pawli_call_changed(&call, &event->job, event->queue, state);
}

void pawli_serve_look(struct pawli_serve *serve)
{
    pawli_peers_sweep(&serve->peers, pawli_serve_now(serve));
    pawli_ears_look(serve);
}

void pawli_serve_drain(struct pawli_serve *serve)
{
    if (!atomic_exchange(&serve->is_draining, true))
        tell(serve, PAWL_EVENT_SERVER_STOPPING, "");
    pawli_waiting_wake(serve);
    pawli_ears_look(serve);
}

size_t pawli_serve_in_flight(struct pawli_serve *serve)
{
    return atomic_load(&serve->figures.in_flight);
}

size_t pawli_serve_stop(struct pawli_serve *serve, int64_t timeout_ms)
{
    if (serve == NULL)
        return 0;
    atomic_store(&serve->is_draining, true);
    pawli_carriers_end(serve);
    pawli_waiting_wake(serve);
    pawli_lookout_end(serve);
    pawli_ears_look(serve); /* nothing may be suspended in the end */
    tell(serve, PAWL_EVENT_SERVER_STOPPED, "");
    pawli_watch_leave(serve->watch); /* what carriers tell after that is told to nobody */
    size_t left = pawli_crew_wait(serve->crew, timeout_ms);
    if (left > 0)
        return left;
    left = pawli_http_stop(serve);
    return left > 0 ? left : pawli_crew_leave(serve->crew);
}
