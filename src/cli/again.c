/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * again.c - the settings are read again while a command runs.
 * Owns:  what is told of it: why they were refused, and what cannot change while it runs.
 * Never: writes to standard error by itself: that is the log's; shows a value: it may be a secret.
 */
#include "cli/again.h"

#include "cli/log.h"
#include "cli/settings.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#define CUT "..."

/* What does not fit is the beginning of a long path: the end says what is wrong. */
static void tell_refused(const struct pawli_again *to, const char *why)
{
    pawl_event event = {.kind = PAWL_EVENT_SETTINGS_REFUSED, .level = PAWL_LEVEL_WARN};
    size_t size = strlen(why) + 1;
    size_t cut_len = size > sizeof(event.text) ? strlen(CUT) : 0;
    size_t room = sizeof(event.text) - cut_len;
    memcpy(event.text, CUT, cut_len);
    if (size > room) {
        why += size - room;
        size = room;
    }
    memcpy(event.text + cut_len, why, size);
    to->tell(to->user, &event);
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* What differs and is not among those that may. */
static void tell_fixed(const struct pawli_again *to, const struct pawli_line *line,
                       const struct pawli_line *again)
{
    const struct pawli_option *options = line->command->options;
    for (size_t i = 0; options[i].name != NULL; i++) {
        const char *before = line->values[i] != NULL ? line->values[i] : "\n"; /* no value is so */
        const char *now = again->values[i] != NULL ? again->values[i] : "\n";
        if (!pawli_option_is_setting(&options[i]) || is_among(options[i].name, to->live) ||
            strcmp(before, now) == 0)
            continue;
        pawl_event event = {.kind = PAWL_EVENT_SETTINGS_FIXED, .level = PAWL_LEVEL_WARN};
        (void)snprintf(event.subject, sizeof(event.subject), "%s", /* it fits */
                       options[i].name + strlen("--"));
        to->tell(to->user, &event);
    }
}

void pawli_again_read(const struct pawli_line *line, const struct pawli_again *to)
{
    struct pawli_line again;
    struct pawli_settings settings;
    struct pawli_log log;
    pawl_err err;
    if (pawli_settings_again(line, &again, &settings) != EX_OK) {
        tell_refused(to, settings.why);
    } else {
        pawli_log_init(&log, &again);
        if (to->take(to->user, &again, log.level, &err) == PAWL_OK)
            tell_fixed(to, line, &again);
        else
            tell_refused(to, err.text);
    }
    pawli_settings_clear(&settings);
}
