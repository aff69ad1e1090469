/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_fuzz.c - what must hold for everything that is said of an endpoint or an event. Run by
 * libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: what is taken comes back as it was given, from the endpoint and from the
 *        event behind the job; what is before the path of a URL, which lists show, has no
 *        credentials; what is refused is named, in printable text, and leaves nothing behind.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/endpoint_fuzz.h"

#include "core/event.h"
#include "pawl/headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXTS 10

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check_refusal(pawl_code rc, const pawl_err *err)
{
    require(rc == PAWL_INVALID && err->code == rc && err->text[0] != '\0');
    for (size_t i = 0; err->text[i] != '\0'; i++)
        require((unsigned char)err->text[i] >= ' ');
}

static void check_endpoint(pawl_store *store, const struct endpoint_fuzz_input *input)
{
    pawl_endpoint_credentials held;
    pawl_endpoint row;
    pawl_header header;
    require(pawl_endpoint_get(store, input->name, &row, NULL) == PAWL_OK);
    require(strcmp(row.name, input->name) == 0 && strcmp(row.url, input->url) == 0 &&
            strcmp(row.topics, input->topics) == 0 &&
            strcmp(row.fail_statuses, input->statuses) == 0);
    const char *host = strstr(row.url, "://");
    require(host != NULL && strcspn(host + 3, "/?#") > 0);
    require(memchr(host + 3, '@', strcspn(host + 3, "/?#")) == NULL);
    require(pawl_endpoint_credentials_get(store, input->name, &held, NULL) == PAWL_OK);
    require(strcmp(held.headers, input->headers) == 0 && held.secrets_count == 1 &&
            strcmp(held.secrets[0].text, input->secret) == 0);
    for (const char *at = held.headers; pawl_headers_next(&at, &header);)
        require(header.name_len != 4 || strncasecmp(header.name, "host", 4) != 0);
}

/* The one job, and the event behind it. */
static void check_job(pawl_store *store, const struct endpoint_fuzz_input *input, const char *id)
{
    char queue[PAWL_NAME_MAX + 1];
    pawl_claim_line line = {
        .queue = pawli_endpoint_queue(input->name, queue), .jobs_max = 2, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = "w", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job jobs[2];
    size_t count = 0;
    struct pawli_event_info info;
    require(pawl_claim(store, &args, jobs, 2, &count, NULL) == PAWL_OK && count == 1);
    require(pawli_event_read(&jobs[0], &info, NULL) == PAWL_OK);
    require(strcmp(info.type, input->type) == 0 && strcmp(info.id, id) == 0 &&
            strcmp(info.key, input->key) == 0);
    require(jobs[0].payload_len == 1 && memcmp(jobs[0].payload, "x", 1) == 0);
    require(strcmp(jobs[0].ordering_key, input->key) == 0);
    pawl_job_clear(&jobs[0]);
}

static enum endpoint_fuzz_end publish(pawl_store *store, const struct endpoint_fuzz_input *input)
{
    pawl_err err = {.text = ""};
    pawl_published result;
    pawl_publish_row row;
    pawl_publish_init(&row);
    row.type = input->type;
    row.id = input->id[0] != '\0' ? input->id : NULL;
    row.ordering_key = input->key;
    row.headers = input->event_headers;
    row.payload = "x";
    row.payload_len = 1;
    pawl_code rc = pawl_publish(store, &row, 1, &result, &err);
    if (rc != PAWL_OK) {
        check_refusal(rc, &err);
        return ENDPOINT_FUZZ_ADDED;
    }
    require(result.code == PAWL_OK && result.jobs == result.endpoints);
    require((result.jobs == 1) == pawli_topics_match(input->topics, input->type));
    require(row.id == NULL || strcmp(result.id, row.id) == 0);
    if (result.jobs == 0)
        return ENDPOINT_FUZZ_ADDED;
    check_job(store, input, result.id);
    row.id = result.id; /* as it was told: it is not made twice, unless the store made the id */
    require(pawl_publish(store, &row, 1, &result, NULL) == PAWL_OK);
    require(input->id[0] == '\0' || result.code == PAWL_EXISTS);
    return ENDPOINT_FUZZ_PUBLISHED;
}

enum endpoint_fuzz_end endpoint_fuzz_one(const struct endpoint_fuzz_input *input)
{
    enum endpoint_fuzz_end end = ENDPOINT_FUZZ_REFUSED;
    pawl_memory *memory = NULL;
    pawl_store *store = NULL;
    pawl_err err = {.text = ""};
    pawl_endpoint_settings settings;
    require(pawl_memory_new(NULL, &memory, NULL) == PAWL_OK);
    require(pawl_memory_open(memory, &store, NULL) == PAWL_OK);
    pawl_endpoint_settings_init(&settings);
    settings.url = input->url;
    settings.topics = input->topics;
    settings.headers = input->headers;
    settings.fail_statuses = input->statuses;
    settings.ordering = PAWL_ORDERING_KEY;
    pawl_endpoint_add_args args = {
        .name = input->name, .secret = input->secret, .settings = &settings};
    pawl_code rc = pawl_endpoint_add(store, &args, &err);
    if (rc == PAWL_OK) {
        check_endpoint(store, input);
        end = publish(store, input);
    } else {
        size_t count = 1;
        pawl_endpoint row;
        check_refusal(rc, &err);
        require(pawl_endpoint_list(store, NULL, &row, 1, &count, NULL) == PAWL_OK && count == 0);
    }
    pawl_store_close(store);
    pawl_memory_free(memory);
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Blocks of exactly their size: a sanitizer sees any read behind the NUL. */
    char *texts[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        size_t len = size > 0 ? strnlen((const char *)data, size) : 0;
        texts[i] = malloc(len + 1);
        require(texts[i] != NULL);
        if (len > 0)
            memcpy(texts[i], data, len);
        texts[i][len] = '\0';
        len += len < size; /* the NUL */
        data += len;
        size -= len;
    }
    struct endpoint_fuzz_input input = {texts[0], texts[1], texts[2], texts[3], texts[4],
                                        texts[5], texts[6], texts[7], texts[8], texts[9]};
    (void)endpoint_fuzz_one(&input); /* every end is right for some input */
    for (size_t i = 0; i < TEXTS; i++)
        free(texts[i]);
    return 0;
}
