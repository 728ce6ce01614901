/*  Groups and sets: a step of one group leaves the others alone and is the step of a network of its own; a set that
 *  follows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

static const tt_opt_spec_t s_adam = {
    .kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f};

static float *floats_of(const tt_net_t *net, uint32_t set)
{
    float *params = tt_array0(tt_net_param_count(tt_net_spec(net)), sizeof *params);
    assert_ok(tt_net_get(net, set, params));
    return params;
}

static float *grad_of(tt_net_t *net, const rows_t *rows)
{
    float *grad = tt_array0(tt_net_grad_count(tt_net_spec(net)), sizeof *grad);
    fixture_grad(net, 0, rows, 0, rows->rows, grad);
    return grad;
}

/*  A network of one group of `spec` alone; its towers read nothing outside it. */
static tt_net_spec_t only_group(const tt_net_spec_t *spec, uint32_t group)
{
    tt_net_spec_t only = {.obs = spec->obs};
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].group == group) {
            only.tower[only.towers] = spec->tower[t];
            only.tower[only.towers++].group = 0;
        }
    return only;
}

/*  Its parameters after two steps, given the gradient's part, as a network of its own. */
static float *step_alone(
    tt_device_t *device, const tt_net_spec_t *spec, uint32_t group, const float *params, const float *grad, float *norm)
{
    const tt_net_spec_t only = only_group(spec, group);
    size_t first = 0, count = 0;
    tt_net_group_span(spec, group, &first, &count);
    assert_int_equal(tt_net_param_count(&only), count);
    tt_net_t *net = NULL;
    assert_ok(tt_net_new(&net, device, &only, 1));
    assert_ok(tt_net_put(net, 0, params + first));
    float *moments = tt_array0(tt_opt_state_count(&s_adam, &only, 0), sizeof *moments);
    float *own = tt_array0(tt_net_grad_count(&only), sizeof *own);
    memcpy(own, grad + first, count * sizeof *own);
    uint64_t step = 0;
    for (int i = 0; i < 2; i++)
        assert_ok(tt_net_apply(net, 0, &s_adam, moments, &step, own, 0.01f, norm));
    free(moments);
    free(own);
    float *out = floats_of(net, 0);
    tt_net_destroy(&net);
    return out;
}

static void check_group(tt_device_t *device, const tt_net_spec_t *spec, uint32_t group)
{
    const size_t all = tt_net_param_count(spec);
    size_t first = 0, count = 0;
    tt_net_group_span(spec, group, &first, &count);
    tt_net_t *net = fixture_net(device, spec, 1);
    rows_t rows = fixture_rows(spec, 40);
    float *before = floats_of(net, 0), *grad = grad_of(net, &rows), norm = 0, norm_alone = 0;
    float *moments = tt_array0(tt_opt_state_count(&s_adam, spec, group), sizeof *moments);
    assert_int_equal(tt_opt_state_count(&s_adam, spec, group), 2 * count);
    uint64_t step = 0;
    for (int i = 0; i < 2; i++)
        assert_ok(tt_net_apply(net, group, &s_adam, moments, &step, grad, 0.01f, &norm));
    assert_int_equal(step, 2);
    float *after = floats_of(net, 0);
    float *alone = step_alone(device, spec, group, before, grad, &norm_alone);
    assert_memory_equal(&norm, &norm_alone, sizeof norm);
    assert_memory_equal(after + first, alone, count * sizeof *after);
    assert_memory_equal(after, before, first * sizeof *after);
    assert_memory_equal(after + first + count, before + first + count, (all - first - count) * sizeof *after);
    free(before);
    free(after);
    free(alone);
    free(grad);
    free(moments);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
}

static void test_steps_of_groups(void **state)
{
    const size_t shapes[] = {14, 15};
    (void)state;
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    for (size_t i = 0; i < TT_COUNT(shapes); i++)
        for (uint32_t g = 0; g < tt_net_groups(&fixture_specs[shapes[i]]); g++)
            check_group(device, &fixture_specs[shapes[i]], g);
    tt_device_close(&device);
}

/*  What is not a number in one group does not stop another. */
static void test_bad_gradient_of_a_group(void **state)
{
    const tt_net_spec_t *spec = &fixture_specs[14];
    const tt_opt_spec_t sgd = {.kind = TT_OPT_SGD};
    (void)state;
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    tt_net_t *net = fixture_net(device, spec, 1);
    rows_t rows = fixture_rows(spec, 3);
    float *grad = grad_of(net, &rows);
    size_t first = 0, count = 0;
    uint64_t step[2] = {0, 0};
    tt_net_group_span(spec, 1, &first, &count);
    grad[first + count - 1] = INFINITY;
    assert_ok(tt_net_apply(net, 0, &sgd, NULL, &step[0], grad, 0.1f, NULL));
    assert_int_equal(tt_net_apply(net, 1, &sgd, NULL, &step[1], grad, 0.1f, NULL), TT_INVALID);
    assert_true(step[0] == 1 && step[1] == 0);
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    tt_device_close(&device);
}

/*  What set `to` thinks is what set 0 of a fresh network with its parameters thinks: derived copies are up to date. */
static void check_copies(tt_device_t *device, tt_net_t *net, uint32_t set)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    tt_net_t *fresh = fixture_net(device, spec, 1);
    rows_t rows = fixture_rows(spec, 9);
    const size_t outs = fixture_outs(spec) * rows.rows;
    float *params = floats_of(net, set), *out = tt_array0(2 * outs, sizeof *out);
    assert_ok(tt_net_put(fresh, 0, params));
    fixture_forward(net, 0, set, rows.obs, rows.rows, out);
    fixture_forward(fresh, 0, 0, rows.obs, rows.rows, out + outs);
    assert_memory_equal(out, out + outs, outs * sizeof *out);
    free(params);
    free(out);
    fixture_rows_free(&rows);
    tt_net_destroy(&fresh);
}

/*  Groups of the mask go tau of the way, to the bit; the others, and the other sets, stay. */
static void check_blend(tt_device_t *device, const tt_net_spec_t *spec, uint32_t groups, float tau)
{
    tt_net_t *net = fixture_net(device, spec, 1);
    rows_t rows = fixture_rows(spec, 20);
    float *grad = grad_of(net, &rows), *moments = NULL;
    for (uint32_t g = 0; g < tt_net_groups(spec); g++) {
        uint64_t step = 0;
        moments = tt_array0(tt_opt_state_count(&s_adam, spec, g), sizeof *moments);
        assert_ok(tt_net_apply(net, g, &s_adam, moments, &step, grad, 0.1f, NULL));
        free(moments);
    }
    float *from = floats_of(net, 0), *want = floats_of(net, 1);
    for (uint32_t g = 0; g < tt_net_groups(spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(spec, g, &first, &count);
        for (size_t i = first; (groups >> g & 1) && i < first + count; i++)
            want[i] = tau == 1.0f ? from[i] : fmaf(tau, from[i] - want[i], want[i]);
    }
    assert_ok(tt_net_blend(net, 1, 0, groups, tau));
    float *got = floats_of(net, 1), *still = floats_of(net, 0);
    assert_memory_equal(got, want, tt_net_param_count(spec) * sizeof *got);
    assert_memory_equal(still, from, tt_net_param_count(spec) * sizeof *got);
    check_copies(device, net, 1);
    free(got);
    free(still);
    free(from);
    free(want);
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
}

static void test_blend(void **state)
{
    const float tau[] = {0.0f, 0.005f, 0.5f, 1.0f};
    const char *const builds[] = {"portable", "avx2", "avx512"};
    (void)state;
    for (size_t b = 0; b < TT_COUNT(builds); b++) {
        tt_device_t *device = NULL;
        if (!fixture_device(&device, builds[b]))
            continue;
        for (size_t s = 13; s < fixture_spec_count; s++)
            for (size_t i = 0; i < TT_COUNT(tau); i++) {
                check_blend(device, &fixture_specs[s], 2, tau[i]);
                check_blend(device, &fixture_specs[s], (1u << tt_net_groups(&fixture_specs[s])) - 1, tau[i]);
            }
        tt_device_close(&device);
    }
    assert_int_equal(unsetenv("TT_CPU"), 0);
}

static void test_bad_blends(void **state)
{
    const tt_net_spec_t *spec = &fixture_specs[14]; /* two groups, three sets */
    (void)state;
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    tt_net_t *net = fixture_net(device, spec, 1);
    assert_int_equal(tt_net_blend(net, 3, 0, 1, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, 0, 3, 1, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, 1, 1, 1, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, 1, 0, 4, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, 1, 0, 1, NAN), TT_INVALID);
    assert_int_equal(tt_net_blend(net, 1, 0, 1, 1.5f), TT_INVALID);
    tt_net_destroy(&net);
    tt_device_close(&device);
}

/*  Moments of a unit that died fade away to 0, and are never so small that a processor has to take its time. */
static void test_moments_fade_to_zero(void **state)
{
    (void)state;
    enum { STEPS = 8000 };
    const tt_opt_spec_t kinds[] = {s_adam, {.kind = TT_OPT_SGD, .momentum = 0.9f},
        {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .momentum = 0.9f, .eps = 1e-5f}};
    const tt_net_spec_t spec = tt_net_one("x", 3, (const uint32_t[]){5}, 1, TT_NN_RELU, 2);
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    for (size_t k = 0; k < TT_COUNT(kinds); k++) {
        tt_net_t *net = fixture_net(device, &spec, 1);
        const size_t count = tt_opt_state_count(&kinds[k], &spec, 0);
        float *moments = tt_array0(count, sizeof *moments);
        float *grad = tt_array0(tt_net_grad_count(&spec), sizeof *grad);
        uint64_t step = 0;
        for (size_t i = 0; i < tt_net_param_count(&spec); i++)
            grad[i] = 0.1f;
        for (int n = 0; n < STEPS; n++) {
            assert_ok(tt_net_apply(net, 0, &kinds[k], moments, &step, grad, 1e-3f, NULL));
            memset(grad, 0, tt_net_grad_count(&spec) * sizeof *grad);
            for (size_t i = 0; i < count; i++)
                assert_true(moments[i] == 0 || fabsf(moments[i]) > 0x1p-100f);
        }
        assert_true(moments[0] == 0); /* Adam's mean, SGD's momentum, RMSProp's square: all of them decay so far */
        free(moments);
        free(grad);
        tt_net_destroy(&net);
    }
    tt_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_of_groups),
        cmocka_unit_test(test_bad_gradient_of_a_group),
        cmocka_unit_test(test_blend),
        cmocka_unit_test(test_bad_blends),
        cmocka_unit_test(test_moments_fade_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
