/*  Vectors made orthonormal: that they are, and that the bits are those of the two plain loops that orthonormal.h describes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/orthonormal.h"
#include "tests/test.h"

static double s_dot(const double *a, const double *b, size_t n)
{
    double sum[8] = {0};
    for (size_t i = 0; i < n; i++)
        sum[i % 8] += a[i] * b[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

static void s_plain(double *vectors, size_t count, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        double *v = vectors + i * n;
        for (size_t j = 0; j < 2 * i; j++) {
            const double *q = vectors + (j % i) * n, along = s_dot(v, q, n);
            for (size_t k = 0; k < n; k++)
                v[k] -= along * q[k];
        }
        const double scale = 1.0 / sqrt(s_dot(v, v, n));
        for (size_t k = 0; k < n; k++)
            v[k] *= scale;
    }
}

static void s_check_orthonormal(const double *vectors, size_t count, size_t n)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            const double dot = s_dot(vectors + i * n, vectors + j * n, n), expected = i == j;
            if (!(fabs(dot - expected) < 1e-14))
                fail_msg("%zu of %zu: vectors %zu and %zu: %.17g", count, n, i, j, dot);
        }
}

static void s_on_progress(void *ctx)
{
    ++*(size_t *)ctx;
}

static void test_shapes(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{1, 1}, {1, 5}, {1, 8}, {2, 2}, {2, 9}, {3, 7}, {3, 16}, {7, 7}, {8, 8}, {9, 23},
        {16, 31}, {33, 100}, {64, 64}, {4, 513}, {65, 66}};
    for (size_t s = 0; s < TT_COUNT(shapes); s++) {
        const size_t count = shapes[s][0], n = shapes[s][1], size = count * n;
        double *ours = tt_array0(size, sizeof *ours), *plain = tt_array0(size, sizeof *plain);
        for (size_t i = 0; i < size; i++) {
            uint32_t word[4];
            tt_draw(word, 7, TT_STREAM_INIT, (uint32_t)s, i);
            ours[i] = plain[i] = 2.0 * tt_unit_f64(word[0], word[1]) - 1.0;
        }
        size_t done = 0;
        tt_orthonormalise(ours, count, n, (tt_progress_t){s_on_progress, &done});
        assert_int_equal(done, count);
        s_plain(plain, count, n);
        if (memcmp(ours, plain, size * sizeof *ours) != 0)
            fail_msg("%zu vectors of %zu: not the bits of the plain loops", count, n);
        s_check_orthonormal(ours, count, n);
        free(ours);
        free(plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
