/*  widen - what an encoder reads of a row: bytes become floats, planes become channels. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/nn/cuda/kernels/threads.cuh"
#include "common/nn/math/widen.h"

namespace
{

template <uint32_t V> __global__ void s_widen(cuda_widen_t job)
{
    const uint32_t count = job.planes * job.pixels * job.deep, channels = job.planes * job.deep;
    const number_t my = my_number(job.count, count / V);
    if (my.i >= count / V)
        return;
    const uint8_t *row = job.rows + (job.row ? job.row[my.row] : my.row) * job.row_bytes + job.at;
    const uint32_t pixel = my.i * V / channels, channel = my.i * V % channels;
    const float inverse = __fdiv_rn(1.0f, job.divisor);
    numbers_t<V> numbers;
    CUDA_UNROLL
    for (uint32_t v = 0; v < V; v++) {
        const uint32_t plane = (channel + v) / job.deep;
        const size_t from = ((size_t)plane * job.pixels + pixel) * job.deep + (channel + v) % job.deep;
        const float x =
            job.bytes_each ? tt_widened(row[from], job.divisor, inverse) : ((const float *)(const void *)row)[from];
        numbers.at[v] = activated(job.act, x);
    }
    *reinterpret_cast<numbers_t<V> *>(job.out + my.row * job.out_row + my.i * V) = numbers;
}

} // namespace

void cuda_widen(cudaStream_t stream, const cuda_widen_t *job)
{
    const uint32_t channels = job->planes * job->deep;
    const bool quads =
        channels % QUAD == 0 && job->out_row % QUAD == 0 && (uintptr_t)job->out % (QUAD * sizeof(float)) == 0;
    if (quads)
        CUDA_LAUNCH_NUMBERS(s_widen<QUAD>, stream, job->count, job->pixels * channels / QUAD, *job);
    else
        CUDA_LAUNCH_NUMBERS(s_widen<1>, stream, job->count, job->pixels * channels, *job);
}
