/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_endpoint.c - endpoints: adding, changing, switching and removing them.
 * Owns:  the cases about endpoints themselves; what is published to them: suite_publish.c.
 * Never: looks behind the verbs.
 */
#include "store/endpoints.h"

#include <stdio.h>
#include <string.h>

static void a_new_endpoint_has_the_defaults(struct stage *s)
{
    add_endpoint(s, "crm", "order.*");
    pawl_endpoint row = endpoint(s, "crm");
    assert_string_equal(row.name, "crm");
    assert_string_equal(row.queue, "webhook/crm");
    assert_string_equal(row.url, ENDPOINT_URL);
    assert_string_equal(row.topics, "order.*");
    assert_string_equal(row.header_names, "");
    assert_string_equal(row.fail_statuses, "");
    expect_number(row.timeout_ms, 30 * SECOND);
    expect_number(row.rate_per_minute, 0);
    expect_number(row.ordering, PAWL_ORDERING_NONE);
    expect_number(row.format, PAWL_FORMAT_PLAIN);
    expect_number(row.secrets_count, 1);
    expect_number(row.queue_settings.lease_ms, 120 * SECOND);
    expect_number(row.queue_settings.max_in_flight, 64);
    expect_number(row.queue_settings.max_retries, 20);
    expect_number(row.queue_settings.backoff_base_ms, 5 * SECOND);
    expect_number(row.queue_settings.backoff_max_ms, 8 * HOUR);
    expect_true(row.is_enabled && !row.queue_settings.is_paused);
    expect_number(row.switched_at.us, 0);
    assert_string_equal(row.switched_by, "");
    assert_string_equal(row.reason, "");
    expect_number(row.revision, 1);
    expect_near(s, row.created_at, 0);
    expect_near(s, row.changed_at, 0);
    /* The queue's settings are the queue's: there is one place for them. */
    expect_number(settings_of(s, "webhook/crm").lease_ms, 120 * SECOND);
}

/* NFR-002: three leases, which is the default, may be shorter than a delivery may take. */
static void a_delivery_is_not_cut_off_before_its_timeout(struct stage *s)
{
    pawl_endpoint_settings settings = endpoint_settings("x");
    add_endpoint(s, "usual", "x");
    expect_number(endpoint(s, "usual").queue_settings.execution_timeout_ms, PAWL_DEFAULT);
    settings.lease_ms = 5 * SECOND;
    expect_code(try_add(s, "crm", &settings, SECRET_1, NULL), PAWL_OK);
    expect_number(settings_of(s, "webhook/crm").execution_timeout_ms, (30 + 60) * SECOND);

    pawl_endpoint_settings change;
    pawl_endpoint_settings_init(&change);
    change.timeout_ms = 200 * SECOND;
    expect_code(pawl_endpoint_set(s->store, "crm", &change, NULL), PAWL_OK);
    expect_number(settings_of(s, "webhook/crm").execution_timeout_ms, (200 + 60) * SECOND);
    change.timeout_ms = SECOND; /* it is never lowered */
    expect_code(pawl_endpoint_set(s->store, "crm", &change, NULL), PAWL_OK);
    expect_number(settings_of(s, "webhook/crm").execution_timeout_ms, (200 + 60) * SECOND);
    pawl_endpoint_settings_init(&change);
    change.lease_ms = 20 * SECOND;
    expect_code(pawl_endpoint_set(s->store, "usual", &change, NULL), PAWL_OK);
    expect_number(settings_of(s, "webhook/usual").execution_timeout_ms, (30 + 60) * SECOND);

    /* Chosen by hand, it stays until one of the two is set. */
    pawl_queue_settings queue = settings_of(s, "webhook/usual");
    queue.execution_timeout_ms = 25 * SECOND;
    expect_code(pawl_queue_set(s->store, "webhook/usual", &queue, NULL), PAWL_OK);
    pawl_endpoint_settings_init(&change);
    change.max_retries = 1;
    expect_code(pawl_endpoint_set(s->store, "usual", &change, NULL), PAWL_OK);
    expect_number(settings_of(s, "webhook/usual").execution_timeout_ms, 25 * SECOND);
}

static void all_settings_come_back(struct stage *s)
{
    pawl_endpoint_settings settings = endpoint_settings("a,b.c,d.*");
    settings.url = "http://hooks.example:8080/in?x=%20";
    settings.headers = "authorization: Bearer swordfish\nx-tenant: 7\n";
    settings.fail_statuses = "400,404-406";
    settings.timeout_ms = 1500;
    settings.rate_per_minute = 90;
    settings.ordering = PAWL_ORDERING_KEY;
    settings.format = PAWL_FORMAT_CLOUD_STRUCTURED;
    settings.lease_ms = 61000;
    settings.max_in_flight = 9;
    settings.max_retries = 2;
    settings.backoff_base_ms = 11;
    settings.backoff_max_ms = 22;
    expect_code(try_add(s, "crm", &settings, SECRET_1, NULL), PAWL_OK);
    pawl_endpoint row = endpoint(s, "crm");
    assert_string_equal(row.url, settings.url);
    assert_string_equal(row.topics, settings.topics);
    assert_string_equal(row.header_names, "authorization,x-tenant");
    assert_string_equal(row.fail_statuses, settings.fail_statuses);
    expect_number(row.timeout_ms, 1500);
    expect_number(row.rate_per_minute, 90);
    expect_number(row.ordering, PAWL_ORDERING_KEY);
    expect_number(row.format, PAWL_FORMAT_CLOUD_STRUCTURED);
    expect_number(row.queue_settings.lease_ms, 61000);
    expect_number(row.queue_settings.max_in_flight, 9);
    expect_number(row.queue_settings.max_retries, 2);
    expect_number(row.queue_settings.backoff_base_ms, 11);
    expect_number(row.queue_settings.backoff_max_ms, 22);
    pawl_endpoint_credentials held = credentials(s, "crm");
    expect_number(held.created_at.us, endpoint(s, "crm").created_at.us);
    assert_string_equal(held.headers, settings.headers);
    expect_number(held.secrets_count, 1);
    assert_string_equal(held.secrets[0].text, SECRET_1);
    expect_number(held.secrets[0].until.us, 0);
    expect_number(held.revision, row.revision);
}

/* What a call leaves out stays; what it names is changed, and nothing else. */
static void a_set_changes_what_it_names(struct stage *s)
{
    pawl_endpoint_settings settings = endpoint_settings("order.*");
    settings.headers = "x-tenant: 7\n";
    settings.ordering = PAWL_ORDERING_KEY;
    settings.max_retries = 4;
    expect_code(try_add(s, "crm", &settings, SECRET_1, NULL), PAWL_OK);
    pawl_endpoint before = endpoint(s, "crm");
    pawl_endpoint_settings change;
    pawl_endpoint_settings_init(&change);
    change.topics = "invoice.paid";
    change.backoff_max_ms = 7 * MINUTE;
    expect_code(pawl_endpoint_set(s->store, "crm", &change, NULL), PAWL_OK);
    pawl_endpoint after = endpoint(s, "crm");
    assert_string_equal(after.topics, "invoice.paid");
    expect_number(after.queue_settings.backoff_max_ms, 7 * MINUTE);
    expect_number(after.revision, before.revision + 1);
    expect_number(publish_type(s, "order.created").endpoints, 0);
    expect_number(publish_type(s, "invoice.paid").endpoints, 1);

    (void)snprintf(before.topics, sizeof(before.topics), "invoice.paid");
    before.queue_settings.backoff_max_ms = 7 * MINUTE;
    before.revision = after.revision;
    before.created_at = after.created_at; /* a server's clock is shifted by the test */
    before.changed_at = after.changed_at;
    assert_memory_equal(&before, &after, sizeof(after));

    /* An empty text is said, not left out. */
    pawl_endpoint_settings_init(&change);
    change.headers = "";
    expect_code(pawl_endpoint_set(s->store, "crm", &change, NULL), PAWL_OK);
    assert_string_equal(endpoint(s, "crm").header_names, "");
    assert_string_equal(credentials(s, "crm").headers, "");
}

static void a_name_is_taken_once(struct stage *s)
{
    pawl_endpoint_settings settings = endpoint_settings("order.*");
    pawl_err err;
    add_endpoint(s, "crm", "invoice.*");
    expect_code(try_add(s, "crm", &settings, SECRET_2, &err), PAWL_EXISTS);
    expect_true(strstr(err.text, "crm") != NULL);
    assert_string_equal(endpoint(s, "crm").topics, "invoice.*");
    assert_string_equal(credentials(s, "crm").secrets[0].text, SECRET_1);
    add_endpoint(s, "Crm", "invoice.*"); /* by its bytes */
    expect_number(count_endpoints(s), 2);
}

static void an_unknown_endpoint_is_gone(struct stage *s)
{
    pawl_endpoint row;
    pawl_endpoint_credentials held;
    pawl_endpoint_settings settings;
    pawl_endpoint_settings_init(&settings);
    pawl_endpoint_switch off = {.name = "crm", .by = "me"};
    pawl_endpoint_rotate_args rotate = {.name = "crm", .secret = SECRET_1};
    pawl_err err = {.code = PAWL_OK};
    expect_code(pawl_endpoint_get(s->store, "crm", &row, &err), PAWL_GONE);
    expect_true(strstr(err.text, "crm") != NULL);
    expect_code(pawl_endpoint_credentials_get(s->store, "crm", &held, &err), PAWL_GONE);
    expect_code(pawl_endpoint_set(s->store, "crm", &settings, &err), PAWL_GONE);
    expect_code(pawl_endpoint_rotate(s->store, &rotate, &err), PAWL_GONE);
    expect_code(pawl_endpoint_disable(s->store, &off, &err), PAWL_GONE);
    expect_code(pawl_endpoint_enable(s->store, &off, &err), PAWL_GONE);
    err.text[0] = '\0';
    expect_code(pawl_endpoint_remove(s->store, "crm", &err), PAWL_GONE);
    expect_true(strstr(err.text, "crm") != NULL);
}

static void lists_go_by_name_in_pages(struct stage *s)
{
    add_endpoint(s, "b", "x");
    add_endpoint(s, "a.1", "x");
    add_endpoint(s, "a-1", "x");
    add_endpoint(s, "B", "x");
    pawl_endpoint rows[3];
    size_t count = 0;
    expect_code(pawl_endpoint_list(s->store, NULL, rows, 3, &count, NULL), PAWL_OK);
    expect_number(count, 3);
    assert_string_equal(rows[0].name, "B");
    assert_string_equal(rows[1].name, "a-1");
    assert_string_equal(rows[2].name, "a.1");
    expect_code(pawl_endpoint_list(s->store, "a.1", rows, 3, &count, NULL), PAWL_OK);
    expect_number(count, 1);
    assert_string_equal(rows[0].name, "b");
    assert_string_equal(rows[0].queue, "webhook/b");
    expect_code(pawl_endpoint_list(s->store, "b", rows, 3, &count, NULL), PAWL_OK);
    expect_number(count, 0);
    expect_code(pawl_endpoint_list(s->store, "a", rows, 1, &count, NULL), PAWL_OK);
    expect_number(count, 1);
    assert_string_equal(rows[0].name, "a-1");
}

/* ---- secrets */

static void a_second_secret_signs_until_a_time(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    pawl_endpoint_rotate_args args = {.name = "crm", .secret = SECRET_2, .overlap_ms = HOUR};
    expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    pawl_endpoint_credentials held = credentials(s, "crm");
    expect_number(held.secrets_count, 2);
    assert_string_equal(held.secrets[0].text, SECRET_2);
    expect_number(held.secrets[0].until.us, 0);
    assert_string_equal(held.secrets[1].text, SECRET_1);
    expect_near(s, held.secrets[1].until, HOUR);
    expect_number(endpoint(s, "crm").secrets_count, 2);
    expect_number(held.revision, 2);

    age(s, 59 * MINUTE);
    expect_number(credentials(s, "crm").secrets_count, 2);
    age(s, MINUTE);
    held = credentials(s, "crm");
    expect_number(held.secrets_count, 1);
    assert_string_equal(held.secrets[0].text, SECRET_2);
    expect_number(endpoint(s, "crm").secrets_count, 1);
}

static void without_overlap_the_old_one_goes_at_once(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    pawl_endpoint_rotate_args args = {.name = "crm", .secret = SECRET_2, .overlap_ms = DAY};
    expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    args.secret = SECRET_3;
    args.overlap_ms = 0;
    expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    pawl_endpoint_credentials held = credentials(s, "crm");
    expect_number(held.secrets_count, 1);
    assert_string_equal(held.secrets[0].text, SECRET_3);
}

/* A later rotation never lets an old secret sign longer than it would have. */
static void secrets_never_sign_longer(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    pawl_endpoint_rotate_args args = {.name = "crm", .secret = SECRET_2, .overlap_ms = HOUR};
    expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    args = (pawl_endpoint_rotate_args){.name = "crm", .secret = SECRET_3, .overlap_ms = DAY};
    expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    pawl_endpoint_credentials held = credentials(s, "crm");
    expect_number(held.secrets_count, 3);
    assert_string_equal(held.secrets[1].text, SECRET_2);
    expect_near(s, held.secrets[1].until, DAY);
    assert_string_equal(held.secrets[2].text, SECRET_1);
    expect_near(s, held.secrets[2].until, HOUR);
}

static void secrets_are_bounded_and_differ(struct stage *s)
{
    static const char *const more[] = {SECRET_2, SECRET_3, SECRET_4};
    add_endpoint(s, "crm", "x");
    pawl_endpoint_rotate_args args = {.name = "crm", .overlap_ms = HOUR};
    pawl_err err;
    for (size_t i = 0; i < COUNT_OF(more); i++) {
        args.secret = more[i];
        expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    }
    expect_code(pawl_endpoint_rotate(s->store, &args, &err), PAWL_INVALID); /* a repeated call */
    expect_true(strstr(err.text, "crm") != NULL && strstr(err.text, SECRET_4) == NULL);
    args.secret = SECRET_5;
    expect_code(pawl_endpoint_rotate(s->store, &args, &err), PAWL_FULL);
    expect_true(strstr(err.text, "crm") != NULL && strstr(err.text, SECRET_5) == NULL);
    expect_number(credentials(s, "crm").secrets_count, PAWL_ENDPOINT_SECRETS_MAX);
    expect_number(endpoint(s, "crm").revision, 4);
    age(s, HOUR);
    expect_code(pawl_endpoint_rotate(s->store, &args, &err), PAWL_OK);
    expect_number(credentials(s, "crm").secrets_count, 2);
}

/* ---- switching */

static void a_switch_is_on_record(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    pawl_endpoint_switch off = {
        .name = "crm", .by = "anna@desk", .reason = "HTTP-410: gone \xc3\xa4"};
    expect_code(pawl_endpoint_disable(s->store, &off, NULL), PAWL_OK);
    pawl_endpoint row = endpoint(s, "crm");
    expect_true(!row.is_enabled);
    expect_near(s, row.switched_at, 0);
    assert_string_equal(row.switched_by, "anna@desk");
    assert_string_equal(row.reason, off.reason);
    expect_number(row.revision, 2);
    expect_true(row.queue_settings.is_paused);

    /* The first reason stays. */
    pawl_endpoint_switch again = {.name = "crm", .by = "bob", .reason = "me too"};
    expect_code(pawl_endpoint_disable(s->store, &again, NULL), PAWL_OK);
    row = endpoint(s, "crm");
    assert_string_equal(row.switched_by, "anna@desk");
    expect_number(row.revision, 2);

    pawl_endpoint_switch on = {.name = "crm", .by = "bob"};
    expect_code(pawl_endpoint_enable(s->store, &on, NULL), PAWL_OK);
    row = endpoint(s, "crm");
    expect_true(row.is_enabled && !row.queue_settings.is_paused);
    assert_string_equal(row.switched_by, "bob");
    assert_string_equal(row.reason, "");
    expect_number(row.revision, 3);
}

/* Nothing is claimed of a disabled endpoint; what was there comes when it is enabled. */
static void a_disabled_endpoint_gives_no_jobs(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    expect_number(publish_type(s, "x").jobs, 1);
    turn_off(s, "crm");
    expect_nothing(s, "webhook/crm");
    expect_number(publish_type(s, "x").endpoints, 0);
    turn_on(s, "crm");
    expect_number(take_up_to(s, "webhook/crm", "w", 9).count, 1);
}

/* ---- removing */

static void an_endpoint_with_jobs_stays(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    expect_number(publish_type(s, "x").jobs, 1);
    pawl_err err;
    expect_code(pawl_endpoint_remove(s->store, "crm", &err), PAWL_HAS_JOBS);
    expect_true(strstr(err.text, "webhook/crm") != NULL);
    const pawl_job *job = take(s, "webhook/crm", "w");
    expect_code(pawl_endpoint_remove(s->store, "crm", NULL), PAWL_HAS_JOBS);
    expect_number(count_endpoints(s), 1);
    expect_code(retry_in(s, job, HOUR).code, PAWL_OK);
    expect_code(pawl_endpoint_remove(s->store, "crm", NULL), PAWL_HAS_JOBS);
    expect_code(cancel(s, job->id).code, PAWL_OK);
    expect_code(pawl_endpoint_remove(s->store, "crm", NULL), PAWL_OK);
    expect_number(count_endpoints(s), 0);
    expect_state(s, job->id, PAWL_FAILED); /* its history stays */
    expect_number(settings_of(s, "webhook/crm").lease_ms, LEASE);
    expect_true(!settings_of(s, "webhook/crm").is_paused);
}

/* Jobs of the one before never go to the next one of that name. */
static void a_name_with_jobs_is_not_taken_again(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    turn_off(s, "crm");
    expect_code(pawl_endpoint_remove(s->store, "crm", NULL), PAWL_OK);
    pawl_id id = put(s, "webhook/crm");
    pawl_endpoint_settings settings = endpoint_settings("x");
    expect_code(try_add(s, "crm", &settings, SECRET_1, NULL), PAWL_HAS_JOBS);
    expect_number(count_endpoints(s), 0);
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_code(try_add(s, "crm", &settings, SECRET_2, NULL), PAWL_OK);
    pawl_endpoint row = endpoint(s, "crm");
    expect_number(row.revision, 1);
    expect_true(row.is_enabled && !row.queue_settings.is_paused);
    expect_number(row.switched_at.us, 0);
    expect_number(credentials(s, "crm").secrets_count, 1);
    assert_string_equal(credentials(s, "crm").secrets[0].text, SECRET_2);
}

/* ---- refusals */

static void bad_endpoints_are_refused(struct stage *s)
{
    static const struct {
        const char *name;
        const char *secret;
        const char *named;
    } bad[] = {
        {NULL, SECRET_1, "name"},        {"", SECRET_1, "name"},
        {"a/b", SECRET_1, "name"},       {"-a", SECRET_1, "name"},
        {".a", SECRET_1, "name"},        {"a b", SECRET_1, "name"},
        {"\xc3\xa4", SECRET_1, "name"},  {"crm", NULL, "secret"},
        {"crm", "swordfish", "secret"},  {"crm", "whsec_swordfish", "secret"},
        {"crm", SECRET_1 "-", "secret"}, {"crm", SECRET_1 "====", "secret"},
    };
    pawl_endpoint_settings settings = endpoint_settings("x");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_err err = {.code = PAWL_OK};
        expect_code(try_add(s, bad[i].name, &settings, bad[i].secret, &err), PAWL_INVALID);
        if (strstr(err.text, bad[i].named) == NULL || strstr(err.text, "swordfish") != NULL)
            complain(HERE, "\"%s\" does not name %s, or quotes it", err.text, bad[i].named);
    }
    expect_number(count_endpoints(s), 0);
}

static void bad_settings_are_refused(struct stage *s)
{
    const struct {
        pawl_endpoint_settings settings;
        const char *named;
    } bad[] = {
        {{.url = ""}, "url"},
        {{.url = "ftp://swordfish/"}, "url"},
        {{.url = "https://"}, "url"},
        {{.url = "https://a b/swordfish"}, "url"},
        {{.url = "https:///swordfish"}, "url"},
        {{.url = "https://?swordfish"}, "url"},
        {{.url = "https://me:swordfish@a/"}, "url"}, /* lists show what is before the path */
        {{.url = "https://swordfish@a"}, "url"},
        {{.url = "https://a\\swordfish"}, "url"},
        {{.topics = ""}, "topic"},
        {{.topics = "a,,b"}, "topic"},
        {{.topics = "a.*.b"}, "topic"},
        {{.topics = "a,a"}, "topic"},
        {{.headers = "x: swordfish"}, "header"},
        {{.headers = "a: 1\nContent-Length: 9\n"}, "Content-Length"}, /* not ours to forge */
        {{.headers = "transfer-encoding: swordfish\n"}, "transfer-encoding"},
        {{.headers = "HOST: swordfish\n"}, "HOST"},
        {{.headers = "content-type: swordfish\n"}, "content-type"},
        {{.headers = "Webhook-Signature: swordfish\n"}, "Webhook-Signature"},
        {{.headers = "ce-id: swordfish\n"}, "ce-id"},
        {{.headers = "pawl-event-id: swordfish\n"}, "pawl-event-id"},
        {{.fail_statuses = "4x4"}, "fail_statuses"},
        {{.timeout_ms = 99}, "timeout_ms"},
        {{.timeout_ms = PAWL_ENDPOINT_TIMEOUT_MAX_MS + 1}, "timeout_ms"},
        {{.rate_per_minute = -1}, "rate_per_minute"},
        {{.ordering = (pawl_endpoint_ordering)3}, "ordering"},
        {{.format = (pawl_endpoint_format)4}, "format"},
        {{.lease_ms = 99}, "lease_ms"},
        {{.max_in_flight = -1}, "max_in_flight"},
        {{.max_retries = -1}, "max_retries"},
        {{.backoff_base_ms = 0}, "backoff_base_ms"},
        {{.backoff_max_ms = 0}, "backoff_max_ms"},
    };
    add_endpoint(s, "crm", "x");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_err err = {.code = PAWL_OK};
        pawl_endpoint_settings settings;
        pawl_endpoint_settings_init(&settings);
        settings.url = bad[i].settings.url;
        settings.topics = bad[i].settings.topics;
        settings.headers = bad[i].settings.headers;
        settings.fail_statuses = bad[i].settings.fail_statuses;
        settings.ordering = bad[i].settings.ordering;
        settings.format = bad[i].settings.format;
        /* Of the numbers the one that is named. */
        int64_t *const numbers[] = {&settings.timeout_ms,    &settings.rate_per_minute,
                                    &settings.lease_ms,      &settings.max_in_flight,
                                    &settings.max_retries,   &settings.backoff_base_ms,
                                    &settings.backoff_max_ms};
        const int64_t values[] = {bad[i].settings.timeout_ms,    bad[i].settings.rate_per_minute,
                                  bad[i].settings.lease_ms,      bad[i].settings.max_in_flight,
                                  bad[i].settings.max_retries,   bad[i].settings.backoff_base_ms,
                                  bad[i].settings.backoff_max_ms};
        static const char *const names[] = {"timeout_ms",    "rate_per_minute", "lease_ms",
                                            "max_in_flight", "max_retries",     "backoff_base_ms",
                                            "backoff_max_ms"};
        for (size_t j = 0; j < COUNT_OF(names); j++)
            if (strcmp(bad[i].named, names[j]) == 0)
                *numbers[j] = values[j];
        expect_code(pawl_endpoint_set(s->store, "crm", &settings, &err), PAWL_INVALID);
        if (strstr(err.text, bad[i].named) == NULL || strstr(err.text, "swordfish") != NULL)
            complain(HERE, "%zu: \"%s\" does not name %s, or quotes it", i, err.text, bad[i].named);
    }
    expect_number(endpoint(s, "crm").revision, 1);
}

static void the_most_headers_are_bounded(struct stage *s)
{
    char headers[PAWL_ENDPOINT_HEADERS_LEN_MAX + 2] = "";
    char *at = headers;
    for (int i = 0; i < PAWL_ENDPOINT_HEADERS_MAX + 1; i++)
        at += snprintf(at, sizeof(headers) - (size_t)(at - headers), "x-%d: v\n", i);
    pawl_endpoint_settings settings = endpoint_settings("x");
    pawl_err err;
    settings.headers = headers;
    expect_code(try_add(s, "crm", &settings, SECRET_1, &err), PAWL_INVALID);
    expect_true(strstr(err.text, "16") != NULL);
    (void)snprintf(headers, sizeof(headers), "x: %0*d\n", PAWL_ENDPOINT_HEADERS_LEN_MAX - 3, 0);
    expect_code(try_add(s, "crm", &settings, SECRET_1, &err), PAWL_INVALID);
    expect_true(strstr(err.text, "4096") != NULL);
    (void)snprintf(headers, sizeof(headers), "x: %0*d\n", PAWL_ENDPOINT_HEADERS_LEN_MAX - 4, 0);
    expect_code(try_add(s, "crm", &settings, SECRET_1, &err), PAWL_OK);
    assert_string_equal(credentials(s, "crm").headers, headers);
}

/* A bound on what is in flight has a share for each shard, or there is none. */
static void in_flight_needs_one_for_each_shard(struct stage *s)
{
    pawl_endpoint_settings settings = endpoint_settings("x");
    pawl_err err;
    settings.max_in_flight = s->shards - 1;
    expect_code(try_add(s, "crm", &settings, SECRET_1, &err), PAWL_INVALID);
    expect_true(strstr(err.text, "max_in_flight") != NULL);
    settings.max_in_flight = s->shards;
    expect_code(try_add(s, "crm", &settings, SECRET_1, &err), PAWL_OK);
}

/* Q-DURABLE */
static void endpoints_survive_a_restart(struct stage *s)
{
    add_endpoint(s, "crm", "x");
    pawl_endpoint_rotate_args args = {.name = "crm", .secret = SECRET_2, .overlap_ms = HOUR};
    expect_code(pawl_endpoint_rotate(s->store, &args, NULL), PAWL_OK);
    turn_off(s, "crm");
    pawl_endpoint before = endpoint(s, "crm");
    stage_reopen(s);
    pawl_endpoint after = endpoint(s, "crm");
    assert_memory_equal(&before, &after, sizeof(after));
    pawl_endpoint_credentials held = credentials(s, "crm");
    expect_number(held.secrets_count, 2);
    assert_string_equal(held.secrets[0].text, SECRET_2);
    assert_string_equal(held.secrets[1].text, SECRET_1);
}

static const struct suite_case cases[] = {
    CASE_ON(ENDPOINTS, a_new_endpoint_has_the_defaults),
    CASE_ON(ENDPOINTS, a_delivery_is_not_cut_off_before_its_timeout),
    CASE_ON(ENDPOINTS, all_settings_come_back),
    CASE_ON(ENDPOINTS, a_set_changes_what_it_names),
    CASE_ON(ENDPOINTS, a_name_is_taken_once),
    CASE_ON(ENDPOINTS, an_unknown_endpoint_is_gone),
    CASE_ON(ENDPOINTS, lists_go_by_name_in_pages),
    CASE_ON(ENDPOINTS, a_second_secret_signs_until_a_time),
    CASE_ON(ENDPOINTS, without_overlap_the_old_one_goes_at_once),
    CASE_ON(ENDPOINTS, secrets_never_sign_longer),
    CASE_ON(ENDPOINTS, secrets_are_bounded_and_differ),
    CASE_ON(ENDPOINTS, a_switch_is_on_record),
    CASE_ON(ENDPOINTS, a_disabled_endpoint_gives_no_jobs),
    CASE_ON(ENDPOINTS, an_endpoint_with_jobs_stays),
    CASE_ON(ENDPOINTS, a_name_with_jobs_is_not_taken_again),
    CASE_ON(ENDPOINTS, bad_endpoints_are_refused),
    CASE_ON(ENDPOINTS, bad_settings_are_refused),
    CASE_ON(ENDPOINTS, the_most_headers_are_bounded),
    CASE_ON(ENDPOINTS | MANY_SHARDS, in_flight_needs_one_for_each_shard),
    CASE_ON(ENDPOINTS | DURABLE, endpoints_survive_a_restart),
};
SUITE_GROUP(endpoint);
