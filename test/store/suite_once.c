/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_once.c - keys of requests that are to be carried out once.
 * Owns:  the cases about keys; what is done under one is not the store's business.
 * Never: looks behind the verbs.
 */
#include "store/helpers.h"
#include "store/once.h"

#include <stdlib.h>
#include <string.h>

static struct pawli_once_args args_of(char key, char digest, int64_t seed)
{
    struct pawli_once_args args = {.seed = seed, .keep_ms = 24 * HOUR, .hold_ms = MINUTE};
    memset(args.key, key, sizeof(args.key));
    memset(args.digest, digest, sizeof(args.digest));
    return args;
}

/* Begin a key; its answer, where there is one, must be `answer`. */
static struct pawli_once_found begin(struct stage *s, const struct pawli_once_args *args,
                                     const char *answer)
{
    struct pawli_once_found found = {.answer = NULL};
    expect_code(pawli_once_begin(s->store, args, &found, NULL), PAWL_OK);
    expect_true((found.answer != NULL) == (answer != NULL));
    if (answer != NULL) {
        expect_number((int64_t)found.answer_len, (int64_t)strlen(answer));
        assert_memory_equal(found.answer, answer, strlen(answer));
    }
    free(found.answer);
    found.answer = NULL;
    return found;
}

static void end(struct stage *s, const struct pawli_once_args *args, enum pawli_once_how how,
                const char *answer)
{
    struct pawli_once_end ending = {
        .how = how, .answer = answer, .answer_len = answer != NULL ? strlen(answer) : 0};
    memcpy(ending.key, args->key, sizeof(ending.key));
    expect_code(pawli_once_end(s->store, &ending, NULL), PAWL_OK);
}

static void an_answer_is_kept_for_its_request(struct stage *s)
{
    const struct pawli_once_args args = args_of('k', 'd', -7);
    const struct pawli_once_args other = args_of('k', 'e', 8);
    struct pawli_once_found first = begin(s, &args, NULL);
    expect_number(first.state, PAWLI_ONCE_NEW);
    expect_number(first.seed, -7);
    expect_near(s, first.at, 0);
    expect_number(begin(s, &args, NULL).state, PAWLI_ONCE_UNDER_WAY);
    expect_number(begin(s, &other, NULL).state, PAWLI_ONCE_OTHER);
    end(s, &args, PAWLI_ONCE_KEEP, "201 {}");
    expect_number(begin(s, &args, "201 {}").state, PAWLI_ONCE_DONE);
    expect_number(begin(s, &other, NULL).state, PAWLI_ONCE_OTHER);
    const struct pawli_once_args another = args_of('l', 'd', 9);
    expect_number(begin(s, &another, NULL).state, PAWLI_ONCE_NEW);
}

/* Whoever takes over has what the first one had: the ids come out the same. */
static void a_try_that_died_is_taken_over(struct stage *s)
{
    const struct pawli_once_args args = args_of('k', 'd', 1);
    const struct pawli_once_args later = args_of('k', 'd', 2);
    struct pawli_once_found first = begin(s, &args, NULL);
    int64_t at_us = story_us(s, first.at);
    age(s, MINUTE + SECOND);
    struct pawli_once_found second = begin(s, &later, NULL);
    expect_number(second.state, PAWLI_ONCE_AGAIN);
    expect_number(second.seed, 1);
    expect_number(story_us(s, second.at), at_us);
    expect_number(begin(s, &later, NULL).state, PAWLI_ONCE_UNDER_WAY); /* by one only */
    end(s, &later, PAWLI_ONCE_LET_GO, NULL);
    expect_number(begin(s, &later, NULL).state, PAWLI_ONCE_AGAIN);
    end(s, &later, PAWLI_ONCE_KEEP, "200 x");
    end(s, &args, PAWLI_ONCE_DROP, NULL); /* the first was not dead: what is kept stays */
    expect_number(begin(s, &args, "200 x").state, PAWLI_ONCE_DONE);
}

static void a_key_is_dropped_and_forgotten(struct stage *s)
{
    const struct pawli_once_args args = args_of('k', 'd', 1);
    const struct pawli_once_args other = args_of('k', 'e', 2);
    expect_number(begin(s, &args, NULL).state, PAWLI_ONCE_NEW);
    end(s, &args, PAWLI_ONCE_DROP, NULL);
    expect_number(begin(s, &other, NULL).state, PAWLI_ONCE_NEW);
    end(s, &other, PAWLI_ONCE_KEEP, "");
    expect_number(begin(s, &other, "").state, PAWLI_ONCE_DONE);
    age(s, 24 * HOUR - MINUTE);
    expect_number(begin(s, &other, "").state, PAWLI_ONCE_DONE);
    age(s, 2 * MINUTE);
    struct pawli_once_found found = begin(s, &args, NULL);
    expect_number(found.state, PAWLI_ONCE_NEW);
    expect_number(found.seed, 1);
}

static void a_key_survives_a_restart(struct stage *s)
{
    const struct pawli_once_args args = args_of('k', 'd', 1);
    (void)begin(s, &args, NULL);
    end(s, &args, PAWLI_ONCE_KEEP, "200 x");
    stage_reopen(s);
    expect_number(begin(s, &args, "200 x").state, PAWLI_ONCE_DONE);
}

static const struct suite_case cases[] = {
    CASE_ON(ENDPOINTS, an_answer_is_kept_for_its_request),
    CASE_ON(ENDPOINTS, a_try_that_died_is_taken_over),
    CASE_ON(ENDPOINTS, a_key_is_dropped_and_forgotten),
    CASE_ON(ENDPOINTS | DURABLE, a_key_survives_a_restart),
};
SUITE_GROUP(once);
