/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault_store.c - a store that fails on request.
 * Owns:  the script of faults, and what becomes of a call that one of them hits.
 * Never: changes an argument or an answer; invents a verdict; keeps a result that nobody gets.
 *
 * Every verb is packed into one shape of call, so that each kind of fault is written once. The
 * caller's result buffers are saved before a call that goes wrong and put back where the answer is
 * lost: results are written on PAWL_OK only, here as everywhere.
 */
#include "support/fault_store.h"

#include "base/error.h"
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A call of any verb. What the verb does not have is zero. */
struct call {
    enum fault_verb verb;
    const void *asked; /* rows, ids, settings, a filter */
    size_t asked_count;
    const char *text;  /* a worker, a queue, a name */
    const void *after; /* where a page begins */
    int64_t number;    /* after_no, timeout_ms, is_paused */
    void *results;
    size_t results_size; /* in bytes */
    size_t results_max;
    size_t *ret_count;
    pawl_job *jobs; /* the results, where they are jobs that own payloads */
};

struct entry {
    struct fault fault;
    int64_t at; /* the number of the call that it is for */
};

struct fault_store {
    struct pawl_store head;
    pawl_store *inner;
    enum fault_kind (*pass)(void *user, enum fault_verb verb); /* NULL: none */
    void *pass_user;
    int64_t asked[FAULT_VERBS + 1]; /* the last one counts them all */
    int64_t executed[FAULT_VERBS + 1];
    struct entry script[FAULT_SCRIPT_MAX];
    size_t script_count;
};

static struct fault_store *fault_store_of(pawl_store *store)
{
    return (struct fault_store *)store; /* the head stands first */
}

/* ---------------------------------------------------------------- executing */

static pawl_code execute_work(pawl_store *inner, const struct call *call, pawl_err *err)
{
    const struct pawli_store_ops *ops = inner->ops;
    switch (call->verb) {
    case FAULT_ENQUEUE:
        return ops->enqueue(inner, call->asked, call->asked_count, call->results, err);
    case FAULT_CLAIM:
        return ops->claim(inner, call->asked, call->jobs, call->results_max, call->ret_count, err);
    case FAULT_MINE:
        return ops->mine(inner, call->text, call->after, call->jobs, call->results_max,
                         call->ret_count, err);
    case FAULT_RENEW:
        return ops->renew(inner, call->text, call->asked, call->asked_count, call->results, err);
    case FAULT_SETTLE:
        return ops->settle(inner, call->text, call->asked, call->asked_count, call->results, err);
    case FAULT_RELEASE:
        return ops->release(inner, call->text, call->asked, call->asked_count, call->results, err);
    case FAULT_REAP:
        return ops->reap(inner, call->results, call->results_max, call->ret_count, err);
    default:
        assert(call->verb == FAULT_PRUNE);
        return ops->prune(inner, call->results_max, call->ret_count, err);
    }
}

static pawl_code execute_reading(pawl_store *inner, const struct call *call, pawl_err *err)
{
    const struct pawli_store_ops *ops = inner->ops;
    switch (call->verb) {
    case FAULT_GET:
        return ops->get(inner, call->asked, call->jobs, err);
    case FAULT_LIST:
        return ops->list(inner, call->asked, call->after, call->jobs, call->results_max,
                         call->ret_count, err);
    case FAULT_ATTEMPTS:
        return ops->attempts(inner, call->asked, call->number, call->results, call->results_max,
                             call->ret_count, err);
    case FAULT_LEASES:
        return ops->leases(inner, call->asked, call->after, call->results, call->results_max,
                           call->ret_count, err);
    case FAULT_WORKERS:
        return ops->workers(inner, call->after, call->results, call->results_max, call->ret_count,
                            err);
    case FAULT_QUEUE_STATS:
        return ops->queue_stats(inner, call->after, call->results, call->results_max,
                                call->ret_count, err);
    case FAULT_QUEUE_GET:
        return ops->queue_get(inner, call->text, call->results, err);
    case FAULT_NOW:
        return ops->now(inner, call->results, err);
    default:
        assert(call->verb == FAULT_WAIT);
        return ops->wait(inner, call->number, call->results, err);
    }
}

static pawl_code execute_operating(pawl_store *inner, const struct call *call, pawl_err *err)
{
    const struct pawli_store_ops *ops = inner->ops;
    switch (call->verb) {
    case FAULT_WORKER_SEEN:
        return ops->worker_seen(inner, call->asked, err);
    case FAULT_WORKER_ENDED:
        return ops->worker_ended(inner, call->text, err);
    case FAULT_QUEUE_SET:
        return ops->queue_set(inner, call->text, call->asked, err);
    case FAULT_QUEUE_PAUSE:
        return ops->queue_pause(inner, call->text, call->number != 0, err);
    case FAULT_CANCEL:
        return ops->cancel(inner, call->asked, call->asked_count, call->results, err);
    case FAULT_REDRIVE:
        return ops->redrive(inner, call->asked, call->asked_count, call->results, err);
    case FAULT_DISCARD:
        return ops->discard(inner, call->asked, call->asked_count, call->results, err);
    case FAULT_CANCEL_WHERE:
        return ops->cancel_where(inner, call->asked, call->results_max, call->ret_count, err);
    case FAULT_REDRIVE_WHERE:
        return ops->redrive_where(inner, call->asked, call->results_max, call->ret_count, err);
    default:
        assert(call->verb == FAULT_DISCARD_WHERE);
        return ops->discard_where(inner, call->asked, call->results_max, call->ret_count, err);
    }
}

static pawl_code execute(struct fault_store *store, const struct call *call, pawl_err *err)
{
    store->executed[call->verb]++;
    store->executed[FAULT_ANY_VERB]++;
    if (call->verb <= FAULT_PRUNE)
        return execute_work(store->inner, call, err);
    switch (call->verb) {
    case FAULT_GET:
    case FAULT_LIST:
    case FAULT_ATTEMPTS:
    case FAULT_LEASES:
    case FAULT_WORKERS:
    case FAULT_QUEUE_STATS:
    case FAULT_QUEUE_GET:
    case FAULT_NOW:
    case FAULT_WAIT:
        return execute_reading(store->inner, call, err);
    default:
        return execute_operating(store->inner, call, err);
    }
}

/* ---------------------------------------------------------------- going wrong */

/* What stands in the caller's result buffers. */
struct answer {
    void *results;
    size_t count;
};

static bool answer_init(struct answer *answer, const struct call *call)
{
    answer->count = 0;
    answer->results = malloc(call->results_size > 0 ? call->results_size : 1);
    return answer->results != NULL;
}

static void answer_save(struct answer *answer, const struct call *call)
{
    if (call->results_size > 0)
        memcpy(answer->results, call->results, call->results_size);
    if (call->ret_count != NULL)
        answer->count = *call->ret_count;
}

static void answer_put_back(const struct answer *answer, const struct call *call)
{
    if (call->results_size > 0)
        memcpy(call->results, answer->results, call->results_size);
    if (call->ret_count != NULL)
        *call->ret_count = answer->count;
}

/* Free what an answer owns that nobody will get. */
static void dispose(const struct call *call, pawl_code rc)
{
    if (rc != PAWL_OK || call->jobs == NULL)
        return;
    size_t count = call->ret_count != NULL ? *call->ret_count : 1;
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&call->jobs[i]);
}

static pawl_code execute_wrongly(struct fault_store *store, const struct call *call,
                                 enum fault_kind kind, pawl_err *err)
{
    struct answer before = {0};
    struct answer first = {0};
    pawl_code rc = PAWL_OK;
    if (!answer_init(&before, call) || !answer_init(&first, call)) {
        rc = pawli_fail_plain(err, PAWL_NO_MEMORY);
        goto done;
    }
    answer_save(&before, call);
    rc = execute(store, call, err);
    if (kind == FAULT_TWICE_FIRST) {
        answer_save(&first, call);
        answer_put_back(&before, call);
        dispose(call, execute(store, call, NULL));
        answer_put_back(&first, call);
        goto done;
    }
    dispose(call, rc);
    answer_put_back(&before, call);
    if (kind == FAULT_TWICE_SECOND)
        rc = execute(store, call, err);
    else
        rc = pawli_fail(err, PAWL_UNKNOWN, "the reply was lost on purpose");
done:
    free(first.results);
    free(before.results);
    return rc;
}

/* Take the oldest entry that is for this call out of the script. */
static struct fault next_fault(struct fault_store *store, enum fault_verb verb)
{
    store->asked[verb]++;
    store->asked[FAULT_ANY_VERB]++;
    for (size_t i = 0; i < store->script_count; i++) {
        struct entry entry = store->script[i];
        bool is_for_verb = entry.fault.verb == verb || entry.fault.verb == FAULT_ANY_VERB;
        if (!is_for_verb || store->asked[entry.fault.verb] < entry.at)
            continue;
        store->script_count--;
        memmove(&store->script[i], &store->script[i + 1],
                (store->script_count - i) * sizeof(store->script[0]));
        return entry.fault;
    }
    return (struct fault){.verb = verb, .kind = FAULT_NONE};
}

static pawl_code play(pawl_store *head, const struct call *call, pawl_err *err)
{
    struct fault_store *store = fault_store_of(head);
    struct fault fault = next_fault(store, call->verb);
    if (store->pass != NULL) {
        enum fault_kind kind = store->pass(store->pass_user, call->verb);
        if (kind != FAULT_NONE)
            fault.kind = kind;
    }
    if (fault.before_request != NULL)
        fault.before_request(fault.user);
    if (fault.kind == FAULT_DOWN)
        return pawli_fail(err, PAWL_DOWN, "the store is away on purpose");
    if (fault.kind == FAULT_LOST_REQUEST)
        return pawli_fail(err, PAWL_UNKNOWN, "the request was lost on purpose");
    pawl_code rc = fault.kind == FAULT_NONE ? execute(store, call, err)
                                            : execute_wrongly(store, call, fault.kind, err);
    if (fault.before_reply != NULL)
        fault.before_reply(fault.user);
    return rc;
}

/* ---------------------------------------------------------------- the verbs, packed */

static pawl_code fault_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err)
{
    struct call call = {.verb = FAULT_ENQUEUE,
                        .asked = rows,
                        .asked_count = rows_count,
                        .results = ret_results,
                        .results_size = rows_count * sizeof(ret_results[0])};
    return play(store, &call, err);
}

static struct call call_for_jobs(enum fault_verb verb, pawl_job *ret_jobs, size_t jobs_max,
                                 size_t *ret_count)
{
    return (struct call){.verb = verb,
                         .results = ret_jobs,
                         .results_size = jobs_max * sizeof(ret_jobs[0]),
                         .results_max = jobs_max,
                         .ret_count = ret_count,
                         .jobs = ret_jobs};
}

static pawl_code fault_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct call call = call_for_jobs(FAULT_CLAIM, ret_jobs, jobs_max, ret_count);
    call.asked = args;
    return play(store, &call, err);
}

static pawl_code fault_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct call call = call_for_jobs(FAULT_MINE, ret_jobs, jobs_max, ret_count);
    call.text = worker;
    call.after = after;
    return play(store, &call, err);
}

static pawl_code fault_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    struct call call = {.verb = FAULT_RENEW,
                        .text = worker,
                        .asked = rows,
                        .asked_count = rows_count,
                        .results = ret_results,
                        .results_size = rows_count * sizeof(ret_results[0])};
    return play(store, &call, err);
}

static pawl_code fault_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    struct call call = {.verb = FAULT_SETTLE,
                        .text = worker,
                        .asked = rows,
                        .asked_count = rows_count,
                        .results = ret_results,
                        .results_size = rows_count * sizeof(ret_results[0])};
    return play(store, &call, err);
}

static pawl_code fault_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    struct call call = {.verb = FAULT_RELEASE,
                        .text = worker,
                        .asked = leases,
                        .asked_count = leases_count,
                        .results = ret_codes,
                        .results_size = leases_count * sizeof(ret_codes[0])};
    return play(store, &call, err);
}

static pawl_code fault_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err)
{
    struct call call = {.verb = FAULT_REAP,
                        .results = ret_rows,
                        .results_size = rows_max * sizeof(ret_rows[0]),
                        .results_max = rows_max,
                        .ret_count = ret_count};
    return play(store, &call, err);
}

static pawl_code fault_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct call call = {.verb = FAULT_PRUNE, .results_max = jobs_max, .ret_count = ret_count};
    return play(store, &call, err);
}

static pawl_code fault_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    struct call call = call_for_jobs(FAULT_GET, ret_job, 1, NULL);
    call.asked = id;
    return play(store, &call, err);
}

static pawl_code fault_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct call call = call_for_jobs(FAULT_LIST, ret_jobs, jobs_max, ret_count);
    call.asked = filter;
    call.after = after;
    return play(store, &call, err);
}

static pawl_code fault_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err)
{
    struct call call = {.verb = FAULT_ATTEMPTS,
                        .asked = id,
                        .number = after_no,
                        .results = ret_rows,
                        .results_size = rows_max * sizeof(ret_rows[0]),
                        .results_max = rows_max,
                        .ret_count = ret_count};
    return play(store, &call, err);
}

static pawl_code fault_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                              pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err)
{
    struct call call = {.verb = FAULT_LEASES,
                        .asked = filter,
                        .after = after,
                        .results = ret_rows,
                        .results_size = rows_max * sizeof(ret_rows[0]),
                        .results_max = rows_max,
                        .ret_count = ret_count};
    return play(store, &call, err);
}

static pawl_code fault_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    struct call call = {.verb = FAULT_WORKER_SEEN, .asked = args};
    return play(store, &call, err);
}

static pawl_code fault_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    struct call call = {.verb = FAULT_WORKER_ENDED, .text = name};
    return play(store, &call, err);
}

static pawl_code fault_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct call call = {.verb = FAULT_WORKERS,
                        .after = after,
                        .results = ret_rows,
                        .results_size = rows_max * sizeof(ret_rows[0]),
                        .results_max = rows_max,
                        .ret_count = ret_count};
    return play(store, &call, err);
}

static pawl_code fault_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                   size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct call call = {.verb = FAULT_QUEUE_STATS,
                        .after = after,
                        .results = ret_rows,
                        .results_size = rows_max * sizeof(ret_rows[0]),
                        .results_max = rows_max,
                        .ret_count = ret_count};
    return play(store, &call, err);
}

static pawl_code fault_queue_get(pawl_store *store, const char *queue,
                                 pawl_queue_settings *ret_settings, pawl_err *err)
{
    struct call call = {.verb = FAULT_QUEUE_GET,
                        .text = queue,
                        .results = ret_settings,
                        .results_size = sizeof(*ret_settings)};
    return play(store, &call, err);
}

static pawl_code fault_queue_set(pawl_store *store, const char *queue,
                                 const pawl_queue_settings *settings, pawl_err *err)
{
    struct call call = {.verb = FAULT_QUEUE_SET, .text = queue, .asked = settings};
    return play(store, &call, err);
}

static pawl_code fault_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                   pawl_err *err)
{
    struct call call = {.verb = FAULT_QUEUE_PAUSE, .text = queue, .number = is_paused};
    return play(store, &call, err);
}

static struct call call_for_ids(enum fault_verb verb, const pawl_id *ids, size_t ids_count,
                                pawl_changed *ret_results)
{
    return (struct call){.verb = verb,
                         .asked = ids,
                         .asked_count = ids_count,
                         .results = ret_results,
                         .results_size = ids_count * sizeof(ret_results[0])};
}

static pawl_code fault_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                              pawl_changed *ret_results, pawl_err *err)
{
    struct call call = call_for_ids(FAULT_CANCEL, ids, ids_count, ret_results);
    return play(store, &call, err);
}

static pawl_code fault_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    struct call call = call_for_ids(FAULT_REDRIVE, ids, ids_count, ret_results);
    return play(store, &call, err);
}

static pawl_code fault_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    struct call call = call_for_ids(FAULT_DISCARD, ids, ids_count, ret_results);
    return play(store, &call, err);
}

static struct call call_for_filter(enum fault_verb verb, const pawl_filter *filter, size_t jobs_max,
                                   size_t *ret_count)
{
    return (struct call){
        .verb = verb, .asked = filter, .results_max = jobs_max, .ret_count = ret_count};
}

static pawl_code fault_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                    size_t *ret_count, pawl_err *err)
{
    struct call call = call_for_filter(FAULT_CANCEL_WHERE, filter, jobs_max, ret_count);
    return play(store, &call, err);
}

static pawl_code fault_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    struct call call = call_for_filter(FAULT_REDRIVE_WHERE, filter, jobs_max, ret_count);
    return play(store, &call, err);
}

static pawl_code fault_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    struct call call = call_for_filter(FAULT_DISCARD_WHERE, filter, jobs_max, ret_count);
    return play(store, &call, err);
}

static pawl_code fault_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    struct call call = {.verb = FAULT_NOW, .results = ret_now, .results_size = sizeof(*ret_now)};
    return play(store, &call, err);
}

static pawl_code fault_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    struct call call = {.verb = FAULT_WAIT,
                        .number = timeout_ms,
                        .results = ret_hint,
                        .results_size = sizeof(*ret_hint)};
    return play(store, &call, err);
}

static void fault_limit(pawl_store *store, int64_t call_timeout_ms)
{
    pawl_store_limit(fault_store_of(store)->inner, call_timeout_ms);
}

static void fault_wake(pawl_store *store)
{
    pawl_wake(fault_store_of(store)->inner); /* from any thread: it touches nothing of the script */
}

static void fault_close(pawl_store *store)
{
    pawl_store_close(fault_store_of(store)->inner);
    free(store);
}

static const struct pawli_store_ops fault_ops = {
    .name = "fault",
    .close = fault_close,
    .enqueue = fault_enqueue,
    .claim = fault_claim,
    .mine = fault_mine,
    .renew = fault_renew,
    .settle = fault_settle,
    .release = fault_release,
    .reap = fault_reap,
    .prune = fault_prune,
    .get = fault_get,
    .list = fault_list,
    .attempts = fault_attempts,
    .leases = fault_leases,
    .worker_seen = fault_worker_seen,
    .worker_ended = fault_worker_ended,
    .workers = fault_workers,
    .queue_stats = fault_queue_stats,
    .queue_get = fault_queue_get,
    .queue_set = fault_queue_set,
    .queue_pause = fault_queue_pause,
    .cancel = fault_cancel,
    .redrive = fault_redrive,
    .discard = fault_discard,
    .cancel_where = fault_cancel_where,
    .redrive_where = fault_redrive_where,
    .discard_where = fault_discard_where,
    .now = fault_now,
    .wait = fault_wait,
    .wake = fault_wake,
    .limit = fault_limit,
};

/* ---------------------------------------------------------------- the script */

pawl_code fault_store_open(pawl_store *inner, pawl_store **ret_store, pawl_err *err)
{
    assert(inner != NULL);
    assert(ret_store != NULL);
    struct fault_store *store = calloc(1, sizeof(*store));
    if (store == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    store->head.ops = &fault_ops;
    store->head.limits = inner->limits;
    store->inner = inner;
    *ret_store = &store->head;
    return PAWL_OK;
}

pawl_code fault_store_add(pawl_store *head, const struct fault *fault)
{
    struct fault_store *store = fault_store_of(head);
    assert(store->head.ops == &fault_ops);
    assert(fault->nth >= 1);
    if (store->script_count == FAULT_SCRIPT_MAX)
        return PAWL_FULL;
    store->script[store->script_count++] = (struct entry){
        .fault = *fault, .at = store->asked[fault->verb] + fault->nth};
    return PAWL_OK;
}

size_t fault_store_left(const pawl_store *head)
{
    return ((const struct fault_store *)head)->script_count;
}

int64_t fault_store_asked(const pawl_store *head, enum fault_verb verb)
{
    return ((const struct fault_store *)head)->asked[verb];
}

int64_t fault_store_executed(const pawl_store *head, enum fault_verb verb)
{
    return ((const struct fault_store *)head)->executed[verb];
}

void fault_store_on_pass(pawl_store *store,
                         enum fault_kind (*pass)(void *user, enum fault_verb verb), void *user)
{
    fault_store_of(store)->pass = pass;
    fault_store_of(store)->pass_user = user;
}
