/*  embed - learned vectors of choices: which choice a row made, its vector, and the sums of what came to each. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/nn/cuda/kernels/threads.cuh"

namespace
{

enum { LANES = 32, WARPS = 8 };

/*  A warp looks for the first of a group's numbers that is not 0. Warps without a group do another's work, and keep it to themselves. */
__global__ void s_choose(cuda_choose_t job)
{
    const size_t groups = (size_t)job.count * job.frames;
    const size_t wanted = (size_t)blockIdx.x * WARPS + threadIdx.x / LANES;
    const size_t my = wanted < groups ? wanted : groups - 1;
    const uint32_t lane = threadIdx.x % LANES, frame = my % job.frames;
    const size_t row = my / job.frames;
    const uint8_t *from = job.rows + (job.row ? job.row[row] : row) * job.row_bytes + job.at;
    const float *hot = (const float *)(const void *)from + (size_t)frame * job.deep;
    uint32_t first = job.n;
    for (uint32_t i = lane; i < job.n && first == job.n; i += LANES)
        first = hot[i] != 0.0f ? i : first;
    for (int half = LANES / 2; half; half /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, first, half);
        first = other < first ? other : first;
    }
    if (lane == 0 && wanted < groups)
        job.chosen[(row * job.frames + frame) * job.choices + job.choice] =
            first < job.n ? job.first + first : CUDA_NO_CHOICE;
}

__global__ void s_embed(cuda_embed_t job)
{
    const number_t my = my_number(job.rows, job.groups * job.units);
    if (my.i >= job.groups * job.units)
        return;
    const uint32_t chosen = job.chosen[(size_t)my.row * job.groups + my.i / job.units];
    const float x = chosen == CUDA_NO_CHOICE ? 0.0f : job.table[(size_t)chosen * job.units + my.i % job.units];
    job.out[my.row * job.out_row + my.i] = activated(job.act, x);
}

/*  A chain for each number of the table, over the rows that chose it and, in a row, over its frames. */
__global__ void s_grads(cuda_shards_t shards, cuda_embed_grads_t job)
{
    const size_t at = cuda_thread();
    if (at >= (size_t)job.n * job.units)
        return;
    const uint32_t mine = job.first + (uint32_t)(at / job.units), unit = at % job.units, s = blockIdx.y;
    float sum = 0.0f;
    for (size_t r = shards.first[s]; r < shards.first[s + 1]; r++)
        for (uint32_t g = job.choice; g < job.groups; g += job.choices)
            if (job.chosen[r * job.groups + g] == mine)
                sum = __fadd_rn(sum, job.d[r * job.d_row + (size_t)g * job.units + unit]);
    shards.grad[s][job.at + (size_t)job.first * job.units + at] = sum;
}

} // namespace

void cuda_choose(cudaStream_t stream, const cuda_choose_t *job)
{
    const size_t groups = (size_t)job->count * job->frames;
    if (groups)
        CUDA_LAUNCH(s_choose, cuda_blocks(groups, WARPS), WARPS * LANES, 0, stream, *job);
}

void cuda_embed(cudaStream_t stream, const cuda_embed_t *job)
{
    CUDA_LAUNCH_NUMBERS(s_embed, stream, job->rows, job->groups * job->units, *job);
}

void cuda_embed_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_embed_grads_t *job)
{
    cuda_each_shards(run, [&](uint32_t shard, uint32_t shards) {
        const dim3 grid(cuda_blocks((size_t)job->n * job->units, CUDA_THREADS), shards);
        const cuda_shards_t these = cuda_shards(run, shard, shards);
        CUDA_LAUNCH(s_grads, grid, CUDA_THREADS, 0, stream, these, *job);
    });
}
