/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * absent.c - in place of the PostgreSQL store where the library is built without libpq.
 * Owns:  the refusal.
 * Never: does anything else.
 */
#include "pawl/adopt.h"

#include "base/error.h"
#include "store/throwaway.h"

static pawl_code refuse(pawl_err *err)
{
    return pawli_fail(err, PAWL_INVALID, "this library was built without PostgreSQL (libpq)");
}

void pawl_postgres_options_init(pawl_postgres_options *options)
{
    if (options != NULL)
        *options = (pawl_postgres_options){0};
}

pawl_code pawl_postgres_open(const pawl_postgres_options *options, pawl_store **ret_store,
                             pawl_err *err)
{
    (void)options, (void)ret_store; /* whatever they are */
    return refuse(err);
}

pawl_code pawl_postgres_hears(pawl_store *store, bool *ret_hears, pawl_err *err)
{
    (void)store, (void)ret_hears; /* as above */
    return refuse(err);
}

void pawl_migrate_options_init(pawl_migrate_options *options)
{
    if (options != NULL)
        *options = (pawl_migrate_options){0};
}

pawl_code pawl_migrate_status(const pawl_migrate_options *options, pawl_migrate_step **ret_steps,
                              size_t *ret_count, pawl_err *err)
{
    (void)options, (void)ret_steps, (void)ret_count; /* as above */
    return refuse(err);
}

pawl_code pawl_migrate_plan(const pawl_migrate_options *options, char **ret_sql, pawl_err *err)
{
    (void)options, (void)ret_sql; /* as above */
    return refuse(err);
}

pawl_code pawl_migrate_up(const pawl_migrate_options *options, size_t *ret_count, pawl_err *err)
{
    (void)options, (void)ret_count; /* as above */
    return refuse(err);
}

pawl_code pawl_adopt(const pawl_adopt_options *options, pawl_adopt_report *ret_report,
                     pawl_err *err)
{
    (void)options, (void)ret_report; /* as above */
    return refuse(err);
}

pawl_code pawli_throwaway_make(const char *conninfo, struct pawli_throwaway *ret_throwaway,
                               pawl_err *err)
{
    (void)conninfo, (void)ret_throwaway; /* as above */
    return refuse(err);
}

pawl_code pawli_throwaway_drop(const char *conninfo, struct pawli_throwaway *throwaway,
                               pawl_err *err)
{
    (void)conninfo, (void)throwaway, (void)err; /* there is none */
    return PAWL_OK;
}
