#include <math.h>
#include "common/nn/cpu/cpu.h"

/*  beta^n by squaring, in double: libm's pow may differ in the last bit from one processor to another. */
static double s_power(double beta, uint64_t n)
{
    double result = 1.0;
    for (; n; n >>= 1, beta *= beta)
        if (n & 1)
            result *= beta;
    return result;
}

/*  clip_grad_norm_: max_norm / (norm + 1e-6), at most 1. */
static float s_clip_factor(float max_norm, float norm)
{
    if (!(max_norm > 0.0f))
        return 1.0f;
    const float factor = max_norm / (norm + 1e-6f);
    return factor < 1.0f ? factor : 1.0f;
}

tt_status_t cpu_apply(tt_net_t *net, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step, const float *grad,
    float lr, float *norm_out)
{
    const cpu_net_t *self = net->impl;
    const size_t count = net->param_count;
    const float norm = sqrtf(self->kernels->sum_squares(count, grad));
    if (!isfinite(norm))
        return tt_err(TT_INVALID, "optimiser step %llu: the gradient's norm is %g; the loss has diverged",
            (unsigned long long)*step + 1, (double)norm);
    tt_opt_step_t job = {
        .kind = opt->kind,
        .count = count,
        .p = net->params,
        .g = grad,
        .clip = s_clip_factor(opt->max_norm, norm),
        .lr = lr,
        .beta1 = opt->beta1,
        .beta2 = opt->beta2,
        .alpha = opt->alpha,
        .momentum = opt->momentum,
        .eps = opt->eps,
    };
    if (opt->kind == TT_OPT_ADAM) {
        job.s0 = opt_state;
        job.s1 = opt_state + count;
        job.lr = (float)((double)lr / (1.0 - s_power((double)opt->beta1, *step + 1)));
        job.root_scale = (float)(1.0 / sqrt(1.0 - s_power((double)opt->beta2, *step + 1)));
    } else if (opt->kind == TT_OPT_RMSPROP) {
        job.s0 = opt_state;
        job.s1 = opt->momentum != 0.0f ? opt_state + count : NULL;
    } else {
        job.s0 = opt->momentum != 0.0f ? opt_state : NULL;
    }
    self->kernels->opt_step(&job);
    ++*step;
    if (norm_out)
        *norm_out = norm;
    return cpu_net_refresh(net);
}
