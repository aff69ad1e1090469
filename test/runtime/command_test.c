/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command_test.c - programs as handlers: what they get, what their exit says, how they end, and
 * that nothing of them is left.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/proc.h"
#include "runtime/stage.h"
#include "runtime/warden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 65536

/* A worker that runs a shell for each job; the script finds a folder of its own in $FOLDER. */
struct shell {
    struct stage *stage;
    char folder[64];
    pawl_command *command;
    pawl_runner *runner;
};

static void read_into(const char *path, char text[TEXT_MAX])
{
    FILE *file = fopen(path, "r");
    size_t len = file != NULL ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    text[len] = '\0';
    if (file != NULL)
        fclose(file);
}

static const char *path_of(const struct shell *shell, const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", shell->folder, name);
    return path;
}

static bool exists(const struct shell *shell, const char *name)
{
    return access(path_of(shell, name), F_OK) == 0;
}

static struct shell *shell_open(struct stage *stage, const char *script,
                                const pawl_worker_options *changed)
{
    struct shell *shell = calloc(1, sizeof(*shell));
    pawl_worker_options options;
    pawl_err err;
    assert_non_null(shell);
    shell->stage = stage;
    snprintf(shell->folder, sizeof(shell->folder), "/tmp/pawl-command-XXXXXX");
    assert_non_null(mkdtemp(shell->folder));
    char number[32];
    snprintf(number, sizeof(number), "%ld", (long)getpid());
    assert_int_equal(setenv("FOLDER", shell->folder, 1), 0);
    assert_int_equal(setenv("N", number, 1), 0);
    char sh[] = "sh", c[] = "-c", text[4096];
    snprintf(text, sizeof(text), "%s", script);
    char *argv[] = {sh, c, text, NULL};
    pawl_command_options command = {.argv = argv, .is_process_ours = true};
    assert_int_equal(pawl_command_new(&command, &shell->command, &err), PAWL_OK);
    if (changed != NULL)
        options = *changed;
    else
        stage_options(stage, &options);
    options.handler = pawl_command_handler;
    options.user = shell->command;
    shell->runner = stage_start(&options);
    return shell;
}

static void remove_folder(const char *folder)
{
    char path[512];
    DIR *files = opendir(folder);
    const struct dirent *entry;
    while (files != NULL && (entry = readdir(files)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)unlink(path);
    }
    if (files != NULL)
        closedir(files);
    (void)rmdir(folder);
}

static void shell_close(struct shell *shell)
{
    if (shell->runner != NULL)
        stage_stop(shell->stage, shell->runner);
    pawl_command_free(shell->command);
    remove_folder(shell->folder);
    free(shell);
}

/* Processes whose command line is exactly this. */
static size_t count_processes(const char *line)
{
    size_t count = 0;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    char path[300];
    char text[4096];
    while ((entry = readdir(processes)) != NULL) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        FILE *file = fopen(path, "r");
        size_t len = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
        if (file != NULL)
            fclose(file);
        for (size_t i = 0; i < len; i++)
            if (text[i] == '\0')
                text[i] = ' ';
        text[len > 0 ? len - 1 : 0] = '\0';
        count += strcmp(text, line) == 0;
    }
    closedir(processes);
    return count;
}

/* Those of this test alone: the same test may run from another build at the same time. */
static size_t count_sleepers(int seconds)
{
    char line[64];
    snprintf(line, sizeof(line), "sleep %d.%ld", seconds, (long)getpid());
    return count_processes(line);
}

static size_t count_files(const char *folder)
{
    size_t count = 0;
    DIR *files = opendir(folder);
    while (files != NULL && readdir(files) != NULL)
        count++;
    if (files != NULL)
        closedir(files);
    return count;
}

/* ---------------------------------------------------------------- what a program gets */

static void a_program_gets_its_job(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage,
                                     "cat > $FOLDER/payload; env > $FOLDER/env;"
                                     "ps -o pid=,pgid=,sid= -p $$ > $FOLDER/ids;"
                                     /* Again: a shell opens and blocks, for a moment, to fork. */
                                     "for i in 1 2 3 4 5 6 7 8 9; do "
                                     "ls /proc/$$/fd | tr '\\n' ' ' > $FOLDER/fds; "
                                     "grep -qx '0 1 2 ' $FOLDER/fds && break; done;"
                                     "for i in 1 2 3 4 5 6 7 8 9; do "
                                     "grep Sig /proc/$$/status > $FOLDER/signals;"
                                     "grep -q 'SigBlk:.0*$' $FOLDER/signals && break; done",
                                     NULL);
    char text[TEXT_MAX];
    char wanted[128];
    char id_text[PAWL_ID_TEXT_MAX];
    int before = open("/dev/null", O_RDONLY); /* not closed on exec: it must not be handed on */
    pawl_id id = stage_enqueue(stage, "the payload");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    read_into(path_of(shell, "payload"), text);
    assert_string_equal(text, "the payload");
    read_into(path_of(shell, "env"), text);
    snprintf(wanted, sizeof(wanted), "PAWL_JOB_ID=%s\n", pawl_id_format(&id, id_text));
    assert_non_null(strstr(text, wanted));
    assert_non_null(strstr(text, "PAWL_QUEUE=" STAGE_QUEUE "\n"));
    assert_non_null(strstr(text, "PAWL_ATTEMPT=1\n"));
    assert_non_null(strstr(text, "PAWL_LEASE_VERSION=1\n"));
    assert_non_null(strstr(text, "PAWL_ORDERING_KEY=\n"));
    assert_non_null(strstr(text, "PAWL_FENCE=0\n"));
    assert_non_null(strstr(text, "PAWL_DEADLINE="));
    assert_non_null(strstr(text, "TRACEPARENT=00-"));
    assert_non_null(strstr(text, "PATH="));
    int64_t deadline = strtoll(strstr(text, "PAWL_DEADLINE=") + 14, NULL, 10);
    int64_t now = pawl_clock_system()->wall(NULL).us / 1000000;
    assert_in_range(deadline, now - 5, now + 3 * stage_lease_ms() / 1000 + 1);
    long pid, group, session;
    read_into(path_of(shell, "ids"), text);
    assert_int_equal(sscanf(text, "%ld %ld %ld", &pid, &group, &session), 3);
    assert_true(pid == group && pid == session && pid != getpid());
    read_into(path_of(shell, "fds"), text);
    assert_string_equal(text, "0 1 2 ");
    read_into(path_of(shell, "signals"), text);
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(text, "SigIgn:\t0000000000000000"));
    close(before);
    shell_close(shell);
}

/* A program can tell what it writes to which lease wrote it: docs/fencing.md. */
static void a_program_gets_its_key_and_fence(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "env > $FOLDER/env", NULL);
    char text[TEXT_MAX];
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    pawl_enqueue_init(&row);
    row.queue = STAGE_QUEUE;
    row.ordering_key = "customer 17=\xc3\xa4";
    for (int i = 1; i <= 2; i++) {
        char wanted[64];
        assert_int_equal(pawl_enqueue(stage->store, &row, 1, &result, &err), PAWL_OK);
        AWAIT(stage_job(stage, &result.id).state == PAWL_SUCCEEDED);
        read_into(path_of(shell, "env"), text);
        assert_non_null(strstr(text, "PAWL_ORDERING_KEY=customer 17=\xc3\xa4\n"));
        snprintf(wanted, sizeof(wanted), "PAWL_FENCE=%d\n", i); /* a memory store's first ones */
        assert_non_null(strstr(text, wanted));
    }
    shell_close(shell);
}

/* Enqueue a job with headers, and read the environment that its program had. */
static void run_with(struct shell *shell, const char *headers, char text[TEXT_MAX])
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    pawl_enqueue_init(&row);
    row.queue = STAGE_QUEUE;
    row.headers = headers;
    if (pawl_enqueue(shell->stage->store, &row, 1, &result, &err) != PAWL_OK)
        fail_msg("enqueue: %s", err.text);
    AWAIT(stage_job(shell->stage, &result.id).state == PAWL_SUCCEEDED);
    text[0] = '\n'; /* so that each variable stands behind a newline */
    char *rest = malloc(TEXT_MAX);
    assert_non_null(rest);
    read_into(path_of(shell, "env"), rest);
    snprintf(text + 1, TEXT_MAX - 1, "%s", rest);
    free(rest);
}

static void a_program_gets_the_headers(void **state)
{
    struct stage *stage = *state;
    char *text = malloc(TEXT_MAX);
    assert_non_null(text);
    /* As where this worker is itself a program at work on a job with headers. */
    assert_int_equal(setenv("PAWL_HEADER_OTHERS", "leaked", 1), 0);
    struct shell *shell = shell_open(stage, "env > $FOLDER/env", NULL);
    run_with(shell,
             "tenant: acme\nX-Request.Id: 7: \xc3\xa4 = b\nempty: \nx_request-id: second\nn0: 0\n",
             text);
    assert_non_null(strstr(text, "\nPAWL_HEADER_TENANT=acme\n"));
    assert_non_null(strstr(text, "\nPAWL_HEADER_X_REQUEST_ID=7: \xc3\xa4 = b\n"));
    assert_null(strstr(text, "second")); /* the first counts */
    assert_non_null(strstr(text, "\nPAWL_HEADER_EMPTY=\n"));
    assert_non_null(strstr(text, "\nPAWL_HEADER_N0=0\n"));
    assert_null(strstr(text, "leaked"));
    run_with(shell, NULL, text);
    assert_null(strstr(text, "PAWL_HEADER_"));
    assert_non_null(strstr(text, "\nFOLDER="));
    shell_close(shell);
    unsetenv("PAWL_HEADER_OTHERS");
    free(text);
}

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

/* A valid trace goes on under a span of this run's own; any other counts as none. */
static void a_program_goes_on_with_the_trace(void **state)
{
    static const struct {
        const char *parent;
        const char *flags; /* NULL: it is not valid */
    } cases[] = {
        {"00-" TRACE "-" SPAN "-00", "00"},
        {"00-" TRACE "-" SPAN "-00", "00"}, /* of another job, and yet another span */
        {"00-" TRACE "-" SPAN "-01", "01"},
        {"00-" TRACE "-" SPAN "-03", "03"},
        {"cc-" TRACE "-" SPAN "-03-more", "01"}, /* what its other flags mean is not known */
        {"cc-" TRACE "-" SPAN "-02", "00"},
        {"00-" TRACE "-" SPAN "-01-more", NULL},
        {"cc-" TRACE "-" SPAN "-01more", NULL},
        {"ff-" TRACE "-" SPAN "-01", NULL},
        {"00-" TRACE "-" SPAN "-0", NULL},
        {"00-" TRACE "-" SPAN "-0x", NULL},
        {"00-" TRACE "-0000000000000000-01", NULL},
        {"00-00000000000000000000000000000000-" SPAN "-01", NULL},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", NULL},
        {"00 " TRACE "-" SPAN "-01", NULL},
        {"00-" TRACE "_" SPAN "-01", NULL},
        {"00-" TRACE "-" SPAN "_01", NULL},
        {"0g-" TRACE "-" SPAN "-01", NULL},
        {"", NULL},
    };
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "env > $FOLDER/env", NULL);
    char *text = malloc(TEXT_MAX);
    char last[64] = "";
    assert_non_null(text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char headers[256];
        snprintf(headers, sizeof(headers), "TraceParent: %s\n", cases[i].parent);
        run_with(shell, headers, text);
        const char *given = strstr(text, "\nTRACEPARENT=00-");
        assert_non_null(given);
        given += strlen("\nTRACEPARENT=");
        assert_int_equal(strcspn(given, "\n"), 55);
        if ((memcmp(given + 3, TRACE, 32) == 0) != (cases[i].flags != NULL))
            fail_msg("of \"%s\" came %.55s", cases[i].parent, given);
        assert_memory_equal(given + 53, cases[i].flags != NULL ? cases[i].flags : "01", 2);
        assert_memory_not_equal(given + 36, SPAN, 16);
        assert_memory_not_equal(given, last, 55); /* each run is a span of its own */
        memcpy(last, given, 55);
    }
    shell_close(shell);
    free(text);
}

static void what_its_exit_says(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "read what; echo \"about: $what\" >&2; eval \"$what\"",
                                     NULL);
    pawl_id done = stage_enqueue(stage, "exit 0\n");
    pawl_id snooze = stage_enqueue(stage, "exit 75\n");
    pawl_id fail = stage_enqueue(stage, "exit 65\n");
    pawl_id retry = stage_enqueue(stage, "test $PAWL_ATTEMPT -gt 1 || exit 3\n");
    pawl_id killed = stage_enqueue(stage, "test $PAWL_ATTEMPT -gt 1 || kill -9 $$\n");
    AWAIT(stage_job(stage, &done).state == PAWL_SUCCEEDED);
    AWAIT(stage_job(stage, &retry).state == PAWL_SUCCEEDED);
    AWAIT(stage_job(stage, &killed).state == PAWL_SUCCEEDED);
    AWAIT(stage_job(stage, &fail).state == PAWL_FAILED);
    AWAIT(stage_job(stage, &snooze).attempts > 0);
    assert_int_equal(stage_attempt(stage, &snooze, 1).reason, PAWL_REASON_SNOOZE);
    assert_int_equal(stage_job(stage, &snooze).retries, 0);
    assert_int_equal(stage_job(stage, &fail).reason, PAWL_REASON_FATAL);
    assert_string_equal(stage_attempt(stage, &fail, 1).error_code, "EXIT-65");
    assert_string_equal(stage_attempt(stage, &fail, 1).error_text, "about: exit 65");
    assert_string_equal(stage_attempt(stage, &retry, 1).error_code, "EXIT-3");
    assert_int_equal(stage_attempt(stage, &retry, 1).reason, PAWL_REASON_ERROR);
    assert_string_equal(stage_attempt(stage, &killed, 1).error_code, "SIGNAL-9");
    assert_string_equal(stage_attempt(stage, &done, 1).error_text, "");
    shell_close(shell);
}

static void the_last_lines_of_its_complaint_are_kept(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(
        stage,
        "i=0; while [ $i -lt 2000 ]; do echo \"line $i of very many\" >&2; i=$((i+1)); done;"
        "printf 'bell \\007 bad \\377 nul \\000 umlaut \\303\\244\\r\\n\\n' >&2; exit 65",
        NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_FAILED);
    pawl_attempt row = stage_attempt(stage, &id, 1);
    size_t len = strlen(row.error_text);
    assert_in_range(len, PAWL_ERROR_TEXT_MAX - 60, PAWL_ERROR_TEXT_MAX);
    assert_int_equal(strncmp(row.error_text, "line 19", 7), 0); /* a whole line comes first */
    static const char end[] = "line 1999 of very many\nbell ? bad ? nul ? umlaut \xc3\xa4";
    assert_string_equal(row.error_text + len - strlen(end), end);
    shell_close(shell);
}

/* More than a pipe takes. The caller frees it. */
static char *large_text(void)
{
    char *large = malloc(PAWL_PAYLOAD_MAX);
    assert_non_null(large);
    memset(large, 'x', PAWL_PAYLOAD_MAX - 1);
    large[PAWL_PAYLOAD_MAX - 1] = '\0';
    return large;
}

/* A program that does not read its payload holds up nobody, and may succeed. */
static void a_payload_need_not_be_read(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "[ $PAWL_ATTEMPT = 1 ] || exec <&-; exit 0", NULL);
    char *large = large_text();
    pawl_id id = stage_enqueue(stage, large);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    shell_close(shell);
    shell = shell_open(stage, "wc -c > $FOLDER/size", NULL);
    id = stage_enqueue(stage, large);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    char text[TEXT_MAX];
    read_into(path_of(shell, "size"), text);
    assert_int_equal(strtol(text, NULL, 10), PAWL_PAYLOAD_MAX - 1);
    shell_close(shell);
    free(large);
}

/* ---------------------------------------------------------------- how it ends */

static struct shell *timed(struct stage *stage, const char *script)
{
    pawl_queue_settings settings;
    pawl_worker_options options;
    pawl_queue_settings_init(&settings);
    settings.lease_ms = 30000;            /* a busy machine needs some: to begin, */
    settings.execution_timeout_ms = 2000; /* to be told, and to end */
    settings.max_retries = 0;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
    stage_options(stage, &options);
    options.settings.grace_ms = 6000;
    return shell_open(stage, script, &options);
}

/* RULE-020-051 with a program that stops when it is told to: SIGTERM goes to the whole group. */
static void a_program_past_its_time_is_told_to_stop(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = timed(
        stage, "trap 'echo told >&2; touch $FOLDER/told; exit 9' TERM; sleep 77701.$N & wait");
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_FAILED);
    assert_true(exists(shell, "told"));
    assert_int_equal(stage_attempt(stage, &id, 1).ended_by, PAWL_ENDED_BY_HOLDER);
    assert_string_equal(stage_attempt(stage, &id, 1).error_text, "told");
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_ABORT, "timeout") == 1);
    assert_int_equal(count_sleepers(77701), 0);
    shell_close(shell);
}

/* One that does not is killed within the grace, so that its end can still be settled; also where
 * it has not read its payload, and never will. */
static void a_program_that_ignores_it_is_killed(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = timed(stage, "trap '' TERM; sleep 77702.$N; sleep 77702.$N");
    char *large = large_text();
    pawl_id id = stage_enqueue(stage, large);
    free(large);
    AWAIT(stage_job(stage, &id).state == PAWL_FAILED);
    assert_int_equal(stage_attempt(stage, &id, 1).ended_by, PAWL_ENDED_BY_HOLDER);
    assert_string_equal(stage_attempt(stage, &id, 1).error_code, "SIGNAL-9");
    assert_int_equal(stage_told(stage, PAWL_EVENT_JOB_GIVEN_UP, NULL), 0);
    assert_int_equal(count_sleepers(77702), 0);
    shell_close(shell);
}

/* A lease that is lost stops the program; nothing of it is settled. */
static void a_lost_lease_stops_the_program(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "[ $PAWL_ATTEMPT -gt 1 ] || exec sleep 77703.$N", NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77703) == 1);
    fault_gate_set(&stage->gate, FAULT_RENEW, FAULT_DOWN);
    AWAIT(count_sleepers(77703) == 0);
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_ABORT, "beat_failed") == 1);
    fault_gate_open(&stage->gate, FAULT_RENEW);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_attempt(stage, &id, 1).outcome, PAWL_ZOMBIE_REQUEUE);
    shell_close(shell);
}

/* A shutdown tells it to stop; that uses no retry. */
static void a_shutdown_stops_the_program(void **state)
{
    struct stage *stage = *state;
    const pawl_worker_queue queue = {STAGE_QUEUE, PAWL_DEFAULT, 30000};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.queues = &queue;
    struct shell *shell = shell_open(stage, "exec sleep 77704.$N", &options);
    pawl_worker_end end;
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77704) == 1);
    pawl_worker_stop(shell->runner, 8000); /* a quarter of it to end, and to be settled */
    assert_int_equal(pawl_worker_wait(shell->runner, STAGE_WAIT_MS, &end), PAWL_OK);
    assert_int_equal(end.jobs_left, 0);
    assert_int_equal(stage_drop(stage, shell->runner), 0);
    shell->runner = NULL;
    assert_int_equal(count_sleepers(77704), 0);
    assert_int_equal(stage_job(stage, &id).state, PAWL_READY);
    assert_int_equal(stage_job(stage, &id).retries, 0);
    assert_int_equal(stage_job(stage, &id).reason, PAWL_REASON_SHUTDOWN);
    shell_close(shell);
}

/* ---------------------------------------------------------------- what is left */

/* Of its group, of its session, of no session of its own, with another environment: all go. */
static void no_descendant_is_left(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(
        stage,
        "sleep 77705.$N & "
        "(set -m; env -i sleep 77705.$N &) ; "
        "setsid sleep 77705.$N & "
        "(setsid sh -c 'sleep 77705.$N & sleep 77705.$N' &) ; "
        "env -i setsid sleep 77705.$N & "
        "env -i setsid setsid sh -c \"sleep 77705.$N & exit 0\" & "
        "while [ $(ps axo args= | grep -cxF \"sleep 77705.$N\") -lt 7 ]; "
        "do sleep 0.01; done; exit 0",
        NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    AWAIT(count_sleepers(77705) == 0);
    shell_close(shell);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
    assert_int_equal(errno, ECHILD);
}

/* What may belong to a command that still runs is left alone, until that has ended. */
static void strays_of_others_are_spared(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage,
                                     "read what; if [ $what = long ]; then "
                                     "env -i setsid setsid sh -c \"sleep 77706.$N & exit 0\"; "
                                     "touch $FOLDER/long; "
                                     "while [ ! -e $FOLDER/end ]; do sleep 0.01; done; "
                                     "else setsid sleep 77707.$N & "
                                     "while ! ps axo args= | grep -qxF \"sleep 77707.$N\"; "
                                     "do sleep 0.01; done; fi",
                                     NULL);
    pawl_id longer = stage_enqueue(stage, "long\n");
    AWAIT(exists(shell, "long") && count_sleepers(77706) == 1);
    pawl_id shorter = stage_enqueue(stage, "short\n");
    AWAIT(stage_job(stage, &shorter).state == PAWL_SUCCEEDED);
    AWAIT(count_sleepers(77707) == 0); /* its own: the environment tells */
    assert_int_equal(count_sleepers(77706), 1);
    fclose(fopen(path_of(shell, "end"), "w"));
    AWAIT(stage_job(stage, &longer).state == PAWL_SUCCEEDED);
    AWAIT(count_sleepers(77706) == 0);
    shell_close(shell);
}

/* One that has hidden goes with its own command, whoever else runs, and since when. */
static void a_stray_goes_although_an_older_command_runs(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage,
                                     "read what; if [ $what = old ]; then touch $FOLDER/old; "
                                     "while [ ! -e $FOLDER/end ]; do sleep 0.01; done; "
                                     "else env -i setsid setsid sh -c \"sleep 77708.$N & exit 0\"; "
                                     "while ! ps axo args= | grep -qxF \"sleep 77708.$N\"; "
                                     "do sleep 0.01; done; fi",
                                     NULL);
    pawl_id old = stage_enqueue(stage, "old\n");
    AWAIT(exists(shell, "old"));
    pawl_id young = stage_enqueue(stage, "young\n");
    AWAIT(stage_job(stage, &young).state == PAWL_SUCCEEDED);
    assert_int_equal(count_sleepers(77708), 0); /* gone before its job is done */
    assert_int_equal(stage_job(stage, &old).state, PAWL_IN_FLIGHT);
    fclose(fopen(path_of(shell, "end"), "w"));
    AWAIT(stage_job(stage, &old).state == PAWL_SUCCEEDED);
    shell_close(shell);
}

/* ---------------------------------------------------------------- wardens */

/* The one warden of this process; 0: there is none. */
static pid_t find_warden(void)
{
    pid_t found = 0;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    struct pawli_proc seen;
    while ((entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 1 && pawli_proc_look(pid, &seen) && seen.parent == getpid() &&
            strcmp(seen.name, PAWLI_WARDEN_NAME) == 0)
            found = pid;
    }
    closedir(processes);
    return found;
}

/* What is left to a warden and ends while its program goes on is no zombie for long. And a warden
 * has nothing of ours but what it needs. */
static void a_warden_keeps_house(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(
        stage,
        "(sh -c 'exit 0' &); (sh -c 'exit 0' &); "
        "while ps axo ppid=,stat= | grep -q \"^ *$PPID Z\"; do sleep 0.01; done; "
        "ls -l /proc/$PPID/fd | sed -n 's/.* -> //p' | sed 's/[0-9]*]$//' | sort | tr '\\n' ' ' "
        "> $FOLDER/fds; exit 0",
        NULL);
    char text[TEXT_MAX];
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    read_into(path_of(shell, "fds"), text);
    assert_string_equal(text, "/dev/null /dev/null /dev/null anon_inode:[signalfd socket:[ ");
    pid_t warden = find_warden();
    assert_true(warden > 0);
    id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(find_warden(), warden); /* the same for the next one */
    shell_close(shell);
    assert_int_equal(find_warden(), 0);
}

/* Its program goes with it, which is a failed attempt, and so does what that has left. */
static void a_warden_that_is_killed(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage,
                                     "[ $PAWL_ATTEMPT -gt 1 ] && exit 0; "
                                     "env -i setsid setsid sh -c \"sleep 77709.$N & exit 0\"; "
                                     "setsid sleep 77709.$N & sleep 77709.$N",
                                     NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(count_sleepers(77709) == 3);
    pid_t warden = find_warden();
    assert_true(warden > 0);
    assert_int_equal(kill(warden, SIGTERM), 0); /* it takes none */
    assert_int_equal(kill(warden, SIGKILL), 0);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_string_equal(stage_attempt(stage, &id, 1).error_code, "SIGNAL-9");
    AWAIT(count_sleepers(77709) == 0);
    shell_close(shell);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
    assert_int_equal(errno, ECHILD);
}

static void no_descriptor_is_left(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "echo complaint >&2; exit $((PAWL_ATTEMPT % 2))", NULL);
    stage_enqueue_many(stage, 20);
    AWAIT(stage_stats(stage).succeeded == 20);
    size_t before = count_files("/proc/self/fd");
    stage_enqueue_many(stage, 100);
    AWAIT(stage_stats(stage).succeeded == 120);
    AWAIT(count_files("/proc/self/fd") <= before);
    shell_close(shell);
}

/* What becomes of a job whose program the machine cannot start: put back, as often as need be,
 * without a retry; and done when the machine can. */
static void is_put_back(struct stage *stage, const pawl_id *id)
{
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_NOT_STARTED, "no_resources") > 0);
    AWAIT(stage_job(stage, id).attempts > 0);
    pawl_attempt row = stage_attempt(stage, id, 1);
    assert_int_equal(row.reason, PAWL_REASON_SNOOZE);
    assert_string_equal(row.error_code, "NO-RESOURCES");
    pawl_job job = stage_job(stage, id);
    assert_int_equal(job.retries, 0);
    if (job.state == PAWL_READY && job.attempts == 1) /* a busy machine may be further by now */
        assert_true(job.due_at.us >= row.finished_at.us + 4000000);
}

static bool is_fork_refused; /* by fork() below */
pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    errno = EAGAIN;
    return is_fork_refused ? -1 : __real_fork();
}

static void a_machine_without_processes(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "exit 0", NULL);
    is_fork_refused = true;
    pawl_id id = stage_enqueue(stage, "");
    is_put_back(stage, &id);
    is_fork_refused = false;
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_job(stage, &id).retries, 0);
    shell_close(shell);
}

static long limit_warden(const struct rlimit *limit)
{
    return syscall(SYS_prlimit64, find_warden(), RLIMIT_NOFILE, limit, NULL);
}

static void a_machine_without_descriptors(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "exit 0", NULL);
    struct rlimit usual, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = usual;
    pawl_id first = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &first).state == PAWL_SUCCEEDED);
    few.rlim_cur = 4; /* fewer than there are: no more can be had */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_NOT_STARTED, "no_resources") > 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    is_put_back(stage, &id);
    /* And where it is the warden that can have no more. */
    assert_int_equal(limit_warden(&few), 0);
    pawl_id other = stage_enqueue(stage, "");
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_NOT_STARTED, "no_resources") > 1);
    is_put_back(stage, &other);
    assert_int_equal(limit_warden(&usual), 0);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    AWAIT(stage_job(stage, &other).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_job(stage, &other).retries, 0);
    shell_close(shell);
}

/* One that was killed while it had nothing to do costs the next job nothing. */
static void an_idle_warden_that_is_killed(void **state)
{
    struct stage *stage = *state;
    struct shell *shell = shell_open(stage, "exit 0", NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    pid_t warden = find_warden();
    assert_int_equal(kill(warden, SIGKILL), 0);
    siginfo_t info; /* it is gone, and not yet reaped */
    assert_int_equal(waitid(P_PID, (id_t)warden, &info, WEXITED | WNOWAIT), 0);
    id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_job(stage, &id).attempts, 1);
    shell_close(shell);
}

static void a_program_that_cannot_be_run(void **state)
{
    struct stage *stage = *state;
    pawl_command *command = NULL;
    pawl_err err;
    char missing[] = "no-such-program-anywhere", empty[] = "";
    char *argv[] = {missing, NULL};
    char *nothing[] = {empty, NULL};
    assert_int_equal(pawl_command_new(&(pawl_command_options){.argv = argv}, &command, &err),
                     PAWL_INVALID);
    assert_non_null(strstr(err.text, missing));
    assert_int_equal(pawl_command_new(&(pawl_command_options){.argv = nothing}, &command, &err),
                     PAWL_INVALID);
    assert_int_equal(pawl_command_new(NULL, &command, &err), PAWL_INVALID);
    char folder[] = "/tmp"; /* every job would use up its retries on it */
    char *no_file[] = {folder, NULL};
    assert_int_equal(pawl_command_new(&(pawl_command_options){.argv = no_file}, &command, &err),
                     PAWL_INVALID);

    /* It goes away after the worker has started. */
    char path[] = "/tmp/pawl-program-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && fchmod(fd, 0700) == 0 && close(fd) == 0);
    char *gone[] = {path, NULL};
    assert_int_equal(pawl_command_new(&(pawl_command_options){.argv = gone}, &command, &err),
                     PAWL_OK);
    assert_int_equal(unlink(path), 0);
    pawl_worker_options options;
    stage_options(stage, &options);
    options.handler = pawl_command_handler;
    options.user = command;
    pawl_runner *runner = stage_start(&options);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_FAILED);
#if !defined(__SANITIZE_THREAD__)
    assert_string_equal(stage_attempt(stage, &id, 1).error_code, "SPAWN");
#endif
    stage_stop(stage, runner);
    pawl_command_free(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_program_gets_its_job),
        CASE(a_program_gets_its_key_and_fence),
        CASE(a_program_gets_the_headers),
        CASE(a_program_goes_on_with_the_trace),
        CASE(what_its_exit_says),
        CASE(the_last_lines_of_its_complaint_are_kept),
        CASE(a_payload_need_not_be_read),
        CASE(a_program_past_its_time_is_told_to_stop),
        CASE(a_program_that_ignores_it_is_killed),
        CASE(a_lost_lease_stops_the_program),
        CASE(a_shutdown_stops_the_program),
        CASE(no_descendant_is_left),
        CASE(strays_of_others_are_spared),
        CASE(a_stray_goes_although_an_older_command_runs),
        CASE(a_warden_keeps_house),
        CASE(a_warden_that_is_killed),
        CASE(no_descriptor_is_left),
        CASE(a_machine_without_processes),
        CASE(a_machine_without_descriptors),
        CASE(an_idle_warden_that_is_killed),
        CASE(a_program_that_cannot_be_run),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
