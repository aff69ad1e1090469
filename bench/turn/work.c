/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * work.c - turns of the runtime's worker, in processes of their own: drain, hold, be idle, start.
 * Owns:  the processes, and the memory that they share to know when all is done.
 * Never: touches what the parent has opened before the fork; measures how jobs got there.
 */
#include "turn.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS       1
#define WARM_CLAIMS   12 /* calls of one statement until its plan stays */
#define WARM_POLL_MS  20
#define HOLD_LEN      1 /* bytes of a payload that says: hold the job */
#define IDLE_FIRST_MS 2000
#define LINE_MAX      256

/* Seen by all processes of a turn. */
struct shared {
    atomic_llong done;
    atomic_llong held;
    atomic_llong renewed;  /* since the last time that it was set to 0 */
    atomic_llong began_us; /* of the first; 0: of none */
    atomic_llong ended_us; /* of the last */
    atomic_llong resident_kib;
    atomic_llong cpu_us; /* of all, while they were idle */
    atomic_int ready;    /* workers that are warm and wait to be let go */
    atomic_bool is_let_go;
    atomic_bool may_end; /* handlers that hold a job, workers that are idle */
    atomic_llong samples[SAMPLES_MAX];
};

struct work {
    const struct turn *turn;
    struct shared *shared;
    pawl_source *source;
    atomic_llong claims; /* of this process */
};

/* ---- the worker */

static pawl_code open_store(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    const struct work *work = user;
    (void)role; /* all handles are alike */
    return pawl_source_open(work->source, ret_store, err);
}

static int handle(pawl_job_ctx *ctx, void *user)
{
    struct work *work = user;
    const pawl_job *job = pawl_job_of(ctx);
    if (job->payload_len == HOLD_LEN) {
        atomic_fetch_add(&work->shared->held, 1);
        while (!atomic_load(&work->shared->may_end) && !pawl_job_is_cancelled(ctx))
            (void)poll(NULL, 0, 20);
        return PAWL_SUCCEED;
    }
    atomic_fetch_add(&work->shared->done, 1);
    return PAWL_SUCCEED;
}

/* The first bytes of the payload say when it was enqueued. */
static int handle_timed(pawl_job_ctx *ctx, void *user)
{
    struct work *work = user;
    int64_t now_us = turn_now_us(), sent_us = 0;
    memcpy(&sent_us, pawl_job_of(ctx)->payload, sizeof(sent_us));
    long long at = atomic_fetch_add(&work->shared->done, 1);
    atomic_store(&work->shared->samples[at], now_us - sent_us);
    return PAWL_SUCCEED;
}

static void tell(void *user, const pawl_event *event)
{
    struct work *work = user;
    if (event->kind == PAWL_EVENT_CALL && strcmp(event->subject, "renew") == 0)
        atomic_fetch_add(&work->shared->renewed, event->count);
    if (event->kind == PAWL_EVENT_CALL && strcmp(event->subject, "claim") == 0)
        atomic_fetch_add(&work->claims, 1);
}

static bool is_warmed(const struct turn *turn)
{
    return turn->held > 0 || turn->warm > 0 || strcmp(turn->statistics, "empty") == 0;
}

static pawl_runner *start(struct work *work, pawl_handler handler, bool is_default)
{
    const struct turn *turn = work->turn;
    pawl_worker_queue queue = {
        .queue = QUEUE,
        .jobs_max = PAWL_DEFAULT,
        .lease_ms = turn->lease_ms > 0 ? turn->lease_ms : PAWL_DEFAULT,
    };
    pawl_worker_options options;
    pawl_runner *runner = NULL;
    pawl_err err;
    work->source = turn_open_source(turn);
    if (work->source == NULL)
        return NULL;
    pawl_worker_options_init(&options);
    options.opener = (pawl_opener){.open = open_store, .user = work};
    options.queues = &queue;
    options.queues_count = 1;
    options.handler = handler;
    options.user = work;
    if (is_warmed(turn))
        options.watch = (pawl_watch){.tell = tell, .user = work, .level = PAWL_LEVEL_DEBUG};
    if (!is_default) {
        options.settings.parallel_max = turn->parallel + turn->held;
        options.settings.buffer_max = turn->buffer;
        options.settings.claim_batch_max = turn->batch;
        options.settings.settle_batch_max = turn->batch;
        options.settings.call_timeout_ms = CALL_TIMEOUT_MS;
        options.settings.poll_ms = is_warmed(turn) ? WARM_POLL_MS : 1000;
    }
    if (pawl_worker_start(&options, &runner, &err) != PAWL_OK)
        (void)turn_fail("the worker", err.text);
    return runner;
}

static bool stop(struct work *work, pawl_runner *runner)
{
    pawl_worker_end end = {.jobs_left = -1};
    pawl_worker_stop(runner, PAWL_DEFAULT);
    bool is_ended = pawl_worker_wait(runner, WAIT_MOST_MS, &end) == PAWL_OK && end.jobs_left == 0;
    is_ended = pawl_worker_free(runner) == 0 && is_ended;
    pawl_source_free(work->source);
    return is_ended || turn_fail("the worker", "it did not stop well");
}

static bool wait_until(const atomic_llong *count, int64_t wanted)
{
    int64_t until_us = turn_now_us() + WAIT_MOST_MS * INT64_C(1000);
    while (atomic_load(count) < wanted && turn_now_us() < until_us)
        (void)poll(NULL, 0, LOOK_MS);
    return atomic_load(count) >= wanted || turn_fail("a worker", "it takes too long");
}

static void note_first(atomic_llong *first, int64_t us)
{
    long long none = 0;
    (void)atomic_compare_exchange_strong(first, &none, us); /* another one was first */
}

static void note_most(atomic_llong *most, int64_t value)
{
    long long old = atomic_load(most);
    while (old < value && !atomic_compare_exchange_weak(most, &old, value))
        continue;
}

static int64_t resident_kib(void)
{
    char line[LINE_MAX];
    int64_t kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "VmHWM:", strlen("VmHWM:")) == 0)
            kib = strtoll(line + strlen("VmHWM:"), NULL, 10);
    }
    if (status != NULL)
        (void)fclose(status);
    return kib;
}

/* ---- what each process does */

/* Its plans are made, and its leases held; then it waits for the jobs. */
static bool warm_up(struct work *work, pawl_runner *runner)
{
    const struct turn *turn = work->turn;
    struct shared *shared = work->shared;
    pawl_err err;
    bool is_renewing = turn->held > 0 && turn->lease_ms > 0 && turn->lease_ms < LEASE_LONG_MS;
    if (!wait_until(&work->claims, WARM_CLAIMS) || !wait_until(&shared->held, turn->held) ||
        (is_renewing && !wait_until(&shared->renewed, turn->held)))
        return false;
    if (pawl_worker_pause(runner, NULL, &err) != PAWL_OK)
        return turn_fail("pause", err.text);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->is_let_go))
        (void)poll(NULL, 0, LOOK_MS);
    atomic_store(&shared->renewed, 0);
    note_first(&shared->began_us, turn_now_us());
    return pawl_worker_resume(runner, NULL, &err) == PAWL_OK || turn_fail("resume", err.text);
}

static bool drain(struct work *work)
{
    struct shared *shared = work->shared;
    pawl_runner *runner = start(work, handle, false);
    if (runner == NULL)
        return false;
    /* Its connections are made: that is not what is measured, of bare candidates neither. */
    if (!is_warmed(work->turn))
        note_first(&shared->began_us, turn_now_us());
    bool is_done = (!is_warmed(work->turn) || warm_up(work, runner)) &&
                   wait_until(&shared->done, work->turn->jobs);
    pawl_worker_counts counts = {.settling = 1};
    while (is_done && (counts.settling > 0 || counts.running > work->turn->held)) {
        pawl_worker_count(runner, &counts);
        (void)poll(NULL, 0, LOOK_MS);
    }
    note_most(&shared->ended_us, turn_now_us());
    note_most(&shared->resident_kib, resident_kib());
    atomic_store(&shared->may_end, true);
    return stop(work, runner) && is_done;
}

static bool hold(struct work *work)
{
    pawl_runner *runner = start(work, handle, false);
    if (runner == NULL)
        return false;
    bool is_done = wait_until(&work->shared->held, work->turn->held);
    note_most(&work->shared->resident_kib, resident_kib());
    atomic_store(&work->shared->may_end, true);
    return stop(work, runner) && is_done;
}

static bool serve_timed(struct work *work)
{
    pawl_runner *runner = start(work, handle_timed, false);
    if (runner == NULL)
        return false;
    atomic_fetch_add(&work->shared->ready, 1);
    bool is_done = wait_until(&work->shared->done, work->turn->jobs);
    return stop(work, runner) && is_done;
}

static int64_t used_us(void)
{
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used); /* cannot fail here */
    return used.tv_sec * INT64_C(1000000) + used.tv_nsec / 1000;
}

static bool be_idle(struct work *work)
{
    pawl_runner *runner = start(work, handle, true);
    if (runner == NULL)
        return false;
    (void)poll(NULL, 0, IDLE_FIRST_MS);
    atomic_fetch_add(&work->shared->ready, 1);
    while (!atomic_load(&work->shared->is_let_go))
        (void)poll(NULL, 0, LOOK_MS);
    int64_t before_us = used_us();
    (void)poll(NULL, 0, (int)(work->turn->seconds * 1000));
    atomic_fetch_add(&work->shared->cpu_us, used_us() - before_us);
    atomic_fetch_add(&work->shared->done, 1);
    while (!atomic_load(&work->shared->may_end))
        (void)poll(NULL, 0, LOOK_MS);
    return stop(work, runner);
}

/* ---- the processes */

typedef bool (*process_run)(struct work *work);

static bool fork_all(struct work *work, process_run run, pid_t *pids)
{
    for (int64_t i = 0; i < work->turn->processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(run(work) ? 0 : 1);
        if (pids[i] < 0)
            return turn_fail("fork", "no process to be had");
    }
    return true;
}

static bool join_all(const struct turn *turn, const pid_t *pids)
{
    bool is_good = true;
    for (int64_t i = 0; i < turn->processes; i++) {
        int status = 1;
        is_good = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0 && is_good;
    }
    return is_good;
}

/* True: all processes are ready; false: one has ended. */
static bool await_ready(const struct work *work, const pid_t *pids)
{
    while (atomic_load(&work->shared->ready) < work->turn->processes) {
        for (int64_t i = 0; i < work->turn->processes; i++) {
            siginfo_t gone = {.si_pid = 0};
            if (waitid(P_PID, (id_t)pids[i], &gone, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                gone.si_pid != 0)
                return turn_fail("a worker", "it has ended early");
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return true;
}

static struct shared *share(void)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED)
        return shared;
    (void)turn_fail("mmap", "no memory");
    return NULL;
}

static bool put_held(const struct turn *turn)
{
    struct turn held = *turn;
    pawl_source *source;
    pawl_store *store;
    held.payload = HOLD_LEN;
    held.keys = 0;
    if (turn->held == 0)
        return true;
    if (!turn_open(turn, &source, &store))
        return false;
    bool is_done = turn_fill(&held, store, 0, turn->held);
    turn_close(source, store);
    return is_done;
}

static bool check(const struct turn *turn, int64_t wanted)
{
    struct turn all = *turn;
    all.jobs = wanted;
    return turn_check_all(&all);
}

bool turn_drain(const struct turn *turn, struct turn_result *result)
{
    struct work work = {.turn = turn, .shared = share()};
    pid_t pids[100] = {0};
    bool is_good = work.shared != NULL;
    void *transaction = is_good ? turn_old_transaction(turn, &is_good) : NULL;
    double wal = turn_wal(turn);
    is_good = is_good && put_held(turn);
    if (is_good && !is_warmed(turn))
        is_good = turn_fill_all(turn, result);
    is_good = is_good && fork_all(&work, drain, pids);
    if (is_good && is_warmed(turn)) {
        is_good = await_ready(&work, pids) && turn_fill_all(turn, result);
        if (!is_good) {
            atomic_store(&work.shared->done, turn->jobs); /* so that it ends */
            atomic_store(&work.shared->may_end, true);
        }
        atomic_store(&work.shared->is_let_go, true);
    }
    is_good = is_good && join_all(turn, pids);
    turn_end_transaction(transaction);
    if (!is_good || !check(turn, turn->jobs + turn->held))
        return false;
    if (wal >= 0)
        result->wal_bytes_per_job = (turn_wal(turn) - wal) / (double)turn->jobs;
    result->seconds = (double)(atomic_load(&work.shared->ended_us) -
                               atomic_load(&work.shared->began_us)) /
                      1e6;
    result->resident_kib = (double)atomic_load(&work.shared->resident_kib);
    if (turn->held > 0)
        result->renewed = (double)atomic_load(&work.shared->renewed);
    return true;
}

bool turn_hold(const struct turn *turn, struct turn_result *result)
{
    struct work work = {.turn = turn, .shared = share()};
    pid_t pids[100] = {0};
    if (work.shared == NULL || !put_held(turn) || !fork_all(&work, hold, pids) ||
        !join_all(turn, pids))
        return false;
    result->resident_kib = (double)atomic_load(&work.shared->resident_kib);
    return check(turn, turn->held);
}

bool turn_idle(const struct turn *turn, struct turn_result *result)
{
    struct work work = {.turn = turn, .shared = share()};
    pid_t pids[100] = {0};
    if (work.shared == NULL || !fork_all(&work, be_idle, pids) || !await_ready(&work, pids))
        return false;
    double calls = turn_statements(turn);
    int64_t began_us = turn_now_us();
    atomic_store(&work.shared->is_let_go, true);
    bool is_done = wait_until(&work.shared->done, turn->processes);
    double seconds = (double)(turn_now_us() - began_us) / 1e6;
    double each = seconds * (double)turn->processes;
    if (calls >= 0)
        result->statements_rate = (turn_statements(turn) - calls - 1) / each; /* one was asked */
    result->cpu_share = (double)atomic_load(&work.shared->cpu_us) / 1e6 / each;
    atomic_store(&work.shared->may_end, true);
    return join_all(turn, pids) && is_done;
}

/* ---- from the enqueue to the start */

static int compare_us(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

void turn_percentiles(int64_t *samples, size_t count, struct turn_result *result)
{
    qsort(samples, count, sizeof(*samples), compare_us);
    result->p50_us = (double)samples[count / 2];
    result->p99_us = (double)samples[count * 99 / 100];
}

void turn_wait_until(int64_t due_us)
{
    int64_t left_us = due_us - turn_now_us();
    if (left_us > 0)
        (void)poll(NULL, 0, (int)((left_us + 999) / 1000));
}

static bool send_timed(const struct turn *turn, pawl_store *store)
{
    int64_t stamp_us[PAYLOAD_BYTES_MAX / sizeof(int64_t)] = {0};
    int64_t began_us = turn_now_us();
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_err err;
    pawl_enqueue_init(&row);
    row.queue = QUEUE;
    row.payload = stamp_us;
    row.payload_len = (size_t)turn->payload;
    for (int64_t i = 0; i < turn->jobs; i++) {
        turn_wait_until(began_us + i * 1000000 / turn->rate);
        stamp_us[0] = turn_now_us();
        if (pawl_enqueue(store, &row, 1, &enqueued, &err) != PAWL_OK)
            return turn_fail("enqueue", err.text);
    }
    return true;
}

bool turn_latency(const struct turn *turn, struct turn_result *result)
{
    struct work work = {.turn = turn, .shared = share()};
    int64_t *samples = calloc((size_t)turn->jobs, sizeof(*samples));
    pid_t pids[100] = {0};
    pawl_source *source = NULL;
    pawl_store *store = NULL;
    if (turn->jobs > SAMPLES_MAX || turn->payload < (int64_t)sizeof(int64_t))
        return turn_fail("latency", "too many jobs, or too small ones");
    bool is_done = samples != NULL && work.shared != NULL && fork_all(&work, serve_timed, pids) &&
                   await_ready(&work, pids) && turn_open(turn, &source, &store) &&
                   send_timed(turn, store);
    turn_close(source, store);
    is_done = is_done && join_all(turn, pids) && check(turn, turn->jobs);
    if (is_done) {
        for (int64_t i = 0; i < turn->jobs; i++)
            samples[i] = atomic_load(&work.shared->samples[i]);
        turn_percentiles(samples, (size_t)turn->jobs, result);
    }
    free(samples);
    return is_done;
}
