/*  ppo_objective - PPO's loss (ppo_loss.h) as an objective of a network with an actor and a critic, and what it reads of a policy.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"
#include "common/rl/policy.h"
#include "learner/algorithms/ppo_loss.h"

/*  Caller frees; *bytes gets its size. */
ppo_policy_t *ppo_policy_new(const tt_policy_t *policy, size_t *bytes);
/*  With a ppo_loss_t as parameters of the loss. */
tt_objective_t ppo_objective(const tt_net_spec_t *net);
