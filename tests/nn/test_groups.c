/*  Groups and sets: a step of one group leaves the others alone and is the step of a network of its own; a set that
 *  follows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

static const tt_opt_spec_t s_adam = {
    .kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f};

static float *grad_of(const place_t *place, tt_net_t *net, const rows_t *rows)
{
    float *grad = tt_array0(tt_net_grad_count(tt_net_spec(net)), sizeof *grad);
    fixture_grad(place, net, rows, 0, rows->rows, grad);
    return grad;
}

/*  A network of one group of `spec` alone; its towers read nothing outside it. */
static tt_net_spec_t only_group(const tt_net_spec_t *spec, uint32_t group)
{
    tt_net_spec_t only = {.obs = spec->obs, .parts = spec->parts};
    memcpy(only.part, spec->part, sizeof only.part);
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].group == group) {
            only.tower[only.towers] = spec->tower[t];
            only.tower[only.towers++].group = 0;
        }
    return only;
}

/*  Its parameters after two steps, given the gradient's part, as a network of its own. */
static float *step_alone(const place_t *place, const tt_net_spec_t *spec, uint32_t group, const float *params,
    const float *grad, float *norm)
{
    const tt_net_spec_t only = only_group(spec, group);
    size_t first = 0, count = 0;
    tt_net_group_span(spec, group, &first, &count);
    assert_int_equal(tt_net_param_count(&only), count);
    tt_net_t *net = NULL;
    tt_opt_t *opt = NULL;
    assert_ok(tt_net_new(&net, place->device, &only));
    assert_ok(tt_net_put(net, place->stream, 0, params + first));
    assert_ok(tt_opt_new(&opt, net, 0, &s_adam));
    float *own = tt_array0(tt_net_grad_count(&only), sizeof *own);
    memcpy(own, grad + first, count * sizeof *own);
    for (int i = 0; i < 2; i++)
        assert_ok(fixture_step(place, net, opt, own, 0.01f, norm));
    tt_opt_destroy(&opt);
    free(own);
    float *out = fixture_params(place, net, 0);
    tt_net_destroy(&net);
    return out;
}

static void check_group(const place_t *place, const tt_net_spec_t *spec, uint32_t group)
{
    const size_t all = tt_net_param_count(spec);
    size_t first = 0, count = 0;
    tt_net_group_span(spec, group, &first, &count);
    tt_net_t *net = fixture_net(place, spec);
    rows_t rows = fixture_rows(spec, 40);
    float *before = fixture_params(place, net, 0), *grad = grad_of(place, net, &rows), norm = 0, norm_alone = 0;
    tt_opt_t *opt = NULL;
    assert_ok(tt_opt_new(&opt, net, group, &s_adam));
    assert_int_equal(tt_opt_state_count(&s_adam, spec, group), 2 * count);
    for (int i = 0; i < 2; i++)
        assert_ok(fixture_step(place, net, opt, grad, 0.01f, &norm));
    assert_int_equal(tt_opt_steps(opt), 2);
    float *after = fixture_params(place, net, 0);
    float *alone = step_alone(place, spec, group, before, grad, &norm_alone);
    assert_memory_equal(&norm, &norm_alone, sizeof norm);
    assert_memory_equal(after + first, alone, count * sizeof *after);
    assert_memory_equal(after, before, first * sizeof *after);
    assert_memory_equal(after + first + count, before + first + count, (all - first - count) * sizeof *after);
    free(before);
    free(after);
    free(alone);
    free(grad);
    tt_opt_destroy(&opt);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
}

static void test_steps_of_groups(void **state)
{
    const size_t shapes[] = {14, 15};
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t i = 0; i < TT_COUNT(shapes); i++)
        for (uint32_t g = 0; g < tt_net_groups(&fixture_specs[shapes[i]]); g++)
            check_group(&place, &fixture_specs[shapes[i]], g);
    fixture_close(&place);
}

/*  What is not a number in one group does not stop another; the report says so once. */
static void test_bad_gradient_of_a_group(void **state)
{
    const tt_net_spec_t *spec = &fixture_specs[14];
    const tt_opt_spec_t sgd = {.kind = TT_OPT_SGD};
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, spec);
    rows_t rows = fixture_rows(spec, 3);
    float *grad = grad_of(&place, net, &rows), *before = fixture_params(&place, net, 0);
    tt_norms_t norms;
    tt_opt_t *opt[2] = {NULL};
    tt_sums_t *sums = NULL;
    size_t first = 0, count = 0;
    tt_net_group_span(spec, 1, &first, &count);
    grad[first + count - 1] = INFINITY;
    assert_ok(tt_sums_new(&sums, net, 1));
    assert_ok(tt_sums_put(sums, place.stream, grad));
    for (uint32_t g = 0; g < 2; g++) {
        assert_ok(tt_opt_new(&opt[g], net, g, &sgd));
        assert_ok(tt_opt_step(opt[g], place.stream, sums, 0.1f));
    }
    assert_int_equal(fixture_report(&place, net, sums, NULL, &norms), TT_INVALID);
    assert_ok(fixture_report(&place, net, sums, NULL, &norms));
    assert_true(norms.newest[0] > 0 && norms.newest[1] == INFINITY);
    float *after = fixture_params(&place, net, 0);
    assert_true(memcmp(before, after, first * sizeof *after) != 0);
    assert_memory_equal(before + first, after + first, count * sizeof *after);
    for (uint32_t g = 0; g < 2; g++)
        tt_opt_destroy(&opt[g]);
    tt_sums_destroy(&sums);
    free(before);
    free(after);
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  What set `to` thinks is what set 0 of a fresh network with its parameters thinks: derived copies are up to date. */
static void check_copies(const place_t *place, tt_net_t *net, uint32_t set)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    tt_net_t *fresh = fixture_net(place, spec);
    rows_t rows = fixture_rows(spec, 9);
    const size_t outs = fixture_outs(spec) * rows.rows;
    float *params = fixture_params(place, net, set), *out = tt_array0(2 * outs, sizeof *out);
    assert_ok(tt_net_put(fresh, place->stream, 0, params));
    assert_ok(tt_net_noise(net, place->stream, set, NULL)); /* each set has a noise of its own */
    assert_ok(tt_net_noise(fresh, place->stream, 0, NULL));
    fixture_forward(place, net, set, rows.obs, rows.rows, out);
    fixture_forward(place, fresh, 0, rows.obs, rows.rows, out + outs);
    assert_memory_equal(out, out + outs, outs * sizeof *out);
    free(params);
    free(out);
    fixture_rows_free(&rows);
    tt_net_destroy(&fresh);
}

/*  Groups of the mask go tau of the way, to the bit; the others, and the other sets, stay. */
static void check_blend(const place_t *place, const tt_net_spec_t *spec, uint32_t groups, float tau)
{
    tt_net_t *net = fixture_net(place, spec);
    rows_t rows = fixture_rows(spec, 20);
    float *grad = grad_of(place, net, &rows);
    for (uint32_t g = 0; g < tt_net_groups(spec); g++) {
        tt_opt_t *opt = NULL;
        assert_ok(tt_opt_new(&opt, net, g, &s_adam));
        assert_ok(fixture_step(place, net, opt, grad, 0.1f, NULL));
        tt_opt_destroy(&opt);
    }
    float *from = fixture_params(place, net, 0), *want = fixture_params(place, net, 1);
    for (uint32_t g = 0; g < tt_net_groups(spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(spec, g, &first, &count);
        for (size_t i = first; (groups >> g & 1) && i < first + count; i++)
            want[i] = tau == 1.0f ? from[i] : fmaf(tau, from[i] - want[i], want[i]);
    }
    assert_ok(tt_net_blend(net, place->stream, 1, 0, groups, tau));
    float *got = fixture_params(place, net, 1), *still = fixture_params(place, net, 0);
    assert_memory_equal(got, want, tt_net_param_count(spec) * sizeof *got);
    assert_memory_equal(still, from, tt_net_param_count(spec) * sizeof *got);
    check_copies(place, net, 1);
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
        place_t place;
        if (!fixture_build(&place, builds[b]))
            continue;
        for (size_t s = 13; s < fixture_spec_count; s++)
            for (size_t i = 0; i < TT_COUNT(tau) && fixture_specs[s].sets > 1; i++) {
                if (tt_net_groups(&fixture_specs[s]) > 1)
                    check_blend(&place, &fixture_specs[s], 2, tau[i]);
                check_blend(&place, &fixture_specs[s], (1u << tt_net_groups(&fixture_specs[s])) - 1, tau[i]);
            }
        fixture_close(&place);
    }
}

static void test_bad_blends(void **state)
{
    const tt_net_spec_t *spec = &fixture_specs[14]; /* two groups, three sets */
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, spec);
    assert_int_equal(tt_net_blend(net, place.stream, 3, 0, 1, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, place.stream, 0, 3, 1, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, place.stream, 1, 1, 1, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, place.stream, 1, 0, 4, 0.5f), TT_INVALID);
    assert_int_equal(tt_net_blend(net, place.stream, 1, 0, 1, NAN), TT_INVALID);
    assert_int_equal(tt_net_blend(net, place.stream, 1, 0, 1, 1.5f), TT_INVALID);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  Moments of a unit that died fade away to 0, and are never so small that a processor has to take its time. */
static void test_moments_fade_to_zero(void **state)
{
    (void)state;
    enum { STEPS = 8000 };
    const tt_opt_spec_t kinds[] = {s_adam, {.kind = TT_OPT_SGD, .momentum = 0.9f},
        {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .momentum = 0.9f, .eps = 1e-5f}};
    const tt_net_spec_t spec = tt_net_one("x", 3, (const uint32_t[]){5}, 1, TT_NN_RELU, 2);
    place_t place;
    fixture_open(&place, 1);
    for (size_t k = 0; k < TT_COUNT(kinds); k++) {
        tt_net_t *net = fixture_net(&place, &spec);
        tt_opt_t *opt = NULL;
        assert_ok(tt_opt_new(&opt, net, 0, &kinds[k]));
        const size_t count = tt_opt_state_count(&kinds[k], &spec, 0);
        float *moments = tt_array0(count, sizeof *moments);
        float *grad = tt_array0(tt_net_grad_count(&spec), sizeof *grad);
        for (size_t i = 0; i < tt_net_param_count(&spec); i++)
            grad[i] = 0.1f;
        for (int n = 0; n < STEPS; n++) {
            assert_ok(fixture_step(&place, net, opt, grad, 1e-3f, NULL));
            assert_ok(tt_opt_get(opt, place.stream, moments));
            memset(grad, 0, tt_net_grad_count(&spec) * sizeof *grad);
            for (size_t i = 0; i < count; i++)
                assert_true(moments[i] == 0 || fabsf(moments[i]) > 0x1p-100f);
        }
        assert_true(moments[0] == 0); /* Adam's mean, SGD's momentum, RMSProp's square: all of them decay so far */
        free(moments);
        free(grad);
        tt_opt_destroy(&opt);
        tt_net_destroy(&net);
    }
    fixture_close(&place);
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
