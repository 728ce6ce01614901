#include "tests/nn/action_fixture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/*  Observations that end before, at and behind a vector's end; actions that go over it. */
static const struct {
    uint32_t obs, action, hidden[3], hidden_count;
    tt_nn_activation_t activation;
} s_shapes[ACTION_SHAPES] = {
    {1, 1, {8}, 1, TT_NN_TANH},
    {15, 3, {16, 24}, 2, TT_NN_RELU},
    {17, 6, {64, 64}, 2, TT_NN_TANH},
    {32, 5, {80, 33, 18}, 3, TT_NN_RELU},
    {3, 20, {20, 16}, 2, TT_NN_TANH},
};

tt_net_spec_t action_spec(size_t i)
{
    tt_net_spec_t spec = tt_net_soft_actor_critic(s_shapes[i].obs, s_shapes[i].hidden, s_shapes[i].hidden_count,
        s_shapes[i].activation, 2 * s_shapes[i].action, s_shapes[i].action);
    spec.sets = 2;
    return spec;
}

/*  action = mean + (1 + scale / 4) noise: of the head's first and last half. */
static void draw(const void *params, const void *const *input, const tt_loss_block_t *block, float *action)
{
    const uint32_t A = *(const uint32_t *)params;
    for (uint32_t a = 0; a < A; a++)
        for (uint32_t r = 0; r < block->rows; r++) {
            const float noise = ((const float *)input[IN_NOISE])[block->row[r] * A + a];
            const float scale = 1 + 0.25f * block->head[0][(A + a) * TT_BLOCK + r];
            action[a * TT_BLOCK + r] = block->head[0][a * TT_BLOCK + r] + scale * noise;
        }
}

static void d_draw(const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action)
{
    const uint32_t A = *(const uint32_t *)params;
    for (uint32_t a = 0; a < A; a++)
        for (uint32_t r = 0; r < TT_BLOCK; r++) {
            const float d = d_action[a * TT_BLOCK + r];
            if (r >= block->rows) {
                assert_true(d == 0.0f);
                continue;
            }
            const float noise = ((const float *)input[IN_NOISE])[block->row[r] * A + a];
            block->d_head[0][a * TT_BLOCK + r] += d;
            block->d_head[0][(A + a) * TT_BLOCK + r] += d * 0.25f * noise;
        }
}

/*  Each number of a head is wanted to be another one, by its row and stage: half the square of what is missing. stats[stage] has the sum. */
static void s_reach(const tt_loss_block_t *block, uint32_t s, uint32_t outs)
{
    for (uint32_t a = 0; a < outs; a++)
        for (uint32_t r = 0; r < TT_BLOCK; r++) {
            const uint32_t i = a * TT_BLOCK + r;
            const bool there = r < block->rows;
            const float error = there ? block->head[s][i] - fixture_target(block->row[r], s * 50 + a) : 0.0f;
            assert_true(there || block->head[s][i] == 0.0f);
            block->stats[s] += 0.5f * error * error;
            if (block->d_head[s])
                block->d_head[s][i] = error;
        }
}

static void actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    s_reach(block, 0, 2 * *(const uint32_t *)params);
    assert_true(block->d_head[0] && block->d_head[1] && block->d_head[2]);
    assert_true(block->log_std[0] && block->d_log_std[0]); /* log_alpha */
    block->d_log_std[0][0] += 3.0f * (float)block->rows;
    s_reach(block, 1, 1);
    s_reach(block, 2, 1);
}

static void critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    (void)input;
    assert_true(!block->d_head[0] && !block->d_head[1] && !block->d_head[2] && block->d_head[3] && block->d_head[4]);
    for (uint32_t s = 1; s <= 4; s++)
        s_reach(block, s, 1);
}

const tt_objective_t action_actor = {.name = "reach_actor",
    .stages = 3,
    .stage = {{.tower = ACTOR, .grad = true}, {.tower = Q1, .action = TT_ACTION_DRAWN, .through = true},
        {.tower = Q2, .action = TT_ACTION_DRAWN, .through = true}},
    .loss = actor_loss,
    .draw = draw,
    .d_draw = d_draw};

const tt_objective_t action_critic = {.name = "reach_critic",
    .stages = 5,
    .stage = {{.tower = ACTOR, .frame = TT_NEXT}, {.tower = Q1, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
        {.tower = Q2, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
        {.tower = Q1, .action = TT_ACTION_GIVEN, .grad = true}, {.tower = Q2, .action = TT_ACTION_GIVEN, .grad = true}},
    .loss = critic_loss,
    .given = IN_GIVEN,
    .draw = draw};

static float *s_numbers(uint32_t stream, size_t count)
{
    float *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = fixture_number(stream, i);
    return out;
}

static double *s_doubles(const stage_t *self, uint32_t set)
{
    const size_t count = tt_net_param_count(&self->spec);
    float *params = fixture_params(&self->place, self->net, set);
    double *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)params[i];
    free(params);
    return out;
}

/*  Both sets differ. */
void action_set_up(stage_t *self, size_t shape, size_t rows)
{
    self->spec = action_spec(shape);
    self->net = fixture_net(&self->place, &self->spec);
    float *params = fixture_params(&self->place, self->net, 1);
    for (size_t i = 0; i < tt_net_param_count(&self->spec); i++)
        params[i] *= 0.75f;
    assert_ok(tt_net_put(self->net, self->place.stream, 1, params));
    free(params);
    self->at = fixture_rows(&self->spec, rows);
    self->next = fixture_rows_next(&self->spec, rows);
    const uint32_t A = self->spec.action;
    self->noise = s_numbers(7, rows * A);
    self->given = s_numbers(8, rows * A);
    const float *const of[] = {[IN_NOISE] = self->noise, [IN_GIVEN] = self->given};
    for (int i = 0; i < 2; i++) {
        self->table[i] = NULL;
        assert_ok(tt_table_new(&self->table[i], self->place.device, A * sizeof(float)));
        assert_ok(tt_table_put(self->table[i], self->place.stream, of[i], rows));
    }
    self->ref = (reference_t){.spec = &self->spec};
    self->ref.tensors = tt_net_tensors(self->net, &self->ref.tensor_count);
    for (uint32_t set = 0; set < 2; set++)
        self->params[set] = s_doubles(self, set);
}

void action_tear_down(stage_t *self)
{
    for (int i = 0; i < 2; i++) {
        tt_table_destroy(&self->table[i]);
        free(self->params[i]);
    }
    free(self->noise);
    free(self->given);
    fixture_rows_free(&self->at);
    fixture_rows_free(&self->next);
    tt_net_destroy(&self->net);
}

tt_pass_t action_pass(const stage_t *self, const tt_objective_t *objective)
{
    return (tt_pass_t){.objective = objective,
        .params = &self->spec.action,
        .params_size = sizeof self->spec.action,
        .input = {[IN_NOISE] = self->table[IN_NOISE], [IN_GIVEN] = self->table[IN_GIVEN]},
        .row = self->at.row,
        .rows = (uint32_t)self->at.rows};
}

tt_status_t action_gradient(const stage_t *self, const tt_pass_t *pass, float *grad)
{
    for (size_t i = 0; i < tt_net_grad_count(&self->spec); i++)
        grad[i] = NAN; /* it must be overwritten */
    return fixture_pass(&self->place, self->net, pass, &self->at, &self->next, grad);
}
