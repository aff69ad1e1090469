/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - `pawl verify`: reads every job and its ledger, and says whether they are as promised.
 * Owns:  the walk through all jobs, and what it means that they change meanwhile.
 * Never: changes anything; holds more than a page of jobs and a page of one ledger.
 */
#include "cli/command.h"
#include "cli/ledger_check.h"
#include "cli/store_url.h"
#include "cli/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define JOBS_PAGE     500
#define ATTEMPTS_PAGE 200
#define TRIES_MAX     10 /* for a job that changes while it is looked at */

struct walk {
    pawl_store *store;
    struct pawli_json *json; /* NULL: as text */
    struct pawli_progress progress;
    pawl_attempt *rows; /* ATTEMPTS_PAGE */
    int64_t jobs;
    int64_t attempts;
    int64_t by_state[PAWL_FAILED + 1];
    int64_t flawed;
    int64_t moving;      /* changed whenever they were looked at */
    bool is_last_flawed; /* something was told of the last job */
};

/* ---- one job */

/* PAWL_GONE: it has no ledger. */
static pawl_code read_ledger(struct walk *walk, const pawl_id *id, struct pawli_ledger_check *check,
                             pawl_err *err)
{
    size_t count = ATTEMPTS_PAGE;
    int64_t after_no = 0;
    *check = (struct pawli_ledger_check){.rows = 0};
    while (count == ATTEMPTS_PAGE) {
        pawl_code code = pawl_attempts(walk->store, id, after_no, walk->rows, ATTEMPTS_PAGE, &count,
                                       err);
        if (code != PAWL_OK)
            return code;
        for (size_t i = 0; i < count; i++)
            pawli_ledger_check_row(check, &walk->rows[i]);
        if (count > 0)
            after_no = walk->rows[count - 1].attempt_no;
    }
    return PAWL_OK;
}

/* The id before another: pages begin behind one. */
static pawl_id id_before(const pawl_id *id)
{
    pawl_id before = *id;
    for (size_t i = sizeof(before.bytes); i-- > 0 && before.bytes[i]-- == 0;)
        continue; /* borrowed from the byte before it */
    return before;
}

/* One job as it is listed: without its payload, and also where its ledger is such that it cannot be
 * got. PAWL_GONE: it is not there. */
static pawl_code look_up(struct walk *walk, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    size_t count = 0;
    pawl_id before = id_before(id);
    pawl_code code = pawl_list(walk->store, NULL, &before, ret_job, 1, &count, err);
    if (code != PAWL_OK)
        return code;
    return count == 1 && pawl_id_compare(&ret_job->id, id) == 0 ? PAWL_OK : PAWL_GONE;
}

static bool is_same(const pawl_job *a, const pawl_job *b)
{
    return a->state == b->state && a->attempts == b->attempts &&
           a->lease_version == b->lease_version && a->retries == b->retries &&
           a->lost_leases == b->lost_leases;
}

/*
 * Job and ledger are read one after the other, and the job may have changed in between. So a flaw
 * counts only where the job is the same before and after its ledger was read. *ret_gone: it was
 * pruned meanwhile.
 */
static pawl_code look_again(struct walk *walk, const pawl_id *id, struct pawli_ledger_check *check,
                            bool *ret_gone, pawl_err *err)
{
    pawl_job before;
    pawl_job after;
    pawl_code code = look_up(walk, id, &before, err);
    for (int i = 0; code == PAWL_OK && i < TRIES_MAX; i++) {
        code = read_ledger(walk, id, check, err);
        if (code == PAWL_OK || code == PAWL_GONE)
            code = look_up(walk, id, &after, err);
        if (code != PAWL_OK)
            break;
        pawli_ledger_check_job(check, &after);
        if (check->flaw == PAWLI_FLAW_NONE || is_same(&before, &after))
            return PAWL_OK;
        before = after;
    }
    *ret_gone = code == PAWL_GONE;
    walk->moving += code == PAWL_OK;
    *check = (struct pawli_ledger_check){.rows = check->rows};
    return *ret_gone ? PAWL_OK : code;
}

static void tell_flaw(struct walk *walk, const pawl_job *job,
                      const struct pawli_ledger_check *check)
{
    char id[PAWL_ID_TEXT_MAX];
    walk->flawed++;
    pawli_progress_end(&walk->progress);
    if (walk->json == NULL) {
        (void)printf("%s  %-17s  %s: %s\n", pawl_id_format(&job->id, id), /* main asks for errors */
                     pawli_flaw_name(check->flaw), job->queue, check->text);
        return;
    }
    pawli_json_open_object(walk->json, NULL);
    pawli_json_id(walk->json, "id", &job->id);
    pawli_json_text(walk->json, "queue", job->queue);
    pawli_json_text(walk->json, "flaw", pawli_flaw_name(check->flaw));
    if (check->flaw_no > 0)
        pawli_json_number(walk->json, "attempt_no", check->flaw_no);
    pawli_json_text(walk->json, "text", check->text);
    pawli_json_close(walk->json);
}

static pawl_code verify_job(struct walk *walk, const pawl_job *job, pawl_err *err)
{
    struct pawli_ledger_check check;
    bool is_gone = false;
    pawl_code code = read_ledger(walk, &job->id, &check, err);
    if (code == PAWL_OK)
        pawli_ledger_check_job(&check, job);
    if (code == PAWL_GONE || (code == PAWL_OK && check.flaw != PAWLI_FLAW_NONE))
        code = look_again(walk, &job->id, &check, &is_gone, err);
    walk->is_last_flawed = check.flaw != PAWLI_FLAW_NONE;
    if (code != PAWL_OK || is_gone)
        return code;
    walk->jobs++;
    walk->attempts += check.rows;
    walk->by_state[job->state]++;
    if (check.flaw != PAWLI_FLAW_NONE)
        tell_flaw(walk, job, &check);
    return PAWL_OK;
}

/* A page is one look at the store: a job that stands in it twice is in two places. */
static void tell_twin(struct walk *walk, const pawl_job *one, const pawl_job *other)
{
    struct pawli_ledger_check check = {.flaw = PAWLI_FLAW_STATE};
    (void)snprintf(check.text, sizeof(check.text), "it is %s and %s at once", /* it fits */
                   pawl_state_name(one->state), pawl_state_name(other->state));
    if (!walk->is_last_flawed)
        tell_flaw(walk, one, &check);
    walk->is_last_flawed = true;
}

/* ---- all of them */

/* Verify a page. The last job of the one before comes first in it once more, so that no twin of it
 * is missed. *ret_last is the last job's id. */
static pawl_code verify_page(struct walk *walk, const pawl_job *jobs, size_t count,
                             pawl_id *ret_last, pawl_err *err)
{
    pawl_code code = PAWL_OK;
    for (size_t i = 0; code == PAWL_OK && i < count; i++) {
        if (i > 0 && pawl_id_compare(&jobs[i].id, &jobs[i - 1].id) == 0)
            tell_twin(walk, &jobs[i - 1], &jobs[i]);
        else if (pawl_id_compare(&jobs[i].id, ret_last) != 0)
            code = verify_job(walk, &jobs[i], err);
        *ret_last = jobs[i].id;
        pawli_progress_show(&walk->progress, walk->jobs);
    }
    return code;
}

static pawl_code verify_all(const struct pawli_line *line, struct walk *walk, pawl_job *jobs,
                            pawl_err *err)
{
    pawl_filter filter = {.queue = pawli_line_text(line, "--queue")};
    pawl_id last = {{0}};
    pawl_id after = {{0}};
    size_t count = JOBS_PAGE;
    pawl_code code = PAWL_OK;
    while (code == PAWL_OK && count == JOBS_PAGE) {
        code = pawl_list(walk->store, &filter, pawl_id_is_nil(&after) ? NULL : &after, jobs,
                         JOBS_PAGE, &count, err);
        if (code == PAWL_OK)
            code = verify_page(walk, jobs, count, &last, err);
        /* Where all of it were twins, there is nothing to be gained by looking at them again. */
        bool is_one = count > 0 && pawl_id_compare(&jobs[0].id, &last) == 0;
        after = is_one ? last : id_before(&last);
    }
    pawli_progress_end(&walk->progress);
    return code;
}

static void tell_sums(const struct walk *walk)
{
    if (walk->json == NULL) {
        (void)printf("%" PRId64 " jobs: %" PRId64 " ready, %" PRId64 " in flight, %" PRId64
                     " succeeded, %" PRId64 " failed; %" PRId64 " attempts\n",
                     walk->jobs, walk->by_state[PAWL_READY], walk->by_state[PAWL_IN_FLIGHT],
                     walk->by_state[PAWL_SUCCEEDED], walk->by_state[PAWL_FAILED], walk->attempts);
        if (walk->moving > 0)
            (void)printf("%" PRId64 " changed too often to be looked at\n", walk->moving);
        if (walk->flawed == 0)
            (void)puts(
                "No gap, no overlap, no second completion: every job is as its ledger says.");
        else
            (void)printf("%" PRId64 " jobs are not as they must be.\n", walk->flawed);
        return;
    }
    pawli_json_close(walk->json);
    pawli_json_bool(walk->json, "is_sound", walk->flawed == 0);
    pawli_json_number(walk->json, "jobs", walk->jobs);
    pawli_json_number(walk->json, "ready", walk->by_state[PAWL_READY]);
    pawli_json_number(walk->json, "in_flight", walk->by_state[PAWL_IN_FLIGHT]);
    pawli_json_number(walk->json, "succeeded", walk->by_state[PAWL_SUCCEEDED]);
    pawli_json_number(walk->json, "failed", walk->by_state[PAWL_FAILED]);
    pawli_json_number(walk->json, "attempts", walk->attempts);
    pawli_json_number(walk->json, "flawed", walk->flawed);
    pawli_json_number(walk->json, "moving", walk->moving);
    pawli_json_close(walk->json);
}

static pawl_code verify(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                        pawl_err *err)
{
    struct pawli_json json;
    struct walk walk = {.store = store, .json = pawli_line_has(line, "--json") ? &json : NULL};
    pawl_job *jobs = calloc(JOBS_PAGE, sizeof(*jobs));
    pawli_progress_begin(&walk.progress, "verified", false);
    walk.rows = calloc(ATTEMPTS_PAGE, sizeof(*walk.rows));
    pawl_code code = jobs != NULL && walk.rows != NULL ? PAWL_OK : PAWL_NO_MEMORY;
    if (code == PAWL_OK && walk.json != NULL) {
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "flaws");
    }
    if (code == PAWL_OK)
        code = verify_all(line, &walk, jobs, err);
    if (code == PAWL_OK)
        tell_sums(&walk);
    if (walk.flawed > 0)
        *ret_exit = EX_DATAERR;
    free(walk.rows);
    free(jobs);
    return code;
}

static int run_verify(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, verify);
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, PAWLI_OPTION_QUEUE, PAWLI_OPTION_STORE, {0},
};

const struct pawli_command pawli_command_verify = {
    .name = "verify",
    .about =
        "read the ledger of every job, and prove that nothing ran twice at once or ended twice",
    .options = options,
    .details =
        "Of each job: its attempts are numbered from 1 without gaps; none of them began before the "
        "one before it had ended; at most one completed it, and nothing follows that one; each "
        "ended a lease of its own; and the job's state is what the last one made of it. Jobs that "
        "are not so are named, with what is wrong: gap, count, overlap, second_completion, "
        "after_end, lease or state.\n"
        "It may run while workers do. Exits with 0 where all is well, and 65 where it is not.",
    .examples = "pawl verify\npawl verify --queue mail --json\n",
    .run = run_verify,
};
