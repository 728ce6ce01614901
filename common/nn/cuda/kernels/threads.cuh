/*  threads - a thread for each number of each row: which one is mine. */
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include "common/nn/cuda/launch.cuh"

/*  i is `count` or more where there is nothing to do. */
struct number_t {
    uint32_t row, i;
};

/*  Blocks lie along a row, so that only they divide, or have several short ones. */
static __device__ inline number_t my_number(uint32_t rows, uint32_t count)
{
    const uint32_t parts = (count + blockDim.x - 1) / blockDim.x, row = blockIdx.x / parts * blockDim.y + threadIdx.y;
    return {row, row < rows ? blockIdx.x % parts * blockDim.x + threadIdx.x : UINT32_MAX};
}

/*  V numbers side by side, one load: what costs time beside memory is finding out where they lie. */
constexpr uint32_t QUAD = 4;
template <uint32_t V> struct alignas(V * sizeof(float)) numbers_t {
    float at[V];
};

constexpr unsigned NUMBER_THREADS = 256; /* of a block, at most */

static inline unsigned number_threads(uint32_t count)
{
    return count >= NUMBER_THREADS ? NUMBER_THREADS : (count + 31) / 32 * 32;
}

static inline dim3 number_block(uint32_t count)
{
    return dim3(number_threads(count), NUMBER_THREADS / number_threads(count));
}

static inline unsigned number_blocks(uint32_t rows, uint32_t count)
{
    const dim3 block = number_block(count);
    return (rows + block.y - 1) / block.y * ((count + block.x - 1) / block.x);
}

/*  kernel(job) on `count` numbers of each of `rows` rows; there may be none. */
#define CUDA_LAUNCH_NUMBERS(kernel, stream, rows, count, job)                                           \
    do {                                                                                                \
        if ((rows) > 0 && (count) > 0)                                                                  \
            CUDA_LAUNCH(kernel, number_blocks((rows), (count)), number_block(count), 0, (stream), job); \
    } while (0)
