/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault_gate.c - lets calls of fault stores hang or go wrong, from another thread.
 * Owns:  which verbs are closed, and which fault they have.
 * Never: knows a store.
 */
#include "support/fault_gate.h"

#include <assert.h>
#include <stdlib.h>

void fault_gate_init(struct fault_gate *gate)
{
    *gate = (struct fault_gate){.is_closed = {false}};
    if (pthread_mutex_init(&gate->mutex, NULL) != 0 || pthread_cond_init(&gate->changed, NULL) != 0)
        abort();
}

void fault_gate_clear(struct fault_gate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
}

static void set(struct fault_gate *gate, enum fault_verb verb, bool is_closed, enum fault_kind kind)
{
    pthread_mutex_lock(&gate->mutex);
    for (int i = 0; i < FAULT_VERBS; i++) {
        if (verb != FAULT_ANY_VERB && (int)verb != i)
            continue;
        gate->is_closed[i] = is_closed;
        gate->kinds[i] = kind;
    }
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void fault_gate_close(struct fault_gate *gate, enum fault_verb verb)
{
    set(gate, verb, true, FAULT_NONE);
}

void fault_gate_open(struct fault_gate *gate, enum fault_verb verb)
{
    set(gate, verb, false, FAULT_NONE);
}

void fault_gate_set(struct fault_gate *gate, enum fault_verb verb, enum fault_kind kind)
{
    set(gate, verb, false, kind);
}

static int64_t look(struct fault_gate *gate, const int64_t *numbers, enum fault_verb verb)
{
    assert(verb < FAULT_VERBS);
    pthread_mutex_lock(&gate->mutex);
    int64_t number = numbers[verb];
    pthread_mutex_unlock(&gate->mutex);
    return number;
}

int64_t fault_gate_passed(struct fault_gate *gate, enum fault_verb verb)
{
    return look(gate, gate->passed, verb);
}

int64_t fault_gate_waiting(struct fault_gate *gate, enum fault_verb verb)
{
    return look(gate, gate->waiting, verb);
}

enum fault_kind fault_gate_pass(void *user, enum fault_verb verb)
{
    struct fault_gate *gate = user;
    assert(verb < FAULT_VERBS);
    pthread_mutex_lock(&gate->mutex);
    gate->passed[verb]++;
    gate->waiting[verb]++;
    while (gate->is_closed[verb])
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->waiting[verb]--;
    enum fault_kind kind = gate->kinds[verb];
    pthread_mutex_unlock(&gate->mutex);
    return kind;
}
