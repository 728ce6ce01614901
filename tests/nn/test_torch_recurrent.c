/*  Parity with PyTorch on recorded data (tests/golden/torch/record_recurrent.py): LSTM and GRU step by step, and the gradients of
 *  sequences in which episodes begin; behind an encoder whose trunk another head reads, and one for each of two towers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"
#include "tests/nn/golden.h"

enum { STEPS = 6, ENVS = 35, ROWS = STEPS * ENVS, HEADS = 3 };

static const char *const s_heads[HEADS] = {"actor", "critic", "aux"};
static const uint32_t s_outs[HEADS] = {3, 1, 2};

/*  A convolution, and beside what recurs a head on it. */
static tt_net_spec_t shared_spec(tt_tower_kind_t kind)
{
    tt_net_spec_t spec = {
        .obs = 40,
        .parts = 1,
        .part = {{.elements = 40}},
        .towers = 3,
        .layers = 1,
        .layer = {{.kind = TT_LAYER_CONV2D, .units = 4, .kernel = {3, 3}, .stride = {1, 1}, .activation = TT_NN_RELU}},
        .tower = {{.name = "actor", .hidden_count = 1, .hidden = {12}, .out = 3, .log_std = 3},
            {.name = "critic", .out = 1}, {.name = "aux", .out = 2}},
    };
    const tt_tower_t encoder = {.name = "encoder", .layers = 1, .height = 4, .width = 5, .channels = 2, .planes = 2};
    tt_net_put_encoder(&spec, &encoder, false);
    tt_net_put_recurrent(&spec, kind, 20, false);
    spec.tower[4].from = 1;
    return spec;
}

static tt_net_spec_t separate_spec(tt_tower_kind_t kind)
{
    tt_net_spec_t spec = {
        .obs = 5,
        .towers = 2,
        .tower = {{.name = "actor", .hidden_count = 1, .hidden = {9}, .activation = TT_NN_RELU, .out = 3, .log_std = 3},
            {.name = "critic", .out = 1}},
    };
    tt_net_put_recurrent(&spec, kind, 17, true);
    return spec;
}

/*  1/2 the sum of (head - target)^2, the actor's times exp(-log_std), over the stages: actor, critic, aux. */
static void squares(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const golden_t *g = *(const golden_t *const *)params;
    for (uint32_t s = 0; s < HEADS && block->head[s]; s++) {
        const float *target = golden_array(g, (size_t)ROWS * s_outs[s], "target.%s", s_heads[s]);
        for (uint32_t i = 0; i < s_outs[s] * TT_BLOCK; i++) {
            const uint32_t a = i / TT_BLOCK, r = i % TT_BLOCK;
            const float error = r < block->rows ? block->head[s][i] - target[block->row[r] * s_outs[s] + a] : 0.0f;
            const float scaled = block->log_std[s] ? expf(-block->log_std[s][a]) * error : error;
            block->d_head[s][i] = scaled;
            block->stats[0] += 0.5f * scaled * error;
            if (block->log_std[s])
                block->d_log_std[s][a] -= 0.5f * scaled * error;
        }
    }
}

static tt_table_t *table_of(const golden_t *g, const void *rows, size_t bytes, size_t count)
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, g->place.device, bytes));
    assert_ok(tt_table_put(table, g->place.stream, rows, count));
    return table;
}

/*  Step by step, what is carried in one place; where an episode begins it is set to zeros before. */
static void check_steps(const golden_t *g)
{
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    const uint32_t C = tt_net_carry(spec);
    const float *begins = golden_array(g, ROWS, "begins");
    float *carry = tt_array0((size_t)ENVS * C, sizeof *carry), head[HEADS][ENVS * 3];
    memcpy(carry, golden_array(g, (size_t)ENVS * C, "carry"), (size_t)ENVS * C * sizeof *carry);
    tt_table_t *obs = table_of(g, golden_array(g, (size_t)ROWS * spec->obs, "obs"), tt_net_row_bytes(spec), ROWS);
    for (uint32_t t = 0; t < STEPS; t++) {
        float *out[TT_TOWERS_MAX] = {NULL};
        for (uint32_t h = 0; h < HEADS && tt_net_tower(spec, s_heads[h]) < spec->towers; h++)
            out[tt_net_tower(spec, s_heads[h])] = head[h];
        for (uint32_t e = 0; e < ENVS; e++)
            if (begins[t * ENVS + e] != 0.0f)
                memset(carry + e * C, 0, C * sizeof *carry);
        assert_ok(tt_net_forward_from(
            g->net, g->place.stream, 0, obs, (size_t)t * ENVS, ENVS, &(tt_carry_t){carry, carry}, out));
        assert_ok(tt_stream_sync(g->place.stream));
        for (uint32_t h = 0; h < HEADS && tt_net_tower(spec, s_heads[h]) < spec->towers; h++)
            golden_compare(head[h],
                golden_array(g, (size_t)ROWS * s_outs[h], "%s", s_heads[h]) + (size_t)t * ENVS * s_outs[h],
                (size_t)ENVS * s_outs[h], 5e-6, s_heads[h]);
    }
    golden_compare(carry, golden_array(g, (size_t)ENVS * C, "carried"), (size_t)ENVS * C, 2e-6, "carried");
    tt_table_destroy(&obs);
    free(carry);
}

static void check_gradient(const golden_t *g)
{
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    const uint32_t C = tt_net_carry(spec);
    tt_objective_t objective = {.name = "recurrent", .loss = squares};
    for (uint32_t h = 0; h < HEADS && tt_net_tower(spec, s_heads[h]) < spec->towers; h++)
        objective.stage[objective.stages++] =
            (tt_objective_stage_t){.tower = (uint8_t)tt_net_tower(spec, s_heads[h]), .grad = true};
    rows_t rows = fixture_rows(spec, ROWS);
    memcpy(rows.table, golden_array(g, (size_t)ROWS * spec->obs, "obs"), ROWS * tt_net_row_bytes(spec));
    uint8_t begins[ROWS];
    uint32_t row[ROWS];
    for (uint32_t k = 0; k < ROWS; k++) {
        begins[k] = golden_array(g, ROWS, "begins")[k] != 0.0f;
        row[k] = k % STEPS * ENVS + k / STEPS;
    }
    tt_table_t *carry = table_of(g, golden_array(g, (size_t)ENVS * C, "carry"), C * sizeof(float), ENVS);
    tt_table_t *begin = table_of(g, begins, 1, ROWS);
    const tt_pass_t pass = {.objective = &objective,
        .params = &g,
        .params_size = sizeof g,
        .row = row,
        .rows = ROWS,
        .length = STEPS,
        .carry = carry,
        .begins = begin};
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    assert_ok(fixture_pass(&g->place, g->net, &pass, &rows, NULL, grad));
    golden_compare(grad + tt_net_stats_offset(spec), golden_array(g, 1, "loss"), 1, 1e-5, "loss");
    golden_compare(grad, golden_flatten(g, "grad."), g->count, 2e-5, "gradient");
    free(grad);
    tt_table_destroy(&carry);
    tt_table_destroy(&begin);
    fixture_rows_free(&rows);
}

static void check(const char *file, tt_net_spec_t spec)
{
    golden_t g = {0};
    golden_open(&g, file, &spec);
    check_steps(&g);
    check_gradient(&g);
    golden_close(&g);
}

static void test_lstm(void **state)
{
    (void)state;
    check("nn-lstm-shared.safetensors", shared_spec(TT_TOWER_LSTM));
    check("nn-lstm-separate.safetensors", separate_spec(TT_TOWER_LSTM));
}

static void test_gru(void **state)
{
    (void)state;
    check("nn-gru-shared.safetensors", shared_spec(TT_TOWER_GRU));
    check("nn-gru-separate.safetensors", separate_spec(TT_TOWER_GRU));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_gru),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
