/*  unit - how a unit's sum ends (ended.cuh), and how the 16 lanes of a head's are added: one and the same for products of all rows (dense.cu) and
 *  for small networks at once (mlp.cuh).
 *  Threads: pure; sum_of_lanes wants all of a warp. */
#pragma once
#include "common/nn/cuda/kernels/ended.cuh"
#include "common/nn/cuda/kernels/grid.cuh"

constexpr unsigned LANES = 16; /* of a dot product, half a warp's threads */
constexpr unsigned OUTS = 4;   /* that share what was loaded of a row     */

/*  16 -> 8 -> 4 -> 2 -> 1: additions are of the same two lanes in either, so all of them have the sum. */
static __device__ inline float sum_of_lanes(float sum)
{
    for (unsigned half = LANES / 2; half; half /= 2)
        sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, half));
    return sum;
}
