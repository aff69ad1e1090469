/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_ledger.c - a job's final ledger against the rows that its calls imply.
 * Owns:  C7, for exact histories.
 * Never: works out what the rows must be (the walk over the calls does).
 */
#include "sim/check_model.h"

#include <inttypes.h>

/* Say how a row differs from what it must be; false: it does not. */
static bool is_other(struct check_model *model, const struct check_event *row,
                     const struct check_row *wanted)
{
    if (row->version != wanted->version) {
        check_wrong(model, CHECK_C7, row, "row %" PRId64 " is of version %" PRId64 ", not %" PRId64,
                    row->u.attempt.number, row->version, wanted->version);
        return true;
    }
    if (row->outcome != wanted->outcome || row->reason != wanted->reason ||
        row->ended_by != wanted->ended_by) {
        check_wrong(
            model, CHECK_C7, row, "row %" PRId64 " says %s, %s, by %s; it must be %s, %s, by %s",
            row->u.attempt.number, pawl_outcome_name((pawl_outcome)row->outcome),
            pawl_reason_name((pawl_reason)row->reason),
            pawl_ended_by_name((pawl_ended_by)row->ended_by), pawl_outcome_name(wanted->outcome),
            pawl_reason_name(wanted->reason), pawl_ended_by_name(wanted->ended_by));
        return true;
    }
    if (row->by != wanted->worker) {
        check_wrong(model, CHECK_C7, row, "row %" PRId64 " is of %s, not of %s",
                    row->u.attempt.number, check_worker_name(row->by),
                    check_worker_name(wanted->worker));
        return true;
    }
    bool is_time_wrong = row->u.attempt.started_us != wanted->started_us ||
                         (wanted->finished_us != 0 &&
                          row->u.attempt.finished_us != wanted->finished_us);
    if (is_time_wrong)
        check_wrong(model, CHECK_C7, row,
                    "row %" PRId64 " is from %" PRId64 " to %" PRId64 ", not from %" PRId64
                    " to %" PRId64,
                    row->u.attempt.number, row->u.attempt.started_us, row->u.attempt.finished_us,
                    wanted->started_us, wanted->finished_us);
    return is_time_wrong;
}

void check_ledger(struct check_model *model)
{
    size_t count = 0;
    for (const struct check_event *row = model->job->ledger_first; row != NULL; row = row->next) {
        if (row->u.attempt.number != (int64_t)count + 1) {
            check_wrong(model, CHECK_C7, row, "row %" PRId64 " stands where row %zu must",
                        row->u.attempt.number, count + 1);
            return;
        }
        /* What nobody saw is known from the final list only: without it, it may have been that. */
        if (count >= model->rows_count && model->book->list_seq == 0)
            return;
        if (count >= model->rows_count) {
            check_wrong(model, CHECK_C7, row, "row %" PRId64 " (%s) has no cause in the calls",
                        row->u.attempt.number, pawl_outcome_name((pawl_outcome)row->outcome));
            return;
        }
        if (count < model->rows_size && is_other(model, row, &model->rows[count]))
            return;
        count++;
    }
    if (count < model->rows_count && count < model->rows_size) {
        const struct check_row *missing = &model->rows[count];
        check_wrong(model, CHECK_C7, missing->cause, "row %zu (%s, %s) is missing", count + 1,
                    pawl_outcome_name(missing->outcome), pawl_reason_name(missing->reason));
    }
}
