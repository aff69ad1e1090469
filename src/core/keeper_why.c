/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper_why.c - the names of the keeper's reasons, as logs and metrics print them.
 * Owns:  the table of names.
 * Never: decides anything.
 */
#include "core/keeper.h"

static const char *const names[PAWLI_WHYS] = {
    [PAWLI_WHY_NONE] = "none",
    [PAWLI_WHY_POLL] = "poll",
    [PAWLI_WHY_WAKE] = "wake",
    [PAWLI_WHY_MORE] = "more",
    [PAWLI_WHY_STORE_BACK] = "store_back",
    [PAWLI_WHY_CLAIM_LOST] = "claim_lost",
    [PAWLI_WHY_MINE_AGAIN] = "mine_again",
    [PAWLI_WHY_BEAT] = "beat",
    [PAWLI_WHY_ADOPT] = "adopt",
    [PAWLI_WHY_CLAIMED] = "claimed",
    [PAWLI_WHY_ENDED] = "ended",
    [PAWLI_WHY_REPEAT] = "repeat",
    [PAWLI_WHY_NOT_STARTED] = "not_started",
    [PAWLI_WHY_HELD_TOO_LONG] = "held_too_long",
    [PAWLI_WHY_NO_ROOM] = "no_room",
    [PAWLI_WHY_LEASE_LOST] = "lease_lost",
    [PAWLI_WHY_BEAT_FAILED] = "beat_failed",
    [PAWLI_WHY_CANCELLED] = "cancelled",
    [PAWLI_WHY_TIMEOUT] = "timeout",
    [PAWLI_WHY_SHUTDOWN] = "shutdown",
    [PAWLI_WHY_ABORT_ALL] = "abort_all",
    [PAWLI_WHY_ABORT_IGNORED] = "abort_ignored",
    [PAWLI_WHY_SETTLED] = "settled",
    [PAWLI_WHY_SETTLED_BY_HANDLER] = "settled_by_handler",
    [PAWLI_WHY_RELEASED] = "released",
    [PAWLI_WHY_FENCED] = "fenced",
    [PAWLI_WHY_AT_RISK] = "at_risk",
    [PAWLI_WHY_REFUSED] = "refused",
};

const char *pawli_why_name(enum pawli_why why)
{
    return why >= 0 && why < PAWLI_WHYS ? names[why] : "?";
}
