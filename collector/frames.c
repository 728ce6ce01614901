#include "collector/frames.h"
#include <stdlib.h>
#include "common/base/mem.h"

void frames_init(frames_t *self, const tt_columns_t *columns, bool scale, float clip)
{
    *self = (frames_t){.columns = columns};
    tt_rows_init(&self->rows, columns, scale, clip);
}

void frames_free(frames_t *self)
{
    tt_rows_free(&self->rows);
    free(self->list);
    self->list = NULL;
    self->room = 0;
}

static void s_need(frames_t *self, size_t count)
{
    const uint32_t frames = self->columns->stack.frames;
    tt_rows_need(&self->rows, tt_mul(count, frames));
    if (count <= self->room)
        return;
    free(self->list);
    self->list = tt_array0(tt_mul(count, frames), sizeof *self->list);
    self->room = count;
}

/*  Row i shows `back` frames before its own; frame k of it, from the newest, is number k * count + i. */
static void s_list(frames_t *self, size_t count, size_t i, uint32_t back)
{
    const tt_stack_t *stack = &self->columns->stack;
    const void **list = self->list + i * stack->frames;
    for (uint32_t k = 0; k <= back; k++)
        list[stack->frames - 1 - k] = self->rows.at[k * count + i];
    tt_stack_pad(stack, list, back, self->columns->zero);
}

void frames_current(const tt_columns_t *columns, const tt_vec_t *vec, void **seen)
{
    for (uint32_t c = 0; c < columns->action; c++)
        seen[c] = (int)c == columns->mask ? (void *)(uintptr_t)tt_vec_mask(vec) : tt_vec_obs(vec)[c];
}

const void *const *frames_now(
    frames_t *self, const tt_vec_t *vec, uint32_t first, uint32_t count, const tt_norm_t *norm, void *const *current)
{
    const uint32_t frames = self->columns->stack.frames;
    void *before[TT_COLUMNS_MAX];
    if (frames == 1)
        tt_rows_need(&self->rows, count);
    else
        s_need(self, count);
    tt_rows_put(&self->rows, 0, count, norm, current, first);
    if (frames == 1)
        return self->rows.at;
    for (uint32_t k = 1; k < frames; k++) {
        tt_vec_before(vec, first, k, before);
        tt_rows_put(&self->rows, (size_t)k * count, count, norm, before, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t age = tt_vec_age(vec, first + i);
        s_list(self, count, i, age < frames - 1 ? age : frames - 1);
    }
    return self->list;
}

const void *const *frames_finals(
    frames_t *self, const tt_segment_shape_t *shape, const tt_segment_t *at, const tt_norm_t *norm)
{
    const uint32_t frames = self->columns->stack.frames, K = shape->K;
    if (frames == 1)
        return tt_rows_of(&self->rows, K, norm, at->final);
    s_need(self, K);
    for (uint32_t i = 0; i < K; i++) {
        const uint32_t t = at->final_t[i], env = at->final_env[i], there = 1 + tt_segment_back(shape, at, t, env);
        const uint32_t back = there < frames - 1 ? there : frames - 1;
        tt_rows_put(&self->rows, i, 1, norm, at->final, i);
        for (uint32_t k = 1; k <= back; k++) {
            size_t index;
            void *const *column = tt_segment_frame(shape, at, t, env, k - 1, &index);
            tt_rows_put(&self->rows, (size_t)k * K + i, 1, norm, column, index);
        }
        s_list(self, K, i, back);
    }
    return self->list;
}
