/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - the rules of work leases.
 * Owns:  what try_acquire, succeed, fail and renew come to, and the texts of their refusals.
 * Never: keeps anything; reads a clock; makes a token; waits, or decides when to try again
 *        (WL-NO-TIMERS); hands a lease on (it only hints at who is next).
 *
 * What a store keeps by writing exactly what the verdicts say, by the names of the requirements:
 *  WL-SINGLE      there is one lease at most, on one offset;
 *  WL-DISJOINT    the leased offset is neither terminal nor in the backlog, and no offset in the
 *                 backlog is terminal;
 *  WL-FIFO        the backlog loses its head only, and only to the lease that try-acquire grants;
 *  WL-IDEMPOTENT  a terminal offset stays what it became;
 *  WL-FENCE       only the token of the lease, shown by its owner before its deadline, ends or
 *                 extends it; and nothing but that ends it: a lease that expired waits to be taken
 *                 over, on the same offset.
 */
#include "core/worklease.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/token.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- names */

const char *pawl_worklease_got_name(pawl_worklease_got got)
{
    static const char *const names[] = {"ACQUIRED",          "ALREADY_ACQUIRED", "ENQUEUED",
                                        "ALREADY_PROCESSED", "ALREADY_FAILED",   "HELD"};
    size_t number = (size_t)got;
    return number < sizeof(names) / sizeof(names[0]) ? names[number] : "?";
}

const char *pawl_worklease_end_name(pawl_worklease_end end)
{
    static const char *const names[] = {"NO_BACKLOG", "NEXT_HINT", "RETRY_SCHEDULED",
                                        "GIVE_UP_NO_BACKLOG", "GIVE_UP_NEXT_HINT"};
    size_t number = (size_t)end;
    return number < sizeof(names) / sizeof(names[0]) ? names[number] : "?";
}

/* ---------------------------------------------------------------- leases */

bool pawli_worklease_is_expired(const struct pawli_worklease_lease *lease, pawl_wall now)
{
    return pawli_wall_is_set(lease->expires_at) && !pawli_wall_is_before(now, lease->expires_at);
}

static bool is_same_owner(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static pawl_wall expiry(int64_t lease_ms, pawl_wall now)
{
    return lease_ms == PAWL_DEFAULT ? (pawl_wall){0} : pawli_wall_add_ms(now, lease_ms);
}

static pawl_worklease_acquired got(pawl_worklease_got got,
                                   const struct pawli_worklease_lease *lease)
{
    return (pawl_worklease_acquired){
        .got = got,
        .offset = lease->offset,
        .acquired_at = lease->acquired_at,
        .retry_count = lease->retry_count,
        .expires_at = lease->expires_at,
    };
}

/* ---------------------------------------------------------------- acquiring */

/* The offset asked for is the one that is leased. */
static void acquire_leased(const struct pawli_worklease_known *known,
                           const struct pawli_acquire *acquire,
                           struct pawli_worklease_verdict *ret_verdict,
                           pawl_worklease_acquired *ret_acquired)
{
    const struct pawli_worklease_lease *lease = &known->lease;
    if (pawli_worklease_is_expired(lease, acquire->now)) {
        struct pawli_worklease_lease taken = *lease; /* its acquired_at and retry_count stay */
        taken.token = acquire->token;
        taken.owner = acquire->args->owner;
        taken.expires_at = expiry(acquire->args->lease_ms, acquire->now);
        *ret_verdict = (struct pawli_worklease_verdict){PAWLI_WORKLEASE_WRITE, taken};
        *ret_acquired = got(PAWL_GOT_ACQUIRED, &taken);
        ret_acquired->token = taken.token;
        ret_acquired->is_taken_over = true;
        return;
    }
    *ret_verdict = (struct pawli_worklease_verdict){.change = PAWLI_WORKLEASE_NOTHING};
    if (is_same_owner(lease->owner, acquire->args->owner)) {
        *ret_acquired = got(PAWL_GOT_ALREADY_ACQUIRED, lease);
        ret_acquired->token = lease->token;
    } else {
        *ret_acquired = got(PAWL_GOT_HELD, lease);
    }
}

/* Another offset is leased: wait behind it, once. An expired lease is no less in the way: its
 * offset is taken over by whoever asks for it, and never dropped. */
static pawl_code acquire_behind(const struct pawli_worklease_known *known,
                                const struct pawli_acquire *acquire,
                                struct pawli_worklease_verdict *ret_verdict,
                                pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    const pawl_worklease_acquire *args = acquire->args;
    if (!acquire->is_waiting && known->backlog_count >= args->backlog_max)
        return pawli_fail(err, PAWL_WL_BACKLOG_FULL,
                          "offset %" PRId64 " finds the backlog full: %" PRId64
                          " offsets are allowed to wait in domain %s",
                          args->offset, args->backlog_max, known->domain);
    ret_verdict->change = acquire->is_waiting ? PAWLI_WORKLEASE_NOTHING : PAWLI_WORKLEASE_PUSH;
    *ret_acquired = got(PAWL_GOT_ENQUEUED, &known->lease);
    return PAWL_OK;
}

/* Nothing is leased. */
static pawl_code acquire_free(const struct pawli_worklease_known *known,
                              const struct pawli_acquire *acquire,
                              struct pawli_worklease_verdict *ret_verdict,
                              pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    const pawl_worklease_acquire *args = acquire->args;
    if (known->backlog_count > 0 && known->backlog_head != args->offset)
        /* The domain stands last, so that a long one cannot push the numbers off the text. */
        return pawli_fail(err, PAWL_WL_ORDER,
                          "expected offset %" PRId64 ", the head of the backlog, but %" PRId64
                          " was given in domain %s",
                          known->backlog_head, args->offset, known->domain);
    *ret_verdict = (struct pawli_worklease_verdict){
        .change = PAWLI_WORKLEASE_GRANT,
        .lease = {.offset = args->offset,
                  .token = acquire->token,
                  .owner = args->owner,
                  .acquired_at = acquire->now,
                  .expires_at = expiry(args->lease_ms, acquire->now)},
    };
    *ret_acquired = got(PAWL_GOT_ACQUIRED, &ret_verdict->lease);
    ret_acquired->token = acquire->token;
    return PAWL_OK;
}

pawl_code pawli_worklease_judge_acquire(const struct pawli_worklease_known *known,
                                        const struct pawli_acquire *acquire,
                                        struct pawli_worklease_verdict *ret_verdict,
                                        pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    assert(known != NULL && acquire != NULL);
    assert(ret_verdict != NULL && ret_acquired != NULL);
    assert(acquire->args->backlog_max >= 1);

    if (acquire->fate != PAWLI_WORKLEASE_OPEN) { /* WL-IDEMPOTENT */
        *ret_verdict = (struct pawli_worklease_verdict){.change = PAWLI_WORKLEASE_NOTHING};
        *ret_acquired = (pawl_worklease_acquired){
            .got = acquire->fate == PAWLI_WORKLEASE_PROCESSED ? PAWL_GOT_ALREADY_PROCESSED
                                                              : PAWL_GOT_ALREADY_FAILED,
        };
        return PAWL_OK;
    }
    if (!known->is_leased)
        return acquire_free(known, acquire, ret_verdict, ret_acquired, err);
    if (known->lease.offset != acquire->args->offset)
        return acquire_behind(known, acquire, ret_verdict, ret_acquired, err);
    acquire_leased(known, acquire, ret_verdict, ret_acquired);
    return PAWL_OK;
}

/* ---------------------------------------------------------------- holding */

/* Whether there is a lease, and it is the caller's, and still valid: in this order. */
static pawl_code check_hold(const struct pawli_worklease_known *known,
                            const struct pawli_holding *holding, pawl_err *err)
{
    assert(known != NULL && holding != NULL);
    if (!known->is_leased)
        return pawli_fail(err, PAWL_WL_NO_LEASE, "there is no lease in domain %s", known->domain);
    if (!pawli_token_is_equal(&known->lease.token, &holding->hold->token) ||
        !is_same_owner(known->lease.owner, holding->hold->owner))
        return pawli_fail(err, PAWL_WL_TOKEN,
                          "the lease on offset %" PRId64
                          " has another token or owner, in domain %s",
                          known->lease.offset, known->domain);
    if (pawli_worklease_is_expired(&known->lease, holding->now))
        return pawli_fail(err, PAWL_WL_EXPIRED,
                          "the lease on offset %" PRId64 " has expired, in domain %s",
                          known->lease.offset, known->domain);
    return PAWL_OK;
}

/* What is told when the lease has ended: `empty`, or `hint` and the head, which stays. */
static pawl_worklease_ended ended(const struct pawli_worklease_known *known,
                                  pawl_worklease_end empty, pawl_worklease_end hint)
{
    if (known->backlog_count == 0)
        return (pawl_worklease_ended){.end = empty};
    return (pawl_worklease_ended){.end = hint, .next_offset = known->backlog_head};
}

pawl_code pawli_worklease_judge_succeed(const struct pawli_worklease_known *known,
                                        const struct pawli_holding *holding,
                                        struct pawli_worklease_verdict *ret_verdict,
                                        pawl_worklease_ended *ret_ended, pawl_err *err)
{
    pawl_code rc = check_hold(known, holding, err);
    if (rc != PAWL_OK)
        return rc;
    *ret_verdict = (struct pawli_worklease_verdict){.change = PAWLI_WORKLEASE_END_PROCESSED};
    *ret_ended = ended(known, PAWL_END_NO_BACKLOG, PAWL_END_NEXT_HINT);
    return PAWL_OK;
}

pawl_code pawli_worklease_judge_fail(const struct pawli_worklease_known *known,
                                     const struct pawli_holding *holding,
                                     struct pawli_worklease_verdict *ret_verdict,
                                     pawl_worklease_ended *ret_ended, pawl_err *err)
{
    assert(holding->max_retries >= 0);
    pawl_code rc = check_hold(known, holding, err);
    if (rc != PAWL_OK)
        return rc;
    if (known->lease.retry_count >= holding->max_retries) {
        *ret_verdict = (struct pawli_worklease_verdict){.change = PAWLI_WORKLEASE_END_FAILED};
        *ret_ended = ended(known, PAWL_END_GIVE_UP_NO_BACKLOG, PAWL_END_GIVE_UP_NEXT_HINT);
        return PAWL_OK;
    }
    *ret_verdict = (struct pawli_worklease_verdict){PAWLI_WORKLEASE_WRITE, known->lease};
    ret_verdict->lease.retry_count++;
    *ret_ended = (pawl_worklease_ended){
        .end = PAWL_END_RETRY_SCHEDULED,
        .retry_count = ret_verdict->lease.retry_count,
    };
    return PAWL_OK;
}

pawl_code pawli_worklease_judge_renew(const struct pawli_worklease_known *known,
                                      const struct pawli_holding *holding,
                                      struct pawli_worklease_verdict *ret_verdict,
                                      pawl_wall *ret_expires_at, pawl_err *err)
{
    pawl_code rc = check_hold(known, holding, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_wall extended = expiry(holding->lease_ms, holding->now);
    *ret_verdict = (struct pawli_worklease_verdict){.change = PAWLI_WORKLEASE_NOTHING};
    /* One that never expires is later than any. */
    if (pawli_wall_is_set(known->lease.expires_at) &&
        pawli_wall_is_before(known->lease.expires_at, extended)) {
        *ret_verdict = (struct pawli_worklease_verdict){PAWLI_WORKLEASE_WRITE, known->lease};
        ret_verdict->lease.expires_at = extended;
        *ret_expires_at = extended;
    } else {
        *ret_expires_at = known->lease.expires_at;
    }
    return PAWL_OK;
}

/* ---------------------------------------------------------------- looking */

pawl_worklease_info pawli_worklease_tell(const struct pawli_worklease_known *known, pawl_wall now)
{
    pawl_worklease_info info = {.is_leased = known->is_leased,
                                .backlog_count = known->backlog_count};
    (void)pawli_text_copy(info.domain, sizeof(info.domain), known->domain); /* checked: it fits */
    if (known->backlog_count > 0)
        info.backlog_head = known->backlog_head;
    if (!known->is_leased)
        return info;
    info.offset = known->lease.offset;
    (void)pawli_text_copy(info.owner, sizeof(info.owner), known->lease.owner); /* likewise */
    info.acquired_at = known->lease.acquired_at;
    info.retry_count = known->lease.retry_count;
    info.expires_at = known->lease.expires_at;
    info.is_expired = pawli_worklease_is_expired(&known->lease, now);
    return info;
}
