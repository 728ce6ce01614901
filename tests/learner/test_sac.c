/*  SAC's settings: defaults, what it refuses and in which words, what it asks of collectors and of the replay; how it
 *  describes its steps, by turns, with noise and actions by position; and what it reports. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/job/fit.h"
#include "common/nn/inference.h"
#include "common/nn/math/activation.h"
#include "learner/algorithm.h"
#include "learner/algorithms/sac_objective.h"
#include "learner/algorithms/sac_options.h"
#include "tests/learner/near.h"
#include "tests/learner/twin_stage.h"
#include "tests/test.h"

enum { ACTOR, CRITICS, GROUPS };

static const tt_algorithm_t *s_sac(void)
{
    const tt_algorithm_t *found = NULL;
    assert_ok(tt_algorithm_find(&found, "sac"));
    return found;
}

static const tt_actor_t s_acts = {.kind = TT_ACT_SQUASHED, .squash = true, .state_std = true};

static tt_train_cfg_t s_train(void)
{
    return twin_train(s_acts);
}

static tt_status_t s_read(const char *yaml, const tt_train_cfg_t *train, sac_cfg_t *cfg)
{
    return twin_read("sac", yaml, train, cfg);
}

/*  As Stable-Baselines3's SAC. */
static void test_defaults(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    sac_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    assert_true(s_sac()->gamma(&cfg) == 0.99 && s_sac()->head_gain(&cfg) == 1 && s_sac()->log_std0(&cfg) == 0);
    assert_true(cfg.off.common.learning_rate == 3e-4f && cfg.critic_learning_rate == 0);
    assert_true(cfg.off.batch_size == 256 && cfg.off.n_step == 1 && cfg.off.tau == 0.005f);
    assert_true(cfg.entropy_coef == 1 && cfg.tune_entropy && isnan(cfg.target_entropy));
    assert_true(cfg.off.learning_starts == 100 && cfg.off.train_every == 1 && cfg.off.gradient_steps == 1);
    assert_true(cfg.off.capacity == 1000000 && cfg.off.save && cfg.off.memory == TT_MEMORY_AUTO);
    const tt_opt_spec_t opt = common_opt_spec(&cfg.off.common);
    assert_true(opt.kind == TT_OPT_ADAM && opt.beta1 == 0.9f && opt.beta2 == 0.999f && opt.eps == 1e-8f);
    assert_true(opt.max_norm == 0);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

static void s_refused(const char *yaml, const tt_train_cfg_t *train, const char *first, const char *second)
{
    twin_refused("sac", yaml, train, first, second);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *first, *second;
    } cases[] = {
        {"algorithm: {batch_size: 0}\n", "test.yaml:1:13: algorithm.batch_size", "1"},
        {"algorithm: {batch_size: 1048578}\n", "algorithm.batch_size", "1048576"},
        {"algorithm: {batch_size: 33}\n",
            "test.yaml:1:13: algorithm.batch_size: 33 is no multiple of learner.shards 2 (default)", "nearest: 34"},
        {"algorithm: {batch_size: 1}\n", "algorithm.batch_size: 1 ", "nearest: 2"},
        {"algorithm: {learning_starts: 50k}\n", "algorithm.learning_starts: 50000", "stop.env_steps is 50000"},
        {"algorithm: {train_every: 50k}\n", "algorithm.train_every: 50000 env steps, but stop.env_steps is 50000",
            "learning_starts has 100: nothing would be learned"},
        {"algorithm: {n_step: 257}\n", "algorithm.n_step", "256"},
        {"algorithm: {gradient_steps: 0}\n", "algorithm.gradient_steps", "1"},
        {"algorithm: {train_every: 0}\n", "algorithm.train_every", "1"},
        {"algorithm: {critic_learning_rate: 1.5}\n", "algorithm.critic_learning_rate", "1"},
        {"algorithm: {tau: 0}\n", "test.yaml:1:13: algorithm.tau", "1e-06"},
        {"algorithm: {tau: 1.5}\n", "algorithm.tau", "1"},
        {"algorithm: {entropy_coef: 0}\n", "test.yaml:1:13: algorithm.entropy_coef: 0, of which there is no logarithm",
            "1e-6"},
        {"algorithm: {entropy_coef: 11}\n", "algorithm.entropy_coef", "10"},
        {"algorithm: {tune_entropy: 2}\n", "test.yaml:1:13: algorithm.tune_entropy", "true or false"},
        {"algorithm: {tune_entropy: false, target_entropy: -2.5}\n",
            "test.yaml:1:34: algorithm.target_entropy: -2.5, but algorithm.tune_entropy (test.yaml:1:13) is false",
            "leave it away"},
        {"algorithm: {tune_entropy: false, target_entropy: 0}\n", "algorithm.target_entropy: 0, but", "leave it away"},
        {"replay: {capacity: 31}\n", "test.yaml:1:10: replay.capacity: 31", "one batch, which has 32"},
        {"replay: {capacity: 32}\nalgorithm: {n_step: 9}\n", "replay.capacity: 32", "at least 64"},
        {"replay: {capacity: 200M}\n", "replay.capacity: 200000000", "more priorities than a learner that joins"},
        {"replay: {prioritized: true}\n", "replay.prioritized", "unknown"},
        {"algorithm: {epsilon_end: 0.1}\n", "algorithm.epsilon_end", "unknown"},
    };
    const tt_train_cfg_t train = s_train();
    for (size_t i = 0; i < TT_COUNT(cases); i++)
        s_refused(cases[i].yaml, &train, cases[i].first, cases[i].second);
}

/*  What else a network may not be is the job's business: tests/e2e/twin.py. */
static void test_which_networks_are_refused(void **state)
{
    (void)state;
    tt_train_cfg_t train = s_train();
    train.network.rnn = TT_RNN_GRU;
    s_refused("algorithm: {}\n", &train, "network.rnn: sac trains networks that remember nothing", "algorithm.name");
}

static void test_what_the_job_is_refused_for(void **state)
{
    (void)state;
    sac_cfg_t cfg;
    tt_train_cfg_t train = s_train();
    train.normalize.obs = true;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    train.normalize.reward = true;
    s_refused("algorithm: {}\n", &train, "normalize.reward: true", "set it to false");

    train = s_train();
    train.learner.shards = 1;
    assert_ok(s_read("algorithm: {batch_size: 33}\n", &train, &cfg));
    train.learner.shards = 512;
    s_refused(
        "algorithm: {}\n", &train, "algorithm.batch_size: 256 is no multiple of learner.shards 512", "nearest: 512");

    train = s_train();
    train.stop.env_steps = 0;
    assert_ok(s_read("algorithm: {learning_starts: 50k}\n", &train, &cfg));
    train.lag = 7;
    assert_ok(s_read("algorithm: {tune_entropy: false, entropy_coef: 0.2}\n", &train, &cfg));

    train = s_train(); /* two optimiser steps for each of those that are asked for */
    train.num_envs = 4096;
    train.num_steps = 2048;
    s_refused("algorithm: {train_every: 2000, gradient_steps: 1M}\nreplay: {capacity: 10M}\n", &train,
        "algorithm.gradient_steps", "8390000000 optimizer steps in an update of 8388608");
    assert_ok(s_read("algorithm: {train_every: 4000, gradient_steps: 1M}\nreplay: {capacity: 10M}\n", &train, &cfg));
}

/* ---- what it asks for ----------------------------------------------------------------------------------------------- */

static void test_shape(void **state)
{
    (void)state;
    tt_train_cfg_t train = s_train();
    sac_cfg_t cfg;
    assert_ok(s_read("algorithm: {n_step: 3, batch_size: 64, learning_starts: 1000, train_every: 256, gradient_steps: "
                     "128}\nreplay: {capacity: 100k, save: false, memory: host}\n",
        &train, &cfg));
    const tt_algorithm_shape_t shape = tt_algorithm_shape(s_sac(), &train, &cfg);
    assert_true(shape.actor.kind == TT_ACT_SQUASHED && shape.actor.squash && shape.actor.state_std);
    assert_true(shape.actor.random_rows == 1000 && shape.actor.epsilon == 0 && shape.actor.noisy == 0);
    assert_string_equal(shape.actor.groups, "actor: actor, critics: q1");
    assert_true(shape.feed.source == TT_FEED_REPLAY && shape.feed.ahead == 3 && shape.feed.units == 64);
    assert_true(shape.feed.start == 1000 && shape.feed.every == 256 && shape.feed.steps == 2 * 128);
    assert_int_equal(shape.feed.capacity, 100000 * (4 * 4 + 2 * 4 + 4 + 1 + 1));
    assert_true(!shape.feed.save && shape.feed.memory == TT_MEMORY_HOST);
    assert_true(shape.feed.alpha == 0 && shape.ride == 0 && shape.sets == 2);
    assert_int_equal(2 * shape.forwards, (int)TWIN_CRITIC_STAGES + (int)SAC_ACTOR_STAGES);
}

/*  The network that it asks for: deviations beside the means, critics in a group of their own. */
static tt_net_spec_t s_net(const tt_train_cfg_t *train)
{
    tt_columns_t *columns = NULL;
    assert_ok(tt_train_columns(&columns, train));
    const tt_net_spec_t net = tt_train_net(train, columns);
    tt_columns_destroy(&columns);
    return net;
}

static void test_the_network(void **state)
{
    (void)state;
    static const char *const names[] = {"actor", "q1", "q2"};
    tt_train_cfg_t train = s_train();
    sac_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    train.actor = tt_algorithm_shape(s_sac(), &train, &cfg).actor;
    const tt_net_spec_t net = s_net(&train);
    assert_true(net.towers == 3 && net.action == 2 && tt_net_groups(&net) == GROUPS);
    for (uint32_t t = 0; t < net.towers; t++) {
        assert_string_equal(net.tower[t].name, names[t]);
        assert_int_equal(net.tower[t].group, t == 0 ? ACTOR : CRITICS);
        assert_int_equal(net.tower[t].out, t == 0 ? 2 * 2 : 1);
        assert_true(net.tower[t].action == (t > 0) && net.tower[t].hidden_count == 2);
    }
}

/*  Each group sees by an encoder of its own, of the same layers. */
static void test_the_network_of_pictures(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t group, from;
    } towers[] = {{"actor_encoder", ACTOR, 0}, {"actor", ACTOR, 1}, {"critics_encoder", CRITICS, 0}, {"q1", CRITICS, 3},
        {"q2", CRITICS, 3}};
    tt_train_cfg_t train = s_train();
    sac_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    train.actor = tt_algorithm_shape(s_sac(), &train, &cfg).actor;
    snprintf(train.space.obs, sizeof train.space.obs, "uint8[8, 8, 3]");
    snprintf(train.network.encoder, sizeof train.network.encoder, "conv 4 3x3 relu, dense 7 tanh");
    train.space.divisor = 255;
    const tt_net_spec_t net = s_net(&train);
    assert_true(net.towers == TT_COUNT(towers) && net.action == 2 && tt_net_groups(&net) == GROUPS);
    for (uint32_t t = 0; t < net.towers; t++) {
        const bool encoder = net.tower[t].kind == TT_TOWER_ENCODER;
        assert_string_equal(net.tower[t].name, towers[t].name);
        assert_true(net.tower[t].group == towers[t].group && net.tower[t].from == towers[t].from);
        assert_true(net.tower[t].action == (t > 2) && encoder == (towers[t].from == 0));
        assert_true(!encoder || (net.tower[t].layers == 2 && net.tower[t].layer == net.tower[0].layer));
    }
    assert_true(tt_net_param_count(&net));
}

/*  What a set of parameters has in the tensor of that name. */
static float s_log_alpha(tt_inference_t *net)
{
    size_t count = 0, i = 0;
    const tt_net_t *of = tt_inference_net(net);
    const tt_tensor_t *tensor = tt_net_tensors(of, &count);
    float *params = tt_array0(tt_net_param_count(tt_net_spec(of)), sizeof *params);
    while (i < count && strcmp(tensor[i].name, "actor.log_alpha") != 0)
        i++;
    assert_true(i < count);
    assert_ok(tt_net_get(of, tt_inference_stream(net), 0, params));
    const float out = params[tensor[i].offset];
    free(params);
    return out;
}

/*  At first alpha is entropy_coef, and the gain is of the head that is acted by. */
static void test_first_weights(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    const tt_net_spec_t spec = s_net(&train);
    const float zeros[4] = {0};
    const void *obs = (const float[]){1, 2, 3, 4};
    float head[4];
    tt_inference_t *net = NULL;
    sac_cfg_t cfg;
    assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
    for (int zero = 0; zero < 2; zero++) {
        assert_ok(s_read(
            zero ? "algorithm: {entropy_coef: 0.2, head_gain: 0}\n" : "algorithm: {entropy_coef: 7}\n", &train, &cfg));
        assert_ok(tt_algorithm_init(s_sac(), &cfg, tt_inference_net(net), tt_inference_stream(net), 1, TT_NO_PROGRESS));
        assert_near(exp((double)s_log_alpha(net)), zero ? 0.2 : 7, 1e-5);
        assert_ok(tt_inference_run(net, &obs, 1, NULL, (float *const[]){head, NULL, NULL}));
        assert_true((memcmp(head, zeros, sizeof head) == 0) == zero);
    }
    tt_inference_destroy(&net);
}

static void test_target_entropy(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    sac_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    assert_true(sac_target_entropy(&cfg, 1) == -1 && sac_target_entropy(&cfg, 17) == -17);
    assert_ok(s_read("algorithm: {target_entropy: 0.5}\n", &train, &cfg));
    assert_true(sac_target_entropy(&cfg, 17) == 0.5f);
    assert_ok(s_read("algorithm: {target_entropy: 0}\n", &train, &cfg));
    assert_true(sac_target_entropy(&cfg, 17) == 0);
}

/* ---- its steps ------------------------------------------------------------------------------------------------------ */

enum { ARM = TWIN_ARM, NUMBERS = TWIN_NUMBERS };

static void s_open(twin_stage_t *self, const char *yaml)
{
    twin_stage_open(self, "sac", s_acts, yaml);
}

static void s_check_step(const twin_stage_t *self, const tt_minibatch_t *m, bool critics)
{
    const sac_loss_t *loss = m->params;
    assert_string_equal(m->objective->name, critics ? "sac_critic" : "sac_actor");
    assert_int_equal(m->rows, 64);
    assert_int_equal(m->train, 1u << (critics ? CRITICS : ACTOR));
    assert_int_equal(m->blends, critics);
    if (critics) {
        const tt_blend_t blend = m->blend[0];
        assert_true(
            blend.to == 1 && blend.from == 0 && blend.groups == 1u << CRITICS && blend.tau == self->cfg.off.tau);
    }
    assert_int_equal(m->params_size, sizeof *loss);
    assert_true(loss->of.numbers == NUMBERS && loss->of.scale == 1.0f / 64);
    assert_true(loss->target_entropy == -NUMBERS && loss->tuned == self->cfg.sac.tune_entropy);
    twin_assert_inputs(self, m, critics, true);
}

/*  By the run's steps, whichever the update's is. */
static void test_steps_by_turns(void **state)
{
    (void)state;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {batch_size: 64, tau: 0.25, learning_rate: 0.5}\n");
    for (uint64_t total = 0; total < 6; total++)
        for (uint32_t step = 0; step < 3; step++) {
            const tt_minibatch_t m = twin_describe_step(&stage, total, step);
            s_check_step(&stage, &m, total % 2 == 0);
            assert_true(m.lr[total % 2 ? ACTOR : CRITICS] == 0.5f);
        }
    const tt_minibatch_t late = twin_describe_step(&stage, (1ull << 40) + 1, 0);
    s_check_step(&stage, &late, false);
    twin_stage_close(&stage);
    s_open(
        &stage, "algorithm: {batch_size: 64, learning_rate: 0.5, critic_learning_rate: 0.125, tune_entropy: false}\n");
    for (uint64_t total = 0; total < 2; total++) {
        const tt_minibatch_t m = twin_describe_step(&stage, total, 0);
        s_check_step(&stage, &m, total == 0);
        assert_true(m.lr[total ? ACTOR : CRITICS] == (total ? 0.5f : 0.125f));
    }
    twin_stage_close(&stage);
}

/*  Each group's optimiser is that of the settings. */
static void test_optimisers(void **state)
{
    (void)state;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {optimizer: rmsprop, max_grad_norm: 3}\n");
    for (uint32_t g = 0; g < GROUPS; g++) {
        const tt_opt_spec_t *opt = s_sac()->opt(stage.algo, g);
        assert_true(opt->kind == TT_OPT_RMSPROP && opt->max_norm == 3);
    }
    twin_stage_close(&stage);
}

/*  Columns side by side, each squashed. */
static void test_stored_actions_are_squashed(void **state)
{
    (void)state;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {batch_size: 64}\n");
    for (uint64_t total = 0; total < 8; total += 2) {
        const tt_minibatch_t m = twin_describe_step(&stage, total, 0);
        const float *action = m.input[TWIN_IN_ACTION].at;
        for (uint32_t u = 0; u < m.rows; u++)
            for (uint32_t a = 0; a < NUMBERS; a++) {
                const bool leg = a >= ARM;
                const float stored = twin_stored(stage.sample.unit[u], leg, leg ? a - ARM : a);
                assert_true(action[u * NUMBERS + a] == tt_tanhf(stored));
                assert_near(action[u * NUMBERS + a], tanh((double)stored), 1e-6);
            }
    }
    twin_stage_close(&stage);
}

/* ---- noise ---------------------------------------------------------------------------------------------------------- */

/*  What a minibatch reads, one after the other. */
static void s_copy(const tt_minibatch_t *m, float *out)
{
    for (uint32_t i = 0; i < m->inputs; i++) {
        memcpy(out, m->input[i].at, m->rows * m->input[i].bytes);
        out += m->rows * m->input[i].bytes / sizeof *out;
    }
}

/*  Also of an instance that has described another one before, and of one that begins there. */
static void test_the_same_step_twice(void **state)
{
    (void)state;
    enum { FLOATS = 64 * (2 * NUMBERS + 3) };
    for (uint64_t total = 6; total < 8; total++) {
        static float first[FLOATS], again[FLOATS];
        twin_stage_t stage, other;
        s_open(&stage, "algorithm: {batch_size: 64}\n");
        s_open(&other, "algorithm: {batch_size: 64}\n");
        tt_minibatch_t m = twin_describe_step(&stage, total, 3);
        s_copy(&m, first);
        for (uint64_t another = 1; another < 3; another++)
            twin_describe_again(&stage, total + another, 8);
        m = twin_describe_step(&stage, total, 3);
        s_copy(&m, again);
        assert_memory_equal(first, again, sizeof first);
        m = twin_describe_step(&other, total, 3);
        s_copy(&m, again);
        assert_memory_equal(first, again, sizeof first);
        twin_stage_close(&stage);
        twin_stage_close(&other);
    }
}

static void s_take_noise(twin_stage_t *stage, uint64_t total, float *out)
{
    const tt_minibatch_t m = twin_describe_step(stage, total, 0);
    memcpy(out, m.input[TWIN_IN_NOISE].at, m.rows * m.input[TWIN_IN_NOISE].bytes);
}

/*  No number of a row comes again at its place in another row, step or seed; with 24 bits a few may. */
static void test_noise_differs(void **state)
{
    (void)state;
    enum { ROWS = 64, STEPS = 8, FLOATS = ROWS * NUMBERS };
    static float noise[STEPS + 1][FLOATS];
    static const uint64_t totals[STEPS] = {0, 1, 2, 3, 255, 256, 65536, 1ull << 40};
    twin_stage_t stage;
    uint32_t equal = 0;
    s_open(&stage, "algorithm: {batch_size: 64}\n");
    for (uint32_t s = 0; s < STEPS; s++)
        s_take_noise(&stage, totals[s], noise[s]);
    twin_stage_close(&stage);
    s_open(&stage, "algorithm: {batch_size: 64}\n");
    s_sac()->destroy(&stage.algo);
    stage.train.seed = 2;
    assert_ok(s_sac()->create(&stage.algo, &stage.train, stage.columns, &stage.cfg));
    s_take_noise(&stage, totals[0], noise[STEPS]);
    twin_stage_close(&stage);
    const float *all = noise[0];
    for (uint32_t i = 0; i < (STEPS + 1) * FLOATS; i++)
        for (uint32_t k = 0; k < i; k++)
            equal += all[i] == all[k];
    assert_true(equal < 16);
}

/*  Moments of a standard normal, to four standard errors; numbers beside each other, in the next row and in the next
 *  step have nothing to do with each other. */
static void test_noise_is_normal(void **state)
{
    (void)state;
    enum { ROWS = 256, STEPS = 40, FLOATS = ROWS * NUMBERS, ALL = STEPS * FLOATS };
    static float noise[ALL];
    const double error = 4 / sqrt(ALL);
    static const uint32_t apart[] = {1, 2, NUMBERS - 1, NUMBERS, FLOATS, 2 * FLOATS};
    double moment[5] = {0}, within = 0, most = 0;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {}\n");
    for (uint32_t s = 0; s < STEPS; s++)
        s_take_noise(&stage, s, noise + s * FLOATS);
    for (uint32_t i = 0; i < ALL; i++) {
        const double z = (double)noise[i];
        for (int k = 1; k < 5; k++)
            moment[k] += pow(z, k) / ALL;
        within += (fabs(z) < 1) / (double)ALL;
        most = fmax(most, fabs(z));
    }
    assert_near(moment[1], 0, error);
    assert_near(moment[2], 1, error * sqrt(2));
    assert_near(moment[3], 0, error * sqrt(15));
    assert_near(moment[4], 3, error * sqrt(96));
    assert_near(within, 0.6827, error / 2);
    assert_true(most > 3.5 && most < 6);
    for (size_t k = 0; k < TT_COUNT(apart); k++) {
        double together = 0;
        for (uint32_t i = 0; i < ALL - apart[k]; i++)
            together += (double)noise[i] * (double)noise[i + apart[k]] / ALL;
        assert_near(together, 0, error);
    }
    twin_stage_close(&stage);
}

/* ---- what it reports ------------------------------------------------------------------------------------------------ */

typedef struct {
    int count;
    double critic, q, actor, alpha, entropy;
} said_t;

static void s_emit(void *ctx, const char *name, double value)
{
    said_t *said = ctx;
    const struct {
        const char *name;
        double *value;
    } known[] = {{"losses/critic_loss", &said->critic}, {"losses/q_values", &said->q},
        {"losses/actor_loss", &said->actor}, {"losses/entropy_coef", &said->alpha}, {"losses/entropy", &said->entropy}};
    said->count++;
    for (size_t i = 0; i < TT_COUNT(known); i++)
        if (strcmp(name, known[i].name) == 0)
            *known[i].value = value;
}

static said_t s_say(const tt_algo_t *algo)
{
    said_t said = {0};
    s_sac()->metrics(algo, s_emit, &said);
    return said;
}

static void s_after(const twin_stage_t *stage, uint32_t step, uint32_t group, const float *stats)
{
    const tt_result_t result = {.trained = 1u << group, .stats = stats, .norm = (float[GROUPS]){1, 1}};
    assert_false(s_sac()->after(stage->algo, step, &result));
}

/*  A gradient step of an update: both are under way before either is told. */
static void s_learn(twin_stage_t *stage, uint64_t total, uint32_t step, float critic, float actor)
{
    twin_describe_step(stage, total, step);
    twin_describe_step(stage, total + 1, step + 1);
    s_after(stage, step, CRITICS, (float[TT_LOSS_STATS]){[TWIN_CRITIC_LOSS] = critic, [TWIN_Q] = critic + 1});
    s_after(stage, step + 1, ACTOR,
        (float[TT_LOSS_STATS]){[SAC_ACTOR_LOSS] = actor, [SAC_ALPHA] = 0.5f, [SAC_ENTROPY] = -3});
}

/*  Means over an update, each of the steps of its kind; before the first step there is nothing to tell. */
static void test_what_it_reports(void **state)
{
    (void)state;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {batch_size: 64}\n");
    assert_int_equal(s_say(stage.algo).count, 1); /* the learning rate */
    s_learn(&stage, 0, 0, 1, 10);
    s_learn(&stage, 2, 2, 2, 30);
    said_t said = s_say(stage.algo);
    assert_int_equal(said.count, 1 + (int)TWIN_CRITIC_STATS + (int)SAC_ACTOR_STATS);
    assert_true(said.critic == 1.5 && said.q == 2.5 && said.actor == 20 && said.alpha == 0.5 && said.entropy == -3);
    s_learn(&stage, 4, 0, 7, 8);
    said = s_say(stage.algo);
    assert_true(said.critic == 7 && said.q == 8 && said.actor == 8);
    twin_stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_which_networks_are_refused),
        cmocka_unit_test(test_what_the_job_is_refused_for),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_the_network),
        cmocka_unit_test(test_the_network_of_pictures),
        cmocka_unit_test(test_first_weights),
        cmocka_unit_test(test_target_entropy),
        cmocka_unit_test(test_steps_by_turns),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_stored_actions_are_squashed),
        cmocka_unit_test(test_the_same_step_twice),
        cmocka_unit_test(test_noise_differs),
        cmocka_unit_test(test_noise_is_normal),
        cmocka_unit_test(test_what_it_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
