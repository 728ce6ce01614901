/*  sac_objective - the losses of soft actor-critic (sac_loss.h) as objectives of a network of an actor and two critics.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"
#include "learner/algorithms/sac_loss.h"

/*  Of tt_net_soft_actor_critic, in two sets. With a sac_loss_t as parameters; groups 1 and 0 are trained. */
tt_objective_t sac_critic_objective(const tt_net_spec_t *net);
tt_objective_t sac_actor_objective(const tt_net_spec_t *net);
