/*  portable_fn - what functions are marked with that C17 and CUDA C++ share, and the three operations that a CUDA compiler
 *  has to be told not to approximate or take apart.
 *
 *  Everything else that such a function does is plain C: additions, products and comparisons of floats, which neither
 *  compiler contracts (-ffp-contract=off, -fmad=false).
 *  Threads: pure. */
#pragma once

#ifdef __CUDACC__
#define TT_MATH_FN static __host__ __device__ inline
#else
#define TT_MATH_FN static inline
#endif

/*  a b + c, rounded once. */
TT_MATH_FN float tt_fmaf(float a, float b, float c)
{
#ifdef __CUDA_ARCH__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

/*  Correctly rounded, as IEEE 754 has them. */
TT_MATH_FN float tt_divf(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}

TT_MATH_FN float tt_sqrtf(float x)
{
#ifdef __CUDA_ARCH__
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}
