/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job_ctx.h - one run of one job, as pool.c fills it and job_ctx.c shows it to the handler.
 */
#ifndef PAWLI_RUNTIME_JOB_CTX_H
#define PAWLI_RUNTIME_JOB_CTX_H

#include "runtime/pump.h"

struct pawl_job_ctx {
    struct pawli_pump *pump;
    const char *worker;
    const pawl_clock *clock;
    struct pawli_slot slot;
    pawl_job job;  /* owned while it runs */
    int cancel_fd; /* an eventfd; -1: none */
    int64_t delay_ms;
    char error_code[PAWL_ERROR_CODE_MAX + 1];
    char error_text[PAWL_ERROR_TEXT_MAX + 1];
    bool is_given_up; /* pool.mutex */
    bool is_replaced; /* pool.mutex */
};

/* Copy a text so that a store takes it: what is neither UTF-8 nor allowed becomes '?', and it is
 * cut at a whole character. `controls` as in base/text.h; NULL counts as empty. */
void pawli_clean_text(char *to, size_t to_size, const char *from, const char *controls);

#endif
