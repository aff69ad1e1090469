/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * walk.c - random calls on several stores at once, each answer compared with the first store's.
 * Owns:  the stores of a run, its calls in order, and the story of a difference.
 * Never: chooses a call; knows a verb but where two stores may rightly differ.
 *
 * Two stores may differ in what a claim recovers on its way: "some". So that the stores stay
 * comparable, at most one job is overdue when a claim is made, and whatever the claim has left of
 * it is reaped right after; where there are more, they are reaped first.
 */
#include "diff/walk.h"

#ifdef PAWL_TEST_POINTS
#include "core/mutant.h"
#endif

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_PER_AGE     7
#define CALLS_PER_PICTURE 100
#define CALLS_PER_RESTART 6000
#define CALLS_MAX_TIMES   4 /* so many times the calls asked for, until all answers were met */
#define STORY_CALLS_MAX   40
#define PARTING_LINES     3
#define ID_DIGITS         12

struct walk {
    struct diff diff;
    const struct walk_plan *plan;
    struct walk_result result;
    FILE *out;
    char **log; /* a line for each call, with its answer */
    size_t log_count;
    size_t log_room;
};

/* ---------------------------------------------------------------- texts */

static FILE *open_text(struct side *side)
{
    free(side->text);
    side->text = NULL;
    FILE *text = open_memstream(&side->text, &side->text_len);
    if (text == NULL)
        abort(); /* out of memory: nothing can be said of the stores */
    return text;
}

/* What it last wrote; "" before that. */
static const char *text_of(const struct side *side)
{
    return side->text != NULL ? side->text : "";
}

static void keep(struct walk *walk, char *line)
{
    if (walk->log_count == walk->log_room) {
        walk->log_room = walk->log_room == 0 ? 1024 : 2 * walk->log_room;
        walk->log = realloc(walk->log, walk->log_room * sizeof(walk->log[0]));
        if (walk->log == NULL)
            abort(); /* likewise */
    }
    walk->log[walk->log_count++] = line;
}

/* ---------------------------------------------------------------- the story of a difference */

/* The words of a line that name jobs, one after the other. */
static const char *next_id(const char *text)
{
    for (; *text != '\0' && *text != '\n'; text++) {
        size_t len = strspn(text, "0123456789abcdef");
        if (len == ID_DIGITS && (text[len] == ' ' || text[len] == '\n' || text[len] == ']'))
            return text;
        text += len > 0 ? len - 1 : 0;
    }
    return NULL;
}

static size_t line_len(const char *text)
{
    return strcspn(text, "\n");
}

static const char *next_line(const char *text)
{
    size_t len = line_len(text);
    return text[len] == '\n' ? text + len + 1 : text + len;
}

/* One line, without what follows it. */
static void put_line(FILE *out, const char *before, const char *line)
{
    (void)fputs(before, out);
    (void)fwrite(line, 1, line_len(line), out); /* memory, or standard output */
    (void)fputc('\n', out);
}

/* Tell of a call only the lines that name the job; of its answer, all where they name none. */
static void tell_call(const struct walk *walk, const char *lines, const char *name)
{
    bool is_named = strstr(next_line(lines), name) != NULL;
    for (const char *line = lines; *line != '\0'; line = next_line(line)) {
        const char *found = strstr(line, name);
        bool is_here = found != NULL && found < line + line_len(line);
        if (line == lines || is_here || !is_named)
            put_line(walk->out, "#   ", line);
    }
}

/* What was asked about one job before, the last calls only. */
static void tell_job(const struct walk *walk, const char *id)
{
    char name[ID_DIGITS + 1] = {0};
    memcpy(name, id, ID_DIGITS);
    size_t first = walk->log_count;
    for (size_t calls = 0; first > 0 && calls < STORY_CALLS_MAX; first--)
        calls += strstr(walk->log[first - 1], name) != NULL;
    (void)fprintf(walk->out, "# the story of %s:\n", name);
    for (size_t i = first; i < walk->log_count; i++) {
        if (strstr(walk->log[i], name) != NULL)
            tell_call(walk, walk->log[i], name);
    }
}

/* Where two texts part: the line of each, and the last line of the first that names a job. */
struct parting {
    const char *left, *right, *job;
};

static struct parting part(const char *left, const char *right)
{
    struct parting at = {left, right, left};
    while (*at.left != '\0' && line_len(at.left) == line_len(at.right) &&
           memcmp(at.left, at.right, line_len(at.left)) == 0) {
        if (at.left[0] != ' ')
            at.job = at.left;
        at.left = next_line(at.left);
        at.right = next_line(at.right);
    }
    if (at.left[0] != ' ' && at.left[0] != '\0')
        at.job = at.left;
    return at;
}

/* From where they part, a few lines of one side. */
static void tell_lines(const struct walk *walk, const char *name, const char *text)
{
    for (int i = 0; i < PARTING_LINES && (i == 0 || *text != '\0'); i++, text = next_line(text)) {
        (void)fprintf(walk->out, "# %s", name);
        put_line(walk->out, ": ", text);
    }
}

static void tell(const struct walk *walk, const struct side *side, const char *what)
{
    if (walk->out == NULL)
        return;
    const struct side *first = &walk->diff.sides[0];
    struct parting at = part(text_of(first), text_of(side));
    (void)fprintf(walk->out, "# seed %" PRIu64 ", call %zu: %s\n", walk->plan->seed,
                  walk->result.calls, what);
    tell_lines(walk, first->kind->name, at.left);
    tell_lines(walk, side->kind->name, at.right);
    const char *id = next_id(at.left);
    id = id != NULL ? id : next_id(at.right);
    id = id != NULL ? id : next_id(at.job);
    if (id != NULL)
        tell_job(walk, id);
    if (walk->log_count > 0)
        put_line(walk->out, "# the call: ", walk->log[walk->log_count - 1]);
    (void)fprintf(walk->out, "# again: --seed %" PRIu64 " --calls %zu --shards %" PRId64 "\n",
                  walk->plan->seed, walk->plan->calls, walk->plan->shards);
}

static bool compare(struct walk *walk, bool is_answer, const char *what)
{
    for (size_t i = 1; i < walk->diff.sides_count; i++) {
        if (strcmp(text_of(&walk->diff.sides[0]), text_of(&walk->diff.sides[i])) == 0)
            continue;
        walk->result.is_same = false;
        walk->result.is_in_answer = is_answer;
        tell(walk, &walk->diff.sides[i], what);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- calls */

static void switch_mutant(int mutant)
{
#ifdef PAWL_TEST_POINTS
    pawli_testpoints.mutant = mutant;
#else
    (void)mutant; /* there are none in this build */
#endif
}

static void act(struct walk *walk, size_t number, const struct call *call)
{
    struct side *side = &walk->diff.sides[number];
    FILE *text = open_text(side);
    switch_mutant(side->mutant);
    diff_act(&walk->diff, side, call, text);
    switch_mutant(0);
    (void)fclose(text); /* in memory */
}

static void log_call(struct walk *walk, const struct call *call)
{
    char *line = NULL;
    size_t len = 0;
    FILE *text = open_memstream(&line, &len);
    if (text == NULL)
        abort(); /* out of memory */
    (void)fprintf(text, "%zu: ", walk->result.calls);
    diff_say_call(call, text);
    const char *answer = text_of(&walk->diff.sides[0]);
    for (; *answer != '\0'; answer = next_line(answer))
        put_line(text, "     -> ", answer);
    (void)fclose(text); /* in memory */
    keep(walk, line);
}

/* The leases that a claim gave, with the token that each store made for it. */
static void take_grants(struct walk *walk, const struct call *call)
{
    struct diff *diff = &walk->diff;
    for (size_t i = 0; i < diff->grants_count[0]; i++) {
        const pawl_job *job = &diff->grants[0][i];
        struct grip grip = {.worker = call->worker, .job = job->id, .version = job->lease_version};
        for (size_t side = 0; side < diff->sides_count; side++) {
            grip.tokens[side] = diff->grants[side][i].token;
            grip.fences[side] = diff->grants[side][i].fence;
        }
        diff->hand[diff->hand_count++ % DIFF_OLD_IDS] = grip;
        for (size_t slot = 0; slot < DIFF_SLOTS; slot++) {
            if (pawl_id_compare(&diff->slots[slot].id, &job->id) == 0)
                diff->slots[slot].grip = grip;
        }
    }
}

/* One call on all stores. False: they differ. */
static bool make_call(struct walk *walk, const struct call *call)
{
    walk->result.calls++;
    for (size_t i = 0; i < walk->diff.sides_count; i++)
        act(walk, i, call);
    log_call(walk, call);
    if (!compare(walk, true, "the answers differ"))
        return false;
    if (call->verb == DIFF_CLAIM)
        take_grants(walk, call);
    return true;
}

/* Everything that the stores tell. */
static bool look(struct walk *walk)
{
    for (size_t i = 0; i < walk->diff.sides_count; i++) {
        struct side *side = &walk->diff.sides[i];
        FILE *text = open_text(side);
        diff_say_all(&walk->diff, side, text);
        (void)fclose(text); /* in memory */
    }
    walk->result.pictures++;
    if (!compare(walk, false, "after it the stores tell different things"))
        return false;
    walk->result.same_at = walk->result.calls;
    return true;
}

static bool step(struct walk *walk)
{
    static const struct call reap_all = {.verb = DIFF_REAP, .max = DIFF_PAGE};
    struct diff *diff = &walk->diff;
    struct call call;
    diff_choose(diff, &call);
    bool is_claim = call.verb == DIFF_CLAIM && !call.is_flawed;
    size_t overdue = is_claim ? diff_overdue(diff) : 0;
    if (overdue > 1 && !make_call(walk, &reap_all))
        return false;
    if (!make_call(walk, &call))
        return false;
    /* Where the claim has recovered it, there is nothing left to reap: not compared. */
    for (size_t i = 0; overdue == 1 && i < diff->sides_count; i++)
        act(walk, i, &reap_all);
    bool is_time = walk->result.calls % CALLS_PER_PICTURE == 0;
    if (walk->plan->check_from > 0)
        is_time = walk->result.calls >= walk->plan->check_from;
    return !is_time || look(walk);
}

/* ---------------------------------------------------------------- time and restarts */

static void pass_time(struct walk *walk)
{
    int64_t ms = diff_choose_age_ms(&walk->diff);
    for (size_t i = 0; i < walk->diff.sides_count; i++)
        walk->diff.sides[i].kind->age(walk->diff.sides[i].place, ms);
}

static bool open_side(struct side *side)
{
    side->store = side->kind->open(side->place);
    return side->store != NULL;
}

/* Durable stores end and begin again. Q-DURABLE */
static bool restart(struct walk *walk)
{
    for (size_t i = 0; i < walk->diff.sides_count; i++) {
        struct side *side = &walk->diff.sides[i];
        if (side->kind->restart == NULL)
            continue;
        pawl_store_close(side->store);
        side->kind->restart(side->place);
        if (!open_side(side))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- the walk */

static bool set_up(struct walk *walk)
{
    struct diff *diff = &walk->diff;
    const struct walk_plan *plan = walk->plan;
    diff->shards = plan->shards;
    diff->seeded.state = plan->seed;
    diff->random = pawli_seeded_as_random(&diff->seeded);
    diff->coverage = coverage_new();
    for (size_t i = 0; i < plan->sides_count; i++) {
        struct side *side = &diff->sides[i];
        *side = (struct side){.number = i, .kind = plan->kinds[i], .mutant = plan->mutants[i]};
        side->place = side->kind->make(plan->shards);
        diff->sides_count = i + 1;
        if (side->place == NULL || !open_side(side))
            return false;
    }
    return diff->coverage != NULL;
}

static void tear_down(struct walk *walk)
{
    struct diff *diff = &walk->diff;
    for (size_t i = 0; i < diff->sides_count; i++) {
        struct side *side = &diff->sides[i];
        pawl_store_close(side->store);
        if (side->place != NULL)
            side->kind->drop(side->place);
        free(side->text);
    }
    coverage_free(diff->coverage);
    for (size_t i = 0; i < walk->log_count; i++)
        free(walk->log[i]);
    free(walk->log);
}

static void run(struct walk *walk)
{
    struct walk_result *result = &walk->result;
    const struct walk_plan *plan = walk->plan;
    size_t restart_at = CALLS_PER_RESTART;
    while (result->is_same && result->calls < CALLS_MAX_TIMES * plan->calls &&
           (result->calls < plan->calls ||
            !(plan->is_partial || coverage_is_full(walk->diff.coverage)))) {
        if (diff_one_in(&walk->diff, CALLS_PER_AGE))
            pass_time(walk);
        if (!step(walk))
            return;
        if (result->calls >= restart_at) {
            restart_at += CALLS_PER_RESTART;
            result->is_broken = !restart(walk);
            if (result->is_broken)
                return;
        }
    }
    result->is_covered = coverage_is_full(walk->diff.coverage);
    (void)look(walk); /* says what it found by itself */
    if (walk->out != NULL)
        coverage_print(walk->diff.coverage, walk->out);
}

struct walk_result walk_stores(const struct walk_plan *plan, FILE *out)
{
    struct walk *walk = calloc(1, sizeof(*walk));
    struct walk_result result = {.is_broken = true};
    if (walk == NULL)
        return result;
    walk->plan = plan;
    walk->out = out;
    walk->result.is_same = true;
    if (set_up(walk))
        run(walk);
    else
        walk->result.is_broken = true;
    result = walk->result;
    tear_down(walk);
    free(walk);
    return result;
}
