/*  Work that comes again is one launch, and gives the CPU's bits whatever lies between: other rows, parameters of the loss, learning rates,
 *  shapes, and memory that moved. A second network beside the first is the same one on the CPU. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "learner/algorithms/dqn_objective.h"
#include "tests/nn/fixture.h"
#include "tests/simt/count.h"

enum { OBS = 5, CHOICES = 3, SHARDS = 4, UNITS = 90, INPUTS = 4, HEADS = 2 };

extern const tt_backend_ops_t cuda_backend;

/*  A place with a Q-network of two sets, and what a minibatch of it needs. */
typedef struct {
    place_t place;
    tt_net_t *net;
    tt_sums_t *sums;
    tt_opt_t *opt;
    tt_table_t *obs[TT_FRAMES], *input[INPUTS], *head[HEADS];
    void *rows[TT_FRAMES + INPUTS + HEADS]; /* what the tables have; borrowed by them */
} learner_t;

/*  A minibatch: rows `row` of the tables as put for `turn`. */
typedef struct {
    uint32_t turn, rows, table;
    bool twice;
    float scale, lr;
    bool known;    /* the target's head: */
    uint32_t head; /* by this table      */
} batch_t;

static const uint32_t s_hidden[] = {9, 7};

static void new_learner(learner_t *self, const place_t *place)
{
    static const size_t bytes[INPUTS] = {sizeof(int32_t), sizeof(float), sizeof(float), sizeof(float)};
    tt_net_spec_t spec = tt_net_one("q", OBS, s_hidden, 2, TT_NN_RELU, CHOICES);
    const tt_opt_spec_t adam = {TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .max_norm = 0.5f};
    spec.sets = 2;
    spec.ride = UNITS;
    self->place = *place;
    self->net = fixture_net(place, &spec);
    assert_ok(tt_sums_new(&self->sums, self->net, SHARDS));
    assert_ok(tt_opt_new(&self->opt, self->net, 0, &adam));
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        assert_ok(tt_table_new(&self->obs[f], place->device, tt_net_row_bytes(&spec)));
    for (uint32_t i = 0; i < INPUTS; i++)
        assert_ok(tt_table_new(&self->input[i], place->device, bytes[i]));
    for (uint32_t i = 0; i < HEADS; i++)
        assert_ok(tt_table_new(&self->head[i], place->device, CHOICES * sizeof(float)));
}

static void free_learner(learner_t *self)
{
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        tt_table_destroy(&self->obs[f]);
    for (uint32_t i = 0; i < INPUTS; i++)
        tt_table_destroy(&self->input[i]);
    for (uint32_t i = 0; i < HEADS; i++)
        tt_table_destroy(&self->head[i]);
    for (uint32_t i = 0; i < TT_FRAMES + INPUTS + HEADS; i++)
        free(self->rows[i]);
    tt_opt_destroy(&self->opt);
    tt_sums_destroy(&self->sums);
    tt_net_destroy(&self->net);
    fixture_close(&self->place);
}

static void put(learner_t *self, tt_table_t *table, void **kept, void *rows, size_t count)
{
    free(*kept);
    *kept = rows;
    assert_ok(tt_table_put(table, self->place.stream, rows, count));
}

static float *numbers(uint32_t what, size_t count)
{
    float *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = fixture_number(what, i);
    return out;
}

static int32_t *actions(uint32_t turn, size_t count)
{
    int32_t *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)((i + turn) % CHOICES);
    return out;
}

static void put_tables(learner_t *self, const batch_t *batch)
{
    const uint32_t what = 500 + 10 * batch->turn, rows = batch->table;
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        put(self, self->obs[f], &self->rows[f], numbers(what + f, (size_t)rows * OBS), rows);
    put(self, self->input[DQN_IN_ACTION], &self->rows[TT_FRAMES], actions(batch->turn, rows), rows);
    for (uint32_t i = DQN_IN_RETURN; i < INPUTS; i++)
        put(self, self->input[i], &self->rows[TT_FRAMES + i], numbers(what + TT_FRAMES + i, rows), rows);
    if (batch->known)
        put(self, self->head[batch->head], &self->rows[TT_FRAMES + INPUTS + batch->head],
            numbers(what + TT_FRAMES + INPUTS, (size_t)rows * CHOICES), rows);
}

/*  Then nothing of the next frame is forwarded, but by double Q-learning. */
static void make_known(learner_t *self, const batch_t *batch, tt_objective_t *objective, tt_pass_t *pass)
{
    objective->stage[DQN_TARGET_NEXT].known = true;
    pass->head[DQN_TARGET_NEXT] = self->head[batch->head];
    if (!batch->twice)
        pass->obs[TT_NEXT] = NULL;
}

static void learn(learner_t *self, const batch_t *batch)
{
    uint32_t row[UNITS];
    tt_objective_t objective = dqn_objective(tt_net_spec(self->net), batch->twice);
    const dqn_loss_t params = {.choices = CHOICES, .scale = batch->scale};
    tt_pass_t pass = {
        .objective = &objective, .params = &params, .params_size = sizeof params, .row = row, .rows = batch->rows};
    for (uint32_t i = 0; i < batch->rows; i++)
        row[i] = (i * 7 + batch->turn) % batch->table;
    memcpy(pass.obs, self->obs, sizeof self->obs);
    memcpy(pass.input, self->input, sizeof self->input);
    if (batch->known)
        make_known(self, batch, &objective, &pass);
    put_tables(self, batch);
    assert_ok(tt_sums_compute(self->sums, self->place.stream, &pass, 0, SHARDS));
    assert_ok(tt_opt_step(self->opt, self->place.stream, self->sums, batch->lr));
}

/*  Parameters and what the report says, of both, bit by bit. */
static void assert_same(learner_t *card, learner_t *cpu)
{
    learner_t *both[] = {card, cpu};
    float stats[2][TT_LOSS_STATS + UNITS], *params[2];
    tt_norms_t norms[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(fixture_report(&both[i]->place, both[i]->net, both[i]->sums, stats[i], &norms[i]));
        params[i] = fixture_params(&both[i]->place, both[i]->net, 0);
    }
    assert_memory_equal(params[0], params[1], tt_net_param_count(tt_net_spec(card->net)) * sizeof(float));
    assert_memory_equal(stats[0], stats[1], sizeof stats[0]);
    assert_memory_equal(norms[0].newest, norms[1].newest, sizeof *norms[0].newest);
    free(params[0]);
    free(params[1]);
}

typedef struct {
    learner_t card, cpu;
} both_t;

static both_t *new_both(void)
{
    both_t *self = tt_new0(sizeof *self);
    place_t card, cpu;
    assert_ok(cuda_backend.open(&card.device, 0, 1));
    assert_ok(tt_stream_new(&card.stream, card.device));
    fixture_open_on(&cpu, "cpu", 1);
    new_learner(&self->card, &card);
    new_learner(&self->cpu, &cpu);
    return self;
}

static void free_both(both_t *self)
{
    free_learner(&self->card);
    free_learner(&self->cpu);
    free(self);
}

/*  On both, with the CPU's bits; what the card's host launched for it. */
static simt_count_t learn_both(both_t *self, const batch_t *batch)
{
    const simt_count_t before = simt_count();
    learn(&self->card, batch);
    const simt_count_t after = simt_count();
    learn(&self->cpu, batch);
    assert_same(&self->card, &self->cpu);
    return (simt_count_t){.kernels = after.kernels - before.kernels, .graphs = after.graphs - before.graphs};
}

/*  A pass and a step: one by one, recorded, and from then on two launches. */
static void assert_counts(both_t *both, batch_t batch, const bool recorded[], uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++, batch.turn++, batch.lr *= 0.7f, batch.scale *= 1.3f) {
        const simt_count_t count = learn_both(both, &batch);
        assert_int_equal(count.graphs, recorded[i] ? 2 : 0);
        assert_true(recorded[i] == (count.kernels == 0));
    }
}

static void what_comes_again_is_one_launch(void **state)
{
    (void)state;
    both_t *both = new_both();
    static const bool recorded[] = {false, true, true, true, true};
    assert_counts(both, (batch_t){.rows = 37, .table = UNITS, .scale = 1.0f / 37, .lr = 0.01f}, recorded, 5);
    free_both(both);
}

/*  Shapes and objectives take turns: each has a graph of its own, but the step is the same one. */
static void shapes_take_turns(void **state)
{
    (void)state;
    both_t *both = new_both();
    static const uint32_t rows[] = {64, 37, 64, 3, 37};
    simt_count_t count = {0};
    for (uint32_t i = 0; i < 25; i++) {
        const batch_t batch = {i, rows[i % 5], UNITS, i % 3 == 0, 1.0f / 37, 0.01f / (float)(i + 1), i % 7 > 4, i % 2};
        count = learn_both(both, &batch);
    }
    const batch_t again = {.turn = 99, .rows = 64, .table = UNITS, .scale = 0.5f, .lr = 0.01f};
    count = learn_both(both, &again);
    assert_int_equal(count.kernels, 0);
    assert_int_equal(count.graphs, 2);
    free_both(both);
}

/*  Longer tables lie elsewhere, and more rows need more room: what was recorded before names memory that is gone. */
static void memory_moves(void **state)
{
    (void)state;
    both_t *both = new_both();
    static const bool recorded[] = {false, true, true}, anew[] = {false, true};
    const batch_t batch = {.rows = 8, .table = 8, .scale = 0.1f, .lr = 0.01f};
    assert_counts(both, batch, recorded, 3);
    const batch_t longer = {.turn = 10, .rows = 8, .table = UNITS, .scale = 0.1f, .lr = 0.01f};
    assert_counts(both, longer, anew, 2);
    const batch_t more = {.turn = 20, .rows = UNITS, .table = UNITS, .scale = 0.1f, .lr = 0.01f};
    assert_int_equal(learn_both(both, &more).graphs, 0);
    const batch_t back = {.turn = 21, .rows = 8, .table = UNITS, .scale = 0.1f, .lr = 0.01f};
    assert_int_equal(learn_both(both, &back).graphs, 1); /* the step, which is as it was before */
    assert_int_equal(learn_both(both, &back).graphs, 2);
    free_both(both);
}

/*  Heads that are known lie in two tables by turns: each has a graph of its own, beside that of the step. */
static void known_heads_take_turns(void **state)
{
    (void)state;
    both_t *both = new_both();
    static const uint32_t head[] = {0, 0, 1, 1, 0, 1, 0};
    static const bool recorded[] = {false, true, false, true, true, true, true};
    for (int twice = 1; twice >= 0; twice--) /* the larger one first: memory stays where it is */
        for (uint32_t i = 0; i < TT_COUNT(head); i++) {
            const batch_t batch = {i, 37, UNITS, twice, 1.0f / 37, 0.01f, true, head[i]};
            const uint32_t step = i > 0 || !twice;
            assert_int_equal(learn_both(both, &batch).graphs, recorded[i] + step);
        }
    free_both(both);
}

/*  More shapes than are kept: each comes round when it has been forgotten. */
static void too_many_shapes(void **state)
{
    (void)state;
    both_t *both = new_both();
    for (uint32_t i = 0; i < 2 * 40; i++) {
        const batch_t batch = {.turn = i, .rows = 40 - i % 40, .table = UNITS, .scale = 0.1f, .lr = 0.01f};
        const simt_count_t count = learn_both(both, &batch);
        if (i > 1)
            assert_int_equal(count.graphs, 1); /* the step's */
    }
    free_both(both);
}

static void none_are_wanted(void **state)
{
    (void)state;
    setenv("TT_CUDA_GRAPHS", "off", 1);
    both_t *both = new_both();
    unsetenv("TT_CUDA_GRAPHS");
    static const bool recorded[] = {false, false, false};
    assert_counts(both, (batch_t){.rows = 37, .table = UNITS, .scale = 1.0f / 37, .lr = 0.01f}, recorded, 3);
    free_both(both);
}

static int s_step_by_step(void **state)
{
    (void)state;
    return setenv("TT_CUDA_FUSED", "off", 1);
}

/*  A pass of this network is one kernel, or many (fused.c). */
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_comes_again_is_one_launch),
        cmocka_unit_test(shapes_take_turns), cmocka_unit_test(memory_moves), cmocka_unit_test(known_heads_take_turns),
        cmocka_unit_test(too_many_shapes), cmocka_unit_test(none_are_wanted)};
    const struct CMUnitTest more[] = {cmocka_unit_test(what_comes_again_is_one_launch), cmocka_unit_test(memory_moves),
        cmocka_unit_test(known_heads_take_turns)};
    const int fused = cmocka_run_group_tests(tests, NULL, NULL);
    return cmocka_run_group_tests_name("step by step", more, s_step_by_step, NULL) + fused;
}
