/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h - a folder for the files of one test, gone when the test is over.
 */
#ifndef PAWLT_SCRATCH_H
#define PAWLT_SCRATCH_H

#include <stdbool.h>

#define SCRATCH_PATH_MAX 256

struct scratch {
    char folder[SCRATCH_PATH_MAX];
    char path[SCRATCH_PATH_MAX + 16]; /* of a file in it that does not exist yet */
};

/* Make it, below TMPDIR, /dev/shm or /tmp. False: it could not be made. */
bool scratch_make(struct scratch *scratch);

/* Remove it and the files in it. */
void scratch_remove(struct scratch *scratch);

#endif
