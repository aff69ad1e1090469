/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * topic_fuzz.c - what must hold for every list of patterns. Run by libFuzzer, and by the unit suite
 * over a fixed corpus.
 * Owns:  the property: a list matches whatever one of its patterns matches alone; a pattern without
 *        a star matches itself and nothing longer; one with a star what lies below it; a refused
 *        list gives its reason.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/topic_fuzz.h"

#include "core/topic.h"

#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

/* One pattern of an accepted list. */
static void check_pattern(const char *list, const char *pattern, size_t len)
{
    char alone[PAWLI_TOPIC_MAX + 1];
    char type[PAWLI_TOPIC_MAX + 3];
    require(len >= 1 && len <= PAWLI_TOPIC_MAX);
    memcpy(alone, pattern, len);
    alone[len] = '\0';
    memcpy(type, alone, len + 1);
    require(pawli_topics_check(alone, NULL) == PAWL_OK);
    if (alone[len - 1] == '*') {
        require(pawli_topic_check(alone, NULL) == PAWL_INVALID);
        type[len - 1] = 'x'; /* a word below it */
        require(pawli_topics_match(alone, type) && pawli_topics_match(list, type));
        if (len > 2) {
            type[len - 2] = '\0'; /* the word itself */
            require(!pawli_topics_match(alone, type));
        }
        return;
    }
    require(pawli_topic_check(alone, NULL) == PAWL_OK);
    require(pawli_topics_match(alone, alone) && pawli_topics_match(list, alone));
    if (len + 2 > PAWLI_TOPIC_MAX)
        return;
    memcpy(type + len, ".x", 3);
    require(!pawli_topics_match(alone, type));
}

bool topic_fuzz_one(const char *list)
{
    pawl_err err = {.code = PAWL_OK, .text = ""};
    pawl_code rc = pawli_topics_check(list, &err);
    if (rc != PAWL_OK) {
        require(rc == PAWL_INVALID && err.code == rc && strncmp(err.text, "topic", 5) == 0);
        for (size_t i = 0; err.text[i] != '\0'; i++)
            require(err.text[i] >= ' ' && err.text[i] <= '~');
        return false;
    }
    for (const char *at = list; at != NULL;) {
        size_t len = strcspn(at, ",");
        check_pattern(list, at, len);
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind the NUL. */
    char *list = malloc(size + 1);
    if (list == NULL)
        return 0;
    if (size > 0)
        memcpy(list, data, size);
    list[size] = '\0';
    (void)topic_fuzz_one(list); /* both answers are right for some list */
    free(list);
    return 0;
}
