/*  apply - steps of optimisers, sets that follow, and the report. The norm, the clip and whether a step can be taken stay on the card:
 *  nothing is decided by the host between a gradient and its step. */
#include "common/nn/adam.h"
#include "common/nn/cuda/cuda.h"

/*  Adam's corrections are the only thing that hangs on the number. */
static cuda_step_t s_number(const tt_work_t *work)
{
    cuda_step_t step = {.lr = work->step.lr, .number = work->step.number};
    if (work->step.opt->spec.kind == TT_OPT_ADAM)
        step.root_scale = tt_adam_correct(&work->step.opt->spec, step.number, &step.lr);
    return step;
}

/*  What the kernel needs of the kind of optimiser. */
static void s_set_kind(cuda_opt_t *job, const tt_opt_spec_t *opt, float *opt_state)
{
    float *more = opt->momentum != 0.0f ? opt_state + job->count : NULL;
    if (opt->kind == TT_OPT_ADAM) {
        job->kind = CUDA_ADAM;
        job->s0 = opt_state;
        job->s1 = opt_state + job->count;
    } else if (opt->kind == TT_OPT_RMSPROP) {
        job->kind = CUDA_RMSPROP;
        job->s0 = opt_state;
        job->s1 = more;
    } else {
        job->kind = CUDA_SGD;
        job->s0 = opt->momentum != 0.0f ? opt_state : NULL;
    }
}

static const cuda_step_t *s_step_there(const tt_opt_t *opt)
{
    return &((const cuda_net_t *)opt->net->impl)->steps[opt->group];
}

static cuda_opt_t s_job(const tt_work_t *work, size_t first, size_t count)
{
    const tt_opt_t *opt = work->step.opt;
    const tt_opt_spec_t *spec = &opt->spec;
    cuda_opt_t job = {
        .count = count,
        .p = opt->net->params[0] + first,
        .g = work->step.sums->root + first,
        .norm = &opt->net->norms->newest[opt->group],
        .step = s_step_there(opt),
        .max_norm = spec->max_norm,
        .beta1 = spec->beta1,
        .beta2 = spec->beta2,
        .alpha = spec->alpha,
        .momentum = spec->momentum,
        .eps = spec->eps,
    };
    s_set_kind(&job, spec, opt->state);
    return job;
}

static tt_status_t s_launch(void *given)
{
    const tt_work_t *work = given;
    const tt_opt_t *opt = work->step.opt;
    const tt_net_t *net = opt->net;
    cuda_device_t *device = (cuda_device_t *)net->device;
    size_t first = 0, count = 0;
    tt_net_group_span(&net->spec, opt->group, &first, &count);
    const cuda_norm_t norm = {&net->norms->newest[opt->group], &net->norms->bad, &net->norms->bad_step,
        s_step_there(opt), ((const cuda_net_t *)net->impl)->norm_parts};
    const cuda_opt_t job = s_job(work, first, count);
    cuda_norm(device->work, count, job.g, &norm);
    cuda_opt(device->work, &job);
    TT_TRY(cuda_launched(device, "an optimiser's step"));
    return cuda_noise_refresh(net, 0, 1u << opt->group);
}

tt_status_t cuda_step(const tt_work_t *work)
{
    const tt_opt_t *opt = work->step.opt;
    cuda_device_t *device = (cuda_device_t *)opt->net->device;
    const cuda_step_t step = s_number(work);
    cuda_key_t key = {0};
    cuda_key_add(&key, "step", 4);
    cuda_key_add(&key, &opt->net, sizeof opt->net);
    cuda_key_add(&key, &opt->group, sizeof opt->group);
    cuda_key_add(&key, &opt->spec, sizeof opt->spec);
    cuda_key_add(&key, &opt->state, sizeof opt->state);
    cuda_key_add(&key, &work->step.sums->root, sizeof work->step.sums->root);
    TT_TRY(cuda_fill(work->step.sums, 1u << opt->group, work->step.sums->leaf[0]));
    TT_TRY(cuda_up(device, &((cuda_net_t *)opt->net->impl)->steps[opt->group], &step, sizeof step));
    tt_work_t again = *work;
    return cuda_again(device, &key, s_launch, &again);
}

/*  Whole copies are copied: fma(1, a - b, b) is not always a. */
static tt_status_t s_blend_group(cuda_device_t *device, size_t count, float tau, const float *from, float *to)
{
    if (tau == 1.0f)
        return cuda_said(device,
            cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, device->work),
            "a copy of parameters");
    cuda_blend(device->work, count, tau, from, to);
    return cuda_launched(device, "a blend");
}

tt_status_t cuda_blend_sets(const tt_work_t *work)
{
    const tt_net_t *net = work->blend.net;
    for (uint32_t g = 0; g < tt_net_groups(&net->spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(&net->spec, g, &first, &count);
        if (work->blend.groups >> g & 1)
            TT_TRY(s_blend_group((cuda_device_t *)net->device, count, work->blend.tau,
                net->params[work->blend.from] + first, net->params[work->blend.to] + first));
    }
    return cuda_noise_refresh(net, work->blend.to, work->blend.groups);
}

static tt_status_t s_report_norms(cuda_stream_t *stream, const tt_net_t *net, tt_norms_t *to)
{
    cuda_device_t *device = (cuda_device_t *)net->device;
    TT_TRY(cuda_down(stream, to, net->norms, sizeof *to));
    return cuda_said(
        device, cudaMemsetAsync(&net->norms->bad_step, 0, sizeof net->norms->bad_step, device->work), "zeros");
}

tt_status_t cuda_report(cuda_stream_t *stream, const tt_work_t *work)
{
    const tt_net_t *net = work->report.net;
    if (work->report.norms)
        TT_TRY(s_report_norms(stream, net, work->report.norms));
    if (!work->report.stats)
        return TT_OK;
    return cuda_down(stream, work->report.stats, work->report.sums->root + tt_net_stats_offset(&net->spec),
        (TT_LOSS_STATS + net->spec.ride) * sizeof(float));
}
