/*  Whole PPO updates against PyTorch: losses, gradients and norm of every optimiser step, the shuffle, and the parameters
 *  after the update (tests/golden/torch/ppo_update.py has the format and the reference). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/algorithms/ppo_objective.h"
#include "learner/algorithms/ppo_options.h"
#include "learner/compute.h"
#include "tests/learner/recorded.h"
#include "tests/learner/segments.h"
#include "tests/test.h"
#include "tests/learner/settled.h"

enum { SHARDS = 2, MEMORY = 6 };

typedef struct {
    char magic[8];
    uint32_t T, N, D, A, kind, clip_value, stale, cleanrl, epochs, minibatches, finals, parameters;
    uint64_t seed, update;
    float lr, gamma, lambda, clip, entropy, value_coef, max_grad_norm, adam_eps;
} head_t;

/*  Behind it when the kind is ANY: the space of actions in words. */
typedef enum { ONE_CHOICE, ONE_BOX, ANY } kind_t;
typedef struct {
    char action[64];
    uint32_t masked;
} space_t;

typedef struct {
    recorded_t file;
    head_t h;
    tt_columns_t *columns;
    bool shared; /* one trunk */
    tt_rnn_t rnn;
    bool hidden; /* layers */
    bool pair;   /* pair.c: two groups, each trained by a step of its own */
    bool vtrace, impala;
    const tt_algorithm_t *algorithm;
    size_t params; /* of the network: with the zeros between groups */
    tt_batch_t batch;
    const void **obs, **last, **final_obs, **carry;
    model_t model; /* of which computing needs a part */
    compute_t *compute;
    tt_algo_t *algo;
} case_t;

static void *s_take(case_t *c, size_t count, size_t size)
{
    return recorded_take(&c->file, count, size);
}

static const void **s_rows(case_t *c, uint32_t rows, uint32_t floats)
{
    const float *data = s_take(c, (size_t)rows * floats, sizeof(float));
    const void **list = tt_array0(rows, sizeof *list);
    for (uint32_t i = 0; i < rows; i++)
        list[i] = data + (size_t)i * floats;
    return list;
}

/*  A parameter vector, as the network has it. */
static float *s_vector(case_t *c)
{
    const float *in = s_take(c, c->h.parameters, sizeof(float));
    float *out = tt_array0(c->params, sizeof(float));
    assert_int_equal(recorded_place(c->model.net, in, out), c->h.parameters);
    return out;
}

static void s_read(case_t *c, const char *name)
{
    recorded_open(&c->file, name);
    memcpy(&c->h, s_take(c, 1, sizeof c->h), sizeof c->h);
    assert_memory_equal(c->h.magic, "TTPPO\0\0\2", 8);
    space_t space = {0};
    if (c->h.kind == ANY)
        memcpy(&space, s_take(c, 1, sizeof space), sizeof space);
    else
        snprintf(space.action, sizeof space.action, c->h.kind == ONE_BOX ? "float32[%u]" : "discrete(%u)", c->h.A);
    char obs[32];
    snprintf(obs, sizeof obs, "float32[%u]", c->h.D);
    c->columns = made_columns(obs, space.action, space.masked);
    c->columns->state_std = strstr(name, "states") != NULL;
}

static void s_read_batch(case_t *c)
{
    const head_t *h = &c->h;
    const uint32_t rows = h->T * h->N;
    tt_batch_t *b = &c->batch;
    *b = (tt_batch_t){.update = h->update, .T = h->T, .N = h->N, .D = h->D, .stale = h->stale, .finals = h->finals};
    b->obs = c->obs = s_rows(c, rows, h->D);
    b->last = c->last = s_rows(c, h->N, h->D);
    b->final_obs = c->final_obs = s_rows(c, h->finals, h->D);
    b->final_row = s_take(c, h->finals, sizeof(uint32_t));
    b->columns = c->columns;
    for (uint32_t a = 0; a < c->columns->action_count; a++)
        b->action[a] = s_take(c, rows, c->columns->at[c->columns->action + a].bytes);
    if (c->columns->mask >= 0)
        b->mask = s_take(c, rows, c->columns->mask_bits);
    b->reward = s_take(c, rows, sizeof(float));
    b->terminated = s_take(c, rows, 1);
    b->truncated = s_take(c, rows, 1);
    b->log_prob = s_take(c, rows, sizeof(float));
    b->value = s_take(c, rows, sizeof(float));
    b->last_value = s_take(c, h->N, sizeof(float));
    b->final_value = s_take(c, h->finals, sizeof(float));
    if (!c->columns->carry)
        return;
    b->carry = c->carry = s_rows(c, h->N, c->columns->carry);
    b->begins = s_take(c, rows, 1);
}

/*  What the case's network is. */
static tt_train_cfg_t s_train(const case_t *c)
{
    tt_train_cfg_t train = {.seed = c->h.seed, .num_envs = c->h.N, .num_steps = c->h.T};
    if (c->pair)
        snprintf(train.actor.groups, sizeof train.actor.groups, "policy: actor, baseline: critic");
    train.learner.shards = SHARDS;
    train.network.shared = c->shared;
    train.network.rnn = (int)c->rnn;
    train.network.rnn_size = MEMORY;
    if (c->hidden)
        train.network.hidden = (tt_cfg_list_t){.count = 2, .at = {12, 8}};
    return train;
}

static void s_create(case_t *c)
{
    const head_t *h = &c->h;
    tt_policy_t policy;
    tt_policy_of(&policy, c->columns);
    assert_int_equal(policy.out, h->A);
    const tt_train_cfg_t train = s_train(c);
    assert_ok(tt_algorithm_find(&c->algorithm, c->pair ? "pair" : c->impala ? "impala" : "ppo"));
    const tt_net_spec_t spec = tt_train_net(&train, c->columns);
    tt_columns_put_carry(c->columns, tt_net_carry(&spec));
    model_t *model = &c->model;
    c->params = tt_net_param_count(&spec);
    assert_true(c->pair ? c->params > h->parameters : c->params == h->parameters);
    const ppo_cfg_t cfg = {.common.learning_rate = h->lr,
        .common.gamma = (double)h->gamma,
        .gae_lambda = h->lambda,
        .epochs = h->epochs,
        .minibatches = h->minibatches,
        .clip = h->clip,
        .clip_value = h->clip_value,
        .entropy_coef = h->entropy,
        .value_coef = h->value_coef,
        .common.max_grad_norm = h->max_grad_norm,
        .normalize_advantage = !c->impala,
        .target_kl = NAN,
        .recompute = true,
        .vtrace = c->vtrace,
        .vtrace_rho = 1.05f,
        .vtrace_c = 0.95f,
        .truncation = h->cleanrl ? PPO_CLEANRL : PPO_BOOTSTRAP,
        .common.optimizer = TT_OPT_ADAM,
        .common.adam_beta1 = 0.9f,
        .common.adam_beta2 = 0.999f,
        .common.adam_eps = h->adam_eps};
    model->train = train;
    assert_ok(tt_device_open(&model->device, NULL, 0, 1));
    assert_ok(tt_stream_new(&model->stream, model->device));
    assert_ok(tt_net_new(&model->net, model->device, &spec));
    float *params = s_vector(c);
    assert_ok(tt_net_put(model->net, model->stream, 0, params));
    free(params);
    assert_ok(c->algorithm->create(&c->algo, &train, c->columns, &cfg));
    model->opts = tt_net_groups(&spec);
    assert_int_equal(model->opts, c->pair ? 2 : 1);
    for (uint32_t g = 0; g < model->opts; g++)
        assert_ok(tt_opt_new(&model->opt[g], model->net, g, c->algorithm->opt(c->algo, g)));
    assert_ok(compute_new(&c->compute, model));
}

static void s_free(case_t *c)
{
    c->algorithm->destroy(&c->algo);
    assert_null(c->algo);
    compute_destroy(&c->compute);
    for (uint32_t g = 0; g < c->model.opts; g++)
        tt_opt_destroy(&c->model.opt[g]);
    tt_net_destroy(&c->model.net);
    tt_stream_destroy(&c->model.stream);
    tt_device_close(&c->model.device);
    tt_columns_destroy(&c->columns);
    free(c->obs);
    free(c->last);
    free(c->final_obs);
    free(c->carry);
    recorded_close(&c->file);
}

static void s_near(const char *what, uint32_t step, size_t count, const float *got, const float *want, double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= tolerance * (1 + fabs((double)want[i]))))
            fail_msg("step %u: %s %zu is %.9g, PyTorch has %.9g", step, what, i, (double)got[i], (double)want[i]);
}

/*  One optimiser step: its rows, its gradient, its statistics, its norm. */
static void s_step(case_t *c, const tt_algorithm_t *ppo, uint32_t step)
{
    tt_minibatch_t m;
    assert_ok(ppo->minibatch(c->algo, &(tt_at_t){.step = step}, &m));
    assert_int_equal(m.rows, c->h.T * c->h.N / c->h.minibatches);
    const uint32_t group = c->pair && step % 2 == 0; /* the critic's first */
    assert_int_equal(m.train, 1u << group);
    assert_true(m.lr[group] == (group ? 3 * c->h.lr : c->h.lr));
    const float *grad;
    assert_ok(compute_gradients(c->compute, &m, NULL, 0, SHARDS));
    assert_ok(compute_node(c->compute, 1, &grad));
    const float *expected = s_take(c, PPO_STATS + 1, sizeof(float));
    const uint32_t *first = s_take(c, 1, sizeof *first);
    float *gradient = s_vector(c);
    tt_result_t result;
    assert_int_equal(m.row[0], *first);
    s_near("gradient", step, c->params, grad, gradient, 1e-5);
    free(gradient);
    assert_ok(settled_step(c->compute, &m, NULL, &result));
    s_near("statistic", step, PPO_STATS, result.stats, expected, 1e-5);
    s_near("norm", step, 1, &result.norm[group], expected + PPO_STATS, 1e-5);
    assert_false(ppo->after(c->algo, step, &result));
}

static void s_emit(void *ctx, const char *name, double value)
{
    if (strcmp(name, "losses/explained_variance") == 0)
        *(float *)ctx = (float)value;
}

static void s_run(const char *name)
{
    case_t c = {.shared = strstr(name, "shared") != NULL, .pair = strncmp(name, "groups", 6) == 0};
    c.rnn = strncmp(name, "lstm", 4) == 0 ? TT_RNN_LSTM : strncmp(name, "gru", 3) == 0 ? TT_RNN_GRU : TT_RNN_NONE;
    c.hidden = c.rnn == TT_RNN_NONE || strstr(name, "hidden");
    c.vtrace = strncmp(name, "vtrace", 6) == 0;
    c.impala = strcmp(name, "impala") == 0;
    s_read(&c, name);
    s_create(&c);
    const tt_algorithm_t *ppo = c.algorithm;
    s_read_batch(&c);
    const tt_evaluator_t net = compute_evaluator(c.compute);
    assert_ok(compute_batch(c.compute, &c.batch));
    assert_ok(ppo->begin(c.algo, &c.batch, &net));
    for (uint32_t step = 0; step < ppo->steps(c.algo); step++)
        s_step(&c, ppo, step);
    float *params = tt_array0(c.params, sizeof(float)), *expected = s_vector(&c), explained = NAN;
    assert_ok(tt_net_get(c.model.net, c.model.stream, 0, params));
    s_near("parameter", ppo->steps(c.algo), c.params, params, expected, 1e-5);
    ppo->metrics(c.algo, s_emit, &explained);
    s_near("explained variance", 0, 1, &explained, s_take(&c, 1, sizeof(float)), 1e-5);
    assert_ptr_equal(c.file.at, c.file.end);
    free(params);
    free(expected);
    s_free(&c);
}

static void test_discrete_clip_value(void **state)
{
    (void)state;
    s_run("discrete_clip_value");
}

static void test_discrete_stale(void **state)
{
    (void)state;
    s_run("discrete_stale");
}

static void test_discrete_cleanrl(void **state)
{
    (void)state;
    s_run("discrete_cleanrl");
}

static void test_continuous_clip_value(void **state)
{
    (void)state;
    s_run("continuous_clip_value");
}

static void test_continuous(void **state)
{
    (void)state;
    s_run("continuous");
}

static void test_multi_discrete(void **state)
{
    (void)state;
    s_run("multi_discrete");
}

static void test_multi_binary(void **state)
{
    (void)state;
    s_run("multi_binary");
}

static void test_masked(void **state)
{
    (void)state;
    s_run("masked");
}

static void test_mixture(void **state)
{
    (void)state;
    s_run("mixture");
}

static void test_mixture_states(void **state)
{
    (void)state;
    s_run("mixture_states");
}

static void test_mixture_masked(void **state)
{
    (void)state;
    s_run("mixture_masked");
}

static void test_mixture_masked_shared(void **state)
{
    (void)state;
    s_run("mixture_masked_shared");
}

static void test_discrete_shared(void **state)
{
    (void)state;
    s_run("discrete_shared");
}

static void test_continuous_shared(void **state)
{
    (void)state;
    s_run("continuous_shared");
}

/*  Two optimisers of different kinds, each with a counter and a clip of its own. */
static void test_groups(void **state)
{
    (void)state;
    s_run("groups");
    s_run("groups_continuous");
}

static void test_vtrace(void **state)
{
    (void)state;
    s_run("vtrace_discrete");
    s_run("vtrace_mixture_masked");
}

static void test_impala(void **state)
{
    (void)state;
    s_run("impala");
}

/*  Minibatches of three envs, which are one and two for the shards. */
static void test_lstm(void **state)
{
    (void)state;
    s_run("lstm_shared");
    s_run("lstm_hidden");
    s_run("lstm_hidden_shared");
}

static void test_gru(void **state)
{
    (void)state;
    s_run("gru_shared");
    s_run("gru_hidden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discrete_clip_value),
        cmocka_unit_test(test_discrete_stale),
        cmocka_unit_test(test_discrete_cleanrl),
        cmocka_unit_test(test_continuous_clip_value),
        cmocka_unit_test(test_continuous),
        cmocka_unit_test(test_multi_discrete),
        cmocka_unit_test(test_multi_binary),
        cmocka_unit_test(test_masked),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_mixture_states),
        cmocka_unit_test(test_mixture_masked),
        cmocka_unit_test(test_mixture_masked_shared),
        cmocka_unit_test(test_discrete_shared),
        cmocka_unit_test(test_continuous_shared),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_vtrace),
        cmocka_unit_test(test_impala),
        cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_gru),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
