/*  What an algorithm says of how collectors act: it becomes keys, a hand cannot set them, and roles read the same back. The
 *  algorithm is one of this test's own, which the list of them ends with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/setup.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/model.h"
#include "tests/test.h"

/* ---- the algorithm --------------------------------------------------------------------------------------------------- */

typedef struct {
    double epsilon_start, epsilon_end;
    uint64_t epsilon_steps, random_steps, start;
    bool dueling;
    uint32_t quantiles, atoms;
} best_cfg_t;

#define AT(member) offsetof(best_cfg_t, member)

static const tt_cfg_field_t s_fields[] = {
    {"algorithm.epsilon_start", TT_CFG_F64, AT(epsilon_start), "1", 0, 1, .help = "at first", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_end", TT_CFG_F64, AT(epsilon_end), "0.1", 0, 1, .help = "later on", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_steps", TT_CFG_U64, AT(epsilon_steps), "0", 0, 1e18, .help = "0 = a tenth of stop.env_steps"},
    {"algorithm.random_steps", TT_CFG_U64, AT(random_steps), "0", 0, 1e18, .help = "all random before"},
    {"algorithm.dueling", TT_CFG_BOOL, AT(dueling), "false", .help = "a value and advantages"},
    {"algorithm.quantiles", TT_CFG_U32, AT(quantiles), "0", 0, TT_QUANTILES_MAX, .help = "of a return"},
    {"algorithm.atoms", TT_CFG_U32, AT(atoms), "0", 0, TT_ATOMS_MAX, .help = "of a return"},
    {"replay.epsilon", TT_CFG_U64, AT(start), "0", 0, 1e18, .help = "of another section"},
    {0},
};

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out)
{
    const best_cfg_t *best = cfg;
    out->actor = (tt_actor_t){.kind = TT_ACT_ARGMAX,
        .epsilon = best->epsilon_start,
        .epsilon_end = best->epsilon_end,
        .epsilon_rows = best->epsilon_steps ? best->epsilon_steps : train->stop.env_steps / 10,
        .random_rows = best->random_steps,
        .quantiles = best->quantiles,
        .atoms = best->atoms,
        .v_min = best->atoms ? -0.1f : 0,
        .v_max = best->atoms ? 1e5f : 0,
        .dueling = best->dueling};
}

const tt_algorithm_t tt_algorithm_best = {
    .name = "best", .summary = "of a test", .fields = s_fields, .cfg_size = sizeof(best_cfg_t), .shape = s_shape};

/* ---- configs --------------------------------------------------------------------------------------------------------- */

/*  The file's directory goes from the words. */
static char s_path[64] = "/tmp/tt-actor-XXXXXX";

static void s_write(const char *yaml)
{
    FILE *file = fopen(s_path, "w");
    assert_non_null(file);
    fputs(yaml, file);
    assert_int_equal(fclose(file), 0);
}

static tt_setup_t *s_setup(const char *yaml, const char *set)
{
    tt_setup_t *setup = NULL;
    s_write(yaml);
    assert_ok(tt_setup_new(&setup, s_path, &set, set != NULL));
    return setup;
}

static void s_refused(const char *yaml, const char *set, const char *words)
{
    tt_setup_t *setup = NULL;
    s_write(yaml);
    assert_int_equal(tt_setup_new(&setup, s_path, &set, set != NULL), TT_CONFIG);
    const char *text = tt_err_text();
    text += strncmp(text, s_path, strlen(s_path)) == 0 ? strlen(s_path) : 0;
    assert_string_equal(text, words);
}

static const char s_best[] = "env: CartPole-v1\nalgorithm: {name: best, epsilon_end: 0.25}\nstop: {env_steps: 5k}\n";

/* ---- tests ------------------------------------------------------------------------------------------------------------- */

static void test_the_algorithm_fills_it_in(void **state)
{
    (void)state;
    tt_setup_t *setup = s_setup(s_best, NULL);
    const tt_actor_t *actor = &tt_setup_train(setup)->actor;
    assert_true(actor->kind == TT_ACT_ARGMAX && actor->epsilon == 1 && actor->epsilon_end == 0.25);
    assert_true(actor->epsilon_rows == 500 && actor->random_rows == 0);
    assert_string_equal(tt_config_origin(tt_setup_config(setup), "actor.epsilon_end"), "algorithm best");
    tt_train_cfg_t cfg;
    assert_ok(tt_train_parse(&cfg, tt_setup_yaml(setup), strlen(tt_setup_yaml(setup))));
    assert_true(cfg.actor.kind == TT_ACT_ARGMAX && cfg.actor.epsilon_end == 0.25 && cfg.actor.epsilon_rows == 500);
    TT_AUTO(tt_columns) columns = NULL;
    assert_ok(tt_train_columns(&columns, &cfg));
    assert_int_equal(columns->log_prob, -1);
    tt_setup_destroy(&setup);
}

/*  The network's towers follow from it, in every role. */
static void test_dueling(void **state)
{
    (void)state;
    for (int dueling = 0; dueling < 2; dueling++) {
        tt_setup_t *setup = s_setup(s_best, dueling ? "algorithm.dueling=true" : NULL);
        tt_train_cfg_t cfg;
        TT_AUTO(tt_columns) columns = NULL;
        assert_ok(tt_train_parse(&cfg, tt_setup_yaml(setup), strlen(tt_setup_yaml(setup))));
        assert_int_equal(cfg.actor.dueling, dueling);
        assert_ok(tt_train_columns(&columns, &cfg));
        const tt_net_spec_t net = tt_train_net(&cfg, columns);
        const uint32_t q = tt_net_tower(&net, "q");
        assert_int_equal(net.towers, dueling ? 4 : 1);
        assert_true(net.tower[q].out == 2 && net.tower[q].kind == (dueling ? TT_TOWER_DUELING : TT_TOWER_MLP));
        tt_setup_destroy(&setup);
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    tt_setup_t *setup = s_setup(s_best, "algorithm.quantiles=9");
    tt_train_cfg_t cfg;
    TT_AUTO(tt_columns) columns = NULL;
    assert_ok(tt_train_parse(&cfg, tt_setup_yaml(setup), strlen(tt_setup_yaml(setup))));
    assert_int_equal(cfg.actor.quantiles, 9);
    assert_ok(tt_train_columns(&columns, &cfg));
    const tt_net_spec_t net = tt_train_net(&cfg, columns);
    const tt_tower_t *quantiles = &net.tower[tt_net_tower(&net, "quantiles")], *q = &net.tower[tt_net_tower(&net, "q")];
    assert_true(net.towers == 2 && quantiles->out == 2 * 9 && q->out == 2 && q->kind == TT_TOWER_MEAN);
    tt_setup_destroy(&setup);
}

/*  Their bounds come back to the bit. */
static void test_atoms(void **state)
{
    (void)state;
    tt_setup_t *setup = s_setup(s_best, "algorithm.atoms=51");
    tt_train_cfg_t cfg;
    TT_AUTO(tt_columns) columns = NULL;
    assert_ok(tt_train_parse(&cfg, tt_setup_yaml(setup), strlen(tt_setup_yaml(setup))));
    assert_true(cfg.actor.atoms == 51 && cfg.actor.v_min == -0.1f && cfg.actor.v_max == 1e5f);
    assert_ok(tt_train_columns(&columns, &cfg));
    const tt_net_spec_t net = tt_train_net(&cfg, columns);
    const tt_tower_t *q = &net.tower[tt_net_tower(&net, "q")];
    assert_true(net.towers == 2 && net.tower[tt_net_tower(&net, "atoms")].out == 2 * 51 && q->kind == TT_TOWER_ATOMS);
    assert_true(q->out == 2 && q->low == -0.1f && q->high == 1e5f);
    tt_setup_destroy(&setup);
}

static void test_an_actor_critic_samples(void **state)
{
    (void)state;
    static const char *const names[] = {"ppo", "a2c"};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        char set[32];
        snprintf(set, sizeof set, "algorithm.name=%s", names[i]);
        tt_setup_t *setup = s_setup("env: CartPole-v1\n", set);
        assert_true(tt_setup_train(setup)->actor.kind == TT_ACT_SAMPLE && tt_setup_train(setup)->actor.epsilon == 0);
        assert_non_null(strstr(tt_setup_yaml(setup), "actor:\n  kind: sample\n"));
        tt_setup_destroy(&setup);
    }
}

static void test_not_by_hand(void **state)
{
    (void)state;
    char yaml[256];
    snprintf(yaml, sizeof yaml, "%sactor: {epsilon_rows: 7}\n", s_best);
    s_refused(yaml, NULL,
        ":4:9: actor.epsilon_rows is filled in from the algorithm; set algorithm.epsilon_start, algorithm.epsilon_end, "
        "algorithm.epsilon_steps");
    s_refused(s_best, "actor.random_rows=7",
        "--set: actor.random_rows is filled in from the algorithm; set algorithm.random_steps");
    s_refused(
        s_best, "actor.dueling=true", "--set: actor.dueling is filled in from the algorithm; set algorithm.dueling");
    s_refused(s_best, "actor.kind=sample",
        "--set: actor.kind is filled in from the algorithm: algorithm.name decides, and best has no option for it");
    s_refused("env: CartPole-v1\n", "actor.epsilon=0.5",
        "--set: actor.epsilon is filled in from the algorithm: algorithm.name decides, and ppo has no option for it");
}

/*  A run's own config is read again, with other settings too: then it is what those come to. */
static void test_a_resolved_config_is_filled_in_anew(void **state)
{
    (void)state;
    tt_setup_t *setup = s_setup(s_best, NULL);
    char *yaml = tt_strdup(tt_setup_yaml(setup));
    tt_setup_destroy(&setup);
    setup = s_setup(yaml, NULL);
    assert_string_equal(tt_setup_yaml(setup), yaml);
    tt_setup_destroy(&setup);
    setup = s_setup(yaml, "stop.env_steps=80k");
    assert_true(tt_setup_train(setup)->actor.epsilon_rows == 8000);
    tt_setup_destroy(&setup);
    s_refused(yaml, "actor.epsilon_end=0",
        "--set: actor.epsilon_end is filled in from the algorithm; set algorithm.epsilon_start, algorithm.epsilon_end, "
        "algorithm.epsilon_steps");
    free(yaml);
}

static void test_actions_without_a_head(void **state)
{
    (void)state;
    s_refused("algorithm: {name: best}\nenv: Pendulum-v1\n", NULL,
        ":1:13: algorithm.name: best has no head for the actions of Pendulum-v1, float32[1]: it takes discrete(n)");
}

/*  A job that says otherwise than the algorithm would have rows that the algorithm cannot read. */
static void test_a_learner_refuses_another_actor(void **state)
{
    (void)state;
    static const char job[] = "env: CartPole-v1\nspace: {obs: 'float32[4]', action: discrete(2), env_state: 8}\n";
    static const char *const others[][3] = {{"ppo", "argmax", "kind"}, {"a2c", "argmax", "kind"},
        {"best", "sample", "kind"}, {"best", "argmax, dueling: true", "dueling"},
        {"best", "argmax, noisy: 0.5", "noisy"}, {"best", "argmax, quantiles: 9", "quantiles"},
        {"best", "argmax, atoms: 9", "atoms"}, {"best", "argmax, v_min: 9", "v_min"},
        {"best", "argmax, v_max: 9", "v_max"}};
    for (size_t i = 0; i < TT_COUNT(others); i++) {
        char *text = tt_sprintf("%salgorithm: {name: %s}\nactor: {kind: %s}\n", job, others[i][0], others[i][1]);
        char words[128];
        assert_int_equal(model_check(text), TT_CONFIG);
        snprintf(words, sizeof words, "job: actor.%s is not what %s says: this is not a resolved config", others[i][2],
            others[i][0]);
        assert_string_equal(tt_err_text(), words);
        free(text);
    }
}

static int s_make_file(void **state)
{
    (void)state;
    const int fd = mkstemp(s_path);
    return fd < 0 ? -1 : close(fd);
}

static int s_remove_file(void **state)
{
    (void)state;
    return unlink(s_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_algorithm_fills_it_in),
        cmocka_unit_test(test_dueling),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_atoms),
        cmocka_unit_test(test_an_actor_critic_samples),
        cmocka_unit_test(test_not_by_hand),
        cmocka_unit_test(test_a_resolved_config_is_filled_in_anew),
        cmocka_unit_test(test_actions_without_a_head),
        cmocka_unit_test(test_a_learner_refuses_another_actor),
    };
    return cmocka_run_group_tests(tests, s_make_file, s_remove_file);
}
