/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * private.h - a process that holds secrets.
 */
#ifndef PAWLI_CLI_PRIVATE_H
#define PAWLI_CLI_PRIVATE_H

/* From here on the process leaves no core dump, and no other process of the same user may look into
 * its memory. For commands that hold secrets: call it before the first one is read or made. */
void pawli_cli_keep_private(void);

#endif
