/*  work - what differs where host and device have different memory: rows and sums are copied in, nodes out. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/strict/strict.h"
#include "common/nn/tree.h"

/*  Rows that lie anywhere lie side by side on the device. */
static tt_status_t s_table(const tt_work_t *work)
{
    tt_table_t *table = work->table.table;
    const tt_stack_t *stack = work->table.stack;
    const size_t bytes = table->bytes, count = work->table.count;
    TT_TRY(cpu_table_room(table, tt_mul(bytes, count)));
    for (size_t k = 0; work->table.row && k < count; k++) {
        char *to = (char *)table->copy + k * bytes;
        if (stack)
            tt_stack_row(stack, work->table.row + k * stack->frames, to);
        else
            memcpy(to, work->table.row[k], bytes);
    }
    if (!work->table.row && count)
        memcpy(table->copy, work->table.rows, bytes * count);
    table->rows = table->copy;
    table->there = count;
    return TT_OK;
}

static tt_status_t s_sum(const tt_work_t *work)
{
    tt_sums_t *sums = work->sum.sums;
    tt_device_t *device = sums->net->device;
    void *given = sums->given;
    if (!given)
        TT_TRY(device->ops->alloc(device, &given, tt_mul(sums->count, sizeof(float))));
    sums->given = given;
    memcpy(sums->given, work->sum.sum, sums->count * sizeof(float));
    sums->root = sums->given;
    sums->groups = UINT32_MAX;
    return TT_OK;
}

static tt_status_t s_node(const tt_work_t *work)
{
    tt_sums_t *sums = work->node.sums;
    const float *there = NULL;
    tt_work_t ask = *work;
    uint32_t lo, hi;
    ask.node.out = &there;
    TT_TRY(cpu_do(&ask));
    tt_tree_span(sums->shards, work->node.node, &lo, &hi);
    if (!sums->host[lo])
        sums->host[lo] = tt_aligned0(tt_mul(sums->count, sizeof(float)));
    memcpy(sums->host[lo], there, sums->count * sizeof(float));
    *work->node.out = sums->host[lo];
    return TT_OK;
}

tt_status_t strict_do(const tt_work_t *work)
{
    switch (work->kind) {
    case TT_WORK_TABLE:
        return s_table(work);
    case TT_WORK_SUM:
        return s_sum(work);
    case TT_WORK_NODE:
        return s_node(work);
    default:
        return cpu_do(work);
    }
}
