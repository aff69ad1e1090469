/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * frame.h - figures as a picture: of a terminal's size, or plain and whole.
 */
#ifndef PAWLI_CLI_FRAME_H
#define PAWLI_CLI_FRAME_H

#include "base/buffer.h"
#include "cli/figures.h"

struct pawli_frame_args {
    const struct pawli_figures *figures;
    const char *store;  /* its name, without secrets */
    const char *notice; /* of what went wrong at the last look; NULL: nothing */
    int columns;        /* of a terminal; 0: a plain text without bounds */
    int rows;
    bool is_styled; /* headings stand out; for a terminal */
};

/* Put the picture at the end of the buffer. False: memory ran out. */
bool pawli_frame_draw(const struct pawli_frame_args *args, struct pawli_buffer *buffer);

#endif
