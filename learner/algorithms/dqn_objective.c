#include "learner/algorithms/dqn_objective.h"

tt_objective_t dqn_objective(const tt_net_spec_t *net, bool twice)
{
    const uint8_t q = (uint8_t)tt_net_tower(net, "q");
    return (tt_objective_t){
        .name = twice ? "dqn_double" : "dqn",
        .stages = twice ? 3 : 2,
        .stage = {[DQN_Q_AT] = {.tower = q, .frame = TT_AT, .grad = true},
            [DQN_TARGET_NEXT] = {.tower = q, .set = 1, .frame = TT_NEXT},
            [DQN_Q_NEXT] = {.tower = q, .frame = TT_NEXT}},
        .loss = twice ? dqn_double_loss : dqn_loss,
    };
}
