/*  kernels_encoder - what an encoder's layers ask of a GPU besides kernels.h: one function for each kind of launch.
 *
 *  Bits, memory, errors and threads are as kernels.h has them; what each computes is a row's part of cpu/ops.h, for all rows of a
 *  run. A picture is [height][width][channels], rows of pictures lie behind one another.
 *  Places of a window that lie outside the picture are left out of a chain and not multiplied by 0. */
#pragma once
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/nn/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*  A convolution, or a pooling window (out_c = in_c): as cpu_window_t. */
typedef struct {
    uint32_t in_h, in_w, in_c, out_h, out_w, out_c;
    uint32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} cuda_window_t;

typedef enum { CUDA_ACT_TANH, CUDA_ACT_RELU, CUDA_ACT_NONE } cuda_act_t;

/* ---- convolution (conv.cu): weight[kh][kw][in_c][out_c] ------------------------------------------------------------------ */

/*  out = act(bias + a chain from 0 over (kh, kw, c)). */
typedef struct {
    cuda_window_t window;
    cuda_act_t act;
    uint32_t rows;
    const float *in, *weight, *bias;
    float *out;
} cuda_conv_t;
void cuda_conv(cudaStream_t stream, const cuda_conv_t *job);

/*  d_in = a chain from 0 over (kh, kw, o), times the derivative of `before`, which gave `in`. */
typedef struct {
    cuda_window_t window;
    cuda_act_t before;
    uint32_t rows;
    const float *d, *weight, *in;
    float *d_in;
} cuda_conv_back_t;
void cuda_conv_back(cudaStream_t stream, const cuda_conv_back_t *job);

/*  grad[s][at ..] and grad[s][bias_at ..]: the sums of the shard's rows in their order, each a chain from 0 over its positions. What
 *  rows give lies in `partial` until it is added, as many rows at a time as fit there: at least one, better all. */
typedef struct {
    cuda_window_t window;
    const float *in, *d;
    size_t at, bias_at;
    float *partial;
    size_t partial_floats;
} cuda_conv_grads_t;
void cuda_conv_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_conv_grads_t *job);
/*  Floats that one row gives: of the weights and the bias. */
static inline size_t cuda_conv_row_floats(const cuda_window_t *w)
{
    return ((size_t)w->kernel_h * w->kernel_w * w->in_c + 1) * w->out_c;
}

/* ---- convolution as another library's products (unfold.cu, fast.h) -------------------------------------------------------- */

/*  out[(row, y, x)][(kh, kw, c)]: what each place of the output reads, side by side; 0 outside the picture. Arrays are aligned to 16. */
typedef struct {
    cuda_window_t window;
    uint32_t rows;
    const float *in;
    float *out;
} cuda_unfold_t;
void cuda_unfold(cudaStream_t stream, const cuda_unfold_t *job);

/*  d_in = the sum of what came to a number wherever it was read, d[(row, y, x)][(kh, kw, c)], in the order of (kh, kw), times the
 *  derivative of `before`, which gave `in`. */
typedef struct {
    cuda_window_t window;
    cuda_act_t before;
    uint32_t rows;
    const float *d, *in;
    float *d_in;
} cuda_unfold_back_t;
void cuda_unfold_back(cudaStream_t stream, const cuda_unfold_back_t *job);

/* ---- pooling (pool.cu) ------------------------------------------------------------------------------------------------------ */

/*  which[rows][out_h][out_w][out_c]: the number of the place that was taken; NULL: the mean. */
typedef struct {
    cuda_window_t window;
    cuda_act_t act;
    uint32_t rows;
    const float *in;
    float *out;
    uint8_t *which;
} cuda_pool_t;
void cuda_pool(cudaStream_t stream, const cuda_pool_t *job);

/*  d_in is written, with the derivative of `before`, which gave `in`. */
typedef struct {
    cuda_window_t window;
    cuda_act_t before;
    uint32_t rows;
    const float *d, *in;
    const uint8_t *which;
    float *d_in;
} cuda_pool_back_t;
void cuda_pool_back(cudaStream_t stream, const cuda_pool_back_t *job);

/* ---- layer norm (layer_norm.cu) ---------------------------------------------------------------------------------------------- */

enum { CUDA_NORM_MOMENTS = 2 }; /* floats of a row kept for the way back: mean, 1 / deviation */

typedef struct {
    cuda_act_t act;
    uint32_t rows, count;
    const float *x, *gain, *bias;
    float *y, *moments;
} cuda_layer_norm_t;
void cuda_layer_norm(cudaStream_t stream, const cuda_layer_norm_t *job);

/*  d_x is written, with the derivative of `before`, which gave x. */
typedef struct {
    cuda_act_t before;
    uint32_t rows, count;
    const float *x, *moments, *gain, *d;
    float *d_x;
} cuda_layer_norm_back_t;
void cuda_layer_norm_back(cudaStream_t stream, const cuda_layer_norm_back_t *job);

/*  grad[s][gain_at ..] and grad[s][bias_at ..]: chains over the shard's rows. */
typedef struct {
    uint32_t count;
    const float *x, *moments, *d;
    size_t gain_at, bias_at;
} cuda_layer_norm_grads_t;
void cuda_layer_norm_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_layer_norm_grads_t *job);

/* ---- element by element (elements.cu) ----------------------------------------------------------------------------------------- */

/*  y[r][i] = act(x[r][i] + more[r][i]); more NULL: of x alone. Rows of x and more are `count` long, those of y y_row. */
typedef struct {
    cuda_act_t act;
    uint32_t rows, count;
    const float *x, *more;
    float *y;
    size_t y_row;
} cuda_activate_t;
void cuda_activate(cudaStream_t stream, const cuda_activate_t *job);

/*  d_x[r][i] = d[r][i] times the derivative of `before`, which gave x; add: d_x + that. Rows of d are d_row long. */
typedef struct {
    cuda_act_t before;
    bool add;
    uint32_t rows, count;
    const float *d, *x;
    size_t d_row;
    float *d_x;
} cuda_activate_back_t;
void cuda_activate_back(cudaStream_t stream, const cuda_activate_back_t *job);

/* ---- what is read (widen.cu) ---------------------------------------------------------------------------------------------------- */

/*  out[i][p][k][c] = act(number at + (k pixels + p) deep + c of row `row[i]` (NULL: row i)): pictures [planes][pixels][deep] become
 *  [pixels][planes deep]; a vector is one plane of one pixel. Bytes are divided by the divisor, 1 or 255, correctly rounded. Rows of
 *  out are out_row floats apart. */
typedef struct {
    cuda_act_t act;
    bool bytes_each; /* numbers are bytes; else floats           */
    float divisor;
    uint32_t count, planes, pixels, deep;
    const uint8_t *rows;
    size_t row_bytes;
    const uint32_t *row;
    size_t at; /* byte of the row */
    float *out;
    size_t out_row;
} cuda_widen_t;
void cuda_widen(cudaStream_t stream, const cuda_widen_t *job);

/* ---- learned vectors (embed.cu): a part is `frames` times `choices` one-hot groups of floats, the groups of one choice alike --------- */

#define CUDA_NO_CHOICE UINT32_MAX /* all of a group is 0 */

/*  chosen[row][frame][choices], the entry of one choice: `first` + the place of the first number that is not 0, or CUDA_NO_CHOICE. */
typedef struct {
    uint32_t count, frames, choices, choice;
    uint32_t n, first;   /* numbers of the group; its first row in the table          */
    uint32_t deep;       /* floats from a frame's group to the next frame's           */
    const uint8_t *rows; /* as cuda_widen_t has them; at: the byte of the first group */
    size_t row_bytes;
    const uint32_t *row;
    size_t at;
    uint32_t *chosen;
} cuda_choose_t;
void cuda_choose(cudaStream_t stream, const cuda_choose_t *job);

/*  out[r][g units + u] = act(table[chosen[r][g]][u]), 0 where nothing was chosen; groups: frames times choices. */
typedef struct {
    cuda_act_t act;
    uint32_t rows, groups, units;
    const uint32_t *chosen;
    const float *table;
    float *out;
    size_t out_row;
} cuda_embed_t;
void cuda_embed(cudaStream_t stream, const cuda_embed_t *job);

/*  grad[s][at + t units + u], t of `first` .. first + n - 1: a chain from 0 over the shard's rows and their frames that chose t. */
typedef struct {
    uint32_t groups, choices, choice;
    uint32_t n, first, units;
    const uint32_t *chosen;
    const float *d; /* [r][g units + u], rows d_row floats apart */
    size_t d_row, at;
} cuda_embed_grads_t;
void cuda_embed_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_embed_grads_t *job);

#ifdef __cplusplus
}
#endif
