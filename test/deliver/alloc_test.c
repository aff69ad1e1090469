/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * alloc_test.c - every allocation of a delivery fails once: nothing is recorded that was not so,
 * nothing is half done, and the same works afterwards. What leaks shows to the sanitizer's build.
 * Owns:  the counting of what was sent against what came.
 * Never: fails an allocation of libcurl or libcrypto, which have their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deliver/directory.h"
#include "deliver/dispatcher.h"
#include "deliver/probe.h"
#include "deliver/roster.h"
#include "deliver/sink.h"
#include "support/alloc_fail.h"

#include <stdlib.h>
#include <string.h>

#define SECRET  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define NTH_MAX 10000 /* no call has so many: it would not come to an end */

struct rig {
    struct sink sink;
    struct pawli_allow allow;
    struct pawli_target_rules target;
    struct pawli_news news;
    pawl_memory *memory;
    pawl_store *store;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    pawl_err err;
    char url[256];
    assert_non_null(rig);
    sink_start(&rig->sink);
    assert_int_equal(pawli_allow_add(&rig->allow, "127.0.0.1", &err), PAWL_OK);
    rig->target = (struct pawli_target_rules){
        .allow = &rig->allow, .ports = &rig->sink.port, .ports_count = 1, .is_http_allowed = true};
    pawl_endpoint_settings settings;
    pawl_endpoint_settings_init(&settings);
    settings.url = sink_url(&rig->sink, "127.0.0.1", "/ok", url);
    settings.topics = "*";
    settings.headers = "x-own: 1\n";
    pawl_endpoint_add_args add = {.name = "crm", .secret = SECRET, .settings = &settings};
    assert_int_equal(pawl_memory_new(NULL, &rig->memory, &err), PAWL_OK);
    assert_int_equal(pawl_memory_open(rig->memory, &rig->store, &err), PAWL_OK);
    assert_int_equal(pawl_endpoint_add(rig->store, &add, &err), PAWL_OK);
    add.name = "erp";
    assert_int_equal(pawl_endpoint_add(rig->store, &add, &err), PAWL_OK);
    assert_int_equal(pawl_endpoint_get(rig->store, "crm", &rig->news.endpoint, &err), PAWL_OK);
    assert_int_equal(pawl_endpoint_credentials_get(rig->store, "crm", &rig->news.credentials, &err),
                     PAWL_OK);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    pawl_store_close(rig->store);
    pawl_memory_free(rig->memory);
    sink_stop(&rig->sink);
    free(rig);
    return 0;
}

/* From the endpoint's settings to the answer, in each format. Where the call says that it came to
 * nothing, nothing came; what it says was sent is what came; delivered is what was answered. */
static void a_delivery(void **state)
{
    struct rig *rig = *state;
    for (int format = PAWL_FORMAT_PLAIN; format <= PAWL_FORMAT_CLOUD_STRUCTURED; format++) {
        bool has_failed = true;
        rig->news.endpoint.format = (pawl_endpoint_format)format;
        for (uint64_t nth = 1; has_failed; nth++) {
            struct pawli_probe_args args = {.news = &rig->news,
                                            .target = rig->target,
                                            .source = "urn:test",
                                            .clock = pawl_clock_system(),
                                            .random = pawl_random_system()};
            struct pawli_probe_end end = {.sends = 0};
            pawl_err err = {.code = PAWL_OK};
            pawli_wire_rules_init(&args.wire);
            args.wire.allow = &rig->allow;
            sink_forget(&rig->sink);
            assert_true(nth < NTH_MAX);
            alloc_fail_nth(nth);
            pawl_code code = pawli_probe(&args, &end, &err);
            has_failed = alloc_fail_end();
            size_t came = sink_count(&rig->sink, "/ok");
            if (code != PAWL_OK) {
                assert_true(has_failed);
                assert_true(code == PAWL_NO_MEMORY || code == PAWL_DOWN);
                assert_int_equal(came, 0);
                continue;
            }
            assert_int_equal(end.sends, came);
            assert_true(end.outcome.delivery != PAWLI_DELIVERY_FAILED);
            assert_true(end.outcome.delivery != PAWLI_DELIVERED || came == 1);
            assert_true(has_failed || end.outcome.delivery == PAWLI_DELIVERED);
        }
    }
}

/* An outlet that could not be set up says so, and is not called; set again, it can be. */
static void an_outlet(void **state)
{
    struct rig *rig = *state;
    const struct pawli_breaker_now now = {.mono = {1}, .wall = {1000000}};
    struct pawli_outlet_rules rules = {
        .target = rig->target, .gate = {.window_start = 1}, .most = 1};
    bool has_failed = true;
    pawli_breaker_rules_init(&rules.gate.breaker);
    pawli_outcome_rules_init(&rules.outcome);
    for (uint64_t nth = 1; has_failed; nth++) {
        struct pawli_roster roster;
        pawli_roster_init(&roster, 1);
        alloc_fail_nth(nth);
        struct pawli_outlet *outlet = pawli_outlet_new("crm", &rules, now.mono);
        if (outlet != NULL) {
            pawli_roster_add(&roster, outlet);
            pawli_outlet_set(outlet, &rig->news, &rules, now);
            if (outlet->code == PAWL_OK && !pawli_roster_move(&roster, outlet))
                assert_null(outlet->host);
        }
        has_failed = alloc_fail_end();
        assert_true(outlet != NULL || has_failed);
        if (outlet != NULL) {
            assert_true(has_failed || outlet->code == PAWL_OK);
            assert_true(outlet->code == PAWL_OK || outlet->problem[0] != '\0');
            pawli_outlet_set(outlet, &rig->news, &rules, now);
            assert_int_equal(outlet->code, PAWL_OK);
            assert_true(pawli_roster_move(&roster, outlet));
        }
        pawli_roster_clear(&roster);
    }
}

/* ---------------------------------------------------------------- the directory */

static pawl_code open_store(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    (void)role;
    return pawl_memory_open(user, ret_store, err);
}

/* What was told so far. */
struct heard {
    struct pawli_directory *directory;
    bool has_crm;
    bool has_erp;
    bool is_crm_off;
    bool is_erp_marked;
};

static void hear(void *user, struct pawli_news *news)
{
    struct heard *heard = user;
    bool is_crm = strcmp(news->endpoint.name, "crm") == 0;
    assert_int_equal(news->credentials.secrets_count, 1); /* whole, or not at all */
    heard->has_crm = heard->has_crm || is_crm;
    heard->has_erp = heard->has_erp || !is_crm;
    heard->is_crm_off = heard->is_crm_off || (is_crm && !news->endpoint.is_enabled);
    heard->is_erp_marked = heard->is_erp_marked ||
                           (!is_crm && news->endpoint.failing_since.us != 0);
    if (heard->has_crm && heard->has_erp && heard->is_crm_off && heard->is_erp_marked)
        pawli_directory_end(heard->directory);
    pawli_news_free(news);
}

/* All endpoints are told, and what is ordered is carried out, however late. */
static void the_directory(void **state)
{
    struct rig *rig = *state;
    const pawl_opener opener = {.open = open_store, .user = rig->memory};
    const pawl_watch nobody = {.level = PAWL_LEVEL_ERROR};
    const pawl_endpoint_switch on = {.name = "crm", .by = "test"};
    const pawl_endpoint_mark_args well = {
        .name = "erp", .by = "test", .disable_after_ms = PAWL_FOREVER};
    pawl_endpoint_marked marked;
    bool has_failed = true;
    for (uint64_t nth = 1; has_failed; nth++) {
        struct heard heard = {.directory = NULL};
        struct pawli_watch *watch = pawli_watch_new(&nobody, pawl_clock_system(), "w");
        const struct pawli_directory_config config = {.opener = &opener,
                                                      .watch = watch,
                                                      .clock = pawl_clock_system(),
                                                      .worker = "w",
                                                      .refresh_ms = 1,
                                                      .tell = hear,
                                                      .user = &heard};
        const struct pawli_mark mark = {
            .name = "erp", .is_failing = true, .disable_after_ms = PAWL_FOREVER};
        assert_non_null(watch);
        assert_int_equal(pawl_endpoint_enable(rig->store, &on, NULL), PAWL_OK);
        assert_int_equal(pawl_endpoint_mark(rig->store, &well, &marked, NULL), PAWL_OK);
        pawl_endpoint now;
        assert_int_equal(pawl_endpoint_get(rig->store, "crm", &now, NULL), PAWL_OK);
        const struct pawli_disabling off = {.name = "crm",
                                            .revision = now.revision,
                                            .created_at = now.created_at,
                                            .reason = "gone"};
        alloc_fail_nth(nth);
        heard.directory = pawli_directory_new(&config);
        bool is_ordered = heard.directory != NULL &&
                          (pawli_directory_disable(heard.directory, &off) ||
                           pawli_directory_disable(heard.directory, &off)) &&
                          (pawli_directory_mark(heard.directory, &mark) ||
                           pawli_directory_mark(heard.directory, &mark));
        if (is_ordered)
            pawli_directory_run(heard.directory);
        has_failed = alloc_fail_end();
        assert_true(is_ordered || has_failed);
        assert_true(!is_ordered || (heard.is_crm_off && heard.is_erp_marked));
        pawli_directory_free(heard.directory);
        pawli_watch_free(watch);
    }
    pawl_endpoint row;
    assert_int_equal(pawl_endpoint_get(rig->store, "erp", &row, NULL), PAWL_OK);
    assert_true(row.is_enabled && row.failing_since.us != 0);
}

/* ---------------------------------------------------------------- all of it */

/* A dispatcher that cannot be built is not there: no thread, no claim. */
static void the_start_of_a_dispatcher(void **state)
{
    struct rig *rig = *state;
    bool has_failed = true;
    for (uint64_t nth = 1; has_failed; nth++) {
        struct pawli_dispatcher_options options;
        pawl_runner *runner = NULL;
        pawl_err err = {.code = PAWL_OK};
        pawli_dispatcher_options_init(&options);
        options.worker.opener = (pawl_opener){.open = open_store, .user = rig->memory};
        options.worker.settings.parallel_max = 2;
        options.target = rig->target;
        options.wire.allow = &rig->allow;
        assert_true(nth < NTH_MAX);
        alloc_fail_nth(nth);
        pawl_code code = pawli_dispatcher_start(&options, &runner, &err);
        has_failed = alloc_fail_end();
        if (code != PAWL_OK) {
            assert_true(has_failed);
            assert_true(code == PAWL_NO_MEMORY || code == PAWL_DOWN);
            assert_null(runner);
            continue;
        }
        assert_int_equal(pawl_worker_free(runner), 0);
    }
    assert_int_equal(sink_count(&rig->sink, "/ok"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_outlet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_delivery, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_start_of_a_dispatcher, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("deliver_alloc", tests, NULL, NULL);
}
