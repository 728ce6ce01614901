/*  Words for the groups of a network, and what becomes of the network by them. */
#include "common/job/groups.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/job/fit.h"
#include "tests/test.h"

static tt_train_cfg_t s_cfg(const char *groups)
{
    tt_train_cfg_t cfg = {.env = "X",
        .num_envs = 2,
        .num_steps = 8,
        .learner.device = "cpu",
        .collector.device = "cpu",
        .network.hidden = {.count = 1, .at = {8}}};
    snprintf(cfg.space.obs, sizeof cfg.space.obs, "float32[4]");
    snprintf(cfg.space.action, sizeof cfg.space.action, "discrete(2)");
    snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "none");
    snprintf(cfg.actor.groups, sizeof cfg.actor.groups, "%s", groups);
    cfg.learner.shards = 1;
    return cfg;
}

static tt_net_spec_t s_net(const tt_train_cfg_t *cfg)
{
    TT_AUTO(tt_columns) columns = NULL;
    assert_ok(tt_train_columns(&columns, cfg));
    return tt_train_net(cfg, columns);
}

static void test_words(void **state)
{
    (void)state;
    tt_groups_t groups;
    assert_ok(tt_groups_parse(&groups, ""));
    assert_int_equal(groups.count, 0);
    assert_ok(tt_groups_parse(&groups, " policy:actor ,q_2 : critic"));
    assert_int_equal(groups.count, 2);
    assert_string_equal(groups.at[0].name, "policy");
    assert_string_equal(groups.at[1].name, "q_2");
    assert_string_equal(groups.at[1].tower, "critic");
}

static void test_other_words(void **state)
{
    (void)state;
    static const char *const wrong[] = {"policy", "policy:", ": actor", "a: b c", "a: b,", "a: b, ,", "a: b; c: d",
        "../x: actor", "a: b, a: c", "a123456789012345678901234: b", "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        tt_groups_t groups = {.count = 77};
        if (tt_groups_parse(&groups, wrong[i]) != TT_INVALID || groups.count != 77)
            fail_msg("'%s' was taken", wrong[i]);
    }
}

static void test_a_network_of_groups(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("policy: actor, baseline: critic");
    assert_ok(tt_train_fit(NULL, &cfg));
    const tt_net_spec_t net = s_net(&cfg);
    size_t first, count;
    assert_int_equal(tt_net_groups(&net), 2);
    tt_net_group_span(&net, 1, &first, &count);
    assert_int_equal(first % TT_GROUP_ALIGN, 0);
    assert_int_equal(count, 4 * 8 + 8 + 8 + 1);
    const tt_train_cfg_t one = s_cfg("all: actor"), none = s_cfg("");
    const tt_net_spec_t a = s_net(&one), b = s_net(&none);
    assert_true(tt_net_groups(&a) == 1 && tt_net_groups(&b) == 1);
}

/*  A trunk goes with the first that reads it, an encoder of a tower's own with its tower. */
static void test_what_stands_before(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("policy: actor, baseline: critic");
    cfg.network.shared = true;
    tt_net_spec_t net = s_net(&cfg);
    assert_string_equal(net.tower[0].name, "trunk");
    assert_true(net.tower[0].group == 0 && net.tower[1].group == 0 && net.tower[2].group == 1);
    cfg.network.shared = false;
    snprintf(cfg.space.obs, sizeof cfg.space.obs, "uint8[36, 36]");
    cfg.space.divisor = 255;
    snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "nature");
    assert_ok(tt_train_fit(NULL, &cfg));
    net = s_net(&cfg);
    const uint32_t own = tt_net_tower(&net, "critic_encoder");
    assert_true(
        own < net.towers && net.tower[own].group == 1 && net.tower[tt_net_tower(&net, "actor_encoder")].group == 0);
}

static void test_groups_of_another_network(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"policy: actor, baseline: critics", "critics, which the network has not"},
        {"baseline: critic, policy: actor", "actor, which is not behind critic"}, {"policy", "NAME: TOWER"}};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        const tt_train_cfg_t cfg = s_cfg(wrong[i][0]);
        assert_int_equal(tt_train_fit(NULL, &cfg), TT_CONFIG);
        if (!strstr(tt_err_text(), wrong[i][1]) || !strstr(tt_err_text(), "actor.groups"))
            fail_msg("'%s' lacks '%s'", tt_err_text(), wrong[i][1]);
        const tt_net_spec_t net = s_net(&cfg);
        assert_int_equal(tt_net_param_count(&net), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_other_words),
        cmocka_unit_test(test_a_network_of_groups),
        cmocka_unit_test(test_what_stands_before),
        cmocka_unit_test(test_groups_of_another_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
