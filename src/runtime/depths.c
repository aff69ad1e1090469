/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * depths.c - asks the store how deep queues are, for the figures.
 * Owns:  which queues are asked for, and how often.
 * Never: asks for what has ended: that would cost more with every job that was ever done.
 */
#include "runtime/depths.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>

#define PART    50    /* one part of the time, of so many, goes into looking at the most */
#define PAGE    100   /* queues in a call */
#define ALL_MAX 10000 /* queues in a look: more are left out */

static pawl_code look_at_served(pawl_metrics *metrics, pawl_store *store, size_t *ret_rows,
                                pawl_err *err)
{
    char name[PAWL_NAME_MAX + 1];
    for (size_t i = 0; pawli_metrics_served(metrics, i, name); i++) {
        pawl_stats row;
        size_t count = 0;
        pawl_code code = pawl_queue_depths(store, &(pawl_depth_args){.queue = name}, &row, 1,
                                           &count, err);
        if (code != PAWL_OK)
            return code;
        pawli_metrics_depths(metrics, &row, count, false);
        *ret_rows = i + 1;
    }
    return PAWL_OK;
}

/* All pages at once: what is beyond the named ones is told as a sum. */
static pawl_code look_at_all(pawl_metrics *metrics, pawl_store *store, size_t *ret_rows,
                             pawl_err *err)
{
    pawl_stats *rows = NULL;
    size_t known = 0;
    size_t count = PAGE;
    pawl_code code = PAWL_OK;
    while (code == PAWL_OK && count == PAGE && known < ALL_MAX) {
        pawl_stats *more = realloc(rows, (known + PAGE) * sizeof(*rows));
        if (more == NULL) {
            code = pawli_fail_plain(err, PAWL_NO_MEMORY);
            break;
        }
        rows = more;
        pawl_depth_args args = {.after = known > 0 ? rows[known - 1].queue : NULL};
        code = pawl_queue_depths(store, &args, rows + known, PAGE, &count, err);
        known += code == PAWL_OK ? count : 0;
    }
    if (code == PAWL_OK)
        pawli_metrics_depths(metrics, rows, known, true);
    *ret_rows = known;
    free(rows);
    return code;
}

pawl_code pawli_depths_look(pawl_metrics *metrics, pawl_store *store, bool is_all, size_t *ret_rows,
                            pawl_err *err)
{
    *ret_rows = 0;
    return is_all ? look_at_all(metrics, store, ret_rows, err)
                  : look_at_served(metrics, store, ret_rows, err);
}

int64_t pawli_depths_pause_ms(const pawl_metrics *metrics, int64_t took_us)
{
    int64_t least_ms = pawli_metrics_look_ms(metrics);
    int64_t pause_ms = took_us / 1000 * PART;
    return pause_ms > least_ms ? pause_ms : least_ms;
}
