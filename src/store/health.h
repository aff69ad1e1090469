/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * health.h - whether a deployment is fit: findings, each with a level, a name to search for, and
 * what to do.
 */
#ifndef PAWLI_STORE_HEALTH_H
#define PAWLI_STORE_HEALTH_H

#include "pawl/pawl.h"

enum pawli_health_level {
    PAWLI_HEALTH_OK = 0,
    PAWLI_HEALTH_WARNING, /* it works, but worse than it could, or not for long */
    PAWLI_HEALTH_ERROR    /* what Pawl promises does not hold */
};

struct pawli_finding {
    enum pawli_health_level level;
    const char *name;             /* constant: "reaper" */
    char text[PAWL_ERR_TEXT_MAX]; /* what was found; no secret */
    const char *advice;           /* constant; what to do; NULL: nothing */
};

/* Who is told what is found, and what is known of the deployment by then. */
struct pawli_health {
    void (*tell)(void *user, const struct pawli_finding *finding);
    void *user;
    int64_t workers; /* that have shown themselves lately */
    int64_t reapers; /* of these, those that are no part of a worker */
};

/* Tell one finding. The advice counts where the level is not OK. */
struct pawli_health_about {
    enum pawli_health_level level;
    const char *name;
    const char *advice;
};
void pawli_health_tell(const struct pawli_health *health, const struct pawli_health_about *about,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

struct pawli_health_args {
    int64_t reaper_interval_ms; /* PAWL_DEFAULT: what derives from the smallest lease */
    const pawl_clock *clock;    /* this machine's */
};

/*
 * Look at all that can be looked at through a handle: its clock, reapers, leases, and what the kind
 * of store has to say of itself (see pawli_store_ops.health). Changes nothing. PAWL_OK: everything
 * was told; otherwise what was found until then.
 */
pawl_code pawli_health_check(pawl_store *store, const struct pawli_health_args *args,
                             struct pawli_health *health, pawl_err *err);

/* Of these, only whether a reaper has run lately (RULE-020-020): for those who ask again and
 * again. */
pawl_code pawli_health_reaper(pawl_store *store, const struct pawli_health_args *args,
                              struct pawli_health *health, pawl_err *err);

/* The smallest lease of all queues; that of a queue without settings where there are none. */
pawl_code pawli_health_smallest_lease(pawl_store *store, int64_t *ret_ms, pawl_err *err);

#endif
