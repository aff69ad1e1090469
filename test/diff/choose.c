/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * choose.c - what to call next, so that every refusal is met as often as every success.
 * Owns:  the odds; which jobs, leases and instants a call is about.
 * Never: calls a verb that changes anything; looks at any store but the first.
 */
#include "diff/call.h"

#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

#define PAYLOAD_MAX 400

static const char payload[PAYLOAD_MAX] = "what nobody looks into \0\xff, and then zeros";
static const char *const headers[] = {NULL, NULL, "", "a: 1\n", "trace: x\nEmpty: \n"};
static const char *const keys[] = {NULL, NULL, "k1", "k2"};
const char *const diff_keys[DIFF_KEYS] = {"o1", "o2"};

size_t diff_below(struct diff *diff, size_t bound)
{
    return (size_t)pawli_random_below(&diff->random, bound);
}

bool diff_one_in(struct diff *diff, size_t bound)
{
    return diff_below(diff, bound) == 0;
}

#define CHOICE(diff, array) ((array)[diff_below((diff), sizeof(array) / sizeof((array)[0]))])

/* ---------------------------------------------------------------- what there is */

static pawl_wall store_now(struct diff *diff)
{
    pawl_wall now = {0};
    if (pawl_now(diff->sides[0].store, &now, NULL) != PAWL_OK)
        abort(); /* a store in memory does not fail */
    return now;
}

/* All live jobs of the first store, at most DIFF_PAGE. */
static size_t list_live(struct diff *diff, pawl_job jobs[DIFF_PAGE])
{
    pawl_filter live = {.states = 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT};
    size_t count = 0;
    if (pawl_list(diff->sides[0].store, &live, NULL, jobs, DIFF_PAGE, &count, NULL) != PAWL_OK)
        return 0;
    return count;
}

static bool is_past(pawl_wall at, pawl_wall now)
{
    return at.us != 0 && at.us <= now.us;
}

size_t diff_overdue(struct diff *diff)
{
    pawl_job jobs[DIFF_PAGE];
    pawl_wall now = store_now(diff);
    size_t count = list_live(diff, jobs);
    size_t overdue = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_held = jobs[i].state == PAWL_IN_FLIGHT;
        bool is_freeing = jobs[i].ordering_key[0] != '\0' ||
                          strcmp(jobs[i].queue, diff_queues[DIFF_BOUNDED_QUEUE]) == 0;
        if (is_past(is_held ? jobs[i].expires_at : jobs[i].start_by, now))
            overdue += is_freeing ? 2 : 1;
        pawl_job_clear(&jobs[i]);
    }
    return overdue;
}

/* ---------------------------------------------------------------- jobs and leases to speak of */

/* An id that was used: mostly a slot's, else an older one. */
static pawl_id some_id(struct diff *diff)
{
    size_t old = diff->old_ids_count < DIFF_OLD_IDS ? diff->old_ids_count : DIFF_OLD_IDS;
    if (old > 0 && diff_one_in(diff, 8))
        return diff->old_ids[diff_below(diff, old)];
    size_t first = diff_below(diff, DIFF_SLOTS);
    for (size_t i = 0; i < DIFF_SLOTS; i++) {
        const struct slot *slot = &diff->slots[(first + i) % DIFF_SLOTS];
        if (!pawl_id_is_nil(&slot->id))
            return slot->id;
    }
    return (pawl_id){{1}};
}

/* A lease that somebody holds now, valid or not; false where there is none. */
static bool held_grip(struct diff *diff, struct grip *ret_grip)
{
    pawl_lease_info leases[DIFF_PAGE];
    size_t count = 0;
    if (pawl_leases(diff->sides[0].store, NULL, NULL, leases, DIFF_PAGE, &count, NULL) != PAWL_OK ||
        count == 0)
        return false;
    const pawl_lease_info *lease = &leases[diff_below(diff, count)];
    for (size_t i = 0; i < DIFF_SLOTS; i++) {
        const struct grip *grip = &diff->slots[i].grip;
        if (pawl_id_compare(&grip->job, &lease->job) == 0 &&
            grip->version == lease->lease_version) {
            *ret_grip = *grip;
            return true;
        }
    }
    return false;
}

/* A lease to show: mostly one that stands, else one of long ago, at times with a flaw. */
static struct grip some_grip(struct diff *diff)
{
    struct grip grip = {.worker = "w1", .job = some_id(diff), .version = 1};
    bool is_held = !diff_one_in(diff, 4) && held_grip(diff, &grip);
    size_t remembered = diff->hand_count < DIFF_OLD_IDS ? diff->hand_count : DIFF_OLD_IDS;
    if (!is_held && remembered > 0)
        grip = diff->hand[diff_below(diff, remembered)];
    switch (diff_below(diff, 20)) {
    case 0:
        grip.worker = CHOICE(diff, diff_workers);
        break;
    case 1:
        for (size_t i = 0; i < DIFF_SIDES_MAX; i++)
            grip.tokens[i].bytes[3] ^= 4;
        break;
    case 2:
        grip.version += diff_one_in(diff, 2) ? 1 : -1;
        grip.version = grip.version < 1 ? 1 : grip.version;
        break;
    default:
        break;
    }
    return grip;
}

static void choose_grips(struct diff *diff, struct call *call)
{
    call->count = diff_one_in(diff, 3) ? 1 + diff_below(diff, DIFF_BATCH) : 1;
    for (size_t i = 0; i < call->count; i++)
        call->grips[i] = some_grip(diff); /* the same one twice is a case of its own */
    call->worker = call->grips[0].worker;
}

static void choose_ids(struct diff *diff, struct call *call)
{
    call->count = diff_one_in(diff, 3) ? 1 + diff_below(diff, DIFF_BATCH) : 1;
    for (size_t i = 0; i < call->count; i++)
        call->ids[i] = some_id(diff);
}

/* ---------------------------------------------------------------- producing */

static bool is_over(struct diff *diff, const pawl_id *id)
{
    pawl_job job = {0};
    pawl_code code = pawl_get(diff->sides[0].store, id, &job, NULL);
    bool is_live = code == PAWL_OK && (job.state == PAWL_READY || job.state == PAWL_IN_FLIGHT);
    pawl_job_clear(&job);
    return !is_live;
}

/* A fresh id for the slot, unless its job still lives. */
static void refresh(struct diff *diff, struct slot *slot, const pawl_enqueue_row *row)
{
    bool is_new = pawl_id_is_nil(&slot->id);
    if (!is_new && (diff_one_in(diff, 2) || !is_over(diff, &slot->id)))
        return;
    if (!is_new)
        diff->old_ids[diff->old_ids_count++ % DIFF_OLD_IDS] = slot->id;
    if (pawl_id_new(diff->sides[0].store, row, &slot->id, NULL) != PAWL_OK)
        abort(); /* the row has all it needs */
}

static void choose_enqueue(struct diff *diff, struct call *call)
{
    call->count = diff_one_in(diff, 4) ? 1 + diff_below(diff, DIFF_BATCH) : 1;
    for (size_t i = 0; i < call->count; i++) {
        size_t number = diff_below(diff, DIFF_SLOTS);
        pawl_enqueue_row *row = &call->rows[i];
        pawl_enqueue_init(row);
        row->queue = diff_queues[number % 8 == 7 ? 2 : number % 2];
        row->dedupe_key = keys[number / 2 % 4];
        if (row->queue == diff_queues[DIFF_KEYED_QUEUE] && number % 16 != 1)
            row->ordering_key = diff_keys[number / 8 % DIFF_KEYS];
        refresh(diff, &diff->slots[number], row);
        row->id = diff->slots[number].id;
        row->payload_len = diff_one_in(diff, 6) ? 0 : diff_below(diff, PAYLOAD_MAX);
        row->payload = row->payload_len > 0 ? payload : NULL;
        row->headers = CHOICE(diff, headers);
        row->priority = diff_one_in(diff, 3) ? (int)diff_below(diff, 10) : PAWL_PRIORITY_NORMAL;
        row->delay_ms = diff_one_in(diff, 4) ? 5 * SECOND : 0;
        row->start_within_ms = diff_one_in(diff, 5) ? 20 * SECOND : PAWL_DEFAULT;
        row->max_retries = diff_one_in(diff, 4) ? (int64_t)diff_below(diff, 3) : PAWL_DEFAULT;
        row->timeout_ms = diff_one_in(diff, 3) ? 15 * SECOND : PAWL_DEFAULT;
        row->backoff_base_ms = diff_one_in(diff, 6) ? 1 * SECOND : PAWL_DEFAULT;
        row->backoff_max_ms = diff_one_in(diff, 6) ? 3 * SECOND : PAWL_DEFAULT;
    }
}

/* ---------------------------------------------------------------- working */

static void choose_claim(struct diff *diff, struct call *call)
{
    static const int64_t leases[] = {PAWL_DEFAULT, 10 * SECOND, MINUTE};
    size_t first = diff_below(diff, DIFF_QUEUES);
    call->worker = CHOICE(diff, diff_workers);
    call->count = 1 + diff_below(diff, DIFF_QUEUES);
    call->max = 1 + diff_below(diff, DIFF_BATCH);
    call->bytes_max = diff_one_in(diff, 5) ? 1 + (int64_t)diff_below(diff, 600) : PAWL_DEFAULT;
    for (size_t i = 0; i < call->count; i++)
        call->lines[i] = (pawl_claim_line){.queue = diff_queues[(first + i) % DIFF_QUEUES],
                                           .jobs_max = 1 + (int64_t)diff_below(diff, 3),
                                           .lease_ms = CHOICE(diff, leases)};
    bool is_keyed = false;
    for (size_t i = 0; i < call->count; i++)
        is_keyed = is_keyed || call->lines[i].queue == diff_queues[DIFF_KEYED_QUEUE];
    if (diff->shards == 1 && !is_keyed)
        return;
    /* Of several shards the store chooses which to ask first, and of keys whom to put where: only
     * all of them are the same. */
    call->max = DIFF_PAGE;
    call->bytes_max = PAWL_DEFAULT;
    for (size_t i = 0; i < call->count; i++)
        call->lines[i].jobs_max = DIFF_PAGE;
}

static void choose_renew(struct diff *diff, struct call *call)
{
    static const int64_t leases[] = {PAWL_DEFAULT, PAWL_DEFAULT, 5 * SECOND, MINUTE};
    choose_grips(diff, call);
    for (size_t i = 0; i < call->count; i++)
        call->renewals[i] = (pawl_renew_row){.lease_ms = CHOICE(diff, leases),
                                             .is_unstarted = diff_one_in(diff, 4)};
    /* One job asked for twice, in two ways: which one counts is nowhere said. */
    for (size_t i = 1; i < call->count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (pawl_id_compare(&call->grips[i].job, &call->grips[j].job) == 0)
                call->renewals[i] = call->renewals[j];
        }
    }
}

static void choose_settle(struct diff *diff, struct call *call)
{
    static const pawl_settle_action actions[] = {PAWL_SUCCEED, PAWL_RETRY, PAWL_RETRY,
                                                 PAWL_RETRY,   PAWL_FAIL,  PAWL_SNOOZE};
    static const char *const codes[] = {NULL, "E1", ""};
    static const char *const texts[] = {NULL, "it did\n\tnot work", "caf\xc3\xa9", ""};
    choose_grips(diff, call);
    for (size_t i = 0; i < call->count; i++) {
        pawl_settle_row *row = &call->settles[i];
        pawl_settle_init(row);
        row->action = CHOICE(diff, actions);
        row->delay_ms = diff_one_in(diff, 3) ? 0 : (int64_t)diff_below(diff, 3) * 5 * SECOND;
        if (row->action == PAWL_RETRY && diff_one_in(diff, 2))
            row->delay_ms = PAWL_DEFAULT;
        if (row->action == PAWL_RETRY && diff_one_in(diff, 4))
            row->reason = PAWL_REASON_TIMEOUT;
        if (row->action == PAWL_SNOOZE && diff_one_in(diff, 3))
            row->reason = PAWL_REASON_SHUTDOWN;
        if (row->action == PAWL_FAIL && diff_one_in(diff, 3))
            row->reason = PAWL_REASON_CANCELLED;
        row->error_code = CHOICE(diff, codes);
        row->error_text = CHOICE(diff, texts);
        if (diff_one_in(diff, 2))
            row->wire_sends = diff_one_in(diff, 3) ? PAWL_SENDS_MAX : (int64_t)diff_below(diff, 3);
    }
}

static void choose_reap(struct diff *diff, struct call *call)
{
    call->max = diff_one_in(diff, 3) ? 1 + diff_below(diff, 3) : DIFF_PAGE;
}

/* ---------------------------------------------------------------- reading */

static void choose_filter(struct diff *diff, struct call *call)
{
    call->filter = (pawl_filter){
        .queue = diff_one_in(diff, 2) ? CHOICE(diff, diff_queues) : NULL,
        .states = (unsigned)diff_below(diff, 16),
        .reason = diff_one_in(diff, 3) ? (pawl_reason)diff_below(diff, 11) : PAWL_REASON_NONE,
        .worker = diff_one_in(diff, 5) ? CHOICE(diff, diff_workers) : NULL};
    if (call->filter.queue == NULL || diff_one_in(diff, 2))
        return;
    /* Of which key a Succeeded job was, not every store knows. */
    unsigned known = 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT | 1u << PAWL_FAILED;
    call->filter.ordering_key = CHOICE(diff, diff_keys);
    call->filter.states = (call->filter.states & known) != 0 ? call->filter.states & known : known;
}

static void choose_page(struct diff *diff, struct call *call)
{
    call->max = diff_one_in(diff, 2) ? DIFF_PAGE : 1 + diff_below(diff, 4);
    call->has_after = diff_one_in(diff, 4);
    if (call->has_after)
        call->after = some_id(diff);
}

static void choose_list(struct diff *diff, struct call *call)
{
    choose_filter(diff, call);
    choose_page(diff, call);
}

static void choose_mine(struct diff *diff, struct call *call)
{
    call->worker = CHOICE(diff, diff_workers);
    choose_page(diff, call);
}

static void choose_attempts(struct diff *diff, struct call *call)
{
    call->ids[0] = some_id(diff);
    call->count = 1 +
                  (diff_one_in(diff, 4) ? diff_below(diff, 3) : 0); /* after the row count - 1 */
    call->max = diff_one_in(diff, 2) ? DIFF_PAGE : 1 + diff_below(diff, 4);
}

static void choose_named_page(struct diff *diff, struct call *call)
{
    static const char *const names[] = {NULL, NULL, "mail", "w2", "zz"};
    call->after_name = CHOICE(diff, names);
    call->max = 1 + diff_below(diff, 4);
}

/* ---------------------------------------------------------------- operating */

static void choose_worker(struct diff *diff, struct call *call)
{
    static const char *const hosts[] = {"alpha", "beta", ""};
    static const char *const queues[] = {NULL, "", "mail", "mail print", "mail\n"};
    call->worker = CHOICE(diff, diff_workers);
    call->seen = (pawl_worker_seen){.name = call->worker,
                                    .kind = (pawl_worker_kind)diff_below(diff, 2),
                                    .host = CHOICE(diff, hosts),
                                    .version = "1.0",
                                    .queues = CHOICE(diff, queues)};
}

static void choose_queue(struct diff *diff, struct call *call)
{
    call->queue = CHOICE(diff, diff_queues);
}

static void choose_queue_set(struct diff *diff, struct call *call)
{
    choose_queue(diff, call);
    pawl_queue_settings *settings = &call->settings;
    pawl_queue_settings_init(settings);
    settings->lease_ms = diff_one_in(diff, 2) ? 30 * SECOND : 12 * SECOND;
    settings->execution_timeout_ms = diff_one_in(diff, 3) ? 25 * SECOND : PAWL_DEFAULT;
    settings->max_retries = (int64_t)diff_below(diff, 4);
    settings->max_lost_leases = 1 + (int64_t)diff_below(diff, 4);
    settings->backoff_base_ms = 2 * SECOND;
    settings->backoff_max_ms = diff_one_in(diff, 2) ? 3 * SECOND : 20 * SECOND;
    settings->keep_succeeded_ms = diff_one_in(diff, 8) ? PAWL_FOREVER : HOUR;
    settings->keep_failed_ms = diff_one_in(diff, 8) ? PAWL_FOREVER : 2 * HOUR;
    if (call->queue == diff_queues[DIFF_BOUNDED_QUEUE] && !diff_one_in(diff, 3))
        settings->max_in_flight = diff->shards + (int64_t)diff_below(diff, 4);
}

static void choose_queue_pause(struct diff *diff, struct call *call)
{
    choose_queue(diff, call);
    call->is_paused = diff_one_in(diff, 4); /* mostly running */
}

static void choose_where(struct diff *diff, struct call *call)
{
    unsigned able = call->verb == DIFF_CANCEL_WHERE ? 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT
                                                    : 1u << PAWL_FAILED;
    choose_filter(diff, call);
    call->filter.states |= call->filter.states == 0 ? 0 : able;
    call->max = 1 + diff_below(diff, 3);
}

/* ---------------------------------------------------------------- the odds */

static const struct {
    enum diff_verb verb;
    size_t weight;
    void (*choose)(struct diff *diff, struct call *call);
} odds[] = {
    {DIFF_ENQUEUE, 180, choose_enqueue},
    {DIFF_CLAIM, 200, choose_claim},
    {DIFF_MINE, 20, choose_mine},
    {DIFF_RENEW, 120, choose_renew},
    {DIFF_SETTLE, 180, choose_settle},
    {DIFF_RELEASE, 50, choose_grips},
    {DIFF_REAP, 60, choose_reap},
    {DIFF_PRUNE, 12, NULL},
    {DIFF_GET, 15, choose_ids},
    {DIFF_LIST, 20, choose_list},
    {DIFF_ATTEMPTS, 15, choose_attempts},
    {DIFF_LEASES, 15, choose_list},
    {DIFF_WORKER_SEEN, 8, choose_worker},
    {DIFF_WORKER_ENDED, 4, choose_worker},
    {DIFF_WORKERS_LIST, 8, choose_named_page},
    {DIFF_STATS, 10, choose_named_page},
    {DIFF_QUEUE_GET, 4, choose_queue},
    {DIFF_QUEUE_SET, 5, choose_queue_set},
    {DIFF_QUEUE_PAUSE, 12, choose_queue_pause},
    {DIFF_CANCEL, 40, choose_ids},
    {DIFF_REDRIVE, 50, choose_ids},
    {DIFF_DISCARD, 25, choose_ids},
    {DIFF_CANCEL_WHERE, 5, choose_where},
    {DIFF_REDRIVE_WHERE, 5, choose_where},
    {DIFF_DISCARD_WHERE, 4, choose_where},
    {DIFF_NOW, 3, NULL},
};

#define ODDS_COUNT (sizeof(odds) / sizeof(odds[0]))

void diff_choose(struct diff *diff, struct call *call)
{
    size_t total = 0;
    for (size_t i = 0; i < ODDS_COUNT; i++)
        total += odds[i].weight;
    size_t drawn = diff_below(diff, total);
    size_t chosen = 0;
    while (drawn >= odds[chosen].weight)
        drawn -= odds[chosen++].weight;
    /* What is seldom called is refused more often, so that no run is without it. */
    bool is_flawed = diff_one_in(diff, odds[chosen].weight < 15 ? 6 : 25);
    *call = (struct call){.verb = odds[chosen].verb, .is_flawed = is_flawed};
    if (odds[chosen].choose != NULL)
        odds[chosen].choose(diff, call);
}

/* ---------------------------------------------------------------- time */

/* How far it is to some job's next deadline, or to the millisecond before it; 0 where none is. */
static int64_t ms_to_an_edge(struct diff *diff)
{
    pawl_job jobs[DIFF_PAGE];
    pawl_wall now = store_now(diff);
    size_t count = list_live(diff, jobs);
    if (count == 0)
        return 0;
    const pawl_job *job = &jobs[diff_below(diff, count)];
    bool is_first = diff_one_in(diff, 2);
    pawl_wall edge = job->state == PAWL_READY ? (is_first ? job->due_at : job->start_by)
                                              : (is_first ? job->expires_at : job->run_until);
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
    int64_t left_ms = (edge.us - now.us) / 1000;
    return left_ms <= 1 ? 0 : left_ms - (diff_one_in(diff, 2) ? 1 : 0);
}

int64_t diff_choose_age_ms(struct diff *diff)
{
    static const int64_t spans[] = {1,          SECOND,      SECOND,      2 * SECOND,
                                    5 * SECOND, 10 * SECOND, 15 * SECOND, 31 * SECOND};
    if (diff_one_in(diff, 60))
        return diff_one_in(diff, 6) ? 8 * DAY : 90 * MINUTE; /* past a retention */
    int64_t edge_ms = diff_one_in(diff, 3) ? ms_to_an_edge(diff) : 0;
    return edge_ms > 0 ? edge_ms : CHOICE(diff, spans);
}
