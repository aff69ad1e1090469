/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * random.c - the system's random source, a source that a seed determines, and draws from either.
 * Owns:  every question to the system for random bits; the shape of the draws.
 * Never: gives out bits that are not random where random ones were promised: a system without any
 *        ends the process, since a token that can be guessed would let anybody end a lease.
 */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- the system's source */

/* The most that the kernel gives whole, whatever interrupts it. */
#define SYSTEM_BYTES_MAX 256

/* The kernel keeps the state: nothing to share, nothing to copy at fork. */
static void ask_system(uint8_t *bytes, size_t bytes_len)
{
    for (size_t done = 0; done < bytes_len;) {
        size_t wanted = bytes_len - done;
        if (wanted > SYSTEM_BYTES_MAX)
            wanted = SYSTEM_BYTES_MAX;
        ssize_t got;
        do
            got = getrandom(bytes + done, wanted, 0);
        while (got < 0 && errno == EINTR);
        if (got != (ssize_t)wanted)
            abort();
        done += wanted;
    }
}

static uint64_t system_next(void *user)
{
    (void)user; /* there is one system */
    uint8_t bytes[sizeof(uint64_t)];
    ask_system(bytes, sizeof(bytes));
    uint64_t drawn;
    memcpy(&drawn, bytes, sizeof(drawn));
    return drawn;
}

static const pawl_random system_random = {.next = system_next, .user = NULL};

const pawl_random *pawl_random_system(void)
{
    return &system_random;
}

/* ---- draws */

/*
 * Numbers above the last whole multiple of the bound are drawn again, so that each remainder is
 * equally likely. Fewer than half of them are, so a good source gets here never; a source that is
 * stuck must not hang its caller.
 */
#define REDRAWS_MAX 128

uint64_t pawli_random_below(const pawl_random *random, uint64_t bound)
{
    assert(random != NULL);

    if (bound <= 1)
        return 0;
    uint64_t surplus = (UINT64_MAX % bound + 1) % bound; /* 2^64 modulo bound */
    uint64_t drawn = random->next(random->user);
    for (int i = 0; drawn > UINT64_MAX - surplus && i < REDRAWS_MAX; i++)
        drawn = random->next(random->user);
    return drawn % bound;
}

void pawli_random_fill(const pawl_random *random, uint8_t *bytes, size_t bytes_len)
{
    assert(random != NULL);
    assert(bytes != NULL || bytes_len == 0);

    if (random->next == system_next) { /* one call instead of one for every eight bytes */
        ask_system(bytes, bytes_len);
        return;
    }
    uint64_t drawn = 0;
    for (size_t i = 0; i < bytes_len; i++) {
        if (i % sizeof(drawn) == 0)
            drawn = random->next(random->user);
        bytes[i] = (uint8_t)(drawn & 0xff); /* lowest byte first, whatever the machine's order */
        drawn >>= 8;
    }
}

void pawli_stock_take(struct pawli_stock *stock, uint8_t *bytes, size_t bytes_len)
{
    assert(bytes_len <= sizeof(stock->bytes));

    if (stock->random->next != system_next) {
        pawli_random_fill(stock->random, bytes, bytes_len);
        return;
    }
    if (stock->left < bytes_len) {
        size_t drawn = stock->wanted < sizeof(stock->bytes) ? stock->wanted : sizeof(stock->bytes);
        stock->left = drawn > bytes_len ? drawn : bytes_len;
        ask_system(stock->bytes, stock->left);
    }
    stock->left -= bytes_len;
    stock->wanted -= bytes_len < stock->wanted ? bytes_len : stock->wanted;
    memcpy(bytes, stock->bytes + stock->left, bytes_len);
}

/* ---- the seeded source: splitmix64 */

static uint64_t seeded_next(void *user)
{
    struct pawli_seeded *seeded = user;
    seeded->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = seeded->state;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

pawl_random pawli_seeded_as_random(struct pawli_seeded *seeded)
{
    assert(seeded != NULL);
    return (pawl_random){.next = seeded_next, .user = seeded};
}
