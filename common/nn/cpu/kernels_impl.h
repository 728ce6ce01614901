/*  kernels_impl - the kernels of kernels.h, written once against the sixteen-lane vector `v16` and compiled once for each
 *  instruction set (portable.c, avx2.c, avx512.c include a v16_*.h and then this file).
 *
 *  Rules that keep the builds equal to the bit: a fused multiply-add only where v_fma or v_fnma is written, no reciprocal
 *  or root estimates, a sum across lanes only through v_sum and v_sum4. */
#pragma once
#include <stddef.h>
#include "common/nn/cpu/kernels.h"
#include "common/nn/math/activation.h"
#include "common/nn/math/opt.h"

/*  Rows and 16-column vectors of the main tile, and the widths for 1, 2 and 3 rows left over: as many accumulators as
 *  hide the latency of a multiply-add, as few as fit the registers beside the operands. Sums that are added to what was
 *  there are short: smaller tiles let the loads and stores at their ends overlap. */
#ifdef V16_WIDE
enum { TILE_COLS = 4, TILE_COLS_ADD = 2, TILE_COLS_1 = 4, TILE_COLS_2 = 4, TILE_COLS_3 = 4 };
#else
enum { TILE_COLS = 1, TILE_COLS_ADD = 1, TILE_COLS_1 = 4, TILE_COLS_2 = 2, TILE_COLS_3 = 1 };
#endif
enum { TILE_ROWS = 4 };

/*  A kernel is inlined into each of its shapes, whose sizes are constants there. Under a sanitizer there is one of each,
 *  which they call: a check stands in it once and not in every copy, and a file compiles in two seconds and not in 24. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KERNEL_FN static
#undef UNROLL
#define UNROLL
#else
#define KERNEL_FN V16_FN
#endif
#ifndef UNROLL
#define UNROLL _Pragma("GCC unroll 16")
#endif

/*  tt_tanhf of sixteen numbers. NaN passes through. */
V16_FN v16 v_tanh(v16 x)
{
    const v16 c = v_min(v_set(TT_TANH_END), v_max(v_set(-TT_TANH_END), x));
    const v16 z = v_mul(c, c);
    v16 p = v_fma(v_set(TT_TANH_P4), z, v_set(TT_TANH_P3));
    p = v_fma(p, z, v_set(TT_TANH_P2));
    p = v_fma(p, z, v_set(TT_TANH_P1));
    p = v_fma(p, z, v_set(TT_TANH_PQ0));
    v16 q = v_add(z, v_set(TT_TANH_Q3));
    q = v_fma(q, z, v_set(TT_TANH_Q2));
    q = v_fma(q, z, v_set(TT_TANH_Q1));
    q = v_fma(q, z, v_set(TT_TANH_PQ0));
    return v_div(v_mul(c, p), q);
}

/*  What an accumulator starts from. `left` columns of the vector exist. */
KERNEL_FN v16 tile_start(const tt_gemm_t *g, tt_gemm_kind_t kind, size_t row, size_t col, size_t left)
{
    switch (kind) {
    case TT_GEMM_TANH:
    case TT_GEMM_RELU:
    case TT_GEMM_SUM:
        return v_load(g->bias + col);
    case TT_GEMM_ADD:
        if (g->first)
            return v_zero();
        return left < 16 ? v_load_n(g->c + row * g->c_row + col, left) : v_load(g->c + row * g->c_row + col);
    default:
        return v_zero();
    }
}

KERNEL_FN void tile_end(const tt_gemm_t *g, tt_gemm_kind_t kind, size_t row, size_t col, size_t left, v16 sum)
{
    float *c = g->c + row * g->c_row + col;
    const float *h = g->h + row * g->h_row + col;
    switch (kind) {
    case TT_GEMM_TANH:
        v_store(c, v_tanh(sum));
        break;
    case TT_GEMM_RELU:
        v_store(c, v_max(v_zero(), sum));
        break;
    case TT_GEMM_D_TANH:
        v_store(c, v_mul(sum, v_fnma(v_load(h), v_load(h), v_set(1.0f))));
        break;
    case TT_GEMM_D_RELU:
        v_store(c, v_keep_pos(v_load(h), sum));
        break;
    case TT_GEMM_SUM:
    case TT_GEMM_D_NONE:
        v_store(c, sum);
        break;
    case TT_GEMM_ADD:
        if (left < 16)
            v_store_n(c, sum, left);
        else
            v_store(c, sum);
        break;
    }
}

/*  R rows x C vectors at (row, vector); R, C and kind are constants where this is inlined. */
KERNEL_FN void tile(const tt_gemm_t *g, tt_gemm_kind_t kind, size_t row, size_t vector, const int R, const int C)
{
    const size_t col = 16 * vector;
    v16 acc[TILE_ROWS][4];
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int c = 0; c < C; c++) acc[r][c] =
            tile_start(g, kind, row + (size_t)r, col + 16 * (size_t)c, g->n - col - 16 * (size_t)c);
    }
    const float *a = g->a + row * g->a_row;
    const float *b = g->b + vector * g->b_panel;
    const size_t a_row = g->a_row, a_k = g->a_k, b_panel = g->b_panel, b_k = g->b_k;
    for (size_t k = g->k; k; k--) {
        v16 w[4];
        UNROLL for (int c = 0; c < C; c++) w[c] = v_load(b + (size_t)c * b_panel);
        UNROLL for (int r = 0; r < R; r++)
        {
            const v16 x = v_set(a[(size_t)r * a_row]);
            UNROLL for (int c = 0; c < C; c++) acc[r][c] = v_fma(x, w[c], acc[r][c]);
        }
        a += a_k;
        b += b_k;
    }
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int c = 0; c < C; c++)
            tile_end(g, kind, row + (size_t)r, col + 16 * (size_t)c, g->n - col - 16 * (size_t)c, acc[r][c]);
    }
}

/*  Rows [row, end) in tiles of R rows and C vectors, then of one vector. Columns outside, so that a panel of b stays in
 *  the first-level cache while the rows pass. */
KERNEL_FN void tile_rows(const tt_gemm_t *g, tt_gemm_kind_t kind, size_t row, size_t end, const int R, const int C)
{
    const size_t vectors = (g->n + 15) / 16;
    size_t v = 0;
    for (; v + (size_t)C <= vectors; v += (size_t)C)
        for (size_t r = row; r < end; r += (size_t)R)
            tile(g, kind, r, v, R, C);
    if (C > 1)
        for (; v < vectors; v++)
            for (size_t r = row; r < end; r += (size_t)R)
                tile(g, kind, r, v, R, 1);
}

/*  The rows behind the last whole tile. */
KERNEL_FN void tile_rest(const tt_gemm_t *g, tt_gemm_kind_t kind, size_t row)
{
    switch (g->m - row) {
    case 1:
        tile_rows(g, kind, row, g->m, 1, TILE_COLS_1);
        break;
    case 2:
        tile_rows(g, kind, row, g->m, 2, TILE_COLS_2);
        break;
    case 3:
        tile_rows(g, kind, row, g->m, 3, TILE_COLS_3);
        break;
    default:
        break;
    }
}

KERNEL_FN void gemm_kind(const tt_gemm_t *g, tt_gemm_kind_t kind)
{
    const size_t full = g->m - g->m % TILE_ROWS;
    tile_rows(g, kind, 0, full, TILE_ROWS, kind == TT_GEMM_ADD ? TILE_COLS_ADD : TILE_COLS);
    tile_rest(g, kind, full);
}

/*  What a block of rows adds to a wide matrix: to the gradient of a dense layer's weights, which may lie far away. Rows of b that are
 *  a power of two apart share a few sets of the first-level cache, and a tile's part of c is a few lines, each far from the last. So
 *  columns go in parts of which b fits there as panels, c is walked along its rows, and those ahead are asked for in time. */
enum { ADD_COLS = 128, ADD_AHEAD = 8 * TILE_ROWS };

KERNEL_FN void add_ask(const tt_gemm_t *g, size_t row)
{
    for (size_t r = row; r < row + TILE_ROWS && r < g->m; r++)
        for (size_t col = 0; col < g->n; col += 16)
            __builtin_prefetch(g->c + r * g->c_row + col, 1);
}

KERNEL_FN void add_part(const tt_gemm_t *g)
{
    const size_t full = g->m - g->m % TILE_ROWS;
    for (size_t row = 0; row < full; row += TILE_ROWS) {
        add_ask(g, row + ADD_AHEAD);
        tile_rows(g, TT_GEMM_ADD, row, row + TILE_ROWS, TILE_ROWS, TILE_COLS_ADD);
    }
    tile_rest(g, TT_GEMM_ADD, full);
}

static void gemm_add_wide(const tt_gemm_t *g)
{
    _Alignas(64) float panels[TT_BLOCK * ADD_COLS];
    tt_gemm_t part = *g;
    part.b = panels;
    part.b_panel = 16 * g->k;
    part.b_k = 16;
    for (size_t col = 0; col < g->n; col += ADD_COLS) {
        part.n = g->n - col < ADD_COLS ? g->n - col : ADD_COLS;
        part.c = g->c + col;
        for (size_t v = 0; 16 * v < part.n; v++)
            for (size_t k = 0; k < g->k; k++)
                v_store(panels + v * part.b_panel + 16 * k, v_load(g->b + (col / 16 + v) * g->b_panel + k * g->b_k));
        add_part(&part);
    }
}

static void kernel_gemm(const tt_gemm_t *g)
{
    switch (g->kind) {
    case TT_GEMM_TANH:
        gemm_kind(g, TT_GEMM_TANH);
        break;
    case TT_GEMM_RELU:
        gemm_kind(g, TT_GEMM_RELU);
        break;
    case TT_GEMM_D_TANH:
        gemm_kind(g, TT_GEMM_D_TANH);
        break;
    case TT_GEMM_D_RELU:
        gemm_kind(g, TT_GEMM_D_RELU);
        break;
    case TT_GEMM_SUM:
        gemm_kind(g, TT_GEMM_SUM);
        break;
    case TT_GEMM_D_NONE:
        gemm_kind(g, TT_GEMM_D_NONE);
        break;
    case TT_GEMM_ADD:
        if (g->n > ADD_COLS && g->k <= TT_BLOCK)
            gemm_add_wide(g);
        else
            gemm_kind(g, TT_GEMM_ADD);
        break;
    }
}

static void kernel_dots(
    size_t rows, size_t k16, const float *x, const float *w, const float *bias, size_t outs, float *out)
{
    for (size_t a = 0; a < outs; a++) {
        size_t r = 0;
        for (; r + 4 <= rows; r += 4) {
            v16 acc[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
            for (size_t k = 0; k < k16; k += 16) {
                const v16 weight = v_load(w + a * k16 + k);
                UNROLL for (size_t i = 0; i < 4; i++) acc[i] = v_fma(v_load(x + (r + i) * k16 + k), weight, acc[i]);
            }
            float sum[4];
            v_sum4(sum, acc[0], acc[1], acc[2], acc[3]);
            for (size_t i = 0; i < 4; i++)
                out[a * TT_BLOCK + r + i] = sum[i] + bias[a];
        }
        for (; r < rows; r++) {
            v16 acc = v_zero();
            for (size_t k = 0; k < k16; k += 16)
                acc = v_fma(v_load(x + r * k16 + k), v_load(w + a * k16 + k), acc);
            out[a * TT_BLOCK + r] = v_sum(acc) + bias[a];
        }
    }
}

KERNEL_FN void column_sum(size_t rows, const float *d, size_t d_row, bool first, float *out, size_t left, const int C)
{
    v16 acc[4];
    UNROLL for (int c = 0; c < C; c++) acc[c] = first       ? v_zero()
                                                : left < 16 ? v_load_n(out, left)
                                                            : v_load(out + 16 * c);
    for (size_t r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < C; c++) acc[c] = v_add(acc[c], v_load(d + r * d_row + 16 * (size_t)c));
    if (left < 16)
        v_store_n(out, acc[0], left);
    else
        UNROLL for (int c = 0; c < C; c++) v_store(out + 16 * c, acc[c]);
}

static void kernel_column_sum(size_t rows, size_t n, const float *d, size_t d_row, bool first, float *out)
{
    size_t col = 0;
    for (; col + 64 <= n; col += 64)
        column_sum(rows, d + col, d_row, first, out + col, 64, 4);
    for (; col < n; col += 16)
        column_sum(rows, d + col, d_row, first, out + col, n - col, 1);
}

static void kernel_gather(size_t rows, size_t k, const float *const *src, float *dst, size_t k16)
{
    for (size_t r = 0; r < rows; r++) {
        const float *from = src[r];
        float *to = dst + r * k16;
        size_t i = 0;
        for (; i + 16 <= k; i += 16)
            v_store(to + i, v_load(from + i));
        if (i < k)
            v_store(to + i, v_load_n(from + i, k - i));
    }
}

static void kernel_transpose(size_t rows, size_t cols, const float *src, float *dst)
{
    for (size_t i = 0; i < rows; i += 4) {
        float *panel = dst + i / 16 * cols * 16 + i % 16;
        const size_t height = rows - i < 4 ? rows - i : 4;
        size_t j = 0;
        if (height == 4)
            for (; j + 16 <= cols; j += 16)
                v_transpose4(src + i * cols + j, cols, panel + j * 16, 16);
        for (; j < cols; j++)
            for (size_t h = 0; h < height; h++)
                panel[j * 16 + h] = src[(i + h) * cols + j];
    }
}

KERNEL_FN float part_squares(size_t count, const float *x)
{
    v16 acc[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    size_t i = 0;
    for (; i + 64 <= count; i += 64)
        UNROLL for (size_t j = 0; j < 4; j++)
        {
            const v16 y = v_load(x + i + 16 * j);
            acc[j] = v_fma(y, y, acc[j]);
        }
    for (size_t j = 0; i < count; i += 16, j++) {
        const v16 y = v_load_n(x + i, count - i < 16 ? count - i : 16);
        acc[j] = v_fma(y, y, acc[j]);
    }
    return v_sum(v_add(v_add(acc[0], acc[1]), v_add(acc[2], acc[3])));
}

static float kernel_sum_squares(size_t count, const float *x)
{
    float sum = part_squares(count < TT_NORM_PART ? count : (size_t)TT_NORM_PART, x);
    for (size_t at = TT_NORM_PART; at < count; at += TT_NORM_PART)
        sum += part_squares(count - at < TT_NORM_PART ? count - at : (size_t)TT_NORM_PART, x + at);
    return sum;
}

/*  A vector of the flat arrays, the last one perhaps short. */
KERNEL_FN v16 part_load(const float *p, size_t left)
{
    return left < 16 ? v_load_n(p, left) : v_load(p);
}
KERNEL_FN void part_store(float *p, v16 a, size_t left)
{
    if (left < 16)
        v_store_n(p, a, left);
    else
        v_store(p, a);
}

/*  Four panels side by side: whole stretches are read, and few streams written. */
static void kernel_pack(size_t rows, size_t cols, const float *src, float *dst)
{
    for (size_t col = 0; col < cols; col += 64) {
        const size_t end = cols - col < 64 ? cols - col : 64;
        for (size_t k = 0; k < rows; k++)
            for (size_t j = 0; j < end; j += 16)
                v_store(dst + (col + j) * rows + 16 * k, part_load(src + k * cols + col + j, end - j));
    }
}

/*  A moment that fades away becomes 0 before it is too small for full precision: there a processor takes a hundred times as
 *  long (a unit that died would slow every step down), and it moves no weight any more. */
V16_FN v16 settle(v16 moment)
{
    const v16 size = v_max(moment, v_sub(v_zero(), moment));
    return v_keep_pos(v_sub(size, v_set(0x1p-100f)), moment);
}

/*  torch.optim.Adam: m += (g - m)(1 - b1); v = b2 v + (1 - b2) g^2; p -= lr' m / (sqrt(v) root_scale + eps). */
KERNEL_FN void adam_part(const tt_opt_step_t *o, size_t i, size_t left)
{
    const v16 g = v_mul(part_load(o->g + i, left), v_set(o->clip));
    v16 m = part_load(o->s0 + i, left), v = part_load(o->s1 + i, left);
    m = v_fma(v_sub(g, m), v_set(1.0f - o->beta1), m);
    v = v_fma(v_mul(g, v_set(1.0f - o->beta2)), g, v_mul(v, v_set(o->beta2)));
    const v16 denominator = v_fma(v_sqrt(v), v_set(o->root_scale), v_set(o->eps));
    const v16 p = v_sub(part_load(o->p + i, left), v_div(v_mul(m, v_set(o->lr)), denominator));
    part_store(o->s0 + i, settle(m), left);
    part_store(o->s1 + i, settle(v), left);
    part_store(o->p + i, p, left);
}

/*  torch.optim.SGD: buf = momentum buf + g; p -= lr buf. */
KERNEL_FN void sgd_part(const tt_opt_step_t *o, size_t i, size_t left)
{
    v16 step = v_mul(part_load(o->g + i, left), v_set(o->clip));
    if (o->s0) {
        step = v_fma(part_load(o->s0 + i, left), v_set(o->momentum), step);
        part_store(o->s0 + i, settle(step), left);
    }
    part_store(o->p + i, v_fnma(v_set(o->lr), step, part_load(o->p + i, left)), left);
}

/*  torch.optim.RMSprop: v = alpha v + (1 - alpha) g^2; step = g / (sqrt(v) + eps); buf = momentum buf + step. */
KERNEL_FN void rmsprop_part(const tt_opt_step_t *o, size_t i, size_t left)
{
    const v16 g = v_mul(part_load(o->g + i, left), v_set(o->clip));
    v16 v = part_load(o->s0 + i, left);
    v = v_fma(v_mul(g, v_set(1.0f - o->alpha)), g, v_mul(v, v_set(o->alpha)));
    v16 step = v_div(g, v_add(v_sqrt(v), v_set(o->eps)));
    part_store(o->s0 + i, settle(v), left);
    if (o->s1) {
        step = v_fma(part_load(o->s1 + i, left), v_set(o->momentum), step);
        part_store(o->s1 + i, settle(step), left);
    }
    part_store(o->p + i, v_fnma(v_set(o->lr), step, part_load(o->p + i, left)), left);
}

#define FOR_PARTS(part)                               \
    do {                                              \
        const size_t full = o->count - o->count % 16; \
        for (size_t i = 0; i < full; i += 16)         \
            part(o, i, 16);                           \
        if (full < o->count)                          \
            part(o, full, o->count - full);           \
    } while (0)

static void kernel_opt_step(const tt_opt_step_t *job)
{
    const tt_opt_step_t local = *job, *o = &local; /* a copy that the stores below cannot touch */
    switch (o->kind) {
    case TT_OPT_ADAM:
        FOR_PARTS(adam_part);
        break;
    case TT_OPT_SGD:
        FOR_PARTS(sgd_part);
        break;
    case TT_OPT_RMSPROP:
        FOR_PARTS(rmsprop_part);
        break;
    }
}

static void kernel_blend(size_t count, float tau, const float *from, float *to)
{
    for (size_t i = 0; i < count; i += 16) {
        const size_t left = count - i;
        const v16 there = part_load(to + i, left);
        part_store(to + i, v_fma(v_set(tau), v_sub(part_load(from + i, left), there), there), left);
    }
}

static void kernel_add(size_t count, const float *from, float *to)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        v_store(to + i, v_add(v_load(to + i), v_load(from + i)));
    if (i < count)
        v_store_n(to + i, v_add(v_load_n(to + i, count - i), v_load_n(from + i, count - i)), count - i);
}

static void kernel_tanh(size_t count, const float *x, float *y)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        v_store(y + i, v_tanh(v_load(x + i)));
    if (i < count)
        v_store_n(y + i, v_tanh(v_load_n(x + i, count - i)), count - i);
}

#define KERNELS_TABLE                                                                                               \
    {                                                                                                               \
        .name = V16_NAME, .gemm = kernel_gemm, .dots = kernel_dots, .column_sum = kernel_column_sum,                \
        .gather = kernel_gather, .transpose = kernel_transpose, .pack = kernel_pack,                                \
        .sum_squares = kernel_sum_squares, .opt_step = kernel_opt_step, .blend = kernel_blend, .add = kernel_add,   \
        .tanh = kernel_tanh, .grid = kernel_grid, .patch = kernel_patch, .pool = kernel_pool,                       \
        .pool_back = kernel_pool_back, .norm = kernel_norm, .norm_back = kernel_norm_back,                          \
        .activate = kernel_activate, .activate_back = kernel_activate_back, .widen = kernel_widen,                  \
        .bytes = kernel_bytes, .bytes_grad = kernel_bytes_grad, .lstm = kernel_lstm, .lstm_back = kernel_lstm_back, \
        .gru = kernel_gru, .gru_back = kernel_gru_back                                                              \
    }
