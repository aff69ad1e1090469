/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * heap.h - how much of the heap is in use, by the allocator's own count: with its overhead, and
 * with what was mapped apart. Under a sanitizer the heap is another one and the count is 0.
 */
#ifndef PAWLI_TEST_HEAP_H
#define PAWLI_TEST_HEAP_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_IS_COUNTED false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define HEAP_IS_COUNTED false
#endif
#endif
#ifndef HEAP_IS_COUNTED
#define HEAP_IS_COUNTED true
#endif

static inline size_t heap_bytes(void)
{
    if (!HEAP_IS_COUNTED)
        return 0;
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

#endif
