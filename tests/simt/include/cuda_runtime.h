/*  cuda_runtime - CUDA C++ for the host's compiler: what a kernel may use (simt.h has the machine behind it).
 *
 *  As with the runtime's calls, what is not here does not compile. */
#pragma once
#include <cuda_runtime_api.h>
#include "tests/simt/simt.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

using dim3 = simt::dim3;

#define threadIdx (simt::now->thread)
#define blockIdx  (simt::now->block)
#define blockDim  (simt::now->threads)
#define gridDim   (simt::now->blocks)

#define __syncthreads()               simt::sync_block(__FILE__, __LINE__)
#define __syncwarp(...)               simt::sync_warp(SIMT_MASK(__VA_ARGS__), __FILE__, __LINE__)
#define SIMT_MASK(...)                (0xffffffffu __VA_OPT__(&(__VA_ARGS__)))
#define __shfl_sync(mask, x, from)    simt::shuffle(mask, x, (from)&31u, __FILE__, __LINE__)
#define __shfl_xor_sync(mask, x, bit) simt::shuffle(mask, x, simt::lane() ^ (bit), __FILE__, __LINE__)
#define __shfl_down_sync(mask, x, by) \
    simt::shuffle(mask, x, simt::lane() + (by) < 32 ? simt::lane() + (by) : simt::lane(), __FILE__, __LINE__)
#define __ballot_sync(mask, x) simt::ballot(mask, (x) != 0, __FILE__, __LINE__)

static inline float __fmaf_rn(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return __builtin_sqrtf(a);
}
static inline unsigned __float_as_uint(float x)
{
    return __builtin_bit_cast(unsigned, x);
}
static inline float __uint_as_float(unsigned bits)
{
    return __builtin_bit_cast(float, bits);
}
