/*  gather - rows of a table as vectors of floats, and rows made of frames. */
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

/*  Unit e of a row, counted without what lies between parts; units are `unit` wide, and every place is a multiple of that. */
template <typename unit> __device__ void copy_unit(const cuda_stack_t &job, size_t row, uint32_t e)
{
    uint32_t p = 0;
    while (e >= job.part[p].bytes / (uint32_t)sizeof(unit) * job.frames)
        e -= job.part[p++].bytes / (uint32_t)sizeof(unit) * job.frames;
    const uint32_t width = job.part[p].bytes / (uint32_t)sizeof(unit), k = e / width;
    const uint8_t *from = job.frame + job.index[row * job.frames + k] * job.frame_bytes + job.part[p].from;
    uint8_t *to = job.rows + row * job.row_bytes + job.part[p].to;
    reinterpret_cast<unit *>(to)[e] = reinterpret_cast<const unit *>(from)[e % width];
}

/*  A thread a unit, as above: words, and bytes where something is no multiple of one. */
template <typename unit> __global__ void stack(cuda_stack_t job, uint32_t units)
{
    const size_t at = cuda_thread(), row = at / units;
    if (row < job.count)
        copy_unit<unit>(job, row, (uint32_t)(at % units));
}

/*  Everything that a copy begins or ends with, as bits. */
size_t places(const cuda_stack_t *job)
{
    size_t bits = reinterpret_cast<uintptr_t>(job->frame) | reinterpret_cast<uintptr_t>(job->rows) | job->frame_bytes |
                  job->row_bytes;
    for (uint32_t p = 0; p < job->parts; p++)
        bits |= job->part[p].from | job->part[p].to | job->part[p].bytes;
    return bits;
}

template <typename unit> void launch_stack(cudaStream_t stream, const cuda_stack_t *job)
{
    uint32_t units = 0;
    for (uint32_t p = 0; p < job->parts; p++)
        units += job->part[p].bytes / (uint32_t)sizeof(unit) * job->frames;
    const size_t count = (size_t)job->count * units;
    if (count)
        CUDA_LAUNCH(stack<unit>, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job, units);
}

} // namespace

void cuda_stack(cudaStream_t stream, const cuda_stack_t *job)
{
    if (places(job) % sizeof(uint32_t) == 0)
        launch_stack<uint32_t>(stream, job);
    else
        launch_stack<uint8_t>(stream, job);
}

void cuda_gather(cudaStream_t stream, const cuda_gather_t *job)
{
    uint32_t obs = 0;
    for (uint32_t p = 0; p < job->parts; p++)
        obs += job->part[p].elements;
    const size_t count = (size_t)job->count * obs;
    if (count)
        CUDA_LAUNCH(gather, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job, obs);
}
