/*  The settings that every role reads: defaults, the rules between keys, and the text that travels. */
#include "common/config/train.h"
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static tt_status_t s_check(const char *yaml)
{
    tt_config_t *config = NULL;
    tt_train_cfg_t cfg;
    TT_TRY(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    tt_status_t status = tt_config_claim(config, tt_train_fields, &cfg);
    if (status == TT_OK)
        status = tt_train_check(config, &cfg);
    if (status == TT_OK)
        status = tt_config_finish(config);
    tt_config_destroy(&config);
    return status;
}

static void test_rules(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"env: X\nlearner: {shards: 6}", "f.yaml:2:11: learner.shards: 6 is not a power of two"},
        {"env: X\nlearner:\n  shards: 4\n  replicas: 5", "f.yaml:4:3: learner.replicas: 5 learners, but learner.shards "
                                                         "is 4 (f.yaml:3:3): every learner needs a shard"},
        {"env: X\nlearner: {replicas: 3}", "f.yaml:2:11: learner.replicas: 3 learners, but learner.shards is 2 "
                                           "(default): every learner needs a shard"},
        {"env: X\nnum_envs: 2\ncollector: {replicas: 3}",
            "f.yaml:3:13: collector.replicas: 3 collectors, but num_envs is 2 (f.yaml:2:1): every collector needs an "
            "environment"},
        {"env: X\nnet: {beat_ms: 4000}", "default: net.lease_ms: 5000 is less than twice net.beat_ms, which is 4000 "
                                         "(f.yaml:2:7): one lost beat would "
                                         "end a process"},
        {"env: X\nname: a/b",
            "f.yaml:2:1: name: 'a/b' is not a name: letters, digits, '-', '_', '.', beginning with a letter or digit"},
        {"env: X\nname: ..",
            "f.yaml:2:1: name: '..' is not a name: letters, digits, '-', '_', '.', beginning with a letter or digit"},
        {"env: \"\"", "f.yaml:1:1: env: is empty; 'tutti envs' lists the environments"},
        {"env: X\nnum_envs: 65536\nnum_steps: 65536",
            "f.yaml:3:1: num_steps: a batch of 65536 envs x 65536 steps has more than 67108864 rows"},
        {"env: X\ncoordinator: {listen: ipc://x}",
            "f.yaml:2:15: coordinator.listen: 'ipc://x' is not of the form tcp://ADDRESS:PORT, with a numeric address, "
            "an interface's name or *"},
        {"env: X\ncoordinator: {http: '127.0.0.1'}", "f.yaml:2:15: coordinator.http: '127.0.0.1' is not of the form "
                                                     "ADDRESS:PORT with a numeric address, as 127.0.0.1:0"},
        {"env: X\ncoordinator: {http: '127.0.0.1:70000'}",
            "f.yaml:2:15: coordinator.http: '127.0.0.1:70000' is not of the form ADDRESS:PORT with a numeric address, "
            "as 127.0.0.1:0"},
        {"num_envs: 1", "f.yaml: 'env' is missing: id ('tutti envs' lists them), gym:ID for any of Gymnasium's, or the "
                        "path of a shared object"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        assert_int_equal(s_check(cases[i].yaml), TT_CONFIG);
        assert_string_equal(tt_err_text(), cases[i].message);
    }
    static const char *const listen[] = {"tcp://a b:1", "tcp://1.2.3:4", "tcp://:1", "tcp://::1:1", "tcp://*:+1",
        "tcp://*:65536", "tcp://[::1]", "tcp://a-name.that.is.no-interface:1"};
    static const char *const http[] = {
        "nowhere:80", "127.0.0.1:*", "*:80", ":80", "[::1:80", "127.0.0.1: 80", "1.2.3.4.5:6"};
    char yaml[256];
    for (size_t i = 0; i < TT_COUNT(listen); i++) {
        snprintf(yaml, sizeof yaml, "env: X\ncoordinator: {listen: '%s'}", listen[i]);
        assert_int_equal(s_check(yaml), TT_CONFIG);
    }
    for (size_t i = 0; i < TT_COUNT(http); i++) {
        snprintf(yaml, sizeof yaml, "env: X\ncoordinator: {http: '%s'}", http[i]);
        assert_int_equal(s_check(yaml), TT_CONFIG);
    }
    assert_ok(s_check("env: X\ncoordinator: {listen: 'tcp://eth0:*', http: 'localhost:0'}"));
    assert_ok(s_check("env: X\ncoordinator: {listen: 'tcp://[::]:1'}"));
    assert_ok(s_check("env: X\nlearner: {shards: 8, replicas: 8}\nnum_envs: 3\ncollector: {replicas: 3}\n"
                      "coordinator: {listen: 'tcp://*:0', http: '[::1]:8080'}\nname: a-b_c.1"));
}

static const char s_resolved[] = "env: CartPole-v1\nalgorithm: {name: ppo, lr: 1e-3}\nstop: {return_mean: 475}\n"
                                 "space: {obs: 'float32[4]', action: discrete(2), env_state: 32, threshold: 475}\n";

static void test_parse(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    assert_ok(tt_train_parse(&cfg, s_resolved, strlen(s_resolved)));
    assert_string_equal(cfg.env, "CartPole-v1");
    assert_true(cfg.seed == 1 && cfg.num_envs == 8 && cfg.num_steps == 128 && cfg.lag == 1);
    assert_string_equal(cfg.algorithm.name, "ppo");
    assert_true(cfg.network.hidden.count == 2 && cfg.network.hidden.at[0] == 64);
    assert_int_equal(cfg.network.activation, TT_ACT_TANH);
    assert_int_equal(cfg.network.init, TT_INIT_ORTHOGONAL);
    assert_true(!cfg.normalize.obs && cfg.normalize.clip_obs == 10.0f);
    assert_true(cfg.learner.shards == 2 && cfg.learner.threads == 1 && cfg.aggregator.replicas == 0);
    assert_true(cfg.stop.env_steps == 0 && cfg.stop.return_mean == 475.0 && isnan(cfg.stop.wall_s));
    assert_true(cfg.net.beat_ms == 1000 && cfg.net.lease_ms == 5000 && cfg.net.stall_s == 60);
    assert_string_equal(cfg.space.obs, "float32[4]");
    assert_string_equal(cfg.space.action, "discrete(2)");
    assert_true(!cfg.space.mask && cfg.space.threshold == 475.0);
    assert_int_equal(cfg.env_args.count, 0);
    char text[512];
    snprintf(text, sizeof text, "%snetwork: {init: uniform}\n", s_resolved);
    assert_ok(tt_train_parse(&cfg, text, strlen(text)));
    assert_int_equal(cfg.network.init, TT_INIT_UNIFORM);
}

/*  How to act: sampling where nothing is said, as by versions that knew nothing else. What feeds a learner is the learner's. */
static void test_parse_actor(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    char text[512];
    assert_ok(tt_train_parse(&cfg, s_resolved, strlen(s_resolved)));
    assert_true(cfg.actor.kind == TT_ACT_SAMPLE && cfg.actor.epsilon == 0 && cfg.actor.epsilon_end == 0);
    assert_true(cfg.actor.epsilon_rows == 0 && cfg.actor.random_rows == 0 && !cfg.actor.dueling &&
                cfg.actor.quantiles == 0 && cfg.actor.atoms == 0);
    snprintf(text, sizeof text,
        "%sactor: {kind: argmax, epsilon: 1, epsilon_end: 0.05, epsilon_rows: 10k, random_rows: 100, dueling: true, "
        "epsilon_power: 7, quantiles: 200}\n"
        "replay: {capacity: 1M, anything: 4}\n",
        s_resolved);
    assert_ok(tt_train_parse(&cfg, text, strlen(text)));
    assert_true(cfg.actor.kind == TT_ACT_ARGMAX && cfg.actor.epsilon == 1 && cfg.actor.epsilon_end == 0.05);
    assert_true(cfg.actor.epsilon_rows == 10000 && cfg.actor.random_rows == 100 && cfg.actor.dueling);
    assert_true(cfg.actor.epsilon_power == 7 && cfg.actor.quantiles == 200);
    snprintf(text, sizeof text, "%sactor: {kind: mean, sigma: 0.1}\n", s_resolved);
    assert_ok(tt_train_parse(&cfg, text, strlen(text)));
    assert_true(cfg.actor.kind == TT_ACT_MEAN && cfg.actor.sigma == 0.1f);
    static const char *const wrong[] = {"{kind: best}", "{sigma: -0.1}", "{epsilon: 1.5}", "{epsilon_end: -0.1}",
        "{epsilon_power: -1}", "{epsilons: 7}", "{quantiles: 201}", "{atoms: 201}", "{v_min: -1e7}"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        snprintf(text, sizeof text, "%sactor: %s\n", s_resolved, wrong[i]);
        assert_int_equal(tt_train_parse(&cfg, text, strlen(text)), TT_CONFIG);
    }
    assert_true(tt_train_fills_in("actor.kind") && tt_train_fills_in("space.obs") && !tt_train_fills_in("actor"));
    assert_false(tt_train_fills_in("algorithm.epsilon"));
}

/*  As run directories and snapshots of earlier versions have it. */
static void test_parse_numbers_for_spaces(void **state)
{
    (void)state;
    static const char discrete[] = "env: X\nspace: {obs: 4, actions: 2, action_dims: 1, env_state: 32}\n";
    static const char box[] = "env: X\nspace: {obs: 17, actions: 0, action_dims: 6, env_state: 0}\n";
    tt_train_cfg_t cfg;
    assert_ok(tt_train_parse(&cfg, discrete, strlen(discrete)));
    assert_string_equal(cfg.space.obs, "float32[4]");
    assert_string_equal(cfg.space.action, "discrete(2)");
    assert_true(!cfg.space.mask && cfg.space.env_state == 32);
    assert_ok(tt_train_parse(&cfg, box, strlen(box)));
    assert_string_equal(cfg.space.obs, "float32[17]");
    assert_string_equal(cfg.space.action, "float32[6]");
}

static void test_parse_args(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    static const char text[] =
        "env: {id: X, args: {g: 9.81, at: {x: 1}}}\nspace: {obs: float32, action: discrete(2)}\n";
    assert_ok(tt_train_parse(&cfg, text, strlen(text)));
    assert_string_equal(cfg.env, "X");
    assert_int_equal(cfg.env_args.count, 2);
    assert_string_equal(cfg.env_args.at[0].key, "at.x");
    assert_string_equal(cfg.env_args.at[1].value, "9.81");
}

static void test_parse_refuses(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = {.seed = 99};
    static const char typo[] = "env: X\nlearners: {replicas: 2}\n";
    assert_int_equal(tt_train_parse(&cfg, typo, strlen(typo)), TT_CONFIG);
    assert_string_equal(tt_err_text(), "job:2:12: unknown key 'learners.replicas'; did you mean 'learner.replicas'?");
    static const char unresolved[] = "env: X\n";
    assert_int_equal(tt_train_parse(&cfg, unresolved, strlen(unresolved)), TT_CONFIG);
    assert_string_equal(tt_err_text(), "job: space.obs and space.action are missing: this is not a resolved config");
    static const char no_space[] = "env: X\nspace: {obs: float33, action: discrete(2)}\n";
    assert_int_equal(tt_train_parse(&cfg, no_space, strlen(no_space)), TT_CONFIG);
    assert_string_equal(tt_err_text(), "job:2:9: space.obs: this is not a resolved config: space \"float33\": a space "
                                       "expected at \"float33\"");
    static const char half[] = "env: X\nspace: {obs: 4, actions: 2}\n";
    assert_int_equal(tt_train_parse(&cfg, half, strlen(half)), TT_CONFIG);
    assert_true(cfg.seed == 99); /* untouched */
}

/*  Every field has help, and its default lies in its range (claiming would abort or fail otherwise). */
static void test_table(void **state)
{
    (void)state;
    for (const tt_cfg_field_t *field = tt_train_fields; field->key; field++) {
        assert_non_null(field->help);
        assert_true(field->offset < sizeof(tt_train_cfg_t));
        assert_true((field->type == TT_CFG_STR || field->type == TT_CFG_WORDS) == (field->size > 0));
        assert_true((field->type == TT_CFG_ENUM) == (field->choices != NULL));
        for (const tt_cfg_field_t *other = tt_train_fields; other != field; other++)
            assert_string_not_equal(field->key, other->key);
    }
    assert_ok(s_check("env: X"));
}

/*  A setting whose help says what null means can be null, and is that again where the resolved config is read. */
static void test_null(void **state)
{
    (void)state;
    size_t count = 0;
    for (const tt_cfg_field_t *field = tt_train_fields; field->key; field++) {
        tt_config_t *config = NULL, *again = NULL;
        tt_train_cfg_t cfg;
        tt_buf_t text;
        char set[128];
        if (!strstr(field->help, "null = "))
            continue;
        count++;
        snprintf(set, sizeof set, "%s=null", field->key);
        tt_buf_init(&text, 1 << 20);
        assert_ok(tt_config_parse(&config, "env: X", 6, "f.yaml"));
        assert_ok(tt_config_set(config, set));
        assert_ok(tt_config_claim(config, tt_train_fields, &cfg));
        assert_ok(tt_config_dump(config, &text, false));
        assert_ok(tt_config_parse(&again, tt_buf_text(&text), text.size, "again"));
        assert_ok(tt_config_claim(again, tt_train_fields, &cfg));
        tt_buf_free(&text);
        tt_config_destroy(&again);
        tt_config_destroy(&config);
    }
    assert_int_equal(count, 5);
    assert_int_equal(s_check("env: X\ncheckpoint: {keep: null}"), TT_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_actor),
        cmocka_unit_test(test_parse_numbers_for_spaces),
        cmocka_unit_test(test_parse_args),
        cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
