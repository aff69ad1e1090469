/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job_json.c - a job as JSON; pages of rows; filters.
 * Owns:  the names of a job's members, which are those of `pawl jobs --json`.
 * Never: tells a token, a payload or a header but to the worker who holds the lease.
 */
#include "serve/job_json.h"

#include "base/error.h"

#include <string.h>

static void put_lease(struct pawli_writer *writer, const pawl_job *job)
{
    pawli_put_text(writer, "worker", job->worker);
    pawli_put_number(writer, "fence", job->fence);
    pawli_put_time(writer, "claimed_at", job->claimed_at);
    pawli_put_time(writer, "expires_at", job->expires_at);
    pawli_put_time(writer, "run_until", job->run_until);
    pawli_put_number(writer, "lease_ms", job->lease_ms);
    pawli_put_number(writer, "timeout_ms", job->timeout_ms);
    pawli_put_flag(writer, "is_cancel_asked", job->is_cancel_asked);
}

void pawli_put_job_members(struct pawli_writer *writer, const pawl_job *job,
                           enum pawli_job_view view)
{
    pawli_put_id(writer, "id", &job->id);
    pawli_put_text(writer, "queue", job->queue);
    if (job->ordering_key[0] != '\0')
        pawli_put_text(writer, "ordering_key", job->ordering_key);
    pawli_put_text(writer, "state", pawl_state_name(job->state));
    pawli_put_number(writer, "priority", job->priority);
    pawli_put_number(writer, "retries", job->retries);
    pawli_put_number(writer, "max_retries", job->max_retries);
    pawli_put_number(writer, "lost_leases", job->lost_leases);
    pawli_put_number(writer, "attempts", job->attempts);
    pawli_put_number(writer, "lease_version", job->lease_version);
    pawli_put_time(writer, "created_at", job->created_at);
    pawli_put_time(writer, "due_at", job->due_at);
    pawli_put_time(writer, "start_by", job->start_by);
    pawli_put_time(writer, "finished_at", job->finished_at);
    pawli_put_text(writer, "reason", pawl_reason_name(job->reason));
    pawli_put_number(writer, "payload_len", (int64_t)job->payload_len);
    if (job->state == PAWL_IN_FLIGHT)
        put_lease(writer, job);
    if (view != PAWLI_VIEW_GRANT)
        return;
    pawli_put_token(writer, "token", &job->token);
    pawli_put_headers(writer, "headers", job->headers);
    pawli_put_bytes(writer, "payload", "payload_base64",
                    job->payload != NULL ? job->payload : (void *)"", job->payload_len);
}

void pawli_put_job(struct pawli_writer *writer, const pawl_job *job, enum pawli_job_view view)
{
    pawli_put_object(writer, NULL);
    pawli_put_job_members(writer, job, view);
    pawli_put_object_end(writer);
}

/* ---------------------------------------------------------------- filters */

static pawl_code read_states(const char *text, unsigned *ret_states, pawl_err *err)
{
    for (const char *at = text; at != NULL;) {
        size_t len = strcspn(at, ",");
        int state = PAWL_READY;
        while (state <= PAWL_FAILED && (strlen(pawl_state_name((pawl_state)state)) != len ||
                                        strncmp(pawl_state_name((pawl_state)state), at, len) != 0))
            state++;
        if (state > PAWL_FAILED)
            return pawli_fail(err, PAWL_INVALID,
                              "state must be some of Ready, InFlight, Succeeded and Failed, with "
                              "commas between");
        *ret_states |= 1u << state;
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return PAWL_OK;
}

pawl_code pawli_wanted_filter(const struct pawli_wanted *wanted, pawl_filter *ret_filter,
                              pawl_err *err)
{
    pawl_filter filter = {
        .queue = wanted->queue, .worker = wanted->worker, .ordering_key = wanted->ordering_key};
    if (wanted->state != NULL && read_states(wanted->state, &filter.states, err) != PAWL_OK)
        return PAWL_INVALID;
    if (wanted->reason != NULL) {
        int reason = PAWL_REASON_ERROR;
        while (reason <= PAWL_REASON_START_BY &&
               strcmp(pawl_reason_name((pawl_reason)reason), wanted->reason) != 0)
            reason++;
        if (reason > PAWL_REASON_START_BY)
            return pawli_fail(err, PAWL_INVALID,
                              "reason must be one of error, exhausted, fatal, timeout, snooze, "
                              "shutdown, expired, poison, cancelled and start_by");
        filter.reason = (pawl_reason)reason;
    }
    *ret_filter = filter;
    return PAWL_OK;
}

/* ---------------------------------------------------------------- pages */

void pawli_put_next_id(struct pawli_writer *writer, const pawl_id *last, bool has_more)
{
    if (has_more)
        pawli_put_id(writer, "next", last);
    else
        pawli_put_null(writer, "next");
}

void pawli_put_next_name(struct pawli_writer *writer, const char *last, bool has_more)
{
    if (has_more)
        pawli_put_text(writer, "next", last);
    else
        pawli_put_null(writer, "next");
}

pawl_code pawli_after_id(const char *text, pawl_id *room, const pawl_id **ret_after, pawl_err *err)
{
    *ret_after = NULL;
    if (text == NULL)
        return PAWL_OK;
    if (pawl_id_parse(text, room, NULL) != PAWL_OK)
        return pawli_fail(err, PAWL_INVALID, "after must be an id: what `next` of a page said");
    *ret_after = room;
    return PAWL_OK;
}
