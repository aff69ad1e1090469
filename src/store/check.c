/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check.c - the checks of arguments, once for all stores.
 * Owns:  what is a valid row, filter or page; the texts of the refusals.
 * Never: changes what it checks; looks into a payload; shows a header's value; asks a store
 *        anything; quotes a text that it has not found to be printable.
 */
#include "store/check.h"

#include "base/error.h"
#include "base/text.h"
#include "core/headers.h"
#include "core/id.h"
#include "core/policy.h"

#include <assert.h>

/* ---- single values */

pawl_code pawli_check_given(const char *field, const void *pointer, pawl_err *err)
{
    assert(field != NULL);
    return pointer != NULL ? PAWL_OK : pawli_fail(err, PAWL_INVALID, "%s is missing (NULL)", field);
}

pawl_code pawli_check_id(const char *field, const pawl_id *id, pawl_err *err)
{
    pawl_code rc = pawli_check_given(field, id, err);
    if (rc == PAWL_OK && pawl_id_is_nil(id))
        rc = pawli_fail(err, PAWL_INVALID, "%s is nil; it must name a job", field);
    return rc;
}

pawl_code pawli_check_batch(const char *field, size_t count, pawl_err *err)
{
    assert(field != NULL);
    if (count >= 1 && count <= PAWL_BATCH_MAX)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "%s is %zu; it must be from 1 to %d", field, count,
                      PAWL_BATCH_MAX);
}

pawl_code pawli_check_page(const struct pawli_page *page, pawl_err *err)
{
    bool is_jobs = page->of == PAWLI_PAGE_OF_JOBS;
    pawl_code rc = pawli_check_given(is_jobs ? "ret_jobs" : "ret_rows", page->ret_rows, err);
    if (rc == PAWL_OK)
        rc = pawli_check_batch(is_jobs ? "jobs_max" : "rows_max", page->rows_max, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_count", page->ret_count, err);
    return rc;
}

/* A duration that may be left to the settings. */
static pawl_code check_optional_ms(const char *field, int64_t ms, int64_t min_ms, pawl_err *err)
{
    return ms == PAWL_DEFAULT ? PAWL_OK : pawli_check_duration(field, ms, min_ms, err);
}

/* What a text may be. */
struct text_rule {
    size_t max;           /* bytes */
    const char *controls; /* the control characters allowed */
};

static const struct text_rule key_rule = {PAWL_DEDUPE_KEY_MAX, ""};
static const struct text_rule ordering_key_rule = {PAWL_ORDERING_KEY_MAX, ""};
static const struct text_rule queues_rule = {PAWL_QUEUES_TEXT_MAX, ""};
static const struct text_rule error_code_rule = {PAWL_ERROR_CODE_MAX, ""};
static const struct text_rule error_text_rule = {PAWL_ERROR_TEXT_MAX, "\t\n"};

/* NULL is no text. */
static pawl_code check_text(const char *field, const char *text, const struct text_rule *rule,
                            pawl_err *err)
{
    if (text == NULL)
        return PAWL_OK;
    if (pawli_text_length(text, rule->max) > rule->max)
        return pawli_fail(err, PAWL_INVALID, "%s is longer than %zu bytes", field, rule->max);
    size_t good = pawli_text_good(text, rule->controls);
    if (text[good] == '\0')
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "%s is bad after %zu bytes (0x%02x); it must be UTF-8 without control "
                      "characters%s",
                      field, good, (unsigned)(unsigned char)text[good],
                      rule->controls[0] != '\0' ? " except tab and newline" : "");
}

/* Say in which row of a batch the fault is. `inner` tells the rest. */
static pawl_code fail_row(pawl_err *err, size_t row, const pawl_err *inner)
{
    return pawli_fail(err, PAWL_INVALID, "row %zu: %s", row, inner->text);
}

/* ---- enqueue */

pawl_code pawli_check_enqueue_key(const pawl_enqueue_row *row, pawl_err *err)
{
    pawl_code rc = pawli_check_name("queue", row->queue, err);
    if (rc == PAWL_OK && row->dedupe_key != NULL && row->dedupe_key[0] == '\0')
        rc = pawli_fail(err, PAWL_INVALID, "dedupe_key is empty; it must have 1 to %d bytes",
                        PAWL_DEDUPE_KEY_MAX);
    if (rc == PAWL_OK)
        rc = check_text("dedupe_key", row->dedupe_key, &key_rule, err);
    if (rc == PAWL_OK)
        rc = check_text("ordering_key", row->ordering_key, &ordering_key_rule, err);
    return rc;
}

static pawl_code check_payload(const struct pawli_store_limits *limits, const pawl_enqueue_row *row,
                               pawl_err *err)
{
    if (row->payload == NULL && row->payload_len > 0)
        return pawli_fail(err, PAWL_INVALID, "payload is missing (NULL), but payload_len is %zu",
                          row->payload_len);
    if (row->payload_len > (uint64_t)limits->payload_max)
        return pawli_fail(err, PAWL_INVALID, "payload_len is %zu; the largest allowed is %lld",
                          row->payload_len, (long long)limits->payload_max);
    return PAWL_OK;
}

/* An id of the caller's own making must name the shard that the job belongs to. */
static pawl_code check_own_id(const struct pawli_store_limits *limits, const pawl_enqueue_row *row,
                              pawl_err *err)
{
    if (pawl_id_is_nil(&row->id))
        return PAWL_OK;
    struct pawli_shard_key key = pawli_shard_key_of(row);
    int64_t named = pawli_id_shard(&row->id, limits->shards);
    int64_t right = pawli_shard_of(&key, &row->id, limits->shards);
    if (named == right)
        return PAWL_OK;
    char text[PAWL_ID_TEXT_MAX];
    return pawli_fail(err, PAWL_INVALID,
                      "id %s names shard %lld, and its job belongs to shard %lld; make it with "
                      "pawl_id_new()",
                      pawl_id_format(&row->id, text), (long long)named, (long long)right);
}

static pawl_code check_enqueue_times(const pawl_enqueue_row *row, pawl_err *err)
{
    pawl_code rc = pawli_check_duration("delay_ms", row->delay_ms, 0, err);
    if (rc == PAWL_OK)
        rc = check_optional_ms("start_within_ms", row->start_within_ms, 1, err);
    if (rc == PAWL_OK && row->start_within_ms != PAWL_DEFAULT &&
        row->start_within_ms <= row->delay_ms)
        rc = pawli_fail(err, PAWL_INVALID,
                        "start_within_ms is %lld and delay_ms is %lld; it must be above that, or "
                        "the job could never start",
                        (long long)row->start_within_ms, (long long)row->delay_ms);
    if (rc == PAWL_OK)
        rc = check_optional_ms("timeout_ms", row->timeout_ms, 1, err);
    if (rc == PAWL_OK)
        rc = check_optional_ms("backoff_base_ms", row->backoff_base_ms, 1, err);
    if (rc == PAWL_OK)
        rc = check_optional_ms("backoff_max_ms", row->backoff_max_ms, 1, err);
    return rc;
}

static pawl_code check_enqueue_row(const struct pawli_store_limits *limits,
                                   const pawl_enqueue_row *row, pawl_err *err)
{
    pawl_code rc = pawli_check_enqueue_key(row, err);
    if (rc == PAWL_OK)
        rc = check_payload(limits, row, err);
    if (rc == PAWL_OK)
        rc = pawli_headers_check(row->headers, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("priority", row->priority,
                               (struct pawli_range){PAWL_PRIORITY_URGENT, PAWL_PRIORITY_LAST}, err);
    if (rc == PAWL_OK && row->max_retries != PAWL_DEFAULT)
        rc = pawli_check_range("max_retries", row->max_retries,
                               (struct pawli_range){0, PAWL_RETRIES_MAX}, err);
    if (rc == PAWL_OK)
        rc = check_enqueue_times(row, err);
    if (rc == PAWL_OK)
        rc = check_own_id(limits, row, err);
    return rc;
}

pawl_code pawli_check_enqueue(const struct pawli_store_limits *limits, const pawl_enqueue_row *rows,
                              size_t rows_count, pawl_err *err)
{
    pawl_err inner;
    for (size_t i = 0; i < rows_count; i++)
        if (check_enqueue_row(limits, &rows[i], &inner) != PAWL_OK)
            return fail_row(err, i, &inner);
    return PAWL_OK;
}

/* ---- claim */

static pawl_code check_line(const pawl_claim_line *line, pawl_err *err)
{
    pawl_code rc = pawli_check_name("queue", line->queue, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("jobs_max", line->jobs_max, (struct pawli_range){1, INT64_MAX}, err);
    if (rc == PAWL_OK)
        rc = check_optional_ms("lease_ms", line->lease_ms, PAWL_LEASE_MIN_MS, err);
    return rc;
}

pawl_code pawli_check_claim(const pawl_claim_args *args, pawl_err *err)
{
    pawl_err inner;
    pawl_code rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("worker", args->worker, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("lines", args->lines, err);
    if (rc == PAWL_OK && (args->lines_count < 1 || args->lines_count > PAWL_LINES_MAX))
        rc = pawli_fail(err, PAWL_INVALID, "lines_count is %zu; it must be from 1 to %d",
                        args->lines_count, PAWL_LINES_MAX);
    if (rc == PAWL_OK && args->bytes_max != PAWL_DEFAULT)
        rc = pawli_check_range("bytes_max", args->bytes_max, (struct pawli_range){1, INT64_MAX},
                               err);
    for (size_t i = 0; rc == PAWL_OK && i < args->lines_count; i++)
        if (check_line(&args->lines[i], &inner) != PAWL_OK)
            rc = pawli_fail(err, PAWL_INVALID, "line %zu: %s", i, inner.text);
    return rc;
}

/* ---- what holders say */

/* Token and version are not arguments to be right or wrong: the store gives the verdict on them. */
pawl_code pawli_check_renew(const pawl_renew_row *rows, size_t rows_count, pawl_err *err)
{
    pawl_err inner;
    for (size_t i = 0; i < rows_count; i++) {
        pawl_code rc = pawli_check_id("lease.job", &rows[i].lease.job, &inner);
        if (rc == PAWL_OK)
            rc = check_optional_ms("lease_ms", rows[i].lease_ms, PAWL_LEASE_MIN_MS, &inner);
        if (rc != PAWL_OK)
            return fail_row(err, i, &inner);
    }
    return PAWL_OK;
}

/* The one reason besides NONE that an action may give; NONE where there is no other. */
static pawl_reason other_reason(pawl_settle_action action)
{
    switch (action) {
    case PAWL_RETRY:
        return PAWL_REASON_TIMEOUT;
    case PAWL_FAIL:
        return PAWL_REASON_CANCELLED;
    case PAWL_SNOOZE:
        return PAWL_REASON_SHUTDOWN;
    case PAWL_SUCCEED:
        break;
    }
    return PAWL_REASON_NONE;
}

static pawl_code check_settle_row(const pawl_settle_row *row, pawl_err *err)
{
    pawl_code rc = pawli_check_id("lease.job", &row->lease.job, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("action", (int64_t)row->action,
                               (struct pawli_range){PAWL_SUCCEED, PAWL_SNOOZE}, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_reason other = other_reason(row->action);
    if (row->reason != PAWL_REASON_NONE && row->reason != other)
        return pawli_fail(err, PAWL_INVALID, "reason is %d (%s); with this action it must be %s%s",
                          (int)row->reason, pawl_reason_name(row->reason),
                          other != PAWL_REASON_NONE ? "none or " : "", pawl_reason_name(other));
    if (row->action == PAWL_RETRY)
        rc = check_optional_ms("delay_ms", row->delay_ms, 0, err);
    else if (row->action == PAWL_SNOOZE)
        rc = pawli_check_duration("delay_ms", row->delay_ms, 0, err);
    if (rc == PAWL_OK)
        rc = check_text("error_code", row->error_code, &error_code_rule, err);
    if (rc == PAWL_OK)
        rc = check_text("error_text", row->error_text, &error_text_rule, err);
    if (rc == PAWL_OK && row->wire_sends != PAWL_SENDS_UNKNOWN)
        rc = pawli_check_range("wire_sends", row->wire_sends,
                               (struct pawli_range){0, PAWL_SENDS_MAX}, err);
    return rc;
}

pawl_code pawli_check_settle(const pawl_settle_row *rows, size_t rows_count, pawl_err *err)
{
    pawl_err inner;
    for (size_t i = 0; i < rows_count; i++)
        if (check_settle_row(&rows[i], &inner) != PAWL_OK)
            return fail_row(err, i, &inner);
    return PAWL_OK;
}

pawl_code pawli_check_release(const pawl_lease *leases, size_t leases_count, pawl_err *err)
{
    pawl_err inner;
    for (size_t i = 0; i < leases_count; i++)
        if (pawli_check_id("job", &leases[i].job, &inner) != PAWL_OK)
            return fail_row(err, i, &inner);
    return PAWL_OK;
}

pawl_code pawli_check_ids(const pawl_id *ids, size_t ids_count, pawl_err *err)
{
    pawl_err inner;
    for (size_t i = 0; i < ids_count; i++)
        if (pawli_check_id("id", &ids[i], &inner) != PAWL_OK)
            return fail_row(err, i, &inner);
    return PAWL_OK;
}

/* ---- what operators say */

#define STATES_ALL \
    (1u << PAWL_READY | 1u << PAWL_IN_FLIGHT | 1u << PAWL_SUCCEEDED | 1u << PAWL_FAILED)

static pawl_code check_filter_key(const pawl_filter *filter, pawl_err *err)
{
    if (filter->ordering_key[0] == '\0')
        return pawli_fail(err, PAWL_INVALID, "ordering_key is empty; it must have 1 to %d bytes",
                          PAWL_ORDERING_KEY_MAX);
    if (filter->queue == NULL)
        return pawli_fail(err, PAWL_INVALID,
                          "ordering_key is given, and queue is missing (NULL): a key is one within "
                          "its queue");
    return check_text("ordering_key", filter->ordering_key, &ordering_key_rule, err);
}

pawl_code pawli_check_filter(const pawl_filter *filter, pawl_err *err)
{
    if (filter == NULL)
        return PAWL_OK;
    pawl_code rc = PAWL_OK;
    if (filter->queue != NULL)
        rc = pawli_check_name("queue", filter->queue, err);
    if (rc == PAWL_OK && filter->worker != NULL)
        rc = pawli_check_name("worker", filter->worker, err);
    if (rc == PAWL_OK && (filter->states & ~STATES_ALL) != 0)
        rc = pawli_fail(err, PAWL_INVALID, "states is 0x%x; only the bits of 0x%x are states",
                        filter->states, STATES_ALL);
    if (rc == PAWL_OK)
        rc = pawli_check_range("reason", (int64_t)filter->reason,
                               (struct pawli_range){PAWL_REASON_NONE, PAWL_REASON_START_BY}, err);
    if (rc == PAWL_OK && filter->ordering_key != NULL)
        rc = check_filter_key(filter, err);
    return rc;
}

pawl_code pawli_check_where(const pawl_filter *filter, unsigned states, pawl_err *err)
{
    pawl_code rc = pawli_check_given("filter", filter, err);
    if (rc == PAWL_OK)
        rc = pawli_check_filter(filter, err);
    if (rc == PAWL_OK && filter->states != 0 && (filter->states & states) == 0)
        rc = pawli_fail(err, PAWL_INVALID,
                        "states is 0x%x; this verb changes only jobs in the states 0x%x",
                        filter->states, states);
    return rc;
}

pawl_code pawli_check_queue_set(const struct pawli_store_limits *limits,
                                const pawl_queue_settings *settings, pawl_err *err)
{
    pawl_code rc = pawl_queue_settings_check(settings, err);
    if (rc != PAWL_OK || settings->max_in_flight == 0)
        return rc;
    /* A shard without a share could never give a job out. */
    if (settings->max_in_flight < limits->shards)
        return pawli_fail(err, PAWL_INVALID,
                          "max_in_flight is %lld, and the store has %lld shards, each with a share "
                          "of it; it must be 0 (no bound) or from %lld to %d",
                          (long long)settings->max_in_flight, (long long)limits->shards,
                          (long long)limits->shards, PAWL_IN_FLIGHT_MAX);
    return PAWL_OK;
}

pawl_code pawli_check_worker_seen(const pawl_worker_seen *args, pawl_err *err)
{
    pawl_code rc = pawli_check_given("args", args, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("name", args->name, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("kind", (int64_t)args->kind,
                               (struct pawli_range){PAWL_KIND_WORKER, PAWL_KIND_REAPER}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("host", args->host, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("version", args->version, err);
    if (rc == PAWL_OK)
        rc = check_text("queues", args->queues, &queues_rule, err);
    return rc;
}
