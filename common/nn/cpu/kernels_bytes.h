/*  kernels_bytes - products of rows of bytes of which most are 0, for every build; behind kernels_impl.h and under its rules.
 *
 *  The numbers of those that are not 0 are listed first, CHUNK bytes at a time, without a branch that depends on where they are;
 *  then a chain runs over the list alone. What it leaves out is fma(0, w, sum) = sum: for finite w, and a sum that is not -0. */
#pragma once
#include <string.h>
#include "common/nn/cpu/kernels_impl.h"

enum { BYTES_CHUNK = 1024, BYTES_SLACK = 64 };

#ifdef V16_WIDE
enum { BYTES_COLS = 8 };
#else
enum { BYTES_COLS = 4 };
#endif

/*  Numbers of the bits, from `first` on, to list; four at a time, so up to three too many are written. */
KERNEL_FN size_t list_bits(uint64_t bits, uint32_t first, uint32_t *list)
{
    const size_t count = (size_t)__builtin_popcountll(bits);
    for (size_t i = 0; i < count; i += 4)
        for (size_t j = 0; j < 4; j++) {
            list[i + j] = first + (uint32_t)__builtin_ctzll(bits | 1ull << 63);
            bits &= bits - 1;
        }
    return count;
}

/*  Which of `count` <= BYTES_CHUNK bytes are not 0. */
static size_t list_nonzero(const uint8_t *x, size_t count, uint32_t list[BYTES_CHUNK + BYTES_SLACK])
{
    size_t listed = 0, i = 0;
    for (; i + 64 <= count; i += 64)
        listed += list_bits(v_nonzero64(x + i), (uint32_t)i, list + listed);
    if (i < count) {
        uint8_t rest[64] = {0};
        memcpy(rest, x + i, count - i);
        listed += list_bits(v_nonzero64(rest), (uint32_t)i, list + listed);
    }
    return listed;
}

/*  A chunk of one row: its bytes that are not 0, and where in the row it lies. */
typedef struct {
    const uint8_t *x;
    const uint32_t *list;
    size_t count, first;
    bool last;
} bytes_chunk_t;

KERNEL_FN void bytes_tile(const tt_gemm_t *g, const bytes_chunk_t *chunk, size_t row, size_t vector, const int C)
{
    v16 acc[BYTES_COLS];
    const size_t col = 16 * vector;
    float *c = g->c + row * g->c_row + col;
    const float *start = chunk->first ? c : g->bias + col;
    UNROLL for (int i = 0; i < C; i++) acc[i] = v_load(start + 16 * i);
    const float *b = g->b + vector * g->b_panel + chunk->first * g->b_k;
    for (size_t n = 0; n < chunk->count; n++) {
        const uint32_t k = chunk->list[n];
        const v16 x = v_set((float)chunk->x[k]);
        UNROLL for (int i = 0; i < C; i++) acc[i] = v_fma(x, v_load(b + k * g->b_k + (size_t)i * g->b_panel), acc[i]);
    }
    const tt_gemm_kind_t kind = chunk->last ? g->kind : TT_GEMM_SUM;
    UNROLL for (int i = 0; i < C; i++) tile_end(g, kind, row, col + 16 * (size_t)i, 16, acc[i]);
}

static void bytes_columns(const tt_gemm_t *g, const bytes_chunk_t *chunk, size_t row)
{
    const size_t vectors = (g->n + 15) / 16;
    size_t v = 0;
    for (; v + BYTES_COLS <= vectors; v += BYTES_COLS)
        bytes_tile(g, chunk, row, v, BYTES_COLS);
    for (; v + BYTES_COLS / 2 <= vectors; v += BYTES_COLS / 2)
        bytes_tile(g, chunk, row, v, BYTES_COLS / 2);
    for (; v < vectors; v++)
        bytes_tile(g, chunk, row, v, 1);
}

static void kernel_bytes(const tt_gemm_t *job, const uint8_t *const *row)
{
    uint32_t list[BYTES_CHUNK + BYTES_SLACK];
    for (size_t m = 0; m < job->m; m++)
        for (size_t k = 0; k < job->k; k += BYTES_CHUNK) {
            const size_t left = job->k - k, count = left < BYTES_CHUNK ? left : BYTES_CHUNK;
            const bytes_chunk_t chunk = {.x = row[m] + k,
                .list = list,
                .count = list_nonzero(row[m] + k, count, list),
                .first = k,
                .last = count == left};
            bytes_columns(job, &chunk, m);
        }
}

/*  c[k] += x[k] d for the listed k: C vectors from column col on, or with `tail` one that is not whole. */
KERNEL_FN void bytes_grad_tile(
    const tt_gemm_t *g, const bytes_chunk_t *chunk, size_t row, size_t col, const bool tail, const int C)
{
    v16 d[4];
    const size_t there = tail ? g->n - col : 16;
    const float *from = g->b + col / 16 * g->b_panel + row * g->b_k;
    UNROLL for (int i = 0; i < C; i++) d[i] = v_load(from + (size_t)i * g->b_panel);
    for (size_t n = 0; n < chunk->count; n++) {
        const uint32_t k = chunk->list[n];
        const v16 x = v_set((float)chunk->x[k]);
        float *c = g->c + (chunk->first + k) * g->c_row + col;
        UNROLL for (int i = 0; i < C; i++) part_store(c + 16 * i, v_fma(x, d[i], part_load(c + 16 * i, there)), there);
    }
}

static void bytes_grad_columns(const tt_gemm_t *g, const bytes_chunk_t *chunk, size_t row)
{
    size_t col = 0;
    for (; col + 64 <= g->n; col += 64)
        bytes_grad_tile(g, chunk, row, col, false, 4);
    for (; col + 16 <= g->n; col += 16)
        bytes_grad_tile(g, chunk, row, col, false, 1);
    if (col < g->n)
        bytes_grad_tile(g, chunk, row, col, true, 1);
}

static void kernel_bytes_grad(const tt_gemm_t *job, const uint8_t *const *row)
{
    uint32_t list[BYTES_CHUNK + BYTES_SLACK];
    for (size_t m = 0; job->first && m < job->m; m++)
        memset(job->c + m * job->c_row, 0, job->n * sizeof(float));
    for (size_t r = 0; r < job->k; r++)
        for (size_t m = 0; m < job->m; m += BYTES_CHUNK) {
            const size_t count = job->m - m < BYTES_CHUNK ? job->m - m : BYTES_CHUNK;
            const bytes_chunk_t chunk = {
                .x = row[r] + m, .list = list, .count = list_nonzero(row[r] + m, count, list), .first = m};
            bytes_grad_columns(job, &chunk, r);
        }
}
