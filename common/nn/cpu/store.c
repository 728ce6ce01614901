/*  store - frames that stay, and rows made of them. */
#include <string.h>
#include "common/base/mem.h"
#include "common/base/scale.h"
#include "common/nn/cpu/cpu.h"

tt_status_t cpu_store(const tt_work_t *work)
{
    const tt_store_t *store = work->store.store;
    if (work->store.count)
        memcpy(store->frames + work->store.first * store->bytes, work->store.frames, work->store.count * store->bytes);
    return TT_OK;
}

/*  Twice what is asked for, so that tables that grow do so rarely. */
tt_status_t cpu_table_room(tt_table_t *table, size_t bytes)
{
    const tt_backend_ops_t *ops = table->device->ops;
    if (bytes <= table->room)
        return TT_OK;
    ops->free(table->device, table->copy);
    table->copy = NULL;
    table->room = 0;
    TT_TRY(ops->alloc(table->device, &table->copy, 2 * bytes));
    table->room = 2 * bytes;
    return TT_OK;
}

static void s_row(const tt_stored_t *from, const uint32_t *place, char *row)
{
    const tt_store_t *store = from->store;
    const void *frame[TT_STACK_MAX];
    const uint32_t frames = tt_stored_frames(from);
    if (frames == 1) {
        memcpy(row, store->frames + place[0] * store->bytes, store->bytes);
        return;
    }
    for (uint32_t k = 0; k < frames; k++)
        frame[k] = store->frames + place[k] * store->bytes;
    tt_stack_row(from->stack, frame, row);
}

/*  The floats of frame k, run after run. */
static void s_scale(const tt_scale_t *scale, const tt_stored_runs_t *runs, uint32_t k, char *row)
{
    const double *mean = scale->mean, *inv = scale->inv;
    for (uint32_t r = 0; r < runs->runs; r++) {
        float *x = (float *)(void *)(row + runs->run[r].at + k * runs->run[r].step);
        for (uint32_t i = 0; i < runs->run[r].count; i++)
            x[i] = tt_scaled(x[i], *mean++, *inv++, scale->clip);
    }
}

tt_status_t cpu_stored(const tt_work_t *work)
{
    tt_table_t *table = work->stored.table;
    const tt_stored_t *from = &work->stored.from;
    const uint32_t frames = tt_stored_frames(from);
    tt_stored_runs_t runs;
    TT_TRY(tt_work_check_places(work));
    TT_TRY(cpu_table_room(table, tt_mul(table->bytes, from->count)));
    tt_stored_runs(from, &runs);
    for (size_t i = 0; i < from->count; i++) {
        const uint32_t *place = from->place + i * frames;
        char *row = (char *)table->copy + i * table->bytes;
        s_row(from, place, row);
        for (uint32_t k = 0; from->scale && k < frames; k++)
            if (place[k] != from->scale->but)
                s_scale(from->scale, &runs, k, row);
        if (from->shift)
            tt_shift_row(from->shift, i, row);
    }
    table->rows = table->copy;
    table->row = NULL;
    table->stack = NULL;
    table->there = from->count;
    return TT_OK;
}
