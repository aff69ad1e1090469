/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * terminal.c - a terminal taken over for a picture that changes, and given back as it was.
 * Owns:  the terminal's modes while it is taken; the signals that end or stop the program then.
 * Never: leaves it as it is not wanted, but when it is killed outright; runs anything in a signal
 *        handler: there is none.
 */
#include "cli/terminal.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define COLUMNS_USUAL 80
#define ROWS_USUAL    24
#define KEYS_MAX      64
#define CTRL_C        3 /* where the terminal does not make a signal of it */

#define SCREEN_ON  "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define SCREEN_OFF "\033[?25h\033[?1049l"

bool pawli_terminal_is_fit(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && kind != NULL &&
           strcmp(kind, "dumb") != 0;
}

bool pawli_terminal_put(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static sigset_t signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        (void)sigaddset(&set, numbers[i]); /* cannot fail: the signals exist */
    return set;
}

static bool set_modes(struct pawli_terminal *terminal)
{
    struct termios modes = terminal->before;
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    modes.c_cc[VMIN] = 0;
    modes.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0 &&
           pawli_terminal_put(SCREEN_ON, strlen(SCREEN_ON));
}

static void unset_modes(struct pawli_terminal *terminal)
{
    /* Where it is gone there is nothing to give back. */
    (void)pawli_terminal_put(SCREEN_OFF, strlen(SCREEN_OFF));
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
}

bool pawli_terminal_take(struct pawli_terminal *terminal)
{
    sigset_t set = signals();
    *terminal = (struct pawli_terminal){.signal_fd = -1};
    if (tcgetattr(STDIN_FILENO, &terminal->before) != 0)
        return false;
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* cannot fail: the set is good */
    terminal->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    terminal->is_taken = terminal->signal_fd >= 0 && set_modes(terminal);
    if (terminal->is_taken)
        return true;
    int reason = errno;
    pawli_terminal_give(terminal);
    errno = reason;
    return false;
}

void pawli_terminal_give(struct pawli_terminal *terminal)
{
    if (terminal->is_taken)
        unset_modes(terminal);
    if (terminal->signal_fd >= 0)
        (void)close(terminal->signal_fd); /* nothing was written */
    terminal->is_taken = false;
    terminal->signal_fd = -1;
}

/* ---- waiting */

static enum pawli_terminal_event stop(struct pawli_terminal *terminal)
{
    unset_modes(terminal);
    (void)raise(SIGSTOP); /* cannot fail; it goes on here when it is told to */
    return set_modes(terminal) ? PAWLI_TERMINAL_SIZE : PAWLI_TERMINAL_END;
}

static enum pawli_terminal_event read_signal(struct pawli_terminal *terminal)
{
    struct signalfd_siginfo told;
    enum pawli_terminal_event event = PAWLI_TERMINAL_SIZE;
    while (read(terminal->signal_fd, &told, sizeof(told)) == (ssize_t)sizeof(told)) {
        if (told.ssi_signo == SIGTSTP)
            event = stop(terminal);
        else if (told.ssi_signo != SIGWINCH)
            return PAWLI_TERMINAL_END;
    }
    return event;
}

/* False: none of the keys means anything. */
static bool read_keys(enum pawli_terminal_event *ret_event)
{
    char keys[KEYS_MAX];
    ssize_t count = read(STDIN_FILENO, keys, sizeof(keys));
    *ret_event = PAWLI_TERMINAL_END;
    if (count <= 0)
        return count == 0 || errno != EINTR; /* it is gone */
    if (memchr(keys, 'q', (size_t)count) != NULL || memchr(keys, 'Q', (size_t)count) != NULL ||
        memchr(keys, CTRL_C, (size_t)count) != NULL)
        return true;
    *ret_event = PAWLI_TERMINAL_TIME;
    return memchr(keys, ' ', (size_t)count) != NULL;
}

enum pawli_terminal_event pawli_terminal_wait(struct pawli_terminal *terminal, int64_t ms)
{
    const pawl_clock *clock = pawl_clock_system();
    pawl_mono until = pawli_mono_add_ms(clock->mono(clock->user), ms);
    for (;;) {
        struct pollfd files[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                 {.fd = terminal->signal_fd, .events = POLLIN}};
        int64_t left_ms = pawli_mono_diff_ms(clock->mono(clock->user), until);
        enum pawli_terminal_event event;
        if (left_ms <= 0)
            return PAWLI_TERMINAL_TIME;
        if (poll(files, 2, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX) < 0 && errno != EINTR)
            return PAWLI_TERMINAL_END;
        if (files[1].revents != 0)
            return read_signal(terminal);
        if (files[0].revents != 0 && read_keys(&event))
            return event;
    }
}

struct pawli_terminal_size pawli_terminal_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return (struct pawli_terminal_size){COLUMNS_USUAL, ROWS_USUAL};
    return (struct pawli_terminal_size){size.ws_col, size.ws_row};
}
