/*  simt_count() on a card: the calls that matter are wrapped by the linker, and counted on their way. What is recorded counts when the graph
 *  is launched, as one graph. */
#include "tests/simt/count.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>

static simt_count_t s_count;

/*  The names are the linker's (--wrap). */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

cudaError_t __real_cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __real___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t __real_cudaMemcpyAsync(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
cudaError_t __real_cudaStreamSynchronize(cudaStream_t);

simt_count_t simt_count(void)
{
    return s_count;
}

static bool s_recording(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

cudaError_t __wrap_cudaLaunchKernel(
    const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    s_count.kernels += !s_recording(stream);
    return __real_cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t __wrap___cudaLaunchKernel(
    cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    s_count.kernels += !s_recording(stream);
    return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    s_count.graphs++;
    return __real_cudaGraphLaunch(graph, stream);
}

cudaError_t __wrap_cudaMemcpyAsync(
    void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const bool now = !s_recording(stream);
    s_count.up += kind == cudaMemcpyHostToDevice && now ? bytes : 0;
    s_count.copies += now;
    return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}

cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream)
{
    s_count.waits++;
    return __real_cudaStreamSynchronize(stream);
}
