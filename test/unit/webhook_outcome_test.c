/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_outcome_test.c - proves webhook/outcome.c: what each status and each end of a transfer
 * does to the job and to the endpoint.
 * Owns:  the table of reasons, which must never change: ledgers hold them.
 * Never: sends anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "webhook/outcome.h"

#include <curl/curl.h>

#define NOW ((pawl_wall){INT64_C(1772323200000000)}) /* Sun, 01 Mar 2026 00:00:00 GMT */

static struct pawli_outcome judge(struct pawli_transfer transfer, const char *fail_at_once)
{
    struct pawli_outcome_rules rules;
    pawli_outcome_rules_init(&rules);
    assert_int_equal(pawli_status_set_parse(fail_at_once, &rules.fail_at_once, NULL), PAWL_OK);
    return pawli_outcome_of(&transfer, &rules, NOW);
}

static struct pawli_outcome judge_status(long status, const char *fail_at_once)
{
    return judge((struct pawli_transfer){.has_whole_headers = true, .status = status},
                 fail_at_once);
}

/* FR-004: what each status does, with nothing and with everything that the settings can fail. */
static void statuses_mean_what_they_say(void **state)
{
    (void)state;
    for (long status = -1; status <= 1000; status++) {
        struct pawli_outcome outcome = judge_status(status, "");
        struct pawli_outcome strict = judge_status(status, "400-499");
        bool is_good = status >= 200 && status <= 299;
        bool is_always = status == 408 || status == 425 || status == 429;
        bool is_failing = status >= 400 && status <= 499 && !is_always;
        assert_int_equal(outcome.delivery, is_good         ? PAWLI_DELIVERED
                                           : status == 410 ? PAWLI_DELIVERY_FAILED
                                                           : PAWLI_DELIVERY_RETRY);
        assert_int_equal(strict.delivery, is_good      ? PAWLI_DELIVERED
                                          : is_failing ? PAWLI_DELIVERY_FAILED
                                                       : PAWLI_DELIVERY_RETRY);
        assert_int_equal(outcome.is_endpoint_gone, status == 410);
        assert_int_equal(strict.is_endpoint_gone, status == 410);
        assert_true(outcome.pause_ms == (status == 429 || status == 503 ? 5000 : 0));
        char reason[PAWLI_OUTCOME_REASON_SIZE] = "BAD-STATUS";
        if (status >= 200 && status <= 599)
            (void)snprintf(reason, sizeof(reason), "HTTP-%d", (int)status);
        assert_string_equal(outcome.reason, reason);
        assert_string_equal(strict.reason, reason);
    }
    assert_int_equal(judge_status(404, "404").delivery, PAWLI_DELIVERY_FAILED);
    assert_int_equal(judge_status(405, "404").delivery, PAWLI_DELIVERY_RETRY);
    assert_string_equal(judge_status(INT64_C(200) + (INT64_C(1) << 32), "").reason, "BAD-STATUS");
}

static void retry_after_pauses_the_endpoint(void **state)
{
    (void)state;
    static const struct {
        long status;
        const char *retry_after;
        int64_t pause_ms;
    } rows[] = {
        {429, NULL, 5000},
        {503, NULL, 5000},
        {429, "7", 7000},
        {503, "7", 7000},
        {503, "0", 0},
        {429, "3600", 3600000},
        {429, "3601", 3600000},
        {503, "99999999999999999999", 3600000},
        {503, "Sun, 01 Mar 2026 00:00:09 GMT", 9000},
        {429, "Sun, 01 Mar 2026 09:00:00 GMT", 3600000},
        {429, "Sun, 01 Feb 2026 09:00:00 GMT", 0},
        {503, "later", 5000},
        {503, "", 5000},
        {500, "7", 0},
        {408, "7", 0},
        {301, "7", 0},
        {200, "7", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pawli_outcome outcome = judge(
            (struct pawli_transfer){.has_whole_headers = true,
                                    .status = rows[i].status,
                                    .retry_after = rows[i].retry_after},
            "");
        if (outcome.pause_ms != rows[i].pause_ms)
            fail_msg("%ld, %s: %lld", rows[i].status, rows[i].retry_after,
                     (long long)outcome.pause_ms);
        if (rows[i].status != 200)
            assert_int_equal(outcome.delivery, PAWLI_DELIVERY_RETRY);
    }
}

static const struct {
    enum pawli_transfer_end end;
    const char *reason;
} ends[PAWLI_ENDS] = {
    {PAWLI_END_DONE, "HEADERS-CUT"},  {PAWLI_END_DNS, "DNS"},
    {PAWLI_END_CONNECT, "CONNECT"},   {PAWLI_END_TLS, "TLS"},
    {PAWLI_END_TIMEOUT, "TIMEOUT"},   {PAWLI_END_RESET, "RESET"},
    {PAWLI_END_PROTOCOL, "PROTOCOL"}, {PAWLI_END_TOO_LARGE, "TOO-LARGE"},
    {PAWLI_END_ADDRESS, "ADDRESS"},   {PAWLI_END_STOPPED, "STOPPED"},
    {PAWLI_END_LOCAL, "LOCAL"},
};

/* A status without whole headers is none, however good it looks. */
static void without_whole_headers_the_end_decides(void **state)
{
    (void)state;
    static const long statuses[] = {0, 200, 410, 429};
    for (size_t i = 0; i < PAWLI_ENDS; i++) {
        for (size_t k = 0; k < 4; k++) {
            struct pawli_outcome outcome = judge((struct pawli_transfer){.end = ends[i].end,
                                                                         .status = statuses[k],
                                                                         .retry_after = "7"},
                                                 "400-499");
            assert_int_equal(outcome.delivery, ends[i].end == PAWLI_END_STOPPED
                                                   ? PAWLI_DELIVERY_UNTOLD
                                                   : PAWLI_DELIVERY_RETRY);
            assert_string_equal(outcome.reason, ends[i].reason);
            assert_false(outcome.is_endpoint_gone);
            assert_true(outcome.pause_ms == 0);
        }
    }
}

/* The endpoint has answered: however the body ends, nothing is sent twice. */
static void with_whole_headers_the_status_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAWLI_ENDS; i++) {
        struct pawli_transfer transfer = {
            .end = ends[i].end, .has_whole_headers = true, .status = 204};
        struct pawli_outcome outcome = judge(transfer, "");
        /* FR-002: what we stopped ourselves is never told, not even where the answer had come. */
        bool is_stopped = ends[i].end == PAWLI_END_STOPPED;
        assert_int_equal(outcome.delivery, is_stopped ? PAWLI_DELIVERY_UNTOLD : PAWLI_DELIVERED);
        assert_string_equal(outcome.reason, is_stopped ? "STOPPED" : "HTTP-204");
        transfer.status = 410;
        assert_int_equal(judge(transfer, "").is_endpoint_gone, !is_stopped);
    }
}

static void results_of_libcurl_are_ends(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum pawli_transfer_end end;
    } rows[] = {
        {CURLE_OK, PAWLI_END_DONE},
        {CURLE_COULDNT_RESOLVE_HOST, PAWLI_END_DNS},
        {CURLE_COULDNT_CONNECT, PAWLI_END_CONNECT},
        {CURLE_SSL_CONNECT_ERROR, PAWLI_END_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, PAWLI_END_TLS},
        {CURLE_SSL_CERTPROBLEM, PAWLI_END_TLS},
        {CURLE_SSL_CACERT_BADFILE, PAWLI_END_TLS},
        {CURLE_OPERATION_TIMEDOUT, PAWLI_END_TIMEOUT},
        {CURLE_GOT_NOTHING, PAWLI_END_RESET},
        {CURLE_SEND_ERROR, PAWLI_END_RESET},
        {CURLE_RECV_ERROR, PAWLI_END_RESET},
        {CURLE_PARTIAL_FILE, PAWLI_END_RESET},
        {CURLE_HTTP2, PAWLI_END_RESET},
        {CURLE_HTTP2_STREAM, PAWLI_END_RESET},
        {CURLE_WEIRD_SERVER_REPLY, PAWLI_END_PROTOCOL},
        {CURLE_UNSUPPORTED_PROTOCOL, PAWLI_END_PROTOCOL},
        {CURLE_WRITE_ERROR, PAWLI_END_TOO_LARGE},
        {CURLE_FILESIZE_EXCEEDED, PAWLI_END_TOO_LARGE},
        {CURLE_ABORTED_BY_CALLBACK, PAWLI_END_STOPPED},
        {CURLE_OUT_OF_MEMORY, PAWLI_END_LOCAL},
        {CURLE_FAILED_INIT, PAWLI_END_LOCAL},
        {CURLE_BAD_FUNCTION_ARGUMENT, PAWLI_END_LOCAL},
        {-1, PAWLI_END_LOCAL},
        {100000, PAWLI_END_LOCAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (pawli_transfer_end(rows[i].code) != rows[i].end)
            fail_msg("%d", rows[i].code);
    /* Nothing but success is done, and nothing but our own abort is untold. */
    for (int code = 1; code < CURL_LAST; code++) {
        assert_int_not_equal(pawli_transfer_end(code), PAWLI_END_DONE);
        if (code != CURLE_ABORTED_BY_CALLBACK)
            assert_int_not_equal(pawli_transfer_end(code), PAWLI_END_STOPPED);
    }
}

static void settings_are_checked_by_name(void **state)
{
    (void)state;
    static const struct {
        int64_t default_ms;
        int64_t max_ms;
        const char *named; /* NULL: good */
    } rows[] = {
        {0, 1, NULL},
        {1, 1, NULL},
        {5000, 3600000, NULL},
        {0, PAWL_DURATION_MAX_MS, NULL},
        {-1, 1, "pause_default_ms: -1; allowed: 0 to pause_max_ms, which is 1"},
        {2, 1, "pause_default_ms: 2; allowed: 0 to pause_max_ms, which is 1"},
        {0, 0, "pause_max_ms: 0; allowed: 1 to 315360000000"},
        {0, PAWL_DURATION_MAX_MS + 1, "pause_max_ms: 315360000001; allowed: 1 to 315360000000"},
        {PAWL_DEFAULT, 1, "pause_default_ms"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pawli_outcome_rules rules = {.pause_default_ms = rows[i].default_ms,
                                            .pause_max_ms = rows[i].max_ms};
        pawl_err err = {.text = ""};
        pawl_code rc = pawli_outcome_rules_check(&rules, &err);
        assert_int_equal(rc, rows[i].named == NULL ? PAWL_OK : PAWL_INVALID);
        if (rows[i].named != NULL && strstr(err.text, rows[i].named) == NULL)
            fail_msg("\"%s\" must say \"%s\"", err.text, rows[i].named);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_mean_what_they_say),
        cmocka_unit_test(retry_after_pauses_the_endpoint),
        cmocka_unit_test(without_whole_headers_the_end_decides),
        cmocka_unit_test(with_whole_headers_the_status_decides),
        cmocka_unit_test(results_of_libcurl_are_ends),
        cmocka_unit_test(settings_are_checked_by_name),
    };
    return cmocka_run_group_tests_name("webhook_outcome", tests, NULL, NULL);
}
