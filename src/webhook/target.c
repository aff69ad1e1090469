/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * target.c - which URLs may be called.
 * Owns:  the rules on scheme, host, port and spelling; the normal form of a URL.
 * Never: reads a URL differently from libcurl, which will call it; lets through a host that is
 *        neither a plain name nor an address in its usual spelling; resolves a name; quotes more
 *        than host and port.
 */
#include "webhook/target.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#define HOST_SHOWN 80 /* bytes of a host that an error quotes */

/* ---- what can be seen in the text, before libcurl forgives it */

static const char *after_scheme(const char *url, bool *ret_is_https)
{
    *ret_is_https = strncasecmp(url, "https://", 8) == 0;
    if (*ret_is_https)
        return url + 8;
    return strncasecmp(url, "http://", 7) == 0 ? url + 7 : NULL;
}

static pawl_code check_bytes(const char *url, pawl_err *err)
{
    size_t len = pawli_text_length(url, PAWLI_URL_MAX);
    if (len == 0 || len > PAWLI_URL_MAX)
        return pawli_fail(err, PAWL_INVALID, "url: %s; allowed: 1 to %d bytes",
                          len == 0 ? "empty" : "too long", PAWLI_URL_MAX);
    for (size_t i = 0; i < len; i++)
        if (url[i] <= ' ' || url[i] > '~' || url[i] == '\\')
            return pawli_fail(err, PAWL_INVALID,
                              "url: byte %zu is not allowed; allowed: printable ASCII without "
                              "blanks and backslashes (hosts as xn--..., paths as %%..)",
                              i + 1);
    if (strchr(url, '#') != NULL)
        return pawli_fail(err, PAWL_INVALID,
                          "url: has a fragment (#), which is never sent; allowed: none");
    return PAWL_OK;
}

/* Between scheme and path: host and port, and nothing else. */
static pawl_code check_authority(const char *authority, pawl_err *err)
{
    size_t len = strcspn(authority, "/?");
    if (len == 0 || authority[0] == ':')
        return pawli_fail(err, PAWL_INVALID,
                          "url: has no host; allowed: https://host/path, the host a name or an "
                          "address");
    if (memchr(authority, '@', len) != NULL)
        return pawli_fail(err, PAWL_INVALID,
                          "url: has credentials (@ before the host); allowed: none, use headers");
    if (memchr(authority, '%', len) != NULL)
        return pawli_fail(err, PAWL_INVALID,
                          "url: host with %%, an encoding or a zone; allowed: a name or an address "
                          "as they are");
    if (authority[len - 1] == ':')
        return pawli_fail(err, PAWL_INVALID,
                          "url: port is empty; allowed: a number behind the colon, or no colon");
    return PAWL_OK;
}

static pawl_code check_text(const char *url, const struct pawli_target_rules *rules,
                            bool *ret_is_https, pawl_err *err)
{
    pawl_code rc = check_bytes(url, err);
    if (rc != PAWL_OK)
        return rc;
    const char *authority = after_scheme(url, ret_is_https);
    if (authority == NULL || (!*ret_is_https && !rules->is_http_allowed))
        return pawli_fail(err, PAWL_INVALID, "url: scheme is not allowed; allowed: %s",
                          rules->is_http_allowed ? "https:// and http://" : "https://");
    return check_authority(authority, err);
}

/* ---- what libcurl makes of it */

static pawl_code curl_failed(CURLUcode code, pawl_err *err)
{
    if (code == CURLUE_OUT_OF_MEMORY)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    return pawli_fail(err, PAWL_INVALID,
                      "url: cannot be read (%s); allowed: https://host:port/path?query",
                      curl_url_strerror(code));
}

static bool is_local_name(const char *host)
{
    static const char local[] = "localhost";
    size_t len = strlen(host);
    size_t local_len = sizeof(local) - 1;
    return len >= local_len && strcmp(host + len - local_len, local) == 0 &&
           (len == local_len || host[len - local_len - 1] == '.');
}

static pawl_code refuse_kind(enum pawli_address_kind kind, const char *host, pawl_err *err)
{
    return pawli_fail(err, PAWL_INVALID,
                      "url: host \"%.*s\" is %s; allowed: public addresses, and those on the "
                      "allow-list",
                      HOST_SHOWN, host, pawli_address_kind_name(kind));
}

/* Whatever libcurl has made of the host: a name or an address in the one spelling that nothing
 * reads in two ways. */
static pawl_code read_host(const char *text, const struct pawli_allow *allow,
                           struct pawli_target *target, pawl_err *err)
{
    size_t len = strlen(text);
    bool has_brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    if (len - 2 * has_brackets < sizeof(target->host)) {
        memcpy(target->host, text + has_brackets, len - 2 * has_brackets);
        target->host[len - 2 * has_brackets] = '\0';
        target->has_address = pawli_address_parse(target->host, &target->address);
    }
    if (target->has_address && has_brackets == (strchr(target->host, ':') != NULL)) {
        enum pawli_address_kind kind;
        if (!pawli_allow_address(allow, NULL, &target->address, &kind))
            return refuse_kind(kind, target->host, err);
        return PAWL_OK;
    }
    const char *problem;
    if (!pawli_host_copy(text, target->host, &problem))
        return pawli_fail(err, PAWL_INVALID, "url: host \"%.*s\" %s; allowed: a name or an address",
                          HOST_SHOWN, text, problem);
    target->has_address = false;
    if (is_local_name(target->host) && !pawli_allow_has_host(allow, target->host))
        return refuse_kind(PAWLI_ADDRESS_LOOPBACK, target->host, err);
    return PAWL_OK;
}

static pawl_code read_port(const char *text, const struct pawli_target_rules *rules,
                           struct pawli_target *target, pawl_err *err)
{
    unsigned long port = strtoul(text, NULL, 10); /* libcurl gives 1 to 65535, or 0 */
    bool is_allowed = port == 80 || port == 443;
    for (size_t i = 0; i < rules->ports_count && !is_allowed; i++)
        is_allowed = port != 0 && rules->ports[i] == port;
    if (!is_allowed || port > UINT16_MAX)
        return pawli_fail(err, PAWL_INVALID, "url: port %.5s is not allowed; allowed: 80, 443%s",
                          text, rules->ports_count > 0 ? ", and those of the settings" : "");
    target->port = (uint16_t)port;
    return PAWL_OK;
}

static pawl_code write_url(CURLU *parts, struct pawli_target *target, pawl_err *err)
{
    char *url = NULL;
    CURLUcode code = CURLUE_OK;
    if (!target->has_address)
        code = curl_url_set(parts, CURLUPART_HOST, target->host, 0); /* in small letters */
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_URL, &url, CURLU_NO_DEFAULT_PORT);
    if (code != CURLUE_OK)
        return curl_failed(code, err);
    bool is_whole = pawli_text_copy(target->url, sizeof(target->url), url);
    curl_free(url);
    return is_whole ? PAWL_OK
                    : pawli_fail(err, PAWL_INVALID, "url: too long; allowed: 1 to %d bytes",
                                 PAWLI_URL_MAX);
}

static pawl_code read_parts(CURLU *parts, const char *url, const struct pawli_target_rules *rules,
                            struct pawli_target *target, pawl_err *err)
{
    char *host = NULL;
    char *port = NULL;
    CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, CURLU_DISALLOW_USER);
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_HOST, &host, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    pawl_code rc = code == CURLUE_OK ? PAWL_OK : curl_failed(code, err);
    if (rc == PAWL_OK)
        rc = read_host(host, rules->allow, target, err);
    if (rc == PAWL_OK)
        rc = read_port(port, rules, target, err);
    if (rc == PAWL_OK)
        rc = write_url(parts, target, err);
    curl_free(host);
    curl_free(port);
    return rc;
}

pawl_code pawli_target_check(const char *url, const struct pawli_target_rules *rules,
                             struct pawli_target *ret_target, pawl_err *err)
{
    assert(rules != NULL && ret_target != NULL);

    if (url == NULL)
        return pawli_fail(err, PAWL_INVALID, "url is missing (NULL)");
    struct pawli_target target = {.has_address = false};
    pawl_code rc = check_text(url, rules, &target.is_https, err);
    if (rc != PAWL_OK)
        return rc;
    CURLU *parts = curl_url();
    if (parts == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    rc = read_parts(parts, url, rules, &target, err);
    curl_url_cleanup(parts);
    if (rc == PAWL_OK)
        *ret_target = target;
    return rc;
}
