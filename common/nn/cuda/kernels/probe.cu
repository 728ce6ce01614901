/*  probe - a kernel that does nothing: can this card run what this library was built of? */
#include "common/nn/cuda/kernels_probe.h"
#include "common/nn/cuda/launch.cuh"

namespace
{

__global__ void s_nothing()
{
}

} // namespace

void cuda_probe(cudaStream_t stream)
{
    CUDA_LAUNCH(s_nothing, 1, 1, 0, stream);
}
