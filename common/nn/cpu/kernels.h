/*  kernels - the inner loops of the CPU backend, as a table with one entry for each build of kernels_impl.h.
 *
 *  Every entry of every build computes the same bits: an element of a product is one chain of fused multiply-adds in
 *  the order of k, a dot product runs in sixteen lanes that are added 16 -> 8 -> 4 -> 2 -> 1, and everything else is
 *  one correctly rounded operation at a time. Tiles change how fast, never what.
 *
 *  Shapes:  "padded" rows are 16-float multiples whose unused lanes are zero; memory is 64-byte aligned unless said.
 *  Threads: pure functions of their arguments. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/nn/nn.h"

/*  What happens to an element of the product. */
typedef enum {
    TT_GEMM_TANH,   /* c = tanh(bias + sum)                                  */
    TT_GEMM_RELU,   /* c = max(0, bias + sum)                                */
    TT_GEMM_D_TANH, /* c = sum * (1 - h^2), h the layer's output             */
    TT_GEMM_D_RELU, /* c = h > 0 ? sum : 0                                   */
    TT_GEMM_SUM,    /* c = bias + sum                                        */
    TT_GEMM_D_NONE, /* c = sum                                               */
    TT_GEMM_ADD     /* c += sum, or c = sum when `first`; c need not be padded or aligned */
} tt_gemm_kind_t;

/*  c[m][n] = kind(sum over k of a(m, k) * b(k, n)), k = 0, 1, ... in this order.
 *  a(m, k) = a[m * a_row + k * a_k]. Columns of b come in panels of 16: b(k, n) = b[n/16 * b_panel + k * b_k + n%16]. */
typedef struct {
    tt_gemm_kind_t kind;
    bool first;
    size_t m, n, k;
    const float *a;
    size_t a_row, a_k;
    const float *b; /* padded columns */
    size_t b_panel, b_k;
    float *c;
    size_t c_row;
    const float *bias; /* padded [n]          */
    const float *h;    /* as c, row h_row     */
    size_t h_row;
} tt_gemm_t;

/*  Positions of a picture times weights: c(y, x, n) for y < h, x < w, of which each reads `pieces` x `steps` x `run` numbers, in this
 *  order: number i of step j of piece p is a[y * a_y + x * a_x + p * a_piece + j * a_step + i], and meets
 *  b[n / 16 * b_panel + p * b_piece + j * b_step + i * 16 + n % 16]; c(y, x, n) = c[y * c_y + x * c_x + n].
 *  TANH, RELU, SUM: a chain from 0, then the bias, then the activation. D_TANH, D_RELU, D_NONE: a chain from 0, times the derivative
 *  of what gave `of`, which lies as c does. Nothing but b need be aligned or padded. */
typedef struct {
    tt_gemm_kind_t kind;
    size_t h, w, n, pieces, steps, run;
    const float *a;
    size_t a_y, a_x;
    ptrdiff_t a_piece, a_step; /* a way back reads backwards */
    const float *b;
    size_t b_panel, b_piece, b_step;
    float *c;
    size_t c_y, c_x;
    const float *bias, *of;
} tt_grid_t;

/*  What positions of a picture give to weights: c[m][n] (+)= sum over y < h, x < w, a chain from 0 in the order (y, x), of
 *  a[y * a_y + x * a_x + m] * d[y * d_y + x * d_x + n]; `first`: written, else added. Nothing need be aligned or padded. */
typedef struct {
    bool first;
    size_t h, w, m, n;
    const float *a;
    size_t a_y, a_x;
    const float *d;
    size_t d_y, d_x;
    float *c;
    size_t c_row;
} tt_patch_t;

/*  The largest of `places` numbers for y < h, x < w and each channel: of in[y * in_y + x * in_x + at[i] + channel], i = 0 .. places - 1,
 *  the first that no other exceeds, or the first NaN, and in `which` its number[i]. The way back adds d to the same place of d_in.
 *  which NULL: their mean, which is share times their sum in this order; the way back adds share times d to each. */
typedef struct {
    size_t h, w, channels, places;
    const size_t *at;
    const uint8_t *number;
    float share;
    size_t in_y, in_x, out_y, out_x; /* the last two: of out, which, d */
} tt_pool_t;

/*  A step of a recurrent layer, some rows of it: formulas in common/nn/math/recurrent.h. [row]: numbers of the units, zeros up to a whole
 *  vector behind; gates: [gates x units], from one row to the next gates_row. On the way forward `gates` is what was read and hh what was
 *  carried, each times its weights, and then what the gates gave; on the way back what they gave, and then what comes to them. */
typedef struct {
    size_t rows, units, row, gates_row;
    float *gates, *hh; /* hh: of a GRU on the way back, its part for n: what it was, and then what comes to it    */
    const float *h_before, *c_before;
    float *h, *c, *squashed; /* of an LSTM: c, which may be c_before on the way forward, and its tanh                 */
    float *d_h; /* back: what came to h; of a GRU then what goes to h_before past the gates                       */
    float *d_c; /* of an LSTM: what came to c; then what goes to c_before                                         */
} tt_cell_t;

/*  One optimiser step over a flat vector. */
typedef struct {
    tt_opt_kind_t kind;
    size_t count;
    float *p;
    const float *g;
    float *s0, *s1;                 /* Adam: m, v; SGD: momentum; RMSProp: square average, momentum; NULL when unused */
    float clip;                     /* every gradient is multiplied by it       */
    float lr;                       /* Adam: already divided by 1 - beta1^t     */
    float beta1, beta2, root_scale; /* Adam; root_scale = 1 / sqrt(1 - beta2^t) */
    float alpha, momentum, eps;
} tt_opt_step_t;

typedef struct {
    const char *name;
    void (*gemm)(const tt_gemm_t *job);
    /*  out[a * TT_BLOCK + r] = bias[a] + dot(x[r], w[a]); rows of x and w are `k16` floats, padded. */
    void (*dots)(size_t rows, size_t k16, const float *x, const float *w, const float *bias, size_t outs, float *out);
    /*  out[n] (+)= sum over rows of d[r][n], in row order; d padded with stride d_row, out plain. */
    void (*column_sum)(size_t rows, size_t n, const float *d, size_t d_row, bool first, float *out);
    /*  dst[r][0 .. k16) = src[r][0 .. k), zeros behind. */
    void (*gather)(size_t rows, size_t k, const float *const *src, float *dst, size_t k16);
    /*  dst, in panels of 16 columns of k = cols, gets the transpose of src[rows][cols]. */
    void (*transpose)(size_t rows, size_t cols, const float *src, float *dst);
    /*  dst, in panels of 16 columns, gets src[rows][cols], and zeros behind the last column. */
    void (*pack)(size_t rows, size_t cols, const float *src, float *dst);
    /*  Sum of squares: of each TT_NORM_PART floats 64 lanes i mod 64, then 64 -> 16 as (0+1)+(2+3), then the canonical order;
     *  these are added first to last. */
    float (*sum_squares)(size_t count, const float *x);
    void (*opt_step)(const tt_opt_step_t *job);
    /*  to[i] = fma(tau, from[i] - to[i], to[i]). */
    void (*blend)(size_t count, float tau, const float *from, float *to);
    /*  to[i] += from[i]. */
    void (*add)(size_t count, const float *from, float *to);
    void (*tanh)(size_t count, const float *x, float *y);
    void (*grid)(const tt_grid_t *job);
    void (*patch)(const tt_patch_t *job);
    void (*pool)(const tt_pool_t *job, const float *in, float *out, uint8_t *which);
    void (*pool_back)(const tt_pool_t *job, const float *d, const uint8_t *which, float *d_in);
    /*  The rest is as ops.h has it. */
    void (*norm)(size_t count, const float *x, const float *gain, const float *bias, float *y, float *moments);
    void (*norm_back)(size_t count, const float *x, const float *moments, const float *gain, const float *d, bool first,
        float *d_gain, float *d_bias, float *d_x);
    void (*activate)(tt_nn_activation_t activation, size_t count, const float *x, float *y);
    void (*activate_back)(tt_nn_activation_t activation, size_t count, const float *y, const float *d, float *d_x);
    void (*widen)(size_t count, const uint8_t *in, float divisor, float *out);
    void (*bytes)(const tt_gemm_t *job, const uint8_t *const *row);
    void (*bytes_grad)(const tt_gemm_t *job, const uint8_t *const *row);
    void (*lstm)(const tt_cell_t *job);
    void (*lstm_back)(const tt_cell_t *job);
    void (*gru)(const tt_cell_t *job);
    void (*gru_back)(const tt_cell_t *job);
} tt_kernels_t;

extern const tt_kernels_t tt_kernels_portable;
#ifdef TT_X86_KERNELS
extern const tt_kernels_t tt_kernels_avx2;
extern const tt_kernels_t tt_kernels_avx512;
#endif
