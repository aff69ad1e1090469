/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_id_test.c - proves core/id.c: reading and printing ids, minting them in rising order, and
 * the shard that a job belongs to.
 * Owns:  test vectors of the shard hash, computed by another program.
 * Never: tests what a store does with an id.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "core/id.h"
#include "support/alloc_fail.h"
#include "support/chi_square.h"

#include <pthread.h>

/* ---- reading and printing */

static const char sample[] = "0190f5a0-1234-7abc-8def-0123456789ab";
static const pawl_id sample_id = {{0x01, 0x90, 0xf5, 0xa0, 0x12, 0x34, 0x7a, 0xbc, 0x8d, 0xef, 0x01,
                                   0x23, 0x45, 0x67, 0x89, 0xab}};

static void ids_are_read_in_either_case(void **state)
{
    (void)state;
    pawl_id id;
    assert_int_equal(pawl_id_parse(sample, &id, NULL), PAWL_OK);
    assert_memory_equal(&id, &sample_id, sizeof(id));
    assert_int_equal(pawl_id_parse("0190F5A0-1234-7aBc-8DEF-0123456789AB", &id, NULL), PAWL_OK);
    assert_memory_equal(&id, &sample_id, sizeof(id));
}

static void ids_are_printed_and_come_back(void **state)
{
    (void)state;
    char text[PAWL_ID_TEXT_MAX];
    assert_ptr_equal(pawl_id_format(&sample_id, text), text);
    assert_string_equal(text, sample);
    assert_string_equal(pawl_id_format(NULL, text), "00000000-0000-0000-0000-000000000000");
    assert_string_equal(pawl_id_format(&sample_id, NULL), "?");

    struct pawli_seeded seeded = {3};
    pawl_random random = pawli_seeded_as_random(&seeded);
    for (int i = 0; i < 1000; i++) {
        pawl_id id, again;
        pawli_random_fill(&random, id.bytes, sizeof(id.bytes));
        assert_int_equal(pawl_id_parse(pawl_id_format(&id, text), &again, NULL), PAWL_OK);
        assert_memory_equal(&again, &id, sizeof(id));
    }
}

static void assert_refused(const char *text, const char *named)
{
    pawl_id id = sample_id;
    pawl_err err;
    assert_int_equal(pawl_id_parse(text, &id, &err), PAWL_INVALID);
    assert_int_equal(pawl_id_parse(text, &id, NULL), PAWL_INVALID);
    assert_memory_equal(&id, &sample_id, sizeof(id));
    if (strstr(err.text, named) == NULL)
        fail_msg("\"%s\" must say \"%s\"", err.text, named);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    assert_refused(NULL, "id is missing");
    assert_refused("", "fewer");
    assert_refused("0190f5a0-1234-7abc-8def-0123456789a", "fewer");
    assert_refused("0190f5a0-1234-7abc-8def-0123456789abc", "more");
    assert_refused("0190f5a012347abc8def0123456789ab", "fewer");
    assert_refused("{190f5a0-1234-7abc-8def-0123456789a}", "character 1");
    pawl_err err;
    assert_int_equal(pawl_id_parse(sample, NULL, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "ret_id"));

    /* Every other byte at every place, but for the digits where digits stand. */
    char text[PAWL_ID_TEXT_MAX];
    memcpy(text, sample, sizeof(text));
    for (size_t i = 0; i < PAWL_ID_TEXT_MAX - 1; i++) {
        bool is_dash = sample[i] == '-';
        for (int byte = 1; byte < 256; byte++) {
            pawl_id id;
            text[i] = (char)byte;
            bool is_right = is_dash ? byte == '-' : strchr("0123456789abcdefABCDEF", byte) != NULL;
            assert_int_equal(pawl_id_parse(text, &id, NULL), is_right ? PAWL_OK : PAWL_INVALID);
        }
        text[i] = sample[i];
    }
}

static void ids_compare_by_bytes(void **state)
{
    (void)state;
    pawl_id low = {{0}};
    pawl_id high = {{0}};
    assert_true(pawl_id_is_nil(NULL));
    assert_true(pawl_id_is_nil(&low));
    assert_int_equal(pawl_id_compare(&low, &high), 0);
    high.bytes[15] = 1;
    assert_false(pawl_id_is_nil(&high));
    assert_true(pawl_id_compare(&low, &high) < 0);
    low.bytes[15] = 0x7f;
    high.bytes[15] = 0x80;
    assert_true(pawl_id_compare(&low, &high) < 0); /* bytes have no sign */
    low.bytes[0] = 1;
    assert_true(pawl_id_compare(&low, &high) > 0);
    assert_true(pawl_id_compare(NULL, &high) < 0);
    assert_true(pawl_id_compare(&high, NULL) > 0);
}

/* ---- shards */

/* These numbers are data: jobs that exist lie in the shards that they name. */
static void the_hash_is_the_documented_one(void **state)
{
    (void)state;
    char longest_queue[PAWL_NAME_MAX + 1] = "";
    char longest_key[PAWL_DEDUPE_KEY_MAX + 1] = "";
    memset(longest_queue, 'q', PAWL_NAME_MAX);
    memset(longest_key, 'k', PAWL_DEDUPE_KEY_MAX);
    const struct {
        struct pawli_shard_key key;
        uint32_t hash;
    } keys[] = {
        {{"default", "order-17"}, 0x4e3cdd7a},
        {{"mail", ""}, 0x226e25da},
        {{"a", "bc"}, 0xb83a922f},
        {{"ab", "c"}, 0xc7cc606c},
        {{"q", "\xc3\xa4"}, 0x771b18bb},
        {{longest_queue, longest_key}, 0xe31862cc},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_equal(pawli_shard_hash(&keys[i].key, NULL), keys[i].hash);
        assert_int_equal(pawli_shard_hash(&keys[i].key, &sample_id), keys[i].hash);
    }
    pawl_id ones;
    memset(&ones, 0xff, sizeof(ones));
    assert_int_equal(pawli_shard_hash(&(struct pawli_shard_key){"default", NULL}, &(pawl_id){{0}}),
                     0xfdd81de4);
    assert_int_equal(pawli_shard_hash(&(struct pawli_shard_key){"default", NULL}, &sample_id),
                     0xd3727703);
    assert_int_equal(pawli_shard_hash(&(struct pawli_shard_key){"mail", NULL}, &sample_id),
                     0x657d930d);
    assert_int_equal(pawli_shard_hash(&(struct pawli_shard_key){"mail", NULL}, &ones), 0x72b8352e);
}

/* The ordering key decides where there is one, so that all jobs of a key are in one shard. */
static void the_ordering_key_decides_the_shard(void **state)
{
    (void)state;
    const struct {
        const char *ordering_key;
        const char *dedupe_key;
        bool is_by_ordering;
    } cases[] = {{"a", "b", true},
                 {"a", NULL, true},
                 {"", "b", false},
                 {NULL, "b", false},
                 {NULL, NULL, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pawl_enqueue_row row = {.queue = "default",
                                .ordering_key = cases[i].ordering_key,
                                .dedupe_key = cases[i].dedupe_key};
        struct pawli_shard_key key = pawli_shard_key_of(&row);
        assert_string_equal(key.queue, "default");
        assert_ptr_equal(key.key,
                         cases[i].is_by_ordering ? cases[i].ordering_key : cases[i].dedupe_key);
    }
}

static void the_shard_bits_do_not_change_the_shard(void **state)
{
    (void)state;
    const struct pawli_shard_key key = {"default", NULL};
    pawl_id id = sample_id;
    int64_t shard = pawli_shard_of(&key, &id, PAWL_SHARDS_MAX);
    assert_int_equal(shard, 0xd3727703 % PAWL_SHARDS_MAX);
    for (unsigned bits = 0; bits < PAWL_SHARDS_MAX; bits++) {
        id.bytes[6] = (uint8_t)(0x70 | bits >> 8);
        id.bytes[7] = (uint8_t)(bits & 0xff);
        assert_int_equal(pawli_shard_of(&key, &id, PAWL_SHARDS_MAX), shard);
        assert_int_equal(pawli_id_shard(&id, PAWL_SHARDS_MAX), bits);
        assert_int_equal(pawli_id_shard(&id, 7), bits % 7);
        assert_int_equal(pawli_id_shard(&id, 1), 0);
    }
    assert_int_equal(pawli_shard_of(&key, &id, 1), 0);
    assert_int_equal(pawli_shard_of(&key, &id, 10), 0xd3727703 % 10);
}

static void jobs_spread_evenly(void **state)
{
    (void)state;
    uint64_t by_key[16] = {0};
    for (int i = 0; i < 16000; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "order-%d", i); /* always fits */
        const struct pawli_shard_key key = {"default", text};
        by_key[pawli_shard_of(&key, NULL, 16)]++;
    }
    assert_true(chi_square_is_even(by_key, 16));
}

/* ---- minting */

#define START_MS INT64_C(1750000000000)

struct mint {
    struct pawli_manual_clock manual;
    struct pawli_seeded seeded;
    pawl_clock clock;
    pawl_random random;
    struct pawli_minter *minter;
};

static struct mint *mint_new(int64_t shards)
{
    struct mint *mint = calloc(1, sizeof(*mint));
    assert_non_null(mint);
    mint->manual.wall.us = START_MS * 1000;
    mint->seeded.state = 5;
    mint->clock = pawli_manual_clock_as_clock(&mint->manual);
    mint->random = pawli_seeded_as_random(&mint->seeded);
    mint->minter = pawli_minter_new(&mint->clock, &mint->random, shards);
    assert_non_null(mint->minter);
    return mint;
}

static void mint_free(struct mint *mint)
{
    pawli_minter_free(mint->minter);
    free(mint);
}

static uint64_t read_bytes(const uint8_t *bytes, size_t bytes_len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes_len; i++)
        value = value << 8 | bytes[i];
    return value;
}

static int64_t ms_of(const pawl_id *id)
{
    return (int64_t)read_bytes(id->bytes, 6);
}

static uint64_t counter_of(const pawl_id *id)
{
    return read_bytes(id->bytes + 8, 8) >> 46 & 0xffff;
}

static const struct pawli_shard_key by_id = {"default", NULL};
static const struct pawli_shard_key by_dedupe_key = {"default", "order-17"};

static void minted_ids_have_the_documented_layout(void **state)
{
    (void)state;
    static const int64_t shards[] = {1, 2, 7, 64, 4095, 4096};
    for (size_t i = 0; i < sizeof(shards) / sizeof(shards[0]); i++) {
        struct mint *mint = mint_new(shards[i]);
        for (uint64_t n = 0; n < 500; n++) {
            const struct pawli_shard_key *key = n % 2 == 0 ? &by_id : &by_dedupe_key;
            pawl_id id = pawli_minter_next(mint->minter, key);
            assert_true(ms_of(&id) == START_MS);
            assert_int_equal(id.bytes[6] >> 4, 7); /* version */
            assert_int_equal(id.bytes[8] >> 6, 2); /* variant */
            assert_true(counter_of(&id) == n);
            int64_t bits = (int64_t)(read_bytes(id.bytes + 6, 2) & 0xfff);
            assert_true(bits == pawli_shard_of(key, &id, shards[i]));
            assert_true(bits == pawli_id_shard(&id, shards[i]));
        }
        mint_free(mint);
    }
}

static void all_46_random_bits_move(void **state)
{
    (void)state;
    struct mint *mint = mint_new(1);
    uint64_t ever_one = 0;
    uint64_t ever_zero = 0;
    for (int i = 0; i < 128; i++) {
        pawl_id id = pawli_minter_next(mint->minter, &by_id);
        ever_one |= read_bytes(id.bytes + 8, 8);
        ever_zero |= ~read_bytes(id.bytes + 8, 8);
    }
    uint64_t mask = (UINT64_C(1) << 46) - 1;
    assert_true((ever_one & mask) == mask && (ever_zero & mask) == mask);
    mint_free(mint);
}

#define SHARDS 16

/* Mint one id and see that it lies above the last one of its shard. */
static pawl_id mint_above(struct mint *mint, pawl_id last[SHARDS])
{
    pawl_id id = pawli_minter_next(mint->minter, &by_id);
    int64_t shard = pawli_id_shard(&id, SHARDS);
    assert_true(pawl_id_compare(&last[shard], &id) < 0);
    last[shard] = id;
    return id;
}

/* 200,000 ids of one standing millisecond are more than its counter holds. */
static void ids_rise_while_the_clock_stands(void **state)
{
    (void)state;
    struct mint *mint = mint_new(SHARDS);
    pawl_id last[SHARDS] = {{{0}}};
    pawl_id id = {{0}};
    for (int i = 0; i < 200000; i++)
        id = mint_above(mint, last);
    assert_true(ms_of(&id) == START_MS + 3); /* three milliseconds were borrowed */

    pawli_manual_clock_turn_ms(&mint->manual, 2); /* still behind what was borrowed */
    id = mint_above(mint, last);
    assert_true(ms_of(&id) == START_MS + 3);
    pawli_manual_clock_turn_ms(&mint->manual, 2);
    id = mint_above(mint, last);
    assert_true(ms_of(&id) == START_MS + 4); /* and the clock has caught up */
    assert_true(counter_of(&id) == 0);
    mint_free(mint);
}

static void ids_rise_while_the_clock_goes_back(void **state)
{
    (void)state;
    struct mint *mint = mint_new(SHARDS);
    pawl_id last[SHARDS] = {{{0}}};
    (void)mint_above(mint, last);
    for (int i = 0; i < 20000; i++) {
        int64_t step_ms = (int64_t)pawli_random_below(&mint->random, 11) - 6;
        mint->manual.wall = pawli_wall_add_ms(mint->manual.wall, step_ms);
        (void)mint_above(mint, last);
    }
    mint->manual.wall.us = -5000000; /* before 1970 */
    pawl_id id = mint_above(mint, last);
    assert_true(ms_of(&id) >= START_MS);
    mint_free(mint);
}

static void clocks_outside_48_bits_are_taken_as_the_nearest(void **state)
{
    (void)state;
    struct mint *mint = mint_new(1);
    mint->manual.wall.us = INT64_MIN;
    pawl_id low = pawli_minter_next(mint->minter, &by_id);
    assert_true(ms_of(&low) == 0);
    mint->manual.wall.us = INT64_MAX;
    pawl_id high = pawli_minter_next(mint->minter, &by_id);
    assert_true(ms_of(&high) == (INT64_C(1) << 48) - 1);
    assert_int_equal(high.bytes[6] >> 4, 7);
    assert_true(pawl_id_compare(&low, &high) < 0);
    mint_free(mint);
}

/* ---- several threads, one minter */

#define THREADS        4
#define IDS_PER_THREAD 20000

struct minting_thread {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct pawli_minter *minter;
    pawl_id ids[IDS_PER_THREAD];
};

static pawl_wall standing_wall(void *user)
{
    (void)user; /* the same instant for everybody: the hardest case for the counter */
    return (pawl_wall){START_MS * 1000};
}

/* Safe to share, since it gives the same to all: nothing but the counter keeps the ids apart. */
static uint64_t constant_next(void *user)
{
    (void)user;
    return 0;
}

static void *mint_many(void *user)
{
    struct minting_thread *self = user;
    (void)pthread_barrier_wait(self->barrier); /* only to start together */
    for (size_t i = 0; i < IDS_PER_THREAD; i++)
        self->ids[i] = pawli_minter_next(self->minter, &by_id);
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    return pawl_id_compare(a, b);
}

static void ids_of_several_threads_rise_and_differ(void **state)
{
    (void)state;
    const pawl_clock clock = {.mono = NULL, .wall = standing_wall, .user = NULL};
    const pawl_random random = {.next = constant_next, .user = NULL};
    struct pawli_minter *minter = pawli_minter_new(&clock, &random, SHARDS);
    struct minting_thread *threads = calloc(THREADS, sizeof(*threads));
    pawl_id *all = calloc((size_t)THREADS * IDS_PER_THREAD, sizeof(*all));
    assert_true(minter != NULL && threads != NULL && all != NULL);
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (size_t t = 0; t < THREADS; t++) {
        threads[t].barrier = &barrier;
        threads[t].minter = minter;
        assert_int_equal(pthread_create(&threads[t].thread, NULL, mint_many, &threads[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(threads[t].thread, NULL), 0);

    for (size_t t = 0; t < THREADS; t++) {
        pawl_id last[SHARDS] = {{{0}}};
        for (size_t i = 0; i < IDS_PER_THREAD; i++) {
            int64_t shard = pawli_id_shard(&threads[t].ids[i], SHARDS);
            assert_true(pawl_id_compare(&last[shard], &threads[t].ids[i]) < 0);
            last[shard] = threads[t].ids[i];
        }
        memcpy(all + t * IDS_PER_THREAD, threads[t].ids, sizeof(threads[t].ids));
    }
    qsort(all, (size_t)THREADS * IDS_PER_THREAD, sizeof(*all), compare_ids);
    for (size_t i = 1; i < (size_t)THREADS * IDS_PER_THREAD; i++)
        assert_true(pawl_id_compare(&all[i - 1], &all[i]) < 0);

    (void)pthread_barrier_destroy(&barrier); /* nobody waits at it any more */
    free(all);
    free(threads);
    pawli_minter_free(minter);
}

static void no_memory_gives_no_minter(void **state)
{
    (void)state;
    alloc_fail_nth(1);
    struct pawli_minter *minter = pawli_minter_new(pawl_clock_system(), pawl_random_system(),
                                                   PAWL_SHARDS_MAX);
    assert_true(alloc_fail_end());
    assert_null(minter);
    pawli_minter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_read_in_either_case),
        cmocka_unit_test(ids_are_printed_and_come_back),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(ids_compare_by_bytes),
        cmocka_unit_test(the_hash_is_the_documented_one),
        cmocka_unit_test(the_ordering_key_decides_the_shard),
        cmocka_unit_test(the_shard_bits_do_not_change_the_shard),
        cmocka_unit_test(jobs_spread_evenly),
        cmocka_unit_test(minted_ids_have_the_documented_layout),
        cmocka_unit_test(all_46_random_bits_move),
        cmocka_unit_test(ids_rise_while_the_clock_stands),
        cmocka_unit_test(ids_rise_while_the_clock_goes_back),
        cmocka_unit_test(clocks_outside_48_bits_are_taken_as_the_nearest),
        cmocka_unit_test(ids_of_several_threads_rise_and_differ),
        cmocka_unit_test(no_memory_gives_no_minter),
    };
    return cmocka_run_group_tests_name("core_id", tests, NULL, NULL);
}
