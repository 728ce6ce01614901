/*  shift - pictures of rows that are made of frames, each moved by a few places. */
#include "common/base/shift.h"
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

/*  Unit e of a row's picture, which consists of grains: what stands in it may come from several places. */
template <typename unit, typename grain> __device__ void move_unit(const cuda_shift_t &job, size_t row, uint32_t e)
{
    constexpr uint32_t GRAINS = sizeof(unit) / sizeof(grain);
    const uint32_t width = job.bytes / (uint32_t)sizeof(unit), k = e / width, first = e % width * GRAINS;
    const uint8_t *frame = job.frame + job.index[row * job.frames + k] * job.frame_bytes + job.from;
    const int8_t *by = job.by + 2 * row;
    union {
        unit whole;
        grain part[GRAINS];
    } moved;
    CUDA_UNROLL
    for (uint32_t g = 0; g < GRAINS; g++)
        moved.part[g] = reinterpret_cast<const grain *>(
            frame)[tt_shift_from(first + g, job.height, job.width, job.place / (uint32_t)sizeof(grain), by[0], by[1])];
    reinterpret_cast<unit *>(job.rows + row * job.row_bytes + job.to)[e] = moved.whole;
}

/*  A thread a unit: what a warp writes lies side by side, and so does most of what it reads. */
template <typename unit, typename grain> __global__ void shift(cuda_shift_t job, uint32_t units)
{
    const size_t at = cuda_thread(), row = at / units;
    if (row < job.count)
        move_unit<unit, grain>(job, row, (uint32_t)(at % units));
}

/*  Everything that a unit begins or ends with, as bits. */
size_t places(const cuda_shift_t *job)
{
    return reinterpret_cast<uintptr_t>(job->frame) | reinterpret_cast<uintptr_t>(job->rows) | job->frame_bytes |
           job->row_bytes | job->from | job->to | job->bytes;
}

template <typename unit, typename grain> void launch_shift(cudaStream_t stream, const cuda_shift_t *job)
{
    const uint32_t units = job->bytes / (uint32_t)sizeof(unit) * job->frames;
    const size_t count = (size_t)job->count * units;
    const auto kernel = shift<unit, grain>;
    if (count)
        CUDA_LAUNCH(kernel, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job, units);
}

} // namespace

void cuda_shift(cudaStream_t stream, const cuda_shift_t *job)
{
    const bool words = places(job) % sizeof(uint32_t) == 0;
    if (words && job->place % sizeof(uint32_t) == 0)
        launch_shift<uint32_t, uint32_t>(stream, job);
    else if (words)
        launch_shift<uint32_t, uint8_t>(stream, job);
    else
        launch_shift<uint8_t, uint8_t>(stream, job);
}
