/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tailed.h - trees that know their last record, for records of which most come in at the end: those
 * cost no search. Made of the trees of <bsd/sys/tree.h>, whose macros read them, too; only
 * TAILED_PUT and TAILED_TAKE may change them. All zero is an empty one.
 */
#ifndef PAWLI_STORE_MEMORY_TAILED_H
#define PAWLI_STORE_MEMORY_TAILED_H

#include <bsd/sys/tree.h>
#include <stddef.h>

/* The first member is that of RB_HEAD(). */
#define TAILED_HEAD(name, type) \
    struct name {               \
        struct type *rbh_root;  \
        struct type *last;      \
    }

/* Put in, or give the one that is equal; take out. */
#define TAILED_PUT(name, head, elm)  name##_put((head), (elm))
#define TAILED_TAKE(name, head, elm) name##_take((head), (elm))

#define TAILED_PROTOTYPE(name, type, field, order)         \
    RB_PROTOTYPE(name, type, field, order)                 \
    struct type *name##_put(struct name *, struct type *); \
    void name##_take(struct name *, struct type *);

#define TAILED_GENERATE(name, type, field, order)                \
    RB_GENERATE(name, type, field, order)                        \
    struct type *name##_put(struct name *head, struct type *elm) \
    {                                                            \
        struct type *last = head->last;                          \
        if (last != NULL && order(last, elm) >= 0)               \
            return RB_INSERT(name, head, elm);                   \
        RB_SET(elm, last, field);                                \
        if (last != NULL)                                        \
            RB_RIGHT(last, field) = elm;                         \
        else                                                     \
            RB_ROOT(head) = elm;                                 \
        name##_RB_INSERT_COLOR(head, elm);                       \
        head->last = elm;                                        \
        return NULL;                                             \
    }                                                            \
    void name##_take(struct name *head, struct type *elm)        \
    {                                                            \
        if (head->last == elm)                                   \
            head->last = RB_PREV(name, head, elm);               \
        RB_REMOVE(name, head, elm);                              \
    }

#endif
