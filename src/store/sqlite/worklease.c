/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - work leases in a file of SQLite.
 * Owns:  how domains, backlogs and terminal intervals are read and written.
 * Never: judges (core/worklease.c does); reads more of a domain than a verdict needs.
 *
 * The row of a domain is read and written under the file's write lock. A refusal is an answer like
 * any other: it writes nothing, and is told once the group has been committed.
 */
#include "store/worklease.h"

#include "base/error.h"
#include "base/random.h"
#include "core/worklease.h"
#include "store/sqlite/sqlite.h"

#include <string.h>

/* A domain as its row has it. */
struct domain {
    int64_t domain_id;
    int64_t backlog_first;
    struct pawli_worklease_known known; /* its texts are these: */
    char name[PAWL_WORKLEASE_DOMAIN_MAX + 1];
    char owner[PAWL_NAME_MAX + 1];
};

/* ---- reading */

/* A row of the columns that statements.c calls WORKLEASE. False: it failed. */
static bool read_domain(struct query *query, struct domain *ret_domain)
{
    *ret_domain = (struct domain){.domain_id = pawli_sqlite_int(query)};
    struct pawli_worklease_known *known = &ret_domain->known;
    bool is_good = pawli_sqlite_text(query, ret_domain->name, sizeof(ret_domain->name));
    known->domain = ret_domain->name;
    known->is_leased = !pawli_sqlite_is_null(query);
    known->lease.offset = pawli_sqlite_optional(query, 0);
    if (known->is_leased)
        is_good = pawli_sqlite_bytes(query, known->lease.token.bytes,
                                     sizeof(known->lease.token.bytes)) &&
                  is_good;
    else
        (void)pawli_sqlite_optional(query, 0); /* the token that is not there */
    known->lease.owner = pawli_sqlite_is_null(query) ? NULL : ret_domain->owner;
    is_good = pawli_sqlite_text(query, ret_domain->owner, sizeof(ret_domain->owner)) && is_good;
    known->lease.acquired_at.us = pawli_sqlite_optional(query, 0);
    known->lease.retry_count = pawli_sqlite_optional(query, 0);
    known->lease.expires_at.us = pawli_sqlite_optional(query, 0);
    ret_domain->backlog_first = pawli_sqlite_int(query);
    known->backlog_count = pawli_sqlite_int(query);
    is_good = (known->backlog_count > 0) == !pawli_sqlite_is_null(query) && is_good;
    known->backlog_head = pawli_sqlite_optional(query, 0);
    return is_good ? true : pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
}

/* *ret_found false: there is no such domain. False: it failed. */
static bool find_domain(struct pass *pass, const char *name, struct domain *ret_domain,
                        bool *ret_found)
{
    struct query query = pawli_sqlite_query(pass, S_WL_DOMAIN);
    pawli_sqlite_put_text(&query, name);
    *ret_found = pawli_sqlite_row(&query);
    if (*ret_found)
        (void)read_domain(&query, ret_domain); /* told by end */
    return pawli_sqlite_end(&query);
}

static bool need_domain(struct pass *pass, const char *name, struct domain *ret_domain)
{
    bool is_found;
    if (!find_domain(pass, name, ret_domain, &is_found))
        return false;
    if (is_found)
        return true;
    struct query query = pawli_sqlite_query(pass, S_WL_MAKE);
    pawli_sqlite_put_text(&query, name);
    if (!pawli_sqlite_change_rows(&query, 1) || !find_domain(pass, name, ret_domain, &is_found))
        return false;
    return is_found ? true : pawli_sqlite_spoil(pass, SQLITE_CORRUPT);
}

/* The last interval that begins at an offset or below; *ret_found false: there is none. */
static bool find_below(struct pass *pass, const struct domain *domain, int64_t offset,
                       pawl_worklease_interval *ret_interval, bool *ret_found)
{
    struct query query = pawli_sqlite_query(pass, S_WL_BELOW);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, offset);
    *ret_found = pawli_sqlite_row(&query);
    if (*ret_found) {
        ret_interval->first = pawli_sqlite_int(&query);
        ret_interval->last = pawli_sqlite_int(&query);
        ret_interval->is_failed = pawli_sqlite_int(&query) != 0;
    }
    return pawli_sqlite_end(&query);
}

static bool find_fate(struct pass *pass, const struct domain *domain, int64_t offset,
                      enum pawli_worklease_fate *ret_fate)
{
    pawl_worklease_interval below;
    bool is_found;
    if (!find_below(pass, domain, offset, &below, &is_found))
        return false;
    *ret_fate = PAWLI_WORKLEASE_OPEN;
    if (is_found && below.last >= offset)
        *ret_fate = below.is_failed ? PAWLI_WORKLEASE_FAILED : PAWLI_WORKLEASE_PROCESSED;
    return true;
}

static bool find_waiting(struct pass *pass, const struct domain *domain, int64_t offset,
                         bool *ret_waiting)
{
    struct query query = pawli_sqlite_query(pass, S_WL_WAITS);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, offset);
    *ret_waiting = pawli_sqlite_row(&query);
    return pawli_sqlite_end(&query);
}

/* ---- writing */

/* Write what is known of a domain. */
static bool write_domain(struct pass *pass, const struct domain *domain)
{
    const struct pawli_worklease_known *known = &domain->known;
    const struct pawli_worklease_lease *lease = &known->lease;
    struct query query = pawli_sqlite_query(pass, S_WL_WRITE);
    pawli_sqlite_put_int(&query, domain->domain_id);
    if (known->is_leased) {
        pawli_sqlite_put_int(&query, lease->offset);
        pawli_sqlite_put_bytes(&query, lease->token.bytes, sizeof(lease->token.bytes));
        pawli_sqlite_put_text(&query, lease->owner);
        pawli_sqlite_put_int(&query, lease->acquired_at.us);
        pawli_sqlite_put_int(&query, lease->retry_count);
        pawli_sqlite_put_optional(&query, lease->expires_at.us, 0);
    } else {
        for (int i = 0; i < 6; i++)
            pawli_sqlite_put_text(&query, NULL);
    }
    pawli_sqlite_put_int(&query, domain->backlog_first);
    pawli_sqlite_put_int(&query, known->backlog_count);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool push(struct pass *pass, struct domain *domain, int64_t offset)
{
    struct query query = pawli_sqlite_query(pass, S_WL_PUSH);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, domain->backlog_first + domain->known.backlog_count);
    pawli_sqlite_put_int(&query, offset);
    domain->known.backlog_count++;
    return pawli_sqlite_change_rows(&query, 1) && write_domain(pass, domain);
}

static bool pop(struct pass *pass, struct domain *domain)
{
    struct query query = pawli_sqlite_query(pass, S_WL_POP);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, domain->backlog_first);
    domain->backlog_first++;
    domain->known.backlog_count--;
    return pawli_sqlite_change_rows(&query, 1);
}

static bool remove_interval(struct pass *pass, const struct domain *domain, int64_t first)
{
    struct query query = pawli_sqlite_query(pass, S_WL_REMOVE);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, first);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool add_interval(struct pass *pass, const struct domain *domain,
                         const pawl_worklease_interval *interval)
{
    struct query query = pawli_sqlite_query(pass, S_WL_ADD);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, interval->first);
    pawli_sqlite_put_int(&query, interval->last);
    pawli_sqlite_put_int(&query, interval->is_failed ? 1 : 0);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool stretch(struct pass *pass, const struct domain *domain, int64_t first, int64_t last)
{
    struct query query = pawli_sqlite_query(pass, S_WL_STRETCH);
    pawli_sqlite_put_int(&query, domain->domain_id);
    pawli_sqlite_put_int(&query, first);
    pawli_sqlite_put_int(&query, last);
    return pawli_sqlite_change_rows(&query, 1);
}

/* Put an offset among those that have ended, and close the gaps beside it. */
static bool add_terminal(struct pass *pass, const struct domain *domain, int64_t offset,
                         bool is_failed)
{
    pawl_worklease_interval below = {0};
    pawl_worklease_interval above = {0};
    bool has_below = false;
    bool has_above = false;
    if (!find_below(pass, domain, offset, &below, &has_below))
        return false;
    if (has_below && below.last >= offset) /* it was leased, so it cannot have ended */
        return pawli_sqlite_spoil(pass, SQLITE_CORRUPT);
    has_below = has_below && below.is_failed == is_failed && below.last == offset - 1;
    if (offset < INT64_MAX && !find_below(pass, domain, offset + 1, &above, &has_above))
        return false;
    has_above = has_above && above.is_failed == is_failed && above.first == offset + 1;

    pawl_worklease_interval added = {
        .first = offset, .last = has_above ? above.last : offset, .is_failed = is_failed};
    if (has_above && !remove_interval(pass, domain, above.first))
        return false;
    return has_below ? stretch(pass, domain, below.first, added.last)
                     : add_interval(pass, domain, &added);
}

/* Write what a verdict says. */
static bool apply(struct pass *pass, struct domain *domain,
                  const struct pawli_worklease_verdict *verdict, int64_t offset)
{
    struct pawli_worklease_known *known = &domain->known;
    int64_t ended = known->lease.offset;
    bool is_failed = verdict->change == PAWLI_WORKLEASE_END_FAILED;
    switch (verdict->change) {
    case PAWLI_WORKLEASE_NOTHING:
        return true;
    case PAWLI_WORKLEASE_PUSH:
        return push(pass, domain, offset);
    case PAWLI_WORKLEASE_GRANT:
        if (known->backlog_count > 0 && !pop(pass, domain))
            return false;
        break;
    case PAWLI_WORKLEASE_WRITE:
        break;
    case PAWLI_WORKLEASE_END_PROCESSED:
    case PAWLI_WORKLEASE_END_FAILED:
        known->is_leased = false;
        return write_domain(pass, domain) && add_terminal(pass, domain, ended, is_failed);
    }
    known->is_leased = true;
    known->lease = verdict->lease;
    return write_domain(pass, domain);
}

/* ---- acquiring */

/* A call under way. What is told stands here until the transaction is committed. */
struct acquiring {
    const pawl_worklease_acquire *args;
    pawl_worklease_acquired acquired;
    pawl_code code;
    pawl_err err;
};

static bool acquire(struct pass *pass, void *user)
{
    struct acquiring *acquiring = user;
    struct pawli_acquire acquire = {.args = acquiring->args, .now = pass->now};
    struct pawli_worklease_verdict verdict = {.change = PAWLI_WORKLEASE_NOTHING};
    struct domain domain;
    int64_t offset = acquiring->args->offset;
    if (!need_domain(pass, acquiring->args->domain, &domain) ||
        !find_fate(pass, &domain, offset, &acquire.fate))
        return false;
    if (domain.known.is_leased && domain.known.lease.offset != offset &&
        !find_waiting(pass, &domain, offset, &acquire.is_waiting))
        return false;
    pawli_random_fill(&pass->sqlite->random, acquire.token.bytes, sizeof(acquire.token.bytes));
    acquiring->code = pawli_worklease_judge_acquire(&domain.known, &acquire, &verdict,
                                                    &acquiring->acquired, &acquiring->err);
    return acquiring->code != PAWL_OK || apply(pass, &domain, &verdict, offset);
}

static pawl_code try_acquire(pawl_store *store, const pawl_worklease_acquire *args,
                             pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    struct acquiring acquiring = {.args = args};
    pawl_code rc = pawli_sqlite_write(
        store, &(struct write){.run = acquire, .args = &acquiring, .rows_count = 1}, err);
    if (rc != PAWL_OK)
        return rc;
    if (acquiring.code == PAWL_OK)
        *ret_acquired = acquiring.acquired;
    else if (err != NULL)
        *err = acquiring.err;
    return acquiring.code;
}

/* ---- holding */

typedef pawl_code judge_end(const struct pawli_worklease_known *known,
                            const struct pawli_holding *holding,
                            struct pawli_worklease_verdict *ret_verdict,
                            pawl_worklease_ended *ret_ended, pawl_err *err);

struct call_of_holder {
    struct pawli_holding holding;
    judge_end *judge; /* NULL: renew */
    pawl_worklease_ended ended;
    pawl_wall expires_at;
    pawl_code code;
    pawl_err err;
};

static bool hold(struct pass *pass, void *user)
{
    struct call_of_holder *call = user;
    struct pawli_worklease_verdict verdict = {.change = PAWLI_WORKLEASE_NOTHING};
    struct domain domain;
    bool is_found;
    call->holding.now = pass->now;
    if (!find_domain(pass, call->holding.hold->domain, &domain, &is_found))
        return false;
    if (!is_found) /* nobody has ever had a lease there */
        domain = (struct domain){.known = {.domain = call->holding.hold->domain}};
    if (call->judge != NULL)
        call->code = call->judge(&domain.known, &call->holding, &verdict, &call->ended, &call->err);
    else
        call->code = pawli_worklease_judge_renew(&domain.known, &call->holding, &verdict,
                                                 &call->expires_at, &call->err);
    return call->code != PAWL_OK || apply(pass, &domain, &verdict, domain.known.lease.offset);
}

static pawl_code run_hold(pawl_store *store, struct call_of_holder *call, pawl_err *err)
{
    pawl_code rc = pawli_sqlite_write(
        store, &(struct write){.run = hold, .args = call, .rows_count = 1}, err);
    if (rc != PAWL_OK)
        return rc;
    if (call->code != PAWL_OK && err != NULL)
        *err = call->err;
    return call->code;
}

static pawl_code succeed(pawl_store *store, const pawl_worklease_hold *held,
                         pawl_worklease_ended *ret_ended, pawl_err *err)
{
    struct call_of_holder call = {.holding = {.hold = held},
                                  .judge = pawli_worklease_judge_succeed};
    pawl_code rc = run_hold(store, &call, err);
    if (rc == PAWL_OK)
        *ret_ended = call.ended;
    return rc;
}

static pawl_code fail(pawl_store *store, const pawl_worklease_hold *held, int64_t max_retries,
                      pawl_worklease_ended *ret_ended, pawl_err *err)
{
    struct call_of_holder call = {.holding = {.hold = held, .max_retries = max_retries},
                                  .judge = pawli_worklease_judge_fail};
    pawl_code rc = run_hold(store, &call, err);
    if (rc == PAWL_OK)
        *ret_ended = call.ended;
    return rc;
}

static pawl_code renew(pawl_store *store, const pawl_worklease_hold *held, int64_t lease_ms,
                       pawl_wall *ret_expires_at, pawl_err *err)
{
    struct call_of_holder call = {.holding = {.hold = held, .lease_ms = lease_ms}};
    pawl_code rc = run_hold(store, &call, err);
    if (rc == PAWL_OK)
        *ret_expires_at = call.expires_at;
    return rc;
}

/* ---- looking */

/* What is asked, and where the answer goes. Room for rows is the caller's: a reader writes there at
 * once, since nothing can be taken back. */
struct looking {
    const char *domain; /* of `get` and the pages; `after` of the list, "" for none */
    int64_t skip;
    pawl_worklease_info *infos;
    int64_t *offsets;
    pawl_worklease_interval *intervals;
    size_t rows_max;
    size_t count;
    bool is_found;
};

static bool look_one(struct pass *pass, void *user)
{
    struct looking *looking = user;
    struct domain domain;
    if (!find_domain(pass, looking->domain, &domain, &looking->is_found))
        return false;
    if (looking->is_found)
        *looking->infos = pawli_worklease_tell(&domain.known, pass->now);
    return true;
}

static pawl_code get(pawl_store *store, const char *name, pawl_worklease_info *ret_info,
                     pawl_err *err)
{
    struct looking looking = {.domain = name, .infos = ret_info};
    pawl_code rc = pawli_sqlite_read(store, look_one, &looking, err);
    return rc == PAWL_OK && !looking.is_found ? pawli_worklease_gone(name, err) : rc;
}

static bool look_all(struct pass *pass, void *user)
{
    struct looking *looking = user;
    struct query query = pawli_sqlite_query(pass, S_WL_DOMAINS);
    pawli_sqlite_put_text(&query, looking->domain);
    pawli_sqlite_put_int(&query, (int64_t)looking->rows_max);
    struct domain domain;
    while (pawli_sqlite_row(&query) && read_domain(&query, &domain))
        looking->infos[looking->count++] = pawli_worklease_tell(&domain.known, pass->now);
    return pawli_sqlite_end(&query);
}

static pawl_code list_domains(pawl_store *store, const char *after, pawl_worklease_info *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct looking looking = {
        .domain = after != NULL ? after : "", .infos = ret_rows, .rows_max = rows_max};
    pawl_code rc = pawli_sqlite_read(store, look_all, &looking, err);
    if (rc == PAWL_OK)
        *ret_count = looking.count;
    return rc;
}

static bool look_backlog(struct pass *pass, void *user)
{
    struct looking *looking = user;
    struct domain domain;
    if (!find_domain(pass, looking->domain, &domain, &looking->is_found))
        return false;
    if (!looking->is_found || looking->skip >= domain.known.backlog_count)
        return true;
    struct query query = pawli_sqlite_query(pass, S_WL_BACKLOG);
    pawli_sqlite_put_int(&query, domain.domain_id);
    pawli_sqlite_put_int(&query, domain.backlog_first + looking->skip);
    pawli_sqlite_put_int(&query, (int64_t)looking->rows_max);
    while (pawli_sqlite_row(&query))
        looking->offsets[looking->count++] = pawli_sqlite_int(&query);
    return pawli_sqlite_end(&query);
}

static bool look_terminal(struct pass *pass, void *user)
{
    struct looking *looking = user;
    struct domain domain;
    if (!find_domain(pass, looking->domain, &domain, &looking->is_found))
        return false;
    if (!looking->is_found)
        return true;
    struct query query = pawli_sqlite_query(pass, S_WL_TERMINAL);
    pawli_sqlite_put_int(&query, domain.domain_id);
    pawli_sqlite_put_int(&query, looking->skip);
    pawli_sqlite_put_int(&query, (int64_t)looking->rows_max);
    while (pawli_sqlite_row(&query)) {
        pawl_worklease_interval *interval = &looking->intervals[looking->count++];
        interval->first = pawli_sqlite_int(&query);
        interval->last = pawli_sqlite_int(&query);
        interval->is_failed = pawli_sqlite_int(&query) != 0;
    }
    return pawli_sqlite_end(&query);
}

static pawl_code run_page(pawl_store *store, pass_run *run, struct looking *looking,
                          size_t *ret_count, pawl_err *err)
{
    pawl_code rc = pawli_sqlite_read(store, run, looking, err);
    if (rc != PAWL_OK)
        return rc;
    if (!looking->is_found)
        return pawli_worklease_gone(looking->domain, err);
    *ret_count = looking->count;
    return PAWL_OK;
}

static pawl_code list_backlog(pawl_store *store, const pawl_worklease_page *page, int64_t *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct looking looking = {
        .domain = page->domain, .skip = page->skip, .offsets = ret_rows, .rows_max = rows_max};
    return run_page(store, look_backlog, &looking, ret_count, err);
}

static pawl_code list_terminal(pawl_store *store, const pawl_worklease_page *page,
                               pawl_worklease_interval *ret_rows, size_t rows_max,
                               size_t *ret_count, pawl_err *err)
{
    struct looking looking = {
        .domain = page->domain, .skip = page->skip, .intervals = ret_rows, .rows_max = rows_max};
    return run_page(store, look_terminal, &looking, ret_count, err);
}

const struct pawli_worklease_ops pawli_sqlite_worklease_ops = {
    .try_acquire = try_acquire,
    .succeed = succeed,
    .fail = fail,
    .renew = renew,
    .get = get,
    .domains = list_domains,
    .backlog = list_backlog,
    .terminal = list_terminal,
};
