/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper_claim.c - when the keeper asks for work, how much of it, and what it does when the answer
 *                  is lost.
 * Owns:  claims, and asking what stands in the worker's own name.
 * Never: asks for more than it has room for (K7); forgets a claim whose reply was lost (K4).
 */
#include "core/keeper_table.h"
#include "base/random.h"

#include <assert.h>
#include <string.h>

#define POLL_JITTER_PART 10 /* polls come up to a tenth of the interval early, never late */
#define MORE_LATER_MS    5  /* until a line that is nearly full is filled up */
#define NEARLY_MIN       16 /* of a smaller one each job counts */
#define NEARLY_PART      4  /* it is, when less than such a part of it is free */
#define MINE_PER_LEASE   4  /* after a lost claim, how often per lease the store is asked again */

/* ---------------------------------------------------------------- room */

static size_t settings_capacity(const struct pawli_keeper *keeper)
{
    int64_t buffer = keeper->is_buffer_closed ? 0 : keeper->settings.buffer_max;
    return (size_t)(keeper->settings.parallel_max + buffer);
}

/* How many jobs more it could take. A third of the table is kept for settles that lag, another for
 * strays. */
static size_t room(const struct pawli_keeper *keeper)
{
    size_t capacity = settings_capacity(keeper);
    size_t held = keeper->running + keeper->buffered;
    size_t left = capacity > held ? capacity - held : 0;
    size_t kept = keeper->holds_count / 3;
    size_t free = keeper->free_count > kept ? keeper->free_count - kept : 0;
    if (left > free)
        left = free;
    size_t batch = (size_t)keeper->settings.claim_batch_max;
    return left < batch ? left : batch;
}

static int64_t line_room(const struct pawli_keeper *keeper, const struct line *line, size_t all)
{
    if (line->is_paused || keeper->is_all_paused)
        return 0;
    int64_t left = (int64_t)all;
    if (line->held_max != PAWL_DEFAULT && line->held_max - line->held < left)
        left = line->held_max - line->held;
    return left > 0 ? left : 0;
}

/* Whether a claim is worth its round trip now: a slot would stand idle, or a good part of the
 * buffer is empty. */
static bool is_claim_wanted(const struct pawli_keeper *keeper)
{
    if (keeper->is_draining || keeper->is_claim_lost || keeper->claim.request != 0)
        return false;
    size_t left = room(keeper);
    if (left == 0)
        return false;
    if (!TAILQ_EMPTY(&keeper->startable) && left < (settings_capacity(keeper) + 3) / 4)
        return false;
    for (size_t i = 0; i < keeper->lines_count; i++)
        if (line_room(keeper, &keeper->lines[i], left) > 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- claims */

static void poll_later(struct pawli_keeper *keeper)
{
    int64_t poll_us = keeper->settings.poll_ms * 1000;
    uint64_t early = pawli_random_below(keeper->random, (uint64_t)(poll_us / POLL_JITTER_PART) + 1);
    keeper->claim_at = (pawl_mono){keeper->now.us + poll_us - (int64_t)early};
    keeper->claim_why = PAWLI_WHY_POLL;
    if (PAWLI_MUTANT(PAWLI_MUTANT_WAKE_WITHOUT_POLL))
        keeper->claim_at = PAWLI_MONO_NEVER;
}

static void claim_by(struct pawli_keeper *keeper, pawl_mono at, enum pawli_why why)
{
    if (!pawli_mono_is_before(at, keeper->claim_at))
        return; /* it is due by then, for a reason of its own */
    keeper->claim_at = at;
    keeper->claim_why = why;
}

static void claim_soon(struct pawli_keeper *keeper, enum pawli_why why)
{
    if (keeper->claim.request != 0)
        keeper->is_room_new = true; /* the call under way was made without it */
    else
        claim_by(keeper, keeper->now, why);
}

/* Whether it holds so much of what it may that nobody waits for the rest. */
static bool is_nearly_full(const struct pawli_keeper *keeper, const struct line *line)
{
    return line->held_max != PAWL_DEFAULT && line->held_max >= NEARLY_MIN &&
           line_room(keeper, line, (size_t)line->held_max) * NEARLY_PART < line->held_max;
}

void pawli_claim_room(struct pawli_keeper *keeper, const struct line *line)
{
    /* Another line's poll may have found nothing meanwhile: that says nothing of this one. */
    if (!line->has_more || line_room(keeper, line, 1) == 0 || keeper->claim.request != 0)
        return; /* a call under way: it is looked at again when that is answered */
    int64_t later_ms = is_nearly_full(keeper, line) ? MORE_LATER_MS : 0;
    claim_by(keeper, pawli_mono_add_ms(keeper->now, later_ms), PAWLI_WHY_MORE);
}

bool pawli_claim_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    if (!is_claim_wanted(keeper))
        return false;
    if (pawli_mono_is_before(keeper->now, keeper->claim_at) ||
        pawli_mono_is_before(keeper->now, keeper->claim.retry_at))
        return false;

    size_t left = room(keeper);
    size_t count = 0;
    int64_t asked = 0;
    for (size_t i = 0; i < keeper->lines_count; i++) {
        size_t at = (keeper->line_first + i) % keeper->lines_count;
        struct line *line = &keeper->lines[at];
        line->asked = line_room(keeper, line, left);
        if (line->asked > 0)
            keeper->action_lines[count++] = (struct pawli_action_line){at, line->asked};
        /* Until it has given all of it. One that is not asked for want of room may have what this
         * claim is made for: it is asked when it has room. */
        line->has_more = line->asked == 0;
        asked += line->asked;
    }
    assert(count > 0);
    keeper->line_first = (keeper->line_first + 1) % keeper->lines_count;
    keeper->reserved = asked < (int64_t)left ? (size_t)asked : left;

    pawli_call_open(keeper, &keeper->claim, ret_action);
    keeper->is_mine = false;
    ret_action->kind = PAWLI_ACTION_CLAIM;
    ret_action->why = keeper->claim_why;
    ret_action->jobs_max = (int64_t)keeper->reserved;
    ret_action->lines = keeper->action_lines;
    ret_action->lines_count = count;
    return true;
}

/* Leases may stand in our name that we do not know of: ask, and go on asking while a late request
 * may still run. */
static void ask_mine(struct pawli_keeper *keeper)
{
    if (PAWLI_MUTANT(PAWLI_MUTANT_CLAIM_LOST_FORGOTTEN))
        return;
    keeper->mine_at = keeper->now;
    keeper->mine_why = PAWLI_WHY_CLAIM_LOST;
    pawl_mono until = pawli_mono_add_ms(keeper->now, keeper->settings.call_timeout_ms +
                                                         keeper->lease_longest_ms);
    if (pawli_mono_is_before(keeper->mine_until, until))
        keeper->mine_until = until;
}

static struct pawli_slot slot_of(const struct hold *hold)
{
    return (struct pawli_slot){hold->index, hold->generation};
}

void pawli_keeper_on_claimed(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                             const struct pawli_grant *grants, size_t grants_count,
                             struct pawli_slot *ret_slots)
{
    assert(grants_count == 0 || (grants != NULL && ret_slots != NULL));
    pawli_keeper_look(keeper, now);
    for (size_t i = 0; i < grants_count; i++)
        ret_slots[i] = (struct pawli_slot){PAWLI_SLOT_NONE, 0};
    if (!pawli_call_is_open(&keeper->claim, request) || keeper->is_mine) {
        /* A reply that comes too late, or twice: its leases are found by asking. */
        if (grants_count > 0)
            ask_mine(keeper);
        return;
    }

    pawl_mono sent_at = keeper->claim.sent_at;
    bool is_all_given = grants_count >= keeper->reserved;
    pawli_call_answered(&keeper->claim);
    keeper->reserved = 0;
    for (size_t i = 0; i < grants_count; i++) {
        if (grants[i].line >= keeper->lines_count || keeper->free_count == 0 ||
            keeper->is_stopped) {
            ask_mine(keeper); /* more than was asked for */
            continue;
        }
        struct hold *hold = pawli_hold_take(keeper, &grants[i], sent_at);
        ret_slots[i] = slot_of(hold);
        struct line *line = &keeper->lines[hold->line];
        if (--line->asked == 0)
            line->has_more = true; /* it gave all that it was asked for */
        if (keeper->is_draining)
            pawli_hold_return(keeper, hold, PAWLI_WHY_NOT_STARTED);
    }

    poll_later(keeper);
    for (size_t i = 0; i < keeper->lines_count; i++) {
        struct line *line = &keeper->lines[i];
        if (is_all_given && line->asked > 0)
            line->has_more = true; /* there was no room for what it may have had */
        pawli_claim_room(keeper, line);
    }
    if (keeper->is_room_new)
        claim_soon(keeper, PAWLI_WHY_MORE);
    if (keeper->is_woken)
        claim_soon(keeper, PAWLI_WHY_WAKE);
    keeper->is_woken = keeper->is_room_new = false;
}

void pawli_claim_failed(struct pawli_keeper *keeper, pawl_code code)
{
    pawli_call_failed(keeper, &keeper->claim);
    if (keeper->is_mine)
        return; /* mine_at stands: it is asked again after the delay */
    keeper->claim_at = keeper->claim.retry_at;
    keeper->claim_why = PAWLI_WHY_STORE_BACK;
    if (code != PAWL_UNKNOWN || PAWLI_MUTANT(PAWLI_MUTANT_CLAIM_LOST_FORGOTTEN)) {
        keeper->reserved = 0;
        return;
    }
    keeper
        ->is_claim_lost = true; /* the room stays reserved until the store has told what it holds */
    ask_mine(keeper);
}

/* ---------------------------------------------------------------- mine */

static bool is_mine_wanted(const struct pawli_keeper *keeper)
{
    if (keeper->claim.request != 0 || keeper->mine_at.us == PAWLI_MONO_NEVER.us)
        return false;
    return !keeper->is_draining || keeper->is_claim_lost;
}

bool pawli_mine_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    if (!is_mine_wanted(keeper))
        return false;
    if (pawli_mono_is_before(keeper->now, keeper->mine_at) ||
        pawli_mono_is_before(keeper->now, keeper->claim.retry_at))
        return false;
    pawli_call_open(keeper, &keeper->claim, ret_action);
    keeper->is_mine = true;
    ret_action->kind = PAWLI_ACTION_MINE;
    ret_action->why = keeper->mine_why;
    return true;
}

static bool is_same(const pawl_lease *lease, const pawl_id *job, int64_t version)
{
    return lease->version == version && pawl_id_compare(&lease->job, job) == 0;
}

/* Held now, or stopped under this very lease before (K9). Asked rarely, so a walk will do. */
static bool is_known(const struct pawli_keeper *keeper, const pawl_lease *lease)
{
    for (size_t i = 0; i < keeper->holds_count; i++) {
        const struct hold *hold = &keeper->holds[i];
        if (hold->state != HOLD_FREE && is_same(lease, &hold->lease.job, hold->lease.version))
            return true;
    }
    for (size_t i = 0; i < keeper->burnt_max && i < keeper->burnt_count; i++)
        if (is_same(lease, &keeper->burnt[i].job, keeper->burnt[i].version))
            return true;
    return false;
}

/*
 * The answer may be older than a settle of ours: only a renewal shows that the lease stands (K5).
 * So even what is to be given back is confirmed first.
 */
static struct pawli_slot adopt(struct pawli_keeper *keeper, const struct pawli_grant *grant)
{
    struct hold *hold = pawli_hold_take(keeper, grant, keeper->claim.sent_at);
    if (keeper->is_draining)
        hold->confirm_why = PAWLI_WHY_NOT_STARTED;
    else if (keeper->running + keeper->buffered > settings_capacity(keeper))
        hold->confirm_why = PAWLI_WHY_NO_ROOM;
    if (!PAWLI_MUTANT(PAWLI_MUTANT_ADOPT_UNCONFIRMED)) {
        hold->is_adopted = true;
        hold->must_confirm = true;
        hold->beat_at = keeper->now;
        pawli_hold_place(keeper, hold);
        pawli_hold_rearm(keeper, hold);
    }
    return slot_of(hold);
}

void pawli_keeper_on_mine(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                          const struct pawli_mine_page *page, struct pawli_slot *ret_slots)
{
    assert(page->grants_count == 0 || (page->grants != NULL && ret_slots != NULL));
    pawli_keeper_look(keeper, now);
    bool is_open = pawli_call_is_open(&keeper->claim, request) && keeper->is_mine;
    bool has_missed = false;
    for (size_t i = 0; i < page->grants_count; i++) {
        ret_slots[i] = (struct pawli_slot){PAWLI_SLOT_NONE, 0};
        if (!is_open || is_known(keeper, &page->grants[i].lease))
            continue;
        if (keeper->free_count == 0 || page->grants[i].line >= keeper->lines_count)
            has_missed = true;
        else
            ret_slots[i] = adopt(keeper, &page->grants[i]);
    }
    if (!is_open || !page->is_last)
        return;

    pawli_call_answered(&keeper->claim);
    keeper->reserved = 0;
    keeper->is_claim_lost = false;
    pawl_mono again = pawli_mono_add_ms(keeper->now, keeper->lease_longest_ms / MINE_PER_LEASE);
    bool is_again = has_missed || pawli_mono_is_before(again, keeper->mine_until);
    keeper->mine_at = is_again ? again : PAWLI_MONO_NEVER;
    keeper->mine_why = PAWLI_WHY_MINE_AGAIN;
    claim_soon(keeper, PAWLI_WHY_STORE_BACK);
}

/* ---------------------------------------------------------------- hints and pauses */

void pawli_keeper_on_wake(struct pawli_keeper *keeper, pawl_mono now)
{
    pawli_keeper_look(keeper, now);
    if (keeper->claim.request != 0)
        keeper->is_woken = true; /* the claim under way may have looked too early */
    else
        claim_soon(keeper, PAWLI_WHY_WAKE);
}

static void place_all(struct pawli_keeper *keeper)
{
    for (size_t i = 0; i < keeper->holds_count; i++)
        if (keeper->holds[i].state == HOLD_BUFFERED)
            pawli_hold_place(keeper, &keeper->holds[i]);
}

static void set_paused(struct pawli_keeper *keeper, size_t line, bool is_paused)
{
    assert(line == PAWLI_LINE_ALL || line < keeper->lines_count);
    if (line == PAWLI_LINE_ALL)
        keeper->is_all_paused = is_paused;
    else
        keeper->lines[line].is_paused = is_paused;
    place_all(keeper);
}

void pawli_keeper_on_pause(struct pawli_keeper *keeper, pawl_mono now, size_t line)
{
    pawli_keeper_look(keeper, now);
    set_paused(keeper, line, true);
}

void pawli_keeper_on_resume(struct pawli_keeper *keeper, pawl_mono now, size_t line)
{
    pawli_keeper_look(keeper, now);
    set_paused(keeper, line, false);
    claim_soon(keeper, PAWLI_WHY_MORE);
}

void pawli_keeper_on_line(struct pawli_keeper *keeper, pawl_mono now,
                          struct pawli_keeper_bound bound)
{
    assert(bound.line <= keeper->lines_count && bound.line < keeper->lines_max);
    assert(bound.held_max == PAWL_DEFAULT || bound.held_max >= 0);
    pawli_keeper_look(keeper, now);
    struct line *line = &keeper->lines[bound.line];
    if (bound.line == keeper->lines_count) {
        *line = (struct line){.has_more = true}; /* nobody has asked yet */
        keeper->lines_count++;
    }
    line->held_max = bound.held_max;
    pawli_claim_room(keeper, line);
}

int64_t pawli_keeper_line_held(const struct pawli_keeper *keeper, size_t line)
{
    assert(line < keeper->lines_count);
    const struct line *at = &keeper->lines[line];
    return at->held + (keeper->claim.request != 0 || keeper->is_claim_lost ? at->asked : 0);
}

pawl_mono pawli_claim_deadline(const struct pawli_keeper *keeper)
{
    pawl_mono at = PAWLI_MONO_NEVER;
    if (is_mine_wanted(keeper))
        at = keeper->mine_at;
    if (is_claim_wanted(keeper))
        at = pawli_mono_min(at, keeper->claim_at);
    /* Not before the store may be tried again. */
    return pawli_mono_is_before(at, keeper->claim.retry_at) ? keeper->claim.retry_at : at;
}
