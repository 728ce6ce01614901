#include "common/nn/adam.h"
#include <math.h>

static double s_power(double beta, uint64_t n)
{
    double result = 1.0;
    for (; n; n >>= 1, beta *= beta)
        if (n & 1)
            result *= beta;
    return result;
}

float tt_adam_correct(const tt_opt_spec_t *opt, uint64_t step, float *lr)
{
    *lr = (float)((double)*lr / (1.0 - s_power((double)opt->beta1, step)));
    return (float)(1.0 / sqrt(1.0 - s_power((double)opt->beta2, step)));
}
