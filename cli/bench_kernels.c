/*  bench_kernels - what the networks cost on one core, and what the same core's sgemm would allow.
 *
 *  The yardstick is OpenBLAS's cblas_sgemm on one thread when libopenblas.so.0 is there at run time (Tutti does not link
 *  it), else our own product on wide layers. Two networks of the given shape, as in training; the loss is a square, so
 *  that the numbers are the networks' alone. The median of seven runs. */
#include "cli/cmd.h"
#include "cli/bench_loop.h"
#include "cli/bench_nets.h"
#include "common/base/mem.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/nn.h"
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

const tt_option_t tt_opt_bench_kernels[] = {
    {"obs", 0, "N", "elements of an observation, 1 to 65536 (default 4)"},
    {"hidden", 0, "N", "units of each of the two hidden layers, 1 to 4096 (default 64)"},
    {"out", 0, "N", "outputs of the policy, 1 to 4096 (default 2)"},
    {"net", 0, "NAME", "instead of those: nature, impala or minatar, with its encoder"},
    {"seconds", 's', "SECONDS", "time for each measurement, 0.01 to 60 (default 0.3)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { ROWS = 2048, SIDE = BENCH_SIDE, TANHS = 4096 };

typedef struct {
    tt_device_t *device;
    tt_stream_t *stream;
    tt_net_t *net;
    tt_table_t *table;
    tt_sums_t *sums; /* of the measurement in progress */
    tt_opt_t *opt;
    tt_net_spec_t spec;
    double seconds;
    uint32_t actor; /* the number of its tower; the critic's is the next */
    float *memory;  /* observations, and numbers for tanh */
    char *bytes;    /* observations, where they are bytes */
    const void **obs;
    uint32_t *row;
    float *head, *value;
    size_t rows;     /* of the measurement in progress */
    uint32_t shards; /* likewise                       */
    json_t *results;
} bench_t;

static double s_measure(bench_t *b, void (*work)(void *ctx))
{
    return bench_measure(work, b, b->seconds);
}

/* ---- the yardstick ---------------------------------------------------------------------------------------------- */

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
    const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    sgemm_fn call;
    float *a, *b, *c;
} s_blas;

static void s_work_sgemm(void *ctx)
{
    (void)ctx;
    s_blas.call(101, 111, 111, SIDE, SIDE, SIDE, 1.0f, s_blas.a, SIDE, s_blas.b, SIDE, 0.0f, s_blas.c, SIDE);
}

static sgemm_fn s_find_sgemm(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL); /* stays open: it may have threads */
    if (!library)
        return NULL;
    void (*set_threads)(int) = NULL;
    sgemm_fn sgemm = NULL;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    if (!set_threads || !sgemm)
        return NULL;
    set_threads(1);
    return sgemm;
}

/*  GFLOP/s of the yardstick and of our own large product. */
static void s_yardstick(bench_t *b, double *blas, double *own)
{
    s_blas.a = bench_numbers(SIDE * SIDE, false);
    s_blas.b = bench_numbers(SIDE * SIDE, false);
    s_blas.c = bench_numbers(SIDE * SIDE, false);
    s_blas.call = s_find_sgemm();
    *own = bench_own_gflops(((const cpu_device_t *)b->device)->kernels, b->seconds);
    *blas = s_blas.call ? 2.0 * SIDE * SIDE * SIDE / s_measure(b, s_work_sgemm) : 0.0;
    free(s_blas.a);
    free(s_blas.b);
    free(s_blas.c);
}

/* ---- the networks ----------------------------------------------------------------------------------------------- */

/*  Half the sum of squares of all heads: the cheapest loss there is. */
static void s_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const uint32_t *out = params;
    for (uint32_t s = 0; s < 2; s++)
        for (size_t i = 0; i < (size_t)out[s] * TT_BLOCK; i++)
            block->d_head[s][i] = block->head[s][i];
}

static tt_objective_t s_objective(const bench_t *b)
{
    const uint8_t actor = (uint8_t)b->actor, critic = (uint8_t)(actor + 1);
    return (tt_objective_t){.name = "squares",
        .stages = 2,
        .stage = {{.tower = actor, .grad = true}, {.tower = critic, .grad = true}},
        .loss = s_loss};
}

static void s_work_forward(void *ctx)
{
    bench_t *b = ctx;
    float *out[TT_TOWERS_MAX] = {NULL};
    out[b->actor] = b->head;
    out[b->actor + 1] = b->value;
    tt_status_t status = tt_net_forward(b->net, b->stream, 0, b->table, b->rows, NULL, out);
    if (status == TT_OK)
        status = tt_stream_sync(b->stream);
    TT_CHECK(status == TT_OK);
}

static void s_work_grad(void *ctx)
{
    bench_t *b = ctx;
    const uint32_t out[] = {b->spec.tower[b->actor].out, b->spec.tower[b->actor + 1].out};
    const tt_objective_t objective = s_objective(b);
    const tt_pass_t pass = {.objective = &objective,
        .params = out,
        .params_size = sizeof out,
        .obs = {b->table},
        .row = b->row,
        .rows = (uint32_t)b->rows};
    const float *sum = NULL;
    tt_status_t status = tt_sums_compute(b->sums, b->stream, &pass, 0, b->shards);
    if (status == TT_OK)
        status = tt_sums_node(b->sums, b->stream, 1, &sum);
    TT_CHECK(status == TT_OK);
}

static void s_work_apply(void *ctx)
{
    bench_t *b = ctx;
    tt_norms_t norms;
    tt_status_t status = tt_opt_step(b->opt, b->stream, b->sums, 1e-5f);
    if (status == TT_OK)
        status = tt_net_report(b->net, b->stream, b->sums, NULL, &norms);
    if (status == TT_OK)
        status = tt_stream_sync(b->stream);
    TT_CHECK(status == TT_OK);
}

static void s_work_update(void *ctx)
{
    s_work_grad(ctx);
    s_work_apply(ctx);
}

static void s_work_tanh(void *ctx)
{
    bench_t *b = ctx;
    ((const cpu_device_t *)b->device)->kernels->tanh(TANHS, b->memory, b->head);
}

static void s_add(bench_t *b, const char *name, double ns, double flops, double per_row)
{
    json_array_append_new(b->results, json_pack("{s:s, s:f, s:f, s:f}", "name", name, "us", ns / 1e3, "gflops",
                                          flops / ns, "ns_per_row", ns / per_row));
}

static void s_take_shards(bench_t *b, uint32_t shards)
{
    tt_sums_destroy(&b->sums);
    b->shards = shards;
    const tt_status_t status = tt_sums_new(&b->sums, b->net, shards);
    TT_CHECK(status == TT_OK);
}

static void s_networks(bench_t *b)
{
    static const size_t forward_rows[] = {1, 4, 8, 16, 128, ROWS};
    double forward, both;
    char name[48];
    bench_net_work(&b->spec, &forward, &both);
    for (size_t i = 0; i < TT_COUNT(forward_rows) && !(b->bytes && forward_rows[i] > 128);
         i++) { /* pictures take their time */
        b->rows = forward_rows[i];
        snprintf(name, sizeof name, "forward %zu", b->rows);
        s_add(b, name, s_measure(b, s_work_forward), 2 * forward * (double)b->rows, (double)b->rows);
    }
    b->rows = 128;
    for (uint32_t shards = 1; shards <= 8; shards *= 2) {
        s_take_shards(b, shards);
        snprintf(name, sizeof name, "shard_grad 128, %u shards", shards);
        s_add(b, name, s_measure(b, s_work_grad), 2 * both * 128, 128);
    }
    s_add(b, "apply (clip, Adam)", s_measure(b, s_work_apply), 0, 1);
    s_take_shards(b, 1);
    s_add(b, "update 128", s_measure(b, s_work_update), 2 * both * 128, 128);
    s_add(b, "tanh 4096", s_measure(b, s_work_tanh), 0, TANHS);
}

static tt_status_t s_open_net(bench_t *b)
{
    const tt_opt_spec_t adam = {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f};
    TT_TRY(tt_device_open(&b->device, "cpu", 0, 1));
    TT_TRY(tt_stream_new(&b->stream, b->device));
    TT_TRY(tt_net_new(&b->net, b->device, &b->spec));
    TT_TRY(tt_net_init(b->net, b->stream, 1, (const float[]){1.0f, 1.0f, 1.0f}, 0.0f, TT_NO_PROGRESS));
    TT_TRY(tt_opt_new(&b->opt, b->net, 0, &adam));
    return tt_table_new(&b->table, b->device, tt_net_row_bytes(&b->spec));
}

static tt_status_t s_open(bench_t *b)
{
    TT_TRY(s_open_net(b));
    b->memory = bench_numbers(tt_mul(ROWS, b->spec.obs > 2 && !b->spec.parts ? b->spec.obs : 2), false);
    b->bytes = b->spec.parts ? bench_net_rows(&b->spec, ROWS) : NULL;
    b->obs = tt_array0(ROWS, sizeof *b->obs);
    b->row = tt_array0(ROWS, sizeof *b->row);
    for (uint32_t k = 0; k < ROWS; k++) {
        b->row[k] = k;
        const size_t from = k * 37u % ROWS; /* a shuffled minibatch */
        b->obs[k] = (b->bytes ? b->bytes : (char *)b->memory) + from * tt_net_row_bytes(&b->spec);
    }
    b->head = tt_aligned0(
        tt_mul(tt_mul(ROWS, b->spec.tower[b->actor].out > 2 ? b->spec.tower[b->actor].out : 2), sizeof *b->head));
    b->value = tt_array0(ROWS, sizeof *b->value);
    b->results = json_array();
    return tt_table_put_rows(b->table, b->stream, b->obs, ROWS);
}

static void s_close(bench_t *b)
{
    tt_opt_destroy(&b->opt);
    tt_sums_destroy(&b->sums);
    tt_table_destroy(&b->table);
    tt_net_destroy(&b->net);
    tt_stream_destroy(&b->stream);
    tt_device_close(&b->device);
    free(b->memory);
    free(b->bytes);
    free(b->obs);
    free(b->row);
    free(b->head);
    free(b->value);
    json_decref(b->results);
}

static void s_print(const bench_t *b, double blas, double own)
{
    size_t i;
    json_t *row;
    const double yardstick = blas > 0 ? blas : own;
    printf("kernels        %s\n", tt_device_name(b->device));
    if (blas > 0)
        printf("sgemm %d^3    %.1f GFLOP/s (OpenBLAS, one thread)\n", SIDE, blas);
    printf("sgemm %d^3    %.1f GFLOP/s (our own)\n\n", SIDE, own);
    printf("%-28s %10s %10s %10s %9s\n", "", "us", "ns/row", "GFLOP/s", "of sgemm");
    json_array_foreach(b->results, i, row)
    {
        const double gflops = json_real_value(json_object_get(row, "gflops"));
        printf("%-28s %10.2f %10.2f", json_string_value(json_object_get(row, "name")),
            json_real_value(json_object_get(row, "us")), json_real_value(json_object_get(row, "ns_per_row")));
        if (gflops > 0)
            printf(" %10.1f %8.0f%%", gflops, 100 * gflops / yardstick);
        putchar('\n');
    }
}

static void s_print_json(const bench_t *b, double blas, double own)
{
    json_t *all =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:O}", "bench", "kernels", "device", tt_device_name(b->device),
            "obs", (json_int_t)b->spec.obs, "hidden", (json_int_t)b->spec.tower[0].hidden[0], "out",
            (json_int_t)b->spec.tower[b->actor].out, "openblas_gflops", blas, "own_gflops", own, "results", b->results);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

static tt_status_t s_options(const tt_args_t *args, bench_t *b)
{
    uint64_t obs = 4, hidden = 64, out = 2;
    b->seconds = 0.3;
    TT_TRY(tt_arg_u64(args, "obs", &obs, 1, 65536));
    TT_TRY(tt_arg_u64(args, "hidden", &hidden, 1, 4096));
    TT_TRY(tt_arg_u64(args, "out", &out, 1, 4096));
    TT_TRY(tt_arg_f64(args, "seconds", &b->seconds, 0.01, 60));
    b->spec = tt_net_actor_critic(
        (uint32_t)obs, (const uint32_t[]){(uint32_t)hidden, (uint32_t)hidden}, 2, TT_NN_TANH, (uint32_t)out, 0);
    const char *net = tt_arg(args, "net");
    if (net)
        TT_TRY(bench_net(net, (uint32_t)out, &b->spec));
    b->actor = net ? 1 : 0;
    return TT_OK;
}

int tt_cmd_bench_kernels(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench kernels", argc, argv);
    if (!args)
        return code;
    bench_t b = {0};
    double blas = 0, own = 0;
    tt_status_t status = s_options(args, &b);
    if (status == TT_OK)
        status = s_open(&b);
    if (status == TT_OK) {
        s_yardstick(&b, &blas, &own);
        s_networks(&b);
        if (tt_arg_is(args, "output", "json"))
            s_print_json(&b, blas, own);
        else
            s_print(&b, blas, own);
    }
    s_close(&b);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
