/*  Parity with PyTorch on recorded data (tests/golden/torch/record_nn.py): outputs, gradients, optimiser steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"
#include "tests/nn/golden.h"

enum { ROWS = 43, OUT = 3, STEPS = 3 };

/*  The loss of the script: 1/2 sum exp(-log_std) (head - target)^2 + 1/2 sum (value - target_value)^2. */
static void golden_loss(const void *ctx, const tt_loss_block_t *block)
{
    const golden_t *g = ctx;
    const float *target = golden_array(g, ROWS * OUT, "target"), *target_value = golden_array(g, ROWS, "target_value");
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        const bool there = r < block->rows;
        const uint32_t row = there ? block->row[r] : 0;
        for (uint32_t a = 0; a < OUT; a++) {
            const uint32_t i = a * TT_BLOCK + r;
            const float error = there ? block->head[0][i] - target[row * OUT + a] : 0.0f;
            const float scaled = expf(-block->log_std[0][a]) * error;
            block->d_head[0][i] = scaled;
            block->d_log_std[0][a] -= 0.5f * scaled * error;
            block->stats[0] += 0.5f * scaled * error;
        }
        const float error = there ? block->head[1][r] - target_value[row] : 0.0f;
        block->d_head[1][r] = error;
        block->stats[0] += 0.5f * error * error;
    }
}

static void check_networks(const golden_t *g)
{
    const float *data = golden_array(g, ROWS * 5, "obs"), *obs[ROWS];
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    uint32_t row[ROWS];
    float head[ROWS * OUT], value[ROWS];
    for (uint32_t r = 0; r < ROWS; r++) {
        row[r] = r;
        obs[r] = data + (size_t)r * 5;
    }
    float *const out[] = {head, value};
    assert_ok(tt_net_forward(g->net, 0, 0, obs, ROWS, out));
    golden_compare(head, golden_array(g, ROWS * OUT, "head"), ROWS * OUT, 2e-6, "head");
    golden_compare(value, golden_array(g, ROWS, "value"), ROWS, 2e-6, "value");
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    const tt_objective_t objective = {.name = "golden",
        .stages = 2,
        .stage = {{.tower = 0, .grad = true}, {.tower = 1, .grad = true}},
        .loss = golden_loss};
    const tt_pass_t pass = {.objective = &objective, .ctx = g, .obs = {obs}, .row = row, .rows = ROWS};
    assert_ok(tt_net_shard_grad(g->net, 0, &pass, grad));
    golden_compare(grad, golden_flatten(g, "grad."), g->count, 1e-5, "gradient");
    golden_compare(grad + tt_net_stats_offset(spec), golden_array(g, 1, "loss"), 1, 1e-5, "loss");
    free(grad);
}

static void check_optimiser(const golden_t *g, const char *name, const tt_opt_spec_t *opt, float lr)
{
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    float *state = tt_array0(tt_opt_state_count(opt, spec, 0), sizeof *state), norm = 0;
    float *params = tt_array0(g->count, sizeof *params);
    uint64_t step = 0;
    char prefix[32];
    assert_ok(tt_net_put(g->net, 0, golden_flatten(g, "")));
    for (int k = 0; k < STEPS; k++) {
        snprintf(prefix, sizeof prefix, "g.%d.", k);
        assert_ok(tt_net_apply(g->net, 0, opt, state, &step, golden_flatten(g, prefix), lr, &norm));
    }
    assert_int_equal(step, STEPS);
    golden_compare(&norm, golden_array(g, 1, "norm.%s", name), 1, 1e-6, "norm");
    assert_ok(tt_net_get(g->net, 0, params));
    snprintf(prefix, sizeof prefix, "%s.", name);
    golden_compare(params, golden_flatten(g, prefix), g->count, 1e-6, name);
    free(params);
    free(state);
}

static void check_file(const char *name, tt_nn_activation_t activation)
{
    const struct {
        const char *name;
        float lr;
        tt_opt_spec_t opt;
    } opts[] = {
        {"adam", 1e-3f, {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f}},
        {"adam_free", 1e-2f, {.kind = TT_OPT_ADAM, .beta1 = 0.8f, .beta2 = 0.99f, .eps = 1e-8f}},
        {"sgd", 1e-2f, {.kind = TT_OPT_SGD}},
        {"sgd_momentum", 1e-2f, {.kind = TT_OPT_SGD, .momentum = 0.9f, .max_norm = 1.0f}},
        {"rmsprop", 1e-3f, {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .eps = 1e-5f, .max_norm = 40.0f}},
        {"rmsprop_momentum", 1e-3f,
            {.kind = TT_OPT_RMSPROP, .alpha = 0.95f, .eps = 1e-8f, .momentum = 0.9f, .max_norm = 0.5f}},
    };
    golden_t g = {0};
    const tt_net_spec_t spec = tt_net_actor_critic(5, (uint32_t[]){18, 12}, 2, activation, OUT, OUT);
    golden_open(&g, name, &spec);
    check_networks(&g);
    for (size_t i = 0; i < TT_COUNT(opts); i++)
        check_optimiser(&g, opts[i].name, &opts[i].opt, opts[i].lr);
    golden_close(&g);
}

static void test_tanh(void **state)
{
    (void)state;
    check_file("nn-tanh.safetensors", TT_NN_TANH);
}

static void test_relu(void **state)
{
    (void)state;
    check_file("nn-relu.safetensors", TT_NN_RELU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_relu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
