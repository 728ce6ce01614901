/*  frames - every way in which a replay shows a frame, beside what the naive one says of it. */
#pragma once
#include "tests/replay/naive.h"

enum { FRAMES_STACK = 5 }; /* frames of a stack, at most */

/*  As stored, stacked, as a network reads it, and normalised. id: the row's number, clock * N + env. */
void frames_check(
    const naive_t *naive, const replay_t *replay, uint64_t id, replay_frame_t which, const naive_row_t *row);
