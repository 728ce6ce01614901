#include "learner/algorithms/sac_objective.h"

tt_objective_t sac_critic_objective(const tt_net_spec_t *net)
{
    const uint8_t actor = (uint8_t)tt_net_tower(net, "actor"), q1 = (uint8_t)tt_net_tower(net, "q1"),
                  q2 = (uint8_t)tt_net_tower(net, "q2");
    return (tt_objective_t){
        .name = "sac_critic",
        .stages = SAC_CRITIC_STAGES,
        .stage = {[SAC_NEXT] = {.tower = actor, .frame = TT_NEXT},
            [SAC_Q1_NEXT] = {.tower = q1, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
            [SAC_Q2_NEXT] = {.tower = q2, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
            [SAC_Q1_AT] = {.tower = q1, .frame = TT_AT, .action = TT_ACTION_GIVEN, .grad = true},
            [SAC_Q2_AT] = {.tower = q2, .frame = TT_AT, .action = TT_ACTION_GIVEN, .grad = true}},
        .loss = sac_critic_loss,
        .given = SAC_IN_ACTION,
        .source = SAC_NEXT,
        .draw = sac_draw,
    };
}

tt_objective_t sac_actor_objective(const tt_net_spec_t *net)
{
    const uint8_t actor = (uint8_t)tt_net_tower(net, "actor"), q1 = (uint8_t)tt_net_tower(net, "q1"),
                  q2 = (uint8_t)tt_net_tower(net, "q2");
    return (tt_objective_t){
        .name = "sac_actor",
        .stages = SAC_ACTOR_STAGES,
        .stage = {[SAC_ACTOR] = {.tower = actor, .frame = TT_AT, .grad = true},
            [SAC_Q1] = {.tower = q1, .frame = TT_AT, .action = TT_ACTION_DRAWN, .through = true},
            [SAC_Q2] = {.tower = q2, .frame = TT_AT, .action = TT_ACTION_DRAWN, .through = true}},
        .loss = sac_actor_loss,
        .source = SAC_ACTOR,
        .draw = sac_draw,
        .d_draw = sac_draw_back,
    };
}
