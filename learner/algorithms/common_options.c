#include "learner/algorithms/common_options.h"
#include <inttypes.h>
#include "common/base/mem.h"

tt_status_t common_bad(const tt_config_t *config, const char *key, tt_status_t status)
{
    return tt_err_wrap(status, "%s: %s", tt_config_origin(config, key), key);
}

tt_status_t common_check_sequences(const tt_config_t *config, const tt_train_cfg_t *train, common_sequences_t of)
{
    const uint32_t shards = train->learner.shards, threads = train->learner.threads ? train->learner.threads : 1;
    const uint32_t most = (of.sequences + shards - 1) / shards, side = most < TT_SEQUENCES ? most : TT_SEQUENCES;
    const uint64_t units = tt_align(train->network.rnn_size, 16), rows = (uint64_t)side * of.steps;
    const uint64_t bytes = sizeof(float) * TT_SEQUENCE_FLOATS * units * rows * of.towers * threads; /* below 2^60 */
    if (bytes >> 20 <= TT_SEQUENCES_MAX_MIB)
        return TT_OK;
    return tt_err(TT_CONFIG,
        "%s: network.rnn_size %" PRIu32 ": %" PRIu32 " sequences of %" PRIu32 " steps at a time, in each of %" PRIu32
        " threads, are %" PRIu64
        " MiB that a learner keeps while it trains on them, at most %d are possible: lower it, %s or learner.threads, "
        "or raise learner.shards",
        tt_config_origin(config, "network.rnn_size"), train->network.rnn_size, side, of.steps, threads, bytes >> 20,
        TT_SEQUENCES_MAX_MIB, of.steps_key);
}

tt_opt_spec_t common_opt_spec(const common_cfg_t *cfg)
{
    return (tt_opt_spec_t){.kind = (tt_opt_kind_t)cfg->optimizer,
        .beta1 = cfg->adam_beta1,
        .beta2 = cfg->adam_beta2,
        .alpha = cfg->rmsprop_alpha,
        .momentum = cfg->momentum,
        .eps = cfg->adam_eps,
        .max_norm = cfg->max_grad_norm};
}

float common_head_gain(const void *cfg)
{
    return ((const common_cfg_t *)cfg)->head_gain;
}

double common_gamma(const void *cfg)
{
    return ((const common_cfg_t *)cfg)->gamma;
}
