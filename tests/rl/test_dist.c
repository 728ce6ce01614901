/*  Distributions against their definitions in double with libm, frequencies against probabilities, and rows against
 *  their neighbours. */
#include "common/rl/dist.h"
#include <math.h>
#include <stdlib.h>
#include "tests/test.h"

enum { ROWS = 37 };

static float s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    return (tt_unit_f32(word[0]) - 0.5f) * 8;
}

static void s_fill(float *x, size_t n, uint32_t who)
{
    for (size_t i = 0; i < n; i++)
        x[i] = s_random(who, i);
}

static void s_softmax(const float *logits, uint32_t A, double *p)
{
    double sum = 0;
    for (uint32_t a = 0; a < A; a++)
        sum += exp((double)logits[a]);
    for (uint32_t a = 0; a < A; a++)
        p[a] = exp((double)logits[a]) / sum;
}

static void s_check_categorical(uint32_t A)
{
    float *logits = malloc(sizeof(float) * ROWS * A);
    double *p = malloc(sizeof(double) * A);
    int32_t action[ROWS];
    float log_prob[ROWS];
    s_fill(logits, (size_t)ROWS * A, A);
    for (uint32_t i = 0; i < ROWS; i++)
        action[i] = (int32_t)(i % A);
    tt_cat_log_prob(logits, ROWS, A, action, log_prob);
    for (uint32_t i = 0; i < ROWS; i++) {
        s_softmax(logits + i * A, A, p);
        assert_true(fabs((double)log_prob[i] - log(p[action[i]])) < 5e-6);
    }
    free(logits);
    free(p);
}

static void test_categorical_by_definition(void **state)
{
    (void)state;
    const uint32_t sizes[] = {1, 2, 3, 6, 18, 1500};
    for (size_t k = 0; k < TT_COUNT(sizes); k++)
        s_check_categorical(sizes[k]);
}

static void test_categorical_frequencies(void **state)
{
    (void)state;
    enum { A = 4, DRAWS = 40000 };
    const float row[A] = {0.5f, -1, 1.5f, -8};
    double p[A];
    s_softmax(row, A, p);
    int counts[A] = {0};
    for (uint64_t n = 0; n < DRAWS; n++) {
        const uint32_t who = 3;
        const tt_dist_draw_t draw = {11, TT_STREAM_ACTION, &who, &n};
        int32_t action;
        float log_prob, again;
        tt_cat_sample(row, 1, A, &draw, &action, &log_prob);
        tt_cat_log_prob(row, 1, A, &action, &again);
        assert_memory_equal(&log_prob, &again, sizeof again);
        counts[action]++;
    }
    for (int a = 0; a < A; a++) /* five standard deviations */
        assert_true(fabs(counts[a] - DRAWS * p[a]) < 5 * sqrt(DRAWS * p[a] * (1 - p[a])) + 1);
}

/*  Every row alone has the bits it has among the others. */
static void test_rows_do_not_see_each_other(void **state)
{
    (void)state;
    enum { MANY = 200, A = 3 };
    float logits[MANY * A], log_prob[MANY], box[MANY * A], box_prob[MANY];
    const float log_std[A] = {-0.5f, 0, 0.25f};
    uint32_t who[MANY];
    uint64_t clock[MANY];
    int32_t action[MANY], different = 0;
    s_fill(logits, MANY * A, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        who[i] = 1000 - i;
        clock[i] = (uint64_t)i * i << 20;
    }
    const tt_dist_draw_t all = {5, TT_STREAM_ACTION, who, clock};
    tt_cat_sample(logits, MANY, A, &all, action, log_prob);
    tt_gauss_sample(logits, log_std, MANY, A, &all, box, box_prob);
    for (uint32_t i = 0; i < MANY; i++) {
        const tt_dist_draw_t one = {5, TT_STREAM_ACTION, who + i, clock + i};
        int32_t a;
        float lp, b[A], blp;
        tt_cat_sample(logits + i * A, 1, A, &one, &a, &lp);
        tt_gauss_sample(logits + i * A, log_std, 1, A, &one, b, &blp);
        assert_int_equal(a, action[i]);
        assert_memory_equal(&lp, log_prob + i, sizeof lp);
        assert_memory_equal(b, box + i * A, sizeof b);
        assert_memory_equal(&blp, box_prob + i, sizeof blp);
        different += a != action[0];
    }
    assert_true(different > 0);
}

/*  Extreme and broken logits give an action in range. */
static void test_odd_logits(void **state)
{
    (void)state;
    const float rows[][3] = {{NAN, 0, 0}, {0, NAN, 0}, {0, 0, NAN}, {INFINITY, 0, 0}, {-INFINITY, -INFINITY, -INFINITY},
        {1e30f, -1e30f, 0}, {-INFINITY, 2, -INFINITY}, {-200, 0, -200}};
    for (size_t i = 0; i < TT_COUNT(rows); i++)
        for (uint64_t clock = 0; clock < 50; clock++) {
            const uint32_t who = 0;
            const tt_dist_draw_t draw = {1, TT_STREAM_ACTION, &who, &clock};
            int32_t action = -1;
            float log_prob;
            tt_cat_sample(rows[i], 1, 3, &draw, &action, &log_prob);
            assert_in_range(action, 0, 2);
            assert_true(i < 5 ? isnan(log_prob) : log_prob == 0);
        }
}

static void test_gaussian_by_definition(void **state)
{
    (void)state;
    enum { A = 6 };
    float mean[ROWS * A], action[ROWS * A], log_prob[ROWS], log_std[A];
    s_fill(mean, ROWS * A, 1);
    s_fill(action, ROWS * A, 2);
    double entropy = 0;
    for (uint32_t a = 0; a < A; a++) {
        log_std[a] = s_random(4, a) * 0.25f;
        entropy += 0.5 * log(2 * M_PI * M_E) + (double)log_std[a];
    }
    assert_true(fabs((double)tt_gauss_entropy(log_std, A) - entropy) < 1e-5);
    tt_gauss_log_prob(mean, log_std, ROWS, A, action, log_prob);
    for (int i = 0; i < ROWS; i++) {
        double lp = 0;
        for (int a = 0; a < A; a++) {
            const double s = exp((double)log_std[a]);
            const double z = (double)(action[i * A + a] - mean[i * A + a]) / s;
            lp += -0.5 * z * z - log(s * sqrt(2 * M_PI));
        }
        assert_true(fabs((double)log_prob[i] - lp) < 1e-6 * (10 + fabs(lp)));
    }
}

/*  Moments of the noise, independence between dimensions, and the log-probability of the unclipped sample. */
static void test_gaussian_moments(void **state)
{
    (void)state;
    enum { A = 5, DRAWS = 40000 };
    const float mean[A] = {1, -2, 0, 3, 10}, log_std[A] = {0, 0.5f, -1, 0, 2};
    double sum[A] = {0}, square[A] = {0}, cross = 0;
    for (uint64_t n = 0; n < DRAWS; n++) {
        const uint32_t who = 9;
        const tt_dist_draw_t draw = {12, TT_STREAM_ACTION, &who, &n};
        float action[A], log_prob, again;
        double z[A];
        tt_gauss_sample(mean, log_std, 1, A, &draw, action, &log_prob);
        tt_gauss_log_prob(mean, log_std, 1, A, action, &again);
        assert_memory_equal(&log_prob, &again, sizeof again);
        for (int a = 0; a < A; a++) {
            z[a] = (double)(action[a] - mean[a]) / exp((double)log_std[a]);
            assert_true(fabs(z[a]) < 5.8);
            sum[a] += z[a];
            square[a] += z[a] * z[a];
        }
        cross += z[0] * z[1] + z[0] * z[4];
    }
    for (int a = 0; a < A; a++) {
        assert_true(fabs(sum[a] / DRAWS) < 5 / sqrt(DRAWS));
        assert_true(fabs(square[a] / DRAWS - 1) < 5 * sqrt(2.0 / DRAWS));
    }
    assert_true(fabs(cross / DRAWS) < 5 * sqrt(2.0 / DRAWS));
}

/*  No two of 3000 dimensions, at two successive steps, share their noise. */
static void test_wide_actions(void **state)
{
    (void)state;
    enum { A = 3000 };
    static float zero[A], action[2][A];
    for (uint64_t clock = 0; clock < 2; clock++) {
        const uint32_t who = 1;
        const tt_dist_draw_t draw = {2, TT_STREAM_ACTION, &who, &clock};
        tt_gauss_sample(zero, zero, 1, A, &draw, action[clock], NULL);
    }
    const float *all = action[0];
    for (int i = 0; i < 2 * A; i += 4)
        for (int j = i + 4; j < 2 * A; j += 4)
            assert_true(all[i] != all[j] || all[i + 1] != all[j + 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_categorical_by_definition),
        cmocka_unit_test(test_categorical_frequencies),
        cmocka_unit_test(test_rows_do_not_see_each_other),
        cmocka_unit_test(test_odd_logits),
        cmocka_unit_test(test_gaussian_by_definition),
        cmocka_unit_test(test_gaussian_moments),
        cmocka_unit_test(test_wide_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
