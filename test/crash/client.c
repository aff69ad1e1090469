/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * client.c - the processes that are killed: they produce, work, reap and meddle, and write down all
 * that they do.
 * Life:  started by the director with a pipe for its standard input; ends when that ends, or at any
 *        moment.
 * Owns:  what a client does with the store's answers.
 * Never: takes a lost answer for a yes or a no.
 */
#include "crash/crash.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_MAX     6
#define LEASE_MS      400
#define AWAY_MS       30 /* before the next try, while the store is away */
#define DRAIN_TRIES   600
#define DRAIN_MS      50
#define OPERATOR_PAGE 8
#define KEYED_PART    8 /* of the jobs, one part has an ordering key */

const char *const crash_queues[CRASH_QUEUES] = {"mail", "print"};

const char *crash_draw_key(const pawl_random *random)
{
    static const char *const keys[] = {"ada",   "bertha", "chan", "dora", "erik", "fatima",
                                       "grace", "hedy",   "ivan", "joan", "kofi", "lise"};
    return pawli_random_below(random, KEYED_PART) == 0
               ? keys[pawli_random_below(random, sizeof(keys) / sizeof(keys[0]))]
               : NULL;
}

const char *crash_role_name(enum crash_role role)
{
    static const char *const names[CRASH_ROLES] = {"producer", "worker", "reaper", "operator"};
    return names[role];
}

/* ---------------------------------------------------------------- chance and time */

static size_t below(struct client *client, size_t bound)
{
    return (size_t)pawli_random_below(&client->random, bound);
}

/* Wait. False: it is time to end. */
static bool pause_ms(size_t ms)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&end, 1, (int)ms) == 0;
}

/* ---------------------------------------------------------------- producers */

static void fill_rows(struct client *client, pawl_enqueue_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = crash_queues[below(client, CRASH_QUEUES)];
        rows[i].payload = "work";
        rows[i].payload_len = 4;
        rows[i].priority = (int)below(client, 10);
        rows[i].delay_ms = below(client, 5) == 0 ? 60 : 0;
        rows[i].ordering_key = crash_draw_key(&client->random);
        if (pawl_id_new(client->pen.store, &rows[i], &rows[i].id, NULL) != PAWL_OK)
            abort(); /* the row has all it needs */
    }
}

/* Until it is time to end. */
static bool stand_still(void)
{
    while (pause_ms(AWAY_MS))
        ;
    return false;
}

/* Some jobs, asked for until there is an answer: the ids are the producer's own. */
static bool produce(struct client *client)
{
    pawl_enqueue_row rows[BATCH_MAX];
    pawl_enqueued results[BATCH_MAX];
    size_t count = client->is_early ? 1 : 1 + below(client, BATCH_MAX);
    fill_rows(client, rows, count);
    if (client->is_early) {
        pen_ack(&client->pen, &rows[0].id);
        if (++client->early_count == CRASH_EARLY_JOBS)
            return stand_still();
    }
    while (pawl_enqueue(client->pen.store, rows, count, results, NULL) != PAWL_OK) {
        if (!pause_ms(AWAY_MS))
            return false;
    }
    for (size_t i = 0; !client->is_early && i < count; i++) {
        if (results[i].code == PAWL_OK || results[i].code == PAWL_EXISTS)
            pen_ack(&client->pen, &rows[i].id);
    }
    return pause_ms(5 + below(client, 40));
}

/* ---------------------------------------------------------------- workers */

/* Settle until there is an answer: a repeated settle finds its own row. */
static bool settle(struct client *client, const pawl_settle_row *rows, size_t count)
{
    pawl_settled results[BATCH_MAX];
    while (count > 0 && pawl_settle(client->pen.store, client->pen.actor, rows, count, results,
                                    NULL) != PAWL_OK) {
        if (!pause_ms(AWAY_MS))
            return false;
    }
    return true;
}

/* What becomes of one job: by chance. Gives false where there is nothing to settle. */
static bool work_on(struct client *client, const pawl_lease *lease, pawl_settle_row *row)
{
    pawl_settle_init(row);
    row->lease = *lease;
    row->delay_ms = (int64_t)below(client, 30);
    size_t chance = below(client, 100);
    if (chance < 8) {
        row->action = PAWL_RETRY;
    } else if (chance < 13) {
        row->action = PAWL_SNOOZE;
    } else if (chance < 16) {
        row->action = PAWL_FAIL;
    } else if (chance < 24) {
        pawl_code answer;
        (void)!pawl_release(client->pen.store, client->pen.actor, lease, 1, &answer,
                            NULL); /* if it is lost, the lease ends */
        return false;
    } else if (chance < 36) {
        pawl_renew_row renewal = {.lease = *lease, .lease_ms = PAWL_DEFAULT};
        pawl_renewed answer;
        (void)!pawl_renew(client->pen.store, client->pen.actor, &renewal, 1, &answer,
                          NULL); /* the settle will be told */
    } else if (chance < 41) {
        return false; /* dropped: the reaper's */
    } else if (chance < (client->is_slow ? 60 : 45)) {
        (void)pause_ms(LEASE_MS + below(client, 300)); /* too slow: it will be refused */
    }
    return true;
}

/* The leases of a claim, or those that stand in the worker's name where its answer was lost. */
static size_t take(struct client *client, pawl_lease *leases)
{
    pawl_claim_line lines[CRASH_QUEUES];
    pawl_job jobs[BATCH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < CRASH_QUEUES; i++)
        lines[i] = (pawl_claim_line){crash_queues[i], 1 + (int64_t)below(client, BATCH_MAX),
                                     PAWL_DEFAULT};
    pawl_claim_args args = {client->pen.actor, lines, CRASH_QUEUES, PAWL_DEFAULT};
    size_t jobs_max = 1 + below(client, BATCH_MAX);
    pawl_code code = pawl_claim(client->pen.store, &args, jobs, jobs_max, &count, NULL);
    while (code == PAWL_UNKNOWN || code == PAWL_DOWN) {
        if (!pause_ms(AWAY_MS))
            return 0;
        code = pawl_mine(client->pen.store, client->pen.actor, NULL, jobs, BATCH_MAX, &count, NULL);
    }
    for (size_t i = 0; code == PAWL_OK && i < count; i++) {
        leases[i] = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version, jobs[i].place};
        pawl_job_clear(&jobs[i]);
    }
    return code == PAWL_OK ? count : 0;
}

static bool work(struct client *client)
{
    pawl_lease leases[BATCH_MAX];
    pawl_settle_row rows[BATCH_MAX];
    size_t settles = 0;
    size_t count = take(client, leases);
    for (size_t i = 0; i < count; i++)
        settles += work_on(client, &leases[i], &rows[settles]);
    return settle(client, rows, settles) && pause_ms(count > 0 ? below(client, 4) : 15);
}

/* ---------------------------------------------------------------- reapers and operators */

static bool reap(struct client *client)
{
    pawl_reaped rows[PEN_ROWS_MAX];
    size_t count = 0;
    (void)!pawl_reap(client->pen.store, rows, PEN_ROWS_MAX, &count,
                     NULL); /* another reaper, another time */
    return pause_ms(20 + below(client, 60));
}

/* Cancels what waits or runs, and puts back what has failed. */
static bool meddle(struct client *client)
{
    bool is_cancel = below(client, 2) == 0;
    pawl_filter filter = {.states = is_cancel ? 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT
                                              : 1u << PAWL_FAILED};
    pawl_job jobs[OPERATOR_PAGE];
    size_t count = 0;
    if (pawl_list(client->pen.store, &filter, NULL, jobs, OPERATOR_PAGE, &count, NULL) != PAWL_OK)
        return pause_ms(AWAY_MS);
    if (count > 0) {
        const pawl_id *id = &jobs[below(client, count)].id;
        pawl_changed result;
        if (is_cancel) /* whatever becomes of it: others will see */
            (void)!pawl_cancel(client->pen.store, id, 1, &result, NULL);
        else
            (void)!pawl_redrive(client->pen.store, id, 1, &result, NULL);
    }
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
    return pause_ms(60 + below(client, 100));
}

/* ---------------------------------------------------------------- life */

void client_run(struct client *client, const char *folder, const char *actor)
{
    static bool (*const roles[CRASH_ROLES])(struct client *) = {produce, work, reap, meddle};
    client->random = pawli_seeded_as_random(&client->seeded);
    pen_open(&client->pen, folder, actor);
    pawl_store *store;
    while ((store = client->kind->open(client->where)) == NULL) {
        if (!pause_ms(AWAY_MS))
            return;
    }
    pen_take_store(&client->pen, store);
    while (roles[client->role](client))
        ;
    pen_close(&client->pen);
    client->kind->shut();
}

/* ---------------------------------------------------------------- the end */

/* Complete what can be had now. False: the store is away. */
static bool drain_once(struct pen *pen, size_t *ret_count)
{
    pawl_claim_line lines[CRASH_QUEUES];
    pawl_job jobs[PEN_ROWS_MAX];
    pawl_settle_row rows[PEN_ROWS_MAX];
    pawl_settled results[PEN_ROWS_MAX];
    pawl_reaped reaped[PEN_ROWS_MAX];
    size_t count = 0;
    if (pawl_reap(pen->store, reaped, PEN_ROWS_MAX, &count, NULL) != PAWL_OK)
        return false;
    for (size_t i = 0; i < CRASH_QUEUES; i++)
        lines[i] = (pawl_claim_line){crash_queues[i], PEN_ROWS_MAX, 10000};
    pawl_claim_args args = {pen->actor, lines, CRASH_QUEUES, PAWL_DEFAULT};
    if (pawl_claim(pen->store, &args, jobs, PEN_ROWS_MAX, &count, NULL) != PAWL_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        pawl_settle_init(&rows[i]);
        rows[i].lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                     jobs[i].place};
        pawl_job_clear(&jobs[i]);
    }
    *ret_count = count;
    return count == 0 || pawl_settle(pen->store, pen->actor, rows, count, results, NULL) == PAWL_OK;
}

bool client_drain(struct pen *pen)
{
    for (int i = 0; i < DRAIN_TRIES; i++) {
        pawl_filter live = {.states = 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT};
        pawl_job job;
        size_t live_count = 0;
        size_t done = 0;
        while (drain_once(pen, &done) && done > 0)
            ;
        if (pawl_list(pen->store, &live, NULL, &job, 1, &live_count, NULL) != PAWL_OK)
            continue;
        if (live_count == 0)
            return true;
        pawl_job_clear(&job);
        (void)poll(NULL, 0, DRAIN_MS); /* leases of the dead must end first */
    }
    return false;
}
