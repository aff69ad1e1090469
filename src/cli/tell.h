/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tell.h - how commands tell what stores answer: times, jobs, ids and verdicts, in text and JSON.
 */
#ifndef PAWLI_CLI_TELL_H
#define PAWLI_CLI_TELL_H

#include "cli/json.h"
#include "cli/options.h"
#include "pawl/pawl.h"

#define PAWLI_TIME_TEXT_MAX 40

/* "2026-01-02T03:04:05.678Z", or "-" for none. Gives `text`. */
const char *pawli_time_text(pawl_wall at, char text[PAWLI_TIME_TEXT_MAX]);

/* A member with an instant or an id; none where there is none. */
void pawli_json_time(struct pawli_json *json, const char *key, pawl_wall at);
void pawli_json_id(struct pawli_json *json, const char *key, const pawl_id *id);

/* Text as it may stand in a column on a terminal: `-` where it is empty. */
const char *pawli_column(const char *text);

/*
 * How far a long work is, on standard error where that is a terminal; some times a second at most.
 * Where the work also prints row by row, and the rows go to a terminal, these are enough.
 */
struct pawli_progress {
    const char *what; /* "enqueued"; NULL: is not shown */
    int64_t shown_us; /* when it was last shown; 0: not yet, or it was taken away */
};
void pawli_progress_begin(struct pawli_progress *progress, const char *what, bool has_rows);
void pawli_progress_show(struct pawli_progress *progress, int64_t count);
void pawli_progress_end(struct pawli_progress *progress); /* take it away again */

/* The names of states and reasons as options take them, by their numbers; ended by NULL. */
extern const char *const pawli_state_words[];
extern const char *const pawli_reason_words[];

/* Options that choose jobs, and what they come to. */
#define PAWLI_OPTION_REASON                                                                        \
    {                                                                                              \
        "--reason", PAWLI_CHOICE, "REASON", "only those whose last attempt ended for this reason", \
            0, 0, pawli_reason_words                                                               \
    }
#define PAWLI_OPTION_STATE                                                                \
    {                                                                                     \
        "--state", PAWLI_CHOICES, "STATE,...", "only those in one of these states", 0, 0, \
            pawli_state_words                                                             \
    }
pawl_filter pawli_line_filter(const struct pawli_line *line);

#endif
