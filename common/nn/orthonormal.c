/*  orthonormal - see orthonormal.h.
 *
 *  What takes the time is to read the vectors that are done: a vector's second pass and its successor's first read the
 *  same ones in the same order, so they go together, and the dot product with the next one is summed while the part along
 *  this one is taken off. Each element sees the operations in the order in which the two plain loops have them. */
#include "common/nn/orthonormal.h"
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/vmath.h"

enum { SUMS = 8, HALF = 4 };
/*  Half of the sums: what an AVX2 register holds. Narrower processors take more of theirs for it. */
typedef double half_t __attribute__((vector_size(HALF * sizeof(double)), aligned(sizeof(double)), may_alias));

#define READ(p)  (*(const half_t *)(p))
#define WRITE(p) (*(half_t *)(p))

static double s_total(const double sum[SUMS])
{
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

static double s_dot(const double *a, const double *b, size_t n)
{
    double sum[SUMS] = {0};
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sum[k] += a[i + k] * b[i + k];
    for (size_t k = 0; i < n; i++, k++)
        sum[k] += a[i] * b[i];
    return s_total(sum);
}

/*  v -= along[0] q, w -= along[1] q; along is then v . next and w . next. */
TT_CLONES static void s_take_off(
    double *restrict v, double *restrict w, double along[2], const double *q, const double *next, size_t n)
{
    const double along_v = along[0], along_w = along[1];
    double sum_v[SUMS] = {0}, sum_w[SUMS] = {0};
    half_t lanes_v[2] = {{0}, {0}}, lanes_w[2] = {{0}, {0}};
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t h = 0; h < 2; h++) {
            const size_t at = i + h * HALF;
            const half_t new_v = READ(v + at) - along_v * READ(q + at), new_w = READ(w + at) - along_w * READ(q + at);
            WRITE(v + at) = new_v;
            WRITE(w + at) = new_w;
            lanes_v[h] += new_v * READ(next + at);
            lanes_w[h] += new_w * READ(next + at);
        }
    for (size_t h = 0; h < 2; h++) {
        WRITE(sum_v + h * HALF) = lanes_v[h];
        WRITE(sum_w + h * HALF) = lanes_w[h];
    }
    for (size_t k = 0; i < n; i++, k++) {
        v[i] -= along_v * q[i];
        w[i] -= along_w * q[i];
        sum_v[k] += v[i] * next[i];
        sum_w[k] += w[i] * next[i];
    }
    along[0] = s_total(sum_v);
    along[1] = s_total(sum_w);
}

/*  v has had its first pass along all before it, w, its successor, none. Afterwards v is done and w has had its first. */
static void s_finish(double *v, double *w, const double *vectors, size_t before, size_t n)
{
    double along[2] = {s_dot(v, vectors, n), s_dot(w, vectors, n)};
    for (size_t j = 0; j < before; j++)
        s_take_off(v, w, along, vectors + j * n, vectors + (j + 1 < before ? j + 1 : j) * n, n);
    const double scale = 1.0 / sqrt(s_dot(v, v, n));
    for (size_t k = 0; k < n; k++)
        v[k] *= scale;
    const double last = s_dot(w, v, n);
    for (size_t k = 0; k < n; k++)
        w[k] -= last * v[k];
}

void tt_orthonormalise(double *vectors, size_t count, size_t n, tt_progress_t progress)
{
    double *nobody = tt_array0(n, sizeof *nobody); /* comes after the last */
    for (size_t i = 0; i < count; i++) {
        double *v = vectors + i * n;
        s_finish(v, i + 1 < count ? v + n : nobody, vectors, i, n);
        tt_progress(progress);
    }
    free(nobody);
}
