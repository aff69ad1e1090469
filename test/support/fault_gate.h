/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault_gate.h - lets calls of fault stores go wrong, or hang, from another thread: while a gate is
 * closed for a verb its calls wait in front of it, whatever deadline they have; while a kind of
 * fault is set for a verb every call of it goes wrong in that way. Safe from every thread.
 */
#ifndef PAWLT_SUPPORT_FAULT_GATE_H
#define PAWLT_SUPPORT_FAULT_GATE_H

#include "support/fault_store.h"

#include <pthread.h>

struct fault_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_closed[FAULT_VERBS];
    enum fault_kind kinds[FAULT_VERBS];
    int64_t passed[FAULT_VERBS]; /* calls that came, waiting ones too */
    int64_t waiting[FAULT_VERBS];
};

void fault_gate_init(struct fault_gate *gate);
void fault_gate_clear(struct fault_gate *gate); /* nobody may stand in front of it */

/* For one verb, or for all of them (FAULT_ANY_VERB). Opening ends the faults, too. */
void fault_gate_close(struct fault_gate *gate, enum fault_verb verb);
void fault_gate_open(struct fault_gate *gate, enum fault_verb verb);
void fault_gate_set(struct fault_gate *gate, enum fault_verb verb, enum fault_kind kind);

int64_t fault_gate_passed(struct fault_gate *gate, enum fault_verb verb);
int64_t fault_gate_waiting(struct fault_gate *gate, enum fault_verb verb);

/* For fault_store_on_pass(), with the gate as its user: waits while it is closed for the verb, and
 * gives what becomes of the call. */
enum fault_kind fault_gate_pass(void *gate, enum fault_verb verb);

#endif
