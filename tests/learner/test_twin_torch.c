/*  Optimiser steps of SAC and of TD3 against PyTorch: the critics' and the actor's by turns, their losses, gradients and norms, and
 *  both sets of parameters after the last one, so how the targets followed (tests/golden/torch/sac_update.py and td3_update.py have the
 *  format and the reference). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/algorithms/sac_objective.h"
#include "learner/algorithms/sac_options.h"
#include "learner/algorithms/td3_options.h"
#include "learner/algorithms/twin.h"
#include "learner/compute.h"
#include "tests/learner/recorded.h"
#include "tests/test.h"
#include "tests/learner/settled.h"

enum { SHARDS = 2, GROUPS = TWIN_GROUPS, SETS = 2 };

typedef struct {
    char magic[8];
    uint32_t T, N, D, A, first, batches, n, units, steps, tuned /* TD3: policy_delay */, relu, encoder, parameters;
    float lr, critic_lr, gamma, max_grad_norm, adam_eps, tau, target_entropy /* TD3: target_noise */;
} head_t;

/*  What begins as both algorithms' settings do. */
typedef union {
    off_policy_cfg_t off;
    sac_cfg_t sac;
    td3_cfg_t td3;
} cfg_t;

typedef struct {
    recorded_t file;
    char *arena; /* arrays of the file, aligned */
    size_t used;
    head_t h;
    bool soft; /* SAC; else TD3 */
    float clip;
    tt_columns_t *columns;
    replay_t *replay;
    model_t model; /* of which computing needs a part */
    compute_t *compute;
    const tt_algorithm_t *algorithm;
    tt_algo_t *algo;
    size_t params; /* of the network: with the zeros between groups */
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

static void s_read(case_t *c, const char *name)
{
    recorded_open(&c->file, name);
    c->arena = tt_aligned0(2 * RECORDED_MAX);
    memcpy(&c->h, s_take(c, 1, sizeof c->h), sizeof c->h);
    c->soft = memcmp(c->h.magic, "TTSAC\0\0\2", 8) == 0;
    if (c->soft)
        return;
    assert_memory_equal(c->h.magic, "TTTD3\0\0\2", 8);
    c->clip = *(const float *)s_take(c, 1, sizeof c->clip);
}

/*  A parameter vector, as the network has it. */
static const float *s_take_vector(case_t *c)
{
    const float *in = s_take(c, c->h.parameters, sizeof(float));
    float *out = (float *)(c->arena + c->used);
    assert_int_equal(recorded_place(c->model.net, in, out), c->h.parameters);
    c->used = tt_align(c->used + c->params * sizeof(float), 16);
    assert_true(c->used <= 2 * RECORDED_MAX);
    return out;
}

/* ---- experience ----------------------------------------------------------------------------------------------------- */

static uint32_t s_read_batch(case_t *c, tt_segment_t *out)
{
    const head_t *h = &c->h;
    const uint32_t rows = h->T * h->N;
    *out = (tt_segment_t){0};
    out->column[0] = s_take(c, (size_t)rows * h->D, sizeof(float));
    for (uint32_t i = 0; i < c->columns->action_count; i++)
        out->column[c->columns->action + i] = s_take(c, rows, c->columns->at[c->columns->action + i].bytes);
    out->column[c->columns->reward] = s_take(c, rows, sizeof(float));
    out->age = s_take(c, h->N, sizeof(uint32_t));
    out->column[c->columns->terminated] = s_take(c, rows, 1);
    out->column[c->columns->truncated] = s_take(c, rows, 1);
    out->last[0] = s_take(c, (size_t)h->N * h->D, sizeof(float));
    const uint32_t finals = *(const uint32_t *)s_take(c, 1, sizeof(uint32_t));
    out->final_t = s_take(c, finals, sizeof(uint32_t));
    out->final_env = s_take(c, finals, sizeof(uint32_t));
    out->final[0] = s_take(c, (size_t)finals * h->D, sizeof(float));
    return finals;
}

static void s_fill_replay(case_t *c, const tt_feed_t *feed)
{
    const head_t *h = &c->h;
    const replay_cfg_t cfg = {.columns = c->columns,
        .store = (1ull << c->columns->reward) - 1,
        .N = h->N,
        .T = h->T,
        .capacity = feed->capacity,
        .stripes = SHARDS,
        .ahead = feed->ahead,
        .gamma = (double)h->gamma,
        .stack = 1,
        .seed = 1};
    assert_ok(replay_new(&c->replay, &cfg));
    for (uint32_t b = 0; b < h->batches; b++) {
        tt_segment_t at;
        const uint32_t K = s_read_batch(c, &at);
        assert_ok(replay_insert(c->replay, b, &(replay_part_t){.at = &at, .E = h->N, .K = K, .count = h->N}, 1, NULL));
    }
}

static void s_near(const char *what, uint32_t step, size_t count, const float *got, const float *want, double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= tolerance * (1 + fabs((double)want[i]))))
            fail_msg("step %u: %s %zu is %.9g, PyTorch has %.9g", step, what, i, (double)got[i], (double)want[i]);
}

/* ---- what learns ---------------------------------------------------------------------------------------------------- */

static off_policy_cfg_t s_off(const head_t *h)
{
    return (off_policy_cfg_t){.common.learning_rate = h->lr,
        .common.max_grad_norm = h->max_grad_norm,
        .common.gamma = (double)h->gamma,
        .common.optimizer = TT_OPT_ADAM,
        .common.adam_beta1 = 0.9f,
        .common.adam_beta2 = 0.999f,
        .common.adam_eps = h->adam_eps,
        .batch_size = h->units,
        .n_step = h->n,
        .train_every = 1,
        .gradient_steps = 1,
        .capacity = 1000,
        .tau = h->tau};
}

static cfg_t s_cfg(const case_t *c)
{
    const head_t *h = &c->h;
    if (c->soft)
        return (cfg_t){.sac = {.off = s_off(h),
                           .critic_learning_rate = h->critic_lr,
                           .entropy_coef = 1, /* what it is at first stands in the parameters */
                           .tune_entropy = h->tuned,
                           .target_entropy = (double)h->target_entropy}};
    return (cfg_t){.td3 = {.off = s_off(h),
                       .critic_learning_rate = h->critic_lr,
                       .policy_delay = h->tuned,
                       .target_noise = h->target_entropy,
                       .target_noise_clip = c->clip}};
}

static tt_train_cfg_t s_train(const head_t *h)
{
    tt_train_cfg_t train = {.num_envs = h->N,
        .num_steps = h->T,
        .learner.shards = SHARDS,
        .network = {.hidden = {2, {12, 8}}, .activation = h->relu ? TT_ACT_RELU : TT_ACT_TANH}};
    snprintf(train.space.obs, sizeof train.space.obs, "float32[%u]", h->D);
    snprintf(train.space.action, sizeof train.space.action, "float32[%u]", h->A);
    if (h->encoder)
        snprintf(
            train.network.encoder, sizeof train.network.encoder, "dense %u %s", h->encoder, h->relu ? "relu" : "tanh");
    if (h->first)
        snprintf(train.space.action, sizeof train.space.action, "{arm: float32[%u], leg: float32[%u]}", h->first,
            h->A - h->first);
    return train;
}

static void s_create_net(case_t *c, const tt_algorithm_shape_t *shape)
{
    model_t *model = &c->model;
    tt_net_spec_t spec = tt_train_net(&model->train, c->columns);
    spec.sets = shape->sets;
    assert_true(spec.sets == SETS && tt_net_groups(&spec) == GROUPS);
    c->params = tt_net_param_count(&spec);
    assert_true(c->params >= c->h.parameters);
    assert_ok(tt_device_open(&model->device, NULL, 0, 1));
    assert_ok(tt_stream_new(&model->stream, model->device));
    assert_ok(tt_net_new(&model->net, model->device, &spec));
    for (uint32_t set = 0; set < SETS; set++)
        assert_ok(tt_net_put(model->net, model->stream, set, s_take_vector(c)));
    model->opts = GROUPS;
    for (uint32_t g = 0; g < GROUPS; g++)
        assert_ok(tt_opt_new(&model->opt[g], model->net, g, c->algorithm->opt(c->algo, g)));
    assert_ok(compute_new(&c->compute, model));
}

static void s_open(case_t *c, const char *name)
{
    s_read(c, name);
    assert_ok(tt_algorithm_find(&c->algorithm, c->soft ? "sac" : "td3"));
    const cfg_t cfg = s_cfg(c);
    tt_algorithm_shape_t shape = {0};
    c->model.train = s_train(&c->h);
    c->algorithm->shape(&c->model.train, &cfg, &shape);
    c->model.train.actor = shape.actor;
    assert_ok(tt_train_columns(&c->columns, &c->model.train));
    assert_ok(c->algorithm->create(&c->algo, &c->model.train, c->columns, &cfg));
    s_create_net(c, &shape);
    s_fill_replay(c, &shape.feed);
}

static void s_close(case_t *c)
{
    c->algorithm->destroy(&c->algo);
    assert_null(c->algo);
    replay_destroy(&c->replay);
    compute_destroy(&c->compute);
    for (uint32_t g = 0; g < GROUPS; g++)
        tt_opt_destroy(&c->model.opt[g]);
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
    float *obs[TT_FRAMES];
    replay_sample_t sample;
} picked_t;

static void s_pick(case_t *c, picked_t *out)
{
    const uint32_t units = c->h.units, *unit = s_take(c, units, sizeof *unit);
    out->unit = tt_array0(units, sizeof *out->unit);
    for (uint32_t i = 0; i < units; i++)
        out->unit[i] = unit[i];
    for (int f = 0; f < TT_FRAMES; f++) {
        out->obs[f] = tt_array0(units, c->h.D * sizeof(float));
        replay_gather_rows(c->replay, out->unit, units, f == TT_AT ? REPLAY_AT : REPLAY_NEXT, out->obs[f]);
    }
    const float *ret = s_take(c, units, sizeof(float)), *discount = s_take(c, units, sizeof(float));
    static float weight[256]; /* all alike, as there */
    for (uint32_t i = 0; i < units && i < TT_COUNT(weight); i++)
        weight[i] = 1;
    assert_true(units <= TT_COUNT(weight));
    out->sample =
        (replay_sample_t){.units = units, .unit = out->unit, .weight = weight, .ret = ret, .discount = discount};
}

static void s_drop(picked_t *p)
{
    free(p->unit);
    for (int f = 0; f < TT_FRAMES; f++)
        free(p->obs[f]);
}

/*  What it describes, with PyTorch's noise in place of its own, and the gradient, borrowed. */
static const float *s_describe(case_t *c, const tt_at_t *at, const picked_t *p, bool draws, tt_minibatch_t *m)
{
    const float *grad;
    assert_ok(c->algorithm->minibatch(c->algo, at, m));
    assert_int_equal(m->rows, c->h.units);
    assert_null(m->row);
    assert_int_equal(m->input[TWIN_IN_NOISE].bytes, draws ? c->h.A * sizeof(float) : 0);
    if (draws)
        m->input[TWIN_IN_NOISE].at = s_take(c, (size_t)c->h.units * c->h.A, sizeof(float));
    assert_ok(tt_objective_check(m->objective, tt_net_spec(c->model.net)));
    assert_ok(
        compute_gradients(c->compute, m, &(compute_units_t){.rows = {p->obs[TT_AT], p->obs[TT_NEXT]}}, 0, SHARDS));
    assert_ok(compute_node(c->compute, 1, &grad));
    return grad;
}

static void s_step(case_t *c, uint32_t number)
{
    const uint32_t turns = c->soft ? 2 : c->h.tuned + 1, stats = c->soft ? SAC_ACTOR_STATS : TWIN_CRITIC_STATS;
    const uint32_t group = number % turns == turns - 1 ? TWIN_ACTOR : TWIN_CRITICS;
    picked_t p;
    tt_minibatch_t m;
    tt_result_t result;
    s_pick(c, &p);
    const tt_at_t at = {.total = number, .step = number, .replay = c->replay, .sample = &p.sample};
    const float *grad = s_describe(c, &at, &p, c->soft || group == TWIN_CRITICS, &m);
    const float *expected = s_take(c, stats + 1, sizeof(float));
    s_near("gradient", number, c->params, grad, s_take_vector(c), 1e-5);
    assert_int_equal(m.train, 1u << group);
    assert_ok(settled_step(c->compute, &m, NULL, &result));
    s_near("statistic", number, stats, result.stats, expected, 1e-5);
    s_near("norm", number, 1, result.norm + group, expected + stats, 1e-5);
    assert_true(result.norm[!group] == 0);
    assert_false(c->algorithm->after(c->algo, at.step, &result));
    s_drop(&p);
}

static void s_run(const char *name)
{
    case_t c = {0};
    s_open(&c, name);
    for (uint32_t step = 0; step < c.h.steps; step++)
        s_step(&c, step);
    float *params = tt_array0(c.params, sizeof(float));
    for (uint32_t set = 0; set < SETS; set++) {
        assert_ok(tt_net_get(c.model.net, c.model.stream, set, params));
        s_near(set ? "target parameter" : "parameter", c.h.steps, c.params, params, s_take_vector(&c), 1e-5);
    }
    assert_ptr_equal(c.file.at, c.file.end);
    free(params);
    s_close(&c);
}

static void test_sac(void **state)
{
    (void)state;
    s_run("sac");
}

/*  Two action columns, n steps, a rate of the critics' own, a target entropy, and deviations beyond their limit. */
static void test_sac_columns(void **state)
{
    (void)state;
    s_run("sac_columns");
}

/*  The entropy's weight is held; tanh; targets are copies. */
static void test_sac_held(void **state)
{
    (void)state;
    s_run("sac_held");
}

static void test_sac_clipped(void **state)
{
    (void)state;
    s_run("sac_clipped");
}

/*  An encoder before the actor, and one before both critics, which sums what comes back from them; targets have theirs. */
static void test_sac_encoder(void **state)
{
    (void)state;
    s_run("sac_encoder");
}

static void test_td3(void **state)
{
    (void)state;
    s_run("td3");
}

/*  Two action columns, n steps, a rate of the critics' own, three steps of these to one of the actor, and much noise. */
static void test_td3_columns(void **state)
{
    (void)state;
    s_run("td3_columns");
}

/*  No delay and no noise; tanh; targets are copies. */
static void test_td3_as_ddpg(void **state)
{
    (void)state;
    s_run("td3_ddpg");
}

static void test_td3_clipped(void **state)
{
    (void)state;
    s_run("td3_clipped");
}

/*  An encoder before the actor, and one before both critics, which sums what comes back from them; targets have theirs. */
static void test_td3_encoder(void **state)
{
    (void)state;
    s_run("td3_encoder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sac),
        cmocka_unit_test(test_sac_columns),
        cmocka_unit_test(test_sac_held),
        cmocka_unit_test(test_sac_clipped),
        cmocka_unit_test(test_sac_encoder),
        cmocka_unit_test(test_td3),
        cmocka_unit_test(test_td3_columns),
        cmocka_unit_test(test_td3_as_ddpg),
        cmocka_unit_test(test_td3_clipped),
        cmocka_unit_test(test_td3_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
