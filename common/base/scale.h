/*  scale - a number normalised by a mean and a variance, in C17 and CUDA C++: what common/rl/norm.c does with each, and a device that
 *  scales rows itself.
 *  Threads: pure. */
#pragma once
#include "common/base/portable_fn.h"

/*  clip((x - mean) inv, -clip, clip), in double up to the rounding to float; inv: 1 / sqrt(variance + epsilon). NaN stays NaN. */
TT_MATH_FN float tt_scaled(float x, double mean, double inv, float clip)
{
    const double centred = (double)x - mean;
    float y = (float)(centred * inv);
    y = y > clip ? clip : y;
    return y < -clip ? -clip : y;
}
