/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * troubles.c - what goes wrong, and how it is mended.
 * Owns:  signals, partitions, the server's deaths, clocks that jump, the full disk; what is counted
 *        of them.
 * Never: waits for what it has broken, but for the server: others go on meanwhile.
 */
#include "chaos/chaos.h"

#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AIM_TRIES      1500 /* to find somebody in the phase that is wanted */
#define AIM_MS         1
#define AIM_AGAIN      200
#define GROWN_UP_MS    700                      /* before that, a process has hardly begun */
#define PROBE_MS       300                      /* to see whether a file is locked */
#define STANDSTILL_MS  (3 * CHAOS_LEASE_MS / 2) /* the most, where everybody has to wait */
#define FULL_MS        3000
#define FULL_MOST_MS   60000 /* more, until a write was refused */
#define WALL_JUMP_MOST (INT64_C(86400) * 1000000)

static uint64_t below(struct director *director, uint64_t bound)
{
    return pawli_random_below(&director->random, bound);
}

/* From half a lease to five. */
static int64_t draw_pause_ms(struct director *director)
{
    return CHAOS_LEASE_MS / 2 + (int64_t)below(director, 9 * CHAOS_LEASE_MS / 2);
}

static void note(struct director *director, enum pawli_trace_note_kind kind, const char *actor)
{
    pen_note(&director->pen, &(struct pawli_trace_note){.kind = kind, .actor = actor});
}

/* The store does not answer, for one more reason; and for one less. */
static void store_down(struct director *director)
{
    if (director->downs++ == 0)
        note(director, PAWLI_NOTE_STORE_DOWN, "");
}

static void store_up(struct director *director)
{
    if (--director->downs == 0)
        note(director, PAWLI_NOTE_STORE_UP, "");
}

/* ---------------------------------------------------------------- kills */

static bool is_victim(const struct child *child, enum chaos_trouble trouble)
{
    bool is_worker = child->part == CHAOS_WORKER || child->part == CHAOS_COMMAND;
    bool is_wanted = trouble == CHAOS_KILL ? is_worker : child->part == CHAOS_PRODUCER;
    return is_wanted && !child->is_survivor && !child->is_leaving && child->pid > 0;
}

/* One of those that may be hit; rather one that has had time to begin. */
static size_t choose(struct director *director, enum chaos_trouble trouble)
{
    size_t chosen = CHAOS_CHILDREN;
    size_t seen = 0;
    for (int is_any = 0; is_any < 2 && seen == 0; is_any++) {
        for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
            const struct child *child = &director->children[i];
            bool is_grown = chaos_now_ms() - child->started_ms > GROWN_UP_MS;
            if (is_victim(child, trouble) && (is_grown || is_any == 1) &&
                below(director, ++seen) == 0)
                chosen = i;
        }
    }
    return chosen;
}

static void let_go(struct director *director, struct child *child);

static bool kill_one(struct director *director, enum chaos_trouble trouble)
{
    size_t place = choose(director, trouble);
    if (place == CHAOS_CHILDREN)
        return false;
    struct child *child = &director->children[place];
    (void)kill(child->pid, SIGKILL); /* where it has ended already, that is found out next */
    if (child->resume_ms != 0)
        let_go(director, child); /* of its lock: the dead have none */
    return children_replace(director, place);
}

/* ---------------------------------------------------------------- pauses */

/* Whether writers of the file have to wait for somebody who stands still. */
static bool is_file_locked(const struct director *director)
{
    sqlite3 *file = NULL;
    if (director->proxies[0] != NULL)
        return false;
    int rc = sqlite3_open_v2(director->where, &file, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_busy_timeout(file, PROBE_MS);
        rc = sqlite3_exec(file, "begin immediate; rollback", NULL, NULL, NULL);
    }
    (void)sqlite3_close(file);
    return rc != SQLITE_OK;
}

/* It stands when this returns. */
static void stop(struct director *director, struct child *child)
{
    char name[PAWL_NAME_MAX + 1];
    int status = 0;
    children_name(director, child, name);
    if (name[0] != '\0')
        note(director, PAWLI_NOTE_PAUSE_BEGIN, name);
    (void)kill(child->pid, SIGSTOP);
    (void)waitpid(child->pid, &status, WUNTRACED);
}

/* It stands for a while. */
static void hold(struct director *director, struct child *child)
{
    int64_t ms = draw_pause_ms(director);
    child->is_lock_held = is_file_locked(director);
    if (child->is_lock_held) {
        store_down(director);
        /* Mostly: otherwise the others would do little else than wait. */
        if (ms > STANDSTILL_MS && below(director, 8) > 0)
            ms = CHAOS_LEASE_MS / 2 + (int64_t)below(director, CHAOS_LEASE_MS);
    }
    child->resume_ms = chaos_now_ms() + ms;
}

/* It stands no more in the way of others. */
static void let_go(struct director *director, struct child *child)
{
    char name[PAWL_NAME_MAX + 1];
    children_name(director, child, name);
    if (name[0] != '\0')
        note(director, PAWLI_NOTE_PAUSE_END, name);
    if (child->is_lock_held)
        store_up(director);
    child->is_lock_held = false;
    child->resume_ms = 0;
}

static void resume(struct director *director, struct child *child)
{
    (void)kill(child->pid, SIGCONT);
    let_go(director, child);
}

/* Somebody who is in the phase that is wanted, if only for a moment. */
static struct child *find_in(struct director *director, enum chaos_phase phase)
{
    for (int i = 0; i < AIM_TRIES; i++) {
        for (size_t place = 0; place < CHAOS_CHILDREN; place++) {
            struct child *child = &director->children[place];
            bool is_free = child->part == CHAOS_WORKER && child->resume_ms == 0 &&
                           !child->is_leaving && chaos_now_ms() - child->started_ms > GROWN_UP_MS;
            if (is_free && phase == CHAOS_ENDING && !child->is_survivor) {
                (void)close(child->stdin_fd);
                child->stdin_fd = -1;
                child->is_leaving = true;
                (void)poll(NULL, 0, (int)below(director, 30));
                return child;
            }
            if (is_free && phase != CHAOS_ENDING && children_is_in(director, child, phase))
                return child;
        }
        (void)poll(NULL, 0, AIM_MS);
        trouble_mend(director, false);
    }
    return NULL;
}

static bool pause_one(struct director *director, size_t number)
{
    enum chaos_phase phase = (enum chaos_phase)(number % CHAOS_PHASES);
    struct child *child = NULL;
    bool is_in = false;
    /* Whoever has left the phase before he stood goes on, and is aimed at again. */
    for (int i = 0; i < AIM_AGAIN && !is_in; i++) {
        if (child != NULL)
            resume(director, child);
        child = find_in(director, phase);
        if (child == NULL)
            return false;
        stop(director, child);
        is_in = children_is_in(director, child, phase);
    }
    hold(director, child);
    director->phases[phase] += is_in;
    return true;
}

/* ---------------------------------------------------------------- the network and the server */

static void partition(struct director *director, size_t number)
{
    size_t proxy = below(director, CHAOS_PROXIES);
    enum pg_break how = (enum pg_break)(number % PG_BREAKS);
    pg_proxy_break(director->proxies[proxy], how);
    director->heal_ms[proxy] = chaos_now_ms() + CHAOS_LEASE_MS / 4 +
                               (int64_t)below(director, 2 * CHAOS_LEASE_MS);
    director->breaks[how]++;
}

static void break_server(struct director *director, enum chaos_trouble trouble, size_t number)
{
    enum crash_trouble how = trouble == CHAOS_POSTMASTER ? CRASH_KILL_POSTMASTER
                             : number % 2 == 0           ? CRASH_KILL_BACKEND
                                                         : CRASH_TERMINATE_BACKENDS;
    store_down(director);
    if (!director->plan.kind->trouble(how)) {
        (void)printf("# the server did not come back\n");
        director->is_failed = true;
    }
    store_up(director);
}

/* ---------------------------------------------------------------- clocks and disks */

/*
 * With a server, everybody's wall clock may be anything. Those who share a file share its clock,
 * and who keeps a history shares that one's: of these, nobody is suspended.
 */
static void jump(struct director *director, size_t number)
{
    bool has_server = director->proxies[0] != NULL;
    size_t place = below(director, CHAOS_CHILDREN);
    while (has_server ? director->children[place].part > CHAOS_PRODUCER
                      : director->children[place].part != CHAOS_COMMAND)
        place = (place + 1) % CHAOS_CHILDREN;
    struct child *child = &director->children[place];
    bool is_suspended = child->part == CHAOS_COMMAND && (number % 2 == 0 || !has_server);
    if (is_suspended) {
        (void)atomic_fetch_add(&child->control->boot_us, draw_pause_ms(director) * 1000);
    } else {
        int64_t by_us = (int64_t)below(director, WALL_JUMP_MOST);
        atomic_store(&child->control->wall_us, number % 4 == 1 ? by_us : -by_us);
    }
}

/* Writes that were refused so far. */
static int64_t count_refused(const struct director *director)
{
    int64_t refused = director->refused;
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        if (director->children[i].control != NULL)
            refused += atomic_load(&director->children[i].control->refused);
    }
    return refused;
}

static void set_disks(struct director *director, bool is_full)
{
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        if (director->children[i].control != NULL)
            atomic_store(&director->children[i].control->is_disk_full, is_full);
    }
}

static void fill_disk(struct director *director)
{
    store_down(director);
    director->full_until_ms = chaos_now_ms() + FULL_MS;
    set_disks(director, true);
}

/* ---------------------------------------------------------------- all of them */

bool trouble_make(struct director *director, enum chaos_trouble trouble, size_t number)
{
    bool is_made = true;
    switch (trouble) {
    case CHAOS_KILL:
    case CHAOS_KILL_PRODUCER:
        is_made = kill_one(director, trouble);
        break;
    case CHAOS_PAUSE:
        is_made = pause_one(director, number);
        break;
    case CHAOS_PARTITION:
        partition(director, number);
        break;
    case CHAOS_BACKEND:
    case CHAOS_POSTMASTER:
        break_server(director, trouble, number);
        break;
    case CHAOS_JUMP:
        jump(director, number);
        break;
    default:
        fill_disk(director);
        break;
    }
    director->done[trouble] += is_made;
    return is_made;
}

static bool has_ended(const struct child *child)
{
    siginfo_t ended = {.si_pid = 0};
    return child->pid > 0 &&
           waitid(P_PID, (id_t)child->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid != 0;
}

void trouble_mend(struct director *director, bool is_over)
{
    int64_t now_ms = chaos_now_ms();
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        struct child *child = &director->children[i];
        if (child->resume_ms != 0 && (is_over || now_ms >= child->resume_ms))
            resume(director, child);
        /* When all is over, producers end as they were told; pawl has to be there. */
        bool is_missed = !is_over || children_is_pawl(child);
        if (child->resume_ms == 0 && is_missed && has_ended(child))
            (void)children_replace(director, i); /* whether that is right, it says itself */
    }
    for (size_t i = 0; i < CHAOS_PROXIES; i++) {
        if (director->heal_ms[i] != 0 && (is_over || now_ms >= director->heal_ms[i])) {
            pg_proxy_heal(director->proxies[i]);
            director->heal_ms[i] = 0;
        }
    }
    /* Nobody writes while somebody who stands still has the file's lock. */
    bool is_full_enough = now_ms >= director->full_until_ms &&
                          (count_refused(director) > 0 ||
                           now_ms >= director->full_until_ms + FULL_MOST_MS);
    if (director->full_until_ms != 0 && (is_over || is_full_enough)) {
        set_disks(director, false);
        director->full_until_ms = 0;
        store_up(director);
    }
}
