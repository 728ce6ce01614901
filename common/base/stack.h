/*  stack - rows that are made of frames: what an observation is where it shows the newest frames of its episode, oldest first.
 *
 *  A row is given as a list of `frames` addresses; a frame that k rows show lies in memory once. A frame consists of parts, and so
 *  does a row: part p of a row is that part of all frames, side by side. Where an episode has fewer frames than that, others stand
 *  for those that never were.
 *
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "common/base/limits.h"

/*  What stands for frames that never were: the episode's first, or zeros (Gymnasium's FrameStackObservation, padding_type). */
typedef enum { TT_PAD_RESET, TT_PAD_ZERO } tt_pad_t;

typedef struct {
    uint32_t from, to, bytes; /* where it begins in a frame, and in a row; bytes of one frame */
} tt_stack_part_t;

typedef struct {
    uint32_t frames; /* 1 .. TT_STACK_MAX; 0 and 1: a row is a frame, and the rest is not read */
    tt_pad_t pad;
    uint32_t parts;
    tt_stack_part_t part[TT_PARTS_MAX];
} tt_stack_t;

/*  The row that these frames make. */
void tt_stack_row(const tt_stack_t *self, const void *const *frame, void *row);
/*  The newest frame and `back` before it are in their places, at the end of the list: fill in the places before them. zero: a
 *  frame, read where the padding is that. */
void tt_stack_pad(const tt_stack_t *self, const void **frame, uint32_t back, const void *zero);
