/*  Towers that read an action, on a card: the bits of the CPU, with losses and a draw that are called on the host. */
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
static float *s_sums(const char *backend, size_t shape, action_way_t way)
{
    stage_t stage;
    fixture_open_on(&stage.place, backend, 2);
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
    float *want = s_sums("cpu", ACTION_STACKED, ACTION_ROWS);
    for (int way = 0; way < ACTION_WAYS; way++) {
        float *got = s_sums(fixture_card(), ACTION_STACKED, (action_way_t)way);
        assert_memory_equal(want, got, 2 * tt_net_grad_count(&spec) * sizeof *want);
        free(got);
    }
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_cpus_bits), cmocka_unit_test(test_rows_of_frames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
