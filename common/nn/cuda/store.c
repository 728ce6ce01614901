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

/*  What goes up for a table: means and the others first, then places, then how far rows are moved. */
typedef struct {
    const tt_stored_t *from;
    uint32_t frames, floats; /* of a row; of a frame, that are scaled */
    size_t listed;           /* places                                */
    size_t moves;            /* bytes                                 */
} up_t;

static up_t s_up(const tt_stored_t *from)
{
    up_t up = {.from = from, .frames = tt_stored_frames(from)};
    for (uint32_t r = 0; from->scale && r < from->scale->runs; r++)
        up.floats += from->scale->run[r].count;
    up.listed = tt_mul(from->count, up.frames);
    up.moves = from->shift ? tt_mul(from->count, sizeof *from->shift->by) : 0;
    return up;
}

static size_t s_bytes(const up_t *up)
{
    return 2 * (size_t)up->floats * sizeof(double) + up->listed * sizeof(uint32_t) + up->moves;
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
    if (up->moves)
        memcpy((char *)stage + s_bytes(up) - up->moves, up->from->shift->by, up->moves);
    return cuda_said(device,
        cudaMemcpyAsync(device->frames.memory, stage, s_bytes(up), cudaMemcpyHostToDevice, device->work),
        "a copy of places to the card");
}

static const uint32_t *s_places(const cuda_device_t *device, const up_t *up)
{
    return (const uint32_t *)(const void *)((const double *)device->frames.memory + 2 * (size_t)up->floats);
}

static const int8_t *s_moves(const cuda_device_t *device, const up_t *up)
{
    return up->moves ? (const int8_t *)(s_places(device, up) + up->listed) : NULL;
}

/*  What of the rows is moved, and no longer of what is copied: of the only frame's only part what is before and behind it stays. */
static void s_move_rows(cuda_device_t *device, const up_t *up, cuda_stack_t *stack)
{
    const tt_shift_t *shift = up->from->shift;
    const uint32_t bytes = (uint32_t)(tt_shift_bytes(shift) / up->frames);
    cuda_shift_t job = {.count = stack->count,
        .frames = stack->frames,
        .frame = stack->frame,
        .frame_bytes = stack->frame_bytes,
        .row_bytes = stack->row_bytes,
        .index = stack->index,
        .from = shift->at,
        .to = shift->at,
        .bytes = bytes,
        .height = shift->height,
        .width = shift->width,
        .place = shift->place,
        .by = s_moves(device, up),
        .rows = stack->rows};
    for (uint32_t p = 0; up->frames > 1 && p < stack->parts; p++)
        if (stack->part[p].to == shift->at) {
            job.from = stack->part[p].from;
            stack->part[p] = stack->part[--stack->parts];
        }
    if (up->frames == 1) {
        const uint32_t end = shift->at + bytes;
        stack->parts = 2;
        stack->part[0].bytes = shift->at;
        stack->part[1].from = stack->part[1].to = end;
        stack->part[1].bytes = (uint32_t)stack->frame_bytes - end;
    }
    cuda_shift(device->work, &job);
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
    if (up->moves)
        s_move_rows(device, up, &job);
    cuda_stack(device->work, &job);
}

/*  Of the run that is the picture; behind the last one if none is. */
static void s_say_moved(const cuda_device_t *device, const up_t *up, cuda_scale_t *job)
{
    const tt_shift_t *shift = up->from->shift;
    uint32_t r = 0;
    while (r < job->runs && job->run[r].at != shift->at)
        r++;
    job->by = s_moves(device, up);
    job->moved.run = r;
    job->moved.height = shift->height;
    job->moved.width = shift->width;
    job->moved.numbers = shift->place / (uint32_t)sizeof(float);
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
    if (up->moves)
        s_say_moved(device, up, &job);
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
