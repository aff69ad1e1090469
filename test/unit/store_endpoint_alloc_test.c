/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_endpoint_alloc_test.c - every allocation in every verb on endpoints fails once, on the
 * memory store and on SQLite: each time nothing is half done, results are untouched, and the same
 * call works afterwards. What leaks shows to the sanitizer's build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pawl/endpoint.h"
#include "support/alloc_fail.h"
#include "support/scratch.h"

#include <stdio.h>
#include <string.h>

#define SECRET   "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SECRET_2 "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define PATTERN  0x5a
#define EVENTS   3

struct world {
    struct scratch scratch;
    pawl_source *source;
    pawl_store *store;
    pawl_endpoint rows[4];
    pawl_endpoint_credentials credentials;
    pawl_published results[EVENTS];
    pawl_endpoint_marked marked;
    pawl_replayed replayed;
    size_t count;
};

typedef pawl_code verb(struct world *world);

static pawl_endpoint_settings settings(void)
{
    pawl_endpoint_settings made;
    pawl_endpoint_settings_init(&made);
    made.url = "https://hooks.example/";
    made.topics = "x.*,y";
    made.headers = "x-a: 1\n";
    return made;
}

static pawl_code add_as(struct world *world, const char *name)
{
    pawl_endpoint_settings said = settings();
    pawl_endpoint_add_args args = {.name = name, .secret = SECRET, .settings = &said};
    return pawl_endpoint_add(world->store, &args, NULL);
}

static pawl_code add(struct world *world)
{
    return add_as(world, "new");
}

static pawl_code set(struct world *world)
{
    pawl_endpoint_settings said = settings();
    return pawl_endpoint_set(world->store, "a", &said, NULL);
}

static pawl_code rotate(struct world *world)
{
    pawl_endpoint_rotate_args args = {.name = "a", .secret = SECRET_2, .overlap_ms = 1000};
    return pawl_endpoint_rotate(world->store, &args, NULL);
}

static pawl_code turn_off(struct world *world)
{
    pawl_endpoint_switch args = {.name = "a", .by = "test"};
    return pawl_endpoint_disable(world->store, &args, NULL);
}

static pawl_code take_away(struct world *world)
{
    return pawl_endpoint_remove(world->store, "empty", NULL);
}

static pawl_code get(struct world *world)
{
    return pawl_endpoint_get(world->store, "a", &world->rows[0], NULL);
}

static pawl_code list(struct world *world)
{
    return pawl_endpoint_list(world->store, NULL, world->rows, 4, &world->count, NULL);
}

static pawl_code credentials(struct world *world)
{
    return pawl_endpoint_credentials_get(world->store, "a", &world->credentials, NULL);
}

static pawl_code publish(struct world *world)
{
    pawl_publish_row rows[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        pawl_publish_init(&rows[i]);
        rows[i].type = "x.y";
        rows[i].id = i == 0 ? "evt_1" : NULL;
        rows[i].payload = "payload";
        rows[i].payload_len = 7;
        rows[i].ordering_key = "k";
        rows[i].headers = "x-b: 2\n";
    }
    return pawl_publish(world->store, rows, EVENTS, world->results, NULL);
}

static pawl_code mark(struct world *world)
{
    pawl_endpoint_mark_args args = {
        .name = "a", .by = "test", .is_failing = true, .disable_after_ms = PAWL_FOREVER};
    return pawl_endpoint_mark(world->store, &args, &world->marked, NULL);
}

static pawl_code replay(struct world *world)
{
    pawl_replay_args args;
    pawl_replay_init(&args);
    args.name = "empty";
    args.event = "kept_1";
    args.as = "again";
    return pawl_endpoint_replay(world->store, &args, &world->replayed, NULL);
}

static void begin(struct world *world, bool is_memory)
{
    pawl_source_options options;
    char url[512] = "memory:";
    pawl_source_options_init(&options);
    if (!is_memory) {
        assert_true(scratch_make(&world->scratch));
        (void)snprintf(url, sizeof(url), "sqlite:%s", world->scratch.path);
    }
    options.url = url;
    assert_int_equal(pawl_source_new(&options, &world->source, NULL), PAWL_OK);
    assert_int_equal(pawl_source_open(world->source, &world->store, NULL), PAWL_OK);
    assert_int_equal(add_as(world, "a"), PAWL_OK);
    assert_int_equal(add_as(world, "b"), PAWL_OK);
    assert_int_equal(add_as(world, "empty"), PAWL_OK);
    pawl_publish_row row;
    pawl_publish_init(&row);
    row.type = "nobody.wants";
    row.id = "kept_1";
    row.payload = "payload";
    row.payload_len = 7;
    assert_int_equal(pawl_publish(world->store, &row, 1, world->results, NULL), PAWL_OK);
    memset(world->rows, PATTERN, sizeof(world->rows));
    memset(&world->marked, PATTERN, sizeof(world->marked));
    memset(&world->replayed, PATTERN, sizeof(world->replayed));
    memset(&world->credentials, PATTERN, sizeof(world->credentials));
    memset(world->results, PATTERN, sizeof(world->results));
}

static void end(struct world *world, bool is_memory)
{
    pawl_store_close(world->store);
    pawl_source_free(world->source);
    if (!is_memory)
        scratch_remove(&world->scratch);
}

/* All that can be seen: endpoints, and how many jobs there are. */
struct view {
    pawl_endpoint rows[4];
    size_t count;
    pawl_stats stats[4];
    size_t stats_count;
};

static void look(struct world *world, struct view *view)
{
    memset(view, 0, sizeof(*view));
    assert_int_equal(pawl_endpoint_list(world->store, NULL, view->rows, 4, &view->count, NULL),
                     PAWL_OK);
    assert_int_equal(pawl_queue_stats(world->store, NULL, view->stats, 4, &view->stats_count, NULL),
                     PAWL_OK);
}

static bool is_untouched(const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((const uint8_t *)bytes)[i] != PATTERN)
            return false;
    return true;
}

/* Gives how many allocations have failed. */
static uint64_t starve(verb *what, bool is_memory)
{
    for (uint64_t nth = 1;; nth++) {
        struct world world = {.count = 0};
        struct view before;
        struct view after;
        begin(&world, is_memory);
        look(&world, &before);
        alloc_fail_nth(nth);
        pawl_code code = what(&world);
        bool has_failed = alloc_fail_end();
        if (!has_failed) {
            assert_int_equal(code, PAWL_OK);
            end(&world, is_memory);
            return nth - 1;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_true(is_untouched(world.rows, sizeof(world.rows)));
        assert_true(is_untouched(&world.credentials, sizeof(world.credentials)));
        assert_true(is_untouched(world.results, sizeof(world.results)));
        assert_true(is_untouched(&world.marked, sizeof(world.marked)));
        assert_true(is_untouched(&world.replayed, sizeof(world.replayed)));
        look(&world, &after);
        assert_memory_equal(&before, &after, sizeof(after));
        assert_int_equal(what(&world), PAWL_OK);
        end(&world, is_memory);
    }
}

static void each_fails_once(bool is_memory)
{
    static const struct {
        const char *name;
        verb *what;
    } verbs[] = {
        {"add", add},          {"set", set},   {"rotate", rotate}, {"disable", turn_off},
        {"remove", take_away}, {"get", get},   {"list", list},     {"credentials", credentials},
        {"publish", publish},  {"mark", mark}, {"replay", replay}};
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        uint64_t count = starve(verbs[i].what, is_memory);
        (void)printf("# %s: %llu allocations\n", verbs[i].name, (unsigned long long)count);
        all += count;
    }
    assert_true(all >= 8);
}

static void in_memory(void **state)
{
    (void)state;
    each_fails_once(true);
}

static void in_a_file(void **state)
{
    (void)state;
    each_fails_once(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_memory), cmocka_unit_test(in_a_file)};
    return cmocka_run_group_tests_name("store_endpoint_alloc", tests, NULL, NULL);
}
