/*  epsilon by the number of a row: a straight line between two values, and all random before it. */
#include "common/rl/schedule.h"
#include <math.h>
#include "tests/test.h"

static void test_a_straight_line(void **state)
{
    (void)state;
    const tt_actor_t actor = {
        .kind = TT_ACT_ARGMAX, .epsilon = 1, .epsilon_end = 0.05, .epsilon_rows = 10000, .random_rows = 0};
    assert_true(tt_epsilon(&actor, 0, 1) == 1);
    assert_true(tt_epsilon(&actor, 5000, 1) == 0.525);
    assert_true(fabs(tt_epsilon(&actor, 9999, 1) - 0.050095) < 1e-12);
    assert_true(tt_epsilon(&actor, 10000, 1) == 0.05);
    assert_true(tt_epsilon(&actor, UINT64_MAX, 1) == 0.05);
    for (uint64_t row = 1; row < 10100; row++)
        assert_true(tt_epsilon(&actor, row, 1) <= tt_epsilon(&actor, row - 1, 1));
}

static void test_upwards_too(void **state)
{
    (void)state;
    const tt_actor_t actor = {
        .kind = TT_ACT_ARGMAX, .epsilon = 0.25, .epsilon_end = 0.75, .epsilon_rows = 8, .random_rows = 0};
    for (uint64_t row = 0; row < 8; row++)
        assert_true(tt_epsilon(&actor, row, 1) == 0.25 + (double)row / 16);
    assert_true(tt_epsilon(&actor, 8, 1) == 0.75);
}

static void test_no_line(void **state)
{
    (void)state;
    const tt_actor_t actor = {.kind = TT_ACT_ARGMAX,
                         .epsilon = 1,
                         .epsilon_end = 0.1,
                         .epsilon_rows = 0,
                         .random_rows = 0},
                     zeros = {0};
    assert_true(tt_epsilon(&actor, 0, 1) == 0.1);
    assert_true(tt_epsilon(&zeros, 0, 1) == 0);
}

static void test_random_first(void **state)
{
    (void)state;
    const tt_actor_t actor = {
        .kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_end = 0, .epsilon_rows = 100, .random_rows = 50};
    assert_true(tt_epsilon(&actor, 0, 1) == 1);
    assert_true(tt_epsilon(&actor, 49, 1) == 1);
    assert_true(tt_epsilon(&actor, 50, 1) == 0.25); /* the line does not wait */
    assert_true(tt_epsilon(&actor, 100, 1) == 0);
}

/*  Never out of 0 .. 1, whatever the numbers: it is a probability. */
static void test_a_probability(void **state)
{
    (void)state;
    const double ends[] = {0, 1e-300, 1.0 / 3, 0.1, 0.7, 1 - 0x1p-53, 1};
    for (size_t a = 0; a < TT_COUNT(ends); a++)
        for (size_t b = 0; b < TT_COUNT(ends); b++)
            for (uint64_t rows = 1; rows < UINT64_C(1) << 60; rows = rows * 3 + 1)
                for (uint64_t k = 0; k < 4; k++) {
                    const tt_actor_t actor = {.kind = TT_ACT_ARGMAX,
                        .epsilon = ends[a],
                        .epsilon_end = ends[b],
                        .epsilon_rows = rows,
                        .random_rows = 0};
                    const double epsilon = tt_epsilon(&actor, rows - (k < rows ? k : rows), 1);
                    assert_true(epsilon >= 0 && epsilon <= 1);
                }
}

/*  Env 0 as the line says, the last one by the whole power, who is between them in between; none of it before the line begins, nor where it is 0. */
static void test_by_env(void **state)
{
    (void)state;
    enum { N = 8 };
    const tt_actor_t actor = {
        .kind = TT_ACT_ARGMAX, .epsilon = 1, .epsilon_end = 0.4, .random_rows = 2 * N, .epsilon_power = 7};
    for (uint64_t row = 0; row < 2 * N; row++)
        assert_true(tt_epsilon(&actor, row, N) == 1);
    for (uint64_t clock = 2; clock < 5; clock++)
        for (uint64_t env = 0; env < N; env++) {
            const double wanted = pow(0.4, 1 + 7 * (double)env / (N - 1));
            assert_true(fabs(tt_epsilon(&actor, clock * N + env, N) - wanted) <= 1e-6 * wanted);
        }
    assert_true(tt_epsilon(&actor, 100, 1) == 0.4); /* alone: by the line */
    const tt_actor_t never = {.kind = TT_ACT_ARGMAX, .epsilon_power = 7},
                     ever = {.epsilon_end = 1, .epsilon_power = 100};
    for (uint64_t row = 0; row < N; row++) {
        assert_true(tt_epsilon(&never, row, N) == 0);
        assert_true(tt_epsilon(&ever, row, N) == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_straight_line),
        cmocka_unit_test(test_upwards_too),
        cmocka_unit_test(test_no_line),
        cmocka_unit_test(test_random_first),
        cmocka_unit_test(test_a_probability),
        cmocka_unit_test(test_by_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
