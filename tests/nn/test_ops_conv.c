/*  Convolutions against loops that do what nn.md says and nothing else: the same bits on every build, for shapes of every kind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/ops_fixture.h"

enum { SHAPES = 150, GUARD = 32 };

typedef struct {
    cpu_window_t s;
    tt_nn_activation_t activation;
    float *in, *d, *weight, *bias;
    size_t ins, outs, weights;
} conv_t;

static uint32_t s_side_out(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    return (in + 2 * pad - kernel) / stride + 1;
}

/*  Every fourth has the kernel as large as the picture, every fifth a kernel of 1 x 1. */
static cpu_window_t s_shape(uint32_t seed)
{
    static const uint32_t channels[] = {1, 2, 3, 4, 7, 10, 16, 17, 20, 32, 33, 48, 64, 70};
    cpu_window_t s = {
        .in_h = ops_pick(seed, 0, 1, 12),
        .in_w = ops_pick(seed, 1, 1, 12),
        .in_c = channels[ops_pick(seed, 2, 0, 10)],
        .out_c = channels[ops_pick(seed, 3, 0, TT_COUNT(channels) - 1)],
        .stride_h = ops_pick(seed, 4, 1, 3),
        .stride_w = ops_pick(seed, 5, 1, 3),
    };
    s.kernel_h = ops_pick(seed, 6, 1, s.in_h < 5 ? s.in_h : 5);
    s.kernel_w = ops_pick(seed, 7, 1, s.in_w < 5 ? s.in_w : 5);
    if (seed % 4 == 0) {
        s.kernel_h = s.in_h;
        s.kernel_w = s.in_w;
    } else if (seed % 5 == 0) {
        s.kernel_h = s.kernel_w = 1;
    }
    s.pad_h = ops_pick(seed, 8, 0, s.kernel_h - 1);
    s.pad_w = ops_pick(seed, 9, 0, s.kernel_w - 1);
    s.out_h = s_side_out(s.in_h, s.kernel_h, s.stride_h, s.pad_h);
    s.out_w = s_side_out(s.in_w, s.kernel_w, s.stride_w, s.pad_w);
    return s;
}

static conv_t s_conv(uint32_t seed)
{
    conv_t self = {.s = s_shape(seed), .activation = (tt_nn_activation_t)(seed % 3)};
    const ops_numbers_t kind = (ops_numbers_t)ops_pick(seed, 10, OPS_PLAIN, OPS_TINY);
    self.ins = (size_t)self.s.in_h * self.s.in_w * self.s.in_c;
    self.outs = (size_t)self.s.out_h * self.s.out_w * self.s.out_c;
    self.weights = (size_t)self.s.kernel_h * self.s.kernel_w * self.s.in_c * self.s.out_c;
    self.in = ops_numbers(seed, 1, kind, self.ins);
    self.d = ops_numbers(seed, 2, kind, self.outs);
    self.weight = ops_numbers(seed, 3, kind == OPS_HOLES ? OPS_PLAIN : kind, self.weights);
    self.bias = ops_numbers(seed, 4, kind, self.s.out_c);
    return self;
}

static void s_free(conv_t *self)
{
    ops_free(self->in);
    ops_free(self->d);
    ops_free(self->weight);
    ops_free(self->bias);
}

/*  Where place k reads at position i. */
static bool s_inside(uint32_t i, uint32_t k, uint32_t stride, uint32_t pad, uint32_t in, uint32_t *at)
{
    const int64_t place = (int64_t)i * stride + k - pad;
    *at = (uint32_t)place;
    return place >= 0 && place < in;
}

/* ---- the definition ------------------------------------------------------------------------------------------------------- */

/*  Every (y, x, kh, kw) that lies inside, in the order of the loops that the sum in question has. */
typedef struct {
    uint32_t y, x, kh, kw, iy, ix;
} reads_t;

static bool s_reads(const cpu_window_t *s, reads_t *r)
{
    return s_inside(r->y, r->kh, s->stride_h, s->pad_h, s->in_h, &r->iy) &&
           s_inside(r->x, r->kw, s->stride_w, s->pad_w, s->in_w, &r->ix);
}

static float s_in(const conv_t *conv, const reads_t *r, uint32_t c)
{
    return conv->in[((size_t)r->iy * conv->s.in_w + r->ix) * conv->s.in_c + c];
}

static float s_weight(const conv_t *conv, const reads_t *r, uint32_t c, uint32_t o)
{
    return conv->weight[(((size_t)r->kh * conv->s.kernel_w + r->kw) * conv->s.in_c + c) * conv->s.out_c + o];
}

static float s_d(const conv_t *conv, const reads_t *r, uint32_t o)
{
    return conv->d[((size_t)r->y * conv->s.out_w + r->x) * conv->s.out_c + o];
}

static float s_forward(const conv_t *conv, uint32_t y, uint32_t x, uint32_t o)
{
    const cpu_window_t *s = &conv->s;
    float sum = 0.0f;
    for (reads_t r = {.y = y, .x = x}; r.kh < s->kernel_h; r.kh++)
        for (r.kw = 0; r.kw < s->kernel_w; r.kw++)
            for (uint32_t c = 0; c < s->in_c && s_reads(s, &r); c++)
                sum = fmaf(s_in(conv, &r, c), s_weight(conv, &r, c, o), sum);
    return sum + conv->bias[o];
}

static float s_weight_grad(const conv_t *conv, uint32_t kh, uint32_t kw, uint32_t c, uint32_t o)
{
    const cpu_window_t *s = &conv->s;
    float sum = 0.0f;
    for (reads_t r = {.kh = kh, .kw = kw}; r.y < s->out_h; r.y++)
        for (r.x = 0; r.x < s->out_w; r.x++)
            if (s_reads(s, &r))
                sum = fmaf(s_in(conv, &r, c), s_d(conv, &r, o), sum);
    return sum;
}

/*  The position whose place k reads input number i; false: there is none. */
static bool s_read_by(uint32_t i, uint32_t k, uint32_t stride, uint32_t pad, uint32_t out, uint32_t *at)
{
    const int64_t padded = (int64_t)i + pad - k;
    *at = (uint32_t)(padded / stride);
    return padded >= 0 && padded % stride == 0 && *at < out;
}

static float s_input_grad(const conv_t *conv, uint32_t iy, uint32_t ix, uint32_t c)
{
    const cpu_window_t *s = &conv->s;
    float sum = 0.0f;
    for (reads_t r = {0}; r.kh < s->kernel_h; r.kh++)
        for (r.kw = 0; r.kw < s->kernel_w; r.kw++)
            if (s_read_by(iy, r.kh, s->stride_h, s->pad_h, s->out_h, &r.y) &&
                s_read_by(ix, r.kw, s->stride_w, s->pad_w, s->out_w, &r.x))
                for (uint32_t o = 0; o < s->out_c; o++)
                    sum = fmaf(s_d(conv, &r, o), s_weight(conv, &r, c, o), sum);
    return sum;
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------ */

/*  `count` floats to be filled and a guard behind them that must stay as it is. */
static float *s_guarded(size_t count)
{
    float *floats = tt_aligned0((count + GUARD) * sizeof *floats);
    for (size_t i = 0; i < count + GUARD; i++)
        floats[i] = 12345.0f;
    return floats;
}

static void s_check(
    float *expected, float *got, size_t count, const tt_kernels_t *kernels, const conv_t *conv, const char *what)
{
    const cpu_window_t *s = &conv->s;
    char words[160];
    snprintf(words, sizeof words, "%s of %ux%ux%u -> %u, kernel %ux%u, stride %ux%u, pad %ux%u", what, s->in_h, s->in_w,
        s->in_c, s->out_c, s->kernel_h, s->kernel_w, s->stride_h, s->stride_w, s->pad_h, s->pad_w);
    ops_assert_same(expected, got, count, kernels->name, words);
    for (size_t i = 0; i < GUARD; i++)
        assert_true(got[count + i] == 12345.0f);
    free(expected);
    free(got);
}

static void s_check_forward(const tt_kernels_t *kernels, const conv_t *conv)
{
    const cpu_window_t *s = &conv->s;
    float *expected = s_guarded(conv->outs), *got = s_guarded(conv->outs), *at = expected;
    float *packed = tt_aligned0(cpu_conv_packed(s) * sizeof *packed);
    for (uint32_t y = 0; y < s->out_h; y++)
        for (uint32_t x = 0; x < s->out_w; x++)
            for (uint32_t o = 0; o < s->out_c; o++)
                *at++ = ops_activate(kernels, conv->activation, s_forward(conv, y, x, o));
    cpu_conv_pack(kernels, s, conv->weight, packed);
    cpu_conv_forward(kernels, s, conv->activation, packed, conv->bias, conv->in, got);
    s_check(expected, got, conv->outs, kernels, conv, "forward");
    free(packed);
}

/*  Twice: the first row is written, the next one added. */
static void s_check_param_grad(const tt_kernels_t *kernels, const conv_t *conv)
{
    const cpu_window_t *s = &conv->s;
    float *weight = s_guarded(conv->weights), *bias = s_guarded(s->out_c), *at = weight;
    float *got_weight = s_guarded(conv->weights), *got_bias = s_guarded(s->out_c);
    for (uint32_t kh = 0; kh < s->kernel_h; kh++)
        for (uint32_t kw = 0; kw < s->kernel_w; kw++)
            for (uint32_t c = 0; c < s->in_c; c++)
                for (uint32_t o = 0; o < s->out_c; o++, at++) {
                    *at = s_weight_grad(conv, kh, kw, c, o);
                    *at += *at;
                }
    for (uint32_t o = 0; o < s->out_c; o++) {
        bias[o] = 0.0f;
        for (size_t p = 0; p < (size_t)s->out_h * s->out_w; p++)
            bias[o] += conv->d[p * s->out_c + o];
        bias[o] += bias[o];
    }
    cpu_conv_param_grad(kernels, s, conv->in, conv->d, true, got_weight, got_bias);
    cpu_conv_param_grad(kernels, s, conv->in, conv->d, false, got_weight, got_bias);
    s_check(weight, got_weight, conv->weights, kernels, conv, "gradient of the weights");
    s_check(bias, got_bias, s->out_c, kernels, conv, "gradient of the bias");
}

static void s_check_input_grad(const tt_kernels_t *kernels, const conv_t *conv)
{
    const cpu_window_t *s = &conv->s;
    float *expected = s_guarded(conv->ins), *got = s_guarded(conv->ins);
    float *packed = tt_aligned0(cpu_conv_packed_back(s) * sizeof *packed);
    for (size_t i = 0; i < cpu_conv_packed_back(s); i++)
        packed[i] = NAN; /* memory that was never cleared */
    size_t at = 0;
    for (uint32_t y = 0; y < s->in_h; y++)
        for (uint32_t x = 0; x < s->in_w; x++)
            for (uint32_t c = 0; c < s->in_c; c++, at++)
                expected[at] = ops_derivative(conv->activation, conv->in[at], s_input_grad(conv, y, x, c));
    cpu_conv_pack_back(kernels, s, conv->weight, packed);
    cpu_conv_input_grad(kernels, s, packed, conv->d, conv->activation, conv->in, got);
    s_check(expected, got, conv->ins, kernels, conv, "gradient of the input");
    free(packed);
}

static void s_check_shape(const tt_kernels_t *kernels, uint32_t seed)
{
    conv_t conv = s_conv(seed);
    s_check_forward(kernels, &conv);
    s_check_param_grad(kernels, &conv);
    s_check_input_grad(kernels, &conv);
    s_free(&conv);
}

static void test_shapes(void **state)
{
    (void)state;
    ops_on_builds(s_check_shape, SHAPES);
}

/*  A NaN in one number of the picture, of what came back, and an infinity in a weight: where the definition has them. */
static void s_check_nan(const tt_kernels_t *kernels, uint32_t seed)
{
    conv_t conv = s_conv(seed);
    conv.in[ops_pick(seed, 20, 0, (uint32_t)conv.ins - 1)] = NAN;
    conv.d[ops_pick(seed, 21, 0, (uint32_t)conv.outs - 1)] = NAN;
    conv.weight[ops_pick(seed, 22, 0, (uint32_t)conv.weights - 1)] = INFINITY;
    s_check_forward(kernels, &conv);
    s_check_param_grad(kernels, &conv);
    s_check_input_grad(kernels, &conv);
    s_free(&conv);
}

static void test_nan(void **state)
{
    (void)state;
    ops_on_builds(s_check_nan, SHAPES / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
