/*  action - towers that read an action behind the observation or a trunk: what they read, and rows that become columns. */
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

/*  Number `i` of a row of both. */
__device__ float joined(const cuda_join_t &job, size_t row, uint32_t i)
{
    if (i < job.read)
        return job.x[row * job.read + i];
    const uint32_t a = i - job.read;
    return job.given ? job.given[(size_t)job.row[row] * job.numbers + a]
                     : job.columns[cuda_place(job.slot, row, job.numbers, a)];
}

__global__ void join(cuda_join_t job)
{
    const uint32_t width = job.read + job.numbers;
    const size_t e = cuda_thread();
    if (e < (size_t)job.rows * width)
        job.out[e] = joined(job, e / width, (uint32_t)(e % width));
}

__global__ void columns_of_rows(
    uint32_t rows, const uint32_t *row, const uint32_t *slot, uint32_t outs, const float *from, float *columns)
{
    const size_t e = cuda_thread(), i = e / outs;
    const uint32_t a = (uint32_t)(e % outs);
    if (e < (size_t)rows * outs)
        columns[cuda_place(slot, i, outs, a)] = from[(row ? row[i] : i) * outs + a];
}

} // namespace

void cuda_join(cudaStream_t stream, const cuda_join_t *job)
{
    const size_t count = (size_t)job->rows * (job->read + job->numbers);
    if (count)
        CUDA_LAUNCH(join, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job);
}

void cuda_columns_of_rows(cudaStream_t stream, uint32_t rows, const uint32_t *row, const uint32_t *slot, uint32_t outs,
    const float *from, float *columns)
{
    const size_t count = (size_t)rows * outs;
    if (count)
        CUDA_LAUNCH(columns_of_rows, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, rows, row, slot, outs,
            from, columns);
}
