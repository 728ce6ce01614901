#include "learner/algorithms/sac_objective.h"

typedef struct {
    uint8_t actor, q1, q2;
} towers_t;

static towers_t s_towers(const tt_net_spec_t *net)
{
    return (towers_t){
        (uint8_t)tt_net_tower(net, "actor"), (uint8_t)tt_net_tower(net, "q1"), (uint8_t)tt_net_tower(net, "q2")};
}

tt_objective_t sac_critic_objective(const tt_net_spec_t *net)
{
    const towers_t t = s_towers(net);
    return (tt_objective_t){
        .name = "sac_critic",
        .stages = SAC_CRITIC_STAGES,
        .stage = {[SAC_NEXT] = {.tower = t.actor, .frame = TT_NEXT},
            [SAC_Q1_NEXT] = {.tower = t.q1, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
            [SAC_Q2_NEXT] = {.tower = t.q2, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
            [SAC_Q1_AT] = {.tower = t.q1, .frame = TT_AT, .action = TT_ACTION_GIVEN, .grad = true},
            [SAC_Q2_AT] = {.tower = t.q2, .frame = TT_AT, .action = TT_ACTION_GIVEN, .grad = true}},
        .loss = sac_critic_loss,
        .given = SAC_IN_ACTION,
        .source = SAC_NEXT,
        .draw = sac_draw,
    };
}

tt_objective_t sac_actor_objective(const tt_net_spec_t *net)
{
    const towers_t t = s_towers(net);
    return (tt_objective_t){
        .name = "sac_actor",
        .stages = SAC_ACTOR_STAGES,
        .stage = {[SAC_ACTOR] = {.tower = t.actor, .frame = TT_AT, .grad = true},
            [SAC_Q1] = {.tower = t.q1, .frame = TT_AT, .action = TT_ACTION_DRAWN, .through = true},
            [SAC_Q2] = {.tower = t.q2, .frame = TT_AT, .action = TT_ACTION_DRAWN, .through = true}},
        .loss = sac_actor_loss,
        .source = SAC_ACTOR,
        .draw = sac_draw,
        .d_draw = sac_draw_back,
    };
}
