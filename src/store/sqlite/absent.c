/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * absent.c - in place of the SQLite store where the library is built without libsqlite3.
 * Owns:  the refusal.
 * Never: does anything else.
 */
#include "pawl/pawl.h"

#include "base/error.h"

static pawl_code refuse(pawl_err *err)
{
    return pawli_fail(err, PAWL_INVALID, "this library was built without SQLite (libsqlite3)");
}

void pawl_sqlite_options_init(pawl_sqlite_options *options)
{
    if (options != NULL)
        *options = (pawl_sqlite_options){0};
}

pawl_code pawl_sqlite_new(const pawl_sqlite_options *options, pawl_sqlite **ret_sqlite,
                          pawl_err *err)
{
    (void)options, (void)ret_sqlite; /* whatever they are */
    return refuse(err);
}

void pawl_sqlite_free(pawl_sqlite *sqlite)
{
    (void)sqlite; /* there is none */
}

pawl_code pawl_sqlite_open(pawl_sqlite *sqlite, pawl_store **ret_store, pawl_err *err)
{
    (void)sqlite, (void)ret_store; /* as above */
    return refuse(err);
}
