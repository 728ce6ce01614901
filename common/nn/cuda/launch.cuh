/*  launch - how a kernel is started and how it gets memory that its block shares: for nvcc, and for the host's compiler with the
 *  stand-in of tests/simt.
 *
 *      CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, args...);       grid, block: dim3 or a number
 *      CUDA_STATIC_SHARED(float, tile, 32 * 33);                              float tile[32 * 33], one for each block
 *      CUDA_SHARED(float, all);                                               float *all: the shared_bytes of the launch */
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__

#define CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    (kernel)<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#define CUDA_STATIC_SHARED(type, name, count) __shared__ type name[count]
#define CUDA_SHARED(type, name)                   \
    extern __shared__ float4 cuda_shared_bytes[]; \
    type *const name = (type *)cuda_shared_bytes

#else

#define CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    simt::launch(#kernel, (kernel), (grid), (block), (shared_bytes), (stream)__VA_OPT__(, ) __VA_ARGS__)
#define CUDA_STATIC_SHARED(type, name, count) \
    static char simt_key_##name;              \
    auto &name =                              \
        *static_cast<type(*)[count]>(simt::shared_array(&simt_key_##name, sizeof(type[count]), __FILE__, __LINE__))
#define CUDA_SHARED(type, name) type *const name = static_cast<type *>(simt::now->shared)

#endif
