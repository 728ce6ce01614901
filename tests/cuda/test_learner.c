/*  A learner's optimiser steps on a card: nobody waits between them, though each has another minibatch in the same memory and is asked for
 *  what came of it; that comes with the first wait, and is the CPU's to the bit. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "learner/algorithms/dqn_objective.h"
#include "learner/compute.h"
#include "tests/nn/fixture.h"
#include "tests/simt/count.h"

enum { OBS = 5, CHOICES = 3, SHARDS = 4, UNITS = 32, STEPS = 12, SAID = TT_LOSS_STATS + UNITS + 1 };

extern const tt_backend_ops_t cuda_backend;

static const uint32_t s_hidden[] = {9, 7};
static const tt_opt_spec_t s_adam = {TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .max_norm = 0.5f};

/*  What the steps came to, as far as it was told: statistics, what rode on the sum, norm. */
typedef struct {
    place_t place;
    model_t model;
    compute_t *compute;
    uint32_t told;
    float said[STEPS][SAID];
} learner_t;

/*  What is drawn for a step, in the place of what was drawn before. */
typedef struct {
    float obs[TT_FRAMES][UNITS * OBS], ret[UNITS], discount[UNITS], weight[UNITS];
    int32_t action[UNITS];
} drawn_t;

static void open_learner(learner_t *self, const place_t *place)
{
    tt_net_spec_t spec = tt_net_one("q", OBS, s_hidden, 2, TT_NN_RELU, CHOICES);
    spec.sets = 2;
    spec.ride = UNITS;
    model_t *model = &self->model;
    self->place = *place;
    model->device = place->device;
    model->stream = place->stream;
    model->net = fixture_net(place, &spec);
    model->opts = 1;
    model->train.learner.shards = SHARDS;
    assert_ok(tt_opt_new(&model->opt[0], model->net, 0, &s_adam));
    assert_ok(compute_new(&self->compute, model));
}

static void close_learner(learner_t *self)
{
    compute_destroy(&self->compute);
    tt_opt_destroy(&self->model.opt[0]);
    tt_net_destroy(&self->model.net);
    fixture_close(&self->place);
}

static void draw_numbers(uint32_t what, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = fixture_number(what, i);
}

static void draw(drawn_t *self, uint32_t step)
{
    const uint32_t what = 900 + 5 * step;
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        draw_numbers(what + f, self->obs[f], UNITS * OBS);
    draw_numbers(what + 2, self->ret, UNITS);
    draw_numbers(what + 3, self->discount, UNITS);
    draw_numbers(what + 4, self->weight, UNITS);
    for (uint32_t i = 0; i < UNITS; i++)
        self->action[i] = (int32_t)((i + step) % CHOICES);
}

/*  The target network follows in every fourth step. */
static void learn(learner_t *self, drawn_t *drawn, uint32_t step)
{
    const tt_objective_t objective = dqn_objective(tt_net_spec(self->model.net), true);
    const dqn_loss_t params = {.choices = CHOICES, .scale = 1.0f / UNITS};
    const tt_minibatch_t minibatch = {.rows = UNITS,
        .objective = &objective,
        .params = &params,
        .params_size = sizeof params,
        .inputs = DQN_INPUTS,
        .input = {[DQN_IN_ACTION] = {drawn->action, sizeof *drawn->action, false},
            [DQN_IN_RETURN] = {drawn->ret, sizeof(float), false},
            [DQN_IN_DISCOUNT] = {drawn->discount, sizeof(float), false},
            [DQN_IN_WEIGHT] = {drawn->weight, sizeof(float), false}},
        .train = 1,
        .lr = {0.01f},
        .blends = step % 4 == 3,
        .blend = {{.to = 1, .from = 0, .groups = 1, .tau = 0.25f}}};
    const compute_units_t units = {.rows = {drawn->obs[TT_AT], drawn->obs[TT_NEXT]}};
    draw(drawn, step);
    assert_ok(compute_gradients(self->compute, &minibatch, &units, 0, SHARDS));
    assert_ok(compute_step(self->compute, &minibatch, NULL));
    memset(drawn, 0xff, sizeof *drawn);
}

static tt_status_t tell(void *ctx, const results_step_t *step)
{
    learner_t *self = ctx;
    const tt_result_t *result = &step->result;
    float *said = self->said[self->told++];
    memcpy(said, result->stats, TT_LOSS_STATS * sizeof *said);
    memcpy(said + TT_LOSS_STATS, result->ride, UNITS * sizeof *said);
    said[SAID - 1] = result->norm[0];
    return step->taken;
}

static void settle(learner_t *self)
{
    assert_ok(results_settle(compute_results(self->compute), tell, self));
}

static learner_t *new_learner(bool card)
{
    learner_t *self = tt_new0(sizeof *self);
    place_t place;
    if (card) {
        assert_ok(cuda_backend.open(&place.device, 0, 1));
        assert_ok(tt_stream_new(&place.stream, place.device));
    } else
        fixture_open_on(&place, "cpu", 1);
    open_learner(self, &place);
    return self;
}

static void free_learner(learner_t *self)
{
    close_learner(self);
    free(self);
}

/*  The first two steps make what is made once. */
static void nobody_waits_between_steps(void **state)
{
    (void)state;
    learner_t *card = new_learner(true), *cpu = new_learner(false);
    drawn_t *drawn = tt_new0(sizeof *drawn);
    simt_count_t before = {0};
    for (uint32_t step = 0; step < STEPS; step++) {
        if (step == 2)
            before = simt_count();
        learn(card, drawn, step);
        learn(cpu, drawn, step);
        settle(cpu);
    }
    assert_int_equal(simt_count().waits, before.waits);
    assert_int_equal(results_count(compute_results(card->compute)), STEPS);
    settle(card);
    assert_int_equal(simt_count().waits, before.waits + 1);
    assert_int_equal(card->told, STEPS);
    assert_memory_equal(card->said, cpu->said, sizeof cpu->said);
    float *params[] = {
        fixture_params(&card->place, card->model.net, 0), fixture_params(&cpu->place, cpu->model.net, 0)};
    assert_memory_equal(params[0], params[1], tt_net_param_count(tt_net_spec(cpu->model.net)) * sizeof(float));
    free(params[0]);
    free(params[1]);
    free(drawn);
    free_learner(card);
    free_learner(cpu);
}

/*  Steps of a network that remembers, whose evaluation and burn-in they are. */
static void nobody_waits_within_a_walk(void **state)
{
    (void)state;
    enum { ROWS = 3, LENGTH = 7, UNITS_OF_IT = 8 };
    const tt_net_spec_t spec = {.obs = OBS,
        .towers = 2,
        .tower = {{.name = "lstm", .kind = TT_TOWER_LSTM, .hidden_count = 1, .hidden = {UNITS_OF_IT}},
            {.name = "q", .from = 1, .out = CHOICES}}};
    float obs[LENGTH * ROWS * OBS], carry[ROWS * 2 * UNITS_OF_IT] = {0}, heads[LENGTH * ROWS * CHOICES];
    const uint8_t begins[LENGTH * ROWS] = {[4] = 1};
    float *const out[] = {NULL, heads};
    place_t place;
    tt_table_t *table = NULL;
    assert_ok(cuda_backend.open(&place.device, 0, 1));
    assert_ok(tt_stream_new(&place.stream, place.device));
    tt_net_t *net = fixture_net(&place, &spec);
    draw_numbers(901, obs, LENGTH * ROWS * OBS);
    assert_ok(tt_table_new(&table, place.device, tt_net_row_bytes(&spec)));
    assert_ok(tt_table_put(table, place.stream, obs, LENGTH * ROWS));
    const tt_walk_t walk = {.apart = ROWS, .rows = ROWS, .steps = LENGTH, .begins = begins, .in = carry, .left = carry};
    for (int turn = 0; turn < 2; turn++) { /* the first makes what is made once */
        const simt_count_t before = simt_count();
        assert_ok(tt_net_walk(net, place.stream, 0, table, &walk, out));
        assert_true(!turn || simt_count().waits == before.waits);
        assert_ok(tt_stream_sync(place.stream));
    }
    tt_table_destroy(&table);
    tt_net_destroy(&net);
    fixture_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_between_steps), cmocka_unit_test(nobody_waits_within_a_walk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
