/*  a2c - advantage actor-critic, for every space of actions: one optimiser step on each batch.
 *
 *  Source:  Mnih et al. 2016, arXiv:1602.01783, section 4.3, without its asynchrony; defaults of Stable-Baselines3's A2C.
 *  As PPO:  one pass of one minibatch, where the probability ratio is 1 and PPO's gradient is A2C's (Huang et al. 2022,
 *           arXiv:2205.09123); so advantages, schedules and the optimiser are PPO's, and the loss is its plain one. At lag > 0
 *           values are those of the version that is trained. */
#include "learner/algorithms/ppo.h"

static const tt_cfg_field_t s_fields[] = {
    PPO_SHARED_FIELDS("7e-4", "1", "0", "1", "false", "rmsprop"),
    {0},
};

const tt_algorithm_t tt_algorithm_a2c = {
    .name = "a2c",
    .summary = "advantage actor-critic (on-policy; any actions)",
    .fields = s_fields,
    PPO_PLAIN_HOOKS,
};
