/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper_table.h - what the files of the keeper share: its table of held jobs. Private to
 * keeper*.c.
 */
#ifndef PAWLI_CORE_KEEPER_TABLE_H
#define PAWLI_CORE_KEEPER_TABLE_H

#include "core/keeper.h"
#include "base/clock.h"
#include "core/mutant.h"

#include <sys/queue.h>

enum hold_state {
    HOLD_FREE = 0,
    HOLD_BUFFERED,  /* held, not started */
    HOLD_RUNNING,   /* started, its handler has not ended */
    HOLD_ENDED,     /* its settle is to be sent, or was sent and is not answered */
    HOLD_RETURNING, /* its release is to be sent, or was sent and is not answered */
    HOLD_OVER       /* waits for its OVER action, then free */
};

enum hold_signal {
    SIGNAL_NONE = 0,
    SIGNAL_ABORT,
    SIGNAL_GIVE_UP,
    SIGNAL_OVER
};

TAILQ_HEAD(hold_list, hold);

/* One held job. */
struct hold {
    uint32_t index;
    uint32_t generation;
    enum hold_state state;
    size_t line;
    pawl_lease lease;

    int64_t lease_ms;
    int64_t interval_ms;    /* the heartbeat's */
    pawl_mono lease_from;   /* when the last confirmed request was sent: K1 */
    pawl_mono beat_at;      /* when the next beat is to be tried */
    bool is_beat_owed;      /* false once the store will not renew it any more */
    bool is_beat_unstarted; /* the outstanding renewal said "not started" */
    bool must_confirm;      /* may not start before a renewal has been confirmed: K5 */

    int64_t timeout_ms;
    pawl_mono run_from;     /* the execution timeout counts from here */
    pawl_mono refreshed_at; /* when the last confirmation was learned of, before it started */
    pawl_mono held_since;
    bool is_adopted; /* learned of by asking, and not confirmed yet: K5 */
    enum pawli_why
        confirm_why; /* give it back for this reason once it is confirmed; NONE: keep it */

    enum pawli_why abort_why; /* NONE: its abort was not asked for */
    enum pawli_why why;       /* of the pending signal, or of the release */
    pawl_mono kill_by;
    bool is_lost; /* whatever its handler answers is not settled: K2 */
    bool is_given_up;

    struct pawli_action_item outcome; /* what to settle */
    pawl_mono ended_at;
    bool is_repeat; /* an earlier settle or release of it may have been done */
    bool is_alone;  /* it was in a call that was refused as a whole: send it by itself */

    enum hold_signal signal;
    pawl_mono alarm; /* when to look at it again */
    size_t heap_at;  /* its place in the heap of alarms */

    struct hold_list
        *in; /* free, startable, waiting, settles, releases or their ..._sent; NULL while it runs */
    struct hold_list *beat_in; /* beats, beats_sent, or NULL */
    TAILQ_ENTRY(hold) place;
    TAILQ_ENTRY(hold) beating;
    TAILQ_ENTRY(hold) signalling; /* in signals, while `signal` is not NONE */
};

/* A call that was asked for and is not answered yet. At most one of each kind. */
struct call {
    uint64_t request; /* 0: none */
    pawl_mono sent_at;
    pawl_mono retry_at; /* not before this: the last one failed */
    int64_t failures;   /* in a row */
};

/* A lease whose work was stopped: it may stand at the store for a while. K9 */
struct burnt {
    pawl_id job;
    int64_t version;
};

struct line {
    int64_t held_max;
    int64_t held;
    int64_t asked; /* by the outstanding claim */
    int64_t ended; /* since settle_round was this */
    uint64_t ended_round;
    bool is_paused;
    bool has_more; /* the last claim got all that it asked it for, or had no room to ask it */
};

struct pawli_keeper {
    pawl_worker_settings settings;
    const pawl_random *random;
    pawl_mono now; /* the latest time it was told */
    uint64_t requests;

    struct hold *holds; /* holds_count of them */
    size_t holds_count;
    struct hold **heap; /* alarms of all that is neither free nor over, earliest first */
    size_t heap_count;
    struct hold_list free, startable, waiting;
    struct hold_list settles, releases, beats;
    struct hold_list settles_sent, releases_sent, beats_sent; /* in the outstanding call */
    struct hold_list signals;
    size_t free_count, buffered, running, settling, releasing;

    /*
     * The last leases whose work was stopped, a ring of burnt_max. Such a lease is not renewed any
     * more, so it ends soon; the ring is long enough for all that a worker can let go of meanwhile.
     */
    struct burnt *burnt;
    size_t burnt_max;
    size_t burnt_count; /* ever */

    struct line *lines;
    size_t lines_count;
    size_t lines_max;
    size_t line_first; /* where the next claim begins: each line gets its turn */
    bool is_all_paused;
    bool is_buffer_closed; /* a job waited a whole lease for a slot: take none ahead until a handler
                              ends */

    struct call claim, renew, settle, release;
    uint64_t settle_round;   /* settles that were sent */
    bool is_line_well_ended; /* a good part of some line has ended since the last of them */
    bool is_mine;            /* the outstanding claim is a MINE */
    size_t reserved;         /* room for what the claim, or a lost one, may have taken */
    bool is_claim_lost; /* reserved belongs to a lost claim: MINE has not been answered since */
    pawl_mono claim_at; /* when to claim next, given room */
    enum pawli_why claim_why;
    bool is_woken;        /* a hint came while a claim was under way */
    bool is_room_new;     /* a line got room while a claim was under way */
    pawl_mono mine_at;    /* when to ask what is mine; NEVER: no reason to */
    pawl_mono mine_until; /* ask again until then */
    enum pawli_why mine_why;
    int64_t lease_longest_ms; /* of those seen */

    bool is_draining;
    bool is_abort_due; /* the abort of what still runs is ahead, at drain_abort_at */
    bool is_stopped;
    pawl_mono drain_abort_at;
    pawl_mono stop_by;

    struct pawli_action_line *action_lines;
    struct pawli_action_item *action_items;
    size_t action_items_max;
};

/* ---- keeper_hold.c: the table, its limits and its alarms */

/* The job in a slot, or NULL where the slot has moved on. */
struct hold *pawli_hold_find(struct pawli_keeper *keeper, struct pawli_slot slot);

/* Take a free hold for a grant that was asked for at `sent_at`; it is BUFFERED. There must be a
 * free one. */
struct hold *pawli_hold_take(struct pawli_keeper *keeper, const struct pawli_grant *grant,
                             pawl_mono sent_at);

/* From here on nothing of this job may start, be settled or be sent: K3. */
pawl_mono pawli_hold_risk_at(const struct hold *hold);

/* When its execution timeout will abort it. */
pawl_mono pawli_hold_run_until(const struct hold *hold);

/* A request about it that was sent at `sent_at` has been confirmed with a lease of `lease_ms`. */
void pawli_hold_confirm(struct pawli_keeper *keeper, struct hold *hold, pawl_mono sent_at,
                        int64_t lease_ms);

/* Set its alarm anew: after every change of it. */
void pawli_hold_rearm(struct pawli_keeper *keeper, struct hold *hold);

/* The state changes; the lists follow. */
void pawli_hold_run(struct pawli_keeper *keeper, struct hold *hold);
void pawli_hold_end(struct pawli_keeper *keeper, struct hold *hold);
void pawli_hold_return(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why);
void pawli_hold_over(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why);
void pawli_hold_free(struct pawli_keeper *keeper, struct hold *hold);

/* Put a buffered job into the list it belongs in, startable or waiting. */
void pawli_hold_place(struct pawli_keeper *keeper, struct hold *hold);

/* Move it to the end of another list joined by `place`, or out of all of them (NULL). */
void pawli_hold_move(struct hold *hold, struct hold_list *to);

/* Set or clear the signal that the driver is to be given about it. */
void pawli_hold_signal(struct pawli_keeper *keeper, struct hold *hold, enum hold_signal signal);

/* The same for the lists of beats. */
void pawli_hold_move_beat(struct hold *hold, struct hold_list *to);

/* Ask its handler to stop. Does nothing where that was done before. */
void pawli_hold_abort(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why);

/* Its lease is lost or at risk: abort what runs, drop what does not. */
void pawli_hold_lose(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why);

/* Look at the clock: whatever is at risk, too late, or due for a beat by now (K3). Every event and
 * step begins with it. */
void pawli_keeper_look(struct pawli_keeper *keeper, pawl_mono now);

/* ---- keeper_claim.c */
bool pawli_claim_next(struct pawli_keeper *keeper, struct pawli_action *ret_action);
bool pawli_mine_next(struct pawli_keeper *keeper, struct pawli_action *ret_action);
void pawli_claim_failed(struct pawli_keeper *keeper, pawl_code code);
void pawli_claim_room(struct pawli_keeper *keeper, const struct line *line); /* it has got room */
pawl_mono pawli_claim_deadline(const struct pawli_keeper *keeper);

/* ---- keeper_beat.c */
bool pawli_beat_next(struct pawli_keeper *keeper, struct pawli_action *ret_action);
void pawli_beat_failed(struct pawli_keeper *keeper);

/* ---- keeper_settle.c */
bool pawli_settle_next(struct pawli_keeper *keeper, struct pawli_action *ret_action);
bool pawli_release_next(struct pawli_keeper *keeper, struct pawli_action *ret_action);
void pawli_settle_failed(struct pawli_keeper *keeper, pawl_code code);
void pawli_release_failed(struct pawli_keeper *keeper, pawl_code code);
pawl_mono pawli_settle_deadline(const struct pawli_keeper *keeper);

/* ---- keeper.c */

/* Open a call: give it a number, remember when it was sent. */
void pawli_call_open(struct pawli_keeper *keeper, struct call *call, struct pawli_action *action);

/* Close it: answered, or failed (then it is not tried again before a growing delay has passed). */
bool pawli_call_is_open(const struct call *call, uint64_t request);
void pawli_call_answered(struct call *call);
void pawli_call_failed(struct pawli_keeper *keeper, struct call *call);

#endif
