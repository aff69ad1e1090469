/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_open_test.c - stores by their URLs: which there are, and that no URL is ever told.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "pawl/pawl.h"
#include "support/alloc_fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pawl_code make(const char *url, pawl_source **ret_source, pawl_err *err)
{
    pawl_source_options options;
    pawl_source_options_init(&options);
    options.url = url;
    return pawl_source_new(&options, ret_source, err);
}

static void put(pawl_store *store)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = "q";
    assert_int_equal(pawl_enqueue(store, &row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(result.code, PAWL_OK);
}

static size_t count(pawl_store *store)
{
    pawl_job jobs[4];
    size_t jobs_count = 0;
    assert_int_equal(pawl_list(store, NULL, NULL, jobs, 4, &jobs_count, NULL), PAWL_OK);
    return jobs_count;
}

static void handles_of_one_source_share_their_jobs(void **state)
{
    (void)state;
    pawl_source *source = NULL;
    pawl_store *first = NULL, *second = NULL;
    assert_int_equal(make("memory:", &source, NULL), PAWL_OK);
    assert_int_equal(pawl_source_open(source, &first, NULL), PAWL_OK);
    assert_int_equal(pawl_source_open(source, &second, NULL), PAWL_OK);
    put(first);
    assert_int_equal(count(second), 1);
    pawl_store_close(first);
    pawl_store_close(second);
    pawl_source_free(source);
    pawl_source_free(NULL);
}

static void a_file_keeps_its_jobs(void **state)
{
    (void)state;
    char folder[] = "/tmp/pawl-open-XXXXXX";
    char url[128];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(url, sizeof(url), "sqlite:%s/x.db", folder);
    for (size_t life = 0; life < 2; life++) {
        pawl_source *source = NULL;
        pawl_store *store = NULL;
        pawl_err err;
        if (make(url, &source, &err) != PAWL_OK)
            fail_msg("%s", err.text);
        assert_int_equal(pawl_source_open(source, &store, NULL), PAWL_OK);
        assert_int_equal(count(store), life);
        put(store);
        pawl_store_close(store);
        pawl_source_free(source);
    }
    static const char *const files[] = {"x.db", "x.db-wal", "x.db-shm", "x.db-pawl"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        (void)snprintf(url, sizeof(url), "%s/%s", folder, files[i]);
        (void)unlink(url); /* some are not there */
    }
    (void)rmdir(folder); /* in /tmp, whatever is left */
}

/* NFR-003 */
static void urls_of_no_kind_are_refused_and_not_told(void **state)
{
    (void)state;
    static const char *const urls[] = {"",        "memory",  "memory:x",      "mysql://canary",
                                       "canary",  "/canary", "http://canary", "postgres:canary",
                                       "=canary", "Memory:", "canary canary"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        pawl_source *source = NULL;
        pawl_err err;
        assert_int_equal(make(urls[i], &source, &err), PAWL_INVALID);
        assert_null(source);
        assert_non_null(strstr(err.text, "sqlite:PATH"));
        assert_null(strstr(err.text, "canary"));
    }
    pawl_err err;
    pawl_store *store = NULL;
    pawl_source *source = NULL;
    assert_int_equal(make(NULL, &source, &err), PAWL_INVALID);
    assert_int_equal(pawl_source_new(NULL, &source, &err), PAWL_INVALID);
    assert_int_equal(pawl_source_open(NULL, &store, &err), PAWL_INVALID);
    static const char *const servers[] = {
        "postgres://u:canary@127.0.0.1:1/x", "postgresql://u:canary@127.0.0.1:1/x",
        "host=127.0.0.1 port=1 password=canary", "host = 127.0.0.1 port = 1 password=canary"};
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
        assert_int_equal(make(servers[i], &source, &err), PAWL_OK);
        assert_int_not_equal(pawl_source_open(source, &store, &err), PAWL_OK);
        assert_null(strstr(err.text, "canary"));
        pawl_source_free(source);
    }
}

static void running_out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        pawl_source *source = NULL;
        alloc_fail_nth(nth);
        pawl_code code = make("memory:", &source, NULL);
        if (!alloc_fail_end()) {
            pawl_source_free(source);
            break;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_null(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_one_source_share_their_jobs),
        cmocka_unit_test(a_file_keeps_its_jobs),
        cmocka_unit_test(urls_of_no_kind_are_refused_and_not_told),
        cmocka_unit_test(running_out_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
