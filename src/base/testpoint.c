/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * testpoint.c - the switch behind which tests turn on deliberate bugs and stretched windows.
 * Owns:  the one mutable variable at file scope, which exists in test builds only.
 * Never: is anything at all in a library that is installed.
 */
#include "base/testpoint.h"

#ifdef PAWL_TEST_POINTS
struct pawli_testpoints pawli_testpoints;
#else
/* A translation unit must declare something. */
_Static_assert(!PAWLI_MUTANT(1), "mutants are not compiled in");
#endif
