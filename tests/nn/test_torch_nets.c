/*  Parity with PyTorch on recorded data (tests/golden/torch/record_nets.py): a shared trunk with two optimisers, double
 *  DQN with a target network, plain, dueling and dueling with noisy streams, and an actor and two critics that see pictures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"
#include "tests/nn/golden.h"

enum { OBS = 5, ROWS = 43, ACTIONS = 4 };

/* ---- a shared trunk ---------------------------------------------------------------------------------------------- */

static const tt_net_spec_t s_shared = {
    .obs = OBS,
    .towers = 4,
    .tower = {{.name = "trunk", .hidden_count = 2, .hidden = {18, 12}},
        {.name = "actor", .from = 1, .out = 3, .log_std = 3},
        {.name = "critic", .from = 1, .hidden_count = 1, .hidden = {7}, .activation = TT_NN_RELU, .out = 1, .group = 1},
        {.name = "aux", .from = 1, .out = 2, .group = 1}},
};

/*  1/2 sum exp(-log_std) (actor - target)^2 + 1/2 (critic - target_value)^2 + 1/2 sum (aux - target_aux)^2. */
static void shared_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const golden_t *g = *(const golden_t *const *)params;
    const float *target[] = {golden_array(g, ROWS * 3, "target"), golden_array(g, ROWS, "target_value"),
        golden_array(g, ROWS * 2, "target_aux")};
    const uint32_t outs[] = {3, 1, 2};
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t i = 0; i < outs[s] * TT_BLOCK; i++) {
            const uint32_t a = i / TT_BLOCK, r = i % TT_BLOCK;
            const float error = r < block->rows ? block->head[s][i] - target[s][block->row[r] * outs[s] + a] : 0.0f;
            const float scaled = block->log_std[s] ? expf(-block->log_std[s][a]) * error : error;
            block->d_head[s][i] = scaled;
            block->stats[0] += 0.5f * scaled * error;
            if (block->log_std[s])
                block->d_log_std[s][a] -= 0.5f * scaled * error;
        }
}

static void check_heads(const golden_t *g, const float *const *obs)
{
    float head[ROWS * 3], value[ROWS], aux[ROWS * 2];
    float *const out[] = {NULL, head, value, aux};
    fixture_heads(&g->place, g->net, 0, obs, ROWS, out);
    golden_compare(head, golden_array(g, ROWS * 3, "head"), ROWS * 3, 2e-6, "head");
    golden_compare(value, golden_array(g, ROWS, "value"), ROWS, 2e-6, "value");
    golden_compare(aux, golden_array(g, ROWS * 2, "aux"), ROWS * 2, 2e-6, "aux");
}

static void step_groups(const golden_t *g, const float *grad)
{
    const tt_opt_spec_t kind[] = {
        {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f},
        {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .eps = 1e-5f, .max_norm = 40.0f},
    };
    const float lr[] = {1e-3f, 1e-2f};
    float norm = 0;
    for (uint32_t group = 0; group < 2; group++) {
        tt_opt_t *opt = NULL;
        assert_ok(tt_opt_new(&opt, g->net, group, &kind[group]));
        assert_ok(fixture_step(&g->place, g->net, opt, grad, lr[group], &norm));
        assert_int_equal(tt_opt_steps(opt), 1);
        golden_compare(&norm, golden_array(g, 1, "norm.%u", group), 1, 1e-6, "norm");
        tt_opt_destroy(&opt);
    }
    float *params = fixture_params(&g->place, g->net, 0);
    golden_compare(params, golden_flatten(g, "stepped."), g->count, 2e-6, "parameters");
    free(params);
}

static void test_shared_trunk(void **state)
{
    (void)state;
    golden_t g = {0}, *golden = &g;
    golden_open(&g, "nn-shared.safetensors", &s_shared);
    rows_t rows = golden_rows(&g, "obs", OBS, ROWS);
    check_heads(&g, rows.obs);
    const tt_objective_t objective = {
        .name = "shared",
        .stages = 3,
        .stage = {{.tower = 1, .grad = true}, {.tower = 2, .grad = true}, {.tower = 3, .grad = true}},
        .loss = shared_loss,
    };
    const tt_pass_t pass = {
        .objective = &objective, .params = &golden, .params_size = sizeof golden, .row = rows.row, .rows = ROWS};
    float *grad = tt_array0(tt_net_grad_count(&s_shared), sizeof *grad);
    assert_ok(fixture_pass(&g.place, g.net, &pass, &rows, NULL, grad));
    golden_compare(grad, golden_flatten(&g, "grad."), g.count, 1e-5, "gradient");
    golden_compare(grad + tt_net_stats_offset(&s_shared), golden_array(&g, 1, "loss"), 1, 1e-5, "loss");
    step_groups(&g, grad);
    free(grad);
    fixture_rows_free(&rows);
    golden_close(&g);
}

/* ---- double DQN --------------------------------------------------------------------------------------------------- */

/*  Huber's loss of q(at, action) - reward - discount target(next, argmax q(next)); absolute errors ride. */
static void dqn_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    const float *action = input[0], *reward = input[1], *discount = input[2];
    assert_true(block->d_head[0] && !block->d_head[1] && !block->d_head[2]);
    for (uint32_t i = 0; i < ACTIONS * TT_BLOCK; i++)
        block->d_head[0][i] = 0.0f;
    for (uint32_t r = 0; r < block->rows; r++) {
        uint32_t best = 0;
        for (uint32_t a = 1; a < ACTIONS; a++)
            if (block->head[2][a * TT_BLOCK + r] > block->head[2][best * TT_BLOCK + r])
                best = a;
        const uint32_t k = block->row[r], i = (uint32_t)action[k] * TT_BLOCK + r;
        const float td = block->head[0][i] - reward[k] - discount[k] * block->head[1][best * TT_BLOCK + r];
        const float size = fabsf(td);
        block->d_head[0][i] = size < 1.0f ? td : copysignf(1.0f, td);
        block->stats[0] += size < 1.0f ? 0.5f * td * td : size - 0.5f;
        block->ride[k] = size;
    }
}

static void put_inputs(const golden_t *g, tt_pass_t *pass, tt_table_t **table)
{
    const char *const name[] = {"action", "reward", "discount"};
    for (size_t i = 0; i < TT_COUNT(name); i++) {
        assert_ok(tt_table_new(&table[i], g->place.device, sizeof(float)));
        assert_ok(tt_table_put(table[i], g->place.stream, golden_array(g, ROWS, "%s", name[i]), ROWS));
        pass->input[i] = table[i];
    }
}

static void check_dqn_step(const golden_t *g, const float *grad)
{
    const tt_opt_spec_t adam = {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .max_norm = 10.0f};
    tt_opt_t *opt = NULL;
    assert_ok(tt_opt_new(&opt, g->net, 0, &adam));
    assert_ok(fixture_step(&g->place, g->net, opt, grad, 1e-3f, NULL));
    float *params = fixture_params(&g->place, g->net, 0);
    golden_compare(params, golden_flatten(g, "stepped."), g->count, 2e-6, "parameters");
    assert_ok(tt_net_blend(g->net, g->place.stream, 1, 0, 1, 0.05f));
    assert_ok(tt_net_get(g->net, g->place.stream, 1, params));
    golden_compare(params, golden_flatten(g, "blended."), g->count, 1e-6, "target");
    tt_opt_destroy(&opt);
    free(params);
}

static void check_dqn(const char *name, tt_net_spec_t spec)
{
    const uint8_t q = (uint8_t)tt_net_tower(&spec, "q");
    golden_t g = {0};
    spec.sets = 2;
    spec.ride = ROWS;
    golden_open(&g, name, &spec);
    assert_ok(tt_net_put(g.net, g.place.stream, 1, golden_flatten(&g, "target.")));
    for (uint32_t set = 0; set < 2; set++)
        assert_ok(tt_net_noise(g.net, g.place.stream, set, &fixture_noise));
    rows_t at = golden_rows(&g, "obs", OBS, ROWS), next = golden_rows(&g, "next", OBS, ROWS);
    tt_table_t *table[3] = {NULL};
    const tt_objective_t objective = {
        .name = "dqn",
        .stages = 3,
        .stage = {{.tower = q, .frame = TT_AT, .grad = true}, {.tower = q, .set = 1, .frame = TT_NEXT},
            {.tower = q, .frame = TT_NEXT}},
        .loss = dqn_loss,
    };
    tt_pass_t pass = {.objective = &objective, .row = at.row, .rows = ROWS};
    float *grad = tt_array0(tt_net_grad_count(&spec), sizeof *grad), *out[TT_TOWERS_MAX] = {NULL}, head[ROWS * ACTIONS];
    out[q] = head;
    fixture_heads(&g.place, g.net, 0, at.obs, ROWS, out);
    golden_compare(head, golden_array(&g, ROWS * ACTIONS, "q"), ROWS * ACTIONS, 2e-6, "q");
    put_inputs(&g, &pass, table);
    assert_ok(fixture_pass(&g.place, g.net, &pass, &at, &next, grad));
    const float *stats = grad + tt_net_stats_offset(&spec);
    golden_compare(stats, golden_array(&g, 1, "loss"), 1, 1e-5, "loss");
    golden_compare(stats + TT_LOSS_STATS, golden_array(&g, ROWS, "td"), ROWS, 5e-6, "td");
    golden_compare(grad, golden_flatten(&g, "grad."), g.count, 1e-5, "gradient");
    check_dqn_step(&g, grad);
    free(grad);
    for (size_t i = 0; i < TT_COUNT(table); i++)
        tt_table_destroy(&table[i]);
    fixture_rows_free(&at);
    fixture_rows_free(&next);
    golden_close(&g);
}

static const uint32_t s_hidden[] = {18, 12};

static void test_dqn(void **state)
{
    (void)state;
    check_dqn("nn-dqn.safetensors", tt_net_one("q", OBS, s_hidden, 2, TT_NN_RELU, ACTIONS));
}

static void test_dueling(void **state)
{
    (void)state;
    check_dqn("nn-dueling.safetensors",
        tt_net_values(OBS, s_hidden, 2, TT_NN_RELU, ACTIONS, &(tt_values_t){.dueling = true}));
}

/*  Every layer but the trunk's has noise, and other noise in the target network. */
static void test_noisy(void **state)
{
    (void)state;
    tt_net_spec_t spec = tt_net_values(OBS, s_hidden, 2, TT_NN_RELU, ACTIONS, &(tt_values_t){.dueling = true});
    spec.tower[1].noise = spec.tower[2].noise = 0.5f;
    check_dqn("nn-noisy.safetensors", spec);
}

/* ---- an actor and critics that see pictures ------------------------------------------------------------------------- */

enum { NUMBERS = 2, PIXELS = 2 * 6 * 5 };         /* of an action; of a picture */
enum { NOISE, ACTION, REWARD, DISCOUNT, TABLES }; /* inputs                     */
enum { ACTOR = 1, Q1 = 3, Q2 };                   /* towers                     */

static tt_net_spec_t critics_spec(void)
{
    tt_net_spec_t spec = tt_net_soft_actor_critic(PIXELS, (const uint32_t[]){13}, 1, TT_NN_RELU, 2 * NUMBERS, NUMBERS);
    spec.tower[1].hidden[0] = spec.tower[2].hidden[0] = 12;
    spec.sets = 2;
    spec.layers = 1;
    spec.layer[0] =
        (tt_layer_t){.kind = TT_LAYER_CONV2D, .activation = TT_NN_RELU, .units = 5, .kernel = {3, 2}, .stride = {1, 1}};
    tt_net_put_encoder_of(&spec,
        &(tt_tower_t){.name = "actor_encoder", .layers = 1, .height = 6, .width = 5, .channels = 2, .planes = 2}, 0);
    tt_net_put_encoder_of(&spec,
        &(tt_tower_t){.name = "critics_encoder", .layers = 1, .height = 6, .width = 5, .channels = 2, .planes = 2}, 1);
    return spec;
}

/*  Number a of a row's action, tanh(mean + exp(log_std) noise); beside it what noise was multiplied by, and added. */
static float drawn(const tt_loss_block_t *block, const float *noise, uint32_t r, uint32_t a, float *spread)
{
    const float *head = block->head[0];
    *spread = expf(head[(NUMBERS + a) * TT_BLOCK + r]) * noise[block->row[r] * NUMBERS + a];
    return tanhf(head[a * TT_BLOCK + r] + *spread);
}

static void draw(const void *params, const void *const *input, const tt_loss_block_t *block, float *action)
{
    (void)params;
    float spread;
    for (uint32_t a = 0; a < NUMBERS; a++)
        for (uint32_t r = 0; r < block->rows; r++)
            action[a * TT_BLOCK + r] = drawn(block, input[NOISE], r, a, &spread);
}

static void d_draw(const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action)
{
    (void)params;
    float spread;
    for (uint32_t a = 0; a < NUMBERS; a++)
        for (uint32_t r = 0; r < block->rows; r++) {
            const float action = drawn(block, input[NOISE], r, a, &spread);
            const float d = d_action[a * TT_BLOCK + r] * (1 - action * action);
            block->d_head[0][a * TT_BLOCK + r] += d;
            block->d_head[0][(NUMBERS + a) * TT_BLOCK + r] += d * spread;
        }
}

/*  0.1 log_std^2 - alpha log_std - min(q1, q2). */
static void actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    (void)input;
    const float alpha = expf(block->log_std[0][0]);
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        const bool there = r < block->rows;
        const uint32_t less = block->head[2][r] < block->head[1][r] ? 2 : 1;
        block->stats[0] -= block->head[less][r];
        block->d_head[less][r] = there ? -1.0f : 0.0f;
        block->d_head[3 - less][r] = 0;
        for (uint32_t a = 0; a < NUMBERS; a++) {
            const uint32_t i = (NUMBERS + a) * TT_BLOCK + r;
            const float log_std = block->head[0][i];
            block->d_head[0][a * TT_BLOCK + r] = 0;
            block->d_head[0][i] = there ? 0.2f * log_std - alpha : 0.0f;
            block->stats[0] += 0.1f * log_std * log_std - alpha * log_std;
            block->d_log_std[0][0] -= alpha * log_std;
        }
    }
}

/*  Stages: the actor, both critics at what is drawn next, and at what was done. */
static void critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    const float *reward = input[REWARD], *discount = input[DISCOUNT];
    for (uint32_t q = 3; q <= 4; q++)
        for (uint32_t r = 0; r < TT_BLOCK; r++) {
            block->d_head[q][r] = 0;
            if (r >= block->rows)
                continue;
            const uint32_t k = block->row[r];
            const float least = fminf(block->head[1][r], block->head[2][r]);
            const float error = block->head[q][r] - (reward[k] + discount[k] * least);
            block->d_head[q][r] = error;
            block->stats[0] += 0.5f * error * error;
        }
}

static const tt_objective_t s_actor = {.name = "actor",
    .stages = 3,
    .stage = {{.tower = ACTOR, .grad = true}, {.tower = Q1, .action = TT_ACTION_DRAWN, .through = true},
        {.tower = Q2, .action = TT_ACTION_DRAWN, .through = true}},
    .loss = actor_loss,
    .draw = draw,
    .d_draw = d_draw};
static const tt_objective_t s_critic = {.name = "critic",
    .stages = 5,
    .stage = {{.tower = ACTOR, .frame = TT_NEXT}, {.tower = Q1, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
        {.tower = Q2, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
        {.tower = Q1, .action = TT_ACTION_GIVEN, .grad = true}, {.tower = Q2, .action = TT_ACTION_GIVEN, .grad = true}},
    .loss = critic_loss,
    .given = ACTION,
    .draw = draw};

static void check_objective(
    const golden_t *g, const tt_objective_t *objective, tt_table_t *const *table, const rows_t *at, const rows_t *next)
{
    const tt_net_spec_t *spec = tt_net_spec(g->net);
    tt_pass_t pass = {.objective = objective, .row = at->row, .rows = ROWS};
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    char prefix[16];
    for (size_t i = 0; i < TABLES; i++)
        pass.input[i] = table[i];
    assert_ok(fixture_pass(&g->place, g->net, &pass, at, next, grad));
    golden_compare(
        grad + tt_net_stats_offset(spec), golden_array(g, 1, "loss.%s", objective->name), 1, 1e-5, objective->name);
    snprintf(prefix, sizeof prefix, "%s.", objective->name);
    golden_compare(grad, golden_flatten(g, prefix), g->count, 1e-5, objective->name);
    free(grad);
}

static void test_critics_of_pictures(void **state)
{
    (void)state;
    const char *const name[] = {"noise", "action", "reward", "discount"};
    const size_t floats[] = {NUMBERS, NUMBERS, 1, 1};
    const tt_net_spec_t spec = critics_spec();
    golden_t g = {0};
    golden_open(&g, "nn-critics.safetensors", &spec);
    assert_ok(tt_net_put(g.net, g.place.stream, 1, golden_flatten(&g, "target.")));
    rows_t at = golden_rows(&g, "obs", PIXELS, ROWS), next = golden_rows(&g, "next", PIXELS, ROWS);
    tt_table_t *table[TABLES] = {NULL};
    float head[ROWS * 2 * NUMBERS], *out[TT_TOWERS_MAX] = {[ACTOR] = head};
    for (size_t i = 0; i < TABLES; i++) {
        assert_ok(tt_table_new(&table[i], g.place.device, floats[i] * sizeof(float)));
        assert_ok(tt_table_put(table[i], g.place.stream, golden_array(&g, ROWS * floats[i], "%s", name[i]), ROWS));
    }
    fixture_heads(&g.place, g.net, 0, at.obs, ROWS, out);
    golden_compare(head, golden_array(&g, TT_COUNT(head), "head"), TT_COUNT(head), 2e-6, "head");
    check_objective(&g, &s_critic, table, &at, &next);
    check_objective(&g, &s_actor, table, &at, &next);
    for (size_t i = 0; i < TABLES; i++)
        tt_table_destroy(&table[i]);
    fixture_rows_free(&at);
    fixture_rows_free(&next);
    golden_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_trunk),
        cmocka_unit_test(test_dqn),
        cmocka_unit_test(test_dueling),
        cmocka_unit_test(test_noisy),
        cmocka_unit_test(test_critics_of_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
