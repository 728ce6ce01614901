/*  Other trainers' words: each is answered with a key that there is, and with how it differs. */
#include "common/config/synonyms.h"
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "tests/test.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tt_algorithm_t *s_find(const char *name)
{
    const tt_algorithm_t *found = NULL;
    assert_ok(tt_algorithm_find(&found, name));
    return found;
}

static const tt_algorithm_t *s_ppo(void)
{
    return s_find("ppo");
}

/*  The words that a config of PPO gets, as cli/setup asks for them. */
static void s_refused(const char *yaml, const char *set, const char *expected)
{
    tt_config_t *config = NULL;
    tt_train_cfg_t train;
    void *options = calloc(1, s_ppo()->cfg_size);
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    if (set)
        assert_ok(tt_config_set(config, set));
    tt_status_t status = tt_config_claim(config, tt_train_fields, &train);
    if (status == TT_OK)
        status = tt_config_claim(config, s_ppo()->fields, options);
    if (status == TT_OK)
        status = tt_config_finish(config);
    assert_int_equal(status, TT_CONFIG);
    assert_string_equal(tt_err_text(), expected);
    tt_config_destroy(&config);
    free(options);
}

static bool s_is_key(const tt_cfg_field_t *fields, const char *key)
{
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return true;
    return false;
}

static void test_what_is_said(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"env: x\nclip_range: 0.1\n", "f.yaml:2:1: unknown key 'clip_range'; here it is called 'algorithm.clip'"},
        {"env: x\nalgorithm:\n  ent_coef: 0.1\n",
            "f.yaml:3:3: unknown key 'algorithm.ent_coef'; here it is called 'algorithm.entropy_coef' (for auto, of "
            "sac: algorithm.tune_entropy: true)"},
        {"env: x\npolicy: {other: {eps: {type: exp}}}\n",
            "f.yaml:2:24: unknown key 'policy.other.eps.type': epsilon "
            "falls in a line, over algorithm.epsilon_steps; leave it away"},
        {"env: x\npolicy: {type: dqn}\n", "f.yaml:2:10: unknown key 'policy.type'; here it is called 'algorithm.name'"},
        {"env: x\nmodel: {n_critics: 2}\n", "f.yaml:2:9: unknown key 'model.n_critics': sac and td3 always have two "
                                            "critics; leave it away"},
        {"env: x\ntotal_steps: 2\n", "f.yaml:2:1: unknown key 'total_steps'; here it is called 'stop.env_steps'"},
        {"env: x\nalgorithm: {entropy_coef: auto}\n",
            "f.yaml:2:13: algorithm.entropy_coef: 'auto' is not a number from 0 to 10; algorithm.tune_entropy: true "
            "tunes it (sac); this is its first value"},
        {"env: x\nalgorithm: {learning_rate: lin_3e-4}\n",
            "f.yaml:2:13: algorithm.learning_rate: 'lin_3e-4' is not a number from 0 to 1; that is algorithm.anneal: "
            "linear (ppo, a2c and impala)"},
        {"env: x\nalgorithm: {batch_size: 64}\n", "f.yaml:2:13: unknown key 'algorithm.batch_size'; here it is called "
                                                  "'algorithm.minibatch_size' (rows of one "
                                                  "optimiser step; the whole batch has num_envs * num_steps)"},
        {"env: x\npolicy:\n  learn:\n    value_weight: 0.5\n", "f.yaml:4:5: unknown key 'policy.learn.value_weight'; "
                                                               "here it is called 'algorithm.value_coef' (of half the "
                                                               "squared error, as DI-engine)"},
        {"env: x\npolicy: {collect: {unroll_len: 1, gae_lambda: 0.9}}\n",
            "f.yaml:2:20: unknown key 'policy.collect.unroll_len'; 'tutti config' lists the keys"},
        {"env: x\npolicy: {collect: {gae_lambda: 0.9}}\n",
            "f.yaml:2:20: unknown key 'policy.collect.gae_lambda'; did you mean 'algorithm.gae_lambda'?"},
        {"env: x\npolicy: {seed: 3}\n", "f.yaml:2:10: unknown key 'policy.seed'; did you mean 'seed'?"},
        {"env: x\neval_freq: 100\n",
            "f.yaml:2:1: unknown key 'eval_freq'; here it is called 'eval.every' (in env steps "
            "of all environments together)"},
        {"env: x\nevaluation_interval: 1\n", "f.yaml:2:1: unknown key 'evaluation_interval'; here it is called "
                                             "'eval.every' (in env steps, not in updates)"},
        {"env: x\ndevice: cuda\n", "f.yaml:2:1: unknown key 'device'; here it is called 'learner.device' "
                                   "(collector.device is that of those who play)"},
        {"env_id: CartPole-v1\n", "f.yaml:1:1: unknown key 'env_id'; here it is called 'env'"},
        {"env:\n  env_id: CartPole-v1\n", "f.yaml:2:3: unknown key 'env.env_id'; here it is called 'env'"},
        {"env: x\nenv.stop_value: 195\n", "f.yaml:2:1: unknown key 'env.stop_value'; here it is called "
                                          "'stop.return_mean' (of the last 100 training episodes)"},
        {"env: x\nenv.type: y\n",
            "f.yaml:2:1: unknown key 'env.type'; 'env' holds 'id', 'args', 'stack', 'stack_pad', and for gym: "
            "'frames', 'python', 'path', 'workers' and 'wrappers'"},
        {"env: x\nseed.type: y\n", "f.yaml:2:1: unknown key 'seed.type'; 'seed' is a value, not a section"},
        {"env: x\nenv_kwargs: {g: 1, deep: {lr: 2}}\n", "f.yaml:2:14: unknown key 'env_kwargs.g'; here it is called "
                                                        "'env.args' (env: {id: ENV, args: {KEY: VALUE}})"},
        {"env: x\nenv_kwargs: {deep: {lr: 2}}\n",
            "f.yaml:2:21: unknown key 'env_kwargs.deep.lr'; here it is called 'env.args' (env: {id: ENV, args: {KEY: "
            "VALUE}})"},
        {"env: x\nTotal-Timesteps: 5\n",
            "f.yaml:2:1: unknown key 'Total-Timesteps'; here it is called 'stop.env_steps'"},
        {"env: x\ngamma: 0.9\n", "f.yaml:2:1: unknown key 'gamma'; did you mean 'algorithm.gamma'?"},
        {"env: x\nlearning_rte: 0.9\n",
            "f.yaml:2:1: unknown key 'learning_rte'; did you mean 'algorithm.learning_rate'?"},
        {"env: x\nppo.learning_rte: 0.9\n",
            "f.yaml:2:1: unknown key 'ppo.learning_rte'; did you mean 'algorithm.learning_rate'?"},
        {"env: x\nhidden: [64]\n", "f.yaml:2:1: unknown key 'hidden'; did you mean 'network.hidden'?"},
        {"env: x\nnormalise.obs: true\n", "f.yaml:2:1: unknown key 'normalise.obs'; did you mean 'normalize.obs'?"},
        {"env: x\nlearner.replica: 2\n", "f.yaml:2:1: unknown key 'learner.replica'; did you mean 'learner.replicas'?"},
        {"env: x\naggregator.shard: 2\n", "f.yaml:2:1: unknown key 'aggregator.shard'; did you mean 'learner.shards'?"},
        {"env: x\nrandom_rows: 9\n", "f.yaml:2:1: unknown key 'random_rows'; 'tutti config' lists the keys"},
        {"env: x\npolicy: CnnPolicy\n", "f.yaml:2:1: unknown key 'policy'; here it is called 'network.hidden' (and "
                                        "network.activation; for CnnPolicy "
                                        "network.encoder: nature (and, but by sac and td3, network.shared: true); for "
                                        "MlpLstmPolicy "
                                        "network.rnn: lstm)"},
        {"env: x\nnetwork: {lstm: true}\n",
            "f.yaml:2:11: unknown key 'network.lstm'; here it is called 'network.rnn' (lstm for true, none for false)"},
        {"env: x\nmodel: {use_lstm: true}\n",
            "f.yaml:2:9: unknown key 'model.use_lstm'; here it is called 'network.rnn' "
            "(lstm for true, none for false)"},
        {"env: x\nmodel: {conv_filters: [16]}\n",
            "f.yaml:2:9: unknown key 'model.conv_filters'; here it is called 'network.encoder' (a list of layers: [16, "
            "[8, "
            "8], 4] of RLlib is 'conv 16 8x8 /4 pad N relu', with the padding written out)"},
        {"env: x\ncolour: red\n", "f.yaml:2:1: unknown key 'colour'; 'tutti config' lists the keys"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++)
        s_refused(cases[i][0], NULL, cases[i][1]);
    s_refused("env: x\n", "n_steps=128", "--set: unknown key 'n_steps'; here it is called 'num_steps'");
    s_refused("env: x\n", "algorithm.vf_coef=0.5",
        "--set: unknown key 'algorithm.vf_coef'; here it is called 'algorithm.value_coef' (of half the squared error, "
        "as "
        "CleanRL: twice the number that Stable-Baselines3 has)");
}

/*  The first algorithm with this key; PPO for one that belongs to none. */
static const tt_algorithm_t *s_whose(const char *key)
{
    size_t count;
    const tt_algorithm_t *const *all = tt_algorithms(&count);
    for (size_t i = 0; key && i < count; i++)
        if (s_is_key(all[i]->fields, key))
            return all[i];
    return s_ppo();
}

/*  Every word that stands for one of ours stands for one that there is, and none of them is ours already. */
static void test_every_word_leads_to_a_key(void **state)
{
    (void)state;
    size_t count;
    const tt_synonym_t *words = tt_synonyms(&count);
    assert_true(count > 60);
    for (size_t i = 0; i < count; i++) {
        const tt_synonym_t *it = &words[i];
        for (const char *c = it->word; *c; c++)
            assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_' || *c == '.');
        assert_ptr_equal(tt_synonym(it->word), it); /* no word stands there twice */
        assert_true(it->ours || it->note);
        const tt_algorithm_t *whose = s_whose(it->ours);
        if (it->ours && !s_is_key(tt_train_fields, it->ours) && !s_is_key(whose->fields, it->ours))
            fail_msg("%s leads to %s, which is no key", it->word, it->ours);
        char yaml[128];
        snprintf(yaml, sizeof yaml, "env: x\nsome.%s: 1\n", it->word);
        tt_config_t *config = NULL;
        tt_train_cfg_t train;
        void *options = calloc(1, whose->cfg_size);
        assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
        assert_ok(tt_config_claim(config, tt_train_fields, &train));
        assert_ok(tt_config_claim(config, whose->fields, options));
        assert_int_equal(tt_config_finish(config), TT_CONFIG);
        if (!strstr(tt_err_text(), it->ours ? it->ours : it->note))
            fail_msg("%s is answered with %s", it->word, tt_err_text());
        tt_config_destroy(&config);
        free(options);
    }
}

/*  As they write it, and as a key of a file is spelled; what it is here is found by its first word. */
static void test_an_algorithm_of_others(void **state)
{
    (void)state;
    static const char *const words[][2] = {{"RecurrentPPO", "ppo with network.rnn: lstm"},
        {"recurrent_ppo", "ppo with network.rnn: lstm"}, {"ppo-lstm", "ppo with network.rnn: lstm"},
        {"PPO_GRU", "ppo with network.rnn: gru"}, {"QRDQN", "dqn with algorithm.quantiles: 200"},
        {"C51", "dqn with algorithm.atoms: 51"},
        {"Rainbow", "dqn with atoms: 51, double, dueling, noisy, n_step: 3 and replay.prioritized"},
        {"double-dqn", "dqn with algorithm.double: true"},
        {"DDPG", "td3 with algorithm.policy_delay: 1 and algorithm.target_noise: 0"}};
    for (size_t i = 0; i < TT_COUNT(words); i++)
        assert_string_equal(tt_synonym_algorithm(words[i][0]), words[i][1]);
    assert_null(tt_synonym_algorithm("ppo"));
    assert_null(tt_synonym_algorithm("sac"));
}

/*  A toy algorithm beside PPO. */
static const tt_cfg_field_t s_other[] = {
    {"algorithm.tau", TT_CFG_F32, 0, "0.1", .help = "of another algorithm"},
    {"algorithm.learning_rate", TT_CFG_F32, 4, "0.1", .help = "of both"},
    {0},
};

/*  Others that have one of its keys. */
static const tt_cfg_field_t s_tau[] = {{"algorithm.tau", TT_CFG_F32, 0, "0.1", .help = "of several"}, {0}};

static void s_refused_beside(const char *yaml, const tt_cfg_field_t *ours, const char *expected)
{
    tt_config_t *config = NULL;
    char target[4096];
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    assert_ok(tt_config_claim(config, ours, target));
    tt_config_foreign(config, ours == s_other ? s_ppo()->fields : s_other, "b", "a");
    assert_int_equal(tt_config_finish(config), TT_CONFIG);
    assert_string_equal(tt_err_text(), expected);
    tt_config_destroy(&config);
}

static void test_a_key_of_several_names_them_all(void **state)
{
    (void)state;
    static const char yaml[] = "algorithm:\n  tau: 1\n", *const names[] = {"b", "c", "d"};
    static const char *const said[] = {"the algorithm b", "the algorithms b and c", "the algorithms b, c and d"};
    for (size_t count = 1; count <= TT_COUNT(names); count++) {
        tt_config_t *config = NULL;
        char target[4096], expected[160];
        assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
        assert_ok(tt_config_claim(config, s_ppo()->fields, target));
        for (size_t i = 0; i < count; i++)
            tt_config_foreign(config, i == 0 ? s_other : s_tau, names[i], "a");
        tt_config_foreign(config, s_ppo()->fields, "without", "a");
        assert_int_equal(tt_config_finish(config), TT_CONFIG);
        snprintf(expected, sizeof expected, "f.yaml:2:3: unknown key 'algorithm.tau'; it belongs to %s, and this is a",
            said[count - 1]);
        assert_string_equal(tt_err_text(), expected);
        tt_config_destroy(&config);
    }
}

static void test_a_key_of_another_says_whose_it_is(void **state)
{
    (void)state;
    assert_true(s_ppo()->cfg_size <= 4096);
    s_refused_beside("algorithm:\n  tau: 1\n", s_ppo()->fields,
        "f.yaml:2:3: unknown key 'algorithm.tau'; it belongs to the algorithm b, and this is a");
    s_refused_beside("tau: 1\n", s_ppo()->fields,
        "f.yaml:1:1: unknown key 'tau' (here 'algorithm.tau'); it belongs to the algorithm b, and this is a");
    s_refused_beside("algo.learning_rate: 1\n", s_ppo()->fields,
        "f.yaml:1:1: unknown key 'algo.learning_rate'; did you mean 'algorithm.learning_rate'?");
    s_refused_beside("algorithm.clip: 1\n", s_other,
        "f.yaml:1:1: unknown key 'algorithm.clip'; it belongs to the algorithm b, and this is a");
    s_refused_beside("clip_range: 1\n", s_other,
        "f.yaml:1:1: unknown key 'clip_range' (here 'algorithm.clip'); it belongs to the algorithm b, and this is a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_every_word_leads_to_a_key),
        cmocka_unit_test(test_an_algorithm_of_others),
        cmocka_unit_test(test_a_key_of_another_says_whose_it_is),
        cmocka_unit_test(test_a_key_of_several_names_them_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
