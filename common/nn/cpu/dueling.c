#include <string.h>
#include "common/nn/cpu/cpu.h"

/*  Over the outputs, of each row. */
static void s_sum(const float *columns, size_t outs, float *sum)
{
    memcpy(sum, columns, TT_BLOCK * sizeof *sum);
    for (size_t a = 1; a < outs; a++)
        for (size_t r = 0; r < TT_BLOCK; r++)
            sum[r] += columns[a * TT_BLOCK + r];
}

static void s_mean(const float *sum, size_t outs, float *mean)
{
    for (size_t r = 0; r < TT_BLOCK; r++)
        mean[r] = sum[r] / (float)outs;
}

void cpu_dueling_forward(const float *value, const float *advantage, size_t outs, float *q)
{
    float mean[TT_BLOCK];
    s_sum(advantage, outs, mean);
    s_mean(mean, outs, mean);
    for (size_t a = 0; a < outs; a++)
        for (size_t r = 0; r < TT_BLOCK; r++)
            q[a * TT_BLOCK + r] = value[r] + (advantage[a * TT_BLOCK + r] - mean[r]);
}

void cpu_dueling_backward(const float *d_q, size_t outs, float *d_value, float *d_advantage)
{
    float mean[TT_BLOCK];
    s_sum(d_q, outs, d_value);
    s_mean(d_value, outs, mean);
    for (size_t a = 0; a < outs; a++)
        for (size_t r = 0; r < TT_BLOCK; r++)
            d_advantage[a * TT_BLOCK + r] = d_q[a * TT_BLOCK + r] - mean[r];
}
