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
static void golden_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const golden_t *g = *(const golden_t *const *)params;
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
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    rows_t rows = golden_rows(g, "obs", spec->obs, ROWS);
    float head[ROWS * OUT], value[ROWS];
    float *const out[] = {head, value};
    fixture_heads(&g->place, g->net, 0, rows.obs, ROWS, out);
    golden_compare(head, golden_array(g, ROWS * OUT, "head"), ROWS * OUT, 2e-6, "head");
    golden_compare(value, golden_array(g, ROWS, "value"), ROWS, 2e-6, "value");
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    const tt_objective_t objective = {.name = "golden",
        .stages = 2,
        .stage = {{.tower = 0, .grad = true}, {.tower = 1, .grad = true}},
        .loss = golden_loss};
    const tt_pass_t pass = {
        .objective = &objective, .params = &g, .params_size = sizeof g, .row = rows.row, .rows = ROWS};
    assert_ok(fixture_pass(&g->place, g->net, &pass, &rows, NULL, grad));
    golden_compare(grad, golden_flatten(g, "grad."), g->count, 1e-5, "gradient");
    golden_compare(grad + tt_net_stats_offset(spec), golden_array(g, 1, "loss"), 1, 1e-5, "loss");
    free(grad);
    fixture_rows_free(&rows);
}

static void check_optimiser(const golden_t *g, const char *name, const tt_opt_spec_t *kind, float lr)
{
    float *grad = tt_array0(tt_net_grad_count(tt_net_spec(g->net)), sizeof *grad), norm = 0;
    tt_opt_t *opt = NULL;
    char prefix[32];
    assert_ok(tt_net_put(g->net, g->place.stream, 0, golden_flatten(g, "")));
    assert_ok(tt_opt_new(&opt, g->net, 0, kind));
    for (int k = 0; k < STEPS; k++) {
        snprintf(prefix, sizeof prefix, "g.%d.", k);
        memcpy(grad, golden_flatten(g, prefix), g->count * sizeof *grad);
        assert_ok(fixture_step(&g->place, g->net, opt, grad, lr, &norm));
    }
    assert_int_equal(tt_opt_steps(opt), STEPS);
    golden_compare(&norm, golden_array(g, 1, "norm.%s", name), 1, 1e-6, "norm");
    float *params = fixture_params(&g->place, g->net, 0);
    snprintf(prefix, sizeof prefix, "%s.", name);
    golden_compare(params, golden_flatten(g, prefix), g->count, 1e-6, name);
    free(params);
    free(grad);
    tt_opt_destroy(&opt);
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
