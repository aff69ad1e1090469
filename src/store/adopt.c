/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt.c - what a mapping of an old outbox may say.
 * Owns:  the keys of a mapping, and which of them are needed.
 * Never: looks into a database: whether a table or a column is there is the SQL functions' to say.
 */
#include "store/adopt.h"

#include "base/error.h"
#include "base/text.h"
#include "core/policy.h"

#include <stdlib.h>
#include <string.h>

#define LOCK_TIMEOUT_MS 5000
#define TIMEOUT_MS      3600000
#define IDENTIFIER_MAX  63 /* of a name in PostgreSQL */

static const pawl_adopt_key keys[] = {
    {"queue", true},
    {PAWLI_ADOPT_STALE_AFTER, true},
    {"failed_without_payload", false},
    {"pending.schema", true},
    {"pending.table", true},
    {"pending.id", true},
    {"pending.payload", true},
    {"pending.due_at", false},
    {"pending.created_at", false},
    {"attempts.schema", true},
    {"attempts.table", true},
    {"attempts.id", true},
    {"attempts.number", true},
    {"attempts.state", true},
    {"attempts.at", true},
    {"attempts.finished_at", false},
    {"attempts.worker", false},
    {"attempts.error_code", false},
    {"attempts.error_text", false},
    {"claimed_payload.payload", false},
    {"claimed_payload.schema", false},
    {"claimed_payload.table", false},
    {"claimed_payload.key", false},
    {"claimed_payload.match", false},
    {"states.dispatching", false},
    {"states.dispatched", false},
    {"states.retryable", false},
    {"states.failed", false},
    {"states.zombie_requeue", false},
};
#define KEYS_COUNT (sizeof(keys) / sizeof(keys[0]))

const pawl_adopt_key *pawl_adopt_keys(size_t *ret_count)
{
    if (ret_count != NULL)
        *ret_count = KEYS_COUNT;
    return keys;
}

void pawl_adopt_options_init(pawl_adopt_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_adopt_options){.lock_timeout_ms = LOCK_TIMEOUT_MS, .timeout_ms = TIMEOUT_MS};
}

void pawl_adopt_report_clear(pawl_adopt_report *report)
{
    if (report == NULL)
        return;
    free(report->classes);
    free(report->ids);
    *report = (pawl_adopt_report){0};
}

static const char *find(const pawl_adopt_options *options, const char *key)
{
    for (size_t i = 0; i < options->mapping_count; i++)
        if (strcmp(options->mapping[i].key, key) == 0)
            return options->mapping[i].value;
    return NULL;
}

static pawl_code check_entry(const pawl_adopt_options *options, size_t at, pawl_err *err)
{
    const pawl_adopt_entry *entry = &options->mapping[at];
    size_t key = 0;
    if (entry->key == NULL || entry->value == NULL)
        return pawli_fail(err, PAWL_INVALID, "mapping[%zu]: key or value is missing (NULL)", at);
    while (key < KEYS_COUNT && strcmp(keys[key].name, entry->key) != 0)
        key++;
    if (key == KEYS_COUNT)
        return pawli_fail(err, PAWL_INVALID, "%.80s is not a key of the mapping", entry->key);
    for (size_t i = 0; i < at; i++)
        if (strcmp(options->mapping[i].key, entry->key) == 0)
            return pawli_fail(err, PAWL_INVALID, "%s stands in the mapping twice", entry->key);
    size_t length = pawli_text_length(entry->value, IDENTIFIER_MAX);
    /* The queue's own check allows more, and says so. */
    if (strcmp(entry->key, "queue") != 0 && (length == 0 || length > IDENTIFIER_MAX))
        return pawli_fail(err, PAWL_INVALID, "%s is %s; it must have 1 to %d bytes", entry->key,
                          length == 0 ? "empty" : "too long", IDENTIFIER_MAX);
    if (pawli_text_good(entry->value, "") != strlen(entry->value))
        return pawli_fail(err, PAWL_INVALID,
                          "%s is not UTF-8 without control characters, as it must be", entry->key);
    return PAWL_OK;
}

/* Keys that are needed only because of others. */
static pawl_code check_together(const pawl_adopt_options *options, pawl_err *err)
{
    static const char *const place[] = {"claimed_payload.schema", "claimed_payload.table",
                                        "claimed_payload.key", "claimed_payload.match"};
    const char *given = NULL;
    for (size_t i = 0; i < sizeof(place) / sizeof(place[0]) && given == NULL; i++)
        if (find(options, place[i]) != NULL)
            given = place[i];
    if (given == NULL)
        return PAWL_OK;
    static const char *const needed[] = {"claimed_payload.schema", "claimed_payload.table",
                                         "claimed_payload.key", "claimed_payload.payload"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (find(options, needed[i]) == NULL)
            return pawli_fail(err, PAWL_INVALID, "%s is missing; %s needs it", needed[i], given);
    return PAWL_OK;
}

static pawl_code check_values(const pawl_adopt_options *options, int64_t *ret_stale_after_ms,
                              pawl_err *err)
{
    pawl_err inner;
    pawl_code rc = pawli_check_name("queue", find(options, "queue"), err);
    if (rc != PAWL_OK)
        return rc;
    const char *discard = find(options, "failed_without_payload");
    if (discard != NULL && strcmp(discard, "refuse") != 0 && strcmp(discard, "discard") != 0)
        return pawli_fail(err, PAWL_INVALID,
                          "failed_without_payload is \"%.40s\"; it must be refuse or discard",
                          discard);
    if (pawl_duration_parse(find(options, PAWLI_ADOPT_STALE_AFTER), ret_stale_after_ms, &inner) !=
        PAWL_OK)
        return pawli_fail(err, PAWL_INVALID, PAWLI_ADOPT_STALE_AFTER ": %s", inner.text);
    return PAWL_OK;
}

pawl_code pawli_adopt_check(const pawl_adopt_options *options, int64_t *ret_stale_after_ms,
                            pawl_err *err)
{
    if (options == NULL)
        return pawli_fail(err, PAWL_INVALID, "options is missing (NULL)");
    if (options->mapping == NULL && options->mapping_count > 0)
        return pawli_fail(err, PAWL_INVALID, "mapping is missing (NULL)");
    pawl_code rc = pawli_check_duration("lock_timeout_ms", options->lock_timeout_ms, 1, err);
    if (rc == PAWL_OK)
        rc = pawli_check_duration("timeout_ms", options->timeout_ms, 1, err);
    for (size_t i = 0; rc == PAWL_OK && i < options->mapping_count; i++)
        rc = check_entry(options, i, err);
    for (size_t i = 0; rc == PAWL_OK && i < KEYS_COUNT; i++)
        if (keys[i].is_needed && find(options, keys[i].name) == NULL)
            rc = pawli_fail(err, PAWL_INVALID, "%s is missing in the mapping", keys[i].name);
    if (rc == PAWL_OK)
        rc = check_together(options, err);
    if (rc == PAWL_OK)
        rc = check_values(options, ret_stale_after_ms, err);
    return rc;
}
