/*  heads - values of choices that are made of other heads, and the weights of noisy layers; and back. */
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/base/vmath.h"
#include "common/nn/atoms.h"

namespace
{

/* ---- dueling -------------------------------------------------------------------------------------------------------- */

/*  A row's sum of number i of all choices, n apart: a chain that begins with the first, not with 0, which would lose a -0. */
__device__ float sum_of_outs(const uint32_t *slot, size_t row, uint32_t outs, uint32_t n, uint32_t i, const float *x)
{
    float sum = x[cuda_place(slot, row, outs, i)];
    for (uint32_t a = i + n; a < outs; a += n)
        sum = __fadd_rn(sum, x[cuda_place(slot, row, outs, a)]);
    return sum;
}

/*  A thread for each of the n numbers of a row. */
__global__ void dueling(cuda_dueling_t job)
{
    const size_t e = cuda_thread(), row = e / job.n;
    const uint32_t i = (uint32_t)(e % job.n);
    if (row >= job.rows)
        return;
    const float sum = sum_of_outs(job.slot, row, job.outs, job.n, i, job.advantage);
    const float mean = tt_divf(sum, (float)(job.outs / job.n));
    const float level = job.value[cuda_place(job.slot, row, job.n, i)];
    for (uint32_t a = i; a < job.outs; a += job.n) {
        const size_t at = cuda_place(job.slot, row, job.outs, a);
        job.q[at] = __fadd_rn(level, __fsub_rn(job.advantage[at], mean));
    }
}

__global__ void dueling_back(
    uint32_t rows, uint32_t outs, uint32_t n, const float *d_q, float *d_value, float *d_advantage)
{
    const size_t e = cuda_thread(), row = e / n;
    const uint32_t i = (uint32_t)(e % n);
    if (row >= rows)
        return;
    const float sum = sum_of_outs(nullptr, row, outs, n, i, d_q), mean = tt_divf(sum, (float)(outs / n));
    d_value[e] = sum;
    for (uint32_t a = i; a < outs; a += n)
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

/* ---- atoms ---------------------------------------------------------------------------------------------------------- */

__global__ void atoms(cuda_atoms_t job)
{
    const size_t e = cuda_thread(), row = e / job.outs;
    const uint32_t a = (uint32_t)(e % job.outs), all = job.outs * job.n, first = a * job.n;
    if (row >= job.rows)
        return;
    float most = job.head[cuda_place(job.slot, row, all, first)], sum = 0, value = 0;
    for (uint32_t i = 1; i < job.n; i++) {
        const float x = job.head[cuda_place(job.slot, row, all, first + i)];
        most = x > most ? x : most;
    }
    const float apart = tt_atoms_apart(job.low, job.high, job.n);
    for (uint32_t i = 0; i < job.n; i++) {
        const float share = tt_expf(__fsub_rn(job.head[cuda_place(job.slot, row, all, first + i)], most));
        sum = __fadd_rn(sum, share);
        value = __fadd_rn(value, __fmul_rn(tt_atom(job.low, apart, i), share));
    }
    job.q[cuda_place(job.slot, row, job.outs, a)] = tt_divf(value, sum);
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

void cuda_dueling(cudaStream_t stream, const cuda_dueling_t *job)
{
    const size_t count = (size_t)job->rows * job->n;
    if (count)
        CUDA_LAUNCH(dueling, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job);
}

void cuda_atoms(cudaStream_t stream, const cuda_atoms_t *job)
{
    const size_t count = (size_t)job->rows * job->outs;
    if (count)
        CUDA_LAUNCH(atoms, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job);
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
    cudaStream_t stream, uint32_t rows, uint32_t outs, uint32_t n, const float *d_q, float *d_value, float *d_advantage)
{
    const size_t count = (size_t)rows * n;
    if (count)
        CUDA_LAUNCH(dueling_back, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, rows, outs, n, d_q,
            d_value, d_advantage);
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
