/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * config.c - `pawl config`: which settings are in force, and who said so.
 * Owns:  the form of its output.
 * Never: shows a secret; reads the file in another way than every other command.
 */
#include "cli/command.h"
#include "cli/json.h"
#include "cli/secret.h"
#include "cli/settings.h"
#include "runtime/run_env.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#define VALUE_MAX 1024
#define FROM_MAX  4200

/* One setting as it is told. */
struct told {
    const char *name;
    char value[VALUE_MAX];
    char from[FROM_MAX];
    const char *origin; /* "default", "environment" or "file" */
};

/* What stands behind "default" in the words about an option: "(default 10)", "default: half of it".
 */
static void default_text(const struct pawli_option *option, char value[VALUE_MAX])
{
    const char *at = strstr(option->about, "(default ");
    size_t length = 0;
    if (at != NULL) {
        at += strlen("(default ");
        length = strcspn(at, ")");
    } else if ((at = strstr(option->about, "default: ")) != NULL) {
        at += strlen("default: ");
        length = strlen(at);
    }
    if (pawli_option_kind(option) == PAWLI_FLAG)
        (void)snprintf(value, VALUE_MAX, "no"); /* it fits */
    else if (pawli_option_kind(option) == PAWLI_SECRET)
        (void)snprintf(value, VALUE_MAX, "sqlite:"); /* the store is the only one */
    else
        (void)snprintf(value, VALUE_MAX, "%.*s", (int)length, length > 0 ? at : ""); /* it fits */
}

/* False: what was found is wrong, which has been told. */
static bool tell_found(const struct pawli_settings *settings, const struct pawli_option *option,
                       const struct pawli_found *found, struct told *told)
{
    bool is_variable = found->origin == PAWLI_FROM_ENVIRONMENT;
    char why[PAWLI_WHY_MAX];
    const char *text;
    int64_t number;
    if (pawli_option_kind(option) == PAWLI_SECRET)
        pawli_secret_shown(found->value, told->value, sizeof(told->value));
    else
        (void)snprintf(told->value, sizeof(told->value), "%s", found->value); /* cut, where long */
    told->origin = is_variable ? "environment" : "file";
    if (is_variable)
        (void)snprintf(told->from, sizeof(told->from), "%s", found->variable); /* it fits */
    else
        (void)snprintf(told->from, sizeof(told->from), "%s:%d", settings->path, /* cut, likewise */
                       found->line_no);
    if (pawli_option_read(option, found->value, &text, &number, why))
        return true;
    (void)fprintf(stderr, "pawl config: %s%s\n", told->from, why);
    return false;
}

/* ---- variables that nobody reads */

static bool is_known_variable(const char *name, size_t length,
                              const struct pawli_option *const *options, size_t options_count)
{
    static const char *const others[] = {"PAWL_CONFIG",        "PAWL_JOB_ID",  "PAWL_QUEUE",
                                         "PAWL_ORDERING_KEY",  "PAWL_ATTEMPT", "PAWL_DEADLINE",
                                         "PAWL_LEASE_VERSION", "PAWL_FENCE"};
    char variable[PAWLI_SETTING_NAME_MAX];
    if (strncmp(name, PAWLI_HEADER_PREFIX, strlen(PAWLI_HEADER_PREFIX)) == 0)
        return true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strlen(others[i]) == length && memcmp(others[i], name, length) == 0)
            return true;
    for (size_t i = 0; i < options_count; i++) {
        pawli_setting_variable(options[i], variable);
        if (strlen(variable) == length && memcmp(variable, name, length) == 0)
            return true;
    }
    return false;
}

static void tell_unknown(const struct pawli_option *const *options, size_t options_count)
{
    extern char **environ;
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, "PAWL_", strlen("PAWL_")) == 0 &&
            !is_known_variable(*at, length, options, options_count))
            (void)fprintf(stderr, "pawl config: nothing reads the variable %.*s\n", (int)length,
                          *at);
    }
}

/* ---- the command */

static void tell_one(const struct told *told, struct pawli_json *json)
{
    if (json == NULL) {
        (void)printf("%-16s  %-32s  %s\n", told->name, told->value[0] != '\0' ? told->value : "-",
                     told->from); /* here and below: main asks for errors */
        return;
    }
    pawli_json_open_object(json, NULL);
    pawli_json_text(json, "name", told->name);
    pawli_json_text(json, "value", told->value);
    pawli_json_text(json, "origin", told->origin);
    pawli_json_text(json, "from", told->from);
    pawli_json_close(json);
}

static int tell_all(const struct pawli_settings *settings, struct pawli_json *json)
{
    const struct pawli_option *options[PAWLI_SETTINGS_MAX];
    size_t count = pawli_settings_list(options);
    int exit_code = EX_OK;
    for (size_t i = 0; i < count; i++) {
        struct told told = {.name = options[i]->name + strlen("--"), .origin = "default"};
        struct pawli_found found;
        (void)snprintf(told.from, sizeof(told.from), "default"); /* it fits */
        if (!pawli_settings_find(settings, options[i], &found))
            default_text(options[i], told.value);
        else if (!tell_found(settings, options[i], &found, &told))
            exit_code = EX_CONFIG;
        tell_one(&told, json);
    }
    tell_unknown(options, count);
    return exit_code;
}

static int tell(const struct pawli_settings *settings, bool is_json)
{
    struct pawli_json json;
    if (!is_json) {
        (void)printf("%-16s  %-32s  %s\n", "SETTING", "VALUE", "FROM");
        return tell_all(settings, NULL);
    }
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    if (settings->path != NULL)
        pawli_json_text(&json, "file", settings->path);
    pawli_json_open_array(&json, "settings");
    int exit_code = tell_all(settings, &json);
    pawli_json_close(&json);
    pawli_json_close(&json);
    return exit_code;
}

static int run_config(const struct pawli_line *line)
{
    struct pawli_line again;
    struct pawli_settings settings; /* main keeps its own to itself */
    int exit_code = pawli_settings_again(line, &again, &settings);
    if (exit_code == EX_OK)
        exit_code = tell(&settings, pawli_line_has(line, "--json"));
    else
        (void)fprintf(stderr, "pawl config: %s\n", settings.why);
    pawli_settings_clear(&settings);
    return exit_code;
}

static const struct pawli_option options[] = {PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, {0}};
const struct pawli_command pawli_command_config = {
    .name = "config",
    .about = "show which settings are in force, and where each came from",
    .options = options,
    .details =
        "An option that is a setting can also be said by a variable of the environment (PAWL_ and "
        "its name in capitals, with _ for -) and by a line of the configuration file (name = "
        "value). The command line counts first, then the environment, then the file. For the store "
        "DATABASE_URL and the PG... variables count, too, after PAWL_STORE.\n"
        "In the file, blank lines and lines that begin with # mean nothing. A flag is yes or no; "
        "--no-reaper=no takes back what the file says. What is not known, said twice or wrong is "
        "refused. pawl work and pawl reap --watch read the file again on SIGHUP.\n"
        "Passwords in the URL of a store are hidden.",
    .examples = "pawl config\nPAWL_PARALLEL=4 pawl config --json\n",
    .run = run_config,
};
