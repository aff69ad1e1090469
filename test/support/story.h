/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * story.h - pairs of histories for tests of the checker: a promise kept, and the same promise
 * broken.
 */
#ifndef PAWLI_TEST_STORY_H
#define PAWLI_TEST_STORY_H

#include "support/tale.h"

struct story {
    const char *name;
    enum check_rule rule;
    void (*tell)(struct tale *tale, bool is_bad);
};
#define STORY(rule, name)            \
    {                                \
#name, CHECK_##rule, (name), \
    }

/* What the checker may take for granted in a tale. */
struct check_options story_options(enum check_rule rule);

/* Check a tale's history; the test fails where it cannot be read. */
void story_check(struct tale *tale, const struct check_options *options,
                 struct check_report *report);

/* Tell each story twice: kept, nothing may be reported; broken, its rule must be, and no other. */
void stories_tell(const struct story *stories, size_t stories_count);

/* The same with histories whose calls were timed by their callers. */
void stories_tell_loose(const struct story *stories, size_t stories_count);

#endif
