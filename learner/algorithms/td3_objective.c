#include "learner/algorithms/td3_objective.h"
#include "learner/algorithms/twin.h"

tt_objective_t td3_critic_objective(const tt_net_spec_t *net)
{
    return twin_critic_objective(net, "td3_critic", 1, td3_critic_loss, td3_draw_next);
}

tt_objective_t td3_actor_objective(const tt_net_spec_t *net)
{
    return (tt_objective_t){
        .name = "td3_actor",
        .stages = TD3_ACTOR_STAGES,
        .stage = {[TD3_ACTOR] = {.tower = (uint8_t)tt_net_tower(net, "actor"), .frame = TT_AT, .grad = true},
            [TD3_Q] = {.tower = (uint8_t)tt_net_tower(net, "q1"),
                .frame = TT_AT,
                .action = TT_ACTION_DRAWN,
                .through = true}},
        .loss = td3_actor_loss,
        .source = TD3_ACTOR,
        .draw = td3_draw,
        .d_draw = td3_draw_back,
    };
}
