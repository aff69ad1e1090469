/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_request_test.c - what is sent for an event whose content type cannot be passed on: it is
 * neither lost, nor called JSON; and that nothing secret is left of a request.
 */
#include "deliver/request.h"

#include "core/event.h"
#include "webhook/secret.h"
#include "webhook/sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define HUSH "x-token: hush"
#define X32  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static struct pawli_signer *make_signer(void)
{
    struct pawli_secret secret;
    struct pawli_signer *signer = NULL;
    pawl_err err;
    assert_int_equal(PAWL_OK,
                     pawli_secret_parse("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &secret, &err));
    assert_int_equal(PAWL_OK, pawli_signer_new(&secret, 1, &signer, &err));
    return signer;
}

/* Of an event with this content type, the line that is sent. */
static void check(const char *given, pawl_endpoint_format format, const char *expected)
{
    char headers[1024];
    char payload[] = "<x/>";
    struct pawli_signer *signer = make_signer();
    struct pawli_request request = {.body = NULL};
    bool is_found = false;
    pawl_err err;
    (void)snprintf(headers, sizeof(headers),
                   "pawl-event-id: evt_1\npawl-event-type: a.b\ncontent-type: %s\n", given);
    const pawl_job job = {.created_at = {INT64_C(1700000000000000)},
                          .headers = headers,
                          .payload = payload,
                          .payload_len = strlen(payload)};
    const struct pawli_request_args args = {.job = &job,
                                            .format = format,
                                            .source = "urn:pawl",
                                            .signer = signer,
                                            .now = {INT64_C(1700000000000000)}};
    assert_int_equal(PAWL_OK, pawli_request_make(&args, &request, &err));
    const char *lines = (const char *)request.headers.bytes;
    for (size_t at = 0; at < request.headers.len; at += strlen(lines + at) + 1)
        is_found = is_found || strcmp(lines + at, expected) == 0;
    assert_true(is_found);
    pawli_request_clear(&request);
    pawli_signer_free(signer);
}

static void test_content_types(void **state)
{
    static const char *const bad[] = {"application/" X32 X32 X32 X32, "text", "t\xc3\xabxt/plain"};
    static const char bytes[] = "content-type: " PAWLI_EVENT_BYTES_TYPE;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check(bad[i], PAWL_FORMAT_PLAIN, bytes);
        check(bad[i], PAWL_FORMAT_CLOUD_BINARY, bytes);
        check(bad[i], PAWL_FORMAT_CLOUD_STRUCTURED,
              "content-type: application/cloudevents+json; charset=UTF-8");
    }
    check("text/xml; charset=utf-8", PAWL_FORMAT_PLAIN, "content-type: text/xml; charset=utf-8");
    check("", PAWL_FORMAT_PLAIN, "content-type: application/json");
}

/* ---- what is wiped */

static int wiped_count; /* lines that have the endpoint's own header, which is a secret */

void __wrap_explicit_bzero(void *bytes, size_t bytes_len);

void __wrap_explicit_bzero(void *bytes, size_t bytes_len)
{
    bool is_found = false;
    for (size_t i = 0; i + strlen(HUSH) <= bytes_len; i++)
        is_found = is_found || memcmp((const char *)bytes + i, HUSH, strlen(HUSH)) == 0;
    wiped_count += is_found;
    memset(bytes, 0, bytes_len);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* not left out */
}

/* NFR-003: signatures and the headers of an endpoint are nowhere when the request is over. */
static void test_headers_are_wiped(void **state)
{
    (void)state;
    char payload[] = "{}";
    char headers[] = "pawl-event-id: evt_1\npawl-event-type: a.b\n";
    char own[600];
    struct pawli_signer *signer = make_signer();
    struct pawli_request request = {.body = NULL};
    pawl_err err;
    const pawl_job job = {.created_at = {INT64_C(1700000000000000)},
                          .headers = headers,
                          .payload = payload,
                          .payload_len = 2};
    /* Longer than the buffer is at first. */
    (void)snprintf(own, sizeof(own), HUSH "\nx-long: %0500d\n", 0);
    const struct pawli_request_args args = {.job = &job,
                                            .headers = own,
                                            .format = PAWL_FORMAT_PLAIN,
                                            .source = "urn:pawl",
                                            .signer = signer,
                                            .now = {INT64_C(1700000000000000)}};
    wiped_count = 0;
    assert_int_equal(PAWL_OK, pawli_request_make(&args, &request, &err));
    assert_int_equal(1, wiped_count); /* where the line was put together */
    pawli_request_clear(&request);
    assert_int_equal(2, wiped_count);
    pawli_signer_free(signer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_types),
        cmocka_unit_test(test_headers_are_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
