/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pawl.h - the public interface of libpawl: a lease-based durable work engine.
 *
 * A *job* waits in a *queue* until a *worker* claims it. A claim grants a *lease*: a fresh random
 * token, a version that rises by one, and a deadline by the store's own clock. Whatever the worker
 * later says about the job (renew, settle, release) is accepted only under the token, from that
 * worker, before that deadline; anything else is STALE and changes nothing. Each time a job leaves
 * InFlight, and each time it becomes terminal, one row goes into its *ledger*.
 *
 * Rules that hold for every function here:
 *  - It returns a pawl_code; PAWL_OK is 0. `err` may be NULL; where it is not, a failure fills it
 *    with a text that names the field, the value and what is allowed. No text ever carries a
 *    payload, a header's value or a token.
 *  - Parameters named ret_... are written on PAWL_OK only, unless the contract says otherwise.
 *  - NULL where a value is needed, empty or over-long names, zero or negative durations, batches of
 *    0 or above the maximum, and unknown enum values are PAWL_INVALID, and nothing was done.
 *  - A structure that has an ..._init() function must be filled by it first.
 *  - Durations are milliseconds. PAWL_DEFAULT in a duration or a count means "what the settings
 *    say".
 */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API      __attribute__((visibility("default")))
#define PAWL_MUST_USE __attribute__((warn_unused_result))
#else
#define PAWL_API
#define PAWL_MUST_USE
#endif

/* ---------------------------------------------------------------- limits */

#define PAWL_NAME_MAX         128     /* bytes in a queue or worker name, without the closing NUL */
#define PAWL_DEDUPE_KEY_MAX   255     /* bytes in a dedupe key */
#define PAWL_ORDERING_KEY_MAX 255     /* bytes in an ordering key */
#define PAWL_QUEUES_TEXT_MAX  1023    /* bytes in the text that names a worker's queues */
#define PAWL_ERROR_CODE_MAX   64      /* bytes in an attempt's error code */
#define PAWL_ERROR_TEXT_MAX   1024    /* bytes in an attempt's error text */
#define PAWL_BATCH_MAX        10000   /* rows in one call */
#define PAWL_SENDS_MAX        1000000 /* the most that an attempt can say that it sent */
#define PAWL_LINES_MAX        10000   /* lines in one claim */
#define PAWL_PAYLOAD_MAX \
    (1 << 20) /* bytes in a payload, unless the store was opened with another limit */
#define PAWL_SHARDS_MAX   4096 /* shards of one store */
#define PAWL_LEASE_MIN_MS 100  /* the shortest lease */
#define PAWL_DURATION_MAX_MS \
    (INT64_C(3650) * 24 * 3600 * 1000) /* ten years: the longest duration taken anywhere */
#define PAWL_RETRIES_MAX       10000   /* the largest bound on retries or lost leases */
#define PAWL_IN_FLIGHT_MAX     1000000 /* the largest bound on a queue's jobs in flight */
#define PAWL_PRIORITY_URGENT   0       /* the most urgent priority */
#define PAWL_PRIORITY_NORMAL   5       /* the priority of a job that names none */
#define PAWL_PRIORITY_LAST     9       /* the least urgent priority */
#define PAWL_ERR_TEXT_MAX      256     /* bytes in pawl_err.text, with the closing NUL */
#define PAWL_ID_TEXT_MAX       37      /* bytes in a printed id, with the closing NUL */
#define PAWL_DURATION_TEXT_MAX 32      /* bytes in a printed duration, with the closing NUL */

#define PAWL_DEFAULT       INT64_MIN   /* "what the settings say", in a duration or a count */
#define PAWL_FOREVER       INT64_MAX   /* "never", in a retention */
#define PAWL_SENDS_UNKNOWN INT64_C(-1) /* nobody has said how often an attempt sent */

/* ---------------------------------------------------------------- codes and errors */

/* One code for each thing that a caller can do about it. The numbers are part of the ABI. */
typedef enum pawl_code {
    PAWL_OK = 0,

    /* A call as a whole. */
    PAWL_INVALID = 1,   /* an argument is wrong; nothing was done; correct it */
    PAWL_NO_MEMORY = 2, /* memory ran out; nothing was done; try later */
    PAWL_DOWN = 3,      /* the store is away; nothing was done; try later */
    PAWL_UNKNOWN = 4,   /* the reply was lost: it may or may not have been done; ask or repeat */
    PAWL_FULL = 5,      /* a named limit is reached; nothing was done; make room */
    PAWL_BROKEN = 6,    /* a write failed: the handle is unusable until it is opened again */

    /* One row of a batch. */
    PAWL_STALE = 20, /* the lease is not, or no longer, the caller's; stop working on the job */
    PAWL_GONE = 21,  /* there is no such job, or no memory of it any more */
    PAWL_EXISTS =
        22, /* a job with this id exists or has existed; a repeated enqueue may count it as done */
    PAWL_DUPLICATE = 23, /* a live job holds the dedupe key; the result names it */
    PAWL_CANCELLED = 24, /* the job is marked for cancellation; stop working on it */
    PAWL_TIMEOUT = 25,   /* the execution timeout has passed; stop working on the job */

    /* A change that a job's state does not allow. */
    PAWL_NOT_DUE = 40,           /* claim of a Ready job before its due time */
    PAWL_MISSED = 41,            /* claim of a Ready job after its start-by deadline */
    PAWL_LEASED = 42,            /* claim of a job under a valid lease */
    PAWL_NOT_LEASED = 43,        /* renew, settle, release or expiry of a Ready job */
    PAWL_NOT_EXPIRED = 44,       /* expiry of a lease that is still valid */
    PAWL_ALREADY_SUCCEEDED = 45, /* any change of a Succeeded job */
    PAWL_ALREADY_FAILED = 46,    /* any change of a Failed job but redrive and discard */
    PAWL_NOT_FAILED = 47,        /* redrive or discard of a job that is not Failed */
    PAWL_NOT_MISSED =
        48, /* a start-by deadline that has not passed, or that the job does not have */

    /* A work lease (see worklease.h). */
    PAWL_WL_ORDER = 60,        /* acquire of an offset that is not the head of the backlog */
    PAWL_WL_NO_LEASE = 61,     /* succeed, fail or renew while the domain has no lease */
    PAWL_WL_TOKEN = 62,        /* the same with a token or owner that is not the lease's */
    PAWL_WL_BACKLOG_FULL = 63, /* the backlog has reached its bound */
    PAWL_WL_EXPIRED = 64,      /* the lease has expired; acquire the offset again */

    /* An endpoint (see endpoint.h). */
    PAWL_HAS_JOBS = 80 /* jobs are left in its queue: let them end, or cancel them */
} pawl_code;

/* Why a call failed, for people. `text` is always terminated. */
typedef struct pawl_err {
    pawl_code code;
    char text[PAWL_ERR_TEXT_MAX];
} pawl_err;

/* The code's name ("STALE") and its one-line text. Never NULL; an unknown number is "?" and
 * "unknown code". */
PAWL_API const char *pawl_code_name(pawl_code code);
PAWL_API const char *pawl_code_text(pawl_code code);

/* The library's version, "major.minor.patch". */
PAWL_API const char *pawl_version(void);

/* ---------------------------------------------------------------- time and random, handed in */

/* An instant on a clock that never goes back and runs on through suspend: for intervals. */
typedef struct pawl_mono {
    int64_t us;
} pawl_mono;

/* An instant in microseconds since 1970-01-01 UTC: for what is stored. 0 means "none" where a field
 * says so. */
typedef struct pawl_wall {
    int64_t us;
} pawl_wall;

/* A clock. The functions must be safe to call from every thread that uses what the clock was handed
 * to. Wall time must be after 1970: to a store, an instant of 0 means none. While its clock gives 0
 * or less, a store's verbs answer PAWL_DOWN and change nothing. */
typedef struct pawl_clock {
    pawl_mono (*mono)(void *user);
    pawl_wall (*wall)(void *user);
    void *user;
} pawl_clock;

/* A source of random bits, as safe to share between threads as its `next`. */
typedef struct pawl_random {
    uint64_t (*next)(void *user);
    void *user;
} pawl_random;

/* The system's clocks and its cryptographic random source. Safe from every thread; they live as
 * long as the process. */
PAWL_API const pawl_clock *pawl_clock_system(void);
PAWL_API const pawl_random *pawl_random_system(void);

/*
 * Parse a duration: a whole number and one unit, `500ms`, `30s`, `5m`, `2h`, `7d`; nothing before,
 * between or after. PAWL_INVALID for an empty text, a sign, a blank, a missing or unknown unit, a
 * fraction, zero, and anything above PAWL_DURATION_MAX_MS; err->text names which.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_duration_parse(const char *text, int64_t *ret_ms,
                                                     pawl_err *err);

/* Print a duration in the largest unit that holds it exactly. A negative or absent value prints as
 * "-". */
PAWL_API const char *pawl_duration_format(int64_t ms, char text[PAWL_DURATION_TEXT_MAX]);

/* ---------------------------------------------------------------- ids */

/* A job's id: a UUID. Ids that Pawl makes are of version 7 with the shard in the twelve bits of
 * rand_a. */
typedef struct pawl_id {
    uint8_t bytes[16];
} pawl_id;

/* A lease token: 128 random bits, fresh for every job on every claim. Treat it like a password. */
typedef struct pawl_token {
    uint8_t bytes[16];
} pawl_token;

PAWL_API bool pawl_id_is_nil(const pawl_id *id); /* NULL counts as nil */
PAWL_API int pawl_id_compare(const pawl_id *a,
                             const pawl_id *b); /* by bytes, as memcmp; both must be given */

/* Parse the 36-character form, in either case of letters. PAWL_INVALID for anything else. */
PAWL_API PAWL_MUST_USE pawl_code pawl_id_parse(const char *text, pawl_id *ret_id, pawl_err *err);

/* Print in the 36-character lower-case form. Returns `text`. */
PAWL_API const char *pawl_id_format(const pawl_id *id, char text[PAWL_ID_TEXT_MAX]);

/* ---------------------------------------------------------------- settings */

/* A queue's settings. A change holds for what is granted afterwards; it never shortens a lease
 * already granted. */
typedef struct pawl_queue_settings {
    int64_t lease_ms;             /* default 30 s; from PAWL_LEASE_MIN_MS */
    int64_t execution_timeout_ms; /* PAWL_DEFAULT: three times the lease granted */
    int64_t max_retries;          /* default 3; 0 is allowed */
    int64_t max_lost_leases;      /* default 10; from 1 */
    int64_t backoff_base_ms;      /* default 500 ms */
    int64_t backoff_max_ms;       /* default 30 s */
    int64_t keep_succeeded_ms;    /* how long a Succeeded job's history is kept: default 7 d, or
                                     PAWL_FOREVER */
    int64_t keep_failed_ms; /* how long a Failed job and its history are kept: default 30 d, or
                               PAWL_FOREVER */
    int64_t max_in_flight;  /* how many of its jobs may be InFlight, over all workers: default 0, no
                               such bound; otherwise from the number of shards: see pawl_claim() */
    bool is_paused;         /* told by queue_get; queue_set ignores it: see pawl_queue_pause() */
} pawl_queue_settings;

/* Named leases for kinds of work. */
typedef enum pawl_lease_profile {
    PAWL_LEASE_SHORT = 0,    /* 5 s */
    PAWL_LEASE_STANDARD = 1, /* 30 s: the default */
    PAWL_LEASE_HEAVY = 2,    /* 60 s */
    PAWL_LEASE_EXTERNAL = 3  /* 120 s: calls to other systems */
} pawl_lease_profile;

/* A worker's settings. */
typedef struct pawl_worker_settings {
    int64_t parallel_max; /* handlers at once: default 10, to PAWL_BATCH_MAX */
    int64_t buffer_max; /* jobs held but not started: default 10; 0 is allowed; to PAWL_BATCH_MAX */
    int64_t
        heartbeat_ms; /* PAWL_DEFAULT: a quarter of the lease; 3 x heartbeat < lease, strictly */
    int64_t poll_ms;  /* how often an idle worker asks for work: default 1 s */
    int64_t shutdown_timeout_ms; /* PAWL_DEFAULT: the smallest lease served; never above it */
    int64_t grace_ms;            /* from an abort to giving the handler up: default 5 s */
    int64_t claim_batch_max;     /* default 1,000 */
    int64_t renew_batch_max;     /* default 1,000 */
    int64_t settle_batch_max;    /* default 1,000 */
    int64_t settle_linger_ms;    /* how long a settle may wait for company: default 0, to 1 s */
    int64_t call_timeout_ms;     /* the longest a store call may take: default 5 s */
    int64_t retry_base_ms;       /* first delay after the store was away: default 100 ms */
    int64_t retry_max_ms;        /* longest delay while the store is away: default 5 s */
} pawl_worker_settings;

/* A reaper's settings. */
typedef struct pawl_reaper_settings {
    int64_t interval_ms; /* PAWL_DEFAULT: the smaller of 10 s and half the smallest lease served;
                            always below that lease */
    int64_t batch_max;   /* rows per run: default 1,000 */
} pawl_reaper_settings;

/* Named intervals for reapers. */
typedef enum pawl_reaper_profile {
    PAWL_REAPER_STANDARD = 0,    /* 10 s */
    PAWL_REAPER_HIGH_VOLUME = 1, /* 5 s */
    PAWL_REAPER_LOW_VOLUME = 2   /* 30 s */
} pawl_reaper_profile;

/* Everything as by default: call one of these first, then set what should differ. */
PAWL_API void pawl_queue_settings_init(pawl_queue_settings *settings);
PAWL_API void pawl_worker_settings_init(pawl_worker_settings *settings);
PAWL_API void pawl_reaper_settings_init(pawl_reaper_settings *settings);

/* A profile's lease or interval in milliseconds; PAWL_INVALID for a value that is no profile. */
PAWL_API PAWL_MUST_USE pawl_code pawl_lease_profile_ms(pawl_lease_profile profile, int64_t *ret_ms,
                                                       pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_reaper_profile_ms(pawl_reaper_profile profile,
                                                        int64_t *ret_ms, pawl_err *err);

/*
 * Check settings. Workers and reapers are checked against the smallest lease they serve.
 * PAWL_INVALID names the field, the value and the bound; where two values contradict each other it
 * names both and the largest one allowed.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_queue_settings_check(const pawl_queue_settings *settings,
                                                           pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_settings_check(const pawl_worker_settings *settings,
                                                            int64_t smallest_lease_ms,
                                                            pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_reaper_settings_check(const pawl_reaper_settings *settings,
                                                            int64_t smallest_lease_ms,
                                                            pawl_err *err);

/* ---------------------------------------------------------------- jobs */

/* A job is in exactly one of these. */
typedef enum pawl_state {
    PAWL_READY = 0,
    PAWL_IN_FLIGHT = 1,
    PAWL_SUCCEEDED = 2,
    PAWL_FAILED = 3
} pawl_state;

/* What a ledger row says of the attempt. */
typedef enum pawl_outcome {
    PAWL_DISPATCHED = 0,    /* it succeeded */
    PAWL_RETRYABLE = 1,     /* it ended and the job goes on */
    PAWL_FAILED_FINAL = 2,  /* it ended and so did the job; printed as FAILED */
    PAWL_ZOMBIE_REQUEUE = 3 /* its lease expired and the job goes on */
} pawl_outcome;

/* Why. */
typedef enum pawl_reason {
    PAWL_REASON_NONE = 0,      /* success */
    PAWL_REASON_ERROR = 1,     /* the handler failed; the job is retried */
    PAWL_REASON_EXHAUSTED = 2, /* the handler failed and no retry is left */
    PAWL_REASON_FATAL = 3,     /* the handler said that no retry will help */
    PAWL_REASON_TIMEOUT = 4,   /* the execution timeout stopped it; the job is retried */
    PAWL_REASON_SNOOZE = 5,    /* the handler asked to run later; no retry was used */
    PAWL_REASON_SHUTDOWN = 6,  /* the worker was shutting down; no retry was used */
    PAWL_REASON_EXPIRED = 7,   /* the lease expired */
    PAWL_REASON_POISON = 8,    /* the lease expired once too often */
    PAWL_REASON_CANCELLED = 9, /* somebody cancelled the job */
    PAWL_REASON_START_BY = 10  /* the job did not start in time */
} pawl_reason;

/* Who ended the attempt, or the job. */
typedef enum pawl_ended_by {
    PAWL_ENDED_BY_HOLDER = 0,   /* the worker, under its lease */
    PAWL_ENDED_BY_EXPIRY = 1,   /* the lease's deadline */
    PAWL_ENDED_BY_OPERATOR = 2, /* a cancellation of a Ready job */
    PAWL_ENDED_BY_DEADLINE = 3  /* the start-by deadline of a Ready job */
} pawl_ended_by;

/* "Ready", "DISPATCHED", "error", "holder" ...; "?" for a number that is none of them. */
PAWL_API const char *pawl_state_name(pawl_state state);
PAWL_API const char *pawl_outcome_name(pawl_outcome outcome);
PAWL_API const char *pawl_reason_name(pawl_reason reason);
PAWL_API const char *pawl_ended_by_name(pawl_ended_by ended_by);

/* What a worker shows to prove that it holds a job. */
typedef struct pawl_lease {
    pawl_id job;
    pawl_token token;
    int64_t version;
    int64_t place; /* of the job, from the claim: proves nothing, and finds it sooner where nothing
                      was done under the lease since; 0: not known */
} pawl_lease;

/* A job as a store gives it out. */
typedef struct pawl_job {
    pawl_id id;
    char queue[PAWL_NAME_MAX + 1];
    /* Empty: none. Of a Succeeded job it may be forgotten, and then no filter finds it by that. */
    char ordering_key[PAWL_ORDERING_KEY_MAX + 1];
    pawl_state state;
    int priority;
    int64_t retries;       /* nacks since enqueue or redrive */
    int64_t lost_leases;   /* expiries since enqueue or redrive */
    int64_t attempts;      /* rows in the ledger */
    int64_t lease_version; /* claims so far; never falls; a fencing token among claims of this job
                            */
    int64_t max_retries;   /* in force for this job */
    pawl_wall created_at;
    pawl_wall due_at;      /* of a Succeeded job this and the next one may be forgotten: 0 */
    pawl_wall start_by;    /* 0: none */
    pawl_wall finished_at; /* 0 while live */
    pawl_reason reason;    /* of the last ledger row; NONE where there is none */

    /* While InFlight; empty otherwise. */
    pawl_token token; /* from claim and mine only; zero elsewhere */
    int64_t fence;    /* of this lease; 0 where the job has no ordering key: see pawl_claim() */
    char worker[PAWL_NAME_MAX + 1];
    pawl_wall claimed_at;
    pawl_wall expires_at;
    pawl_wall run_until;  /* renewals are refused from here on: the execution timeout */
    int64_t lease_ms;     /* as granted */
    int64_t timeout_ms;   /* in force for this lease */
    bool is_cancel_asked; /* marked for cancellation */
    int64_t place; /* where the store has it, from claim only: a hint for the settle, which finds it
                      sooner by that; 0: not known */

    void *payload;      /* owned by this struct; NULL from list, and where it is no longer kept */
    size_t payload_len; /* the payload's size, also where `payload` is NULL */
    char *headers; /* one text: see headers.h. Owned likewise; NULL where there are none, from list,
                      and where the payload is no longer kept */
} pawl_job;

/* Free what the job owns and empty it. Accepts NULL and an empty job. */
PAWL_API void pawl_job_clear(pawl_job *job);

/* One row of a job's ledger. Rows are never changed. */
typedef struct pawl_attempt {
    int64_t attempt_no; /* from 1, without gaps */
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
    int64_t lease_version;          /* of the lease that ended; 0 where the job was not InFlight */
    char worker[PAWL_NAME_MAX + 1]; /* its holder; empty where there was none */
    pawl_wall started_at;           /* when the lease was granted; 0 where there was none */
    pawl_wall finished_at;
    char error_code[PAWL_ERROR_CODE_MAX + 1];
    char error_text[PAWL_ERROR_TEXT_MAX + 1];
    /* How often its request left the machine, wholly or in part; PAWL_SENDS_UNKNOWN where its
     * holder has not said: it was no delivery, or its lease expired. */
    int64_t wire_sends;
} pawl_attempt;

/* ---------------------------------------------------------------- stores */

/*
 * A handle on a store. One call at a time per handle; open one handle per thread. Only pawl_wake()
 * may be called from another thread.
 */
typedef struct pawl_store pawl_store;

/* A store in memory: for tests, examples and simulation. Its jobs end with it. Safe to share
 * between threads. */
typedef struct pawl_memory pawl_memory;

typedef struct pawl_memory_options {
    const pawl_clock *clock;   /* borrowed until pawl_memory_free(); default: the system's */
    const pawl_random *random; /* likewise; used under the store's lock */
    int64_t shards;            /* default 1; to PAWL_SHARDS_MAX */
    int64_t payload_max;       /* default PAWL_PAYLOAD_MAX */
    int64_t jobs_max; /* jobs of all states at once: default 10,000,000; enqueue answers PAWL_FULL
                         above it */
} pawl_memory_options;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_memory_options_init(pawl_memory_options *options);

/* Make a memory store. `options` may be NULL. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_code pawl_memory_new(const pawl_memory_options *options,
                                                 pawl_memory **ret_memory, pawl_err *err);

/* Free it and all its jobs. Every handle must have been closed. Accepts NULL. */
PAWL_API void pawl_memory_free(pawl_memory *memory);

/* Open a handle. The memory must outlive it. */
PAWL_API PAWL_MUST_USE pawl_code pawl_memory_open(pawl_memory *memory, pawl_store **ret_store,
                                                  pawl_err *err);

/*
 * A store in a file, by SQLite. Its jobs outlive the process; several processes may share the file,
 * on one machine, and an application may keep its own tables in it and enqueue in its own
 * transactions (docs/sqlite.md). Make one of these per process and file, and a handle for each
 * thread: what the threads write at the same time is committed together. Safe to share between
 * threads; not across fork().
 */
typedef struct pawl_sqlite pawl_sqlite;

typedef struct pawl_sqlite_options {
    const char *path; /* copied. NULL: pawl/pawl.db in $XDG_STATE_HOME, else in ~/.local/state */
    const pawl_clock *clock;   /* borrowed until pawl_sqlite_free(); default: the system's. All
                                  processes on one file need the same time */
    const pawl_random *random; /* likewise; never used by two threads at once */
    int64_t payload_max;       /* default PAWL_PAYLOAD_MAX; to 256 MiB */
    int64_t call_timeout_ms;   /* how long a call waits for its turn and for other processes' locks
                                  before it answers PAWL_DOWN: default 5 s; to a day */
    bool is_only_opened; /* a file that is not there is PAWL_DOWN, and is not made; one without
                                  Pawl's tables is PAWL_INVALID, and stays as it is */
} pawl_sqlite_options;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_sqlite_options_init(pawl_sqlite_options *options);

/*
 * Open the file, or make it. `options` may be NULL. PAWL_INVALID: an option is wrong, the file is
 * no SQLite database, was made by a newer Pawl, has tables named pawl_... that are not Pawl's, has
 * none where it should only be opened, or the library was built without SQLite. PAWL_DOWN: the file
 * or its folder cannot be read or written, or is locked; err->text names it and says what to do.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_sqlite_new(const pawl_sqlite_options *options,
                                                 pawl_sqlite **ret_sqlite, pawl_err *err);

/* Close the file. Every handle must have been closed. Accepts NULL. */
PAWL_API void pawl_sqlite_free(pawl_sqlite *sqlite);

/* Open a handle. The pawl_sqlite must outlive it. PAWL_DOWN as above. */
PAWL_API PAWL_MUST_USE pawl_code pawl_sqlite_open(pawl_sqlite *sqlite, pawl_store **ret_store,
                                                  pawl_err *err);

/*
 * A store in a PostgreSQL database (13 or later) whose schema `pawl migrate up` has set up. Each
 * handle has a connection of its own, made when it is opened and made again, with backoff, when it
 * was lost; it works behind a pooler in transaction mode. Time is the server's.
 */
typedef struct pawl_postgres_options {
    const char *conninfo;      /* a connection string of libpq, postgresql://... or keyword=value;
                                  NULL: the environment's PG... variables. Copied; never told */
    const pawl_clock *clock;   /* borrowed until the handle is closed; used for ids only */
    const pawl_random *random; /* likewise; for ids, tokens and backoffs */
    int64_t call_timeout_ms;   /* the longest that a call may take, its tries and a new connection
                                  included: default 5 s; to a day */
    int64_t payload_max;       /* default PAWL_PAYLOAD_MAX; to 256 MiB */
} pawl_postgres_options;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_postgres_options_init(pawl_postgres_options *options);

/*
 * Open a handle. PAWL_DOWN: the server cannot be reached, or refused the login. PAWL_INVALID: the
 * connection string cannot be read, the schema is missing, older than this library needs (run `pawl
 * migrate up`) or newer than it knows, or the library was built without PostgreSQL.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_postgres_open(const pawl_postgres_options *options,
                                                    pawl_store **ret_store, pawl_err *err);

/*
 * Whether notifications reach this handle, so that pawl_wait() ends as soon as there is work. Sends
 * one and waits up to a second for it. False: they do not arrive (they do not pass a pooler in
 * transaction mode), and pawl_wait() ends by its timeout only. PAWL_DOWN; PAWL_INVALID for a handle
 * on another kind of store.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_postgres_hears(pawl_store *store, bool *ret_hears,
                                                     pawl_err *err);

/* Setting up the schema of a PostgreSQL store, step by step, each whole or not at all. */
typedef struct pawl_migrate_options {
    const char *conninfo; /* as above; its role becomes the owner of what is made */
    int64_t shards;       /* fixed by the first `up`. PAWL_DEFAULT: what the schema has, else 1; to
                             PAWL_SHARDS_MAX */
    bool is_plain;        /* also what only plain PostgreSQL can do, which is not needed: default
                             true */
    int64_t timeout_ms;   /* the longest that one step may take: default 10 min */
} pawl_migrate_options;

typedef struct pawl_migrate_step {
    const char *name;     /* constant */
    const char *sql;      /* constant; what the step runs */
    bool is_plain;        /* of plain PostgreSQL only: not needed */
    pawl_wall applied_at; /* 0: not yet */
} pawl_migrate_step;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_migrate_options_init(pawl_migrate_options *options);

/*
 * All steps that this library knows, in order, and which of them were applied. Changes nothing.
 * *ret_steps is the caller's to free(). PAWL_INVALID also where the schema is newer than this
 * library knows. PAWL_DOWN.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_migrate_status(const pawl_migrate_options *options,
                                                     pawl_migrate_step **ret_steps,
                                                     size_t *ret_count, pawl_err *err);

/* The SQL that pawl_migrate_up() would run now, as one text that psql can read; empty where there
 * is nothing to do. *ret_sql is the caller's to free(). Codes as above. */
PAWL_API PAWL_MUST_USE pawl_code pawl_migrate_plan(const pawl_migrate_options *options,
                                                   char **ret_sql, pawl_err *err);

/*
 * Apply the steps that are missing, each in a transaction of its own. *ret_count says how many; 0
 * where there was nothing to do. Safe to repeat and from several processes at once: they take
 * turns. PAWL_INVALID: another number of shards than the schema has; a schema newer than this
 * library knows; nothing was done. PAWL_DOWN: the step that err->text names was not applied, those
 * before it were. PAWL_UNKNOWN: the reply to that step was lost; repeat.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_migrate_up(const pawl_migrate_options *options,
                                                 size_t *ret_count, pawl_err *err);

/*
 * Any of these stores by its URL:
 *   postgres://... or postgresql://..., or libpq's keyword=value ...: a PostgreSQL database
 *   sqlite:PATH: a file; `sqlite:` alone: the one in the state folder (see pawl_sqlite_options)
 *   memory:      a new store in memory, which ends with the source
 * Safe to share between threads.
 */
typedef struct pawl_source pawl_source;

typedef struct pawl_source_options {
    const char *url;           /* copied; never told: it may hold a password */
    const pawl_clock *clock;   /* borrowed until pawl_source_free(); default: the system's */
    const pawl_random *random; /* likewise; used by several threads */
    int64_t call_timeout_ms;   /* PAWL_DEFAULT: the store's own default, 5 s */
    int64_t payload_max;       /* PAWL_DEFAULT: PAWL_PAYLOAD_MAX */
    bool is_only_opened;       /* as in pawl_sqlite_options; other stores are never made */
} pawl_source_options;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_source_options_init(pawl_source_options *options);

/*
 * Make a source. A SQLite file is opened, or made, here; a server is first asked by
 * pawl_source_open(). PAWL_INVALID: the URL is of no kind that this library knows, or was built
 * for; or as opening the store says. PAWL_DOWN, PAWL_NO_MEMORY.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_source_new(const pawl_source_options *options,
                                                 pawl_source **ret_source, pawl_err *err);

/* Open a handle. The source must outlive it. */
PAWL_API PAWL_MUST_USE pawl_code pawl_source_open(pawl_source *source, pawl_store **ret_store,
                                                  pawl_err *err);

/* Every handle must have been closed. Accepts NULL. */
PAWL_API void pawl_source_free(pawl_source *source);

/* Close a handle of any store. Accepts NULL. */
PAWL_API void pawl_store_close(pawl_store *store);

/*
 * From now on a call on this handle takes `call_timeout_ms` at most, and never longer than the
 * handle was opened for. PAWL_DEFAULT, and anything below 1: as it was opened. A store whose calls
 * cannot hang ignores it. By the thread that uses the handle.
 */
PAWL_API void pawl_store_limit(pawl_store *store, int64_t call_timeout_ms);

/*
 * Every verb below may also return PAWL_DOWN (nothing was done; try later), PAWL_UNKNOWN (the reply
 * was lost), PAWL_NO_MEMORY (nothing was done) and PAWL_BROKEN (open the handle again). Verbs that
 * take many rows return PAWL_OK for the call and a verdict for each row.
 */

/* ---- producing */

typedef struct pawl_enqueue_row {
    pawl_id id; /* nil: the store makes one. Mint it first (pawl_id_new) to be able to repeat a lost
                   call */
    const char *queue;
    const void *payload; /* bytes, never looked into; NULL with a length of 0 is an empty payload */
    size_t payload_len;
    int priority;            /* PAWL_PRIORITY_URGENT .. PAWL_PRIORITY_LAST */
    int64_t delay_ms;        /* not claimable before this has passed: 0 none; never negative */
    int64_t start_within_ms; /* Failed, reason start_by, unless claimed within this time (a claim
                                that is released does not count); above delay_ms. PAWL_DEFAULT: no
                                such deadline */
    int64_t max_retries;     /* PAWL_DEFAULT: the queue's */
    int64_t timeout_ms;      /* PAWL_DEFAULT: the queue's execution timeout */
    int64_t backoff_base_ms; /* PAWL_DEFAULT: the queue's */
    int64_t backoff_max_ms;  /* PAWL_DEFAULT: the queue's */
    const char *dedupe_key;  /* NULL: none. Unique among the live jobs of the queue that have the
                                same ordering key, or none. UTF-8 without control characters;
                                compared byte by byte */
    /*
     * NULL or empty: none. The live jobs of one key in one queue start one at a time, in the order
     * in which they came. Of two enqueues, the one that had ended before the other began came
     * first; of two that overlapped, either, for good. The first of the key holds it until it is
     * terminal: its delay, its retries, snoozes, releases and lost leases keep the others waiting.
     * Within a key priority is ignored; the first one stands in the queue by its own. A redriven
     * job comes again, as the last. UTF-8 without control characters; compared byte by byte.
     */
    const char *ordering_key;
    const char *headers; /* NULL or empty: none. One text: see headers.h */
} pawl_enqueue_row;

typedef struct pawl_enqueued {
    pawl_code code; /* OK, EXISTS, DUPLICATE */
    pawl_id id;     /* the job's id; for DUPLICATE the id of the job that holds the key */
} pawl_enqueued;

/* No queue and no payload yet, everything else as by default: call it first, then fill the row. */
PAWL_API void pawl_enqueue_init(pawl_enqueue_row *row);

/* Make an id that this store will take for `row` (its queue and both keys must be set): its shard
 * bits are right. */
PAWL_API PAWL_MUST_USE pawl_code pawl_id_new(pawl_store *store, const pawl_enqueue_row *row,
                                             pawl_id *ret_id, pawl_err *err);

/*
 * Put jobs into queues. All rows are checked first: PAWL_INVALID names the row and nothing was
 * done. Then each row is enqueued or refused on its own, all in one transaction, in the order given
 * (which is their order in the queue). PAWL_UNKNOWN: repeat with the same ids; EXISTS then means
 * that it is there. PAWL_FULL: nothing was done.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_enqueue(pawl_store *store, const pawl_enqueue_row *rows,
                                              size_t rows_count, pawl_enqueued *ret_results,
                                              pawl_err *err);

/* ---- working */

typedef struct pawl_claim_line {
    const char *queue;
    int64_t jobs_max; /* take at most so many of this queue; at least 1 */
    int64_t lease_ms; /* PAWL_DEFAULT: the queue's */
} pawl_claim_line;

typedef struct pawl_claim_args {
    const char *worker; /* an id that no other worker process has or had */
    const pawl_claim_line *lines;
    size_t lines_count;
    int64_t bytes_max; /* stop before the payloads exceed this, but give one job at least;
                          PAWL_DEFAULT: 16 MiB. Headers do not count: they are bounded themselves
                        */
} pawl_claim_args;

/*
 * Claim up to `jobs_max` due jobs, line by line in the order given, each under a fresh lease. Of
 * one queue: by priority, then those that came back (released, recovered), then those whose time
 * has come, then arrivals in order. On the way it recovers some of the leases of these queues that
 * have expired, and some of the jobs whose start-by deadline has passed: of those that it cannot
 * take, 100 and two for each of `jobs_max` at most; the rest is the reaper's. A paused queue gives
 * nothing. On PAWL_OK ret_jobs[0 .. *ret_count) belong to the caller: pawl_job_clear() each. A
 * count of 0 means nothing is due, or that only such jobs were met. PAWL_UNKNOWN: leases may have
 * been taken in the worker's name: ask pawl_mine().
 *
 * Of one ordering key a claim takes one job at most, and none while another of the key is InFlight.
 * Each such lease has a fence, drawn from one sequence of the store that rises with every claim of
 * a job with a key, so that of two leases of one key the later one has the higher fence, across
 * jobs, redrives and restarts; see docs/fencing.md. A job that has waited behind others of its key
 * may stand among those that came back.
 *
 * A queue's max_in_flight counts its jobs that are InFlight, also under a lease that has expired
 * until that is recovered, and is never exceeded, but by what was in flight when it was lowered.
 * With several shards each has a share of it: of N shards, the first max_in_flight mod N (from
 * shard 0) one more than max_in_flight / N, the others just that.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_claim(pawl_store *store, const pawl_claim_args *args,
                                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count,
                                            pawl_err *err);

/*
 * The jobs that `worker` holds under a lease that is valid now, as claim gave them, in the order of
 * their ids, from the first id above `after` (NULL: from the beginning). Changes nothing. Ownership
 * of ret_jobs as in pawl_claim().
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_mine(pawl_store *store, const char *worker,
                                           const pawl_id *after, pawl_job *ret_jobs,
                                           size_t jobs_max, size_t *ret_count, pawl_err *err);

typedef struct pawl_renew_row {
    pawl_lease lease;
    int64_t lease_ms; /* PAWL_DEFAULT: the queue's, as it is now */
    /* The holder has not begun: the execution timeout counts from now. Ignored once a renewal
     * without it was accepted; refused (TIMEOUT) from the claim + the timeout + two leases on. */
    bool is_unstarted;
} pawl_renew_row;

typedef struct pawl_renewed {
    pawl_code code; /* OK, STALE, GONE, CANCELLED (marked; not extended), TIMEOUT (not extended) */
    pawl_wall expires_at; /* on OK: the later of what it was and now + lease */
    int64_t lease_ms;     /* on OK: the lease granted, counted from the call */
} pawl_renewed;

/* Extend leases. Never shortens one. A lease that is named more than once is renewed in the order
 * of the rows: the last `lease_ms` stays, and the expiry is the latest of all. */
PAWL_API PAWL_MUST_USE pawl_code pawl_renew(pawl_store *store, const char *worker,
                                            const pawl_renew_row *rows, size_t rows_count,
                                            pawl_renewed *ret_results, pawl_err *err);

typedef enum pawl_settle_action {
    PAWL_SUCCEED = 0,
    PAWL_RETRY = 1, /* uses a retry; Failed when none is left */
    PAWL_FAIL = 2,  /* Failed at once */
    PAWL_SNOOZE = 3 /* back to Ready without using a retry */
} pawl_settle_action;

typedef struct pawl_settle_row {
    pawl_lease lease;
    pawl_settle_action action;
    pawl_reason reason; /* NONE: the action's usual one. RETRY may say TIMEOUT, SNOOZE may say
                           SHUTDOWN, FAIL may say CANCELLED, which counts where the job is marked */
    int64_t delay_ms;   /* RETRY: PAWL_DEFAULT is the computed backoff; SNOOZE needs a value; 0 is
                           allowed; ignored otherwise */
    const char *error_code; /* may be NULL. UTF-8 without control characters */
    const char *error_text; /* likewise, but tab and newline are allowed */
    int64_t wire_sends;     /* see pawl_attempt; default PAWL_SENDS_UNKNOWN; to PAWL_SENDS_MAX */
} pawl_settle_row;

typedef struct pawl_settled {
    pawl_code code;   /* OK (also where this same settle had been done before), STALE, GONE */
    pawl_state state; /* on OK: what the job became by this settle */
    pawl_wall due_at; /* on OK and Ready, the first time: when it is claimable again; otherwise 0 */
    int64_t attempt_no; /* on OK: the ledger row */
} pawl_settled;

/* Success, of no lease yet: call it first, then say which lease, and what else should differ. */
PAWL_API void pawl_settle_init(pawl_settle_row *row);

/*
 * End attempts. Repeating a settle after PAWL_UNKNOWN is safe: it finds its own ledger row by job
 * and lease version. The same action is OK, another one STALE, a pruned history GONE. A job marked
 * for cancellation that is settled as RETRY or SNOOZE becomes Failed, reason cancelled.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_settle(pawl_store *store, const char *worker,
                                             const pawl_settle_row *rows, size_t rows_count,
                                             pawl_settled *ret_results, pawl_err *err);

/*
 * Give jobs back unstarted: Ready at once, no ledger row, no retry used. Verdicts OK, STALE, GONE.
 * A job marked for cancellation becomes Failed instead, with its row. Repeating a release is STALE
 * and harmless.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_release(pawl_store *store, const char *worker,
                                              const pawl_lease *leases, size_t leases_count,
                                              pawl_code *ret_codes, pawl_err *err);

/* ---- recovering */

typedef struct pawl_reaped {
    pawl_id job;
    char queue[PAWL_NAME_MAX + 1];
    char worker[PAWL_NAME_MAX + 1]; /* whose lease expired; empty for a missed start-by deadline */
    int64_t lease_version;
    pawl_state state;   /* Ready, or Failed */
    pawl_reason reason; /* EXPIRED, POISON, CANCELLED, START_BY */
    pawl_wall due_at;
    int64_t overdue_ms; /* how long ago the lease, or the deadline, ended */
} pawl_reaped;

/*
 * Recover up to `rows_max` jobs whose lease has expired, or whose start-by deadline has passed
 * while Ready, those that have waited longest first. Safe in parallel: each expiry is recovered
 * once.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_reap(pawl_store *store, pawl_reaped *ret_rows,
                                           size_t rows_max, size_t *ret_count, pawl_err *err);

/* Delete up to `jobs_max` histories that are older than their queue's retention. Live jobs are
 * never touched. Workers that have not shown themselves for 7 days and hold no lease are forgotten
 * as well, and so are keys of HTTP requests that have expired; they are not counted. */
PAWL_API PAWL_MUST_USE pawl_code pawl_prune(pawl_store *store, size_t jobs_max, size_t *ret_count,
                                            pawl_err *err);

/* ---- operating */

/* Which jobs. Zeroed: all of them. */
typedef struct pawl_filter {
    const char *queue;        /* NULL: any */
    unsigned states;          /* bits 1u << PAWL_READY ...; 0: any */
    pawl_reason reason;       /* of the last ledger row; NONE: any */
    const char *worker;       /* NULL: any; otherwise only jobs InFlight with it */
    const char *ordering_key; /* NULL: any; otherwise 1 byte at least, and `queue` must be given */
} pawl_filter;

/* One job with its payload and headers. PAWL_GONE where there is no memory of it. The caller clears
 * *ret_job.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job,
                                          pawl_err *err);

/*
 * Jobs without payloads and headers, in the order of their ids, from the first id above `after`
 * (NULL: from the beginning). Pass the last id again for the next page: jobs that stay as they are
 * appear exactly once. `filter` may be NULL.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_list(pawl_store *store, const pawl_filter *filter,
                                           const pawl_id *after, pawl_job *ret_jobs,
                                           size_t jobs_max, size_t *ret_count, pawl_err *err);

/* A job's ledger rows above `after_no`, in order. PAWL_GONE where there is no memory of the job. */
PAWL_API PAWL_MUST_USE pawl_code pawl_attempts(pawl_store *store, const pawl_id *id,
                                               int64_t after_no, pawl_attempt *ret_rows,
                                               size_t rows_max, size_t *ret_count, pawl_err *err);

/* Who holds what. Never shows a token. */
typedef struct pawl_lease_info {
    pawl_id job;
    char queue[PAWL_NAME_MAX + 1];
    char worker[PAWL_NAME_MAX + 1];
    int64_t lease_version;
    pawl_wall claimed_at;
    pawl_wall expires_at;
    bool is_expired;
    bool is_cancel_asked;
} pawl_lease_info;

/* Leases, expired ones too, by job id above `after`. Of the filter, queue and worker count. */
PAWL_API PAWL_MUST_USE pawl_code pawl_leases(pawl_store *store, const pawl_filter *filter,
                                             const pawl_id *after, pawl_lease_info *ret_rows,
                                             size_t rows_max, size_t *ret_count, pawl_err *err);

typedef enum pawl_worker_kind {
    PAWL_KIND_WORKER = 0,
    PAWL_KIND_REAPER = 1
} pawl_worker_kind;

/* A worker or reaper process that has shown itself. */
typedef struct pawl_worker {
    char name[PAWL_NAME_MAX + 1];
    pawl_worker_kind kind;
    char host[PAWL_NAME_MAX + 1];
    char version[PAWL_NAME_MAX + 1];
    char queues[PAWL_QUEUES_TEXT_MAX + 1]; /* as it told them */
    pawl_wall since;
    pawl_wall last_seen;
    int64_t leases; /* jobs InFlight in its name now */
} pawl_worker;

typedef struct pawl_worker_seen {
    const char *name;
    pawl_worker_kind kind;
    const char *host;
    const char *version;
    const char
        *queues; /* that it serves, with a blank between two: a text for people, UTF-8 without
                           control characters. NULL: none, as of a reaper */
} pawl_worker_seen;

/* Say that a worker lives (adds or refreshes its row), or that it has ended (removes it; no row is
 * OK too). */
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_seen_now(pawl_store *store,
                                                      const pawl_worker_seen *args, pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_worker_ended(pawl_store *store, const char *name,
                                                   pawl_err *err);

/* Workers by name above `after` (NULL: from the beginning). */
PAWL_API PAWL_MUST_USE pawl_code pawl_workers(pawl_store *store, const char *after,
                                              pawl_worker *ret_rows, size_t rows_max,
                                              size_t *ret_count, pawl_err *err);

typedef struct pawl_stats {
    char queue[PAWL_NAME_MAX + 1];
    bool is_paused;
    int64_t ready;   /* all Ready jobs, due or not */
    int64_t delayed; /* of these, not yet due */
    int64_t in_flight;
    int64_t expired;       /* of these, under an expired lease */
    int64_t succeeded;     /* still remembered */
    int64_t failed;        /* still remembered */
    int64_t oldest_due_ms; /* how long the longest-waiting due job has been due; 0 where none is */
} pawl_stats;

/* Queues that have jobs, history or settings, by name above `after` (NULL: from the beginning). */
PAWL_API PAWL_MUST_USE pawl_code pawl_queue_stats(pawl_store *store, const char *after,
                                                  pawl_stats *ret_rows, size_t rows_max,
                                                  size_t *ret_count, pawl_err *err);

/* A queue's settings; the defaults for one that was never set. */
PAWL_API PAWL_MUST_USE pawl_code pawl_queue_get(pawl_store *store, const char *queue,
                                                pawl_queue_settings *ret_settings, pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_queue_set(pawl_store *store, const char *queue,
                                                const pawl_queue_settings *settings, pawl_err *err);

/* Stop or resume claims from a queue. Leases already granted go on; enqueue goes on. */
PAWL_API PAWL_MUST_USE pawl_code pawl_queue_pause(pawl_store *store, const char *queue,
                                                  bool is_paused, pawl_err *err);

typedef struct pawl_changed {
    pawl_code code;
    pawl_state state; /* on OK: the job's state now */
} pawl_changed;

/*
 * Cancel jobs. A Ready job is Failed at once, reason cancelled. An InFlight one is marked (state
 * stays InFlight): its holder learns it at the next renewal. OK, also where it was marked or
 * cancelled before; ALREADY_SUCCEEDED, ALREADY_FAILED, GONE.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_cancel(pawl_store *store, const pawl_id *ids,
                                             size_t ids_count, pawl_changed *ret_results,
                                             pawl_err *err);

/*
 * Put Failed jobs back: Ready now, at the tail, counters of retries and lost leases at 0, no
 * start-by deadline; the ledger and the lease version go on. OK, NOT_FAILED, ALREADY_SUCCEEDED,
 * DUPLICATE (a live job holds its dedupe key), GONE (also where it was discarded).
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_redrive(pawl_store *store, const pawl_id *ids,
                                              size_t ids_count, pawl_changed *ret_results,
                                              pawl_err *err);

/*
 * Discard Failed jobs: payload and headers go, the history stays until it is pruned. OK, also where
 * it was discarded before; NOT_FAILED, ALREADY_SUCCEEDED, GONE.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_discard(pawl_store *store, const pawl_id *ids,
                                              size_t ids_count, pawl_changed *ret_results,
                                              pawl_err *err);

/*
 * The same for up to `jobs_max` jobs that match a filter and that the verb can change, in the order
 * of their ids. Where *ret_count equals jobs_max, call again. A filter that names only states which
 * the verb cannot change is PAWL_INVALID.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_cancel_where(pawl_store *store, const pawl_filter *filter,
                                                   size_t jobs_max, size_t *ret_count,
                                                   pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_redrive_where(pawl_store *store, const pawl_filter *filter,
                                                    size_t jobs_max, size_t *ret_count,
                                                    pawl_err *err);
PAWL_API PAWL_MUST_USE pawl_code pawl_discard_where(pawl_store *store, const pawl_filter *filter,
                                                    size_t jobs_max, size_t *ret_count,
                                                    pawl_err *err);

/* ---- waiting */

/* The store's clock. */
PAWL_API PAWL_MUST_USE pawl_code pawl_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err);

/*
 * Wait up to `timeout_ms` for a hint that there may be work. Returns PAWL_OK; *ret_hint tells a
 * hint from the time being up. A hint may be false, and may be lost: polling never stops.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint,
                                           pawl_err *err);

/* End another thread's pawl_wait() on this handle, or its next one, at once. The one verb that is
 * safe from any thread. */
PAWL_API void pawl_wake(pawl_store *store);

#ifdef __cplusplus
}
#endif

#endif
