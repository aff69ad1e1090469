/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * link.c - one connection to the server: making it, one exchange over it, giving it up.
 * Owns:  the knowledge of how far an exchange has come, and so what a fault in it means (P1 to P3
 *        of postgres.h); the waiting, with a deadline on everything.
 * Never: blocks without a deadline (but for name resolution, which libpq does within the start of a
 *        connection); keeps anything in a session that may be another's (P5); tries anything twice;
 *        waits for the answer to what follows a call (P7) before the next one.
 */
#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- waiting */

#define MS_PER_S  1000
#define NS_PER_MS 1000000
#define SURE_MS   1 /* how long a link that has answered is taken to live */

int64_t pawli_pg_left_ms(struct timespec until)
{
    struct timespec now = pawli_wait_until(0);
    int64_t ms = ((int64_t)until.tv_sec - now.tv_sec) * MS_PER_S +
                 (until.tv_nsec - now.tv_nsec + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 0 ? ms : 0;
}

struct timespec pawli_pg_sooner(struct timespec a, struct timespec b)
{
    if (a.tv_sec != b.tv_sec)
        return a.tv_sec < b.tv_sec ? a : b;
    return a.tv_nsec < b.tv_nsec ? a : b;
}

/* poll() until one of `fds` is ready or the time is up. Gives poll()'s count, 0 when it is up. */
static int poll_until(struct pollfd *fds, nfds_t fds_count, struct timespec until)
{
    for (;;) {
        int64_t left_ms = pawli_pg_left_ms(until);
        int ready = poll(fds, fds_count, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return ready;
        if (left_ms == 0)
            return 0;
    }
}

enum pawli_pg_waited pawli_pg_await(const struct pawli_pg_link *link, bool is_writing,
                                    struct timespec until)
{
    struct pollfd fds[] = {
        {.fd = PQsocket(link->conn), .events = (short)(is_writing ? POLLIN | POLLOUT : POLLIN)},
        {.fd = link->wake_fd, .events = POLLIN}, /* poll() passes over a negative one */
    };
    if (fds[0].fd < 0)
        return PAWLI_PG_READY; /* whoever reads or writes next learns that it is gone */
    int ready = poll_until(fds, 2, until);
    if (ready == 0)
        return PAWLI_PG_LATE;
    return ready > 0 && fds[1].revents != 0 ? PAWLI_PG_WOKEN : PAWLI_PG_READY;
}

void pawli_pg_pause(const pawl_random *random, int64_t most_ms, struct timespec until)
{
    assert(most_ms >= 0);
    int64_t ms = (int64_t)pawli_random_below(random, (uint64_t)most_ms + 1);
    struct pollfd nothing = {.fd = -1};
    /* Cannot be ready: only the time ends it. */
    (void)poll_until(&nothing, 1, pawli_pg_sooner(pawli_wait_until(ms), until));
}

/* ---- life */

/* Notices are told to nobody. One that the connection is ending makes the link useless. */
static void on_notice(void *user, const PGresult *notice)
{
    struct pawli_pg_link *link = user;
    const char *sqlstate = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    if (sqlstate != NULL && strncmp(sqlstate, "57P", 3) == 0)
        link->is_ending = true;
}

static bool refuse(struct pawli_pg_link *link, const char *text, struct pawli_pg_fault *ret_fault)
{
    *ret_fault = (struct pawli_pg_fault){.fate = PAWLI_PG_NOT_DONE, .text = text};
    if (text == NULL) {
        const char *message = PQerrorMessage(link->conn);
        if (!pawli_pg_find_sqlstate(message, ret_fault->sqlstate))
            ret_fault->text = pawli_pg_tell_refusal(message);
    }
    pawli_pg_disconnect(link);
    return false;
}

static PGconn *start(const char *conninfo, int64_t call_timeout_ms)
{
    char timeout[24];
    /* Always fits. It bounds how long TCP waits for an acknowledgement. */
    (void)snprintf(timeout, sizeof(timeout), "%lld", (long long)call_timeout_ms);
    /* What stands before dbname gives way to the user's; what stands behind does not. */
    const char *const keys[] = {"tcp_user_timeout", "dbname", "client_encoding",
                                "fallback_application_name", NULL};
    const char *const values[] = {timeout, conninfo, "UTF8", "pawl", NULL};
    return PQconnectStartParams(keys, values, 1);
}

bool pawli_pg_connect(struct pawli_pg_link *link, const char *conninfo, int64_t call_timeout_ms,
                      struct timespec until, struct pawli_pg_fault *ret_fault)
{
    assert(link->conn == NULL);
    link->is_ending = link->is_direct = false;
    link->limit_ms = 0;
    link->prepared.count = link->prepared.known = 0;
    link->conn = start(conninfo, call_timeout_ms);
    if (link->conn == NULL)
        return refuse(link, "memory ran out", ret_fault);
    if (PQstatus(link->conn) == CONNECTION_BAD)
        return refuse(link, NULL, ret_fault);
    /* From here on libpq's texts carry SQLSTATEs in place of the server's words. */
    (void)PQsetErrorVerbosity(link->conn, PQERRORS_SQLSTATE); /* gives the one before */
    (void)PQsetNoticeReceiver(link->conn, on_notice, link);   /* likewise */

    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK) {
        enum pawli_pg_waited waited = pawli_pg_await(link, status == PGRES_POLLING_WRITING, until);
        if (waited != PAWLI_PG_READY)
            return refuse(link, "the server did not answer in time", ret_fault);
        status = PQconnectPoll(link->conn);
        if (status == PGRES_POLLING_FAILED)
            return refuse(link, NULL, ret_fault);
    }
    if (PQsetnonblocking(link->conn, 1) != 0 || PQenterPipelineMode(link->conn) != 1)
        return refuse(link, "memory ran out", ret_fault);
    return true;
}

void pawli_pg_disconnect(struct pawli_pg_link *link)
{
    PQfinish(link->conn);
    link->conn = NULL;
    link->is_owing = false;
}

bool pawli_pg_is_alive(const struct pawli_pg_link *link)
{
    if (link->conn == NULL || PQstatus(link->conn) != CONNECTION_OK)
        return false;
    struct pollfd fd = {.fd = PQsocket(link->conn), .events = POLLIN};
    if (pawli_pg_left_ms(link->sure_until) == 0 && poll(&fd, 1, 0) > 0) {
        if (PQconsumeInput(link->conn) != 1)
            return false;
        (void)PQisBusy(link->conn); /* reads what has come: see on_notice() */
    }
    return !link->is_ending && PQstatus(link->conn) == CONNECTION_OK;
}

/* ---- an exchange */

struct progress {
    size_t skipped;   /* answers to statements of our own that are still to come */
    int64_t limit_ms; /* that the session has when all of it is done; 0: as before */
    bool is_all_sent; /* P1 */
    size_t answered;  /* statements that have ended well */
    char sqlstate[PAWLI_PG_SQLSTATE_MAX]; /* of the first error; empty: none */
    char own[PAWLI_PG_OWN_MAX];           /* what it said, where a function of ours raised it */
    bool is_doomed; /* the error came before the last statement had ended: P2 */
    int gaps;       /* between two statements libpq gives one NULL; two in a row are the end */
};

/* What libpq cannot write at once it writes while answers are awaited. */
void pawli_pg_follow(struct pawli_pg_link *link, const struct pawli_pg_statement *statement)
{
    assert(!link->is_owing);
    if (!pawli_pg_send(link, statement))
        return;
    link->is_owing = true;
    if (PQpipelineSync(link->conn) != 1)
        link->is_ending = true; /* no answer would come */
    else
        (void)PQflush(link->conn); /* a fault is met by whoever reads */
}

bool pawli_pg_clear_link(struct pawli_pg_link *link, struct timespec until)
{
    int gaps = 0; /* as in an exchange */
    while (link->is_owing) {
        while (PQisBusy(link->conn) == 1)
            if (pawli_pg_await(link, false, until) != PAWLI_PG_READY ||
                PQconsumeInput(link->conn) != 1)
                return false;
        PGresult *answer = PQgetResult(link->conn);
        gaps = answer == NULL ? gaps + 1 : 0;
        link->is_owing = PQresultStatus(answer) != PGRES_PIPELINE_SYNC;
        PQclear(answer);
        if (gaps == 2 || PQstatus(link->conn) != CONNECTION_OK)
            return false;
    }
    return true;
}

/* The part of a call's time that a statement has: the rest is for the answer's way back. */
static int64_t limit_of(int64_t ms)
{
    return ms * 9 / 10 > 0 ? ms * 9 / 10 : 1;
}

static bool send_limit(PGconn *conn, int64_t limit_ms, bool is_lasting)
{
    char text[24];
    const char *value = text;
    const Oid type = PAWLI_PG_TEXT;
    (void)snprintf(text, sizeof(text), "%lld", (long long)limit_ms); /* always fits */
    return PQsendQueryParams(conn,
                             is_lasting
                                 ? "select pg_catalog.set_config('statement_timeout', $1, false)"
                                 : "select pg_catalog.set_config('statement_timeout', $1, true)",
                             1, &type, &value, NULL, NULL, 1) == 1;
}

/*
 * P4. In a session of our own the limit is sent once, and then holds for each call that has all of
 * its time. Elsewhere, and for what is left of a call's time, it holds for the transaction alone.
 */
static bool bound_call(struct pawli_pg_link *link, const struct pawli_pg_exchange *exchange,
                       struct timespec until, struct progress *progress)
{
    int64_t left_ms = pawli_pg_left_ms(until);
    bool is_lasting = link->is_direct && left_ms >= exchange->limit_ms * 98 / 100;
    int64_t limit_ms = limit_of(is_lasting ? exchange->limit_ms : left_ms);
    if (is_lasting && link->limit_ms == limit_ms)
        return true;
    if (!send_limit(link->conn, limit_ms, is_lasting))
        return false;
    progress->skipped = 1;
    if (is_lasting) {
        link->limit_ms = 0; /* until the transaction has ended well */
        progress->limit_ms = limit_ms;
    }
    return true;
}

/* What the server is to know by name goes before all that is done: so it is known even where that
 * fails. */
static bool prepare_all(struct pawli_pg_link *link, const struct pawli_pg_exchange *exchange,
                        struct progress *progress)
{
    for (size_t i = 0; i < exchange->statements_count; i++)
        if (!pawli_pg_prepare(link, &exchange->statements[i], &progress->skipped))
            return false;
    return exchange->after == NULL || pawli_pg_prepare(link, exchange->after, &progress->skipped);
}

/* Send everything. Where it fails, `progress` knows how far it came. */
static enum pawli_pg_waited send_all(struct pawli_pg_link *link,
                                     const struct pawli_pg_exchange *exchange,
                                     struct timespec until, struct progress *progress)
{
    if (exchange->limit_ms > 0 && !bound_call(link, exchange, until, progress))
        return PAWLI_PG_READY;
    if (!prepare_all(link, exchange, progress))
        return PAWLI_PG_READY;
    for (size_t i = 0; i < exchange->statements_count; i++)
        if (!pawli_pg_send(link, &exchange->statements[i]))
            return PAWLI_PG_READY;
    if (PQpipelineSync(link->conn) != 1)
        return PAWLI_PG_READY;
    int left;
    while ((left = PQflush(link->conn)) == 1) {
        enum pawli_pg_waited waited = pawli_pg_await(link, true, until);
        if (waited != PAWLI_PG_READY)
            return waited;
        if (PQconsumeInput(link->conn) != 1)
            return PAWLI_PG_READY;
    }
    progress->is_all_sent = true; /* also after an error: bytes may have left before it */
    return PAWLI_PG_READY;
}

static void note_error(struct progress *progress, const PGresult *answer, size_t statements_count)
{
    const char *sqlstate = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
    if (sqlstate == NULL || progress->sqlstate[0] != '\0')
        return;
    (void)pawli_text_copy(progress->sqlstate, sizeof(progress->sqlstate), sqlstate); /* it fits */
    progress->is_doomed = progress->answered < statements_count &&
                          !pawli_pg_is_link_fault(sqlstate);
    if (strncmp(sqlstate, "P7", 2) == 0)
        (void)pawli_text_copy(progress->own, sizeof(progress->own), /* cut: it is for people */
                              PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY));
}

/* Take the next answer. False: it was the last, or there will be none. */
static bool take_answer(struct pawli_pg_link *link, const struct pawli_pg_exchange *exchange,
                        struct progress *progress, bool *ret_is_synced)
{
    PGresult *answer = PQgetResult(link->conn);
    if (answer == NULL)
        return ++progress->gaps < 2 && PQstatus(link->conn) == CONNECTION_OK;
    progress->gaps = 0;
    ExecStatusType status = PQresultStatus(answer);
    bool is_kept = false;
    if (status == PGRES_PIPELINE_SYNC) {
        *ret_is_synced = true;
    } else if (progress->skipped > 0 && (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)) {
        progress->skipped--;
        if (status == PGRES_COMMAND_OK)
            pawli_pg_prepared_one(link);
    } else if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        is_kept = progress->answered < exchange->statements_count;
        if (is_kept)
            exchange->ret_answers[progress->answered++] = answer;
    } else if (status != PGRES_PIPELINE_ABORTED) {
        note_error(progress, answer, exchange->statements_count);
    }
    if (!is_kept)
        PQclear(answer);
    return !*ret_is_synced && PQstatus(link->conn) == CONNECTION_OK;
}

/* Gather the answers up to the Sync. */
static enum pawli_pg_waited gather(struct pawli_pg_link *link,
                                   const struct pawli_pg_exchange *exchange, struct timespec until,
                                   struct progress *progress, bool *ret_is_synced)
{
    bool is_more = true;
    while (is_more) {
        while (PQisBusy(link->conn) == 1) {
            enum pawli_pg_waited waited = pawli_pg_await(link, false, until);
            if (waited != PAWLI_PG_READY)
                return waited;
            /* What had come before the end is still to be read: the server's last words. */
            if (PQconsumeInput(link->conn) != 1)
                break;
        }
        is_more = take_answer(link, exchange, progress, ret_is_synced);
    }
    return PAWLI_PG_READY;
}

/* What has become of an exchange that did not end with all its answers. */
static struct pawli_pg_fault judge(const struct progress *progress, bool is_synced,
                                   enum pawli_pg_waited waited)
{
    struct pawli_pg_fault fault = {.fate = PAWLI_PG_MAYBE};
    bool is_error = progress->sqlstate[0] != '\0';
    bool is_rolled_back = is_synced && is_error && !pawli_pg_is_link_fault(progress->sqlstate);
    if (!progress->is_all_sent || progress->is_doomed || is_rolled_back)
        fault.fate = PAWLI_PG_NOT_DONE;
    memcpy(fault.sqlstate, progress->sqlstate, sizeof(fault.sqlstate));
    memcpy(fault.own, progress->own, sizeof(fault.own));
    fault.text = waited == PAWLI_PG_LATE ? "the server did not answer in time"
                                         : "the connection to the server was lost";
    return fault;
}

/* A server that has become a standby stays one: the next call may find another. A statement that
 * the server was told of and does not know, or that gives other columns by now, is told anew. */
static bool is_session_over(const char *sqlstate)
{
    return strcmp(sqlstate, "25006") == 0 || strcmp(sqlstate, "26000") == 0 ||
           strcmp(sqlstate, "0A000") == 0;
}

struct pawli_pg_fault pawli_pg_exchange(struct pawli_pg_link *link,
                                        const struct pawli_pg_exchange *exchange,
                                        struct timespec until)
{
    assert(link->conn != NULL);
    assert(exchange->statements_count > 0);
    assert(!link->is_owing);
    struct progress progress = {0};
    bool is_synced = false;
    enum pawli_pg_waited waited = send_all(link, exchange, until, &progress);
    if (progress.is_all_sent && exchange->after != NULL)
        pawli_pg_follow(link, exchange->after);
    if (progress.is_all_sent)
        waited = gather(link, exchange, until, &progress, &is_synced);
    pawli_pg_prepared_end(link);
    if (is_synced && progress.sqlstate[0] == '\0' &&
        progress.answered == exchange->statements_count) {
        if (progress.limit_ms > 0)
            link->limit_ms = progress.limit_ms;
        link->sure_until = pawli_wait_until(SURE_MS);
        return (struct pawli_pg_fault){.fate = PAWLI_PG_DONE};
    }

    struct pawli_pg_fault fault = judge(&progress, is_synced, waited);
    for (size_t i = 0; i < progress.answered; i++)
        PQclear(exchange->ret_answers[i]);
    if (!is_synced || is_session_over(fault.sqlstate))
        pawli_pg_disconnect(link);
    return fault;
}
