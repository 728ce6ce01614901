/*  elements - activations, sums of two values, and their way back. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/threads.cuh"

namespace
{

__global__ void s_activate(cuda_activate_t job)
{
    const number_t my = my_number(job.rows, job.count);
    if (my.i >= job.count)
        return;
    const size_t at = (size_t)my.row * job.count + my.i;
    const float x = job.more ? __fadd_rn(job.x[at], job.more[at]) : job.x[at];
    job.y[my.row * job.y_row + my.i] = activated(job.act, x);
}

__global__ void s_activate_back(cuda_activate_back_t job)
{
    const number_t my = my_number(job.rows, job.count);
    if (my.i >= job.count)
        return;
    const size_t at = (size_t)my.row * job.count + my.i;
    const float back = activated_back(job.before, job.x[at], job.d[my.row * job.d_row + my.i]);
    job.d_x[at] = job.add ? __fadd_rn(job.d_x[at], back) : back;
}

} // namespace

void cuda_activate(cudaStream_t stream, const cuda_activate_t *job)
{
    CUDA_LAUNCH_NUMBERS(s_activate, stream, job->rows, job->count, *job);
}

void cuda_activate_back(cudaStream_t stream, const cuda_activate_back_t *job)
{
    CUDA_LAUNCH_NUMBERS(s_activate_back, stream, job->rows, job->count, *job);
}
