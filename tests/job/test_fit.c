/*  What settings come to, from spaces in words to a network and a segment; and whose fault it is when that is too much. */
#include "common/job/fit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "tests/test.h"

static tt_train_cfg_t s_cfg(const char *obs, const char *action, bool mask)
{
    tt_train_cfg_t cfg = {.name = "test",
        .env = "X",
        .num_envs = 8,
        .num_steps = 16,
        .lag = 1,
        .learner.device = "cpu",
        .collector.device = "cpu"};
    cfg.network.hidden = (tt_cfg_list_t){.count = 2, .at = {64, 32}};
    cfg.learner.shards = 2;
    snprintf(cfg.space.obs, sizeof cfg.space.obs, "%s", obs);
    snprintf(cfg.space.action, sizeof cfg.space.action, "%s", action);
    cfg.space.mask = mask;
    return cfg;
}

static void test_networks(void **state)
{
    (void)state;
    static const struct {
        const char *obs, *action;
        uint32_t in, out, log_std;
    } cases[] = {
        {"float32[4]", "discrete(2)", 4, 2, 0},
        {"float32[3]", "float32[1]", 3, 1, 1},
        {"float64", "float64[2, 3]", 1, 6, 6},
        {"uint8[8, 8]", "multi_discrete(3, 2)", 64, 5, 0},
        {"discrete(6)", "multi_binary[3]", 6, 6, 0},
        {"{image: uint8[2, 2], state: (float32[3], discrete(4, from -1))}", "{jump: discrete(2), move: float32[2]}", 11,
            4, 2},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_train_cfg_t cfg = s_cfg(cases[i].obs, cases[i].action, false);
        TT_AUTO(tt_columns) columns = NULL;
        assert_ok(tt_train_fit(NULL, &cfg));
        assert_ok(tt_train_columns(&columns, &cfg));
        const tt_net_spec_t net = tt_train_net(&cfg, columns);
        assert_int_equal(net.obs, cases[i].in);
        assert_int_equal(net.towers, 2);
        assert_int_equal(net.tower[0].out, cases[i].out);
        assert_int_equal(net.tower[0].log_std, cases[i].log_std);
        assert_true(net.tower[0].hidden_count == 2 && net.tower[0].hidden[1] == 32);
        const tt_segment_shape_t shape = tt_train_segment(&cfg, columns);
        assert_true(shape.columns == columns && shape.T == 16 && shape.E == 8 && shape.K == 0);
    }
}

/*  One trunk has the layers, two towers are heads on it; without layers there is nothing to share. */
static void test_shared_trunk(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("float32[3]", "float32[2]", false);
    TT_AUTO(tt_columns) columns = NULL;
    cfg.network.shared = true;
    assert_ok(tt_train_fit(NULL, &cfg));
    assert_ok(tt_train_columns(&columns, &cfg));
    const tt_net_spec_t net = tt_train_net(&cfg, columns);
    assert_int_equal(net.towers, 3);
    assert_true(net.tower[0].hidden_count == 2 && net.tower[0].out == 0);
    assert_string_equal(net.tower[1].name, "actor");
    assert_true(net.tower[1].from == 1 && net.tower[1].out == 2 && net.tower[1].log_std == 2);
    assert_true(net.tower[2].from == 1 && net.tower[2].out == 1 && net.tower[2].hidden_count == 0);
    cfg.network.hidden.count = 0;
    assert_int_equal(tt_train_fit(NULL, &cfg), TT_CONFIG);
    assert_string_equal(tt_err_text(), "network.shared: there are no layers to share: set it to false, or give "
                                       "network.hidden some");
}

/*  What is said of the first weights reaches every kind of network. */
static void test_init(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("float32[3]", "discrete(2)", false);
    TT_AUTO(tt_columns) columns = NULL;
    assert_ok(tt_train_columns(&columns, &cfg));
    for (int kind = 0; kind < 3; kind++) {
        cfg.network.shared = kind == 1;
        cfg.actor.kind = kind == 2 ? TT_ACT_ARGMAX : TT_ACT_SAMPLE;
        cfg.network.init = TT_INIT_ORTHOGONAL;
        assert_int_equal(tt_train_net(&cfg, columns).init, TT_NN_ORTHOGONAL);
        cfg.network.init = TT_INIT_UNIFORM;
        assert_int_equal(tt_train_net(&cfg, columns).init, TT_NN_UNIFORM);
    }
}

static void s_refused(const tt_train_cfg_t *cfg, const char *message)
{
    tt_config_t *config = NULL;
    static const char yaml[] = "env: X\nnum_steps: 16\nnormalize: {obs: true}\nnetwork: {hidden: [64, 32]}\n"
                               "algorithm: {name: best}\nlearner.device: cuda\ncollector.device: cuda\n"
                               "network.rnn_size: 4\n";
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    assert_int_equal(tt_train_fit(config, cfg), TT_CONFIG);
    assert_string_equal(tt_err_text(), message);
    tt_config_destroy(&config);
}

static void test_whose_fault(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("uint8[1024, 512]", "discrete(2)", false);
    s_refused(&cfg, "f.yaml:1:1: env: an observation is 524288 numbers, flattened; layers without an encoder "
                    "(network.encoder) read at most 65536");
    cfg = s_cfg("float32[4]", "multi_discrete(60000, 60000)", false);
    s_refused(&cfg, "f.yaml:1:1: env: an action has 120000 choices and numbers; at most 65536 are possible");
    cfg = s_cfg("uint8[64, 64]", "discrete(2)", false);
    cfg.num_envs = TT_ENVS_MAX;
    cfg.num_steps = 1024;
    s_refused(&cfg, "f.yaml:2:1: num_steps: a batch of 65536 envs x 1024 steps is 517 segments of 512 MiB, at most 64 "
                    "are possible: lower it, or num_envs");
    cfg = s_cfg("uint8[64, 64]", "discrete(2)", false);
    cfg.num_steps = 1 << 17;
    cfg.num_envs = 1;
    s_refused(&cfg, "f.yaml:2:1: num_steps: 131072 steps of one env are more than 512 MiB, the most that a segment can "
                    "be: lower it");
    cfg = s_cfg("uint8[4]", "discrete(2)", false);
    cfg.normalize.obs = true;
    s_refused(
        &cfg, "f.yaml:3:13: normalize.obs: X observes no float32 numbers that could be normalised: set it to false");
    cfg = s_cfg("float32[4]", "float32[2]", true);
    s_refused(&cfg, "f.yaml:1:1: env: space: mask: 0 choices in an action, must be 1 to 65536");
    cfg = s_cfg("float32[4]", "uint8[2]", false);
    assert_int_equal(tt_train_fit(NULL, &cfg), TT_CONFIG);
    cfg = s_cfg("float32[4", "discrete(2)", false);
    assert_int_equal(tt_train_fit(NULL, &cfg), TT_CONFIG);
}

/*  As many envs as 512 MiB hold, not one more; whoever asks for fewer gets fewer, and a batch that is small stays one. */
static void test_segments(void **state)
{
    (void)state;
    static const struct {
        const char *wish;
        uint32_t big, small;
    } cases[] = {{NULL, 0, 8}, {"", 0, 8}, {"9", 9, 8}, {"3", 3, 3}, {"65536", 0, 8}};
    tt_train_cfg_t big = s_cfg("uint8[84, 84]", "discrete(4)", false),
                   small = s_cfg("float32[4]", "discrete(2)", false);
    TT_AUTO(tt_columns) columns = NULL;
    TT_AUTO(tt_columns) few = NULL;
    big.num_envs = 1024;
    big.num_steps = 128;
    assert_ok(tt_train_columns(&columns, &big));
    assert_ok(tt_train_columns(&few, &small));
    const uint32_t most = tt_train_segment_envs(&big, columns);
    tt_segment_shape_t shape = tt_train_segment(&big, columns);
    size_t bytes;
    assert_int_equal(shape.E, most);
    assert_ok(tt_segment_size(&shape, &bytes));
    assert_true(bytes <= TT_SEGMENT_MAX);
    shape.E++;
    assert_ok(tt_segment_size(&shape, &bytes));
    assert_true(bytes > TT_SEGMENT_MAX);
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        if (cases[i].wish)
            setenv("TT_SEGMENT_ENVS", cases[i].wish, 1);
        assert_ok(tt_train_fit(NULL, &big));
        assert_int_equal(tt_train_segment_envs(&big, columns), cases[i].big ? cases[i].big : most);
        assert_int_equal(tt_train_segment_envs(&small, few), cases[i].small);
    }
    setenv("TT_SEGMENT_ENVS", "0", 1);
    s_refused(&small, "f.yaml:2:1: num_steps: TT_SEGMENT_ENVS=0: it can be 1 to 65536; unset it to let Tutti choose");
    unsetenv("TT_SEGMENT_ENVS");
}

/*  Who reads a picture with an encoder may have more numbers in it than dense layers take. */
static void test_what_could_see(void **state)
{
    (void)state;
    static const struct {
        const char *obs;
        bool nature, minatar;
    } cases[] = {{"uint8[36, 36]", true, true}, {"uint8[35, 36]", false, true}, {"uint8[4, 84, 84]", true, true},
        {"uint8[210, 160, 3]", true, true}, {"bool[10, 10, 4]", false, true}, {"float32[84, 84]", false, false},
        {"uint8[100]", false, false}, {"{a: uint8[84, 84], b: uint8[84, 84]}", false, false},
        {"{a: uint8[84, 84], b: float32[3]}", true, true}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_train_cfg_t cfg = s_cfg(cases[i].obs, "discrete(2)", false);
        TT_AUTO(tt_columns) columns = NULL;
        assert_ok(tt_train_columns(&columns, &cfg));
        assert_int_equal(tt_train_could_see(&cfg, columns, "nature"), cases[i].nature);
        assert_int_equal(tt_train_could_see(&cfg, columns, "minatar"), cases[i].minatar);
    }
    tt_train_cfg_t cfg = s_cfg("uint8[210, 160, 3]", "discrete(2)", false);
    cfg.network.hidden.count = 0;
    cfg.space.divisor = 255;
    snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "nature");
    assert_ok(tt_train_fit(NULL, &cfg));
}

static tt_train_cfg_t s_remembers(const char *obs, tt_rnn_t rnn, uint32_t units, bool shared)
{
    tt_train_cfg_t cfg = s_cfg(obs, "discrete(2)", false);
    cfg.network.rnn = (int)rnn;
    cfg.network.rnn_size = units;
    cfg.network.shared = shared;
    cfg.space.env_state = 100;
    cfg.space.divisor = 1;
    return cfg;
}

/*  One layer for all, or one each, before the hidden layers and behind an encoder; what they carry is a part of segments. */
static void test_what_remembers(void **state)
{
    (void)state;
    static const struct {
        const char *obs, *encoder;
        tt_rnn_t rnn;
        bool shared, argmax;
        uint32_t hidden, towers, carry;
        const char *names;
    } cases[] = {
        {"float32[4]", "none", TT_RNN_LSTM, true, false, 0, 3, 2 * 5, "lstm actor critic "},
        {"float32[4]", "none", TT_RNN_GRU, true, false, 2, 4, 5, "gru trunk actor critic "},
        {"float32[4]", "none", TT_RNN_LSTM, false, false, 2, 4, 4 * 5, "actor_lstm actor critic_lstm critic "},
        {"uint8[36, 36]", "nature", TT_RNN_GRU, true, false, 0, 4, 5, "encoder gru actor critic "},
        {"uint8[36, 36]", "nature", TT_RNN_LSTM, false, false, 1, 6, 4 * 5,
            "actor_encoder actor_lstm actor critic_encoder critic_lstm critic "},
        {"float32[4]", "none", TT_RNN_LSTM, false, true, 1, 2, 2 * 5, "lstm q "},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_train_cfg_t cfg = s_remembers(cases[i].obs, cases[i].rnn, 5, cases[i].shared);
        TT_AUTO(tt_columns) columns = NULL;
        TT_AUTO(tt_columns) without = NULL;
        char names[200] = "";
        size_t bytes, less;
        cfg.network.hidden.count = cases[i].hidden;
        cfg.actor.kind = cases[i].argmax ? TT_ACT_ARGMAX : TT_ACT_SAMPLE;
        snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "%s", cases[i].encoder);
        assert_ok(tt_train_fit(NULL, &cfg));
        assert_ok(tt_train_columns(&columns, &cfg));
        const tt_net_spec_t net = tt_train_net(&cfg, columns);
        for (uint32_t t = 0; t < net.towers; t++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s ", net.tower[t].name);
        assert_string_equal(names, cases[i].names);
        assert_int_equal(net.towers, cases[i].towers);
        assert_int_equal(columns->carry, cases[i].carry);
        assert_int_equal(tt_train_state_bytes(&cfg, columns), 100 + 4 * cases[i].carry);
        tt_segment_shape_t shape = tt_train_segment(&cfg, columns);
        assert_int_equal(shape.S, 100 + 4 * cases[i].carry);
        assert_ok(tt_segment_size(&shape, &bytes));
        cfg.network.rnn = TT_RNN_NONE;
        assert_ok(tt_train_columns(&without, &cfg));
        assert_true(without->carry == 0 && without->hash != columns->hash);
        shape = (tt_segment_shape_t){.columns = without, .T = shape.T, .E = shape.E, .S = 100};
        assert_ok(tt_segment_size(&shape, &less));
        assert_true(
            bytes - less >= (size_t)2 * 8 * 4 * cases[i].carry); /* into the batch, and with the state: 8 envs */
        cfg.space.env_state = 0;
        assert_int_equal(tt_train_state_bytes(&cfg, columns), 0); /* nothing goes on from there */
    }
}

static void test_too_much_is_remembered(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_remembers("float32[4]", TT_RNN_LSTM, 4, true);
    cfg.network.hidden.count = 0;
    cfg.space.env_state = TT_ENV_STATE_MAX - 4 * 8;
    assert_ok(tt_train_fit(NULL, &cfg));
    cfg.space.env_state++;
    s_refused(&cfg, "f.yaml:8:1: network.rnn_size: a saved state of X is 16777185 bytes, and each env carries 8 floats "
                    "beside it: together at most 16 MiB are possible: lower it");
    cfg = s_remembers("float32[4]", TT_RNN_GRU, TT_UNITS_MAX, true);
    s_refused(&cfg, "f.yaml:8:1: network.rnn_size: network: 12886278147 parameters; at most 268435456 are possible");
    cfg = s_remembers("float32[4]", TT_RNN_LSTM, 2048, true);
    cfg.num_envs = TT_ENVS_MAX;
    cfg.network.hidden.count = 0;
    cfg.space.env_state = 0;
    assert_ok(tt_train_fit(NULL, &cfg));
    cfg.space.env_state = 100; /* what is carried on is a part of snapshots then */
    s_refused(&cfg,
        "f.yaml:8:1: network.rnn_size: 16832515 parameters, lag 1 and 65536 envs make a snapshot of 1484 MiB, "
        "at most 1024 are possible: lower it, or lag");
}

/*  The best choice is one of one head's; and a row then has no estimates. */
static void test_argmax(void **state)
{
    (void)state;
    static const char *const others[] = {
        "float32[1]", "multi_discrete(2, 2)", "multi_binary[1]", "(discrete(2), float32)"};
    tt_train_cfg_t cfg = s_cfg("float32[4]", "discrete(3)", true);
    TT_AUTO(tt_columns) columns = NULL;
    snprintf(cfg.algorithm.name, sizeof cfg.algorithm.name, "best");
    cfg.actor.kind = TT_ACT_ARGMAX;
    assert_ok(tt_train_fit(NULL, &cfg));
    assert_ok(tt_train_columns(&columns, &cfg));
    assert_int_equal(columns->value, -1);
    for (size_t i = 0; i < TT_COUNT(others); i++) {
        char message[160];
        cfg = s_cfg("float32[4]", others[i], false);
        snprintf(cfg.algorithm.name, sizeof cfg.algorithm.name, "best");
        cfg.actor.kind = TT_ACT_ARGMAX;
        snprintf(message, sizeof message,
            "f.yaml:5:13: algorithm.name: best has no head for the actions of X, %s: it takes discrete(n)", others[i]);
        s_refused(&cfg, message);
    }
}

/*  An actor of means alone, or with deviations of each state, beside two critics; boxes are all that they act by. */
static void test_twins(void **state)
{
    (void)state;
    static const char *const others[] = {"discrete(3)", "multi_binary[1]", "(float32, discrete(2))"};
    for (int kind = TT_ACT_SQUASHED; kind <= TT_ACT_MEAN; kind++) {
        const bool means = kind == TT_ACT_MEAN;
        tt_train_cfg_t cfg = s_cfg("float32[4]", "(float32[2], float64)", false);
        TT_AUTO(tt_columns) columns = NULL;
        snprintf(cfg.algorithm.name, sizeof cfg.algorithm.name, "best");
        cfg.actor = (tt_actor_t){.kind = kind, .squash = true, .state_std = !means};
        assert_ok(tt_train_fit(NULL, &cfg));
        assert_ok(tt_train_columns(&columns, &cfg));
        assert_true(columns->value == -1 && columns->no_std == means);
        const tt_net_spec_t net = tt_train_net(&cfg, columns);
        assert_true(net.towers == 3 && net.action == 3 && net.tower[2].action && net.tower[2].group == 1);
        assert_int_equal(net.tower[0].out, means ? 3 : 6);
        assert_int_equal(net.tower[0].log_std, means ? 0 : 1);
        assert_true(net.tower[0].log_alpha != means);
        for (size_t i = 0; i < TT_COUNT(others); i++) {
            char message[160];
            snprintf(cfg.space.action, sizeof cfg.space.action, "%s", others[i]);
            snprintf(message, sizeof message,
                "f.yaml:5:13: algorithm.name: best has no head for the actions of X, %s: it takes boxes of float32 or "
                "float64 alone",
                others[i]);
            s_refused(&cfg, message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_shared_trunk),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_whose_fault),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_what_could_see),
        cmocka_unit_test(test_what_remembers),
        cmocka_unit_test(test_too_much_is_remembered),
        cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
