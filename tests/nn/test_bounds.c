/*  What is not a number, and what is too large: a row's NaN stays in its row, a gradient's stops the step; tanh over its
 *  whole range. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cpu/cpu.h"
#include "tests/nn/fixture.h"

static const char *const s_builds[] = {"portable", "avx2", "avx512"};

/*  One-hot choices that are looked up are no numbers to compute with. */
static bool is_embedded(const tt_net_spec_t *spec, uint32_t part)
{
    for (uint32_t l = 0; l < spec->layers; l++)
        if (spec->layer[l].kind == TT_LAYER_EMBED && spec->layer[l].part == part)
            return true;
    return false;
}

/*  Where in a row a float lies, of those there are the last part's last. */
static bool find_float(const tt_net_spec_t *spec, size_t *at)
{
    size_t end = spec->parts ? 0 : spec->obs * sizeof(float);
    bool found = !spec->parts;
    for (uint32_t p = 0; p < spec->parts; p++) {
        end += tt_spec_part_bytes(&spec->part[p]);
        const bool number = !spec->part[p].bytes && !is_embedded(spec, p);
        found |= number;
        *at = number ? end - sizeof(float) : *at;
    }
    *at = spec->parts ? *at : end - sizeof(float);
    return found;
}

static void check_nan_row(const place_t *place, const tt_net_spec_t *spec)
{
    enum { ROWS = 9, BAD = 5 };
    tt_net_t *net = fixture_net(place, spec);
    rows_t rows = fixture_rows(spec, ROWS);
    const size_t outs = fixture_outs(spec);
    float *good = tt_array0(ROWS * outs, sizeof *good), *bad = tt_array0(ROWS * outs, sizeof *bad);
    char *broken = tt_array0(1, tt_net_row_bytes(spec));
    size_t where = 0;
    fixture_forward(place, net, 0, rows.obs, ROWS, good);
    const bool breaks = find_float(spec, &where);
    memcpy(broken + where, &(float){NAN}, breaks ? sizeof(float) : 0);
    rows.obs[BAD] = (const void *)broken;
    fixture_forward(place, net, 0, rows.obs, ROWS, bad);
    size_t at = 0;
    for (uint32_t t = 0; t < spec->towers; t++)
        for (size_t k = 0; k < ROWS; k++, at += spec->tower[t].out) {
            if (k == BAD && spec->tower[t].out)
                assert_true(isnan(bad[at]) == breaks);
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
        place_t place;
        if (!fixture_build(&place, s_builds[b]))
            continue;
        for (size_t s = 0; s < fixture_spec_count; s++)
            check_nan_row(&place, &fixture_specs[s]);
        fixture_close(&place);
    }
}

static void assert_state(const place_t *place, const tt_opt_t *opt, const float *want, size_t count)
{
    float *state = tt_array0(count, sizeof *state);
    assert_ok(tt_opt_get(opt, place->stream, state));
    assert_memory_equal(state, want, count * sizeof *state);
    free(state);
}

/*  NaN, infinity and an overflowing norm change nothing and are reported; a NaN among the statistics is not ours. */
static void test_step_with_bad_gradient(void **state)
{
    (void)state;
    const tt_net_spec_t *spec = &fixture_specs[0];
    const tt_opt_spec_t adam = {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f};
    const float bad[] = {NAN, INFINITY, -INFINITY, FLT_MAX};
    const size_t count = tt_net_param_count(spec);
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, spec);
    tt_opt_t *opt = NULL;
    assert_ok(tt_opt_new(&opt, net, 0, &adam));
    float *before = fixture_params(&place, net, 0), *zeros = tt_array0(2 * count, sizeof *zeros);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad), norm = -1.0f;
    assert_ok(tt_opt_put(opt, place.stream, zeros, 3));
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        grad[count - 1 - i] = bad[i];
        assert_int_equal(fixture_step(&place, net, opt, grad, 0.1f, &norm), TT_INVALID);
        char step[40];
        snprintf(step, sizeof step, "optimiser step %zu: ", 4 + i);
        assert_non_null(strstr(tt_err_text(), step));
        grad[count - 1 - i] = 0.0f;
        float *after = fixture_params(&place, net, 0);
        assert_memory_equal(before, after, count * sizeof *before);
        free(after);
        assert_state(&place, opt, zeros, 2 * count);
        assert_true(norm == -1.0f);
    }
    grad[tt_net_stats_offset(spec)] = NAN;
    assert_ok(fixture_step(&place, net, opt, grad, 0.1f, &norm));
    assert_true(tt_opt_steps(opt) == 8 && norm == 0.0f);
    free(before);
    free(zeros);
    free(grad);
    tt_opt_destroy(&opt);
    tt_net_destroy(&net);
    fixture_close(&place);
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
        place_t place;
        if (!fixture_build(&place, s_builds[b]))
            continue;
        check_tanh(((const cpu_device_t *)place.device)->kernels);
        fixture_close(&place);
    }
}

static void test_no_rows(void **state)
{
    (void)state;
    const tt_net_spec_t *spec = &fixture_specs[2];
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, spec);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad), untouched = 7.0f;
    float *const out[] = {&untouched, &untouched};
    const rows_t none = {0};
    grad[0] = grad[tt_net_grad_count(spec) - 1] = 7.0f;
    assert_ok(tt_net_forward(net, place.stream, 0, NULL, 0, NULL, out));
    fixture_grad(&place, net, &none, 0, 0, grad);
    assert_true(untouched == 7.0f);
    for (size_t i = 0; i < tt_net_grad_count(spec); i++)
        assert_true(grad[i] == 0.0f);
    free(grad);
    tt_net_destroy(&net);
    fixture_close(&place);
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
