/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_worklease_model_test.c - proves core/worklease.c against a naive model, over random
 * operations: every result, every invariant after every step, every allocation failing, every
 * clock.
 * Owns:  the model: arrays and linear search, on purpose.
 * Never: looks into the record but through worklease_record.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

#include "base/random.h"
#include "support/alloc_fail.h"
#include "support/worklease_rig.h"

static pawl_token token_of(uint64_t number)
{
    pawl_token token = {{0}};
    memcpy(token.bytes, &number, sizeof number);
    token.bytes[15] = 1; /* the last byte counts too, and no token is zero */
    return token;
}

static bool is_same_token(const pawl_token *a, const pawl_token *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* ---------------------------------------------------------------- the naive model */

#define OFFSETS_MAX 200

struct model_set {
    int64_t offsets[OFFSETS_MAX];
    size_t count;
};

struct model {
    int64_t max_retries;
    size_t backlog_max;
    bool is_leased;
    int64_t offset;
    pawl_token token;
    int64_t acquired_at_us;
    int64_t retry_count;
    struct model_set processed;
    struct model_set failed;
    struct model_set backlog; /* in the order of arrival */
};

enum operation_kind {
    ACQUIRE,
    SUCCEED,
    FAIL
};

struct operation {
    enum operation_kind kind;
    int64_t offset; /* ACQUIRE */
    pawl_token token;
    int64_t now_us; /* ACQUIRE */
};

/* What an operation came to. What does not apply is zero. */
struct outcome {
    pawl_code code;
    pawl_worklease_acquired acquired;
    pawl_worklease_ended finished;
};

static bool set_has(const struct model_set *set, int64_t offset)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->offsets[i] == offset)
            return true;
    return false;
}

static void set_add(struct model_set *set, int64_t offset)
{
    assert_true(set->count < OFFSETS_MAX);
    set->offsets[set->count++] = offset;
}

/* How many runs of neighbours a set has: the members without a member just below them. */
static size_t set_runs(const struct model_set *set)
{
    size_t runs = 0;
    for (size_t i = 0; i < set->count; i++)
        runs += set->offsets[i] == INT64_MIN || !set_has(set, set->offsets[i] - 1);
    return runs;
}

static struct outcome model_acquire(struct model *model, const struct operation *op)
{
    struct outcome outcome = {.code = PAWL_OK};
    if (set_has(&model->processed, op->offset)) {
        outcome.acquired.got = PAWL_GOT_ALREADY_PROCESSED;
        return outcome;
    }
    if (set_has(&model->failed, op->offset)) {
        outcome.acquired.got = PAWL_GOT_ALREADY_FAILED;
        return outcome;
    }
    if (model->is_leased) {
        if (model->offset == op->offset) {
            outcome.acquired.got = PAWL_GOT_ALREADY_ACQUIRED;
            outcome.acquired.token = model->token;
            return outcome;
        }
        if (!set_has(&model->backlog, op->offset)) {
            if (model->backlog.count == model->backlog_max)
                return (struct outcome){.code = PAWL_WL_BACKLOG_FULL};
            set_add(&model->backlog, op->offset);
        }
        outcome.acquired.got = PAWL_GOT_ENQUEUED;
        return outcome;
    }
    if (model->backlog.count > 0) {
        if (model->backlog.offsets[0] != op->offset)
            return (struct outcome){.code = PAWL_WL_ORDER};
        model->backlog.count--;
        for (size_t i = 0; i < model->backlog.count; i++)
            model->backlog.offsets[i] = model->backlog.offsets[i + 1];
    }
    model->is_leased = true;
    model->offset = op->offset;
    model->token = op->token;
    model->acquired_at_us = op->now_us;
    model->retry_count = 0;
    outcome.acquired.got = PAWL_GOT_ACQUIRED;
    outcome.acquired.token = op->token;
    return outcome;
}

static struct outcome model_finish(struct model *model, const struct operation *op)
{
    struct outcome outcome = {.code = PAWL_OK};
    if (!model->is_leased)
        return (struct outcome){.code = PAWL_WL_NO_LEASE};
    if (!is_same_token(&model->token, &op->token))
        return (struct outcome){.code = PAWL_WL_TOKEN};
    if (op->kind == FAIL && model->retry_count < model->max_retries) {
        model->retry_count++;
        outcome.finished.end = PAWL_END_RETRY_SCHEDULED;
        outcome.finished.retry_count = model->retry_count;
        return outcome;
    }
    bool is_empty = model->backlog.count == 0;
    if (op->kind == FAIL) {
        set_add(&model->failed, model->offset);
        outcome.finished.end = is_empty ? PAWL_END_GIVE_UP_NO_BACKLOG : PAWL_END_GIVE_UP_NEXT_HINT;
    } else {
        set_add(&model->processed, model->offset);
        outcome.finished.end = is_empty ? PAWL_END_NO_BACKLOG : PAWL_END_NEXT_HINT;
    }
    outcome.finished.next_offset = is_empty ? 0 : model->backlog.offsets[0];
    model->is_leased = false;
    return outcome;
}

static struct outcome model_apply(struct model *model, const struct operation *op)
{
    return op->kind == ACQUIRE ? model_acquire(model, op) : model_finish(model, op);
}

/* ---------------------------------------------------------------- the record beside its model */

/* One domain, twice. */
struct pair {
    char name[8];
    struct rig *record;
    struct model model;
};

/* The offsets that operations draw from. */
struct universe {
    int64_t offsets[OFFSETS_MAX];
    size_t count;
};

static struct outcome record_apply(struct rig *record, const struct operation *op, pawl_err *err)
{
    struct outcome outcome = {.code = PAWL_OK};
    struct rig_call args = {.offset = op->offset, .token = op->token, .now = {op->now_us}};
    switch (op->kind) {
    case ACQUIRE:
        outcome.code = rig_try_acquire(record, &args, &outcome.acquired, err);
        break;
    case SUCCEED:
        outcome.code = rig_succeed(record, &args, &outcome.finished, err);
        break;
    case FAIL:
        outcome.code = rig_fail(record, &args, &outcome.finished, err);
        break;
    }
    return outcome;
}

static void check_same_outcome(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->code, b->code);
    assert_int_equal(a->acquired.got, b->acquired.got);
    assert_true(is_same_token(&a->acquired.token, &b->acquired.token));
    assert_int_equal(a->finished.end, b->finished.end);
    assert_true(a->finished.next_offset == b->finished.next_offset);
    assert_true(a->finished.retry_count == b->finished.retry_count);
}

/* All that can be seen of a record is what its model holds. */
static void check_same_state(const struct rig *record, const struct model *model,
                             const struct universe *universe)
{
    struct rig_view view = rig_look(record);
    assert_int_equal(view.is_leased, model->is_leased);
    if (model->is_leased) {
        assert_true(view.offset == model->offset);
        assert_true(view.retry_count == model->retry_count);
        assert_true(view.acquired_at.us == model->acquired_at_us);
    }
    assert_int_equal(view.backlog_count, model->backlog.count);
    for (size_t i = 0; i < model->backlog.count; i++)
        assert_true(pawli_worklease_backlog_at(record->record, i) == model->backlog.offsets[i]);
    if (model->backlog.count > 0)
        assert_true(view.backlog_head == model->backlog.offsets[0]);
    for (size_t i = 0; i < universe->count; i++) {
        int64_t offset = universe->offsets[i];
        assert_int_equal(rig_is_processed(record, offset), set_has(&model->processed, offset));
        assert_int_equal(rig_is_failed(record, offset), set_has(&model->failed, offset));
    }
    assert_int_equal(view.processed_intervals, set_runs(&model->processed));
    assert_int_equal(view.failed_intervals, set_runs(&model->failed));
}

/* ---------------------------------------------------------------- the invariants, on the record */

/* A record at one moment, by its own word. */
struct snapshot {
    struct rig_view view;
    int64_t backlog[OFFSETS_MAX];
    bool is_processed[OFFSETS_MAX]; /* by index in the universe */
    bool is_failed[OFFSETS_MAX];
};

static void take_snapshot(const struct rig *record, const struct universe *universe,
                          struct snapshot *ret_snapshot)
{
    ret_snapshot->view = rig_look(record);
    for (size_t i = 0; i < ret_snapshot->view.backlog_count; i++)
        ret_snapshot->backlog[i] = pawli_worklease_backlog_at(record->record, i);
    for (size_t i = 0; i < universe->count; i++) {
        ret_snapshot->is_processed[i] = rig_is_processed(record, universe->offsets[i]);
        ret_snapshot->is_failed[i] = rig_is_failed(record, universe->offsets[i]);
    }
}

static void check_disjoint(const struct snapshot *now, const struct universe *universe)
{
    for (size_t i = 0; i < universe->count; i++) { /* WL-DISJOINT */
        int64_t offset = universe->offsets[i];
        size_t waiting = 0;
        for (size_t j = 0; j < now->view.backlog_count; j++)
            waiting += now->backlog[j] == offset;
        bool is_current = now->view.is_leased && now->view.offset == offset;
        assert_true(waiting + now->is_processed[i] + now->is_failed[i] + is_current <= 1);
    }
}

static void check_step(const struct snapshot *before, const struct snapshot *now,
                       const struct operation *op, const struct outcome *outcome,
                       const struct universe *universe)
{
    check_disjoint(now, universe);
    bool is_granted = op->kind == ACQUIRE && outcome->code == PAWL_OK &&
                      outcome->acquired.got == PAWL_GOT_ACQUIRED;

    /* WL-SINGLE: granted only where there was none; the one there is stays as it was. */
    assert_true(!is_granted || !before->view.is_leased);
    if (before->view.is_leased && now->view.is_leased) {
        assert_true(before->view.offset == now->view.offset);
        assert_true(before->view.acquired_at.us == now->view.acquired_at.us);
    }

    /* WL-FIFO: the same, or one more at its tail, or without its head, which was just leased. */
    size_t lost = is_granted && before->view.backlog_count > 0 ? 1 : 0;
    assert_true(lost == 0 || before->backlog[0] == now->view.offset);
    size_t kept = before->view.backlog_count - lost;
    assert_true(now->view.backlog_count == kept || now->view.backlog_count == kept + 1);
    if (now->view.backlog_count == kept + 1)
        assert_true(op->kind == ACQUIRE && !is_granted && now->backlog[kept] == op->offset);
    for (size_t i = 0; i < kept; i++)
        assert_true(now->backlog[i] == before->backlog[i + lost]);

    for (size_t i = 0; i < universe->count; i++) { /* WL-IDEMPOTENT */
        assert_true(!before->is_processed[i] || now->is_processed[i]);
        assert_true(!before->is_failed[i] || now->is_failed[i]);
        if (op->kind == ACQUIRE && op->offset == universe->offsets[i]) {
            assert_true(!before->is_processed[i] ||
                        outcome->acquired.got == PAWL_GOT_ALREADY_PROCESSED);
            assert_true(!before->is_failed[i] || outcome->acquired.got == PAWL_GOT_ALREADY_FAILED);
        }
    }
}

/* ---------------------------------------------------------------- random operations */

static struct operation draw_operation(const struct model *model, const struct universe *universe,
                                       uint64_t number, const pawl_random *random)
{
    struct operation op = {.kind = ACQUIRE, .token = token_of(number), .now_us = (int64_t)number};
    uint64_t dice = pawli_random_below(random, 100);
    if (dice < 60) {
        op.offset = universe->offsets[pawli_random_below(random, universe->count)];
        bool is_head_wanted = !model->is_leased && model->backlog.count > 0;
        if (is_head_wanted && pawli_random_below(random, 100) < 60)
            op.offset = model->backlog.offsets[0];
        return op;
    }
    op.kind = dice < 80 ? SUCCEED : FAIL;
    if (pawli_random_below(random, 100) < 80)
        op.token = model->token; /* of the lease, or of the last one */
    return op;
}

static void pair_open(struct pair *pair, char letter, int64_t max_retries, int64_t backlog_max)
{
    *pair = (struct pair){
        .name = {letter, '\0'},
        .model = {.max_retries = max_retries, .backlog_max = (size_t)backlog_max},
    };
    pair->record = rig_new(pair->name, max_retries, backlog_max);
    assert_non_null(pair->record);
}

/* How often each result has come up: one that never does is not tested. */
struct tally {
    size_t acquired[PAWL_GOT_ALREADY_FAILED + 1];
    size_t finished[PAWL_END_GIVE_UP_NEXT_HINT + 1];
    size_t order, no_lease, token, full;
};

static void count_outcome(struct tally *tally, const struct operation *op,
                          const struct outcome *outcome)
{
    tally->order += outcome->code == PAWL_WL_ORDER;
    tally->no_lease += outcome->code == PAWL_WL_NO_LEASE;
    tally->token += outcome->code == PAWL_WL_TOKEN;
    tally->full += outcome->code == PAWL_WL_BACKLOG_FULL;
    if (outcome->code == PAWL_OK && op->kind == ACQUIRE)
        tally->acquired[outcome->acquired.got]++;
    else if (outcome->code == PAWL_OK)
        tally->finished[outcome->finished.end]++;
}

static void check_tally(const struct tally *tally)
{
    for (size_t i = 0; i <= PAWL_GOT_ALREADY_FAILED; i++)
        assert_true(tally->acquired[i] > 100);
    for (size_t i = 0; i <= PAWL_END_GIVE_UP_NEXT_HINT; i++)
        assert_true(tally->finished[i] > 100);
    assert_true(tally->order > 100 && tally->no_lease > 100 && tally->token > 100);
    assert_true(tally->full > 100);
}

static void check_order_text(const struct pair *pair, const struct operation *op,
                             const pawl_err *err)
{
    char text[PAWL_ERR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "expected offset %" PRId64 ", ",
                   pair->model.backlog.offsets[0]); /* it fits */
    assert_non_null(strstr(err->text, text));
    (void)snprintf(text, sizeof text, "%" PRId64 " was given in domain %s", op->offset,
                   pair->name); /* it fits */
    assert_non_null(strstr(err->text, text));
}

static void step_pair(struct pair *pair, const struct operation *op,
                      const struct universe *universe, struct tally *tally)
{
    struct snapshot before;
    struct snapshot now;
    pawl_err err = {.code = PAWL_OK};
    take_snapshot(pair->record, universe, &before);
    struct outcome outcome = record_apply(pair->record, op, &err);
    take_snapshot(pair->record, universe, &now);
    struct outcome expected = model_apply(&pair->model, op);

    check_same_outcome(&outcome, &expected);
    check_same_state(pair->record, &pair->model, universe);
    check_step(&before, &now, op, &outcome, universe);
    assert_int_equal(err.code, outcome.code);
    if (outcome.code == PAWL_WL_ORDER)
        check_order_text(pair, op, &err);
    if (outcome.code != PAWL_OK)
        assert_int_equal(now.view.memory_bytes, before.view.memory_bytes);
    count_outcome(tally, op, &outcome);
}

/* Neighbours, gaps, and both ends of the range. */
static const struct universe edges = {
    .offsets = {INT64_MIN,
                INT64_MIN + 1,
                INT64_MIN + 2,
                -7,
                -2,
                -1,
                0,
                1,
                2,
                3,
                4,
                5,
                6,
                8,
                10,
                11,
                12,
                1000,
                1001,
                INT64_MAX - 3,
                INT64_MAX - 2,
                INT64_MAX - 1,
                INT64_MAX},
    .count = 23,
};

/* WL-SINGLE, WL-DISJOINT, WL-FIFO, WL-IDEMPOTENT, WL-FENCE and every result, 150,000 times. */
static void equals_the_naive_model(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 7};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct tally tally = {.order = 0};
    uint64_t number = 0;
    for (int episode = 0; episode < 500; episode++) {
        struct pair pairs[3];
        pair_open(&pairs[0], 'A', 0, 2);
        pair_open(&pairs[1], 'B', 1, 5);
        pair_open(&pairs[2], 'C', 3, 100);
        for (int step = 0; step < 300; step++) {
            struct pair *pair = &pairs[pawli_random_below(&random, 3)];
            struct operation op = draw_operation(&pair->model, &edges, ++number, &random);
            step_pair(pair, &op, &edges, &tally);
        }
        for (size_t i = 0; i < 3; i++) { /* no domain has touched another */
            check_same_state(pairs[i].record, &pairs[i].model, &edges);
            rig_free(pairs[i].record);
        }
    }
    check_tally(&tally);
}

/* ---------------------------------------------------------------- out of memory */

static void failed_allocation_makes_no_record(void **state)
{
    (void)state;
    uint64_t nth = 1;
    for (;; nth++) {
        alloc_fail_nth(nth);
        struct pawli_worklease *record = pawli_worklease_new("A");
        bool has_failed = alloc_fail_end();
        assert_int_equal(record == NULL, has_failed);
        pawli_worklease_free(record);
        if (!has_failed)
            break;
    }
    assert_true(nth > 1);
}

/* Every allocation of every operation fails once; each time the record is what it was. Offsets
 * with gaps between them make the sets and the backlog outgrow what they have. */
static void failed_allocation_changes_nothing(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 8};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct universe universe = {.count = OFFSETS_MAX};
    for (size_t i = 0; i < OFFSETS_MAX; i++)
        universe.offsets[i] = (int64_t)i * 2;
    size_t failures[3] = {0, 0, 0}; /* by kind of operation */

    for (uint64_t episode = 1; episode <= 3; episode++) {
        struct pair pair;
        pair_open(&pair, 'A', 1, OFFSETS_MAX);
        for (uint64_t step = 0; step < 1500; step++) {
            struct operation op = draw_operation(&pair.model, &universe, episode * 10000 + step,
                                                 &random);
            struct outcome outcome;
            for (uint64_t nth = 1;; nth++) {
                pawl_err err = {.code = PAWL_OK};
                size_t bytes = rig_look(pair.record).memory_bytes;
                alloc_fail_nth(nth);
                outcome = record_apply(pair.record, &op, &err);
                if (!alloc_fail_end())
                    break;
                struct outcome refused = {.code = PAWL_NO_MEMORY};
                check_same_outcome(&outcome, &refused);
                assert_int_equal(err.code, PAWL_NO_MEMORY);
                check_same_state(pair.record, &pair.model, &universe);
                assert_int_equal(rig_look(pair.record).memory_bytes, bytes);
                failures[op.kind]++;
            }
            struct outcome expected = model_apply(&pair.model, &op);
            check_same_outcome(&outcome, &expected);
            check_same_state(pair.record, &pair.model, &universe);
        }
        rig_free(pair.record);
    }
    for (size_t i = 0; i < 3; i++)
        assert_true(failures[i] > 3); /* beyond the first one of each episode */
}

/* ---------------------------------------------------------------- time */

/* WL-NO-TIMERS: two records see the same operations at other times, one of them backwards; all that
 * differs is the time at which a lease was acquired, and that is the one handed in. */
static void nothing_but_acquired_at_depends_on_now(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 9};
    pawl_random random = pawli_seeded_as_random(&seeded);
    for (int episode = 0; episode < 20; episode++) {
        struct pair forwards;
        struct pair backwards;
        pair_open(&forwards, 'A', 2, 6);
        pair_open(&backwards, 'A', 2, 6);
        for (int64_t step = 1; step <= 300; step++) {
            struct operation op = draw_operation(&forwards.model, &edges, (uint64_t)step, &random);
            op.now_us = step * 3600 * 1000000;
            struct operation op_back = op;
            op_back.now_us = step % 5 == 0 ? INT64_MIN : -op.now_us;
            struct outcome outcome = record_apply(forwards.record, &op, NULL);
            struct outcome outcome_back = record_apply(backwards.record, &op_back, NULL);
            check_same_outcome(&outcome, &outcome_back);
            (void)model_apply(&forwards.model, &op); /* compared by its state, next */
            (void)model_apply(&backwards.model, &op_back);
            check_same_state(forwards.record, &forwards.model, &edges);
            check_same_state(backwards.record, &backwards.model, &edges);
        }
        rig_free(forwards.record);
        rig_free(backwards.record);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_naive_model),
        cmocka_unit_test(failed_allocation_makes_no_record),
        cmocka_unit_test(failed_allocation_changes_nothing),
        cmocka_unit_test(nothing_but_acquired_at_depends_on_now),
    };
    return cmocka_run_group_tests_name("core_worklease_model", tests, NULL, NULL);
}
