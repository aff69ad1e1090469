/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * many_test.c - five thousand deliveries to a thousand slow endpoints, all under way at once:
 * without a thread each, in bounded memory, and all of them end well.
 * Owns:  nothing; the server is the one of the bench.
 * Never: looks at how long it takes.
 */
#include "support/deliver_server.h"
#include "deliver/dispatcher.h"
#include "pawl/endpoint.h"
#include "support/scratch.h"

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define ENDPOINTS   1000
#define EVENTS      5
#define DELIVERIES  (ENDPOINTS * EVENTS)
#define PARALLEL    10000 /* half of it is for those who have not answered */
#define FDS         14000
#define THREADS_MAX 16
#define BYTES_MAX   (100 << 10) /* for each delivery */
#define WAIT_US     INT64_C(120000000)
#define SECRET      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

struct rig {
    struct server server;
    struct scratch scratch;
    pawl_source *source;
    pawl_store *store;
    struct pawli_allow allow;
};

static void wait_for(const atomic_size_t *count, size_t wanted)
{
    int64_t until_us = server_now_us() + WAIT_US;
    while (atomic_load(count) < wanted) {
        if (server_now_us() > until_us)
            fail_msg("%zu of %zu", atomic_load(count), wanted);
        (void)poll(NULL, 0, 20);
    }
}

static size_t count_threads(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

static size_t count_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(2, fscanf(file, "%lu %lu", &all, &resident));
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static pawl_code open_handle(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    const struct rig *rig = user;
    (void)role; /* all handles are alike */
    return pawl_source_open(rig->source, ret_store, err);
}

static void open_store(struct rig *rig)
{
    char url[SCRATCH_PATH_MAX + 32];
    pawl_source_options options;
    pawl_err err;
    assert_true(scratch_make(&rig->scratch));
    (void)snprintf(url, sizeof(url), "sqlite:%s", rig->scratch.path); /* fits */
    pawl_source_options_init(&options);
    options.url = url;
    options.call_timeout_ms = 60000;
    assert_int_equal(PAWL_OK, pawl_source_new(&options, &rig->source, &err));
    assert_int_equal(PAWL_OK, pawl_source_open(rig->source, &rig->store, &err));
}

static void add_endpoints(struct rig *rig)
{
    pawl_err err;
    for (int i = 0; i < ENDPOINTS; i++) {
        char url[64], name[16];
        pawl_endpoint_settings settings;
        pawl_endpoint_settings_init(&settings);
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/held/%d", (unsigned)rig->server.port,
                       i); /* these fit */
        (void)snprintf(name, sizeof(name), "slow-%d", i);
        settings.url = url;
        settings.topics = "*";
        settings.timeout_ms = PAWL_ENDPOINT_TIMEOUT_MAX_MS;
        const pawl_endpoint_add_args args = {.name = name, .secret = SECRET, .settings = &settings};
        assert_int_equal(PAWL_OK, pawl_endpoint_add(rig->store, &args, &err));
    }
    for (int i = 0; i < EVENTS; i++) {
        pawl_publish_row row;
        pawl_published result;
        pawl_publish_init(&row);
        row.type = "event.made";
        row.payload = "{}";
        row.payload_len = 2;
        assert_int_equal(PAWL_OK, pawl_publish(rig->store, &row, 1, &result, &err));
        assert_int_equal(ENDPOINTS, result.jobs);
    }
}

static pawl_runner *start(struct rig *rig)
{
    struct pawli_dispatcher_options options;
    pawl_runner *runner = NULL;
    pawl_err err;
    pawli_dispatcher_options_init(&options);
    options.worker.opener = (pawl_opener){.open = open_handle, .user = rig};
    options.worker.settings.parallel_max = PARALLEL;
    options.per_host_max = PAWL_BATCH_MAX;
    options.target = (struct pawli_target_rules){.allow = &rig->allow,
                                                 .ports = &rig->server.port,
                                                 .ports_count = 1,
                                                 .is_http_allowed = true};
    options.wire.allow = &rig->allow;
    if (pawli_dispatcher_start(&options, &runner, &err) != PAWL_OK)
        fail_msg("%s", err.text);
    return runner;
}

static void wait_drained(struct rig *rig)
{
    int64_t until_us = server_now_us() + WAIT_US;
    pawl_stats *rows = calloc(ENDPOINTS, sizeof(rows[0]));
    int64_t left = 1;
    assert_non_null(rows);
    while (left > 0) {
        size_t count = 0;
        pawl_err err;
        assert_true(server_now_us() < until_us);
        (void)poll(NULL, 0, 50);
        assert_int_equal(PAWL_OK,
                         pawl_queue_stats(rig->store, NULL, rows, ENDPOINTS, &count, &err));
        left = 0;
        for (size_t i = 0; i < count; i++) {
            left += rows[i].ready + rows[i].in_flight;
            assert_int_equal(0, rows[i].failed);
        }
    }
    free(rows);
}

static void test_five_thousand_at_once(void **state)
{
    static struct rig rig;
    struct rlimit limit;
    pawl_err err;
    (void)state;
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < FDS || setrlimit(RLIMIT_NOFILE, &limit) != 0)
        skip(); /* of this machine, or of whoever runs the tests */
    assert_true(server_start(&rig.server));
    atomic_store(&rig.server.shared->is_holding, true);
    assert_int_equal(PAWL_OK, pawli_allow_add(&rig.allow, "127.0.0.1", &err));
    open_store(&rig);
    add_endpoints(&rig);

    size_t before = count_bytes();
    pawl_runner *runner = start(&rig);
    wait_for(&rig.server.shared->held, DELIVERIES);
    assert_true(count_threads() <= THREADS_MAX);
    size_t grown = count_bytes() - before;
    print_message("# %zu bytes and %zu threads with %d deliveries under way\n", grown,
                  count_threads(), DELIVERIES);
    assert_true(grown < (size_t)BYTES_MAX * DELIVERIES);

    atomic_store(&rig.server.shared->is_holding, false);
    wait_drained(&rig);
    assert_int_equal(DELIVERIES, atomic_load(&rig.server.shared->answered)); /* each once */
    pawl_worker_stop(runner, PAWL_DEFAULT);
    assert_int_equal(PAWL_OK, pawl_worker_wait(runner, WAIT_US / 1000, NULL));
    assert_int_equal(0, pawl_worker_free(runner));
    pawl_store_close(rig.store);
    pawl_source_free(rig.source);
    scratch_remove(&rig.scratch);
    server_stop(&rig.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_five_thousand_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
