/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoints.c - the small verbs of helpers.h for endpoints and events.
 * Owns:  nothing: each is one call, and fails the case where that fails.
 * Never: asserts what a case is about.
 */
#include "store/endpoints.h"

#include <string.h>

pawl_endpoint_settings endpoint_settings(const char *topics)
{
    pawl_endpoint_settings settings;
    pawl_endpoint_settings_init(&settings);
    settings.url = ENDPOINT_URL;
    settings.topics = topics;
    return settings;
}

pawl_code try_add(struct stage *s, const char *name, const pawl_endpoint_settings *settings,
                  const char *secret, pawl_err *err)
{
    pawl_endpoint_add_args args = {.name = name, .secret = secret, .settings = settings};
    return pawl_endpoint_add(s->store, &args, err);
}

static void must(const char *what, pawl_code code, const pawl_err *err)
{
    if (code != PAWL_OK)
        complain(HERE, "%s: %s", what, err->text);
}

void add_endpoint(struct stage *s, const char *name, const char *topics)
{
    pawl_endpoint_settings settings = endpoint_settings(topics);
    pawl_err err;
    must("add", try_add(s, name, &settings, SECRET_1, &err), &err);
}

void add_ordered(struct stage *s, const char *name, const char *topics)
{
    pawl_endpoint_settings settings = endpoint_settings(topics);
    pawl_err err;
    settings.ordering = PAWL_ORDERING_KEY;
    must("add", try_add(s, name, &settings, SECRET_1, &err), &err);
}

pawl_endpoint endpoint(struct stage *s, const char *name)
{
    pawl_endpoint row;
    pawl_err err;
    memset(&row, 0xaa, sizeof(row));
    must("get", pawl_endpoint_get(s->store, name, &row, &err), &err);
    return row;
}

pawl_endpoint_credentials credentials(struct stage *s, const char *name)
{
    pawl_endpoint_credentials held;
    pawl_err err;
    must("credentials", pawl_endpoint_credentials_get(s->store, name, &held, &err), &err);
    return held;
}

size_t count_endpoints(struct stage *s)
{
    pawl_endpoint *rows = stage_memory(s, 16 * sizeof(*rows));
    size_t count = 0;
    pawl_err err;
    must("list", pawl_endpoint_list(s->store, NULL, rows, 16, &count, &err), &err);
    return count;
}

void turn_off(struct stage *s, const char *name)
{
    pawl_endpoint_switch args = {.name = name, .by = "case"};
    pawl_err err;
    must("disable", pawl_endpoint_disable(s->store, &args, &err), &err);
}

void turn_on(struct stage *s, const char *name)
{
    pawl_endpoint_switch args = {.name = name, .by = "case"};
    pawl_err err;
    must("enable", pawl_endpoint_enable(s->store, &args, &err), &err);
}

pawl_published publish_row(struct stage *s, const pawl_publish_row *row)
{
    pawl_published result;
    pawl_err err;
    must("publish", pawl_publish(s->store, row, 1, &result, &err), &err);
    return result;
}

pawl_published publish_type(struct stage *s, const char *type)
{
    pawl_publish_row row;
    pawl_publish_init(&row);
    row.type = type;
    row.payload = "{}";
    row.payload_len = 2;
    return publish_row(s, &row);
}
