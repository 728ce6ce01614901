/*  epsilon by the number of a row: a straight line between two values, and all random before it. */
#include "common/rl/schedule.h"
#include <math.h>
#include "tests/test.h"

static void test_a_straight_line(void **state)
{
    (void)state;
    const tt_actor_t actor = {TT_ACT_ARGMAX, 1, 0.05, 10000, 0, 0, false, ""};
    assert_true(tt_epsilon(&actor, 0) == 1);
    assert_true(tt_epsilon(&actor, 5000) == 0.525);
    assert_true(fabs(tt_epsilon(&actor, 9999) - 0.050095) < 1e-12);
    assert_true(tt_epsilon(&actor, 10000) == 0.05);
    assert_true(tt_epsilon(&actor, UINT64_MAX) == 0.05);
    for (uint64_t row = 1; row < 10100; row++)
        assert_true(tt_epsilon(&actor, row) <= tt_epsilon(&actor, row - 1));
}

static void test_upwards_too(void **state)
{
    (void)state;
    const tt_actor_t actor = {TT_ACT_ARGMAX, 0.25, 0.75, 8, 0, 0, false, ""};
    for (uint64_t row = 0; row < 8; row++)
        assert_true(tt_epsilon(&actor, row) == 0.25 + (double)row / 16);
    assert_true(tt_epsilon(&actor, 8) == 0.75);
}

static void test_no_line(void **state)
{
    (void)state;
    const tt_actor_t actor = {TT_ACT_ARGMAX, 1, 0.1, 0, 0, 0, false, ""}, zeros = {0};
    assert_true(tt_epsilon(&actor, 0) == 0.1);
    assert_true(tt_epsilon(&zeros, 0) == 0);
}

static void test_random_first(void **state)
{
    (void)state;
    const tt_actor_t actor = {TT_ACT_ARGMAX, 0.5, 0, 100, 50, 0, false, ""};
    assert_true(tt_epsilon(&actor, 0) == 1);
    assert_true(tt_epsilon(&actor, 49) == 1);
    assert_true(tt_epsilon(&actor, 50) == 0.25); /* the line does not wait */
    assert_true(tt_epsilon(&actor, 100) == 0);
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
                    const tt_actor_t actor = {TT_ACT_ARGMAX, ends[a], ends[b], rows, 0, 0, false, ""};
                    const double epsilon = tt_epsilon(&actor, rows - (k < rows ? k : rows));
                    assert_true(epsilon >= 0 && epsilon <= 1);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
