/*  What is not a number, and what is too large: a row's NaN stays in its row, a gradient's stops the step; tanh over its
 *  whole range. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cpu/cpu.h"
#include "tests/nn/fixture.h"

static const char *const s_builds[] = {"portable", "avx2", "avx512"};

static void check_nan_row(tt_device_t *device, const tt_net_spec_t *spec)
{
    enum { ROWS = 9, BAD = 5 };
    tt_net_t *net = fixture_net(device, spec, 1);
    rows_t rows = fixture_rows(spec, ROWS);
    const size_t outs = fixture_outs(spec);
    float *good = tt_array0(ROWS * outs, sizeof *good), *bad = tt_array0(ROWS * outs, sizeof *bad);
    float *broken = tt_array0(spec->obs, sizeof *broken);
    fixture_forward(net, 0, 0, rows.obs, ROWS, good);
    broken[spec->obs - 1] = NAN;
    rows.obs[BAD] = broken;
    fixture_forward(net, 0, 0, rows.obs, ROWS, bad);
    size_t at = 0;
    for (uint32_t t = 0; t < spec->towers; t++)
        for (size_t k = 0; k < ROWS; k++, at += spec->tower[t].out) {
            if (k == BAD && spec->tower[t].out)
                assert_true(isnan(bad[at]));
            else
                assert_memory_equal(good + at, bad + at, spec->tower[t].out * sizeof *good);
        }
    free(broken);
    free(good);
    free(bad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
}

static void test_nan_stays_in_its_row(void **state)
{
    (void)state;
    for (size_t b = 0; b < TT_COUNT(s_builds); b++) {
        tt_device_t *device = NULL;
        if (!fixture_device(&device, s_builds[b]))
            continue;
        for (size_t s = 0; s < fixture_spec_count; s++)
            check_nan_row(device, &fixture_specs[s]);
        tt_device_close(&device);
    }
}

/*  NaN, infinity and an overflowing norm are refused before anything changes; a NaN among the statistics is not ours. */
static void test_step_with_bad_gradient(void **state)
{
    (void)state;
    const tt_net_spec_t *spec = &fixture_specs[0];
    const tt_opt_spec_t adam = {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f};
    const float bad[] = {NAN, INFINITY, -INFINITY, FLT_MAX};
    const size_t count = tt_net_param_count(spec);
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    tt_net_t *net = fixture_net(device, spec, 1);
    float *before = tt_array0(count, sizeof *before), *after = tt_array0(count, sizeof *after);
    float *moments = tt_array0(2 * count, sizeof *moments), *zeros = tt_array0(2 * count, sizeof *zeros);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad), norm = -1.0f;
    uint64_t step = 3;
    assert_ok(tt_net_get(net, 0, before));
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        grad[count - 1 - i] = bad[i];
        assert_int_equal(tt_net_apply(net, 0, &adam, moments, &step, grad, 0.1f, &norm), TT_INVALID);
        grad[count - 1 - i] = 0.0f;
        assert_ok(tt_net_get(net, 0, after));
        assert_memory_equal(before, after, count * sizeof *before);
        assert_memory_equal(moments, zeros, 2 * count * sizeof *zeros);
        assert_true(step == 3 && norm == -1.0f);
    }
    grad[tt_net_stats_offset(spec)] = NAN;
    assert_ok(tt_net_apply(net, 0, &adam, moments, &step, grad, 0.1f, &norm));
    assert_true(step == 4 && norm == 0.0f);
    free(before);
    free(after);
    free(moments);
    free(zeros);
    free(grad);
    tt_net_destroy(&net);
    tt_device_close(&device);
}

/*  Every 4099th float, so that every exponent is met: odd, within [-1, 1], 3.1e-7 from libm's; zero and NaN kept. */
static void check_tanh(const tt_kernels_t *kernels)
{
    float x[16], y[16];
    double worst = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u - 16 * 4099; bits += 16 * 4099) {
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t pattern = (bits + (i / 2) * 4099) | (i & 1) << 31;
            memcpy(&x[i], &pattern, sizeof pattern);
        }
        kernels->tanh(16, x, y);
        for (uint32_t i = 0; i < 16; i += 2) {
            assert_true(y[i] == -y[i + 1] && y[i] <= 1.0f);
            worst = fmax(worst, fabs((double)y[i] - tanh((double)x[i])));
        }
    }
    if (worst > 3.1e-7)
        fail_msg("tanh is off by %g", worst);
    const float special[3] = {NAN, INFINITY, -0.0f};
    kernels->tanh(3, special, y);
    assert_true(isnan(y[0]) && y[1] <= 1.0f && y[1] > 0.9999995f && y[2] == 0.0f && signbit(y[2]));
}

static void test_tanh(void **state)
{
    (void)state;
    for (size_t b = 0; b < TT_COUNT(s_builds); b++) {
        tt_device_t *device = NULL;
        if (!fixture_device(&device, s_builds[b]))
            continue;
        check_tanh(((const cpu_device_t *)device)->kernels);
        tt_device_close(&device);
    }
}

static void test_no_rows(void **state)
{
    (void)state;
    const tt_net_spec_t *spec = &fixture_specs[2];
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    tt_net_t *net = fixture_net(device, spec, 1);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad), untouched = 7.0f;
    float *const out[] = {&untouched, &untouched};
    const rows_t none = {0};
    grad[0] = grad[tt_net_grad_count(spec) - 1] = 7.0f;
    assert_ok(tt_net_forward(net, 0, 0, NULL, 0, out));
    fixture_grad(net, 0, &none, 0, 0, grad);
    assert_true(untouched == 7.0f);
    for (size_t i = 0; i < tt_net_grad_count(spec); i++)
        assert_true(grad[i] == 0.0f);
    free(grad);
    tt_net_destroy(&net);
    tt_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan_stays_in_its_row),
        cmocka_unit_test(test_step_with_bad_gradient),
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
