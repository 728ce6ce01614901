#include "tests/nn/action_fixture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/*  Observations that end before, at and behind a vector's end; actions that go over it. */
static const struct {
    uint32_t obs, action, hidden[3], hidden_count;
    tt_nn_activation_t activation;
} s_shapes[ACTION_PLAIN] = {
    {1, 1, {8}, 1, TT_NN_TANH},
    {15, 3, {16, 24}, 2, TT_NN_RELU},
    {17, 6, {64, 64}, 2, TT_NN_TANH},
    {32, 5, {80, 33, 18}, 3, TT_NN_RELU},
    {3, 20, {20, 16}, 2, TT_NN_TANH},
};

#define LAYERS(...) .hidden_count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), .hidden = {__VA_ARGS__}
#define RELU        .activation = TT_NN_RELU
#define ENCODER(first, count, height_, width_, channels_) \
    .kind = TT_TOWER_ENCODER, .layer = first, .layers = count, .height = height_, .width = width_, .channels = channels_
#define CONV(units_, kh, kw, sh, sw, activation_)                                                                   \
    {                                                                                                               \
        .kind = TT_LAYER_CONV2D, .units = units_, .kernel = {kh, kw}, .stride = {sh, sw}, .activation = activation_ \
    }
#define ALPHA                .log_std = 1, .log_alpha = true
#define CRITIC(name_, from_) .name = name_, .from = from_, .out = 1, .group = 1, .action = true

/*  Trunks that end before and at a vector's end, as a picture and as a vector, and actions that go over it. */
static const tt_net_spec_t s_trunks[ACTION_SHAPES - ACTION_PLAIN] = {
    /* an encoder for each group, which ends with a picture that has no activation */
    {.obs = 123,
        .action = 3,
        .parts = 2,
        .part = {{.bytes = true, .elements = 120, .divisor = 255}, {.elements = 3}},
        .towers = 5,
        .layers = 2,
        .layer = {CONV(6, 3, 3, 1, 1, TT_NN_TANH), {.kind = TT_LAYER_LAYER_NORM, .activation = TT_NN_NONE}},
        .tower = {{.name = "actor_encoder", ENCODER(0, 2, 6, 5, 4), .planes = 4},
            {.name = "actor", .from = 1, RELU, LAYERS(13), .out = 6, ALPHA},
            {.name = "critics_encoder", ENCODER(0, 2, 6, 5, 4), .planes = 4, .group = 1},
            {CRITIC("q1", 3), RELU, LAYERS(16, 9)}, {CRITIC("q2", 3), LAYERS(20)}}},
    /* with a vector at the end, and another reader among the critics */
    {.obs = 125,
        .action = 20,
        .parts = 2,
        .part = {{.bytes = true, .elements = 120, .divisor = 255}, {.elements = 5}},
        .towers = 6,
        .layers = 3,
        .layer = {CONV(5, 3, 2, 2, 1, TT_NN_RELU), {.kind = TT_LAYER_CONCAT, .part = 1, .activation = TT_NN_NONE},
            {.kind = TT_LAYER_DENSE, .units = 32, .activation = TT_NN_RELU}},
        .tower = {{.name = "actor_encoder", ENCODER(0, 3, 6, 5, 4)},
            {.name = "actor", .from = 1, LAYERS(24), .out = 40, ALPHA},
            {.name = "critics_encoder", ENCODER(0, 3, 6, 5, 4), .group = 1}, {CRITIC("q1", 3), RELU, LAYERS(40)},
            {.name = "v", .from = 3, LAYERS(7), .out = 1, .group = 1}, {CRITIC("q2", 3), RELU, LAYERS(33)}}},
    /* one trunk for all of them */
    {.obs = 7,
        .action = 1,
        .towers = 5,
        .tower = {{.name = "trunk", RELU, LAYERS(20, 18)}, {.name = "actor", .from = 1, LAYERS(10), .out = 2, ALPHA},
            {CRITIC("q1", 1), LAYERS(16)}, {.name = "v", .from = 1, .out = 1, .group = 1},
            {CRITIC("q2", 1), LAYERS(12, 14)}}},
    /* bits of three frames, which the actor reads as they are; and a trunk behind an encoder */
    {.obs = 90,
        .action = 6,
        .parts = 1,
        .part = {{.bytes = true, .elements = 90, .divisor = 1}},
        .stack = {.frames = 3, .parts = 1, .part = {{0, 0, 30}}},
        .towers = 5,
        .layers = 1,
        .layer = {CONV(4, 3, 3, 1, 1, TT_NN_RELU)},
        .tower = {{.name = "actor", LAYERS(24), .out = 12, ALPHA},
            {.name = "critics_encoder", ENCODER(0, 1, 5, 6, 3), .group = 1},
            {.name = "critics_trunk", .from = 2, LAYERS(31), .group = 1}, {CRITIC("q1", 3), LAYERS(16)},
            {CRITIC("q2", 3), RELU, LAYERS(17)}}},
};

tt_net_spec_t action_spec(size_t i)
{
    tt_net_spec_t spec;
    if (i < ACTION_PLAIN)
        spec = tt_net_soft_actor_critic(s_shapes[i].obs, s_shapes[i].hidden, s_shapes[i].hidden_count,
            s_shapes[i].activation, 2 * s_shapes[i].action, s_shapes[i].action);
    else
        spec = s_trunks[i - ACTION_PLAIN];
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
    if (block->head[5])
        s_reach(block, 5, 1);
}

/*  Towers here are ACTOR .. V. */
static const tt_objective_t s_actor = {.name = "reach_actor",
    .stages = 3,
    .stage = {{.tower = ACTOR, .grad = true}, {.tower = Q1, .action = TT_ACTION_DRAWN, .through = true},
        {.tower = Q2, .action = TT_ACTION_DRAWN, .through = true}},
    .loss = actor_loss,
    .draw = draw,
    .d_draw = d_draw};

static const tt_objective_t s_critic = {.name = "reach_critic",
    .stages = 6,
    .stage = {{.tower = ACTOR, .frame = TT_NEXT}, {.tower = Q1, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
        {.tower = Q2, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
        {.tower = Q1, .action = TT_ACTION_GIVEN, .grad = true}, {.tower = Q2, .action = TT_ACTION_GIVEN, .grad = true},
        {.tower = V, .grad = true}},
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

/*  Of the stages those whose tower there is. */
static tt_objective_t s_objective(const stage_t *self, const tt_objective_t *of)
{
    tt_objective_t out = *of;
    out.stages = 0;
    for (uint32_t s = 0; s < of->stages; s++) {
        tt_objective_stage_t stage = of->stage[s];
        stage.tower = (uint8_t)self->tower[stage.tower];
        if (stage.tower < self->spec.towers)
            out.stage[out.stages++] = stage;
    }
    return out;
}

static void s_find_towers(stage_t *self)
{
    static const char *const names[ACTION_TOWERS] = {[ACTOR] = "actor", [Q1] = "q1", [Q2] = "q2", [V] = "v"};
    for (uint32_t t = 0; t < ACTION_TOWERS; t++)
        self->tower[t] = tt_net_tower(&self->spec, names[t]);
    self->actor = s_objective(self, &s_actor);
    self->critic = s_objective(self, &s_critic);
}

/*  Both sets differ. */
void action_set_up(stage_t *self, size_t shape, size_t rows)
{
    self->spec = action_spec(shape);
    s_find_towers(self);
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

/*  A frame's rows made of frames, which stand in them one behind the other. */
typedef struct {
    const void **frame;
    uint32_t *place;
    tt_store_t *store;
} framed_t;

static void s_put(const stage_t *self, tt_table_t *table, const rows_t *rows, action_way_t way, framed_t *framed)
{
    const tt_stack_t *stack = &self->spec.stack;
    const size_t count = rows->rows * stack->frames, bytes = stack->part[0].bytes;
    if (way == ACTION_ROWS) {
        assert_ok(tt_table_put(table, self->place.stream, rows->table, rows->rows));
        return;
    }
    framed->frame = tt_array0(count, sizeof *framed->frame);
    framed->place = tt_array0(count, sizeof *framed->place);
    for (size_t i = 0; i < count; i++) {
        framed->frame[i] = (const char *)rows->table + i * bytes;
        framed->place[i] = (uint32_t)i;
    }
    if (way == ACTION_FRAMED) {
        assert_ok(tt_table_put_frames(table, self->place.stream, stack, framed->frame, rows->rows));
        return;
    }
    assert_ok(tt_store_new(&framed->store, self->place.device, bytes, count));
    assert_ok(tt_store_put(framed->store, self->place.stream, 0, rows->table, count));
    const tt_stored_t from = {.store = framed->store, .stack = stack, .place = framed->place, .count = rows->rows};
    assert_ok(tt_table_put_stored(table, self->place.stream, &from));
    assert_ok(tt_stream_sync(self->place.stream));
}

void action_sum(const stage_t *self, const tt_pass_t *pass, action_way_t way, uint32_t shards, float *grad)
{
    const rows_t *const frames[TT_FRAMES] = {&self->at, &self->next};
    framed_t framed[TT_FRAMES] = {{0}};
    tt_table_t *table[TT_FRAMES] = {NULL};
    tt_pass_t full = *pass;
    tt_sums_t *sums = NULL;
    const float *node = NULL;
    for (int f = 0; f < TT_FRAMES; f++) {
        assert_ok(tt_table_new(&table[f], self->place.device, tt_net_row_bytes(&self->spec)));
        s_put(self, table[f], frames[f], way, &framed[f]);
        full.obs[f] = table[f];
    }
    assert_ok(tt_sums_new(&sums, self->net, shards));
    assert_ok(tt_sums_compute(sums, self->place.stream, &full, 0, shards));
    assert_ok(tt_sums_node(sums, self->place.stream, 1, &node));
    memcpy(grad, node, tt_net_grad_count(&self->spec) * sizeof *grad);
    tt_sums_destroy(&sums);
    for (int f = 0; f < TT_FRAMES; f++) {
        tt_table_destroy(&table[f]);
        tt_store_destroy(&framed[f].store);
        free(framed[f].frame);
        free(framed[f].place);
    }
}
