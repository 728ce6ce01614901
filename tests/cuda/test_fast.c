/*  Products that are not exact: within what their rounding allows, the same bits however a minibatch's shards are split, and exact where they
 *  would gain nothing. The library is the stand-in's (tests/simt/lt.cc), or in the programs of tests/gpu NVIDIA's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/cuda/rounded.h"
#include "tests/nn/fixture.h"

enum { SHARDS = 4, BEHIND = 64, OTHERS = 7 };

/* ---- a layer and its way back ---------------------------------------------------------------------------------------- */

typedef struct {
    tt_precision_t precision;
    cuda_kind_t kind;
    bool add;
    uint32_t rows, n, k, length;
    size_t b_at; /* floats by which weights miss an aligned place */
} case_t;

typedef struct {
    rounded_t a, b, bias, h, c;
    cuda_gemm_t job; /* of all rows */
    cuda_run_t run;  /* and shards  */
} layer_t;

static layer_t new_layer(cuda_device_t *device, const case_t *of)
{
    layer_t self = {.a = rounded_array(device, 1, (size_t)of->rows * of->k, 0),
        .b = rounded_array(device, 2, (size_t)of->k * of->n, of->b_at),
        .bias = rounded_array(device, 3, of->n, 1),
        .h = rounded_array(device, 4, (size_t)of->rows * of->n, 0),
        .c = rounded_array(device, 5, (size_t)of->rows * of->n, 0),
        .run = {.shards = SHARDS, .rows = of->rows, .hi = SHARDS, .length = of->length}};
    const bool back = of->kind >= CUDA_D_TANH;
    self.job = (cuda_gemm_t){.kind = of->kind,
        .add = of->add,
        .m = of->rows,
        .n = of->n,
        .k = of->k,
        .a = self.a.there,
        .a_row = of->k,
        .a_k = 1,
        .b = self.b.there,
        .b_k = back ? 1 : of->n,
        .b_col = back ? of->k : 1,
        .c = self.c.there,
        .c_row = of->n,
        .bias = back ? NULL : self.bias.there,
        .h = back ? self.h.there : NULL,
        .h_row = of->n};
    return self;
}

static void layer_free(cuda_device_t *device, layer_t *self)
{
    rounded_free(device, &self->a);
    rounded_free(device, &self->b);
    rounded_free(device, &self->bias);
    rounded_free(device, &self->h);
    rounded_free(device, &self->c);
}

/*  Rows of shards lo .. hi - 1, as a learner has them that has only these. */
static float *layer_run(cuda_device_t *device, const layer_t *self, uint32_t lo, uint32_t hi, bool fast)
{
    cuda_run_t run = self->run;
    cuda_gemm_t job = self->job;
    const size_t first = cuda_first_row(&run, lo), rows = cuda_first_row(&run, hi) - first;
    const cuda_dense_t dense = {fast ? device->fast : NULL, &run};
    run.lo = lo;
    run.hi = hi;
    job.m = (uint32_t)rows;
    job.a += first * job.a_row;
    job.c += first * job.c_row;
    job.h = job.h ? job.h + first * job.h_row : NULL;
    assert_ok(cuda_up(device, self->c.there, self->c.here, self->c.count * sizeof(float)));
    cuda_dense(&dense, device->work, &job);
    assert_ok(cuda_launched(device, "a layer"));
    return rounded_fetch(device, job.c, rows * job.n);
}

static double ended_as(const case_t *of, double sum, double h, double before)
{
    const double out = of->kind == CUDA_TANH     ? tanh(sum)
                       : of->kind == CUDA_RELU   ? fmax(sum, 0)
                       : of->kind == CUDA_D_TANH ? sum * (1 - h * h)
                       : of->kind == CUDA_D_RELU ? (h > 0 ? sum : 0)
                                                 : sum;
    return of->add ? before + out : out;
}

static void assert_layer_near(const case_t *of, const layer_t *layer, const float *got)
{
    double largest = 0;
    for (uint32_t i = 0; i < of->rows; i++)
        for (uint32_t j = 0; j < of->n; j++) {
            const size_t at = (size_t)i * of->n + j;
            const bool back = of->kind >= CUDA_D_TANH;
            double sum = back ? 0 : (double)layer->bias.here[j], size = 0;
            for (uint32_t k = 0; k < of->k; k++) {
                const double term = (double)layer->a.here[(size_t)i * of->k + k] *
                                    (double)layer->b.here[back ? (size_t)j * of->k + k : (size_t)k * of->n + j];
                sum += term;
                size += fabs(term);
            }
            const double off =
                fabs((double)got[at] - ended_as(of, sum, (double)layer->h.here[at], (double)layer->c.here[at]));
            if (!(off <= rounded_allowed(of->precision, size, of->k)))
                fail_msg("row %u, output %u: %g is off by %g", i, j, (double)got[at], off);
            largest = off > largest ? off : largest;
        }
    assert_true(largest > (of->precision == TT_TF32 ? 1e-5 : 1e-4)); /* exact would be nearer */
}

/*  Any run of shards has the bits that all of them have. */
static void assert_layer_splits(cuda_device_t *device, const layer_t *layer, const float *whole)
{
    static const uint32_t runs[][2] = {{0, 2}, {2, 4}, {1, 2}, {3, 4}};
    for (size_t r = 0; r < TT_COUNT(runs); r++) {
        const size_t n = layer->job.n, first = cuda_first_row(&layer->run, runs[r][0]) * n,
                     count = cuda_first_row(&layer->run, runs[r][1]) * n - first;
        float *part = layer_run(device, layer, runs[r][0], runs[r][1], true);
        assert_memory_equal(part, whole + first, count * sizeof *part);
        free(part);
    }
}

static void check_layer(const case_t *of)
{
    cuda_device_t *device = rounded_open(of->precision);
    layer_t layer = new_layer(device, of);
    float *got = layer_run(device, &layer, 0, SHARDS, true);
    assert_layer_near(of, &layer, got);
    assert_layer_splits(device, &layer, got);
    free(got);
    layer_free(device, &layer);
    rounded_close(device);
}

static void layers_are_near(void **state)
{
    (void)state;
    for (cuda_kind_t kind = CUDA_TANH; kind <= CUDA_D_NONE; kind++)
        for (int turn = 0; turn < 4; turn++)
            check_layer(&(case_t){.precision = turn % 2 ? TT_BF16 : TT_TF32,
                .kind = kind,
                .add = turn >= 2 && kind >= CUDA_D_TANH,
                .rows = turn == 3 ? rounded_scaled(52)
                                  : rounded_scaled(53) + 1, /* 13 or 14 of a shard, or by whole sequences 12 or 16 */
                .n = rounded_scaled(turn == 1 ? 40 : 12),
                .k = rounded_scaled(16),
                .length = turn == 3 ? 4 : 0,
                .b_at = (size_t)turn});
}

/* ---- gradients of weights and biases ----------------------------------------------------------------------------------- */

typedef struct {
    rounded_t x, d;
    float *grad[SHARDS]; /* there */
    cuda_outer_t job;
    cuda_run_t run;
    size_t count;
} grads_t;

static grads_t new_grads(cuda_device_t *device, uint32_t rows, uint32_t m, uint32_t n, size_t at)
{
    grads_t self = {.x = rounded_array(device, 6, (size_t)rows * m, 0),
        .d = rounded_array(device, 7, (size_t)rows * n, 0),
        .run = {.shards = SHARDS, .rows = rows, .hi = SHARDS},
        .count = at + (size_t)m * n + n + BEHIND};
    for (uint32_t s = 0; s < SHARDS; s++) {
        void *memory = NULL;
        assert_ok(cuda_alloc(device, &memory, self.count * sizeof(float)));
        self.grad[s] = memory;
        float *others = tt_array0(self.count, sizeof *others);
        for (size_t i = 0; i < self.count; i++)
            others[i] = OTHERS;
        assert_ok(cuda_up(device, memory, others, self.count * sizeof *others));
        free(others);
    }
    self.job = (cuda_outer_t){.m = m,
        .n = n,
        .x = self.x.there,
        .d = self.d.there,
        .x_row = m,
        .d_row = n,
        .at = at,
        .bias_at = at + (size_t)m * n};
    return self;
}

static void grads_free(cuda_device_t *device, grads_t *self)
{
    rounded_free(device, &self->x);
    rounded_free(device, &self->d);
    for (uint32_t s = 0; s < SHARDS; s++)
        cuda_free(device, self->grad[s]);
}

static void grads_run(cuda_device_t *device, const grads_t *self, uint32_t lo, uint32_t hi, float **out)
{
    cuda_run_t run = self->run;
    cuda_outer_t job = self->job;
    const cuda_dense_t dense = {device->fast, &run};
    const size_t first = cuda_first_row(&run, lo);
    run.grad = self->grad;
    run.lo = lo;
    run.hi = hi;
    job.x += first * job.x_row;
    job.d += first * job.d_row;
    cuda_dense_grads(&dense, device->work, &run, &job);
    assert_ok(cuda_launched(device, "gradients"));
    for (uint32_t s = lo; s < hi; s++)
        out[s] = rounded_fetch(device, self->grad[s], self->count);
}

/*  m: inputs, of which one behind the last stands for the bias. */
static void assert_grads_near(tt_precision_t precision, const grads_t *of, uint32_t s, const float *got)
{
    const uint32_t begin = cuda_first_row(&of->run, s), end = cuda_first_row(&of->run, s + 1), n = of->job.n;
    for (uint32_t i = 0; i <= of->job.m; i++)
        for (uint32_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (uint32_t r = begin; r < end; r++) {
                const double x = i < of->job.m ? (double)of->x.here[(size_t)r * of->job.m + i] : 1;
                sum += x * (double)of->d.here[(size_t)r * n + j];
                size += fabs(x * (double)of->d.here[(size_t)r * n + j]);
            }
            const double off = fabs((double)got[of->job.at + (size_t)i * n + j] - sum);
            if (!(off <= rounded_allowed(i < of->job.m ? precision : TT_TF32, size, end - begin)))
                fail_msg("shard %u, input %u, output %u is off by %g", s, i, j, off);
        }
}

static void check_grads(tt_precision_t precision, uint32_t rows, uint32_t m, uint32_t n, size_t at)
{
    cuda_device_t *device = rounded_open(precision);
    grads_t grads = new_grads(device, rows, m, n, at);
    float *whole[SHARDS], *part[SHARDS];
    grads_run(device, &grads, 0, SHARDS, whole);
    grads_run(device, &grads, 0, 1, part);
    grads_run(device, &grads, 1, SHARDS, part);
    for (uint32_t s = 0; s < SHARDS; s++) {
        assert_grads_near(precision, &grads, s, whole[s]);
        assert_memory_equal(whole[s], part[s], grads.count * sizeof(float));
        for (size_t i = 0; i < grads.count; i++) /* what lies before and behind is somebody else's */
            assert_true((i >= at && i < grads.count - BEHIND) || whole[s][i] == OTHERS);
        free(whole[s]);
        free(part[s]);
    }
    grads_free(device, &grads);
    rounded_close(device);
}

static void gradients_are_near(void **state)
{
    (void)state;
    check_grads(TT_TF32, rounded_scaled(53), rounded_scaled(16), rounded_scaled(12), 0);
    check_grads(TT_BF16, rounded_scaled(52), rounded_scaled(12), rounded_scaled(36), 3);
}

/* ---- exact where it gains nothing ---------------------------------------------------------------------------------------- */

static void assert_exact(const case_t *of)
{
    cuda_device_t *device = rounded_open(of->precision);
    layer_t layer = new_layer(device, of);
    float *got = layer_run(device, &layer, 0, SHARDS, true), *exact = layer_run(device, &layer, 0, SHARDS, false);
    assert_memory_equal(got, exact, layer.c.count * sizeof *got);
    free(got);
    free(exact);
    layer_free(device, &layer);
    rounded_close(device);
}

/*  Few multiply-adds, few rows of a shard, or rows that are no vectors of four. */
static void small_products_are_exact(void **state)
{
    (void)state;
    assert_exact(&(case_t){.precision = TT_TF32, .rows = 32, .n = 8, .k = 4});
    assert_exact(&(case_t){.precision = TT_TF32, .rows = 31, .n = rounded_scaled(40), .k = rounded_scaled(40)});
    assert_exact(&(case_t){.precision = TT_TF32, .rows = 3, .n = rounded_scaled(40), .k = rounded_scaled(40)});
    assert_exact(&(case_t){
        .precision = TT_TF32, .rows = rounded_scaled(53), .n = rounded_scaled(12) + 2, .k = rounded_scaled(16)});
    assert_exact(&(case_t){
        .precision = TT_TF32, .rows = rounded_scaled(53), .n = rounded_scaled(12), .k = rounded_scaled(16) + 1});
}

/*  Who asks for heads has no shards. */
static void rows_of_nobodys_shards_are_exact(void **state)
{
    const case_t of = {
        .precision = TT_BF16, .rows = rounded_scaled(53), .n = rounded_scaled(12), .k = rounded_scaled(16)};
    cuda_device_t *device = rounded_open(of.precision);
    layer_t layer = new_layer(device, &of);
    const cuda_dense_t dense = {device->fast, NULL};
    float *exact = layer_run(device, &layer, 0, SHARDS, false);
    (void)state;
    cuda_dense(&dense, device->work, &layer.job);
    float *got = rounded_fetch(device, layer.c.there, layer.c.count);
    assert_memory_equal(got, exact, layer.c.count * sizeof *got);
    free(got);
    free(exact);
    layer_free(device, &layer);
    rounded_close(device);
}

/* ---- what goes wrong ------------------------------------------------------------------------------------------------------ */

static void no_algorithm_is_exact(void **state)
{
    (void)state;
    setenv("TT_SIMT_LT", "none", 1);
    assert_exact(
        &(case_t){.precision = TT_TF32, .rows = rounded_scaled(53), .n = rounded_scaled(12), .k = rounded_scaled(16)});
    unsetenv("TT_SIMT_LT");
}

static void a_product_that_fails_is_said(void **state)
{
    const case_t of = {
        .precision = TT_TF32, .rows = rounded_scaled(53), .n = rounded_scaled(12), .k = rounded_scaled(16)};
    cuda_device_t *device = rounded_open(of.precision);
    layer_t layer = new_layer(device, &of);
    const cuda_dense_t dense = {device->fast, &layer.run};
    (void)state;
    setenv("TT_SIMT_LT", "fails", 1);
    cuda_dense(&dense, device->work, &layer.job);
    unsetenv("TT_SIMT_LT");
    for (int i = 0; i < 2; i++) { /* and the card is not used again */
        assert_int_equal(cuda_launched(device, "a layer"), TT_DEVICE);
        assert_non_null(
            strstr(tt_err_text(), "cuda:0: a product: CUBLAS_STATUS_EXECUTION_FAILED; learner.precision: exact"));
    }
    layer_free(device, &layer);
    rounded_close(device);
}

static void assert_refused(const char *wish, const char *words)
{
    tt_device_t *device = NULL;
    assert_ok(cuda_backend.open(&device, 0, 1));
    setenv("TT_SIMT_LT", wish, 1);
    assert_int_equal(cuda_backend.precision(device, TT_TF32), TT_UNSUPPORTED);
    unsetenv("TT_SIMT_LT");
    assert_non_null(strstr(tt_err_text(), words));
    assert_null(strstr(cuda_backend.describe(device), "tf32"));
    assert_ok(cuda_backend.precision(device, TT_TF32));
    assert_non_null(strstr(cuda_backend.describe(device), ", tf32 by cuBLASLt 13.1.2"));
    cuda_backend.close(device);
}

static void no_library_is_said(void **state)
{
    (void)state;
    assert_refused("missing", "there is no cuBLASLt");
    assert_refused("refuses", "cuda:0: cuBLASLt cannot be used here: CUBLAS_STATUS_NOT_INITIALIZED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_near),
        cmocka_unit_test(gradients_are_near),
        cmocka_unit_test(small_products_are_exact),
        cmocka_unit_test(rows_of_nobodys_shards_are_exact),
    };
    const struct CMUnitTest simulated[] = {
        cmocka_unit_test(no_algorithm_is_exact),
        cmocka_unit_test(a_product_that_fails_is_said),
        cmocka_unit_test(no_library_is_said),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return strcmp(fixture_card(), "cuda-sim") ? failed : failed + cmocka_run_group_tests(simulated, NULL, NULL);
}
