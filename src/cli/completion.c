/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * completion.c - scripts by which shells complete the words of the program, from the tables of
 *                commands.
 * Owns:  what bash, zsh and fish want to be told.
 * Never: asks a store: what is completed are commands, actions, options, choices and files.
 */
#include "cli/help.h"

#include <string.h>

/* Calls `put` for each command and each action of one; `actions` are told with their own names. */
static void each(void (*put)(const struct pawli_command *command, FILE *out), FILE *out)
{
    for (size_t i = 0; pawli_commands[i] != NULL; i++) {
        put(pawli_commands[i], out);
        const struct pawli_command *const *action = pawli_commands[i]->actions;
        for (; action != NULL && *action != NULL; action++)
            put(*action, out);
    }
}

static void put_choices(const struct pawli_option *option, FILE *out)
{
    for (size_t i = 0; option->choices[i] != NULL; i++)
        (void)fprintf(out, "%s%s", i == 0 ? "" : " ",
                      option->choices[i]); /* main asks for errors */
}

/* The words that may follow a command: its actions and options. */
static void put_words(const struct pawli_command *command, FILE *out)
{
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        (void)fprintf(out, "%s ", pawli_command_word(command->actions[i]));
    for (size_t i = 0; command->options != NULL && command->options[i].name != NULL; i++)
        (void)fprintf(out, "%s ", command->options[i].name);
    (void)fputs("--help", out);
}

/* ---- bash */

static void put_bash_words(const struct pawli_command *command, FILE *out)
{
    (void)fprintf(out, "        '%s') echo '", command->name);
    put_words(command, out);
    (void)fputs("' ;;\n", out);
}

static void put_bash_values(const struct pawli_command *command, FILE *out)
{
    for (size_t i = 0; command->options != NULL && command->options[i].name != NULL; i++) {
        const struct pawli_option *option = &command->options[i];
        if (option->choices != NULL) {
            (void)fprintf(out, "        '%s %s') COMPREPLY=($(compgen -W '", command->name,
                          option->name);
            put_choices(option, out);
            (void)fputs("' -- \"$word\")); return ;;\n", out);
        } else if (pawli_option_kind(option) == PAWLI_FILE) {
            (void)fprintf(out,
                          "        '%s %s') COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
                          command->name, option->name);
        }
    }
}

void pawli_completion_bash(FILE *out)
{
    (void)fputs("# bash completion of pawl\n_pawl_words() {\n    case \"$1\" in\n", out);
    each(put_bash_words, out);
    (void)fputs("    esac\n}\n\n_pawl() {\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
                "    local command=${COMP_WORDS[1]}\n"
                "    COMPREPLY=()\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        COMPREPLY=($(compgen -W '",
                out);
    for (size_t i = 0; pawli_commands[i] != NULL; i++)
        (void)fprintf(out, "%s%s", i == 0 ? "" : " ", pawli_commands[i]->name);
    (void)fputs("' -- \"$word\"))\n        return\n    fi\n"
                "    if [ -n \"$(_pawl_words \"$command ${COMP_WORDS[2]}\")\" ] && "
                "[ \"$COMP_CWORD\" -gt 2 ]; then\n"
                "        command=\"$command ${COMP_WORDS[2]}\"\n    fi\n"
                "    case \"$command $last\" in\n",
                out);
    each(put_bash_values, out);
    (void)fputs("    esac\n"
                "    COMPREPLY=($(compgen -W \"$(_pawl_words \"$command\")\" -- \"$word\"))\n"
                "}\ncomplete -o default -F _pawl pawl\n",
                out);
}

/* ---- zsh */

/* Text inside single quotes, in which a colon or bracket would mean something. */
static void put_quoted(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

static void put_zsh_options(const struct pawli_command *command, FILE *out)
{
    if (command->actions != NULL)
        return;
    (void)fprintf(out, "        '%s')\n            _arguments \\\n", command->name);
    for (size_t i = 0; command->options != NULL && command->options[i].name != NULL; i++) {
        const struct pawli_option *option = &command->options[i];
        (void)fprintf(out, "                '%s[", option->name);
        put_quoted(option->about, out);
        (void)fputc(']', out);
        if (pawli_option_kind(option) != PAWLI_FLAG)
            (void)fprintf(out, ":%s:", option->value);
        if (option->choices != NULL) {
            (void)fputc('(', out);
            put_choices(option, out);
            (void)fputc(')', out);
        } else if (pawli_option_kind(option) == PAWLI_FILE) {
            (void)fputs("_files", out);
        }
        (void)fputs("' \\\n", out);
    }
    (void)fputs("                '--help[show help]' '*:argument:_files' ;;\n", out);
}

static void put_zsh_names(const struct pawli_command *const *commands, const char *indent,
                          FILE *out)
{
    for (size_t i = 0; commands[i] != NULL; i++) {
        (void)fprintf(out, "%s'%s:", indent, pawli_command_word(commands[i]));
        put_quoted(commands[i]->about, out);
        (void)fputs("'\n", out);
    }
}

static void put_zsh_actions(const struct pawli_command *command, FILE *out)
{
    if (command->actions == NULL)
        return;
    (void)fprintf(out, "        '%s')\n            names=(\n", command->name);
    put_zsh_names(command->actions, "                ", out);
    (void)fputs("            )\n            _describe action names ;;\n", out);
}

void pawli_completion_zsh(FILE *out)
{
    (void)fputs("#compdef pawl\n# zsh completion of pawl\n_pawl() {\n    local -a names\n"
                "    if ((CURRENT == 2)); then\n        names=(\n",
                out);
    put_zsh_names(pawli_commands, "            ", out);
    (void)fputs("        )\n        _describe command names\n        return\n    fi\n"
                "    if ((CURRENT == 3)); then\n        case \"$words[2]\" in\n",
                out);
    each(put_zsh_actions, out);
    (void)fputs("        esac\n    fi\n    case \"$words[2] $words[3]\" in\n", out);
    each(put_zsh_options, out);
    (void)fputs("    esac\n    case \"$words[2]\" in\n", out);
    each(put_zsh_options, out);
    /* As a function that is loaded when it is first called, and as a script that is sourced. */
    (void)fputs("    esac\n}\nif [ \"$funcstack[1]\" = _pawl ]; then\n    _pawl \"$@\"\nelse\n"
                "    compdef _pawl pawl\nfi\n",
                out);
}

/* ---- fish */

/* Text inside single quotes of fish. */
static void put_fish_quoted(const char *text, FILE *out)
{
    (void)fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
    (void)fputc('\'', out);
}

static void put_fish_condition(const struct pawli_command *command, FILE *out)
{
    size_t first = strcspn(command->name, " ");
    (void)fprintf(out, "complete -c pawl -n '__fish_seen_subcommand_from %.*s", (int)first,
                  command->name);
    if (command->name[first] != '\0')
        (void)fprintf(out, "; and __fish_seen_subcommand_from %s", pawli_command_word(command));
    (void)fputc('\'', out);
}

static void put_fish(const struct pawli_command *command, FILE *out)
{
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++) {
        put_fish_condition(command, out);
        (void)fprintf(out, " -f -a %s -d ", pawli_command_word(command->actions[i]));
        put_fish_quoted(command->actions[i]->about, out);
        (void)fputc('\n', out);
    }
    for (size_t i = 0; command->options != NULL && command->options[i].name != NULL; i++) {
        const struct pawli_option *option = &command->options[i];
        put_fish_condition(command, out);
        (void)fprintf(out, " -l %s", option->name + strlen("--"));
        if (pawli_option_kind(option) != PAWLI_FLAG)
            (void)fputs(pawli_option_kind(option) == PAWLI_FILE ? " -r -F" : " -x", out);
        if (option->choices != NULL) {
            (void)fputs(" -a '", out);
            put_choices(option, out);
            (void)fputc('\'', out);
        }
        (void)fputs(" -d ", out);
        put_fish_quoted(option->about, out);
        (void)fputc('\n', out);
    }
}

void pawli_completion_fish(FILE *out)
{
    (void)fputs("# fish completion of pawl\n", out);
    for (size_t i = 0; pawli_commands[i] != NULL; i++) {
        (void)fprintf(out, "complete -c pawl -n __fish_use_subcommand -f -a %s -d ",
                      pawli_commands[i]->name);
        put_fish_quoted(pawli_commands[i]->about, out);
        (void)fputc('\n', out);
    }
    each(put_fish, out);
}
