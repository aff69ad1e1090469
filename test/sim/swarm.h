/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * swarm.h - what one seed's run is made of. Each seed turns whole classes of trouble on or off and
 * draws sizes and rates, so that rare combinations are met and none hides behind another.
 */
#ifndef SIM_SWARM_H
#define SIM_SWARM_H

#include "pawl/pawl.h"

#define SIM_WORKERS_MAX   8
#define SIM_REAPERS_MAX   2
#define SIM_PRODUCERS_MAX 2
#define SIM_QUEUES_MAX    4
#define SIM_BOUND_MAX     6 /* the largest max_in_flight that is drawn */

/* Classes of trouble. */
enum sim_class {
    SIM_CLASS_CRASH = 0,    /* workers die, between and within steps, and come back */
    SIM_CLASS_PAUSE,        /* workers stand still for up to five leases */
    SIM_CLASS_HELD_CALL,    /* a worker stands still between deciding on a call and making it */
    SIM_CLASS_DROP,         /* requests and replies are lost */
    SIM_CLASS_FAR_DELAY,    /* requests and replies arrive long after anybody waits for them */
    SIM_CLASS_DUPLICATE,    /* a request arrives twice */
    SIM_CLASS_CUT,          /* a worker is cut off for a while */
    SIM_CLASS_STORE_DOWN,   /* the store answers nobody for a while */
    SIM_CLASS_STORE_JUMP,   /* the store's clock jumps */
    SIM_CLASS_STORE_DRIFT,  /* the store's clock runs fast or slow */
    SIM_CLASS_WORKER_DRIFT, /* the workers' clocks do */
    SIM_CLASS_WALL_JUMP,    /* the producers' wall clocks jump: only ids see them */
    SIM_CLASS_WAKE_LOST,    /* hints get lost */
    SIM_CLASS_STRETCH,      /* calls wait for the store's lock while the world goes on */
    SIM_CLASS_CANCEL,       /* operators cancel jobs */
    SIM_CLASS_DEAD_LETTER,  /* operators redrive and discard */
    SIM_CLASS_QUEUE_PAUSE,  /* operators pause and resume queues */
    SIM_CLASS_QUEUE_SET,    /* operators change leases */
    SIM_CLASS_DOWNSTREAM,   /* what is behind the handlers saturates */
    SIM_CLASS_SHUTDOWN,     /* workers are told to shut down, and come back */
    SIM_CLASS_SETTINGS,     /* workers get new settings while they run */
    SIM_CLASSES
};

/* How a job's handler behaves; drawn per job, most of them do not always. */
enum sim_temper {
    SIM_TEMPER_STEADY = 0, /* does its work and succeeds */
    SIM_TEMPER_FLAKY,      /* fails now and then */
    SIM_TEMPER_BROKEN,     /* always fails */
    SIM_TEMPER_FATAL,      /* says that no retry will help */
    SIM_TEMPER_LONG,       /* runs past the lease, and succeeds */
    SIM_TEMPER_HANGING,    /* never ends by itself */
    SIM_TEMPER_DEAF,       /* runs long, and does not hear an abort */
    SIM_TEMPER_KILLER,     /* takes its worker with it */
    SIM_TEMPER_SNOOZER,    /* asks to run later */
    SIM_TEMPER_OWN_SETTLE, /* settles in its own transaction */
    SIM_TEMPERS
};

struct sim_queue_plan {
    char name[16];
    pawl_queue_settings settings;
};

struct sim_worker_plan {
    pawl_worker_settings settings;
    uint32_t lines[SIM_QUEUES_MAX]; /* queues, in the order of its lines */
    int64_t held_max[SIM_QUEUES_MAX];
    uint32_t lines_count;
    int64_t drift_ppm;
};

/* Rates are per million: of messages, or of steps. Gaps are mean distances in ms. */
struct sim_plan {
    uint64_t seed;
    int64_t chaos_ms; /* faults go on for so long; then the world must drain */
    bool is_on[SIM_CLASSES];

    uint32_t workers;
    uint32_t reapers;
    uint32_t producers;
    uint32_t queues;
    struct sim_queue_plan queue[SIM_QUEUES_MAX];
    struct sim_worker_plan worker[SIM_WORKERS_MAX];
    int64_t lease_smallest_ms; /* that any queue has at any time */
    int64_t lease_largest_ms;
    int64_t reap_interval_ms;
    int64_t reap_batch_max;
    int64_t mine_page; /* jobs per page of mine */

    int64_t jobs_max;  /* enqueued in all */
    int64_t batch_max; /* rows per enqueue */
    int64_t enqueue_gap_ms;
    int64_t run_ms;       /* a usual handler takes up to so long */
    int64_t delay_max_ms; /* of delayed jobs and snoozes */
    uint32_t temper_weights[SIM_TEMPERS];
    int64_t delayed_ppm, start_by_ppm, dedupe_ppm, own_limits_ppm, old_id_ppm;
    int64_t keyed_ppm;  /* jobs with an ordering key */
    int64_t keys_count; /* of each queue */

    int64_t latency_us; /* a message takes up to so long */
    int64_t drop_ppm, far_ppm, duplicate_ppm, wake_lost_ppm, held_ppm, crash_step_ppm, stretch_ppm;
    int64_t gap_ms[SIM_CLASSES]; /* of those classes that strike from time to time */
    int64_t store_drift_ppm;
};

/* Draw the plan of a seed. `favour` (0: none) asks for a plan in which that mutant has a chance to
 * show. */
void sim_swarm_draw(struct sim_plan *plan, uint64_t seed, int favour);

/* How long after the last fault everybody is back at the usual pace, in ms. */
int64_t sim_swarm_calm_ms(const struct sim_plan *plan);

/* The longest that a worker waits for an answer, and until it tries again. */
int64_t sim_swarm_call_ms(const struct sim_plan *plan);

const char *sim_class_name(enum sim_class class);

#endif
