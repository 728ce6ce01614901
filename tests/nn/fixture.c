#include "tests/nn/fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"

const tt_net_spec_t fixture_specs[] = {
    {.obs = 4, .hidden_count = 2, .hidden = {64, 64}, .out = 2},
    {.obs = 4, .hidden_count = 2, .hidden = {64, 64}, .activation = TT_NN_RELU, .out = 2},
    {.obs = 3, .hidden_count = 2, .hidden = {64, 64}, .out = 1, .log_std = 1},
    {.obs = 1, .hidden_count = 0, .out = 1},
    {.obs = 17, .hidden_count = 0, .out = 3, .log_std = 3},
    {.obs = 5, .hidden_count = 1, .hidden = {1}, .out = 2},
    {.obs = 6, .hidden_count = 1, .hidden = {7}, .activation = TT_NN_RELU, .out = 5},
    {.obs = 16, .hidden_count = 3, .hidden = {33, 18, 50}, .out = 4, .log_std = 4},
    {.obs = 31, .hidden_count = 2, .hidden = {80, 96}, .out = 6},
    {.obs = 100, .hidden_count = 2, .hidden = {128, 130}, .activation = TT_NN_RELU, .out = 18},
    {.obs = 9, .hidden_count = 8, .hidden = {16, 15, 14, 13, 12, 11, 10, 9}, .out = 33, .log_std = 33},
};
const size_t fixture_spec_count = TT_COUNT(fixture_specs);

float fixture_number(uint32_t what, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 77, TT_STREAM_TEST, what, k);
    return 2.0f * tt_unit_f32(word[0]) - 1.0f;
}

rows_t fixture_rows(const tt_net_spec_t *spec, size_t rows)
{
    rows_t self = {.rows = rows};
    self.data = tt_array0(rows * spec->obs, sizeof *self.data);
    self.obs = tt_array0(rows, sizeof *self.obs);
    self.row = tt_array0(rows, sizeof *self.row);
    for (size_t i = 0; i < rows * spec->obs; i++)
        self.data[i] = 2.0f * fixture_number(3, i);
    for (size_t k = 0; k < rows; k++) {
        self.row[k] = (uint32_t)(rows - 1 - k);
        self.obs[k] = self.data + self.row[k] * spec->obs;
    }
    return self;
}

void fixture_rows_free(rows_t *rows)
{
    free(rows->data);
    free(rows->obs);
    free(rows->row);
    *rows = (rows_t){0};
}

bool fixture_device(tt_device_t **device_p, const char *build)
{
    assert_int_equal(setenv("TT_CPU", build, 1), 0);
    const tt_status_t status = tt_device_open(device_p, "cpu", 0);
    if (status == TT_UNSUPPORTED) {
        printf("not tested: %s\n", tt_err_text());
        return false;
    }
    assert_ok(status);
    char name[32];
    snprintf(name, sizeof name, "cpu/%s", build);
    assert_string_equal(tt_device_name(*device_p), name);
    return true;
}

tt_net_t *fixture_net(tt_device_t *device, const tt_net_spec_t *spec, uint32_t lanes)
{
    tt_net_t *net = NULL;
    assert_ok(tt_net_new(&net, device, spec, lanes));
    size_t count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(net, &count);
    float *params = tt_array0(tt_net_param_count(spec), sizeof *params);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < (size_t)tensors[t].rows * tensors[t].cols; i++) {
            const float x = fixture_number(100 + (uint32_t)t, i);
            float *at = &params[tensors[t].offset + i];
            if (strstr(tensors[t].name, "weight"))
                *at = x * 1.7f / sqrtf((float)tensors[t].rows);
            else
                *at = strstr(tensors[t].name, "log_std") ? -0.3f + 0.2f * x : 0.3f * x;
        }
    assert_ok(tt_net_put(net, params));
    free(params);
    return net;
}

float fixture_target(uint32_t row, uint32_t output)
{
    return 1.5f * fixture_number(2, (uint64_t)row << 16 | output);
}

void fixture_loss(const void *ctx, const tt_loss_block_t *block)
{
    const tt_net_spec_t *spec = ctx;
    assert_true(block->rows >= 1 && block->rows <= TT_BLOCK);
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        const bool there = r < block->rows;
        for (uint32_t a = 0; a < spec->out; a++) {
            const uint32_t i = a * TT_BLOCK + r;
            if (!there)
                assert_true(block->head[i] == 0.0f);
            const float scale = spec->log_std ? expf(-block->log_std[a]) : 1.0f;
            const float error = there ? block->head[i] - fixture_target(block->row[r], a) : 0.0f;
            block->d_head[i] = scale * error;
            if (spec->log_std && there)
                block->d_log_std[a] -= 0.5f * scale * error * error;
            block->stats[0] += 0.5f * scale * error * error;
        }
        if (!there)
            assert_true(block->value[r] == 0.0f);
        const float error = there ? block->value[r] - fixture_target(block->row[r], spec->out) : 0.0f;
        block->d_value[r] = error;
        block->stats[0] += 0.5f * error * error;
        block->stats[1] += there ? 1.0f : 0.0f;
    }
}
