/*  scale - floats of rows, normalised. */
#include "common/base/scale.h"
#include "common/base/shift.h"
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

/*  Where float e of run p stood before its row was moved. */
__device__ uint32_t stood(const cuda_scale_t &job, size_t row, uint32_t p, uint32_t e)
{
    if (!job.by || p != job.moved.run)
        return e;
    return tt_shift_from(e, job.moved.height, job.moved.width, job.moved.numbers, job.by[2 * row], job.by[2 * row + 1]);
}

/*  Float e of a frame, counted over its runs. */
__device__ void scale_float(const cuda_scale_t &job, size_t row, uint32_t frame, uint32_t e)
{
    uint32_t p = 0;
    while (e >= job.run[p].count)
        e -= job.run[p++].count;
    float *x =
        reinterpret_cast<float *>(job.rows + row * job.row_bytes + job.run[p].at + (size_t)frame * job.run[p].step) + e;
    const uint32_t of = job.run[p].first + stood(job, row, p, e);
    *x = tt_scaled(*x, job.mean[of], job.inv[of], job.clip);
}

/*  A thread a float: those of a frame lie side by side. */
__global__ void scale(cuda_scale_t job, uint32_t floats)
{
    const size_t at = cuda_thread(), shown = at / floats;
    if (shown < (size_t)job.count * job.frames && job.index[shown] != job.but)
        scale_float(job, shown / job.frames, (uint32_t)(shown % job.frames), (uint32_t)(at % floats));
}

} // namespace

void cuda_scale(cudaStream_t stream, const cuda_scale_t *job)
{
    uint32_t floats = 0;
    for (uint32_t p = 0; p < job->runs; p++)
        floats += job->run[p].count;
    const size_t count = (size_t)job->count * job->frames * floats;
    if (count)
        CUDA_LAUNCH(scale, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job, floats);
}
