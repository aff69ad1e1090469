/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * topic.h - types of events, and which of them an endpoint wants.
 *
 *   a type     order.created: words of letters, digits, `_` and `-` with full stops between them
 *   a pattern  a type; or `order.*`: everything below order, at any depth, and not order itself; or
 *              `*`: everything
 *   a list     patterns with commas between them
 *
 * Compared byte by byte.
 */
#ifndef PAWLI_CORE_TOPIC_H
#define PAWLI_CORE_TOPIC_H

#include "pawl/pawl.h"

#define PAWLI_TOPIC_MAX         128  /* bytes in a type or a pattern */
#define PAWLI_TOPICS_MAX        100  /* patterns in a list */
#define PAWLI_TOPICS_LENGTH_MAX 4096 /* bytes in a list */

/* PAWL_INVALID names what is wrong and what is allowed. */
PAWL_MUST_USE pawl_code pawli_topic_check(const char *type, pawl_err *err);

/* Of a list: at least one pattern, each once. */
PAWL_MUST_USE pawl_code pawli_topics_check(const char *list, pawl_err *err);

/* True where a pattern of the list matches the type. Both must have passed their checks. */
bool pawli_topics_match(const char *list, const char *type);

#endif
