#include "learner/algorithms/dqn_objective.h"

tt_objective_t dqn_objective(const tt_net_spec_t *net, bool twice)
{
    static const struct {
        const char *name;
        tt_loss_fn loss;
    } kinds[2][2] = {{{"dqn", dqn_loss}, {"dqn_double", dqn_double_loss}},
        {{"dqn_quantile", dqn_quantile_loss}, {"dqn_quantile_double", dqn_quantile_double_loss}}};
    const uint32_t quantiles = tt_net_tower(net, "quantiles");
    const bool many = quantiles<net->towers, known = tt_net_carry(net)> 0;
    const uint8_t q = (uint8_t)(many ? quantiles : tt_net_tower(net, "q"));
    return (tt_objective_t){
        .name = kinds[many][twice].name,
        .stages = twice ? 3 : 2,
        .stage = {[DQN_Q_AT] = {.tower = q, .frame = TT_AT, .grad = true},
            [DQN_TARGET_NEXT] = {.tower = q, .set = 1, .frame = TT_NEXT, .known = known},
            [DQN_Q_NEXT] = {.tower = q, .frame = TT_NEXT, .known = known}},
        .loss = kinds[many][twice].loss,
    };
}
