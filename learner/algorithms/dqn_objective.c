#include "learner/algorithms/dqn_objective.h"

/*  By the tower that is trained. */
static const struct {
    const char *tower;
    struct {
        const char *name;
        tt_loss_fn loss;
    } kind[2]; /* double: the second */
} s_losses[] = {
    {"quantiles", {{"dqn_quantile", dqn_quantile_loss}, {"dqn_quantile_double", dqn_quantile_double_loss}}},
    {"atoms", {{"dqn_atoms", dqn_atoms_loss}, {"dqn_atoms_double", dqn_atoms_double_loss}}},
    {"q", {{"dqn", dqn_loss}, {"dqn_double", dqn_double_loss}}},
};

tt_objective_t dqn_objective(const tt_net_spec_t *net, bool twice)
{
    size_t i = 0;
    while (i + 1 < TT_COUNT(s_losses) && tt_net_tower(net, s_losses[i].tower) == net->towers)
        i++;
    const bool known = tt_net_carry(net) > 0;
    const uint8_t q = (uint8_t)tt_net_tower(net, s_losses[i].tower);
    return (tt_objective_t){
        .name = s_losses[i].kind[twice].name,
        .stages = twice ? 3 : 2,
        .stage = {[DQN_Q_AT] = {.tower = q, .frame = TT_AT, .grad = true},
            [DQN_TARGET_NEXT] = {.tower = q, .set = 1, .frame = TT_NEXT, .known = known},
            [DQN_Q_NEXT] = {.tower = q, .frame = TT_NEXT, .known = known}},
        .loss = s_losses[i].kind[twice].loss,
    };
}
