/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * open.h - which kind of store a URL names. See pawl_source_new().
 */
#ifndef PAWLI_STORE_OPEN_H
#define PAWLI_STORE_OPEN_H

#include "pawl/pawl.h"

enum pawli_store_kind {
    PAWLI_STORE_NONE, /* it names none */
    PAWLI_STORE_MEMORY,
    PAWLI_STORE_POSTGRES,
    PAWLI_STORE_SQLITE
};

enum pawli_store_kind pawli_store_kind(const char *url);

/* PAWL_INVALID where it names none, with a text that says what is allowed. */
pawl_code pawli_store_url_check(const char *url, pawl_err *err);

#endif
