/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * process_test.c - `pawl work` and `pawl reap` as real processes on PostgreSQL and on a SQLite
 * file: killed, stopped and continued, told to end once and twice. Nothing of them is left after a
 * case.
 *
 * Called with the path of pawl, and --postgres or --sqlite.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"
#include "support/pg_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_CASES 2
#define WORDS_MAX    32
#define TEXT_MAX     65536
#define PATH_MOST    256
#define LARGE_BYTES  100000 /* of a variable; a text in an environment has 128 KiB at most */

static const char *pawl;

/* Those that run, for a test that fails: the next one must not have them beside it. */
static pid_t started[WORDS_MAX];
static size_t started_count;

struct process {
    pid_t pid;
    char log[PATH_MOST];
};

/* A new file below TMPDIR, or /tmp. Gives its descriptor. */
static int make_file(char path[PATH_MOST])
{
    const char *top = getenv("TMPDIR");
    (void)snprintf(path, PATH_MOST, "%s/pawl-process-XXXXXX",
                   top != NULL && top[0] != '\0' ? top : "/tmp"); /* if cut, mkstemp refuses */
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    return fd;
}

/* A file for which a script waits to go: the script finds its path in $WAIT. */
#define UNTIL_IT_MAY_END "while [ -e $WAIT ]; do sleep 0.02; done"
static void make_wait_file(char path[PATH_MOST])
{
    assert_int_equal(close(make_file(path)), 0);
    assert_int_equal(setenv("WAIT", path, 1), 0);
}

static struct process start(const char *const *words)
{
    struct process process = {.pid = -1};
    const char *argv[WORDS_MAX] = {pawl};
    size_t count = 1;
    for (; *words != NULL; words++)
        argv[count++] = *words;
    int log = make_file(process.log);
    process.pid = fork();
    assert_true(process.pid >= 0);
    if (process.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)dup2(log, 1);
        (void)dup2(log, 2);
        (void)execv(pawl, (char *const *)argv);
        _exit(127);
    }
    close(log);
    started[started_count++ % WORDS_MAX] = process.pid;
    return process;
}

struct terms {
    const char *lease;
    const char *grace;
};

static struct process start_worker_on(struct terms terms, const char *script)
{
    const char *const words[] = {"work",
                                 STAGE_QUEUE,
                                 "--lease",
                                 terms.lease,
                                 "--poll",
                                 "50ms",
                                 "--presence",
                                 "200ms",
                                 "--grace",
                                 terms.grace,
                                 "--reaper-interval",
                                 "300ms",
                                 "--verbose",
                                 "--",
                                 "sh",
                                 "-c",
                                 script,
                                 NULL};
    return start(words);
}

/* A worker with a short lease, and a shell for each job. */
static struct process start_worker(const char *script)
{
    return start_worker_on((struct terms){.lease = "3s", .grace = "400ms"}, script);
}

static const char *log_of(const struct process *process)
{
    static char text[TEXT_MAX];
    FILE *file = fopen(process->log, "r");
    size_t len = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[len] = '\0';
    return text;
}

static bool has_said(const struct process *process, const char *words)
{
    return strstr(log_of(process), words) != NULL;
}

static size_t count_said(const struct process *process, const char *words)
{
    size_t count = 0;
    for (const char *at = log_of(process); (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

/* Wait for its end; its exit code, or 1000 and the signal. */
static int end_of(struct process *process)
{
    int status = 0;
    AWAIT(waitpid(process->pid, &status, WNOHANG) == process->pid);
    process->pid = -1;
    (void)unlink(process->log);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* The number that a shell's command prints. */
static size_t count_processes(const char *command)
{
    char text[32] = "0";
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fds[1], 1);
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    ssize_t len = read(fds[0], text, sizeof(text) - 1);
    close(fds[0]);
    (void)waitpid(pid, NULL, 0);
    text[len > 0 ? len : 0] = '\0';
    return (size_t)strtol(text, NULL, 10);
}

/* Those of this test alone: the same test may run from another build at the same time. */
static size_t count_sleepers(int seconds)
{
    char command[128];
    snprintf(command, sizeof(command), "ps axo args= | grep -cxF \"sleep %d.$N\"", seconds);
    return count_processes(command);
}

/* Whatever of the scripts is left. */
static size_t count_left(void)
{
    return count_processes("ps axo args= | grep -c \"^sleep 778[0-9]*[.]$N\"");
}

/* RULE-020-052: its program dies with it, its lease is recovered, and its death is reported. */
static void a_worker_that_is_killed(void **state)
{
    struct stage *stage = *state;
    struct process first = start_worker("exec sleep 77801.$N");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77801) == 1);
    struct process second = start_worker("exit 0");
    AWAIT(has_said(&second, "WORKER-UP"));
    assert_int_equal(kill(first.pid, SIGKILL), 0);
    assert_int_equal(end_of(&first), 1000 + SIGKILL);
    AWAIT(count_sleepers(77801) == 0);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_attempt(stage, &id, 1).outcome, PAWL_ZOMBIE_REQUEUE);
    AWAIT(has_said(&second, "event=WORKER-DIED"));
    assert_int_equal(kill(second.pid, SIGTERM), 0);
    assert_int_equal(end_of(&second), 0);
    pawl_worker rows[8];
    size_t count = 0;
    assert_int_equal(pawl_workers(stage->store, NULL, rows, 8, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0); /* one is buried, the other said goodbye */
}

/* What its program has started does not go on without it: in its session or in one of its own, with
 * its environment or without, and whoever is its parent by now. */
static void nothing_outlives_a_worker_that_is_killed(void **state)
{
    struct stage *stage = *state;
    /* Ours come last in an environment, behind this. */
    char *large = calloc(1, LARGE_BYTES);
    assert_non_null(large);
    memset(large, 'x', LARGE_BYTES - 1);
    for (int i = 0; i < 4; i++) {
        char name[] = {'L', (char)('0' + i), '\0'};
        assert_int_equal(setenv(name, large, 1), 0);
    }
    free(large);
    struct process worker = start_worker(
        "sleep 77804.$N & setsid sleep 77804.$N & "
        "(setsid sh -c 'sleep 77804.$N & sleep 77804.$N' &); "
        "env -i setsid sleep 77804.$N & "
        "env -i setsid setsid sh -c \"sleep 77804.$N & (sleep 77804.$N &) ; exit 0\" & "
        "sleep 77804.$N; exit 0");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77804) == 8);
    assert_int_equal(kill(worker.pid, SIGKILL), 0);
    assert_int_equal(end_of(&worker), 1000 + SIGKILL);
    AWAIT(count_sleepers(77804) == 0);
    for (int i = 0; i < 4; i++) {
        char name[] = {'L', (char)('0' + i), '\0'};
        assert_int_equal(unsetenv(name), 0);
    }
    struct process next = start_worker("exit 0");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(kill(next.pid, SIGTERM), 0);
    assert_int_equal(end_of(&next), 0);
}

/* However early that is: here the program itself kills the worker, as the first thing that it
 * does, and what it leaves looks like nobody's. */
static void a_worker_that_is_killed_as_its_program_starts(void **state)
{
    struct stage *stage = *state;
    char path[PATH_MOST];
    int fd = make_file(path);
    assert_int_equal(setenv("WORKER", path, 1), 0);
    for (int i = 0; i < 8; i++) {
        struct process worker = start_worker("env -i setsid sleep 77807.$N & "
                                             "kill -9 $(cat $WORKER)");
        assert_true(ftruncate(fd, 0) == 0 && dprintf(fd, "%ld", (long)worker.pid) > 0);
        stage_enqueue(stage, "");
        assert_int_equal(end_of(&worker), 1000 + SIGKILL);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    }
    AWAIT(count_sleepers(77807) == 0);
    /* What they held is worked off, so that nothing of it runs in the tests that follow. */
    struct process last = start_worker("exit 0");
    AWAIT(stage_stats(stage).ready + stage_stats(stage).in_flight == 0);
    assert_int_equal(kill(last.pid, SIGTERM), 0);
    assert_int_equal(end_of(&last), 0);
    close(fd);
    (void)unlink(path);
}

/* RULE-020-012, Q-STORE-DOWN: its program is stopped, nothing of it is settled; and it goes on when
 * the store is back. */
static void a_store_that_goes_away_and_comes_back(void **state)
{
    struct stage *stage = *state;
    pawl_wall now;
    struct process worker = start_worker("[ $PAWL_ATTEMPT -gt 1 ] || exec sleep 77805.$N");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77805) == 1);
    pg_server_stop_at_once(kinds_server());
    AWAIT(count_sleepers(77805) == 0);
    AWAIT(has_said(&worker, "reason=beat_failed"));
    assert_true(pg_server_restart(kinds_server()));
    AWAIT(pawl_now(stage->store, &now, NULL) == PAWL_OK);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_attempt(stage, &id, 1).outcome, PAWL_ZOMBIE_REQUEUE);
    assert_int_equal(stage_job(stage, &id).retries, 0);
    assert_int_equal(kill(worker.pid, SIGTERM), 0);
    assert_int_equal(end_of(&worker), 0);
}

/* RULE-020-051 */
static void a_program_past_its_time(void **state)
{
    struct stage *stage = *state;
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.execution_timeout_ms = 300;
    settings.max_retries = 0;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
    struct process worker = start_worker_on((struct terms){.lease = "30s", .grace = "3s"},
                                            "exec sleep 77806.$N");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_FAILED);
    assert_int_equal(stage_attempt(stage, &id, 1).ended_by, PAWL_ENDED_BY_HOLDER);
    assert_string_equal(stage_attempt(stage, &id, 1).error_code, "SIGNAL-15");
    assert_int_equal(count_sleepers(77806), 0);
    assert_int_equal(kill(worker.pid, SIGTERM), 0);
    assert_int_equal(end_of(&worker), 0);
    settings.execution_timeout_ms = PAWL_DEFAULT;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
}

/* RULE-020-042: while as many run, and wait, as it may have, it asks for no more. */
static void a_worker_that_is_full_asks_for_nothing(void **state)
{
    struct stage *stage = *state;
    char path[PATH_MOST];
    make_wait_file(path);
    stage_enqueue_many(stage, 25); /* before it asks: a few more are not worth a claim */
    struct process worker = start_worker_on((struct terms){.lease = "30s", .grace = "3s"},
                                            UNTIL_IT_MAY_END);
    AWAIT(stage_stats(stage).in_flight == 20); /* ten of each, as it is by default */
    size_t runs = count_said(&worker, "event=REAP-RUN");
    AWAIT(count_said(&worker, "event=REAP-RUN") > runs + 1); /* its log has come so far, too */
    size_t claims = count_said(&worker, "verb=claim");
    assert_true(claims > 0);
    runs = count_said(&worker, "event=REAP-RUN");
    AWAIT(count_said(&worker, "event=REAP-RUN") > runs + 10); /* three seconds, at 300 ms each */
    assert_int_equal(count_said(&worker, "verb=claim"), claims);
    assert_int_equal(stage_stats(stage).in_flight, 20);
    assert_int_equal(unlink(path), 0);
    AWAIT(stage_stats(stage).succeeded == 25);
    assert_int_equal(kill(worker.pid, SIGTERM), 0);
    assert_int_equal(end_of(&worker), 0);
}

/* After a pause longer than its lease it looks at the clock first: its program is stopped and
 * nothing of it is settled. */
static void a_worker_that_stood_still(void **state)
{
    struct stage *stage = *state;
    struct process first = start_worker("exec sleep 77802.$N");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77802) == 1);
    assert_int_equal(kill(first.pid, SIGSTOP), 0);
    struct process second = start_worker("exit 0");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(count_sleepers(77802), 1); /* it does not know yet */
    assert_int_equal(kill(first.pid, SIGCONT), 0);
    AWAIT(count_sleepers(77802) == 0);
    AWAIT(has_said(&first, "event=JOB-ABORT"));
    assert_int_equal(stage_attempt(stage, &id, 1).outcome, PAWL_ZOMBIE_REQUEUE);
    assert_int_equal(kill(first.pid, SIGTERM), 0);
    assert_int_equal(kill(second.pid, SIGTERM), 0);
    assert_int_equal(end_of(&first), 0);
    assert_int_equal(end_of(&second), 0);
}

/* RULE-020-030: what runs finishes. */
static void one_signal_ends_it_in_order(void **state)
{
    struct stage *stage = *state;
    char path[PATH_MOST];
    make_wait_file(path);
    struct process worker = start_worker_on((struct terms){.lease = "60s", .grace = "3s"},
                                            UNTIL_IT_MAY_END);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(has_said(&worker, "event=JOB-START"));
    assert_int_equal(kill(worker.pid, SIGINT), 0);
    AWAIT(has_said(&worker, "event=WORKER-STOPPING"));
    assert_int_equal(stage_job(stage, &id).state, PAWL_IN_FLIGHT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(end_of(&worker), 0);
    assert_int_equal(stage_job(stage, &id).state, PAWL_SUCCEEDED);
}

/* Not after the shutdown's time, which is a lease, but after the grace; and within it, so that the
 * job is put back. */
static void two_signals_end_it_at_once(void **state)
{
    struct stage *stage = *state;
    struct process worker = start_worker_on((struct terms){.lease = "10m", .grace = "3s"},
                                            "trap '' TERM; sleep 77803.$N; sleep 77803.$N");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77803) == 1);
    assert_int_equal(kill(worker.pid, SIGTERM), 0);
    AWAIT(has_said(&worker, "event=WORKER-STOPPING"));
    assert_int_equal(kill(worker.pid, SIGTERM), 0);
    assert_int_equal(end_of(&worker), 0);
    assert_int_equal(count_sleepers(77803), 0);
    assert_int_equal(stage_job(stage, &id).state, PAWL_READY);
    assert_int_equal(stage_job(stage, &id).retries, 0);
}

static void a_reaper_alone(void **state)
{
    struct stage *stage = *state;
    static const char *const words[] = {"reap",  "--watch",    "--lease", "400ms",     "--interval",
                                        "100ms", "--presence", "100ms",   "--verbose", NULL};
    static const char *const once[] = {"reap", "--json", NULL};
    struct process reaper = start(words);
    AWAIT(has_said(&reaper, "event=REAP-RUN"));
    pawl_claim_line line = {.queue = STAGE_QUEUE, .jobs_max = 1, .lease_ms = 400};
    pawl_claim_args args = {
        .worker = "dead", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job job;
    size_t count = 0;
    pawl_id id = stage_enqueue(stage, "");
    assert_int_equal(pawl_claim(stage->store, &args, &job, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    pawl_job_clear(&job);
    AWAIT(stage_job(stage, &id).state == PAWL_READY);
    AWAIT(has_said(&reaper, "event=REAPED"));
    assert_int_equal(kill(reaper.pid, SIGTERM), 0);
    assert_int_equal(end_of(&reaper), 0);
    struct process single = start(once);
    AWAIT(has_said(&single, "\"recovered\": 0"));
    assert_int_equal(end_of(&single), 0);
}

static void bad_words_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][WORDS_MAX] = {
        {"work", NULL},
        {"work", "q", NULL},
        {"work", "q", "--", NULL},
        {"work", "--", "true", NULL},
        {"work", "q", "--parallel", "x", "--", "true", NULL},
        {"work", "q", "--poll", "5", "--", "true", NULL},
        {"work", "q", "--paralel", "5", "--", "true", NULL},
        {"reap", "--wath", NULL},
        {"reap", "--watch", "--interval", "5", NULL},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct process process = start(bad[i]);
        int code = end_of(&process);
        if (code != 64)
            fail_msg("%s %s ...: %d", bad[i][0], bad[i][1], code);
    }
    static const char *const missing[] = {"work", "q", "--", "no-such-program", NULL};
    struct process process = start(missing);
    AWAIT(has_said(&process, "no-such-program"));
    assert_int_equal(end_of(&process), 78);
}

static int end_all(void **state)
{
    for (size_t i = 0; i < started_count && i < WORDS_MAX; i++) {
        int status;
        if (started[i] > 0 && waitpid(started[i], &status, WNOHANG) == 0) {
            (void)kill(started[i], SIGKILL);
            (void)waitpid(started[i], &status, 0);
        }
    }
    started_count = 0;
    AWAIT(count_left() == 0);
    return kinds_teardown(state);
}

/* Programs find the store where the test has it. */
static int begin(void **state)
{
    char url[sizeof((*(struct stage *)NULL).scratch.path) + 16];
    int failed = kinds_setup(state);
    const struct stage *stage = *state;
    if (failed == 0 && stage->sqlite != NULL) {
        snprintf(url, sizeof(url), "sqlite:%s", stage->scratch.path);
        (void)setenv("DATABASE_URL", url, 1);
    }
    return failed;
}

#undef CASE
#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end_all)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_worker_that_is_killed),
        CASE(nothing_outlives_a_worker_that_is_killed),
        CASE(a_worker_that_is_killed_as_its_program_starts),
        CASE(a_program_past_its_time),
        CASE(a_worker_that_is_full_asks_for_nothing),
        CASE(one_signal_ends_it_in_order),
        CASE(two_signals_end_it_at_once),
        CASE(a_reaper_alone),
        CASE(bad_words_are_refused),
        /* Of a server: a file does not go away; and who stands still may do so with the file's
         * lock, and nobody else gets on. */
        CASE(a_store_that_goes_away_and_comes_back),
        CASE(a_worker_that_stood_still),
    };
    if (argc < 3) {
        fprintf(stderr, "usage: %s PAWL --postgres|--sqlite\n", argv[0]);
        return 2;
    }
    char number[32];
    pawl = argv[1];
    snprintf(number, sizeof(number), "%ld", (long)getpid());
    (void)setenv("N", number, 1); /* for the scripts: see count_sleepers() */
    bool is_file = strcmp(argv[2], "--sqlite") == 0;
    return kinds_run(argc - 1, argv + 1, tests,
                     sizeof(tests) / sizeof(tests[0]) - (is_file ? SERVER_CASES : 0));
}
