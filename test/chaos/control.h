/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * control.h - what the director of the chaos test does to one process from inside: a file that both
 * have in memory. See preload.c.
 */
#ifndef PAWLT_CHAOS_CONTROL_H
#define PAWLT_CHAOS_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#define CHAOS_CONTROL_VARIABLE "PAWLT_CHAOS_CONTROL" /* names the file */
#define CHAOS_FULL_FILE        "jobs.db"             /* in the paths for which the disk is full */

struct chaos_control {
    _Atomic int64_t wall_us; /* its wall clock is off by that much */
    _Atomic int64_t boot_us; /* it has been suspended for so long, by its clock */
    _Atomic int64_t jumps;   /* looks at a clock that was off */
    _Atomic int64_t refused; /* writes that were refused because the disk was full */
    _Atomic int32_t running; /* handlers that run now: told by the process */
    _Atomic int32_t is_disk_full;
    _Atomic int32_t is_enough; /* producers make no more jobs while this is set */
};

#endif
