/*  store - frames that stay on the card: they go there once, and rows are made of them by their numbers. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

/*  What a large put stages at once: a whole replay may come, and pinned memory for all of that there may not be. */
enum { PIECE = 8 << 20 };

static tt_status_t s_piece(cuda_device_t *device, char *to, const char *from, size_t bytes, void *stage)
{
    memcpy(stage, from, bytes);
    return cuda_said(device, cudaMemcpyAsync(to, stage, bytes, cudaMemcpyHostToDevice, device->work),
        "a copy of frames to the card");
}

/*  Piece after piece by way of the same pinned memory; only where there are several does it wait. */
tt_status_t cuda_store(cuda_device_t *device, const tt_work_t *work)
{
    const tt_store_t *store = work->store.store;
    const size_t bytes = tt_mul(work->store.count, store->bytes);
    char *to = store->frames + work->store.first * store->bytes;
    void *stage = NULL;
    TT_TRY(cuda_stage(device, bytes < PIECE ? bytes : PIECE, &stage));
    for (size_t at = 0; at < bytes; at += PIECE) {
        if (at)
            TT_TRY(cuda_said(device, cudaStreamSynchronize(device->work), "a copy of frames to the card"));
        const size_t rest = bytes - at;
        TT_TRY(s_piece(device, to + at, (const char *)work->store.frames + at, rest < PIECE ? rest : PIECE, stage));
    }
    return TT_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

/*  What goes up for a table: means and the others first, then places. */
typedef struct {
    const tt_stored_t *from;
    uint32_t frames, floats; /* of a row; of a frame, that are scaled */
    size_t listed;           /* places                                */
} up_t;

static up_t s_up(const tt_stored_t *from)
{
    up_t up = {.from = from, .frames = tt_stored_frames(from)};
    for (uint32_t r = 0; from->scale && r < from->scale->runs; r++)
        up.floats += from->scale->run[r].count;
    up.listed = tt_mul(from->count, up.frames);
    return up;
}

static size_t s_bytes(const up_t *up)
{
    return 2 * (size_t)up->floats * sizeof(double) + up->listed * sizeof(uint32_t);
}

static tt_status_t s_send(cuda_device_t *device, const up_t *up)
{
    const size_t half = up->floats * sizeof(double);
    void *stage = NULL;
    TT_TRY(cuda_stage(device, s_bytes(up), &stage));
    if (half) {
        memcpy(stage, up->from->scale->mean, half);
        memcpy((char *)stage + half, up->from->scale->inv, half);
    }
    memcpy((char *)stage + 2 * half, up->from->place, up->listed * sizeof(uint32_t));
    return cuda_said(device,
        cudaMemcpyAsync(device->frames.memory, stage, s_bytes(up), cudaMemcpyHostToDevice, device->work),
        "a copy of places to the card");
}

static const uint32_t *s_places(const cuda_device_t *device, const up_t *up)
{
    return (const uint32_t *)(const void *)((const double *)device->frames.memory + 2 * (size_t)up->floats);
}

/*  A frame without a stack is one part of one. */
static void s_make_rows(cuda_device_t *device, const up_t *up, const tt_table_t *table)
{
    const tt_store_t *store = up->from->store;
    cuda_stack_t job = {.count = (uint32_t)up->from->count,
        .frames = up->frames,
        .parts = 1,
        .frame = (const uint8_t *)store->frames,
        .frame_bytes = store->bytes,
        .row_bytes = table->bytes,
        .index = s_places(device, up),
        .part = {{.bytes = (uint32_t)store->bytes}},
        .rows = table->copy};
    if (up->frames > 1)
        cuda_stack_parts(&job, up->from->stack);
    cuda_stack(device->work, &job);
}

static void s_scale_rows(cuda_device_t *device, const up_t *up, const tt_table_t *table)
{
    const tt_scale_t *scale = up->from->scale;
    const double *mean = device->frames.memory;
    tt_stored_runs_t runs;
    tt_stored_runs(up->from, &runs);
    cuda_scale_t job = {.count = (uint32_t)up->from->count,
        .frames = up->frames,
        .runs = runs.runs,
        .rows = table->copy,
        .row_bytes = table->bytes,
        .index = s_places(device, up),
        .but = scale->but,
        .mean = mean,
        .inv = mean + up->floats,
        .clip = scale->clip};
    for (uint32_t r = 0, first = 0; r < runs.runs; r++) {
        job.run[r].at = (uint32_t)runs.run[r].at;
        job.run[r].step = (uint32_t)runs.run[r].step;
        job.run[r].first = first;
        job.run[r].count = runs.run[r].count;
        first += runs.run[r].count;
    }
    cuda_scale(device->work, &job);
}

tt_status_t cuda_stored(cuda_device_t *device, const tt_work_t *work)
{
    tt_table_t *table = work->stored.table;
    const up_t up = s_up(&work->stored.from);
    TT_TRY(tt_work_check_places(work));
    TT_TRY(cuda_table_room(device, table, tt_mul(table->bytes, up.from->count)));
    TT_TRY(cuda_reserve(device, &device->frames, s_bytes(&up)));
    if (up.listed) {
        TT_TRY(s_send(device, &up));
        s_make_rows(device, &up, table);
        if (up.floats)
            s_scale_rows(device, &up, table);
    }
    table->rows = NULL;
    table->there = up.from->count;
    return cuda_launched(device, "rows of stored frames");
}
