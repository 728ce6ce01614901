/*  tree - sums over a shard's blocks, and over shards along the tree. */
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

/*  block: where the blocks of these shards begin. */
__global__ void fold(cuda_shards_t shards, const uint32_t *block, uint32_t n, const float *partial, size_t at)
{
    const size_t i = cuda_thread();
    if (i >= n)
        return;
    const uint32_t end = block[blockIdx.y + 1];
    float sum = 0.0f;
    for (size_t b = block[blockIdx.y]; b < end; b++)
        sum = __fadd_rn(sum, partial[b * n + i]);
    shards.grad[blockIdx.y][at + i] = sum;
}

/*  Pairs of a level, as an argument of a kernel. */
constexpr uint32_t PAIRS = 128;
struct pairs_t {
    float *to[PAIRS];
    const float *from[PAIRS];
};

__global__ void add_pairs(pairs_t pairs, size_t count)
{
    const size_t i = cuda_thread();
    if (i < count)
        pairs.to[blockIdx.y][i] = __fadd_rn(pairs.to[blockIdx.y][i], pairs.from[blockIdx.y][i]);
}

__global__ void clear(cuda_shards_t shards, size_t at, size_t count)
{
    const size_t i = cuda_thread();
    if (i < count)
        shards.grad[blockIdx.y][at + i] = 0.0f;
}

} // namespace

void cuda_fold(cudaStream_t stream, const cuda_run_t *run, const cuda_blocks_t *blocks, uint32_t n,
    const float *partial, size_t at)
{
    if (n)
        cuda_each_shards(run, [&](uint32_t first, uint32_t some) {
            CUDA_LAUNCH(fold, dim3(cuda_blocks(n, CUDA_THREADS), some), CUDA_THREADS, 0, stream,
                cuda_shards(run, first, some), blocks->shard_block + (first - run->lo), n, partial, at);
        });
}

/*  The first of them stands at the first multiple of 2 width in the run. */
void cuda_tree_level(cudaStream_t stream, const cuda_run_t *run, uint32_t width, size_t count)
{
    const uint64_t step = 2 * (uint64_t)width;
    uint64_t s = (run->lo + step - 1) / step * step;
    while (count && s + step <= run->hi) {
        pairs_t pairs = {};
        uint32_t some = 0;
        for (; some < PAIRS && s + step <= run->hi; some++, s += step) {
            pairs.to[some] = run->grad[s];
            pairs.from[some] = run->grad[s + width];
        }
        CUDA_LAUNCH(add_pairs, dim3(cuda_blocks(count, CUDA_THREADS), some), CUDA_THREADS, 0, stream, pairs, count);
    }
}

void cuda_clear(cudaStream_t stream, const cuda_run_t *run, size_t at, size_t count)
{
    if (count)
        cuda_each_shards(run, [&](uint32_t first, uint32_t some) {
            CUDA_LAUNCH(clear, dim3(cuda_blocks(count, CUDA_THREADS), some), CUDA_THREADS, 0, stream,
                cuda_shards(run, first, some), at, count);
        });
}
