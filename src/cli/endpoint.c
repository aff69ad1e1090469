/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.c - `pawl endpoint`: adding, changing, switching and removing endpoints of webhooks.
 * Owns:  what the words say of an endpoint; that a secret which was made here is shown once, when
 *        it is made, on standard output.
 * Never: shows a secret that was given, or the value of a header; takes a secret from a word, which
 *        others could see (ps); calls an address.
 */
#include "pawl/endpoint.h"

#include "cli/command.h"
#include "cli/endpoint_again.h"
#include "cli/endpoint_tell.h"
#include "cli/endpoint_test.h"
#include "cli/payload.h"
#include "cli/private.h"
#include "cli/store_url.h"
#include "cli/tell.h"
#include "cli/webhook_rules.h"
#include "pawl/headers.h"
#include "webhook/secret.h"
#include "webhook/status_set.h"
#include "webhook/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define OVERLAP_MS  (INT64_C(24) * 3600 * 1000)
#define FILE_LINE   8192
#define WHO_DEFAULT "nobody"

/* ---- what the words say */

/* What is said of an endpoint, with the texts that it was said in. */
struct said {
    pawl_endpoint_settings settings;
    struct pawli_target target;
    char headers[PAWL_ENDPOINT_HEADERS_LEN_MAX + 1];
    char statuses[PAWLI_STATUS_SET_SIZE];
};

static bool read_url(const struct pawli_line *line, struct said *said)
{
    struct pawli_webhook_rules rules;
    pawl_err err;
    const char *url = pawli_line_text(line, "--url");
    if (url == NULL)
        return true;
    if (!pawli_webhook_rules_read(line, &rules))
        return false;
    if (pawli_target_check(url, &rules.target, &said->target, &err) == PAWL_OK) {
        said->settings.url = said->target.url;
        return true;
    }
    (void)pawli_line_refuse(line, "--url: %s", err.text);
    return false;
}

static bool read_header_file(const struct pawli_line *line, const char *path, struct said *said)
{
    char text[FILE_LINE];
    bool is_good = true;
    FILE *file = fopen(path, "r");
    while (file != NULL && is_good && fgets(text, sizeof(text), file) != NULL) {
        text[strcspn(text, "\r\n")] = '\0';
        if (text[0] != '\0')
            is_good = pawli_header_add(line, "--headers-file", text, said->headers,
                                       sizeof(said->headers));
    }
    /* A part of it, or nothing, would take the place of the headers that there are. */
    if (file == NULL || ferror(file) != 0) {
        (void)pawli_line_refuse(line, "--headers-file: %s: %s", path, strerror(errno));
        is_good = false;
    }
    explicit_bzero(text, sizeof(text));
    if (file != NULL)
        (void)fclose(file); /* only read from */
    return is_good;
}

static bool read_headers(const struct pawli_line *line, struct said *said)
{
    const char *path = pawli_line_text(line, "--headers-file");
    bool is_good = path == NULL || read_header_file(line, path, said);
    for (size_t i = 0; i < line->repeats_count && is_good; i++)
        is_good = pawli_header_add(line, "--header", line->repeats[i], said->headers,
                                   sizeof(said->headers));
    if (path != NULL || line->repeats_count > 0)
        said->settings.headers = said->headers;
    return is_good;
}

static bool read_statuses(const struct pawli_line *line, struct said *said)
{
    struct pawli_status_set set;
    pawl_err err;
    const char *text = pawli_line_text(line, "--fail-statuses");
    if (text == NULL)
        return true;
    if (pawli_status_set_parse(text, &set, &err) == PAWL_OK) {
        said->settings.fail_statuses = pawli_status_set_format(&set, said->statuses);
        return true;
    }
    (void)pawli_line_refuse(line, "--fail-statuses: %s", err.text);
    return false;
}

/* The place of a choice in its list, from 1; 0: not given. */
static int choice_of(const struct pawli_line *line, const char *option)
{
    int64_t bits = pawli_line_number(line, option, 0);
    int place = 0;
    for (; bits != 0; bits >>= 1)
        place++;
    return place;
}

static bool read_said(const struct pawli_line *line, struct said *said)
{
    pawl_endpoint_settings *settings = &said->settings;
    pawl_endpoint_settings_init(settings);
    said->headers[0] = '\0';
    settings->topics = pawli_line_text(line, "--topics");
    settings->timeout_ms = pawli_line_number(line, "--timeout", PAWL_DEFAULT);
    settings->rate_per_minute = pawli_line_number(line, "--rate", PAWL_DEFAULT);
    settings->ordering = (pawl_endpoint_ordering)choice_of(line, "--ordering");
    settings->format = (pawl_endpoint_format)choice_of(line, "--format");
    settings->lease_ms = pawli_line_number(line, "--lease", PAWL_DEFAULT);
    settings->max_in_flight = pawli_line_number(line, "--max-in-flight", PAWL_DEFAULT);
    settings->max_retries = pawli_line_number(line, "--max-retries", PAWL_DEFAULT);
    settings->backoff_base_ms = pawli_line_number(line, "--backoff-base", PAWL_DEFAULT);
    settings->backoff_max_ms = pawli_line_number(line, "--backoff-max", PAWL_DEFAULT);
    return read_url(line, said) && read_headers(line, said) && read_statuses(line, said);
}

/* ---- secrets */

/* A secret as it goes to the store, and whether it was made here. */
struct made {
    char text[PAWLI_SECRET_TEXT_MAX];
    char public_key[PAWLI_SECRET_TEXT_MAX]; /* empty: it has none */
    bool is_ours;
};

static pawl_code read_secret_file(const char *path, char text[PAWLI_SECRET_TEXT_MAX], pawl_err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char line[PAWLI_SECRET_TEXT_MAX + 2] = ""; /* with its newline, and room for too much */
    bool is_read = file != NULL && fgets(line, sizeof(line), file) != NULL;
    if (file != NULL && file != stdin)
        (void)fclose(file); /* only read from */
    size_t len = strcspn(line, "\r\n");
    line[len] = '\0';
    if (is_read && len < PAWLI_SECRET_TEXT_MAX)
        memcpy(text, line, len + 1);
    explicit_bzero(line, sizeof(line));
    if (is_read && len < PAWLI_SECRET_TEXT_MAX)
        return PAWL_OK;
    *err = (pawl_err){.code = PAWL_INVALID};
    (void)snprintf(err->text, sizeof(err->text), "--secret-file: %.100s: %s", path,
                   !is_read ? "cannot be read, or is empty" : "its line is too long"); /* cut */
    return PAWL_INVALID;
}

/* Make a secret, or read the one that is given, and look whether it is one. */
static pawl_code make_secret(const struct pawli_line *line, struct made *made, pawl_err *err)
{
    const char *path = pawli_line_text(line, "--secret-file");
    struct pawli_secret secret = {.bytes_len = 0};
    pawl_code code = PAWL_OK;
    *made = (struct made){.is_ours = path == NULL};
    if (path == NULL) {
        pawli_secret_generate(pawli_line_has(line, "--key-pair") ? PAWLI_SECRET_ED25519
                                                                 : PAWLI_SECRET_HMAC,
                              pawl_random_system(), &secret);
        (void)pawli_secret_reveal(&secret, made->text);
    } else {
        code = read_secret_file(path, made->text, err);
        if (code == PAWL_OK)
            code = pawli_secret_parse(made->text, &secret, err);
    }
    if (code == PAWL_OK && secret.kind == PAWLI_SECRET_ED25519)
        code = pawli_secret_public(&secret, made->public_key, err);
    pawli_secret_wipe(&secret);
    return code;
}

static void tell_secret(const struct pawli_line *line, const struct made *made)
{
    const char *name = line->arguments[0];
    if (pawli_line_has(line, "--json")) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "name", name);
        if (made->is_ours)
            pawli_json_text(&json, "secret", made->text);
        if (made->public_key[0] != '\0')
            pawli_json_text(&json, "public_key", made->public_key);
        pawli_json_close(&json);
        return;
    }
    if (made->is_ours)
        (void)printf("%s\n", made->text); /* main asks for errors */
    if (made->public_key[0] != '\0')
        (void)printf("%s\n", made->public_key);
    if (made->is_ours)
        (void)fprintf(stderr, "This is the secret of endpoint %s. It is not shown again.\n", name);
}

/* ---- add, set, rotate */

static pawl_code add(const struct pawli_line *line, pawl_store *store, int *ret_exit, pawl_err *err)
{
    struct said said;
    struct made made;
    if (!read_said(line, &said)) {
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    pawl_code code = make_secret(line, &made, err);
    pawl_endpoint_add_args args = {
        .name = line->arguments[0], .secret = made.text, .settings = &said.settings};
    if (code == PAWL_OK)
        code = pawl_endpoint_add(store, &args, err);
    if (code == PAWL_OK)
        tell_secret(line, &made);
    explicit_bzero(&made, sizeof(made));
    explicit_bzero(&said, sizeof(said));
    return code;
}

static int run_add(const struct pawli_line *line)
{
    if (!pawli_line_has(line, "--url") || !pawli_line_has(line, "--topics"))
        return pawli_line_refuse(line, "--url and --topics are needed");
    if (pawli_line_has(line, "--secret-file") && pawli_line_has(line, "--key-pair"))
        return pawli_line_refuse(line, "--key-pair is about a secret that is made, and "
                                       "--secret-file gives one");
    pawli_cli_keep_private();
    return pawli_cli_with_store(line, add);
}

static pawl_code set(const struct pawli_line *line, pawl_store *store, int *ret_exit, pawl_err *err)
{
    struct said said;
    if (!read_said(line, &said)) {
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    pawl_code code = pawl_endpoint_set(store, line->arguments[0], &said.settings, err);
    explicit_bzero(&said, sizeof(said));
    return code == PAWL_OK ? pawli_endpoint_show(line, store, err) : code;
}

static int run_set(const struct pawli_line *line)
{
    pawli_cli_keep_private(); /* headers may be secret */
    return pawli_cli_with_store(line, set);
}

static pawl_code rotate(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                        pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    struct made made;
    pawl_code code = make_secret(line, &made, err);
    pawl_endpoint_rotate_args args = {
        .name = line->arguments[0],
        .secret = made.text,
        .overlap_ms = pawli_line_has(line, "--at-once")
                          ? 0
                          : pawli_line_number(line, "--overlap", OVERLAP_MS),
    };
    if (code == PAWL_OK)
        code = pawl_endpoint_rotate(store, &args, err);
    if (code == PAWL_OK)
        tell_secret(line, &made);
    explicit_bzero(&made, sizeof(made));
    return code;
}

static int run_rotate(const struct pawli_line *line)
{
    if (pawli_line_has(line, "--secret-file") && pawli_line_has(line, "--key-pair"))
        return pawli_line_refuse(line, "--key-pair is about a secret that is made, and "
                                       "--secret-file gives one");
    if (pawli_line_has(line, "--at-once") && pawli_line_has(line, "--overlap"))
        return pawli_line_refuse(line, "--at-once and --overlap contradict each other");
    pawli_cli_keep_private();
    return pawli_cli_with_store(line, rotate);
}

/* ---- disable, enable, remove */

/* Who is calling: user@host, of what may stand in a name. */
static void find_caller(char name[PAWL_NAME_MAX + 1])
{
    char host[64] = "";
    const char *user = getenv("USER");
    if (user == NULL || user[0] == '\0')
        user = WHO_DEFAULT;
    (void)gethostname(host, sizeof(host) - 1); /* without one, it stays empty */
    (void)snprintf(name, PAWL_NAME_MAX + 1, "%.60s@%s", user, host); /* it fits */
    for (char *at = name; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            *at = '_';
}

/* Enable, and send again what is asked for. */
static pawl_code enable(const struct pawli_line *line, pawl_store *store,
                        const pawl_endpoint_switch *args, pawl_err *err)
{
    pawl_endpoint before;
    pawl_replay_args missed;
    struct pawli_sent_again again = {0};
    pawl_code code = pawl_endpoint_get(store, args->name, &before, err);
    if (code == PAWL_OK)
        code = pawl_endpoint_enable(store, args, err);
    if (code == PAWL_OK && pawli_line_has(line, "--redrive"))
        code = pawli_endpoint_redrive(store, args->name, &again, err);
    pawl_replay_init(&missed);
    missed.name = args->name;
    missed.since = before.switched_at;
    if (code == PAWL_OK && pawli_line_has(line, "--missed"))
        code = pawli_endpoint_replay(store, &missed, &again, err);
    bool is_asked = pawli_line_has(line, "--redrive") || pawli_line_has(line, "--missed");
    if (code == PAWL_OK && is_asked && !pawli_line_has(line, "--json"))
        (void)printf("%" PRId64 " redriven, %" PRId64 " replayed\n", again.redriven,
                     again.replayed.jobs); /* main asks for errors */
    return code;
}

static pawl_code turn(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    char caller[PAWL_NAME_MAX + 1];
    find_caller(caller);
    pawl_endpoint_switch args = {.name = line->arguments[0],
                                 .by = pawli_line_text(line, "--by"),
                                 .reason = pawli_line_text(line, "--reason")};
    if (args.by == NULL)
        args.by = caller;
    pawl_code code = strcmp(pawli_command_word(line->command), "disable") == 0
                         ? pawl_endpoint_disable(store, &args, err)
                         : enable(line, store, &args, err);
    return code == PAWL_OK && pawli_line_has(line, "--json") ? pawli_endpoint_show(line, store, err)
                                                             : code;
}

static int run_turn(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, turn);
}

static pawl_code remove_endpoint(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                                 pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    pawl_code code = pawl_endpoint_remove(store, line->arguments[0], err);
    if (code != PAWL_OK || !pawli_line_has(line, "--json"))
        return code;
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_text(&json, "name", line->arguments[0]);
    pawli_json_bool(&json, "is_removed", true);
    pawli_json_close(&json);
    return PAWL_OK;
}

static int run_remove(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, remove_endpoint);
}

/* ---- the table */

static const char *const orderings[] = {"none", "key", NULL};
static const char *const formats[] = {"plain", "cloudevents-binary", "cloudevents-structured",
                                      NULL};

#define OPTION_SECRET_FILE                                                                         \
    {                                                                                              \
        "--secret-file", PAWLI_FILE, "FILE",                                                       \
            "a secret of your own, whsec_... or whsk_..., from a file; - is standard input", 0, 0, \
            NULL                                                                                   \
    }
#define OPTION_KEY_PAIR                                                                     \
    {                                                                                       \
        "--key-pair", PAWLI_FLAG, NULL,                                                     \
            "make a pair of Ed25519 keys (v1a) instead of a shared secret (v1)", 0, 0, NULL \
    }
/* What add and set have in common, in the order of the names, with gaps for the others. */
#define OPTIONS_TO_JSON                                                                          \
    {"--backoff-base",                                                                           \
     PAWLI_DURATION,                                                                             \
     "D",                                                                                        \
     "the first delay after a failed delivery (5s)",                                             \
     0,                                                                                          \
     0,                                                                                          \
     NULL},                                                                                      \
        {"--backoff-max", PAWLI_DURATION, "D", "the longest such delay (8h)", 0, 0, NULL},       \
        PAWLI_OPTION_CONFIG, {"--fail-statuses",                                                 \
                              PAWLI_TEXT,                                                        \
                              "LIST",                                                            \
                              "4xx that are not retried: 400,404-406 (none)",                    \
                              0,                                                                 \
                              0,                                                                 \
                              NULL},                                                             \
        {"--format", PAWLI_CHOICE, "FORMAT", "how a delivery looks (plain)", 0, 0, formats},     \
        {"--header",                                                                             \
         PAWLI_SECRET | PAWLI_REPEATED,                                                          \
         "HEADER",                                                                               \
         "sent with each delivery, 'name: value'; can be said again; others may see it (ps)",    \
         0,                                                                                      \
         0,                                                                                      \
         NULL},                                                                                  \
        {"--headers-file", PAWLI_FILE, "FILE", "the same from a file, a line each", 0, 0, NULL}, \
        PAWLI_OPTION_JSON
#define OPTIONS_TO_RATE                                                                     \
    {"--lease", PAWLI_DURATION, "D", "what a claim grants (2m)", 0, 0, NULL},               \
        {"--max-in-flight",                                                                 \
         PAWLI_NUMBER,                                                                      \
         "N",                                                                               \
         "deliveries in flight over all processes; 0: no bound (64)",                       \
         0,                                                                                 \
         PAWL_IN_FLIGHT_MAX,                                                                \
         NULL},                                                                             \
        {"--max-retries",  PAWLI_NUMBER, "N", "retries before an event has failed (20)", 0, \
         PAWL_RETRIES_MAX, NULL},                                                           \
        {"--ordering",                                                                      \
         PAWLI_CHOICE,                                                                      \
         "ORDERING",                                                                        \
         "key: events of one ordering key one at a time, in order (none)",                  \
         0,                                                                                 \
         0,                                                                                 \
         orderings},                                                                        \
    {                                                                                       \
        "--rate", PAWLI_NUMBER, "N", "deliveries per minute at most; 0: no bound (0)", 0,   \
            PAWL_ENDPOINT_RATE_MAX, NULL                                                    \
    }
#define OPTIONS_TO_THE_END                                                                        \
    PAWLI_OPTION_STORE, {"--timeout", PAWLI_DURATION, "D", "of one delivery (30s)", 0, 0, NULL},  \
        {"--topics",                                                                              \
         PAWLI_TEXT,                                                                              \
         "LIST",                                                                                  \
         "types of events: order.created, order.* for all below, or *; with commas between them", \
         0,                                                                                       \
         0,                                                                                       \
         NULL},                                                                                   \
        {"--url", PAWLI_SECRET, "URL", "where to; https unless --webhook-http", 0, 0, NULL},      \
        PAWLI_OPTION_WEBHOOK_ALLOW, PAWLI_OPTION_WEBHOOK_HTTP, PAWLI_OPTION_WEBHOOK_PORTS

static const struct pawli_option add_options[] = {
    OPTIONS_TO_JSON, OPTION_KEY_PAIR, OPTIONS_TO_RATE, OPTION_SECRET_FILE, OPTIONS_TO_THE_END, {0},
};
static const struct pawli_command add_command = {
    .name = "endpoint add",
    .is_store_made = true,
    .about = "add an endpoint, and show its secret, once",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = add_options,
    .details =
        "NAME has letters, digits, ., _ and -. The endpoint's queue is webhook/NAME. Without "
        "--secret-file a secret is made and printed: give it to whoever receives; it is not shown "
        "again. With --key-pair the second line is the public key, which is all that they need.",
    .examples = "pawl endpoint add crm --url https://crm.example/hooks --topics 'order.*'\n"
                "pawl endpoint add erp --url https://erp.example/in --topics '*' --ordering key\n",
    .run = run_add,
};

static const struct pawli_option set_options[] = {
    OPTIONS_TO_JSON,
    OPTIONS_TO_RATE,
    OPTIONS_TO_THE_END,
    {0},
};
static const struct pawli_command set_command = {
    .name = "endpoint set",
    .about = "change an endpoint's settings",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = set_options,
    .details = "Settings that are not named stay as they are; headers are replaced all at once. "
               "Jobs that wait keep the order that they have.",
    .examples = "pawl endpoint set crm --topics 'order.*,invoice.paid' --timeout 10s\n",
    .run = run_set,
};

static const struct pawli_option rotate_options[] = {
    {"--at-once", PAWLI_FLAG, NULL, "the secrets that it has sign no more", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    OPTION_KEY_PAIR,
    {"--overlap", PAWLI_DURATION, "D", "how long the secrets that it has sign beside it (24h)", 0,
     0, NULL},
    OPTION_SECRET_FILE,
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_command rotate_command = {
    .name = "endpoint rotate",
    .about = "give an endpoint another secret, and show it, once",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = rotate_options,
    .details = "Until the overlap is over each delivery is signed with all of them, the new one "
               "first, so that receivers can change over.",
    .examples = "pawl endpoint rotate crm --overlap 7d\npawl endpoint rotate crm --at-once\n",
    .run = run_rotate,
};

static const struct pawli_option turn_options[] = {
    {"--by", PAWLI_TEXT, "NAME", "who says so (default: user@host)", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--reason", PAWLI_TEXT, "TEXT", "why, for the record", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_option enable_options[] = {
    {"--by", PAWLI_TEXT, "NAME", "who says so (default: user@host)", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--missed", PAWLI_FLAG, NULL, "replay what was published since it was disabled", 0, 0, NULL},
    {"--reason", PAWLI_TEXT, "TEXT", "why, for the record", 0, 0, NULL},
    {"--redrive", PAWLI_FLAG, NULL, "put its Failed jobs back to Ready", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_command disable_command = {
    .name = "endpoint disable",
    .about = "stop publishing and delivering to an endpoint",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = turn_options,
    .details = "Events that are published from now on are not for it; what waits in its queue "
               "stays there, and is not claimed. Where it is disabled already nothing changes.",
    .examples = "pawl endpoint disable crm --reason 'moving house'\n",
    .run = run_turn,
};
static const struct pawli_command enable_command = {
    .name = "endpoint enable",
    .about = "let an endpoint have events again",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = enable_options,
    .details = "What waits in its queue is delivered. What has failed, and what was published "
               "meanwhile, comes where it is asked for.",
    .examples = "pawl endpoint enable crm\npawl endpoint enable crm --redrive --missed\n",
    .run = run_turn,
};

static const struct pawli_option remove_options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_command remove_command = {
    .name = "endpoint remove",
    .about = "remove an endpoint and its secrets",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = remove_options,
    .details = "Refused while jobs wait in its queue or are being delivered: disable it, and "
               "cancel them or let them end. The history of its jobs stays as long as it is kept.",
    .examples = "pawl endpoint disable crm\npawl cancel --queue webhook/crm\n"
                "pawl endpoint remove crm\n",
    .run = run_remove,
};

static const struct pawli_command *const actions[] = {
    &add_command,
    &disable_command,
    &enable_command,
    &pawli_endpoint_list_command,
    &remove_command,
    &pawli_command_endpoint_replay,
    &rotate_command,
    &set_command,
    &pawli_endpoint_show_command,
    &pawli_command_endpoint_test,
    NULL,
};
const struct pawli_command pawli_command_endpoint = {
    .name = "endpoint",
    .about = "add, list, change, switch and remove endpoints of webhooks",
    .actions = actions,
    .usual = &pawli_endpoint_list_command,
    .details = "Without an action it lists. Which addresses may be called is looked at when a URL "
               "is set, and again at each delivery: public ones on ports 80 and 443 by https, and "
               "what the settings webhook-allow, webhook-ports and webhook-http add.",
    .examples = "pawl endpoint\npawl endpoint show crm\n",
};
