/*  of_train - the network that a job's settings describe; one place, because collectors, learners and `eval` must agree.
 *
 *  Threads: pure. */
#pragma once
#include "common/config/train.h"
#include "common/nn/nn.h"

static inline tt_net_spec_t tt_net_spec_of_train(const tt_train_cfg_t *cfg)
{
    tt_net_spec_t spec = {.obs = cfg->space.obs,
        .hidden_count = cfg->network.hidden.count,
        .activation = cfg->network.activation == TT_ACT_RELU ? TT_NN_RELU : TT_NN_TANH,
        .continuous = cfg->space.actions == 0};
    spec.out = spec.continuous ? cfg->space.action_dims : cfg->space.actions;
    for (uint32_t i = 0; i < spec.hidden_count && i < TT_HIDDEN_MAX; i++)
        spec.hidden[i] = cfg->network.hidden.at[i];
    return spec;
}
