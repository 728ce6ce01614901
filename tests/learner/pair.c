/*  pair - PPO whose actor and critic are groups of their own, with different optimisers: each minibatch makes two steps, one that
 *  trains the critic alone and one that trains the actor alone. An algorithm of the tests, in tutti_pair and test_ppo_torch. */
#include "learner/algorithms/ppo.h"

enum { POLICY, BASELINE, PASSES };

static const tt_opt_spec_t s_opts[] = {
    [POLICY] = {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .eps = 1e-5f, .max_norm = 0.3f},
    [BASELINE] = {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.6f},
};

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out)
{
    (void)train, (void)cfg;
    out->actor = (tt_actor_t){.groups = "policy: actor, baseline: critic"};
}

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return ppo_check(config, train, cfg);
}

static const tt_opt_spec_t *s_opt(const tt_algo_t *self, uint32_t group)
{
    (void)self;
    return &s_opts[group];
}

static uint32_t s_steps(const tt_algo_t *self)
{
    return PASSES * ppo_steps(self);
}

static tt_status_t s_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    tt_at_t here = *at;
    here.step /= PASSES;
    TT_TRY(ppo_minibatch(self, &here, out));
    out->train = at->step % PASSES == 0 ? 1u << BASELINE : 1u << POLICY;
    out->lr[BASELINE] = 3 * out->lr[POLICY];
    return TT_OK;
}

static bool s_after(tt_algo_t *self, uint32_t step, const tt_result_t *result)
{
    const uint32_t trained = step % PASSES == 0 ? BASELINE : POLICY, other = BASELINE - trained;
    TT_CHECK(result->trained == 1u << trained && result->norm[other] == 0); /* of who stays as it is */
    return trained == POLICY && ppo_after(self, step / PASSES, result);
}

const tt_algorithm_t tt_algorithm_pair = {
    .name = "pair",
    .summary = "of a test",
    .fields = ppo_fields,
    .cfg_size = sizeof(ppo_cfg_t),
    .check = s_check,
    .shape = s_shape,
    .create = ppo_create,
    .destroy = ppo_destroy,
    .head_gain = common_head_gain,
    .log_std0 = ppo_log_std0,
    .gamma = common_gamma,
    .opt = s_opt,
    .steps = s_steps,
    .begin = ppo_begin,
    .minibatch = s_minibatch,
    .after = s_after,
    .metrics = ppo_metrics,
};
