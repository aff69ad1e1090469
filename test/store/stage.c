/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stage.c - what a case plays on.
 * Owns:  the fresh store of one case, its handles, its time, and the memory of the case.
 * Never: asserts anything about the store; touches a job.
 */
#include "store/helpers.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *list, size_t count, size_t item_size)
{
    void *longer = realloc(list, (count + 1) * item_size);
    if (longer == NULL)
        complain(HERE, "out of memory");
    return longer;
}

pawl_store *stage_handle(struct stage *s)
{
    assert_true(s->handles_count < COUNT_OF(s->handles));
    pawl_store *store = s->kind->open(s->place);
    if (store == NULL)
        complain(HERE, "a handle on the %s store could not be opened", s->kind->name);
    s->handles[s->handles_count++] = store;
    return store;
}

struct stage *stage_raise(const struct store_kind *kind, int64_t shards)
{
    struct stage *s = calloc(1, sizeof(*s));
    if (s == NULL)
        complain(HERE, "out of memory");
    s->kind = kind;
    s->shards = shards;
    s->place = kind->make(shards);
    if (s->place == NULL)
        complain(HERE, "a %s store could not be made", kind->name);
    s->store = stage_handle(s);
    return s;
}

static void close_handles(struct stage *s)
{
    for (size_t i = 0; i < s->handles_count; i++)
        pawl_store_close(s->handles[i]);
    s->handles_count = 0;
    s->store = NULL;
}

void stage_strike(struct stage *s)
{
    if (s == NULL)
        return;
    close_handles(s);
    s->kind->drop(s->place);
    for (size_t i = 0; i < s->jobs_count; i++) {
        pawl_job_clear(s->jobs[i]);
        free(s->jobs[i]);
    }
    free(s->jobs);
    for (size_t i = 0; i < s->scraps_count; i++)
        free(s->scraps[i]);
    free(s->scraps);
    free(s);
}

void *stage_memory(struct stage *s, size_t size)
{
    s->scraps = grown(s->scraps, s->scraps_count, sizeof(s->scraps[0]));
    void *memory = calloc(1, size > 0 ? size : 1);
    if (memory == NULL)
        complain(HERE, "out of memory");
    s->scraps[s->scraps_count++] = memory;
    return memory;
}

void stage_reopen(struct stage *s)
{
    close_handles(s);
    if (s->kind->restart != NULL)
        s->kind->restart(s->place);
    s->store = stage_handle(s);
}

const pawl_job *stage_keep(struct stage *s, const pawl_job *job)
{
    s->jobs = grown(s->jobs, s->jobs_count, sizeof(s->jobs[0]));
    pawl_job *kept = malloc(sizeof(*kept));
    if (kept == NULL)
        complain(HERE, "out of memory");
    *kept = *job;
    s->jobs[s->jobs_count++] = kept;
    return kept;
}

void age(struct stage *s, int64_t ms)
{
    s->kind->age(s->place, ms);
    if (!s->kind->is_clock_turned)
        s->aged_us += ms * 1000;
}

pawl_wall now(struct stage *s)
{
    pawl_wall at = {0};
    pawl_err err;
    pawl_code code = pawl_now(s->store, &at, &err);
    if (code != PAWL_OK)
        complain(HERE, "now: %s", err.text);
    return at;
}

int64_t story_us(const struct stage *s, pawl_wall at)
{
    return at.us == 0 ? 0 : at.us + s->aged_us;
}
