/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * token.c - `pawl token`: makes, lists and removes the tokens of pawl serve.
 * Owns:  the words of the command.
 * Never: keeps a token: it is shown once, when it is made.
 */
#include "cli/command.h"
#include "cli/json.h"
#include "cli/store_url.h"

#include "base/clock.h"
#include "base/text.h"
#include "serve/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define NAME   "token"
#define TOKENS "--tokens"

#define OPTION_TOKENS                                                                            \
    {                                                                                            \
        TOKENS, PAWLI_FILE | PAWLI_SETTING, "FILE", "where the hashes of tokens are kept", 0, 0, \
            NULL                                                                                 \
    }

/* The file and what is in it. False: told, and *ret_exit is the exit code. */
static bool read_file(const struct pawli_line *line, bool may_be_new,
                      struct pawli_grants *ret_grants, int *ret_exit)
{
    const char *path = pawli_line_text(line, TOKENS);
    pawl_err err;
    *ret_grants = (struct pawli_grants){0};
    if (path == NULL) {
        *ret_exit = pawli_line_refuse(line, "say where the tokens are kept: --tokens FILE");
        return false;
    }
    if (may_be_new && access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    pawl_code code = pawli_grants_read(path, ret_grants, &err);
    if (code != PAWL_OK)
        *ret_exit = pawli_cli_fail(NAME, code, &err);
    return code == PAWL_OK;
}

static int write_file(const struct pawli_line *line, const struct pawli_grants *grants)
{
    pawl_err err;
    pawl_code code = pawli_grants_write(pawli_line_text(line, TOKENS), grants, &err);
    return code == PAWL_OK ? EX_OK : pawli_cli_fail(NAME, code, &err);
}

/* Change the file, while nobody else does. */
static int change_file(const struct pawli_line *line, int (*change)(const struct pawli_line *line))
{
    const char *path = pawli_line_text(line, TOKENS);
    pawl_err err;
    int fd;
    if (path == NULL)
        return change(line); /* which says that it is needed */
    pawl_code code = pawli_grants_lock(path, &fd, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail(NAME, code, &err);
    int exit_code = change(line);
    (void)close(fd); /* nothing was written to it */
    return exit_code;
}

static size_t find(const struct pawli_grants *grants, const char *name)
{
    size_t i = 0;
    while (i < grants->count && strcmp(grants->rows[i].name, name) != 0)
        i++;
    return i;
}

/* ---------------------------------------------------------------- add */

static bool fill_grant(const struct pawli_line *line, struct pawli_grant *grant, pawl_err *err)
{
    const pawl_clock *clock = pawl_clock_system();
    const char *queues = pawli_line_text(line, "--queues");
    int64_t expires_ms = pawli_line_number(line, "--expires", 0);
    *grant = (struct pawli_grant){.scopes = (unsigned)pawli_line_number(line, "--scopes", 0)};
    if (!pawli_text_copy(grant->name, sizeof(grant->name), line->arguments[0]))
        grant->name[0] = '\0'; /* which is refused */
    if (!pawli_text_copy(grant->queues, sizeof(grant->queues), queues != NULL ? queues : "*"))
        grant->queues[0] = '\0'; /* likewise */
    if (expires_ms > 0)
        grant->expires_at = pawli_wall_add_ms(clock->wall(clock->user), expires_ms);
    return pawli_grant_check(grant, err) == PAWL_OK;
}

static void tell_token(const struct pawli_line *line, const char *name, const char *token)
{
    struct pawli_json json;
    if (!pawli_line_has(line, "--json")) {
        (void)printf("%s\n", token); /* main asks for errors */
        return;
    }
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_text(&json, "name", name);
    pawli_json_text(&json, "token", token);
    pawli_json_close(&json);
}

static int add(const struct pawli_line *line)
{
    struct pawli_grants grants;
    struct pawli_grant grant;
    char token[PAWLI_TOKEN_TEXT_MAX];
    pawl_err err;
    int exit_code = EX_OK;
    if (!pawli_line_has(line, "--scopes"))
        return pawli_line_refuse(line, "say what it is for: --scopes produce,work,read,admin");
    if (!fill_grant(line, &grant, &err))
        return pawli_line_refuse(line, "%s", err.text);
    if (!read_file(line, true, &grants, &exit_code))
        return exit_code;
    if (find(&grants, grant.name) < grants.count) {
        pawli_grants_clear(&grants);
        return pawli_line_refuse(line,
                                 "there is a token named %s; remove it first, or take another "
                                 "name",
                                 grant.name);
    }
    struct pawli_grant *rows = realloc(grants.rows, (grants.count + 1) * sizeof(*rows));
    if (rows == NULL) {
        pawli_grants_clear(&grants);
        (void)fputs("pawl token: memory ran out\n", stderr);
        return EX_OSERR;
    }
    pawli_token_make(pawl_random_system(), token, grant.hash);
    grants.rows = rows;
    grants.rows[grants.count++] = grant;
    exit_code = write_file(line, &grants);
    if (exit_code == EX_OK)
        tell_token(line, grant.name, token);
    pawli_grants_clear(&grants);
    return exit_code;
}

static int run_add(const struct pawli_line *line)
{
    return change_file(line, add);
}

static const struct pawli_option add_options[] = {
    PAWLI_OPTION_CONFIG,
    {"--expires", PAWLI_DURATION, "D", "how long it is good; default: until it is removed", 0, 0,
     NULL},
    PAWLI_OPTION_JSON,
    {"--queues", PAWLI_TEXT, "PATTERNS",
     "names of queues, or beginnings with a * behind, commas between; default: all", 0, 0, NULL},
    {"--scopes", PAWLI_CHOICES, "SCOPES", "what it is for", 0, 0, pawli_scope_names},
    OPTION_TOKENS,
    {0},
};
static const struct pawli_command add_command = {
    .name = "token add",
    .about = "make a token, and show it once",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = add_options,
    .details =
        "The file gets a line with the name, what the token is for, and its SHA-256. The "
        "token itself goes to standard output, and is kept nowhere. A server that runs takes "
        "the file anew within seconds.",
    .examples =
        "pawl token add shop --scopes produce --queues 'mail,news-*' --tokens /etc/pawl/tokens\n"
        "pawl token add ops --scopes produce,work,read,admin --expires 90d --tokens "
        "/etc/pawl/tokens\n",
    .run = run_add,
};

/* ---------------------------------------------------------------- list */

static void tell_grant(const struct pawli_grant *grant, struct pawli_json *json)
{
    char line[PAWLI_GRANT_LINE_MAX];
    char *words[4] = {NULL};
    pawli_grant_write(grant, line);
    char *at = line;
    for (size_t i = 0; i < 4; i++) {
        words[i] = at;
        at = strchr(at, ' ');
        *at++ = '\0'; /* five words, none of which has a blank */
    }
    if (json == NULL) {
        (void)printf("%-20s %-24s %-24s %s\n", words[0], words[1], words[2], words[3]);
        return;
    }
    pawli_json_open_object(json, NULL);
    pawli_json_text(json, "name", words[0]);
    pawli_json_text(json, "scopes", words[1]);
    pawli_json_text(json, "queues", words[2]);
    pawli_json_text(json, "expires", words[3]);
    pawli_json_close(json);
}

static int run_list(const struct pawli_line *line)
{
    struct pawli_grants grants;
    struct pawli_json json;
    bool is_json = pawli_line_has(line, "--json");
    int exit_code = EX_OK;
    if (!read_file(line, false, &grants, &exit_code))
        return exit_code;
    pawli_json_init(&json, stdout);
    if (is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "tokens");
    } else {
        (void)printf("%-20s %-24s %-24s %s\n", "NAME", "SCOPES", "QUEUES", "EXPIRES");
    }
    for (size_t i = 0; i < grants.count; i++)
        tell_grant(&grants.rows[i], is_json ? &json : NULL);
    if (is_json) {
        pawli_json_close(&json);
        pawli_json_close(&json);
    }
    pawli_grants_clear(&grants);
    return EX_OK;
}

static const struct pawli_option list_options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, OPTION_TOKENS, {0}};
static const struct pawli_command list_command = {
    .name = "token list",
    .about = "show which tokens there are, and what they are for",
    .options = list_options,
    .examples = "pawl token list --tokens /etc/pawl/tokens\n",
    .run = run_list,
};

/* ---------------------------------------------------------------- remove */

static int take_away(const struct pawli_line *line)
{
    struct pawli_grants grants;
    int exit_code = EX_OK;
    if (!read_file(line, false, &grants, &exit_code))
        return exit_code;
    size_t at = find(&grants, line->arguments[0]);
    if (at == grants.count) {
        (void)fprintf(stderr, "pawl token: there is no token named %.64s\n", line->arguments[0]);
        exit_code = EX_DATAERR;
    } else {
        memmove(&grants.rows[at], &grants.rows[at + 1],
                (grants.count - at - 1) * sizeof(*grants.rows));
        grants.count--;
        exit_code = write_file(line, &grants);
    }
    pawli_grants_clear(&grants);
    if (exit_code == EX_OK && pawli_line_has(line, "--json")) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "removed", line->arguments[0]);
        pawli_json_close(&json);
    }
    return exit_code;
}

static int run_remove(const struct pawli_line *line)
{
    return change_file(line, take_away);
}

static const struct pawli_option remove_options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, OPTION_TOKENS, {0}};
static const struct pawli_command remove_command = {
    .name = "token remove",
    .about = "make a token good for nothing",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = remove_options,
    .details = "A server that runs refuses it within seconds.",
    .examples = "pawl token remove shop --tokens /etc/pawl/tokens\n",
    .run = run_remove,
};

static const struct pawli_command *const actions[] = {&add_command, &list_command, &remove_command,
                                                      NULL};
const struct pawli_command pawli_command_token = {
    .name = NAME,
    .about = "make, list and remove the tokens of pawl serve",
    .actions = actions,
    .details = "A server that was started with --tokens answers only those who send one of them.",
    .examples = "pawl token add shop --scopes produce --queues 'mail,news-*' --tokens "
                "/etc/pawl/tokens\n"
                "pawl token list --tokens /etc/pawl/tokens\n"
                "pawl token remove shop --tokens /etc/pawl/tokens\n",
};
