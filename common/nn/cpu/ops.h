/*  ops - what an encoder's layers do to one row, each a function of the kernels: convolution, pooling, layer norm, activations,
 *  widening. encoder.c puts them together; dense layers are products of whole blocks (tower.c).
 *
 *  Orders of sums are docs/internals/nn.md's: every build of the kernels gives the same bits, and a row's result does not know
 *  its neighbours.
 *
 *  Shapes:  a picture is [height][width][channels] floats without padding, 64-byte aligned; so are vectors. What comes in and what
 *           goes out never overlap unless said.
 *  Threads: pure functions of their arguments; scratch belongs to a lane. */
#pragma once
#include "common/nn/cpu/kernels.h"

/*  A convolution, or a pooling window (out_c = in_c). out = (in + 2 pad - kernel) / stride + 1; pad < kernel, so that there is no window
 *  without a number of the picture. */
typedef struct {
    uint32_t in_h, in_w, in_c, out_h, out_w, out_c;
    uint32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} cpu_window_t;

/* ---- convolution: out[y][x][o] = activation(bias[o] + sum over (kh, kw, c) of in[..] * weight[kh][kw][c][o]) ---------------- */

/*  Floats of the copies of weight[kh][kw][in_c][out_c] that the forward and the input's gradient read, 64-byte aligned; and make
 *  them. */
size_t cpu_conv_packed(const cpu_window_t *shape);
size_t cpu_conv_packed_back(const cpu_window_t *shape);
void cpu_conv_pack(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *weight, float *packed);
void cpu_conv_pack_back(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *weight, float *packed);

/*  bias[out_c] need not be aligned. */
void cpu_conv_forward(const tt_kernels_t *kernels, const cpu_window_t *shape, tt_nn_activation_t activation,
    const float *packed, const float *bias, const float *in, float *out);
/*  d: what came to the output, with the activation's derivative applied. Adds to weight[kh][kw][in_c][out_c] and bias[out_c] what
 *  this row gives: a chain over positions from 0, then added; with `first` it is written. Neither need be aligned. */
void cpu_conv_param_grad(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *in, const float *d,
    bool first, float *weight, float *bias);
/*  d_in is written, with the derivative of the activation that gave `in`. */
void cpu_conv_input_grad(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *packed_back,
    const float *d, tt_nn_activation_t before, const float *in, float *d_in);

/* ---- pooling ------------------------------------------------------------------------------------------------------------------ */

/*  kernel_h * kernel_w <= 256. which[out_h][out_w][out_c]: number kh * kernel_w + kw of the first of the largest; of NaN the first.
 *  which NULL: the mean, a chain of additions over (kh, kw), times the rounded 1 / (kernel_h * kernel_w); zeros of the padding count. */
void cpu_pool_forward(
    const tt_kernels_t *kernels, const cpu_window_t *shape, const float *in, float *out, uint8_t *which);
/*  d_in is written; windows that overlap add in the order (y, x). */
void cpu_pool_backward(
    const tt_kernels_t *kernels, const cpu_window_t *shape, const float *d, const uint8_t *which, float *d_in);

/* ---- layer norm: y = (x - mean) / sqrt(variance + eps) * gain + bias, of `count` numbers ---------------------------------------- */

enum { CPU_NORM_MOMENTS = 2 }; /* floats kept from forward to backward: mean, 1 / deviation */

void cpu_norm_forward(const tt_kernels_t *kernels, size_t count, const float *x, const float *gain, const float *bias,
    float *y, float *moments);
/*  d_gain and d_bias are added to, or written with `first`; d_x is written. */
void cpu_norm_backward(const tt_kernels_t *kernels, size_t count, const float *x, const float *moments,
    const float *gain, const float *d, bool first, float *d_gain, float *d_bias, float *d_x);

/* ---- element by element -------------------------------------------------------------------------------------------------------- */

/*  y = activation(x); in place allowed. */
void cpu_activate(const tt_kernels_t *kernels, tt_nn_activation_t activation, size_t count, const float *x, float *y);
/*  d_x = d * the derivative, by what it gave, y; in place allowed. */
void cpu_activate_back(const tt_kernels_t *kernels, tt_nn_activation_t activation, size_t count, const float *y,
    const float *d, float *d_x);

/*  out[i] = in[i] / divisor, correctly rounded; divisor: 1 or 255. `in` and out need not be aligned. */
void cpu_widen(const tt_kernels_t *kernels, size_t count, const uint8_t *in, float divisor, float *out);
/*  The same of a picture [planes][pixels][each], to [pixels][planes][each]. */
void cpu_widen_planes(const tt_kernels_t *kernels, size_t planes, size_t each, size_t pixels, const uint8_t *in,
    float divisor, float *out);

/* ---- bytes, most of them 0, into a dense layer: zeros are skipped in every chain ------------------------------------------------ */

/*  c[m][n] = kind(bias + sum over k of x(m, k) * b(k, n)) as kernels->gemm has it (TANH, RELU, SUM), where x(m, k) is the byte
 *  row[m][k], not divided. job->a is not read. */
void cpu_bytes_forward(const tt_kernels_t *kernels, const tt_gemm_t *job, const uint8_t *const *row);
/*  c[m][n] (+)= sum over rows k = 0, 1, ... of row[k][m] * b(k, n): the gradient of such a layer's weights, as TT_GEMM_ADD has it
 *  (m: inputs, k: rows). job->a is not read. */
void cpu_bytes_param_grad(const tt_kernels_t *kernels, const tt_gemm_t *job, const uint8_t *const *row);
