/*  widen - what an encoder reads of a row: bytes become floats, planes become channels. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/threads.cuh"
#include "common/nn/math/widen.h"

namespace
{

__global__ void s_widen(cuda_widen_t job)
{
    const uint32_t count = job.planes * job.pixels * job.deep, channels = job.planes * job.deep;
    const number_t my = my_number(count);
    if (my.i >= count)
        return;
    const uint8_t *row = job.rows + (job.row ? job.row[my.row] : my.row) * job.row_bytes + job.at;
    const uint32_t pixel = my.i / channels, plane = my.i % channels / job.deep;
    const size_t from = ((size_t)plane * job.pixels + pixel) * job.deep + my.i % job.deep;
    const float x = job.bytes_each ? tt_widened(row[from], job.divisor, __fdiv_rn(1.0f, job.divisor))
                                   : ((const float *)(const void *)row)[from];
    job.out[my.row * job.out_row + my.i] = activated(job.act, x);
}

} // namespace

void cuda_widen(cudaStream_t stream, const cuda_widen_t *job)
{
    CUDA_LAUNCH_NUMBERS(s_widen, stream, job->count, job->planes * job->pixels * job->deep, *job);
}
