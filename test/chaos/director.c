/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * director.c - the chaos test as a program.
 * Life:  makes a store, starts everybody, lets things go wrong at times that the seed decides until
 *        all that was planned has happened and enough jobs are acknowledged; then mends everything,
 *        waits until all work is done, tells everybody to end, and has it judged.
 * Owns:  the schedule; the folder with all files; what is asked about those who lived through it.
 * Never: touches a job.
 */
#include "chaos/chaos.h"

#include "support/pg_schema.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATABASE        "pawl"
#define WARM_PART       20  /* of the play, one part passes before anything goes wrong */
#define AGAIN_MS        500 /* before a second try */
#define TURN_MS         10  /* between two looks at what is due */
#define COUNT_MS        500 /* between two counts of what was acknowledged */
#define STOCK_PART      10  /* of the jobs, so many more at most */
#define PLAY_MOST       20  /* times what was planned: then something is stuck */
#define DRAIN_MOST_MS   600000
#define CALM_LEASE_MS   30000
#define DRAIN_TURN_MS   100
#define CALM_MS         30000 /* to use no more than before, once all is quiet */
#define LOST_MAX        50
#define IN_FLIGHT_MAX   60 /* of the second queue, over all workers */
#define BACKOFF_BASE_MS 20
#define BACKOFF_MAX_MS  200
#define DRIFT_PPM       500
#define ROUND_MS        5000
#define RECOVERED_MS    60000 /* after a lease has expired: long enough for any machine */
#define SQL_MAX         4096
#define RSS_SLACK_KB    8192
#define FDS_SLACK       4
#define THREADS_OWN     8 /* of a worker, beside handlers */

struct moment {
    int64_t at_ms; /* from the beginning of the play */
    enum chaos_trouble trouble;
    size_t number;
};

/* ---------------------------------------------------------------- the schedule */

static int by_time(const void *a, const void *b)
{
    const struct moment *left = a;
    const struct moment *right = b;
    return (left->at_ms > right->at_ms) - (left->at_ms < right->at_ms);
}

/* Everything that is planned, at times drawn from all of the play but its beginning. */
static struct moment *draw_schedule(struct director *director, size_t *ret_count)
{
    const struct chaos_plan *plan = &director->plan;
    uint64_t play_ms = (uint64_t)(plan->minutes * 60000);
    uint64_t warm_ms = play_ms / WARM_PART;
    size_t count = 0;
    for (int i = 0; i < CHAOS_TROUBLES; i++)
        count += plan->troubles[i];
    struct moment *moments = calloc(count + 1, sizeof(moments[0]));
    *ret_count = 0;
    for (int i = 0; moments != NULL && i < CHAOS_TROUBLES; i++) {
        for (size_t number = 0; number < plan->troubles[i]; number++) {
            int64_t at_ms = (int64_t)(warm_ms +
                                      pawli_random_below(&director->random, play_ms - warm_ms));
            moments[(*ret_count)++] = (struct moment){at_ms, (enum chaos_trouble)i, number};
        }
    }
    if (moments != NULL)
        qsort(moments, *ret_count, sizeof(moments[0]), by_time);
    return moments;
}

/* What could not be done now is done later, if in another way. */
static void put_off(struct moment *moments, size_t count)
{
    struct moment again = moments[0];
    size_t i = 1;
    again.at_ms += AGAIN_MS;
    again.number++;
    for (; i < count && moments[i].at_ms < again.at_ms; i++)
        moments[i - 1] = moments[i];
    moments[i - 1] = again;
}

/* ---------------------------------------------------------------- the play */

/* What all producers so far had in hands. */
static size_t count_acked(const struct director *director)
{
    char path[CHAOS_TEXT_MAX];
    size_t count = 0;
    for (size_t i = 1; i <= director->started; i++) {
        struct stat found;
        (void)snprintf(path, sizeof(path), "%s/acks-producer-%zu", director->folder, i);
        if (stat(path, &found) == 0)
            count += (size_t)found.st_size / sizeof(pawl_id);
    }
    return count;
}

/* A slow machine has more time for jobs than for what goes wrong: there is a bound. */
static void look_at_stock(struct director *director, size_t acked)
{
    director->is_stocked = acked >= director->plan.jobs + director->plan.jobs / STOCK_PART;
    for (size_t i = 0; director->is_stocked && i < CHAOS_CHILDREN; i++) {
        if (director->children[i].control != NULL)
            atomic_store(&director->children[i].control->is_enough, 1);
    }
}

static void stop_producing(struct director *director)
{
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        struct child *child = &director->children[i];
        if (child->part != CHAOS_PRODUCER || child->stdin_fd < 0)
            continue;
        (void)close(child->stdin_fd);
        child->stdin_fd = -1;
    }
}

static long most(long a, long b)
{
    return a > b ? a : b;
}

/* What those use who live through it all, while they have much to do. */
static void take_vitals(struct director *director)
{
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        struct child *child = &director->children[i];
        if (!child->is_survivor || child->pid <= 0)
            continue;
        struct vitals now = children_vitals(child);
        child->warm.rss_kb = most(child->warm.rss_kb, now.rss_kb);
        child->warm.threads = most(child->warm.threads, now.threads);
        child->warm.fds = most(child->warm.fds, now.fds);
    }
}

static void play(struct director *director)
{
    size_t count = 0;
    size_t next = 0;
    struct moment *moments = draw_schedule(director, &count);
    int64_t play_ms = (int64_t)(director->plan.minutes * 60000);
    int64_t counted_ms = 0;
    bool is_enough = false;
    for (size_t i = 0; i < CHAOS_CHILDREN; i++)
        children_start(director, i);
    director->began_ms = chaos_now_ms();
    while ((next < count || !is_enough) && !director->is_failed && moments != NULL) {
        int64_t at_ms = chaos_now_ms() - director->began_ms;
        if (at_ms > PLAY_MOST * play_ms)
            director->is_failed = true;
        if (next < count && at_ms >= moments[next].at_ms) {
            if (trouble_make(director, moments[next].trouble, moments[next].number))
                next++;
            else
                put_off(moments + next, count - next);
        }
        trouble_mend(director, false);
        if (at_ms - counted_ms > COUNT_MS) {
            counted_ms = at_ms;
            size_t acked = count_acked(director);
            is_enough = is_enough || acked >= director->plan.jobs;
            look_at_stock(director, acked);
            if (at_ms < play_ms / 2)
                take_vitals(director);
        }
        if (next == count || at_ms + TURN_MS < moments[next].at_ms)
            (void)poll(NULL, 0, TURN_MS);
    }
    free(moments);
    trouble_mend(director, true);
    stop_producing(director);
    pen_note(&director->pen,
             &(struct pawli_trace_note){.kind = PAWLI_NOTE_FAULTS_OFF, .actor = ""});
}

/* ---------------------------------------------------------------- the quiet after it */

static bool set_queues(struct pen *pen, int64_t lease_ms)
{
    const char *const queues[] = {crash_queues[0], crash_queues[1], CHAOS_SHELL};
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        pawl_queue_settings settings;
        pawl_queue_settings_init(&settings);
        settings.lease_ms = lease_ms;
        settings.max_lost_leases = LOST_MAX;
        settings.backoff_base_ms = BACKOFF_BASE_MS;
        settings.backoff_max_ms = BACKOFF_MAX_MS;
        settings.keep_succeeded_ms = settings.keep_failed_ms = PAWL_FOREVER;
        if (i == 1)
            settings.max_in_flight = IN_FLIGHT_MAX;
        if (pawl_queue_set(pen->store, queues[i], &settings, NULL) != PAWL_OK)
            return false;
    }
    return true;
}

static bool is_drained(struct director *director)
{
    pawl_stats rows[CRASH_QUEUES + 2];
    size_t count = 0;
    int64_t live = 0;
    if (pawl_queue_stats(director->pen.store, NULL, rows, CRASH_QUEUES + 2, &count, NULL) !=
        PAWL_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        live += rows[i].ready + rows[i].in_flight;
    return live == 0;
}

/* Nothing is broken on purpose any more: from now on leases are long enough for any machine. */
static bool drain(struct director *director)
{
    int64_t until_ms = chaos_now_ms() + DRAIN_MOST_MS;
    bool is_set = false;
    while (chaos_now_ms() < until_ms) {
        trouble_mend(director, true);
        is_set = is_set || set_queues(&director->pen, CALM_LEASE_MS);
        if (is_drained(director))
            return true;
        (void)poll(NULL, 0, DRAIN_TURN_MS);
    }
    (void)printf("# there is still work to do\n");
    return false;
}

static bool has_grown(const struct child *child, struct vitals *ret_now)
{
    *ret_now = children_vitals(child);
    long threads = most(child->warm.threads, THREADS_OWN + CHAOS_PARALLEL);
    return ret_now->rss_kb > child->warm.rss_kb + RSS_SLACK_KB || ret_now->threads > threads ||
           ret_now->fds > child->warm.fds + FDS_SLACK;
}

/* Those who lived through it all use no more than they did when they had much to do. */
static size_t count_grown(struct director *director)
{
    size_t grown = 0;
    int64_t until_ms = chaos_now_ms() + CALM_MS;
    for (size_t i = 0; i < CHAOS_CHILDREN; i++) {
        const struct child *child = &director->children[i];
        struct vitals now;
        if (!child->is_survivor || child->part == CHAOS_PRODUCER)
            continue;
        while (has_grown(child, &now) && chaos_now_ms() < until_ms)
            (void)poll(NULL, 0, DRAIN_TURN_MS);
        (void)printf("# %s: %ld kB, %ld threads, %ld descriptors; at the end %ld, %ld, %ld\n",
                     child->actor, child->warm.rss_kb, child->warm.threads, child->warm.fds,
                     now.rss_kb, now.threads, now.fds);
        grown += has_grown(child, &now);
    }
    return grown;
}

/* ---------------------------------------------------------------- before and after */

static bool spoil(const struct chaos_plan *plan)
{
    char sql[SQL_MAX] = "";
    FILE *file = plan->spoil != NULL ? fopen(plan->spoil, "r") : NULL;
    if (plan->spoil == NULL)
        return true;
    if (file == NULL || plan->kind->spoil == NULL)
        return false;
    size_t len = fread(sql, 1, sizeof(sql) - 1, file);
    (void)fclose(file); /* it was only read */
    return len > 0 && plan->kind->spoil(sql);
}

static bool start_proxies(struct director *director)
{
    const struct crash_kind *kind = director->plan.kind;
    for (size_t i = 0; i < CHAOS_PROXIES && kind->server != NULL; i++) {
        director->proxies[i] = pg_proxy_start_tcp(kind->server());
        if (director->proxies[i] == NULL)
            return false;
        (void)pg_proxy_conninfo_as(director->proxies[i], PG_WORKER, DATABASE, director->through[i]);
    }
    return true;
}

static bool set_up(struct director *director)
{
    const struct chaos_plan *plan = &director->plan;
    const char *base = getenv("TMPDIR");
    (void)snprintf(director->folder, sizeof(director->folder), "%.80s/pawl-chaos-XXXXXX",
                   base != NULL ? base : "/tmp");
    if (mkdtemp(director->folder) == NULL || !plan->kind->begin(director->folder, director->where))
        return false;
    if (!spoil(plan)) {
        (void)printf("# %s could not be run\n", plan->spoil);
        return false;
    }
    pen_open(&director->pen, director->folder, "director");
    pawl_store *store = plan->kind->open(director->where);
    if (store == NULL)
        return false;
    pen_take_store(&director->pen, store);
    return set_queues(&director->pen, CHAOS_LEASE_MS) && start_proxies(director);
}

static void take_down(struct director *director, bool is_kept)
{
    for (size_t i = 0; i < CHAOS_PROXIES; i++)
        pg_proxy_stop(director->proxies[i]);
    director->plan.kind->end();
    if (is_kept)
        (void)printf("# the histories are in %s\n", director->folder);
    else
        crash_remove_folder(director->folder);
}

int chaos_direct(const struct chaos_plan *plan)
{
    struct director *director = calloc(1, sizeof(*director));
    struct chaos_found found = {0};
    if (director == NULL)
        return 1;
    director->plan = *plan;
    director->seeded.state = plan->seed;
    director->random = pawli_seeded_as_random(&director->seeded);
    (void)printf("# %s, seed %" PRIu64 ", %.1f minutes\n", plan->kind->name, plan->seed,
                 plan->minutes);
    director->is_failed = !set_up(director);
    if (!director->is_failed) {
        play(director);
        found.is_drained = drain(director);
        found.grown = count_grown(director);
        children_end(director);
        int64_t judged_ms = chaos_now_ms();
        /* Time is what a busy machine may not have: C10, C14 and C28 are about that. */
        struct check_options options = {.is_complete = true,
                                        .must_drain = true,
                                        .drift_ppm = DRIFT_PPM,
                                        .round_trip_ms = ROUND_MS,
                                        .reaper_ms = RECOVERED_MS,
                                        .unchecked = UINT64_C(1) << CHECK_C10 |
                                                     UINT64_C(1) << CHECK_C14 |
                                                     UINT64_C(1) << CHECK_C28};
        found.verdicts = judge(&director->pen, director->folder, &options);
        chaos_read_effects(director, &found);
        (void)printf("# played for %" PRId64 " s, judged in %" PRId64 " s\n",
                     (judged_ms - director->began_ms) / 1000, (chaos_now_ms() - judged_ms) / 1000);
        pen_close(&director->pen);
        plan->kind->shut();
    }
    int failed = chaos_report(director, &found);
    take_down(director, failed > 0);
    free(director);
    return failed;
}
