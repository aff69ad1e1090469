/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * private.c - a process that holds secrets.
 * Owns:  that they do not get into a core dump. Buffers of ours are overwritten after use; those of
 *        libpq, SQLite and stdio are not ours to overwrite.
 * Never: is called by a command that runs others' programs: they would inherit the limit.
 */
#include "cli/private.h"

#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

void pawli_cli_keep_private(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* lowering it cannot fail */
#ifdef __linux__
    /* The limit does not bind where dumps are handed to a program. Cannot fail either. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}
