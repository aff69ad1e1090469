/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * crew.c - threads, and who frees what they share.
 * Owns:  every pthread of the runtime: its start, its name, its end.
 * Never: ends a thread by force; knows what its threads do.
 * Locks: crew.mutex, never held over anything that a thread does.
 */
#include "runtime/crew.h"

#include "base/clock.h"
#include "base/text.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define THREAD_NAME_SIZE 16 /* the system's own bound */

struct member {
    struct pawli_crew *crew;
    pthread_t thread;
    void (*run)(void *user);
    void *user;
    char name[THREAD_NAME_SIZE];
    bool is_used;   /* crew.mutex */
    bool has_ended; /* crew.mutex */
};

struct pawli_crew {
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    size_t alive;   /* threads that have not ended: mutex */
    bool has_maker; /* mutex */
    void (*free_user)(void *user);
    void *user;
    struct member *members; /* those in use: mutex */
    size_t members_max;
};

bool pawli_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    /* Cannot fail: the clock is one that conditions take. */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool is_made = pthread_cond_init(cond, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes); /* likewise */
    return is_made;
}

struct pawli_crew *pawli_crew_new(size_t threads_max, void (*free_user)(void *user), void *user)
{
    struct pawli_crew *crew = calloc(1, sizeof(*crew));
    if (crew == NULL)
        return NULL;
    crew->members = calloc(threads_max, sizeof(*crew->members));
    if (crew->members == NULL || pthread_mutex_init(&crew->mutex, NULL) != 0)
        goto no_members;
    if (!pawli_cond_init(&crew->ended))
        goto no_cond;
    crew->members_max = threads_max;
    crew->free_user = free_user;
    crew->user = user;
    crew->has_maker = true;
    return crew;

no_cond:
    (void)pthread_mutex_destroy(&crew->mutex); /* nobody has it */
no_members:
    free(crew->members);
    free(crew);
    return NULL;
}

static void free_crew(struct pawli_crew *crew)
{
    if (crew->free_user != NULL)
        crew->free_user(crew->user);
    (void)pthread_cond_destroy(&crew->ended); /* nobody waits: all have left */
    (void)pthread_mutex_destroy(&crew->mutex);
    free(crew->members);
    free(crew);
}

static void *run_member(void *argument)
{
    struct member *member = argument;
    struct pawli_crew *crew = member->crew;
    (void)prctl(PR_SET_NAME, member->name, 0, 0, 0); /* a name that is missing hurts nobody */
    member->run(member->user);

    pthread_mutex_lock(&crew->mutex);
    member->has_ended = true;
    bool is_last = --crew->alive == 0 && !crew->has_maker;
    pthread_cond_broadcast(&crew->ended);
    pthread_mutex_unlock(&crew->mutex);
    if (is_last)
        free_crew(crew);
    return NULL;
}

/* A place for one more thread: of one that has ended, after it was joined. */
static struct member *find_place(struct pawli_crew *crew)
{
    for (size_t i = 0; i < crew->members_max; i++) {
        struct member *member = &crew->members[i];
        if (member->is_used && member->has_ended) {
            (void)pthread_join(member->thread, NULL); /* it has done its last step: at once */
            member->is_used = false;
        }
        if (!member->is_used)
            return member;
    }
    return NULL;
}

static bool start_thread(struct member *member)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all); /* cannot fail */
    /* Signals are the program's: a thread of ours that took one would keep it from its owner. */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool is_started = pthread_create(&member->thread, NULL, run_member, member) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* cannot fail: it was so before */
    return is_started;
}

pawl_code pawli_crew_start(struct pawli_crew *crew, const char *name, void (*run)(void *user),
                           void *user)
{
    assert(crew != NULL && run != NULL);
    pthread_mutex_lock(&crew->mutex);
    assert(crew->has_maker || crew->alive > 0);
    struct member *member = find_place(crew);
    bool is_started = false;
    if (member != NULL) {
        *member = (struct member){.crew = crew, .run = run, .user = user, .is_used = true};
        (void)pawli_text_copy(member->name, sizeof(member->name), name); /* cut is fine */
        is_started = start_thread(member);
        member->is_used = is_started;
        crew->alive += is_started;
    }
    pthread_mutex_unlock(&crew->mutex);
    return is_started ? PAWL_OK : PAWL_NO_MEMORY;
}

size_t pawli_crew_wait(struct pawli_crew *crew, int64_t ms)
{
    struct timespec until = pawli_wait_until(ms > 0 ? ms : 0);
    int rc = 0;
    pthread_mutex_lock(&crew->mutex);
    while (crew->alive > 0 && rc == 0)
        rc = pthread_cond_timedwait(&crew->ended, &crew->mutex, &until);
    size_t alive = crew->alive;
    pthread_mutex_unlock(&crew->mutex);
    return alive;
}

size_t pawli_crew_leave(struct pawli_crew *crew)
{
    size_t left = 0;
    pthread_mutex_lock(&crew->mutex);
    for (size_t i = 0; i < crew->members_max; i++) {
        struct member *member = &crew->members[i];
        if (!member->is_used)
            continue;
        if (member->has_ended) {
            (void)pthread_join(member->thread, NULL); /* at once: see find_place() */
        } else {
            (void)pthread_detach(member->thread); /* cannot fail: it runs, and nobody joins it */
            left++;
        }
        member->is_used = false;
    }
    crew->has_maker = false;
    bool is_last = crew->alive == 0;
    pthread_mutex_unlock(&crew->mutex);
    if (is_last)
        free_crew(crew);
    return left;
}
