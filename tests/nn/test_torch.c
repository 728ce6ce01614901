/*  Parity with PyTorch on recorded data (tests/golden/torch/record_nn.py): outputs, gradients, optimiser steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/safetensors.h"
#include "tests/nn/fixture.h"
#include "tests/nn/st_file.h"

enum { ROWS = 43, OUT = 3, STEPS = 3 };

typedef struct {
    tt_st_t *file;
    tt_device_t *device;
    tt_net_t *net;
    size_t count; /* parameters */
    float *flat;  /* [count] scratch */
} golden_t;

static const float *array(const golden_t *g, size_t count, const char *fmt, ...)
{
    char name[96];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    const tt_st_array_t *found = tt_st_find(g->file, name);
    if (!found)
        fail_msg("no array %s in the recorded file", name);
    assert_int_equal(found->type, TT_ST_F32);
    assert_int_equal(found->bytes, count * sizeof(float));
    return found->data;
}

/*  g->flat[i] of every tensor, from "<prefix><tensor>"; files hold weights as [out][in]. */
static const float *flatten(const golden_t *g, const char *prefix)
{
    size_t tensor_count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(g->net, &tensor_count);
    for (size_t t = 0; t < tensor_count; t++) {
        const size_t in = tensors[t].rows, out = tensors[t].cols;
        const float *from = array(g, in * out, "%s%s", prefix, tensors[t].name);
        for (size_t i = 0; i < in; i++)
            for (size_t o = 0; o < out; o++)
                g->flat[tensors[t].offset + i * out + o] = from[o * in + i];
    }
    return g->flat;
}

static void assert_floats(const float *got, const float *expected, size_t count, double tolerance, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        const double error = fabs((double)got[i] - (double)expected[i]);
        if (!(error <= tolerance * (1 + fabs((double)expected[i]))))
            fail_msg("%s[%zu]: %.9g, PyTorch says %.9g", what, i, (double)got[i], (double)expected[i]);
    }
}

static void open_golden(golden_t *g, const char *name, tt_nn_activation_t activation)
{
    const tt_net_spec_t spec = {
        .obs = 5,
        .hidden_count = 2,
        .hidden = {18, 12},
        .activation = activation,
        .out = OUT,
        .log_std = OUT,
    };
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/torch/%s", TT_SOURCE_DIR, name);
    assert_ok(st_file(&g->file, path));
    assert_non_null(tt_st_meta(g->file, "torch"));
    assert_ok(tt_device_open(&g->device, "cpu", 0));
    assert_ok(tt_net_new(&g->net, g->device, &spec, 1));
    g->count = tt_net_param_count(&spec);
    g->flat = tt_array0(g->count, sizeof *g->flat);
    assert_ok(tt_net_put(g->net, flatten(g, "")));
}

static void close_golden(golden_t *g)
{
    tt_net_destroy(&g->net);
    tt_device_close(&g->device);
    tt_st_destroy(&g->file);
    free(g->flat);
}

/*  The loss of the script: 1/2 sum exp(-log_std) (head - target)^2 + 1/2 sum (value - target_value)^2. */
static void golden_loss(const void *ctx, const tt_loss_block_t *block)
{
    const golden_t *g = ctx;
    const float *target = array(g, ROWS * OUT, "target"), *target_value = array(g, ROWS, "target_value");
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        const bool there = r < block->rows;
        const uint32_t row = there ? block->row[r] : 0;
        for (uint32_t a = 0; a < OUT; a++) {
            const uint32_t i = a * TT_BLOCK + r;
            const float error = there ? block->head[i] - target[row * OUT + a] : 0.0f;
            const float scaled = expf(-block->log_std[a]) * error;
            block->d_head[i] = scaled;
            block->d_log_std[a] -= 0.5f * scaled * error;
            block->stats[0] += 0.5f * scaled * error;
        }
        const float error = there ? block->value[r] - target_value[row] : 0.0f;
        block->d_value[r] = error;
        block->stats[0] += 0.5f * error * error;
    }
}

static void check_networks(const golden_t *g)
{
    const float *data = array(g, ROWS * 5, "obs"), *obs[ROWS];
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    uint32_t row[ROWS];
    float head[ROWS * OUT], value[ROWS];
    for (uint32_t r = 0; r < ROWS; r++) {
        row[r] = r;
        obs[r] = data + (size_t)r * 5;
    }
    assert_ok(tt_net_forward(g->net, 0, obs, ROWS, head, value));
    assert_floats(head, array(g, ROWS * OUT, "head"), ROWS * OUT, 2e-6, "head");
    assert_floats(value, array(g, ROWS, "value"), ROWS, 2e-6, "value");
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    assert_ok(tt_net_shard_grad(g->net, 0, obs, row, ROWS, golden_loss, g, grad));
    assert_floats(grad, flatten(g, "grad."), g->count, 1e-5, "gradient");
    assert_floats(grad + tt_net_stats_offset(spec), array(g, 1, "loss"), 1, 1e-5, "loss");
    free(grad);
}

static void check_optimiser(const golden_t *g, const char *name, const tt_opt_spec_t *opt, float lr)
{
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    float *state = tt_array0(tt_opt_state_count(opt, spec), sizeof *state), norm = 0;
    float *params = tt_array0(g->count, sizeof *params);
    uint64_t step = 0;
    char prefix[32];
    assert_ok(tt_net_put(g->net, flatten(g, "")));
    for (int k = 0; k < STEPS; k++) {
        snprintf(prefix, sizeof prefix, "g.%d.", k);
        assert_ok(tt_net_apply(g->net, opt, state, &step, flatten(g, prefix), lr, &norm));
    }
    assert_int_equal(step, STEPS);
    assert_floats(&norm, array(g, 1, "norm.%s", name), 1, 1e-6, "norm");
    assert_ok(tt_net_get(g->net, params));
    snprintf(prefix, sizeof prefix, "%s.", name);
    assert_floats(params, flatten(g, prefix), g->count, 1e-6, name);
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
    open_golden(&g, name, activation);
    check_networks(&g);
    for (size_t i = 0; i < TT_COUNT(opts); i++)
        check_optimiser(&g, opts[i].name, &opts[i].opt, opts[i].lr);
    close_golden(&g);
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
