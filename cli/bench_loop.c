#include "cli/bench_loop.h"
#include <stdint.h>
#include <stdlib.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

int bench_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double s_time(void (*work)(void *ctx), void *ctx, uint64_t count)
{
    const int64_t start = tt_now_ns(tt_clock_real());
    for (uint64_t i = 0; i < count; i++)
        work(ctx);
    return (double)(tt_now_ns(tt_clock_real()) - start);
}

double bench_measure(void (*work)(void *ctx), void *ctx, double seconds)
{
    const double share = seconds * 1e9 / BENCH_RUNS;
    uint64_t count = 1;
    for (double ns = s_time(work, ctx, 1); ns < share / 4; ns = s_time(work, ctx, count))
        count *= 2;
    count *= 2;
    double runs[BENCH_RUNS];
    for (int i = 0; i < BENCH_RUNS; i++)
        runs[i] = s_time(work, ctx, count) / (double)count;
    qsort(runs, BENCH_RUNS, sizeof runs[0], bench_ascending);
    return runs[BENCH_RUNS / 2];
}

float *bench_numbers(size_t count, bool positive)
{
    float *numbers = tt_aligned0(tt_mul(count + 16, sizeof *numbers)); /* kernels may load a whole vector at the end */
    for (size_t i = 0; i < count; i++) {
        uint32_t word[4];
        tt_draw(word, 1, TT_STREAM_TEST, 0, i);
        const float x = 2.0f * tt_unit_f32(word[0]) - 1.0f;
        numbers[i] = positive && x < 0.0f ? 0.0f : x;
    }
    return numbers;
}

typedef struct {
    const tt_kernels_t *kernels;
    float *a, *b, *c;
} product_t;

static void s_work_product(void *ctx)
{
    const product_t *p = ctx;
    for (size_t at = 0; at < BENCH_SIDE; at += TT_BLOCK) {
        const tt_gemm_t job = {
            .kind = TT_GEMM_ADD,
            .first = true,
            .m = TT_BLOCK,
            .n = BENCH_SIDE,
            .k = BENCH_SIDE,
            .a = p->a + at * BENCH_SIDE,
            .a_row = BENCH_SIDE,
            .a_k = 1,
            .b = p->b,
            .b_panel = 16 * BENCH_SIDE,
            .b_k = 16,
            .c = p->c + at * BENCH_SIDE,
            .c_row = BENCH_SIDE,
        };
        p->kernels->gemm(&job);
    }
}

double bench_own_gflops(const tt_kernels_t *kernels, double seconds)
{
    enum { SQUARE = BENCH_SIDE * BENCH_SIDE };
    product_t p = {kernels, bench_numbers(SQUARE, false), bench_numbers(SQUARE, false), bench_numbers(SQUARE, false)};
    const double ns = bench_measure(s_work_product, &p, seconds);
    free(p.a);
    free(p.b);
    free(p.c);
    return 2.0 * SQUARE * BENCH_SIDE / ns;
}
