/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.c - the front of every store's endpoints: the verbs of pawl/endpoint.h.
 * Owns:  the checks of their arguments, the defaults of an endpoint, and what is said of one.
 * Never: lets a store see an argument that endpoint.h forbids; quotes a secret, a header's value or
 *        a URL; judges whether an address may be called (src/webhook does).
 */
#include "store/endpoint.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/headers.h"
#include "core/id.h"
#include "core/policy.h"
#include "core/topic.h"
#include "store/check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS      INT64_C(30000)
#define MAX_IN_FLIGHT   64
#define MAX_RETRIES     20
#define BACKOFF_BASE_MS INT64_C(5000)
#define BACKOFF_MAX_MS  (INT64_C(8) * 3600 * 1000)
#define TIMEOUT_MIN_MS  100
/* RES-6, of a delivery that may last its timeout, and be on its way to the wire before that. */
#define EXECUTION_LEASES   3
#define EXECUTION_SPARE_MS INT64_C(60000)
#define SECRET_MIN         38   /* 24 bytes in base64 behind whsec_ */
#define REPLAY_EVENTS      1000 /* looked at by one call of a replay, where nobody says */

/* ---- names */

const char *pawl_endpoint_ordering_name(pawl_endpoint_ordering ordering)
{
    static const char *const names[] = {"?", "none", "key"};
    return (size_t)ordering < sizeof(names) / sizeof(names[0]) ? names[ordering] : "?";
}

const char *pawl_endpoint_format_name(pawl_endpoint_format format)
{
    static const char *const names[] = {"?", "plain", "cloudevents-binary",
                                        "cloudevents-structured"};
    return (size_t)format < sizeof(names) / sizeof(names[0]) ? names[format] : "?";
}

/* ---- what is said of endpoints */

pawl_code pawli_endpoint_gone(const char *name, pawl_err *err)
{
    return pawli_fail(err, PAWL_GONE, "there is no endpoint %s", name);
}

pawl_code pawli_event_gone(const char *id, pawl_err *err)
{
    return pawli_fail(err, PAWL_GONE, "event %s is not, or no longer, kept", id);
}

pawl_code pawli_endpoint_exists(const char *name, pawl_err *err)
{
    return pawli_fail(err, PAWL_EXISTS, "there is an endpoint %s already", name);
}

pawl_code pawli_endpoint_has_jobs(const char *name, pawl_err *err)
{
    return pawli_fail(err, PAWL_HAS_JOBS,
                      "jobs are left in queue " PAWLI_ENDPOINT_QUEUE_PREFIX
                      "%s; let them end, or cancel them",
                      name);
}

pawl_code pawli_endpoints_full(pawl_err *err)
{
    return pawli_fail(err, PAWL_FULL, "there are %d endpoints, which is the most allowed",
                      PAWL_ENDPOINTS_MAX);
}

pawl_code pawli_endpoint_secrets_full(const char *name, pawl_err *err)
{
    return pawli_fail(err, PAWL_FULL,
                      "endpoint %s has %d secrets that still sign, which is the most allowed; "
                      "rotate without an overlap, or later",
                      name, PAWL_ENDPOINT_SECRETS_MAX);
}

pawl_code pawli_endpoint_same_secret(const char *name, pawl_err *err)
{
    return pawli_fail(err, PAWL_INVALID, "secret is one that endpoint %s has already", name);
}

pawl_code pawli_publish_too_wide(const char *type, pawl_err *err)
{
    return pawli_fail(err, PAWL_FULL, "event_type %s is wanted by more than %d endpoints", type,
                      PAWL_PUBLISH_ENDPOINTS_MAX);
}

pawl_code pawli_publish_too_many(pawl_err *err)
{
    return pawli_fail(err, PAWL_FULL,
                      "these events would make more than %d jobs; publish fewer at once",
                      PAWL_BATCH_MAX);
}

/* ---- checks */

static pawl_code check_store(const pawl_store *store, pawl_err *err)
{
    pawl_code rc = pawli_check_given("store", store, err);
    if (rc == PAWL_OK && store->ops->endpoint == NULL)
        rc = pawli_fail(err, PAWL_INVALID, "store is of kind %s, which has no endpoints",
                        store->ops->name);
    return rc;
}

/* The rest of a URL is judged where addresses are. What is before the path is shown in lists. */
static pawl_code check_url(const char *url, pawl_err *err)
{
    size_t len = pawli_text_length(url, PAWL_ENDPOINT_URL_MAX);
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    size_t host_len = scheme > 0 && len <= PAWL_ENDPOINT_URL_MAX ? strcspn(url + scheme, "/?#") : 0;
    if (host_len == 0)
        return pawli_fail(
            err, PAWL_INVALID, "url: %s; it must be http:// or https:// and a host, up to %d bytes",
            len > PAWL_ENDPOINT_URL_MAX ? "too long" : "not one", PAWL_ENDPOINT_URL_MAX);
    for (size_t i = 0; i < len; i++)
        if (url[i] <= ' ' || url[i] > '~' || url[i] == '\\')
            return pawli_fail(err, PAWL_INVALID,
                              "url: byte %zu is 0x%02x; it must be printable ASCII without blanks "
                              "and backslashes",
                              i + 1, (unsigned)(unsigned char)url[i]);
    if (memchr(url + scheme, '@', host_len) != NULL)
        return pawli_fail(err, PAWL_INVALID,
                          "url: has credentials (@ before the host); it must have none: use "
                          "headers");
    return PAWL_OK;
}

static pawl_code check_headers(const char *headers, pawl_err *err)
{
    pawl_code rc = pawli_endpoint_headers_check(headers, err);
    if (rc != PAWL_OK)
        return rc;
    size_t count = 0;
    pawl_header header;
    for (const char *at = headers; pawl_headers_next(&at, &header);)
        count++;
    if (count > PAWL_ENDPOINT_HEADERS_MAX)
        return pawli_fail(err, PAWL_INVALID, "headers: %zu of them; at most %d are allowed", count,
                          PAWL_ENDPOINT_HEADERS_MAX);
    if (strlen(headers) > PAWL_ENDPOINT_HEADERS_LEN_MAX)
        return pawli_fail(err, PAWL_INVALID, "headers: %zu bytes; at most %d are allowed",
                          strlen(headers), PAWL_ENDPOINT_HEADERS_LEN_MAX);
    return PAWL_OK;
}

static pawl_code check_statuses(const char *statuses, pawl_err *err)
{
    size_t len = pawli_text_length(statuses, PAWL_ENDPOINT_STATUSES_MAX);
    if (len <= PAWL_ENDPOINT_STATUSES_MAX && strspn(statuses, "0123456789,-") == len)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "fail_statuses: %s; it must be numbers and ranges with commas between them, "
                      "up to %d bytes",
                      len > PAWL_ENDPOINT_STATUSES_MAX ? "too long" : "not a list",
                      PAWL_ENDPOINT_STATUSES_MAX);
}

static pawl_code check_secret(const char *secret, pawl_err *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    pawl_code rc = pawli_check_given("secret", secret, err);
    if (rc != PAWL_OK)
        return rc;
    size_t len = pawli_text_length(secret, PAWL_ENDPOINT_SECRET_MAX);
    size_t head = strncmp(secret, "whsec_", 6) == 0 ? 6 : strncmp(secret, "whsk_", 5) == 0 ? 5 : 0;
    size_t body = head > 0 ? strspn(secret + head, letters) : 0;
    bool is_good = head > 0 && len >= SECRET_MIN && len <= PAWL_ENDPOINT_SECRET_MAX &&
                   strspn(secret + head + body, "=") == len - head - body && len - head - body <= 2;
    return is_good ? PAWL_OK
                   : pawli_fail(err, PAWL_INVALID,
                                "secret: not one; it must be whsec_ or whsk_ and %d to %d bytes of "
                                "base64 in all",
                                SECRET_MIN, PAWL_ENDPOINT_SECRET_MAX);
}

static pawl_code check_texts(const pawl_endpoint_settings *settings, pawl_err *err)
{
    pawl_code rc = PAWL_OK;
    if (settings->url != NULL)
        rc = check_url(settings->url, err);
    if (rc == PAWL_OK && settings->topics != NULL)
        rc = pawli_topics_check(settings->topics, err);
    if (rc == PAWL_OK && settings->headers != NULL)
        rc = check_headers(settings->headers, err);
    if (rc == PAWL_OK && settings->fail_statuses != NULL)
        rc = check_statuses(settings->fail_statuses, err);
    return rc;
}

static pawl_code check_numbers(const pawl_endpoint_settings *settings, pawl_err *err)
{
    pawl_code rc = PAWL_OK;
    if (settings->timeout_ms != PAWL_DEFAULT)
        rc = pawli_check_range("timeout_ms", settings->timeout_ms,
                               (struct pawli_range){TIMEOUT_MIN_MS, PAWL_ENDPOINT_TIMEOUT_MAX_MS},
                               err);
    if (rc == PAWL_OK && settings->rate_per_minute != PAWL_DEFAULT)
        rc = pawli_check_range("rate_per_minute", settings->rate_per_minute,
                               (struct pawli_range){0, PAWL_ENDPOINT_RATE_MAX}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("ordering", (int64_t)settings->ordering,
                               (struct pawli_range){PAWL_ORDERING_DEFAULT, PAWL_ORDERING_KEY}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range(
            "format", (int64_t)settings->format,
            (struct pawli_range){PAWL_FORMAT_DEFAULT, PAWL_FORMAT_CLOUD_STRUCTURED}, err);
    return rc;
}

void pawli_endpoint_queue_settings(const pawl_endpoint_settings *settings, int64_t timeout_ms,
                                   pawl_queue_settings *queue)
{
    if (settings->lease_ms != PAWL_DEFAULT)
        queue->lease_ms = settings->lease_ms;
    if (settings->max_in_flight != PAWL_DEFAULT)
        queue->max_in_flight = settings->max_in_flight;
    if (settings->max_retries != PAWL_DEFAULT)
        queue->max_retries = settings->max_retries;
    if (settings->backoff_base_ms != PAWL_DEFAULT)
        queue->backoff_base_ms = settings->backoff_base_ms;
    if (settings->backoff_max_ms != PAWL_DEFAULT)
        queue->backoff_max_ms = settings->backoff_max_ms;
    if (settings->timeout_ms == PAWL_DEFAULT && settings->lease_ms == PAWL_DEFAULT)
        return; /* whatever it is, somebody chose it */
    int64_t longest_ms = queue->execution_timeout_ms != PAWL_DEFAULT
                             ? queue->execution_timeout_ms
                             : EXECUTION_LEASES * queue->lease_ms;
    if (longest_ms < timeout_ms + EXECUTION_SPARE_MS)
        queue->execution_timeout_ms = timeout_ms + EXECUTION_SPARE_MS;
}

static pawl_code check_settings(const pawl_store *store, const pawl_endpoint_settings *settings,
                                pawl_err *err)
{
    pawl_code rc = pawli_check_given("settings", settings, err);
    if (rc == PAWL_OK)
        rc = check_texts(settings, err);
    if (rc == PAWL_OK)
        rc = check_numbers(settings, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_queue_settings queue;
    pawl_queue_settings_init(&queue);
    pawli_endpoint_queue_settings(settings, 0, &queue); /* what it has is not known here */
    return pawli_check_queue_set(&store->limits, &queue, err);
}

static pawl_code check_named(const pawl_store *store, const char *name, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    return rc == PAWL_OK ? pawli_endpoint_name_check("name", name, err) : rc;
}

/* ---- adding and changing */

void pawl_endpoint_settings_init(pawl_endpoint_settings *settings)
{
    if (settings == NULL)
        return;
    *settings = (pawl_endpoint_settings){
        .timeout_ms = PAWL_DEFAULT,
        .rate_per_minute = PAWL_DEFAULT,
        .lease_ms = PAWL_DEFAULT,
        .max_in_flight = PAWL_DEFAULT,
        .max_retries = PAWL_DEFAULT,
        .backoff_base_ms = PAWL_DEFAULT,
        .backoff_max_ms = PAWL_DEFAULT,
    };
}

static int64_t either(int64_t value, int64_t otherwise)
{
    return value != PAWL_DEFAULT ? value : otherwise;
}

/* Put the defaults of an endpoint where the caller has left them. */
static void fill(const pawl_store *store, pawl_endpoint_settings *settings)
{
    int64_t lease_ms = 0;
    pawl_code rc = pawl_lease_profile_ms(PAWL_LEASE_EXTERNAL, &lease_ms, NULL);
    assert(rc == PAWL_OK);
    (void)rc; /* used by the assert only */
    int64_t shards = store->limits.shards;
    settings->headers = settings->headers != NULL ? settings->headers : "";
    settings->fail_statuses = settings->fail_statuses != NULL ? settings->fail_statuses : "";
    settings->timeout_ms = either(settings->timeout_ms, TIMEOUT_MS);
    settings->rate_per_minute = either(settings->rate_per_minute, 0);
    if (settings->ordering == PAWL_ORDERING_DEFAULT)
        settings->ordering = PAWL_ORDERING_NONE;
    if (settings->format == PAWL_FORMAT_DEFAULT)
        settings->format = PAWL_FORMAT_PLAIN;
    settings->lease_ms = either(settings->lease_ms, lease_ms);
    settings->max_in_flight = either(settings->max_in_flight,
                                     MAX_IN_FLIGHT > shards ? MAX_IN_FLIGHT : shards);
    settings->max_retries = either(settings->max_retries, MAX_RETRIES);
    settings->backoff_base_ms = either(settings->backoff_base_ms, BACKOFF_BASE_MS);
    settings->backoff_max_ms = either(settings->backoff_max_ms, BACKOFF_MAX_MS);
}

pawl_code pawl_endpoint_add(pawl_store *store, const pawl_endpoint_add_args *args, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_endpoint_name_check("name", args->name, err);
    if (rc == PAWL_OK)
        rc = check_secret(args->secret, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("settings", args->settings, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("url", args->settings->url, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("topics", args->settings->topics, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_endpoint_settings settings = *args->settings;
    fill(store, &settings);
    rc = check_settings(store, &settings, err);
    pawl_endpoint_add_args filled = {
        .name = args->name, .secret = args->secret, .settings = &settings};
    return rc == PAWL_OK ? store->ops->endpoint->add(store, &filled, err) : rc;
}

pawl_code pawl_endpoint_set(pawl_store *store, const char *name,
                            const pawl_endpoint_settings *settings, pawl_err *err)
{
    pawl_code rc = check_named(store, name, err);
    if (rc == PAWL_OK)
        rc = check_settings(store, settings, err);
    return rc == PAWL_OK ? store->ops->endpoint->set(store, name, settings, err) : rc;
}

pawl_code pawl_endpoint_rotate(pawl_store *store, const pawl_endpoint_rotate_args *args,
                               pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_endpoint_name_check("name", args->name, err);
    if (rc == PAWL_OK)
        rc = check_secret(args->secret, err);
    if (rc == PAWL_OK)
        rc = pawli_check_duration("overlap_ms", args->overlap_ms, 0, err);
    return rc == PAWL_OK ? store->ops->endpoint->rotate(store, args, err) : rc;
}

void pawli_endpoint_secrets_prune(pawl_endpoint_credentials *credentials, pawl_wall now)
{
    size_t kept = 0;
    for (size_t i = 0; i < credentials->secrets_count; i++) {
        const pawl_endpoint_secret *secret = &credentials->secrets[i];
        if (secret->until.us == 0 || pawli_wall_is_before(now, secret->until))
            credentials->secrets[kept++] = *secret;
    }
    explicit_bzero(&credentials->secrets[kept],
                   (credentials->secrets_count - kept) * sizeof(credentials->secrets[0]));
    credentials->secrets_count = kept;
}

pawl_code pawli_endpoint_rotate(pawl_endpoint_credentials *credentials,
                                const pawl_endpoint_rotate_args *args, pawl_wall now, pawl_err *err)
{
    pawl_wall until = pawli_wall_add_ms(now, args->overlap_ms);
    pawl_endpoint_credentials next = *credentials;
    pawl_code rc = PAWL_OK;
    pawli_endpoint_secrets_prune(&next, now);
    for (size_t i = 0; i < next.secrets_count; i++) {
        pawl_endpoint_secret *secret = &next.secrets[i];
        if (strcmp(secret->text, args->secret) == 0)
            rc = pawli_endpoint_same_secret(args->name, err);
        if (secret->until.us == 0 || pawli_wall_is_before(until, secret->until))
            secret->until = until;
    }
    pawli_endpoint_secrets_prune(&next, now); /* without an overlap, all of them */
    if (rc == PAWL_OK && next.secrets_count == PAWL_ENDPOINT_SECRETS_MAX)
        rc = pawli_endpoint_secrets_full(args->name, err);
    if (rc == PAWL_OK) {
        memmove(&next.secrets[1], &next.secrets[0], next.secrets_count * sizeof(next.secrets[0]));
        next.secrets[0].until.us = 0;
        (void)pawli_text_copy(next.secrets[0].text, sizeof(next.secrets[0].text),
                              args->secret); /* checked: it fits */
        next.secrets_count++;
        *credentials = next;
    }
    explicit_bzero(&next, sizeof(next));
    return rc;
}

static pawl_code check_reason(const char *reason, pawl_err *err)
{
    if (reason == NULL)
        return PAWL_OK;
    if (pawli_text_length(reason, PAWL_ENDPOINT_REASON_MAX) > PAWL_ENDPOINT_REASON_MAX)
        return pawli_fail(err, PAWL_INVALID, "reason is longer than %d bytes",
                          PAWL_ENDPOINT_REASON_MAX);
    size_t good = pawli_text_good(reason, "");
    if (reason[good] == '\0')
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "reason is bad after %zu bytes (0x%02x); it must be UTF-8 without control "
                      "characters",
                      good, (unsigned)(unsigned char)reason[good]);
}

static pawl_code turn_endpoint(pawl_store *store, const pawl_endpoint_switch *args, bool is_enabled,
                               pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_endpoint_name_check("name", args->name, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("by", args->by, err);
    if (rc == PAWL_OK)
        rc = check_reason(args->reason, err);
    struct pawli_endpoint_turn turn = {args, is_enabled};
    return rc == PAWL_OK ? store->ops->endpoint->turn(store, &turn, err) : rc;
}

pawl_code pawl_endpoint_disable(pawl_store *store, const pawl_endpoint_switch *args, pawl_err *err)
{
    return turn_endpoint(store, args, false, err);
}

pawl_code pawl_endpoint_enable(pawl_store *store, const pawl_endpoint_switch *args, pawl_err *err)
{
    return turn_endpoint(store, args, true, err);
}

void pawl_endpoint_mark_init(pawl_endpoint_mark_args *args)
{
    if (args != NULL)
        *args = (pawl_endpoint_mark_args){.disable_after_ms = PAWL_FOREVER};
}

pawl_code pawl_endpoint_mark(pawl_store *store, const pawl_endpoint_mark_args *args,
                             pawl_endpoint_marked *ret_marked, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_endpoint_name_check("name", args->name, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("by", args->by, err);
    if (rc == PAWL_OK)
        rc = check_reason(args->reason, err);
    if (rc == PAWL_OK && args->disable_after_ms != PAWL_FOREVER)
        rc = pawli_check_duration("disable_after_ms", args->disable_after_ms, 1, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_marked", ret_marked, err);
    return rc == PAWL_OK ? store->ops->endpoint->mark(store, args, ret_marked, err) : rc;
}

void pawli_endpoint_mark(pawl_endpoint *row, const pawl_endpoint_mark_args *args, pawl_wall now)
{
    if (!args->is_failing)
        row->failing_since.us = 0;
    else if (row->failing_since.us == 0)
        row->failing_since = now;
}

bool pawli_endpoint_is_hopeless(const pawl_endpoint *row, const pawl_endpoint_mark_args *args,
                                pawl_wall now)
{
    return args->is_failing && args->disable_after_ms != PAWL_FOREVER &&
           pawli_wall_diff_ms(row->failing_since, now) >= args->disable_after_ms;
}

pawl_code pawl_endpoint_remove(pawl_store *store, const char *name, pawl_err *err)
{
    pawl_code rc = check_named(store, name, err);
    return rc == PAWL_OK ? store->ops->endpoint->remove(store, name, err) : rc;
}

/* ---- looking */

pawl_code pawl_endpoint_get(pawl_store *store, const char *name, pawl_endpoint *ret_endpoint,
                            pawl_err *err)
{
    pawl_code rc = check_named(store, name, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_endpoint", ret_endpoint, err);
    return rc == PAWL_OK ? store->ops->endpoint->get(store, name, ret_endpoint, err) : rc;
}

pawl_code pawl_endpoint_list(pawl_store *store, const char *after, pawl_endpoint *ret_rows,
                             size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_page page = {PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count};
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK && after != NULL)
        rc = pawli_endpoint_name_check("after", after, err);
    if (rc == PAWL_OK)
        rc = pawli_check_page(&page, err);
    if (rc == PAWL_OK)
        rc = store->ops->endpoint->list(store, after, ret_rows, rows_max, ret_count, err);
    return rc;
}

pawl_code pawl_endpoint_credentials_get(pawl_store *store, const char *name,
                                        pawl_endpoint_credentials *ret_credentials, pawl_err *err)
{
    pawl_code rc = check_named(store, name, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_credentials", ret_credentials, err);
    return rc == PAWL_OK ? store->ops->endpoint->credentials(store, name, ret_credentials, err)
                         : rc;
}

void pawl_endpoint_credentials_clear(pawl_endpoint_credentials *credentials)
{
    if (credentials != NULL)
        explicit_bzero(credentials, sizeof(*credentials));
}

void pawli_endpoint_header_names(const char *headers, char names[PAWL_ENDPOINT_HEADERS_LEN_MAX + 1])
{
    size_t at = 0;
    pawl_header header;
    for (const char *rest = headers; pawl_headers_next(&rest, &header);) {
        assert(at + header.name_len + 1 <= PAWL_ENDPOINT_HEADERS_LEN_MAX);
        if (at > 0)
            names[at++] = ',';
        memcpy(names + at, header.name, header.name_len);
        at += header.name_len;
    }
    names[at] = '\0';
}

/* ---- publishing */

void pawl_publish_init(pawl_publish_row *row)
{
    if (row != NULL)
        *row = (pawl_publish_row){.keep_ms = PAWL_DEFAULT};
}

void pawli_published(const struct pawli_publish_event *event, int64_t endpoints, int64_t jobs,
                     pawl_published *ret_result)
{
    assert(jobs >= 0 && jobs <= endpoints);
    *ret_result = (pawl_published){
        .code = endpoints > 0 && jobs == 0 ? PAWL_EXISTS : PAWL_OK,
        .endpoints = endpoints,
        .jobs = jobs,
    };
    memcpy(ret_result->id, event->id, sizeof(ret_result->id));
}

static pawl_code check_publish_row(const pawl_store *store, const pawl_publish_row *row,
                                   pawl_err *err)
{
    pawl_code rc = pawli_topic_check(row->type, err);
    if (rc == PAWL_OK && row->id != NULL)
        rc = pawli_event_id_check(row->id, err);
    if (rc == PAWL_OK)
        rc = pawli_event_headers_check(row->headers, err);
    /* Later ones have no printed form: no endpoint could be told. */
    if (rc == PAWL_OK && (row->time.us < 0 || row->time.us > PAWLI_EVENT_TIME_MAX_US))
        rc = pawli_fail(err, PAWL_INVALID,
                        "time is %lld us; it must be from 1970 to the year 9999, or 0 for none",
                        (long long)row->time.us);
    if (rc == PAWL_OK && row->keep_ms != PAWL_DEFAULT)
        rc = pawli_check_duration("keep_ms", row->keep_ms, 0, err);
    if (rc != PAWL_OK)
        return rc;
    /* What else it must be is what a job must be. */
    pawl_enqueue_row job;
    pawl_enqueue_init(&job);
    job.queue = PAWLI_ENDPOINT_QUEUE_PREFIX;
    job.payload = row->payload;
    job.payload_len = row->payload_len;
    job.ordering_key = row->ordering_key;
    return pawli_check_enqueue(&store->limits, &job, 1, err);
}

/* An id that nobody has: a UUID, whose shard means nothing. */
static void mint_event_id(const pawl_store *store, struct pawli_publish_event *event)
{
    struct pawli_shard_key key = {.queue = PAWLI_ENDPOINT_QUEUE_PREFIX, .key = NULL};
    pawl_id id = pawli_minter_next(store->limits.minter, &key);
    event->is_minted = true;
    (void)pawl_id_format(&id, event->id);
}

/* Where the headers of each event begin is known once all of them are put together. */
struct publish {
    struct pawli_publish_event *events;
    size_t *headers_at;
    struct pawli_buffer headers;
};

static pawl_code prepare_event(const pawl_store *store, const pawl_publish_row *row,
                               struct publish *publish, size_t at, pawl_err *err)
{
    struct pawli_publish_event *event = &publish->events[at];
    pawl_code rc = check_publish_row(store, row, err);
    if (rc != PAWL_OK)
        return rc;
    event->type = row->type;
    event->payload = row->payload;
    event->payload_len = row->payload_len;
    event->keep_ms = either(row->keep_ms, PAWL_EVENT_KEEP_MS);
    event->ordering_key = row->ordering_key != NULL && row->ordering_key[0] != '\0'
                              ? row->ordering_key
                              : NULL;
    if (row->id != NULL)
        (void)pawli_text_copy(event->id, sizeof(event->id), row->id); /* checked: it fits */
    else
        mint_event_id(store, event);
    publish->headers_at[at] = publish->headers.len;
    rc = pawli_event_headers_put(row, event->id, &publish->headers, err);
    if (rc != PAWL_OK)
        return rc;
    const char *headers = (const char *)publish->headers.bytes + publish->headers_at[at];
    pawl_err inner;
    if (pawli_headers_check(headers, &inner) != PAWL_OK)
        rc = pawli_fail(err, PAWL_INVALID, "with what tells of the event, %s", inner.text);
    return rc;
}

static pawl_code prepare(const pawl_store *store, const pawl_publish_row *rows, size_t rows_count,
                         struct publish *publish, pawl_err *err)
{
    publish->events = calloc(rows_count, sizeof(*publish->events));
    publish->headers_at = calloc(rows_count, sizeof(*publish->headers_at));
    if (publish->events == NULL || publish->headers_at == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    size_t payloads_len = 0;
    for (size_t i = 0; i < rows_count; i++) {
        pawl_err inner;
        pawl_code rc = prepare_event(store, &rows[i], publish, i, &inner);
        if (rc == PAWL_INVALID)
            return pawli_fail(err, rc, "row %zu: %s", i, inner.text);
        if (rc != PAWL_OK)
            return pawli_fail(err, rc, "%s", inner.text);
        payloads_len += rows[i].payload_len; /* checked: each of them is bounded */
    }
    if (rows_count > 1 && payloads_len + publish->headers.len > PAWL_PUBLISH_BYTES_MAX)
        return pawli_fail(err, PAWL_FULL,
                          "these events have more than %d bytes; publish fewer at "
                          "once",
                          PAWL_PUBLISH_BYTES_MAX);
    for (size_t i = 0; i < rows_count; i++)
        publish->events[i].headers = (const char *)publish->headers.bytes + publish->headers_at[i];
    return PAWL_OK;
}

pawl_code pawl_publish(pawl_store *store, const pawl_publish_row *rows, size_t rows_count,
                       pawl_published *ret_results, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("rows", rows, err);
    if (rc == PAWL_OK)
        rc = pawli_check_batch("rows_count", rows_count, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_results", ret_results, err);
    if (rc != PAWL_OK)
        return rc;
    struct publish publish = {.events = NULL};
    rc = prepare(store, rows, rows_count, &publish, err);
    if (rc == PAWL_OK)
        rc = store->ops->endpoint->publish(store, publish.events, rows_count, ret_results, err);
    pawli_buffer_clear(&publish.headers);
    free(publish.headers_at);
    free(publish.events);
    return rc;
}

/* ---- replaying */

void pawl_replay_init(pawl_replay_args *args)
{
    if (args != NULL)
        *args = (pawl_replay_args){.events_max = REPLAY_EVENTS};
}

static pawl_code check_replay(const pawl_replay_args *args, pawl_err *err)
{
    pawl_err inner;
    pawl_code rc = pawli_endpoint_name_check("name", args->name, err);
    if (rc == PAWL_OK && args->event != NULL)
        rc = pawli_event_id_check(args->event, err);
    if (rc == PAWL_OK && args->as != NULL && pawli_event_id_check(args->as, &inner) != PAWL_OK)
        rc = pawli_fail(err, PAWL_INVALID, "as: %s", inner.text);
    if (rc == PAWL_OK && (args->since.us < 0 || args->until.us < 0))
        rc = pawli_fail(err, PAWL_INVALID, "since or until is before 1970; 0 means none");
    if (rc == PAWL_OK)
        rc = pawli_check_range("events_max", args->events_max,
                               (struct pawli_range){1, PAWL_BATCH_MAX}, err);
    return rc;
}

pawl_code pawl_endpoint_replay(pawl_store *store, const pawl_replay_args *args,
                               pawl_replayed *ret_replayed, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = check_replay(args, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_replayed", ret_replayed, err);
    return rc == PAWL_OK ? store->ops->endpoint->replay(store, args, ret_replayed, err) : rc;
}

pawl_replay_place pawli_replay_begin(const pawl_replay_args *args)
{
    pawl_replay_place before = {.at = {args->since.us - 1}, .seq = INT64_MAX};
    return args->after.at.us > before.at.us ? args->after : before;
}

bool pawli_replay_wants(const struct pawli_replay_target *target,
                        const struct pawli_kept_event *event)
{
    const pawl_replay_args *args = target->args;
    if (args->event != NULL)
        return strcmp(args->event, event->id) == 0;
    return pawli_topics_match(target->topics, event->type);
}

pawl_code pawli_replay_row(const struct pawli_replay_target *target,
                           const struct pawli_kept_event *event, struct pawli_buffer *headers,
                           pawl_enqueue_row *ret_row, pawl_err *err)
{
    struct pawli_publish_event publish = {.is_minted = event->is_minted,
                                          .replay = target->args->as};
    headers->len = 0;
    pawl_code rc = pawli_event_headers_again(event->headers, event->place.at, headers, err);
    if (rc != PAWL_OK)
        return rc;
    (void)pawli_text_copy(publish.id, sizeof(publish.id), event->id); /* the same size */
    pawl_enqueue_init(ret_row);
    ret_row->queue = target->queue;
    ret_row->payload = event->payload;
    ret_row->payload_len = event->payload_len;
    ret_row->headers = (const char *)headers->bytes;
    ret_row->ordering_key = target->is_ordered ? event->ordering_key : NULL;
    ret_row->id = pawli_event_job_id(&publish, ret_row, target->shards);
    return PAWL_OK;
}
