/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * chi_square.h - whether counts look like draws of which each is equally likely. Used under fixed
 * seeds: a test either always passes or always fails.
 */
#ifndef PAWLI_TEST_CHI_SQUARE_H
#define PAWLI_TEST_CHI_SQUARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The statistic of `cells` counts has the mean cells - 1 and the variance 2 (cells - 1). Counts are
 * even where it lies within five standard deviations of its mean, on both sides: counts that are
 * too even are no random draws either. Give it some 20 draws per cell or more, and 4 cells or more.
 */
static inline bool chi_square_is_even(const uint64_t *counts, size_t cells)
{
    double draws = 0;
    for (size_t i = 0; i < cells; i++)
        draws += (double)counts[i];
    double expected = draws / (double)cells;
    double statistic = 0;
    for (size_t i = 0; i < cells; i++) {
        double difference = (double)counts[i] - expected;
        statistic += difference * difference / expected;
    }
    double mean = (double)(cells - 1);
    double distance = statistic - mean;
    return distance * distance < 25.0 * 2.0 * mean && statistic > 0;
}

#endif
