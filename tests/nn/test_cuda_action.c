/*  Towers that read an action, on a card: the bits of the CPU, with losses and a draw that are called on the host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/action_fixture.h"

/*  Gradients of both objectives, one behind the other. */
static float *s_gradients(const char *backend, size_t shape, size_t rows)
{
    stage_t stage;
    fixture_open_on(&stage.place, backend, 2);
    action_set_up(&stage, shape, rows);
    const size_t count = tt_net_grad_count(&stage.spec);
    float *grad = tt_array0(2 * count, sizeof *grad);
    const tt_pass_t actor = action_pass(&stage, &stage.actor), critic = action_pass(&stage, &stage.critic);
    assert_ok(action_gradient(&stage, &actor, grad));
    assert_ok(action_gradient(&stage, &critic, grad + count));
    action_tear_down(&stage);
    fixture_close(&stage.place);
    return grad;
}

static void test_the_cpus_bits(void **state)
{
    (void)state;
    static const size_t rows[] = {1, 32, 45};
    for (size_t shape = 0; shape < ACTION_SHAPES; shape++)
        for (size_t k = 0; k < TT_COUNT(rows); k++) {
            const tt_net_spec_t spec = action_spec(shape);
            float *want = s_gradients("cpu", shape, rows[k]), *got = s_gradients(fixture_card(), shape, rows[k]);
            assert_memory_equal(want, got, 2 * tt_net_grad_count(&spec) * sizeof *want);
            free(want);
            free(got);
        }
}

/*  As above, of some shards at once. */
static float *s_sums(const char *backend, tt_precision_t precision, size_t shape, action_way_t way)
{
    stage_t stage;
    fixture_open_on(&stage.place, backend, 2);
    assert_ok(tt_device_precision(stage.place.device, precision));
    action_set_up(&stage, shape, 75);
    const size_t count = tt_net_grad_count(&stage.spec);
    float *grad = tt_array0(2 * count, sizeof *grad);
    const tt_pass_t actor = action_pass(&stage, &stage.actor), critic = action_pass(&stage, &stage.critic);
    action_sum(&stage, &actor, way, 2, grad);
    action_sum(&stage, &critic, way, 2, grad + count);
    action_tear_down(&stage);
    fixture_close(&stage.place);
    return grad;
}

static void test_rows_of_frames(void **state)
{
    (void)state;
    const tt_net_spec_t spec = action_spec(ACTION_STACKED);
    float *want = s_sums("cpu", TT_EXACT, ACTION_STACKED, ACTION_ROWS);
    for (int way = 0; way < ACTION_WAYS; way++) {
        float *got = s_sums(fixture_card(), TT_EXACT, ACTION_STACKED, (action_way_t)way);
        assert_memory_equal(want, got, 2 * tt_net_grad_count(&spec) * sizeof *want);
        free(got);
    }
    free(want);
}

/*  Of all their numbers but those that stand behind the parameters: how far one gradient is from the other. */
static double s_off(const tt_net_spec_t *spec, const float *got, const float *exact)
{
    double off = 0, size = 0;
    for (size_t i = 0; i < tt_net_param_count(spec); i++) {
        const double missing = (double)got[i] - (double)exact[i];
        off += missing * missing;
        size += (double)exact[i] * (double)exact[i];
    }
    return sqrt(off / size);
}

/*  Products that are rounded, of layers large enough: near the CPU's, and of some not the same. */
static void test_rounded_products(void **state)
{
    (void)state;
    uint32_t rounded = 0;
    for (size_t shape = 0; shape < ACTION_SHAPES; shape++) {
        const tt_net_spec_t spec = action_spec(shape);
        const size_t count = tt_net_grad_count(&spec);
        float *exact = s_sums("cpu", TT_EXACT, shape, ACTION_ROWS);
        float *got = s_sums(fixture_card(), TT_TF32, shape, ACTION_ROWS);
        for (size_t objective = 0; objective < 2; objective++) {
            const double off = s_off(&spec, got + objective * count, exact + objective * count);
            if (!(off <= 0x1p-7))
                fail_msg("shape %zu: gradient %zu is off by %g of its size", shape, objective, off);
            rounded += off > 0;
        }
        free(exact);
        free(got);
    }
    if (strcmp(fixture_card(), "cuda-sim") == 0)
        assert_true(rounded >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_cpus_bits), cmocka_unit_test(test_rows_of_frames),
        cmocka_unit_test(test_rounded_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
