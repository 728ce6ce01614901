#include "common/job/fit.h"
#include <stdio.h>
#include "common/base/limits.h"
#include "common/nn/spec.h"

tt_net_spec_t tt_train_net(const tt_train_cfg_t *cfg)
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

tt_segment_shape_t tt_train_segment(const tt_train_cfg_t *cfg)
{
    return (tt_segment_shape_t){.T = cfg->num_steps,
        .E = cfg->num_envs,
        .D = cfg->space.obs,
        .A = cfg->space.actions ? 0 : cfg->space.action_dims,
        .S = cfg->space.env_state};
}

/*  Somebody's words, as a fault of a key. */
static tt_status_t s_blame(const tt_config_t *config, const char *key, tt_status_t status)
{
    if (status == TT_OK)
        return TT_OK;
    tt_err_wrap(TT_CONFIG, "%s%s%s", config ? tt_config_origin(config, key) : "", config ? ": " : "", key);
    return TT_CONFIG;
}

static tt_status_t s_check_segment(const tt_train_cfg_t *cfg)
{
    const tt_segment_shape_t shape = tt_train_segment(cfg);
    size_t bytes;
    const tt_status_t status = tt_segment_size(&shape, &bytes);
    if (status == TT_OK && bytes <= TT_SEGMENT_MAX)
        return TT_OK;
    char size[32] = "more than 1024";
    if (status == TT_OK)
        snprintf(size, sizeof size, "%zu", (bytes + (1 << 20) - 1) >> 20);
    return tt_err(TT_INVALID, "a batch of %u envs x %u steps is %s MiB, at most %d are possible: lower it, or num_envs",
        cfg->num_envs, cfg->num_steps, size, TT_SEGMENT_MAX >> 20);
}

/*  What common/snapshot writes, and a joiner is sent: weights, two numbers a weight for the optimiser, a sum of gradients,
 *  lag + 2 versions with their normalisers, env states, statistics. Generous: no optimiser keeps more. */
static tt_status_t s_check_snapshot(const tt_train_cfg_t *cfg)
{
    enum { NOW = 1, OPTIMISER = 2, SUM = 1, HEADER = 1 << 20, STATISTICS = 64 /* bytes an env */ };
    const tt_net_spec_t net = tt_train_net(cfg);
    const uint64_t versions = cfg->lag + 2, params = tt_net_param_count(&net);
    const uint64_t bytes = 4 * params * (NOW + OPTIMISER + SUM + versions) +
                           versions * (3 * 8 * (uint64_t)net.obs + 64) +
                           (uint64_t)cfg->num_envs * (cfg->space.env_state + STATISTICS) + HEADER;
    if (bytes <= TT_FRAME_MAX)
        return TT_OK;
    return tt_err(TT_INVALID,
        "%llu parameters, lag %u and %u envs make a snapshot of %llu MiB, at most %d are possible: lower it, or lag",
        (unsigned long long)params, cfg->lag, cfg->num_envs, (unsigned long long)(bytes >> 20), TT_FRAME_MAX >> 20);
}

tt_status_t tt_train_fit(const tt_config_t *config, const tt_train_cfg_t *cfg)
{
    const tt_net_spec_t net = tt_train_net(cfg);
    TT_TRY(s_blame(config, "network.hidden", tt_spec_check(&net)));
    TT_TRY(s_blame(config, "num_steps", s_check_segment(cfg)));
    return s_blame(config, "network.hidden", s_check_snapshot(cfg));
}
