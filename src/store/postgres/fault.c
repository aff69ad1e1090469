/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault.c - what a fault of the server or of the connection means, and the words for it.
 * Owns:  the table of SQLSTATEs that we have words for; which of them allow another try.
 * Never: passes on a text of libpq or of the server: these quote connection strings, rows and
 *        payloads. A SQLSTATE is five letters of a fixed list, and says enough.
 */
#include "store/postgres/postgres.h"

#include "base/error.h"

#include <assert.h>
#include <string.h>

#define SQLSTATE_LEN (PAWLI_PG_SQLSTATE_MAX - 1)
#define CLASS_LEN    2

#define SCHEMA_TEXT "the schema pawl is missing or not the one expected; run `pawl migrate up`"

struct fault_row {
    const char *sqlstate; /* or the two letters of a class, after the single ones */
    pawl_code code;       /* where nothing was done */
    /* NULL: what our function said, which names a domain and offsets, or an endpoint, only. */
    const char *text;
};

static const struct fault_row fault_rows[] = {
    {"22021", PAWL_INVALID, "a text is not valid in the encoding of the database (UTF-8)"},
    {"22P05", PAWL_INVALID, "a text cannot be told in the encoding of the database"},
    {"25006", PAWL_DOWN, "the server takes no changes: it is read-only, or a standby"},
    {"28000", PAWL_DOWN, "the server refused the login"},
    {"28P01", PAWL_DOWN, "the server refused the login"},
    {"3D000", PAWL_DOWN, "the server has no such database"},
    {"3F000", PAWL_DOWN, SCHEMA_TEXT},
    {"42501", PAWL_DOWN, "the role lacks a privilege that Pawl needs"},
    {"42703", PAWL_DOWN, SCHEMA_TEXT},
    {"42804", PAWL_DOWN, SCHEMA_TEXT},
    {"42883", PAWL_DOWN, SCHEMA_TEXT},
    {"42P01", PAWL_DOWN, SCHEMA_TEXT},
    {"53100", PAWL_FULL, "the server's disk is full"},
    {"53200", PAWL_DOWN, "the server ran out of memory"},
    {"53300", PAWL_DOWN, "the server has no connection left"},
    {"55P03", PAWL_DOWN, "others held what the call needed, through every try"},
    {"57014", PAWL_DOWN, "the server stopped the call: its time was up, or somebody cancelled it"},
    {"57P01", PAWL_DOWN, "the server is ending its connections"},
    {"57P02", PAWL_DOWN, "the server is ending its connections"},
    {"57P03", PAWL_DOWN, "the server is starting or stopping"},
    {"P7010", PAWL_WL_ORDER, NULL},
    {"P7011", PAWL_WL_NO_LEASE, NULL},
    {"P7012", PAWL_WL_TOKEN, NULL},
    {"P7013", PAWL_WL_BACKLOG_FULL, NULL},
    {"P7014", PAWL_WL_EXPIRED, NULL},
    {"P7003", PAWL_EXISTS, NULL},
    {"P7020", PAWL_FULL, NULL},
    {"P7021", PAWL_HAS_JOBS, NULL},
    {"P7022", PAWL_GONE, NULL},
    {"P7023", PAWL_INVALID, NULL},
    {"P7024", PAWL_GONE, NULL},
    {"08", PAWL_DOWN, "the connection to the server failed"},
    {"40", PAWL_DOWN, "others were in the way, through every try"},
};

static const struct fault_row *find_row(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof(fault_rows) / sizeof(fault_rows[0]); i++)
        if (strncmp(sqlstate, fault_rows[i].sqlstate, strlen(fault_rows[i].sqlstate)) == 0)
            return &fault_rows[i];
    return NULL;
}

bool pawli_pg_is_again(const char *sqlstate)
{
    /* 40003 is the one of its class that does not say that nothing was done. 26000: the session is
     * not the one that was told of a statement; the next try has another. */
    return (strncmp(sqlstate, "40", CLASS_LEN) == 0 && strcmp(sqlstate, "40003") != 0) ||
           strcmp(sqlstate, "55P03") == 0 || strcmp(sqlstate, "26000") == 0;
}

bool pawli_pg_is_link_fault(const char *sqlstate)
{
    return strncmp(sqlstate, "08", CLASS_LEN) == 0 || strcmp(sqlstate, "40003") == 0;
}

pawl_code pawli_pg_fail(const struct pawli_pg_fault *fault, bool is_read, pawl_err *err)
{
    assert(fault->fate != PAWLI_PG_DONE);
    const struct fault_row *row = fault->sqlstate[0] != '\0' ? find_row(fault->sqlstate) : NULL;
    const char *text = row != NULL ? row->text : fault->text;
    if (row == NULL && fault->sqlstate[0] != '\0')
        text = NULL; /* the server did answer */
    pawl_code code = PAWL_UNKNOWN;
    if (fault->fate == PAWLI_PG_NOT_DONE)
        code = row != NULL ? row->code : PAWL_DOWN;
    else if (is_read)
        code = PAWL_DOWN;
    if (row != NULL && row->text == NULL && fault->fate == PAWLI_PG_NOT_DONE)
        return pawli_fail(err, code, "%s", fault->own);
    if (text == NULL)
        text = "the server reported an error";
    if (fault->sqlstate[0] != '\0')
        return pawli_fail(err, code, "%s (SQLSTATE %s)", text, fault->sqlstate);
    return pawli_fail(err, code, "%s", text);
}

static bool is_sqlstate(const char *text)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return strspn(text, letters) == SQLSTATE_LEN;
}

bool pawli_pg_find_sqlstate(const char *text, char ret_sqlstate[PAWLI_PG_SQLSTATE_MAX])
{
    /* "... FATAL:  28P01": the severity is told in the server's language, the mark is not. */
    bool is_found = false;
    for (const char *at = strstr(text, ":  "); at != NULL; at = strstr(at, ":  ")) {
        at += strlen(":  ");
        if (!is_sqlstate(at))
            continue;
        memcpy(ret_sqlstate, at, SQLSTATE_LEN);
        ret_sqlstate[SQLSTATE_LEN] = '\0';
        is_found = true;
    }
    return is_found;
}

const char *pawli_pg_tell_refusal(const char *text)
{
    static const struct {
        const char *mark;
        const char *words;
    } refusals[] = {
        {"Connection refused", "no server answers at the address: connection refused"},
        {"No such file or directory", "no server answers at the address: no such socket"},
        {"translate host name", "the server's host name is not known"},
        {"timed out", "the server did not answer in time"},
        {"timeout expired", "the server did not answer in time"},
        {"no password supplied", "the server wants a password, and none is given"},
        {"SSL", "no secure connection could be made to the server"},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (strstr(text, refusals[i].mark) != NULL)
            return refusals[i].words;
    return "no connection to the server could be made";
}
