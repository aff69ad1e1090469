/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_url.h - the store that a command works on: the setting --store (see settings.h), else a
 * SQLite file in the state folder.
 */
#ifndef PAWLI_CLI_STORE_URL_H
#define PAWLI_CLI_STORE_URL_H

#include "cli/options.h"
#include "pawl/worker.h"

struct pawli_cli_store {
    pawl_source *source;
    pawl_opener opener; /* opens handles on it, from any thread */
};

struct pawli_cli_store_args {
    int64_t call_timeout_ms; /* PAWL_DEFAULT: the store's own */
    bool is_made; /* a SQLite file that is not there is made: a path that was mistyped is not to
                     become a store by being read */
};

pawl_code pawli_cli_store_init(struct pawli_cli_store *store, const struct pawli_line *line,
                               const struct pawli_cli_store_args *args, pawl_err *err);
void pawli_cli_store_clear(struct pawli_cli_store *store); /* all handles must be closed */

/* For commands of PostgreSQL alone: its connection string, NULL for what libpq takes by itself.
 * PAWL_INVALID where another kind of store is named. */
pawl_code pawli_cli_conninfo(const struct pawli_line *line, const char **ret_conninfo,
                             pawl_err *err);

/* Say why a command failed; the exit code that tells what can be done about it. */
int pawli_cli_fail(const char *command, pawl_code code, const pawl_err *err);

/*
 * Open the store, run what a command does with it, and close it. Gives the exit code; where the
 * store cannot be opened or `run` gives another code than PAWL_OK, that has been told. What `run`
 * writes to *ret_exit counts on PAWL_OK; EX_OK before.
 */
typedef pawl_code (*pawli_cli_use)(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                                   pawl_err *err);
int pawli_cli_with_store(const struct pawli_line *line, pawli_cli_use use);

#endif
