/*  heads - values of choices that are made of other heads, and the weights of noisy layers; and back. */
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/base/portable_fn.h"

namespace
{

/* ---- dueling -------------------------------------------------------------------------------------------------------- */

/*  A row's sum over the outputs: a chain that begins with the first, not with 0, which would lose a -0. */
__device__ float sum_of_outs(const uint32_t *slot, size_t row, uint32_t outs, const float *x)
{
    float sum = x[cuda_place(slot, row, outs, 0)];
    for (uint32_t a = 1; a < outs; a++)
        sum = __fadd_rn(sum, x[cuda_place(slot, row, outs, a)]);
    return sum;
}

__global__ void dueling(
    uint32_t rows, const uint32_t *slot, uint32_t outs, const float *value, const float *advantage, float *q)
{
    const size_t row = cuda_thread();
    if (row >= rows)
        return;
    const float mean = tt_divf(sum_of_outs(slot, row, outs, advantage), (float)outs);
    const float level = value[cuda_place(slot, row, 1, 0)];
    for (uint32_t a = 0; a < outs; a++) {
        const size_t at = cuda_place(slot, row, outs, a);
        q[at] = __fadd_rn(level, __fsub_rn(advantage[at], mean));
    }
}

__global__ void dueling_back(uint32_t rows, uint32_t outs, const float *d_q, float *d_value, float *d_advantage)
{
    const size_t row = cuda_thread();
    if (row >= rows)
        return;
    const float sum = sum_of_outs(nullptr, row, outs, d_q), mean = tt_divf(sum, (float)outs);
    d_value[row] = sum;
    for (uint32_t a = 0; a < outs; a++)
        d_advantage[row * outs + a] = __fsub_rn(d_q[row * outs + a], mean);
}

/* ---- means ---------------------------------------------------------------------------------------------------------- */

__global__ void mean(uint32_t rows, const uint32_t *slot, uint32_t outs, uint32_t n, const float *head, float *q)
{
    const size_t e = cuda_thread(), row = e / outs;
    const uint32_t a = (uint32_t)(e % outs);
    if (row >= rows)
        return;
    float sum = head[cuda_place(slot, row, outs * n, a * n)];
    for (uint32_t i = 1; i < n; i++)
        sum = __fadd_rn(sum, head[cuda_place(slot, row, outs * n, a * n + i)]);
    q[cuda_place(slot, row, outs, a)] = tt_divf(sum, (float)n);
}

__global__ void mean_back(size_t count, uint32_t n, const float *d_q, float *d_head)
{
    const size_t e = cuda_thread();
    if (e < count)
        d_head[e] = tt_divf(d_q[e / n], (float)n);
}

/* ---- noise ---------------------------------------------------------------------------------------------------------- */

/*  What number e of the tensor is multiplied by. */
__device__ float noise_of(const cuda_noisy_t &job, size_t e)
{
    const float out = job.out_[e % job.cols];
    return job.in ? __fmul_rn(job.in[e / job.cols], out) : out;
}

__global__ void noisy(cuda_noisy_t job, size_t count)
{
    const size_t e = cuda_thread();
    if (e < count)
        job.out[e] = __fadd_rn(job.mean[e], __fmul_rn(job.deviation[e], noise_of(job, e)));
}

/*  A shard without rows has zeros, and would have -0 here where the noise is negative. */
__global__ void noisy_back(cuda_noisy_t job, cuda_shards_t shards, size_t count, size_t mean_at, size_t sigma_at)
{
    float *grad = shards.grad[blockIdx.y];
    const size_t e = cuda_thread();
    if (e < count && shards.first[blockIdx.y] < shards.first[blockIdx.y + 1])
        grad[sigma_at + e] = __fmul_rn(grad[mean_at + e], noise_of(job, e));
}

} // namespace

void cuda_dueling(cudaStream_t stream, uint32_t rows, const uint32_t *slot, uint32_t outs, const float *value,
    const float *advantage, float *q)
{
    if (rows && outs)
        CUDA_LAUNCH(
            dueling, cuda_blocks(rows, CUDA_THREADS), CUDA_THREADS, 0, stream, rows, slot, outs, value, advantage, q);
}

void cuda_mean(
    cudaStream_t stream, uint32_t rows, const uint32_t *slot, uint32_t outs, uint32_t n, const float *head, float *q)
{
    const size_t count = (size_t)rows * outs;
    if (count)
        CUDA_LAUNCH(mean, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, rows, slot, outs, n, head, q);
}

void cuda_mean_back(cudaStream_t stream, uint32_t rows, uint32_t outs, uint32_t n, const float *d_q, float *d_head)
{
    const size_t count = (size_t)rows * outs * n;
    if (count)
        CUDA_LAUNCH(mean_back, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, count, n, d_q, d_head);
}

void cuda_dueling_back(
    cudaStream_t stream, uint32_t rows, uint32_t outs, const float *d_q, float *d_value, float *d_advantage)
{
    if (rows && outs)
        CUDA_LAUNCH(dueling_back, cuda_blocks(rows, CUDA_THREADS), CUDA_THREADS, 0, stream, rows, outs, d_q, d_value,
            d_advantage);
}

void cuda_noisy(cudaStream_t stream, const cuda_noisy_t *job)
{
    const size_t count = (size_t)job->rows * job->cols;
    if (count)
        CUDA_LAUNCH(noisy, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job, count);
}

void cuda_noisy_back(
    cudaStream_t stream, const cuda_run_t *run, const cuda_noisy_t *job, size_t mean_at, size_t sigma_at)
{
    const size_t count = (size_t)job->rows * job->cols;
    if (count)
        cuda_each_shards(run, [&](uint32_t at, uint32_t some) {
            CUDA_LAUNCH(noisy_back, dim3(cuda_blocks(count, CUDA_THREADS), some), CUDA_THREADS, 0, stream, *job,
                cuda_shards(run, at, some), count, mean_at, sigma_at);
        });
}
