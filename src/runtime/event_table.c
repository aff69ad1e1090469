/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event_table.c - every event that there is.
 * Owns:  the ids, which never change their meaning; the names of fields in lines.
 * Never: holds anything that was not known when it was written.
 */
#include "runtime/event_table.h"

#include "base/error.h"

#include <stddef.h>

#define DEBUG_ PAWL_LEVEL_DEBUG
#define INFO   PAWL_LEVEL_INFO
#define WARN   PAWL_LEVEL_WARN
#define ERROR  PAWL_LEVEL_ERROR

/* clang-format off */
static const struct pawli_event_row rows[PAWL_EVENT_KINDS] = {
    [PAWL_EVENT_WORKER_UP] = {"WORKER-UP", INFO, INFO, NULL, "queues", NULL,
        "the worker runs"},
    [PAWL_EVENT_WORKER_STOPPING] = {"WORKER-STOPPING", INFO, INFO, NULL, NULL, "within_s",
        "the worker was told to end; it claims nothing more"},
    [PAWL_EVENT_WORKER_STOPPED] = {"WORKER-STOPPED", INFO, WARN, NULL, "jobs_left", NULL,
        "the worker has ended; jobs left are recovered by a reaper"},
    [PAWL_EVENT_WORKER_DIED] = {"WORKER-DIED", ERROR, ERROR, "dead", "leases", "silent_s",
        "a worker or reaper ended without a word; its jobs are recovered when their leases expire"},
    [PAWL_EVENT_REAPER_UP] = {"REAPER-UP", INFO, INFO, NULL, NULL, NULL,
        "the reaper runs"},
    [PAWL_EVENT_REAPER_STOPPED] = {"REAPER-STOPPED", INFO, INFO, NULL, "runs", NULL,
        "the reaper has ended"},
    [PAWL_EVENT_CALL] = {"CALL", DEBUG_, DEBUG_, "verb", "rows", "took_s",
        "the store answered"},
    [PAWL_EVENT_CALL_FAILED] = {"CALL-FAILED", WARN, WARN, "verb", "rows", "took_s",
        "the store did not do what it was asked; it is asked again"},
    [PAWL_EVENT_CALL_OVERDUE] = {"CALL-OVERDUE", WARN, WARN, "verb", "rows", NULL,
        "the store has not answered in time; the worker goes on without the answer"},
    [PAWL_EVENT_RENEW_FAILED] = {"RENEW-FAILED", WARN, WARN, NULL, NULL, NULL,
        "the renewal of a lease was not answered; it is tried again until the job must stop"},
    [PAWL_EVENT_RENEW_REFUSED] = {"RENEW-REFUSED", WARN, WARN, NULL, NULL, NULL,
        "the store refused to renew a lease; the job stops here"},
    [PAWL_EVENT_SETTLE_REFUSED] = {"SETTLE-REFUSED", WARN, WARN, "verb", NULL, NULL,
        "the store refused what the worker said of a job; nothing was changed"},
    [PAWL_EVENT_JOB_START] = {"JOB-START", DEBUG_, DEBUG_, NULL, NULL, "waited_s",
        "the handler of a job starts"},
    [PAWL_EVENT_JOB_NOT_STARTED] = {"JOB-NOT-STARTED", WARN, WARN, NULL, NULL, NULL,
        "the program of a job could not be started; the job is put back without using a retry"},
    [PAWL_EVENT_JOB_PROGRESS] = {"JOB-PROGRESS", INFO, INFO, NULL, NULL, NULL,
        "the handler says how far it is"},
    [PAWL_EVENT_JOB_ABORT] = {"JOB-ABORT", WARN, WARN, NULL, NULL, NULL,
        "the handler of a job was told to stop"},
    [PAWL_EVENT_JOB_GIVEN_UP] = {"JOB-GIVEN-UP", ERROR, ERROR, NULL, "stuck", NULL,
        "the handler of a job did not stop in time; its thread is lost until it does"},
    [PAWL_EVENT_JOB_ENDED] = {"JOB-ENDED", DEBUG_, DEBUG_, "result", NULL, "ran_s",
        "the handler of a job ended"},
    [PAWL_EVENT_JOB_SETTLED] = {"JOB-SETTLED", DEBUG_, WARN, "outcome", NULL, NULL,
        "the store has written how an attempt ended"},
    [PAWL_EVENT_JOB_OVER] = {"JOB-OVER", DEBUG_, WARN, NULL, NULL, NULL,
        "the worker is done with a job and renews it no more"},
    [PAWL_EVENT_THREAD_BACK] = {"THREAD-BACK", WARN, WARN, NULL, "stuck", NULL,
        "a handler that had been given up has ended after all"},
    [PAWL_EVENT_PAUSED] = {"PAUSED", INFO, INFO, "paused", NULL, NULL,
        "the worker claims nothing, of one queue or of all"},
    [PAWL_EVENT_RESUMED] = {"RESUMED", INFO, INFO, "resumed", NULL, NULL,
        "the worker claims again, of one queue or of all"},
    [PAWL_EVENT_REAPED] = {"REAPED", INFO, INFO, "holder", NULL, "overdue_s",
        "a job was recovered: its lease had expired, or it had not started in time"},
    [PAWL_EVENT_REAP_RUN] = {"REAP-RUN", DEBUG_, INFO, NULL, "recovered", "took_s",
        "the reaper has looked for expired leases"},
    [PAWL_EVENT_PRUNED] = {"PRUNED", INFO, INFO, NULL, "histories", NULL,
        "histories were deleted that had been kept as long as their queue says"},
    [PAWL_EVENT_METRICS_UP] = {"METRICS-UP", INFO, INFO, NULL, NULL, NULL,
        "metrics are served"},
    [PAWL_EVENT_SETTINGS] = {"SETTINGS", INFO, INFO, NULL, NULL, NULL,
        "the settings were changed while it runs"},
    [PAWL_EVENT_SETTINGS_REFUSED] = {"SETTINGS-REFUSED", WARN, WARN, NULL, NULL, NULL,
        "the settings were read again and refused; all of them stay as they were"},
    [PAWL_EVENT_SETTINGS_FIXED] = {"SETTINGS-FIXED", WARN, WARN, "setting", NULL, NULL,
        "a setting has changed that holds only when it is started again"},
    [PAWL_EVENT_DROPPED] = {"DROPPED", WARN, WARN, NULL, "events", NULL,
        "events were lost because the log could not be written in time"},
    [PAWL_EVENT_DELIVERY] = {"DELIVERY", DEBUG_, WARN, "answer", "sends", "took_s",
        "a try to deliver an event to an endpoint has ended"},
    [PAWL_EVENT_ENDPOINT_OPENED] = {"ENDPOINT-OPENED", WARN, WARN, "endpoint", NULL, "for_s",
        "an endpoint fails; nothing is sent to it for a while, then one delivery to try it"},
    [PAWL_EVENT_ENDPOINT_CLOSED] = {"ENDPOINT-CLOSED", INFO, INFO, "endpoint", NULL, NULL,
        "an endpoint that failed works again"},
    [PAWL_EVENT_ENDPOINT_PAUSED] = {"ENDPOINT-PAUSED", INFO, INFO, "endpoint", NULL, "for_s",
        "an endpoint asked to be left alone for a while"},
    [PAWL_EVENT_ENDPOINT_DISABLED] = {"ENDPOINT-DISABLED", ERROR, ERROR, "endpoint", NULL, NULL,
        "an endpoint is disabled, and gets no more events until somebody enables it"},
    [PAWL_EVENT_ENDPOINT_REFUSED] = {"ENDPOINT-REFUSED", WARN, WARN, "endpoint", NULL, NULL,
        "an endpoint cannot be called as it is set; its deliveries fail and are retried"},
    [PAWL_EVENT_SERVER_UP] = {"SERVER-UP", INFO, INFO, NULL, NULL, NULL,
        "the server answers requests"},
    [PAWL_EVENT_SERVER_STOPPING] = {"SERVER-STOPPING", INFO, INFO, NULL, NULL, NULL,
        "the server was told to end; it finishes what is under way and refuses new requests"},
    [PAWL_EVENT_SERVER_STOPPED] = {"SERVER-STOPPED", INFO, INFO, NULL, NULL, NULL,
        "the server has ended"},
    [PAWL_EVENT_REQUEST_FAILED] = {"REQUEST-FAILED", WARN, WARN, "route", "status", NULL,
        "a request could not be carried out; its client was told so"},
    [PAWL_EVENT_TOKENS] = {"TOKENS", INFO, INFO, NULL, "tokens", NULL,
        "the file of tokens was read again"},
    [PAWL_EVENT_TOKENS_REFUSED] = {"TOKENS-REFUSED", WARN, WARN, NULL, NULL, NULL,
        "the file of tokens was read again and refused; those that were known stay"},
};
/* clang-format on */

const struct pawli_event_row *pawli_event_row(pawl_event_kind kind)
{
    return kind >= 0 && kind < PAWL_EVENT_KINDS ? &rows[kind] : NULL;
}

const char *pawl_event_id(pawl_event_kind kind)
{
    const struct pawli_event_row *row = pawli_event_row(kind);
    return row != NULL ? row->id : "?";
}

const char *pawl_event_text(pawl_event_kind kind)
{
    const struct pawli_event_row *row = pawli_event_row(kind);
    return row != NULL ? row->text : "?";
}

const char *pawli_level_name(pawl_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return level >= PAWL_LEVEL_DEBUG && level <= PAWL_LEVEL_ERROR ? names[level] : "?";
}

pawl_code pawli_check_level(pawl_level level, pawl_err *err)
{
    if (level >= PAWL_LEVEL_DEBUG && level <= PAWL_LEVEL_ERROR)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "level is %d; it must be a pawl_level", (int)level);
}
