/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * descriptors.h - how many descriptors the process may have.
 */
#ifndef PAWLI_CLI_DESCRIPTORS_H
#define PAWLI_CLI_DESCRIPTORS_H

#include <stdint.h>

#define PAWLI_DESCRIPTORS_PER_DELIVERY 2 /* one under way, and one that is kept for the next */

/* What so many take, each of which takes some: more than there can be where it overflows. */
int64_t pawli_cli_descriptors_of(int64_t count, int64_t each);

/* Have as many as are wanted, or as the system lets us have, and never less than before: how many
 * these are. */
int64_t pawli_cli_descriptors(int64_t wanted);

#endif
