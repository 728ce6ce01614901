/*  threads - a thread for each number of each row: which one is mine. */
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include "common/nn/cuda/launch.cuh"

/*  Blocks lie along a row, so that only they divide. */
struct number_t {
    uint32_t row, i;
};

static __device__ inline number_t my_number(uint32_t count)
{
    const uint32_t parts = (count + blockDim.x - 1) / blockDim.x;
    return {blockIdx.x / parts, blockIdx.x % parts * blockDim.x + threadIdx.x};
}

constexpr unsigned NUMBER_THREADS = 256; /* of a block, at most */

static inline unsigned number_threads(uint32_t count)
{
    return count >= NUMBER_THREADS ? NUMBER_THREADS : (count + 31) / 32 * 32;
}

static inline unsigned number_blocks(uint32_t rows, uint32_t count)
{
    return rows * ((count + number_threads(count) - 1) / number_threads(count));
}

/*  kernel(job) on `count` numbers of each of `rows` rows; there may be none. */
#define CUDA_LAUNCH_NUMBERS(kernel, stream, rows, count, job)                                             \
    do {                                                                                                  \
        if ((rows) > 0 && (count) > 0)                                                                    \
            CUDA_LAUNCH(kernel, number_blocks((rows), (count)), number_threads(count), 0, (stream), job); \
    } while (0)
