/*  work - what can be queued, and by whom it is done. What is copied in is copied by the call; what goes out lands at the sync. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/tree.h"

/*  Twice what is asked for, so that tables that grow do so rarely. */
static tt_status_t s_reserve(cuda_device_t *device, tt_table_t *table, size_t bytes)
{
    cuda_room_t room = {table->copy, table->room};
    const tt_status_t status = bytes > room.bytes ? cuda_room(device, &room, 2 * bytes) : TT_OK;
    table->copy = room.memory;
    table->room = room.bytes;
    return status;
}

/*  Rows that lie anywhere lie side by side on the card. */
static void s_rows(const tt_work_t *work, char *to)
{
    const tt_stack_t *stack = work->table.stack;
    const size_t bytes = work->table.table->bytes;
    for (size_t k = 0; work->table.row && k < work->table.count; k++, to += bytes)
        if (stack)
            tt_stack_row(stack, work->table.row + k * stack->frames, to);
        else
            memcpy(to, work->table.row[k], bytes);
    if (!work->table.row && work->table.count)
        memcpy(to, work->table.rows, bytes * work->table.count);
}

/*  table->rows stays the host's: a loss without a kernel reads them there. */
static tt_status_t s_table(cuda_device_t *device, const tt_work_t *work)
{
    tt_table_t *table = work->table.table;
    const size_t bytes = tt_mul(table->bytes, work->table.count);
    void *stage = NULL;
    TT_TRY(s_reserve(device, table, bytes));
    TT_TRY(cuda_stage(device, bytes, &stage));
    s_rows(work, stage);
    if (bytes)
        TT_TRY(cuda_said(device, cudaMemcpyAsync(table->copy, stage, bytes, cudaMemcpyHostToDevice, device->work),
            "a copy of rows to the card"));
    table->rows = work->table.rows;
    table->there = work->table.count;
    return TT_OK;
}

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
    return TT_OK;
}

static tt_status_t s_node(cuda_stream_t *stream, const tt_work_t *work)
{
    tt_sums_t *sums = work->node.sums;
    uint32_t lo, hi;
    tt_tree_span(sums->shards, work->node.node, &lo, &hi);
    if (!sums->host[lo])
        sums->host[lo] = tt_aligned0(tt_mul(sums->count, sizeof(float)));
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
        return s_table(device, work);
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
