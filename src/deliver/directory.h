/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * directory.h - which endpoints there are, as the store has them: a thread that asks now and then,
 * and when there may be work, tells what is new, and disables those that are to be.
 */
#ifndef PAWLI_DELIVER_DIRECTORY_H
#define PAWLI_DELIVER_DIRECTORY_H

#include "pawl/endpoint.h"
#include "runtime/crew.h"
#include "runtime/watch.h"

#include <sys/queue.h>

/* One endpoint that is new, or has changed, or is there no more. */
struct pawli_news {
    bool is_gone;  /* of the endpoint only its name counts */
    int64_t marks; /* how many orders of it were carried out when it was looked at */
    pawl_endpoint endpoint;
    pawl_endpoint_credentials credentials;
    STAILQ_ENTRY(pawli_news) next; /* the receiver's */
};
STAILQ_HEAD(pawli_news_list, pawli_news);
void pawli_news_free(struct pawli_news *news); /* overwrites it; accepts NULL */

struct pawli_directory;

struct pawli_directory_config {
    const pawl_opener *opener; /* borrowed, as all here */
    struct pawli_watch *watch;
    const pawl_clock *clock;
    const char *worker; /* who disables */
    int64_t refresh_ms; /* how often it asks at the least */
    /* Takes news. From the directory's thread; short. */
    void (*tell)(void *user, struct pawli_news *news);
    void *user;
};

struct pawli_directory *pawli_directory_new(const struct pawli_directory_config *config);
void pawli_directory_free(struct pawli_directory *directory); /* no thread uses it; accepts NULL */

/* The thread, until it is told to end. */
void pawli_directory_run(void *directory);
void pawli_directory_end(struct pawli_directory *directory);

/* Put on record that an endpoint fails, or is well again; and disable it where it has failed for
 * too long, with the reason: the store decides. Told anew when it was carried out. As below. */
struct pawli_mark {
    const char *name;
    bool is_failing;
    int64_t disable_after_ms; /* PAWL_FOREVER: never */
    const char *reason;       /* NULL: none */
};
bool pawli_directory_mark(struct pawli_directory *directory, const struct pawli_mark *mark);

/* Disable an endpoint, with the reason on record; goes on until the store has it. But where it was
 * changed since (somebody may have enabled it), what is known of it is of no account, and nothing
 * is done. Told anew in any case. Never blocks. False: memory ran out; ask again. */
struct pawli_disabling {
    const char *name;
    int64_t revision; /* this and the next: of the endpoint as it was when it failed */
    pawl_wall created_at;
    const char *reason;
};
bool pawli_directory_disable(struct pawli_directory *directory, const struct pawli_disabling *what);

#endif
