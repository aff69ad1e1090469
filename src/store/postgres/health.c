/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * health.c - whether a PostgreSQL server is fit to keep jobs.
 * Owns:  which of its settings matter, and how many connections a fleet needs.
 * Never: changes a setting; needs more rights than the runtime role has.
 */
#include "store/postgres/postgres.h"

#include "base/error.h"
#include "store/health.h"

#include <inttypes.h>
#include <string.h>

#define WORKER_CONNECTIONS 5  /* claimer, its listener, settler, renewer, reaper */
#define NEARLY_PART        10 /* nine tenths in use is nearly all */

/* What others' sessions do is not for every role to see: numbackends is. */
static const char facts_sql[] =
    "select current_setting('fsync') = 'on', current_setting('synchronous_commit'),"
    " current_setting('full_page_writes') = 'on', current_setting('autovacuum') = 'on',"
    " current_setting('transaction_read_only') = 'on',"
    " current_setting('max_connections')::int8 -"
    " current_setting('superuser_reserved_connections')::int8 -"
    " coalesce(current_setting('reserved_connections', true)::int8, 0),"
    " (select coalesce(sum(numbackends), 0)::int8 from pg_stat_database where datid <> 0),"
    " coalesce((select rolconnlimit from pg_roles where rolname = session_user and not rolsuper),"
    " -1)::int8,"
    " (select datconnlimit::int8 from pg_database where datname = current_database())";
static const char facts_shape[] = "bsbbbiiii";

struct facts {
    bool is_fsync;
    char synchronous_commit[32];
    bool is_full_page_writes;
    bool is_autovacuum;
    bool is_read_only;
    int64_t budget;  /* connections that are not reserved */
    int64_t in_use;  /* connections of all clients */
    int64_t of_role; /* this and the next: below 0: no limit */
    int64_t of_database;
    bool is_pooled; /* somebody stands in between */
};

static pawl_code ask(struct pawli_pg_handle *handle, struct facts *ret_facts, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = handle, .is_read = true};
    (void)pawli_pg_call_add(&call, facts_sql); /* it takes no arguments */
    pawl_code rc = pawli_pg_call_run(&call, facts_shape, err);
    if (rc == PAWL_OK && PQntuples(call.answers[0]) != 1)
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK) {
        const PGresult *answer = call.answers[0];
        *ret_facts = (struct facts){
            .is_fsync = pawli_pg_bool((struct pawli_pg_cell){answer, 0, 0}),
            .is_full_page_writes = pawli_pg_bool((struct pawli_pg_cell){answer, 0, 2}),
            .is_autovacuum = pawli_pg_bool((struct pawli_pg_cell){answer, 0, 3}),
            .is_read_only = pawli_pg_bool((struct pawli_pg_cell){answer, 0, 4}),
            .budget = pawli_pg_int((struct pawli_pg_cell){answer, 0, 5}),
            .in_use = pawli_pg_int((struct pawli_pg_cell){answer, 0, 6}),
            .of_role = pawli_pg_int((struct pawli_pg_cell){answer, 0, 7}),
            .of_database = pawli_pg_int((struct pawli_pg_cell){answer, 0, 8}),
            .is_pooled = !handle->link.is_direct,
        };
        pawli_pg_text((struct pawli_pg_cell){answer, 0, 1}, ret_facts->synchronous_commit,
                      sizeof(ret_facts->synchronous_commit));
    }
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- what is on or off */

static void tell_switch(const struct pawli_health *health, struct pawli_health_about about,
                        bool is_right, const char *value)
{
    if (is_right)
        about.level = PAWLI_HEALTH_OK;
    pawli_health_tell(health, &about, "%s is %s", about.name, value);
}

static void tell_durable(const struct pawli_health *health, const struct facts *facts)
{
    tell_switch(health,
                (struct pawli_health_about){
                    PAWLI_HEALTH_ERROR, "fsync",
                    "set fsync = on in postgresql.conf and reload: without it a crash of the "
                    "machine may lose or damage everything, acknowledged jobs included"},
                facts->is_fsync, facts->is_fsync ? "on" : "off");
    tell_switch(health,
                (struct pawli_health_about){
                    PAWLI_HEALTH_ERROR, "synchronous_commit",
                    "set synchronous_commit = on for this role and database: without it a job that "
                    "was acknowledged may be gone after a crash, and one that was done comes back"},
                strcmp(facts->synchronous_commit, "off") != 0, facts->synchronous_commit);
    tell_switch(health,
                (struct pawli_health_about){
                    PAWLI_HEALTH_WARNING, "full_page_writes",
                    "set full_page_writes = on unless the file system never writes half a page"},
                facts->is_full_page_writes, facts->is_full_page_writes ? "on" : "off");
    tell_switch(health,
                (struct pawli_health_about){
                    PAWLI_HEALTH_WARNING, "autovacuum",
                    "set autovacuum = on: claims slow down with the rows that are never cleared"},
                facts->is_autovacuum, facts->is_autovacuum ? "on" : "off");
    tell_switch(health,
                (struct pawli_health_about){
                    PAWLI_HEALTH_ERROR, "read_only",
                    "connect to the primary, and see default_transaction_read_only: nothing can be "
                    "claimed or settled here"},
                !facts->is_read_only, facts->is_read_only ? "on" : "off");
}

/* ---- connections */

/* RULE-020-041 */
static void tell_connections(const struct pawli_health *health, const struct facts *facts)
{
    struct pawli_health_about about = {
        .name = "connections",
        .advice = "run fewer workers, raise max_connections (or the limit of the role or the "
                  "database), or put PgBouncer in between",
    };
    int64_t budget = facts->budget;
    if (facts->of_role >= 0 && facts->of_role < budget)
        budget = facts->of_role;
    if (facts->of_database >= 0 && facts->of_database < budget)
        budget = facts->of_database;
    int64_t needed = WORKER_CONNECTIONS * health->workers + health->reapers;
    if (facts->is_pooled) {
        pawli_health_tell(health, &about,
                          "a pooler is in between: its own limits count for the %" PRId64
                          " connections of this fleet",
                          needed);
        return;
    }
    if (needed > budget)
        about.level = PAWLI_HEALTH_ERROR;
    else if (facts->in_use > facts->budget - facts->budget / NEARLY_PART)
        about.level = PAWLI_HEALTH_WARNING;
    pawli_health_tell(
        health, &about,
        "%" PRId64 " workers and %" PRId64 " reapers need up to %" PRId64
        " connections; there may be %" PRId64 "; in use by all clients: %" PRId64 " of %" PRId64,
        health->workers, health->reapers, needed, budget, facts->in_use, facts->budget);
}

static pawl_code tell_notifications(pawl_store *store, const struct pawli_health *health,
                                    const struct facts *facts, pawl_err *err)
{
    bool hears = false;
    struct pawli_health_about about = {
        .name = "notifications",
        .advice = "see whether something between here and the server drops idle connections; until "
                  "then workers find jobs by polling only",
    };
    pawl_code rc = pawl_postgres_hears(store, &hears, err);
    if (rc != PAWL_OK)
        return rc;
    if (!hears && !facts->is_pooled)
        about.level = PAWLI_HEALTH_WARNING;
    pawli_health_tell(health, &about, "%s",
                      hears ? "they arrive: idle workers learn of jobs at once"
                      : facts->is_pooled
                          ? "they do not pass the pooler: workers find jobs by polling"
                          : "they do not arrive");
    return PAWL_OK;
}

pawl_code pawli_pg_health(pawl_store *store, const struct pawli_health *health, pawl_err *err)
{
    struct facts facts;
    pawl_code rc = ask(pawli_pg_handle_of(store), &facts, err);
    if (rc != PAWL_OK)
        return rc;
    tell_durable(health, &facts);
    tell_connections(health, &facts);
    return tell_notifications(store, health, &facts, err);
}
