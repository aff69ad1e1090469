/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * name.c - the names of workers and reapers.
 * Owns:  their form.
 * Never: gives one name twice, as far as 64 random bits can be trusted.
 */
#include "runtime/name.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void pawli_host_name(char to[PAWL_NAME_MAX + 1])
{
    if (gethostname(to, PAWL_NAME_MAX + 1) != 0)
        to[0] = '\0';
    to[PAWL_NAME_MAX] = '\0'; /* a name that is cut need not be ended */
    for (char *at = to; *at != '\0'; at++)
        if (*at < '!' || *at > '~')
            *at = '_';
    if (to[0] == '\0')
        (void)snprintf(to, PAWL_NAME_MAX + 1, "host"); /* always fits */
}

void pawli_fresh_name(char to[PAWL_NAME_MAX + 1], const char *begin, const pawl_random *random)
{
    char host[PAWL_NAME_MAX + 1];
    if (begin == NULL) {
        pawli_host_name(host);
        begin = host;
    }
    (void)snprintf(to, PAWL_NAME_MAX + 1, "%.*s/%ld/%016" PRIx64, PAWLI_NAME_BEGIN_MAX, begin,
                   (long)getpid(), random->next(random->user)); /* always fits */
}
