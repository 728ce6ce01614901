/*  bench_conv - what the convolutions of known networks cost on one core, each of their three products by itself, beside our own
 *  large matrix product. One picture after the other, as an encoder takes them; ROWS of them take turns, so that each comes from
 *  where a batch lies. Multiply-adds are counted that a picture needs: those on padding are not. The median of seven runs. */
#include "cli/bench_loop.h"
#include "cli/cmd.h"
#include "common/base/mem.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/cpu/ops.h"
#include "common/nn/nn.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

const tt_option_t tt_opt_bench_conv[] = {
    {"seconds", 's', "SECONDS", "time for each measurement, 0.01 to 60 (default 0.3)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { ROWS = 32 };

typedef struct {
    const char *name;
    cpu_window_t window; /* out_h and out_w are computed */
} layer_t;

#define SQUARE(in_, channels, kernel, stride, pad, out_)                                                   \
    {                                                                                                      \
        .in_h = in_, .in_w = in_, .in_c = channels, .out_c = out_, .kernel_h = kernel, .kernel_w = kernel, \
        .stride_h = stride, .stride_w = stride, .pad_h = pad, .pad_w = pad                                 \
    }

/*  Nature-CNN (Mnih et al. 2015), MinAtar's (Young and Tian 2019), and the stages of IMPALA's (Espeholt et al. 2018). */
static const layer_t s_layers[] = {
    {"nature 1", SQUARE(84, 4, 8, 4, 0, 32)},
    {"nature 2", SQUARE(20, 32, 4, 2, 0, 64)},
    {"nature 3", SQUARE(9, 64, 3, 1, 0, 64)},
    {"minatar, 4 channels", SQUARE(10, 4, 3, 1, 0, 16)},
    {"minatar, 10 channels", SQUARE(10, 10, 3, 1, 0, 16)},
    {"impala 1", SQUARE(84, 4, 3, 1, 1, 16)},
    {"impala 1, residual", SQUARE(42, 16, 3, 1, 1, 16)},
    {"impala 2, residual", SQUARE(21, 32, 3, 1, 1, 32)},
    {"impala 3, residual", SQUARE(11, 32, 3, 1, 1, 32)},
};

/*  What is measured now: a layer with its arrays. */
typedef struct {
    const tt_kernels_t *kernels;
    double seconds;
    cpu_window_t window;
    size_t ins, outs, row;
    float *in, *out, *d_in, *weight, *grad, *bias, *bias_grad, *packed, *packed_back;
    json_t *results;
} bench_t;

static double s_measure(bench_t *b, void (*work)(void *ctx))
{
    return bench_measure(work, b, b->seconds);
}

/* ---- a layer ------------------------------------------------------------------------------------------------------------------- */

static size_t s_next(bench_t *b)
{
    b->row = (b->row + 1) % ROWS;
    return b->row;
}

static void s_work_forward(void *ctx)
{
    bench_t *b = ctx;
    const size_t row = s_next(b);
    cpu_conv_forward(
        b->kernels, &b->window, TT_NN_RELU, b->packed, b->bias, b->in + row * b->ins, b->out + row * b->outs);
}

static void s_work_weights(void *ctx)
{
    bench_t *b = ctx;
    const size_t row = s_next(b);
    cpu_conv_param_grad(
        b->kernels, &b->window, b->in + row * b->ins, b->out + row * b->outs, false, b->grad, b->bias_grad);
}

static void s_work_input(void *ctx)
{
    bench_t *b = ctx;
    const size_t row = s_next(b);
    cpu_conv_input_grad(b->kernels, &b->window, b->packed_back, b->out + row * b->outs, TT_NN_RELU,
        b->in + row * b->ins, b->d_in + row * b->ins);
}

/*  Places that lie inside the picture, of all positions of one direction. */
static double s_places(uint32_t in, uint32_t out, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    double places = 0;
    for (uint32_t i = 0; i < out; i++)
        for (uint32_t k = 0; k < kernel; k++)
            places += i * stride + k >= pad && i * stride + k < in + pad;
    return places;
}

static double s_multiply_adds(const cpu_window_t *w)
{
    return s_places(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->pad_h) *
           s_places(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->pad_w) * w->in_c * w->out_c;
}

static void s_open(bench_t *b, const cpu_window_t *window)
{
    cpu_window_t *w = &b->window;
    *w = *window;
    w->out_h = (w->in_h + 2 * w->pad_h - w->kernel_h) / w->stride_h + 1;
    w->out_w = (w->in_w + 2 * w->pad_w - w->kernel_w) / w->stride_w + 1;
    b->ins = (size_t)w->in_h * w->in_w * w->in_c;
    b->outs = (size_t)w->out_h * w->out_w * w->out_c;
    const size_t weights = (size_t)w->kernel_h * w->kernel_w * w->in_c * w->out_c;
    b->in = bench_numbers(ROWS * b->ins, true);
    b->out = bench_numbers(ROWS * b->outs, true);
    b->d_in = bench_numbers(ROWS * b->ins, true);
    b->weight = bench_numbers(weights, false);
    b->grad = bench_numbers(weights, false);
    b->bias = bench_numbers(w->out_c, false);
    b->bias_grad = bench_numbers(w->out_c, false);
    b->packed = bench_numbers(cpu_conv_packed(w), false);
    b->packed_back = bench_numbers(cpu_conv_packed_back(w), false);
    cpu_conv_pack(b->kernels, w, b->weight, b->packed);
    cpu_conv_pack_back(b->kernels, w, b->weight, b->packed_back);
}

static void s_close(bench_t *b)
{
    float *const arrays[] = {
        b->in, b->out, b->d_in, b->weight, b->grad, b->bias, b->bias_grad, b->packed, b->packed_back};
    for (size_t i = 0; i < TT_COUNT(arrays); i++)
        free(arrays[i]);
}

static void s_layer(bench_t *b, const layer_t *layer)
{
    s_open(b, &layer->window);
    const cpu_window_t *w = &b->window;
    const double forward = s_measure(b, s_work_forward), weights = s_measure(b, s_work_weights);
    const double input = s_measure(b, s_work_input);
    json_array_append_new(
        b->results, json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f}", "name", layer->name, "side",
                        (int)w->in_h, "channels", (int)w->in_c, "kernel", (int)w->kernel_h, "stride", (int)w->stride_h,
                        "pad", (int)w->pad_h, "out", (int)w->out_c, "mflop", 2e-6 * s_multiply_adds(w), "forward_us",
                        forward / 1e3, "weights_us", weights / 1e3, "input_us", input / 1e3));
    s_close(b);
}

/* ---- the command --------------------------------------------------------------------------------------------------------------- */

static void s_print(const bench_t *b, const char *device, double own)
{
    size_t i;
    json_t *row;
    printf("kernels      %s\nsgemm %d^3  %.1f GFLOP/s (our own)\n\n", device, BENCH_SIDE, own);
    printf("%-22s %8s %21s %21s %21s\n", "", "", "forward", "gradient of weights", "gradient of input");
    printf("%-22s %8s %12s %8s %12s %8s %12s %8s\n", "", "MFLOP", "us", "GFLOP/s", "us", "GFLOP/s", "us", "GFLOP/s");
    json_array_foreach(b->results, i, row)
    {
        static const char *const what[] = {"forward_us", "weights_us", "input_us"};
        const double mflop = json_real_value(json_object_get(row, "mflop"));
        printf("%-22s %8.3f", json_string_value(json_object_get(row, "name")), mflop);
        for (size_t j = 0; j < TT_COUNT(what); j++) {
            const double us = json_real_value(json_object_get(row, what[j]));
            printf(" %12.2f %8.1f", us, 1e3 * mflop / us);
        }
        putchar('\n');
    }
}

static void s_print_json(const bench_t *b, const char *device, double own)
{
    json_t *all =
        json_pack("{s:s, s:s, s:f, s:O}", "bench", "conv", "device", device, "own_gflops", own, "results", b->results);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

int tt_cmd_bench_conv(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench conv", argc, argv);
    if (!args)
        return code;
    bench_t b = {.seconds = 0.3};
    tt_device_t *device = NULL;
    tt_status_t status = tt_arg_f64(args, "seconds", &b.seconds, 0.01, 60);
    if (status == TT_OK)
        status = tt_device_open(&device, "cpu", 0, 1);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    b.kernels = ((const cpu_device_t *)device)->kernels;
    b.results = json_array();
    const double own = bench_own_gflops(b.kernels, b.seconds);
    for (size_t i = 0; i < TT_COUNT(s_layers); i++)
        s_layer(&b, &s_layers[i]);
    if (tt_arg_is(args, "output", "json"))
        s_print_json(&b, tt_device_name(device), own);
    else
        s_print(&b, tt_device_name(device), own);
    json_decref(b.results);
    tt_device_close(&device);
    return 0;
}
