/*  frames - what a policy sees of the envs of a range: rows of its network, made of frames where the job stacks them.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/vec.h"
#include "common/rl/rows.h"
#include "common/wire/segment.h"

typedef struct {
    const tt_columns_t *columns; /* borrowed */
    tt_rows_t rows;
    const void **list; /* [room][stack.frames]; NULL without stacks */
    size_t room;
} frames_t;

void frames_init(frames_t *self, const tt_columns_t *columns, bool scale, float clip);
void frames_free(frames_t *self);

/*  The current rows of each column that an env gives: the observation's, the mask. seen: [columns->action], borrowed as tt_vec_obs; nobody writes
 *  there. */
void frames_current(const tt_columns_t *columns, const tt_vec_t *vec, void **seen);

/*  Both: lists as tt_inference_run takes them, borrowed until the next call, as what they name is. norm: tt_rows_put. */
/*  Of envs first .. first + count - 1 now, whose shares have made as many moves (vec.h); current: the observations of all envs, wherever a
 *  copy lies. */
const void *const *frames_now(
    frames_t *self, const tt_vec_t *vec, uint32_t first, uint32_t count, const tt_norm_t *norm, void *const *current);
/*  Of the finals of a segment. */
const void *const *frames_finals(
    frames_t *self, const tt_segment_shape_t *shape, const tt_segment_t *at, const tt_norm_t *norm);
