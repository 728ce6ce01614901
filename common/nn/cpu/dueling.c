#include <string.h>
#include "common/nn/cpu/cpu.h"

/*  Of each row: number i of all choices, n apart. */
static void s_sum(const float *columns, size_t outs, size_t n, float *sum)
{
    memcpy(sum, columns, TT_BLOCK * sizeof *sum);
    for (size_t a = n; a < outs; a += n)
        for (size_t r = 0; r < TT_BLOCK; r++)
            sum[r] += columns[a * TT_BLOCK + r];
}

static void s_mean(const float *sum, size_t choices, float *mean)
{
    for (size_t r = 0; r < TT_BLOCK; r++)
        mean[r] = sum[r] / (float)choices;
}

void cpu_dueling_forward(const float *value, const float *advantage, size_t outs, size_t n, float *q)
{
    float mean[TT_BLOCK];
    for (size_t i = 0; i < n; i++) {
        s_sum(advantage + i * TT_BLOCK, outs, n, mean);
        s_mean(mean, outs / n, mean);
        for (size_t a = i; a < outs; a += n)
            for (size_t r = 0; r < TT_BLOCK; r++)
                q[a * TT_BLOCK + r] = value[i * TT_BLOCK + r] + (advantage[a * TT_BLOCK + r] - mean[r]);
    }
}

void cpu_dueling_backward(const float *d_q, size_t outs, size_t n, float *d_value, float *d_advantage)
{
    float mean[TT_BLOCK];
    for (size_t i = 0; i < n; i++) {
        s_sum(d_q + i * TT_BLOCK, outs, n, d_value + i * TT_BLOCK);
        s_mean(d_value + i * TT_BLOCK, outs / n, mean);
        for (size_t a = i; a < outs; a += n)
            for (size_t r = 0; r < TT_BLOCK; r++)
                d_advantage[a * TT_BLOCK + r] = d_q[a * TT_BLOCK + r] - mean[r];
    }
}
