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

const tt_algorithm_t tt_algorithm_impala = {
    .name = "impala",
    .summary = "importance-weighted actor-learners (experience that is behind, by V-trace; any actions)",
    .fields = s_fields,
    PPO_PLAIN_HOOKS,
};
