/*  gauss - what a loss needs of Gaussians with independent dimensions, for C17 and CUDA; draws and log-probabilities: dist.h.
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "common/base/portable_fn.h"

/*  ln(2 pi) / 2 */
#define TT_HALF_LN_2PI 0.918938533f

/*  The entropy of every row; log_std[A] is the same for all. */
TT_MATH_FN float tt_gauss_entropy(const float *log_std, uint32_t A)
{
    float total = 0;
    for (uint32_t a = 0; a < A; a++)
        total += log_std[a] + (0.5f + TT_HALF_LN_2PI);
    return total;
}
