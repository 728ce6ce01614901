#include <math.h>
#include <string.h>
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

/*  What the kernel needs of the kind of optimiser: state, and Adam's corrections for this step. */
static void s_set_kind(tt_opt_step_t *job, const tt_opt_spec_t *opt, float *opt_state, uint64_t step)
{
    if (opt->kind == TT_OPT_ADAM) {
        job->s0 = opt_state;
        job->s1 = opt_state + job->count;
        job->lr = (float)((double)job->lr / (1.0 - s_power((double)opt->beta1, step)));
        job->root_scale = (float)(1.0 / sqrt(1.0 - s_power((double)opt->beta2, step)));
    } else if (opt->kind == TT_OPT_RMSPROP) {
        job->s0 = opt_state;
        job->s1 = opt->momentum != 0.0f ? opt_state + job->count : NULL;
    } else {
        job->s0 = opt->momentum != 0.0f ? opt_state : NULL;
    }
}

tt_status_t cpu_apply(tt_net_t *net, uint32_t group, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step,
    const float *grad, float lr, float *norm_out)
{
    const cpu_net_t *self = net->impl;
    size_t first = 0, count = 0;
    tt_net_group_span(&net->spec, group, &first, &count);
    const float norm = sqrtf(self->kernels->sum_squares(count, grad + first));
    if (!isfinite(norm))
        return tt_err(TT_INVALID, "optimiser step %llu: the gradient's norm is %g; the loss has diverged",
            (unsigned long long)*step + 1, (double)norm);
    tt_opt_step_t job = {
        .kind = opt->kind,
        .count = count,
        .p = net->params[0] + first,
        .g = grad + first,
        .clip = s_clip_factor(opt->max_norm, norm),
        .lr = lr,
        .beta1 = opt->beta1,
        .beta2 = opt->beta2,
        .alpha = opt->alpha,
        .momentum = opt->momentum,
        .eps = opt->eps,
    };
    s_set_kind(&job, opt, opt_state, *step + 1);
    self->kernels->opt_step(&job);
    ++*step;
    if (norm_out)
        *norm_out = norm;
    return cpu_net_refresh(net, 0, 1u << group);
}

/*  Whole copies are copied: fma(1, a - b, b) is not always a. */
tt_status_t cpu_blend(tt_net_t *net, uint32_t to, uint32_t from, uint32_t groups, float tau)
{
    const cpu_net_t *self = net->impl;
    for (uint32_t g = 0; g < tt_net_groups(&net->spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(&net->spec, g, &first, &count);
        if (!(groups >> g & 1))
            continue;
        if (tau < 1.0f)
            self->kernels->blend(count, tau, net->params[from] + first, net->params[to] + first);
        else
            memcpy(net->params[to] + first, net->params[from] + first, count * sizeof(float));
    }
    return cpu_net_refresh(net, to, groups);
}
