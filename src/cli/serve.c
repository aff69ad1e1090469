/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - `pawl serve`: the HTTP interface, with a reaper and, where asked, workers.
 * Owns:  the words of the command; what signals do to the server; what the service manager is told.
 * Never: answers a request.
 */
#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/json.h"
#include "cli/log.h"
#include "cli/serve_webhooks.h"
#include "cli/serve_workers.h"
#include "cli/stop_signals.h"
#include "cli/store_url.h"
#include "cli/webhook_rules.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/policy.h"
#include "serve/route.h"
#include "serve/serve.h"
#include "server/notify.h"
#include "store/health.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#define NAME        "serve"
#define ADDRESS     "127.0.0.1:7295" /* PAWL on the keys of a telephone */
#define LOOK_MS     250
#define SHUTDOWN_MS 30000
#define STOP_MS     10000 /* until store calls under way have come back */

/* Descriptors, beside one for each connection: see make_room(). */
#define DESCRIPTORS     64 /* the log's, the reaper's, the listeners' ... */
#define PER_THREAD      4  /* of a handle of the store */
#define PER_PROGRAM     6
#define PROGRAMS        10 /* at once, as --parallel says */
#define DELIVERIES      1000
#define CONNECTIONS_MIN 16 /* fewer are of no use */

/* All of it, while it runs. */
struct running {
    const struct pawli_line *line;
    struct pawli_cli_store store;
    pthread_mutex_t
        log_lock; /* over the next two: the server, the reaper and workers tell events */
    struct pawli_serve *heard_by; /* who wants to hear of them, too; NULL: nobody now */
    struct pawli_log log;
    pawl_metrics *metrics;
    pawl_reaper *reaper;
    struct pawli_serve *serve;
    struct pawli_serve_webhooks *webhooks; /* NULL: this program has none */
    struct pawli_serve_workers workers;
    const char *tokens; /* the file; NULL: none */
    struct stat seen;   /* as the file was when it was read */
};

static void tell_log(void *user, const pawl_event *event)
{
    struct running *running = user;
    (void)pthread_mutex_lock(&running->log_lock); /* here and below: cannot fail, it is plain */
    if (running->heard_by != NULL)
        pawli_serve_saw(running->heard_by, event);
    if (event->level >= running->log.level)
        pawli_log_tell(&running->log, event);
    (void)pthread_mutex_unlock(&running->log_lock);
}

static void let_hear(struct running *running, struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&running->log_lock);
    running->heard_by = serve;
    (void)pthread_mutex_unlock(&running->log_lock);
}

/* ---------------------------------------------------------------- tokens */

/* Where the file has changed, read it again. One that is wrong is told, and changes nothing. */
static void look_at_tokens(struct running *running, bool is_asked)
{
    struct stat now;
    struct pawli_grants grants;
    pawl_err err = {.text = ""};
    if (running->tokens == NULL)
        return;
    if (stat(running->tokens, &now) != 0)
        now = (struct stat){0};
    bool is_same = now.st_ino == running->seen.st_ino && now.st_size == running->seen.st_size &&
                   now.st_mode == running->seen.st_mode &&
                   now.st_mtim.tv_sec == running->seen.st_mtim.tv_sec &&
                   now.st_mtim.tv_nsec == running->seen.st_mtim.tv_nsec;
    if (is_same && !is_asked)
        return;
    running->seen = now;
    pawl_code code = pawli_grants_read(running->tokens, &grants, &err);
    pawl_event event = {.kind = code == PAWL_OK ? PAWL_EVENT_TOKENS : PAWL_EVENT_TOKENS_REFUSED,
                        .level = code == PAWL_OK ? PAWL_LEVEL_INFO : PAWL_LEVEL_WARN,
                        .reason = "",
                        .code = code,
                        .count = code == PAWL_OK ? (int64_t)grants.count : 0};
    memcpy(event.text, err.text, sizeof(event.text));
    if (code == PAWL_OK)
        pawli_serve_set_grants(running->serve, &grants);
    pawli_serve_tell(running->serve, &event);
}

/* ---------------------------------------------------------------- starting */

static pawl_code open_listeners(const struct pawli_line *line, struct pawli_listener *listeners,
                                size_t *ret_count, pawl_err *err)
{
    pawl_code code = pawli_listen_inherited(listeners, PAWLI_LISTENERS_MAX, ret_count, err);
    if (code != PAWL_OK || *ret_count > 0)
        return code;
    if (line->repeats_count == 0) {
        *ret_count = 1;
        code = pawli_listen(ADDRESS, &listeners[0], err);
    }
    if (line->repeats_count > PAWLI_LISTENERS_MAX) {
        *err = (pawl_err){PAWL_INVALID, "--listen: there are too many; 8 at most"};
        return PAWL_INVALID;
    }
    size_t count = 0;
    for (; code == PAWL_OK && count < line->repeats_count; count++)
        code = pawli_listen(line->repeats[count], &listeners[count], err);
    if (code == PAWL_OK && count > 0)
        *ret_count = count;
    for (size_t i = 0; code != PAWL_OK && i + 1 < count; i++)
        pawli_listener_close(&listeners[i]);
    return code;
}

static void fill_limits(const struct pawli_line *line, struct pawli_serve_limits *limits)
{
    pawli_serve_limits_init(limits);
    limits->connections = (unsigned)pawli_line_number(line, "--connections", limits->connections);
    limits->connections_per_address = (unsigned)pawli_line_number(line, "--connections-per-address",
                                                                  limits->connections_per_address);
    limits->head_ms = pawli_line_number(line, "--head-timeout", limits->head_ms);
    limits->idle_ms = pawli_line_number(line, "--idle-timeout", limits->idle_ms);
    limits->slack_ms = pawli_line_number(line, "--body-timeout", limits->slack_ms);
    limits->waiting = (size_t)pawli_line_number(line, "--waiting", (int64_t)limits->waiting);
    limits->listeners = (size_t)pawli_line_number(line, "--listeners", (int64_t)limits->listeners);
    limits->beat_ms = pawli_line_number(line, "--stream-heartbeat", limits->beat_ms);
    limits->threads = (size_t)pawli_line_number(line, "--threads", (int64_t)limits->threads);
}

/*
 * Clients must never have so many descriptors that none are left to ask the store with. Where the
 * system gives too few, fewer connections are taken; a number that was asked for is refused.
 */
static pawl_code make_room(const struct pawli_line *line, size_t listeners_count,
                           struct pawli_serve_limits *limits, pawl_err *err)
{
    int64_t listeners = (int64_t)listeners_count;
    int64_t own = DESCRIPTORS + PER_THREAD * (int64_t)limits->threads;
    if (pawli_line_has(line, "--deliver"))
        own += pawli_cli_descriptors_of(pawli_line_number(line, "--webhook-parallel", DELIVERIES),
                                        PAWLI_DESCRIPTORS_PER_DELIVERY);
    if (line->program != NULL)
        own += pawli_cli_descriptors_of(pawli_line_number(line, "--parallel", PROGRAMS),
                                        PER_PROGRAM);
    int64_t wanted = own + listeners * limits->connections;
    int64_t given = pawli_cli_descriptors(wanted);
    int64_t left = (given - own) / listeners;
    if (given < wanted && (left < CONNECTIONS_MIN || pawli_line_has(line, "--connections")))
        return pawli_fail(err, PAWL_INVALID,
                          "%u connections need %lld descriptors, and the system gives %lld "
                          "(ulimit -Hn): say --connections %lld, or less of the rest",
                          limits->connections, (long long)wanted, (long long)given,
                          (long long)(left > 0 ? left : 1));
    if (given < wanted)
        limits->connections = (unsigned)left;
    return PAWL_OK;
}

/* How often the reaper runs. A store that is away is waited for later. */
static int64_t find_interval(struct running *running, int64_t *ret_lease_ms)
{
    pawl_store *handle = NULL;
    pawl_reaper_settings settings;
    pawl_reaper_settings_init(&settings);
    pawl_queue_settings queue;
    pawl_queue_settings_init(&queue);
    *ret_lease_ms = queue.lease_ms;
    const pawl_opener *opener = &running->store.opener;
    if (opener->open(opener->user, PAWL_ROLE_REAPER, &handle, NULL) != PAWL_OK ||
        pawli_health_smallest_lease(handle, ret_lease_ms, NULL) != PAWL_OK)
        *ret_lease_ms = queue.lease_ms;
    pawl_store_close(handle);
    settings.interval_ms = pawli_line_number(running->line, "--reaper-interval", PAWL_DEFAULT);
    return pawli_reaper_interval_ms(&settings, *ret_lease_ms);
}

static pawl_code start_reaper(struct running *running, int64_t interval_ms, int64_t lease_ms,
                              pawl_err *err)
{
    pawl_reaper_options options;
    pawl_reaper_options_init(&options);
    options.settings.interval_ms = interval_ms;
    options.smallest_lease_ms = lease_ms;
    options.opener = running->store.opener;
    options.watch = (pawl_watch){tell_log, running, PAWL_LEVEL_DEBUG};
    options.metrics = running->metrics;
    return pawl_reaper_start(&options, &running->reaper, err);
}

static pawl_code start_workers(struct running *running, pawl_err *err)
{
    const struct pawli_serve_workers_args args = {
        .line = running->line,
        .webhooks = running->webhooks,
        .opener = running->store.opener,
        .watch = {tell_log, running, PAWL_LEVEL_DEBUG},
        .metrics = running->metrics,
    };
    return pawli_serve_workers_start(&running->workers, &args, err);
}

static pawl_code read_tokens(struct running *running, struct pawli_grants *ret_grants,
                             pawl_err *err)
{
    *ret_grants = (struct pawli_grants){0};
    if (running->tokens == NULL)
        return PAWL_OK;
    if (stat(running->tokens, &running->seen) != 0)
        running->seen = (struct stat){0};
    pawl_code code = pawli_grants_read(running->tokens, ret_grants, err);
    if (code != PAWL_OK || ret_grants->count > 0)
        return code;
    *err = (pawl_err){PAWL_INVALID, "--tokens: there is no token in the file: pawl token add"};
    return PAWL_INVALID;
}

static pawl_code start(struct running *running, pawl_err *err)
{
    struct pawli_listener listeners[PAWLI_LISTENERS_MAX];
    struct pawli_serve_options options = {.listeners = listeners,
                                          .opener = running->store.opener,
                                          .has_tokens = running->tokens != NULL,
                                          .webhooks = pawli_serve_webhooks_calls(running->webhooks),
                                          .watch = {tell_log, running, running->log.level}};
    int64_t lease_ms;
    int64_t interval_ms = find_interval(running, &lease_ms);
    options.reaper_interval_ms = interval_ms;
    fill_limits(running->line, &options.limits);
    pawl_code code = read_tokens(running, &options.grants, err);
    if (code == PAWL_OK)
        code = open_listeners(running->line, listeners, &options.listeners_count, err);
    if (code != PAWL_OK) {
        pawli_grants_clear(&options.grants);
        return code;
    }
    code = make_room(running->line, options.listeners_count, &options.limits, err);
    if (code == PAWL_OK)
        code = pawl_metrics_new(NULL, &running->metrics, err);
    options.metrics = running->metrics;
    running->log.metrics = running->metrics;
    if (code == PAWL_OK && !pawli_line_has(running->line, "--no-reaper"))
        code = start_reaper(running, interval_ms, lease_ms, err);
    if (code == PAWL_OK)
        code = start_workers(running, err);
    if (code == PAWL_OK)
        return pawli_serve_start(&options, &running->serve, err);
    for (size_t i = 0; i < options.listeners_count; i++)
        pawli_listener_close(&listeners[i]);
    pawli_grants_clear(&options.grants);
    return code;
}

/* ---------------------------------------------------------------- running */

/* Wait for a signal for so long, and do what is due meanwhile. */
static int look(struct running *running, pawl_mono *beat_at)
{
    const pawl_clock *clock = pawl_clock_system();
    int64_t beat_ms = pawli_notify_watchdog_ms();
    int told = pawli_cli_stop_signals_wait(LOOK_MS);
    pawl_mono now = clock->mono(clock->user);
    pawli_serve_look(running->serve);
    look_at_tokens(running, told == SIGHUP);
    if (beat_ms > 0 && !pawli_mono_is_before(now, *beat_at)) {
        (void)pawli_notify("WATCHDOG=1"); /* nobody may listen */
        *beat_at = pawli_mono_add_ms(now, beat_ms > LOOK_MS ? beat_ms - LOOK_MS : 0);
    }
    return told == SIGHUP ? 0 : told;
}

static bool is_done(struct running *running)
{
    return pawli_serve_in_flight(running->serve) == 0 &&
           pawli_serve_workers_have_stopped(&running->workers);
}

/* The first signal: finish what is under way, requests and jobs alike. The second: at once. */
static void run_until_told(struct running *running)
{
    const pawl_clock *clock = pawl_clock_system();
    int64_t shutdown_ms = pawli_line_number(running->line, "--shutdown", SHUTDOWN_MS);
    pawl_mono beat_at = clock->mono(clock->user);
    (void)pawli_notify("READY=1");
    while (look(running, &beat_at) == 0)
        ;
    (void)pawli_notify("STOPPING=1");
    pawli_serve_drain(running->serve);
    pawli_serve_workers_stop(&running->workers, shutdown_ms);
    pawl_mono until = pawli_mono_add_ms(clock->mono(clock->user), shutdown_ms);
    while (!is_done(running) && pawli_mono_is_before(clock->mono(clock->user), until))
        if (look(running, &beat_at) != 0) {
            pawli_serve_workers_abort(&running->workers);
            break;
        }
}

static int run_with(struct running *running)
{
    pawl_err err = {.text = ""};
    pawl_code code = start(running, &err);
    int exit_code = EX_OK;
    if (code == PAWL_OK) {
        let_hear(running, running->serve);
        run_until_told(running);
        let_hear(running, NULL);
    } else {
        exit_code = pawli_cli_fail(NAME, code, &err);
    }
    size_t left = pawli_serve_stop(running->serve, STOP_MS);
    left += pawli_serve_workers_free(&running->workers);
    left += pawl_reaper_stop(running->reaper);
    if (left > 0)
        _exit(exit_code); /* nothing can be freed, nor done at exit, under threads that still run */
    pawl_metrics_free(running->metrics);
    return exit_code;
}

static void tell_routes(bool is_json)
{
    static const char *const reaches[] = {"-", "named", "all"};
    static const char *const bodies[] = {"-", "bytes", "json", "lines"};
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    if (is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "routes");
    }
    for (size_t i = 0; i < pawli_routes_count; i++) {
        const struct pawli_route *route = &pawli_routes[i];
        if (!is_json) {
            (void)printf("%s %s %s %s %s %s %zu\n", route->name, route->method, route->path,
                         pawli_scope_name(route->scope), reaches[route->reach], bodies[route->body],
                         route->body_max); /* main asks for errors */
            continue;
        }
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "name", route->name);
        pawli_json_text(&json, "method", route->method);
        pawli_json_text(&json, "path", route->path);
        pawli_json_text(&json, "scope", pawli_scope_name(route->scope));
        pawli_json_text(&json, "queues", reaches[route->reach]);
        pawli_json_text(&json, "body", bodies[route->body]);
        pawli_json_number(&json, "body_max", (int64_t)route->body_max);
        pawli_json_close(&json);
    }
    if (is_json) {
        pawli_json_close(&json);
        pawli_json_close(&json);
    }
}

static int run_serve(const struct pawli_line *line)
{
    struct running running = {.line = line, .tokens = pawli_line_text(line, "--tokens")};
    pawl_err err = {.text = ""};
    if (pawli_line_has(line, "--routes")) {
        tell_routes(pawli_line_has(line, "--json"));
        return EX_OK;
    }
    if (pawli_line_has(line, "--json"))
        return pawli_line_refuse(line, "--json goes with --routes; the log has --log-format json");
    if (line->arguments_count > 0 && line->program == NULL)
        return pawli_line_refuse(line, "say what to run for the jobs of %s, after --",
                                 line->arguments[0]);
    if (line->arguments_count == 0 && line->program != NULL)
        return pawli_line_refuse(line, "say whose jobs to run the program for: a queue, before --");
    int exit_code = pawli_serve_webhooks_new(line, &running.webhooks);
    if (exit_code != EX_OK)
        return exit_code;
    pawli_cli_stop_signals_hold();
    (void)pthread_mutex_init(&running.log_lock, NULL); /* cannot fail: it is plain */
    pawli_log_init(&running.log, line);
    const struct pawli_cli_store_args args = {PAWL_DEFAULT, true};
    pawl_code code = pawli_cli_store_init(&running.store, line, &args, &err);
    exit_code = code == PAWL_OK ? run_with(&running) : pawli_cli_fail(NAME, code, &err);
    pawli_cli_store_clear(&running.store);
    pawli_serve_webhooks_free(running.webhooks);
    (void)pthread_mutex_destroy(&running.log_lock); /* nobody holds it */
    return exit_code;
}

static const struct pawli_option options[] = {
    {"--body-timeout", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how long a body or an answer may take beyond 4 KiB a second (default 30s)", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    {"--connections", PAWLI_NUMBER | PAWLI_SETTING, "N", "at once, on each address (default 1000)",
     1, 100000, NULL},
    {"--connections-per-address", PAWLI_NUMBER | PAWLI_SETTING, "N",
     "at once, from one IP address (default 256); 0: no such bound", 0, 100000, NULL},
    {"--deliver", PAWLI_FLAG | PAWLI_SETTING, NULL, "deliver webhooks, too, as pawl deliver does",
     0, 0, NULL},
    {"--head-timeout", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how long the head of a request may take (default 10s)", 0, 0, NULL},
    {"--idle-timeout", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how long a connection may do nothing (default 60s)", 0, 0, NULL},
    {"--json", PAWLI_FLAG, NULL, "as one JSON document, with --routes", 0, 0, NULL},
    {"--lease", PAWLI_DURATION | PAWLI_SETTING, "D",
     "of jobs that the program is run for; default: what each queue is set to", 0, 0, NULL},
    {"--listen", PAWLI_TEXT | PAWLI_REPEATED, "ADDRESS",
     "PORT (on 127.0.0.1), HOST:PORT, [IPV6]:PORT or a socket's path; can be said again for more; "
     "default: " ADDRESS ", or the sockets that the service manager hands on",
     0, 0, NULL},
    {"--listeners", PAWLI_NUMBER | PAWLI_SETTING, "N", "to changes, at once (default 100)", 0,
     100000, NULL},
    PAWLI_OPTION_LOG_FORMAT,
    PAWLI_OPTION_LOG_LEVEL,
    {"--no-reaper", PAWLI_FLAG | PAWLI_SETTING, NULL, "leave recovering to others", 0, 0, NULL},
    {"--parallel", PAWLI_NUMBER | PAWLI_SETTING, "N", "programs at once (default 10)", 0, INT64_MAX,
     NULL},
    {"--reaper-interval", PAWLI_DURATION | PAWLI_SETTING, "D",
     "default: half the smallest lease, 10s at most", 0, 0, NULL},
    {"--routes", PAWLI_FLAG, NULL, "show what can be asked, and end", 0, 0, NULL},
    {"--shutdown", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how long requests under way may take when it is told to end (default 30s)", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {"--stream-heartbeat", PAWLI_DURATION | PAWLI_SETTING, "D",
     "after so long without a change listeners hear that it lives (default 15s)", 0, 0, NULL},
    {"--threads", PAWLI_NUMBER | PAWLI_SETTING, "N",
     "that ask the store, each with a connection of its own (default 8)", 1, 1000, NULL},
    {"--tokens", PAWLI_FILE | PAWLI_SETTING, "FILE",
     "who may ask for what: made by pawl token; default: nobody needs a token, and only this "
     "machine is answered",
     0, 0, NULL},
    PAWLI_OPTION_VERBOSE,
    {"--waiting", PAWLI_NUMBER | PAWLI_SETTING, "N",
     "claims that may wait for work at once (default 500)", 1, 100000, NULL},
    PAWLI_OPTION_WEBHOOK_ALLOW,
    PAWLI_OPTION_WEBHOOK_CA,
    PAWLI_OPTION_WEBHOOK_HTTP,
    {"--webhook-parallel", PAWLI_NUMBER | PAWLI_SETTING, "N", "deliveries at once (default 1000)",
     1, INT64_MAX, NULL},
    PAWLI_OPTION_WEBHOOK_PORTS,
    PAWLI_OPTION_WEBHOOK_PROXY,
    PAWLI_OPTION_WEBHOOK_SOURCE,
    {0},
};

const struct pawli_command pawli_command_serve = {
    .name = NAME,
    .about = "serve the HTTP interface",
    .arguments = "[QUEUE...]",
    .arguments_max = PAWL_LINES_MAX,
    .names_max = PAWL_LINES_MAX,
    .is_program_taken = true,
    .options = options,
    .details =
        "Jobs, claims, queues, events, endpoints and work leases over HTTP and JSON: docs/serve.md "
        "has all of it. It brings a reaper along, and serves /livez, /readyz and /metrics.\n"
        "With queues, and a program after --, it runs the program for each of their jobs, as pawl "
        "work does; with --deliver it delivers webhooks, as pawl deliver does. Requests, jobs and "
        "deliveries end together.\n"
        "Without --tokens it answers only at addresses of this machine and at Unix sockets, and "
        "refuses to start at any other.\n"
        "The first SIGTERM or SIGINT lets requests under way finish, while new ones are answered "
        "with 503; the second ends it at once. SIGHUP makes it read the tokens again, which it "
        "also does when their file changes.",
    .examples = "pawl serve\n"
                "pawl serve --listen 0.0.0.0:7295 --tokens /etc/pawl/tokens\n"
                "pawl serve --listen /run/pawl/pawl.sock\n"
                "pawl serve mail --deliver -- /usr/bin/send-mail\n",
    .run = run_serve,
};
