/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * model_inside.h - what the files of the model share: judging time, and complaining.
 */
#ifndef PAWLT_STORE_MODEL_INSIDE_H
#define PAWLT_STORE_MODEL_INSIDE_H

#include "store/model.h"

/* Whether an instant had come when a call took place. */
enum model_when {
    MODEL_NOT_YET = 0,
    MODEL_COME = 1,
    MODEL_UNSURE = 2 /* the span and the instant's range meet */
};

enum model_when model_has_come(struct model_span span, struct model_instant at);

/* Whether the job was under a valid lease; MODEL_COME: yes. */
enum model_when model_is_leased(struct model_span span, const struct model_job *job);

/* An instant so long after the call. */
struct model_instant model_after(struct model_span span, int64_t ms);

/* Keep the text as the model's complaint and give it. */
const char *model_wrong(struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Compare, or complain. */
const char *model_same(struct model *model, const char *what, int64_t told, int64_t expected);
const char *model_same_code(struct model *model, pawl_code told, pawl_code expected);

/* Check an instant that the store tells against what is known of it, and know it exactly. */
const char *model_learn(struct model *model, const char *what, pawl_wall told,
                        struct model_instant *known);

/* What an expiry, or a missed deadline, makes of a job. */
void model_expire(struct model *model, struct model_job *job, struct model_span span);
void model_miss(struct model_job *job, struct model_span span);

/* Leave with the complaint, if there is one. */
#define MODEL_TRY(check)              \
    do {                              \
        const char *wrong_ = (check); \
        if (wrong_ != NULL)           \
            return wrong_;            \
    } while (0)

#endif
