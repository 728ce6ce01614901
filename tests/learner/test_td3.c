/*  TD3's settings: defaults, what it refuses and in which words, what it asks of collectors and of the replay; how it
 *  describes its steps, by turns, with noise and actions by position; and what it reports. What it shares with SAC: test_sac.c. */
#include <stdio.h>
#include <string.h>
#include "common/job/fit.h"
#include "common/nn/math/activation.h"
#include "learner/algorithm.h"
#include "learner/algorithms/td3_objective.h"
#include "learner/algorithms/td3_options.h"
#include "learner/algorithms/twin.h"
#include "tests/learner/twin_stage.h"
#include "tests/test.h"

static const tt_actor_t s_acts = {.kind = TT_ACT_MEAN, .squash = true};

static const tt_algorithm_t *s_td3(void)
{
    const tt_algorithm_t *found = NULL;
    assert_ok(tt_algorithm_find(&found, "td3"));
    return found;
}

static tt_train_cfg_t s_train(void)
{
    return twin_train(s_acts);
}

static tt_status_t s_read(const char *yaml, const tt_train_cfg_t *train, td3_cfg_t *cfg)
{
    return twin_read("td3", yaml, train, cfg);
}

/*  As Stable-Baselines3's TD3. */
static void test_defaults(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    td3_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    assert_true(s_td3()->gamma(&cfg) == 0.99 && s_td3()->head_gain(&cfg) == 1 && s_td3()->log_std0(&cfg) == 0);
    assert_true(cfg.off.common.learning_rate == 1e-3f && cfg.critic_learning_rate == 0);
    assert_true(cfg.off.batch_size == 256 && cfg.off.n_step == 1 && cfg.off.tau == 0.005f);
    assert_true(cfg.policy_delay == 2 && cfg.target_noise == 0.2f && cfg.target_noise_clip == 0.5f);
    assert_true(cfg.exploration_noise == 0.1f);
    assert_true(cfg.off.learning_starts == 100 && cfg.off.train_every == 1 && cfg.off.gradient_steps == 1);
    assert_true(cfg.off.capacity == 1000000 && cfg.off.save && cfg.off.memory == TT_MEMORY_AUTO);
    const tt_opt_spec_t opt = common_opt_spec(&cfg.off.common);
    assert_true(opt.kind == TT_OPT_ADAM && opt.beta1 == 0.9f && opt.beta2 == 0.999f && opt.eps == 1e-8f);
    assert_true(opt.max_norm == 0);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *first, *second;
    } cases[] = {
        {"algorithm: {batch_size: 33}\n", "algorithm.batch_size: 33 is no multiple of learner.shards 2", "nearest: 34"},
        {"algorithm: {learning_starts: 50k}\n", "algorithm.learning_starts: 50000", "stop.env_steps is 50000"},
        {"algorithm: {train_every: 50k}\n", "algorithm.train_every: 50000 env steps, but stop.env_steps is 50000",
            "learning_starts has 100: nothing would be learned"},
        {"algorithm: {policy_delay: 0}\n", "test.yaml:1:13: algorithm.policy_delay", "1"},
        {"algorithm: {policy_delay: 1001}\n", "algorithm.policy_delay", "1000"},
        {"algorithm: {target_noise: -0.1}\n", "algorithm.target_noise", "0"},
        {"algorithm: {target_noise_clip: 11}\n", "algorithm.target_noise_clip", "10"},
        {"algorithm: {exploration_noise: -1}\n", "algorithm.exploration_noise", "0"},
        {"algorithm: {critic_learning_rate: 1.5}\n", "algorithm.critic_learning_rate", "1"},
        {"algorithm: {train_every: 1G, policy_delay: 5}\n",
            "test.yaml:1:13: algorithm.train_every: 1000000000 env steps times algorithm.policy_delay, 5 "
            "(test.yaml:1:30)",
            "are 5000000000"},
        {"algorithm: {entropy_coef: 0.1}\n", "algorithm.entropy_coef", "unknown"},
        {"algorithm: {epsilon_end: 0.1}\n", "algorithm.epsilon_end", "unknown"},
        {"replay: {prioritized: true}\n", "replay.prioritized", "unknown"},
        {"replay: {capacity: 31}\n", "test.yaml:1:10: replay.capacity: 31", "one batch, which has 32"},
    };
    tt_train_cfg_t train = s_train();
    td3_cfg_t cfg;
    for (size_t i = 0; i < TT_COUNT(cases); i++)
        twin_refused("td3", cases[i].yaml, &train, cases[i].first, cases[i].second);
    train.stop.env_steps = 10000000000;
    assert_ok(
        s_read("algorithm: {train_every: 1G, policy_delay: 4, target_noise: 0, exploration_noise: 0}\n", &train, &cfg));
    train.network.rnn = TT_RNN_GRU;
    twin_refused(
        "td3", "algorithm: {}\n", &train, "network.rnn: td3 trains networks that remember nothing", "algorithm.name");
    train = s_train();
    train.normalize.reward = true;
    twin_refused("td3", "algorithm: {}\n", &train, "normalize.reward: true", "set it to false");

    train = s_train(); /* policy_delay + 1 optimiser steps for policy_delay of those that are asked for */
    train.num_envs = 4096;
    train.num_steps = 2048;
    twin_refused("td3",
        "algorithm: {train_every: 1000, policy_delay: 2, gradient_steps: 1M}\nreplay: {capacity: 10M}\n", &train,
        "algorithm.gradient_steps", "12585000000 optimizer steps in an update of 8388608");
    assert_ok(s_read("algorithm: {train_every: 3000, policy_delay: 2, gradient_steps: 1M}\nreplay: {capacity: 10M}\n",
        &train, &cfg));
}

/* ---- what it asks for ----------------------------------------------------------------------------------------------- */

static void test_shape(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    static const uint32_t delays[] = {1, 2, 5};
    for (size_t i = 0; i < TT_COUNT(delays); i++) {
        char yaml[300];
        td3_cfg_t cfg;
        snprintf(yaml, sizeof yaml,
            "algorithm: {n_step: 3, batch_size: 64, learning_starts: 1000, train_every: 256, gradient_steps: 128, "
            "policy_delay: %u, exploration_noise: 0.3}\nreplay: {capacity: 100k, save: false, memory: host}\n",
            delays[i]);
        assert_ok(s_read(yaml, &train, &cfg));
        const tt_algorithm_shape_t shape = tt_algorithm_shape(s_td3(), &train, &cfg);
        assert_true(shape.actor.kind == TT_ACT_MEAN && shape.actor.squash && !shape.actor.state_std);
        assert_true(shape.actor.random_rows == 1000 && shape.actor.sigma == 0.3f && shape.actor.noisy == 0);
        assert_string_equal(shape.actor.groups, "actor: actor, critics: q1");
        assert_true(shape.feed.source == TT_FEED_REPLAY && shape.feed.ahead == 3 && shape.feed.units == 64);
        assert_int_equal(shape.feed.start, 1000);
        assert_int_equal(shape.feed.every, 256 * delays[i]);
        assert_int_equal(shape.feed.steps, 128 * (delays[i] + 1));
        assert_int_equal(shape.feed.capacity, 100000 * (4 * 4 + 2 * 4 + 4 + 1 + 1));
        assert_true(!shape.feed.save && shape.feed.memory == TT_MEMORY_HOST);
        assert_true(shape.feed.alpha == 0 && shape.ride == 0 && shape.sets == 2);
        assert_int_equal(shape.forwards, delays[i] == 5 ? 5 : 4); /* of 7 / 2, 12 / 3 and 27 / 6 stages */
    }
}

static void test_the_network(void **state)
{
    (void)state;
    static const char *const names[] = {"actor", "q1", "q2"};
    const tt_train_cfg_t train = s_train();
    tt_columns_t *columns = NULL;
    assert_ok(tt_train_columns(&columns, &train));
    const tt_net_spec_t net = tt_train_net(&train, columns);
    tt_columns_destroy(&columns);
    assert_true(net.towers == 3 && net.action == 2 && tt_net_groups(&net) == TWIN_GROUPS);
    for (uint32_t t = 0; t < net.towers; t++) {
        assert_string_equal(net.tower[t].name, names[t]);
        assert_int_equal(net.tower[t].group, t == 0 ? TWIN_ACTOR : TWIN_CRITICS);
        assert_int_equal(net.tower[t].out, t == 0 ? 2 : 1);
        assert_true(net.tower[t].action == (t > 0) && net.tower[t].log_std == 0);
    }
}

/* ---- its steps ------------------------------------------------------------------------------------------------------ */

static void s_open(twin_stage_t *self, const char *yaml)
{
    twin_stage_open(self, "td3", s_acts, yaml);
}

/*  Every target follows, once the actor has taken its step. */
static void s_check_step(const twin_stage_t *self, const tt_minibatch_t *m, bool critics)
{
    const td3_loss_t *loss = m->params;
    const td3_cfg_t *cfg = &self->cfg.td3;
    assert_string_equal(m->objective->name, critics ? "td3_critic" : "td3_actor");
    assert_int_equal(m->train, 1u << (critics ? TWIN_CRITICS : TWIN_ACTOR));
    assert_int_equal(m->blends, !critics);
    if (!critics) {
        const tt_blend_t blend = m->blend[0];
        assert_true(blend.to == 1 && blend.from == 0 && blend.tau == cfg->off.tau);
        assert_int_equal(blend.groups, 1u << TWIN_ACTOR | 1u << TWIN_CRITICS);
    }
    assert_int_equal(m->params_size, sizeof *loss);
    assert_true(loss->of.numbers == TWIN_NUMBERS && loss->of.scale == 1.0f / 64);
    assert_true(loss->noise == cfg->target_noise && loss->clip == cfg->target_noise_clip);
    twin_assert_inputs(self, m, critics, critics);
}

/*  By the run's steps, whichever the update's is. */
static void test_steps_by_turns(void **state)
{
    (void)state;
    static const uint32_t delays[] = {1, 2, 3};
    for (size_t i = 0; i < TT_COUNT(delays); i++) {
        char yaml[200];
        twin_stage_t stage;
        snprintf(yaml, sizeof yaml,
            "algorithm: {batch_size: 64, tau: 0.25, learning_rate: 0.5, policy_delay: %u, target_noise: 0.3, "
            "target_noise_clip: 0.7}\n",
            delays[i]);
        s_open(&stage, yaml);
        for (uint64_t total = 0; total < 9; total++)
            for (uint32_t step = 0; step < 2; step++) {
                const tt_minibatch_t m = twin_describe_step(&stage, total, step);
                const bool critics = total % (delays[i] + 1) != delays[i];
                s_check_step(&stage, &m, critics);
                assert_true(m.lr[critics ? TWIN_CRITICS : TWIN_ACTOR] == 0.5f);
            }
        const uint64_t far = (1ull << 40) / (delays[i] + 1) * (delays[i] + 1) + delays[i];
        const tt_minibatch_t late = twin_describe_step(&stage, far, 0);
        s_check_step(&stage, &late, false);
        twin_stage_close(&stage);
    }
}

static void test_rates_and_optimisers(void **state)
{
    (void)state;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {batch_size: 64, learning_rate: 0.5, critic_learning_rate: 0.125, optimizer: rmsprop, "
                   "max_grad_norm: 3}\n");
    for (uint64_t total = 0; total < 3; total++) {
        const tt_minibatch_t m = twin_describe_step(&stage, total, 0);
        assert_true(m.lr[total == 2 ? TWIN_ACTOR : TWIN_CRITICS] == (total == 2 ? 0.5f : 0.125f));
    }
    for (uint32_t g = 0; g < TWIN_GROUPS; g++) {
        const tt_opt_spec_t *opt = s_td3()->opt(stage.algo, g);
        assert_true(opt->kind == TT_OPT_RMSPROP && opt->max_norm == 3);
    }
    twin_stage_close(&stage);
}

/*  Actions are the row's own, squashed; noise is the step's and the seed's, whatever was described before. */
static void test_tables(void **state)
{
    (void)state;
    enum { FLOATS = 64 * TWIN_NUMBERS };
    static float noise[3][FLOATS];
    twin_stage_t stage;
    s_open(&stage, "algorithm: {batch_size: 64}\n");
    for (uint32_t k = 0; k < 3; k++) {
        const tt_minibatch_t m = k ? twin_describe_again(&stage, k % 2, k) : twin_describe_step(&stage, 0, 0);
        const float *action = m.input[TWIN_IN_ACTION].at;
        memcpy(noise[k], m.input[TWIN_IN_NOISE].at, sizeof noise[k]);
        for (uint32_t u = 0; u < m.rows; u++)
            for (uint32_t a = 0; a < TWIN_NUMBERS; a++) {
                const uint32_t leg = a >= TWIN_ARM;
                assert_true(action[u * TWIN_NUMBERS + a] ==
                            tt_tanhf(twin_stored(stage.sample.unit[u], leg, leg ? a - TWIN_ARM : a)));
            }
    }
    assert_memory_equal(noise[0], noise[2], sizeof noise[0]);
    for (uint32_t i = 0; i < FLOATS; i++)
        assert_true(noise[0][i] != noise[1][i]);
    twin_stage_close(&stage);
}

/* ---- what it reports ------------------------------------------------------------------------------------------------ */

typedef struct {
    int count;
    double critic, q, actor;
} said_t;

static void s_emit(void *ctx, const char *name, double value)
{
    said_t *said = ctx;
    said->count++;
    said->critic = strcmp(name, "losses/critic_loss") == 0 ? value : said->critic;
    said->q = strcmp(name, "losses/q_values") == 0 ? value : said->q;
    said->actor = strcmp(name, "losses/actor_loss") == 0 ? value : said->actor;
}

static said_t s_say(const tt_algo_t *algo)
{
    said_t said = {0};
    s_td3()->metrics(algo, s_emit, &said);
    return said;
}

static void s_learn(twin_stage_t *stage, uint64_t total, uint32_t step, float loss)
{
    const float of_critics[TT_LOSS_STATS] = {[TWIN_CRITIC_LOSS] = loss, [TWIN_Q] = loss + 1},
                of_actor[TT_LOSS_STATS] = {[TD3_ACTOR_LOSS] = loss};
    const tt_minibatch_t m = twin_describe_step(stage, total, step);
    const tt_result_t result = {.trained = m.train,
        .stats = m.train == 1u << TWIN_CRITICS ? of_critics : of_actor,
        .norm = (float[TWIN_GROUPS]){1, 1}};
    assert_int_equal(m.train, 1u << (total % 3 == 2 ? TWIN_ACTOR : TWIN_CRITICS));
    assert_false(s_td3()->after(stage->algo, step, &result));
}

/*  Means over an update, each of the steps of its kind; an update may have none of the actor's. */
static void test_what_it_reports(void **state)
{
    (void)state;
    twin_stage_t stage;
    s_open(&stage, "algorithm: {batch_size: 64}\n");
    assert_int_equal(s_say(stage.algo).count, 1); /* the learning rate */
    for (uint32_t step = 0; step < 6; step++)
        s_learn(&stage, step, step, (float)step);
    said_t said = s_say(stage.algo);
    assert_int_equal(said.count, 1 + (int)TWIN_CRITIC_STATS + (int)TD3_ACTOR_STATS);
    assert_true(said.critic == 2 && said.q == 3 && said.actor == 3.5); /* of 0, 1, 3, 4; of 2, 5 */
    s_learn(&stage, 6, 0, 7);
    said = s_say(stage.algo);
    assert_true(said.count == 1 + (int)TWIN_CRITIC_STATS && said.critic == 7);
    twin_stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_the_network),
        cmocka_unit_test(test_steps_by_turns),
        cmocka_unit_test(test_rates_and_optimisers),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_what_it_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
