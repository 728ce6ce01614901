/*  GAE by hand, and against its definition as a sum over the rest of the episode, over random flags and shapes. */
#include "common/rl/gae.h"
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "tests/test.h"

enum { ROWS_MAX = 400 };

typedef struct {
    float reward[ROWS_MAX], value[ROWS_MAX], last[64], final_value[ROWS_MAX];
    uint8_t terminated[ROWS_MAX], truncated[ROWS_MAX];
    uint32_t final_row[ROWS_MAX];
    float advantage[ROWS_MAX], target[ROWS_MAX];
    tt_gae_t in;
} case_t;

static float s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 1, TT_STREAM_TEST, who, k);
    return tt_unit_f32(word[0]);
}

static void s_fill(case_t *c, uint32_t T, uint32_t N, uint32_t seed)
{
    memset(c, 0, sizeof *c);
    uint32_t finals = 0;
    for (uint32_t i = 0; i < T * N; i++) {
        c->reward[i] = s_random(seed, i) - 0.5f;
        c->value[i] = s_random(seed + 1, i) * 4;
        c->terminated[i] = s_random(seed + 2, i) < 0.15f;
        c->truncated[i] = s_random(seed + 3, i) < 0.15f;
        if (c->truncated[i]) {
            c->final_row[finals] = i;
            c->final_value[finals++] = s_random(seed + 4, i) * 4;
        }
    }
    for (uint32_t e = 0; e < N; e++)
        c->last[e] = s_random(seed + 5, e) * 4;
    c->in = (tt_gae_t){T, N, c->reward, c->value, c->terminated, c->truncated, c->last, finals, c->final_row,
        c->final_value, 0.97f, 0.9f, false};
}

static double s_next_value(const case_t *c, uint32_t t, uint32_t e)
{
    const uint32_t i = t * c->in.N + e;
    if (c->terminated[i] || (c->truncated[i] && c->in.or_flags))
        return 0;
    if (!c->truncated[i])
        return (double)(t + 1 == c->in.T ? c->last[e] : c->value[i + c->in.N]);
    for (uint32_t k = 0; k < c->in.finals; k++)
        if (c->final_row[k] == i)
            return (double)c->final_value[k];
    return NAN;
}

/*  sum over k of (gamma lambda)^k delta_{t+k}, to the end of the episode or of the batch. */
static double s_definition(const case_t *c, uint32_t t, uint32_t e)
{
    double sum = 0, weight = 1;
    for (; t < c->in.T; t++) {
        const uint32_t i = t * c->in.N + e;
        sum += weight * ((double)c->reward[i] + (double)c->in.gamma * s_next_value(c, t, e) - (double)c->value[i]);
        weight *= (double)c->in.gamma * (double)c->in.lambda;
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
        s_fill(&c, shape[0], shape[1], k * 10);
        c.in.or_flags = k >= TT_COUNT(shapes) * 20;
        assert_ok(tt_gae(&c.in, c.advantage, c.target));
        for (uint32_t i = 0; i < shape[0] * shape[1]; i++) {
            const double expected = s_definition(&c, i / shape[1], i % shape[1]);
            assert_true(fabs((double)c.advantage[i] - expected) < 2e-5);
            assert_true(c.target[i] == c.advantage[i] + c.value[i]);
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
    tt_gae_t in = {3, 1, reward, value, terminated, truncated, last, 1, final_row, final_value, 0.5f, 0.5f, false};
    float advantage[3], target[3];
    assert_ok(tt_gae(&in, advantage, target));
    const float expected[] = {4, -1, 0}; /* 1 + .5*8 - 1; 1 - 2; 1 + .5*4 - 3 */
    assert_memory_equal(advantage, expected, sizeof expected);
    in.or_flags = true;
    in.finals = 0; /* not read then */
    assert_ok(tt_gae(&in, advantage, target));
    assert_true(advantage[0] == 0);
}

static void test_a_missing_final_is_refused(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, 10, 4, 5);
    assert_true(c.in.finals > 1);
    c.in.finals--;
    assert_int_equal(tt_gae(&c.in, c.advantage, c.target), TT_INVALID);
    c.in.finals++;
    c.final_row[0]++;
    assert_int_equal(tt_gae(&c.in, c.advantage, c.target), TT_INVALID);
}

/*  A NaN reaches the steps before it in its own episode, and nobody else. */
static void test_nan_stays_in_its_env(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, 8, 3, 6);
    memset(c.terminated, 0, sizeof c.terminated);
    memset(c.truncated, 0, sizeof c.truncated);
    c.in.finals = 0;
    c.reward[4 * 3 + 1] = NAN;
    assert_ok(tt_gae(&c.in, c.advantage, c.target));
    for (uint32_t t = 0; t < 8; t++)
        for (uint32_t e = 0; e < 3; e++)
            assert_true((isnan(c.advantage[t * 3 + e]) != 0) == (e == 1 && t <= 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_a_missing_final_is_refused),
        cmocka_unit_test(test_nan_stays_in_its_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
