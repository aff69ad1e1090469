/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_headers.c - what stands beside a payload.
 * Owns:  the cases about headers: that they come back wherever the payload does, go where it goes,
 *        and are refused by name.
 * Never: lists every form of a bad header: core/headers.c has its own test.
 */
#include "pawl/headers.h"
#include "store/helpers.h"

#include <stdio.h>
#include <string.h>

#define HEADERS "tenant: 17\nx-note: two words: \xc3\xa4\xe2\x82\xac\nempty: \n"

static pawl_enqueue_row row_with(const char *queue, const char *headers)
{
    pawl_enqueue_row row = row_for(queue);
    row.headers = headers;
    return row;
}

static void check_headers(struct here here, const pawl_job *job, const char *wanted)
{
    if ((job->headers == NULL) != (wanted == NULL))
        complain(here, "headers are %s", job->headers == NULL ? "missing" : "there");
    if (wanted != NULL && strcmp(job->headers, wanted) != 0)
        complain(here, "headers are others");
}
#define expect_headers(job, wanted) check_headers(HERE, (job), (wanted))

/* They are told wherever a payload is: by get, claim and mine, and of what is done no more. */
static void headers_come_back(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", HEADERS);
    pawl_id id = put_row(s, &row);
    expect_headers(look(s, id), HEADERS);
    const pawl_job *job = take(s, "mail", "w1");
    expect_headers(job, HEADERS);
    assert_memory_equal(job->payload, "work", 4);
    struct batch held = mine(s, "w1");
    expect_number(held.count, 1);
    expect_headers(held.jobs[0], HEADERS);
    struct batch all = list(s, NULL);
    expect_number(all.count, 1);
    expect_headers(all.jobs[0], NULL);
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_headers(look(s, id), NULL);
}

static void jobs_without_headers_have_none(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", "");
    pawl_id id = put_row(s, &row);
    expect_headers(look(s, id), NULL);
    pawl_id other = put(s, "mail");
    expect_headers(look(s, other), NULL);
    struct batch jobs = take_up_to(s, "mail", "w1", 2);
    expect_number(jobs.count, 2);
    expect_headers(jobs.jobs[0], NULL);
    expect_headers(jobs.jobs[1], NULL);
}

/* In one call each row has its own, or none; with and without the other things that rows may have.
 */
static void each_row_has_its_own(struct stage *s)
{
    static const char *const headers[] = {"a: 1\n", NULL, "a: 3\nb: 3\n", ""};
    pawl_enqueue_row rows[COUNT_OF(headers)];
    pawl_enqueued results[COUNT_OF(headers)];
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        rows[i] = row_with("mail", headers[i]);
    rows[0].dedupe_key = "d";
    rows[2].delay_ms = HOUR;
    expect_code(pawl_enqueue(s->store, rows, COUNT_OF(rows), results, NULL), PAWL_OK);
    expect_headers(look(s, results[0].id), "a: 1\n");
    expect_headers(look(s, results[1].id), NULL);
    expect_headers(look(s, results[2].id), "a: 3\nb: 3\n");
    expect_headers(look(s, results[3].id), NULL);
}

static void headers_go_with_keys(struct stage *s)
{
    pawl_enqueue_row rows[] = {row_with("mail", "a: 1\n"), row_with("mail", NULL),
                               row_with("mail", "a: 3\n")};
    pawl_enqueued results[COUNT_OF(rows)];
    rows[0].ordering_key = rows[1].ordering_key = "k";
    expect_code(pawl_enqueue(s->store, rows, COUNT_OF(rows), results, NULL), PAWL_OK);
    expect_headers(look(s, results[0].id), "a: 1\n");
    expect_headers(look(s, results[1].id), NULL);
    expect_headers(look(s, results[2].id), "a: 3\n");
}

/* An empty payload does not take them with it. */
static void headers_need_no_payload(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", HEADERS);
    row.payload = NULL;
    row.payload_len = 0;
    pawl_id id = put_row(s, &row);
    expect_headers(look(s, id), HEADERS);
    const pawl_job *job = take(s, "mail", "w1");
    expect_headers(job, HEADERS);
    expect_number(job->payload_len, 0);
    expect_true(job->payload == NULL);
    expect_code(fail_for_good(s, job).code, PAWL_OK);
    expect_headers(look(s, id), HEADERS);
    expect_code(discard(s, id).code, PAWL_OK);
    expect_headers(look(s, id), NULL);
    age(s, 31 * DAY);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, id));
}

/* Q-AT-LEAST-ONCE, Q-DEAD-LETTER: whatever brings a job back brings back what it came with */
static void headers_stay_on_every_way(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", HEADERS);
    row.backoff_base_ms = row.backoff_max_ms =
        HOUR; /* no draw is so short that it is due at once */
    pawl_id id = put_row(s, &row);
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    const pawl_job *job = take(s, "mail", "w2");
    expect_headers(job, HEADERS);
    expect_code(retry_in(s, job, 0).code, PAWL_OK);
    job = take(s, "mail", "w3");
    expect_headers(job, HEADERS);
    expect_code(renew(s, job).code, PAWL_OK);
    expect_code(snooze_for(s, job, MINUTE).code, PAWL_OK);
    age(s, MINUTE + SECOND);
    (void)take_and_lose(s, "mail", "w4");
    (void)reap_one(s);
    job = take(s, "mail", "w5"); /* recovered by the reaper */
    expect_headers(job, HEADERS);
    age(s, LEASE + SECOND);
    expect_nothing(s, "mail"); /* recovered by a claim; from the second loss on it waits */
    age(s, HOUR);
    job = take(s, "mail", "w6");
    expect_headers(job, HEADERS);
    expect_code(fail_for_good(s, job).code, PAWL_OK);
    expect_headers(look(s, id), HEADERS);
    expect_code(redrive(s, id).code, PAWL_OK);
    job = take(s, "mail", "w7");
    expect_headers(job, HEADERS);
    expect_code(fail_for_good(s, job).code, PAWL_OK);
    expect_code(discard(s, id).code, PAWL_OK);
    expect_headers(look(s, id), NULL);
}

/* A cancelled job, and one that did not start in time, keep them with their payload. */
static void headers_of_dead_letters_stay(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", HEADERS);
    pawl_id cancelled = put_row(s, &row);
    expect_code(cancel(s, cancelled).code, PAWL_OK);
    row.start_within_ms = MINUTE;
    pawl_id missed = put_row(s, &row);
    age(s, MINUTE + SECOND);
    (void)reap_one(s);
    expect_state(s, missed, PAWL_FAILED);
    expect_headers(look(s, cancelled), HEADERS);
    expect_headers(look(s, missed), HEADERS);
}

/* Q-NEVER-AGAIN: a repeated enqueue changes nothing of the job that is there */
static void a_repeated_enqueue_changes_no_header(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", HEADERS);
    row.id = new_id(s, &row);
    row.dedupe_key = NULL;
    put_row(s, &row);
    row.headers = "other: 1\n";
    expect_code(try_put(s, &row).code, PAWL_EXISTS);
    expect_headers(look(s, row.id), HEADERS);
}

/* As many as there may be, and as long. */
static void the_most_headers_come_back(struct stage *s)
{
    char *many = stage_memory(s, PAWL_HEADERS_LEN_MAX + 1);
    char name[PAWL_HEADER_NAME_MAX + 1] = {0};
    char *value = stage_memory(s, PAWL_HEADER_VALUE_MAX + 1);
    memset(value, 'v', PAWL_HEADER_VALUE_MAX);
    memset(name, 'n', PAWL_HEADER_NAME_MAX);
    for (int i = 0; i < 3; i++) {
        name[0] = (char)('a' + i);
        expect_code(pawl_headers_add(many, PAWL_HEADERS_LEN_MAX + 1, name, value, NULL), PAWL_OK);
    }
    for (int i = 3; i < PAWL_HEADERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "x-%d", i);
        expect_code(pawl_headers_add(many, PAWL_HEADERS_LEN_MAX + 1, name, "1", NULL), PAWL_OK);
    }
    pawl_enqueue_row row = row_with("mail", many);
    put_row(s, &row);
    expect_headers(take(s, "mail", "w1"), many);
}

/* NFR-003: by the row and by the header, and never by its value */
static void bad_headers_are_refused(struct stage *s)
{
    static const struct {
        const char *headers;
        const char *named;
    } bad[] = {
        {"x-key: swordfish", "header 1"},
        {"fine: 1\nswordfish\n", "header 2"},
        {"fine: 1\nx-key: swordfish\rother\n", "\"x-key\""},
        {"x-key:  swordfish\n", "\"x-key\""},
        {"x-key: swordfish \n", "\"x-key\""},
        {"x-key: swordfish\xff\n", "\"x-key\""},
        {"x-key: swordfish\nX-KEY: swordfish\n", "\"X-KEY\""},
    };
    pawl_enqueue_row rows[2] = {row_for("mail"), row_for("mail")};
    pawl_enqueued results[2];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_err err = {.code = PAWL_OK};
        rows[1].headers = bad[i].headers;
        expect_code(pawl_enqueue(s->store, rows, 2, results, &err), PAWL_INVALID);
        if (strstr(err.text, "row 1: ") == NULL || strstr(err.text, bad[i].named) == NULL)
            complain(HERE, "\"%s\" does not name row 1 and %s", err.text, bad[i].named);
        expect_true(strstr(err.text, "swordfish") == NULL);
    }
    expect_number(list(s, NULL).count, 0);
}

/* Bytes of a claim are those of payloads: headers are bounded themselves. */
static void headers_do_not_count_as_bytes(struct stage *s)
{
    for (int i = 0; i < 3; i++) {
        pawl_enqueue_row row = row_with("mail", HEADERS);
        put_row(s, &row);
    }
    pawl_claim_line line = {.queue = "mail", .jobs_max = 10, .lease_ms = PAWL_DEFAULT};
    struct batch jobs = claim(
        s, &(pawl_claim_args){.worker = "w", .lines = &line, .lines_count = 1, .bytes_max = 12},
        10);
    expect_number(jobs.count, 3);
}

/* Q-DURABLE */
static void headers_survive_a_restart(struct stage *s)
{
    pawl_enqueue_row row = row_with("mail", HEADERS);
    pawl_id id = put_row(s, &row);
    stage_reopen(s);
    expect_headers(look(s, id), HEADERS);
    expect_headers(take(s, "mail", "w1"), HEADERS);
}

static const struct suite_case cases[] = {
    CASE(headers_come_back),
    CASE(jobs_without_headers_have_none),
    CASE(each_row_has_its_own),
    CASE(headers_go_with_keys),
    CASE(headers_need_no_payload),
    CASE(headers_stay_on_every_way),
    CASE(headers_of_dead_letters_stay),
    CASE(a_repeated_enqueue_changes_no_header),
    CASE(the_most_headers_come_back),
    CASE(bad_headers_are_refused),
    CASE_ON(ONE_SHARD, headers_do_not_count_as_bytes),
    CASE_ON(DURABLE, headers_survive_a_restart),
};
SUITE_GROUP(headers);
