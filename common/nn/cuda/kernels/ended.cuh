/*  ended - how the sum of a dense layer ends, on either way.
 *  Threads: pure. */
#pragma once
#include "common/nn/cuda/kernels.h"
#include "common/nn/cuda/launch.cuh"
#include "common/nn/math/activation.h"

/*  h: what the layer's input was made of, on the way back. */
static __device__ inline float ended(cuda_kind_t kind, float sum, float h)
{
    switch (kind) {
    case CUDA_TANH:
        return tt_tanhf(sum);
    case CUDA_RELU:
        return tt_reluf(sum);
    case CUDA_D_TANH:
        return tt_tanh_back(h, sum);
    case CUDA_D_RELU:
        return tt_relu_back(h, sum);
    case CUDA_SUM:
    case CUDA_D_NONE:
        break;
    }
    return sum;
}
