/*  window - which numbers of a picture a window reads, for convolution and pooling. Rows and columns are apart from one another: an
 *  axis is one of the two.
 *
 *  Threads: pure functions. */
#pragma once
#include "common/nn/cpu/ops.h"

typedef struct {
    size_t in, out, kernel, stride, pad;
} cpu_axis_t;

/*  first .. end-1 */
typedef struct {
    size_t first, end;
} cpu_range_t;

cpu_axis_t cpu_axis_rows(const cpu_window_t *shape);
cpu_axis_t cpu_axis_columns(const cpu_window_t *shape);

/*  Positions at which place k lies inside the picture; none where end <= first. */
cpu_range_t cpu_axis_readers(const cpu_axis_t *axis, size_t k);
/*  The number of the picture's row (column) that place k of position i reads; it lies inside. */
static inline size_t cpu_axis_at(const cpu_axis_t *axis, size_t i, size_t k)
{
    return i * axis->stride + k - axis->pad;
}

/*  Numbers of an axis, `stride` apart, that the same places read. The first: read by `place` from position `at`; by the next place,
 *  `stride` further, from one position less; and so on, `places` of them, which may be none. */
typedef struct {
    size_t first, count, place, at, places;
} cpu_inputs_t;

/*  Of the numbers phase, phase + stride, ... (phase < stride, counted from where the padding begins) those from the q-th on, or the
 *  first behind it that lies in the picture; q moves behind them. false: there are no more. */
bool cpu_axis_inputs(const cpu_axis_t *axis, size_t phase, size_t *q, cpu_inputs_t *inputs);

/*  Positions that read the same places: with a padding of 1 the inner ones, each border, each corner; without padding all are one
 *  band. */
typedef struct {
    cpu_range_t y, x, kh, kw;
    size_t in; /* offset of what the first place reads at the first position */
} cpu_band_t;

typedef void (*cpu_band_fn)(const void *ctx, const cpu_window_t *shape, const cpu_band_t *band);
/*  `work` gets the bands in the order (y, x). row_by_row: of one row of positions each, so that all positions come in this order. */
void cpu_window_bands(const cpu_window_t *shape, bool row_by_row, cpu_band_fn work, const void *ctx);
