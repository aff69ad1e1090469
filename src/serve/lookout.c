/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * lookout.c - looks into the store for what others have changed, while somebody listens, and a
 *             while longer, so that who comes back has missed nothing.
 * Owns:  the lookout thread, how often it looks, and from when on.
 * Never: looks while nobody listens; takes more of the store's time than a tenth; passes over in
 *        silence what it could not read.
 * Locks: serve.lookout_lock, never held over a store call.
 */
#include "serve/exchange.h"
#include "serve/stream.h"

#include "base/clock.h"
#include "store/recent.h"

#include <stdio.h>
#include <stdlib.h>

#define PAUSE_MS      1000  /* between two looks */
#define PAUSE_MAX_MS  30000 /* where looks take long */
#define SHARE         10    /* a pause is so many times as long as the look before it */
#define OVERLAP_MS    5000  /* how long a change may take to be committed, and still be seen */
#define SPAN_MAX_MS   600000
#define LINGER_MS     60000 /* after the last listener has gone */
#define ROWS_MAX      4096
#define IDS_MAX       256 /* jobs that are looked at by their ids */
#define TOLD_AT_ONCE  64
#define CALL_LIMIT_MS 5000

struct lookout {
    struct pawli_serve *serve;
    struct pawli_link link;
    bool is_going;
    pawl_mono since; /* what was changed before was read */
    pawl_mono heard; /* when somebody was last seen to listen */
    int64_t pause_ms;
};

void pawli_lookout_wake(struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&serve->lookout_lock); /* here and below: cannot fail, it is plain */
    (void)pthread_cond_signal(&serve->lookout_cond);
    (void)pthread_mutex_unlock(&serve->lookout_lock);
}

void pawli_lookout_end(struct pawli_serve *serve)
{
    (void)pthread_mutex_lock(&serve->lookout_lock);
    serve->is_lookout_over = true;
    (void)pthread_cond_signal(&serve->lookout_cond);
    (void)pthread_mutex_unlock(&serve->lookout_lock);
}

/* Until it is time for the next look, or, where none is due, somebody listens. False: the end. */
static bool rest(const struct lookout *lookout)
{
    struct pawli_serve *serve = lookout->serve;
    struct timespec until = pawli_wait_until(lookout->pause_ms);
    int rc = 0;
    (void)pthread_mutex_lock(&serve->lookout_lock);
    while (!serve->is_lookout_over && rc == 0 &&
           (lookout->is_going || atomic_load(&serve->figures.listeners) == 0))
        rc = lookout->is_going
                 ? pthread_cond_timedwait(&serve->lookout_cond, &serve->lookout_lock, &until)
                 : pthread_cond_wait(&serve->lookout_cond, &serve->lookout_lock);
    bool is_over = serve->is_lookout_over;
    (void)pthread_mutex_unlock(&serve->lookout_lock);
    return !is_over;
}

static void tell_lost(struct lookout *lookout)
{
    pawli_stream_tell(lookout->serve->stream, &(struct pawli_change){.kind = PAWLI_CHANGE_LOST});
}

static void tell_rows(struct lookout *lookout, uint64_t mark, const struct pawli_recent *rows,
                      size_t count)
{
    const pawl_clock *clock = lookout->serve->clock;
    struct pawli_change changes[TOLD_AT_ONCE];
    pawl_wall now = clock->wall(clock->user);
    for (size_t i = 0; i < count;) {
        size_t put = 0;
        for (; i < count && put < TOLD_AT_ONCE; i++, put++) {
            struct pawli_change *change = &changes[put];
            *change = (struct pawli_change){.job = rows[i].job, .at = now};
            (void)snprintf(change->queue, sizeof(change->queue), "%s", rows[i].queue); /* fits */
            (void)snprintf(change->state, sizeof(change->state), "%s",
                           rows[i].is_discarded ? PAWLI_STATE_DISCARDED
                                                : pawl_state_name(rows[i].state)); /* fits */
        }
        pawli_stream_tell_seen(lookout->serve->stream, mark, changes, put);
    }
    if (count == ROWS_MAX)
        tell_lost(lookout); /* there may have been more */
}

static pawl_code read_rows(struct lookout *lookout, const struct pawli_recent_args *args,
                           struct pawli_recent *rows, size_t *ret_count)
{
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    pawl_code code = pawli_link_ready(&lookout->link, CALL_LIMIT_MS, NULL);
    if (code == PAWL_OK)
        code = pawli_link_after(&lookout->link, pawli_recent(lookout->link.store, args, rows,
                                                             ROWS_MAX, ret_count, NULL));
    return code;
}

static void look(struct lookout *lookout)
{
    struct pawli_stream *stream = lookout->serve->stream;
    struct pawli_recent *rows = calloc(ROWS_MAX, sizeof(*rows));
    pawl_id ids[IDS_MAX];
    size_t count = 0;
    pawl_mono start = pawli_serve_now(lookout->serve);
    uint64_t mark = pawli_stream_mark(stream);
    struct pawli_recent_args args = {
        .span_ms = pawli_mono_diff_ms(lookout->since, start) + OVERLAP_MS, .ids = ids};
    args.ids_count = pawli_stream_ask_after(stream, ids, IDS_MAX);
    if (args.span_ms > SPAN_MAX_MS) {
        tell_lost(lookout);
        args.span_ms = OVERLAP_MS;
        lookout->since = start;
    }
    if (read_rows(lookout, &args, rows, &count) == PAWL_OK) {
        tell_rows(lookout, mark, rows, count);
        lookout->since = start;
    } else {
        for (size_t i = 0; i < args.ids_count; i++)
            pawli_stream_ask(stream, &ids[i]); /* the next time */
    }
    free(rows);
    int64_t pause_ms = pawli_mono_diff_ms(start, pawli_serve_now(lookout->serve)) * SHARE;
    lookout->pause_ms = pause_ms < PAUSE_MS       ? PAUSE_MS
                        : pause_ms < PAUSE_MAX_MS ? pause_ms
                                                  : PAUSE_MAX_MS;
}

/* Begin, go on, or give up. */
static void decide(struct lookout *lookout)
{
    struct pawli_serve *serve = lookout->serve;
    pawl_mono now = pawli_serve_now(serve);
    if (atomic_load(&serve->figures.listeners) > 0)
        lookout->heard = now;
    if (!lookout->is_going) {
        lookout->is_going = true;
        lookout->since = now;
        lookout->pause_ms = PAUSE_MS;
        pawli_stream_watch(serve->stream);
    } else if (pawli_mono_diff_ms(lookout->heard, now) > LINGER_MS) {
        lookout->is_going = false;
        pawli_stream_unwatch(serve->stream);
        pawli_link_close(&lookout->link);
    }
}

void pawli_lookout_run(void *user)
{
    struct pawli_serve *serve = user;
    struct lookout lookout = {.serve = serve,
                              .link = {.opener = &serve->opener, .role = PAWL_ROLE_DIRECTORY}};
    while (rest(&lookout)) {
        decide(&lookout);
        if (lookout.is_going)
            look(&lookout);
    }
    pawli_link_close(&lookout.link);
}
