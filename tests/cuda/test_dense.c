/*  Products, outer products and heads of the CUDA backend, on the simulated card, against the CPU's kernels: the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cpu/kernels.h"
#include "tests/cuda/card.h"

static const tt_kernels_t *const s_cpu = &tt_kernels_portable;

static size_t s_padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

/*  rows x cols in rows of whole vectors, zeros behind. */
static float *s_pad(const float *from, size_t rows, size_t cols, size_t row, size_t col)
{
    const size_t wide = s_padded(cols);
    float *to = tt_aligned0((rows * wide + 16) * sizeof *to);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[i * wide + j] = from[i * row + j * col];
    return to;
}

/* ---- layers --------------------------------------------------------------------------------------------------------- */

/*  The sum, and what becomes of it, with what is 0 left out: the CPU has such a product of bytes alone. */
static float s_skipping(const cuda_gemm_t *g, size_t i, size_t j)
{
    const bool biased = g->kind <= CUDA_SUM;
    float sum = biased ? g->bias[j] : 0.0f;
    for (size_t k = 0; k < g->k; k++) {
        const float x = g->a[i * g->a_row + k * g->a_k];
        sum = x != 0.0f ? fmaf(x, g->b[k * g->b_k + j * g->b_col], sum) : sum;
    }
    static const tt_nn_activation_t of[] = {TT_NN_TANH, TT_NN_RELU, TT_NN_NONE, TT_NN_TANH, TT_NN_RELU, TT_NN_NONE};
    return biased ? ops_activate(s_cpu, of[g->kind], sum)
                  : ops_derivative(of[g->kind], g->h ? g->h[i * g->h_row + j] : 0, sum);
}

static void s_cpu_gemm(const cuda_gemm_t *g, float *c)
{
    static const tt_gemm_kind_t kinds[] = {
        TT_GEMM_TANH, TT_GEMM_RELU, TT_GEMM_SUM, TT_GEMM_D_TANH, TT_GEMM_D_RELU, TT_GEMM_D_NONE};
    const size_t wide = s_padded(g->n);
    float *rows = s_pad(g->b, g->k, g->n, g->b_k, g->b_col), *out = s_pad(c, g->m, g->n, 0, 0);
    float *panels = tt_aligned0((g->k * wide + 16) * sizeof *panels);
    float *bias = g->bias ? s_pad(g->bias, 1, g->n, 0, 1) : NULL,
          *h = g->h ? s_pad(g->h, g->m, g->n, g->h_row, 1) : NULL;
    s_cpu->pack(g->k, wide, rows, panels);
    const tt_gemm_t job = {.kind = kinds[g->kind],
        .m = g->m,
        .n = wide,
        .k = g->k,
        .a = g->a,
        .a_row = g->a_row,
        .a_k = g->a_k,
        .b = panels,
        .b_panel = 16 * g->k,
        .b_k = 16,
        .c = out,
        .c_row = wide,
        .bias = bias,
        .h = h,
        .h_row = wide};
    s_cpu->gemm(&job);
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            const float now = g->skip_zeros ? s_skipping(g, i, j) : out[i * wide + j];
            c[i * g->c_row + j] = g->add ? c[i * g->c_row + j] + now : now;
        }
    free(rows);
    free(out);
    free(panels);
    free(bias);
    free(h);
}

/*  A job of these sizes; the rest by seed: kinds, which way the factors lie, gaps between rows. */
static cuda_gemm_t s_job(uint32_t seed, uint32_t m, uint32_t n, uint32_t k)
{
    const uint32_t gap = seed % 2;
    const bool a_down = ops_pick(seed, 4, 0, 1), b_down = ops_pick(seed, 5, 0, 1);
    return (cuda_gemm_t){.kind = (cuda_kind_t)ops_pick(seed, 3, 0, 5),
        .add = ops_pick(seed, 6, 0, 2) == 2,
        .skip_zeros = ops_pick(seed, 7, 0, 2) == 2,
        .m = m,
        .n = n,
        .k = k,
        .a_row = a_down ? 1 : k + gap,
        .a_k = a_down ? m + gap : 1,
        .b_k = b_down ? 1 : n + gap,
        .b_col = b_down ? k + gap : 1,
        .c_row = n + gap,
        .h_row = n + 2 * gap};
}

/*  The last number of a factor, and one behind it. */
static size_t s_end(size_t a, size_t a_step, size_t b, size_t b_step)
{
    return a && b ? (a - 1) * a_step + (b - 1) * b_step + 1 : 0;
}

static void s_gemm(uint32_t seed, uint32_t m, uint32_t n, uint32_t k)
{
    cuda_gemm_t here = s_job(seed, m, n, k);
    const size_t a = s_end(m, here.a_row, k, here.a_k), b = s_end(k, here.b_k, n, here.b_col);
    const size_t out = s_end(m, here.c_row, n, 1), h = s_end(m, here.h_row, n, 1);
    float *const x = card_numbers(seed, 0, a), *const w = card_numbers(seed, 1, b),
                 *const c = card_numbers(seed, 2, out);
    float *const bias = here.kind <= CUDA_SUM ? card_numbers(seed, 3, n) : NULL;
    float *const back = here.kind == CUDA_D_TANH || here.kind == CUDA_D_RELU ? card_numbers(seed, 4, h) : NULL;
    here.a = x, here.b = w, here.c = c, here.bias = bias, here.h = back;
    cuda_gemm_t there = here;
    there.a = card_put(x, a), there.b = card_put(w, b), there.c = card_put(c, out);
    there.bias = card_put(bias, n), there.h = card_put(back, h);
    cuda_gemm(card_stream(), &there);
    s_cpu_gemm(&here, c);
    card_assert(c, there.c, out, "product");
    free(x);
    free(w);
    free(c);
    free(bias);
    free(back);
}

static void s_gemm_narrow(uint32_t seed)
{
    s_gemm(seed, ops_pick(seed, 0, 1, 100), ops_pick(seed, 1, 1, 70), ops_pick(seed, 2, seed % 7 ? 1 : 0, 50));
}

static void test_gemm(void **state)
{
    (void)state;
    card_each(s_gemm_narrow, 40);
}

/*  So many that the tiles are wide. */
static void s_gemm_wide(uint32_t seed)
{
    s_gemm(seed, ops_pick(seed, 0, 1025, 1100), ops_pick(seed, 1, 65, 140), ops_pick(seed, 2, 1, 50));
}

static void test_gemm_wide(void **state)
{
    (void)state;
    card_each(s_gemm_wide, 6);
}

/* ---- what weights get ----------------------------------------------------------------------------------------------- */

static void s_outer_skipping(const cuda_outer_t *job, const float *x, const float *d, uint32_t rows, float *grad)
{
    for (size_t i = 0; i < job->m; i++)
        for (size_t j = 0; j < job->n; j++) {
            float sum = 0.0f;
            for (size_t r = 0; r < rows; r++)
                sum = x[r * job->x_row + i] != 0.0f ? fmaf(x[r * job->x_row + i], d[r * job->d_row + j], sum) : sum;
            grad[job->at + i * job->n + j] = sum;
        }
}

/*  A shard, as cpu/tower.c does it. */
static void s_cpu_outer(const cuda_outer_t *job, const float *x, const float *d, uint32_t rows, float *grad)
{
    const size_t wide = s_padded(job->n);
    float *whole = s_pad(d, rows, job->n, job->d_row, 1);
    const tt_gemm_t gemm = {.kind = TT_GEMM_ADD,
        .first = true,
        .m = job->m,
        .n = job->n,
        .k = rows,
        .a = x,
        .a_row = 1,
        .a_k = job->x_row,
        .b = whole,
        .b_panel = 16,
        .b_k = wide,
        .c = grad + job->at,
        .c_row = job->n};
    if (job->skip_zeros)
        s_outer_skipping(job, x, d, rows, grad);
    else
        s_cpu->gemm(&gemm);
    s_cpu->column_sum(rows, job->n, whole, wide, true, grad + job->bias_at);
    free(whole);
}

static void s_outer(uint32_t seed, uint32_t m, uint32_t n)
{
    const size_t weights = (size_t)m * n, before = seed % 3;
    cuda_outer_t job = {.skip_zeros = seed % 4 == 1,
        .m = m,
        .n = n,
        .x_row = m + seed % 2,
        .d_row = n + seed % 3,
        .at = before,
        .bias_at = before + weights + seed % 2};
    card_run_t run = card_run(seed, job.bias_at + n + 1);
    const size_t xs = run.rows * job.x_row, ds = run.rows * job.d_row;
    float *x = card_numbers(seed, 0, xs), *d = card_numbers(seed, 1, ds);
    job.x = card_put(x, xs), job.d = card_put(d, ds);
    cuda_outer(card_stream(), &run.run, &job);
    for (uint32_t s = run.run.lo; s < run.run.hi; s++) {
        const uint32_t first = card_first(&run, s), rows = card_first(&run, s + 1) - first;
        s_cpu_outer(&job, x + first * job.x_row, d + first * job.d_row, rows, run.here[s]);
    }
    card_assert_run(&run, "outer product");
    free(x);
    free(d);
    card_run_free(&run);
}

static void s_outer_narrow(uint32_t seed)
{
    s_outer(seed, ops_pick(seed, 0, 1, 40), ops_pick(seed, 1, 1, 40));
}

static void s_outer_wide(uint32_t seed)
{
    s_outer(8 * seed + 7, 33 + seed * 32, 65 + seed);
}

static void test_outer(void **state)
{
    (void)state;
    card_each(s_outer_narrow, 24);
}

static void test_outer_wide(void **state)
{
    (void)state;
    card_each(s_outer_wide, 2);
}

/* ---- heads ---------------------------------------------------------------------------------------------------------- */

/*  Rows of the run of a case through a head, to columns. */
static float *s_cpu_dots(const card_run_t *run, const card_blocks_t *blocks, const cuda_dots_t *job)
{
    const size_t wide = s_padded(job->k);
    float *x = s_pad(job->x, job->rows, job->k, job->k, 1), *w = s_pad(job->w, job->outs, job->k, 1, job->outs);
    float *columns = tt_array0((size_t)blocks->blocks * job->outs * TT_BLOCK + 1, sizeof *columns);
    for (uint32_t r = 0; r < run->rows; r++) {
        const size_t slot = blocks->slot[r];
        s_cpu->dots(1, wide, x + r * wide, w, job->bias, job->outs,
            columns + slot / TT_BLOCK * job->outs * TT_BLOCK + slot % TT_BLOCK);
    }
    free(x);
    free(w);
    return columns;
}

static float *s_rows(const card_blocks_t *blocks, uint32_t rows, uint32_t outs, const float *columns)
{
    float *out = tt_array0((size_t)rows * outs + 1, sizeof *out);
    for (size_t r = 0; r < rows; r++)
        for (size_t a = 0; a < outs; a++)
            out[r * outs + a] =
                columns[(blocks->slot[r] / TT_BLOCK * outs + a) * TT_BLOCK + blocks->slot[r] % TT_BLOCK];
    return out;
}

static void s_dots(uint32_t seed)
{
    card_run_t run = card_run(seed, 1);
    card_blocks_t blocks = card_blocks(&run);
    const uint32_t k = ops_pick(seed, 0, 1, 70), outs = ops_pick(seed, 1, 1, 11);
    const size_t count = (size_t)blocks.blocks * outs * TT_BLOCK;
    float *x = card_numbers(seed, 0, (size_t)run.rows * k), *w = card_numbers(seed, 1, (size_t)k * outs);
    float *bias = card_numbers(seed, 2, outs);
    cuda_dots_t job = {.rows = run.rows, .k = k, .outs = outs, .x = x, .w = w, .bias = bias};
    float *columns = s_cpu_dots(&run, &blocks, &job), *rows = s_rows(&blocks, run.rows, outs, columns);
    job.x = card_put(x, (size_t)run.rows * k), job.w = card_put(w, (size_t)k * outs), job.bias = card_put(bias, outs);
    job.out = card_room((size_t)run.rows * outs);
    cuda_dots(card_stream(), &job);
    card_assert(rows, job.out, (size_t)run.rows * outs, "head");
    float *zeros = tt_array0(count + 1, sizeof *zeros);
    job.slot = blocks.there.slot, job.out = card_put(zeros, count);
    cuda_dots(card_stream(), &job);
    card_assert(columns, job.out, count, "head, in columns");
    float *back = card_room((size_t)run.rows * outs);
    cuda_rows_of_columns(card_stream(), run.rows, blocks.there.slot, outs, job.out, back);
    card_assert(rows, back, (size_t)run.rows * outs, "rows of columns");
    free(x);
    free(w);
    free(bias);
    free(columns);
    free(rows);
    free(zeros);
    card_blocks_free(&blocks);
    card_run_free(&run);
}

static void test_dots(void **state)
{
    (void)state;
    card_each(s_dots, 16);
}

static void s_add_rows(uint32_t seed)
{
    const size_t count = ops_pick(seed, 0, 0, 600);
    float *out = card_numbers(seed, 0, count), *more = card_numbers(seed, 1, count);
    float *there = card_put(out, count);
    cuda_add_rows(card_stream(), count, card_put(more, count), there);
    for (size_t i = 0; i < count; i++)
        out[i] += more[i];
    card_assert(out, there, count, "rows added");
    free(out);
    free(more);
}

static void test_add_rows(void **state)
{
    (void)state;
    card_each(s_add_rows, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_wide),
        cmocka_unit_test(test_outer),
        cmocka_unit_test(test_outer_wide),
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_add_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
