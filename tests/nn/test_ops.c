/*  What encoders do to a row besides products, against loops that do what nn.md says: the same bits on every build. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/ops_fixture.h"

enum { CASES = 120, GUARD = 32, LANES = 16 };

static const float s_guard = 12345.0f;

/*  `count` floats to be filled, and a guard behind them. */
static float *s_room(size_t count)
{
    float *floats = tt_aligned0((count + GUARD) * sizeof *floats);
    for (size_t i = 0; i < count + GUARD; i++)
        floats[i] = s_guard;
    return floats;
}

static void s_check(float *expected, float *got, size_t count, const tt_kernels_t *kernels, const char *what)
{
    ops_assert_same(expected, got, count, kernels->name, what);
    for (size_t i = 0; i < GUARD; i++)
        assert_true(got[count + i] == s_guard);
    free(expected);
    free(got);
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------------ */

static cpu_window_t s_window(uint32_t seed)
{
    cpu_window_t s = {
        .in_h = ops_pick(seed, 0, 1, 13),
        .in_w = ops_pick(seed, 1, 1, 13),
        .in_c = ops_pick(seed, 2, 1, 40),
        .stride_h = ops_pick(seed, 3, 1, 3),
        .stride_w = ops_pick(seed, 4, 1, 3),
    };
    s.out_c = s.in_c;
    s.kernel_h = ops_pick(seed, 5, 1, s.in_h < 4 ? s.in_h : 4);
    s.kernel_w = ops_pick(seed, 6, 1, s.in_w < 4 ? s.in_w : 4);
    s.pad_h = ops_pick(seed, 7, 0, s.kernel_h - 1);
    s.pad_w = ops_pick(seed, 8, 0, s.kernel_w - 1);
    s.out_h = (s.in_h + 2 * s.pad_h - s.kernel_h) / s.stride_h + 1;
    s.out_w = (s.in_w + 2 * s.pad_w - s.kernel_w) / s.stride_w + 1;
    return s;
}

/*  Number of the input that place k of position (y, x) reads; false: outside. */
static bool s_place(const cpu_window_t *s, uint32_t y, uint32_t x, uint32_t k, uint32_t c, size_t *at)
{
    const int64_t iy = (int64_t)y * s->stride_h + k / s->kernel_w - s->pad_h;
    const int64_t ix = (int64_t)x * s->stride_w + k % s->kernel_w - s->pad_w;
    *at = (size_t)((iy * s->in_w + ix) * s->in_c + c);
    return iy >= 0 && ix >= 0 && iy < s->in_h && ix < s->in_w;
}

/*  Number of the first of the largest places, or of the first NaN. */
static uint32_t s_largest(const cpu_window_t *s, const float *in, uint32_t y, uint32_t x, uint32_t c)
{
    uint32_t best = UINT32_MAX;
    float largest = 0.0f;
    size_t at;
    for (uint32_t k = 0; k < s->kernel_h * s->kernel_w; k++)
        if (s_place(s, y, x, k, c, &at) &&
            (best == UINT32_MAX || (!isnan(largest) && (isnan(in[at]) || in[at] > largest)))) {
            best = k;
            largest = in[at];
        }
    return best;
}

/*  Few different numbers, so that many are equal; 0 and -0 are; and a NaN here and there. */
static float *s_picture(uint32_t seed, size_t count)
{
    float *in = ops_numbers(seed, 1, OPS_HOLES, count);
    for (size_t i = 0; i < count; i++)
        in[i] = in[i] == 0.0f ? in[i] : roundf(in[i] * 3.0f) / 3.0f;
    for (size_t i = 7; i < count; i += 53)
        in[i] = NAN;
    return in;
}

static void s_check_pool(const tt_kernels_t *kernels, uint32_t seed)
{
    const cpu_window_t s = s_window(seed);
    const size_t ins = (size_t)s.in_h * s.in_w * s.in_c, outs = (size_t)s.out_h * s.out_w * s.out_c;
    float *in = s_picture(seed, ins), *d = ops_numbers(seed, 2, OPS_HOLES, outs);
    float *out = s_room(outs), *d_in = s_room(ins), *got = s_room(outs), *got_in = s_room(ins);
    uint8_t *which = tt_array0(outs + 1, 1), *got_which = tt_array0(outs + 1, 1);
    memset(d_in, 0, ins * sizeof *d_in);
    size_t i = 0, at;
    for (uint32_t y = 0; y < s.out_h; y++)
        for (uint32_t x = 0; x < s.out_w; x++)
            for (uint32_t c = 0; c < s.in_c; c++, i++) {
                which[i] = (uint8_t)s_largest(&s, in, y, x, c);
                assert_true(s_place(&s, y, x, which[i], c, &at));
                out[i] = in[at];
                d_in[at] += d[i];
            }
    got_which[outs] = which[outs] = 99;
    cpu_pool_forward(kernels, &s, in, got, got_which);
    cpu_pool_backward(kernels, &s, d, got_which, got_in);
    assert_memory_equal(which, got_which, outs + 1);
    s_check(out, got, outs, kernels, "pooling");
    s_check(d_in, got_in, ins, kernels, "pooling, back");
    ops_free(in);
    ops_free(d);
    free(which);
    free(got_which);
}

static void test_pooling(void **state)
{
    (void)state;
    ops_on_builds(s_check_pool, CASES);
}

/*  The mean of a window, and back; NaN of the picture stay in it. */
static void s_check_mean(const tt_kernels_t *kernels, uint32_t seed)
{
    const cpu_window_t s = s_window(seed);
    const size_t ins = (size_t)s.in_h * s.in_w * s.in_c, outs = (size_t)s.out_h * s.out_w * s.out_c;
    const float share = 1.0f / (float)(s.kernel_h * s.kernel_w);
    float *in = s_picture(seed, ins), *d = ops_numbers(seed, 2, OPS_HOLES, outs);
    float *out = s_room(outs), *d_in = s_room(ins), *got = s_room(outs), *got_in = s_room(ins);
    memset(d_in, 0, ins * sizeof *d_in);
    size_t i = 0, at;
    for (uint32_t y = 0; y < s.out_h; y++)
        for (uint32_t x = 0; x < s.out_w; x++)
            for (uint32_t c = 0; c < s.in_c; c++, i++) {
                bool first = true;
                for (uint32_t k = 0; k < s.kernel_h * s.kernel_w; k++)
                    if (s_place(&s, y, x, k, c, &at)) {
                        out[i] = first ? in[at] : out[i] + in[at];
                        d_in[at] += d[i] * share;
                        first = false;
                    }
                out[i] *= share;
            }
    cpu_pool_forward(kernels, &s, in, got, NULL);
    cpu_pool_backward(kernels, &s, d, NULL, got_in);
    s_check(out, got, outs, kernels, "mean");
    s_check(d_in, got_in, ins, kernels, "mean, back");
    ops_free(in);
    ops_free(d);
}

static void test_mean(void **state)
{
    (void)state;
    ops_on_builds(s_check_mean, CASES);
}

/*  The largest window there may be: its last place has number 255. */
static void s_check_largest_window(const tt_kernels_t *kernels, uint32_t seed)
{
    const cpu_window_t s = {.in_h = 16,
        .in_w = 16,
        .in_c = 3,
        .out_h = 1,
        .out_w = 1,
        .out_c = 3,
        .kernel_h = 16,
        .kernel_w = 16,
        .stride_h = 1,
        .stride_w = 1};
    float in[16 * 16 * 3] = {0}, out[3], d_in[16 * 16 * 3];
    const float d[3] = {1.0f, 2.0f, 3.0f};
    uint8_t which[3];
    (void)seed;
    in[255 * 3 + 1] = 1.0f;
    cpu_pool_forward(kernels, &s, in, out, which);
    cpu_pool_backward(kernels, &s, d, which, d_in);
    assert_int_equal(which[0], 0);
    assert_int_equal(which[1], 255);
    assert_true(out[1] == 1.0f && d_in[255 * 3 + 1] == 2.0f && d_in[255 * 3] == 0.0f && d_in[0] == 1.0f);
}

static void test_largest_window(void **state)
{
    (void)state;
    ops_on_builds(s_check_largest_window, 1);
}

/* ---- layer norm --------------------------------------------------------------------------------------------------------------- */

static float s_sum(float lane[LANES])
{
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static void s_norm(size_t count, const float *x, const float *gain, const float *bias, float *y, float *moments)
{
    float sum[LANES] = {0}, squares[LANES] = {0};
    for (size_t i = 0; i < count; i++)
        sum[i % LANES] += x[i];
    moments[0] = s_sum(sum) / (float)count;
    for (size_t i = 0; i < count; i++)
        squares[i % LANES] = fmaf(x[i] - moments[0], x[i] - moments[0], squares[i % LANES]);
    moments[1] = 1.0f / sqrtf(s_sum(squares) / (float)count + 1e-5f);
    for (size_t i = 0; i < count; i++)
        y[i] = fmaf((x[i] - moments[0]) * moments[1], gain[i], bias[i]);
}

static void s_norm_back(size_t count, const float *x, const float *moments, const float *gain, const float *d,
    float *d_gain, float *d_bias, float *d_x)
{
    float sum[LANES] = {0}, along[LANES] = {0};
    for (size_t i = 0; i < count; i++) {
        const float g = d[i] * gain[i], z = (x[i] - moments[0]) * moments[1];
        sum[i % LANES] += g;
        along[i % LANES] = fmaf(g, z, along[i % LANES]);
        d_gain[i] = fmaf(d[i], z, d_gain[i]);
        d_bias[i] += d[i];
    }
    const float mean = s_sum(sum) / (float)count, slope = s_sum(along) / (float)count;
    for (size_t i = 0; i < count; i++)
        d_x[i] = fmaf(-(x[i] - moments[0]) * moments[1], slope, d[i] * gain[i] - mean) * moments[1];
}

static void s_check_norm_of(const tt_kernels_t *kernels, uint32_t seed, size_t count, float *x)
{
    float *gain = ops_numbers(seed, 2, OPS_PLAIN, count), *bias = ops_numbers(seed, 3, OPS_HOLES, count);
    float *d = ops_numbers(seed, 4, OPS_HOLES, count), moments[2][CPU_NORM_MOMENTS];
    float *room[2][4];
    for (size_t i = 0; i < 8; i++)
        room[i / 4][i % 4] = s_room(count);
    memset(room[0][1], 0, count * sizeof(float));
    memset(room[0][2], 0, count * sizeof(float));
    s_norm(count, x, gain, bias, room[0][0], moments[0]);
    cpu_norm_forward(kernels, count, x, gain, bias, room[1][0], moments[1]);
    ops_assert_same(moments[0], moments[1], CPU_NORM_MOMENTS, kernels->name, "mean and scale");
    for (int row = 0; row < 2; row++) {
        s_norm_back(count, x, moments[0], gain, d, room[0][1], room[0][2], room[0][3]);
        cpu_norm_backward(kernels, count, x, moments[1], gain, d, row == 0, room[1][1], room[1][2], room[1][3]);
    }
    static const char *const what[] = {"norm", "gradient of the gain", "gradient of the bias", "gradient of the input"};
    for (size_t i = 0; i < 4; i++)
        s_check(room[0][i], room[1][i], count, kernels, what[i]);
    ops_free(gain);
    ops_free(bias);
    ops_free(d);
    ops_free(x);
}

static void s_check_norm(const tt_kernels_t *kernels, uint32_t seed)
{
    const size_t count = seed < 40 ? seed + 1 : ops_pick(seed, 0, 41, 700);
    s_check_norm_of(kernels, seed, count, ops_numbers(seed, 1, (ops_numbers_t)(seed % 3), count));
}

static void s_check_norm_nan(const tt_kernels_t *kernels, uint32_t seed)
{
    const size_t count = 20 + seed;
    float *x = ops_numbers(seed, 1, OPS_PLAIN, count);
    x[seed] = NAN;
    s_check_norm_of(kernels, seed, count, x);
}

static void test_layer_norm(void **state)
{
    (void)state;
    ops_on_builds(s_check_norm, CASES);
    ops_on_builds(s_check_norm_nan, 20);
}

/*  It does what its name says: mean 0 and deviation 1. */
static void s_check_normal(const tt_kernels_t *kernels, uint32_t seed)
{
    enum { COUNT = 500 };
    float *x = ops_numbers(seed, 1, OPS_PLAIN, COUNT), gain[COUNT], bias[COUNT], y[COUNT], moments[CPU_NORM_MOMENTS];
    double sum = 0, squares = 0;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = 5.0f + 3.0f * x[i];
        gain[i] = 1.0f;
        bias[i] = 0.0f;
    }
    cpu_norm_forward(kernels, COUNT, x, gain, bias, y, moments);
    for (size_t i = 0; i < COUNT; i++) {
        sum += y[i];
        squares += y[i] * y[i];
    }
    assert_true(fabs(sum / COUNT) < 1e-5 && fabs(squares / COUNT - 1.0) < 1e-4);
    ops_free(x);
}

static void test_normal(void **state)
{
    (void)state;
    ops_on_builds(s_check_normal, 3);
}

/* ---- activations -------------------------------------------------------------------------------------------------------------- */

static void s_check_activation(const tt_kernels_t *kernels, uint32_t seed)
{
    const size_t count = 1 + seed;
    const tt_nn_activation_t kind = (tt_nn_activation_t)(seed % 3);
    float *x = ops_numbers(seed, 1, (ops_numbers_t)(seed / 3 % 3), count), *d = ops_numbers(seed, 2, OPS_HOLES, count);
    float *y = s_room(count), *d_x = s_room(count), *got = s_room(count), *got_x = s_room(count);
    x[seed / 2] = seed % 2 ? NAN : -INFINITY;
    for (size_t i = 0; i < count; i++) {
        y[i] = ops_activate(kernels, kind, x[i]);
        d_x[i] = ops_derivative(kind, y[i], d[i]);
    }
    cpu_activate(kernels, kind, count, x, got);
    cpu_activate_back(kernels, kind, count, got, d, got_x);
    cpu_activate(kernels, kind, count, x, x); /* in place */
    ops_assert_same(y, x, count, kernels->name, "activation in place");
    cpu_activate_back(kernels, kind, count, x, d, d);
    ops_assert_same(d_x, d, count, kernels->name, "derivative in place");
    s_check(y, got, count, kernels, "activation");
    s_check(d_x, got_x, count, kernels, "derivative");
    ops_free(x);
    ops_free(d);
}

static void test_activations(void **state)
{
    (void)state;
    ops_on_builds(s_check_activation, CASES);
}

/* ---- widening ----------------------------------------------------------------------------------------------------------------- */

/*  Every byte at every place of a vector. */
static void s_check_widen(const tt_kernels_t *kernels, uint32_t seed)
{
    const float divisor = seed % 2 ? 255.0f : 1.0f;
    const size_t count = 256 + seed;
    uint8_t *in = malloc(count);
    float *expected = s_room(count), *got = s_room(count);
    for (size_t i = 0; i < count; i++) {
        in[i] = (uint8_t)(i + 5 * seed);
        expected[i] = (float)in[i] / divisor;
    }
    cpu_widen(kernels, count, in, divisor, got);
    s_check(expected, got, count, kernels, "widening");
    free(in);
}

static void s_check_planes(const tt_kernels_t *kernels, uint32_t seed)
{
    static const size_t channels_of[] = {1, 2, 3, 4, 4, 4, 7, 16, 65, 300, 4096, 5000};
    static const size_t deep_of[] = {1, 3, 1, 1, 2, 4500, 7};
    const size_t planes = channels_of[seed % TT_COUNT(channels_of)],
                 deep = planes < 8 ? deep_of[seed / 5 % TT_COUNT(deep_of)] : 1, channels = planes * deep,
                 pixels = ops_pick(seed, 0, 1, channels > 300 ? 3 : 300);
    const float divisor = seed / 12 % 2 ? 1.0f : 255.0f;
    uint8_t *in = malloc(channels * pixels);
    float *expected = s_room(channels * pixels), *got = s_room(channels * pixels);
    for (size_t i = 0; i < channels * pixels; i++) {
        in[i] = (uint8_t)ops_pick(seed, (uint32_t)i + 1, 0, 255);
        const size_t plane = i / deep / pixels, pixel = i / deep % pixels;
        expected[pixel * channels + plane * deep + i % deep] = (float)in[i] / divisor;
    }
    cpu_widen_planes(kernels, planes, deep, pixels, in, divisor, got);
    s_check(expected, got, channels * pixels, kernels, "widening of planes");
    free(in);
}

static void test_widening(void **state)
{
    (void)state;
    ops_on_builds(s_check_widen, CASES);
    ops_on_builds(s_check_planes, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_largest_window),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_widening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
