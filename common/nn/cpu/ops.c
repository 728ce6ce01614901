/*  ops - those of ops.h that are a kernel each. */
#include "common/nn/cpu/ops.h"

void cpu_norm_forward(const tt_kernels_t *kernels, size_t count, const float *x, const float *gain, const float *bias,
    float *y, float *moments)
{
    kernels->norm(count, x, gain, bias, y, moments);
}

void cpu_norm_backward(const tt_kernels_t *kernels, size_t count, const float *x, const float *moments,
    const float *gain, const float *d, bool first, float *d_gain, float *d_bias, float *d_x)
{
    kernels->norm_back(count, x, moments, gain, d, first, d_gain, d_bias, d_x);
}

void cpu_activate(const tt_kernels_t *kernels, tt_nn_activation_t activation, size_t count, const float *x, float *y)
{
    kernels->activate(activation, count, x, y);
}

void cpu_activate_back(const tt_kernels_t *kernels, tt_nn_activation_t activation, size_t count, const float *y,
    const float *d, float *d_x)
{
    kernels->activate_back(activation, count, y, d, d_x);
}

void cpu_bytes_forward(const tt_kernels_t *kernels, const tt_gemm_t *job, const uint8_t *const *row)
{
    kernels->bytes(job, row);
}

void cpu_bytes_param_grad(const tt_kernels_t *kernels, const tt_gemm_t *job, const uint8_t *const *row)
{
    kernels->bytes_grad(job, row);
}
