/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * topic_cases.h - which list of patterns matches which type of events: one table for topic.c and
 * for every store. test/pgtap/publish_test.sql has the same rows.
 */
#ifndef PAWLT_STORE_TOPIC_CASES_H
#define PAWLT_STORE_TOPIC_CASES_H

#include <stdbool.h>

static const struct {
    const char *list;
    const char *type;
    bool is_match;
} topic_cases[] = {
    {"order.created", "order.created", true},
    {"order.created", "order.create", false},
    {"order.created", "order.created2", false},
    {"order.created", "Order.created", false},
    {"order.created", "order", false},
    {"order", "order", true},
    {"order", "order.created", false},
    {"order.*", "order.created", true},
    {"order.*", "order.created.twice", true},
    {"order.*", "order", false},
    {"order.*", "orders.created", false},
    {"order.*", "order-x.created", false},
    {"order.item.*", "order.item.added", true},
    {"order.item.*", "order.item", false},
    {"order.item.*", "order.items.added", false},
    {"*", "order", true},
    {"*", "order.created", true},
    {"a,b,order.*", "order.created", true},
    {"a,b.*,c", "c", true},
    {"a,b.*,c", "b.x", true},
    {"a,b.*,c", "b", false},
    {"a,b.*,c", "d", false},
    {"a-b_C.9", "a-b_C.9", true},
    {"a_b", "axb", false}, /* no wildcard of SQL's */
    {"a_b.*", "axb.c", false},
    {"a", "a.a", false},
    {"a.a", "a", false},
    {"a.*,a", "a", true},
};

#endif
