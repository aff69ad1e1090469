/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics_http.c - serves the figures of a process over HTTP.
 * Owns:  what is answered at which path to which method; the bounds on those who ask.
 * Never: reads what a client sends beyond its request; asks a store; waits for a client: one that
 *        is slow holds up nobody, and is cut off.
 */
#include "server/metrics_http.h"

#include "base/error.h"
#include "server/listen.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH            "/metrics"
#define CONTENT_TYPE    "text/plain; version=0.0.4; charset=utf-8"
#define CONNECTIONS_MAX 128   /* at once; others wait until one has ended */
#define IDLE_SECONDS    10    /* a client that neither sends nor takes anything is cut off */
#define MEMORY_MAX      16384 /* for a request */

struct pawli_metrics_http {
    pawl_metrics *metrics;
    struct pawli_listener listener;
    struct MHD_Daemon *daemon;
};

/* Queue an answer, which it takes. NULL, or one that cannot be queued, ends the connection. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response, const char *type)
{
    enum MHD_Result result = MHD_NO;
    if (response == NULL)
        return MHD_NO;
    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
        (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
         MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
        result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_plain(struct MHD_Connection *connection, unsigned status,
                                    const char *text)
{
    return answer(connection, status,
                  MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                  MHD_RESPMEM_PERSISTENT),
                  "text/plain; charset=utf-8");
}

static enum MHD_Result answer_metrics(const struct pawli_metrics_http *http,
                                      struct MHD_Connection *connection)
{
    char *text = NULL;
    size_t len = 0;
    if (pawl_metrics_text(http->metrics, &text, &len, NULL) != PAWL_OK)
        return answer_plain(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "memory ran out\n");
    struct MHD_Response *response = MHD_create_response_from_buffer(len, text,
                                                                    MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(text);
    return answer(connection, MHD_HTTP_OK, response, CONTENT_TYPE);
}

/*
 * Called when the head of a request is there, and again for each part of a body and at its end.
 * What is refused is refused at once, which ends the connection; what is answered waits for the
 * end, so that the connection can be used again. Bodies are not looked at.
 */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **state)
{
    (void)version;
    (void)upload;
    if (strcmp(url, PATH) != 0)
        return answer_plain(connection, MHD_HTTP_NOT_FOUND, "there is only " PATH "\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer_plain(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    bool is_begun = *state != NULL;
    *state = user;
    if (is_begun && *upload_len == 0)
        return answer_metrics(user, connection);
    *upload_len = 0;
    return MHD_YES;
}

static struct MHD_Daemon *start_daemon(struct pawli_metrics_http *http)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all); /* cannot fail */
    /* Its thread must take no signal of the process. */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return NULL;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_SUPPRESS_DATE_NO_CLOCK, 0, NULL,
        NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, http->listener.fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX,
        MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* cannot fail: it was so before */
    return daemon;
}

pawl_code pawli_metrics_http_start(pawl_metrics *metrics, const char *address,
                                   struct pawli_metrics_http **ret_http, pawl_err *err)
{
    struct pawli_metrics_http *http = calloc(1, sizeof(*http));
    if (http == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    http->metrics = metrics;
    pawl_code code = pawli_listen(address, &http->listener, err);
    if (code != PAWL_OK)
        goto no_socket;
    http->daemon = start_daemon(http);
    if (http->daemon == NULL) {
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
        goto no_daemon;
    }
    *ret_http = http;
    return PAWL_OK;

no_daemon:
    pawli_listener_forget(&http->listener);
    (void)close(http->listener.fd); /* nobody has connected */
no_socket:
    free(http);
    return code;
}

const char *pawli_metrics_http_address(const struct pawli_metrics_http *http)
{
    return http->listener.address;
}

void pawli_metrics_http_stop(struct pawli_metrics_http *http)
{
    if (http == NULL)
        return;
    MHD_stop_daemon(http->daemon); /* closes the socket, too */
    pawli_listener_forget(&http->listener);
    free(http);
}
