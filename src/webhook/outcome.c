/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * outcome.c - what a try to deliver has come to.
 * Owns:  the meaning of statuses and of libcurl's results; the reasons that the ledger gets.
 * Never: looks at a body; computes a backoff; reads a clock; records anything.
 */
#include "webhook/outcome.h"

#include "base/error.h"
#include "base/text.h"
#include "webhook/retry_after.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>

#define PAUSE_DEFAULT_MS INT64_C(5000)
#define PAUSE_MAX_MS     INT64_C(3600000)

static const char *const end_reasons[PAWLI_ENDS] = {
    [PAWLI_END_DONE] = "HEADERS-CUT", /* done, and all the same without whole headers */
    [PAWLI_END_DNS] = "DNS",
    [PAWLI_END_CONNECT] = "CONNECT",
    [PAWLI_END_TLS] = "TLS",
    [PAWLI_END_TIMEOUT] = "TIMEOUT",
    [PAWLI_END_RESET] = "RESET",
    [PAWLI_END_PROTOCOL] = "PROTOCOL",
    [PAWLI_END_TOO_LARGE] = "TOO-LARGE",
    [PAWLI_END_ADDRESS] = "ADDRESS",
    [PAWLI_END_STOPPED] = "STOPPED",
    [PAWLI_END_LOCAL] = "LOCAL",
};

enum pawli_transfer_end pawli_transfer_end(int curl_code)
{
    switch (curl_code) {
    case CURLE_OK:
        return PAWLI_END_DONE;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return PAWLI_END_DNS;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_INTERFACE_FAILED:
    case CURLE_NO_CONNECTION_AVAILABLE:
        return PAWLI_END_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED:
        return PAWLI_END_TLS;
    case CURLE_OPERATION_TIMEDOUT:
        return PAWLI_END_TIMEOUT;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_SHUTDOWN_FAILED:
    case CURLE_AGAIN:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP3:
    case CURLE_QUIC_CONNECT_ERROR:
        return PAWLI_END_RESET;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_HTTP_RETURNED_ERROR:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_REMOTE_ACCESS_DENIED:
        return PAWLI_END_PROTOCOL;
    case CURLE_WRITE_ERROR:
    case CURLE_FILESIZE_EXCEEDED:
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:
#endif
        return PAWLI_END_TOO_LARGE;
    case CURLE_ABORTED_BY_CALLBACK:
        return PAWLI_END_STOPPED;
    default:
        return PAWLI_END_LOCAL;
    }
}

void pawli_outcome_rules_init(struct pawli_outcome_rules *rules)
{
    assert(rules != NULL);
    *rules = (struct pawli_outcome_rules){
        .pause_default_ms = PAUSE_DEFAULT_MS,
        .pause_max_ms = PAUSE_MAX_MS,
    };
}

pawl_code pawli_outcome_rules_check(const struct pawli_outcome_rules *rules, pawl_err *err)
{
    assert(rules != NULL);

    if (rules->pause_max_ms < 1 || rules->pause_max_ms > PAWL_DURATION_MAX_MS)
        return pawli_fail(err, PAWL_INVALID, "pause_max_ms: %lld; allowed: 1 to %lld",
                          (long long)rules->pause_max_ms, (long long)PAWL_DURATION_MAX_MS);
    if (rules->pause_default_ms < 0 || rules->pause_default_ms > rules->pause_max_ms)
        return pawli_fail(err, PAWL_INVALID,
                          "pause_default_ms: %lld; allowed: 0 to pause_max_ms, which is %lld",
                          (long long)rules->pause_default_ms, (long long)rules->pause_max_ms);
    return PAWL_OK;
}

static enum pawli_delivery delivery_of(int status, const struct pawli_outcome_rules *rules)
{
    if (status >= 200 && status <= 299)
        return PAWLI_DELIVERED;
    if (status == 410)
        return PAWLI_DELIVERY_FAILED;
    if (!pawli_status_is_fixed(status) && pawli_status_set_has(&rules->fail_at_once, status))
        return PAWLI_DELIVERY_FAILED;
    return PAWLI_DELIVERY_RETRY;
}

struct pawli_outcome pawli_outcome_of(const struct pawli_transfer *transfer,
                                      const struct pawli_outcome_rules *rules, pawl_wall now)
{
    assert(transfer != NULL && rules != NULL);
    assert(transfer->end < PAWLI_ENDS);
    assert(pawli_outcome_rules_check(rules, NULL) == PAWL_OK);

    struct pawli_outcome outcome = {.delivery = PAWLI_DELIVERY_RETRY};
    if (transfer->end == PAWLI_END_STOPPED || !transfer->has_whole_headers) {
        if (transfer->end == PAWLI_END_STOPPED)
            outcome.delivery = PAWLI_DELIVERY_UNTOLD;
        (void)pawli_text_copy(outcome.reason, sizeof(outcome.reason), end_reasons[transfer->end]);
        return outcome;
    }
    if (transfer->status < 200 || transfer->status > 599) {
        (void)pawli_text_copy(outcome.reason, sizeof(outcome.reason), "BAD-STATUS");
        return outcome;
    }
    int status = (int)transfer->status;
    outcome.delivery = delivery_of(status, rules);
    outcome.is_endpoint_gone = status == 410;
    if ((status == 429 || status == 503) &&
        !pawli_retry_after_read(transfer->retry_after, now, rules->pause_max_ms, &outcome.pause_ms))
        outcome.pause_ms = rules->pause_default_ms;
    (void)snprintf(outcome.reason, sizeof(outcome.reason), "HTTP-%d", status);
    return outcome;
}
