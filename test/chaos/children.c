/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * children.c - the processes that the director starts: of this program, and pawl itself.
 * Owns:  their command lines, their pipes, their controls; what is known of them from outside.
 * Never: decides when anything happens to them.
 */
#include "chaos/chaos.h"

#include "pawl/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX    40
#define NUMBER_MAX   24
#define END_MOST_MS  90000
#define LOOK_MS      20
#define FIRST_RECORD 4096 /* more than the first record of a history needs */
#define PRODUCERS    3
#define LOG_END      1000 /* bytes of a log that are shown where somebody has failed */

int64_t chaos_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *chaos_part_name(enum chaos_part part)
{
    static const char *const names[CHAOS_PARTS] = {"worker", "command", "producer",
                                                   "reaper", "watch",   "operator"};
    return names[part];
}

enum chaos_part children_part(size_t place, bool *ret_is_survivor)
{
    static const enum chaos_part parts[CHAOS_CHILDREN] = {
        CHAOS_WORKER,  CHAOS_WORKER,   CHAOS_WORKER,   CHAOS_WORKER,   CHAOS_WORKER, CHAOS_COMMAND,
        CHAOS_COMMAND, CHAOS_PRODUCER, CHAOS_PRODUCER, CHAOS_PRODUCER, CHAOS_REAPER, CHAOS_WATCH,
    };
    bool is_first = place == 0 || parts[place] != parts[place - 1];
    *ret_is_survivor = is_first;
    return parts[place];
}

bool children_is_pawl(const struct child *child)
{
    return child->part == CHAOS_COMMAND || child->part == CHAOS_WATCH;
}

/* ---------------------------------------------------------------- command lines */

/* What a process of this program is told: the order is main.c's. */
static void become_ourselves(const struct director *director, const struct child *child,
                             const char *where)
{
    char seed[NUMBER_MAX];
    char rate[NUMBER_MAX];
    char mutant[NUMBER_MAX];
    double play_s = director->plan.minutes * 60;
    (void)snprintf(seed, sizeof(seed), "%" PRIu64, director->plan.seed * 1000 + director->started);
    /* All that is wanted, with a little time to spare. */
    (void)snprintf(rate, sizeof(rate), "%.0f",
                   1 + (double)director->plan.jobs / (0.9 * play_s * PRODUCERS));
    (void)snprintf(mutant, sizeof(mutant), "%d", director->plan.mutant);
    const char *const argv[] = {"chaos",
                                "--role",
                                chaos_part_name(child->part),
                                child->actor,
                                seed,
                                director->plan.kind->name,
                                where,
                                director->folder,
                                rate,
                                mutant,
                                NULL};
    (void)execv("/proc/self/exe", (char *const *)argv);
}

static void become_pawl(const struct director *director, const struct child *child,
                        const char *where)
{
    char store[CHAOS_TEXT_MAX];
    char script[CHAOS_TEXT_MAX];
    bool is_file = director->proxies[0] == NULL;
    (void)snprintf(store, sizeof(store), "%s%s", is_file ? "sqlite:" : "", where);
    /* First the effect, then the work: whatever was completed has been seen. */
    (void)snprintf(script, sizeof(script),
                   "read how; echo \"$PAWL_JOB_ID $PAWL_LEASE_VERSION\" >> %s/" CHAOS_EFFECTS
                   "; [ $how = work ] || sleep 3; exit 0",
                   director->folder);
    const char *const work[] = {director->plan.pawl,
                                "work",
                                CHAOS_SHELL,
                                "--store",
                                store,
                                "--poll",
                                "200ms",
                                "--presence",
                                "1s",
                                "--grace",
                                "500ms",
                                "--parallel",
                                "4",
                                "--name",
                                child->actor,
                                "--reaper-interval",
                                "1s",
                                "--call-timeout",
                                "2s",
                                "--",
                                "sh",
                                "-c",
                                script,
                                NULL};
    const char *const reap[] = {
        director->plan.pawl, "reap", "--watch",    "--store", store, "--lease", "2s",
        "--interval",        "1s",   "--presence", "1s",      NULL};
    const char *const *argv = child->part == CHAOS_COMMAND ? work : reap;
    (void)execv(argv[0], (char *const *)argv);
}

static void become_child(const struct director *director, const struct child *child, int stdin_fd)
{
    char path[CHAOS_TEXT_MAX];
    /* Reapers stand past the proxies: somebody must be able to recover. */
    bool is_direct = director->proxies[0] == NULL || child->part == CHAOS_REAPER ||
                     child->part == CHAOS_WATCH;
    const char *where = is_direct ? director->where : director->through[child->proxy];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)snprintf(path, sizeof(path), "%s/log-%s", director->folder, child->actor);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    (void)dup2(stdin_fd, STDIN_FILENO); /* where these fail, it ends at once and is missed */
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    (void)snprintf(path, sizeof(path), "%s/control-%s", director->folder, child->actor);
    (void)setenv(CHAOS_CONTROL_VARIABLE, path, 1);
    if (director->plan.preload != NULL)
        (void)setenv("LD_PRELOAD", director->plan.preload, 1);
    if (children_is_pawl(child))
        become_pawl(director, child, where);
    else
        become_ourselves(director, child, where);
    _exit(71);
}

/* ---------------------------------------------------------------- life */

static struct chaos_control *new_control(const struct director *director, const struct child *child)
{
    char path[CHAOS_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/control-%s", director->folder, child->actor);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, sizeof(struct chaos_control)) != 0)
        return NULL;
    void *control = mmap(NULL, sizeof(struct chaos_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                         0);
    (void)close(fd);
    return control != MAP_FAILED ? control : NULL;
}

void children_start(struct director *director, size_t place)
{
    struct child *child = &director->children[place];
    int ends[2];
    *child = (struct child){.stdin_fd = -1, .proxy = place % CHAOS_PROXIES};
    child->part = children_part(place, &child->is_survivor);
    director->started++;
    (void)snprintf(child->actor, sizeof(child->actor), "%s-%zu", chaos_part_name(child->part),
                   director->started);
    child->control = new_control(director, child);
    if (child->control == NULL || pipe(ends) != 0) {
        director->is_failed = true;
        return;
    }
    atomic_store(&child->control->is_disk_full, director->full_until_ms != 0);
    atomic_store(&child->control->is_enough, director->is_stocked);
    /* A child gets its own end only: otherwise the end of one would wait for the others. */
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    (void)fflush(stdout); /* or the child has it too */
    child->started_ms = chaos_now_ms();
    child->pid = fork();
    if (child->pid == 0)
        become_child(director, child, ends[0]);
    (void)close(ends[0]);
    child->stdin_fd = ends[1];
    director->is_failed = director->is_failed || child->pid < 0;
    /* It keeps no history: whatever it claims, nobody is told. */
    if (child->part == CHAOS_COMMAND)
        pawli_trace_call(director->pen.writer,
                         &(struct pawli_trace_record){.at = pawl_clock_system()->mono(NULL),
                                                      .until = pawl_clock_system()->mono(NULL),
                                                      .actor = child->actor,
                                                      .subject = child->actor,
                                                      .verb = PAWLI_VERB_CLAIM,
                                                      .code = PAWL_UNKNOWN});
}

static void forget(struct director *director, struct child *child)
{
    director->refused += atomic_load(&child->control->refused);
    director->jumped += atomic_load(&child->control->jumps) > 0;
    (void)munmap(child->control, sizeof(*child->control));
    child->control = NULL;
    if (child->stdin_fd >= 0)
        (void)close(child->stdin_fd);
    child->stdin_fd = -1;
    child->pid = 0;
}

/* The log goes with the machine: its end is said here. */
static void print_log_end(const struct director *director, const struct child *child)
{
    char path[CHAOS_TEXT_MAX];
    char text[LOG_END + 1] = "";
    (void)snprintf(path, sizeof(path), "%s/log-%s", director->folder, child->actor);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return;
    if (fseek(file, -LOG_END, SEEK_END) != 0)
        rewind(file); /* it is shorter than that */
    text[fread(text, 1, LOG_END, file)] = '\0';
    (void)fclose(file); /* it was only read */
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest)) != NULL;)
        (void)printf("#   %s\n", line);
}

static void complain(struct director *director, const struct child *child, int status)
{
    (void)printf("# %s ended with %x; its log ends with:\n", child->actor, (unsigned)status);
    print_log_end(director, child);
    director->is_failed = true;
}

bool children_replace(struct director *director, size_t place)
{
    struct child *child = &director->children[place];
    char name[PAWL_NAME_MAX + 1];
    int status = 0;
    (void)waitpid(child->pid, &status, 0);
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool is_well = is_killed || (code == 0 && child->is_leaving) ||
                   (code == EX_UNAVAILABLE && children_is_pawl(child));
    if (!is_well)
        complain(director, child, status);
    children_name(director, child, name);
    if (is_killed && name[0] != '\0')
        pen_note(&director->pen,
                 &(struct pawli_trace_note){.kind = PAWLI_NOTE_WORKER_CRASH, .actor = name});
    forget(director, child);
    children_start(director, place);
    return is_killed;
}

/* Who found the store away, after the last look at who is missing, is not waited for. */
static void leave_out_missing(struct director *director)
{
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        struct child *child = &director->children[i];
        int status = 0;
        if (!children_is_pawl(child) || child->pid <= 0 ||
            waitpid(child->pid, &status, WNOHANG) != child->pid)
            continue;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != EX_UNAVAILABLE)
            complain(director, child, status);
        forget(director, child);
    }
}

/* False: it has not ended in time. */
static bool has_ended(struct director *director, struct child *child, int64_t until_ms)
{
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(child->pid, &status, WNOHANG)) == 0 && chaos_now_ms() < until_ms)
        (void)poll(NULL, 0, LOOK_MS);
    if (pid == 0) {
        (void)printf("# %s does not end\n", child->actor);
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, &status, 0);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        complain(director, child, status);
    return pid != 0;
}

void children_end(struct director *director)
{
    leave_out_missing(director);
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        struct child *child = &director->children[i];
        bool is_signalled = children_is_pawl(child);
        if (is_signalled && child->pid > 0)
            (void)kill(child->pid, SIGTERM);
        else if (child->stdin_fd >= 0)
            (void)close(child->stdin_fd);
        child->stdin_fd = is_signalled ? child->stdin_fd : -1;
    }
    int64_t until_ms = chaos_now_ms() + END_MOST_MS;
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        struct child *child = &director->children[i];
        if (child->pid <= 0)
            continue;
        director->is_failed = !has_ended(director, child, until_ms) || director->is_failed;
        forget(director, child);
    }
}

/* ---------------------------------------------------------------- looking from outside */

void children_name(const struct director *director, const struct child *child,
                   char name[PAWL_NAME_MAX + 1])
{
    char path[CHAOS_TEXT_MAX];
    uint8_t bytes[FIRST_RECORD];
    struct pawli_trace_reader *reader = NULL;
    struct pawli_trace_record record;
    bool is_more = false;
    name[0] = '\0';
    (void)snprintf(path, sizeof(path), "%s/history-%s.notes", director->folder, child->actor);
    FILE *file = fopen(path, "rb");
    size_t len = file != NULL ? fread(bytes, 1, sizeof(bytes), file) : 0;
    if (file != NULL)
        (void)fclose(file); /* it was only read */
    if (len == 0 || pawli_trace_reader_new(bytes, len, &reader, NULL) != PAWL_OK)
        return;
    if (pawli_trace_read(reader, &record, &is_more, NULL) == PAWL_OK && is_more)
        (void)snprintf(name, PAWL_NAME_MAX + 1, "%s", record.actor);
    pawli_trace_reader_free(reader);
}

static int open_pending(const struct director *director, const struct child *child,
                        enum chaos_phase phase, size_t handle)
{
    static const pawl_role roles[CHAOS_RUNNING] = {PAWL_ROLE_CLAIMER, PAWL_ROLE_SETTLER,
                                                   PAWL_ROLE_RENEWER, PAWL_ROLE_REAPER};
    char path[CHAOS_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/pending-%s.%d.%zu", director->folder, child->actor,
                   (int)roles[phase], handle);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Whether the last handle of this kind has a call under way: see pen.h. */
static bool is_under_way(const struct director *director, struct child *child,
                         enum chaos_phase phase)
{
    uint64_t head = 0;
    int next;
    int fd = open_pending(director, child, phase, child->handles[phase]);
    while (fd >= 0 &&
           (next = open_pending(director, child, phase, child->handles[phase] + 1)) >= 0) {
        (void)close(fd);
        fd = next;
        child->handles[phase]++;
    }
    ssize_t len = fd >= 0 ? pread(fd, &head, sizeof(head), 0) : 0;
    if (fd >= 0)
        (void)close(fd);
    return len == (ssize_t)sizeof(head) && head > 0;
}

bool children_is_in(const struct director *director, struct child *child, enum chaos_phase phase)
{
    int running = atomic_load(&child->control->running);
    if (phase < CHAOS_RUNNING)
        return is_under_way(director, child, phase);
    if (phase == CHAOS_RUNNING)
        return running > 0;
    if (phase == CHAOS_ENDING)
        return child->is_leaving;
    for (enum chaos_phase call = 0; call < CHAOS_RUNNING; call++) {
        if (is_under_way(director, child, call))
            return false;
    }
    return running == 0;
}

static long count_fds(pid_t pid)
{
    char path[64];
    long count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    if (dir != NULL)
        (void)closedir(dir);
    return count;
}

struct vitals children_vitals(const struct child *child)
{
    struct vitals vitals = {.fds = count_fds(child->pid)};
    char path[64];
    char line[256];
    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)child->pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            vitals.rss_kb = strtol(line + 6, NULL, 10);
        if (strncmp(line, "Threads:", 8) == 0)
            vitals.threads = strtol(line + 8, NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
    return vitals;
}
