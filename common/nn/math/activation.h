/*  activation - tanh and ReLU of one number, and their derivatives, in C17 and CUDA C++: operation by operation what a lane of
 *  cpu/kernels_impl.h does.
 *
 *  Special:  NaN passes through all of them; of ReLU -0 stays -0.
 *  Threads:  pure. */
#pragma once
#include "common/base/portable_fn.h"

/*  tanh(x) = x P(x^2) / Q(x^2), |x| clamped to 8: the rational form that Eigen and XLA use, here of degree 9 over 8 with
 *  coefficients of our own (least squares with Lawson weights on [0, 8]; error 3e-7). Q is monic: its first step is an
 *  addition, which has units of its own beside the multipliers. P and Q end in the same number, so tanh(x) = x for small
 *  x. */
#define TT_TANH_END 8.0f
#define TT_TANH_P4  0.017871130257844925f
#define TT_TANH_P3  25.690345764160156f
#define TT_TANH_P2  4190.71826171875f
#define TT_TANH_P1  157749.390625f
#define TT_TANH_Q3  400.26470947265625f
#define TT_TANH_Q2  30699.80859375f
#define TT_TANH_Q1  548861.25f
#define TT_TANH_PQ0 1173335.75f

TT_MATH_FN float tt_tanhf(float x)
{
    const float above = -TT_TANH_END > x ? -TT_TANH_END : x; /* comparisons are false for a NaN, which stays */
    const float c = TT_TANH_END < above ? TT_TANH_END : above;
    const float z = c * c;
    float p = tt_fmaf(TT_TANH_P4, z, TT_TANH_P3);
    p = tt_fmaf(p, z, TT_TANH_P2);
    p = tt_fmaf(p, z, TT_TANH_P1);
    p = tt_fmaf(p, z, TT_TANH_PQ0);
    float q = z + TT_TANH_Q3;
    q = tt_fmaf(q, z, TT_TANH_Q2);
    q = tt_fmaf(q, z, TT_TANH_Q1);
    q = tt_fmaf(q, z, TT_TANH_PQ0);
    return tt_divf(c * p, q);
}

TT_MATH_FN float tt_reluf(float x)
{
    return 0.0f > x ? 0.0f : x;
}

/*  d times the derivative of tanh where it gave y. */
TT_MATH_FN float tt_tanh_back(float y, float d)
{
    return d * tt_fmaf(-y, y, 1.0f);
}

/*  d where ReLU gave something above 0, or a NaN. */
TT_MATH_FN float tt_relu_back(float y, float d)
{
    return y <= 0.0f ? 0.0f : d;
}
