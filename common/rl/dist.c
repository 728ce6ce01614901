#include "common/rl/dist.h"
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/vmath.h"

enum {
    SCRATCH = 1024, /* floats on the stack; more choices than that take memory */
    BLOCK = 64      /* rows at a time, fewer when A is large                    */
};

static float s_max(const float *x, uint32_t n)
{
    float max = x[0];
    for (uint32_t a = 1; a < n; a++)
        max = x[a] > max ? x[a] : max;
    return max;
}

/*  Rows of logits: e = exp(logit - max of the row), one call for all of them; sum[i] adds a row's e in order. */
static void s_weights(const float *logits, size_t rows, uint32_t A, float *e, float *max, float *sum)
{
    for (size_t i = 0; i < rows; i++) {
        max[i] = s_max(logits + i * A, A);
        for (uint32_t a = 0; a < A; a++)
            e[i * A + a] = logits[i * A + a] - max[i];
    }
    tt_vexp(e, e, rows * A);
    for (size_t i = 0; i < rows; i++) {
        sum[i] = 0;
        for (uint32_t a = 0; a < A; a++)
            sum[i] += e[i * A + a];
    }
}

/*  The first choice whose cumulative weight exceeds `level`; the last one with any weight if rounding left none. */
static uint32_t s_pick(const float *e, uint32_t A, float level)
{
    float sum = 0;
    uint32_t last = 0;
    for (uint32_t a = 0; a < A; a++) {
        sum += e[a];
        if (sum > level)
            return a;
        if (e[a] > 0)
            last = a;
    }
    return last;
}

static float *s_scratch(float *stack, uint32_t A)
{
    return A <= SCRATCH ? stack : tt_array0(A, sizeof(float));
}

static void s_scratch_free(float *scratch, const float *stack)
{
    if (scratch != stack)
        free(scratch);
}

static size_t s_block(size_t rows, uint32_t A)
{
    const size_t most = A >= SCRATCH ? 1 : SCRATCH / A < BLOCK ? SCRATCH / A : BLOCK;
    return rows < most ? rows : most;
}

void tt_cat_sample(
    const float *logits, size_t rows, uint32_t A, const tt_dist_draw_t *draw, int32_t *action, float *log_prob)
{
    float stack[SCRATCH], max[BLOCK], sum[BLOCK];
    float *e = s_scratch(stack, A);
    for (size_t lo = 0, n; lo < rows; lo += n) {
        n = s_block(rows - lo, A);
        s_weights(logits + lo * A, n, A, e, max, sum);
        for (size_t i = 0; i < n; i++) {
            uint32_t word[4];
            tt_draw(word, draw->seed, draw->stream, draw->who[lo + i], draw->clock[lo + i] << 8);
            const uint32_t a = s_pick(e + i * A, A, tt_unit_f32(word[0]) * sum[i]);
            action[lo + i] = (int32_t)a;
            if (log_prob)
                log_prob[lo + i] = logits[(lo + i) * A + a] - max[i] - tt_logf(sum[i]);
        }
    }
    s_scratch_free(e, stack);
}

void tt_cat_log_prob(const float *logits, size_t rows, uint32_t A, const int32_t *action, float *log_prob)
{
    float stack[SCRATCH], max[BLOCK], sum[BLOCK];
    float *e = s_scratch(stack, A);
    for (size_t lo = 0, n; lo < rows; lo += n) {
        n = s_block(rows - lo, A);
        s_weights(logits + lo * A, n, A, e, max, sum);
        for (size_t i = lo; i < lo + n; i++)
            log_prob[i] = logits[i * A + (uint32_t)action[i]] - max[i - lo] - tt_logf(sum[i - lo]);
    }
    s_scratch_free(e, stack);
}

/*  Draw k of a step: its low 8 bits beside the clock, the rest (more than 1024 dimensions) above it. */
static uint64_t s_counter(uint64_t clock, uint64_t k)
{
    return (clock << 8 | (k & 255)) ^ (k >> 8) << 56;
}

void tt_dist_words(const tt_dist_draw_t *draw, size_t row, uint64_t k, uint32_t word[4])
{
    tt_draw(word, draw->seed, draw->stream, draw->who[row], s_counter(draw->clock[row], k));
}

void tt_gauss_sample_row(const float *mean, const float *log_std, uint32_t A, const tt_dist_draw_t *draw, size_t row,
    uint64_t k, float *action)
{
    for (uint32_t a = 0; a < A; a += 4) {
        uint32_t word[4];
        float z[4];
        tt_dist_words(draw, row, k + a / 4, word);
        tt_normals(word, z);
        for (uint32_t d = 0; d < 4 && a + d < A; d++)
            action[a + d] = mean[a + d] + tt_expf(log_std[a + d]) * z[d];
    }
}

void tt_gauss_sample(const float *mean, const float *log_std, size_t rows, uint32_t A, const tt_dist_draw_t *draw,
    float *action, float *log_prob)
{
    for (size_t i = 0; i < rows; i++)
        tt_gauss_sample_row(mean + i * A, log_std, A, draw, i, 0, action + i * A);
    if (log_prob)
        tt_gauss_log_prob(mean, log_std, rows, A, action, log_prob);
}

void tt_gauss_log_prob(
    const float *mean, const float *log_std, size_t rows, uint32_t A, const float *action, float *log_prob)
{
    for (size_t i = 0; i < rows; i++) {
        float total = 0;
        for (uint32_t a = 0; a < A; a++) {
            const float z = (action[i * A + a] - mean[i * A + a]) * tt_expf(-log_std[a]);
            total += -0.5f * z * z - log_std[a] - TT_HALF_LN_2PI;
        }
        log_prob[i] = total;
    }
}
