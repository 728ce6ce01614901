/*  The job of a native config. */
#include "common/job/train_job.h"
#include "tests/test.h"
#include <stdio.h>
#include <string.h>

static tt_train_cfg_t s_cfg(uint32_t collectors, uint32_t learners, uint32_t shards, uint32_t aggregators)
{
    tt_train_cfg_t cfg = {.name = "cartpole", .num_envs = 16};
    cfg.collector.replicas = collectors;
    cfg.learner.replicas = learners;
    cfg.learner.shards = shards;
    cfg.aggregator.replicas = aggregators;
    return cfg;
}

static void test_aggregators(void **state)
{
    (void)state;
    static const struct {
        uint32_t shards, asked, learners, expected;
    } cases[] = {{2, 0, 1, 0}, {2, 0, 2, 1}, {8, 0, 8, 1}, {1, 0, 1, 0}, {1, 0, 2, 0}, {2, 1, 1, 1}, {8, 3, 2, 3}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        const tt_train_cfg_t cfg = s_cfg(1, 1, cases[i].shards, cases[i].asked);
        assert_int_equal(tt_train_aggregators(&cfg, cases[i].learners), cases[i].expected);
    }
}

static const tt_role_t *s_role(const tt_job_t *job, const char *name)
{
    for (size_t i = 0; i < job->role_count; i++)
        if (strcmp(job->roles[i].name, name) == 0)
            return &job->roles[i];
    fail_msg("no role %s", name);
    return NULL;
}

static void test_roles(void **state)
{
    (void)state;
    const tt_train_cfg_t cfg = s_cfg(3, 2, 4, 0);
    tt_job_t *job = tt_train_job(&cfg);
    assert_ok(tt_job_check(job));
    assert_string_equal(job->name, "cartpole");
    assert_int_equal(job->role_count, 4);
    const tt_role_t *coordinator = s_role(job, "coordinator"), *aggregator = s_role(job, "aggregator");
    const tt_role_t *learner = s_role(job, "learner"), *collector = s_role(job, "collector");
    assert_true(coordinator->replicas == 1 && coordinator->max_replicas == 1 && coordinator->decides_job);
    assert_int_equal(coordinator->restart, TT_RESTART_ON_FAILURE);
    assert_null(coordinator->depends_on);
    assert_true(aggregator->replicas == 1 && aggregator->min_replicas == 0 && !aggregator->decides_job);
    assert_true(learner->replicas == 2 && learner->min_replicas == 1 && learner->max_replicas == 4);
    assert_true(collector->replicas == 3 && collector->min_replicas == 1 && collector->max_replicas == 16);
    assert_string_equal(collector->depends_on[0], "coordinator");
    assert_string_equal(learner->template_.args[0], "learner");
    assert_null(learner->template_.command);
    tt_job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aggregators),
        cmocka_unit_test(test_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
