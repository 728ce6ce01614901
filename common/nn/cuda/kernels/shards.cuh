/*  shards - which rows of a run are a shard's (cuda_run_t). */
#pragma once
#include <cuda_runtime.h>
#include "common/nn/cuda/kernels_encoder.h"

/*  Counted from the first row of the run. */
struct shard_rows_t {
    uint32_t first, end;
};

static __host__ __device__ inline uint32_t shard_begin(const cuda_run_t &run, uint32_t s)
{
    return (uint32_t)((uint64_t)s * run.rows / run.shards);
}

static __host__ __device__ inline shard_rows_t shard_rows(const cuda_run_t &run, uint32_t s)
{
    const uint32_t before = shard_begin(run, run.lo);
    return {shard_begin(run, s) - before, shard_begin(run, s + 1) - before};
}

static __host__ __device__ inline uint32_t run_rows(const cuda_run_t &run)
{
    return shard_begin(run, run.hi) - shard_begin(run, run.lo);
}
