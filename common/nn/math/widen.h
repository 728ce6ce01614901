/*  widen - a byte as a number, in C17 and CUDA C++.
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "common/base/portable_fn.h"

/*  byte / divisor without a division, reciprocal being 1 / divisor rounded: the product with it, set right by what it lacks. For
 *  255 and every byte the quotient is the correctly rounded one; for 1 there is nothing to set right. */
TT_MATH_FN float tt_widened(uint8_t byte, float divisor, float reciprocal)
{
    const float x = (float)byte, quotient = x * reciprocal;
    return tt_fmaf(tt_fmaf(-quotient, divisor, x), reciprocal, quotient);
}
