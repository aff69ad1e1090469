/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - reads what a turn is told, runs it, and prints what it answers as one line of JSON.
 * Owns:  the names of turns and of their settings, the output.
 * Never: compares; repeats (bench/run does).
 * Usage: bench-turn VERB [NAME=VALUE]...
 */
#include "turn.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE  64
#define EXIT_FAILED 70

static const struct {
    const char *name;
    turn_run run;
} verbs[] = {
    {"prepare", turn_prepare},
    {"drain", turn_drain},
    {"hold", turn_hold},
    {"idle", turn_idle},
    {"latency", turn_latency},
    {"batches", turn_batches},
    {"enqueue", turn_enqueue},
    {"singles", turn_singles},
    {"joined", turn_joined},
    {"command", turn_command},
    {"spawn", turn_spawn},
    {"bare-drain", turn_bare_drain},
    {"pgmq", turn_bare_drain},
    {"pgmq-in-turn", turn_bare_batches},
    {"keeper", turn_keeper},
    {"beanstalkd", turn_beanstalkd},
    {"bare-batches", turn_bare_batches},
    {"bare-copy", turn_bare_copy},
    {"bare-singles", turn_bare_singles},
    {"bare-latency", turn_bare_latency},
    {"bare-notify", turn_bare_notify},
    {"bare-notify-trip", turn_bare_notify_trip},
    {"bare-sqlite-drain", turn_bare_sqlite_drain},
    {"bare-sqlite-enqueue", turn_bare_sqlite_enqueue},
};

static const struct {
    const char *name;
    size_t at;
} texts[] = {
    {"store", offsetof(struct turn, store)},
    {"statistics", offsetof(struct turn, statistics)},
    {"program", offsetof(struct turn, program)},
};

static const struct {
    const char *name;
    size_t at;
    int64_t most;
} numbers[] = {
    {"jobs", offsetof(struct turn, jobs), 100000000},
    {"payload", offsetof(struct turn, payload), PAYLOAD_BYTES_MAX},
    {"fill_batch", offsetof(struct turn, fill_batch), PAWL_BATCH_MAX},
    {"batch", offsetof(struct turn, batch), PAWL_BATCH_MAX},
    {"keys", offsetof(struct turn, keys), 100000000},
    {"processes", offsetof(struct turn, processes), 100},
    {"parallel", offsetof(struct turn, parallel), PAWL_BATCH_MAX},
    {"buffer", offsetof(struct turn, buffer), PAWL_BATCH_MAX},
    {"connections", offsetof(struct turn, connections), 1000},
    {"held", offsetof(struct turn, held), PAWL_BATCH_MAX},
    {"lease_ms", offsetof(struct turn, lease_ms), LEASE_LONG_MS},
    {"delayed", offsetof(struct turn, delayed), 100000000},
    {"stuck", offsetof(struct turn, stuck), 100000000},
    {"elsewhere", offsetof(struct turn, elsewhere), 100000000},
    {"rate", offsetof(struct turn, rate), 100000},
    {"seconds", offsetof(struct turn, seconds), 3600},
    {"old_transaction", offsetof(struct turn, old_transaction), 1},
    {"cursor", offsetof(struct turn, cursor), 1},
    {"warm", offsetof(struct turn, warm), 1},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool turn_fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench-turn: %s: %s\n", what, why);
    return false;
}

int64_t turn_now_us(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user).us;
}

static bool read_number(const char *text, int64_t most, int64_t *ret_number)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > most)
        return false;
    *ret_number = number;
    return true;
}

static bool read_word(struct turn *turn, const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value != NULL ? (size_t)(value - word) : 0;
    for (size_t i = 0; value != NULL && i < COUNT(texts); i++) {
        if (strlen(texts[i].name) == length && strncmp(texts[i].name, word, length) == 0) {
            *(const char **)(void *)((char *)turn + texts[i].at) = value + 1;
            return true;
        }
    }
    for (size_t i = 0; value != NULL && i < COUNT(numbers); i++) {
        if (strlen(numbers[i].name) == length && strncmp(numbers[i].name, word, length) == 0)
            return read_number(value + 1, numbers[i].most,
                               (int64_t *)(void *)((char *)turn + numbers[i].at)) ||
                   turn_fail(word, "no number, or too large");
    }
    return turn_fail(word, "no such setting");
}

static void print_field(const char *name, double value)
{
    if (value >= 0)
        (void)printf(", \"%s\": %.6f", name, value);
}

static bool print(const struct turn *turn, const struct turn_result *result)
{
    (void)printf("{\"turn\": \"%s\", \"pawl\": \"%s\", \"libpq\": %d, \"sqlite\": \"%s\", "
                 "\"jobs\": %" PRId64,
                 turn->verb, pawl_version(), PQlibVersion(), sqlite3_libversion(), turn->jobs);
    print_field("seconds", result->seconds);
    print_field("fill_seconds", result->fill_seconds);
    print_field("wal_bytes_per_job", result->wal_bytes_per_job);
    print_field("p50_us", result->p50_us);
    print_field("p99_us", result->p99_us);
    print_field("resident_kib", result->resident_kib);
    print_field("cpu_share", result->cpu_share);
    print_field("renewed", result->renewed);
    print_field("statements_rate", result->statements_rate);
    (void)puts("}");
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    struct turn turn = {
        .verb = argc > 1 ? argv[1] : "",
        .statistics = "auto",
        .program = "true",
        .jobs = 2000,
        .payload = 100,
        .fill_batch = 1000,
        .batch = 1000,
        .processes = 1,
        .parallel = 4,
        .buffer = 4000,
        .connections = 10,
        .rate = 100,
        .seconds = 5,
    };
    struct turn_result result = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
    for (int i = 2; i < argc; i++) {
        if (!read_word(&turn, argv[i]))
            return EXIT_USAGE;
    }
    for (size_t i = 0; i < COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, turn.verb) == 0)
            return verbs[i].run(&turn, &result) && print(&turn, &result) ? 0 : EXIT_FAILED;
    }
    (void)fputs("usage: bench-turn VERB [NAME=VALUE]...; the verbs:", stderr);
    for (size_t i = 0; i < COUNT(verbs); i++)
        (void)fprintf(stderr, " %s", verbs[i].name);
    (void)fputc('\n', stderr);
    return EXIT_USAGE;
}
