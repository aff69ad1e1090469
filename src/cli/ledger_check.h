/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ledger_check.h - whether a job and its ledger can have come about as Pawl promises.
 *
 *  L1  rows are numbered from 1 without gaps, and the job counts as many
 *  L2  no row begins before the one before it has ended, nor ends before it began; nor does the
 *      lease that is held now
 *  L3  at most one row says DISPATCHED
 *  L4  nothing follows a row that says DISPATCHED; a row that says FAILED is followed by others
 *      only where the job was redriven, of which the ledger knows nothing
 *  L5  each row that ended a lease ended another, later one, and none later than the job's last
 *  L6  the job's state, its reason and the time of its end are those of the last row
 */
#ifndef PAWLI_CLI_LEDGER_CHECK_H
#define PAWLI_CLI_LEDGER_CHECK_H

#include "pawl/pawl.h"

enum pawli_flaw {
    PAWLI_FLAW_NONE = 0,
    PAWLI_FLAW_GAP,               /* L1 */
    PAWLI_FLAW_COUNT,             /* L1 */
    PAWLI_FLAW_OVERLAP,           /* L2 */
    PAWLI_FLAW_SECOND_COMPLETION, /* L3 */
    PAWLI_FLAW_AFTER_END,         /* L4 */
    PAWLI_FLAW_LEASE,             /* L5 */
    PAWLI_FLAW_STATE              /* L6 */
};

/* "gap", "overlap" ... */
const char *pawli_flaw_name(enum pawli_flaw flaw);

/* What was read of one ledger so far. Zeroed: nothing. */
struct pawli_ledger_check {
    int64_t rows;
    pawl_attempt last;
    int64_t lease_version; /* the last that a row ended */
    bool is_completed;     /* a row said DISPATCHED */
    enum pawli_flaw flaw;  /* the first one found */
    int64_t flaw_no;       /* the number of its row; 0: it is the job's */
    char text[PAWL_ERR_TEXT_MAX];
};

/* The next row, in the order of their numbers. */
void pawli_ledger_check_row(struct pawli_ledger_check *check, const pawl_attempt *row);

/* After the last row: the job itself. */
void pawli_ledger_check_job(struct pawli_ledger_check *check, const pawl_job *job);

#endif
