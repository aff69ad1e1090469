/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_refuse.c - bad input is refused by name, and nothing is done.
 * Owns:  the cases about arguments that no store may take, verb by verb.
 * Never: lists every bound of every field: the checks have their own tests.
 */
#include "store/helpers.h"

#include <string.h>

/* The call is INVALID, and says of what in a text that names it. */
#define expect_invalid(word, call)                                           \
    do {                                                                     \
        pawl_err err = {.code = PAWL_OK};                                    \
        check_code(HERE, (call), PAWL_INVALID);                              \
        check_code(HERE, err.code, PAWL_INVALID);                            \
        if (strstr(err.text, (word)) == NULL)                                \
            complain(HERE, "\"%s\" does not name \"%s\"", err.text, (word)); \
    } while (0)

static const char *over_long(struct stage *s, size_t max)
{
    char *text = stage_memory(s, max + 2);
    memset(text, 'x', max + 1);
    return text;
}

/* RULE-020-003 and all others rest on this: what was refused has changed nothing. */
static void enqueue_refuses_bad_rows(struct stage *s)
{
    pawl_enqueued result;
    const pawl_enqueue_row good = row_for("mail");
    pawl_enqueue_row row = good;
#define REFUSED(field, value)                                                   \
    do {                                                                        \
        row = good;                                                             \
        row.field = (value);                                                    \
        expect_invalid(#field, pawl_enqueue(s->store, &row, 1, &result, &err)); \
    } while (0)
    REFUSED(queue, NULL);
    REFUSED(queue, "");
    REFUSED(queue, "has blank");
    REFUSED(queue, over_long(s, PAWL_NAME_MAX));
    REFUSED(priority, -1);
    REFUSED(priority, PAWL_PRIORITY_LAST + 1);
    REFUSED(delay_ms, -1);
    REFUSED(delay_ms, PAWL_DURATION_MAX_MS + 1);
    REFUSED(start_within_ms, 0);
    REFUSED(start_within_ms, -1);
    REFUSED(max_retries, -1);
    REFUSED(max_retries, PAWL_RETRIES_MAX + 1);
    REFUSED(timeout_ms, 0);
    REFUSED(timeout_ms, -5);
    REFUSED(backoff_base_ms, 0);
    REFUSED(backoff_max_ms, 0);
    REFUSED(dedupe_key, "");
    REFUSED(dedupe_key, over_long(s, PAWL_DEDUPE_KEY_MAX));
    REFUSED(dedupe_key, "tab\t");
    REFUSED(dedupe_key, "latin-1 \xe4");
    REFUSED(dedupe_key, "overlong \xc0\xaf");
    REFUSED(ordering_key, over_long(s, PAWL_ORDERING_KEY_MAX));
    REFUSED(ordering_key, "tab\t");
    REFUSED(ordering_key, "latin-1 \xe4");
    REFUSED(payload, NULL); /* with a length of 4 */
    REFUSED(payload_len, PAWL_PAYLOAD_MAX + 1);
#undef REFUSED
    row = good;
    row.delay_ms = row.start_within_ms = MINUTE; /* it could never start */
    expect_invalid("start_within_ms", pawl_enqueue(s->store, &row, 1, &result, &err));
    expect_invalid("delay_ms", pawl_enqueue(s->store, &row, 1, &result, &err));
    expect_invalid("rows", pawl_enqueue(s->store, NULL, 1, &result, &err));
    expect_invalid("rows", pawl_enqueue(s->store, &good, 0, &result, &err));
    expect_invalid("rows", pawl_enqueue(s->store, &good, PAWL_BATCH_MAX + 1, &result, &err));
    expect_invalid("result", pawl_enqueue(s->store, &good, 1, NULL, &err));
    expect_invalid("store", pawl_enqueue(NULL, &good, 1, &result, &err));
    expect_number(list(s, NULL).count, 0);
}

static void claim_refuses_bad_arguments(struct stage *s)
{
    pawl_id id = put(s, "mail");
    struct picture before = picture_of(s, id);
    pawl_job job = {0};
    size_t count = 0;
    pawl_claim_line line = {"mail", 1, PAWL_DEFAULT};
    const pawl_claim_args good = {
        .worker = "w1", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_claim_args args = good;
#define REFUSED(word, jobs_max)                                                            \
    do {                                                                                   \
        expect_invalid(word, pawl_claim(s->store, &args, &job, (jobs_max), &count, &err)); \
        args = good;                                                                       \
        line = (pawl_claim_line){"mail", 1, PAWL_DEFAULT};                                 \
    } while (0)
    args.worker = NULL;
    REFUSED("worker", 1);
    args.worker = "";
    REFUSED("worker", 1);
    args.worker = over_long(s, PAWL_NAME_MAX);
    REFUSED("worker", 1);
    args.lines = NULL;
    REFUSED("lines", 1);
    args.lines_count = 0;
    REFUSED("lines", 1);
    args.lines_count = PAWL_LINES_MAX + 1;
    REFUSED("lines", 1);
    args.bytes_max = 0;
    REFUSED("bytes_max", 1);
    line.queue = "";
    REFUSED("queue", 1);
    line.jobs_max = 0;
    REFUSED("jobs_max", 1);
    line.lease_ms = PAWL_LEASE_MIN_MS - 1;
    REFUSED("lease_ms", 1);
    line.lease_ms = PAWL_DURATION_MAX_MS + 1;
    REFUSED("lease_ms", 1);
    REFUSED("jobs_max", 0);
    REFUSED("jobs_max", PAWL_BATCH_MAX + 1);
#undef REFUSED
    expect_invalid("args", pawl_claim(s->store, NULL, &job, 1, &count, &err));
    expect_invalid("ret_jobs", pawl_claim(s->store, &good, NULL, 1, &count, &err));
    expect_invalid("ret_count", pawl_claim(s->store, &good, &job, 1, NULL, &err));
    expect_unchanged(s, &before);
}

static void renew_refuses_bad_arguments(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    struct picture before = picture_of(s, job->id);
    const pawl_renew_row good = {.lease = lease_of(job), .lease_ms = PAWL_DEFAULT};
    pawl_renew_row row = good;
    pawl_renewed renewed;
    expect_invalid("worker", pawl_renew(s->store, "", &row, 1, &renewed, &err));
    expect_invalid("rows", pawl_renew(s->store, "w1", NULL, 1, &renewed, &err));
    expect_invalid("rows", pawl_renew(s->store, "w1", &row, 0, &renewed, &err));
    expect_invalid("rows", pawl_renew(s->store, "w1", &row, PAWL_BATCH_MAX + 1, &renewed, &err));
    expect_invalid("result", pawl_renew(s->store, "w1", &row, 1, NULL, &err));
    row.lease_ms = PAWL_LEASE_MIN_MS - 1;
    expect_invalid("lease_ms", pawl_renew(s->store, "w1", &row, 1, &renewed, &err));
    row = good;
    memset(&row.lease.job, 0, sizeof(row.lease.job));
    expect_invalid("job", pawl_renew(s->store, "w1", &row, 1, &renewed, &err));
    expect_unchanged(s, &before);
}

static void settle_refuses_bad_arguments(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    struct picture before = picture_of(s, job->id);
    pawl_settled settled;
    const pawl_settle_row good = settle_row_for(job, PAWL_RETRY);
    pawl_settle_row row = good;
#define REFUSED(field, value)                                                         \
    do {                                                                              \
        row = good;                                                                   \
        row.field = (value);                                                          \
        expect_invalid(#field, pawl_settle(s->store, "w1", &row, 1, &settled, &err)); \
    } while (0)
    REFUSED(action, (pawl_settle_action)9);
    REFUSED(reason, PAWL_REASON_POISON); /* not the holder's to say */
    REFUSED(delay_ms, -1);
    REFUSED(delay_ms, PAWL_DURATION_MAX_MS + 1);
    REFUSED(error_code, over_long(s, PAWL_ERROR_CODE_MAX));
    REFUSED(error_text, over_long(s, PAWL_ERROR_TEXT_MAX));
    REFUSED(error_code, "new\nline");
    REFUSED(error_code, "cut \xe2\x82");
    REFUSED(error_text, "escape \x1b[2J");
    REFUSED(wire_sends, -2);
    REFUSED(wire_sends, PAWL_SENDS_MAX + 1);
    REFUSED(error_text, "surrogate \xed\xa0\x80");
#undef REFUSED
    row = settle_row_for(job, PAWL_SNOOZE);
    row.delay_ms = PAWL_DEFAULT; /* a snooze needs a value */
    expect_invalid("delay_ms", pawl_settle(s->store, "w1", &row, 1, &settled, &err));
    row = settle_row_for(job, PAWL_SUCCEED);
    row.reason = PAWL_REASON_TIMEOUT;
    expect_invalid("reason", pawl_settle(s->store, "w1", &row, 1, &settled, &err));
    expect_invalid("worker", pawl_settle(s->store, NULL, &good, 1, &settled, &err));
    expect_invalid("rows", pawl_settle(s->store, "w1", NULL, 1, &settled, &err));
    expect_invalid("rows", pawl_settle(s->store, "w1", &good, 0, &settled, &err));
    expect_invalid("result", pawl_settle(s->store, "w1", &good, 1, NULL, &err));
    expect_unchanged(s, &before);
}

static void release_and_reap_refuse_bad_arguments(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    struct picture before = picture_of(s, job->id);
    pawl_lease lease = lease_of(job);
    pawl_code code;
    expect_invalid("worker", pawl_release(s->store, "", &lease, 1, &code, &err));
    expect_invalid("leases", pawl_release(s->store, "w1", NULL, 1, &code, &err));
    expect_invalid("leases", pawl_release(s->store, "w1", &lease, 0, &code, &err));
    expect_invalid("ret_codes", pawl_release(s->store, "w1", &lease, 1, NULL, &err));
    pawl_reaped row;
    size_t count = 0;
    expect_invalid("ret_rows", pawl_reap(s->store, NULL, 1, &count, &err));
    expect_invalid("rows_max", pawl_reap(s->store, &row, 0, &count, &err));
    expect_invalid("rows_max", pawl_reap(s->store, &row, PAWL_BATCH_MAX + 1, &count, &err));
    expect_invalid("ret_count", pawl_reap(s->store, &row, 1, NULL, &err));
    expect_invalid("jobs_max", pawl_prune(s->store, 0, &count, &err));
    expect_unchanged(s, &before);
}

static void reading_refuses_bad_arguments(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_job job = {0};
    pawl_attempt attempt;
    pawl_lease_info lease;
    pawl_worker worker;
    pawl_stats stats;
    pawl_queue_settings settings;
    size_t count = 0;
    pawl_filter filter = {.states = 1u << 7};
    expect_invalid("id", pawl_get(s->store, NULL, &job, &err));
    expect_invalid("ret_job", pawl_get(s->store, &id, NULL, &err));
    expect_invalid("states", pawl_list(s->store, &filter, NULL, &job, 1, &count, &err));
    filter = (pawl_filter){.queue = ""};
    expect_invalid("queue", pawl_list(s->store, &filter, NULL, &job, 1, &count, &err));
    filter = (pawl_filter){.reason = (pawl_reason)99};
    expect_invalid("reason", pawl_list(s->store, &filter, NULL, &job, 1, &count, &err));
    expect_invalid("jobs_max", pawl_list(s->store, NULL, NULL, &job, 0, &count, &err));
    expect_invalid("rows_max", pawl_attempts(s->store, &id, 0, &attempt, 0, &count, &err));
    expect_invalid("after_no", pawl_attempts(s->store, &id, -1, &attempt, 1, &count, &err));
    expect_invalid("rows_max", pawl_leases(s->store, NULL, NULL, &lease, 0, &count, &err));
    expect_invalid("rows_max", pawl_workers(s->store, NULL, &worker, 0, &count, &err));
    expect_invalid("rows_max", pawl_queue_stats(s->store, NULL, &stats, 0, &count, &err));
    expect_invalid("rows_max", pawl_queue_depths(s->store, NULL, &stats, 0, &count, &err));
    expect_invalid("queue", pawl_queue_get(s->store, "", &settings, &err));
    expect_invalid("worker", pawl_mine(s->store, "", NULL, &job, 1, &count, &err));
    expect_invalid("jobs_max", pawl_mine(s->store, "w", NULL, &job, 0, &count, &err));
}

static void operating_refuses_bad_arguments(struct stage *s)
{
    pawl_id id = put_failed(s, "mail");
    struct picture before = picture_of(s, id);
    pawl_changed changed;
    size_t count = 0;
    pawl_queue_settings settings = settings_of(s, "mail");
    pawl_worker_seen seen = {.name = "", .host = "h", .version = "v"};
    const pawl_filter all = {0};
    expect_invalid("ids", pawl_cancel(s->store, NULL, 1, &changed, &err));
    expect_invalid("ids", pawl_cancel(s->store, &id, 0, &changed, &err));
    expect_invalid("result", pawl_redrive(s->store, &id, 1, NULL, &err));
    expect_invalid("ids", pawl_discard(s->store, &id, PAWL_BATCH_MAX + 1, &changed, &err));
    expect_invalid("jobs_max", pawl_redrive_where(s->store, &all, 0, &count, &err));
    expect_invalid("ret_count", pawl_discard_where(s->store, &all, 1, NULL, &err));
    expect_invalid("queue", pawl_queue_set(s->store, "", &settings, &err));
    expect_invalid("settings", pawl_queue_set(s->store, "mail", NULL, &err));
    expect_invalid("queue", pawl_queue_pause(s->store, NULL, true, &err));
    expect_invalid("name", pawl_worker_seen_now(s->store, &seen, &err));
    expect_invalid("name", pawl_worker_ended(s->store, "", &err));
    expect_unchanged(s, &before);
}

/* NFR-003: no error text carries a payload or a token */
static void no_text_carries_a_secret(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.payload = "swordfish";
    row.payload_len = 9;
    row.priority = 77;
    pawl_enqueued result;
    pawl_err err;
    expect_code(pawl_enqueue(s->store, &row, 1, &result, &err), PAWL_INVALID);
    expect_true(strstr(err.text, "swordfish") == NULL);
    expect_true(strstr(err.text, "77") != NULL);                               /* the value */
    expect_true(strstr(err.text, "priority") != NULL);                         /* and its field */
    expect_code(pawl_enqueue(s->store, &row, 1, &result, NULL), PAWL_INVALID); /* err may be NULL */
}

static const struct suite_case cases[] = {
    CASE(enqueue_refuses_bad_rows),
    CASE(claim_refuses_bad_arguments),
    CASE(renew_refuses_bad_arguments),
    CASE(settle_refuses_bad_arguments),
    CASE(release_and_reap_refuse_bad_arguments),
    CASE(reading_refuses_bad_arguments),
    CASE(operating_refuses_bad_arguments),
    CASE(no_text_carries_a_secret),
};

SUITE_GROUP(refuse);
