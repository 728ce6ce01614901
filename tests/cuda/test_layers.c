/*  Each kind of an encoder's launches on a GPU against cpu/ops.h, to the bit, with numbers of which products vanish. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "common/nn/cpu/encoder.h"
#include "common/nn/cuda/kernels_encoder.h"
#include "tests/cuda/memory.h"
#include "tests/nn/ops_fixture.h"

enum { SHAPES = 28 };

/* ---- windows -------------------------------------------------------------------------------------------------------------------- */

static uint32_t s_side_out(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    return (in + 2 * pad - kernel) / stride + 1;
}

/*  Every third has a kernel as large as the picture; strides may be larger than kernels. */
static cpu_window_t s_window(uint32_t seed, bool pools)
{
    static const uint32_t channels[] = {1, 3, 4, 16, 17, 20, 33, 48, 70};
    cpu_window_t s = {
        .in_h = ops_pick(seed, 0, 1, 9),
        .in_w = ops_pick(seed, 1, 1, 9),
        .in_c = channels[ops_pick(seed, 2, 0, TT_COUNT(channels) - 1)],
        .out_c = channels[ops_pick(seed, 3, 0, TT_COUNT(channels) - 1)],
        .stride_h = ops_pick(seed, 4, 1, 4),
        .stride_w = ops_pick(seed, 5, 1, 4),
    };
    s.kernel_h = seed % 3 ? ops_pick(seed, 6, 1, s.in_h < 4 ? s.in_h : 4) : s.in_h;
    s.kernel_w = seed % 3 ? ops_pick(seed, 7, 1, s.in_w < 4 ? s.in_w : 4) : s.in_w;
    s.pad_h = ops_pick(seed, 8, 0, s.kernel_h - 1);
    s.pad_w = ops_pick(seed, 9, 0, s.kernel_w - 1);
    if (pools)
        s.out_c = s.in_c;
    return s;
}

static cuda_window_t s_cuda_window(const cpu_window_t *s)
{
    return (cuda_window_t){.in_h = s->in_h,
        .in_w = s->in_w,
        .in_c = s->in_c,
        .out_h = s->out_h,
        .out_w = s->out_w,
        .out_c = s->out_c,
        .kernel_h = s->kernel_h,
        .kernel_w = s->kernel_w,
        .stride_h = s->stride_h,
        .stride_w = s->stride_w,
        .pad_h = s->pad_h,
        .pad_w = s->pad_w};
}

/*  A case: pictures, what comes back, and their copies on the device. */
typedef struct {
    cpu_window_t s;
    cuda_window_t w;
    tt_nn_activation_t act;
    uint32_t rows;
    size_t ins, outs; /* of a row */
    float *in, *d, *cuda_in, *cuda_d;
} case_t;

/*  The window's output follows from the rest of it. */
static case_t s_case_of(uint32_t seed, cpu_window_t s, uint32_t rows, ops_numbers_t kind)
{
    s.out_h = s_side_out(s.in_h, s.kernel_h, s.stride_h, s.pad_h);
    s.out_w = s_side_out(s.in_w, s.kernel_w, s.stride_w, s.pad_w);
    case_t self = {.s = s, .w = s_cuda_window(&s), .act = (tt_nn_activation_t)(seed % 3), .rows = rows};
    self.ins = (size_t)self.s.in_h * self.s.in_w * self.s.in_c;
    self.outs = (size_t)self.s.out_h * self.s.out_w * self.s.out_c;
    self.in = ops_numbers(seed, 1, kind, self.rows * self.ins);
    self.d = ops_numbers(seed, 2, kind, self.rows * self.outs);
    if (seed % 7 == 0)
        self.in[self.ins / 2] = self.d[self.outs / 2] = NAN;
    self.cuda_in = device_put_floats(self.in, self.rows * self.ins);
    self.cuda_d = device_put_floats(self.d, self.rows * self.outs);
    return self;
}

static case_t s_case(uint32_t seed, bool pools, ops_numbers_t kind)
{
    return s_case_of(seed, s_window(seed, pools), ops_pick(seed, 20, 1, 11), kind);
}

static void s_free_case(case_t *self)
{
    ops_free(self->in);
    ops_free(self->d);
    device_fine(cudaFree(self->cuda_in));
    device_fine(cudaFree(self->cuda_d));
}

static void s_words(const case_t *self, const char *what, char words[200])
{
    const cpu_window_t *s = &self->s;
    snprintf(words, 200, "%s of %u x %ux%ux%u -> %u, kernel %ux%u, stride %ux%u, pad %ux%u", what, self->rows, s->in_h,
        s->in_w, s->in_c, s->out_c, s->kernel_h, s->kernel_w, s->stride_h, s->stride_w, s->pad_h, s->pad_w);
}

/* ---- convolutions ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
    case_t c;
    const tt_kernels_t *kernels;
    float *weight, *bias, *cuda_weight, *cuda_bias;
    size_t weights, shift; /* floats by which the device's weights begin later: fours of them are on 16 bytes or not */
} conv_t;

/*  Takes the case. */
static conv_t s_conv(const tt_kernels_t *kernels, uint32_t seed, case_t c, ops_numbers_t kind)
{
    conv_t self = {.c = c, .kernels = kernels, .shift = seed / 2 % 2};
    const cpu_window_t *s = &self.c.s;
    self.weights = (size_t)s->kernel_h * s->kernel_w * s->in_c * s->out_c;
    self.weight = ops_numbers(seed, 3, kind == OPS_HOLES ? OPS_PLAIN : kind, self.weights);
    self.bias = ops_numbers(seed, 4, kind, s->out_c);
    float *shifted = tt_array0(self.shift + self.weights, sizeof *shifted);
    memcpy(shifted + self.shift, self.weight, self.weights * sizeof *shifted);
    self.cuda_weight = device_put_floats(shifted, self.shift + self.weights) + self.shift;
    free(shifted);
    self.cuda_bias = device_put_floats(self.bias, s->out_c);
    return self;
}

static void s_free_conv(conv_t *self)
{
    ops_free(self->weight);
    ops_free(self->bias);
    device_fine(cudaFree(self->cuda_weight - self->shift));
    device_fine(cudaFree(self->cuda_bias));
    s_free_case(&self->c);
}

static void s_check_conv(const conv_t *self)
{
    const case_t *c = &self->c;
    float *packed = tt_aligned0(cpu_conv_packed(&c->s) * sizeof *packed);
    float *expected = tt_array0(c->rows * c->outs, sizeof *expected);
    cpu_conv_pack(self->kernels, &c->s, self->weight, packed);
    for (size_t r = 0; r < c->rows; r++)
        cpu_conv_forward(self->kernels, &c->s, c->act, packed, self->bias, c->in + r * c->ins, expected + r * c->outs);
    const cuda_conv_t job = {.window = c->w,
        .act = (cuda_act_t)c->act,
        .rows = c->rows,
        .in = c->cuda_in,
        .weight = self->cuda_weight,
        .bias = self->cuda_bias,
        .out = device_room(c->rows * c->outs * sizeof *expected)};
    cuda_conv(device_stream, &job);
    char words[200];
    s_words(c, "convolution", words);
    device_same(expected, job.out, c->rows * c->outs, words);
    free(packed);
    free(expected);
}

static void s_check_conv_back(const conv_t *self)
{
    const case_t *c = &self->c;
    float *packed = tt_aligned0(cpu_conv_packed_back(&c->s) * sizeof *packed);
    float *expected = tt_array0(c->rows * c->ins, sizeof *expected);
    cpu_conv_pack_back(self->kernels, &c->s, self->weight, packed);
    for (size_t r = 0; r < c->rows; r++)
        cpu_conv_input_grad(
            self->kernels, &c->s, packed, c->d + r * c->outs, c->act, c->in + r * c->ins, expected + r * c->ins);
    const cuda_conv_back_t job = {.window = c->w,
        .before = (cuda_act_t)c->act,
        .rows = c->rows,
        .d = c->cuda_d,
        .weight = self->cuda_weight,
        .in = c->cuda_in,
        .d_in = device_room(c->rows * c->ins * sizeof *expected)};
    cuda_conv_back(device_stream, &job);
    char words[200];
    s_words(c, "convolution, back", words);
    device_same(expected, job.d_in, c->rows * c->ins, words);
    free(packed);
    free(expected);
}

/*  With room for all rows, for three or for one; fewer rows than shards among the cases. */
static void s_check_conv_grads(const conv_t *self, uint32_t room)
{
    const case_t *c = &self->c;
    const size_t at = 3, bias_at = at + self->weights + 2;
    grads_t grads;
    grads_take(&grads, c->rows, 0, SHARDS, bias_at + c->s.out_c);
    const size_t floats = room * cuda_conv_row_floats(&c->w);
    const cuda_conv_grads_t job = {.window = c->w,
        .in = c->cuda_in,
        .d = c->cuda_d,
        .at = at,
        .bias_at = bias_at,
        .partial = device_room(floats * sizeof(float)),
        .partial_floats = floats};
    cuda_conv_grads(device_stream, &grads.run, &job);
    char words[200];
    s_words(c, "convolution, gradients", words);
    for (uint32_t s = 0; s < SHARDS; s++) {
        float *weight = tt_array0(self->weights, sizeof *weight), *bias = tt_array0(c->s.out_c, sizeof *bias);
        const size_t first = grads_begin(&grads.run, s);
        for (size_t r = first; r < grads_begin(&grads.run, s + 1); r++)
            cpu_conv_param_grad(self->kernels, &c->s, c->in + r * c->ins, c->d + r * c->outs, r == first, weight, bias);
        grads_same(&grads, s, weight, at, self->weights, words);
        grads_same(&grads, s, bias, bias_at, c->s.out_c, words);
        free(weight);
        free(bias);
    }
    device_fine(cudaFree(job.partial));
    grads_free(&grads);
}

static void s_check_convolutions(const tt_kernels_t *kernels, uint32_t seed)
{
    static const uint32_t rooms[] = {1, 3, 11};
    const ops_numbers_t kind = (ops_numbers_t)ops_pick(seed, 21, OPS_PLAIN, OPS_TINY);
    conv_t conv = s_conv(kernels, seed, s_case(seed, false, kind), kind);
    s_check_conv(&conv);
    s_check_conv_back(&conv);
    s_check_conv_grads(&conv, rooms[seed % TT_COUNT(rooms)]);
    s_free_conv(&conv);
}

/*  So many places that tiles are the large ones, one case for each width of them: the way back has as many. The simulated card has two
 *  multiprocessors. */
static void s_check_large_convolutions(const tt_kernels_t *kernels)
{
    static const uint32_t channels[] = {12, 20, 36}, rows[] = {34, 18, 10};
    const bool simulated = strcmp(fixture_card(), "cuda-sim") == 0;
    for (uint32_t i = 0; i < TT_COUNT(channels); i++) {
        const cpu_window_t s = {.in_h = 64,
            .in_w = 64,
            .in_c = channels[i],
            .out_c = channels[i],
            .kernel_h = 1,
            .kernel_w = 2,
            .stride_h = 1,
            .stride_w = 1,
            .pad_w = i % 2};
        conv_t conv = s_conv(kernels, i, s_case_of(i, s, simulated ? 1 : rows[i], OPS_TINY), OPS_TINY);
        s_check_conv(&conv);
        s_check_conv_back(&conv);
        s_free_conv(&conv);
    }
}

/*  Pictures of many places, and shards of more rows than are loaded at once; of some, when there is room for few. */
static void s_check_many_rows(const tt_kernels_t *kernels)
{
    static const uint32_t channels[] = {4, 17, 20, 36}, rooms[] = {84, 47};
    for (uint32_t i = 0; i < TT_COUNT(channels); i++) {
        const cpu_window_t s = {.in_h = 12,
            .in_w = 13,
            .in_c = i % 2 ? 3 : 4,
            .out_c = channels[i],
            .kernel_h = 3,
            .kernel_w = 3,
            .stride_h = 1,
            .stride_w = 1,
            .pad_h = i / 2,
            .pad_w = i / 2};
        conv_t conv = s_conv(kernels, i, s_case_of(i, s, 84, OPS_TINY), OPS_TINY);
        s_check_conv_grads(&conv, rooms[i % TT_COUNT(rooms)]);
        s_free_conv(&conv);
    }
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------------------ */

static void s_check_pooling(const tt_kernels_t *kernels, uint32_t seed)
{
    case_t c = s_case(seed, true, OPS_HOLES);
    const bool mean = seed % 2;
    float *out = tt_array0(c.rows * c.outs, sizeof *out), *d_in = tt_array0(c.rows * c.ins, sizeof *d_in);
    uint8_t *which = mean ? NULL : tt_array0(c.rows * c.outs, 1);
    for (size_t r = 0; r < c.rows; r++) {
        uint8_t *places = which ? which + r * c.outs : NULL;
        float *to = out + r * c.outs;
        cpu_pool_forward(kernels, &c.s, c.in + r * c.ins, to, places);
        cpu_activate(kernels, c.act, c.outs, to, to);
        cpu_pool_backward(kernels, &c.s, c.d + r * c.outs, places, d_in + r * c.ins);
        cpu_activate_back(kernels, c.act, c.ins, c.in + r * c.ins, d_in + r * c.ins, d_in + r * c.ins);
    }
    const cuda_pool_t job = {.window = c.w,
        .act = (cuda_act_t)c.act,
        .rows = c.rows,
        .in = c.cuda_in,
        .out = device_room(c.rows * c.outs * sizeof *out),
        .which = mean ? NULL : device_room(c.rows * c.outs)};
    cuda_pool(device_stream, &job);
    const cuda_pool_back_t back = {.window = c.w,
        .before = (cuda_act_t)c.act,
        .rows = c.rows,
        .d = c.cuda_d,
        .in = c.cuda_in,
        .which = job.which,
        .d_in = device_room(c.rows * c.ins * sizeof *d_in)};
    cuda_pool_back(device_stream, &back);
    char words[200];
    s_words(&c, mean ? "mean" : "max", words);
    device_same(out, job.out, c.rows * c.outs, words);
    device_same(d_in, back.d_in, c.rows * c.ins, words);
    uint8_t *places = which ? device_get(job.which, c.rows * c.outs) : NULL;
    if (which)
        assert_memory_equal(which, places, c.rows * c.outs);
    device_fine(cudaFree(job.which));
    free(places);
    free(which);
    free(out);
    free(d_in);
    s_free_case(&c);
}

/* ---- layer norm -------------------------------------------------------------------------------------------------------------------- */

/*  A row's numbers, [rows][count], of the CPU and the device. */
typedef struct {
    uint32_t rows, count;
    float *x, *d, *gain, *bias, *y, *d_x, *moments;
    float *cuda_x, *cuda_d, *cuda_gain, *cuda_bias;
} norm_t;

static norm_t s_norm(uint32_t seed)
{
    const ops_numbers_t kind = (ops_numbers_t)(seed % 3);
    norm_t self = {.rows = ops_pick(seed, 0, 1, 19), .count = ops_pick(seed, 1, 1, 70)};
    const size_t all = (size_t)self.rows * self.count;
    self.x = ops_numbers(seed, 1, kind, all);
    self.d = ops_numbers(seed, 2, kind, all);
    self.gain = ops_numbers(seed, 3, kind, self.count);
    self.bias = ops_numbers(seed, 4, kind, self.count);
    self.y = tt_array0(all, sizeof *self.y);
    self.d_x = tt_array0(all, sizeof *self.d_x);
    self.moments = tt_array0(self.rows, CPU_NORM_MOMENTS * sizeof *self.moments);
    self.cuda_x = device_put_floats(self.x, all);
    self.cuda_d = device_put_floats(self.d, all);
    self.cuda_gain = device_put_floats(self.gain, self.count);
    self.cuda_bias = device_put_floats(self.bias, self.count);
    return self;
}

static void s_free_norm(norm_t *self)
{
    ops_free(self->x);
    ops_free(self->d);
    ops_free(self->gain);
    ops_free(self->bias);
    free(self->y);
    free(self->d_x);
    free(self->moments);
    device_fine(cudaFree(self->cuda_x));
    device_fine(cudaFree(self->cuda_d));
    device_fine(cudaFree(self->cuda_gain));
    device_fine(cudaFree(self->cuda_bias));
}

static void s_check_norm_grads(const tt_kernels_t *kernels, norm_t *self, const float *moments, tt_nn_activation_t act)
{
    const uint32_t count = self->count;
    grads_t grads;
    grads_take(&grads, self->rows, 0, SHARDS, 2 * (size_t)count);
    const cuda_layer_norm_grads_t job = {
        .count = count, .x = self->cuda_x, .moments = moments, .d = self->cuda_d, .gain_at = count, .bias_at = 0};
    cuda_layer_norm_grads(device_stream, &grads.run, &job);
    for (uint32_t s = 0; s < SHARDS; s++) {
        float *gain = tt_array0(count, sizeof *gain), *bias = tt_array0(count, sizeof *bias);
        const size_t first = grads_begin(&grads.run, s);
        for (size_t r = first; r < grads_begin(&grads.run, s + 1); r++) {
            const float *x = self->x + r * count;
            float *d_x = self->d_x + r * count;
            cpu_norm_backward(kernels, count, x, self->moments + r * CPU_NORM_MOMENTS, self->gain, self->d + r * count,
                r == first, gain, bias, d_x);
            cpu_activate_back(kernels, act, count, x, d_x, d_x);
        }
        grads_same(&grads, s, gain, count, count, "gain");
        grads_same(&grads, s, bias, 0, count, "bias");
        free(gain);
        free(bias);
    }
    grads_free(&grads);
}

static void s_check_layer_norm(const tt_kernels_t *kernels, uint32_t seed)
{
    norm_t norm = s_norm(seed), *self = &norm;
    const tt_nn_activation_t act = (tt_nn_activation_t)(seed / 3 % 3);
    const size_t all = (size_t)self->rows * self->count;
    for (size_t r = 0; r < self->rows; r++) {
        float *y = self->y + r * self->count;
        cpu_norm_forward(kernels, self->count, self->x + r * self->count, self->gain, self->bias, y,
            self->moments + r * CPU_NORM_MOMENTS);
        cpu_activate(kernels, act, self->count, y, y);
    }
    const cuda_layer_norm_t job = {.act = (cuda_act_t)act,
        .rows = self->rows,
        .count = self->count,
        .x = self->cuda_x,
        .gain = self->cuda_gain,
        .bias = self->cuda_bias,
        .y = device_room(all * sizeof(float)),
        .moments = device_room(self->rows * CUDA_NORM_MOMENTS * sizeof(float))};
    cuda_layer_norm(device_stream, &job);
    const cuda_layer_norm_back_t back = {.before = (cuda_act_t)act,
        .rows = self->rows,
        .count = self->count,
        .x = self->cuda_x,
        .moments = job.moments,
        .gain = self->cuda_gain,
        .d = self->cuda_d,
        .d_x = device_room(all * sizeof(float))};
    cuda_layer_norm_back(device_stream, &back);
    s_check_norm_grads(kernels, self, job.moments, act);
    device_same(self->y, job.y, all, "layer norm");
    device_same(self->moments, job.moments, (size_t)self->rows * CPU_NORM_MOMENTS, "mean and deviation");
    device_same(self->d_x, back.d_x, all, "layer norm, back");
    s_free_norm(self);
}

static void test_launches(void **state)
{
    (void)state;
    place_t place;
    fixture_open_on(&place, "cpu", 1);
    const tt_kernels_t *kernels = ((const cpu_device_t *)place.device)->kernels;
    const size_t shapes = device_cases(SHAPES);
    for (uint32_t seed = 0; seed < shapes; seed++) {
        s_check_convolutions(kernels, seed);
        s_check_pooling(kernels, seed);
        s_check_layer_norm(kernels, seed);
    }
    if (shapes == SHAPES) {
        s_check_large_convolutions(kernels);
        s_check_many_rows(kernels);
    }
    fixture_close(&place);
}

/*  Every byte by both divisors. */
static void test_bytes(void **state)
{
    (void)state;
    static const float divisors[] = {1.0f, 255.0f};
    uint8_t bytes[256];
    float expected[256];
    for (size_t i = 0; i < TT_COUNT(bytes); i++)
        bytes[i] = (uint8_t)i;
    uint8_t *rows = device_put(bytes, sizeof bytes);
    for (size_t k = 0; k < TT_COUNT(divisors); k++) {
        for (size_t i = 0; i < TT_COUNT(bytes); i++)
            expected[i] = (float)i / divisors[k];
        const cuda_widen_t job = {.act = CUDA_ACT_NONE,
            .bytes_each = true,
            .divisor = divisors[k],
            .count = 1,
            .planes = 1,
            .pixels = 1,
            .deep = 256,
            .rows = rows,
            .row_bytes = 256,
            .out = device_room(sizeof expected),
            .out_row = 256};
        cuda_widen(device_stream, &job);
        device_same(expected, job.out, TT_COUNT(bytes), "bytes");
    }
    device_fine(cudaFree(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches), cmocka_unit_test(test_bytes)};
    return device_run_tests(tests);
}
