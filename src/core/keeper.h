/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper.h - everything that a worker decides, as a state machine without I/O, threads or clock.
 *
 * Whoever drives it (the thread runtime, the webhook dispatcher, the simulator) tells it what
 * happened with on_...(), each with the time at which it learned of it, and then takes actions with
 * pawli_keeper_next() until there are none. It calls again no later than pawli_keeper_deadline().
 * One caller at a time: the driver brings the lock.
 *
 * What the keeper holds to (the numbers are cited in keeper*.c and in the simulator's checks):
 *  K1  A lease counts from the moment its request left the keeper, never from the reply.
 *  K2  A beat that is refused, or not confirmed within one interval of falling due, has failed: the
 *      work is aborted and never settled (RES-10). That moment always comes before the store could
 *      call the lease expired.
 *  K3  Nothing is started, sent or settled once a lease is at risk; every step looks at the clock
 *      before anything else.
 *  K4  A lost reply is neither success nor failure: a claim is followed by asking the store what
 *      stands in the worker's own name; a settle is repeated as it was; a renewal is tried again.
 *  K5  A lease learned of by asking is renewed before its job may start or be given back.
 *  K6  Each lease is renewed until its settle or release is answered, also while shutting down.
 *  K7  It asks for no more than it has room for; what it holds is bounded by its tables.
 *  K8  A refused renewal ends that job's work and no other.
 *  K9  No job runs twice under one lease: what was stopped is not taken up again, even where its
 *      lease still stands at the store.
 */
#ifndef PAWLI_CORE_KEEPER_H
#define PAWLI_CORE_KEEPER_H

#include "pawl/pawl.h"

struct pawli_keeper;

/* One queue or endpoint that the keeper serves. Lines are named by their index. */
struct pawli_keeper_line {
    int64_t held_max; /* jobs of this line held at once; PAWL_DEFAULT: no bound of its own */
};

/* A bound of a line, as it is from now on: see pawli_keeper_on_line(). */
struct pawli_keeper_bound {
    size_t line;
    int64_t held_max; /* likewise; 0: nothing more is claimed of it */
};

struct pawli_keeper_config {
    const pawl_worker_settings *settings;  /* copied; must have passed its check */
    const struct pawli_keeper_line *lines; /* copied */
    size_t lines_count;                    /* 1 .. lines_max; 0 where there is such a maximum */
    size_t lines_max; /* to be added while it runs, with those above; 0: none; to PAWL_LINES_MAX */
    const pawl_random *random; /* borrowed: jitter of polls and of store retries */
};

/* Gives a keeper, or PAWL_INVALID, PAWL_NO_MEMORY. All its memory is allocated here. */
pawl_code pawli_keeper_new(const struct pawli_keeper_config *config,
                           struct pawli_keeper **ret_keeper, pawl_err *err);
void pawli_keeper_free(struct pawli_keeper *keeper); /* accepts NULL */

/* The number of slots: slot indexes are below it, so a driver can keep payloads in an array of that
 * size. */
size_t pawli_keeper_slots(const struct pawli_keeper *keeper);

/* A place in the keeper's table. The generation rises with each job in it: late events for an
 * earlier one are ignored. */
struct pawli_slot {
    uint32_t index;
    uint32_t generation;
};
#define PAWLI_SLOT_NONE UINT32_MAX /* an index that is no slot */

/* ---------------------------------------------------------------- why: one reason for each
 * decision */

enum pawli_why {
    PAWLI_WHY_NONE = 0,
    /* claims */
    PAWLI_WHY_POLL,       /* the poll interval has passed */
    PAWLI_WHY_WAKE,       /* a hint said that there may be work */
    PAWLI_WHY_MORE,       /* the last claim came back full, or room has come free */
    PAWLI_WHY_STORE_BACK, /* after the store was away */
    /* asking what is mine */
    PAWLI_WHY_CLAIM_LOST, /* a claim's reply was lost, or came too late to be used */
    PAWLI_WHY_MINE_AGAIN, /* a lost claim may still run: ask again */
    /* renewals */
    PAWLI_WHY_BEAT,  /* a beat falls due */
    PAWLI_WHY_ADOPT, /* confirm a lease that was learned of by asking: K5 */
    /* starts, settles, releases */
    PAWLI_WHY_CLAIMED,       /* start: a slot is free */
    PAWLI_WHY_ENDED,         /* settle: the handler has ended */
    PAWLI_WHY_REPEAT,        /* settle or release again: the last one was not answered */
    PAWLI_WHY_NOT_STARTED,   /* release at shutdown */
    PAWLI_WHY_HELD_TOO_LONG, /* release: it waited a whole lease for a slot */
    PAWLI_WHY_NO_ROOM,       /* release: found by asking, and there is no room for it */
    /* aborts and ends */
    PAWLI_WHY_LEASE_LOST,         /* the store said that the lease is not ours */
    PAWLI_WHY_BEAT_FAILED,        /* a beat was not confirmed in time */
    PAWLI_WHY_CANCELLED,          /* somebody cancelled the job */
    PAWLI_WHY_TIMEOUT,            /* the execution timeout has passed */
    PAWLI_WHY_SHUTDOWN,           /* the shutdown timeout is nearly up */
    PAWLI_WHY_ABORT_ALL,          /* told to abort everything */
    PAWLI_WHY_ABORT_IGNORED,      /* give up: the handler did not stop within the grace period */
    PAWLI_WHY_SETTLED,            /* over: the store accepted the settle */
    PAWLI_WHY_SETTLED_BY_HANDLER, /* over: the handler settled it in its own transaction */
    PAWLI_WHY_RELEASED,           /* over: given back */
    PAWLI_WHY_FENCED,             /* over: the store refused the settle or release as stale */
    PAWLI_WHY_AT_RISK, /* over: the lease was too old to settle, start or release under it */
    PAWLI_WHY_REFUSED, /* over: the store called the settle or release invalid */
    PAWLI_WHYS
};

/* The reason's name for logs and metrics: "beat_failed" ...; "?" for a number that is none. */
const char *pawli_why_name(enum pawli_why why);

/* ---------------------------------------------------------------- actions */

enum pawli_action_kind {
    PAWLI_ACTION_CLAIM = 1, /* call claim with lines[]; answer with on_claimed or on_call_failed */
    PAWLI_ACTION_MINE,    /* call mine, all pages; answer with on_mine per page or on_call_failed */
    PAWLI_ACTION_RENEW,   /* call renew with items[]; answer with on_renewed or on_call_failed */
    PAWLI_ACTION_SETTLE,  /* call settle with items[]; answer with on_settled or on_call_failed */
    PAWLI_ACTION_RELEASE, /* call release with items[]; answer with on_released or on_call_failed */
    PAWLI_ACTION_START,   /* start the handler of `slot`; answer with on_ended some time */
    PAWLI_ACTION_ABORT, /* tell the handler of `slot` to stop; kill it by `deadline` where it can be
                           killed */
    PAWLI_ACTION_GIVE_UP, /* report the handler of `slot`: it ignored its abort; its slot stays
                             taken until on_ended */
    PAWLI_ACTION_OVER,    /* `slot` is free again: drop its payload. The keeper will not speak of it
                             any more */
    PAWLI_ACTION_STOPPED  /* shut down: nothing more will come. `left` jobs were left to the reaper
                           */
};

struct pawli_action_line {
    size_t line;
    int64_t jobs_max;
};

struct pawli_action_item {
    struct pawli_slot slot;
    pawl_lease lease;
    bool is_unstarted;         /* RENEW */
    bool is_repeat;            /* SETTLE, RELEASE: it may have been done before */
    pawl_settle_action action; /* SETTLE */
    pawl_reason reason;        /* SETTLE */
    int64_t delay_ms;          /* SETTLE */
};

/* Arrays belong to the keeper and hold until the next call of pawli_keeper_next() or on_...(). */
struct pawli_action {
    enum pawli_action_kind kind;
    enum pawli_why why;
    uint64_t request;       /* calls: quote it in the answer */
    pawl_mono deadline;     /* calls: give up the call by then; ABORT: kill by then */
    struct pawli_slot slot; /* START, ABORT, GIVE_UP, OVER */
    size_t line;            /* START, ABORT, GIVE_UP, OVER: the job's line */
    pawl_mono run_until;    /* START: when the execution timeout will abort it */
    int64_t jobs_max;       /* CLAIM: in all */
    const struct pawli_action_line *lines; /* CLAIM */
    size_t lines_count;
    const struct pawli_action_item *items; /* RENEW, SETTLE, RELEASE */
    size_t items_count;
    size_t left; /* STOPPED */
};

/*
 * The next action at time `now`, false when there is none for now. First of all it looks at the
 * clock: whatever is at risk is aborted or dropped before anything else is asked for (K3).
 */
bool pawli_keeper_next(struct pawli_keeper *keeper, pawl_mono now, struct pawli_action *ret_action);

/* When to call pawli_keeper_next() again at the latest, if nothing happens before.
 * PAWLI_MONO_NEVER: when something does. */
pawl_mono pawli_keeper_deadline(const struct pawli_keeper *keeper);

/*
 * Whether a started job may still do something that others will see. Ask directly before each send;
 * it changes nothing. False once its lease is at risk, its abort was asked for, or it is over.
 */
bool pawli_keeper_may_send(const struct pawli_keeper *keeper, struct pawli_slot slot,
                           pawl_mono now);

/* Whether an item of a SETTLE or RELEASE may still be sent: ask directly before the call where time
 * may have passed. */
bool pawli_keeper_may_settle(const struct pawli_keeper *keeper, struct pawli_slot slot,
                             pawl_mono now);

/* ---------------------------------------------------------------- events */

/* A lease that claim or mine gave out. */
struct pawli_grant {
    size_t line;
    pawl_lease lease;
    int64_t lease_ms;   /* as granted */
    int64_t timeout_ms; /* the job's execution timeout */
};

/*
 * A claim was answered with `grants`. ret_slots[i] is where grant i was put (keep its payload
 * there), or has the index PAWLI_SLOT_NONE where the keeper does not take it (a late reply: it will
 * ask what is its own and find it again).
 */
void pawli_keeper_on_claimed(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                             const struct pawli_grant *grants, size_t grants_count,
                             struct pawli_slot *ret_slots);

/* A page of mine. `is_last` ends the request. Slots as above; a lease that the keeper knows already
 * gets none. */
struct pawli_mine_page {
    const struct pawli_grant *grants;
    size_t grants_count;
    bool is_last;
};
void pawli_keeper_on_mine(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                          const struct pawli_mine_page *page, struct pawli_slot *ret_slots);

/* The verdict on one item of a RENEW, SETTLE or RELEASE. */
struct pawli_verdict {
    struct pawli_slot slot;
    pawl_code code;
    int64_t lease_ms; /* a renewal's OK: the lease granted */
};
void pawli_keeper_on_renewed(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                             const struct pawli_verdict *verdicts, size_t verdicts_count);
void pawli_keeper_on_settled(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                             const struct pawli_verdict *verdicts, size_t verdicts_count);
void pawli_keeper_on_released(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                              const struct pawli_verdict *verdicts, size_t verdicts_count);

/*
 * A call as a whole was not answered with PAWL_OK. PAWL_UNKNOWN: it may have been done. Anything
 * else: it was not. Where it was PAWL_INVALID, each settle or release of it is sent by itself, and
 * dropped if that is invalid again.
 */
void pawli_keeper_on_call_failed(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                                 pawl_code code);

enum pawli_result {
    PAWLI_RESULT_DONE = 0,
    PAWLI_RESULT_RETRY, /* delay_ms: PAWL_DEFAULT for the computed backoff */
    PAWLI_RESULT_FAIL,
    PAWLI_RESULT_SNOOZE, /* delay_ms: how long */
    PAWLI_RESULT_SETTLED /* the handler settled the job in its own transaction */
};

/* A handler has ended. */
struct pawli_ended {
    enum pawli_result result;
    int64_t delay_ms;
};
void pawli_keeper_on_ended(struct pawli_keeper *keeper, pawl_mono now, struct pawli_slot slot,
                           struct pawli_ended ended);

/* A hint that there may be work. */
void pawli_keeper_on_wake(struct pawli_keeper *keeper, pawl_mono now);

/* The downstream of one line, or of all (PAWLI_LINE_ALL), is saturated: claim and start nothing
 * there until it resumes. */
#define PAWLI_LINE_ALL SIZE_MAX
void pawli_keeper_on_pause(struct pawli_keeper *keeper, pawl_mono now, size_t line);
void pawli_keeper_on_resume(struct pawli_keeper *keeper, pawl_mono now, size_t line);

/*
 * Another bound for a line; the first line that is none yet (lines_count) is added by it, up to
 * lines_max. What is held beyond a bound stays held.
 */
void pawli_keeper_on_line(struct pawli_keeper *keeper, pawl_mono now,
                          struct pawli_keeper_bound bound);

/* New settings, checked by the caller. Table sizes stay as they were: parallel_max and buffer_max
 * can shrink, or grow back. */
void pawli_keeper_on_settings(struct pawli_keeper *keeper, pawl_mono now,
                              const pawl_worker_settings *settings);

/*
 * Shut down within `timeout_ms`: claim nothing more, release what has not started, let the rest
 * finish; abort what still runs one grace period before the time is up (a quarter of the time at
 * most); be STOPPED by then at the latest. A second call can only shorten it.
 */
void pawli_keeper_on_shutdown(struct pawli_keeper *keeper, pawl_mono now, int64_t timeout_ms);

/* Shut down and abort everything at once. */
void pawli_keeper_on_abort_all(struct pawli_keeper *keeper, pawl_mono now);

/* ---------------------------------------------------------------- looking in */

struct pawli_keeper_counts {
    size_t running;   /* handlers that have not ended */
    size_t buffered;  /* held, not started */
    size_t settling;  /* ended, settle not answered */
    size_t releasing; /* to be given back, not answered */
    size_t reserved;  /* room kept for a claim that is under way or was lost */
};
struct pawli_keeper_counts pawli_keeper_count(const struct pawli_keeper *keeper);

/* Jobs of a line that it holds, or may be about to get. */
int64_t pawli_keeper_line_held(const struct pawli_keeper *keeper, size_t line);

#endif
