/*  td3_objective - the losses of twin delayed DDPG (td3_loss.h) as objectives of a network of an actor and two critics.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"
#include "learner/algorithms/td3_loss.h"

/*  Of tt_net_twin_critics, in two sets. With a td3_loss_t as parameters; groups 1 and 0 are trained. */
tt_objective_t td3_critic_objective(const tt_net_spec_t *net);
tt_objective_t td3_actor_objective(const tt_net_spec_t *net);
