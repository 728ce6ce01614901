#include <math.h>
#include <string.h>
#include "common/nn/adam.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/math/opt.h"

/*  What the kernel needs of the kind of optimiser: state, and Adam's corrections for this step. */
static void s_set_kind(tt_opt_step_t *job, const tt_opt_spec_t *opt, float *opt_state, uint64_t step)
{
    if (opt->kind == TT_OPT_ADAM) {
        job->s0 = opt_state;
        job->s1 = opt_state + job->count;
        job->root_scale = tt_adam_correct(opt, step, &job->lr);
    } else if (opt->kind == TT_OPT_RMSPROP) {
        job->s0 = opt_state;
        job->s1 = opt->momentum != 0.0f ? opt_state + job->count : NULL;
    } else {
        job->s0 = opt->momentum != 0.0f ? opt_state : NULL;
    }
}

static tt_opt_step_t s_job(const tt_opt_t *opt, const float *root, float norm, uint64_t number, float lr)
{
    const tt_opt_spec_t *spec = &opt->spec;
    size_t first = 0, count = 0;
    tt_net_group_span(&opt->net->spec, opt->group, &first, &count);
    tt_opt_step_t job = {
        .kind = spec->kind,
        .count = count,
        .p = opt->net->params[0] + first,
        .g = root + first,
        .clip = tt_clip_factor(spec->max_norm, norm),
        .lr = lr,
        .beta1 = spec->beta1,
        .beta2 = spec->beta2,
        .alpha = spec->alpha,
        .momentum = spec->momentum,
        .eps = spec->eps,
    };
    s_set_kind(&job, spec, opt->state, number);
    return job;
}

tt_status_t cpu_step(const tt_work_t *work)
{
    const tt_opt_t *opt = work->step.opt;
    const tt_net_t *net = opt->net;
    const tt_kernels_t *kernels = ((const cpu_net_t *)net->impl)->kernels;
    const float *root = work->step.sums->root;
    size_t first = 0, count = 0;
    tt_net_group_span(&net->spec, opt->group, &first, &count);
    cpu_sums_fill(work->step.sums, 1u << opt->group, work->step.sums->leaf[0]);
    const float norm = sqrtf(kernels->sum_squares(count, root + first));
    net->norms->newest[opt->group] = norm;
    if (!isfinite(norm)) {
        if (!net->norms->bad_step) {
            net->norms->bad = norm;
            net->norms->bad_step = work->step.number;
        }
        return TT_OK;
    }
    const tt_opt_step_t job = s_job(opt, root, norm, work->step.number, work->step.lr);
    kernels->opt_step(&job);
    cpu_net_refresh(net, 0, 1u << opt->group);
    return TT_OK;
}

tt_status_t cpu_report(const tt_work_t *work)
{
    const tt_net_t *net = work->report.net;
    if (work->report.stats)
        memcpy(work->report.stats, work->report.sums->root + tt_net_stats_offset(&net->spec),
            (TT_LOSS_STATS + net->spec.ride) * sizeof(float));
    if (work->report.norms) {
        *work->report.norms = *net->norms;
        net->norms->bad_step = 0;
    }
    return TT_OK;
}

tt_status_t cpu_state_put(const tt_work_t *work)
{
    const tt_opt_t *opt = work->state_put.opt;
    if (opt->state_count)
        memcpy(opt->state, work->state_put.state, opt->state_count * sizeof(float));
    return TT_OK;
}

tt_status_t cpu_state_get(const tt_work_t *work)
{
    const tt_opt_t *opt = work->state_get.opt;
    if (opt->state_count)
        memcpy(work->state_get.state, opt->state, opt->state_count * sizeof(float));
    return TT_OK;
}

/*  Whole copies are copied: fma(1, a - b, b) is not always a. */
tt_status_t cpu_blend(const tt_work_t *work)
{
    const tt_net_t *net = work->blend.net;
    const cpu_net_t *self = net->impl;
    float *to = net->params[work->blend.to];
    const float *from = net->params[work->blend.from];
    for (uint32_t g = 0; g < tt_net_groups(&net->spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(&net->spec, g, &first, &count);
        if (!(work->blend.groups >> g & 1))
            continue;
        if (work->blend.tau < 1.0f)
            self->kernels->blend(count, work->blend.tau, from + first, to + first);
        else
            memcpy(to + first, from + first, count * sizeof(float));
    }
    cpu_net_refresh(net, work->blend.to, work->blend.groups);
    return TT_OK;
}
