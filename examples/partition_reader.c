/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * partition_reader.c - an orchestrator over work leases: reads a log whose records belong to
 * partitions, and works on each partition's records one at a time and in order, beside other
 * processes that do the same. Timers and backoff are its own: Pawl keeps who holds what, who is
 * next, and what is done.
 *
 * A line of the log is PARTITION OFFSET WHAT; WHAT is ok, flaky (fails twice), bad (always fails),
 * slow (takes longer than the lease, the first time) or crash (the process ends while it holds the
 * lease, the first time).
 * docs/worklease.md shows it. Usage: partition_reader STORE-URL LOG NAME
 */
#include <pawl/worklease.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MS     1000 /* how long others wait for us if we crash */
#define BACKOFF_MS   20   /* before the first retry; twice that before the next */
#define AGAIN_MS     50   /* after somebody else was quicker */
#define RECORDS_MAX  1000
#define TIMERS_MAX   (4 * RECORDS_MAX)
#define EXIT_CRASHED 3

struct record {
    char partition[64];
    int64_t offset;
    char what[16];
};

/* "Ask for this offset at that time." */
struct timer {
    const char *partition;
    int64_t offset;
    int64_t due_us;
};

struct reader {
    pawl_store *store;
    const char *name;
    struct record records[RECORDS_MAX];
    size_t records_count;
    struct timer timers[TIMERS_MAX];
    size_t timers_count;
    pawl_err err;
};

static int64_t now_us(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user).us;
}

/* ---- timers */

static void ask_in(struct reader *reader, const char *partition, int64_t offset, int64_t ms)
{
    int64_t due_us = now_us() + (ms > 0 ? ms : 0) * 1000;
    for (size_t i = 0; i < reader->timers_count; i++) {
        struct timer *timer = &reader->timers[i];
        if (timer->offset == offset && strcmp(timer->partition, partition) == 0) {
            if (due_us < timer->due_us)
                timer->due_us = due_us;
            return;
        }
    }
    if (reader->timers_count < TIMERS_MAX)
        reader->timers[reader->timers_count++] = (struct timer){partition, offset, due_us};
}

/* Wait for the timer that is due first and take it out. Those of one time keep their order. */
static struct timer next_timer(struct reader *reader)
{
    size_t first = 0;
    for (size_t i = 1; i < reader->timers_count; i++)
        if (reader->timers[i].due_us < reader->timers[first].due_us)
            first = i;
    struct timer timer = reader->timers[first];
    reader->timers_count--;
    memmove(&reader->timers[first], &reader->timers[first + 1],
            (reader->timers_count - first) * sizeof(timer));
    while (now_us() < timer.due_us)
        (void)poll(NULL, 0, (int)((timer.due_us - now_us()) / 1000) + 1);
    return timer;
}

/* Ask again once a lease that is in the way has expired. */
static pawl_code ask_after(struct reader *reader, const char *partition,
                           const pawl_worklease_acquired *got)
{
    pawl_wall now;
    pawl_code rc = pawl_now(reader->store, &now, &reader->err);
    if (rc == PAWL_OK && got->expires_at.us != 0)
        ask_in(reader, partition, got->offset, (got->expires_at.us - now.us) / 1000 + 1);
    return rc;
}

/* ---- work */

static const struct record *find(const struct reader *reader, const struct timer *timer)
{
    for (size_t i = 0; i < reader->records_count; i++)
        if (reader->records[i].offset == timer->offset &&
            strcmp(reader->records[i].partition, timer->partition) == 0)
            return &reader->records[i];
    return NULL;
}

/* Where nothing of the partition is leased, ask for what stands first. */
static pawl_code follow(struct reader *reader, const char *partition)
{
    pawl_worklease_info info;
    pawl_code rc = pawl_worklease_get(reader->store, partition, &info, &reader->err);
    if (rc == PAWL_OK && !info.is_leased && info.backlog_count > 0)
        ask_in(reader, partition, info.backlog_head, 0);
    return rc;
}

/* Whether the lease was another's, or over, or it is not known what became of the call. */
static bool is_lost(pawl_code code)
{
    return code == PAWL_WL_EXPIRED || code == PAWL_WL_TOKEN || code == PAWL_WL_NO_LEASE ||
           code == PAWL_UNKNOWN;
}

/* The handler, and what it says to Pawl. */
static pawl_code work(struct reader *reader, const struct timer *timer,
                      const pawl_worklease_acquired *got)
{
    const struct record *record = find(reader, timer);
    const char *what = record != NULL ? record->what : "ok";
    pawl_worklease_hold hold = {
        .domain = timer->partition, .owner = reader->name, .token = got->token};
    pawl_worklease_ended ended;
    bool is_first = got->retry_count == 0 && !got->is_taken_over;
    if (strcmp(what, "crash") == 0 && is_first) {
        printf("%s %" PRId64 " crashed\n", timer->partition, timer->offset);
        fflush(stdout);
        exit(EXIT_CRASHED); /* the lease stands until it expires */
    }
    if (strcmp(what, "slow") == 0 && is_first)
        (void)poll(NULL, 0, LEASE_MS + 1);
    bool is_failing = strcmp(what, "bad") == 0 ||
                      (strcmp(what, "flaky") == 0 && got->retry_count < 2);
    pawl_code rc = is_failing ? pawl_worklease_fail(reader->store, &hold, PAWL_DEFAULT, &ended,
                                                    &reader->err)
                              : pawl_worklease_succeed(reader->store, &hold, &ended, &reader->err);
    if (is_lost(rc)) { /* whoever asks is told what has become of the offset */
        ask_in(reader, timer->partition, timer->offset, 0);
        return PAWL_OK;
    }
    if (rc != PAWL_OK)
        return rc;
    printf("%s %" PRId64 " %s\n", timer->partition, timer->offset,
           pawl_worklease_end_name(ended.end));
    if (ended.end == PAWL_END_RETRY_SCHEDULED)
        ask_in(reader, timer->partition, timer->offset, BACKOFF_MS << (ended.retry_count - 1));
    else if (ended.end == PAWL_END_NEXT_HINT || ended.end == PAWL_END_GIVE_UP_NEXT_HINT)
        ask_in(reader, timer->partition, ended.next_offset, 0);
    return PAWL_OK;
}

static pawl_code handle(struct reader *reader, const struct timer *timer)
{
    pawl_worklease_acquire args;
    pawl_worklease_acquired got;
    pawl_worklease_acquire_init(&args);
    args.domain = timer->partition;
    args.offset = timer->offset;
    args.owner = reader->name;
    args.lease_ms = LEASE_MS;
    pawl_code rc = pawl_worklease_try_acquire(reader->store, &args, &got, &reader->err);
    if (rc == PAWL_WL_ORDER) { /* others wait before it: theirs first */
        ask_in(reader, timer->partition, timer->offset, AGAIN_MS);
        return follow(reader, timer->partition);
    }
    if (rc == PAWL_UNKNOWN) { /* asking twice does no harm */
        ask_in(reader, timer->partition, timer->offset, AGAIN_MS);
        return PAWL_OK;
    }
    if (rc != PAWL_OK)
        return rc;
    switch (got.got) {
    case PAWL_GOT_ACQUIRED:
    case PAWL_GOT_ALREADY_ACQUIRED:
        return work(reader, timer, &got);
    case PAWL_GOT_ENQUEUED: /* whoever holds the lease is told of it; unless that one crashes */
    case PAWL_GOT_HELD:
        return ask_after(reader, timer->partition, &got);
    case PAWL_GOT_ALREADY_PROCESSED:
    case PAWL_GOT_ALREADY_FAILED:
        break;
    }
    return follow(reader, timer->partition);
}

/* ---- the log */

static bool read_log(struct reader *reader, const char *path)
{
    FILE *log = fopen(path, "r");
    char line[128];
    if (log == NULL)
        return false;
    while (reader->records_count < RECORDS_MAX && fgets(line, sizeof(line), log) != NULL) {
        struct record *record = &reader->records[reader->records_count];
        char *blank = strchr(line, ' ');
        char *end = NULL;
        if (blank == NULL || (size_t)(blank - line) >= sizeof(record->partition))
            continue;
        memcpy(record->partition, line, (size_t)(blank - line));
        record->offset = strtoll(blank + 1, &end, 10);
        if (*end != ' ')
            continue;
        size_t len = strcspn(end + 1, "\n");
        memcpy(record->what, end + 1, len < sizeof(record->what) ? len : sizeof(record->what) - 1);
        reader->records_count++;
    }
    fclose(log);
    return true;
}

int main(int argc, char **argv)
{
    static struct reader reader;
    if (argc != 4 || !read_log(&reader, argv[2])) {
        fprintf(stderr, "usage: partition_reader STORE-URL LOG NAME\n");
        return 64;
    }
    reader.name = argv[3];
    pawl_source_options options;
    pawl_source *source = NULL;
    pawl_source_options_init(&options);
    options.url = argv[1];
    pawl_code rc = pawl_source_new(&options, &source, &reader.err);
    if (rc == PAWL_OK)
        rc = pawl_source_open(source, &reader.store, &reader.err);
    for (size_t i = 0; rc == PAWL_OK && i < reader.records_count; i++)
        ask_in(&reader, reader.records[i].partition, reader.records[i].offset, 0);
    while (rc == PAWL_OK && reader.timers_count > 0) {
        struct timer timer = next_timer(&reader);
        rc = handle(&reader, &timer);
    }
    if (rc != PAWL_OK)
        fprintf(stderr, "%s: %s\n", pawl_code_name(rc), reader.err.text);
    pawl_store_close(reader.store);
    pawl_source_free(source);
    return rc == PAWL_OK ? 0 : 1;
}
