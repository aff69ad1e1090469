/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_bench.c - what it costs to deliver events durably and signed, as a ratio to a bare loop
 * around curl_multi that posts as much to the same server, 64 at once, and remembers nothing; on
 * SQLite and on PostgreSQL. The server is as receivers of webhooks are: node's, over https, which
 * checks each signature (see receiver.mjs); and, to know what we cost where nobody else costs
 * anything, one over http that does not even read what comes. Of each store also: store calls for
 * each claim that brought something; how long it takes from the commit of an event to its first
 * byte at the endpoint, at 1,000 events a second in commits of ten; what is left to eight healthy
 * endpoints while eight others hang; and what renewals cost, with a hundred deliveries that are
 * held and renewed every two seconds.
 *
 * Both sides of a ratio run in turns; the median of the turns' ratios counts, and the lowest and
 * the highest are told. With few events it is a try, not a measurement: one turn of each. The
 * server of PostgreSQL is one that it starts itself, without fsync; the file of SQLite is in memory
 * where there is /dev/shm.
 * Usage: deliver-bench [EVENTS [sqlite|postgres [rate|latency|neighbours|renewals]]]
 */
#include "deliver/dispatcher.h"
#include "support/deliver_server.h"
#include "pawl/endpoint.h"
#include "support/pg_schema.h"
#include "support/pg_server.h"
#include "support/scratch.h"
#include "webhook/sign.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DATABASE       "bench"
#define EVENTS_DEFAULT 20000
#define TRY_EVENTS     1000 /* up to so many, it is only tried */
#define IN_FLIGHT      64
#define OURS           256 /* of ours: those that are claimed or settled just now count as well */
#define BATCH          500
#define TURNS          5
#define WAIT_MOST_US   INT64_C(600000000)
#define URL_MAX        128
#define BODY_MAX       64
#define LEASE_MS       8000
#define LEASE_LONG_MS  3600000
#define HELD           100
#define NEIGHBOURS     8
#define RATE           1000 /* events per second */
#define RATE_BATCH     10
#define SECRET         "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

/* A server of node's; see receiver.mjs. */
struct receiver {
    uint16_t port;
    struct scratch scratch; /* with its key and its certificate */
    char key[SCRATCH_PATH_MAX + 8];
    char certificate[SCRATCH_PATH_MAX + 8];
    FILE *words;
    int in; /* its standard input: it goes when this is closed */
    pid_t pid;
};

struct bench {
    const char *name;
    const char *url;  /* of the store; NULL: a new file */
    const char *part; /* the only one that is measured; NULL: all */
    size_t events;
    struct server server;
    struct scratch scratch;
    pawl_source *source;
    pawl_store *store;
    struct pawli_allow allow;
    uint16_t port;             /* of the server that is delivered to */
    struct receiver *receiver; /* that server; NULL: `server` */
    int turn;                  /* part of the names of endpoints */
    double busiest_us;         /* of the last turn: the processor time of one thread per delivery */
    double bare_us;            /* of the last bare loop: likewise, per request */
    size_t published;          /* so far: the number of the next event */
    atomic_size_t claims;      /* that brought something */
    atomic_size_t calls;     /* of those that claim, renew and settle, but for claims of nothing */
    atomic_size_t delivered; /* as the store has it; counted only where it is listened to */
    atomic_size_t renewed;
};

static bool complain(const pawl_err *err)
{
    (void)fprintf(stderr, "deliver-bench: %s\n", err->text);
    return false;
}

/* False: it does not come. */
static bool wait_for(const atomic_size_t *count, size_t wanted)
{
    int64_t until_us = server_now_us() + WAIT_MOST_US;
    while (atomic_load(count) < wanted && server_now_us() < until_us)
        (void)poll(NULL, 0, 1);
    return atomic_load(count) >= wanted;
}

/* ---- node's server */

static bool await_word(struct receiver *receiver, const char *word)
{
    char line[32];
    return fgets(line, sizeof(line), receiver->words) != NULL &&
           strncmp(line, word, strlen(word)) == 0;
}

/* A key, and a certificate that says itself that 127.0.0.1 has it. */
static bool certify(struct receiver *receiver)
{
    int status = 0;
    if (!scratch_make(&receiver->scratch))
        return false;
    (void)snprintf(receiver->key, sizeof(receiver->key), "%s/key", receiver->scratch.folder);
    (void)snprintf(receiver->certificate, sizeof(receiver->certificate), "%s/cert",
                   receiver->scratch.folder); /* these fit */
    pid_t pid = fork();
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        (void)execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", receiver->key, "-out",
                     receiver->certificate, "-subj", "/CN=receiver", "-addext",
                     "subjectAltName=IP:127.0.0.1", "-days", "2", (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* False: there is no node, or no openssl. */
static bool start_receiver(struct receiver *receiver)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    char line[32];
    if (!certify(receiver) || pipe(in) != 0 || pipe(out) != 0)
        return false;
    (void)fcntl(in[1], F_SETFD, FD_CLOEXEC);
    receiver->pid = fork();
    if (receiver->pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)execlp("node", "node", RECEIVER, receiver->key, receiver->certificate, SECRET,
                     (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    receiver->in = in[1];
    receiver->words = fdopen(out[0], "r");
    if (receiver->pid < 0 || receiver->words == NULL ||
        fgets(line, sizeof(line), receiver->words) == NULL)
        return false;
    receiver->port = (uint16_t)strtoul(line, NULL, 10);
    return receiver->port != 0;
}

static void stop_receiver(struct receiver *receiver)
{
    int status = 0;
    (void)close(receiver->in);
    if (receiver->words != NULL)
        (void)fclose(receiver->words);
    if (receiver->pid > 0)
        (void)waitpid(receiver->pid, &status, 0);
    scratch_remove(&receiver->scratch);
}

static const char *scheme(const struct bench *bench)
{
    return bench->receiver != NULL ? "https" : "http";
}

static void trust(const struct bench *bench, CURL *easy)
{
    if (bench->receiver != NULL)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, bench->receiver->certificate);
}

/* From now on so many will come. */
static bool expect(struct bench *bench, size_t events)
{
    char url[URL_MAX];
    CURL *easy = bench->receiver != NULL ? curl_easy_init() : NULL;
    if (easy == NULL)
        return bench->receiver == NULL;
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u/expect/%zu", scheme(bench),
                   (unsigned)bench->port, events);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    trust(bench, easy);
    bool is_told = curl_easy_perform(easy) == CURLE_OK;
    curl_easy_cleanup(easy);
    return is_told;
}

/* ---- a bare loop */

static size_t drop(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes;
    (void)user;
    return size * count;
}

/* What the bare loop sends, again and again: signed once. */
struct letter {
    char body[BODY_MAX];
    struct curl_slist *headers;
};

static bool write_letter(struct letter *letter)
{
    char line[PAWLI_SIGNATURES_SIZE + 32], signature[PAWLI_SIGNATURES_SIZE];
    const pawl_clock *clock = pawl_clock_system();
    int64_t now_s = clock->wall(clock->user).us / 1000000;
    struct pawli_secret secret;
    struct pawli_signer *signer = NULL;
    pawl_err err;
    (void)snprintf(letter->body, sizeof(letter->body), SERVER_BODY, (size_t)1); /* all these fit */
    const struct pawli_sign_args args = {.id = "evt_bare",
                                         .timestamp_s = now_s,
                                         .body = letter->body,
                                         .body_len = strlen(letter->body)};
    bool is_signed = pawli_secret_parse(SECRET, &secret, &err) == PAWL_OK &&
                     pawli_signer_new(&secret, 1, &signer, &err) == PAWL_OK &&
                     pawli_sign(signer, &args, signature, &err) == PAWL_OK;
    pawli_signer_free(signer);
    if (!is_signed)
        return complain(&err);
    letter->headers = curl_slist_append(NULL, "content-type: application/json");
    letter->headers = curl_slist_append(letter->headers, "webhook-id: evt_bare");
    (void)snprintf(line, sizeof(line), "webhook-timestamp: %" PRId64, now_s);
    letter->headers = curl_slist_append(letter->headers, line);
    (void)snprintf(line, sizeof(line), "webhook-signature: %s", signature);
    letter->headers = curl_slist_append(letter->headers, line);
    return true;
}

static bool is_answered_well(CURLMsg *message)
{
    long status = 0;
    (void)curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    return message->data.result == CURLE_OK && status == 200;
}

/* Requests per second. */
static double run_bare(struct bench *bench)
{
    struct letter letter = {.headers = NULL};
    CURL *easies[IN_FLIGHT];
    size_t refused = 0;
    CURLM *multi = curl_multi_init();
    char url[URL_MAX];
    size_t begun = 0, ended = 0;
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u/ok", scheme(bench), (unsigned)bench->port);
    if (!write_letter(&letter) || !expect(bench, bench->events))
        return -1;
    struct timespec from, to;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    int64_t began_us = server_now_us();
    for (; begun < IN_FLIGHT && begun < bench->events; begun++) {
        CURL *easy = easies[begun] = curl_easy_init();
        (void)curl_easy_setopt(easy, CURLOPT_URL, url);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, letter.headers);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, letter.body);
        trust(bench, easy);
        (void)curl_multi_add_handle(multi, easy);
    }
    size_t handles = begun;
    while (ended < bench->events) {
        int running = 0, left = 0;
        CURLMsg *message;
        (void)curl_multi_perform(multi, &running);
        while ((message = curl_multi_info_read(multi, &left)) != NULL) {
            CURL *easy = message->easy_handle;
            ended++;
            refused += !is_answered_well(message);
            (void)curl_multi_remove_handle(multi, easy);
            if (begun++ < bench->events)
                (void)curl_multi_add_handle(multi, easy);
        }
        if (ended < bench->events)
            (void)curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    double seconds = (double)(server_now_us() - began_us) / 1e6;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    bench->bare_us = ((double)(to.tv_sec - from.tv_sec) * 1e6 +
                      (double)(to.tv_nsec - from.tv_nsec) / 1e3) /
                     (double)bench->events;
    for (size_t i = 0; i < handles; i++)
        curl_easy_cleanup(easies[i]);
    (void)curl_multi_cleanup(multi);
    curl_slist_free_all(letter.headers);
    if (refused > 0)
        (void)fprintf(stderr, "%zu requests of the bare loop were not answered well\n", refused);
    if (refused > 0 || (bench->receiver != NULL && !(await_word(bench->receiver, "first") &&
                                                     await_word(bench->receiver, "last"))))
        return -1;
    return (double)bench->events / seconds;
}

/* ---- endpoints and events */

static bool add(struct bench *bench, const char *name, const char *path, int64_t lease_ms)
{
    char url[URL_MAX], own[PAWL_ENDPOINT_NAME_MAX + 1];
    pawl_endpoint_settings settings;
    pawl_err err;
    (void)snprintf(own, sizeof(own), "%06d-%s", bench->turn, name); /* fits */
    pawl_endpoint_settings_init(&settings);
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u%s", scheme(bench), (unsigned)bench->port,
                   path);
    settings.url = url;
    settings.topics = strncmp(path, "/held", 5) == 0 ? "held" : "event.*";
    settings.max_in_flight = 2 * HELD;
    settings.timeout_ms = PAWL_ENDPOINT_TIMEOUT_MAX_MS;
    settings.lease_ms = lease_ms;
    if (strcmp(path, "/ok/one") == 0)
        settings.max_in_flight = OURS;
    const pawl_endpoint_add_args args = {.name = own, .secret = SECRET, .settings = &settings};
    return pawl_endpoint_add(bench->store, &args, &err) == PAWL_OK || complain(&err);
}

static bool publish(struct bench *bench, const char *type, size_t events)
{
    static char bodies[BATCH][BODY_MAX];
    static pawl_publish_row rows[BATCH];
    static pawl_published results[BATCH];
    pawl_err err;
    for (size_t done = 0; done < events;) {
        size_t count = events - done < BATCH ? events - done : BATCH;
        for (size_t i = 0; i < count; i++) {
            pawl_publish_init(&rows[i]);
            (void)snprintf(bodies[i], BODY_MAX, SERVER_BODY, bench->published++); /* fits */
            rows[i].type = type;
            rows[i].payload = bodies[i];
            rows[i].payload_len = strlen(bodies[i]);
        }
        if (pawl_publish(bench->store, rows, count, results, &err) != PAWL_OK)
            return complain(&err);
        done += count;
    }
    return true;
}

/* ---- a store, and those who deliver */

static bool open_store(struct bench *bench)
{
    char url[SCRATCH_PATH_MAX + 32];
    pawl_source_options options;
    pawl_err err;
    pawl_source_options_init(&options);
    bench->turn++;
    options.url = bench->url;
    options.call_timeout_ms = 30000;
    if (bench->url == NULL) {
        if (!scratch_make(&bench->scratch))
            return false;
        (void)snprintf(url, sizeof(url), "sqlite:%s", bench->scratch.path); /* fits */
        options.url = url;
    }
    return (pawl_source_new(&options, &bench->source, &err) == PAWL_OK &&
            pawl_source_open(bench->source, &bench->store, &err) == PAWL_OK) ||
           complain(&err);
}

/* What was added is disabled: the next turn has endpoints of its own. */
static bool close_store(struct bench *bench)
{
    pawl_endpoint rows[2 * NEIGHBOURS];
    size_t count = 0;
    pawl_err err;
    pawl_code code = bench->store != NULL ? PAWL_OK : PAWL_DOWN;
    char after[PAWL_ENDPOINT_NAME_MAX + 1];
    (void)snprintf(after, sizeof(after), "%06d-", bench->turn); /* fits */
    if (code == PAWL_OK)
        code = pawl_endpoint_list(bench->store, after, rows, 2 * NEIGHBOURS, &count, &err);
    for (size_t i = 0; code == PAWL_OK && i < count; i++) {
        const pawl_endpoint_switch args = {.name = rows[i].name, .by = "bench"};
        code = pawl_endpoint_disable(bench->store, &args, &err);
    }
    pawl_store_close(bench->store);
    pawl_source_free(bench->source);
    bench->store = NULL;
    bench->source = NULL;
    if (bench->url == NULL)
        scratch_remove(&bench->scratch);
    return code == PAWL_OK;
}

static pawl_code open_handle(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    const struct bench *bench = user;
    (void)role; /* all handles are alike */
    return pawl_source_open(bench->source, ret_store, err);
}

static void tell(void *user, const pawl_event *event)
{
    struct bench *bench = user;
    if (event->kind == PAWL_EVENT_JOB_SETTLED)
        (void)atomic_fetch_add(&bench->delivered, 1);
    if (event->kind != PAWL_EVENT_CALL || event->count == 0)
        return;
    bool is_claim = strcmp(event->subject, "claim") == 0;
    bool is_renewal = strcmp(event->subject, "renew") == 0;
    if (is_claim)
        (void)atomic_fetch_add(&bench->claims, 1);
    if (is_renewal)
        (void)atomic_fetch_add(&bench->renewed, (size_t)event->count);
    if (is_claim || is_renewal || strcmp(event->subject, "settle") == 0)
        (void)atomic_fetch_add(&bench->calls, 1);
}

static pawl_runner *start(struct bench *bench, bool is_counting)
{
    struct pawli_dispatcher_options options;
    pawl_runner *runner = NULL;
    pawl_err err;
    pawli_dispatcher_options_init(&options);
    options.worker.opener = (pawl_opener){.open = open_handle, .user = bench};
    options.worker.settings.parallel_max = 2 * OURS + 2 * HELD;
    options.worker.watch = (pawl_watch){
        .tell = tell, .user = bench, .level = is_counting ? PAWL_LEVEL_DEBUG : PAWL_LEVEL_ERROR};
    options.target = (struct pawli_target_rules){
        .allow = &bench->allow, .ports = &bench->port, .ports_count = 1, .is_http_allowed = true};
    options.wire.allow = &bench->allow;
    if (bench->receiver != NULL)
        options.wire.ca_file = bench->receiver->certificate;
    options.per_host_max = PAWL_BATCH_MAX; /* all endpoints are on one */
    atomic_store(&bench->claims, 0);
    atomic_store(&bench->calls, 0);
    atomic_store(&bench->delivered, 0);
    atomic_store(&bench->renewed, 0);
    atomic_store(&bench->server.shared->answered, 0);
    if (pawli_dispatcher_start(&options, &runner, &err) == PAWL_OK)
        return runner;
    (void)complain(&err);
    return NULL;
}

/* What hangs is stopped. */
static bool stop(pawl_runner *runner)
{
    pawl_worker_stop(runner, 1000);
    bool is_ended = runner != NULL && pawl_worker_wait(runner, 60000, NULL) == PAWL_OK;
    return pawl_worker_free(runner) == 0 && is_ended;
}

/* Until the store has it that nothing is left of an endpoint. */
static bool wait_drained(struct bench *bench, const char *name)
{
    char first[PAWL_NAME_MAX + 1], queue[2 * PAWL_NAME_MAX];
    int64_t until_us = server_now_us() + WAIT_MOST_US;
    int64_t left = 1;
    (void)snprintf(first, sizeof(first), "webhook/%06d-", bench->turn); /* these fit */
    (void)snprintf(queue, sizeof(queue), "%s%s", first, name);
    while (left > 0 && server_now_us() < until_us) {
        pawl_stats rows[2 * NEIGHBOURS];
        size_t count = 0;
        (void)poll(NULL, 0, 1);
        if (pawl_queue_stats(bench->store, first, rows, 2 * NEIGHBOURS, &count, NULL) != PAWL_OK)
            return false;
        left = 0;
        for (size_t i = 0; i < count; i++)
            left += strcmp(rows[i].queue, queue) == 0 ? rows[i].ready + rows[i].in_flight : 0;
    }
    return left == 0;
}

/* ---- what is measured */

/*
 * Processor time of this process's threads of a name so far, in us. On a machine with few
 * processors all threads and servers share them; by this it can be told what the busiest one
 * costs, and so what would be left where each has a processor of its own.
 */
static double thread_us(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    double us = 0;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300], comm[32] = "";
        unsigned long long ns = 0;
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name); /* these fit */
        FILE *file = fopen(path, "r");
        bool is_read = file != NULL && fscanf(file, "%31s", comm) == 1;
        if (file != NULL)
            (void)fclose(file);
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", task->d_name);
        file = is_read && strcmp(comm, name) == 0 ? fopen(path, "r") : NULL;
        if (file != NULL && fscanf(file, "%llu", &ns) == 1)
            us += (double)ns / 1000;
        if (file != NULL)
            (void)fclose(file);
    }
    if (tasks != NULL)
        (void)closedir(tasks);
    return us;
}

/* What the busiest thread of a runner has used. Those that write to a file of SQLite take turns. */
static double busiest_us(const struct bench *bench)
{
    double claims = thread_us("pawl-claimer"), settles = thread_us("pawl-settler");
    double store = bench->url == NULL ? claims + settles : claims > settles ? claims : settles;
    double conductor = thread_us("pawl-conductor");
    return conductor > store ? conductor : store;
}

static bool await_answers(struct bench *bench, bool is_first)
{
    if (bench->receiver != NULL)
        return await_word(bench->receiver, is_first ? "first" : "last");
    return wait_for(&bench->server.shared->answered, is_first ? 1 : bench->events);
}

/* Deliveries per second: from the first answer until the store has the last; below 0: no. */
static double run_turn(struct bench *bench, bool is_counting)
{
    double rate = -1;
    if (open_store(bench) && add(bench, "one", "/ok/one", PAWL_DEFAULT) &&
        publish(bench, "event.made", bench->events) && expect(bench, bench->events)) {
        pawl_runner *runner = start(bench, is_counting);
        if (runner != NULL && await_answers(bench, true)) {
            int64_t began_us = server_now_us();
            if (await_answers(bench, false) && wait_drained(bench, "one"))
                rate = (double)bench->events * 1e6 / (double)(server_now_us() - began_us);
            bench->busiest_us = busiest_us(bench) / (double)bench->events;
        }
        rate = stop(runner) ? rate : -1;
    }
    return close_store(bench) ? rate : -1;
}

/* Ratios of turns. */
struct ratios {
    double each[TURNS];
    size_t count;
};

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Ends a line that has said of what. */
static void tell_ratios(struct ratios *ratios, const char *wanted)
{
    qsort(ratios->each, ratios->count, sizeof(ratios->each[0]), by_size);
    (void)printf("ratio %.3f (%.3f to %.3f; %s)\n", ratios->each[ratios->count / 2],
                 ratios->each[0], ratios->each[ratios->count - 1], wanted);
}

static size_t turns_of(const struct bench *bench)
{
    return bench->events > TRY_EVENTS ? TURNS : 1;
}

static bool measure_rate_to(struct bench *bench, const char *server, const char *wanted)
{
    struct ratios ratios = {.count = 0}, threads = {.count = 0};
    double bare = 0, durable = 0;
    for (size_t i = 0; i < turns_of(bench); i++) {
        bare = run_bare(bench);
        durable = run_turn(bench, false);
        if (bare < 0 || durable < 0)
            return false;
        ratios.each[ratios.count++] = durable / bare;
        threads.each[threads.count++] = bench->bare_us / bench->busiest_us;
    }
    (void)printf("%s: to %s: a bare loop: %.0f requests/s; deliveries: %.0f/s; ", bench->name,
                 server, bare, durable);
    tell_ratios(&ratios, wanted);
    (void)printf("%s: to %s: processor time of the bare loop per request: %.1f us; of our busiest "
                 "thread per delivery: %.1f us; ",
                 bench->name, server, bench->bare_us, bench->busiest_us);
    tell_ratios(&threads, "what is left where each thread has a processor");
    return true;
}

static bool measure_rate(struct bench *bench)
{
    struct receiver receiver = {.in = -1};
    bool is_done = measure_rate_to(bench, "a server that does nothing", "no goal");
    if (start_receiver(&receiver)) {
        bench->receiver = &receiver;
        bench->port = receiver.port;
        is_done = is_done && measure_rate_to(bench, "node's server over https", "0.5 is wanted");
        bench->receiver = NULL;
        bench->port = bench->server.port;
    } else {
        (void)printf("%s: to node's server: not shown, for there is no node, or no openssl\n",
                     bench->name);
    }
    stop_receiver(&receiver);
    is_done = is_done && run_turn(bench, true) >= 0;
    if (!is_done)
        return false;
    size_t calls = atomic_load(&bench->calls), claims = atomic_load(&bench->claims);
    (void)printf("%s: store calls for each claim that brought something: %.2f (3 at most), of "
                 "%.1f deliveries each\n",
                 bench->name, (double)calls / (double)claims,
                 (double)bench->events / (double)claims);
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Publish at the rate for so many events; committed_us[i]: when the i-th was. */
static bool publish_slowly(struct bench *bench, size_t events, int64_t *committed_us)
{
    int64_t began_us = server_now_us();
    for (size_t done = 0; done < events; done += RATE_BATCH) {
        int64_t ahead_us = began_us + (int64_t)done * 1000000 / RATE - server_now_us();
        if (ahead_us > 0)
            (void)poll(NULL, 0, (int)(ahead_us / 1000));
        if (!publish(bench, "event.made", RATE_BATCH))
            return false;
        for (size_t i = 0; i < RATE_BATCH; i++)
            committed_us[done + i] = server_now_us();
    }
    return true;
}

static bool measure_latency(struct bench *bench)
{
    size_t events = bench->events / RATE_BATCH * RATE_BATCH;
    int64_t *us = calloc(events + 1, sizeof(us[0]));
    size_t first = bench->published;
    bool is_done = us != NULL && open_store(bench) && add(bench, "one", "/ok/one", PAWL_DEFAULT);
    pawl_runner *runner = is_done ? start(bench, false) : NULL;
    is_done = runner != NULL && publish(bench, "event.warm", 1) &&
              wait_for(&bench->server.shared->answered, 1);
    first = bench->published;
    is_done = is_done && publish_slowly(bench, events, us) &&
              wait_for(&bench->server.shared->answered, events + 1);
    is_done = stop(runner) && is_done;
    for (size_t i = 0; is_done && i < events; i++)
        us[i] = atomic_load(&bench->server.shared->came_us[first + i]) - us[i];
    if (is_done && events > 0) {
        qsort(us, events, sizeof(us[0]), by_value);
        (void)printf("%s: from commit to first byte at %d events/s: p50 %.1f ms, p99 %.1f ms\n",
                     bench->name, RATE, (double)us[events / 2] / 1000,
                     (double)us[events * 99 / 100] / 1000);
    }
    free(us);
    return close_store(bench) && is_done;
}

/* Deliveries per second to healthy endpoints, beside so many that hang. */
static double run_neighbours(struct bench *bench, size_t hanging)
{
    double rate = -1;
    bool is_ready = open_store(bench);
    char name[32], path[32];
    size_t wanted = bench->events / NEIGHBOURS * NEIGHBOURS;
    for (size_t i = 0; is_ready && i < NEIGHBOURS + hanging; i++) {
        const char *kind = i < NEIGHBOURS ? "ok" : "hang";
        (void)snprintf(name, sizeof(name), "%s-%zu", kind, i); /* these fit */
        (void)snprintf(path, sizeof(path), "/%s/%zu", kind, i);
        is_ready = add(bench, name, path, PAWL_DEFAULT);
    }
    is_ready = is_ready && publish(bench, "event.made", wanted / NEIGHBOURS);
    pawl_runner *runner = is_ready ? start(bench, false) : NULL;
    if (runner != NULL && wait_for(&bench->server.shared->answered, 1)) {
        int64_t began_us = server_now_us();
        if (wait_for(&bench->server.shared->answered, wanted))
            rate = (double)wanted * 1e6 / (double)(server_now_us() - began_us);
    }
    rate = runner != NULL && stop(runner) ? rate : -1;
    return close_store(bench) ? rate : -1;
}

static bool measure_neighbours(struct bench *bench)
{
    struct ratios ratios = {.count = 0};
    double alone = 0, beside = 0;
    for (size_t i = 0; i < turns_of(bench); i++) {
        alone = run_neighbours(bench, 0);
        beside = run_neighbours(bench, NEIGHBOURS);
        if (alone < 0 || beside < 0)
            return false;
        ratios.each[ratios.count++] = beside / alone;
    }
    (void)printf("%s: to %d endpoints: %.0f/s; beside %d that hang: %.0f/s; ", bench->name,
                 NEIGHBOURS, alone, NEIGHBOURS, beside);
    tell_ratios(&ratios, "0.9 is wanted");
    return true;
}

/* Deliveries per second, while HELD others are under way. */
static double run_held(struct bench *bench, int64_t lease_ms, size_t *ret_renewed)
{
    double rate = -1;
    struct server_shared *shared = bench->server.shared;
    bool is_ready = open_store(bench) && add(bench, "held", "/held", lease_ms) &&
                    add(bench, "one", "/ok/one", PAWL_DEFAULT);
    pawl_runner *runner = is_ready ? start(bench, true) : NULL;
    atomic_store(&shared->is_holding, false);
    /* Whoever has answered often may hold many. */
    is_ready = runner != NULL && publish(bench, "held", 2 * HELD) &&
               wait_for(&shared->answered, 2 * HELD);
    atomic_store(&shared->is_holding, true);
    is_ready = is_ready && publish(bench, "held", HELD) && wait_for(&shared->held, HELD) &&
               (lease_ms != LEASE_MS || wait_for(&bench->renewed, HELD));
    size_t settled = atomic_load(&bench->delivered);
    atomic_store(&bench->renewed, 0);
    int64_t began_us = server_now_us();
    if (is_ready && publish(bench, "event.made", bench->events) &&
        wait_for(&bench->delivered, settled + bench->events))
        rate = (double)bench->events * 1e6 / (double)(server_now_us() - began_us);
    *ret_renewed = atomic_load(&bench->renewed);
    atomic_store(&shared->is_holding, false);
    is_ready = runner != NULL && wait_drained(bench, "held");
    rate = stop(runner) && is_ready ? rate : -1;
    return close_store(bench) ? rate : -1;
}

static bool measure_renewals(struct bench *bench)
{
    struct ratios ratios = {.count = 0};
    double with = 0, without = 0;
    size_t renewed = 0, none = 0;
    for (size_t i = 0; i < turns_of(bench); i++) {
        without = run_held(bench, LEASE_LONG_MS, &none);
        with = run_held(bench, LEASE_MS, &renewed);
        if (with < 0 || without < 0 || none > 0)
            return false;
        ratios.each[ratios.count++] = with / without;
    }
    (void)printf("%s: published and delivered beside %d held: %.0f/s; with renewals: %.0f/s (%zu "
                 "renewed); ",
                 bench->name, HELD, without, with, renewed);
    tell_ratios(&ratios, "0.98 is wanted");
    return true;
}

static const struct part {
    const char *name;
    bool (*measure)(struct bench *bench);
} parts[] = {{"rate", measure_rate},
             {"latency", measure_latency},
             {"neighbours", measure_neighbours},
             {"renewals", measure_renewals}};

static bool measure(struct bench *bench)
{
    bool is_done = true;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && is_done; i++)
        if (bench->part == NULL || strcmp(bench->part, parts[i].name) == 0)
            is_done = parts[i].measure(bench) && fflush(stdout) == 0;
    return is_done;
}

static bool parse(int argc, char **argv, struct bench *bench, const char **ret_store)
{
    char *end = NULL;
    bench->events = EVENTS_DEFAULT;
    *ret_store = argc > 2 ? argv[2] : NULL;
    bench->part = argc > 3 ? argv[3] : NULL;
    if (argc < 2)
        return true;
    errno = 0;
    unsigned long long number = strtoull(argv[1], &end, 10);
    bench->events = (size_t)number;
    return argc <= 4 && argv[1][0] >= '0' && argv[1][0] <= '9' && *end == '\0' && errno == 0 &&
           number >= NEIGHBOURS * RATE_BATCH && number <= EVENTS_DEFAULT;
}

static bool measure_postgres(struct bench *bench)
{
    char conninfo[PG_PATH_MAX];
    struct pg_server server = {0};
    bool is_done = pg_server_start(&server, false) && pg_schema_make(&server, DATABASE, 1);
    bench->name = "PostgreSQL";
    bench->url = pg_schema_conninfo(&server, DATABASE, conninfo);
    is_done = is_done && measure(bench);
    pg_server_remove(&server);
    return is_done;
}

int main(int argc, char **argv)
{
    struct bench bench = {.name = "SQLite"};
    const char *store = NULL;
    pawl_err err;
    if (!parse(argc, argv, &bench, &store)) {
        (void)fprintf(stderr, "usage: deliver-bench [EVENTS [sqlite|postgres [PART]]], %d to %d\n",
                      NEIGHBOURS * RATE_BATCH, EVENTS_DEFAULT);
        return 64;
    }
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    bool has_server = server_start(&bench.server);
    bench.port = bench.server.port;
    if (!has_server || pawli_allow_add(&bench.allow, "127.0.0.1", &err) != PAWL_OK)
        return 71;
    bool is_done = (store != NULL && strcmp(store, "sqlite") != 0) || measure(&bench);
    if (is_done && (store == NULL || strcmp(store, "postgres") == 0))
        is_done = measure_postgres(&bench);
    server_stop(&bench.server);
    return is_done ? 0 : 70;
}
