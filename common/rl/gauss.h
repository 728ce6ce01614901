/*  gauss - what a loss needs of Gaussians with independent dimensions, for C17 and CUDA; draws and log-probabilities: dist.h.
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "common/base/portable_fn.h"

/*  ln(2 pi) / 2 */
#define TT_HALF_LN_2PI 0.918938533f

/*  A log deviation that a network gives, within the limits of soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905: -20 and 2). NAN stays. */
#define TT_LOG_STD_LEAST (-20.0f)
#define TT_LOG_STD_MOST  2.0f

TT_MATH_FN float tt_held_log_std(float x)
{
    x = x < TT_LOG_STD_LEAST ? TT_LOG_STD_LEAST : x;
    return x > TT_LOG_STD_MOST ? TT_LOG_STD_MOST : x;
}

/*  The entropy of every row; log_std[A] is the same for all. */
TT_MATH_FN float tt_gauss_entropy(const float *log_std, uint32_t A)
{
    float total = 0;
    for (uint32_t a = 0; a < A; a++)
        total += log_std[a] + (0.5f + TT_HALF_LN_2PI);
    return total;
}
