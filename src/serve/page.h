/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * page.h - a page of rows in the order of their names, of which a token may see some.
 */
#ifndef PAWLI_SERVE_PAGE_H
#define PAWLI_SERVE_PAGE_H

#include "serve/call.h"
#include "serve/job_json.h"

struct pawli_page {
    const char *title; /* of the array in the answer */
    size_t row_size;
    size_t rows_most; /* that are read at once */
    /* Read rows above `after`; NULL: from the beginning. */
    pawl_code (*read)(struct pawli_call *call, const char *after, void *ret_rows, size_t rows_max,
                      size_t *ret_count);
    const char *(*name_of)(const void *row);
    const char *(*queue_of)(const void *row); /* by which it is judged whether it may be seen */
    void (*put)(struct pawli_writer *writer, const void *row);
};

/* Answer with it: `limit` (`page->rows_most` at most) and `after` of the query. Neither a row nor
 * `next` is ever of a queue that the token is not for. */
pawl_code pawli_page_answer(struct pawli_call *call, const struct pawli_page *page,
                            int64_t limit_usual);

#endif
