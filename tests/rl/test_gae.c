/*  GAE by hand, and against its definition as a sum over the rest of the episode, over random flags and shapes. */
#include "common/rl/gae.h"
#include <math.h>
#include <string.h>
#include "tests/rl/trajectories_fixture.h"
#include "tests/test.h"

static const float LAMBDA = 0.9f;

typedef struct {
    trajectories_t all;
    float advantage[TRAJECTORY_ROWS_MAX], target[TRAJECTORY_ROWS_MAX];
} case_t;

/*  sum over k of (gamma lambda)^k delta_{t+k}, to the end of the episode or of the batch. */
static double s_definition(const trajectories_t *c, uint32_t t, uint32_t e)
{
    double sum = 0, weight = 1;
    for (; t < c->in.T; t++) {
        const uint32_t i = t * c->in.N + e;
        sum += weight *
               ((double)c->reward[i] + (double)c->in.gamma * trajectories_next_value(c, t, e) - (double)c->value[i]);
        weight *= (double)c->in.gamma * (double)LAMBDA;
        if (c->terminated[i] || c->truncated[i])
            break;
    }
    return sum;
}

static void test_against_the_definition(void **state)
{
    (void)state;
    static case_t c;
    const uint32_t shapes[][2] = {{1, 1}, {1, 5}, {7, 1}, {13, 4}, {25, 16}, {6, 33}};
    for (uint32_t k = 0; k < TT_COUNT(shapes) * 40; k++) {
        const uint32_t *shape = shapes[k % TT_COUNT(shapes)];
        trajectories_fill(&c.all, shape[0], shape[1], k * 10);
        c.all.in.or_flags = k >= TT_COUNT(shapes) * 20;
        assert_ok(tt_gae(&c.all.in, LAMBDA, c.advantage, c.target));
        for (uint32_t i = 0; i < shape[0] * shape[1]; i++) {
            const double expected = s_definition(&c.all, i / shape[1], i % shape[1]);
            assert_true(fabs((double)c.advantage[i] - expected) < 2e-5);
            assert_true(c.target[i] == c.advantage[i] + c.all.value[i]);
        }
    }
}

/*  One env, gamma = lambda = 1/2: cut after step 0 (final value 8), terminated after step 1, goes on after step 2. */
static void test_by_hand(void **state)
{
    (void)state;
    const float reward[] = {1, 1, 1}, value[] = {1, 2, 3}, last[] = {4}, final_value[] = {8};
    const uint8_t terminated[] = {0, 1, 0}, truncated[] = {1, 0, 0};
    const uint32_t final_row[] = {0};
    tt_trajectories_t in = {3, 1, reward, value, terminated, truncated, last, 1, final_row, final_value, 0.5f, false};
    float advantage[3], target[3];
    assert_ok(tt_gae(&in, 0.5f, advantage, target));
    const float expected[] = {4, -1, 0}; /* 1 + .5*8 - 1; 1 - 2; 1 + .5*4 - 3 */
    assert_memory_equal(advantage, expected, sizeof expected);
    in.or_flags = true;
    in.finals = 0; /* not read then */
    assert_ok(tt_gae(&in, 0.5f, advantage, target));
    assert_true(advantage[0] == 0);
}

/*  A NaN reaches the steps before it in its own episode, and nobody else. */
static void test_nan_stays_in_its_env(void **state)
{
    (void)state;
    static case_t c;
    trajectories_fill(&c.all, 8, 3, 6);
    memset(c.all.terminated, 0, sizeof c.all.terminated);
    memset(c.all.truncated, 0, sizeof c.all.truncated);
    c.all.in.finals = 0;
    c.all.reward[4 * 3 + 1] = NAN;
    assert_ok(tt_gae(&c.all.in, LAMBDA, c.advantage, c.target));
    for (uint32_t t = 0; t < 8; t++)
        for (uint32_t e = 0; e < 3; e++)
            assert_true((isnan(c.advantage[t * 3 + e]) != 0) == (e == 1 && t <= 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_nan_stays_in_its_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
