/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * story.c - tells each story kept and broken, and looks at what the checker says.
 * Owns:  the options that stories are checked with.
 * Never: expects a certain wording.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/story.h"

#include <stdlib.h>

struct check_options story_options(enum check_rule rule)
{
    return (struct check_options){
        .is_exact = true,
        .is_complete = true,
        .must_drain = rule == CHECK_C26,
        .round_trip_ms = 10,
        .reaper_ms = 500,
        .recover_ms = 2000,
        .calm_ms = 1000,
    };
}

void story_check(struct tale *tale, const struct check_options *options,
                 struct check_report *report)
{
    size_t len = 0;
    const uint8_t *bytes = pawli_trace_bytes(tale->writer, &len);
    pawl_err err;
    assert_int_equal(pawli_trace_flush(tale->writer, &err), PAWL_OK);
    assert_int_equal(check_history(bytes, len, options, report, &err), PAWL_OK);
    assert_false(report->is_cut);
}

static bool is_as_told(const struct check_report *report, enum check_rule rule, bool is_bad)
{
    for (int other = 1; other < CHECK_RULES_COUNT; other++) {
        if (report->is_broken[other] != (is_bad && other == (int)rule))
            return false;
    }
    return report->kept == report->violations_count;
}

/* Tell one story; false, and its violations printed, where the checker sees it otherwise. */
static bool tell(const struct story *story, bool is_bad, bool is_loose)
{
    struct tale tale;
    struct check_options options = story_options(story->rule);
    struct check_report *report = calloc(1, sizeof(*report));
    assert_non_null(report);
    options.is_exact = !is_loose;
    tale_init(&tale);
    tale.is_loose = is_loose;
    story->tell(&tale, is_bad);
    options.is_complete = !tale.is_open_ended;
    if (!tale.is_open_ended)
        tale_end(&tale);
    story_check(&tale, &options, report);
    tale_clear(&tale);
    bool is_right = is_as_told(report, story->rule, is_bad);
    if (!is_right) {
        print_error("%s, %s:\n", story->name, is_bad ? "broken" : "kept");
        check_report_print(report, stderr);
    }
    free(report);
    return is_right;
}

static void tell_all(const struct story *stories, size_t stories_count, bool is_loose)
{
    int wrong = 0;
    for (size_t i = 0; i < stories_count; i++) {
        wrong += !tell(&stories[i], false, is_loose);
        wrong += !tell(&stories[i], true, is_loose);
    }
    assert_int_equal(wrong, 0);
}

void stories_tell(const struct story *stories, size_t stories_count)
{
    tell_all(stories, stories_count, false);
}

void stories_tell_loose(const struct story *stories, size_t stories_count)
{
    tell_all(stories, stories_count, true);
}
