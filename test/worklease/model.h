/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * model.h - one domain as the document of work leases has it, with owners and deadlines: arrays and
 * linear search, on purpose.
 */
#ifndef PAWLT_WORKLEASE_MODEL_H
#define PAWLT_WORKLEASE_MODEL_H

#include "pawl/worklease.h"

#define MODEL_OFFSETS_MAX 32

struct model_set {
    int64_t offsets[MODEL_OFFSETS_MAX];
    size_t count;
};

struct model {
    char name[32];
    int64_t max_retries;
    int64_t backlog_max;
    bool is_leased;
    int64_t offset;
    const char *owner;
    pawl_token token; /* as the store gave it; stays when the lease has ended */
    pawl_token token_before;
    int64_t acquired_at_us;
    int64_t expires_at_us; /* 0: never */
    int64_t retry_count;
    struct model_set processed;
    struct model_set failed;
    struct model_set backlog; /* in the order of arrival */
};

enum operation_kind {
    ACQUIRE,
    SUCCEED,
    FAIL,
    RENEW
};

struct operation {
    enum operation_kind kind;
    int64_t offset; /* ACQUIRE */
    const char *owner;
    int64_t lease_ms; /* ACQUIRE (PAWL_DEFAULT: none), RENEW */
    pawl_token token; /* but ACQUIRE */
    int64_t now_us;
};

/* What an operation comes to. What does not apply is zero; of a new lease the token is the store's
 * to choose. */
struct outcome {
    pawl_code code;
    pawl_worklease_acquired acquired;
    pawl_worklease_ended ended;
    pawl_wall renewed;
};

bool model_set_has(const struct model_set *set, int64_t offset);

/* What the model says of an operation. It changes the model; after ACQUIRED call model_token(). */
struct outcome model_apply(struct model *model, const struct operation *op);
void model_token(struct model *model, const pawl_token *token);

#endif
