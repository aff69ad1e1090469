/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * served_kind.h - a store that lives by a server's clock, as the suite will meet it: time passes by
 * itself between calls, cannot be turned, and ageing shifts what is stored.
 */
#ifndef PAWLT_STORE_SERVED_KIND_H
#define PAWLT_STORE_SERVED_KIND_H

#include "store/store_under_test.h"

extern const struct store_kind served_kind;

#endif
