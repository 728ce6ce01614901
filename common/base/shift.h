/*  shift - pictures in rows, each moved by a few places, what comes in repeating their edges: what is cropped at random out of a picture
 *  that was padded so (torch.nn.functional.pad, mode="replicate").
 *
 *  The host moves lines of a row where they lie; a device that makes rows asks of each number where it comes from. Both come to the same.
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/portable_fn.h"

enum { TT_SHIFT_MAX = 64 }; /* places, either way */

/*  The picture of a row, [planes][height][width][place], and what becomes of it. */
typedef struct {
    uint32_t at; /* byte of the row where it begins                              */
    uint32_t planes, height, width;
    uint32_t place;        /* bytes of one: its numbers side by side                       */
    const int8_t (*by)[2]; /* [rows] place (y, x) shows what was at (y + by[0], x + by[1]) */
} tt_shift_t;

/*  Of the picture. */
static inline size_t tt_shift_bytes(const tt_shift_t *self)
{
    return (size_t)self->planes * self->height * self->width * self->place;
}

/*  Which of `count` places stands at this one. */
TT_MATH_FN uint32_t tt_shifted(uint32_t place, int by, uint32_t count)
{
    const uint32_t last = count - 1, far = (uint32_t)(by < 0 ? -by : by);
    if (by < 0)
        return place < far ? 0 : place - far;
    return last - place < far ? last : place + far;
}

/*  Which number of planes x height x width x numbers stands at number e. */
TT_MATH_FN uint32_t tt_shift_from(uint32_t e, uint32_t height, uint32_t width, uint32_t numbers, int dy, int dx)
{
    const uint32_t place = e / numbers, line = place / width, plane = line / height;
    const uint32_t y = tt_shifted(line % height, dy, height), x = tt_shifted(place % width, dx, width);
    return ((plane * height + y) * width + x) * numbers + e % numbers;
}

/*  Row number i, where it lies. */
void tt_shift_row(const tt_shift_t *self, size_t i, void *row);
