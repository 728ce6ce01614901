/*  work - what can be queued, and by whom it is done. What is copied in is copied by the call; what goes out lands at the sync. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/tree.h"

static tt_status_t s_put(cuda_device_t *device, const tt_work_t *work)
{
    const tt_net_t *net = work->put.net;
    TT_TRY(cuda_up(device, net->params[work->put.set], work->put.params, net->param_count * sizeof(float)));
    return cuda_noise_refresh(net, work->put.set, UINT32_MAX);
}

static tt_status_t s_sum(cuda_device_t *device, const tt_work_t *work)
{
    tt_sums_t *sums = work->sum.sums;
    void *given = sums->given;
    if (!given)
        TT_TRY(cuda_alloc(device, &given, tt_mul(sums->count, sizeof(float))));
    sums->given = given;
    TT_TRY(cuda_up(device, given, work->sum.sum, sums->count * sizeof(float)));
    sums->root = given;
    sums->groups = UINT32_MAX;
    return TT_OK;
}

tt_status_t cuda_fill(const tt_sums_t *sums, uint32_t groups, float *grad)
{
    cuda_device_t *device = (cuda_device_t *)sums->net->device;
    tt_span_t span[TT_SPANS_MAX];
    const uint32_t spans = tt_work_missing(sums, groups, span);
    for (uint32_t i = 0; i < spans; i++)
        TT_TRY(cuda_said(device, cudaMemsetAsync(grad + span[i].first, 0, span[i].count * sizeof(float), device->work),
            "a group's zeros"));
    return TT_OK;
}

static tt_status_t s_node(cuda_stream_t *stream, const tt_work_t *work)
{
    tt_sums_t *sums = work->node.sums;
    uint32_t lo, hi;
    tt_tree_span(sums->shards, work->node.node, &lo, &hi);
    if (!sums->host[lo])
        sums->host[lo] = tt_aligned0(tt_mul(sums->count, sizeof(float)));
    TT_TRY(cuda_fill(sums, UINT32_MAX, sums->leaf[lo]));
    TT_TRY(cuda_down(
        stream, sums->host[lo], work->node.node == 1 ? sums->root : sums->leaf[lo], sums->count * sizeof(float)));
    *work->node.out = sums->host[lo];
    return TT_OK;
}

static tt_status_t s_get(cuda_stream_t *stream, const tt_work_t *work)
{
    return cuda_down(
        stream, work->get.out, work->get.net->params[work->get.set] + work->get.first, work->get.count * sizeof(float));
}

tt_status_t cuda_do(cuda_stream_t *stream, const tt_work_t *work)
{
    cuda_device_t *device = (cuda_device_t *)stream->base.device;
    switch (work->kind) {
    case TT_WORK_TABLE:
        return cuda_table(device, work);
    case TT_WORK_STORE:
        return cuda_store(device, work);
    case TT_WORK_STORED:
        return cuda_stored(device, work);
    case TT_WORK_PUT:
        return s_put(device, work);
    case TT_WORK_GET:
        return s_get(stream, work);
    case TT_WORK_BLEND:
        return cuda_blend_sets(work);
    case TT_WORK_NOISE:
        return cuda_noise_draw(work);
    case TT_WORK_FORWARD:
        return cuda_forward(stream, work);
    case TT_WORK_WALK:
        return cuda_walk(stream, work);
    case TT_WORK_COMPUTE:
        return cuda_compute(work);
    case TT_WORK_NODE:
        return s_node(stream, work);
    case TT_WORK_SUM:
        return s_sum(device, work);
    case TT_WORK_STATE_PUT:
        return cuda_up(device, work->state_put.opt->state, work->state_put.state,
            work->state_put.opt->state_count * sizeof(float));
    case TT_WORK_STATE_GET:
        return cuda_down(stream, work->state_get.state, work->state_get.opt->state,
            work->state_get.opt->state_count * sizeof(float));
    case TT_WORK_STEP:
        return cuda_step(work);
    case TT_WORK_REPORT:
        return cuda_report(stream, work);
    case TT_WORKS:
        break;
    }
    return tt_err(TT_INTERNAL, "cuda: work of kind %d", (int)work->kind);
}
