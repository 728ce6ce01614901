/*  Convolutions as products that are not exact: within what their rounding allows of sums in double, the same bits however a minibatch's
 *  shards are split, and exact where they would gain nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/cuda/rounded.h"
#include "tests/nn/fixture.h"

enum { SHARDS = 4, BEHIND = 64, OTHERS = 7 };

typedef struct {
    tt_precision_t precision;
    cuda_act_t act; /* the layer's; on the way back that of what gave its input */
    cuda_window_t window;
    uint32_t rows, length;
    size_t weight_at; /* floats by which weights miss an aligned place */
} case_t;

typedef struct {
    case_t of;
    uint32_t positions, taps;
    size_t read, made; /* numbers of a picture, and of what comes of it */
    rounded_t in, weight, bias, out, d, d_in;
    float *grad[SHARDS]; /* there */
    size_t grads;
    cuda_run_t run;
} layer_t;

/*  `in` is never negative or of size 1, so that derivatives are not all 0. */
static layer_t new_layer(cuda_device_t *device, const case_t *of)
{
    const cuda_window_t *w = &of->window;
    layer_t self = {.of = *of,
        .positions = w->out_h * w->out_w,
        .taps = w->kernel_h * w->kernel_w * w->in_c,
        .read = (size_t)w->in_h * w->in_w * w->in_c,
        .made = (size_t)w->out_h * w->out_w * w->out_c,
        .run = {.shards = SHARDS, .rows = of->rows, .hi = SHARDS, .length = of->length}};
    self.grads = (size_t)self.taps * w->out_c + w->out_c + of->weight_at + BEHIND;
    self.in = rounded_array(device, 1, of->rows * self.read, 0);
    self.weight = rounded_array(device, 2, (size_t)self.taps * w->out_c, of->weight_at);
    self.bias = rounded_array(device, 3, w->out_c, 1);
    self.out = rounded_array(device, 4, of->rows * self.made, 0);
    self.d = rounded_array(device, 5, of->rows * self.made, 0);
    self.d_in = rounded_array(device, 6, of->rows * self.read, 0);
    for (uint32_t s = 0; s < SHARDS; s++) {
        void *memory = NULL;
        assert_ok(cuda_alloc(device, &memory, self.grads * sizeof(float)));
        self.grad[s] = memory;
    }
    return self;
}

static void layer_free(cuda_device_t *device, layer_t *self)
{
    rounded_t *const arrays[] = {&self->in, &self->weight, &self->bias, &self->out, &self->d, &self->d_in};
    for (size_t i = 0; i < TT_COUNT(arrays); i++)
        rounded_free(device, arrays[i]);
    for (uint32_t s = 0; s < SHARDS; s++)
        cuda_free(device, self->grad[s]);
}

/* ---- runs of shards --------------------------------------------------------------------------------------------------------- */

/*  What shards lo .. hi - 1 make, as a learner has them that has only these. */
typedef struct {
    uint32_t lo, hi;
    size_t first, rows;
    float *out, *d_in, *grad[SHARDS];
} made_t;

static void fill_others(cuda_device_t *device, const layer_t *self)
{
    float *others = tt_array0(self->grads, sizeof *others);
    for (size_t i = 0; i < self->grads; i++)
        others[i] = OTHERS;
    for (uint32_t s = 0; s < SHARDS; s++)
        assert_ok(cuda_up(device, self->grad[s], others, self->grads * sizeof *others));
    free(others);
}

static made_t layer_run(cuda_device_t *device, const layer_t *self, uint32_t lo, uint32_t hi, bool fast)
{
    cuda_run_t run = self->run;
    const case_t *of = &self->of;
    const cuda_dense_t dense = {fast ? device->fast : NULL, &run};
    made_t made = {.lo = lo, .hi = hi, .first = cuda_first_row(&run, lo)};
    made.rows = cuda_first_row(&run, hi) - made.first;
    run.lo = lo;
    run.hi = hi;
    run.grad = self->grad;
    fill_others(device, self);
    const float *in = self->in.there + made.first * self->read, *d = self->d.there + made.first * self->made;
    const cuda_conv_t forward = {.window = of->window,
        .act = of->act,
        .rows = (uint32_t)made.rows,
        .in = in,
        .weight = self->weight.there,
        .bias = self->bias.there,
        .out = self->out.there + made.first * self->made};
    cuda_conv2d(&dense, device->work, &forward);
    const size_t partial = cuda_conv_row_floats(&of->window) * of->rows;
    void *memory = NULL;
    assert_ok(cuda_alloc(device, &memory, partial * sizeof(float)));
    const cuda_conv_grads_t grads = {.window = of->window,
        .in = in,
        .d = d,
        .at = of->weight_at,
        .bias_at = of->weight_at + (size_t)self->taps * of->window.out_c,
        .partial = memory,
        .partial_floats = partial};
    cuda_conv2d_grads(&dense, device->work, &run, &grads);
    const cuda_conv_back_t back = {.window = of->window,
        .before = of->act,
        .rows = (uint32_t)made.rows,
        .d = d,
        .weight = self->weight.there,
        .in = in,
        .d_in = self->d_in.there + made.first * self->read};
    cuda_conv2d_back(&dense, device->work, &back);
    assert_ok(cuda_launched(device, "a convolution"));
    made.out = rounded_fetch(device, forward.out, made.rows * self->made);
    made.d_in = rounded_fetch(device, back.d_in, made.rows * self->read);
    for (uint32_t s = lo; s < hi; s++)
        made.grad[s] = rounded_fetch(device, self->grad[s], self->grads);
    cuda_free(device, memory);
    return made;
}

static void made_free(made_t *self)
{
    free(self->out);
    free(self->d_in);
    for (uint32_t s = self->lo; s < self->hi; s++)
        free(self->grad[s]);
}

/*  Both have the same numbers of what the second has. */
static void assert_same(const layer_t *layer, const made_t *whole, const made_t *part)
{
    const size_t first = part->first - whole->first;
    assert_memory_equal(part->out, whole->out + first * layer->made, part->rows * layer->made * sizeof(float));
    assert_memory_equal(part->d_in, whole->d_in + first * layer->read, part->rows * layer->read * sizeof(float));
    for (uint32_t s = part->lo; s < part->hi; s++)
        assert_memory_equal(part->grad[s], whole->grad[s], layer->grads * sizeof(float));
}

/* ---- sums in double --------------------------------------------------------------------------------------------------------- */

/*  A sum and the sizes of what it adds. */
typedef struct {
    double sum, size;
    uint32_t count;
} sum_t;

static void add(sum_t *self, float a, float b)
{
    self->sum += (double)a * (double)b;
    self->size += fabs((double)a * (double)b);
    self->count++;
}

/*  Calls with each (position, tap) of a picture that lies inside it. */
typedef void (*each_fn)(void *ctx, uint32_t position, uint32_t tap, size_t number);

static void each(const layer_t *self, each_fn fn, void *ctx)
{
    const cuda_window_t *w = &self->of.window;
    for (uint32_t p = 0; p < self->positions; p++)
        for (uint32_t tap = 0; tap < self->taps; tap++) {
            const uint32_t place = tap / w->in_c;
            const int64_t y = (int64_t)(p / w->out_w * w->stride_h + place / w->kernel_w) - w->pad_h;
            const int64_t x = (int64_t)(p % w->out_w * w->stride_w + place % w->kernel_w) - w->pad_w;
            if (y >= 0 && y < w->in_h && x >= 0 && x < w->in_w)
                fn(ctx, p, tap, ((size_t)y * w->in_w + (size_t)x) * w->in_c + tap % w->in_c);
        }
}

/*  Of a picture: [made], [read]; of a shard: [taps][out_c], over its pictures. */
typedef struct {
    const layer_t *layer;
    const float *in, *d;
    sum_t *out, *d_in, *grad;
} sums_t;

static void add_taps(void *ctx, uint32_t position, uint32_t tap, size_t number)
{
    const sums_t *self = ctx;
    const uint32_t outs = self->layer->of.window.out_c;
    const float *weight = self->layer->weight.here + (size_t)tap * outs, *d = self->d + (size_t)position * outs;
    for (uint32_t o = 0; o < outs; o++) {
        add(&self->out[(size_t)position * outs + o], self->in[number], weight[o]);
        add(&self->d_in[number], d[o], weight[o]);
        add(&self->grad[(size_t)tap * outs + o], self->in[number], d[o]);
    }
}

static double activated(cuda_act_t act, double x)
{
    return act == CUDA_ACT_TANH ? tanh(x) : act == CUDA_ACT_RELU ? fmax(x, 0) : x;
}

static double derivative(cuda_act_t act, double y)
{
    return act == CUDA_ACT_TANH ? 1 - y * y : act == CUDA_ACT_RELU ? (y > 0 ? 1 : 0) : 1;
}

static void assert_near(const layer_t *layer, const sum_t *sum, double expected, float got, const char *what)
{
    const double off = fabs((double)got - expected);
    if (!(off <= rounded_allowed(layer->of.precision, sum->size, sum->count)))
        fail_msg("%s: %g is off by %g", what, (double)got, off);
}

static void assert_picture_near(const sums_t *sums, const float *out, const float *d_in)
{
    const layer_t *layer = sums->layer;
    const cuda_act_t act = layer->of.act;
    for (size_t i = 0; i < layer->made; i++) {
        sum_t *sum = &sums->out[i];
        const double bias = (double)layer->bias.here[i % layer->of.window.out_c];
        assert_near(layer, sum, activated(act, sum->sum + bias), out[i], "out");
        *sum = (sum_t){0};
    }
    for (size_t i = 0; i < layer->read; i++) {
        sum_t *sum = &sums->d_in[i];
        assert_near(layer, sum, sum->sum * derivative(act, (double)sums->in[i]), d_in[i], "d_in");
        *sum = (sum_t){0};
    }
}

static void assert_bias_near(const layer_t *layer, uint32_t s, const float *got)
{
    const uint32_t outs = layer->of.window.out_c;
    const size_t begin = cuda_first_row(&layer->run, s) * (size_t)layer->positions,
                 end = cuda_first_row(&layer->run, s + 1) * (size_t)layer->positions;
    for (uint32_t o = 0; o < outs; o++) {
        sum_t sum = {0};
        for (size_t p = begin; p < end; p++)
            add(&sum, layer->d.here[p * outs + o], 1);
        if (!(fabs((double)got[o] - sum.sum) <= rounded_allowed(TT_TF32, sum.size, sum.count)))
            fail_msg("shard %u: the bias's gradient %u is off", s, o);
    }
}

static void assert_shard_near(const layer_t *layer, const made_t *made, uint32_t s)
{
    const size_t weights = (size_t)layer->taps * layer->of.window.out_c, at = layer->of.weight_at;
    sums_t sums = {.layer = layer,
        .out = tt_array0(layer->made, sizeof(sum_t)),
        .d_in = tt_array0(layer->read, sizeof(sum_t)),
        .grad = tt_array0(weights, sizeof(sum_t))};
    for (size_t row = cuda_first_row(&layer->run, s); row < cuda_first_row(&layer->run, s + 1); row++) {
        sums.in = layer->in.here + row * layer->read;
        sums.d = layer->d.here + row * layer->made;
        each(layer, add_taps, &sums);
        assert_picture_near(&sums, made->out + row * layer->made, made->d_in + row * layer->read);
    }
    for (size_t i = 0; i < weights; i++)
        assert_near(layer, &sums.grad[i], sums.grad[i].sum, made->grad[s][at + i], "a weight's gradient");
    assert_bias_near(layer, s, made->grad[s] + at + weights);
    for (size_t i = 0; i < layer->grads; i++) /* what lies before and behind is somebody else's */
        assert_true((i >= at && i < layer->grads - BEHIND) || made->grad[s][i] == OTHERS);
    free(sums.out);
    free(sums.d_in);
    free(sums.grad);
}

/* ---- near, and whoever has which shards --------------------------------------------------------------------------------------- */

static void check_layer(const case_t *of)
{
    static const uint32_t runs[][2] = {{0, 2}, {2, 4}, {1, 2}, {3, 4}};
    cuda_device_t *device = rounded_open(of->precision);
    layer_t layer = new_layer(device, of);
    made_t whole = layer_run(device, &layer, 0, SHARDS, true), exact = layer_run(device, &layer, 0, SHARDS, false);
    for (uint32_t s = 0; s < SHARDS; s++) {
        assert_shard_near(&layer, &whole, s);
        assert_memory_not_equal(whole.grad[s], exact.grad[s], layer.grads * sizeof(float));
    }
    assert_memory_not_equal(whole.out, exact.out, of->rows * layer.made * sizeof(float));
    assert_memory_not_equal(whole.d_in, exact.d_in, of->rows * layer.read * sizeof(float));
    for (size_t r = 0; r < TT_COUNT(runs); r++) {
        made_t part = layer_run(device, &layer, runs[r][0], runs[r][1], true);
        assert_same(&layer, &whole, &part);
        made_free(&part);
    }
    made_free(&whole);
    made_free(&exact);
    layer_free(device, &layer);
    rounded_close(device);
}

/*  A picture of so many channels through 3 x 3 taps, or 4 x 4, every second place; the last rows and columns of even sides are read by
 *  fewer, or by nobody. */
static cuda_window_t window(uint32_t side, uint32_t in_c, uint32_t kernel, uint32_t pad, uint32_t out_c)
{
    const uint32_t out = (side + 2 * pad - kernel) / 2 + 1;
    return (cuda_window_t){
        side, side + 1, in_c, out, (side + 1 + 2 * pad - kernel) / 2 + 1, out_c, kernel, kernel, 2, 2, pad, pad};
}

/*  More pictures of a shard than are unfolded at once: whole pieces and what is left, of shards that are one or a sequence larger than others. */
static void convolutions_are_near(void **state)
{
    const bool real = rounded_scaled(1) > 1; /* a real card has more before anything goes to the library */
    (void)state;
    check_layer(&(case_t){.precision = TT_TF32,
        .act = CUDA_ACT_RELU,
        .window = real ? window(9, 128, 3, 1, 64) : window(9, 4, 3, 1, 8),
        .rows = real ? 589 : 22,
        .weight_at = 1});
    check_layer(&(case_t){.precision = TT_BF16,
        .act = CUDA_ACT_TANH,
        .window = real ? window(8, 36, 4, 0, 64) : window(8, 3, 4, 0, 12),
        .rows = real ? 432 : 24,
        .length = 4});
    check_layer(&(case_t){.precision = TT_TF32,
        .act = CUDA_ACT_NONE,
        .window = real ? window(10, 32, 4, 1, 64) : window(10, 8, 4, 1, 8),
        .rows = real ? 180 : 9,
        .weight_at = 4});
}

/* ---- exact where it gains nothing, and what goes wrong -------------------------------------------------------------------------- */

static void assert_exact(const case_t *of)
{
    cuda_device_t *device = rounded_open(of->precision);
    layer_t layer = new_layer(device, of);
    made_t got = layer_run(device, &layer, 0, SHARDS, true), exact = layer_run(device, &layer, 0, SHARDS, false);
    assert_same(&layer, &exact, &got);
    made_free(&got);
    made_free(&exact);
    layer_free(device, &layer);
    rounded_close(device);
}

/*  Few channels, a shard without pictures, and taps that are no vectors of four. */
static void small_convolutions_are_exact(void **state)
{
    (void)state;
    assert_exact(&(case_t){.precision = TT_TF32, .window = window(9, 4, 3, 1, 4), .rows = 20});
    assert_exact(&(case_t){.precision = TT_TF32, .window = window(9, 4, 3, 1, 8), .rows = 3});
    assert_exact(&(case_t){.precision = TT_TF32, .window = window(9, 3, 3, 1, 8), .rows = 20});
}

static void no_algorithm_is_exact(void **state)
{
    (void)state;
    setenv("TT_SIMT_LT", "none", 1);
    assert_exact(&(case_t){.precision = TT_TF32, .window = window(9, 4, 3, 1, 8), .rows = 20});
    unsetenv("TT_SIMT_LT");
}

static void no_room_is_said(void **state)
{
    const case_t of = {.precision = TT_TF32, .window = window(9, 4, 3, 1, 8), .rows = 20};
    cuda_device_t *device = rounded_open(of.precision);
    layer_t layer = new_layer(device, &of);
    const cuda_dense_t dense = {device->fast, &layer.run};
    const cuda_conv_t job = {.window = of.window,
        .rows = of.rows,
        .in = layer.in.there,
        .weight = layer.weight.there,
        .bias = layer.bias.there,
        .out = layer.out.there};
    (void)state;
    setenv("TT_SIMT_MEMORY", "1", 1);
    cuda_conv2d(&dense, device->work, &job);
    unsetenv("TT_SIMT_MEMORY");
    assert_int_equal(cuda_launched(device, "a convolution"), TT_DEVICE);
    assert_non_null(strstr(tt_err_text(), "cuda:0: room for products: "));
    layer_free(device, &layer);
    rounded_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_near),
        cmocka_unit_test(small_convolutions_are_exact),
    };
    const struct CMUnitTest simulated[] = {
        cmocka_unit_test(no_algorithm_is_exact),
        cmocka_unit_test(no_room_is_said),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return strcmp(fixture_card(), "cuda-sim") ? failed : failed + cmocka_run_group_tests(simulated, NULL, NULL);
}
