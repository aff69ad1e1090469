/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - events on their way to the callback that logs them. Telling one never blocks: where
 * the callback is too slow, events are dropped and counted.
 */
#ifndef PAWLI_RUNTIME_WATCH_H
#define PAWLI_RUNTIME_WATCH_H

#include "pawl/worker.h"

struct pawli_watch;

/* `worker` is who tells; copied. NULL: memory ran out. */
struct pawli_watch *pawli_watch_new(const pawl_watch *to, const pawl_clock *clock,
                                    const char *worker);
void pawli_watch_free(struct pawli_watch *watch); /* accepts NULL; no thread may use it */

/* Count what happens there, from now on; NULL: nowhere. Before the first event. */
void pawli_watch_count_in(struct pawli_watch *watch, pawl_metrics *metrics);
pawl_metrics *pawli_watch_metrics(const struct pawli_watch *watch);

/* Whether anybody wants events of this level: what is not wanted need not be put together. */
bool pawli_watch_wants(const struct pawli_watch *watch, pawl_level level);

/* Another level from now on. From every thread. */
void pawli_watch_set_level(struct pawli_watch *watch, pawl_level level);

/* Count an event, and put it in line; `at` and `worker` are filled in here. From every thread. */
void pawli_watch_tell(struct pawli_watch *watch, const pawl_event *event);

/* The thread that calls the callback: until all who tell have left, and all in line is told. */
void pawli_watch_run(void *watch);

/* One more thread tells until it leaves. Whoever made the watcher is the first, and leaves, too.
 * Those who tell in between need not join: what they tell after the last has left is counted, and
 * told to nobody. */
void pawli_watch_join(struct pawli_watch *watch);
void pawli_watch_leave(struct pawli_watch *watch);

#endif
