/*  Numbers of units by counting them, there and back. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "learner/replay/stripes.h"
#include "tests/test.h"

static void s_count(uint32_t N, uint32_t S, uint32_t log_C, uint64_t clocks)
{
    stripes_t stripes;
    stripes_init(&stripes, N, S, log_C);
    uint64_t *count = tt_array0(S, sizeof *count);
    for (uint64_t clock = 0; clock < clocks; clock++) {
        for (uint32_t s = 0; s < S; s++)
            assert_int_equal(stripes_first(&stripes, s, clock), count[s]);
        for (uint32_t env = 0; env < N; env++) {
            const uint32_t s = stripes_of(&stripes, clock, env);
            assert_int_equal(s, (env + clock / (1u << log_C)) % S);
            assert_int_equal(stripes_number(&stripes, clock, env), count[s]);
            assert_int_equal(stripes_unit(&stripes, s, count[s]++), clock * N + env);
        }
    }
    free(count);
    stripes_free(&stripes);
}

static void test_numbers_are_counts(void **state)
{
    (void)state;
    const uint32_t envs[] = {1, 2, 3, 7, 8, 9, 16, 33};
    for (size_t i = 0; i < TT_COUNT(envs); i++)
        for (uint32_t S = 1; S <= 16; S *= 2)
            for (uint32_t log_C = 0; log_C < 4; log_C++)
                s_count(envs[i], S, log_C, 300);
}

/*  No window of clocks holds more units of a stripe than `most` says. */
static void test_most(void **state)
{
    (void)state;
    const uint32_t envs[] = {1, 3, 8, 13};
    for (size_t i = 0; i < TT_COUNT(envs); i++) {
        for (uint32_t S = 1; S <= 8; S *= 2) {
            stripes_t stripes;
            stripes_init(&stripes, envs[i], S, 2);
            for (uint64_t clocks = 1; clocks < 80; clocks++)
                for (uint64_t from = 0; from < 200; from++)
                    for (uint32_t s = 0; s < S; s++)
                        assert_true(stripes_first(&stripes, s, from + clocks) - stripes_first(&stripes, s, from) <=
                                    stripes_most(&stripes, clocks));
            assert_int_equal(stripes_most(&stripes, 1ull << 30),
                (1ull << 30) / S * envs[i] + (envs[i] % S ? (uint64_t)envs[i] * 4 : 0));
            stripes_free(&stripes);
        }
    }
}

static void test_blocks(void **state)
{
    (void)state;
    assert_int_equal(stripes_log_block(1), 5); /* 16 * 2 = 32 */
    assert_int_equal(stripes_log_block(3), 6); /* 64  */
    assert_int_equal(stripes_log_block(5), 7); /* 96 -> 128 */
    assert_int_equal(stripes_log_block(256), 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_counts),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
