/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command.c - commands as handlers: a program is run for each job.
 * Owns:  the wardens, of whom each run has one; what the exit of a program says of the job.
 * Never: blocks on a program that does not read, write or end; leaves a zombie or a descriptor.
 * Locks: command.mutex, for the lists of wardens; never held over a system call that blocks.
 */
#include "runtime/command_run.h"

#include "base/error.h"
#include "runtime/crew.h"
#include "runtime/job_ctx.h"
#include "runtime/strays.h"
#include "runtime/warden.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES_MAX    5 /* to start a program where the machine is short of something */
#define TRY_PAUSE_MS 200
#define PUT_BACK_MS  5000 /* how long such a job waits then */
#define DEATH_ROUNDS 200  /* looks whether a warden has died */
#define DEATH_MS     5

TAILQ_HEAD(wardens, pawli_warden);

struct pawl_command {
    char **argv; /* owned */
    char *path;  /* owned: where argv[0] was found */
    bool is_process_ours;
    pthread_mutex_t mutex;
    struct wardens idle; /* mutex */
    struct wardens left; /* dismissed, not known to have ended: mutex */
};

/* ---------------------------------------------------------------- life */

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = malloc(size);
    if (to != NULL)
        memcpy(to, text, size);
    return to;
}

static char **copy_argv(char *const *argv)
{
    size_t count = 0;
    while (argv[count] != NULL)
        count++;
    char **to = calloc(count + 1, sizeof(char *));
    for (size_t i = 0; i < count && to != NULL; i++) {
        to[i] = copy(argv[i]);
        if (to[i] != NULL)
            continue;
        while (i-- > 0)
            free(to[i]);
        free(to);
        return NULL;
    }
    return to;
}

/* A folder may be searched, which access() calls the same. */
static bool is_program(const char *path)
{
    struct stat seen;
    return stat(path, &seen) == 0 && S_ISREG(seen.st_mode) && access(path, X_OK) == 0;
}

/* As execvp() looks for it. NULL: not found, or no memory (errno says which). */
static char *find_program(const char *name)
{
    if (strchr(name, '/') != NULL)
        return is_program(name) ? copy(name) : NULL;
    const char *path = getenv("PATH");
    path = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin";
    size_t size = strlen(path) + strlen(name) + 3;
    char *found = malloc(size);
    while (found != NULL) {
        size_t len = strcspn(path, ":");
        (void)snprintf(found, size, "%.*s%s%s", (int)len, path, len > 0 ? "/" : "./", name);
        if (is_program(found))
            return found;
        if (path[len] == '\0')
            break;
        path += len + 1;
    }
    free(found);
    return NULL;
}

pawl_code pawl_command_new(const pawl_command_options *options, pawl_command **ret_command,
                           pawl_err *err)
{
    if (options == NULL || ret_command == NULL || options->argv == NULL)
        return pawli_fail(err, PAWL_INVALID, "%s is missing (NULL)",
                          options == NULL       ? "options"
                          : ret_command == NULL ? "ret_command"
                                                : "argv");
    if (options->argv[0] == NULL || options->argv[0][0] == '\0')
        return pawli_fail(err, PAWL_INVALID, "argv[0] is empty; it must name a program");
    pawl_command *command = calloc(1, sizeof(*command));
    if (command == NULL || pthread_mutex_init(&command->mutex, NULL) != 0) {
        free(command);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    TAILQ_INIT(&command->idle);
    TAILQ_INIT(&command->left);
    command->is_process_ours = options->is_process_ours;
    command->argv = copy_argv(options->argv);
    errno = 0;
    command->path = find_program(options->argv[0]);
    pawl_code code = PAWL_OK;
    if (command->argv == NULL || (command->path == NULL && errno == ENOMEM))
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    else if (command->path == NULL)
        code = pawli_fail(err, PAWL_INVALID, "argv[0] \"%.100s\" is no program that can be run",
                          options->argv[0]);
    else if (options->is_process_ours && !pawli_strays_adopt())
        code = pawli_fail(err, PAWL_INVALID, "is_process_ours: this system has no subreapers");
    if (code != PAWL_OK) {
        pawl_command_free(command);
        return code;
    }
    *ret_command = command;
    return PAWL_OK;
}

static void dismiss_all(struct wardens *wardens)
{
    struct pawli_warden *warden;
    TAILQ_FOREACH(warden, wardens, place)
    pawli_warden_dismiss(warden);
}

static void free_all(struct wardens *wardens)
{
    struct pawli_warden *warden;
    while ((warden = TAILQ_FIRST(wardens)) != NULL) {
        TAILQ_REMOVE(wardens, warden, place);
        pawli_warden_free(warden);
    }
}

void pawl_command_free(pawl_command *command)
{
    if (command == NULL)
        return;
    dismiss_all(&command->idle); /* all at once, and then wait */
    free_all(&command->idle);
    free_all(&command->left);
    for (size_t i = 0; command->argv != NULL && command->argv[i] != NULL; i++)
        free(command->argv[i]);
    free(command->argv);
    free(command->path);
    (void)pthread_mutex_destroy(&command->mutex); /* nobody has it */
    free(command);
}

/* ---------------------------------------------------------------- wardens */

/* One that waits, or a new one. NULL: errno. */
static struct pawli_warden *take_warden(pawl_command *command)
{
    pthread_mutex_lock(&command->mutex);
    struct pawli_warden *warden = TAILQ_FIRST(&command->idle);
    if (warden != NULL)
        TAILQ_REMOVE(&command->idle, warden, place);
    pthread_mutex_unlock(&command->mutex);
    return warden != NULL ? warden : pawli_warden_new(command->path, command->argv);
}

static void put_idle(pawl_command *command, struct pawli_warden *warden)
{
    pthread_mutex_lock(&command->mutex);
    TAILQ_INSERT_HEAD(&command->idle, warden, place);
    pthread_mutex_unlock(&command->mutex);
}

/* Of no more use: it was killed, or has something that does not die. Those before it may have ended
 * since. What one that was killed has left is ours only when it is dead, which is a moment after it
 * has fallen silent. */
static void let_go(pawl_command *command, struct pawli_warden *warden)
{
    struct wardens ended = TAILQ_HEAD_INITIALIZER(ended);
    struct pawli_warden *next;
    pawli_warden_dismiss(warden);
    for (int i = 0; i < DEATH_ROUNDS && !pawli_warden_has_ended(warden); i++)
        (void)poll(NULL, 0, DEATH_MS);
    pthread_mutex_lock(&command->mutex);
    TAILQ_INSERT_TAIL(&command->left, warden, place);
    for (warden = TAILQ_FIRST(&command->left); warden != NULL; warden = next) {
        next = TAILQ_NEXT(warden, place);
        if (!pawli_warden_has_ended(warden))
            continue;
        TAILQ_REMOVE(&command->left, warden, place);
        TAILQ_INSERT_TAIL(&ended, warden, place);
    }
    pthread_mutex_unlock(&command->mutex);
    free_all(&ended);
    if (command->is_process_ours)
        pawli_strays_kill();
}

/* ---------------------------------------------------------------- one run */

static int tell_exit(pawl_job_ctx *ctx, const struct pawli_program_end *end,
                     const struct pawli_tail *tail)
{
    char code[PAWL_ERROR_CODE_MAX + 1];
    char text[PAWL_ERROR_TEXT_MAX + 1];
    bool is_exit = end->code == CLD_EXITED;
    if (is_exit && end->status == 0)
        return PAWL_SUCCEED;
    (void)snprintf(code, sizeof(code), is_exit ? "EXIT-%d" : "SIGNAL-%d", end->status);
    pawli_tail_text(tail, text);
    if (text[0] == '\0')
        (void)snprintf(text, sizeof(text), is_exit ? "ended with status %d" : "ended by signal %d",
                       end->status);
    pawl_job_error(ctx, code, text);
    if (is_exit && end->status == PAWL_EXIT_SNOOZE)
        return PAWL_SNOOZE;
    return is_exit && end->status == PAWL_EXIT_FAIL ? PAWL_FAIL : PAWL_RETRY;
}

static int tell_failure(pawl_job_ctx *ctx, int error)
{
    char text[PAWL_ERROR_TEXT_MAX + 1];
    (void)snprintf(text, sizeof(text), "the command could not be started: %s",
                   strerror(error)); /* it fits */
    pawl_job_error(ctx, "SPAWN", text);
    return PAWL_RETRY;
}

/* Run the program once. *ret_error: errno, where it could not be started; else what its exit says
 * is given. */
static int run(pawl_command *command, pawl_job_ctx *ctx, struct pawli_run *run, int *ret_error)
{
    struct pawli_program_end end = {.code = CLD_KILLED, .status = SIGKILL};
    struct pawli_warden *warden = take_warden(command);
    bool is_started = warden != NULL &&
                      pawli_warden_start(
                          warden, &(struct pawli_warden_run){.envp = run->env.envp,
                                                             .stdin_fd = run->child_stdin,
                                                             .stderr_fd = run->child_stderr});
    if (!is_started)
        end.error = errno;
    bool is_good = is_started && pawli_run_watch(run, ctx, warden, &end) && end.is_all_gone;
    if (is_good)
        put_idle(command, warden);
    else if (warden != NULL)
        let_go(command, warden);
    *ret_error = end.error;
    if (end.error != 0)
        return PAWL_RETRY;
    pawli_run_drain(run);
    return tell_exit(ctx, &end, &run->tail);
}

static int try_once(pawl_command *command, pawl_job_ctx *ctx, int *ret_error)
{
    int result = PAWL_RETRY;
    struct pawli_run *started = calloc(1, sizeof(*started));
    if (started == NULL) {
        *ret_error = ENOMEM;
        return result;
    }
    if (pawli_run_init(started, ctx))
        result = run(command, ctx, started, ret_error);
    else
        *ret_error = errno;
    pawli_run_clear(started);
    free(started);
    return result;
}

/* ---------------------------------------------------------------- shortages */

/* The machine has no more processes, descriptors or memory; or the warden was killed before it had
 * its order. Neither says anything about the job. */
static bool is_shortage(int error)
{
    static const int errors[] = {EAGAIN,  ENOMEM,       EMFILE, ENFILE,
                                 ENOBUFS, ETOOMANYREFS, EPIPE,  ECONNRESET};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (error == errors[i])
            return true;
    return false;
}

/* Not too soon, so that a worker on such a machine does not go through a queue in no time. False:
 * it must stop. */
static bool wait_for_better(pawl_job_ctx *ctx)
{
    struct pollfd fd = {.fd = pawl_job_cancel_fd(ctx), .events = POLLIN};
    (void)poll(&fd, 1, TRY_PAUSE_MS); /* or a signal: then it is a little sooner */
    return !pawl_job_is_cancelled(ctx);
}

/* As exit 75 would do: without using a retry. */
static int put_back(pawl_job_ctx *ctx, int error)
{
    pawl_event event = {
        .kind = PAWL_EVENT_JOB_NOT_STARTED, .level = PAWL_LEVEL_WARN, .reason = "no_resources"};
    (void)snprintf(event.text, sizeof(event.text), "%s", strerror(error)); /* it fits */
    pawli_pump_tell(ctx->pump, ctx->slot, &event);
    pawl_job_error(ctx, "NO-RESOURCES", event.text);
    pawl_job_delay(ctx, PUT_BACK_MS);
    return PAWL_SNOOZE;
}

int pawl_command_handler(pawl_job_ctx *ctx, void *user)
{
    if (ctx == NULL || user == NULL)
        return PAWL_RETRY;
    for (int tries = 1;; tries++) {
        int error = 0;
        int result = try_once(user, ctx, &error);
        if (error == 0)
            return result;
        if (!is_shortage(error))
            return tell_failure(ctx, error);
        if (tries == TRIES_MAX || !wait_for_better(ctx))
            return put_back(ctx, error);
    }
}
