/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease_record.h - all that is kept of one domain in memory: its lease, its backlog, and which
 * offsets are terminal. These are kept as intervals, so that contiguous history costs nothing
 * (WL-MEMORY).
 *
 * The record has no lock: the caller serialises the calls for one domain. What the functions may
 * answer is in core/worklease.h; PAWL_NO_MEMORY as well. On any failure the record is untouched.
 */
#ifndef PAWLI_CORE_WORKLEASE_RECORD_H
#define PAWLI_CORE_WORKLEASE_RECORD_H

#include "core/worklease.h"

struct pawli_worklease;

/* Gives a record for `domain`, or NULL: no memory. */
struct pawli_worklease *pawli_worklease_new(const char *domain);
void pawli_worklease_free(struct pawli_worklease *record); /* accepts NULL */

/* The record fills in what has become of the offset. */
pawl_code pawli_worklease_try_acquire(struct pawli_worklease *record, struct pawli_acquire *acquire,
                                      pawl_worklease_acquired *ret_acquired, pawl_err *err);
pawl_code pawli_worklease_succeed(struct pawli_worklease *record,
                                  const struct pawli_holding *holding,
                                  pawl_worklease_ended *ret_ended, pawl_err *err);
pawl_code pawli_worklease_fail(struct pawli_worklease *record, const struct pawli_holding *holding,
                               pawl_worklease_ended *ret_ended, pawl_err *err);
pawl_code pawli_worklease_renew(struct pawli_worklease *record, const struct pawli_holding *holding,
                                pawl_wall *ret_expires_at, pawl_err *err);

/* ---- looking in */

/* What is known of the domain; borrowed until the record changes. */
struct pawli_worklease_known pawli_worklease_look(const struct pawli_worklease *record);

enum pawli_worklease_fate pawli_worklease_fate_of(const struct pawli_worklease *record,
                                                  int64_t offset);

/* The i-th offset of the backlog, from its head; i below backlog_count. */
int64_t pawli_worklease_backlog_at(const struct pawli_worklease *record, size_t i);

/* Up to `rows_max` intervals of what has ended, by offset, but for the first `skip`. */
size_t pawli_worklease_terminal(const struct pawli_worklease *record, size_t skip,
                                pawl_worklease_interval *ret_rows, size_t rows_max);

/* How many intervals of processed, or of failed, offsets there are. */
size_t pawli_worklease_intervals(const struct pawli_worklease *record, bool is_failed);

/* All that the record has allocated. */
size_t pawli_worklease_bytes(const struct pawli_worklease *record);

#endif
