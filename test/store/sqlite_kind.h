/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_kind.h - the SQLite store as the suite sees it.
 */
#ifndef PAWLT_STORE_SQLITE_KIND_H
#define PAWLT_STORE_SQLITE_KIND_H

#include "store/store_under_test.h"

extern const struct store_kind sqlite_kind;

#endif
