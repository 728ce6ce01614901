/*  vmath against libm in double, over every kind of float, and its special values. */
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "tests/test.h"

/*  |got - want| in units of the last place of want as a float. */
static double s_ulps(float got, double want)
{
    const float rounded = (float)want;
    if (!isfinite(rounded))
        return got == rounded ? 0 : INFINITY;
    const double ulp = (double)nextafterf(fabsf(rounded), INFINITY) - fabs((double)rounded);
    return fabs((double)got - want) / ulp;
}

static void test_exp_within_1_1_ulp(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t bits = 0; bits < 0x42d00000; bits += 331) { /* 0 .. 104 */
        const float x = tt_f32_of_bits(bits);
        worst = fmax(worst, s_ulps(tt_expf(-x), exp(-(double)x)));
        if (x < 89)
            worst = fmax(worst, s_ulps(tt_expf(x), exp((double)x)));
    }
    assert_true(worst < 1.1);
}

static void test_log_within_1_ulp(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t bits = 1; bits < 0x7f800000; bits += 331) {
        const float x = tt_f32_of_bits(bits);
        worst = fmax(worst, s_ulps(tt_logf(x), log((double)x)));
    }
    assert_true(worst < 1.0);
}

static void test_sincos_within_1_2e_7(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = -(1 << 22); i < 1 << 22; i += 37) { /* -4 .. 4 turns */
        const float turn = (float)i * 0x1p-20f;
        float s, c;
        tt_sincos_turnf(&s, &c, turn);
        const double angle = 2 * M_PI * (double)turn;
        worst = fmax(worst, fmax(fabs((double)s - sin(angle)), fabs((double)c - cos(angle))));
    }
    assert_true(worst < 1.2e-7);
}

static void test_special_values(void **state)
{
    (void)state;
    assert_true(tt_expf(0) == 1 && tt_expf(-0.0f) == 1);
    assert_true(tt_expf(-INFINITY) == 0 && tt_expf(-200) == 0);
    assert_true(tt_expf(INFINITY) == INFINITY && tt_expf(88.8f) == INFINITY);
    assert_true(isnan(tt_expf(NAN)));
    assert_true(tt_logf(1) == 0);
    assert_true(tt_logf(0) == -INFINITY && tt_logf(-0.0f) == -INFINITY);
    assert_true(tt_logf(INFINITY) == INFINITY);
    assert_true(isnan(tt_logf(-1)) && isnan(tt_logf(NAN)) && isnan(tt_logf(-INFINITY)));
    float s, c;
    tt_sincos_turnf(&s, &c, 0.25f);
    assert_true(s == 1 && c == 0);
    tt_sincos_turnf(&s, &c, NAN);
    assert_true(isnan(s) && isnan(c));
}

/*  An error of the exponent is one of the result, so many times as large: 1 + |power log x| ulp, and a little. */
static void test_powers(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 200000; k++) {
        uint32_t word[4];
        tt_draw(word, 1, TT_STREAM_TEST, 77, k);
        const float x = tt_expf((tt_unit_f32(word[0]) - 0.5f) * 40), power = (tt_unit_f32(word[1]) - 0.5f) * 4;
        const double exponent = fabs((double)power * log((double)x));
        assert_true(s_ulps(tt_powf(x, power), pow((double)x, (double)power)) < 2 + 2 * exponent);
    }
    assert_true(tt_powf(0, 0.6f) == 0 && tt_powf(0, -1) == INFINITY && tt_powf(0, 0) == 1);
    assert_true(tt_powf(3, 0) == 1 && tt_powf(1, -0.4f) == 1 && tt_powf(INFINITY, 0.5f) == INFINITY);
    assert_true(isnan(tt_powf(-1, 0.5f)) && isnan(tt_powf(NAN, 2)));
}

/*  The array forms (vectorised) and the scalar forms (not) have the same bits at every place of every length. */
static void test_arrays_have_the_scalar_bits(void **state)
{
    (void)state;
    float in[131] = {0}, out[131], second[131];
    for (size_t n = 0; n <= 131; n++) {
        for (size_t i = 0; i < n; i++) {
            uint32_t word[4];
            tt_draw(word, 1, TT_STREAM_TEST, (uint32_t)n, i);
            in[i] = i % 7 == 0 ? tt_f32_of_bits(word[0]) : (tt_unit_f32(word[0]) - 0.5f) * 40;
        }
        tt_vexp(out, in, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(tt_bits_of_f32(out[i]), tt_bits_of_f32(tt_expf(in[i])));
        tt_vlog(out, in, n);
        for (size_t i = 0; i < n; i++)
            assert_true(tt_bits_of_f32(out[i]) == tt_bits_of_f32(tt_logf(in[i])) || (isnan(out[i]) && !(in[i] >= 0)));
        for (size_t i = 0; i < n; i++)
            in[i] = fabsf(in[i]) < 1e5f ? in[i] : 0;
        tt_vsincos_turn(out, second, in, n);
        for (size_t i = 0; i < n; i++) {
            float s, c;
            tt_sincos_turnf(&s, &c, in[i]);
            assert_memory_equal(&out[i], &s, sizeof s);
            assert_memory_equal(&second[i], &c, sizeof c);
        }
        memcpy(out, in, sizeof in);
        tt_vexp(out, out, n); /* in place */
        for (size_t i = 0; i < n; i++)
            assert_int_equal(tt_bits_of_f32(out[i]), tt_bits_of_f32(tt_expf(in[i])));
    }
}

/*  The bits themselves, so that a change of compiler or flags that moves them is seen: what a seed means. */
static void test_bits_are_pinned(void **state)
{
    (void)state;
    uint32_t hash = 2166136261u;
    for (int i = -4000; i < 4000; i++) {
        const float x = (float)i * 0.02f;
        float s, c;
        tt_sincos_turnf(&s, &c, x);
        const uint32_t words[] = {tt_bits_of_f32(tt_expf(x)), tt_bits_of_f32(tt_logf(fabsf(x) + 0.001f)),
            tt_bits_of_f32(s), tt_bits_of_f32(c)};
        for (size_t k = 0; k < TT_COUNT(words); k++)
            hash = (hash ^ words[k]) * 16777619u;
    }
    assert_int_equal(hash, 0x9bcf7e0c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_within_1_1_ulp),
        cmocka_unit_test(test_log_within_1_ulp),
        cmocka_unit_test(test_sincos_within_1_2e_7),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_powers),
        cmocka_unit_test(test_arrays_have_the_scalar_bits),
        cmocka_unit_test(test_bits_are_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
