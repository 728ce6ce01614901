/*  impala - importance-weighted actor-learners, for every space of actions: one optimiser step on each batch, whoever acted it.
 *
 *  Source:  Espeholt et al. 2018, arXiv:1802.01561. Defaults are its appendix G's, where they carry over: its losses are sums over
 *           a batch, ours are means, so epsilon is Stable-Baselines3's and the norm is clipped as A2C's.
 *  As A2C:  the same step, with advantages and targets by V-trace. */
#include "learner/algorithms/ppo.h"

static const tt_cfg_field_t s_fields[] = {
    PPO_SHARED_FIELDS("6e-4", "1", "0.01", "0.5", "false", "rmsprop"),
    PPO_VTRACE_FIELDS,
    {0},
};

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    const ppo_cfg_t ppo = ppo_plain(cfg, true);
    return ppo_check(config, train, &ppo);
}

static tt_status_t s_create(
    tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg)
{
    const ppo_cfg_t ppo = ppo_plain(cfg, true);
    return ppo_create(self_p, train, columns, &ppo);
}

const tt_algorithm_t tt_algorithm_impala = {
    .name = "impala",
    .summary = "importance-weighted actor-learners (experience that is behind, by V-trace; any actions)",
    .fields = s_fields,
    .cfg_size = sizeof(ppo_cfg_t),
    .check = s_check,
    .shape = ppo_shape,
    .create = s_create,
    PPO_HOOKS,
};
