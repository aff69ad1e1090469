/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * testpoint.h - what tests may switch on in the code: deliberate bugs (mutants) that the tests must
 * catch, and points where a narrow window can be stretched. Without PAWL_TEST_POINTS, as in
 * everything that is installed, both compile to nothing.
 */
#ifndef PAWLI_BASE_TESTPOINT_H
#define PAWLI_BASE_TESTPOINT_H

#include <stdbool.h>

#ifdef PAWL_TEST_POINTS

/* Set by the test program before it starts anything, and left alone while it runs. */
struct pawli_testpoints {
    int mutant;                             /* a number from the test's own list; 0: none */
    void (*stretch)(int point, void *user); /* called inside the window; NULL: none */
    void *user;
};
extern struct pawli_testpoints pawli_testpoints;

#define PAWLI_MUTANT(number) (pawli_testpoints.mutant == (number))
#define PAWLI_STRETCH(point)                                          \
    do {                                                              \
        if (pawli_testpoints.stretch != NULL)                         \
            pawli_testpoints.stretch((point), pawli_testpoints.user); \
    } while (0)

#else

#define PAWLI_MUTANT(number) (false)
#define PAWLI_STRETCH(point) ((void)0)

#endif

#endif
