#include "learner/algorithms/sac_objective.h"
#include "learner/algorithms/twin.h"

tt_objective_t sac_critic_objective(const tt_net_spec_t *net)
{
    return twin_critic_objective(net, "sac_critic", 0, sac_critic_loss, sac_draw);
}

tt_objective_t sac_actor_objective(const tt_net_spec_t *net)
{
    const uint8_t q1 = (uint8_t)tt_net_tower(net, "q1"), q2 = (uint8_t)tt_net_tower(net, "q2");
    return (tt_objective_t){
        .name = "sac_actor",
        .stages = SAC_ACTOR_STAGES,
        .stage = {[SAC_ACTOR] = {.tower = (uint8_t)tt_net_tower(net, "actor"), .frame = TT_AT, .grad = true},
            [SAC_Q1] = {.tower = q1, .frame = TT_AT, .action = TT_ACTION_DRAWN, .through = true},
            [SAC_Q2] = {.tower = q2, .frame = TT_AT, .action = TT_ACTION_DRAWN, .through = true}},
        .loss = sac_actor_loss,
        .source = SAC_ACTOR,
        .draw = sac_draw,
        .d_draw = sac_draw_back,
    };
}
