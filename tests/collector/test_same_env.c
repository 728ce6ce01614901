/*  The environment that a role finds must be the one that the job was made with: each way in which it may not be is said. */
#include <stdio.h>
#include <string.h>
#include "collector/registry.h"
#include "collector/same_env.h"
#include "collector/vec.h"
#include "tests/test.h"

static const tt_env_ops_t *s_cartpole(tt_train_cfg_t *cfg)
{
    const tt_env_ops_t *env = NULL;
    assert_ok(tt_env_find(&env, "CartPole-v1"));
    *cfg = (tt_train_cfg_t){.env = "CartPole-v1", .stack.frames = 1};
    strcpy(cfg->space.obs, "float32[4]");
    strcpy(cfg->space.action, "discrete(2)");
    cfg->space.env_state = (uint32_t)tt_vec_save_size(env, 1);
    return env;
}

static void s_assert_refused(const tt_env_ops_t *env, const tt_train_cfg_t *cfg, const char *words)
{
    assert_int_equal(same_env_check(env, cfg), TT_INVALID);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
    assert_non_null(strstr(tt_err_text(), "start every role with the same version of it"));
}

static void test_the_same(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    const tt_env_ops_t *env = s_cartpole(&cfg);
    assert_ok(same_env_check(env, &cfg));
}

static void test_another_observation(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    const tt_env_ops_t *env = s_cartpole(&cfg);
    strcpy(cfg.space.obs, "float32[5]");
    s_assert_refused(env, &cfg, "the observation of CartPole-v1 here is float32[4], the job's is float32[5]");
    strcpy(cfg.space.obs, "float64[4]");
    s_assert_refused(env, &cfg, "the job's is float64[4]");
}

static void test_another_action(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    const tt_env_ops_t *env = s_cartpole(&cfg);
    strcpy(cfg.space.action, "discrete(3)");
    s_assert_refused(env, &cfg, "the action of CartPole-v1 here is discrete(2), the job's is discrete(3)");
}

static void test_a_mask(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    const tt_env_ops_t *env = s_cartpole(&cfg);
    cfg.space.mask = true;
    s_assert_refused(env, &cfg, "here has no mask");
}

/*  Also where the job's is kept for a stack of another height. */
static void test_another_state(void **state)
{
    (void)state;
    tt_train_cfg_t cfg;
    const tt_env_ops_t *env = s_cartpole(&cfg);
    cfg.space.env_state++;
    s_assert_refused(env, &cfg, "bytes of state");
    cfg.space.env_state--;
    cfg.stack.frames = 2;
    s_assert_refused(env, &cfg, "bytes of state");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_another_observation),
        cmocka_unit_test(test_another_action),
        cmocka_unit_test(test_a_mask),
        cmocka_unit_test(test_another_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
