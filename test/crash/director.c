/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * director.c - the crash test as a program.
 * Life:  makes a store, starts clients, kills them one after the other with SIGKILL and breaks the
 *        store in between, starts others in their place; then lets everything drain, and has it
 *        judged.
 * Owns:  the clients' processes, the folder with their histories, the TAP stream.
 * Never: tells a client anything but that it is time to end.
 *
 * The seed decides which client is killed, and when; what each was doing then is chance, but for
 * some that are killed in the midst of a call: a run in which no answer was lost proves little. Nor
 * is it left to chance that there is something to lose: before the first kill and before each
 * trouble of the store a producer has been told of a job, however slow the machine is.
 */
#include "crash/crash.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS     9
#define PAUSE_MS    60   /* from one kill to the next, at least; up to three times that */
#define PLAY_MS     1500 /* undisturbed, before the first kill and after the last */
#define MIDST_EVERY 2    /* of so many kills, one is in the midst of a call for certain */
#define MIDST_TRIES 5000 /* for that */
#define ACK_TRIES   6000 /* for a producer to be told of a job, */
#define ACK_MS      10   /* looked for this often */
#define TROUBLES    12
#define SQL_MAX     4096
#define LOST_MAX    10
#define BACKOFF_MS  20
#define LEASE_MS    400
#define DRIFT_PPM   500
#define ROUND_MS    5000

/* A client's process. */
struct child {
    pid_t pid;
    int stdin_fd; /* closed: it shall end */
    enum crash_role role;
    char actor[PEN_NAME_MAX];
};

struct director {
    struct crash_plan plan;
    struct pawli_seeded seeded;
    pawl_random random;
    char folder[PEN_PATH_MAX];
    char where[PEN_PATH_MAX];
    struct child children[CLIENTS];
    size_t started;
    size_t killed;
    size_t troubles;
    bool is_failed; /* something of the test itself could not be done */
    struct pen pen;
};

/* Most of the clients work. */
static enum crash_role role_of(size_t place)
{
    return place < 2    ? CRASH_PRODUCER
           : place < 7  ? CRASH_WORKER
           : place == 7 ? CRASH_REAPER
                        : CRASH_OPERATOR;
}

static void pause_ms(uint64_t ms)
{
    (void)poll(NULL, 0, (int)ms); /* the others are at work meanwhile */
}

/* ---------------------------------------------------------------- processes */

static void become_client(const struct director *director, const struct child *child, int stdin_fd)
{
    char seed[24];
    (void)snprintf(seed, sizeof(seed), "%" PRIu64, director->plan.seed * 1000 + director->started);
    const char *const argv[] = {"crash-client",
                                "--client",
                                crash_role_name(child->role),
                                child->actor,
                                seed,
                                director->plan.kind->name,
                                director->where,
                                director->folder,
                                director->plan.is_early        ? "early"
                                : director->plan.spoil != NULL ? "slow"
                                                               : "honest",
                                NULL};
    (void)dup2(stdin_fd, STDIN_FILENO); /* where it fails, the client ends at once and is missed */
    (void)execv("/proc/self/exe", (char *const *)argv);
    _exit(71);
}

/* A client gets its own end only: otherwise the end of one would wait for the others. */
static bool make_pipe(int ends[2])
{
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static void start(struct director *director, size_t place)
{
    struct child *child = &director->children[place];
    int ends[2];
    director->started++;
    child->role = role_of(place);
    (void)snprintf(child->actor, sizeof(child->actor), "%s-%zu", crash_role_name(child->role),
                   director->started);
    if (!make_pipe(ends)) {
        director->is_failed = true;
        return;
    }
    (void)fflush(stdout); /* or the child has it too */
    child->pid = fork();
    if (child->pid == 0)
        become_client(director, child, ends[0]);
    (void)close(ends[0]);
    child->stdin_fd = ends[1];
    director->is_failed = director->is_failed || child->pid < 0;
}

/* True where it was killed by us, and had not ended by itself. */
static bool is_reaped(struct director *director, struct child *child)
{
    int status = 0;
    if (waitpid(child->pid, &status, 0) != child->pid)
        return false;
    (void)close(child->stdin_fd);
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_killed && !is_well) {
        (void)printf("# %s ended with %x\n", child->actor, (unsigned)status);
        director->is_failed = true;
    }
    child->pid = 0;
    return is_killed;
}

/* Whether a client that stands still has a call under way: as its own file says. */
static bool is_amid_call(const struct director *director, const struct child *child)
{
    char path[PEN_PATH_MAX];
    uint64_t head = 0;
    (void)snprintf(path, sizeof(path), "%.80s/pending-%s", director->folder, child->actor);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false; /* it has not come so far */
    ssize_t len = read(fd, &head, sizeof(head));
    (void)close(fd); /* it was only read */
    return len == (ssize_t)sizeof(head) && head > 0;
}

/* Stop a client in the midst of a call. Where that does not come about, it is stopped anywhere. */
static void stop_amid_call(const struct director *director, const struct child *child)
{
    for (size_t i = 0; i < MIDST_TRIES; i++) {
        siginfo_t info = {0};
        (void)kill(child->pid, SIGSTOP); /* where it has ended already, so says the next line */
        if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 ||
            info.si_code != CLD_STOPPED || is_amid_call(director, child))
            return;
        (void)kill(child->pid, SIGCONT);
        pause_ms(1);
    }
}

static void kill_one(struct director *director)
{
    size_t place = (size_t)pawli_random_below(&director->random, CLIENTS);
    struct child *child = &director->children[place];
    if (director->killed % MIDST_EVERY == 0 && !director->plan.is_early) /* those stand still */
        stop_amid_call(director, child);
    (void)kill(child->pid, SIGKILL); /* where it has ended already, that is found out next */
    if (is_reaped(director, child)) {
        director->killed++;
        pen_note(&director->pen, &(struct pawli_trace_note){.kind = PAWLI_NOTE_WORKER_CRASH,
                                                            .actor = child->actor});
    }
    start(director, place);
}

static void end_all(struct director *director)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        (void)close(director->children[i].stdin_fd);
        director->children[i].stdin_fd = -1;
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        if (director->children[i].pid > 0)
            (void)is_reaped(director, &director->children[i]); /* says itself what is wrong */
    }
}

/* ---------------------------------------------------------------- the play */

/* What the producers of now have acknowledged, by their files: together, and the most of one. */
static size_t count_acked(const struct director *director, size_t *ret_most)
{
    char path[PEN_PATH_MAX];
    size_t count = 0;
    *ret_most = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        struct stat found;
        (void)snprintf(path, sizeof(path), "%.80s/acks-%s", director->folder,
                       director->children[i].actor);
        if (director->children[i].role != CRASH_PRODUCER || stat(path, &found) != 0)
            continue;
        size_t acked = (size_t)found.st_size / sizeof(pawl_id);
        *ret_most = acked > *ret_most ? acked : *ret_most;
        count += acked;
    }
    return count;
}

/* Until one of them has so many; 0: until there is one more than now. */
static void await_acks(struct director *director, size_t most_wanted)
{
    size_t most = 0;
    size_t before = most_wanted > 0 ? 0 : count_acked(director, &most);
    for (size_t i = 0; count_acked(director, &most) <= before || most < most_wanted; i++) {
        if (i == ACK_TRIES) {
            (void)printf("# no job is acknowledged any more\n");
            director->is_failed = true;
            return;
        }
        pause_ms(ACK_MS);
    }
}

static void make_trouble(struct director *director)
{
    const struct crash_kind *kind = director->plan.kind;
    if (kind->trouble == NULL)
        return;
    await_acks(director, 0);
    pen_note(&director->pen,
             &(struct pawli_trace_note){.kind = PAWLI_NOTE_STORE_DOWN, .actor = ""});
    static const enum crash_trouble troubles[] = {
        CRASH_TERMINATE_BACKENDS, CRASH_KILL_BACKEND, CRASH_KILL_POSTMASTER,
        CRASH_TERMINATE_BACKENDS, CRASH_KILL_BACKEND, CRASH_STOP_AT_ONCE};
    size_t number = director->troubles % (sizeof(troubles) / sizeof(troubles[0]));
    if (!kind->trouble(troubles[number])) {
        (void)printf("# the store did not come back\n");
        director->is_failed = true;
    }
    pen_note(&director->pen, &(struct pawli_trace_note){.kind = PAWLI_NOTE_STORE_UP, .actor = ""});
    director->troubles++;
}

static void play(struct director *director)
{
    size_t kills = director->plan.kills;
    size_t next_trouble = kills / (TROUBLES + 1);
    for (size_t i = 0; i < CLIENTS; i++)
        start(director, i);
    pause_ms(PLAY_MS);
    await_acks(director, 1);
    /* The bound is for clients that have ended by themselves: there should be none. */
    for (size_t i = 0; director->killed < kills && i < 2 * kills && !director->is_failed; i++) {
        pause_ms(PAUSE_MS + pawli_random_below(&director->random, 2 * PAUSE_MS));
        kill_one(director);
        if (director->killed >= next_trouble && director->troubles < TROUBLES) {
            next_trouble += kills / (TROUBLES + 1) + 1;
            make_trouble(director);
        }
    }
    pause_ms(PLAY_MS);
    if (director->plan.is_early)
        await_acks(director, CRASH_EARLY_JOBS);
    pen_note(&director->pen,
             &(struct pawli_trace_note){.kind = PAWLI_NOTE_FAULTS_OFF, .actor = ""});
    end_all(director);
}

/* ---------------------------------------------------------------- before and after */

static bool spoil(const struct crash_plan *plan)
{
    char sql[SQL_MAX] = "";
    FILE *file = plan->spoil != NULL ? fopen(plan->spoil, "r") : NULL;
    if (plan->spoil == NULL)
        return true;
    if (file == NULL || plan->kind->spoil == NULL)
        return false;
    size_t len = fread(sql, 1, sizeof(sql) - 1, file);
    (void)fclose(file); /* it was only read */
    return len > 0 && plan->kind->spoil(sql);
}

/* Short leases and short waits, so that a killed worker's jobs are soon somebody else's. */
static bool set_queues(struct pen *pen)
{
    for (size_t i = 0; i < CRASH_QUEUES; i++) {
        pawl_queue_settings settings;
        pawl_queue_settings_init(&settings);
        settings.lease_ms = LEASE_MS;
        settings.max_lost_leases = LOST_MAX;
        settings.backoff_base_ms = BACKOFF_MS;
        settings.backoff_max_ms = 4 * BACKOFF_MS;
        if (pawl_queue_set(pen->store, crash_queues[i], &settings, NULL) != PAWL_OK)
            return false;
    }
    return true;
}

static bool set_up(struct director *director)
{
    const struct crash_plan *plan = &director->plan;
    const char *base = getenv("TMPDIR");
    (void)snprintf(director->folder, sizeof(director->folder), "%.80s/pawl-crash-XXXXXX",
                   base != NULL ? base : "/tmp");
    if (mkdtemp(director->folder) == NULL || !plan->kind->begin(director->folder, director->where))
        return false;
    if (!spoil(plan)) {
        (void)printf("# %s could not be run\n", plan->spoil);
        return false;
    }
    pen_open(&director->pen, director->folder, "director");
    pawl_store *store = plan->kind->open(director->where);
    if (store == NULL)
        return false;
    pen_take_store(&director->pen, store);
    return set_queues(&director->pen);
}

/* ---------------------------------------------------------------- the TAP stream */

static int tap(int *number, bool is_ok, const char *what)
{
    (void)printf("%s %d - %s\n", is_ok ? "ok" : "not ok", ++*number, what);
    return is_ok ? 0 : 1;
}

/* What was broken on purpose must have been seen; all the rest must have gone well. */
static int report_spoiled(const struct director *director, const struct verdicts *found)
{
    int number = 0;
    bool is_seen = found->lost > 0 || found->twice > 0 || found->gaps > 0 || !found->is_kept;
    int failed = tap(&number, found->is_read && !director->is_failed && is_seen,
                     "what was broken on purpose is found");
    (void)printf("1..%d\n", number);
    return failed;
}

static int report(const struct director *director, bool is_drained, const struct verdicts *found)
{
    int number = 0;
    int failed = 0;
    const struct crash_kind *kind = director->plan.kind;
    (void)printf("# %zu clients started, %zu killed, the store broken %zu times\n",
                 director->started, director->killed, director->troubles);
    (void)printf("# %zu jobs: %zu Succeeded, %zu Failed; %zu acknowledged; %zu calls unanswered\n",
                 found->jobs, found->succeeded, found->failed, found->acked, found->unanswered);
    if (director->plan.is_early || director->plan.spoil != NULL)
        return report_spoiled(director, found);
    failed += tap(&number, !director->is_failed && director->killed >= director->plan.kills,
                  "clients were killed, and the others went on");
    failed += tap(&number,
                  kind->trouble == NULL || director->plan.kills < TROUBLES ||
                      director->troubles >= TROUBLES / 2,
                  "the store was broken, and came back");
    failed += tap(&number, found->is_read && found->acked > 0 && found->unanswered > 0,
                  "there was something to lose");
    failed += tap(&number, found->is_read && found->lost == 0, "every acknowledged job is there");
    failed += tap(&number, found->is_read && is_drained && found->live == 0, "all jobs drained");
    failed += tap(&number, found->is_read && found->twice == 0, "no job completed twice");
    failed += tap(&number, found->is_read && found->gaps == 0, "every ledger is gapless from 1");
    failed += tap(&number, found->is_kept, "the checker finds every promise kept");
    (void)printf("1..%d\n", number);
    return failed;
}

int crash_direct(const struct crash_plan *plan)
{
    struct director *director = calloc(1, sizeof(*director));
    struct verdicts found = {0};
    bool is_drained = false;
    if (director == NULL)
        return 1;
    director->plan = *plan;
    director->seeded.state = plan->seed;
    director->random = pawli_seeded_as_random(&director->seeded);
    (void)printf("# %s, seed %" PRIu64 "\n", plan->kind->name, plan->seed);
    director->is_failed = !set_up(director);
    if (!director->is_failed) {
        play(director);
        is_drained = client_drain(&director->pen);
        struct check_options options = {.is_complete = true,
                                        .must_drain = true,
                                        .drift_ppm = DRIFT_PPM,
                                        .round_trip_ms = ROUND_MS};
        found = judge(&director->pen, director->folder, &options);
        pen_close(&director->pen);
        plan->kind->shut();
    }
    int failed = report(director, is_drained, &found);
    plan->kind->end();
    if (failed == 0)
        crash_remove_folder(director->folder);
    else
        (void)printf("# the histories are in %s\n", director->folder);
    free(director);
    return failed;
}
