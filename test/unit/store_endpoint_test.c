/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_endpoint_test.c - what is said of endpoints and events, good and bad, by the property of
 * the fuzz target.
 * Owns:  the fixed corpus on which every compiler runs it.
 * Never: knows a store but the one in memory; the suite of stores has the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/endpoint_fuzz.h"

#include <string.h>

#define MUTATIONS 20000
#define TEXT_SIZE 160
#define TEXTS     10

static const char *const good[TEXTS] = {
    "crm.eu-1",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "https://hooks.example:8443/in?token=@a",
    "order.*,invoice.paid",
    "authorization: Bearer x\nx-tenant: 7\n",
    "400,404-406",
    "order.created.twice",
    "evt_17",
    "customer-4",
    "content-type: application/json\ntraceparent: 00-1-2-01\n",
};

static enum endpoint_fuzz_end run(char texts[TEXTS][TEXT_SIZE])
{
    struct endpoint_fuzz_input input = {texts[0], texts[1], texts[2], texts[3], texts[4],
                                        texts[5], texts[6], texts[7], texts[8], texts[9]};
    return endpoint_fuzz_one(&input);
}

static void reset(char texts[TEXTS][TEXT_SIZE])
{
    for (size_t i = 0; i < TEXTS; i++)
        memcpy(texts[i], good[i], strlen(good[i]) + 1);
}

static void what_is_good_goes_all_the_way(void **state)
{
    (void)state;
    char texts[TEXTS][TEXT_SIZE];
    reset(texts);
    assert_int_equal(run(texts), ENDPOINT_FUZZ_PUBLISHED);
    texts[7][0] = '\0'; /* an id of the store's */
    texts[8][0] = '\0'; /* no key */
    assert_int_equal(run(texts), ENDPOINT_FUZZ_PUBLISHED);
    memcpy(texts[6], "order", 6); /* not below itself */
    assert_int_equal(run(texts), ENDPOINT_FUZZ_ADDED);
}

/* One byte of one text is another: each place is met, and each end is come to. */
static void the_property_holds_for_what_is_nearly_good(void **state)
{
    (void)state;
    static const char bytes[] = "\x01\n :@/?#\\*.,-_aZ0%=\x7f\xc3\xff";
    struct pawli_seeded seeded = {20261115};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t ends[3] = {0};
    char texts[TEXTS][TEXT_SIZE];
    for (int i = 0; i < MUTATIONS; i++) {
        reset(texts);
        size_t text = (size_t)pawli_random_below(&random, TEXTS);
        size_t at = (size_t)pawli_random_below(&random, strlen(texts[text]) + 1);
        if (texts[text][at] == '\0')
            texts[text][at + 1] = '\0';                                      /* one more */
        texts[text][at] = bytes[pawli_random_below(&random, sizeof(bytes))]; /* or cut */
        ends[run(texts)]++;
    }
    for (size_t i = 0; i < 3; i++)
        assert_true(ends[i] > MUTATIONS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_good_goes_all_the_way),
        cmocka_unit_test(the_property_holds_for_what_is_nearly_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
