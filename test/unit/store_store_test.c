/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_store_test.c - bad input, to every function of the store part of pawl.h: each is refused,
 * the field is named, and nothing has changed. And the largest input that is good.
 * Owns:  one bad value for each thing that an argument can have wrong with it.
 * Never: looks at what a verb does with good input: the suite does.
 */
#include "support/memory_check.h"
#include "support/memory_world.h"

#include "core/id.h"
#include "pawl/metrics.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM      2
#define UNTOUCHED 0xa5

/* Where results go: filled with a pattern, to see that a refusal writes none of them. */
union results {
    pawl_enqueued enqueued[ROOM];
    pawl_job jobs[ROOM];
    pawl_renewed renewed[ROOM];
    pawl_settled settled[ROOM];
    pawl_code codes[ROOM];
    pawl_reaped reaped[ROOM];
    pawl_attempt attempts[ROOM];
    pawl_lease_info leases[ROOM];
    pawl_worker workers[ROOM];
    pawl_stats stats[ROOM];
    pawl_queue_settings settings;
    pawl_changed changed[ROOM];
    pawl_id id;
    pawl_wall wall;
    bool is_hint;
    size_t count;
};

struct front {
    struct world world;
    struct filled filled;
    pawl_store *store;
    union results results;
    union results count; /* apart from the others: its `count` only */
    char *before;
};

static char long_name[PAWL_NAME_MAX + 2];

static int set_up(void **state)
{
    struct front *front = calloc(1, sizeof(*front));
    assert_non_null(front);
    memset(long_name, 'n', sizeof(long_name) - 1);
    world_make(&front->world, 8);
    world_fill(&front->world, &front->filled);
    front->store = front->world.store;
    memset(&front->results, UNTOUCHED, sizeof(front->results));
    memset(&front->count, UNTOUCHED, sizeof(front->count));
    front->before = memory_dump(front->world.memory);
    *state = front;
    return 0;
}

static int tear_down(void **state)
{
    struct front *front = *state;
    free(front->before);
    world_end(&front->world);
    free(front);
    return 0;
}

static bool is_untouched(const union results *results)
{
    const unsigned char *bytes = (const unsigned char *)results;
    for (size_t i = 0; i < sizeof(*results); i++)
        if (bytes[i] != UNTOUCHED)
            return false;
    return true;
}

static void assert_nothing_done(const struct front *front)
{
    char *after = memory_dump(front->world.memory);
    assert_string_equal(front->before, after);
    free(after);
    assert_true(is_untouched(&front->results));
    assert_true(is_untouched(&front->count));
}

/*
 * `call` (which must pass `e` as its err) is refused, with and without an err; the text names
 * `needle`, and nothing was done.
 */
#define REFUSED(needle, call)                                            \
    do {                                                                 \
        pawl_err why = {.code = PAWL_OK, .text = ""};                    \
        pawl_err *e = NULL;                                              \
        assert_int_equal((call), PAWL_INVALID);                          \
        e = &why;                                                        \
        assert_int_equal((call), PAWL_INVALID);                          \
        assert_int_equal(why.code, PAWL_INVALID);                        \
        if (strstr(why.text, (needle)) == NULL)                          \
            fail_msg("\"%s\" does not name \"%s\"", why.text, (needle)); \
        assert_nothing_done(front);                                      \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What a name must not be, and what the text then says of it beside its field. */
static const struct bad_name {
    const char *value;
    const char *says;
} bad_names[] = {
    {NULL, "missing"},      {"", "empty"},          {long_name, "128"},
    {"two words", "blank"}, {"line\nfeed", "0x0a"}, {"\xc3\xa4", "printable"},
};

/* A name that is refused wherever it stands: `set` puts it there, `call` uses it. */
#define NAME_REFUSED(field, set, call)                     \
    do {                                                   \
        for (size_t n = 0; n < COUNT_OF(bad_names); n++) { \
            set = bad_names[n].value;                      \
            REFUSED(field, call);                          \
            REFUSED(bad_names[n].says, call);              \
        }                                                  \
    } while (0)

/* The same for a name that may be left out. */
#define OPTIONAL_NAME_REFUSED(field, set, call)            \
    do {                                                   \
        for (size_t n = 1; n < COUNT_OF(bad_names); n++) { \
            set = bad_names[n].value;                      \
            REFUSED(field, call);                          \
        }                                                  \
    } while (0)

/* A number that is refused where it stands; then the good one is put back. */
#define NUMBER_REFUSED(field, set, bad, call) \
    do {                                      \
        __typeof__(set) good = (set);         \
        set = (__typeof__(set))(bad);         \
        REFUSED(field, call);                 \
        set = good;                           \
    } while (0)

/* Numbers of rows that are refused in every batch and page. */
#define SIZES_REFUSED(field, call)        \
    do {                                  \
        size_t size = 0;                  \
        REFUSED(field " is 0", call);     \
        size = PAWL_BATCH_MAX + 1;        \
        REFUSED(field " is 10001", call); \
        size = SIZE_MAX;                  \
        REFUSED("from 1 to 10000", call); \
    } while (0)

/* ---- producing */

static void test_enqueue_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_enqueue_row rows[2];
    pawl_enqueued *out = front->results.enqueued;
    pawl_enqueue_init(&rows[0]);
    rows[0].queue = "new";
    rows[1] = rows[0];
    REFUSED("store", pawl_enqueue(NULL, rows, 2, out, e));
    REFUSED("rows is missing", pawl_enqueue(front->store, NULL, 2, out, e));
    REFUSED("ret_results", pawl_enqueue(front->store, rows, 2, NULL, e));
    SIZES_REFUSED("rows_count", pawl_enqueue(front->store, rows, size, out, e));
}

#define ENQUEUE2 pawl_enqueue(front->store, rows, 2, front->results.enqueued, e)

static void test_enqueue_refuses_bad_rows(void **state)
{
    struct front *front = *state;
    pawl_enqueue_row rows[2];
    pawl_enqueue_init(&rows[0]);
    rows[0].queue = "new";
    rows[1] = rows[0]; /* the second one is bad: nothing of the first may be left */
    NAME_REFUSED("row 1: queue", rows[1].queue, ENQUEUE2);
    rows[1].queue = "new";
    NUMBER_REFUSED("payload_len is 3", rows[1].payload_len, 3, ENQUEUE2);
    rows[1].payload = rows;
    NUMBER_REFUSED("payload_len is 1048577", rows[1].payload_len, PAWL_PAYLOAD_MAX + 1, ENQUEUE2);
    NUMBER_REFUSED("1048576", rows[1].payload_len, SIZE_MAX, ENQUEUE2);
    NUMBER_REFUSED("row 1: priority is -1", rows[1].priority, -1, ENQUEUE2);
    NUMBER_REFUSED("priority is 10; it must be from 0 to 9", rows[1].priority, 10, ENQUEUE2);
    NUMBER_REFUSED("row 0: delay_ms is -1", rows[0].delay_ms, -1, ENQUEUE2);
    NUMBER_REFUSED("delay_ms", rows[1].delay_ms, PAWL_DEFAULT, ENQUEUE2);
    NUMBER_REFUSED("delay_ms", rows[1].delay_ms, PAWL_DURATION_MAX_MS + 1, ENQUEUE2);
    NUMBER_REFUSED("max_retries is -1", rows[1].max_retries, -1, ENQUEUE2);
    NUMBER_REFUSED("10000", rows[1].max_retries, PAWL_RETRIES_MAX + 1, ENQUEUE2);
    int64_t bad_ms[] = {0, -1, PAWL_DURATION_MAX_MS + 1, PAWL_FOREVER};
    for (size_t i = 0; i < COUNT_OF(bad_ms); i++) {
        NUMBER_REFUSED("start_within_ms", rows[1].start_within_ms, bad_ms[i], ENQUEUE2);
        NUMBER_REFUSED("timeout_ms", rows[1].timeout_ms, bad_ms[i], ENQUEUE2);
        NUMBER_REFUSED("backoff_base_ms", rows[1].backoff_base_ms, bad_ms[i], ENQUEUE2);
        NUMBER_REFUSED("backoff_max_ms", rows[1].backoff_max_ms, bad_ms[i], ENQUEUE2);
    }
    char long_key[PAWL_DEDUPE_KEY_MAX + 2];
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    rows[1].dedupe_key = "";
    REFUSED("row 1: dedupe_key is empty", ENQUEUE2);
    rows[1].dedupe_key = long_key;
    REFUSED("dedupe_key is longer than 255", ENQUEUE2);
    rows[1].dedupe_key = NULL;
    rows[1].ordering_key = long_key;
    REFUSED("row 1: ordering_key is longer than 255", ENQUEUE2);
    rows[1].ordering_key = "tab\t";
    REFUSED("ordering_key is bad after 3 bytes", ENQUEUE2);
}

/* An id of the caller's own making is taken where its bits name the right shard only. */
static void test_enqueue_refuses_an_id_of_another_shard(void **state)
{
    struct front *front = *state;
    pawl_enqueue_row rows[2];
    pawl_err err;
    pawl_enqueue_init(&rows[0]);
    rows[0].queue = "new";
    rows[0].dedupe_key = "mine";
    rows[1] = rows[0];
    rows[1].dedupe_key = NULL;
    pawl_id good;
    assert_int_equal(pawl_id_new(front->store, &rows[1], &good, &err), PAWL_OK);
    rows[1].id = good;
    rows[1].id.bytes[7] = (uint8_t)(good.bytes[7] ^ 1);
    REFUSED("row 1: id ", ENQUEUE2);
    REFUSED("shard", ENQUEUE2);
    rows[1].id = good;
    /* With a key, the key and no longer the id decides: one of these belongs elsewhere. */
    static const char *const keys[] = {"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"};
    struct pawli_shard_key key = {.queue = "new"};
    size_t i = 0;
    do {
        assert_true(i < COUNT_OF(keys));
        key.key = keys[i++];
    } while (pawli_shard_of(&key, &good, 8) == pawli_id_shard(&good, 8));
    rows[1].dedupe_key = key.key;
    REFUSED("pawl_id_new()", ENQUEUE2);
}

static void test_id_new_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_enqueue_row row;
    pawl_id *out = &front->results.id;
    pawl_enqueue_init(&row);
    REFUSED("queue", pawl_id_new(front->store, &row, out, e));
    row.queue = "new";
    REFUSED("store", pawl_id_new(NULL, &row, out, e));
    REFUSED("row", pawl_id_new(front->store, NULL, out, e));
    REFUSED("ret_id", pawl_id_new(front->store, &row, NULL, e));
    NAME_REFUSED("queue", row.queue, pawl_id_new(front->store, &row, out, e));
    row.queue = "new";
    row.dedupe_key = "";
    REFUSED("dedupe_key", pawl_id_new(front->store, &row, out, e));
}

/* ---- working */

#define CLAIM pawl_claim(front->store, &args, front->results.jobs, ROOM, count, e)

static void test_claim_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_claim_line lines[2] = {{"a", 1, PAWL_DEFAULT}, {"a", 1, PAWL_DEFAULT}};
    pawl_claim_args args = {"w", lines, 2, PAWL_DEFAULT};
    pawl_job *out = front->results.jobs;
    size_t *count = &front->count.count;
    REFUSED("store", pawl_claim(NULL, &args, out, ROOM, count, e));
    REFUSED("args", pawl_claim(front->store, NULL, out, ROOM, count, e));
    REFUSED("ret_jobs", pawl_claim(front->store, &args, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_claim(front->store, &args, out, ROOM, NULL, e));
    SIZES_REFUSED("jobs_max", pawl_claim(front->store, &args, out, size, count, e));
    NAME_REFUSED("worker", args.worker, CLAIM);
    args.worker = "w";
    args.lines = NULL;
    REFUSED("lines is missing", CLAIM);
    args.lines = lines;
    NUMBER_REFUSED("lines_count is 0", args.lines_count, 0, CLAIM);
    NUMBER_REFUSED("lines_count is 10001", args.lines_count, PAWL_LINES_MAX + 1, CLAIM);
    NUMBER_REFUSED("bytes_max is 0", args.bytes_max, 0, CLAIM);
    NUMBER_REFUSED("bytes_max is -1", args.bytes_max, -1, CLAIM);
    NAME_REFUSED("line 1: queue", lines[1].queue, CLAIM);
    lines[1].queue = "a";
    NUMBER_REFUSED("line 1: jobs_max is 0", lines[1].jobs_max, 0, CLAIM);
    NUMBER_REFUSED("line 0: jobs_max", lines[0].jobs_max, PAWL_DEFAULT, CLAIM);
    NUMBER_REFUSED("lease_ms is 99", lines[1].lease_ms, PAWL_LEASE_MIN_MS - 1, CLAIM);
    NUMBER_REFUSED("lease_ms is 0", lines[1].lease_ms, 0, CLAIM);
    NUMBER_REFUSED("lease_ms is -1", lines[1].lease_ms, -1, CLAIM);
    NUMBER_REFUSED("lease_ms", lines[1].lease_ms, PAWL_DURATION_MAX_MS + 1, CLAIM);
}

static void test_mine_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    const char *worker = "w1";
    pawl_job *out = front->results.jobs;
    size_t *count = &front->count.count;
    REFUSED("store", pawl_mine(NULL, worker, NULL, out, ROOM, count, e));
    REFUSED("ret_jobs", pawl_mine(front->store, worker, NULL, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_mine(front->store, worker, NULL, out, ROOM, NULL, e));
    SIZES_REFUSED("jobs_max", pawl_mine(front->store, worker, NULL, out, size, count, e));
    NAME_REFUSED("worker", worker, pawl_mine(front->store, worker, NULL, out, ROOM, count, e));
}

#define RENEW pawl_renew(front->store, worker, rows, 2, front->results.renewed, e)

static void test_renew_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    const char *worker = "w1";
    pawl_renewed *out = front->results.renewed;
    pawl_renew_row rows[2] = {{.lease = world_lease(&front->filled.held), .lease_ms = 60000}};
    rows[1] = rows[0];
    REFUSED("store", pawl_renew(NULL, worker, rows, 2, out, e));
    REFUSED("rows is missing", pawl_renew(front->store, worker, NULL, 2, out, e));
    REFUSED("ret_results", pawl_renew(front->store, worker, rows, 2, NULL, e));
    SIZES_REFUSED("rows_count", pawl_renew(front->store, worker, rows, size, out, e));
    NAME_REFUSED("worker", worker, RENEW);
    worker = "w1";
    NUMBER_REFUSED("row 1: lease_ms is 99", rows[1].lease_ms, PAWL_LEASE_MIN_MS - 1, RENEW);
    NUMBER_REFUSED("row 1: lease_ms is 0", rows[1].lease_ms, 0, RENEW);
    NUMBER_REFUSED("lease_ms is -1", rows[1].lease_ms, -1, RENEW);
    NUMBER_REFUSED("lease_ms", rows[1].lease_ms, PAWL_DURATION_MAX_MS + 1, RENEW);
    memset(&rows[1].lease.job, 0, sizeof(rows[1].lease.job));
    REFUSED("row 1: lease.job is nil", RENEW);
}

#define SETTLE pawl_settle(front->store, worker, rows, 2, front->results.settled, e)

static void test_settle_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    const char *worker = "w1";
    pawl_settled *out = front->results.settled;
    pawl_settle_row rows[2];
    pawl_settle_init(&rows[0]);
    rows[0].lease = world_lease(&front->filled.held);
    rows[1] = rows[0];
    REFUSED("store", pawl_settle(NULL, worker, rows, 2, out, e));
    REFUSED("rows is missing", pawl_settle(front->store, worker, NULL, 2, out, e));
    REFUSED("ret_results", pawl_settle(front->store, worker, rows, 2, NULL, e));
    SIZES_REFUSED("rows_count", pawl_settle(front->store, worker, rows, size, out, e));
    NAME_REFUSED("worker", worker, SETTLE);
    worker = "w1";
    NUMBER_REFUSED("row 1: action", rows[1].action, 4, SETTLE);
    NUMBER_REFUSED("row 1: action", rows[1].action, -1, SETTLE);
    char long_text[PAWL_ERROR_TEXT_MAX + 2];
    memset(long_text, 't', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    rows[1].error_text = long_text;
    REFUSED("row 1: error_text is longer than 1024", SETTLE);
    rows[1].error_text = NULL;
    rows[1].error_code = long_text;
    REFUSED("row 1: error_code is longer than 64", SETTLE);
    rows[1].error_code = NULL;
    memset(&rows[1].lease.job, 0, sizeof(rows[1].lease.job));
    REFUSED("row 1: lease.job is nil", SETTLE);
}

/* Each reason with each action: NONE goes with all, and one other with each but SUCCEED. */
static void test_settle_refuses_reasons_and_delays(void **state)
{
    struct front *front = *state;
    const char *worker = "w1";
    static const pawl_reason other[] = {[PAWL_SUCCEED] = PAWL_REASON_NONE,
                                        [PAWL_RETRY] = PAWL_REASON_TIMEOUT,
                                        [PAWL_FAIL] = PAWL_REASON_CANCELLED,
                                        [PAWL_SNOOZE] = PAWL_REASON_SHUTDOWN};
    pawl_settle_row rows[2];
    pawl_settle_init(&rows[0]);
    rows[0].lease = world_lease(&front->filled.held);
    rows[1] = rows[0];
    for (int action = PAWL_SUCCEED; action <= PAWL_SNOOZE; action++) {
        rows[1].action = (pawl_settle_action)action;
        rows[1].delay_ms = 1;
        for (int reason = -1; reason <= PAWL_REASON_START_BY + 1; reason++)
            if (reason != PAWL_REASON_NONE && reason != (int)other[action])
                NUMBER_REFUSED("row 1: reason", rows[1].reason, reason, SETTLE);
        if (action != PAWL_RETRY && action != PAWL_SNOOZE)
            continue;
        NUMBER_REFUSED("row 1: delay_ms is -1", rows[1].delay_ms, -1, SETTLE);
        NUMBER_REFUSED("delay_ms", rows[1].delay_ms, PAWL_DURATION_MAX_MS + 1, SETTLE);
    }
    NUMBER_REFUSED("delay_ms", rows[1].delay_ms, PAWL_DEFAULT, SETTLE); /* a SNOOZE needs one */
}

static void test_release_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    const char *worker = "w1";
    pawl_code *out = front->results.codes;
    pawl_lease leases[2] = {world_lease(&front->filled.held), {.version = 1}};
    REFUSED("store", pawl_release(NULL, worker, leases, 1, out, e));
    REFUSED("leases is missing", pawl_release(front->store, worker, NULL, 1, out, e));
    REFUSED("ret_codes", pawl_release(front->store, worker, leases, 1, NULL, e));
    SIZES_REFUSED("leases_count", pawl_release(front->store, worker, leases, size, out, e));
    REFUSED("row 1: job is nil", pawl_release(front->store, worker, leases, 2, out, e));
    NAME_REFUSED("worker", worker, pawl_release(front->store, worker, leases, 1, out, e));
}

/* ---- recovering */

static void test_reap_and_prune_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    size_t *count = &front->count.count;
    pawl_reaped *out = front->results.reaped;
    REFUSED("store", pawl_reap(NULL, out, ROOM, count, e));
    REFUSED("ret_rows", pawl_reap(front->store, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_reap(front->store, out, ROOM, NULL, e));
    SIZES_REFUSED("rows_max", pawl_reap(front->store, out, size, count, e));
    REFUSED("store", pawl_prune(NULL, 1, count, e));
    REFUSED("ret_count", pawl_prune(front->store, 1, NULL, e));
    SIZES_REFUSED("jobs_max", pawl_prune(front->store, size, count, e));
}

/* ---- looking */

static void test_get_and_attempts_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_id nil = {{0}};
    pawl_id id = front->filled.failed;
    size_t *count = &front->count.count;
    pawl_attempt *out = front->results.attempts;
    REFUSED("store", pawl_get(NULL, &id, front->results.jobs, e));
    REFUSED("id is missing", pawl_get(front->store, NULL, front->results.jobs, e));
    REFUSED("id is nil", pawl_get(front->store, &nil, front->results.jobs, e));
    REFUSED("ret_job", pawl_get(front->store, &id, NULL, e));
    REFUSED("store", pawl_attempts(NULL, &id, 0, out, ROOM, count, e));
    REFUSED("id is missing", pawl_attempts(front->store, NULL, 0, out, ROOM, count, e));
    REFUSED("id is nil", pawl_attempts(front->store, &nil, 0, out, ROOM, count, e));
    REFUSED("after_no is -1", pawl_attempts(front->store, &id, -1, out, ROOM, count, e));
    REFUSED("ret_rows", pawl_attempts(front->store, &id, 0, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_attempts(front->store, &id, 0, out, ROOM, NULL, e));
    SIZES_REFUSED("rows_max", pawl_attempts(front->store, &id, 0, out, size, count, e));
}

#define LIST   pawl_list(front->store, &filter, NULL, front->results.jobs, ROOM, count, e)
#define LEASES pawl_leases(front->store, &filter, NULL, front->results.leases, ROOM, count, e)

static void test_list_and_leases_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_filter filter = {0};
    size_t *count = &front->count.count;
    pawl_job *jobs = front->results.jobs;
    pawl_lease_info *leases = front->results.leases;
    REFUSED("store", pawl_list(NULL, &filter, NULL, jobs, ROOM, count, e));
    REFUSED("ret_jobs", pawl_list(front->store, &filter, NULL, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_list(front->store, &filter, NULL, jobs, ROOM, NULL, e));
    SIZES_REFUSED("jobs_max", pawl_list(front->store, NULL, NULL, jobs, size, count, e));
    REFUSED("store", pawl_leases(NULL, &filter, NULL, leases, ROOM, count, e));
    REFUSED("ret_rows", pawl_leases(front->store, &filter, NULL, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_leases(front->store, &filter, NULL, leases, ROOM, NULL, e));
    SIZES_REFUSED("rows_max", pawl_leases(front->store, NULL, NULL, leases, size, count, e));
    OPTIONAL_NAME_REFUSED("queue", filter.queue, LIST);
    OPTIONAL_NAME_REFUSED("queue", filter.queue, LEASES);
    filter.queue = NULL;
    OPTIONAL_NAME_REFUSED("worker", filter.worker, LIST);
    OPTIONAL_NAME_REFUSED("worker", filter.worker, LEASES);
    filter.worker = NULL;
    NUMBER_REFUSED("states is 0x10", filter.states, 1u << 4, LIST);
    NUMBER_REFUSED("states", filter.states, 1u << 31, LIST);
    NUMBER_REFUSED("states", filter.states, 1u << 4, LEASES);
    NUMBER_REFUSED("reason is 11", filter.reason, PAWL_REASON_START_BY + 1, LIST);
    NUMBER_REFUSED("reason", filter.reason, -1, LIST);
    NUMBER_REFUSED("reason", filter.reason, -1, LEASES);
    filter.ordering_key = "k";
    REFUSED("queue is missing", LIST);
    filter.queue = "q";
    filter.ordering_key = "";
    REFUSED("ordering_key is empty", LIST);
    filter.ordering_key = "\n";
    REFUSED("ordering_key is bad", LIST);
}

/* ---- workers and queues */

#define SEEN pawl_worker_seen_now(front->store, &seen, e)

static void test_workers_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_worker_seen seen = {.name = "new", .host = "host", .version = "1"};
    const char *name = "w1";
    const char *after = NULL;
    size_t *count = &front->count.count;
    pawl_worker *out = front->results.workers;
    REFUSED("store", pawl_worker_seen_now(NULL, &seen, e));
    REFUSED("args", pawl_worker_seen_now(front->store, NULL, e));
    NAME_REFUSED("name", seen.name, SEEN);
    seen.name = "new";
    NAME_REFUSED("host", seen.host, SEEN);
    seen.host = "host";
    NAME_REFUSED("version", seen.version, SEEN);
    seen.version = "1";
    char many[PAWL_QUEUES_TEXT_MAX + 2];
    memset(many, 'q', sizeof(many) - 1);
    many[PAWL_QUEUES_TEXT_MAX + 1] = '\0';
    seen.queues = many;
    REFUSED("queues", SEEN);
    seen.queues = "a\nb";
    REFUSED("queues", SEEN);
    seen.queues = NULL;
    NUMBER_REFUSED("kind", seen.kind, 2, SEEN);
    NUMBER_REFUSED("kind", seen.kind, -1, SEEN);
    REFUSED("store", pawl_worker_ended(NULL, name, e));
    NAME_REFUSED("name", name, pawl_worker_ended(front->store, name, e));
    REFUSED("store", pawl_workers(NULL, NULL, out, ROOM, count, e));
    REFUSED("ret_rows", pawl_workers(front->store, NULL, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_workers(front->store, NULL, out, ROOM, NULL, e));
    SIZES_REFUSED("rows_max", pawl_workers(front->store, NULL, out, size, count, e));
    OPTIONAL_NAME_REFUSED("after", after, pawl_workers(front->store, after, out, ROOM, count, e));
}

static void test_queues_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_queue_settings settings;
    pawl_queue_settings *out = &front->results.settings;
    pawl_stats *rows = front->results.stats;
    const char *queue = "new";
    const char *after = NULL;
    size_t *count = &front->count.count;
    pawl_queue_settings_init(&settings);
    REFUSED("store", pawl_queue_get(NULL, queue, out, e));
    REFUSED("ret_settings", pawl_queue_get(front->store, queue, NULL, e));
    REFUSED("store", pawl_queue_set(NULL, queue, &settings, e));
    REFUSED("settings", pawl_queue_set(front->store, queue, NULL, e));
    NUMBER_REFUSED("lease_ms", settings.lease_ms, 99,
                   pawl_queue_set(front->store, queue, &settings, e));
    NUMBER_REFUSED("max_lost_leases", settings.max_lost_leases, 0,
                   pawl_queue_set(front->store, queue, &settings, e));
    REFUSED("store", pawl_queue_pause(NULL, queue, true, e));
    NAME_REFUSED("queue", queue, pawl_queue_get(front->store, queue, out, e));
    NAME_REFUSED("queue", queue, pawl_queue_set(front->store, queue, &settings, e));
    queue = "q";
    NUMBER_REFUSED("max_in_flight is -1", settings.max_in_flight, -1,
                   pawl_queue_set(front->store, queue, &settings, e));
    /* Each of the eight shards needs a share. */
    NUMBER_REFUSED("max_in_flight is 7, and the store has 8 shards", settings.max_in_flight, 7,
                   pawl_queue_set(front->store, queue, &settings, e));
    NAME_REFUSED("queue", queue, pawl_queue_pause(front->store, queue, true, e));
    REFUSED("store", pawl_queue_stats(NULL, NULL, rows, ROOM, count, e));
    REFUSED("ret_rows", pawl_queue_stats(front->store, NULL, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_queue_stats(front->store, NULL, rows, ROOM, NULL, e));
    SIZES_REFUSED("rows_max", pawl_queue_stats(front->store, NULL, rows, size, count, e));
    OPTIONAL_NAME_REFUSED("after", after,
                          pawl_queue_stats(front->store, after, rows, ROOM, count, e));
    REFUSED("store", pawl_queue_depths(NULL, NULL, rows, ROOM, count, e));
    REFUSED("ret_rows", pawl_queue_depths(front->store, NULL, NULL, ROOM, count, e));
    REFUSED("ret_count", pawl_queue_depths(front->store, NULL, rows, ROOM, NULL, e));
    SIZES_REFUSED("rows_max", pawl_queue_depths(front->store, NULL, rows, size, count, e));
    pawl_depth_args args = {.queue = NULL};
    OPTIONAL_NAME_REFUSED("after", args.after,
                          pawl_queue_depths(front->store, &args, rows, ROOM, count, e));
    args.after = NULL;
    OPTIONAL_NAME_REFUSED("queue", args.queue,
                          pawl_queue_depths(front->store, &args, rows, ROOM, count, e));
    args = (pawl_depth_args){.queue = "a", .after = "b"};
    REFUSED("after", pawl_queue_depths(front->store, &args, rows, ROOM, count, e));
}

/* ---- operating */

typedef pawl_code by_id(pawl_store *store, const pawl_id *ids, size_t ids_count,
                        pawl_changed *ret_results, pawl_err *err);
typedef pawl_code by_filter(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                            size_t *ret_count, pawl_err *err);

static const struct operation {
    by_id *change;
    by_filter *change_where;
    unsigned states; /* that it can change */
} operations[] = {
    {pawl_cancel, pawl_cancel_where, 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT},
    {pawl_redrive, pawl_redrive_where, 1u << PAWL_FAILED},
    {pawl_discard, pawl_discard_where, 1u << PAWL_FAILED},
};

static void test_operations_by_id_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    pawl_id ids[2] = {front->filled.failed, {{0}}};
    pawl_changed *out = front->results.changed;
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        by_id *change = operations[i].change;
        REFUSED("store", change(NULL, ids, 1, out, e));
        REFUSED("ids is missing", change(front->store, NULL, 1, out, e));
        REFUSED("ret_results", change(front->store, ids, 1, NULL, e));
        SIZES_REFUSED("ids_count", change(front->store, ids, size, out, e));
        REFUSED("row 1: id is nil", change(front->store, ids, 2, out, e));
    }
}

static void test_operations_by_filter_refuse_bad_arguments(void **state)
{
    struct front *front = *state;
    size_t *count = &front->count.count;
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        by_filter *change = operations[i].change_where;
        pawl_filter filter = {0};
        REFUSED("store", change(NULL, &filter, 1, count, e));
        REFUSED("filter is missing", change(front->store, NULL, 1, count, e));
        REFUSED("ret_count", change(front->store, &filter, 1, NULL, e));
        SIZES_REFUSED("jobs_max", change(front->store, &filter, size, count, e));
        OPTIONAL_NAME_REFUSED("queue", filter.queue, change(front->store, &filter, 1, count, e));
        filter.queue = NULL;
        OPTIONAL_NAME_REFUSED("worker", filter.worker, change(front->store, &filter, 1, count, e));
        filter.worker = NULL;
        NUMBER_REFUSED("reason", filter.reason, 11, change(front->store, &filter, 1, count, e));
        for (unsigned states = 1; states < 32; states++) {
            bool is_none = (states & operations[i].states) == 0;
            if (is_none || states >= 16)
                NUMBER_REFUSED("states is 0x", filter.states, states,
                               change(front->store, &filter, 1, count, e));
        }
    }
}

/* ---- waiting, and functions that give nothing back */

static void test_waiting_refuses_bad_arguments(void **state)
{
    struct front *front = *state;
    bool *out = &front->results.is_hint;
    REFUSED("store", pawl_now(NULL, &front->results.wall, e));
    REFUSED("ret_now", pawl_now(front->store, NULL, e));
    REFUSED("store", pawl_wait(NULL, 1, out, e));
    REFUSED("ret_hint", pawl_wait(front->store, 1, NULL, e));
    int64_t bad_ms[] = {0, -1, PAWL_DEFAULT, PAWL_DURATION_MAX_MS + 1, PAWL_FOREVER};
    for (size_t i = 0; i < COUNT_OF(bad_ms); i++)
        REFUSED("timeout_ms", pawl_wait(front->store, bad_ms[i], out, e));
}

static void test_null_is_nothing_where_nothing_is_given_back(void **state)
{
    (void)state;
    pawl_job empty;
    memset(&empty, 0, sizeof(empty));
    pawl_store_close(NULL);
    pawl_wake(NULL);
    pawl_enqueue_init(NULL);
    pawl_settle_init(NULL);
    pawl_job_clear(NULL);
    pawl_job_clear(&empty);
    pawl_job_clear(&empty); /* and once more */
}

/* ---- the largest good input */

static void test_the_largest_good_input_is_taken(void **state)
{
    struct front *front = *state;
    char name[PAWL_NAME_MAX + 1];
    char key[PAWL_DEDUPE_KEY_MAX + 1];
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    memset(name, '~', PAWL_NAME_MAX);
    name[PAWL_NAME_MAX] = '\0';
    memset(key, 'k', PAWL_DEDUPE_KEY_MAX);
    key[PAWL_DEDUPE_KEY_MAX] = '\0';
    row.queue = name;
    row.dedupe_key = key;
    row.payload_len = PAWL_PAYLOAD_MAX;
    row.payload = calloc(1, PAWL_PAYLOAD_MAX);
    row.priority = PAWL_PRIORITY_LAST;
    row.delay_ms = PAWL_DURATION_MAX_MS - 1;
    row.start_within_ms = PAWL_DURATION_MAX_MS;
    row.timeout_ms = PAWL_DURATION_MAX_MS;
    row.backoff_base_ms = PAWL_DURATION_MAX_MS;
    row.backoff_max_ms = 1;
    row.max_retries = PAWL_RETRIES_MAX;
    (void)world_enqueue_row(&front->world, &row);
    row.delay_ms = 0;
    row.dedupe_key = NULL;
    row.priority = PAWL_PRIORITY_URGENT;
    row.max_retries = 0;
    row.id = world_enqueue_row(&front->world, &row);
    free((void *)row.payload);

    pawl_job job = world_claim_one(&front->world, name, name);
    assert_string_equal(job.queue, name);
    assert_string_equal(job.worker, name);
    pawl_settle_row settle;
    pawl_settled settled;
    char text[PAWL_ERROR_TEXT_MAX + 1];
    memset(text, 't', PAWL_ERROR_TEXT_MAX);
    text[PAWL_ERROR_TEXT_MAX] = '\0';
    pawl_settle_init(&settle);
    settle.lease = world_lease(&job);
    settle.action = PAWL_FAIL;
    settle.error_text = text;
    settle.error_code = text + PAWL_ERROR_TEXT_MAX - PAWL_ERROR_CODE_MAX;
    assert_int_equal(pawl_settle(front->store, name, &settle, 1, &settled, NULL), PAWL_OK);
    assert_int_equal(settled.code, PAWL_OK);
    pawl_attempt attempt;
    size_t count;
    assert_int_equal(pawl_attempts(front->store, &job.id, 0, &attempt, 1, &count, NULL), PAWL_OK);
    assert_string_equal(attempt.error_text, text);
    assert_string_equal(attempt.error_code, settle.error_code);
}

static void test_the_largest_batch_is_taken(void **state)
{
    struct front *front = *state;
    pawl_enqueue_row *rows = calloc(PAWL_BATCH_MAX, sizeof(*rows));
    pawl_enqueued *results = calloc(PAWL_BATCH_MAX, sizeof(*results));
    pawl_job *jobs = calloc(PAWL_BATCH_MAX, sizeof(*jobs));
    assert_true(rows != NULL && results != NULL && jobs != NULL);
    for (size_t i = 0; i < PAWL_BATCH_MAX; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "large";
    }
    assert_int_equal(pawl_enqueue(front->store, rows, PAWL_BATCH_MAX, results, NULL), PAWL_OK);
    for (size_t i = 0; i < PAWL_BATCH_MAX; i++) {
        assert_int_equal(results[i].code, PAWL_OK);
        assert_false(pawl_id_is_nil(&results[i].id));
        assert_true(
            pawl_id_is_nil(&rows[i].id)); /* minted into a copy: the rows are the caller's */
    }
    assert_int_equal(world_claim(&front->world, "w", "large", jobs, PAWL_BATCH_MAX),
                     PAWL_BATCH_MAX);
    free(rows);
    free(results);
    free(jobs);
}

/* The second of two rows with the same id is told of the first. Q-ENQUEUE */
static void test_a_batch_is_judged_in_order(void **state)
{
    struct front *front = *state;
    pawl_enqueue_row rows[3];
    pawl_enqueued results[3];
    for (size_t i = 0; i < 3; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "new";
    }
    rows[2].dedupe_key = "k";
    assert_int_equal(pawl_id_new(front->store, &rows[0], &rows[0].id, NULL), PAWL_OK);
    rows[1].id = rows[0].id;
    assert_int_equal(pawl_enqueue(front->store, rows, 3, results, NULL), PAWL_OK);
    assert_int_equal(results[0].code, PAWL_OK);
    assert_int_equal(results[1].code, PAWL_EXISTS);
    assert_int_equal(results[2].code, PAWL_OK);

    pawl_lease lease = world_lease(&front->filled.held);
    pawl_settle_row settles[2];
    pawl_settled settled[2];
    pawl_settle_init(&settles[0]);
    settles[0].lease = lease;
    settles[1] = settles[0];
    settles[1].action = PAWL_FAIL;
    assert_int_equal(pawl_settle(front->store, "w1", settles, 2, settled, NULL), PAWL_OK);
    assert_int_equal(settled[0].code, PAWL_OK);
    assert_int_equal(settled[1].code, PAWL_STALE);
}

#define FRONT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRONT_TEST(test_enqueue_refuses_bad_arguments),
        FRONT_TEST(test_enqueue_refuses_bad_rows),
        FRONT_TEST(test_enqueue_refuses_an_id_of_another_shard),
        FRONT_TEST(test_id_new_refuses_bad_arguments),
        FRONT_TEST(test_claim_refuses_bad_arguments),
        FRONT_TEST(test_mine_refuses_bad_arguments),
        FRONT_TEST(test_renew_refuses_bad_arguments),
        FRONT_TEST(test_settle_refuses_bad_arguments),
        FRONT_TEST(test_settle_refuses_reasons_and_delays),
        FRONT_TEST(test_release_refuses_bad_arguments),
        FRONT_TEST(test_reap_and_prune_refuse_bad_arguments),
        FRONT_TEST(test_get_and_attempts_refuse_bad_arguments),
        FRONT_TEST(test_list_and_leases_refuse_bad_arguments),
        FRONT_TEST(test_workers_refuse_bad_arguments),
        FRONT_TEST(test_queues_refuse_bad_arguments),
        FRONT_TEST(test_operations_by_id_refuse_bad_arguments),
        FRONT_TEST(test_operations_by_filter_refuse_bad_arguments),
        FRONT_TEST(test_waiting_refuses_bad_arguments),
        FRONT_TEST(test_null_is_nothing_where_nothing_is_given_back),
        FRONT_TEST(test_the_largest_good_input_is_taken),
        FRONT_TEST(test_the_largest_batch_is_taken),
        FRONT_TEST(test_a_batch_is_judged_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
