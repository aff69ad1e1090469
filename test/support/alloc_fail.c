/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * alloc_fail.c - an allocator that fails the Nth time.
 * Owns:  the countdown, one per thread.
 * Never: fails an allocation that nobody asked it to fail; touches what it allocates.
 */
#include "support/alloc_fail.h"

#include <errno.h>
#include <stddef.h>

/* The linker sends malloc to __wrap_malloc and __real_malloc to the true one: -Wl,--wrap=malloc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

/* The wrapped functions take no context, so that this one state has to stand at file scope. */
static _Thread_local uint64_t allocations_left; /* until the one that fails; 0: none does */
static _Thread_local bool has_failed;

void alloc_fail_nth(uint64_t nth)
{
    allocations_left = nth;
    has_failed = false;
}

bool alloc_fail_end(void)
{
    allocations_left = 0;
    return has_failed;
}

static bool fails_now(void)
{
    if (allocations_left == 0 || --allocations_left > 0)
        return false;
    has_failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}
