/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tally.h - how often each fault and each interesting situation came about. A fault that never
 * happened has proved nothing, so a whole run that misses one fails.
 */
#ifndef SIM_TALLY_H
#define SIM_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* X(name, text). Faults first, then what came of them. */
#define SIM_TALLIES(X)                                                    \
    X(CRASH, "worker crashes")                                            \
    X(CRASH_IN_STEP, "worker crashes within a step")                      \
    X(CRASH_BY_HANDLER, "worker crashes by a handler")                    \
    X(PAUSE, "worker pauses")                                             \
    X(HELD_CALL, "pauses between a decision and its call")                \
    X(CUT, "workers cut off")                                             \
    X(DROP_REQUEST, "requests dropped")                                   \
    X(DROP_REPLY, "replies dropped")                                      \
    X(FAR_DELAY, "messages held up for long")                             \
    X(DUPLICATE, "requests duplicated")                                   \
    X(REORDER, "requests overtaken by a later one of the same worker")    \
    X(RAN_UNAWAITED, "requests that ran after their caller had given up") \
    X(STORE_DOWN, "store outages")                                        \
    X(REFUSED_DOWN, "requests refused by a store that was down")          \
    X(STORE_JUMP_AHEAD, "store clock jumps ahead")                        \
    X(STORE_JUMP_BACK, "store clock jumps back")                          \
    X(STORE_DRIFT, "runs with a store clock that drifts")                 \
    X(WORKER_DRIFT, "runs with worker clocks that drift")                 \
    X(WALL_JUMP, "producer clock jumps")                                  \
    X(WAKE, "wake hints delivered")                                       \
    X(WAKE_LOST, "wake hints lost")                                       \
    X(STRETCH, "calls that waited for the store's lock")                  \
    X(STRETCH_OVERTAKEN, "of these, overtaken by other calls")            \
    X(OP_CANCEL, "operator: cancels")                                     \
    X(OP_CANCEL_RUNNING, "operator: cancels of running jobs")             \
    X(OP_REDRIVE, "operator: redrives")                                   \
    X(OP_DISCARD, "operator: discards")                                   \
    X(OP_QUEUE_PAUSE, "operator: queue pauses")                           \
    X(OP_QUEUE_SET, "operator: queue settings changed")                   \
    X(OP_BOUND_SET, "operator: bounds on jobs in flight changed")         \
    X(DOWNSTREAM, "downstream pauses")                                    \
    X(SHUTDOWN, "graceful shutdowns")                                     \
    X(ABORT_ALL, "shutdowns that abort everything")                       \
    X(SETTINGS, "worker settings changed")                                \
    X(DELAYED, "jobs delayed")                                            \
    X(START_BY, "jobs with a start-by deadline")                          \
    X(KEYED, "jobs with an ordering key")                                 \
    X(KEY_WAITING, "claims that left jobs waiting behind their key")      \
    X(BOUND_REACHED, "claims that a bound on jobs in flight kept small")  \
    X(DEDUPE_HIT, "enqueues refused as duplicates")                       \
    X(OLD_ID, "enqueues refused because the id has existed")              \
    X(ENQUEUE_REPEATED, "enqueues repeated after a lost reply")           \
    X(END_DONE, "handlers: succeeded")                                    \
    X(END_RETRY, "handlers: failed")                                      \
    X(END_FAIL, "handlers: failed for good")                              \
    X(END_SNOOZE, "handlers: snoozed")                                    \
    X(END_SETTLED, "handlers: settled by themselves")                     \
    X(END_PAST_LEASE, "handlers: ran past the first lease")               \
    X(END_OBEYED, "handlers: stopped when told")                          \
    X(END_KILLED, "handlers: killed at the end of the grace period")      \
    X(HANG, "handlers: hung")                                             \
    X(DEAF, "handlers: did not hear an abort")                            \
    X(SEND, "handlers: sends allowed")                                    \
    X(SEND_REFUSED, "handlers: sends refused")                            \
    X(SETTLE_REPLAY, "settle replays answered OK")                        \
    X(SETTLE_STALE, "settles refused as stale")                           \
    X(SETTLE_WITHHELD, "settles and releases withheld after a pause")     \
    X(RENEW_STALE, "renewals refused as stale")                           \
    X(RENEW_CANCELLED, "renewals answered: cancelled")                    \
    X(RENEW_TIMEOUT, "renewals answered: execution timeout")              \
    X(RELEASE_STALE, "releases refused as stale")                         \
    X(CLAIM_LOST, "claims whose reply was lost")                          \
    X(CLAIM_LATE, "claimed jobs in a reply that came too late")           \
    X(MINE, "asked what is mine")                                         \
    X(MINE_PAGES, "asked for another page of it")                         \
    X(ADOPTED, "leases learned of by asking")                             \
    X(ADOPTED_STARTED, "of these, started")                               \
    X(ABORT_LEASE_LOST, "aborts: lease lost")                             \
    X(ABORT_BEAT_FAILED, "aborts: beat failed")                           \
    X(ABORT_CANCELLED, "aborts: cancelled")                               \
    X(ABORT_TIMEOUT, "aborts: execution timeout")                         \
    X(ABORT_SHUTDOWN, "aborts: shutdown")                                 \
    X(ABORT_ABORT_ALL, "aborts: told to abort all")                       \
    X(GIVE_UP, "handlers given up")                                       \
    X(OVER_SETTLED, "over: settled")                                      \
    X(OVER_BY_HANDLER, "over: settled by the handler")                    \
    X(OVER_RELEASED, "over: released")                                    \
    X(OVER_FENCED, "over: fenced")                                        \
    X(OVER_AT_RISK, "over: lease at risk")                                \
    X(RELEASE_NOT_STARTED, "releases: not started at shutdown")           \
    X(RELEASE_HELD_TOO_LONG, "releases: held too long")                   \
    X(RELEASE_NO_ROOM, "releases: no room for what was found")            \
    X(STOPPED_CLEAN, "shutdowns that left nothing")                       \
    X(STOPPED_LEFT, "shutdowns that left jobs to the reaper")             \
    X(REAPED, "jobs put back by the reaper")                              \
    X(REAPED_FAILED, "jobs ended by the reaper")                          \
    X(JOB_SUCCEEDED, "jobs: succeeded")                                   \
    X(JOB_EXHAUSTED, "jobs: retries exhausted")                           \
    X(JOB_FATAL, "jobs: failed for good")                                 \
    X(JOB_POISON, "jobs: poison")                                         \
    X(JOB_CANCELLED, "jobs: cancelled")                                   \
    X(JOB_START_BY, "jobs: not started in time")

enum sim_tally {
#define X(name, text) SIM_TALLY_##name,
    SIM_TALLIES(X)
#undef X
    SIM_TALLY_COUNT
};

struct sim_tallies {
    uint64_t count[SIM_TALLY_COUNT];
};

static inline void sim_tally(struct sim_tallies *tallies, enum sim_tally which)
{
    tallies->count[which]++;
}

void sim_tallies_add(struct sim_tallies *to, const struct sim_tallies *from);

/* Print them all, one line each, and return how many stand at 0. */
int sim_tallies_print(const struct sim_tallies *tallies, FILE *out);

#endif
