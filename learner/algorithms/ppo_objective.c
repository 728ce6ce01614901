#include "learner/algorithms/ppo_objective.h"
#include "common/base/mem.h"

ppo_policy_t *ppo_policy_new(const tt_policy_t *policy, size_t *bytes)
{
    uint32_t choices = 0;
    for (uint32_t i = 0; i < policy->parts; i++)
        choices += policy->part[i].box ? 0 : policy->part[i].elements;
    *bytes = sizeof(ppo_policy_t) + choices * sizeof(uint32_t);
    ppo_policy_t *self = tt_new0(*bytes);
    *self = (ppo_policy_t){.parts = policy->parts,
        .log_std = policy->log_std,
        .mask_bits = policy->mask_bits,
        .own_std_at = policy->own_std ? policy->out - policy->own_std : 0};
    for (uint32_t i = 0, at = 0; i < policy->parts; i++) {
        const tt_policy_part_t *part = &policy->part[i];
        self->part[i] = (ppo_part_t){.box = part->box,
            .bits = part->bits,
            .elements = part->elements,
            .choices = at,
            .head = part->head,
            .log_std = part->log_std,
            .mask = part->mask};
        for (uint32_t e = 0; !part->box && e < part->elements; e++)
            self->choices[at++] = part->n[e];
    }
    return self;
}

tt_objective_t ppo_objective(const tt_net_spec_t *net)
{
    return (tt_objective_t){
        .name = "ppo",
        .stages = 2,
        .stage = {[PPO_ACTOR] = {.tower = (uint8_t)tt_net_tower(net, "actor"), .frame = TT_AT, .grad = true},
            [PPO_CRITIC] = {.tower = (uint8_t)tt_net_tower(net, "critic"), .frame = TT_AT, .grad = true}},
        .loss = ppo_loss,
    };
}
