/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_kind.h - the memory store as the suite sees it.
 */
#ifndef PAWLT_STORE_MEMORY_KIND_H
#define PAWLT_STORE_MEMORY_KIND_H

#include "store/store_under_test.h"

extern const struct store_kind memory_kind;

#endif
