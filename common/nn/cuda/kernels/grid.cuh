/*  grid - which thread does what: counts of blocks, a run's shards as a kernel's argument, places in columns.
 *  Threads: pure. */
#pragma once
#include "common/nn/cuda/kernels.h"
#include "common/nn/cuda/launch.cuh"

#ifdef __CUDACC__
#define CUDA_PRAGMA(words)    _Pragma(#words)
#define CUDA_UNROLL           _Pragma("unroll")
#define CUDA_UNROLL_BY(times) CUDA_PRAGMA(unroll times)
#else
#define CUDA_UNROLL
#define CUDA_UNROLL_BY(times)
#endif

/*  Four neighbours, one load: where they begin is divisible by 16 bytes. */
struct alignas(4 * sizeof(float)) four_t {
    float x[4];
};

/*  Threads of a block where nothing asks for another number: eight warps, so that few blocks hide each other's loads. */
constexpr unsigned CUDA_THREADS = 256;

/*  Of a card of some size: by what a product's tiles are chosen. */
#ifndef CUDA_MULTIPROCESSORS
#define CUDA_MULTIPROCESSORS 128
#endif

static inline unsigned cuda_blocks(size_t count, size_t per_block)
{
    return (unsigned)((count + per_block - 1) / per_block);
}

/*  This thread among those of all blocks of the x axis. */
static __device__ inline size_t cuda_thread()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/*  Some shards of a run, as an argument of a kernel (of which a launch may have 4 KiB): their gradients, and their first
 *  rows counted from the run's; entry `count` is the end of the last. */
constexpr uint32_t CUDA_SHARDS = 128;
struct cuda_shards_t {
    uint32_t first[CUDA_SHARDS + 1];
    float *grad[CUDA_SHARDS];
};

/*  Shards at .. at + count - 1, count <= CUDA_SHARDS. */
static inline cuda_shards_t cuda_shards(const cuda_run_t *run, uint32_t at, uint32_t count)
{
    cuda_shards_t shards = {};
    const uint32_t begin = cuda_first_row(run, run->lo);
    for (uint32_t s = 0; s < count; s++) {
        shards.first[s] = cuda_first_row(run, at + s) - begin;
        shards.grad[s] = run->grad[at + s];
    }
    shards.first[count] = cuda_first_row(run, at + count) - begin;
    return shards;
}

/*  Calls launch(at, count) with all shards of the run, as many at once as an argument holds. */
template <typename launch_fn> static inline void cuda_each_shards(const cuda_run_t *run, launch_fn launch)
{
    for (uint32_t at = run->lo; at < run->hi; at += CUDA_SHARDS)
        launch(at, run->hi - at < CUDA_SHARDS ? run->hi - at : CUDA_SHARDS);
}

/*  Where output `a` of a row stands: in rows of `outs`, or in columns by the row's slot. */
static __device__ inline size_t cuda_place(const uint32_t *slot, size_t row, uint32_t outs, uint32_t a)
{
    if (!slot)
        return row * outs + a;
    const size_t at = slot[row];
    return (at / CUDA_BLOCK * outs + a) * CUDA_BLOCK + at % CUDA_BLOCK;
}
