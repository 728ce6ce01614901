/*  activation - an activation and its derivative for one number, by the layer's. */
#pragma once
#include <cuda_runtime.h>
#include "common/nn/cuda/kernels_encoder.h"
#include "common/nn/math/activation.h"

static __device__ inline float activated(cuda_act_t act, float x)
{
    return act == CUDA_ACT_TANH ? tt_tanhf(x) : act == CUDA_ACT_RELU ? tt_reluf(x) : x;
}

/*  d times the derivative of what gave y. */
static __device__ inline float activated_back(cuda_act_t before, float y, float d)
{
    return before == CUDA_ACT_TANH ? tt_tanh_back(y, d) : before == CUDA_ACT_RELU ? tt_relu_back(y, d) : d;
}
