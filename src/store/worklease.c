/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - the front of every store's work leases: the verbs of pawl/worklease.h.
 * Owns:  the checks of their arguments, and what is filled in where a caller leaves it out.
 * Never: lets a store see an argument that worklease.h forbids; writes a ret_ parameter itself.
 */
#include "store/worklease.h"

#include "base/error.h"
#include "base/text.h"
#include "core/policy.h"
#include "store/check.h"

/* ---- checks */

static pawl_code check_store(const pawl_store *store, pawl_err *err)
{
    pawl_code rc = pawli_check_given("store", store, err);
    if (rc == PAWL_OK && store->ops->worklease == NULL)
        rc = pawli_fail(err, PAWL_INVALID, "store is of kind %s, which has no work leases",
                        store->ops->name);
    return rc;
}

static pawl_code check_domain(const char *field, const char *domain, pawl_err *err)
{
    pawl_code rc = pawli_check_given(field, domain, err);
    if (rc != PAWL_OK)
        return rc;
    size_t len = pawli_text_length(domain, PAWL_WORKLEASE_DOMAIN_MAX);
    if (len == 0 || len > PAWL_WORKLEASE_DOMAIN_MAX)
        return pawli_fail(err, PAWL_INVALID, "%s is %s; it must have 1 to %d bytes", field,
                          len == 0 ? "empty" : "too long", PAWL_WORKLEASE_DOMAIN_MAX);
    size_t good = pawli_text_good(domain, "");
    if (domain[good] == '\0')
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "%s is bad after %zu bytes (0x%02x); it must be UTF-8 without control "
                      "characters",
                      field, good, (unsigned)(unsigned char)domain[good]);
}

static pawl_code check_owner(const char *owner, pawl_err *err)
{
    return owner == NULL ? PAWL_OK : pawli_check_name("owner", owner, err);
}

static pawl_code check_hold(const pawl_store *store, const pawl_worklease_hold *hold,
                            const void *ret_result, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("hold", hold, err);
    if (rc == PAWL_OK)
        rc = check_domain("domain", hold->domain, err);
    if (rc == PAWL_OK)
        rc = check_owner(hold->owner, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("the result", ret_result, err);
    return rc;
}

static pawl_code check_page(const pawl_store *store, const pawl_worklease_page *page,
                            const struct pawli_page *rows, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("page", page, err);
    if (rc == PAWL_OK)
        rc = check_domain("domain", page->domain, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("skip", page->skip, (struct pawli_range){0, INT64_MAX}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_page(rows, err);
    return rc;
}

pawl_code pawli_worklease_gone(const char *domain, pawl_err *err)
{
    return pawli_fail(err, PAWL_GONE, "nobody has asked for an offset of domain %s", domain);
}

/* ---- acquiring */

void pawl_worklease_acquire_init(pawl_worklease_acquire *args)
{
    if (args != NULL)
        *args = (pawl_worklease_acquire){.lease_ms = PAWL_DEFAULT, .backlog_max = PAWL_DEFAULT};
}

static pawl_code check_acquire(const pawl_worklease_acquire *args, pawl_err *err)
{
    pawl_code rc = check_domain("domain", args->domain, err);
    if (rc == PAWL_OK)
        rc = check_owner(args->owner, err);
    if (rc == PAWL_OK && args->lease_ms != PAWL_DEFAULT)
        rc = pawli_check_duration("lease_ms", args->lease_ms, PAWL_LEASE_MIN_MS, err);
    if (rc == PAWL_OK && args->backlog_max != PAWL_DEFAULT)
        rc = pawli_check_range("backlog_max", args->backlog_max, (struct pawli_range){1, INT64_MAX},
                               err);
    return rc;
}

pawl_code pawl_worklease_try_acquire(pawl_store *store, const pawl_worklease_acquire *args,
                                     pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_acquired", ret_acquired, err);
    if (rc == PAWL_OK)
        rc = check_acquire(args, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_worklease_acquire filled = *args;
    if (filled.backlog_max == PAWL_DEFAULT)
        filled.backlog_max = PAWL_WORKLEASE_BACKLOG_MAX;
    return store->ops->worklease->try_acquire(store, &filled, ret_acquired, err);
}

/* ---- holding */

pawl_code pawl_worklease_succeed(pawl_store *store, const pawl_worklease_hold *hold,
                                 pawl_worklease_ended *ret_ended, pawl_err *err)
{
    pawl_code rc = check_hold(store, hold, ret_ended, err);
    return rc == PAWL_OK ? store->ops->worklease->succeed(store, hold, ret_ended, err) : rc;
}

pawl_code pawl_worklease_fail(pawl_store *store, const pawl_worklease_hold *hold,
                              int64_t max_retries, pawl_worklease_ended *ret_ended, pawl_err *err)
{
    pawl_code rc = check_hold(store, hold, ret_ended, err);
    if (max_retries == PAWL_DEFAULT)
        max_retries = PAWL_WORKLEASE_RETRIES;
    if (rc == PAWL_OK)
        rc = pawli_check_range("max_retries", max_retries,
                               (struct pawli_range){0, PAWL_RETRIES_MAX}, err);
    if (rc == PAWL_OK)
        rc = store->ops->worklease->fail(store, hold, max_retries, ret_ended, err);
    return rc;
}

pawl_code pawl_worklease_renew(pawl_store *store, const pawl_worklease_hold *hold, int64_t lease_ms,
                               pawl_wall *ret_expires_at, pawl_err *err)
{
    pawl_code rc = check_hold(store, hold, ret_expires_at, err);
    if (rc == PAWL_OK)
        rc = pawli_check_duration("lease_ms", lease_ms, PAWL_LEASE_MIN_MS, err);
    if (rc == PAWL_OK)
        rc = store->ops->worklease->renew(store, hold, lease_ms, ret_expires_at, err);
    return rc;
}

/* ---- looking */

pawl_code pawl_worklease_get(pawl_store *store, const char *domain, pawl_worklease_info *ret_info,
                             pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = check_domain("domain", domain, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_info", ret_info, err);
    if (rc == PAWL_OK)
        rc = store->ops->worklease->get(store, domain, ret_info, err);
    return rc;
}

pawl_code pawl_worklease_domains(pawl_store *store, const char *after,
                                 pawl_worklease_info *ret_rows, size_t rows_max, size_t *ret_count,
                                 pawl_err *err)
{
    struct pawli_page rows = {PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count};
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK && after != NULL)
        rc = check_domain("after", after, err);
    if (rc == PAWL_OK)
        rc = pawli_check_page(&rows, err);
    if (rc == PAWL_OK)
        rc = store->ops->worklease->domains(store, after, ret_rows, rows_max, ret_count, err);
    return rc;
}

pawl_code pawl_worklease_backlog(pawl_store *store, const pawl_worklease_page *page,
                                 int64_t *ret_rows, size_t rows_max, size_t *ret_count,
                                 pawl_err *err)
{
    struct pawli_page rows = {PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count};
    pawl_code rc = check_page(store, page, &rows, err);
    if (rc == PAWL_OK)
        rc = store->ops->worklease->backlog(store, page, ret_rows, rows_max, ret_count, err);
    return rc;
}

pawl_code pawl_worklease_terminal(pawl_store *store, const pawl_worklease_page *page,
                                  pawl_worklease_interval *ret_rows, size_t rows_max,
                                  size_t *ret_count, pawl_err *err)
{
    struct pawli_page rows = {PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count};
    pawl_code rc = check_page(store, page, &rows, err);
    if (rc == PAWL_OK)
        rc = store->ops->worklease->terminal(store, page, ret_rows, rows_max, ret_count, err);
    return rc;
}
