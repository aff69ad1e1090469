/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * absent.c - stands in for the server where this build has no HTTP library.
 * Owns:  what is said then.
 * Never: listens.
 */
#include "server/metrics_http.h"

#include "base/error.h"

pawl_code pawli_metrics_http_start(pawl_metrics *metrics, const char *address,
                                   struct pawli_metrics_http **ret_http, pawl_err *err)
{
    (void)metrics;
    (void)address;
    (void)ret_http;
    return pawli_fail(err, PAWL_DOWN,
                      "this build serves no HTTP: it was made without libmicrohttpd");
}

const char *pawli_metrics_http_address(const struct pawli_metrics_http *http)
{
    (void)http;
    return "";
}

void pawli_metrics_http_stop(struct pawli_metrics_http *http)
{
    (void)http;
}
