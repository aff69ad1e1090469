/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_random_test.c - proves base/random.c: even draws, the same numbers from the same seed, and
 * no numbers at all where the system has no random bits.
 * Owns:  a system call for random bits that fails on request, in place of libc's.
 * Never: tests how good the kernel's random bits are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "support/chi_square.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a system that fails */

static enum {
    SYSTEM_WORKS,
    SYSTEM_INTERRUPTS, /* the next call fails with EINTR, those after it work */
    SYSTEM_SHORT,
    SYSTEM_NONE
} system_mode;
static size_t system_calls;

/* The label makes it the getrandom() that the library is linked with. */
ssize_t system_answer(void *buffer, size_t length, unsigned flags) __asm__("getrandom");

ssize_t system_answer(void *buffer, size_t length, unsigned flags)
{
    system_calls++;
    switch (system_mode) {
    case SYSTEM_WORKS:
        break;
    case SYSTEM_INTERRUPTS:
        system_mode = SYSTEM_WORKS;
        errno = EINTR;
        return -1;
    case SYSTEM_SHORT:
        memset(buffer, 0, length);
        return (ssize_t)length - 1;
    case SYSTEM_NONE:
        errno = ENOSYS;
        return -1;
    }
    return syscall(SYS_getrandom, buffer, length, flags);
}

static bool draw_aborts(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* a core file would only be litter */
        const pawl_random *random = pawl_random_system();
        (void)random->next(random->user); /* not to be reached alive */
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* RES-8: a token is random or there is none. */
static void no_random_bits_means_no_process(void **state)
{
    (void)state;
    assert_false(draw_aborts());
    system_mode = SYSTEM_NONE;
    assert_true(draw_aborts());
    system_mode = SYSTEM_SHORT;
    assert_true(draw_aborts());
    system_mode = SYSTEM_INTERRUPTS;
    assert_false(draw_aborts());
    system_mode = SYSTEM_WORKS;
}

static void the_system_s_bits_all_move(void **state)
{
    (void)state;
    const pawl_random *random = pawl_random_system();
    uint64_t ever_one = 0;
    uint64_t ever_zero = 0;
    for (int i = 0; i < 128; i++) {
        uint64_t drawn = random->next(random->user);
        ever_one |= drawn;
        ever_zero |= ~drawn;
    }
    assert_true(ever_one == UINT64_MAX && ever_zero == UINT64_MAX);
}

/* ---- the seeded source */

static void the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    static const uint64_t of_zero[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                       UINT64_C(0x06c45d188009454f)};
    static const uint64_t of_1234567[] = {UINT64_C(6457827717110365317),
                                          UINT64_C(3203168211198807973),
                                          UINT64_C(9817491932198370423)};
    struct pawli_seeded seeded = {0};
    pawl_random random = pawli_seeded_as_random(&seeded);
    for (size_t i = 0; i < 3; i++)
        assert_true(random.next(random.user) == of_zero[i]);
    seeded.state = 1234567;
    for (size_t i = 0; i < 3; i++)
        assert_true(random.next(random.user) == of_1234567[i]);
}

/* ---- draws */

/* Gives its numbers in turn, and says how many were taken. */
struct script {
    const uint64_t *numbers;
    size_t numbers_count;
    size_t taken;
};

static uint64_t script_next(void *user)
{
    struct script *script = user;
    size_t i = script->taken++;
    return script->numbers[i < script->numbers_count ? i : script->numbers_count - 1];
}

static uint64_t draw_below(struct script *script, uint64_t bound)
{
    script->taken = 0;
    return pawli_random_below(&(pawl_random){.next = script_next, .user = script}, bound);
}

static void draws_are_below_their_bound(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {1};
    pawl_random random = pawli_seeded_as_random(&seeded);
    static const uint64_t bounds[] = {
        1,          2, 3, 10, 1000, UINT64_C(1) << 46, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1,
        UINT64_MAX,
    };
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        for (int draw = 0; draw < 1000; draw++)
            assert_true(pawli_random_below(&random, bounds[i]) < bounds[i]);
    assert_true(pawli_random_below(&random, 0) == 0);
}

/* What lies above the last whole multiple of the bound is drawn again, and nothing else is. */
static void surplus_numbers_are_drawn_again(void **state)
{
    (void)state;
    static const uint64_t top_then_five[] = {UINT64_MAX, 5};
    struct script script = {top_then_five, 2, 0};
    assert_true(draw_below(&script, 3) == 2); /* 2^64 - 1 is a multiple of 3: one number too many */
    assert_int_equal(script.taken, 2);
    assert_true(draw_below(&script, 16) == 15); /* 16 divides 2^64: none is too many */
    assert_int_equal(script.taken, 1);

    static const uint64_t last_good[] = {UINT64_MAX - 1};
    struct script good = {last_good, 1, 0};
    assert_true(draw_below(&good, 3) == 2);
    assert_int_equal(good.taken, 1);

    static const uint64_t half[] = {UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, 9};
    struct script big = {half, 3, 0};
    assert_true(draw_below(&big, (UINT64_C(1) << 63) + 1) == UINT64_C(1) << 63);
    big.numbers++;
    big.numbers_count--;
    assert_true(draw_below(&big, (UINT64_C(1) << 63) + 1) == 9);
}

static void a_stuck_source_hangs_nobody(void **state)
{
    (void)state;
    static const uint64_t top[] = {UINT64_MAX};
    struct script script = {top, 1, 0};
    assert_true(draw_below(&script, 3) < 3);
    assert_true(script.taken > 64); /* it tried: with a good source this never happens */
}

static void draws_are_even(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {2};
    pawl_random random = pawli_seeded_as_random(&seeded);
    uint64_t counts[7] = {0};
    for (int i = 0; i < 70000; i++)
        counts[pawli_random_below(&random, 7)]++;
    assert_true(chi_square_is_even(counts, 7));
}

static void filling_writes_all_and_no_more(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {UINT64_C(0x0807060504030201), UINT64_C(0x100f0e0d0c0b0a09)};
    for (size_t length = 0; length <= 16; length++) {
        struct script script = {numbers, 2, 0};
        uint8_t bytes[17];
        memset(bytes, 0xff, sizeof(bytes));
        pawli_random_fill(&(pawl_random){script_next, &script}, bytes, length);
        for (size_t i = 0; i < sizeof(bytes); i++)
            assert_int_equal(bytes[i], i < length ? i + 1 : 0xff);
        assert_int_equal(script.taken, (length + 7) / 8);
    }
}

/* A call to the system costs more than all the rest of making a token. */
static void filling_asks_the_system_seldom(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    static const size_t lengths[] = {0, 1, 8, 16, 256, 257, 512, 1000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memset(bytes, 0, sizeof(bytes));
        system_mode = SYSTEM_INTERRUPTS;
        system_calls = 0;
        pawli_random_fill(pawl_random_system(), bytes, lengths[i]);
        bool is_interrupted = lengths[i] > 0;
        assert_int_equal(system_calls, (lengths[i] + 255) / 256 + is_interrupted);
        for (size_t k = lengths[i]; k < sizeof(bytes); k++)
            assert_int_equal(bytes[k], 0);
        size_t zeros = 0;
        for (size_t k = 0; k < lengths[i]; k++)
            zeros += bytes[k] == 0;
        assert_true(zeros <= 2 + lengths[i] / 32); /* one in 256 is likely */
        system_mode = SYSTEM_WORKS;
    }
}

/* Nothing is given out twice, however much more is drawn than was wanted. */
static void a_stock_gives_each_byte_once(void **state)
{
    (void)state;
    uint8_t drawn[100][16] = {{0}};
    struct pawli_stock stock = {.random = pawl_random_system(), .wanted = 40 * sizeof(drawn[0])};
    system_mode = SYSTEM_WORKS;
    system_calls = 0;
    for (size_t i = 0; i < 40; i++)
        pawli_stock_take(&stock, drawn[i], sizeof(drawn[i]));
    assert_int_equal(system_calls, 3); /* of 256, 256 and 128 bytes */
    for (size_t i = 40; i < 100; i++)
        pawli_stock_take(&stock, drawn[i], sizeof(drawn[i]));
    assert_int_equal(system_calls, 3 + 60);
    for (size_t i = 0; i < 100; i++)
        for (size_t k = 0; k < i; k++)
            for (size_t at = 0; at < 81; at++) /* wherever eight bytes of either begin */
                assert_memory_not_equal(drawn[i] + at / 9, drawn[k] + at % 9, 8);
}

/* A seed gives the numbers that it gives anybody else. */
static void a_stock_asks_no_seed_ahead(void **state)
{
    (void)state;
    struct pawli_seeded left = {7}, right = {7};
    pawl_random source = pawli_seeded_as_random(&left), same = pawli_seeded_as_random(&right);
    struct pawli_stock stock = {.random = &source, .wanted = 1000};
    uint8_t a[16], b[16];
    for (int i = 0; i < 3; i++) {
        pawli_stock_take(&stock, a, sizeof(a));
        pawli_random_fill(&same, b, sizeof(b));
        assert_memory_equal(a, b, sizeof(a));
    }
    assert_true(left.state == right.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_random_bits_means_no_process),
        cmocka_unit_test(the_system_s_bits_all_move),
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(draws_are_below_their_bound),
        cmocka_unit_test(surplus_numbers_are_drawn_again),
        cmocka_unit_test(a_stuck_source_hangs_nobody),
        cmocka_unit_test(draws_are_even),
        cmocka_unit_test(filling_writes_all_and_no_more),
        cmocka_unit_test(filling_asks_the_system_seldom),
        cmocka_unit_test(a_stock_gives_each_byte_once),
        cmocka_unit_test(a_stock_asks_no_seed_ahead),
    };
    return cmocka_run_group_tests_name("base_random", tests, NULL, NULL);
}
