/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_again.c - `pawl endpoint replay`, and what `pawl endpoint enable` sends again.
 * Owns:  that a lost answer is asked for again under the same name; the form of the output.
 * Never: shows a payload; sends anything: `pawl deliver` does.
 */
#include "cli/endpoint_again.h"

#include "cli/command.h"
#include "cli/store_url.h"
#include "cli/tell.h"
#include "core/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BATCH     1000
#define TRIES_MAX 5 /* where the answer is lost again and again */

pawl_code pawli_endpoint_redrive(pawl_store *store, const char *name,
                                 struct pawli_sent_again *again, pawl_err *err)
{
    char queue[PAWL_NAME_MAX + 1];
    size_t count = BATCH;
    pawl_code code = PAWL_OK;
    const pawl_filter filter = {.queue = pawli_endpoint_queue(name, queue)};
    while (code == PAWL_OK && count == BATCH) {
        code = pawl_redrive_where(store, &filter, BATCH, &count, err);
        if (code == PAWL_OK)
            again->redriven += (int64_t)count;
    }
    return code;
}

pawl_code pawli_endpoint_replay(pawl_store *store, const pawl_replay_args *args,
                                struct pawli_sent_again *again, pawl_err *err)
{
    pawl_replay_args page = *args;
    pawl_replayed done = {.is_more = true};
    pawl_code code = PAWL_OK;
    int tries = 0;
    while (done.is_more) {
        code = pawl_endpoint_replay(store, &page, &done, err);
        if (code == PAWL_UNKNOWN && ++tries < TRIES_MAX)
            continue; /* under the same name nothing comes twice */
        if (code != PAWL_OK)
            return code;
        tries = 0;
        again->replayed.events += done.events;
        again->replayed.jobs += done.jobs;
        page.after = done.next;
    }
    return code;
}

/* ---- replay */

/* An instant that is so long ago, by the store's clock; 0 where the option is not there. */
static pawl_code ago(const struct pawli_line *line, const char *option, pawl_store *store,
                     pawl_wall *ret_at, pawl_err *err)
{
    *ret_at = (pawl_wall){0};
    if (!pawli_line_has(line, option))
        return PAWL_OK;
    pawl_wall now;
    pawl_code code = pawl_now(store, &now, err);
    if (code == PAWL_OK)
        ret_at->us = now.us - pawli_line_number(line, option, 0) * 1000;
    return code;
}

/* A name that no replay had. */
static pawl_code make_name(pawl_store *store, char text[PAWL_ID_TEXT_MAX], pawl_err *err)
{
    pawl_enqueue_row row;
    pawl_id id;
    pawl_enqueue_init(&row);
    row.queue = "webhook";
    pawl_code code = pawl_id_new(store, &row, &id, err);
    if (code == PAWL_OK)
        (void)pawl_id_format(&id, text);
    return code;
}

static void tell(const struct pawli_line *line, const pawl_replay_args *args,
                 const pawl_replayed *done)
{
    struct pawli_json json;
    if (!pawli_line_has(line, "--json")) {
        (void)printf("%" PRId64 " events, %" PRId64 " to be delivered\n", done->events, done->jobs);
        return; /* main asks for errors */
    }
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_number(&json, "events", done->events);
    pawli_json_number(&json, "jobs", done->jobs);
    if (args->as != NULL)
        pawli_json_text(&json, "as", args->as);
    pawli_json_close(&json);
}

static pawl_code replay(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                        pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    char made[PAWL_ID_TEXT_MAX];
    struct pawli_sent_again again = {0};
    pawl_replay_args args;
    pawl_replay_init(&args);
    args.name = line->arguments[0];
    args.event = pawli_line_text(line, "--event");
    args.as = pawli_line_text(line, "--as");
    pawl_code code = ago(line, "--since", store, &args.since, err);
    if (code == PAWL_OK)
        code = ago(line, "--until", store, &args.until, err);
    if (code == PAWL_OK && args.as == NULL && !pawli_line_has(line, "--missed")) {
        code = make_name(store, made, err);
        args.as = made;
    }
    if (code == PAWL_OK)
        code = pawli_endpoint_replay(store, &args, &again, err);
    if (code == PAWL_OK)
        tell(line, &args, &again.replayed);
    else if (again.replayed.jobs > 0 && args.as != NULL)
        (void)fprintf(stderr,
                      "pawl endpoint replay: %" PRId64 " are to be delivered; go on by --as %s\n",
                      again.replayed.jobs, args.as);
    return code;
}

static int run_replay(const struct pawli_line *line)
{
    if (pawli_line_has(line, "--event") == pawli_line_has(line, "--since"))
        return pawli_line_refuse(line, "say --event, or --since, and not both");
    if (pawli_line_has(line, "--until") && !pawli_line_has(line, "--since"))
        return pawli_line_refuse(line, "--until goes with --since");
    if (pawli_line_has(line, "--as") && pawli_line_has(line, "--missed"))
        return pawli_line_refuse(line, "--as and --missed contradict each other");
    return pawli_cli_with_store(line, replay);
}

static const struct pawli_option options[] = {
    {"--as", PAWLI_TEXT, "REPLAY",
     "the name of this replay: each event comes once for each name (default: a new one)", 0, 0,
     NULL},
    PAWLI_OPTION_CONFIG,
    {"--event", PAWLI_TEXT, "ID", "one event, whether its type is wanted or not", 0, 0, NULL},
    PAWLI_OPTION_JSON,
    {"--missed", PAWLI_FLAG, NULL, "only what has never come to the endpoint", 0, 0, NULL},
    {"--since", PAWLI_DURATION, "D", "events published so long ago, or later", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {"--until", PAWLI_DURATION, "D", "and longer ago than this (0s)", 0, 0, NULL},
    {0},
};
const struct pawli_command pawli_command_endpoint_replay = {
    .name = "endpoint replay",
    .about = "deliver events again to one endpoint",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = options,
    .details = "One event by its id, or those of a range of time whose types the endpoint wants, "
               "as long as they are kept (a week, unless the publisher said otherwise): with the "
               "same webhook-id and the same body, byte for byte, and a signature of its own. Made "
               "in batches; where it was interrupted, say the same again with the name that it "
               "told.",
    .examples = "pawl endpoint replay crm --event evt_17\n"
                "pawl endpoint replay crm --since 2h --until 30m --as after-outage\n"
                "pawl endpoint replay crm --since 7d --missed\n",
    .run = run_replay,
};
