/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * settings.c - what the environment and a configuration file say of options that are settings.
 * Owns:  where the file is looked for, its form, and who is heard first.
 * Never: shows what may be a secret; takes a file in part: one wrong line refuses it.
 */
#include "cli/settings.h"

#include "cli/words.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define PATH_MAX_LEN 4096
#define CONFIG       "--config"
#define STORE        "--store"
#define SYSTEM_FILE  "/etc/pawl/pawl.conf"
#define BLANKS       " \t"

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- the settings there are */

static const char *setting_name(const struct pawli_option *option)
{
    return option->name + strlen("--");
}

static int compare(const void *a, const void *b)
{
    return strcmp((*(const struct pawli_option *const *)a)->name,
                  (*(const struct pawli_option *const *)b)->name);
}

static size_t add_options(const struct pawli_command *command,
                          const struct pawli_option *ret_options[PAWLI_SETTINGS_MAX], size_t count)
{
    const struct pawli_option *option = command->options;
    for (; option != NULL && option->name != NULL; option++) {
        bool is_known = !pawli_option_is_setting(option);
        for (size_t i = 0; i < count && !is_known; i++) {
            is_known = strcmp(ret_options[i]->name, option->name) == 0;
            assert(!is_known || ret_options[i]->kind == option->kind); /* one name, one meaning */
        }
        assert(is_known || count < PAWLI_SETTINGS_MAX);
        if (!is_known)
            ret_options[count++] = option;
    }
    return count;
}

size_t pawli_settings_list(const struct pawli_option *ret_options[PAWLI_SETTINGS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; pawli_commands[i] != NULL; i++) {
        const struct pawli_command *const *action = pawli_commands[i]->actions;
        count = add_options(pawli_commands[i], ret_options, count);
        for (; action != NULL && *action != NULL; action++)
            count = add_options(*action, ret_options, count);
    }
    qsort(ret_options, count, sizeof(const struct pawli_option *), compare);
    return count;
}

void pawli_setting_variable(const struct pawli_option *option,
                            char ret_name[PAWLI_SETTING_NAME_MAX])
{
    int length = snprintf(ret_name, PAWLI_SETTING_NAME_MAX, "PAWL_%s", setting_name(option));
    assert(length < PAWLI_SETTING_NAME_MAX);
    (void)length; /* used by the assert only */
    for (char *at = ret_name; *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
}

/* ---- finding one */

static bool take_variable(const char *name, struct pawli_found *ret_found)
{
    const char *value = environment(name);
    if (value == NULL)
        return false;
    *ret_found = (struct pawli_found){.value = value, .origin = PAWLI_FROM_ENVIRONMENT};
    (void)snprintf(ret_found->variable, sizeof(ret_found->variable), "%s", name); /* fits */
    return true;
}

/* The further variables of the store: a URL, or what libpq takes by itself. */
static bool take_store_variable(struct pawli_found *ret_found)
{
    static const char *const names[] = {"PGHOST", "PGHOSTADDR", "PGDATABASE", "PGSERVICE",
                                        "PGPORT"};
    if (take_variable("DATABASE_URL", ret_found))
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (take_variable(names[i], ret_found)) {
            ret_found->value = "postgresql://"; /* libpq adds the variables */
            return true;
        }
    return false;
}

bool pawli_settings_find(const struct pawli_settings *settings, const struct pawli_option *option,
                         struct pawli_found *ret_found)
{
    char variable[PAWLI_SETTING_NAME_MAX];
    pawli_setting_variable(option, variable);
    if (take_variable(variable, ret_found) ||
        (strcmp(option->name, STORE) == 0 && take_store_variable(ret_found)))
        return true;
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->entries[i].name, setting_name(option)) == 0) {
            *ret_found = (struct pawli_found){.value = settings->entries[i].value,
                                              .origin = PAWLI_FROM_FILE,
                                              .line_no = settings->entries[i].line_no};
            return true;
        }
    return false;
}

/* ---- the lines of a file */

/* A file while it is read. */
struct reading {
    struct pawli_settings *settings;
    const struct pawli_option *known[PAWLI_SETTINGS_MAX];
    size_t known_count;
    int line_no;
};

static int refuse_file(const struct reading *reading, const char *why)
{
    struct pawli_settings *settings = reading->settings;
    (void)snprintf(settings->why, sizeof(settings->why), "%s: %s", settings->path, why);
    return EX_CONFIG;
}

static int refuse_line(const struct reading *reading, const char *what, const char *why)
{
    struct pawli_settings *settings = reading->settings;
    (void)snprintf(settings->why, sizeof(settings->why), "%s:%d: %s%s", settings->path,
                   reading->line_no, what, why);
    return EX_CONFIG;
}

static int refuse_name(const struct reading *reading, const char *name)
{
    const char *names[PAWLI_SETTINGS_MAX];
    char what[PAWLI_WHY_MAX];
    for (size_t i = 0; i < reading->known_count; i++)
        names[i] = setting_name(reading->known[i]);
    const char *nearest = pawli_cli_nearest(name, names, reading->known_count);
    (void)snprintf(what, sizeof(what), "unknown setting \"%.60s\"", name); /* it fits */
    if (nearest == NULL)
        return refuse_line(reading, what, "; pawl config lists them all");
    (void)snprintf(what + strlen(what), sizeof(what) - strlen(what), "; did you mean %s?",
                   nearest); /* likewise */
    return refuse_line(reading, what, "");
}

static int add_entry(struct reading *reading, const char *name, const char *value)
{
    struct pawli_settings *settings = reading->settings;
    const struct pawli_option *option = NULL;
    char why[PAWLI_WHY_MAX];
    const char *text;
    int64_t number;
    for (size_t i = 0; i < reading->known_count && option == NULL; i++)
        if (strcmp(setting_name(reading->known[i]), name) == 0)
            option = reading->known[i];
    if (option == NULL)
        return refuse_name(reading, name);
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->entries[i].name, name) == 0) {
            (void)snprintf(why, sizeof(why), " is given twice: first in line %d", /* it fits */
                           settings->entries[i].line_no);
            return refuse_line(reading, name, why);
        }
    if (value[0] == '\0')
        return refuse_line(reading, name, " has no value");
    if (strstr(value, " #") != NULL || strstr(value, "\t#") != NULL)
        return refuse_line(reading, name, ": a comment must have a line of its own");
    if (!pawli_option_read(option, value, &text, &number, why))
        return refuse_line(reading, name, why);
    settings->entries[settings->count].name = name; /* each name once: there is room */
    settings->entries[settings->count].value = value;
    settings->entries[settings->count++].line_no = reading->line_no;
    return EX_OK;
}

static void cut_blanks(char *text, size_t length)
{
    while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
}

/* What is no name is not shown: it may be a URL with a password that has lost its place. */
static bool is_name(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
           strlen(text);
}

/* One line, which is cut into its parts. */
static int read_line(struct reading *reading, char *line)
{
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\r')
        line[--length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return refuse_line(reading, "a control character", " cannot stand in a setting");
    cut_blanks(line, length);
    line += strspn(line, BLANKS);
    if (line[0] == '\0' || line[0] == '#')
        return EX_OK;
    char *equals = strchr(line, '=');
    if (equals != NULL)
        cut_blanks(line, (size_t)(equals - line));
    if (equals == NULL || line[0] == '\0' || !is_name(line))
        return refuse_line(reading, "this is no setting", "; write: name = value");
    char *value = equals + 1 + strspn(equals + 1, BLANKS);
    return add_entry(reading, line, value);
}

static int read_lines(struct reading *reading, size_t length)
{
    char *at = reading->settings->text;
    if (memchr(at, '\0', length) != NULL)
        return refuse_file(reading, "this is no text: it has a byte of zero");
    reading->known_count = pawli_settings_list(reading->known);
    int exit_code = EX_OK;
    while (exit_code == EX_OK && at != NULL) {
        char *end = strchr(at, '\n');
        if (end != NULL)
            *end = '\0';
        reading->line_no++;
        exit_code = read_line(reading, at);
        at = end != NULL ? end + 1 : NULL;
    }
    return exit_code;
}

/* ---- the file */

static int read_file(struct reading *reading, FILE *file)
{
    struct pawli_settings *settings = reading->settings;
    settings->text = malloc(PAWLI_SETTINGS_FILE_MAX + 1);
    if (settings->text == NULL) {
        (void)refuse_file(reading, "memory ran out");
        return EX_OSERR;
    }
    errno = 0;
    size_t length = fread(settings->text, 1, PAWLI_SETTINGS_FILE_MAX + 1, file);
    if (ferror(file) != 0)
        return refuse_file(reading, strerror(errno));
    if (length > PAWLI_SETTINGS_FILE_MAX)
        return refuse_file(reading, "this is too long: a file of settings has 65536 bytes at most");
    settings->text[length] = '\0';
    return read_lines(reading, length);
}

/* Open a file, and keep its name. NULL: errno. */
static FILE *open_file(struct pawli_settings *settings, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    size_t size = strlen(path) + 1;
    settings->path = malloc(size);
    if (settings->path != NULL) {
        memcpy(settings->path, path, size);
        return file;
    }
    (void)fclose(file); /* nothing was written */
    errno = ENOMEM;
    return NULL;
}

/* The file of this user, or of the system. NULL: neither is there, or errno says why. */
static FILE *open_usual(struct pawli_settings *settings, char path[PATH_MAX_LEN])
{
    const char *home = environment("XDG_CONFIG_HOME");
    const char *inside = "";
    if (home == NULL || home[0] != '/') {
        home = environment("HOME");
        inside = "/.config";
    }
    errno = ENOENT;
    FILE *file = NULL;
    if (home != NULL &&
        snprintf(path, PATH_MAX_LEN, "%s%s/pawl/pawl.conf", home, inside) < PATH_MAX_LEN)
        file = open_file(settings, path);
    if (file != NULL || (errno != ENOENT && errno != ENOTDIR))
        return file;
    (void)snprintf(path, PATH_MAX_LEN, SYSTEM_FILE); /* it fits */
    return open_file(settings, path);
}

static int refuse_open(const struct reading *reading, const char *path)
{
    int reason = errno;
    (void)snprintf(reading->settings->why, sizeof(reading->settings->why), "%s: %s", path,
                   strerror(reason));
    return reason == ENOMEM ? EX_OSERR : EX_NOINPUT;
}

static int read_settings(struct reading *reading, const char *named)
{
    char usual[PATH_MAX_LEN];
    FILE *file = named != NULL ? open_file(reading->settings, named)
                               : open_usual(reading->settings, usual);
    if (file == NULL && named == NULL && (errno == ENOENT || errno == ENOTDIR))
        return EX_OK;
    if (file == NULL)
        return refuse_open(reading, named != NULL ? named : usual);
    int exit_code = read_file(reading, file);
    (void)fclose(file); /* nothing was written */
    return exit_code;
}

/* ---- lines */

static int fill(struct pawli_line *line, struct pawli_settings *settings)
{
    const struct pawli_option *options = line->command->options;
    char why[PAWLI_WHY_MAX];
    struct pawli_found found;
    for (size_t i = 0; options[i].name != NULL; i++) {
        if (!pawli_option_is_setting(&options[i]) || line->origins[i] != PAWLI_FROM_NOBODY ||
            !pawli_settings_find(settings, &options[i], &found))
            continue;
        line->origins[i] = found.origin;
        if (pawli_option_read(&options[i], found.value, &line->values[i], &line->numbers[i], why))
            continue;
        if (found.origin == PAWLI_FROM_ENVIRONMENT)
            (void)snprintf(settings->why, sizeof(settings->why), "%s%s", found.variable, why);
        else
            (void)snprintf(settings->why, sizeof(settings->why), "%s:%d: %s%s", settings->path,
                           found.line_no, setting_name(&options[i]), why);
        return EX_CONFIG;
    }
    return EX_OK;
}

static bool has_config(const struct pawli_command *command)
{
    const struct pawli_option *option = command->options;
    while (option != NULL && option->name != NULL && strcmp(option->name, CONFIG) != 0)
        option++;
    return option != NULL && option->name != NULL;
}

int pawli_settings_add(struct pawli_line *line, struct pawli_settings *ret_settings)
{
    struct reading reading = {.settings = ret_settings};
    *ret_settings = (struct pawli_settings){.path = NULL};
    if (!has_config(line->command))
        return EX_OK;
    const char *named = pawli_line_text(line, CONFIG);
    int exit_code = read_settings(&reading, named != NULL ? named : environment("PAWL_CONFIG"));
    return exit_code == EX_OK ? fill(line, ret_settings) : exit_code;
}

int pawli_settings_again(const struct pawli_line *line, struct pawli_line *ret_line,
                         struct pawli_settings *ret_settings)
{
    *ret_line = *line;
    for (size_t i = 0; i < PAWLI_OPTIONS_MAX; i++) {
        if (ret_line->origins[i] == PAWLI_FROM_LINE)
            continue;
        ret_line->values[i] = NULL;
        ret_line->numbers[i] = 0;
        ret_line->origins[i] = PAWLI_FROM_NOBODY;
    }
    return pawli_settings_add(ret_line, ret_settings);
}

void pawli_settings_clear(struct pawli_settings *settings)
{
    free(settings->path);
    free(settings->text);
    *settings = (struct pawli_settings){.path = NULL};
}
