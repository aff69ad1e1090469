/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * descriptors.c - how many descriptors the process may have.
 * Owns:  the bound that the system keeps.
 * Never: lowers it; opens one.
 */
#include "cli/descriptors.h"

#include <sys/resource.h>

int64_t pawli_cli_descriptors_of(int64_t count, int64_t each)
{
    return count < INT32_MAX / each ? count * each : INT32_MAX;
}

int64_t pawli_cli_descriptors(int64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t)wanted)
        return wanted;
    limit.rlim_cur = limit.rlim_max > (rlim_t)wanted ? (rlim_t)wanted : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* what there is counts */
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)wanted
               ? (int64_t)limit.rlim_cur
               : wanted;
}
