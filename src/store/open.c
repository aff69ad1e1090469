/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * open.c - a store by its URL.
 * Owns:  which kinds of URLs there are.
 * Never: tells a URL, which may hold a password; reads the environment.
 */
#include "store/open.h"

#include "base/error.h"
#include "store/store.h"
#include "store/stream.h"

#include <stdlib.h>
#include <string.h>

struct pawl_source {
    enum pawli_store_kind kind;
    pawl_source_options options; /* but for its url: */
    char *url;                   /* owned */
    pawl_memory *memory;
    pawl_sqlite *sqlite;
    struct pawli_stream stream; /* of hints, which the handles on a server share */
};

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

enum pawli_store_kind pawli_store_kind(const char *url)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    if (strcmp(url, "memory:") == 0)
        return PAWLI_STORE_MEMORY;
    if (begins_with(url, "sqlite:"))
        return PAWLI_STORE_SQLITE;
    if (begins_with(url, "postgres://") || begins_with(url, "postgresql://"))
        return PAWLI_STORE_POSTGRES;
    /* keyword=value, blanks allowed around the sign. */
    size_t keyword = strspn(url, letters);
    return keyword > 0 && url[keyword + strspn(url + keyword, " ")] == '=' ? PAWLI_STORE_POSTGRES
                                                                           : PAWLI_STORE_NONE;
}

void pawl_source_options_init(pawl_source_options *options)
{
    if (options != NULL)
        *options = (pawl_source_options){
            .clock = pawl_clock_system(),
            .random = pawl_random_system(),
            .call_timeout_ms = PAWL_DEFAULT,
            .payload_max = PAWL_DEFAULT,
        };
}

static pawl_code new_memory(pawl_source *source, pawl_err *err)
{
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.clock = source->options.clock;
    options.random = source->options.random;
    if (source->options.payload_max != PAWL_DEFAULT)
        options.payload_max = source->options.payload_max;
    return pawl_memory_new(&options, &source->memory, err);
}

static pawl_code new_sqlite(pawl_source *source, pawl_err *err)
{
    const char *path = source->url + strlen("sqlite:");
    pawl_sqlite_options options;
    pawl_sqlite_options_init(&options);
    options.path = path[0] != '\0' ? path : NULL;
    options.clock = source->options.clock;
    options.random = source->options.random;
    if (source->options.payload_max != PAWL_DEFAULT)
        options.payload_max = source->options.payload_max;
    if (source->options.call_timeout_ms != PAWL_DEFAULT)
        options.call_timeout_ms = source->options.call_timeout_ms;
    options.is_only_opened = source->options.is_only_opened;
    return pawl_sqlite_new(&options, &source->sqlite, err);
}

static pawl_code open_postgres(pawl_source *source, pawl_store **ret_store, pawl_err *err)
{
    pawl_postgres_options options;
    pawl_postgres_options_init(&options);
    options.conninfo = source->url;
    options.clock = source->options.clock;
    options.random = source->options.random;
    if (source->options.payload_max != PAWL_DEFAULT)
        options.payload_max = source->options.payload_max;
    if (source->options.call_timeout_ms != PAWL_DEFAULT)
        options.call_timeout_ms = source->options.call_timeout_ms;
    pawl_code rc = pawl_postgres_open(&options, ret_store, err);
    if (rc == PAWL_OK)
        (*ret_store)->stream = &source->stream;
    return rc;
}

pawl_code pawli_store_url_check(const char *url, pawl_err *err)
{
    if (pawli_store_kind(url) == PAWLI_STORE_NONE)
        return pawli_fail(err, PAWL_INVALID,
                          "url names no kind of store; it must be postgres://..., "
                          "postgresql://..., sqlite:PATH or memory:");
    return PAWL_OK;
}

static pawl_code check(const pawl_source_options *options, pawl_err *err)
{
    if (options == NULL || options->url == NULL)
        return pawli_fail(err, PAWL_INVALID, "url is missing (NULL)");
    if (options->clock == NULL || options->random == NULL)
        return pawli_fail(err, PAWL_INVALID, "clock or random is missing (NULL)");
    return pawli_store_url_check(options->url, err);
}

pawl_code pawl_source_new(const pawl_source_options *options, pawl_source **ret_source,
                          pawl_err *err)
{
    pawl_code rc = check(options, err);
    if (rc == PAWL_OK && ret_source == NULL)
        rc = pawli_fail(err, PAWL_INVALID, "ret_source is missing (NULL)");
    if (rc != PAWL_OK)
        return rc;
    size_t url_size = strlen(options->url) + 1;
    pawl_source *source = calloc(1, sizeof(*source));
    if (source == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawli_stream_init(&source->stream);
    source->url = malloc(url_size);
    if (source->url == NULL) {
        pawl_source_free(source);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    source->kind = pawli_store_kind(options->url);
    source->options = *options;
    source->options.url = NULL;
    memcpy(source->url, options->url, url_size);
    if (source->kind == PAWLI_STORE_MEMORY)
        rc = new_memory(source, err);
    else if (source->kind == PAWLI_STORE_SQLITE)
        rc = new_sqlite(source, err);
    if (rc == PAWL_OK)
        *ret_source = source;
    else
        pawl_source_free(source);
    return rc;
}

pawl_code pawl_source_open(pawl_source *source, pawl_store **ret_store, pawl_err *err)
{
    if (source == NULL || ret_store == NULL)
        return pawli_fail(err, PAWL_INVALID, "source or ret_store is missing (NULL)");
    if (source->kind == PAWLI_STORE_MEMORY)
        return pawl_memory_open(source->memory, ret_store, err);
    if (source->kind == PAWLI_STORE_SQLITE)
        return pawl_sqlite_open(source->sqlite, ret_store, err);
    return open_postgres(source, ret_store, err);
}

void pawl_source_free(pawl_source *source)
{
    if (source == NULL)
        return;
    pawl_memory_free(source->memory);
    pawl_sqlite_free(source->sqlite);
    pawli_stream_clear(&source->stream);
    free(source->url);
    free(source);
}
