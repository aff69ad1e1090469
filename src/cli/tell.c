/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tell.c - how commands tell what stores answer.
 * Owns:  the form of times and of progress; the words for states and reasons.
 * Never: tells a payload or a token.
 */
#include "cli/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_US 100000 /* between two times that it is shown */

const char *const pawli_state_words[] = {"ready", "in_flight", "succeeded", "failed", NULL};
const char *const pawli_reason_words[] = {"none",    "error",     "exhausted", "fatal",
                                          "timeout", "snooze",    "shutdown",  "expired",
                                          "poison",  "cancelled", "start_by",  NULL};

const char *pawli_time_text(pawl_wall at, char text[PAWLI_TIME_TEXT_MAX])
{
    time_t seconds = (time_t)(at.us / 1000000);
    struct tm parts;
    size_t length = 0;
    if (at.us > 0 && gmtime_r(&seconds, &parts) != NULL)
        length = strftime(text, PAWLI_TIME_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &parts);
    if (length == 0)
        return "-";
    (void)snprintf(text + length, PAWLI_TIME_TEXT_MAX - length, ".%03dZ", /* fits up to year 9999 */
                   (int)(at.us / 1000 % 1000));
    return text;
}

void pawli_json_time(struct pawli_json *json, const char *key, pawl_wall at)
{
    char text[PAWLI_TIME_TEXT_MAX];
    if (at.us > 0)
        pawli_json_text(json, key, pawli_time_text(at, text));
}

void pawli_json_id(struct pawli_json *json, const char *key, const pawl_id *id)
{
    char text[PAWL_ID_TEXT_MAX];
    if (!pawl_id_is_nil(id))
        pawli_json_text(json, key, pawl_id_format(id, text));
}

const char *pawli_column(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

void pawli_progress_begin(struct pawli_progress *progress, const char *what, bool has_rows)
{
    bool is_shown = isatty(STDERR_FILENO) == 1 && !(has_rows && isatty(STDOUT_FILENO) == 1);
    *progress = (struct pawli_progress){.what = is_shown ? what : NULL};
}

void pawli_progress_show(struct pawli_progress *progress, int64_t count)
{
    const pawl_clock *clock = pawl_clock_system();
    if (progress->what == NULL)
        return;
    int64_t now_us = clock->mono(clock->user).us;
    if (progress->shown_us != 0 && now_us - progress->shown_us < PROGRESS_US)
        return;
    progress->shown_us = now_us;
    (void)fprintf(stderr, "\r%s: %" PRId64, progress->what, count);
}

void pawli_progress_end(struct pawli_progress *progress)
{
    if (progress->what != NULL && progress->shown_us != 0)
        (void)fputs("\r\033[K", stderr);
    progress->shown_us = 0;
}

static const struct pawli_option *find_option(const struct pawli_line *line, const char *name)
{
    const struct pawli_option *option = line->command->options;
    while (option->name != NULL && strcmp(option->name, name) != 0)
        option++;
    return option->name != NULL ? option : NULL;
}

pawl_filter pawli_line_filter(const struct pawli_line *line)
{
    pawl_filter filter = {
        .queue = pawli_line_text(line, "--queue"),
        .worker = pawli_line_text(line, "--worker"),
    };
    /* Choices are bits by their places, which are the numbers of the states and reasons. */
    if (find_option(line, "--key") != NULL)
        filter.ordering_key = pawli_line_text(line, "--key");
    if (find_option(line, "--state") != NULL)
        filter.states = (unsigned)pawli_line_number(line, "--state", 0);
    int64_t reason = pawli_line_number(line, "--reason", 1);
    for (int bit = 0; reason >> bit != 0; bit++)
        filter.reason = (pawl_reason)bit;
    return filter;
}
