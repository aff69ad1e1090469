/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run_env.h - the environment of a program at work on one job.
 */
#ifndef PAWLI_RUNTIME_RUN_ENV_H
#define PAWLI_RUNTIME_RUN_ENV_H

#include "pawl/worker.h"

#define PAWLI_RUN_VARIABLES    8
#define PAWLI_RUN_VARIABLE_MAX 512

#define PAWLI_HEADER_PREFIX "PAWL_HEADER_" /* of a variable that tells a header */

struct pawli_run_env {
    char variables[PAWLI_RUN_VARIABLES][PAWLI_RUN_VARIABLE_MAX];
    char *headers; /* owned: "PAWL_HEADER_...=..." and a NUL for each; NULL: none */
    char **envp;   /* owned; its texts are not */
};

/* Ours, and what we have ourselves. False: no memory; pawli_run_env_clear() is due all the same. */
bool pawli_run_env_init(struct pawli_run_env *env, pawl_job_ctx *ctx);
void pawli_run_env_clear(struct pawli_run_env *env);

#endif
