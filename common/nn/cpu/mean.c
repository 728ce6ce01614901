#include <string.h>
#include "common/nn/cpu/cpu.h"

void cpu_mean_forward(const float *head, size_t outs, size_t n, float *q)
{
    for (size_t a = 0; a < outs; a++) {
        const float *part = head + a * n * TT_BLOCK;
        float *mean = q + a * TT_BLOCK;
        memcpy(mean, part, TT_BLOCK * sizeof *mean);
        for (size_t i = 1; i < n; i++)
            for (size_t r = 0; r < TT_BLOCK; r++)
                mean[r] += part[i * TT_BLOCK + r];
        for (size_t r = 0; r < TT_BLOCK; r++)
            mean[r] /= (float)n;
    }
}

void cpu_mean_backward(const float *d_q, size_t outs, size_t n, float *d_head)
{
    for (size_t i = 0; i < outs * n; i++)
        for (size_t r = 0; r < TT_BLOCK; r++)
            d_head[i * TT_BLOCK + r] = d_q[i / n * TT_BLOCK + r] / (float)n;
}
