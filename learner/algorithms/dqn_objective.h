/*  dqn_objective - the losses of Q-learning (dqn_loss.h) as objectives of a network with values of choices.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"
#include "learner/algorithms/dqn_loss.h"

/*  Of the tower "q"; twice: double. With a dqn_loss_t as parameters of the loss. Of a network that recurs, what is not trained is known. */
tt_objective_t dqn_objective(const tt_net_spec_t *net, bool twice);
