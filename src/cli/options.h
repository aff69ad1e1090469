/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * options.h - what a command takes, as one table, from which its words are read and its help, its
 * manual page and the completion of shells are made; and a command line that was read by it.
 *
 * A command returns the program's exit code, one of <sysexits.h> or 0, and has said on standard
 * error what went wrong. Whether its output could be written is main's to find out.
 */
#ifndef PAWLI_CLI_OPTIONS_H
#define PAWLI_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAWLI_OPTIONS_MAX 32 /* of one command */
#define PAWLI_REPEATS_MAX 64 /* of the option of a command that may be repeated */

/* What an option's value is. */
enum pawli_value {
    PAWLI_FLAG = 0, /* it has none */
    PAWLI_TEXT,
    PAWLI_SECRET,   /* a text that no error shows */
    PAWLI_FILE,     /* the name of a file */
    PAWLI_NAME,     /* of a queue or a worker */
    PAWLI_NUMBER,   /* a whole number from `min` to `max` */
    PAWLI_DURATION, /* `30s` and the like */
    PAWLI_CHOICE,   /* one of `choices` */
    PAWLI_CHOICES,  /* some of `choices`, with commas between */

    /* To be added to one of these: the environment and the configuration file may say it, too. What
     * belongs to one call only (an id, a filter, a limit) is no setting. */
    PAWLI_SETTING = 64,

    /* Likewise: it may be said again and again, up to PAWLI_REPEATS_MAX times. One option of a
     * command at most. */
    PAWLI_REPEATED = 128
};

struct pawli_option {
    const char *name;  /* "--delay"; NULL ends a list */
    unsigned kind;     /* a pawli_value, with PAWLI_SETTING or PAWLI_REPEATED or without */
    const char *value; /* what its value is called: "D"; NULL: a flag */
    const char *about;
    int64_t min;
    int64_t max;
    const char *const *choices; /* ended by NULL */
};

/* What its value is, and whether it is a setting. */
static inline enum pawli_value pawli_option_kind(const struct pawli_option *option)
{
    return (enum pawli_value)(option->kind & ~(unsigned)(PAWLI_SETTING | PAWLI_REPEATED));
}

static inline bool pawli_option_is_setting(const struct pawli_option *option)
{
    return (option->kind & PAWLI_SETTING) != 0;
}

struct pawli_line;
struct pawl_id;

/* A command, or an action of one: then its name has two words, "queues set". */
struct pawli_command {
    const char *name;
    const char *about;     /* one line, without a full stop */
    const char *arguments; /* "QUEUE [PAYLOAD]"; NULL: none */
    size_t arguments_min;
    size_t arguments_max;
    size_t names_max;      /* so many arguments, from the first on, are names of queues */
    bool is_program_taken; /* what follows `--` is a program and its arguments */
    bool is_store_made;    /* pawli_cli_with_store() makes a file that is not there */
    const struct pawli_option *options;         /* NULL: none */
    const struct pawli_command *const *actions; /* ended by NULL; NULL: none */
    const struct pawli_command *usual;          /* the action where none is named; NULL: none */
    const char *details;                        /* more on what it does; NULL: nothing */
    const char *examples;                       /* a line each; NULL: none */
    int (*run)(const struct pawli_line *line);  /* NULL: it has actions */
};

/* Who said what an option is. */
enum pawli_origin {
    PAWLI_FROM_NOBODY = 0,
    PAWLI_FROM_LINE,
    PAWLI_FROM_ENVIRONMENT,
    PAWLI_FROM_FILE
};

/* A command line that was read, and what settings.c has added to it. Borrows the words. */
struct pawli_line {
    const struct pawli_command *command;
    const char *values[PAWLI_OPTIONS_MAX]; /* by the option's place; NULL: not given */
    enum pawli_origin origins[PAWLI_OPTIONS_MAX];
    int64_t numbers[PAWLI_OPTIONS_MAX];     /* of numbers, durations, and choices (their bits) */
    const char *repeats[PAWLI_REPEATS_MAX]; /* all values of the option that may be repeated */
    size_t repeats_count;
    char **arguments;
    size_t arguments_count;
    char **program; /* what followed `--`, ended by NULL; NULL: nothing */
};

/* All commands, in the order of their names, ended by NULL. */
extern const struct pawli_command *const pawli_commands[];

/* The command of that name, or NULL. */
const struct pawli_command *pawli_command_find(const char *name);

/*
 * Of a command with actions, the one that `words` begin with; *ret_words is what follows. Of
 * others, itself. NULL: standard error says what is wrong.
 */
const struct pawli_command *pawli_command_action(const struct pawli_command *command, char **words,
                                                 char ***ret_words);

/*
 * Read words, which are put into another order: options may stand before, between and behind
 * arguments, `--name value` or `--name=value`; behind `--` there are arguments only. False:
 * standard error names the word (but for secrets) and, for one that is not known, what comes
 * nearest.
 */
bool pawli_line_read(const struct pawli_command *command, char **words,
                     struct pawli_line *ret_line);

/*
 * Read a value by the kind of its option. *ret_text is what a line holds of it: NULL for a flag
 * that is off, which may be said of settings only. False: `why` goes on after the option's name,
 * and shows no secret: ' is "x"; it must be ...'.
 */
#define PAWLI_WHY_MAX 512
bool pawli_option_read(const struct pawli_option *option, const char *value, const char **ret_text,
                       int64_t *ret_number, char why[PAWLI_WHY_MAX]);

/* What was said of an option, which must be one of the command's. */
bool pawli_line_has(const struct pawli_line *line, const char *name);
const char *pawli_line_text(const struct pawli_line *line, const char *name); /* NULL: not given */
int64_t pawli_line_number(const struct pawli_line *line, const char *name, int64_t otherwise);

/* Complain about how a command was called; gives EX_USAGE. */
int pawli_line_refuse(const struct pawli_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An id among the words. False: it is none, which has been told; the exit code is EX_USAGE. */
bool pawli_line_id(const struct pawli_line *line, const char *word, struct pawl_id *ret_id);

/* The last word of a command's name. */
const char *pawli_command_word(const struct pawli_command *command);

/* Options that many commands have. Each command that has a setting has --config. */
#define PAWLI_OPTION_CONFIG                                                                      \
    {                                                                                            \
        "--config", PAWLI_FILE, "FILE",                                                          \
            "settings, a line each: name = value; default: PAWL_CONFIG, else pawl/pawl.conf in " \
            "the configuration folder, else /etc/pawl/pawl.conf",                                \
            0, 0, NULL                                                                           \
    }
#define PAWLI_OPTION_JSON                                              \
    {                                                                  \
        "--json", PAWLI_FLAG, NULL, "as one JSON document", 0, 0, NULL \
    }
#define PAWLI_OPTION_STORE                                                                     \
    {                                                                                          \
        "--store", PAWLI_SECRET | PAWLI_SETTING, "URL",                                        \
            "postgres://..., sqlite:PATH or memory:; default: PAWL_STORE, else DATABASE_URL, " \
            "else the PG... variables, else the configuration file, else a SQLite file in "    \
            "the state folder",                                                                \
            0, 0, NULL                                                                         \
    }
#define PAWLI_OPTION_QUEUE                                               \
    {                                                                    \
        "--queue", PAWLI_NAME, "QUEUE", "only of this queue", 0, 0, NULL \
    }
#define PAWLI_OPTION_WORKER                                                 \
    {                                                                       \
        "--worker", PAWLI_NAME, "NAME", "only with this worker", 0, 0, NULL \
    }
#define PAWLI_OPTION_LIMIT(about_)                               \
    {                                                            \
        "--limit", PAWLI_NUMBER, "N", about_, 1, INT64_MAX, NULL \
    }

#endif
