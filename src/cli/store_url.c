/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_url.c - the store that a command works on.
 * Owns:  which store it is where nothing names one; what a failure is as an exit code.
 * Never: shows a URL: it may hold a password.
 */
#include "cli/store_url.h"

#include "store/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#define STORE "--store"

static pawl_code open_handle(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    const struct pawli_cli_store *store = user;
    (void)role; /* all handles are alike */
    return pawl_source_open(store->source, ret_store, err);
}

pawl_code pawli_cli_store_init(struct pawli_cli_store *store, const struct pawli_line *line,
                               const struct pawli_cli_store_args *args, pawl_err *err)
{
    pawl_source_options options;
    pawl_source_options_init(&options);
    *store = (struct pawli_cli_store){.opener = {.open = open_handle, .user = store}};
    options.url = pawli_line_text(line, STORE);
    if (options.url == NULL)
        options.url = "sqlite:"; /* the one in the state folder */
    options.call_timeout_ms = args->call_timeout_ms;
    options.is_only_opened = !args->is_made;
    return pawl_source_new(&options, &store->source, err);
}

void pawli_cli_store_clear(struct pawli_cli_store *store)
{
    pawl_source_free(store->source);
    store->source = NULL;
}

pawl_code pawli_cli_conninfo(const struct pawli_line *line, const char **ret_conninfo,
                             pawl_err *err)
{
    const char *url = pawli_line_text(line, STORE);
    if (url != NULL && pawli_store_url_check(url, err) != PAWL_OK)
        return PAWL_INVALID;
    if (url != NULL && pawli_store_kind(url) != PAWLI_STORE_POSTGRES) {
        *err = (pawl_err){.code = PAWL_INVALID,
                          .text = "the store is not a PostgreSQL database, which this needs"};
        return PAWL_INVALID;
    }
    *ret_conninfo = url;
    return PAWL_OK;
}

int pawli_cli_fail(const char *command, pawl_code code, const pawl_err *err)
{
    (void)fprintf(stderr, "pawl %s: %s\n", command,
                  err->text[0] != '\0' ? err->text : pawl_code_text(code));
    if (code == PAWL_DOWN || code == PAWL_FULL)
        return EX_UNAVAILABLE;
    if (code == PAWL_UNKNOWN)
        return EX_TEMPFAIL;
    if (code == PAWL_GONE || code == PAWL_EXISTS || code == PAWL_HAS_JOBS)
        return EX_DATAERR;
    return code == PAWL_NO_MEMORY ? EX_OSERR : EX_CONFIG;
}

int pawli_cli_with_store(const struct pawli_line *line, pawli_cli_use use)
{
    struct pawli_cli_store store;
    pawl_store *handle = NULL;
    pawl_err err = {.code = PAWL_OK, .text = ""};
    int exit_code = EX_OK;
    const struct pawli_cli_store_args args = {.call_timeout_ms = PAWL_DEFAULT,
                                              .is_made = line->command->is_store_made};
    pawl_code code = pawli_cli_store_init(&store, line, &args, &err);
    if (code == PAWL_OK)
        code = pawl_source_open(store.source, &handle, &err);
    if (code == PAWL_OK)
        code = use(line, handle, &exit_code, &err);
    pawl_store_close(handle);
    pawli_cli_store_clear(&store);
    return code == PAWL_OK ? exit_code : pawli_cli_fail(line->command->name, code, &err);
}
