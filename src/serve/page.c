/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * page.c - a page of rows in the order of their names, of which a token may see some.
 * Owns:  how far is read for it: past what may not be seen, to the next that may.
 * Never: names what the token is not for.
 */
#include "serve/page.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>

#define ROUNDS_MAX 16 /* reads for one page, where something to be seen was found */

struct asked {
    const char *after;
    int64_t limit;
};

/* On its way through the rows. */
struct walk {
    const struct pawli_page *page;
    size_t limit;
    size_t shown;
    bool has_more;
    char after[PAWL_NAME_MAX + 1]; /* read up to here */
    char last[PAWL_NAME_MAX + 1];  /* the last that was shown */
};

static void show(struct pawli_call *call, struct pawli_writer *writer, struct walk *walk,
                 const void *row)
{
    const struct pawli_page *page = walk->page;
    (void)pawli_text_copy(walk->after, sizeof(walk->after), page->name_of(row)); /* fits */
    if (!pawli_grant_has_queue(call->grant, page->queue_of(row)))
        return;
    page->put(writer, row);
    walk->shown++;
    (void)pawli_text_copy(walk->last, sizeof(walk->last), page->name_of(row)); /* fits */
}

/* Read on, and show what may be seen. */
static pawl_code read_on(struct pawli_call *call, struct pawli_writer *writer, struct walk *walk,
                         const char *after, void *rows, size_t rows_max)
{
    size_t count = 0;
    pawl_code code = walk->page->read(call, after, rows, rows_max, &count);
    if (code != PAWL_OK)
        return code;
    size_t i = 0;
    for (; i < count && walk->shown < walk->limit; i++)
        show(call, writer, walk, (const char *)rows + i * walk->page->row_size);
    walk->has_more = i < count || count == rows_max;
    return PAWL_OK;
}

static pawl_code fill(struct pawli_call *call, const struct pawli_page *page,
                      const struct asked *asked, void *rows, size_t rows_max)
{
    struct walk walk = {.page = page, .limit = (size_t)asked->limit, .has_more = true};
    struct pawli_writer writer;
    pawl_code code = PAWL_OK;
    const char *after = asked->after;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_array(&writer, page->title);
    for (int i = 0; code == PAWL_OK && walk.has_more && walk.shown < walk.limit &&
                    (i < ROUNDS_MAX || walk.shown == 0);
         i++) {
        code = read_on(call, &writer, &walk, after, rows, rows_max);
        after = walk.after;
    }
    if (code != PAWL_OK)
        return code;
    pawli_put_array_end(&writer);
    pawli_put_next_name(&writer, walk.last, walk.has_more && walk.shown > 0);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_page_answer(struct pawli_call *call, const struct pawli_page *page,
                            int64_t limit_usual)
{
    const struct pawli_field fields[] = {
        {"after", PAWLI_FIELD_TEXT, offsetof(struct asked, after), 0, 0, false, NULL},
        {"limit", PAWLI_FIELD_NUMBER, offsetof(struct asked, limit), 1, (int64_t)page->rows_most,
         false, NULL},
    };
    const struct pawli_fields all = PAWLI_FIELDS(fields);
    struct asked asked = {.limit = limit_usual};
    pawl_code code = pawli_fields_query(&all, call->uri, &asked, &call->err);
    if (code != PAWL_OK)
        return code;
    assert(asked.limit >= 1 && (size_t)asked.limit <= page->rows_most);
    /* Whoever may see all needs no more than are asked for. */
    bool is_all = pawli_grant_has_all_queues(call->grant);
    size_t rows_max = is_all ? (size_t)asked.limit : page->rows_most;
    void *rows = calloc(rows_max, page->row_size);
    if (rows == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = fill(call, page, &asked, rows, rows_max);
    free(rows);
    return code;
}
