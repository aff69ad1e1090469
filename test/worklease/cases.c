/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cases.c - work leases step by step: the document's six scenarios, holders that crash, every
 * error, what is shown, and what is refused before a store sees it.
 * Owns:  nothing.
 * Never: looks behind the public verbs.
 */
#include "worklease/suite.h"

#include <string.h>

#define LEASE_MS 1000

/* ---------------------------------------------------------------- short forms */

/* Who asks. Zeroed: nobody in particular, for a lease that waits for its holder. */
struct who {
    const char *owner;
    int64_t lease_ms;
    int64_t backlog_max;
};
static const struct who nobody = {0};
static const struct who anna = {.owner = "anna", .lease_ms = LEASE_MS};
static const struct who bert = {.owner = "bert", .lease_ms = LEASE_MS};

static pawl_worklease_acquire asking(const struct who *who, int64_t offset)
{
    pawl_worklease_acquire args;
    pawl_worklease_acquire_init(&args);
    args.domain = "A";
    args.offset = offset;
    args.owner = who->owner;
    if (who->lease_ms != 0)
        args.lease_ms = who->lease_ms;
    if (who->backlog_max != 0)
        args.backlog_max = who->backlog_max;
    return args;
}

static pawl_worklease_acquired acquire(struct stage *s, const struct who *who, int64_t offset,
                                       pawl_worklease_got got)
{
    pawl_worklease_acquire args = asking(who, offset);
    pawl_worklease_acquired acquired;
    pawl_err err = {.code = PAWL_OK};
    pawl_code rc = pawl_worklease_try_acquire(s->store, &args, &acquired, &err);
    if (rc != PAWL_OK)
        fail_msg("offset %lld: %s: %s", (long long)offset, pawl_code_name(rc), err.text);
    assert_string_equal(pawl_worklease_got_name(acquired.got), pawl_worklease_got_name(got));
    return acquired;
}

static pawl_code refused(struct stage *s, const struct who *who, int64_t offset, pawl_err *err)
{
    pawl_worklease_acquire args = asking(who, offset);
    pawl_worklease_acquired acquired;
    memset(&acquired, 0xee, sizeof(acquired));
    pawl_worklease_acquired untouched = acquired;
    pawl_code rc = pawl_worklease_try_acquire(s->store, &args, &acquired, err);
    assert_memory_equal(&acquired, &untouched, sizeof(acquired));
    assert_int_equal(err->code, rc);
    return rc;
}

static pawl_worklease_hold holding(const struct who *who, pawl_worklease_acquired acquired)
{
    return (pawl_worklease_hold){.domain = "A", .owner = who->owner, .token = acquired.token};
}

static void succeed(struct stage *s, const pawl_worklease_hold *hold, pawl_worklease_end end,
                    int64_t next_offset)
{
    pawl_worklease_ended ended;
    assert_int_equal(pawl_worklease_succeed(s->store, hold, &ended, NULL), PAWL_OK);
    assert_string_equal(pawl_worklease_end_name(ended.end), pawl_worklease_end_name(end));
    assert_true(ended.next_offset == next_offset && ended.retry_count == 0);
}

static void fails(struct stage *s, const pawl_worklease_hold *hold, pawl_worklease_end end,
                  int64_t number)
{
    pawl_worklease_ended ended;
    assert_int_equal(pawl_worklease_fail(s->store, hold, PAWL_DEFAULT, &ended, NULL), PAWL_OK);
    assert_string_equal(pawl_worklease_end_name(ended.end), pawl_worklease_end_name(end));
    bool is_retry = end == PAWL_END_RETRY_SCHEDULED;
    assert_true(ended.retry_count == (is_retry ? number : 0));
    assert_true(ended.next_offset == (is_retry ? 0 : number));
}

/* Everything that a holder can ask is refused with this code, and nothing is written. */
static void all_refused(struct stage *s, const pawl_worklease_hold *hold, pawl_code code)
{
    pawl_worklease_ended ended;
    memset(&ended, 0xee, sizeof(ended));
    pawl_worklease_ended untouched = ended;
    pawl_wall expires_at = {17};
    pawl_err err;
    assert_int_equal(pawl_worklease_succeed(s->store, hold, &ended, &err), code);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, "domain A"));
    assert_int_equal(pawl_worklease_fail(s->store, hold, 0, &ended, &err), code);
    assert_int_equal(pawl_worklease_fail(s->store, hold, PAWL_DEFAULT, &ended, NULL), code);
    assert_int_equal(pawl_worklease_renew(s->store, hold, LEASE_MS, &expires_at, &err), code);
    assert_int_equal(err.code, code);
    assert_memory_equal(&ended, &untouched, sizeof(ended));
    assert_true(expires_at.us == 17);
}

static pawl_worklease_info look(struct stage *s)
{
    pawl_worklease_info info;
    assert_int_equal(pawl_worklease_get(s->store, "A", &info, NULL), PAWL_OK);
    return info;
}

/* ---------------------------------------------------------------- the document's six scenarios */

static void scenario_1_happy_path(void **state) /* WL-ACQUIRE, WL-SUCCEED */
{
    struct stage *s = *state;
    pawl_worklease_acquired got = acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED);
    pawl_wall now;
    assert_int_equal(pawl_now(s->store, &now, NULL), PAWL_OK);
    assert_true(got.offset == 1 && got.acquired_at.us == now.us && got.retry_count == 0);
    assert_true(got.expires_at.us == 0 && !got.is_taken_over);
    pawl_worklease_hold hold = holding(&nobody, got);
    succeed(s, &hold, PAWL_END_NO_BACKLOG, 0);
    assert_false(look(s).is_leased);
}

/* Scenario 2 up to its hint: 1 has succeeded, 2 waits, nothing is leased. */
static void hint_at_2(struct stage *s)
{
    pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED));
    assert_true(acquire(s, &nobody, 2, PAWL_GOT_ENQUEUED).offset == 1);
    succeed(s, &hold, PAWL_END_NEXT_HINT, 2);
}

static void scenario_2_queue_then_hand_off(void **state) /* WL-ACQUIRE, WL-SUCCEED, WL-FIFO */
{
    struct stage *s = *state;
    hint_at_2(s);
    assert_false(look(s).is_leased); /* no hand-off of its own accord */
    assert_true(look(s).backlog_count == 1 && look(s).backlog_head == 2); /* not removed */
    (void)acquire(s, &nobody, 2, PAWL_GOT_ACQUIRED);
    assert_true(look(s).is_leased && look(s).offset == 2 && look(s).backlog_count == 0);
}

static void scenario_3_out_of_order(void **state) /* WL-ORDER */
{
    struct stage *s = *state;
    pawl_err err;
    hint_at_2(s);
    assert_int_equal(refused(s, &nobody, 3, &err), PAWL_WL_ORDER);
    assert_string_equal(err.text,
                        "expected offset 2, the head of the backlog, but 3 was given in domain A");
    pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, 2, PAWL_GOT_ACQUIRED));
    succeed(s, &hold, PAWL_END_NO_BACKLOG, 0); /* 3 was not queued by its refusal */
}

static void scenario_4_retry(void **state) /* WL-FAIL, WL-NO-TIMERS */
{
    struct stage *s = *state;
    pawl_worklease_acquired got = acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED);
    pawl_worklease_hold hold = holding(&nobody, got);
    for (int64_t n = 1; n <= PAWL_WORKLEASE_RETRIES; n++) {
        s->kind->age(s->place, 3600000); /* nothing happens by itself, however long it takes */
        fails(s, &hold, PAWL_END_RETRY_SCHEDULED, n);
        pawl_worklease_acquired again = acquire(s, &nobody, 1, PAWL_GOT_ALREADY_ACQUIRED);
        assert_memory_equal(&again.token, &got.token, sizeof(got.token));
        assert_true(again.acquired_at.us == got.acquired_at.us && again.retry_count == n);
    }
}

static void scenario_5_final_give_up(void **state) /* WL-FAIL */
{
    struct stage *s = *state;
    for (int is_backlogged = 0; is_backlogged <= 1; is_backlogged++) {
        int64_t offset = 1 + is_backlogged;
        pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, offset, PAWL_GOT_ACQUIRED));
        if (is_backlogged)
            (void)acquire(s, &nobody, 7, PAWL_GOT_ENQUEUED);
        for (int64_t n = 1; n <= PAWL_WORKLEASE_RETRIES; n++)
            fails(s, &hold, PAWL_END_RETRY_SCHEDULED, n);
        if (is_backlogged)
            fails(s, &hold, PAWL_END_GIVE_UP_NEXT_HINT, 7);
        else
            fails(s, &hold, PAWL_END_GIVE_UP_NO_BACKLOG, 0);
        assert_false(look(s).is_leased);
        (void)acquire(s, &nobody, offset, PAWL_GOT_ALREADY_FAILED);
    }
    /* The next offset begins to count anew. */
    pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, 7, PAWL_GOT_ACQUIRED));
    fails(s, &hold, PAWL_END_RETRY_SCHEDULED, 1);
}

static void scenario_6_idempotence(void **state) /* WL-IDEMPOTENT */
{
    struct stage *s = *state;
    pawl_worklease_ended ended;
    pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED));
    succeed(s, &hold, PAWL_END_NO_BACKLOG, 0);
    hold = holding(&nobody, acquire(s, &nobody, 2, PAWL_GOT_ACQUIRED));
    assert_int_equal(pawl_worklease_fail(s->store, &hold, 0, &ended, NULL), PAWL_OK);
    assert_int_equal(ended.end, PAWL_END_GIVE_UP_NO_BACKLOG);
    for (int round = 0; round < 2; round++) { /* without a lease, then under one */
        pawl_worklease_acquired got = acquire(s, &nobody, 1, PAWL_GOT_ALREADY_PROCESSED);
        assert_true(got.offset == 0 && got.acquired_at.us == 0);
        (void)acquire(s, &nobody, 2, PAWL_GOT_ALREADY_FAILED);
        assert_true(look(s).backlog_count == 0);
        if (round == 0)
            hold = holding(&nobody, acquire(s, &nobody, 3, PAWL_GOT_ACQUIRED));
    }
    /* Nor do they become an ordering error where others wait: terminal is looked at first. */
    (void)acquire(s, &nobody, 4, PAWL_GOT_ENQUEUED);
    succeed(s, &hold, PAWL_END_NEXT_HINT, 4);
    (void)acquire(s, &nobody, 1, PAWL_GOT_ALREADY_PROCESSED);
    (void)acquire(s, &nobody, 2, PAWL_GOT_ALREADY_FAILED);
}

/* ---------------------------------------------------------------- holders that crash */

static void only_the_owner_is_told_the_token(void **state) /* WL-FENCE, RES-3 */
{
    struct stage *s = *state;
    static const pawl_token none;
    pawl_worklease_acquired got = acquire(s, &anna, 1, PAWL_GOT_ACQUIRED);
    assert_true(got.expires_at.us == got.acquired_at.us + LEASE_MS * 1000);
    pawl_worklease_acquired again = acquire(s, &anna, 1, PAWL_GOT_ALREADY_ACQUIRED);
    assert_memory_equal(&again.token, &got.token, sizeof(got.token));
    pawl_worklease_acquired other = acquire(s, &bert, 1, PAWL_GOT_HELD);
    assert_memory_equal(&other.token, &none, sizeof(none));
    assert_true(other.expires_at.us == got.expires_at.us && other.offset == 1);
    (void)acquire(s, &nobody, 1, PAWL_GOT_HELD);
    /* Nor does the token help another owner. */
    pawl_worklease_hold stolen = holding(&bert, got);
    all_refused(s, &stolen, PAWL_WL_TOKEN);
    stolen = holding(&nobody, got);
    all_refused(s, &stolen, PAWL_WL_TOKEN);
    pawl_worklease_hold hold = holding(&anna, got);
    succeed(s, &hold, PAWL_END_NO_BACKLOG, 0);
}

static void expired_lease_is_taken_over(void **state) /* RES-3, WL-FENCE, WL-SINGLE */
{
    struct stage *s = *state;
    pawl_worklease_acquired got = acquire(s, &anna, 1, PAWL_GOT_ACQUIRED);
    pawl_worklease_hold old = holding(&anna, got);
    fails(s, &old, PAWL_END_RETRY_SCHEDULED, 1);
    s->kind->age(s->place, LEASE_MS - 1);
    (void)acquire(s, &bert, 1, PAWL_GOT_HELD);
    s->kind->age(s->place, 1); /* at its deadline a lease is over */
    all_refused(s, &old, PAWL_WL_EXPIRED);
    assert_true(look(s).is_leased && look(s).is_expired);
    /* Others wait all the same: the offset is not dropped. */
    assert_true(acquire(s, &bert, 2, PAWL_GOT_ENQUEUED).offset == 1);
    pawl_worklease_acquired taken = acquire(s, &bert, 1, PAWL_GOT_ACQUIRED);
    assert_true(taken.is_taken_over && taken.retry_count == 1);
    assert_true(taken.acquired_at.us == got.acquired_at.us);
    assert_true(taken.expires_at.us == got.expires_at.us + LEASE_MS * 1000);
    assert_true(memcmp(&taken.token, &got.token, sizeof(got.token)) != 0);
    all_refused(s, &old, PAWL_WL_TOKEN);
    (void)acquire(s, &anna, 1, PAWL_GOT_HELD);
    pawl_worklease_hold hold = holding(&bert, taken);
    fails(s, &hold, PAWL_END_RETRY_SCHEDULED, 2); /* counts on */
    succeed(s, &hold, PAWL_END_NEXT_HINT, 2);
}

static void owner_takes_its_own_expired_lease_over(void **state)
{
    struct stage *s = *state;
    pawl_worklease_acquired got = acquire(s, &anna, 1, PAWL_GOT_ACQUIRED);
    s->kind->age(s->place, LEASE_MS);
    /* Without a duration the next one never expires; without an owner it is anybody's. */
    pawl_worklease_acquired taken = acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED);
    assert_true(taken.is_taken_over && taken.expires_at.us == 0);
    assert_true(memcmp(&taken.token, &got.token, sizeof(got.token)) != 0);
    s->kind->age(s->place, 1000 * LEASE_MS);
    (void)acquire(s, &anna, 1, PAWL_GOT_HELD);
    (void)acquire(s, &nobody, 1, PAWL_GOT_ALREADY_ACQUIRED);
}

static void renew_extends(void **state)
{
    struct stage *s = *state;
    pawl_worklease_acquired got = acquire(s, &anna, 1, PAWL_GOT_ACQUIRED);
    pawl_worklease_hold hold = holding(&anna, got);
    pawl_wall until;
    assert_int_equal(pawl_worklease_renew(s->store, &hold, LEASE_MS / 2, &until, NULL), PAWL_OK);
    assert_true(until.us == got.expires_at.us); /* never shortens */
    s->kind->age(s->place, LEASE_MS - 1);
    assert_int_equal(pawl_worklease_renew(s->store, &hold, LEASE_MS, &until, NULL), PAWL_OK);
    assert_true(until.us == got.expires_at.us + (LEASE_MS - 1) * 1000);
    s->kind->age(s->place, LEASE_MS - 1);
    (void)acquire(s, &bert, 1, PAWL_GOT_HELD);
    succeed(s, &hold, PAWL_END_NO_BACKLOG, 0);
    all_refused(s, &hold, PAWL_WL_NO_LEASE);
    /* One that never expires stays so. */
    hold = holding(&nobody, acquire(s, &nobody, 2, PAWL_GOT_ACQUIRED));
    assert_int_equal(pawl_worklease_renew(s->store, &hold, LEASE_MS, &until, NULL), PAWL_OK);
    assert_true(until.us == 0);
}

static void survives_a_restart(void **state)
{
    struct stage *s = *state;
    if (!s->kind->is_durable)
        return;
    pawl_worklease_acquired got = acquire(s, &anna, 5, PAWL_GOT_ACQUIRED);
    (void)acquire(s, &anna, 6, PAWL_GOT_ENQUEUED);
    pawl_store_close(s->store);
    s->kind->restart(s->place);
    s->store = s->kind->open(s->place);
    pawl_worklease_acquired again = acquire(s, &anna, 5, PAWL_GOT_ALREADY_ACQUIRED);
    assert_memory_equal(&again.token, &got.token, sizeof(got.token));
    pawl_worklease_hold hold = holding(&anna, got);
    succeed(s, &hold, PAWL_END_NEXT_HINT, 6);
    (void)acquire(s, &anna, 5, PAWL_GOT_ALREADY_PROCESSED);
}

/* ---------------------------------------------------------------- errors and bounds */

static void without_a_lease(void **state) /* WL-NO-LEASE */
{
    struct stage *s = *state;
    pawl_worklease_hold hold = {.domain = "A"};
    all_refused(s, &hold, PAWL_WL_NO_LEASE); /* nobody has heard of the domain */
    pawl_worklease_info info;
    assert_int_equal(pawl_worklease_get(s->store, "A", &info, NULL), PAWL_GONE);
    hold = holding(&nobody, acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED));
    succeed(s, &hold, PAWL_END_NO_BACKLOG, 0);
    all_refused(s, &hold, PAWL_WL_NO_LEASE);
    hold.token = (pawl_token){{0}}; /* what an ended lease leaves behind is no token */
    all_refused(s, &hold, PAWL_WL_NO_LEASE);
}

static void with_another_token(void **state) /* WL-FENCE */
{
    struct stage *s = *state;
    pawl_worklease_acquired got = acquire(s, &nobody, 1, PAWL_GOT_ACQUIRED);
    for (size_t i = 0; i < sizeof(got.token.bytes); i += 5) {
        pawl_worklease_hold hold = holding(&nobody, got);
        hold.token.bytes[i] ^= 0x80;
        all_refused(s, &hold, PAWL_WL_TOKEN);
    }
    assert_true(look(s).is_leased && look(s).retry_count == 0);
    pawl_worklease_hold late = holding(&nobody, got);
    succeed(s, &late, PAWL_END_NO_BACKLOG, 0);
    (void)acquire(s, &nobody, 2, PAWL_GOT_ACQUIRED);
    all_refused(s, &late, PAWL_WL_TOKEN);
}

static void full_backlog_refuses_new_offsets_only(void **state)
{
    struct stage *s = *state;
    struct who two = {.backlog_max = 2};
    pawl_err err;
    pawl_worklease_hold hold = holding(&two, acquire(s, &two, 2, PAWL_GOT_ACQUIRED));
    (void)acquire(s, &two, 3, PAWL_GOT_ENQUEUED);
    (void)acquire(s, &two, 4, PAWL_GOT_ENQUEUED);
    assert_int_equal(refused(s, &two, 5, &err), PAWL_WL_BACKLOG_FULL);
    assert_string_equal(err.text, "offset 5 finds the backlog full: 2 offsets are allowed to wait "
                                  "in domain A");
    (void)acquire(s, &two, 3, PAWL_GOT_ENQUEUED); /* it waits already */
    (void)acquire(s, &two, 2, PAWL_GOT_ALREADY_ACQUIRED);
    assert_true(look(s).backlog_count == 2);
    succeed(s, &hold, PAWL_END_NEXT_HINT, 3);
    (void)acquire(s, &two, 3, PAWL_GOT_ACQUIRED); /* makes room */
    (void)acquire(s, &two, 5, PAWL_GOT_ENQUEUED);
}

static void contiguous_offsets_are_one_interval(void **state) /* WL-MEMORY */
{
    struct stage *s = *state;
    enum {
        COUNT = 200
    };
    pawl_worklease_page page = {.domain = "A"};
    pawl_worklease_interval rows[COUNT];
    size_t count = 0;
    /* First each second one, then the gaps between them, from both sides. */
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t offset = i < COUNT / 2 ? 2 * i : 2 * (i - COUNT / 2) + 1;
        pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, offset, PAWL_GOT_ACQUIRED));
        succeed(s, &hold, PAWL_END_NO_BACKLOG, 0);
        assert_int_equal(pawl_worklease_terminal(s->store, &page, rows, COUNT, &count, NULL),
                         PAWL_OK);
        assert_int_equal(count, i < COUNT / 2 ? i + 1 : COUNT - 1 - i + (i == COUNT - 1));
    }
    assert_true(count == 1 && rows[0].first == 0 && rows[0].last == COUNT - 1);
    page.skip = 1;
    assert_int_equal(pawl_worklease_terminal(s->store, &page, rows, COUNT, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
}

/* ---------------------------------------------------------------- looking */

static void domains_are_listed_in_pages(void **state)
{
    struct stage *s = *state;
    static const char *const names[] = {"B", "a", "\xc3\xa4", "B/2", "10", "9"};
    static const char *const sorted[] = {"10", "9", "B", "B/2", "a", "\xc3\xa4"};
    enum {
        COUNT = 6
    };
    pawl_worklease_acquire args = asking(&anna, 1);
    pawl_worklease_acquired got;
    for (size_t i = 0; i < COUNT; i++) {
        args.domain = names[i];
        assert_int_equal(pawl_worklease_try_acquire(s->store, &args, &got, NULL), PAWL_OK);
    }
    pawl_worklease_info rows[4];
    char after[PAWL_WORKLEASE_DOMAIN_MAX + 1];
    size_t seen = 0;
    size_t count = 0;
    assert_int_equal(pawl_worklease_domains(s->store, NULL, rows, 4, &count, NULL), PAWL_OK);
    while (count > 0) {
        for (size_t i = 0; i < count; i++) {
            assert_string_equal(rows[i].domain, sorted[seen++]);
            assert_string_equal(rows[i].owner, "anna");
        }
        memcpy(after, rows[count - 1].domain, sizeof(after));
        assert_int_equal(pawl_worklease_domains(s->store, after, rows, 4, &count, NULL), PAWL_OK);
    }
    assert_int_equal(seen, COUNT);
}

static void backlog_is_listed_in_pages(void **state)
{
    struct stage *s = *state;
    pawl_worklease_page page = {.domain = "A"};
    int64_t rows[3];
    size_t count = 0;
    assert_int_equal(pawl_worklease_backlog(s->store, &page, rows, 3, &count, NULL), PAWL_GONE);
    pawl_worklease_interval none[1];
    assert_int_equal(pawl_worklease_terminal(s->store, &page, none, 1, &count, NULL), PAWL_GONE);
    pawl_worklease_hold hold = holding(&nobody, acquire(s, &nobody, 0, PAWL_GOT_ACQUIRED));
    for (int64_t i = 1; i <= 5; i++)
        (void)acquire(s, &nobody, -i, PAWL_GOT_ENQUEUED);
    succeed(s, &hold, PAWL_END_NEXT_HINT, -1);
    (void)acquire(s, &nobody, -1, PAWL_GOT_ACQUIRED);
    for (page.skip = 0; page.skip <= 5; page.skip++) {
        assert_int_equal(pawl_worklease_backlog(s->store, &page, rows, 3, &count, NULL), PAWL_OK);
        int64_t left = page.skip < 4 ? 4 - page.skip : 0;
        assert_int_equal(count, left < 3 ? left : 3);
        for (size_t i = 0; i < count; i++)
            assert_true(rows[i] == -2 - page.skip - (int64_t)i);
    }
    page.skip = INT64_MAX;
    assert_int_equal(pawl_worklease_backlog(s->store, &page, rows, 3, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
}

/* ---------------------------------------------------------------- arguments */

static void bad_arguments_are_named(void **state)
{
    struct stage *s = *state;
    char name[PAWL_WORKLEASE_DOMAIN_MAX + 2];
    memset(name, 'd', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    struct {
        pawl_worklease_acquire args;
        const char *field;
    } rows[] = {
        {{.domain = NULL}, "domain"},
        {{.domain = ""}, "domain"},
        {{.domain = name}, "domain"},
        {{.domain = "a\nb"}, "domain"},
        {{.domain = "a\xff"}, "domain"},
        {{.domain = "a\xc2\x85"}, "domain"},
        {{.domain = "A", .owner = ""}, "owner"},
        {{.domain = "A", .owner = "a b"}, "owner"},
        {{.domain = "A", .lease_ms = 99}, "lease_ms"},
        {{.domain = "A", .lease_ms = PAWL_DURATION_MAX_MS + 1}, "lease_ms"},
        {{.domain = "A", .lease_ms = PAWL_DEFAULT, .backlog_max = 0}, "backlog_max"},
    };
    pawl_worklease_acquired got;
    pawl_worklease_ended ended;
    pawl_wall until;
    pawl_err err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(pawl_worklease_try_acquire(s->store, &rows[i].args, &got, &err),
                         PAWL_INVALID);
        assert_ptr_equal(strstr(err.text, rows[i].field), err.text);
    }
    name[PAWL_WORKLEASE_DOMAIN_MAX] = '\0'; /* the longest one */
    pawl_worklease_acquire longest = asking(&anna, INT64_MIN);
    longest.domain = name;
    longest.backlog_max = INT64_MAX;
    assert_int_equal(pawl_worklease_try_acquire(s->store, &longest, &got, &err), PAWL_OK);
    pawl_worklease_hold hold = {.domain = name, .owner = "anna", .token = got.token};
    assert_int_equal(pawl_worklease_fail(s->store, &hold, -1, &ended, &err), PAWL_INVALID);
    assert_int_equal(pawl_worklease_fail(s->store, &hold, PAWL_RETRIES_MAX + 1, &ended, &err),
                     PAWL_INVALID);
    assert_int_equal(pawl_worklease_renew(s->store, &hold, 99, &until, &err), PAWL_INVALID);
    assert_int_equal(pawl_worklease_renew(s->store, &hold, PAWL_DEFAULT, &until, &err),
                     PAWL_INVALID);
    assert_int_equal(pawl_worklease_succeed(s->store, NULL, &ended, &err), PAWL_INVALID);
    assert_int_equal(pawl_worklease_succeed(s->store, &hold, NULL, &err), PAWL_INVALID);
    assert_int_equal(pawl_worklease_succeed(NULL, &hold, &ended, &err), PAWL_INVALID);
    assert_int_equal(pawl_worklease_renew(s->store, &hold, PAWL_DURATION_MAX_MS, &until, &err),
                     PAWL_OK);
    assert_int_equal(pawl_worklease_fail(s->store, &hold, PAWL_RETRIES_MAX, &ended, &err), PAWL_OK);
    assert_int_equal(pawl_worklease_succeed(s->store, &hold, &ended, &err), PAWL_OK);
}

const struct CMUnitTest worklease_cases[] = {
    cmocka_unit_test(scenario_1_happy_path),
    cmocka_unit_test(scenario_2_queue_then_hand_off),
    cmocka_unit_test(scenario_3_out_of_order),
    cmocka_unit_test(scenario_4_retry),
    cmocka_unit_test(scenario_5_final_give_up),
    cmocka_unit_test(scenario_6_idempotence),
    cmocka_unit_test(only_the_owner_is_told_the_token),
    cmocka_unit_test(expired_lease_is_taken_over),
    cmocka_unit_test(owner_takes_its_own_expired_lease_over),
    cmocka_unit_test(renew_extends),
    cmocka_unit_test(survives_a_restart),
    cmocka_unit_test(without_a_lease),
    cmocka_unit_test(with_another_token),
    cmocka_unit_test(full_backlog_refuses_new_offsets_only),
    cmocka_unit_test(contiguous_offsets_are_one_interval),
    cmocka_unit_test(domains_are_listed_in_pages),
    cmocka_unit_test(backlog_is_listed_in_pages),
    cmocka_unit_test(bad_arguments_are_named),
};
const size_t worklease_cases_count = sizeof(worklease_cases) / sizeof(worklease_cases[0]);
