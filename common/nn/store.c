/*  store - frames that stay on a device, and tables whose rows are made of them. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"

/*  A device that is lost has no room to speak of. */
static tt_status_t s_alloc(tt_store_t *self)
{
    const tt_backend_ops_t *ops = self->device->ops;
    void *frames = NULL;
    const tt_status_t status = ops->alloc(self->device, &frames, tt_mul(self->places, self->bytes));
    self->frames = frames;
    if (status == TT_DEVICE && ops->room(self->device))
        return tt_err_wrap(TT_UNAVAILABLE, "%zu frames of %zu bytes", self->places, self->bytes);
    return status;
}

tt_status_t tt_store_new(tt_store_t **self_p, tt_device_t *device, size_t bytes, size_t places)
{
    if (!bytes || !places || bytes > UINT32_MAX || places > UINT32_MAX)
        return tt_err(TT_INVALID, "a store of %zu frames of %zu bytes; 1 to %u of either are possible", places, bytes,
            UINT32_MAX);
    tt_store_t *self = tt_new0(sizeof *self);
    *self = (tt_store_t){.device = device, .bytes = bytes, .places = places};
    const tt_status_t status = s_alloc(self);
    if (status == TT_OK)
        *self_p = self;
    else
        free(self);
    return status;
}

void tt_store_destroy(tt_store_t **self_p)
{
    tt_store_t *self = *self_p;
    if (!self)
        return;
    self->device->ops->wait(self->device);
    self->device->ops->free(self->device, self->frames);
    free(self);
    *self_p = NULL;
}

tt_status_t tt_store_put(tt_store_t *self, tt_stream_t *stream, size_t first, const void *frames, size_t count)
{
    if (first > self->places || count > self->places - first)
        return tt_err(TT_INVALID, "places %zu to %zu of a store that has %zu", first, first + count, self->places);
    const tt_work_t work = {.kind = TT_WORK_STORE, .store = {self, first, count, frames}};
    return self->device->ops->queue(stream, &work);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

static bool s_part_fits(const tt_stored_t *from, const tt_stack_part_t *part, size_t row)
{
    return (size_t)part->from + part->bytes <= from->store->bytes &&
           (size_t)part->to + (size_t)part->bytes * from->stack->frames <= row;
}

/*  Do frames and rows have the sizes that store and table have? */
static tt_status_t s_check_rows(const tt_table_t *table, const tt_stored_t *from)
{
    bool fits = tt_stored_frames(from) > 1 || from->store->bytes == table->bytes;
    for (uint32_t p = 0; tt_stored_frames(from) > 1 && p < from->stack->parts; p++)
        fits = fits && s_part_fits(from, &from->stack->part[p], table->bytes);
    if (!fits)
        return tt_err(TT_INVALID, "frames of %zu bytes, %u to a row, make no row of %zu", from->store->bytes,
            tt_stored_frames(from), table->bytes);
    return TT_OK;
}

/*  Is the run in one part of the frame? */
static bool s_run_fits(const tt_stored_t *from, size_t at, size_t end)
{
    if (tt_stored_frames(from) == 1)
        return end <= from->store->bytes;
    for (uint32_t p = 0; p < from->stack->parts; p++)
        if (from->stack->part[p].from <= at && end <= (size_t)from->stack->part[p].from + from->stack->part[p].bytes)
            return true;
    return false;
}

/*  Floats have to be where floats can be. */
static tt_status_t s_check_scale(const tt_table_t *table, const tt_stored_t *from)
{
    tt_stored_runs_t runs;
    for (uint32_t r = 0; r < from->scale->runs; r++) {
        const size_t at = from->scale->run[r].at, end = at + (size_t)from->scale->run[r].count * sizeof(float);
        if (!s_run_fits(from, at, end))
            return tt_err(TT_INVALID, "floats at bytes %zu to %zu of frames of %zu", at, end, from->store->bytes);
    }
    tt_stored_runs(from, &runs);
    for (uint32_t r = 0; r < runs.runs; r++)
        if (runs.run[r].at % sizeof(float) || runs.run[r].step % sizeof(float) || table->bytes % sizeof(float))
            return tt_err(TT_INVALID, "floats at byte %zu of rows of %zu", runs.run[r].at, table->bytes);
    return TT_OK;
}

/*  Is what is shifted there: a part of the stack, or anything of a frame that is a row? */
static bool s_picture_fits(const tt_table_t *table, const tt_stored_t *from)
{
    const tt_shift_t *shift = from->shift;
    const uint32_t frames = tt_stored_frames(from);
    const size_t bytes = tt_shift_bytes(shift);
    if (!bytes || shift->planes % frames)
        return false;
    if (frames == 1)
        return shift->at <= table->bytes && bytes <= table->bytes - shift->at;
    for (uint32_t p = 0; p < from->stack->parts; p++)
        if (from->stack->part[p].to == shift->at)
            return (size_t)from->stack->part[p].bytes * frames == bytes;
    return false;
}

/*  Its floats are scaled as one run, or not at all. */
static bool s_run_keeps(const tt_stored_t *from, const tt_stored_runs_t *runs, uint32_t r)
{
    const tt_shift_t *shift = from->shift;
    const size_t at = runs->run[r].at, bytes = runs->run[r].count * sizeof(float), frames = tt_stored_frames(from);
    const size_t end = at + (frames - 1) * runs->run[r].step + bytes;
    return (at == shift->at && bytes * frames == tt_shift_bytes(shift) && shift->place % sizeof(float) == 0) ||
           end <= shift->at || at >= shift->at + tt_shift_bytes(shift);
}

static tt_status_t s_check_shift(const tt_table_t *table, const tt_stored_t *from)
{
    const tt_shift_t *shift = from->shift;
    tt_stored_runs_t runs;
    bool fits = s_picture_fits(table, from);
    tt_stored_runs(from, &runs);
    for (uint32_t r = 0; fits && r < runs.runs; r++)
        fits = s_run_keeps(from, &runs, r);
    if (!fits)
        return tt_err(TT_INVALID,
            "a picture of %u x %u x %u x %u bytes at byte %u, of %u frames, is no part of rows of %zu", shift->planes,
            shift->height, shift->width, shift->place, shift->at, tt_stored_frames(from), table->bytes);
    return TT_OK;
}

tt_status_t tt_table_put_stored(tt_table_t *self, tt_stream_t *stream, const tt_stored_t *from)
{
    const tt_work_t work = {.kind = TT_WORK_STORED, .stored = {self, *from}};
    TT_TRY(s_check_rows(self, from));
    if (from->scale)
        TT_TRY(s_check_scale(self, from));
    if (from->shift)
        TT_TRY(s_check_shift(self, from));
    TT_TRY(self->device->ops->queue(stream, &work));
    self->count = from->count;
    self->side_by_side = true;
    return TT_OK;
}
