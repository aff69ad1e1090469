/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * desk.h - drives one keeper by hand, for tests that read as stories: time is turned, answers are
 * given, and what the keeper does is compared with a line of text.
 *
 *     desk_does(desk, "claim:poll 4");
 *     desk_claimed(desk, 1);
 *     desk_does(desk, "start 0");
 *
 * A RENEW shows its slots, with a star behind those that have not started; a SETTLE shows
 * slot=action/reason+delay.
 */
#ifndef PAWLI_TEST_DESK_H
#define PAWLI_TEST_DESK_H

#include "core/keeper.h"

#define DESK_SLOTS_MAX 256

struct desk {
    struct pawli_keeper *keeper;
    pawl_mono now;
    pawl_worker_settings settings;
    int64_t lease_ms;                        /* of the leases that it grants */
    int64_t timeout_ms;                      /* of the jobs that it grants */
    uint64_t claim, renew, settle, release;  /* the latest request of each kind */
    pawl_mono renew_deadline;                /* of the latest renewal */
    struct pawli_slot slots[DESK_SLOTS_MAX]; /* by index: as last granted */
    struct pawli_slot renew_slots[DESK_SLOTS_MAX];
    size_t renew_count;
    struct pawli_slot settle_slots[DESK_SLOTS_MAX];
    size_t settle_count;
    struct pawli_slot release_slots[DESK_SLOTS_MAX];
    size_t release_count;
    pawl_lease last_lease; /* of the last item of a call */
    pawl_mono kill_by;     /* of the last abort */
    uint64_t jobs;         /* granted so far: job n has the id n, and version 1; claimed: place n */
};

/* Small numbers: 2 handlers, a buffer of 2, a lease of 4 s (so a beat a second), polls each second,
 * grace 0.5 s. */
void desk_init(struct desk *desk);
/* Make the keeper with desk->settings, for `lines_count` lines with these maxima (NULL: one line
 * without). */
void desk_open(struct desk *desk, const int64_t *held_max, size_t lines_count);
void desk_close(struct desk *desk);

void desk_turn(struct desk *desk, int64_t ms);

/* Take every action that there is now, and compare them, joined by "; ", with `expected`. */
void desk_does(struct desk *desk, const char *expected);

/* Answers to the latest call of a kind, for all that it asked. */
void desk_claimed(struct desk *desk, size_t count); /* new jobs of line 0 */
void desk_claimed_line(struct desk *desk, size_t line, size_t count);
void desk_renewed(struct desk *desk, pawl_code code);
void desk_settled(struct desk *desk, pawl_code code);
void desk_released(struct desk *desk, pawl_code code);
void desk_failed(struct desk *desk, uint64_t request, pawl_code code);

/* What stands in the worker's name: the jobs numbered so, of line 0. */
void desk_mine(struct desk *desk, const uint64_t *jobs, size_t jobs_count);

void desk_ended(struct desk *desk, uint32_t index, enum pawli_result result);

#endif
