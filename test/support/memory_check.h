/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_check.h - looks behind the verbs of a memory store: whether all its records agree, and
 * what is in it to the last byte. Nobody may be in a verb meanwhile.
 */
#ifndef PAWLT_MEMORY_CHECK_H
#define PAWLT_MEMORY_CHECK_H

#include "pawl/pawl.h"

/* What does not hold of M1 to M9 (see src/store/memory/memory.h), NULL where all of it does. */
const char *pawli_memory_check(pawl_memory *memory);

/*
 * Everything that a verb could ever show or act on, as text: two stores with the same text behave
 * alike. Left out are memory that is only held ready and the state of the random source. The caller
 * frees it.
 */
char *memory_dump(pawl_memory *memory);

#endif
