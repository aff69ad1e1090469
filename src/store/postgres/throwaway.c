/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * throwaway.c - a database that is made for a measurement, and dropped after it.
 * Owns:  its name; the connection string that differs from the given one by that name only.
 * Never: drops a database that it has not made; shows a connection string.
 */
#include "store/throwaway.h"

#include "base/buffer.h"
#include "base/error.h"

#include <assert.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX       160
#define MESSAGE_MAX   160
#define NAME_FORMAT   "pawl_bench_%016llx"
#define MAY_NOT_STATE "42501" /* insufficient_privilege */

/* Run one statement on a connection of its own. */
static pawl_code run(const char *conninfo, const char *sql, const char *what, pawl_err *err)
{
    pawl_code code = PAWL_OK;
    PGconn *conn = PQconnectdb(conninfo != NULL ? conninfo : "");
    if (PQstatus(conn) != CONNECTION_OK) {
        PQfinish(conn);
        return pawli_fail(err, PAWL_DOWN, "the server cannot be reached, or refused the login");
    }
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        bool may_not = state != NULL && strcmp(state, MAY_NOT_STATE) == 0;
        code = pawli_fail(err, may_not ? PAWL_INVALID : PAWL_DOWN, "%s: %.*s%s", what, MESSAGE_MAX,
                          message != NULL ? message : "the connection was lost",
                          may_not ? ": alter role ... createdb" : "");
    }
    PQclear(result);
    PQfinish(conn);
    return code;
}

static bool put_text(struct pawli_buffer *text, const char *more)
{
    return pawli_buffer_put(text, more, strlen(more));
}

/* A word of a connection string, its value quoted. */
static bool put_word(struct pawli_buffer *text, const char *keyword, const char *value)
{
    bool is_put = put_text(text, keyword) && put_text(text, "='");
    for (const char *at = value; is_put && *at != '\0'; at++) {
        if (*at == '\'' || *at == '\\')
            is_put = put_text(text, "\\");
        is_put = is_put && pawli_buffer_put(text, at, 1);
    }
    return is_put && put_text(text, "' ");
}

/* All words of `conninfo`, but for the name of the database. */
static pawl_code rename_database(const char *conninfo, const char *name, char **ret_conninfo,
                                 pawl_err *err)
{
    struct pawli_buffer text = {0};
    char *message = NULL;
    PQconninfoOption *words = PQconninfoParse(conninfo != NULL ? conninfo : "", &message);
    PQfreemem(message); /* it may show a password */
    if (words == NULL)
        return pawli_fail(err, PAWL_INVALID, "the connection string cannot be read");
    bool is_put = true;
    for (const PQconninfoOption *word = words; is_put && word->keyword != NULL; word++) {
        if (word->val != NULL && strcmp(word->keyword, "dbname") != 0)
            is_put = put_word(&text, word->keyword, word->val);
    }
    is_put = is_put && put_word(&text, "dbname", name) && pawli_buffer_put(&text, "", 1);
    PQconninfoFree(words);
    if (!is_put) {
        pawli_buffer_clear(&text);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    *ret_conninfo = (char *)text.bytes; /* its owner from here on */
    return PAWL_OK;
}

pawl_code pawli_throwaway_make(const char *conninfo, struct pawli_throwaway *ret_throwaway,
                               pawl_err *err)
{
    const pawl_random *random = pawl_random_system();
    struct pawli_throwaway made = {.conninfo = NULL};
    char sql[SQL_MAX];
    assert(ret_throwaway != NULL);
    (void)snprintf(made.name, sizeof(made.name), NAME_FORMAT, /* fits */
                   (unsigned long long)random->next(random->user));
    pawl_code code = rename_database(conninfo, made.name, &made.conninfo, err);
    if (code != PAWL_OK)
        return code;
    (void)snprintf(sql, sizeof(sql), "create database %s", made.name); /* fits */
    code = run(conninfo, sql, "a database for the measurement cannot be made", err);
    if (code == PAWL_OK)
        *ret_throwaway = made;
    else
        free(made.conninfo);
    return code;
}

pawl_code pawli_throwaway_drop(const char *conninfo, struct pawli_throwaway *throwaway,
                               pawl_err *err)
{
    char sql[SQL_MAX], what[SQL_MAX];
    pawl_code code = PAWL_OK;
    if (throwaway->name[0] != '\0') {
        (void)snprintf(sql, sizeof(sql), "drop database %s with (force)", throwaway->name);
        (void)snprintf(what, sizeof(what), "the database %s is still there", throwaway->name);
        code = run(conninfo, sql, what, err);
        if (code == PAWL_DOWN && err != NULL && strstr(err->text, throwaway->name) == NULL)
            code = pawli_fail(err, PAWL_DOWN, "%s: the server cannot be reached", what);
    }
    free(throwaway->conninfo);
    *throwaway = (struct pawli_throwaway){.conninfo = NULL};
    return code;
}
