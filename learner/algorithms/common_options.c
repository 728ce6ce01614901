#include "learner/algorithms/common_options.h"

tt_status_t common_bad(const tt_config_t *config, const char *key, tt_status_t status)
{
    return tt_err_wrap(status, "%s: %s", tt_config_origin(config, key), key);
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
