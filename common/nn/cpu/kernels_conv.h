/*  kernels_conv - the two products that convolutions are made of, for every build; behind kernels_impl.h and under its rules.
 *
 *  A tile is R rows x C vectors of accumulators, of which each is a chain of its own. Rows are shared out evenly (49 positions are
 *  7 tiles of 7, not 6 of 8 and one alone, whose few chains would wait for one another). A row of `grid` has a pointer, for it may
 *  lie anywhere in the picture; rows of `patch` are numbers that lie side by side. */
#pragma once
#include <math.h>
#include "common/nn/cpu/kernels_impl.h"

#ifdef V16_WIDE
enum { TILE_R = 8, TILE_R_NARROW = 12 };
#else
enum { TILE_R = 6, TILE_R_NARROW = 6 };
#endif

/*  Vectors of a tile of R rows: with fewer rows there are more, so that 8 chains or more are in flight. A picture of one vector of
 *  channels has TILE_R_NARROW rows in `patch`, which needs no register for each. */
KERNEL_FN int tile_width(int R)
{
#ifdef V16_WIDE
    return R <= 2 ? 4 : R <= TILE_R ? 2 : 1;
#else
    return R == 1 ? 4 : R == 2 ? 2 : 1;
#endif
}

typedef struct {
    const float *a;
    float *c;
    const float *of;
} grid_row_t;

/*  A position: its offsets, and its column in the picture. */
typedef struct {
    size_t a, c, x;
} grid_walk_t;

/*  Where the rows of the next tile lie. */
KERNEL_FN void grid_rows(const tt_grid_t *g, grid_row_t *row, size_t rows, grid_walk_t *walk)
{
    for (size_t r = 0; r < rows; r++) {
        row[r] = (grid_row_t){g->a + walk->a, g->c + walk->c, g->of ? g->of + walk->c : NULL};
        walk->a += g->a_x;
        walk->c += g->c_x;
        if (++walk->x == g->w) {
            walk->x = 0;
            walk->a += g->a_y - g->w * g->a_x;
            walk->c += g->c_y - g->w * g->c_x;
        }
    }
}

/*  Sums, R x C of them, with bias and tanh to their places: long, and once a tile, so it is not inlined in each. */
static __attribute__((noinline)) void grid_tanh(
    const tt_grid_t *g, const v16 *sum, const grid_row_t *row, size_t col, size_t R, size_t C)
{
    for (size_t c = 0; c < C; c++, col += 16) {
        const size_t left = g->n - col;
        const v16 bias = part_load(g->bias + col, left);
        for (size_t r = 0; r < R; r++)
            part_store(row[r].c + col, v_tanh(v_add(sum[r * C + c], bias)), left);
    }
}

/*  The same with relu, or as they are: then nothing lies below the floor. */
KERNEL_FN void grid_end(
    const tt_grid_t *g, const grid_row_t *row, size_t col, v16 acc[TILE_R][4], const int R, const int C)
{
    const v16 floor = v_set(g->kind == TT_GEMM_RELU ? 0.0f : -INFINITY);
    UNROLL for (int c = 0; c < C; c++)
    {
        const size_t at = col + 16 * (size_t)c, left = g->n - at;
        const v16 bias = part_load(g->bias + at, left);
        UNROLL for (int r = 0; r < R; r++) part_store(row[r].c + at, v_max(floor, v_add(acc[r][c], bias)), left);
    }
}

/*  Sums with the derivative of tanh: as grid_tanh. */
static __attribute__((noinline)) void grid_d_tanh(
    const tt_grid_t *g, const v16 *sum, const grid_row_t *row, size_t col, size_t R, size_t C)
{
    for (size_t c = 0; c < C; c++, col += 16) {
        const size_t left = g->n - col;
        for (size_t r = 0; r < R; r++) {
            const v16 y = part_load(row[r].of + col, left);
            part_store(row[r].c + col, v_mul(sum[r * C + c], v_fnma(y, y, v_set(1.0f))), left);
        }
    }
}

/*  With that of relu, or as they are. */
KERNEL_FN void grid_end_back(
    const tt_grid_t *g, const grid_row_t *row, size_t col, v16 acc[TILE_R][4], const int R, const int C)
{
    const bool relu = g->kind == TT_GEMM_D_RELU;
    UNROLL for (int c = 0; c < C; c++)
    {
        const size_t at = col + 16 * (size_t)c, left = g->n - at;
        UNROLL for (int r = 0; r < R; r++)
        {
            const v16 sum = relu ? v_keep_pos(part_load(row[r].of + at, left), acc[r][c]) : acc[r][c];
            part_store(row[r].c + at, sum, left);
        }
    }
}

/*  acc += what R positions read from number `first` on, times C vectors of weights. */
KERNEL_FN void grid_run(const tt_grid_t *g, const float *const from[TILE_R], ptrdiff_t first, const float *weight,
    v16 acc[TILE_R][4], const int R, const int C)
{
    const size_t b_panel = g->b_panel;
    for (ptrdiff_t k = first, end = first + (ptrdiff_t)g->run; k < end; k++) {
        v16 w[4];
        UNROLL for (int c = 0; c < C; c++) w[c] = v_load(weight + (size_t)c * b_panel);
        UNROLL for (int r = 0; r < R; r++)
        {
            const v16 x = v_set(from[r][k]);
            UNROLL for (int c = 0; c < C; c++) acc[r][c] = v_fma(x, w[c], acc[r][c]);
        }
        weight += 16;
    }
}

/*  acc = all that they read. Forward there is one step to a piece. */
KERNEL_FN void grid_sums(const tt_grid_t *g, const grid_row_t *row, size_t vector, const bool back, v16 acc[TILE_R][4],
    const int R, const int C)
{
    const float *from[TILE_R];
    UNROLL for (int r = 0; r < R; r++)
    {
        from[r] = row[r].a;
        UNROLL for (int c = 0; c < C; c++) acc[r][c] = v_zero();
    }
    const float *b = g->b + vector * g->b_panel;
    const size_t steps = back ? g->steps : 1;
    for (size_t piece = 0; piece < g->pieces; piece++)
        for (size_t step = 0; step < steps; step++)
            grid_run(g, from, (ptrdiff_t)piece * g->a_piece + (ptrdiff_t)step * g->a_step,
                b + piece * g->b_piece + step * g->b_step, acc, R, C);
}

/*  R, C and `back` are constants where this is inlined. */
KERNEL_FN void grid_tile(
    const tt_grid_t *g, const grid_row_t *row, size_t vector, const bool back, const int R, const int C)
{
    v16 acc[TILE_R][4];
    const size_t col = 16 * vector;
    grid_sums(g, row, vector, back, acc, R, C);
    if (g->kind != (back ? TT_GEMM_D_TANH : TT_GEMM_TANH)) {
        if (back)
            grid_end_back(g, row, col, acc, R, C);
        else
            grid_end(g, row, col, acc, R, C);
        return;
    }
    v16 sum[TILE_R * 4]; /* a copy: what another function gets does not stay in registers */
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int c = 0; c < C; c++) sum[r * C + c] = acc[r][c];
    }
    (back ? grid_d_tanh : grid_tanh)(g, sum, row, col, (size_t)R, (size_t)C);
}

/*  All columns of R rows. */
KERNEL_FN void grid_columns(const tt_grid_t *g, const grid_row_t *row, const bool back, const int R)
{
    const size_t vectors = (g->n + 15) / 16;
    size_t v = 0;
    if (tile_width(R) >= 4)
        for (; v + 4 <= vectors; v += 4)
            grid_tile(g, row, v, back, R, 4);
    if (tile_width(R) >= 2)
        for (; v + 2 <= vectors; v += 2)
            grid_tile(g, row, v, back, R, 2);
    for (; v < vectors; v++)
        grid_tile(g, row, v, back, R, 1);
}

KERNEL_FN void grid_some(const tt_grid_t *g, const grid_row_t *row, const bool back, size_t rows)
{
    switch (rows) {
    case 1:
        grid_columns(g, row, back, 1);
        break;
    case 2:
        grid_columns(g, row, back, 2);
        break;
    case 3:
        grid_columns(g, row, back, 3);
        break;
    case 4:
        grid_columns(g, row, back, 4);
        break;
    case 5:
        grid_columns(g, row, back, 5);
        break;
    case 6:
        grid_columns(g, row, back, 6);
        break;
#ifdef V16_WIDE
    case 7:
        grid_columns(g, row, back, 7);
        break;
    case 8:
        grid_columns(g, row, back, 8);
        break;
#endif
    default:
        break;
    }
}

static void kernel_grid(const tt_grid_t *job)
{
    const tt_grid_t local = *job, *g = &local; /* a copy that the stores cannot touch */
    const size_t all = g->h * g->w, tiles = (all + TILE_R - 1) / TILE_R;
    grid_walk_t walk = {0};
    grid_row_t row[TILE_R];
    const bool back = g->kind == TT_GEMM_D_TANH || g->kind == TT_GEMM_D_RELU || g->kind == TT_GEMM_D_NONE;
    for (size_t t = 0; t < tiles; t++) {
        const size_t rows = all * (t + 1) / tiles - all * t / tiles;
        grid_rows(g, row, rows, &walk);
        if (back)
            grid_some(g, row, true, rows);
        else
            grid_some(g, row, false, rows);
    }
}

/*  Numbers row .. row + R - 1 of the pieces, C vectors of columns of which the last has `left`; R, C and `tail` (C = 1: a vector that
 *  is not whole) are constants where this is inlined. */
KERNEL_FN void patch_tile(const tt_patch_t *p, size_t row, size_t col, const bool tail, const int R, const int C)
{
    v16 acc[TILE_R_NARROW][4];
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int c = 0; c < C; c++) acc[r][c] = v_zero();
    }
    const size_t left = p->n - col, a_x = p->a_x, d_x = p->d_x;
    for (size_t y = 0; y < p->h; y++) {
        const float *a = p->a + y * p->a_y + row, *d = p->d + y * p->d_y + col;
        for (size_t x = p->w; x; x--) {
            v16 w[4];
            UNROLL for (int c = 0; c < C; c++) w[c] = tail ? v_load_n(d, left) : v_load(d + 16 * c);
            UNROLL for (int r = 0; r < R; r++)
            {
                const v16 number = v_set(a[r]);
                UNROLL for (int c = 0; c < C; c++) acc[r][c] = v_fma(number, w[c], acc[r][c]);
            }
            if (C > 1)
                __builtin_prefetch(a + p->a_y); /* a picture's next row may come from far away */
            a += a_x;
            d += d_x;
        }
    }
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int c = 0; c < C; c++)
        {
            float *to = p->c + (row + (size_t)r) * p->c_row + col + 16 * c;
            const size_t there = tail ? left : 16;
            part_store(to, p->first ? acc[r][c] : v_add(part_load(to, there), acc[r][c]), there);
        }
    }
}

KERNEL_FN void patch_columns(const tt_patch_t *p, size_t row, const int R)
{
    size_t col = 0;
    if (tile_width(R) >= 4)
        for (; col + 64 <= p->n; col += 64)
            patch_tile(p, row, col, false, R, 4);
    if (tile_width(R) >= 2)
        for (; col + 32 <= p->n; col += 32)
            patch_tile(p, row, col, false, R, 2);
    for (; col + 16 <= p->n; col += 16)
        patch_tile(p, row, col, false, R, 1);
    if (col < p->n)
        patch_tile(p, row, col, true, R, 1);
}

static void kernel_patch(const tt_patch_t *job)
{
    const tt_patch_t local = *job, *p = &local;
    const size_t most = p->n <= 16 ? TILE_R_NARROW : TILE_R, tiles = (p->m + most - 1) / most;
    for (size_t t = 0; t < tiles; t++) {
        const size_t row = p->m * t / tiles;
        switch (p->m * (t + 1) / tiles - row) {
        case 1:
            patch_columns(p, row, 1);
            break;
        case 2:
            patch_columns(p, row, 2);
            break;
        case 3:
            patch_columns(p, row, 3);
            break;
        case 4:
            patch_columns(p, row, 4);
            break;
        case 5:
            patch_columns(p, row, 5);
            break;
        case 6:
            patch_columns(p, row, 6);
            break;
#ifdef V16_WIDE
        case 7:
            patch_columns(p, row, 7);
            break;
        case 8:
            patch_columns(p, row, 8);
            break;
        case 9:
            patch_columns(p, row, 9);
            break;
        case 10:
            patch_columns(p, row, 10);
            break;
        case 11:
            patch_columns(p, row, 11);
            break;
        case 12:
            patch_columns(p, row, 12);
            break;
#endif
        default:
            break;
        }
    }
}
