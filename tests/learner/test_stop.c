/*  Stop rules: which holds first, and what switches one off. */
#include "tests/test.h"
#include <math.h>
#include <string.h>
#include "learner/stop.h"

static tt_train_cfg_t s_cfg(void)
{
    tt_train_cfg_t cfg = {0};
    cfg.stop.return_mean = NAN;
    cfg.stop.wall_s = NAN;
    cfg.space.threshold = NAN;
    return cfg;
}

static void test_nothing_stops_without_rules(void **state)
{
    (void)state;
    const tt_train_cfg_t cfg = s_cfg();
    const stop_facts_t facts = {.env_steps = UINT64_MAX, .episodes = 1000000, .return_mean = 1e9, .wall_s = 1e9};
    assert_null(stop_reason(&cfg, &facts));
    assert_false(stop_solved(&cfg, &facts));
}

static void test_return_mean_needs_a_hundred_episodes(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg();
    cfg.stop.return_mean = cfg.space.threshold = 475;
    stop_facts_t facts = {.episodes = 99, .return_mean = 500, .wall_s = NAN};
    assert_null(stop_reason(&cfg, &facts));
    assert_false(stop_solved(&cfg, &facts));
    facts.episodes = 100;
    assert_string_equal(stop_reason(&cfg, &facts), "return_mean");
    assert_true(stop_solved(&cfg, &facts));
    facts.return_mean = 475;
    assert_string_equal(stop_reason(&cfg, &facts), "return_mean");
    facts.return_mean = 474.99;
    assert_null(stop_reason(&cfg, &facts));
    facts.return_mean = NAN;
    assert_null(stop_reason(&cfg, &facts));
}

static void test_env_steps_and_wall_s(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg();
    cfg.stop.env_steps = 1000;
    cfg.stop.wall_s = 60;
    stop_facts_t facts = {.env_steps = 999, .return_mean = NAN, .wall_s = 59.9};
    assert_null(stop_reason(&cfg, &facts));
    facts.wall_s = 60;
    assert_string_equal(stop_reason(&cfg, &facts), "wall_s");
    facts.env_steps = 1000;
    assert_string_equal(stop_reason(&cfg, &facts), "env_steps");
    facts.wall_s = NAN; /* a learner that must not look at the clock */
    facts.env_steps = 0;
    assert_null(stop_reason(&cfg, &facts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_stops_without_rules),
        cmocka_unit_test(test_return_mean_needs_a_hundred_episodes),
        cmocka_unit_test(test_env_steps_and_wall_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
