/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * id.c - job ids: reading, printing, minting, and the shard that a job belongs to.
 * Owns:  the layout of the ids that Pawl makes; the hash that spreads jobs over shards.
 * Never: reads a clock or draws a random bit but through the seams that the minter was handed;
 *        takes a lock (the minter's one word is changed by compare and swap).
 *
 * The layout, from the first bit: 48 bits of milliseconds since 1970, 4 of version (7), 12 of shard
 * (rand_a), 2 of variant (binary 10), then rand_b: a counter of 16 bits and 46 random bits. Within
 * a shard, ids therefore compare as (milliseconds, counter).
 */
#include "core/id.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ID_LENGTH    (PAWL_ID_TEXT_MAX - 1)
#define COUNTER_BITS 16
#define RANDOM_BITS  46
#define MS_MAX       ((INT64_C(1) << 48) - 1)

/* ---- reading and printing */

static const pawl_id nil_id;

bool pawl_id_is_nil(const pawl_id *id)
{
    return id == NULL || memcmp(id->bytes, nil_id.bytes, sizeof(nil_id.bytes)) == 0;
}

int pawl_id_compare(const pawl_id *a, const pawl_id *b)
{
    /* Both must be given; one that is not must not crash a user's program. */
    const pawl_id *left = a != NULL ? a : &nil_id;
    const pawl_id *right = b != NULL ? b : &nil_id;
    return memcmp(left->bytes, right->bytes, sizeof(left->bytes));
}

static bool is_dash_at(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

/* The value of a hexadecimal digit, or -1. */
static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

pawl_code pawl_id_parse(const char *text, pawl_id *ret_id, pawl_err *err)
{
    if (text == NULL)
        return pawli_fail(err, PAWL_INVALID, "id is missing (NULL)");
    if (ret_id == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_id is missing (NULL)");
    if (pawli_text_length(text, ID_LENGTH) != ID_LENGTH)
        return pawli_fail(err, PAWL_INVALID, "id has %s than the 36 characters of a UUID",
                          pawli_text_length(text, ID_LENGTH) > ID_LENGTH ? "more" : "fewer");

    pawl_id id = {{0}};
    size_t digits = 0;
    for (size_t i = 0; i < ID_LENGTH; i++) {
        int value = digit_value(text[i]);
        if (is_dash_at(i) ? text[i] != '-' : value < 0)
            return pawli_fail(err, PAWL_INVALID, "id must have %s as its character %zu",
                              is_dash_at(i) ? "a dash" : "a hexadecimal digit", i + 1);
        if (is_dash_at(i))
            continue;
        id.bytes[digits / 2] = (uint8_t)(id.bytes[digits / 2] << 4 | value);
        digits++;
    }
    assert(digits == 2 * sizeof(id.bytes));
    *ret_id = id;
    return PAWL_OK;
}

const char *pawl_id_format(const pawl_id *id, char text[PAWL_ID_TEXT_MAX])
{
    static const char hex[] = "0123456789abcdef";
    if (text == NULL)
        return "?";
    if (id == NULL)
        id = &nil_id;
    size_t digits = 0;
    for (size_t i = 0; i < ID_LENGTH; i++) {
        if (is_dash_at(i)) {
            text[i] = '-';
            continue;
        }
        uint8_t byte = id->bytes[digits / 2];
        text[i] = hex[digits % 2 == 0 ? byte >> 4 : byte & 0x0f];
        digits++;
    }
    text[ID_LENGTH] = '\0';
    return text;
}

/* ---- shards */

/*
 * The hash of all shards: FNV-1a over 32 bits, then two rounds of multiply and shift so that the
 * low bits, which the modulus looks at, depend on all of them. It is part of the data: changing it
 * would put jobs that exist into other shards. No product reaches 2^63, so that SQL can compute it
 * in plain bigint arithmetic, where an overflow is an error.
 */
#define HASH_START      UINT64_C(2166136261)
#define HASH_FACTOR     UINT64_C(16777619)
#define HASH_MIX_FACTOR UINT64_C(73244475)
#define HASH_MASK       UINT64_C(0xffffffff)

static uint64_t hash_add(uint64_t hash, const void *bytes, size_t bytes_len)
{
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < bytes_len; i++)
        hash = ((hash ^ byte[i]) * HASH_FACTOR) & HASH_MASK;
    return hash;
}

static uint64_t hash_finish(uint64_t hash)
{
    for (int i = 0; i < 2; i++)
        hash = ((hash ^ hash >> 16) * HASH_MIX_FACTOR) & HASH_MASK;
    return hash ^ hash >> 16;
}

struct pawli_shard_key pawli_shard_key_of(const pawl_enqueue_row *row)
{
    assert(row != NULL);
    bool is_ordered = row->ordering_key != NULL && row->ordering_key[0] != '\0';
    return (struct pawli_shard_key){
        .queue = row->queue,
        .key = is_ordered ? row->ordering_key : row->dedupe_key,
    };
}

uint32_t pawli_shard_hash(const struct pawli_shard_key *key, const pawl_id *id)
{
    assert(key != NULL && key->queue != NULL);
    assert(id != NULL || key->key != NULL);

    /* The NUL behind the queue goes in too: it keeps "ab" + "c" apart from "a" + "bc". */
    uint64_t hash = hash_add(HASH_START, key->queue, strlen(key->queue) + 1);
    if (key->key != NULL)
        return (uint32_t)hash_finish(hash_add(hash, key->key, strlen(key->key)));
    pawl_id bare = *id;
    bare.bytes[6] &= 0xf0;
    bare.bytes[7] = 0;
    return (uint32_t)hash_finish(hash_add(hash, bare.bytes, sizeof(bare.bytes)));
}

int64_t pawli_id_shard(const pawl_id *id, int64_t shards)
{
    assert(id != NULL);
    assert(shards >= 1 && shards <= PAWL_SHARDS_MAX);
    return ((id->bytes[6] & 0x0f) << 8 | id->bytes[7]) % shards;
}

int64_t pawli_shard_of(const struct pawli_shard_key *key, const pawl_id *id, int64_t shards)
{
    assert(shards >= 1 && shards <= PAWL_SHARDS_MAX);
    return pawli_shard_hash(key, id) % shards;
}

/* ---- minting */

struct pawli_minter {
    const pawl_clock *clock;
    const pawl_random *random;
    int64_t shards;
    /*
     * The (milliseconds, counter) given out last. One word for all shards: the shard of most jobs
     * is a hash over their finished id, so it is not known when the counter is drawn.
     */
    _Atomic uint64_t last;
};

struct pawli_minter *pawli_minter_new(const pawl_clock *clock, const pawl_random *random,
                                      int64_t shards)
{
    assert(clock != NULL);
    assert(random != NULL);
    assert(shards >= 1 && shards <= PAWL_SHARDS_MAX);

    struct pawli_minter *minter = malloc(sizeof(*minter));
    if (minter == NULL)
        return NULL;
    minter->clock = clock;
    minter->random = random;
    minter->shards = shards;
    atomic_init(&minter->last, 0);
    return minter;
}

void pawli_minter_free(struct pawli_minter *minter)
{
    free(minter);
}

/*
 * The next (milliseconds, counter): the clock's where it has moved on, else one more than the last.
 * A counter that runs over borrows the next millisecond, and the clock catches up.
 */
static uint64_t next_position(struct pawli_minter *minter)
{
    int64_t ms = minter->clock->wall(minter->clock->user).us / 1000;
    ms = ms < 0 ? 0 : ms;
    ms = ms > MS_MAX ? MS_MAX : ms;
    uint64_t by_clock = (uint64_t)ms << COUNTER_BITS;
    uint64_t last = atomic_load_explicit(&minter->last, memory_order_relaxed);
    uint64_t next;
    do {
        assert(last < UINT64_MAX);
        next = by_clock > last ? by_clock : last + 1;
    } while (!atomic_compare_exchange_weak_explicit(&minter->last, &last, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    return next;
}

/* Write the lowest `bytes_len` bytes of `value`, highest first. */
static void write_bytes(uint8_t *bytes, size_t bytes_len, uint64_t value)
{
    for (size_t i = bytes_len; i-- > 0; value >>= 8)
        bytes[i] = (uint8_t)(value & 0xff);
}

pawl_id pawli_minter_next(struct pawli_minter *minter, const struct pawli_shard_key *key)
{
    assert(minter != NULL);
    assert(key != NULL);

    uint64_t position = next_position(minter);
    uint64_t counter = position & ((UINT64_C(1) << COUNTER_BITS) - 1);
    uint64_t drawn = pawli_random_below(minter->random, UINT64_C(1) << RANDOM_BITS);
    pawl_id id;
    write_bytes(id.bytes, 6, position >> COUNTER_BITS);
    write_bytes(id.bytes + 6, 2, UINT64_C(7) << 12);
    write_bytes(id.bytes + 8, 8, UINT64_C(2) << 62 | counter << RANDOM_BITS | drawn);
    int64_t shard = pawli_shard_of(key, &id, minter->shards);
    write_bytes(id.bytes + 6, 2, UINT64_C(7) << 12 | (uint64_t)shard);

    assert(pawli_id_shard(&id, minter->shards) == shard);
    assert(pawli_shard_of(key, &id, minter->shards) == shard);
    return id;
}
