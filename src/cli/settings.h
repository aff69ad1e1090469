/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - what the environment and a configuration file say of options that are settings. What
 * the command line says counts first, then the environment, then the file.
 *
 * The setting of --reaper-interval is `reaper-interval` in the file and PAWL_REAPER_INTERVAL in the
 * environment. The store has further variables: DATABASE_URL, and those of libpq. A variable that
 * is empty says nothing. The file is the one that --config names, else PAWL_CONFIG; else
 * pawl/pawl.conf in $XDG_CONFIG_HOME (else in ~/.config), else /etc/pawl/pawl.conf, where it is
 * there.
 */
#ifndef PAWLI_CLI_SETTINGS_H
#define PAWLI_CLI_SETTINGS_H

#include "cli/options.h"

#define PAWLI_SETTINGS_MAX      64 /* of all commands */
#define PAWLI_SETTING_NAME_MAX  64
#define PAWLI_SETTINGS_FILE_MAX 65536 /* bytes of a file */
#define PAWLI_SETTINGS_WHY_MAX  4608  /* a path and what is wrong there */

/* A file that was read. Zeroed: none. */
struct pawli_settings {
    char *path; /* owned; NULL: there is no file */
    char *text; /* owned; the names and values are parts of it */
    struct {
        const char *name;
        const char *value;
        int line_no;
    } entries[PAWLI_SETTINGS_MAX];
    size_t count;
    char why[PAWLI_SETTINGS_WHY_MAX]; /* what is wrong, where it was refused */
};

/* What was found of one setting. */
struct pawli_found {
    const char *value; /* as it stands there */
    enum pawli_origin origin;
    char variable[PAWLI_SETTING_NAME_MAX]; /* of the environment; empty: of the file */
    int line_no;                           /* of the file */
};

/*
 * Read the file, and add what it and the environment say to the line, which borrows from *settings.
 * Gives EX_OK, or another exit code where ret_settings->why says what is wrong: the name, the
 * value, where it stands, and what is allowed. The caller clears *ret_settings in any case.
 */
int pawli_settings_add(struct pawli_line *line, struct pawli_settings *ret_settings);

/* The same once more, from what the command line said of `line`. */
int pawli_settings_again(const struct pawli_line *line, struct pawli_line *ret_line,
                         struct pawli_settings *ret_settings);

void pawli_settings_clear(struct pawli_settings *settings); /* accepts an empty one */

/* All options that are settings, one for each name, in the order of their names. Gives how many. */
size_t pawli_settings_list(const struct pawli_option *ret_options[PAWLI_SETTINGS_MAX]);

/* What the environment or the file says of a setting. False: nothing. */
bool pawli_settings_find(const struct pawli_settings *settings, const struct pawli_option *option,
                         struct pawli_found *ret_found);

/* The name of a setting's own variable: "PAWL_REAPER_INTERVAL". */
void pawli_setting_variable(const struct pawli_option *option,
                            char ret_name[PAWLI_SETTING_NAME_MAX]);

#endif
