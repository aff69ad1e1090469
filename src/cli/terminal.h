/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * terminal.h - a terminal taken over for a picture that changes, and given back as it was.
 */
#ifndef PAWLI_CLI_TERMINAL_H
#define PAWLI_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

struct pawli_terminal {
    struct termios before;
    int signal_fd;
    bool is_taken;
};

/* What ended a wait. */
enum pawli_terminal_event {
    PAWLI_TERMINAL_TIME, /* the time is up, or somebody asks for a new picture */
    PAWLI_TERMINAL_SIZE, /* it has another size now, or has been given back meanwhile */
    PAWLI_TERMINAL_END   /* somebody wants to end it: q, Ctrl-C, SIGTERM, or it is gone */
};

/* Whether standard input and output are a terminal that can do it. */
bool pawli_terminal_is_fit(void);

/* Take it: another screen, no cursor, keys one by one. False: errno; nothing was changed. */
bool pawli_terminal_take(struct pawli_terminal *terminal);

/* Give it back. Accepts one that was not taken. */
void pawli_terminal_give(struct pawli_terminal *terminal);

/* Wait up to `ms`. Ctrl-Z gives it back until the program goes on. */
enum pawli_terminal_event pawli_terminal_wait(struct pawli_terminal *terminal, int64_t ms);

/* Its size; 80 by 24 where it does not tell. */
struct pawli_terminal_size {
    int columns;
    int rows;
};
struct pawli_terminal_size pawli_terminal_size(void);

/* Put text on it. False: it cannot be written to. */
bool pawli_terminal_put(const char *text, size_t length);

#endif
