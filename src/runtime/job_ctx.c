/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job_ctx.c - what a handler sees of its job, and what it may say of it.
 * Owns:  the accessors of pawl_job_ctx; the cleaning of texts that come from handlers.
 * Never: decides whether a job may go on (the keeper does, by the clock).
 */
#include "runtime/job_ctx.h"

#include "base/clock.h"
#include "base/text.h"
#include "pawl/headers.h"

#include <assert.h>
#include <string.h>

void pawli_clean_text(char *to, size_t to_size, const char *from, const char *controls)
{
    size_t len = 0;
    assert(to_size > 0);
    while (from != NULL && *from != '\0' && len + 1 < to_size) {
        /* As far as it is good, one byte of what is not, and so on. */
        size_t good = pawli_text_good(from, controls);
        size_t room = to_size - 1 - len;
        if (good > room) {
            good = room;
            while (good > 0 && ((unsigned char)from[good] & 0xc0) == 0x80)
                good--; /* not into the middle of a character */
            memcpy(to + len, from, good);
            len += good;
            break;
        }
        memcpy(to + len, from, good);
        len += good;
        from += good;
        if (*from != '\0' && len + 1 < to_size) {
            to[len++] = '?';
            from++;
        }
    }
    to[len] = '\0';
}

const pawl_job *pawl_job_of(const pawl_job_ctx *ctx)
{
    return ctx != NULL ? &ctx->job : NULL;
}

const char *pawl_job_header(const pawl_job_ctx *ctx, const char *name, size_t *ret_len)
{
    return ctx != NULL ? pawl_headers_find(ctx->job.headers, name, ret_len) : NULL;
}

const char *pawl_job_worker(const pawl_job_ctx *ctx)
{
    return ctx != NULL ? ctx->worker : "";
}

int64_t pawl_job_fence(const pawl_job_ctx *ctx)
{
    return ctx != NULL ? ctx->job.fence : 0;
}

int64_t pawl_job_attempt(const pawl_job_ctx *ctx)
{
    return ctx != NULL ? ctx->job.attempts + 1 : 0;
}

int64_t pawl_job_left_ms(const pawl_job_ctx *ctx)
{
    if (ctx == NULL)
        return 0;
    pawl_mono until = pawli_pump_run_until(ctx->pump, ctx->slot);
    int64_t left_ms = pawli_mono_diff_ms(ctx->clock->mono(ctx->clock->user), until);
    return left_ms > 0 ? left_ms : 0;
}

bool pawl_job_is_cancelled(pawl_job_ctx *ctx)
{
    return ctx == NULL || pawli_pump_stop_why(ctx->pump, ctx->slot, NULL) != PAWLI_WHY_NONE;
}

const char *pawl_job_cancel_reason(pawl_job_ctx *ctx)
{
    if (ctx == NULL)
        return pawli_why_name(PAWLI_WHY_NONE);
    return pawli_why_name(pawli_pump_stop_why(ctx->pump, ctx->slot, NULL));
}

int pawl_job_cancel_fd(const pawl_job_ctx *ctx)
{
    return ctx != NULL ? ctx->cancel_fd : -1;
}

int64_t pawl_job_grace_ms(pawl_job_ctx *ctx)
{
    pawl_mono kill_by;
    if (ctx == NULL || pawli_pump_stop_why(ctx->pump, ctx->slot, &kill_by) == PAWLI_WHY_NONE)
        return -1;
    int64_t left_ms = pawli_mono_diff_ms(ctx->clock->mono(ctx->clock->user), kill_by);
    return left_ms > 0 ? left_ms : 0;
}

void pawl_job_progress(pawl_job_ctx *ctx, const char *text)
{
    if (ctx == NULL)
        return;
    pawl_event event = {.kind = PAWL_EVENT_JOB_PROGRESS, .level = PAWL_LEVEL_INFO};
    pawli_clean_text(event.text, sizeof(event.text), text, "");
    pawli_pump_tell(ctx->pump, ctx->slot, &event);
}

void pawl_job_error(pawl_job_ctx *ctx, const char *error_code, const char *error_text)
{
    if (ctx == NULL)
        return;
    pawli_clean_text(ctx->error_code, sizeof(ctx->error_code), error_code, "");
    pawli_clean_text(ctx->error_text, sizeof(ctx->error_text), error_text, "\t\n");
}

void pawl_job_delay(pawl_job_ctx *ctx, int64_t delay_ms)
{
    if (ctx != NULL)
        ctx->delay_ms = delay_ms;
}
