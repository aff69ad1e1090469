/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job.h - what a job may become, and the one function that changes it. Stores that keep jobs as
 * records (memory, SQLite) load the record, call pawli_job_change() under their lock, and write the
 * record and the ledger row it gives.
 */
#ifndef PAWLI_CORE_JOB_H
#define PAWLI_CORE_JOB_H

#include "pawl/pawl.h"

/* What the rules need to know of a job. Empty fields are zero. */
struct pawli_job {
    pawl_state state;
    int64_t retries;
    int64_t lost_leases;   /* since enqueue or redrive: RES-5 */
    int64_t lost_in_a_row; /* since a holder last ended an attempt */
    int64_t attempts;      /* ledger rows written; the next row's number is one more */
    int64_t lease_version;
    pawl_wall due_at;
    pawl_wall start_by;    /* 0: none, or met: an attempt has ended, other than by release */
    pawl_wall finished_at; /* 0 while live */
    pawl_reason reason;    /* of the last ledger row */
    bool is_discarded;

    /* While InFlight; zero otherwise. */
    pawl_token token;
    char worker[PAWL_NAME_MAX + 1];
    pawl_wall claimed_at;
    pawl_wall expires_at;
    pawl_wall run_until;
    pawl_wall unstarted_until; /* renewals as unstarted are refused from here on */
    bool is_started;           /* a renewal as started was accepted */
    int64_t lease_ms;
    int64_t timeout_ms;
    int64_t fence; /* 0: the job has no ordering key */
    bool is_cancel_asked;
};

/* The limits in force for one job. */
struct pawli_job_rules {
    int64_t max_retries;
    int64_t max_lost_leases;
    int64_t backoff_base_ms;
    int64_t backoff_max_ms;
};

enum pawli_event {
    PAWLI_EVENT_CLAIM = 0,
    PAWLI_EVENT_RENEW,
    PAWLI_EVENT_SUCCEED,
    PAWLI_EVENT_RETRY,
    PAWLI_EVENT_FAIL,
    PAWLI_EVENT_SNOOZE,
    PAWLI_EVENT_RELEASE,
    PAWLI_EVENT_EXPIRE,
    PAWLI_EVENT_CANCEL,
    PAWLI_EVENT_REDRIVE,
    PAWLI_EVENT_DISCARD,
    PAWLI_EVENT_MISS, /* the start-by deadline has passed */
    PAWLI_EVENTS
};

/* A change asked for. Fields that the event does not name are ignored. */
struct pawli_change {
    enum pawli_event event;
    pawl_wall now;      /* the store's clock, read after the row was locked; never 0 */
    const char *worker; /* CLAIM, RENEW, settles, RELEASE */
    pawl_token token;   /* CLAIM: the new one; RENEW, settles, RELEASE: the one shown */
    int64_t version;    /* RENEW, settles, RELEASE: the one shown */
    int64_t lease_ms;   /* CLAIM, RENEW */
    int64_t timeout_ms; /* CLAIM */
    int64_t fence;      /* CLAIM of a job with an ordering key: the one drawn for it; else 0 */
    bool is_unstarted;  /* RENEW */
    pawl_reason reason; /* settles: NONE for the usual one */
    int64_t delay_ms;   /* RETRY: PAWL_DEFAULT to compute it; SNOOZE */
};

/* The ledger row that a change calls for. */
struct pawli_ledger_row {
    bool is_due; /* false: the change writes no row */
    int64_t attempt_no;
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
    int64_t lease_version;
    char worker[PAWL_NAME_MAX + 1];
    pawl_wall started_at;
    pawl_wall finished_at;
};

/*
 * Change a job, or refuse and leave it as it was, to the byte.
 * PAWL_OK: `job` is changed and *ret_row says which ledger row must be written with it.
 * PAWL_STALE: the lease shown is not this job's valid lease (token, worker, version, expiry:
 * RES-3). PAWL_CANCELLED, PAWL_TIMEOUT: RENEW of a job that is marked, or past its execution
 * timeout, or unstarted for too long. PAWL_NOT_DUE ... PAWL_NOT_MISSED: the state does not allow
 * it; see pawl.h. A CLAIM of a job whose lease has expired is PAWL_LEASED: expire it first, so that
 * the expiry leaves its row (RES-4). `random` is drawn from only where a backoff is computed.
 */
pawl_code pawli_job_change(struct pawli_job *job, const struct pawli_job_rules *rules,
                           const struct pawli_change *change, const pawl_random *random,
                           struct pawli_ledger_row *ret_row);

/* Whether the job's lease is valid at `now`: InFlight, and now < expiry. */
bool pawli_job_is_leased(const struct pawli_job *job, pawl_wall now);

/* What the state alone says of an event, before any look at lease or time: PAWL_OK or the refusal.
 */
pawl_code pawli_job_allows(pawl_state state, enum pawli_event event);

/*
 * What a change means for the job's place among the live jobs of its ordering key (RES-7): it has
 * one exactly while it is Ready or InFlight, and only the first may be claimed.
 */
enum pawli_key_step {
    PAWLI_KEY_STAYS = 0, /* where it is: a retry, a snooze, a release, a lost lease, a delay */
    PAWLI_KEY_LEAVES,    /* it is terminal: whoever stood behind it moves up */
    PAWLI_KEY_JOINS      /* redriven: behind all others */
};
enum pawli_key_step pawli_job_key_step(pawl_state before, pawl_state after);

/* The event of a settle action. */
enum pawli_event pawli_event_of(pawl_settle_action action);

/*
 * Whether a ledger row is what settling with `action` left behind, so that a repeated settle can be
 * answered OK. The row must already be of the same job, lease version, worker and token.
 */
bool pawli_job_is_replay(pawl_settle_action action, const struct pawli_ledger_row *row);

/* The state that a job entered with this row: Succeeded, Failed or Ready. */
pawl_state pawli_row_state(const struct pawli_ledger_row *row);

#endif
