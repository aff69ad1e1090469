/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_outlet_test.c - an endpoint as the dispatcher has it, while its settings change.
 */
#include "deliver/outlet.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct pawli_breaker_now now = {.mono = {1000000},
                                             .wall = {INT64_C(1700000000000000)}};

static struct pawli_news *news_of(const char *url)
{
    struct pawli_news *news = calloc(1, sizeof(*news));
    assert_non_null(news);
    news->endpoint.is_enabled = true;
    news->endpoint.timeout_ms = 1000;
    news->endpoint.format = PAWL_FORMAT_PLAIN;
    assert_true(pawli_text_copy(news->endpoint.name, sizeof(news->endpoint.name), "crm"));
    assert_true(pawli_text_copy(news->endpoint.url, sizeof(news->endpoint.url), url));
    news->credentials.secrets_count = 1;
    assert_true(pawli_text_copy(news->credentials.secrets[0].text,
                                sizeof(news->credentials.secrets[0].text),
                                "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
    return news;
}

static void set(struct pawli_outlet *outlet, const struct pawli_outlet_rules *rules,
                const char *url)
{
    struct pawli_news *news = news_of(url);
    pawli_outlet_set(outlet, news, rules, now);
    pawli_news_free(news);
    assert_int_equal(PAWL_OK, outlet->code);
}

static struct pawli_outlet *make(struct pawli_outlet_rules *ret_rules)
{
    *ret_rules = (struct pawli_outlet_rules){.gate = {.window_start = 4}, .most = 8};
    pawli_breaker_rules_init(&ret_rules->gate.breaker);
    pawli_outcome_rules_init(&ret_rules->outcome);
    struct pawli_outlet *outlet = pawli_outlet_new("crm", ret_rules, now.mono);
    assert_non_null(outlet);
    return outlet;
}

/* How one ended that was sent to the old address says nothing of the new one. */
static void test_another_address_begins_anew(void **state)
{
    (void)state;
    struct pawli_outlet_rules rules;
    struct pawli_outlet *outlet = make(&rules);
    set(outlet, &rules, "https://old.example/hook");
    struct pawli_gate_ended gone = {
        .end = PAWLI_END_DONE,
        .outcome = {.delivery = PAWLI_DELIVERY_FAILED, .is_endpoint_gone = true}};
    assert_true(pawli_gate_ask(&outlet->gate, now.mono, &gone.pass));
    set(outlet, &rules, "https://new.example/hook");
    assert_int_equal(PAWLI_BREAKER_SAME, pawli_gate_ended(&outlet->gate, &rules.gate, now, &gone));
    assert_int_equal(4, pawli_outlet_bound(outlet, now.mono));

    assert_true(pawli_gate_ask(&outlet->gate, now.mono, &gone.pass));
    set(outlet, &rules, "https://new.example/hook"); /* something else has changed */
    assert_int_equal(PAWLI_BREAKER_NOW_DISABLED,
                     pawli_gate_ended(&outlet->gate, &rules.gate, now, &gone));
    pawli_outlet_free(outlet);
}

/* What was read before the store knew that it is to be disabled does not enable it; what was read
 * since does. */
static void test_old_news_do_not_enable(void **state)
{
    (void)state;
    struct pawli_outlet_rules rules;
    struct pawli_outlet *outlet = make(&rules);
    set(outlet, &rules, "https://a.example/hook");
    pawli_breaker_disable(&outlet->gate.breaker, "HTTP-410");
    outlet->marks = 1; /* the order is on its way */
    struct pawli_news *news = news_of("https://a.example/hook");
    news->endpoint.timeout_ms = 2000;
    pawli_outlet_set(outlet, news, &rules, now);
    assert_int_equal(0, pawli_outlet_bound(outlet, now.mono));
    assert_int_equal(2000, outlet->timeout_ms);
    news->marks = 1; /* and the store has refused it, or somebody enabled it since */
    pawli_outlet_set(outlet, news, &rules, now);
    assert_int_equal(4, pawli_outlet_bound(outlet, now.mono));
    pawli_news_free(news);
    pawli_outlet_free(outlet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_address_begins_anew),
        cmocka_unit_test(test_old_news_do_not_enable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
