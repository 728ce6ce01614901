#include "common/nn/cpu/window.h"

cpu_axis_t cpu_axis_rows(const cpu_window_t *shape)
{
    return (cpu_axis_t){shape->in_h, shape->out_h, shape->kernel_h, shape->stride_h, shape->pad_h};
}

cpu_axis_t cpu_axis_columns(const cpu_window_t *shape)
{
    return (cpu_axis_t){shape->in_w, shape->out_w, shape->kernel_w, shape->stride_w, shape->pad_w};
}

/*  Places of the window that lie inside the picture at position i. */
static cpu_range_t s_inside(const cpu_axis_t *axis, size_t i)
{
    const size_t at = i * axis->stride, edge = axis->in + axis->pad;
    return (cpu_range_t){at < axis->pad ? axis->pad - at : 0, at + axis->kernel < edge ? axis->kernel : edge - at};
}

cpu_range_t cpu_axis_readers(const cpu_axis_t *axis, size_t k)
{
    const size_t edge = axis->in + axis->pad;
    const size_t first = k < axis->pad ? (axis->pad - k + axis->stride - 1) / axis->stride : 0;
    const size_t end = k < edge ? (edge - k + axis->stride - 1) / axis->stride : 0;
    return (cpu_range_t){first, end < axis->out ? end : axis->out};
}

/*  Places phase + t * stride that read number q * stride + phase, from position q - t: a range of t. */
static cpu_range_t s_read_by(const cpu_axis_t *axis, size_t phase, size_t q)
{
    const size_t all = phase < axis->kernel ? (axis->kernel - phase + axis->stride - 1) / axis->stride : 0;
    const cpu_range_t t = {q < axis->out ? 0 : q - axis->out + 1, q + 1 < all ? q + 1 : all};
    return t.first < t.end ? t : (cpu_range_t){0, 0};
}

bool cpu_axis_inputs(const cpu_axis_t *axis, size_t phase, size_t *q, cpu_inputs_t *inputs)
{
    const size_t edge = axis->in + axis->pad;
    const size_t end = phase < edge ? (edge - phase + axis->stride - 1) / axis->stride : 0;
    const size_t inside = phase < axis->pad ? (axis->pad - phase + axis->stride - 1) / axis->stride : 0;
    const size_t first = *q < inside ? inside : *q;
    if (first >= end)
        return false;
    const cpu_range_t here = s_read_by(axis, phase, first);
    for (*q = first + 1; *q < end; (*q)++) {
        const cpu_range_t next = s_read_by(axis, phase, *q);
        if (next.first != here.first || next.end != here.end)
            break;
    }
    *inputs = (cpu_inputs_t){.first = first * axis->stride + phase - axis->pad,
        .count = *q - first,
        .place = phase + here.first * axis->stride,
        .at = here.end ? first - here.first : 0,
        .places = here.end - here.first};
    return true;
}

/*  The end of the positions from i on that read the same places as i. */
static size_t s_band(const cpu_axis_t *axis, size_t i)
{
    const cpu_range_t here = s_inside(axis, i);
    for (i++; i < axis->out; i++) {
        const cpu_range_t next = s_inside(axis, i);
        if (next.first != here.first || next.end != here.end)
            break;
    }
    return i;
}

void cpu_window_bands(const cpu_window_t *shape, bool row_by_row, cpu_band_fn work, const void *ctx)
{
    const cpu_axis_t rows = cpu_axis_rows(shape), columns = cpu_axis_columns(shape);
    cpu_band_t band = {0};
    for (band.y.first = 0; band.y.first < rows.out; band.y.first = band.y.end) {
        band.y.end = row_by_row ? band.y.first + 1 : s_band(&rows, band.y.first);
        band.kh = s_inside(&rows, band.y.first);
        for (band.x.first = 0; band.x.first < columns.out; band.x.first = band.x.end) {
            band.x.end = s_band(&columns, band.x.first);
            band.kw = s_inside(&columns, band.x.first);
            const size_t in_y = cpu_axis_at(&rows, band.y.first, band.kh.first);
            band.in = (in_y * columns.in + cpu_axis_at(&columns, band.x.first, band.kw.first)) * shape->in_c;
            work(ctx, shape, &band);
        }
    }
}
