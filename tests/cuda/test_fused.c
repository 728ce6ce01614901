/*  A pass of a small network as one launch gives the bits of the same pass step by step, and of the CPU: gradients, statistics, what rides;
 *  of PPO, A2C and DQN, whatever the widths, rows and shards. Which passes are such is counted. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "learner/algorithms/dqn_objective.h"
#include "learner/algorithms/ppo_objective.h"
#include "tests/nn/fixture.h"
#include "tests/simt/count.h"

#ifdef __SANITIZE_THREAD__ /* slower by far */
enum { LARGE = 0 };
#else
enum { LARGE = 1 };
#endif
enum { UNITS = 140, INPUTS = 5, SIDES = 3, LEVELS_MAX = 8 };

extern const tt_backend_ops_t cuda_backend;

typedef enum { PPO, A2C, DQN, DQN_DOUBLE, QUANTILES, QUANTILES_DOUBLE, ATOMS, ATOMS_DOUBLE } objective_t;

typedef struct {
    const char *what;
    objective_t objective;
    uint32_t obs, outs,
        box; /* box: of PPO's outs so many are means, with log_std; of QUANTILES' and ATOMS' so many are a choice's */
    uint32_t hidden_count, hidden[6];
    tt_nn_activation_t activation;
    uint32_t rows, shards;
    uint32_t less; /* of PPO's towers this one, from 1 on, has a layer less; 0: none */
    bool apart;    /* not one launch */
    float divisor; /* of bytes; 0: floats */
    float tiny;    /* so small that products are 0, of either sign; 0: not */
} case_t;

static bool s_quantiles(const case_t *c)
{
    return c->objective == QUANTILES || c->objective == QUANTILES_DOUBLE;
}

static bool s_atoms(const case_t *c)
{
    return c->objective == ATOMS || c->objective == ATOMS_DOUBLE;
}

/*  Of DQN's. */
static uint32_t s_choices(const case_t *c)
{
    return s_quantiles(c) || s_atoms(c) ? c->outs / c->box : c->outs;
}

static tt_net_spec_t s_values(const case_t *c)
{
    const tt_values_t how = {
        .quantiles = s_quantiles(c) ? c->box : 0, .atoms = s_atoms(c) ? c->box : 0, .low = -2, .high = 2};
    return tt_net_values(c->obs, c->hidden, c->hidden_count, c->activation, s_choices(c), &how);
}

static bool s_ppo(const case_t *c)
{
    return c->objective == PPO || c->objective == A2C;
}

/* ---- a place with a network, its tables and sums ------------------------------------------------------------------------ */

typedef struct {
    place_t place;
    tt_net_t *net;
    tt_sums_t *sums;
    tt_table_t *obs[TT_FRAMES], *input[INPUTS];
    void *rows[TT_FRAMES + INPUTS]; /* what the tables have; borrowed by them */
} side_t;

static tt_net_spec_t s_spec(const case_t *c)
{
    tt_net_spec_t spec = s_ppo(c)
                             ? tt_net_actor_critic(c->obs, c->hidden, c->hidden_count, c->activation, c->outs, c->box)
                             : s_values(c);
    if (c->less)
        spec.tower[c->less - 1].hidden_count--;
    spec.sets = 2;
    spec.ride = s_ppo(c) ? 0 : UNITS;
    spec.parts = c->divisor > 0;
    spec.part[0] = (tt_part_t){.bytes = true, .elements = c->obs, .divisor = c->divisor};
    return spec;
}

static void s_put(side_t *self, uint32_t number, tt_table_t **table, size_t bytes, void *rows, size_t count)
{
    self->rows[number] = rows;
    assert_ok(tt_table_new(table, self->place.device, bytes));
    assert_ok(tt_table_put(*table, self->place.stream, rows, count));
}

static float *s_numbers(uint32_t what, size_t count, float scale)
{
    float *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = i % 5 ? scale * fixture_number(what, i) : 0.0f;
    return out;
}

/*  Of four one is not 0. */
static void *s_bytes(uint32_t what, size_t count)
{
    uint8_t *out = tt_array0(count, 1);
    for (size_t i = 0; i < count; i++)
        out[i] = fixture_number(what, i) > 0.5f ? (uint8_t)(1 + i % 3) : 0;
    return out;
}

static int32_t *s_actions(size_t count, uint32_t choices)
{
    int32_t *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)(i % choices);
    return out;
}

static ppo_row_t *s_ppo_rows(void)
{
    ppo_row_t *out = tt_array0(UNITS, sizeof *out);
    for (size_t i = 0; i < UNITS; i++)
        out[i] = (ppo_row_t){
            fixture_number(700, i), fixture_number(701, i), -1 + fixture_number(702, i) / 4, fixture_number(703, i)};
    return out;
}

/*  A choice, and a box behind it. */
static ppo_policy_t *s_policy(const case_t *c, size_t *bytes)
{
    *bytes = sizeof(ppo_policy_t) + sizeof(uint32_t);
    ppo_policy_t *policy = tt_new0(*bytes);
    policy->parts = 1 + (c->box > 0);
    policy->log_std = c->box;
    policy->part[0] = (ppo_part_t){.elements = 1};
    policy->part[1] = (ppo_part_t){.box = 1, .elements = c->box, .head = c->outs - c->box};
    policy->choices[0] = c->outs - c->box;
    return policy;
}

static void s_put_inputs(side_t *self, const case_t *c)
{
    size_t bytes;
    if (s_ppo(c)) {
        ppo_policy_t *policy = s_policy(c, &bytes);
        s_put(self, 2, &self->input[PPO_IN_ROW], sizeof(ppo_row_t), s_ppo_rows(), UNITS);
        s_put(self, 3, &self->input[PPO_IN_POLICY], bytes, policy, 1);
        s_put(self, 4, &self->input[PPO_IN_ACTION], sizeof(int32_t), s_actions(UNITS, c->outs - c->box), UNITS);
        if (c->box)
            s_put(self, 5, &self->input[PPO_IN_ACTION + 1], c->box * sizeof(float),
                s_numbers(704, (size_t)UNITS * c->box, 1), UNITS);
        return;
    }
    s_put(self, 2, &self->input[DQN_IN_ACTION], sizeof(int32_t), s_actions(UNITS, s_choices(c)), UNITS);
    for (uint32_t i = DQN_IN_RETURN; i <= DQN_IN_WEIGHT; i++)
        s_put(self, 2 + i, &self->input[i], sizeof(float), s_numbers(710 + i, UNITS, 1), UNITS);
}

/*  The sets differ. */
static void s_open(side_t *self, const case_t *c, const place_t *place)
{
    const tt_net_spec_t spec = s_spec(c);
    const size_t count = tt_net_param_count(&spec);
    self->place = *place;
    self->net = fixture_net(place, &spec);
    float *params = fixture_params(place, self->net, 0);
    for (size_t i = 0; i < count; i++)
        params[i] *= 0.7f;
    assert_ok(tt_net_put(self->net, place->stream, 1, params));
    free(params);
    assert_ok(tt_sums_new(&self->sums, self->net, c->shards));
    for (uint32_t f = 0; f < TT_FRAMES; f++) {
        const size_t numbers = (size_t)UNITS * c->obs;
        void *rows =
            c->divisor > 0 ? s_bytes(600 + f, numbers) : s_numbers(600 + f, numbers, c->tiny > 0 ? c->tiny : 1);
        s_put(self, f, &self->obs[f], tt_net_row_bytes(&spec), rows, UNITS);
    }
    s_put_inputs(self, c);
}

static void s_close(side_t *self)
{
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        tt_table_destroy(&self->obs[f]);
    for (uint32_t i = 0; i < INPUTS; i++)
        tt_table_destroy(&self->input[i]);
    for (uint32_t i = 0; i < TT_FRAMES + INPUTS; i++)
        free(self->rows[i]);
    tt_sums_destroy(&self->sums);
    tt_net_destroy(&self->net);
    fixture_close(&self->place);
}

/* ---- a pass ------------------------------------------------------------------------------------------------------------- */

/*  Gradients of shards lo .. hi-1 and what stands behind them, at node; kernels that were launched for them. */
static uint64_t s_compute(side_t *self, const case_t *c, uint32_t lo, uint32_t hi, uint32_t node, const float **sum)
{
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    const tt_objective_t objective =
        s_ppo(c) ? ppo_objective(spec)
                 : dqn_objective(spec,
                       c->objective == DQN_DOUBLE || c->objective == QUANTILES_DOUBLE || c->objective == ATOMS_DOUBLE);
    const float scale = c->tiny > 0 ? c->tiny : 1.0f / 37;
    const ppo_loss_t ppo = {0.25f, 1.5f, scale, 0.2f, 0.03f, 0.5f, c->rows % 2, c->objective == A2C};
    const dqn_loss_t dqn = {.choices = s_choices(c),
        .quantiles = s_quantiles(c) ? c->box : 0,
        .atoms = s_atoms(c) ? c->box : 0,
        .low = -2,
        .high = 2,
        .scale = scale,
        .squared = c->rows % 2};
    uint32_t row[UNITS];
    tt_pass_t pass = {.objective = &objective, .params = &dqn, .params_size = sizeof dqn, .row = row, .rows = c->rows};
    if (s_ppo(c)) {
        pass.params = &ppo;
        pass.params_size = sizeof ppo;
    }
    for (uint32_t i = 0; i < c->rows; i++)
        row[i] = (i * 9 + 1) % UNITS;
    memcpy(pass.obs, self->obs, sizeof self->obs);
    memcpy(pass.input, self->input, sizeof self->input);
    const uint64_t before = simt_count().kernels;
    assert_ok(tt_sums_compute(self->sums, self->place.stream, &pass, lo, hi));
    const uint64_t kernels = simt_count().kernels - before;
    assert_ok(tt_sums_node(self->sums, self->place.stream, node, sum));
    return kernels;
}

/*  A launch for all rows, and one for each level of the tree. */
static void s_assert_launches(const case_t *c, uint64_t fused, uint64_t apart, uint32_t shards)
{
    uint32_t levels = 0;
    while (1u << levels < shards)
        levels++;
    assert_true(apart > 5 + levels);
    assert_int_equal(fused, c->apart ? apart : 1 + levels);
}

/*  All shards, and the last one by itself. */
static void s_compare(const case_t *c, side_t *side)
{
    const size_t bytes = tt_net_grad_count(tt_net_spec(side[0].net)) * sizeof(float);
    for (uint32_t alone = 0; alone < 2; alone++) {
        const uint32_t lo = alone ? c->shards - 1 : 0, node = alone ? 2 * c->shards - 1 : 1;
        const float *sum[SIDES];
        uint64_t kernels[SIDES];
        for (uint32_t s = 0; s < SIDES; s++)
            kernels[s] = s_compute(&side[s], c, lo, c->shards, node, &sum[s]);
        for (uint32_t s = 1; s < SIDES; s++)
            if (memcmp(sum[0], sum[s], bytes) != 0)
                fail_msg("%s, shards from %u: other bits than %s", c->what, lo, s == 1 ? "step by step" : "the CPU");
        s_assert_launches(c, kernels[0], kernels[1], c->shards - lo);
    }
}

static void s_open_card(side_t *self, const case_t *c)
{
    place_t place;
    assert_ok(cuda_backend.open(&place.device, 0, 1));
    assert_ok(tt_stream_new(&place.stream, place.device));
    s_open(self, c, &place);
}

static void s_try(const case_t *c)
{
    side_t *side = tt_array0(SIDES, sizeof *side);
    place_t cpu;
    setenv("TT_CUDA_GRAPHS", "off", 1); /* so that launches can be counted */
    s_open_card(&side[0], c);
    setenv("TT_CUDA_FUSED", "off", 1);
    s_open_card(&side[1], c);
    unsetenv("TT_CUDA_FUSED");
    unsetenv("TT_CUDA_GRAPHS");
    fixture_open_on(&cpu, "cpu", 1);
    s_open(&side[2], c, &cpu);
    s_compare(c, side);
    for (uint32_t s = 0; s < SIDES; s++)
        s_close(&side[s]);
    free(side);
}

static void s_try_all(const case_t *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        s_try(&cases[i]);
}

/* ---- cases -------------------------------------------------------------------------------------------------------------- */

static void one_launch_has_the_same_bits(void **state)
{
    (void)state;
    static const case_t cases[] = {{.what = "PPO",
                                       .objective = PPO,
                                       .obs = 4,
                                       .outs = 2,
                                       .hidden_count = 2,
                                       .hidden = {19, 12},
                                       .rows = 31,
                                       .shards = 1},
        {.what = "a box",
            .objective = PPO,
            .obs = 3,
            .outs = 6,
            .box = 3,
            .hidden_count = 1,
            .hidden = {7},
            .rows = 66,
            .shards = 2},
        {.what = "A2C",
            .objective = A2C,
            .obs = 5,
            .outs = 5,
            .box = 1,
            .hidden_count = 3,
            .hidden = {17, 9, 20},
            .activation = TT_NN_RELU,
            .rows = 33,
            .shards = 1},
        {.what = "an actor of fewer layers",
            .objective = PPO,
            .obs = 6,
            .outs = 7,
            .box = 2,
            .hidden_count = 2,
            .hidden = {40, 28},
            .rows = 39,
            .less = 1,
            .shards = 1},
        {.what = "a critic without a layer",
            .objective = PPO,
            .obs = 60,
            .outs = 3,
            .hidden_count = 1,
            .hidden = {20},
            .activation = TT_NN_RELU,
            .rows = 11,
            .shards = 1,
            .less = 2,
            .divisor = 1},
        {.what = "no layer", .objective = PPO, .obs = 37, .outs = 3, .rows = 9, .shards = 2},
        {.what = "a row",
            .objective = DQN,
            .obs = 4,
            .outs = 3,
            .hidden_count = 1,
            .hidden = {16},
            .activation = TT_NN_RELU,
            .rows = 1,
            .shards = 1},
        {.what = "shards without rows",
            .objective = DQN,
            .obs = 4,
            .outs = 5,
            .hidden_count = 2,
            .hidden = {5, 33},
            .activation = TT_NN_RELU,
            .rows = 3,
            .shards = 8},
        {.what = "double",
            .objective = DQN_DOUBLE,
            .obs = 7,
            .outs = 9,
            .hidden_count = 2,
            .hidden = {24, 13},
            .rows = 50,
            .shards = 1},
        {.what = "quantiles",
            .objective = QUANTILES,
            .obs = 5,
            .outs = 21,
            .box = 7,
            .hidden_count = 1,
            .hidden = {24},
            .activation = TT_NN_RELU,
            .rows = 45,
            .shards = 2},
        {.what = "quantiles, double",
            .objective = QUANTILES_DOUBLE,
            .obs = 4,
            .outs = 10,
            .box = 5,
            .hidden_count = 2,
            .hidden = {16, 9},
            .rows = 33,
            .shards = 4},
        {.what = "atoms",
            .objective = ATOMS,
            .obs = 5,
            .outs = 21,
            .box = 7,
            .hidden_count = 1,
            .hidden = {24},
            .activation = TT_NN_RELU,
            .rows = 45,
            .shards = 2},
        {.what = "atoms, double",
            .objective = ATOMS_DOUBLE,
            .obs = 4,
            .outs = 10,
            .box = 5,
            .hidden_count = 2,
            .hidden = {16, 9},
            .rows = 33,
            .shards = 4},
        {.what = "many weights",
            .objective = DQN,
            .obs = 4,
            .outs = 2,
            .hidden_count = 2,
            .hidden = {45, 50},
            .rows = 4,
            .shards = 1},
        {.what = "bytes",
            .objective = DQN,
            .obs = 50,
            .outs = 3,
            .hidden_count = 1,
            .hidden = {10},
            .divisor = 1,
            .activation = TT_NN_RELU,
            .rows = 12,
            .shards = 1},
        {.what = "divided bytes",
            .objective = PPO,
            .obs = 50,
            .outs = 3,
            .hidden_count = 1,
            .hidden = {10},
            .divisor = 255,
            .rows = 6,
            .shards = 1},
        {.what = "bytes without a layer", .objective = DQN, .obs = 20, .outs = 3, .divisor = 1, .rows = 5, .shards = 1},
        {.what = "next to nothing",
            .objective = DQN,
            .obs = 6,
            .outs = 3,
            .hidden_count = 2,
            .hidden = {9, 6},
            .tiny = 1e-30f,
            .rows = 5,
            .shards = 2}};
    s_try_all(cases, TT_COUNT(cases));
}

/*  As recipes have them. */
static void networks_of_recipes(void **state)
{
    (void)state;
    static const case_t cases[] = {{.what = "PPO on CartPole",
                                       .objective = PPO,
                                       .obs = 4,
                                       .outs = 2,
                                       .hidden_count = 2,
                                       .hidden = {64, 64},
                                       .rows = 70,
                                       .shards = 2},
        {.what = "DQN on CartPole",
            .objective = DQN,
            .obs = 4,
            .outs = 2,
            .hidden_count = 2,
            .hidden = {120, 84},
            .activation = TT_NN_RELU,
            .rows = 32,
            .shards = 1}};
    s_try_all(cases, LARGE ? TT_COUNT(cases) : 0);
}

/*  Too much work for one block of threads, too much for its memory, and too many layers. */
static void what_does_not_fit_goes_step_by_step(void **state)
{
    (void)state;
    static const case_t cases[] = {{.what = "wide rows",
                                       .objective = DQN,
                                       .apart = true,
                                       .obs = 700,
                                       .outs = 2,
                                       .hidden_count = 1,
                                       .hidden = {3},
                                       .rows = 2,
                                       .shards = 1},
        {.what = "deep",
            .objective = DQN,
            .apart = true,
            .obs = 2,
            .outs = 2,
            .hidden_count = 5,
            .hidden = {2, 2, 2, 2, 2},
            .rows = 2,
            .shards = 1},
        {.what = "four layers",
            .objective = DQN,
            .obs = 2,
            .outs = 2,
            .hidden_count = 4,
            .hidden = {2, 2, 2, 2},
            .rows = 2,
            .shards = 1},
        {.what = "much work",
            .objective = DQN,
            .apart = true,
            .obs = 2,
            .outs = 2,
            .hidden_count = 2,
            .hidden = {100, 100},
            .rows = UNITS,
            .shards = 1}};
    s_try_all(cases, TT_COUNT(cases) - !LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_same_bits),
        cmocka_unit_test(networks_of_recipes), cmocka_unit_test(what_does_not_fit_goes_step_by_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
