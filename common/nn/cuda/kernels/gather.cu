/*  gather - rows of a table as vectors of floats. */
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

/*  Number e of a row's vector. */
__device__ float number_of(const cuda_gather_t &job, const uint8_t *row, uint32_t e)
{
    uint32_t p = 0;
    while (p + 1 < job.parts && e >= job.part[p].elements)
        e -= job.part[p++].elements;
    const uint8_t *from = row + job.part[p].at;
    return job.part[p].bytes ? (float)from[e] : reinterpret_cast<const float *>(from)[e];
}

/*  A thread a number: what a warp reads and writes lies side by side. */
__global__ void gather(cuda_gather_t job, uint32_t obs)
{
    const size_t at = cuda_thread(), i = at / obs;
    if (i < job.count)
        job.out[at] = number_of(job, job.rows + (job.row ? job.row[i] : i) * job.bytes, (uint32_t)(at % obs));
}

} // namespace

void cuda_gather(cudaStream_t stream, const cuda_gather_t *job)
{
    uint32_t obs = 0;
    for (uint32_t p = 0; p < job->parts; p++)
        obs += job->part[p].elements;
    const size_t count = (size_t)job->count * obs;
    if (count)
        CUDA_LAUNCH(gather, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job, obs);
}
