/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command_run.c - one program at work on one job.
 * Owns:  its pipes; when it is told to stop, and when it is killed.
 * Never: waits for the program to read or write.
 */
#include "runtime/command_run.h"

#include "base/clock.h"
#include "runtime/job_ctx.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_MS         500     /* the clock is looked at as often as that: a machine may sleep */
#define KILL_MARGIN_MS  1000    /* killed so long before it would be given up */
#define KILL_MARGIN_OF  4       /* but after this part of the grace, at the most, is left */
#define DRAIN_BYTES_MAX 1048576 /* of what is left at the end */
#define FD_FIRST        3       /* the three below are the program's own */

/* ---------------------------------------------------------------- pipes */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* a pipe: nothing is lost that anybody waits for */
    *fd = -1;
}

/* Out of the way of the three that the program gets. */
static bool lift(int *fd)
{
    if (*fd >= FD_FIRST)
        return true;
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, FD_FIRST);
    close_fd(fd);
    *fd = lifted;
    return lifted >= 0;
}

/* From the beginning closed on exec: another thread may start a program at any moment. */
static bool make_pipe(int *reading, int *writing)
{
    int fds[2];
    if (syscall(SYS_pipe2, fds, O_CLOEXEC) != 0)
        return false;
    *reading = fds[0];
    *writing = fds[1];
    return lift(reading) && lift(writing);
}

/* Only our ends: the program's are its own affair. */
static bool never_block(int fd)
{
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

bool pawli_run_init(struct pawli_run *run, pawl_job_ctx *ctx)
{
    run->child_stdin = run->child_stderr = run->stdin_fd = run->stderr_fd = -1;
    run->payload = pawl_job_of(ctx)->payload;
    run->payload_left = pawl_job_of(ctx)->payload_len;
    return pawli_run_env_init(&run->env, ctx) && make_pipe(&run->child_stdin, &run->stdin_fd) &&
           make_pipe(&run->stderr_fd, &run->child_stderr) && never_block(run->stdin_fd) &&
           never_block(run->stderr_fd);
}

void pawli_run_clear(struct pawli_run *run)
{
    close_fd(&run->child_stdin);
    close_fd(&run->child_stderr);
    close_fd(&run->stdin_fd);
    close_fd(&run->stderr_fd);
    pawli_run_env_clear(&run->env);
}

/* Write as much of the payload as the pipe takes now. */
static void feed(struct pawli_run *run)
{
    ssize_t written = 0;
    while (run->payload_left > 0 && written >= 0) {
        written = write(run->stdin_fd, run->payload, run->payload_left);
        if (written > 0) {
            run->payload += written;
            run->payload_left -= (size_t)written;
        }
    }
    bool is_full = written < 0 && (errno == EAGAIN || errno == EINTR);
    if (!is_full) /* all of it, or nobody will read it: neither is our affair any more */
        close_fd(&run->stdin_fd);
}

/* Read what there is now, up to `most` bytes. False: there is no more. */
static bool listen_to(struct pawli_run *run, size_t most)
{
    char bytes[4096];
    while (run->stderr_fd >= 0 && most > 0) {
        ssize_t got = read(run->stderr_fd, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN;
        if (got == 0)
            return false;
        pawli_tail_put(&run->tail, bytes, (size_t)got);
        most -= (size_t)got < most ? (size_t)got : most;
    }
    return true;
}

void pawli_run_drain(struct pawli_run *run)
{
    (void)listen_to(run, DRAIN_BYTES_MAX); /* whatever it says: it is over */
}

/* ---------------------------------------------------------------- watching */

struct watching {
    pawl_job_ctx *ctx;
    struct pawli_warden *warden;
    bool is_told;   /* to stop */
    bool is_killed; /* its time was up */
    pawl_mono kill_at;
};

/* Look at the clock and at the job: tell the program to stop, and kill it, when it is time. */
static void look(struct watching *watching)
{
    const pawl_clock *clock = pawl_clock_system();
    if (!watching->is_told && pawl_job_is_cancelled(watching->ctx)) {
        int64_t grace_ms = pawl_job_grace_ms(watching->ctx);
        int64_t margin_ms = grace_ms / KILL_MARGIN_OF;
        margin_ms = margin_ms < KILL_MARGIN_MS ? margin_ms : KILL_MARGIN_MS;
        watching->kill_at = pawli_mono_add_ms(clock->mono(clock->user), grace_ms - margin_ms);
        watching->is_told = true;
        pawli_warden_signal(watching->warden, SIGTERM);
    }
    if (watching->is_told && !watching->is_killed &&
        !pawli_mono_is_before(clock->mono(clock->user), watching->kill_at)) {
        watching->is_killed = true;
        pawli_warden_signal(watching->warden, SIGKILL);
    }
}

static int patience_ms(const struct watching *watching)
{
    const pawl_clock *clock = pawl_clock_system();
    int64_t ms = LOOK_MS;
    if (watching->is_told && !watching->is_killed) {
        int64_t left_ms = pawli_mono_diff_ms(clock->mono(clock->user), watching->kill_at) + 1;
        ms = left_ms < ms ? left_ms : ms;
    }
    return ms > 0 ? (int)ms : 0;
}

bool pawli_run_watch(struct pawli_run *run, pawl_job_ctx *ctx, struct pawli_warden *warden,
                     struct pawli_program_end *ret_end)
{
    struct watching watching = {.ctx = ctx, .warden = warden};
    enum pawli_heard heard = PAWLI_HEARD_NOTHING;
    close_fd(&run->child_stdin);
    close_fd(&run->child_stderr);
    feed(run); /* mostly the pipe takes all of it */
    while (heard == PAWLI_HEARD_NOTHING) {
        look(&watching);
        struct pollfd fds[] = {
            {.fd = warden->fd, .events = POLLIN},
            {.fd = run->stderr_fd, .events = POLLIN}, /* poll() passes over negative ones */
            {.fd = run->stdin_fd, .events = POLLOUT},
            {.fd = watching.is_told ? -1 : pawl_job_cancel_fd(ctx), .events = POLLIN},
        };
        (void)poll(fds, sizeof(fds) / sizeof(fds[0]), patience_ms(&watching)); /* or a signal */
        if (run->stdin_fd >= 0 && fds[2].revents != 0)
            feed(run);
        if (fds[1].revents != 0 && !listen_to(run, sizeof(run->tail.bytes)))
            close_fd(&run->stderr_fd);
        if (fds[0].revents != 0)
            heard = pawli_warden_hear(warden, ret_end);
    }
    close_fd(&run->stdin_fd);
    return heard == PAWLI_HEARD_END;
}
