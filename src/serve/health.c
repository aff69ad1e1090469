/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * health.c - whether the server lives, whether it is ready, and its figures.
 * Owns:  what ready means.
 * Never: asks the store whether the server lives.
 */
#include "serve/api.h"
#include "serve/json_write.h"

#include "store/health.h"

#include <string.h>

pawl_code pawli_api_livez(struct pawli_call *call)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_flag(&writer, "is_alive", true);
    pawli_put_text(&writer, "version", pawl_version());
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

/* ---------------------------------------------------------------- ready */

struct finding {
    enum pawli_health_level level;
    char text[PAWL_ERR_TEXT_MAX];
};

static void keep(void *user, const struct pawli_finding *finding)
{
    struct finding *worst = user;
    if (finding->level >= worst->level) {
        worst->level = finding->level;
        memcpy(worst->text, finding->text, sizeof(worst->text));
    }
}

/* The store answers, its schema is the one we know (a handle was opened), and a reaper has run
 * lately (RULE-020-020). */
pawl_code pawli_api_readyz(struct pawli_call *call)
{
    struct pawli_writer writer;
    struct finding worst = {PAWLI_HEALTH_OK, ""};
    struct pawli_health health = {.tell = keep, .user = &worst};
    const struct pawli_health_args args = {call->host->reaper_interval_ms, call->host->clock};
    pawl_code code = pawli_health_reaper(call->store, &args, &health, &call->err);
    if (code != PAWL_OK)
        return code;
    if (worst.level == PAWLI_HEALTH_ERROR) {
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_NOT_READY, "%s", worst.text);
        return PAWL_OK;
    }
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_flag(&writer, "is_ready", true);
    pawli_put_text(&writer, "reaper", worst.text);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_metrics(struct pawli_call *call)
{
    call->answer->status = 200;
    call->answer->type = "text/plain; version=0.0.4; charset=utf-8";
    return call->host->metrics(call->host->user, &call->answer->body, &call->err);
}
