/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - a worker, and a reaper, that keep histories of all that they do.
 * Life:  started by the director with a pipe for its standard input; ends in order when that ends,
 *        or at any moment.
 * Owns:  what handlers do: by chance.
 * Never: knows what the director is about.
 */
#include "chaos/chaos.h"

#include "core/mutant.h"
#include "pawl/worker.h"
#include "runtime/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AWAY_MS     50    /* before the next try, while the store is away */
#define TICK_MS     5     /* between two looks of a handler whether it must stop */
#define LONG_MOST   5     /* halves of a lease that a long job takes */
#define END_MOST_MS 60000 /* to end in order, by all that can be imagined */

struct company {
    const struct chaos_role *role;
    _Atomic size_t handles[PAWL_ROLE_REAPER + 1]; /* opened so far, by role */
    struct chaos_control *control;
    bool is_slow; /* all jobs are long: whoever stands still has work that others take up */
};

/* Wait. False: it is time to end. */
static bool pause_ms(int ms)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&end, 1, ms) == 0;
}

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(70);
}

/* ---------------------------------------------------------------- handles */

/* Each with a pen of its own: one thread uses it. */
static pawl_code open_handle(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    struct company *company = user;
    char actor[PEN_NAME_MAX];
    pawl_store *inner = company->role->kind->open(company->role->where);
    if (inner == NULL) {
        *err = (pawl_err){.code = PAWL_DOWN, .text = "the store is away"};
        return PAWL_DOWN;
    }
    size_t number = atomic_fetch_add(&company->handles[role], 1);
    (void)snprintf(actor, sizeof(actor), "%s.%d.%zu", company->role->actor, (int)role, number);
    *ret_store = pen_store(company->role->folder, actor, inner);
    return PAWL_OK;
}

/* ---------------------------------------------------------------- handlers */

static uint64_t draw(uint64_t below)
{
    return pawli_random_below(pawl_random_system(), below);
}

/* False: it was told to stop. */
static bool work_for(pawl_job_ctx *ctx, int64_t ms)
{
    for (int64_t until_ms = chaos_now_ms() + ms; chaos_now_ms() < until_ms;) {
        if (pawl_job_is_cancelled(ctx))
            return false;
        (void)poll(NULL, 0, TICK_MS);
    }
    return !pawl_job_is_cancelled(ctx);
}

/* Up to two leases and a half: only renewals keep it. */
static int handle_slowly(pawl_job_ctx *ctx)
{
    int64_t ms = CHAOS_LEASE_MS / 2 * (1 + (int64_t)draw(LONG_MOST));
    return work_for(ctx, ms) ? PAWL_SUCCEED : PAWL_RETRY;
}

static int handle_by_chance(pawl_job_ctx *ctx)
{
    uint64_t fate = draw(1000);
    if (fate < 900)
        return PAWL_SUCCEED;
    if (fate < 950)
        return work_for(ctx, 5 + (int64_t)draw(55)) ? PAWL_SUCCEED : PAWL_RETRY;
    if (fate < 956)
        return handle_slowly(ctx);
    if (fate < 957) { /* deaf: what it says after it was given up must not count */
        (void)poll(NULL, 0, (int)(CHAOS_LEASE_MS / 2 + draw(CHAOS_LEASE_MS)));
        return PAWL_SUCCEED;
    }
    pawl_job_delay(ctx, (int64_t)draw(50));
    if (fate < 980)
        return PAWL_RETRY;
    return fate < 994 ? PAWL_SNOOZE : PAWL_FAIL;
}

static int handle(pawl_job_ctx *ctx, void *user)
{
    struct company *company = user;
    atomic_fetch_add(&company->control->running, 1);
    int result = company->is_slow ? handle_slowly(ctx) : handle_by_chance(ctx);
    atomic_fetch_sub(&company->control->running, 1);
    return result;
}

/* ---------------------------------------------------------------- life */

struct chaos_control *worker_control(void)
{
    const char *path = getenv(CHAOS_CONTROL_VARIABLE);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *control = fd >= 0 ? mmap(NULL, sizeof(struct chaos_control), PROT_READ | PROT_WRITE,
                                   MAP_SHARED, fd, 0)
                            : MAP_FAILED;
    if (control == MAP_FAILED)
        give_up("control");
    (void)close(fd);
    return control;
}

static struct pawli_trace_writer *new_notes(const struct chaos_role *role, FILE **ret_file)
{
    char path[CHAOS_TEXT_MAX];
    struct pawli_trace_writer *notes = NULL;
    (void)snprintf(path, sizeof(path), "%s/history-%s.notes", role->folder, role->actor);
    *ret_file = fopen(path, "wbe");
    if (*ret_file == NULL || pawli_trace_writer_new(*ret_file, &notes, NULL) != PAWL_OK)
        give_up(path);
    pawli_trace_write_through(notes);
    return notes;
}

static void fill_options(struct company *company, pawl_worker_options *options)
{
    static const pawl_worker_queue queues[CRASH_QUEUES] = {
        {.queue = "mail", .jobs_max = PAWL_DEFAULT, .lease_ms = PAWL_DEFAULT},
        {.queue = "print", .jobs_max = PAWL_DEFAULT, .lease_ms = PAWL_DEFAULT},
    };
    pawl_worker_options_init(options);
    options->opener = (pawl_opener){.open = open_handle, .user = company};
    options->queues = queues;
    options->queues_count = CRASH_QUEUES;
    options->handler = handle;
    options->user = company;
    options->name = company->role->actor;
    options->presence_ms = 1000;
    options->reaper.interval_ms = CHAOS_REAPER_MS;
    options->settings.parallel_max = CHAOS_PARALLEL;
    options->settings.buffer_max = CHAOS_BUFFER;
    options->settings.poll_ms = 200;
    options->settings.grace_ms = 500;
    options->settings.call_timeout_ms = 2000;
    options->settings.retry_base_ms = 50;
    options->settings.retry_max_ms = 500;
}

/* The file of SQLite is opened once, before there are threads. */
static bool find_store(const struct chaos_role *role)
{
    pawl_store *store;
    while ((store = role->kind->open(role->where)) == NULL) {
        if (!pause_ms(AWAY_MS))
            return false;
    }
    pawl_store_close(store);
    return true;
}

int worker_run(const struct chaos_role *role)
{
    struct company company = {
        .role = role,
        .control = worker_control(),
        .is_slow = role->mutant == PAWLI_MUTANT_ABORT_SETTLED,
    };
    FILE *file = NULL;
    struct pawli_trace_writer *notes = new_notes(role, &file);
    pawl_worker_options options;
    pawl_runner *runner = NULL;
    pawl_err err;
    fill_options(&company, &options);
#ifdef PAWL_TEST_POINTS
    pawli_testpoints.mutant = role->mutant;
#endif
    if (!find_store(role))
        return 0;
    while (pawli_worker_start(&options, notes, &runner, &err) != PAWL_OK) {
        if (!pause_ms(AWAY_MS))
            return 0;
    }
    while (pause_ms(-1))
        ;
    pawl_worker_stop(runner, PAWL_DEFAULT);
    pawl_code code = pawl_worker_wait(runner, END_MOST_MS, NULL);
    size_t left = pawl_worker_free(runner);
    if (code != PAWL_OK || left > 0)
        _exit(75); /* threads still use all this */
    pawli_trace_writer_free(notes);
    (void)fclose(file); /* it was written through */
    role->kind->shut();
    return 0;
}

/* The reaper that nobody disturbs: how fast the machine lets it go. */
struct pace {
    const char *actor;
    struct pawli_trace_writer *notes;
    int64_t last_ms;
};

/* Where it was held up itself, nobody can be blamed for a lease that was recovered late. */
static void watch_pace(void *user, const pawl_event *event)
{
    struct pace *pace = user;
    if (event->kind != PAWL_EVENT_REAP_RUN)
        return;
    int64_t now_ms = chaos_now_ms();
    if (now_ms - pace->last_ms > 2 * CHAOS_REAPER_MS)
        pawli_trace_note(pace->notes, pawl_clock_system()->mono(NULL),
                         &(struct pawli_trace_note){.kind = PAWLI_NOTE_LINK_FAULT,
                                                    .actor = pace->actor,
                                                    .a = PAWLI_VERB_REAP});
    pace->last_ms = now_ms;
}

int reaper_run(const struct chaos_role *role)
{
    struct company company = {.role = role};
    FILE *file = NULL;
    struct pace pace = {.actor = role->actor, .notes = new_notes(role, &file)};
    pawl_reaper_options options;
    pawl_reaper *reaper = NULL;
    pawl_err err;
    pawl_reaper_options_init(&options);
    options.opener = (pawl_opener){.open = open_handle, .user = &company};
    options.name = role->actor;
    options.smallest_lease_ms = CHAOS_LEASE_MS;
    options.settings.interval_ms = CHAOS_REAPER_MS;
    options.presence_ms = 1000;
    options.watch = (pawl_watch){.tell = watch_pace, .user = &pace, .level = PAWL_LEVEL_DEBUG};
    if (!find_store(role))
        return 0;
    pace.last_ms = chaos_now_ms();
    while (pawl_reaper_start(&options, &reaper, &err) != PAWL_OK) {
        if (!pause_ms(AWAY_MS))
            return 0;
    }
    while (pause_ms(-1))
        ;
    pawl_reaper_stop(reaper);
    pawli_trace_writer_free(pace.notes);
    (void)fclose(file); /* it was written through */
    role->kind->shut();
    return 0;
}
