/*  conv - convolutions of one picture as products of its positions and the weights, without a copy of the picture.
 *
 *  Places of the kernel that lie outside the picture are left out of a chain. To multiply zeros instead would not be the same: a
 *  product too small for any float leaves -0 in a sum, which one more zero turns into 0. So positions go in bands that read the
 *  same places: with a padding of 1 the inner ones, the borders, and the corners. Where nothing is padded there is one band.
 *
 *  The gradient of the input is one chain over (kh, kw, output channel) for each number. Numbers go in stretches that the same
 *  places read: those whose row and column lie alike to the strides, and of these the inner ones and each kind of border. So nothing
 *  outside is multiplied here either, and a sum is stored once. */
#include "common/nn/cpu/window.h"
#include <string.h>

static const tt_gemm_kind_t s_kind[] = {
    [TT_NN_TANH] = TT_GEMM_TANH, [TT_NN_RELU] = TT_GEMM_RELU, [TT_NN_NONE] = TT_GEMM_SUM};

static size_t s_whole(size_t columns)
{
    return (columns + 15) / 16 * 16;
}

static size_t s_places(const cpu_window_t *shape)
{
    return (size_t)shape->kernel_h * shape->kernel_w;
}

size_t cpu_conv_packed(const cpu_window_t *shape)
{
    return s_places(shape) * shape->in_c * s_whole(shape->out_c);
}

size_t cpu_conv_packed_back(const cpu_window_t *shape)
{
    return s_places(shape) * shape->out_c * s_whole(shape->in_c);
}

/*  Panels of 16 output channels. */
void cpu_conv_pack(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *weight, float *packed)
{
    kernels->pack(s_places(shape) * shape->in_c, shape->out_c, weight, packed);
}

/*  For each place of the kernel [out_c][in_c], in panels of 16 input channels. */
void cpu_conv_pack_back(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *weight, float *packed)
{
    const size_t from = (size_t)shape->in_c * shape->out_c, to = shape->out_c * s_whole(shape->in_c);
    memset(packed, 0, s_places(shape) * to * sizeof *packed);
    for (size_t i = 0; i < s_places(shape); i++)
        kernels->transpose(shape->in_c, shape->out_c, weight + i * from, packed + i * to);
}

typedef struct {
    const tt_kernels_t *kernels;
    tt_grid_t whole;
} forward_t;

static void s_forward(const void *ctx, const cpu_window_t *s, const cpu_band_t *band)
{
    const forward_t *forward = ctx;
    tt_grid_t job = forward->whole;
    job.h = band->y.end - band->y.first;
    job.w = band->x.end - band->x.first;
    job.pieces = band->kh.end - band->kh.first;
    job.run = (band->kw.end - band->kw.first) * s->in_c;
    job.a += band->in;
    job.b += (band->kh.first * s->kernel_w + band->kw.first) * s->in_c * 16;
    job.c += (band->y.first * s->out_w + band->x.first) * s->out_c;
    forward->kernels->grid(&job);
}

void cpu_conv_forward(const tt_kernels_t *kernels, const cpu_window_t *shape, tt_nn_activation_t activation,
    const float *packed, const float *bias, const float *in, float *out)
{
    const forward_t forward = {kernels, {
                                            .kind = s_kind[activation],
                                            .n = shape->out_c,
                                            .a = in,
                                            .a_y = (size_t)shape->stride_h * shape->in_w * shape->in_c,
                                            .a_x = (size_t)shape->stride_w * shape->in_c,
                                            .steps = 1,
                                            .a_piece = (ptrdiff_t)shape->in_w * shape->in_c,
                                            .b = packed,
                                            .b_panel = s_places(shape) * shape->in_c * 16,
                                            .b_piece = (size_t)shape->kernel_w * shape->in_c * 16,
                                            .c = out,
                                            .c_y = (size_t)shape->out_w * shape->out_c,
                                            .c_x = shape->out_c,
                                            .bias = bias,
                                        }};
    cpu_window_bands(shape, false, s_forward, &forward);
}

/*  Positions that read place (kh, kw), and where they begin in `out` and in the picture; false: there are none. */
typedef struct {
    size_t h, w, out, in;
} readers_t;

static bool s_readers(const cpu_window_t *s, size_t kh, size_t kw, readers_t *r)
{
    const cpu_axis_t rows = cpu_axis_rows(s), columns = cpu_axis_columns(s);
    const cpu_range_t y = cpu_axis_readers(&rows, kh), x = cpu_axis_readers(&columns, kw);
    if (y.first >= y.end || x.first >= x.end)
        return false;
    r->h = y.end - y.first;
    r->w = x.end - x.first;
    r->out = (y.first * s->out_w + x.first) * s->out_c;
    r->in = (cpu_axis_at(&rows, y.first, kh) * s->in_w + cpu_axis_at(&columns, x.first, kw)) * s->in_c;
    return true;
}

/*  whole->m numbers from place (kh, kw) on. A place that nobody reads has a sum of nothing. */
static void s_weight_grad(
    const tt_kernels_t *kernels, const cpu_window_t *s, const tt_patch_t *whole, size_t kh, size_t kw)
{
    readers_t readers = {0};
    s_readers(s, kh, kw, &readers);
    tt_patch_t job = *whole;
    job.h = readers.h;
    job.w = readers.w;
    job.a += readers.in;
    job.d += readers.out;
    job.c += (kh * s->kernel_w + kw) * s->in_c * s->out_c;
    kernels->patch(&job);
}

/*  The bias is a weight of a number that is always 1. */
static void s_bias_grad(const tt_kernels_t *kernels, const cpu_window_t *s, const float *d, bool first, float *bias)
{
    static const float one = 1.0f;
    const tt_patch_t job = {.first = first,
        .h = 1,
        .w = (size_t)s->out_h * s->out_w,
        .m = 1,
        .n = s->out_c,
        .a = &one,
        .d = d,
        .d_x = s->out_c,
        .c = bias,
        .c_row = s->out_c};
    kernels->patch(&job);
}

void cpu_conv_param_grad(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *in, const float *d,
    bool first, float *weight, float *bias)
{
    const size_t step = shape->pad_w ? 1 : shape->kernel_w; /* places that the same positions read, side by side */
    const tt_patch_t whole = {
        .first = first,
        .m = step * shape->in_c,
        .n = shape->out_c,
        .a = in,
        .a_y = (size_t)shape->stride_h * shape->in_w * shape->in_c,
        .a_x = (size_t)shape->stride_w * shape->in_c,
        .d = d,
        .d_y = (size_t)shape->out_w * shape->out_c,
        .d_x = shape->out_c,
        .c = weight,
        .c_row = shape->out_c,
    };
    for (size_t kh = 0; kh < shape->kernel_h; kh++)
        for (size_t kw = 0; kw < shape->kernel_w; kw += step)
            s_weight_grad(kernels, shape, &whole, kh, kw);
    s_bias_grad(kernels, shape, d, first, bias);
}

/*  Numbers of the picture that the same places read. A place that is not there, behind a kernel's end, is not asked for weights. */
static void s_input_grad(const tt_kernels_t *kernels, const cpu_window_t *s, const tt_grid_t *whole,
    const cpu_inputs_t *y, const cpu_inputs_t *x)
{
    const size_t in = (y->first * s->in_w + x->first) * s->in_c;
    tt_grid_t job = *whole;
    job.h = y->count;
    job.w = x->count;
    job.pieces = x->places ? y->places : 0;
    job.steps = x->places;
    if (job.pieces) {
        job.a += (y->at * s->out_w + x->at) * s->out_c;
        job.b += (y->place * s->kernel_w + x->place) * s->out_c * s_whole(s->in_c);
    }
    job.c += in;
    job.of += in;
    kernels->grid(&job);
}

/*  Those of rows and columns that lie so far behind a multiple of the strides. */
static void s_phase(
    const tt_kernels_t *kernels, const cpu_window_t *s, const tt_grid_t *whole, size_t phase_y, size_t phase_x)
{
    const cpu_axis_t rows = cpu_axis_rows(s), columns = cpu_axis_columns(s);
    cpu_inputs_t y, x;
    for (size_t down = 0; cpu_axis_inputs(&rows, phase_y, &down, &y);)
        for (size_t along = 0; cpu_axis_inputs(&columns, phase_x, &along, &x);)
            s_input_grad(kernels, s, whole, &y, &x);
}

void cpu_conv_input_grad(const tt_kernels_t *kernels, const cpu_window_t *shape, const float *packed_back,
    const float *d, tt_nn_activation_t before, const float *in, float *d_in)
{
    static const tt_gemm_kind_t kinds[] = {
        [TT_NN_TANH] = TT_GEMM_D_TANH, [TT_NN_RELU] = TT_GEMM_D_RELU, [TT_NN_NONE] = TT_GEMM_D_NONE};
    const size_t place = shape->out_c * s_whole(shape->in_c);
    const tt_grid_t whole = {
        .kind = kinds[before],
        .n = shape->in_c,
        .run = shape->out_c,
        .a = d,
        .a_y = (size_t)shape->out_w * shape->out_c,
        .a_x = shape->out_c,
        .a_piece = -(ptrdiff_t)shape->out_w * shape->out_c,
        .a_step = -(ptrdiff_t)shape->out_c,
        .b = packed_back,
        .b_panel = 16 * (size_t)shape->out_c,
        .b_piece = shape->stride_h * shape->kernel_w * place,
        .b_step = shape->stride_w * place,
        .c = d_in,
        .c_y = (size_t)shape->stride_h * shape->in_w * shape->in_c,
        .c_x = (size_t)shape->stride_w * shape->in_c,
        .of = in,
    };
    for (size_t y = 0; y < shape->stride_h; y++)
        for (size_t x = 0; x < shape->stride_w; x++)
            s_phase(kernels, shape, &whole, y, x);
}
