/*  Running moments against all rows at once, against Gymnasium's update by hand, and through save and load. */
#include "common/rl/norm.h"
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "tests/test.h"

#define assert_near(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

static void test_version_0_is_mean_0_variance_1(void **state)
{
    (void)state;
    tt_norm_t *norm = tt_norm_new(2);
    assert_true(tt_norm_mean(norm, 1) == 0 && tt_norm_var(norm, 1) == 1);
    const float in[] = {0.5f, -3, 20, -20};
    float out[4];
    tt_norm_scale(norm, in, 2, 10, out);
    assert_near(out[0], 0.5, 1e-7);
    assert_near(out[1], -3, 1e-6);
    assert_true(out[2] == 10 && out[3] == -10);
    tt_norm_merge(norm, NULL, 0);
    assert_true(tt_norm_count(norm) == 1e-4);
    const float nan = NAN;
    tt_norm_t *one = tt_norm_new(1);
    tt_norm_scale(one, &nan, 1, 10, out);
    assert_true(isnan(out[0]));
    tt_norm_destroy(&one);
    tt_norm_destroy(&norm);
    assert_null(norm);
}

/*  Worked by hand after Gymnasium's update_mean_var_count_from_moments: rows 1 and 3, count 1e-4 before. */
static void test_one_merge_by_hand(void **state)
{
    (void)state;
    tt_norm_t *norm = tt_norm_new(1);
    const float a = 1, b = 3;
    const float *const rows[] = {&a, &b};
    tt_norm_merge(norm, rows, 2);
    const double total = 2 + 1e-4;
    assert_near(tt_norm_mean(norm, 0), 2 * 2 / total, 1e-12);
    assert_near(tt_norm_var(norm, 0), (1e-4 + 1 * 2 + 4 * 1e-4 * 2 / total) / total, 1e-12);
    tt_norm_destroy(&norm);
}

/*  Merged in batches of odd sizes = the moments of all rows (and the 1e-4 of a row of version 0) at once. */
static void test_merges_add_up(void **state)
{
    (void)state;
    enum { D = 3, ROWS = 1000 };
    static float data[ROWS][D];
    const float *rows[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i] = data[i];
        for (uint32_t d = 0; d < D; d++) {
            uint32_t word[4];
            tt_draw(word, 3, TT_STREAM_TEST, d, i);
            data[i][d] = tt_unit_f32(word[0]) * 10 + 1000 + (float)d;
        }
    }
    tt_norm_t *norm = tt_norm_new(D);
    for (size_t at = 0, n = 1; at < ROWS; at += n, n = n * 2 + 1)
        tt_norm_merge(norm, rows + at, n < ROWS - at ? n : ROWS - at);
    assert_near(tt_norm_count(norm), ROWS + 1e-4, 1e-9);
    for (uint32_t d = 0; d < D; d++) {
        double mean = 0, m2 = 0;
        for (int i = 0; i < ROWS; i++)
            mean += (double)data[i][d];
        mean /= ROWS + 1e-4;
        for (int i = 0; i < ROWS; i++)
            m2 += pow((double)data[i][d] - mean, 2);
        m2 += 1e-4 * (1 + mean * mean);
        assert_near(tt_norm_mean(norm, d) / mean, 1, 1e-12);
        assert_near(tt_norm_var(norm, d) / (m2 / (ROWS + 1e-4)), 1, 1e-9);
    }
    tt_norm_destroy(&norm);
}

static void test_save_and_load(void **state)
{
    (void)state;
    tt_norm_t *norm = tt_norm_new(2), *copy = tt_norm_new(2);
    const float row[] = {3, -5}, in[] = {1.25f, 7};
    const float *const rows[] = {row, row};
    double block[5];
    float a[2], b[2];
    tt_norm_merge(norm, rows, 2);
    assert_int_equal(tt_norm_block_count(2), 5);
    tt_norm_save(norm, block);
    assert_ok(tt_norm_load(copy, block, 5));
    tt_norm_scale(norm, in, 1, 10, a);
    tt_norm_scale(copy, in, 1, 10, b);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(tt_norm_load(copy, block, 4), TT_DATA);
    const double bad[][2] = {{0, 0}, {0, NAN}, {1, INFINITY}, {3, -1}, {4, NAN}};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        double broken[5];
        memcpy(broken, block, sizeof block);
        broken[(int)bad[i][0]] = bad[i][1];
        assert_int_equal(tt_norm_load(copy, broken, 5), TT_DATA);
    }
    tt_norm_scale(copy, in, 1, 10, b); /* a refused block changed nothing */
    assert_memory_equal(a, b, sizeof a);
    tt_norm_destroy(&norm);
    tt_norm_destroy(&copy);
}

/*  Two envs, three steps, gamma 1/2; the second env terminates at step 0 and is cut at step 1. */
static void test_returns_by_hand(void **state)
{
    (void)state;
    tt_returns_t *returns = tt_returns_new(2, 0.5);
    tt_norm_t *norm = tt_norm_new(1), *expected = tt_norm_new(1);
    const float reward[] = {1, 2, 1, 4, 1, 8};
    const uint8_t terminated[] = {0, 1, 0, 0, 0, 0}, truncated[] = {0, 0, 0, 1, 0, 0}, none[2] = {0};
    tt_returns_feed(returns, norm, 3, reward, terminated, truncated);
    const double seen[] = {1, 2, 1.5, 4, 1.75, 8};
    tt_norm_merge_f64(expected, seen, 6);
    assert_true(tt_norm_mean(norm, 0) == tt_norm_mean(expected, 0));
    assert_true(tt_norm_var(norm, 0) == tt_norm_var(expected, 0));
    assert_true(tt_returns_state(returns)[0] == 1.75 && tt_returns_state(returns)[1] == 8);
    tt_returns_feed(returns, norm, 1, reward, none, none); /* the accumulators go on in the next batch */
    assert_true(tt_returns_state(returns)[0] == 1.875 && tt_returns_state(returns)[1] == 6);
    const uint8_t second[2] = {0, 1};
    tt_returns_forget(returns, second);
    assert_true(tt_returns_state(returns)[0] == 1.875 && tt_returns_state(returns)[1] == 0);
    float out[2];
    tt_norm_scale_reward(norm, reward, 2, 10, out);
    assert_near(out[1], 2 / sqrt(tt_norm_var(norm, 0) + 1e-8), 1e-6);
    tt_norm_scale_reward(norm, reward, 2, 0.25f, out);
    assert_true(out[0] == 0.25f);
    tt_norm_destroy(&norm);
    tt_norm_destroy(&expected);
    tt_returns_destroy(&returns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_0_is_mean_0_variance_1),
        cmocka_unit_test(test_one_merge_by_hand),
        cmocka_unit_test(test_merges_add_up),
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_returns_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
