/*  What a block of rows adds to a layer's weights (TT_GEMM_ADD) against loops that do what nn.md says: the same bits on every build, in
 *  narrow matrices and in wide ones, whose columns go in parts. */
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "tests/nn/ops_fixture.h"

enum { CASES = 150, GUARD = 3 };

static const float s_guard = 12345.0f;

/*  One chain over the rows for each number, on from what stands there. */
static void s_add(const tt_gemm_t *job, float *c)
{
    for (size_t m = 0; m < job->m; m++)
        for (size_t n = 0; n < job->n; n++) {
            float sum = job->first ? 0.0f : c[m * job->c_row + n];
            for (size_t k = 0; k < job->k; k++)
                sum = fmaf(
                    job->a[m * job->a_row + k * job->a_k], job->b[n / 16 * job->b_panel + k * job->b_k + n % 16], sum);
            c[m * job->c_row + n] = sum;
        }
}

/*  Rows of c are a few numbers apart, which nobody may touch. */
static void s_check_add(const tt_kernels_t *kernels, uint32_t seed)
{
    const size_t m = ops_pick(seed, 0, 1, 13), n = ops_pick(seed, 1, 1, seed % 3 ? 64 : 300);
    const size_t k = ops_pick(seed, 2, 1, TT_BLOCK), n16 = tt_align(n, 16), row = n + GUARD;
    float *b = tt_aligned0(k * n16 * sizeof *b), *a = ops_numbers(seed, 3, OPS_TINY, k * m);
    float *numbers = ops_numbers(seed, 4, OPS_PLAIN, k * n), *there = ops_numbers(seed, 5, OPS_HOLES, m * row);
    float *expected = tt_array0(m * row, sizeof *expected), *got = tt_array0(m * row, sizeof *got);
    for (size_t i = 0; i < k * n; i++)
        b[i / n * n16 + i % n] = numbers[i];
    for (size_t i = 0; i < m * row; i++)
        expected[i] = got[i] = i % row < n ? there[i] : s_guard;
    tt_gemm_t job = {.kind = TT_GEMM_ADD,
        .first = seed % 2,
        .m = m,
        .n = n,
        .k = k,
        .a = a,
        .a_row = 1,
        .a_k = m,
        .b = b,
        .b_panel = 16,
        .b_k = n16,
        .c = got,
        .c_row = row};
    kernels->gemm(&job);
    s_add(&job, expected);
    ops_assert_same(expected, got, m * row, kernels->name, "sums over a block's rows");
    free(b);
    ops_free(a);
    ops_free(numbers);
    ops_free(there);
    free(expected);
    free(got);
}

static void test_sums_over_rows(void **state)
{
    (void)state;
    ops_on_builds(s_check_add, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_over_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
