/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * hands.h - whatever works on the jobs of a worker: the pool of threads that run handlers, or what
 * delivers webhooks from one thread. The worker's conductor is the one that calls them, but where
 * it says otherwise.
 */
#ifndef PAWLI_RUNTIME_HANDS_H
#define PAWLI_RUNTIME_HANDS_H

#include "runtime/pump.h"

struct pawli_hands_ops {
    /* The pump's signals. None of them blocks. */
    void (*start)(void *user, struct pawli_slot slot);
    void (*abort)(void *user, struct pawli_slot slot);
    void (*give_up)(void *user, struct pawli_slot slot);
    /* Wait, as pawli_pump_wait(), and work meanwhile. */
    void (*wait)(void *user, pawl_mono deadline);
    /* There are signals: end a wait. From any thread, under the pump's lock; NULL: wait is
     * pawli_pump_wait(). */
    void (*wake)(void *user);
    /* From now on so many at once. From any thread; NULL: they need not know. */
    void (*set)(void *user, size_t parallel_max);
    /* All has stopped: let its threads end. From any thread. */
    void (*end)(void *user);
    size_t (*stuck)(void *user); /* jobs that were given up and have not ended; any thread */
    void (*free)(void *user);    /* no thread uses it any more */
};

struct pawli_hands {
    const struct pawli_hands_ops *ops;
    void *user; /* NULL: there are none yet */
};

/* What a worker has made by the time its hands are. All of it outlives them. */
struct pawli_hands_place {
    pawl_runner *runner; /* to be used once it has started */
    struct pawli_pump *pump;
    struct pawli_crew *crew;
    struct pawli_watch *watch;
    const pawl_opener *opener;
    const char *worker;
    const pawl_clock *clock;
    const pawl_random *random;
    const pawl_worker_settings *settings; /* as it starts */
};

/* Makes hands for a place. PAWL_NO_MEMORY and others. */
struct pawli_hands_maker {
    pawl_code (*make)(void *user, const struct pawli_hands_place *place,
                      struct pawli_hands *ret_hands, pawl_err *err);
    /* Start threads of its own in the crew; NULL: it has none. */
    pawl_code (*start)(void *hands);
    void *user;
    size_t threads_max;   /* in the crew, ever */
    size_t lines_max;     /* queues that it may add; 0: none */
    const char *shows_as; /* what its presence row names as queues; NULL: its queues */
};

#endif
