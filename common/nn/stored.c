/*  stored - what every backend needs to know of rows that are made of stored frames. */
#include "common/nn/backend.h"

uint32_t tt_stored_frames(const tt_stored_t *self)
{
    return self->stack && self->stack->frames > 1 ? self->stack->frames : 1;
}

/*  The part that has this byte of a frame. */
static const tt_stack_part_t *s_part(const tt_stack_t *stack, uint32_t at)
{
    uint32_t p = 0;
    while (p + 1 < stack->parts && (at < stack->part[p].from || at - stack->part[p].from >= stack->part[p].bytes))
        p++;
    return &stack->part[p];
}

void tt_stored_runs(const tt_stored_t *self, tt_stored_runs_t *out)
{
    const tt_scale_t *scale = self->scale;
    out->runs = scale ? scale->runs : 0;
    for (uint32_t r = 0; r < out->runs; r++) {
        const uint32_t at = scale->run[r].at;
        out->run[r].at = at;
        out->run[r].step = 0;
        out->run[r].count = scale->run[r].count;
        if (tt_stored_frames(self) == 1)
            continue;
        const tt_stack_part_t *part = s_part(self->stack, at);
        out->run[r].at = (size_t)part->to + (at - part->from);
        out->run[r].step = part->bytes;
    }
}

tt_status_t tt_work_check_places(const tt_work_t *work)
{
    const tt_stored_t *from = &work->stored.from;
    const size_t count = from->count * tt_stored_frames(from);
    uint32_t last = 0;
    for (size_t i = 0; i < count; i++)
        last = from->place[i] > last ? from->place[i] : last;
    if (count && last >= from->store->places)
        return tt_err(TT_INVALID, "place %u of a store that has %zu", last, from->store->places);
    return TT_OK;
}
