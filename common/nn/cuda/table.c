/*  table - a table's rows to the card: side by side, from wherever they lie, or as frames that are put together there. A frame that
 *  several rows show goes over once. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

/*  What grows gets twice what is asked for, so that it does so rarely; most tables never do. */
tt_status_t cuda_reserve(cuda_device_t *device, cuda_room_t *room, size_t bytes)
{
    if (bytes <= room->bytes)
        return TT_OK;
    if (room->bytes && cuda_room(device, room, 2 * bytes) == TT_OK)
        return TT_OK;
    return cuda_room(device, room, bytes);
}

tt_status_t cuda_table_room(cuda_device_t *device, tt_table_t *table, size_t bytes)
{
    cuda_room_t room = {table->copy, table->room};
    const tt_status_t status = cuda_reserve(device, &room, bytes);
    table->copy = room.memory;
    table->room = room.bytes;
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

static void s_gather(const tt_work_t *work, char *to)
{
    const size_t bytes = work->table.table->bytes;
    for (size_t k = 0; work->table.row && k < work->table.count; k++, to += bytes)
        memcpy(to, work->table.row[k], bytes);
    if (!work->table.row && work->table.count)
        memcpy(to, work->table.rows, bytes * work->table.count);
}

static tt_status_t s_rows(cuda_device_t *device, const tt_work_t *work)
{
    const size_t bytes = tt_mul(work->table.table->bytes, work->table.count);
    void *stage = NULL;
    TT_TRY(cuda_stage(device, bytes, &stage));
    s_gather(work, stage);
    if (bytes == 0)
        return TT_OK;
    return cuda_said(device,
        cudaMemcpyAsync(work->table.table->copy, stage, bytes, cudaMemcpyHostToDevice, device->work),
        "a copy of rows to the card");
}

/* ---- frames ----------------------------------------------------------------------------------------------------------- */

/*  Addresses that were seen, and the number of each: open addressing over twice as many places as there can be. */
typedef struct {
    size_t places; /* a power of two */
    const void **address;
    uint32_t *number;
} seen_t;

static void s_new_seen(seen_t *self, size_t addresses)
{
    self->places = 2;
    while (self->places < 2 * addresses)
        self->places *= 2;
    self->address = tt_array0(self->places, sizeof *self->address);
    self->number = tt_array0(self->places, sizeof *self->number);
}

static void s_free_seen(seen_t *self)
{
    free(self->address);
    free(self->number);
}

/*  The place of an address, or the free one where it belongs. */
static size_t s_find(const seen_t *self, const void *address)
{
    size_t at = ((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ull >> 20 & (self->places - 1);
    while (self->address[at] && self->address[at] != address)
        at = (at + 1) & (self->places - 1);
    return at;
}

/*  Each address's number goes to index, each new one itself to `frame`. How many there are. */
static uint32_t s_number(seen_t *self, const void *const *address, size_t count, uint32_t *index, const void **frame)
{
    uint32_t frames = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t at = s_find(self, address[i]);
        if (!self->address[at]) {
            self->address[at] = address[i];
            self->number[at] = frames;
            frame[frames++] = address[i];
        }
        index[i] = self->number[at];
    }
    return frames;
}

void cuda_stack_parts(cuda_stack_t *job, const tt_stack_t *stack)
{
    job->parts = stack->parts;
    for (uint32_t p = 0; p < stack->parts; p++) {
        const tt_stack_part_t *part = &stack->part[p];
        job->part[p].from = part->from;
        job->part[p].to = part->to;
        job->part[p].bytes = part->bytes;
    }
}

static cuda_stack_t s_stack(const tt_work_t *work)
{
    const tt_stack_t *stack = work->table.stack;
    cuda_stack_t job = {.count = (uint32_t)work->table.count,
        .frames = stack->frames,
        .row_bytes = work->table.table->bytes,
        .rows = work->table.table->copy};
    cuda_stack_parts(&job, stack);
    for (uint32_t p = 0; p < stack->parts; p++)
        if (job.frame_bytes < (size_t)stack->part[p].from + stack->part[p].bytes)
            job.frame_bytes = (size_t)stack->part[p].from + stack->part[p].bytes;
    return job;
}

/*  Numbers first, then frames. */
static tt_status_t s_send_frames(
    cuda_device_t *device, cuda_stack_t *job, const uint32_t *index, const void *const *frame, uint32_t frames)
{
    const size_t listed = (size_t)job->count * job->frames * sizeof *index, lead = tt_align(listed, 64);
    const size_t bytes = lead + tt_mul(frames, job->frame_bytes);
    void *stage = NULL;
    TT_TRY(cuda_reserve(device, &device->frames, bytes));
    TT_TRY(cuda_stage(device, bytes, &stage));
    memcpy(stage, index, listed);
    for (uint32_t i = 0; i < frames; i++)
        memcpy((char *)stage + lead + i * job->frame_bytes, frame[i], job->frame_bytes);
    job->index = device->frames.memory;
    job->frame = (const uint8_t *)device->frames.memory + lead;
    return cuda_said(device, cudaMemcpyAsync(device->frames.memory, stage, bytes, cudaMemcpyHostToDevice, device->work),
        "a copy of frames to the card");
}

static tt_status_t s_frames(cuda_device_t *device, const tt_work_t *work)
{
    cuda_stack_t job = s_stack(work);
    const size_t count = tt_mul(job.count, job.frames);
    seen_t seen;
    uint32_t *index = tt_array0(count, sizeof *index);
    const void **frame = tt_array0(count, sizeof *frame);
    s_new_seen(&seen, count);
    const uint32_t frames = s_number(&seen, work->table.row, count, index, frame);
    const tt_status_t status = s_send_frames(device, &job, index, frame, frames);
    s_free_seen(&seen);
    free(index);
    free(frame);
    TT_TRY(status);
    cuda_stack(device->work, &job);
    return cuda_launched(device, "rows of frames");
}

/*  table->rows stays the host's: a loss without a kernel reads them there. */
tt_status_t cuda_table(cuda_device_t *device, const tt_work_t *work)
{
    tt_table_t *table = work->table.table;
    TT_TRY(cuda_table_room(device, table, tt_mul(table->bytes, work->table.count)));
    TT_TRY(work->table.stack && work->table.count ? s_frames(device, work) : s_rows(device, work));
    table->rows = work->table.rows;
    table->there = work->table.count;
    return TT_OK;
}
