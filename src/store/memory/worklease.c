/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - work leases in memory.
 * Owns:  the domains, and the locks on them.
 * Never: judges (core/worklease.c does); takes a domain out before the memory ends; holds two locks
 *        at once.
 * Locks: domain.mutex guards the domain's record (WL-LOCK): made with the domain, never replaced.
 *        stripe.mutex guards the tree of a part of all domains, for the time of a look-up: domains
 *        are many, and calls on different ones should not meet. The memory's mutex is taken to draw
 *        tokens, many at once, from a source that may not be shared. None of them is held over
 *        anything but memory.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "core/worklease_record.h"
#include "store/worklease.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define STRIPES 256

struct domain {
    RB_ENTRY(domain) in_stripe;
    pthread_mutex_t mutex;
    struct pawli_worklease *record; /* owned; what it holds is under `mutex` */
    char name[];
};
RB_HEAD(pawli_domain_tree, domain);

/* The domains whose names have the same hash. */
struct stripe {
    pthread_mutex_t mutex;
    struct pawli_domain_tree domains; /* under `mutex`, by name */
};

struct domains {
    struct stripe stripes[STRIPES];
};

static int compare_domains(const struct domain *a, const struct domain *b)
{
    return strcmp(a->name, b->name);
}

/* Not RB_GENERATE_STATIC: it needs an __unused that only the BSDs define. */
RB_GENERATE_INTERNAL(pawli_domain_tree, domain, in_stripe, compare_domains,
                     static __attribute__((unused)))

static void lock(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_lock(mutex);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
}

static void unlock(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_unlock(mutex);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
}

/* ---- life */

struct domains *pawli_memory_domains_new(void)
{
    struct domains *domains = calloc(1, sizeof(*domains));
    if (domains == NULL)
        return NULL;
    for (size_t i = 0; i < STRIPES; i++) {
        if (pthread_mutex_init(&domains->stripes[i].mutex, NULL) == 0)
            continue;
        while (i-- > 0)
            (void)pthread_mutex_destroy(
                &domains->stripes[i].mutex); /* cannot fail: nobody has it */
        free(domains);
        return NULL;
    }
    return domains;
}

static void free_domain(struct domain *domain)
{
    (void)pthread_mutex_destroy(&domain->mutex); /* cannot fail: nobody has it */
    pawli_worklease_free(domain->record);
    free(domain);
}

void pawli_memory_domains_free(struct domains *domains)
{
    for (size_t i = 0; domains != NULL && i < STRIPES; i++) {
        struct stripe *stripe = &domains->stripes[i];
        struct domain *domain;
        while ((domain = RB_MIN(pawli_domain_tree, &stripe->domains)) != NULL) {
            RB_REMOVE(pawli_domain_tree, &stripe->domains, domain);
            free_domain(domain);
        }
        (void)pthread_mutex_destroy(&stripe->mutex); /* cannot fail: nobody has it */
    }
    free(domains);
}

/* ---- domains */

/* FNV-1a. Names chosen to fall into one stripe make it no worse than one lock for all. */
static struct stripe *stripe_of(struct domains *domains, const char *name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    return &domains->stripes[(hash ^ hash >> 16) % STRIPES];
}

/* Under the stripe's mutex. */
static struct domain *find(const struct stripe *stripe, const char *name)
{
    struct domain *at = RB_ROOT(&stripe->domains);
    while (at != NULL) {
        int order = strcmp(name, at->name);
        if (order == 0)
            break;
        at = order < 0 ? RB_LEFT(at, in_stripe) : RB_RIGHT(at, in_stripe);
    }
    return at;
}

/* Under the stripe's mutex. NULL: no memory. */
static struct domain *add(struct stripe *stripe, const char *name)
{
    size_t name_size = strlen(name) + 1;
    struct domain *domain = malloc(sizeof(*domain) + name_size);
    if (domain == NULL)
        return NULL;
    domain->record = pawli_worklease_new(name);
    if (domain->record == NULL || pthread_mutex_init(&domain->mutex, NULL) != 0) {
        pawli_worklease_free(domain->record);
        free(domain);
        return NULL;
    }
    memcpy(domain->name, name, name_size);
    struct domain *twin = RB_INSERT(pawli_domain_tree, &stripe->domains, domain);
    assert(twin == NULL);
    (void)twin; /* read by the assert only */
    return domain;
}

static pawl_memory *memory_of(pawl_store *store)
{
    return ((struct handle *)store)->memory;
}

/* The domain, locked; *ret_now is the clock after that (RES-3). NULL: `err` says why. */
static struct domain *enter(pawl_store *store, const char *name, bool is_making, pawl_wall *ret_now,
                            pawl_err *err)
{
    pawl_memory *memory = memory_of(store);
    struct stripe *stripe = stripe_of(memory->domains, name);
    lock(&stripe->mutex);
    struct domain *domain = find(stripe, name);
    bool is_missing = domain == NULL;
    if (is_missing && is_making)
        domain = add(stripe, name);
    unlock(&stripe->mutex);
    if (domain == NULL) {
        (void)(is_making ? pawli_fail_plain(err, PAWL_NO_MEMORY)
                         : pawli_worklease_gone(name, err)); /* the caller tells it */
        return NULL;
    }
    lock(&domain->mutex);
    *ret_now = memory->clock->wall(memory->clock->user);
    if (ret_now->us > 0)
        return domain;
    unlock(&domain->mutex);
    (void)pawli_fail(err, PAWL_DOWN, "the store's clock gives %lld us; it must be after 1970",
                     (long long)ret_now->us); /* likewise */
    return NULL;
}

/* ---- tokens */

/* A fresh token, the next one in stock. A random source need not be safe to share: it is used under
 * the memory's mutex, as everywhere. The system's is, and a call to it is long to wait for. */
static pawl_token next_token(struct handle *handle)
{
    struct token_stock *stock = &handle->tokens;
    pawl_memory *memory = handle->memory;
    if (stock->count == 0) {
        bool is_locked = memory->random != pawl_random_system();
        if (is_locked)
            lock(&memory->mutex);
        pawli_random_fill(memory->random, stock->tokens[0].bytes, sizeof(stock->tokens));
        if (is_locked)
            unlock(&memory->mutex);
        stock->count = TOKEN_STOCK;
    }
    return stock->tokens[stock->count - 1];
}

/* ---- the verbs */

static pawl_code try_acquire(pawl_store *store, const pawl_worklease_acquire *args,
                             pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    struct handle *handle = (struct handle *)store;
    pawl_err why = {.code = PAWL_OK};
    struct pawli_acquire acquire = {.args = args, .token = next_token(handle)};
    struct domain *domain = enter(store, args->domain, true, &acquire.now, &why);
    if (domain == NULL)
        return pawli_fail(err, why.code, "%s", why.text);
    pawl_code rc = pawli_worklease_try_acquire(domain->record, &acquire, ret_acquired, err);
    unlock(&domain->mutex);
    if (rc == PAWL_OK && ret_acquired->got == PAWL_GOT_ACQUIRED)
        handle->tokens.count--; /* it is used */
    return rc;
}

/* The domain of a holder, locked. A domain that does not exist has no lease. */
static pawl_code enter_held(pawl_store *store, struct pawli_holding *holding,
                            struct domain **ret_domain, pawl_err *err)
{
    pawl_err why = {.code = PAWL_OK};
    *ret_domain = enter(store, holding->hold->domain, false, &holding->now, &why);
    if (*ret_domain != NULL)
        return PAWL_OK;
    if (why.code == PAWL_GONE)
        return pawli_fail(err, PAWL_WL_NO_LEASE, "there is no lease in domain %s",
                          holding->hold->domain);
    return pawli_fail(err, why.code, "%s", why.text);
}

static pawl_code succeed(pawl_store *store, const pawl_worklease_hold *hold,
                         pawl_worklease_ended *ret_ended, pawl_err *err)
{
    struct pawli_holding holding = {.hold = hold};
    struct domain *domain;
    pawl_code rc = enter_held(store, &holding, &domain, err);
    if (rc != PAWL_OK)
        return rc;
    rc = pawli_worklease_succeed(domain->record, &holding, ret_ended, err);
    unlock(&domain->mutex);
    return rc;
}

static pawl_code fail(pawl_store *store, const pawl_worklease_hold *hold, int64_t max_retries,
                      pawl_worklease_ended *ret_ended, pawl_err *err)
{
    struct pawli_holding holding = {.hold = hold, .max_retries = max_retries};
    struct domain *domain;
    pawl_code rc = enter_held(store, &holding, &domain, err);
    if (rc != PAWL_OK)
        return rc;
    rc = pawli_worklease_fail(domain->record, &holding, ret_ended, err);
    unlock(&domain->mutex);
    return rc;
}

static pawl_code renew(pawl_store *store, const pawl_worklease_hold *hold, int64_t lease_ms,
                       pawl_wall *ret_expires_at, pawl_err *err)
{
    struct pawli_holding holding = {.hold = hold, .lease_ms = lease_ms};
    struct domain *domain;
    pawl_code rc = enter_held(store, &holding, &domain, err);
    if (rc != PAWL_OK)
        return rc;
    rc = pawli_worklease_renew(domain->record, &holding, ret_expires_at, err);
    unlock(&domain->mutex);
    return rc;
}

/* ---- looking */

static pawl_code get(pawl_store *store, const char *name, pawl_worklease_info *ret_info,
                     pawl_err *err)
{
    pawl_err why = {.code = PAWL_OK};
    pawl_wall now;
    struct domain *domain = enter(store, name, false, &now, &why);
    if (domain == NULL)
        return pawli_fail(err, why.code, "%s", why.text);
    struct pawli_worklease_known known = pawli_worklease_look(domain->record);
    *ret_info = pawli_worklease_tell(&known, now);
    unlock(&domain->mutex);
    return PAWL_OK;
}

/* The first domain of a stripe above a name (NULL: of all); NULL: there is none. Its name stays. */
static const struct domain *first_above(struct stripe *stripe, const char *after)
{
    lock(&stripe->mutex);
    struct domain *above = NULL;
    struct domain *at = RB_ROOT(&stripe->domains);
    while (at != NULL) {
        if (after == NULL || strcmp(at->name, after) > 0) {
            above = at;
            at = RB_LEFT(at, in_stripe);
        } else {
            at = RB_RIGHT(at, in_stripe);
        }
    }
    unlock(&stripe->mutex);
    return above;
}

static const struct domain *next_domain(struct domains *domains, const char *after)
{
    const struct domain *next = NULL;
    for (size_t i = 0; i < STRIPES; i++) {
        const struct domain *above = first_above(&domains->stripes[i], after);
        if (above != NULL && (next == NULL || strcmp(above->name, next->name) < 0))
            next = above;
    }
    return next;
}

static pawl_code list_domains(pawl_store *store, const char *after, pawl_worklease_info *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct domains *domains = memory_of(store)->domains;
    size_t count = 0;
    while (count < rows_max) {
        const struct domain *next = next_domain(domains, after);
        if (next == NULL)
            break;
        pawl_code rc = get(store, next->name, &ret_rows[count], err);
        if (rc != PAWL_OK)
            return rc;
        after = next->name;
        count++;
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_code list_backlog(pawl_store *store, const pawl_worklease_page *page, int64_t *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_err why = {.code = PAWL_OK};
    pawl_wall now;
    struct domain *domain = enter(store, page->domain, false, &now, &why);
    if (domain == NULL)
        return pawli_fail(err, why.code, "%s", why.text);
    int64_t waiting = pawli_worklease_look(domain->record).backlog_count;
    size_t count = 0;
    for (int64_t i = page->skip; i < waiting && count < rows_max; i++)
        ret_rows[count++] = pawli_worklease_backlog_at(domain->record, (size_t)i);
    unlock(&domain->mutex);
    *ret_count = count;
    return PAWL_OK;
}

static pawl_code list_terminal(pawl_store *store, const pawl_worklease_page *page,
                               pawl_worklease_interval *ret_rows, size_t rows_max,
                               size_t *ret_count, pawl_err *err)
{
    pawl_err why = {.code = PAWL_OK};
    pawl_wall now;
    struct domain *domain = enter(store, page->domain, false, &now, &why);
    if (domain == NULL)
        return pawli_fail(err, why.code, "%s", why.text);
    *ret_count = pawli_worklease_terminal(domain->record, (size_t)page->skip, ret_rows, rows_max);
    unlock(&domain->mutex);
    return PAWL_OK;
}

const struct pawli_worklease_ops pawli_memory_worklease_ops = {
    .try_acquire = try_acquire,
    .succeed = succeed,
    .fail = fail,
    .renew = renew,
    .get = get,
    .domains = list_domains,
    .backlog = list_backlog,
    .terminal = list_terminal,
};
