/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - the public interface of running workers and reapers: threads, handlers, commands. The
 * words, the codes and the rules are those of pawl.h.
 */
#ifndef PAWL_WORKER_H
#define PAWL_WORKER_H

#include "pawl/metrics.h"
#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which thread of a worker a handle is for. Each has one of its own, so that none waits for the
 * calls of another. */
typedef enum pawl_role {
    PAWL_ROLE_CLAIMER = 0,  /* claims, and waits for hints */
    PAWL_ROLE_SETTLER = 1,  /* settles and releases */
    PAWL_ROLE_RENEWER = 2,  /* renews */
    PAWL_ROLE_REAPER = 3,   /* recovers, prunes, keeps the presence rows */
    PAWL_ROLE_DIRECTORY = 4 /* of a dispatcher of webhooks: reads and disables endpoints */
} pawl_role;

/*
 * Opens the handles of a worker: when it starts, and again after PAWL_BROKEN. Called from several
 * threads at once. The handle is the worker's to close.
 */
typedef struct pawl_opener {
    pawl_code (*open)(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err);
    void *user;
} pawl_opener;

/* ---- what happened, for logs and metrics */

typedef enum pawl_level {
    PAWL_LEVEL_DEBUG = 0,
    PAWL_LEVEL_INFO = 1,
    PAWL_LEVEL_WARN = 2,
    PAWL_LEVEL_ERROR = 3
} pawl_level;

/* What the fields hold is beside each; docs/logs.md has the whole of it. */
typedef enum pawl_event_kind {
    PAWL_EVENT_WORKER_UP = 0,   /* count: its queues */
    PAWL_EVENT_WORKER_STOPPING, /* told to shut down; took_us: the time it has; reason */
    PAWL_EVENT_WORKER_STOPPED,  /* count: jobs left to the reaper */
    PAWL_EVENT_WORKER_DIED,     /* subject: a worker that ended without a word; count: its leases,
                                   those that it still has and those that were recovered here;
                                   took_us: since it was last seen; text: its host */
    PAWL_EVENT_REAPER_UP,       /* a reaper that is no part of a worker */
    PAWL_EVENT_REAPER_STOPPED,  /* the same; count: runs that it finished */
    PAWL_EVENT_CALL,            /* a store call was answered: subject: its verb; took_us; count:
                                   rows; refused; reason "late": after it had been given up */
    PAWL_EVENT_CALL_FAILED,     /* the same, where the code is not OK; text */
    PAWL_EVENT_CALL_OVERDUE,    /* a store call has not come back in its time: subject, count */
    PAWL_EVENT_RENEW_FAILED,    /* the renewal of a job's lease was not answered: code. Told once,
                                   until one of them is answered again */
    PAWL_EVENT_RENEW_REFUSED,   /* the lease of a job was not renewed: code */
    PAWL_EVENT_SETTLE_REFUSED,  /* what the worker said of a job was refused: subject: the verb,
                                   settle or release; code */
    PAWL_EVENT_JOB_START,       /* took_us: how long it had been due */
    PAWL_EVENT_JOB_NOT_STARTED, /* the machine could not start its program: reason, text */
    PAWL_EVENT_JOB_PROGRESS,    /* text: what its handler says */
    PAWL_EVENT_JOB_ABORT,       /* its handler was told to stop: reason */
    PAWL_EVENT_JOB_GIVEN_UP,    /* its handler did not stop; count: threads stuck so by now */
    PAWL_EVENT_JOB_ENDED,       /* its handler ended: subject: with what; took_us: it ran */
    PAWL_EVENT_JOB_SETTLED,     /* the store has it: subject: succeeded, retried, snoozed, failed,
                                   cancelled; reason: as the ledger has it */
    PAWL_EVENT_JOB_OVER,        /* the worker is done with it, and renews it no more: reason */
    PAWL_EVENT_THREAD_BACK,     /* a handler that had been given up has ended after all; count */
    PAWL_EVENT_PAUSED,          /* claims nothing: subject: of one queue; "": of all */
    PAWL_EVENT_RESUMED,
    PAWL_EVENT_REAPED,     /* a lease of `subject` was recovered: reason; took_us: overdue by */
    PAWL_EVENT_REAP_RUN,   /* a run of the reaper ended: count: recovered; took_us */
    PAWL_EVENT_PRUNED,     /* count: histories deleted */
    PAWL_EVENT_METRICS_UP, /* the program serves metrics: text: where */
    PAWL_EVENT_SETTINGS,   /* it was given other settings: text: those that matter most */
    PAWL_EVENT_SETTINGS_REFUSED, /* the program read its settings again: text: what is wrong */
    PAWL_EVENT_SETTINGS_FIXED,   /* the same: subject: a setting that cannot change now */
    PAWL_EVENT_DROPPED,          /* count: events that were lost; reason: why */
    /* The next ones are of those who deliver webhooks; the subject is the endpoint. */
    PAWL_EVENT_DELIVERY, /* a try to deliver has ended: reason: delivered, retried, failed, stopped;
                            subject: what the endpoint said, HTTP-200 and the like; count: how often
                            it was sent; took_us; text: what went wrong */
    PAWL_EVENT_ENDPOINT_OPENED,   /* it fails, and is left alone for a while: took_us; text */
    PAWL_EVENT_ENDPOINT_CLOSED,   /* it works again */
    PAWL_EVENT_ENDPOINT_PAUSED,   /* it asked to be left alone: took_us */
    PAWL_EVENT_ENDPOINT_DISABLED, /* it is being disabled: text: why */
    PAWL_EVENT_ENDPOINT_REFUSED,  /* it cannot be called as it is set: text: why */
    /* The next ones are of those who serve. */
    PAWL_EVENT_SERVER_UP,       /* the program answers requests: text: where */
    PAWL_EVENT_SERVER_STOPPING, /* it was told to end, and takes no new ones */
    PAWL_EVENT_SERVER_STOPPED,
    PAWL_EVENT_REQUEST_FAILED, /* a request could not be carried out: subject: its route; count:
                                    the status; reason: the problem's type; code, text */
    PAWL_EVENT_TOKENS,         /* the program read its file of tokens again; count: of them */
    PAWL_EVENT_TOKENS_REFUSED, /* the same: text: what is wrong; those before stay */
    PAWL_EVENT_KINDS
} pawl_event_kind;

#define PAWL_EVENT_SUBJECT_MAX PAWL_NAME_MAX

/* Never carries a payload, a header or a token. What an event does not have is zero or empty. */
typedef struct pawl_event {
    pawl_event_kind kind;
    pawl_level level;
    pawl_wall at;
    const char *worker; /* who tells it; holds during the callback */
    const char *reason; /* a constant, such as "beat_failed"; never NULL */
    pawl_code code;
    pawl_id job;
    int64_t attempt;
    int64_t lease_version;
    int64_t count;
    int64_t refused; /* of `count` rows, those that the store refused */
    int64_t took_us;
    char queue[PAWL_NAME_MAX + 1];
    char subject[PAWL_EVENT_SUBJECT_MAX + 1];
    char text[PAWL_ERR_TEXT_MAX];
} pawl_event;

/* The event's fixed id, "JOB-ABORT" ..., and what it means, in a line; "?" for a number that is
 * none. */
PAWL_API const char *pawl_event_id(pawl_event_kind kind);
PAWL_API const char *pawl_event_text(pawl_event_kind kind);

typedef enum pawl_line_format {
    PAWL_LINE_LOGFMT = 0, /* name=value name="value with blanks" */
    PAWL_LINE_JSON = 1    /* one object */
} pawl_line_format;

#define PAWL_EVENT_LINE_MAX 4096 /* bytes in a line, with its newline and the closing NUL */

/*
 * Print an event as one line, as `pawl work` logs it, into line[line_size]; what does not fit is
 * left out, field by field. Control characters and what is not UTF-8 are escaped. Gives the length,
 * newline included; 0 where the room is not enough for the shortest line, or an argument is wrong.
 */
PAWL_API size_t pawl_event_line(const pawl_event *event, pawl_line_format format, char *line,
                                size_t line_size);

/* Called from one thread of the worker's, one event at a time, in order. It may block: then events
 * are lost and counted, and nothing else waits. */
typedef struct pawl_watch {
    void (*tell)(void *user, const pawl_event *event); /* NULL: nobody listens */
    void *user;
    pawl_level level; /* what is below is not told */
} pawl_watch;

/* ---- handlers */

/* One run of one job, handed to its handler. To be used by the handler's thread, while it runs. */
typedef struct pawl_job_ctx pawl_job_ctx;

/*
 * Works on one job. Returns a pawl_settle_action (PAWL_SUCCEED, which is 0, PAWL_RETRY, PAWL_FAIL,
 * PAWL_SNOOZE), or PAWL_SETTLED_BY_ME where it has settled the job itself, in a transaction of its
 * own. Any other number counts as PAWL_RETRY.
 * It must look at pawl_job_is_cancelled() now and then, and end when that is true. One that does
 * not within the grace period is given up: whatever it answers later is not settled, its thread is
 * reported and replaced.
 */
typedef int (*pawl_handler)(pawl_job_ctx *ctx, void *user);
#define PAWL_SETTLED_BY_ME 4

/* The job as it was claimed: payload, id, queue, lease_version, token ... Holds while it runs. */
PAWL_API const pawl_job *pawl_job_of(const pawl_job_ctx *ctx);

/* The value of one of the job's headers, and its length: as pawl_headers_find() (headers.h).
 * NULL: it has no such header. */
PAWL_API const char *pawl_job_header(const pawl_job_ctx *ctx, const char *name, size_t *ret_len);

/* The name under which the job was claimed: with the token it proves the lease. */
PAWL_API const char *pawl_job_worker(const pawl_job_ctx *ctx);

/*
 * The fence of this lease: higher than that of every earlier lease of the same ordering key, of
 * this job or another. Hand it to what the job writes to, so that it can refuse an older writer
 * (docs/fencing.md). 0: the job has no key; lease_version then does the same for this job alone.
 */
PAWL_API int64_t pawl_job_fence(const pawl_job_ctx *ctx);

/* Which attempt this is, from 1: the number of its row in the ledger. */
PAWL_API int64_t pawl_job_attempt(const pawl_job_ctx *ctx);

/* How long it may run yet before the execution timeout; 0 where it is up. */
PAWL_API int64_t pawl_job_left_ms(const pawl_job_ctx *ctx);

/*
 * Whether it must stop: its lease is lost or at risk, its time is up, it was cancelled, or the
 * worker shuts down. Looks at the clock: ask directly before anything that others will see. Cheap.
 */
PAWL_API bool pawl_job_is_cancelled(pawl_job_ctx *ctx);

/* Why it must stop, "beat_failed", "lease_lost", "cancelled", "timeout", "shutdown", "abort_all",
 * "at_risk"; "none" while it need not. */
PAWL_API const char *pawl_job_cancel_reason(pawl_job_ctx *ctx);

/* A descriptor that becomes readable when it must stop, for handlers that poll; -1 where none can
 * be had. The worker's: do not read or close it. */
PAWL_API int pawl_job_cancel_fd(const pawl_job_ctx *ctx);

/* When a handler that was told to stop will be given up, in ms from now; -1: it was not told to. */
PAWL_API int64_t pawl_job_grace_ms(pawl_job_ctx *ctx);

/* Say how far it is: goes to the watcher as JOB-PROGRESS. Cleaned and cut. */
PAWL_API void pawl_job_progress(pawl_job_ctx *ctx, const char *text);

/* What the ledger is to say of an attempt that failed. Either may be NULL. Control characters and
 * what is not UTF-8 become '?'; cut to PAWL_ERROR_CODE_MAX and PAWL_ERROR_TEXT_MAX. */
PAWL_API void pawl_job_error(pawl_job_ctx *ctx, const char *error_code, const char *error_text);

/* When to run again, for PAWL_RETRY (without it: the computed backoff) and PAWL_SNOOZE (without
 * it: PAWL_SNOOZE_DEFAULT_MS). */
PAWL_API void pawl_job_delay(pawl_job_ctx *ctx, int64_t delay_ms);
#define PAWL_SNOOZE_DEFAULT_MS 1000

/* ---- commands as handlers */

typedef struct pawl_command pawl_command;

typedef struct pawl_command_options {
    char *const *argv; /* ended by NULL; argv[0] is looked for in PATH. Copied */
    /* The process is ours alone, and may become a subreaper (Linux): then nothing of a command is
     * left even where the small process between it and us (see below) is killed. */
    bool is_process_ours;
} pawl_command_options;

/*
 * A program as a handler: the user of pawl_command_handler(), below. Starts nothing yet. On PAWL_OK
 * it belongs to the caller, who frees it after the workers that use it have ended. PAWL_INVALID:
 * argv[0] names no program that can be run, or this system has no subreapers. PAWL_NO_MEMORY.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_command_new(const pawl_command_options *options,
                                                  pawl_command **ret_command, pawl_err *err);
PAWL_API void pawl_command_free(pawl_command *command); /* no worker may use it; accepts NULL */

/*
 * A handler whose user is a pawl_command: runs the command in a session of its own, with the
 * payload on standard input and PAWL_JOB_ID, PAWL_QUEUE, PAWL_ORDERING_KEY (empty where it has
 * none), PAWL_FENCE, PAWL_ATTEMPT, PAWL_LEASE_VERSION, PAWL_DEADLINE (Unix seconds), TRACEPARENT
 * and PAWL_HEADER_... in its environment. Of each header there is one of the latter, named in
 * capitals with `_` for whatever is neither letter nor digit; of two that would have the same name
 * the first counts. A valid header `traceparent` (W3C) gives TRACEPARENT its trace and flags; the
 * span is always this run's own. Exit 0: done; 75: snooze; 65: fail for good; anything else, and a
 * signal: a failed attempt, with the last lines of standard error as its text. When it must stop it
 * gets SIGTERM, and SIGKILL shortly before it would be given up. One that cannot be started for
 * lack of processes, descriptors or memory is tried again for about a second; then the job is put
 * back for a few, without using a retry.
 * Between us and each command that runs there is a small process, forked when it is first needed,
 * which is the command's parent: whatever the command has started, in whatever session, is killed
 * when the command has ended, and when we have, however we ended.
 */
PAWL_API int pawl_command_handler(pawl_job_ctx *ctx, void *user);
#define PAWL_EXIT_SNOOZE 75
#define PAWL_EXIT_FAIL   65
/* The settle_linger_ms of a worker whose handlers are commands, as `pawl work` has it: to start one
 * takes about as long, so several mostly end within it, and go in one settle. */
#define PAWL_COMMAND_LINGER_MS 5

/* ---- reapers */

typedef struct pawl_reaper_options {
    pawl_opener opener;
    const char *name;              /* as of a worker; NULL: the host's name */
    pawl_reaper_settings settings; /* checked against smallest_lease_ms */
    int64_t smallest_lease_ms;     /* of the queues it serves: default 30 s */
    int64_t presence_ms; /* how often a presence row is refreshed: default 5 s. One that was not
                            refreshed for three times that is a death: the same for the whole fleet
                          */
    pawl_watch watch;
    pawl_metrics *metrics;     /* as in pawl_worker_options */
    const pawl_clock *clock;   /* default: the system's */
    const pawl_random *random; /* likewise; used by several threads */
} pawl_reaper_options;

typedef struct pawl_reaper pawl_reaper;
/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_reaper_options_init(pawl_reaper_options *options);

/* Recover, prune and report dead workers in a thread of its own, every interval. Any number of them
 * may run at once. PAWL_INVALID, PAWL_NO_MEMORY, and what the opener says. */
PAWL_API PAWL_MUST_USE pawl_code pawl_reaper_start(const pawl_reaper_options *options,
                                                   pawl_reaper **ret_reaper, pawl_err *err);

/* The thread's own name at the store, and how many runs it has finished. */
PAWL_API const char *pawl_reaper_name(const pawl_reaper *reaper);
PAWL_API int64_t pawl_reaper_runs(pawl_reaper *reaper);

/* Another interval (PAWL_DEFAULT: the derived one) and another level of its watcher from now on.
 * PAWL_INVALID: nothing changed. */
PAWL_API PAWL_MUST_USE pawl_code pawl_reaper_tune(pawl_reaper *reaper, int64_t interval_ms,
                                                  pawl_level level, pawl_err *err);

/* End it, and free it. Waits for the call under way. A thread that has not ended by then is left
 * behind, as by pawl_worker_free(), and the number of them returned. Accepts NULL. */
PAWL_API size_t pawl_reaper_stop(pawl_reaper *reaper);

/* ---- workers */

typedef struct pawl_worker_queue {
    const char *queue;
    int64_t jobs_max; /* of this queue at once; PAWL_DEFAULT: no bound of its own */
    int64_t lease_ms; /* PAWL_DEFAULT: the queue's */
} pawl_worker_queue;

typedef struct pawl_worker_options {
    pawl_opener opener;
    const pawl_worker_queue *queues; /* copied */
    size_t queues_count;             /* 1 .. PAWL_LINES_MAX */
    pawl_handler handler;
    void *user;                    /* of the handler; must outlive the worker */
    pawl_worker_settings settings; /* checked against the smallest lease of the queues */
    pawl_reaper_settings reaper;   /* of the reaper that it brings along */
    bool is_reaper_off;            /* it still keeps its presence row */
    int64_t presence_ms;           /* as in pawl_reaper_options */
    const char *name;              /* the beginning of its name; NULL: the host's name */
    pawl_watch watch;
    pawl_metrics *metrics;     /* what it does is counted there; NULL: nowhere. Must stay as long
                                  as the watcher must */
    const pawl_clock *clock;   /* default: the system's */
    const pawl_random *random; /* likewise; used by several threads */
} pawl_worker_options;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_worker_options_init(pawl_worker_options *options);

/* A worker that runs. Its functions are safe from every thread, but for pawl_worker_free(). */
typedef struct pawl_runner pawl_runner;

/*
 * Start a worker: threads that claim, renew, settle and recover, each with a handle of its own, and
 * up to settings.parallel_max threads that run handlers. Reads the queues' settings first. Once it
 * runs, a store that is away is waited for.
 * PAWL_INVALID: an option is wrong, or contradicts the smallest lease served. PAWL_NO_MEMORY. And
 * what the opener, or the store, says.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_start(const pawl_worker_options *options,
                                                   pawl_runner **ret_runner, pawl_err *err);

/* Its id in claims, logs and metrics: never used before, and never again. */
PAWL_API const char *pawl_worker_name(const pawl_runner *runner);

/*
 * Ask it to shut down within `timeout_ms` (PAWL_DEFAULT: its setting): it claims nothing more,
 * gives back what has not started, lets handlers finish, aborts them towards the end, settles.
 * Returns at once; a second call can only shorten the time.
 */
PAWL_API void pawl_worker_stop(pawl_runner *runner, int64_t timeout_ms);

/* The same, but abort every handler at once. */
PAWL_API void pawl_worker_abort(pawl_runner *runner);

typedef struct pawl_worker_end {
    int64_t jobs_left;    /* left to the reaper */
    int64_t threads_left; /* that did not end: handlers that ignore their abort, calls that hang */
} pawl_worker_end;

/*
 * Wait up to `timeout_ms` until it has stopped and its threads have ended. PAWL_TIMEOUT: it has
 * not. `ret_end` may be NULL, and is written in both cases.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_wait(pawl_runner *runner, int64_t timeout_ms,
                                                  pawl_worker_end *ret_end);

/*
 * Abort it where it has not stopped, wait for it as long as that may take (the grace period and a
 * store call), and free it. Threads that have not ended by then are left behind; they free what
 * they still need when they do, and the number of them is returned. Handler, opener and watcher
 * must then stay. Accepts NULL.
 */
PAWL_API size_t pawl_worker_free(pawl_runner *runner);

/* Claim and start nothing of a queue, or of all (NULL), until it is resumed: for a downstream that
 * is saturated. What runs goes on; leases are renewed. PAWL_INVALID: not a queue of this worker. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_pause(pawl_runner *runner, const char *queue,
                                                   pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_resume(pawl_runner *runner, const char *queue,
                                                    pawl_err *err);

/* New settings while it runs. parallel_max and buffer_max can shrink, and grow back to what their
 * sum was at the start. PAWL_INVALID, PAWL_FULL (above that sum): nothing changed. */
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_set(pawl_runner *runner,
                                                 const pawl_worker_settings *settings,
                                                 pawl_err *err);

/* All that can change while a worker runs. */
typedef struct pawl_worker_tuning {
    pawl_worker_settings settings; /* as above */
    int64_t lease_ms; /* of all its queues, for what is claimed and renewed from now on: never
                         shortens a lease already granted. PAWL_DEFAULT: as it is */
    int64_t reaper_interval_ms; /* PAWL_DEFAULT: the derived one */
    pawl_level level;           /* of its watcher */
} pawl_worker_tuning;

/* Change all of it, or nothing. Codes as of pawl_worker_set(). */
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_tune(pawl_runner *runner,
                                                  const pawl_worker_tuning *tuning, pawl_err *err);

typedef struct pawl_worker_counts {
    int64_t running;   /* handlers that have not ended, but for those given up and replaced */
    int64_t buffered;  /* held, not started */
    int64_t settling;  /* ended, settle not answered */
    int64_t releasing; /* to be given back, not answered */
    int64_t stuck;     /* handlers that were given up and have not ended */
    bool is_stopped;
} pawl_worker_counts;
PAWL_API void pawl_worker_count(pawl_runner *runner, pawl_worker_counts *ret_counts);

#ifdef __cplusplus
}
#endif

#endif
