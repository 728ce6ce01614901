/*  DQN's optimiser steps against PyTorch: returns and discounts out of a replay, losses, gradients, errors and norm of every
 *  step, when the target network follows, and both networks after the last one (tests/golden/torch/dqn_update.py has the format
 *  and the reference). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/algorithms/dqn_objective.h"
#include "learner/algorithms/dqn_options.h"
#include "learner/compute.h"
#include "tests/learner/recorded.h"
#include "tests/learner/segments.h"
#include "tests/test.h"
#include "tests/learner/settled.h"

enum { SHARDS = 2, DRAWS = 64 };

typedef struct {
    char magic[8];
    uint32_t T, N, D, A, batches, n, units, steps, twice, squared, masked, prioritized, parameters, learning_starts,
        train_every, target_every, length, burn, carry;
    float lr, gamma, max_grad_norm, adam_eps, tau, rescale;
} head_t;

typedef struct {
    recorded_t file;
    char *arena; /* arrays of the file, aligned */
    size_t used;
    head_t h;
    const float *ret, *discount;
    const uint32_t *next;
    tt_columns_t *columns;
    replay_t *replay;
    model_t model; /* of which computing needs a part */
    compute_t *compute;
    const tt_algorithm_t *dqn;
    tt_values_t how;
    tt_rnn_t rnn;
    replay_cfg_t cfg;
    tt_algo_t *algo;
} case_t;

/*  The next `count` things of `size` bytes, aligned. */
static void *s_take(case_t *c, size_t count, size_t size)
{
    const size_t bytes = count * size;
    char *here = c->arena + c->used;
    c->used = tt_align(c->used + bytes, 16);
    assert_true(c->used <= 2 * RECORDED_MAX);
    memcpy(here, recorded_take(&c->file, count, size), bytes);
    return here;
}

static uint32_t s_take_u32(case_t *c)
{
    return *(const uint32_t *)s_take(c, 1, sizeof(uint32_t));
}

static void s_read(case_t *c, const char *name)
{
    recorded_open(&c->file, name);
    c->arena = tt_aligned0(2 * RECORDED_MAX);
    memcpy(&c->h, s_take(c, 1, sizeof c->h), sizeof c->h);
    assert_memory_equal(c->h.magic, "TTDQN\0\0\2", 8);
    char obs[32], action[32];
    snprintf(obs, sizeof obs, "float32[%u]", c->h.D);
    snprintf(action, sizeof action, "discrete(%u)", c->h.A);
    c->columns = made_columns(obs, action, c->h.masked);
    tt_columns_put_carry(c->columns, c->h.carry);
}

/*  A parameter vector, as the network has it. */
static const float *s_take_vector(case_t *c)
{
    const float *in = s_take(c, c->h.parameters, sizeof(float));
    float *out = (float *)(c->arena + c->used);
    const size_t size = recorded_place(c->model.net, in, out);
    assert_int_equal(size, c->h.parameters);
    c->used = tt_align(c->used + size * sizeof(float), 16);
    assert_true(c->used <= 2 * RECORDED_MAX);
    return out;
}

/* ---- experience ----------------------------------------------------------------------------------------------------- */

/*  A mask column, where there is one. */
static void s_take_mask(case_t *c, void **column, size_t rows)
{
    void *mask = s_take(c, rows, c->h.A);
    if (c->columns->mask >= 0)
        column[c->columns->mask] = mask;
}

static uint32_t s_read_batch(case_t *c, tt_segment_t *out)
{
    const head_t *h = &c->h;
    const uint32_t rows = h->T * h->N;
    *out = (tt_segment_t){0};
    out->column[0] = s_take(c, (size_t)rows * h->D, sizeof(float));
    out->column[c->columns->action] = s_take(c, rows, sizeof(int32_t));
    out->column[c->columns->reward] = s_take(c, rows, sizeof(float));
    out->age = s_take(c, h->N, sizeof(uint32_t));
    out->column[c->columns->terminated] = s_take(c, rows, 1);
    out->column[c->columns->truncated] = s_take(c, rows, 1);
    s_take_mask(c, out->column, rows);
    out->last[0] = s_take(c, (size_t)h->N * h->D, sizeof(float));
    s_take_mask(c, out->last, h->N);
    const uint32_t finals = s_take_u32(c);
    out->final_t = s_take(c, finals, sizeof(uint32_t));
    out->final_env = s_take(c, finals, sizeof(uint32_t));
    out->final[0] = s_take(c, (size_t)finals * h->D, sizeof(float));
    s_take_mask(c, out->final, finals);
    out->carry = s_take(c, (size_t)h->N * h->carry, sizeof(float));
    return finals;
}

static void s_fill_replay(case_t *c, const tt_feed_t *feed)
{
    const head_t *h = &c->h;
    c->cfg = (replay_cfg_t){.columns = c->columns,
        .store = (1ull << c->columns->reward) - 1,
        .N = h->N,
        .T = h->T,
        .capacity = feed->capacity,
        .stripes = SHARDS,
        .ahead = feed->ahead,
        .length = feed->length,
        .burn = feed->burn,
        .carry = h->carry,
        .gamma = c->dqn->gamma(&(dqn_cfg_t){.off.common.gamma = (double)h->gamma}),
        .stack = 1,
        .seed = 1};
    assert_ok(replay_new(&c->replay, &c->cfg));
    for (uint32_t b = 0; b < h->batches; b++) {
        tt_segment_t at;
        const uint32_t K = s_read_batch(c, &at);
        assert_ok(replay_insert(c->replay, b, &(replay_part_t){.at = &at, .E = h->N, .K = K, .count = h->N}, 1, NULL));
    }
    const size_t rows = (size_t)h->batches * h->T * h->N;
    c->ret = s_take(c, rows, sizeof(float));
    c->discount = s_take(c, rows, sizeof(float));
    c->next = s_take(c, rows, sizeof(uint32_t));
}

static void s_near(const char *what, uint32_t step, size_t count, const float *got, const float *want, double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= tolerance * (1 + fabs((double)want[i]))))
            fail_msg("step %u: %s %zu is %.9g, PyTorch has %.9g", step, what, i, (double)got[i], (double)want[i]);
}

/*  Rows that are trained on of as many units, in the minibatch's order: [length][units], or the units. */
static uint32_t s_rows(const case_t *c)
{
    return c->h.units * (c->h.length ? c->h.length : 1);
}

static uint64_t s_row(const case_t *c, const uint64_t *unit, uint32_t i)
{
    return unit[i % c->h.units] + (uint64_t)(c->h.burn + i / c->h.units) * c->h.N;
}

/*  As a frame of its unit. */
static uint32_t s_next(const case_t *c, const uint64_t *unit, uint32_t i)
{
    const uint32_t next = c->next[s_row(c, unit, i)], start = (uint32_t)(unit[i % c->h.units] / c->h.N);
    return (next & REPLAY_FINAL_OF) | ((next & ~REPLAY_FINAL_OF) - start);
}

/*  What the replay says of the units it draws. */
static void s_check_returns(case_t *c)
{
    for (uint32_t total = 0; total < DRAWS; total++) {
        replay_sample_t sample;
        const replay_sample_t *s = &sample;
        assert_ok(replay_sample(c->replay, total, c->h.units, 0, &sample));
        for (uint32_t i = 0; i < s_rows(c); i++) {
            s_near("return", total, 1, &s->ret[i], &c->ret[s_row(c, s->unit, i)], 1e-6);
            s_near("discount", total, 1, &s->discount[i], &c->discount[s_row(c, s->unit, i)], 1e-6);
            if (c->h.length)
                assert_int_equal(s->next[i], s_next(c, s->unit, i));
        }
    }
}

/* ---- what learns ---------------------------------------------------------------------------------------------------- */

static dqn_cfg_t s_cfg(const case_t *c)
{
    const head_t *h = &c->h;
    return (dqn_cfg_t){.off.common.learning_rate = h->lr,
        .off.common.max_grad_norm = h->max_grad_norm,
        .off.common.gamma = (double)h->gamma,
        .off.batch_size = h->units,
        .off.n_step = h->n,
        .double_q = h->twice,
        .dueling = c->how.dueling,
        .quantiles = c->how.quantiles,
        .atoms = c->how.atoms,
        .v_min = c->how.low,
        .v_max = c->how.high,
        .rescale = h->rescale,
        .sequence_length = h->length,
        .burn_in = h->burn,
        .loss = h->squared ? DQN_MSE : DQN_HUBER,
        .target_every = h->target_every,
        .off.tau = h->tau,
        .off.learning_starts = h->learning_starts,
        .off.train_every = h->train_every,
        .off.gradient_steps = 1,
        .off.common.optimizer = TT_OPT_ADAM,
        .off.common.adam_beta1 = 0.9f,
        .off.common.adam_beta2 = 0.999f,
        .off.common.adam_eps = h->adam_eps,
        .off.capacity = 1000,
        .replay = {.prioritized = h->prioritized, .alpha = 0.6f, .epsilon = 1e-6f}};
}

static tt_train_cfg_t s_train(const case_t *c)
{
    const head_t *h = &c->h;
    tt_train_cfg_t train = {.num_envs = h->N,
        .num_steps = h->T,
        .learner.shards = SHARDS,
        .space.mask = h->masked,
        .network = {.hidden = {2, {12, 8}}, .activation = TT_ACT_RELU, .rnn = (int)c->rnn, .rnn_size = 6}};
    snprintf(train.space.obs, sizeof train.space.obs, "float32[%u]", h->D);
    snprintf(train.space.action, sizeof train.space.action, "discrete(%u)", h->A);
    return train;
}

static void s_create_net(case_t *c, const tt_train_cfg_t *train, const tt_algorithm_shape_t *shape)
{
    tt_net_spec_t spec = tt_train_net(train, c->columns);
    spec.sets = shape->sets;
    spec.ride = shape->ride;
    assert_int_equal(tt_net_param_count(&spec), c->h.parameters);
    model_t *model = &c->model;
    assert_ok(tt_device_open(&model->device, NULL, 0, 1));
    assert_ok(tt_stream_new(&model->stream, model->device));
    assert_ok(tt_net_new(&model->net, model->device, &spec));
    const float *params = s_take_vector(c);
    for (uint32_t set = 0; set < shape->sets; set++)
        assert_ok(tt_net_put(model->net, model->stream, set, params));
    assert_ok(tt_opt_new(&model->opt[0], model->net, 0, c->dqn->opt(c->algo, 0)));
    model->opts = 1;
    assert_ok(compute_new(&c->compute, model));
}

static void s_open(case_t *c, const char *name)
{
    s_read(c, name);
    assert_ok(tt_algorithm_find(&c->dqn, "dqn"));
    const dqn_cfg_t cfg = s_cfg(c);
    tt_train_cfg_t train = s_train(c);
    tt_algorithm_shape_t shape = {0};
    c->model.train = train;
    c->dqn->shape(&train, &cfg, &shape);
    train.actor = shape.actor;
    assert_ok(c->dqn->create(&c->algo, &train, c->columns, &cfg));
    s_create_net(c, &train, &shape);
    s_fill_replay(c, &shape.feed);
}

static void s_close(case_t *c)
{
    c->dqn->destroy(&c->algo);
    assert_null(c->algo);
    replay_destroy(&c->replay);
    compute_destroy(&c->compute);
    tt_opt_destroy(&c->model.opt[0]);
    tt_net_destroy(&c->model.net);
    tt_stream_destroy(&c->model.stream);
    tt_device_close(&c->model.device);
    tt_columns_destroy(&c->columns);
    free(c->arena);
    recorded_close(&c->file);
}

/* ---- a step --------------------------------------------------------------------------------------------------------- */

/*  The units that PyTorch took, with their observations. */
typedef struct {
    uint64_t *unit;
    uint32_t *next;
    float *ret, *discount, *obs[TT_FRAMES];
    replay_sample_t sample;
    sequences_t sequences;
    compute_units_t units;
} picked_t;

static void s_gather_units(const case_t *c, picked_t *out)
{
    for (int f = 0; f < TT_FRAMES; f++) {
        out->units.rows[f] = out->obs[f] = tt_array0(c->h.units, c->h.D * sizeof(float));
        replay_gather_rows(c->replay, out->unit, c->h.units, f == TT_AT ? REPLAY_AT : REPLAY_NEXT, out->obs[f]);
    }
}

static void s_gather_sequences(const case_t *c, picked_t *out)
{
    sequences_t *of = &out->sequences;
    sequences_init(of, &c->cfg, c->h.units);
    sequences_read(of, c->replay, &out->sample, 0, c->h.units);
    const uint32_t rows = sequences_rows(of);
    float *obs = tt_array0((size_t)rows + of->finals, c->h.D * sizeof(float));
    replay_gather_rows(c->replay, of->row, rows, REPLAY_AT, obs);
    replay_gather_rows(c->replay, of->final, of->finals, REPLAY_FINAL, obs + (size_t)rows * c->h.D);
    out->units.rows[TT_AT] = out->obs[TT_AT] = obs;
    out->units.sequences = of;
}

static void s_pick(const case_t *c, const uint32_t *unit, const float *weight, picked_t *out)
{
    const uint32_t units = c->h.units, rows = s_rows(c);
    *out = (picked_t){.unit = tt_array0(units, sizeof *out->unit),
        .next = tt_array0(rows, sizeof *out->next),
        .ret = tt_array0(rows, sizeof(float)),
        .discount = tt_array0(rows, sizeof(float))};
    for (uint32_t i = 0; i < units; i++)
        out->unit[i] = unit[i];
    for (uint32_t i = 0; i < rows; i++) {
        out->ret[i] = c->ret[s_row(c, out->unit, i)];
        out->discount[i] = c->discount[s_row(c, out->unit, i)];
        out->next[i] = s_next(c, out->unit, i);
    }
    out->sample = (replay_sample_t){units, out->unit, weight, out->ret, out->discount, out->next};
    (c->h.length ? s_gather_sequences : s_gather_units)(c, out);
}

static void s_drop(picked_t *p)
{
    sequences_free(&p->sequences);
    free(p->unit);
    free(p->next);
    free(p->ret);
    free(p->discount);
    for (int f = 0; f < TT_FRAMES; f++)
        free(p->obs[f]);
}

/*  What it describes, and the gradient, borrowed. */
static const float *s_describe(case_t *c, const tt_at_t *at, const picked_t *p, tt_minibatch_t *m)
{
    const float *grad;
    assert_ok(c->dqn->minibatch(c->algo, at, m));
    assert_int_equal(m->rows, s_rows(c));
    assert_int_equal(m->length, c->h.length);
    assert_null(m->row);
    assert_false(m->ends);
    assert_ok(tt_objective_check(m->objective, tt_net_spec(c->model.net)));
    assert_ok(compute_gradients(c->compute, m, &p->units, 0, SHARDS));
    assert_ok(compute_node(c->compute, 1, &grad));
    return grad;
}

static void s_step(case_t *c, uint32_t number)
{
    tt_at_t at = {.rows = s_take_u32(c), .step = s_take_u32(c), .total = number, .replay = c->replay};
    const uint32_t *unit = s_take(c, c->h.units, sizeof *unit);
    picked_t p;
    tt_minibatch_t m;
    tt_result_t result;
    s_pick(c, unit, s_take(c, c->h.units, sizeof(float)), &p);
    at.sample = &p.sample;
    const float *grad = s_describe(c, &at, &p, &m);

    const bool follows = s_take_u32(c);
    const float *expected = s_take(c, DQN_STATS + 1, sizeof(float)), *error = s_take(c, s_rows(c), sizeof(float));
    s_near("gradient", number, c->h.parameters, grad, s_take_vector(c), 1e-5);
    assert_int_equal(m.blends, follows);
    assert_ok(settled_step(c->compute, &m, NULL, &result));
    s_near("statistic", number, DQN_STATS, result.stats, expected, 1e-5);
    s_near("error", number, tt_net_spec(c->model.net)->ride, result.ride, error, 1e-5);
    s_near("norm", number, 1, result.norm, expected + DQN_STATS, 1e-5);
    assert_false(c->dqn->after(c->algo, at.step, &result));
    s_drop(&p);
}

static void s_run_remembering(const char *name, tt_values_t how, tt_rnn_t rnn)
{
    case_t c = {.how = how, .rnn = rnn};
    s_open(&c, name);
    s_check_returns(&c);
    for (uint32_t step = 0; step < c.h.steps; step++)
        s_step(&c, step);
    float *params = tt_array0(c.h.parameters, sizeof(float));
    for (uint32_t set = 0; set < 2; set++) {
        assert_ok(tt_net_get(c.model.net, c.model.stream, set, params));
        s_near(set ? "target parameter" : "parameter", c.h.steps, c.h.parameters, params, s_take_vector(&c), 1e-5);
    }
    assert_ptr_equal(c.file.at, c.file.end);
    free(params);
    s_close(&c);
}

static const tt_values_t s_plain = {0}, s_dueling = {.dueling = true};

static void s_run(const char *name, tt_values_t how)
{
    s_run_remembering(name, how, TT_RNN_NONE);
}

static void test_plain(void **state)
{
    (void)state;
    s_run("dqn", s_plain);
}

static void test_nstep(void **state)
{
    (void)state;
    s_run("dqn_nstep", s_plain);
}

static void test_double(void **state)
{
    (void)state;
    s_run("dqn_double", s_plain);
}

static void test_masked(void **state)
{
    (void)state;
    s_run("dqn_masked", s_plain);
}

static void test_double_masked(void **state)
{
    (void)state;
    s_run("dqn_double_masked", s_plain);
}

static void test_dueling(void **state)
{
    (void)state;
    s_run("dqn_dueling", s_dueling);
}

static void test_quantiles(void **state)
{
    (void)state;
    s_run("dqn_quantile", (tt_values_t){.quantiles = 7});
    s_run("dqn_quantile_double_masked", (tt_values_t){.quantiles = 5});
    s_run("dqn_quantile_dueling", (tt_values_t){.dueling = true, .quantiles = 4});
}

static void test_atoms(void **state)
{
    (void)state;
    s_run("dqn_atoms", (tt_values_t){.atoms = 7, .low = -2, .high = 3});
    s_run("dqn_rainbow", (tt_values_t){.dueling = true, .atoms = 11, .low = -1.5f, .high = 1.5f});
}

static void test_rescaled(void **state)
{
    (void)state;
    s_run("dqn_rescaled", s_plain);
}

static void test_sequences(void **state)
{
    (void)state;
    s_run_remembering("dqn_lstm", s_plain, TT_RNN_LSTM);
    s_run_remembering("dqn_lstm_double_masked", s_plain, TT_RNN_LSTM);
    s_run_remembering("dqn_gru_dueling", s_dueling, TT_RNN_GRU);
    s_run_remembering("dqn_lstm_quantile", (tt_values_t){.quantiles = 5}, TT_RNN_LSTM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_nstep),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_masked),
        cmocka_unit_test(test_double_masked),
        cmocka_unit_test(test_dueling),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_atoms),
        cmocka_unit_test(test_rescaled),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
