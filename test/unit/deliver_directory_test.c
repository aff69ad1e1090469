/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_directory_test.c - what is told of endpoints that change while they are looked at: never
 * the address of one and the secrets of another.
 * Owns:  a store whose list of endpoints can be come between.
 */
#include "deliver/directory.h"

#include "base/clock.h"
#include "runtime/crew.h"
#include "runtime/watch.h"
#include "store/endpoint.h"
#include "store/store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define SECRET_OLD "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define SECRET_NEW "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define WAIT_MS    60000

struct rig;
typedef void change(struct rig *rig);

struct rig {
    pawl_memory *memory;
    pawl_store *store;
    struct pawli_store_ops ops;
    struct pawli_endpoint_ops endpoint_ops;
    const struct pawli_endpoint_ops *real;
    struct pawli_watch *watch;
    struct pawli_directory *directory;
    pthread_t thread;

    pthread_mutex_t mutex;
    pthread_cond_t told;
    change *before; /* the next list; mutex */
    change *after;  /* likewise */
    int news;       /* mutex, as the rest */
    int torn;       /* of these, those that are of two */
    bool is_new_told;
};

static struct rig the_rig;

static void come_between(change **which)
{
    pthread_mutex_lock(&the_rig.mutex);
    change *now = *which;
    *which = NULL;
    pthread_mutex_unlock(&the_rig.mutex);
    if (now != NULL)
        now(&the_rig);
}

static pawl_code list(pawl_store *store, const char *after, pawl_endpoint *ret_rows,
                      size_t rows_max, size_t *ret_count, pawl_err *err)
{
    come_between(&the_rig.before);
    pawl_code code = the_rig.real->list(store, after, ret_rows, rows_max, ret_count, err);
    come_between(&the_rig.after);
    return code;
}

static pawl_code open_handle(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    struct rig *rig = user;
    (void)role;
    pawl_code code = pawl_memory_open(rig->memory, ret_store, err);
    if (code != PAWL_OK)
        return code;
    rig->ops = *(*ret_store)->ops;
    rig->real = rig->ops.endpoint;
    rig->endpoint_ops = *rig->real;
    rig->endpoint_ops.list = list;
    rig->ops.endpoint = &rig->endpoint_ops;
    (*ret_store)->ops = &rig->ops;
    return PAWL_OK;
}

static void tell(void *user, struct pawli_news *news)
{
    struct rig *rig = user;
    bool is_new = strstr(news->endpoint.url, "/new") != NULL;
    bool has_new = strstr(news->credentials.headers, "new") != NULL;
    pthread_mutex_lock(&rig->mutex);
    rig->news++;
    rig->torn += !news->is_gone && is_new != has_new;
    rig->is_new_told = is_new && has_new;
    pthread_cond_signal(&rig->told);
    pthread_mutex_unlock(&rig->mutex);
    pawli_news_free(news);
}

static void add(struct rig *rig, const char *url, const char *headers, const char *secret)
{
    pawl_endpoint_settings settings;
    pawl_err err;
    pawl_endpoint_settings_init(&settings);
    settings.url = url;
    settings.topics = "*";
    settings.headers = headers;
    const pawl_endpoint_add_args args = {.name = "crm", .secret = secret, .settings = &settings};
    assert_int_equal(PAWL_OK, pawl_endpoint_add(rig->store, &args, &err));
}

static int set_up(void **state)
{
    struct rig *rig = &the_rig;
    static pawl_opener opener;
    pawl_memory_options options;
    pawl_err err;
    memset(rig, 0, sizeof(*rig));
    opener = (pawl_opener){.open = open_handle, .user = rig};
    pawl_memory_options_init(&options);
    assert_int_equal(PAWL_OK, pawl_memory_new(&options, &rig->memory, &err));
    assert_int_equal(PAWL_OK, pawl_memory_open(rig->memory, &rig->store, &err));
    assert_int_equal(0, pthread_mutex_init(&rig->mutex, NULL));
    assert_true(pawli_cond_init(&rig->told));
    rig->watch = pawli_watch_new(&(pawl_watch){.user = NULL}, pawl_clock_system(), "w");
    assert_non_null(rig->watch);
    rig->directory = pawli_directory_new(
        &(struct pawli_directory_config){.opener = &opener,
                                         .watch = rig->watch,
                                         .clock = pawl_clock_system(),
                                         .worker = "w",
                                         .refresh_ms = 1,
                                         .tell = tell,
                                         .user = rig});
    assert_non_null(rig->directory);
    add(rig, "https://a.example/old", "authorization: old\n", SECRET_OLD);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    pawli_directory_free(rig->directory);
    pawli_watch_free(rig->watch);
    pawl_store_close(rig->store);
    pawl_memory_free(rig->memory);
    (void)pthread_cond_destroy(&rig->told);
    (void)pthread_mutex_destroy(&rig->mutex);
    return 0;
}

static void *run(void *directory)
{
    pawli_directory_run(directory);
    return NULL;
}

/* Until the new one is told, as a whole, or in vain. */
static void run_until_new(struct rig *rig)
{
    struct timespec until = pawli_wait_until(WAIT_MS);
    int rc = 0;
    assert_int_equal(0, pthread_create(&rig->thread, NULL, run, rig->directory));
    pthread_mutex_lock(&rig->mutex);
    while (rc == 0 && !rig->is_new_told)
        rc = pthread_cond_timedwait(&rig->told, &rig->mutex, &until);
    pthread_mutex_unlock(&rig->mutex);
    pawli_directory_end(rig->directory);
    assert_int_equal(0, pthread_join(rig->thread, NULL));
    assert_int_equal(0, rc);
}

static void replace(struct rig *rig)
{
    pawl_err err;
    assert_int_equal(PAWL_OK, pawl_endpoint_remove(rig->store, "crm", &err));
    add(rig, "https://a.example/new", "authorization: new\n", SECRET_NEW);
}

static void replace_next_time(struct rig *rig)
{
    pthread_mutex_lock(&rig->mutex);
    rig->before = replace;
    pthread_mutex_unlock(&rig->mutex);
}

/* Both have the same revision, which is the first. */
static void test_one_of_the_same_name_is_another(void **state)
{
    struct rig *rig = *state;
    rig->after = replace_next_time;
    run_until_new(rig);
    assert_int_equal(2, rig->news);
    assert_int_equal(0, rig->torn);
}

static void change_both(struct rig *rig)
{
    pawl_endpoint_settings settings;
    pawl_err err;
    pawl_endpoint_settings_init(&settings);
    settings.url = "https://b.example/new";
    settings.headers = "authorization: new\n";
    assert_int_equal(PAWL_OK, pawl_endpoint_set(rig->store, "crm", &settings, &err));
}

/* The new header is for the new address: the old one must never get it. */
static void test_a_change_between_the_two_calls(void **state)
{
    struct rig *rig = *state;
    rig->after = change_both;
    run_until_new(rig);
    assert_int_equal(0, rig->torn);
}

/* Both are of the first revision, and the old address must not get what is the new one's. */
static void test_another_of_the_same_name_between_the_two_calls(void **state)
{
    struct rig *rig = *state;
    rig->after = replace;
    run_until_new(rig);
    assert_int_equal(0, rig->torn);
}

/* ---------------------------------------------------------------- disabling */

static pawl_endpoint look_up(struct rig *rig)
{
    pawl_endpoint endpoint;
    pawl_err err;
    assert_int_equal(PAWL_OK, pawl_endpoint_get(rig->store, "crm", &endpoint, &err));
    return endpoint;
}

static void order_disabling(struct rig *rig)
{
    pawl_endpoint endpoint = look_up(rig);
    const struct pawli_disabling what = {.name = "crm",
                                         .revision = endpoint.revision,
                                         .created_at = endpoint.created_at,
                                         .reason = "HTTP-410"};
    assert_true(pawli_directory_disable(rig->directory, &what));
}

/* Before the second look, which comes after the order was carried out: the run ends by it. */
static void change_later(struct rig *rig)
{
    pthread_mutex_lock(&rig->mutex);
    rig->before = change_both;
    pthread_mutex_unlock(&rig->mutex);
}

static void test_it_is_disabled(void **state)
{
    struct rig *rig = *state;
    order_disabling(rig);
    rig->after = change_later;
    run_until_new(rig);
    assert_false(look_up(rig).is_enabled);
    assert_string_equal("HTTP-410", look_up(rig).reason);
}

/* By hand, while the order waits because the store is away: disabled, and enabled. */
static void turn_twice(struct rig *rig)
{
    const pawl_endpoint_switch args = {.name = "crm", .by = "me"};
    pawl_err err;
    assert_int_equal(PAWL_OK, pawl_endpoint_disable(rig->store, &args, &err));
    assert_int_equal(PAWL_OK, pawl_endpoint_enable(rig->store, &args, &err));
    change_later(rig);
}

static void test_what_was_enabled_since_is_not_disabled(void **state)
{
    struct rig *rig = *state;
    order_disabling(rig);
    rig->after = turn_twice;
    run_until_new(rig);
    assert_true(look_up(rig).is_enabled);
}

/* Another of that name, at the same revision, is not meant. */
static void test_what_was_added_since_is_not_disabled(void **state)
{
    struct rig *rig = *state;
    order_disabling(rig);
    rig->after = replace;
    run_until_new(rig);
    assert_true(look_up(rig).is_enabled);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_one_of_the_same_name_is_another),
        CASE(test_a_change_between_the_two_calls),
        CASE(test_another_of_the_same_name_between_the_two_calls),
        CASE(test_it_is_disabled),
        CASE(test_what_was_enabled_since_is_not_disabled),
        CASE(test_what_was_added_since_is_not_disabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
