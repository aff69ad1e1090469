/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * producer.c - a producer that keeps what it was told.
 * Life:  as a worker's.
 * Owns:  which jobs there are: by chance.
 * Never: takes a lost answer for a yes or a no; says that a job is there before the store has.
 */
#include "chaos/chaos.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_MAX 60
#define AWAY_MS   50

struct producer {
    const struct chaos_role *role;
    struct chaos_control *control;
    struct pawli_seeded seeded;
    pawl_random random;
    struct pen pen;
};

static bool pause_ms(int64_t ms)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&end, 1, (int)ms) == 0;
}

static size_t below(struct producer *producer, size_t bound)
{
    return (size_t)pawli_random_below(&producer->random, bound);
}

/* One in fifty is for a program; of these one in twenty is slow. */
static void fill_row(struct producer *producer, pawl_enqueue_row *row)
{
    bool is_command = below(producer, 50) == 0;
    bool is_slow = is_command && below(producer, 20) == 0;
    pawl_enqueue_init(row);
    row->queue = is_command ? CHAOS_SHELL : crash_queues[below(producer, CRASH_QUEUES)];
    row->payload = is_slow ? "slow\n" : "work\n";
    row->payload_len = 5;
    row->priority = (int)below(producer, 10);
    row->delay_ms = below(producer, 20) == 0 ? 60 : 0;
    row->ordering_key = crash_draw_key(&producer->random);
    if (pawl_id_new(producer->pen.store, row, &row->id, NULL) != PAWL_OK)
        abort(); /* the row has all it needs */
}

/* Some jobs, asked for until there is an answer: the ids are the producer's own. */
static bool produce(struct producer *producer, size_t count)
{
    pawl_enqueue_row rows[BATCH_MAX];
    pawl_enqueued results[BATCH_MAX];
    for (size_t i = 0; i < count; i++)
        fill_row(producer, &rows[i]);
    while (pawl_enqueue(producer->pen.store, rows, count, results, NULL) != PAWL_OK) {
        if (!pause_ms(AWAY_MS))
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (results[i].code == PAWL_OK || results[i].code == PAWL_EXISTS)
            pen_ack(&producer->pen, &rows[i].id);
    }
    return true;
}

int producer_run(const struct chaos_role *role)
{
    struct producer *producer = calloc(1, sizeof(*producer));
    pawl_store *store;
    if (producer == NULL)
        return 70;
    producer->role = role;
    producer->control = worker_control();
    producer->seeded.state = role->seed;
    producer->random = pawli_seeded_as_random(&producer->seeded);
    pen_open(&producer->pen, role->folder, role->actor);
    while ((store = role->kind->open(role->where)) == NULL) {
        if (!pause_ms(AWAY_MS))
            return 0;
    }
    pen_take_store(&producer->pen, store);
    /* What was missed while the store was away is made good. */
    int64_t next_ms = chaos_now_ms();
    for (bool is_going = true; is_going;) {
        size_t count = 1 + below(producer, BATCH_MAX);
        int64_t ahead_ms = next_ms - chaos_now_ms();
        next_ms += (int64_t)count * 1000 / role->rate;
        is_going = pause_ms(ahead_ms > 0 ? ahead_ms : 0) &&
                   (atomic_load(&producer->control->is_enough) != 0 || produce(producer, count));
    }
    pen_close(&producer->pen);
    role->kind->shut();
    free(producer);
    return 0;
}
