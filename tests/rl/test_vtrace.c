/*  V-trace against its definition, equation 1 of the paper as a sum of products, over random flags, ratios and shapes; where nobody
 *  else acted it is GAE's target; by hand; and what is no number. */
#include "common/rl/vtrace.h"
#include <math.h>
#include <string.h>
#include "common/rl/gae.h"
#include "tests/rl/trajectories_fixture.h"
#include "tests/test.h"

typedef struct {
    trajectories_t all;
    float ratio[TRAJECTORY_ROWS_MAX];
    float advantage[TRAJECTORY_ROWS_MAX], target[TRAJECTORY_ROWS_MAX];
    tt_vtrace_t how;
} case_t;

static void s_fill(case_t *c, uint32_t T, uint32_t N, uint32_t seed)
{
    trajectories_fill(&c->all, T, N, seed);
    for (uint32_t i = 0; i < T * N; i++)
        c->ratio[i] = expf(3 * (trajectories_random(seed + 6, i) - 0.5f));
    c->how = (tt_vtrace_t){c->ratio, 0.9f, 1.5f, 1.1f};
}

static double s_least(double a, double b)
{
    return a < b ? a : b;
}

/*  v_t = V + sum over k of gamma^k (product of c up to k - 1) rho_k delta_k, to the end of the episode or of the batch. */
static double s_target(const case_t *c, uint32_t t, uint32_t e)
{
    const tt_trajectories_t *in = &c->all.in;
    double sum = (double)in->value[t * in->N + e], weight = 1;
    for (; t < in->T; t++) {
        const uint32_t i = t * in->N + e;
        const double ratio = (double)c->ratio[i];
        sum +=
            weight * s_least((double)c->how.rho, ratio) *
            ((double)in->reward[i] + (double)in->gamma * trajectories_next_value(&c->all, t, e) - (double)in->value[i]);
        weight *= (double)in->gamma * (double)c->how.lambda * s_least((double)c->how.c, ratio);
        if (in->terminated[i] || in->truncated[i])
            break;
    }
    return sum;
}

static double s_advantage(const case_t *c, uint32_t t, uint32_t e)
{
    const tt_trajectories_t *in = &c->all.in;
    const uint32_t i = t * in->N + e;
    const bool ends = in->terminated[i] || in->truncated[i] || t + 1 == in->T;
    const double after = ends ? trajectories_next_value(&c->all, t, e) : s_target(c, t + 1, e);
    return (double)in->reward[i] + (double)in->gamma * after - (double)in->value[i];
}

static void test_against_the_definition(void **state)
{
    (void)state;
    static case_t c;
    const uint32_t shapes[][2] = {{1, 1}, {1, 5}, {7, 1}, {13, 4}, {25, 16}, {6, 33}};
    for (uint32_t k = 0; k < TT_COUNT(shapes) * 40; k++) {
        const uint32_t *shape = shapes[k % TT_COUNT(shapes)];
        s_fill(&c, shape[0], shape[1], k * 10);
        c.all.in.or_flags = k >= TT_COUNT(shapes) * 20;
        assert_ok(tt_vtrace(&c.all.in, &c.how, c.advantage, c.target));
        for (uint32_t i = 0; i < shape[0] * shape[1]; i++) {
            assert_true(fabs((double)c.target[i] - s_target(&c, i / shape[1], i % shape[1])) < 3e-5);
            assert_true(fabs((double)c.advantage[i] - s_advantage(&c, i / shape[1], i % shape[1])) < 3e-5);
        }
    }
}

/*  With ratios of 1, said or not, targets are those of GAE, and lambda 1 makes its advantages too. */
static void test_on_policy_it_is_gae(void **state)
{
    (void)state;
    static case_t c;
    float advantage[50 * 4], target[50 * 4];
    for (uint32_t k = 0; k < 8; k++) {
        s_fill(&c, 50, 4, k);
        c.how = (tt_vtrace_t){NULL, k % 2 ? 1 : 0.8f, 1, 1};
        assert_ok(tt_vtrace(&c.all.in, &c.how, c.advantage, c.target));
        assert_ok(tt_gae(&c.all.in, c.how.lambda, advantage, target));
        for (uint32_t i = 0; i < 200; i++) {
            assert_true(fabsf(c.target[i] - target[i]) < 3e-5f);
            assert_true(k % 2 == 0 || fabsf(c.advantage[i] - advantage[i]) < 3e-5f);
        }
        for (uint32_t i = 0; i < 200; i++)
            c.ratio[i] = 1;
        c.how.ratio = c.ratio;
        memcpy(advantage, c.advantage, sizeof advantage);
        assert_ok(tt_vtrace(&c.all.in, &c.how, c.advantage, c.target));
        assert_memory_equal(c.advantage, advantage, sizeof advantage);
    }
}

/*  One env, gamma 1/2, lambda 1, rho 2, c 1: two steps that go on, the second half as likely as it was, the first four times. */
static void test_by_hand(void **state)
{
    (void)state;
    const float reward[] = {1, 1}, value[] = {1, 2}, last[] = {4}, ratio[] = {4, 0.5f};
    const uint8_t none[] = {0, 0};
    const tt_trajectories_t in = {2, 1, reward, value, none, none, last, 0, NULL, NULL, 0.5f, false};
    const tt_vtrace_t how = {ratio, 1, 2, 1};
    float advantage[2], target[2];
    assert_ok(tt_vtrace(&in, &how, advantage, target));
    /* 2 + .5 (1 + 2 - 2) = 2.5; 1 + 2 (1 + 1 - 1) + .5 * 1 * (2.5 - 2) = 3.25 */
    assert_true(target[1] == 2.5f && target[0] == 3.25f);
    /* 1 + 2 - 2; 1 + .5 * 2.5 - 1 */
    assert_true(advantage[1] == 1 && advantage[0] == 1.25f);
}

static void test_a_missing_final_is_refused(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, 10, 4, 5);
    assert_true(c.all.in.finals > 0);
    c.all.in.finals--;
    assert_int_equal(tt_vtrace(&c.all.in, &c.how, c.advantage, c.target), TT_INVALID);
}

/*  A ratio that is no number is not cut to one: it reaches the steps before it in its own episode, and nobody else. */
static void test_nan_is_seen(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, 8, 3, 6);
    memset(c.all.terminated, 0, sizeof c.all.terminated);
    memset(c.all.truncated, 0, sizeof c.all.truncated);
    c.all.in.finals = 0;
    c.ratio[4 * 3 + 1] = NAN;
    assert_ok(tt_vtrace(&c.all.in, &c.how, c.advantage, c.target));
    for (uint32_t t = 0; t < 8; t++)
        for (uint32_t e = 0; e < 3; e++) {
            assert_true((isnan(c.target[t * 3 + e]) != 0) == (e == 1 && t <= 4));
            assert_true((isnan(c.advantage[t * 3 + e]) != 0) == (e == 1 && t < 4)); /* its own has the weight */
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_on_policy_it_is_gae),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_a_missing_final_is_refused),
        cmocka_unit_test(test_nan_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
